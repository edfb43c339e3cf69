/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions, for mr.c and odp.c. */
#ifndef SOFTDEV_MR_H
#define SOFTDEV_MR_H

#include "softdev.h"

struct sd_mr {
	struct sd_obj obj;
	struct sd_pd *pd;
	uint64_t start, length, iova;
	uint32_t access;
	struct sd_mkey *lkey, *rkey; /* the same but with split_keys */
	uint64_t pinned;	     /* bytes, whole pages */
	struct sd_pages *pages;	     /* of an on-demand MR */
	struct sd_mr *next;	     /* of the on-demand MRs of all contexts */
};

#define SD_PAGE_SIZE 4096ull

static inline uint64_t sd_page_down(uint64_t a)
{
	return a & ~(SD_PAGE_SIZE - 1);
}

static inline uint64_t sd_page_up(uint64_t a)
{
	return (a + SD_PAGE_SIZE - 1) & ~(SD_PAGE_SIZE - 1);
}

/* Whether a registration with these rights makes its pages writable. */
static inline bool sd_access_writes(uint32_t access)
{
	return access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			 IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
}

/* Make whole pages present with the right; -EFAULT, -ENOMEM. */
int sd_populate(uint64_t va, uint64_t bytes, bool write);

void sd_odp_add(struct sd_mr *mr);
void sd_odp_remove(struct sd_mr *mr);

/* The on-demand MR with this lkey, or NULL. */
struct sd_mr *sd_odp_find(uint32_t lkey);

/* ibv_advise_mr on part of an on-demand MR, in process addresses. */
int sd_odp_prefetch(struct sd_mr *mr, uint64_t va, uint64_t bytes, uint32_t advice);

#endif /* SOFTDEV_MR_H */
