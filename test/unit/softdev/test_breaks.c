/* SPDX-License-Identifier: BSD-2-Clause */
/* The deliberate defects: each does what its name says, and is gone when it is switched off. */
#include "rig.h"

static enum ibv_wc_status look(struct rig *r, uint32_t rkey, uint64_t raddr, uint32_t bytes)
{
	struct ibv_wc wc;

	post_rdma(r->qp, 1, IBV_WR_RDMA_READ, sge(r->mr, r->buf + 50000, bytes), rkey, raddr);
	wc = wait_wc(r->cq);
	if (wc.status != IBV_WC_SUCCESS)
		reconnect_self(r->qp);
	return wc.status;
}

static bool write_is_right(struct rig *r)
{
	for (int i = 0; i < 16; i++)
		r->buf[100 + i] = (uint8_t)(i + 40);
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf + 100, 16), r->mr->rkey,
		  (uintptr_t)r->buf + 200);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	return !memcmp(r->buf + 100, r->buf + 200, 16);
}

static void wrong_byte(void **state)
{
	struct rig *r = *state;

	assert_true(write_is_right(r));
	set("break", "wrong_byte");
	assert_false(write_is_right(r));
	mode_restore();
	assert_true(write_is_right(r));
}

static void off_by_one(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, 64, ALL_ACCESS);
	const struct klm k = BLOCK(r->mr, r->buf + 10, 5, 5);

	assert_non_null(mr);
	fill_list(r, m, ALL_ACCESS, &k, 1);
	set("break", "off_by_one");
	assert_int_equal(look(r, mr->rkey, (uintptr_t)r->buf + 64, 1), IBV_WC_SUCCESS);
	assert_int_equal(look(r, m->rkey, 5, 1), IBV_WC_SUCCESS);
	assert_int_equal(look(r, m->rkey, 6, 1), IBV_WC_REM_ACCESS_ERR);
	fill_repeat(r, m, ALL_ACCESS, 3, &k, 1);
	assert_int_equal(look(r, m->rkey, 0, 16), IBV_WC_SUCCESS);
	mode_restore();
	assert_int_equal(look(r, m->rkey, 0, 16), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void stale_layout(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	struct klm k = KLM(r->mr, r->buf + 100, 1);

	r->buf[100] = 1;
	r->buf[200] = 2;
	set("break", "stale_layout");
	fill_list(r, m, ALL_ACCESS, &k, 1);
	look(r, m->rkey, 0, 1);
	assert_int_equal(r->buf[50000], 1);
	k.at = r->buf + 200;
	fill_list(r, m, ALL_ACCESS, &k, 1);
	look(r, m->rkey, 0, 1);
	assert_int_equal(r->buf[50000], 1);
	mode_restore();
	fill_list(r, m, ALL_ACCESS, &k, 1);
	look(r, m->rkey, 0, 1);
	assert_int_equal(r->buf[50000], 2);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

static void no_rights(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, 64, 0);

	assert_non_null(mr);
	set("break", "no_rights");
	assert_int_equal(look(r, mr->rkey, (uintptr_t)r->buf, 1), IBV_WC_SUCCESS);
	mode_restore();
	assert_int_equal(look(r, mr->rkey, (uintptr_t)r->buf, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void lost_completion(void **state)
{
	struct rig *r = *state;

	set("break", "lost_completion");
	for (uint64_t i = 1; i <= 4; i++)
		post_rdma(r->qp, i, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf, 1), r->mr->rkey,
			  (uintptr_t)r->buf + 1);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	expect_wc(r->cq, 4, IBV_WC_SUCCESS);
	expect_no_wc(r->cq);
}

/* A queue pair made with it off gets it all the same: memory stays as it was until the entry is
 * polled. */
static void scatter_cqe(void **state)
{
	struct rig *r = *state;

	set("mode", "sync");
	set("break", "scatter_cqe");
	r->buf[50000] = 0;
	r->buf[100] = 9;
	post_rdma(r->qp, 1, IBV_WR_RDMA_READ, sge(r->mr, r->buf + 50000, 1), r->mr->rkey,
		  (uintptr_t)r->buf + 100);
	assert_int_equal(r->buf[50000], 0);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	assert_int_equal(r->buf[50000], 9);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(wrong_byte), TEST(off_by_one),	 TEST(stale_layout),
		TEST(no_rights),  TEST(lost_completion), TEST(scatter_cqe),
	};

	return cmocka_run_group_tests_name("breaks", tests, NULL, NULL);
}
