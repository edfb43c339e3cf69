/* SPDX-License-Identifier: BSD-2-Clause */
/* What the MRs of a checked document come to: lengths, forms, and memory locked. */
#ifndef CLI_BUDGET_H
#define CLI_BUDGET_H

#include <jansson.h>
#include <stdint.h>

#include "session.h"

struct budget {
	json_t *mrs;	 /* one object for each MR, in the order in which they came to be */
	json_t *places;	 /* name -> index in mrs of the newest MR of that name */
	uint64_t locked; /* the most that was locked at one time */
};

int budget_init(struct budget *b, struct fail *f);
void budget_free(struct budget *b);

/* After a step that made or filled the MR of that name; made: it is a new one. */
int budget_note(struct budget *b, const struct session *s, const char *name, bool made,
		struct fail *f);

/* Add an entry for something that is not in the session. */
int budget_add(struct budget *b, json_t *entry, struct fail *f);

#endif /* CLI_BUDGET_H */
