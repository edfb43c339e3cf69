/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Real commands, changed at random. An ioctl of this program's own catches what libibverbs sends while
 * it makes one of everything; then each command is sent many times with bits, sizes, handles and
 * addresses changed. Nothing may crash, and the end of the context must find all that was made.
 */
#include "raw.h"

#include <dlfcn.h>
#include <sys/wait.h>

#define CAUGHT_MAX 64
#define ROUNDS	   400
#define OUT_SIZE   8192

static struct caught {
	uint8_t *in[24]; /* copies of what the attributes point to */
	struct raw r;
} caught[CAUGHT_MAX];
static unsigned int num_caught;
static bool catching;

static int (*next_ioctl)(int fd, unsigned long request, ...);

/* What lies behind an attribute, when it is an input: this side can only look at addresses it made. */
static bool is_input(const struct raw *r, const struct ib_uverbs_attr *a)
{
	if (a->len <= 8)
		return false;
	if (r->hdr.object_id == UVERBS_OBJECT_DEVICE && !r->hdr.method_id)
		return a->attr_id == UVERBS_ATTR_CORE_IN || a->attr_id == UVERBS_ATTR_UHW_IN;
	if (r->hdr.object_id == MLX5_IB_OBJECT_DEVX || r->hdr.object_id == MLX5_IB_OBJECT_DEVX_OBJ)
		return a->attr_id == MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN ||
		       (r->hdr.object_id == MLX5_IB_OBJECT_DEVX &&
			a->attr_id == MLX5_IB_ATTR_DEVX_OTHER_CMD_IN);
	return a->attr_id == UVERBS_ATTR_UHW_IN ||
	       (r->hdr.object_id == UVERBS_OBJECT_QP && a->attr_id == UVERBS_ATTR_CREATE_QP_CAP) ||
	       (r->hdr.object_id == UVERBS_OBJECT_MR &&
		a->attr_id == UVERBS_ATTR_ADVISE_MR_SGE_LIST);
}

static void catch (const struct ib_uverbs_ioctl_hdr *hdr)
{
	struct caught *c = &caught[num_caught];
	unsigned int i;

	if (num_caught == CAUGHT_MAX || hdr->num_attrs > 20)
		return;
	memcpy(&c->r, hdr, hdr->length);
	for (i = 0; i < hdr->num_attrs; i++) {
		struct ib_uverbs_attr *a = &c->r.attr[i];

		if (!is_input(&c->r, a))
			continue;
		c->in[i] = malloc(a->len);
		memcpy(c->in[i], (void *)(uintptr_t)a->data, a->len);
	}
	num_caught++;
}

/* Ahead of softdev's, which it calls. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list va;
	void *arg;

	va_start(va, request);
	arg = va_arg(va, void *);
	va_end(va);
	if (!next_ioctl)
		*(void **)&next_ioctl = dlsym(RTLD_NEXT, "ioctl");
	if (catching && request == RDMA_VERBS_IOCTL)
		catch (arg);
	return next_ioctl(fd, request, arg);
}

/* ---- one of everything -------------------------------------------------------------- */

static void catch_all(struct loop *l)
{
	static _Alignas(4096) uint8_t buf[8192];
	struct ibv_srq_init_attr sattr = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct mlx5dv_mkey_init_attr init = { .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 4 };
	struct ibv_comp_channel *channel;
	struct ibv_qp_init_attr qinit;
	struct ibv_srq_attr srq_attr;
	struct mlx5dv_mkey *mkey;
	struct ibv_qp_attr qattr;
	struct ibv_srq *srq;
	struct ibv_mr *mr;
	struct ibv_sge sge;

	catching = true;
	loop_open(l);
	init.pd = l->pd;
	channel = ibv_create_comp_channel(l->ctx);
	srq = ibv_create_srq(l->pd, &sattr);
	mkey = mlx5dv_create_mkey(&init);
	mr = ibv_reg_mr(l->pd, buf, sizeof(buf), RIGHTS | IBV_ACCESS_ON_DEMAND);
	assert_true(channel && srq && mkey && mr);
	sge = (struct ibv_sge){ (uintptr_t)buf, 64, mr->lkey };
	assert_int_equal(ibv_query_qp(l->qp, &qattr, IBV_QP_STATE, &qinit), 0);
	assert_int_equal(ibv_query_srq(srq, &srq_attr), 0);
	assert_int_equal(ibv_resize_cq(l->cq, 100), 0);
	assert_int_equal(ibv_advise_mr(l->pd, 0, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1), 0);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS), 0);
	assert_int_equal(mlx5dv_destroy_mkey(mkey), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	loop_close(l);
	catching = false;
}

/* ---- changes ---------------------------------------------------------------------------- */

static uint64_t seed = 0x5eed;

static uint32_t any(uint32_t below)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(seed >> 33) % below;
}

static void change_attr(struct ib_uverbs_attr *a, uint8_t *in, void *hole)
{
	static const uint64_t values[] = { 0,	       1,	   2,	       3,
					   4,	       7,	   255,	       4096,
					   0x7fffffff, 0x80000000, 0xffffffff, ~0ull,
					   1ull << 32, 1ull << 63, 0x100,      0x400 };

	switch (any(6)) {
	case 0:
		a->len = (uint16_t)values[any(16)];
		break;
	case 1:
		a->data = values[any(16)];
		break;
	case 2:
		a->data = (uintptr_t)hole;
		break;
	case 3:
		a->attr_id = (uint16_t)(any(2) ? any(16) : 0x1000 + any(6));
		break;
	case 4: /* but an address stays ours, or nobody's */
		if (a->data < 1u << 20)
			a->data ^= 1ull << any(64);
		break;
	default: /* within the command's own words */
		if (in && a->len >= 8) {
			uint32_t at = any(a->len / 4u) * 4, word = (uint32_t)values[any(16)];

			memcpy(in + at, &word, sizeof(word));
		}
		break;
	}
}

/* Rings lie in memory of ours that stays zero, not where libmlx5 once had its own. */
static void place_rings(const struct raw *r, const struct ib_uverbs_attr *a, uint8_t *in)
{
	static _Alignas(4096) uint8_t ring[1 << 20], doorbells[4096];
	const uint64_t at[2] = { (uintptr_t)ring, (uintptr_t)doorbells };

	if (a->attr_id != UVERBS_ATTR_UHW_IN)
		return;
	if (r->hdr.object_id == UVERBS_OBJECT_CQ || r->hdr.object_id == UVERBS_OBJECT_QP ||
	    r->hdr.object_id == UVERBS_OBJECT_SRQ)
		memcpy(in, at, sizeof(at));
	else if (r->hdr.object_id == UVERBS_OBJECT_DEVICE && !r->hdr.method_id)
		memcpy(in, at, sizeof(at[0])); /* resize_cq */
}

static void send_changed(int fd, const struct caught *c, void *hole)
{
	static uint8_t in[24][8192], out[24][OUT_SIZE];
	struct raw r = c->r;
	unsigned int i, n;

	for (i = 0; i < r.hdr.num_attrs; i++) {
		struct ib_uverbs_attr *a = &r.attr[i];

		if (c->in[i]) {
			memcpy(in[i], c->in[i], a->len);
			place_rings(&r, a, in[i]);
			a->data = (uintptr_t)in[i];
		} else if (a->len > 8 || a->data > 1u << 30) {
			a->data = (uintptr_t)out[i]; /* never an address of libibverbs' own */
		}
	}
	for (n = any(3); n; n--) {
		i = any(r.hdr.num_attrs);
		change_attr(&r.attr[i], in[i], hole);
	}
	/* whatever it asked for, it must find room: addresses are ours, lengths at most 64 KiB */
	for (i = 0; i < r.hdr.num_attrs; i++)
		if (r.attr[i].data == (uintptr_t)out[i] && r.attr[i].len > OUT_SIZE)
			r.attr[i].len = OUT_SIZE;
	if (any(40) == 0)
		r.hdr.method_id = (uint16_t)any(8);
	raw_run(fd, &r);
}

static void hammer(void)
{
	struct loop l;
	void *hole = raw_hole();
	unsigned int round, i;
	uint32_t pd;
	int fd;

	catch_all(&l);
	assert_true(num_caught > 25);
	fd = raw_open();
	assert_int_equal(raw_get_context(fd), 0);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < num_caught; i++)
			send_changed(fd, &caught[i], hole);
		assert_int_equal(raw_alloc_pd(fd, &pd), 0); /* it still works */
	}
	assert_int_equal(close(fd), 0);
	assert_int_equal(counter("live.context"), 0);
	assert_int_equal(counter("live.pd"), 0);
	assert_int_equal(counter("live.mr"), 0);
	assert_int_equal(counter("live.cq"), 0);
	assert_int_equal(counter("live.qp"), 0);
	assert_int_equal(counter("live.srq"), 0);
	assert_int_equal(counter("live.mkey"), 0);
	assert_int_equal(counter("live.uar"), 0);
	assert_int_equal(counter("pinned_bytes"), 0);
	assert_true(counter("cmd.create_cq") > 100);
}

/* In a child: descriptors that commands made are not given back one by one. */
static void changed_commands(void **state)
{
	in_child(hammer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changed_commands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
