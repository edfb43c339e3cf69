/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON to a descriptor without allocating: two spaces a level, or compact.
 *
 * Numbers are written by hand: no locale is asked, and a time has three decimals at most.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "out.h"

void writer_init(struct writer *w, int fd, bool compact)
{
	w->fd = fd;
	w->to = NULL;
	w->compact = compact;
	w->error = 0;
	w->depth = 0;
	w->empty = true;
	w->after_key = false;
	w->used = 0;
	w->last = '\n';
}

void writer_init_value(struct writer *w, struct growing *to, unsigned depth)
{
	writer_init(w, -1, depth == 0);
	w->to = to;
	w->depth = depth;
	w->after_key = true;
}

static void flush(struct writer *w)
{
	size_t done = 0;

	if (w->used)
		w->last = w->buf[w->used - 1];
	if (w->to && !w->error)
		w->error = growing_append(w->to, w->buf, w->used);
	while (w->fd >= 0 && done < w->used && !w->error) {
		ssize_t n = write(w->fd, w->buf + done, w->used - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0)
			w->error = -EIO;
		else if (errno != EINTR)
			w->error = -errno;
	}
	w->used = 0;
}

/* What the buffer does not hold. */
static void put_much(struct writer *w, const char *bytes, size_t num)
{
	while (num > 0) {
		size_t room = sizeof(w->buf) - w->used;
		size_t part = num < room ? num : room;

		if (part == 0) {
			w->error = -ENOBUFS;
			return;
		}
		memcpy(w->buf + w->used, bytes, part);
		w->used += part;
		bytes += part;
		num -= part;
		if (w->used == sizeof(w->buf) && (w->fd >= 0 || w->to))
			flush(w);
	}
}

static inline void put(struct writer *w, const char *bytes, size_t num)
{
	if (num >= sizeof(w->buf) - w->used) {
		put_much(w, bytes, num);
		return;
	}
	memcpy(w->buf + w->used, bytes, num);
	w->used += num;
}

static inline void put_char(struct writer *w, char c)
{
	put(w, &c, 1);
}

void writer_text(struct writer *w, const char *text)
{
	put(w, text, strlen(text));
}

static void new_line(struct writer *w)
{
	static const char text[] = "\n                                ";
	unsigned left = 2 * w->depth, part;

	if (w->compact)
		return;
	part = left < sizeof(text) - 2 ? left : sizeof(text) - 2;
	put(w, text, 1 + part);
	for (left -= part; left > 0; left -= part) {
		part = left < sizeof(text) - 2 ? left : sizeof(text) - 2;
		put(w, text + 1, part);
	}
}

/* What stands before a value or a key, by what came before it. */
static void separate(struct writer *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (!w->empty)
		put_char(w, ',');
	if (w->depth > 0)
		new_line(w);
	w->empty = false;
}

void writer_begin(struct writer *w, char bracket)
{
	separate(w);
	put_char(w, bracket);
	w->depth++;
	w->empty = true;
}

void writer_end(struct writer *w, char bracket)
{
	w->depth--;
	if (!w->empty)
		new_line(w);
	put_char(w, bracket);
	w->empty = false;
}

static bool stands_for_itself(unsigned char c)
{
	return c >= 0x20 && c != 0x7f && c != '"' && c != '\\';
}

static void escaped(struct writer *w, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char escape[6] = { '\\', (char)c, '0', '0' };

	if (c == '"' || c == '\\') {
		put(w, escape, 2);
	} else if (c == '\n' || c == '\t' || c == '\r') {
		escape[1] = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
		put(w, escape, 2);
	} else {
		escape[1] = 'u';
		escape[4] = hex[c >> 4];
		escape[5] = hex[c & 15];
		put(w, escape, 6);
	}
}

/* Whether one of eight characters does not stand for itself. */
static bool is_odd(uint64_t x)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	const uint64_t quote = x ^ ones * '"', slash = x ^ ones * '\\', del = x ^ ones * 0x7f;

	return (((x - ones * 0x20) & ~x) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash) |
		((del - ones) & ~del)) &
	       ones << 7;
}

/* The characters in front that stand for themselves. */
static size_t plain_run(const char *s, size_t num)
{
	size_t i = 0;
	uint64_t x;

	for (; num - i >= sizeof(x); i += sizeof(x)) {
		memcpy(&x, s + i, sizeof(x));
		if (is_odd(x))
			break;
	}
	while (i < num && stands_for_itself((unsigned char)s[i]))
		i++;
	return i;
}

static void quoted(struct writer *w, const char *s, size_t num)
{
	size_t i = 0, run;

	put_char(w, '"');
	while (i < num) {
		run = plain_run(s + i, num - i);
		put(w, s + i, run);
		i += run;
		if (i < num)
			escaped(w, (unsigned char)s[i++]);
	}
	put_char(w, '"');
}

/* Behind the name of a member. */
static void colon(struct writer *w)
{
	put(w, ": ", w->compact ? 1 : 2);
	w->after_key = true;
}

void writer_key(struct writer *w, const char *key)
{
	separate(w);
	put_char(w, '"');
	put(w, key, strlen(key));
	put_char(w, '"');
	colon(w);
}

static inline void plain(struct writer *w, const char *text, size_t num)
{
	separate(w);
	put(w, text, num);
}

void writer_null(struct writer *w)
{
	plain(w, "null", 4);
}

void writer_bool(struct writer *w, bool value)
{
	plain(w, value ? "true" : "false", value ? 4 : 5);
}

/* The digits of a value, in front of end; where they begin. */
static char *digits(char *end, uint64_t value)
{
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

void writer_int(struct writer *w, int64_t value)
{
	char text[24], *end = text + sizeof(text);
	char *at = digits(end, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);

	if (value < 0)
		*--at = '-';
	plain(w, at, (size_t)(end - at));
}

void writer_string(struct writer *w, const char *value)
{
	if (!value) {
		writer_null(w);
		return;
	}
	separate(w);
	quoted(w, value, strlen(value));
}

/* thousandths, with the decimals that say something, one at least: a real stays a real */
static void thousandths(struct writer *w, bool negative, uint64_t value)
{
	char text[32], *end = text + sizeof(text);
	char *at = digits(end, value % 1000 + 1000);

	*at = '.';
	while (end[-1] == '0' && end[-2] != '.')
		end--;
	at = digits(at, value / 1000);
	if (negative)
		*--at = '-';
	plain(w, at, (size_t)(end - at));
}

void writer_raw(struct writer *w, const char *text, size_t num)
{
	plain(w, text, num);
}

void writer_micros(struct writer *w, uint64_t ns)
{
	thousandths(w, false, ns);
}

static void real(struct writer *w, double value)
{
	double scaled = (value < 0 ? -value : value) * 1000 + 0.5;

	/* NaN compares false too */
	if (!(scaled < 1.8e19))
		writer_null(w);
	else
		thousandths(w, value < 0 && scaled >= 1, (uint64_t)scaled);
}

/* ---- members --------------------------------------------------------------------- */

void say_null(struct writer *w, const char *key)
{
	writer_key(w, key);
	writer_null(w);
}

void say_bool(struct writer *w, const char *key, bool value)
{
	writer_key(w, key);
	writer_bool(w, value);
}

void say_int(struct writer *w, const char *key, uint64_t value)
{
	writer_key(w, key);
	writer_int(w, (int64_t)value);
}

void say_count(struct writer *w, const char *key, int64_t value)
{
	writer_key(w, key);
	if (value < 0)
		writer_null(w);
	else
		writer_int(w, value);
}

void say_string(struct writer *w, const char *key, const char *value)
{
	writer_key(w, key);
	writer_string(w, value);
}

void say_hex(struct writer *w, const char *key, uint64_t value, unsigned width)
{
	static const char hex[] = "0123456789abcdef";
	char text[19], *end = text + sizeof(text) - 1, *at = end;

	*end = '\0';
	do
		*--at = hex[value & 15];
	while ((value >>= 4) || end - at < width);
	*--at = 'x';
	*--at = '0';
	say_string(w, key, at);
}

/* ---- trees ------------------------------------------------------------------------ */

static void array(struct writer *w, const json_t *value)
{
	size_t i;

	writer_begin(w, '[');
	for (i = 0; i < json_array_size(value); i++)
		writer_json(w, json_array_get(value, i));
	writer_end(w, ']');
}

static void object(struct writer *w, const json_t *value)
{
	/* the iterator calls take a pointer to non-const but change nothing */
	json_t *obj = (json_t *)value;
	void *it;

	writer_begin(w, '{');
	for (it = json_object_iter(obj); it; it = json_object_iter_next(obj, it)) {
		separate(w);
		quoted(w, json_object_iter_key(it), strlen(json_object_iter_key(it)));
		colon(w);
		writer_json(w, json_object_iter_value(it));
	}
	writer_end(w, '}');
}

void writer_json(struct writer *w, const json_t *value)
{
	switch (value ? json_typeof(value) : JSON_NULL) {
	case JSON_OBJECT:
		object(w, value);
		break;
	case JSON_ARRAY:
		array(w, value);
		break;
	case JSON_STRING:
		separate(w);
		quoted(w, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		writer_int(w, json_integer_value(value));
		break;
	case JSON_REAL:
		real(w, json_real_value(value));
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		writer_bool(w, json_is_true(value));
		break;
	case JSON_NULL:
		writer_null(w);
		break;
	}
}

int writer_finish(struct writer *w)
{
	const char last = w->used ? w->buf[w->used - 1] : w->last;

	if (last != '\n')
		put_char(w, '\n');
	flush(w);
	w->empty = true;
	return w->error;
}

int writer_finish_value(struct writer *w)
{
	flush(w);
	return w->error;
}
