/* SPDX-License-Identifier: BSD-2-Clause */
/* Error objects: codes, their errnos and their texts. */
#include "private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int err_no; /* what a call returns when the library itself refuses */
} codes[IBMR_E_MAX] = {
	[IBMR_OK] = { "ok", 0 },
	[IBMR_E_ARGUMENT] = { "argument", EINVAL },
	[IBMR_E_NO_DEVICE] = { "no_device", ENODEV },
	[IBMR_E_NO_PERMISSION] = { "no_permission", EACCES },
	[IBMR_E_UNSUPPORTED] = { "unsupported", EOPNOTSUPP },
	[IBMR_E_STATE] = { "state", EINVAL },
	[IBMR_E_IN_USE] = { "in_use", EBUSY },
	[IBMR_E_NESTING] = { "nesting", ELOOP },
	[IBMR_E_RANGE] = { "range", EFAULT },
	[IBMR_E_LIMIT] = { "limit", E2BIG },
	[IBMR_E_ACCESS] = { "access", EACCES },
	[IBMR_E_NOT_ON_DEMAND] = { "not_on_demand", EINVAL },
	[IBMR_E_MEMLOCK] = { "memlock", ENOMEM },
	[IBMR_E_NO_MEMORY] = { "no_memory", ENOMEM },
	[IBMR_E_BAD_ADDRESS] = { "bad_address", EFAULT },
	[IBMR_E_KEY_TABLE] = { "key_table", ENOSPC },
	[IBMR_E_COMPLETION] = { "completion", EIO },
	[IBMR_E_TIMEOUT] = { "timeout", ETIMEDOUT },
	[IBMR_E_IO] = { "io", EIO },
	[IBMR_E_INTERRUPTED] = { "interrupted", EINTR },
};

const char *ibmr_code_name(enum ibmr_code code)
{
	if ((unsigned)code >= IBMR_E_MAX)
		return "unknown";
	return codes[code].name;
}

int ibmri_code_errno(enum ibmr_code code)
{
	return codes[code].err_no;
}

enum ibmr_code ibmri_code_of(int err_no)
{
	switch (err_no) {
	case EACCES:
	case EPERM:
		return IBMR_E_NO_PERMISSION;
	case EOPNOTSUPP:
	case ENOSYS:
	case EPROTONOSUPPORT:
	case ENOTTY:
		return IBMR_E_UNSUPPORTED;
	case ENOMEM:
		return IBMR_E_NO_MEMORY;
	case EAGAIN:
	case ENOSPC:
		return IBMR_E_KEY_TABLE;
	case ENODEV:
	case ENXIO:
		return IBMR_E_NO_DEVICE;
	case EFAULT:
		return IBMR_E_BAD_ADDRESS;
	case ETIMEDOUT:
		return IBMR_E_TIMEOUT;
	case EINTR:
		return IBMR_E_INTERRUPTED;
	case EBUSY:
		return IBMR_E_IN_USE;
	default:
		return IBMR_E_COMPLETION;
	}
}

/* Append to buf; a sentence cut at the end never stops within a UTF-8 character. */
__attribute__((format(printf, 3, 0))) static void append(char *buf, size_t size, const char *fmt,
							 va_list ap)
{
	size_t used = strlen(buf);
	int n = vsnprintf(buf + used, size - used, fmt, ap);
	size_t end, start;

	if (n < 0)
		buf[used] = '\0';
	if (n < 0 || (size_t)n < size - used)
		return;
	end = size - 1;
	for (start = end; start > used && ((unsigned char)buf[start - 1] & 0xc0) == 0x80; start--)
		;
	if (start > used && ((unsigned char)buf[start - 1] & 0xc0) == 0xc0) {
		unsigned char lead = (unsigned char)buf[start - 1];
		size_t want = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;

		if (end - (start - 1) < want)
			buf[start - 1] = '\0';
	}
}

__attribute__((format(printf, 5, 0))) static void fill(struct ibmr_err *err, enum ibmr_code code,
						       const char *origin, int sys_errno,
						       const char *fmt, va_list ap)
{
	memset(err, 0, sizeof(*err));
	err->code = code;
	err->origin = origin;
	err->sys_errno = sys_errno;
	err->index = -1;
	err->status = -1;
	append(err->text, sizeof(err->text), fmt, ap);
}

int ibmri_err_refuse(struct ibmr_err *err, enum ibmr_code code, const char *origin, const char *fmt,
		     ...)
{
	va_list ap;

	if (err) {
		va_start(ap, fmt);
		fill(err, code, origin, 0, fmt, ap);
		va_end(ap);
	}
	return -codes[code].err_no;
}

int ibmri_err_failed(struct ibmr_err *err, enum ibmr_code code, const char *origin, int err_no,
		     const char *fmt, ...)
{
	va_list ap;

	/* a call that fails without saying why must not look like success */
	if (err_no <= 0)
		err_no = EIO;
	if (err) {
		va_start(ap, fmt);
		fill(err, code, origin, err_no, fmt, ap);
		va_end(ap);
	}
	return -err_no;
}

static void set_cause(struct ibmr_err *err, const char *cause, bool certain)
{
	if (!err)
		return;
	err->cause = cause;
	err->certain = certain;
}

void ibmri_err_cause(struct ibmr_err *err, const char *cause)
{
	set_cause(err, cause, true);
}

void ibmri_err_suspect(struct ibmr_err *err, const char *cause)
{
	set_cause(err, cause, false);
}

void ibmri_err_index(struct ibmr_err *err, uint64_t index)
{
	if (err)
		err->index = (int64_t)index;
}

void ibmri_err_hint(struct ibmr_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	err->hint[0] = '\0';
	va_start(ap, fmt);
	append(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
}

void ibmri_err_more(struct ibmr_err *err, const char *fmt, ...)
{
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	append(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
}
