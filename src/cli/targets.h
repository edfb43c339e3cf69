/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices by their stated limits, for checks that touch none. */
#ifndef CLI_TARGETS_H
#define CLI_TARGETS_H

#include "../lib/ibmr.h"

extern const struct ibmr_caps targets[]; /* ends with an empty name */

/* NULL: no such target. */
const struct ibmr_caps *target_find(const char *name);
/* The target that a plan's device stands for; device may be NULL. */
const struct ibmr_caps *target_of_device(const char *device);

#endif /* CLI_TARGETS_H */
