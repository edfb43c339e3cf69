/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding and executing ibmr-soft0. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "installed.h"
#include "soft0_exec.h"
#include "../softdev/soft0.h"

#pragma weak soft0_name

#define PROGRAM	 "ibmr-soft0"
#define HANDOVER "--handover="

bool soft0_here(void)
{
	return soft0_name != NULL;
}

bool soft0_is(const char *device)
{
	return device && !strcmp(device, soft0_here() ? soft0_name() : "soft0");
}

int soft0_library(const char **ret_path, struct fail *reterr)
{
	Dl_info info;

	if (!soft0_here() || !dladdr((void *)soft0_name, &info) || !info.dli_fname) {
		fail_set(reterr, FAIL_IO, "the software device's library is not in this process");
		reterr->err = ENOENT;
		return -ENOENT;
	}
	*ret_path = info.dli_fname;
	return 0;
}

static int find_program(char *buf, size_t size, struct fail *f)
{
	int rc = installed_find(".", IBMR_PRIVEXECDIR, PROGRAM, X_OK, buf, size);

	if (!rc)
		return 0;
	fail_sys(f, FAIL_NO_DEVICE, "access", -rc, "soft0: %s: %s", buf, strerror(-rc));
	f->cause = "no_soft0";
	fail_hint(f, "install all of ibmr: soft0 is in the program " PROGRAM);
	return rc;
}

bool soft0_installed(void)
{
	char path[PATH_MAX + 64];
	struct fail unused;

	return !find_program(path, sizeof(path), &unused);
}

/* ---- handing over ------------------------------------------------------------ */

void soft0_take_over(struct cli *cli, int *argc, char **argv)
{
	long long start;
	int fd, end = 0;
	int i;

	if (*argc < 2 || strncmp(argv[1], HANDOVER, strlen(HANDOVER)))
		return;
	/* an odd one is left for the option parser, which does not know it */
	if (sscanf(argv[1] + strlen(HANDOVER), "%d,%lld%n", &fd, &start, &end) != 2 ||
	    argv[1][strlen(HANDOVER) + (size_t)end] || start <= 0)
		return;
	cli->reexecuted = true;
	cli->plan_fd = fd;
	cli->start_ns = (uint64_t)start;
	for (i = 1; i < *argc; i++)
		argv[i] = argv[i + 1];
	--*argc;
}

static int handover_fail(struct fail *f, const char *call, int number)
{
	return fail_sys(f, number == ENOMEM ? FAIL_NO_MEMORY : FAIL_IO, call, number,
			"cannot hand over to " PROGRAM ": %s", strerror(number));
}

/* The plan as a file without a name: whatever it came from can be read only once. */
static int plan_file(const void *plan, size_t size, int *ret_fd, struct fail *f)
{
	const char *at = plan;
	size_t done = 0;
	int fd = memfd_create("ibmr-plan", 0);
	int saved;

	if (fd < 0)
		return handover_fail(f, "memfd_create", errno);
	while (done < size) {
		ssize_t n = write(fd, at + done, size - done);

		if (n > 0) {
			done += (size_t)n;
		} else if (errno != EINTR) {
			saved = errno;
			close(fd);
			return handover_fail(f, "write", saved);
		}
	}
	lseek(fd, 0, SEEK_SET);
	*ret_fd = fd;
	return 0;
}

static int start_fail(struct fail *f, const char *call, const char *path, int number)
{
	fail_sys(f, number == ENOMEM || number == EAGAIN ? FAIL_NO_MEMORY : FAIL_NO_DEVICE, call,
		 number, "soft0: %s: %s", path, strerror(number));
	if (f->code == FAIL_NO_DEVICE)
		f->cause = "no_soft0";
	return -number;
}

static char **arguments(const struct cli *cli, char *handover)
{
	char **args = calloc((size_t)cli->argc + 2, sizeof(*args));
	int i;

	if (!args)
		return NULL;
	args[0] = cli->argv[0];
	args[1] = handover;
	for (i = 1; i < cli->argc; i++)
		args[i + 1] = cli->argv[i];
	return args;
}

int soft0_exec(struct cli *cli, const void *plan, size_t size, struct fail *reterr)
{
	char path[PATH_MAX + 64];
	char handover[64];
	char **args;
	int fd = -1;
	int rc;

	if (cli->reexecuted) {
		/* a program of that name that has no softdev would execute itself for ever */
		fail_set(reterr, FAIL_NO_DEVICE, PROGRAM " does not contain soft0");
		reterr->cause = "no_soft0";
		reterr->err = ENODEV;
		return -ENODEV;
	}
	rc = find_program(path, sizeof(path), reterr);
	if (rc)
		return rc;
	if (plan) {
		rc = plan_file(plan, size, &fd, reterr);
		if (rc)
			return rc;
	}
	snprintf(handover, sizeof(handover), HANDOVER "%d,%lld", fd, (long long)cli->start_ns);
	args = arguments(cli, handover);
	if (!args) {
		rc = fail_nomem(reterr);
		goto close_plan;
	}
	signals_block();
	/* one that came before is answered here; one that comes later is pending over there */
	rc = signals_check(reterr);
	if (!rc) {
		execv(path, args);
		rc = start_fail(reterr, "execve", path, errno);
	}
	free(args);
close_plan:
	if (fd >= 0)
		close(fd);
	return rc;
}

int soft0_spawn(char *const args[], int *ret_fd, int *ret_pid, struct fail *reterr)
{
	char path[PATH_MAX + 64];
	char handover[64];
	char *argv[16] = { (char *)"ibmr", handover };
	posix_spawn_file_actions_t actions;
	int fds[2];
	size_t i;
	int rc;

	rc = find_program(path, sizeof(path), reterr);
	if (rc)
		return rc;
	snprintf(handover, sizeof(handover), HANDOVER "-1,%lld", (long long)now_ns());
	for (i = 0; args[i] && i + 3 < sizeof(argv) / sizeof(argv[0]); i++)
		argv[i + 2] = args[i];
	if (pipe2(fds, O_CLOEXEC))
		return handover_fail(reterr, "pipe2", errno);
	rc = posix_spawn_file_actions_init(&actions);
	if (!rc) {
		rc = posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
		if (!rc)
			rc = posix_spawn(ret_pid, path, &actions, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return start_fail(reterr, "posix_spawn", path, rc);
	}
	*ret_fd = fds[0];
	return 0;
}
