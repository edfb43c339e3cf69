/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls as they are. preload.c interposes the libc functions of these names, so softdev
 * itself never calls those; it also runs before constructors and below sanitizers. Results are 0 or
 * more, or a negative errno; the caller's errno is left alone.
 */
#ifndef SOFTDEV_RAW_H
#define SOFTDEV_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define sd_raw(...)                                  \
	({                                           \
		int saved_errno = errno;             \
		long raw_ret = syscall(__VA_ARGS__); \
		if (raw_ret == -1)                   \
			raw_ret = -errno;            \
		errno = saved_errno;                 \
		raw_ret;                             \
	})

static inline int sd_raw_open(const char *path, int flags)
{
	return (int)sd_raw(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, 0);
}

static inline int sd_raw_close(int fd)
{
	return (int)sd_raw(SYS_close, fd);
}

static inline ssize_t sd_raw_read(int fd, void *buf, size_t size)
{
	return sd_raw(SYS_read, fd, buf, size);
}

static inline ssize_t sd_raw_write(int fd, const void *buf, size_t size)
{
	return sd_raw(SYS_write, fd, buf, size);
}

static inline int sd_raw_madvise(void *va, size_t bytes, int advice)
{
	return (int)sd_raw(SYS_madvise, va, bytes, advice);
}

#endif /* SOFTDEV_RAW_H */
