/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that has the device. A line on its standard output for each thing that came of it:
 * the device, that a check begins, what came of it. Whoever reads them can end the process at any time.
 */
#include "validate.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "result.h"
#include "session.h"
#include "soft0_exec.h"

/* So much of the deadline is left for giving everything back before we are ended. */
#define ORDERLY_MS 500u

int worker_give_up(const struct fail *f)
{
	struct writer w;

	writer_init(&w, STDOUT_FILENO, true);
	writer_begin(&w, '{');
	writer_key(&w, "gave_up");
	writer_fail(&w, f);
	writer_end(&w, '}');
	writer_finish(&w);
	return 1;
}

static int no_memory(void)
{
	struct fail fail;

	fail_nomem(&fail);
	return worker_give_up(&fail);
}

static int say(const char *name, json_t *value)
{
	json_t *line = json_pack("{s:o}", name, value);
	struct writer w;
	int rc;

	if (!line)
		return no_memory();
	writer_init(&w, STDOUT_FILENO, true);
	writer_json(&w, line);
	rc = writer_finish(&w);
	json_decref(line);
	return rc;
}

static json_t *reported(const int has[NEED_MAX])
{
	json_t *words = json_object();
	int need, rc = 0;

	for (need = 0; need < NEED_MAX && !rc; need++)
		rc = json_object_set_new(words, need_words[need],
					 has[need] < 0 ? json_null() : json_boolean(has[need]));
	return result_whole(words, rc);
}

/* What the device reports. */
static int look(const struct cli *cli, const char *device, struct ibmr_caps *caps, struct fail *f)
{
	const struct session_opts opts = { .device = device,
					   .port = cli->opts.port,
					   .gid_index = cli->opts.gid_index,
					   .timeout_ms = cli->opts.timeout_ms };
	struct session *session;
	int rc = session_open(&opts, &session, f);

	if (rc)
		return rc;
	*caps = session->caps;
	return session_close(session, f);
}

static int say_device(const char *name, json_t *device, json_t *words)
{
	return say("device",
		   json_pack("{s:s, s:o, s:o}", "name", name, "about", device, "reported", words));
}

static void shorten_deadline(struct cli *cli, const struct suite *suite)
{
	if (!cli->opts.deadline_ms)
		cli->opts.deadline_ms = suite->deadline_ms;
	if (cli->opts.deadline_ms > 2 * ORDERLY_MS)
		cli->opts.deadline_ms -= ORDERLY_MS;
	signals_deadline(cli);
}

int worker_run(struct cli *cli, const struct suite *suite, const char *device)
{
	struct ibmr_caps caps;
	int has[NEED_MAX];
	struct fail fail;
	bool software, stop = false;
	size_t i;

	shorten_deadline(cli, suite);
	software = soft0_here() && (!device || soft0_is(device));
	if (look(cli, device, &caps, &fail))
		return say_device(
			device ? device : "default",
			result_broken_device(device ? device : "default", software, &fail),
			json_null());
	software = soft0_here() && soft0_is(caps.name);
	needs_reported(&caps, has);
	if (say_device(caps.name, result_device(&caps, software), reported(has)))
		return 1;
	for (i = 0; i < suite->num && !stop; i++) {
		json_t *entry;

		if (say("begin", json_integer((json_int_t)i)))
			return 1;
		entry = check_run(cli, caps.name, &suite->checks[i], has, &stop);
		if (!entry)
			return no_memory();
		if (say("check", entry))
			return 1;
	}
	return 0;
}
