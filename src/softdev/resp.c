/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder: receive work requests and what arrives in them. */
#include <errno.h>
#include <string.h>

#include "caps.h"
#include "queue.h"

bool sd_recv_posted(struct sd_qp *qp)
{
	if (qp->srq)
		return !qp->srq->broken && qp->srq->seen != qp->srq->taken;
	return qp->rq_num && qp->rq_seen != qp->rq_next;
}

/* Word by word: the process's memory is not copied by calls that a sanitizer watches. */
static void load(void *to, const uint8_t *from, size_t bytes)
{
	uint64_t *w = to;

	for (size_t i = 0; i < bytes / 8; i++)
		w[i] = __atomic_load_n((const uint64_t *)from + i, __ATOMIC_RELAXED);
}

static void parse_segments(struct sd_recv *r, const uint8_t *at, uint32_t bytes)
{
	for (r->num = 0; r->num < bytes / 16; r->num++) {
		struct mlx5_wqe_data_seg *seg = &r->seg[r->num];

		load(seg, at + r->num * (size_t)16, 16);
		if (be32toh(seg->lkey) == MLX5_INVALID_LKEY)
			return;
	}
}

int sd_recv_take(struct sd_qp *qp, struct sd_recv *r)
{
	struct sd_srq *srq = qp->srq;
	struct mlx5_wqe_srq_next_seg next;
	const uint8_t *wqe;
	uint32_t skip;

	if (!sd_recv_posted(qp))
		return -EAGAIN;
	r->srq = srq;
	if (srq) {
		r->index = srq->head;
		r->pdn = srq->pd->pdn;
		wqe = srq->buf + ((size_t)r->index << srq->shift);
		load(&next, wqe, sizeof(next));
		parse_segments(r, wqe + sizeof(next), (1u << srq->shift) - sizeof(next));
		srq->taken++;
		srq->head = be16toh(next.next_wqe_index);
		if (srq->head >= srq->num) {
			srq->broken = true;
			sd_event(&srq->obj, IBV_EVENT_SRQ_ERR);
		}
		sd_srq_check_limit(srq);
		return 0;
	}
	r->index = qp->rq_next;
	r->pdn = qp->pd->pdn;
	wqe = qp->rq + ((size_t)(r->index & (qp->rq_num - 1)) << qp->rq_shift);
	skip = qp->flags & MLX5_QP_FLAG_SIGNATURE ? 16 : 0;
	parse_segments(r, wqe + skip, (1u << qp->rq_shift) - skip);
	qp->rq_next++;
	return 0;
}

static void recv_error(struct sd_qp *qp, uint16_t index, uint8_t syndrome)
{
	struct sd_cqe c;

	sd_cqe_error(&c, qp, true, syndrome, 0, index);
	sd_complete(qp, qp->recv_cq, &c, NULL);
}

/* Where a message goes: the receive work request's segments, as far as it reaches. */
static int place(struct sd_qp *qp, const struct sd_recv *r, const struct sd_message *m,
		 struct sd_cqe *c, uint8_t *ret_syndrome)
{
	struct sd_span dst;
	int ret;

	sd_span_init(&dst, r->pdn, IBV_ACCESS_LOCAL_WRITE);
	for (uint32_t i = 0; i < r->num; i++)
		sd_span_add(&dst, be32toh(r->seg[i].lkey), be64toh(r->seg[i].addr),
			    be32toh(r->seg[i].byte_count));
	*ret_syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	if (m->payload->bytes > dst.bytes)
		return -EMSGSIZE;
	*ret_syndrome = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
	if (m->payload->bytes && m->payload->bytes <= sd_scatter_room(qp, true)) {
		c->scatter = sd_scatter_room(qp, true);
		return sd_span_read(m->payload, c->data, m->payload->bytes);
	}
	ret = sd_span_check(&dst, m->payload->bytes);
	return ret ? ret : sd_span_copy(&dst, m->payload, m->payload->bytes);
}

uint8_t sd_deliver(struct sd_qp *qp, const struct sd_message *m)
{
	struct sd_recv r;
	struct sd_cqe c;
	uint8_t syndrome;

	if (sd_recv_take(qp, &r))
		return MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR;
	sd_cqe_req(&c, qp, 0, r.index);
	c.cqe.op_own = (uint8_t)(m->opcode << 4);
	if (m->payload && place(qp, &r, m, &c, &syndrome)) {
		recv_error(qp, r.index, syndrome);
		sd_qp_fail(qp, IBV_QPS_ERR);
		return syndrome == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR
			       ? MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
			       : MLX5_CQE_SYNDROME_REMOTE_OP_ERR;
	}
	c.cqe.byte_cnt = htobe32((uint32_t)m->bytes);
	c.cqe.imm_inval_pkey = m->imm_be;
	c.cqe.slid = htobe16(SD_LID);
	c.cqe.flags_rqpn = htobe32(m->src_qp | (m->grh ? 1u << 28 : 0));
	c.solicited = m->solicited;
	sd_complete(qp, qp->recv_cq, &c, NULL);
	sd_count("wqe.recv", 1);
	return 0;
}

bool sd_flush_recv(struct sd_qp *qp)
{
	bool any = false;

	if (qp->srq) {
		if (!qp->last_wqe)
			sd_event(&qp->obj, IBV_EVENT_QP_LAST_WQE_REACHED);
		qp->last_wqe = true;
		return false;
	}
	while (sd_recv_posted(qp)) {
		recv_error(qp, qp->rq_next++, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
		any = true;
	}
	return any;
}
