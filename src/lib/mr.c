/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions: what all have in common, and the direct ones. */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REG_ALL                                                                                 \
	(IBMR_ACCESS_FILL | IBMR_ACCESS_MW_BIND | IBMR_ACCESS_ON_DEMAND | IBMR_ACCESS_HUGETLB | \
	 IBMR_ACCESS_RELAXED_ORDERING)

/* ---- every MR ------------------------------------------------------------------- */

const char *ibmri_state_name(enum ibmr_state state)
{
	switch (state) {
	case IBMR_STATE_REGISTERED:
		return "registered";
	case IBMR_STATE_EMPTY:
		return "empty";
	case IBMR_STATE_FILLED:
		return "filled";
	case IBMR_STATE_INVALIDATED:
		return "invalidated";
	case IBMR_STATE_UNKNOWN:
		break;
	}
	return "in an unknown state";
}

int ibmri_mr_new(struct ibmr_ctx *ctx, const char *name, const char *origin,
		 struct ibmr_mr **ret_mr, struct ibmr_err *err)
{
	struct ibmr_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return ibmri_no_memory(err, origin, sizeof(*mr));
	mr->ctx = ctx;
	if (name) {
		mr->name = strdup(name);
		if (!mr->name) {
			free(mr);
			return ibmri_no_memory(err, origin, strlen(name) + 1);
		}
	}
	*ret_mr = mr;
	return 0;
}

int ibmri_mr_keyed(struct ibmr_mr *mr, uint32_t lkey, uint32_t rkey, const char *origin,
		   struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = mr->ctx;
	char buf[32];

	if (!mr->name) {
		if (ctx->dry)
			snprintf(buf, sizeof(buf), "MR %" PRIu64, ++ctx->names);
		else
			snprintf(buf, sizeof(buf), "key 0x%x", lkey);
		mr->name = strdup(buf);
		if (!mr->name)
			return ibmri_no_memory(err, origin, sizeof(buf));
	}
	mr->lkey = lkey;
	mr->rkey = rkey;
	mr->next = ctx->mrs;
	mr->pprev = &ctx->mrs;
	if (mr->next)
		mr->next->pprev = &mr->next;
	ctx->mrs = mr;
	ctx->num_mrs++;
	return 0;
}

void ibmri_mr_free(struct ibmr_mr *mr)
{
	if (mr->pprev) {
		*mr->pprev = mr->next;
		if (mr->next)
			mr->next->pprev = mr->pprev;
		mr->ctx->num_mrs--;
	}
	free(mr->name);
	free(mr);
}

int ibmri_mr_in_use(const struct ibmr_mr *mr, const char *doing, const char *origin,
		    struct ibmr_err *err)
{
	const struct ibmri_link *l;
	uint64_t named = 0;
	int ret;

	if (!mr->users)
		return 0;
	ret = ibmri_refuse(err, IBMR_E_IN_USE, origin, "'%s' cannot be %s: it is a member of ",
			   mr->name, doing);
	for (l = mr->users; l && named < 4; l = l->next, named++)
		ibmri_err_more(err, "%s'%s'", named ? ", " : "", l->user->name);
	if (mr->num_users > named)
		ibmri_err_more(err, " and %" PRIu64 " more", mr->num_users - named);
	ibmri_err_hint(err, "invalidate or deregister '%s' first", mr->users->user->name);
	return ret;
}

void ibmr_mr_query(const struct ibmr_mr *mr, struct ibmr_mr_info *ret_info)
{
	struct ibmr_mr_info info = {
		.name = mr->name,
		.indirect = mr->indirect,
		.state = mr->state,
		.lkey = mr->lkey,
		.rkey = mr->rkey,
		.base = mr->base,
		.length = mr->length,
		.access = mr->access,
		.implicit = mr->implicit,
		.on_demand = mr->traits.on_demand,
		.relaxed_asked = mr->traits.relaxed,
		.relaxed_in_effect = mr->traits.relaxed ? -1 : 0,
		.max_klms = mr->max_klms,
		.entries = mr->layout.num
				   ? mr->tree.num_entries + (mr->layout.kind == IBMR_LAYOUT_REPEAT)
				   : 0,
		.levels = mr->layout.num ? mr->tree.levels : 0,
		.keys = mr->indirect ? 1 + mr->tree.num_keys : 0,
		.form = mr->form,
		.locked_bytes = mr->locked_bytes,
		.users = mr->num_users,
		.attach = mr->mem.id,
		.addr = mr->indirect || mr->ctx->dry ? NULL : mr->mem.addr,
	};

	*ret_info = info;
}

/* ---- direct MRs --------------------------------------------------------------------- */

static int check_flags(const struct ibmr_ctx *ctx, uint64_t access, struct ibmr_err *err)
{
	int ret;

	ret = ibmri_access_check(access, REG_ALL, "a registration", "ibmr_mr_reg", err);
	if (ret)
		return ret;
	if (access & IBMR_ACCESS_HUGETLB && !(access & IBMR_ACCESS_ON_DEMAND)) {
		ret = ibmri_refuse(err, IBMR_E_ACCESS, "ibmr_mr_reg",
				   "hugetlb has a meaning with on_demand only, which is not given");
		ibmri_err_cause(err, "needs_on_demand");
		return ret;
	}
	if (access & IBMR_ACCESS_ON_DEMAND && !ctx->caps.odp) {
		ret = ibmri_refuse(err, IBMR_E_UNSUPPORTED, "ibmr_mr_reg",
				   "device %s has no on-demand paging", ctx->caps.name);
		ibmri_err_cause(err, "odp");
		ibmri_err_hint(err, "register without on_demand");
		return ret;
	}
	return 0;
}

/* The whole address space can only be had on demand, and not of every device. */
static int check_implicit(const struct ibmr_ctx *ctx, uint64_t access, struct ibmr_err *err)
{
	int ret;

	if (!(access & IBMR_ACCESS_ON_DEMAND)) {
		ret = ibmri_refuse(err, IBMR_E_ACCESS, "ibmr_mr_reg",
				   "the whole address space can be registered with on_demand only");
		ibmri_err_cause(err, "needs_on_demand");
		return ret;
	}
	if (ctx->caps.odp_implicit)
		return 0;
	ret = ibmri_refuse(err, IBMR_E_UNSUPPORTED, "ibmr_mr_reg",
			   "device %s has no implicit on-demand MRs, which span the whole address "
			   "space",
			   ctx->caps.name);
	ibmri_err_cause(err, "odp_implicit");
	ibmri_err_hint(err, "register the memory that is used, with its length");
	return ret;
}

static int check_size(const struct ibmr_ctx *ctx, uint64_t length, struct ibmr_err *err)
{
	int ret;

	if (!ctx->caps.max_mr_size || length == IBMR_TO_END || length <= ctx->caps.max_mr_size)
		return 0;
	ret = ibmri_refuse(err, IBMR_E_LIMIT, "ibmr_mr_reg",
			   "length %" PRIu64 " is more than the %" PRIu64
			   " bytes that one MR of device %s may have",
			   length, ctx->caps.max_mr_size, ctx->caps.name);
	ibmri_err_cause(err, "max_mr_size");
	return ret;
}

/* What messages call it. */
static const char *label(const char *name, char *buf, size_t size)
{
	if (name)
		snprintf(buf, size, "'%s'", name);
	else
		snprintf(buf, size, "the memory");
	return buf;
}

static int register_memory(struct ibmr_mr *mr, const struct ibmr_mr_spec *spec,
			   struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = mr->ctx;
	char what[96];

	if (ctx->dry)
		return 0;
	errno = 0;
	mr->ibv = ibv_reg_mr(ctx->pd, mr->mem.addr, mr->implicit ? SIZE_MAX : mr->length,
			     (unsigned)mr->access);
	if (mr->ibv)
		return 0;
	return ibmri_reg_failed(ctx, label(mr->name, what, sizeof(what)), mr->mem.addr, mr->length,
				mr->access, errno, err);
}

int ibmr_mr_reg(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec, struct ibmr_mr **ret_mr,
		struct ibmr_err *reterr)
{
	struct ibmr_mr *mr;
	int ret;

	ret = check_flags(ctx, spec->access, reterr);
	if (!ret)
		ret = spec->mem == IBMR_MEM_ALL ? check_implicit(ctx, spec->access, reterr)
						: check_size(ctx, spec->length, reterr);
	if (!ret)
		ret = ibmri_mr_new(ctx, spec->name, "ibmr_mr_reg", &mr, reterr);
	if (ret)
		return ret;
	ret = ibmri_mem_get(ctx, spec, &mr->mem, &mr->length, reterr);
	if (ret)
		goto free_mr;
	mr->implicit = spec->mem == IBMR_MEM_ALL;
	ret = mr->implicit ? 0 : check_size(ctx, mr->length, reterr);
	if (ret)
		goto undo_memory;
	mr->access = spec->access;
	mr->base = (uintptr_t)mr->mem.addr;
	ret = register_memory(mr, spec, reterr);
	if (ret)
		goto undo_memory;
	ret = ibmri_mr_keyed(mr, mr->ibv ? mr->ibv->lkey : 0, mr->ibv ? mr->ibv->rkey : 0,
			     "ibmr_mr_reg", reterr);
	if (ret)
		goto dereg;
	mr->state = IBMR_STATE_REGISTERED;
	mr->traits.on_demand = mr->access & IBMR_ACCESS_ON_DEMAND;
	mr->traits.relaxed = mr->access & IBMR_ACCESS_RELAXED_ORDERING;
	if (!mr->traits.on_demand)
		mr->locked_bytes = ibmri_page_span(mr->base, mr->length);
	ctx->locked_bytes += mr->locked_bytes;
	*ret_mr = mr;
	return 0;

dereg:
	if (mr->ibv && ibv_dereg_mr(mr->ibv))
		goto free_mr; /* the device still knows the memory: it stays mapped */
undo_memory:
	ibmri_file_undo(&mr->mem, spec, reterr);
free_mr:
	ibmri_mr_free(mr);
	return ret;
}

int ibmr_mr_from_ibv(struct ibmr_ctx *ctx, struct ibv_mr *ibv, uint64_t access, const char *name,
		     struct ibmr_mr **ret_mr, struct ibmr_err *reterr)
{
	static const char *const origin = "ibmr_mr_from_ibv";
	struct ibmr_mr *mr;
	int ret;

	if (!ibv)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, origin, "no ibv_mr is given");
	if (ctx->dry)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, origin,
				    "a context without a device has no place for an ibv_mr");
	if (ibv->pd != ctx->pd) {
		ret = ibmri_refuse(reterr, IBMR_E_ARGUMENT, origin,
				   "key 0x%x belongs to another protection domain", ibv->lkey);
		ibmri_err_cause(reterr, "other_context");
		return ret;
	}
	if (!ibv->length)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, origin, "key 0x%x has length 0",
				    ibv->lkey);
	ret = ibmri_access_check(access, REG_ALL, "a registration", origin, reterr);
	if (!ret)
		ret = ibmri_mr_new(ctx, name, origin, &mr, reterr);
	if (ret)
		return ret;
	ret = ibmri_mr_keyed(mr, ibv->lkey, ibv->rkey, origin, reterr);
	if (ret) {
		ibmri_mr_free(mr);
		return ret;
	}
	mr->ibv = ibv;
	mr->borrowed = true;
	mr->state = IBMR_STATE_REGISTERED;
	mr->mem.addr = ibv->addr;
	mr->base = (uintptr_t)ibv->addr;
	mr->length = ibv->length;
	mr->access = access;
	mr->traits.on_demand = access & IBMR_ACCESS_ON_DEMAND;
	mr->traits.relaxed = access & IBMR_ACCESS_RELAXED_ORDERING;
	*ret_mr = mr;
	return 0;
}

int ibmr_mr_dereg(struct ibmr_mr *mr, struct ibmr_err *reterr)
{
	int ret;

	if (!mr)
		return 0;
	ret = ibmri_mr_in_use(mr, "deregistered", "ibmr_mr_dereg", reterr);
	if (ret)
		return ret;
	if (mr->indirect)
		return ibmri_indirect_dereg(mr, reterr);
	if (mr->ibv && !mr->borrowed) {
		ret = ibmri_let_go(mr->ctx, ibv_dereg_mr(mr->ibv));
		if (ret)
			return ibmri_failed(reterr, ibmri_code_of(ret), "ibv_dereg_mr", ret,
					    "'%s' cannot be deregistered: %s", mr->name,
					    strerror(ret));
	}
	/* the device has let go: only now may the memory */
	ibmri_mem_put(&mr->mem);
	mr->ctx->locked_bytes -= mr->locked_bytes;
	ibmri_mr_free(mr);
	return 0;
}
