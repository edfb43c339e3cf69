/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a document: it is refused with a clear error, or every step of it goes through the same
 * dispatcher as `ibmr run`, over a device that is only stated limits.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/session.h"
#include "cli/spec.h"
#include "cli/targets.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What every refusal says. */
static void check_refusal(int ret, const struct fail *f)
{
	REQUIRE(ret < 0);
	REQUIRE(f->code > FAIL_NONE && f->code < FAIL_MAX);
	REQUIRE(f->message[0] && memchr(f->message, 0, sizeof(f->message)));
	REQUIRE(memchr(f->where, 0, sizeof(f->where)));
	REQUIRE(fail_exit_status(f) > 0);
}

static void check_form_refusal(int ret, const struct fail *f)
{
	check_refusal(ret, f);
	REQUIRE(f->code >= FAIL_SPEC_SYNTAX && f->code <= FAIL_SPEC_VALUE);
}

static void run_dry(const struct plan *plan)
{
	struct session *session;
	struct fail f;

	REQUIRE(session_open_dry(target_find("mlx5"), 10000, &session, &f) == 0);
	for (size_t i = 0; i < plan->num; i++) {
		struct reply reply;
		int ret = dispatch_step(session, &plan->steps[i], &reply);

		if (ret)
			check_refusal(ret, &reply.fail);
		else
			REQUIRE(reply.result.size);
		reply_clear(&reply);
	}
	REQUIRE(session_close(session, &f) == 0);
}

static void one_document(const json_t *doc)
{
	enum spec_kind kind;
	struct fail f;
	int ret;

	ret = spec_kind(doc, &kind, &f);
	if (ret) {
		check_form_refusal(ret, &f);
	} else if (kind == SPEC_PLAN) {
		struct plan plan;

		ret = plan_parse(doc, &plan, &f);
		if (ret) {
			check_form_refusal(ret, &f);
			return;
		}
		run_dry(&plan);
		plan_free(&plan);
	} else {
		struct step step;

		ret = spec_parse_fill(doc, "m", &step, &f);
		if (ret)
			check_form_refusal(ret, &f);
		else
			step_free(&step);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_text text = { .bytes = (char *)(uintptr_t)data, .size = size };
	struct fail f;
	json_t *doc;
	int ret;

	ret = spec_parse_text(&text, &doc, &f);
	if (ret) {
		check_form_refusal(ret, &f);
		REQUIRE((f.code != FAIL_SPEC_SYNTAX && f.code != FAIL_SPEC_DUPLICATE) ||
			(f.line && f.column));
		return 0;
	}
	one_document(doc);
	json_decref(doc);
	return 0;
}
