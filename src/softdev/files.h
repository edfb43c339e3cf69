/* SPDX-License-Identifier: BSD-2-Clause */
/* What preload.c asks of the rest: the paths and descriptors that are soft0's. */
#ifndef SOFTDEV_FILES_H
#define SOFTDEV_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "softdev.h"

/* ---- paths (sysfs.c) --------------------------------------------------- */

#define SD_PATH_MAX 4096

void sd_sysfs_init(void);
/* The file of this library, absolute; NULL when unknown. */
const char *sd_self(void);
/* Whether a word of LD_PRELOAD names this library. */
bool sd_is_self(const char *word);

/* The path to use in place of path: itself, or one of the static tree written to buf. */
const char *sd_path(const char *path, char *buf);
/* Opens what is no file of the static tree: the device, and page states. False: not such a path. */
bool sd_path_open(const char *path, int flags, int *ret_fd);

/* ---- descriptors (files.c) ----------------------------------------------- */

/* A descriptor of ours: the device's, a completion channel's or one for asynchronous events. */
bool sd_file_any(void);
bool sd_file_is_ours(int fd);
bool sd_file_is_device(int fd);

/* An open file is shared by the descriptors that dup gives. obj is a struct sd_ctx for a device,
 * else a struct sd_channel; end is called when the last of them is closed, with the lock held. */
struct sd_file;
int sd_file_add(int fd, enum sd_type type, void *obj, void (*end)(void *obj),
		struct sd_file **ret_file);
/* The object ends before its descriptors. */
void sd_file_orphan(struct sd_file *f);
void sd_file_dup(int from, int to);
void sd_file_close(int fd);
void sd_file_close_range(unsigned int first, unsigned int last);
/* The same with the lock held, by a command that fails after sd_file_add. */
void sd_file_drop(int fd);
/* At the start and in a child of fork: whose descriptors these are. */
void sd_files_init(void);
/* The object behind a descriptor of that type (SD_NONE: a device); NULL. */
void *sd_file_obj(int fd, enum sd_type type);

/* Events for which a descriptor had no room: try again. */
void sd_events_flush(void);

/* ---- the device (uverbs.c, hca.c) ------------------------------------------ */

int sd_device_open(int flags);
long sd_ioctl(int fd, unsigned long request, void *arg);
long sd_device_mmap(int fd, void *va, size_t bytes, int prot, int flags, off_t offset,
		    void **ret_va);

/* Whether the advice takes pages away. */
bool sd_odp_advice_drops(int advice);
/* A descriptor with one byte for each page of the on-demand MR with this lkey; -ENOENT. */
int sd_odp_snapshot(uint32_t lkey);
/* The same with "page_faults N" and the other counts of pages, a line each. */
int sd_odp_counts(uint32_t lkey);

/* ---- configuration (config.c, counters.c) ---------------------------------- */

void sd_config_init(void);
void sd_count_command(const char *kind); /* "cmd." kind */
void sd_counters_reset(void);
void sd_counters_write(const char *path);

#endif /* SOFTDEV_FILES_H */
