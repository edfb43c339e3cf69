/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as work requests, through libmlx5's raw posting to soft0: whatever a program writes into its
 * queue, the device answers by a completion or an error, and touches nothing but registered memory.
 *
 * An input is a row of work requests: one byte for the number of 16-byte units after the control
 * segment, one for the opcode, one for its flags, then the units. So that the fuzzer need not guess
 * keys and addresses, in a unit a 32-bit word 0xffffff00 + k becomes key k (mod 8), and a 64-bit word
 * whose upper half is 0xfffffffe the address in the pool that its lower half, modulo the pool, names.
 */
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "softdev/soft0.h"
#include "require.h"

#define POOL	  16384
#define GUARD	  4096
#define MAX_UNITS 60
#define KEYS	  8
#define NUM_WR	  64 /* in one input */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr, *read_only;
static struct mlx5dv_mkey *mkeys[4];
static uint32_t keys[KEYS];
static uint8_t memory[GUARD + POOL + GUARD] __attribute__((aligned(4096)));

static void to_reset(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	REQUIRE(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0);
}

static void connect_qp(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_port_attr port;

	REQUIRE(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS) == 0);
	REQUIRE(ibv_query_port(context, 1, &port) == 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = port.active_mtu,
		.dest_qp_num = qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = { .dlid = port.lid, .port_num = 1 },
	};
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.hop_limit = 64;
		REQUIRE(ibv_query_gid(context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
	}
	REQUIRE(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				      IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER) == 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = 1 };
	REQUIRE(ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

static void create_qp(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 4,
			 .max_recv_wr = 4,
			 .max_send_sge = 4,
			 .max_recv_sge = 1,
			 .max_inline_data = 768 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE,
	};

	qp = mlx5dv_create_qp(context, &attr, &dv);
	REQUIRE(qp);
}

static void set_up(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	REQUIRE(list && list[0] && !strcmp(ibv_get_device_name(list[0]), soft0_name()));
	context = ibv_open_device(list[0]);
	REQUIRE(context);
	ibv_free_device_list(list);
	pd = ibv_alloc_pd(context);
	REQUIRE(pd);
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	REQUIRE(cq);
	mr = ibv_reg_mr(pd, memory + GUARD, POOL,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	read_only = ibv_reg_mr(pd, memory, sizeof(memory), IBV_ACCESS_REMOTE_READ);
	REQUIRE(mr && read_only);
	keys[0] = mr->lkey;
	keys[1] = read_only->rkey;
	for (unsigned i = 0; i < 4; i++) {
		struct mlx5dv_mkey_init_attr attr = {
			.pd = pd,
			.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
			.max_entries = 16,
		};

		mkeys[i] = mlx5dv_create_mkey(&attr);
		REQUIRE(mkeys[i]);
		keys[2 + i] = mkeys[i]->rkey;
	}
	keys[6] = 0;
	keys[7] = 0x400; /* on the wire: a repeat block follows */
}

static void tear_down(void)
{
	REQUIRE(ibv_destroy_qp(qp) == 0);
	for (unsigned i = 0; i < 4; i++)
		REQUIRE(mlx5dv_destroy_mkey(mkeys[i]) == 0);
	REQUIRE(ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(read_only) == 0);
	REQUIRE(ibv_destroy_cq(cq) == 0);
	REQUIRE(ibv_dealloc_pd(pd) == 0);
	REQUIRE(ibv_close_device(context) == 0);
}

/* Words that stand for keys and addresses become such. */
static void resolve(uint8_t *unit)
{
	uint32_t words[4];

	memcpy(words, unit, sizeof(words));
	for (unsigned i = 0; i < 4; i++) {
		uint32_t word = be32toh(words[i]);

		if (i % 2 == 0 && word == 0xfffffffe) {
			uint64_t addr = (uintptr_t)memory + GUARD + be32toh(words[i + 1]) % POOL;

			words[i] = htobe32((uint32_t)(addr >> 32));
			words[i + 1] = htobe32((uint32_t)addr);
			i++;
		} else if (word >= 0xffffff00 && word < 0xffffff00 + KEYS) {
			words[i] = htobe32(keys[word - 0xffffff00]);
		}
	}
	memcpy(unit, words, sizeof(words));
}

static void post(const uint8_t *units, unsigned num, uint8_t opcode, uint8_t flags)
{
	uint8_t wqe[16 + MAX_UNITS * 16];
	struct mlx5_wqe_ctrl_seg ctrl = {
		.opmod_idx_opcode = htobe32(opcode),
		.qpn_ds = htobe32(qp->qp_num << 8 | (num + 1)),
		.fm_ce_se = flags | 0x08,
		.imm = htobe32(keys[2 + flags % 4]),
	};
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	memcpy(wqe, &ctrl, sizeof(ctrl));
	memcpy(wqe + 16, units, (size_t)num * 16);
	for (unsigned i = 0; i < num; i++)
		resolve(wqe + 16 + i * 16UL);
	ibv_wr_start(qpx);
	mlx5dv_wr_raw_wqe(mlx5dv_qp_ex_from_ibv_qp_ex(qpx), wqe);
	REQUIRE(ibv_wr_complete(qpx) == 0);
}

/* Every request is signalled: its completion must come. */
static void reap(void)
{
	struct ibv_wc wc;
	int n = 0;

	for (unsigned long tries = 0; n == 0; tries++) {
		REQUIRE(tries < 200000000);
		n = ibv_poll_cq(cq, 1, &wc);
	}
	REQUIRE(n == 1);
	while (ibv_poll_cq(cq, 1, &wc) == 1)
		;
}

static bool in_error(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	REQUIRE(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
	return attr.qp_state != IBV_QPS_RTS;
}

static void check_guards(void)
{
	for (unsigned i = 0; i < GUARD; i++)
		REQUIRE(memory[i] == 0xa5 && memory[GUARD + POOL + i] == 0xa5);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!context) {
		memset(memory, 0xa5, sizeof(memory));
		set_up();
		create_qp();
		REQUIRE(atexit(tear_down) == 0);
	}
	to_reset();
	connect_qp();
	for (unsigned i = 0; i < NUM_WR && size >= 3; i++) {
		unsigned num = data[0] % (MAX_UNITS + 1);

		if ((size - 3) / 16 < num)
			num = (unsigned)((size - 3) / 16);
		post(data + 3, num, data[1], data[2]);
		reap();
		data += 3 + (size_t)num * 16;
		size -= 3 + (size_t)num * 16;
		if (in_error()) {
			to_reset();
			connect_qp();
		}
	}
	check_guards();
	return 0;
}
