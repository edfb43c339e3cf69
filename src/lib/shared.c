/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory that other processes and users can register too: a POSIX shared memory object, whose mode says
 * who may. Its name is the owner's uid and the MR's name, so that it can be told before it is made and
 * nobody can pass for another. Its maker holds a lock on it: an object without one was left by a crash.
 */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORIGIN "ibmr_mr_reg"
#define FOLDER "/dev/shm" /* where shm_open has them */
#define PREFIX "/ibmr-"
#define MAX_ID 64u /* bytes of a shared name: those of any name */
#define TRIES  8   /* at a name that others make and remove */

static int shared_failed(const char *call, int err_no, const char *id, struct ibmr_err *err)
{
	enum ibmr_code code = ibmri_code_of(err_no);

	if (code == IBMR_E_ARGUMENT || err_no == ENOENT || err_no == EEXIST)
		code = IBMR_E_IO;
	return ibmri_failed(err, code, call, err_no, "shared memory '%s': %s", id,
			    strerror(err_no));
}

/* "uid.name" behind a prefix that only ours have; NULL: no memory. */
static char *object_name(const char *id)
{
	char *name = malloc(sizeof(PREFIX) + strlen(id));

	if (name)
		sprintf(name, PREFIX "%s", id);
	return name;
}

static char *own_id(const char *name)
{
	char *id;

	return asprintf(&id, "%u.%s", (unsigned)geteuid(), name) < 0 ? NULL : id;
}

/* ---- making one ---------------------------------------------------------------------------- */

/* To hold its lock; -1 and errno. The mode may keep its owner out, who may change it. */
static int open_to_lock(const char *name)
{
	char path[sizeof(FOLDER PREFIX) + MAX_ID], same[32];
	int fd = shm_open(name, O_RDONLY, 0), place;
	struct stat st;

	if (fd >= 0 || errno != EACCES)
		return fd;
	snprintf(path, sizeof(path), FOLDER "%s", name);
	place = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (place < 0)
		return -1;
	snprintf(same, sizeof(same), "/proc/self/fd/%d", place);
	if (!fstat(place, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    !chmod(same, (st.st_mode & 0777) | S_IRUSR)) {
		fd = open(same, O_RDONLY | O_CLOEXEC);
		(void)chmod(same, st.st_mode & 0777);
	}
	close(place);
	errno = EACCES;
	return fd;
}

/* Of a name that is taken: remove it when nobody holds it any more. 0, or an errno. */
static int remove_stale(const char *name)
{
	int fd = open_to_lock(name), ret = 0;
	struct stat st;

	if (fd < 0)
		return errno == ENOENT ? 0 : errno == EACCES ? EEXIST : errno;
	if (flock(fd, LOCK_EX | LOCK_NB) || fstat(fd, &st) || st.st_uid != geteuid())
		ret = EEXIST;
	else if (st.st_nlink && shm_unlink(name)) /* else another did, and the name may be new */
		ret = errno;
	close(fd);
	return ret;
}

static int make_object(const char *name, int *ret_fd)
{
	struct stat st;
	int i, fd, ret;

	for (i = 0; i < TRIES; i++) {
		fd = shm_open(name, O_RDWR | O_CREAT | O_EXCL, S_IRUSR);
		if (fd >= 0 && !flock(fd, LOCK_SH | LOCK_NB) && !fstat(fd, &st) && st.st_nlink) {
			*ret_fd = fd;
			return 0;
		}
		if (fd >= 0) { /* another took it for stale, before the lock */
			close(fd);
			continue;
		}
		if (errno != EEXIST && errno != EACCES)
			return errno;
		ret = remove_stale(name);
		if (ret)
			return ret;
	}
	return EEXIST;
}

/* Length, mode and a mapping for the object just made. */
static int set_up(int fd, const struct ibmr_mr_spec *spec, struct ibmri_mem *mem,
		  struct ibmr_err *err)
{
	if (ftruncate(fd, (off_t)spec->length))
		return shared_failed("ftruncate", errno, mem->id, err);
	mem->map = mmap(NULL, spec->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mem->map == MAP_FAILED) {
		mem->map = NULL;
		return ibmri_map_failed("shared memory", spec->length, errno, err);
	}
	mem->map_length = spec->length;
	mem->addr = mem->map;
	/* last, so that nobody else sees it before */
	if (fchmod(fd, spec->share_mode))
		return shared_failed("fchmod", errno, mem->id, err);
	return 0;
}

int ibmri_shared_get(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
		     struct ibmri_mem *ret_mem, uint64_t *ret_length, struct ibmr_err *err)
{
	struct ibmri_mem mem = { .lock = -1 };
	char *name;
	int ret;

	ret = ibmri_mem_length(spec->length, err);
	if (ret)
		return ret;
	if (!spec->name || strchr(spec->name, '/') || spec->share_mode & ~0666u)
		return ibmri_refuse(
			err, IBMR_E_ARGUMENT, ORIGIN,
			"shared memory needs a name without '/', and a mode within 0666");
	*ret_length = spec->length;
	mem.id = own_id(spec->name);
	name = mem.id ? object_name(mem.id) : NULL;
	if (!name) {
		free(mem.id);
		return ibmri_no_memory(err, ORIGIN, strlen(spec->name) + sizeof(PREFIX));
	}
	if (strlen(mem.id) > MAX_ID) {
		ret = ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				   "the shared name '%s' has %zu bytes, more than %u", mem.id,
				   strlen(mem.id), MAX_ID);
		free(name);
		free(mem.id);
		return ret;
	}
	if (ctx->dry) {
		free(name);
		*ret_mem = mem;
		return 0;
	}
	ret = make_object(name, &mem.lock);
	if (ret) {
		ret = shared_failed("shm_open", ret, mem.id, err);
		ibmri_err_hint(err, "an MR of that name is shared by this user: take another name");
	} else {
		ret = set_up(mem.lock, spec, &mem, err);
	}
	free(name);
	if (ret)
		ibmri_mem_put(&mem);
	else
		*ret_mem = mem;
	return ret;
}

/* ---- attaching to one ------------------------------------------------------------------------- */

/* It is the user's who its name says, and has bytes. */
static int check_object(int fd, const char *id, uint64_t *ret_length, struct ibmr_err *err)
{
	char *end;
	unsigned long uid = strtoul(id, &end, 10);
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return shared_failed("fstat", errno, id, err);
	if (*end != '.' || st.st_uid != uid || !S_ISREG(st.st_mode)) {
		ret = ibmri_refuse(err, IBMR_E_NO_PERMISSION, ORIGIN,
				   "shared memory '%s' belongs to user %u", id,
				   (unsigned)st.st_uid);
		ibmri_err_cause(err, "not_owner");
		return ret;
	}
	if (st.st_size <= 0)
		return ibmri_refuse(err, IBMR_E_IO, ORIGIN, "shared memory '%s' has no bytes", id);
	*ret_length = (uint64_t)st.st_size;
	return 0;
}

static int open_object(const char *id, bool write, int *ret_fd, struct ibmr_err *err)
{
	char *name = object_name(id);
	int fd, ret;

	if (!name)
		return ibmri_no_memory(err, ORIGIN, strlen(id) + sizeof(PREFIX));
	fd = shm_open(name, write ? O_RDWR : O_RDONLY, 0);
	ret = fd < 0 ? shared_failed("shm_open", errno, id, err) : 0;
	if (ret == -EACCES)
		ibmri_err_hint(err, "its owner's shared_* rights do not allow %s",
			       write ? "writing; leave local_write out to read" : "it");
	else if (ret == -ENOENT)
		ibmri_err_hint(err, "the member attach of the result of its reg has the name");
	free(name);
	*ret_fd = fd;
	return ret;
}

/* In a dry ctx: one that a real run would have made by now. */
static bool is_made_here(const struct ibmr_ctx *ctx, const char *id, uint64_t *ret_length)
{
	const struct ibmr_mr *mr;

	for (mr = ctx->dry ? ctx->mrs : NULL; mr; mr = mr->next) {
		if (!mr->mem.id || strcmp(mr->mem.id, id))
			continue;
		*ret_length = mr->length;
		return true;
	}
	return false;
}

int ibmri_attach_get(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
		     struct ibmri_mem *ret_mem, uint64_t *ret_length, struct ibmr_err *err)
{
	bool write = spec->access & IBMR_ACCESS_LOCAL_WRITE;
	struct ibmri_mem mem = { .lock = -1 };
	uint64_t length = 0;
	int fd, ret;

	if (!spec->attach || strchr(spec->attach, '/'))
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "no shared memory is named");
	if (is_made_here(ctx, spec->attach, ret_length))
		return 0;
	ret = open_object(spec->attach, write, &fd, err);
	if (ret)
		return ret;
	ret = check_object(fd, spec->attach, &length, err);
	if (!ret && !ctx->dry) {
		mem.id = strdup(spec->attach);
		mem.map =
			mmap(NULL, length, PROT_READ | (write ? PROT_WRITE : 0), MAP_SHARED, fd, 0);
		if (mem.map == MAP_FAILED) {
			mem.map = NULL;
			ret = ibmri_map_failed("shared memory", length, errno, err);
		} else if (!mem.id) {
			ret = ibmri_no_memory(err, ORIGIN, strlen(spec->attach) + 1);
		}
		mem.map_length = length;
		mem.addr = mem.map;
	}
	close(fd);
	if (ret) {
		ibmri_mem_put(&mem);
		return ret;
	}
	*ret_mem = mem;
	*ret_length = length;
	return 0;
}

/* The name goes; who is attached keeps the memory. */
void ibmri_shared_put(struct ibmri_mem *mem)
{
	char *name;

	if (!mem->id)
		return;
	name = mem->lock >= 0 ? object_name(mem->id) : NULL;
	if (name)
		(void)shm_unlink(name);
	free(name);
	if (mem->lock >= 0)
		close(mem->lock);
	free(mem->id);
}
