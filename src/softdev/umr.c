/* SPDX-License-Identifier: BSD-2-Clause */
/* UMR: a work request that changes what a key is. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "queue.h"
#include "soft0.h"

#define WALK_DEPTH 64
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
		if (leads_to_on_demand(sd_layout_klm(mkey->layout, i).key, walk, depth + 1))
			return true;
	return false;
}

/* A table that begins with a repeat's header. */
static int index_repeat(struct sd_layout *layout)
{
	static uint64_t walk;
	struct mlx5_wqe_umr_repeat_block_seg head;
	uint32_t num;
	int ret;

	memcpy(&head, layout->table, sizeof(head));
	num = be16toh(head.num_ent);
	if (!num || num >= layout->num || !head.repeat_count)
		return -EINVAL;
	memmove(layout->table, layout->table + 1, num * sizeof(layout->table[0]));
	layout->num = num;
	layout->repeat = true;
	layout->cycles = be32toh(head.repeat_count);
	ret = sd_layout_index(layout);
	walk++;
	for (uint32_t i = 0; i < num && !ret; i++)
		if (leads_to_on_demand(sd_layout_klm(layout, i).key, walk, 0))
			ret = -EINVAL;
	return !ret && layout->cycle == be32toh(head.byte_count) ? 0 : -EINVAL;
}

/* Octowords from the list in the work request, or in memory that its one data segment names. */
static int read_list(struct sd_qp *qp, const struct sd_wqe *w, bool in_line,
		     union sd_octoword *table, uint32_t octowords)
{
	size_t bytes = (size_t)octowords * sizeof(*table);
	const struct mlx5_wqe_data_seg *seg = (const void *)(w->b + LIST_OFFSET);
	struct sd_span span;
	int ret;

	if (in_line) {
		if (w->bytes < LIST_OFFSET + bytes)
			return -EINVAL;
		memcpy(table, w->b + LIST_OFFSET, bytes);
		return 0;
	}
	if (w->bytes < LIST_OFFSET + sizeof(*seg) || be32toh(seg->byte_count) < bytes ||
	    be64toh(seg->addr) % SD_CHOICE_UMR_LIST_ALIGN)
		return -EINVAL;
	sd_span_init(&span, qp->pd->pdn, 0);
	sd_span_add(&span, be32toh(seg->lkey), be64toh(seg->addr), bytes);
	ret = sd_span_check(&span, bytes);
	return ret ? ret : sd_span_read(&span, table, bytes);
}

/* Room for the new entries; in front of them and behind, with an offset, those of the old table stay. */
static struct sd_layout *new_table(const struct sd_layout *old, uint32_t octowords, uint32_t offset)
{
	uint32_t num = offset + octowords, old_num = offset && old ? old->num : 0;
	struct sd_layout *layout = sd_layout_new(old_num > num ? old_num : num);

	if (!layout)
		return NULL;
	layout->num = old_num > num ? old_num : num;
	if (offset > old_num)
		memset(layout->table + old_num, 0, (offset - old_num) * sizeof(old->table[0]));
	if (old_num)
		memcpy(layout->table, old->table, old_num * sizeof(old->table[0]));
	return layout;
}

static int read_table(struct sd_qp *qp, const struct sd_wqe *w, bool in_line, uint32_t octowords,
		      uint32_t offset, struct sd_staged *st)
{
	struct sd_layout *fresh;
	int ret;

	if (offset && st->layout && st->layout->repeat)
		return -EINVAL;
	fresh = new_table(st->layout, octowords, offset);
	if (!fresh)
		return -ENOMEM;
	ret = read_list(qp, w, in_line, fresh->table + offset, octowords);
	if (!ret && !offset && be32toh(fresh->table[0].klm.mkey) == SD_REPEAT_MARK)
		ret = index_repeat(fresh);
	else if (!ret)
		ret = sd_layout_index(fresh);
	if (ret || (sd_config.break_stale_layout && st->layout)) {
		sd_layout_put(fresh);
		return ret;
	}
	sd_layout_put(st->layout);
	st->layout = fresh;
	return 0;
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
