/* SPDX-License-Identifier: BSD-2-Clause */
/* The arithmetic of lists and repeats. Records are made by hand: no context, no device. */
#include "lib_test.h"

#include <errno.h>
#include <stdlib.h>

static struct ibmr_ctx ctx;
static struct ibmr_mr a, b, col;

static int reset(void **state)
{
	memset(&ctx, 0, sizeof(ctx));
	memset(&a, 0, sizeof(a));
	a.ctx = &ctx;
	a.name = (char *)"a";
	a.base = 0x10000;
	a.length = 10000;
	a.access = LW | RW | RR | RA;
	a.state = IBMR_STATE_REGISTERED;
	b = a;
	b.name = (char *)"b";
	b.base = 0x20000;
	col = a;
	col.name = (char *)"col";
	col.indirect = true;
	col.state = IBMR_STATE_EMPTY;
	col.max_klms = 8;
	col.table = 9;
	return 0;
}

static struct ibmr_layout list(const struct ibmr_klm *klms, uint64_t num)
{
	return (struct ibmr_layout){
		.kind = IBMR_LAYOUT_LIST, .access = LW, .num = num, .klms = klms
	};
}

static struct ibmr_layout repeat(const struct ibmr_block *blocks, uint64_t num, uint64_t count)
{
	return (struct ibmr_layout){ .kind = IBMR_LAYOUT_REPEAT,
				     .access = LW,
				     .count = count,
				     .num = num,
				     .blocks = blocks };
}

/* make must refuse; nothing may be left behind (the sanitizers look) */
#define BAD(layout, err_no, code)                                                  \
	do {                                                                       \
		struct ibmr_layout in_ = (layout);                                 \
		struct ibmri_layout out_;                                          \
		REFUSED(ibmri_layout_make(&col, &in_, &out_, &err), err_no, code); \
	} while (0)

static void a_list_is_the_concatenation_of_its_entries(void **state)
{
	struct ibmr_klm klms[] = { { &a, 100, 10 }, { &b, 0, 5 }, { &a, 0, 7 } };
	struct ibmr_layout in = list(klms, 3);
	struct ibmri_layout l;
	struct ibmri_piece p;
	struct ibmri_walk w;
	struct ibmr_err err;

	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_int_equal(l.total, 22);
	assert_int_equal(ibmri_layout_table(&l), 3);
	ibmri_walk_start(&w, &l, 8, 8);
	assert_true(ibmri_walk_next(&w, &p));
	assert_ptr_equal(p.mr, &a);
	assert_int_equal(p.offset, 108);
	assert_int_equal(p.length, 2);
	assert_true(ibmri_walk_next(&w, &p));
	assert_ptr_equal(p.mr, &b);
	assert_int_equal(p.offset, 0);
	assert_int_equal(p.length, 5);
	assert_true(ibmri_walk_next(&w, &p));
	assert_ptr_equal(p.mr, &a);
	assert_int_equal(p.offset, 0);
	assert_int_equal(p.length, 1);
	assert_false(ibmri_walk_next(&w, &p));
	ibmri_layout_free(&l);
}

/* The worked example of the field reports: two blocks, three cycles. */
static void a_repeat_takes_its_blocks_cycle_by_cycle(void **state)
{
	static const uint8_t want[] = { 0x00, 0x01, 0x80, 0x81, 0x82, 0x03, 0x04, 0x85,
					0x86, 0x87, 0x06, 0x07, 0x8a, 0x8b, 0x8c };
	struct ibmr_block blocks[] = { { &a, 0, 2, 3 }, { &b, 0, 3, 5 } };
	struct ibmr_layout in = repeat(blocks, 2, 3);
	struct ibmri_layout l;
	struct ibmri_piece p;
	struct ibmri_walk w;
	struct ibmr_err err;
	uint64_t at, n;

	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_int_equal(l.total, 15);
	assert_int_equal(l.cycle, 5);
	assert_int_equal(ibmri_layout_table(&l), 3);
	/* every range of it, byte by byte */
	for (at = 0; at < 15; at++) {
		for (n = 1; at + n <= 15; n++) {
			uint64_t k = at, i;

			ibmri_walk_start(&w, &l, at, n);
			while (ibmri_walk_next(&w, &p))
				for (i = 0; i < p.length; i++, k++)
					assert_int_equal(((p.mr == &b ? 0x80 : 0) + p.offset + i) &
								 0xff,
							 want[k]);
			assert_int_equal(k, at + n);
		}
	}
	ibmri_layout_free(&l);
}

static void stride_zero_and_overlap_are_legal(void **state)
{
	struct ibmr_block blocks[] = { { &a, 4, 8, 0 }, { &a, 0, 8, 3 } };
	struct ibmr_layout in = repeat(blocks, 2, 2);
	struct ibmri_layout l;
	struct ibmri_piece p;
	struct ibmri_walk w;
	struct ibmr_err err;

	OK(ibmri_layout_make(&col, &in, &l, &err));
	ibmri_walk_start(&w, &l, 16, 16);
	assert_true(ibmri_walk_next(&w, &p));
	assert_int_equal(p.offset, 4);
	assert_true(ibmri_walk_next(&w, &p));
	assert_int_equal(p.offset, 3);
	assert_false(ibmri_walk_next(&w, &p));
	ibmri_layout_free(&l);
}

static void an_entry_past_the_end_is_named_with_both_numbers(void **state)
{
	struct ibmr_klm klms[] = { { &a, 0, 10 }, { &a, 9999, 2 } };
	struct ibmr_err err;

	BAD(list(klms, 2), EFAULT, IBMR_E_RANGE);
	assert_string_equal(err.text,
			    "klm 1: bytes [9999, 10001) are past the end of 'a' (10000 bytes)");
	assert_int_equal(err.index, 1);
	assert_string_equal(err.origin, "ibmr_mr_fill");
	klms[1].length = 1;
	klms[1].offset = 10000;
	BAD(list(klms, 2), EFAULT, IBMR_E_RANGE);
	klms[1].offset = UINT64_MAX;
	klms[1].length = 2;
	BAD(list(klms, 2), EFAULT, IBMR_E_RANGE);
	SAYS("wraps");
	klms[1].length = IBMR_TO_END;
	BAD(list(klms, 2), EFAULT, IBMR_E_RANGE);
}

/* Entries like the one before have a loop of their own: what is wrong with one is said all the same. */
static void a_bad_entry_among_good_ones_is_named(void **state)
{
	static const struct {
		struct ibmr_klm klm;
		int err_no;
		enum ibmr_code code;
	} bad[] = {
		{ { &a, 9999, 2 }, EFAULT, IBMR_E_RANGE },
		{ { &a, 10000, 1 }, EFAULT, IBMR_E_RANGE },
		{ { &a, 0, 10001 }, EFAULT, IBMR_E_RANGE },
		{ { &a, UINT64_MAX, 2 }, EFAULT, IBMR_E_RANGE },
		{ { &a, 10001, IBMR_TO_END }, EFAULT, IBMR_E_RANGE },
		{ { &a, 0, 0 }, EINVAL, IBMR_E_ARGUMENT },
		{ { NULL, 0, 1 }, EINVAL, IBMR_E_ARGUMENT },
		{ { &b, 9999, 2 }, EFAULT, IBMR_E_RANGE },
	};
	struct ibmr_klm klms[8];
	struct ibmr_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		for (uint64_t k = 0; k < 8; k++)
			klms[k] = (struct ibmr_klm){ &a, 9990 + k, 1 + k % 3 };
		klms[5] = bad[i].klm;
		BAD(list(klms, 8), bad[i].err_no, bad[i].code);
		assert_int_equal(err.index, 5);
	}
}

/* And a long one, and one that brings the total past 2^63. */
static void a_large_entry_among_small_ones_is_named(void **state)
{
	struct ibmr_klm klms[8];
	struct ibmr_layout in = list(klms, 8);
	struct ibmri_layout l;
	struct ibmr_err err;

	a.length = UINT64_C(1) << 62;
	for (uint64_t k = 0; k < 8; k++)
		klms[k] = (struct ibmr_klm){ &a, 0, INT32_MAX };
	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_true(l.total == 8ull * INT32_MAX);
	ibmri_layout_free(&l);
	klms[3].length++;
	BAD(in, E2BIG, IBMR_E_LIMIT);
	assert_int_equal(err.index, 3);
	col.split = in.split = true;
	for (uint64_t k = 0; k < 8; k++)
		klms[k].length = a.length / 2;
	BAD(in, E2BIG, IBMR_E_LIMIT);
	assert_int_equal(err.index, 3);
	SAYS("2^63");
}

/* In whatever order entries come, with others between. */
static void what_is_needed_of_a_member_is_its_furthest_byte(void **state)
{
	struct ibmr_klm klms[] = { { &a, 10, 5 },   { &a, 500, 41 }, { &a, 20, 1 }, { &b, 7, 3 },
				   { &a, 530, 10 }, { &b, 1, 2 },    { &b, 0, 1 },  { &a, 0, 1 } };
	struct ibmr_block blocks[] = { { &b, 8, 4, 100 }, { &a, 3, 2, 0 } };
	struct ibmr_layout in = list(klms, 8), again = repeat(blocks, 2, 5);
	struct ibmri_layout l;
	struct ibmr_err err;

	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_int_equal(l.num_members, 2);
	assert_ptr_equal(l.members, &a);
	assert_ptr_equal(a.next_member, &b);
	assert_null(b.next_member);
	assert_int_equal(a.reach, 541);
	assert_int_equal(b.reach, 10);
	assert_int_equal(b.first_entry, 3);
	ibmri_layout_free(&l);
	OK(ibmri_layout_make(&col, &again, &l, &err));
	assert_ptr_equal(l.members, &b);
	assert_int_equal(b.reach, 412);
	assert_int_equal(a.reach, 5);
	ibmri_layout_free(&l);
}

static void to_end_means_up_to_the_end_of_the_member(void **state)
{
	struct ibmr_klm klm = { &a, 9000, IBMR_TO_END };
	struct ibmr_layout in = list(&klm, 1);
	struct ibmri_layout l;
	struct ibmr_err err;

	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_int_equal(l.total, 1000);
	ibmri_layout_free(&l);
}

static void the_last_cycle_of_a_block_must_be_inside(void **state)
{
	struct ibmr_block block = { &a, 8, 8, 512 };
	struct ibmr_layout in = repeat(&block, 1, 20);
	struct ibmri_layout l;
	struct ibmr_err err;

	a.length = 19 * 512 + 16;
	OK(ibmri_layout_make(&col, &in, &l, &err));
	ibmri_layout_free(&l);
	a.length--;
	BAD(in, EFAULT, IBMR_E_RANGE);
	SAYS("20 cycles of stride 512");
	/* 2^32-1 cycles of the largest stride pass no 64-bit sum unseen */
	block.stride = 65535;
	BAD(repeat(&block, 1, UINT32_MAX), EFAULT, IBMR_E_RANGE);
}

static void zero_lengths_and_empty_layouts_are_refused(void **state)
{
	struct ibmr_klm klms[] = { { &a, 0, 1 }, { &a, 5, 0 } };
	struct ibmr_block block = { &a, 0, 0, 4 };
	struct ibmr_err err;

	BAD(list(klms, 2), EINVAL, IBMR_E_ARGUMENT);
	assert_int_equal(err.index, 1);
	BAD(list(klms, 0), EINVAL, IBMR_E_ARGUMENT);
	BAD(list(NULL, 1), EINVAL, IBMR_E_ARGUMENT);
	BAD(repeat(&block, 1, 1), EINVAL, IBMR_E_ARGUMENT);
	block.length = 4;
	BAD(repeat(&block, 1, 0), EINVAL, IBMR_E_ARGUMENT);
	klms[0].mr = NULL;
	BAD(list(klms, 1), EINVAL, IBMR_E_ARGUMENT);
}

static void an_entry_of_2_31_bytes_is_refused_and_one_less_is_not(void **state)
{
	struct ibmr_klm klm = { &a, 0, 1ull << 31 };
	struct ibmr_layout in = list(&klm, 1);
	struct ibmri_layout l;
	struct ibmr_err err;

	a.length = 1ull << 40;
	BAD(in, E2BIG, IBMR_E_LIMIT);
	SAYS("2147483648");
	SAYS("2147483647");
	klm.length--;
	OK(ibmri_layout_make(&col, &in, &l, &err));
	ibmri_layout_free(&l);
}

static void blocks_and_strides_above_65535_are_refused_not_cut(void **state)
{
	struct ibmr_block block = { &a, 0, 65535, 65535 };
	struct ibmr_layout in = repeat(&block, 1, 4);
	struct ibmri_layout l;
	struct ibmr_err err;

	a.length = MIB;
	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_int_equal(l.total, 4 * 65535);
	ibmri_layout_free(&l);
	block.length = 65536;
	BAD(in, E2BIG, IBMR_E_LIMIT);
	SAYS("length 65536");
	block.length = 4096;
	block.stride = 65536;
	BAD(in, E2BIG, IBMR_E_LIMIT);
	SAYS("stride 65536");
	/* a device that says less is believed */
	ctx.caps.max_stride = 1024;
	block.stride = 1025;
	BAD(in, E2BIG, IBMR_E_LIMIT);
	SAYS("1024");
}

static void totals_are_64_bits_wide(void **state)
{
	struct ibmr_block blocks[] = { { &a, 0, 65535, 0 }, { &a, 0, 65535, 0 } };
	struct ibmr_layout in = repeat(blocks, 2, UINT32_MAX);
	struct ibmr_klm klms[8];
	struct ibmri_layout l;
	struct ibmr_err err;
	int i;

	a.length = 1ull << 40;
	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_true(l.total == 2ull * 65535 * UINT32_MAX);
	ibmri_layout_free(&l);
	for (i = 0; i < 8; i++)
		klms[i] = (struct ibmr_klm){ &a, 0, 0x7fffffff };
	in = list(klms, 8);
	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_true(l.total == 8ull * 0x7fffffff);
	ibmri_layout_free(&l);
}

static void a_total_above_2_63_is_refused(void **state)
{
	struct ibmr_block blocks[65535];
	struct ibmri_layout l;
	struct ibmr_err err;
	struct ibmr_layout in;
	int i;

	col.max_klms = 65532;
	col.table = 65532;
	for (i = 0; i < 65531; i++)
		blocks[i] = (struct ibmr_block){ &a, 0, 65535, 0 };
	a.length = 65535;
	/* 65531 * 65535 * count around 2^63 */
	in = repeat(blocks, 65531, INT64_MAX / (65531ull * 65535));
	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_true(l.total <= INT64_MAX && l.total > INT64_MAX - l.cycle);
	ibmri_layout_free(&l);
	BAD(repeat(blocks, 65531, INT64_MAX / (65531ull * 65535) + 1), E2BIG, IBMR_E_LIMIT);
	SAYS("2^63-1");
}

static void a_base_must_not_wrap(void **state)
{
	struct ibmr_klm klm = { &a, 0, 100 };
	struct ibmr_layout in = list(&klm, 1);
	struct ibmri_layout l;
	struct ibmr_err err;

	in.base = UINT64_MAX - 99;
	OK(ibmri_layout_make(&col, &in, &l, &err));
	assert_true(l.base == in.base);
	ibmri_layout_free(&l);
	in.base++;
	BAD(in, EFAULT, IBMR_E_RANGE);
	SAYS("wraps");
}

static void more_entries_than_created_for_are_refused_with_both_numbers(void **state)
{
	struct ibmr_block blocks[9];
	struct ibmr_klm klms[9];
	struct ibmr_err err;
	int i;

	for (i = 0; i < 9; i++) {
		klms[i] = (struct ibmr_klm){ &a, 0, 1 };
		blocks[i] = (struct ibmr_block){ &a, 0, 1, 1 };
	}
	BAD(list(klms, 9), E2BIG, IBMR_E_LIMIT);
	assert_string_equal(err.text, "9 klms are more than the 8 that 'col' was created for");
	BAD(repeat(blocks, 9, 2), E2BIG, IBMR_E_LIMIT);
	/* a key at the device's limit has no room for a repeat's header */
	col.table = 8;
	BAD(repeat(blocks, 8, 2), E2BIG, IBMR_E_LIMIT);
	SAYS("9 table entries");
}

static void rights_may_not_exceed_those_of_a_member(void **state)
{
	struct ibmr_klm klms[] = { { &a, 0, 1 }, { &b, 0, 1 } };
	struct ibmr_layout in = list(klms, 2);
	struct ibmr_err err;

	in.access = LW | RR;
	b.access = LW;
	BAD(in, EACCES, IBMR_E_ACCESS);
	assert_string_equal(err.text, "klm 1: 'b' lacks remote_read, which the fill asks for");
	assert_string_equal(err.cause, "member_lacks_right");
	assert_non_null(strstr(err.hint, "register 'b' with remote_read"));
	in.access = RW;
	BAD(in, EACCES, IBMR_E_ACCESS);
	SAYS("needs local_write");
	in.access = LW | OD;
	BAD(in, EACCES, IBMR_E_ACCESS);
	SAYS("on_demand");
}

static void remote_atomic_over_relaxed_ordering_is_refused(void **state)
{
	struct ibmr_klm klm = { &a, 0, 8 };
	struct ibmr_layout in = list(&klm, 1);
	struct ibmri_layout l;
	struct ibmr_err err;

	a.traits.relaxed = true;
	in.access = LW | RA;
	BAD(in, EACCES, IBMR_E_ACCESS);
	SAYS("relaxed_ordering");
	in.access = LW | RW;
	OK(ibmri_layout_make(&col, &in, &l, &err));
	ibmri_layout_free(&l);
}

static void a_repeat_over_on_demand_memory_is_unsupported_a_list_is_not(void **state)
{
	struct ibmr_block block = { &a, 0, 8, 8 };
	struct ibmr_klm klm = { &a, 0, 8 };
	struct ibmr_layout in = list(&klm, 1);
	struct ibmri_layout l;
	struct ibmr_err err;

	a.traits.on_demand = true;
	OK(ibmri_layout_make(&col, &in, &l, &err));
	ibmri_layout_free(&l);
	in = repeat(&block, 1, 2);
	BAD(in, EOPNOTSUPP, IBMR_E_UNSUPPORTED);
	assert_string_equal(err.cause, "repeat_on_demand");
	ctx.caps.repeat_on_demand = true;
	OK(ibmri_layout_make(&col, &in, &l, &err));
	ibmri_layout_free(&l);
}

static void members_must_be_filled_and_of_the_same_context(void **state)
{
	struct ibmr_ctx other = { 0 };
	struct ibmr_mr in1 = col;
	struct ibmr_klm klm = { &in1, 0, 1 };
	struct ibmr_err err;

	in1.name = (char *)"inner";
	BAD(list(&klm, 1), EINVAL, IBMR_E_STATE);
	SAYS("'inner' is empty");
	in1.state = IBMR_STATE_UNKNOWN;
	BAD(list(&klm, 1), EINVAL, IBMR_E_STATE);
	in1.state = IBMR_STATE_FILLED;
	in1.ctx = &other;
	BAD(list(&klm, 1), EINVAL, IBMR_E_ARGUMENT);
	SAYS("another protection domain");
	klm.mr = &col;
	BAD(list(&klm, 1), ELOOP, IBMR_E_NESTING);
	assert_string_equal(err.cause, "cycle");
}

static void a_walk_finds_its_place_among_many_entries(void **state)
{
	enum { NUM = 65532 };
	struct ibmr_klm *klms = calloc(NUM, sizeof(*klms));
	struct ibmr_layout in = list(klms, NUM);
	struct ibmri_layout l;
	struct ibmri_piece p;
	struct ibmri_walk w;
	struct ibmr_err err;
	uint64_t i, at = 0;

	assert_non_null(klms);
	col.max_klms = NUM;
	col.table = NUM;
	for (i = 0; i < NUM; i++)
		klms[i] = (struct ibmr_klm){ &a, i % 100, i % 7 + 1 };
	OK(ibmri_layout_make(&col, &in, &l, &err));
	for (i = 0; i < NUM; i++) {
		uint64_t last = klms[i].length - 1;

		ibmri_walk_start(&w, &l, at + last, 1);
		assert_true(ibmri_walk_next(&w, &p));
		assert_int_equal(p.offset, klms[i].offset + last);
		assert_int_equal(p.length, 1);
		assert_false(ibmri_walk_next(&w, &p));
		at += klms[i].length;
	}
	assert_int_equal(at, l.total);
	ibmri_walk_start(&w, &l, 0, 0);
	assert_false(ibmri_walk_next(&w, &p));
	ibmri_layout_free(&l);
	free(klms);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_list_is_the_concatenation_of_its_entries, reset),
		cmocka_unit_test_setup(a_repeat_takes_its_blocks_cycle_by_cycle, reset),
		cmocka_unit_test_setup(stride_zero_and_overlap_are_legal, reset),
		cmocka_unit_test_setup(an_entry_past_the_end_is_named_with_both_numbers, reset),
		cmocka_unit_test_setup(to_end_means_up_to_the_end_of_the_member, reset),
		cmocka_unit_test_setup(the_last_cycle_of_a_block_must_be_inside, reset),
		cmocka_unit_test_setup(a_bad_entry_among_good_ones_is_named, reset),
		cmocka_unit_test_setup(a_large_entry_among_small_ones_is_named, reset),
		cmocka_unit_test_setup(what_is_needed_of_a_member_is_its_furthest_byte, reset),
		cmocka_unit_test_setup(zero_lengths_and_empty_layouts_are_refused, reset),
		cmocka_unit_test_setup(an_entry_of_2_31_bytes_is_refused_and_one_less_is_not,
				       reset),
		cmocka_unit_test_setup(blocks_and_strides_above_65535_are_refused_not_cut, reset),
		cmocka_unit_test_setup(totals_are_64_bits_wide, reset),
		cmocka_unit_test_setup(a_total_above_2_63_is_refused, reset),
		cmocka_unit_test_setup(a_base_must_not_wrap, reset),
		cmocka_unit_test_setup(more_entries_than_created_for_are_refused_with_both_numbers,
				       reset),
		cmocka_unit_test_setup(rights_may_not_exceed_those_of_a_member, reset),
		cmocka_unit_test_setup(remote_atomic_over_relaxed_ordering_is_refused, reset),
		cmocka_unit_test_setup(a_repeat_over_on_demand_memory_is_unsupported_a_list_is_not,
				       reset),
		cmocka_unit_test_setup(members_must_be_filled_and_of_the_same_context, reset),
		cmocka_unit_test_setup(a_walk_finds_its_place_among_many_entries, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
