/* SPDX-License-Identifier: BSD-2-Clause */
/* A report for eyes. No contract. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 12 /* names in a line */

static void put(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *fmt, ...)
{
	char line[1500];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	writer_text(w, line);
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static int count_of(const json_t *object, const char *state)
{
	return (int)json_integer_value(json_object_get(json_object_get(object, "counts"), state));
}

static void list_names(struct writer *w, const char *title, const json_t *names)
{
	const json_t *name;
	size_t i;

	put(w, "%s", title);
	json_array_foreach(names, i, name) if (i < SHOWN)
		put(w, " %.200s", json_string_value(name));
	if (json_array_size(names) > SHOWN)
		put(w, " and %zu more", json_array_size(names) - SHOWN);
	put(w, "\n");
}

static void list_inputs(struct writer *w, const char *title, const json_t *inputs)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(inputs, i, entry) if (i < SHOWN)
		put(w, "%s %.500s: %.500s\n", title, text_of(entry, "input"),
		    text_of(entry, "message"));
	if (json_array_size(inputs) > SHOWN)
		put(w, "%s and %zu more\n", title, json_array_size(inputs) - SHOWN);
}

static void show_checks(struct writer *w, const json_t *checks)
{
	const json_t *entry, *times, *far;
	size_t i, k;

	json_array_foreach(checks, i, entry)
	{
		times = json_object_get(entry, "times");
		put(w,
		    "  %-10s %-20s %6d pass %5d fail %5d skip %5d timeout %5d error  %10.1f us\n",
		    text_of(entry, "device"), text_of(entry, "check"), count_of(entry, "pass"),
		    count_of(entry, "fail"), count_of(entry, "skip"), count_of(entry, "timeout"),
		    count_of(entry, "error"),
		    json_number_value(json_object_get(times, "median_us")));
		json_array_foreach(json_object_get(times, "outliers"), k, far) if (k < SHOWN)
			put(w, "      outlier: %s %.1f us\n", text_of(far, "node"),
			    json_number_value(json_object_get(far, "elapsed_us")));
	}
}

static void show_changes(struct writer *w, const json_t *changes)
{
	static const char *const parts[] = { "failing_now", "failing_no_more", "nodes_new",
					     "nodes_gone" };
	const json_t *entry;
	size_t i, k;

	for (i = 0; json_is_object(changes) && i < 4; i++)
		json_array_foreach(json_object_get(changes, parts[i]), k, entry)
			put(w, "%s: %.800s\n", parts[i], json_string_value(entry));
}

void report_text(struct writer *w, const json_t *sum)
{
	const json_t *entry, *other;
	size_t i, k;

	put(w, "%d nodes\n", (int)json_integer_value(json_object_get(sum, "nodes")));
	list_inputs(w, "broken:", json_object_get(sum, "broken"));
	list_inputs(w, "duplicate:", json_object_get(sum, "duplicates"));
	show_checks(w, json_object_get(sum, "checks"));
	json_array_foreach(json_object_get(sum, "failures"), i, entry)
	{
		put(w, "failing: %.300s: %.800s\n", text_of(entry, "what"),
		    text_of(entry, "message"));
		list_names(w, "    on", json_object_get(entry, "nodes"));
	}
	json_array_foreach(json_object_get(sum, "odd"), i, entry)
	{
		put(w, "odd: %.300s is %.300s on %d\n", text_of(entry, "what"),
		    text_of(entry, "majority"),
		    (int)json_integer_value(json_object_get(entry, "nodes")));
		json_array_foreach(json_object_get(entry, "others"), k, other)
		{
			put(w, "    %.300s", text_of(other, "value"));
			list_names(w, " on", json_object_get(other, "nodes"));
		}
	}
	show_changes(w, json_object_get(sum, "changes"));
}
