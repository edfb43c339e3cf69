/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of asynchronous mode. It sleeps on a futex until a doorbell rings or something is due,
 * takes no signals, and ends when the mode is left.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "queue.h"
#include "thread.h"

static uint32_t wakes; /* the futex */
static bool asleep;
static bool alive; /* under sd_lock */

static void sleep_until(uint32_t seen, uint64_t at)
{
	struct timespec ts = { .tv_sec = (time_t)(at / 1000000000),
			       .tv_nsec = (long)(at % 1000000000) };

	/* An absolute deadline of the monotonic clock. */
	syscall(SYS_futex, &wakes, FUTEX_WAIT_BITSET_PRIVATE, seen, at ? &ts : NULL, NULL,
		FUTEX_BITSET_MATCH_ANY);
}

static void *engine_thread(void *arg)
{
	for (;;) {
		uint32_t seen = __atomic_load_n(&wakes, __ATOMIC_SEQ_CST);
		uint64_t at;

		sd_lock();
		if (sd_config.mode != SD_ASYNC) {
			alive = false;
			sd_engine_step();
			sd_unlock();
			return NULL;
		}
		at = sd_engine_step();
		sd_unlock();
		__atomic_store_n(&asleep, true, __ATOMIC_SEQ_CST);
		sleep_until(seen, at);
		__atomic_store_n(&asleep, false, __ATOMIC_SEQ_CST);
	}
}

static void after_fork(void)
{
	alive = false;
	asleep = false;
}

static bool start(void)
{
	static bool registered;
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;

	if (!registered && pthread_atfork(NULL, NULL, after_fork))
		return false;
	registered = true;
	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	alive = !pthread_create(&thread, &attr, engine_thread, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return alive;
}

bool sd_thread_wake(void)
{
	if (!alive && !start())
		return false;
	__atomic_add_fetch(&wakes, 1, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&asleep, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &wakes, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	return true;
}
