/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A layout as the bytes of a UMR work request. Pure. Sources: mlx5dv.h's segments, and what
 * libmlx5's own typed calls write.
 *
 *   control (16) | UMR control (48) | key context (64) | table entries, in fours    inline
 *                                                      | one data segment (16)      list memory
 */
#include "private.h"

#include <endian.h>
#include <string.h>

#define HEAD_BYTES                                                                            \
	((uint32_t)(sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_umr_ctrl_seg) + \
		    sizeof(struct mlx5_wqe_mkey_context_seg)))
#define OPCODE_UMR 0x25
#define OP_REPEAT  0x400 /* in the place of a first entry's key: a repeat's header */

#define MASK_RIGHTS                                        \
	(MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE |  \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |  \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC)

struct head {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_umr_ctrl_seg umr;
	struct mlx5_wqe_mkey_context_seg key;
};
_Static_assert(sizeof(struct head) == 128, "the segments follow each other without gaps");
_Static_assert(sizeof(struct mlx5_wqe_umr_klm_seg) == IBMRI_KLM_BYTES &&
		       sizeof(struct mlx5_wqe_umr_repeat_ent_seg) == IBMRI_KLM_BYTES &&
		       sizeof(struct mlx5_wqe_umr_repeat_block_seg) == IBMRI_KLM_BYTES,
	       "a table entry is one octoword");

static uint64_t round4(uint64_t n)
{
	return (n + 3) & ~(uint64_t)3;
}

uint64_t ibmri_umr_table_bytes(const struct ibmri_layout *l)
{
	return round4(ibmri_layout_table(l)) * IBMRI_KLM_BYTES;
}

uint32_t ibmri_umr_inline_bytes(uint32_t klms)
{
	return HEAD_BYTES + klms * IBMRI_KLM_BYTES;
}

uint32_t ibmri_umr_inline_klms(uint32_t wqe_bytes)
{
	if (wqe_bytes > IBMRI_MAX_WQE)
		wqe_bytes = IBMRI_MAX_WQE;
	if (wqe_bytes < HEAD_BYTES)
		return 0;
	return (wqe_bytes - HEAD_BYTES) / IBMRI_KLM_BYTES & ~3u;
}

static void put_list(const struct ibmri_layout *l, struct mlx5_wqe_umr_klm_seg *klm)
{
	const struct ibmr_mr *mr = NULL;
	uint64_t i, base = 0;
	uint32_t key = 0;

	for (i = 0; i < l->num; i++) {
		const struct ibmri_entry *e = &l->entries[i];

		if (e->mr != mr) {
			mr = e->mr;
			base = mr->base;
			key = htobe32(mr->lkey);
		}
		klm[i].byte_count = htobe32((uint32_t)e->length);
		klm[i].mkey = key;
		klm[i].address = htobe64(base + e->offset);
	}
}

static void put_repeat(const struct ibmri_layout *l, struct mlx5_wqe_umr_repeat_block_seg *head)
{
	struct mlx5_wqe_umr_repeat_ent_seg *ent = head->entries;
	uint64_t i;

	head->byte_count = htobe32((uint32_t)l->cycle);
	head->op = htobe32(OP_REPEAT);
	head->repeat_count = htobe32((uint32_t)l->count);
	head->reserved = 0;
	head->num_ent = htobe16((uint16_t)l->num);
	for (i = 0; i < l->num; i++) {
		const struct ibmri_entry *e = &l->entries[i];

		ent[i].stride = htobe16((uint16_t)e->stride);
		ent[i].byte_count = htobe16((uint16_t)e->length);
		ent[i].memkey = htobe32(e->mr->lkey);
		ent[i].va = htobe64(e->mr->base + e->offset);
	}
}

void ibmri_umr_table(const struct ibmri_layout *l, void *dst)
{
	uint64_t used = ibmri_layout_table(l) * IBMRI_KLM_BYTES;

	if (l->kind == IBMR_LAYOUT_LIST)
		put_list(l, dst);
	else
		put_repeat(l, dst);
	memset((uint8_t *)dst + used, 0, ibmri_umr_table_bytes(l) - used);
}

static uint8_t wire_access(uint64_t access)
{
	uint8_t bits = 0;

	if (access & IBMR_ACCESS_LOCAL_WRITE)
		bits |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE;
	if (access & IBMR_ACCESS_REMOTE_WRITE)
		bits |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE;
	if (access & IBMR_ACCESS_REMOTE_READ)
		bits |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ;
	if (access & IBMR_ACCESS_REMOTE_ATOMIC)
		bits |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC;
	return bits;
}

/* Control, UMR control and key context of a request that names key; libmlx5 sets the index. */
static void put_head(struct head *h, uint32_t key, uint32_t qpn, uint32_t bytes, uint64_t mask)
{
	memset(h, 0, sizeof(*h));
	h->ctrl.opmod_idx_opcode = htobe32(OPCODE_UMR);
	h->ctrl.qpn_ds = htobe32(qpn << 8 | bytes / 16);
	h->ctrl.fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE;
	h->ctrl.imm = htobe32(key);
	/* FREE and the key's tag byte (which stays as it is) go with every change, as libmlx5 does
	 * it */
	mask |= MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY;
	h->umr.mkey_mask = htobe64(mask);
	h->key.qpn_mkey = htobe32(0xffffff00 | (key & 0xff));
}

uint32_t ibmri_umr_fill(void *wqe, const struct ibmri_layout *l, uint32_t key, uint32_t qpn,
			const struct ibmri_umr_list *list)
{
	uint64_t table = ibmri_umr_table_bytes(l);
	struct head *h = wqe;
	uint32_t bytes;

	if (!list && table > IBMRI_MAX_WQE - HEAD_BYTES)
		return 0;
	bytes = HEAD_BYTES + (list ? (uint32_t)sizeof(struct mlx5_wqe_data_seg) : (uint32_t)table);
	put_head(h, key, qpn, bytes,
		 MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR |
			 MASK_RIGHTS);
	h->umr.klm_octowords = htobe16((uint16_t)(table / IBMRI_KLM_BYTES));
	h->key.access_flags = wire_access(l->access);
	h->key.start_addr = htobe64(l->base);
	h->key.len = htobe64(l->total);
	if (list) {
		struct mlx5_wqe_data_seg *seg = (struct mlx5_wqe_data_seg *)(h + 1);

		seg->byte_count = htobe32((uint32_t)table);
		seg->lkey = htobe32(list->lkey);
		seg->addr = htobe64(list->addr);
	} else {
		h->umr.flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
		ibmri_umr_table(l, h + 1);
	}
	return bytes;
}

uint32_t ibmri_umr_invalidate(void *wqe, uint32_t key, uint32_t qpn)
{
	struct head *h = wqe;

	put_head(h, key, qpn, HEAD_BYTES, MASK_RIGHTS);
	h->umr.flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
	h->key.free = MLX5_WQE_MKEY_CONTEXT_FREE;
	return HEAD_BYTES;
}
