/* SPDX-License-Identifier: BSD-2-Clause */
/* What is kept of a node's answer. */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_FIGURE 1e19 /* above any whole number of 64 bits with a sign */

/* ---- lists that grow ------------------------------------------------------------------ */

static int more(void *list, size_t num, size_t *room, size_t size)
{
	void **at = list;
	size_t want = *room ? 2 * *room : 8;
	void *p;

	if (num < *room)
		return 0;
	p = reallocarray(*at, want, size);
	if (!p)
		return -ENOMEM;
	*at = p;
	*room = want;
	return 0;
}

static int add_node(struct nodes *nodes, uint32_t node)
{
	if (more(&nodes->list, nodes->num, &nodes->room, sizeof(*nodes->list)))
		return -ENOMEM;
	nodes->list[nodes->num++] = node;
	return 0;
}

static int group_add(struct groups *groups, const char *what, const char *value, uint32_t node)
{
	char key[2048];
	struct group *group;
	json_t *at;

	snprintf(key, sizeof(key), "%s\1%s", what, value);
	at = json_object_get(groups->index, key);
	if (at) {
		group = &groups->list[json_integer_value(at)];
		return add_node(&group->nodes, node);
	}
	if (more(&groups->list, groups->num, &groups->room, sizeof(*groups->list)) ||
	    json_object_set_new(groups->index, key, json_integer((json_int_t)groups->num)))
		return -ENOMEM;
	group = &groups->list[groups->num++];
	memset(group, 0, sizeof(*group));
	group->what = strdup(what);
	group->value = strdup(value);
	return group->what && group->value ? add_node(&group->nodes, node) : -ENOMEM;
}

/* what: NULL of the check itself. */
static struct figure *figure_of(struct report *r, const char *device, const char *check,
				const char *what)
{
	char key[400];
	struct figure *figures;
	json_t *at;

	snprintf(key, sizeof(key), "%.100s\1%.100s\1%.100s", device, check, what ? what : "");
	at = json_object_get(r->figure_index, key);
	if (at)
		return &r->figures[json_integer_value(at)];
	figures = reallocarray(r->figures, r->num_figures + 1, sizeof(*figures));
	if (!figures)
		return NULL;
	r->figures = figures;
	figures = &figures[r->num_figures];
	memset(figures, 0, sizeof(*figures));
	figures->device = strdup(device);
	figures->check = strdup(check);
	figures->what = what ? strdup(what) : NULL;
	r->num_figures++; /* report_free has it, whatever comes */
	if (!figures->device || !figures->check || (what && !figures->what) ||
	    json_object_set_new(r->figure_index, key, json_integer((json_int_t)r->num_figures - 1)))
		return NULL;
	return figures;
}

/* ---- checks ------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static int add_figure(struct figure *figure, double value, uint32_t node)
{
	const struct nodes *nodes = &figure->nodes;

	/* measured once, and held against two bounds */
	if (nodes->num && nodes->list[nodes->num - 1] == node)
		return 0;
	if (more(&figure->values, nodes->num, &figure->room, sizeof(*figure->values)))
		return -ENOMEM;
	figure->values[nodes->num] = value;
	return add_node(&figure->nodes, node);
}

/* What was measured for thresholds, whether met or not. */
static int add_measured(struct report *r, const char *device, const json_t *entry, uint32_t node)
{
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(entry, "thresholds"), i, row)
	{
		const json_t *step = json_object_get(row, "step");
		const json_t *measured = json_object_get(row, "measured");
		struct figure *figure;
		char what[100];

		if (!json_is_number(measured))
			continue;
		if (json_is_integer(step))
			snprintf(what, sizeof(what), "step %" JSON_INTEGER_FORMAT " %.60s",
				 json_integer_value(step), text_of(row, "what"));
		else
			snprintf(what, sizeof(what), "%.60s", text_of(row, "what"));
		figure = figure_of(r, device, text_of(entry, "name"), what);
		if (!figure || add_figure(figure, json_number_value(measured), node))
			return -ENOMEM;
	}
	return 0;
}

static int add_check(struct report *r, const char *device, const json_t *entry, uint32_t node)
{
	const json_t *us = json_object_get(entry, "elapsed_us");
	const json_t *error = json_object_get(entry, "error");
	const enum state state = state_of(entry);
	struct figure *figure = figure_of(r, device, text_of(entry, "name"), NULL);
	char what[300];

	if (!figure)
		return -ENOMEM;
	figure->states[state]++;
	if (state == STATE_PASS && json_is_number(us) &&
	    add_figure(figure, json_number_value(us), node))
		return -ENOMEM;
	if (add_measured(r, device, entry, node))
		return -ENOMEM;
	if (state == STATE_PASS || state == STATE_SKIP)
		return 0;
	snprintf(what, sizeof(what), "%s %s %s %s", device, text_of(entry, "name"),
		 state_words[state], text_of(error, "code"));
	return group_add(&r->failures, what, text_of(error, "message"), node);
}

/* ---- facts that are compared ------------------------------------------------------------------ */

/* What differs from node to node, or moves, on healthy ones too. */
static bool is_own(const char *name)
{
	static const char *const own[] = { "guid",  "lid",  "pinned", "path",
					   "error", "name", "port",   "checks" };
	size_t i;

	for (i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (!strcmp(name, own[i]))
			return true;
	return false;
}

static int add_value(struct report *r, const char *what, const json_t *value, uint32_t node)
{
	char number[40];

	switch (json_typeof(value)) {
	case JSON_STRING:
		return group_add(&r->facts, what, json_string_value(value), node);
	case JSON_INTEGER:
		snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(value));
		return group_add(&r->facts, what, number, node);
	case JSON_TRUE:
		return group_add(&r->facts, what, "yes", node);
	case JSON_FALSE:
		return group_add(&r->facts, what, "no", node);
	default:
		return group_add(&r->facts, what, "unknown", node);
	}
}

static int add_facts(struct report *r, const char *what, const json_t *value, uint32_t node)
{
	json_t *obj = (json_t *)value; /* the iterator changes nothing */
	char inner[300];
	int rc = 0;
	void *it;
	size_t i;

	if (!json_is_object(value) && !json_is_array(value))
		return add_value(r, what, value, node);
	for (it = json_object_iter(obj); it && !rc; it = json_object_iter_next(obj, it)) {
		if (is_own(json_object_iter_key(it)))
			continue;
		snprintf(inner, sizeof(inner), "%.200s %.80s", what, json_object_iter_key(it));
		rc = add_facts(r, inner, json_object_iter_value(it), node);
	}
	for (i = 0; i < json_array_size(value) && !rc; i++) {
		const json_t *element = json_array_get(value, i);
		const char *name = json_string_value(json_object_get(element, "name"));

		if (name)
			snprintf(inner, sizeof(inner), "%.200s %.80s", what, name);
		else
			snprintf(inner, sizeof(inner), "%.200s %zu", what, i);
		rc = add_facts(r, inner, element, node);
	}
	return rc;
}

/* ---- a document ----------------------------------------------------------------------------------- */

static int add_device(struct report *r, const json_t *dev, uint32_t node)
{
	const char *name = text_of(dev, "name");
	const json_t *entry, *part;
	char what[100];
	size_t i;
	int rc = 0;

	json_array_foreach(json_object_get(dev, "checks"), i,
			   entry) if (!rc && json_is_object(entry)) rc =
		add_check(r, name, entry, node);
	snprintf(what, sizeof(what), "%.80s", name);
	part = json_object_get(dev, "about");
	if (!rc && json_is_object(part))
		rc = add_facts(r, what, part, node);
	snprintf(what, sizeof(what), "%.80s proved", name);
	part = json_object_get(dev, "proved");
	if (!rc && json_is_object(part))
		rc = add_facts(r, what, part, node);
	return rc;
}

/* The name of the node that answers, in name. -EEXIST: it has answered. A host is one node, by its own
 * name; of further tasks on it each is one more, with its number. */
static int name_node(const struct report *r, const json_t *identity, char *name, size_t size)
{
	const char *host = text_of(identity, "host");
	const char *task = json_string_value(json_object_get(identity, "task"));
	const json_t *first;

	snprintf(name, size, "%.256s", host);
	first = json_object_get(r->known, name);
	if (!first)
		return 0;
	if (!task || json_is_null(first) || !strcmp(task, json_string_value(first)))
		return -EEXIST;
	snprintf(name, size, "%.256s#%.100s", host, task);
	return json_object_get(r->known, name) ? -EEXIST : 0;
}

/* The number of a node that is new; -EEXIST: it has answered. */
static int new_node(struct report *r, const json_t *doc, uint32_t *ret_node)
{
	json_t *identity = json_object_get(doc, "identity");
	json_t *task = json_object_get(identity, "task");
	char name[400];
	int rc = name_node(r, identity, name, sizeof(name));

	if (rc)
		return rc;
	*ret_node = (uint32_t)json_array_size(r->names);
	if (json_object_set_new(r->known, name,
				json_is_string(task) ? json_incref(task) : json_null()) ||
	    json_array_append_new(r->names, json_string(name)))
		return -ENOMEM;
	return 0;
}

/* The lines before a summary are its checks, each with the device it is of. */
static int add_pending(struct report *r, uint32_t node)
{
	const json_t *entry;
	size_t i;
	int rc = 0;

	json_array_foreach(r->pending, i, entry) if (!rc) rc =
		add_check(r, text_of(entry, "device"), entry, node);
	return rc;
}

static size_t num_checks(const json_t *doc)
{
	const json_t *dev;
	size_t i, num = 0;

	json_array_foreach(json_object_get(doc, "devices"), i, dev) num +=
		json_array_size(json_object_get(dev, "checks"));
	return num;
}

/* Whether its checks are all here and no others: those in it, or the lines before it. A node writes its
 * lines before its summary; where there are more of them, another node's stand between. */
static bool has_its_checks(const struct report *r, const json_t *doc)
{
	const json_t *count;
	const char *state;
	uint64_t num = 0;

	json_object_foreach(json_object_get(doc, "counts"), state, count) num +=
		(uint64_t)json_integer_value(count);
	return num == num_checks(doc) + json_array_size(r->pending);
}

/* What is there is no less than nothing, and within what is added up and compared here. */
static bool is_figure(const json_t *value)
{
	const double number = json_number_value(value);

	return !json_is_number(value) || (number >= 0 && number <= MOST_FIGURE);
}

static bool are_figures(const json_t *checks)
{
	const json_t *entry, *row;
	size_t i, k;

	json_array_foreach(checks, i, entry)
	{
		if (!is_figure(json_object_get(entry, "elapsed_us")))
			return false;
		json_array_foreach(
			json_object_get(entry, "thresholds"), k,
			row) if (!is_figure(json_object_get(row, "measured"))) return false;
	}
	return true;
}

static bool has_figures(const struct report *r, const json_t *doc)
{
	const json_t *dev;
	size_t i;

	json_array_foreach(json_object_get(doc, "devices"), i,
			   dev) if (!are_figures(json_object_get(dev, "checks"))) return false;
	return are_figures(r->pending);
}

/* NULL: nothing. */
static const char *what_is_wrong(const struct report *r, const json_t *doc)
{
	if (!has_its_checks(r, doc))
		return "the checks before it are not those of this answer alone: the lines of a "
		       "node must follow each other";
	if (!has_figures(r, doc))
		return "a time or a figure that nothing can have";
	return NULL;
}

static int add_answer(struct report *r, const json_t *doc, uint32_t node)
{
	const json_t *dev;
	size_t i;
	int rc;

	rc = add_facts(r, "node", json_object_get(doc, "node"), node);
	if (!rc)
		rc = add_value(r, "suite", json_object_get(doc, "suite"), node);
	json_array_foreach(json_object_get(doc, "devices"), i, dev) if (!rc && json_is_object(dev))
		rc = add_device(r, dev, node);
	return rc ? rc : add_pending(r, node);
}

int report_note(json_t *list, const char *input, const char *message, struct fail *f)
{
	json_t *entry = json_pack("{s:s, s:s}", "input", input, "message", message);

	return json_array_append_new(list, entry) ? fail_nomem(f) : 0;
}

int report_add(struct report *r, const char *input, json_t *doc, struct fail *f)
{
	const char *command = text_of(doc, "command"), *wrong;
	uint32_t node;
	int rc;

	if (json_is_string(json_object_get(doc, "state")) &&
	    json_is_string(json_object_get(doc, "device")))
		return json_array_append(r->pending, doc) ? fail_nomem(f) : 0;
	if (strcmp(command, "validate") || !json_is_object(json_object_get(doc, "identity")) ||
	    !json_is_object(json_object_get(doc, "node")) ||
	    !json_is_string(json_object_get(doc, "suite")))
		return report_note(r->broken, input, "a document that is no answer of validate's",
				   f);
	wrong = what_is_wrong(r, doc);
	if (wrong) {
		rc = report_note(r->broken, input, wrong, f);
	} else {
		rc = new_node(r, doc, &node);
		if (rc == -EEXIST)
			rc = report_note(r->duplicates, input,
					 text_of(json_object_get(doc, "identity"), "host"), f);
		else if (!rc)
			rc = add_answer(r, doc, node);
	}
	json_array_clear(r->pending);
	return rc == -ENOMEM ? fail_nomem(f) : rc;
}

/* ---- all of it ------------------------------------------------------------------------------------- */

int report_begin(struct report *r, struct fail *f)
{
	memset(r, 0, sizeof(*r));
	r->names = json_array();
	r->known = json_object();
	r->figure_index = json_object();
	r->failures.index = json_object();
	r->facts.index = json_object();
	r->broken = json_array();
	r->duplicates = json_array();
	r->pending = json_array();
	return r->names && r->known && r->figure_index && r->failures.index && r->facts.index &&
			       r->broken && r->duplicates && r->pending
		       ? 0
		       : fail_nomem(f);
}

static void free_groups(struct groups *groups)
{
	size_t i;

	for (i = 0; i < groups->num; i++) {
		free(groups->list[i].what);
		free(groups->list[i].value);
		free(groups->list[i].nodes.list);
	}
	free(groups->list);
	json_decref(groups->index);
}

void report_free(struct report *r)
{
	size_t i;

	for (i = 0; i < r->num_figures; i++) {
		free(r->figures[i].device);
		free(r->figures[i].check);
		free(r->figures[i].nodes.list);
		free(r->figures[i].what);
		free(r->figures[i].values);
	}
	free(r->figures);
	free_groups(&r->failures);
	free_groups(&r->facts);
	json_decref(r->names);
	json_decref(r->known);
	json_decref(r->figure_index);
	json_decref(r->broken);
	json_decref(r->duplicates);
	json_decref(r->pending);
}
