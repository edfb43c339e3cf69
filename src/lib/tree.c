/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists that one key cannot hold: a tree of keys, each a list of the level below, whose root is the MR's
 * own key. A key of the tree has the addresses that its bytes have in the MR, so that cuts can be made
 * where no aligned access crosses them.
 */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ORIGIN "ibmr_mr_fill"

/* ---- the shape ------------------------------------------------------------------------- */

static uint64_t keys_for(uint64_t entries, uint64_t most)
{
	return entries / most + (entries % most != 0);
}

/* The part of the level's table that key i has. */
static struct ibmri_layout layout_of_key(const struct ibmri_level *level, uint64_t i,
					 uint64_t access)
{
	uint64_t first = i * level->most, left = level->num_entries - first;

	return (struct ibmri_layout){ .kind = IBMR_LAYOUT_LIST,
				      .access = access,
				      .base = level->keys[i].base,
				      .total = level->keys[i].length,
				      .count = 1,
				      .num = left < level->most ? left : level->most,
				      .entries = &level->table[first] };
}

static struct ibmri_level *new_level(const struct ibmr_mr *mr, const struct ibmri_layout *l,
				     struct ibmri_entry *table, uint64_t num_entries)
{
	uint64_t most = ibmri_max_table(mr->ctx), num = keys_for(num_entries, most), i, from = 0;
	struct ibmri_level *level = calloc(1, sizeof(*level) + num * sizeof(level->keys[0]));

	if (!level)
		return NULL;
	level->table = table;
	level->num_entries = num_entries;
	level->most = most;
	level->num = num;
	for (i = 0; i < num; i++) {
		uint64_t last = (i + 1 < num ? (i + 1) * most : num_entries) - 1;

		level->keys[i].ctx = mr->ctx;
		level->keys[i].name = mr->name;
		level->keys[i].table = last + 1 - i * most;
		level->keys[i].base = l->base + from;
		level->keys[i].length = table[last].end - from;
		from = table[last].end;
	}
	return level;
}

/* The table above a level: its keys, each in pieces that one entry carries. */
static struct ibmri_entry *table_above(struct ibmri_level *level, uint64_t most_entry,
				       uint64_t *ret_num)
{
	uint64_t i, num = level->num, at, n, end = 0;
	struct ibmri_entry *table;

	for (i = 0; i < level->num; i++)
		num += ibmri_cut_parts(level->keys[i].length, most_entry) - 1;
	table = malloc(num * sizeof(*table));
	if (!table)
		return NULL;
	num = 0;
	for (i = 0; i < level->num; i++) {
		struct ibmr_mr *key = &level->keys[i];

		for (at = 0; at < key->length; at += n) {
			n = ibmri_cut_length(key->base + at, key->length - at, most_entry);
			end += n;
			table[num++] = (struct ibmri_entry){ key, at, n, 0, end };
		}
	}
	*ret_num = num;
	return table;
}

static int too_many_levels(const struct ibmr_mr *mr, const struct ibmri_layout *l,
			   struct ibmr_err *err)
{
	int ret = ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
			       "%" PRIu64 " entries of %" PRIu64 " bytes in all need more levels "
			       "of keys than the %u that device %s follows",
			       l->num, l->total, ibmri_max_depth(mr->ctx), mr->ctx->caps.name);

	ibmri_err_cause(err, "depth");
	return ret;
}

int ibmri_tree_make(const struct ibmr_mr *mr, const struct ibmri_layout *l,
		    struct ibmri_tree *ret_tree, struct ibmr_err *err)
{
	struct ibmri_tree tree = { .top = l->entries, .num_top = l->num, .levels = 1 };
	struct ibmri_level *level, **above = &tree.bottom;

	while (l->split && tree.num_top > mr->table) {
		if (tree.levels == ibmri_max_depth(mr->ctx)) {
			ibmri_tree_free(mr->ctx, &tree);
			return too_many_levels(mr, l, err);
		}
		level = new_level(mr, l, tree.top, tree.num_top);
		if (!level)
			goto no_memory;
		*above = level;
		above = &level->above;
		tree.levels++;
		tree.num_keys += level->num;
		tree.num_entries += level->num_entries;
		tree.top = table_above(level, ibmri_max_entry(mr->ctx), &tree.num_top);
		if (!tree.top)
			goto no_memory;
	}
	tree.num_entries += tree.num_top;
	*ret_tree = tree;
	return 0;

no_memory:
	ibmri_tree_free(mr->ctx, &tree);
	return ibmri_no_memory(err, ORIGIN, l->num * sizeof(*l->entries));
}

/* ---- the device's part ---------------------------------------------------------------------- */

int ibmri_tree_send(const struct ibmri_call *c, struct ibmri_tree *tree, uint64_t access,
		    struct ibmr_err *err)
{
	struct ibmri_level *level;
	enum ibmr_form form;
	bool posted;
	uint64_t i;
	int ret;

	for (level = tree->bottom; level; level = level->above) {
		for (i = 0; i < level->num; i++) {
			struct ibmri_layout l = layout_of_key(level, i, access);
			struct ibmr_mr *key = &level->keys[i];

			ret = ibmri_indirect_key(key, err);
			if (ret)
				return ret;
			key->lkey = key->mkey ? key->mkey->lkey : 0;
			ret = ibmri_indirect_send(c, key, &l, &form, &posted, err);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* That of the lowest level is the layout's. */
void ibmri_tree_sent(struct ibmri_tree *tree)
{
	struct ibmri_level *level;

	for (level = tree->bottom; level; level = level->above) {
		if (level != tree->bottom)
			free(level->table);
		level->table = NULL;
	}
	if (tree->bottom)
		free(tree->top);
	tree->top = NULL;
}

/* ---- the end ---------------------------------------------------------------------------------- */

/* 0, or the errno of a key that the device keeps. */
static int destroy_keys(struct ibmri_level *level)
{
	int ret;

	while (level->num) {
		struct mlx5dv_mkey *mkey = level->keys[level->num - 1].mkey;

		ret = mkey ? ibmri_let_go(level->keys->ctx, mlx5dv_destroy_mkey(mkey)) : 0;
		if (ret)
			return ret;
		level->num--;
	}
	return 0;
}

static int free_levels(struct ibmri_level **levels)
{
	struct ibmri_level *level;
	int ret = 0;

	while (*levels && !ret) {
		level = *levels;
		ret = destroy_keys(level);
		if (ret)
			break;
		*levels = level->above;
		free(level);
	}
	return ret;
}

/* What the device keeps is asked for again with the next tree, and at the end of the ctx. */
void ibmri_tree_free(struct ibmr_ctx *ctx, struct ibmri_tree *tree)
{
	struct ibmri_level **last = &ctx->spent;

	ibmri_tree_sent(tree);
	while (*last)
		last = &(*last)->above;
	*last = tree->bottom;
	memset(tree, 0, sizeof(*tree));
	(void)free_levels(&ctx->spent);
}

void ibmri_tree_join(struct ibmri_tree *tree, struct ibmri_tree *more)
{
	struct ibmri_level **last = &tree->bottom;

	ibmri_tree_sent(more);
	while (*last)
		last = &(*last)->above;
	*last = more->bottom;
	tree->num_keys += more->num_keys;
	memset(more, 0, sizeof(*more));
}

int ibmri_tree_close(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	int ret = free_levels(&ctx->spent);

	if (!ret)
		return 0;
	return ibmri_failed(err, ibmri_code_of(ret), "mlx5dv_destroy_mkey", ret,
			    "a key of the library's own cannot be destroyed: %s", strerror(ret));
}
