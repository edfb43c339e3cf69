/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each way in which programs were seen to use the old library: a ping over an indirect MR, keys with an
 * offset, strided receive buffers, remapping, nesting, a registration cache with prefetch.
 */
#include "rig.h"

#include <sys/mman.h>

static uint8_t a[3 * PAGE], b[3 * PAGE], flat[3 * PAGE], got[3 * PAGE];

static void ramp(uint8_t *at, size_t length, unsigned seed)
{
	size_t i;

	for (i = 0; i < length; i++)
		at[i] = (uint8_t)(i * 7 + i / 256 + seed);
}

static void start(void)
{
	ramp(a, sizeof(a), 1);
	ramp(b, sizeof(b), 2);
	memset(flat, 0xee, sizeof(flat));
	memset(got, 0xdd, sizeof(got));
}

/* ---- a ping: fill, and the send right behind it, without a poll between -------------------- */

/* Send length bytes through umr and receive them flat. The fill is not waited for. */
static void ping(struct ibv_exp_send_wr *fill, uint64_t addr, const uint8_t *want, uint32_t length)
{
	struct ibv_mr *umr = fill->ext_op.umr.modified_mr;
	struct ibv_mr *to = rig_reg(flat, sizeof(flat), ALL);

	memset(flat, 0xee, sizeof(flat));
	rig_post_recv(rig.peer, (uintptr_t)flat, sizeof(flat), to->lkey, 1);
	fill->exp_send_flags &= ~(uint64_t)IBV_EXP_SEND_SIGNALED;
	assert_int_equal(rig_post(rig.qp, fill), 0);
	rig_post_send(rig.qp, addr, length, umr->lkey, 2);
	if (rig_poll().wr_id == 1)
		rig_done(2, IBV_EXP_WC_SEND);
	else
		rig_done(1, IBV_EXP_WC_RECV);
	rig_quiet();
	assert_memory_equal(flat, want, length);
	assert_int_equal(flat[length], 0xee);
	rig_dereg(to);
}

/* Both ways to hand entries over: in the request, and in list memory. */
static void ping_both(struct ibv_exp_send_wr *fill, uint64_t addr, const uint8_t *want,
		      uint32_t length)
{
	struct ibv_exp_mkey_list_container *list = rig_list(64);

	fill->exp_send_flags |= IBV_EXP_SEND_INLINE;
	ping(fill, addr, want, length);
	rig_invalidate(rig.qp, fill->ext_op.umr.modified_mr);
	fill->exp_send_flags &= ~(uint64_t)IBV_EXP_SEND_INLINE;
	fill->ext_op.umr.memory_objects = list;
	ping(fill, addr, want, length);
	rig_invalidate(rig.qp, fill->ext_op.umr.modified_mr);
	assert_int_equal(ibv_exp_dealloc_mkey_list_memory(list), 0);
}

static void a_ping_over_a_list(void **state)
{
	struct ibv_mr *ma, *mb, *umr = rig_create(3);
	struct ibv_exp_mem_region regions[3];
	struct ibv_exp_send_wr fill;

	start();
	ma = rig_reg(a, sizeof(a), IBV_EXP_ACCESS_LOCAL_WRITE);
	mb = rig_reg(b, sizeof(b), IBV_EXP_ACCESS_LOCAL_WRITE);
	regions[0] = (struct ibv_exp_mem_region){ (uintptr_t)a + 10, ma, 300 };
	regions[1] = (struct ibv_exp_mem_region){ (uintptr_t)b, mb, 5000 };
	regions[2] = (struct ibv_exp_mem_region){ (uintptr_t)a + 1, ma, 1 };
	memcpy(got, a + 10, 300);
	memcpy(got + 300, b, 5000);
	got[5300] = a[1];
	fill = rig_fill(umr, (uintptr_t)a + 10, IBV_EXP_ACCESS_LOCAL_WRITE);
	rig_set_list(&fill, regions, 3);
	umr->addr = a + 10; /* as the example of the old library does */
	umr->length = 5301;
	ping_both(&fill, (uintptr_t)umr->addr, got, 5301);
	rig_dereg(umr);
	rig_dereg(ma);
	rig_dereg(mb);
}

static void a_ping_over_a_repeat(void **state)
{
	struct ibv_mr *ma, *mb, *umr = rig_create(2);
	size_t bytes[2] = { 5, 3 }, stride[2] = { 16, 3 }, count = 200, i;
	struct ibv_exp_mem_repeat_block blocks[2];
	struct ibv_exp_send_wr fill;

	start();
	ma = rig_reg(a, sizeof(a), IBV_EXP_ACCESS_LOCAL_WRITE);
	mb = rig_reg(b, sizeof(b), IBV_EXP_ACCESS_LOCAL_WRITE);
	blocks[0] = (struct ibv_exp_mem_repeat_block){ (uintptr_t)a, ma, &bytes[0], &stride[0] };
	blocks[1] = (struct ibv_exp_mem_repeat_block){ (uintptr_t)b, mb, &bytes[1], &stride[1] };
	for (i = 0; i < count; i++) {
		memcpy(got + i * 8, a + i * 16, 5);
		memcpy(got + i * 8 + 5, b + i * 3, 3);
	}
	fill = rig_fill(umr, 0x123456789000, IBV_EXP_ACCESS_LOCAL_WRITE);
	rig_set_repeat(&fill, blocks, 2, &count);
	ping_both(&fill, 0x123456789000, got, 1600);
	rig_dereg(umr);
	rig_dereg(ma);
	rig_dereg(mb);
}

/* ---- the same memory under a second key, with its addresses shifted ----------------------------- */

static void a_key_with_an_offset(void **state)
{
	struct ibv_mr *ma, *umr = rig_create(1);
	uint64_t base = (uintptr_t)a + 40, old = 0;
	struct ibv_exp_mem_region region;
	struct ibv_exp_send_wr fill;
	struct ibv_sge sge;
	struct ibv_send_wr wr, *bad;
	struct ibv_mr *mo;

	start();
	ma = rig_reg(a, sizeof(a), ALL);
	region = (struct ibv_exp_mem_region){ (uintptr_t)a, ma, sizeof(a) };
	fill = rig_fill(umr, base, ALL);
	rig_set_list(&fill, &region, 1);
	rig_do(rig.qp, &fill);
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, sizeof(a), base, umr->rkey), 0);
	assert_memory_equal(got, a, sizeof(a));
	/* an atomic by the shifted address lands on the memory's first word */
	memset(a, 0, 8);
	mo = rig_reg(&old, sizeof(old), ALL);
	sge = (struct ibv_sge){ (uintptr_t)&old, 8, mo->lkey };
	memset(&wr, 0, sizeof(wr));
	wr.wr_id = 9;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.wr.atomic.remote_addr = base;
	wr.wr.atomic.rkey = umr->rkey;
	wr.wr.atomic.compare_add = 77;
	assert_int_equal(ibv_post_send(rig.peer, &wr, &bad), 0);
	rig_done(9, IBV_EXP_WC_FETCH_ADD);
	memcpy(&old, a, 8);
	assert_int_equal(old, 77);
	rig_dereg(mo);
	/* no invalidate before, as communication libraries do */
	rig_dereg(umr);
	rig_dereg(ma);
}

/* ---- packets scattered by a strided buffer that another queue pair receives into ------------------- */

/* Headers to one place each time (stride 0), payloads one behind the other, the rest to padding. */
static void scatter(uint32_t blocks_used)
{
	enum { HEAD = 14, BODY = 16, PAD = 10, PACKETS = 12 };
	size_t bytes[4] = { HEAD, BODY, PAD, 2 }, stride[4] = { 0, BODY, 0, 2 }, count = PACKETS;
	struct ibv_mr *ma = rig_reg(a, sizeof(a), ALL), *mf = rig_reg(flat, sizeof(flat), ALL);
	struct ibv_mr *umr = rig_create(4);
	struct ibv_exp_mem_repeat_block blocks[4];
	uint32_t packet = 0;
	size_t i;
	struct ibv_exp_send_wr fill;

	start();
	memset(a, 0, sizeof(a));
	for (i = 0; i < 4; i++)
		blocks[i] = (struct ibv_exp_mem_repeat_block){ (uintptr_t)a + i * 1024, ma,
							       &bytes[i], &stride[i] };
	for (i = 0; i < blocks_used; i++)
		packet += (uint32_t)bytes[i];
	fill = rig_fill(umr, (uintptr_t)a, IBV_EXP_ACCESS_LOCAL_WRITE);
	rig_set_repeat(&fill, blocks, blocks_used, &count);
	rig_do(rig.qp, &fill);
	for (i = 0; i < PACKETS; i++) {
		ramp(flat, packet, (unsigned)i * 3);
		/* small enough to be scattered to the completion, where that is not turned off */
		rig_post_recv(rig.peer, (uintptr_t)a + i * packet, packet, umr->lkey, 1);
		rig_post_send(rig.qp, (uintptr_t)flat, packet, mf->lkey, 2);
		if (rig_poll().wr_id == 1)
			rig_done(2, IBV_EXP_WC_SEND);
		else
			rig_done(1, IBV_EXP_WC_RECV);
		assert_memory_equal(a, flat, HEAD);
		assert_int_equal(a[HEAD], 0);
		assert_memory_equal(a + 1024 + i * BODY, flat + HEAD, BODY);
		assert_int_equal(a[1024 + (i + 1) * BODY], 0);
		if (blocks_used == 4)
			assert_memory_equal(a + 3072 + i * 2, flat + packet - 2, 2);
	}
	rig_invalidate(rig.qp, umr);
	rig_dereg(umr);
	rig_dereg(ma);
	rig_dereg(mf);
}

static void packets_are_scattered_by_two_blocks(void **state)
{
	scatter(2);
}

static void packets_are_scattered_by_four_blocks(void **state)
{
	scatter(4);
}

static void receive_small(void)
{
	struct ibv_mr *ma = rig_reg(a, sizeof(a), ALL), *mf = rig_reg(flat, sizeof(flat), ALL);
	struct ibv_mr *umr = rig_create(2);
	struct ibv_exp_mem_region regions[2] = { { (uintptr_t)a + 100, ma, 7 },
						 { (uintptr_t)a + 10, ma, 9 } };
	struct ibv_exp_send_wr fill = rig_fill(umr, 0, IBV_EXP_ACCESS_LOCAL_WRITE);

	start();
	memset(a, 0, sizeof(a));
	ramp(flat, 16, 5);
	rig_set_list(&fill, regions, 2);
	rig_do(rig.qp, &fill);
	rig_post_recv(rig.peer, 0, 16, umr->lkey, 1); /* byte 0 is at address 0 */
	rig_post_send(rig.qp, (uintptr_t)flat, 16, mf->lkey, 2);
	rig_poll();
	rig_poll();
	assert_memory_equal(a + 100, flat, 7);
	assert_memory_equal(a + 10, flat + 7, 9);
	assert_int_equal(a[107], 0);
	rig_dereg(umr);
	rig_dereg(ma);
	rig_dereg(mf);
}

static void small_receives_land_where_a_list_says(void **state)
{
	receive_small();
}

/* The newer call's queue pairs do not scatter to the completion either. */
static void small_receives_by_a_queue_pair_of_create_qp_ex(void **state)
{
	struct ibv_qp_init_attr_ex attr = { .send_cq = rig.cq,
					    .recv_cq = rig.cq,
					    .qp_type = IBV_QPT_RC,
					    .cap = { .max_send_wr = 16,
						     .max_recv_wr = 16,
						     .max_send_sge = 1,
						     .max_recv_sge = 1 },
					    .comp_mask = IBV_QP_INIT_ATTR_PD,
					    .pd = rig.pd };

	assert_int_equal(ibv_destroy_qp(rig.qp), 0);
	assert_int_equal(ibv_destroy_qp(rig.peer), 0);
	rig.qp = rig_umr_qp(16, 20, 0);
	rig.peer = ibv_create_qp_ex(rig.context, &attr);
	assert_non_null(rig.peer);
	rig_connect(rig.qp, rig.peer);
	rig_connect(rig.peer, rig.qp);
	receive_small();
}

/* ---- other ------------------------------------------------------------------------------------------ */

static void a_key_is_remapped_without_invalidate(void **state)
{
	struct ibv_mr *ma, *umr = rig_create(4);
	struct ibv_exp_mem_region region;
	struct ibv_exp_send_wr fill;
	uint32_t key = umr->rkey;
	size_t i;

	start();
	ma = rig_reg(a, sizeof(a), ALL);
	for (i = 0; i < 20; i++) {
		region = (struct ibv_exp_mem_region){ (uintptr_t)a + i * 100, ma, 64 };
		fill = rig_fill(umr, 0xabc000 + i, ALL);
		rig_set_list(&fill, &region, 1);
		rig_do(rig.qp, &fill);
		assert_int_equal(umr->rkey, key);
		assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 64, 0xabc000 + i, key),
				 0);
		assert_memory_equal(got, a + i * 100, 64);
	}
	/* the old layout is not reached any more */
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 64, 0xabc000, key),
			 IBV_WC_REM_ACCESS_ERR);
	rig_dereg(umr);
	rig_dereg(ma);
}

static void keys_are_members_of_keys(void **state)
{
	struct ibv_mr *ma, *mb, *row = rig_create(2), *all = rig_create(2);
	size_t bytes = 10, stride = 100, count = 30, i;
	struct ibv_exp_mem_repeat_block block;
	struct ibv_exp_mem_region regions[2];
	struct ibv_exp_send_wr fill;

	start();
	ma = rig_reg(a, sizeof(a), ALL);
	mb = rig_reg(b, sizeof(b), ALL);
	block = (struct ibv_exp_mem_repeat_block){ (uintptr_t)a + 3, ma, &bytes, &stride };
	fill = rig_fill(row, 0x500000, ALL);
	rig_set_repeat(&fill, &block, 1, &count);
	rig_do(rig.qp, &fill);
	regions[0] = (struct ibv_exp_mem_region){ 0x500000 + 5, row, 200 };
	regions[1] = (struct ibv_exp_mem_region){ (uintptr_t)b, mb, 11 };
	fill = rig_fill(all, 0, ALL);
	rig_set_list(&fill, regions, 2);
	rig_do(rig.qp, &fill);
	assert_int_equal(rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, 211, 0, all->rkey), 0);
	for (i = 0; i < 200; i++)
		assert_int_equal(got[i], a[3 + (i + 5) / 10 * 100 + (i + 5) % 10]);
	assert_memory_equal(got + 200, b, 11);
	rig_dereg(all);
	rig_dereg(row);
	rig_dereg(ma);
	rig_dereg(mb);
}

/* One registration for everything, prefetched where it is used: what caches of on-demand memory do. */
static void a_cache_over_implicit_memory(void **state)
{
	struct ibv_exp_prefetch_attr attr = { .flags = IBV_EXP_PREFETCH_WRITE_ACCESS };
	struct ibv_mr *all =
		rig_reg(NULL, IBV_EXP_IMPLICIT_MR_SIZE, ALL | IBV_EXP_ACCESS_ON_DEMAND);
	size_t length = 64 * PAGE;
	uint64_t before = rig_counter("odp.prefetched");
	uint8_t *mem =
		mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(mem, MAP_FAILED);
	attr.addr = mem;
	attr.length = length;
	assert_int_equal(ibv_exp_prefetch_mr(all, &attr), 0);
	assert_int_equal(rig_counter("odp.prefetched") - before, 64);
	ramp(mem, length, 9);
	assert_int_equal(
		rig_rdma(rig.peer, IBV_WR_RDMA_READ, got, sizeof(got), (uintptr_t)mem, all->rkey),
		0);
	assert_memory_equal(got, mem, sizeof(got));
	munmap(mem, length);
	FAILS(ibv_exp_prefetch_mr(all, &attr), EFAULT);
	rig_dereg(all);
}

#define ON_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RIG(a_ping_over_a_list),
		ON_RIG(a_ping_over_a_repeat),
		ON_RIG(a_key_with_an_offset),
		ON_RIG(packets_are_scattered_by_two_blocks),
		ON_RIG(packets_are_scattered_by_four_blocks),
		ON_RIG(small_receives_land_where_a_list_says),
		ON_RIG(small_receives_by_a_queue_pair_of_create_qp_ex),
		ON_RIG(a_key_is_remapped_without_invalidate),
		ON_RIG(keys_are_members_of_keys),
		ON_RIG(a_cache_over_implicit_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
