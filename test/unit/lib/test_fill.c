/* SPDX-License-Identifier: BSD-2-Clause */
/* Indirect MRs on soft0: each rule of the design a test. */
#include "soft_test.h"

static void a_created_mr_has_keys_and_cannot_be_used(void **state)
{
	struct ibmr_mr *col = soft_create("col", 4);
	struct ibmr_mr_info i = info_of(col);
	struct ibmr_err err;
	uint8_t byte = 0;

	assert_true(i.indirect);
	assert_int_equal(i.state, IBMR_STATE_EMPTY);
	assert_int_equal(i.max_klms, 4);
	assert_int_equal(i.length, 0);
	assert_int_equal(i.entries, 0);
	assert_int_equal(i.form, IBMR_FORM_NONE);
	assert_null(i.addr);
	assert_int_equal(i.lkey, i.rkey);
	REFUSED(ibmr_mr_read(col, 0, &byte, 1, 0, &err), EINVAL, IBMR_E_STATE);
	SAYS("'col' is empty, not filled");
	/* and the device says so too */
	REFUSED(ibmr_mr_read(col, 0, &byte, 1, IBMR_IO_UNCHECKED, &err), EIO, IBMR_E_COMPLETION);
	assert_int_equal(err.status, IBV_WC_REM_ACCESS_ERR);
}

static void a_filled_list_reads_and_writes_through_its_key(void **state)
{
	static const uint8_t want[] = { 10, 11, 12, 0x85, 0x86, 0, 1 };
	struct ibmr_mr *a = soft_reg("a", 100, LW | RW | RR), *b = soft_reg("b", 100, LW | RW | RR);
	struct ibmr_klm klms[] = { { a, 10, 3 }, { b, 5, 2 }, { a, 0, 2 } };
	struct ibmr_mr *col = soft_create("col", 4);
	struct ibmr_mr_info i;
	struct ibmr_err err;

	ramp(a, 0);
	ramp(b, 0x80);
	soft_fill_list(col, LW | RW | RR, klms, 3);
	i = info_of(col);
	assert_int_equal(i.state, IBMR_STATE_FILLED);
	assert_int_equal(i.length, 7);
	assert_int_equal(i.entries, 3);
	assert_int_equal(i.form, IBMR_FORM_INLINE);
	assert_int_equal(i.base, 0);
	assert_int_equal(i.access, LW | RW | RR);
	reads_as(col, 0, want, 7);
	reads_as(col, 2, want + 2, 3);
	OK(ibmr_mr_write(col, 2, "\xaa\xbb\xcc\xdd", 4, 0, &err));
	assert_int_equal(bytes_of(a)[11], 11);
	assert_int_equal(bytes_of(a)[12], 0xaa);
	assert_int_equal(bytes_of(a)[13], 13);
	assert_int_equal(bytes_of(b)[4], 0x84);
	assert_int_equal(bytes_of(b)[5], 0xbb);
	assert_int_equal(bytes_of(b)[6], 0xcc);
	assert_int_equal(bytes_of(b)[7], 0x87);
	assert_int_equal(bytes_of(a)[0], 0xdd);
	assert_int_equal(bytes_of(a)[1], 1);
}

static void a_filled_repeat_reads_and_writes_through_its_key(void **state)
{
	static const uint8_t want[] = { 0x00, 0x01, 0x80, 0x81, 0x82, 0x03, 0x04, 0x85,
					0x86, 0x87, 0x06, 0x07, 0x8a, 0x8b, 0x8c };
	struct ibmr_mr *a = soft_reg("a", 100, LW | RW | RR), *b = soft_reg("b", 100, LW | RW | RR);
	struct ibmr_block blocks[] = { { a, 0, 2, 3 }, { b, 0, 3, 5 } };
	struct ibmr_mr *col = soft_create("col", 2);
	struct ibmr_err err;

	ramp(a, 0);
	ramp(b, 0x80);
	soft_fill_repeat(col, LW | RW | RR, blocks, 2, 3);
	assert_int_equal(info_of(col).length, 15);
	assert_int_equal(info_of(col).entries, 3);
	reads_as(col, 0, want, 15);
	OK(ibmr_mr_write(col, 14, "\x11", 1, 0, &err));
	assert_int_equal(bytes_of(b)[12], 0x11);
	assert_int_equal(bytes_of(b)[11], 0x8b);
	assert_int_equal(bytes_of(b)[13], 0x8d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_created_mr_has_keys_and_cannot_be_used,
						soft_setup, soft_teardown),
		cmocka_unit_test_setup_teardown(a_filled_list_reads_and_writes_through_its_key,
						soft_setup, soft_teardown),
		cmocka_unit_test_setup_teardown(a_filled_repeat_reads_and_writes_through_its_key,
						soft_setup, soft_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
