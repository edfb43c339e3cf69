/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibmr report, inside: the answers of many nodes, of which only what is compared is kept.
 *
 *   report_read.c   streams of documents -> one after another; what is none is named
 *   report_add.c    a node's answer -> figures, failures, facts
 *   report_sum.c    all of it as one object
 *   report_html.c   that object as a page, with report_plot.c; report_text.c: for eyes
 *   report_names.c  many names of nodes in few words
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "fail.h"
#include "out.h"
#include "validate.h"

/* A growing list of nodes, by their number. */
struct nodes {
	uint32_t *list;
	size_t num, room;
};

/* What one check of one device came to over all nodes. */
struct figure {
	char *device, *check;
	char *what; /* was measured for a threshold; NULL: the check itself, by its time */
	size_t states[STATE_MAX];
	struct nodes nodes; /* of which values are; microseconds of the check's time */
	double *values;
	size_t room;
};

/* The nodes on which something has this value, or failed in this way. */
struct group {
	char *what, *value; /* of a failure: "device check state code", and the message */
	struct nodes nodes;
};

struct groups {
	struct group *list;
	size_t num, room;
	json_t *index;
};

struct report {
	json_t *names; /* of nodes, by number */
	json_t *known; /* name -> task, or null */
	struct figure *figures;
	size_t num_figures;
	json_t *figure_index;
	struct groups failures, facts;
	json_t *broken, *duplicates; /* inputs: {input, message} */
	json_t *pending;	     /* jsonl: the checks before their summary */
};

int report_begin(struct report *r, struct fail *f);
void report_free(struct report *r);

/* A file, a folder of them, or - for standard input. What is broken in it is noted; only what keeps all
 * from being read is a failure. */
int report_read(struct report *r, const char *path, struct fail *f);
/* A document of that input. */
int report_add(struct report *r, const char *input, json_t *doc, struct fail *f);
int report_note(json_t *list, const char *input, const char *message, struct fail *f);

/* baseline: an earlier result, or NULL. NULL: no memory. */
json_t *report_sum(const struct report *r, const json_t *baseline);

/* Names of nodes, folded: node[001-004,007]. put writes a piece of it. */
typedef void names_put(struct writer *w, const char *text);
void report_names(struct writer *w, const json_t *names, names_put *put);
/* Of "node: what" the nodes by what (owned). */
json_t *report_by_what(struct writer *w, const json_t *entries);

/* The values of all nodes as a strip. */
void report_plot(struct writer *w, const json_t *spread);
/* A number of a spread, and the value of an outlier: times have their unit in the name. */
double report_spread(const json_t *spread, const char *name);
double report_outlier(const json_t *outlier);
static inline double report_number(const json_t *object, const char *name)
{
	return json_number_value(json_object_get(object, name));
}

void report_escaped(struct writer *w, const char *text);

void report_text(struct writer *w, const json_t *sum);
void report_html(struct writer *w, const json_t *sum);

#endif /* CLI_REPORT_H */
