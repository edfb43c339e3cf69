/* SPDX-License-Identifier: BSD-2-Clause */
/* What is known of the process and of the calling thread, without asking the kernel each time. */
#ifndef SOFTDEV_PROCESS_H
#define SOFTDEV_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The process's number; also right in a child, whatever system call made it. */
pid_t sd_pid(void);

/* Is [at, at + size) in the frames of those who called us? It is there and writable then. */
bool sd_on_stack(const void *at, size_t size);

#endif /* SOFTDEV_PROCESS_H */
