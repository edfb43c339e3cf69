/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue pair: an RC one connected to itself, made at first need. One work request is in flight
 * at a time and each is waited for, so that a raw UMR always finds its slot free, needs no fence,
 * and a buffer is never reused under the device.
 */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEND_WR	   4
#define CQ_ENTRIES 16
#define SPINS	   2000	 /* polls before the first nap */
#define NAP_MIN_NS 1000u /* naps double */
#define NAP_MAX_NS 1000000u
#define RETRIES	   7

struct ibmri_queue {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx; /* mlx5: for raw work requests */
	struct mlx5dv_qp_ex *mqpx;
	bool ready;
	bool lost; /* was in use and had to be given up: the next one is a reconnect */
	uint32_t room, in_flight; /* send slots */
	uint64_t wr_id;
	uint8_t port;
	uint32_t max_msg;
};

/* ---- calls and their time ----------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void ibmri_call_start(struct ibmri_call *c, struct ibmr_ctx *ctx, const char *origin,
		      const char *doing, const struct ibmr_mr *mr)
{
	*c = (struct ibmri_call){ .ctx = ctx,
				  .origin = origin,
				  .doing = doing,
				  .name = mr->name,
				  .deadline_ns = now_ns() + (uint64_t)ctx->timeout_ms * 1000000u };
}

int ibmri_call_over(const struct ibmri_call *c)
{
	if (c->ctx->cancel && __atomic_load_n(c->ctx->cancel, __ATOMIC_RELAXED))
		return -EINTR;
	return now_ns() >= c->deadline_ns ? -ETIMEDOUT : 0;
}

static int call_ended(const struct ibmri_call *c, int why, struct ibmr_err *err)
{
	if (why == -EINTR)
		return ibmri_refuse(err, IBMR_E_INTERRUPTED, c->origin, "%s '%s' was interrupted",
				    c->doing, c->name);
	if (why == -ENODEV)
		return ibmri_refuse(err, IBMR_E_NO_DEVICE, c->origin, "%s '%s': device %s is gone",
				    c->doing, c->name, c->ctx->caps.name);
	return ibmri_refuse(err, IBMR_E_TIMEOUT, c->origin, "%s '%s' did not end within %u ms",
			    c->doing, c->name, c->ctx->timeout_ms);
}

int ibmri_call_check(const struct ibmri_call *c, struct ibmr_err *err)
{
	int why = ibmri_call_over(c);

	return why ? call_ended(c, why, err) : 0;
}

/* ---- making the queue pair -------------------------------------------------------- */

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
static int create_mlx5_qp(struct ibmr_ctx *ctx, struct ibmri_queue *q, struct ibmr_err *err)
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
			.send_cq = q->cq,
			.recv_cq = q->cq,
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
		q->qp = mlx5dv_create_qp(ctx->verbs, &attr, &dv);
		if (q->qp) {
			q->room = attr.cap.max_send_wr;
			q->qpx = ibv_qp_to_qp_ex(q->qp);
			q->mqpx = mlx5dv_qp_ex_from_ibv_qp_ex(q->qpx);
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

static int create_plain_qp(struct ibmr_ctx *ctx, struct ibmri_queue *q, struct ibmr_err *err)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = q->cq,
		.recv_cq = q->cq,
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = SEND_WR,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	errno = 0;
	q->qp = ibv_create_qp(ctx->pd, &attr);
	if (!q->qp)
		return verbs_failed(ctx, "ibv_create_qp", errno, "no RC queue pair", err);
	q->room = attr.cap.max_send_wr;
	return 0;
}

/* ---- connecting it to itself ---------------------------------------------------------- */

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

/* RESET to RTS. */
static int connect_qp(const struct ibmri_call *c, struct ibmri_queue *q, struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = c->ctx;
	struct ibv_port_attr port_attr = { 0 };
	struct ibv_qp_attr attr;
	int ret;

	ret = choose_port(c, &q->port, &port_attr, err);
	if (ret)
		return ret;
	q->max_msg = port_attr.max_msg_sz;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_INIT,
				     .port_num = q->port,
				     .qp_access_flags = IBV_ACCESS_LOCAL_WRITE |
							IBV_ACCESS_REMOTE_WRITE |
							IBV_ACCESS_REMOTE_READ };
	if (ctx->caps.atomics)
		attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
	ret = modify(ctx, q->qp, &attr, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
		     "INIT", err);
	if (ret)
		return ret;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = port_attr.active_mtu,
				     .dest_qp_num = q->qp->qp_num,
				     .max_dest_rd_atomic = 1,
				     .min_rnr_timer = 12 };
	ret = choose_path(c, &port_attr, q->port, &attr.ah_attr, err);
	if (ret)
		return ret;
	ret = modify(ctx, q->qp, &attr,
		     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		     "RTR", err);
	if (ret)
		return ret;
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 14,
				     .retry_cnt = RETRIES,
				     .rnr_retry = RETRIES,
				     .max_rd_atomic = 1 };
	return modify(ctx, q->qp, &attr,
		      IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
			      IBV_QP_MAX_QP_RD_ATOMIC,
		      "RTS", err);
}

/* Destroy what there is of it. When this succeeds the device touches no memory for us any more. */
static int tear_down(struct ibmr_ctx *ctx, struct ibmri_queue *q, struct ibmr_err *err)
{
	int ret;

	q->ready = false;
	if (q->qp) {
		ret = ibmri_let_go(ctx, ibv_destroy_qp(q->qp));
		if (ret)
			return ibmri_failed(err, ibmri_code_of(ret), "ibv_destroy_qp", ret,
					    "device %s does not let go of our queue pair: %s",
					    ctx->caps.name, strerror(ret));
		q->qp = NULL;
		q->qpx = NULL;
		q->mqpx = NULL;
		q->in_flight = 0;
	}
	if (q->cq) {
		ret = ibmri_let_go(ctx, ibv_destroy_cq(q->cq));
		if (ret)
			return ibmri_failed(err, ibmri_code_of(ret), "ibv_destroy_cq", ret,
					    "device %s does not let go of our completion queue: %s",
					    ctx->caps.name, strerror(ret));
		q->cq = NULL;
	}
	return 0;
}

static int set_up(const struct ibmri_call *c, struct ibmri_queue *q, struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = c->ctx;
	int ret;

	errno = 0;
	q->cq = ibv_create_cq(ctx->verbs, CQ_ENTRIES, NULL, NULL, 0);
	if (!q->cq)
		return verbs_failed(ctx, "ibv_create_cq", errno, "no completion queue", err);
	ret = ctx->mlx5 ? create_mlx5_qp(ctx, q, err) : create_plain_qp(ctx, q, err);
	if (!ret)
		ret = connect_qp(c, q, err);
	if (ret)
		(void)tear_down(ctx, q, NULL); /* tried again at next need, and at close */
	return ret;
}

int ibmri_queue_need(const struct ibmri_call *c, struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = c->ctx;
	struct ibmri_queue *q = ctx->queue;
	int ret;

	if (q && q->ready)
		return 0;
	if (!q) {
		q = calloc(1, sizeof(*q));
		if (!q)
			return ibmri_no_memory(err, "calloc", sizeof(*q));
		ctx->queue = q;
	}
	ret = tear_down(ctx, q, err);
	if (!ret)
		ret = set_up(c, q, err);
	if (ret)
		return ret;
	q->ready = true;
	ctx->reconnects += q->lost;
	q->lost = false;
	return 0;
}

int ibmri_queue_close(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	int ret;

	if (!ctx->queue)
		return 0;
	ret = tear_down(ctx, ctx->queue, err);
	if (ret)
		return ret;
	free(ctx->queue);
	ctx->queue = NULL;
	return 0;
}

uint32_t ibmri_queue_qpn(const struct ibmr_ctx *ctx)
{
	return ctx->queue->qp->qp_num;
}

uint64_t ibmri_queue_max_msg(const struct ibmr_ctx *ctx)
{
	return ctx->queue->max_msg;
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* Give up: to ERR, so that the device stops, and destroyed. */
static void give_up(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	struct ibmri_queue *q = ctx->queue;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	int ret;

	q->lost = true;
	(void)ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);
	ret = tear_down(ctx, q, NULL);
	if (ret)
		ibmri_err_more(err, "; and the queue pair cannot be destroyed: %s", strerror(-ret));
}

/* After a completion error the queue pair is in ERR, with nothing in flight. */
static void bring_back(const struct ibmri_call *c, struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = c->ctx;
	struct ibmri_queue *q = ctx->queue;
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	(void)ibmr_ctx_gone(ctx); /* an error brings an asynchronous event with it */
	if (ibv_modify_qp(q->qp, &attr, IBV_QP_STATE) || connect_qp(c, q, NULL)) {
		give_up(ctx, err);
		return;
	}
	ctx->reconnects++;
}

static void nap(uint32_t *ns)
{
	struct timespec ts = { .tv_nsec = *ns };

	nanosleep(&ts, NULL);
	*ns = *ns * 2 < NAP_MAX_NS ? *ns * 2 : NAP_MAX_NS;
}

/* 0 with the completion of our work request, or a negative errno. */
static int wait_for(const struct ibmri_call *c, struct ibv_wc *ret_wc)
{
	struct ibmri_queue *q = c->ctx->queue;
	uint32_t nap_ns = NAP_MIN_NS, spins = 0;

	for (;;) {
		int n = ibv_poll_cq(q->cq, 1, ret_wc), over;

		if (n < 0)
			return -EIO;
		if (n && ret_wc->wr_id == q->wr_id)
			return 0;
		over = ibmri_call_over(c);
		if (!over && ++spins > SPINS && ibmr_ctx_gone(c->ctx))
			over = -ENODEV;
		if (over)
			return over;
		if (spins > SPINS)
			nap(&nap_ns);
	}
}

static int wait_failed(const struct ibmri_call *c, int why, struct ibmr_err *err)
{
	int ret;

	if (why == -EIO)
		ret = ibmri_failed(err, IBMR_E_COMPLETION, "ibv_poll_cq", EIO,
				   "%s '%s': the completion queue cannot be polled", c->doing,
				   c->name);
	else
		ret = call_ended(c, why, err);
	give_up(c->ctx, err);
	return ret;
}

static int wait(const struct ibmri_call *c, struct ibmr_err *err)
{
	struct ibmri_queue *q = c->ctx->queue;
	struct ibv_wc wc;
	int ret;

	ret = wait_for(c, &wc);
	if (ret)
		return wait_failed(c, ret, err);
	q->in_flight--;
	if (wc.status == IBV_WC_SUCCESS)
		return 0;
	ret = ibmri_refuse(err, IBMR_E_COMPLETION, c->origin,
			   "%s '%s': the device answered with %s (status %d, vendor_err 0x%x)",
			   c->doing, c->name, ibv_wc_status_str(wc.status), (int)wc.status,
			   wc.vendor_err);
	if (err) {
		err->status = (int)wc.status;
		err->vendor_err = wc.vendor_err;
	}
	bring_back(c, err);
	return ret;
}

/* ---- posting -------------------------------------------------------------------------------- */

/* libmlx5 does not look before it writes a raw work request into the ring: we count. */
static int take_slot(const struct ibmri_call *c, struct ibmr_err *err)
{
	struct ibmri_queue *q = c->ctx->queue;

	if (q->in_flight >= q->room)
		return ibmri_failed(err, IBMR_E_NO_MEMORY, c->origin, ENOMEM,
				    "%s '%s': all %u slots of the send queue are in use", c->doing,
				    c->name, q->room);
	q->in_flight++;
	q->wr_id++;
	return 0;
}

static int post_failed(const struct ibmri_call *c, const char *call, int err_no,
		       struct ibmr_err *err)
{
	c->ctx->queue->in_flight--;
	return ibmri_failed(err, ibmri_code_of(err_no), call, err_no,
			    "%s '%s': the work request is refused: %s", c->doing, c->name,
			    strerror(err_no));
}

int ibmri_queue_umr(const struct ibmri_call *c, const void *wqe, bool *ret_posted,
		    struct ibmr_err *err)
{
	struct ibmri_queue *q = c->ctx->queue;
	int ret;

	*ret_posted = false;
	ret = ibmri_call_check(c, err);
	if (!ret)
		ret = take_slot(c, err);
	if (ret)
		return ret;
	ibv_wr_start(q->qpx);
	q->qpx->wr_id = q->wr_id;
	q->qpx->wr_flags = 0; /* the request's own control segment asks for the completion */
	mlx5dv_wr_raw_wqe(q->mqpx, wqe);
	ret = ibv_wr_complete(q->qpx);
	if (ret)
		return post_failed(c, "ibv_wr_complete", ret, err);
	*ret_posted = true;
	return wait(c, err);
}

int ibmri_queue_rdma(const struct ibmri_call *c, const struct ibmri_rdma *r, struct ibmr_err *err)
{
	struct ibmri_queue *q = c->ctx->queue;
	struct ibv_sge sge = { .addr = r->local, .length = r->length, .lkey = r->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = r->opcode, .send_flags = IBV_SEND_SIGNALED
	};
	struct ibv_send_wr *bad;
	int ret;

	ret = ibmri_call_check(c, err);
	if (!ret)
		ret = take_slot(c, err);
	if (ret)
		return ret;
	wr.wr_id = q->wr_id;
	if (r->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || r->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		wr.wr.atomic.remote_addr = r->remote;
		wr.wr.atomic.rkey = r->rkey;
		wr.wr.atomic.compare_add = r->compare_add;
		wr.wr.atomic.swap = r->swap;
	} else {
		wr.wr.rdma.remote_addr = r->remote;
		wr.wr.rdma.rkey = r->rkey;
	}
	ret = ibv_post_send(q->qp, &wr, &bad);
	if (ret)
		return post_failed(c, "ibv_post_send", ret, err);
	return wait(c, err);
}
