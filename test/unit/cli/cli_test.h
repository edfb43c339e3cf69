/* SPDX-License-Identifier: BSD-2-Clause */
/* What the unit tests of the CLI's input side share. */
#ifndef CLI_TEST_H
#define CLI_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "spec.h"

/* The call must fail with this code; needs a struct fail f in scope. */
#define REFUSED(call, want)                                                               \
	do {                                                                              \
		int ret_;                                                                 \
		memset(&f, 0xa5, sizeof(f));                                              \
		ret_ = (call);                                                            \
		if (ret_ >= 0)                                                            \
			fail_msg("%s: succeeded", #call);                                 \
		if (f.code != (want))                                                     \
			fail_msg("%s: %s: %s", #call, fail_code_name(f.code), f.message); \
	} while (0)

/* The call must work; needs a struct fail f in scope. */
#define OK(call)                                              \
	do {                                                  \
		if (call)                                     \
			fail_msg("%s: %s", #call, f.message); \
	} while (0)

static inline int parse_bytes(const char *bytes, size_t size, json_t **ret_doc, struct fail *f)
{
	struct spec_text text = { .size = size };
	int ret;

	/* an exact copy, so that a sanitizer sees a read past the end */
	text.bytes = malloc(size ? size : 1);
	assert_non_null(text.bytes);
	memcpy(text.bytes, bytes, size);
	ret = spec_parse_text(&text, ret_doc, f);
	spec_text_free(&text);
	return ret;
}

#endif /* CLI_TEST_H */
