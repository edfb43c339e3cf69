/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings, numbers and words of a document. */
#include "json_parser.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"
#include "words.h"

/* ---- strings ------------------------------------------------------------------- */

static int put(struct json_parser *p, const char *bytes, size_t n)
{
	if (!n)
		return 0;
	if (p->room - p->used < n) {
		size_t room = 2 * (p->used + n) + 256;
		char *more = realloc(p->scratch, room);

		if (!more)
			return fail_nomem(p->f);
		p->scratch = more;
		p->room = room;
	}
	memcpy(p->scratch + p->used, bytes, n);
	p->used += n;
	return 0;
}

/* Four hex digits at c, or -1. */
static int hex4(const struct json_parser *p, const char *c)
{
	int i, value = 0;

	if (p->end - c < 4)
		return -1;
	for (i = 0; i < 4; i++) {
		char low = c[i] | 0x20;

		if (json_is_digit(c[i]))
			value = value << 4 | (c[i] - '0');
		else if (low >= 'a' && low <= 'f')
			value = value << 4 | (low - 'a' + 10);
		else
			return -1;
	}
	return value;
}

static size_t encode(char out[4], uint32_t code)
{
	if (code < 0x80) {
		out[0] = code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = 0xc0 | code >> 6;
		out[1] = 0x80 | (code & 0x3f);
		return 2;
	}
	if (code < 0x10000) {
		out[0] = 0xe0 | code >> 12;
		out[1] = 0x80 | (code >> 6 & 0x3f);
		out[2] = 0x80 | (code & 0x3f);
		return 3;
	}
	out[0] = 0xf0 | code >> 18;
	out[1] = 0x80 | (code >> 12 & 0x3f);
	out[2] = 0x80 | (code >> 6 & 0x3f);
	out[3] = 0x80 | (code & 0x3f);
	return 4;
}

/* \uXXXX, or two of them for what is above U+FFFF. */
static int unicode_escape(struct json_parser *p)
{
	const char *at = p->at;
	int code = hex4(p, at + 2), low = -1;
	char out[4];

	if (code < 0)
		return json_syntax(p, at, "\\u needs four hex digits");
	if (!code)
		return json_syntax(p, at, "\\u0000; strings hold no NUL");
	p->at += 6;
	if (code >= 0xd800 && code <= 0xdbff && p->end - p->at >= 6 && p->at[0] == '\\' &&
	    p->at[1] == 'u')
		low = hex4(p, p->at + 2);
	if (code >= 0xd800 && code <= 0xdfff) {
		if (code > 0xdbff || low < 0xdc00 || low > 0xdfff)
			return json_syntax(p, at, "half of a surrogate pair");
		p->at += 6;
		code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
	}
	return put(p, out, encode(out, code));
}

static int escape(struct json_parser *p)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	const char *name;

	if (p->end - p->at < 2)
		return json_syntax(p, p->end, "the document ends too early");
	if (p->at[1] == 'u')
		return unicode_escape(p);
	name = memchr(names, p->at[1], sizeof(names) - 1);
	if (!name)
		return json_syntax(p, p->at, "an escape that JSON does not have");
	p->at += 2;
	return put(p, values + (name - names), 1);
}

/* Characters that stand for themselves. */
static int plain_run(struct json_parser *p)
{
	const char *from = p->at;
	size_t n;

	while (p->at < p->end && *p->at != '"' && *p->at != '\\') {
		unsigned char c = *p->at;

		if (c >= 0x20 && c < 0x80) {
			p->at++;
			continue;
		}
		if (c == '\n' || c == '\r')
			return json_syntax(p, p->at, "a string does not end on its line");
		if (!c)
			return json_syntax(p, p->at, "a NUL byte; JSON text is UTF-8 without NUL");
		if (c < 0x20)
			return json_syntax(p, p->at, "a control character; write it as an escape");
		n = utf8_char(p->at, p->end - p->at);
		if (!n)
			return json_syntax(p, p->at, "a byte that is not UTF-8");
		p->at += n;
	}
	return put(p, from, p->at - from);
}

/* The string at p->at, decoded and terminated on top of the scratch; its bytes in *ret_len. */
int json_read_string(struct json_parser *p, size_t *ret_len)
{
	const char *start = p->at++;
	size_t bottom = p->used;
	int ret = 0;

	while (!ret && !json_next_is(p, '"')) {
		if (p->at == p->end)
			return json_syntax(p, start, "a string does not end");
		ret = *p->at == '\\' ? escape(p) : plain_run(p);
	}
	if (ret)
		return ret;
	p->at++;
	*ret_len = p->used - bottom;
	return put(p, "", 1);
}

int json_read_string_value(struct json_parser *p, json_t **ret_value)
{
	size_t bottom = p->used, len;
	int ret;

	ret = json_read_string(p, &len);
	if (!ret) {
		*ret_value = json_stringn_nocheck(p->scratch + bottom, len);
		ret = *ret_value ? 0 : fail_nomem(p->f);
	}
	p->used = bottom;
	return ret;
}

/* ---- numbers and words ---------------------------------------------------------- */

/* Nothing but an exponent can take a real out of range, so its digits need no copy as they stand in the
 * text; what follows the number ends it. */
static int real_value(struct json_parser *p, const char *start, json_t **ret_value)
{
	size_t bottom = p->used;
	double value;
	int ret;

	ret = put(p, start, p->at - start);
	if (!ret)
		ret = put(p, "", 1);
	if (ret)
		return ret;
	value = strtod(p->scratch + bottom, NULL);
	p->used = bottom;
	if (!isfinite(value))
		return json_syntax(p, start, "a number that does not fit in 64 bits");
	*ret_value = json_real(value);
	return *ret_value ? 0 : fail_nomem(p->f);
}

static int integer_value(struct json_parser *p, const char *start, json_t **ret_value)
{
	const char *c = start + (*start == '-');
	uint64_t v = 0;
	bool over = false;

	for (; c < p->at; c++)
		over = over || __builtin_mul_overflow(v, 10, &v) ||
		       __builtin_add_overflow(v, (uint64_t)(*c - '0'), &v);
	if (over || (*start == '-' && v > (uint64_t)INT64_MAX + 1))
		return json_syntax(p, start, "a number that does not fit in 64 bits");
	if (*start != '-' && v > INT64_MAX) {
		json_syntax(p, start, "a number above 2^63-1 (9223372036854775807)");
		fail_hint(p->f, "write it as a string: \"%" PRIu64 "\"", v);
		return -EINVAL;
	}
	*ret_value = json_integer((json_int_t)(*start == '-' ? 0 - v : v));
	return *ret_value ? 0 : fail_nomem(p->f);
}

static bool skip_digits(struct json_parser *p)
{
	const char *from = p->at;

	while (p->at < p->end && json_is_digit(*p->at))
		p->at++;
	return p->at > from;
}

int json_read_number(struct json_parser *p, json_t **ret_value)
{
	const char *start = p->at, *digits;
	bool real = false;

	p->at += *p->at == '-';
	digits = p->at;
	if (!skip_digits(p))
		return json_syntax(p, start, "a number without digits");
	if (*digits == '0' && p->at - digits > 1)
		return json_syntax(p, start, "a number with leading zeros");
	if (json_next_is(p, '.')) {
		real = true;
		p->at++;
		if (!skip_digits(p))
			return json_syntax(p, start, "a number without digits behind its point");
	}
	if (json_next_is(p, 'e') || json_next_is(p, 'E')) {
		real = true;
		p->at++;
		p->at += json_next_is(p, '+') || json_next_is(p, '-');
		if (!skip_digits(p))
			return json_syntax(p, start, "a number without digits in its exponent");
	}
	if (p->at < p->end && json_is_letter(*p->at))
		return json_syntax(p, start,
				   *digits == '0' && p->at == digits + 1 && *p->at == 'x'
					   ? "a hex number; JSON takes it as a string"
					   : "letters in a number");
	return real ? real_value(p, start, ret_value) : integer_value(p, start, ret_value);
}

int json_read_word(struct json_parser *p, json_t **ret_value)
{
	const char *start = p->at;
	char what[QUOTE_ROOM + 32], text[QUOTE_ROOM];
	size_t len;

	while (p->at < p->end && (json_is_letter(*p->at) || json_is_digit(*p->at)))
		p->at++;
	len = p->at - start;
	if (len == 4 && !memcmp(start, "true", 4)) {
		*ret_value = json_true();
	} else if (len == 5 && !memcmp(start, "false", 5)) {
		*ret_value = json_false();
	} else if (len == 4 && !memcmp(start, "null", 4)) {
		*ret_value = json_null();
	} else {
		snprintf(what, sizeof(what), "%s is no JSON value", quote(text, start, len));
		json_syntax(p, start, what);
		fail_hint(p->f,
			  "JSON has true, false and null; other words stand in double quotes");
		return -EINVAL;
	}
	return 0;
}
