/* SPDX-License-Identifier: BSD-2-Clause */
/* What a step's outcome says when there was no device. */
#ifndef CLI_FORETELL_H
#define CLI_FORETELL_H

#include "session.h"

/* Whether a step whose dispatch in a dry session returned rc would end as its plan expects, as far
 * as it can be foretold: 0, or the failure that `run` would give. What only a device or the machine
 * can tell is taken as met, and then what the step made is taken back when it was expected to fail.
 */
int foretell_outcome(struct session *s, const struct step *step, struct reply *reply, int rc,
		     struct fail *f);

#endif /* CLI_FORETELL_H */
