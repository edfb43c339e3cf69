/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <poll.h>
#include <stdio.h>
#include <time.h>

#define DEADLINE_MS 5000
#define QUIET_MS    20

bool mode_is(const char *word)
{
	const char *env = getenv("IBMR_SOFT0");
	char want[32];

	snprintf(want, sizeof(want), "mode=%s", word);
	if (env && strstr(env, "mode="))
		return strstr(env, want) != NULL;
	return !strcmp(word, "sync");
}

void set(const char *word, const char *value)
{
	assert_int_equal(soft0_set(word, value), 0);
}

void mode_restore(void)
{
	soft0_reset();
	set("mode", mode_is("async") ? "async" : mode_is("strict") ? "strict" : "sync");
}

uint64_t counter(const char *name)
{
	uint64_t n = 0;

	assert_int_equal(soft0_counter(name, &n), 0);
	return n;
}

struct ibv_context *open_soft0(void)
{
	struct ibv_device **list;
	struct ibv_context *ctx = NULL;

	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	for (int i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), soft0_name()))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	assert_non_null(ctx);
	return ctx;
}

struct ibv_cq *make_cq(struct rig *r, int cqe)
{
	struct ibv_cq *cq = ibv_create_cq(r->ctx, cqe, NULL, NULL, 0);

	assert_non_null(cq);
	return cq;
}

struct ibv_qp *make_qp(struct rig *r, const struct qp_opts *o)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = o->send_cq ? o->send_cq : r->cq,
		.recv_cq = o->recv_cq ? o->recv_cq : r->cq,
		.srq = o->srq,
		.cap = { .max_send_wr = o->max_wr ? o->max_wr : 32,
			 .max_recv_wr = o->srq	    ? 0
					: o->max_wr ? o->max_wr
						    : 32,
			 .max_send_sge = o->max_sge ? o->max_sge : 4,
			 .max_recv_sge = o->max_sge ? o->max_sge : 4,
			 .max_inline_data = o->max_inline ? o->max_inline : 512 },
		.qp_type = o->type ? o->type : IBV_QPT_RC,
		.sq_sig_all = o->sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = o->pd ? o->pd : r->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = MLX5DV_QP_EX_WITH_RAW_WQE,
	};
	struct ibv_qp *qp;

	if (attr.qp_type == IBV_QPT_RC)
		dv.send_ops_flags |= MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
				     MLX5DV_QP_EX_WITH_MKEY_CONFIGURE;
	if (!o->scatter || o->scatter_req) {
		dv.comp_mask |= MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS;
		dv.create_flags = o->scatter_req ? MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE
						 : MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE;
	}
	qp = mlx5dv_create_qp(r->ctx, &attr, &dv);
	assert_non_null(qp);
	return qp;
}

/* ---- states ------------------------------------------------------------------- */

void qp_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = 0x11111111,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	mask |= qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

static void own_address(struct ibv_qp *qp, struct ibv_ah_attr *ah)
{
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(qp->context, 1, &port), 0);
	*ah = (struct ibv_ah_attr){ .port_num = 1, .dlid = port.lid };
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		ah->is_global = 1;
		assert_int_equal(ibv_query_gid(qp->context, 1, 0, &ah->grh.dgid), 0);
		ah->grh.hop_limit = 1;
	}
}

void qp_rtr(struct ibv_qp *qp, uint32_t dest)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest,
		.rq_psn = 0x123456,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 1,
	};
	int mask = IBV_QP_STATE;

	own_address(qp, &attr.ah_attr);
	if (qp->qp_type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

void qp_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = 0x123456,
		.timeout = 8,
		.retry_cnt = 1,
		.rnr_retry = 7,
		.max_rd_atomic = 4,
	};
	int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

	if (qp->qp_type == IBV_QPT_RC)
		mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

void qp_set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
}

enum ibv_qp_state qp_state(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

void connect_qps(struct ibv_qp *a, struct ibv_qp *b)
{
	qp_init(a);
	if (b != a)
		qp_init(b);
	qp_rtr(a, b->qp_num);
	if (b != a)
		qp_rtr(b, a->qp_num);
	qp_rts(a);
	if (b != a)
		qp_rts(b);
}

void reconnect_self(struct ibv_qp *qp)
{
	qp_set_state(qp, IBV_QPS_RESET);
	connect_qps(qp, qp);
}

/* ---- fixtures --------------------------------------------------------------------- */

int rig_setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	const struct qp_opts o = { 0 };

	assert_non_null(r);
	r->ctx = open_soft0();
	r->pd = ibv_alloc_pd(r->ctx);
	assert_non_null(r->pd);
	r->cq = make_cq(r, 128);
	r->qp = make_qp(r, &o);
	connect_qps(r->qp, r->qp);
	r->buf = aligned_alloc(4096, BUF_BYTES);
	assert_non_null(r->buf);
	for (uint32_t i = 0; i < BUF_BYTES; i++)
		r->buf[i] = (uint8_t)(i * 7 + i / 256);
	r->mr = ibv_reg_mr(r->pd, r->buf, BUF_BYTES, ALL_ACCESS);
	assert_non_null(r->mr);
	*state = r;
	return 0;
}

int rig_teardown(void **state)
{
	struct rig *r = *state;

	mode_restore();
	assert_int_equal(ibv_dereg_mr(r->mr), 0);
	assert_int_equal(ibv_destroy_qp(r->qp), 0);
	assert_int_equal(ibv_destroy_cq(r->cq), 0);
	assert_int_equal(ibv_dealloc_pd(r->pd), 0);
	assert_int_equal(ibv_close_device(r->ctx), 0);
	free(r->buf);
	free(r);
	return 0;
}

/* ---- completions ---------------------------------------------------------------------- */

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
}

static bool poll_for(struct ibv_cq *cq, struct ibv_wc *wc, uint64_t ms)
{
	uint64_t until = now_ms() + ms;
	int n;

	for (unsigned int i = 0;; i++) {
		n = ibv_poll_cq(cq, 1, wc);
		assert_in_range(n, 0, 1);
		if (n)
			return true;
		if (now_ms() > until)
			return false;
		if (i > 10)
			nap();
	}
}

struct ibv_wc wait_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc = { 0 };

	if (!poll_for(cq, &wc, DEADLINE_MS))
		fail_msg("no completion within %d ms", DEADLINE_MS);
	return wc;
}

void expect_wc(struct ibv_cq *cq, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc = wait_wc(cq);

	if (wc.status != status)
		fail_msg("wr %llu: %s, not %s", (unsigned long long)wc.wr_id,
			 ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
	assert_int_equal(wc.wr_id, wr_id);
}

void expect_no_wc(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (poll_for(cq, &wc, mode_is("async") ? QUIET_MS : 1))
		fail_msg("a completion (wr %llu, %s) where none was due",
			 (unsigned long long)wc.wr_id, ibv_wc_status_str(wc.status));
}

enum ibv_event_type wait_async(struct ibv_context *ctx)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;

	if (poll(&p, 1, DEADLINE_MS) != 1)
		fail_msg("no asynchronous event within %d ms", DEADLINE_MS);
	assert_int_equal(ibv_get_async_event(ctx, &ev), 0);
	ibv_ack_async_event(&ev);
	return ev.event_type;
}

void expect_no_async(struct ibv_context *ctx)
{
	struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };

	assert_int_equal(poll(&p, 1, mode_is("async") ? QUIET_MS : 0), 0);
}

/* ---- work requests ----------------------------------------------------------------------- */

struct ibv_sge sge(const struct ibv_mr *mr, const void *at, uint32_t length)
{
	return (struct ibv_sge){ .addr = (uintptr_t)at, .length = length, .lkey = mr->lkey };
}

void post_wr(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
}

void post_rdma(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge s,
	       uint32_t rkey, uint64_t raddr)
{
	struct ibv_send_wr wr = {
		.wr_id = id,
		.opcode = op,
		.sg_list = &s,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.imm_data = htobe32(0xabcd1234),
		.wr.rdma = { .remote_addr = raddr, .rkey = rkey },
	};

	post_wr(qp, &wr);
}

void post_atomic(struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode op, struct ibv_sge s,
		 uint32_t rkey, uint64_t raddr, uint64_t compare_add, uint64_t swap)
{
	struct ibv_send_wr wr = {
		.wr_id = id,
		.opcode = op,
		.sg_list = &s,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = raddr,
			       .rkey = rkey,
			       .compare_add = compare_add,
			       .swap = swap },
	};

	post_wr(qp, &wr);
}

void post_send(struct ibv_qp *qp, uint64_t id, struct ibv_sge s)
{
	struct ibv_send_wr wr = {
		.wr_id = id,
		.opcode = IBV_WR_SEND,
		.sg_list = &s,
		.num_sge = s.length ? 1 : 0,
		.send_flags = IBV_SEND_SIGNALED,
	};

	post_wr(qp, &wr);
}

void post_recv(struct ibv_qp *qp, uint64_t id, struct ibv_sge s)
{
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &s, .num_sge = s.length ? 1 : 0 }, *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

/* ---- raw UMR ----------------------------------------------------------------------------------- */

struct mlx5_wqe_ctrl_seg *umr_ctrl_seg(struct umr *u)
{
	return (void *)u->b;
}

struct mlx5_wqe_umr_ctrl_seg *umr_seg(struct umr *u)
{
	return (void *)(u->b + 16);
}

struct mlx5_wqe_mkey_context_seg *umr_mkc(struct umr *u)
{
	return (void *)(u->b + 64);
}

void *umr_table(struct umr *u)
{
	return u->b + 128;
}

void umr_set_bytes(struct umr *u, uint32_t bytes)
{
	uint32_t qpn = be32toh(umr_ctrl_seg(u)->qpn_ds) >> 8;

	u->bytes = bytes;
	umr_ctrl_seg(u)->qpn_ds = htobe32(qpn << 8 | bytes / 16);
}

static uint8_t mkc_access(int access)
{
	uint8_t flags = 0;

	if (access & IBV_ACCESS_LOCAL_WRITE)
		flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE;
	if (access & IBV_ACCESS_REMOTE_READ)
		flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ;
	if (access & IBV_ACCESS_REMOTE_WRITE)
		flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE;
	if (access & IBV_ACCESS_REMOTE_ATOMIC)
		flags |= MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC;
	return flags;
}

void umr_start(struct umr *u, struct ibv_qp *qp, uint32_t key, int access, uint64_t base,
	       uint64_t length)
{
	memset(u, 0, sizeof(*u));
	umr_ctrl_seg(u)->opmod_idx_opcode = htobe32(MLX5_OPCODE_UMR);
	umr_ctrl_seg(u)->qpn_ds = htobe32(qp->qp_num << 8);
	umr_ctrl_seg(u)->fm_ce_se = MLX5_WQE_CTRL_CQ_UPDATE;
	umr_ctrl_seg(u)->imm = htobe32(key);
	umr_seg(u)->mkey_mask = htobe64(UMR_FILL_MASK);
	umr_mkc(u)->access_flags = mkc_access(access);
	umr_mkc(u)->qpn_mkey = htobe32(0xffffff00 | (key & 0xff));
	umr_mkc(u)->start_addr = htobe64(base);
	umr_mkc(u)->len = htobe64(length);
	umr_set_bytes(u, 128);
}

static uint32_t round4(uint32_t n)
{
	return (n + 3) & ~3u;
}

static uint32_t klm_key(const struct klm *k)
{
	return k->mr ? k->mr->lkey : k->key;
}

static uint64_t klm_addr(const struct klm *k)
{
	return k->mr ? (uintptr_t)k->at : k->addr;
}

void umr_list(struct umr *u, const struct klm *klms, uint32_t num)
{
	struct mlx5_wqe_umr_klm_seg *t = umr_table(u);

	for (uint32_t i = 0; i < num; i++) {
		t[i].byte_count = htobe32(klms[i].bytes);
		t[i].mkey = htobe32(klm_key(&klms[i]));
		t[i].address = htobe64(klm_addr(&klms[i]));
	}
	umr_seg(u)->flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
	umr_seg(u)->klm_octowords = htobe16((uint16_t)round4(num));
	umr_set_bytes(u, 128 + round4(num) * 16);
}

void umr_repeat(struct umr *u, uint32_t count, const struct klm *blocks, uint32_t num)
{
	struct mlx5_wqe_umr_repeat_block_seg *t = umr_table(u);

	t->byte_count = htobe32(klm_bytes(blocks, num));
	t->op = htobe32(0x400);
	t->repeat_count = htobe32(count);
	t->num_ent = htobe16((uint16_t)num);
	for (uint32_t i = 0; i < num; i++) {
		t->entries[i].stride = htobe16(blocks[i].stride);
		t->entries[i].byte_count = htobe16((uint16_t)blocks[i].bytes);
		t->entries[i].memkey = htobe32(klm_key(&blocks[i]));
		t->entries[i].va = htobe64(klm_addr(&blocks[i]));
	}
	umr_seg(u)->flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
	umr_seg(u)->klm_octowords = htobe16((uint16_t)round4(num + 1));
	umr_set_bytes(u, 128 + round4(num + 1) * 16);
}

void umr_pointer(struct umr *u, uint32_t octowords, struct ibv_sge s)
{
	struct mlx5_wqe_data_seg *d = umr_table(u);

	umr_seg(u)->klm_octowords = htobe16((uint16_t)octowords);
	d->byte_count = htobe32(s.length);
	d->lkey = htobe32(s.lkey);
	d->addr = htobe64(s.addr);
	umr_set_bytes(u, 144);
}

void umr_invalidate(struct umr *u, struct ibv_qp *qp, uint32_t key)
{
	umr_start(u, qp, key, 0, 0, 0);
	umr_seg(u)->flags = MLX5_WQE_UMR_CTRL_FLAG_INLINE;
	umr_seg(u)->mkey_mask = htobe64(MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE);
	umr_mkc(u)->free = MLX5_WQE_MKEY_CONTEXT_FREE;
}

void post_raw(struct ibv_qp *qp, uint64_t id, const void *wqe)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(qpx);
	qpx->wr_id = id;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	mlx5dv_wr_raw_wqe(mlx5dv_qp_ex_from_ibv_qp_ex(qpx), wqe);
	assert_int_equal(ibv_wr_complete(qpx), 0);
}

void post_umr(struct ibv_qp *qp, uint64_t id, struct umr *u)
{
	post_raw(qp, id, u->b);
}

uint32_t klm_bytes(const struct klm *klms, uint32_t num)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < num; i++)
		sum += klms[i].bytes;
	return sum;
}

struct mlx5dv_mkey *make_mkey(struct ibv_pd *pd, uint16_t entries)
{
	struct mlx5dv_mkey_init_attr attr = {
		.pd = pd,
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = entries,
	};
	struct mlx5dv_mkey *m = mlx5dv_create_mkey(&attr);

	assert_non_null(m);
	return m;
}

void fill_list(struct rig *r, struct mlx5dv_mkey *m, int access, const struct klm *klms,
	       uint32_t num)
{
	struct umr u;

	umr_start(&u, r->qp, m->lkey, access, 0, klm_bytes(klms, num));
	umr_list(&u, klms, num);
	post_umr(r->qp, 900, &u);
	expect_wc(r->cq, 900, IBV_WC_SUCCESS);
}

void fill_repeat(struct rig *r, struct mlx5dv_mkey *m, int access, uint32_t count,
		 const struct klm *blocks, uint32_t num)
{
	struct umr u;

	umr_start(&u, r->qp, m->lkey, access, 0, (uint64_t)count * klm_bytes(blocks, num));
	umr_repeat(&u, count, blocks, num);
	post_umr(r->qp, 901, &u);
	expect_wc(r->cq, 901, IBV_WC_SUCCESS);
}
