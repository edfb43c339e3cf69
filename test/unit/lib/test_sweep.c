/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything fails once: each command to the device, by its kind and number, and each allocation of the
 * library. The step that met the failure must say so in full, leave things as they were, and work when
 * it is tried again. At the end nothing is left.
 */
#include "soft_test.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- allocations that fail ---------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t num, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t num, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);

static uint64_t allocations, failing; /* counted; the one to fail, 0 for none */

static bool fails_now(void)
{
	bool fails = ++allocations == failing;

	if (fails)
		errno = ENOMEM;
	return fails;
}

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t num, size_t size)
{
	return fails_now() ? NULL : __real_calloc(num, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails_now() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *s)
{
	return fails_now() ? NULL : __real_strdup(s);
}

void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	return fails_now() ? MAP_FAILED : __real_mmap(addr, length, prot, flags, fd, offset);
}

/* ---- the scenario --------------------------------------------------------------------- */

static struct ibmr_ctx *ctx;
static struct ibmr_mr *a, *lazy, *file, *col, *out, *tree;
static struct ibmr_klm klms[60], many[150];
static char path[] = "/tmp/test-lib-sweep.XXXXXX";
static int failures;

static int open_ctx(struct ibmr_err *err)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };

	return ibmr_ctx_open(&opts, &ctx, err);
}

static int query(struct ibmr_err *err)
{
	struct ibmr_caps caps;
	int ret = ibmr_ctx_query(ctx, &caps, err);

	assert_true(ret || caps.umr); /* a failure is not an answer */
	return ret;
}

static int reg_a(struct ibmr_err *err)
{
	struct ibmr_mr_spec spec = {
		.name = "a", .mem = IBMR_MEM_ANON, .length = 8192, .access = LW | RW | RR | RA
	};

	return ibmr_mr_reg(ctx, &spec, &a, err);
}

static int reg_lazy(struct ibmr_err *err)
{
	struct ibmr_mr_spec spec = { .mem = IBMR_MEM_ANON,
				     .length = 65536,
				     .access = LW | RW | RR | OD };

	return ibmr_mr_reg(ctx, &spec, &lazy, err);
}

static int reg_file(struct ibmr_err *err)
{
	struct ibmr_mr_spec spec = { .name = "f",
				     .mem = IBMR_MEM_FILE,
				     .path = path,
				     .length = 5000,
				     .file_offset = 100,
				     .file_flags = IBMR_FILE_SHARED | IBMR_FILE_CREATE,
				     .access = LW | RW | RR };

	return ibmr_mr_reg(ctx, &spec, &file, err);
}

static int create_col(struct ibmr_err *err)
{
	return ibmr_mr_create(ctx, "col", 60, &col, err);
}

static int create_out(struct ibmr_err *err)
{
	return ibmr_mr_create(ctx, NULL, 2, &out, err);
}

static int fill_inline(struct ibmr_err *err)
{
	struct ibmr_klm two[] = { { a, 0, 64 }, { lazy, 4096, 100 } };
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RW | RR, .num = 2, .klms = two
	};

	return ibmr_mr_fill(out, &l, err);
}

static int fill_list_memory(struct ibmr_err *err)
{
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RW | RR, .num = 60, .klms = klms
	};
	int i;

	for (i = 0; i < 60; i++)
		klms[i] = (struct ibmr_klm){ i % 2 ? a : out, 2 * (uint64_t)i + (i % 2 ? 4096 : 0),
					     1 + (uint64_t)i % 2 };
	return ibmr_mr_fill(col, &l, err);
}

static int create_tree(struct ibmr_err *err)
{
	return ibmr_mr_create_split(ctx, "tree", 200, &tree, err);
}

/* On a device whose keys hold 64 entries: three keys below the MR's own. */
static int fill_tree(struct ibmr_err *err)
{
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_LIST,
				 .access = LW | RW | RR,
				 .num = 150,
				 .split = true,
				 .klms = many };
	uint64_t i;

	for (i = 0; i < 150; i++)
		many[i] = (struct ibmr_klm){ a, 8 * (149 - i), 8 };
	return ibmr_mr_fill(tree, &l, err);
}

static int write_col(struct ibmr_err *err)
{
	return ibmr_mr_write(col, 3, "payload", 7, 0, err);
}

static int read_col(struct ibmr_err *err)
{
	char buf[8] = { 0 };
	int ret = ibmr_mr_read(col, 3, buf, 7, 0, err);

	if (!ret)
		assert_string_equal(buf, "payload");
	return ret;
}

/* Apart: from an indirect MR; then with bytes of both sides. */
static int copy_col(struct ibmr_err *err)
{
	int ret = ibmr_mr_copy(file, 0, col, 3, 7, 0, err);

	return ret ? ret : ibmr_mr_copy(a, 1, a, 0, 4, 0, err);
}

/* Larger than what came before: the staging memory grows. */
static int read_lazy(struct ibmr_err *err)
{
	char buf[65536];

	return ibmr_mr_read(lazy, 0, buf, sizeof(buf), 0, err);
}

static int add(struct ibmr_err *err)
{
	uint64_t old;

	return ibmr_mr_fetch_add(a, 8, 1, &old, 0, err);
}

static int refused(struct ibmr_err *err)
{
	int ret = ibmr_mr_write(a, 8192, "x", 1, IBMR_IO_UNCHECKED, err);

	/* the device's refusal is what this step is for; the queue pair may be lost in it, unsaid */
	return ret == -EIO && err->code == IBMR_E_COMPLETION && err->status >= 0 ? 0 : ret;
}

static int prefetch(struct ibmr_err *err)
{
	struct ibmr_range ranges[] = { { lazy, 0, 8192 }, { col, 0, IBMR_TO_END } };
	struct ibmr_prefetch_info info;

	return ibmr_mr_prefetch(ctx, ranges, 2, IBMR_ADVICE_WRITE, true, NULL, &info, err);
}

static int invalidate_col(struct ibmr_err *err)
{
	return ibmr_mr_invalidate(col, err);
}

static int dereg(struct ibmr_mr **mr, struct ibmr_err *err)
{
	int ret = ibmr_mr_dereg(*mr, err);

	if (!ret)
		*mr = NULL;
	return ret;
}

static int dereg_out(struct ibmr_err *err)
{
	return dereg(&out, err);
}

static int invalidate_tree(struct ibmr_err *err)
{
	return ibmr_mr_invalidate(tree, err);
}

static int dereg_tree(struct ibmr_err *err)
{
	return dereg(&tree, err);
}

static int dereg_col(struct ibmr_err *err)
{
	return dereg(&col, err);
}

static int dereg_file(struct ibmr_err *err)
{
	return dereg(&file, err);
}

static int dereg_lazy(struct ibmr_err *err)
{
	return dereg(&lazy, err);
}

static int dereg_a(struct ibmr_err *err)
{
	return dereg(&a, err);
}

static int close_ctx(struct ibmr_err *err)
{
	int ret = ibmr_ctx_close(ctx, err);

	if (!ret)
		ctx = NULL;
	return ret;
}

static const struct {
	const char *name;
	int (*run)(struct ibmr_err *err);
} steps[] = {
	{ "open", open_ctx },
	{ "query", query },
	{ "reg a", reg_a },
	{ "reg lazy", reg_lazy },
	{ "reg file", reg_file },
	{ "create col", create_col },
	{ "create out", create_out },
	{ "fill inline", fill_inline },
	{ "fill by list memory", fill_list_memory },
	{ "create tree", create_tree },
	{ "fill tree", fill_tree },
	{ "refill tree", fill_tree },
	{ "write", write_col },
	{ "read", read_col },
	{ "copy", copy_col },
	{ "read lazy", read_lazy },
	{ "fetch_add", add },
	{ "refused", refused },
	{ "write again", write_col },
	{ "prefetch", prefetch },
	{ "invalidate col", invalidate_col },
	{ "refill", fill_list_memory },
	{ "invalidate tree", invalidate_tree },
	{ "fill tree again", fill_tree },
	{ "dereg tree", dereg_tree },
	{ "dereg col", dereg_col },
	{ "dereg out", dereg_out },
	{ "dereg file", dereg_file },
	{ "dereg lazy", dereg_lazy },
	{ "dereg a", dereg_a },
	{ "close", close_ctx },
};

/* An error that says what happened. */
static void check_error(const char *what, uint64_t n, const char *step, int ret,
			const struct ibmr_err *err)
{
	if (ret >= 0 || err->code <= IBMR_OK || err->code >= IBMR_E_MAX || !err->text[0] ||
	    !err->origin || (err->sys_errno && err->sys_errno != -ret && ret != -ENOSYS))
		fail_msg("%s %llu: %s: %d, code %d, sys_errno %d, \"%s\"", what,
			 (unsigned long long)n, step, ret, err->code, err->sys_errno, err->text);
}

/* libmlx5 passes over some failures when a device is opened, and then knows of fewer abilities. */
static bool swallowed(const char *kind, uint64_t n)
{
	char counter[64];
	uint64_t count = 0;

	snprintf(counter, sizeof(counter), "cmd.%s", kind);
	return !soft0_counter(counter, &count) && count >= n;
}

static void scenario(const char *what, uint64_t n)
{
	struct ibmr_err err;
	size_t i;
	int ret;

	unlink(path);
	soft_word("max_klms", "64");
	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		memset(&err, 0, sizeof(err));
		ret = steps[i].run(&err);
		if (!ret && steps[i].run == open_ctx && n && swallowed(what, n)) {
			OK(close_ctx(&err));
			return;
		}
		if (!ret)
			continue;
		failures++;
		check_error(what, n, steps[i].name, ret, &err);
		if (steps[i].run == reg_file && access(path, F_OK) == 0)
			fail_msg("%s %llu: the file was left behind", what, (unsigned long long)n);
		ret = steps[i].run(&err);
		if (ret)
			fail_msg("%s %llu: %s does not work again: %d %s", what,
				 (unsigned long long)n, steps[i].name, ret, err.text);
	}
}

/* ---- the sweeps ---------------------------------------------------------------------------- */

static void each_command_fails_once(void **state)
{
	const char *const *kind;
	char counter[64], word[64];
	uint64_t total, n;

	close(mkstemp(path));
	failures = 0;
	for (kind = soft0_commands(); *kind; kind++) {
		/* libmlx5 44 asserts that a UAR page can be freed */
		if (!strcmp(*kind, "free_uar"))
			continue;
		snprintf(counter, sizeof(counter), "cmd.%s", *kind);
		soft_setup_bare(state);
		scenario("nothing", 0);
		if (soft0_counter(counter, &total))
			continue;
		for (n = 1; n <= total; n++) {
			soft_setup_bare(state);
			snprintf(word, sizeof(word), "%s:%llu:EIO", *kind, (unsigned long long)n);
			soft_word("fail", word);
			scenario(*kind, n);
			soft_teardown_bare(state);
		}
	}
	assert_true(failures > 20);
	unlink(path);
}

static void each_allocation_fails_once(void **state)
{
	uint64_t total, n;

	soft_setup_bare(state);
	allocations = failing = 0;
	scenario("nothing", 0);
	total = allocations;
	failures = 0;
	for (n = 1; n <= total; n++) {
		soft_setup_bare(state);
		allocations = 0;
		failing = n;
		scenario("allocation", n);
		failing = 0;
		soft_teardown_bare(state);
	}
	assert_true(total > 20);
	/* every one of ours is needed: none may be passed over in silence */
	assert_int_equal(failures, total);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_command_fails_once),
		cmocka_unit_test(each_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
