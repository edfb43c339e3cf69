/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibv_exp_create_mr() and what goes with it.
 *
 * The program gets the MR of ibv_alloc_null_mr() with the indirect key's values in it: a real one, that
 * the real ibv_dereg_mr() can free when a program reaches it past our header.
 */
#include "exp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

static uint32_t round4(uint32_t n)
{
	return (n + 3) & ~3u;
}

/* ---- create -------------------------------------------------------------------------- */

static int check_create(const struct ibv_exp_create_mr_in *in)
{
	uint32_t flags = in->attr.create_flags;

	if (!mlx5dv_is_supported(in->pd->context->device))
		return ENOSYS;
	if (in->comp_mask >= IBV_EXP_CREATE_MR_IN_RESERVED)
		return EINVAL;
	if (flags & IBV_EXP_MR_SIGNATURE_EN)
		return EOPNOTSUPP;
	if (flags != IBV_EXP_MR_INDIRECT_KLMS && flags != IBV_EXP_MR_FIXED_BUFFER_SIZE)
		return EINVAL;
	if (!in->attr.max_klm_list_size || in->attr.max_klm_list_size > IBMRI_MAX_TABLE)
		return EINVAL;
	return 0;
}

static void link_mr(struct ibmri_exp_mr *m)
{
	m->next = m->pd->umrs;
	m->pprev = &m->pd->umrs;
	if (m->next)
		m->next->pprev = &m->next;
	m->pd->umrs = m;
}

static void unlink_mr(struct ibmri_exp_mr *m)
{
	*m->pprev = m->next;
	if (m->next)
		m->next->pprev = m->pprev;
}

/* The key. The size that ibv_exp_query_mkey() tells is good for a repeat too. */
static int make_key(struct ibmri_exp_mr *m, uint32_t klms)
{
	struct ibmr_err err;
	int ret;

	pthread_mutex_lock(&m->pd->lock);
	ret = ibmr_mr_create(m->pd->ctx, NULL, round4(klms), &m->mr, &err);
	if (!ret)
		link_mr(m);
	pthread_mutex_unlock(&m->pd->lock);
	if (!ret)
		return 0;
	return err.code == IBMR_E_UNSUPPORTED ? ENOSYS : ibmri_exp_errno(&err);
}

static int drop_key(struct ibmri_exp_mr *m)
{
	struct ibmr_err err;
	int ret;

	pthread_mutex_lock(&m->pd->lock);
	ret = ibmr_mr_dereg(m->mr, &err);
	if (!ret)
		unlink_mr(m);
	pthread_mutex_unlock(&m->pd->lock);
	return ret ? ibmri_exp_errno(&err) : 0;
}

/* What the program holds. */
static int make_handle(struct ibmri_exp_mr *m, struct ibv_pd *pd)
{
	struct ibv_mr *ibv;

	errno = 0;
	ibv = ibv_alloc_null_mr(pd);
	if (!ibv)
		return !errno || errno == EOPNOTSUPP ? ENOSYS : errno;
	ibv->lkey = m->mr->lkey;
	ibv->rkey = m->mr->rkey;
	ibv->addr = NULL;
	ibv->length = 0;
	m->ibv = ibv;
	if (!ibmri_exp_mr_add(m))
		return 0;
	(void)ibv_dereg_mr(ibv); /* frees, and asks no device */
	return ENOMEM;
}

struct ibv_mr *ibv_exp_create_mr(struct ibv_exp_create_mr_in *in)
{
	struct ibmri_exp_mr *m;
	struct ibmr_err err;
	int ret;

	ret = check_create(in);
	if (ret)
		return ibmri_exp_null(ret);
	m = calloc(1, sizeof(*m));
	if (!m)
		return ibmri_exp_null(ENOMEM);
	if (ibmri_exp_pd_get(in->pd, &m->pd, &err)) {
		ret = ibmri_exp_errno(&err);
		goto free_mr;
	}
	ret = make_key(m, in->attr.max_klm_list_size);
	if (ret)
		goto free_mr;
	ret = make_handle(m, in->pd);
	if (ret)
		goto drop_key;
	return m->ibv;

drop_key:
	if (drop_key(m))
		return ibmri_exp_null(ret); /* it stays with the PD, and goes with it */
free_mr:
	free(m);
	return ibmri_exp_null(ret);
}

/* ---- dereg ------------------------------------------------------------------------------- */

static int dereg_indirect(struct ibmri_exp_mr *m)
{
	struct ibv_mr *ibv = m->ibv;
	int ret = drop_key(m);

	if (ret)
		return ret;
	ibmri_exp_remove(IBMRI_EXP_MR, &m->obj);
	free(m);
	return ibv_dereg_mr(ibv);
}

/* The record goes first: when the device has let go, the key may be another MR's at once. */
static int dereg_memory(struct ibmri_exp_mr *m)
{
	int ret;

	ibmri_exp_remove(IBMRI_EXP_MR, &m->obj);
	ret = ibv_dereg_mr(m->ibv);
	if (ret) {
		(void)ibmri_exp_mr_add(m);
		return ret;
	}
	if (m->map)
		munmap(m->map, m->map_length);
	free(m);
	return 0;
}

int ibmr_exp_dereg_mr(struct ibv_mr *mr)
{
	struct ibmri_exp_mr *m = ibmri_exp_mr_of(mr);

	if (!m)
		return ibv_dereg_mr(mr);
	return m->mr ? dereg_indirect(m) : dereg_memory(m);
}

int ibmri_exp_mrs_drop(struct ibmri_exp_pd *pd)
{
	struct ibmri_exp_mr *m, *next;
	int ret;

	for (m = pd->umrs; m; m = next) {
		next = m->next;
		ret = drop_key(m);
		if (ret)
			return ret;
		ibmri_exp_remove(IBMRI_EXP_MR, &m->obj);
		free(m);
	}
	return 0;
}

int ibv_exp_query_mkey(struct ibv_mr *mr, struct ibv_exp_mkey_attr *attr)
{
	const struct ibmri_exp_mr *m = ibmri_exp_mr_of(mr);

	if (attr->comp_mask >= IBV_EXP_MKEY_ATTR_RESERVED)
		return errno = EINVAL;
	attr->max_klm_list_size = m && m->mr ? (uint32_t)m->mr->max_klms : 0;
	return 0;
}

/* ---- list memory ---------------------------------------------------------------------------- */

static int check_list(const struct ibv_exp_mkey_list_container_attr *attr)
{
	if (!mlx5dv_is_supported(attr->pd->context->device))
		return ENOSYS;
	if (attr->comp_mask >= IBV_EXP_MKEY_LIST_CONTAINER_RESERVED ||
	    attr->mkey_list_type != IBV_EXP_MKEY_LIST_TYPE_INDIRECT_MR ||
	    !attr->max_klm_list_size || attr->max_klm_list_size > IBMRI_MAX_TABLE)
		return EINVAL;
	return 0;
}

struct ibv_exp_mkey_list_container *
ibv_exp_alloc_mkey_list_memory(struct ibv_exp_mkey_list_container_attr *attr)
{
	struct ibmri_exp_list *l;
	int ret;

	ret = check_list(attr);
	if (ret)
		return ibmri_exp_null(ret);
	l = calloc(1, sizeof(*l));
	if (!l)
		return ibmri_exp_null(ENOMEM);
	l->head.max_klm_list_size = attr->max_klm_list_size;
	l->head.context = attr->pd->context;
	/* with room for a repeat's header; the kernel gives whole pages, which is aligned enough */
	l->bytes = (size_t)(round4(attr->max_klm_list_size) + 4) * IBMRI_KLM_BYTES;
	l->buf = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (l->buf == MAP_FAILED) {
		ret = ENOMEM;
		goto free_list;
	}
	errno = 0;
	l->mr = ibv_reg_mr(attr->pd, l->buf, l->bytes, 0);
	if (!l->mr) {
		ret = errno ? errno : ENOMEM;
		goto unmap;
	}
	return &l->head;

unmap:
	munmap(l->buf, l->bytes);
free_list:
	free(l);
	return ibmri_exp_null(ret);
}

int ibv_exp_dealloc_mkey_list_memory(struct ibv_exp_mkey_list_container *mem)
{
	struct ibmri_exp_list *l = (struct ibmri_exp_list *)mem;
	int ret = ibv_dereg_mr(l->mr);

	if (ret)
		return errno = ret;
	munmap(l->buf, l->bytes);
	free(l);
	return 0;
}
