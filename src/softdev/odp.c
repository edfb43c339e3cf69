/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * On-demand paging: which pages of an MR the device has mapped, and what brings them in and takes
 * them away. An access maps what is missing by asking the kernel to populate it; prefetching does
 * the same ahead of time; preload.c tells when the process takes memory away.
 */
#include "softdev.h"
#include "raw.h"
#include "files.h"
#include "mr.h"

#include <linux/futex.h>
#include <linux/ioctl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_DONTNEED_LOCKED
#define MADV_DONTNEED_LOCKED 24
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* ---- page states: a hash of chunks of 512 pages, for implicit MRs span everything -------- */

#define CHUNK_PAGES 512
#define CHUNK_BYTES (CHUNK_PAGES * SD_PAGE_SIZE)

/* Two bits a page: mapped at all, mapped for writing. */
struct chunk {
	uint64_t index; /* address / CHUNK_BYTES, plus 1: 0 is an empty slot */
	uint64_t mapped[CHUNK_PAGES / 64], writable[CHUNK_PAGES / 64];
};

struct sd_pages {
	struct chunk *chunks;
	size_t num, room;			    /* room: a power of two */
	uint64_t faults, prefetched, invalidations; /* pages, since the MR was made */
};

struct sd_pages *sd_pages_new(void)
{
	return calloc(1, sizeof(struct sd_pages));
}

void sd_pages_free(struct sd_pages *p)
{
	if (!p)
		return;
	free(p->chunks);
	free(p);
}

static size_t slot_of(const struct sd_pages *p, uint64_t index)
{
	size_t i = (size_t)(index * 0x9e3779b97f4a7c15ull >> 20) & (p->room - 1);

	while (p->chunks[i].index && p->chunks[i].index != index)
		i = (i + 1) & (p->room - 1);
	return i;
}

static struct chunk *chunk_find(const struct sd_pages *p, uint64_t va)
{
	struct chunk *c;

	if (!p->room)
		return NULL;
	c = &p->chunks[slot_of(p, va / CHUNK_BYTES + 1)];
	return c->index ? c : NULL;
}

static int grow(struct sd_pages *p)
{
	struct sd_pages to = { .num = p->num, .room = p->room ? p->room * 2 : 8 };
	size_t i;

	to.chunks = calloc(to.room, sizeof(*to.chunks));
	if (!to.chunks)
		return -ENOMEM;
	for (i = 0; i < p->room; i++)
		if (p->chunks[i].index)
			to.chunks[slot_of(&to, p->chunks[i].index)] = p->chunks[i];
	free(p->chunks);
	p->chunks = to.chunks;
	p->room = to.room;
	return 0;
}

static struct chunk *chunk_get(struct sd_pages *p, uint64_t va)
{
	struct chunk *c = chunk_find(p, va);

	if (c)
		return c;
	if (p->num * 2 >= p->room && grow(p))
		return NULL;
	c = &p->chunks[slot_of(p, va / CHUNK_BYTES + 1)];
	c->index = va / CHUNK_BYTES + 1;
	p->num++;
	return c;
}

static bool page_is(const uint64_t *bits, uint64_t va)
{
	uint64_t page = va / SD_PAGE_SIZE % CHUNK_PAGES;

	return bits[page / 64] >> (page % 64) & 1;
}

static bool page_ready(const struct sd_pages *p, uint64_t va, bool write)
{
	const struct chunk *c = chunk_find(p, va);

	return c && page_is(write ? c->writable : c->mapped, va);
}

static int page_set(struct sd_pages *p, uint64_t va, bool write)
{
	struct chunk *c = chunk_get(p, va);
	uint64_t page = va / SD_PAGE_SIZE % CHUNK_PAGES, bit = 1ull << (page % 64);

	if (!c)
		return -ENOMEM;
	c->mapped[page / 64] |= bit;
	if (write)
		c->writable[page / 64] |= bit;
	return 0;
}

static bool page_clear(struct chunk *c, uint64_t va)
{
	uint64_t page = va / SD_PAGE_SIZE % CHUNK_PAGES, bit = 1ull << (page % 64);
	bool was = c->mapped[page / 64] & bit;

	c->mapped[page / 64] &= ~bit;
	c->writable[page / 64] &= ~bit;
	return was;
}

static uint64_t chunk_clear(struct chunk *c, uint64_t first, uint64_t end)
{
	uint64_t base = (c->index - 1) * CHUNK_BYTES, va, cleared = 0;

	va = first > base ? first : base;
	for (; va < end && va - base < CHUNK_BYTES; va += SD_PAGE_SIZE)
		cleared += page_clear(c, va);
	return cleared;
}

static uint64_t pages_clear(struct sd_pages *p, uint64_t first, uint64_t end)
{
	uint64_t cleared = 0, va;
	size_t i;

	if ((end - first) / CHUNK_BYTES < p->room) {
		for (va = first & ~(CHUNK_BYTES - 1); va < end; va += CHUNK_BYTES) {
			struct chunk *c = chunk_find(p, va);

			if (c)
				cleared += chunk_clear(c, first, end);
		}
		return cleared;
	}
	for (i = 0; i < p->room; i++) {
		uint64_t base = (p->chunks[i].index - 1) * CHUNK_BYTES;

		if (p->chunks[i].index && base < end && first < base + CHUNK_BYTES)
			cleared += chunk_clear(&p->chunks[i], first, end);
	}
	return cleared;
}

/* ---- bringing pages in ------------------------------------------------------------ */

/*
 * Kernels before 5.14 know no MADV_POPULATE. There a page is read by a copy, or written by a futex
 * operation that adds nothing to its first word: neither changes a byte, nor races with the process.
 */
static int touch_page(uint64_t va, bool write)
{
	static uint32_t nobody;
	uint8_t byte;
	long ret;

	if (!write)
		return sd_user_read(&byte, (void *)(uintptr_t)va, 1);
	ret = sd_raw(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0L, 0L, (void *)(uintptr_t)va,
		     (long)FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, -2048));
	return ret < 0 ? (int)ret : 0;
}

static int touch(uint64_t va, uint64_t bytes, bool write)
{
	uint64_t end = va + bytes;
	int err = 0;

	for (; va < end && !err; va += SD_PAGE_SIZE)
		err = touch_page(va, write);
	return err;
}

/* Asked with no pages: for a page, "no right" is EINVAL as well. */
static bool can_populate(void)
{
	static int known; /* 1: yes, -1: no */

	if (!known)
		known = sd_raw_madvise(NULL, 0, MADV_POPULATE_WRITE) ? -1 : 1;
	return known == 1;
}

int sd_populate(uint64_t va, uint64_t bytes, bool write)
{
	int err;

	do {
		if (can_populate())
			err = sd_raw_madvise((void *)(uintptr_t)va, bytes,
					     write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
		else
			err = touch(va, bytes, write);
	} while (err == -EAGAIN || err == -EINTR);
	return err ? -EFAULT : 0;
}

/* Map what is missing of [va, va + bytes), runs of pages at a time. *ret_pages: how many were. */
static int map_pages(struct sd_pages *p, uint64_t va, uint64_t bytes, bool write,
		     uint64_t *ret_pages)
{
	uint64_t end = sd_page_up(va + bytes), run;
	int err;

	*ret_pages = 0;
	for (va = sd_page_down(va); va < end; va = run) {
		run = va + SD_PAGE_SIZE;
		if (page_ready(p, va, write))
			continue;
		while (run < end && !page_ready(p, run, write))
			run += SD_PAGE_SIZE;
		err = sd_populate(va, run - va, write);
		if (err)
			return err;
		for (; va < run; va += SD_PAGE_SIZE) {
			err = page_set(p, va, write);
			if (err)
				return err;
			++*ret_pages;
		}
	}
	return 0;
}

/* As the mlx5 driver does, a fault of a writable MR brings pages in for writing, whatever the
 * access. */
int sd_odp_access(struct sd_mkey *leaf, uint8_t *va, uint64_t bytes, bool write)
{
	uint64_t pages;
	bool writes = sd_access_writes(leaf->access);
	uint64_t at = (uint64_t)(uintptr_t)va, end = at + bytes, run;
	int err;

	if (!leaf->on_demand || !bytes)
		return 0;
	if (write && !writes)
		return -EFAULT;
	if (end < at)
		return -EFAULT;
	for (at = sd_page_down(at); at < end; at = run) {
		run = at + SD_PAGE_SIZE;
		if (page_ready(leaf->pages, at, write))
			continue;
		while (run < end && !page_ready(leaf->pages, run, write))
			run += SD_PAGE_SIZE;
		err = map_pages(leaf->pages, at, run - at, writes, &pages);
		sd_count("odp.faults", pages);
		leaf->pages->faults += pages;
		if (err)
			return err;
	}
	return 0;
}

/* ---- what the process has ----------------------------------------------------------- */

#define PAGEMAP_PRESENT (1ull << 63)
#define PAGEMAP_STEP	4096

/* Linux 6.7 and later tell it by regions (source: struct pm_scan_arg, linux/fs.h). */
struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t inverted, mask, any_of, return_mask;
};
struct scan_region {
	uint64_t start, end, categories;
};
#define SCAN	     _IOWR('f', 16, struct scan)
#define SCAN_PRESENT (1u << 3)

static bool scan_present(int fd, uint64_t va, size_t num, bool *present)
{
	struct scan_region regions[64] = { { 0 } }; /* valgrind does not see the kernel write */
	struct scan scan = { .size = sizeof(scan),
			     .start = va,
			     .end = va + num * SD_PAGE_SIZE,
			     .vec = (uintptr_t)regions,
			     .vec_len = sizeof(regions) / sizeof(regions[0]),
			     .mask = SCAN_PRESENT,
			     .return_mask = SCAN_PRESENT };
	long found, i;

	memset(present, 0, num * sizeof(*present));
	while (scan.start < scan.end) {
		found = sd_raw(SYS_ioctl, fd, SCAN, &scan);
		if (found < 0 || scan.walk_end <= scan.start)
			return false;
		for (i = 0; i < found; i++)
			memset(&present[(regions[i].start - va) / SD_PAGE_SIZE], 1,
			       (regions[i].end - regions[i].start) / SD_PAGE_SIZE);
		scan.start = scan.walk_end;
	}
	return true;
}

/* Whether pages are present for the CPU: present[i] for up to PAGEMAP_STEP of them. */
static int read_present(int fd, uint64_t va, size_t num, bool *present)
{
	uint64_t entry[PAGEMAP_STEP];
	size_t i;
	long n;

	if (scan_present(fd, va, num, present))
		return 0;
	n = sd_raw(SYS_pread64, fd, entry, num * sizeof(entry[0]),
		   va / SD_PAGE_SIZE * sizeof(entry[0]));

	if (n < 0)
		return (int)n;
	for (i = 0; i < num; i++)
		present[i] = (long)(i * sizeof(entry[0])) < n && (entry[i] & PAGEMAP_PRESENT);
	return 0;
}

/* Map what is present, fault nothing in. */
static int map_present(struct sd_pages *p, uint64_t va, uint64_t bytes, uint64_t *ret_pages)
{
	uint64_t end = sd_page_up(va + bytes);
	bool present[PAGEMAP_STEP];
	int fd = sd_raw_open("/proc/self/pagemap", O_RDONLY), err = 0;

	*ret_pages = 0;
	if (fd < 0)
		return 0; /* a hint that cannot be followed */
	va = sd_page_down(va);
	while (va < end && !err) {
		uint64_t left = (end - va) / SD_PAGE_SIZE;
		size_t num = left < PAGEMAP_STEP ? (size_t)left : PAGEMAP_STEP, i;

		err = read_present(fd, va, num, present);
		for (i = 0; i < num && !err; i++, va += SD_PAGE_SIZE) {
			if (!present[i] || page_ready(p, va, false))
				continue;
			err = page_set(p, va, false);
			++*ret_pages;
		}
	}
	sd_raw_close(fd);
	return err;
}

int sd_odp_prefetch(struct sd_mr *mr, uint64_t va, uint64_t bytes, uint32_t advice)
{
	uint64_t pages;
	int err;

	if (va + bytes < va)
		return -EFAULT;
	if (!bytes)
		return 0;
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		err = map_present(mr->pages, va, bytes, &pages);
	else
		err = map_pages(mr->pages, va, bytes, advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				&pages);
	sd_count("odp.prefetched", pages);
	mr->pages->prefetched += pages;
	return err;
}

/* ---- the on-demand MRs ---------------------------------------------------------------- */

static struct sd_mr *mrs;
static atomic_uint num_mrs;

void sd_odp_add(struct sd_mr *mr)
{
	mr->next = mrs;
	mrs = mr;
	atomic_fetch_add(&num_mrs, 1);
}

void sd_odp_remove(struct sd_mr *mr)
{
	struct sd_mr **p;

	for (p = &mrs; *p; p = &(*p)->next) {
		if (*p == mr) {
			*p = mr->next;
			atomic_fetch_sub(&num_mrs, 1);
			return;
		}
	}
}

struct sd_mr *sd_odp_find(uint32_t lkey)
{
	struct sd_mr *mr;

	for (mr = mrs; mr; mr = mr->next)
		if (mr->lkey && mr->lkey->key == lkey)
			return mr;
	return NULL;
}

bool sd_odp_advice_drops(int advice)
{
	switch (advice) {
	case MADV_DONTNEED:
	case MADV_FREE:
	case MADV_REMOVE:
	case MADV_PAGEOUT:
	case MADV_DONTNEED_LOCKED:
	case MADV_COLLAPSE:
		return true;
	default:
		return false;
	}
}

/* A malloc that we call ourselves may end here too, with the lock held. */
void sd_odp_invalidate(const void *va, size_t bytes)
{
	bool locked = sd_lock_is_mine();
	uint64_t first = sd_page_down((uint64_t)(uintptr_t)va);
	uint64_t end = sd_page_up((uint64_t)(uintptr_t)va + bytes);
	uint64_t pages;
	struct sd_mr *mr;

	if (!atomic_load_explicit(&num_mrs, memory_order_acquire))
		return;
	if (!locked)
		sd_lock();
	for (mr = mrs; mr; mr = mr->next) {
		pages = pages_clear(mr->pages, first, end);
		sd_count("odp.invalidations", pages);
		mr->pages->invalidations += pages;
	}
	if (!locked)
		sd_unlock();
}

/* ---- the file of page states ------------------------------------------------------------ */

static int write_states(int out, int pagemap, const struct sd_mr *mr)
{
	uint64_t va = sd_page_down(mr->start), end = sd_page_up(mr->start + mr->length);
	bool present[PAGEMAP_STEP];
	uint8_t state[PAGEMAP_STEP];
	int err;

	while (va < end) {
		uint64_t left = (end - va) / SD_PAGE_SIZE;
		size_t num = left < PAGEMAP_STEP ? (size_t)left : PAGEMAP_STEP, i;
		bool any = false;

		for (i = 0; i < num; i++)
			any |= state[i] = page_ready(mr->pages, va + i * SD_PAGE_SIZE, false);
		/* what libc gave back by itself was not seen: the device has lost it too */
		err = pagemap < 0 || !any ? 0 : read_present(pagemap, va, num, present);
		if (err)
			return err;
		for (i = 0; i < num; i++, va += SD_PAGE_SIZE)
			state[i] = state[i] && (pagemap < 0 || present[i]);
		if (sd_raw_write(out, state, num) != (ssize_t)num)
			return -ENOSPC;
	}
	return 0;
}

static int write_counts(int out, const struct sd_mr *mr)
{
	const struct sd_pages *p = mr->pages;
	char text[128];
	int num = snprintf(text, sizeof(text),
			   "page_faults %llu\npage_prefetched %llu\npage_invalidations %llu\n",
			   (unsigned long long)p->faults, (unsigned long long)p->prefetched,
			   (unsigned long long)p->invalidations);

	return sd_raw_write(out, text, (size_t)num) == num ? 0 : -ENOSPC;
}

int sd_odp_counts(uint32_t lkey)
{
	int out = (int)sd_raw(SYS_memfd_create, "soft0-odp", 1 /* MFD_CLOEXEC */), err;
	struct sd_mr *mr;

	if (out < 0)
		return out;
	sd_lock();
	mr = sd_odp_find(lkey);
	err = mr ? write_counts(out, mr) : -ENOENT;
	sd_unlock();
	if (!err)
		err = (int)sd_raw(SYS_lseek, out, 0, SEEK_SET);
	if (err) {
		sd_raw_close(out);
		return err;
	}
	return out;
}

int sd_odp_snapshot(uint32_t lkey)
{
	struct sd_mr *mr;
	int out, pagemap, err;

	out = (int)sd_raw(SYS_memfd_create, "soft0-odp", 1 /* MFD_CLOEXEC */);
	if (out < 0)
		return out;
	pagemap = sd_raw_open("/proc/self/pagemap", O_RDONLY);
	sd_lock();
	mr = sd_odp_find(lkey);
	if (!mr)
		err = -ENOENT;
	else if (mr->length == UINT64_MAX)
		err = -EFBIG; /* implicit: the whole address space */
	else
		err = write_states(out, pagemap, mr);
	sd_unlock();
	if (pagemap >= 0)
		sd_raw_close(pagemap);
	if (!err)
		err = (int)sd_raw(SYS_lseek, out, 0, SEEK_SET);
	if (err) {
		sd_raw_close(out);
		return err;
	}
	return out;
}
