/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One loop over all clients. Nothing in it waits for one of them: each has its own buffer and its own
 * time, in which the requests of others do not count. A client's next message is read when the answer to
 * the last has left.
 */
#include "agent.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "wire.h"

#define MESSAGE_MS 10000      /* for all of a message, and for taking an answer */
#define SILENT_MS  300000     /* between an answer and the next message */
#define PART	   (1u << 18) /* read from one client before the others have their turn */

struct client {
	int fd;
	uint8_t head[WIRE_HEAD];
	size_t head_done;
	char *in;
	size_t size, done, room; /* of the message in in */
	int fds[WIRE_MAX_FDS];
	size_t num_fds;
	char *out; /* NULL: no answer is on its way */
	size_t out_size, out_done;
	bool last; /* close when the answer has left */
	uint64_t end_ns;
	char refusal[AGENT_REFUSAL_ROOM];
};

enum { POLL_LISTENER, POLL_LEASH, POLL_DEVICE, POLL_CLIENTS };

struct loop {
	struct agent *agent;
	struct client **clients; /* num_clients of them */
	struct pollfd *polls;	 /* listener, leash, device, then the clients */
	size_t room;		 /* clients that both have a place for */
	bool full;		 /* no descriptor was left for another client */
};

/* ---- a client's life ------------------------------------------------------------------ */

/* The clock that stands still while a request is carried out. */
static uint64_t client_time(const struct agent *agent)
{
	return now_ns() - agent->busy_ns;
}

static void set_end(const struct agent *agent, struct client *c, uint64_t ms)
{
	c->end_ns = client_time(agent) + ms * UINT64_C(1000000);
}

static void drop_message(struct client *c)
{
	while (c->num_fds)
		close(c->fds[--c->num_fds]);
	free(c->in);
	c->in = NULL;
	c->head_done = c->size = c->done = c->room = 0;
}

static void drop_answer(struct client *c)
{
	if (c->out != c->refusal)
		free(c->out);
	c->out = NULL;
}

static void client_free(struct client *c)
{
	drop_message(c);
	drop_answer(c);
	close(c->fd);
	free(c);
}

static void answer(struct agent *agent, struct client *c, char *bytes, size_t size)
{
	drop_message(c);
	c->out = bytes;
	c->out_size = size;
	c->out_done = 0;
	set_end(agent, c, MESSAGE_MS);
}

/* The last that this client hears. */
static void refuse(struct agent *agent, struct client *c, const struct fail *f)
{
	c->last = true;
	answer(agent, c, c->refusal, agent_refusal(f, c->refusal));
}

static void refuse_session(struct agent *agent, struct client *c, enum fail_code code,
			   const char *cause, int number, const char *text, const char *hint)
{
	struct fail f;

	fail_set(&f, code, "%s", text);
	f.cause = cause;
	f.err = number;
	if (hint)
		fail_hint(&f, "%s", hint);
	refuse(agent, c, &f);
}

static void refuse_nomem(struct agent *agent, struct client *c)
{
	struct fail f;

	fail_nomem(&f);
	refuse(agent, c, &f);
}

/* ---- in and out ---------------------------------------------------------------------------- */

/* Send what there is to send. False: the client is to go. */
static bool push(struct agent *agent, struct client *c)
{
	ssize_t n;

	while (c->out_done < c->out_size) {
		n = wire_sendmsg(c->fd, c->out + c->out_done, c->out_size - c->out_done, NULL, 0);
		if (n == -EAGAIN)
			return true;
		if (n < 0 && n != -EINTR)
			return false;
		if (n > 0)
			c->out_done += (size_t)n;
	}
	drop_answer(c);
	set_end(agent, c, SILENT_MS);
	return !c->last;
}

static void carry_out(struct agent *agent, struct client *c)
{
	struct fail f;
	size_t size;
	char *reply;

	agent->asker = c->fd;
	reply = agent_answer(agent, c->in, c->size, c->fds, c->num_fds, &size);
	if (reply) {
		answer(agent, c, reply, size);
	} else {
		fail_nomem(&f);
		answer(agent, c, c->refusal, agent_refusal(&f, c->refusal));
	}
}

static void begin_message(struct agent *agent, struct client *c)
{
	c->size = wire_length(c->head);
	if (c->size > agent->limits.message)
		refuse_session(agent, c, FAIL_LIMIT, "session_message", EMSGSIZE,
			       "the message is longer than the session takes",
			       "start the session with a larger --max-message, or use a file");
	else if (!c->size)
		refuse_session(agent, c, FAIL_SESSION, "protocol", EPROTO, "a message of no bytes",
			       NULL);
}

/* Memory grows with what has come, not with what is promised. */
static int grow(struct client *c)
{
	size_t room = c->room ? 2 * c->room : 4096;
	char *more;

	if (c->done < c->room)
		return 0;
	if (room > c->size)
		room = c->size;
	more = realloc(c->in, room);
	if (!more)
		return -ENOMEM;
	c->in = more;
	c->room = room;
	return 0;
}

/* One read. 1: go on, 0: later or answered, negative: the client is to go. */
static int pull_part(struct agent *agent, struct client *c)
{
	ssize_t n;

	if (c->head_done < WIRE_HEAD)
		n = wire_recvmsg(c->fd, c->head + c->head_done, WIRE_HEAD - c->head_done, c->fds,
				 &c->num_fds);
	else if (grow(c)) {
		refuse_nomem(agent, c);
		return 0;
	} else
		n = wire_recvmsg(c->fd, c->in + c->done, c->room - c->done, c->fds, &c->num_fds);
	if (n == -EAGAIN)
		return 0;
	if (n == -EINTR)
		return 1;
	if (n == -EMSGSIZE) {
		refuse_session(agent, c, FAIL_SESSION, "protocol", EPROTO,
			       "more descriptors than a message may carry", NULL);
		return 0;
	}
	if (n <= 0)
		return -EPIPE;
	if (c->head_done == 0)
		set_end(agent, c, MESSAGE_MS);
	if (c->head_done < WIRE_HEAD) {
		c->head_done += (size_t)n;
		if (c->head_done == WIRE_HEAD)
			begin_message(agent, c);
	} else {
		c->done += (size_t)n;
	}
	return c->out ? 0 : 1;
}

/* Read, and carry out a request that is whole. False: the client is to go. */
static bool pull(struct agent *agent, struct client *c)
{
	size_t parts;
	int rc = 1;

	for (parts = 0; rc > 0 && parts < PART; parts += 4096) {
		rc = pull_part(agent, c);
		if (rc > 0 && c->head_done == WIRE_HEAD && c->done == c->size) {
			carry_out(agent, c);
			rc = 0;
		}
	}
	if (rc < 0)
		return false;
	return !c->out || push(agent, c);
}

/* ---- who may come in ------------------------------------------------------------------------- */

/* Memory grows with who has come, not with how many may. */
static int make_room(struct loop *loop)
{
	size_t room = loop->room ? 2 * loop->room : 16;
	void *more;

	if (loop->agent->num_clients < loop->room)
		return 0;
	more = reallocarray(loop->clients, room, sizeof(*loop->clients));
	if (!more)
		return -ENOMEM;
	loop->clients = more;
	more = reallocarray(loop->polls, room + POLL_CLIENTS, sizeof(*loop->polls));
	if (!more)
		return -ENOMEM;
	loop->polls = more;
	loop->room = room;
	return 0;
}

static void meet(struct loop *loop, int fd)
{
	struct agent *agent = loop->agent;
	struct client *c = calloc(1, sizeof(*c));
	struct ucred peer = { 0 };
	socklen_t len = sizeof(peer);

	if (!c) {
		close(fd);
		return;
	}
	c->fd = fd;
	set_end(agent, c, MESSAGE_MS);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) || peer.uid != geteuid())
		refuse_session(agent, c, FAIL_SESSION, "not_owner", EPERM,
			       "the session belongs to another user", NULL);
	else if (agent->num_clients >= agent->limits.clients)
		refuse_session(agent, c, FAIL_LIMIT, "session_clients", EUSERS,
			       "the session has as many clients as it takes",
			       "try again, or start the session with a larger --max-clients");
	else if (make_room(loop))
		refuse_nomem(agent, c);
	/* a word to them now or never: they get no place */
	if (c->out) {
		push(agent, c);
		client_free(c);
		return;
	}
	loop->clients[agent->num_clients++] = c;
}

static void accept_all(struct loop *loop)
{
	int fd;

	for (;;) {
		fd = accept4(loop->agent->place->listener, NULL, NULL,
			     SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			meet(loop, fd);
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
			   errno == ENOBUFS) {
			loop->full = true;
			return;
		} else if (errno != EINTR && errno != ECONNABORTED) {
			return;
		}
	}
}

static void remove_client(struct loop *loop, size_t i)
{
	client_free(loop->clients[i]);
	loop->clients[i] = loop->clients[--loop->agent->num_clients];
	loop->full = false;
}

/* ---- the loop ---------------------------------------------------------------------------------- */

static uint64_t idle_end(const struct agent *agent)
{
	if (!agent->idle_ms || agent->num_clients)
		return UINT64_MAX;
	return agent->last_ns + agent->idle_ms * UINT64_C(1000000);
}

/* Milliseconds until something is to be done without anybody asking. */
static int next_wait(const struct loop *loop)
{
	const struct agent *agent = loop->agent;
	uint64_t now = now_ns();
	uint64_t end = idle_end(agent);
	size_t i;

	for (i = 0; i < agent->num_clients; i++)
		if (loop->clients[i]->end_ns + agent->busy_ns < end)
			end = loop->clients[i]->end_ns + agent->busy_ns;
	/* with no descriptor left for a new client, look again */
	if (loop->full && end > now + UINT64_C(100000000))
		end = now + UINT64_C(100000000);
	if (end == UINT64_MAX)
		return -1;
	if (end <= now)
		return 0;
	return end - now > UINT64_C(3600000000000) ? 3600000 : (int)((end - now) / 1000000 + 1);
}

static size_t prepare(const struct loop *loop)
{
	const struct agent *agent = loop->agent;
	size_t i;

	loop->polls[POLL_LISTENER] =
		(struct pollfd){ loop->full ? -1 : agent->place->listener, POLLIN, 0 };
	loop->polls[POLL_LEASH] = (struct pollfd){ agent->leash, POLLIN, 0 };
	loop->polls[POLL_DEVICE] =
		(struct pollfd){ ibmr_ctx_event_fd(agent->session->ctx), POLLIN, 0 };
	for (i = 0; i < agent->num_clients; i++)
		loop->polls[POLL_CLIENTS + i] =
			(struct pollfd){ loop->clients[i]->fd,
					 loop->clients[i]->out ? POLLOUT : POLLIN, 0 };
	return POLL_CLIENTS + i;
}

static void serve_clients(struct loop *loop)
{
	struct agent *agent = loop->agent;
	size_t i = agent->num_clients;
	bool stays;

	/* from the last: the one that takes a place that was left has had its turn */
	while (i-- > 0 && !agent->stop) {
		struct client *c = loop->clients[i];

		stays = true;
		if (loop->polls[POLL_CLIENTS + i].revents)
			stays = c->out ? push(agent, c) : pull(agent, c);
		if (!stays || c->end_ns <= client_time(agent))
			remove_client(loop, i);
	}
}

/* Whether there is more to do. */
static bool turn(struct loop *loop)
{
	struct agent *agent = loop->agent;
	size_t num = prepare(loop);
	int n;

	n = poll(loop->polls, num, next_wait(loop));
	if (signals_cancel)
		return false;
	if (n < 0)
		return true;
	if (loop->polls[POLL_DEVICE].revents && session_is_gone(agent->session))
		return false;
	serve_clients(loop);
	if (agent->stop || agent->session->gone || loop->polls[POLL_LEASH].revents)
		return false;
	if (loop->polls[POLL_LISTENER].revents || loop->full) {
		loop->full = false;
		accept_all(loop);
	}
	return now_ns() < idle_end(agent);
}

/* Who is connected hears it as the answer to what he asks next, and who comes later finds a note. */
static int tell_gone(struct loop *loop, struct fail *f)
{
	struct agent *agent = loop->agent;
	size_t i;

	fail_set(f, FAIL_SESSION, "the session ended: device %s is gone",
		 agent->session->caps.name);
	f->cause = "device_gone";
	f->err = ENODEV;
	fail_hint(f, "its MRs are released; ibmr devices lists the devices that are there");
	place_note(agent->place, f->message);
	accept_all(loop);
	for (i = 0; i < agent->num_clients; i++)
		if (!loop->clients[i]->out)
			refuse(agent, loop->clients[i], f);
	return -ENODEV;
}

/* Answers on their way, that of stop first of all, get a moment. */
static void say_goodbye(struct loop *loop)
{
	struct agent *agent = loop->agent;
	uint64_t end = now_ns() + UINT64_C(1000000000);
	size_t i;

	for (i = agent->num_clients; i-- > 0;)
		if (!loop->clients[i]->out)
			remove_client(loop, i);
	while (agent->num_clients && now_ns() < end) {
		for (i = 0; i < agent->num_clients; i++)
			loop->polls[i] = (struct pollfd){ loop->clients[i]->fd, POLLOUT, 0 };
		if (poll(loop->polls, agent->num_clients, 100) <= 0)
			continue;
		for (i = agent->num_clients; i-- > 0;)
			if (loop->polls[i].revents &&
			    (!push(agent, loop->clients[i]) || !loop->clients[i]->out))
				remove_client(loop, i);
	}
	while (agent->num_clients)
		remove_client(loop, agent->num_clients - 1);
}

int agent_serve(struct agent *agent, struct fail *f)
{
	struct loop loop = { .agent = agent };
	struct fail other;
	int rc;

	agent->start_ns = agent->last_ns = now_ns();
	rc = make_room(&loop) ? fail_nomem(f) : 0;
	while (!rc && turn(&loop))
		;
	signals_hold();
	if (agent->session && agent->session->gone)
		rc = tell_gone(&loop, f);
	if (agent->session) {
		int closed = session_close(agent->session, rc ? &other : f);

		rc = rc ? rc : closed;
		agent->session = NULL;
	}
	place_close(agent->place);
	say_goodbye(&loop);
	free(loop.clients);
	free(loop.polls);
	return rc;
}
