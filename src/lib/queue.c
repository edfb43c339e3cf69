/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting and polling, on a loopback made at first need. One work request is in flight at a time and
 * each is waited for, so that a raw UMR always finds its slot free, needs no fence, and a buffer is
 * never reused under the device.
 */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SPINS	   2000	 /* polls before the first nap */
#define NAP_MIN_NS 1000u /* naps double */
#define NAP_MAX_NS 1000000u

struct ibmri_queue {
	struct ibmri_pair pair;
	bool ready;
	bool lost;	    /* was in use and had to be given up: the next one is a reconnect */
	uint32_t in_flight; /* send slots */
	uint64_t wr_id;
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

/* ---- the loopback, at need --------------------------------------------------------- */

/* When this succeeds the device touches no memory for us any more. */
static int tear_down(struct ibmr_ctx *ctx, struct ibmri_queue *q, struct ibmr_err *err)
{
	int ret;

	q->ready = false;
	ret = ibmri_pair_destroy(ctx, &q->pair, err);
	if (!q->pair.requester)
		q->in_flight = 0;
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
		ret = ibmri_pair_make(c, &q->pair, err);
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
	return ctx->queue->pair.requester->qp_num;
}

uint64_t ibmri_queue_max_msg(const struct ibmr_ctx *ctx)
{
	return ctx->queue->pair.max_msg;
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* Give up: to ERR, so that the device stops, and destroyed. */
static void give_up(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	struct ibmri_queue *q = ctx->queue;
	int ret;

	q->lost = true;
	ibmri_pair_stop(&q->pair);
	ret = tear_down(ctx, q, NULL);
	if (ret)
		ibmri_err_more(err, "; and the queue pair cannot be destroyed: %s", strerror(-ret));
}

/* After a completion error the queue pair is in ERR, with nothing in flight. */
static void bring_back(const struct ibmri_call *c, struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = c->ctx;

	(void)ibmr_ctx_gone(ctx); /* an error brings an asynchronous event with it */
	if (!ibmri_pair_reconnect(c, &ctx->queue->pair)) {
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
		int n = ibv_poll_cq(q->pair.cq, 1, ret_wc), over;

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

	if (q->in_flight >= q->pair.room)
		return ibmri_failed(err, IBMR_E_NO_MEMORY, c->origin, ENOMEM,
				    "%s '%s': all %u slots of the send queue are in use", c->doing,
				    c->name, q->pair.room);
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
	struct ibv_qp_ex *qpx = q->pair.qpx;
	int ret;

	*ret_posted = false;
	ret = ibmri_call_check(c, err);
	if (!ret)
		ret = take_slot(c, err);
	if (ret)
		return ret;
	ibv_wr_start(qpx);
	qpx->wr_id = q->wr_id;
	qpx->wr_flags = 0; /* the request's own control segment asks for the completion */
	mlx5dv_wr_raw_wqe(q->pair.mqpx, wqe);
	ret = ibv_wr_complete(qpx);
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
	ret = ibv_post_send(q->pair.requester, &wr, &bad);
	if (ret)
		return post_failed(c, "ibv_post_send", ret, err);
	return wait(c, err);
}
