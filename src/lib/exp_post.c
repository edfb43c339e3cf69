/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_exp_post_send(): UMRs are exp_umr.c's, what libibverbs has is its own. */
#include "exp.h"

#include <errno.h>
#include <string.h>

#define SEND_FLAGS                                                             \
	(IBV_EXP_SEND_FENCE | IBV_EXP_SEND_SIGNALED | IBV_EXP_SEND_SOLICITED | \
	 IBV_EXP_SEND_INLINE | IBV_EXP_SEND_IP_CSUM)

static unsigned send_flags(uint64_t exp)
{
	unsigned flags = (unsigned)exp & (IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |
					  IBV_SEND_INLINE);

	return exp & IBV_EXP_SEND_IP_CSUM ? flags | IBV_SEND_IP_CSUM : flags;
}

static void put_bind(const struct ibv_exp_send_wr *from, struct ibv_send_wr *wr)
{
	const struct ibv_exp_mw_bind_info *info = &from->bind_mw.bind_info;

	wr->bind_mw.mw = from->bind_mw.mw;
	wr->bind_mw.rkey = from->bind_mw.rkey;
	wr->bind_mw.bind_info.mr = info->mr;
	wr->bind_mw.bind_info.addr = info->addr;
	wr->bind_mw.bind_info.length = info->length;
	wr->bind_mw.bind_info.mw_access_flags = (unsigned)info->exp_mw_access_flags & 0x1f;
	if (info->exp_mw_access_flags & IBV_EXP_ACCESS_MW_ZERO_BASED)
		wr->bind_mw.bind_info.mw_access_flags |= IBV_ACCESS_ZERO_BASED;
}

static void put_ud(const struct ibv_exp_send_wr *from, struct ibv_send_wr *wr)
{
	wr->wr.ud.ah = from->wr.ud.ah;
	wr->wr.ud.remote_qpn = from->wr.ud.remote_qpn;
	wr->wr.ud.remote_qkey = from->wr.ud.remote_qkey;
}

/* The part that the opcode has. */
static int put_op(const struct ibv_qp *qp, const struct ibv_exp_send_wr *from,
		  struct ibv_send_wr *wr)
{
	switch (from->exp_opcode) {
	case IBV_EXP_WR_RDMA_WRITE:
	case IBV_EXP_WR_RDMA_WRITE_WITH_IMM:
	case IBV_EXP_WR_RDMA_READ:
		wr->wr.rdma.remote_addr = from->wr.rdma.remote_addr;
		wr->wr.rdma.rkey = from->wr.rdma.rkey;
		return 0;
	case IBV_EXP_WR_ATOMIC_CMP_AND_SWP:
	case IBV_EXP_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.remote_addr = from->wr.atomic.remote_addr;
		wr->wr.atomic.compare_add = from->wr.atomic.compare_add;
		wr->wr.atomic.swap = from->wr.atomic.swap;
		wr->wr.atomic.rkey = from->wr.atomic.rkey;
		return 0;
	case IBV_EXP_WR_SEND:
	case IBV_EXP_WR_SEND_WITH_IMM:
	case IBV_EXP_WR_SEND_WITH_INV:
		if (qp->qp_type == IBV_QPT_UD)
			put_ud(from, wr);
		return 0;
	case IBV_EXP_WR_LOCAL_INV:
		return 0;
	case IBV_EXP_WR_BIND_MW:
		put_bind(from, wr);
		return 0;
	default:
		break;
	}
	/* what rdma-core's libibverbs has no request for */
	if (from->exp_opcode == IBV_EXP_WR_TSO ||
	    (from->exp_opcode >= IBV_EXP_WR_SEND_ENABLE && from->exp_opcode <= IBV_EXP_WR_NOP))
		return EOPNOTSUPP;
	return EINVAL;
}

static int post_plain(struct ibv_qp *qp, const struct ibv_exp_send_wr *from)
{
	struct ibv_send_wr wr, *bad;
	int ret;

	if (from->exp_send_flags & ~(uint64_t)SEND_FLAGS)
		return EOPNOTSUPP;
	memset(&wr, 0, sizeof(wr));
	ret = put_op(qp, from, &wr);
	if (ret)
		return ret;
	wr.wr_id = from->wr_id;
	wr.sg_list = from->sg_list;
	wr.num_sge = from->num_sge;
	wr.opcode = (enum ibv_wr_opcode)from->exp_opcode;
	wr.send_flags = send_flags(from->exp_send_flags);
	wr.imm_data = from->ex.imm_data; /* or invalidate_rkey, in the same place */
	if (qp->qp_type == IBV_QPT_XRC_SEND)
		wr.qp_type.xrc.remote_srqn = from->xrc_remote_srq_num;
	return ibv_post_send(qp, &wr, &bad);
}

int ibv_exp_post_send(struct ibv_qp *qp, struct ibv_exp_send_wr *wr,
		      struct ibv_exp_send_wr **bad_wr)
{
	int ret;

	for (; wr; wr = wr->next) {
		if (wr->exp_opcode == IBV_EXP_WR_UMR_FILL ||
		    wr->exp_opcode == IBV_EXP_WR_UMR_INVALIDATE)
			ret = ibmri_exp_post_umr(qp, wr);
		else
			ret = post_plain(qp, wr);
		if (ret) {
			*bad_wr = wr;
			errno = ret;
			return ret;
		}
	}
	return 0;
}
