/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: making them, their states, and what they find at the other end. */
#include "rig.h"

/* ---- states ---------------------------------------------------------------------- */

static int modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
	return ibv_modify_qp(qp, &attr, mask);
}

#define INIT_MASK (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RTR_RC                                                                          \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
	 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC                                                                                 \
	(IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
	 IBV_QP_MAX_QP_RD_ATOMIC)

static struct ibv_qp_attr good(enum ibv_qp_state state)
{
	return (struct ibv_qp_attr){
		.qp_state = state,
		.port_num = 1,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.ah_attr = { .port_num = 1, .dlid = 1 },
	};
}

/* Every attribute a transition needs is needed, and one that it does not take is refused. */
static void transitions_need_their_attributes(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ 0 });
	static const struct {
		enum ibv_qp_state to;
		int mask, wrong;
	} steps[] = {
		{ IBV_QPS_INIT, INIT_MASK | IBV_QP_ACCESS_FLAGS, IBV_QP_QKEY },
		{ IBV_QPS_RTR, RTR_RC, IBV_QP_TIMEOUT },
		{ IBV_QPS_RTS, RTS_RC, IBV_QP_DEST_QPN },
	};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		for (int bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1)
			if ((steps[i].mask & bit) && bit != IBV_QP_STATE)
				assert_int_equal(
					modify(qp, good(steps[i].to), steps[i].mask & ~bit),
					EINVAL);
		assert_int_equal(modify(qp, good(steps[i].to), steps[i].mask | steps[i].wrong),
				 EINVAL);
		assert_int_equal(modify(qp, good(steps[i].to), steps[i].mask), 0);
		assert_int_equal(qp_state(qp), steps[i].to);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void bring(struct ibv_qp *qp, enum ibv_qp_state state)
{
	qp_set_state(qp, IBV_QPS_RESET);
	if (state == IBV_QPS_RESET)
		return;
	qp_init(qp);
	if (state == IBV_QPS_INIT)
		return;
	qp_rtr(qp, qp->qp_num);
	if (state == IBV_QPS_RTR)
		return;
	qp_rts(qp);
	if (state == IBV_QPS_SQD || state == IBV_QPS_ERR)
		qp_set_state(qp, state);
}

/* From each state to each state: the table of the IB specification. */
static void all_transitions(void **state)
{
	struct rig *r = *state;
	static const char *const allowed[] = {
		[IBV_QPS_RESET] = "RI    E", [IBV_QPS_INIT] = "RIr   E", [IBV_QPS_RTR] = "R  S  E",
		[IBV_QPS_RTS] = "R  SD E",   [IBV_QPS_SQD] = "R  SD E",	 [IBV_QPS_ERR] = "R     E",
	};
	static const enum ibv_qp_state all[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
						 IBV_QPS_RTS,	IBV_QPS_SQD,  IBV_QPS_ERR };
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ 0 });

	for (size_t f = 0; f < 6; f++) {
		for (size_t t = 0; t < 6; t++) {
			int mask = IBV_QP_STATE, want, column = (int)all[t];

			if (all[t] == IBV_QPS_INIT)
				mask = INIT_MASK | IBV_QP_ACCESS_FLAGS;
			if (all[t] == IBV_QPS_RTR)
				mask = RTR_RC;
			if (all[t] == IBV_QPS_RTS && all[f] == IBV_QPS_RTR)
				mask = RTS_RC;
			bring(qp, all[f]);
			want = allowed[all[f]][column] == ' ' ? EINVAL : 0;
			if (modify(qp, good(all[t]), mask) != want)
				fail_msg("from %d to %d", (int)all[f], (int)all[t]);
			assert_int_equal(qp_state(qp), want ? all[f] : all[t]);
		}
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void bad_values(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ 0 });
	struct ibv_qp_attr a = good(IBV_QPS_INIT);

	a.port_num = 2;
	assert_int_equal(modify(qp, a, INIT_MASK | IBV_QP_ACCESS_FLAGS), EINVAL);
	a = good(IBV_QPS_INIT);
	a.pkey_index = 9999;
	assert_int_equal(modify(qp, a, INIT_MASK | IBV_QP_ACCESS_FLAGS), EINVAL);
	qp_init(qp);
	a = good(IBV_QPS_RTR);
	a.ah_attr.port_num = 0;
	assert_int_equal(modify(qp, a, RTR_RC), EINVAL);
	a = good(IBV_QPS_RTR);
	a.path_mtu = 0;
	assert_int_equal(modify(qp, a, RTR_RC), EINVAL);
	a.path_mtu = 6;
	assert_int_equal(modify(qp, a, RTR_RC), EINVAL);
	a = good(IBV_QPS_RTR);
	a.max_dest_rd_atomic = 200;
	assert_int_equal(modify(qp, a, RTR_RC), EINVAL);
	a = good(IBV_QPS_RTR);
	a.ah_attr.is_global = 1;
	a.ah_attr.grh.sgid_index = 7;
	assert_int_equal(modify(qp, a, RTR_RC), EINVAL);
	qp_rtr(qp, qp->qp_num);
	a = good(IBV_QPS_RTS);
	a.max_rd_atomic = 200;
	assert_int_equal(modify(qp, a, RTS_RC), EINVAL);
	a = good(IBV_QPS_RTS);
	a.cur_qp_state = IBV_QPS_INIT;
	assert_int_equal(modify(qp, a, RTS_RC | IBV_QP_CUR_STATE), EINVAL);
	a.cur_qp_state = IBV_QPS_RTR;
	assert_int_equal(modify(qp, a, RTS_RC | IBV_QP_CUR_STATE), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void query_tells_what_was_set(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .sig_all = true, .max_wr = 16 });
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a = good(IBV_QPS_INIT);

	a.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	assert_int_equal(modify(qp, a, INIT_MASK | IBV_QP_ACCESS_FLAGS), 0);
	a = good(IBV_QPS_RTR);
	a.path_mtu = IBV_MTU_2048;
	a.dest_qp_num = 0x777;
	a.rq_psn = 0xabcdef;
	a.max_dest_rd_atomic = 7;
	a.min_rnr_timer = 12;
	a.ah_attr.sl = 3;
	assert_int_equal(modify(qp, a, RTR_RC), 0);
	a = good(IBV_QPS_RTS);
	a.timeout = 14;
	a.retry_cnt = 6;
	a.rnr_retry = 5;
	a.sq_psn = 0x1234;
	a.max_rd_atomic = 3;
	assert_int_equal(modify(qp, a, RTS_RC), 0);
	memset(&a, 0, sizeof(a));
	assert_int_equal(ibv_query_qp(qp, &a, 0xffff, &init), 0);
	assert_int_equal(a.qp_state, IBV_QPS_RTS);
	assert_int_equal(a.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(a.path_mtu, IBV_MTU_2048);
	assert_int_equal(a.dest_qp_num, 0x777);
	assert_int_equal(a.rq_psn, 0xabcdef);
	assert_int_equal(a.sq_psn, 0x1234);
	assert_int_equal(a.max_dest_rd_atomic, 7);
	assert_int_equal(a.max_rd_atomic, 3);
	assert_int_equal(a.min_rnr_timer, 12);
	assert_int_equal(a.timeout, 14);
	assert_int_equal(a.retry_cnt, 6);
	assert_int_equal(a.rnr_retry, 5);
	assert_int_equal(a.port_num, 1);
	assert_int_equal(a.ah_attr.sl, 3);
	assert_int_equal(a.ah_attr.dlid, 1);
	assert_int_equal(init.sq_sig_all, 1);
	assert_true(init.cap.max_recv_wr >= 16);
	qp_set_state(qp, IBV_QPS_RESET);
	assert_int_equal(ibv_query_qp(qp, &a, 0xffff, &init), 0);
	assert_int_equal(a.dest_qp_num, 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void types_that_are_not_there(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr attr = { .send_cq = r->cq,
					 .recv_cq = r->cq,
					 .cap = { 1, 1, 1, 1, 0 },
					 .qp_type = IBV_QPT_RAW_PACKET };

	assert_null(ibv_create_qp(r->pd, &attr));
	attr.qp_type = IBV_QPT_RC;
	attr.cap.max_send_wr = 1 << 20;
	assert_null(ibv_create_qp(r->pd, &attr));
}

/* What a QP rests on cannot go; a QP with work outstanding can. */
static void destroying(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *cq = make_cq(r, 8);
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .send_cq = cq, .recv_cq = cq, .pd = pd });

	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	connect_qps(qp, qp);
	for (int i = 0; i < 5; i++)
		post_recv(qp, 1, sge(r->mr, r->buf, 4));
	post_rdma(qp, 3, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 4), r->mr->rkey, (uintptr_t)r->buf);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	expect_no_wc(cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* ---- the other end ------------------------------------------------------------------ */

/* The peer is not there, not ready, somebody else's, or counts differently. */
static void peer_unreachable(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = make_qp(r, &(struct qp_opts){ 0 }),
		      *b = make_qp(r, &(struct qp_opts){ 0 });
	struct ibv_sge s = sge(r->mr, r->buf, 8);
	struct ibv_qp_attr attr = good(IBV_QPS_RTS);

	qp_init(a);
	qp_rtr(a, 0xfedcba);
	qp_rts(a);
	post_rdma(a, 1, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(qp_state(a), IBV_QPS_ERR);

	qp_set_state(a, IBV_QPS_RESET);
	qp_init(a);
	qp_rtr(a, b->qp_num);
	qp_rts(a);
	qp_init(b);
	post_rdma(a, 2, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 2, IBV_WC_RETRY_EXC_ERR);

	qp_set_state(a, IBV_QPS_RESET);
	qp_init(a);
	qp_rtr(a, r->qp->qp_num);
	qp_rts(a);
	post_rdma(a, 3, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 3, IBV_WC_RETRY_EXC_ERR);

	qp_set_state(a, IBV_QPS_RESET);
	qp_init(a);
	qp_rtr(a, a->qp_num);
	attr.sq_psn = 5;
	attr.timeout = 8;
	assert_int_equal(modify(a, attr, RTS_RC), 0);
	post_rdma(a, 4, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf);
	expect_wc(r->cq, 4, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

/* ---- draining ------------------------------------------------------------------------------- */

static void drained(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
	struct ibv_sge s = sge(r->mr, r->buf, 8);

	assert_int_equal(ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	assert_int_equal(wait_async(r->ctx), IBV_EVENT_SQ_DRAINED);
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, s, r->mr->rkey, (uintptr_t)r->buf + 100);
	expect_no_wc(r->cq);
	qp_set_state(r->qp, IBV_QPS_RTS);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(transitions_need_their_attributes),
		TEST(all_transitions),
		TEST(bad_values),
		TEST(query_tells_what_was_set),
		TEST(types_that_are_not_there),
		TEST(destroying),
		TEST(peer_unreachable),
		TEST(drained),
	};

	return cmocka_run_group_tests_name("qp", tests, NULL, NULL);
}
