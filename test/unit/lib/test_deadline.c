/* SPDX-License-Identifier: BSD-2-Clause */
/* Waits end: at the deadline, at the caller's flag. What follows is safe, and work goes on. */
#include "soft_test.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile sig_atomic_t cancel;

static int setup(void **state)
{
	struct ibmr_ctx_opts opts = {
		.device = "soft0", .gid_index = -1, .timeout_ms = 60, .cancel = &cancel
	};
	struct ibmr_err err;

	cancel = 0;
	soft_setup_bare(state);
	OK(ibmr_ctx_open(&opts, &soft, &err));
	return 0;
}

static uint64_t ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static struct ibmr_layout one(const struct ibmr_klm *klm)
{
	return (struct ibmr_layout){
		.kind = IBMR_LAYOUT_LIST, .access = LW | RR, .num = 1, .klms = klm
	};
}

static void a_write_that_does_not_complete_times_out_and_the_next_works(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR);
	struct ibmr_err err;
	uint64_t start;
	int i;

	for (i = 0; i < 3; i++) {
		soft_word("hold", "1");
		start = ms();
		REFUSED(ibmr_mr_write(a, 0, "late", 4, 0, &err), ETIMEDOUT, IBMR_E_TIMEOUT);
		assert_in_range(ms() - start, 60, 3000);
		assert_string_equal(err.text, "writing 'a' did not end within 60 ms");
		assert_string_equal(err.origin, "ibmr_mr_write");
		assert_int_equal(err.status, -1);
		/* the device lets go of our memory before the call is over */
		assert_int_equal(soft_counter("live.qp"), 0);
		soft_word("hold", "0");
		OK(ibmr_mr_write(a, 0, "fine", 4, 0, &err));
		reads_as(a, 0, "fine", 4);
		assert_int_equal(ibmr_ctx_reconnects(soft), i + 1);
	}
	assert_int_equal(info_of(a).state, IBMR_STATE_REGISTERED);
}

static void a_fill_that_does_not_complete_leaves_an_unknown_mr(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR), *b = soft_reg("b", 64, LW | RR);
	struct ibmr_mr *col = soft_create("col", 1), *out = soft_create("out", 1);
	struct ibmr_klm klm = { a, 8, 8 };
	struct ibmr_layout l = one(&klm);
	struct ibmr_mr_info i;
	struct ibmr_err err;
	uint8_t byte;

	ramp(a, 0);
	ramp(b, 0x80);
	OK(ibmr_mr_fill(col, &l, &err));
	klm.mr = b;
	soft_word("hold", "1");
	REFUSED(ibmr_mr_fill(col, &l, &err), ETIMEDOUT, IBMR_E_TIMEOUT);
	SAYS("filling 'col' did not end within 60 ms");
	soft_word("hold", "0");
	i = info_of(col);
	assert_int_equal(i.state, IBMR_STATE_UNKNOWN);
	assert_int_equal(i.length, 0);
	assert_int_equal(info_of(a).users + info_of(b).users, 0);
	REFUSED(ibmr_mr_read(col, 0, &byte, 1, 0, &err), EINVAL, IBMR_E_STATE);
	SAYS("'col' is in an unknown state");
	klm.mr = col;
	REFUSED(ibmr_mr_fill(out, &l, &err), EINVAL, IBMR_E_STATE);
	/* refill and invalidate end it */
	klm.mr = b;
	OK(ibmr_mr_fill(col, &l, &err));
	reads_as(col, 0, bytes_of(b) + 8, 8);
	soft_word("hold", "1");
	REFUSED(ibmr_mr_invalidate(col, &err), ETIMEDOUT, IBMR_E_TIMEOUT);
	soft_word("hold", "0");
	assert_int_equal(info_of(col).state, IBMR_STATE_UNKNOWN);
	OK(ibmr_mr_invalidate(col, &err));
	assert_int_equal(info_of(col).state, IBMR_STATE_INVALIDATED);
	/* and so does dereg */
	soft_word("hold", "1");
	REFUSED(ibmr_mr_fill(col, &l, &err), ETIMEDOUT, IBMR_E_TIMEOUT);
	soft_word("hold", "0");
	soft_dereg(col);
	assert_int_equal(soft->num_unknown, 0);
}

static void an_unknown_mr_under_another_is_noticed(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RR), *in = soft_create("in", 1),
		       *out = soft_create("out", 1);
	struct ibmr_klm klm = { a, 8, 8 };
	struct ibmr_layout l = one(&klm);
	struct ibmr_range range = { out, 0, 1 };
	struct ibmr_err err;
	uint8_t byte;

	ramp(a, 0);
	OK(ibmr_mr_fill(in, &l, &err));
	soft_fill_list(out, LW | RR, &(struct ibmr_klm){ in, 0, 8 }, 1);
	soft_word("hold", "1");
	REFUSED(ibmr_mr_fill(in, &l, &err), ETIMEDOUT, IBMR_E_TIMEOUT);
	soft_word("hold", "0");
	REFUSED(ibmr_mr_read(out, 0, &byte, 1, 0, &err), EINVAL, IBMR_E_STATE);
	SAYS("'in' is in an unknown state under 'out'");
	REFUSED(ibmr_mr_prefetch(soft, &range, 1, IBMR_ADVICE_READ, true, NULL, NULL, &err), EINVAL,
		IBMR_E_STATE);
	/* what its user needs binds it still */
	REFUSED(ibmr_mr_invalidate(in, &err), EBUSY, IBMR_E_IN_USE);
	l.base = 8;
	REFUSED(ibmr_mr_fill(in, &l, &err), EBUSY, IBMR_E_IN_USE);
	l.base = 0;
	OK(ibmr_mr_fill(in, &l, &err));
	reads_as(out, 0, bytes_of(a) + 8, 8);
}

static void a_fill_in_error_leaves_an_unknown_mr(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RR), *col = soft_create("col", 100);
	struct ibmr_klm klms[100];
	struct ibmr_layout l = one(klms);
	struct ibmr_err err;
	int i;

	for (i = 0; i < 100; i++)
		klms[i] = (struct ibmr_klm){ a, 8, 8 };
	for (i = 0; i < 2; i++) {
		l.num = i ? 100 : 1; /* inline, and by list memory */
		soft_word("fail_wqe", "1");
		REFUSED(ibmr_mr_fill(col, &l, &err), EIO, IBMR_E_COMPLETION);
		assert_int_equal(err.status, IBV_WC_LOC_PROT_ERR);
		SAYS("filling 'col'");
		assert_int_equal(info_of(col).state, IBMR_STATE_UNKNOWN);
		OK(ibmr_mr_fill(col, &l, &err));
		assert_int_equal(ibmr_ctx_reconnects(soft), i + 1);
	}
}

static void a_fill_that_was_not_posted_changes_nothing(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RR), *col = soft_create("col", 100);
	struct ibmr_klm klms[100];
	struct ibmr_layout l = one(klms);
	struct ibmr_err err;
	int i;

	for (i = 0; i < 100; i++)
		klms[i] = (struct ibmr_klm){ a, 8, 8 };
	soft_word("fail", "create_qp:1:ENOMEM");
	REFUSED(ibmr_mr_fill(col, &l, &err), ENOMEM, IBMR_E_NO_MEMORY);
	assert_string_equal(err.origin, "mlx5dv_create_qp");
	assert_int_equal(info_of(col).state, IBMR_STATE_EMPTY);
	assert_int_equal(soft_counter("live.qp") + soft_counter("live.cq"), 0);
	OK(ibmr_mr_fill(col, &l, &err));
	l.num = 100;
	soft_word("fail", "reg_mr:1:EAGAIN"); /* the list memory */
	REFUSED(ibmr_mr_fill(col, &l, &err), EAGAIN, IBMR_E_KEY_TABLE);
	assert_int_equal(info_of(col).state, IBMR_STATE_FILLED);
	assert_int_equal(info_of(col).entries, 1);
	cancel = 1;
	REFUSED(ibmr_mr_fill(col, &l, &err), EINTR, IBMR_E_INTERRUPTED);
	assert_int_equal(info_of(col).state, IBMR_STATE_FILLED);
	cancel = 0;
	OK(ibmr_mr_fill(col, &l, &err));
}

static void raise_flag(int sig)
{
	cancel = 1;
}

static void the_callers_flag_ends_a_wait_at_once(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR);
	struct ibmr_err err;
	struct itimerval soon = { .it_value.tv_usec = 30000 };
	struct sigaction act = { .sa_handler = raise_flag };
	uint64_t start;

	ibmr_ctx_set_timeout(soft, 20000);
	soft_word("hold", "1");
	start = ms();
	assert_int_equal(sigaction(SIGALRM, &act, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	REFUSED(ibmr_mr_write(a, 0, "late", 4, 0, &err), EINTR, IBMR_E_INTERRUPTED);
	SAYS("writing 'a' was interrupted");
	assert_in_range(ms() - start, 20, 5000);
	/* everything can still be released */
	soft_word("hold", "0");
	soft_dereg(a);
}

static void a_timeout_of_zero_is_the_default(void **state)
{
	ibmr_ctx_set_timeout(soft, 0);
	assert_int_equal(soft->timeout_ms, 10000);
}

/* A queue pair that cannot be destroyed may still write into our memory: nothing is freed. */
static void memory_stays_while_the_device_does_not_let_go(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR);
	struct ibmr_err err;

	soft_word("hold", "1");
	soft_word("fail", "destroy_qp:1:EIO");
	REFUSED(ibmr_mr_write(a, 0, "late", 4, 0, &err), ETIMEDOUT, IBMR_E_TIMEOUT);
	SAYS("and the queue pair cannot be destroyed");
	assert_int_not_equal(soft_counter("live.qp"), 0);
	soft_word("fail", "destroy_qp:1:EIO");
	REFUSED(ibmr_mr_write(a, 0, "late", 4, 0, &err), EIO, IBMR_E_COMPLETION);
	assert_string_equal(err.origin, "ibv_destroy_qp");
	soft_word("fail", "destroy_qp:1:EIO");
	soft_dereg(a);
	REFUSED(ibmr_ctx_close(soft, &err), EIO, IBMR_E_COMPLETION);
	assert_int_not_equal(soft_counter("pinned_bytes"), 0);
	soft_word("hold", "0");
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, soft_teardown)
	const struct CMUnitTest tests[] = {
		T(a_write_that_does_not_complete_times_out_and_the_next_works),
		T(a_fill_that_does_not_complete_leaves_an_unknown_mr),
		T(an_unknown_mr_under_another_is_noticed),
		T(a_fill_in_error_leaves_an_unknown_mr),
		T(a_fill_that_was_not_posted_changes_nothing),
		T(the_callers_flag_ends_a_wait_at_once),
		T(a_timeout_of_zero_is_the_default),
		T(memory_stays_while_the_device_does_not_let_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
