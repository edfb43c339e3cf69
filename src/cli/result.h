/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects and answers of the library as JSON, as ibmr-result(5) says. NULL: out of memory. */
#ifndef CLI_RESULT_H
#define CLI_RESULT_H

#include <jansson.h>
#include <stdint.h>

#include "session.h"

json_t *result_hex(uint64_t value);  /* "0x..." */
json_t *result_count(int64_t value); /* an integer; null when negative */
json_t *result_access(uint64_t access);
json_t *result_mr(const struct ibmr_mr *mr); /* {"mr": {...}} */
json_t *result_device(const struct ibmr_caps *caps, bool software);
/* A device that does not open: the same members, null where nothing is known. */
json_t *result_broken_device(const char *name, bool software, const struct fail *fail);
/* As writer_fail has it. */
json_t *result_fail(const struct fail *fail);

/* A finished result, or out of memory. */
int reply_result(struct reply *reply, json_t *result);

#endif /* CLI_RESULT_H */
