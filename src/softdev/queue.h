/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue objects, and what the queue files ask of each other:
 *
 *   engine.c  finds rung doorbells, lets every queue pair work, releases completions in order
 *   wqe.c     the requester: one work request from the ring to its completion (rdma.c, send.c, peer.c)
 *   resp.c    the responder: receive work requests, what a peer may do, flushing
 *   umr.c     UMR and local invalidate
 *   qp.c modify.c cq.c srq.c   the objects and their commands
 *
 * Everything here is called with sd_lock held.
 */
#ifndef SOFTDEV_QUEUE_H
#define SOFTDEV_QUEUE_H

#include <endian.h>

#include "mkey.h"
#include "span.h"

/* Doorbell records and rings are the process's memory: plain loads and stores, in order. */
static inline uint32_t sd_db_read(const uint32_t *db)
{
	return be32toh(__atomic_load_n(db, __ATOMIC_ACQUIRE));
}

struct sd_cq {
	struct sd_obj obj;
	struct sd_cq *next, **prev;
	uint32_t cqn;
	uint8_t *buf;
	uint32_t *db; /* [0] consumer, [1] arm */
	uint32_t ncqe, cqe_size;
	uint32_t pi;	    /* where the next CQE goes */
	uint32_t solicited; /* pi behind the last CQE that a solicited-only arm waits for */
	uint32_t fired;	    /* the arm record that was answered last */
	bool ignore_overrun, broken;
	struct sd_channel *channel;
	uint64_t lost; /* break=lost_completion counts here */
};

struct sd_srq {
	struct sd_obj obj;
	struct sd_srq *next, **prev;
	uint32_t srqn;
	struct sd_pd *pd;
	uint8_t *buf;
	uint32_t *db;
	uint32_t num, shift; /* WQEs, log of their size */
	uint32_t max_wr, max_sge, limit;
	uint16_t head;	/* index of the next WQE */
	uint16_t taken; /* how many were taken, as the doorbell counts */
	uint16_t seen;	/* the doorbell when last looked at */
	bool broken;
};

/* A ring is written and read by plain accesses later: find out first whether it is there. */
int sd_probe_ring(const void *buf, size_t size);

enum sd_stall { SD_RUNS, SD_WAITS_RNR, SD_WAITS_PEER };

struct sd_mcast {
	struct sd_mcast *next;
	uint8_t gid[16];
	uint16_t lid;
};

struct sd_qp {
	struct sd_obj obj;
	struct sd_qp *next, **prev;
	struct sd_qp *same_hash;
	struct sd_qp *next_active; /* engine.c */
	bool active;
	uint32_t bell;
	uint32_t qpn;
	enum ib_uverbs_qp_type type;
	enum ibv_qp_state state;
	struct sd_pd *pd;
	struct sd_cq *send_cq, *recv_cq;
	struct sd_srq *srq;
	uint32_t flags; /* MLX5_QP_FLAG_* */
	uint32_t uidx;
	bool sig_all;
	uint32_t scatter_req, scatter_resp; /* bytes a CQE may carry: 0, 32, 64 */
	struct ib_uverbs_qp_cap cap;
	struct ib_uverbs_modify_qp attr; /* as set so far */
	uint32_t *db;			 /* [0] receive, [1] send; aligned to 8 bytes */
	/* send queue: WQEBBs of 64 bytes */
	uint8_t *sq;
	uint32_t sq_num;
	uint16_t sq_next, sq_seen;
	uint32_t sq_psn; /* of the next request */
	bool draining;	 /* SQD was asked for and its event is due */
	enum sd_stall stall;
	uint64_t stall_until; /* ns; UINT64_MAX: for ever */
	/* receive queue */
	uint8_t *rq;
	uint32_t rq_num, rq_shift;
	uint16_t rq_next, rq_seen;
	uint32_t rq_psn;
	bool last_wqe; /* the event of a queue pair on an SRQ was sent */
	struct sd_mcast *mcast;
};

/* ---- completions ------------------------------------------------------------------ */

/* A CQE before its place in the queue is known: opcode in the upper half of op_own. */
struct sd_cqe {
	struct mlx5_cqe64 cqe;
	uint8_t data[64]; /* scattered to the CQE */
	uint32_t scatter; /* 0, 32 or 64 */
	bool solicited;	  /* or in error: a solicited-only arm waits for both */
};

/* The completion goes out now or, in its order, later; a staged UMR becomes visible with it. cqe and
 * st may each be NULL. */
void sd_complete(struct sd_qp *qp, struct sd_cq *cq, const struct sd_cqe *cqe,
		 struct sd_staged *st);
/* What is still due of an object that goes away or is reset. */
void sd_forget_qp(struct sd_qp *qp);
void sd_forget_cq(struct sd_cq *cq);
/* A fence on this queue pair: its UMRs are visible from here on. */
void sd_fence(struct sd_qp *qp);

void sd_cq_write(struct sd_cq *cq, const struct sd_cqe *cqe); /* cq.c: into the ring */
void sd_cq_check_arm(struct sd_cq *cq);

/* A requester's completion: opcode and index are the work request's. */
void sd_cqe_req(struct sd_cqe *c, const struct sd_qp *qp, uint8_t opcode, uint16_t index);
void sd_cqe_error(struct sd_cqe *c, const struct sd_qp *qp, bool responder, uint8_t syndrome,
		  uint8_t opcode, uint16_t index);

/* ---- work ---------------------------------------------------------------------------- */

/* One step of a queue pair; true when something was done. */
bool sd_qp_work(struct sd_qp *qp);
/* Into an error state: ERR, or SQE for a send queue alone. The flush is the engine's work. */
void sd_qp_fail(struct sd_qp *qp, enum ibv_qp_state state);
/* The engine's table of doorbells. -ENOMEM. */
int sd_bell_add(struct sd_qp *qp);
void sd_bell_remove(struct sd_qp *qp);
/* The queue pair begins anew: its doorbell record counts from 0. */
void sd_bell_reset(struct sd_qp *qp);
/* There may be something to do for it; run does it, now or on the thread. */
void sd_activate(struct sd_qp *qp);
void sd_engine_run(void);
uint64_t sd_now_ns(void);

/* All of the device's queues, for doorbells and for numbers. */
extern struct sd_qp *sd_qps;
extern struct sd_cq *sd_cqs;
extern struct sd_srq *sd_srqs;
struct sd_qp *sd_qp_find(uint32_t qpn);
void sd_srq_check_limit(struct sd_srq *srq);

/* The port's, in bytes: what a datagram may carry. */
#define SD_PORT_MTU 4096

/* A fetched send work request. */
#define SD_WQE_MAX 1024
struct sd_wqe {
	_Alignas(16) uint8_t b[SD_WQE_MAX];
	uint32_t bytes; /* ds * 16 */
	uint16_t index;
	uint8_t opcode, opmod, fm_ce_se;
	uint32_t imm; /* host order */
};

/* A UMR: 0, or the syndrome of its refusal. *ret_st is what it makes of the key. */
uint8_t sd_umr(struct sd_qp *qp, const struct sd_wqe *w, struct sd_staged **ret_st);
/* A peer's send asks for the invalidation of a key. false: refused. */
bool sd_invalidate(struct sd_qp *qp, uint32_t key);

/* ---- the responder (resp.c) ------------------------------------------------------------- */

/* A receive work request that was taken off its queue. */
struct sd_recv {
	struct sd_srq *srq; /* NULL: the queue pair's own */
	uint16_t index;
	uint32_t num, room; /* data segments */
	uint32_t pdn;
	struct mlx5_wqe_data_seg seg[64];
};

bool sd_recv_posted(struct sd_qp *qp);
/* -EAGAIN: nothing posted. */
int sd_recv_take(struct sd_qp *qp, struct sd_recv *r);

/* What arrives at a queue pair that consumes a receive work request. */
struct sd_message {
	uint8_t opcode;		       /* the CQE's: MLX5_CQE_RESP_* */
	const struct sd_span *payload; /* NULL: the data went elsewhere (write with immediate) */
	uint64_t bytes;
	uint32_t imm_be;
	bool solicited;
	bool grh; /* the 40 bytes in front of a datagram are a header */
	uint32_t src_qp;
};
/* 0, or the syndrome that the requester sees; the responder's own completion is made here. */
uint8_t sd_deliver(struct sd_qp *qp, const struct sd_message *m);
bool sd_flush_recv(struct sd_qp *qp);

/* Bytes that a CQE of this queue pair may carry in place of memory. */
static inline uint32_t sd_scatter_room(const struct sd_qp *qp, bool responder)
{
	uint32_t room = responder ? qp->scatter_resp : qp->scatter_req;

	if (!room && sd_config.break_scatter_cqe && qp->type == IB_UVERBS_QPT_RC)
		return 32;
	return room;
}

#endif /* SOFTDEV_QUEUE_H */
