/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread of asynchronous mode. It sleeps on a futex until a doorbell rings or something is due,
 * takes no signals but those of its own copies, and ends when the mode is left. While there are queue
 * pairs it also looks by itself now and then, for programs that ring without taking a lock of libmlx5
 * (mlx5dv): often while that finds something, seldom otherwise.
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

#define LOOK_OFTEN  20000 /* ns */
#define LOOK_SELDOM 4000000

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

/* When to wake: for what is due, or to look. */
static uint64_t wake_at(uint64_t due, uint64_t period)
{
	uint64_t look = sd_qps ? sd_now_ns() + period : 0;

	return !due || (look && look < due) ? look : due;
}

static void *engine_thread(void *arg)
{
	uint64_t period = LOOK_SELDOM, at;
	bool told = true;

	for (;;) {
		uint32_t seen = __atomic_load_n(&wakes, __ATOMIC_SEQ_CST);

		sd_lock();
		if (sd_config.mode != SD_ASYNC) {
			alive = false; /* whoever changed it has seen to the work */
			sd_unlock();
			return NULL;
		}
		if (sd_engine_step(&at) && !told)
			period = LOOK_OFTEN;
		else if (!told && period < LOOK_SELDOM)
			period *= 2;
		at = wake_at(at, period);
		sd_unlock();
		__atomic_store_n(&asleep, true, __ATOMIC_SEQ_CST);
		sleep_until(seen, at);
		__atomic_store_n(&asleep, false, __ATOMIC_SEQ_CST);
		told = __atomic_load_n(&wakes, __ATOMIC_SEQ_CST) != seen;
	}
}

void sd_thread_forked(void)
{
	alive = false;
	asleep = false;
}

static bool start(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;

	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	sigdelset(&all, SIGSEGV); /* faults of copies: fault.c */
	sigdelset(&all, SIGBUS);
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
