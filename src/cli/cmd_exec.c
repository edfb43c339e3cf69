/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibmr exec: any verbs program on soft0, by LD_PRELOAD. The program's output and exit status are its
 * own; what keeps it from running is told on standard error, as a shell would.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "out.h"
#include "program.h"
#include "soft0_exec.h"

#define NOT_RUNNABLE 126
#define NOT_FOUND    127

/* Ahead of what is preloaded already. */
static int set_preload(const char *library, struct fail *f)
{
	const char *before = getenv("LD_PRELOAD");
	char *value;
	int rc;

	/* the dynamic linker has no way to write these in a name */
	if (strpbrk(library, " :")) {
		fail_set(f, FAIL_UNSUPPORTED,
			 "%s: a path with a blank or a colon cannot be preloaded", library);
		f->cause = "path";
		f->err = EINVAL;
		return -EINVAL;
	}
	if (asprintf(&value, "%s%s%s", library, before && *before ? ":" : "",
		     before ? before : "") < 0)
		return fail_nomem(f);
	rc = setenv("LD_PRELOAD", value, 1);
	free(value);
	return rc ? fail_nomem(f) : 0;
}

static int prepare(const char *name, char *path, size_t size, struct fail *f)
{
	const char *library;
	int rc;

	rc = program_find(name, path, size, f);
	if (!rc)
		rc = program_takes_preload(path, f);
	if (!rc)
		rc = soft0_library(&library, f);
	return rc ? rc : set_preload(library, f);
}

int cmd_exec(struct cli *cli)
{
	char path[PATH_MAX];
	struct fail fail;
	int rc;

	if (!soft0_here()) {
		soft0_exec(cli, NULL, 0, &fail);
		complain(cli, &fail);
		return NOT_RUNNABLE;
	}
	rc = prepare(cli->args[0], path, sizeof(path), &fail);
	if (rc) {
		complain(cli, &fail);
		return rc == -ENOENT ? NOT_FOUND : NOT_RUNNABLE;
	}
	signals_restore();
	execv(path, cli->args);
	rc = errno;
	fail_sys(&fail, FAIL_IO, "execve", rc, "%s: %s", path, strerror(rc));
	complain(cli, &fail);
	return NOT_RUNNABLE;
}
