/* SPDX-License-Identifier: BSD-2-Clause */
/* A device in use and the named MRs on it; and the one door to them. */
#ifndef CLI_SESSION_H
#define CLI_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../lib/ibmr.h"
#include "cli.h"
#include "fail.h"
#include "growing.h"
#include "lent.h"
#include "spec.h"

struct object;

/* One entry of a fill as it was asked for, with the member it meant at that time. */
struct span {
	struct object *of;
	uint64_t offset, length, stride;
};

/* What an MR was last filled with, told by the request and not by the library. */
struct fill_record {
	bool repeat;
	uint64_t count; /* cycles; 1 for a list */
	struct span *spans;
	size_t num;
	uint64_t *ends; /* of each span in the list or cycle; made when it is first needed */
};

struct object {
	const char *name;
	struct ibmr_mr *mr;
	struct fill_record fill; /* num 0: none that is known */
	/* direct, over a shared file: which bytes, since two MRs may have the same ones */
	bool shared_file;
	dev_t dev;
	ino_t ino;
	uint64_t file_offset;
	struct object *next, *prev;
};

struct session {
	struct ibmr_ctx *ctx;
	struct ibmr_caps caps;
	uint32_t timeout_ms; /* of a step */
	struct bound bound;  /* of the step at work */
	void *names;	     /* tsearch(3) tree of struct object */
	struct object *first;
	size_t num_objects;
	size_t max_objects;  /* 0: any number */
	uint64_t max_locked; /* bytes that its MRs may lock; 0: what the system allows */
	bool gone;	     /* the last answer of session_is_gone */
	/* told from time to time how far a step is that takes long; NULL: nobody asks */
	void (*progress)(void *data, uint64_t done, uint64_t total);
	void *progress_data;
	uint64_t progress_ns; /* when it is to be told next; 0: the step begins */
	unsigned depth;	      /* results are written for a document indented so deep; 0: compact */
	const struct lent *lent; /* the files of this request; NULL: they are opened by name */
};

struct session_opts {
	const char *device; /* NULL: the first real one with an ACTIVE port */
	uint8_t port;
	int gid_index;
	uint32_t timeout_ms;
};

int session_open(const struct session_opts *opts, struct session **ret_session,
		 struct fail *reterr);
/* Without a device: all checks, no effects. */
int session_open_dry(const struct ibmr_caps *limits, uint32_t timeout_ms,
		     struct session **ret_session, struct fail *reterr);
/* Release everything, indirect MRs before their members, and close. The session is gone in any case; a
 * failure says what the device kept. NULL is fine. */
int session_close(struct session *s, struct fail *reterr);

/* Close a context that has no MRs. */
int session_close_ctx(struct ibmr_ctx *ctx, struct fail *reterr);

bool session_is_dry(const struct session *s);
/* Whether its device was pulled out or has failed for good. Asks the device. */
bool session_is_gone(struct session *s);

struct object *session_find(const struct session *s, const char *name);
/* The MR of that name, or no_such_mr at the place, with the names near it. */
int session_need(const struct session *s, const char *name, const struct at *at,
		 struct object **ret_object, struct fail *reterr);
/* -EEXIST exists, when the name is taken. */
int session_free_name(const struct session *s, const char *name, struct fail *reterr);
/* Name an MR; the session owns it on success. The name is not taken yet. */
int session_add(struct session *s, const char *name, struct ibmr_mr *mr, struct object **ret_object,
		struct fail *reterr);
/* Whether one more MR, which locks so many bytes, is within the session's own limits. */
int session_room(const struct session *s, uint64_t locked, struct fail *reterr);
/* An implicit MR is used without a length: -EFAULT range. */
int session_endless(const struct object *object, struct fail *reterr);
/* Through an implicit MR nothing is written but the memory of another MR, for the program itself lives
 * in the rest. -EFAULT range. */
int session_need_memory(const struct session *s, const struct object *implicit, uint64_t addr,
			uint64_t length, struct fail *reterr);
/* Forget an MR that is deregistered. */
void session_remove(struct session *s, struct object *object);
void fill_record_clear(struct fill_record *fill);

/* Once before each call that may wait and in every long loop: the step's time and signals. */
int session_tick(struct session *s, struct fail *reterr);
/* In every loop over bytes: so many of them are done. */
void session_progress(struct session *s, uint64_t done, uint64_t total);
/* A library error as ours; rc is returned. list is as in fail_from_ibmr. */
int session_fail(const struct ibmr_err *err, int rc, const char *list, struct fail *reterr);

/* ---- the door -------------------------------------------------------------- */

/* What a request came to: a result, or else a failure. */
struct reply {
	struct growing result; /* JSON text; owned */
	json_t *tree;	       /* the same once reply_tree was asked for it; owned */
	struct fail fail;
	/* the bytes of a read whose expect has them, for a comparison of all; owned */
	uint8_t *bytes;
	uint64_t num_bytes;
};

/* Carry out a request as in a plan's steps. Returns 0 or a negative errno; the reply is filled in any
 * case and is to be cleared. */
int dispatch(struct session *s, const json_t *request, struct reply *reply);
/* The same for a request whose form is checked. */
int dispatch_step(struct session *s, const struct step *step, struct reply *reply);
void reply_clear(struct reply *reply);
/* The result as a value, which stays the reply's. NULL: no memory. */
json_t *reply_tree(struct reply *reply);

/* Whether the outcome is the one stated: 0, or a negative errno with the mismatch in reterr. A step
 * without expect must have succeeded: its own failure is in reterr then. */
int outcome_check(const struct step *step, struct reply *reply, struct fail *reterr);

/* The commands, by file. Each returns 0 with a result, or a negative errno. */
typedef int step_fn(struct session *s, const struct step *step, struct reply *reply);
step_fn step_reg, step_create, step_fill, step_invalidate, step_dereg,
	step_prefetch;							     /* steps_mr.c */
step_fn step_write, step_read, step_copy, step_fetch_add, step_compare_swap; /* steps_data.c */
step_fn step_verify;							     /* verify.c */
step_fn step_translate;							     /* steps_translate.c */

#endif /* CLI_SESSION_H */
