/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text to a JSON value. jansson does the parsing; one pass before it finds what jansson takes, or
 * tells badly: byte order marks, NUL, depth, numbers beyond 64 bits, trailing commas, comments.
 */
#include "spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* A place in the text. Lines and columns count from 1, columns in characters. */
struct pos {
	const char *at;
	unsigned line, column;
};

struct scan {
	struct pos pos;
	const char *end;
	unsigned depth;
	struct pos comma; /* the last significant character, when it was a comma */
	struct fail *f;
};

static int syntax(struct fail *f, const struct pos *pos, const char *what)
{
	fail_set(f, FAIL_SPEC_SYNTAX, "line %u, column %u: %s", pos->line, pos->column, what);
	f->line = pos->line;
	f->column = pos->column;
	return -EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Step over n bytes of one character. */
static void advance(struct pos *pos, size_t n)
{
	if (*pos->at == '\n') {
		pos->line++;
		pos->column = 0;
	}
	pos->column++;
	pos->at += n;
}

static int check_mark(const struct spec_text *text, struct fail *f)
{
	const struct pos start = { text->bytes, 1, 1 };

	if (text->size >= 3 && !memcmp(text->bytes, "\xef\xbb\xbf", 3))
		return syntax(f, &start, "a byte order mark; JSON text begins without one");
	if (text->size >= 2 &&
	    (!memcmp(text->bytes, "\xff\xfe", 2) || !memcmp(text->bytes, "\xfe\xff", 2)))
		return syntax(f, &start, "the text is UTF-16; JSON text is UTF-8");
	return 0;
}

/* One character that must be UTF-8 and not NUL; *ret_n its bytes. */
static int check_char(struct scan *s, size_t *ret_n)
{
	if ((unsigned char)(*s->pos.at - 1) < 0x7f) { /* ASCII but for NUL */
		*ret_n = 1;
		return 0;
	}
	if (!*s->pos.at)
		return syntax(s->f, &s->pos, "a NUL byte; JSON text is UTF-8 without NUL");
	*ret_n = utf8_char(s->pos.at, s->end - s->pos.at);
	if (!*ret_n)
		return syntax(s->f, &s->pos, "a byte that is not UTF-8");
	return 0;
}

/* Most of a document: the characters of a string that need no look. */
static void skip_plain(struct scan *s)
{
	const char *c = s->pos.at;

	while (c < s->end && ((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_'))
		c++;
	s->pos.column += c - s->pos.at;
	s->pos.at = c;
}

static int scan_string(struct scan *s)
{
	bool escaped = false;
	struct pos start;
	size_t n;
	int ret;

	advance(&s->pos, 1);
	for (; s->pos.at < s->end; advance(&s->pos, n)) {
		if (!escaped)
			skip_plain(s);
		if (s->pos.at == s->end)
			break;
		ret = check_char(s, &n);
		if (ret)
			return ret;
		start = s->pos;
		if (escaped) {
			if (s->end - s->pos.at >= 5 && !memcmp(s->pos.at, "u0000", 5)) {
				start.at--;
				start.column--;
				return syntax(s->f, &start, "\\u0000; strings hold no NUL");
			}
			escaped = false;
		} else if (*s->pos.at == '\\') {
			escaped = true;
		} else if (*s->pos.at == '"') {
			advance(&s->pos, 1);
			return 0;
		} else if (*s->pos.at == '\n' || *s->pos.at == '\r') {
			return syntax(s->f, &start, "a string does not end on its line");
		}
	}
	return 0; /* jansson tells that the document ends early */
}

/* Digits without sign: 0, or -ERANGE when they pass 64 bits. */
static int digits_value(const char *c, const char *end, uint64_t *ret_value)
{
	uint64_t v = 0;

	for (; c < end; c++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*c - '0'), &v))
			return -ERANGE;
	*ret_value = v;
	return 0;
}

static int scan_number(struct scan *s)
{
	const struct pos start = s->pos;
	const char *c = s->pos.at, *digits;
	bool negative = *c == '-';
	uint64_t value;

	if (negative)
		c++;
	digits = c;
	while (c < s->end && *c >= '0' && *c <= '9')
		c++;
	if (c - digits > 1 && *digits == '0')
		return syntax(s->f, &start, "a number with leading zeros");
	if (c == s->end || !strchr(".eE", *c)) {
		if (digits_value(digits, c, &value) ||
		    (negative && value > (uint64_t)INT64_MAX + 1))
			return syntax(s->f, &start, "a number that does not fit in 64 bits");
		if (!negative && value > INT64_MAX) {
			syntax(s->f, &start, "a number above 2^63-1 (9223372036854775807)");
			fail_hint(s->f, "write it as a string: \"%" PRIu64 "\"", value);
			return -EINVAL;
		}
	} else {
		while (c < s->end && *c && strchr("0123456789+-.eE", *c))
			c++;
	}
	s->pos.column += c - start.at;
	s->pos.at = c;
	return 0;
}

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* One token, or one character of one. */
static int scan_token(struct scan *s)
{
	const char c = *s->pos.at;
	size_t n;
	int ret;

	ret = check_char(s, &n);
	if (ret)
		return ret;
	if (is_blank(c)) {
		advance(&s->pos, n);
		return 0;
	}
	if (s->comma.at && (c == ']' || c == '}'))
		return syntax(s->f, &s->comma, "a comma with nothing after it");
	s->comma.at = NULL;
	if (c == '"')
		return scan_string(s);
	if (c == '-' || (c >= '0' && c <= '9'))
		return scan_number(s);
	if (c == '/' || c == '#')
		return syntax(s->f, &s->pos, "a comment, perhaps; JSON has none");
	if (is_letter(c)) { /* a word, true or false, is one token */
		while (s->pos.at < s->end && is_letter(*s->pos.at))
			advance(&s->pos, 1);
		return 0;
	}
	if (c == '[' || c == '{') {
		if (++s->depth > SPEC_MAX_DEPTH)
			return syntax(s->f, &s->pos, "nested deeper than 32 levels");
	} else if (c == ']' || c == '}') {
		s->depth -= s->depth > 0;
	} else if (c == ',') {
		s->comma = s->pos;
	}
	advance(&s->pos, n);
	return 0;
}

static int prescan(const struct spec_text *text, struct fail *f)
{
	struct scan s = { .pos = { text->bytes, 1, 1 }, .end = text->bytes + text->size, .f = f };
	bool blank = true;
	int ret;

	ret = check_mark(text, f);
	while (!ret && s.pos.at < s.end) {
		blank = blank && is_blank(*s.pos.at);
		ret = scan_token(&s);
	}
	if (!ret && blank)
		ret = syntax(f, &s.pos, "the document is empty");
	return ret;
}

/* ---- what jansson refuses --------------------------------------------------- */

/* Where the token before offset end began: jansson's own place is behind the token it choked on. */
static struct pos place_before(const struct spec_text *text, size_t end)
{
	struct scan s = { .pos = { text->bytes, 1, 1 } };
	struct pos last = s.pos;
	struct fail unused;

	if (end > text->size)
		end = text->size;
	s.end = text->bytes + text->size;
	s.f = &unused;
	while (s.pos.at < text->bytes + end) {
		if (!is_blank(*s.pos.at))
			last = s.pos;
		if (scan_token(&s))
			break;
	}
	return last;
}

/* Bytes of the string token at pos, quotes counted; 0 when there is none. */
static size_t string_bytes(const struct spec_text *text, const struct pos *pos)
{
	struct fail unused;
	struct scan s = { .pos = *pos, .end = text->bytes + text->size, .f = &unused };

	if (s.pos.at >= s.end || *s.pos.at != '"' || scan_string(&s))
		return 0;
	return s.pos.at - pos->at;
}

/* Whether the token that ends at c is followed by a colon: a member's name, not a value. */
static bool is_name(const char *c, const char *end)
{
	while (c < end && is_blank(*c))
		c++;
	return c < end && *c == ':';
}

/* The first member of dup's object whose name is written as dup's, len bytes; at is NULL when there
 * is none (it may be written with other escapes). */
static struct pos first_namesake(const struct spec_text *text, const struct pos *dup, size_t len)
{
	struct fail unused;
	struct scan s = { .pos = { text->bytes, 1, 1 },
			  .end = text->bytes + text->size,
			  .f = &unused };
	struct pos found[SPEC_MAX_DEPTH + 2], start;

	memset(found, 0, sizeof(found));
	while (s.pos.at < dup->at) {
		start = s.pos;
		if (*start.at == '{')
			found[s.depth + 1].at = NULL;
		if (scan_token(&s))
			break;
		if (!found[s.depth].at && (size_t)(s.pos.at - start.at) == len &&
		    !memcmp(start.at, dup->at, len) && is_name(s.pos.at, s.end))
			found[s.depth] = start;
	}
	return found[s.depth];
}

static int duplicate(const struct spec_text *text, const struct pos *pos, struct fail *f)
{
	size_t len = string_bytes(text, pos);
	struct pos first = { NULL, 0, 0 };
	char also[64] = "";

	if (len)
		first = first_namesake(text, pos, len);
	if (first.at)
		snprintf(also, sizeof(also), "; the first is at line %u, column %u", first.line,
			 first.column);
	fail_set(f, FAIL_SPEC_DUPLICATE, "line %u, column %u: member %.*s is given twice%s",
		 pos->line, pos->column, len <= 128 ? (int)len : 0, pos->at, also);
	f->line = pos->line;
	f->column = pos->column;
	return -EINVAL;
}

static int refused(const struct spec_text *text, const json_error_t *e, struct fail *f)
{
	struct pos pos = place_before(text, e->position > 0 ? e->position : 0);
	enum json_error_code code = json_error_code(e);

	switch (code) {
	case json_error_out_of_memory:
		return fail_nomem(f);
	case json_error_duplicate_key:
		return duplicate(text, &pos, f);
	case json_error_end_of_input_expected:
		return syntax(f, &pos,
			      *pos.at == '{' || *pos.at == '[' ? "a second document; one is read"
							       : "text after the document");
	case json_error_premature_end_of_input:
		return syntax(f, &pos, "the document ends too early, after this");
	case json_error_numeric_overflow:
		return syntax(f, &pos, "a number that does not fit in 64 bits");
	default:
		/* jansson leaves its error empty when memory ran out in the middle of a value */
		return e->text[0] ? syntax(f, &pos, e->text) : fail_nomem(f);
	}
}

int spec_parse_text(const struct spec_text *text, json_t **ret_doc, struct fail *f)
{
	json_error_t e;
	json_t *doc;
	int ret;

	ret = prescan(text, f);
	if (ret)
		return ret;
	memset(&e, 0, sizeof(e));
	doc = json_loadb(text->bytes, text->size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
	if (!doc)
		return refused(text, &e, f);
	*ret_doc = doc;
	return 0;
}
