/* SPDX-License-Identifier: BSD-2-Clause */
/* Send and receive: connected, shared receive queues, datagrams, and waiting for a receive. */
#include <stdio.h>
#include <unistd.h>

#include "rig.h"

struct pair {
	struct ibv_cq *acq, *bcq;
	struct ibv_qp *a, *b; /* a sends, b receives */
};

static void pair_make(struct rig *r, struct pair *p, enum ibv_qp_type type, struct ibv_srq *srq)
{
	p->acq = make_cq(r, 63);
	p->bcq = make_cq(r, 63);
	p->a = make_qp(r, &(struct qp_opts){ .type = type, .send_cq = p->acq, .recv_cq = p->acq });
	p->b = make_qp(r, &(struct qp_opts){
				  .type = type, .send_cq = p->bcq, .recv_cq = p->bcq, .srq = srq });
	connect_qps(p->a, p->b);
}

static void pair_drop(struct pair *p)
{
	assert_int_equal(ibv_destroy_qp(p->a), 0);
	assert_int_equal(ibv_destroy_qp(p->b), 0);
	assert_int_equal(ibv_destroy_cq(p->acq), 0);
	assert_int_equal(ibv_destroy_cq(p->bcq), 0);
}

/* ---- connected ------------------------------------------------------------------- */

static void messages(void **state)
{
	struct rig *r = *state;
	static const uint32_t sizes[] = { 0, 1, 32, 33, 1024, 1025, 20000 };
	struct ibv_sge s;
	struct ibv_send_wr wr = { .wr_id = 2,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .send_flags = IBV_SEND_SIGNALED,
				  .imm_data = htobe32(0x12345678),
				  .sg_list = &s };
	struct ibv_wc wc;
	struct pair p;

	pair_make(r, &p, IBV_QPT_RC, NULL);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(r->buf + 30000, 0, 21000);
		post_recv(p.b, 1, sge(r->mr, r->buf + 30000, 20000));
		s = sge(r->mr, r->buf + 3, sizes[i]);
		post_send(p.a, 2, s);
		expect_wc(p.acq, 2, IBV_WC_SUCCESS);
		wc = wait_wc(p.bcq);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.byte_len, sizes[i]);
		assert_int_equal(wc.wc_flags, 0);
		assert_memory_equal(r->buf + 30000, r->buf + 3, sizes[i]);
		assert_int_equal(r->buf[30000 + sizes[i]], 0);

		post_recv(p.b, 1, sge(r->mr, r->buf + 30000, 20000));
		wr.num_sge = sizes[i] ? 1 : 0;
		post_wr(p.a, &wr);
		wc = wait_wc(p.bcq);
		assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM);
		assert_int_equal(wc.imm_data, htobe32(0x12345678));
		assert_int_equal(wc.byte_len, sizes[i]);
		expect_wc(p.acq, 2, IBV_WC_SUCCESS);
	}
	pair_drop(&p);
}

static void write_with_immediate(void **state)
{
	struct rig *r = *state;
	struct ibv_wc wc;
	struct pair p;

	pair_make(r, &p, IBV_QPT_RC, NULL);
	memset(r->buf + 30000, 0, 200);
	post_recv(p.b, 1, sge(r->mr, r->buf + 30000, 100));
	post_rdma(p.a, 2, IBV_WR_RDMA_WRITE_WITH_IMM, sge(r->mr, r->buf, 77), r->mr->rkey,
		  (uintptr_t)r->buf + 40000);
	wc = wait_wc(p.bcq);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.byte_len, 77);
	assert_int_equal(wc.imm_data, htobe32(0xabcd1234));
	expect_wc(p.acq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf + 40000, r->buf, 77);
	assert_int_equal(r->buf[30000], 0);
	pair_drop(&p);
}

static void receive_too_short(void **state)
{
	struct rig *r = *state;
	struct pair p;

	pair_make(r, &p, IBV_QPT_RC, NULL);
	post_recv(p.b, 1, sge(r->mr, r->buf, 99));
	post_recv(p.b, 2, sge(r->mr, r->buf, 99));
	post_send(p.a, 3, sge(r->mr, r->buf + 1000, 100));
	expect_wc(p.acq, 3, IBV_WC_REM_INV_REQ_ERR);
	expect_wc(p.bcq, 1, IBV_WC_LOC_LEN_ERR);
	expect_wc(p.bcq, 2, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(qp_state(p.a), IBV_QPS_ERR);
	assert_int_equal(qp_state(p.b), IBV_QPS_ERR);
	pair_drop(&p);
}

static void receive_not_allowed(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *ro = ibv_reg_mr(r->pd, r->buf, 100, 0);
	struct pair p;

	assert_non_null(ro);
	pair_make(r, &p, IBV_QPT_RC, NULL);
	post_recv(p.b, 1, sge(ro, r->buf, 100));
	post_send(p.a, 3, sge(r->mr, r->buf + 1000, 100));
	expect_wc(p.acq, 3, IBV_WC_REM_OP_ERR);
	expect_wc(p.bcq, 1, IBV_WC_LOC_PROT_ERR);
	pair_drop(&p);
	assert_int_equal(ibv_dereg_mr(ro), 0);
}

/* Retried for ever: it waits, holds up what is behind it, and runs when there is a receive. */
static void waits_for_a_receive(void **state)
{
	struct rig *r = *state;
	struct pair p;

	pair_make(r, &p, IBV_QPT_RC, NULL);
	post_send(p.a, 1, sge(r->mr, r->buf, 10));
	post_rdma(p.a, 2, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 4), r->mr->rkey,
		  (uintptr_t)r->buf + 100);
	expect_no_wc(p.acq);
	post_recv(p.b, 3, sge(r->mr, r->buf + 5000, 10));
	expect_wc(p.acq, 1, IBV_WC_SUCCESS);
	expect_wc(p.acq, 2, IBV_WC_SUCCESS);
	expect_wc(p.bcq, 3, IBV_WC_SUCCESS);
	/* Write with immediate too. */
	post_rdma(p.a, 4, IBV_WR_RDMA_WRITE_WITH_IMM, sge(r->mr, r->buf, 4), r->mr->rkey,
		  (uintptr_t)r->buf + 100);
	expect_no_wc(p.acq);
	post_recv(p.b, 5, sge(r->mr, r->buf + 5000, 10));
	expect_wc(p.acq, 4, IBV_WC_SUCCESS);
	expect_wc(p.bcq, 5, IBV_WC_SUCCESS);
	/* A waiting one is flushed like any other. */
	post_send(p.a, 6, sge(r->mr, r->buf, 10));
	expect_no_wc(p.acq);
	qp_set_state(p.a, IBV_QPS_ERR);
	expect_wc(p.acq, 6, IBV_WC_WR_FLUSH_ERR);
	/* And destroyed with its queue pair. */
	qp_set_state(p.a, IBV_QPS_RESET);
	qp_set_state(p.b, IBV_QPS_RESET);
	connect_qps(p.a, p.b);
	post_send(p.a, 7, sge(r->mr, r->buf, 10));
	pair_drop(&p);
}

static void gives_up_waiting(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .sq_psn = 0x123456,
				    .timeout = 8,
				    .retry_cnt = 1,
				    .rnr_retry = 2,
				    .max_rd_atomic = 1 };
	struct pair p;

	pair_make(r, &p, IBV_QPT_RC, NULL);
	qp_set_state(p.a, IBV_QPS_RESET);
	qp_init(p.a);
	qp_rtr(p.a, p.b->qp_num);
	assert_int_equal(ibv_modify_qp(p.a, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
	post_send(p.a, 1, sge(r->mr, r->buf, 10));
	expect_wc(p.acq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(qp_state(p.a), IBV_QPS_ERR);
	assert_int_equal(qp_state(p.b), IBV_QPS_RTS);
	pair_drop(&p);
}

static void to_itself(void **state)
{
	struct rig *r = *state;
	struct ibv_wc a, b;

	post_recv(r->qp, 1, sge(r->mr, r->buf + 5000, 100));
	post_send(r->qp, 2, sge(r->mr, r->buf, 50));
	a = wait_wc(r->cq);
	b = wait_wc(r->cq);
	assert_int_equal(a.wr_id + b.wr_id, 3);
	assert_int_equal(a.status, IBV_WC_SUCCESS);
	assert_int_equal(b.status, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf + 5000, r->buf, 50);
}

/* Receives posted in RESET's successor, before the peer can send. */
static void receives_posted_early(void **state)
{
	struct rig *r = *state;
	struct pair p;

	pair_make(r, &p, IBV_QPT_RC, NULL);
	qp_set_state(p.a, IBV_QPS_RESET);
	qp_set_state(p.b, IBV_QPS_RESET);
	qp_init(p.b);
	for (uint64_t i = 0; i < 40; i++) {
		struct ibv_sge s = sge(r->mr, r->buf + 5000, 100);
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &s, .num_sge = 1 }, *bad;

		assert_int_equal(ibv_post_recv(p.b, &wr, &bad), i < 32 ? 0 : ENOMEM);
	}
	qp_init(p.a);
	qp_rtr(p.a, p.b->qp_num);
	qp_rtr(p.b, p.a->qp_num);
	qp_rts(p.a);
	for (uint64_t i = 0; i < 32; i++) {
		post_send(p.a, 100, sge(r->mr, r->buf, 50));
		expect_wc(p.acq, 100, IBV_WC_SUCCESS);
		expect_wc(p.bcq, i, IBV_WC_SUCCESS);
	}
	pair_drop(&p);
}

/* Unreliable connected: no receive, no message, no complaint. */
static void dropped(void **state)
{
	struct rig *r = *state;
	struct pair p;

	pair_make(r, &p, IBV_QPT_UC, NULL);
	post_send(p.a, 1, sge(r->mr, r->buf, 10));
	expect_wc(p.acq, 1, IBV_WC_SUCCESS);
	post_recv(p.b, 2, sge(r->mr, r->buf + 5000, 10));
	expect_no_wc(p.bcq);
	post_send(p.a, 3, sge(r->mr, r->buf, 10));
	expect_wc(p.acq, 3, IBV_WC_SUCCESS);
	expect_wc(p.bcq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf + 5000, r->buf, 10);
	pair_drop(&p);
}

/* ---- shared receive queues ------------------------------------------------------------ */

static struct ibv_srq *make_srq(struct rig *r, uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };
	struct ibv_srq *srq = ibv_create_srq(r->pd, &attr);

	assert_non_null(srq);
	assert_true(attr.attr.max_wr >= max_wr && attr.attr.max_sge >= max_sge);
	return srq;
}

static void post_srq(struct ibv_srq *srq, uint64_t id, struct ibv_sge *s, int num)
{
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = s, .num_sge = num }, *bad;

	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

static void shared_by_two(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 8, 3);
	struct ibv_sge parts[] = { sge(r->mr, r->buf + 5000, 10), sge(r->mr, r->buf + 6000, 500) };
	struct pair p, q;
	struct ibv_wc wc;

	pair_make(r, &p, IBV_QPT_RC, srq);
	pair_make(r, &q, IBV_QPT_RC, srq);
	for (uint64_t i = 0; i < 8; i++)
		post_srq(srq, i, parts, 2);
	for (uint64_t i = 0; i < 200; i++) {
		struct pair *at = i % 3 ? &p : &q;

		post_send(at->a, 50, sge(r->mr, r->buf + i, 100));
		expect_wc(at->acq, 50, IBV_WC_SUCCESS);
		wc = wait_wc(at->bcq);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.qp_num, at->b->qp_num);
		assert_memory_equal(r->buf + 5000, r->buf + i, 10);
		assert_memory_equal(r->buf + 6000, r->buf + i + 10, 90);
		post_srq(srq, i + 8, parts, 2);
	}
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	pair_drop(&p);
	pair_drop(&q);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* Entries of a shared queue with scatter to the CQE. */
static void shared_and_scattered(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 4, 1);
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .srq = srq, .scatter = true });
	struct ibv_sge s = sge(r->mr, r->buf + 5000, 100);
	struct ibv_cq *cq = make_cq(r, 15);
	struct ibv_qp *from = make_qp(r, &(struct qp_opts){ .send_cq = cq });

	connect_qps(from, qp);
	for (uint32_t n = 1; n < 40; n++) {
		memset(r->buf + 5000, 0, 100);
		post_srq(srq, n, &s, 1);
		post_send(from, 1, sge(r->mr, r->buf, n));
		expect_wc(cq, 1, IBV_WC_SUCCESS);
		expect_wc(r->cq, n, IBV_WC_SUCCESS);
		assert_memory_equal(r->buf + 5000, r->buf, n);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(from), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void limit_event(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 8, 1);
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	struct ibv_sge s = sge(r->mr, r->buf + 5000, 100);
	struct pair p;

	pair_make(r, &p, IBV_QPT_RC, srq);
	for (uint64_t i = 0; i < 6; i++)
		post_srq(srq, i, &s, 1);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	memset(&attr, 0, sizeof(attr));
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 3);
	for (int i = 0; i < 3; i++) {
		post_send(p.a, 9, sge(r->mr, r->buf, 8));
		expect_wc(p.acq, 9, IBV_WC_SUCCESS);
		expect_no_async(r->ctx);
	}
	post_send(p.a, 9, sge(r->mr, r->buf, 8));
	expect_wc(p.acq, 9, IBV_WC_SUCCESS);
	assert_int_equal(wait_async(r->ctx), IBV_EVENT_SRQ_LIMIT_REACHED);
	/* Once; then it is disarmed. */
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	post_send(p.a, 9, sge(r->mr, r->buf, 8));
	expect_wc(p.acq, 9, IBV_WC_SUCCESS);
	expect_no_async(r->ctx);
	/* No resizing; no limit above the size. */
	attr.max_wr = 100;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr.srq_limit = 100;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	pair_drop(&p);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void last_wqe_event(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 8, 1);
	struct ibv_sge s = sge(r->mr, r->buf + 5000, 100);
	struct pair p;

	pair_make(r, &p, IBV_QPT_RC, srq);
	post_srq(srq, 1, &s, 1);
	qp_set_state(p.b, IBV_QPS_ERR);
	assert_int_equal(wait_async(r->ctx), IBV_EVENT_QP_LAST_WQE_REACHED);
	/* Its receives are still the others'. */
	expect_no_wc(p.bcq);
	expect_no_async(r->ctx);
	qp_set_state(p.a, IBV_QPS_RESET);
	qp_set_state(p.b, IBV_QPS_RESET);
	connect_qps(p.a, p.b);
	post_send(p.a, 9, sge(r->mr, r->buf, 8));
	expect_wc(p.acq, 9, IBV_WC_SUCCESS);
	expect_wc(p.bcq, 1, IBV_WC_SUCCESS);
	pair_drop(&p);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* A waiting send runs when the shared queue gets an entry. */
static void waits_for_the_shared_queue(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 8, 1);
	struct ibv_sge s = sge(r->mr, r->buf + 5000, 100);
	struct pair p;

	pair_make(r, &p, IBV_QPT_RC, srq);
	post_send(p.a, 9, sge(r->mr, r->buf, 8));
	expect_no_wc(p.acq);
	post_srq(srq, 1, &s, 1);
	expect_wc(p.acq, 9, IBV_WC_SUCCESS);
	expect_wc(p.bcq, 1, IBV_WC_SUCCESS);
	pair_drop(&p);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* ---- datagrams -------------------------------------------------------------------------- */

#define QKEY 0x11111111

static struct ibv_ah *make_ah(struct rig *r, bool global, uint16_t lid)
{
	struct ibv_ah_attr attr = { .port_num = 1, .dlid = lid, .is_global = global };
	struct ibv_ah *ah;

	if (global) {
		assert_int_equal(ibv_query_gid(r->ctx, 1, 0, &attr.grh.dgid), 0);
		attr.grh.hop_limit = 5;
	}
	ah = ibv_create_ah(r->pd, &attr);
	assert_non_null(ah);
	return ah;
}

static void post_ud(struct pair *p, struct ibv_ah *ah, struct ibv_sge s, uint32_t qpn,
		    uint32_t qkey)
{
	struct ibv_send_wr wr = { .wr_id = 2,
				  .opcode = IBV_WR_SEND,
				  .sg_list = &s,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.ud = { ah, qpn, qkey } };

	post_wr(p->a, &wr);
	expect_wc(p->acq, 2, IBV_WC_SUCCESS);
}

static void datagrams(void **state)
{
	struct rig *r = *state;
	struct ibv_port_attr port;
	struct ibv_ah *ah, *global, *astray;
	struct ibv_sge s = sge(r->mr, r->buf, 60);
	union ibv_gid gid;
	struct ibv_wc wc;
	struct pair p;

	assert_int_equal(ibv_query_port(r->ctx, 1, &port), 0);
	ah = make_ah(r, false, port.lid);
	global = make_ah(r, true, port.lid);
	astray = make_ah(r, false, (uint16_t)(port.lid + 7));
	pair_make(r, &p, IBV_QPT_UD, NULL);
	post_recv(p.b, 1, sge(r->mr, r->buf + 5000, 200));
	post_ud(&p, ah, s, p.b->qp_num, QKEY);
	wc = wait_wc(p.bcq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 100);
	assert_int_equal(wc.src_qp, p.a->qp_num);
	assert_int_equal(wc.slid, port.lid);
	assert_int_equal(wc.wc_flags, 0);
	assert_memory_equal(r->buf + 5040, r->buf, 60);

	post_recv(p.b, 1, sge(r->mr, r->buf + 5000, 200));
	post_ud(&p, global, s, p.b->qp_num, QKEY);
	wc = wait_wc(p.bcq);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH);
	assert_int_equal(ibv_query_gid(r->ctx, 1, 0, &gid), 0);
	assert_int_equal(r->buf[5000] >> 4, 6);
	assert_int_equal(r->buf[5007], 5);
	assert_memory_equal(r->buf + 5008, gid.raw, 16);
	assert_memory_equal(r->buf + 5024, gid.raw, 16);
	assert_memory_equal(r->buf + 5040, r->buf, 60);

	/* Lost on the way: wrong key, nobody there, another port, no receive. */
	post_recv(p.b, 3, sge(r->mr, r->buf + 5000, 200));
	post_ud(&p, ah, s, p.b->qp_num, QKEY + 1);
	post_ud(&p, ah, s, 0xfffff0, QKEY);
	post_ud(&p, astray, s, p.b->qp_num, QKEY);
	expect_no_wc(p.bcq);
	post_ud(&p, ah, s, p.b->qp_num, QKEY);
	expect_wc(p.bcq, 3, IBV_WC_SUCCESS);
	post_ud(&p, ah, s, p.b->qp_num, QKEY);
	expect_no_wc(p.bcq);

	/* The sender's own key by its top bit. */
	post_recv(p.b, 4, sge(r->mr, r->buf + 5000, 200));
	post_ud(&p, ah, s, p.b->qp_num, 0x80000000);
	expect_wc(p.bcq, 4, IBV_WC_SUCCESS);
	pair_drop(&p);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_ah(global), 0);
	assert_int_equal(ibv_destroy_ah(astray), 0);
}

/* A datagram is a packet; a local error stops the send queue alone. */
static void datagram_errors(void **state)
{
	struct rig *r = *state;
	struct ibv_port_attr port;
	struct ibv_ah *ah;
	struct ibv_sge s = sge(r->mr, r->buf, 4097);
	struct ibv_send_wr wr = { .wr_id = 2,
				  .opcode = IBV_WR_SEND,
				  .sg_list = &s,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED };
	struct pair p;

	assert_int_equal(ibv_query_port(r->ctx, 1, &port), 0);
	ah = make_ah(r, false, port.lid);
	pair_make(r, &p, IBV_QPT_UD, NULL);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = p.b->qp_num;
	wr.wr.ud.remote_qkey = QKEY;
	post_recv(p.a, 9, sge(r->mr, r->buf + 5000, 200));
	post_recv(p.b, 1, sge(r->mr, r->buf + 5000, 5000));
	post_wr(p.a, &wr);
	expect_wc(p.acq, 2, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(qp_state(p.a), IBV_QPS_SQE);
	s.length = 4096;
	post_wr(p.a, &wr);
	expect_wc(p.acq, 2, IBV_WC_WR_FLUSH_ERR);
	qp_set_state(p.a, IBV_QPS_RTS);
	post_wr(p.a, &wr);
	expect_wc(p.acq, 2, IBV_WC_SUCCESS);
	expect_wc(p.bcq, 1, IBV_WC_SUCCESS);
	/* Received in SQE as ever: a's own receive was not flushed. */
	expect_no_wc(p.acq);
	pair_drop(&p);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

static void multicast(void **state)
{
	struct rig *r = *state;
	union ibv_gid group = { .raw = { 0xff, 0x12, [15] = 9 } };
	struct ibv_ah_attr attr = { .port_num = 1, .dlid = 0xc009, .is_global = 1 };
	struct ibv_ah *ah;
	struct ibv_qp *third = make_qp(r, &(struct qp_opts){ .type = IBV_QPT_UD });
	struct pair p;

	attr.grh.dgid = group;
	ah = ibv_create_ah(r->pd, &attr);
	assert_non_null(ah);
	pair_make(r, &p, IBV_QPT_UD, NULL);
	connect_qps(third, third);
	assert_int_equal(ibv_attach_mcast(p.b, &group, 0xc009), 0);
	assert_int_equal(ibv_attach_mcast(third, &group, 0xc009), 0);
	post_recv(p.b, 1, sge(r->mr, r->buf + 5000, 200));
	post_recv(third, 3, sge(r->mr, r->buf + 6000, 200));
	post_ud(&p, ah, sge(r->mr, r->buf, 20), 0xffffff, QKEY);
	expect_wc(p.bcq, 1, IBV_WC_SUCCESS);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf + 5040, r->buf, 20);
	assert_memory_equal(r->buf + 6040, r->buf, 20);
	assert_int_equal(ibv_detach_mcast(p.b, &group, 0xc009), 0);
	assert_int_equal(ibv_detach_mcast(p.b, &group, 0xc009), EINVAL);
	assert_int_equal(ibv_destroy_qp(third), EBUSY);
	assert_int_equal(ibv_detach_mcast(third, &group, 0xc009), 0);
	assert_int_equal(ibv_attach_mcast(r->qp, &group, 0xc009), EINVAL);
	pair_drop(&p);
	assert_int_equal(ibv_destroy_qp(third), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(messages),
		TEST(write_with_immediate),
		TEST(receive_too_short),
		TEST(receive_not_allowed),
		TEST(waits_for_a_receive),
		TEST(gives_up_waiting),
		TEST(to_itself),
		TEST(receives_posted_early),
		TEST(dropped),
		TEST(shared_by_two),
		TEST(shared_and_scattered),
		TEST(limit_event),
		TEST(last_wqe_event),
		TEST(waits_for_the_shared_queue),
		TEST(datagrams),
		TEST(datagram_errors),
		TEST(multicast),
	};

	return cmocka_run_group_tests_name("send", tests, NULL, NULL);
}
