/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests that are old programs: they include what those did, and run on soft0. */
#ifndef EXP_RIG_H
#define EXP_RIG_H

#include <infiniband/verbs.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "soft0.h"

#define PAGE 4096ul
#define ALL                                                                                      \
	(IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_REMOTE_WRITE | IBV_EXP_ACCESS_REMOTE_READ | \
	 IBV_EXP_ACCESS_REMOTE_ATOMIC)

/* The call must return this errno (of either sign), and set errno to it. */
#define FAILS(call, err_no)                                                                  \
	do {                                                                                 \
		int ret_;                                                                    \
		errno = 0;                                                                   \
		ret_ = (call);                                                               \
		if (ret_ != (err_no) || errno != (err_no))                                   \
			fail_msg("%s: returned %d, errno %s", #call, ret_, strerror(errno)); \
	} while (0)
#define NO_OBJECT(call, err_no)                                                        \
	do {                                                                           \
		errno = 0;                                                             \
		if ((call) || errno != (err_no))                                       \
			fail_msg("%s: not NULL, or errno %s", #call, strerror(errno)); \
	} while (0)

extern struct rig {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;   /* takes UMRs, connected to peer */
	struct ibv_qp *peer; /* an ordinary one of ibv_create_qp() */
} rig;

/* Setup and teardown: all of the above; at the end nothing of the device is left. */
int rig_setup(void **state);
int rig_teardown(void **state);
/* Only the context, PD and CQ. */
int rig_setup_bare(void **state);

void rig_word(const char *word, const char *value);
uint64_t rig_counter(const char *name);

struct ibv_qp *rig_umr_qp(uint32_t wrs, uint32_t klms, int sig_all);
void rig_connect(struct ibv_qp *qp, struct ibv_qp *to);

struct ibv_mr *rig_reg(void *addr, size_t length, uint64_t access);
struct ibv_mr *rig_create(uint32_t klms);
struct ibv_exp_mkey_list_container *rig_list(uint32_t klms);
void rig_dereg(struct ibv_mr *mr);

/* A work request that fills umr, signaled; its entries are to be set. */
struct ibv_exp_send_wr rig_fill(struct ibv_mr *umr, uint64_t base, uint64_t access);
void rig_set_list(struct ibv_exp_send_wr *wr, struct ibv_exp_mem_region *regions, uint32_t num);
void rig_set_repeat(struct ibv_exp_send_wr *wr, struct ibv_exp_mem_repeat_block *blocks,
		    uint32_t num, size_t *count);
int rig_post(struct ibv_qp *qp, struct ibv_exp_send_wr *wr);
/* Post and wait: the completion must be a UMR's. */
void rig_do(struct ibv_qp *qp, struct ibv_exp_send_wr *wr);
void rig_invalidate(struct ibv_qp *qp, struct ibv_mr *umr);

/* The next completion of the CQ, within a deadline. */
struct ibv_exp_wc rig_poll(void);
/* There is none. */
void rig_quiet(void);
void rig_done(uint64_t wr_id, enum ibv_exp_wc_opcode opcode);

void rig_post_recv(struct ibv_qp *qp, uint64_t addr, uint32_t length, uint32_t lkey,
		   uint64_t wr_id);
void rig_post_send(struct ibv_qp *qp, uint64_t addr, uint32_t length, uint32_t lkey,
		   uint64_t wr_id);
/* RDMA through a remote key from or into flat memory; the status. */
enum ibv_wc_status rig_rdma(struct ibv_qp *qp, enum ibv_wr_opcode opcode, void *local,
			    uint32_t length, uint64_t remote, uint32_t rkey);

/* ibv_dereg_mr() as another object has it, that knows no experimental verbs. */
int plain_dereg_mr(struct ibv_mr *mr);

#endif /* EXP_RIG_H */
