/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What needs no system call each time: the process's number and the thread's stack. A command's
 * attributes and most of what they point to lie in frames of libibverbs and libmlx5, which are there as
 * long as the call runs.
 */
#include "process.h"
#include "raw.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/auxv.h>

/* ---- the number ------------------------------------------------------------------- */

/* One page that the kernel empties in every child that has memory of its own. */
static _Atomic(_Atomic pid_t *) known;
static atomic_bool cannot_know; /* an older kernel */

static void make_known(void)
{
	long page = sysconf(_SC_PAGESIZE);
	long at = sd_raw(SYS_mmap, NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1L, 0L);
	_Atomic(pid_t) *none = NULL, *ours = (void *)at;

	if (at < 0 && at > -4096)
		return;
	if (sd_raw_madvise(ours, (size_t)page, MADV_WIPEONFORK))
		atomic_store(&cannot_know, true);
	else if (atomic_compare_exchange_strong(&known, &none, ours))
		return;
	sd_raw(SYS_munmap, ours, page);
}

pid_t sd_pid(void)
{
	_Atomic(pid_t) *at = atomic_load_explicit(&known, memory_order_acquire);
	pid_t pid = at ? atomic_load_explicit(at, memory_order_relaxed) : 0;

	if (pid)
		return pid;
	if (!at && !atomic_load_explicit(&cannot_know, memory_order_relaxed))
		make_known();
	at = atomic_load_explicit(&known, memory_order_acquire);
	pid = (pid_t)sd_raw(SYS_getpid);
	if (at)
		atomic_store_explicit(at, pid, memory_order_relaxed);
	return pid;
}

/* ---- the stack ---------------------------------------------------------------------- */

#define FIRST_DEPTH (1u << 20) /* of the first thread's stack: how much of it is taken for sure */

static __thread struct {
	uintptr_t low, high; /* low > high: it cannot be known */
} stack __attribute__((tls_model("initial-exec")));

/* The kernel has put these bytes above the first frame of the first thread. */
static bool find_first(uintptr_t here)
{
	uintptr_t high = getauxval(AT_RANDOM);

	if (here > high || high - here > FIRST_DEPTH)
		return false;
	stack.low = high - FIRST_DEPTH;
	stack.high = high;
	return true;
}

static void find_stack(uintptr_t here)
{
	pthread_attr_t attr;
	void *low;
	size_t size;

	if (find_first(here))
		return;
	stack.low = UINTPTR_MAX;
	stack.high = 1;
	if (pthread_getattr_np(pthread_self(), &attr))
		return;
	if (!pthread_attr_getstack(&attr, &low, &size)) {
		stack.low = (uintptr_t)low;
		stack.high = (uintptr_t)low + size;
	}
	pthread_attr_destroy(&attr);
}

bool sd_on_stack(const void *at, size_t size)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	if (!stack.high)
		find_stack(here);
	/* Who runs on a stack of his own making is not on this one. */
	return here >= stack.low && (uintptr_t)at >= here && (uintptr_t)at < stack.high &&
	       size <= stack.high - (uintptr_t)at;
}
