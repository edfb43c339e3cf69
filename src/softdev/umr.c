/* SPDX-License-Identifier: BSD-2-Clause */
/* UMR: a work request that changes what a key is. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "queue.h"
#include "soft0.h"

#define REPEAT_MARK 0x400
#define WALK_DEPTH  64
#define LIST_OFFSET                                                                \
	(sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_umr_ctrl_seg) + \
	 sizeof(struct mlx5_wqe_mkey_context_seg))

#define ACCESS_MASK                                        \
	(MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE |  \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |  \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC)
#define KNOWN_MASK                                                                  \
	(MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR | \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY | MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN |       \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | ACCESS_MASK)
#define KNOWN_FLAGS                                                          \
	(MLX5_WQE_UMR_CTRL_FLAG_INLINE | MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE | \
	 MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET | MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN)

/* Does a key lead to on-demand memory? A key that this walk has met is not asked again: keys may share
 * members, and go in circles. What is deeper than any device follows shows when it is used. */
static bool leads_to_on_demand(uint32_t key, uint64_t walk, uint32_t depth)
{
	struct sd_mkey *mkey = sd_mkey_find(key);

	if (!mkey || mkey->walk == walk || depth > WALK_DEPTH)
		return false;
	mkey->walk = walk;
	if (mkey->kind != SD_MKEY_KLM)
		return mkey->on_demand;
	for (uint32_t i = 0; mkey->layout && i < mkey->layout->num; i++)
		if (leads_to_on_demand(mkey->layout->klm[i].key, walk, depth + 1))
			return true;
	return false;
}

static bool add_klm(struct sd_layout *layout, struct sd_klm klm)
{
	uint64_t end = sd_layout_cycle(layout);

	if (__builtin_add_overflow(end, klm.bytes, &klm.end))
		return false;
	layout->klm[layout->num++] = klm;
	sd_extent_add(&layout->extent, layout, &klm);
	return true;
}

static int parse_repeat(const struct mlx5_wqe_umr_repeat_block_seg *head, uint32_t octowords,
			struct sd_layout *layout)
{
	static uint64_t walk;
	uint32_t num = be16toh(head->num_ent);

	if (!num || num >= octowords || !head->repeat_count)
		return -EINVAL;
	walk++;
	layout->repeat = true;
	layout->cycles = be32toh(head->repeat_count);
	for (uint32_t i = 0; i < num; i++) {
		const struct mlx5_wqe_umr_repeat_ent_seg *e = &head->entries[i];
		struct sd_klm klm = {
			.addr = be64toh(e->va),
			.key = be32toh(e->memkey),
			.bytes = be16toh(e->byte_count),
			.stride = be16toh(e->stride),
		};

		if (!add_klm(layout, klm) || leads_to_on_demand(klm.key, walk, 0))
			return -EINVAL;
	}
	return sd_layout_cycle(layout) == be32toh(head->byte_count) ? 0 : -EINVAL;
}

static int parse_list(const struct mlx5_wqe_umr_klm_seg *seg, uint32_t octowords,
		      struct sd_layout *layout)
{
	struct sd_extent extent = SD_EXTENT_NONE;
	uint64_t end = 0; /* of 2^16 times 2^31 bytes at most */

	for (uint32_t i = 0; i < octowords; i++) {
		uint32_t bytes = be32toh(seg[i].byte_count), key = be32toh(seg[i].mkey);
		uint64_t addr = be64toh(seg[i].address);

		if (bytes > INT32_MAX || key == REPEAT_MARK)
			return -EINVAL;
		end += bytes;
		layout->klm[i] =
			(struct sd_klm){ .addr = addr, .end = end, .key = key, .bytes = bytes };
		sd_extent_add(&extent, layout, &layout->klm[i]);
	}
	layout->num = octowords;
	layout->extent = extent;
	return 0;
}

/* With an offset, entries of the old table in front of and behind the new ones stay. */
static int splice(struct sd_layout *to, const struct sd_layout *old, const struct sd_layout *fresh,
		  uint32_t offset)
{
	uint32_t old_num = old ? old->num : 0;

	if (fresh->repeat || (old && old->repeat))
		return -EINVAL;
	for (uint32_t i = 0; i < offset + fresh->num || i < old_num; i++) {
		struct sd_klm klm = { 0 };

		if (i >= offset && i < offset + fresh->num)
			klm = fresh->klm[i - offset];
		else if (i < old_num)
			klm = old->klm[i];
		if (!add_klm(to, klm))
			return -EINVAL;
	}
	return 0;
}

static int parse(const void *table, uint32_t octowords, uint32_t offset, struct sd_staged *st)
{
	const struct mlx5_wqe_umr_klm_seg *first = table;
	struct sd_layout *fresh, *whole;
	uint32_t room;
	int ret;

	fresh = sd_layout_new(octowords);
	if (!fresh)
		return -ENOMEM;
	if (be32toh(first->mkey) == REPEAT_MARK)
		ret = parse_repeat(table, octowords, fresh);
	else
		ret = parse_list(table, octowords, fresh);
	if (!ret && offset) {
		room = st->layout && st->layout->num > offset + octowords ? st->layout->num
									  : offset + octowords;
		whole = sd_layout_new(room);
		if (whole) {
			ret = splice(whole, st->layout, fresh, offset);
		} else {
			ret = -ENOMEM;
		}
		sd_layout_put(fresh);
		fresh = whole;
	}
	if (ret) {
		sd_layout_put(fresh);
		return ret;
	}
	if (sd_config.break_stale_layout && st->layout) {
		sd_layout_put(fresh);
		return 0;
	}
	sd_layout_seal(fresh);
	sd_layout_put(st->layout);
	st->layout = fresh;
	return 0;
}

/* Under sd_lock: a copy of the newest list, at most 1 MiB, kept for the next one. */
static struct {
	void *copy;
	size_t room;
} list;

static bool list_room(size_t bytes)
{
	void *copy;

	if (bytes <= list.room)
		return true;
	copy = realloc(list.copy, bytes);
	if (!copy)
		return false;
	list.copy = copy;
	list.room = bytes;
	return true;
}

/* The list in the work request, or in memory that its one data segment names. */
static int read_table(struct sd_qp *qp, const struct sd_wqe *w, bool in_line, uint32_t octowords,
		      uint32_t offset, struct sd_staged *st)
{
	size_t bytes = (size_t)octowords * 16;
	const struct mlx5_wqe_data_seg *seg = (const void *)(w->b + LIST_OFFSET);
	struct sd_span span;
	int ret;

	if (in_line) {
		if (w->bytes < LIST_OFFSET + bytes)
			return -EINVAL;
		return parse(w->b + LIST_OFFSET, octowords, offset, st);
	}
	if (w->bytes < LIST_OFFSET + sizeof(*seg) || be32toh(seg->byte_count) < bytes ||
	    be64toh(seg->addr) % SD_CHOICE_UMR_LIST_ALIGN)
		return -EINVAL;
	if (!list_room(bytes))
		return -ENOMEM;
	sd_span_init(&span, qp->pd->pdn, 0);
	sd_span_add(&span, be32toh(seg->lkey), be64toh(seg->addr), bytes);
	ret = sd_span_check(&span, bytes);
	if (!ret)
		ret = sd_span_read(&span, list.copy, bytes);
	return ret ? ret : parse(list.copy, octowords, offset, st);
}

/* The fields of the key's context that the mask names, and no other. */
static void merge(struct sd_staged *st, const struct mlx5_wqe_mkey_context_seg *mkc, uint64_t mask)
{
	static const struct {
		uint64_t bit;
		uint32_t access;
	} rights[] = {
		{ MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE },
		{ MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ },
		{ MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE },
		{ MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC },
	};
	uint32_t access = sd_mkc_access(mkc->access_flags);

	for (size_t i = 0; i < sizeof(rights) / sizeof(rights[0]); i++)
		if (mask & rights[i].bit)
			st->access = (st->access & ~rights[i].access) | (access & rights[i].access);
	if (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN)
		st->length = be64toh(mkc->len);
	if (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR)
		st->start = be64toh(mkc->start_addr);
	if (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY)
		st->key = (st->key & ~0xffu) | (be32toh(mkc->qpn_mkey) & 0xff);
	if (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE)
		st->free = mkc->free & MLX5_WQE_MKEY_CONTEXT_FREE;
}

static bool form_ok(const struct sd_mkey *mkey, const struct mlx5_wqe_umr_ctrl_seg *umr,
		    const struct mlx5_wqe_mkey_context_seg *mkc)
{
	uint64_t mask = be64toh(umr->mkey_mask);
	uint32_t octowords = be16toh(umr->klm_octowords), offset = 0;

	if ((umr->flags & ~KNOWN_FLAGS) || (mask & ~(uint64_t)KNOWN_MASK))
		return false;
	if (umr->flags & MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET)
		offset = be16toh(umr->translation_offset);
	else if (umr->bsf_octowords)
		return false;
	/* Bound to one queue pair: not offered. */
	if ((mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN) && be32toh(mkc->qpn_mkey) >> 8 != 0xffffff)
		return false;
	return octowords % 4 == 0 && offset % 4 == 0 && octowords + offset <= mkey->octowords;
}

static void remember(const struct sd_wqe *w);

uint8_t sd_umr(struct sd_qp *qp, const struct sd_wqe *w, struct sd_staged **ret_st)
{
	const struct mlx5_wqe_umr_ctrl_seg *umr = (const void *)(w->b + 16);
	const struct mlx5_wqe_mkey_context_seg *mkc = (const void *)(w->b + 64);
	struct sd_mkey *mkey = sd_mkey_find_newest(w->imm);
	struct sd_staged *st;
	uint32_t octowords, offset = 0;
	int ret = 0;

	remember(w);
	if (w->bytes < LIST_OFFSET || !mkey || mkey->kind != SD_MKEY_KLM || !mkey->umr_en ||
	    mkey->pdn != qp->pd->pdn || !form_ok(mkey, umr, mkc))
		return SD_CHOICE_UMR_SYNDROME;
	st = sd_staged_new(mkey);
	if (!st)
		return SD_CHOICE_UMR_SYNDROME;
	if ((umr->flags & MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE) && !st->free)
		ret = -EINVAL;
	octowords = be16toh(umr->klm_octowords);
	if (umr->flags & MLX5_WQE_UMR_CTRL_FLAG_TRNSLATION_OFFSET)
		offset = be16toh(umr->translation_offset);
	if (!ret && octowords)
		ret = read_table(qp, w, umr->flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE, octowords,
				 offset, st);
	if (ret) {
		sd_layout_put(st->layout);
		free(st);
		return SD_CHOICE_UMR_SYNDROME;
	}
	merge(st, mkc, be64toh(umr->mkey_mask));
	*ret_st = st;
	return 0;
}

bool sd_invalidate(struct sd_qp *qp, uint32_t key)
{
	struct sd_mkey *mkey = sd_mkey_find(key);

	if (!mkey || mkey->kind != SD_MKEY_KLM || !mkey->umr_en || mkey->free ||
	    mkey->pdn != qp->pd->pdn)
		return false;
	mkey->free = true;
	return true;
}

/* ---- for tests that compare encodings ---------------------------------------------- */

static struct {
	uint32_t bytes;
	uint8_t b[SD_WQE_MAX];
} last;

static void remember(const struct sd_wqe *w)
{
	last.bytes = w->bytes;
	memcpy(last.b, w->b, w->bytes);
}

uint32_t soft0_last_umr(void *buf, uint32_t size)
{
	uint32_t bytes;

	sd_lock();
	bytes = last.bytes;
	memcpy(buf, last.b, size < bytes ? size : bytes);
	sd_unlock();
	return bytes;
}
