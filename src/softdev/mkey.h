/* SPDX-License-Identifier: BSD-2-Clause */
/* What an indirect key holds, and how a UMR replaces it. */
#ifndef SOFTDEV_MKEY_H
#define SOFTDEV_MKEY_H

#include "softdev.h"

/* One entry of a list, or one block of a repeat, in host order. */
struct sd_klm {
	uint64_t addr;
	uint64_t end; /* bytes of the list, or of one cycle, up to and with this entry */
	uint32_t key;
	uint32_t bytes;
	uint32_t stride; /* repeat only */
};

/* Where all entries lie in the one key that they name. */
struct sd_extent {
	bool mixed; /* they name several, or wrap */
	uint64_t lowest, highest;
};
#define SD_EXTENT_NONE               \
	(struct sd_extent)           \
	{                            \
		.lowest = UINT64_MAX \
	}

/* Never changed once made: shared by reference between a key and what is staged for it. */
struct sd_layout {
	unsigned int refs;
	bool repeat;
	uint32_t num, room;
	uint64_t uniform; /* the length of all entries, of the last at most; 0: they differ */
	uint64_t cycles;  /* 1 for a list */
	struct sd_extent extent;
	struct sd_klm klm[];
};

/* What a UMR changes in a key. Staged and made visible by the engine, at once or later. */
struct sd_staged {
	struct sd_mkey *mkey; /* NULL: the key is gone */
	uint32_t key;
	bool free;
	uint32_t access;
	uint64_t start, length;
	struct sd_layout *layout;
};

struct sd_layout *sd_layout_new(uint32_t room); /* empty; NULL: no memory */
struct sd_layout *sd_layout_get(struct sd_layout *layout);
void sd_layout_put(struct sd_layout *layout);
/* Cycles are 2^32 at most, strides 2^16 and lengths 2^31: only an address can make a sum wrap. */
static inline void sd_extent_add(struct sd_extent *e, const struct sd_layout *layout,
				 const struct sd_klm *klm)
{
	uint64_t past = klm->addr + (layout->cycles - 1) * klm->stride + klm->bytes;

	if (!klm->bytes)
		return;
	e->mixed |= klm->key != layout->klm[0].key || past < klm->addr;
	e->lowest = klm->addr < e->lowest ? klm->addr : e->lowest;
	e->highest = past > e->highest ? past : e->highest;
}

/* All entries are there. */
void sd_layout_seal(struct sd_layout *layout);
/* Bytes of one cycle. */
uint64_t sd_layout_cycle(const struct sd_layout *layout);

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
