/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects and answers of the library as JSON, as ibmr-result(5) says. NULL: out of memory. */
#ifndef CLI_RESULT_H
#define CLI_RESULT_H

#include <jansson.h>
#include <stdint.h>

#include "out.h"
#include "session.h"

/* value, or NULL when not all came into it (rc is not 0): then it is let go of. */
json_t *result_whole(json_t *value, int rc);
json_t *result_hex(uint64_t value);  /* "0x..." */
json_t *result_count(int64_t value); /* an integer; null when negative */
json_t *result_device(const struct ibmr_caps *caps, bool software);
/* A device that does not open: the same members, null where nothing is known. */
json_t *result_broken_device(const char *name, bool software, const struct fail *fail);
/* As writer_fail has it. */
json_t *result_fail(const struct fail *fail);

/* The text of a result as a value. */
json_t *result_tree(const struct growing *text);

/* A result is written as an object, which reply_begin opens and reply_end closes. 0 or -ENOMEM. */
void reply_begin(struct writer *w, const struct session *s, struct reply *reply);
int reply_end(struct writer *w, struct reply *reply);

void writer_mr(struct writer *w, const struct ibmr_mr *mr);
/* {"mr": {...}} */
int reply_mr(const struct session *s, const struct ibmr_mr *mr, struct reply *reply);

#endif /* CLI_RESULT_H */
