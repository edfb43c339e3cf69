/* SPDX-License-Identifier: BSD-2-Clause */
#include "member.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define MOST_MEMBERS 32 /* of one object, over all its tables */

int member_refuse(struct fail *f, enum fail_code code, const struct at *up, const char *member,
		  const char *fmt, ...)
{
	const struct at at = { .up = up, .name = member };
	char text[sizeof(f->message)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail_set(f, code, "%s", text);
	fail_at(f, member ? &at : up);
	return -EINVAL;
}

static const struct member *find(const struct member_table *tables, size_t num, const char *name)
{
	size_t t, i;

	for (t = 0; t < num; t++)
		for (i = 0; i < tables[t].num; i++)
			if (!strcmp(tables[t].members[i].name, name))
				return &tables[t].members[i];
	return NULL;
}

static int unknown(struct fail *f, const struct at *at, const char *what,
		   const struct member_table *tables, size_t num)
{
	const char *names[MOST_MEMBERS];
	char text[QUOTE_ROOM];
	size_t n = 0, t, i;

	for (t = 0; t < num; t++)
		for (i = 0; i < tables[t].num && n < MOST_MEMBERS; i++)
			names[n++] = tables[t].members[i].name;
	fail_set(f, FAIL_SPEC_UNKNOWN_MEMBER, "%s has no member %s", what,
		 quote(text, at->name, strlen(at->name)));
	fail_at(f, at);
	hint_words(f, at->name, names, n);
	return -EINVAL;
}

static int wrong_type(struct fail *f, const struct at *at, const json_t *value, const char *want)
{
	fail_set(f, FAIL_SPEC_TYPE, "%s where %s belongs", json_type_word(value), want);
	fail_at(f, at);
	return -EINVAL;
}

static int parse_number(const struct member *m, const json_t *value, const struct at *at,
			void *field, struct fail *f)
{
	uint64_t number;
	int ret;

	ret = spec_number(value, at, &number, f);
	if (ret)
		return ret;
	if ((m->type == MEMBER_LENGTH || m->type == MEMBER_ALL) && !number)
		return member_refuse(f, FAIL_SPEC_VALUE, at->up, at->name, "%s 0: at least 1",
				     m->name);
	if (m->type != MEMBER_BYTE) {
		*(uint64_t *)field = number;
		return 0;
	}
	if (number > 255)
		return member_refuse(f, FAIL_SPEC_VALUE, at->up, at->name,
				     "%s %" PRIu64 ": a byte is at most 255", m->name, number);
	*(uint8_t *)field = number;
	return 0;
}

static int parse_string(const json_t *value, const struct at *at, const char **ret_string,
			struct fail *f)
{
	if (!json_is_string(value))
		return wrong_type(f, at, value, "a string");
	if (!json_string_length(value))
		return member_refuse(f, FAIL_SPEC_VALUE, at->up, at->name, "%s is empty", at->name);
	*ret_string = json_string_value(value);
	return 0;
}

static int parse_value(const struct member *m, const json_t *value, const struct at *at,
		       void *field, struct fail *f)
{
	switch (m->type) {
	case MEMBER_NAME:
		return spec_name(value, at, field, f);
	case MEMBER_ALL:
		if (json_is_string(value) && !strcmp(json_string_value(value), "all")) {
			*(uint64_t *)field = LENGTH_ALL;
			return 0;
		}
		return parse_number(m, value, at, field, f);
	case MEMBER_NUMBER:
	case MEMBER_LENGTH:
	case MEMBER_BYTE:
		return parse_number(m, value, at, field, f);
	case MEMBER_BOOL:
		if (!json_is_boolean(value))
			return wrong_type(f, at, value, "true or false");
		*(bool *)field = json_is_true(value);
		return 0;
	case MEMBER_STRING:
		return parse_string(value, at, field, f);
	case MEMBER_HEX:
		return hex_parse(value, at, field, f);
	case MEMBER_WORD:
		return word_parse(value, at, m->words, field, f);
	case MEMBER_ACCESS:
		return access_parse(value, at, field, f);
	case MEMBER_LIST:
		if (!json_is_array(value))
			return wrong_type(f, at, value, "a list");
		break;
	case MEMBER_OBJECT:
		if (!json_is_object(value))
			return wrong_type(f, at, value, "an object");
		break;
	}
	*(const json_t **)field = value;
	return 0;
}

static int check_required(struct fail *f, const struct at *at, const char *what,
			  const struct member_table *tables, size_t num, uint64_t seen)
{
	size_t t, i;

	for (t = 0; t < num; t++) {
		for (i = 0; i < tables[t].num; i++) {
			const struct member *m = &tables[t].members[i];

			if (m->required && !(seen & 1ull << m->bit))
				return member_refuse(f, FAIL_SPEC_MISSING, at, NULL,
						     "%s needs the member '%s'", what, m->name);
		}
	}
	return 0;
}

int members_parse(const json_t *object, const struct at *at, const char *what,
		  const struct member_table *tables, size_t num, void *record, uint64_t *ret_seen,
		  struct fail *f)
{
	struct at child = { .up = at };
	const struct member *m;
	uint64_t seen = 0;
	json_t *value;
	int ret;

	if (!json_is_object(object))
		return wrong_type(f, at, object, what);
	/* jansson's iterators want a non-const object and do not change it */
	json_object_foreach((json_t *)object, child.name, value)
	{
		m = find(tables, num, child.name);
		if (!m)
			return unknown(f, &child, what, tables, num);
		ret = parse_value(m, value, &child, (char *)record + m->offset, f);
		if (ret)
			return ret;
		seen |= 1ull << m->bit;
	}
	ret = check_required(f, at, what, tables, num, seen);
	if (ret)
		return ret;
	*ret_seen = seen;
	return 0;
}
