/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How soft0 comes into the process: ibmr itself never contains softdev, so for soft0 it executes
 * ibmr-soft0, the same objects linked with softdev ahead of libmlx5.
 */
#ifndef CLI_SOFT0_EXEC_H
#define CLI_SOFT0_EXEC_H

#include <stdbool.h>
#include <stddef.h>

#include "cli.h"

/* softdev is in this process: linked, or preloaded by `ibmr exec`. */
bool soft0_here(void);
/* The device is soft0 by name. */
bool soft0_is(const char *device);
/* What soft0 needs is installed. */
bool soft0_installed(void);
/* The path of the softdev library in this process. -ENOENT: it is not here. */
int soft0_library(const char **ret_path, struct fail *reterr);

/* First thing in main: what the ibmr that executed this one hands over is taken out of argv. */
void soft0_take_over(struct cli *cli, int *argc, char **argv);

/* Go on as ibmr-soft0 with the same arguments. A plan already read, or NULL, goes along. Returns on
 * failure only; no call is needed, and none is made, when soft0_here(). */
int soft0_exec(struct cli *cli, const void *plan, size_t size, struct fail *reterr);

/* Start ibmr-soft0 with these arguments after the program's name (NULL terminated), its standard
 * output into *ret_fd. */
int soft0_spawn(char *const args[], int *ret_fd, int *ret_pid, struct fail *reterr);

#endif /* CLI_SOFT0_EXEC_H */
