/* SPDX-License-Identifier: BSD-2-Clause */
/* The step that says which bytes of which buffers an MR's bytes are, or the other way. */
#include <errno.h>

#include "cli.h"
#include "result.h"
#include "session.h"

#define MOST 4096 /* pieces or places of one answer */

struct answer {
	json_t *list;
	size_t num;
	bool complete;
	struct fail *f;
};

/* One more of either kind; the walk ends with the first failure, or when there is room for no more. */
static int take(struct answer *a, json_t *one)
{
	if (a->num == MOST) {
		a->complete = false;
		json_decref(one);
		return 1;
	}
	a->num++;
	return json_array_append_new(a->list, one) ? fail_nomem(a->f) : 0;
}

static int take_piece(void *arg, const struct ibmr_piece *piece)
{
	struct ibmr_mr_info info;

	ibmr_mr_query(piece->mr, &info);
	return take(arg, json_pack("{s:I, s:s, s:I, s:I}", "at", (json_int_t)piece->at, "mr",
				   info.name, "offset", (json_int_t)piece->offset, "length",
				   (json_int_t)piece->length));
}

static int take_place(void *arg, uint64_t at)
{
	return take(arg, json_integer((json_int_t)at));
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

static json_t *make_result(const struct answer *a, const struct step *step,
			   const struct object *object)
{
	const struct step_translate *t = &step->translate;

	if (t->from)
		return json_pack("{s:s, s:n, s:n, s:s, s:I, s:[], s:O, s:b}", "mr", step->mr,
				 "offset", "length", "from", t->from, "from_offset",
				 (json_int_t)t->from_offset, "pieces", "places", a->list,
				 "complete", (int)a->complete);
	return json_pack("{s:s, s:I, s:I, s:n, s:n, s:O, s:[], s:b}", "mr", step->mr, "offset",
			 (json_int_t)t->offset, "length", (json_int_t)rest(object->mr, t), "from",
			 "from_offset", "pieces", a->list, "places", "complete", (int)a->complete);
}

int step_translate(struct session *s, const struct step *step, struct reply *reply)
{
	const struct at at = { .name = "mr" }, at_from = { .name = "from" };
	struct fail *f = &reply->fail;
	struct object *object, *from = NULL;
	struct answer a = { .complete = true, .f = f };
	int rc;

	rc = session_need(s, step->mr, &at, &object, f);
	if (!rc && step->translate.from)
		rc = session_need(s, step->translate.from, &at_from, &from, f);
	if (rc)
		return rc;
	a.list = json_array();
	rc = a.list ? walk(&a, step, object->mr, from ? from->mr : NULL) : fail_nomem(f);
	if (!rc)
		rc = reply_result(reply, make_result(&a, step, object));
	json_decref(a.list);
	return rc;
}
