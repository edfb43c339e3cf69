/* SPDX-License-Identifier: BSD-2-Clause */
/* ibmr run: a plan's steps, one after another, and all they made released at the end. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "out.h"
#include "progress.h"
#include "session.h"
#include "soft0_exec.h"
#include "spec.h"

/* How one step ended. Everything is there before the first step runs, so that a lack of memory later
 * loses no step. */
struct outcome {
	bool ran, ok, met;
	uint64_t elapsed_ns;
	struct growing result; /* JSON text; owned */
	struct fail *fail;     /* owned, or &no_memory */
};

struct run {
	const struct cli *cli;
	const struct plan *plan;
	struct session *session;
	struct answer_device device;
	struct outcome *outcomes;
	bool failed;
	bool lost;	     /* nobody takes our lines */
	struct fail first;   /* the first unexpected step's */
	struct writer lines; /* jsonl */
};

static struct fail no_memory;

#define STEP_DEPTH 3 /* a step's members: in the document, in its steps, in the step */

/* ---- one step ------------------------------------------------------------------- */

static void keep_fail(struct outcome *o, const struct fail *fail)
{
	o->fail = malloc(sizeof(*o->fail));
	if (o->fail) {
		*o->fail = *fail;
		return;
	}
	fail_nomem(&no_memory);
	o->fail = &no_memory;
}

/* The first failure that nobody expected is the run's. */
static void note(struct run *run, size_t index, const struct fail *fail)
{
	if (run->failed)
		return;
	run->failed = true;
	run->first = *fail;
	fail_in_step(&run->first, index);
}

static void run_step(struct run *run, size_t index)
{
	const struct step *step = &run->plan->steps[index];
	struct outcome *o = &run->outcomes[index];
	uint64_t start = now_ns();
	struct reply reply;
	struct fail fail;

	dispatch_step(run->session, step, &reply);
	progress_end();
	o->elapsed_ns = now_ns() - start;
	o->ran = true;
	o->ok = reply.fail.code == FAIL_NONE;
	o->met = outcome_check(step, &reply, &fail) == 0;
	if (!o->met)
		note(run, index, &fail);
	if (o->ok) {
		o->result = growing_take(&reply.result);
	} else {
		keep_fail(o, &reply.fail);
	}
	reply_clear(&reply);
}

/* ---- the answer ------------------------------------------------------------------ */

static void write_outcome(struct writer *w, const struct step *step, const struct outcome *o)
{
	writer_begin(w, '{');
	say_string(w, "do", step_word(step->verb));
	say_bool(w, "ok", o->ok);
	say_bool(w, "skipped", !o->ran);
	writer_key(w, "expected");
	if (step->expect && o->ran)
		writer_bool(w, o->met);
	else
		writer_null(w);
	writer_key(w, "elapsed_us");
	if (o->ran)
		writer_micros(w, o->elapsed_ns);
	else
		writer_null(w);
	if (o->fail) {
		writer_key(w, "error");
		writer_fail(w, o->fail);
	} else if (o->ran) {
		writer_key(w, "result");
		writer_raw(w, o->result.bytes, o->result.size);
	}
	writer_end(w, '}');
}

static void text_outcome(struct writer *w, size_t index, const struct step *step,
			 const struct outcome *o)
{
	char line[256];

	snprintf(line, sizeof(line), "%4zu  %-4s  %-12s %s", index,
		 !o->ran  ? "skip"
		 : o->met ? "ok"
			  : "FAIL",
		 step_word(step->verb), step->mr ? step->mr : "");
	writer_text(w, line);
	if (o->ran) {
		snprintf(line, sizeof(line), "  %.1f us", (double)o->elapsed_ns / 1000);
		writer_text(w, line);
	}
	if (o->fail) {
		writer_text(w, "  ");
		writer_text(w, fail_code_name(o->fail->code));
		writer_text(w, o->met ? " (expected)" : "");
	}
	writer_text(w, "\n");
}

static int answer_run(struct run *run)
{
	const struct cli *cli = run->cli;
	struct writer w;
	size_t i;

	if (run->failed)
		complain(cli, &run->first);
	writer_init(&w, STDOUT_FILENO, cli->opts.format == FORMAT_JSONL);
	if (cli->opts.format == FORMAT_TEXT) {
		for (i = 0; i < run->plan->num; i++)
			text_outcome(&w, i, &run->plan->steps[i], &run->outcomes[i]);
		return answer_end(&w, cli, run->failed ? fail_exit_status(&run->first) : 0);
	}
	answer_head(&w, cli, !run->failed, &run->device);
	if (run->failed) {
		writer_key(&w, "error");
		writer_fail(&w, &run->first);
	}
	if (cli->opts.format == FORMAT_JSON) {
		writer_key(&w, "steps");
		writer_begin(&w, '[');
		for (i = 0; i < run->plan->num; i++)
			write_outcome(&w, &run->plan->steps[i], &run->outcomes[i]);
		writer_end(&w, ']');
	}
	writer_end(&w, '}');
	return answer_end(&w, cli, run->failed ? fail_exit_status(&run->first) : 0);
}

/* ---- the steps -------------------------------------------------------------------- */

static void write_line(struct run *run, size_t index)
{
	struct fail fail;
	int rc;

	if (run->cli->opts.format != FORMAT_JSONL)
		return;
	write_outcome(&run->lines, &run->plan->steps[index], &run->outcomes[index]);
	rc = writer_finish(&run->lines);
	if (!rc)
		return;
	/* who asked for lines is gone: go no further */
	fail_sys(&fail, FAIL_IO, "write", -rc, "standard output: %s", strerror(-rc));
	note(run, index, &fail);
	run->lost = true;
}

static void show_progress(void *data, uint64_t done, uint64_t total)
{
	progress_show(done, total);
}

static void run_steps(struct run *run)
{
	size_t i;

	run->session->progress = show_progress;
	run->session->depth = run->cli->opts.format == FORMAT_JSON ? STEP_DEPTH : 0;
	writer_init(&run->lines, STDOUT_FILENO, true);
	for (i = 0; i < run->plan->num; i++) {
		if (!run->failed || (run->cli->opts.keep_going && !signals_cancel && !run->lost))
			run_step(run, i);
		if (!run->lost)
			write_line(run, i);
	}
}

static void release(struct run *run)
{
	struct fail fail;

	signals_hold();
	if (session_close(run->session, &fail) && !run->failed) {
		run->failed = true;
		run->first = fail;
	}
}

static int run_plan(const struct cli *cli, const struct plan *plan)
{
	const struct session_opts opts = { .device = cli->opts.device ? cli->opts.device
								      : plan->device,
					   .port = cli->opts.port,
					   .gid_index = cli->opts.gid_index,
					   .timeout_ms = cli->opts.timeout_ms };
	/* kept: the process ends with the command, and thousands of results are not taken apart
	 * one by one before */
	static struct run run;
	struct fail fail;

	run = (struct run){ .cli = cli, .plan = plan };
	run.outcomes = calloc(plan->num ? plan->num : 1, sizeof(*run.outcomes));
	if (!run.outcomes) {
		fail_nomem(&fail);
		return answer_fail(cli, NULL, &fail);
	}
	if (session_open(&opts, &run.session, &fail)) {
		free(run.outcomes);
		return answer_fail(cli, NULL, &fail);
	}
	snprintf(run.device.name, sizeof(run.device.name), "%s", run.session->caps.name);
	run.device.software = soft0_here() && soft0_is(run.device.name);
	run_steps(&run);
	release(&run);
	return answer_run(&run);
}

/* ---- the plan ----------------------------------------------------------------------- */

static int read_text(const struct cli *cli, struct spec_text *text, struct fail *f)
{
	int rc;

	if (cli->plan_fd >= 0)
		rc = spec_read_fd(cli->plan_fd, cli->args[0], text, f);
	else
		rc = spec_read(cli->args[0], text, f);
	if (rc)
		signals_explain(f);
	return rc;
}

/* Whether the plan is for soft0 and this is not ibmr-soft0. The text is parsed where it is run, once,
 * and what is wrong with it is told there. */
static int is_for_soft0(const struct cli *cli, const struct spec_text *text, bool *ret_is,
			struct fail *f)
{
	json_t *device;
	int rc;

	*ret_is = soft0_is(cli->opts.device) && !soft0_here();
	if (cli->opts.device || soft0_here())
		return 0;
	rc = spec_look(text, "device", &device, f);
	if (rc)
		return rc;
	*ret_is = soft0_is(json_string_value(device));
	json_decref(device);
	return 0;
}

static int parse_plan(const char *path, const struct spec_text *text, json_t **ret_doc,
		      struct plan *ret_plan, struct fail *f)
{
	enum spec_kind kind;
	int rc;

	rc = spec_parse_text(text, ret_doc, f);
	if (rc)
		return rc;
	rc = spec_kind(*ret_doc, &kind, f);
	if (!rc && kind != SPEC_PLAN) {
		rc = fail_set(f, FAIL_SPEC_MISSING,
			      "%s: this is a SPEC of one fill, not a PLAN: "
			      "'steps' is missing",
			      path);
		fail_hint(f, "ibmr check takes both");
		fail_at(f, NULL);
	}
	return rc ? rc : plan_parse(*ret_doc, ret_plan, f);
}

int cmd_run(struct cli *cli)
{
	/* kept, as the results are */
	static struct plan plan;
	static json_t *doc;
	struct spec_text text;
	struct fail fail;
	bool elsewhere;
	int rc;

	if (read_text(cli, &text, &fail))
		return answer_fail(cli, NULL, &fail);
	rc = is_for_soft0(cli, &text, &elsewhere, &fail);
	if (!rc && elsewhere)
		rc = soft0_exec(cli, text.bytes, text.size, &fail);
	else if (!rc)
		rc = parse_plan(cli->args[0], &text, &doc, &plan, &fail);
	spec_text_free(&text);
	return rc ? answer_fail(cli, NULL, &fail) : run_plan(cli, &plan);
}
