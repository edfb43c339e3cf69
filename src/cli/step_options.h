/* SPDX-License-Identifier: BSD-2-Clause */
/* The members of steps as options: each scalar one is the long option of that name, with - for _. */
#ifndef CLI_STEP_OPTIONS_H
#define CLI_STEP_OPTIONS_H

#include <argp.h>
#include <jansson.h>

#include "fail.h"
#include "spec.h"

#define OPT_MEMBER	0x200 /* and the member's number in the command's table */
#define OPT_INIT	0x280 /* the same of the object init */
#define OPT_MEMBERS_END 0x300

/* Ends with {0}; made at the first call. */
const struct argp_option *step_options(enum step_do verb);
/* Put an option's value (NULL where it takes none) into members. */
int step_option_set(enum step_do verb, int key, const char *arg, json_t *members, struct fail *f);
/* Text of the command line as the string of a member: spec_value when it is not UTF-8. */
int step_option_text(json_t *members, const char *name, const char *text, struct fail *f);

#endif /* CLI_STEP_OPTIONS_H */
