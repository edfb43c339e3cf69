/* SPDX-License-Identifier: BSD-2-Clause */
/* soft0's test interface: its words, planned failures of every command, counters, the environment. */
#include "raw.h"

#include <sys/wait.h>

static int teardown(void **state)
{
	dev_reset();
	return 0;
}

static void words(void **state)
{
	static const char *const good[][2] = {
		{ "mode", "sync" },
		{ "mode", "async" },
		{ "mode", "strict" },
		{ "hold", "0" },
		{ "delay", "0" },
		{ "odp", "0" },
		{ "implicit", "0" },
		{ "atomics", "0" },
		{ "advise", "0" },
		{ "umr", "0" },
		{ "devx", "0" },
		{ "max_mr_size", "0x100000" },
		{ "max_klms", "64" },
		{ "max_depth", "1" },
		{ "max_msg_sz", "65536" },
		{ "max_keys", "1" },
		{ "split_keys", "1" },
		{ "first_key", "0" },
		{ "memlock", "1" },
		{ "fail", "any:1" },
		{ "fail", "reg_mr:3:ENOSPC" },
		{ "gone", "reg_mr:2" },
		{ "fail_wqe", "1" },
		{ "fail_wqe", "2:0x13" },
		{ "break", "wrong_byte" },
		{ "break", "off_by_one" },
		{ "break", "stale_layout" },
		{ "break", "no_rights" },
		{ "break", "lost_completion" },
		{ "break", "scatter_cqe" },
	};
	static const char *const bad[][2] = {
		{ "", "1" },
		{ "mod", "sync" },
		{ "mode", "" },
		{ "mode", "fast" },
		{ "odp", "2" },
		{ "odp", "yes" },
		{ "odp", "-1" },
		{ "odp", "" },
		{ "odp", " 1" },
		{ "odp", "1 " },
		{ "max_klms", "0" },
		{ "max_klms", "65537" },
		{ "max_depth", "0" },
		{ "max_msg_sz", "1" },
		{ "max_mr_size", "0" },
		{ "max_keys", "0" },
		{ "fail", "" },
		{ "fail", "reg_mr" },
		{ "fail", "reg_mr:0" },
		{ "fail", "reg_mr:x" },
		{ "fail", "regmr:1" },
		{ "fail", "reg_mr:1:E" },
		{ "fail", "reg_mr:1:ENOMEM:2" },
		{ "gone", "" },
		{ "gone", "1" },
		{ "gone", "reg_mr:0" },
		{ "gone", "reg_mr:1:EIO" },
		{ "fail_wqe", "0" },
		{ "fail_wqe", "1:0" },
		{ "fail_wqe", "1:256" },
		{ "break", "" },
		{ "break", "everything" },
		{ "max_keys", "18446744073709551616" },
		{ "counters", "" },
	};
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (soft0_set(good[i][0], good[i][1]))
			fail_msg("%s=%s refused", good[i][0], good[i][1]);
	soft0_reset();
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (soft0_set(bad[i][0], bad[i][1]) != -EINVAL)
			fail_msg("%s=%s accepted", bad[i][0], bad[i][1]);
	assert_int_equal(soft0_set(NULL, "1"), -EINVAL);
	assert_int_equal(soft0_set("odp", NULL), -EINVAL);
}

/* One of everything. 0, or the first errno; what was made is released in any case. */
static int one_of_everything(void)
{
	static uint8_t buf[8192], more[4096];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_srq_init_attr sattr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	struct mlx5dv_mkey_init_attr init = { .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 4 };
	struct ibv_qp_attr qattr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_init_attr qinit;
	struct ibv_srq_attr srq_attr;
	struct ibv_device_attr_ex dattr;
	struct ibv_comp_channel *channel = NULL;
	struct ibv_context *ctx = NULL;
	struct mlx5dv_mkey *mkey = NULL;
	struct ibv_mr *mr = NULL, *odp = NULL;
	struct ibv_srq *srq = NULL;
	struct ibv_pd *pd = NULL;
	struct ibv_cq *cq = NULL;
	struct ibv_qp *qp = NULL;
	struct ibv_port_attr port;
	struct ibv_sge sge;
	int err = EIO, ret;

	errno = 0;
	if (!list || !list[0])
		return errno ? errno : EIO;
	ctx = ibv_open_device(list[0]);
	if (!ctx)
		goto out;
	pd = ibv_alloc_pd(ctx);
	channel = ibv_create_comp_channel(ctx);
	if (!pd || !channel)
		goto out;
	cq = ibv_create_cq(ctx, 8, NULL, channel, 0);
	srq = ibv_create_srq(pd, &sattr);
	if (!cq || !srq)
		goto out;
	attr.send_cq = attr.recv_cq = cq;
	attr.srq = srq;
	init.pd = pd;
	qp = ibv_create_qp(pd, &attr);
	mkey = mlx5dv_create_mkey(&init);
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	odp = ibv_reg_mr(pd, more, sizeof(more), IBV_ACCESS_ON_DEMAND);
	if (!qp || !mkey || !mr || !odp)
		goto out;
	sge = (struct ibv_sge){ (uintptr_t)more, 64, odp->lkey };
	err = ibv_query_device_ex(ctx, NULL, &dattr);
	if (!err)
		err = ibv_query_port(ctx, 1, &port);
	if (!err)
		err = ibv_modify_qp(qp, &qattr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					    IBV_QP_ACCESS_FLAGS);
	if (!err)
		err = ibv_query_qp(qp, &qattr, IBV_QP_STATE, &qinit);
	if (!err)
		err = ibv_query_srq(srq, &srq_attr);
	if (!err)
		err = ibv_resize_cq(cq, 32);
	if (!err)
		err = ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) ? errno : 0;
	if (!err)
		err = ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH,
				    &sge, 1);
out:
	if (err == EIO && errno)
		err = errno;
		/* a destroy that is made to fail is tried once more: as the fault is past, it works */
#define DESTROY(obj, call)                                   \
	do {                                                 \
		if (obj) {                                   \
			ret = call;                          \
			if (ret && !err)                     \
				err = ret > 0 ? ret : errno; \
			if (ret)                             \
				assert_int_equal(call, 0);   \
		}                                            \
	} while (0)
	DESTROY(odp, ibv_dereg_mr(odp));
	DESTROY(mr, ibv_dereg_mr(mr));
	DESTROY(mkey, mlx5dv_destroy_mkey(mkey));
	DESTROY(qp, ibv_destroy_qp(qp));
	DESTROY(srq, ibv_destroy_srq(srq));
	DESTROY(cq, ibv_destroy_cq(cq));
	DESTROY(channel, ibv_destroy_comp_channel(channel));
	DESTROY(pd, ibv_dealloc_pd(pd));
	if (ctx)
		assert_int_equal(ibv_close_device(ctx), 0);
	ibv_free_device_list(list);
	return err;
}

static void nothing_lives(void)
{
	static const char *const live[] = { "live.pd",	    "live.mr",	   "live.cq",	"live.qp",
					    "live.srq",	    "live.uar",	   "live.devx", "live.mkey",
					    "live.context", "pinned_bytes" };
	size_t i;

	for (i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		if (counter(live[i]))
			fail_msg("%s is %llu", live[i], (unsigned long long)counter(live[i]));
}

/* What libmlx5 does without: it opens once more without DEVX, and caps it cannot read are zero. */
static bool may_pass(const char *kind)
{
	return !strcmp(kind, "query_hca_cap") || !strcmp(kind, "query_port") ||
	       !strcmp(kind, "query_device") || !strcmp(kind, "query_device_ex") ||
	       !strcmp(kind, "get_context") || !strcmp(kind, "alloc_uar");
}

static void each_command_fails_when_told(void **state)
{
	const char *const *kind;
	char word[64], name[64];
	uint64_t done = 0;
	int err;

	assert_int_equal(one_of_everything(), 0);
	nothing_lives();
	for (kind = soft0_commands(); *kind; kind++) {
		snprintf(name, sizeof(name), "cmd.%s", *kind);
		/* libmlx5 asserts that a UAR page can be given back */
		if (!counter(name) || !strcmp(*kind, "free_uar"))
			continue;
		snprintf(word, sizeof(word), "%s:1:EXDEV", *kind);
		assert_int_equal(soft0_set("fail", word), -EINVAL); /* no name that is known */
		snprintf(word, sizeof(word), "%s:1:ERANGE", *kind);
		assert_int_equal(soft0_set("fail", word), 0);
		err = one_of_everything();
		if (err != ERANGE && !may_pass(*kind))
			fail_msg("%s: %s", *kind, strerror(err));
		nothing_lives();
		assert_int_equal(one_of_everything(), 0); /* once only */
		done++;
	}
	assert_true(done >= 25);
}

static void every_command_in_turn(void **state)
{
	char word[64];
	uint64_t commands;
	const char *const *kind;
	char name[64];
	int n;

	soft0_reset();
	assert_int_equal(one_of_everything(), 0);
	for (commands = 0, kind = soft0_commands(); *kind; kind++) {
		snprintf(name, sizeof(name), "cmd.%s", *kind);
		commands += counter(name);
	}
	assert_true(commands > 30);
	/* the last ones give UAR pages back, which libmlx5 asserts to work */
	for (n = 1; n <= (int)(commands - counter("cmd.free_uar")); n++) {
		dev_reset();
		snprintf(word, sizeof(word), "any:%d:ENOMEM", n);
		assert_int_equal(soft0_set("fail", word), 0);
		one_of_everything();
		nothing_lives();
	}
}

static void counters(void **state)
{
	uint64_t v = 77;

	dev_reset();
	assert_int_equal(soft0_counter("no.such", &v), -ENOENT);
	assert_int_equal(v, 77);
	assert_int_equal(soft0_counter(NULL, &v), -EINVAL);
	assert_int_equal(soft0_counter("cmd.reg_mr", NULL), -EINVAL);
	assert_int_equal(counter("cmd.reg_mr"), 0);
	assert_int_equal(one_of_everything(), 0);
	assert_int_equal(counter("cmd.reg_mr"), 2);
	assert_int_equal(counter("cmd.dereg_mr"), 2);
	assert_int_equal(counter("cmd.create_qp"), 1);
	assert_int_equal(counter("cmd.destroy_srq"), 1);
	dev_reset();
	assert_int_equal(counter("cmd.reg_mr"), 0);
	assert_string_equal(soft0_name(), "soft0");
}

/* ---- the environment: this program again, as a child ---------------------------------- */

static char *self; /* the path of this program */

static int child(const char *env, char *ret_err, size_t room)
{
	char *const argv[] = { (char *)"child", NULL };
	char word[200];
	char *const envp[] = { word, NULL };
	int fds[2], status;
	ssize_t num;
	pid_t pid;

	snprintf(word, sizeof(word), "IBMR_SOFT0=%s", env);
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[1], 2);
		close(fds[0]);
		close(fds[1]);
		execve(self, argv, envp);
		_exit(99);
	}
	close(fds[1]);
	num = read(fds[0], ret_err, room - 1);
	ret_err[num > 0 ? num : 0] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void environment(void **state)
{
	char err[500], path[] = "/tmp/soft0-counters-XXXXXX", word[100], line[100];
	bool seen = false;
	FILE *f;

	assert_int_equal(child("", err, sizeof(err)), 0);
	assert_string_equal(err, "");
	assert_int_equal(child("mode=strict,max_klms=64,fail=any:1000", err, sizeof(err)), 0);
	assert_string_equal(err, "");
	assert_int_equal(child("fail=alloc_pd:1:EMFILE", err, sizeof(err)), EMFILE);
	assert_int_equal(child("mode=warp", err, sizeof(err)), 2);
	assert_string_equal(err, "IBMR_SOFT0: not understood: mode=warp\n");
	assert_int_equal(child("odp=1,nonsense", err, sizeof(err)), 2);
	assert_string_equal(err, "IBMR_SOFT0: not understood: nonsense\n");
	assert_int_equal(child("max_klms=1000000", err, sizeof(err)), 2);

	close(mkstemp(path));
	snprintf(word, sizeof(word), "counters=%s", path);
	assert_int_equal(child(word, err, sizeof(err)), 0);
	f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		seen |= !strcmp(line, "cmd.reg_mr 2\n");
	fclose(f);
	assert_true(seen);
	unlink(path);
}

static int free_self(void **state)
{
	free(self);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(words, teardown),
		cmocka_unit_test_teardown(each_command_fails_when_told, teardown),
		cmocka_unit_test_teardown(every_command_in_turn, teardown),
		cmocka_unit_test_teardown(counters, teardown),
		cmocka_unit_test_teardown(environment, teardown),
	};

	if (!strcmp(argv[0], "child"))
		return one_of_everything();
	self = realpath(argv[0], NULL);
	return cmocka_run_group_tests(tests, NULL, free_self);
}
