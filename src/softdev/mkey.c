/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's one table of keys, and what a UMR stages for one. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mkey.h"

#define KEY_INDEX_MAX (1u << 24)

static struct {
	struct sd_mkey **at;
	uint32_t room, live;
	uint32_t cursor, first;
	bool started;
} table;

/* Index 1 is the end mark of a scatter list (MLX5_INVALID_LKEY), index 4 the repeat mark of a UMR, and
 * one is the null MR's. */
static bool index_reserved(uint32_t i)
{
	return i == MLX5_INVALID_LKEY >> 8 || i == 0x400 >> 8 || i == SD_NULL_KEY >> 8;
}

static int table_grow(uint32_t need)
{
	uint32_t room = table.room ? table.room : 256;
	struct sd_mkey **at;

	while (room <= need)
		room *= 2;
	if (room > KEY_INDEX_MAX)
		room = KEY_INDEX_MAX;
	if (need >= room)
		return -EAGAIN;
	if (room == table.room)
		return 0;
	at = realloc(table.at, room * sizeof(*at));
	if (!at)
		return -ENOMEM;
	for (uint32_t i = table.room; i < room; i++)
		at[i] = NULL;
	table.at = at;
	table.room = room;
	return 0;
}

/* The next unused index after the last one handed out, so that a stale key is not soon valid again. */
static int table_next(uint32_t *ret_index)
{
	uint32_t first = sd_config.first_key, i, tries;
	int ret;

	if (!table.started || table.first != first) {
		table.started = true;
		table.first = table.cursor = first;
	}
	for (;;) {
		ret = table_grow(table.cursor > first ? table.cursor : first);
		if (ret)
			return ret;
		i = table.cursor;
		for (tries = first; tries < table.room; tries++) {
			if (i >= table.room)
				i = first;
			if (!table.at[i] && !index_reserved(i)) {
				*ret_index = i;
				table.cursor = i + 1 < KEY_INDEX_MAX ? i + 1 : first;
				return 0;
			}
			i++;
		}
		ret = table_grow(table.room);
		if (ret)
			return ret;
	}
}

int sd_mkey_alloc(struct sd_mkey **ret_mkey)
{
	struct sd_mkey *mkey;
	uint32_t index;
	int ret;

	if (table.live >= sd_config.max_keys)
		return -EAGAIN;
	ret = table_next(&index);
	if (ret)
		return ret;
	mkey = calloc(1, sizeof(*mkey));
	if (!mkey)
		return -ENOMEM;
	mkey->key = index << 8;
	table.at[index] = mkey;
	table.live++;
	sd_count("live.mkey", 1);
	*ret_mkey = mkey;
	return 0;
}

void sd_mkey_free(struct sd_mkey *mkey)
{
	table.at[mkey->key >> 8] = NULL;
	table.live--;
	sd_count("live.mkey", (uint64_t)-1);
	if (mkey->staged)
		sd_engine_forget_mkey(mkey);
	sd_layout_put(mkey->layout);
	free(mkey);
}

static struct sd_mkey *find_index(uint32_t key)
{
	return key >> 8 < table.room ? table.at[key >> 8] : NULL;
}

struct sd_mkey *sd_mkey_find(uint32_t key)
{
	struct sd_mkey *mkey = find_index(key);

	return mkey && mkey->key == key ? mkey : NULL;
}

struct sd_mkey *sd_mkey_find_newest(uint32_t key)
{
	struct sd_mkey *mkey = find_index(key);

	if (!mkey)
		return NULL;
	return (mkey->staged ? mkey->staged->key : mkey->key) == key ? mkey : NULL;
}

/* ---- what is staged ------------------------------------------------------------ */

struct sd_staged *sd_staged_new(struct sd_mkey *mkey)
{
	struct sd_staged *st = malloc(sizeof(*st));

	if (!st)
		return NULL;
	if (mkey->staged) {
		*st = *mkey->staged;
	} else {
		st->mkey = mkey;
		st->key = mkey->key;
		st->free = mkey->free;
		st->access = mkey->access;
		st->start = mkey->start;
		st->length = mkey->length;
		st->layout = mkey->layout;
	}
	sd_layout_get(st->layout);
	return st;
}

void sd_staged_post(struct sd_staged *st)
{
	st->mkey->staged = st;
}

void sd_staged_apply(struct sd_staged *st)
{
	struct sd_mkey *mkey = st->mkey;

	if (mkey) {
		mkey->key = st->key;
		mkey->free = st->free;
		mkey->access = st->access;
		mkey->start = st->start;
		mkey->length = st->length;
		sd_layout_put(mkey->layout);
		mkey->layout = sd_layout_get(st->layout);
	}
	sd_staged_free(st);
}

void sd_staged_free(struct sd_staged *st)
{
	if (st->mkey && st->mkey->staged == st)
		st->mkey->staged = NULL;
	sd_layout_put(st->layout);
	free(st);
}

/* ---- CREATE_MKEY ---------------------------------------------------------------- */

enum {
	PRM_OK = 0,
	PRM_BAD_PARAM = 0x03,
	PRM_BAD_RESOURCE = 0x05,
	PRM_EXCEED_LIM = 0x08,
	PRM_NO_RESOURCES = 0x0f,
};

#define MKC_OFFSET   16
#define MKC_UMR_EN   0x80
#define MKC_MODE     0x03
#define MKC_MODE_KLM 0x02

uint32_t sd_mkc_access(uint8_t flags)
{
	uint32_t access = 0;

	if (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE)
		access |= IBV_ACCESS_LOCAL_WRITE;
	if (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	if (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE;
	if (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC)
		access |= IBV_ACCESS_REMOTE_ATOMIC;
	return access;
}

static uint8_t create_mkey(struct sd_ctx *ctx, const struct mlx5_wqe_mkey_context_seg *mkc,
			   struct sd_mkey **ret_mkey)
{
	uint32_t octowords = be32toh(mkc->translations_octword_size);
	uint32_t pdn = be32toh(mkc->flags_pd) & 0xffffff;
	struct sd_mkey *mkey;

	if (!sd_config.umr || (mkc->access_flags & MKC_MODE) != MKC_MODE_KLM ||
	    mkc->bsf_octword_size)
		return PRM_BAD_PARAM;
	if (!octowords || octowords % 4)
		return PRM_BAD_PARAM;
	if (octowords > sd_config.max_klms)
		return PRM_EXCEED_LIM;
	if (!sd_pd_exists(ctx, pdn))
		return PRM_BAD_RESOURCE;
	switch (sd_mkey_alloc(&mkey)) {
	case 0:
		break;
	case -EAGAIN:
		return PRM_EXCEED_LIM;
	default:
		return PRM_NO_RESOURCES;
	}
	mkey->kind = SD_MKEY_KLM;
	mkey->free = mkc->free & MLX5_WQE_MKEY_CONTEXT_FREE;
	mkey->umr_en = mkc->access_flags & MKC_UMR_EN;
	mkey->access = sd_mkc_access(mkc->access_flags);
	mkey->key |= be32toh(mkc->qpn_mkey) & 0xff;
	mkey->pdn = pdn;
	mkey->start = be64toh(mkc->start_addr);
	mkey->length = be64toh(mkc->len);
	mkey->octowords = octowords;
	*ret_mkey = mkey;
	return PRM_OK;
}

int sd_devx_create_mkey(struct sd_ctx *ctx, const uint8_t *in, uint32_t in_len, uint8_t *out,
			uint32_t out_len, struct sd_mkey **ret_mkey)
{
	struct mlx5_wqe_mkey_context_seg mkc;
	struct sd_mkey *mkey = NULL;
	uint8_t status = PRM_BAD_PARAM;

	if (out_len < 16)
		return -EINVAL;
	if (in_len >= MKC_OFFSET + sizeof(mkc)) {
		memcpy(&mkc, in + MKC_OFFSET, sizeof(mkc));
		status = create_mkey(ctx, &mkc, &mkey);
	}
	memset(out, 0, out_len);
	out[0] = status;
	if (status != PRM_OK)
		return -EREMOTEIO;
	out[9] = mkey->key >> 24;
	out[10] = mkey->key >> 16;
	out[11] = mkey->key >> 8;
	*ret_mkey = mkey;
	return 0;
}
