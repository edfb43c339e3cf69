/* SPDX-License-Identifier: BSD-2-Clause */
/* Two-sided operations: messages and datagrams. */
#include <errno.h>
#include <string.h>

#include "choices.h"
#include "wqe.h"

#define UD_GRH	     40
#define QKEY_FROM_QP (1u << 31)
#define MCAST_QPN    0xffffff

static int send_connected(struct sd_work *k, struct sd_message m)
{
	struct sd_qp *qp = k->qp, *peer;
	struct sd_span src;
	bool uc = qp->type == IB_UVERBS_QPT_UC;
	uint8_t syndrome;
	int ret;

	ret = sd_own_end(qp, k->w, sizeof(struct mlx5_wqe_ctrl_seg), &src, false);
	if (ret)
		return ret;
	peer = sd_peer(qp);
	if (!peer)
		return uc ? 0 : sd_wait_peer(qp);
	if (!sd_recv_posted(peer))
		return uc ? 0 : sd_wait_rnr(qp, peer);
	if (m.opcode == MLX5_CQE_RESP_SEND_INV && !sd_invalidate(peer, k->w->imm))
		return sd_refuse(qp, peer, SD_CHOICE_SEND_INVAL_SYNDROME);
	m.payload = &src;
	m.bytes = src.bytes;
	sd_psn_advance(qp, peer, src.bytes);
	syndrome = sd_deliver(peer, &m);
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
	if (to->type == IB_UVERBS_QPT_UD && sd_receives(to) && to->attr.qkey == qkey &&
	    sd_recv_posted(to))
		sd_deliver(to, m);
}

static int send_datagram(struct sd_work *k, struct sd_message m)
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
	ret = sd_own_end(k->qp, k->w, at, &src, false);
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
	m.payload = &whole;
	m.bytes = whole.bytes;
	m.grh = dest.is_global;
	if (qpn == MCAST_QPN) {
		for (struct sd_qp *to = sd_qps; to; to = to->next)
			if (joined(to, av->rgid))
				datagram(to, &m, qkey);
	} else if (sd_addr_is_ours(&dest) && sd_qp_find(qpn)) {
		datagram(sd_qp_find(qpn), &m, qkey);
	}
	return 0;
}

int sd_do_send(struct sd_work *k)
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
	return k->qp->type == IB_UVERBS_QPT_UD ? send_datagram(k, m) : send_connected(k, m);
}
