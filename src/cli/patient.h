/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files that may keep one waiting: a FIFO without a peer, a terminal, a lease that another process
 * holds. Waiting for them takes no longer than the bound, and a signal ends it.
 *
 * What fails fills f: timeout, interrupted, or io with the call's errno; then a negative errno is
 * returned. name is for messages. bound NULL: only signals end it.
 */
#ifndef CLI_PATIENT_H
#define CLI_PATIENT_H

#include <sys/types.h>

#include "cli.h"

/* flags as of open(2); the descriptor does not block. */
int patient_open(const char *path, int flags, const struct bound *bound, struct fail *f);
/* Some bytes, up to num; 0 at the end. */
ssize_t patient_read(int fd, void *buf, size_t num, const char *name, const struct bound *bound,
		     struct fail *f);
/* All of them: 0. */
int patient_write(int fd, const void *buf, size_t num, const char *name, const struct bound *bound,
		  struct fail *f);

/* A call on a file failed with number, in the words of all of these. Returns -number. */
int patient_fail(struct fail *f, const char *call, const char *name, int number);

#endif /* CLI_PATIENT_H */
