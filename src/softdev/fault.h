/* SPDX-License-Identifier: BSD-2-Clause */
/* Plain loads and stores of the process's memory that may fault. */
#ifndef SOFTDEV_FAULT_H
#define SOFTDEV_FAULT_H

#include <stdbool.h>

/* Code that may fault under a guard: a fault anywhere else is the process's own. */
#define SD_GUARDED __attribute__((section("sd_guarded"), noinline))

/* May this thread be guarded now? Asks the kernel, so once for each transfer and not each piece. */
bool sd_guard_ready(void);
/* fn(arg), fn and all it calls being SD_GUARDED and holding nothing; -EFAULT when it faults. */
int sd_guard_run(int (*fn)(void *arg), void *arg);

#endif /* SOFTDEV_FAULT_H */
