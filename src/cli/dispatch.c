/* SPDX-License-Identifier: BSD-2-Clause */
/* The one door: a request, the command it names, its reply. */
#include "session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "result.h"

static step_fn *const steps[STEP_DO_MAX] = {
	[STEP_REG] = step_reg,
	[STEP_CREATE] = step_create,
	[STEP_FILL] = step_fill,
	[STEP_INVALIDATE] = step_invalidate,
	[STEP_DEREG] = step_dereg,
	[STEP_PREFETCH] = step_prefetch,
	[STEP_WRITE] = step_write,
	[STEP_READ] = step_read,
	[STEP_COPY] = step_copy,
	[STEP_FETCH_ADD] = step_fetch_add,
	[STEP_COMPARE_SWAP] = step_compare_swap,
	[STEP_VERIFY] = step_verify,
	[STEP_TRANSLATE] = step_translate,
};

static void reply_init(struct reply *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->fail.status = -1;
}

/* 2^64-1 says "to the end" within; as a length given it is past every end. */
static int refuse_endless(const struct step *step, struct fail *f)
{
	fail_set(f, FAIL_RANGE, "length 18446744073709551615 is past the end of any MR");
	f->err = EFAULT;
	fail_at(f, NULL);
	fail_under(f, step->endless);
	return -EFAULT;
}

/* The end of the device is told as such, however the call that met it failed. */
static void explain_gone(struct session *s, struct fail *f)
{
	const bool asked = f->sys_errno || f->code == FAIL_COMPLETION || f->code == FAIL_TIMEOUT ||
			   f->code == FAIL_NO_DEVICE;

	if (!asked || !session_is_gone(s))
		return;
	f->code = FAIL_NO_DEVICE;
	f->cause = "device_gone";
	f->hint[0] = '\0';
	snprintf(f->message, sizeof(f->message), "device %s is gone: it was pulled out, or failed",
		 s->caps.name);
}

int dispatch_step(struct session *s, const struct step *step, struct reply *reply)
{
	int rc;

	reply_init(reply);
	s->bound = bound_of(s->timeout_ms);
	s->progress_ns = 0;
	rc = session_tick(s, &reply->fail);
	if (!rc && step->endless[0])
		rc = refuse_endless(step, &reply->fail);
	if (!rc)
		rc = steps[step->verb](s, step, reply);
	rc = fail_told(&reply->fail, rc);
	if (rc) {
		/* what was written ahead of it */
		growing_free(&reply->result);
		explain_gone(s, &reply->fail);
	}
	return rc;
}

int dispatch(struct session *s, const json_t *request, struct reply *reply)
{
	struct step step;
	int rc;

	reply_init(reply);
	rc = step_parse(request, &step, &reply->fail);
	if (rc)
		return rc;
	rc = dispatch_step(s, &step, reply);
	step_free(&step);
	return rc;
}

void reply_clear(struct reply *reply)
{
	growing_free(&reply->result);
	json_decref(reply->tree);
	free(reply->bytes);
	reply->tree = NULL;
	reply->bytes = NULL;
}

json_t *reply_tree(struct reply *reply)
{
	if (!reply->tree)
		reply->tree = result_tree(&reply->result);
	return reply->tree;
}
