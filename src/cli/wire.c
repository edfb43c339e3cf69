/* SPDX-License-Identifier: BSD-2-Clause */
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "growing.h"

uint32_t wire_length(const uint8_t head[WIRE_HEAD])
{
	return (uint32_t)head[0] << 24 | (uint32_t)head[1] << 16 | (uint32_t)head[2] << 8 | head[3];
}

void wire_put_length(uint8_t head[WIRE_HEAD], uint32_t length)
{
	head[0] = (uint8_t)(length >> 24);
	head[1] = (uint8_t)(length >> 16);
	head[2] = (uint8_t)(length >> 8);
	head[3] = (uint8_t)length;
}

static int append(const char *bytes, size_t num, void *data)
{
	return growing_append(data, bytes, num);
}

char *wire_pack(const json_t *message, size_t *ret_size)
{
	static const char head[WIRE_HEAD];
	struct growing g = { NULL, 0, 0 };

	if (append(head, sizeof(head), &g) ||
	    json_dump_callback(message, append, &g, JSON_COMPACT | JSON_REAL_PRECISION(15)) ||
	    g.size - WIRE_HEAD > WIRE_MAX_REPLY) {
		free(g.bytes);
		return NULL;
	}
	wire_put_length((uint8_t *)g.bytes, (uint32_t)(g.size - WIRE_HEAD));
	*ret_size = g.size;
	return g.bytes;
}

/* ---- one call ------------------------------------------------------------------- */

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(WIRE_MAX_FDS * sizeof(int))];
};

ssize_t wire_sendmsg(int fd, const char *bytes, size_t size, const int *fds, size_t num_fds)
{
	struct iovec iov = { (char *)bytes, size };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;
	struct cmsghdr *c;
	ssize_t n;

	if (num_fds) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(num_fds * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(num_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, num_fds * sizeof(int));
	}
	n = sendmsg(fd, &msg, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

/* Every descriptor that came is either kept or closed. */
static int take_fds(struct msghdr *msg, int *fds, size_t *num_fds)
{
	struct cmsghdr *c;
	size_t i, num;
	int rc = msg->msg_flags & MSG_CTRUNC ? -EMSGSIZE : 0;
	int fd;

	for (c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		num = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < num; i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (*num_fds < WIRE_MAX_FDS) {
				fds[(*num_fds)++] = fd;
			} else {
				close(fd);
				rc = -EMSGSIZE;
			}
		}
	}
	while (rc && *num_fds)
		close(fds[--*num_fds]);
	return rc;
}

ssize_t wire_recvmsg(int fd, void *bytes, size_t size, int *fds, size_t *num_fds)
{
	struct iovec iov = { bytes, size };
	union control control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof(control) };
	ssize_t n;
	int rc;

	n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	rc = take_fds(&msg, fds, num_fds);
	return rc ? rc : n;
}

/* ---- all of a message -------------------------------------------------------------- */

static int wait_for(int fd, short events, uint64_t end_ns)
{
	struct pollfd p = { .fd = fd, .events = events };
	uint64_t now, left_ms;
	int n;

	for (;;) {
		if (signals_cancel)
			return -EINTR;
		now = now_ns();
		if (now >= end_ns)
			return -ETIMEDOUT;
		left_ms = (end_ns - now + 999999) / 1000000;
		n = poll(&p, 1, left_ms > 60000 ? 60000 : (int)left_ms);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

int wire_send(int fd, const char *bytes, size_t size, const int *fds, size_t num_fds,
	      uint64_t end_ns)
{
	size_t done = 0;
	ssize_t n;
	int rc;

	while (done < size) {
		n = wire_sendmsg(fd, bytes + done, size - done, fds, done ? 0 : num_fds);
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n != -EAGAIN && n != -EINTR)
			return n ? (int)n : -EIO;
		rc = wait_for(fd, POLLOUT, end_ns);
		if (rc)
			return rc;
	}
	return 0;
}

static int receive(int fd, void *bytes, size_t size, uint64_t end_ns)
{
	int fds[WIRE_MAX_FDS];
	size_t num_fds = 0;
	size_t done = 0;
	ssize_t n;
	int rc;

	while (done < size) {
		n = wire_recvmsg(fd, (char *)bytes + done, size - done, fds, &num_fds);
		while (num_fds) /* a session sends none */
			close(fds[--num_fds]);
		if (n > 0) {
			done += (size_t)n;
			continue;
		}
		if (n != -EAGAIN && n != -EINTR)
			return n ? (int)n : -EPIPE;
		rc = wait_for(fd, POLLIN, end_ns);
		if (rc)
			return rc;
	}
	return 0;
}

int wire_receive(int fd, uint64_t end_ns, char **ret_bytes, size_t *ret_size)
{
	uint8_t head[WIRE_HEAD];
	uint32_t size;
	char *bytes;
	int rc;

	rc = receive(fd, head, sizeof(head), end_ns);
	if (rc)
		return rc;
	size = wire_length(head);
	if (!size || size > WIRE_MAX_REPLY)
		return -EBADMSG;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	rc = receive(fd, bytes, size, end_ns);
	if (rc) {
		free(bytes);
		return rc;
	}
	*ret_bytes = bytes;
	*ret_size = size;
	return 0;
}
