/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between a session and its clients, as ibmr-session(1) states: a length of four bytes, most
 * significant first, and so many bytes of JSON; descriptors go along with them.
 */
#ifndef CLI_WIRE_H
#define CLI_WIRE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "fail.h"

#define WIRE_VERSION	 1
#define WIRE_HEAD	 4
#define WIRE_MAX_FDS	 4		      /* with one message */
#define WIRE_MAX_REQUEST (UINT64_C(16) << 20) /* by default */
#define WIRE_MAX_REPLY	 (UINT64_C(1) << 30)

/* A message as it is sent, head included; NULL: no memory, or longer than a head can say. To be freed. */
char *wire_pack(const json_t *message, size_t *ret_size);
uint32_t wire_length(const uint8_t head[WIRE_HEAD]);
void wire_put_length(uint8_t head[WIRE_HEAD], uint32_t length);

/* Send or receive all of a message on a socket that does not block, until end_ns (CLOCK_MONOTONIC). A
 * peer that is gone is -EPIPE or -ECONNRESET; time is -ETIMEDOUT; a signal -EINTR (signals_cancel). */
int wire_send(int fd, const char *bytes, size_t size, const int *fds, size_t num_fds,
	      uint64_t end_ns);
int wire_receive(int fd, uint64_t end_ns, char **ret_bytes, size_t *ret_size);

/* One sendmsg or recvmsg with descriptors: bytes moved, 0 at the end, or a negative errno. fds has room
 * for WIRE_MAX_FDS, of which *num_fds are in use; -EMSGSIZE: more came, and all are closed. */
ssize_t wire_sendmsg(int fd, const char *bytes, size_t size, const int *fds, size_t num_fds);
ssize_t wire_recvmsg(int fd, void *bytes, size_t size, int *fds, size_t *num_fds);

#endif /* CLI_WIRE_H */
