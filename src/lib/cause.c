/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a registration failed: the cause, not the errno. */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CALL "ibv_reg_mr"

/* Bytes pinned by the process: the kernel's count, or ours where the device is not the kernel's. */
static uint64_t pinned_bytes(const struct ibmr_ctx *ctx, const struct ibmr_memlock *m)
{
	uint64_t ours = ctx->locked_bytes;

	return m->pinned > 0 && (uint64_t)m->pinned > ours ? (uint64_t)m->pinned : ours;
}

static const char *limit_text(uint64_t limit, char *buf, size_t size)
{
	if (limit == IBMR_NO_LIMIT)
		snprintf(buf, size, "unlimited");
	else
		snprintf(buf, size, "%" PRIu64, limit);
	return buf;
}

/* The locked-memory limit; 0 when it cannot be the reason. */
static int memlock(struct ibmr_ctx *ctx, const char *what, uint64_t need, int err_no,
		   struct ibmr_err *err)
{
	struct ibmr_memlock m;
	uint64_t pinned;
	char soft[24], hard[24];
	int ret;

	ibmr_memlock_query(&m);
	pinned = pinned_bytes(ctx, &m);
	if (m.soft == IBMR_NO_LIMIT || (need <= m.soft && pinned <= m.soft - need))
		return 0;
	ret = ibmri_failed(err, IBMR_E_MEMLOCK, CALL, err_no,
			   "locking %" PRIu64 " bytes in whole pages for %s on top of %" PRIu64
			   " already locked passes the limit RLIMIT_MEMLOCK (soft %s, hard %s)",
			   need, what, pinned, limit_text(m.soft, soft, sizeof(soft)),
			   limit_text(m.hard, hard, sizeof(hard)));
	ibmri_err_cause(err, "rlimit_memlock");
	if (m.ipc_lock != 1) {
		ibmri_err_more(err, "; CAP_IPC_LOCK is not effective");
	} else if (m.first_namespace == 0) {
		ibmri_err_more(err, "; CAP_IPC_LOCK is effective in a user namespace only, where "
				    "it does not count");
	} else {
		ibmri_err_more(err, "; CAP_IPC_LOCK is effective, which should have sufficed");
		ibmri_err_suspect(err, "rlimit_memlock");
	}
	ibmri_err_hint(err, "raise it: ulimit -l, LimitMEMLOCK= of the service, or the container's "
			    "memlock ulimit; or register with on_demand");
	return ret;
}

/* Whether the process has as many mappings as it may. A registration may split two of them. */
static bool mappings_used_up(int64_t *ret_have, long long *ret_most)
{
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");

	if (!f)
		return false;
	if (fscanf(f, "%lld", ret_most) != 1)
		*ret_most = 0;
	fclose(f);
	*ret_have = ibmri_pages_map_count();
	return *ret_most > 0 && *ret_have >= 0 && *ret_have + 2 >= *ret_most;
}

/* The number of mappings; 0 when it cannot be the reason. */
static int map_count(const char *call, const char *what, int err_no, struct ibmr_err *err)
{
	long long most;
	int64_t have;
	int ret;

	if (!mappings_used_up(&have, &most))
		return 0;
	ret = ibmri_failed(err, IBMR_E_NO_MEMORY, call, err_no,
			   "%s: the process has %" PRId64
			   " memory mappings and vm.max_map_count allows %lld",
			   what, have, most);
	ibmri_err_cause(err, "map_count");
	ibmri_err_hint(err, "raise it: sysctl vm.max_map_count");
	return ret;
}

const char *ibmr_memory_cause(void)
{
	long long most;
	int64_t have;

	return mappings_used_up(&have, &most) ? "map_count" : NULL;
}

int ibmri_err_no_memory(struct ibmr_err *err, const char *origin, uint64_t bytes)
{
	char what[64];
	int ret;

	snprintf(what, sizeof(what), "%" PRIu64 " byte%s", bytes, ibmri_plural(bytes));
	ret = map_count(origin, what, ENOMEM, err);
	return ret ? ret
		   : ibmri_failed(err, IBMR_E_NO_MEMORY, origin, ENOMEM, "out of memory for %s",
				  what);
}

int ibmri_map_failed(const char *what, uint64_t length, int err_no, struct ibmr_err *err)
{
	bool memory = err_no == ENOMEM || err_no == EAGAIN;
	int ret = err_no == ENOMEM ? map_count("mmap", what, err_no, err) : 0;

	if (ret)
		return ret;
	return ibmri_failed(err, memory ? IBMR_E_NO_MEMORY : IBMR_E_IO, "mmap", err_no,
			    "%" PRIu64 " bytes cannot be mapped for %s: %s", length, what,
			    strerror(err_no));
}

static int out_of_memory(struct ibmr_ctx *ctx, const char *what, uint64_t need, int err_no,
			 struct ibmr_err *err)
{
	int ret = need ? memlock(ctx, what, need, err_no, err) : 0;

	if (!ret)
		ret = map_count(CALL, what, err_no, err);
	if (ret)
		return ret;
	ret = ibmri_failed(err, IBMR_E_NO_MEMORY, CALL, err_no,
			   "the kernel is out of memory for %s, or perhaps the device out of keys; "
			   "the locked-memory limit allows it",
			   what);
	ibmri_err_suspect(err, "device_keys");
	ibmri_err_hint(err, "free -m shows memory, rdma resource show mr who holds keys");
	return ret;
}

static int no_keys(const struct ibmr_ctx *ctx, const char *what, int err_no, struct ibmr_err *err)
{
	int ret = ibmri_failed(err, IBMR_E_KEY_TABLE, CALL, err_no,
			       "device %s has no memory key left for %s", ctx->caps.name, what);

	ibmri_err_suspect(err, "device_keys");
	ibmri_err_hint(err, "see who holds them: rdma resource show mr");
	return ret;
}

/* A limit of 0 without the capability is EPERM and not ENOMEM; else a filter of system calls may be
 * the reason, if there is one. */
static int not_permitted(struct ibmr_ctx *ctx, const char *what, uint64_t need, int err_no,
			 struct ibmr_err *err)
{
	int ret = need ? memlock(ctx, what, need, err_no, err) : 0;

	if (ret)
		return ret;
	ret = ibmri_failed(err, IBMR_E_NO_PERMISSION, CALL, err_no,
			   "the system does not let %s be registered: %s", what, strerror(err_no));
	if (ibmri_seccomp_filters())
		ibmri_err_suspect(err, "seccomp");
	return ret;
}

static int bad_address(const char *what, uint64_t addr, uint64_t length, uint64_t access,
		       int err_no, struct ibmr_err *err)
{
	const uint64_t writes =
		IBMR_ACCESS_LOCAL_WRITE | IBMR_ACCESS_REMOTE_WRITE | IBMR_ACCESS_REMOTE_ATOMIC;
	struct ibmri_bad_page bad;
	uint64_t offset;
	int ret;

	if (ibmri_pages_first_bad(addr, length, access & writes, &bad) != 1) {
		ret = ibmri_failed(err, IBMR_E_BAD_ADDRESS, CALL, err_no,
				   "the memory of %s is mapped, and yet the kernel cannot pin it",
				   what);
		ibmri_err_cause(err, "not_pinnable");
		return ret;
	}
	offset = bad.addr > addr ? bad.addr - addr : 0;
	if (!bad.mapped) {
		ret = ibmri_failed(err, IBMR_E_BAD_ADDRESS, CALL, err_no,
				   "the page at 0x%" PRIx64 " (offset %" PRIu64
				   " of %s) is not mapped",
				   bad.addr, offset, what);
		ibmri_err_cause(err, "unmapped");
	} else {
		ret = ibmri_failed(err, IBMR_E_BAD_ADDRESS, CALL, err_no,
				   "the page at 0x%" PRIx64 " (offset %" PRIu64
				   " of %s) is mapped %s, which does not allow %s",
				   bad.addr, offset, what, bad.perms,
				   bad.perms[0] == 'r' ? "writing" : "reading");
		ibmri_err_cause(err, bad.perms[0] == 'r' ? "read_only" : "no_access");
	}
	return ret;
}

/* libibverbs keeps registered pages out of a child's memory, and the kernel splits no huge page for it;
 * 0 when that cannot be the reason. */
static int fork_protection(const char *what, uint64_t addr, uint64_t length, int err_no,
			   struct ibmr_err *err)
{
	uint64_t page = ibmri_pages_size_at(addr);
	int ret;

	if (ibv_is_fork_initialized() != IBV_FORK_ENABLED || page <= ibmri_page_size() ||
	    !(addr % page || length % page))
		return 0;
	ret = ibmri_failed(err, IBMR_E_UNSUPPORTED, CALL, err_no,
			   "fork protection is on, and cannot protect part of a huge page: %s has "
			   "%" PRIu64 " bytes in pages of %" PRIu64,
			   what, length, page);
	ibmri_err_cause(err, "hugepage_fork");
	ibmri_err_hint(err, "register whole huge pages, or leave RDMAV_FORK_SAFE and "
			    "IBV_FORK_SAFE out of the environment");
	return ret;
}

/* A flag that the device refuses: the one without which the same registration works. */
static int refused_flag(struct ibmr_ctx *ctx, const char *what, void *addr, uint64_t length,
			uint64_t access, int err_no, struct ibmr_err *err)
{
	static const uint64_t optional[] = { IBMR_ACCESS_RELAXED_ORDERING, IBMR_ACCESS_HUGETLB,
					     IBMR_ACCESS_ON_DEMAND, IBMR_ACCESS_MW_BIND,
					     IBMR_ACCESS_REMOTE_ATOMIC };
	struct ibv_mr *mr;
	size_t i;
	int ret;

	for (i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		uint64_t less = access & ~optional[i];

		if (!(access & optional[i]))
			continue;
		if (optional[i] == IBMR_ACCESS_ON_DEMAND)
			less &= ~(uint64_t)IBMR_ACCESS_HUGETLB;
		mr = ibv_reg_mr(ctx->pd, addr, length, (int)less);
		if (!mr)
			continue;
		/* one that cannot be taken back is left to the kernel, at close */
		(void)ibv_dereg_mr(mr);
		ret = ibmri_failed(err,
				   ibmri_code_of(err_no) == IBMR_E_UNSUPPORTED ? IBMR_E_UNSUPPORTED
									       : IBMR_E_ACCESS,
				   CALL, err_no,
				   "device %s refuses %s for %s; without it the same works",
				   ctx->caps.name, ibmr_access_name(optional[i]), what);
		ibmri_err_cause(err, ibmr_access_name(optional[i]));
		ibmri_err_hint(err, "leave %s out", ibmr_access_name(optional[i]));
		return ret;
	}
	return ibmri_failed(err, ibmri_code_of(err_no), CALL, err_no,
			    "device %s refuses to register %s: %s", ctx->caps.name, what,
			    strerror(err_no));
}

int ibmri_reg_failed(struct ibmr_ctx *ctx, const char *what, void *addr, uint64_t length,
		     uint64_t access, int err_no, struct ibmr_err *err)
{
	bool pinned = !(access & IBMR_ACCESS_ON_DEMAND);
	uint64_t need = pinned ? ibmri_page_span((uintptr_t)addr, length) : 0;
	int ret;

	switch (err_no) {
	case ENOMEM:
		return out_of_memory(ctx, what, need, err_no, err);
	case EPERM:
		return not_permitted(ctx, what, need, err_no, err);
	case EFAULT:
		return bad_address(what, (uintptr_t)addr, length, access, err_no, err);
	case EAGAIN:
	case ENOSPC:
		return no_keys(ctx, what, err_no, err);
	case EINVAL:
		ret = pinned ? fork_protection(what, (uintptr_t)addr, length, err_no, err) : 0;
		if (ret)
			return ret;
		/* fall through */
	case EOPNOTSUPP:
		return refused_flag(ctx, what, addr, length, access, err_no, err);
	}
	return ibmri_failed(err, ibmri_code_of(err_no), CALL, err_no, "%s cannot be registered: %s",
			    what, strerror(err_no));
}
