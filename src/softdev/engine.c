/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When work requests run and when their completions appear.
 *
 * A completion that may not appear yet waits in one line for the whole device: behind an unseen UMR
 * (strict mode), held, or delayed. Everything after it waits behind it, so the order is kept.
 *
 * sync    a lock's release looks at the doorbells and runs what they rang for
 * async   a lock's release wakes the engine's thread, which does so
 * strict  as sync, but a UMR becomes visible, and its completion appears, only at a fence of its
 *         queue pair or when the process comes back without having rung anything
 */
#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "queue.h"
#include "thread.h"

/* The line of completions that are not out yet. */
struct due {
	struct due *next;
	struct sd_qp *qp;
	struct sd_cq *cq;      /* NULL: no completion */
	struct sd_staged *umr; /* NULL: none, or seen already */
	uint64_t at;	       /* ns, 0: at once */
	struct sd_cqe cqe;
};

static struct {
	struct due *first, **last;
} line = { .last = &line.first };

struct sd_qp *sd_qps;

/* Every queue pair's doorbell record, close together: each lock's release looks at all of them. */
struct bell {
	const uint64_t *db; /* both counters at once */
	uint64_t seen;
	struct sd_qp *qp;
};

static struct {
	struct bell *at;
	uint32_t num, room;
} bells;

/* Queue pairs that may have something to do. */
static struct sd_qp *active;
static bool activated, running;

uint64_t sd_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* ---- completions ---------------------------------------------------------------- */

static void see(struct sd_staged **st)
{
	if (*st)
		sd_staged_apply(*st);
	*st = NULL;
}

static void put_out(struct sd_cq *cq, const struct sd_cqe *cqe)
{
	uint8_t opcode = cqe->cqe.op_own >> 4;

	if (opcode == MLX5_CQE_REQ && sd_config.break_lost_completion && ++cq->lost == 3)
		return;
	sd_count("cqe", 1);
	if (opcode == MLX5_CQE_REQ_ERR || opcode == MLX5_CQE_RESP_ERR)
		sd_count("cqe.error", 1);
	sd_cq_write(cq, cqe);
}

static void line_pop(void)
{
	struct due *d = line.first;

	line.first = d->next;
	if (!line.first)
		line.last = &line.first;
	see(&d->umr);
	if (d->cq)
		put_out(d->cq, &d->cqe);
	free(d);
}

void sd_complete(struct sd_qp *qp, struct sd_cq *cq, const struct sd_cqe *cqe, struct sd_staged *st)
{
	bool later = line.first || sd_config.hold || sd_config.delay_us ||
		     (st && sd_config.mode == SD_STRICT);
	struct due *d = later ? calloc(1, sizeof(*d)) : NULL;

	if (!d) {
		/* No memory to wait in: out with everything, in order. */
		while (line.first)
			line_pop();
		see(&st);
		if (cqe)
			put_out(cq, cqe);
		return;
	}
	d->qp = qp;
	if (cqe) {
		d->cq = cq;
		d->cqe = *cqe;
	}
	d->umr = st;
	if (st)
		sd_staged_post(st);
	if (st && sd_config.mode != SD_STRICT)
		see(&d->umr);
	if (sd_config.delay_us)
		d->at = sd_now_ns() + (uint64_t)sd_config.delay_us * 1000;
	*line.last = d;
	line.last = &d->next;
}

/* A UMR is seen, and what it was built upon before it. */
static void see_up_to(struct due *last)
{
	const struct sd_mkey *mkey = last->umr->mkey;

	for (struct due *d = line.first; last->umr; d = d->next)
		if (d->umr && d->umr->mkey == mkey)
			see(&d->umr);
}

void sd_fence(struct sd_qp *qp)
{
	for (struct due *d = line.first; d; d = d->next)
		if (d->qp == qp && d->umr)
			see_up_to(d);
}

void sd_forget_qp(struct sd_qp *qp)
{
	sd_fence(qp);
	for (struct due *d = line.first; d; d = d->next) {
		if (d->qp == qp) {
			d->cq = NULL;
			d->qp = NULL;
		}
	}
}

void sd_forget_cq(struct sd_cq *cq)
{
	for (struct due *d = line.first; d; d = d->next)
		if (d->cq == cq)
			d->cq = NULL;
}

void sd_engine_forget_mkey(struct sd_mkey *mkey)
{
	for (struct due *d = line.first; d; d = d->next) {
		if (d->umr && d->umr->mkey == mkey) {
			d->umr->mkey = NULL;
			see(&d->umr);
		}
	}
}

/* ---- doorbells --------------------------------------------------------------------- */

int sd_bell_add(struct sd_qp *qp)
{
	if (bells.num == bells.room) {
		uint32_t room = bells.room ? bells.room * 2 : 16;
		struct bell *at = realloc(bells.at, room * sizeof(*at));

		if (!at)
			return -ENOMEM;
		bells.at = at;
		bells.room = room;
	}
	qp->bell = bells.num++;
	bells.at[qp->bell] = (struct bell){ .db = (const uint64_t *)qp->db, .qp = qp };
	return 0;
}

static void deactivate(struct sd_qp *qp)
{
	struct sd_qp **at = &active;

	if (!qp->active)
		return;
	while (*at != qp)
		at = &(*at)->next_active;
	*at = qp->next_active;
	qp->active = false;
}

void sd_bell_remove(struct sd_qp *qp)
{
	struct bell *last = &bells.at[--bells.num];

	bells.at[qp->bell] = *last;
	last->qp->bell = qp->bell;
	deactivate(qp);
}

void sd_bell_reset(struct sd_qp *qp)
{
	/* No record says this, so the next scan looks closer. */
	bells.at[qp->bell].seen = UINT64_MAX;
}

void sd_activate(struct sd_qp *qp)
{
	activated = true;
	if (qp->active)
		return;
	qp->active = true;
	qp->next_active = active;
	active = qp;
}

static bool look(struct bell *b, uint64_t now)
{
	struct sd_qp *qp = b->qp;
	uint16_t sq, rq;
	bool rang;

	/* What stands there is from its last life until the library has cleared it. */
	if (qp->state == IBV_QPS_RESET)
		return false;
	b->seen = now;
	sq = (uint16_t)sd_db_read(&qp->db[MLX5_SND_DBR]);
	rq = (uint16_t)sd_db_read(&qp->db[MLX5_RCV_DBR]);
	rang = (qp->sq_num && sq != qp->sq_seen) || (qp->rq_num && rq != qp->rq_seen);
	if (qp->sq_num)
		qp->sq_seen = sq;
	if (qp->rq_num)
		qp->rq_seen = rq;
	if (qp->rq_num && (uint16_t)(rq - qp->rq_next) > qp->rq_num) {
		/* The ring was run over: what is in it cannot be known. */
		qp->rq_next = rq;
		sd_qp_fail(qp, IBV_QPS_ERR);
		sd_event(&qp->obj, IBV_EVENT_QP_FATAL);
	}
	if (rang)
		sd_activate(qp);
	return rang;
}

static bool scan(void)
{
	bool rang = false;

	for (uint32_t i = 0; i < bells.num; i++) {
		uint64_t now = __atomic_load_n(bells.at[i].db, __ATOMIC_ACQUIRE);

		if (now != bells.at[i].seen)
			rang |= look(&bells.at[i], now);
	}
	for (struct sd_srq *srq = sd_srqs; srq; srq = srq->next) {
		uint16_t now = (uint16_t)sd_db_read(srq->db);

		if (now == srq->seen)
			continue;
		rang = true;
		srq->seen = now;
		if ((uint16_t)(now - srq->taken) > srq->num && !srq->broken) {
			srq->broken = true;
			sd_event(&srq->obj, IBV_EVENT_SRQ_ERR);
		}
	}
	return rang;
}

/* Those that wait for their peer stay active; it may be another's doorbell that they wait for. */
static void prune(void)
{
	struct sd_qp **at = &active;

	while (*at) {
		struct sd_qp *qp = *at;

		if (qp->stall != SD_RUNS) {
			at = &qp->next_active;
			continue;
		}
		*at = qp->next_active;
		qp->active = false;
	}
}

static void run(void)
{
	bool progress;

	if (running)
		return;
	running = true;
	do {
		progress = activated = false;
		for (struct sd_qp *qp = active; qp; qp = qp->next_active)
			progress |= sd_qp_work(qp);
	} while (progress || activated);
	prune();
	running = false;
}

/* Put out what may go. quiet: the process came back without ringing, so UMRs are seen. The answer is
 * when the next one is due, 0 for none. */
static uint64_t line_release(bool quiet)
{
	uint64_t at = 0;

	while (line.first && !sd_config.hold && (quiet || !line.first->umr)) {
		if (line.first->at > sd_now_ns()) {
			at = line.first->at;
			break;
		}
		line_pop();
	}
	/* A completion too many breaks its queue, and then there is something to flush. */
	if (activated)
		run();
	return at;
}

static uint64_t next_stall(void)
{
	uint64_t at = 0;

	for (struct sd_qp *qp = active; qp; qp = qp->next_active)
		if (qp->stall != SD_RUNS && qp->stall_until != UINT64_MAX &&
		    (!at || qp->stall_until < at))
			at = qp->stall_until;
	return at;
}

bool sd_engine_step(uint64_t *ret_at)
{
	uint64_t due, stall;
	bool rang;

	rang = scan();
	run();
	due = line_release(true);
	stall = next_stall();
	*ret_at = !due || (stall && stall < due) ? stall : due;
	return rang;
}

void sd_engine_run(void)
{
	if (sd_config.mode == SD_ASYNC && sd_thread_wake())
		return;
	scan();
	run();
	line_release(false);
}

void sd_engine_kick(void)
{
	uint64_t at;
	bool rang;

	if (!__atomic_load_n(&sd_qps, __ATOMIC_RELAXED) || sd_lock_is_mine())
		return;
	sd_lock();
	rang = scan();
	if (sd_config.mode != SD_ASYNC) {
		if (rang || activated)
			run();
		line_release(!rang);
	} else if (rang && !sd_thread_wake()) {
		/* No thread to be had: better late than never. */
		sd_engine_step(&at);
	}
	sd_unlock();
}

void sd_engine_idle(void)
{
	if (!__atomic_load_n(&sd_cqs, __ATOMIC_RELAXED) || sd_lock_is_mine())
		return;
	sd_lock();
	if (sd_config.mode != SD_ASYNC || !sd_thread_wake()) {
		scan();
		run();
		line_release(true);
	}
	for (struct sd_cq *cq = sd_cqs; cq; cq = cq->next)
		sd_cq_check_arm(cq);
	sd_unlock();
}

void sd_engine_update(void)
{
	if (!sd_qps)
		return;
	if (sd_config.mode == SD_ASYNC && sd_thread_wake())
		return;
	scan();
	run();
	line_release(false);
}

/* Queues of the parent stay as objects, but lead nowhere. */
void sd_engine_forked(void)
{
	static _Alignas(8) uint32_t nowhere[2] = { 0, 0xffffffff };

	sd_thread_forked();
	while (line.first) {
		line.first->cq = NULL;
		line_pop();
	}
	for (struct sd_qp *qp = sd_qps; qp; qp = qp->next) {
		qp->db = nowhere;
		qp->state = IBV_QPS_RESET;
		qp->stall = SD_RUNS;
		bells.at[qp->bell] = (struct bell){ .db = (const uint64_t *)nowhere, .qp = qp };
		sd_bell_reset(qp);
		deactivate(qp);
	}
	for (struct sd_cq *cq = sd_cqs; cq; cq = cq->next) {
		cq->db = nowhere;
		cq->fired = nowhere[1];
		cq->broken = true;
	}
	for (struct sd_srq *srq = sd_srqs; srq; srq = srq->next) {
		srq->db = nowhere;
		srq->broken = true;
	}
}
