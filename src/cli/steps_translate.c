/* SPDX-License-Identifier: BSD-2-Clause */
/* The step that says which bytes of which buffers an MR's bytes are, or the other way. */
#include <errno.h>

#include "cli.h"
#include "result.h"
#include "session.h"

#define MOST 4096 /* pieces or places of one answer */

struct answer {
	struct writer w;
	size_t num;
	bool complete;
	struct fail *f;
};

/* Whether there is room for one more of either kind; the walk ends when there is none. */
static bool has_room(struct answer *a)
{
	a->complete = a->num < MOST;
	a->num += a->complete;
	return a->complete;
}

static int take_piece(void *arg, const struct ibmr_piece *piece)
{
	struct answer *a = arg;
	struct ibmr_mr_info info;

	if (!has_room(a))
		return 1;
	ibmr_mr_query(piece->mr, &info);
	writer_begin(&a->w, '{');
	say_int(&a->w, "at", piece->at);
	say_string(&a->w, "mr", info.name);
	say_int(&a->w, "offset", piece->offset);
	say_int(&a->w, "length", piece->length);
	writer_end(&a->w, '}');
	return 0;
}

static int take_place(void *arg, uint64_t at)
{
	struct answer *a = arg;

	if (!has_room(a))
		return 1;
	writer_int(&a->w, (int64_t)at);
	return 0;
}

static int walk(struct answer *a, const struct step *step, struct ibmr_mr *mr, struct ibmr_mr *from)
{
	const struct step_translate *t = &step->translate;
	struct ibmr_err err = { .code = IBMR_OK };
	int rc;

	if (from)
		rc = ibmr_mr_locate(mr, from, t->from_offset, take_place, a, &err);
	else
		rc = ibmr_mr_translate(mr, t->offset, t->length, take_piece, a, &err);
	if (rc < 0 && err.code != IBMR_OK)
		return session_fail(&err, rc, NULL, a->f);
	return rc < 0 ? rc : 0;
}

static uint64_t rest(const struct ibmr_mr *mr, const struct step_translate *t)
{
	struct ibmr_mr_info info;

	ibmr_mr_query(mr, &info);
	return t->length == IBMR_TO_END ? info.length - t->offset : t->length;
}

/* What was asked: the members ahead of the two lists. */
static void say_question(struct writer *w, const struct step *step, const struct object *object)
{
	const struct step_translate *t = &step->translate;

	say_string(w, "mr", step->mr);
	if (t->from) {
		say_null(w, "offset");
		say_null(w, "length");
		say_string(w, "from", t->from);
		say_int(w, "from_offset", t->from_offset);
	} else {
		say_int(w, "offset", t->offset);
		say_int(w, "length", rest(object->mr, t));
		say_null(w, "from");
		say_null(w, "from_offset");
	}
}

static void say_nothing(struct writer *w, const char *key)
{
	writer_key(w, key);
	writer_begin(w, '[');
	writer_end(w, ']');
}

/* The one list that the question is for; the other is empty. */
static int say_answer(struct answer *a, const struct step *step, struct ibmr_mr *mr,
		      struct ibmr_mr *from)
{
	int rc;

	if (from)
		say_nothing(&a->w, "pieces");
	writer_key(&a->w, from ? "places" : "pieces");
	writer_begin(&a->w, '[');
	rc = walk(a, step, mr, from);
	writer_end(&a->w, ']');
	if (!from)
		say_nothing(&a->w, "places");
	say_bool(&a->w, "complete", a->complete);
	return rc;
}

int step_translate(struct session *s, const struct step *step, struct reply *reply)
{
	const struct at at = { .name = "mr" }, at_from = { .name = "from" };
	struct fail *f = &reply->fail;
	struct object *object, *from = NULL;
	struct answer a;
	int rc;

	rc = session_need(s, step->mr, &at, &object, f);
	if (!rc && step->translate.from)
		rc = session_need(s, step->translate.from, &at_from, &from, f);
	if (rc)
		return rc;
	a.f = f;
	a.num = 0;
	a.complete = true;
	reply_begin(&a.w, s, reply);
	say_question(&a.w, step, object);
	rc = say_answer(&a, step, object->mr, from ? from->mr : NULL);
	return rc ? rc : reply_end(&a.w, reply);
}
