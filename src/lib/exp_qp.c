/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of programs that use indirect MRs. On mlx5 all are made without scatter-to-CQE: with it
 * libmlx5 copies small messages to the address in the scatter entry, which through an indirect key is none
 * of the process's.
 */
#include "exp.h"

#include <errno.h>
#include <stdlib.h>

/* Everything libmlx5 can post on an RC queue pair: it sizes the slots by this. */
#define RC_OPS                                                                                  \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
	 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |                              \
	 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |              \
	 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
/* What is in a slot besides inline data, at least. */
#define SLOT_OVERHEAD                                                                      \
	((uint32_t)(sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_raddr_seg) + \
		    sizeof(struct mlx5_wqe_inl_data_seg)))

/* Each UMR takes two slots, and the last one's second may linger. */
static uint32_t slots_for(uint32_t wrs)
{
	return 2 * wrs + 2;
}

static uint32_t wrs_of(uint32_t slots)
{
	return slots > 2 ? (slots - 2) / 2 : slots;
}

/* ---- making them ------------------------------------------------------------------------ */

static struct ibv_qp *make(struct ibv_context *context, struct ibv_qp_init_attr_ex *ex, bool umr)
{
	struct mlx5dv_qp_init_attr dv = { .comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
					  .create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE };

	if (!mlx5dv_is_supported(context->device))
		return ibv_create_qp_ex(context, ex);
	if (umr) {
		dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
		dv.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE | MLX5DV_QP_EX_WITH_MKEY_CONFIGURE;
	}
	return mlx5dv_create_qp(context, ex, &dv);
}

/* With room for each of the program's requests to be a UMR; a large queue may have less. */
static struct ibv_qp *make_umr(struct ibv_context *context, struct ibv_qp_init_attr_ex *ex,
			       uint32_t klms)
{
	uint32_t wqe = ibmri_umr_inline_bytes((klms + 1 + 3) & ~3u); /* a repeat's header */
	struct ibv_qp_cap cap = ex->cap;
	struct ibv_qp *qp;

	ex->comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	ex->send_ops_flags = RC_OPS;
	if (cap.max_inline_data < wqe - SLOT_OVERHEAD)
		cap.max_inline_data = wqe - SLOT_OVERHEAD;
	ex->cap = cap;
	if (cap.max_send_wr <= UINT32_MAX / 4)
		ex->cap.max_send_wr = slots_for(cap.max_send_wr);
	qp = make(context, ex, true);
	if (qp) {
		ex->cap.max_send_wr = wrs_of(ex->cap.max_send_wr);
		return qp;
	}
	ex->cap = cap;
	return make(context, ex, true);
}

struct ibv_qp *ibmr_exp_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .qp_context = attr->qp_context,
					  .send_cq = attr->send_cq,
					  .recv_cq = attr->recv_cq,
					  .srq = attr->srq,
					  .cap = attr->cap,
					  .qp_type = attr->qp_type,
					  .sq_sig_all = attr->sq_sig_all,
					  .comp_mask = IBV_QP_INIT_ATTR_PD,
					  .pd = pd };
	struct ibv_qp *qp;

	if (!mlx5dv_is_supported(pd->context->device))
		return ibv_create_qp(pd, attr);
	qp = make(pd->context, &ex, false);
	if (qp)
		attr->cap = ex.cap;
	return qp;
}

struct ibv_qp *ibmr_exp_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	return make(context, attr, false);
}

/* ---- ibv_exp_create_qp ----------------------------------------------------------------------- */

static int check_umr(const struct ibv_context *context, const struct ibv_exp_qp_init_attr *attr,
		     bool umr)
{
	bool sized = attr->comp_mask & IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS;

	if (umr != sized || (sized && attr->max_inl_send_klms > IBMRI_EXP_INLINE_KLMS))
		return EINVAL;
	if (!umr)
		return 0;
	if (!mlx5dv_is_supported(context->device))
		return ENOSYS;
	if (attr->qp_type != IBV_QPT_RC)
		return EOPNOTSUPP; /* libmlx5 posts UMRs on these alone */
	return attr->comp_mask & IBV_EXP_QP_INIT_ATTR_PD ? 0 : EINVAL;
}

static int check_qp(const struct ibv_context *context, const struct ibv_exp_qp_init_attr *attr,
		    bool *ret_umr)
{
	uint32_t have = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_XRCD |
			IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS | IBV_EXP_QP_INIT_ATTR_INL_RECV |
			IBV_EXP_QP_INIT_ATTR_ATOMICS_ARG | IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS;
	uint32_t flags = 0;

	if (attr->comp_mask >= IBV_EXP_QP_INIT_ATTR_RESERVED1)
		return EINVAL;
	if (attr->comp_mask & ~have)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS)
		flags = attr->exp_create_flags;
	if (flags & ~(uint32_t)IBV_EXP_QP_CREATE_MASK)
		return EINVAL;
	if (flags & ~(uint32_t)IBV_EXP_QP_CREATE_UMR)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_EXP_QP_INIT_ATTR_ATOMICS_ARG &&
	    attr->max_atomic_arg > sizeof(uint64_t))
		return EOPNOTSUPP;
	*ret_umr = flags & IBV_EXP_QP_CREATE_UMR;
	return check_umr(context, attr, *ret_umr);
}

static void to_ex(const struct ibv_exp_qp_init_attr *attr, struct ibv_qp_init_attr_ex *ex)
{
	*ex = (struct ibv_qp_init_attr_ex){ .qp_context = attr->qp_context,
					    .send_cq = attr->send_cq,
					    .recv_cq = attr->recv_cq,
					    .srq = attr->srq,
					    .cap = attr->cap,
					    .qp_type = attr->qp_type,
					    .sq_sig_all = attr->sq_sig_all };
	if (attr->comp_mask & IBV_EXP_QP_INIT_ATTR_PD) {
		ex->comp_mask |= IBV_QP_INIT_ATTR_PD;
		ex->pd = attr->pd;
	}
	if (attr->comp_mask & IBV_EXP_QP_INIT_ATTR_XRCD) {
		ex->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		ex->xrcd = attr->xrcd;
	}
}

/* What the device made of it. */
static void answer(struct ibv_exp_qp_init_attr *attr, const struct ibv_qp_init_attr_ex *ex)
{
	attr->cap = ex->cap;
	if (attr->comp_mask & IBV_EXP_QP_INIT_ATTR_INL_RECV)
		attr->max_inl_recv = 0;
}

static int make_fence(struct ibmri_exp_qp *q, struct ibv_pd *pd)
{
	struct mlx5dv_mkey_init_attr attr = { .pd = pd,
					      .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 4 };

	errno = 0;
	q->fence = mlx5dv_create_mkey(&attr);
	if (q->fence)
		return 0;
	return !errno || ibmri_says_no_umr(errno) ? ENOSYS : errno;
}

static int remember(struct ibmri_exp_qp *q)
{
	struct ibmri_exp_obj *old;

	q->obj = (struct ibmri_exp_obj){ q->qp->context, q->qp->qp_num };
	if (ibmri_exp_add(IBMRI_EXP_QP, &q->obj, &old))
		return ENOMEM;
	pthread_mutex_lock(&q->pd->lock);
	q->next = q->pd->qps;
	q->pprev = &q->pd->qps;
	if (q->next)
		q->next->pprev = &q->next;
	q->pd->qps = q;
	pthread_mutex_unlock(&q->pd->lock);
	return 0;
}

static struct ibv_qp *create_umr(struct ibv_context *context, struct ibv_exp_qp_init_attr *attr,
				 struct ibv_qp_init_attr_ex *ex)
{
	struct ibmri_exp_qp *q = calloc(1, sizeof(*q));
	struct ibmr_err err;
	int ret;

	if (!q)
		return ibmri_exp_null(ENOMEM);
	q->inline_klms = attr->max_inl_send_klms;
	q->sig_all = attr->sq_sig_all;
	ret = ibmri_exp_pd_get(attr->pd, &q->pd, &err) ? ibmri_exp_errno(&err)
						       : make_fence(q, attr->pd);
	if (ret)
		goto free_qp;
	errno = 0;
	q->qp = make_umr(context, ex, q->inline_klms);
	if (!q->qp) {
		ret = errno ? errno : EINVAL;
		goto destroy_fence;
	}
	ret = remember(q);
	if (!ret) {
		answer(attr, ex);
		return q->qp;
	}
	(void)ibv_destroy_qp(q->qp);
destroy_fence:
	(void)mlx5dv_destroy_mkey(q->fence); /* else the kernel takes it, at close */
free_qp:
	free(q);
	return ibmri_exp_null(ret);
}

struct ibv_qp *ibv_exp_create_qp(struct ibv_context *context, struct ibv_exp_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex;
	struct ibv_qp *qp;
	bool umr;
	int ret;

	ret = check_qp(context, attr, &umr);
	if (ret)
		return ibmri_exp_null(ret);
	to_ex(attr, &ex);
	if (umr)
		return create_umr(context, attr, &ex);
	qp = make(context, &ex, false);
	if (qp)
		answer(attr, &ex);
	return qp;
}

/* ---- their states --------------------------------------------------------------------------- */

static void to_plain(const struct ibv_exp_qp_attr *attr, struct ibv_qp_attr *plain)
{
	*plain = (struct ibv_qp_attr){ .qp_state = attr->qp_state,
				       .cur_qp_state = attr->cur_qp_state,
				       .path_mtu = attr->path_mtu,
				       .path_mig_state = attr->path_mig_state,
				       .qkey = attr->qkey,
				       .rq_psn = attr->rq_psn,
				       .sq_psn = attr->sq_psn,
				       .dest_qp_num = attr->dest_qp_num,
				       .qp_access_flags = (unsigned)attr->qp_access_flags,
				       .cap = attr->cap,
				       .ah_attr = attr->ah_attr,
				       .alt_ah_attr = attr->alt_ah_attr,
				       .pkey_index = attr->pkey_index,
				       .alt_pkey_index = attr->alt_pkey_index,
				       .en_sqd_async_notify = attr->en_sqd_async_notify,
				       .sq_draining = attr->sq_draining,
				       .max_rd_atomic = attr->max_rd_atomic,
				       .max_dest_rd_atomic = attr->max_dest_rd_atomic,
				       .min_rnr_timer = attr->min_rnr_timer,
				       .port_num = attr->port_num,
				       .timeout = attr->timeout,
				       .retry_cnt = attr->retry_cnt,
				       .rnr_retry = attr->rnr_retry,
				       .alt_port_num = attr->alt_port_num,
				       .alt_timeout = attr->alt_timeout };
}

int ibv_exp_modify_qp(struct ibv_qp *qp, struct ibv_exp_qp_attr *attr, uint64_t exp_attr_mask)
{
	struct ibv_qp_attr plain;
	int ret = 0;

	if (attr->comp_mask >= IBV_EXP_QP_ATTR_RESERVED)
		ret = EINVAL;
	else if (attr->comp_mask || exp_attr_mask > INT32_MAX)
		ret = EOPNOTSUPP; /* what rdma-core's libibverbs has no attribute for */
	if (!ret) {
		to_plain(attr, &plain);
		ret = ibv_modify_qp(qp, &plain, (int)exp_attr_mask);
	}
	if (ret)
		errno = ret;
	return ret;
}

/* ---- and their end ------------------------------------------------------------------------------- */

/* A record whose queue pair is gone. With a key that is not destroyed it stays for its PD to try. */
static void forget(struct ibmri_exp_qp *q)
{
	struct ibmri_exp_pd *pd = q->pd;

	q->qp = NULL;
	if (mlx5dv_destroy_mkey(q->fence))
		return;
	pthread_mutex_lock(&pd->lock);
	*q->pprev = q->next;
	if (q->next)
		q->next->pprev = q->pprev;
	pthread_mutex_unlock(&pd->lock);
	free(q);
}

int ibmr_exp_destroy_qp(struct ibv_qp *qp)
{
	struct ibmri_exp_qp *q = ibmri_exp_qp_of(qp);
	struct ibmri_exp_obj *old;
	int ret;

	if (!q)
		return ibv_destroy_qp(qp);
	ibmri_exp_remove(IBMRI_EXP_QP, &q->obj);
	ret = ibv_destroy_qp(qp);
	if (ret)
		(void)ibmri_exp_add(IBMRI_EXP_QP, &q->obj, &old);
	else
		forget(q);
	return ret;
}

bool ibmri_exp_qps_drop(struct ibmri_exp_pd *pd)
{
	struct ibmri_exp_qp *q, *next;

	for (q = pd->qps; q; q = next) {
		next = q->next;
		if (!q->qp)
			forget(q);
	}
	return !pd->qps;
}
