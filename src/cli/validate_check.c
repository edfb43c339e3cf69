/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One check on one device: a session, its steps by the one door, and what they came to.
 *
 * Only a check whose every step ran, as expected, in every round, within its thresholds, and whose
 * session gave everything back, passes.
 */
#include "validate.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "progress.h"
#include "result.h"
#include "session.h"

const char *const state_words[] = { "pass", "fail", "skip", "timeout", "error" };

enum state state_of(const json_t *entry)
{
	const char *word = json_string_value(json_object_get(entry, "state"));
	int i;

	for (i = 0; word && i < STATE_MAX; i++)
		if (!strcmp(word, state_words[i]))
			return (enum state)i;
	return STATE_ERROR;
}

/* What a step came to; over all rounds the slowest time, and the last result. */
struct measure {
	bool ran;
	uint64_t slowest_ns;
	struct growing text; /* of the result, until all rounds are done */
	json_t *result;	     /* or NULL */
	int status;	     /* of the device's refusal, -1: none */
	uint32_t vendor_err;
};

/* What rounds must not use up. */
struct stock {
	uint64_t mrs, locked_bytes, open_files, mappings;
};

struct run {
	const struct cli *cli;
	const char *device; /* for people */
	const struct check *check;
	const int *has;
	struct session *session;
	struct measure *measures;
	struct stock after_first, after_last;
	bool counted; /* both stocks are */
	uint64_t start_ns, elapsed_ns;
	uint64_t rounds; /* that were completed */
	enum state state;
	struct fail fail; /* when it did not pass */
	json_t *thresholds;
	bool no_memory;
};

/* ---- what the device has -------------------------------------------------------------- */

static bool huge_page_free(void)
{
	DIR *dir = opendir("/sys/kernel/mm/hugepages");
	struct dirent *entry;
	char path[400];
	long pages = 0;
	FILE *f;

	while (dir && !pages && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), "/sys/kernel/mm/hugepages/%s/free_hugepages",
			 entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		if (fscanf(f, "%ld", &pages) != 1)
			pages = 0;
		fclose(f);
	}
	if (dir)
		closedir(dir);
	return pages > 0;
}

void needs_reported(const struct ibmr_caps *caps, int ret_has[NEED_MAX])
{
	ret_has[NEED_ATOMICS] = caps->atomics;
	ret_has[NEED_HUGE_PAGES] = huge_page_free();
	ret_has[NEED_IMPLICIT] = caps->odp_implicit;
	ret_has[NEED_ODP] = caps->odp;
	ret_has[NEED_PREFETCH] = caps->odp ? caps->prefetch : 0;
	ret_has[NEED_UMR] = caps->umr;
}

/* The first need that is not there; NEED_MAX: none. */
static int lacking(const struct check *check, const int *has)
{
	int need;

	for (need = 0; need < NEED_MAX; need++)
		if (check->needs & 1u << need && !has[need])
			return need;
	return NEED_MAX;
}

/* Whether all that it needs was reported: then a refusal is no lack but a fault. */
static bool all_reported(const struct run *run)
{
	int need;

	for (need = 0; need < NEED_MAX; need++)
		if (run->check->needs & 1u << need && run->has[need] != 1)
			return false;
	return run->check->needs != 0;
}

/* ---- states ------------------------------------------------------------------------------ */

static void end(struct run *run, enum state state, const struct fail *fail)
{
	if (run->state != STATE_PASS)
		return;
	run->state = state;
	run->fail = *fail;
}

/* What an unexpected end says: of the device, of what it lacks, or of this machine. */
static enum state judge(const struct run *run, const struct fail *fail)
{
	switch (fail->code) {
	case FAIL_UNSUPPORTED:
		return all_reported(run) ? STATE_FAIL : STATE_SKIP;
	case FAIL_TIMEOUT:
		return STATE_TIMEOUT;
	case FAIL_NO_MEMORY:
	case FAIL_IO:
	case FAIL_SESSION:
	case FAIL_INTERRUPTED:
	case FAIL_NO_DEVICE:
	case FAIL_NO_PERMISSION:
		return STATE_ERROR;
	default:
		return STATE_FAIL;
	}
}

/* ---- steps --------------------------------------------------------------------------------- */

/* The step about to run is told before it runs: a node that dies has said where. */
static void tell(const struct run *run, size_t index, uint64_t round)
{
	const struct step *step = &run->check->plan.steps[index];

	if (round && (round % 100 || index))
		return;
	if (round)
		fprintf(stderr, "ibmr validate: %s: %s: round %" PRIu64 " of %" PRIu64 "\n",
			run->device, run->check->name, round, run->check->rounds);
	else
		fprintf(stderr, "ibmr validate: %s: %s: step %zu, %s%s%s\n", run->device,
			run->check->name, index, step_word(step->verb), step->mr ? " " : "",
			step->mr ? step->mr : "");
}

static void note(struct measure *m, struct reply *reply, uint64_t ns)
{
	m->ran = true;
	if (ns > m->slowest_ns)
		m->slowest_ns = ns;
	growing_free(&m->text);
	m->text = growing_take(&reply->result);
	m->status = reply->fail.code == FAIL_COMPLETION ? reply->fail.status : -1;
	m->vendor_err = reply->fail.vendor_err;
}

static int run_step(struct run *run, size_t index, uint64_t round)
{
	const struct step *step = &run->check->plan.steps[index];
	uint64_t start;
	struct reply reply;
	struct fail fail;
	int rc;

	tell(run, index, round);
	start = now_ns();
	dispatch_step(run->session, step, &reply);
	rc = outcome_check(step, &reply, &fail);
	if (rc) {
		fail_in_step(&fail, index);
		end(run, judge(run, reply.fail.code == FAIL_NONE ? &fail : &reply.fail), &fail);
	}
	note(&run->measures[index], &reply, now_ns() - start);
	reply_clear(&reply);
	return rc;
}

/* ---- rounds -------------------------------------------------------------------------------- */

static uint64_t count_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	uint64_t num = 0;

	while (dir && readdir(dir))
		num++;
	if (dir)
		closedir(dir);
	return num;
}

static uint64_t count_lines(const char *path)
{
	FILE *f = fopen(path, "re");
	uint64_t num = 0;
	int c;

	while (f && (c = getc_unlocked(f)) != EOF)
		num += c == '\n';
	if (f)
		fclose(f);
	return num;
}

static void take_stock(const struct run *run, struct stock *ret)
{
	ret->mrs = run->session->num_objects;
	ret->locked_bytes = ibmr_ctx_locked_bytes(run->session->ctx);
	ret->open_files = count_entries("/proc/self/fd");
	ret->mappings = count_lines("/proc/self/maps");
}

static int run_round(struct run *run, uint64_t round)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < run->check->plan.num && !rc; i++)
		rc = run_step(run, i, round);
	return rc;
}

static void run_rounds(struct run *run)
{
	uint64_t round;

	for (round = 0; round < run->check->rounds; round++) {
		if (run_round(run, round))
			return;
		run->rounds++;
		if (round == 0)
			take_stock(run, &run->after_first);
	}
	take_stock(run, &run->after_last);
	run->counted = run->check->rounds > 1;
}

/* The last results as values: what was said in the rounds before is not read. */
static void read_results(struct run *run)
{
	struct measure *m;
	size_t i;

	for (i = 0; run->measures && i < run->check->plan.num; i++) {
		m = &run->measures[i];
		m->result = m->text.size ? result_tree(&m->text) : NULL;
		if (m->text.size && !m->result)
			run->no_memory = true;
		growing_free(&m->text);
	}
}

/* ---- thresholds ------------------------------------------------------------------------------ */

static json_t *figure(struct run *run, json_t *value)
{
	if (!value)
		run->no_memory = true;
	return value;
}

/* What was measured, or NULL: it was not. */
static json_t *measured_count(struct run *run, const struct threshold *t)
{
	const struct stock *a = &run->after_first, *b = &run->after_last;
	const json_t *result, *value;
	const struct {
		const char *name;
		uint64_t before, after;
	} rows[] = {
		{ "mrs", a->mrs, b->mrs },
		{ "locked_bytes", a->locked_bytes, b->locked_bytes },
		{ "open_files", a->open_files, b->open_files },
		{ "mappings", a->mappings, b->mappings },
	};
	size_t i;

	if (t->step == SIZE_MAX) {
		for (i = 0; run->counted && i < sizeof(rows) / sizeof(rows[0]); i++)
			if (!strcmp(rows[i].name, t->count))
				return figure(run,
					      json_integer(rows[i].after > rows[i].before
								   ? (json_int_t)(rows[i].after -
										  rows[i].before)
								   : 0));
		return NULL;
	}
	result = run->measures[t->step].result;
	value = json_object_get(result, t->count);
	if (!value)
		value = json_object_get(json_object_get(result, "mr"), t->count);
	return json_is_integer(value) ? figure(run, json_integer(json_integer_value(value))) : NULL;
}

static json_t *measured_us(struct run *run, const struct threshold *t)
{
	uint64_t ns = run->elapsed_ns;

	if (t->step != SIZE_MAX)
		ns = run->measures[t->step].slowest_ns;
	if (t->step == SIZE_MAX ? run->rounds < run->check->rounds : !run->measures[t->step].ran)
		return NULL;
	return figure(run, json_real((double)ns / 1000));
}

static json_t *rate(struct run *run, const struct measure *m)
{
	const json_t *bytes = json_object_get(m->result, "bytes");

	if (!bytes)
		bytes = json_object_get(m->result, "length");
	if (!json_is_integer(bytes) || !m->slowest_ns)
		return NULL;
	return figure(run, json_real((double)json_integer_value(bytes) / 1048576 /
				     ((double)m->slowest_ns / 1e9)));
}

/* One figure against its limit; got is taken. What was not measured meets nothing. */
static void compare(struct run *run, const struct threshold *t, const char *what, json_t *got,
		    const char *limit_name, uint64_t limit, bool at_most)
{
	double value = json_number_value(got);
	bool met = got && (at_most ? value <= (double)limit : value >= (double)limit);
	struct fail fail;
	json_t *row;

	row = json_pack("{s:o, s:s, s:s, s:I, s:o, s:b}", "step",
			t->step == SIZE_MAX ? json_null() : json_integer((json_int_t)t->step),
			"what", what, "bound", limit_name, "limit", (json_int_t)limit, "measured",
			got ? json_incref(got) : json_null(), "met", (int)met);
	if (json_array_append_new(run->thresholds, row))
		run->no_memory = true;
	if (!met && run->state == STATE_PASS) {
		if (got)
			fail_set(&fail, FAIL_MISMATCH, "%s is %.*f, %s the %s of %" PRIu64, what,
				 json_is_integer(got) ? 0 : 3, value, at_most ? "above" : "below",
				 limit_name, limit);
		else
			fail_set(&fail, FAIL_MISMATCH, "%s was not measured", what);
		fail.cause = "threshold";
		fail.err = EBADMSG;
		if (t->step != SIZE_MAX) {
			fail_at(&fail, NULL);
			fail_in_step(&fail, t->step);
		}
		end(run, STATE_FAIL, &fail);
	}
	json_decref(got);
}

static void check_thresholds(struct run *run)
{
	size_t i;

	for (i = 0; i < run->check->num_thresholds; i++) {
		const struct threshold *t = &run->check->thresholds[i];

		if (t->max_us)
			compare(run, t, "elapsed_us", measured_us(run, t), "max_us", t->max_us,
				true);
		if (t->min_mibs)
			compare(run, t, "mib_per_s", rate(run, &run->measures[t->step]),
				"min_mib_per_s", t->min_mibs, false);
		if (t->has_min)
			compare(run, t, t->count, measured_count(run, t), "min", t->min, false);
		if (t->has_max)
			compare(run, t, t->count, measured_count(run, t), "max", t->max, true);
	}
}

/* ---- what is said of it ------------------------------------------------------------------------ */

/* The steps that prove something by what they count, and the device's refusals. */
static bool is_evidence(const struct step *step, const struct measure *m)
{
	return m->ran && (m->status >= 0 || (m->result && (step->verb == STEP_VERIFY ||
							   step->verb == STEP_PREFETCH)));
}

static json_t *whole_numbers(const json_t *result)
{
	json_t *numbers = json_object();
	json_t *obj = (json_t *)result; /* the iterator changes nothing */
	int rc = 0;
	void *it;

	for (it = json_object_iter(obj); it && !rc; it = json_object_iter_next(obj, it))
		if (json_is_integer(json_object_iter_value(it)))
			rc = json_object_set(numbers, json_object_iter_key(it),
					     json_object_iter_value(it));
	return result_whole(numbers, rc);
}

static json_t *evidence(struct run *run)
{
	json_t *list = json_array(), *entry;
	size_t i;

	for (i = 0; list && run->measures && i < run->check->plan.num; i++) {
		const struct measure *m = &run->measures[i];
		const struct step *step = &run->check->plan.steps[i];

		if (!is_evidence(step, m))
			continue;
		entry = json_pack("{s:I, s:s, s:o, s:o, s:o}", "step", (json_int_t)i, "do",
				  step_word(step->verb), "elapsed_us",
				  json_real((double)m->slowest_ns / 1000), "counts",
				  whole_numbers(m->result), "status",
				  m->status < 0 ? json_null() : json_integer(m->status));
		if (json_array_append_new(list, entry))
			run->no_memory = true;
	}
	return list;
}

static json_t *words_of(unsigned needs)
{
	json_t *list = json_array();
	int need, rc = 0;

	for (need = 0; need < NEED_MAX && !rc; need++)
		if (needs & 1u << need)
			rc = json_array_append_new(list, json_string(need_words[need]));
	return result_whole(list, rc);
}

json_t *check_entry(const struct check *check, enum state state, const struct fail *f)
{
	return json_pack("{s:s, s:s, s:o, s:n, s:i, s:[], s:[], s:o}", "name", check->name, "state",
			 state_words[state], "needs", words_of(check->needs), "elapsed_us",
			 "rounds", 0, "evidence", "thresholds", "error",
			 f ? result_fail(f) : json_null());
}

static json_t *describe(struct run *run)
{
	json_t *entry;

	entry = check_entry(run->check, run->state,
			    run->fail.code == FAIL_NONE ? NULL : &run->fail);
	if (!entry ||
	    (run->elapsed_ns &&
	     json_object_set_new(entry, "elapsed_us", json_real((double)run->elapsed_ns / 1000))) ||
	    json_object_set_new(entry, "rounds", json_integer((json_int_t)run->rounds)) ||
	    json_object_set_new(entry, "evidence", evidence(run)) ||
	    json_object_set(entry, "thresholds", run->thresholds) || run->no_memory) {
		json_decref(entry);
		return NULL;
	}
	return entry;
}

/* ---- all of it ----------------------------------------------------------------------------------- */

static void run_session(struct run *run, const char *device)
{
	const struct session_opts opts = { .device = device,
					   .port = run->cli->opts.port,
					   .gid_index = run->cli->opts.gid_index,
					   .timeout_ms = run->cli->opts.timeout_ms };
	struct fail fail;

	if (session_open(&opts, &run->session, &fail)) {
		end(run, judge(run, &fail), &fail);
		return;
	}
	run_rounds(run);
	run->elapsed_ns = now_ns() - run->start_ns;
	/* what the device does not give back is a leak */
	if (session_close(run->session, &fail))
		end(run, judge(run, &fail), &fail);
}

/* What was asked to be left out is no error of anything. */
static void skip(struct run *run, int need)
{
	struct fail fail = { .code = FAIL_NONE };

	if (!run->check->left_out)
		fail_set(&fail, FAIL_UNSUPPORTED, "%s: not there, as %s says", need_words[need],
			 need == NEED_HUGE_PAGES ? "this machine" : "the device");
	end(run, STATE_SKIP, &fail);
}

json_t *check_run(const struct cli *cli, const char *device, const struct check *check,
		  const int has[NEED_MAX], bool *ret_stop)
{
	struct run run = { .cli = cli,
			   .device = device ? device : "default device",
			   .check = check,
			   .has = has,
			   .start_ns = now_ns() };
	const int need = lacking(check, has);
	json_t *entry = NULL;
	size_t i;

	run.thresholds = json_array();
	run.measures = calloc(check->plan.num, sizeof(*run.measures));
	if (run.thresholds && run.measures) {
		if (check->left_out || need < NEED_MAX)
			skip(&run, need);
		else
			run_session(&run, device);
		read_results(&run);
		if (run.state == STATE_PASS)
			check_thresholds(&run);
		entry = describe(&run);
	}
	*ret_stop = signals_cancel;
	for (i = 0; run.measures && i < check->plan.num; i++)
		json_decref(run.measures[i].result);
	free(run.measures);
	json_decref(run.thresholds);
	return entry;
}
