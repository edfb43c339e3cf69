/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands before the system's <infiniband/verbs.h> for programs built by pkg-config libibmr-exp: the
 * header of the old library brought the experimental interface with it.
 */
#pragma GCC system_header
#include_next <infiniband/verbs.h>
#include <infiniband/verbs_exp.h>
