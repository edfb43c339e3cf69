/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared memory: the same bytes in two MRs, of one process and of two users; and the life of its name. */
#include "soft_test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static char name[32], id[48], path[64];

static int setup(void **state)
{
	snprintf(name, sizeof(name), "test-%d", (int)getpid());
	snprintf(id, sizeof(id), "%u.%s", (unsigned)geteuid(), name);
	snprintf(path, sizeof(path), "/dev/shm/ibmr-%s", id);
	return soft_setup(state);
}

static int share(struct ibmr_ctx *ctx, unsigned mode, struct ibmr_mr **ret_mr, struct ibmr_err *err)
{
	struct ibmr_mr_spec spec = { .name = name,
				     .mem = IBMR_MEM_SHARED,
				     .length = 5000,
				     .access = LW | RW | RR,
				     .share_mode = mode };

	return ibmr_mr_reg(ctx, &spec, ret_mr, err);
}

static int attach(struct ibmr_ctx *ctx, const char *to, uint64_t access, struct ibmr_mr **ret_mr,
		  struct ibmr_err *err)
{
	struct ibmr_mr_spec spec = { .name = "attached",
				     .mem = IBMR_MEM_ATTACH,
				     .length = IBMR_TO_END,
				     .access = access,
				     .attach = to };

	return ibmr_mr_reg(ctx, &spec, ret_mr, err);
}

static void both_have_the_same_bytes(void **state)
{
	struct ibmr_mr *a, *b;
	struct ibmr_err err;
	struct stat st;

	umask(077); /* the mode is that of the rights, whatever this says */
	OK(share(soft, 0644, &a, &err));
	assert_string_equal(info_of(a).attach, id);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0644);
	assert_int_equal(st.st_size, 5000);
	OK(attach(soft, id, LW | RW | RR, &b, &err));
	assert_int_equal(info_of(b).length, 5000);
	assert_string_equal(info_of(b).attach, id);
	OK(ibmr_mr_write(a, 4990, "by key", 6, 0, &err));
	reads_as(b, 4990, "by key", 6);
	bytes_of(b)[0] = 77;
	assert_int_equal(bytes_of(a)[0], 77);
	/* the name goes with the first, the memory with the last */
	soft_dereg(a);
	assert_int_equal(access(path, F_OK), -1);
	reads_as(b, 4990, "by key", 6);
	REFUSED(attach(soft, id, LW, &a, &err), ENOENT, IBMR_E_IO);
	OK(share(soft, 0600, &a, &err));
	reads_as(a, 4990, "\0\0", 2);
	soft_dereg(b);
	assert_int_equal(access(path, F_OK), 0);
}

static void fr38_read_only_memory_takes_no_local_write(void **state)
{
	struct ibmr_mr *a, *b;
	struct ibmr_mr_spec spec = {
		.name = "w", .mem = IBMR_MEM_CALLER, .length = 8, .access = LW
	};
	struct ibmr_err err;

	OK(share(soft, 0400, &a, &err));
	ramp(a, 1);
	OK(attach(soft, id, RR, &b, &err));
	reads_as(b, 0, "\1\2\3", 3);
	REFUSED(ibmr_mr_write(b, 0, "x", 1, 0, &err), EACCES, IBMR_E_ACCESS);
	spec.addr = bytes_of(b);
	REFUSED(ibmr_mr_reg(soft, &spec, &b, &err), EFAULT, IBMR_E_BAD_ADDRESS);
	assert_string_equal(err.cause, "read_only");
}

static void a_name_is_taken_while_its_maker_lives(void **state)
{
	struct ibmr_mr *a, *b;
	struct ibmr_err err;
	int fd;

	OK(share(soft, 0600, &a, &err));
	REFUSED(share(soft, 0600, &b, &err), EEXIST, IBMR_E_IO);
	assert_string_equal(err.origin, "shm_open");
	assert_int_equal(access(path, F_OK), 0);
	soft_dereg(a);
	/* what a crash left is nobody's */
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 100), 0);
	close(fd);
	OK(share(soft, 0600, &a, &err));
	assert_int_equal(info_of(a).length, 5000);
}

static void names_that_are_none(void **state)
{
	struct ibmr_mr_spec spec = { .mem = IBMR_MEM_SHARED, .length = 8, .access = LW };
	char long_name[65] = { 0 };
	struct ibmr_mr *mr;
	struct ibmr_err err;

	REFUSED(ibmr_mr_reg(soft, &spec, &mr, &err), EINVAL, IBMR_E_ARGUMENT);
	spec.name = "a/b";
	REFUSED(ibmr_mr_reg(soft, &spec, &mr, &err), EINVAL, IBMR_E_ARGUMENT);
	spec.name = "a";
	spec.share_mode = 04600;
	REFUSED(ibmr_mr_reg(soft, &spec, &mr, &err), EINVAL, IBMR_E_ARGUMENT);
	spec.share_mode = 0600;
	spec.length = 0;
	REFUSED(ibmr_mr_reg(soft, &spec, &mr, &err), EINVAL, IBMR_E_ARGUMENT);
	spec.length = 8;
	memset(long_name, 'x', 64);
	spec.name = long_name;
	REFUSED(ibmr_mr_reg(soft, &spec, &mr, &err), E2BIG, IBMR_E_LIMIT);
	REFUSED(attach(soft, NULL, LW, &mr, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(attach(soft, "../../etc/passwd", 0, &mr, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(attach(soft, "none", 0, &mr, &err), ENOENT, IBMR_E_IO);
}

/* An object that another user put there under our name. */
static void nobody_passes_for_another(void **state)
{
	struct ibmr_mr *mr;
	struct ibmr_err err;
	int fd;

	if (geteuid())
		skip();
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0666);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 100), 0);
	assert_int_equal(fchown(fd, NOBODY, NOBODY), 0);
	REFUSED(attach(soft, id, 0, &mr, &err), EACCES, IBMR_E_NO_PERMISSION);
	assert_string_equal(err.cause, "not_owner");
	REFUSED(share(soft, 0600, &mr, &err), EEXIST, IBMR_E_IO);
	unlink(path);
	close(fd);
}

/* In a process of another user, with a context of its own. */
static int as_nobody(uint64_t access, const char *want)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	struct ibmr_ctx *ctx;
	struct ibmr_mr *mr;
	struct ibmr_err err = { .code = IBMR_OK };
	char got[8] = { 0 };
	int status, ret;
	pid_t pid = fork();

	if (!pid) {
		if (setgid(NOBODY) || setuid(NOBODY) || ibmr_ctx_open(&opts, &ctx, &err))
			_exit(100);
		ret = attach(ctx, id, access, &mr, &err);
		if (!ret && want && (ibmr_mr_read(mr, 0, got, 5, 0, &err) || strcmp(got, want)))
			_exit(101);
		if (!ret && access & LW && ibmr_mr_write(mr, 0, "child", 5, 0, &err))
			_exit(102);
		_exit(ret ? -ret : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Left by a crash under its own name, with a mode that keeps its owner out. */
static void leave_behind(mode_t mode)
{
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0 || fchmod(fd, mode) || close(fd))
		_exit(100);
}

/* As a user whom modes bind. 0, or which of them went wrong. */
static int take_places(void)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	static const mode_t modes[] = { 0, 0040, 0200 };
	struct ibmr_mr *a, *b;
	struct ibmr_ctx *ctx;
	struct ibmr_err err;
	struct stat st;

	if (!geteuid() && (setgid(NOBODY) || setuid(NOBODY)))
		return 101;
	snprintf(path, sizeof(path), "/dev/shm/ibmr-%u.%s", (unsigned)geteuid(), name);
	if (ibmr_ctx_open(&opts, &ctx, &err))
		return 102;
	for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		leave_behind(modes[i]);
		if (share(ctx, modes[i], &a, &err))
			return 103;
		/* this one lives, and nobody's look at it changes it */
		if (share(ctx, 0600, &b, &err) != -EEXIST)
			return 104;
		if (stat(path, &st) || (st.st_mode & 0777) != modes[i])
			return 105;
		if (ibmr_mr_dereg(a, &err) || !access(path, F_OK))
			return 106;
	}
	return 0;
}

static void what_a_crash_left_goes_whatever_its_mode(void **state)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(take_places());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void another_user_attaches_as_the_kernel_lets_it(void **state)
{
	struct ibmr_mr *a;
	struct ibmr_err err;

	if (geteuid())
		skip();
	OK(share(soft, 0600, &a, &err));
	assert_int_equal(as_nobody(RR, NULL), EACCES);
	soft_dereg(a);
	OK(share(soft, 0604, &a, &err));
	OK(ibmr_mr_write(a, 0, "first", 5, 0, &err));
	assert_int_equal(as_nobody(RR, "first"), 0);
	assert_int_equal(as_nobody(LW | RW | RR, NULL), EACCES);
	soft_dereg(a);
	OK(share(soft, 0606, &a, &err));
	OK(ibmr_mr_write(a, 0, "again", 5, 0, &err));
	assert_int_equal(as_nobody(LW | RW | RR, "again"), 0);
	reads_as(a, 0, "child", 5);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, soft_teardown)
	const struct CMUnitTest tests[] = {
		T(both_have_the_same_bytes),
		T(fr38_read_only_memory_takes_no_local_write),
		T(a_name_is_taken_while_its_maker_lives),
		T(what_a_crash_left_goes_whatever_its_mode),
		T(names_that_are_none),
		T(nobody_passes_for_another),
		T(another_user_attaches_as_the_kernel_lets_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
