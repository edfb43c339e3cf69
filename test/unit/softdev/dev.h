/* SPDX-License-Identifier: BSD-2-Clause */
/* soft0, opened, for the unit tests; and the loopback queue pair that most of them need. */
#ifndef TEST_DEV_H
#define TEST_DEV_H

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "soft0.h"

#define RIGHTS                                                                       \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)

/* soft0 as it was at the start, in the mode that the tests are run in. */
static inline void dev_reset(void)
{
	const char *env = getenv("IBMR_SOFT0"), *at = env ? strstr(env, "mode=") : NULL;
	char mode[16] = "sync";

	if (at)
		sscanf(at, "mode=%15[a-z]", mode);
	soft0_reset();
	assert_int_equal(soft0_set("mode", mode), 0);
}

static inline struct ibv_context *dev_open(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx;
	int num;

	list = ibv_get_device_list(&num);
	assert_non_null(list);
	assert_int_equal(num, 1);
	assert_string_equal(ibv_get_device_name(list[0]), "soft0");
	ctx = ibv_open_device(list[0]);
	assert_non_null(ctx);
	ibv_free_device_list(list);
	return ctx;
}

struct loop {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct mlx5dv_qp_ex *mqp;
};

/* An RC queue pair connected to itself, in RTS, able to do everything. */
static inline void loop_connect(struct loop *l)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = RIGHTS };

	assert_int_equal(
		ibv_modify_qp(l->qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_4096,
				     .dest_qp_num = l->qp->qp_num,
				     .max_dest_rd_atomic = 4,
				     .min_rnr_timer = 1,
				     .ah_attr = { .dlid = 1, .port_num = 1 } };
	assert_int_equal(ibv_modify_qp(l->qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 4 };
	assert_int_equal(ibv_modify_qp(l->qp, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static inline void loop_open(struct loop *l)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 32,
			 .max_recv_wr = 32,
			 .max_send_sge = 4,
			 .max_recv_sge = 4,
			 .max_inline_data = 256 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_LOCAL_INV |
				  IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
				  IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
	};
	struct mlx5dv_qp_init_attr mattr = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS |
			     MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS,
		.create_flags = MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED,
	};

	l->ctx = dev_open();
	l->pd = ibv_alloc_pd(l->ctx);
	assert_non_null(l->pd);
	l->cq = ibv_create_cq(l->ctx, 64, NULL, NULL, 0);
	assert_non_null(l->cq);
	attr.pd = l->pd;
	attr.send_cq = attr.recv_cq = l->cq;
	l->qp = mlx5dv_create_qp(l->ctx, &attr, &mattr);
	assert_non_null(l->qp);
	l->qpx = ibv_qp_to_qp_ex(l->qp);
	l->mqp = mlx5dv_qp_ex_from_ibv_qp_ex(l->qpx);
	loop_connect(l);
}

static inline void loop_close(struct loop *l)
{
	assert_int_equal(ibv_destroy_qp(l->qp), 0);
	assert_int_equal(ibv_destroy_cq(l->cq), 0);
	assert_int_equal(ibv_dealloc_pd(l->pd), 0);
	assert_int_equal(ibv_close_device(l->ctx), 0);
}

/* The next completion, within ten seconds. */
static inline struct ibv_wc loop_poll(struct ibv_cq *cq)
{
	const struct timespec nap = { .tv_nsec = 20000 };
	struct timespec now, end;
	struct ibv_wc wc;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 10;
	do {
		n = ibv_poll_cq(cq, 1, &wc);
		assert_true(n >= 0);
		if (n == 1)
			return wc;
		nanosleep(&nap, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	fail_msg("no completion in time");
	return wc;
}

/* A test in a child of its own. It ends by SIGKILL, so that nobody looks for leaks in what such a test
 * must leave behind. */
static inline void in_child(void (*test)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		test();
		kill(getpid(), SIGKILL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static inline uint64_t counter(const char *name)
{
	uint64_t value = 0;

	assert_int_equal(soft0_counter(name, &value), 0);
	return value;
}

#endif /* TEST_DEV_H */
