/* SPDX-License-Identifier: BSD-2-Clause */
/* A result for eyes: names and values, one a line, indented by what they belong to. No contract. */
#include "out.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void writer_format(struct writer *w, const char *fmt, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	writer_text(w, text);
}

static void indent(struct writer *w, unsigned depth)
{
	while (depth--)
		writer_text(w, "  ");
}

static bool is_flat(const json_t *value)
{
	size_t i;

	for (i = 0; i < json_array_size(value); i++) {
		const json_t *item = json_array_get(value, i);

		if (json_is_object(item) || json_is_array(item))
			return false;
	}
	return !json_is_object(value);
}

static void scalar(struct writer *w, const json_t *value)
{
	char number[40];

	switch (value ? json_typeof(value) : JSON_NULL) {
	case JSON_STRING:
		writer_text(w, json_string_value(value));
		break;
	case JSON_INTEGER:
		snprintf(number, sizeof(number), "%" PRId64, (int64_t)json_integer_value(value));
		writer_text(w, number);
		break;
	case JSON_TRUE:
		writer_text(w, "yes");
		break;
	case JSON_FALSE:
		writer_text(w, "no");
		break;
	case JSON_REAL:
		snprintf(number, sizeof(number), "%.3f", json_real_value(value));
		writer_text(w, number);
		break;
	default:
		writer_text(w, "-");
		break;
	}
}

static void lines(struct writer *w, const json_t *value, unsigned depth);

static void member(struct writer *w, const char *name, const json_t *value, unsigned depth)
{
	size_t i;

	indent(w, depth);
	writer_text(w, name);
	writer_text(w, ":");
	if (!is_flat(value)) {
		writer_text(w, "\n");
		lines(w, value, depth + 1);
		return;
	}
	if (!json_is_array(value)) {
		writer_text(w, " ");
		scalar(w, value);
	}
	for (i = 0; i < json_array_size(value); i++) {
		writer_text(w, " ");
		scalar(w, json_array_get(value, i));
	}
	writer_text(w, "\n");
}

static void lines(struct writer *w, const json_t *value, unsigned depth)
{
	json_t *obj = (json_t *)value; /* the iterator changes nothing */
	char name[24];
	void *it;
	size_t i;

	for (it = json_object_iter(obj); it; it = json_object_iter_next(obj, it))
		member(w, json_object_iter_key(it), json_object_iter_value(it), depth);
	for (i = 0; i < json_array_size(value); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		member(w, name, json_array_get(value, i), depth);
	}
}

void text_value(struct writer *w, const json_t *value)
{
	lines(w, value, 0);
}
