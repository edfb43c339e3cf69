/* SPDX-License-Identifier: BSD-2-Clause */
#include "installed.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* From one installed folder to another, by what their configured paths share: an installation that
 * was moved as a whole still finds its parts. */
static int relative(char *buf, size_t size, const char *own, const char *from, const char *to,
		    const char *name)
{
	size_t shared = 0;
	size_t i;
	int used;

	for (i = 0; from[i] == to[i] && from[i]; i++)
		if (from[i] == '/')
			shared = i + 1;
	used = snprintf(buf, size, "%s", own);
	for (i = shared; from[i] && used > 0 && (size_t)used < size; i++)
		if (i == shared || from[i] == '/')
			used += snprintf(buf + used, size - (size_t)used, "/..");
	if (used < 0 || (size_t)used >= size)
		return -ENAMETOOLONG;
	used += snprintf(buf + used, size - (size_t)used, "/%s/%s", to + shared, name);
	return (size_t)used < size ? 0 : -ENAMETOOLONG;
}

static int own_folder(char *buf, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", buf, size - 1);
	char *slash;

	if (n <= 0)
		return -ENOENT;
	buf[n] = '\0';
	slash = strrchr(buf, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

int installed_find(const char *beside, const char *dir, const char *name, int mode, char *buf,
		   size_t size)
{
	char own[PATH_MAX];
	int n;

	if (!getauxval(AT_SECURE) && !own_folder(own, sizeof(own))) {
		n = snprintf(buf, size, "%s/%s/%s", own, beside, name);
		if (n > 0 && (size_t)n < size && !access(buf, mode))
			return 0;
		if (!relative(buf, size, own, IBMR_BINDIR, dir, name) && !access(buf, mode))
			return 0;
	}
	n = snprintf(buf, size, "%s/%s", dir, name);
	if (n < 0 || (size_t)n >= size)
		return -ENAMETOOLONG;
	return access(buf, mode) ? -errno : 0;
}
