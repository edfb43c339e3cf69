/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration: which memory and which rights are accepted, what is accounted, and changes. */
#include "raw.h"

#include <sys/resource.h>

#define PAGE ((size_t)4096)

static struct loop l;

static int setup(void **state)
{
	dev_reset();
	loop_open(&l);
	return 0;
}

static int teardown(void **state)
{
	loop_close(&l);
	dev_reset();
	assert_int_equal(counter("live.mr"), 0);
	assert_int_equal(counter("live.mkey"), 0);
	assert_int_equal(counter("pinned_bytes"), 0);
	return 0;
}

static void refused(void *at, size_t len, int access, int err)
{
	errno = 0;
	assert_null(ibv_reg_mr(l.pd, at, len, access));
	assert_int_equal(errno, err);
}

static void accepted(void *at, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(l.pd, at, len, access);

	assert_non_null(mr);
	assert_int_equal(mr->lkey, mr->rkey);
	assert_int_equal(mr->lkey & 0xff, 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void memory_must_be_there(void **state)
{
	uint8_t *p = raw_map(4 * PAGE, PROT_READ | PROT_WRITE);

	accepted(p, 4 * PAGE, RIGHTS);
	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	refused(p, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE, EFAULT);
	refused(p, 2 * PAGE, IBV_ACCESS_MW_BIND, EFAULT);
	accepted(p, 2 * PAGE, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_NONE), 0);
	refused(p, 2 * PAGE, 0, EFAULT);
	refused(p + 2 * PAGE - 1, 1, 0, EFAULT);
	accepted(p + 2 * PAGE, 1, 0);
	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	refused(p, 2 * PAGE, 0, EFAULT);
	refused(p + PAGE - 1, 2, 0, EFAULT);
	accepted(p, PAGE, 0);
	refused(NULL, PAGE, 0, EFAULT);
	assert_int_equal(munmap(p, 4 * PAGE), 0);
}

static void flags(void **state)
{
	static uint8_t buf[64];

	refused(buf, sizeof(buf), IBV_ACCESS_REMOTE_WRITE, EINVAL);
	refused(buf, sizeof(buf), IBV_ACCESS_REMOTE_ATOMIC, EINVAL);
	refused(buf, sizeof(buf), 1 << 10, EINVAL);
	accepted(buf, sizeof(buf), IBV_ACCESS_REMOTE_READ);
	accepted(buf, sizeof(buf), IBV_ACCESS_RELAXED_ORDERING);
	accepted(buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_HUGETLB);
	accepted(buf, sizeof(buf), IBV_ACCESS_ON_DEMAND);
	assert_int_equal(soft0_set("odp", "0"), 0);
	refused(buf, sizeof(buf), IBV_ACCESS_ON_DEMAND, EOPNOTSUPP);
}

static void ranges(void **state)
{
	uint8_t *p = raw_map(2 * PAGE, PROT_READ | PROT_WRITE);
	struct ib_uverbs_reg_mr req = {
		.start = (uintptr_t)p, .length = PAGE, .hca_va = 100, .pd_handle = l.pd->handle
	};
	struct ib_uverbs_reg_mr_resp resp;

	refused(p, 0, 0, EINVAL); /* no page at all */
	refused(p, SIZE_MAX - 100, 0, EINVAL);
	refused(p, SIZE_MAX, 0, EINVAL);
	assert_int_equal(raw_write(l.ctx->cmd_fd, IB_USER_VERBS_CMD_REG_MR, &req, sizeof(req),
				   &resp, sizeof(resp)),
			 EINVAL); /* not at the same place of a page */
	req.hca_va = 0x10000;
	req.pd_handle = 999;
	assert_int_equal(raw_write(l.ctx->cmd_fd, IB_USER_VERBS_CMD_REG_MR, &req, sizeof(req),
				   &resp, sizeof(resp)),
			 EINVAL);
	req.pd_handle = l.pd->handle;
	req.hca_va = UINT64_MAX - PAGE + 1; /* up to the very end: no wrap */
	assert_int_equal(raw_write(l.ctx->cmd_fd, IB_USER_VERBS_CMD_REG_MR, &req, sizeof(req),
				   &resp, sizeof(resp)),
			 EINVAL);
	assert_int_equal(soft0_set("max_mr_size", "4096"), 0);
	accepted(p, PAGE, 0);
	refused(p, PAGE + 1, 0, EINVAL);
	assert_int_equal(munmap(p, 2 * PAGE), 0);
}

static void pinned_pages_are_whole(void **state)
{
	uint8_t *p = raw_map(4 * PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *a = ibv_reg_mr(l.pd, p + PAGE - 1, 2, 0), *b;

	assert_non_null(a);
	assert_int_equal(counter("pinned_bytes"), 2 * PAGE);
	b = ibv_reg_mr(l.pd, p, PAGE, 0);
	assert_non_null(b);
	assert_int_equal(counter("pinned_bytes"), 3 * PAGE);
	assert_int_equal(ibv_dereg_mr(a), 0);
	assert_int_equal(counter("pinned_bytes"), PAGE);
	a = ibv_reg_mr(l.pd, p, 4 * PAGE, IBV_ACCESS_ON_DEMAND);
	assert_non_null(a);
	assert_int_equal(counter("pinned_bytes"), PAGE);
	assert_int_equal(ibv_dereg_mr(a), 0);
	assert_int_equal(ibv_dereg_mr(b), 0);
	assert_int_equal(munmap(p, 4 * PAGE), 0);
}

static void memlock(void **state)
{
	const struct rlimit limit = { 8 * PAGE, 8 * PAGE }, none = { 0, 8 * PAGE };
	uint8_t *p = raw_map(16 * PAGE, PROT_READ | PROT_WRITE);
	struct rlimit old;
	struct ibv_mr *mr;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
	accepted(p, 16 * PAGE, 0); /* not unless it is asked for */
	assert_int_equal(soft0_set("memlock", "1"), 0);
	refused(p, 8 * PAGE + 1, 0, ENOMEM);
	refused(p + 1, 8 * PAGE, 0, ENOMEM); /* nine pages */
	mr = ibv_reg_mr(l.pd, p, 5 * PAGE, 0);
	assert_non_null(mr);
	refused(p, 4 * PAGE, 0, ENOMEM);
	accepted(p, 3 * PAGE, 0);
	accepted(p, 16 * PAGE, IBV_ACCESS_ON_DEMAND);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	refused(p, PAGE, 0, EPERM);
	dev_reset();
	accepted(p, PAGE, 0);
	setrlimit(RLIMIT_MEMLOCK, &old); /* only root may raise it again */
	assert_int_equal(munmap(p, 16 * PAGE), 0);
}

static struct ibv_wc move(enum ibv_wr_opcode opcode, struct ibv_mr *mr, void *at, uint32_t len,
			  uint32_t rkey, uint64_t remote)
{
	struct ibv_sge sge = { (uintptr_t)at, len, mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { remote, rkey } };
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(l.qp, &wr, &bad), 0);
	return loop_poll(l.cq);
}

static void reset_qp(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	assert_int_equal(ibv_modify_qp(l.qp, &attr, IBV_QP_STATE), 0);
	loop_connect(&l);
}

static void an_address_of_its_own(void **state)
{
	static uint8_t buf[100], to[100];
	const uint64_t iova = 0x7000000000000000ull + ((uintptr_t)buf & (PAGE - 1));
	struct ibv_mr *mr = ibv_reg_mr_iova(l.pd, buf, sizeof(buf), iova, RIGHTS);
	struct ibv_mr *mt = ibv_reg_mr(l.pd, to, sizeof(to), RIGHTS);

	assert_true(mr && mt);
	memset(buf, 0x5a, sizeof(buf));
	assert_int_equal(move(IBV_WR_RDMA_READ, mt, to, 100, mr->rkey, iova).status,
			 IBV_WC_SUCCESS);
	assert_memory_equal(buf, to, 100);
	assert_int_equal(move(IBV_WR_RDMA_READ, mt, to, 100, mr->rkey, (uintptr_t)buf).status,
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dereg_mr(mt), 0);
}

static void rereg(void **state)
{
	uint8_t *p = raw_map(4 * PAGE, PROT_READ | PROT_WRITE), *q = raw_map(PAGE, PROT_READ);
	struct ibv_mr *mr = ibv_reg_mr(l.pd, p, PAGE, RIGHTS);
	struct ibv_pd *other = ibv_alloc_pd(l.ctx);

	assert_true(mr && other);
	p[2 * PAGE] = 0x77;
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, p + PAGE, 3 * PAGE, 0), 0);
	assert_int_equal(counter("pinned_bytes"), 3 * PAGE);
	assert_int_equal(
		move(IBV_WR_RDMA_READ, mr, p + PAGE, 1, mr->rkey, (uintptr_t)p + 2 * PAGE).status,
		IBV_WC_SUCCESS);
	assert_int_equal(p[PAGE], 0x77);

	/* a failure leaves it as it was */
	assert_int_not_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, q, PAGE, 0),
			     0);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(counter("pinned_bytes"), 3 * PAGE);
	assert_int_equal(
		move(IBV_WR_RDMA_READ, mr, p + PAGE, 1, mr->rkey, (uintptr_t)p + 2 * PAGE).status,
		IBV_WC_SUCCESS);

	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		0);
	assert_int_equal(
		move(IBV_WR_RDMA_READ, mr, p + PAGE, 1, mr->rkey, (uintptr_t)p + 2 * PAGE).status,
		IBV_WC_REM_ACCESS_ERR);
	reset_qp();
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS,
				      other, NULL, 0, RIGHTS),
			 0);
	assert_int_equal(raw_dealloc_pd(l.ctx->cmd_fd, other->handle), EBUSY);
	assert_int_equal(
		move(IBV_WR_RDMA_WRITE, mr, p + PAGE, 1, mr->rkey, (uintptr_t)p + 2 * PAGE).status,
		IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(other), 0);
	assert_int_equal(munmap(p, 4 * PAGE), 0);
	assert_int_equal(munmap(q, PAGE), 0);
}

static void rereg_refusals(void **state)
{
	static uint8_t buf[64];
	struct ibv_mr *mr = ibv_reg_mr(l.pd, buf, sizeof(buf), 0);
	struct ib_uverbs_rereg_mr req = { .mr_handle = mr->handle };
	struct ib_uverbs_rereg_mr_resp resp;
	int fd = l.ctx->cmd_fd;

#define REREG() raw_write(fd, IB_USER_VERBS_CMD_REREG_MR, &req, sizeof(req), &resp, sizeof(resp))
	assert_int_equal(REREG(), EINVAL); /* nothing is asked */
	req.flags = 8;
	assert_int_equal(REREG(), EOPNOTSUPP);
	req.flags = IBV_REREG_MR_CHANGE_PD;
	req.pd_handle = 999;
	assert_int_equal(REREG(), EINVAL);
	req.flags = IBV_REREG_MR_CHANGE_ACCESS;
	req.access_flags = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(REREG(), EINVAL);
	req.flags = IBV_REREG_MR_CHANGE_TRANSLATION;
	req.start = 1;
	assert_int_equal(REREG(), EINVAL);
	req.mr_handle = 999;
	req.start = 0;
	assert_int_equal(REREG(), EINVAL);
#undef REREG
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void null_mr(void **state)
{
	static uint8_t buf[5000];
	struct ibv_mr *null = ibv_alloc_null_mr(l.pd), *mr;
	struct ibv_sge sge[2] = { { .length = 3000 }, { .length = 2000 } };
	struct ibv_send_wr wr = { .sg_list = sge,
				  .num_sge = 2,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;

	mr = ibv_reg_mr(l.pd, buf, sizeof(buf), RIGHTS);
	assert_true(null && mr);
	memset(buf, 0xaa, sizeof(buf));
	/* the first 3000 bytes come from nowhere, the other from the buffer's end */
	sge[0].lkey = null->lkey;
	sge[0].addr = 0x123456;
	sge[1].lkey = mr->lkey;
	sge[1].addr = (uintptr_t)buf + 3000;
	wr.wr.rdma.remote_addr = (uintptr_t)buf;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(ibv_post_send(l.qp, &wr, &bad), 0);
	assert_int_equal(loop_poll(l.cq).status, IBV_WC_SUCCESS);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(buf[i], i < 3000 ? 0 : 0xaa);
	/* and a read into it is swallowed */
	wr.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(ibv_post_send(l.qp, &wr, &bad), 0);
	assert_int_equal(loop_poll(l.cq).status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(null), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void keys(void **state)
{
	static uint8_t buf[64];
	struct ibv_mr *mr[8];
	int i, j;

	assert_int_equal(soft0_set("max_keys", "4"), 0);
	for (i = 0; i < 4; i++) {
		mr[i] = ibv_reg_mr(l.pd, buf, sizeof(buf), 0);
		assert_non_null(mr[i]);
		for (j = 0; j < i; j++)
			assert_int_not_equal(mr[i]->lkey, mr[j]->lkey);
		assert_int_not_equal(mr[i]->lkey, 0x400);
	}
	assert_null(ibv_reg_mr(l.pd, buf, sizeof(buf), 0));
	assert_int_equal(counter("live.mr"), 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
	accepted(buf, sizeof(buf), 0);
}

static void the_first_key_may_be_zero(void **state)
{
	static uint8_t buf[64];
	struct ibv_mr *mr[8];
	int i;

	assert_int_equal(soft0_set("first_key", "0"), 0);
	for (i = 0; i < 8; i++) {
		mr[i] = ibv_reg_mr(l.pd, buf, sizeof(buf), 0);
		assert_non_null(mr[i]);
		assert_int_not_equal(mr[i]->lkey, 0x400); /* the repeat mark on the wire */
	}
	assert_int_equal(mr[0]->lkey, 0);
	for (i = 0; i < 8; i++)
		assert_int_equal(ibv_dereg_mr(mr[i]), 0);
}

static void split_keys(void **state)
{
	static uint8_t a[64], b[64];
	struct ibv_mr *ma, *mb;

	assert_int_equal(soft0_set("split_keys", "1"), 0);
	ma = ibv_reg_mr(l.pd, a, sizeof(a), RIGHTS);
	mb = ibv_reg_mr(l.pd, b, sizeof(b), RIGHTS);
	assert_true(ma && mb);
	assert_int_not_equal(ma->lkey, ma->rkey);
	memset(a, 9, sizeof(a));
	assert_int_equal(move(IBV_WR_RDMA_WRITE, ma, a, 64, mb->rkey, (uintptr_t)b).status,
			 IBV_WC_SUCCESS);
	assert_memory_equal(a, b, 64);
	assert_int_equal(move(IBV_WR_RDMA_WRITE, ma, a, 64, mb->lkey, (uintptr_t)b).status,
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(ma), 0);
	assert_int_equal(ibv_dereg_mr(mb), 0);
}

static void query(void **state)
{
	static uint8_t buf[64];
	struct ibv_mr *mr = ibv_reg_mr(l.pd, buf, sizeof(buf), RIGHTS);
	struct raw r = raw_start(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR);
	uint32_t lkey, rkey;
	uint64_t length, iova;

	assert_non_null(mr);
	raw_add(&r, UVERBS_ATTR_QUERY_MR_HANDLE, 0, mr->handle);
	raw_out(&r, UVERBS_ATTR_QUERY_MR_RESP_LKEY, &lkey, 4);
	raw_out(&r, UVERBS_ATTR_QUERY_MR_RESP_RKEY, &rkey, 4);
	raw_out(&r, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, &length, 8);
	raw_out(&r, UVERBS_ATTR_QUERY_MR_RESP_IOVA, &iova, 8);
	assert_int_equal(raw_run(l.ctx->cmd_fd, &r), 0);
	assert_int_equal(lkey, mr->lkey);
	assert_int_equal(rkey, mr->rkey);
	assert_int_equal(length, sizeof(buf));
	assert_int_equal(iova, (uintptr_t)buf);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(memory_must_be_there),
		TEST(flags),
		TEST(ranges),
		TEST(pinned_pages_are_whole),
		TEST(memlock),
		TEST(an_address_of_its_own),
		TEST(rereg),
		TEST(rereg_refusals),
		TEST(null_mr),
		TEST(keys),
		TEST(the_first_key_may_be_zero),
		TEST(split_keys),
		TEST(query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
