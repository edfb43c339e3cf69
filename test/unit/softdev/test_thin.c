/* SPDX-License-Identifier: BSD-2-Clause */
/* The thinnest whole: two buffers become one indirect key, written and read through by RDMA. */
#include "dev.h"

#define HALF ((size_t)3000)

static void umr_list(struct loop *l, struct mlx5dv_mkey *mkey, struct ibv_sge *sge, uint16_t num)
{
	struct ibv_wc wc;

	ibv_wr_start(l->qpx);
	l->qpx->wr_id = 1;
	l->qpx->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
	mlx5dv_wr_mr_list(l->mqp, mkey, RIGHTS, num, sge);
	assert_int_equal(ibv_wr_complete(l->qpx), 0);
	wc = loop_poll(l->cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, MLX5DV_WC_UMR);
	assert_int_equal(wc.wr_id, 1);
}

static struct ibv_wc rdma(struct loop *l, enum ibv_wr_opcode opcode, struct ibv_mr *mr, void *at,
			  uint32_t len, uint32_t rkey, uint64_t remote)
{
	struct ibv_sge sge = { (uintptr_t)at, len, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 2,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { remote, rkey } },
			   *bad;

	assert_int_equal(ibv_post_send(l->qp, &wr, &bad), 0);
	return loop_poll(l->cq);
}

static void write_and_read_through_a_list(void **state)
{
	static uint8_t a[HALF + 200], b[HALF + 200], flat[2 * HALF], back[2 * HALF];
	struct mlx5dv_mkey_init_attr init = { .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 2 };
	struct mlx5dv_mkey *mkey;
	struct ibv_mr *ma, *mb, *mf, *mk;
	struct ibv_sge sge[2];
	struct loop l;
	struct ibv_wc wc;
	size_t i;

	loop_open(&l);
	ma = ibv_reg_mr(l.pd, a, sizeof(a), RIGHTS);
	mb = ibv_reg_mr(l.pd, b, sizeof(b), RIGHTS);
	mf = ibv_reg_mr(l.pd, flat, sizeof(flat), IBV_ACCESS_LOCAL_WRITE);
	mk = ibv_reg_mr(l.pd, back, sizeof(back), IBV_ACCESS_LOCAL_WRITE);
	assert_true(ma && mb && mf && mk);
	init.pd = l.pd;
	mkey = mlx5dv_create_mkey(&init);
	assert_non_null(mkey);
	sge[0] = (struct ibv_sge){ (uintptr_t)a + 100, HALF, ma->lkey };
	sge[1] = (struct ibv_sge){ (uintptr_t)b + 100, HALF, mb->lkey };
	umr_list(&l, mkey, sge, 2);

	for (i = 0; i < sizeof(flat); i++)
		flat[i] = (uint8_t)(i * 7 + 1);
	wc = rdma(&l, IBV_WR_RDMA_WRITE, mf, flat, sizeof(flat), mkey->rkey, 0);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(a + 100, flat, HALF);
	assert_memory_equal(b + 100, flat + HALF, HALF);
	for (i = 0; i < 100; i++)
		assert_true(!a[i] && !b[i] && !a[HALF + 100 + i] && !b[HALF + 100 + i]);
	wc = rdma(&l, IBV_WR_RDMA_READ, mk, back, sizeof(back), mkey->rkey, 0);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_memory_equal(back, flat, sizeof(flat));

	/* one byte past the end */
	wc = rdma(&l, IBV_WR_RDMA_WRITE, mf, flat, 1, mkey->rkey, 2 * HALF);
	assert_int_equal(wc.status, IBV_WC_REM_ACCESS_ERR);

	assert_int_equal(mlx5dv_destroy_mkey(mkey), 0);
	assert_int_equal(ibv_dereg_mr(ma), 0);
	assert_int_equal(ibv_dereg_mr(mb), 0);
	assert_int_equal(ibv_dereg_mr(mf), 0);
	assert_int_equal(ibv_dereg_mr(mk), 0);
	loop_close(&l);
	assert_int_equal(counter("live.mkey"), 0);
	assert_int_equal(counter("live.qp"), 0);
	assert_int_equal(counter("live.context"), 0);
	assert_int_equal(counter("pinned_bytes"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_and_read_through_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
