/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided operations: the bytes they move, and what each error does to both ends. */
#include "rig.h"

/* ---- moving bytes ------------------------------------------------------------------- */

static void two_contexts(void **state)
{
	struct rig *a = *state, *b;
	void *other;
	struct ibv_qp *qa, *qb;

	rig_setup(&other);
	b = other;
	qa = make_qp(a, &(struct qp_opts){ 0 });
	qb = make_qp(b, &(struct qp_opts){ 0 });
	connect_qps(qa, qb);
	post_rdma(qa, 1, IBV_WR_RDMA_WRITE, sge(a->mr, a->buf + 1, 3000), b->mr->rkey,
		  (uintptr_t)b->buf + 9000);
	expect_wc(a->cq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(b->buf + 9000, a->buf + 1, 3000);
	expect_no_wc(b->cq);
	post_rdma(qb, 2, IBV_WR_RDMA_READ, sge(b->mr, b->buf, 100), a->mr->rkey,
		  (uintptr_t)a->buf + 500);
	expect_wc(b->cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(b->buf, a->buf + 500, 100);
	/* The other side goes away. */
	assert_int_equal(ibv_destroy_qp(qb), 0);
	post_rdma(qa, 3, IBV_WR_RDMA_WRITE, sge(a->mr, a->buf, 4), b->mr->rkey, (uintptr_t)b->buf);
	expect_wc(a->cq, 3, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_destroy_qp(qa), 0);
	rig_teardown(&other);
}

static void inline_data_and_many_segments(void **state)
{
	struct rig *r = *state;
	uint8_t plain[300], want[BUF_BYTES];
	struct ibv_sge parts[] = { { (uintptr_t)plain, 100, 0 },
				   { (uintptr_t)plain + 150, 77, 0 } };
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = parts,
				  .num_sge = 2,
				  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE,
				  .wr.rdma = { (uintptr_t)r->buf + 20000, r->mr->rkey } };
	struct ibv_sge segs[] = { sge(r->mr, r->buf + 5, 7), sge(r->mr, r->buf + 900, 0),
				  sge(r->mr, r->buf + 100, 1), sge(r->mr, r->buf + 3000, 1000) };

	for (size_t i = 0; i < sizeof(plain); i++)
		plain[i] = (uint8_t)(200 - i);
	memcpy(want, r->buf, BUF_BYTES);
	memcpy(want + 20000, plain, 100);
	memcpy(want + 20100, plain + 150, 77);
	/* Inline data is taken when it is posted; around the end of the ring too. */
	for (int i = 0; i < 100; i++) {
		memset(r->buf + 20000, 0, 177);
		post_wr(r->qp, &wr);
		expect_wc(r->cq, 1, IBV_WC_SUCCESS);
		assert_memory_equal(r->buf, want, BUF_BYTES);
	}
	wr.sg_list = segs;
	wr.num_sge = 4;
	wr.send_flags = IBV_SEND_SIGNALED;
	memcpy(want + 20000, r->buf + 5, 7);
	memcpy(want + 20007, r->buf + 100, 1);
	memcpy(want + 20008, r->buf + 3000, 1000);
	post_wr(r->qp, &wr);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf, want, BUF_BYTES);
	/* A read that lands in pieces. */
	wr.opcode = IBV_WR_RDMA_READ;
	wr.wr.rdma.remote_addr = (uintptr_t)r->buf + 30000;
	memcpy(want + 5, want + 30000, 7);
	memcpy(want + 100, want + 30007, 1);
	memcpy(want + 3000, want + 30008, 1000);
	post_wr(r->qp, &wr);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf, want, BUF_BYTES);
}

static void nothing_to_move(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { 0x123, 0xabc } };

	/* A key that is not asked is not looked at. */
	post_wr(r->qp, &wr);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_RDMA_READ;
	post_wr(r->qp, &wr);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
}

static void only_signaled_ones_complete(void **state)
{
	struct rig *r = *state;
	struct ibv_sge s = sge(r->mr, r->buf, 8);
	struct ibv_send_wr wr = { .wr_id = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = &s,
				  .num_sge = 1,
				  .wr.rdma = { (uintptr_t)r->buf + 100, r->mr->rkey } };
	struct ibv_qp *all = make_qp(r, &(struct qp_opts){ .sig_all = true });

	for (int i = 0; i < 3; i++)
		post_wr(r->qp, &wr);
	wr.wr_id = 2;
	wr.send_flags = IBV_SEND_SIGNALED;
	post_wr(r->qp, &wr);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_no_wc(r->cq);
	connect_qps(all, all);
	wr.send_flags = 0;
	post_wr(all, &wr);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(all), 0);
}

static void full_ring(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .max_wr = 8, .max_inline = 1 });
	struct ibv_sge s = sge(r->mr, r->buf, 8);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE,
				  .sg_list = &s,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)r->buf + 100, r->mr->rkey } },
			   *bad;
	uint64_t posted = 0, seen = 0;

	connect_qps(qp, qp);
	for (int round = 0; round < 50; round++) {
		while (!ibv_post_send(qp, &wr, &bad))
			wr.wr_id = ++posted;
		assert_true(posted - seen >= 8);
		while (seen < posted)
			expect_wc(r->cq, seen++, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* ---- atomics ------------------------------------------------------------------------- */

static void atomics(void **state)
{
	struct rig *r = *state;
	uint64_t *cell = (void *)(r->buf + 4096), *old = (void *)(r->buf + 8192);
	struct ibv_sge s = sge(r->mr, old, 8);
	struct ibv_wc wc;

	*cell = 0x0102030405060708;
	post_atomic(r->qp, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, s, r->mr->rkey, (uintptr_t)cell, 0x10,
		    0);
	wc = wait_wc(r->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_FETCH_ADD);
	assert_int_equal(wc.byte_len, 8);
	assert_true(*old == 0x0102030405060708 && *cell == 0x0102030405060718);
	post_atomic(r->qp, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, s, r->mr->rkey, (uintptr_t)cell,
		    UINT64_MAX, 0);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	assert_true(*cell == 0x0102030405060717);
	post_atomic(r->qp, 3, IBV_WR_ATOMIC_CMP_AND_SWP, s, r->mr->rkey, (uintptr_t)cell, 5, 99);
	wc = wait_wc(r->cq);
	assert_int_equal(wc.opcode, IBV_WC_COMP_SWAP);
	assert_true(*old == 0x0102030405060717 && *cell == 0x0102030405060717);
	post_atomic(r->qp, 4, IBV_WR_ATOMIC_CMP_AND_SWP, s, r->mr->rkey, (uintptr_t)cell,
		    0x0102030405060717, 99);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	assert_true(*old == 0x0102030405060717 && *cell == 99);
}

static void atomics_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_sge s = sge(r->mr, r->buf + 8192, 8);
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const struct klm split[] = { KLM(r->mr, r->buf, 4), KLM(r->mr, r->buf + 4, 12) };
	const struct klm skew[] = { KLM(r->mr, r->buf + 4, 16) };
	struct umr u;
	struct mlx5_wqe_raddr_seg *ra = (void *)(u.b + 16);
	struct mlx5_wqe_data_seg *data = (void *)(u.b + 48);

	/* Misaligned, by address. */
	post_atomic(r->qp, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, s, r->mr->rkey, (uintptr_t)r->buf + 4, 1,
		    0);
	expect_wc(r->cq, 1, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(wait_async(r->ctx), IBV_EVENT_QP_REQ_ERR);
	reconnect_self(r->qp);
	/* Across two pieces, though they touch; then misaligned where it lands. */
	fill_list(r, m, ALL_ACCESS, split, 2);
	post_atomic(r->qp, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, s, m->rkey, 0, 1, 0);
	expect_wc(r->cq, 2, IBV_WC_REM_INV_REQ_ERR);
	reconnect_self(r->qp);
	post_atomic(r->qp, 2, IBV_WR_ATOMIC_FETCH_AND_ADD, s, m->rkey, 8, 1, 0);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	fill_list(r, m, ALL_ACCESS, skew, 1);
	post_atomic(r->qp, 3, IBV_WR_ATOMIC_FETCH_AND_ADD, s, m->rkey, 0, 1, 0);
	expect_wc(r->cq, 3, IBV_WC_REM_INV_REQ_ERR);
	reconnect_self(r->qp);
	/* Not eight bytes: raw, for the library always says eight. */
	memset(&u, 0, sizeof(u));
	umr_ctrl_seg(&u)->opmod_idx_opcode = htobe32(MLX5_OPCODE_ATOMIC_FA);
	umr_set_bytes(&u, 64);
	*ra = (struct mlx5_wqe_raddr_seg){ htobe64((uintptr_t)r->buf), htobe32(r->mr->rkey), 0 };
	*data = (struct mlx5_wqe_data_seg){ htobe32(4), htobe32(s.lkey), htobe64(s.addr) };
	post_raw(r->qp, 4, u.b);
	expect_wc(r->cq, 4, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* ---- errors ---------------------------------------------------------------------------- */

/* What stands behind a failed work request is flushed in order, on both queues. */
static void flush_in_order(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *rcq = make_cq(r, 32);
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .recv_cq = rcq });
	struct ibv_sge s = sge(r->mr, r->buf, 8);
	struct ibv_send_wr wr[6];
	struct ibv_wc wc;

	connect_qps(qp, qp);
	for (uint64_t i = 0; i < 4; i++)
		post_recv(qp, 100 + i, sge(r->mr, r->buf, 8));
	for (int i = 0; i < 6; i++)
		wr[i] = (struct ibv_send_wr){ .wr_id = (uint64_t)i,
					      .next = i < 5 ? &wr[i + 1] : NULL,
					      .opcode = IBV_WR_RDMA_WRITE,
					      .sg_list = &s,
					      .num_sge = 1,
					      .send_flags = i == 1 ? 0 : IBV_SEND_SIGNALED,
					      .wr.rdma = { (uintptr_t)r->buf, r->mr->rkey } };
	wr[2].wr.rdma.rkey ^= 0x77;
	post_wr(qp, wr);
	expect_wc(r->cq, 0, IBV_WC_SUCCESS);
	wc = wait_wc(r->cq);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(wc.vendor_err, 0x88);
	assert_int_equal(wc.qp_num, qp->qp_num);
	for (uint64_t i = 3; i < 6; i++)
		expect_wc(r->cq, i, IBV_WC_WR_FLUSH_ERR);
	for (uint64_t i = 100; i < 104; i++)
		expect_wc(rcq, i, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wait_async(r->ctx), IBV_EVENT_QP_ACCESS_ERR);
	/* What is posted from now on is flushed too, unsignaled ones as well. */
	post_recv(qp, 200, s);
	expect_wc(rcq, 200, IBV_WC_WR_FLUSH_ERR);
	wr[1].next = NULL;
	post_wr(qp, &wr[1]);
	expect_wc(r->cq, 1, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(r->cq);
	expect_no_async(r->ctx);
	reconnect_self(qp);
	post_rdma(qp, 9, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 9, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(rcq), 0);
}

static void both_ends_go_down(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *bcq = make_cq(r, 32);
	struct ibv_qp *a = make_qp(r, &(struct qp_opts){ 0 });
	struct ibv_qp *b = make_qp(r, &(struct qp_opts){ .send_cq = bcq, .recv_cq = bcq });

	connect_qps(a, b);
	post_recv(b, 50, sge(r->mr, r->buf, 8));
	post_rdma(a, 1, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 8), r->mr->rkey,
		  (uintptr_t)r->buf + BUF_BYTES);
	expect_wc(r->cq, 1, IBV_WC_REM_ACCESS_ERR);
	expect_wc(bcq, 50, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(a), IBV_QPS_ERR);
	assert_int_equal(qp_state(b), IBV_QPS_ERR);
	assert_int_equal(wait_async(r->ctx), IBV_EVENT_QP_ACCESS_ERR);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
	assert_int_equal(ibv_destroy_cq(bcq), 0);
}

/* A local error stays at home. */
static void local_error_spares_the_peer(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = make_qp(r, &(struct qp_opts){ 0 }),
		      *b = make_qp(r, &(struct qp_opts){ 0 });
	struct ibv_sge s = sge(r->mr, r->buf + BUF_BYTES - 4, 8);

	connect_qps(a, b);
	post_rdma(a, 1, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(a), IBV_QPS_ERR);
	assert_int_equal(qp_state(b), IBV_QPS_RTS);
	expect_no_async(r->ctx);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

static void queue_pair_rights(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = make_qp(r, &(struct qp_opts){ 0 }),
		      *b = make_qp(r, &(struct qp_opts){ 0 });
	struct ibv_qp_attr attr = { .qp_access_flags = IBV_ACCESS_REMOTE_WRITE };

	connect_qps(a, b);
	assert_int_equal(ibv_modify_qp(b, &attr, IBV_QP_ACCESS_FLAGS), 0);
	post_rdma(a, 1, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 8), r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	post_rdma(a, 2, IBV_WR_RDMA_READ, sge(r->mr, r->buf, 8), r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 2, IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

static void message_too_long(void **state)
{
	struct rig *r = *state;

	set("max_msg_sz", "4096");
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 4096), r->mr->rkey,
		  (uintptr_t)r->buf + 4096);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	post_rdma(r->qp, 2, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 4097), r->mr->rkey,
		  (uintptr_t)r->buf + 8192);
	expect_wc(r->cq, 2, IBV_WC_LOC_LEN_ERR);
	set("max_msg_sz", "1073741824");
}

static void bad_wqes(void **state)
{
	struct rig *r = *state;
	static const uint8_t opcodes[] = { 0x0e, 0x14, 0x1b, 0x20, 0x3f, MLX5_OPCODE_RDMA_WRITE };
	struct umr u;

	for (size_t i = 0; i < sizeof(opcodes); i++) {
		/* The last is an opcode that is known, in a work request without its address. */
		memset(&u, 0, sizeof(u));
		umr_ctrl_seg(&u)->opmod_idx_opcode = htobe32(opcodes[i]);
		umr_ctrl_seg(&u)->fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE;
		umr_set_bytes(&u, 16);
		post_raw(r->qp, 1, u.b);
		expect_wc(r->cq, 1, IBV_WC_LOC_QP_OP_ERR);
		reconnect_self(r->qp);
	}
	/* No length at all. */
	umr_ctrl_seg(&u)->opmod_idx_opcode = htobe32(MLX5_OPCODE_NOP);
	umr_set_bytes(&u, 16);
	post_raw(r->qp, 2, u.b);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	/* An inline segment longer than its work request. */
	umr_ctrl_seg(&u)->opmod_idx_opcode = htobe32(MLX5_OPCODE_SEND);
	umr_set_bytes(&u, 32);
	*(uint32_t *)(u.b + 16) = htobe32(MLX5_INLINE_SEG | 100);
	post_raw(r->qp, 3, u.b);
	expect_wc(r->cq, 3, IBV_WC_LOC_QP_OP_ERR);
}

/* A work request that is longer than its whole ring has run over itself. */
static void rings_run_over(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *qp =
		make_qp(r, &(struct qp_opts){ .max_wr = 2, .max_inline = 1, .max_sge = 1 });
	struct mlx5dv_qp dv = { 0 };
	struct mlx5dv_obj obj = { .qp = { .in = qp, .out = &dv } };
	struct ibv_wc wc;
	struct umr u;

	connect_qps(qp, qp);
	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	assert_in_range(dv.sq.wqe_cnt, 1, 15);
	memset(&u, 0, sizeof(u));
	umr_ctrl_seg(&u)->opmod_idx_opcode = htobe32(MLX5_OPCODE_NOP);
	umr_set_bytes(&u, (dv.sq.wqe_cnt + 1) * 64);
	post_recv(qp, 5, sge(r->mr, r->buf, 8));
	post_raw(qp, 1, u.b);
	assert_int_equal(wait_async(r->ctx), IBV_EVENT_QP_FATAL);
	assert_int_equal(qp_state(qp), IBV_QPS_ERR);
	wc = wait_wc(r->cq);
	assert_int_equal(wc.wr_id, 5);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	expect_no_wc(r->cq);
	/* More receives than the ring has room for, past the library. */
	reconnect_self(qp);
	__atomic_store_n(&dv.dbrec[MLX5_RCV_DBR], htobe32(dv.rq.wqe_cnt + 1), __ATOMIC_RELEASE);
	expect_no_wc(r->cq);
	assert_int_equal(wait_async(r->ctx), IBV_EVENT_QP_FATAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void planned_failure(void **state)
{
	struct rig *r = *state;
	struct ibv_sge s = sge(r->mr, r->buf, 8);

	set("fail_wqe", "2");
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	post_rdma(r->qp, 2, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 2, IBV_WC_LOC_PROT_ERR);
	reconnect_self(r->qp);
	post_rdma(r->qp, 3, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	set("fail_wqe", "1:0x15");
	post_rdma(r->qp, 4, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 4, IBV_WC_RETRY_EXC_ERR);
}

/* ---- scatter to the CQE ------------------------------------------------------------------ */

static void scatter_to_cqe(void **state)
{
	struct rig *r = *state;
	static const uint32_t sizes[] = { 1, 8, 31, 32, 33, 64, 65 };
	struct ibv_qp *on = make_qp(r, &(struct qp_opts){ .scatter_req = true, .sig_all = true });
	struct ibv_qp *off = make_qp(r, &(struct qp_opts){ .sig_all = true });

	connect_qps(on, on);
	connect_qps(off, off);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *to = r->buf + 4096, *from = r->buf + 100;

		/* With it, short reads reach memory only when they are polled. */
		memset(to, 0, 128);
		post_rdma(on, 1, IBV_WR_RDMA_READ, sge(r->mr, to, sizes[i]), r->mr->rkey,
			  (uintptr_t)from);
		if (mode_is("sync") && sizes[i] <= 32)
			assert_int_equal(to[0], 0);
		if (mode_is("sync") && sizes[i] > 32)
			assert_memory_equal(to, from, sizes[i]);
		expect_wc(r->cq, 1, IBV_WC_SUCCESS);
		assert_memory_equal(to, from, sizes[i]);
		assert_int_equal(to[sizes[i]], 0);

		memset(to, 0, 128);
		post_rdma(off, 1, IBV_WR_RDMA_READ, sge(r->mr, to, sizes[i]), r->mr->rkey,
			  (uintptr_t)from);
		if (mode_is("sync"))
			assert_memory_equal(to, from, sizes[i]);
		expect_wc(r->cq, 1, IBV_WC_SUCCESS);
		assert_memory_equal(to, from, sizes[i]);
	}
	assert_int_equal(ibv_destroy_qp(on), 0);
	assert_int_equal(ibv_destroy_qp(off), 0);
}

static void scatter_of_receives(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .scatter = true });
	struct ibv_cq *scq = make_cq(r, 8);
	struct ibv_qp *from = make_qp(r, &(struct qp_opts){ .send_cq = scq });
	struct ibv_sge two[] = { sge(r->mr, r->buf + 4096, 5), sge(r->mr, r->buf + 5000, 40) };
	struct ibv_recv_wr wr = { .wr_id = 7, .sg_list = two, .num_sge = 2 }, *bad;

	connect_qps(from, qp);
	for (uint32_t n = 1; n < 45; n++) {
		memset(r->buf + 4096, 0, 1000);
		assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
		post_send(from, 1, sge(r->mr, r->buf + 200, n));
		expect_wc(scq, 1, IBV_WC_SUCCESS);
		expect_wc(r->cq, 7, IBV_WC_SUCCESS);
		assert_memory_equal(r->buf + 4096, r->buf + 200, n < 5 ? n : 5);
		if (n > 5)
			assert_memory_equal(r->buf + 5000, r->buf + 205, n - 5);
		assert_int_equal(r->buf[5000 + (n > 5 ? n - 5 : 0)], 0);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(from), 0);
	assert_int_equal(ibv_destroy_cq(scq), 0);
}

/* ---- UC ------------------------------------------------------------------------------- */

static void unreliable(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = make_qp(r, &(struct qp_opts){ .type = IBV_QPT_UC });
	struct ibv_qp *b = make_qp(r, &(struct qp_opts){ .type = IBV_QPT_UC });
	struct ibv_sge s = sge(r->mr, r->buf, 8);

	connect_qps(a, b);
	post_rdma(a, 1, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf, r->buf + 100, 8);
	/* Refused over there: nobody hears of it. */
	post_rdma(a, 2, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + BUF_BYTES);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	post_send(a, 3, s);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(qp_state(b), IBV_QPS_RTS);
	/* A local error: the send queue alone, and back. */
	s.lkey ^= 1;
	post_rdma(a, 4, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 4, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(qp_state(a), IBV_QPS_SQE);
	s.lkey ^= 1;
	post_rdma(a, 5, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 5, IBV_WC_WR_FLUSH_ERR);
	qp_set_state(a, IBV_QPS_RTS);
	post_rdma(a, 6, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 6, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(two_contexts),
		TEST(inline_data_and_many_segments),
		TEST(nothing_to_move),
		TEST(only_signaled_ones_complete),
		TEST(full_ring),
		TEST(atomics),
		TEST(atomics_refused),
		TEST(flush_in_order),
		TEST(both_ends_go_down),
		TEST(local_error_spares_the_peer),
		TEST(queue_pair_rights),
		TEST(message_too_long),
		TEST(bad_wqes),
		TEST(rings_run_over),
		TEST(planned_failure),
		TEST(scatter_to_cqe),
		TEST(scatter_of_receives),
		TEST(unreliable),
	};

	return cmocka_run_group_tests_name("rdma", tests, NULL, NULL);
}
