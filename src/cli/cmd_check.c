/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibmr check: a document's form, and what a device with stated limits would say to it.
 *
 * A plan goes through the same dispatcher as `run`, over a context without a device, so that the
 * two cannot disagree. A lone fill spec becomes the steps around it: members, create, fill.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "budget.h"
#include "cli.h"
#include "dry_files.h"
#include "foretell.h"
#include "lone_spec.h"
#include "out.h"
#include "result.h"
#include "profile.h"
#include "session.h"
#include "spec.h"
#include "targets.h"
#include "words.h"

struct check {
	const struct cli *cli;
	json_t *doc;
	enum spec_kind kind;
	const struct ibmr_caps *target;
	struct ibmr_caps profile; /* target, when it is a file's */
	struct session *session;
	struct budget budget;
	struct dry_files files;
	json_t *unchecked; /* names of a lone spec's MRs without a length */
	size_t steps;
};

static int unknown_target(const char *name, struct fail *f)
{
	const char *names[8];
	size_t num;

	for (num = 0; num < 8 && targets[num].name[0]; num++)
		names[num] = targets[num].name;
	fail_set(f, FAIL_USAGE, "there is no target '%s', and no file of that name", name);
	hint_words(f, name, names, num);
	return -EINVAL;
}

/* A word, else a file of devices --save-profile. */
static int named_target(struct check *c, const char *name, struct fail *f)
{
	c->target = target_find(name);
	if (c->target)
		return 0;
	if (!strchr(name, '/') && access(name, F_OK))
		return unknown_target(name, f);
	c->target = &c->profile;
	return profile_load(name, &c->profile, f);
}

/* ---- a plan -------------------------------------------------------------------- */

/* What the step made, for the steps after it and for the answer. */
static int note_step(struct check *c, const struct step *step, struct reply *reply, struct fail *f)
{
	bool made = step->verb == STEP_REG || step->verb == STEP_CREATE;
	const json_t *of = reply_tree(reply);
	int ret;

	if (!of)
		return fail_nomem(f);
	if (made)
		of = json_object_get(of, "mr");
	ret = dry_files_after(&c->files, step,
			      (uint64_t)json_integer_value(json_object_get(of, "length")), f);
	if (!ret && (made || step->verb == STEP_FILL))
		ret = budget_note(&c->budget, c->session, step->mr, made, f);
	return ret;
}

static int check_step(struct check *c, const struct step *given, struct fail *f)
{
	struct step step = *given;
	struct reply reply;
	int ret, rc;

	memset(&reply, 0, sizeof(reply));
	rc = dry_files_before(&c->files, &step, &reply.fail);
	if (!rc)
		rc = dispatch_step(c->session, &step, &reply);
	ret = foretell_outcome(c->session, &step, &reply, rc, f);
	if (!ret && !rc)
		ret = note_step(c, given, &reply, f);
	reply_clear(&reply);
	return ret;
}

static int check_plan(struct check *c, struct fail *f)
{
	struct plan plan;
	size_t i;
	int ret;

	if (c->cli->opts.num_mrs)
		return fail_set(f, FAIL_USAGE,
				"--mr is for a lone fill spec: a plan makes its own MRs");
	ret = plan_parse(c->doc, &plan, f);
	if (ret)
		return ret;
	c->steps = plan.num;
	if (!c->target)
		c->target = target_of_device(plan.device);
	ret = session_open_dry(c->target, c->cli->opts.timeout_ms, &c->session, f);
	for (i = 0; !ret && i < plan.num; i++) {
		ret = check_step(c, &plan.steps[i], f);
		if (ret)
			fail_in_step(f, i);
	}
	plan_free(&plan);
	return ret;
}

/* ---- a lone spec ------------------------------------------------------------------ */

static int note_unchecked(struct check *c, const char *name, struct fail *f)
{
	json_t *entry = json_pack("{s:s, s:n, s:n, s:n, s:n, s:n}", "name", name, "length",
				  "locked_bytes", "form", "entries", "keys");

	if (json_array_append_new(c->unchecked, json_string(name))) {
		json_decref(entry);
		return fail_nomem(f);
	}
	return budget_add(&c->budget, entry, f);
}

static int note_member(void *arg, const char *name, bool known, struct fail *f)
{
	struct check *c = arg;

	return known ? budget_note(&c->budget, c->session, name, true, f)
		     : note_unchecked(c, name, f);
}

static int note_filled(struct check *c, bool open, struct fail *f)
{
	json_t *entry;
	int ret;

	ret = budget_note(&c->budget, c->session, LONE_MR, true, f);
	if (ret)
		return ret;
	entry = json_array_get(c->budget.mrs, json_array_size(c->budget.mrs) - 1);
	if (json_object_set_new(entry, "name", json_null()) ||
	    (open && json_object_set_new(entry, "length", json_null())))
		return fail_nomem(f);
	return 0;
}

static int check_fill(struct check *c, struct fail *f)
{
	const struct lone_spec spec = { .doc = c->doc,
					.mrs = c->cli->opts.mrs,
					.num_mrs = c->cli->opts.num_mrs,
					.note = note_member,
					.arg = c };
	bool open = false;
	int ret;

	if (!c->target)
		c->target = target_of_device(NULL);
	ret = session_open_dry(c->target, c->cli->opts.timeout_ms, &c->session, f);
	if (!ret)
		ret = lone_spec_make(&spec, c->session, &open, f);
	return ret ? ret : note_filled(c, open, f);
}

/* ---- the command ----------------------------------------------------------------- */

static int check_document(struct check *c, struct fail *f)
{
	struct spec_text text;
	int ret;

	if (c->cli->opts.target) {
		ret = named_target(c, c->cli->opts.target, f);
		if (ret)
			return ret;
	}
	ret = spec_read(c->cli->args[0], &text, f);
	if (ret)
		return ret;
	ret = spec_parse_text(&text, &c->doc, f);
	spec_text_free(&text);
	if (!ret)
		ret = spec_kind(c->doc, &c->kind, f);
	if (!ret)
		ret = budget_init(&c->budget, f);
	if (!ret)
		ret = dry_files_init(&c->files, f);
	if (ret)
		return ret;
	c->unchecked = json_array();
	if (!c->unchecked)
		return fail_nomem(f);
	return c->kind == SPEC_PLAN ? check_plan(c, f) : check_fill(c, f);
}

/* What this process may lock, were it to run the document; -1: any amount. */
static int64_t locked_limit(void)
{
	struct ibmr_memlock m;
	uint64_t pinned;

	ibmr_memlock_query(&m);
	if (m.soft == IBMR_NO_LIMIT || (m.ipc_lock == 1 && m.first_namespace))
		return -1;
	pinned = m.pinned > 0 ? (uint64_t)m.pinned : 0;
	return m.soft > pinned ? (int64_t)(m.soft - pinned) : 0;
}

/* NULL: out of memory. */
static json_t *make_result(const struct check *c)
{
	bool plan = c->kind == SPEC_PLAN, open = json_array_size(c->unchecked);
	int64_t limit = locked_limit();
	bool fits = limit < 0 || c->budget.locked <= (uint64_t)limit;

	return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:O, s:O}", "kind", plan ? "plan" : "spec",
			 "target", c->target->name, "steps",
			 plan ? json_integer((json_int_t)c->steps) : json_null(), "locked_bytes",
			 open ? json_null() : json_integer((json_int_t)c->budget.locked),
			 "locked_limit", result_count(limit), "locked_fits",
			 open ? json_null() : json_boolean(fits), "mrs", c->budget.mrs, "unchecked",
			 c->unchecked);
}

int cmd_check(struct cli *cli)
{
	struct check c = { .cli = cli };
	struct fail f, closing;
	json_t *result = NULL;
	int ret;

	ret = check_document(&c, &f);
	if (!ret)
		result = make_result(&c);
	if (c.session && session_close(c.session, &closing) && !ret) {
		f = closing;
		ret = -EIO;
	}
	json_decref(c.unchecked);
	budget_free(&c.budget);
	dry_files_free(&c.files);
	json_decref(c.doc);
	if (!ret)
		return answer_result(cli, NULL, result);
	json_decref(result);
	signals_explain(&f);
	return answer_fail(cli, NULL, &f);
}
