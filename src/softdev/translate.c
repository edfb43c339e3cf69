/* SPDX-License-Identifier: BSD-2-Clause */
/* From a key and a range to the process memory behind it, with every check a device makes. */
#include <errno.h>
#include <stdlib.h>

#include "choices.h"
#include "mkey.h"

#define REMOTE_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* One level of a translation: what is asked of a key. */
struct ask {
	uint32_t key, pdn;
	uint32_t need;
	enum sd_side side;
	uint32_t depth;
	bool repeated; /* by a key further out */
	uint64_t addr, len;
};

static int piece_add(struct sd_pieces *out, uint8_t *va, uint64_t bytes, struct sd_mkey *leaf)
{
	if (!out)
		return 0;
	if (out->num == out->room) {
		size_t room = out->room ? out->room * 2 : 8;
		struct sd_piece *at;

		if (room > SIZE_MAX / sizeof(*at))
			return -ENOMEM;
		at = realloc(out->at, room * sizeof(*at));
		if (!at)
			return -ENOMEM;
		out->at = at;
		out->room = room;
	}
	out->at[out->num++] = (struct sd_piece){ .va = va, .bytes = bytes, .leaf = leaf };
	return 0;
}

static int walk(struct sd_pieces *out, const struct ask *q);

/* The first entry whose end lies past off. */
static uint32_t find_klm(const struct sd_layout *layout, uint64_t off)
{
	uint32_t lo = 0, hi = layout->num;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (layout->klm[mid].end > off)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

/* Nothing is there, but for break=off_by_one: then the byte behind the last one of the last entry is. */
static int past_the_end(struct sd_pieces *out, const struct sd_layout *layout, struct ask *in,
			uint64_t left)
{
	const struct sd_klm *klm = &layout->klm[layout->num - 1];

	if (!sd_config.break_off_by_one || left != 1)
		return -EFAULT;
	while (klm > layout->klm && !klm->bytes)
		klm--;
	in->key = klm->key;
	in->addr = klm->addr + klm->bytes + (layout->cycles - 1) * klm->stride;
	in->len = 1;
	return walk(out, in);
}

/* [off, off + len) of an indirect key: entry by entry, cycle by cycle. */
static int walk_layout(struct sd_pieces *out, const struct sd_layout *layout, uint64_t off,
		       const struct ask *q)
{
	struct ask in = *q;
	uint64_t cycle_bytes, cycle, within, left = q->len;
	uint32_t i;
	int ret;

	if (!layout || !sd_layout_cycle(layout))
		return -EFAULT;
	cycle_bytes = sd_layout_cycle(layout);
	cycle = off / cycle_bytes;
	within = off % cycle_bytes;
	i = find_klm(layout, within);
	in.need = q->need & ~REMOTE_RIGHTS;
	if (q->need & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
		in.need |= SD_CHOICE_INNER_WRITE_NEEDS;
	in.side = SD_LOCAL_SIDE;
	in.depth = q->depth + 1;
	in.repeated |= layout->repeat;
	while (left) {
		const struct sd_klm *klm = &layout->klm[i];
		uint64_t into;

		if (cycle >= layout->cycles)
			return past_the_end(out, layout, &in, left);
		into = within - (klm->end - klm->bytes);
		in.key = klm->key;
		in.addr = klm->addr + into;
		if (__builtin_add_overflow(in.addr, cycle * klm->stride, &in.addr) ||
		    klm->addr + into < klm->addr)
			return -EFAULT;
		in.len = klm->end - within < left ? klm->end - within : left;
		if (in.len) {
			ret = walk(out, &in);
			if (ret)
				return ret;
		}
		left -= in.len;
		within += in.len;
		if (++i == layout->num) {
			i = 0;
			within = 0;
			cycle++;
		}
	}
	return 0;
}

static bool inside(const struct sd_mkey *mkey, uint64_t addr, uint64_t len)
{
	uint64_t room = mkey->length;
	uint64_t off = addr - mkey->start;

	if (sd_config.break_off_by_one && room != UINT64_MAX)
		room++;
	return addr >= mkey->start && off <= room && len <= room - off;
}

static int walk(struct sd_pieces *out, const struct ask *q)
{
	struct sd_mkey *mkey = sd_mkey_find(q->key);

	if (q->key == SD_NULL_KEY)
		return piece_add(out, NULL, q->len, NULL);
	if (!mkey || mkey->free)
		return -ENOENT;
	if (mkey->side != SD_BOTH_SIDES && mkey->side != q->side)
		return -ENOENT;
	if (mkey->pdn != q->pdn)
		return -EPERM;
	if ((q->need & ~mkey->access) && !sd_config.break_no_rights)
		return -EACCES;
	if (!inside(mkey, q->addr, q->len))
		return -EFAULT;
	/* No fault under a repeat can be served: the handler takes its header for an entry. */
	if (q->repeated && mkey->on_demand)
		return -EOPNOTSUPP;
	switch (mkey->kind) {
	case SD_MKEY_MR:
		return piece_add(out, mkey->va + (q->addr - mkey->start), q->len, mkey);
	case SD_MKEY_IMPLICIT:
		return piece_add(out, (uint8_t *)(uintptr_t)q->addr, q->len, mkey);
	case SD_MKEY_KLM:
		if (q->depth >= sd_config.max_depth)
			return -ELOOP;
		return walk_layout(out, mkey->layout, q->addr - mkey->start, q);
	}
	return -ENOENT;
}

int sd_translate(struct sd_pieces *out, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		 uint32_t access)
{
	struct ask q = {
		.key = key,
		.pdn = pdn,
		.need = access & (IBV_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS),
		.side = access & REMOTE_RIGHTS ? SD_REMOTE_SIDE : SD_LOCAL_SIDE,
		.addr = addr,
		.len = len,
	};

	return walk(out, &q);
}
