/* SPDX-License-Identifier: BSD-2-Clause */
/* When work runs and when completions appear: the three modes, hold and delay. Each test sets its own
 * mode. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rig.h"

static uint64_t now_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* A key over the byte at `at`, by a raw UMR without a fence behind it. */
static void post_fill(struct rig *r, uint64_t id, struct mlx5dv_mkey *m, const uint8_t *at)
{
	const struct klm k = KLM(r->mr, at, 1);
	struct umr u;

	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 1);
	umr_list(&u, &k, 1);
	post_umr(r->qp, id, &u);
}

static void post_look(struct rig *r, struct ibv_qp *qp, uint64_t id, uint32_t rkey)
{
	post_rdma(qp, id, IBV_WR_RDMA_READ, sge(r->mr, r->buf + 50000, 1), rkey, 0);
}

#define OLD 0x0d
#define NEW 0xef

/* Filled over OLD, seen, and about to be filled over NEW. */
static struct mlx5dv_mkey *two_faced(struct rig *r)
{
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);

	r->buf[100] = OLD;
	r->buf[200] = NEW;
	post_fill(r, 1, m, r->buf + 100);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	return m;
}

/* ---- strict -------------------------------------------------------------------------- */

static void unfenced_sees_the_old_layout(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m;

	set("mode", "strict");
	m = two_faced(r);
	post_fill(r, 2, m, r->buf + 200);
	post_look(r, r->qp, 3, m->rkey);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], OLD);
	/* Its completion was seen: so is the layout. */
	post_look(r, r->qp, 4, m->rkey);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], NEW);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void another_queue_pair_sees_the_old_layout(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *cq = make_cq(r, 15);
	struct ibv_qp *other = make_qp(r, &(struct qp_opts){ .send_cq = cq });
	struct mlx5dv_mkey *m;

	set("mode", "strict");
	connect_qps(other, other);
	m = two_faced(r);
	post_fill(r, 2, m, r->buf + 200);
	post_look(r, other, 3, m->rkey);
	expect_wc(cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], OLD);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	post_look(r, other, 4, m->rkey);
	expect_wc(cq, 4, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], NEW);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_destroy_qp(other), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void a_fence_sees_the_new_layout(void **state)
{
	struct rig *r = *state;
	struct ibv_sge s = sge(r->mr, r->buf + 50000, 1);
	struct ibv_send_wr wr = { .wr_id = 3,
				  .opcode = IBV_WR_RDMA_READ,
				  .sg_list = &s,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE };
	struct mlx5dv_mkey *m;

	set("mode", "strict");
	m = two_faced(r);
	wr.wr.rdma.rkey = m->rkey;
	post_fill(r, 2, m, r->buf + 200);
	post_wr(r->qp, &wr);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], NEW);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* Behind its typed calls the library puts the fence itself. */
static void a_typed_call_is_fenced(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(r->qp);
	struct mlx5dv_mkey *m;
	struct ibv_sge s = sge(r->mr, r->buf + 200, 1);

	set("mode", "strict");
	m = two_faced(r);
	ibv_wr_start(qpx);
	qpx->wr_id = 2;
	qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	mlx5dv_wr_mr_list(mlx5dv_qp_ex_from_ibv_qp_ex(qpx), m, IBV_ACCESS_REMOTE_READ, 1, &s);
	assert_int_equal(ibv_wr_complete(qpx), 0);
	post_look(r, r->qp, 3, m->rkey);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], NEW);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* The new layout may even be refused work that the old one was not, and the other way round. */
static void unfenced_after_invalidate(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m;
	struct umr u;

	set("mode", "strict");
	m = two_faced(r);
	umr_invalidate(&u, r->qp, m->lkey);
	post_umr(r->qp, 2, &u);
	post_look(r, r->qp, 3, m->rkey);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], OLD);
	post_fill(r, 4, m, r->buf + 200);
	post_look(r, r->qp, 5, m->rkey);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	expect_wc(r->cq, 5, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* UMRs of one queue pair build on each other, seen or not. */
static void umrs_follow_each_other(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m;
	struct umr u;

	set("mode", "strict");
	m = two_faced(r);
	umr_invalidate(&u, r->qp, m->lkey);
	post_umr(r->qp, 2, &u);
	{
		const struct klm k = KLM(r->mr, r->buf + 200, 1);

		umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 1);
		umr_list(&u, &k, 1);
		umr_seg(&u)->flags |= MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE;
		post_umr(r->qp, 3, &u);
	}
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	post_look(r, r->qp, 4, m->rkey);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], NEW);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* Two queue pairs fill one key; the later fill is seen first, by a fence, and stays. */
static void later_umr_seen_first(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *cq = make_cq(r, 15);
	struct ibv_qp *other = make_qp(r, &(struct qp_opts){ .send_cq = cq });
	const struct klm k = KLM(r->mr, r->buf + 200, 1);
	struct ibv_sge s = sge(r->mr, r->buf + 50000, 1);
	struct ibv_send_wr wr = { .wr_id = 4,
				  .opcode = IBV_WR_RDMA_READ,
				  .sg_list = &s,
				  .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE };
	struct mlx5dv_mkey *m;
	struct umr u;

	set("mode", "strict");
	connect_qps(other, other);
	m = two_faced(r);
	wr.wr.rdma.rkey = m->rkey;
	post_fill(r, 2, m, r->buf + 100);
	umr_start(&u, other, m->lkey, ALL_ACCESS, 0, 1);
	umr_list(&u, &k, 1);
	post_umr(other, 3, &u);
	post_wr(other, &wr);
	expect_wc(cq, 3, IBV_WC_SUCCESS);
	expect_wc(cq, 4, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], NEW);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	post_look(r, other, 5, m->rkey);
	expect_wc(cq, 5, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], NEW);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_destroy_qp(other), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* The key goes before its UMR is seen. */
static void key_destroyed_unseen(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m;

	set("mode", "strict");
	m = two_faced(r);
	post_fill(r, 2, m, r->buf + 200);
	post_fill(r, 3, m, r->buf + 300);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
}

static void unsignaled_umr(void **state)
{
	struct rig *r = *state;
	const struct klm k = KLM(r->mr, r->buf + 200, 1);
	struct mlx5dv_mkey *m;
	struct umr u;

	set("mode", "strict");
	m = two_faced(r);
	umr_start(&u, r->qp, m->lkey, ALL_ACCESS, 0, 1);
	umr_list(&u, &k, 1);
	umr_ctrl_seg(&u)->fm_ce_se = 0;
	post_umr(r->qp, 2, &u);
	post_look(r, r->qp, 3, m->rkey);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], OLD);
	post_look(r, r->qp, 4, m->rkey);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], NEW);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* A blocked reader of the channel is woken. */
static void strict_completes_when_blocking(void **state)
{
	struct rig *r = *state;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(r->ctx);
	struct ibv_cq *cq = ibv_create_cq(r->ctx, 15, NULL, ch, 0), *got;
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .send_cq = cq });
	struct mlx5dv_mkey *m;
	const struct klm k = KLM(r->mr, r->buf + 200, 1);
	struct umr u;
	void *ctx;

	set("mode", "strict");
	connect_qps(qp, qp);
	m = two_faced(r);
	umr_start(&u, qp, m->lkey, ALL_ACCESS, 0, 1);
	umr_list(&u, &k, 1);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	post_umr(qp, 2, &u);
	assert_int_equal(ibv_get_cq_event(ch, &got, &ctx), 0);
	ibv_ack_cq_events(got, 1);
	expect_wc(cq, 2, IBV_WC_SUCCESS);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

/* ---- sync ------------------------------------------------------------------------------ */

static void sync_is_done_when_posting_returns(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m;

	set("mode", "sync");
	m = two_faced(r);
	post_fill(r, 2, m, r->buf + 200);
	post_look(r, r->qp, 3, m->rkey);
	assert_int_equal(r->buf[50000], NEW);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* ---- hold and delay ----------------------------------------------------------------------- */

static void held(void **state)
{
	struct rig *r = *state;
	struct ibv_wc wc;

	set("mode", "sync");
	set("hold", "1");
	for (uint64_t i = 0; i < 5; i++)
		post_rdma(r->qp, i, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 8),
			  i == 3 ? 0x77 : r->mr->rkey, (uintptr_t)r->buf + 100);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ibv_poll_cq(r->cq, 1, &wc), 0);
	/* The work itself was done, and the failure had. */
	assert_memory_equal(r->buf, r->buf + 100, 8);
	assert_int_equal(qp_state(r->qp), IBV_QPS_ERR);
	set("hold", "0");
	for (uint64_t i = 0; i < 5; i++)
		expect_wc(r->cq, i,
			  i < 3	   ? IBV_WC_SUCCESS
			  : i == 3 ? IBV_WC_REM_ACCESS_ERR
				   : IBV_WC_WR_FLUSH_ERR);
}

/* Objects may go while completions of theirs are held. */
static void held_and_destroyed(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *cq = make_cq(r, 15);
	struct ibv_qp *a = make_qp(r, &(struct qp_opts){ .send_cq = cq });
	struct ibv_qp *b = make_qp(r, &(struct qp_opts){ 0 });
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);

	connect_qps(a, a);
	connect_qps(b, b);
	set("mode", "sync");
	set("hold", "1");
	post_look(r, a, 1, r->mr->rkey);
	post_look(r, b, 2, r->mr->rkey);
	post_fill(r, 3, m, r->buf);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	qp_set_state(b, IBV_QPS_RESET);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	set("hold", "0");
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	expect_no_wc(r->cq);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

static void delayed(void **state)
{
	struct rig *r = *state;
	uint64_t start;

	set("mode", "async");
	set("delay", "30000");
	start = now_us(CLOCK_MONOTONIC);
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 8), r->mr->rkey,
		  (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	assert_true(now_us(CLOCK_MONOTONIC) - start >= 30000);
}

/* ---- async --------------------------------------------------------------------------------- */

static void async_sleeps_when_idle(void **state)
{
	struct rig *r = *state;
	uint64_t cpu;

	set("mode", "async");
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 8), r->mr->rkey,
		  (uintptr_t)r->buf + 100);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	/* A send that waits for a receive keeps nobody busy either. */
	post_send(r->qp, 2, sge(r->mr, r->buf, 8));
	cpu = now_us(CLOCK_PROCESS_CPUTIME_ID);
	usleep(300000);
	assert_true(now_us(CLOCK_PROCESS_CPUTIME_ID) - cpu < 150000);
	post_recv(r->qp, 3, sge(r->mr, r->buf + 300, 8));
	assert_int_equal(wait_wc(r->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(r->cq).status, IBV_WC_SUCCESS);
}

/* In time where there is time: the receive comes before the retries are over. */
static void async_waits_for_a_late_receive(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ 0 });
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .sq_psn = 0x123456,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 6,
				    .max_rd_atomic = 1,
				    .min_rnr_timer = 28 /* 163.84 ms */ };

	set("mode", "async");
	qp_init(qp);
	qp_rtr(qp, qp->qp_num);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	post_send(qp, 2, sge(r->mr, r->buf, 8));
	usleep(20000);
	post_recv(qp, 3, sge(r->mr, r->buf + 300, 8));
	assert_int_equal(wait_wc(r->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(wait_wc(r->cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* A program that writes its own ring and doorbell, and takes no lock. */
static void async_sees_silent_doorbells(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_qp dv = { 0 };
	struct mlx5dv_obj obj = { .qp = { .in = r->qp, .out = &dv } };
	struct mlx5_wqe_ctrl_seg *ctrl;
	struct mlx5_wqe_raddr_seg *ra;
	struct mlx5_wqe_data_seg *data;

	set("mode", "async");
	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	for (uint16_t i = 0; i < 50; i++) {
		uint64_t until = now_us(CLOCK_MONOTONIC) + 5000000;

		ctrl = (void *)((uint8_t *)dv.sq.buf + (size_t)(i % dv.sq.wqe_cnt) * dv.sq.stride);
		ra = (void *)(ctrl + 1);
		data = (void *)(ra + 1);
		memset(ctrl, 0, 64);
		ctrl->opmod_idx_opcode = htobe32((uint32_t)i << 8 | MLX5_OPCODE_RDMA_WRITE);
		ctrl->qpn_ds = htobe32(r->qp->qp_num << 8 | 3);
		ra->raddr = htobe64((uintptr_t)r->buf + 300);
		ra->rkey = htobe32(r->mr->rkey);
		data->byte_count = htobe32(1);
		data->lkey = htobe32(r->mr->lkey);
		data->addr = htobe64((uintptr_t)r->buf + 400);
		r->buf[300] = 0xff;
		r->buf[400] = (uint8_t)i;
		__atomic_store_n(&dv.dbrec[MLX5_SND_DBR], htobe32(i + 1u), __ATOMIC_RELEASE);
		while (*(volatile uint8_t *)&r->buf[300] != (uint8_t)i)
			assert_true(now_us(CLOCK_MONOTONIC) < until);
	}
}

/* With ibv_fork_init the rings are not mapped in a child, which may still release locks and open the
 * device for itself. */
static void child_of_fork(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = two_faced(r);
	pthread_spinlock_t spin;
	int status;
	pid_t pid;

	post_fill(r, 2, m, r->buf + 200);
	pid = fork();
	assert_return_code(pid, errno);
	if (!pid) {
		void *other;

		signal(SIGSEGV, SIG_DFL);
		alarm(20);
		pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
		pthread_spin_lock(&spin);
		pthread_spin_unlock(&spin);
		poll(&(struct pollfd){ .fd = r->ctx->async_fd, .events = POLLIN }, 1, 0);
		rig_setup(&other);
		post_look(other, ((struct rig *)other)->qp, 1, 0x77);
		if (wait_wc(((struct rig *)other)->cq).status != IBV_WC_REM_ACCESS_ERR)
			_exit(4);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	post_look(r, r->qp, 3, m->rkey);
	expect_wc(r->cq, 3, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], NEW);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* Back and forth between modes with work on its way. */
static void changing_modes(void **state)
{
	struct rig *r = *state;
	static const char *const modes[] = { "async", "sync", "strict", "async", "strict", "sync" };
	struct mlx5dv_mkey *m = two_faced(r);

	for (uint64_t i = 0; i < 120; i++) {
		set("mode", modes[i % 6]);
		post_fill(r, 2 * i, m, r->buf + 100 + 100 * (i % 2));
		set("mode", modes[(i + 1) % 6]);
		post_look(r, r->qp, 2 * i + 1, r->mr->rkey);
		expect_wc(r->cq, 2 * i, IBV_WC_SUCCESS);
		{
			struct ibv_wc wc = wait_wc(r->cq);

			/* Address 0 of the plain MR is refused; only the order is looked at. */
			assert_int_equal(wc.wr_id, 2 * i + 1);
			assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);
		}
		reconnect_self(r->qp);
	}
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

/* ---- threads ----------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS	150

/* Each with a device of its own: fill, write, read, compare. */
static void *worker(void *arg)
{
	void *state;
	struct rig *r;
	struct mlx5dv_mkey *m;

	rig_setup(&state);
	r = state;
	m = make_mkey(r->pd, 8);
	for (uint32_t i = 0; i < ROUNDS; i++) {
		const struct klm k[] = { KLM(r->mr, r->buf + 10UL * i, 7),
					 KLM(r->mr, r->buf + 9000 + i, 9) };

		fill_list(r, m, ALL_ACCESS, k, 2);
		memset(r->buf + 40000, (int)i, 16);
		post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf + 40000, 16), m->rkey, 0);
		expect_wc(r->cq, 1, IBV_WC_SUCCESS);
		assert_memory_equal(r->buf + 10UL * i, r->buf + 40000, 7);
		assert_memory_equal(r->buf + 9000 + i, r->buf + 40000, 9);
		post_recv(r->qp, 2, sge(r->mr, r->buf + 50000, 16));
		post_send(r->qp, 3, sge(r->mr, r->buf + 40000, 16));
		assert_int_equal(wait_wc(r->cq).status, IBV_WC_SUCCESS);
		assert_int_equal(wait_wc(r->cq).status, IBV_WC_SUCCESS);
		assert_memory_equal(r->buf + 50000, r->buf + 40000, 16);
	}
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(r->mr), 0);
	assert_int_equal(ibv_destroy_qp(r->qp), 0);
	assert_int_equal(ibv_destroy_cq(r->cq), 0);
	assert_int_equal(ibv_dealloc_pd(r->pd), 0);
	assert_int_equal(ibv_close_device(r->ctx), 0);
	free(r->buf);
	free(r);
	return arg;
}

static void threads(void **state)
{
	static const char *const modes[] = { "sync", "async", "strict" };
	struct rig *r = *state;
	pthread_t t[THREADS];
	void *ret;

	for (int k = 0; k < 3; k++) {
		set("mode", modes[k]);
		for (int i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&t[i], NULL, worker, r), 0);
		for (int i = 0; i < THREADS; i++) {
			assert_int_equal(pthread_join(t[i], &ret), 0);
			assert_ptr_equal(ret, r);
		}
	}
}

/* Two threads, one queue pair each way. */
static struct rig *pong_rig;
static struct ibv_qp *pong_qp;
static struct ibv_cq *pong_cq;

static void *pong(void *arg)
{
	struct rig *r = pong_rig;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		expect_wc(pong_cq, i, IBV_WC_SUCCESS);
		post_recv(pong_qp, i + 1, sge(r->mr, r->buf + 20000, 64));
		post_send(pong_qp, 500, sge(r->mr, r->buf + 20000, 64));
		expect_wc(pong_cq, 500, IBV_WC_SUCCESS);
	}
	return arg;
}

static void ping_pong(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *cq = make_cq(r, 15);
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .send_cq = cq, .recv_cq = cq });
	pthread_t t;

	pong_rig = r;
	pong_cq = make_cq(r, 15);
	pong_qp = make_qp(r, &(struct qp_opts){ .send_cq = pong_cq, .recv_cq = pong_cq });
	connect_qps(qp, pong_qp);
	post_recv(pong_qp, 0, sge(r->mr, r->buf + 20000, 64));
	assert_int_equal(pthread_create(&t, NULL, pong, r), 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		struct ibv_wc a, b;

		r->buf[100] = (uint8_t)i;
		post_recv(qp, 1, sge(r->mr, r->buf + 30000, 64));
		post_send(qp, 2, sge(r->mr, r->buf + 100, 64));
		a = wait_wc(cq);
		b = wait_wc(cq);
		assert_int_equal(a.status, IBV_WC_SUCCESS);
		assert_int_equal(b.status, IBV_WC_SUCCESS);
		assert_memory_equal(r->buf + 30000, r->buf + 100, 64);
	}
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(pong_qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_cq(pong_cq), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(unfenced_sees_the_old_layout),
		TEST(another_queue_pair_sees_the_old_layout),
		TEST(a_fence_sees_the_new_layout),
		TEST(a_typed_call_is_fenced),
		TEST(unfenced_after_invalidate),
		TEST(umrs_follow_each_other),
		TEST(later_umr_seen_first),
		TEST(key_destroyed_unseen),
		TEST(unsignaled_umr),
		TEST(strict_completes_when_blocking),
		TEST(sync_is_done_when_posting_returns),
		TEST(held),
		TEST(held_and_destroyed),
		TEST(delayed),
		TEST(async_sleeps_when_idle),
		TEST(async_waits_for_a_late_receive),
		TEST(async_sees_silent_doorbells),
		TEST(child_of_fork),
		TEST(changing_modes),
		TEST(threads),
		TEST(ping_pong),
	};

	if (ibv_fork_init())
		return 1;
	return cmocka_run_group_tests_name("modes", tests, NULL, NULL);
}
