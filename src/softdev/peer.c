/* SPDX-License-Identifier: BSD-2-Clause */
/* The other end: finding it, counting packets with it, waiting for it, being refused by it. */
#include <errno.h>

#include "choices.h"
#include "wqe.h"

bool sd_receives(const struct sd_qp *qp)
{
	return qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD ||
	       qp->state == IBV_QPS_SQE;
}

struct sd_qp *sd_peer(const struct sd_qp *qp)
{
	struct sd_qp *peer = sd_qp_find(qp->attr.dest_qp_num & 0xffffff);

	if (!peer || peer->type != qp->type || !sd_receives(peer) ||
	    (peer->attr.dest_qp_num & 0xffffff) != qp->qpn || !sd_addr_is_ours(&qp->attr.dest))
		return NULL;
	return qp->type == IB_UVERBS_QPT_UC || peer->rq_psn == qp->sq_psn ? peer : NULL;
}

static uint32_t packets(const struct sd_qp *qp, uint64_t bytes)
{
	uint32_t mtu = 128u << qp->attr.path_mtu;

	return bytes > mtu ? (uint32_t)((bytes + mtu - 1) / mtu) : 1;
}

void sd_psn_advance(struct sd_qp *qp, struct sd_qp *peer, uint64_t bytes)
{
	uint32_t num = packets(qp, bytes);

	qp->sq_psn = (qp->sq_psn + num) & 0xffffff;
	peer->rq_psn = (peer->rq_psn + num) & 0xffffff;
}

/* IB's table of RNR timers, in units of 10 us. */
static uint64_t rnr_ns(uint8_t timer)
{
	static const uint16_t units[32] = {
		65536 - 1, 1,	 2,    3,    4,	   6,	  8,	 12,	16,    24,   32,
		48,	   64,	 96,   128,  192,  256,	  384,	 512,	768,   1024, 1536,
		2048,	   3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152
	};

	return (uint64_t)units[timer & 31] * 10000;
}

/* Wait for the peer, or give up: at once when nothing else can happen before the doorbell's return,
 * in time where there is a thread to see to it. */
static int wait_for(struct sd_qp *qp, enum sd_stall why, bool for_ever, uint64_t ns,
		    uint8_t syndrome)
{
	if (qp->stall != why) {
		qp->stall = why;
		qp->stall_until = for_ever ? UINT64_MAX : sd_now_ns() + ns;
	}
	if (qp->stall_until == UINT64_MAX)
		return SD_WAIT;
	if (sd_config.mode == SD_ASYNC && sd_now_ns() < qp->stall_until)
		return SD_WAIT;
	return syndrome;
}

int sd_wait_peer(struct sd_qp *qp)
{
	uint64_t ns = (UINT64_C(4096) << (qp->attr.timeout & 31)) * (qp->attr.retry_cnt + 1u);

	return wait_for(qp, SD_WAITS_PEER, !qp->attr.timeout, ns,
			MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
}

int sd_wait_rnr(struct sd_qp *qp, const struct sd_qp *peer)
{
	return wait_for(qp, SD_WAITS_RNR, qp->attr.rnr_retry == 7,
			rnr_ns(peer->attr.min_rnr_timer) * qp->attr.rnr_retry,
			MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
}

/* The responder refuses: what it does, and what the requester sees. */
int sd_refuse(struct sd_qp *qp, struct sd_qp *peer, uint8_t syndrome)
{
	/* Unreliable: the message is dropped and nobody hears of it. */
	if (qp->type == IB_UVERBS_QPT_UC)
		return 0;
	sd_qp_fail(peer, IBV_QPS_ERR);
	sd_event(&peer->obj, syndrome == MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
				     ? IBV_EVENT_QP_REQ_ERR
				     : IBV_EVENT_QP_ACCESS_ERR);
	return syndrome;
}

uint8_t sd_syndrome(int err, bool remote)
{
	if (err == -ENOMEM)
		return remote ? MLX5_CQE_SYNDROME_REMOTE_OP_ERR : MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
	if (err == SD_HOLE)
		return remote ? SD_CHOICE_REMOTE_HOLE_SYNDROME : SD_CHOICE_LOCAL_HOLE_SYNDROME;
	return remote ? MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR : MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
}
