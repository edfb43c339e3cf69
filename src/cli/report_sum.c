/* SPDX-License-Identifier: BSD-2-Clause */
/* What all nodes together say: states, failures folded by cause, and the odd ones out. */
#include "report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "result.h"

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
	int rc = 0;

	for (i = 0; i < nodes->num && !rc; i++)
		rc = json_array_append(list, json_array_get(r->names, nodes->list[i]));
	return result_whole(list, rc);
}

/* ---- values ------------------------------------------------------------------------------- */

struct far {
	uint32_t node;
	double value, off;
};

static int furthest_first(const void *a, const void *b)
{
	const struct far *x = a, *y = b;

	if (x->off != y->off)
		return x->off < y->off ? 1 : -1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Returns how many there are; ret_far has room for all nodes. */
static size_t find_far(const struct figure *figure, double mid, double mad, struct far *ret_far)
{
	size_t i, num = 0;

	for (i = 0; figure->nodes.num >= MIN_ODD && i < figure->nodes.num; i++) {
		double off = fabs(figure->values[i] - mid);

		if (off > FAR_MADS * 1.4826 * mad && off > FAR_PART * mid)
			ret_far[num++] =
				(struct far){ figure->nodes.list[i], figure->values[i], off };
	}
	qsort(ret_far, num, sizeof(*ret_far), furthest_first);
	return num;
}

static json_t *outliers(const struct report *r, const struct figure *figure, double mid, double mad)
{
	struct far *far = calloc(figure->nodes.num + 1, sizeof(*far));
	json_t *list = json_array();
	size_t i, num = far ? find_far(figure, mid, mad, far) : 0;
	int rc = far ? 0 : -1;

	for (i = 0; i < num && !rc; i++)
		rc = json_array_append_new(
			list, json_pack("{s:O, s:f}", "node", json_array_get(r->names, far[i].node),
					figure->what ? "value" : "elapsed_us", far[i].value));
	free(far);
	return result_whole(list, rc);
}

/* How many nodes lie in each part of the way from the least to the most. */
static json_t *histogram(const struct figure *figure, double least, double most)
{
	size_t bins[BINS] = { 0 };
	json_t *list = json_array();
	size_t i;
	int rc = 0;

	for (i = 0; i < figure->nodes.num; i++) {
		double part = most > least ? (figure->values[i] - least) / (most - least) : 0;

		bins[(size_t)(part * (BINS - 1))]++;
	}
	for (i = 0; i < BINS && !rc; i++)
		rc = json_array_append_new(list, json_integer((json_int_t)bins[i]));
	return result_whole(list, rc);
}

/* Null without a value. */
static json_t *spread(const struct report *r, const struct figure *figure)
{
	static const char *const names[2][4] = { { "median_us", "mad_us", "least_us", "most_us" },
						 { "median", "mad", "least", "most" } };
	const char *const *name = names[figure->what != NULL];
	const size_t num = figure->nodes.num;
	double *sorted = calloc(num ? num : 1, sizeof(*sorted));
	double mid, mad, least, most;
	size_t i;

	if (!sorted)
		return NULL;
	if (!num) {
		free(sorted);
		return json_null();
	}
	memcpy(sorted, figure->values, num * sizeof(*sorted));
	mid = median(sorted, num);
	least = sorted[0];
	most = sorted[num - 1];
	for (i = 0; i < num; i++)
		sorted[i] = fabs(figure->values[i] - mid);
	mad = median(sorted, num);
	free(sorted);
	return json_pack("{s:f, s:f, s:f, s:f, s:o, s:o}", name[0], mid, name[1], mad, name[2],
			 least, name[3], most, "outliers", outliers(r, figure, mid, mad),
			 "histogram", histogram(figure, least, most));
}

static json_t *count_states(const struct figure *figure)
{
	json_t *counts = json_object();
	int state, rc = 0;

	for (state = 0; state < STATE_MAX && !rc; state++)
		rc = json_object_set_new(counts, state_words[state],
					 json_integer((json_int_t)figure->states[state]));
	return result_whole(counts, rc);
}

static json_t *check_of(const struct report *r, const struct figure *figure)
{
	return json_pack("{s:s, s:s, s:o, s:o}", "device", figure->device, "check", figure->check,
			 "counts", count_states(figure), "times", spread(r, figure));
}

static json_t *measured_of(const struct report *r, const struct figure *figure)
{
	return json_pack("{s:s, s:s, s:s, s:I, s:o}", "device", figure->device, "check",
			 figure->check, "what", figure->what, "nodes",
			 (json_int_t)figure->nodes.num, "values", spread(r, figure));
}

/* The checks themselves, or what was measured in them. */
static json_t *figures(const struct report *r, bool measured)
{
	json_t *list = json_array();
	size_t i;
	int rc = 0;

	for (i = 0; i < r->num_figures && !rc; i++) {
		const struct figure *figure = &r->figures[i];

		if (measured == (figure->what != NULL))
			rc = json_array_append_new(list, measured ? measured_of(r, figure)
								  : check_of(r, figure));
	}
	return result_whole(list, rc);
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
	int rc = groups ? 0 : -1;

	for (i = 0; !rc && groups[i]; i++)
		rc = json_array_append_new(
			list, json_pack("{s:s, s:s, s:o}", "what", groups[i]->what, "message",
					groups[i]->value, "nodes", names_of(r, &groups[i]->nodes)));
	free(groups);
	return result_whole(list, rc);
}

/* The groups behind the first that are about the same. *ret_num: how many. */
static json_t *others_of(const struct report *r, const struct group **g, size_t *ret_num)
{
	json_t *list = json_array();
	size_t i;
	int rc = 0;

	for (i = 1; g[i] && !strcmp(g[i]->what, g[0]->what) && !rc; i++)
		rc = json_array_append_new(list, json_pack("{s:s, s:o}", "value", g[i]->value,
							   "nodes", names_of(r, &g[i]->nodes)));
	*ret_num = i - 1;
	return result_whole(list, rc);
}

/* Each fact of which nodes have different values: the majority's, and who differs. */
static json_t *odd(const struct report *r)
{
	const struct group **g = sorted_groups(&r->facts);
	json_t *list = json_array();
	size_t i, num;
	int rc = g ? 0 : -1;

	for (i = 0; !rc && g[i]; i += 1 + num) {
		json_t *others = others_of(r, &g[i], &num);

		if (others && !num)
			json_decref(others);
		else
			rc = json_array_append_new(
				list, json_pack("{s:s, s:s, s:I, s:o}", "what", g[i]->what,
						"majority", g[i]->value, "nodes",
						(json_int_t)g[i]->nodes.num, "others", others));
	}
	free(g);
	return result_whole(list, rc);
}

/* ---- since an earlier report ---------------------------------------------------------------------- */

static int add_to_set(json_t *set, const char *name)
{
	return name ? json_object_set_new(set, name, json_true()) : 0;
}

/* "node: what" of every failure, as a set. */
static json_t *failing(const json_t *sum)
{
	json_t *set = json_object();
	const json_t *entry, *node;
	char key[900];
	size_t i, k;
	int rc = 0;

	json_array_foreach(json_object_get(sum, "failures"), i, entry)
		json_array_foreach(json_object_get(entry, "nodes"), k, node)
	{
		const char *what = json_string_value(json_object_get(entry, "what"));
		const char *name = json_string_value(node);

		if (!what || !name)
			continue; /* of somebody's baseline */
		snprintf(key, sizeof(key), "%.400s: %.400s", name, what);
		rc = rc ? rc : add_to_set(set, key);
	}
	return result_whole(set, rc);
}

static json_t *set_of(const json_t *list)
{
	json_t *set = json_object();
	const json_t *name;
	size_t i;
	int rc = 0;

	json_array_foreach(list, i, name) rc = rc ? rc : add_to_set(set, json_string_value(name));
	return result_whole(set, rc);
}

/* What is in a and not in b. Both are taken. */
static json_t *only(json_t *a, json_t *b)
{
	json_t *list = json_array();
	int rc = a && b ? 0 : -1;
	void *it;

	for (it = json_object_iter(a); it && !rc; it = json_object_iter_next(a, it))
		if (!json_object_get(b, json_object_iter_key(it)))
			rc = json_array_append_new(list, json_string(json_object_iter_key(it)));
	json_decref(a);
	json_decref(b);
	return result_whole(list, rc);
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

	sum = json_pack("{s:I, s:O, s:O, s:o, s:o, s:o, s:o, s:O, s:n}", "nodes",
			(json_int_t)json_array_size(r->names), "broken", r->broken, "duplicates",
			r->duplicates, "checks", figures(r, false), "measured", figures(r, true),
			"failures", failures(r), "odd", odd(r), "node_names", r->names, "changes");
	if (sum && baseline && json_object_set_new(sum, "changes", changes(sum, baseline))) {
		json_decref(sum);
		return NULL;
	}
	return sum;
}
