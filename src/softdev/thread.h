/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of asynchronous mode. */
#ifndef SOFTDEV_THREAD_H
#define SOFTDEV_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* Make it look for work, starting it when there is none. Called with sd_lock held. false: no thread
 * can be had. */
bool sd_thread_wake(void);

/* In a child of fork there is none. */
void sd_thread_forked(void);

/* engine.c: one round of work, with sd_lock held: was a doorbell rung that had not been seen? *ret_at
 * is when to wake next, 0: when told. */
bool sd_engine_step(uint64_t *ret_at);

#endif /* SOFTDEV_THREAD_H */
