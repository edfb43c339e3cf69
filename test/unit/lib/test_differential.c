/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The encoder against libmlx5's own: random layouts, the same for both, and the work requests compared
 * field by field. libmlx5 posts on a queue pair of the test's, soft0 gives back what arrived. Where
 * libmlx5 is wrong, the test says what it does there, and that ours refuses or does it right.
 *
 * Everything is equal but for what is named here:
 *   INDEX   the control segment's counter: each queue's own
 *   FENCE   libmlx5 fences what follows a typed UMR; ours waits for the completion instead
 *   BASE    ours sets start_addr, which libmlx5's calls cannot
 *   FREE    the bit of the context, in an invalidation only: no call of libmlx5's gives a key back
 */
#include "soft_test.h"

#include <time.h>

#define ROUNDS	     4000
#define LIST_MOST    52
#define REPEAT_MOST  51
#define NUM_MEMBERS  8
#define MASK_BASE    (1ull << 6)
#define FENCE_BITS   0xe0
#define REPEAT_MARK  0x400
#define INLINE_BYTES 768 /* the most that libmlx5 takes; with it, LIST_MOST entries fit */

static struct {
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_qp_ex *qpx;
	struct mlx5dv_qp_ex *dv;
	struct mlx5dv_mkey *key;
} theirs;

static struct ibmr_mr members[NUM_MEMBERS];
static struct ibmri_entry entries[LIST_MOST];
static uint64_t seed;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed * 0x2545f4914f6cdd1d;
}

/* 1 ... most, of every magnitude. */
static uint64_t rnd_size(uint64_t most)
{
	uint64_t n = rnd() >> (rnd() % 64);

	return rnd() % 8 ? n % most + 1 : most;
}

/* ---- libmlx5's side ------------------------------------------------------------------- */

static void connect_self(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .dest_qp_num = qp->qp_num,
				     .max_dest_rd_atomic = 1,
				     .min_rnr_timer = 1,
				     .ah_attr = { .dlid = 1, .port_num = 1 } };
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 8, .max_rd_atomic = 1 };
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

static int setup(void **state)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap = { .max_send_wr = 64, .max_send_sge = 1, .max_inline_data = INLINE_BYTES },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
	};
	struct mlx5dv_qp_init_attr dv = {
		.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS,
		.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST | MLX5DV_QP_EX_WITH_MR_INTERLEAVED |
				  MLX5DV_QP_EX_WITH_MKEY_CONFIGURE,
	};
	struct mlx5dv_mkey_init_attr init = {
		.create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
		.max_entries = 64,
	};

	soft_setup(state);
	theirs.cq = ibv_create_cq(soft->verbs, 64, NULL, NULL, 0);
	assert_non_null(theirs.cq);
	attr.pd = init.pd = soft->pd;
	attr.send_cq = attr.recv_cq = theirs.cq;
	theirs.qp = mlx5dv_create_qp(soft->verbs, &attr, &dv);
	assert_non_null(theirs.qp);
	connect_self(theirs.qp);
	theirs.qpx = ibv_qp_to_qp_ex(theirs.qp);
	theirs.dv = mlx5dv_qp_ex_from_ibv_qp_ex(theirs.qpx);
	theirs.key = mlx5dv_create_mkey(&init);
	assert_non_null(theirs.key);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(mlx5dv_destroy_mkey(theirs.key), 0);
	assert_int_equal(ibv_destroy_qp(theirs.qp), 0);
	assert_int_equal(ibv_destroy_cq(theirs.cq), 0);
	return soft_teardown(state);
}

static void start(unsigned int flags)
{
	ibv_wr_start(theirs.qpx);
	theirs.qpx->wr_id = 1;
	theirs.qpx->wr_flags = flags;
}

static enum ibv_wc_status completion(void)
{
	const struct timespec nap = { .tv_nsec = 20000 };
	struct timespec now, end;
	struct ibv_wc wc;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += 10;
	do {
		n = ibv_poll_cq(theirs.cq, 1, &wc);
		assert_in_range(n, 0, 1);
		if (n)
			return wc.status;
		nanosleep(&nap, NULL);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec);
	fail_msg("no completion in time");
	return IBV_WC_GENERAL_ERR;
}

/* What libmlx5 posted arrived as its work request; the device's answer to it. */
static enum ibv_wc_status finish(uint8_t *wqe, uint32_t *ret_bytes)
{
	enum ibv_wc_status status;

	assert_int_equal(ibv_wr_complete(theirs.qpx), 0);
	status = completion();
	*ret_bytes = soft0_last_umr(wqe, IBMRI_MAX_WQE);
	return status;
}

static void reset_theirs(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	assert_int_equal(ibv_modify_qp(theirs.qp, &attr, IBV_QP_STATE), 0);
	connect_self(theirs.qp);
}

static uint64_t address(const struct ibmri_entry *e)
{
	return e->mr->base + e->offset;
}

/* The layout by one of libmlx5's two ways to say it. */
static void post_theirs(const struct ibmri_layout *l, struct mlx5dv_mkey *key, bool configure)
{
	struct mlx5dv_mr_interleaved inter[REPEAT_MOST + 1];
	struct mlx5dv_mkey_conf_attr conf = { 0 };
	struct ibv_sge sges[LIST_MOST + 1];
	bool list = l->kind == IBMR_LAYOUT_LIST, rights_first = l->num & 1;
	uint16_t num = (uint16_t)l->num;

	for (uint64_t i = 0; i < l->num; i++) {
		const struct ibmri_entry *e = &l->entries[i];

		if (list)
			sges[i] = (struct ibv_sge){ address(e), (uint32_t)e->length, e->mr->lkey };
		else
			inter[i] = (struct mlx5dv_mr_interleaved){ address(e), e->length,
								   e->stride - e->length,
								   e->mr->lkey };
	}
	start(IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	if (!configure && list) {
		mlx5dv_wr_mr_list(theirs.dv, key, (uint32_t)l->access, num, sges);
		return;
	}
	if (!configure) {
		mlx5dv_wr_mr_interleaved(theirs.dv, key, (uint32_t)l->access, (uint32_t)l->count,
					 num, inter);
		return;
	}
	mlx5dv_wr_mkey_configure(theirs.dv, key, 2, &conf);
	if (rights_first)
		mlx5dv_wr_set_mkey_access_flags(theirs.dv, (uint32_t)l->access);
	if (list)
		mlx5dv_wr_set_mkey_layout_list(theirs.dv, num, sges);
	else
		mlx5dv_wr_set_mkey_layout_interleaved(theirs.dv, (uint32_t)l->count, num, inter);
	if (!rights_first)
		mlx5dv_wr_set_mkey_access_flags(theirs.dv, (uint32_t)l->access);
}

/* ---- comparing ---------------------------------------------------------------------------- */

struct wqe {
	struct mlx5_wqe_ctrl_seg ctrl;
	struct mlx5_wqe_umr_ctrl_seg umr;
	struct mlx5_wqe_mkey_context_seg key;
	uint8_t table[IBMRI_MAX_WQE - 128];
};

#define SAME(field)                                                                 \
	do {                                                                        \
		if (memcmp(&a->field, &b->field, sizeof(a->field)))                 \
			fail_msg("round %d, %s of %llu: " #field " differs", round, \
				 l->kind == IBMR_LAYOUT_LIST ? "list" : "repeat",   \
				 (unsigned long long)l->num);                       \
	} while (0)

/* a: ours, b: libmlx5's. */
static void same_heads(const struct ibmri_layout *l, int round, const struct wqe *a,
		       const struct wqe *b)
{
	assert_int_equal(be32toh(a->ctrl.opmod_idx_opcode) & 0xff0000ff, 0x25);
	assert_int_equal(be32toh(b->ctrl.opmod_idx_opcode) & 0xff0000ff, 0x25); /* INDEX */
	SAME(ctrl.signature);
	SAME(ctrl.dci_stream_channel_id);
	assert_int_equal(a->ctrl.fm_ce_se, 8);
	assert_int_equal(b->ctrl.fm_ce_se & ~FENCE_BITS, 8); /* FENCE */
	SAME(ctrl.imm);
	SAME(umr.rsvd0);
	SAME(umr.klm_octowords);
	SAME(umr.translation_offset);
	assert_true(be64toh(a->umr.mkey_mask) == (be64toh(b->umr.mkey_mask) | MASK_BASE));
	SAME(umr.rsvd1);
	SAME(key.free);
	SAME(key.reserved1);
	SAME(key.access_flags);
	SAME(key.sf);
	SAME(key.qpn_mkey);
	SAME(key.reserved2);
	SAME(key.flags_pd);
	assert_true(be64toh(a->key.start_addr) == l->base && !b->key.start_addr); /* BASE */
	SAME(key.len);
	SAME(key.bsf_octword_size);
	SAME(key.reserved3);
	SAME(key.translations_octword_size);
	SAME(key.reserved4);
	SAME(key.log_page_size);
	SAME(key.reserved);
}

static void same_inline(const struct ibmri_layout *l, int round, const struct wqe *a,
			uint32_t a_bytes, const struct wqe *b, uint32_t b_bytes)
{
	assert_int_equal(a_bytes, b_bytes);
	same_heads(l, round, a, b);
	SAME(ctrl.qpn_ds);
	SAME(umr.flags);
	if (memcmp(a->table, b->table, a_bytes - 128))
		fail_msg("round %d: the tables differ", round);
}

/* The form for long lists: the same table, but in memory. */
static void same_pointer(const struct ibmri_layout *l, int round, const struct wqe *b,
			 uint32_t b_bytes)
{
	const struct ibmri_umr_list at = { .lkey = 0x12345600, .addr = 0x7f0000000040 };
	uint64_t table[IBMRI_MAX_WQE / 8], words[IBMRI_MAX_WQE / 8];
	const struct mlx5_wqe_data_seg *seg;
	const struct wqe *a = (const void *)words;

	assert_int_equal(ibmri_umr_fill(words, l, be32toh(b->ctrl.imm), theirs.qp->qp_num, &at),
			 144);
	same_heads(l, round, a, b);
	assert_int_equal(be32toh(a->ctrl.qpn_ds), theirs.qp->qp_num << 8 | 9);
	assert_int_equal(a->umr.flags, 0);
	seg = (const void *)a->table;
	assert_int_equal(be32toh(seg->byte_count), b_bytes - 128);
	assert_int_equal(be32toh(seg->lkey), at.lkey);
	assert_true(be64toh(seg->addr) == at.addr);
	memset(table, 0xee, sizeof(table));
	ibmri_umr_table(l, table);
	assert_int_equal(ibmri_umr_table_bytes(l), b_bytes - 128);
	assert_memory_equal(table, b->table, b_bytes - 128);
}

static void compare(const struct ibmri_layout *l, int round)
{
	uint64_t ours_words[IBMRI_MAX_WQE / 8], theirs_words[IBMRI_MAX_WQE / 8];
	struct wqe *a = (void *)ours_words, *b = (void *)theirs_words;
	uint32_t ours_bytes, their_bytes;

	post_theirs(l, theirs.key, rnd() & 1);
	assert_int_equal(finish((void *)theirs_words, &their_bytes), IBV_WC_SUCCESS);
	memset(ours_words, 0xee, sizeof(ours_words));
	ours_bytes = ibmri_umr_fill(ours_words, l, theirs.key->lkey, theirs.qp->qp_num, NULL);
	same_inline(l, round, a, ours_bytes, b, their_bytes);
	same_pointer(l, round, b, their_bytes);
}

/* ---- random layouts ------------------------------------------------------------------------ */

/* Members need not exist: a device looks at their keys when the layout is used. */
static void random_members(void)
{
	for (int i = 0; i < NUM_MEMBERS; i++) {
		members[i].lkey = (uint32_t)rnd();
		if (members[i].lkey == REPEAT_MARK)
			members[i].lkey = 0;
		members[i].base = rnd() >> 1;
	}
}

static void random_entry(struct ibmri_entry *e, uint64_t most)
{
	e->mr = &members[rnd() % NUM_MEMBERS];
	e->offset = rnd() >> (1 + rnd() % 63);
	e->length = rnd_size(most);
	e->stride = 0;
}

static void random_list(struct ibmri_layout *l)
{
	uint64_t left = INT32_MAX;

	l->num = rnd() % LIST_MOST + 1;
	for (uint64_t i = 0; i < l->num; i++) {
		random_entry(&entries[i], left - (l->num - 1 - i));
		left -= entries[i].length;
		l->total += entries[i].length;
		entries[i].end = l->total;
	}
	l->count = 1;
	l->cycle = l->total;
}

static void random_repeat(struct ibmri_layout *l)
{
	l->num = rnd() % REPEAT_MOST + 1;
	for (uint64_t i = 0; i < l->num; i++) {
		random_entry(&entries[i], UINT16_MAX);
		entries[i].stride =
			entries[i].length + rnd() % (UINT16_MAX - entries[i].length + 1);
		l->cycle += entries[i].length;
		entries[i].end = l->cycle;
	}
	l->count = rnd_size(UINT32_MAX);
	l->total = l->cycle * l->count;
}

static void the_encoder_writes_what_libmlx5_writes(void **state)
{
	const char *given = getenv("IBMR_SEED");
	uint64_t first = given ? strtoull(given, NULL, 0) : 0x1b3d5f7a9c2e4608;
	int lists = 0, repeats = 0;

	print_message("# IBMR_SEED=0x%llx\n", (unsigned long long)first);
	seed = first ? first : 1;
	for (int round = 0; round < ROUNDS; round++) {
		struct ibmri_layout l = { .access = rnd() & (LW | RW | RR | RA),
					  .entries = entries };

		random_members();
		if (rnd() & 1) {
			l.kind = IBMR_LAYOUT_LIST;
			random_list(&l);
			lists++;
		} else {
			l.kind = IBMR_LAYOUT_REPEAT;
			random_repeat(&l);
			repeats++;
		}
		l.base = rnd() & 1 ? rnd() : 0;
		compare(&l, round);
	}
	assert_true(lists > ROUNDS / 3 && repeats > ROUNDS / 3);
}

/* What ibmr_mr_fill posts, as it arrives at the device, against libmlx5 on the same key. */
static void a_fill_arrives_as_libmlx5s_would(void **state)
{
	struct ibmr_mr *pool = soft_reg("pool", 1 << 20, LW | RW | RR | RA);
	struct ibmr_mr *col = soft_create("col", 64);
	uint64_t ours_words[IBMRI_MAX_WQE / 8], theirs_words[IBMRI_MAX_WQE / 8];
	struct wqe *a = (void *)ours_words, *b = (void *)theirs_words;
	struct ibmr_klm klms[16];
	struct ibmr_block blocks[15];
	uint32_t bytes;

	seed = 0x5eed;
	for (int round = 0; round < 200; round++) {
		const struct ibmri_layout *l = &col->layout;
		uint64_t num = rnd() % 15 + 1, i;

		for (i = 0; i < num; i++) {
			klms[i] = (struct ibmr_klm){ pool, rnd() % 4096, rnd_size(1 << 19) };
			blocks[i] = (struct ibmr_block){ pool, rnd() % 4096, rnd_size(4096),
							 4096 + rnd() % 4096 };
		}
		if (rnd() & 1)
			soft_fill_list(col, LW | (rnd() & (RW | RR | RA)), klms, num);
		else
			soft_fill_repeat(col, LW | (rnd() & (RW | RR | RA)), blocks, num,
					 rnd() % 64 + 1);
		assert_int_equal(soft0_last_umr(ours_words, sizeof(ours_words)),
				 ibmri_umr_inline_bytes(0) + ibmri_umr_table_bytes(l));
		post_theirs(l, col->mkey, rnd() & 1);
		assert_int_equal(finish((void *)theirs_words, &bytes), IBV_WC_SUCCESS);
		/* each on its own queue pair */
		assert_int_equal(be32toh(a->ctrl.qpn_ds) & 0xff, be32toh(b->ctrl.qpn_ds) & 0xff);
		a->ctrl.qpn_ds = b->ctrl.qpn_ds;
		same_inline(l, round, a, bytes, b, bytes);
	}
}

static void an_invalidation_is_libmlx5s_change_of_rights_to_none(void **state)
{
	uint64_t ours_words[IBMRI_MAX_WQE / 8], theirs_words[IBMRI_MAX_WQE / 8];
	struct wqe *a = (void *)ours_words, *b = (void *)theirs_words;
	struct mlx5dv_mkey_conf_attr conf = { 0 };
	uint32_t bytes;

	start(IBV_SEND_INLINE | IBV_SEND_SIGNALED);
	mlx5dv_wr_mkey_configure(theirs.dv, theirs.key, 1, &conf);
	mlx5dv_wr_set_mkey_access_flags(theirs.dv, 0);
	assert_int_equal(finish((void *)theirs_words, &bytes), IBV_WC_SUCCESS);
	memset(ours_words, 0xee, sizeof(ours_words));
	assert_int_equal(ibmri_umr_invalidate(a, theirs.key->lkey, theirs.qp->qp_num), bytes);
	assert_int_equal(a->key.free, 0x40); /* FREE */
	assert_int_equal(b->key.free, 0);
	a->key.free = 0;
	a->ctrl.opmod_idx_opcode = b->ctrl.opmod_idx_opcode; /* INDEX */
	b->ctrl.fm_ce_se &= (uint8_t)~FENCE_BITS;
	assert_memory_equal(a, b, bytes);
}

/* ---- where libmlx5 is wrong ------------------------------------------------------------------- */

/* libmlx5 before 44.12 sums a list in an int. */
static void a_list_of_2_gib_and_more_has_its_length(void **state)
{
	static struct ibmr_mr member = { .lkey = 0x00abcd00 };
	struct ibmri_entry e[3] = { { &member, 0, INT32_MAX, 0, 0 },
				    { &member, 0, INT32_MAX, 0, 0 },
				    { &member, 0, INT32_MAX, 0, 0 } };
	struct ibmri_layout l = { .kind = IBMR_LAYOUT_LIST, .count = 1, .entries = e };
	uint64_t words[IBMRI_MAX_WQE / 8];
	struct wqe *w = (void *)words;
	uint32_t bytes;

	for (l.num = 2; l.num <= 3; l.num++) {
		uint64_t theirs_len, cut;

		l.total = l.num * INT32_MAX;
		cut = (uint64_t)(int64_t)(int32_t)l.total;
		post_theirs(&l, theirs.key, false);
		assert_int_equal(finish((void *)words, &bytes), IBV_WC_SUCCESS);
		theirs_len = be64toh(w->key.len);
		if (theirs_len != l.total && theirs_len != cut)
			fail_msg("libmlx5 writes 0x%llx", (unsigned long long)theirs_len);
		print_message("# %llu bytes: libmlx5 writes 0x%llx%s\n",
			      (unsigned long long)l.total, (unsigned long long)theirs_len,
			      theirs_len == cut ? ", which is wrong" : "");
		assert_int_equal(ibmri_umr_fill(words, &l, theirs.key->lkey, 1, NULL), bytes);
		assert_true(be64toh(w->key.len) == l.total);
	}
}

/* And it can be used from its first byte to its last, and no further. */
static void a_list_of_4_gib_works(void **state)
{
	struct ibmr_mr *page = soft_reg("page", 4096, LW | RW | RR);
	struct ibmr_mr *gib = soft_create("gib", 1), *all = soft_create("all", 4);
	const struct ibmr_block block = { page, 0, 4096, 0 };
	const struct ibmr_klm klms[] = {
		{ gib, 0, GIB }, { gib, 0, GIB }, { gib, 0, GIB }, { gib, 0, GIB }
	};
	const uint64_t at[] = { 0, 2 * GIB - 1, 2 * GIB, 4 * GIB - 2 };
	struct ibmr_err err;
	uint8_t two[2];

	ramp(page, 3);
	soft_fill_repeat(gib, LW | RW | RR, &block, 1, GIB / 4096);
	soft_fill_list(all, LW | RW | RR, klms, 4);
	assert_true(info_of(all).length == 4 * GIB);
	for (size_t i = 0; i < 4; i++) {
		OK(ibmr_mr_read(all, at[i], two, 2, 0, &err));
		assert_int_equal(two[0], bytes_of(page)[at[i] % 4096]);
		assert_int_equal(two[1], bytes_of(page)[(at[i] + 1) % 4096]);
	}
	REFUSED(ibmr_mr_read(all, 4 * GIB - 1, two, 2, IBMR_IO_UNCHECKED, &err), EIO,
		IBMR_E_COMPLETION);
}

/* libmlx5 writes the low 16 bits of a block's length and of its stride, and says nothing. */
static void blocks_and_strides_beyond_16_bits_are_refused(void **state)
{
	struct ibmr_mr *pool = soft_reg("pool", 1 << 20, LW | RR), *col = soft_create("col", 4);
	struct ibmri_entry e = { pool, 0, 70000, 70000, 70000 };
	struct ibmri_layout l = { .kind = IBMR_LAYOUT_REPEAT,
				  .num = 1,
				  .count = 3,
				  .cycle = 70000,
				  .total = 210000,
				  .entries = &e };
	uint64_t words[IBMRI_MAX_WQE / 8];
	const struct wqe *w = (void *)words;
	const struct mlx5_wqe_umr_repeat_block_seg *rep = (const void *)w->table;
	struct ibmr_block block = { pool, 0, 70000, 70000 };
	struct ibmr_layout in = {
		.kind = IBMR_LAYOUT_REPEAT, .access = LW, .count = 3, .num = 1, .blocks = &block
	};
	struct ibmr_err err;
	uint32_t bytes;

	post_theirs(&l, theirs.key, false);
	assert_int_equal(finish((void *)words, &bytes), IBV_WC_MW_BIND_ERR);
	reset_theirs();
	assert_int_equal(be32toh(rep->byte_count), 70000);
	assert_int_equal(be16toh(rep->entries[0].byte_count), 70000 & 0xffff);
	assert_int_equal(be16toh(rep->entries[0].stride), 70000 & 0xffff);
	assert_int_equal(be64toh(w->key.len), 210000);
	REFUSED(ibmr_mr_fill(col, &in, &err), E2BIG, IBMR_E_LIMIT);
	SAYS("70000");

	/* a stride alone: the device cannot tell, and takes other bytes than were asked for */
	e.length = l.cycle = block.length = 100;
	l.total = 300;
	post_theirs(&l, theirs.key, false);
	assert_int_equal(finish((void *)words, &bytes), IBV_WC_SUCCESS);
	assert_int_equal(be16toh(rep->entries[0].stride), 70000 & 0xffff);
	REFUSED(ibmr_mr_fill(col, &in, &err), E2BIG, IBMR_E_LIMIT);
	SAYS("70000");
}

/* libmlx5 carries what fits inline and no more; ours goes by list memory. */
static void lists_beyond_inline_are_libmlx5s_end_and_not_ours(void **state)
{
	struct ibmr_mr *pool = soft_reg("pool", 4096, LW | RR), *col = soft_create("col", 53);
	struct ibmri_entry e[LIST_MOST + 1];
	struct ibmri_layout l = { .kind = IBMR_LAYOUT_LIST, .count = 1, .num = 53, .entries = e };
	struct ibmr_klm klms[LIST_MOST + 1];
	uint8_t want[LIST_MOST + 1];

	ramp(pool, 9);
	for (uint64_t i = 0; i < 53; i++) {
		e[i] = (struct ibmri_entry){ pool, i * 64, 1, 0, i + 1 };
		klms[i] = (struct ibmr_klm){ pool, i * 64, 1 };
		want[i] = bytes_of(pool)[i * 64];
	}
	post_theirs(&l, theirs.key, false);
	assert_int_equal(ibv_wr_complete(theirs.qpx), ENOMEM);
	soft_fill_list(col, LW | RR, klms, 53);
	assert_int_equal(info_of(col).form, IBMR_FORM_LIST_MEMORY);
	reads_as(col, 0, want, 53);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_encoder_writes_what_libmlx5_writes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_fill_arrives_as_libmlx5s_would, setup, teardown),
		cmocka_unit_test_setup_teardown(
			an_invalidation_is_libmlx5s_change_of_rights_to_none, setup, teardown),
		cmocka_unit_test_setup_teardown(a_list_of_2_gib_and_more_has_its_length, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_list_of_4_gib_works, setup, teardown),
		cmocka_unit_test_setup_teardown(blocks_and_strides_beyond_16_bits_are_refused,
						setup, teardown),
		cmocka_unit_test_setup_teardown(lists_beyond_inline_are_libmlx5s_end_and_not_ours,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
