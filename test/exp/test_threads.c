/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several users in one process, who know nothing of each other: each with a queue pair of its own, on one
 * PD; regions are made, filled, read through and given back by all at once.
 */
#include "rig.h"

#include <pthread.h>
#include <time.h>

#define THREADS	   4
#define ROUNDS	   60
#define DEADLINE_S 20

struct user {
	pthread_t thread;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint8_t from[4096], to[64];
	unsigned seed;
	const char *failed; /* what, in the thread that may not fail the test itself */
};

static struct user users[THREADS];

static int wait_for(struct user *u, enum ibv_exp_wc_opcode opcode)
{
	struct timespec start, now;
	struct ibv_exp_wc wc;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		n = ibv_exp_poll_cq(u->cq, 1, &wc, sizeof(wc));
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!n && now.tv_sec - start.tv_sec < DEADLINE_S);
	return n == 1 && !wc.status && wc.exp_opcode == opcode;
}

/* Read 64 bytes, two pieces, through umr and back. */
static const char *use(struct user *u, struct ibv_mr *from, struct ibv_mr *to, struct ibv_mr *umr)
{
	size_t at = (size_t)rand_r(&u->seed) % 3000;
	struct ibv_exp_mem_region regions[2] = { { (uintptr_t)u->from + at, from, 40 },
						 { (uintptr_t)u->from + 8, from, 24 } };
	struct ibv_exp_send_wr fill = rig_fill(umr, at, ALL), *bad;
	struct ibv_sge sge = { (uintptr_t)u->to, 64, to->lkey };
	struct ibv_send_wr read = { .sg_list = &sge,
				    .num_sge = 1,
				    .opcode = IBV_WR_RDMA_READ,
				    .send_flags = IBV_SEND_SIGNALED },
			   *bad_read;

	rig_set_list(&fill, regions, 2);
	read.wr.rdma.remote_addr = at;
	read.wr.rdma.rkey = umr->rkey;
	if (ibv_exp_post_send(u->qp, &fill, &bad) || ibv_post_send(u->qp, &read, &bad_read))
		return "post";
	if (!wait_for(u, IBV_EXP_WC_UMR) || !wait_for(u, IBV_EXP_WC_RDMA_READ))
		return "completion";
	if (memcmp(u->to, u->from + at, 40) || memcmp(u->to + 40, u->from + 8, 24))
		return "bytes";
	return NULL;
}

static const char *one_round(struct user *u)
{
	struct ibv_exp_reg_mr_in in = {
		.pd = rig.pd, .addr = u->from, .length = sizeof(u->from), .exp_access = ALL
	};
	struct ibv_exp_create_mr_in create = { .pd = rig.pd };
	struct ibv_mr *from, *to, *umr;
	const char *failed;

	from = ibv_exp_reg_mr(&in);
	to = ibv_reg_mr(rig.pd, u->to, sizeof(u->to), IBV_ACCESS_LOCAL_WRITE);
	create.attr.max_klm_list_size = 2;
	create.attr.create_flags = IBV_EXP_MR_INDIRECT_KLMS;
	umr = ibv_exp_create_mr(&create);
	if (!from || !to || !umr)
		return "regions";
	failed = use(u, from, to, umr);
	if (ibv_dereg_mr(umr) || ibv_dereg_mr(from) || ibv_dereg_mr(to))
		return "dereg";
	return failed;
}

static void *work(void *arg)
{
	struct user *u = arg;
	size_t i;

	for (i = 0; i < sizeof(u->from); i++)
		u->from[i] = (uint8_t)rand_r(&u->seed);
	for (i = 0; i < ROUNDS && !u->failed; i++)
		u->failed = one_round(u);
	return NULL;
}

static void users_do_not_meet(void **state)
{
	struct ibv_cq *cq = rig.cq;
	int i;

	for (i = 0; i < THREADS; i++) {
		struct user *u = &users[i];

		u->seed = (unsigned)i + 1;
		u->cq = rig.cq = ibv_create_cq(rig.context, 16, NULL, NULL, 0);
		assert_non_null(u->cq);
		u->qp = rig_umr_qp(4, 4, 0);
		rig_connect(u->qp, u->qp);
	}
	rig.cq = cq;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&users[i].thread, NULL, work, &users[i]), 0);
	for (i = 0; i < THREADS; i++)
		pthread_join(users[i].thread, NULL);
	for (i = 0; i < THREADS; i++) {
		if (users[i].failed)
			fail_msg("user %d: %s", i, users[i].failed);
		assert_int_equal(ibv_destroy_qp(users[i].qp), 0);
		assert_int_equal(ibv_destroy_cq(users[i].cq), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(users_do_not_meet, rig_setup_bare, rig_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
