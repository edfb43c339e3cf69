/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fills and invalidates on a program's own queue pair, with umr.c's bytes.
 *
 * A program may post what uses the key right behind a fill. libmlx5 fences that for its own UMRs but not
 * for a raw one, which alone can carry an address for byte 0. So behind each raw request goes a typed one
 * that changes nothing of importance, of a key that nobody else has: its fence holds what follows, and
 * the completion that the program asked for is its.
 */
#include "exp.h"

#include <errno.h>
#include <stdlib.h>

/* Room for all that a fill is turned into before it is bytes. */
struct parts {
	struct ibmr_layout in;
	struct ibmr_mr *members; /* one per entry: what a record says of its MR */
	void *entries;		 /* klms or blocks */
	uint32_t depth;
	bool fixed;
};

/* ---- from the work request to a layout ----------------------------------------------------- */

/* A stranger may be used as far as the wire goes: rights and bounds are the device's to check. */
static int put_member(const struct ibmri_exp_mr *umr, struct ibv_mr *ibv, struct ibmr_mr *member,
		      uint32_t *depth)
{
	const struct ibmri_exp_mr *m;

	if (!ibv || ibv == umr->ibv || ibv->pd != umr->ibv->pd)
		return EINVAL;
	m = ibmri_exp_mr_of(ibv);
	*member = (struct ibmr_mr){ .ctx = umr->pd->ctx,
				    .state = IBMR_STATE_REGISTERED,
				    .lkey = ibv->lkey,
				    .length = UINT64_MAX,
				    .access = IBMR_ACCESS_FILL };
	member->traits.on_demand = m && m->access & IBV_ACCESS_ON_DEMAND;
	if (m && m->depth > *depth)
		*depth = m->depth;
	return 0;
}

static int put_list(const struct ibmri_exp_mr *umr, const struct ibv_exp_send_wr *wr,
		    struct parts *p)
{
	const struct ibv_exp_mem_region *regions = wr->ext_op.umr.mem_list.mem_reg_list;
	struct ibmr_klm *klms = p->entries;
	uint32_t i;
	int ret;

	for (i = 0; i < p->in.num; i++) {
		ret = put_member(umr, regions[i].mr, &p->members[i], &p->depth);
		if (ret)
			return ret;
		if (p->fixed && i &&
		    (regions[i].length > regions[0].length ||
		     regions[i - 1].length != regions[0].length))
			return EINVAL;
		klms[i] = (struct ibmr_klm){ .mr = &p->members[i],
					     .offset = regions[i].base_addr,
					     .length = regions[i].length };
	}
	p->in.klms = klms;
	return 0;
}

static int put_repeat(const struct ibmri_exp_mr *umr, const struct ibv_exp_send_wr *wr,
		      struct parts *p)
{
	const struct ibv_exp_mem_repeat_block *from =
		wr->ext_op.umr.mem_list.rb.mem_repeat_block_list;
	const size_t *count = wr->ext_op.umr.mem_list.rb.repeat_count;
	struct ibmr_block *blocks = p->entries;
	uint32_t i;
	int ret;

	if (wr->ext_op.umr.mem_list.rb.stride_dim != 1 || !count)
		return EINVAL;
	for (i = 0; i < p->in.num; i++) {
		ret = put_member(umr, from[i].mr, &p->members[i], &p->depth);
		if (!ret && (!from[i].byte_count || !from[i].stride))
			ret = EINVAL;
		if (ret)
			return ret;
		blocks[i] = (struct ibmr_block){ .mr = &p->members[i],
						 .offset = from[i].base_addr,
						 .length = *from[i].byte_count,
						 .stride = *from[i].stride };
	}
	p->in.count = *count;
	p->in.blocks = blocks;
	return 0;
}

static int parts_make(const struct ibmri_exp_mr *umr, const struct ibv_exp_send_wr *wr,
		      struct parts *p)
{
	uint32_t type = wr->ext_op.umr.umr_type, num = wr->ext_op.umr.num_mrs;
	bool repeat = type == IBV_EXP_UMR_REPEAT;

	*p = (struct parts){ .fixed = type == IBV_EXP_UMR_MR_LIST_FIXED_SIZE };
	if (type > IBV_EXP_UMR_MR_LIST_FIXED_SIZE || !num || num > umr->mr->max_klms ||
	    !wr->ext_op.umr.mem_list.mem_reg_list)
		return EINVAL;
	p->in.kind = repeat ? IBMR_LAYOUT_REPEAT : IBMR_LAYOUT_LIST;
	/* the other bits never had an effect in a fill */
	p->in.access = wr->ext_op.umr.exp_access & IBMR_ACCESS_FILL;
	p->in.base = wr->ext_op.umr.base_addr;
	p->in.num = num;
	p->members = malloc(num * sizeof(*p->members));
	p->entries = malloc(num * (repeat ? sizeof(struct ibmr_block) : sizeof(struct ibmr_klm)));
	if (!p->members || !p->entries)
		return ENOMEM;
	return repeat ? put_repeat(umr, wr, p) : put_list(umr, wr, p);
}

static void parts_free(struct parts *p)
{
	free(p->members);
	free(p->entries);
}

/* ---- from the layout to bytes ------------------------------------------------------------------ */

/* Where the entries go, before any is read. */
static int check_form(const struct ibmri_exp_qp *q, const struct ibv_exp_send_wr *wr)
{
	const struct ibv_exp_mkey_list_container *mem = wr->ext_op.umr.memory_objects;

	if (wr->exp_send_flags & IBV_EXP_SEND_INLINE)
		return wr->ext_op.umr.num_mrs > q->inline_klms ? EINVAL : 0;
	if (!mem || mem->context != q->qp->context ||
	    wr->ext_op.umr.num_mrs > mem->max_klm_list_size)
		return EINVAL;
	return 0;
}

static void put_bytes(const struct ibmri_exp_qp *q, const struct ibv_exp_send_wr *wr,
		      const struct ibmri_layout *l, void *wqe)
{
	uint32_t key = wr->ext_op.umr.modified_mr->lkey;
	const struct ibmri_exp_list *mem;
	struct ibmri_umr_list list;

	if (wr->exp_send_flags & IBV_EXP_SEND_INLINE) {
		ibmri_umr_fill(wqe, l, key, q->qp->qp_num, NULL); /* the slots were made for it */
		return;
	}
	mem = (const struct ibmri_exp_list *)wr->ext_op.umr.memory_objects;
	ibmri_umr_table(l, mem->buf);
	list = (struct ibmri_umr_list){ .lkey = mem->mr->lkey, .addr = (uintptr_t)mem->buf };
	ibmri_umr_fill(wqe, l, key, q->qp->qp_num, &list);
}

/* ---- onto the queue ----------------------------------------------------------------------------- */

/* libmlx5 writes a raw request into a full queue without a look, over what is there. A bind of more
 * than it takes is looked at and refused, and whether for want of a slot tells the errno. */
static bool is_full(struct ibv_qp *qp)
{
	struct ibv_mw mw = { .context = qp->context, .pd = qp->pd, .type = IBV_MW_TYPE_1 };
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW }, *bad;

	wr.bind_mw.mw = &mw;
	wr.bind_mw.bind_info.length = UINT64_MAX;
	return ibv_post_send(qp, &wr, &bad) == ENOMEM;
}

static int post(struct ibmri_exp_qp *q, const struct ibv_exp_send_wr *wr, void *wqe)
{
	struct mlx5dv_mkey_conf_attr none = { 0 };
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(q->qp);
	struct mlx5dv_qp_ex *mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(qpx);
	struct mlx5_wqe_ctrl_seg *ctrl = wqe;

	if (is_full(q->qp))
		return ENOMEM;
	ctrl->fm_ce_se = wr->exp_send_flags & IBV_EXP_SEND_FENCE ? MLX5_WQE_CTRL_FENCE : 0;
	ibv_wr_start(qpx);
	qpx->wr_id = wr->wr_id;
	qpx->wr_flags = 0;
	mlx5dv_wr_raw_wqe(mqpx, wqe);
	qpx->wr_flags = IBV_SEND_INLINE;
	if (q->sig_all || wr->exp_send_flags & IBV_EXP_SEND_SIGNALED)
		qpx->wr_flags |= IBV_SEND_SIGNALED;
	mlx5dv_wr_mkey_configure(mqpx, q->fence, 1, &none);
	mlx5dv_wr_set_mkey_access_flags(mqpx, 0);
	return ibv_wr_complete(qpx); /* both or none */
}

static int fill(struct ibmri_exp_qp *q, struct ibmri_exp_mr *umr, const struct ibv_exp_send_wr *wr)
{
	uint64_t wqe[IBMRI_MAX_WQE / 8];
	struct ibmri_layout l;
	struct ibmr_err err;
	struct parts p;
	int ret;

	ret = check_form(q, wr);
	if (ret)
		return ret;
	ret = parts_make(umr, wr, &p);
	if (!ret && umr->pd->ctx->caps.max_depth && p.depth >= umr->pd->ctx->caps.max_depth)
		ret = EINVAL;
	if (!ret && ibmri_layout_make(umr->mr, &p.in, &l, &err))
		ret = err.code == IBMR_E_UNSUPPORTED ? EOPNOTSUPP
		      : err.code == IBMR_E_NO_MEMORY ? ENOMEM
						     : EINVAL;
	if (ret)
		goto free_parts;
	put_bytes(q, wr, &l, wqe);
	ret = post(q, wr, wqe);
	if (!ret)
		umr->depth = p.depth + 1;
	ibmri_layout_free(&l);
free_parts:
	parts_free(&p);
	return ret;
}

static int invalidate(struct ibmri_exp_qp *q, const struct ibmri_exp_mr *umr,
		      const struct ibv_exp_send_wr *wr)
{
	uint64_t wqe[IBMRI_MAX_WQE / 8];

	ibmri_umr_invalidate(wqe, umr->ibv->lkey, q->qp->qp_num);
	return post(q, wr, wqe);
}

int ibmri_exp_post_umr(struct ibv_qp *qp, const struct ibv_exp_send_wr *wr)
{
	struct ibmri_exp_qp *q = ibmri_exp_qp_of(qp);
	struct ibv_mr *mr = wr->ext_op.umr.modified_mr;
	struct ibmri_exp_mr *umr;

	if (!q || !mr || mr->pd != qp->pd || qp->state < IBV_QPS_RTS)
		return EINVAL;
	umr = ibmri_exp_mr_of(mr);
	if (!umr || !umr->mr)
		return EINVAL;
	if (wr->exp_opcode == IBV_EXP_WR_UMR_FILL)
		return fill(q, umr, wr);
	return invalidate(q, umr, wr);
}
