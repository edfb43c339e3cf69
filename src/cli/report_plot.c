/* SPDX-License-Identifier: BSD-2-Clause */
/* What was measured on all nodes as a strip: from 0 to the most, so that strips of the same length mean the
 * same, and what differs little looks so. */
#include "report.h"

#include <stdio.h>

#define WIDTH 480 /* of the strip; the picture is wider, for circles at its ends */
#define NAMED 8	  /* outliers */

double report_spread(const json_t *spread, const char *name)
{
	char with_unit[32];

	snprintf(with_unit, sizeof(with_unit), "%s_us", name);
	return json_object_get(spread, name) ? report_number(spread, name)
					     : report_number(spread, with_unit);
}

double report_outlier(const json_t *outlier)
{
	return json_object_get(outlier, "value") ? report_number(outlier, "value")
						 : report_number(outlier, "elapsed_us");
}

static double place(double value, double most)
{
	return 8 + (most > 0 ? value / most * WIDTH : 0);
}

/* A stroke for each part of the way that has nodes, the darker the more. */
static void strokes(struct writer *w, const json_t *spread, double most)
{
	const json_t *bins = json_object_get(spread, "histogram"), *value;
	const double least = report_spread(spread, "least");
	const double part = (most - least) / (double)json_array_size(bins);
	const double wide = most > 0 ? part / most * WIDTH : 0;
	json_int_t fullest = 1;
	size_t i;

	json_array_foreach(bins, i, value) if (json_integer_value(value) > fullest) fullest =
		json_integer_value(value);
	json_array_foreach(bins, i, value) if (json_integer_value(value)) writer_format(
		w, "<rect x=\"%.1f\" y=\"7\" width=\"%.1f\" height=\"14\" fill-opacity=\"%.2f\"/>",
		place(least + part * (double)i, most), wide > 1.5 ? wide : 1.5,
		0.25 + 0.75 * (double)json_integer_value(value) / (double)fullest);
}

static void name_outliers(struct writer *w, const json_t *outliers)
{
	const json_t *far;
	size_t i;

	if (!json_array_size(outliers))
		return;
	writer_text(w, "<div class=bad>");
	json_array_foreach(outliers, i, far) if (i < NAMED)
	{
		writer_text(w, i ? ", " : "");
		report_escaped(w, json_string_value(json_object_get(far, "node")));
		writer_format(w, " %.1f", report_outlier(far));
	}
	if (json_array_size(outliers) > NAMED)
		writer_format(w, " and %zu more", json_array_size(outliers) - NAMED);
	writer_text(w, "</div>");
}

void report_plot(struct writer *w, const json_t *spread)
{
	const json_t *outliers = json_object_get(spread, "outliers"), *far;
	const double most = report_spread(spread, "most");
	const double mid = place(report_spread(spread, "median"), most);
	size_t i;

	writer_format(
		w,
		"<svg viewBox=\"0 0 %d 28\" role=\"img\"><path d=\"M8 14H%d\" stroke=\"#999\"/>"
		"<g fill=\"#246\">",
		WIDTH + 16, WIDTH + 8);
	strokes(w, spread, most);
	writer_format(w, "</g><path d=\"M%.1f 2V26\" stroke=\"#000\"/>", mid);
	json_array_foreach(outliers, i, far) writer_format(
		w, "<circle cx=\"%.1f\" cy=\"14\" r=\"5\" fill=\"none\" stroke=\"#c00\"/>",
		place(report_outlier(far), most));
	writer_text(w, "</svg>");
	name_outliers(w, outliers);
}
