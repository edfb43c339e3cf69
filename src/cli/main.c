/* SPDX-License-Identifier: BSD-2-Clause */
/* ibmr: the commands, and the one way through all of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "out.h"
#include "soft0_exec.h"

static const struct argp_option run_options[] = {
	{ "keep-going", OPT_KEEP_GOING, NULL, 0, "Go on after an unexpected step", 0 }, { 0 }
};

static const struct argp_option check_options[] = {
	{ "target", OPT_TARGET, "DEVICE", 0, "What to check against: mlx5, rxe or soft0", 0 },
	{ "mr", OPT_MR, "NAME=SIZE", 0, "An MR that a lone SPEC names, and its length", 0 },
	{ 0 }
};

static const struct argp_option no_options[] = { { 0 } };

const struct command commands[] = {
	{ "devices", "", 0, 0, false, "devices, and what each reports it can do",
	  "Lists the devices of this machine and soft0, with what each reports it can do.",
	  no_options, cmd_devices },
	{ "run", "PLAN", 1, 1, false, "run a plan's steps in one process",
	  "Runs the steps of PLAN, a JSON file or - for standard input, and releases all they "
	  "made.",
	  run_options, cmd_run },
	{ "check", "SPEC|PLAN", 1, 1, false, "parse and check, touching no device",
	  "Checks a SPEC or a PLAN, a file or - for standard input, against a device's limits.",
	  check_options, cmd_check },
	{ "exec", "-- PROGRAM [ARG...]", 1, -1, true, "run any verbs program on soft0",
	  "Runs a program with the software device soft0 as its only RDMA device.", no_options,
	  cmd_exec },
	{ 0 }
};

/* A descriptor 0, 1 or 2 that is closed would be the next file we open, and a result would be written
 * into it. What takes its place refuses the same use with EBADF. */
static void occupy_standard_fds(void)
{
	static const int modes[] = { O_WRONLY, O_RDONLY, O_RDONLY };
	int fd;

	for (fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (open("/dev/null", modes[fd]) != fd)
			_exit(1);
	}
}

int main(int argc, char **argv)
{
	struct cli cli = { .start_ns = now_ns(), .plan_fd = -1, .opts.gid_index = -1 };
	struct fail fail;
	int status = 0;
	int rc;

	occupy_standard_fds();
	soft0_take_over(&cli, &argc, argv);
	rc = cli_parse(&cli, argc, argv, &status, &fail);
	if (rc < 0) {
		status = answer_fail(&cli, NULL, &fail);
	} else if (rc == 0) {
		if (!cli.command->rest) {
			signals_init();
			signals_deadline(&cli);
		}
		status = cli.command->run(&cli);
	}
	cli_free(&cli);
	return status;
}
