/* SPDX-License-Identifier: BSD-2-Clause */
/* What an indirect key holds, and how a UMR replaces it. */
#ifndef SOFTDEV_MKEY_H
#define SOFTDEV_MKEY_H

#include <endian.h>

#include "softdev.h"

/* One entry of a list, or one block of a repeat, as it came. */
union sd_octoword {
	struct mlx5_wqe_umr_klm_seg klm;
	struct mlx5_wqe_umr_repeat_ent_seg block;
};
_Static_assert(sizeof(union sd_octoword) == 16, "an octoword");

/* The same in host order. */
struct sd_klm {
	uint64_t addr;
	uint32_t key;
	uint32_t bytes;
	uint32_t stride; /* repeat only */
};

/* Where all entries lie in the one key that they name. */
struct sd_extent {
	bool mixed; /* they name several, or wrap */
	uint64_t lowest, highest;
};

/* In the place of a first entry's key: a repeat's header. */
#define SD_REPEAT_MARK 0x400
#define SD_ENDS_STEP   16

/* Never changed once made: shared by reference between a key and what is staged for it. */
struct sd_layout {
	unsigned int refs;
	bool repeat;
	uint32_t num, room;
	uint64_t uniform; /* the length of all entries, of the last at most; 0: they differ */
	uint64_t cycles;  /* 1 for a list */
	uint64_t cycle;	  /* bytes of the list, or of one cycle */
	struct sd_extent extent;
	uint64_t *ends; /* bytes up to and with every SD_ENDS_STEP-th entry */
	union sd_octoword table[];
};

struct sd_layout *sd_layout_new(uint32_t room); /* empty; NULL: no memory */
struct sd_layout *sd_layout_get(struct sd_layout *layout);
void sd_layout_put(struct sd_layout *layout);
/* All entries are there: what is to be known of them. -EINVAL: no device would have them. */
int sd_layout_index(struct sd_layout *layout);
/* Which entry the byte is in, of a cycle that has it, and how far into it. */
uint32_t sd_layout_find(const struct sd_layout *layout, uint64_t off, uint64_t *ret_into);

/* repeat is that of the layout: known when compiled where a loop is over many. */
static inline struct sd_klm sd_klm_of(const union sd_octoword *o, bool repeat)
{
	return repeat ? (struct sd_klm){ .addr = be64toh(o->block.va),
					 .key = be32toh(o->block.memkey),
					 .bytes = be16toh(o->block.byte_count),
					 .stride = be16toh(o->block.stride) }
		      : (struct sd_klm){ .addr = be64toh(o->klm.address),
					 .key = be32toh(o->klm.mkey),
					 .bytes = be32toh(o->klm.byte_count) };
}

static inline struct sd_klm sd_layout_klm(const struct sd_layout *layout, uint32_t i)
{
	return sd_klm_of(&layout->table[i], layout->repeat);
}

/* What a UMR changes in a key. Staged and made visible by the engine, at once or later. */
struct sd_staged {
	struct sd_mkey *mkey; /* NULL: the key is gone */
	uint32_t key;
	bool free;
	uint32_t access;
	uint64_t start, length;
	struct sd_layout *layout;
};

/* A copy of what the newest UMR made of the key. NULL: no memory. */
struct sd_staged *sd_staged_new(struct sd_mkey *mkey);
/* It is now what the next UMR starts from. */
void sd_staged_post(struct sd_staged *st);
/* It is seen from now on; frees st. */
void sd_staged_apply(struct sd_staged *st);
void sd_staged_free(struct sd_staged *st);

/* The access bits of a key's context as IBV_ACCESS_*. */
uint32_t sd_mkc_access(uint8_t flags);

/* The key a UMR names, by its newest tag. */
struct sd_mkey *sd_mkey_find_newest(uint32_t key);

#endif /* SOFTDEV_MKEY_H */
