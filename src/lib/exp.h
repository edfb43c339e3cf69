/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The experimental verbs, inside: what is kept beside the verbs objects that programs hold.
 *
 *   exp_device.c                     questions to a device
 *   exp_mr.c exp_memory.c            indirect MRs and list memory; registered memory and prefetch
 *   exp_qp.c exp_post.c exp_umr.c    queue pairs; work requests, of which UMRs are ours to write
 *   exp_poll.c                       completions
 *   exp_objects.c                    the records, found by what the device knows the objects by
 *
 * Programs get real verbs objects, so that every ordinary call works on them. The records come from
 * the same calls as libibmr's: a ctx per PD, an ibmr_mr per indirect key, umr.c's bytes.
 */
#ifndef IBMR_EXP_H
#define IBMR_EXP_H

#include <pthread.h>

#include "private.h"

#define IBMR_EXP_KEEP_VERBS
#include "infiniband/verbs_exp.h"

#define IBMRI_EXP_INLINE_KLMS 20u /* as the old driver had it on every device */

/* The head of a record. A key is never that of two live objects of one kind. */
struct ibmri_exp_obj {
	const void *owner; /* the verbs context; of a PD: the PD */
	uint64_t id;	   /* lkey, queue pair number, handle */
};

enum ibmri_exp_kind { IBMRI_EXP_PD, IBMRI_EXP_MR, IBMRI_EXP_QP, IBMRI_EXP_KINDS };

struct ibmri_exp_pd {
	struct ibmri_exp_obj obj;
	struct ibv_pd *pd;
	struct ibv_context *context;
	struct ibmr_ctx *ctx;
	pthread_mutex_t lock;	   /* a ctx is one thread's at a time */
	struct ibmri_exp_mr *umrs; /* under the lock */
	struct ibmri_exp_qp *qps;
};

struct ibmri_exp_mr {
	struct ibmri_exp_obj obj;
	struct ibv_mr *ibv; /* what the program holds */

	/* indirect */
	struct ibmr_mr *mr; /* NULL: registered memory */
	struct ibmri_exp_pd *pd;
	uint32_t depth; /* levels of keys under the last fill */
	struct ibmri_exp_mr *next, **pprev;

	/* registered memory */
	uint64_t access; /* IBV_ACCESS_* */
	void *map;	 /* to be unmapped with it, or NULL */
	size_t map_length;
};

/* A queue pair that takes UMRs. */
struct ibmri_exp_qp {
	struct ibmri_exp_obj obj;
	struct ibv_qp *qp;
	struct ibmri_exp_pd *pd;
	struct mlx5dv_mkey *fence; /* the key of the request behind each UMR */
	uint32_t inline_klms;	   /* entries, a repeat's header not counted */
	bool sig_all;
	struct ibmri_exp_qp *next, **pprev;
};

/* What ibv_exp_alloc_mkey_list_memory() returns is its head. */
struct ibmri_exp_list {
	struct ibv_exp_mkey_list_container head;
	struct ibv_mr *mr;
	void *buf;
	size_t bytes;
};

/* ---- exp_objects.c ------------------------------------------------------------------ */

/* 0 or -ENOMEM. A record that is there under the same key is of an object that is gone: *ret_old. */
int ibmri_exp_add(enum ibmri_exp_kind kind, struct ibmri_exp_obj *obj,
		  struct ibmri_exp_obj **ret_old);
void *ibmri_exp_find(enum ibmri_exp_kind kind, const void *owner, uint64_t id);
/* Nothing to do when another record stands there by now. */
void ibmri_exp_remove(enum ibmri_exp_kind kind, struct ibmri_exp_obj *obj);

/* By its context and lkey. */
int ibmri_exp_mr_add(struct ibmri_exp_mr *m);
/* NULL: not one of ours. */
struct ibmri_exp_mr *ibmri_exp_mr_of(const struct ibv_mr *mr);
struct ibmri_exp_qp *ibmri_exp_qp_of(const struct ibv_qp *qp);
/* Of a PD, made at first need. */
int ibmri_exp_pd_get(struct ibv_pd *pd, struct ibmri_exp_pd **ret_pd, struct ibmr_err *err);

/* The errno for an error of libibmr's, as the old calls would put it. */
int ibmri_exp_errno(const struct ibmr_err *err);
/* NULL with errno set. */
void *ibmri_exp_null(int err_no);

/* ---- exp_mr.c, exp_qp.c: what their PD takes with it ------------------------------------- */

/* Destroy the keys of its indirect MRs; the program's handles live on without one. */
int ibmri_exp_mrs_drop(struct ibmri_exp_pd *pd);
/* The records of queue pairs that are gone; true when there is no other. */
bool ibmri_exp_qps_drop(struct ibmri_exp_pd *pd);

/* ---- exp_umr.c ----------------------------------------------------------------------------- */

/* Post a fill or an invalidate. 0 or a positive errno. */
int ibmri_exp_post_umr(struct ibv_qp *qp, const struct ibv_exp_send_wr *wr);

#endif /* IBMR_EXP_H */
