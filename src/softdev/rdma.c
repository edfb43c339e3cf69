/* SPDX-License-Identifier: BSD-2-Clause */
/* One-sided operations: write, read, atomics. */
#include <errno.h>
#include <string.h>

#include "choices.h"
#include "wqe.h"

struct remote {
	struct sd_qp *peer;
	struct sd_span span;
};

/* The peer, its consent, and its bytes. 0 with r->peer NULL: dropped on the way. */
static int far_end(struct sd_work *k, uint32_t access, uint64_t bytes, struct remote *r)
{
	const struct mlx5_wqe_raddr_seg *ra =
		(const void *)(k->w->b + sizeof(struct mlx5_wqe_ctrl_seg));
	struct sd_qp *qp = k->qp;
	uint32_t may;
	int ret;

	r->peer = sd_peer(qp);
	if (!r->peer)
		return qp->type == IB_UVERBS_QPT_UC ? 0 : sd_wait_peer(qp);
	may = r->peer->attr.qp_access_flags;
	if (access != IBV_ACCESS_REMOTE_WRITE && !r->peer->attr.max_dest_rd_atomic)
		may &= IBV_ACCESS_REMOTE_WRITE;
	ret = (access & ~may) && !sd_config.break_no_rights ? SD_CHOICE_QP_RIGHTS_SYNDROME : 0;
	if (!ret) {
		sd_span_init(&r->span, r->peer->pd->pdn, access);
		sd_span_add(&r->span, be32toh(ra->rkey), be64toh(ra->raddr), bytes);
		ret = sd_span_check(&r->span, bytes);
		if (ret)
			ret = sd_syndrome(ret, true);
	}
	if (!ret)
		return 0;
	ret = sd_refuse(qp, r->peer, (uint8_t)ret);
	r->peer = NULL;
	return ret;
}

int sd_do_write(struct sd_work *k, bool imm)
{
	uint32_t at = sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_raddr_seg);
	struct sd_message m = { .opcode = MLX5_CQE_RESP_WR_IMM };
	struct sd_span src;
	struct remote r;
	int ret;

	ret = sd_own_end(k->qp, k->w, at, &src, false);
	if (ret)
		return ret;
	if (imm) {
		struct sd_qp *peer = sd_peer(k->qp);

		if (peer && !sd_recv_posted(peer))
			return k->qp->type == IB_UVERBS_QPT_UC ? 0 : sd_wait_rnr(k->qp, peer);
	}
	ret = far_end(k, IBV_ACCESS_REMOTE_WRITE, src.bytes, &r);
	if (ret || !r.peer)
		return ret;
	ret = sd_span_copy(&r.span, &src, src.bytes);
	if (ret)
		return sd_refuse(k->qp, r.peer, SD_CHOICE_REMOTE_HOLE_SYNDROME);
	if (sd_config.break_wrong_byte)
		sd_span_spoil(&r.span);
	sd_psn_advance(k->qp, r.peer, src.bytes);
	if (!imm)
		return 0;
	m.bytes = src.bytes;
	m.imm_be = htobe32(k->w->imm);
	m.solicited = k->w->fm_ce_se & MLX5_WQE_CTRL_SOLICITED;
	m.src_qp = k->qp->qpn;
	return sd_deliver(r.peer, &m);
}

int sd_do_read(struct sd_work *k)
{
	uint32_t at = sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_raddr_seg);
	uint32_t room = sd_wants_cqe(k->w) ? sd_scatter_room(k->qp, false) : 0;
	struct sd_span dst;
	struct remote r;
	int ret;

	ret = sd_own_end(k->qp, k->w, at, &dst, true);
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
		return sd_refuse(k->qp, r.peer, SD_CHOICE_REMOTE_HOLE_SYNDROME);
	k->cqe.cqe.byte_cnt = htobe32((uint32_t)dst.bytes);
	sd_psn_advance(k->qp, r.peer, dst.bytes);
	return 0;
}

/* Where the eight bytes are: one piece of memory, aligned. Memory of the null MR has no address. */
static int atomic_at(const struct remote *r, uint64_t raddr, uint64_t **ret_at)
{
	const struct sd_range *range = &r->span.at[0];
	struct sd_piece two[2];
	struct sd_pieces p = { .at = two, .room = 2 };
	int ret;

	ret = sd_translate(&p, range->key, r->span.pdn, range->addr, 8, r->span.access);
	if (!ret && (raddr % 8 || p.num != 1 || (uintptr_t)p.at[0].va % 8))
		ret = -EINVAL;
	*ret_at = ret ? NULL : (uint64_t *)p.at[0].va;
	return ret;
}

static int atomic_apply(uint64_t *at, bool swap, uint64_t add, uint64_t compare, uint64_t *ret_old)
{
	uint64_t old = 0, next;

	*ret_old = 0;
	if (at == (uint64_t *)SD_NULL_VA)
		return 0;
	if (sd_user_read(&old, at, 8))
		return -EFAULT;
	*ret_old = old;
	if (swap && old != compare)
		return 0;
	next = swap ? add : old + add;
	return sd_user_write(at, &next, 8);
}

int sd_do_atomic(struct sd_work *k, bool swap)
{
	const struct mlx5_wqe_raddr_seg *ra = (const void *)(k->w->b + 16);
	const struct mlx5_wqe_atomic_seg *a = (const void *)(k->w->b + 32);
	uint32_t room = sd_wants_cqe(k->w) ? sd_scatter_room(k->qp, false) : 0;
	struct sd_span dst, src;
	struct remote r;
	uint64_t *at, old;
	int ret;

	if (!sd_config.atomics)
		return SD_CHOICE_BAD_WQE_SYNDROME;
	ret = sd_own_end(k->qp, k->w, 48, &dst, true);
	if (ret)
		return ret;
	if (dst.bytes != 8)
		return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
	ret = far_end(k, IBV_ACCESS_REMOTE_ATOMIC, 8, &r);
	if (ret)
		return ret;
	if (atomic_at(&r, be64toh(ra->raddr), &at))
		return sd_refuse(k->qp, r.peer, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
	if (atomic_apply(at, swap, be64toh(a->swap_add), be64toh(a->compare), &old))
		return sd_refuse(k->qp, r.peer, SD_CHOICE_REMOTE_HOLE_SYNDROME);
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
	sd_psn_advance(k->qp, r.peer, 8);
	return 0;
}
