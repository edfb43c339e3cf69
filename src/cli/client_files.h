/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a request names, opened here and lent to the session. */
#ifndef CLI_CLIENT_FILES_H
#define CLI_CLIENT_FILES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "fail.h"
#include "spec.h"
#include "wire.h"

struct client_files {
	json_t *told; /* the message's member files */
	int fds[WIRE_MAX_FDS];
	size_t num;
	/* what read --to-file writes: a file that is new here, or a copy for what is no file */
	char *made;
	int copy; /* among fds; -1: none */
	int copy_to;
	char *copy_name;
	bool standard; /* copy_to is standard output, which may take its time */
	uint32_t timeout_ms;
};

/* What cannot be opened is told to the session, which answers it where it belongs: only memory and
 * reading a pipe fail here. A FIFO is waited for as long as a step may take. */
int client_files_open(const struct step *step, uint32_t timeout_ms, struct client_files *ret_files,
		      struct fail *f);
/* After the answer: bytes that go to a pipe are copied, a new file that stayed empty is removed. */
int client_files_close(struct client_files *files, bool ok, struct fail *f);

#endif /* CLI_CLIENT_FILES_H */
