/* SPDX-License-Identifier: BSD-2-Clause */
/* A report as one page that needs nothing else: no script, no font, no network; readable on paper. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHOWN 50  /* names in a cell */
#define WIDTH 500 /* of a plot */

static void put(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void put(struct writer *w, const char *fmt, ...)
{
	char line[800];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	writer_text(w, line);
}

static void escaped(struct writer *w, const char *text)
{
	char one[2] = "";

	for (; text && *text; text++) {
		one[0] = *text;
		writer_text(w, *text == '&'   ? "&amp;"
			       : *text == '<' ? "&lt;"
			       : *text == '>' ? "&gt;"
			       : *text == '"' ? "&quot;"
					      : one);
	}
}

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static double number_of(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

static void cell(struct writer *w, const char *text)
{
	writer_text(w, "<td>");
	escaped(w, text);
	writer_text(w, "</td>");
}

static void cell_names(struct writer *w, const json_t *names)
{
	const json_t *name;
	size_t i;

	put(w, "<td>%zu:", json_array_size(names));
	json_array_foreach(names, i, name) if (i < SHOWN)
	{
		writer_text(w, " ");
		escaped(w, json_string_value(name));
	}
	writer_text(w, json_array_size(names) > SHOWN ? " ...</td>" : "</td>");
}

/* ---- plots -------------------------------------------------------------------------- */

static double place(const json_t *times, double us)
{
	double least = number_of(times, "least_us"), most = number_of(times, "most_us");

	return most > least ? 10 + (us - least) / (most - least) * WIDTH : 10;
}

/* A stroke for each part of the way that has nodes, the darker the more; the outliers by name. */
static void plot(struct writer *w, const json_t *times)
{
	const json_t *bins = json_object_get(times, "histogram"), *value, *far;
	const size_t num = json_array_size(bins);
	json_int_t most = 1;
	size_t i;

	json_array_foreach(bins, i, value) if (json_integer_value(value) > most) most =
		json_integer_value(value);
	put(w,
	    "<svg width=\"%d\" height=\"44\" role=\"img\"><line x1=\"10\" x2=\"%d\" y1=\"30\" "
	    "y2=\"30\" stroke=\"#888\"/>",
	    WIDTH + 120, WIDTH + 10);
	json_array_foreach(bins, i, value) if (json_integer_value(value))
		put(w,
		    "<rect x=\"%.1f\" y=\"20\" width=\"4\" height=\"20\" fill=\"#246\" "
		    "fill-opacity=\"%.2f\"/>",
		    10 + (double)i / (double)(num - 1) * WIDTH - 2,
		    0.25 + 0.75 * (double)json_integer_value(value) / (double)most);
	json_array_foreach(json_object_get(times, "outliers"), i, far)
	{
		double x = place(times, number_of(far, "elapsed_us"));

		put(w, "<circle cx=\"%.1f\" cy=\"30\" r=\"4\" fill=\"none\" stroke=\"#c00\"/>", x);
		if (i >= 8)
			continue;
		put(w, "<text x=\"%.1f\" y=\"%d\" font-size=\"10\">", x, i % 2 ? 18 : 9);
		escaped(w, text_of(far, "node"));
		writer_text(w, "</text>");
	}
	put(w, "</svg><br>%.1f to %.1f us", number_of(times, "least_us"),
	    number_of(times, "most_us"));
}

/* ---- tables ----------------------------------------------------------------------------- */

static void checks(struct writer *w, const json_t *list)
{
	const json_t *entry, *times;
	size_t i;
	int state;

	writer_text(w, "<h2>Checks</h2><table><tr><th>device<th>check");
	for (state = 0; state < STATE_MAX; state++)
		put(w, "<th>%s", state_words[state]);
	writer_text(w, "<th>median us<th>times of all nodes</tr>\n");
	json_array_foreach(list, i, entry)
	{
		times = json_object_get(entry, "times");
		writer_text(w, "<tr>");
		cell(w, text_of(entry, "device"));
		cell(w, text_of(entry, "check"));
		for (state = 0; state < STATE_MAX; state++)
			put(w, "<td class=n>%.0f</td>",
			    number_of(json_object_get(entry, "counts"), state_words[state]));
		put(w, "<td class=n>%.1f</td><td>", number_of(times, "median_us"));
		if (json_is_object(times))
			plot(w, times);
		writer_text(w, "</td></tr>\n");
	}
	writer_text(w, "</table>\n");
}

static void failures(struct writer *w, const json_t *list)
{
	const json_t *entry;
	size_t i;

	writer_text(w, "<h2>Failing</h2><table><tr><th>what<th>message<th>nodes</tr>\n");
	json_array_foreach(list, i, entry)
	{
		writer_text(w, "<tr>");
		cell(w, text_of(entry, "what"));
		cell(w, text_of(entry, "message"));
		cell_names(w, json_object_get(entry, "nodes"));
		writer_text(w, "</tr>\n");
	}
	writer_text(w, "</table>\n");
}

static void odd(struct writer *w, const json_t *list)
{
	const json_t *entry, *other;
	size_t i, k;

	writer_text(w, "<h2>Odd ones out</h2><table><tr><th>what<th>majority<th>other<th>nodes"
		       "</tr>\n");
	json_array_foreach(list, i, entry)
		json_array_foreach(json_object_get(entry, "others"), k, other)
	{
		writer_text(w, "<tr>");
		cell(w, text_of(entry, "what"));
		cell(w, text_of(entry, "majority"));
		cell(w, text_of(other, "value"));
		cell_names(w, json_object_get(other, "nodes"));
		writer_text(w, "</tr>\n");
	}
	writer_text(w, "</table>\n");
}

static void inputs(struct writer *w, const char *title, const json_t *list)
{
	const json_t *entry;
	size_t i;

	if (!json_array_size(list))
		return;
	put(w, "<h2>%s</h2><table>\n", title);
	json_array_foreach(list, i, entry)
	{
		writer_text(w, "<tr>");
		cell(w, text_of(entry, "input"));
		cell(w, text_of(entry, "message"));
		writer_text(w, "</tr>\n");
	}
	writer_text(w, "</table>\n");
}

static void changes(struct writer *w, const json_t *object)
{
	static const struct {
		const char *name, *title;
	} parts[] = { { "failing_now", "failing now" },
		      { "failing_no_more", "failing no more" },
		      { "nodes_new", "new nodes" },
		      { "nodes_gone", "nodes that are gone" } };
	size_t i;

	if (!json_is_object(object))
		return;
	writer_text(w, "<h2>Since the baseline</h2><table>\n");
	for (i = 0; i < 4; i++) {
		put(w, "<tr><td>%s</td>", parts[i].title);
		cell_names(w, json_object_get(object, parts[i].name));
		writer_text(w, "</tr>\n");
	}
	writer_text(w, "</table>\n");
}

void report_html(struct writer *w, const json_t *sum)
{
	writer_text(w, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		       "<title>ibmr report</title><style>body{font:14px sans-serif;margin:1em}"
		       "table{border-collapse:collapse}td,th{border:1px solid #aaa;padding:2px 6px;"
		       "text-align:left;vertical-align:top}.n{text-align:right}"
		       "@media print{tr{break-inside:avoid}}</style></head><body>\n");
	put(w, "<h1>%.0f nodes</h1>\n", number_of(sum, "nodes"));
	changes(w, json_object_get(sum, "changes"));
	failures(w, json_object_get(sum, "failures"));
	odd(w, json_object_get(sum, "odd"));
	checks(w, json_object_get(sum, "checks"));
	inputs(w, "Broken inputs", json_object_get(sum, "broken"));
	inputs(w, "Duplicates", json_object_get(sum, "duplicates"));
	writer_text(w, "</body></html>\n");
}
