/* SPDX-License-Identifier: BSD-2-Clause */
/* A model of a key that lays every byte of it out flat, and the device held against it. */
#ifndef FLAT_H
#define FLAT_H

#include "rig.h"

static uint64_t seed;

static inline uint32_t below(uint32_t n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 32) % (n ? n : 1);
}

/* ---- a model: the address of each byte ------------------------------------------- */

#define FLAT_MAX 20000

struct flat {
	uint8_t *at[FLAT_MAX];
	uint32_t num;
};

static inline void flat_add(struct flat *f, uint8_t *at, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i++) {
		assert_in_range(f->num, 0, FLAT_MAX - 1);
		f->at[f->num++] = at + i;
	}
}

static inline void flat_list(struct flat *f, const struct klm *klms, uint32_t num)
{
	f->num = 0;
	for (uint32_t i = 0; i < num; i++)
		flat_add(f, (uint8_t *)(uintptr_t)klms[i].at, klms[i].bytes);
}

static inline void flat_repeat(struct flat *f, uint32_t count, const struct klm *blocks,
			       uint32_t num)
{
	f->num = 0;
	for (uint32_t c = 0; c < count; c++)
		for (uint32_t i = 0; i < num; i++)
			flat_add(f,
				 (uint8_t *)(uintptr_t)blocks[i].at + (size_t)c * blocks[i].stride,
				 blocks[i].bytes);
}

/* A range read through the key is what the model says; a write changes exactly its bytes, the later of
 * two that fall on the same place. */
static inline void check_range(struct rig *r, uint32_t rkey, const struct flat *f, uint32_t off,
			       uint32_t bytes)
{
	uint8_t *local = aligned_alloc(4096, 32768);
	struct ibv_mr *mr = ibv_reg_mr(r->pd, local, 32768, IBV_ACCESS_LOCAL_WRITE);
	static uint8_t want[BUF_BYTES];

	assert_non_null(mr);
	post_rdma(r->qp, 1, IBV_WR_RDMA_READ, sge(mr, local, bytes), rkey, off);
	expect_wc(r->cq, 1, IBV_WC_SUCCESS);
	for (uint32_t i = 0; i < bytes; i++)
		assert_int_equal(local[i], *f->at[off + i]);

	memcpy(want, r->buf, BUF_BYTES);
	for (uint32_t i = 0; i < bytes; i++) {
		local[i] = (uint8_t)below(256);
		want[f->at[off + i] - r->buf] = local[i];
	}
	post_rdma(r->qp, 2, IBV_WR_RDMA_WRITE, sge(mr, local, bytes), rkey, off);
	expect_wc(r->cq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(r->buf, want, BUF_BYTES);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	free(local);
}

/* The status of a one-byte access; the queue pair is mended after a refusal. */
static inline enum ibv_wc_status probe(struct rig *r, enum ibv_wr_opcode op, uint32_t rkey,
				       uint64_t raddr, uint32_t bytes)
{
	struct ibv_wc wc;

	post_rdma(r->qp, 3, op, sge(r->mr, r->buf + 60000, bytes), rkey, raddr);
	wc = wait_wc(r->cq);
	if (wc.status != IBV_WC_SUCCESS) {
		assert_int_equal(qp_state(r->qp), IBV_QPS_ERR);
		reconnect_self(r->qp);
	}
	return wc.status;
}

static inline void check_ends(struct rig *r, uint32_t rkey, uint64_t base, uint64_t length)
{
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, rkey, base + length - 1, 1), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, rkey, base, 1), IBV_WC_SUCCESS);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, rkey, base + length, 1), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(probe(r, IBV_WR_RDMA_WRITE, rkey, base + length - 1, 2),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(probe(r, IBV_WR_RDMA_READ, rkey, base - 1, 1), IBV_WC_REM_ACCESS_ERR);
}

#endif /* FLAT_H */
