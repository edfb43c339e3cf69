/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loopback: two RC queue pairs connected to each other. The requester carries all work requests;
 * the responder only answers. One queue pair connected to itself would do both, but there a refusal
 * that it gives as responder can put it into ERR before it has read the refusal as requester, which
 * then sees a flush and not the reason.
 */
#include "private.h"

#include <errno.h>
#include <string.h>

#define SEND_WR	   4
#define CQ_ENTRIES 16
#define RETRIES	   7

/* ---- making them ------------------------------------------------------------------ */

static int verbs_failed(const struct ibmr_ctx *ctx, const char *call, int err_no, const char *what,
			struct ibmr_err *err)
{
	enum ibmr_code code = ibmri_code_of(err_no);

	/* a device that has no RC, or not as we need it, says so with EINVAL */
	if (err_no == EINVAL)
		code = IBMR_E_UNSUPPORTED;
	return ibmri_failed(err, code, call, err_no, "device %s: %s: %s", ctx->caps.name, what,
			    strerror(err_no));
}

/* mlx5: large enough for the most inline entries that the device takes. */
static int create_mlx5_requester(struct ibmr_ctx *ctx, struct ibmri_pair *p, struct ibmr_err *err)
{
	static const uint32_t klms[] = { 52, 36, 20, 4 };
	/* libmlx5 adds this to what is asked for inline, at least, and sizes the slot by the sum */
	const uint32_t overhead = sizeof(struct mlx5_wqe_ctrl_seg) +
				  sizeof(struct mlx5_wqe_raddr_seg) +
				  sizeof(struct mlx5_wqe_inl_data_seg);
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
		.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE,
	};
	size_t i;

	for (i = 0; i < sizeof(klms) / sizeof(klms[0]); i++) {
		struct ibv_qp_init_attr_ex attr = {
			.send_cq = p->cq,
			.recv_cq = p->cq,
			.qp_type = IBV_QPT_RC,
			.pd = ctx->pd,
			.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ,
			.cap = { .max_send_wr = SEND_WR, .max_send_sge = 1 },
		};

		attr.cap.max_inline_data = ibmri_umr_inline_bytes(klms[i]) - overhead;
		if (ctx->caps.atomics)
			attr.send_ops_flags |= IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
					       IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
		errno = 0;
		p->requester = mlx5dv_create_qp(ctx->verbs, &attr, &dv);
		if (p->requester) {
			p->room = attr.cap.max_send_wr;
			p->qpx = ibv_qp_to_qp_ex(p->requester);
			p->mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(p->qpx);
			ctx->caps.inline_klms =
				ibmri_umr_inline_klms(attr.cap.max_inline_data + overhead);
			return 0;
		}
		if (errno != EINVAL)
			break;
	}
	return verbs_failed(ctx, "mlx5dv_create_qp", errno,
			    "no RC queue pair with work requests of our own", err);
}

static int create_plain(struct ibmr_ctx *ctx, const struct ibmri_pair *p, struct ibv_qp **ret_qp,
			uint32_t *ret_room, struct ibmr_err *err)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = p->cq,
		.recv_cq = p->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = SEND_WR,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	errno = 0;
	*ret_qp = ibv_create_qp(ctx->pd, &attr);
	if (!*ret_qp)
		return verbs_failed(ctx, "ibv_create_qp", errno, "no RC queue pair", err);
	*ret_room = attr.cap.max_send_wr;
	return 0;
}

static int create_both(struct ibmr_ctx *ctx, struct ibmri_pair *p, struct ibmr_err *err)
{
	uint32_t unused;
	int ret;

	errno = 0;
	p->cq = ibv_create_cq(ctx->verbs, CQ_ENTRIES, NULL, NULL, 0);
	if (!p->cq)
		return verbs_failed(ctx, "ibv_create_cq", errno, "no completion queue", err);
	ret = ctx->mlx5 ? create_mlx5_requester(ctx, p, err)
			: create_plain(ctx, p, &p->requester, &p->room, err);
	return ret ? ret : create_plain(ctx, p, &p->responder, &unused, err);
}

/* ---- connecting them -------------------------------------------------------------------- */

static int choose_port(const struct ibmri_call *c, uint8_t *ret_port,
		       struct ibv_port_attr *ret_attr, struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = c->ctx;
	uint32_t port = ctx->port ? ctx->port : 1;
	uint32_t last = ctx->port ? ctx->port : ctx->caps.num_ports;
	int ret;

	for (; port <= last; port++) {
		ret = ibv_query_port(ctx->verbs, (uint8_t)port, ret_attr);
		if (ret)
			return verbs_failed(ctx, "ibv_query_port", ret, "a port cannot be asked",
					    err);
		if (ret_attr->state == IBV_PORT_ACTIVE) {
			*ret_port = (uint8_t)port;
			return 0;
		}
	}
	if (ctx->port)
		ret = ibmri_refuse(err, IBMR_E_NO_DEVICE, c->origin,
				   "port %u of device %s is not ACTIVE but %s", ctx->port,
				   ctx->caps.name, ibv_port_state_str(ret_attr->state));
	else
		ret = ibmri_refuse(err, IBMR_E_NO_DEVICE, c->origin, "device %s has no ACTIVE port",
				   ctx->caps.name);
	ibmri_err_cause(err, "port_not_active");
	return ret;
}

/* The GID to send from and to: the one asked for, or the port's first RoCE v2 one. */
static int choose_gid(const struct ibmri_call *c, uint8_t port, const struct ibv_port_attr *attr,
		      struct ibv_gid_entry *ret_gid, struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = c->ctx;
	bool roce = attr->link_layer == IBV_LINK_LAYER_ETHERNET;
	int first = ctx->gid_index < 0 ? 0 : ctx->gid_index, i, ret;

	/* an address vector names its GID by eight bits */
	for (i = first; i < attr->gid_tbl_len && i <= UINT8_MAX; i++) {
		ret = ibv_query_gid_ex(ctx->verbs, port, (uint32_t)i, ret_gid, 0);
		if (ret && ret != ENODATA)
			return verbs_failed(ctx, "ibv_query_gid_ex", ret, "a GID cannot be asked",
					    err);
		if (ctx->gid_index >= 0 && ret)
			break;
		if (!ret &&
		    (ctx->gid_index >= 0 || !roce || ret_gid->gid_type == IBV_GID_TYPE_ROCE_V2))
			return 0;
	}
	if (ctx->gid_index >= 0)
		ret = ibmri_refuse(err, IBMR_E_NO_DEVICE, c->origin,
				   "port %u of device %s has no GID at index %d", port,
				   ctx->caps.name, ctx->gid_index);
	else
		ret = ibmri_refuse(err, IBMR_E_UNSUPPORTED, c->origin,
				   "port %u of device %s has no RoCE v2 GID", port, ctx->caps.name);
	ibmri_err_cause(err, "no_gid");
	return ret;
}

static int choose_path(const struct ibmri_call *c, const struct ibv_port_attr *attr, uint8_t port,
		       struct ibv_ah_attr *ah, struct ibmr_err *err)
{
	struct ibv_gid_entry gid = { 0 };
	int ret;

	memset(ah, 0, sizeof(*ah));
	ah->port_num = port;
	ah->dlid = attr->lid;
	if (attr->link_layer != IBV_LINK_LAYER_ETHERNET && attr->lid && c->ctx->gid_index < 0)
		return 0;
	ret = choose_gid(c, port, attr, &gid, err);
	if (ret)
		return ret;
	ah->is_global = 1;
	ah->grh.dgid = gid.gid;
	ah->grh.sgid_index = (uint8_t)gid.gid_index;
	ah->grh.hop_limit = 64;
	return 0;
}

static int modify(const struct ibmr_ctx *ctx, struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  const char *to, struct ibmr_err *err)
{
	int ret = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);

	if (!ret)
		return 0;
	return ibmri_failed(err, ibmri_code_of(ret), "ibv_modify_qp", ret,
			    "device %s: the queue pair does not go to %s: %s", ctx->caps.name, to,
			    strerror(ret));
}

static int to_init(const struct ibmr_ctx *ctx, const struct ibmri_pair *p, struct ibv_qp *qp,
		   struct ibmr_err *err)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = p->port,
				    .qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
						       IBV_ACCESS_REMOTE_WRITE |
						       IBV_ACCESS_REMOTE_READ };

	if (ctx->caps.atomics)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	return modify(ctx, qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT",
		      err);
}

static int to_rtr(const struct ibmr_ctx *ctx, struct ibv_qp *qp, const struct ibv_qp *peer,
		  const struct ibv_ah_attr *path, enum ibv_mtu mtu, struct ibmr_err *err)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR,
				    .ah_attr = *path,
				    .path_mtu = mtu,
				    .dest_qp_num = peer->qp_num,
				    .max_dest_rd_atomic = 1,
				    .min_rnr_timer = 12 };

	return modify(ctx, qp, &attr,
		      IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		      "RTR", err);
}

static int to_rts(const struct ibmr_ctx *ctx, struct ibv_qp *qp, struct ibmr_err *err)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = RETRIES,
				    .rnr_retry = RETRIES,
				    .max_rd_atomic = 1 };

	return modify(ctx, qp, &attr,
		      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			      IBV_QP_MAX_QP_RD_ATOMIC,
		      "RTS", err);
}

/* From RESET: both able to receive before one may send. */
static int connect_both(const struct ibmri_call *c, struct ibmri_pair *p, struct ibmr_err *err)
{
	struct ibv_port_attr port = { 0 };
	struct ibmr_ctx *ctx = c->ctx;
	struct ibv_ah_attr path;
	int ret;

	ret = choose_port(c, &p->port, &port, err);
	if (!ret)
		ret = choose_path(c, &port, p->port, &path, err);
	if (!ret)
		ret = to_init(ctx, p, p->requester, err);
	if (!ret)
		ret = to_init(ctx, p, p->responder, err);
	if (!ret)
		ret = to_rtr(ctx, p->responder, p->requester, &path, port.active_mtu, err);
	if (!ret)
		ret = to_rtr(ctx, p->requester, p->responder, &path, port.active_mtu, err);
	if (!ret)
		ret = to_rts(ctx, p->requester, err);
	if (!ret)
		p->max_msg = port.max_msg_sz;
	return ret;
}

int ibmri_pair_make(const struct ibmri_call *c, struct ibmri_pair *p, struct ibmr_err *err)
{
	int ret = create_both(c->ctx, p, err);

	if (!ret)
		ret = connect_both(c, p, err);
	if (ret)
		(void)ibmri_pair_destroy(c->ctx, p,
					 NULL); /* tried again at next need, and at close */
	return ret;
}

/* ---- and back --------------------------------------------------------------------------- */

bool ibmri_pair_reconnect(const struct ibmri_call *c, struct ibmri_pair *p)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };

	return !ibv_modify_qp(p->requester, &reset, IBV_QP_STATE) &&
	       !ibv_modify_qp(p->responder, &reset, IBV_QP_STATE) && !connect_both(c, p, NULL);
}

void ibmri_pair_stop(struct ibmri_pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	(void)ibv_modify_qp(p->requester, &attr, IBV_QP_STATE);
	(void)ibv_modify_qp(p->responder, &attr, IBV_QP_STATE);
}

static int destroy_qp(struct ibmr_ctx *ctx, struct ibv_qp **qp, struct ibmr_err *err)
{
	int ret = *qp ? ibmri_let_go(ctx, ibv_destroy_qp(*qp)) : 0;

	if (ret)
		return ibmri_failed(err, ibmri_code_of(ret), "ibv_destroy_qp", ret,
				    "device %s does not let go of our queue pair: %s",
				    ctx->caps.name, strerror(ret));
	*qp = NULL;
	return 0;
}

int ibmri_pair_destroy(struct ibmr_ctx *ctx, struct ibmri_pair *p, struct ibmr_err *err)
{
	int ret = destroy_qp(ctx, &p->requester, err);

	if (!ret)
		ret = destroy_qp(ctx, &p->responder, err);
	if (ret)
		return ret;
	p->qpx = NULL;
	p->mqpx = NULL;
	ret = p->cq ? ibmri_let_go(ctx, ibv_destroy_cq(p->cq)) : 0;
	if (ret)
		return ibmri_failed(err, ibmri_code_of(ret), "ibv_destroy_cq", ret,
				    "device %s does not let go of our completion queue: %s",
				    ctx->caps.name, strerror(ret));
	p->cq = NULL;
	return 0;
}
