/* SPDX-License-Identifier: BSD-2-Clause */
/* What a step may expect of its result. */
#ifndef CLI_EXPECT_H
#define CLI_EXPECT_H

#include "spec.h"

/* The form of an expect object: {"error": CODE}, or members that the result of verb has. */
int expect_form(const json_t *expect, enum step_do verb, enum fail_code *ret_error, struct fail *f);

#endif /* CLI_EXPECT_H */
