/* SPDX-License-Identifier: BSD-2-Clause */
#include "words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "../lib/ibmr.h"
#include "spec.h"
#include "utf8.h"

const char *quote(char buf[QUOTE_ROOM], const char *text, size_t len)
{
	size_t most = QUOTE_ROOM - sizeof("''...");

	if (len > most)
		snprintf(buf, QUOTE_ROOM, "'%.*s'...", (int)utf8_boundary(text, most), text);
	else
		snprintf(buf, QUOTE_ROOM, "'%.*s'", (int)len, text);
	return buf;
}

const char *json_type_word(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "a list";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
		return "an integer";
	case JSON_REAL:
		return "a real number";
	case JSON_TRUE:
		return "true";
	case JSON_FALSE:
		return "false";
	case JSON_NULL:
		return "null";
	}
	return "a value";
}

/* ---- the nearest word --------------------------------------------------------- */

#define LONGEST_WORD 32

static char folded(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A' + 'a';
	return c == '-' ? '_' : c;
}

/* Edits from a to b: insertions, deletions, changes, swaps of neighbours. */
static unsigned edits(const char *a, size_t la, const char *b, size_t lb)
{
	unsigned row[3][LONGEST_WORD + 1];
	size_t i, j;

	for (j = 0; j <= lb; j++)
		row[0][j] = j;
	for (i = 1; i <= la; i++) {
		unsigned *now = row[i % 3], *last = row[(i + 2) % 3], *before = row[(i + 1) % 3];

		now[0] = i;
		for (j = 1; j <= lb; j++) {
			bool same = folded(a[i - 1]) == folded(b[j - 1]);
			unsigned best = last[j - 1] + !same;

			if (last[j] + 1 < best)
				best = last[j] + 1;
			if (now[j - 1] + 1 < best)
				best = now[j - 1] + 1;
			if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
			    folded(a[i - 2]) == folded(b[j - 1]) && before[j - 2] + 1 < best)
				best = before[j - 2] + 1;
			now[j] = best;
		}
	}
	return row[la % 3][lb];
}

const char *spec_nearest(const char *word, const char *const *candidates, size_t num)
{
	size_t len = strlen(word), lc, i;
	unsigned best = len < 6 ? 2 : len / 3 + 1, n; /* one more than is near */
	const char *found = NULL;

	if (len > LONGEST_WORD)
		return NULL;
	for (i = 0; i < num; i++) {
		lc = strlen(candidates[i]);
		if (lc > LONGEST_WORD)
			continue;
		n = edits(word, len, candidates[i], lc);
		if (n < best) {
			best = n;
			found = candidates[i];
		}
	}
	return found;
}

void hint_words(struct fail *f, const char *word, const char *const *words, size_t num)
{
	const char *near = spec_nearest(word, words, num);
	size_t used = 0, i;
	char list[400];

	if (near) {
		fail_hint(f, "did you mean '%s'?", near);
		return;
	}
	for (i = 0; i < num && used < sizeof(list); i++)
		used += snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", words[i]);
	if (num)
		fail_hint(f, "known here: %s", list);
}

/* ---- values --------------------------------------------------------------------- */

static int wrong_type(struct fail *f, const struct at *at, const json_t *value, const char *want)
{
	fail_set(f, FAIL_SPEC_TYPE, "%s where %s belongs", json_type_word(value), want);
	fail_at(f, at);
	return -EINVAL;
}

static int bad_value(struct fail *f, const struct at *at, const json_t *value, const char *why)
{
	char text[QUOTE_ROOM];

	fail_set(f, FAIL_SPEC_VALUE, "%s %s",
		 quote(text, json_string_value(value), json_string_length(value)), why);
	fail_at(f, at);
	return -EINVAL;
}

int word_parse(const json_t *value, const struct at *at, const char *const *words,
	       unsigned *ret_index, struct fail *f)
{
	const char *word = json_string_value(value);
	unsigned i;

	if (!word)
		return wrong_type(f, at, value, "a word");
	for (i = 0; words[i]; i++) {
		if (!strcmp(words[i], word)) {
			*ret_index = i;
			return 0;
		}
	}
	bad_value(f, at, value, "is not known here");
	hint_words(f, word, words, i);
	return -EINVAL;
}

static const char *const access_names[] = {
	"local_write",
	"remote_write",
	"remote_read",
	"remote_atomic",
	"mw_bind",
	"on_demand",
	"relaxed_ordering",
	"hugetlb",
	"shared_user_read",
	"shared_user_write",
	"shared_group_read",
	"shared_group_write",
	"shared_other_read",
	"shared_other_write",
	NULL,
};

#define FIRST_SHARE 8 /* in access_names: the words from here on are bits of enum spec_share */

int access_parse(const json_t *value, const struct at *at, struct access_words *ret_access,
		 struct fail *f)
{
	struct access_words access = { 0, 0 };
	struct at element = { .up = at };
	uint32_t seen = 0;
	json_t *word;
	unsigned i;
	int ret;

	if (!json_is_array(value))
		return wrong_type(f, at, value, "a list of access words");
	json_array_foreach(value, element.index, word)
	{
		ret = word_parse(word, &element, access_names, &i, f);
		if (ret)
			return ret;
		if (seen & 1u << i)
			return bad_value(f, &element, word, "is given twice");
		seen |= 1u << i;
		if (i < FIRST_SHARE)
			access.bits |= ibmr_access_from_name(access_names[i]);
		else
			access.share |= 1u << (i - FIRST_SHARE);
	}
	*ret_access = access;
	return 0;
}

int spec_name(const json_t *value, const struct at *at, const char **ret_name, struct fail *f)
{
	const char *name = json_string_value(value), *c;
	const char *why = NULL;

	if (!name)
		return wrong_type(f, at, value, "the name of an MR");
	if (!*name)
		why = "is no name: it is empty";
	else if (json_string_length(value) > 64)
		why = "is no name: it has more than 64 bytes";
	for (c = name; *c && !why; c++) {
		if (*c == '/')
			why = "is no name: it has a '/'";
		else if ((unsigned char)*c < 0x20 || *c == 0x7f ||
			 (*c == '\xc2' && (unsigned char)c[1] < 0xa0))
			why = "is no name: it has a control character";
	}
	if (why)
		return bad_value(f, at, value, why);
	*ret_name = name;
	return 0;
}

int hex_parse(const json_t *value, const struct at *at, const char **ret_hex, struct fail *f)
{
	const char *hex = json_string_value(value);

	if (!hex)
		return wrong_type(f, at, value, "a string of hex digits");
	if (!*hex)
		return bad_value(f, at, value, "holds no byte");
	if (hex[strspn(hex, "0123456789abcdefABCDEF")])
		return bad_value(f, at, value, "is not all hex digits");
	if (json_string_length(value) % 2)
		return bad_value(f, at, value, "has half a byte: an odd number of hex digits");
	*ret_hex = hex;
	return 0;
}
