/* SPDX-License-Identifier: BSD-2-Clause */
#include "patient.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_MS 10u   /* between attempts to open */
#define WAIT_MS 1000u /* most of one poll */

int patient_fail(struct fail *f, const char *call, const char *name, int number)
{
	int rc = fail_sys(f, number == ENOMEM ? FAIL_NO_MEMORY : FAIL_IO, call, number, "%s: %s",
			  name, strerror(number));

	signals_explain(f);
	return rc;
}

static uint32_t part(const struct bound *bound, uint32_t most)
{
	uint32_t left = bound ? bound_left_ms(bound) : most;

	return left < most ? left : most;
}

/* Nobody reads the FIFO yet, or whoever has a lease on the file was asked to give it back. */
static bool opens_later(const char *path, int number)
{
	struct stat st;

	if (number == ENXIO)
		return !stat(path, &st) && S_ISFIFO(st.st_mode);
	return number == EAGAIN || number == EINTR;
}

int patient_open(const char *path, int flags, const struct bound *bound, struct fail *f)
{
	int fd, number, rc;

	for (;;) {
		fd = open(path, flags | O_NONBLOCK | O_CLOEXEC | O_NOCTTY, 0666);
		number = errno;
		if (fd >= 0)
			return fd;
		if (!opens_later(path, number))
			return patient_fail(f, "open", path, number);
		rc = bound_check(bound, f);
		if (rc)
			return rc;
		poll(NULL, 0, (int)part(bound, LOOK_MS));
	}
}

/* A FIFO that had no writer yet is not readable, and not at its end either. */
static int wait_for(int fd, short events, const char *name, const struct bound *bound,
		    struct fail *f)
{
	struct pollfd p = { .fd = fd, .events = events };
	int rc, n;

	for (;;) {
		rc = bound_check(bound, f);
		if (rc)
			return rc;
		n = poll(&p, 1, (int)part(bound, WAIT_MS));
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return patient_fail(f, "poll", name, errno);
	}
}

ssize_t patient_read(int fd, void *buf, size_t num, const char *name, const struct bound *bound,
		     struct fail *f)
{
	ssize_t n;
	int rc;

	do {
		rc = wait_for(fd, POLLIN, name, bound, f);
		if (rc)
			return rc;
		n = read(fd, buf, num);
		if (n >= 0)
			return n;
	} while (errno == EAGAIN || errno == EINTR);
	return patient_fail(f, "read", name, errno);
}

int patient_write(int fd, const void *buf, size_t num, const char *name, const struct bound *bound,
		  struct fail *f)
{
	const char *at = buf;
	ssize_t n;
	int rc;

	while (num > 0) {
		rc = wait_for(fd, POLLOUT, name, bound, f);
		if (rc)
			return rc;
		n = write(fd, at, num);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return patient_fail(f, "write", name, errno);
		if (n > 0) {
			at += n;
			num -= (size_t)n;
		}
	}
	return 0;
}
