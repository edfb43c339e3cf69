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

static void a_long_list_goes_by_list_memory(void **state)
{
	enum { NUM = 5000 };
	struct ibmr_mr *a = soft_reg("a", 2ull * NUM, LW | RW | RR), *col = soft_create("col", NUM);
	struct ibmr_klm *klms = calloc(NUM, sizeof(*klms));
	uint8_t *want = malloc(NUM);
	struct ibmr_mr_info i;
	int k;

	assert_true(klms && want);
	ramp(a, 3);
	for (k = 0; k < NUM; k++) {
		klms[k] = (struct ibmr_klm){ a, 2 * (uint64_t)(NUM - 1 - k), 1 };
		want[k] = bytes_of(a)[klms[k].offset];
	}
	/* the last that fits inline, the first that does not, and many */
	soft_fill_list(col, LW | RR, klms, 52);
	assert_int_equal(info_of(col).form, IBMR_FORM_INLINE);
	reads_as(col, 0, want, 52);
	soft_fill_list(col, LW | RR, klms, 53);
	assert_int_equal(info_of(col).form, IBMR_FORM_LIST_MEMORY);
	reads_as(col, 0, want, 53);
	soft_fill_list(col, LW | RR, klms, NUM);
	i = info_of(col);
	assert_int_equal(i.form, IBMR_FORM_LIST_MEMORY);
	assert_int_equal(i.entries, NUM);
	reads_as(col, 0, want, NUM);
	free(klms);
	free(want);
}

static void a_long_repeat_goes_by_list_memory(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 4096, LW | RW | RR), *col = soft_create("col", 200);
	struct ibmr_block blocks[200];
	uint8_t want[400];
	int k;

	ramp(a, 0);
	for (k = 0; k < 200; k++) {
		blocks[k] = (struct ibmr_block){ a, (uint64_t)k, 1, 2000 };
		want[k] = bytes_of(a)[k];
		want[200 + k] = bytes_of(a)[2000 + k];
	}
	soft_fill_repeat(col, LW | RR, blocks, 51, 2); /* and the header: 52 */
	assert_int_equal(info_of(col).form, IBMR_FORM_INLINE);
	soft_fill_repeat(col, LW | RR, blocks, 52, 2);
	assert_int_equal(info_of(col).form, IBMR_FORM_LIST_MEMORY);
	assert_int_equal(info_of(col).entries, 53);
	soft_fill_repeat(col, LW | RR, blocks, 200, 2);
	reads_as(col, 0, want, 400);
}

static void a_refill_takes_the_place_of_the_layout_and_the_keys_stay(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR), *col = soft_create("col", 4);
	uint32_t rkey = info_of(col).rkey;
	struct ibmr_err err;
	uint8_t byte;

	ramp(a, 0);
	soft_fill_list(col, LW | RR, &(struct ibmr_klm){ a, 0, 8 }, 1);
	soft_fill_list(col, LW | RR, &(struct ibmr_klm){ a, 32, 4 }, 1);
	assert_int_equal(info_of(col).rkey, rkey);
	assert_int_equal(info_of(col).length, 4);
	reads_as(col, 0, bytes_of(a) + 32, 4);
	REFUSED(ibmr_mr_read(col, 4, &byte, 1, IBMR_IO_UNCHECKED, &err), EIO, IBMR_E_COMPLETION);
}

static void a_failed_fill_leaves_the_old_layout(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR), *col = soft_create("col", 1);
	struct ibmr_klm klm = { a, 60, 5 };
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RR, .num = 1, .klms = &klm
	};
	struct ibmr_err err;

	ramp(a, 0);
	REFUSED(ibmr_mr_fill(col, &l, &err), EFAULT, IBMR_E_RANGE);
	assert_int_equal(info_of(col).state, IBMR_STATE_EMPTY);
	soft_fill_list(col, LW | RR, &(struct ibmr_klm){ a, 8, 8 }, 1);
	REFUSED(ibmr_mr_fill(col, &l, &err), EFAULT, IBMR_E_RANGE);
	assert_int_equal(info_of(col).state, IBMR_STATE_FILLED);
	assert_int_equal(info_of(col).length, 8);
	assert_int_equal(info_of(a).users, 1);
	reads_as(col, 0, bytes_of(a) + 8, 8);
}

static void a_base_shifts_the_addresses_and_not_the_offsets(void **state)
{
	static const uint64_t bases[] = { 1, 0x123456789000, UINT64_MAX - 7 };
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR), *col = soft_create("col", 1);
	struct ibmr_mr *outer = soft_create("outer", 1);
	struct ibmr_klm klm = { a, 8, 8 };
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RW | RR, .num = 1, .klms = &klm
	};
	struct ibmr_err err;
	uint8_t byte;
	size_t i;

	ramp(a, 0);
	for (i = 0; i < 3; i++) {
		l.base = bases[i];
		OK(ibmr_mr_fill(col, &l, &err));
		assert_true(info_of(col).base == bases[i]);
		reads_as(col, 0, bytes_of(a) + 8, 8);
		reads_as(col, 7, bytes_of(a) + 15, 1);
		REFUSED(ibmr_mr_read(col, 8, &byte, 1, IBMR_IO_UNCHECKED, &err), EIO,
			IBMR_E_COMPLETION);
		REFUSED(ibmr_mr_read(col, UINT64_MAX, &byte, 1, IBMR_IO_UNCHECKED, &err), EIO,
			IBMR_E_COMPLETION);
		/* also as a member */
		soft_fill_list(outer, LW | RR, &(struct ibmr_klm){ col, 2, 4 }, 1);
		reads_as(outer, 0, bytes_of(a) + 10, 4);
		OK(ibmr_mr_invalidate(outer, &err));
	}
}

static void an_invalidated_mr_has_no_layout_and_the_key_stays(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR), *col = soft_create("col", 1);
	struct ibmr_mr_info i;
	struct ibmr_err err;
	uint8_t byte;

	soft_fill_list(col, LW | RR, &(struct ibmr_klm){ a, 8, 8 }, 1);
	OK(ibmr_mr_invalidate(col, &err));
	i = info_of(col);
	assert_int_equal(i.state, IBMR_STATE_INVALIDATED);
	assert_int_equal(i.length, 0);
	assert_int_equal(i.access, 0);
	assert_int_equal(i.entries, 0);
	assert_int_equal(i.form, IBMR_FORM_NONE);
	assert_int_equal(info_of(a).users, 0);
	REFUSED(ibmr_mr_read(col, 0, &byte, 1, 0, &err), EINVAL, IBMR_E_STATE);
	SAYS("'col' is invalidated");
	REFUSED(ibmr_mr_read(col, 0, &byte, 1, IBMR_IO_UNCHECKED, &err), EIO, IBMR_E_COMPLETION);
	ramp(a, 0);
	soft_fill_list(col, LW | RR, &(struct ibmr_klm){ a, 9, 8 }, 1);
	reads_as(col, 0, bytes_of(a) + 9, 8);
}

static void registered_memory_is_not_filled_or_invalidated(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW);
	struct ibmr_klm klm = { a, 0, 8 };
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_LIST, .num = 1, .klms = &klm };
	struct ibmr_err err;

	REFUSED(ibmr_mr_fill(a, &l, &err), EINVAL, IBMR_E_STATE);
	SAYS("only an indirect MR can be filled");
	REFUSED(ibmr_mr_invalidate(a, &err), EINVAL, IBMR_E_STATE);
}

static void a_member_in_use_is_not_deregistered_and_users_are_named(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW), *cols[6];
	struct ibmr_klm klms[] = { { a, 0, 8 }, { a, 8, 8 } };
	struct ibmr_err err;
	char name[8];
	int i;

	for (i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "col%d", i);
		cols[i] = soft_create(name, 2);
		soft_fill_list(cols[i], LW, klms, 2);
	}
	assert_int_equal(info_of(a).users, 6); /* each once, with two entries */
	REFUSED(ibmr_mr_dereg(a, &err), EBUSY, IBMR_E_IN_USE);
	SAYS("'a' cannot be deregistered: it is a member of 'col5', 'col4', 'col3', 'col2' and 2 "
	     "more");
	for (i = 1; i < 6; i++)
		soft_dereg(cols[i]);
	REFUSED(ibmr_mr_dereg(a, &err), EBUSY, IBMR_E_IN_USE);
	SAYS("it is a member of 'col0'");
	OK(ibmr_mr_invalidate(cols[0], &err));
	soft_dereg(a);
}

static void a_used_mr_does_not_shrink_move_or_lose_rights(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR);
	struct ibmr_mr *in = soft_create("in", 2), *out = soft_create("out", 2);
	struct ibmr_klm klm = { a, 0, 16 };
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RR, .num = 1, .klms = &klm
	};
	struct ibmr_err err;

	ramp(a, 0);
	OK(ibmr_mr_fill(in, &l, &err));
	soft_fill_list(out, LW | RR, &(struct ibmr_klm){ in, 4, 8 }, 1);
	klm.length = 11;
	REFUSED(ibmr_mr_fill(in, &l, &err), EBUSY, IBMR_E_IN_USE);
	SAYS("'in' cannot shrink to 11 bytes: 'out' uses 12 of it");
	klm.length = 12;
	l.base = 64;
	REFUSED(ibmr_mr_fill(in, &l, &err), EBUSY, IBMR_E_IN_USE);
	SAYS("cannot move");
	l.base = 0;
	l.access = LW;
	REFUSED(ibmr_mr_fill(in, &l, &err), EBUSY, IBMR_E_IN_USE);
	SAYS("cannot lose remote_read");
	REFUSED(ibmr_mr_invalidate(in, &err), EBUSY, IBMR_E_IN_USE);
	REFUSED(ibmr_mr_dereg(in, &err), EBUSY, IBMR_E_IN_USE);
	/* what its user needs is still there: it may change */
	l.access = LW | RR | RW;
	klm.offset = 30;
	OK(ibmr_mr_fill(in, &l, &err));
	reads_as(out, 0, bytes_of(a) + 34, 8);
}

static void keys_nest_to_the_devices_depth(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR), *level[5];
	struct ibmr_klm klm = { a, 10, 20 };
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RR | RW, .num = 1, .klms = &klm
	};
	struct ibmr_err err;
	char name[8];
	int i;

	ramp(a, 0);
	for (i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "l%d", i + 1);
		level[i] = soft_create(name, 1);
	}
	for (i = 0; i < 4; i++) {
		OK(ibmr_mr_fill(level[i], &l, &err));
		reads_as(level[i], 0, bytes_of(a) + 10 + i, 20 - (uint64_t)i);
		klm = (struct ibmr_klm){ level[i], 1, 19 - (uint64_t)i };
	}
	REFUSED(ibmr_mr_fill(level[4], &l, &err), ELOOP, IBMR_E_NESTING);
	SAYS("'l5' would be 5 levels deep, more than the 4");
	assert_string_equal(err.cause, "depth");
	assert_int_equal(err.index, 0);
	/* by the back door: the lowest grows a level below those above it */
	klm = (struct ibmr_klm){ a, 0, 64 };
	OK(ibmr_mr_fill(level[4], &l, &err));
	klm = (struct ibmr_klm){ level[4], 0, 64 };
	REFUSED(ibmr_mr_fill(level[0], &l, &err), ELOOP, IBMR_E_NESTING);
	SAYS("'l4' would be 5 levels deep");
	OK(ibmr_mr_invalidate(level[3], &err));
	OK(ibmr_mr_fill(level[0], &l, &err));
	reads_as(level[2], 0, bytes_of(a) + 2, 17);
}

static void cycles_are_refused(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW), *x = soft_create("x", 2),
		       *y = soft_create("y", 2), *z = soft_create("z", 2);
	struct ibmr_klm klms[] = { { a, 0, 8 }, { y, 0, 8 } };
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_LIST, .access = LW, .num = 2, .klms = klms };
	struct ibmr_err err;

	soft_fill_list(x, LW, &(struct ibmr_klm){ a, 0, 8 }, 1);
	soft_fill_list(y, LW, &(struct ibmr_klm){ x, 0, 8 }, 1);
	soft_fill_list(z, LW, &(struct ibmr_klm){ y, 0, 8 }, 1);
	REFUSED(ibmr_mr_fill(x, &l, &err), ELOOP, IBMR_E_NESTING);
	SAYS("klm 1: 'y' already leads to 'x'");
	assert_int_equal(err.index, 1);
	klms[1].mr = z;
	REFUSED(ibmr_mr_fill(x, &l, &err), ELOOP, IBMR_E_NESTING);
	klms[1].mr = x;
	REFUSED(ibmr_mr_fill(x, &l, &err), ELOOP, IBMR_E_NESTING);
	SAYS("a member of itself");
}

/* 2^60 paths lead down: each MR must be looked at once. */
static void shared_members_cost_no_more_than_others(void **state)
{
	struct ibmr_mr *below = soft_reg("a", 64, LW), *level[60];
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_LIST, .access = LW, .num = 2 };
	struct ibmr_klm klms[2];
	struct ibmr_err err;
	int i;

	soft->caps.max_depth = 0; /* "does not say": the device itself is not asked below */
	l.klms = klms;
	for (i = 0; i < 60; i++) {
		level[i] = soft_create(NULL, 2);
		klms[0] = klms[1] = (struct ibmr_klm){ below, 0, 1 };
		OK(ibmr_mr_fill(level[i], &l, &err));
		below = level[i];
	}
	klms[1].mr = level[59];
	REFUSED(ibmr_mr_fill(level[0], &l, &err), ELOOP, IBMR_E_NESTING);
	klms[0] = klms[1] = (struct ibmr_klm){ soft_reg("b", 64, LW | OD), 0, 1 };
	OK(ibmr_mr_fill(level[0], &l, &err));
	assert_true(info_of(level[59]).on_demand);
}

static void on_demand_is_inherited_and_given_up_again(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RR), *lazy = soft_reg("lazy", 64, LW | RR | OD);
	struct ibmr_mr *in = soft_create("in", 2), *out = soft_create("out", 2),
		       *rep = soft_create("rep", 2);
	struct ibmr_klm klms[] = { { a, 0, 8 }, { lazy, 8, 8 } };
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RR, .num = 1, .klms = klms
	};
	struct ibmr_block block = { in, 0, 4, 4 };
	struct ibmr_layout r = { .kind = IBMR_LAYOUT_REPEAT,
				 .access = LW | RR,
				 .count = 2,
				 .num = 1,
				 .blocks = &block };
	struct ibmr_err err;

	ramp(a, 0);
	ramp(lazy, 100);
	OK(ibmr_mr_fill(in, &l, &err));
	soft_fill_list(out, LW | RR, &(struct ibmr_klm){ in, 0, 8 }, 1);
	assert_false(info_of(out).on_demand);
	OK(ibmr_mr_fill(rep, &r, &err));
	l.num = 2;
	REFUSED(ibmr_mr_fill(in, &l, &err), EOPNOTSUPP, IBMR_E_UNSUPPORTED);
	SAYS("'rep' repeats over 'in'");
	OK(ibmr_mr_invalidate(rep, &err));
	OK(ibmr_mr_fill(in, &l, &err));
	assert_true(info_of(out).on_demand);
	reads_as(in, 8, bytes_of(lazy) + 8, 8);
	REFUSED(ibmr_mr_fill(rep, &r, &err), EOPNOTSUPP, IBMR_E_UNSUPPORTED);
	assert_string_equal(err.cause, "repeat_on_demand");
	l.num = 1;
	OK(ibmr_mr_fill(in, &l, &err));
	assert_false(info_of(out).on_demand);
	OK(ibmr_mr_fill(rep, &r, &err));
}

static void a_mixed_atomic_and_relaxed_nest_is_refused_from_both_sides(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RA);
	struct ibmr_mr *loose = soft_reg("loose", 64, LW | RA | IBMR_ACCESS_RELAXED_ORDERING);
	struct ibmr_mr *in = soft_create("in", 2), *out = soft_create("out", 2);
	struct ibmr_klm klm = { loose, 0, 8 };
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RA, .num = 1, .klms = &klm
	};
	struct ibmr_err err;

	REFUSED(ibmr_mr_fill(in, &l, &err), EACCES, IBMR_E_ACCESS);
	assert_string_equal(err.cause, "atomic_over_relaxed_ordering");
	klm.mr = a;
	OK(ibmr_mr_fill(in, &l, &err));
	klm.mr = in;
	OK(ibmr_mr_fill(out, &l, &err));
	klm.mr = loose;
	l.access = LW;
	REFUSED(ibmr_mr_fill(in, &l, &err), EBUSY,
		IBMR_E_IN_USE); /* it would lose the right first */
}

static void limits_of_a_key_are_refused_with_both_numbers(void **state)
{
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;

	REFUSED(ibmr_mr_create(soft, "x", 0, &mr, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(ibmr_mr_create(soft, "x", 65533, &mr, &err), E2BIG, IBMR_E_LIMIT);
	SAYS("65533");
	SAYS("65532");
	REFUSED(ibmr_mr_create(soft, "x", UINT64_MAX, &mr, &err), E2BIG, IBMR_E_LIMIT);
	assert_null(mr);
	OK(ibmr_mr_create(soft, "x", 65532, &mr, &err));
	soft_dereg(mr);
}

static void the_largest_key_can_be_filled_to_the_last_entry(void **state)
{
	enum { NUM = 65532 };
	struct ibmr_mr *a = soft_reg("a", NUM, LW | RR), *col = soft_create("col", NUM);
	struct ibmr_klm *klms = calloc(NUM, sizeof(*klms));
	struct ibmr_block *blocks = calloc(NUM, sizeof(*blocks));
	struct ibmr_layout r = {
		.kind = IBMR_LAYOUT_REPEAT, .access = LW, .count = 1, .blocks = blocks
	};
	struct ibmr_err err;
	uint8_t *want = malloc(NUM);
	int k;

	assert_true(klms && blocks && want);
	ramp(a, 0);
	for (k = 0; k < NUM; k++) {
		klms[k] = (struct ibmr_klm){ a, (uint64_t)(NUM - 1 - k), 1 };
		blocks[k] = (struct ibmr_block){ a, (uint64_t)k, 1, 0 };
		want[k] = bytes_of(a)[NUM - 1 - k];
	}
	soft_fill_list(col, LW | RR, klms, NUM);
	reads_as(col, 0, want, NUM);
	r.num = NUM;
	REFUSED(ibmr_mr_fill(col, &r, &err), E2BIG, IBMR_E_LIMIT);
	SAYS("65533 table entries, more than the 65532");
	soft_fill_repeat(col, LW | RR, blocks, NUM - 1, 1);
	reads_as(col, 0, bytes_of(a), NUM - 1);
	free(klms);
	free(blocks);
	free(want);
}

static void a_device_without_umr_has_no_indirect_mrs(void **state)
{
	static const char *const words[] = { "umr", "devx" };
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;
	size_t i;
	int ret;

	for (i = 0; i < 2; i++) {
		soft_word(words[i], "0");
		memset(&err, 0, sizeof(err));
		ret = ibmr_mr_create(soft, "x", 4, &mr, &err);
		if (!ret || err.code != IBMR_E_UNSUPPORTED)
			fail_msg("%s=0: %d %s", words[i], ret, err.text);
		assert_string_equal(err.cause, "umr");
		soft_word(words[i], "1");
	}
}

static void the_request_on_the_wire_is_the_one_we_built(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR), *col = soft_create("col", 1);
	uint8_t sent[1024], built[IBMRI_MAX_WQE];
	uint32_t size;

	soft_fill_list(col, LW | RR, &(struct ibmr_klm){ a, 8, 8 }, 1);
	size = soft0_last_umr(sent, sizeof(sent));
	assert_int_equal(size, ibmri_umr_fill(built, &col->layout, info_of(col).lkey,
					      ibmri_queue_qpn(soft), NULL));
	sent[1] = sent[2] = 0; /* the index, libmlx5's */
	assert_memory_equal(sent, built, size);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, soft_setup, soft_teardown)
	const struct CMUnitTest tests[] = {
		T(a_created_mr_has_keys_and_cannot_be_used),
		T(a_filled_list_reads_and_writes_through_its_key),
		T(a_filled_repeat_reads_and_writes_through_its_key),
		T(a_long_list_goes_by_list_memory),
		T(a_long_repeat_goes_by_list_memory),
		T(a_refill_takes_the_place_of_the_layout_and_the_keys_stay),
		T(a_failed_fill_leaves_the_old_layout),
		T(a_base_shifts_the_addresses_and_not_the_offsets),
		T(an_invalidated_mr_has_no_layout_and_the_key_stays),
		T(registered_memory_is_not_filled_or_invalidated),
		T(a_member_in_use_is_not_deregistered_and_users_are_named),
		T(a_used_mr_does_not_shrink_move_or_lose_rights),
		T(keys_nest_to_the_devices_depth),
		T(cycles_are_refused),
		T(shared_members_cost_no_more_than_others),
		T(on_demand_is_inherited_and_given_up_again),
		T(a_mixed_atomic_and_relaxed_nest_is_refused_from_both_sides),
		T(limits_of_a_key_are_refused_with_both_numbers),
		T(the_largest_key_can_be_filled_to_the_last_entry),
		T(a_device_without_umr_has_no_indirect_mrs),
		T(the_request_on_the_wire_is_the_one_we_built),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
