/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands are taken from wherever they lie: stacks of all kinds, the heap, and in children. */
#include "raw.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STACK_BYTES (256u << 10)
#define DEEP_BYTES  (3u << 20)
#define PAGE	    ((size_t)4096)

static struct ibv_context *ctx;

static int setup(void **state)
{
	ctx = dev_open();
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(counter("live.pd"), 0);
	assert_int_equal(counter("live.context"), 0);
	return 0;
}

static void fill_query(struct raw *r, uint64_t port, void *resp)
{
	*r = raw_start(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
	raw_add(r, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, port);
	raw_out(r, UVERBS_ATTR_QUERY_PORT_RESP, resp, sizeof(struct ib_uverbs_query_port_resp_ex));
}

/* What a thread finds that runs in front of hole, where nothing is. */
struct found {
	uint8_t *hole;
	bool on_it; /* it did run there */
	int good, to_hole, from_hole, over_edge;
	uint32_t lid;
};

static int allocate_from(const void *in)
{
	uint64_t resp[8];

	return raw_write(ctx->cmd_fd, IB_USER_VERBS_CMD_ALLOC_PD, in, 40, resp, sizeof(resp));
}

static void look(struct found *f)
{
	struct ib_uverbs_query_port_resp_ex resp = { 0 };
	/* not the place of a variable: AddressSanitizer may have those elsewhere */
	uint8_t *frame = __builtin_frame_address(0);
	struct raw r;

	f->on_it = f->hole - frame < (ptrdiff_t)STACK_BYTES && frame < f->hole;
	fill_query(&r, 1, &resp);
	f->good = raw_run(ctx->cmd_fd, &r);
	f->lid = resp.legacy_resp.lid;
	fill_query(&r, 1, f->hole);
	f->to_hole = raw_run(ctx->cmd_fd, &r);
	f->from_hole = allocate_from(f->hole);
	f->over_edge = allocate_from(f->hole - 16);
}

static void check(const struct found *f)
{
	assert_int_equal(f->good, 0);
	assert_int_equal(f->lid, 1);
	assert_int_equal(f->to_hole, EFAULT);
	assert_int_equal(f->from_hole, EFAULT);
	assert_int_equal(f->over_edge, EFAULT);
}

/* A stack with a hole behind it. */
static uint8_t *make_stack(struct found *f)
{
	uint8_t *low = raw_map(STACK_BYTES + PAGE, PROT_READ | PROT_WRITE);

	f->hole = low + STACK_BYTES;
	assert_int_equal(mprotect(f->hole, PAGE, PROT_NONE), 0);
	return low;
}

static void *look_in_thread(void *arg)
{
	look(arg);
	return NULL;
}

static void stack_of_a_thread(void **state)
{
	struct found f = { 0 };
	uint8_t *low = make_stack(&f);
	pthread_attr_t attr;
	pthread_t thread;

	assert_int_equal(pthread_attr_init(&attr), 0);
	assert_int_equal(pthread_attr_setstack(&attr, low, STACK_BYTES), 0);
	assert_int_equal(pthread_create(&thread, &attr, look_in_thread, &f), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	pthread_attr_destroy(&attr);
	assert_true(f.on_it);
	check(&f);
	munmap(low, STACK_BYTES + PAGE);
}

static struct found in_handler;

static void handler(int sig)
{
	look(&in_handler);
}

/* It lies below the thread's own, as all mappings do. */
static void stack_that_is_not_the_threads(void **state)
{
	uint8_t *low = make_stack(&in_handler);
	stack_t ss = { .ss_sp = low, .ss_size = STACK_BYTES }, old;
	struct sigaction act = { .sa_handler = handler, .sa_flags = SA_ONSTACK }, before;

	assert_int_equal(sigaltstack(&ss, &old), 0);
	assert_int_equal(sigaction(SIGUSR1, &act, &before), 0);
	raise(SIGUSR1);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
	assert_int_equal(sigaltstack(&old, NULL), 0);
	check(&in_handler);
	munmap(low, STACK_BYTES + PAGE);
}

/* In many frames: one of this size is taken for another stack by valgrind. */
static __attribute__((noinline)) void look_deep(struct found *f, size_t deep)
{
	volatile uint8_t room[16 * PAGE];

	room[0] = 1;
	if (deep > sizeof(room))
		look_deep(f, deep - sizeof(room));
	else
		look(f);
	room[sizeof(room) - 1] = 1;
}

static void first_stack(void **state)
{
	struct found f = { .hole = raw_map(2 * PAGE, PROT_READ | PROT_WRITE) + PAGE };

	assert_int_equal(mprotect(f.hole, PAGE, PROT_NONE), 0);
	look(&f);
	check(&f);
	look_deep(&f, DEEP_BYTES);
	check(&f);
	munmap(f.hole - PAGE, 2 * PAGE);
}

struct lent {
	struct ib_uverbs_query_port_resp_ex resp;
	struct raw r;
};

/* A child that libc does not know of has memory of its own too. */
static void child_by_system_call(void **state)
{
	struct lent *l = calloc(1, sizeof(*l));
	int status;
	long pid;

	assert_non_null(l);
	fill_query(&l->r, 2, &l->resp);
	assert_int_equal(raw_run(ctx->cmd_fd, &l->r), EINVAL);
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		fill_query(&l->r, 1, &l->resp);
		_exit(raw_run(ctx->cmd_fd, &l->r) ? 1 : l->resp.legacy_resp.lid == 1 ? 0 : 2);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid((pid_t)pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(raw_run(ctx->cmd_fd, &l->r), EINVAL);
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first_stack, setup, teardown),
		cmocka_unit_test_setup_teardown(stack_of_a_thread, setup, teardown),
		cmocka_unit_test_setup_teardown(stack_that_is_not_the_threads, setup, teardown),
		cmocka_unit_test_setup_teardown(child_by_system_call, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
