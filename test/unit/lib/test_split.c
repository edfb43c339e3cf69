/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists that one key cannot hold, on a device whose keys hold 64 entries. */
#include "soft_test.h"

#define ALL (LW | RW | RR | RA)

static struct ibmr_klm *klms;

/* 8-byte pieces of a, in an order of their own, as many as asked; all of a is 8 * num bytes. */
static void pieces(struct ibmr_mr *a, uint64_t num)
{
	uint64_t i;

	free(klms);
	klms = calloc(num, sizeof(*klms));
	assert_non_null(klms);
	for (i = 0; i < num; i++)
		klms[i] = (struct ibmr_klm){ a, i * 7919 % num * 8, 8 };
}

static int setup(void **state)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	struct ibmr_err err;

	soft_setup_bare(state);
	soft_word("max_klms", "64");
	OK(ibmr_ctx_open(&opts, &soft, &err));
	return 0;
}

static int teardown(void **state)
{
	free(klms);
	klms = NULL;
	return soft_teardown(state);
}

static struct ibmr_mr *create(const char *name, uint64_t max_klms)
{
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;

	OK(ibmr_mr_create_split(soft, name, max_klms, &mr, &err));
	return mr;
}

static int fill(struct ibmr_mr *mr, uint64_t num, bool split, uint64_t base, struct ibmr_err *err)
{
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_LIST,
				 .access = ALL,
				 .base = base,
				 .num = num,
				 .split = split,
				 .klms = klms };

	return ibmr_mr_fill(mr, &l, err);
}

/* Every byte, in both directions. */
static void moves(struct ibmr_mr *mr, struct ibmr_mr *a, uint64_t num)
{
	uint8_t *want = malloc(num * 8);
	struct ibmr_err err;
	uint64_t i;

	assert_non_null(want);
	for (i = 0; i < num; i++)
		memcpy(want + i * 8, bytes_of(a) + klms[i].offset, 8);
	reads_as(mr, 0, want, num * 8);
	for (i = 0; i < num * 8; i++)
		want[i] = (uint8_t)(want[i] ^ (i * 5 + 1));
	OK(ibmr_mr_write(mr, 0, want, num * 8, 0, &err));
	for (i = 0; i < num; i++)
		assert_memory_equal(want + i * 8, bytes_of(a) + klms[i].offset, 8);
	free(want);
}

static void a_tree_is_as_deep_as_it_must_be(void **state)
{
	static const struct {
		uint64_t num, keys, entries;
		uint32_t levels;
	} shapes[] = {
		{ 1, 1, 1, 1 },
		{ 64, 1, 64, 1 },
		{ 65, 3, 65 + 2, 2 },
		{ 4096, 65, 4096 + 64, 2 },
		{ 4097, 1 + 2 + 65, 4097 + 65 + 2, 3 },
		{ 20000, 1 + 5 + 313, 20000 + 313 + 5, 3 },
	};
	struct ibmr_mr *a = soft_reg("a", 160000, ALL), *x = create("x", 20000);
	struct ibmr_err err;
	size_t i;

	for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		struct ibmr_mr_info info;

		pieces(a, shapes[i].num);
		ramp(a, (uint8_t)i);
		OK(fill(x, shapes[i].num, true, 0, &err));
		info = info_of(x);
		assert_int_equal(info.levels, shapes[i].levels);
		assert_int_equal(info.keys, shapes[i].keys);
		assert_int_equal(info.entries, shapes[i].entries);
		assert_int_equal(info.form == IBMR_FORM_TREE, shapes[i].levels > 1);
		/* those of the layout before are gone */
		assert_int_equal(soft_counter("live.devx"), shapes[i].keys);
		moves(x, a, shapes[i].num);
	}
	OK(ibmr_mr_invalidate(x, &err));
	assert_int_equal(soft_counter("live.devx"), 1);
	assert_int_equal(info_of(x).keys, 1);
	assert_int_equal(info_of(x).levels, 0);
	OK(fill(x, 5000, true, 0, &err));
	OK(ibmr_mr_dereg(x, &err));
	assert_int_equal(soft_counter("live.devx"), 0);
}

static void only_where_both_ask_for_it(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 1000, ALL), *x = create("x", 100), *y;
	struct ibmr_err err;

	pieces(a, 100);
	REFUSED(fill(x, 100, false, 0, &err), E2BIG, IBMR_E_LIMIT);
	SAYS("100");
	SAYS("64");
	assert_non_null(strstr(err.hint, "split"));
	REFUSED(fill(x, 101, true, 0, &err), E2BIG, IBMR_E_LIMIT);
	REFUSED(ibmr_mr_create(soft, "y", 100, &y, &err), E2BIG, IBMR_E_LIMIT);
	assert_non_null(strstr(err.hint, "split"));
	y = soft_create("y", 64);
	REFUSED(fill(y, 65, true, 0, &err), E2BIG, IBMR_E_LIMIT);
	OK(fill(y, 64, true, 0, &err));
	REFUSED(ibmr_mr_create_split(soft, "z", 1ull << 40, &y, &err), E2BIG, IBMR_E_LIMIT);
	REFUSED(ibmr_mr_create_split(soft, "z", 0, &y, &err), EINVAL, IBMR_E_ARGUMENT);
}

/* Byte by byte: 3 blocks, each over its own 100 bytes of a cycle. */
static void check_unrolled(struct ibmr_mr *x, struct ibmr_mr *a, const struct ibmr_block *blocks,
			   uint64_t count)
{
	uint64_t c, i, at = 0;

	for (c = 0; c < count; c++) {
		for (i = 0; i < 3; i++) {
			reads_as(x, at, bytes_of(a) + blocks[i].offset + c * blocks[i].stride,
				 blocks[i].length);
			at += blocks[i].length;
		}
	}
	assert_int_equal(info_of(x).length, at);
}

static void a_repeat_that_one_key_holds_stays_one(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 300000, ALL), *x = create("x", 3);
	struct ibmr_block blocks[] = { { a, 5, 7, 11 }, { a, 100, 3, 65535 }, { a, 9, 20, 0 } };
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_REPEAT,
				 .access = ALL,
				 .count = 4,
				 .num = 3,
				 .split = true,
				 .blocks = blocks };
	struct ibmr_err err;

	ramp(a, 5);
	OK(ibmr_mr_fill(x, &l, &err));
	assert_int_equal(info_of(x).entries, 4);
	assert_int_equal(info_of(x).form, IBMR_FORM_INLINE);
	check_unrolled(x, a, blocks, 4);
	/* a stride that no block says: the list of its pieces; and so many that they are a tree */
	blocks[1].stride = 65536;
	OK(ibmr_mr_fill(x, &l, &err));
	assert_int_equal(info_of(x).entries, 12);
	assert_int_equal(info_of(x).levels, 1);
	check_unrolled(x, a, blocks, 4);
	blocks[1] = (struct ibmr_block){ a, 100, 65536, 1000 };
	l.count = 50;
	OK(ibmr_mr_fill(x, &l, &err));
	assert_int_equal(info_of(x).levels, 2);
	assert_int_equal(info_of(x).entries, 150 + 3);
	check_unrolled(x, a, blocks, 50);
	/* its bounds are those of a repeat */
	l.count = 300;
	REFUSED(ibmr_mr_fill(x, &l, &err), EFAULT, IBMR_E_RANGE);
	assert_int_equal(err.index, 1);
	blocks[1].stride = 0;
	l.count = 1u << 26;
	blocks[0].stride = 0;
	REFUSED(ibmr_mr_fill(x, &l, &err), E2BIG, IBMR_E_LIMIT);
	SAYS("cycles of 3 blocks");
	check_unrolled(
		x, a,
		(struct ibmr_block[]){ { a, 5, 7, 11 }, { a, 100, 65536, 1000 }, { a, 9, 20, 0 } },
		50);
	l.split = false;
	l.count = 1;
	REFUSED(ibmr_mr_fill(x, &l, &err), E2BIG, IBMR_E_LIMIT);
}

static void more_blocks_than_a_key_has(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 4096, ALL), *x = create("x", 100);
	struct ibmr_block blocks[64];
	struct ibmr_layout l = { .kind = IBMR_LAYOUT_REPEAT,
				 .access = LW,
				 .count = 2,
				 .num = 64,
				 .split = true,
				 .blocks = blocks };
	struct ibmr_err err;
	int i;

	for (i = 0; i < 64; i++)
		blocks[i] = (struct ibmr_block){ a, 8 * (uint64_t)i, 8, 512 };
	OK(ibmr_mr_fill(x, &l, &err));
	assert_int_equal(info_of(x).levels, 2);
	assert_int_equal(info_of(x).entries, 128 + 2);
	l.num = 63;
	OK(ibmr_mr_fill(x, &l, &err));
	assert_int_equal(info_of(x).levels, 1);
	assert_int_equal(info_of(x).entries, 64);
	l.num = 64;
	l.split = false;
	REFUSED(ibmr_mr_fill(x, &l, &err), E2BIG, IBMR_E_LIMIT);
}

static void levels_count_for_the_device(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 8000, ALL), *x = create("x", 5000);
	struct ibmr_mr *in = soft_create("in", 1), *in2 = soft_create("in2", 1);
	struct ibmr_klm one = { a, 0, 8000 }, two = { in, 0, 8000 };
	struct ibmr_mr *out = soft_create("out", 1), *out2 = soft_create("out2", 1);
	struct ibmr_klm of_x = { x, 0, 8 }, of_out = { out, 0, 8 };
	struct ibmr_err err;

	soft_fill_list(in, ALL, &one, 1);
	soft_fill_list(in2, ALL, &two, 1);
	pieces(in2, 1000);
	OK(fill(x, 1000, true, 0, &err)); /* two levels over two */
	moves(x, a, 1000);
	soft_dereg(x);
	x = create("x", 5000);
	of_x.mr = x;
	pieces(in2, 100);
	OK(fill(x, 64, true, 0, &err));
	soft_fill_list(out, LW, &of_x, 1); /* four levels: no more */
	REFUSED(fill(x, 100, true, 0, &err), ELOOP, IBMR_E_NESTING);
	assert_int_equal(info_of(x).levels, 1);
	pieces(a, 1000);
	OK(fill(x, 1000, true, 0, &err));
	soft_fill_list(out2, LW, &of_out, 1); /* a, x's two, out, out2 */
	OK(ibmr_mr_invalidate(out2, &err));
	soft_fill_list(out2, LW, &of_out, 1);
	free(klms);
	klms = calloc(5000, sizeof(*klms));
	for (int i = 0; i < 5000; i++)
		klms[i] = (struct ibmr_klm){ a, 0, 8 };
	REFUSED(fill(x, 5000, true, 0, &err), ELOOP, IBMR_E_NESTING);
	assert_int_equal(soft_counter("live.devx"), 2 + 2 + 1 + 16);
}

static void a_device_of_one_level_has_no_trees(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 1000, ALL), *x = create("x", 100);
	struct ibmr_err err;

	soft->caps.max_depth = 1;
	pieces(a, 100);
	REFUSED(fill(x, 100, true, 0, &err), E2BIG, IBMR_E_LIMIT);
	assert_string_equal(err.cause, "depth");
	SAYS("the 1 that device");
}

/* Keys that cannot be made, and work requests that fail, one after the other. */
static void a_failure_leaves_the_old_layout(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 40000, ALL), *x = create("x", 5000);
	uint64_t keys;
	struct ibmr_err err;
	char word[64];
	int i;

	ramp(a, 1);
	pieces(a, 100);
	OK(fill(x, 100, true, 0, &err));
	keys = soft_counter("live.devx");
	for (i = 1; i <= 81; i += 10) {
		pieces(a, 5000);
		snprintf(word, sizeof(word), "devx_create:%d:EAGAIN", i);
		soft_word("fail", word);
		REFUSED(fill(x, 5000, true, 0, &err), EAGAIN, IBMR_E_KEY_TABLE);
		assert_string_equal(err.origin, "mlx5dv_create_mkey");
		assert_int_equal(soft_counter("live.devx"), keys);
		assert_int_equal(info_of(x).length, 800);
		pieces(a, 100);
		moves(x, a, 100);
	}
	for (i = 1; i <= 81; i += 8) {
		pieces(a, 5000);
		snprintf(word, sizeof(word), "%d", i);
		soft_word("fail_wqe", word);
		REFUSED(fill(x, 5000, true, 0, &err), EIO, IBMR_E_COMPLETION);
		assert_int_equal(soft_counter("live.devx"), keys);
		assert_int_equal(info_of(x).state, IBMR_STATE_FILLED);
		pieces(a, 100);
		moves(x, a, 100);
	}
}

/* The MR's own work request: the device may have either layout, so that both keep their keys. */
static void an_unknown_tree_keeps_both(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 40000, ALL), *x = create("x", 5000);
	struct ibmr_err err;

	pieces(a, 100);
	OK(fill(x, 100, true, 0, &err));
	pieces(a, 200);
	soft_word("fail_wqe", "5");
	REFUSED(fill(x, 200, true, 0, &err), EIO, IBMR_E_COMPLETION);
	assert_int_equal(info_of(x).state, IBMR_STATE_UNKNOWN);
	assert_int_equal(soft_counter("live.devx"), 1 + 2 + 4);
	assert_int_equal(info_of(x).keys, 1 + 2 + 4);
	OK(fill(x, 200, true, 0, &err));
	assert_int_equal(soft_counter("live.devx"), 1 + 4);
	moves(x, a, 200);
}

static void keys_that_stay_are_destroyed_later(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 40000, ALL), *x = create("x", 5000);
	struct ibmr_err err;

	pieces(a, 200);
	OK(fill(x, 200, true, 0, &err));
	soft_word("fail", "devx_destroy:2:EIO");
	OK(ibmr_mr_invalidate(x, &err));
	assert_int_equal(soft_counter("live.devx"), 1 + 3);
	OK(ibmr_mr_dereg(x, &err));
	assert_int_equal(soft_counter("live.devx"), 0);
}

static void with_a_base_and_a_refill(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 8000, ALL), *x = create("x", 1000);
	uint32_t rkey = info_of(x).rkey;
	struct ibmr_err err;

	pieces(a, 1000);
	ramp(a, 9);
	OK(fill(x, 1000, true, 0xffffffffffff0004, &err));
	REFUSED(fill(x, 1000, true, UINT64_MAX - 7998, &err), EFAULT, IBMR_E_RANGE);
	OK(fill(x, 1000, true, UINT64_MAX - 7999, &err));
	moves(x, a, 1000);
	assert_int_equal(info_of(x).rkey, rkey);
	OK(fill(x, 10, true, 0x1234567, &err));
	moves(x, a, 10);
	assert_int_equal(soft_counter("live.devx"), 1);
}

/* An on-demand MR so large that entries, and what lower keys hold, pass 2 GiB. */
static void long_entries_are_divided(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 7 * GIB, ALL | OD), *x = create("x", 200);
	static const uint64_t at[] = { 0, 2 * GIB - 8, 2 * GIB - 5000, 4 * GIB, 6 * GIB + 4096 };
	struct ibmr_err err;
	uint64_t i, old, base;

	klms = calloc(200, sizeof(*klms));
	klms[0] = (struct ibmr_klm){ lazy, 4, 7 * GIB - 4 };
	klms[1] = (struct ibmr_klm){ lazy, 0, 10 };
	REFUSED(fill(x, 2, false, 0, &err), E2BIG, IBMR_E_LIMIT);
	for (base = 0; base < 8; base += 4) {
		OK(fill(x, 2, true, base, &err));
		assert_int_equal(info_of(x).entries, 5);
		assert_int_equal(info_of(x).levels, 1);
		assert_true(info_of(x).length == 7 * GIB + 6);
		for (i = 0; i < 5; i++) {
			OK(ibmr_mr_write(x, at[i] + 1, "1234567", 7, 0, &err));
			assert_memory_equal(bytes_of(lazy) + 5 + at[i], "1234567", 7);
		}
		reads_as(x, 7 * GIB - 6, "\0\0\0\0", 2);
	}
	/* an aligned atomic is never cut: its address decides, wherever the cuts are */
	for (i = 2 * GIB - 8188; i < 2 * GIB + 8192; i += 8)
		OK(ibmr_mr_fetch_add(x, i, 1, &old, 0, &err));
	/* 100 entries of 100 MiB: each of the two keys below holds more than an entry of the root carries */
	for (i = 0; i < 100; i++)
		klms[i] = (struct ibmr_klm){ lazy, i % 60 * 100 * MIB + 8 * i, 100 * MIB };
	OK(fill(x, 100, true, 0, &err));
	assert_int_equal(info_of(x).levels, 2);
	assert_int_equal(info_of(x).entries, 100 + 4 + 2);
	for (i = 0; i < 100; i++) {
		uint8_t mark[2] = { (uint8_t)i, (uint8_t)(i + 1) };

		OK(ibmr_mr_write(x, i * 100 * MIB + 100 * MIB - 2, mark, 2, 0, &err));
		assert_memory_equal(bytes_of(lazy) + klms[i].offset + 100 * MIB - 2, mark, 2);
	}
	/* nor where the root divides what a key below holds */
	for (i = 0; i < 100; i++)
		klms[i].offset += 4;
	OK(fill(x, 100, true, 4, &err));
	for (i = 2 * GIB - 8188; i < 2 * GIB + 8192; i += 8)
		OK(ibmr_mr_fetch_add(x, i, 1, &old, 0, &err));
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MANY (1u << 20)
#else
#define MANY (1u << 24)
#endif

/* On a device as it is: keys of 65,532 entries. */
static void sixteen_million_entries(void **state)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	struct ibmr_mr *a, *x;
	struct ibmr_err err;
	uint64_t i, at;

	OK(ibmr_ctx_open(&opts, &soft, &err));
	ibmr_ctx_set_timeout(soft, 60000);
	a = soft_reg("a", 8ull * MANY, ALL);
	x = create("x", MANY);
	for (i = 0; i < MANY; i++)
		((uint64_t *)bytes_of(a))[i] = i * 0x9e3779b97f4a7c15;
	pieces(a, MANY);
	OK(fill(x, MANY, true, 0, &err));
	assert_int_equal(info_of(x).levels, 2);
	assert_int_equal(info_of(x).keys, 1 + (MANY + 65531) / 65532);
	for (i = 0; i < 2000; i++) {
		at = i == 1999 ? MANY - 1 : i * 104729 % MANY;
		reads_as(x, at * 8, bytes_of(a) + klms[at].offset, 8);
	}
	/* across two of the keys */
	reads_as(x, 65532ull * 8 - 4, bytes_of(a) + klms[65531].offset + 4, 4);
	OK(ibmr_mr_write(x, 65532ull * 8 - 1, "ab", 2, 0, &err));
	assert_int_equal(bytes_of(a)[klms[65531].offset + 7], 'a');
	assert_int_equal(bytes_of(a)[klms[65532].offset], 'b');
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_tree_is_as_deep_as_it_must_be),
		T(only_where_both_ask_for_it),
		T(a_repeat_that_one_key_holds_stays_one),
		T(more_blocks_than_a_key_has),
		T(levels_count_for_the_device),
		T(a_device_of_one_level_has_no_trees),
		T(a_failure_leaves_the_old_layout),
		T(an_unknown_tree_keeps_both),
		T(keys_that_stay_are_destroyed_later),
		T(with_a_base_and_a_refill),
		T(long_entries_are_divided),
		cmocka_unit_test_setup_teardown(sixteen_million_entries, soft_setup_bare, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
