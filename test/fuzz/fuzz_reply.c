/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What something that calls itself a session may answer: any bytes. A client takes a reply that is one,
 * and has an error for all else.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/client.h"
#include "require.h"

#define MOST_BYTES 60000 /* fit into a socket that nobody reads yet */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *reply = NULL;
	struct fail f = { 0 };
	int fds[2];
	int rc;

	if (size > MOST_BYTES)
		return 0;
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) == 0);
	REQUIRE(size == 0 || send(fds[0], data, size, MSG_NOSIGNAL) == (ssize_t)size);
	close(fds[0]);
	rc = client_receive(fds[1], now_ns() + UINT64_C(1000000000), &reply, &f);
	if (rc) {
		REQUIRE(f.code == FAIL_SESSION || f.code == FAIL_NO_MEMORY);
		REQUIRE(f.message[0]);
	} else {
		if (!client_ok(reply)) {
			client_fail(reply, &f);
			REQUIRE(fail_exit_status(&f) != 0);
		}
		json_decref(reply);
	}
	close(fds[1]);
	return 0;
}
