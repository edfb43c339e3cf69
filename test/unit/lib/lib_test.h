/* SPDX-License-Identifier: BSD-2-Clause */
/* What the library's unit tests share. */
#ifndef LIB_TEST_H
#define LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "private.h"

#define PAGE 4096ull
#define KIB  1024ull
#define MIB  (1024 * KIB)
#define GIB  (1024 * MIB)

#define LW IBMR_ACCESS_LOCAL_WRITE
#define RW IBMR_ACCESS_REMOTE_WRITE
#define RR IBMR_ACCESS_REMOTE_READ
#define RA IBMR_ACCESS_REMOTE_ATOMIC
#define OD IBMR_ACCESS_ON_DEMAND

/* The call must work; the library's sentence is shown when it does not. */
#define OK(call)                                                       \
	do {                                                           \
		int ret_ = (call);                                     \
		if (ret_)                                              \
			fail_msg("%s: %d: %s", #call, ret_, err.text); \
	} while (0)

/* The call must fail with this errno and code; needs a struct ibmr_err err in scope. */
#define REFUSED(call, err_no, want)                                                                \
	do {                                                                                       \
		int ret_;                                                                          \
		memset(&err, 0, sizeof(err));                                                      \
		ret_ = (call);                                                                     \
		if (ret_ != -(err_no) || err.code != (want))                                       \
			fail_msg("%s: returned %d, %s: %s", #call, ret_, ibmr_code_name(err.code), \
				 err.text);                                                        \
	} while (0)

#define SAYS(part)                                                              \
	do {                                                                    \
		if (!strstr(err.text, part))                                    \
			fail_msg("\"%s\" does not say \"%s\"", err.text, part); \
	} while (0)

static inline struct ibmr_mr_info info_of(const struct ibmr_mr *mr)
{
	struct ibmr_mr_info info;

	ibmr_mr_query(mr, &info);
	return info;
}

#endif /* LIB_TEST_H */
