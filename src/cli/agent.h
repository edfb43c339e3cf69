/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that holds a device and its MRs, and answers requests on a socket. */
#ifndef CLI_AGENT_H
#define CLI_AGENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "place.h"
#include "session.h"

struct agent_limits {
	uint64_t message; /* bytes of a request */
	uint64_t clients; /* connected at a time */
	uint64_t objects; /* MRs */
	uint64_t locked;  /* bytes; 0: no limit of ours */
};

struct agent {
	struct session *session;
	struct place *place; /* where it listens */
	struct agent_limits limits;
	uint64_t idle_ms; /* ends when nobody asked for so long; 0: never */
	int leash;	  /* ends when the other end is closed; -1: none */

	uint64_t start_ns;
	uint64_t requests; /* answered */
	uint64_t num_clients;
	uint64_t busy_ns; /* spent in requests: no client's time */
	uint64_t last_ns; /* end of the last request */
	bool stop;	  /* asked for */
	int asker;	  /* the socket of who waits for the request in work */
};

/* Serve until stop, a signal, the idle time, the leash or the end of the device ends it. The session is
 * closed then, and the place too. Negative when it could not serve, not release, or lost the device. */
int agent_serve(struct agent *agent, struct fail *f);

/* What start and status say: socket, pid, device, version. NULL: no memory. */
json_t *agent_identity(const struct agent *agent);

/* ---- agent_request.c --------------------------------------------------------------- */

/* The reply to a message of so many bytes, packed; NULL: no memory. fds are lent for the time of the
 * call. *ret_stop: the request was stop, and everything is released. */
char *agent_answer(struct agent *agent, char *bytes, size_t size, const int *fds, size_t num_fds,
		   size_t *ret_size);
/* A reply that needs no memory but buf, for what is refused before it is read; returns its size. */
#define AGENT_REFUSAL_ROOM 17000
size_t agent_refusal(const struct fail *f, char buf[AGENT_REFUSAL_ROOM]);

#endif /* CLI_AGENT_H */
