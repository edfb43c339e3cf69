/* SPDX-License-Identifier: BSD-2-Clause */
/* A device that is pulled out: seen as that, and everything is let go of without it. */
#include "soft_test.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

/* What libmlx5 cannot give back to a device that is gone it keeps. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libmlx5\nleak:libibverbs\n";
}

static bool tells(void)
{
	struct pollfd p = { .fd = ibmr_ctx_event_fd(soft), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void everything_is_let_go_of_in_order(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 8192, LW | RW | RR);
	struct ibmr_klm klm = { a, 0, 64 };
	struct ibmr_mr *x = soft_create("x", 2), *never = soft_create("never", 2), *b;
	struct ibmr_mr_spec spec = { .name = "b", .mem = IBMR_MEM_ANON, .length = 4096 };
	struct ibmr_err err;
	int fd;

	soft_fill_list(x, LW | RW | RR, &klm, 1);
	OK(ibmr_mr_write(x, 0, "bytes", 5, 0, &err));
	assert_false(tells());
	assert_false(ibmr_ctx_gone(soft));
	soft_word("gone", "reg_mr:1");
	assert_int_equal(ibmr_mr_reg(soft, &spec, &b, &err), -EIO);
	assert_true(tells());
	assert_true(ibmr_ctx_gone(soft));
	assert_true(ibmr_ctx_gone(soft)); /* it stays so */
	assert_int_equal(soft_counter("live.mr"), 0);
	/* the records keep their order */
	REFUSED(ibmr_mr_dereg(a, &err), EBUSY, IBMR_E_IN_USE);
	OK(ibmr_mr_dereg(never, &err));
	OK(ibmr_mr_dereg(x, &err));
	OK(ibmr_mr_dereg(a, &err));
	assert_true(ibmr_ctx_locked_bytes(soft) > 0); /* the library's own */
	fd = soft->verbs->cmd_fd;
	OK(ibmr_ctx_close(soft, &err));
	soft = NULL;
	assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void *pull_out(void *arg)
{
	struct ibv_context *verbs = arg;
	struct ibv_port_attr port;

	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	soft_word("gone", "query_port:1");
	assert_int_equal(ibv_query_port(verbs, 1, &port), EIO);
	return NULL;
}

static void a_wait_ends_with_the_device(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR);
	struct ibmr_err err;
	pthread_t thread;
	time_t start;

	OK(ibmr_mr_write(a, 0, "fine", 4, 0, &err));
	soft_word("hold", "1");
	assert_int_equal(pthread_create(&thread, NULL, pull_out, soft->verbs), 0);
	start = time(NULL);
	REFUSED(ibmr_mr_write(a, 0, "late", 4, 0, &err), ENODEV, IBMR_E_NO_DEVICE);
	assert_in_range(time(NULL) - start, 0, 5);
	assert_string_equal(err.text, "writing 'a': device soft0 is gone");
	pthread_join(thread, NULL);
	assert_true(ibmr_ctx_gone(soft));
	OK(ibmr_mr_dereg(a, &err));
	OK(ibmr_ctx_close(soft, &err));
	soft = NULL;
}

/* The events of a context that is the caller's are the caller's. */
static void a_borrowed_context_tells_nothing(void **state)
{
	struct ibmr_ctx *borrowed;
	struct ibmr_err err;

	OK(ibmr_ctx_from_pd(soft->pd, NULL, &borrowed, &err));
	assert_int_equal(ibmr_ctx_event_fd(borrowed), -1);
	assert_false(ibmr_ctx_gone(borrowed));
	OK(ibmr_ctx_close(borrowed, &err));
	OK(ibmr_ctx_close(soft, &err));
	soft = NULL;
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, soft_setup, soft_teardown_bare)
	const struct CMUnitTest tests[] = {
		T(everything_is_let_go_of_in_order),
		T(a_wait_ends_with_the_device),
		T(a_borrowed_context_tells_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
