/* SPDX-License-Identifier: BSD-2-Clause */
/* Work requests: what is refused before the device sees it, full queues, completions, mixed use. */
#include "rig.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>

static uint8_t a[4 * PAGE];

static struct {
	struct ibv_mr *mr, *umr;
	struct ibv_exp_mem_region region;
	struct ibv_exp_mem_repeat_block block;
	size_t bytes, stride, count;
	struct ibv_exp_send_wr list, repeat;
} t;

/* A list and a repeat that are right; each test breaks one thing of them. */
static int setup(void **state)
{
	rig_setup(state);
	t.mr = rig_reg(a, sizeof(a), ALL);
	t.umr = rig_create(24);
	t.region = (struct ibv_exp_mem_region){ (uintptr_t)a, t.mr, 100 };
	t.bytes = 8;
	t.stride = 16;
	t.count = 10;
	t.block = (struct ibv_exp_mem_repeat_block){ (uintptr_t)a, t.mr, &t.bytes, &t.stride };
	t.list = rig_fill(t.umr, 0, ALL);
	rig_set_list(&t.list, &t.region, 1);
	t.repeat = rig_fill(t.umr, 0, ALL);
	rig_set_repeat(&t.repeat, &t.block, 1, &t.count);
	return 0;
}

static int teardown(void **state)
{
	rig_dereg(t.umr);
	rig_dereg(t.mr);
	return rig_teardown(state);
}

#define WITH(wr, change, err_no)                              \
	do {                                                  \
		struct ibv_exp_send_wr copy = wr, *w = &copy; \
		change;                                       \
		FAILS(rig_post(rig.qp, w), err_no);           \
	} while (0)

static void what_a_fill_cannot_be_is_refused(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(rig.context);
	struct ibv_mr *other = ibv_reg_mr(pd, a, 100, 0);
	struct ibv_exp_mem_region wrong = t.region;
	uint64_t before = rig_counter("wqe.umr");

	WITH(t.list, w->ext_op.umr.modified_mr = NULL, EINVAL);
	WITH(t.list, w->ext_op.umr.modified_mr = t.mr, EINVAL);
	WITH(t.list, w->ext_op.umr.umr_type = 3, EINVAL);
	WITH(t.list, w->ext_op.umr.num_mrs = 0, EINVAL);
	WITH(t.list, w->ext_op.umr.num_mrs = 21, EINVAL);
	WITH(t.list, w->ext_op.umr.num_mrs = 25, EINVAL);
	WITH(t.list, w->ext_op.umr.mem_list.mem_reg_list = NULL, EINVAL);
	WITH(t.list, w->ext_op.umr.exp_access = IBV_EXP_ACCESS_REMOTE_WRITE, EINVAL);
	WITH(t.list, w->ext_op.umr.base_addr = UINT64_MAX, EINVAL);
	WITH(t.list, w->exp_send_flags &= ~(uint64_t)IBV_EXP_SEND_INLINE, EINVAL);
	WITH(t.list, w->exp_opcode = (enum ibv_exp_wr_opcode)0x68, EINVAL);
	WITH(t.list, w->exp_opcode = IBV_EXP_WR_NOP, EOPNOTSUPP);
	WITH(t.list, w->exp_opcode = IBV_EXP_WR_CQE_WAIT, EOPNOTSUPP);
	WITH(t.list, w->exp_opcode = IBV_EXP_WR_TSO, EOPNOTSUPP);
	wrong.mr = NULL;
	WITH(t.list, w->ext_op.umr.mem_list.mem_reg_list = &wrong, EINVAL);
	wrong.mr = t.umr;
	WITH(t.list, w->ext_op.umr.mem_list.mem_reg_list = &wrong, EINVAL);
	wrong.mr = other;
	WITH(t.list, w->ext_op.umr.mem_list.mem_reg_list = &wrong, EINVAL);
	wrong.mr = t.mr;
	wrong.length = 0;
	WITH(t.list, w->ext_op.umr.mem_list.mem_reg_list = &wrong, EINVAL);
	wrong.length = 0x80000000; /* the old driver made 0 of 2^32, and a sum of 2^31 negative */
	WITH(t.list, w->ext_op.umr.mem_list.mem_reg_list = &wrong, EINVAL);
	assert_int_equal(rig_counter("wqe.umr"), before);
	rig_dereg(other);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void what_a_repeat_cannot_be_is_refused(void **state)
{
	WITH(t.repeat, w->ext_op.umr.mem_list.rb.stride_dim = 2, EINVAL);
	WITH(t.repeat, w->ext_op.umr.mem_list.rb.repeat_count = NULL, EINVAL);
	WITH(t.repeat, t.block.byte_count = NULL, EINVAL);
	t.block.byte_count = &t.bytes;
	WITH(t.repeat, t.block.stride = NULL, EINVAL);
	t.block.stride = &t.stride;
	WITH(t.repeat, t.bytes = 65536, EINVAL); /* 16 bits, which the old driver cut */
	t.bytes = 8;
	WITH(t.repeat, t.stride = 65536, EINVAL);
	t.stride = 16;
	WITH(t.repeat, t.count = 0, EINVAL);
	WITH(t.repeat, t.count = 1ull << 32, EINVAL);
	t.count = 10;
	rig_do(rig.qp, &t.repeat);
}

static void repeats_over_on_demand_memory_are_refused(void **state)
{
	struct ibv_mr *lazy = rig_reg(a, PAGE, ALL | IBV_EXP_ACCESS_ON_DEMAND);

	WITH(t.repeat, t.block.mr = lazy, EOPNOTSUPP);
	t.region.mr = lazy;
	rig_do(rig.qp, &t.list);
	rig_invalidate(rig.qp, t.umr);
	rig_dereg(lazy);
}

static void list_memory_must_be_large_enough(void **state)
{
	struct ibv_exp_mkey_list_container *list = rig_list(2);
	struct ibv_exp_mem_region regions[3] = { t.region, t.region, t.region };
	struct ibv_exp_mem_repeat_block blocks[2] = { t.block, t.block };

	t.list.exp_send_flags &= ~(uint64_t)IBV_EXP_SEND_INLINE;
	t.list.ext_op.umr.memory_objects = list;
	rig_set_list(&t.list, regions, 3);
	FAILS(rig_post(rig.qp, &t.list), EINVAL);
	rig_set_list(&t.list, regions, 2);
	rig_do(rig.qp, &t.list);
	/* with a repeat's header on top */
	rig_set_repeat(&t.list, blocks, 2, &t.count);
	rig_do(rig.qp, &t.list);
	assert_int_equal(ibv_exp_dealloc_mkey_list_memory(list), 0);
}

/* As many as the device takes in line, with and without a repeat's header. */
static void twenty_entries_travel_in_the_request(void **state)
{
	struct ibv_exp_mem_region regions[20];
	struct ibv_exp_mem_repeat_block blocks[20];
	uint8_t got[20 * 8];
	size_t i;

	for (i = 0; i < 20; i++) {
		regions[i] = (struct ibv_exp_mem_region){ (uintptr_t)a + i * 50, t.mr, 8 };
		blocks[i] = (struct ibv_exp_mem_repeat_block){ (uintptr_t)a + i * 60, t.mr,
							       &t.bytes, &t.stride };
	}
	for (i = 0; i < PAGE; i++)
		a[i] = (uint8_t)(i * 13 + i / 256);
	rig_set_list(&t.list, regions, 20);
	rig_do(rig.qp, &t.list);
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 160, 0, t.umr->rkey), 0);
	for (i = 0; i < 160; i++)
		assert_int_equal(got[i], a[i / 8 * 50 + i % 8]);
	t.count = 1;
	rig_set_repeat(&t.repeat, blocks, 20, &t.count);
	rig_do(rig.qp, &t.repeat);
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 160, 0, t.umr->rkey), 0);
	for (i = 0; i < 160; i++)
		assert_int_equal(got[i], a[i / 8 * 60 + i % 8]);
}

static void the_longest_list(void **state)
{
	const uint32_t most = 65532;
	struct ibv_exp_mkey_list_container *list = rig_list(most);
	struct ibv_exp_mem_region *regions = calloc(most, sizeof(*regions));
	struct ibv_mr *umr = rig_create(most);
	uint8_t got[256];
	uint32_t i;

	assert_non_null(regions);
	for (i = 0; i < PAGE; i++)
		a[i] = (uint8_t)(i * 5 + i / 256);
	for (i = 0; i < most; i++)
		regions[i] = (struct ibv_exp_mem_region){ (uintptr_t)a + i % 4000, t.mr, 1 };
	t.list.exp_send_flags = IBV_EXP_SEND_SIGNALED;
	t.list.ext_op.umr.modified_mr = umr;
	t.list.ext_op.umr.memory_objects = list;
	rig_set_list(&t.list, regions, most);
	rig_do(rig.qp, &t.list);
	free(regions); /* the arrays are read by then */
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 256, most - 256, umr->rkey), 0);
	for (i = 0; i < 256; i++)
		assert_int_equal(got[i], a[(most - 256 + i) % 4000]);
	rig_dereg(umr);
	assert_int_equal(ibv_exp_dealloc_mkey_list_memory(list), 0);
}

static void only_its_own_queue_pairs_take_a_umr(void **state)
{
	struct ibv_qp *fresh = rig_umr_qp(1, 4, 0);

	FAILS(rig_post(rig.peer, &t.list), EINVAL);
	FAILS(rig_post(fresh, &t.list), EINVAL); /* not connected */
	rig_connect(fresh, fresh);
	rig_do(fresh, &t.list);
	assert_int_equal(ibv_destroy_qp(fresh), 0);
}

/* ---- queue pairs ------------------------------------------------------------------------ */

static struct ibv_qp *create(uint32_t comp_mask, uint32_t flags, uint32_t klms,
			     enum ibv_qp_type type)
{
	struct ibv_exp_qp_init_attr attr = { .send_cq = rig.cq,
					     .recv_cq = rig.cq,
					     .cap = { .max_send_wr = 4, .max_send_sge = 1 },
					     .qp_type = type,
					     .comp_mask = comp_mask,
					     .pd = rig.pd,
					     .exp_create_flags = flags,
					     .max_inl_send_klms = klms };

	return ibv_exp_create_qp(rig.context, &attr);
}

static void what_a_queue_pair_cannot_be_is_refused(void **state)
{
	const uint32_t pd = IBV_EXP_QP_INIT_ATTR_PD, flags = IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS;
	const uint32_t klms = IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS, umr = IBV_EXP_QP_CREATE_UMR;
	struct ibv_qp *qp;

	NO_OBJECT(create(pd | flags, umr, 4, IBV_QPT_RC), EINVAL);
	NO_OBJECT(create(pd | klms, umr, 4, IBV_QPT_RC), EINVAL);
	NO_OBJECT(create(pd | flags | klms, umr, 21, IBV_QPT_RC), EINVAL);
	NO_OBJECT(create(flags | klms, umr, 4, IBV_QPT_RC), EINVAL);
	NO_OBJECT(create(pd | flags | klms, umr, 4, IBV_QPT_UC), EOPNOTSUPP);
	NO_OBJECT(create(pd | flags, IBV_EXP_QP_CREATE_CROSS_CHANNEL, 0, IBV_QPT_RC), EOPNOTSUPP);
	NO_OBJECT(create(pd | flags, 1, 0, IBV_QPT_RC), EINVAL);
	NO_OBJECT(create(pd | IBV_EXP_QP_INIT_ATTR_RX_HASH, 0, 0, IBV_QPT_RC), EOPNOTSUPP);
	NO_OBJECT(create(pd | IBV_EXP_QP_INIT_ATTR_RESERVED1, 0, 0, IBV_QPT_RC), EINVAL);
	rig_word("fail", "devx_create:1:ENOMEM");
	NO_OBJECT(create(pd | flags | klms, umr, 4, IBV_QPT_RC), ENOMEM);
	rig_word("fail", "create_qp:2:ENOMEM"); /* counted from 1: the first is tried again */
	qp = create(pd | flags | klms, umr, 0, IBV_QPT_RC);
	assert_non_null(qp);
	rig_word("fail", "create_qp:1:ENOMEM");
	assert_int_equal(ibv_destroy_qp(qp), 0);
	qp = create(pd, 0, 0, IBV_QPT_RC);
	assert_null(qp);
	qp = create(pd | IBV_EXP_QP_INIT_ATTR_INL_RECV, 0, 0, IBV_QPT_UD);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void states_change_as_by_the_ordinary_call(void **state)
{
	struct ibv_exp_qp_attr attr = { .qp_state = IBV_QPS_INIT,
					.port_num = 1,
					.qp_access_flags = IBV_ACCESS_REMOTE_READ };
	const uint64_t mask = IBV_EXP_QP_STATE | IBV_EXP_QP_PKEY_INDEX | IBV_EXP_QP_PORT |
			      IBV_EXP_QP_ACCESS_FLAGS;
	struct ibv_qp *qp = rig_umr_qp(1, 4, 0);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr is;

	FAILS(ibv_exp_modify_qp(qp, &attr, mask | IBV_EXP_QP_OOO_RW_DATA_PLACEMENT), EOPNOTSUPP);
	FAILS(ibv_exp_modify_qp(qp, &attr, IBV_EXP_QP_STATE), EINVAL);
	attr.comp_mask = IBV_EXP_QP_ATTR_FLOW_ENTROPY;
	FAILS(ibv_exp_modify_qp(qp, &attr, mask), EOPNOTSUPP);
	attr.comp_mask = IBV_EXP_QP_ATTR_RESERVED;
	FAILS(ibv_exp_modify_qp(qp, &attr, mask), EINVAL);
	attr.comp_mask = 0;
	assert_int_equal(ibv_exp_modify_qp(qp, &attr, mask), 0);
	assert_int_equal(ibv_query_qp(qp, &is, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS, &init), 0);
	assert_int_equal(is.qp_state, IBV_QPS_INIT);
	assert_int_equal(is.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

/* The requests that a queue pair's ring holds; it did not come around yet. */
static const void *posted_requests(struct ibv_qp *qp, size_t *ret_bytes)
{
	struct mlx5dv_qp dv = { 0 };
	struct mlx5dv_obj obj = { .qp = { .in = qp, .out = &dv } };

	assert_int_equal(mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP), 0);
	*ret_bytes = (size_t)be32toh(dv.dbrec[MLX5_SND_DBR]) * MLX5_SEND_WQE_BB;
	return dv.sq.buf;
}

/* Every request may be a UMR; and beyond what the queue holds nothing is overwritten. */
static void fill_up(int plain)
{
	static uint8_t before[1 << 16];
	int i, ret = 0, posted = 0;
	size_t size = 0;

	rig_word("hold", "1");
	for (i = 0; i < plain; i++) {
		rig_post_recv(rig.peer, (uintptr_t)a, 8, t.mr->lkey, 1);
		rig_post_send(rig.qp, (uintptr_t)a, 8, t.mr->lkey, 2);
	}
	while (!ret) {
		const void *ring = posted_requests(rig.qp, &size);

		assert_true(size <= sizeof(before));
		memcpy(before, ring, size);
		t.list.wr_id = (uint64_t)posted;
		t.list.ext_op.umr.base_addr =
			(uint64_t)posted; /* each can be told from the others */
		ret = rig_post(rig.qp, &t.list);
		posted += !ret;
		assert_memory_equal(posted_requests(rig.qp, &size), before, ret ? size : 0);
	}
	assert_int_equal(ret, ENOMEM);
	assert_true(posted >= 16);
	rig_word("hold", "0");
	for (i = 0; i < 2 * plain; i++)
		assert_int_equal(rig_poll().status, IBV_WC_SUCCESS);
	for (i = 0; i < posted; i++)
		rig_done((uint64_t)i, IBV_EXP_WC_UMR);
	rig_quiet();
	rig_do(rig.qp, &t.list);
}

static void a_full_queue_is_told_and_left_alone(void **state)
{
	fill_up(0);
}

/* One place is left: room for half of what a UMR is. */
static void a_queue_with_one_place_is_full(void **state)
{
	fill_up(1);
}

static void each_request_has_one_completion(void **state)
{
	struct ibv_qp *all = rig_umr_qp(2, 4, 1);
	int i;

	rig_connect(all, all);
	t.list.exp_send_flags = IBV_EXP_SEND_INLINE;
	for (i = 0; i < 50; i++) {
		t.list.wr_id = (uint64_t)i;
		rig_do(all, &t.list);
	}
	rig_quiet();
	assert_int_equal(rig_post(rig.qp, &t.list), 0);
	rig_quiet();
	assert_int_equal(ibv_destroy_qp(all), 0);
}

/* ---- completions -------------------------------------------------------------------------------- */

/* The request behind it is flushed: what libibmr-exp(7) says of a UMR that fails. */
static void a_umr_that_fails_is_told_and_flushed(void **state)
{
	struct ibv_exp_wc wc;

	rig_word("fail_wqe", "1");
	assert_int_equal(rig_post(rig.qp, &t.list), 0);
	wc = rig_poll();
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(wc.wr_id, t.list.wr_id);
	wc = rig_poll();
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, t.list.wr_id);
	rig_quiet();
}

static void plain_poll_tells_a_umr_from_a_receive(void **state)
{
	struct ibv_wc wc;

	assert_int_equal(rig_post(rig.qp, &t.list), 0);
	while (!ibv_poll_cq(rig.cq, 1, &wc))
		;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, t.list.wr_id);
	assert_false(wc.opcode & IBV_WC_RECV);
	assert_int_equal(wc.opcode, IBV_EXP_WC_UMR);
}

static void programs_of_other_releases_have_other_elements(void **state)
{
	struct {
		struct ibv_exp_wc wc;
		uint64_t more[3];
	} larger[4];
	uint64_t small[4][6];
	int i, n;

	for (i = 0; i < 3; i++) {
		t.list.wr_id = 100 + (uint64_t)i;
		assert_int_equal(rig_post(rig.qp, &t.list), 0);
	}
	memset(larger, 0xff, sizeof(larger));
	for (n = 0; n < 3;)
		n += ibv_exp_poll_cq(rig.cq, 4 - n, &larger[n].wc, sizeof(larger[0]));
	for (i = 0; i < 3; i++) {
		assert_int_equal(larger[i].wc.wr_id, 100 + i);
		assert_int_equal(larger[i].wc.exp_opcode, IBV_EXP_WC_UMR);
		assert_int_equal(larger[i].wc.qp_num, rig.qp->qp_num);
		assert_int_equal(larger[i].more[2], 0);
		assert_int_equal(rig_post(rig.qp, &t.list), 0);
	}
	memset(small, 0xff, sizeof(small));
	for (n = 0; n < 3;)
		n += ibv_exp_poll_cq(rig.cq, 4 - n, (struct ibv_exp_wc *)(void *)small[n],
				     sizeof(small[0]));
	for (i = 0; i < 3; i++)
		assert_int_equal(small[i][0], t.list.wr_id);
	assert_int_equal(small[3][0], UINT64_MAX);
}

/* ---- mixed use -------------------------------------------------------------------------------------- */

static void one_chain_carries_fills_and_data(void **state)
{
	uint8_t got[64] = { 0 };
	struct ibv_mr *mg = rig_reg(got, sizeof(got), ALL);
	struct ibv_sge sge = { (uintptr_t)got, 64, mg->lkey };
	struct ibv_exp_send_wr read = { .wr_id = 7,
					.sg_list = &sge,
					.num_sge = 1,
					.exp_opcode = IBV_EXP_WR_RDMA_READ,
					.exp_send_flags = IBV_EXP_SEND_SIGNALED };

	memset(a, 0x3c, sizeof(a));
	read.wr.rdma.rkey = t.umr->rkey;
	t.list.next = &read;
	assert_int_equal(rig_post(rig.qp, &t.list), 0);
	rig_done(t.list.wr_id, IBV_EXP_WC_UMR);
	rig_done(7, IBV_EXP_WC_RDMA_READ);
	assert_memory_equal(got, a, 64);
	rig_dereg(mg);
}

static void a_member_may_go_and_then_the_device_says_no(void **state)
{
	struct ibv_mr *gone = rig_reg(a, PAGE, ALL);
	uint8_t got[8];

	t.region.mr = gone;
	rig_do(rig.qp, &t.list);
	rig_dereg(gone);
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 8, 0, t.umr->rkey),
			 IBV_WC_REM_ACCESS_ERR);
}

static void an_invalidated_key_is_good_for_nothing_until_filled(void **state)
{
	uint8_t got[8];

	rig_invalidate(rig.qp, t.umr); /* never filled */
	rig_do(rig.qp, &t.list);
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 8, 0, t.umr->rkey), 0);
	rig_invalidate(rig.qp, t.umr);
	rig_do(rig.qp, &t.list);
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 8, 0, t.umr->rkey), 0);
	rig_invalidate(rig.qp, t.umr);
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 8, 0, t.umr->rkey),
			 IBV_WC_REM_ACCESS_ERR);
}

/* Rights come with the fill alone: none are left from before, and local read is never missing. */
static void a_fill_without_rights_is_for_local_reads(void **state)
{
	uint8_t got[100] = { 0 };
	struct ibv_mr *mg = rig_reg(got, sizeof(got), ALL);

	memset(a, 0x5a, sizeof(a));
	rig_do(rig.qp, &t.list);
	t.list.ext_op.umr.exp_access = 0;
	rig_do(rig.qp, &t.list);
	rig_post_recv(rig.peer, (uintptr_t)got, sizeof(got), mg->lkey, 1);
	rig_post_send(rig.qp, 0, sizeof(got), t.umr->lkey, 2);
	assert_int_equal(rig_poll().status, IBV_WC_SUCCESS);
	assert_int_equal(rig_poll().status, IBV_WC_SUCCESS);
	assert_memory_equal(got, a, sizeof(got));
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 8, 0, t.umr->rkey),
			 IBV_WC_REM_ACCESS_ERR);
	rig_dereg(mg);
}

static void what_is_without_rights_is_not_received_into(void **state)
{
	struct ibv_exp_wc wc;

	memset(a, 0, sizeof(a));
	a[PAGE] = 0x77;
	t.list.ext_op.umr.exp_access = 0;
	rig_do(rig.qp, &t.list);
	rig_post_recv(rig.peer, 0, 8, t.umr->lkey, 1);
	rig_post_send(rig.qp, (uintptr_t)a + PAGE, 8, t.mr->lkey, 2);
	wc = rig_poll();
	if (wc.wr_id != 1)
		wc = rig_poll();
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(a[0], 0);
}

/* The old library summed up in 32 bits, with a sign. */
static void more_than_four_gib_by_one_key(void **state)
{
	const uint64_t cycles = 1ull << 20, at = (cycles - 1) * 8192 + 8000; /* 8 GiB */
	uint8_t got[192];
	size_t i;

	for (i = 0; i < 2 * PAGE; i++)
		a[i] = (uint8_t)(i * 3 + i / 256);
	t.bytes = 2 * PAGE;
	t.stride = 0;
	t.count = cycles;
	rig_do(rig.qp, &t.repeat);
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, sizeof(got), at, t.umr->rkey),
			 0);
	assert_memory_equal(got, a + 8000, sizeof(got));
}

static void depth_is_counted(void **state)
{
	struct ibv_mr *keys[5];
	int i;

	for (i = 0; i < 5; i++) {
		keys[i] = rig_create(1);
		t.region = (struct ibv_exp_mem_region){ 0, i ? keys[i - 1] : t.mr, 10 };
		if (!i)
			t.region.base_addr = (uintptr_t)a;
		t.list.ext_op.umr.modified_mr = keys[i];
		if (i < 4)
			rig_do(rig.qp, &t.list);
		else
			FAILS(rig_post(rig.qp, &t.list), EINVAL);
	}
	for (i = 4; i >= 0; i--)
		rig_dereg(keys[i]);
}

static void entries_of_one_size(void **state)
{
	struct ibv_exp_mem_region regions[3] = { t.region, t.region, t.region };

	rig_set_list(&t.list, regions, 3);
	t.list.ext_op.umr.umr_type = IBV_EXP_UMR_MR_LIST_FIXED_SIZE;
	regions[2].length = 50;
	rig_do(rig.qp, &t.list);
	regions[1].length = 50;
	FAILS(rig_post(rig.qp, &t.list), EINVAL);
	regions[1].length = 100;
	regions[2].length = 101;
	FAILS(rig_post(rig.qp, &t.list), EINVAL);
}

static void calls_are_found_by_name(void **state)
{
	struct ibv_exp_send_wr *bad;
	int (*send)(struct ibv_qp * qp, struct ibv_exp_send_wr * wr,
		    struct ibv_exp_send_wr * *bad_wr);
	int (*poll)(struct ibv_cq * cq, int num, struct ibv_exp_wc *wc, uint32_t size);
	struct ibv_exp_wc wc;

	*(void **)&send = ibv_exp_get_provider_func(rig.context, IBV_EXP_POST_SEND_FUNC);
	*(void **)&poll = ibv_exp_get_provider_func(rig.context, IBV_EXP_POLL_CQ_FUNC);
	assert_int_equal(send(rig.qp, &t.list, &bad), 0);
	while (!poll(rig.cq, 1, &wc, sizeof(wc)))
		;
	assert_int_equal(wc.exp_opcode, IBV_EXP_WC_UMR);
	assert_non_null(ibv_exp_get_provider_func(rig.context, IBV_POST_SEND_FUNC));
	assert_non_null(ibv_exp_get_provider_func(rig.context, IBV_POLL_CQ_FUNC));
	assert_non_null(ibv_exp_get_provider_func(rig.context, IBV_POST_RECV_FUNC));
	NO_OBJECT(ibv_exp_get_provider_func(rig.context, (enum ibv_exp_func_name)9), ENOSYS);
}

#define ON_RIG(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RIG(what_a_fill_cannot_be_is_refused),
		ON_RIG(what_a_repeat_cannot_be_is_refused),
		ON_RIG(repeats_over_on_demand_memory_are_refused),
		ON_RIG(list_memory_must_be_large_enough),
		ON_RIG(twenty_entries_travel_in_the_request),
		ON_RIG(the_longest_list),
		ON_RIG(only_its_own_queue_pairs_take_a_umr),
		ON_RIG(what_a_queue_pair_cannot_be_is_refused),
		ON_RIG(states_change_as_by_the_ordinary_call),
		ON_RIG(a_full_queue_is_told_and_left_alone),
		ON_RIG(a_queue_with_one_place_is_full),
		ON_RIG(each_request_has_one_completion),
		ON_RIG(a_umr_that_fails_is_told_and_flushed),
		ON_RIG(plain_poll_tells_a_umr_from_a_receive),
		ON_RIG(programs_of_other_releases_have_other_elements),
		ON_RIG(one_chain_carries_fills_and_data),
		ON_RIG(a_member_may_go_and_then_the_device_says_no),
		ON_RIG(an_invalidated_key_is_good_for_nothing_until_filled),
		ON_RIG(a_fill_without_rights_is_for_local_reads),
		ON_RIG(what_is_without_rights_is_not_received_into),
		ON_RIG(more_than_four_gib_by_one_key),
		ON_RIG(depth_is_counted),
		ON_RIG(entries_of_one_size),
		ON_RIG(calls_are_found_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
