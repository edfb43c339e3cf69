/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the device's own copies, in the process's memory.
 *
 * A handler for SIGSEGV and SIGBUS stands in front of the program's: a fault of a guarded copy (this
 * thread is in one, and the instruction is one of it) goes back to where the copy began, and
 * everything else to the program as if we were not here, with its mask, its flags and its stack. It is
 * placed at the first copy that needs it. Handlers that the program sets later through libc are taken
 * over at once, and it is told of its own and never of ours. What is done behind libc's back (a raw
 * system call, as Go and the sanitizers make) is found by asking the kernel before each such copy: a
 * handler is taken over then, and a thread that blocks one of the two signals is not guarded.
 */
#include "fault.h"
#include "raw.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#ifdef __x86_64__

#define PUBLIC __attribute__((visibility("default")))

int __sigaction(int sig, const struct sigaction *act, struct sigaction *old);

/* As the kernel has it. */
struct action {
	union {
		__sighandler_t handler;
		void (*info)(int sig, siginfo_t *info, void *uc);
	};
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

#define KERNEL_RESTORER 0x04000000ul
#define MASK_BYTES	8
#define HARD_LATER	5 /* BUS_MCEERR_AO: about memory that nobody has touched yet */
#define FLAG_DIRECTION	0x400

/* ---- the guard ------------------------------------------------------------------- */

struct frame {
	uintptr_t sp;
	struct frame *outer;
};
static __thread struct frame *innermost __attribute__((tls_model("initial-exec")));

extern const char __start_sd_guarded[] __attribute__((visibility("hidden")));
extern const char __stop_sd_guarded[] __attribute__((visibility("hidden")));

/* Calls fn(arg) with the stack pointer saved. After a fault the handler resumes at sd_guard_back with
 * that stack pointer, and the registers that a function must keep are on the stack. */
int sd_guard_enter(int (*fn)(void *arg), void *arg, uintptr_t *ret_sp);
void sd_guard_back(void);
void sd_guard_restore(void);

#define PUSH(reg) \
	"	push %" reg "\n	.cfi_adjust_cfa_offset 8\n	.cfi_rel_offset " reg ", 0\n"
#define POP(reg) "	pop %" reg "\n	.cfi_adjust_cfa_offset -8\n	.cfi_restore " reg "\n"

/* clang-format off */
__asm__("	.pushsection .text\n"
	"	.globl sd_guard_enter, sd_guard_back, sd_guard_restore\n"
	"	.hidden sd_guard_enter, sd_guard_back, sd_guard_restore\n"
	"	.type sd_guard_enter, @function\n"
	"sd_guard_enter:\n"
	"	.cfi_startproc\n"
	PUSH("rbp") PUSH("rbx") PUSH("r12") PUSH("r13") PUSH("r14") PUSH("r15")
	"	sub $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	mov %rsp, (%rdx)\n"
	"	mov %rdi, %rax\n"
	"	mov %rsi, %rdi\n"
	"	call *%rax\n"
	"1:	add $8, %rsp\n"
	"	.cfi_remember_state\n"
	"	.cfi_adjust_cfa_offset -8\n"
	POP("r15") POP("r14") POP("r13") POP("r12") POP("rbx") POP("rbp")
	"	ret\n"
	"	.cfi_restore_state\n"
	"sd_guard_back:\n"
	"	mov $-14, %eax\n" /* -EFAULT */
	"	jmp 1b\n"
	"	.cfi_endproc\n"
	"	.size sd_guard_enter, . - sd_guard_enter\n"
	/* what debuggers know a signal frame by: exactly these two instructions */
	"	.type sd_guard_restore, @function\n"
	"	nop\n"
	"sd_guard_restore:\n"
	"	mov $15, %rax\n"
	"	syscall\n"
	"	.size sd_guard_restore, . - sd_guard_restore\n"
	"	.popsection\n");
/* clang-format on */

int sd_guard_run(int (*fn)(void *arg), void *arg)
{
	struct frame f = { .outer = innermost };
	int ret;

	innermost = &f;
	atomic_signal_fence(memory_order_seq_cst);
	ret = sd_guard_enter(fn, arg, &f.sp);
	atomic_signal_fence(memory_order_seq_cst);
	innermost = f.outer;
	return ret;
}

/* ---- the program's actions -------------------------------------------------------------- */

static const int signals[2] = { SIGSEGV, SIGBUS };

/* What the program has set, and what that took the place of when it was set behind libc's back. */
struct actions {
	struct action now, before;
	bool replaced;
};

/* For the handler to read at any time: changed under the lock, the number is odd meanwhile. */
static struct {
	atomic_uint number;
	struct actions actions;
} programs[2];

static atomic_bool placed; /* once, and for ever */
static atomic_flag locked = ATOMIC_FLAG_INIT;

static int index_of(int sig)
{
	return sig == SIGSEGV ? 0 : sig == SIGBUS ? 1 : -1;
}

static long raw_action(int sig, const struct action *act, struct action *old)
{
	return sd_raw(SYS_rt_sigaction, sig, act, old, MASK_BYTES);
}

/* With all signals blocked: a handler that sets handlers must not find the lock taken by itself. */
static void lock(uint64_t *ret_mask)
{
	uint64_t all = UINT64_MAX;

	sd_raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, ret_mask, MASK_BYTES);
	while (atomic_flag_test_and_set_explicit(&locked, memory_order_acquire))
		sd_raw(SYS_sched_yield);
}

static void unlock(const uint64_t *mask)
{
	atomic_flag_clear_explicit(&locked, memory_order_release);
	sd_raw(SYS_rt_sigprocmask, SIG_SETMASK, mask, NULL, MASK_BYTES);
}

static struct actions recall(int i)
{
	struct actions is;
	unsigned int before;

	do {
		before = atomic_load(&programs[i].number);
		is = programs[i].actions;
		atomic_thread_fence(memory_order_acquire);
	} while ((before & 1) || before != atomic_load(&programs[i].number));
	return is;
}

static void remember(int i, const struct action *act)
{
	atomic_fetch_add(&programs[i].number, 1);
	programs[i].actions.now = *act;
	atomic_fetch_add(&programs[i].number, 1);
}

static void remember_replaced(int i, const struct action *act)
{
	struct actions is = { *act, programs[i].actions.now, true };

	atomic_fetch_add(&programs[i].number, 1);
	programs[i].actions = is;
	atomic_fetch_add(&programs[i].number, 1);
}

/* ---- the handler --------------------------------------------------------------------------- */

static void as_default(int sig, siginfo_t *info)
{
	const struct action dfl = { .handler = SIG_DFL };
	long pid, tid;

	raw_action(sig, &dfl, NULL);
	/* A fault comes again when we return; what was sent, or is about other memory, is sent again. */
	if (info->si_code > 0 && !(sig == SIGBUS && info->si_code == HARD_LATER))
		return;
	pid = sd_raw(SYS_getpid);
	tid = sd_raw(SYS_gettid);
	sd_raw(SYS_rt_tgsigqueueinfo, pid, tid, sig, info);
}

/* chained: called by a handler that has read ours from the kernel, for what it does not want itself. */
static void pass_on(int sig, siginfo_t *info, void *uc, bool chained)
{
	int i = index_of(sig);
	struct actions is = recall(i);
	struct action act = chained && is.replaced ? is.before : is.now;

	if (act.handler == SIG_IGN && info->si_code <= 0)
		return;
	if (act.handler == SIG_DFL || act.handler == SIG_IGN) {
		as_default(sig, info);
		return;
	}
	if (act.flags & SA_RESETHAND) {
		struct action dfl = { .handler = SIG_DFL };
		uint64_t mask;

		lock(&mask);
		remember(i, &dfl);
		unlock(&mask);
	}
	if (act.flags & SA_SIGINFO)
		act.info(sig, info, uc);
	else
		act.handler(sig);
	/* Never as a jump: who calls on_fault is told by where it returns to. */
	__asm__ volatile("");
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	greg_t *reg = uc->uc_mcontext.gregs;
	uintptr_t at = (uintptr_t)reg[REG_RIP];

	if (!innermost || info->si_code <= 0 || (sig == SIGBUS && info->si_code == HARD_LATER) ||
	    at < (uintptr_t)__start_sd_guarded || at >= (uintptr_t)__stop_sd_guarded) {
		pass_on(sig, info, context,
			__builtin_return_address(0) != (void *)sd_guard_restore);
		return;
	}
	reg[REG_RSP] = (greg_t)innermost->sp;
	reg[REG_RIP] = (greg_t)(uintptr_t)sd_guard_back;
	reg[REG_EFL] &= ~(greg_t)FLAG_DIRECTION;
}

/* ---- placing it ------------------------------------------------------------------------------ */

/* The program's mask and flags: it is its handler that will mostly run. */
static struct action ours(const struct action *program)
{
	struct action act = { .info = on_fault, .restorer = sd_guard_restore };
	bool none = program->handler == SIG_DFL || program->handler == SIG_IGN;

	act.flags = none ? SA_ONSTACK : program->flags & ~(unsigned long)SA_RESETHAND;
	act.flags |= SA_SIGINFO | KERNEL_RESTORER;
	act.mask = none ? 0 : program->mask;
	return act;
}

static bool is_ours(int sig)
{
	struct action now;

	return !raw_action(sig, NULL, &now) && now.info == on_fault;
}

/* Under the lock. */
static bool place(int i)
{
	struct action now, act;

	if (raw_action(signals[i], NULL, &now))
		return false;
	if (now.info == on_fault)
		return true;
	if (atomic_load(&placed))
		remember_replaced(i, &now);
	else
		remember(i, &now);
	act = ours(&now);
	if (raw_action(signals[i], &act, &now))
		return false;
	if (now.info != on_fault)
		remember(i, &now); /* it changed in between */
	return true;
}

static uint64_t fork_mask;

static void before_fork(void)
{
	uint64_t mask;

	lock(&mask);
	fork_mask = mask;
}

static void after_fork(void)
{
	uint64_t mask = fork_mask;

	unlock(&mask);
}

/* A child must not find the lock taken by a thread that it has not. Registered before the device's own,
 * so that fork takes the two locks in the order in which a copy does. */
__attribute__((constructor(101))) static void fork_safe(void)
{
	pthread_atfork(before_fork, after_fork, after_fork);
}

/* Three system calls, which cost less than one copy by the kernel. */
bool sd_guard_ready(void)
{
	const uint64_t need = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
	uint64_t mask;
	bool ok = true;

	if (sd_raw(SYS_rt_sigprocmask, SIG_SETMASK, NULL, &mask, MASK_BYTES) || (mask & need))
		return false;
	if (atomic_load(&placed) && is_ours(SIGSEGV) && is_ours(SIGBUS))
		return true;
	lock(&mask);
	for (int i = 0; i < 2; i++)
		ok &= place(i);
	atomic_store(&placed, true);
	unlock(&mask);
	return ok;
}

/* ---- what the program asks for ----------------------------------------------------------------- */

static void to_kernel(struct action *to, const struct sigaction *from)
{
	*to = (struct action){ .handler = from->sa_handler, .flags = (unsigned int)from->sa_flags };
	memcpy(&to->mask, &from->sa_mask, MASK_BYTES);
}

static void from_kernel(struct sigaction *to, const struct action *from)
{
	memset(to, 0, sizeof(*to));
	to->sa_handler = from->handler;
	to->sa_flags = (int)(unsigned int)from->flags;
	memcpy(&to->sa_mask, &from->mask, MASK_BYTES);
}

PUBLIC int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	int i = index_of(sig);
	struct action before, next = { 0 }, set;
	uint64_t mask;
	bool stood;

	if (i < 0 || !atomic_load(&placed))
		return __sigaction(sig, act, old);
	if (act)
		to_kernel(&next, act);
	lock(&mask);
	stood = is_ours(sig);
	before = recall(i).now;
	if (stood && act) {
		remember(i, &next);
		set = ours(&next);
		raw_action(sig, &set, NULL);
	}
	unlock(&mask);
	if (!stood)
		return __sigaction(sig, act, old);
	if (old)
		from_kernel(old, &before);
	return 0;
}

static __sighandler_t set_handler(int sig, __sighandler_t handler, int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags }, old;

	if (!(flags & SA_NODEFER))
		sigaddset(&act.sa_mask, sig);
	return sigaction(sig, &act, &old) ? SIG_ERR : old.sa_handler;
}

PUBLIC __sighandler_t signal(int sig, __sighandler_t handler)
{
	if (index_of(sig) < 0 || handler == SIG_ERR)
		return ssignal(sig, handler); /* libc's other name of it */
	return set_handler(sig, handler, SA_RESTART);
}

/* What signal is in strict ISO C. */
PUBLIC __sighandler_t __sysv_signal(int sig, __sighandler_t handler)
{
	if (index_of(sig) < 0 || handler == SIG_ERR)
		return sysv_signal(sig, handler);
	return set_handler(sig, handler, SA_RESETHAND | SA_NODEFER);
}

#else /* other machines: by system calls only */

bool sd_guard_ready(void)
{
	return false;
}

int sd_guard_run(int (*fn)(void *arg), void *arg)
{
	return -EFAULT;
}

#endif
