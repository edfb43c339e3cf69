/* SPDX-License-Identifier: BSD-2-Clause */
/* UMR: what it fills, what each field of it does, and every defect that is refused. */
#include <stdio.h>

#include "rig.h"

static void use(struct rig *r, uint32_t rkey, uint64_t raddr, enum ibv_wc_status status)
{
	post_rdma(r->qp, 77, IBV_WR_RDMA_READ, sge(r->mr, r->buf + 60000, 1), rkey, raddr);
	expect_wc(r->cq, 77, status);
	if (status != IBV_WC_SUCCESS)
		reconnect_self(r->qp);
}

static void post_ok(struct rig *r, struct umr *u)
{
	post_umr(r->qp, 1, u);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
}

/* Refused: an error completion, a dead queue pair, an untouched key. */
static void post_bad(struct rig *r, struct umr *u)
{
	struct ibv_wc wc;

	post_umr(r->qp, 2, u);
	post_rdma(r->qp, 3, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 1), r->mr->rkey,
		  (uintptr_t)r->buf);
	wc = wait_wc(r->cq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, IBV_WC_MW_BIND_ERR);
	expect_wc(r->cq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(r->qp), IBV_QPS_ERR);
	reconnect_self(r->qp);
}

/* A UMR over the first 64 bytes of the buffer, to be spoilt by each test. */
static void good(struct rig *r, struct umr *u, const struct mlx5dv_mkey *m)
{
	const struct klm k = KLM(r->mr, r->buf, 64);

	umr_start(u, r->qp, m->lkey, ALL_ACCESS, 0, 64);
	umr_list(u, &k, 1);
}

/* ---- what it does ----------------------------------------------------------------- */

static void list_lands(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const struct klm klms[] = { KLM(r->mr, r->buf + 100, 10), KLM(r->mr, r->buf + 5000, 6) };
	static uint8_t want[BUF_BYTES];

	fill_list(r, m, ALL_ACCESS, klms, 2);
	memcpy(want, r->buf, BUF_BYTES);
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf + 40000, 12), m->rkey, 2);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	memcpy(want + 102, want + 40000, 8);
	memcpy(want + 5000, want + 40008, 4);
	assert_memory_equal(r->buf, want, BUF_BYTES);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* The library's own typed calls: list, interleaved, and configuring. */
static void typed_calls(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(r->qp);
	struct mlx5dv_qp_ex *dv = mlx5dv_qp_ex_from_ibv_qp_ex(qpx);
	struct mlx5dv_mkey *m = make_mkey(r->pd, 8);
	struct ibv_sge list[] = { sge(r->mr, r->buf + 1000, 3), sge(r->mr, r->buf + 2000, 3) };
	struct mlx5dv_mr_interleaved inter[] = {
		{ .addr = (uintptr_t)r->buf,
		  .bytes_count = 2,
		  .bytes_skip = 6,
		  .lkey = r->mr->lkey },
		{ .addr = (uintptr_t)r->buf + 100,
		  .bytes_count = 1,
		  .bytes_skip = 0,
		  .lkey = r->mr->lkey },
	};
	struct mlx5dv_mkey_conf_attr conf = { 0 };

	ibv_wr_start(qpx);
	qpx->wr_id = 1;
	qpx->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	mlx5dv_wr_mr_list(dv, m, IBV_ACCESS_REMOTE_READ, 2, list);
	qpx->wr_id = 2;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_rdma_read(qpx, m->rkey, 1);
	ibv_wr_set_sge(qpx, r->mr->lkey, (uintptr_t)r->buf + 50000, 4);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf + 50000, r->buf + 1001, 2);
	assert_memory_equal(r->buf + 50002, r->buf + 2000, 2);

	ibv_wr_start(qpx);
	qpx->wr_id = 3;
	qpx->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	mlx5dv_wr_mr_interleaved(dv, m, IBV_ACCESS_REMOTE_READ, 3, 2, inter);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	post_rdma(r->qp, 4, IBV_WR_RDMA_READ, sge(r->mr, r->buf + 50000, 9), m->rkey, 0);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	for (int i = 0; i < 3; i++) {
		assert_memory_equal(r->buf + 50000 + 3L * i, r->buf + 8L * i, 2);
		assert_int_equal(r->buf[50002 + 3 * i], r->buf[100 + i]);
	}

	/* Only the access changes. */
	ibv_wr_start(qpx);
	qpx->wr_id = 5;
	qpx->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	mlx5dv_wr_mkey_configure(dv, m, 1, &conf);
	mlx5dv_wr_set_mkey_access_flags(dv, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	expect_wc(r->cq, 5, IBV_WC_SUCCESS);
	use(r, m->rkey, 0, IBV_WC_REM_ACCESS_ERR);
	post_rdma(r->qp, 6, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf + 40000, 9), m->rkey, 0);
	expect_wc(r->cq, 6, IBV_WC_SUCCESS);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* The list in memory, at several lengths, and one that only pointer form can carry. */
static void pointer_list(void **state)
{
	struct rig *r = *state;
	const uint32_t num = 1000;
	struct mlx5dv_mkey *m = make_mkey(r->pd, (uint16_t)num);
	struct mlx5_wqe_umr_klm_seg *t = aligned_alloc(4096, 16384);
	struct ibv_mr *mr = ibv_reg_mr(r->pd, t, 16384, 0);
	struct umr u;

	assert_true(t && mr);
	for (uint32_t i = 0; i < num; i++) {
		t[i].byte_count = htobe32(3);
		t[i].mkey = htobe32(r->mr->lkey);
		t[i].address = htobe64((uintptr_t)r->buf + (num - 1 - i) * 50ul);
	}
	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, num * 3ul);
	umr_pointer(&u, num, sge(mr, t, num * 16));
	post_ok(r, &u);
	post_rdma(r->qp, 4, IBV_WR_RDMA_READ, sge(r->mr, r->buf + 55000, num * 3), m->rkey, 0);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < num; i++)
		assert_memory_equal(r->buf + 55000 + 3ul * i, r->buf + (num - 1 - i) * 50ul, 3);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(t);
}

static void each_field_by_its_bit(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct umr u;

	good(r, &u, m);
	post_ok(r, &u);
	use(r, m->rkey, 63, IBV_WC_SUCCESS);

	/* No bit: nothing changes, whatever the context says. */
	umr_start(&u, r->qp, m->lkey, 0, 1 << 20, 7);
	umr_mkc(&u)->free = MLX5_WQE_MKEY_CONTEXT_FREE;
	umr_seg(&u)->mkey_mask = 0;
	post_ok(r, &u);
	use(r, m->rkey, 63, IBV_WC_SUCCESS);

	umr_seg(&u)->mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN);
	post_ok(r, &u);
	use(r, m->rkey, 6, IBV_WC_SUCCESS);
	use(r, m->rkey, 7, IBV_WC_REM_ACCESS_ERR);

	umr_seg(&u)->mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR);
	post_ok(r, &u);
	use(r, m->rkey, 6, IBV_WC_REM_ACCESS_ERR);
	use(r, m->rkey, (1 << 20) + 6, IBV_WC_SUCCESS);

	/* Write is taken away, read stays. */
	umr_seg(&u)->mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE);
	post_ok(r, &u);
	use(r, m->rkey, 1 << 20, IBV_WC_SUCCESS);
	post_rdma(r->qp, 5, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 1), m->rkey, 1 << 20);
	expect_wc(r->cq, 5, IBV_WC_REM_ACCESS_ERR);
	reconnect_self(r->qp);
	umr_seg(&u)->mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ);
	post_ok(r, &u);
	use(r, m->rkey, 1 << 20, IBV_WC_REM_ACCESS_ERR);

	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 64);
	post_ok(r, &u);
	use(r, m->rkey, 63, IBV_WC_SUCCESS);
	umr_mkc(&u)->free = MLX5_WQE_MKEY_CONTEXT_FREE;
	umr_seg(&u)->mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE);
	post_ok(r, &u);
	use(r, m->rkey, 63, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* The low byte of a key is changed by the UMR that asks for it. */
static void tag(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct umr u;

	good(r, &u, m);
	umr_seg(&u)->mkey_mask = htobe64(UMR_FILL_MASK | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY);
	umr_mkc(&u)->qpn_mkey = htobe32(0xffffff5a);
	post_ok(r, &u);
	use(r, m->rkey | 0x5a, 0, IBV_WC_SUCCESS);
	use(r, m->rkey, 0, IBV_WC_REM_ACCESS_ERR);
	/* The old tag is no longer the key's name. */
	post_bad(r, &u);
	umr_ctrl_seg(&u)->imm = htobe32(m->rkey | 0x5a);
	umr_mkc(&u)->qpn_mkey = htobe32(0xffffff00);
	post_ok(r, &u);
	use(r, m->rkey, 0, IBV_WC_SUCCESS);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void invalidate_and_refill(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct umr u;

	good(r, &u, m);
	post_ok(r, &u);
	umr_invalidate(&u, r->qp, m->lkey);
	post_ok(r, &u);
	use(r, m->rkey, 0, IBV_WC_REM_ACCESS_ERR);
	good(r, &u, m);
	post_ok(r, &u);
	use(r, m->rkey, 0, IBV_WC_SUCCESS);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* The verb of the same name. */
static void local_invalidate(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct ibv_send_wr wr = { .wr_id = 9,
				  .opcode = IBV_WR_LOCAL_INV,
				  .send_flags = IBV_SEND_SIGNALED };
	struct umr u;

	good(r, &u, m);
	post_ok(r, &u);
	wr.invalidate_rkey = m->rkey;
	post_wr(r->qp, &wr);
	expect_wc(r->cq, 9, IBV_WC_SUCCESS);
	use(r, m->rkey, 0, IBV_WC_REM_ACCESS_ERR);
	/* An ordinary MR is not to be invalidated. */
	wr.invalidate_rkey = r->mr->rkey;
	post_wr(r->qp, &wr);
	expect_wc(r->cq, 9, IBV_WC_MW_BIND_ERR);
	reconnect_self(r->qp);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void send_with_invalidate(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct ibv_sge s = sge(r->mr, r->buf, 4);
	struct ibv_send_wr wr = { .wr_id = 9,
				  .opcode = IBV_WR_SEND_WITH_INV,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &s,
				  .num_sge = 1 };
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(r->qp);
	struct ibv_wc wc;
	struct umr u;

	good(r, &u, m);
	post_ok(r, &u);
	post_recv(r->qp, 10, sge(r->mr, r->buf + 100, 4));
	ibv_wr_start(qpx);
	qpx->wr_id = 9;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_inv(qpx, m->rkey);
	ibv_wr_set_sge(qpx, s.lkey, s.addr, s.length);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	for (int i = 0; i < 2; i++) {
		wc = wait_wc(r->cq);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == 10) {
			assert_int_equal(wc.wc_flags, IBV_WC_WITH_INV);
			assert_int_equal(wc.invalidated_rkey, m->rkey);
		}
	}
	use(r, m->rkey, 0, IBV_WC_REM_ACCESS_ERR);
	/* Invalid already: refused. */
	post_recv(r->qp, 10, sge(r->mr, r->buf + 100, 4));
	wr.invalidate_rkey = m->rkey;
	post_wr(r->qp, &wr);
	expect_wc(r->cq, 9, IBV_WC_REM_ACCESS_ERR);
	expect_wc(r->cq, 10, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void check_free(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct umr u;

	good(r, &u, m);
	umr_seg(&u)->flags |= MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE;
	post_ok(r, &u);
	post_bad(r, &u);
	use(r, m->rkey, 0, IBV_WC_SUCCESS);
	umr_invalidate(&u, r->qp, m->lkey);
	post_ok(r, &u);
	good(r, &u, m);
	umr_seg(&u)->flags |= MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE;
	post_ok(r, &u);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* Part of the table: entries before and behind stay. */
static void translation_offset(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 12);
	struct klm k[12], part[4];
	struct umr u;

	for (int i = 0; i < 12; i++)
		k[i] = (struct klm)KLM(r->mr, r->buf + 10L * i, 1);
	fill_list(r, m, ALL_ACCESS, k, 12);
	for (int i = 0; i < 4; i++)
		k[4 + i] = part[i] = (struct klm)KLM(r->mr, r->buf + 5000 + 10L * i, 1);
	umr_start(&u, r->qp, m->lkey, 0, 0, 0);
	umr_list(&u, part, 4);
	umr_seg(&u)->mkey_mask = 0;
	umr_seg(&u)->flags |= MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET;
	umr_seg(&u)->translation_offset = htobe16(4);
	post_ok(r, &u);
	post_rdma(r->qp, 4, IBV_WR_RDMA_READ, sge(r->mr, r->buf + 55000, 12), m->rkey, 0);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	for (int i = 0; i < 12; i++)
		assert_int_equal(r->buf[55000 + i], *(const uint8_t *)k[i].at);
	/* Past the table's end. */
	umr_seg(&u)->translation_offset = htobe16(12);
	post_bad(r, &u);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* Behind what the table had: entries between have no length, whatever their memory held before. */
static void translation_gap(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 12);
	struct klm k[12], part[4];
	struct umr u;

	for (int i = 0; i < 12; i++)
		k[i] = (struct klm)KLM(r->mr, r->buf + 10L * i, 1);
	for (int i = 0; i < 4; i++)
		part[i] = (struct klm)KLM(r->mr, r->buf + 5000 + 10L * i, 1);
	fill_list(r, m, ALL_ACCESS, k, 12);
	fill_list(r, m, ALL_ACCESS, k, 4);
	umr_start(&u, r->qp, m->lkey, 0, 0, 8);
	umr_list(&u, part, 4);
	umr_seg(&u)->mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN);
	umr_seg(&u)->flags |= MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET;
	umr_seg(&u)->translation_offset = htobe16(8);
	post_ok(r, &u);
	post_rdma(r->qp, 4, IBV_WR_RDMA_READ, sge(r->mr, r->buf + 55000, 8), m->rkey, 0);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(r->buf[55000 + i], *(const uint8_t *)k[i].at);
		assert_int_equal(r->buf[55004 + i], *(const uint8_t *)part[i].at);
	}
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void last_umr(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	uint8_t seen[1024];
	struct umr u;

	good(r, &u, m);
	post_ok(r, &u);
	assert_int_equal(soft0_last_umr(seen, sizeof(seen)), u.bytes);
	assert_memory_equal(seen + 8, u.b + 8, u.bytes - 8);
	/* However it lies in the ring: sixty-four of two blocks pass its end many times. */
	for (int i = 0; i < 200; i++) {
		umr_mkc(&u)->len = htobe64(64 - (uint64_t)i % 7);
		post_ok(r, &u);
		assert_int_equal(soft0_last_umr(seen, sizeof(seen)), u.bytes);
		assert_memory_equal(seen + 8, u.b + 8, u.bytes - 8);
	}
	assert_int_equal(soft0_last_umr(seen, 4), u.bytes);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* ---- what is refused ----------------------------------------------------------------- */

static void bad_keys(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4), *other = make_mkey(pd, 4);
	struct umr u;

	good(r, &u, m);
	umr_ctrl_seg(&u)->imm = htobe32(m->lkey | 1);
	post_bad(r, &u);
	umr_ctrl_seg(&u)->imm = htobe32(0x00fff000);
	post_bad(r, &u);
	umr_ctrl_seg(&u)->imm = htobe32(r->mr->lkey);
	post_bad(r, &u);
	umr_ctrl_seg(&u)->imm = htobe32(other->lkey);
	post_bad(r, &u);
	umr_ctrl_seg(&u)->imm = htobe32(m->lkey);
	post_ok(r, &u);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(mlx5dv_destroy_mkey(other), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void bad_sizes(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct klm k[8];
	struct umr u;

	for (int i = 0; i < 8; i++)
		k[i] = (struct klm)KLM(r->mr, r->buf, 8);
	/* More than the table has. */
	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 64);
	umr_list(&u, k, 8);
	post_bad(r, &u);
	/* Not in fours. */
	good(r, &u, m);
	umr_seg(&u)->klm_octowords = htobe16(1);
	post_bad(r, &u);
	/* More octowords than the work request has. */
	good(r, &u, m);
	umr_set_bytes(&u, 128 + 48);
	post_bad(r, &u);
	/* Too short for its own segments. */
	good(r, &u, m);
	umr_set_bytes(&u, 112);
	post_bad(r, &u);
	/* An entry of 2 GiB. */
	good(r, &u, m);
	((struct mlx5_wqe_umr_klm_seg *)umr_table(&u))->byte_count = htobe32(1u << 31);
	post_bad(r, &u);
	use(r, m->rkey, 0, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void bad_flags(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct umr u;

	good(r, &u, m);
	umr_seg(&u)->flags |= 1 << 6;
	post_bad(r, &u);
	/* Bound to one queue pair. */
	good(r, &u, m);
	umr_seg(&u)->mkey_mask |= htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN);
	umr_mkc(&u)->qpn_mkey = htobe32(r->qp->qp_num << 8);
	post_bad(r, &u);
	good(r, &u, m);
	umr_seg(&u)->mkey_mask |= htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_BSF_ENABLE);
	post_bad(r, &u);
	good(r, &u, m);
	umr_seg(&u)->bsf_octowords = htobe16(4);
	post_bad(r, &u);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void bad_pointers(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	uint8_t *mem = aligned_alloc(4096, 4096);
	struct ibv_mr *mr = ibv_reg_mr(r->pd, mem, 4096, 0);
	struct mlx5_wqe_umr_klm_seg *t = (void *)mem;
	struct umr u;

	assert_true(mem && mr);
	memset(mem, 0, 4096);
	t->byte_count = htobe32(64);
	t->mkey = htobe32(r->mr->lkey);
	t->address = htobe64((uintptr_t)r->buf);
	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 64);
	umr_pointer(&u, 4, sge(mr, mem, 64));
	post_ok(r, &u);
	umr_pointer(&u, 4, sge(mr, mem + 16, 64));
	post_bad(r, &u);
	umr_pointer(&u, 4, sge(mr, mem, 48));
	post_bad(r, &u);
	umr_pointer(&u, 4, sge(mr, mem + 4096, 64));
	post_bad(r, &u);
	umr_pointer(&u, 4, (struct ibv_sge){ (uintptr_t)mem, 64, mr->lkey + 1 });
	post_bad(r, &u);
	umr_pointer(&u, 4, sge(mr, mem, 64));
	umr_set_bytes(&u, 128);
	post_bad(r, &u);
	use(r, m->rkey, 63, IBV_WC_SUCCESS);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(mem);
}

static void bad_repeats(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const struct klm k[] = { BLOCK(r->mr, r->buf, 8, 16), BLOCK(r->mr, r->buf + 100, 4, 4) };
	struct mlx5_wqe_umr_repeat_block_seg *t;
	struct umr u;

	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 120);
	t = umr_table(&u);
	umr_repeat(&u, 10, k, 2);
	post_ok(r, &u);
	t->byte_count = htobe32(13);
	post_bad(r, &u);
	umr_repeat(&u, 0, k, 2);
	post_bad(r, &u);
	umr_repeat(&u, 10, k, 2);
	t->num_ent = htobe16(0);
	post_bad(r, &u);
	t->num_ent = htobe16(4);
	post_bad(r, &u);
	use(r, m->rkey, 119, IBV_WC_SUCCESS);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* The kernel's fault handler could not serve it. */
static void repeat_over_on_demand(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *odp = ibv_reg_mr(r->pd, r->buf, 4096, ALL_ACCESS | IBV_ACCESS_ON_DEMAND);
	struct mlx5dv_mkey *in = make_mkey(r->pd, 4), *m = make_mkey(r->pd, 4);
	struct klm k = BLOCK(odp, r->buf, 8, 16);
	struct umr u;

	assert_non_null(odp);
	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 80);
	umr_repeat(&u, 10, &k, 1);
	post_bad(r, &u);
	/* Hidden in a list. */
	fill_list(r, in, ALL_ACCESS, &k, 1);
	k = (struct klm){ .key = in->lkey, .bytes = 8 };
	umr_repeat(&u, 10, &k, 1);
	post_bad(r, &u);
	/* Put there afterwards: seen when it is used. */
	k = (struct klm)KLM(r->mr, r->buf, 8);
	fill_list(r, in, ALL_ACCESS, &k, 1);
	k = (struct klm){ .key = in->lkey, .bytes = 8 };
	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 80);
	umr_repeat(&u, 10, &k, 1);
	post_ok(r, &u);
	use(r, m->rkey, 0, IBV_WC_SUCCESS);
	k = (struct klm)KLM(odp, r->buf, 8);
	fill_list(r, in, ALL_ACCESS, &k, 1);
	use(r, m->rkey, 0, IBV_WC_REM_OP_ERR);
	use(r, in->rkey, 0, IBV_WC_SUCCESS);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(mlx5dv_destroy_mkey(in), 0);
	assert_int_equal(ibv_dereg_mr(odp), 0);
}

/* ---- keys ----------------------------------------------------------------------------- */

static struct mlx5dv_mkey *try_mkey(struct ibv_pd *pd, uint16_t entries)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = entries,
	};

	errno = 0;
	return mlx5dv_create_mkey(&attr);
}

static void key_limits(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m;
	uint64_t live = counter("live.mkey");
	char max[32];

	set("max_klms", "64");
	assert_null(try_mkey(r->pd, 65));
	m = try_mkey(r->pd, 64);
	assert_non_null(m);
	assert_int_equal(counter("live.mkey"), live + 1);
	/* Keys are exhausted. */
	snprintf(max, sizeof(max), "%llu", (unsigned long long)live + 1);
	set("max_keys", max);
	assert_null(try_mkey(r->pd, 4));
	assert_null(ibv_reg_mr(r->pd, r->buf, 64, 0));
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	m = try_mkey(r->pd, 4);
	assert_non_null(m);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(counter("live.mkey"), live);
}

/* Reserved values on the wire are never handed out; freed ones come back. */
static void key_values(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m[8];

	set("first_key", "0");
	for (int i = 0; i < 8; i++) {
		m[i] = make_mkey(r->pd, 4);
		assert_int_equal(m[i]->lkey, m[i]->rkey);
		assert_int_equal(m[i]->lkey & 0xff, 0);
		assert_int_not_equal(m[i]->lkey, MLX5_INVALID_LKEY);
		assert_int_not_equal(m[i]->lkey, 0x400);
		for (int k = 0; k < i; k++)
			assert_int_not_equal(m[i]->lkey, m[k]->lkey);
	}
	assert_int_equal(m[0]->lkey, 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(mlx5dv_destroy_mkey(m[i]), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(list_lands),
		TEST(typed_calls),
		TEST(pointer_list),
		TEST(each_field_by_its_bit),
		TEST(tag),
		TEST(invalidate_and_refill),
		TEST(local_invalidate),
		TEST(send_with_invalidate),
		TEST(check_free),
		TEST(translation_offset),
		TEST(translation_gap),
		TEST(last_umr),
		TEST(bad_keys),
		TEST(bad_sizes),
		TEST(bad_flags),
		TEST(bad_pointers),
		TEST(bad_repeats),
		TEST(repeat_over_on_demand),
		TEST(key_limits),
		TEST(key_values),
	};

	return cmocka_run_group_tests_name("umr", tests, NULL, NULL);
}
