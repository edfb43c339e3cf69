/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of direct MRs: the caller's, anonymous, in huge pages; files are file.c's. */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
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

int ibmri_mem_length(uint64_t length, struct ibmr_err *err)
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

	ret = ibmri_mem_length(spec->length, err);
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

	ret = ibmri_mem_length(spec->length, err);
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

	ret = ibmri_mem_length(spec->length, err);
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
		return ibmri_mem_length(UINT64_MAX, err);
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

int ibmri_mem_get(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec, struct ibmri_mem *ret_mem,
		  uint64_t *ret_length, struct ibmr_err *err)
{
	memset(ret_mem, 0, sizeof(*ret_mem));
	switch (spec->mem) {
	case IBMR_MEM_CALLER:
		return get_caller(spec, ret_mem, ret_length, err);
	case IBMR_MEM_ANON:
		return get_anon(ctx, spec, ret_mem, ret_length, err);
	case IBMR_MEM_HUGE:
		return get_huge(ctx, spec, ret_mem, ret_length, err);
	case IBMR_MEM_SHARED:
		return ibmri_shared_get(ctx, spec, ret_mem, ret_length, err);
	case IBMR_MEM_ATTACH:
		return ibmri_attach_get(ctx, spec, ret_mem, ret_length, err);
	case IBMR_MEM_FILE:
		return ibmri_file_get(ctx, spec, ret_mem, ret_length, err);
	case IBMR_MEM_ALL:
		*ret_length = IBMR_ALL_BYTES;
		return 0;
	}
	return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "memory kind %d is not known",
			    (int)spec->mem);
}

void ibmri_mem_put(struct ibmri_mem *mem)
{
	if (mem->map)
		munmap(mem->map, mem->map_length);
	ibmri_shared_put(mem);
	memset(mem, 0, sizeof(*mem));
}
