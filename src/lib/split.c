/* SPDX-License-Identifier: BSD-2-Clause */
/* Layouts that one table cannot say: long entries divided, repeats unrolled. Pure. */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define ORIGIN	  "ibmr_mr_fill"
#define CUT_ALIGN UINT64_C(4096)

static uint64_t limit_or(uint64_t reported, uint64_t wire)
{
	return reported && reported < wire ? reported : wire;
}

uint64_t ibmri_max_entry(const struct ibmr_ctx *ctx)
{
	return limit_or(ctx->caps.max_entry, IBMRI_MAX_ENTRY);
}

uint64_t ibmri_max_stride(const struct ibmr_ctx *ctx)
{
	return limit_or(ctx->caps.max_stride, IBMRI_MAX_STRIDE);
}

uint64_t ibmri_cut_length(uint64_t addr, uint64_t length, uint64_t most)
{
	uint64_t align = most >= 2 * CUT_ALIGN ? CUT_ALIGN : most >= 16 ? 8 : 1;

	return length <= most ? length : most - (addr + most) % align;
}

/* A part is more than half of the most. */
uint64_t ibmri_cut_parts(uint64_t length, uint64_t most)
{
	return length <= most ? 1 : length / (most / 2 + 1) + 1;
}

/* Entries longer than one carries, in as many as it takes. */
static int divide(struct ibmri_layout *l, uint64_t most, struct ibmr_err *err)
{
	struct ibmri_entry *whole = l->entries, *parts;
	uint64_t num = 0, at, n, i;

	for (i = 0; i < l->num; i++)
		num += ibmri_cut_parts(whole[i].length, most);
	if (num == l->num)
		return 0;
	if (num > IBMRI_MAX_PIECES)
		return ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				    "entries of %" PRIu64 " bytes in all, %" PRIu64
				    " bytes each at most, are more than the %u that one MR takes",
				    l->total, most, IBMRI_MAX_PIECES);
	parts = malloc(num * sizeof(*parts));
	if (!parts)
		return ibmri_no_memory(err, ORIGIN, num * sizeof(*parts));
	num = 0;
	for (i = 0; i < l->num; i++) {
		uint64_t start = whole[i].end - whole[i].length;

		for (at = 0; at < whole[i].length; at += n) {
			n = ibmri_cut_length(l->base + start + at, whole[i].length - at, most);
			parts[num++] = (struct ibmri_entry){ .mr = whole[i].mr,
							     .offset = whole[i].offset + at,
							     .length = n,
							     .end = start + at + n };
		}
	}
	free(whole);
	l->entries = parts;
	l->num = l->room = num;
	return 0;
}

/* What no repeat block can say. */
static bool is_too_wide(const struct ibmr_mr *mr, const struct ibmri_layout *l)
{
	uint64_t most = ibmri_max_stride(mr->ctx), i;

	for (i = 0; i < l->num; i++)
		if (l->entries[i].length > most || l->entries[i].stride > most)
			return true;
	return l->num + 1 > mr->table;
}

/* A repeat that one key cannot hold, as the list of all its pieces. */
static int unroll(struct ibmri_layout *l, struct ibmr_err *err)
{
	struct ibmri_entry *blocks = l->entries, *pieces, *e;
	uint64_t num, c, i, end = 0;

	if (l->count > IBMRI_MAX_PIECES / l->num)
		return ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				    "%" PRIu64 " cycles of %" PRIu64 " blocks are more than the %u "
				    "entries that a tree of keys may have",
				    l->count, l->num, IBMRI_MAX_PIECES);
	num = l->count * l->num;
	pieces = malloc(num * sizeof(*pieces));
	if (!pieces)
		return ibmri_no_memory(err, ORIGIN, num * sizeof(*pieces));
	for (c = 0, e = pieces; c < l->count; c++) {
		for (i = 0; i < l->num; i++, e++) {
			end += blocks[i].length;
			*e = (struct ibmri_entry){ .mr = blocks[i].mr,
						   .offset =
							   blocks[i].offset + c * blocks[i].stride,
						   .length = blocks[i].length,
						   .end = end };
		}
	}
	free(blocks);
	l->kind = IBMR_LAYOUT_LIST;
	l->entries = pieces;
	l->num = l->room = num;
	l->count = 1;
	l->cycle = l->total;
	return 0;
}

int ibmri_layout_split(const struct ibmr_mr *mr, struct ibmri_layout *l, struct ibmr_err *err)
{
	int ret = 0;

	if (l->kind == IBMR_LAYOUT_REPEAT && is_too_wide(mr, l))
		ret = unroll(l, err);
	l->split = l->kind == IBMR_LAYOUT_LIST;
	if (!ret && l->split)
		ret = divide(l, ibmri_max_entry(mr->ctx), err);
	return ret;
}
