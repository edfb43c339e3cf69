/* SPDX-License-Identifier: BSD-2-Clause */
/* From a key and a range to the process memory behind it, with every check a device makes. */
#include <errno.h>

#include "choices.h"
#include "mkey.h"
#include "span.h"

#define REMOTE_RIGHTS (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* One level of a translation: what is asked of a key. */
struct ask {
	uint32_t key, pdn;
	uint32_t need;
	bool write;
	enum sd_side side;
	uint32_t depth;
	bool repeated; /* by a key further out */
	uint64_t addr, len;
};

/* Room for no more pieces: no error, but the end of this walk. */
#define FULL 1

static int walk(struct sd_pieces *out, const struct ask *q);

static int piece_add(struct sd_pieces *out, uint8_t *va, uint64_t bytes)
{
	if (!out)
		return 0;
	if (out->num == out->room)
		return FULL;
	out->at[out->num++] = (struct sd_piece){ .va = va, .bytes = bytes };
	out->bytes += bytes;
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

/* A range of an ordinary MR, whose rights were found good. Without a list of pieces it is looked at: an
 * on-demand page that is missing is brought in. */
static int leaf_piece(struct sd_pieces *out, struct sd_mkey *mkey, const struct ask *q,
		      uint64_t addr, uint64_t len)
{
	uint8_t *va = mkey->va + (addr - mkey->start);

	if (!inside(mkey, addr, len))
		return -EFAULT;
	if (!out && mkey->on_demand && sd_odp_access(mkey, va, len, q->write))
		return SD_HOLE;
	return piece_add(out, va, len);
}

/* The MR behind a key that a walk has just gone through, for entries that name it again. */
static struct sd_mkey *leaf_of(uint32_t key)
{
	struct sd_mkey *mkey = sd_mkey_find(key);

	return mkey && mkey->kind == SD_MKEY_MR ? mkey : NULL;
}

/* Nothing is there, but for break=off_by_one: then the byte behind the last one of the last entry is. */
static int past_the_end(struct sd_pieces *out, const struct sd_layout *layout, struct ask *in,
			uint64_t left)
{
	uint32_t i = layout->num - 1;
	struct sd_klm klm;

	if (!sd_config.break_off_by_one || left != 1)
		return -EFAULT;
	for (klm = sd_layout_klm(layout, i); i && !klm.bytes;)
		klm = sd_layout_klm(layout, --i);
	in->key = klm.key;
	in->addr = klm.addr + klm.bytes + (layout->cycles - 1) * klm.stride;
	in->len = 1;
	return walk(out, in);
}

/* The one MR whose memory all entries name and all of which is good, so that none needs a look; NULL:
 * there is no such. An on-demand page does need one. */
static struct sd_mkey *good_leaf(const struct sd_layout *layout, uint64_t off, const struct ask *q)
{
	uint32_t key = sd_layout_klm(layout, 0).key;
	struct sd_mkey *leaf = !layout->extent.mixed ? leaf_of(key) : NULL;
	struct ask in = *q;
	uint64_t total;

	if (!leaf || leaf->on_demand ||
	    __builtin_mul_overflow(layout->cycle, layout->cycles, &total) || off > total ||
	    q->len > total - off)
		return NULL;
	in.key = key;
	in.addr = layout->extent.lowest;
	in.len = layout->extent.highest - layout->extent.lowest;
	return walk(NULL, &in) ? NULL : leaf;
}

/* Where a walk through a layout stands. */
struct cursor {
	const struct sd_layout *layout;
	uint64_t cycle;
	uint64_t into; /* bytes of the next entry that are behind us */
	uint32_t i;
	uint64_t left;
};

static void add_good(struct sd_pieces *out, struct cursor *c, uint64_t va, uint64_t bytes)
{
	out->at[out->num] = (struct sd_piece){ .va = (uint8_t *)(uintptr_t)va, .bytes = bytes };
	out->num += bytes != 0;
	out->bytes += bytes;
	c->left -= bytes;
	c->into = 0;
}

/* Whole entries, none of them empty: as many as follow, and are wanted, and there is room for. */
static inline __attribute__((always_inline)) void
whole_entries(struct sd_pieces *out, struct cursor *c, uint64_t shift, bool repeat)
{
	const union sd_octoword *from = c->layout->table + c->i;
	struct sd_piece *at = out->at + out->num;
	size_t n = out->room - out->num, k;
	uint64_t left = c->left;

	if (n > c->layout->num - c->i)
		n = c->layout->num - c->i;
	for (k = 0; k < n; k++) {
		const struct sd_klm klm = sd_klm_of(from + k, repeat);
		uint64_t bytes = klm.bytes;

		if (bytes - 1 >= left)
			break;
		at[k] = (struct sd_piece){ .va = (uint8_t *)(uintptr_t)(shift + klm.addr +
									c->cycle * klm.stride),
					   .bytes = bytes };
		left -= bytes;
	}
	out->num += k;
	out->bytes += c->left - left;
	c->left = left;
	c->i += (uint32_t)k;
}

/* The same of a repeat of one block: as many cycles of it. */
static void whole_cycles(struct sd_pieces *out, struct cursor *c, uint64_t shift)
{
	const struct sd_klm klm = sd_layout_klm(c->layout, 0);
	uint64_t va = shift + klm.addr + c->cycle * klm.stride, n = c->left / klm.bytes;
	struct sd_piece *at = out->at + out->num;

	if (n > out->room - out->num)
		n = out->room - out->num;
	for (uint64_t i = 0; i < n; i++, va += klm.stride)
		at[i] = (struct sd_piece){ .va = (uint8_t *)(uintptr_t)va, .bytes = klm.bytes };
	out->num += n;
	out->bytes += n * klm.bytes;
	c->left -= n * klm.bytes;
	c->cycle += n;
}

/* Of entries in good_leaf. */
static int good_pieces(struct sd_pieces *out, struct cursor c, const struct sd_mkey *leaf)
{
	uint64_t shift = (uint64_t)(uintptr_t)leaf->va - leaf->start;

	while (c.left && out->num < out->room) {
		const struct sd_klm klm = sd_layout_klm(c.layout, c.i);
		uint64_t bytes = klm.bytes - c.into;

		if (c.into || bytes - 1 >= c.left) {
			add_good(out, &c, shift + klm.addr + c.cycle * klm.stride + c.into,
				 bytes < c.left ? bytes : c.left);
			c.i++;
		} else if (!c.layout->repeat) {
			whole_entries(out, &c, shift, false);
		} else if (c.layout->num > 1) {
			whole_entries(out, &c, shift, true);
		} else {
			whole_cycles(out, &c, shift);
		}
		if (c.i == c.layout->num) {
			c.i = 0;
			c.cycle++;
		}
	}
	return c.left ? FULL : 0;
}

static int walk_entries(struct sd_pieces *out, struct cursor c, struct ask *in)
{
	const struct sd_layout *layout = c.layout;
	struct sd_mkey *leaf = NULL;
	int ret;

	for (; c.left; c.into = 0) {
		const struct sd_klm klm = sd_layout_klm(layout, c.i);

		if (c.cycle >= layout->cycles)
			return past_the_end(out, layout, in, c.left);
		in->addr = klm.addr + c.into;
		if (__builtin_add_overflow(in->addr, c.cycle * klm.stride, &in->addr) ||
		    klm.addr + c.into < klm.addr)
			return -EFAULT;
		in->len = klm.bytes - c.into < c.left ? klm.bytes - c.into : c.left;
		if (in->len && leaf && klm.key == in->key) {
			ret = leaf_piece(out, leaf, in, in->addr, in->len);
			if (ret)
				return ret;
		} else if (in->len) {
			in->key = klm.key;
			ret = walk(out, in);
			if (ret)
				return ret;
			leaf = leaf_of(klm.key);
		}
		c.left -= in->len;
		if (++c.i == layout->num) {
			c.i = 0;
			c.cycle++;
		}
	}
	return 0;
}

/* [off, off + len) of an indirect key: entry by entry, cycle by cycle. */
static int walk_layout(struct sd_pieces *out, const struct sd_layout *layout, uint64_t off,
		       const struct ask *q)
{
	struct cursor c = { .layout = layout, .left = q->len };
	const struct sd_mkey *leaf;
	struct ask in = *q;

	if (!layout || !layout->cycle)
		return -EFAULT;
	in.need = q->need & ~REMOTE_RIGHTS;
	if (q->need & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC))
		in.need |= SD_CHOICE_INNER_WRITE_NEEDS;
	in.side = SD_LOCAL_SIDE;
	in.depth = q->depth + 1;
	in.repeated |= layout->repeat;
	leaf = good_leaf(layout, off, &in);
	if (leaf && !out)
		return 0;
	if (off >= layout->cycle) {
		c.cycle = off / layout->cycle;
		off %= layout->cycle;
	}
	c.i = off ? sd_layout_find(layout, off, &c.into) : 0;
	return leaf ? good_pieces(out, c, leaf) : walk_entries(out, c, &in);
}

static int walk(struct sd_pieces *out, const struct ask *q)
{
	struct sd_mkey *mkey = sd_mkey_find(q->key);

	if (q->key == SD_NULL_KEY)
		return piece_add(out, SD_NULL_VA, q->len);
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
		return SD_HOLE;
	switch (mkey->kind) {
	case SD_MKEY_MR:
	case SD_MKEY_IMPLICIT: /* of all memory: va and start are 0 */
		return leaf_piece(out, mkey, q, q->addr, q->len);
	case SD_MKEY_KLM:
		if (q->depth >= sd_config.max_depth)
			return -ELOOP;
		return walk_layout(out, mkey->layout, q->addr - mkey->start, q);
	}
	return -ENOENT;
}

static int start(struct sd_pieces *out, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		 uint32_t access)
{
	struct ask q = {
		.key = key,
		.pdn = pdn,
		.need = access & (IBV_ACCESS_LOCAL_WRITE | REMOTE_RIGHTS),
		.write = access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_ATOMIC),
		.side = access & REMOTE_RIGHTS ? SD_REMOTE_SIDE : SD_LOCAL_SIDE,
		.addr = addr,
		.len = len,
	};
	int ret = walk(out, &q);

	return ret == FULL ? 0 : ret;
}

int sd_translate(struct sd_pieces *out, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		 uint32_t access)
{
	return start(out, key, pdn, addr, len, access);
}

int sd_translate_check(uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len, uint32_t access)
{
	return start(NULL, key, pdn, addr, len, access);
}
