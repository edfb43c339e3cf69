/* SPDX-License-Identifier: BSD-2-Clause */
/* Plain verbs on soft0 for the device's own tests: every helper fails the test when verbs do. */
#ifndef RIG_H
#define RIG_H

#include <endian.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "soft0.h"

#define ALL_ACCESS                                                                   \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* What a queue pair is made of; zero is the default for each. */
struct qp_opts {
	enum ibv_qp_type type; /* RC */
	struct ibv_cq *send_cq, *recv_cq;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	uint32_t max_wr, max_sge, max_inline;
	bool sig_all;
	bool scatter;	  /* to the CQE, as libmlx5's default is; else off */
	bool scatter_req; /* on the requester's side too */
};

struct rig {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp; /* RC, connected to itself */
	uint8_t *buf;	   /* BUF_BYTES of registered memory with all rights */
	struct ibv_mr *mr;
};

#define BUF_BYTES 65536

struct ibv_context *open_soft0(void);
struct ibv_cq *make_cq(struct rig *r, int cqe);
struct ibv_qp *make_qp(struct rig *r, const struct qp_opts *o);

/* State changes with sensible attributes; connecting takes both to RTS. */
void qp_init(struct ibv_qp *qp);
void qp_rtr(struct ibv_qp *qp, uint32_t dest);
void qp_rts(struct ibv_qp *qp);
void qp_set_state(struct ibv_qp *qp, enum ibv_qp_state state);
enum ibv_qp_state qp_state(struct ibv_qp *qp);
void connect_qps(struct ibv_qp *a, struct ibv_qp *b);
void reconnect_self(struct ibv_qp *qp);

/* cmocka fixtures: a rig with a self-connected QP as *state, soft0 at its defaults of this run. */
int rig_setup(void **state);
int rig_teardown(void **state);

/* The next completion within a deadline. */
struct ibv_wc wait_wc(struct ibv_cq *cq);
void expect_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status);
/* None now, and, in the asynchronous mode, none soon. */
void expect_no_wc(struct ibv_cq *cq);
enum ibv_event_type wait_async(struct ibv_context *ctx);
void expect_no_async(struct ibv_context *ctx);

/* Work requests, signaled, wr_id as given. */
struct ibv_sge sge(const struct ibv_mr *mr, const void *at, uint32_t length);
void post_rdma(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge s,
	       uint32_t rkey, uint64_t raddr);
void post_atomic(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge s,
		 uint32_t rkey, uint64_t raddr, uint64_t compare_add, uint64_t swap);
void post_send(struct ibv_qp *qp, uint64_t id, struct ibv_sge s);
void post_recv(struct ibv_qp *qp, uint64_t id, struct ibv_sge s);
void post_wr(struct ibv_qp *qp, struct ibv_send_wr *wr);

/* ---- raw UMR work requests -------------------------------------------------------------- */

struct umr {
	uint8_t b[1024];
	uint32_t bytes;
};

#define UMR_FILL_MASK                                                                        \
	(MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR |          \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ |                                    \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE |                                   \
	 MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC)

struct klm {
	const struct ibv_mr *mr; /* NULL: key below */
	const void *at;
	uint32_t bytes;
	uint16_t stride; /* repeat */
	uint32_t key;
	uint64_t addr;
};

#define KLM(m, a, n)                               \
	{                                          \
		.mr = (m), .at = (a), .bytes = (n) \
	}
#define BLOCK(m, a, n, st)                                         \
	{                                                          \
		.mr = (m), .at = (a), .bytes = (n), .stride = (st) \
	}

/* A UMR for qp that fills key: the parts can be changed before it is posted. */
struct mlx5_wqe_ctrl_seg *umr_ctrl_seg(struct umr *u);
struct mlx5_wqe_umr_ctrl_seg *umr_seg(struct umr *u);
struct mlx5_wqe_mkey_context_seg *umr_mkc(struct umr *u);
void *umr_table(struct umr *u);
void umr_start(struct umr *u, struct ibv_qp *qp, uint32_t key, int access, uint64_t base,
	       uint64_t length);
void umr_set_bytes(struct umr *u, uint32_t bytes);
void umr_list(struct umr *u, const struct klm *klms, uint32_t num);
void umr_repeat(struct umr *u, uint32_t count, const struct klm *blocks, uint32_t num);
/* The table in memory; bytes as the data segment says. */
void umr_pointer(struct umr *u, uint32_t octowords, struct ibv_sge s);
void umr_invalidate(struct umr *u, struct ibv_qp *qp, uint32_t key);
void post_umr(struct ibv_qp *qp, uint64_t id, struct umr *u);
void post_raw(struct ibv_qp *qp, uint64_t id, const void *wqe);
uint32_t klm_bytes(const struct klm *klms, uint32_t num);

struct mlx5dv_mkey *make_mkey(struct ibv_pd *pd, uint16_t entries);
/* Filled, and its completion polled. */
void fill_list(struct rig *r, struct mlx5dv_mkey *m, int access, const struct klm *klms,
	       uint32_t num);
void fill_repeat(struct rig *r, struct mlx5dv_mkey *m, int access, uint32_t count,
		 const struct klm *blocks, uint32_t num);

uint64_t counter(const char *name);
/* soft0_set, which must succeed; mode_restore goes back to this run's mode and all defaults. */
void set(const char *word, const char *value);
void mode_restore(void);
bool mode_is(const char *word); /* of this run */

#endif /* RIG_H */
