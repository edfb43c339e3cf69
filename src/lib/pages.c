/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel says about this process's pages, and the device about its own. */
#include "private.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHUNK		4096 /* pages looked at between two looks at the clock */
#define PAGEMAP_PRESENT (1ULL << 63)

/* ---- /proc/self/maps -------------------------------------------------------- */

int ibmri_pages_first_bad(uint64_t addr, uint64_t length, bool write,
			  struct ibmri_bad_page *ret_bad)
{
	uint64_t page = ibmri_page_size(), at = addr & ~(page - 1), last = addr + (length - 1);
	size_t room = 0;
	char *line = NULL;
	FILE *f;
	int ret = 0;

	f = fopen("/proc/self/maps", "re");
	if (!f)
		return -errno;
	memset(ret_bad, 0, sizeof(*ret_bad));
	while (!ret && at <= last && getline(&line, &room, f) > 0) {
		uint64_t start, end;
		char perms[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s", &start, &end, perms) != 3)
			continue;
		if (end <= at)
			continue;
		if (start > at)
			break; /* a hole */
		if (perms[0] != 'r' || (write && perms[1] != 'w')) {
			ret_bad->mapped = true;
			memcpy(ret_bad->perms, perms, sizeof(perms));
			ret = 1;
		} else {
			at = end;
		}
	}
	free(line);
	fclose(f);
	if (at > last)
		return 0;
	ret_bad->addr = at;
	return 1;
}

uint64_t ibmri_pages_size_at(uint64_t addr)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	uint64_t start, end, kib, size = 0;
	bool here = false;
	char line[512];

	while (f && !size && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &start, &end) == 2)
			here = addr >= start && addr < end;
		else if (here && sscanf(line, "KernelPageSize: %" SCNu64 " kB", &kib) == 1)
			size = kib * 1024;
	}
	if (f)
		fclose(f);
	return size;
}

int64_t ibmri_pages_map_count(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	int64_t count = 0;
	int c;

	if (!f)
		return -1;
	while ((c = getc_unlocked(f)) != EOF)
		count += c == '\n';
	fclose(f);
	return count;
}

/* ---- pages present for the CPU ------------------------------------------------ */

void ibmri_residency_open(struct ibmri_residency *r)
{
	memset(r, 0, sizeof(*r));
	r->fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
}

void ibmri_residency_close(struct ibmri_residency *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

/* Linux 6.7 and later count pages themselves (source: struct pm_scan_arg, linux/fs.h): what older
 * headers do not have. */
struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, mask, any_of, return_mask;
};
struct scan_region {
	uint64_t start, end, categories;
};
#define SCAN	     _IOWR('f', 16, struct scan)
#define SCAN_PRESENT (1u << 3)

/* -1: this kernel does not, or not of this memory. */
static int64_t count_scan(int fd, uint64_t first, uint64_t pages, const struct ibmri_call *c)
{
	struct scan_region regions[64];
	uint64_t page = ibmri_page_size();
	struct scan scan = { .size = sizeof(scan),
			     .start = first * page,
			     .end = (first + pages) * page,
			     .vec = (uintptr_t)regions,
			     .vec_len = sizeof(regions) / sizeof(regions[0]),
			     .mask = SCAN_PRESENT,
			     .return_mask = SCAN_PRESENT };
	int64_t present = 0;
	int num, i;

	while (scan.start < scan.end) {
		num = ioctl(fd, SCAN, &scan);
		if (num < 0 || scan.walk_end <= scan.start || ibmri_call_over(c))
			return -1;
		for (i = 0; i < num; i++)
			present += (int64_t)((regions[i].end - regions[i].start) / page);
		scan.start = scan.walk_end;
	}
	return present;
}

static int64_t count_pagemap(int fd, uint64_t first, uint64_t pages, const struct ibmri_call *c)
{
	uint64_t entries[CHUNK];
	int64_t present = 0;

	while (pages) {
		uint64_t n = pages < CHUNK ? pages : CHUNK, i;
		ssize_t got = pread(fd, entries, n * sizeof(entries[0]),
				    (off_t)(first * sizeof(entries[0])));

		if (got < (ssize_t)sizeof(entries[0]))
			return -1;
		n = (uint64_t)got / sizeof(entries[0]);
		for (i = 0; i < n; i++)
			present += !!(entries[i] & PAGEMAP_PRESENT);
		first += n;
		pages -= n;
		if (ibmri_call_over(c))
			return -1;
	}
	return present;
}

static int64_t count_mincore(uint64_t addr, uint64_t pages, const struct ibmri_call *c)
{
	unsigned char vec[CHUNK];
	uint64_t page = ibmri_page_size();
	int64_t present = 0;

	while (pages) {
		uint64_t n = pages < CHUNK ? pages : CHUNK, i;

		if (mincore((void *)(uintptr_t)addr, n * page, vec))
			return -1;
		for (i = 0; i < n; i++)
			present += vec[i] & 1;
		addr += n * page;
		pages -= n;
		if (ibmri_call_over(c))
			return -1;
	}
	return present;
}

int64_t ibmri_pages_resident(struct ibmri_residency *r, uint64_t addr, uint64_t length, bool own,
			     const struct ibmri_call *c)
{
	uint64_t page = ibmri_page_size(), pages = ibmri_page_span(addr, length) / page;
	int64_t count = -1;

	addr &= ~(page - 1);
	if (r->fd >= 0)
		count = count_scan(r->fd, addr / page, pages, c);
	if (r->fd >= 0 && count < 0)
		count = count_pagemap(r->fd, addr / page, pages, c);
	if (count >= 0) {
		r->used_pagemap = true;
		return count;
	}
	/* mincore speaks of the page cache, and lies about files of others: only for private memory
	 */
	if (own)
		count = count_mincore(addr, pages, c);
	if (count >= 0)
		r->used_mincore = true;
	return count;
}

/* ---- pages mapped by the device ---------------------------------------------------- */

/* What soft0 tells of an on-demand MR in a file; a kernel has no such files. */
static int odp_file(const struct ibmr_mr *mr, const char *what)
{
	char path[512];
	int n = snprintf(path, sizeof(path), "%s/odp/%08x%s", mr->ctx->verbs->device->ibdev_path,
			 mr->lkey, what);

	return n < 0 || (size_t)n >= sizeof(path) ? -1 : open(path, O_RDONLY | O_CLOEXEC);
}

int64_t ibmri_pages_mapped(const struct ibmr_mr *mr, uint64_t offset, uint64_t length,
			   const struct ibmri_call *c)
{
	uint64_t page = ibmri_page_size(), first, pages;
	uint8_t bytes[CHUNK];
	int64_t mapped = 0;
	int fd;

	fd = odp_file(mr, "");
	if (fd < 0)
		return -1;
	/* one byte a page, from the MR's first page on */
	first = (mr->base + offset) / page - mr->base / page;
	pages = ibmri_page_span(mr->base + offset, length) / page;
	while (pages) {
		uint64_t want = pages < CHUNK ? pages : CHUNK;
		ssize_t got = pread(fd, bytes, want, (off_t)first), i;

		if (got <= 0 || ibmri_call_over(c)) {
			mapped = -1;
			break;
		}
		for (i = 0; i < got; i++)
			mapped += bytes[i] != 0;
		first += (uint64_t)got;
		pages -= (uint64_t)got;
	}
	close(fd);
	return mapped;
}

void ibmr_mr_odp_counts(const struct ibmr_mr *mr, struct ibmr_odp_counts *ret_counts)
{
	struct ibmr_odp_counts counts = { -1, -1, -1 };
	bool has = !mr->ctx->dry && !mr->indirect && mr->traits.on_demand;
	int fd = has ? odp_file(mr, ".counts") : -1;
	char text[256];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (n > 0) {
		text[n] = '\0';
		if (sscanf(text,
			   "page_faults %" SCNd64 " page_prefetched %" SCNd64
			   " page_invalidations %" SCNd64,
			   &counts.faults, &counts.prefetched, &counts.invalidations) != 3)
			counts = (struct ibmr_odp_counts){ -1, -1, -1 };
	}
	*ret_counts = counts;
}
