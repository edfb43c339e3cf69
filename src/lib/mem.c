/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of direct MRs: the caller's, anonymous, in huge pages, of a file. */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORIGIN "ibmr_mr_reg"

#ifndef MAP_HUGE_SHIFT
#define MAP_HUGE_SHIFT 26
#endif

uint64_t ibmri_page_size(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t ibmri_page_span(uint64_t addr, uint64_t length)
{
	uint64_t mask = ibmri_page_size() - 1;

	if (!length)
		return 0;
	/* by first and last page, so that a range up to 2^64 does not wrap */
	return ((addr + (length - 1)) & ~mask) - (addr & ~mask) + mask + 1;
}

static bool power_of_two(uint64_t n)
{
	return n && !(n & (n - 1));
}

/* A size that mmap can be asked for. */
static int check_length(uint64_t length, struct ibmr_err *err)
{
	if (!length)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "length is 0");
	if (length > (uint64_t)PTRDIFF_MAX)
		return ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				    "length %" PRIu64 " is more than the %" PRIu64
				    " bytes a process can map",
				    length, (uint64_t)PTRDIFF_MAX);
	return 0;
}

static int get_caller(const struct ibmr_mr_spec *spec, struct ibmri_mem *ret_mem,
		      uint64_t *ret_length, struct ibmr_err *err)
{
	uint64_t addr = (uintptr_t)spec->addr;
	int ret;

	ret = check_length(spec->length, err);
	if (ret)
		return ret;
	if (!spec->addr)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "no memory is given");
	if (addr > UINT64_MAX - (spec->length - 1))
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "address 0x%" PRIx64 " plus %" PRIu64 " bytes wraps past 2^64",
				    addr, spec->length);
	ret_mem->addr = spec->addr;
	*ret_length = spec->length;
	return 0;
}

static int get_anon(const struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
		    struct ibmri_mem *ret_mem, uint64_t *ret_length, struct ibmr_err *err)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;
	void *map;
	int ret;

	ret = check_length(spec->length, err);
	if (ret)
		return ret;
	*ret_length = spec->length;
	if (ctx->dry)
		return 0;
	/* on-demand memory may be far larger than what will ever be touched */
	if (spec->access & IBMR_ACCESS_ON_DEMAND)
		flags |= MAP_NORESERVE;
	map = mmap(NULL, spec->length, PROT_READ | PROT_WRITE, flags, -1, 0);
	if (map == MAP_FAILED)
		return ibmri_map_failed("anonymous memory", spec->length, errno, err);
	*ret_mem = (struct ibmri_mem){
		.map = map, .map_length = spec->length, .addr = map, .anon = true
	};
	return 0;
}

/* Say how many huge pages are free, or that this size does not exist here. */
static int huge_failed(const struct ibmr_mr_spec *spec, uint64_t length, int e,
		       struct ibmr_err *err)
{
	uint64_t kb = spec->huge_page_size / 1024;
	unsigned long long free_pages = 0;
	char path[128];
	FILE *f;
	int ret;

	snprintf(path, sizeof(path),
		 "/sys/kernel/mm/hugepages/hugepages-%" PRIu64 "kB/free_hugepages", kb);
	f = fopen(path, "re");
	if (!f) {
		ret = ibmri_failed(err, IBMR_E_UNSUPPORTED, "mmap", e,
				   "this machine has no huge pages of %" PRIu64 " bytes",
				   spec->huge_page_size);
		ibmri_err_cause(err, "huge_page_size");
		return ret;
	}
	if (fscanf(f, "%llu", &free_pages) != 1)
		free_pages = 0;
	fclose(f);
	ret = ibmri_failed(err, IBMR_E_NO_MEMORY, "mmap", e,
			   "%" PRIu64 " huge pages of %" PRIu64
			   " bytes are needed and %llu are free",
			   length / spec->huge_page_size, spec->huge_page_size, free_pages);
	ibmri_err_cause(err, "huge_pages");
	ibmri_err_hint(err, "raise /sys/kernel/mm/hugepages/hugepages-%" PRIu64 "kB/nr_hugepages",
		       kb);
	return ret;
}

static int get_huge(const struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
		    struct ibmri_mem *ret_mem, uint64_t *ret_length, struct ibmr_err *err)
{
	uint64_t page = spec->huge_page_size, length;
	void *map;
	int ret;

	ret = check_length(spec->length, err);
	if (ret)
		return ret;
	if (!power_of_two(page) || page <= ibmri_page_size())
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN,
				    "%" PRIu64
				    " is no huge page size: a power of two above %" PRIu64
				    " is needed",
				    page, ibmri_page_size());
	length = (spec->length + page - 1) & ~(page - 1);
	if (length > (uint64_t)PTRDIFF_MAX)
		return check_length(UINT64_MAX, err);
	*ret_length = spec->length;
	if (ctx->dry)
		return 0;
	map = mmap(NULL, length, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB |
			   __builtin_ctzll(page) << MAP_HUGE_SHIFT,
		   -1, 0);
	if (map == MAP_FAILED)
		return huge_failed(spec, length, errno, err);
	*ret_mem =
		(struct ibmri_mem){ .map = map, .map_length = length, .addr = map, .anon = true };
	return 0;
}

/* ---- files --------------------------------------------------------------- */

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
				    " is not before the end of file '%s' (%" PRIu64 " bytes)",
				    spec->file_offset, spec->path, size);
	if (length == IBMR_TO_END)
		length = size - spec->file_offset;
	ret = check_length(length, err);
	if (ret)
		return ret;
	if (spec->file_offset > (uint64_t)INT64_MAX - length)
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "file offset %" PRIu64 " plus %" PRIu64
				    " bytes is past what a file can hold",
				    spec->file_offset, length);
	if (!ibmri_within(spec->file_offset, length, size) &&
	    !(spec->file_flags & IBMR_FILE_CREATE)) {
		ret = ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				   "bytes [%" PRIu64 ", %" PRIu64
				   ") are past the end of file '%s' (%" PRIu64 " bytes)",
				   spec->file_offset, spec->file_offset + length, spec->path, size);
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
	if (spec->file_flags & ~(unsigned)(IBMR_FILE_SHARED | IBMR_FILE_CREATE))
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "file flags 0x%x are not known",
				    spec->file_flags);
	if (spec->file_flags & IBMR_FILE_CREATE && !(spec->file_flags & IBMR_FILE_SHARED))
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN,
				    "making or lengthening '%s' needs a shared mapping",
				    spec->path);
	return 0;
}

/* In a dry ctx: look, and make nothing. */
static int look_at_file(const struct ibmr_mr_spec *spec, struct ibmri_mem *ret_mem,
			uint64_t *ret_length, struct ibmr_err *err)
{
	struct stat st = { 0 };
	int ret;

	if (stat(spec->path, &st)) {
		if (errno != ENOENT || !(spec->file_flags & IBMR_FILE_CREATE))
			return file_failed("stat", spec, "looked at", err);
	} else {
		ret = check_regular(spec, &st, err);
		if (ret)
			return ret;
	}
	ret = file_range(spec, (uint64_t)st.st_size, ret_length, err);
	if (ret)
		return ret;
	ret_mem->addr = (void *)(uintptr_t)(spec->file_offset & (ibmri_page_size() - 1));
	return 0;
}

/* Open the file, or make it and note that it was not there before. */
static int open_file(const struct ibmr_mr_spec *spec, struct ibmri_mem *mem, int *ret_fd,
		     struct ibmr_err *err)
{
	/* O_NONBLOCK: what is no regular file must be refused, not waited for */
	int flags =
		(spec->file_flags & IBMR_FILE_SHARED ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK;
	int fd;

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

static int get_file(const struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
		    struct ibmri_mem *ret_mem, uint64_t *ret_length, struct ibmr_err *err)
{
	int fd = -1, ret;

	ret = check_file_flags(spec, err);
	if (ret)
		return ret;
	if (ctx->dry)
		return look_at_file(spec, ret_mem, ret_length, err);
	ret = open_file(spec, ret_mem, &fd, err);
	if (ret)
		return ret;
	ret = use_file(fd, spec, ret_mem, ret_length, err);
	close(fd);
	if (ret)
		ibmri_mem_undo(ret_mem, spec, err);
	return ret;
}

int ibmri_mem_get(const struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
		  struct ibmri_mem *ret_mem, uint64_t *ret_length, struct ibmr_err *err)
{
	memset(ret_mem, 0, sizeof(*ret_mem));
	switch (spec->mem) {
	case IBMR_MEM_CALLER:
		return get_caller(spec, ret_mem, ret_length, err);
	case IBMR_MEM_ANON:
		return get_anon(ctx, spec, ret_mem, ret_length, err);
	case IBMR_MEM_HUGE:
		return get_huge(ctx, spec, ret_mem, ret_length, err);
	case IBMR_MEM_FILE:
		return get_file(ctx, spec, ret_mem, ret_length, err);
	}
	return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "memory kind %d is not known",
			    (int)spec->mem);
}

void ibmri_mem_put(struct ibmri_mem *mem)
{
	if (mem->map)
		munmap(mem->map, mem->map_length);
	memset(mem, 0, sizeof(*mem));
}

void ibmri_mem_undo(struct ibmri_mem *mem, const struct ibmr_mr_spec *spec, struct ibmr_err *err)
{
	if (mem->made && unlink(spec->path))
		ibmri_err_more(err, "; and '%s' cannot be removed again: %s", spec->path,
			       strerror(errno));
	else if (mem->longer && !mem->made && truncate(spec->path, (off_t)mem->old_size))
		ibmri_err_more(err, "; and '%s' cannot be cut back to %" PRIu64 " bytes: %s",
			       spec->path, mem->old_size, strerror(errno));
	ibmri_mem_put(mem);
}
