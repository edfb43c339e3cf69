/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of descriptors that are soft0's. Looking takes no lock, for every read, poll and close
 * of the process passes here.
 */
#include "softdev.h"
#include "raw.h"
#include "files.h"

#include <stdatomic.h>
#include <stdlib.h>

#define FILES_MAX 65536 /* the table is 512 KiB of untouched zero pages */

struct sd_file {
	enum sd_type type;
	unsigned int refs;
	void *obj;
	void (*end)(void *obj);
};

static _Atomic(struct sd_file *) files[FILES_MAX];
static atomic_uint num_files;
static pid_t owner;

static struct sd_file *file_of(int fd)
{
	if (fd < 0 || fd >= FILES_MAX)
		return NULL;
	return atomic_load_explicit(&files[fd], memory_order_acquire);
}

bool sd_file_any(void)
{
	return atomic_load_explicit(&num_files, memory_order_relaxed) > 0;
}

bool sd_file_is_ours(int fd)
{
	return file_of(fd) != NULL;
}

bool sd_file_is_device(int fd)
{
	bool is = false;

	if (!file_of(fd))
		return false;
	sd_lock();
	is = sd_file_obj(fd, SD_NONE) != NULL;
	sd_unlock();
	return is;
}

/* Under the lock: a file is freed under it. */
void *sd_file_obj(int fd, enum sd_type type)
{
	struct sd_file *f = file_of(fd);

	return f && f->type == type ? f->obj : NULL;
}

int sd_file_add(int fd, enum sd_type type, void *obj, void (*end)(void *obj),
		struct sd_file **ret_file)
{
	struct sd_file *f;

	if (fd < 0 || fd >= FILES_MAX)
		return -EMFILE;
	f = malloc(sizeof(*f));
	if (!f)
		return -ENOMEM;
	*f = (struct sd_file){ .type = type, .refs = 1, .obj = obj, .end = end };
	atomic_store_explicit(&files[fd], f, memory_order_release);
	atomic_fetch_add(&num_files, 1);
	if (ret_file)
		*ret_file = f;
	return 0;
}

void sd_file_orphan(struct sd_file *f)
{
	f->obj = NULL;
}

/*
 * A child of vfork shares this memory and has descriptors of its own: what it closes is not closed
 * here.
 */
static bool is_other_process(void)
{
	return (pid_t)sd_raw(SYS_getpid) != owner;
}

void sd_files_init(void)
{
	owner = (pid_t)sd_raw(SYS_getpid);
}

void sd_file_dup(int from, int to)
{
	struct sd_file *f;

	if (!file_of(from) || to < 0 || to >= FILES_MAX || from == to || is_other_process())
		return;
	sd_lock();
	f = file_of(from);
	if (f) {
		f->refs++;
		atomic_store_explicit(&files[to], f, memory_order_release);
		atomic_fetch_add(&num_files, 1);
	}
	sd_unlock();
}

void sd_file_drop(int fd)
{
	struct sd_file *f = file_of(fd);

	if (!f)
		return;
	atomic_store_explicit(&files[fd], NULL, memory_order_release);
	atomic_fetch_sub(&num_files, 1);
	if (--f->refs == 0) {
		if (f->obj)
			f->end(f->obj);
		free(f);
	}
}

void sd_file_close(int fd)
{
	if (!file_of(fd) || is_other_process())
		return;
	sd_lock();
	sd_file_drop(fd);
	sd_unlock();
}

void sd_file_close_range(unsigned int first, unsigned int last)
{
	unsigned int fd;

	if (!sd_file_any())
		return;
	for (fd = first; fd <= last && fd < FILES_MAX; fd++)
		sd_file_close((int)fd);
}
