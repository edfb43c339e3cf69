/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The libc functions that lead a verbs program to soft0. Each looks whether the call concerns soft0
 * (a path of its sysfs tree, a descriptor of its table, memory its MRs cover) and else is the plain
 * system call.
 *
 * glibc exports second names for the calls that may block; those stay cancellation points.
 */
#undef _FILE_OFFSET_BITS /* would give open and open64 one name */
#undef _FORTIFY_SOURCE

#include "softdev.h"
#include "raw.h"
#include "files.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/netlink.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>

#define PUBLIC __attribute__((visibility("default")))

ssize_t __read(int fd, void *buf, size_t size);
int __poll(struct pollfd *fds, nfds_t num, int timeout);
int __select(int num, fd_set *r, fd_set *w, fd_set *e, struct timeval *timeout);
int __close(int fd);

/* Prototypes of what fortified programs call; the headers declare them only then. */
PUBLIC int __open_2(const char *path, int flags);
PUBLIC int __open64_2(const char *path, int flags);
PUBLIC int __openat_2(int dirfd, const char *path, int flags);
PUBLIC int __openat64_2(int dirfd, const char *path, int flags);
PUBLIC ssize_t __read_chk(int fd, void *buf, size_t size, size_t room);
PUBLIC int __poll_chk(struct pollfd *fds, nfds_t num, int timeout, size_t room);
PUBLIC ssize_t __readlink_chk(const char *path, char *buf, size_t size, size_t room);
void __chk_fail(void) __attribute__((noreturn));

static long result(long ret)
{
	if (ret >= 0)
		return ret;
	errno = (int)-ret;
	return -1;
}

/* ---- paths ------------------------------------------------------------- */

static int open_path(int dirfd, const char *path, int flags, mode_t mode)
{
	char buf[SD_PATH_MAX];
	int fd;

	if (sd_path_open(path, flags, &fd))
		return (int)result(fd);
	return (int)syscall(SYS_openat, dirfd, sd_path(path, buf), flags, mode);
}

static bool wants_mode(int flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

#define OPEN_MODE(flags)                                     \
	({                                                   \
		mode_t open_mode = 0;                        \
		if (wants_mode(flags)) {                     \
			va_list va;                          \
			va_start(va, flags);                 \
			open_mode = (mode_t)va_arg(va, int); \
			va_end(va);                          \
		}                                            \
		open_mode;                                   \
	})

PUBLIC int open(const char *path, int flags, ...)
{
	return open_path(AT_FDCWD, path, flags, OPEN_MODE(flags));
}

PUBLIC int open64(const char *path, int flags, ...)
{
	return open_path(AT_FDCWD, path, flags | O_LARGEFILE, OPEN_MODE(flags));
}

PUBLIC int openat(int dirfd, const char *path, int flags, ...)
{
	return open_path(dirfd, path, flags, OPEN_MODE(flags));
}

PUBLIC int openat64(int dirfd, const char *path, int flags, ...)
{
	return open_path(dirfd, path, flags | O_LARGEFILE, OPEN_MODE(flags));
}

PUBLIC int __open_2(const char *path, int flags)
{
	return open_path(AT_FDCWD, path, flags, 0);
}

PUBLIC int __open64_2(const char *path, int flags)
{
	return open_path(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

PUBLIC int __openat_2(int dirfd, const char *path, int flags)
{
	return open_path(dirfd, path, flags, 0);
}

PUBLIC int __openat64_2(int dirfd, const char *path, int flags)
{
	return open_path(dirfd, path, flags | O_LARGEFILE, 0);
}

/* struct stat is the kernel's on 64-bit machines, and struct stat64 the same. */
static int stat_path(int dirfd, const char *path, void *st, int flags)
{
	char buf[SD_PATH_MAX];

	return (int)syscall(SYS_newfstatat, dirfd, sd_path(path, buf), st, flags);
}

PUBLIC int stat(const char *path, struct stat *st)
{
	return stat_path(AT_FDCWD, path, st, 0);
}

PUBLIC int stat64(const char *path, struct stat64 *st)
{
	return stat_path(AT_FDCWD, path, st, 0);
}

PUBLIC int lstat(const char *path, struct stat *st)
{
	return stat_path(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

PUBLIC int lstat64(const char *path, struct stat64 *st)
{
	return stat_path(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

PUBLIC int fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	return stat_path(dirfd, path, st, flags);
}

PUBLIC int fstatat64(int dirfd, const char *path, struct stat64 *st, int flags)
{
	return stat_path(dirfd, path, st, flags);
}

PUBLIC int access(const char *path, int mode)
{
	char buf[SD_PATH_MAX];

	return (int)syscall(SYS_faccessat, AT_FDCWD, sd_path(path, buf), mode);
}

PUBLIC DIR *opendir(const char *path)
{
	char buf[SD_PATH_MAX];
	int fd = sd_raw_open(sd_path(path, buf), O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	DIR *dir;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	dir = fdopendir(fd);
	if (!dir)
		sd_raw_close(fd);
	return dir;
}

PUBLIC ssize_t readlink(const char *path, char *link, size_t size)
{
	char buf[SD_PATH_MAX];

	return syscall(SYS_readlinkat, AT_FDCWD, sd_path(path, buf), link, size);
}

PUBLIC ssize_t __readlink_chk(const char *path, char *link, size_t size, size_t room)
{
	if (size > room)
		__chk_fail();
	return readlink(path, link, size);
}

static FILE *(*real_fopen)(const char *path, const char *mode);

PUBLIC FILE *fopen(const char *path, const char *mode)
{
	char buf[SD_PATH_MAX];

	if (!real_fopen)
		*(void **)&real_fopen = dlsym(RTLD_NEXT, "fopen");
	return real_fopen(sd_path(path, buf), mode);
}

PUBLIC FILE *fopen64(const char *path, const char *mode)
{
	return fopen(path, mode);
}

/* rdma netlink would list the real devices of the host. */
PUBLIC int socket(int domain, int type, int protocol)
{
	if (domain == AF_NETLINK && protocol == NETLINK_RDMA)
		return (int)result(-EPROTONOSUPPORT);
	return (int)syscall(SYS_socket, domain, type, protocol);
}

/* ---- descriptors --------------------------------------------------------- */

PUBLIC int ioctl(int fd, unsigned long request, ...)
{
	va_list va;
	void *arg;

	va_start(va, request);
	arg = va_arg(va, void *);
	va_end(va);
	if (sd_file_is_device(fd))
		return (int)result(sd_ioctl(fd, request, arg));
	return (int)syscall(SYS_ioctl, fd, request, arg);
}

PUBLIC int close(int fd)
{
	sd_file_close(fd);
	return __close(fd);
}

PUBLIC int close_range(unsigned int first, unsigned int last, int flags)
{
	if (!(flags & (int)CLOSE_RANGE_CLOEXEC))
		sd_file_close_range(first, last);
	return (int)syscall(SYS_close_range, first, last, flags);
}

PUBLIC void closefrom(int first)
{
	close_range(first < 0 ? 0 : (unsigned int)first, UINT_MAX, 0);
}

static int dup_done(int from, int to)
{
	if (to >= 0)
		sd_file_dup(from, to);
	return to;
}

PUBLIC int dup(int fd)
{
	return dup_done(fd, (int)syscall(SYS_dup, fd));
}

PUBLIC int dup2(int fd, int to)
{
	int ret;

	if (fd == to)
		return syscall(SYS_fcntl, fd, F_GETFD) == -1 ? -1 : fd;
	ret = (int)syscall(SYS_dup3, fd, to, 0);
	if (ret >= 0)
		sd_file_close(to);
	return dup_done(fd, ret);
}

PUBLIC int dup3(int fd, int to, int flags)
{
	int ret = (int)syscall(SYS_dup3, fd, to, flags);

	if (ret >= 0)
		sd_file_close(to);
	return dup_done(fd, ret);
}

static int fcntl_any(int fd, int command, void *arg)
{
	int ret = (int)syscall(SYS_fcntl, fd, command, arg);

	if (command == F_DUPFD || command == F_DUPFD_CLOEXEC)
		return dup_done(fd, ret);
	return ret;
}

#define FCNTL_ARG(command)                      \
	({                                      \
		va_list va;                     \
		void *fcntl_arg;                \
		va_start(va, command);          \
		fcntl_arg = va_arg(va, void *); \
		va_end(va);                     \
		fcntl_arg;                      \
	})

PUBLIC int fcntl(int fd, int command, ...)
{
	return fcntl_any(fd, command, FCNTL_ARG(command));
}

PUBLIC int fcntl64(int fd, int command, ...)
{
	return fcntl_any(fd, command, FCNTL_ARG(command));
}

/* ---- waiting: work that is due completes first ------------------------------- */

static void idle(void)
{
	sd_engine_idle();
	sd_events_flush();
}

PUBLIC ssize_t read(int fd, void *buf, size_t size)
{
	if (sd_file_is_ours(fd))
		idle();
	return __read(fd, buf, size);
}

PUBLIC ssize_t __read_chk(int fd, void *buf, size_t size, size_t room)
{
	if (size > room)
		__chk_fail();
	return read(fd, buf, size);
}

static void poll_idle(const struct pollfd *fds, nfds_t num)
{
	nfds_t i;

	if (!sd_file_any())
		return;
	for (i = 0; i < num; i++) {
		if (sd_file_is_ours(fds[i].fd)) {
			idle();
			return;
		}
	}
}

PUBLIC int poll(struct pollfd *fds, nfds_t num, int timeout)
{
	poll_idle(fds, num);
	return __poll(fds, num, timeout);
}

PUBLIC int __poll_chk(struct pollfd *fds, nfds_t num, int timeout, size_t room)
{
	if (room / sizeof(*fds) < num)
		__chk_fail();
	return poll(fds, num, timeout);
}

PUBLIC int ppoll(struct pollfd *fds, nfds_t num, const struct timespec *timeout,
		 const sigset_t *mask)
{
	struct timespec left;

	poll_idle(fds, num);
	if (timeout)
		left = *timeout; /* the system call writes what is left */
	return (int)syscall(SYS_ppoll, fds, num, timeout ? &left : NULL, mask, (size_t)_NSIG / 8);
}

PUBLIC int select(int num, fd_set *r, fd_set *w, fd_set *e, struct timeval *timeout)
{
	if (sd_file_any())
		idle();
	return __select(num, r, w, e, timeout);
}

/* What an epoll set holds is not known here; looking once too often costs little. */
PUBLIC int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
	return epoll_pwait(fd, events, max, timeout, NULL);
}

PUBLIC int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout,
		       const sigset_t *mask)
{
	if (sd_file_any())
		idle();
	return (int)syscall(SYS_epoll_pwait, fd, events, max, timeout, mask, (size_t)_NSIG / 8);
}

/* ---- memory: on-demand MRs forget what the process takes away -------------------- */

PUBLIC void *mmap(void *va, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	void *ret;

	if (!(flags & MAP_ANONYMOUS) && sd_file_is_device(fd)) {
		long err = sd_device_mmap(fd, va, bytes, prot, flags, offset, &ret);

		if (!err)
			return ret;
		result(err);
		return MAP_FAILED;
	}
	ret = (void *)syscall(SYS_mmap, va, bytes, prot, flags, fd, offset);
	if (ret != MAP_FAILED && (flags & MAP_FIXED))
		sd_odp_invalidate(ret, bytes);
	return ret;
}

PUBLIC void *mmap64(void *va, size_t bytes, int prot, int flags, int fd, off_t offset)
{
	return mmap(va, bytes, prot, flags, fd, offset);
}

PUBLIC int munmap(void *va, size_t bytes)
{
	int ret = (int)syscall(SYS_munmap, va, bytes);

	if (!ret)
		sd_odp_invalidate(va, bytes);
	return ret;
}

PUBLIC void *mremap(void *va, size_t old_bytes, size_t new_bytes, int flags, ...)
{
	void *to = NULL, *ret;
	va_list va_args;

	if (flags & MREMAP_FIXED) {
		va_start(va_args, flags);
		to = va_arg(va_args, void *);
		va_end(va_args);
	}
	ret = (void *)syscall(SYS_mremap, va, old_bytes, new_bytes, flags, to);
	if (ret == MAP_FAILED)
		return ret;
	if (ret != va)
		sd_odp_invalidate(va, old_bytes);
	else if (new_bytes < old_bytes)
		sd_odp_invalidate((char *)va + new_bytes, old_bytes - new_bytes);
	if (flags & MREMAP_FIXED)
		sd_odp_invalidate(ret, new_bytes);
	return ret;
}

PUBLIC int madvise(void *va, size_t bytes, int advice)
{
	int ret = sd_raw_madvise(va, bytes, advice);

	if (!ret && sd_odp_advice_drops(advice))
		sd_odp_invalidate(va, bytes);
	return (int)result(ret);
}

PUBLIC int posix_madvise(void *va, size_t bytes, int advice)
{
	/* as glibc has it: DONTNEED is not destructive under this name, so it is not done */
	return advice == POSIX_MADV_DONTNEED ? 0 : -sd_raw_madvise(va, bytes, advice);
}

PUBLIC int mprotect(void *va, size_t bytes, int prot)
{
	int ret = (int)syscall(SYS_mprotect, va, bytes, prot);

	if (!ret)
		sd_odp_invalidate(va, bytes);
	return ret;
}

/* ---- the doorbell ------------------------------------------------------------ */

static int (*real_spin_unlock)(pthread_spinlock_t *lock);

PUBLIC int pthread_spin_unlock(pthread_spinlock_t *lock)
{
	int ret;

	if (!real_spin_unlock)
		*(void **)&real_spin_unlock = dlsym(RTLD_NEXT, "pthread_spin_unlock");
	ret = real_spin_unlock(lock);
	if (sd_file_any())
		sd_engine_kick();
	return ret;
}

/* ---- start ------------------------------------------------------------------- */

/* Children must not inherit softdev: take our own name out of LD_PRELOAD. */
static void leave_preload(void)
{
	const char *list = getenv("LD_PRELOAD"), *self = sd_self();
	char *rest, *out, *word, *save = NULL, *copy;

	if (!list || !self)
		return;
	copy = strdup(list);
	rest = calloc(1, strlen(list) + 1);
	if (!copy || !rest)
		goto out;
	out = rest;
	for (word = strtok_r(copy, " :", &save); word; word = strtok_r(NULL, " :", &save)) {
		if (sd_is_self(word))
			continue;
		out += sprintf(out, "%s%s", out == rest ? "" : ":", word);
	}
	if (*rest)
		setenv("LD_PRELOAD", rest, 1);
	else
		unsetenv("LD_PRELOAD");
out:
	free(copy);
	free(rest);
}

__attribute__((constructor)) static void start(void)
{
	*(void **)&real_spin_unlock = dlsym(RTLD_NEXT, "pthread_spin_unlock");
	sd_sysfs_init();
	sd_files_init();
	leave_preload();
	unsetenv("SYSFS_PATH");		  /* would lead libibverbs past the paths above */
	unsetenv("MLX5_SINGLE_THREADED"); /* would take no lock, and no doorbell be seen */
	sd_config_init();
}
