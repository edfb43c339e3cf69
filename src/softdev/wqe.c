/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester: work requests from the send ring to their completions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "queue.h"

#define BB	     MLX5_SEND_WQE_BB
#define UD_GRH	     40
#define QKEY_FROM_QP (1u << 31)
#define MCAST_QPN    0xffffff

/* What executing came to: 0, a syndrome, or this. */
#define WAIT (-EAGAIN)

struct work {
	struct sd_qp *qp;
	const struct sd_wqe *w;
	struct sd_cqe cqe;
	struct sd_staged *st;
};

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

static bool wants_cqe(const struct sd_wqe *w)
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
static uint8_t own_end(struct sd_qp *qp, const struct sd_wqe *w, uint32_t at, struct sd_span *s,
		       bool write)
{
	int ret;

	sd_span_init(s, qp->pd->pdn, write ? IBV_ACCESS_LOCAL_WRITE : 0);
	if (!gather(w, at, s, !write))
		return SD_CHOICE_BAD_WQE_SYNDROME;
	if (s->bytes > sd_config.max_msg_sz)
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	ret = sd_span_check(s, s->bytes);
	if (ret == SD_HOLE)
		return SD_CHOICE_LOCAL_HOLE_SYNDROME;
	return ret ? MLX5_CQE_SYNDROME_LOCAL_PROT_ERR : 0;
}

/* ---- the peer ------------------------------------------------------------------------- */

static bool receives(const struct sd_qp *qp)
{
	return qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD ||
	       qp->state == IBV_QPS_SQE;
}

static struct sd_qp *find_peer(const struct sd_qp *qp)
{
	struct sd_qp *peer = sd_qp_find(qp->attr.dest_qp_num & 0xffffff);

	if (!peer || peer->type != qp->type || !receives(peer) ||
	    (peer->attr.dest_qp_num & 0xffffff) != qp->qpn || !sd_addr_is_ours(&qp->attr.dest))
		return NULL;
	return qp->type == IB_UVERBS_QPT_UC || peer->rq_psn == qp->sq_psn ? peer : NULL;
}

static uint32_t packets(const struct sd_qp *qp, uint64_t bytes)
{
	uint32_t mtu = 128u << qp->attr.path_mtu;

	return bytes > mtu ? (uint32_t)((bytes + mtu - 1) / mtu) : 1;
}

static void advance_psn(struct sd_qp *qp, struct sd_qp *peer, uint64_t bytes)
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
		return WAIT;
	if (sd_config.mode == SD_ASYNC && sd_now_ns() < qp->stall_until)
		return WAIT;
	return syndrome;
}

static int wait_peer(struct sd_qp *qp)
{
	uint64_t ns = (UINT64_C(4096) << (qp->attr.timeout & 31)) * (qp->attr.retry_cnt + 1u);

	return wait_for(qp, SD_WAITS_PEER, !qp->attr.timeout, ns,
			MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
}

static int wait_rnr(struct sd_qp *qp, const struct sd_qp *peer)
{
	return wait_for(qp, SD_WAITS_RNR, qp->attr.rnr_retry == 7,
			rnr_ns(peer->attr.min_rnr_timer) * qp->attr.rnr_retry,
			MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
}

/* The responder refuses: what it does, and what the requester sees. */
static int refuse(struct sd_qp *qp, struct sd_qp *peer, uint8_t syndrome)
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

/* ---- one-sided ----------------------------------------------------------------------------- */

struct remote {
	struct sd_qp *peer;
	struct sd_span span;
};

/* The peer, its consent, and its bytes. 0 with r->peer NULL: dropped on the way. */
static int far_end(struct work *k, uint32_t access, uint64_t bytes, struct remote *r)
{
	const struct mlx5_wqe_raddr_seg *ra =
		(const void *)(k->w->b + sizeof(struct mlx5_wqe_ctrl_seg));
	struct sd_qp *qp = k->qp;
	uint32_t may;
	int ret;

	r->peer = find_peer(qp);
	if (!r->peer)
		return qp->type == IB_UVERBS_QPT_UC ? 0 : wait_peer(qp);
	may = r->peer->attr.qp_access_flags;
	if (access != IBV_ACCESS_REMOTE_WRITE && !r->peer->attr.max_dest_rd_atomic)
		may &= IBV_ACCESS_REMOTE_WRITE;
	ret = (access & ~may) && !sd_config.break_no_rights ? SD_CHOICE_QP_RIGHTS_SYNDROME : 0;
	if (!ret) {
		sd_span_init(&r->span, r->peer->pd->pdn, access);
		sd_span_add(&r->span, be32toh(ra->rkey), be64toh(ra->raddr), bytes);
		ret = sd_span_check(&r->span, bytes);
		if (ret)
			ret = ret == SD_HOLE ? SD_CHOICE_REMOTE_HOLE_SYNDROME
					     : MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
	}
	if (!ret)
		return 0;
	ret = refuse(qp, r->peer, (uint8_t)ret);
	r->peer = NULL;
	return ret;
}

static int do_write(struct work *k, bool imm)
{
	uint32_t at = sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_raddr_seg);
	struct sd_message m = { .opcode = MLX5_CQE_RESP_WR_IMM };
	struct sd_span src;
	struct remote r;
	int ret;

	ret = own_end(k->qp, k->w, at, &src, false);
	if (ret)
		return ret;
	if (imm) {
		struct sd_qp *peer = find_peer(k->qp);

		if (peer && !sd_recv_posted(peer))
			return k->qp->type == IB_UVERBS_QPT_UC ? 0 : wait_rnr(k->qp, peer);
	}
	ret = far_end(k, IBV_ACCESS_REMOTE_WRITE, src.bytes, &r);
	if (ret || !r.peer)
		return ret;
	ret = sd_span_copy(&r.span, &src, src.bytes);
	if (ret)
		return refuse(k->qp, r.peer, SD_CHOICE_REMOTE_HOLE_SYNDROME);
	if (sd_config.break_wrong_byte)
		sd_span_spoil(&r.span);
	advance_psn(k->qp, r.peer, src.bytes);
	if (!imm)
		return 0;
	m.bytes = src.bytes;
	m.imm_be = htobe32(k->w->imm);
	m.solicited = k->w->fm_ce_se & MLX5_WQE_CTRL_SOLICITED;
	m.src_qp = k->qp->qpn;
	return sd_deliver(r.peer, &m);
}

static int do_read(struct work *k)
{
	uint32_t at = sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_raddr_seg);
	uint32_t room = wants_cqe(k->w) ? sd_scatter_room(k->qp, false) : 0;
	struct sd_span dst;
	struct remote r;
	int ret;

	ret = own_end(k->qp, k->w, at, &dst, true);
	if (ret)
		return ret;
	ret = far_end(k, IBV_ACCESS_REMOTE_READ, dst.bytes, &r);
	if (ret)
		return ret;
	if (dst.bytes && dst.bytes <= room) {
		k->cqe.scatter = room;
		ret = sd_span_read(&r.span, k->cqe.data, dst.bytes);
	} else {
		ret = sd_span_copy(&dst, &r.span, dst.bytes);
	}
	if (ret)
		return refuse(k->qp, r.peer, SD_CHOICE_REMOTE_HOLE_SYNDROME);
	k->cqe.cqe.byte_cnt = htobe32((uint32_t)dst.bytes);
	advance_psn(k->qp, r.peer, dst.bytes);
	return 0;
}

/* Where the eight bytes are: one piece of memory, aligned. Memory of the null MR has no address. */
static int atomic_at(const struct remote *r, uint64_t raddr, uint64_t **ret_at)
{
	const struct sd_range *range = &r->span.at[0];
	struct sd_pieces p = { 0 };
	int ret;

	ret = sd_translate(&p, range->key, r->span.pdn, range->addr, 8, r->span.access);
	if (!ret && (raddr % 8 || p.num != 1 || (uintptr_t)p.at[0].va % 8))
		ret = -EINVAL;
	*ret_at = ret ? NULL : (uint64_t *)p.at[0].va;
	free(p.at);
	return ret;
}

static int atomic_apply(uint64_t *at, bool swap, uint64_t add, uint64_t compare, uint64_t *ret_old)
{
	uint64_t old = 0, next;

	*ret_old = 0;
	if (!at)
		return 0;
	if (sd_user_read(&old, at, 8))
		return -EFAULT;
	*ret_old = old;
	if (swap && old != compare)
		return 0;
	next = swap ? add : old + add;
	return sd_user_write(at, &next, 8);
}

static int do_atomic(struct work *k, bool swap)
{
	const struct mlx5_wqe_raddr_seg *ra = (const void *)(k->w->b + 16);
	const struct mlx5_wqe_atomic_seg *a = (const void *)(k->w->b + 32);
	uint32_t room = wants_cqe(k->w) ? sd_scatter_room(k->qp, false) : 0;
	struct sd_span dst, src;
	struct remote r;
	uint64_t *at, old;
	int ret;

	if (!sd_config.atomics)
		return SD_CHOICE_BAD_WQE_SYNDROME;
	ret = own_end(k->qp, k->w, 48, &dst, true);
	if (ret)
		return ret;
	if (dst.bytes != 8)
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	ret = far_end(k, IBV_ACCESS_REMOTE_ATOMIC, 8, &r);
	if (ret)
		return ret;
	if (atomic_at(&r, be64toh(ra->raddr), &at))
		return refuse(k->qp, r.peer, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
	if (atomic_apply(at, swap, be64toh(a->swap_add), be64toh(a->compare), &old))
		return refuse(k->qp, r.peer, SD_CHOICE_REMOTE_HOLE_SYNDROME);
	if (room) {
		k->cqe.scatter = room;
		memcpy(k->cqe.data, &old, 8);
	} else {
		sd_span_init(&src, 0, 0);
		sd_span_add_flat(&src, &old, 8);
		if (sd_span_copy(&dst, &src, 8))
			return SD_CHOICE_LOCAL_HOLE_SYNDROME;
	}
	k->cqe.cqe.byte_cnt = htobe32(8);
	advance_psn(k->qp, r.peer, 8);
	return 0;
}

/* ---- two-sided -------------------------------------------------------------------------------- */

static int send_connected(struct work *k, struct sd_message *m)
{
	struct sd_qp *qp = k->qp, *peer;
	struct sd_span src;
	bool uc = qp->type == IB_UVERBS_QPT_UC;
	uint8_t syndrome;
	int ret;

	ret = own_end(qp, k->w, sizeof(struct mlx5_wqe_ctrl_seg), &src, false);
	if (ret)
		return ret;
	peer = find_peer(qp);
	if (!peer)
		return uc ? 0 : wait_peer(qp);
	if (!sd_recv_posted(peer))
		return uc ? 0 : wait_rnr(qp, peer);
	if (m->opcode == MLX5_CQE_RESP_SEND_INV && !sd_invalidate(peer, k->w->imm))
		return refuse(qp, peer, SD_CHOICE_SEND_INVAL_SYNDROME);
	m->payload = &src;
	m->bytes = src.bytes;
	advance_psn(qp, peer, src.bytes);
	syndrome = sd_deliver(peer, m);
	if (!syndrome || uc)
		return 0;
	return syndrome;
}

/* The global route header in front of a datagram: an IPv6 header. */
static void make_grh(uint8_t *grh, const struct mlx5_wqe_av *av,
		     const struct ib_uverbs_qp_dest *dest, uint16_t bytes)
{
	uint32_t flow = 6u << 28 | (uint32_t)av->tclass << 20 | (be32toh(av->grh_gid_fl) & 0xfffff);
	uint16_t length = (uint16_t)(bytes + 24); /* BTH, DETH and ICRC count */
	uint8_t sgid[16];

	sd_own_gid(sgid);
	flow = htobe32(flow);
	length = htobe16(length);
	memcpy(grh, &flow, 4);
	memcpy(grh + 4, &length, 2);
	grh[6] = 0x1b; /* next header: an IBA transport */
	grh[7] = av->hop_limit;
	memcpy(grh + 8, sgid, 16);
	memcpy(grh + 24, dest->dgid, 16);
}

static bool joined(const struct sd_qp *qp, const uint8_t *gid)
{
	for (const struct sd_mcast *g = qp->mcast; g; g = g->next)
		if (!memcmp(g->gid, gid, 16))
			return true;
	return false;
}

static void datagram(struct sd_qp *to, const struct sd_message *m, uint32_t qkey)
{
	if (to->type == IB_UVERBS_QPT_UD && receives(to) && to->attr.qkey == qkey &&
	    sd_recv_posted(to))
		sd_deliver(to, m);
}

static int send_datagram(struct work *k, struct sd_message *m)
{
	const struct mlx5_wqe_av *av = (const void *)(k->w->b + sizeof(struct mlx5_wqe_ctrl_seg));
	uint32_t at = sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_datagram_seg);
	struct ib_uverbs_qp_dest dest = { .port_num = k->qp->attr.port_num };
	struct sd_span src, whole;
	uint8_t grh[UD_GRH] = { 0 };
	uint32_t qpn, qkey;
	int ret;

	if (k->w->bytes < at || !(be32toh(av->dqp_dct) & MLX5_EXTENDED_UD_AV))
		return SD_CHOICE_BAD_WQE_SYNDROME;
	ret = own_end(k->qp, k->w, at, &src, false);
	if (ret)
		return ret;
	if (src.bytes > SD_PORT_MTU)
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	qpn = be32toh(av->dqp_dct) & 0xffffff;
	qkey = be32toh(av->key.qkey.qkey);
	if (qkey & QKEY_FROM_QP)
		qkey = k->qp->attr.qkey;
	dest.dlid = be16toh(av->rlid);
	dest.is_global = be32toh(av->grh_gid_fl) >> 30 & 1;
	memcpy(dest.dgid, av->rgid, 16);
	if (dest.is_global)
		make_grh(grh, av, &dest, (uint16_t)src.bytes);
	sd_span_init(&whole, src.pdn, 0);
	sd_span_add_flat(&whole, grh, UD_GRH);
	for (uint32_t i = 0; i < src.num; i++)
		whole.at[whole.num++] = src.at[i];
	whole.bytes += src.bytes;
	m->payload = &whole;
	m->bytes = whole.bytes;
	m->grh = dest.is_global;
	if (qpn == MCAST_QPN) {
		for (struct sd_qp *to = sd_qps; to; to = to->next)
			if (joined(to, av->rgid))
				datagram(to, m, qkey);
	} else if (sd_addr_is_ours(&dest) && sd_qp_find(qpn)) {
		datagram(sd_qp_find(qpn), m, qkey);
	}
	return 0;
}

static int do_send(struct work *k)
{
	struct sd_message m = {
		.opcode = MLX5_CQE_RESP_SEND,
		.solicited = k->w->fm_ce_se & MLX5_WQE_CTRL_SOLICITED,
		.src_qp = k->qp->qpn,
	};

	if (k->w->opcode == MLX5_OPCODE_SEND_IMM)
		m.opcode = MLX5_CQE_RESP_SEND_IMM;
	if (k->w->opcode == MLX5_OPCODE_SEND_INVAL)
		m.opcode = MLX5_CQE_RESP_SEND_INV;
	if (m.opcode != MLX5_CQE_RESP_SEND)
		m.imm_be = htobe32(k->w->imm);
	return k->qp->type == IB_UVERBS_QPT_UD ? send_datagram(k, &m) : send_connected(k, &m);
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

static int execute(struct work *k)
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
		return do_write(k, op->opcode == MLX5_OPCODE_RDMA_WRITE_IMM);
	case MLX5_OPCODE_SEND:
	case MLX5_OPCODE_SEND_IMM:
	case MLX5_OPCODE_SEND_INVAL:
		return do_send(k);
	case MLX5_OPCODE_RDMA_READ:
		return do_read(k);
	case MLX5_OPCODE_ATOMIC_CS:
	case MLX5_OPCODE_ATOMIC_FA:
		return do_atomic(k, op->opcode == MLX5_OPCODE_ATOMIC_CS);
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
	struct work k = { .qp = qp, .w = &w };
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
	ret = fetch(qp, &w, &bbs) ? 0 : SD_CHOICE_BAD_WQE_SYNDROME;
	if (!ret) {
		if (fenced(&w))
			sd_fence(qp);
		sd_cqe_req(&k.cqe, qp, w.opcode, w.index);
		ret = execute(&k);
	}
	if (ret == WAIT)
		return false;
	qp->stall = SD_RUNS;
	qp->sq_next += bbs;
	if (ret)
		fail(qp, &w, (uint8_t)ret);
	else if (wants_cqe(&w) || k.st)
		sd_complete(qp, qp->send_cq, wants_cqe(&w) ? &k.cqe : NULL, k.st);
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
