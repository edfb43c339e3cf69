/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands on the MRs of a session: the command line as the step that a plan would have, its form
 * checked here, its work done by the session.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "out.h"
#include "spec.h"
#include "step_options.h"

/* The SPEC of fill, with the members that options gave in place of its own. */
static int read_spec(const char *path, json_t *request, struct fail *f)
{
	json_t *doc;
	int rc;

	rc = spec_read_fill(path, &doc, f);
	if (rc) {
		signals_explain(f);
		return rc;
	}
	json_object_del(doc, "schema");
	json_object_del(doc, "$schema");
	if (json_object_update_missing(request, doc))
		rc = fail_nomem(f);
	json_decref(doc);
	return rc;
}

static bool has_data(const json_t *request)
{
	return json_object_get(request, "hex") || json_object_get(request, "file") ||
	       json_object_get(request, "ramp") || json_object_get(request, "byte");
}

/* What the command line says, as a step. */
static int make_request(struct cli *cli, json_t **ret_request, struct fail *f)
{
	enum step_do verb = cli->command->verb;
	json_t *request = json_object();
	int rc = request ? 0 : fail_nomem(f);

	if (!rc && json_object_set_new(request, "do", json_string(step_word(verb))))
		rc = fail_nomem(f);
	if (!rc && step_takes_mr(verb))
		rc = step_option_text(request, "mr", cli->args[0], f);
	if (!rc && cli->members && json_object_update(request, cli->members))
		rc = fail_nomem(f);
	if (!rc && verb == STEP_FILL)
		rc = read_spec(cli->args[1], request, f);
	if (!rc && verb == STEP_WRITE && !has_data(request))
		rc = step_option_text(request, "file", "-", f);
	if (rc)
		json_decref(request);
	else
		*ret_request = request;
	return rc;
}

/* With bytes on standard output the document goes to standard error. */
static int answer_fd(const json_t *request)
{
	const char *to_file = json_string_value(json_object_get(request, "to_file"));

	return to_file && !strcmp(to_file, "-") ? STDERR_FILENO : STDOUT_FILENO;
}

static int ask(const struct cli *cli, json_t *request, json_t **ret_reply, struct fail *f)
{
	struct client_files files;
	struct step step;
	struct fail other;
	int rc, closed;

	rc = step_parse(request, &step, f);
	if (rc)
		return rc;
	rc = client_files_open(&step, cli->opts.timeout_ms, &files, f);
	step_free(&step);
	if (rc)
		return rc;
	rc = client_ask(cli, request, &files, false, ret_reply, f);
	closed = client_files_close(&files, !rc && client_ok(*ret_reply), rc ? &other : f);
	if (!rc && closed) {
		json_decref(*ret_reply);
		return closed;
	}
	return rc;
}

int cmd_object(struct cli *cli)
{
	json_t *request = NULL;
	json_t *reply = NULL;
	struct fail fail;
	int status, fd;

	if (make_request(cli, &request, &fail))
		return answer_fail(cli, NULL, &fail);
	fd = answer_fd(request);
	if (ask(cli, request, &reply, &fail))
		status = answer_fail_on(cli, fd, NULL, &fail);
	else
		status = client_answer(cli, fd, reply);
	json_decref(request);
	return status;
}

int cmd_show(struct cli *cli)
{
	json_t *request = json_pack("{s:s}", "do", "show");
	json_t *reply;
	struct fail fail;
	int rc;

	rc = request ? 0 : fail_nomem(&fail);
	if (!rc && cli->num_args)
		rc = step_option_text(request, "mr", cli->args[0], &fail);
	if (!rc)
		rc = client_ask(cli, request, NULL, false, &reply, &fail);
	json_decref(request);
	return rc ? answer_fail(cli, NULL, &fail) : client_answer(cli, STDOUT_FILENO, reply);
}
