/* SPDX-License-Identifier: BSD-2-Clause */
/* Events: one a read, counted exactly, none lost when nobody reads for long. */
#include "raw.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>

static struct loop l;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static uint8_t buf[64];
static struct ibv_mr *mr;

static int setup(void **state)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 16, .max_send_sge = 1 } };

	dev_reset();
	loop_open(&l);
	channel = ibv_create_comp_channel(l.ctx);
	cq = ibv_create_cq(l.ctx, 16, buf, channel, 0);
	attr.send_cq = attr.recv_cq = cq;
	qp = ibv_create_qp(l.pd, &attr);
	mr = ibv_reg_mr(l.pd, buf, sizeof(buf), RIGHTS);
	assert_true(channel && cq && qp && mr);
	/* loop_connect works on l.qp: connect ours through a copy */
	struct loop mine = l;

	mine.qp = qp;
	loop_connect(&mine);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(ibv_dereg_mr(mr), 0);
	if (qp)
		assert_int_equal(ibv_destroy_qp(qp), 0);
	if (cq)
		assert_int_equal(ibv_destroy_cq(cq), 0);
	if (channel)
		assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	loop_close(&l);
	dev_reset();
	return 0;
}

static void post(uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)buf, 8, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)buf + 8, rkey } };
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

static bool readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms) == 1 && (p.revents & POLLIN);
}

static void get_event(void)
{
	struct ibv_cq *got;
	void *context;

	assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
	assert_ptr_equal(got, cq);
	assert_ptr_equal(context, buf);
}

static void no_event_without_arming(void **state)
{
	post(mr->rkey);
	assert_int_equal(loop_poll(cq).status, IBV_WC_SUCCESS);
	assert_false(readable(channel->fd, 20));
}

static void armed_before_and_after(void **state)
{
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	post(mr->rkey);
	get_event();
	loop_poll(cq);
	assert_false(readable(channel->fd, 20)); /* one event an arming */
	post(mr->rkey);
	loop_poll(cq);
	post(mr->rkey);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0); /* it is there already */
	assert_true(readable(channel->fd, 10000));
	get_event();
	loop_poll(cq);
	ibv_ack_cq_events(cq, 2);
}

static void every_way_to_wait(void **state)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct timespec ts = { .tv_sec = 10 };
	struct timeval tv = { .tv_sec = 10 };
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	fd_set set;
	int ep = epoll_create1(EPOLL_CLOEXEC), way;

	assert_int_equal(epoll_ctl(ep, EPOLL_CTL_ADD, channel->fd, &e), 0);
	for (way = 0; way < 5; way++) {
		post(mr->rkey);
		/* armed with a completion there: nothing but the wait itself will look */
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		switch (way) {
		case 0:
			assert_int_equal(poll(&p, 1, 10000), 1);
			break;
		case 1:
			assert_int_equal(ppoll(&p, 1, &ts, NULL), 1);
			break;
		case 2:
			FD_ZERO(&set);
			FD_SET(channel->fd, &set);
			assert_int_equal(select(channel->fd + 1, &set, NULL, NULL, &tv), 1);
			break;
		case 3:
			assert_int_equal(epoll_wait(ep, &e, 1, 10000), 1);
			break;
		default: /* the read in get_event itself */
			break;
		}
		get_event();
		loop_poll(cq);
	}
	ibv_ack_cq_events(cq, 5);
	close(ep);
}

static void destroy_counts_what_was_read(void **state)
{
	int i;

	for (i = 0; i < 5; i++) {
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		post(mr->rkey);
		loop_poll(cq);
	}
	assert_true(readable(channel->fd, 10000));
	get_event();
	get_event();
	ibv_ack_cq_events(cq, 2);
	/* three are not read: ibv_destroy_cq would wait for ever if they were counted */
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = NULL;
	assert_int_equal(ibv_destroy_cq(cq), 0);
	cq = NULL;
	assert_false(readable(channel->fd, 20)); /* and they are gone */
}

static void events_of_others_stay(void **state)
{
	struct ibv_cq *other = ibv_create_cq(l.ctx, 16, NULL, channel, 0);
	struct ibv_qp_init_attr attr = { .send_cq = other,
					 .recv_cq = other,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 16, .max_send_sge = 1 } };
	struct ibv_qp *mine = qp, *second = ibv_create_qp(l.pd, &attr);
	struct loop c = l;
	struct ibv_cq *got;
	void *context;

	c.qp = second;
	loop_connect(&c);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(other, 0), 0);
	post(mr->rkey);
	qp = second;
	post(mr->rkey);
	loop_poll(cq);
	loop_poll(other);
	assert_true(readable(channel->fd, 10000));
	qp = NULL;
	assert_int_equal(ibv_destroy_qp(mine), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	cq = NULL;
	assert_true(readable(channel->fd, 10000));
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), 0);
	assert_ptr_equal(got, other);
	ibv_ack_cq_events(other, 1);
	assert_int_equal(ibv_destroy_qp(second), 0);
	assert_int_equal(ibv_destroy_cq(other), 0);
}

/* More than the socket holds. */
static void none_is_lost(void **state)
{
	const int num = 1500;
	int i;

	for (i = 0; i < num; i++) {
		assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
		post(mr->rkey);
		loop_poll(cq);
	}
	for (i = 0; i < num; i++)
		get_event();
	assert_false(readable(channel->fd, 20));
	ibv_ack_cq_events(cq, num);
}

static void an_asynchronous_event(void **state)
{
	struct ibv_async_event e;

	post(0x7700);
	assert_int_equal(loop_poll(cq).status, IBV_WC_REM_ACCESS_ERR);
	assert_true(readable(l.ctx->async_fd, 10000));
	assert_int_equal(ibv_get_async_event(l.ctx, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(e.element.qp, qp);
	ibv_ack_async_event(&e);
}

static void an_unread_asynchronous_event(void **state)
{
	post(0x7700);
	loop_poll(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0); /* would wait if the event was counted as read */
	qp = NULL;
	assert_false(readable(l.ctx->async_fd, 20));
}

static void the_descriptor_does_not_block_when_told(void **state)
{
	struct ibv_cq *got;
	void *context;
	int flags = fcntl(channel->fd, F_GETFL);

	assert_int_equal(fcntl(channel->fd, F_SETFL, flags | O_NONBLOCK), 0);
	assert_int_equal(ibv_get_cq_event(channel, &got, &context), -1);
	assert_int_equal(errno, EAGAIN);
}

static void a_channel_closed_early_is_no_harm(void **state)
{
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(close(channel->fd), 0);
	post(mr->rkey);
	loop_poll(cq);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	qp = NULL;
	cq = NULL;
	channel->fd = dup(1); /* libibverbs closes it */
}

/* Static: libmlx5 keeps what it cannot give back, and nobody else has it either. */
static struct {
	struct loop l;
	struct ibv_mr *mr;
	struct mlx5dv_mkey *mkey;
	struct ibv_device **list;
} pulled;

static void nothing_lives(void)
{
	static const char *const names[] = { "live.mr", "live.mkey", "live.devx", "live.qp",
					     "live.cq", "live.pd",   "live.uar",  "pinned_bytes" };
	uint64_t value;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(soft0_counter(names[i], &value), 0);
		if (value)
			fail_msg("%s is %llu", names[i], (unsigned long long)value);
	}
}

static void a_device_that_is_pulled_out(void **state)
{
	struct mlx5dv_mkey_init_attr init = { .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 4 };
	struct ibv_async_event e;
	struct ibv_port_attr port;
	struct ibv_wc wc;

	dev_reset();
	loop_open(&pulled.l);
	init.pd = pulled.l.pd;
	pulled.mr = ibv_reg_mr(pulled.l.pd, buf, sizeof(buf), RIGHTS);
	pulled.mkey = mlx5dv_create_mkey(&init);
	assert_true(pulled.mr && pulled.mkey);
	assert_int_equal(soft0_set("gone", "query_port:2"), 0);
	assert_int_equal(ibv_query_port(pulled.l.ctx, 1, &port), 0);
	assert_false(readable(pulled.l.ctx->async_fd, 20));
	assert_int_equal(ibv_query_port(pulled.l.ctx, 1, &port), EIO);
	nothing_lives();
	assert_true(readable(pulled.l.ctx->async_fd, 10000));
	assert_int_equal(ibv_get_async_event(pulled.l.ctx, &e), 0);
	assert_int_equal(e.event_type, IBV_EVENT_DEVICE_FATAL);
	ibv_ack_async_event(&e);
	assert_int_equal(ibv_dereg_mr(pulled.mr), EIO);
	assert_int_equal(mlx5dv_destroy_mkey(pulled.mkey), EIO);
	assert_int_equal(ibv_destroy_qp(pulled.l.qp), EIO);
	assert_null(ibv_reg_mr(pulled.l.pd, buf, sizeof(buf), RIGHTS));
	assert_int_equal(errno, EIO);
	assert_int_equal(ibv_poll_cq(pulled.l.cq, 1, &wc), 0);
	pulled.list = ibv_get_device_list(NULL);
	assert_null(ibv_open_device(pulled.list[0]));
	/* closing it as a whole would end this process: libmlx5 insists on giving its pages back */
	assert_int_equal(close(pulled.l.ctx->async_fd), 0);
	assert_int_equal(close(pulled.l.ctx->cmd_fd), 0);
	dev_reset();
	assert_int_equal(ibv_close_device(dev_open()), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_event_without_arming),
		TEST(armed_before_and_after),
		TEST(every_way_to_wait),
		TEST(destroy_counts_what_was_read),
		TEST(events_of_others_stay),
		TEST(none_is_lost),
		TEST(an_asynchronous_event),
		TEST(an_unread_asynchronous_event),
		TEST(the_descriptor_does_not_block_when_told),
		TEST(a_channel_closed_early_is_no_harm),
		cmocka_unit_test(a_device_that_is_pulled_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
