/* SPDX-License-Identifier: BSD-2-Clause */
#include "whole_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(struct fail *f, const char *call, const char *path, int number)
{
	return fail_sys(f, FAIL_IO, call, number, "%s: %s", path, strerror(number));
}

int whole_file_open(const char *path, struct whole_file *ret_file, struct fail *f)
{
	const char *slash = strrchr(path, '/');
	int folder = slash ? (int)(slash - path + 1) : 0;
	struct stat st;
	mode_t mask;
	int n;

	/* a name is taken over only from a file */
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		fail_sys(f, FAIL_IO, "stat", EEXIST, "%s: no regular file", path);
		fail_hint(f, "without it the answer is on standard output");
		return -EEXIST;
	}
	ret_file->path = path;
	n = snprintf(ret_file->temporary, sizeof(ret_file->temporary), "%.*s.%s.XXXXXX", folder,
		     path, path + folder);
	if (n < 0 || (size_t)n >= sizeof(ret_file->temporary))
		return refuse(f, "open", path, ENAMETOOLONG);
	ret_file->fd = mkostemp(ret_file->temporary, O_CLOEXEC);
	if (ret_file->fd < 0)
		return refuse(f, "open", path, errno);
	mask = umask(0);
	umask(mask);
	fchmod(ret_file->fd, 0666 & ~mask);
	return 0;
}

int whole_file_keep(struct whole_file *file, struct fail *f)
{
	int rc = 0;

	if (fsync(file->fd))
		rc = refuse(f, "fsync", file->path, errno);
	/* closing can be where a full disk is told */
	if (close(file->fd) && !rc)
		rc = refuse(f, "close", file->path, errno);
	file->fd = -1;
	if (!rc && rename(file->temporary, file->path))
		rc = refuse(f, "rename", file->path, errno);
	if (rc)
		unlink(file->temporary);
	return rc;
}

void whole_file_drop(struct whole_file *file)
{
	close(file->fd);
	file->fd = -1;
	unlink(file->temporary);
}
