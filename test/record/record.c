/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A preloaded library that keeps what ibmr writes to standard output, so that every document that any
 * test brought about can be held against the schema afterwards, whatever the test itself looked at.
 *
 *   IBMR_RECORD=FOLDER    FOLDER/PROCESS.out gets the bytes, FOLDER/PROCESS.args the arguments, each
 *                         ended by a NUL; a write that failed leaves FOLDER/PROCESS.failed
 *
 * PROCESS is its number and start time. ibmr becomes ibmr-soft0 in one process, and so in one file.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static const char *folder;
static unsigned long long start_time; /* in clock ticks since boot; field 22 of /proc/self/stat */

__attribute__((constructor)) static void start(void)
{
	char text[1024] = "", *at;
	int fd;

	if (strncmp(program_invocation_short_name, "ibmr", 4) != 0)
		return;
	folder = getenv("IBMR_RECORD");
	fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		abort();
	close(fd);
	at = strrchr(text, ')');
	for (int field = 2; at && field < 22; field++)
		at = strchr(at + 1, ' ');
	if (!at)
		abort();
	start_time = strtoull(at, NULL, 10);
}

static int open_file(const char *suffix)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%ld-%llu.%s", folder, (long)getpid(), start_time, suffix);
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

/* Copy all of /proc/self/cmdline; appended once a process image, so that the last one counts. */
static void keep_arguments(ssize_t (*next)(int, const void *, size_t))
{
	static bool kept;
	char part[4096];
	ssize_t n;
	int from, to;

	if (kept)
		return;
	kept = true;
	from = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	to = open_file("args");
	while (from >= 0 && (n = read(from, part, sizeof(part))) > 0)
		if (next(to, part, (size_t)n) != n)
			abort();
	close(from);
	close(to);
}

ssize_t write(int fd, const void *buf, size_t size)
{
	static ssize_t (*next)(int, const void *, size_t);
	ssize_t n;
	int saved, to;

	if (!next)
		next = (__typeof__(next))dlsym(RTLD_NEXT, "write");
	n = next(fd, buf, size);
	if (fd != STDOUT_FILENO || !folder)
		return n;
	saved = errno;
	keep_arguments(next);
	to = open_file(n < 0 ? "failed" : "out");
	if (to < 0 || (n > 0 && next(to, buf, (size_t)n) != n))
		abort();
	close(to);
	errno = saved;
	return n;
}
