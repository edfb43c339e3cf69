/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes and atomics through rkeys; what is refused before, and by, the device; what follows. */
#include "soft_test.h"

static void fetch_adds(struct ibmr_mr *mr, uint64_t offset, uint64_t add, uint64_t old)
{
	struct ibmr_err err;
	uint64_t got = ~old;

	OK(ibmr_mr_fetch_add(mr, offset, add, &got, 0, &err));
	assert_true(got == old);
}

static void what_the_records_refuse_is_not_posted(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 100, LW | RW), *r = soft_reg("r", 100, RR);
	uint8_t buf[200] = { 0 };
	struct ibmr_err err;
	uint64_t old, before;

	OK(ibmr_mr_write(a, 0, buf, 100, 0, &err));
	before = soft_counter("wqe.rdma_write") + soft_counter("cqe");
	REFUSED(ibmr_mr_write(a, 50, buf, 51, 0, &err), EFAULT, IBMR_E_RANGE);
	assert_string_equal(err.text, "bytes [50, 101) are past the end of 'a' (100 bytes)");
	REFUSED(ibmr_mr_write(a, UINT64_MAX, buf, 2, 0, &err), EFAULT, IBMR_E_RANGE);
	REFUSED(ibmr_mr_write(a, 101, buf, 1, 0, &err), EFAULT, IBMR_E_RANGE);
	REFUSED(ibmr_mr_read(a, 0, buf, 1, 0, &err), EACCES, IBMR_E_ACCESS);
	SAYS("'a' lacks remote_read");
	assert_non_null(strstr(err.hint, "register 'a' with remote_read"));
	REFUSED(ibmr_mr_write(r, 0, buf, 1, 0, &err), EACCES, IBMR_E_ACCESS);
	REFUSED(ibmr_mr_fetch_add(a, 0, 1, &old, 0, &err), EACCES, IBMR_E_ACCESS);
	REFUSED(ibmr_mr_write(a, 0, buf, 0, 0, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(ibmr_mr_read(r, 0, NULL, 1, 0, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(ibmr_mr_write(a, 0, NULL, 1, 0, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(ibmr_mr_write(a, 0, buf, 1, 2, &err), EINVAL, IBMR_E_ARGUMENT);
	assert_int_equal(soft_counter("wqe.rdma_write") + soft_counter("cqe"), before);
	assert_int_equal(ibmr_ctx_reconnects(soft), 0);
}

static void what_the_device_refuses_is_completion_and_work_goes_on(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 100, LW | RW | RR), *r = soft_reg("r", 100, RR);
	uint8_t buf[200] = { 0 };
	struct ibmr_err err;
	int i;

	for (i = 0; i < 20; i++) {
		REFUSED(ibmr_mr_write(a, 99, buf, 2, IBMR_IO_UNCHECKED, &err), EIO,
			IBMR_E_COMPLETION);
		assert_int_equal(err.status, IBV_WC_REM_ACCESS_ERR);
		assert_string_equal(err.origin, "ibmr_mr_write");
		assert_int_equal(err.sys_errno, 0);
		SAYS("writing 'a': the device answered with remote access error");
		REFUSED(ibmr_mr_write(r, 0, buf, 1, IBMR_IO_UNCHECKED, &err), EIO,
			IBMR_E_COMPLETION);
		assert_int_equal(err.status, IBV_WC_REM_ACCESS_ERR);
		OK(ibmr_mr_write(a, 0, "fine", 4, 0, &err));
		reads_as(a, 0, "fine", 4);
	}
	assert_int_equal(ibmr_ctx_reconnects(soft), 40);
	assert_int_equal(info_of(a).state, IBMR_STATE_REGISTERED);
}

static void a_dead_members_bytes_are_refused_by_the_device(void **state)
{
	static uint64_t mine[8];
	struct ibv_mr *ibv = ibv_reg_mr(soft->pd, mine, sizeof(mine),
					IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	struct ibmr_mr *col = soft_create("col", 1), *m;
	struct ibmr_err err;
	uint8_t byte;

	OK(ibmr_mr_from_ibv(soft, ibv, LW | RR, "mine", &m, &err));
	soft_fill_list(col, LW | RR, &(struct ibmr_klm){ m, 0, 8 }, 1);
	assert_int_equal(ibv_dereg_mr(ibv), 0); /* against the rules, behind our back */
	REFUSED(ibmr_mr_read(col, 0, &byte, 1, 0, &err), EIO, IBMR_E_COMPLETION);
	soft_dereg(col);
	soft_dereg(m);
}

static void small_sizes_through_an_indirect_key_are_exact(void **state)
{
	static const uint64_t sizes[] = { 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129 };
	struct ibmr_mr *a = soft_reg("a", 512, LW | RW | RR), *col = soft_create("col", 1);
	uint8_t buf[512];
	struct ibmr_err err;
	size_t i, k;

	soft_fill_list(col, LW | RW | RR, &(struct ibmr_klm){ a, 100, 300 }, 1);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		ramp(a, (uint8_t)i);
		reads_as(col, 3, bytes_of(a) + 103, sizes[i]);
		memset(buf, 0x5a, sizes[i]);
		OK(ibmr_mr_write(col, 3, buf, sizes[i], 0, &err));
		for (k = 0; k < 512; k++)
			assert_int_equal(bytes_of(a)[k],
					 k >= 103 && k < 103 + sizes[i] ? 0x5a : (uint8_t)(i + k));
	}
}

static void long_transfers_are_split_at_staging_and_message_size(void **state)
{
	uint64_t length = 3 * MIB + 12345, i;
	struct ibmr_mr *a = soft_reg("a", length + 2, LW | RW | RR);
	uint8_t *buf = malloc(length);
	struct ibmr_err err;

	assert_non_null(buf);
	for (i = 0; i < length; i++)
		buf[i] = (uint8_t)(i * 31 + (i >> 12));
	OK(ibmr_mr_write(a, 1, buf, length, 0, &err));
	assert_memory_equal(bytes_of(a) + 1, buf, length);
	assert_int_equal(bytes_of(a)[0], 0);
	assert_int_equal(bytes_of(a)[length + 1], 0);
	assert_int_equal(soft_counter("wqe.rdma_write"), 4);
	reads_as(a, 1, buf, length);
	assert_int_equal(soft_counter("wqe.rdma_read"), 4);
	assert_int_equal(ibmr_ctx_locked_bytes(soft), info_of(a).locked_bytes + MIB);
	free(buf);
}

static void a_small_max_msg_sz_is_obeyed(void **state)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	uint8_t buf[100000];
	struct ibmr_err err;
	struct ibmr_mr *a;
	size_t i;

	soft_word("max_msg_sz", "4096");
	OK(ibmr_ctx_open(&opts, &soft, &err));
	a = soft_reg("a", sizeof(buf), LW | RW | RR);
	for (i = 0; i < sizeof(buf); i++)
		buf[i] = (uint8_t)(i * 7 + (i >> 8));
	OK(ibmr_mr_write(a, 0, buf, sizeof(buf), 0, &err));
	assert_int_equal(soft_counter("wqe.rdma_write"), 25);
	reads_as(a, 0, buf, sizeof(buf));
	soft_teardown(state);
	soft_setup(state);
}

static void atomics_answer_with_what_was_there(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RA), *col = soft_create("col", 2);
	uint64_t *at = (uint64_t *)bytes_of(a), old = 0;
	struct ibmr_klm klms[] = { { a, 8, 8 }, { a, 40, 16 } };
	struct ibmr_err err;

	at[1] = 0x1122334455667788;
	fetch_adds(a, 8, 5, 0x1122334455667788);
	assert_true(at[1] == 0x112233445566778d);
	at[1] = UINT64_MAX;
	fetch_adds(a, 8, 2, UINT64_MAX);
	assert_int_equal(at[1], 1);
	OK(ibmr_mr_compare_swap(a, 8, 7, 9, &old, 0, &err));
	assert_int_equal(old, 1);
	assert_int_equal(at[1], 1); /* not equal: unchanged */
	OK(ibmr_mr_compare_swap(a, 8, 1, 0xffeeddccbbaa9988, &old, 0, &err));
	assert_int_equal(old, 1);
	assert_true(at[1] == 0xffeeddccbbaa9988);
	soft_fill_list(col, LW | RA, klms, 2);
	fetch_adds(col, 0, 0x78, 0xffeeddccbbaa9988);
	at[6] = 77;
	fetch_adds(col, 16, 1, 77);
	assert_int_equal(at[6], 78);
	assert_int_equal(at[5], 0);
	assert_int_equal(at[7], 0);
}

static void an_atomic_must_land_aligned_and_in_one_entry(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 128, LW | RA), *col = soft_create("col", 2);
	struct ibmr_mr *outer = soft_create("outer", 2);
	struct ibmr_klm klms[] = { { a, 4, 64 }, { a, 72, 8 } };
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RA, .num = 2, .klms = klms
	};
	struct ibmr_err err;
	uint64_t old;

	/* the address is aligned where the landing is not, and the other way round */
	soft_fill_list(col, LW | RA, klms, 2);
	REFUSED(ibmr_mr_fetch_add(col, 0, 1, &old, 0, &err), EFAULT, IBMR_E_RANGE);
	SAYS("the 8 bytes at offset 0 of 'col' land at offset 4 of 'a'");
	assert_string_equal(err.cause, "atomic_alignment");
	REFUSED(ibmr_mr_fetch_add(col, 4, 1, &old, 0, &err), EFAULT, IBMR_E_RANGE);
	SAYS("offset 4 of 'col' has the address 0x4");
	REFUSED(ibmr_mr_fetch_add(col, 4, 1, &old, IBMR_IO_UNCHECKED, &err), EIO,
		IBMR_E_COMPLETION);
	assert_int_equal(err.status, IBV_WC_REM_INV_REQ_ERR);
	fetch_adds(col, 64, 1, 0);
	assert_int_equal(bytes_of(a)[72], 1);
	/* a base that undoes the shift */
	l.base = 4;
	OK(ibmr_mr_fill(col, &l, &err));
	fetch_adds(col, 4, 3, 0);
	assert_int_equal(bytes_of(a)[8], 3);
	REFUSED(ibmr_mr_fetch_add(col, 60, 1, &old, 0, &err), EFAULT, IBMR_E_RANGE);
	assert_string_equal(err.cause, "atomic_split");
	REFUSED(ibmr_mr_fetch_add(a, 4, 1, &old, 0, &err), EFAULT, IBMR_E_RANGE);
	REFUSED(ibmr_mr_fetch_add(a, 121, 1, &old, 0, &err), EFAULT, IBMR_E_RANGE);
	soft_fill_list(outer, LW | RA, &(struct ibmr_klm){ col, 4, 68 }, 1);
	fetch_adds(outer, 0, 1, 3);
	REFUSED(ibmr_mr_fetch_add(outer, 56, 1, &old, 0, &err), EFAULT, IBMR_E_RANGE);
	assert_string_equal(err.cause, "atomic_split");
}

static void a_device_without_atomics_has_none(void **state)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	struct ibmr_err err;
	struct ibmr_mr *a;
	uint64_t old;

	soft_teardown(state);
	soft_setup_bare(state);
	soft_word("atomics", "0");
	OK(ibmr_ctx_open(&opts, &soft, &err));
	a = soft_reg("a", 64, LW | RW);
	REFUSED(ibmr_mr_fetch_add(a, 0, 1, &old, 0, &err), EOPNOTSUPP, IBMR_E_UNSUPPORTED);
	REFUSED(ibmr_mr_compare_swap(a, 0, 1, 1, &old, IBMR_IO_UNCHECKED, &err), EOPNOTSUPP,
		IBMR_E_UNSUPPORTED);
	assert_string_equal(err.cause, "atomics");
	/* the rest of the data path is there */
	OK(ibmr_mr_write(a, 0, "x", 1, 0, &err));
}

static void on_demand_memory_is_read_and_written_where_no_page_was(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", MIB, LW | RW | RR | OD);
	uint8_t zeros[100] = { 0 };
	struct ibmr_err err;

	reads_as(lazy, 4000, zeros, 100);
	OK(ibmr_mr_write(lazy, 8190, "abcd", 4, 0, &err));
	assert_memory_equal(bytes_of(lazy) + 8189, "\0abcd\0", 6);
}

static void a_full_table_of_refusals_does_not_fill_the_event_queue(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 8, LW | RW);
	struct ibv_async_event event;
	struct ibmr_err err;
	int i;

	for (i = 0; i < 5000; i++)
		REFUSED(ibmr_mr_write(a, 8, "x", 1, IBMR_IO_UNCHECKED, &err), EIO,
			IBMR_E_COMPLETION);
	OK(ibmr_mr_write(a, 0, "x", 1, 0, &err));
	assert_int_not_equal(ibv_get_async_event(soft->verbs, &event), 0);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, soft_setup, soft_teardown)
	const struct CMUnitTest tests[] = {
		T(what_the_records_refuse_is_not_posted),
		T(what_the_device_refuses_is_completion_and_work_goes_on),
		T(a_dead_members_bytes_are_refused_by_the_device),
		T(small_sizes_through_an_indirect_key_are_exact),
		T(long_transfers_are_split_at_staging_and_message_size),
		cmocka_unit_test_setup_teardown(a_small_max_msg_sz_is_obeyed, soft_setup_bare,
						soft_teardown),
		T(atomics_answer_with_what_was_there),
		T(an_atomic_must_land_aligned_and_in_one_entry),
		T(a_device_without_atomics_has_none),
		T(on_demand_memory_is_read_and_written_where_no_page_was),
		T(a_full_table_of_refusals_does_not_fill_the_event_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
