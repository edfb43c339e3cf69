/* SPDX-License-Identifier: BSD-2-Clause */
/* From key to memory: lists, repeats, nesting, bounds, rights. */
#include <stdio.h>

#include "flat.h"

/* ---- forms --------------------------------------------------------------------------- */

static void plain_mr_ends(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf + 1000, 100, ALL_ACCESS);

	assert_non_null(mr);
	check_ends(r, mr->rkey, (uintptr_t)r->buf + 1000, 100);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void random_lists(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 16);
	static struct flat f;
	struct klm klms[16];

	seed = 1;
	for (int round = 0; round < 60; round++) {
		uint32_t num = 1 + below(16);

		for (uint32_t i = 0; i < num; i++) {
			uint32_t bytes = below(4) ? 1 + below(600) : 1 + below(3);

			klms[i] = (struct klm)KLM(r->mr, r->buf + below(50000), bytes);
		}
		flat_list(&f, klms, num);
		fill_list(r, m, ALL_ACCESS, klms, num);
		check_range(r, m->rkey, &f, 0, f.num);
		for (int k = 0; k < 5; k++) {
			uint32_t off = below(f.num);

			check_range(r, m->rkey, &f, off, 1 + below(f.num - off));
		}
		check_ends(r, m->rkey, 0, f.num);
	}
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void random_repeats(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 8);
	static struct flat f;
	struct klm blocks[7];

	seed = 2;
	for (int round = 0; round < 60; round++) {
		uint32_t num = 1 + below(7), count = 1 + below(20);

		for (uint32_t i = 0; i < num; i++) {
			/* Strides of 0, less than the block, as the block, more. */
			uint32_t bytes = 1 + below(90);
			uint16_t strides[] = { 0, (uint16_t)(bytes / 2), (uint16_t)bytes,
					       (uint16_t)below(1500) };

			blocks[i] = (struct klm)BLOCK(r->mr, r->buf + below(30000), bytes,
						      strides[below(4)]);
		}
		flat_repeat(&f, count, blocks, num);
		fill_repeat(r, m, ALL_ACCESS, count, blocks, num);
		check_range(r, m->rkey, &f, 0, f.num);
		for (int k = 0; k < 5; k++) {
			uint32_t off = below(f.num);

			check_range(r, m->rkey, &f, off, 1 + below(f.num - off));
		}
		check_ends(r, m->rkey, 0, f.num);
	}
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* A list over a repeat over a list, each seen from its middle. */
static void nested(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *in = make_mkey(r->pd, 4), *mid = make_mkey(r->pd, 4),
			   *out = make_mkey(r->pd, 4);
	const struct klm in_k[] = { KLM(r->mr, r->buf + 100, 30), KLM(r->mr, r->buf + 3000, 50) };
	const struct klm mid_k[] = { { .key = in->lkey, .addr = 20, .bytes = 15, .stride = 5 },
				     BLOCK(r->mr, r->buf + 7000, 4, 9) };
	const struct klm out_k[] = { { .key = mid->lkey, .addr = 3, .bytes = 100 },
				     KLM(r->mr, r->buf + 9000, 7),
				     { .key = in->lkey, .addr = 25, .bytes = 10 } };
	static struct flat fin, fmid, fout;

	flat_list(&fin, in_k, 2);
	for (uint32_t c = 0; c < 10; c++) {
		for (uint32_t i = 0; i < 15; i++)
			flat_add(&fmid, fin.at[20 + c * 5 + i], 1);
		flat_add(&fmid, r->buf + 7000 + c * 9ul, 4);
	}
	for (uint32_t i = 0; i < 100; i++)
		flat_add(&fout, fmid.at[3 + i], 1);
	flat_add(&fout, r->buf + 9000, 7);
	for (uint32_t i = 0; i < 10; i++)
		flat_add(&fout, fin.at[25 + i], 1);

	fill_list(r, in, ALL_ACCESS, in_k, 2);
	fill_repeat(r, mid, ALL_ACCESS, 10, mid_k, 2);
	fill_list(r, out, ALL_ACCESS, out_k, 3);
	check_range(r, out->rkey, &fout, 0, fout.num);
	check_range(r, out->rkey, &fout, 57, 50);
	check_ends(r, out->rkey, 0, fout.num);
	assert_int_equal(mlx5dv_destroy_mkey(out), 0);
	assert_int_equal(mlx5dv_destroy_mkey(mid), 0);
	assert_int_equal(mlx5dv_destroy_mkey(in), 0);
}

/* ---- bounds ------------------------------------------------------------------------------ */

/* Base addresses up to the very end of the address space. */
static void bases(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const struct klm k = KLM(r->mr, r->buf + 512, 256);
	const uint64_t at[] = { 0, 1, 0x1000, UINT64_C(1) << 63, UINT64_MAX - 255 };
	struct umr u;

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		umr_start(&u, r->qp, m->lkey, ALL_ACCESS, at[i], 256);
		umr_list(&u, &k, 1);
		post_umr(r->qp, 4, &u);
		expect_wc(r->cq, 4, IBV_WC_SUCCESS);
		r->buf[512 + 255] = (uint8_t)i;
		assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, at[i] + 255, 1),
				 IBV_WC_SUCCESS);
		assert_int_equal(r->buf[60000], i);
		/* One past, one before, and around the end of 64 bits. */
		assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, at[i] + 256, 1),
				 IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, at[i] - 1, 1),
				 IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, at[i] + 255, 2),
				 IBV_WC_REM_ACCESS_ERR);
	}
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* The key is longer than its list. */
static void list_ends_before_key(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const struct klm k = KLM(r->mr, r->buf, 100);
	struct umr u;

	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 200);
	umr_list(&u, &k, 1);
	post_umr(r->qp, 4, &u);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 99, 1), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 99, 2), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* An entry that runs past its own memory is refused when it is used, and only there. */
static void entry_past_its_mr(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const struct klm k[] = { KLM(r->mr, r->buf, 10), KLM(r->mr, r->buf + BUF_BYTES - 5, 10) };

	fill_list(r, m, ALL_ACCESS, k, 2);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 0, 15), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 0, 16), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* Totals beyond 4 GiB, by means of an MR that swallows what is written to it. */
static void long_totals(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *null = ibv_alloc_null_mr(r->pd);
	struct mlx5dv_mkey *m = make_mkey(r->pd, 8);
	const uint32_t big = 0x7fffffff;
	const struct klm k[] = { { .key = null->lkey, .bytes = big },
				 { .key = null->lkey, .bytes = big },
				 { .key = null->lkey, .bytes = big },
				 KLM(r->mr, r->buf + 777, 16) };
	struct umr u;

	assert_non_null(null);
	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 3ull * big + 16);
	umr_list(&u, k, 4);
	post_umr(r->qp, 4, &u);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 3ull * big, 16), IBV_WC_SUCCESS);
	assert_memory_equal(r->buf + 60000, r->buf + 777, 16);
	memset(r->buf + 60000, 0xee, 8);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 3ull * big - 4, 8), IBV_WC_SUCCESS);
	assert_memory_equal(r->buf + 60000, "\0\0\0\0", 4);
	assert_memory_equal(r->buf + 60004, r->buf + 777, 4);
	check_ends(r, m->rkey, 0, 3ull * big + 16);

	/* 2^32-1 cycles of 65535 bytes. */
	const struct klm b[] = { { .key = null->lkey, .bytes = 65535 } };
	const uint64_t total = 65535ull * UINT32_MAX;

	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, total);
	umr_repeat(&u, UINT32_MAX, b, 1);
	post_umr(r->qp, 5, &u);
	expect_wc(r->cq, 5, IBV_WC_SUCCESS);
	check_ends(r, m->rkey, 0, total);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(null), 0);
}

/* Nothing lands when the last byte of a long write is refused. */
static void all_or_nothing(void **state)
{
	struct rig *r = *state;
	const uint32_t bytes = 1 << 20;
	uint8_t *to = calloc(1, bytes), *from = malloc(bytes);
	struct ibv_mr *to_mr = ibv_reg_mr(r->pd, to, bytes - 1, ALL_ACCESS);
	struct ibv_mr *from_mr = ibv_reg_mr(r->pd, from, bytes, ALL_ACCESS);

	assert_true(to && from && to_mr && from_mr);
	memset(from, 0x55, bytes);
	post_rdma(r->qp, 7, IBV_WR_RDMA_WRITE, sge(from_mr, from, bytes), to_mr->rkey,
		  (uintptr_t)to);
	expect_wc(r->cq, 7, IBV_WC_REM_ACCESS_ERR);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(to[i], 0);
	assert_int_equal(ibv_dereg_mr(to_mr), 0);
	assert_int_equal(ibv_dereg_mr(from_mr), 0);
	free(to);
	free(from);
}

/* ---- rights, PDs, depth, dead keys ------------------------------------------------------- */

static void rights_of_a_plain_mr(void **state)
{
	struct rig *r = *state;
	static const struct {
		int access;
		enum ibv_wc_status write, read, atomic;
	} rows[] = {
		{ 0, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR },
		{ IBV_ACCESS_LOCAL_WRITE, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
		  IBV_WC_REM_ACCESS_ERR },
		{ IBV_ACCESS_REMOTE_READ, IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS,
		  IBV_WC_REM_ACCESS_ERR },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS,
		  IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR },
		{ IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC, IBV_WC_REM_ACCESS_ERR,
		  IBV_WC_REM_ACCESS_ERR, IBV_WC_SUCCESS },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, 64, rows[i].access);
		uint64_t at = (uintptr_t)r->buf;
		struct ibv_wc wc;

		assert_non_null(mr);
		assert_int_equal(probe(r, IBV_WR_RDMA_WRITE, mr->rkey, at, 1), rows[i].write);
		assert_int_equal(probe(r, IBV_WR_RDMA_READ, mr->rkey, at, 1), rows[i].read);
		post_atomic(r->qp, 8, IBV_WR_ATOMIC_FETCH_AND_ADD, sge(r->mr, r->buf + 60000, 8),
			    mr->rkey, at, 1, 0);
		wc = wait_wc(r->cq);
		assert_int_equal(wc.status, rows[i].atomic);
		if (wc.status != IBV_WC_SUCCESS)
			reconnect_self(r->qp);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

static void rights_of_an_indirect_key(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const struct klm k = KLM(r->mr, r->buf, 64);

	fill_list(r, m, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ, &k, 1);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 0, 1), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_WRITE, m->rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	fill_list(r, m, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &k, 1);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(probe(r, IBV_WR_RDMA_WRITE, m->rkey, 0, 1), IBV_WC_SUCCESS);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* A write through an outer key needs local write inside, at every level; a read needs nothing. */
static void rights_inside(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *ro = ibv_reg_mr(r->pd, r->buf, 64, 0);
	struct mlx5dv_mkey *in = make_mkey(r->pd, 4), *out = make_mkey(r->pd, 4);
	struct klm k = { .key = ro->lkey, .addr = (uintptr_t)r->buf, .bytes = 64 };

	assert_non_null(ro);
	fill_list(r, out, ALL_ACCESS, &k, 1);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, out->rkey, 0, 8), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_WRITE, out->rkey, 0, 8), IBV_WC_REM_ACCESS_ERR);

	k = (struct klm)KLM(r->mr, r->buf, 64);
	fill_list(r, in, 0, &k, 1);
	k = (struct klm){ .key = in->lkey, .bytes = 64 };
	fill_list(r, out, ALL_ACCESS, &k, 1);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, out->rkey, 0, 8), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_WRITE, out->rkey, 0, 8), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(out), 0);
	assert_int_equal(mlx5dv_destroy_mkey(in), 0);
	assert_int_equal(ibv_dereg_mr(ro), 0);
}

/* The requester's own memory: local write to land a read, the right key, the right bounds. */
/* That one is good says nothing about the next. */
static void rights_of_each_member(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct ibv_mr *readable = ibv_reg_mr(r->pd, r->buf, 1000, IBV_ACCESS_REMOTE_READ);
	const struct klm k[] = { KLM(r->mr, r->buf + 10, 8), KLM(readable, r->buf + 300, 8) };

	assert_non_null(readable);
	fill_list(r, m, ALL_ACCESS, k, 2);
	assert_int_equal(probe(r, IBV_WR_RDMA_WRITE, m->rkey, 0, 8), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 0, 16), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_WRITE, m->rkey, 0, 16), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(readable), 0);
}

static void rights_of_local_memory(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *ro = ibv_reg_mr(r->pd, r->buf, 64, 0);
	struct ibv_sge s = sge(ro, r->buf, 8);

	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	post_rdma(r->qp, 2, IBV_WR_RDMA_READ, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 2, IBV_WC_LOC_PROT_ERR);
	reconnect_self(r->qp);
	s.length = 65;
	post_rdma(r->qp, 3, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 3, IBV_WC_LOC_PROT_ERR);
	reconnect_self(r->qp);
	s = (struct ibv_sge){ .addr = (uintptr_t)r->buf, .length = 8, .lkey = 0xabcdef00 };
	post_rdma(r->qp, 4, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 4, IBV_WC_LOC_PROT_ERR);
	reconnect_self(r->qp);
	assert_int_equal(ibv_dereg_mr(ro), 0);
}

static void another_pd(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, r->buf, 64, ALL_ACCESS);
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct klm k = { .key = mr->lkey, .addr = (uintptr_t)r->buf, .bytes = 64 };

	assert_true(pd && mr);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, mr->rkey, (uintptr_t)r->buf, 1),
			 IBV_WC_REM_ACCESS_ERR);
	fill_list(r, m, ALL_ACCESS, &k, 1);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void depth(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m[5];
	struct klm k = KLM(r->mr, r->buf, 64);

	for (int i = 0; i < 5; i++) {
		m[i] = make_mkey(r->pd, 4);
		fill_list(r, m[i], ALL_ACCESS, &k, 1);
		k = (struct klm){ .key = m[i]->lkey, .bytes = 64 };
	}
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m[3]->rkey, 0, 1), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m[4]->rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	set("max_depth", "2");
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m[1]->rkey, 0, 1), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m[2]->rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	set("max_depth", "4");

	/* A circle has no bottom. */
	k = (struct klm){ .key = m[1]->lkey, .bytes = 64 };
	fill_list(r, m[0], ALL_ACCESS, &k, 1);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m[0]->rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	for (int i = 0; i < 5; i++)
		assert_int_equal(mlx5dv_destroy_mkey(m[i]), 0);
}

static void dead_keys(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, 64, ALL_ACCESS);
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct klm k = { .key = mr->lkey, .addr = (uintptr_t)r->buf, .bytes = 64 };
	uint32_t rkey = m->rkey;

	/* Never filled. */
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	fill_list(r, m, ALL_ACCESS, &k, 1);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, rkey, 0, 1), IBV_WC_SUCCESS);
	/* Another tag. */
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, rkey | 7, 0, 1), IBV_WC_REM_ACCESS_ERR);
	/* A member that is gone, then the key itself. */
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, 0xffffff00, 0, 1), IBV_WC_REM_ACCESS_ERR);
}

/* An indirect key on the requester's side. */
static void indirect_lkey(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const struct klm k[] = { KLM(r->mr, r->buf + 10, 5), KLM(r->mr, r->buf + 300, 5) };
	struct ibv_sge s = { .addr = 2, .length = 6, .lkey = m->lkey };
	uint8_t want[6];

	fill_list(r, m, IBV_ACCESS_LOCAL_WRITE, k, 2);
	memcpy(want, r->buf + 12, 3);
	memcpy(want + 3, r->buf + 300, 3);
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 2000);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf + 2000, want, 6);
	/* It has no remote rights. */
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void split_keys(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct ibv_mr *mr;
	struct klm k;

	set("split_keys", "1");
	mr = ibv_reg_mr(r->pd, r->buf, 64, ALL_ACCESS);
	assert_non_null(mr);
	assert_int_not_equal(mr->lkey, mr->rkey);
	set("split_keys", "0");
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, mr->rkey, (uintptr_t)r->buf, 1),
			 IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, mr->lkey, (uintptr_t)r->buf, 1),
			 IBV_WC_REM_ACCESS_ERR);
	k = (struct klm){ .key = mr->lkey, .addr = (uintptr_t)r->buf, .bytes = 64 };
	fill_list(r, m, ALL_ACCESS, &k, 1);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 0, 1), IBV_WC_SUCCESS);
	k.key = mr->rkey;
	fill_list(r, m, ALL_ACCESS, &k, 1);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 0, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void on_demand_members(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	uint8_t *mem = aligned_alloc(4096, 16384);
	struct ibv_mr *mr = ibv_reg_mr(r->pd, mem, 16384, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	struct klm k[] = { KLM(mr, mem + 4000, 200), KLM(mr, mem + 12000, 300) };

	assert_true(mem && mr);
	memset(mem, 0x42, 16384);
	fill_list(r, m, ALL_ACCESS, k, 2);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, m->rkey, 150, 100), IBV_WC_SUCCESS);
	for (int i = 0; i < 100; i++)
		assert_int_equal(r->buf[60000 + i], 0x42);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(mem);
}

static void implicit_on_demand(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr = ibv_reg_mr(r->pd, NULL, SIZE_MAX, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);

	assert_non_null(mr);
	r->buf[123] = 0x77;
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, mr->rkey, (uintptr_t)r->buf + 123, 1),
			 IBV_WC_SUCCESS);
	assert_int_equal(r->buf[60000], 0x77);
	/* Nothing is mapped there. */
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, mr->rkey, 0x1000, 1), IBV_WC_REM_OP_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(plain_mr_ends),
		TEST(random_lists),
		TEST(random_repeats),
		TEST(nested),
		TEST(bases),
		TEST(list_ends_before_key),
		TEST(entry_past_its_mr),
		TEST(long_totals),
		TEST(all_or_nothing),
		TEST(rights_of_a_plain_mr),
		TEST(rights_of_an_indirect_key),
		TEST(rights_inside),
		TEST(rights_of_each_member),
		TEST(rights_of_local_memory),
		TEST(another_pd),
		TEST(depth),
		TEST(dead_keys),
		TEST(indirect_lkey),
		TEST(split_keys),
		TEST(on_demand_members),
		TEST(implicit_on_demand),
	};

	return cmocka_run_group_tests_name("translate", tests, NULL, NULL);
}
