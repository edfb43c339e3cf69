/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults of the device's copies: an error completion and no signal, whatever the program does with
 * SIGSEGV and SIGBUS; and the program's own faults, which are its own.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dev.h"

#define PAGE	 4096ul
#define PAGES	 64ul
#define BYTES	 (PAGES * PAGE)
#define HOLE_AT	 (40 * PAGE)
#define ALL_KEYS 8192u

static struct loop dev;
static sigjmp_buf back;
static volatile sig_atomic_t caught;
static void *volatile caught_at;
static volatile uintptr_t ran_at;
static uint8_t *far, *near; /* what is written, and from where */
static struct ibv_mr *far_mr, *near_mr;

static uint8_t *map(size_t bytes)
{
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

static int setup(void **state)
{
	dev_reset();
	loop_open(&dev);
	caught = 0;
	far = map(BYTES);
	near = map(BYTES);
	for (uint32_t i = 0; i < BYTES; i++)
		near[i] = (uint8_t)(i * 7 + i / 253 + 1);
	far_mr = ibv_reg_mr(dev.pd, far, BYTES, RIGHTS);
	near_mr = ibv_reg_mr(dev.pd, near, BYTES, RIGHTS);
	assert_true(far_mr && near_mr);
	return 0;
}

static int teardown(void **state)
{
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	assert_int_equal(ibv_dereg_mr(far_mr), 0);
	assert_int_equal(ibv_dereg_mr(near_mr), 0);
	loop_close(&dev);
	munmap(far, BYTES);
	munmap(near, BYTES);
	return 0;
}

static enum ibv_wc_status transfer_some(enum ibv_wr_opcode op, uint32_t rkey, uint64_t raddr,
					uint32_t bytes)
{
	struct ibv_sge sge = { (uintptr_t)near, bytes, near_mr->lkey };
	struct ibv_send_wr wr = { .opcode = op,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .wr.rdma = { .remote_addr = raddr, .rkey = rkey } };
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(dev.qp, &wr, &bad), 0);
	return loop_poll(dev.cq).status;
}

static enum ibv_wc_status transfer(enum ibv_wr_opcode op, uint32_t rkey, uint64_t raddr)
{
	return transfer_some(op, rkey, raddr, BYTES);
}

static void again(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	assert_int_equal(ibv_modify_qp(dev.qp, &attr, IBV_QP_STATE), 0);
	loop_connect(&dev);
}

static enum ibv_wc_status write_far(void)
{
	return transfer(IBV_WR_RDMA_WRITE, far_mr->rkey, (uintptr_t)far);
}

/* It was by plain loads and stores: these tests are about nothing else. */
static void write_works_guarded(void)
{
	uint64_t before = counter("bytes.guarded");

	memset(far, 0, BYTES);
	assert_int_equal(write_far(), IBV_WC_SUCCESS);
	assert_memory_equal(far, near, BYTES);
#ifdef __x86_64__
	assert_int_equal(counter("bytes.guarded") - before, BYTES);
#else
	assert_int_equal(counter("bytes.guarded") - before, 0);
#endif
}

static void make_hole(void)
{
	assert_int_equal(munmap(far + HOLE_AT, PAGE), 0);
}

static void fill_hole(void)
{
	assert_true(mmap(far + HOLE_AT, PAGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == far + HOLE_AT);
}

/* An error completion; what lies before the hole has landed but for less than a page, nothing behind. */
static void write_finds_hole(void)
{
	memset(far, 0, HOLE_AT);
	memset(far + HOLE_AT + PAGE, 0, BYTES - HOLE_AT - PAGE);
	assert_int_equal(write_far(), IBV_WC_REM_OP_ERR);
	assert_memory_equal(far, near, HOLE_AT - PAGE);
	for (uint32_t i = HOLE_AT + PAGE; i < BYTES; i++)
		assert_int_equal(far[i], 0);
	again();
}

static void round_with_hole(void)
{
	write_works_guarded();
	make_hole();
	write_finds_hole();
	fill_hole();
	write_works_guarded();
}

/* ---- what can be wrong with memory ---------------------------------------------------- */

static void an_unmapped_page(void **state)
{
	round_with_hole();
}

static void a_few_bytes(void **state)
{
	uint64_t before = counter("bytes.guarded");
	uint8_t was[8];

	assert_int_equal(transfer_some(IBV_WR_RDMA_WRITE, far_mr->rkey, (uintptr_t)far, 8),
			 IBV_WC_SUCCESS);
	assert_memory_equal(far, near, 8);
#ifdef __x86_64__
	assert_int_equal(counter("bytes.guarded") - before, 8);
#endif
	make_hole();
	assert_int_equal(
		transfer_some(IBV_WR_RDMA_WRITE, far_mr->rkey, (uintptr_t)far + HOLE_AT - 4, 8),
		IBV_WC_REM_OP_ERR);
	again();
	memcpy(was, near, 8);
	assert_int_equal(transfer_some(IBV_WR_RDMA_READ, far_mr->rkey, (uintptr_t)far + HOLE_AT, 8),
			 IBV_WC_REM_OP_ERR);
	assert_memory_equal(near, was, 8);
	again();
	fill_hole();
	write_works_guarded();
}

static void a_page_without_rights(void **state)
{
	write_works_guarded();
	assert_int_equal(mprotect(far + HOLE_AT, PAGE, PROT_NONE), 0);
	write_finds_hole();
	assert_int_equal(transfer(IBV_WR_RDMA_READ, far_mr->rkey, (uintptr_t)far),
			 IBV_WC_REM_OP_ERR);
	again();
	assert_int_equal(mprotect(far + HOLE_AT, PAGE, PROT_READ), 0);
	write_finds_hole();
	assert_int_equal(transfer(IBV_WR_RDMA_READ, far_mr->rkey, (uintptr_t)far), IBV_WC_SUCCESS);
	assert_int_equal(mprotect(far + HOLE_AT, PAGE, PROT_READ | PROT_WRITE), 0);
	for (uint32_t i = 0; i < BYTES; i++)
		near[i] = (uint8_t)(i * 5 + 1);
	write_works_guarded();
}

/* The one with SIGBUS. */
static void a_file_cut_short(void **state)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	assert_int_equal(ftruncate(fileno(file), BYTES), 0);
	assert_true(mmap(far, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fileno(file),
			 0) == far);
	write_works_guarded();
	assert_int_equal(ftruncate(fileno(file), HOLE_AT), 0);
	memset(far, 0, HOLE_AT);
	assert_int_equal(write_far(), IBV_WC_REM_OP_ERR);
	assert_memory_equal(far, near, HOLE_AT - PAGE);
	again();
	assert_int_equal(ftruncate(fileno(file), BYTES), 0);
	write_works_guarded();
	fclose(file);
}

static void many_small_pieces(void **state)
{
	struct mlx5dv_mkey_init_attr init = { .pd = dev.pd,
					      .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 4 };
	struct mlx5dv_mkey *key = mlx5dv_create_mkey(&init);
	struct mlx5dv_mr_interleaved block = { (uintptr_t)far, 32, 0, far_mr->lkey };

	assert_non_null(key);
	ibv_wr_start(dev.qpx);
	dev.qpx->wr_id = 1;
	dev.qpx->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	mlx5dv_wr_mr_interleaved(dev.mqp, key, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
				 ALL_KEYS, 1, &block);
	assert_int_equal(ibv_wr_complete(dev.qpx), 0);
	assert_int_equal(loop_poll(dev.cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ALL_KEYS * 32, BYTES);
	assert_int_equal(transfer(IBV_WR_RDMA_WRITE, key->rkey, 0), IBV_WC_SUCCESS);
	assert_memory_equal(far, near, BYTES);
	make_hole();
	memset(far, 0, HOLE_AT);
	assert_int_equal(transfer(IBV_WR_RDMA_WRITE, key->rkey, 0), IBV_WC_REM_OP_ERR);
	assert_memory_equal(far, near, HOLE_AT - PAGE);
	again();
	fill_hole();
	assert_int_equal(mlx5dv_destroy_mkey(key), 0);
}

/* ---- the program's handlers --------------------------------------------------------------- */

static void on_info(int sig, siginfo_t *info, void *uc)
{
	caught = sig;
	caught_at = info->si_addr;
	ran_at = (uintptr_t)__builtin_frame_address(0);
	siglongjmp(back, 1);
}

static void on_plain(int sig)
{
	caught = sig;
	siglongjmp(back, 1);
}

static void on_sent(int sig)
{
	caught = sig;
}

/* A fault of the program's own arrives at its own handler. */
static void own_fault(bool with_address)
{
	volatile uint8_t *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	caught = 0;
	caught_at = NULL;
	if (!sigsetjmp(back, 1))
		page[5] = 1;
	assert_int_equal(caught, SIGSEGV);
	if (with_address)
		assert_ptr_equal(caught_at, page + 5);
	munmap((void *)page, PAGE);
	caught = 0;
}

static void set_info(int flags)
{
	struct sigaction act = { .sa_sigaction = on_info, .sa_flags = SA_SIGINFO | flags };

	sigaddset(&act.sa_mask, SIGUSR1);
	assert_int_equal(sigaction(SIGSEGV, &act, NULL), 0);
}

static void a_handler_set_before(void **state)
{
	struct sigaction now;

	set_info(0);
	round_with_hole();
	assert_int_equal(caught, 0);
	own_fault(true);
	round_with_hole();
	assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
	assert_true(now.sa_sigaction == on_info);
	assert_true(now.sa_flags & SA_SIGINFO);
	assert_true(sigismember(&now.sa_mask, SIGUSR1));
	assert_false(sigismember(&now.sa_mask, SIGUSR2));
}

static void a_handler_set_after(void **state)
{
	struct sigaction was;

	round_with_hole();
	set_info(SA_NODEFER);
	own_fault(true);
	round_with_hole();
	assert_int_equal(caught, 0);
	assert_true(signal(SIGSEGV, on_plain) == (__sighandler_t)(void (*)(void))on_info);
	own_fault(false);
	round_with_hole();
	assert_int_equal(sigaction(SIGSEGV, NULL, &was), 0);
	assert_true(was.sa_handler == on_plain);
	assert_int_equal(caught, 0);
}

static void a_handler_for_one_time(void **state)
{
	struct sigaction now;

	round_with_hole();
	set_info(SA_RESETHAND);
	round_with_hole(); /* not counted as the one */
	own_fault(true);
	assert_int_equal(sigaction(SIGSEGV, NULL, &now), 0);
	assert_true(now.sa_handler == SIG_DFL);
	round_with_hole();
}

static void a_handler_on_a_stack_of_its_own(void **state)
{
	/* memory that nothing else will use: memcheck goes on taking it for a stack */
	static uint8_t its_own[16 * PAGE];
	const stack_t none = { .ss_flags = SS_DISABLE };
	stack_t stack = { .ss_sp = its_own, .ss_size = sizeof(its_own) };

	assert_int_equal(sigaltstack(&stack, NULL), 0);
	round_with_hole();
	set_info(SA_ONSTACK);
	round_with_hole();
	ran_at = 0;
	own_fault(true);
	assert_true(ran_at >= (uintptr_t)stack.ss_sp);
	assert_true(ran_at < (uintptr_t)stack.ss_sp + stack.ss_size);
	set_info(0);
	own_fault(true);
	assert_true(ran_at < (uintptr_t)stack.ss_sp ||
		    ran_at >= (uintptr_t)stack.ss_sp + stack.ss_size);
	assert_int_equal(sigaltstack(&none, NULL), 0);
}

/* ---- behind libc's back, as runtimes do that make their own system calls -------------------- */

struct raw_action {
	void (*handler)(int sig, siginfo_t *info, void *uc);
	unsigned long flags;
	void (*restorer)(void);
	uint64_t mask;
};

static void raw_get(struct raw_action *act)
{
	assert_int_equal(syscall(SYS_rt_sigaction, SIGSEGV, NULL, act, 8), 0);
}

static void raw_set(const struct raw_action *act)
{
	assert_int_equal(syscall(SYS_rt_sigaction, SIGSEGV, act, NULL, 8), 0);
}

static void a_handler_behind_libcs_back(void **state)
{
	struct raw_action act, now;

	set_info(0);
	raw_get(&act);
	signal(SIGSEGV, SIG_DFL);
	write_works_guarded();
	act.handler = on_info;
	raw_set(&act);
	write_works_guarded();
	raw_get(&now);
#ifdef __x86_64__
	assert_true(now.handler != on_info);
#endif
	round_with_hole();
	assert_int_equal(caught, 0);
	own_fault(true);
}

static void (*passed_to)(int sig, siginfo_t *info, void *uc);
static volatile sig_atomic_t passed;

static void on_info_not_mine(int sig, siginfo_t *info, void *uc)
{
	passed++;
	passed_to(sig, info, uc);
}

/* What it read was the device's handler. The one that it took the place of is meant. */
static void a_handler_that_passes_on_to_what_it_read(void **state)
{
	struct raw_action act;

	set_info(0);
	write_works_guarded();
	raw_get(&act);
	passed_to = act.handler;
	passed = 0;
	act.handler = on_info_not_mine;
	raw_set(&act);
	round_with_hole();
	assert_int_equal(passed, 0);
	own_fault(true);
	assert_int_equal(passed, 1);
	round_with_hole();
	own_fault(true);
	assert_int_equal(passed, 2);
}

static void a_signal_that_is_sent(void **state)
{
	round_with_hole();
	signal(SIGSEGV, on_sent);
	caught = 0;
	raise(SIGSEGV);
	assert_int_equal(caught, SIGSEGV);
	signal(SIGBUS, SIG_IGN);
	raise(SIGBUS);
	round_with_hole();
}

/* ---- the default ------------------------------------------------------------------------------ */

static int fate_of(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		what();
		_exit(7);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void touch_nothing(void)
{
	volatile uint8_t *page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	page[0] = 1;
}

static void send_segv(void)
{
	raise(SIGSEGV);
}

static void send_bus(void)
{
	kill(getpid(), SIGBUS);
}

static void the_default_is_to_die(void **state)
{
	int status;

	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	round_with_hole();
	status = fate_of(touch_nothing);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	status = fate_of(send_segv);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	status = fate_of(send_bus);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
	/* what is ignored cannot be a fault */
	signal(SIGSEGV, SIG_IGN);
	status = fate_of(send_segv);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	status = fate_of(touch_nothing);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

/* ---- masks and threads --------------------------------------------------------------------------- */

/* Without a signal there is no guard: the kernel copies. The mask is set by a raw system call, as libc
 * itself does in siglongjmp and setcontext. */
static void a_thread_that_blocks_the_signal(void **state)
{
	const uint64_t block = 1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1);
	uint64_t before, old;

	write_works_guarded();
	assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &block, &old, 8), 0);
	before = counter("bytes.guarded");
	assert_int_equal(write_far(), IBV_WC_SUCCESS);
	assert_memory_equal(far, near, BYTES);
	if (!getenv("IBMR_SOFT0") || !strstr(getenv("IBMR_SOFT0"), "async"))
		assert_int_equal(counter("bytes.guarded"), before);
	make_hole();
	write_finds_hole();
	fill_hole();
	assert_int_equal(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &old, NULL, 8), 0);
	round_with_hole();
}

static void *other_thread(void *arg)
{
	round_with_hole();
	return NULL;
}

static void another_thread(void **state)
{
	pthread_t thread;

	set_info(0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_create(&thread, NULL, other_thread, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_int_equal(caught, 0);
	own_fault(true);
}

static atomic_bool enough;

static void *holes_until_enough(void *arg)
{
	make_hole();
	while (!atomic_load(&enough))
		write_finds_hole();
	fill_hole();
	return NULL;
}

static pthread_t faulty;

static void on_fault_of_faulty(int sig, siginfo_t *info, void *uc)
{
	if (!pthread_equal(pthread_self(), faulty))
		_exit(9);
	on_info(sig, info, uc);
}

static void faults_of_one_thread_and_copies_of_another(void **state)
{
	struct sigaction act = { .sa_sigaction = on_fault_of_faulty, .sa_flags = SA_SIGINFO };
	pthread_t thread;

	faulty = pthread_self();
	atomic_store(&enough, false);
	assert_int_equal(sigaction(SIGSEGV, &act, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, holes_until_enough, NULL), 0);
	for (int i = 0; i < 500; i++)
		own_fault(true);
	atomic_store(&enough, true);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* TSan runs such a handler later and with every signal blocked: a fault in it is the end of any program,
 * on soft0 or not. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define UNDER_TSAN
#endif

#ifndef UNDER_TSAN
/* A program that mends its own faults, as collectors of garbage do, in a handler that interrupts a copy. */
static uint8_t *volatile trap;
static volatile sig_atomic_t mended;

static void mend(int sig, siginfo_t *info, void *uc)
{
	if (info->si_addr != trap)
		_exit(9);
	mprotect(trap, PAGE, PROT_READ | PROT_WRITE);
	mended++;
}

static void on_alarm(int sig)
{
	int keep = errno;

	mprotect(trap, PAGE, PROT_NONE);
	*(volatile uint8_t *)trap = 1;
	errno = keep;
}

static void a_handler_that_interrupts_a_copy_and_faults(void **state)
{
	struct sigaction act = { .sa_sigaction = mend, .sa_flags = SA_SIGINFO };
	struct sigaction alarm_act = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { 0 };

	trap = map(PAGE);
	mended = 0;
	assert_int_equal(sigaction(SIGSEGV, &act, NULL), 0);
	assert_int_equal(sigaction(SIGALRM, &alarm_act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int i = 0; i < 20000 && mended < 200; i++)
		assert_int_equal(write_far(), IBV_WC_SUCCESS);
	assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
	assert_true(mended >= 20);
	assert_memory_equal(far, near, BYTES);
	signal(SIGALRM, SIG_DFL);
	munmap(trap, PAGE);
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_unmapped_page),
		TEST(a_few_bytes),
		TEST(a_page_without_rights),
		TEST(a_file_cut_short),
		TEST(many_small_pieces),
		TEST(a_handler_set_before),
		TEST(a_handler_set_after),
		TEST(a_handler_for_one_time),
		TEST(a_handler_on_a_stack_of_its_own),
		TEST(a_handler_behind_libcs_back),
		TEST(a_handler_that_passes_on_to_what_it_read),
		TEST(a_signal_that_is_sent),
		TEST(the_default_is_to_die),
		TEST(a_thread_that_blocks_the_signal),
		TEST(another_thread),
		TEST(faults_of_one_thread_and_copies_of_another),
#ifndef UNDER_TSAN
		TEST(a_handler_that_interrupts_a_copy_and_faults),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
