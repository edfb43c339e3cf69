/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts without a device: all the checks, none of the effects. test_random.c holds them against one. */
#include "lib_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct ibmr_caps limits = {
	.name = "mlx5",
	.odp = true,
	.umr = true,
	.max_klms = 65532,
	.inline_klms = 52,
	.max_depth = 4,
	.max_stride = 65535,
	.max_entry = 0x7fffffff,
	.max_mr_size = UINT64_MAX,
	.prefetch = 1,
	.atomics = true,
};
static struct ibmr_ctx *ctx;
static char dir[64], path[96];

static int setup(void **state)
{
	struct ibmr_err err;

	snprintf(dir, sizeof(dir), "/tmp/test-lib-dry.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	OK(ibmr_ctx_open_dry(&limits, &ctx, &err));
	return 0;
}

static int teardown(void **state)
{
	struct ibmr_err err;
	struct ibmr_mr *mr;

	while (ctx->mrs) {
		for (mr = ctx->mrs; mr->users; mr = mr->next)
			;
		OK(ibmr_mr_dereg(mr, &err));
	}
	OK(ibmr_ctx_close(ctx, &err));
	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static struct ibmr_mr *reg(const char *name, uint64_t length, uint64_t access)
{
	struct ibmr_mr_spec spec = {
		.name = name, .mem = IBMR_MEM_ANON, .length = length, .access = access
	};
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;

	OK(ibmr_mr_reg(ctx, &spec, &mr, &err));
	return mr;
}

static struct ibmr_mr_spec file(uint64_t offset, uint64_t length, unsigned flags)
{
	return (struct ibmr_mr_spec){ .name = "f",
				      .mem = IBMR_MEM_FILE,
				      .length = length,
				      .access = LW | RW,
				      .path = path,
				      .file_offset = offset,
				      .file_flags = flags };
}

static void records_are_made_and_no_memory(void **state)
{
	/* more than any machine has */
	struct ibmr_mr *a = reg("a", 1ull << 60, LW | RW | RR), *none = reg(NULL, 10, 0);
	struct ibmr_mr_info i = info_of(a);
	struct ibmr_err err;
	uint8_t byte = 7;

	assert_true(ibmr_ctx_is_dry(ctx));
	assert_int_equal(i.state, IBMR_STATE_REGISTERED);
	assert_null(i.addr);
	assert_int_equal(i.lkey, 0);
	assert_true(i.locked_bytes == 1ull << 60);
	assert_string_equal(info_of(none).name, "MR 1");
	OK(ibmr_mr_write(a, (1ull << 60) - 1, &byte, 1, 0, &err));
	OK(ibmr_mr_read(a, 0, &byte, 1ull << 40, 0, &err)); /* and byte is not touched */
	assert_int_equal(byte, 7);
	REFUSED(ibmr_mr_write(a, 1ull << 60, &byte, 1, 0, &err), EFAULT, IBMR_E_RANGE);
	REFUSED(ibmr_mr_write(a, 1ull << 60, &byte, 1, IBMR_IO_UNCHECKED, &err), EIO,
		IBMR_E_COMPLETION);
	assert_int_equal(err.status, IBV_WC_REM_ACCESS_ERR);
}

static void a_file_is_looked_at_and_never_made(void **state)
{
	struct ibmr_mr_spec spec = file(10, 100, 0);
	struct ibmr_mr *mr;
	struct ibmr_err err;

	REFUSED(ibmr_mr_reg(ctx, &spec, &mr, &err), ENOENT, IBMR_E_IO);
	spec = file(10, 100, IBMR_FILE_SHARED | IBMR_FILE_CREATE);
	OK(ibmr_mr_reg(ctx, &spec, &mr, &err));
	assert_int_equal(access(path, F_OK), -1);
	/* what a real run would have made by now is there for the next */
	spec = file(60, IBMR_TO_END, 0);
	OK(ibmr_mr_reg(ctx, &spec, &mr, &err));
	assert_int_equal(info_of(mr).length, 50);
	spec = file(60, 51, IBMR_FILE_SHARED);
	REFUSED(ibmr_mr_reg(ctx, &spec, &mr, &err), EFAULT, IBMR_E_RANGE);
	SAYS("(110 bytes)");
	spec = file(60, 51, IBMR_FILE_SHARED | IBMR_FILE_CREATE);
	OK(ibmr_mr_reg(ctx, &spec, &mr, &err));
	spec = file(0, IBMR_TO_END, 0);
	OK(ibmr_mr_reg(ctx, &spec, &mr, &err));
	assert_int_equal(info_of(mr).length, 111);
	spec.path = dir;
	REFUSED(ibmr_mr_reg(ctx, &spec, &mr, &err), EIO, IBMR_E_IO);
}

static void the_limits_are_those_given(void **state)
{
	struct ibmr_caps less = { .name = "rxe" };
	struct ibmr_mr_spec spec = { .mem = IBMR_MEM_ANON, .length = 8, .access = LW | OD };
	struct ibmr_range range = { reg("lazy", 4096, LW | OD), 0, 8 };
	struct ibmr_ctx *other;
	struct ibmr_mr *mr;
	struct ibmr_err err;
	uint64_t old;

	REFUSED(ibmr_ctx_open_dry(NULL, &other, &err), EINVAL, IBMR_E_ARGUMENT);
	OK(ibmr_ctx_open_dry(&less, &other, &err));
	REFUSED(ibmr_mr_reg(other, &spec, &mr, &err), EOPNOTSUPP, IBMR_E_UNSUPPORTED);
	REFUSED(ibmr_mr_create(other, "x", 4, &mr, &err), EOPNOTSUPP, IBMR_E_UNSUPPORTED);
	SAYS("device rxe has no indirect memory regions");
	spec.access = LW | RA;
	OK(ibmr_mr_reg(other, &spec, &mr, &err));
	REFUSED(ibmr_mr_fetch_add(mr, 0, 1, &old, 0, &err), EOPNOTSUPP, IBMR_E_UNSUPPORTED);
	OK(ibmr_mr_dereg(mr, &err));
	OK(ibmr_ctx_close(other, &err));
	ctx->caps.prefetch = 0;
	REFUSED(ibmr_mr_prefetch(ctx, &range, 1, IBMR_ADVICE_READ, true, NULL, NULL, &err), ENOSYS,
		IBMR_E_UNSUPPORTED);
	ctx->caps.prefetch = -1; /* not known: not refused */
	OK(ibmr_mr_prefetch(ctx, &range, 1, IBMR_ADVICE_READ, true, NULL, NULL, &err));
	REFUSED(ibmr_mr_from_ibv(ctx, (struct ibv_mr *)&old, LW, "x", &mr, &err), EINVAL,
		IBMR_E_ARGUMENT);
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Ten times the entries over ten times the members take ten times as long, not a hundred. */
static double fill_time(uint64_t num)
{
	struct ibmr_mr **members = calloc(num, sizeof(*members)), *col = NULL;
	struct ibmr_klm *klms = calloc(num, sizeof(*klms));
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_LIST, .access = LW, .num = num, .klms = klms };
	struct ibmr_err err;
	double start;
	uint64_t i;

	assert_true(members && klms);
	OK(ibmr_mr_create(ctx, "col", num, &col, &err));
	for (i = 0; i < num; i++) {
		members[i] = reg("m", 16, LW);
		klms[i] = (struct ibmr_klm){ members[i], 0, 16 };
	}
	start = seconds();
	for (i = 0; i < 3; i++)
		OK(ibmr_mr_fill(col, &l, &err));
	start = seconds() - start;
	OK(ibmr_mr_dereg(col, &err));
	for (i = 0; i < num; i++)
		OK(ibmr_mr_dereg(members[i], &err));
	free(members);
	free(klms);
	return start;
}

static void a_fill_is_linear(void **state)
{
	double small = fill_time(6000), large = fill_time(60000);

	if (large > 0.05 && large > 40 * small)
		fail_msg("6000 entries: %g s, 60000: %g s", small, large);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(records_are_made_and_no_memory),
		T(a_file_is_looked_at_and_never_made),
		T(the_limits_are_those_given),
		T(a_fill_is_linear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
