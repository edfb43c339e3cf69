/* SPDX-License-Identifier: BSD-2-Clause */
#include "expect.h"

#include <errno.h>
#include <string.h>

#include "member.h"
#include "words.h"

/* The members of each command's result, as ibmr-result(5) has them. */
static const char *const mr_object[] = { "mr", NULL };
static const char *const mr_members[] = { "name",
					  "kind",
					  "state",
					  "lkey",
					  "rkey",
					  "base",
					  "length",
					  "access",
					  "on_demand",
					  "max_klms",
					  "entries",
					  "form",
					  "levels",
					  "keys",
					  "relaxed_ordering_asked",
					  "relaxed_ordering_in_effect",
					  "odp_pages",
					  "attach",
					  NULL };
static const char *const mr_name[] = { "mr", NULL };
static const char *const prefetch_result[] = { "advice",
					       "flush",
					       "bytes",
					       "page_size",
					       "source",
					       "pages",
					       "cpu_resident_before",
					       "cpu_resident_after",
					       "device_mapped_before",
					       "device_mapped_after",
					       "ranges",
					       NULL };
static const char *const write_result[] = { "mr", "offset", "length", "crc32", NULL };
static const char *const read_result[] = { "mr", "offset", "length", "hex", "crc32", "file", NULL };
static const char *const copy_result[] = { "to",     "to_offset", "from", "from_offset",
					   "length", "crc32",	  NULL };
static const char *const atomic_result[] = { "mr", "offset", "old", NULL };
static const char *const verify_result[] = { "mr",	 "bytes",    "segments",    "neighbours",
					     "refusals", "restored", "not_checked", NULL };

static const char *const translate_result[] = { "mr",	  "offset",	 "length",
						"from",	  "from_offset", "pieces",
						"places", "complete",	 NULL };

static const char *const *const results[STEP_DO_MAX] = {
	[STEP_REG] = mr_object,
	[STEP_CREATE] = mr_object,
	[STEP_FILL] = mr_object,
	[STEP_INVALIDATE] = mr_object,
	[STEP_DEREG] = mr_name,
	[STEP_PREFETCH] = prefetch_result,
	[STEP_WRITE] = write_result,
	[STEP_READ] = read_result,
	[STEP_COPY] = copy_result,
	[STEP_FETCH_ADD] = atomic_result,
	[STEP_COMPARE_SWAP] = atomic_result,
	[STEP_VERIFY] = verify_result,
	[STEP_TRANSLATE] = translate_result,
};

static const struct at at_expect = { .name = "expect" };

static int check_names(const json_t *object, const struct at *at, const char *what,
		       const char *const *names, struct fail *f)
{
	struct at child = { .up = at };
	char text[QUOTE_ROOM];
	json_t *value;
	size_t num;

	json_object_foreach((json_t *)object, child.name, value)
	{
		for (num = 0; names[num] && strcmp(names[num], child.name); num++)
			;
		if (names[num])
			continue;
		fail_set(f, FAIL_SPEC_UNKNOWN_MEMBER, "%s has no member %s", what,
			 quote(text, child.name, strlen(child.name)));
		fail_at(f, &child);
		hint_words(f, child.name, names, num);
		return -EINVAL;
	}
	return 0;
}

/* An error that a step can end with. The form of the document, the command line and the session are
 * settled before any step. */
static int check_error(const json_t *error, enum fail_code *ret_error, struct fail *f)
{
	const char *names[FAIL_MAX];
	const char *word = json_string_value(error);
	char text[QUOTE_ROOM];
	size_t num = 0;
	int code;

	if (!word)
		return member_refuse(f, FAIL_SPEC_TYPE, &at_expect, "error",
				     "%s where the word of an error belongs",
				     json_type_word(error));
	for (code = FAIL_SPEC_VALUE + 1; code < FAIL_MAX; code++)
		names[num++] = fail_code_name(code);
	code = fail_code_from_name(word);
	if (code > FAIL_SPEC_VALUE) {
		*ret_error = code;
		return 0;
	}
	quote(text, word, strlen(word));
	if (code != FAIL_NONE)
		return member_refuse(f, FAIL_SPEC_VALUE, &at_expect, "error",
				     "no step ends with %s: that is found before the first step",
				     text);
	member_refuse(f, FAIL_SPEC_VALUE, &at_expect, "error", "%s is no error code", text);
	hint_words(f, word, names, num);
	return -EINVAL;
}

static int check_mr(const json_t *mr, struct fail *f)
{
	const struct at at = { .up = &at_expect, .name = "mr" };

	if (!json_is_object(mr))
		return member_refuse(f, FAIL_SPEC_TYPE, &at_expect, "mr",
				     "%s where an object with members of the MR belongs",
				     json_type_word(mr));
	return check_names(mr, &at, "the result's mr", mr_members, f);
}

int expect_form(const json_t *expect, enum step_do verb, enum fail_code *ret_error, struct fail *f)
{
	const json_t *error = json_object_get(expect, "error");
	const json_t *hex = json_object_get(expect, "hex");
	const json_t *mr = json_object_get(expect, "mr");
	const struct at at_hex = { .up = &at_expect, .name = "hex" };
	char what[48];
	const char *unused;
	int ret;

	if (!json_object_size(expect))
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, "expect",
				     "expect is empty: it expects nothing");
	if (error && json_object_size(expect) > 1)
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, "expect",
				     "a step that is expected to fail has no result to compare: "
				     "'error' stands alone");
	if (error)
		return check_error(error, ret_error, f);
	snprintf(what, sizeof(what), "the result of %s", step_word(verb));
	ret = check_names(expect, &at_expect, what, results[verb], f);
	if (!ret && mr && results[verb] == mr_object)
		ret = check_mr(mr, f);
	if (!ret && hex && !json_is_null(hex))
		ret = hex_parse(hex, &at_hex, &unused, f);
	return ret;
}
