/* SPDX-License-Identifier: BSD-2-Clause */
/* From MR to MR: which rights it takes, by which way the bytes go, and what is there afterwards. */
#include "soft_test.h"

static void the_source_needs_no_right_and_no_memory_is_between(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 4096, 0), *b = soft_reg("b", 4096, LW | RW);
	struct ibmr_err err;

	ramp(a, 7);
	OK(ibmr_mr_copy(b, 100, a, 50, 3000, 0, &err));
	assert_memory_equal(bytes_of(b) + 100, bytes_of(a) + 50, 3000);
	assert_int_equal(bytes_of(b)[99], 0);
	assert_int_equal(bytes_of(b)[3100], 0);
	assert_int_equal(soft_counter("wqe.rdma_write"), 1);
	assert_int_equal(soft_counter("wqe.rdma_read"), 0);
	assert_int_equal(ibmr_ctx_locked_bytes(soft), 2 * PAGE);
}

static void layouts_on_both_sides(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 4096, LW | RW), *b = soft_reg("b", 4096, LW | RW);
	struct ibmr_mr *from = soft_create("from", 2), *to = soft_create("to", 1);
	struct ibmr_klm klms[] = { { a, 1000, 60 }, { a, 10, 100 } };
	struct ibmr_block block = { b, 3, 16, 40 };
	uint8_t want[4096] = { 0 };
	struct ibmr_err err;
	uint64_t i;

	ramp(a, 1);
	soft_fill_list(from, LW, klms, 2);
	soft_fill_repeat(to, LW | RW, &block, 1, 10);
	OK(ibmr_mr_copy(to, 5, from, 7, 153, 0, &err));
	for (i = 0; i < 153; i++) {
		uint64_t src = i + 7, dst = i + 5;

		want[3 + dst / 16 * 40 + dst % 16] =
			bytes_of(a)[src < 60 ? 1000 + src : 10 + src - 60];
	}
	assert_memory_equal(bytes_of(b), want, sizeof(want));
}

static void what_is_lacking_is_named(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 100, LW | RR), *b = soft_reg("b", 100, LW | RW);
	struct ibmr_mr *col = soft_create("col", 1);
	struct ibmr_err err;
	uint64_t before = soft_counter("cqe");

	REFUSED(ibmr_mr_copy(a, 0, b, 0, 1, 0, &err), EACCES, IBMR_E_ACCESS);
	SAYS("'a' lacks remote_write");
	assert_string_equal(err.origin, "ibmr_mr_copy");
	REFUSED(ibmr_mr_copy(b, 0, b, 0, 1, 0, &err), EACCES, IBMR_E_ACCESS);
	SAYS("'b' lacks remote_read");
	REFUSED(ibmr_mr_copy(b, 0, a, 99, 2, 0, &err), EFAULT, IBMR_E_RANGE);
	SAYS("past the end of 'a'");
	REFUSED(ibmr_mr_copy(b, 99, a, 0, 2, 0, &err), EFAULT, IBMR_E_RANGE);
	SAYS("past the end of 'b'");
	REFUSED(ibmr_mr_copy(b, UINT64_MAX, a, 0, 2, 0, &err), EFAULT, IBMR_E_RANGE);
	REFUSED(ibmr_mr_copy(b, 0, col, 0, 1, 0, &err), EINVAL, IBMR_E_STATE);
	REFUSED(ibmr_mr_copy(col, 0, b, 0, 1, 0, &err), EINVAL, IBMR_E_STATE);
	REFUSED(ibmr_mr_copy(b, 0, a, 0, 0, 0, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(ibmr_mr_copy(b, 0, a, 0, 1, 2, &err), EINVAL, IBMR_E_ARGUMENT);
	assert_int_equal(soft_counter("cqe"), before);
}

static void of_two_contexts_is_refused(void **state)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	struct ibmr_mr_spec spec = {
		.name = "far", .mem = IBMR_MEM_ANON, .length = 8, .access = LW | RW
	};
	struct ibmr_mr *a = soft_reg("a", 8, LW | RW), *far;
	struct ibmr_ctx *other;
	struct ibmr_err err;

	OK(ibmr_ctx_open(&opts, &other, &err));
	OK(ibmr_mr_reg(other, &spec, &far, &err));
	REFUSED(ibmr_mr_copy(a, 0, far, 0, 8, 0, &err), EINVAL, IBMR_E_ARGUMENT);
	assert_string_equal(err.cause, "other_context");
	OK(ibmr_mr_dereg(far, &err));
	OK(ibmr_ctx_close(other, &err));
}

static void the_device_refuses_what_is_not_checked(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 100, LW), *b = soft_reg("b", 100, LW | RW);
	struct ibmr_err err;

	REFUSED(ibmr_mr_copy(a, 0, b, 0, 1, IBMR_IO_UNCHECKED, &err), EIO, IBMR_E_COMPLETION);
	assert_int_equal(err.status, IBV_WC_REM_ACCESS_ERR);
	REFUSED(ibmr_mr_copy(b, 0, a, 99, 2, IBMR_IO_UNCHECKED, &err), EIO, IBMR_E_COMPLETION);
	assert_int_equal(err.status, IBV_WC_LOC_PROT_ERR);
	OK(ibmr_mr_copy(b, 0, a, 0, 100, 0, &err));
}

static void messages_are_split_at_the_devices_limit(void **state)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	struct ibmr_mr *a, *b;
	struct ibmr_err err;

	soft_word("max_msg_sz", "4096");
	OK(ibmr_ctx_open(&opts, &soft, &err));
	a = soft_reg("a", 100000, 0);
	b = soft_reg("b", 100000, LW | RW);
	ramp(a, 3);
	OK(ibmr_mr_copy(b, 0, a, 0, 100000, 0, &err));
	assert_int_equal(soft_counter("wqe.rdma_write"), 25);
	assert_memory_equal(bytes_of(a), bytes_of(b), 100000);
	soft_teardown(state);
	soft_setup(state);
}

/* More than the staging memory holds, in both directions, by offset and by address. */
static void ranges_that_share_bytes_arrive_as_they_were(void **state)
{
	uint64_t length = 3 * MIB + 77, i;
	struct ibmr_mr *a = soft_reg("a", length + 5000, LW | RW | RR), *b;
	struct ibmr_mr_spec spec = { .name = "b",
				     .mem = IBMR_MEM_CALLER,
				     .addr = bytes_of(a) + 1000,
				     .length = length,
				     .access = LW | RW };
	uint8_t *was = malloc(length + 5000);
	struct ibmr_err err;

	assert_non_null(was);
	for (i = 0; i < length + 5000; i++)
		bytes_of(a)[i] = (uint8_t)(i * 7 + (i >> 9));
	memcpy(was, bytes_of(a), length + 5000);
	OK(ibmr_mr_copy(a, 4000, a, 10, length, 0, &err));
	memmove(was + 4000, was + 10, length);
	assert_memory_equal(bytes_of(a), was, length + 5000);
	OK(ibmr_mr_copy(a, 0, a, 1, length, 0, &err));
	memmove(was, was + 1, length);
	assert_memory_equal(bytes_of(a), was, length + 5000);
	OK(ibmr_mr_reg(soft, &spec, &b, &err));
	OK(ibmr_mr_copy(b, 0, a, 999, length, 0, &err));
	memmove(was + 1000, was + 999, length);
	assert_memory_equal(bytes_of(a), was, length + 5000);
	OK(ibmr_mr_copy(a, 5, a, 5, 100, 0, &err));
	assert_memory_equal(bytes_of(a), was, length + 5000);
	free(was);
}

static void ranges_side_by_side_share_none(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW); /* no remote_read: it would be missed */
	struct ibmr_err err;

	ramp(a, 0);
	OK(ibmr_mr_copy(a, 32, a, 0, 32, 0, &err));
	assert_memory_equal(bytes_of(a) + 32, bytes_of(a), 32);
	REFUSED(ibmr_mr_copy(a, 31, a, 0, 32, 0, &err), EACCES, IBMR_E_ACCESS);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, soft_setup, soft_teardown)
	const struct CMUnitTest tests[] = {
		T(the_source_needs_no_right_and_no_memory_is_between),
		T(layouts_on_both_sides),
		T(what_is_lacking_is_named),
		T(of_two_contexts_is_refused),
		T(the_device_refuses_what_is_not_checked),
		cmocka_unit_test_setup_teardown(messages_are_split_at_the_devices_limit,
						soft_setup_bare, soft_teardown),
		T(ranges_that_share_bytes_arrive_as_they_were),
		T(ranges_side_by_side_share_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
