/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pair states: which change is allowed with which attributes, and what it does. */
#include <errno.h>
#include <string.h>

#include "caps.h"
#include "queue.h"

/* Filled entries of the port's tables. */
#define GIDS  1
#define PKEYS 1

#define S(state) IBV_QPS_##state

#define ADDR	(IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define PATHS	(IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)
#define INIT_RC (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define INIT_UD (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)

enum { RC, UC, UD };

/* The transitions of the IB specification beside those to RESET and ERR, which are always allowed:
 * the attributes that each needs and those it takes. */
static const struct rule {
	enum ibv_qp_state from, to;
	uint32_t needs[3], takes[3];
} rules[] = {
	{ S(RESET), S(INIT), { INIT_RC, INIT_RC, INIT_UD }, { 0, 0, 0 } },
	{ S(INIT), S(INIT), { 0, 0, 0 }, { INIT_RC, INIT_RC, INIT_UD } },
	{ S(INIT),
	  S(RTR),
	  { ADDR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER, ADDR, 0 },
	  { IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
	    IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
	    IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
	{ S(RTR),
	  S(RTS),
	  { IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		    IBV_QP_MAX_QP_RD_ATOMIC,
	    IBV_QP_SQ_PSN, IBV_QP_SQ_PSN },
	  { IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER,
	    IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	{ S(RTS),
	  S(RTS),
	  { 0, 0, 0 },
	  { IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER,
	    IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	{ S(RTS),
	  S(SQD),
	  { 0, 0, 0 },
	  { IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY } },
	{ S(SQD),
	  S(RTS),
	  { 0, 0, 0 },
	  { IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER,
	    IBV_QP_CUR_STATE | PATHS | IBV_QP_ACCESS_FLAGS, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	{ S(SQD),
	  S(SQD),
	  { 0, 0, 0 },
	  { IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		    IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC | PATHS |
		    IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER,
	    IBV_QP_AV | PATHS | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX,
	    IBV_QP_PKEY_INDEX | IBV_QP_QKEY } },
	{ S(SQE),
	  S(RTS),
	  { 0, 0, 0 },
	  { 0, IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
};

static bool allowed(const struct sd_qp *qp, enum ibv_qp_state to, uint32_t mask)
{
	unsigned int t = qp->type == IB_UVERBS_QPT_RC ? RC : qp->type == IB_UVERBS_QPT_UC ? UC : UD;

	mask &= ~(uint32_t)IBV_QP_STATE;
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return !mask;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		const struct rule *r = &rules[i];

		if (r->from == qp->state && r->to == to)
			return (mask & r->needs[t]) == r->needs[t] &&
			       !(mask & ~(r->needs[t] | r->takes[t]));
	}
	return false;
}

/* What the kernel checks before it looks at states. */
static int values_ok(const struct sd_qp *qp, const struct ib_uverbs_modify_qp *m)
{
	uint32_t mask = m->attr_mask;

	if ((mask & IBV_QP_PORT) && m->port_num != SD_PORT)
		return -EINVAL;
	if ((mask & IBV_QP_AV) &&
	    (m->dest.port_num != SD_PORT || (m->dest.is_global && m->dest.sgid_index >= GIDS)))
		return -EINVAL;
	if ((mask & IBV_QP_ALT_PATH) &&
	    (m->alt_port_num != SD_PORT || m->alt_dest.port_num != SD_PORT))
		return -EINVAL;
	if ((mask & IBV_QP_CUR_STATE) && m->cur_qp_state != (uint8_t)qp->state)
		return -EINVAL;
	if ((mask & IBV_QP_STATE) && m->qp_state > IBV_QPS_ERR)
		return -EINVAL;
	if ((mask & IBV_QP_PKEY_INDEX) && m->pkey_index >= PKEYS)
		return -EINVAL;
	if ((mask & IBV_QP_PATH_MTU) && (m->path_mtu < IBV_MTU_256 || m->path_mtu > IBV_MTU_4096))
		return -EINVAL;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && m->max_rd_atomic > SD_MAX_RD_ATOM)
		return -EINVAL;
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && m->max_dest_rd_atomic > SD_MAX_RD_ATOM)
		return -EINVAL;
	return 0;
}

static void take_path(struct sd_qp *qp, const struct ib_uverbs_modify_qp *m)
{
	struct ib_uverbs_modify_qp *a = &qp->attr;

	if (m->attr_mask & IBV_QP_AV)
		a->dest = m->dest;
	if (m->attr_mask & IBV_QP_ALT_PATH) {
		a->alt_dest = m->alt_dest;
		a->alt_port_num = m->alt_port_num;
		a->alt_timeout = m->alt_timeout;
		a->alt_pkey_index = m->alt_pkey_index;
	}
	if (m->attr_mask & IBV_QP_RQ_PSN)
		qp->rq_psn = m->rq_psn & 0xffffff;
	if (m->attr_mask & IBV_QP_SQ_PSN)
		qp->sq_psn = m->sq_psn & 0xffffff;
	qp->draining = (m->attr_mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && m->en_sqd_async_notify;
}

static void take(struct sd_qp *qp, const struct ib_uverbs_modify_qp *m)
{
	struct ib_uverbs_modify_qp *a = &qp->attr;

#define TAKE(bit, field)                     \
	do {                                 \
		if (m->attr_mask & (bit))    \
			a->field = m->field; \
	} while (0)
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_QKEY, qkey);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_PATH_MIG_STATE, path_mig_state);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
#undef TAKE
	take_path(qp, m);
}

static void reset(struct sd_qp *qp)
{
	sd_forget_qp(qp);
	sd_bell_reset(qp);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->sq_next = qp->sq_seen = 0;
	qp->rq_next = qp->rq_seen = 0;
	qp->sq_psn = qp->rq_psn = 0;
	qp->stall = SD_RUNS;
	qp->draining = qp->last_wqe = false;
}

int sd_wr_modify_qp(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_modify_qp *m = w->in;
	struct sd_qp *qp = sd_obj_find(ctx, SD_QP, m->qp_handle);
	enum ibv_qp_state to;
	int ret;

	if (!qp)
		return -EINVAL;
	/* Rate limits, the one attribute of the extended command, are for raw packets. */
	if (m->attr_mask & ~(uint32_t)(IBV_QP_RATE_LIMIT - 1))
		return -EOPNOTSUPP;
	ret = values_ok(qp, m);
	if (ret)
		return ret;
	to = m->attr_mask & IBV_QP_STATE ? (enum ibv_qp_state)m->qp_state : qp->state;
	if (!allowed(qp, to, m->attr_mask))
		return -EINVAL;
	if (to == IBV_QPS_RESET)
		reset(qp);
	take(qp, m);
	qp->state = to;
	sd_activate(qp);
	sd_engine_run();
	return 0;
}

int sd_wr_query_qp(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_query_qp *cmd = w->in;
	struct sd_qp *qp = sd_obj_find(ctx, SD_QP, cmd->qp_handle);
	const struct ib_uverbs_modify_qp *a;

	if (!qp)
		return -EINVAL;
	a = &qp->attr;
	const struct ib_uverbs_query_qp_resp resp = {
		.dest = a->dest,
		.alt_dest = a->alt_dest,
		.max_send_wr = qp->cap.max_send_wr,
		.max_recv_wr = qp->rq_num,
		.max_send_sge = qp->cap.max_send_sge,
		.max_recv_sge = qp->cap.max_recv_sge,
		.max_inline_data = qp->cap.max_inline_data,
		.qkey = a->qkey,
		.rq_psn = qp->rq_psn,
		.sq_psn = qp->sq_psn,
		.dest_qp_num = a->dest_qp_num,
		.qp_access_flags = a->qp_access_flags,
		.pkey_index = a->pkey_index,
		.alt_pkey_index = a->alt_pkey_index,
		.qp_state = (uint8_t)qp->state,
		.cur_qp_state = (uint8_t)qp->state,
		.path_mtu = a->path_mtu,
		.path_mig_state = a->path_mig_state,
		.sq_draining = qp->state == IBV_QPS_SQD && qp->stall != SD_RUNS,
		.max_rd_atomic = a->max_rd_atomic,
		.max_dest_rd_atomic = a->max_dest_rd_atomic,
		.min_rnr_timer = a->min_rnr_timer,
		.port_num = a->port_num,
		.timeout = a->timeout,
		.retry_cnt = a->retry_cnt,
		.rnr_retry = a->rnr_retry,
		.alt_port_num = a->alt_port_num,
		.alt_timeout = a->alt_timeout,
		.sq_sig_all = qp->sig_all,
	};
	return sd_write_out(w, &resp, sizeof(resp));
}
