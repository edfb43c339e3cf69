/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers side by side, one a device: one that hangs keeps no other from its checks. What a worker said
 * before it was ended, or died, stands.
 */
#include "validate.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "soft0_exec.h"

#define GRACE_MS 2000u /* for an orderly end after a signal */
#define LOOK_MS	 100u  /* between looks at a worker that was killed */
#define DEAD_MS	 200u  /* for a killed one to go */

/* ---- starting ---------------------------------------------------------------------- */

/* In the child: never returns. */
static void become_worker(struct cli *cli, const struct suite *suite, const char *device, int fd)
{
	struct fail fail;
	char *text;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (dup2(fd, STDOUT_FILENO) < 0)
		_exit(1);
	close(fd);
	if (!soft0_is(device) || soft0_here())
		_exit(worker_run(cli, suite, device) ? 1 : 0);
	text = suite_text(suite);
	if (text)
		soft0_exec(cli, text, strlen(text), &fail);
	else
		fail_nomem(&fail);
	_exit(worker_give_up(&fail));
}

static int start(struct cli *cli, const struct suite *suite, struct watched *w, struct fail *f)
{
	int fds[2];
	pid_t pid;

	w->checks = json_array();
	if (!w->checks)
		return fail_nomem(f);
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK))
		return fail_sys(f, FAIL_IO, "pipe2", errno, "cannot start a worker: %s",
				strerror(errno));
	fcntl(fds[1], F_SETFL, 0); /* the worker may wait for us */
	fflush(stderr);
	pid = fork();
	if (pid == 0)
		become_worker(cli, suite, w->device, fds[1]);
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return fail_sys(f, FAIL_NO_MEMORY, "fork", errno, "cannot start a worker: %s",
				strerror(errno));
	}
	w->pid = pid;
	w->fd = fds[0];
	return 0;
}

/* ---- what they say ------------------------------------------------------------------- */

struct watch {
	struct watched *devices;
	size_t num;
	struct pollfd *polls;
	size_t most;	/* checks */
	bool no_memory; /* for what they said */
	void (*each)(void *arg, const struct watched *w, const json_t *check);
	void *arg;
};

/* What is no JSON is of a process that came to its end before it was a worker. */
static void take_line(struct watch *watch, struct watched *w, char *line, size_t len)
{
	const struct spec_text text = { line, len };
	json_t *doc = NULL, *value;
	struct fail fail;

	if (spec_parse_text(&text, &doc, &fail) == -ENOMEM)
		watch->no_memory = true;
	value = json_object_get(doc, "gave_up");
	if (value && !w->gave_up)
		w->gave_up = json_incref(value);
	value = json_object_get(doc, "device");
	if (value && !w->about)
		w->about = json_incref(value);
	if (json_object_get(doc, "begin"))
		w->begun = true;
	value = json_object_get(doc, "check");
	if (value && json_array_size(w->checks) < watch->most) {
		w->begun = false;
		if (json_array_append(w->checks, value))
			watch->no_memory = true;
		else if (watch->each)
			watch->each(watch->arg, w, value);
	}
	json_decref(doc);
}

/* All that is there. False: its end. */
static bool take(struct watch *watch, struct watched *w)
{
	char *newline, *at;
	ssize_t n;

	if (w->room - w->used < 4096) {
		char *line = realloc(w->line, w->room + 65536);

		if (!line) {
			watch->no_memory = true;
			return false;
		}
		w->line = line;
		w->room += 65536;
	}
	n = read(w->fd, w->line + w->used, w->room - w->used);
	if (n < 0)
		return errno == EINTR || errno == EAGAIN;
	if (n == 0)
		return false;
	w->used += (size_t)n;
	for (at = w->line; (newline = memchr(at, '\n', w->used - (size_t)(at - w->line)));
	     at = newline + 1)
		take_line(watch, w, at, (size_t)(newline - at));
	w->used -= (size_t)(at - w->line);
	memmove(w->line, at, w->used);
	return true;
}

/* ---- waiting --------------------------------------------------------------------------- */

static void close_pipe(struct watched *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

/* One look at all; waits at most ms. Returns how many have not ended. */
static size_t look(struct watch *watch, int ms)
{
	size_t open = 0;
	size_t i;

	for (i = 0; i < watch->num; i++) {
		watch->polls[i].fd = watch->devices[i].fd;
		watch->polls[i].events = POLLIN;
	}
	if (poll(watch->polls, watch->num, ms) > 0)
		for (i = 0; i < watch->num; i++)
			if (watch->polls[i].revents && !take(watch, &watch->devices[i]))
				close_pipe(&watch->devices[i]);
	for (i = 0; i < watch->num; i++)
		open += watch->devices[i].fd >= 0;
	return open;
}

static void send_all(struct watch *watch, int signo)
{
	size_t i;

	for (i = 0; i < watch->num; i++)
		if (watch->devices[i].fd >= 0)
			kill(watch->devices[i].pid, signo);
}

static void look_until(struct watch *watch, uint32_t ms)
{
	struct bound bound = bound_of(ms);

	while (bound_left_ms(&bound) && look(watch, (int)LOOK_MS))
		;
}

/* A worker whose pipe is closed has ended; one that was killed and sits in the kernel is not waited for
 * longer than this. */
static void reap(struct watched *w)
{
	struct bound bound = bound_of(DEAD_MS);
	pid_t pid = w->pid;

	while (pid && waitpid(pid, &w->wait_status, WNOHANG) == 0 && bound_left_ms(&bound))
		poll(NULL, 0, 1);
	close_pipe(w);
}

/* -EINTR: the deadline passed, or a signal came, as f says. */
static int wait_all(struct watch *watch, struct fail *f)
{
	size_t i;
	int rc;

	while (!signals_cancel && !watch->no_memory && look(watch, -1))
		;
	rc = signals_check(f);
	signals_hold();
	if (rc && f->code == FAIL_INTERRUPTED) {
		send_all(watch, f->signo);
		look_until(watch, GRACE_MS);
	}
	for (i = 0; i < watch->num; i++) {
		struct watched *w = &watch->devices[i];

		if (w->fd < 0)
			continue;
		w->stopped = true;
		/* what it said up to now counts */
		while (look(watch, 0) && poll(&(struct pollfd){ w->fd, POLLIN, 0 }, 1, 0) > 0)
			;
		kill(w->pid, SIGKILL);
	}
	for (i = 0; i < watch->num; i++)
		reap(&watch->devices[i]);
	return watch->no_memory ? fail_nomem(f) : rc;
}

int watch_run(struct cli *cli, const struct suite *suite, struct watched *devices, size_t num,
	      void (*each)(void *arg, const struct watched *w, const json_t *check), void *arg,
	      struct fail *f)
{
	struct watch watch = {
		.devices = devices, .num = num, .most = suite->num, .each = each, .arg = arg
	};
	struct fail unused;
	size_t i;
	int rc = 0;

	for (i = 0; i < num; i++)
		devices[i].fd = -1;
	watch.polls = calloc(num + 1, sizeof(*watch.polls));
	if (!watch.polls)
		return fail_nomem(f);
	for (i = 0; i < num && !rc; i++)
		rc = start(cli, suite, &devices[i], f);
	if (rc) {
		send_all(&watch, SIGKILL);
		wait_all(&watch, &unused);
	} else {
		rc = wait_all(&watch, f);
	}
	free(watch.polls);
	return rc;
}

void watch_free(struct watched *devices, size_t num)
{
	size_t i;

	for (i = 0; i < num; i++) {
		json_decref(devices[i].about);
		json_decref(devices[i].gave_up);
		json_decref(devices[i].checks);
		free(devices[i].line);
	}
}
