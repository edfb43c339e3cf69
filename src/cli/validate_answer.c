/* SPDX-License-Identifier: BSD-2-Clause */
/* What came of a suite on all devices, as ibmr-result(5) says: reported and proved are two things. */
#include "validate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "doctor.h"
#include "result.h"
#include "words.h"

/* ---- words of the command line --------------------------------------------------------- */

int needs_parse(const char *list, unsigned *ret_needs, struct fail *f)
{
	const char *at = list;

	*ret_needs = 0;
	while (at) {
		size_t len = strcspn(at, ",");
		char word[32];
		int need;

		snprintf(word, sizeof(word), "%.*s", (int)len, at);
		for (need = 0; need < NEED_MAX && strcmp(word, need_words[need]); need++)
			;
		if (need == NEED_MAX) {
			fail_set(f, FAIL_USAGE, "--require: '%s' is not known here", word);
			hint_words(f, word, need_words, NEED_MAX);
			return -EINVAL;
		}
		*ret_needs |= 1u << need;
		at = at[len] ? at + len + 1 : NULL;
	}
	return 0;
}

/* ---- checks that did not end -------------------------------------------------------------- */

static void lost(const struct watched *w, bool begun, enum state *ret_state, struct fail *f)
{
	if (w->stopped) {
		*ret_state = STATE_TIMEOUT;
		fail_set(f, FAIL_TIMEOUT,
			 begun ? "it did not end before the deadline, and was ended"
			       : "the deadline passed before it began");
		f->cause = "deadline";
		f->err = ETIMEDOUT;
		return;
	}
	*ret_state = STATE_ERROR;
	if (WIFSIGNALED(w->wait_status))
		fail_set(f, FAIL_SESSION, "the process that %s it was ended by signal %d (%s)",
			 begun ? "ran" : "should have run", WTERMSIG(w->wait_status),
			 strsignal(WTERMSIG(w->wait_status)));
	else
		fail_set(f, FAIL_SESSION, "the process that %s it ended (status %d)",
			 begun ? "ran" : "should have run", WEXITSTATUS(w->wait_status));
	f->cause = "worker";
}

/* One that could not be tried since the device does not open has the device's error; one whose worker
 * said why it could not go on, that. */
static json_t *not_run(const struct watched *w, const struct check *check, bool begun)
{
	json_t *error = w->gave_up ? w->gave_up
				   : json_object_get(json_object_get(w->about, "about"), "error");
	json_t *entry;
	enum state state;
	struct fail fail;

	if (!json_is_object(error)) {
		lost(w, begun, &state, &fail);
		return check_entry(check, state, &fail);
	}
	entry = check_entry(check, STATE_ERROR, NULL);
	if (entry && json_object_set(entry, "error", error)) {
		json_decref(entry);
		return NULL;
	}
	return entry;
}

static bool has_in_error(const json_t *entry, const char *name, const char *word)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(entry, "error"), name));

	return text && !strcmp(text, word);
}

static bool is_deadline(const json_t *entry)
{
	return has_in_error(entry, "cause", "deadline");
}

/* The last that ended was stopped by the worker itself: what comes after it never began. */
static bool ran_out(const json_t *checks)
{
	const json_t *last = json_array_get(checks, json_array_size(checks) - 1);

	return is_deadline(last) || has_in_error(last, "code", "interrupted");
}

static int complete(struct watched *w, const struct suite *suite)
{
	const size_t ended = json_array_size(w->checks);
	size_t i;

	if (ended < suite->num && ran_out(w->checks))
		w->stopped = true;
	for (i = ended; i < suite->num; i++)
		if (json_array_append_new(w->checks,
					  not_run(w, &suite->checks[i], i == ended && w->begun)))
			return -ENOMEM;
	return 0;
}

/* ---- a device ------------------------------------------------------------------------------- */

static json_t *count_states(const json_t *checks)
{
	int counts[STATE_MAX] = { 0 };
	const json_t *entry;
	json_t *object = json_object();
	size_t i;
	int rc = 0;

	json_array_foreach(checks, i, entry) counts[state_of(entry)]++;
	for (i = 0; i < STATE_MAX && !rc; i++)
		rc = json_object_set_new(object, state_words[i], json_integer(counts[i]));
	return result_whole(object, rc);
}

static bool needs_word(const json_t *entry, const char *word)
{
	const json_t *need;
	size_t i;

	json_array_foreach(json_object_get(entry, "needs"), i,
			   need) if (!strcmp(json_string_value(need), word)) return true;
	return false;
}

/* 1: a check that needs it passed, and none failed; 0: one failed; -1: none was carried out. */
static int proved(const json_t *checks, const char *word)
{
	const json_t *entry;
	int have = -1;
	size_t i;

	json_array_foreach(checks, i, entry)
	{
		enum state state = state_of(entry);

		if (!needs_word(entry, word) || state == STATE_SKIP)
			continue;
		if (state != STATE_PASS)
			return 0;
		have = 1;
	}
	return have;
}

static json_t *all_proved(const json_t *checks)
{
	json_t *object = json_object();
	int need, rc = 0;

	for (need = 0; need < NEED_MAX && !rc; need++) {
		int have = proved(checks, need_words[need]);

		rc = json_object_set_new(object, need_words[need],
					 have < 0 ? json_null() : json_boolean(have));
	}
	return result_whole(object, rc);
}

/* The words that were required and not proved. */
static json_t *missing(const json_t *checks, unsigned required)
{
	json_t *list = json_array();
	int need, rc = 0;

	for (need = 0; need < NEED_MAX && !rc; need++)
		if (required & 1u << need && proved(checks, need_words[need]) != 1)
			rc = json_array_append_new(list, json_string(need_words[need]));
	return result_whole(list, rc);
}

/* What is required and lacks is no skip. */
static int insist(json_t *checks, const struct suite *suite, unsigned required)
{
	json_t *entry;
	size_t i;
	int rc = 0;

	json_array_foreach(checks, i, entry) if (!rc && state_of(entry) == STATE_SKIP &&
						 !suite->checks[i].left_out &&
						 suite->checks[i].needs & required) rc =
		json_object_set_new(entry, "state", json_string(state_words[STATE_FAIL]));
	return rc;
}

static enum state worst(const json_t *counts, const json_t *not_proved)
{
	static const enum state order[] = { STATE_TIMEOUT, STATE_FAIL, STATE_ERROR };
	size_t i;

	for (i = 0; i < 3; i++)
		if (json_integer_value(json_object_get(counts, state_words[order[i]])))
			return order[i];
	if (json_array_size(not_proved))
		return STATE_FAIL;
	return json_integer_value(json_object_get(counts, "pass")) ? STATE_PASS : STATE_SKIP;
}

static json_t *or_null(json_t *value)
{
	return value ? json_incref(value) : json_null();
}

static json_t *device(struct watched *w, const struct suite *suite, unsigned required)
{
	json_t *about = json_object_get(w->about, "about");
	json_t *counts, *not_proved;

	if (complete(w, suite) || insist(w->checks, suite, required))
		return NULL;
	counts = count_states(w->checks);
	not_proved = missing(w->checks, required);
	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:O}", "name",
			 w->about ? or_null(json_object_get(w->about, "name"))
				  : json_string(w->device ? w->device : "default"),
			 "software", or_null(json_object_get(about, "software")), "state",
			 state_words[worst(counts, not_proved)], "counts", counts, "reported",
			 or_null(json_object_get(w->about, "reported")), "proved",
			 all_proved(w->checks), "missing", not_proved, "about", or_null(about),
			 "checks", w->checks);
}

/* ---- where it ran --------------------------------------------------------------------------- */

static json_t *of_environment(const char *name)
{
	const char *value = getenv(name);
	json_t *word = value && *value ? json_string(value) : NULL;

	return value && *value ? word : json_null();
}

static json_t *identity(void)
{
	const char *node = getenv("SLURMD_NODENAME");
	char host[256] = "";

	if (gethostname(host, sizeof(host) - 1))
		host[0] = '\0';
	return json_pack("{s:o, s:o, s:o}", "host",
			 node && *node ? of_environment("SLURMD_NODENAME") : json_string(host),
			 "job", of_environment("SLURM_JOB_ID"), "task",
			 of_environment("SLURM_PROCID"));
}

static json_t *all_tags(const struct cli *cli)
{
	json_t *tags = json_object();
	size_t i;
	int rc = 0;

	for (i = 0; i < cli->opts.num_tags && !rc; i++) {
		const char *tag = cli->opts.tags[i];
		size_t len = strcspn(tag, "=");

		rc = json_object_setn_new(tags, tag, len, json_string(tag + len + 1));
	}
	return result_whole(tags, rc);
}

/* What may differ from node to node and is no device's. */
static json_t *node(const struct cli *cli)
{
	struct doctor d = { .cli = cli, .worst = -1, .findings = json_array() };
	json_t *about;

	if (!d.findings)
		return NULL;
	about = json_pack("{s:s, s:o, s:o, s:o}", "ibmr", IBMR_VERSION, "system", doctor_system(&d),
			  "libraries", doctor_libraries(&d), "limits", doctor_limits(&d));
	json_decref(d.findings);
	return about;
}

static json_t *now_if_asked(const struct cli *cli)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[32];

	if (!cli->opts.timestamps || !gmtime_r(&now, &tm))
		return json_null();
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

/* ---- all of it -------------------------------------------------------------------------------- */

static int add_counts(json_t *sum, const json_t *counts)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < STATE_MAX && !rc; i++) {
		json_int_t have = json_integer_value(json_object_get(sum, state_words[i]));

		have += json_integer_value(json_object_get(counts, state_words[i]));
		rc = json_object_set_new(sum, state_words[i], json_integer(have));
	}
	return rc;
}

json_t *validate_answer(const struct cli *cli, const struct suite *suite, struct watched *devices,
			size_t num, unsigned required)
{
	json_t *list = json_array(), *counts = json_object();
	size_t i;
	int rc = 0;

	for (i = 0; i < num && !rc; i++) {
		json_t *entry = device(&devices[i], suite, required);

		rc = add_counts(counts, json_object_get(entry, "counts"));
		if (json_array_append_new(list, entry))
			rc = -1;
	}
	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o}", "suite", suite->name, "identity",
			 identity(), "tags", all_tags(cli), "time", now_if_asked(cli), "node",
			 node(cli), "counts", result_whole(counts, rc), "devices",
			 result_whole(list, rc));
}

/* ---- how it ended ------------------------------------------------------------------------------- */

/* The entry's error with its place in the document. */
static json_t *error_at(const json_t *entry, size_t dev, size_t check)
{
	json_t *error = json_copy(json_object_get(entry, "error"));
	char place[64];

	snprintf(place, sizeof(place), "/devices/%zu/checks/%zu", dev, check);
	if (error)
		json_object_set_new(error, "where", json_string(place));
	return error;
}

static json_t *plain_error(const char *message, size_t dev)
{
	struct fail fail;
	char place[64];

	fail_set(&fail, FAIL_UNSUPPORTED, "%s", message);
	snprintf(place, sizeof(place), "/devices/%zu", dev);
	fail_at(&fail, NULL);
	fail_under(&fail, place);
	return result_fail(&fail);
}

int validate_status(const json_t *answer, json_t **ret_error)
{
	const json_t *dev, *entry;
	bool passed = false;
	int status = 0;
	size_t d, c;

	*ret_error = NULL;
	json_array_foreach(json_object_get(answer, "devices"), d, dev)
	{
		json_array_foreach(json_object_get(dev, "checks"), c, entry)
		{
			enum state state = state_of(entry);

			passed = passed || state == STATE_PASS;
			if (state == STATE_PASS || state == STATE_SKIP)
				continue;
			if (!status)
				*ret_error = error_at(entry, d, c);
			status = is_deadline(entry) || status == 6 ? 6 : 1;
		}
		if (!status && json_array_size(json_object_get(dev, "missing"))) {
			*ret_error = plain_error("what --require names was not proved", d);
			status = 1;
		}
	}
	if (status || passed)
		return status;
	*ret_error = plain_error("nothing could be checked", 0);
	return 4;
}
