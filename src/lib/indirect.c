/* SPDX-License-Identifier: BSD-2-Clause */
/* Indirect MRs: made empty, filled, invalidated, destroyed. */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int no_umr(const struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	int ret = ibmri_refuse(err, IBMR_E_UNSUPPORTED, "ibmr_mr_create",
			       "device %s has no indirect memory regions (UMR)", ctx->caps.name);

	ibmri_err_cause(err, "umr");
	return ret;
}

bool ibmri_says_no_umr(int err_no)
{
	/* EINVAL to a request within the reported limits: firmware does not know such keys */
	return ibmri_code_of(err_no) == IBMR_E_UNSUPPORTED || err_no == EINVAL;
}

static int create_failed(const struct ibmr_ctx *ctx, const char *name, int err_no,
			 struct ibmr_err *err)
{
	static const char *const call = "mlx5dv_create_mkey";
	int ret;

	if (ibmri_says_no_umr(err_no)) {
		ret = ibmri_failed(err, IBMR_E_UNSUPPORTED, call, err_no,
				   "device %s makes no indirect key (UMR by DEVX): %s",
				   ctx->caps.name, strerror(err_no));
		ibmri_err_cause(err, "umr");
		return ret;
	}
	/* firmware's "limits exceeded" reaches us as ENOMEM */
	if (ibmri_code_of(err_no) == IBMR_E_KEY_TABLE || err_no == ENOMEM)
		return ibmri_failed(err, IBMR_E_KEY_TABLE, call, err_no,
				    "device %s has no memory key left for '%s'%s", ctx->caps.name,
				    name, err_no == ENOMEM ? ", or the system no memory" : "");
	return ibmri_failed(err, ibmri_code_of(err_no), call, err_no,
			    "device %s refuses a key for '%s': %s", ctx->caps.name, name,
			    strerror(err_no));
}

int ibmri_indirect_key(struct ibmr_mr *mr, struct ibmr_err *err)
{
	struct mlx5dv_mkey_init_attr attr = { .pd = mr->ctx->pd,
					      .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = (uint16_t)mr->table };

	if (mr->ctx->dry)
		return 0;
	errno = 0;
	mr->mkey = mlx5dv_create_mkey(&attr);
	if (!mr->mkey)
		return create_failed(mr->ctx, mr->name ? mr->name : "a new MR", errno, err);
	return 0;
}

uint64_t ibmri_max_table(const struct ibmr_ctx *ctx)
{
	return ctx->caps.max_klms && ctx->caps.max_klms < IBMRI_MAX_TABLE ? ctx->caps.max_klms
									  : IBMRI_MAX_TABLE;
}

static int check_max_klms(const struct ibmr_ctx *ctx, uint64_t max_klms, bool split,
			  struct ibmr_err *err)
{
	uint64_t most = ibmri_max_table(ctx);
	int ret;

	if (!max_klms)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, "ibmr_mr_create", "max_klms is 0");
	if (ctx->dry ? !ctx->caps.umr : !ctx->mlx5)
		return no_umr(ctx, err);
	if (split && max_klms > IBMRI_MAX_PIECES)
		return ibmri_refuse(err, IBMR_E_LIMIT, "ibmr_mr_create",
				    "max_klms %" PRIu64 " is more than the %u entries that a tree "
				    "of keys may have",
				    max_klms, IBMRI_MAX_PIECES);
	if (split || max_klms <= most)
		return 0;
	ret = ibmri_refuse(err, IBMR_E_LIMIT, "ibmr_mr_create",
			   "max_klms %" PRIu64 " is more than the %" PRIu64
			   " entries one key of device %s may have",
			   max_klms, most, ctx->caps.name);
	ibmri_err_hint(err, "split it: more entries become a tree of keys");
	return ret;
}

static int create(struct ibmr_ctx *ctx, const char *name, uint64_t max_klms, bool split,
		  struct ibmr_mr **ret_mr, struct ibmr_err *err)
{
	uint64_t most = ibmri_max_table(ctx);
	struct ibmr_mr *mr;
	int ret;

	ret = check_max_klms(ctx, max_klms, split, err);
	if (!ret)
		ret = ibmri_mr_new(ctx, name, "ibmr_mr_create", &mr, err);
	if (ret)
		return ret;
	mr->indirect = true;
	mr->state = IBMR_STATE_EMPTY;
	mr->max_klms = max_klms;
	mr->split = split;
	/* one more for a repeat's header; the root of a tree may need all there is */
	mr->table = !split && max_klms < most ? max_klms + 1 : most;
	ret = ibmri_indirect_key(mr, err);
	if (ret)
		goto free_mr;
	ret = ibmri_mr_keyed(mr, mr->mkey ? mr->mkey->lkey : 0, mr->mkey ? mr->mkey->rkey : 0,
			     "ibmr_mr_create", err);
	if (ret)
		goto destroy_key;
	*ret_mr = mr;
	return 0;

destroy_key:
	if (mr->mkey)
		(void)mlx5dv_destroy_mkey(mr->mkey); /* else the kernel takes it, at close */
free_mr:
	ibmri_mr_free(mr);
	return ret;
}

int ibmr_mr_create(struct ibmr_ctx *ctx, const char *name, uint64_t max_klms,
		   struct ibmr_mr **ret_mr, struct ibmr_err *reterr)
{
	return create(ctx, name, max_klms, false, ret_mr, reterr);
}

int ibmr_mr_create_split(struct ibmr_ctx *ctx, const char *name, uint64_t max_klms,
			 struct ibmr_mr **ret_mr, struct ibmr_err *reterr)
{
	return create(ctx, name, max_klms, true, ret_mr, reterr);
}

/* ---- states ------------------------------------------------------------------------- */

static void set_state(struct ibmr_mr *mr, enum ibmr_state state)
{
	mr->ctx->num_unknown -= mr->state == IBMR_STATE_UNKNOWN;
	mr->ctx->num_unknown += state == IBMR_STATE_UNKNOWN;
	mr->state = state;
}

/* Without a layout: what it pointed at is free to go. */
static void drop_layout(struct ibmr_mr *mr, enum ibmr_state state)
{
	static const struct ibmri_traits none;

	ibmri_links_set(mr, NULL, 0, &none);
	ibmri_layout_free(&mr->layout);
	ibmri_layout_free(&mr->spare);
	if (state != IBMR_STATE_UNKNOWN)
		ibmri_tree_free(mr->ctx, &mr->tree);
	mr->base = 0;
	mr->length = 0;
	mr->access = 0;
	mr->form = IBMR_FORM_NONE;
	set_state(mr, state);
}

/* An unknown MR at or under mr; each is looked at once. */
static const struct ibmr_mr *find_unusable(struct ibmr_mr *mr)
{
	const struct ibmr_mr *found = NULL;
	uint64_t i;

	if (mr->mark == mr->ctx->mark || !mr->indirect)
		return NULL;
	mr->mark = mr->ctx->mark;
	if (mr->state != IBMR_STATE_FILLED)
		return mr;
	for (i = 0; i < mr->num_links && !found; i++)
		found = find_unusable(mr->links[i].member);
	return found;
}

int ibmri_usable(struct ibmr_mr *mr, const char *origin, struct ibmr_err *err)
{
	const struct ibmr_mr *bad = NULL;
	int ret;

	if (!mr->indirect)
		return 0;
	if (mr->state != IBMR_STATE_FILLED) {
		bad = mr;
	} else if (mr->ctx->num_unknown) {
		mr->ctx->mark++;
		bad = find_unusable(mr);
	}
	if (!bad)
		return 0;
	ret = ibmri_refuse(err, IBMR_E_STATE, origin, "'%s' is %s%s%s%s, not filled", bad->name,
			   ibmri_state_name(bad->state), bad == mr ? "" : " under '",
			   bad == mr ? "" : mr->name, bad == mr ? "" : "'");
	ibmri_err_hint(err, "fill '%s' first", bad->name);
	return ret;
}

/* ---- fill ------------------------------------------------------------------------------ */

/* Where the device reads the entries from: the work request, or the pooled list memory. */
static int place_table(struct ibmr_mr *mr, const struct ibmri_layout *l, enum ibmr_form *ret_form,
		       struct ibmri_umr_list *ret_list, struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = mr->ctx;
	int ret;

	*ret_form = IBMR_FORM_INLINE;
	if (ibmri_layout_table(l) <= ctx->caps.inline_klms)
		return 0;
	*ret_form = IBMR_FORM_LIST_MEMORY;
	ret = ibmri_pool_need(ctx, &ctx->klms, ibmri_umr_table_bytes(l),
			      "the library's KLM list memory", err);
	if (ret || ctx->dry)
		return ret;
	ibmri_umr_table(l, ctx->klms.buf);
	*ret_list = (struct ibmri_umr_list){ .lkey = ctx->klms.mr->lkey,
					     .addr = (uintptr_t)ctx->klms.buf };
	return 0;
}

int ibmri_indirect_send(const struct ibmri_call *c, struct ibmr_mr *mr,
			const struct ibmri_layout *l, enum ibmr_form *ret_form, bool *ret_posted,
			struct ibmr_err *err)
{
	struct ibmri_umr_list list = { 0 };
	uint64_t wqe[IBMRI_MAX_WQE / 8];
	int ret;

	*ret_posted = false;
	ret = place_table(mr, l, ret_form, &list, err);
	if (ret || mr->ctx->dry)
		return ret;
	ibmri_umr_fill(wqe, l, mr->lkey, ibmri_queue_qpn(mr->ctx),
		       *ret_form == IBMR_FORM_INLINE ? NULL : &list);
	return ibmri_queue_umr(c, wqe, ret_posted, err);
}

/* The keys below come first: until the last work request the MR is as it was. */
static int send_tree(struct ibmr_mr *mr, const struct ibmri_layout *l, struct ibmri_tree *tree,
		     enum ibmr_form *ret_form, bool *ret_posted, struct ibmr_err *err)
{
	struct ibmri_layout top = *l;
	struct ibmri_call c;
	int ret = 0;

	*ret_posted = false;
	top.entries = tree->top;
	top.num = tree->num_top;
	ibmri_call_start(&c, mr->ctx, "ibmr_mr_fill", "filling", mr);
	if (!mr->ctx->dry)
		ret = ibmri_queue_need(&c, err);
	if (!ret)
		ret = ibmri_tree_send(&c, tree, l->access, err);
	if (!ret)
		ret = ibmri_indirect_send(&c, mr, &top, ret_form, ret_posted, err);
	if (tree->levels > 1)
		*ret_form = IBMR_FORM_TREE;
	return ret;
}

static int check_indirect(const struct ibmr_mr *mr, const char *origin, const char *verb,
			  struct ibmr_err *err)
{
	if (mr->indirect)
		return 0;
	return ibmri_refuse(err, IBMR_E_STATE, origin,
			    "'%s' is registered memory; only an indirect MR can be %s", mr->name,
			    verb);
}

int ibmr_mr_fill(struct ibmr_mr *mr, const struct ibmr_layout *layout, struct ibmr_err *reterr)
{
	struct ibmri_link *links = NULL;
	struct ibmri_traits traits;
	struct ibmri_layout l;
	struct ibmri_tree tree;
	uint64_t num_links;
	enum ibmr_form form;
	bool posted;
	int ret;

	ret = check_indirect(mr, "ibmr_mr_fill", "filled", reterr);
	if (!ret)
		ret = ibmri_layout_make(mr, layout, &l, reterr);
	if (ret)
		return ret;
	ret = ibmri_tree_make(mr, &l, &tree, reterr);
	if (ret)
		goto free_layout;
	ret = ibmri_links_make(mr, &l, tree.levels, &links, &num_links, &traits, reterr);
	if (ret)
		goto free_tree;
	ret = send_tree(mr, &l, &tree, &form, &posted, reterr);
	if (ret && posted) {
		drop_layout(mr, IBMR_STATE_UNKNOWN);
		ibmri_tree_join(&mr->tree, &tree);
	}
	if (ret)
		goto free_links;
	ibmri_tree_sent(&tree);
	ibmri_tree_free(mr->ctx, &mr->tree);
	mr->tree = tree;
	ibmri_layout_retire(mr, &mr->layout);
	mr->layout = l;
	mr->base = l.base;
	mr->length = l.total;
	mr->access = l.access;
	mr->form = form;
	ibmri_links_set(mr, links, num_links, &traits);
	set_state(mr, IBMR_STATE_FILLED);
	return 0;

free_links:
	free(links);
free_tree:
	ibmri_tree_free(mr->ctx, &tree);
free_layout:
	ibmri_layout_free(&l);
	return ret;
}

int ibmr_mr_invalidate(struct ibmr_mr *mr, struct ibmr_err *reterr)
{
	uint64_t wqe[IBMRI_MAX_WQE / 8];
	struct ibmri_call c;
	bool posted = false;
	int ret;

	ret = check_indirect(mr, "ibmr_mr_invalidate", "invalidated", reterr);
	if (!ret)
		ret = ibmri_mr_in_use(mr, "invalidated", "ibmr_mr_invalidate", reterr);
	if (ret)
		return ret;
	if (!mr->ctx->dry) {
		ibmri_call_start(&c, mr->ctx, "ibmr_mr_invalidate", "invalidating", mr);
		ret = ibmri_queue_need(&c, reterr);
		if (ret)
			return ret;
		ibmri_umr_invalidate(wqe, mr->lkey, ibmri_queue_qpn(mr->ctx));
		ret = ibmri_queue_umr(&c, wqe, &posted, reterr);
	}
	if (!ret)
		drop_layout(mr, IBMR_STATE_INVALIDATED);
	else if (posted)
		drop_layout(mr, IBMR_STATE_UNKNOWN);
	return ret;
}

int ibmri_indirect_dereg(struct ibmr_mr *mr, struct ibmr_err *err)
{
	int ret;

	if (mr->mkey) {
		ret = ibmri_let_go(mr->ctx, mlx5dv_destroy_mkey(mr->mkey));
		if (ret)
			return ibmri_failed(err, ibmri_code_of(ret), "mlx5dv_destroy_mkey", ret,
					    "'%s' cannot be destroyed: %s", mr->name,
					    strerror(ret));
	}
	drop_layout(mr, IBMR_STATE_EMPTY);
	ibmri_mr_free(mr);
	return 0;
}
