/* SPDX-License-Identifier: BSD-2-Clause */
/* The records behind the experimental verbs: search trees, one for each kind of object. */
#include "exp.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;    /* of the trees */
static pthread_mutex_t pd_lock = PTHREAD_MUTEX_INITIALIZER; /* two threads may need a PD at once */
static void *trees[IBMRI_EXP_KINDS];

static int by_key(const void *a, const void *b)
{
	const struct ibmri_exp_obj *x = a, *y = b;

	if (x->owner != y->owner)
		return (uintptr_t)x->owner < (uintptr_t)y->owner ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

int ibmri_exp_add(enum ibmri_exp_kind kind, struct ibmri_exp_obj *obj,
		  struct ibmri_exp_obj **ret_old)
{
	struct ibmri_exp_obj **at;

	*ret_old = NULL;
	pthread_mutex_lock(&lock);
	at = tsearch(obj, &trees[kind], by_key);
	if (at && *at != obj) {
		*ret_old = *at;
		*at = obj;
	}
	pthread_mutex_unlock(&lock);
	return at ? 0 : -ENOMEM;
}

void *ibmri_exp_find(enum ibmri_exp_kind kind, const void *owner, uint64_t id)
{
	const struct ibmri_exp_obj key = { owner, id };
	struct ibmri_exp_obj **at, *found;

	pthread_mutex_lock(&lock);
	at = tfind(&key, &trees[kind], by_key);
	found = at ? *at : NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

void ibmri_exp_remove(enum ibmri_exp_kind kind, struct ibmri_exp_obj *obj)
{
	struct ibmri_exp_obj **at;

	pthread_mutex_lock(&lock);
	at = tfind(obj, &trees[kind], by_key);
	if (at && *at == obj)
		tdelete(obj, &trees[kind], by_key);
	pthread_mutex_unlock(&lock);
}

struct ibmri_exp_mr *ibmri_exp_mr_of(const struct ibv_mr *mr)
{
	struct ibmri_exp_mr *m = ibmri_exp_find(IBMRI_EXP_MR, mr->context, mr->lkey);

	return m && m->ibv == mr ? m : NULL;
}

int ibmri_exp_mr_add(struct ibmri_exp_mr *m)
{
	struct ibmri_exp_obj *old;
	struct ibmri_exp_mr *was;
	int ret;

	m->obj = (struct ibmri_exp_obj){ m->ibv->context, m->ibv->lkey };
	ret = ibmri_exp_add(IBMRI_EXP_MR, &m->obj, &old);
	was = (struct ibmri_exp_mr *)old;
	if (was && !was->mr)
		free(was); /* an indirect one is still its PD's */
	return ret;
}

struct ibmri_exp_qp *ibmri_exp_qp_of(const struct ibv_qp *qp)
{
	struct ibmri_exp_qp *q = ibmri_exp_find(IBMRI_EXP_QP, qp->context, qp->qp_num);

	return q && q->qp == qp ? q : NULL;
}

/* ---- PDs -------------------------------------------------------------------------------- */

static int pd_new(struct ibv_pd *pd, struct ibmri_exp_pd **ret_pd, struct ibmr_err *err)
{
	const struct ibmr_ctx_opts opts = { .gid_index = -1, .timeout_ms = UINT32_MAX };
	struct ibmri_exp_pd *p = calloc(1, sizeof(*p));
	struct ibmri_exp_obj *old;
	int ret;

	if (!p)
		return ibmri_no_memory(err, "calloc", sizeof(*p));
	ret = ibmr_ctx_from_pd(pd, &opts, &p->ctx, err);
	if (ret)
		goto free_pd;
	p->obj = (struct ibmri_exp_obj){ pd, pd->handle };
	p->pd = pd;
	p->context = pd->context;
	pthread_mutex_init(&p->lock, NULL);
	/* an old one went past us, with its context: there is nothing left that could be freed */
	ret = ibmri_exp_add(IBMRI_EXP_PD, &p->obj, &old);
	if (ret) {
		ret = ibmri_no_memory(err, "tsearch", sizeof(*p));
		goto close_ctx;
	}
	*ret_pd = p;
	return 0;

close_ctx:
	pthread_mutex_destroy(&p->lock);
	(void)ibmr_ctx_close(p->ctx, NULL); /* it has nothing of the device yet */
free_pd:
	free(p);
	return ret;
}

/* Back among the records; without memory for that the next use starts another. */
static void pd_keep(struct ibmri_exp_pd *p)
{
	struct ibmri_exp_obj *old;

	(void)ibmri_exp_add(IBMRI_EXP_PD, &p->obj, &old);
}

int ibmri_exp_pd_get(struct ibv_pd *pd, struct ibmri_exp_pd **ret_pd, struct ibmr_err *err)
{
	int ret = 0;

	pthread_mutex_lock(&pd_lock);
	*ret_pd = ibmri_exp_find(IBMRI_EXP_PD, pd, pd->handle);
	if (!*ret_pd || (*ret_pd)->context != pd->context)
		ret = pd_new(pd, ret_pd, err);
	pthread_mutex_unlock(&pd_lock);
	return ret;
}

/* The records of a PD that is gone. */
static void pd_free(struct ibmri_exp_pd *p)
{
	if (!ibmri_exp_qps_drop(p) || ibmri_exp_mrs_drop(p))
		return; /* records still point here */
	(void)ibmr_ctx_close(p->ctx, NULL);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

/* An indirect MR that was left goes with its PD: a key whose ibv_dereg_mr() went past our header would
 * hold the PD for ever. */
int ibmr_exp_dealloc_pd(struct ibv_pd *pd)
{
	struct ibmri_exp_pd *p = ibmri_exp_find(IBMRI_EXP_PD, pd, pd->handle);
	int ret;

	if (!p || p->context != pd->context)
		return ibv_dealloc_pd(pd);
	ibmri_exp_remove(IBMRI_EXP_PD, &p->obj);
	ret = ibv_dealloc_pd(pd);
	if (ret && ibmri_exp_qps_drop(p) && !ibmri_exp_mrs_drop(p))
		ret = ibv_dealloc_pd(pd);
	if (ret)
		pd_keep(p);
	else
		pd_free(p);
	return ret;
}

/* ---- errors ---------------------------------------------------------------------------- */

int ibmri_exp_errno(const struct ibmr_err *err)
{
	switch (err->code) {
	case IBMR_E_UNSUPPORTED:
		return EOPNOTSUPP;
	case IBMR_E_NO_MEMORY:
	case IBMR_E_KEY_TABLE:
	case IBMR_E_MEMLOCK:
		return ENOMEM;
	case IBMR_E_BAD_ADDRESS:
		return EFAULT;
	default:
		return err->sys_errno ? err->sys_errno : EINVAL;
	}
}

void *ibmri_exp_null(int err_no)
{
	errno = err_no;
	return NULL;
}
