/* SPDX-License-Identifier: BSD-2-Clause */
/* A fill spec by itself: the steps around it - members, create, fill - in a session without a device. */
#ifndef CLI_LONE_SPEC_H
#define CLI_LONE_SPEC_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "fail.h"
#include "session.h"

/* The name of the MR that the spec fills: none that a document can use. */
#define LONE_MR "spec/"

struct lone_spec {
	const json_t *doc;
	const char *const *mrs; /* each NAME=SIZE: how long a member is */
	size_t num_mrs;
	/* Called for each member when it is made; known: its length was given. NULL: nobody asks. */
	int (*note)(void *arg, const char *name, bool known, struct fail *f);
	void *arg;
};

/* *ret_open: the total depends on a length that was not given. */
int lone_spec_make(const struct lone_spec *spec, struct session *s, bool *ret_open, struct fail *f);

#endif /* CLI_LONE_SPEC_H */
