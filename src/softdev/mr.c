/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory registration: pinned, on-demand and implicit MRs, changes of them, and advice. */
#include "softdev.h"
#include "raw.h"
#include "choices.h"
#include "hca.h"
#include "mr.h"

#include <stdlib.h>
#include <sys/resource.h>

#define ACCESS_OPTIONAL 0x3ff00000u /* may be ignored: relaxed ordering */
#define ACCESS_KNOWN	(((IBV_ACCESS_HUGETLB << 1) - 1) | ACCESS_OPTIONAL)

static uint64_t pinned; /* by all MRs */

static bool is_implicit(uint64_t start, uint64_t length, uint32_t access)
{
	return (access & IBV_ACCESS_ON_DEMAND) && !start && length == UINT64_MAX;
}

static int check_access(uint32_t access)
{
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(access & IBV_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (access & ~ACCESS_KNOWN)
		return -EINVAL;
	if ((access & IBV_ACCESS_ON_DEMAND) && !sd_config.odp)
		return -EOPNOTSUPP;
	return 0;
}

static int check_range(const struct sd_mr *mr)
{
	uint64_t end = mr->start + mr->length;

	if (is_implicit(mr->start, mr->length, mr->access)) {
		if (mr->iova)
			return -EINVAL;
		return sd_config.implicit ? 0 : -EINVAL;
	}
	if (end < mr->start || sd_page_up(end) < end || mr->iova + mr->length < mr->iova)
		return -EINVAL;
	if (sd_page_up(end) == sd_page_down(mr->start))
		return -EINVAL; /* no page at all */
	return mr->length > sd_config.max_mr_size ? -SD_CHOICE_MR_SIZE_ERRNO : 0;
}

/* The kernel counts whole pages against RLIMIT_MEMLOCK; CAP_IPC_LOCK is left out here. */
static int check_memlock(uint64_t more)
{
	struct rlimit limit;

	if (!sd_config.memlock)
		return 0;
	if (sd_raw(SYS_prlimit64, 0, RLIMIT_MEMLOCK, NULL, &limit) || !limit.rlim_cur)
		return -EPERM;
	return limit.rlim_cur != RLIM_INFINITY && pinned + more > limit.rlim_cur ? -ENOMEM : 0;
}

static void unpin(struct sd_mr *mr)
{
	pinned -= mr->pinned;
	sd_count("pinned_bytes", (uint64_t)0 - mr->pinned);
	mr->pinned = 0;
	sd_odp_remove(mr);
	sd_pages_free(mr->pages);
	mr->pages = NULL;
}

/* Take the memory that mr describes. */
static int pin(struct sd_mr *mr)
{
	uint64_t first = sd_page_down(mr->start), bytes;
	int err;

	err = check_access(mr->access);
	if (!err)
		err = check_range(mr);
	if (err)
		return err;
	if (mr->access & IBV_ACCESS_ON_DEMAND) {
		mr->pages = sd_pages_new();
		if (!mr->pages)
			return -ENOMEM;
		sd_odp_add(mr);
		return 0;
	}
	bytes = sd_page_up(mr->start + mr->length) - first;
	err = check_memlock(bytes);
	if (!err)
		err = sd_populate(first, bytes, sd_access_writes(mr->access));
	if (err)
		return err;
	mr->pinned = bytes;
	pinned += bytes;
	sd_count("pinned_bytes", bytes);
	return 0;
}

static void describe(struct sd_mkey *k, const struct sd_mr *mr, enum sd_side side)
{
	bool implicit = is_implicit(mr->start, mr->length, mr->access);

	k->kind = implicit ? SD_MKEY_IMPLICIT : SD_MKEY_MR;
	k->free = false;
	k->pdn = mr->pd->pdn;
	k->access = mr->access;
	k->start = mr->iova;
	k->length = mr->length;
	k->va = (uint8_t *)(uintptr_t)mr->start;
	k->side = side;
	k->on_demand = mr->access & IBV_ACCESS_ON_DEMAND;
	k->pages = mr->pages;
}

static void describe_keys(struct sd_mr *mr)
{
	bool split = mr->lkey != mr->rkey;

	describe(mr->lkey, mr, split ? SD_LOCAL_SIDE : SD_BOTH_SIDES);
	if (split)
		describe(mr->rkey, mr, SD_REMOTE_SIDE);
}

static void free_keys(struct sd_mr *mr)
{
	if (mr->rkey && mr->rkey != mr->lkey)
		sd_mkey_free(mr->rkey);
	if (mr->lkey)
		sd_mkey_free(mr->lkey);
}

static int alloc_keys(struct sd_mr *mr)
{
	int err = sd_mkey_alloc(&mr->lkey);

	if (err)
		return err;
	mr->rkey = mr->lkey;
	if (!sd_config.split_keys)
		return 0;
	err = sd_mkey_alloc(&mr->rkey);
	if (err) {
		sd_mkey_free(mr->lkey);
		mr->lkey = mr->rkey = NULL;
	}
	return err;
}

void sd_mr_free(struct sd_obj *obj)
{
	struct sd_mr *mr = (struct sd_mr *)obj;

	free_keys(mr);
	unpin(mr);
	mr->pd->obj.users--;
	sd_obj_remove(obj);
	free(mr);
}

int sd_wr_reg_mr(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_reg_mr *req = w->in;
	struct ib_uverbs_reg_mr_resp resp = { 0 };
	struct sd_mr *mr;
	int err;

	if ((req->start ^ req->hca_va) & (SD_PAGE_SIZE - 1))
		return -EINVAL;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -ENOMEM;
	mr->start = req->start;
	mr->length = req->length;
	mr->iova = req->hca_va;
	mr->access = req->access_flags;
	mr->pd = sd_obj_find(ctx, SD_PD, req->pd_handle);
	err = mr->pd ? pin(mr) : -EINVAL;
	if (err)
		goto free_mr;
	err = alloc_keys(mr);
	if (err)
		goto unpin_mr;
	describe_keys(mr);
	err = sd_obj_add(ctx, &mr->obj, SD_MR);
	if (err)
		goto free_mr_keys;
	mr->pd->obj.users++;
	resp.mr_handle = mr->obj.handle;
	resp.lkey = mr->lkey->key;
	resp.rkey = mr->rkey->key;
	err = sd_write_out(w, &resp, sizeof(resp));
	if (err)
		sd_mr_free(&mr->obj);
	return err;

free_mr_keys:
	free_keys(mr);
unpin_mr:
	unpin(mr);
free_mr:
	free(mr);
	return err;
}

/* ---- changes ---------------------------------------------------------------- */

static int rereg_pd(struct sd_ctx *ctx, const struct ib_uverbs_rereg_mr *req, struct sd_mr *to)
{
	if (!(req->flags & IBV_REREG_MR_CHANGE_PD))
		return 0;
	to->pd = sd_obj_find(ctx, SD_PD, req->pd_handle);
	return to->pd ? 0 : -EINVAL;
}

/* The new memory is taken before the old is let go: a failure changes nothing. */
static int rereg(struct sd_ctx *ctx, const struct ib_uverbs_rereg_mr *req, struct sd_mr *mr)
{
	struct sd_mr to = *mr, old;
	int err;

	if (req->flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		to.start = req->start;
		to.length = req->length;
		to.iova = req->hca_va;
	}
	if (req->flags & IBV_REREG_MR_CHANGE_ACCESS)
		to.access = req->access_flags;
	err = rereg_pd(ctx, req, &to);
	if (err)
		return err;
	to.pages = NULL;
	to.pinned = 0;
	old = *mr;
	sd_odp_remove(mr);
	err = pin(&to);
	sd_odp_remove(&to); /* it is known by the object's address */
	if (err) {
		if (mr->pages)
			sd_odp_add(mr);
		return err;
	}
	*mr = to;
	if (mr->pages)
		sd_odp_add(mr);
	unpin(&old);
	old.pd->obj.users--;
	mr->pd->obj.users++;
	describe_keys(mr);
	return 0;
}

int sd_wr_rereg_mr(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_rereg_mr *req = w->in;
	struct ib_uverbs_rereg_mr_resp resp = { 0 };
	struct sd_mr *mr;
	int err;

	if (!req->flags)
		return -EINVAL;
	if (req->flags & ~(uint32_t)(IBV_REREG_MR_FLAGS_SUPPORTED))
		return -EOPNOTSUPP;
	if ((req->flags & IBV_REREG_MR_CHANGE_TRANSLATION) &&
	    ((req->start ^ req->hca_va) & (SD_PAGE_SIZE - 1)))
		return -EINVAL;
	mr = sd_obj_find(ctx, SD_MR, req->mr_handle);
	if (!mr)
		return -EINVAL;
	err = rereg(ctx, req, mr);
	if (err)
		return err;
	resp.lkey = mr->lkey->key;
	resp.rkey = mr->rkey->key;
	return sd_write_out(w, &resp, sizeof(resp));
}

int sd_cmd_mr_destroy(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	sd_mr_free(sd_attr_obj(a, UVERBS_ATTR_DESTROY_MR_HANDLE));
	return 0;
}

int sd_cmd_mr_query(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	const struct sd_mr *mr = sd_attr_obj(a, UVERBS_ATTR_QUERY_MR_HANDLE);
	int err;

	err = sd_attr_put(a, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &mr->lkey->key, sizeof(uint32_t));
	if (!err)
		err = sd_attr_put(a, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &mr->rkey->key,
				  sizeof(uint32_t));
	if (!err)
		err = sd_attr_put(a, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &mr->length,
				  sizeof(mr->length));
	if (!err)
		err = sd_attr_put(a, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &mr->iova, sizeof(mr->iova));
	return err;
}

/* ---- advice ----------------------------------------------------------------------- */

/* The errnos of the mlx5 driver since kernel 5.16. */
static int check_advice(const struct sd_pd *pd, uint32_t advice, uint32_t lkey,
			struct sd_mr **ret_mr)
{
	struct sd_mkey *k = sd_mkey_find(lkey);

	if (!k)
		return -ENOENT;
	if (k->kind == SD_MKEY_KLM)
		return -EINVAL;
	*ret_mr = sd_odp_find(lkey);
	if (!*ret_mr)
		return -ENOENT;
	if ((*ret_mr)->pd != pd)
		return -EPERM;
	if (advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE && !sd_access_writes((*ret_mr)->access))
		return -EPERM;
	return 0;
}

static int advise_one(struct sd_mr *mr, const struct ib_uverbs_sge *sge, uint32_t advice)
{
	uint64_t offset = sge->addr - mr->iova;

	if (!is_implicit(mr->start, mr->length, mr->access) &&
	    (offset >= mr->length || mr->length - offset < sge->length))
		return -EFAULT;
	return sd_odp_prefetch(mr, mr->start + offset, sge->length, advice);
}

int sd_cmd_mr_advise(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	const struct sd_pd *pd = sd_attr_obj(a, UVERBS_ATTR_ADVISE_MR_PD_HANDLE);
	const struct ib_uverbs_sge *sge;
	uint32_t len, num, i;
	uint64_t advice, flags;
	struct sd_mr *mr;
	int err = 0;

	if (!sd_config.advise)
		return -EOPNOTSUPP;
	sge = sd_attr_in(a, UVERBS_ATTR_ADVISE_MR_SGE_LIST, &len);
	sd_attr_get(a, UVERBS_ATTR_ADVISE_MR_ADVICE, &advice, sizeof(advice));
	sd_attr_get(a, UVERBS_ATTR_ADVISE_MR_FLAGS, &flags, sizeof(flags));
	if (flags & ~(uint64_t)IBV_ADVISE_MR_FLAG_FLUSH || len % sizeof(*sge))
		return -EINVAL;
	if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT)
		return -EOPNOTSUPP;
	num = len / (uint32_t)sizeof(*sge);
	if (!(flags & IBV_ADVISE_MR_FLAG_FLUSH)) {
		/* only queued by the driver: keys are checked first, the rest is never reported */
		for (i = 0; i < num; i++) {
			err = check_advice(pd, (uint32_t)advice, sge[i].lkey, &mr);
			if (err)
				return err;
		}
	}
	for (i = 0; i < num; i++) {
		err = check_advice(pd, (uint32_t)advice, sge[i].lkey, &mr);
		if (!err)
			err = advise_one(mr, &sge[i], (uint32_t)advice);
		if (err)
			break;
	}
	return flags & IBV_ADVISE_MR_FLAG_FLUSH ? err : 0;
}
