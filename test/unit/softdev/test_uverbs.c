/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's answers to commands that libibverbs would not send. */
#include "raw.h"

#include <sys/stat.h>
#include <sys/wait.h>

#define BAD_HANDLE 4711

static int fd = -1;
static struct ibv_context *ctx;

static int setup(void **state)
{
	ctx = dev_open();
	fd = ctx->cmd_fd;
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(counter("live.context"), 0);
	assert_int_equal(counter("live.pd"), 0);
	assert_int_equal(counter("live.mr"), 0);
	assert_int_equal(counter("live.cq"), 0);
	assert_int_equal(counter("live.mkey"), 0);
	return 0;
}

static struct raw query_port(uint64_t port, struct ib_uverbs_query_port_resp_ex *resp)
{
	struct raw r = raw_start(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);

	raw_add(&r, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, port);
	raw_out(&r, UVERBS_ATTR_QUERY_PORT_RESP, resp, sizeof(*resp));
	return r;
}

static void headers(void **state)
{
	struct ib_uverbs_query_port_resp_ex resp = { 0 };
	struct raw good = query_port(1, &resp), r;

	assert_int_equal(raw_run(fd, &good), 0);
	assert_int_equal(resp.legacy_resp.lid, 1);

	assert_int_equal(ioctl(fd, RDMA_VERBS_IOCTL + 1, &good), -1);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(ioctl(fd, RDMA_VERBS_IOCTL, NULL), -1);
	assert_int_equal(errno, EFAULT);
	assert_int_equal(ioctl(fd, RDMA_VERBS_IOCTL, raw_hole()), -1);
	assert_int_equal(errno, EFAULT);

	r = good;
	r.hdr.length--;
	assert_int_equal(ioctl(fd, RDMA_VERBS_IOCTL, &r), -1);
	assert_int_equal(errno, EINVAL);
	r = good;
	r.hdr.num_attrs = 5000;
	r.hdr.length = (uint16_t)(sizeof(r.hdr) + 5000 * sizeof(r.attr[0]));
	assert_int_equal(ioctl(fd, RDMA_VERBS_IOCTL, &r), -1);
	assert_int_equal(errno, EINVAL);
	r = good;
	r.hdr.reserved1 = 1;
	assert_int_equal(raw_run(fd, &r), EPROTONOSUPPORT);
	r = good;
	r.hdr.reserved2 = 1;
	assert_int_equal(raw_run(fd, &r), EPROTONOSUPPORT);
	r = good;
	r.hdr.driver_id = RDMA_DRIVER_MLX4;
	assert_int_equal(raw_run(fd, &r), EINVAL);
	r = good;
	r.hdr.object_id = 0x77;
	assert_int_equal(raw_run(fd, &r), EPROTONOSUPPORT);
	r = good;
	r.hdr.method_id = 0x77;
	assert_int_equal(raw_run(fd, &r), EPROTONOSUPPORT);
}

static void attributes(void **state)
{
	struct ib_uverbs_query_port_resp_ex resp = { 0 };
	struct raw good = query_port(1, &resp), r;
	uint8_t longer[64] = { 0 };

	r = query_port(2, &resp);
	assert_int_equal(raw_run(fd, &r), EINVAL);
	r = good;
	raw_add(&r, 0x55, 8, 0);
	assert_int_equal(raw_run(fd, &r), EPROTONOSUPPORT);
	r.attr[2].flags = 0; /* unknown, but not in need of being known */
	assert_int_equal(raw_run(fd, &r), 0);
	r = good;
	raw_add(&r, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
	assert_int_equal(raw_run(fd, &r), EINVAL); /* twice */
	r = good;
	r.hdr.num_attrs = 1;
	assert_int_equal(raw_run(fd, &r), EINVAL); /* one is missing */
	r = good;
	r.attr[0].len = 4;
	assert_int_equal(raw_run(fd, &r), EINVAL);
	r = good;
	r.attr[0] = (struct ib_uverbs_attr){ .attr_id = UVERBS_ATTR_QUERY_PORT_PORT_NUM,
					     .len = sizeof(longer),
					     .data = (uintptr_t)longer };
	assert_int_equal(raw_run(fd, &r), EINVAL);
	r = good;
	r.attr[0].attr_data.reserved = 1;
	assert_int_equal(raw_run(fd, &r), EINVAL);
	r = good;
	r.attr[1].len = 40;
	assert_int_equal(raw_run(fd, &r), EINVAL);
	r = good;
	r.attr[1].len = 49;
	assert_int_equal(raw_run(fd, &r), EINVAL);
	r = good;
	r.attr[1].data = (uintptr_t)raw_hole();
	assert_int_equal(raw_run(fd, &r), EFAULT);
}

static void write_commands(void **state)
{
	const uint64_t ex = IB_USER_VERBS_CMD_FLAG_EXTENDED;
	struct ib_uverbs_alloc_pd req = { 0 };
	struct ib_uverbs_alloc_pd_resp resp;
	struct ib_uverbs_ex_query_device qreq = { .comp_mask = 1 };
	struct ib_uverbs_ex_query_device_resp qresp;
	uint64_t pds = counter("live.pd");

	/* how libibverbs asks whether the interface is there */
	assert_int_equal(raw_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, NULL, 0, NULL, 0), ENOSPC);
	assert_int_equal(raw_write(fd, 41, &req, sizeof(req), &resp, sizeof(resp)), EINVAL);
	assert_int_equal(raw_write(fd, 1ull << 40, &req, sizeof(req), &resp, sizeof(resp)), EINVAL);
	assert_int_equal(
		raw_write(fd, IB_USER_VERBS_CMD_REG_SMR, &req, sizeof(req), &resp, sizeof(resp)),
		EOPNOTSUPP);
	assert_int_equal(raw_write(fd, ex | 99, &req, sizeof(req), &resp, sizeof(resp)),
			 EOPNOTSUPP);
	assert_int_equal(raw_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, &req, 4, &resp, sizeof(resp)),
			 ENOSPC);
	assert_int_equal(raw_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req), &resp, 2),
			 ENOSPC);
	assert_int_equal(raw_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req), raw_hole(),
				   sizeof(resp)),
			 EFAULT);
	assert_int_equal(raw_write(fd, IB_USER_VERBS_CMD_REG_MR, raw_hole(), 40, &resp, 12),
			 EFAULT);
	assert_int_equal(counter("live.pd"), pds); /* nothing was left behind */
	assert_int_equal(raw_write(fd, ex | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &qreq, sizeof(qreq),
				   &qresp, sizeof(qresp)),
			 EINVAL);
	/* an old program has room for less */
	qreq.comp_mask = 0;
	memset(&qresp, 0xee, sizeof(qresp));
	assert_int_equal(raw_write(fd, ex | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, &qreq, sizeof(qreq),
				   &qresp, 200),
			 0);
	assert_int_equal(qresp.response_length, 200);
	assert_int_equal(((uint8_t *)&qresp)[200], 0xee);
}

static void handles(void **state)
{
	uint32_t pd, other;

	assert_int_equal(raw_alloc_pd(fd, &pd), 0);
	assert_int_equal(raw_dealloc_pd(fd, BAD_HANDLE), ENOENT);
	assert_int_equal(raw_destroy(fd, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
				     UVERBS_ATTR_DESTROY_PD_HANDLE, 1ull << 32 | pd),
			 ENOENT);
	assert_int_equal(raw_destroy(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY,
				     UVERBS_ATTR_DESTROY_MR_HANDLE, pd),
			 EINVAL); /* of another type */
	assert_int_equal(raw_destroy(fd, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY,
				     UVERBS_ATTR_DESTROY_CQ_HANDLE, pd),
			 EINVAL);
	assert_int_equal(raw_destroy(fd, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY,
				     UVERBS_ATTR_DESTROY_QP_HANDLE, BAD_HANDLE),
			 ENOENT);
	assert_int_equal(raw_destroy(fd, UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY,
				     UVERBS_ATTR_DESTROY_SRQ_HANDLE, BAD_HANDLE),
			 ENOENT);
	assert_int_equal(raw_destroy(fd, UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY,
				     UVERBS_ATTR_DESTROY_AH_HANDLE, BAD_HANDLE),
			 ENOENT);
	assert_int_equal(raw_destroy(fd, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY,
				     MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, BAD_HANDLE),
			 ENOENT);
	assert_int_equal(raw_destroy(fd, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY,
				     MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, pd),
			 EINVAL);
	assert_int_equal(raw_dealloc_pd(fd, pd), 0);
	assert_int_equal(raw_dealloc_pd(fd, pd), ENOENT); /* twice */
	assert_int_equal(raw_alloc_pd(fd, &other), 0);
	assert_int_equal(other, pd); /* reused */
	assert_int_equal(raw_dealloc_pd(fd, other), 0);
}

static void a_handle_attribute_is_a_handle_only(void **state)
{
	struct raw r = raw_start(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY);
	uint32_t pd;

	assert_int_equal(raw_alloc_pd(fd, &pd), 0);
	raw_add(&r, UVERBS_ATTR_DESTROY_PD_HANDLE, 4, pd);
	assert_int_equal(raw_run(fd, &r), EINVAL);
	r.attr[0].len = 0;
	r.attr[0].attr_data.reserved = 1;
	assert_int_equal(raw_run(fd, &r), EINVAL);
	assert_int_equal(raw_dealloc_pd(fd, pd), 0);
}

static void busy(void **state)
{
	static uint8_t buf[100];
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 10, NULL, channel, 0);
	struct ibv_srq_init_attr sattr = { .attr = { .max_wr = 10, .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(pd, &sattr);
	struct ibv_qp_init_attr attr = { .send_cq = cq,
					 .recv_cq = cq,
					 .srq = srq,
					 .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 4, .max_send_sge = 1 } };
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), 0);
	struct ibv_qp *qp;

	assert_true(pd && cq && srq && mr);
	assert_int_equal(raw_dealloc_pd(fd, pd->handle), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(raw_dealloc_pd(fd, pd->handle), EBUSY); /* the SRQ */
	qp = ibv_create_qp(pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), EBUSY); /* libibverbs' own count */
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void a_pd_with_an_indirect_key(void **state)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct mlx5dv_mkey_init_attr init = { .pd = pd,
					      .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 4 };
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&init);

	assert_non_null(mkey);
	assert_int_equal(ibv_dealloc_pd(pd), EINVAL);
	assert_int_equal(mlx5dv_destroy_mkey(mkey), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static int create_cq(int channel, int async, uint32_t *ret_handle)
{
	static _Alignas(4096) uint8_t buf[4096], db[64];
	struct raw r = raw_start(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
	struct mlx5_ib_create_cq req = { .buf_addr = (uintptr_t)buf,
					 .db_addr = (uintptr_t)db,
					 .cqe_size = 64 };
	struct mlx5_ib_create_cq_resp resp;
	const uint64_t user = 1;
	const uint32_t cqe = 15, vector = 0;
	uint32_t out;
	int err;

	raw_add(&r, UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0);
	raw_ptr(&r, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof(cqe));
	raw_ptr(&r, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &user, sizeof(user));
	raw_ptr(&r, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &vector, sizeof(vector));
	raw_out(&r, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &out, sizeof(out));
	raw_ptr(&r, UVERBS_ATTR_UHW_IN, &req, sizeof(req));
	raw_out(&r, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	if (channel != -2)
		raw_add(&r, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 0, (uint64_t)(int64_t)channel);
	if (async != -2)
		raw_add(&r, UVERBS_ATTR_CREATE_CQ_EVENT_FD, 0, (uint64_t)(int64_t)async);
	err = raw_run(fd, &r);
	*ret_handle = (uint32_t)r.attr[0].data;
	return err;
}

static int destroy_cq(uint32_t handle)
{
	struct raw r = raw_start(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
	struct ib_uverbs_destroy_cq_resp resp;

	raw_add(&r, UVERBS_ATTR_DESTROY_CQ_HANDLE, 0, handle);
	raw_out(&r, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof(resp));
	return raw_run(fd, &r);
}

static void descriptors_as_attributes(void **state)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx), *theirs;
	struct ibv_context *other = dev_open();
	uint32_t cq;

	theirs = ibv_create_comp_channel(other);
	assert_true(channel && theirs);
	assert_int_equal(create_cq(-2, -2, &cq), 0);
	assert_int_equal(destroy_cq(cq), 0);
	assert_int_equal(create_cq(channel->fd, ctx->async_fd, &cq), 0);
	assert_int_equal(destroy_cq(cq), 0);
	assert_int_equal(create_cq(-1, -2, &cq), EINVAL);
	assert_int_equal(create_cq(9999, -2, &cq), EBADF);
	assert_int_equal(create_cq(1, -2, &cq), EBADF); /* no channel */
	assert_int_equal(create_cq(ctx->async_fd, -2, &cq), EBADF);
	assert_int_equal(create_cq(-2, channel->fd, &cq), EBADF);
	assert_int_equal(create_cq(theirs->fd, -2, &cq), EBADF); /* another context's */
	assert_int_equal(ibv_destroy_comp_channel(theirs), 0);
	assert_int_equal(ibv_close_device(other), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void bad_pointers_leave_nothing(void **state)
{
	struct raw r = raw_start(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC), bad;
	uint64_t offset = 0, uars = counter("live.uar");
	uint32_t length = 0, page = 0;
	int i;

	raw_add(&r, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0, 0);
	raw_add(&r, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 8, 1);
	raw_out(&r, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof(offset));
	raw_out(&r, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, sizeof(length));
	raw_out(&r, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &page, sizeof(page));
	for (i = 2; i < 5; i++) {
		bad = r;
		bad.attr[i].data = (uintptr_t)raw_hole();
		assert_int_equal(raw_run(fd, &bad), EFAULT);
	}
	bad = r;
	bad.attr[1].data = 7; /* no such type */
	assert_int_equal(raw_run(fd, &bad), EINVAL);
	assert_int_equal(counter("live.uar"), uars);
	assert_int_equal(raw_run(fd, &r), 0);
	assert_int_equal(counter("live.uar"), uars + 1);

	/* it maps there and nowhere else */
	assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, 0x7770000), MAP_FAILED);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(mmap(NULL, 8192, PROT_WRITE, MAP_SHARED, fd, (off_t)offset), MAP_FAILED);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_PRIVATE, fd, (off_t)offset), MAP_FAILED);
	assert_int_equal(errno, EINVAL);
	assert_ptr_equal(mmap(NULL, 4096, PROT_EXEC, MAP_SHARED, fd, (off_t)offset), MAP_FAILED);
	assert_int_equal(errno, EPERM);
	assert_int_equal(raw_destroy(fd, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY,
				     MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, r.attr[0].data),
			 0);
	assert_ptr_equal(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, fd, (off_t)offset), MAP_FAILED);
}

static int devx(uint16_t opcode, size_t in_len, void *out, size_t out_len)
{
	struct raw r = raw_start(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
	uint8_t in[16] = { (uint8_t)(opcode >> 8), (uint8_t)opcode };

	raw_ptr(&r, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, in_len);
	raw_out(&r, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, out_len);
	return raw_run(fd, &r);
}

static void devx_commands(void **state)
{
	uint8_t out[16 + 4096];

	memset(out, 0xee, sizeof(out));
	assert_int_equal(devx(0x100, 16, out, sizeof(out)), 0); /* QUERY_HCA_CAP */
	assert_int_equal(out[0], 0);
	assert_int_equal(out[16 + 0x100 / 8], 4);	    /* max_indirection */
	assert_int_equal(out[16 + 0x118 / 8] & 0x3f, 16);   /* log_max_klm_list_size */
	assert_int_equal(out[16 + 0x108 / 8], 64);	    /* no fixed buffers; log_max_mrw_sz */
	assert_int_equal(devx(0x100, 16, out, 100), 0);	    /* as much as there is room for */
	assert_int_equal(devx(0x100, 16, out, 12), EINVAL); /* not even a status */
	assert_int_equal(devx(0x100, 4, out, sizeof(out)), EINVAL);
	assert_int_equal(devx(0x200, 16, out, sizeof(out)), EINVAL); /* makes an object */
	assert_int_equal(devx(0x101, 16, out, sizeof(out)), EREMOTEIO);
	assert_int_not_equal(out[0], 0); /* the status came along */
}

static void create_mkey_refusals(void **state)
{
	struct raw r = raw_start(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
	uint8_t in[272] = { 2, 0 }, out[16] = { 0 };
	uint64_t keys = counter("live.mkey");

	raw_add(&r, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0, 0);
	raw_ptr(&r, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, sizeof(in));
	raw_out(&r, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, sizeof(out));
	assert_int_equal(raw_run(fd, &r), EREMOTEIO); /* no PD, no size */
	assert_int_not_equal(out[0], 0);
	in[0] = 5; /* CREATE_QP: not offered */
	assert_int_equal(raw_run(fd, &r), EREMOTEIO);
	in[0] = 1; /* makes nothing */
	assert_int_equal(raw_run(fd, &r), EINVAL);
	assert_int_equal(counter("live.mkey"), keys);
}

static void contexts(void **state)
{
	uint32_t pd;
	int raw = raw_open(), copy;
	struct stat st, null;

	assert_int_equal(fstat(raw, &st), 0);
	assert_int_equal(stat("/dev/null", &null), 0);
	assert_int_equal(st.st_rdev, null.st_rdev);
	assert_int_equal(raw_alloc_pd(raw, &pd), EINVAL); /* no context yet */
	assert_int_equal(raw_dealloc_pd(raw, 0), EINVAL);
	assert_int_equal(raw_get_context(raw), 0);
	assert_int_equal(raw_get_context(raw), EINVAL);
	assert_int_equal(raw_alloc_pd(raw, &pd), 0);
	copy = dup(raw);
	assert_int_equal(close(raw), 0);
	assert_int_equal(ioctl(raw, RDMA_VERBS_IOCTL, NULL), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(raw_dealloc_pd(copy, pd), 0); /* the same open file */
	assert_int_equal(raw_alloc_pd(copy, &pd), 0);
	assert_int_equal(counter("live.context"), 2);
	raw = fcntl(copy, F_DUPFD_CLOEXEC, 100);
	assert_true(raw >= 100);
	assert_int_equal(dup2(1, copy), copy); /* closes ours */
	assert_int_equal(close(copy), 0);
	assert_int_equal(counter("live.context"), 2);
	assert_int_equal(close(raw), 0);
	assert_int_equal(counter("live.context"), 1);
	assert_int_equal(open("/dev/infiniband/uverbs0", O_RDONLY), -1);
	assert_int_equal(errno, EACCES);
	assert_int_equal(open("/dev/infiniband/uverbs1", O_RDWR), -1);
}

static void close_all_at_once(void)
{
	static uint8_t buf[8192];
	struct mlx5dv_mkey_init_attr init = { .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 4 };
	struct loop l;
	uint64_t pinned = counter("pinned_bytes");

	loop_open(&l);
	init.pd = l.pd;
	assert_non_null(ibv_reg_mr(l.pd, buf, sizeof(buf), 0));
	assert_non_null(ibv_reg_mr(l.pd, buf, sizeof(buf), IBV_ACCESS_ON_DEMAND));
	assert_non_null(mlx5dv_create_mkey(&init));
	assert_non_null(ibv_create_comp_channel(l.ctx));
	assert_true(counter("pinned_bytes") > pinned);
	assert_int_equal(counter("live.qp"), 1);
	assert_int_equal(close(l.ctx->cmd_fd), 0); /* as at the end of a process that was killed */
	assert_int_equal(counter("live.qp"), 0);
	assert_int_equal(counter("live.cq"), 0);
	assert_int_equal(counter("live.mr"), 0);
	assert_int_equal(counter("live.mkey"), 0);
	assert_int_equal(counter("live.pd"), 0);
	assert_int_equal(counter("live.uar"), 1); /* the test's own context's */
	assert_int_equal(counter("pinned_bytes"), pinned);
}

/* In a child: libibverbs cannot release what it holds once its descriptor is gone. */
static void closing_frees_everything(void **state)
{
	in_child(close_all_at_once);
}

static void a_child_has_its_own_copy(void **state)
{
	uint32_t pd;
	pid_t pid;
	int status;

	assert_int_equal(raw_alloc_pd(fd, &pd), 0);
	pid = fork();
	if (!pid) {
		uint32_t more;
		int ok = !raw_dealloc_pd(fd, pd) && !raw_alloc_pd(fd, &more) &&
			 !raw_alloc_pd(fd, &more);

		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(counter("live.pd"), 1);
	assert_int_equal(raw_dealloc_pd(fd, pd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(headers, setup, teardown),
		cmocka_unit_test_setup_teardown(attributes, setup, teardown),
		cmocka_unit_test_setup_teardown(write_commands, setup, teardown),
		cmocka_unit_test_setup_teardown(handles, setup, teardown),
		cmocka_unit_test_setup_teardown(a_handle_attribute_is_a_handle_only, setup,
						teardown),
		cmocka_unit_test_setup_teardown(busy, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pd_with_an_indirect_key, setup, teardown),
		cmocka_unit_test_setup_teardown(descriptors_as_attributes, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_pointers_leave_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(devx_commands, setup, teardown),
		cmocka_unit_test_setup_teardown(create_mkey_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(contexts, setup, teardown),
		cmocka_unit_test_setup_teardown(closing_frees_everything, setup, teardown),
		cmocka_unit_test_setup_teardown(a_child_has_its_own_copy, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
