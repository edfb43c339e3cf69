/* SPDX-License-Identifier: BSD-2-Clause */
#include "foretell.h"

#include <errno.h>
#include <string.h>

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

/* Whether a member of a result is the same without a device. */
static bool is_member_foretold(const char *name)
{
	static const char *const names[] = { "mr",
					     "offset",
					     "length",
					     "to",
					     "to_offset",
					     "from",
					     "from_offset",
					     "advice",
					     "flush",
					     "bytes",
					     "pages",
					     "name",
					     "kind",
					     "state",
					     "access",
					     "on_demand",
					     "max_klms",
					     "entries",
					     "form",
					     "levels",
					     "keys",
					     "relaxed_ordering_asked",
					     "relaxed_ordering_in_effect",
					     "attach",
					     "pieces",
					     "places",
					     "complete" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

/* The members of an expect object that can be compared with what came without a device, where null is
 * what is not known; NULL: no memory. */
static json_t *foretold_members(const json_t *expect, const json_t *got)
{
	json_t *kept = json_object();
	const json_t *known;
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)expect, name, value)
	{
		known = json_object_get(got, name);
		if (!is_member_foretold(name) || json_is_null(known))
			continue;
		value = json_is_object(value) ? foretold_members(value, known) : json_incref(value);
		if (json_object_set_new(kept, name, value)) {
			json_decref(kept);
			return NULL;
		}
	}
	return kept;
}

/* Bytes cannot be foretold, but how many of them can. */
static int compare_hex_length(const json_t *hex, const json_t *result, struct fail *f)
{
	const struct at up = { .name = "expect" }, at = { .up = &up, .name = "hex" };
	const json_t *length = json_object_get(result, "length");

	if (!json_is_string(hex) || !json_is_integer(length) ||
	    (json_int_t)json_string_length(hex) / 2 == json_integer_value(length))
		return 0;
	fail_set(f, FAIL_MISMATCH, "hex: expected %zu byte%s, got %lld",
		 json_string_length(hex) / 2, fail_plural(json_string_length(hex) / 2),
		 (long long)json_integer_value(length));
	fail_at(f, &at);
	f->err = EBADMSG;
	return -EBADMSG;
}

static int compare_result(const struct step *step, struct reply *reply, struct fail *f)
{
	const json_t *result = reply_tree(reply);
	json_t *members = result ? foretold_members(step->expect, result) : NULL;
	struct step foretold = *step;
	int ret;

	if (!members)
		return fail_nomem(f);
	/* verify counts nothing without a device */
	if (step->verb == STEP_VERIFY)
		json_object_del(members, "bytes");
	foretold.expect = members;
	ret = outcome_check(&foretold, reply, f);
	json_decref(members);
	return ret ? ret : compare_hex_length(json_object_get(step->expect, "hex"), result, f);
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

int foretell_outcome(struct session *s, const struct step *step, struct reply *reply, int rc,
		     struct fail *f)
{
	if (!rc && step->expect_error != FAIL_NONE && !is_foretold(step->expect_error))
		return take_back(s, step, f);
	if (!rc && step->expect && step->expect_error == FAIL_NONE)
		return compare_result(step, reply, f);
	return outcome_check(step, reply, f);
}
