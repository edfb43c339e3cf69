/* SPDX-License-Identifier: BSD-2-Clause */
/* A report for eyes. No contract. */
#include "report.h"

#include <stdio.h>
#include <string.h>

#define SHOWN 12 /* lines of what may be one for each node */

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
	writer_format(w, "%s %zu: ", title, json_array_size(names));
	report_names(w, names, writer_text);
	writer_format(w, "\n");
}

static void list_inputs(struct writer *w, const char *title, const json_t *inputs)
{
	const json_t *entry;
	size_t i;

	json_array_foreach(inputs, i, entry) if (i < SHOWN)
		writer_format(w, "%s %.500s: %.500s\n", title, text_of(entry, "input"),
			      text_of(entry, "message"));
	if (json_array_size(inputs) > SHOWN)
		writer_format(w, "%s and %zu more\n", title, json_array_size(inputs) - SHOWN);
}

static void list_outliers(struct writer *w, const json_t *spread, const char *unit)
{
	const json_t *outliers = json_object_get(spread, "outliers"), *far;
	size_t i;

	json_array_foreach(outliers, i, far) if (i < SHOWN) writer_format(
		w, "      outlier: %s %.1f%s\n", text_of(far, "node"), report_outlier(far), unit);
	if (json_array_size(outliers) > SHOWN)
		writer_format(w, "      and %zu outliers more\n",
			      json_array_size(outliers) - SHOWN);
}

static void show_checks(struct writer *w, const json_t *checks)
{
	const json_t *entry, *times;
	size_t i;

	json_array_foreach(checks, i, entry)
	{
		times = json_object_get(entry, "times");
		writer_format(w, "  %-10s %-20s %6d pass %5d fail %5d skip %5d timeout %5d error",
			      text_of(entry, "device"), text_of(entry, "check"),
			      count_of(entry, "pass"), count_of(entry, "fail"),
			      count_of(entry, "skip"), count_of(entry, "timeout"),
			      count_of(entry, "error"));
		if (json_is_object(times))
			writer_format(w, "  %10.1f us", report_spread(times, "median"));
		writer_format(w, "\n");
		list_outliers(w, times, " us");
	}
}

static void show_measured(struct writer *w, const json_t *measured)
{
	const json_t *entry, *values;
	size_t i;

	json_array_foreach(measured, i, entry)
	{
		values = json_object_get(entry, "values");
		writer_format(w, "  %-10s %-20s %s on %d: %.1f, from %.1f to %.1f\n",
			      text_of(entry, "device"), text_of(entry, "check"),
			      text_of(entry, "what"),
			      (int)json_integer_value(json_object_get(entry, "nodes")),
			      report_spread(values, "median"), report_spread(values, "least"),
			      report_spread(values, "most"));
		list_outliers(w, values, "");
	}
}

static void show_changed(struct writer *w, const char *title, const json_t *entries)
{
	json_t *groups = report_by_what(w, entries), *names;
	const char *what;

	json_object_foreach(groups, what, names)
	{
		writer_format(w, "%s: %.800s\n", title, what);
		list_names(w, "    on", names);
	}
	json_decref(groups);
}

static void show_changes(struct writer *w, const json_t *changes)
{
	const json_t *gone = json_object_get(changes, "nodes_gone");
	const json_t *new = json_object_get(changes, "nodes_new");

	show_changed(w, "failing now", json_object_get(changes, "failing_now"));
	show_changed(w, "failing no more", json_object_get(changes, "failing_no_more"));
	if (json_array_size(new))
		list_names(w, "new:", new);
	if (json_array_size(gone))
		list_names(w, "gone:", gone);
}

static void show_odd(struct writer *w, const json_t *entry)
{
	const json_t *others = json_object_get(entry, "others"), *other;
	size_t i;

	writer_format(w, "odd: %.300s is %.300s on %d\n", text_of(entry, "what"),
		      text_of(entry, "majority"),
		      (int)json_integer_value(json_object_get(entry, "nodes")));
	json_array_foreach(others, i, other) if (i < SHOWN)
	{
		writer_format(w, "    %.300s", text_of(other, "value"));
		list_names(w, " on", json_object_get(other, "nodes"));
	}
	if (json_array_size(others) > SHOWN)
		writer_format(w, "    and %zu values more\n", json_array_size(others) - SHOWN);
}

void report_text(struct writer *w, const json_t *sum)
{
	const json_t *entry;
	size_t i;

	writer_format(w, "%d nodes\n", (int)json_integer_value(json_object_get(sum, "nodes")));
	list_inputs(w, "broken:", json_object_get(sum, "broken"));
	list_inputs(w, "duplicate:", json_object_get(sum, "duplicates"));
	show_checks(w, json_object_get(sum, "checks"));
	show_measured(w, json_object_get(sum, "measured"));
	json_array_foreach(json_object_get(sum, "failures"), i, entry)
	{
		writer_format(w, "failing: %.300s: %.800s\n", text_of(entry, "what"),
			      text_of(entry, "message"));
		list_names(w, "    on", json_object_get(entry, "nodes"));
	}
	json_array_foreach(json_object_get(sum, "odd"), i, entry) show_odd(w, entry);
	show_changes(w, json_object_get(sum, "changes"));
}
