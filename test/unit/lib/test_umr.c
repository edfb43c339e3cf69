/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of UMR work requests, by the offsets of the wire, not by the structures that umr.c uses.
 */
#include "lib_test.h"

static struct ibmr_mr a = { .lkey = 0x11223300, .base = 0x7f0000001000, .length = 1 << 20 };
static struct ibmr_mr b = { .lkey = 0x00045600, .base = 0, .length = 1 << 20, .indirect = true };
static uint64_t wqe_words[IBMRI_MAX_WQE / 8];
static uint8_t *const wqe = (uint8_t *)wqe_words;

static uint64_t be(const uint8_t *at, unsigned bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *at++;
	return v;
}

static void is_zero(unsigned from, unsigned to)
{
	for (; from < to; from++)
		assert_int_equal(wqe[from], 0);
}

/* What every request has, and nothing in the reserved places. */
static void check_head(uint32_t ds, uint64_t mask, uint8_t flags, uint16_t octowords)
{
	assert_int_equal(be(wqe, 4), 0x25);		 /* index is libmlx5's; opcode */
	assert_int_equal(be(wqe + 4, 4), 0xabcd00 | ds); /* qpn 0xabcd */
	is_zero(8, 11);
	assert_int_equal(wqe[11], 0x08); /* completion wanted, no fence */
	assert_int_equal(be(wqe + 12, 4), 0x00776600);
	assert_int_equal(wqe[16], flags);
	is_zero(17, 20);
	assert_int_equal(be(wqe + 20, 2), octowords);
	is_zero(22, 24);
	assert_int_equal(be(wqe + 24, 8), mask);
	is_zero(32, 64);
	assert_int_equal(be(wqe + 68, 4), 0xffffff00); /* no QP; the tag, here 0 */
}

static struct ibmri_layout list(struct ibmri_entry *e, uint64_t num, uint64_t total)
{
	return (struct ibmri_layout){ .kind = IBMR_LAYOUT_LIST,
				      .access = LW | RR,
				      .base = 0x123456789abcdef0,
				      .total = total,
				      .count = 1,
				      .num = num,
				      .entries = e };
}

static void an_inline_list_is_what_the_wire_says(void **state)
{
	struct ibmri_entry e[] = { { &a, 0x10, 0x7fffffff, 0, 0 }, { &b, 0x20, 5, 0, 0 } };
	struct ibmri_layout l = list(e, 2, 0x80000004);

	memset(wqe, 0xee, IBMRI_MAX_WQE);
	assert_int_equal(ibmri_umr_fill(wqe, &l, 0x00776600, 0xabcd, NULL), 128 + 64);
	/* LEN, START_ADDR, MKEY, four rights, FREE */
	check_head((128 + 64) / 16, 0x203c2041, 0x80, 4);
	assert_int_equal(wqe[64], 0); /* not free */
	assert_int_equal(wqe[66], 0x08 | 0x10);
	is_zero(72, 80);
	assert_true(be(wqe + 80, 8) == 0x123456789abcdef0);
	assert_true(be(wqe + 88, 8) == 0x80000004); /* 64 bits, no sign carried up */
	is_zero(96, 128);
	assert_int_equal(be(wqe + 128, 4), 0x7fffffff);
	assert_int_equal(be(wqe + 132, 4), 0x11223300);
	assert_true(be(wqe + 136, 8) == 0x7f0000001010);
	assert_int_equal(be(wqe + 144, 4), 5);
	assert_int_equal(be(wqe + 148, 4), 0x00045600);
	assert_true(be(wqe + 152, 8) == 0x20); /* zero-based member: its offset */
	is_zero(160, 192);
}

static void a_repeat_has_a_header_and_16_bit_entries(void **state)
{
	struct ibmri_entry e[] = { { &a, 8, 65535, 65535, 0 }, { &b, 0, 2, 0, 0 } };
	struct ibmri_layout l = { .kind = IBMR_LAYOUT_REPEAT,
				  .access = LW | RW | RR | RA,
				  .cycle = 65537,
				  .count = UINT32_MAX,
				  .total = 65537ull * UINT32_MAX,
				  .num = 2,
				  .entries = e };

	memset(wqe, 0xee, IBMRI_MAX_WQE);
	assert_int_equal(ibmri_umr_fill(wqe, &l, 0x00776600, 0xabcd, NULL), 128 + 64);
	check_head(12, 0x203c2041, 0x80, 4);
	assert_int_equal(wqe[66], 0x78);
	assert_true(be(wqe + 88, 8) == 65537ull * UINT32_MAX);
	assert_int_equal(be(wqe + 128, 4), 65537);
	assert_int_equal(be(wqe + 132, 4), 0x400);
	assert_true(be(wqe + 136, 4) == UINT32_MAX);
	assert_int_equal(be(wqe + 140, 2), 0);
	assert_int_equal(be(wqe + 142, 2), 2);
	assert_int_equal(be(wqe + 144, 2), 65535); /* stride */
	assert_int_equal(be(wqe + 146, 2), 65535); /* bytes */
	assert_int_equal(be(wqe + 148, 4), 0x11223300);
	assert_true(be(wqe + 152, 8) == 0x7f0000001008);
	assert_int_equal(be(wqe + 160, 2), 0);
	assert_int_equal(be(wqe + 162, 2), 2);
	is_zero(176, 192);
}

static void the_pointer_form_has_one_data_segment(void **state)
{
	static struct ibmri_entry e[65532];
	struct ibmri_umr_list at = { .lkey = 0x99887700, .addr = 0x7fff00000800 };
	struct ibmri_layout l = list(e, 65532, 65532);
	unsigned i;

	for (i = 0; i < 65532; i++)
		e[i] = (struct ibmri_entry){ &a, i, 1, 0, i + 1 };
	memset(wqe, 0xee, IBMRI_MAX_WQE);
	assert_int_equal(ibmri_umr_fill(wqe, &l, 0x00776600, 0xabcd, &at), 144);
	check_head(9, 0x203c2041, 0, 65532);
	assert_int_equal(be(wqe + 128, 4), 65532 * 16);
	assert_int_equal(be(wqe + 132, 4), 0x99887700);
	assert_true(be(wqe + 136, 8) == 0x7fff00000800);
}

static void the_inline_form_ends_where_the_control_segment_can_count(void **state)
{
	struct ibmri_entry e[53];
	struct ibmri_layout l = list(e, 52, 52);
	unsigned i;

	for (i = 0; i < 53; i++)
		e[i] = (struct ibmri_entry){ &a, i, 1, 0, i + 1 };
	assert_int_equal(ibmri_umr_fill(wqe, &l, 0x00776600, 0xabcd, NULL), 128 + 52 * 16);
	l = list(e, 53, 53);
	assert_int_equal(ibmri_umr_fill(wqe, &l, 0x00776600, 0xabcd, NULL), 0);
	assert_int_equal(ibmri_umr_inline_klms(IBMRI_MAX_WQE), 52);
	assert_int_equal(ibmri_umr_inline_klms(4096), 52);
	assert_int_equal(ibmri_umr_inline_klms(ibmri_umr_inline_bytes(20)), 20);
	assert_int_equal(ibmri_umr_inline_klms(ibmri_umr_inline_bytes(20) - 1), 16);
	assert_int_equal(ibmri_umr_inline_klms(0), 0);
}

static void tables_are_padded_to_four_with_zeros(void **state)
{
	struct ibmri_entry e[5];
	struct ibmri_layout l = list(e, 5, 5);
	uint64_t words[16];
	uint8_t *table = (uint8_t *)words;
	unsigned i;

	for (i = 0; i < 5; i++)
		e[i] = (struct ibmri_entry){ &a, i, 1, 0, i + 1 };
	memset(words, 0xee, sizeof(words));
	assert_int_equal(ibmri_umr_table_bytes(&l), 128);
	ibmri_umr_table(&l, words);
	assert_int_equal(table[64 + 15], 4);
	for (i = 80; i < 128; i++)
		assert_int_equal(table[i], 0);
}

static void an_invalidate_frees_the_key_and_takes_the_rights(void **state)
{
	memset(wqe, 0xee, IBMRI_MAX_WQE);
	assert_int_equal(ibmri_umr_invalidate(wqe, 0x00776600, 0xabcd), 128);
	check_head(8, 0x203c2000, 0x80, 0);
	assert_int_equal(wqe[64], 0x40);
	is_zero(65, 68);
	is_zero(72, 128);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_inline_list_is_what_the_wire_says),
		cmocka_unit_test(a_repeat_has_a_header_and_16_bit_entries),
		cmocka_unit_test(the_pointer_form_has_one_data_segment),
		cmocka_unit_test(the_inline_form_ends_where_the_control_segment_can_count),
		cmocka_unit_test(tables_are_padded_to_four_with_zeros),
		cmocka_unit_test(an_invalidate_frees_the_key_and_takes_the_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
