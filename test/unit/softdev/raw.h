/* SPDX-License-Identifier: BSD-2-Clause */
/* ioctls by hand, to send what libibverbs never would. */
#ifndef TEST_RAW_H
#define TEST_RAW_H

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>

#include "dev.h"

struct raw {
	union {
		struct ib_uverbs_ioctl_hdr hdr; /* ends in attributes without a number */
		struct {
			uint64_t room[sizeof(struct ib_uverbs_ioctl_hdr) / 8];
			struct ib_uverbs_attr attr[24];
		};
	};
};

static inline struct raw raw_start(uint16_t object, uint16_t method)
{
	return (struct raw){
		.hdr = { .object_id = object, .method_id = method, .driver_id = RDMA_DRIVER_MLX5 }
	};
}

/* An attribute as it stands: data is the value, the address, the handle or the fd. */
static inline struct ib_uverbs_attr *raw_add(struct raw *r, uint16_t id, size_t len, uint64_t data)
{
	struct ib_uverbs_attr *a = &r->attr[r->hdr.num_attrs++];

	*a = (struct ib_uverbs_attr){
		.attr_id = id, .len = (uint16_t)len, .flags = UVERBS_ATTR_F_MANDATORY, .data = data
	};
	return a;
}

static inline struct ib_uverbs_attr *raw_ptr(struct raw *r, uint16_t id, const void *p, size_t len)
{
	uint64_t data = (uintptr_t)p;

	if (len <= sizeof(data)) {
		data = 0;
		memcpy(&data, p, len);
	}
	return raw_add(r, id, len, data);
}

static inline struct ib_uverbs_attr *raw_out(struct raw *r, uint16_t id, void *p, size_t len)
{
	return raw_add(r, id, len, (uintptr_t)p);
}

/* 0, or the errno. */
static inline int raw_run(int fd, struct raw *r)
{
	r->hdr.length = (uint16_t)(sizeof(r->hdr) + r->hdr.num_attrs * sizeof(r->attr[0]));
	return ioctl(fd, RDMA_VERBS_IOCTL, r) ? errno : 0;
}

static inline int raw_write(int fd, uint64_t command, const void *in, size_t in_len, void *out,
			    size_t out_len)
{
	struct raw r = raw_start(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);

	raw_add(&r, UVERBS_ATTR_WRITE_CMD, 8, command);
	if (in_len)
		raw_ptr(&r, UVERBS_ATTR_CORE_IN, in, in_len);
	if (out_len)
		raw_out(&r, UVERBS_ATTR_CORE_OUT, out, out_len);
	return raw_run(fd, &r);
}

static inline int raw_destroy(int fd, uint16_t object, uint16_t method, uint16_t id,
			      uint64_t handle)
{
	struct raw r = raw_start(object, method);

	raw_add(&r, id, 0, handle);
	return raw_run(fd, &r);
}

static inline int raw_dealloc_pd(int fd, uint32_t handle)
{
	return raw_destroy(fd, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY,
			   UVERBS_ATTR_DESTROY_PD_HANDLE, handle);
}

static inline int raw_alloc_pd(int fd, uint32_t *ret_handle)
{
	struct ib_uverbs_alloc_pd req = { 0 };
	struct ib_uverbs_alloc_pd_resp resp = { 0 };
	int err = raw_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, &req, sizeof(req), &resp, sizeof(resp));

	*ret_handle = resp.pd_handle;
	return err;
}

static inline int raw_get_context(int fd)
{
	struct raw r = raw_start(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	struct mlx5_ib_alloc_ucontext_req_v2 req = { .lib_caps = MLX5_LIB_CAP_DYN_UAR |
								 MLX5_LIB_CAP_4K_UAR };
	struct mlx5_ib_alloc_ucontext_resp resp;
	uint32_t vectors;
	uint64_t support;

	raw_out(&r, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof(vectors));
	raw_out(&r, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &support, sizeof(support));
	raw_ptr(&r, UVERBS_ATTR_UHW_IN, &req, sizeof(req));
	raw_out(&r, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	return raw_run(fd, &r);
}

static inline int raw_open(void)
{
	int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/*
 * Memory in the middle of nowhere: a hole made in it stays one, for the kernel gives other mappings the
 * room above it first.
 */
static inline uint8_t *raw_map(size_t bytes, int prot)
{
	const size_t margin = 64 << 20;
	uint8_t *p = mmap(NULL, 2 * margin, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *ret;

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(munmap(p, 2 * margin), 0);
	ret = mmap(p + margin, bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		   0);
	assert_ptr_equal(ret, p + margin);
	return ret;
}

/* A page that nothing may touch. */
static inline void *raw_hole(void)
{
	void *p = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

#endif /* TEST_RAW_H */
