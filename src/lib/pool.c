/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory of the library's own: KLM lists for the device to read, and staging for data.
 */
#include "private.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Powers of two of pages, so that a growing need moves the pool seldom, and aligned by the page,
 * which is more than the 2048 bytes that the device asks for. */
static uint64_t pool_size(uint64_t bytes)
{
	uint64_t size = ibmri_page_size();

	while (size < bytes)
		size *= 2;
	return size;
}

int ibmri_pool_need(struct ibmr_ctx *ctx, struct ibmri_pool *pool, uint64_t bytes, const char *what,
		    struct ibmr_err *err)
{
	struct ibmri_pool bigger = { .size = pool_size(bytes) };
	int ret;

	if (bytes <= pool->size)
		return 0;
	ret = ibmri_pool_close(ctx, pool, err);
	if (ret)
		return ret;
	if (!ctx->dry) {
		bigger.buf = mmap(NULL, bigger.size, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (bigger.buf == MAP_FAILED)
			return ibmri_map_failed(what, bigger.size, errno, err);
		errno = 0;
		bigger.mr = ibv_reg_mr(ctx->pd, bigger.buf, bigger.size, IBV_ACCESS_LOCAL_WRITE);
		if (!bigger.mr) {
			ret = ibmri_reg_failed(ctx, what, bigger.buf, bigger.size,
					       IBMR_ACCESS_LOCAL_WRITE, errno, err);
			munmap(bigger.buf, bigger.size);
			return ret;
		}
	}
	*pool = bigger;
	ctx->locked_bytes += bigger.size;
	return 0;
}

int ibmri_pool_close(struct ibmr_ctx *ctx, struct ibmri_pool *pool, struct ibmr_err *err)
{
	int ret;

	if (pool->mr) {
		ret = ibmri_let_go(ctx, ibv_dereg_mr(pool->mr));
		if (ret)
			return ibmri_failed(
				err, ibmri_code_of(ret), "ibv_dereg_mr", ret,
				"memory of the library's own cannot be deregistered: %s",
				strerror(ret));
		munmap(pool->buf, pool->size);
	}
	ctx->locked_bytes -= pool->size;
	memset(pool, 0, sizeof(*pool));
	return 0;
}
