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
