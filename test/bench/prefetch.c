/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What prefetching costs and saves, in nanoseconds: usage: prefetch WHAT MEBIBYTES
 *
 * madvise: MADV_POPULATE_WRITE of fresh memory. prefetch: ibmr_mr_prefetch of it, with the counting.
 * first: reading on-demand memory that nobody touched. again: the same after a prefetch.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "ibmr.h"

#define ACCESS (IBMR_ACCESS_LOCAL_WRITE | IBMR_ACCESS_REMOTE_READ | IBMR_ACCESS_ON_DEMAND)
#define CHUNK  (64u << 10)

static struct ibmr_err err;

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int prefetch(struct ibmr_ctx *ctx, struct ibmr_mr *mr)
{
	const struct ibmr_range range = { .mr = mr, .length = IBMR_TO_END };
	struct ibmr_prefetch_info info;
	int ret = ibmr_mr_prefetch(ctx, &range, 1, IBMR_ADVICE_WRITE, true, NULL, &info, &err);

	if (!ret && info.total.cpu_resident_after != (int64_t)info.total.pages) {
		snprintf(err.text, sizeof(err.text), "not every page is resident");
		ret = -1;
	}
	return ret;
}

static int read_all(struct ibmr_mr *mr, uint64_t length)
{
	static char chunk[CHUNK];
	uint64_t at;
	int ret = 0;

	for (at = 0; at < length && !ret; at += CHUNK)
		ret = ibmr_mr_read(mr, at, chunk, CHUNK, 0, &err);
	return ret;
}

/* The time of the part that counts. */
static int measure(struct ibmr_ctx *ctx, const char *what, void *addr, uint64_t length,
		   uint64_t *ret_ns)
{
	const struct ibmr_mr_spec spec = { .name = "lazy",
					   .mem = IBMR_MEM_CALLER,
					   .addr = addr,
					   .length = length,
					   .access = ACCESS };
	struct ibmr_mr *mr;
	uint64_t start;
	char byte;
	int ret = ibmr_mr_reg(ctx, &spec, &mr, &err);

	if (ret)
		return ret;
	if (!strcmp(what, "again"))
		ret = prefetch(ctx, mr);
	else if (!strcmp(what, "first")) /* what the first request ever costs is not the pages' */
		ret = ibmr_mr_read(mr, 0, &byte, 1, 0, &err);
	start = now_ns();
	if (ret)
		;
	else if (!strcmp(what, "madvise"))
		ret = madvise(addr, length, MADV_POPULATE_WRITE);
	else if (!strcmp(what, "prefetch"))
		ret = prefetch(ctx, mr);
	else
		ret = read_all(mr, length);
	*ret_ns = now_ns() - start;
	ibmr_mr_dereg(mr, NULL);
	return ret;
}

int main(int argc, char **argv)
{
	const struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	uint64_t length = argc == 3 ? strtoull(argv[2], NULL, 10) << 20 : 0, ns = 0;
	struct ibmr_ctx *ctx;
	void *addr;
	int ret;

	if (!length)
		return 2;
	addr = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (addr == MAP_FAILED)
		return 1;
	ret = ibmr_ctx_open(&opts, &ctx, &err);
	if (!ret) {
		ret = measure(ctx, argv[1], addr, length, &ns);
		ibmr_ctx_close(ctx, NULL);
	}
	if (ret)
		fprintf(stderr, "prefetch: %s\n", err.text);
	else
		printf("%llu\n", (unsigned long long)ns);
	return ret ? 1 : 0;
}
