/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: the ring, resizing, overrun, arming and events. */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rig.h"

#define QUIET_MS 20

static void write_one(struct rig *r, struct ibv_qp *qp, uint64_t id)
{
	post_rdma(qp, id, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 8), r->mr->rkey,
		  (uintptr_t)r->buf + 100);
}

/* Until the device has made that many completions. */
static void wait_cqes(uint64_t num)
{
	for (int i = 0; counter("cqe") < num && i < 5000; i++)
		usleep(1000);
	assert_int_equal(counter("cqe"), num);
}

/* ---- the ring ------------------------------------------------------------------ */

static void wraps(struct rig *r, struct ibv_cq *cq)
{
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .send_cq = cq, .max_inline = 1 });

	connect_qps(qp, qp);
	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t burst = 1 + i % 7;

		for (uint64_t k = 0; k < burst; k++)
			write_one(r, qp, i * 10 + k);
		for (uint64_t k = 0; k < burst; k++)
			expect_wc(cq, i * 10 + k, IBV_WC_SUCCESS);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void ring_wraps(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *cq = make_cq(r, 7);

	assert_int_equal(cq->cqe, 7);
	wraps(r, cq);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void entries_of_128(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_init_attr_ex attr = { .cqe = 15 };
	struct mlx5dv_cq_init_attr dv = { .comp_mask = MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE,
					  .cqe_size = 128 };
	struct ibv_cq *cq = ibv_cq_ex_to_cq(mlx5dv_create_cq(r->ctx, &attr, &dv));
	struct ibv_qp *qp;

	assert_non_null(cq);
	wraps(r, cq);
	/* Up to 64 bytes of a message come in the entry. (Not tried with reads: libmlx5 before 2025
	 * copies them from one byte off, upstream a2b922c42.) */
	qp = make_qp(r, &(struct qp_opts){ .recv_cq = cq, .scatter = true });
	connect_qps(qp, qp);
	for (uint32_t n = 1; n <= 66; n++) {
		memset(r->buf + 4096, 0, 128);
		post_recv(qp, n, sge(r->mr, r->buf + 4096, 128));
		post_send(qp, 100, sge(r->mr, r->buf + 100, n));
		expect_wc(r->cq, 100, IBV_WC_SUCCESS);
		if (mode_is("sync"))
			assert_int_equal(r->buf[4096], n <= 64 ? 0 : r->buf[100]);
		expect_wc(cq, n, IBV_WC_SUCCESS);
		assert_memory_equal(r->buf + 4096, r->buf + 100, n);
		assert_int_equal(r->buf[4096 + n], 0);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void bad_requests(void **state)
{
	struct rig *r = *state;

	assert_null(ibv_create_cq(r->ctx, 0, NULL, NULL, 0));
	assert_null(ibv_create_cq(r->ctx, 1 << 24, NULL, NULL, 0));
	assert_null(ibv_create_cq(r->ctx, 16, NULL, NULL, 1000));
	assert_null(ibv_create_cq(r->ctx, 16, NULL, NULL, -1));
}

/* Entries not polled yet survive, in order, in both directions. */
static void resizing(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *cq = make_cq(r, 15);
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .send_cq = cq });
	static const int sizes[] = { 63, 15, 31, 1023, 15 };
	uint64_t next = 0, seen = 0, before = counter("cqe");

	connect_qps(qp, qp);
	for (int i = 0; i < 40; i++) {
		int left = i % 8;

		while (next < seen + (uint64_t)left + 4)
			write_one(r, qp, next++);
		while (seen + (uint64_t)left < next)
			expect_wc(cq, seen++, IBV_WC_SUCCESS);
		assert_int_equal(ibv_resize_cq(cq, sizes[i % 5]), 0);
		assert_int_equal(cq->cqe, sizes[i % 5]);
	}
	while (seen < next)
		expect_wc(cq, seen++, IBV_WC_SUCCESS);
	expect_no_wc(cq);
	/* Smaller than what is in it. */
	assert_int_equal(ibv_resize_cq(cq, 31), 0);
	for (int i = 0; i < 20; i++)
		write_one(r, qp, 1);
	wait_cqes(before + next + 20);
	assert_int_not_equal(ibv_resize_cq(cq, 15), 0);
	for (int i = 0; i < 20; i++)
		expect_wc(cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void overrun(void **state)
{
	struct rig *r = *state;
	struct ibv_cq *cq = make_cq(r, 7), *rcq = make_cq(r, 7);
	struct ibv_qp *qp = make_qp(r, &(struct qp_opts){ .send_cq = cq, .recv_cq = rcq });
	enum ibv_event_type a, b;

	connect_qps(qp, qp);
	post_recv(qp, 55, sge(r->mr, r->buf, 8));
	for (uint64_t i = 0; i < 9; i++)
		write_one(r, qp, i);
	a = wait_async(r->ctx);
	b = wait_async(r->ctx);
	assert_int_equal(a, IBV_EVENT_CQ_ERR);
	assert_int_equal(b, IBV_EVENT_QP_FATAL);
	assert_int_equal(qp_state(qp), IBV_QPS_ERR);
	/* The other queue is told; the broken one has what it had. */
	expect_wc(rcq, 55, IBV_WC_WR_FLUSH_ERR);
	for (uint64_t i = 0; i < 8; i++)
		expect_wc(cq, i, IBV_WC_SUCCESS);
	expect_no_wc(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_cq(rcq), 0);
}

static void overrun_ignored(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_init_attr_ex attr = { .cqe = 7,
					    .wc_flags = IBV_WC_STANDARD_FLAGS,
					    .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
					    .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN };
	struct ibv_cq *cq = ibv_cq_ex_to_cq(ibv_create_cq_ex(r->ctx, &attr));
	struct ibv_qp *qp;

	assert_non_null(cq);
	qp = make_qp(r, &(struct qp_opts){ .send_cq = cq });
	connect_qps(qp, qp);
	for (uint64_t i = 0; i < 9; i++)
		write_one(r, qp, i);
	expect_no_async(r->ctx);
	assert_int_equal(qp_state(qp), IBV_QPS_RTS);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

/* Entries of a queue pair that is destroyed or reset are gone, those of others stay. */
static void cleaning(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = make_qp(r, &(struct qp_opts){ 0 }),
		      *b = make_qp(r, &(struct qp_opts){ 0 });
	uint64_t before = counter("cqe");

	connect_qps(a, a);
	connect_qps(b, b);
	for (uint64_t i = 0; i < 6; i++)
		write_one(r, i % 2 ? a : b, i);
	wait_cqes(before + 6);
	assert_int_equal(ibv_destroy_qp(a), 0);
	expect_wc(r->cq, 0, IBV_WC_SUCCESS);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	expect_no_wc(r->cq);
	write_one(r, b, 7);
	qp_set_state(b, IBV_QPS_RESET);
	connect_qps(b, b);
	write_one(r, b, 8);
	expect_wc(r->cq, 8, IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

/* ---- events ----------------------------------------------------------------------- */

struct armed {
	struct ibv_comp_channel *ch;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static void armed_make(struct rig *r, struct armed *a)
{
	a->ch = ibv_create_comp_channel(r->ctx);
	assert_non_null(a->ch);
	a->cq = ibv_create_cq(r->ctx, 31, a, a->ch, 0);
	assert_non_null(a->cq);
	a->qp = make_qp(r, &(struct qp_opts){ .send_cq = a->cq, .recv_cq = a->cq });
	connect_qps(a->qp, a->qp);
}

static void armed_drop(struct armed *a)
{
	assert_int_equal(ibv_destroy_qp(a->qp), 0);
	assert_int_equal(ibv_destroy_cq(a->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(a->ch), 0);
}

static bool readable(struct armed *a, int ms)
{
	struct pollfd p = { .fd = a->ch->fd, .events = POLLIN };
	int n = poll(&p, 1, ms);

	assert_in_range(n, 0, 1);
	return n;
}

static void take_event(struct armed *a)
{
	struct ibv_cq *cq;
	void *ctx;

	assert_true(readable(a, 5000));
	assert_int_equal(ibv_get_cq_event(a->ch, &cq, &ctx), 0);
	assert_ptr_equal(cq, a->cq);
	assert_ptr_equal(ctx, a);
	ibv_ack_cq_events(cq, 1);
}

static void one_event_per_arming(void **state)
{
	struct rig *r = *state;
	struct armed a;

	armed_make(r, &a);
	write_one(r, a.qp, 1);
	assert_false(readable(&a, QUIET_MS));
	expect_wc(a.cq, 1, IBV_WC_SUCCESS);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
		assert_false(readable(&a, QUIET_MS));
		write_one(r, a.qp, 2);
		write_one(r, a.qp, 3);
		take_event(&a);
		expect_wc(a.cq, 2, IBV_WC_SUCCESS);
		expect_wc(a.cq, 3, IBV_WC_SUCCESS);
		assert_false(readable(&a, QUIET_MS));
	}
	armed_drop(&a);
}

/* Armed with an entry that it has not seen: the event is there at once. */
static void arming_late(void **state)
{
	struct rig *r = *state;
	struct armed a;

	armed_make(r, &a);
	write_one(r, a.qp, 1);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	take_event(&a);
	expect_wc(a.cq, 1, IBV_WC_SUCCESS);
	/* Blocking in read. */
	write_one(r, a.qp, 1);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	{
		struct ibv_cq *cq;
		void *ctx;

		assert_int_equal(ibv_get_cq_event(a.ch, &cq, &ctx), 0);
		ibv_ack_cq_events(cq, 1);
	}
	expect_wc(a.cq, 1, IBV_WC_SUCCESS);
	armed_drop(&a);
}

static void with_epoll(void **state)
{
	struct rig *r = *state;
	int ep = epoll_create1(0);
	struct epoll_event ev = { .events = EPOLLIN };
	struct armed a;

	armed_make(r, &a);
	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, a.ch->fd, &ev), 0);
	write_one(r, a.qp, 1);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(epoll_wait(ep, &ev, 1, 5000), 1);
	take_event(&a);
	expect_wc(a.cq, 1, IBV_WC_SUCCESS);
	armed_drop(&a);
	close(ep);
}

/* Only a solicited message, or an error, ends this wait. */
static void solicited_only(void **state)
{
	struct rig *r = *state;
	struct ibv_sge s = sge(r->mr, r->buf, 8);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = &s, .num_sge = 1 };
	struct ibv_qp *from;
	struct armed a;

	armed_make(r, &a);
	from = make_qp(r, &(struct qp_opts){ 0 });
	qp_set_state(a.qp, IBV_QPS_RESET);
	connect_qps(from, a.qp);
	for (uint64_t i = 0; i < 4; i++)
		post_recv(a.qp, i, sge(r->mr, r->buf + 1000, 8));
	assert_int_equal(ibv_req_notify_cq(a.cq, 1), 0);
	post_wr(from, &wr);
	assert_false(readable(&a, QUIET_MS));
	wr.send_flags = IBV_SEND_SOLICITED;
	post_wr(from, &wr);
	take_event(&a);
	expect_wc(a.cq, 0, IBV_WC_SUCCESS);
	expect_wc(a.cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(ibv_req_notify_cq(a.cq, 1), 0);
	assert_false(readable(&a, QUIET_MS));
	qp_set_state(a.qp, IBV_QPS_ERR);
	take_event(&a);
	expect_wc(a.cq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_wc(a.cq, 3, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_destroy_qp(from), 0);
	armed_drop(&a);
}

/* Two queues on one channel, one of which goes with its event unread. */
static void unread_event_goes_with_its_queue(void **state)
{
	struct rig *r = *state;
	struct armed a, b;
	struct ibv_cq *cq;
	void *ctx;
	uint64_t before = counter("cqe");

	armed_make(r, &a);
	b = a;
	b.cq = ibv_create_cq(r->ctx, 31, &b, a.ch, 0);
	assert_non_null(b.cq);
	b.qp = make_qp(r, &(struct qp_opts){ .send_cq = b.cq, .recv_cq = b.cq });
	connect_qps(b.qp, b.qp);
	assert_int_equal(ibv_req_notify_cq(a.cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(b.cq, 0), 0);
	write_one(r, a.qp, 1);
	write_one(r, b.qp, 2);
	wait_cqes(before + 2);
	assert_true(readable(&a, 5000));
	assert_int_equal(ibv_destroy_qp(a.qp), 0);
	assert_int_equal(ibv_destroy_cq(a.cq), 0);
	assert_int_equal(ibv_get_cq_event(a.ch, &cq, &ctx), 0);
	assert_ptr_equal(cq, b.cq);
	ibv_ack_cq_events(cq, 1);
	assert_false(readable(&b, QUIET_MS));
	assert_int_equal(ibv_destroy_comp_channel(a.ch), EBUSY);
	armed_drop(&b);
}

/* ---- flags of ibv_create_cq_ex that libmlx5 reads lazily ----------------------------------- */

static void lazy_polling(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_init_attr_ex attr = { .cqe = 15, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_cq_ex *cq = ibv_create_cq_ex(r->ctx, &attr);
	struct ibv_poll_cq_attr pa = { 0 };
	struct ibv_qp *qp;
	int ret;

	assert_non_null(cq);
	qp = make_qp(r, &(struct qp_opts){ .send_cq = ibv_cq_ex_to_cq(cq) });
	connect_qps(qp, qp);
	write_one(r, qp, 5);
	for (int i = 0; (ret = ibv_start_poll(cq, &pa)) == ENOENT && i < 1000; i++)
		usleep(1000);
	assert_int_equal(ret, 0);
	assert_int_equal(cq->wr_id, 5);
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RDMA_WRITE);
	assert_int_equal(ibv_wc_read_qp_num(cq), qp->qp_num);
	ibv_end_poll(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(ring_wraps),     TEST(entries_of_128),
		TEST(bad_requests),   TEST(resizing),
		TEST(overrun),	      TEST(overrun_ignored),
		TEST(cleaning),	      TEST(one_event_per_arming),
		TEST(arming_late),    TEST(with_epoll),
		TEST(solicited_only), TEST(unread_event_goes_with_its_queue),
		TEST(lazy_polling),
	};

	return cmocka_run_group_tests_name("cq", tests, NULL, NULL);
}
