/* SPDX-License-Identifier: BSD-2-Clause */
/* From key to memory where there is much of it: long lists and many pieces. */
#include <stdio.h>

#include "flat.h"

/* Many small pieces, more than one window of the copying. */
static void many_pieces(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const size_t bytes = 700000, grid = bytes * 2;
	uint8_t *from = malloc(bytes), *to = calloc(1, grid);
	struct ibv_mr *from_mr = ibv_reg_mr(r->pd, from, bytes, ALL_ACCESS);
	struct ibv_mr *to_mr = ibv_reg_mr(r->pd, to, grid, ALL_ACCESS);
	const struct klm b[] = { BLOCK(to_mr, to, 1, 2) };

	assert_true(from && to && from_mr && to_mr);
	for (size_t i = 0; i < bytes; i++)
		from[i] = (uint8_t)(i * 13 + (i >> 9));
	fill_repeat(r, m, ALL_ACCESS, (uint32_t)bytes, b, 1);
	post_rdma(r->qp, 6, IBV_WR_RDMA_WRITE, sge(from_mr, from, (uint32_t)bytes), m->rkey, 0);
	expect_wc(r->cq, 6, IBV_WC_SUCCESS);
	for (size_t i = 0; i < bytes; i++)
		if (to[2 * i] != from[i] || to[2 * i + 1])
			fail_msg("byte %zu", i);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(from_mr), 0);
	assert_int_equal(ibv_dereg_mr(to_mr), 0);
	free(from);
	free(to);
}

#define LONG_LIST 203

/* 203 entries, of many lengths or one, some without any, by list memory; ranges of it against the model.
 * other: every seventh entry goes by this key. */
static void check_long_list(struct rig *r, uint32_t most, const struct ibv_mr *other)
{
	struct mlx5dv_mkey *m = make_mkey(r->pd, LONG_LIST + 1);
	struct mlx5_wqe_umr_klm_seg *table = aligned_alloc(4096, 4096);
	struct ibv_mr *mr = ibv_reg_mr(r->pd, table, 4096, IBV_ACCESS_LOCAL_WRITE);
	static struct klm klms[LONG_LIST];
	static struct flat f;
	struct umr u;

	assert_true(table && mr);
	memset(table, 0, 4096);
	for (uint32_t i = 0; i < LONG_LIST; i++) {
		uint32_t bytes = most > 64 ? below(5) * below(most / 5) : most;

		klms[i] = (struct klm)KLM(i % 7 == 6 ? other : r->mr, r->buf + (size_t)i * 300,
					  bytes);
		table[i].byte_count = htobe32(bytes);
		table[i].mkey = htobe32(klms[i].mr->lkey);
		table[i].address = htobe64((uintptr_t)klms[i].at);
	}
	flat_list(&f, klms, LONG_LIST);
	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, f.num);
	umr_pointer(&u, LONG_LIST + 1, sge(mr, table, 4096));
	post_umr(r->qp, 1, &u);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	for (int round = 0; round < 60; round++) {
		uint32_t off = below(f.num), left = f.num - off;

		check_range(r, m->rkey, &f, off, 1 + below(round % 2 ? left : left % 40));
	}
	check_range(r, m->rkey, &f, 0, f.num);
	check_ends(r, m->rkey, 0, f.num);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(table);
}

static void long_lists(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *other = ibv_reg_mr(r->pd, r->buf, BUF_BYTES, ALL_ACCESS);

	assert_non_null(other);
	seed = 11;
	check_long_list(r, 8, r->mr);
	check_long_list(r, 64, r->mr);
	check_long_list(r, 8, other);
	for (int i = 0; i < 4; i++) {
		check_long_list(r, 150, r->mr);
		check_long_list(r, 150, other);
	}
	assert_int_equal(ibv_dereg_mr(other), 0);
}

/* Pieces of one length have a loop of their own. */
static void null_pieces_among_equal_ones(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(r->pd);
	struct mlx5dv_mkey *m = make_mkey(r->pd, 40);
	uint8_t *local = r->buf + BUF_BYTES / 2;
	struct klm klms[40];

	assert_non_null(null);
	for (uint32_t i = 0; i < 40; i++)
		klms[i] = i % 5 == 4 ? (struct klm){ .key = null->lkey, .bytes = 8 }
				     : (struct klm)KLM(r->mr, r->buf + (size_t)i * 32, 8);
	fill_list(r, m, ALL_ACCESS, klms, 40);
	for (uint32_t i = 0; i < 320; i++)
		local[i] = (uint8_t)(1 + i % 255);
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, sge(r->mr, local, 320), m->rkey, 0);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	memset(local, 0xee, 320);
	post_rdma(r->qp, 2, IBV_WR_RDMA_READ, sge(r->mr, local, 320), m->rkey, 0);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < 320; i++)
		assert_int_equal(local[i], i / 8 % 5 == 4 ? 0 : 1 + i % 255);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

/* Enough of them to go by plain loads and stores. */
static void null_pieces_among_many(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(r->pd);
	struct mlx5dv_mkey *m = make_mkey(r->pd, 24);
	uint8_t *local = r->buf + BUF_BYTES / 2;
	struct klm klms[24];
	uint32_t at = 0, total;

	assert_non_null(null);
	for (uint32_t i = 0; i < 24; i++) {
		if (i % 3 == 1)
			klms[i] = (struct klm){ .key = null->lkey, .bytes = 8 + i };
		else
			klms[i] = (struct klm)KLM(r->mr, r->buf + (size_t)i * 1024, 1 + i * i);
	}
	fill_list(r, m, ALL_ACCESS, klms, 24);
	total = klm_bytes(klms, 24);
	for (uint32_t i = 0; i < total; i++)
		local[i] = (uint8_t)(1 + i % 255);
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, sge(r->mr, local, total), m->rkey, 0);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	memset(local, 0xee, total);
	post_rdma(r->qp, 2, IBV_WR_RDMA_READ, sge(r->mr, local, total), m->rkey, 0);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < 24; i++)
		for (uint32_t k = 0; k < klms[i].bytes; k++, at++)
			assert_int_equal(local[at], i % 3 == 1 ? 0 : 1 + at % 255);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_pieces),
		TEST(long_lists),
		TEST(null_pieces_among_many),
		TEST(null_pieces_among_equal_ones),
	};

	return cmocka_run_group_tests_name("pieces", tests, NULL, NULL);
}
