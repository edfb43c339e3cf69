/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester: work requests from the send ring to their completions. What each does is in rdma.c,
 * send.c and umr.c. */
#include <errno.h>

#include "choices.h"
#include "wqe.h"

#define BB MLX5_SEND_WQE_BB

/* ---- the ring ---------------------------------------------------------------------- */

static uint16_t posted(const struct sd_qp *qp)
{
	return qp->sq_seen - qp->sq_next;
}

static void load(struct sd_qp *qp, uint32_t bb, uint8_t *to, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i += 8) {
		uint32_t at = ((bb & (qp->sq_num - 1)) * BB + i) & (qp->sq_num * BB - 1);

		*(uint64_t *)(to + i) =
			__atomic_load_n((const uint64_t *)(qp->sq + at), __ATOMIC_RELAXED);
	}
}

/* How many WQEBBs it takes; false for one that cannot be what was posted. */
static bool fetch(struct sd_qp *qp, struct sd_wqe *w, uint16_t *ret_bbs)
{
	const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)w->b;
	uint32_t word, bbs;

	load(qp, qp->sq_next, w->b, sizeof(*ctrl));
	word = be32toh(ctrl->opmod_idx_opcode);
	w->index = qp->sq_next;
	w->opcode = word & 0xff;
	w->opmod = word >> 24;
	w->fm_ce_se = ctrl->fm_ce_se;
	w->imm = be32toh(ctrl->imm);
	w->bytes = (be32toh(ctrl->qpn_ds) & 0x3f) * 16;
	bbs = (w->bytes + BB - 1) / BB;
	*ret_bbs = 1;
	if (w->bytes < sizeof(*ctrl) || bbs > posted(qp) || bbs > qp->sq_num)
		return false;
	*ret_bbs = (uint16_t)bbs;
	load(qp, qp->sq_next, w->b, w->bytes);
	return true;
}

bool sd_wants_cqe(const struct sd_wqe *w)
{
	return (w->fm_ce_se & 0x0c) >= MLX5_WQE_CTRL_CQ_UPDATE;
}

/* Data segments from at to the end. false: malformed. */
static bool gather(const struct sd_wqe *w, uint32_t at, struct sd_span *s, bool inline_ok)
{
	while (at < w->bytes) {
		const struct mlx5_wqe_data_seg *seg = (const void *)(w->b + at);
		uint32_t bytes = be32toh(seg->byte_count);

		if (bytes & MLX5_INLINE_SEG) {
			bytes &= ~MLX5_INLINE_SEG;
			if (!inline_ok || bytes > w->bytes - at - 4 ||
			    !sd_span_add_flat(s, w->b + at + 4, bytes))
				return false;
			at += (4 + bytes + 15) & ~15u;
			continue;
		}
		if (w->bytes - at < sizeof(*seg) ||
		    !sd_span_add(s, be32toh(seg->lkey), be64toh(seg->addr), bytes))
			return false;
		at += sizeof(*seg);
	}
	return true;
}

/* The requester's own end: its syndrome, or 0. */
uint8_t sd_own_end(struct sd_qp *qp, const struct sd_wqe *w, uint32_t at, struct sd_span *s,
		   bool write)
{
	int ret;

	sd_span_init(s, qp->pd->pdn, write ? IBV_ACCESS_LOCAL_WRITE : 0);
	if (!gather(w, at, s, !write))
		return SD_CHOICE_BAD_WQE_SYNDROME;
	if (s->bytes > sd_config.max_msg_sz)
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	ret = sd_span_check(s, s->bytes);
	return ret ? sd_syndrome(ret, false) : 0;
}

/* ---- all of them --------------------------------------------------------------------------------- */

#define RC (1u << IB_UVERBS_QPT_RC)
#define UC (1u << IB_UVERBS_QPT_UC)
#define UD (1u << IB_UVERBS_QPT_UD)

static const struct op {
	uint8_t opcode;
	uint32_t types;
	uint32_t bytes; /* at least */
	const char *name;
} ops[] = {
	{ MLX5_OPCODE_NOP, RC | UC | UD, 16, "wqe.nop" },
	{ MLX5_OPCODE_SEND_INVAL, RC, 16, "wqe.send" },
	{ MLX5_OPCODE_RDMA_WRITE, RC | UC, 32, "wqe.rdma_write" },
	{ MLX5_OPCODE_RDMA_WRITE_IMM, RC | UC, 32, "wqe.rdma_write" },
	{ MLX5_OPCODE_SEND, RC | UC | UD, 16, "wqe.send" },
	{ MLX5_OPCODE_SEND_IMM, RC | UC | UD, 16, "wqe.send" },
	{ MLX5_OPCODE_RDMA_READ, RC, 32, "wqe.rdma_read" },
	{ MLX5_OPCODE_ATOMIC_CS, RC, 64, "wqe.atomic_cs" },
	{ MLX5_OPCODE_ATOMIC_FA, RC, 64, "wqe.atomic_fa" },
	{ MLX5_OPCODE_UMR, RC | UC, 16, "wqe.umr" },
};

static int execute(struct sd_work *k)
{
	const struct op *op = NULL;
	uint8_t planned;

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (ops[i].opcode == k->w->opcode)
			op = &ops[i];
	if (!op || !(op->types & 1u << k->qp->type) || k->w->bytes < op->bytes)
		return SD_CHOICE_BAD_WQE_SYNDROME;
	if (k->qp->stall == SD_RUNS) {
		sd_count(op->name, 1);
		planned = sd_config_wqe();
		if (planned)
			return planned;
	}
	switch (op->opcode) {
	case MLX5_OPCODE_RDMA_WRITE:
	case MLX5_OPCODE_RDMA_WRITE_IMM:
		return sd_do_write(k, op->opcode == MLX5_OPCODE_RDMA_WRITE_IMM);
	case MLX5_OPCODE_SEND:
	case MLX5_OPCODE_SEND_IMM:
	case MLX5_OPCODE_SEND_INVAL:
		return sd_do_send(k);
	case MLX5_OPCODE_RDMA_READ:
		return sd_do_read(k);
	case MLX5_OPCODE_ATOMIC_CS:
	case MLX5_OPCODE_ATOMIC_FA:
		return sd_do_atomic(k, op->opcode == MLX5_OPCODE_ATOMIC_CS);
	case MLX5_OPCODE_UMR:
		return sd_umr(k->qp, k->w, &k->st);
	default:
		return 0;
	}
}

/* Fence modes that wait for a UMR: small, strong ordering, small and fence. */
static bool fenced(const struct sd_wqe *w)
{
	uint8_t mode = w->fm_ce_se >> 5;

	return mode == 1 || mode == 3 || mode == 4;
}

static void fail(struct sd_qp *qp, const struct sd_wqe *w, uint8_t syndrome)
{
	struct sd_cqe c;

	sd_cqe_error(&c, qp, false, syndrome, w->opcode, w->index);
	sd_complete(qp, qp->send_cq, &c, NULL);
	sd_qp_fail(qp, qp->type == IB_UVERBS_QPT_RC ? IBV_QPS_ERR : IBV_QPS_SQE);
}

static bool step_send(struct sd_qp *qp)
{
	struct sd_wqe w;
	struct sd_work k;
	uint16_t bbs;
	int ret;

	if (!posted(qp))
		return false;
	if (posted(qp) > qp->sq_num) {
		/* The ring was run over: what is in it cannot be known. */
		qp->sq_next = qp->sq_seen;
		sd_qp_fail(qp, IBV_QPS_ERR);
		sd_event(&qp->obj, IBV_EVENT_QP_FATAL);
		return true;
	}
	k.qp = qp;
	k.w = &w;
	k.st = NULL;
	ret = fetch(qp, &w, &bbs) ? 0 : SD_CHOICE_BAD_WQE_SYNDROME;
	if (!ret) {
		if (fenced(&w))
			sd_fence(qp);
		sd_cqe_req(&k.cqe, qp, w.opcode, w.index);
		ret = execute(&k);
	}
	if (ret == SD_WAIT)
		return false;
	qp->stall = SD_RUNS;
	qp->sq_next += bbs;
	if (ret)
		fail(qp, &w, (uint8_t)ret);
	else if (sd_wants_cqe(&w) || k.st)
		sd_complete(qp, qp->send_cq, sd_wants_cqe(&w) ? &k.cqe : NULL, k.st);
	return true;
}

static bool flush_send(struct sd_qp *qp)
{
	struct sd_wqe w;
	uint16_t bbs;
	struct sd_cqe c;
	bool any = false;

	qp->stall = SD_RUNS;
	if (posted(qp) > qp->sq_num)
		qp->sq_next = qp->sq_seen;
	while (posted(qp)) {
		fetch(qp, &w, &bbs);
		sd_cqe_error(&c, qp, false, MLX5_CQE_SYNDROME_WR_FLUSH_ERR, w.opcode, w.index);
		sd_complete(qp, qp->send_cq, &c, NULL);
		qp->sq_next += bbs;
		any = true;
	}
	return any;
}

bool sd_qp_work(struct sd_qp *qp)
{
	bool any = false;

	switch (qp->state) {
	case IBV_QPS_RTS:
		while (qp->state == IBV_QPS_RTS && step_send(qp))
			any = true;
		return any;
	case IBV_QPS_SQD:
		/* What had begun is brought to its end, and no more. */
		if (qp->stall != SD_RUNS)
			any = step_send(qp);
		if (qp->draining && qp->stall == SD_RUNS) {
			qp->draining = false;
			sd_event(&qp->obj, IBV_EVENT_SQ_DRAINED);
		}
		return any;
	case IBV_QPS_SQE:
		return flush_send(qp);
	case IBV_QPS_ERR:
		any = flush_send(qp);
		return sd_flush_recv(qp) || any;
	default:
		return false;
	}
}
