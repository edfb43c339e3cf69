/* SPDX-License-Identifier: BSD-2-Clause */
/* A report as one page that needs nothing else: no script, no font, no network; readable on paper. */
#include "report.h"

#include <stdio.h>
#include <string.h>

#define SHOWN 50 /* rows of what may be one for each node */

static const char style[] =
	"body{font:14px sans-serif;margin:1.5em;color:#111}h2{margin:1.4em 0 .4em}"
	"table{border-collapse:collapse}th{background:#eee;white-space:nowrap}"
	"td,th{border:1px solid #bbb;padding:3px 7px;text-align:left;vertical-align:top;"
	"overflow-wrap:anywhere}.n{text-align:right;white-space:nowrap}.z{color:#aaa}"
	".bad{color:#b00;font-weight:bold}td.s{width:500px;min-width:220px}"
	"svg{display:block;width:100%;max-width:500px}.s div{font-size:12px}"
	"@media print{body{font-size:9px;margin:0}td,th{padding:1px 4px}"
	"td.s{width:260px}.s div{font-size:8px}tr{break-inside:avoid}h2{break-after:avoid}"
	"rect,circle,path,th{-webkit-print-color-adjust:exact;print-color-adjust:exact}}";

void report_escaped(struct writer *w, const char *text)
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

static void cell(struct writer *w, const char *text)
{
	writer_text(w, "<td>");
	report_escaped(w, text);
	writer_text(w, "</td>");
}

static void cell_names(struct writer *w, const json_t *names)
{
	writer_format(w, "<td class=n>%zu</td><td>", json_array_size(names));
	report_names(w, names, report_escaped);
	writer_text(w, "</td>");
}

static void begin_table(struct writer *w, const char *title, const char *columns)
{
	writer_format(w, "<h2>%s</h2>\n<table><thead><tr>%s</tr></thead>\n", title, columns);
}

static void end_table(struct writer *w, size_t rows)
{
	writer_text(w, "</table>\n");
	if (rows > SHOWN)
		writer_format(w, "<p>and %zu more</p>\n", rows - SHOWN);
}

/* ---- the head --------------------------------------------------------------------------- */

/* The nodes on which something failed, each once. */
static size_t count_failing(const json_t *failures)
{
	json_t *set = json_object();
	const json_t *entry, *node;
	size_t i, k, num;

	json_array_foreach(failures, i, entry)
		json_array_foreach(json_object_get(entry, "nodes"), k, node)
			json_object_set_new(set, json_string_value(node), json_true());
	num = json_object_size(set);
	json_decref(set);
	return num;
}

static size_t count_outliers(const json_t *list, const char *spread)
{
	const json_t *entry;
	size_t i, num = 0;

	json_array_foreach(list, i, entry) num +=
		json_array_size(json_object_get(json_object_get(entry, spread), "outliers"));
	return num;
}

static void head(struct writer *w, const json_t *sum)
{
	const size_t failing = count_failing(json_object_get(sum, "failures"));

	writer_format(w, "<h1>%.0f nodes</h1>\n<p><span class=%s>%zu with failures</span>; ",
		      report_number(sum, "nodes"), failing ? "bad" : "z", failing);
	writer_format(w, "%zu facts in which nodes differ; %zu figures far from the median; ",
		      json_array_size(json_object_get(sum, "odd")),
		      count_outliers(json_object_get(sum, "checks"), "times") +
			      count_outliers(json_object_get(sum, "measured"), "values"));
	writer_format(w, "%zu broken inputs, %zu duplicates.</p>\n",
		      json_array_size(json_object_get(sum, "broken")),
		      json_array_size(json_object_get(sum, "duplicates")));
}

/* ---- tables ----------------------------------------------------------------------------- */

static void count_cell(struct writer *w, const json_t *counts, int state)
{
	const double number = report_number(counts, state_words[state]);
	const bool bad = state != STATE_PASS && state != STATE_SKIP;

	writer_format(w, "<td class=\"n%s\">%.0f</td>",
		      number == 0 ? " z"
		      : bad	  ? " bad"
				  : "",
		      number);
}

static void spread_cells(struct writer *w, const json_t *spread)
{
	static const char *const names[] = { "median", "least", "most" };
	size_t i;

	for (i = 0; i < 3; i++)
		if (json_is_object(spread))
			writer_format(w, "<td class=n>%.1f</td>", report_spread(spread, names[i]));
		else
			writer_text(w, "<td></td>");
	writer_text(w, "<td class=s>");
	if (json_is_object(spread))
		report_plot(w, spread);
	writer_text(w, "</td>");
}

static void checks(struct writer *w, const json_t *list)
{
	const json_t *entry;
	size_t i;
	int state;

	begin_table(w, "Checks",
		    "<th>device<th>check<th>pass<th>fail<th>skip<th>timeout<th>error"
		    "<th>median us<th>least<th>most<th>times of the nodes where it passed");
	json_array_foreach(list, i, entry)
	{
		writer_text(w, "<tr>");
		cell(w, text_of(entry, "device"));
		cell(w, text_of(entry, "check"));
		for (state = 0; state < STATE_MAX; state++)
			count_cell(w, json_object_get(entry, "counts"), state);
		spread_cells(w, json_object_get(entry, "times"));
		writer_text(w, "</tr>\n");
	}
	writer_text(w, "</table>\n<p>A strip goes from 0 to the longest time, the darker the more "
		       "nodes, with a tick at the median; circles are outliers, named below it, "
		       "the furthest first.</p>\n");
}

static void measured(struct writer *w, const json_t *list)
{
	const json_t *entry;
	size_t i;

	if (!json_array_size(list))
		return;
	begin_table(w, "Measured",
		    "<th>device<th>check<th>what<th>nodes<th>median<th>least<th>most<th>all nodes");
	json_array_foreach(list, i, entry)
	{
		writer_text(w, "<tr>");
		cell(w, text_of(entry, "device"));
		cell(w, text_of(entry, "check"));
		cell(w, text_of(entry, "what"));
		writer_format(w, "<td class=n>%.0f</td>", report_number(entry, "nodes"));
		spread_cells(w, json_object_get(entry, "values"));
		writer_text(w, "</tr>\n");
	}
	writer_text(w, "</table>\n");
}

static void failures(struct writer *w, const json_t *list)
{
	const json_t *entry;
	size_t i;

	if (!json_array_size(list))
		return;
	begin_table(w, "Failing", "<th>what<th>message<th colspan=2>nodes");
	json_array_foreach(list, i, entry) if (i < SHOWN)
	{
		writer_text(w, "<tr>");
		cell(w, text_of(entry, "what"));
		cell(w, text_of(entry, "message"));
		cell_names(w, json_object_get(entry, "nodes"));
		writer_text(w, "</tr>\n");
	}
	end_table(w, json_array_size(list));
}

static void odd(struct writer *w, const json_t *list)
{
	const json_t *entry, *other;
	size_t i, k, rows = 0;

	if (!json_array_size(list))
		return;
	begin_table(w, "Odd ones out", "<th>what<th>majority<th>other<th colspan=2>nodes");
	json_array_foreach(list, i, entry)
		json_array_foreach(json_object_get(entry, "others"), k, other)
	{
		if (rows++ >= SHOWN)
			continue;
		writer_text(w, "<tr>");
		cell(w, text_of(entry, "what"));
		cell(w, text_of(entry, "majority"));
		cell(w, text_of(other, "value"));
		cell_names(w, json_object_get(other, "nodes"));
		writer_text(w, "</tr>\n");
	}
	end_table(w, rows);
}

static void inputs(struct writer *w, const char *title, const char *columns, const json_t *list)
{
	const json_t *entry;
	size_t i;

	if (!json_array_size(list))
		return;
	begin_table(w, title, columns);
	json_array_foreach(list, i, entry) if (i < SHOWN)
	{
		writer_text(w, "<tr>");
		cell(w, text_of(entry, "input"));
		cell(w, text_of(entry, "message"));
		writer_text(w, "</tr>\n");
	}
	end_table(w, json_array_size(list));
}

/* ---- since the baseline ------------------------------------------------------------------- */

static void changed_nodes(struct writer *w, const char *title, const json_t *names)
{
	if (!json_array_size(names))
		return;
	writer_format(w, "<tr><td>%s</td><td></td>", title);
	cell_names(w, names);
	writer_text(w, "</tr>\n");
}

static void changed_failures(struct writer *w, const char *title, const json_t *entries)
{
	json_t *groups = report_by_what(w, entries), *names;
	const char *what;

	json_object_foreach(groups, what, names)
	{
		writer_format(w, "<tr><td>%s</td>", title);
		cell(w, what);
		cell_names(w, names);
		writer_text(w, "</tr>\n");
	}
	json_decref(groups);
}

static void changes(struct writer *w, const json_t *object)
{
	if (!json_is_object(object))
		return;
	begin_table(w, "Since the baseline", "<th>change<th>what<th colspan=2>nodes");
	changed_failures(w, "failing now", json_object_get(object, "failing_now"));
	changed_failures(w, "failing no more", json_object_get(object, "failing_no_more"));
	changed_nodes(w, "new", json_object_get(object, "nodes_new"));
	changed_nodes(w, "gone", json_object_get(object, "nodes_gone"));
	writer_text(w, "</table>\n");
}

void report_html(struct writer *w, const json_t *sum)
{
	writer_text(w, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
		       "<title>ibmr report</title><style>");
	writer_text(w, style);
	writer_text(w, "</style></head><body>\n");
	head(w, sum);
	changes(w, json_object_get(sum, "changes"));
	failures(w, json_object_get(sum, "failures"));
	odd(w, json_object_get(sum, "odd"));
	inputs(w, "Broken inputs", "<th>input<th>what is wrong", json_object_get(sum, "broken"));
	inputs(w, "Answered twice", "<th>input<th>node", json_object_get(sum, "duplicates"));
	checks(w, json_object_get(sum, "checks"));
	measured(w, json_object_get(sum, "measured"));
	writer_text(w, "</body></html>\n");
}
