/* SPDX-License-Identifier: BSD-2-Clause */
#include "step_options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "utf8.h"

#define MOST_OPTIONS 16

/* How a member looks as an option, one of init with that word in front. One without a row, a list or an
 * object, is none. */
static const struct words {
	const char *name, *arg, *doc;
} words[] = {
	{ "length", "SIZE", "Bytes (default: to the end)" },
	{ "file", "FILE", "A file's bytes; - is standard input for write" },
	{ "file-offset", "SIZE", "Where in the file the MR begins (default: 0)" },
	{ "map", "HOW", "private (default), or shared: writes reach the file" },
	{ "create", NULL, "Make the file, or lengthen it; needs map shared" },
	{ "hugepages", "SIZE", "In huge pages of this size, e.g. 2MiB" },
	{ "attach", "NAME", "The shared name of an MR, of any process" },
	{ "access", "WORDS", "Rights, comma separated; see ibmr-spec(5)" },
	{ "init-ramp", "N", "Memory begins as bytes N, N+1, ..., modulo 256" },
	{ "init-byte", "N", "Memory begins as bytes that all are N" },
	{ "init-hex", "DIGITS", "Memory begins with these bytes, in hex" },
	{ "init-file", "FILE", "Memory begins with this file's bytes" },
	{ "max-klms", "N", "Most entries of a fill" },
	{ "split", "HOW", "auto: more entries than one key holds become a tree" },
	{ "layout", "KIND", "list or repeat, in place of the SPEC's" },
	{ "base", "ADDRESS", "Address of the first byte, in place of the SPEC's" },
	{ "count", "N", "Cycles of a repeat, in place of the SPEC's" },
	{ "offset", "SIZE", "From the first byte of the MR (default: 0)" },
	{ "advice", "WORD", "read (default), write or no_fault" },
	{ "flush", "true|false", "Wait until it is done (default: true)" },
	{ "expect-resident", NULL, "Pages that are not resident afterwards are a mismatch" },
	{ "hex", "DIGITS", "Bytes to write, in hex" },
	{ "ramp", "N", "Bytes N, N+1, ..., modulo 256" },
	{ "byte", "N", "Every byte is N" },
	{ "unchecked", NULL, "Leave it to the device to refuse" },
	{ "to-file", "FILE", "Write the bytes there; -: to standard output" },
	{ "to", "NAME", "MR to copy to" },
	{ "to-offset", "SIZE", "Where in it (default: 0)" },
	{ "from", "NAME", "MR to copy from" },
	{ "from-offset", "SIZE", "Where in it (default: 0)" },
	{ "add", "N", "What to add, 64 bits" },
	{ "compare", "N", "What must be there, 64 bits" },
	{ "swap", "N", "What takes its place, 64 bits" },
};

/* The option of a member, with - for _. */
static const struct words *words_of(const char *prefix, const char *member)
{
	const size_t len = strlen(prefix);
	const char *a, *b;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strncmp(words[i].name, prefix, len))
			continue;
		a = words[i].name + len;
		for (b = member; *a && (*a == *b || (*a == '-' && *b == '_')); a++)
			b++;
		if (!*a && !*b)
			return &words[i];
	}
	return NULL;
}

/* Put the options of members behind those that are there; returns the end of all. */
static struct argp_option *add_options(struct argp_option *option, const struct argp_option *end,
				       const char *prefix, const struct member *members, size_t num,
				       int key)
{
	const struct words *w;
	size_t i;

	for (i = 0; i < num && option < end; i++) {
		w = words_of(prefix, members[i].name);
		if (w)
			*option++ =
				(struct argp_option){ w->name, key + (int)i, w->arg, 0, w->doc, 0 };
	}
	return option;
}

const struct argp_option *step_options(enum step_do verb)
{
	static struct argp_option tables[STEP_DO_MAX][MOST_OPTIONS + 1];
	const struct argp_option *end = tables[verb] + MOST_OPTIONS;
	const struct member *members;
	struct argp_option *option = tables[verb];
	size_t num;

	if (option->name)
		return tables[verb];
	members = step_members(verb, &num);
	option = add_options(option, end, "", members, num, OPT_MEMBER);
	if (verb == STEP_REG) {
		members = step_init_members(&num);
		add_options(option, end, "init-", members, num, OPT_INIT);
	}
	return tables[verb];
}

static bool is_utf8(const char *text)
{
	size_t len = strlen(text);
	size_t n;

	while (len) {
		n = utf8_char(text, len);
		if (!n)
			return false;
		text += n;
		len -= n;
	}
	return true;
}

int step_option_text(json_t *members, const char *name, const char *text, struct fail *f)
{
	const struct at at = { .name = name };

	if (!is_utf8(text)) {
		fail_set(f, FAIL_SPEC_VALUE, "%s: the text is not UTF-8", name);
		fail_at(f, &at);
		return -EINVAL;
	}
	return json_object_set_new(members, name, json_string(text)) ? fail_nomem(f) : 0;
}

static json_t *list_of(const char *text)
{
	json_t *list = json_array();
	size_t len;

	for (; list && *text; text += len + 1) {
		len = strcspn(text, ",");
		if (json_array_append_new(list, json_stringn(text, len))) {
			json_decref(list);
			return NULL;
		}
		/* what is behind the last comma is a word too, and an empty one is refused */
		if (!text[len])
			break;
		if (!text[len + 1] && json_array_append_new(list, json_string(""))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* A member of the object init, which comes to be by the first of them. */
static int set_init(int key, const char *arg, json_t *values, struct fail *f)
{
	json_t *init = json_object_get(values, "init");
	const char *name;
	size_t num;
	int rc;

	name = step_init_members(&num)[key - OPT_INIT].name;
	if (json_object_get(init, name))
		return fail_set(f, FAIL_USAGE, "--init-%s is given twice", name);
	if (!init && json_object_set_new(values, "init", json_object()))
		return fail_nomem(f);
	rc = step_option_text(json_object_get(values, "init"), name, arg, f);
	if (rc)
		fail_under(f, "/init");
	return rc;
}

/* Numbers stay text: the parser of documents reads them in all their forms. */
int step_option_set(enum step_do verb, int key, const char *arg, json_t *values, struct fail *f)
{
	const struct member *members;
	const struct member *m;
	json_t *value;
	size_t num;

	if (key >= OPT_INIT)
		return set_init(key, arg, values, f);
	members = step_members(verb, &num);
	m = &members[key - OPT_MEMBER];
	if (json_object_get(values, m->name))
		return fail_set(f, FAIL_USAGE, "--%s is given twice", words_of("", m->name)->name);
	if (arg && m->type != MEMBER_ACCESS && m->type != MEMBER_BOOL)
		return step_option_text(values, m->name, arg, f);
	if (arg && m->type == MEMBER_BOOL && strcmp(arg, "true") && strcmp(arg, "false"))
		return fail_set(f, FAIL_USAGE, "--%s '%s': must be true or false",
				words_of("", m->name)->name, arg);
	if (arg && m->type == MEMBER_ACCESS && !is_utf8(arg))
		return step_option_text(values, m->name, arg, f);
	value = m->type == MEMBER_ACCESS ? list_of(arg)
					 : json_boolean(!arg || !strcmp(arg, "true"));
	return json_object_set_new(values, m->name, value) ? fail_nomem(f) : 0;
}
