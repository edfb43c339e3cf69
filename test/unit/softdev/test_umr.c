/* SPDX-License-Identifier: BSD-2-Clause */
/* UMR: what it fills, what each field of it does, and every defect that is refused. */
#include "rig.h"

static void write_lands_by_list(void **state)
{
	struct rig *r = *state;
	struct mlx5dv_mkey *m = make_mkey(r->pd, 4);
	const struct klm klms[] = { { r->mr, r->buf + 100, 10 }, { r->mr, r->buf + 5000, 6 } };
	uint8_t before[BUF_BYTES];

	fill_list(r, m, ALL_ACCESS, klms, 2);
	for (int i = 0; i < 12; i++)
		r->buf[40000 + i] = (uint8_t)(0xf0 + i);
	memcpy(before, r->buf, BUF_BYTES);
	post_rdma(r->qp, 1, IBV_WR_RDMA_WRITE, sge(r->mr, r->buf + 40000, 12), m->rkey, 2);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	memcpy(before + 102, before + 40000, 8);
	memcpy(before + 5000, before + 40008, 4);
	assert_memory_equal(r->buf, before, BUF_BYTES);
	post_rdma(r->qp, 2, IBV_WR_RDMA_READ, sge(r->mr, r->buf + 50000, 16), m->rkey, 0);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf + 50000, before + 100, 10);
	assert_memory_equal(r->buf + 50010, before + 5000, 6);
	assert_int_equal(mlx5dv_destroy_mkey(m), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(write_lands_by_list, rig_setup, rig_teardown),
	};

	return cmocka_run_group_tests_name("umr", tests, NULL, NULL);
}
