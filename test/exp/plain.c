/* SPDX-License-Identifier: BSD-2-Clause */
/* An object of a program that was never told of experimental verbs. */
#define IBMR_EXP_KEEP_VERBS
#include "rig.h"

int plain_dereg_mr(struct ibv_mr *mr)
{
	return ibv_dereg_mr(mr);
}
