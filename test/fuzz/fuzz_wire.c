/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client may send to a session: any bytes, and then the end. The session answers each message
 * that is one with a reply that is one, lets go of the client, and has nothing left on the device when it
 * ends.
 */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/agent.h"
#include "cli/cli.h"
#include "cli/wire.h"
#include "softdev/soft0.h"
#include "require.h"

#define MOST_BYTES 60000 /* fit into a socket that nobody reads yet */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A listener without a name in the file system, and a client of it that said all it says. */
static int said(const uint8_t *data, size_t size, int *ret_listener)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(addr);
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	REQUIRE(listener >= 0 && fd >= 0);
	REQUIRE(bind(listener, (struct sockaddr *)&addr, sizeof(sa_family_t)) == 0);
	REQUIRE(getsockname(listener, (struct sockaddr *)&addr, &len) == 0);
	REQUIRE(listen(listener, 4) == 0);
	REQUIRE(connect(fd, (struct sockaddr *)&addr, len) == 0);
	REQUIRE(size == 0 || send(fd, data, size, MSG_DONTWAIT) == (ssize_t)size);
	REQUIRE(shutdown(fd, SHUT_WR) == 0);
	*ret_listener = listener;
	return fd;
}

/* Messages that the bytes begin: each may be answered once. */
static size_t messages(const uint8_t *data, size_t size)
{
	size_t num = 0, length;

	while (size >= WIRE_HEAD) {
		length = wire_length(data);
		num++;
		if (length > size - WIRE_HEAD)
			break;
		data += WIRE_HEAD + length;
		size -= WIRE_HEAD + length;
	}
	return num;
}

static void check_replies(int fd, size_t most)
{
	size_t num = 0, size;
	char *bytes;
	json_t *reply;

	while (!wire_receive(fd, now_ns() + UINT64_C(1000000000), &bytes, &size)) {
		reply = json_loadb(bytes, size, 0, NULL);
		REQUIRE(reply);
		REQUIRE(json_is_true(json_object_get(reply, "ok"))
				? !!json_object_get(reply, "result")
				: !!json_object_get(reply, "error"));
		json_decref(reply);
		free(bytes);
		num++;
	}
	REQUIRE(num <= most);
}

static void check_nothing_left(void)
{
	static const char *const names[] = { "live.mr", "live.mkey", "live.qp", "live.context" };
	uint64_t value;
	unsigned i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		value = 0;
		REQUIRE(soft0_counter(names[i], &value) == 0 && value == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session_opts opts = { .device = soft0_name(), .gid_index = -1, .timeout_ms = 1000 };
	struct place place = { .dir = -1, .lock = -1, .listener = -1, .base = "none" };
	struct agent agent = {
		.place = &place,
		.leash = -1,
		.idle_ms = 1,
		.limits = { .message = 1 << 20, .clients = 4, .objects = 16, .locked = 1 << 22 },
	};
	struct fail f;
	int fd;

	if (size > MOST_BYTES)
		return 0;
	signals_cancel = 0;
	fd = said(data, size, &place.listener);
	REQUIRE(session_open(&opts, &agent.session, &f) == 0);
	agent.session->max_objects = agent.limits.objects;
	agent.session->max_locked = agent.limits.locked;
	REQUIRE(agent_serve(&agent, &f) == 0);
	check_replies(fd, messages(data, size));
	close(fd);
	check_nothing_left();
	return 0;
}
