/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a device makes of memory that is not as it should be, as the library tells it; prints TAP.
 * Usage: conditions DEVICE true|false    whether its driver and library have ibv_advise_mr
 *
 * Behind each "#" stands a row for the table of conditions: code, cause, certainty, raw errno, call.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "ibmr.h"

#define PAGE  ((size_t)4096)
#define PAGES 64
#define LW    IBMR_ACCESS_LOCAL_WRITE
#define RR    IBMR_ACCESS_REMOTE_READ
#define OD    IBMR_ACCESS_ON_DEMAND

static struct ibmr_ctx *ctx;
static struct ibmr_err err;
static struct ibmr_prefetch_info info;
static bool advises;
static int tests, failed;

static bool ok(bool passed, const char *what)
{
	printf("%sok %d - %s\n", passed ? "" : "not ", ++tests, what);
	failed += !passed;
	return passed;
}

static void row(const char *what, int ret)
{
	if (ret)
		printf("# %s | %s | %s | %s | %s | %s\n", what, ibmr_code_name(err.code),
		       err.cause ? err.cause : "-",
		       !err.cause    ? "-"
		       : err.certain ? "certain"
				     : "suspected",
		       err.sys_errno ? strerrorname_np(err.sys_errno) : "-", err.origin);
	else
		printf("# %s | ok | %lld of %llu pages resident, %lld before\n", what,
		       (long long)info.total.cpu_resident_after,
		       (unsigned long long)info.total.pages,
		       (long long)info.total.cpu_resident_before);
}

/* It failed with this code and cause, and says this. */
static void refused(const char *what, int ret, enum ibmr_code code, const char *cause,
		    const char *says)
{
	bool same = ret && err.code == code && !cause == !err.cause &&
		    (!cause || !strcmp(cause, err.cause)) && strstr(err.text, says);

	if (!ok(same, what))
		printf("# returned %d, %s, cause %s: %s\n", ret, ibmr_code_name(err.code),
		       err.cause ? err.cause : "none", err.text);
	row(what, ret);
}

static void *map(size_t pages, int prot)
{
	void *at =
		mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED) {
		printf("Bail out! mmap: %s\n", strerror(errno));
		exit(1);
	}
	return at;
}

static int reg(void *addr, size_t pages, uint64_t access, struct ibmr_mr **ret_mr)
{
	const struct ibmr_mr_spec spec = { .name = "m",
					   .mem = IBMR_MEM_CALLER,
					   .addr = addr,
					   .length = pages * PAGE,
					   .access = access };

	return ibmr_mr_reg(ctx, &spec, ret_mr, &err);
}

static int prefetch(struct ibmr_mr *mr, size_t first, size_t pages, enum ibmr_advice advice)
{
	const struct ibmr_range range = { mr, first * PAGE, pages * PAGE };

	return ibmr_mr_prefetch(ctx, &range, 1, advice, true, NULL, &info, &err);
}

#define ANY (-1)

/* So many pages were there before, and so many are now; where nothing can be advised, that is said. */
static void resident(const char *what, int ret, int64_t before, int64_t after)
{
	if (!advises) {
		refused(what, ret, IBMR_E_UNSUPPORTED, "advise_mr", "no prefetch");
		return;
	}
	if (!ok(!ret && (before == ANY || info.total.cpu_resident_before == before) &&
			info.total.cpu_resident_after == after,
		what))
		printf("# returned %d: %s\n", ret, err.text);
	row(what, ret);
}

/* A prefetch that finds a bad page: told with its address. */
static void bad_page(const char *what, int ret, const char *cause, const void *page)
{
	char text[64];

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)(uintptr_t)page);
	if (advises)
		refused(what, ret, IBMR_E_BAD_ADDRESS, cause, text);
	else
		refused(what, ret, IBMR_E_UNSUPPORTED, "advise_mr", "no prefetch");
}

static void dropped_and_again(void)
{
	char *at = map(PAGES, PROT_READ | PROT_WRITE);
	struct ibmr_mr *mr;

	if (!ok(!reg(at, PAGES, LW | OD, &mr), "on-demand memory is registered"))
		return;
	resident("prefetch of untouched memory", prefetch(mr, 0, PAGES, IBMR_ADVICE_WRITE), 0,
		 PAGES);
	resident("prefetch of what is there", prefetch(mr, 0, PAGES, IBMR_ADVICE_WRITE), PAGES,
		 PAGES);
	madvise(at, PAGES / 2 * PAGE, MADV_DONTNEED);
	resident("no_fault after half was dropped", prefetch(mr, 0, PAGES, IBMR_ADVICE_NO_FAULT),
		 PAGES / 2, PAGES / 2);
	resident("prefetch again after half was dropped", prefetch(mr, 0, PAGES, IBMR_ADVICE_WRITE),
		 PAGES / 2, PAGES);
	ok(!ibmr_mr_dereg(mr, &err), "and it is deregistered");
	munmap(at, PAGES * PAGE);
}

static void holes(void)
{
	char *at = map(PAGES, PROT_READ | PROT_WRITE);
	struct ibmr_mr *mr;

	if (reg(at, PAGES, LW | OD, &mr))
		return;
	munmap(at + 40 * PAGE, 2 * PAGE);
	bad_page("prefetch over a hole unmapped in the MR",
		 prefetch(mr, 0, PAGES, IBMR_ADVICE_WRITE), "unmapped", at + 40 * PAGE);
	resident("prefetch up to the hole", prefetch(mr, 8, 8, IBMR_ADVICE_WRITE), ANY, 8);
	mprotect(at + 20 * PAGE, PAGE, PROT_NONE);
	bad_page("prefetch over a PROT_NONE page", prefetch(mr, 16, 8, IBMR_ADVICE_WRITE),
		 "no_access", at + 20 * PAGE);
	mprotect(at + 20 * PAGE, PAGE, PROT_READ);
	bad_page("prefetch for writing over a read-only page",
		 prefetch(mr, 16, 8, IBMR_ADVICE_WRITE), "read_only", at + 20 * PAGE);
	ibmr_mr_dereg(mr, NULL);
	munmap(at, PAGES * PAGE);
}

static void read_only(void)
{
	char *at = map(PAGES, PROT_READ);
	struct ibmr_mr *mr;

	if (!ok(!reg(at, PAGES, LW | OD, &mr), "read-only memory is registered on demand"))
		return;
	resident("prefetch for reading of read-only memory",
		 prefetch(mr, 0, PAGES, IBMR_ADVICE_READ), 0, PAGES);
	ibmr_mr_dereg(mr, NULL);
	munmap(at, PAGES * PAGE);
}

static void large(void)
{
	const size_t pages = (size_t)5 << 18; /* 5 GiB */
	char *at = map(pages, PROT_READ | PROT_WRITE);
	struct ibmr_mr *mr;

	if (!ok(!reg(at, pages, LW | OD, &mr), "5 GiB are registered on demand"))
		return;
	madvise(at, pages * PAGE, MADV_NOHUGEPAGE);
	at[(pages - 1) * PAGE] = 1;
	resident("prefetch over 5 GiB", prefetch(mr, 0, pages, IBMR_ADVICE_NO_FAULT), 1, 1);
	ibmr_mr_dereg(mr, NULL);
	munmap(at, pages * PAGE);
}

static void several(void)
{
	char *at = map(PAGES, PROT_READ | PROT_WRITE);
	struct ibmr_range ranges[3] = { { .length = 2 * PAGE },
					{ .length = PAGE + 1 },
					{ .offset = 63 * PAGE, .length = PAGE } };
	struct ibmr_pages pages[3];
	int ret;

	if (reg(at, PAGES, LW | OD, &ranges[0].mr) ||
	    reg(map(PAGES, PROT_READ | PROT_WRITE), PAGES, LW | OD, &ranges[1].mr))
		return;
	ranges[2].mr = ranges[0].mr;
	ret = ibmr_mr_prefetch(ctx, ranges, 3, IBMR_ADVICE_WRITE, true, pages, &info, &err);
	resident("prefetch of three ranges over two MRs", ret, 0, 5);
	ret = ibmr_mr_prefetch(ctx, ranges, 3, IBMR_ADVICE_READ, false, pages, &info, &err);
	resident("prefetch of them without waiting", ret, 5, 5);
	munmap(at + 63 * PAGE, PAGE);
	ret = ibmr_mr_prefetch(ctx, ranges, 3, IBMR_ADVICE_WRITE, true, pages, &info, &err);
	bad_page("prefetch of three ranges of which the last is bad", ret, "unmapped",
		 at + 63 * PAGE);
	ok(err.index == (advises ? 2 : 0), "which range it was is told");
	ok(!ibmr_mr_dereg(ranges[0].mr, &err) && !ibmr_mr_dereg(ranges[1].mr, &err),
	   "and both are deregistered");
}

/* Registering what cannot be pinned. */
static void pinned(void)
{
	char *at = map(PAGES, PROT_READ | PROT_WRITE), text[64];
	struct ibmr_mr *mr;

	snprintf(text, sizeof(text), "0x%llx", (unsigned long long)(uintptr_t)(at + 40 * PAGE));
	if (!reg(at, PAGES, LW, &mr)) {
		refused("prefetch of a pinned MR", prefetch(mr, 0, 1, IBMR_ADVICE_READ),
			IBMR_E_NOT_ON_DEMAND, NULL, "pinned");
		ibmr_mr_dereg(mr, NULL);
	}
	mprotect(at + 40 * PAGE, PAGE, PROT_READ);
	refused("registering a read-only page with local_write", reg(at, PAGES, LW, &mr),
		IBMR_E_BAD_ADDRESS, "read_only", text);
	if (ok(!reg(at, PAGES, RR, &mr), "registering a read-only page for reading"))
		ibmr_mr_dereg(mr, NULL);
	mprotect(at + 40 * PAGE, PAGE, PROT_NONE);
	refused("registering a PROT_NONE page", reg(at, PAGES, RR, &mr), IBMR_E_BAD_ADDRESS,
		"no_access", text);
	munmap(at + 40 * PAGE, PAGE);
	refused("registering a hole", reg(at, PAGES, LW, &mr), IBMR_E_BAD_ADDRESS, "unmapped",
		text);
}

int main(int argc, char **argv)
{
	const struct ibmr_ctx_opts opts = { .device = argc > 1 ? argv[1] : NULL, .gid_index = -1 };

	advises = argc > 2 && !strcmp(argv[2], "true");
	if (ibmr_ctx_open(&opts, &ctx, &err)) {
		printf("Bail out! %s\n", err.text);
		return 1;
	}
	dropped_and_again();
	holes();
	read_only();
	large();
	several();
	pinned();
	ok(!ibmr_ctx_close(ctx, &err), "the device is closed, with nothing left on it");
	printf("1..%d\n", tests);
	return failed ? 1 : 0;
}
