/* SPDX-License-Identifier: BSD-2-Clause */
/* One send work request on its way: what the requester's files share. */
#ifndef SOFTDEV_WQE_H
#define SOFTDEV_WQE_H

#include "queue.h"

/* What executing comes to: 0, a syndrome, or this. */
#define SD_WAIT (-EAGAIN)

struct sd_work {
	struct sd_qp *qp;
	const struct sd_wqe *w;
	struct sd_cqe cqe;
	struct sd_staged *st;
};

/* wqe.c: does it ask for a completion? The requester's own end, from the segments at `at` on, checked:
 * its syndrome, or 0. */
bool sd_wants_cqe(const struct sd_wqe *w);
uint8_t sd_own_end(struct sd_qp *qp, const struct sd_wqe *w, uint32_t at, struct sd_span *s,
		   bool write);

/* What sd_span_check says, as the requester sees it when it was the responder's end, or its own. */
uint8_t sd_syndrome(int err, bool remote);

/* peer.c: who is at the other end, and what to do when nobody is, or not yet, or it refuses. */
bool sd_receives(const struct sd_qp *qp);
struct sd_qp *sd_peer(const struct sd_qp *qp);
void sd_psn_advance(struct sd_qp *qp, struct sd_qp *peer, uint64_t bytes);
int sd_wait_peer(struct sd_qp *qp);
int sd_wait_rnr(struct sd_qp *qp, const struct sd_qp *peer);
int sd_refuse(struct sd_qp *qp, struct sd_qp *peer, uint8_t syndrome);

/* rdma.c and send.c: 0, a syndrome, or SD_WAIT. */
int sd_do_write(struct sd_work *k, bool imm);
int sd_do_read(struct sd_work *k);
int sd_do_atomic(struct sd_work *k, bool swap);
int sd_do_send(struct sd_work *k);

#endif /* SOFTDEV_WQE_H */
