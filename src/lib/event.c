/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device tells unasked: errors of our queue pair, which say nothing new, and its own end. */
#include "private.h"

#include <errno.h>

/* The kernel closes the queue of events of a device that was pulled out, behind the last one. */
static bool queue_is_closed(int err_no)
{
	return err_no == EIO || err_no == ENODEV;
}

bool ibmr_ctx_gone(struct ibmr_ctx *ctx)
{
	struct ibv_async_event event;

	while (ctx->own_events && !ctx->gone) {
		errno = 0;
		if (ibv_get_async_event(ctx->verbs, &event)) {
			ctx->gone = queue_is_closed(errno);
			break;
		}
		ctx->gone = event.event_type == IBV_EVENT_DEVICE_FATAL;
		ibv_ack_async_event(&event);
	}
	return ctx->gone;
}

int ibmr_ctx_event_fd(const struct ibmr_ctx *ctx)
{
	return ctx->own_events ? ctx->verbs->async_fd : -1;
}

int ibmri_let_go(struct ibmr_ctx *ctx, int ret)
{
	return ret == EIO && ibmr_ctx_gone(ctx) ? 0 : ret;
}
