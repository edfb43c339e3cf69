/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soft0's place in the file system. What is constant stands as files in a folder "sysfs" beside
 * this library, in the shape of /sys; paths of /sys that concern RDMA devices are led there, so
 * that a host's real ones are out of sight. Two kinds are no files: the character device, and the
 * page states of on-demand MRs.
 */
#include "softdev.h"
#include "raw.h"
#include "files.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEVICE_DIR "/dev/infiniband"
#define DEVICE	   DEVICE_DIR "/uverbs0"
#define ODP_DIR	   "/sys/class/infiniband/soft0/odp/"

static char self[PATH_MAX];
static char tree[PATH_MAX];

void sd_sysfs_init(void)
{
	Dl_info info;
	const char *slash;

	if (!dladdr((void *)sd_sysfs_init, &info) || !info.dli_fname)
		return;
	if (!realpath(info.dli_fname, self)) {
		self[0] = '\0';
		return;
	}
	slash = strrchr(self, '/');
	snprintf(tree, sizeof(tree), "%.*s/sysfs", (int)(slash - self), self);
}

const char *sd_self(void)
{
	return self[0] ? self : NULL;
}

bool sd_is_self(const char *word)
{
	char real[PATH_MAX];

	return realpath(word, real) ? !strcmp(real, self)
				    : !strcmp(word, strrchr(self, '/') + 1); /* a bare name */
}

/* Whether path is root itself or below it. */
static bool under(const char *path, const char *root)
{
	size_t len = strlen(root);

	return !strncmp(path, root, len) && (path[len] == '\0' || path[len] == '/');
}

const char *sd_path(const char *path, char *buf)
{
	int len;

	if (!path || path[0] != '/' || !tree[0])
		return path;
	if (under(path, "/sys/class/infiniband_verbs") || under(path, "/sys/class/infiniband"))
		len = snprintf(buf, SD_PATH_MAX, "%s%s", tree, path + strlen("/sys"));
	else if (under(path, DEVICE_DIR))
		/* stat and access see a character device; the others are not there */
		len = snprintf(buf, SD_PATH_MAX, "%s",
			       strcmp(path, DEVICE) ? "/dev/null/none" : "/dev/null");
	else
		return path;
	return len < SD_PATH_MAX ? buf : path;
}

bool sd_path_open(const char *path, int flags, int *ret_fd)
{
	unsigned int lkey;
	char end;

	if (!path || path[0] != '/')
		return false;
	if (!strcmp(path, DEVICE)) {
		*ret_fd = sd_device_open(flags);
		return true;
	}
	if (!strncmp(path, ODP_DIR, strlen(ODP_DIR))) {
		path += strlen(ODP_DIR);
		if (strlen(path) == 8 && sscanf(path, "%8x%c", &lkey, &end) == 1)
			*ret_fd = sd_odp_snapshot(lkey);
		else if (strlen(path) == 15 && sscanf(path, "%8x.%c", &lkey, &end) == 2 &&
			 !strcmp(path + 8, ".counts"))
			*ret_fd = sd_odp_counts(lkey);
		else
			*ret_fd = -ENOENT;
		return true;
	}
	return false;
}
