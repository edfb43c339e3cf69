/* SPDX-License-Identifier: BSD-2-Clause */
/* How far work is that takes long: one line on standard error when that is a terminal, else nothing. */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether anybody would see it. */
bool progress_is_seen(void);
/* Whether it is time to tell: a second after the first call with 0 in *ns, and then from time to time. */
bool progress_due(uint64_t *ns);
/* Bytes done; total 0: nobody knows of how many. */
void progress_show(uint64_t done, uint64_t total);
/* Take the line away, before anything else is written there. */
void progress_end(void);

#endif /* CLI_PROGRESS_H */
