/* SPDX-License-Identifier: BSD-2-Clause */
/* Suites: which files they are, and their form. */
#include "validate.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "installed.h"
#include "member.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

const char *const need_words[NEED_MAX + 1] = { "atomics", "huge_pages", "implicit",
					       "odp",	  "prefetch",	"umr" };

/* The whole numbers that results have, by name; and those of a check's rounds. */
static const char *const step_counts[] = { "bytes",
					   "cpu_resident_after",
					   "cpu_resident_before",
					   "device_mapped_after",
					   "device_mapped_before",
					   "entries",
					   "keys",
					   "length",
					   "neighbours",
					   "pages",
					   "refusals",
					   "segments",
					   NULL };
static const char *const check_counts[] = { "locked_bytes", "mappings", "mrs", "open_files", NULL };

/* ---- forms ------------------------------------------------------------------------ */

struct form {
	const char *schema_uri, *about, *deadline, *name, *count;
	uint64_t schema, rounds, step, max_us, min_mibs, min, max;
	const json_t *checks, *needs, *steps, *thresholds;
};

enum {
	BIT_schema_uri,
	BIT_about,
	BIT_deadline,
	BIT_name,
	BIT_count,
	BIT_schema,
	BIT_rounds,
	BIT_step,
	BIT_max_us,
	BIT_min_mibs,
	BIT_min,
	BIT_max,
	BIT_checks,
	BIT_needs,
	BIT_steps,
	BIT_thresholds,
};
#define SEEN(f) (seen & 1ull << BIT_##f)

#define NAMED(n, f, t, r)                                                                         \
	{                                                                                         \
		.name = n, .type = MEMBER_##t, .required = r, .offset = offsetof(struct form, f), \
		.bit = BIT_##f                                                                    \
	}
static const struct member frame_members[] = {
	NAMED("$schema", schema_uri, STRING, false), NAMED("schema", schema, NUMBER, false),
	NAMED("about", about, STRING, false),	     NAMED("deadline", deadline, STRING, false),
	NAMED("checks", checks, LIST, true),
};
static const struct member check_members[] = {
	NAMED("name", name, STRING, true),  NAMED("about", about, STRING, false),
	NAMED("needs", needs, LIST, false), NAMED("rounds", rounds, LENGTH, false),
	NAMED("steps", steps, LIST, true),  NAMED("thresholds", thresholds, LIST, false),
};
static const struct member threshold_members[] = {
	NAMED("step", step, NUMBER, false),
	NAMED("max_us", max_us, LENGTH, false),
	NAMED("min_mib_per_s", min_mibs, LENGTH, false),
	NAMED("count", count, STRING, false),
	NAMED("min", min, NUMBER, false),
	NAMED("max", max, NUMBER, false),
};

/* ---- thresholds ---------------------------------------------------------------------- */

static bool moves_bytes(enum step_do verb)
{
	return verb == STEP_WRITE || verb == STEP_READ || verb == STEP_COPY ||
	       verb == STEP_PREFETCH || verb == STEP_VERIFY;
}

static int check_threshold(const json_t *value, const struct form *form, uint64_t seen,
			   const struct at *at, const struct check *check, struct fail *f)
{
	const struct at at_count = { .up = at, .name = "count" };
	unsigned unused;

	if (SEEN(step) && form->step >= check->plan.num)
		return member_refuse(f, FAIL_SPEC_VALUE, at, "step",
				     "step %" PRIu64 ": the check has %zu, counted from 0",
				     form->step, check->plan.num);
	if (!SEEN(max_us) && !SEEN(min_mibs) && !SEEN(count))
		return member_refuse(f, FAIL_SPEC_MISSING, at, NULL,
				     "a threshold needs one of 'max_us', 'min_mib_per_s', 'count'");
	if (SEEN(min_mibs) && (!SEEN(step) || !moves_bytes(check->plan.steps[form->step].verb)))
		return member_refuse(f, FAIL_SPEC_VALUE, at, "min_mib_per_s",
				     "'min_mib_per_s' is of a step that moves bytes");
	if (!SEEN(count) && (SEEN(min) || SEEN(max)))
		return member_refuse(f, FAIL_SPEC_MISSING, at, NULL,
				     "'min' and 'max' need the member 'count'");
	if (!SEEN(count))
		return 0;
	if (!SEEN(min) && !SEEN(max))
		return member_refuse(f, FAIL_SPEC_MISSING, at, NULL,
				     "'count' needs the member 'min' or 'max'");
	if (SEEN(min) && SEEN(max) && form->min > form->max)
		return member_refuse(f, FAIL_SPEC_VALUE, at, "min", "min is above max");
	if (!SEEN(step) && check->rounds < 2)
		return member_refuse(f, FAIL_SPEC_VALUE, at, "count",
				     "a count of the check is what its rounds leave: it needs "
				     "'rounds' above 1, or a 'step'");
	return word_parse(json_object_get(value, "count"), &at_count,
			  SEEN(step) ? step_counts : check_counts, &unused, f);
}

static int parse_threshold(const json_t *value, const struct at *at, const struct check *check,
			   struct threshold *ret_threshold, struct fail *f)
{
	const struct member_table table = { threshold_members, COUNT(threshold_members) };
	struct form form;
	uint64_t seen;
	int rc;

	memset(&form, 0, sizeof(form));
	rc = members_parse(value, at, "a threshold", &table, 1, &form, &seen, f);
	if (!rc)
		rc = check_threshold(value, &form, seen, at, check, f);
	if (rc)
		return rc;
	*ret_threshold = (struct threshold){
		.step = SEEN(step) ? form.step : SIZE_MAX,
		.max_us = form.max_us,
		.min_mibs = form.min_mibs,
		.count = form.count,
		.has_min = SEEN(min),
		.has_max = SEEN(max),
		.min = form.min,
		.max = form.max,
	};
	return 0;
}

static int parse_thresholds(const json_t *list, const struct at *up, struct check *check,
			    struct fail *f)
{
	const struct at at_list = { .up = up, .name = "thresholds" };
	struct at at = { .up = &at_list };
	size_t num = json_array_size(list);
	int rc;

	if (!num)
		return 0;
	check->thresholds = calloc(num, sizeof(*check->thresholds));
	if (!check->thresholds)
		return fail_nomem(f);
	for (; at.index < num; at.index++) {
		rc = parse_threshold(json_array_get(list, at.index), &at, check,
				     &check->thresholds[at.index], f);
		if (rc)
			return rc;
		check->num_thresholds++;
	}
	return 0;
}

/* ---- a check --------------------------------------------------------------------------- */

/* Names stand in TAP lines, labels and options. */
static int check_name(const struct suite *suite, const char *name, const struct at *at,
		      struct fail *f)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-_.";
	size_t i;

	if (strlen(name) > 64 || name[strspn(name, allowed)])
		return member_refuse(f, FAIL_SPEC_VALUE, at, "name",
				     "'%.70s' is no name of a check: up to 64 of a-z 0-9 - _ .",
				     name);
	for (i = 0; i < suite->num; i++)
		if (!strcmp(suite->checks[i].name, name))
			return member_refuse(f, FAIL_SPEC_VALUE, at, "name",
					     "two checks have the name '%s'", name);
	return 0;
}

static int parse_needs(const json_t *list, const struct at *up, unsigned *ret_needs, struct fail *f)
{
	const struct at at_list = { .up = up, .name = "needs" };
	struct at at = { .up = &at_list };
	const json_t *word;
	unsigned need;
	int rc;

	json_array_foreach(list, at.index, word)
	{
		rc = word_parse(word, &at, need_words, &need, f);
		if (rc)
			return rc;
		*ret_needs |= 1u << need;
	}
	return 0;
}

/* The steps are a plan's. */
static int parse_steps(const json_t *steps, const struct at *at, struct plan *ret_plan,
		       struct fail *f)
{
	json_t *doc = json_pack("{s:O}", "steps", steps);
	struct fail place;
	int rc;

	if (!doc)
		return fail_nomem(f);
	rc = plan_parse(doc, ret_plan, f);
	json_decref(doc);
	if (rc) {
		fail_at(&place, at);
		fail_under(f, place.where);
	}
	return rc;
}

static int parse_check(const json_t *value, const struct at *at, const struct suite *suite,
		       struct check *check, struct fail *f)
{
	const struct member_table table = { check_members, COUNT(check_members) };
	struct form form;
	uint64_t seen;
	int rc;

	memset(&form, 0, sizeof(form));
	rc = members_parse(value, at, "a check", &table, 1, &form, &seen, f);
	if (!rc)
		rc = check_name(suite, form.name, at, f);
	if (!rc && form.needs)
		rc = parse_needs(form.needs, at, &check->needs, f);
	if (!rc)
		rc = parse_steps(form.steps, at, &check->plan, f);
	if (rc)
		return rc;
	check->name = form.name;
	check->about = form.about;
	check->rounds = SEEN(rounds) ? form.rounds : 1;
	return parse_thresholds(form.thresholds, at, check, f);
}

static void free_check(struct check *check)
{
	plan_free(&check->plan);
	free(check->thresholds);
}

/* ---- a document --------------------------------------------------------------------------- */

static int check_schema(const json_t *doc, struct fail *f)
{
	const struct at at = { .name = "schema" };
	const json_t *value = json_object_get(doc, "schema");
	uint64_t schema = 1;
	int rc = value ? spec_number(value, &at, &schema, f) : 0;

	if (!rc && schema != 1)
		rc = member_refuse(f, FAIL_SPEC_VALUE, NULL, "schema",
				   "schema %" PRIu64 " is not known: this ibmr reads 1", schema);
	return rc;
}

static int add_checks(struct suite *suite, const json_t *list, struct fail *f)
{
	const struct at at_list = { .name = "checks" };
	struct at at = { .up = &at_list };
	size_t num = json_array_size(list);
	struct check *checks;
	int rc;

	if (!num)
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, "checks",
				     "checks is empty: at least one");
	checks = reallocarray(suite->checks, suite->num + num, sizeof(*checks));
	if (!checks)
		return fail_nomem(f);
	suite->checks = checks;
	for (; at.index < num; at.index++) {
		struct check *check = &checks[suite->num];

		memset(check, 0, sizeof(*check));
		rc = parse_check(json_array_get(list, at.index), &at, suite, check, f);
		if (rc) {
			free_check(check);
			return rc;
		}
		suite->num++;
	}
	return 0;
}

static int add_document(struct suite *suite, json_t *doc, struct fail *f)
{
	const struct member_table table = { frame_members, COUNT(frame_members) };
	struct form form;
	uint64_t seen;
	uint32_t ms;
	int rc;

	if (json_array_append_new(suite->docs, doc))
		return fail_nomem(f);
	memset(&form, 0, sizeof(form));
	rc = json_is_object(doc) ? check_schema(doc, f) : 0;
	if (!rc)
		rc = members_parse(doc, NULL, "a suite", &table, 1, &form, &seen, f);
	if (!rc && SEEN(deadline)) {
		if (parse_duration(form.deadline, &ms))
			rc = member_refuse(f, FAIL_SPEC_VALUE, NULL, "deadline",
					   "deadline '%s': must be an integer above 0 with ms, s, "
					   "m or h",
					   form.deadline);
		else if (ms > suite->deadline_ms)
			suite->deadline_ms = ms;
	}
	return rc ? rc : add_checks(suite, form.checks, f);
}

static int add_text(struct suite *suite, struct spec_text *text, struct fail *f)
{
	json_t *doc;
	int rc = spec_parse_text(text, &doc, f);

	spec_text_free(text);
	return rc ? rc : add_document(suite, doc, f);
}

static int add_file(struct suite *suite, const char *path, struct fail *f)
{
	char message[sizeof(f->message)];
	struct spec_text text;
	int rc = spec_read(path, &text, f);

	if (rc) {
		signals_explain(f);
		return rc;
	}
	rc = add_text(suite, &text, f);
	if (rc && f->code != FAIL_NO_MEMORY) {
		memcpy(message, f->message, sizeof(message));
		fail_message(f, "suite '%s': %s", path, message);
	}
	return rc;
}

/* ---- which files -------------------------------------------------------------------------- */

static int is_json(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && !strcmp(dot, ".json") && entry->d_name[0] != '.';
}

/* A site's own checks: each file of the folder, by name. */
static int add_folder(struct suite *suite, const char *folder, struct fail *f)
{
	struct dirent **entries;
	char path[PATH_MAX];
	int num, i, rc = 0;

	num = scandir(folder, &entries, is_json, alphasort);
	if (num < 0)
		return fail_sys(f, errno == ENOMEM ? FAIL_NO_MEMORY : FAIL_IO, "scandir", errno,
				"%s: %s", folder, strerror(errno));
	if (!num)
		rc = fail_set(f, FAIL_USAGE, "--suite '%s': no .json file is in that folder",
			      folder);
	for (i = 0; i < num; i++) {
		int n = snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);

		if (!rc && (n < 0 || (size_t)n >= sizeof(path)))
			rc = fail_sys(f, FAIL_IO, "open", ENAMETOOLONG, "%s: %s", folder,
				      strerror(ENAMETOOLONG));
		if (!rc)
			rc = add_file(suite, path, f);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

/* A word is one of the suites that come with ibmr, or of the site's in their place. */
static bool is_word(const char *name)
{
	return name[0] != '.' && !strchr(name, '/') && strcmp(name, "-") && !strstr(name, ".json");
}

static int add_installed(struct suite *suite, const char *name, struct fail *f)
{
	char path[PATH_MAX + 64];
	char file[NAME_MAX];
	int n;

	n = snprintf(file, sizeof(file), "%s.json", name);
	if (n > 0 && (size_t)n < sizeof(file)) {
		n = snprintf(path, sizeof(path), IBMR_SITEDIR "/suites/%s", file);
		if (n > 0 && !access(path, F_OK))
			return add_file(suite, path, f);
		if (!installed_find("../../data/suites", IBMR_DATADIR "/suites", file, F_OK, path,
				    sizeof(path)))
			return add_file(suite, path, f);
	}
	fail_set(f, FAIL_USAGE, "--suite '%.100s': no suite has that name", name);
	fail_hint(f, "quick and full come with ibmr; a file has a / in its name or ends in .json");
	return -EINVAL;
}

static int add_named(struct suite *suite, const char *name, struct fail *f)
{
	struct stat st;

	if (is_word(name))
		return add_installed(suite, name, f);
	if (strcmp(name, "-") && !stat(name, &st) && S_ISDIR(st.st_mode))
		return add_folder(suite, name, f);
	return add_file(suite, name, f);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int begin(struct suite *suite, const char *name, struct fail *f)
{
	memset(suite, 0, sizeof(*suite));
	suite->name = name;
	suite->docs = json_array();
	return suite->docs ? 0 : fail_nomem(f);
}

int suite_load(const char *name, struct suite *ret_suite, struct fail *f)
{
	int rc = begin(ret_suite, name, f);

	if (!rc)
		rc = add_named(ret_suite, name, f);
	if (rc)
		suite_free(ret_suite);
	return rc;
}

int suite_load_fd(int fd, struct suite *ret_suite, struct fail *f)
{
	struct spec_text text;
	int rc = begin(ret_suite, "suite", f);

	if (!rc)
		rc = spec_read_fd(fd, "the suite", &text, f);
	if (!rc)
		rc = add_text(ret_suite, &text, f);
	if (rc)
		suite_free(ret_suite);
	return rc;
}

char *suite_text(const struct suite *suite)
{
	json_t *all = json_array(), *doc;
	char *text = NULL;
	char deadline[16];
	size_t i;
	int rc = 0;

	json_array_foreach(suite->docs, i, doc) rc =
		rc ? rc : json_array_extend(all, json_object_get(doc, "checks"));
	doc = json_pack("{s:O}", "checks", all);
	snprintf(deadline, sizeof(deadline), "%" PRIu32 "ms", suite->deadline_ms);
	if (!rc && suite->deadline_ms)
		rc = json_object_set_new(doc, "deadline", json_string(deadline));
	if (!rc && doc)
		text = json_dumps(doc, JSON_COMPACT);
	json_decref(doc);
	json_decref(all);
	return text;
}

void suite_free(struct suite *suite)
{
	size_t i;

	for (i = 0; i < suite->num; i++)
		free_check(&suite->checks[i]);
	free(suite->checks);
	json_decref(suite->docs);
	memset(suite, 0, sizeof(*suite));
}
