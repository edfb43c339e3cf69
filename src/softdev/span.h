/* SPDX-License-Identifier: BSD-2-Clause */
/* What a list of data segments names: bytes behind keys, or in a work request itself. */
#ifndef SOFTDEV_SPAN_H
#define SOFTDEV_SPAN_H

#include <errno.h>

#include "softdev.h"

struct sd_range {
	const void *flat; /* the bytes themselves; NULL: behind a key */
	uint32_t key;
	uint64_t addr, len;
};

#define SD_RANGES_MAX 72

struct sd_span {
	uint32_t pdn;
	uint32_t access; /* what the keys must allow */
	bool write;
	uint32_t num;
	uint64_t bytes;
	struct sd_range at[SD_RANGES_MAX];
};

void sd_span_init(struct sd_span *s, uint32_t pdn, uint32_t access);
/* false: more ranges, or more bytes in all, than a work request can name */
bool sd_span_add(struct sd_span *s, uint32_t key, uint64_t addr, uint64_t len);
bool sd_span_add_flat(struct sd_span *s, const void *bytes, uint64_t len);

/* The keys allow it, but the memory is not there. */
#define SD_HOLE (-EHWPOISON)

/* Keys, bounds, rights and pages of the first len bytes; on-demand pages are faulted in. 0, SD_HOLE, or
 * what sd_translate says. */
int sd_span_check(const struct sd_span *s, uint64_t len);
/* len bytes from one span to another; both were checked. -EFAULT, -ENOMEM. */
int sd_span_copy(const struct sd_span *dst, const struct sd_span *src, uint64_t len);
/* The first len bytes into a buffer of ours. */
int sd_span_read(const struct sd_span *src, void *buf, uint64_t len);

/* break=wrong_byte: turn the first bit of what was written. */
void sd_span_spoil(const struct sd_span *s);

#endif /* SOFTDEV_SPAN_H */
