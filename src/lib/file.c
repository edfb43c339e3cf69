/* SPDX-License-Identifier: BSD-2-Clause */
/* Files as the memory of MRs: looked at, made, lengthened, mapped, and put back. */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORIGIN "ibmr_mr_reg"

/* ---- what is asked of a file ---------------------------------------------- */

static int file_failed(const char *call, const struct ibmr_mr_spec *spec, const char *doing,
		       struct ibmr_err *err)
{
	int e = errno;

	return ibmri_failed(err, e == ENOMEM ? IBMR_E_NO_MEMORY : IBMR_E_IO, call, e,
			    "file '%s' cannot be %s: %s", spec->path, doing, strerror(e));
}

static int check_regular(const struct ibmr_mr_spec *spec, const struct stat *st,
			 struct ibmr_err *err)
{
	if (S_ISREG(st->st_mode))
		return 0;
	return ibmri_refuse(err, IBMR_E_IO, ORIGIN, "'%s' is not a regular file", spec->path);
}

/* Where the range ends; a file shorter than that is an error unless it may be lengthened. */
static int file_range(const struct ibmr_mr_spec *spec, uint64_t size, uint64_t *ret_length,
		      struct ibmr_err *err)
{
	uint64_t length = spec->length;
	int ret;

	if (length == IBMR_TO_END && spec->file_offset >= size)
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "offset %" PRIu64
				    " is not before the end of file '%s' (%" PRIu64 " byte%s)",
				    spec->file_offset, spec->path, size, ibmri_plural(size));
	if (length == IBMR_TO_END)
		length = size - spec->file_offset;
	ret = ibmri_mem_length(length, err);
	if (ret)
		return ret;
	if (spec->file_offset > (uint64_t)INT64_MAX - length)
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "file offset %" PRIu64 " plus %" PRIu64
				    " byte%s is past what a file can hold",
				    spec->file_offset, length, ibmri_plural(length));
	if (!ibmri_within(spec->file_offset, length, size) &&
	    !(spec->file_flags & IBMR_FILE_CREATE)) {
		ret = ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				   "bytes [%" PRIu64 ", %" PRIu64
				   ") are past the end of file '%s' (%" PRIu64 " byte%s)",
				   spec->file_offset, spec->file_offset + length, spec->path, size,
				   ibmri_plural(size));
		ibmri_err_hint(err, "a shared mapping can lengthen it: ask for create");
		return ret;
	}
	*ret_length = length;
	return 0;
}

static int check_file_flags(const struct ibmr_mr_spec *spec, struct ibmr_err *err)
{
	if (!spec->path)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "no file is named");
	if (spec->file_flags & ~(unsigned)(IBMR_FILE_SHARED | IBMR_FILE_CREATE | IBMR_FILE_OPEN))
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "file flags 0x%x are not known",
				    spec->file_flags);
	if (spec->file_flags & IBMR_FILE_CREATE && !(spec->file_flags & IBMR_FILE_SHARED))
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN,
				    "making or lengthening '%s' needs a shared mapping",
				    spec->path);
	return 0;
}

/* ---- files of a dry context ------------------------------------------------ */

/* A file that an earlier call would have made or lengthened. */
struct ibmri_dry_file {
	struct ibmri_dry_file *next;
	uint64_t size;
	char path[];
};

static struct ibmri_dry_file *find_dry_file(const struct ibmr_ctx *ctx, const char *path)
{
	struct ibmri_dry_file *f = ctx->dry_files;

	while (f && strcmp(f->path, path))
		f = f->next;
	return f;
}

static int note_dry_file(struct ibmr_ctx *ctx, const char *path, uint64_t size,
			 struct ibmr_err *err)
{
	struct ibmri_dry_file *f = find_dry_file(ctx, path);
	size_t path_bytes = strlen(path) + 1, bytes = sizeof(*f) + path_bytes;

	if (!f) {
		f = malloc(bytes);
		if (!f)
			return ibmri_no_memory(err, ORIGIN, bytes);
		memcpy(f->path, path, path_bytes);
		f->next = ctx->dry_files;
		ctx->dry_files = f;
	}
	f->size = size;
	return 0;
}

void ibmri_file_forget(struct ibmr_ctx *ctx)
{
	struct ibmri_dry_file *next;

	for (; ctx->dry_files; ctx->dry_files = next) {
		next = ctx->dry_files->next;
		free(ctx->dry_files);
	}
}

/* Look, and make nothing. */
static int look_at_file(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
			struct ibmri_mem *ret_mem, uint64_t *ret_length, struct ibmr_err *err)
{
	const struct ibmri_dry_file *f = find_dry_file(ctx, spec->path);
	uint64_t size = 0;
	struct stat st;
	int ret;

	if (!stat(spec->path, &st)) {
		ret = check_regular(spec, &st, err);
		if (ret)
			return ret;
		size = (uint64_t)st.st_size;
	} else if (errno != ENOENT || (!f && !(spec->file_flags & IBMR_FILE_CREATE))) {
		return file_failed("stat", spec, "opened", err);
	}
	if (f && f->size > size)
		size = f->size;
	ret = file_range(spec, size, ret_length, err);
	if (ret)
		return ret;
	ret_mem->addr = (void *)(uintptr_t)(spec->file_offset & (ibmri_page_size() - 1));
	if (ibmri_within(spec->file_offset, *ret_length, size))
		return 0;
	return note_dry_file(ctx, spec->path, spec->file_offset + *ret_length, err);
}

/* ---- files ---------------------------------------------------------------------- */

/* Open the file, or make it and note that it was not there before. */
static int open_file(const struct ibmr_mr_spec *spec, struct ibmri_mem *mem, int *ret_fd,
		     struct ibmr_err *err)
{
	/* O_NONBLOCK: what is no regular file must be refused, not waited for */
	int flags =
		(spec->file_flags & IBMR_FILE_SHARED ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK;
	int fd;

	if (spec->file_flags & IBMR_FILE_OPEN) {
		*ret_fd = spec->fd < 0 ? -1 : fcntl(spec->fd, F_DUPFD_CLOEXEC, 0);
		if (spec->fd < 0)
			errno = -spec->fd;
		return *ret_fd < 0 ? file_failed("open", spec, "opened", err) : 0;
	}
	if (spec->file_flags & IBMR_FILE_CREATE) {
		fd = open(spec->path, flags | O_CREAT | O_EXCL, 0666);
		if (fd >= 0) {
			mem->made = true;
			*ret_fd = fd;
			return 0;
		}
		if (errno != EEXIST)
			return file_failed("open", spec, "made", err);
	}
	fd = open(spec->path, flags);
	if (fd < 0)
		return file_failed("open", spec, "opened", err);
	*ret_fd = fd;
	return 0;
}

/* Lengthen the file to size, with its blocks where the file system can: a store into a mapped hole
 * on a full disk would be a SIGBUS later. */
static int lengthen(int fd, const struct ibmr_mr_spec *spec, uint64_t size, struct ibmr_err *err)
{
	if (!fallocate(fd, 0, (off_t)spec->file_offset, (off_t)(size - spec->file_offset)))
		return 0;
	if (errno != EOPNOTSUPP && errno != ENOSYS)
		return file_failed("fallocate", spec, "lengthened", err);
	if (ftruncate(fd, (off_t)size))
		return file_failed("ftruncate", spec, "lengthened", err);
	return 0;
}

static int map_file(int fd, const struct ibmr_mr_spec *spec, uint64_t length,
		    struct ibmri_mem *ret_mem, struct ibmr_err *err)
{
	uint64_t before = spec->file_offset & (ibmri_page_size() - 1);
	int flags = spec->file_flags & IBMR_FILE_SHARED ? MAP_SHARED : MAP_PRIVATE;
	void *map;

	map = mmap(NULL, before + length, PROT_READ | PROT_WRITE, flags, fd,
		   (off_t)(spec->file_offset - before));
	if (map == MAP_FAILED)
		return ibmri_map_failed("the file", length, errno, err);
	ret_mem->map = map;
	ret_mem->map_length = before + length;
	ret_mem->addr = (uint8_t *)map + before;
	return 0;
}

/* With the file open: its length, and the mapping. */
static int use_file(int fd, const struct ibmr_mr_spec *spec, struct ibmri_mem *mem,
		    uint64_t *ret_length, struct ibmr_err *err)
{
	struct stat st;
	int ret;

	if (fstat(fd, &st))
		return file_failed("fstat", spec, "looked at", err);
	ret = check_regular(spec, &st, err);
	if (!ret)
		ret = file_range(spec, (uint64_t)st.st_size, ret_length, err);
	if (ret)
		return ret;
	if (!ibmri_within(spec->file_offset, *ret_length, (uint64_t)st.st_size)) {
		mem->longer = true;
		mem->old_size = (uint64_t)st.st_size;
		ret = lengthen(fd, spec, spec->file_offset + *ret_length, err);
		if (ret)
			return ret;
	}
	return map_file(fd, spec, *ret_length, mem, err);
}

int ibmri_file_get(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec, struct ibmri_mem *ret_mem,
		   uint64_t *ret_length, struct ibmr_err *err)
{
	int fd = -1, ret;

	ret = check_file_flags(spec, err);
	if (ret)
		return ret;
	if (ctx->dry)
		return look_at_file(ctx, spec, ret_mem, ret_length, err);
	ret = open_file(spec, ret_mem, &fd, err);
	if (ret)
		return ret;
	ret = use_file(fd, spec, ret_mem, ret_length, err);
	close(fd);
	if (ret)
		ibmri_file_undo(ret_mem, spec, err);
	return ret;
}

void ibmri_file_undo(struct ibmri_mem *mem, const struct ibmr_mr_spec *spec, struct ibmr_err *err)
{
	if (mem->made && unlink(spec->path))
		ibmri_err_more(err, "; and '%s' cannot be removed again: %s", spec->path,
			       strerror(errno));
	else if (mem->longer && !mem->made &&
		 (spec->file_flags & IBMR_FILE_OPEN ? ftruncate(spec->fd, (off_t)mem->old_size)
						    : truncate(spec->path, (off_t)mem->old_size)))
		ibmri_err_more(err, "; and '%s' cannot be cut back to %" PRIu64 " bytes: %s",
			       spec->path, mem->old_size, strerror(errno));
	ibmri_mem_put(mem);
}
