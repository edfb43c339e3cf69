/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CLI's error record: what the `error` object of a result says, before it is JSON.
 *
 * A function that takes a struct fail returns 0 or a negative errno and fills the record on failure
 * only. Nothing here needs memory, so that running out of it can be reported like all else.
 */
#ifndef CLI_FAIL_H
#define CLI_FAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ibmr_err;

/* The stable words of ibmr-result(5). */
enum fail_code {
	FAIL_NONE = 0,
	FAIL_USAGE,
	FAIL_SPEC_SYNTAX,
	FAIL_SPEC_DUPLICATE,
	FAIL_SPEC_UNKNOWN_MEMBER,
	FAIL_SPEC_MISSING,
	FAIL_SPEC_TYPE,
	FAIL_SPEC_VALUE,
	FAIL_NO_DEVICE,
	FAIL_NO_PERMISSION,
	FAIL_UNSUPPORTED,
	FAIL_NO_SUCH_MR,
	FAIL_EXISTS,
	FAIL_STATE,
	FAIL_IN_USE,
	FAIL_NESTING,
	FAIL_RANGE,
	FAIL_LIMIT,
	FAIL_ACCESS,
	FAIL_NOT_ON_DEMAND,
	FAIL_MEMLOCK,
	FAIL_NO_MEMORY,
	FAIL_BAD_ADDRESS,
	FAIL_KEY_TABLE,
	FAIL_COMPLETION,
	FAIL_TIMEOUT,
	FAIL_MISMATCH,
	FAIL_SESSION,
	FAIL_IO,
	FAIL_INTERRUPTED,
	FAIL_MAX
};

struct fail {
	enum fail_code code;
	const char *cause; /* a finer stable word, static, or NULL */
	bool suspected;	   /* the cause is likely and not certain */
	int err;	   /* what the call returned, a positive errno; 0: none */
	int sys_errno;	   /* raw errno of the call in origin; 0: no call failed */
	const char
		*origin; /* static: "ibv_reg_mr", "open", or the ibmr_ call that refused; or NULL */
	char where[512]; /* JSON pointer; "" is the document itself */
	bool has_where;	 /* where applies at all */
	unsigned line, column; /* 1-based; 0: not known */
	int status;	       /* enum ibv_wc_status, -1: none */
	uint32_t vendor_err;   /* valid when status >= 0 */
	int signo;	       /* the signal of FAIL_INTERRUPTED */
	char message[1024];    /* one sentence, valid UTF-8 */
	char hint[512];	       /* what to do about it; "" */
};

/* A place in a document, as a chain of frames on the stack, so that walking costs nothing until
 * something is wrong. A frame is a member (name) or an element (index, when name is NULL). */
#define SPEC_FRAMES 48 /* more than a document of SPEC_MAX_DEPTH can need */

struct at {
	const struct at *up; /* NULL: this frame is a child of the document */
	const char *name;
	size_t index;
};

const char *fail_code_name(enum fail_code code);
enum fail_code fail_code_from_name(const char *name); /* FAIL_NONE: no such word */

/* The exit status of a failure; 0 for FAIL_NONE. */
int fail_exit_status(const struct fail *f);

/* Start a new record: the code, the message and nothing else. Returns -EINVAL, so that
 * `return fail_set(...)` reads well; what JSON cannot carry in the text is replaced by '?'. */
int fail_set(struct fail *f, enum fail_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for a system or library call that failed with sys_errno (positive); returns -sys_errno.
 */
int fail_sys(struct fail *f, enum fail_code code, const char *origin, int sys_errno,
	     const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Another message for the same failure. */
void fail_message(struct fail *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void fail_hint(struct fail *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Take over a library error: rc is what the call returned. list is the member that err->index
 * counts in ("klms", "blocks", "ranges"), or NULL. Returns rc. */
int fail_from_ibmr(struct fail *f, const struct ibmr_err *err, int rc, const char *list);

/* What a call said is what it returned: a failure without a record gets one, and success has none.
 * Returns rc. */
int fail_told(struct fail *f, int rc);

/* Out of memory in the CLI itself; returns -ENOMEM. */
int fail_nomem(struct fail *f);

/* What stands behind the word for so many. */
static inline const char *fail_plural(uint64_t num)
{
	return num == 1 ? "" : "s";
}

/* The record's place: the frames of at as a JSON pointer; NULL is the document itself. A name too
 * long for the record makes it the nearest enclosing place that fits, never half a name. */
void fail_at(struct fail *f, const struct at *at);

/* Put a prefix before the place, e.g. "/steps/2"; no effect on a record without a place. */
void fail_under(struct fail *f, const char *prefix);

/* The place, counted from a step so far, from the plan's root: "/steps/2/klms/1". A record without a
 * place gets the step's. */
void fail_in_step(struct fail *f, size_t index);

#endif /* CLI_FAIL_H */
