/* SPDX-License-Identifier: BSD-2-Clause */
/* Asking a session. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include <jansson.h>

#include "cli.h"
#include "client_files.h"

/* One question and its answer: the reply as it came, owned by the caller. Failures are session (none is
 * there, it is another's, it was lost), timeout, interrupted. files may be NULL. wait_end waits for the
 * end of the session after the reply. */
int client_ask(const struct cli *cli, json_t *request, const struct client_files *files,
	       bool wait_end, json_t **ret_reply, struct fail *f);

/* The reply as this command's document on fd; it is released. Returns the exit status. */
int client_answer(const struct cli *cli, int fd, json_t *reply);
bool client_ok(const json_t *reply);
/* As much of a reply's error as people and the exit status need. */
void client_fail(const json_t *reply, struct fail *ret_fail);

/* The reply that a socket gives, as JSON, after what is told of the work until then. */
int client_receive(int fd, uint64_t end_ns, json_t **ret_reply, struct fail *f);

#endif /* CLI_CLIENT_H */
