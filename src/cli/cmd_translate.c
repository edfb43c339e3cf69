/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibmr translate: which bytes of which buffers a range of an indirect MR is, or the other way; of an MR
 * of the session, or of a lone spec, for which no device is needed.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "client.h"
#include "lone_spec.h"
#include "out.h"
#include "spec.h"
#include "step_options.h"
#include "targets.h"
#include "utf8.h"

/* A name has no '/', so that a spec in the working directory is ./spec or ends in .json. */
static bool is_spec(const char *word)
{
	size_t len = strlen(word);

	return !strcmp(word, "-") || strchr(word, '/') ||
	       (len > 5 && !strcmp(word + len - 5, ".json"));
}

/* MR:OFFSET; a name may have ':' in it, a number has none. */
static int put_from(json_t *request, const char *from, struct fail *f)
{
	const char *colon = strrchr(from, ':');
	int rc;

	if (!colon || !colon[1])
		return fail_set(f, FAIL_USAGE, "--from '%s': must be MR:OFFSET", from);
	if (!utf8_all(from, (size_t)(colon - from)))
		return fail_set(f, FAIL_USAGE, "--from: the name is not UTF-8");
	rc = step_option_text(request, "from_offset", colon + 1, f);
	if (!rc && json_object_set_new(request, "from",
				       json_stringn_nocheck(from, (size_t)(colon - from))))
		rc = fail_nomem(f);
	return rc;
}

static int make_request(const struct cli *cli, const char *mr, json_t *request, struct fail *f)
{
	static const char *const members[] = { "offset", "length" };
	int i, rc;

	rc = json_object_set_new(request, "do", json_string("translate")) ? fail_nomem(f) : 0;
	if (!rc)
		rc = step_option_text(request, "mr", mr, f);
	for (i = 1; !rc && i < cli->num_args; i++)
		rc = step_option_text(request, members[i - 1], cli->args[i], f);
	if (!rc && cli->opts.from)
		rc = put_from(request, cli->opts.from, f);
	if (!rc && !cli->opts.from && cli->num_args < 2) {
		rc = fail_set(f, FAIL_USAGE, "translate: OFFSET is missing");
		fail_hint(f,
			  "usage: ibmr translate SPEC|NAME OFFSET [LENGTH], or --from MR:OFFSET");
	}
	return rc;
}

/* ---- of the session ------------------------------------------------------------------ */

static int ask(const struct cli *cli, json_t *request, json_t **ret_reply, struct fail *f)
{
	struct step step;
	int rc;

	if (cli->opts.num_mrs)
		return fail_set(f, FAIL_USAGE, "--mr is for a spec: an MR of the session is there");
	rc = step_parse(request, &step, f);
	if (rc)
		return rc;
	step_free(&step);
	return client_ask(cli, request, NULL, false, ret_reply, f);
}

/* ---- of a spec -------------------------------------------------------------------------- */

/* A length that was not given could be any. */
static int note_member(void *arg, const char *name, bool known, struct fail *f)
{
	const char **unknown = arg;

	if (!known)
		*unknown = name;
	return 0;
}

static int translate(const struct cli *cli, struct session *s, json_t *doc, json_t *request,
		     struct reply *reply)
{
	const char *unknown = NULL;
	const struct lone_spec spec = { .doc = doc,
					.mrs = cli->opts.mrs,
					.num_mrs = cli->opts.num_mrs,
					.note = note_member,
					.arg = &unknown };
	struct fail *f = &reply->fail;
	struct step step;
	bool open = false;
	int rc;

	rc = lone_spec_make(&spec, s, &open, f);
	if (!rc && open) {
		rc = fail_set(f, FAIL_USAGE,
			      "an entry reaches to the end of '%s', which is not known", unknown);
		fail_hint(f, "--mr '%s=SIZE' tells it", unknown);
	}
	if (!rc)
		rc = step_parse(request, &step, f);
	if (rc)
		return rc;
	step.mr = LONE_MR;
	rc = dispatch_step(s, &step, reply);
	step_free(&step);
	if (!rc && json_object_set_new(reply_tree(reply), "mr", json_null()))
		rc = fail_nomem(f);
	return rc;
}

static int translate_spec(const struct cli *cli, json_t *request, struct reply *reply)
{
	struct session *s = NULL;
	json_t *doc = NULL;
	struct fail closing;
	int rc;

	rc = spec_read_fill(cli->args[0], &doc, &reply->fail);
	if (rc) {
		signals_explain(&reply->fail);
		return rc;
	}
	rc = session_open_dry(target_of_device(cli->opts.device), cli->opts.timeout_ms, &s,
			      &reply->fail);
	if (!rc)
		rc = translate(cli, s, doc, request, reply);
	if (session_close(s, &closing) && !rc) {
		reply->fail = closing;
		rc = -EIO;
	}
	json_decref(doc);
	if (rc)
		signals_explain(&reply->fail);
	return rc;
}

/* ---- the command ---------------------------------------------------------------------------- */

int cmd_translate(struct cli *cli)
{
	bool spec = is_spec(cli->args[0]);
	json_t *request = json_object();
	struct reply reply = { .tree = NULL };
	json_t *answer = NULL;
	int rc, status;

	rc = request ? make_request(cli, spec ? "spec" : cli->args[0], request, &reply.fail)
		     : fail_nomem(&reply.fail);
	if (!rc)
		rc = spec ? translate_spec(cli, request, &reply)
			  : ask(cli, request, &answer, &reply.fail);
	if (rc)
		status = answer_fail(cli, NULL, &reply.fail);
	else if (spec)
		status = answer_result(cli, NULL, json_incref(reply.tree));
	else
		status = client_answer(cli, STDOUT_FILENO, answer);
	reply_clear(&reply);
	json_decref(request);
	return status;
}
