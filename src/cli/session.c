/* SPDX-License-Identifier: BSD-2-Clause */
/* The named MRs of a device in use. */
#include "session.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "progress.h"

static int compare_names(const void *a, const void *b)
{
	return strcmp(((const struct object *)a)->name, ((const struct object *)b)->name);
}

bool session_is_dry(const struct session *s)
{
	return ibmr_ctx_is_dry(s->ctx);
}

bool session_is_gone(struct session *s)
{
	if (!session_is_dry(s))
		s->gone = ibmr_ctx_gone(s->ctx);
	return s->gone;
}

int session_fail(const struct ibmr_err *err, int rc, const char *list, struct fail *reterr)
{
	fail_from_ibmr(reterr, err, rc, list);
	signals_explain(reterr);
	return rc;
}

/* ---- opening --------------------------------------------------------------- */

int session_close_ctx(struct ibmr_ctx *ctx, struct fail *reterr)
{
	struct ibmr_err err;
	int rc;

	/* what the device refuses once is asked for once more */
	if (!ibmr_ctx_close(ctx, NULL))
		return 0;
	rc = ibmr_ctx_close(ctx, &err);
	return rc ? session_fail(&err, rc, NULL, reterr) : 0;
}

static int open_ctx(const struct session_opts *opts, struct ibmr_ctx **ret_ctx, struct fail *reterr)
{
	const struct ibmr_ctx_opts ctx_opts = {
		.device = opts->device,
		.port = opts->port,
		.gid_index = opts->gid_index,
		.timeout_ms = opts->timeout_ms,
		.cancel = &signals_cancel,
	};
	struct ibmr_err err;
	int rc;

	rc = ibmr_ctx_open(&ctx_opts, ret_ctx, &err);
	if (!rc)
		return 0;
	session_fail(&err, rc, NULL, reterr);
	if (reterr->code != FAIL_NO_DEVICE || reterr->hint[0])
		return rc;
	if (!opts->device)
		fail_hint(reterr, "--device soft0 uses the software device");
	else
		fail_hint(reterr, "ibmr devices lists all; soft0 is the software device");
	return rc;
}

static int wrap(struct ibmr_ctx *ctx, uint32_t timeout_ms, struct session **ret_session,
		struct fail *reterr)
{
	struct session *s;
	struct ibmr_err err;
	struct fail second;
	int rc;

	s = calloc(1, sizeof(*s));
	if (!s) {
		rc = fail_nomem(reterr);
		goto close_ctx;
	}
	s->ctx = ctx;
	s->timeout_ms = timeout_ms;
	s->bound = bound_of(timeout_ms);
	rc = ibmr_ctx_query(ctx, &s->caps, &err);
	if (rc) {
		session_fail(&err, rc, NULL, reterr);
		goto free_session;
	}
	*ret_session = s;
	return 0;

free_session:
	free(s);
close_ctx:
	session_close_ctx(ctx, &second);
	return rc;
}

int session_open(const struct session_opts *opts, struct session **ret_session, struct fail *reterr)
{
	struct ibmr_ctx *ctx;
	int rc;

	rc = open_ctx(opts, &ctx, reterr);
	return rc ? rc : wrap(ctx, opts->timeout_ms, ret_session, reterr);
}

int session_open_dry(const struct ibmr_caps *limits, uint32_t timeout_ms,
		     struct session **ret_session, struct fail *reterr)
{
	struct ibmr_ctx *ctx;
	struct ibmr_err err;
	int rc;

	rc = ibmr_ctx_open_dry(limits, &ctx, &err);
	if (rc)
		return session_fail(&err, rc, NULL, reterr);
	/* nothing waits but a search, and a huge plan may take its time */
	ibmr_ctx_set_timeout(ctx, timeout_ms);
	return wrap(ctx, UINT32_MAX, ret_session, reterr);
}

/* ---- names ----------------------------------------------------------------- */

struct object *session_find(const struct session *s, const char *name)
{
	const struct object key = { .name = name };
	struct object *const *node = tfind(&key, &s->names, compare_names);

	return node ? *node : NULL;
}

static void hint_names(const struct session *s, const char *name, struct fail *f)
{
	const struct object *o;
	const char *nearest = NULL;
	const char **names;
	size_t num = 0;

	if (!s->num_objects) {
		fail_hint(f, "no MR exists yet: reg or create makes one");
		return;
	}
	names = calloc(s->num_objects, sizeof(*names));
	if (!names) /* the hint is a courtesy; the error stands without it */
		return;
	for (o = s->first; o; o = o->next)
		names[num++] = o->name;
	nearest = spec_nearest(name, names, num);
	if (nearest)
		fail_hint(f, "did you mean '%s'?", nearest);
	free(names);
}

int session_need(const struct session *s, const char *name, const struct at *at,
		 struct object **ret_object, struct fail *reterr)
{
	struct object *o = session_find(s, name);

	if (o) {
		*ret_object = o;
		return 0;
	}
	fail_set(reterr, FAIL_NO_SUCH_MR, "no MR is named '%s'", name);
	reterr->err = ENOENT;
	fail_at(reterr, at);
	hint_names(s, name, reterr);
	return -ENOENT;
}

int session_free_name(const struct session *s, const char *name, struct fail *reterr)
{
	const struct at at = { .name = "mr" };

	if (!session_find(s, name))
		return 0;
	fail_set(reterr, FAIL_EXISTS, "an MR named '%s' exists", name);
	reterr->err = EEXIST;
	fail_at(reterr, &at);
	fail_hint(reterr, "dereg it first, or take another name");
	return -EEXIST;
}

int session_room(const struct session *s, uint64_t locked, struct fail *reterr)
{
	uint64_t have;

	if (s->max_objects && s->num_objects >= s->max_objects) {
		fail_set(reterr, FAIL_LIMIT, "the session holds %zu MRs, its most", s->num_objects);
		reterr->cause = "session_objects";
		reterr->err = ENOSPC;
		fail_hint(reterr, "dereg some, or start the session with a larger --max-objects");
		return -ENOSPC;
	}
	have = s->max_locked ? ibmr_ctx_locked_bytes(s->ctx) : 0;
	if (s->max_locked && (have > s->max_locked || locked > s->max_locked - have)) {
		fail_set(reterr, FAIL_LIMIT,
			 "%llu bytes on top of the %llu that the session locks are over its most, "
			 "%llu",
			 (unsigned long long)locked, (unsigned long long)have,
			 (unsigned long long)s->max_locked);
		reterr->cause = "session_locked";
		reterr->err = ENOSPC;
		fail_hint(reterr, "dereg some, or start the session with a larger --max-locked");
		return -ENOSPC;
	}
	return 0;
}

int session_add(struct session *s, const char *name, struct ibmr_mr *mr, struct object **ret_object,
		struct fail *reterr)
{
	size_t len = strlen(name) + 1;
	struct object *o = malloc(sizeof(*o) + len);

	if (!o)
		return fail_nomem(reterr);
	memset(o, 0, sizeof(*o));
	o->name = memcpy(o + 1, name, len);
	o->mr = mr;
	if (!tsearch(o, &s->names, compare_names)) {
		free(o);
		return fail_nomem(reterr);
	}
	o->next = s->first;
	if (s->first)
		s->first->prev = o;
	s->first = o;
	s->num_objects++;
	*ret_object = o;
	return 0;
}

void fill_record_clear(struct fill_record *fill)
{
	free(fill->spans);
	free(fill->ends);
	memset(fill, 0, sizeof(*fill));
}

int session_endless(const struct object *object, struct fail *reterr)
{
	fail_set(reterr, FAIL_RANGE, "'%s' is the whole address space: a length is needed",
		 object->name);
	reterr->err = EFAULT;
	return -EFAULT;
}

int session_need_memory(const struct session *s, const struct object *implicit, uint64_t addr,
			uint64_t length, struct fail *reterr)
{
	const struct object *o;
	struct ibmr_mr_info info;

	if (session_is_dry(s)) /* where memory will be is not known */
		return 0;
	for (o = s->first; o; o = o->next) {
		ibmr_mr_query(o->mr, &info);
		if (info.addr && addr >= info.base && addr - info.base <= info.length &&
		    length <= info.length - (addr - info.base))
			return 0;
	}
	fail_set(reterr, FAIL_RANGE,
		 "%llu byte%s at address 0x%llx are not all in the memory of another MR; nothing "
		 "else is written through '%s'",
		 (unsigned long long)length, fail_plural(length), (unsigned long long)addr,
		 implicit->name);
	reterr->err = EFAULT;
	return -EFAULT;
}

void session_remove(struct session *s, struct object *object)
{
	tdelete(object, &s->names, compare_names);
	if (object->prev)
		object->prev->next = object->next;
	else
		s->first = object->next;
	if (object->next)
		object->next->prev = object->prev;
	s->num_objects--;
	fill_record_clear(&object->fill);
	free(object);
}

/* ---- time ------------------------------------------------------------------ */

int session_tick(struct session *s, struct fail *reterr)
{
	uint32_t left_ms;
	int rc;

	if (session_is_dry(s))
		return signals_check(reterr);
	rc = bound_check(&s->bound, reterr);
	if (rc)
		return rc;
	/* 0 would be the library's own default */
	left_ms = bound_left_ms(&s->bound);
	ibmr_ctx_set_timeout(s->ctx, left_ms ? left_ms : 1);
	return 0;
}

void session_progress(struct session *s, uint64_t done, uint64_t total)
{
	if (s->progress && progress_due(&s->progress_ns))
		s->progress(s->progress_data, done, total);
}

/* ---- releasing -------------------------------------------------------------- */

/* One round over what is left, taking what nothing points at. Returns how many went; the first failure
 * of all rounds is kept. */
static size_t release_round(struct session *s, int *first_rc, struct ibmr_err *first_err)
{
	struct object *o, *next;
	struct ibmr_mr_info info;
	size_t gone = 0;
	int rc;

	for (o = s->first; o; o = next) {
		next = o->next;
		ibmr_mr_query(o->mr, &info);
		if (info.users)
			continue;
		rc = ibmr_mr_dereg(o->mr, *first_rc ? NULL : first_err);
		if (rc) {
			*first_rc = *first_rc ? *first_rc : rc;
			continue;
		}
		session_remove(s, o);
		gone++;
	}
	return gone;
}

int session_close(struct session *s, struct fail *reterr)
{
	struct ibmr_err err = { 0 };
	int rc = 0;
	int idle = 0;

	if (!s)
		return 0;
	ibmr_ctx_set_timeout(s->ctx, s->timeout_ms);
	/* nesting takes a round for each level; what the device refuses is asked for once more */
	while (s->first && idle < 2)
		idle += release_round(s, &rc, &err) == 0;
	if (s->first) {
		session_fail(&err, rc ? rc : -EBUSY, NULL, reterr);
		rc = rc ? rc : -EBUSY;
	} else {
		rc = session_close_ctx(s->ctx, reterr);
	}
	while (s->first)
		session_remove(s, s->first);
	free(s);
	return rc;
}
