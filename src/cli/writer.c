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
	w->compact = compact;
	w->error = 0;
	w->depth = 0;
	w->empty = true;
	w->after_key = false;
	w->used = 0;
	w->last = '\n';
}

static void flush(struct writer *w)
{
	size_t done = 0;

	while (done < w->used && !w->error) {
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

static void put(struct writer *w, const char *bytes, size_t num)
{
	while (num > 0) {
		size_t room = sizeof(w->buf) - w->used;
		size_t part = num < room ? num : room;

		if (part == 0) {
			w->error = -ENOBUFS;
			return;
		}

		memcpy(w->buf + w->used, bytes, part);
		/* cppcheck-suppress objectIndex ; of one byte, part is 1 */
		w->last = bytes[part - 1];
		w->used += part;
		bytes += part;
		num -= part;
		if (w->used == sizeof(w->buf) && w->fd >= 0)
			flush(w);
	}
}

static void put_char(struct writer *w, char c)
{
	if (w->used + 1 >= sizeof(w->buf)) {
		put(w, &c, 1);
		return;
	}
	w->buf[w->used++] = c;
	w->last = c;
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

static void quoted(struct writer *w, const char *s, size_t num)
{
	size_t i = 0, from;

	put_char(w, '"');
	while (i < num) {
		for (from = i; i < num && stands_for_itself((unsigned char)s[i]); i++)
			;
		put(w, s + from, i - from);
		if (i < num)
			escaped(w, (unsigned char)s[i++]);
	}
	put_char(w, '"');
}

void writer_key(struct writer *w, const char *key)
{
	separate(w);
	quoted(w, key, strlen(key));
	put_char(w, ':');
	if (!w->compact)
		put_char(w, ' ');
	w->after_key = true;
}

static void plain(struct writer *w, const char *text)
{
	separate(w);
	writer_text(w, text);
}

void writer_null(struct writer *w)
{
	plain(w, "null");
}

void writer_bool(struct writer *w, bool value)
{
	plain(w, value ? "true" : "false");
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
	separate(w);
	put(w, at, (size_t)(end - at));
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
	separate(w);
	put(w, at, (size_t)(end - at));
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
		writer_key(w, json_object_iter_key(it));
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
	if (w->last != '\n')
		put(w, "\n", 1);
	flush(w);
	w->empty = true;
	return w->error;
}
