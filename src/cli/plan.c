/* SPDX-License-Identifier: BSD-2-Clause */
/* A document: a fill SPEC or a PLAN, and a plan's frame. */
#include "spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "member.h"

/* Before all else, so that a document of a later schema is told as that. */
static int check_schema(const json_t *doc, struct fail *f)
{
	const struct at at = { .name = "schema" };
	const json_t *value = json_object_get(doc, "schema");
	uint64_t schema = 1;
	int ret;

	ret = value ? spec_number(value, &at, &schema, f) : 0;
	if (!ret && schema != 1)
		ret = member_refuse(f, FAIL_SPEC_VALUE, NULL, "schema",
				    "schema %" PRIu64 " is not known: this ibmr reads 1", schema);
	return ret;
}

int spec_kind(const json_t *doc, enum spec_kind *ret_kind, struct fail *f)
{
	if (!json_is_object(doc))
		return member_refuse(f, FAIL_SPEC_TYPE, NULL, NULL,
				     "%s where a document belongs: an object with 'layout' or "
				     "'steps'",
				     json_type_word(doc));
	if (json_object_get(doc, "steps"))
		*ret_kind = SPEC_PLAN;
	else if (json_object_get(doc, "layout"))
		*ret_kind = SPEC_FILL;
	else
		return member_refuse(f, FAIL_SPEC_MISSING, NULL, NULL,
				     "neither 'steps' (a plan) nor 'layout' (a fill spec)");
	return check_schema(doc, f);
}

struct frame {
	const char *schema_uri, *device;
	uint64_t schema;
	const json_t *steps;
};

enum { BIT_SCHEMA_URI, BIT_SCHEMA, BIT_DEVICE, BIT_STEPS };

#define MEMBER(n, f, t, b, r)                                                                      \
	{                                                                                          \
		.name = n, .type = MEMBER_##t, .required = r, .offset = offsetof(struct frame, f), \
		.bit = b                                                                           \
	}

static const struct member frame_members[] = {
	MEMBER("$schema", schema_uri, STRING, BIT_SCHEMA_URI, false),
	MEMBER("schema", schema, NUMBER, BIT_SCHEMA, false),
	MEMBER("device", device, STRING, BIT_DEVICE, false),
	MEMBER("steps", steps, LIST, BIT_STEPS, true),
};

static int parse_frame(const json_t *doc, struct frame *ret_frame, struct fail *f)
{
	const struct member_table table = { frame_members,
					    sizeof(frame_members) / sizeof(frame_members[0]) };
	uint64_t seen;
	int ret;

	memset(ret_frame, 0, sizeof(*ret_frame));
	ret = members_parse(doc, NULL, "a plan", &table, 1, ret_frame, &seen, f);
	if (ret)
		return ret;
	if (!json_array_size(ret_frame->steps))
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, "steps",
				     "steps is empty: at least one");
	return 0;
}

/* "-" is a stream of a command of its own: in a plan they hold the plan and its answer. */
static int refuse_stream(const struct step *step, struct fail *f)
{
	const char *member = NULL, *name = NULL;

	if (step->verb == STEP_READ) {
		member = "to_file";
		name = step->read.to_file;
	} else if (step->verb == STEP_WRITE && step->write.data.kind == DATA_FILE) {
		member = "file";
		name = step->write.data.text;
	}
	if (!name || strcmp(name, "-"))
		return 0;
	member_refuse(f, FAIL_SPEC_VALUE, NULL, member,
		      "%s '-': a step of a plan has no standard %s", member,
		      step->verb == STEP_READ ? "output" : "input");
	fail_hint(f, "./- is a file of that name");
	return -EINVAL;
}

static int parse_step(const json_t *request, struct step *ret_step, struct fail *f)
{
	int ret = step_parse(request, ret_step, f);

	if (ret)
		return ret;
	ret = refuse_stream(ret_step, f);
	if (ret)
		step_free(ret_step);
	return ret;
}

int plan_parse(const json_t *doc, struct plan *ret_plan, struct fail *f)
{
	struct plan plan = { NULL, NULL, 0 };
	struct frame frame;
	size_t num;
	int ret;

	ret = parse_frame(doc, &frame, f);
	if (ret)
		return ret;
	num = json_array_size(frame.steps);
	plan.device = frame.device;
	plan.steps = calloc(num, sizeof(*plan.steps));
	if (!plan.steps)
		return fail_nomem(f);
	for (; plan.num < num; plan.num++) {
		ret = parse_step(json_array_get(frame.steps, plan.num), &plan.steps[plan.num], f);
		if (ret) {
			fail_in_step(f, plan.num);
			plan_free(&plan);
			return ret;
		}
	}
	*ret_plan = plan;
	return 0;
}

int spec_read_fill(const char *path, json_t **ret_doc, struct fail *f)
{
	enum spec_kind kind = SPEC_PLAN;
	struct spec_text text;
	json_t *doc;
	int ret;

	ret = spec_read(path, &text, f);
	if (ret)
		return ret;
	ret = spec_parse_text(&text, &doc, f);
	spec_text_free(&text);
	if (ret)
		return ret;
	ret = spec_kind(doc, &kind, f);
	if (!ret && kind != SPEC_FILL) {
		ret = fail_set(f, FAIL_SPEC_MISSING, "%s: a PLAN, where a SPEC of one fill belongs",
			       path);
		fail_hint(f, "ibmr run carries out plans");
		fail_at(f, NULL);
	}
	if (ret)
		json_decref(doc);
	else
		*ret_doc = doc;
	return ret;
}

void plan_free(struct plan *plan)
{
	size_t i;

	for (i = 0; i < plan->num; i++)
		step_free(&plan->steps[i]);
	free(plan->steps);
	memset(plan, 0, sizeof(*plan));
}
