/* SPDX-License-Identifier: BSD-2-Clause */
#include "foretell.h"

#include <errno.h>

/* Failures that records and limits foretell; of all others only a run can tell. */
static bool is_foretold(enum fail_code code)
{
	switch (code) {
	case FAIL_UNSUPPORTED:
	case FAIL_NO_SUCH_MR:
	case FAIL_EXISTS:
	case FAIL_STATE:
	case FAIL_IN_USE:
	case FAIL_NESTING:
	case FAIL_RANGE:
	case FAIL_LIMIT:
	case FAIL_ACCESS:
	case FAIL_NOT_ON_DEMAND:
		return true;
	default:
		return false;
	}
}

/* The step succeeded without a device and would fail on one: what it made is not there. */
static int take_back(struct session *s, const struct step *step, struct fail *f)
{
	struct step dereg = { .verb = STEP_DEREG, .mr = step->mr };
	struct reply reply;
	int rc;

	if (step->verb != STEP_REG && step->verb != STEP_CREATE)
		return 0;
	rc = dispatch_step(s, &dereg, &reply);
	if (rc)
		*f = reply.fail;
	reply_clear(&reply);
	return rc;
}

int foretell_outcome(struct session *s, const struct step *step, const struct reply *reply, int rc,
		     struct fail *f)
{
	if (!rc && step->expect_error != FAIL_NONE && !is_foretold(step->expect_error))
		return take_back(s, step, f);
	if (!rc && step->expect && step->expect_error == FAIL_NONE)
		return 0;
	return outcome_check(step, reply, f);
}
