/* SPDX-License-Identifier: BSD-2-Clause */
/* What all nodes together say: states, failures folded by cause, and the odd ones out. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BINS	 100
#define MIN_ODD	 5   /* nodes, for times to be compared */
#define FAR_MADS 6.0 /* median absolute deviations, scaled to a normal distribution's sigma */
#define FAR_PART 0.1 /* and so much of the median: equal nodes have tiny deviations */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t num)
{
	qsort(values, num, sizeof(*values), compare_doubles);
	return num % 2 ? values[num / 2] : (values[num / 2 - 1] + values[num / 2]) / 2;
}

static json_t *names_of(const struct report *r, const struct nodes *nodes)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; list && i < nodes->num; i++)
		json_array_append(list, json_array_get(r->names, nodes->list[i]));
	return list;
}

/* ---- times ------------------------------------------------------------------------------- */

static json_t *outliers(const struct report *r, const struct figure *figure, double mid, double mad)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; list && figure->nodes.num >= MIN_ODD && i < figure->nodes.num; i++) {
		double off = fabs(figure->us[i] - mid);

		if (off > FAR_MADS * 1.4826 * mad && off > FAR_PART * mid)
			json_array_append_new(
				list, json_pack("{s:O, s:f}", "node",
						json_array_get(r->names, figure->nodes.list[i]),
						"elapsed_us", figure->us[i]));
	}
	return list;
}

/* How many nodes lie in each part of the way from the least to the most. */
static json_t *histogram(const struct figure *figure, double least, double most)
{
	size_t bins[BINS] = { 0 };
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < figure->nodes.num; i++) {
		double part = most > least ? (figure->us[i] - least) / (most - least) : 0;

		bins[(size_t)(part * (BINS - 1))]++;
	}
	for (i = 0; list && i < BINS; i++)
		json_array_append_new(list, json_integer((json_int_t)bins[i]));
	return list;
}

static json_t *times(const struct report *r, const struct figure *figure)
{
	const size_t num = figure->nodes.num;
	double *sorted = calloc(num ? num : 1, sizeof(*sorted));
	double mid, mad, least, most;
	json_t *object;
	size_t i;

	if (!sorted)
		return NULL;
	if (!num) {
		free(sorted);
		return json_null();
	}
	memcpy(sorted, figure->us, num * sizeof(*sorted));
	mid = median(sorted, num);
	least = sorted[0];
	most = sorted[num - 1];
	for (i = 0; i < num; i++)
		sorted[i] = fabs(figure->us[i] - mid);
	mad = median(sorted, num);
	free(sorted);
	object = json_pack("{s:f, s:f, s:f, s:f, s:o, s:o}", "median_us", mid, "mad_us", mad,
			   "least_us", least, "most_us", most, "outliers",
			   outliers(r, figure, mid, mad), "histogram",
			   histogram(figure, least, most));
	return object;
}

static json_t *checks(const struct report *r)
{
	json_t *list = json_array(), *counts;
	size_t i;
	int state;

	for (i = 0; list && i < r->num_figures; i++) {
		const struct figure *figure = &r->figures[i];

		counts = json_object();
		for (state = 0; counts && state < STATE_MAX; state++)
			json_object_set_new(counts, state_words[state],
					    json_integer((json_int_t)figure->states[state]));
		if (json_array_append_new(list,
					  json_pack("{s:s, s:s, s:o, s:o}", "device",
						    figure->device, "check", figure->check,
						    "counts", counts, "times", times(r, figure)))) {
			json_decref(list);
			return NULL;
		}
	}
	return list;
}

/* ---- failures and facts ---------------------------------------------------------------------- */

static int by_nodes(const void *a, const void *b)
{
	const struct group *x = *(const struct group *const *)a;
	const struct group *y = *(const struct group *const *)b;
	int rc = strcmp(x->what, y->what);

	if (rc)
		return rc;
	if (x->nodes.num != y->nodes.num)
		return x->nodes.num < y->nodes.num ? 1 : -1;
	return strcmp(x->value, y->value);
}

/* By what they are about, and the most nodes first. */
static const struct group **sorted_groups(const struct groups *groups)
{
	const struct group **list = calloc(groups->num + 1, sizeof(*list));
	size_t i;

	for (i = 0; list && i < groups->num; i++)
		list[i] = &groups->list[i];
	if (list)
		qsort(list, groups->num, sizeof(*list), by_nodes);
	return list;
}

static json_t *failures(const struct report *r)
{
	const struct group **groups = sorted_groups(&r->failures);
	json_t *list = json_array();
	size_t i;

	for (i = 0; groups && list && groups[i]; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "what", groups[i]->what,
						      "message", groups[i]->value, "nodes",
						      names_of(r, &groups[i]->nodes)));
	free(groups);
	return groups ? list : NULL;
}

/* Each fact of which nodes have different values: the majority's, and who differs. */
static json_t *odd(const struct report *r)
{
	const struct group **g = sorted_groups(&r->facts);
	json_t *list = json_array(), *others;
	size_t i, k;

	for (i = 0; g && list && g[i]; i = k) {
		others = json_array();
		for (k = i + 1; g[k] && !strcmp(g[k]->what, g[i]->what); k++)
			json_array_append_new(others,
					      json_pack("{s:s, s:o}", "value", g[k]->value, "nodes",
							names_of(r, &g[k]->nodes)));
		if (!json_array_size(others)) {
			json_decref(others);
			continue;
		}
		json_array_append_new(list,
				      json_pack("{s:s, s:s, s:I, s:o}", "what", g[i]->what,
						"majority", g[i]->value, "nodes",
						(json_int_t)g[i]->nodes.num, "others", others));
	}
	free(g);
	return g ? list : NULL;
}

/* ---- since an earlier report ---------------------------------------------------------------------- */

/* "node: what" of every failure, as a set. */
static json_t *failing(const json_t *sum)
{
	json_t *set = json_object();
	const json_t *entry, *node;
	char key[900];
	size_t i, k;

	json_array_foreach(json_object_get(sum, "failures"), i, entry)
		json_array_foreach(json_object_get(entry, "nodes"), k, node)
	{
		snprintf(key, sizeof(key), "%.400s: %.400s", json_string_value(node),
			 json_string_value(json_object_get(entry, "what")));
		json_object_set_new(set, key, json_true());
	}
	return set;
}

static json_t *set_of(const json_t *list)
{
	json_t *set = json_object();
	const json_t *name;
	size_t i;

	json_array_foreach(list, i, name)
		json_object_set_new(set, json_string_value(name), json_true());
	return set;
}

/* What is in a and not in b. Both are taken. */
static json_t *only(json_t *a, json_t *b)
{
	json_t *list = json_array();
	void *it;

	for (it = json_object_iter(a); list && it; it = json_object_iter_next(a, it))
		if (!json_object_get(b, json_object_iter_key(it)))
			json_array_append_new(list, json_string(json_object_iter_key(it)));
	json_decref(a);
	json_decref(b);
	return list;
}

static json_t *changes(const json_t *sum, const json_t *before)
{
	const json_t *now_names = json_object_get(sum, "node_names");
	const json_t *then_names = json_object_get(before, "node_names");

	return json_pack("{s:o, s:o, s:o, s:o}", "failing_now", only(failing(sum), failing(before)),
			 "failing_no_more", only(failing(before), failing(sum)), "nodes_new",
			 only(set_of(now_names), set_of(then_names)), "nodes_gone",
			 only(set_of(then_names), set_of(now_names)));
}

json_t *report_sum(const struct report *r, const json_t *baseline)
{
	json_t *sum;

	sum = json_pack("{s:I, s:O, s:O, s:o, s:o, s:o, s:O, s:n}", "nodes",
			(json_int_t)json_array_size(r->names), "broken", r->broken, "duplicates",
			r->duplicates, "checks", checks(r), "failures", failures(r), "odd", odd(r),
			"node_names", r->names, "changes");
	if (sum && baseline && json_object_set_new(sum, "changes", changes(sum, baseline))) {
		json_decref(sum);
		return NULL;
	}
	return sum;
}
