/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text to a JSON value, in one pass.
 *
 * jansson holds the values; its own parser is not used: it crashes where memory runs out in the middle
 * of a string, takes 2,048 levels of nesting, and places an error behind what is wrong.
 */
#include "json_parser.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"
#include "utf8.h"
#include "words.h"

#define VALUE_BYTES 16 /* of memory for a byte of text, with what is made of the value */

/* ---- places ------------------------------------------------------------------ */

static void locate(const struct json_parser *p, const char *at, unsigned *ret_line,
		   unsigned *ret_column)
{
	const char *c, *line_start = p->start;

	*ret_line = 1;
	for (c = p->start; c < at; c++) {
		if (*c == '\n') {
			++*ret_line;
			line_start = c + 1;
		}
	}
	*ret_column = 1;
	for (c = line_start; c < at; c++)
		*ret_column += (*c & 0xc0) != 0x80; /* characters, not bytes */
}

int json_syntax(struct json_parser *p, const char *at, const char *what)
{
	unsigned line, column;

	locate(p, at, &line, &column);
	fail_set(p->f, FAIL_SPEC_SYNTAX, "line %u, column %u: %s", line, column, what);
	p->f->line = line;
	p->f->column = column;
	return -EINVAL;
}

/* ---- what belongs somewhere and is not there ----------------------------------- */

/* The mistakes that people make, before what ought to be there is named. */
static int unexpected(struct json_parser *p, const char *belongs)
{
	const char *at = p->at;
	char what[128];

	if (at == p->end)
		return json_syntax(p, at, "the document ends too early");
	if (!*at)
		return json_syntax(p, at, "a NUL byte; JSON text is UTF-8 without NUL");
	if (!utf8_char(at, p->end - at))
		return json_syntax(p, at, "a byte that is not UTF-8");
	if (*at == '#' || (*at == '/' && p->end - at > 1 && (at[1] == '/' || at[1] == '*')))
		return json_syntax(p, at, "a comment; JSON has none");
	if (*at == '\'')
		return json_syntax(p, at, "a single quote; JSON strings stand in double quotes");
	snprintf(what, sizeof(what), "%s belongs here", belongs);
	return json_syntax(p, at, what);
}

static void skip_blanks(struct json_parser *p)
{
	while (p->at < p->end &&
	       (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r'))
		p->at++;
}

/* ---- objects and lists ------------------------------------------------------------ */

static int value(struct json_parser *p, json_t **ret_value);

static int deeper(struct json_parser *p)
{
	if (++p->depth > SPEC_MAX_DEPTH)
		return json_syntax(p, p->at, "nested deeper than 32 levels");
	p->at++;
	skip_blanks(p);
	return 0;
}

/* Behind an element: a comma and another, or the end. *ret_more says which. */
static int separator(struct json_parser *p, char close, const char *belongs, bool *ret_more)
{
	const char *comma;

	skip_blanks(p);
	comma = p->at;
	*ret_more = json_next_is(p, ',');
	if (!*ret_more && !json_next_is(p, close))
		return unexpected(p, belongs);
	p->at++;
	if (!*ret_more) {
		p->depth--;
		return 0;
	}
	skip_blanks(p);
	if (json_next_is(p, ']') || json_next_is(p, '}'))
		return json_syntax(p, comma, "a comma with nothing after it");
	return 0;
}

static int list_value(struct json_parser *p, json_t **ret_value)
{
	json_t *list, *element;
	bool more = true;
	int ret;

	ret = deeper(p);
	if (ret)
		return ret;
	list = json_array();
	if (!list)
		return fail_nomem(p->f);
	if (json_next_is(p, ']')) {
		p->at++;
		p->depth--;
		more = false;
	}
	while (more) {
		ret = value(p, &element);
		if (!ret && json_array_append_new(list, element))
			ret = fail_nomem(p->f);
		if (!ret)
			ret = separator(p, ']', "',' or ']'", &more);
		if (ret) {
			json_decref(list);
			return ret;
		}
	}
	*ret_value = list;
	return 0;
}

/* The first member of that name in the object whose members begin at first. */
static const char *find_member(const struct json_parser *p, const char *first, const char *name)
{
	struct fail unused;
	struct json_parser look = { .start = p->start, .at = first, .end = p->end, .f = &unused };
	const char *found = NULL, *at;
	json_t *skipped;
	size_t len;
	bool more = true;

	look.depth = p->depth;
	while (more) {
		at = look.at;
		look.used = 0;
		if (json_read_string(&look, &len))
			break;
		if (!strcmp(look.scratch, name)) {
			found = at;
			break;
		}
		skip_blanks(&look);
		look.at++; /* the colon */
		skip_blanks(&look);
		if (value(&look, &skipped))
			break;
		json_decref(skipped);
		if (separator(&look, '}', "", &more))
			break;
	}
	free(look.scratch);
	return found;
}

static int duplicate(struct json_parser *p, const char *first, const char *at, const char *name)
{
	const char *before = find_member(p, first, name);
	char text[QUOTE_ROOM], also[64] = "";
	unsigned line, column;

	if (before) {
		locate(p, before, &line, &column);
		snprintf(also, sizeof(also), "; the first is at line %u, column %u", line, column);
	}
	locate(p, at, &line, &column);
	fail_set(p->f, FAIL_SPEC_DUPLICATE, "line %u, column %u: member %s is given twice%s", line,
		 column, quote(text, name, strlen(name)), also);
	p->f->line = line;
	p->f->column = column;
	return -EINVAL;
}

/* One member of the object whose first member begins at first. */
static int member(struct json_parser *p, const char *first, json_t *object)
{
	size_t bottom = p->used, len;
	const char *at = p->at;
	json_t *element;
	int ret;

	if (!json_next_is(p, '"'))
		return unexpected(p, "the name of a member, in double quotes,");
	ret = json_read_string(p, &len);
	if (ret)
		return ret;
	if (json_object_get(object, p->scratch + bottom))
		return duplicate(p, first, at, p->scratch + bottom);
	skip_blanks(p);
	if (!json_next_is(p, ':'))
		return unexpected(p, "':'");
	p->at++;
	skip_blanks(p);
	ret = value(p, &element);
	if (!ret && json_object_set_new_nocheck(object, p->scratch + bottom, element))
		ret = fail_nomem(p->f);
	p->used = bottom;
	return ret;
}

static int object_value(struct json_parser *p, json_t **ret_value)
{
	const char *first;
	json_t *object;
	bool more = true;
	int ret;

	ret = deeper(p);
	if (ret)
		return ret;
	object = json_object();
	if (!object)
		return fail_nomem(p->f);
	first = p->at;
	if (json_next_is(p, '}')) {
		p->at++;
		p->depth--;
		more = false;
	}
	while (more) {
		ret = member(p, first, object);
		if (!ret)
			ret = separator(p, '}', "',' or '}'", &more);
		if (ret) {
			json_decref(object);
			return ret;
		}
	}
	*ret_value = object;
	return 0;
}

static int value(struct json_parser *p, json_t **ret_value)
{
	if (p->at == p->end)
		return unexpected(p, "a value");
	switch (*p->at) {
	case '{':
		return object_value(p, ret_value);
	case '[':
		return list_value(p, ret_value);
	case '"':
		return json_read_string_value(p, ret_value);
	}
	if (*p->at == '-' || json_is_digit(*p->at))
		return json_read_number(p, ret_value);
	if (json_is_letter(*p->at))
		return json_read_word(p, ret_value);
	return unexpected(p, "a value");
}

/* ---- a document ----------------------------------------------------------------------- */

static int check_mark(struct json_parser *p)
{
	size_t size = p->end - p->start;

	if (size >= 3 && !memcmp(p->start, "\xef\xbb\xbf", 3))
		return json_syntax(p, p->start, "a byte order mark; JSON text begins without one");
	if (size >= 2 && (!memcmp(p->start, "\xff\xfe", 2) || !memcmp(p->start, "\xfe\xff", 2)))
		return json_syntax(p, p->start, "the text is UTF-16; JSON text is UTF-8");
	return 0;
}

static int document(struct json_parser *p, json_t **ret_doc)
{
	int ret;

	ret = check_mark(p);
	if (ret)
		return ret;
	skip_blanks(p);
	if (p->at == p->end)
		return json_syntax(p, p->at, "the document is empty");
	ret = value(p, ret_doc);
	if (ret)
		return ret;
	skip_blanks(p);
	if (p->at == p->end)
		return 0;
	json_decref(*ret_doc);
	if (json_next_is(p, '{') || json_next_is(p, '['))
		return json_syntax(p, p->at, "a second document; one is read");
	if (json_is_letter(*p->at) || json_is_digit(*p->at))
		return json_syntax(p, p->at, "text after the document");
	return unexpected(p, "the end of the document");
}

int spec_parse_text(const struct spec_text *text, json_t **ret_doc, struct fail *f)
{
	struct json_parser p = {
		.start = text->bytes, .at = text->bytes, .end = text->bytes + text->size, .f = f
	};
	json_t *doc;
	int ret;

	heap_expect(VALUE_BYTES * text->size);
	ret = document(&p, &doc);
	free(p.scratch);
	if (!ret)
		*ret_doc = doc;
	return ret;
}

/* ---- a look ahead ----------------------------------------------------------------------- */

/* Past the string that begins here, or to the end of the text. */
static void skip_string(struct json_parser *p)
{
	for (p->at++; p->at < p->end && *p->at != '"'; p->at++)
		p->at += *p->at == '\\' && p->end - p->at > 1;
	p->at += p->at < p->end;
}

/* Past the name that begins here and the colon behind it: whether it is this one. */
static int skip_name(struct json_parser *p, const char *name, bool *ret_same)
{
	size_t len;
	int ret;

	p->used = 0;
	ret = json_read_string(p, &len);
	if (ret)
		return ret;
	skip_blanks(p);
	*ret_same = json_next_is(p, ':') && !strcmp(p->scratch, name);
	if (!*ret_same)
		return 0;
	p->at++;
	skip_blanks(p);
	return 0;
}

static int look_for(struct json_parser *p, const char *name, json_t **ret_string)
{
	bool same;
	int ret;

	while (p->at < p->end) {
		if (*p->at != '"') {
			p->depth += *p->at == '{' || *p->at == '[';
			p->depth -= *p->at == '}' || *p->at == ']';
			p->at++;
		} else if (p->depth != 1) {
			skip_string(p);
		} else {
			ret = skip_name(p, name, &same);
			if (!ret && same)
				return json_next_is(p, '"') ? json_read_string_value(p, ret_string)
							    : 0;
			if (ret)
				return ret;
		}
	}
	return 0;
}

int spec_look(const struct spec_text *text, const char *name, json_t **ret_string, struct fail *f)
{
	struct json_parser p = {
		.start = text->bytes, .at = text->bytes, .end = text->bytes + text->size, .f = f
	};
	int ret;

	*ret_string = NULL;
	ret = look_for(&p, name, ret_string);
	free(p.scratch);
	return ret == -ENOMEM ? ret : 0;
}
