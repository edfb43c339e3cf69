/* SPDX-License-Identifier: BSD-2-Clause */
#include "data.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "patient.h"

/* ---- memory that may not be there --------------------------------------------- */

/* The kernel copies: a page that cannot be had is an errno there and a signal here. Raw, since what
 * changes this memory is a device, which no tool follows. */
static int copy_by_kernel(long call, void *local, const void *remote, size_t num)
{
	struct iovec here = { local, num };
	struct iovec there = { (void *)remote, num };
	long n;

	while (num > 0) {
		n = syscall(call, getpid(), &here, 1UL, &there, 1UL, 0UL);
		if (n <= 0)
			return n == 0 ? -EFAULT : -errno;
		num -= (size_t)n;
		here.iov_base = (char *)here.iov_base + n;
		there.iov_base = (char *)there.iov_base + n;
		here.iov_len = there.iov_len = num;
	}
	return 0;
}

int memory_write(void *dst, const void *src, size_t num)
{
	int rc = copy_by_kernel(SYS_process_vm_writev, (void *)src, dst, num);

	/* some containers forbid the call */
	if (rc == -ENOSYS || rc == -EPERM) {
		memcpy(dst, src, num);
		return 0;
	}
	return rc;
}

int memory_read(void *dst, const void *src, size_t num)
{
	int rc = copy_by_kernel(SYS_process_vm_readv, dst, src, num);

	if (rc == -ENOSYS || rc == -EPERM) {
		memcpy(dst, src, num);
		return 0;
	}
	return rc;
}

/* ---- files -------------------------------------------------------------------- */

char *data_path(const char *name)
{
	static const char word[] = "$TMPDIR";
	const size_t len = sizeof(word) - 1;
	const char *dir;
	char *path;

	if (strncmp(name, word, len) || (name[len] && name[len] != '/'))
		return strdup(name);
	dir = secure_getenv("TMPDIR");
	if (asprintf(&path, "%s%s", dir && *dir ? dir : "/tmp", name + len) < 0)
		return NULL;
	return path;
}

/* A pipe or a device file tells its size only by ending; one byte above what fits is enough of it. */
static int spool(struct source *src, uint64_t most, struct fail *f)
{
	size_t room = 0;
	ssize_t n;

	while (src->length <= most) {
		if (src->length == room) {
			uint8_t *more = realloc(src->spooled, room ? 2 * room : 65536);

			if (!more)
				return fail_nomem(f);
			src->spooled = more;
			room = room ? 2 * room : 65536;
		}
		n = patient_read(src->fd, src->spooled + src->length, room - (size_t)src->length,
				 src->path, src->bound, f);
		if (n <= 0)
			return (int)n;
		src->length += (uint64_t)n;
	}
	return 0;
}

static int refuse_empty(const struct source *src, struct fail *f)
{
	fail_set(f, FAIL_IO, "%s: the file is empty", src->path);
	f->cause = "empty_file";
	f->err = ENODATA;
	return -ENODATA;
}

int lent_open(const struct lent_file *lent)
{
	struct stat st;
	int fd;

	if (lent->fd < 0) {
		errno = lent->number;
		return -1;
	}
	if (!fstat(lent->fd, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
		errno = ENODEV;
		return -1;
	}
	fd = fcntl(lent->fd, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		lseek(fd, 0, SEEK_SET);
	return fd;
}

static int open_file(struct source *src, const struct lent_file *lent, uint64_t most,
		     struct fail *f)
{
	struct stat st;
	int rc = 0;

	src->path = lent ? strdup(lent->name) : data_path(src->data->text);
	if (!src->path)
		return fail_nomem(f);
	if (lent) {
		src->fd = lent_open(lent);
		if (src->fd < 0)
			return patient_fail(f, "open", src->path, errno);
	} else {
		src->fd = patient_open(src->path, O_RDONLY, src->bound, f);
		if (src->fd < 0)
			return src->fd;
	}
	if (fstat(src->fd, &st))
		return patient_fail(f, "fstat", src->path, errno);
	if (S_ISDIR(st.st_mode))
		return patient_fail(f, "open", src->path, EISDIR);
	if (S_ISREG(st.st_mode))
		src->length = (uint64_t)st.st_size;
	else
		rc = spool(src, most, f);
	if (!rc && src->length == 0)
		rc = refuse_empty(src, f);
	return rc;
}

int source_open(struct source *src, const struct step_data *data, const struct lent_file *lent,
		uint64_t length, uint64_t most, const struct bound *bound, struct fail *f)
{
	int rc = 0;

	*src = (struct source){ .data = data, .length = length, .fd = -1, .bound = bound };
	if (data->kind == DATA_HEX)
		src->length = data->bytes;
	if (data->kind == DATA_FILE) {
		src->length = 0;
		rc = open_file(src, lent, most, f);
	}
	if (rc)
		source_close(src);
	return rc;
}

int source_length(const struct step_data *data, uint64_t *ret_length, struct fail *f)
{
	struct source src = { .data = data, .length = data->bytes, .fd = -1 };
	struct stat st;
	int rc = 0;

	if (data->kind == DATA_FILE) {
		src.length = 0;
		src.path = data_path(data->text);
		if (!src.path)
			return fail_nomem(f);
		if (stat(src.path, &st))
			rc = patient_fail(f, "stat", src.path, errno);
		else if (S_ISREG(st.st_mode))
			src.length = (uint64_t)st.st_size;
		if (!rc && S_ISREG(st.st_mode) && !src.length)
			rc = refuse_empty(&src, f);
	}
	free(src.path);
	*ret_length = src.length;
	return rc;
}

void source_close(struct source *src)
{
	if (src->fd >= 0)
		close(src->fd);
	src->fd = -1;
	free(src->path);
	free(src->spooled);
	src->path = NULL;
	src->spooled = NULL;
}

static int read_file(struct source *src, uint8_t *buf, size_t num, struct fail *f)
{
	size_t done = 0;
	ssize_t n;

	while (done < num) {
		n = patient_read(src->fd, buf + done, num - done, src->path, src->bound, f);
		if (n < 0)
			return (int)n;
		if (n == 0) {
			fail_set(f, FAIL_IO, "%s: the file became shorter while it was read",
				 src->path);
			f->cause = "short_file";
			f->err = EIO;
			return -EIO;
		}
		done += (size_t)n;
	}
	return 0;
}

static uint8_t nibble(char c)
{
	return (uint8_t)(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
}

int source_read(struct source *src, uint8_t *buf, size_t num, struct fail *f)
{
	const uint8_t first = (uint8_t)(src->data->value + src->done);
	const char *hex;
	size_t i;
	int rc = 0;

	switch (src->data->kind) {
	case DATA_HEX:
		hex = src->data->text + 2 * src->done;
		for (i = 0; i < num; i++)
			buf[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
		break;
	case DATA_FILE:
		if (src->spooled)
			memcpy(buf, src->spooled + src->done, num);
		else
			rc = read_file(src, buf, num, f);
		break;
	case DATA_RAMP:
		for (i = 0; i < num; i++)
			buf[i] = (uint8_t)(first + i);
		break;
	case DATA_BYTE:
		memset(buf, src->data->value, num);
		break;
	case DATA_NONE:
		break;
	}
	src->done += num;
	return rc;
}
