/* SPDX-License-Identifier: BSD-2-Clause */
/* Registered memory by the experimental verbs, its prefetch, and device memory. */
#include "exp.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define SHARED                                                                        \
	(IBV_EXP_ACCESS_SHARED_MR_USER_READ | IBV_EXP_ACCESS_SHARED_MR_USER_WRITE |   \
	 IBV_EXP_ACCESS_SHARED_MR_GROUP_READ | IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE | \
	 IBV_EXP_ACCESS_SHARED_MR_OTHER_READ | IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE)
#define UNAVAILABLE                                                       \
	(SHARED | IBV_EXP_ACCESS_NO_RDMA | IBV_EXP_ACCESS_MW_ZERO_BASED | \
	 IBV_EXP_ACCESS_PHYSICAL_ADDR | IBV_EXP_ACCESS_TUNNELED_ATOMIC)
/* Bits that are the same in ibv_reg_mr(); the old kernel looked at these too. */
#define VERBS                                                                                   \
	((uint64_t)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		    IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |     \
		    IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB | IBV_ACCESS_RELAXED_ORDERING))
#define KNOWN                                                                          \
	(VERBS | UNAVAILABLE | IBV_EXP_ACCESS_ALLOCATE_MR | IBV_EXP_ACCESS_ON_DEMAND | \
	 IBV_EXP_ACCESS_RELAXED)

/* ---- registration ------------------------------------------------------------------------ */

static uint32_t create_flags(const struct ibv_exp_reg_mr_in *in)
{
	return in->comp_mask & IBV_EXP_REG_MR_CREATE_FLAGS ? in->create_flags : 0;
}

static bool allocates(const struct ibv_exp_reg_mr_in *in)
{
	return in->exp_access & IBV_EXP_ACCESS_ALLOCATE_MR ||
	       create_flags(in) & IBV_EXP_REG_MR_CREATE_CONTIG;
}

static int check_reg(const struct ibv_exp_reg_mr_in *in)
{
	if (in->comp_mask >= IBV_EXP_REG_MR_RESERVED || in->exp_access & ~(uint64_t)KNOWN ||
	    create_flags(in) & ~(uint32_t)IBV_EXP_REG_MR_CREATE_CONTIG)
		return EINVAL;
	if (in->exp_access & UNAVAILABLE)
		return EOPNOTSUPP;
	if (in->exp_access & IBV_EXP_ACCESS_ALLOCATE_MR && in->addr)
		return EINVAL;
	if (allocates(in) && !in->length)
		return EINVAL;
	if (in->comp_mask & IBV_EXP_REG_MR_DM && (!in->dm || allocates(in)))
		return EINVAL;
	return 0;
}

static unsigned verbs_access(uint64_t exp_access)
{
	unsigned access = (unsigned)(exp_access & VERBS);

	if (exp_access & IBV_EXP_ACCESS_ON_DEMAND)
		access |= IBV_ACCESS_ON_DEMAND;
	return access;
}

struct dm {
	struct ibv_exp_dm head;
	struct ibv_dm *dm;
};

/* addr is the memory's; on a device's own memory it is an offset. */
static int reg(struct ibmri_exp_mr *m, const struct ibv_exp_reg_mr_in *in, void *addr)
{
	unsigned access = (unsigned)m->access;

	errno = 0;
	if (in->comp_mask & IBV_EXP_REG_MR_DM)
		m->ibv = ibv_reg_dm_mr(in->pd, ((struct dm *)in->dm)->dm, (uintptr_t)addr,
				       in->length, access | IBV_ACCESS_ZERO_BASED);
	else
		m->ibv = ibv_reg_mr(in->pd, addr, in->length, access);
	if (m->ibv)
		return 0;
	return errno ? errno : EINVAL;
}

/* At addr, when it is given, or not at all. */
static int allocate(struct ibmri_exp_mr *m, void *addr, size_t length)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (addr ? MAP_FIXED_NOREPLACE : 0);
	void *map = mmap(addr, length, PROT_READ | PROT_WRITE, flags, -1, 0);

	if (map == MAP_FAILED)
		return errno;
	m->map = map;
	m->map_length = length;
	return 0;
}

struct ibv_mr *ibv_exp_reg_mr(struct ibv_exp_reg_mr_in *in)
{
	struct ibmri_exp_mr *m;
	int ret;

	ret = check_reg(in);
	if (ret)
		return ibmri_exp_null(ret);
	m = calloc(1, sizeof(*m));
	if (!m)
		return ibmri_exp_null(ENOMEM);
	m->access = verbs_access(in->exp_access);
	if (allocates(in))
		ret = allocate(m, in->addr, in->length);
	if (!ret)
		ret = reg(m, in, m->map ? m->map : in->addr);
	if (ret)
		goto unmap;
	if (ibmri_exp_mr_add(m)) {
		ret = ENOMEM;
		if (ibv_dereg_mr(m->ibv))
			return ibmri_exp_null(ret); /* the device still knows the memory */
		goto unmap;
	}
	if (m->map)
		in->addr = m->map;
	return m->ibv;

unmap:
	if (m->map)
		munmap(m->map, m->map_length);
	free(m);
	return ibmri_exp_null(ret);
}

/* No kernel of today shares registrations this way. */
struct ibv_mr *ibv_exp_reg_shared_mr(struct ibv_exp_reg_shared_mr_in *in)
{
	return ibmri_exp_null(ENOSYS);
}

/* ---- prefetch ------------------------------------------------------------------------------- */

static int prefetch_errno(const struct ibmr_err *err)
{
	switch (err->code) {
	case IBMR_E_RANGE:
	case IBMR_E_BAD_ADDRESS:
		return EFAULT;
	case IBMR_E_UNSUPPORTED:
		return ENOSYS;
	case IBMR_E_NO_MEMORY:
		return ENOMEM;
	default:
		return EINVAL;
	}
}

/* An MR for libibmr around the program's; the ctx is one thread's at a time, the advice is not. */
static int advise(struct ibmri_exp_pd *pd, struct ibv_mr *ibv, uint64_t access,
		  const struct ibv_exp_prefetch_attr *attr, enum ibmr_advice advice,
		  struct ibmr_err *err)
{
	struct ibmr_range range = { .offset = (uintptr_t)attr->addr - (uintptr_t)ibv->addr,
				    .length = attr->length };
	int ret;

	pthread_mutex_lock(&pd->lock);
	ret = ibmr_mr_from_ibv(pd->ctx, ibv, access, NULL, &range.mr, err);
	pthread_mutex_unlock(&pd->lock);
	if (ret)
		return ret;
	ret = ibmr_mr_prefetch(pd->ctx, &range, 1, advice, true, NULL, NULL, err);
	pthread_mutex_lock(&pd->lock);
	(void)ibmr_mr_dereg(range.mr, NULL); /* nothing of the device's */
	pthread_mutex_unlock(&pd->lock);
	return ret;
}

static int prefetch(struct ibv_mr *mr, const struct ibv_exp_prefetch_attr *attr)
{
	const struct ibmri_exp_mr *m = ibmri_exp_mr_of(mr);
	uint64_t access =
		IBMR_ACCESS_ON_DEMAND | IBMR_ACCESS_LOCAL_WRITE; /* of ibv_reg_mr(): who knows */
	bool write = attr->flags & IBV_EXP_PREFETCH_WRITE_ACCESS;
	struct ibmri_exp_pd *pd;
	struct ibmr_err err;
	int ret;

	if (attr->comp_mask >= IBV_EXP_PREFETCH_MR_RESERVED ||
	    attr->flags & ~(uint32_t)IBV_EXP_PREFETCH_WRITE_ACCESS)
		return EINVAL;
	if (m)
		access &= m->access;
	if (m && (m->mr || !(access & IBMR_ACCESS_ON_DEMAND)))
		return EINVAL;
	if ((uintptr_t)attr->addr < (uintptr_t)mr->addr)
		return EFAULT;
	if (!attr->length)
		return 0;
	ret = ibmri_exp_pd_get(mr->pd, &pd, &err);
	if (ret)
		return ibmri_exp_errno(&err);
	/* the old call did not mind what was asked for memory that cannot be written */
	write = write && access & IBMR_ACCESS_LOCAL_WRITE;
	ret = advise(pd, mr, access, attr, write ? IBMR_ADVICE_WRITE : IBMR_ADVICE_READ, &err);
	if (ret && write && err.sys_errno == EPERM)
		ret = advise(pd, mr, access, attr, IBMR_ADVICE_READ, &err);
	return ret ? prefetch_errno(&err) : 0;
}

int ibv_exp_prefetch_mr(struct ibv_mr *mr, struct ibv_exp_prefetch_attr *attr)
{
	int ret = prefetch(mr, attr);

	if (ret)
		errno = ret;
	return ret;
}

/* ---- device memory ------------------------------------------------------------------------------ */

static bool has_dm(struct ibv_context *context)
{
	struct ibv_device_attr_ex attr = { .comp_mask = 0 };

	return !ibv_query_device_ex(context, NULL, &attr) && attr.max_dm_size;
}

struct ibv_exp_dm *ibv_exp_alloc_dm(struct ibv_context *context, struct ibv_exp_alloc_dm_attr *attr)
{
	struct ibv_alloc_dm_attr in = { .length = attr->length };
	struct dm *dm;
	int ret;

	if (attr->comp_mask >= IBV_EXP_ALLOC_DM_ATTR_RESERVED)
		return ibmri_exp_null(EINVAL);
	if (!has_dm(context))
		return ibmri_exp_null(ENOSYS);
	dm = calloc(1, sizeof(*dm));
	if (!dm)
		return ibmri_exp_null(ENOMEM);
	errno = 0;
	dm->dm = ibv_alloc_dm(context, &in);
	if (!dm->dm) {
		ret = errno ? errno : ENOMEM;
		free(dm);
		return ibmri_exp_null(ret);
	}
	dm->head.context = context;
	return &dm->head;
}

int ibv_exp_free_dm(struct ibv_exp_dm *dm)
{
	int ret = ibv_free_dm(((struct dm *)dm)->dm);

	if (ret)
		return errno = ret;
	free(dm);
	return 0;
}

int ibv_exp_memcpy_dm(struct ibv_exp_dm *dm, struct ibv_exp_memcpy_dm_attr *attr)
{
	struct ibv_dm *ibv = ((struct dm *)dm)->dm;

	if (attr->comp_mask >= IBV_EXP_DM_CPY_COMP_MASK_RESERVED)
		return errno = EINVAL;
	if (attr->memcpy_dir == IBV_EXP_DM_CPY_TO_DEVICE)
		return ibv_memcpy_to_dm(ibv, attr->dm_offset, attr->host_addr, attr->length);
	return ibv_memcpy_from_dm(attr->host_addr, ibv, attr->dm_offset, attr->length);
}
