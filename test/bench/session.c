/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a session costs, without the commands around it:
 *
 *   session pairs N     N times create and dereg, answered in this process: microseconds for both, the
 *                       median of a thousand parts, so that other work on the machine tells less
 *   session show NAME   connect to $IBMR_SOCKET, ask for one MR, print the reply
 *   session make N      have so many MRs in that session
 *   session ask N       N times show of the first and the last of them: microseconds for one
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agent.h"
#include "cli.h"
#include "wire.h"

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	fprintf(stderr, "session: %s\n", what);
	exit(1);
}

static size_t message(char *buf, size_t size, const char *verb, const char *name, const char *more)
{
	int n = snprintf(buf + WIRE_HEAD, size - WIRE_HEAD,
			 "{\"version\":1,\"request\":{\"do\":\"%s\",\"mr\":\"%s\"%s}}", verb, name,
			 more);

	require(n > 0 && (size_t)n < size - WIRE_HEAD, "a name that is too long");
	wire_put_length((uint8_t *)buf, (uint32_t)n);
	return WIRE_HEAD + (size_t)n;
}

/* ---- in this process ------------------------------------------------------------------ */

static void answer(struct agent *agent, const char *verb, const char *more)
{
	char buf[256];
	size_t size = message(buf, sizeof(buf), verb, "m", more);
	char *reply;

	reply = agent_answer(agent, buf + WIRE_HEAD, size - WIRE_HEAD, NULL, 0, &size);
	require(reply && memmem(reply, size, "\"ok\":true", 9), "a request failed");
	free(reply);
}

#define PARTS 1000

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double part(struct agent *agent, unsigned long num)
{
	uint64_t start = now_ns();
	unsigned long i;

	for (i = 0; i < num; i++) {
		answer(agent, "create", ",\"max_klms\":4");
		answer(agent, "dereg", "");
	}
	return (double)(now_ns() - start) / 1000 / (double)num;
}

static void pairs(unsigned long num)
{
	const struct session_opts opts = { .device = "soft0",
					   .gid_index = -1,
					   .timeout_ms = 10000 };
	struct place place = { .dir = -1, .lock = -1, .listener = -1 };
	struct agent agent = { .place = &place, .leash = -1 };
	static double times[PARTS];
	struct fail f;
	int i;

	require(num >= PARTS, "at least a thousand");
	require(!session_open(&opts, &agent.session, &f), "soft0 does not open");
	for (i = 0; i < PARTS; i++)
		times[i] = part(&agent, num / PARTS);
	qsort(times, PARTS, sizeof(times[0]), compare);
	printf("%.3f\n", times[PARTS / 2]);
	require(!session_close(agent.session, &f), "it does not close");
}

/* ---- over the socket -------------------------------------------------------------------- */

static int connect_session(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	const char *path = getenv("IBMR_SOCKET");
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	require(path && strlen(path) < sizeof(addr.sun_path), "IBMR_SOCKET");
	memcpy(addr.sun_path, path, strlen(path) + 1);
	require(fd >= 0 && !connect(fd, (struct sockaddr *)&addr, sizeof(addr)), "no session");
	return fd;
}

static char *ask(int fd, const char *verb, const char *name, const char *more, size_t *ret_size)
{
	uint64_t end_ns = now_ns() + UINT64_C(10000000000);
	char buf[256];
	size_t size = message(buf, sizeof(buf), verb, name, more);
	char *reply;

	require(!wire_send(fd, buf, size, NULL, 0, end_ns), "sending");
	require(!wire_receive(fd, end_ns, &reply, ret_size), "receiving");
	return reply;
}

static void show(const char *name)
{
	int fd = connect_session();
	size_t size;
	char *reply = ask(fd, "show", name, "", &size);
	json_t *document = json_loadb(reply, size, 0, NULL);

	require(document && !json_dumpf(document, stdout, JSON_INDENT(2)), "printing");
	json_decref(document);
	free(reply);
	close(fd);
}

static void make(unsigned long num)
{
	int fd = connect_session();
	unsigned long i;
	char name[32];
	size_t size;

	for (i = 0; i < num; i++) {
		snprintf(name, sizeof(name), "mr%lu", i);
		free(ask(fd, "create", name, ",\"max_klms\":4", &size));
	}
	close(fd);
}

static void ask_again(unsigned long num)
{
	int fd = connect_session();
	uint64_t start = now_ns();
	unsigned long i;
	size_t size;

	for (i = 0; i < num; i++)
		free(ask(fd, "show", i & 1 ? "mr0" : "mr9", "", &size));
	printf("%.3f\n", (double)(now_ns() - start) / 1000 / (double)num);
	close(fd);
}

int main(int argc, char **argv)
{
	require(argc == 3, "usage: session pairs N | show NAME | make N | ask N");
	if (!strcmp(argv[1], "pairs"))
		pairs(strtoul(argv[2], NULL, 10));
	else if (!strcmp(argv[1], "show"))
		show(argv[2]);
	else if (!strcmp(argv[1], "make"))
		make(strtoul(argv[2], NULL, 10));
	else
		ask_again(strtoul(argv[2], NULL, 10));
	return 0;
}
