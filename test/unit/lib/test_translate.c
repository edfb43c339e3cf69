/* SPDX-License-Identifier: BSD-2-Clause */
/* Which bytes of which memory, and where those show: each held against the other, byte by byte. */
#include "lib_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const struct ibmr_caps limits = {
	.name = "mlx5",
	.umr = true,
	.max_klms = 65532,
	.inline_klms = 52,
	.max_depth = 4,
	.max_stride = 65535,
	.max_entry = 0x7fffffff,
	.max_mr_size = UINT64_MAX,
};
static struct ibmr_ctx *ctx;
static struct ibmr_mr *a, *b;

static struct ibmr_mr *reg(const char *name, uint64_t length)
{
	struct ibmr_mr_spec spec = {
		.name = name, .mem = IBMR_MEM_ANON, .length = length, .access = LW
	};
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;

	OK(ibmr_mr_reg(ctx, &spec, &mr, &err));
	return mr;
}

static struct ibmr_mr *create(const char *name, uint64_t max_klms)
{
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;

	OK(ibmr_mr_create(ctx, name, max_klms, &mr, &err));
	return mr;
}

static struct ibmr_mr *list(const char *name, const struct ibmr_klm *klms, uint64_t num)
{
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_LIST, .num = num, .klms = klms };
	struct ibmr_mr *mr = create(name, num);
	struct ibmr_err err;

	OK(ibmr_mr_fill(mr, &l, &err));
	return mr;
}

static struct ibmr_mr *repeat(const char *name, const struct ibmr_block *blocks, uint64_t num,
			      uint64_t count)
{
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_REPEAT, .num = num, .count = count, .blocks = blocks
	};
	struct ibmr_mr *mr = create(name, num);
	struct ibmr_err err;

	OK(ibmr_mr_fill(mr, &l, &err));
	return mr;
}

static int setup(void **state)
{
	struct ibmr_err err;

	OK(ibmr_ctx_open_dry(&limits, &ctx, &err));
	a = reg("a", 10000);
	b = reg("b", 10000);
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
	return 0;
}

/* ---- what comes out ------------------------------------------------------------------- */

struct got {
	struct ibmr_piece at[64];
	uint64_t places[64];
	size_t num;
	int end_at; /* piece at which fn says so; 0: never */
};

static int take_piece(void *arg, const struct ibmr_piece *piece)
{
	struct got *g = arg;

	assert_true(g->num < 64);
	g->at[g->num++] = *piece;
	return g->end_at && (size_t)g->end_at == g->num ? 77 : 0;
}

static int take_place(void *arg, uint64_t at)
{
	struct got *g = arg;

	assert_true(g->num < 64);
	g->places[g->num++] = at;
	return g->end_at && (size_t)g->end_at == g->num ? -77 : 0;
}

#define PIECE(i, at_, mr_, offset_, length_)               \
	do {                                               \
		assert_int_equal(g.at[i].at, at_);         \
		assert_ptr_equal(g.at[i].mr, mr_);         \
		assert_int_equal(g.at[i].offset, offset_); \
		assert_int_equal(g.at[i].length, length_); \
	} while (0)

static void pieces_come_in_order_and_add_up(void **state)
{
	struct ibmr_klm klms[] = { { a, 100, 10 }, { b, 0, 5 }, { a, 0, 7 } };
	struct ibmr_mr *l = list("l", klms, 3);
	struct got g = { .num = 0 };
	struct ibmr_err err;

	OK(ibmr_mr_translate(l, 8, 8, take_piece, &g, &err));
	assert_int_equal(g.num, 3);
	PIECE(0, 8, a, 108, 2);
	PIECE(1, 10, b, 0, 5);
	PIECE(2, 15, a, 0, 1);
	g.num = 0;
	OK(ibmr_mr_translate(l, 15, IBMR_TO_END, take_piece, &g, &err));
	assert_int_equal(g.num, 1);
	PIECE(0, 15, a, 0, 7);
	g.num = 0;
	OK(ibmr_mr_translate(a, 3, 4, take_piece, &g, &err)); /* a direct MR is itself */
	assert_int_equal(g.num, 1);
	PIECE(0, 3, a, 3, 4);
}

static void all_levels_are_gone_through(void **state)
{
	struct ibmr_block block = { a, 8, 4, 100 };
	struct ibmr_mr *inner = repeat("inner", &block, 1, 10);
	struct ibmr_klm klms[] = { { inner, 2, 6 }, { b, 50, 1 }, { inner, 38, 2 } };
	struct ibmr_mr *outer = list("outer", klms, 3);
	struct got g = { .num = 0 };
	struct ibmr_err err;

	OK(ibmr_mr_translate(outer, 0, 9, take_piece, &g, &err));
	assert_int_equal(g.num, 4);
	PIECE(0, 0, a, 10, 2);
	PIECE(1, 2, a, 108, 4);
	PIECE(2, 6, b, 50, 1);
	PIECE(3, 7, a, 910, 2);
}

static void all_places_are_found(void **state)
{
	struct ibmr_block blocks[] = { { a, 8, 10, 4 }, { a, 20, 3, 0 } };
	struct ibmr_mr *inner = repeat("inner", blocks, 2, 5);
	struct ibmr_klm klms[] = { { inner, 0, 65 }, { a, 17, 2 }, { inner, 13, 13 } };
	struct ibmr_mr *outer = list("outer", klms, 3);
	struct got g = { .num = 0 };
	struct ibmr_err err;

	/* 17 is in the blocks of cycles 0, 1 and 2 */
	OK(ibmr_mr_locate(inner, a, 17, take_place, &g, &err));
	assert_int_equal(g.num, 3);
	assert_int_equal(g.places[0], 9);
	assert_int_equal(g.places[1], 13 + 5);
	assert_int_equal(g.places[2], 26 + 1);
	g.num = 0;
	OK(ibmr_mr_locate(outer, a, 17, take_place, &g, &err));
	assert_int_equal(g.num, 5);
	assert_int_equal(g.places[3], 65);
	assert_int_equal(g.places[4], 67 + 5);
	/* stride 0: in every cycle */
	g.num = 0;
	OK(ibmr_mr_locate(inner, a, 22, take_place, &g, &err));
	assert_int_equal(g.num, 2 + 5);
	/* a level between */
	g.num = 0;
	OK(ibmr_mr_locate(outer, inner, 13, take_place, &g, &err));
	assert_int_equal(g.num, 2);
	assert_int_equal(g.places[0], 13);
	assert_int_equal(g.places[1], 67);
	g.num = 0;
	OK(ibmr_mr_locate(outer, b, 0, take_place, &g, &err));
	assert_int_equal(g.num, 0);
	OK(ibmr_mr_locate(outer, outer, 5, take_place, &g, &err));
	assert_int_equal(g.num, 1);
	assert_int_equal(g.places[0], 5);
}

static void the_caller_can_end_it(void **state)
{
	struct ibmr_block block = { a, 0, 1, 0 };
	struct ibmr_mr *many = repeat("many", &block, 1, UINT32_MAX);
	struct got g = { .end_at = 3 };
	struct ibmr_err err = { .code = IBMR_OK };

	assert_int_equal(ibmr_mr_translate(many, 0, IBMR_TO_END, take_piece, &g, &err), 77);
	assert_int_equal(g.num, 3);
	g.num = 0;
	assert_int_equal(ibmr_mr_locate(many, a, 0, take_place, &g, &err), -77);
	assert_int_equal(g.num, 3);
	assert_int_equal(err.code, IBMR_OK);
}

/* Four thousand million places below, of which none is looked into above. */
static void a_search_ends_with_its_time(void **state)
{
	struct ibmr_block block = { a, 0, 1, 0 };
	struct ibmr_mr *many = repeat("many", &block, 1, UINT32_MAX);
	struct ibmr_klm klm = { many, UINT32_MAX - 1u, 1 };
	struct ibmr_mr *above = list("above", &klm, 1);
	struct got g = { .num = 0 };
	struct ibmr_err err;

	ibmr_ctx_set_timeout(ctx, 50);
	REFUSED(ibmr_mr_locate(above, a, 0, take_place, &g, &err), ETIMEDOUT, IBMR_E_TIMEOUT);
	SAYS("'above'");
	assert_int_equal(g.num, 0);
}

static void what_is_not_there_is_refused(void **state)
{
	struct ibmr_klm klm = { a, 100, 10 };
	struct ibmr_mr *l = list("l", &klm, 1), *empty = create("empty", 1), *far;
	struct got g = { .num = 0 };
	struct ibmr_ctx *other;
	struct ibmr_err err;

	REFUSED(ibmr_mr_translate(l, 9, 2, take_piece, &g, &err), EFAULT, IBMR_E_RANGE);
	SAYS("'l' (10 bytes)");
	REFUSED(ibmr_mr_translate(l, 10, IBMR_TO_END, take_piece, &g, &err), EFAULT, IBMR_E_RANGE);
	REFUSED(ibmr_mr_translate(l, UINT64_MAX, 2, take_piece, &g, &err), EFAULT, IBMR_E_RANGE);
	REFUSED(ibmr_mr_translate(l, 0, 0, take_piece, &g, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(ibmr_mr_translate(empty, 0, 1, take_piece, &g, &err), EINVAL, IBMR_E_STATE);
	REFUSED(ibmr_mr_locate(empty, a, 0, take_place, &g, &err), EINVAL, IBMR_E_STATE);
	REFUSED(ibmr_mr_locate(l, empty, 0, take_place, &g, &err), EINVAL, IBMR_E_STATE);
	REFUSED(ibmr_mr_locate(l, a, 10000, take_place, &g, &err), EFAULT, IBMR_E_RANGE);
	OK(ibmr_ctx_open_dry(&limits, &other, &err));
	OK(ibmr_mr_create(other, "far", 1, &far, &err));
	REFUSED(ibmr_mr_locate(l, far, 0, take_place, &g, &err), EINVAL, IBMR_E_ARGUMENT);
	OK(ibmr_mr_dereg(far, &err));
	OK(ibmr_ctx_close(other, &err));
	assert_int_equal(g.num, 0);
}

/* ---- layouts by chance --------------------------------------------------------------------- */

static uint64_t seed;

static uint64_t below(uint64_t n)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (seed >> 33) % n;
}

/* Entries of one length now and then, since those are found in another way. */
static struct ibmr_mr *by_chance(const char *name, struct ibmr_mr *const *members, uint64_t num)
{
	uint64_t n = 1 + below(6), same = below(2) ? 1 + below(20) : 0, count = 1 + below(5), i;
	struct ibmr_block blocks[6];
	struct ibmr_klm klms[6];

	for (i = 0; i < n; i++) {
		struct ibmr_mr *m = members[below(num)];
		uint64_t have = info_of(m).length, length, offset;

		length = same && same <= have ? same : 1 + below(have < 40 ? have : 40);
		offset = below(have - length + 1);
		klms[i] = (struct ibmr_klm){ m, offset, length };
		blocks[i] = (struct ibmr_block){ m, offset, length, 0 };
		if (count > 1)
			blocks[i].stride = below((have - length - offset) / (count - 1) + 1);
		if (blocks[i].stride > 50)
			blocks[i].stride = below(50);
	}
	return below(2) ? list(name, klms, n) : repeat(name, blocks, n, count);
}

struct byte_at {
	struct ibmr_mr *mr;
	uint64_t offset;
	bool seen;
};

struct model {
	struct byte_at *bytes;
	uint64_t next;
	struct ibmr_mr *of;
	uint64_t offset, places;
};

static int note_bytes(void *arg, const struct ibmr_piece *p)
{
	struct model *m = arg;
	uint64_t i;

	assert_int_equal(p->at, m->next);
	for (i = 0; i < p->length; i++)
		m->bytes[p->at + i] = (struct byte_at){ p->mr, p->offset + i, false };
	m->next += p->length;
	return 0;
}

static int check_place(void *arg, uint64_t at)
{
	struct model *m = arg;

	assert_ptr_equal(m->bytes[at].mr, m->of);
	assert_int_equal(m->bytes[at].offset, m->offset);
	assert_false(m->bytes[at].seen);
	m->bytes[at].seen = true;
	m->places++;
	return 0;
}

static int check_same(void *arg, const struct ibmr_piece *p)
{
	const struct model *m = arg;

	assert_ptr_equal(p->mr, m->bytes[p->at].mr);
	assert_int_equal(p->offset, m->bytes[p->at].offset);
	return 0;
}

/* The places of each byte of both buffers are all bytes of the MR, each once; and any range is the part
 * of the whole that it should be. */
static void check_mr(struct ibmr_mr *mr)
{
	uint64_t length = info_of(mr).length, i, from;
	struct model m = { .bytes = calloc(length, sizeof(*m.bytes)) };
	struct ibmr_err err;

	assert_non_null(m.bytes);
	OK(ibmr_mr_translate(mr, 0, IBMR_TO_END, note_bytes, &m, &err));
	assert_int_equal(m.next, length);
	for (i = 0; i < 600; i++) {
		m.of = i % 2 ? a : b;
		m.offset = i / 2;
		OK(ibmr_mr_locate(mr, m.of, m.offset, check_place, &m, &err));
	}
	for (i = 0; i < length; i++)
		if (m.bytes[i].offset < 300 && !m.bytes[i].seen)
			fail_msg("byte %llu of '%s' is not found", (unsigned long long)i, mr->name);
	for (i = 0; i < 20; i++) {
		from = below(length);
		OK(ibmr_mr_translate(mr, from, 1 + below(length - from), check_same, &m, &err));
	}
	free(m.bytes);
}

static void both_ways_agree_on_layouts_by_chance(void **state)
{
	struct ibmr_mr *mrs[5] = { a, b };
	struct ibmr_err err;
	char name[16];
	int round, i;

	for (round = 0; round < 300; round++) {
		seed = (uint64_t)round;
		for (i = 2; i < 5; i++) {
			snprintf(name, sizeof(name), "%d.%d", round, i);
			mrs[i] = by_chance(name, mrs, (uint64_t)i);
			check_mr(mrs[i]);
		}
		for (i = 4; i >= 2; i--)
			OK(ibmr_mr_dereg(mrs[i], &err));
	}
}

/* Lists so long that marks are searched before the entries, byte by byte. */
static void long_lists_are_searched_right(void **state)
{
	static const uint64_t nums[] = { 17, 32, 33, 34, 48, 49, 64, 65, 1000 };
	struct ibmr_mr *large = reg("large", 1 << 20), *mr;
	struct ibmr_klm klms[1000];
	struct ibmr_err err;
	uint64_t i, k, at, n;
	struct got g;

	for (k = 0; k < sizeof(nums) / sizeof(nums[0]); k++) {
		for (i = 0; i < nums[k]; i++)
			klms[i] = (struct ibmr_klm){ large, i * 1000, 1 + i * 7 % 13 };
		mr = list("long", klms, nums[k]);
		for (i = 0, at = 0; i < nums[k]; at += klms[i++].length) {
			for (n = 0; n < klms[i].length; n++) {
				g.num = g.end_at = 0;
				OK(ibmr_mr_translate(mr, at + n, 1, take_piece, &g, &err));
				assert_int_equal(g.num, 1);
				PIECE(0, at + n, large, i * 1000 + n, 1);
			}
		}
		assert_int_equal(info_of(mr).length, at);
		OK(ibmr_mr_dereg(mr, &err));
	}
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(pieces_come_in_order_and_add_up),
		T(all_levels_are_gone_through),
		T(all_places_are_found),
		T(the_caller_can_end_it),
		T(a_search_ends_with_its_time),
		T(what_is_not_there_is_refused),
		T(long_lists_are_searched_right),
		T(both_ways_agree_on_layouts_by_chance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
