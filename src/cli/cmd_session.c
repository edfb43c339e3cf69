/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibmr session: start, stop, status and run. What holds the device is a process that was forked before
 * the device was opened, and that never forks after.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"
#include "client.h"
#include "out.h"
#include "program.h"
#include "soft0_exec.h"
#include "wire.h"

#define NOT_RUNNABLE 126
#define NOT_FOUND    127
#define START_MS     60000 /* on top of --timeout, for a device to open */

/* ---- the process that holds the device --------------------------------------------------- */

/* Limits of the session that the command line gave. */
static void set_limits(const struct cli *cli, struct agent *agent)
{
	const struct cli_options *o = &cli->opts;

	agent->limits.message = o->max_message ? o->max_message : WIRE_MAX_REQUEST;
	agent->limits.clients = o->max_clients ? o->max_clients : 256;
	agent->limits.objects = o->max_objects ? o->max_objects : 65536;
	agent->limits.locked = o->max_locked;
	agent->idle_ms = o->idle_ms;
}

static int agent_open(const struct cli *cli, struct place *place, struct agent *ret_agent,
		      struct fail *f)
{
	const struct session_opts opts = { .device = cli->opts.device,
					   .port = cli->opts.port,
					   .gid_index = cli->opts.gid_index,
					   .timeout_ms = cli->opts.timeout_ms };
	struct fail other;
	int rc;

	*ret_agent = (struct agent){ .place = place, .leash = -1 };
	set_limits(cli, ret_agent);
	/* the lock comes first: a second session shall not open the device and pin memory in vain */
	rc = place_lock(place, f);
	if (!rc)
		rc = session_open(&opts, &ret_agent->session, f);
	if (rc)
		return rc;
	ret_agent->session->max_objects = ret_agent->limits.objects;
	ret_agent->session->max_locked = ret_agent->limits.locked;
	rc = place_listen(place, f);
	if (rc) {
		session_close(ret_agent->session, &other);
		ret_agent->session = NULL;
	}
	return rc;
}

static json_t *ready(const struct cli *cli, const struct agent *agent)
{
	const char *device = agent->session->caps.name;

	return json_pack("{s:i, s:s, s:b, s:{s:s, s:b}, s:f, s:n, s:o}", "version", WIRE_VERSION,
			 "command", "session", "ok", 1, "device", "name", device, "software",
			 (int)(soft0_here() && soft0_is(device)), "elapsed_us",
			 (double)(now_ns() - cli->start_ns) / 1000, "expected", "result",
			 agent_identity(agent));
}

/* No core file holds what MRs hold. The limit 1 is the one that stops a core_pattern with a pipe too.
 * PR_SET_DUMPABLE would do it as well, and take /proc/self/pagemap away, by which prefetch counts. */
static void keep_no_core(void)
{
	const struct rlimit least = { 1, 1 };

	setrlimit(RLIMIT_CORE, &least);
}

/* Nothing of who started it is kept: no terminal, no folder, and no descriptor that somebody waits on but
 * two. */
static void detach(int *link, int *dir)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fd;

	setsid();
	*link = fcntl(*link, F_DUPFD_CLOEXEC, 10);
	*dir = fcntl(*dir, F_DUPFD_CLOEXEC, 10);
	if (null < 0 || *link < 0 || *dir < 0 || chdir("/"))
		_exit(1);
	for (fd = 0; fd <= 2; fd++)
		dup2(null, fd);
	if (dup3(*link, 3, O_CLOEXEC) != 3 || dup3(*dir, 4, O_CLOEXEC) != 4)
		_exit(1);
	close_range(5, ~0u, 0);
	*link = 3;
	*dir = 4;
	umask(077);
}

static int say(int link, const struct cli *cli, const struct agent *agent)
{
	json_t *message = ready(cli, agent);
	size_t size = 0;
	char *bytes = message ? wire_pack(message, &size) : NULL;
	int rc;

	json_decref(message);
	if (!bytes)
		return -ENOMEM;
	rc = wire_send(link, bytes, size, NULL, 0, now_ns() + UINT64_C(10000000000));
	free(bytes);
	return rc;
}

static void say_fail(int link, const struct fail *f)
{
	static char bytes[AGENT_REFUSAL_ROOM];
	size_t size = agent_refusal(f, bytes);

	wire_send(link, bytes, size, NULL, 0, now_ns() + UINT64_C(10000000000));
}

/* All of the forked process. It tells over link how it began; with leash it ends when the other side of
 * link does. */
static void __attribute__((noreturn))
background(const struct cli *cli, struct place *place, int link, bool leash)
{
	struct agent agent;
	struct fail f;
	int rc;

	keep_no_core();
	rc = agent_open(cli, place, &agent, &f);
	if (!rc)
		rc = say(link, cli, &agent);
	else
		say_fail(link, &f);
	if (leash)
		agent.leash = link;
	else
		close(link);
	if (agent.session && rc)
		session_close(agent.session, &f);
	else if (!rc)
		rc = agent_serve(&agent, &f);
	place_close(place);
	exit(rc ? 1 : 0);
}

/* Fork it, and have its first word: the document of start, or of its failure. */
static int launch(const struct cli *cli, const char *socket, bool leash, int *ret_link,
		  pid_t *ret_pid, json_t **ret_reply, struct fail *f)
{
	uint64_t end_ns = now_ns() + (START_MS + cli->opts.timeout_ms) * UINT64_C(1000000);
	struct place place;
	int links[2];
	int rc;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, links))
		return fail_sys(f, FAIL_SESSION, "socketpair", errno, "socketpair: %s",
				strerror(errno));
	fflush(NULL);
	*ret_pid = fork();
	if (*ret_pid == 0) {
		/* by its own path, before the working directory is left */
		rc = place_open(socket, true, &place, f);
		if (rc) {
			say_fail(links[1], f);
			_exit(1);
		}
		detach(&links[1], &place.dir);
		background(cli, &place, links[1], leash);
	}
	rc = *ret_pid < 0 ? fail_sys(f, FAIL_SESSION, "fork", errno, "fork: %s", strerror(errno))
			  : 0;
	close(links[1]);
	if (!rc)
		rc = client_receive(links[0], end_ns, ret_reply, f);
	if (rc || !leash)
		close(links[0]);
	else
		*ret_link = links[0];
	return rc;
}

/* ---- start ---------------------------------------------------------------------------------- */

/* systemd, and who else starts it as a service, may wait for a word: sd_notify(3) says which. */
static void tell_service_manager(void)
{
	static const char ready[] = "READY=1";
	const char *name = secure_getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = name ? strlen(name) : 0;
	int fd;

	if (!len || (name[0] != '/' && name[0] != '@') || len > sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, name, len);
	if (name[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, ready, sizeof(ready) - 1, MSG_NOSIGNAL, (struct sockaddr *)&addr,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

static int start_foreground(const struct cli *cli)
{
	struct answer_device device = { .software = false };
	struct agent agent;
	struct place place;
	struct fail fail;
	int rc, status;

	keep_no_core();
	rc = place_open(cli->opts.socket, true, &place, &fail);
	if (rc)
		return answer_fail(cli, NULL, &fail);
	rc = agent_open(cli, &place, &agent, &fail);
	if (rc) {
		place_close(&place);
		return answer_fail(cli, NULL, &fail);
	}
	snprintf(device.name, sizeof(device.name), "%s", agent.session->caps.name);
	device.software = soft0_here() && soft0_is(device.name);
	status = answer_result(cli, &device, agent_identity(&agent));
	if (status) {
		session_close(agent.session, &fail);
		place_close(&place);
		return status;
	}
	tell_service_manager();
	rc = agent_serve(&agent, &fail);
	if (rc)
		complain(cli, &fail);
	return rc ? fail_exit_status(&fail) : 0;
}

static int start(const struct cli *cli)
{
	json_t *reply;
	struct fail fail;
	pid_t pid;
	int link;

	if (cli->opts.foreground)
		return start_foreground(cli);
	if (launch(cli, cli->opts.socket, false, &link, &pid, &reply, &fail))
		return answer_fail(cli, NULL, &fail);
	/* a failure is told by a process that did not see the beginning */
	json_object_set_new(reply, "elapsed_us",
			    json_real((double)(now_ns() - cli->start_ns) / 1000));
	return client_answer(cli, STDOUT_FILENO, reply);
}

/* ---- run -------------------------------------------------------------------------------------- */

static int wait_status(pid_t pid)
{
	struct fail f;
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return NOT_RUNNABLE;
		if (signals_check(&f)) {
			kill(pid, f.signo ? f.signo : SIGTERM);
			signals_hold();
		}
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_program(const struct cli *cli, const char *socket)
{
	char **args = cli->args + 1;
	char path[PATH_MAX];
	struct fail fail;
	pid_t pid;
	int rc;

	rc = program_find(args[0], path, sizeof(path), &fail);
	if (rc) {
		complain(cli, &fail);
		return rc == -ENOENT ? NOT_FOUND : NOT_RUNNABLE;
	}
	if (setenv("IBMR_SOCKET", socket, 1))
		return NOT_RUNNABLE;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		signals_restore();
		execv(path, args);
		fail_sys(&fail, FAIL_IO, "execve", errno, "%s: %s", path, strerror(errno));
		complain(cli, &fail);
		_exit(NOT_RUNNABLE);
	}
	if (pid < 0) {
		fail_sys(&fail, FAIL_IO, "fork", errno, "fork: %s", strerror(errno));
		complain(cli, &fail);
		return NOT_RUNNABLE;
	}
	return wait_status(pid);
}

/* A folder of its own, so that nobody else finds the socket. */
static int private_folder(char *buf, size_t size, struct fail *f)
{
	const char *dir = secure_getenv("TMPDIR");
	int n = snprintf(buf, size, "%s/ibmr-run-XXXXXX", dir && *dir ? dir : "/tmp");

	if (n < 0 || (size_t)n >= size)
		return fail_sys(f, FAIL_SESSION, "mkdtemp", ENAMETOOLONG, "$TMPDIR is too long");
	if (!mkdtemp(buf))
		return fail_sys(f, FAIL_SESSION, "mkdtemp", errno, "%s: %s", buf, strerror(errno));
	return 0;
}

static int run(const struct cli *cli)
{
	char folder[PATH_MAX - 32];
	char socket[PATH_MAX];
	json_t *reply = NULL;
	struct fail fail;
	pid_t pid = -1;
	int status, link, rc;

	rc = private_folder(folder, sizeof(folder), &fail);
	if (rc) {
		complain(cli, &fail);
		return fail_exit_status(&fail);
	}
	snprintf(socket, sizeof(socket), "%s/session.sock", folder);
	rc = launch(cli, socket, true, &link, &pid, &reply, &fail);
	if (!rc && !client_ok(reply)) {
		client_fail(reply, &fail);
		close(link);
		rc = -EIO;
	}
	json_decref(reply);
	if (rc) {
		complain(cli, &fail);
		status = fail_exit_status(&fail);
	} else {
		status = run_program(cli, socket);
		close(link);
	}
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	/* a session that lost its device left word of it */
	snprintf(socket, sizeof(socket), "%s/session.sock.lock", folder);
	unlink(socket);
	rmdir(folder);
	return status;
}

/* ---- stop, status ------------------------------------------------------------------------------- */

static int ask(const struct cli *cli, const char *word)
{
	json_t *request = json_pack("{s:s}", "do", word);
	json_t *reply = NULL;
	struct fail fail;
	int rc;

	if (request)
		rc = client_ask(cli, request, NULL, !strcmp(word, "stop"), &reply, &fail);
	else
		rc = fail_nomem(&fail);
	json_decref(request);
	return rc ? answer_fail(cli, NULL, &fail) : client_answer(cli, STDOUT_FILENO, reply);
}

/* ---- the word -------------------------------------------------------------------------------------- */

static int check_words(const struct cli *cli, struct fail *f)
{
	static const char *const words[] = { "start", "stop", "status", "run" };
	const struct cli_options *o = &cli->opts;
	const char *word = cli->args[0];
	const bool holds = !strcmp(word, "start") || !strcmp(word, "run");
	const char *nearest = spec_nearest(word, words, 4);
	size_t i;

	for (i = 0; i < 4 && strcmp(word, words[i]); i++)
		;
	if (i == 4) {
		fail_set(f, FAIL_USAGE, "session '%s': must be start, stop, status or run", word);
		if (nearest)
			fail_hint(f, "did you mean '%s'?", nearest);
		return -EINVAL;
	}
	if (strcmp(word, "run") ? cli->num_args > 1 : cli->num_args < 2)
		return fail_set(f, FAIL_USAGE,
				cli->num_args > 1 ? "session %s takes no argument"
						  : "session %s needs a program",
				word);
	if (o->foreground && strcmp(word, "start"))
		return fail_set(f, FAIL_USAGE, "--foreground belongs to session start");
	if (!holds &&
	    (o->idle_ms || o->max_message || o->max_clients || o->max_objects || o->max_locked))
		return fail_set(f, FAIL_USAGE, "limits belong to session start and run, not %s",
				word);
	return 0;
}

int cmd_session(struct cli *cli)
{
	const char *word = cli->args[0];
	struct fail fail;

	if (check_words(cli, &fail))
		return answer_fail(cli, NULL, &fail);
	if (!strcmp(word, "stop") || !strcmp(word, "status"))
		return ask(cli, word);
	if (soft0_is(cli->opts.device) && !soft0_here()) {
		soft0_exec(cli, NULL, 0, &fail);
		return answer_fail(cli, NULL, &fail);
	}
	return !strcmp(word, "run") ? run(cli) : start(cli);
}
