/* SPDX-License-Identifier: BSD-2-Clause */
/* The error record: words, exit statuses, places and texts. */
#include "fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../lib/ibmr.h"
#include "utf8.h"

/* One row per code: its word and the exit status. */
static const struct {
	const char *word;
	int status;
} codes[FAIL_MAX] = {
	[FAIL_NONE] = { "none", 0 },
	[FAIL_USAGE] = { "usage", 2 },
	[FAIL_SPEC_SYNTAX] = { "spec_syntax", 2 },
	[FAIL_SPEC_DUPLICATE] = { "spec_duplicate", 2 },
	[FAIL_SPEC_UNKNOWN_MEMBER] = { "spec_unknown_member", 2 },
	[FAIL_SPEC_MISSING] = { "spec_missing", 2 },
	[FAIL_SPEC_TYPE] = { "spec_type", 2 },
	[FAIL_SPEC_VALUE] = { "spec_value", 2 },
	[FAIL_NO_DEVICE] = { "no_device", 1 },
	[FAIL_NO_PERMISSION] = { "no_permission", 1 },
	[FAIL_UNSUPPORTED] = { "unsupported", 4 },
	[FAIL_NO_SUCH_MR] = { "no_such_mr", 1 },
	[FAIL_EXISTS] = { "exists", 1 },
	[FAIL_STATE] = { "state", 1 },
	[FAIL_IN_USE] = { "in_use", 1 },
	[FAIL_NESTING] = { "nesting", 1 },
	[FAIL_RANGE] = { "range", 1 },
	[FAIL_LIMIT] = { "limit", 1 },
	[FAIL_ACCESS] = { "access", 1 },
	[FAIL_NOT_ON_DEMAND] = { "not_on_demand", 1 },
	[FAIL_MEMLOCK] = { "memlock", 1 },
	[FAIL_NO_MEMORY] = { "no_memory", 1 },
	[FAIL_BAD_ADDRESS] = { "bad_address", 1 },
	[FAIL_KEY_TABLE] = { "key_table", 1 },
	[FAIL_COMPLETION] = { "completion", 1 },
	[FAIL_TIMEOUT] = { "timeout", 6 },
	[FAIL_MISMATCH] = { "mismatch", 3 },
	[FAIL_SESSION] = { "session", 5 },
	[FAIL_IO] = { "io", 1 },
	[FAIL_INTERRUPTED] = { "interrupted", 1 },
};

static const enum fail_code from_library[IBMR_E_MAX] = {
	[IBMR_E_ARGUMENT] = FAIL_SPEC_VALUE,
	[IBMR_E_NO_DEVICE] = FAIL_NO_DEVICE,
	[IBMR_E_NO_PERMISSION] = FAIL_NO_PERMISSION,
	[IBMR_E_UNSUPPORTED] = FAIL_UNSUPPORTED,
	[IBMR_E_STATE] = FAIL_STATE,
	[IBMR_E_IN_USE] = FAIL_IN_USE,
	[IBMR_E_NESTING] = FAIL_NESTING,
	[IBMR_E_RANGE] = FAIL_RANGE,
	[IBMR_E_LIMIT] = FAIL_LIMIT,
	[IBMR_E_ACCESS] = FAIL_ACCESS,
	[IBMR_E_NOT_ON_DEMAND] = FAIL_NOT_ON_DEMAND,
	[IBMR_E_MEMLOCK] = FAIL_MEMLOCK,
	[IBMR_E_NO_MEMORY] = FAIL_NO_MEMORY,
	[IBMR_E_BAD_ADDRESS] = FAIL_BAD_ADDRESS,
	[IBMR_E_KEY_TABLE] = FAIL_KEY_TABLE,
	[IBMR_E_COMPLETION] = FAIL_COMPLETION,
	[IBMR_E_TIMEOUT] = FAIL_TIMEOUT,
	[IBMR_E_IO] = FAIL_IO,
	[IBMR_E_INTERRUPTED] = FAIL_INTERRUPTED,
};

const char *fail_code_name(enum fail_code code)
{
	return (unsigned)code < FAIL_MAX ? codes[code].word : "none";
}

enum fail_code fail_code_from_name(const char *name)
{
	int i;

	for (i = FAIL_NONE + 1; i < FAIL_MAX; i++)
		if (!strcmp(codes[i].word, name))
			return i;
	return FAIL_NONE;
}

int fail_exit_status(const struct fail *f)
{
	if (f->code == FAIL_INTERRUPTED && f->signo > 0)
		return 128 + f->signo;
	return codes[f->code].status;
}

/* Print into a record's buffer: always terminated, always UTF-8; a text that had to end early says
 * so by three dots. */
static void __attribute__((format(printf, 3, 0)))
print(char *buf, size_t size, const char *fmt, va_list ap)
{
	int n = vsnprintf(buf, size, fmt, ap);

	if (n < 0)
		snprintf(buf, size, "%s", "the message cannot be printed");
	else if ((size_t)n >= size)
		memcpy(buf + utf8_boundary(buf, size - 4), "...", 4);
	utf8_clean(buf);
}

static void reset(struct fail *f, enum fail_code code)
{
	memset(f, 0, sizeof(*f));
	f->code = code;
	f->status = -1;
}

int fail_set(struct fail *f, enum fail_code code, const char *fmt, ...)
{
	va_list ap;

	reset(f, code);
	va_start(ap, fmt);
	print(f->message, sizeof(f->message), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int fail_sys(struct fail *f, enum fail_code code, const char *origin, int sys_errno,
	     const char *fmt, ...)
{
	va_list ap;

	reset(f, code);
	f->origin = origin;
	f->err = f->sys_errno = sys_errno;
	f->cause = code == FAIL_NO_MEMORY ? ibmr_memory_cause() : NULL;
	va_start(ap, fmt);
	print(f->message, sizeof(f->message), fmt, ap);
	va_end(ap);
	return -sys_errno;
}

void fail_message(struct fail *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print(f->message, sizeof(f->message), fmt, ap);
	va_end(ap);
}

void fail_hint(struct fail *f, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print(f->hint, sizeof(f->hint), fmt, ap);
	va_end(ap);
}

int fail_nomem(struct fail *f)
{
	return fail_sys(f, FAIL_NO_MEMORY, "malloc", ENOMEM, "out of memory");
}

int fail_from_ibmr(struct fail *f, const struct ibmr_err *err, int rc, const char *list)
{
	struct at at_list = { .name = list };
	struct at at_entry = { .up = &at_list };
	enum fail_code code = FAIL_NONE;

	if ((unsigned)err->code < IBMR_E_MAX)
		code = from_library[err->code];
	if (code == FAIL_NONE) /* a library that broke its promise must not read as success */
		code = FAIL_IO;
	fail_set(f, code, "%s", err->text);
	if (err->hint[0])
		fail_hint(f, "%s", err->hint);
	f->err = -rc;
	f->cause = err->cause;
	f->suspected = err->cause && !err->certain;
	f->sys_errno = err->sys_errno;
	f->origin = err->origin;
	f->status = err->status;
	f->vendor_err = err->status >= 0 ? err->vendor_err : 0;
	if (list && err->index >= 0) {
		at_entry.index = err->index;
		fail_at(f, &at_entry);
	}
	return rc;
}

int fail_told(struct fail *f, int rc)
{
	if (!rc) {
		reset(f, FAIL_NONE);
	} else if (rc == -ENOMEM && f->code == FAIL_NONE) {
		fail_nomem(f);
	} else if (f->code == FAIL_NONE) {
		fail_set(f, FAIL_IO, "failed without a reason: %s", strerror(-rc));
		f->err = -rc;
	}
	return rc;
}

/* ---- places ----------------------------------------------------------------- */

/* One reference token, escaped as RFC 6901 says; returns its length, above room when it does not
 * fit. */
static size_t put_token(char *buf, size_t room, const struct at *at)
{
	const char *c;
	size_t n = 0;

	if (!at->name)
		return snprintf(buf, room, "/%zu", at->index);
	if (room)
		buf[n++] = '/';
	for (c = at->name; *c && n + 2 < room; c++) {
		if (*c == '~' || *c == '/') {
			buf[n++] = '~';
			buf[n++] = *c == '~' ? '0' : '1';
		} else {
			buf[n++] = *c;
		}
	}
	if (*c)
		return room;
	buf[n] = '\0';
	return n;
}

void fail_at(struct fail *f, const struct at *at)
{
	const struct at *frames[SPEC_FRAMES];
	size_t num = 0, len = 0, n;

	for (; at && num < SPEC_FRAMES; at = at->up)
		frames[num++] = at;
	f->has_where = true;
	f->where[0] = '\0';
	while (num) {
		n = put_token(f->where + len, sizeof(f->where) - len, frames[--num]);
		if (n >= sizeof(f->where) - len) {
			f->where[len] = '\0';
			return;
		}
		len += n;
	}
}

void fail_under(struct fail *f, const char *prefix)
{
	char inner[sizeof(f->where)];
	size_t len = strlen(prefix);
	char *cut;

	if (!f->has_where)
		return;
	memcpy(inner, f->where, sizeof(inner));
	while (len + strlen(inner) >= sizeof(f->where)) {
		cut = strrchr(inner, '/');
		if (!cut)
			return;
		*cut = '\0';
	}
	memcpy(f->where, prefix, len);
	memcpy(f->where + len, inner, strlen(inner) + 1);
}

void fail_in_step(struct fail *f, size_t index)
{
	char prefix[40];

	snprintf(prefix, sizeof(prefix), "/steps/%zu", index);
	if (!f->has_where)
		fail_at(f, NULL);
	fail_under(f, prefix);
}
