/* SPDX-License-Identifier: BSD-2-Clause */
/* A device's limits as a file: what `devices --save-profile` writes and `check --target` reads. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include <stdbool.h>

#include "../lib/ibmr.h"
#include "fail.h"

/* Failures are io; a file that was not there before is taken away again. */
int profile_save(const char *path, const struct ibmr_caps *caps, bool software, uint32_t timeout_ms,
		 struct fail *f);
/* io, or spec_* with the place in the profile, whose name is in the message. */
int profile_load(const char *path, struct ibmr_caps *ret_caps, struct fail *f);

#endif /* CLI_PROFILE_H */
