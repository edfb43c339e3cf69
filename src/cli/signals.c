/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals and the command's deadline: both raise one flag, which every wait and every long loop
 * looks at, so that the answer is still printed and everything released.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "cli.h"

volatile sig_atomic_t signals_cancel;

static volatile sig_atomic_t first_signal;
static volatile sig_atomic_t deadline_passed;
static volatile sig_atomic_t held;

static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
#define NUM_CAUGHT (sizeof(caught) / sizeof(caught[0]))
static struct sigaction before[NUM_CAUGHT];
static const int ignored[] = { SIGPIPE, SIGXFSZ };
#define NUM_IGNORED (sizeof(ignored) / sizeof(ignored[0]))
static struct sigaction ignored_before[NUM_IGNORED];
static bool installed;

uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * UINT64_C(1000000000) + (uint64_t)ts.tv_nsec;
}

/* A signal that comes just before a blocking call would be forgotten by it: ring until it is heard. */
static void ring_again(void)
{
	const struct itimerval soon = { { 0, 50000 }, { 0, 50000 } };

	setitimer(ITIMER_REAL, &soon, NULL);
}

static void on_signal(int signo)
{
	int saved = errno;

	if (!first_signal)
		first_signal = signo;
	if (!held) {
		signals_cancel = 1;
		ring_again();
	}
	errno = saved;
}

static void on_alarm(int signo)
{
	if (held)
		return;
	/* an alarm after a signal only rings again; the first cause is the one that is told */
	if (!first_signal)
		deadline_passed = 1;
	signals_cancel = 1;
}

void signals_init(void)
{
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t mask;
	size_t i;

	sigemptyset(&act.sa_mask);
	sigemptyset(&mask);
	for (i = 0; i < NUM_CAUGHT; i++) {
		sigaddset(&mask, caught[i]);
		sigaction(caught[i], NULL, &before[i]);
		/* nohup and background jobs ignore some of them on purpose */
		if (before[i].sa_handler != SIG_IGN)
			sigaction(caught[i], &act, NULL);
	}
	act.sa_handler = on_alarm;
	sigaction(SIGALRM, &act, NULL);
	sigaddset(&mask, SIGALRM);
	act.sa_handler = SIG_IGN;
	for (i = 0; i < NUM_IGNORED; i++)
		sigaction(ignored[i], &act, &ignored_before[i]);
	installed = true;
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
}

static void change_mask(int how)
{
	sigset_t mask;
	size_t i;

	sigemptyset(&mask);
	for (i = 0; i < NUM_CAUGHT; i++)
		sigaddset(&mask, caught[i]);
	sigaddset(&mask, SIGALRM);
	sigprocmask(how, &mask, NULL);
}

static void stop_ignoring(void)
{
	size_t i;

	for (i = 0; i < NUM_IGNORED; i++)
		sigaction(ignored[i], &ignored_before[i], NULL);
}

void signals_block(void)
{
	change_mask(SIG_BLOCK);
	if (installed)
		stop_ignoring();
}

void signals_restore(void)
{
	const struct itimerval off = { { 0, 0 }, { 0, 0 } };
	size_t i;

	if (installed) {
		setitimer(ITIMER_REAL, &off, NULL);
		for (i = 0; i < NUM_CAUGHT; i++)
			sigaction(caught[i], &before[i], NULL);
		stop_ignoring();
	}
	change_mask(SIG_UNBLOCK);
}

void signals_deadline(const struct cli *cli)
{
	uint64_t end = cli->start_ns + cli->opts.deadline_ms * UINT64_C(1000000);
	uint64_t now = now_ns();
	uint64_t left_us = end > now ? (end - now) / 1000 : 0;
	struct itimerval timer = { .it_interval = { 0, 50000 } };

	if (cli->opts.deadline_ms == 0)
		return;
	if (left_us == 0)
		left_us = 1;
	timer.it_value.tv_sec = (time_t)(left_us / 1000000);
	timer.it_value.tv_usec = (suseconds_t)(left_us % 1000000);
	setitimer(ITIMER_REAL, &timer, NULL);
}

void signals_hold(void)
{
	const struct itimerval off = { { 0, 0 }, { 0, 0 } };

	held = 1;
	setitimer(ITIMER_REAL, &off, NULL);
	signals_cancel = 0;
}

/* What raised the flag, as an error. */
static void fill(struct fail *f)
{
	int signo = first_signal;

	if (signo) {
		fail_set(f, FAIL_INTERRUPTED, "ended by %s",
			 signo == SIGINT    ? "SIGINT"
			 : signo == SIGTERM ? "SIGTERM"
					    : "SIGHUP");
		f->signo = signo;
		f->err = EINTR;
	} else {
		fail_set(f, FAIL_TIMEOUT, "the command's deadline passed");
		f->cause = "deadline";
		f->err = ETIMEDOUT;
	}
}

int signals_check(struct fail *f)
{
	if (!signals_cancel)
		return 0;
	fill(f);
	return -EINTR;
}

struct bound bound_of(uint32_t ms)
{
	return (struct bound){ .end_ns = now_ns() + ms * UINT64_C(1000000), .ms = ms };
}

uint32_t bound_left_ms(const struct bound *b)
{
	uint64_t now = now_ns(), left_ms = 0;

	if (now < b->end_ns)
		left_ms = (b->end_ns - now + 999999) / 1000000;
	return left_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms;
}

int bound_check(const struct bound *b, struct fail *f)
{
	int rc = signals_check(f);

	if (rc || !b || bound_left_ms(b))
		return rc;
	fail_set(f, FAIL_TIMEOUT, "the step took longer than its %u ms", b->ms);
	fail_hint(f, "--timeout gives each step more time");
	f->err = ETIMEDOUT;
	return -ETIMEDOUT;
}

void signals_explain(struct fail *f)
{
	char where[sizeof(f->where)];
	bool has_where = f->has_where;

	if (f->code != FAIL_INTERRUPTED && f->sys_errno != EINTR)
		return;
	if (!first_signal && !deadline_passed)
		return;
	memcpy(where, f->where, sizeof(where));
	fill(f);
	memcpy(f->where, where, sizeof(where));
	f->has_where = has_where;
}
