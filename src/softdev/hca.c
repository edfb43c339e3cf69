/* SPDX-License-Identifier: BSD-2-Clause */
/* The device's objects: contexts, handle tables, PDs, address handles, UAR pages. */
#include "softdev.h"
#include "raw.h"
#include "files.h"
#include "hca.h"
#include "caps.h"
#include "choices.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define HANDLES_MIN 16
#define HANDLES_MAX (1u << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sd_ctx *contexts;
static bool removed;
static uint32_t next_pdn = 1;

static __thread bool lock_is_mine __attribute__((tls_model("initial-exec")));

void sd_lock(void)
{
	pthread_mutex_lock(&lock);
	lock_is_mine = true;
}

void sd_unlock(void)
{
	lock_is_mine = false;
	pthread_mutex_unlock(&lock);
}

bool sd_lock_is_mine(void)
{
	return lock_is_mine;
}

static void in_child(void)
{
	sd_files_init();
	sd_engine_forked();
	sd_unlock();
}

/* A child gets a consistent copy of the device, with the lock free. */
__attribute__((constructor)) static void fork_safe(void)
{
	pthread_atfork(sd_lock, sd_unlock, in_child);
}

struct sd_ctx *sd_ctx_first(void)
{
	return contexts;
}

/* ---- objects ------------------------------------------------------------ */

static const char *const live[SD_TYPE_MAX] = {
	[SD_PD] = "live.pd",	 [SD_MR] = "live.mr",	[SD_DEVX] = "live.devx",
	[SD_CQ] = "live.cq",	 [SD_QP] = "live.qp",	[SD_SRQ] = "live.srq",
	[SD_AH] = "live.ah",	 [SD_UAR] = "live.uar", [SD_MW] = "live.mw",
	[SD_XRCD] = "live.xrcd",
};

static void count_live(enum sd_type type, uint64_t n)
{
	if (live[type])
		sd_count(live[type], n);
}

int sd_obj_add(struct sd_ctx *ctx, struct sd_obj *obj, enum sd_type type)
{
	uint32_t i, num;
	struct sd_obj **table;

	for (i = ctx->lowest; i < ctx->num && ctx->table[i]; i++)
		;
	if (i == ctx->num) {
		num = ctx->num ? ctx->num * 2 : HANDLES_MIN;
		if (num > HANDLES_MAX)
			return -ENOMEM;
		table = realloc(ctx->table, num * sizeof(*table));
		if (!table)
			return -ENOMEM;
		memset(table + ctx->num, 0, (num - ctx->num) * sizeof(*table));
		ctx->table = table;
		ctx->num = num;
	}
	obj->type = type;
	obj->handle = i;
	obj->ctx = ctx;
	ctx->table[i] = obj;
	ctx->lowest = i + 1;
	count_live(type, 1);
	return 0;
}

void *sd_obj_find(struct sd_ctx *ctx, enum sd_type type, uint32_t handle)
{
	struct sd_obj *obj = handle < ctx->num ? ctx->table[handle] : NULL;

	return obj && (type == SD_NONE || obj->type == type) ? obj : NULL;
}

void sd_obj_remove(struct sd_obj *obj)
{
	struct sd_ctx *ctx = obj->ctx;

	ctx->table[obj->handle] = NULL;
	if (obj->handle < ctx->lowest)
		ctx->lowest = obj->handle;
	count_live(obj->type, (uint64_t)-1);
}

static void simple_free(struct sd_obj *obj)
{
	sd_obj_remove(obj);
	free(obj);
}

/* ---- contexts --------------------------------------------------------------- */

/* Users come before what they use. */
static const struct {
	enum sd_type type;
	void (*end)(struct sd_obj *obj);
} ends[] = {
	{ SD_QP, sd_qp_free },	   { SD_SRQ, sd_srq_free }, { SD_CQ, sd_cq_free },
	{ SD_DEVX, sd_devx_free }, { SD_AH, sd_ah_free },   { SD_MR, sd_mr_free },
	{ SD_UAR, simple_free },   { SD_PD, simple_free },
};

static void end_objects(struct sd_ctx *ctx)
{
	size_t e;
	uint32_t i;

	for (e = 0; e < sizeof(ends) / sizeof(ends[0]); e++)
		for (i = 0; i < ctx->num; i++)
			if (ctx->table[i] && ctx->table[i]->type == ends[e].type)
				ends[e].end(ctx->table[i]);
}

void sd_device_remove(void)
{
	struct sd_ctx *ctx;

	removed = true;
	for (ctx = contexts; ctx; ctx = ctx->next) {
		end_objects(ctx);
		ctx->dead = true;
		sd_event_device(ctx, IBV_EVENT_DEVICE_FATAL);
	}
}

void sd_device_return(void)
{
	removed = false;
}

static void ctx_end(void *arg)
{
	struct sd_ctx *ctx = arg, **p;

	end_objects(ctx);
	sd_channels_end(ctx);
	for (p = &contexts; *p != ctx; p = &(*p)->next)
		;
	*p = ctx->next;
	if (ctx->open)
		sd_count("live.context", (uint64_t)-1);
	free(ctx->table);
	free(ctx);
}

/* The descriptor is one of /dev/null, whose device numbers the sysfs tree gives. */
int sd_device_open(int flags)
{
	struct sd_ctx *ctx;
	int fd, err;

	if ((flags & O_ACCMODE) != O_RDWR)
		return -EACCES;
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return -ENOMEM;
	fd = (int)sd_raw(SYS_openat, AT_FDCWD, "/dev/null",
			 flags & (O_RDWR | O_CLOEXEC | O_NONBLOCK), 0);
	if (fd < 0) {
		free(ctx);
		return fd;
	}
	sd_lock();
	err = removed ? -ENXIO : sd_file_add(fd, SD_NONE, ctx, ctx_end, NULL);
	if (!err) {
		ctx->next = contexts;
		contexts = ctx;
	}
	sd_unlock();
	if (err) {
		sd_raw_close(fd);
		free(ctx);
		return err;
	}
	return fd;
}

int sd_cmd_get_context(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	struct mlx5_ib_alloc_ucontext_req_v2 req;
	int err;

	if (ctx->open)
		return -EINVAL;
	sd_attr_get(a, UVERBS_ATTR_UHW_IN, &req, sizeof(req));
	if (req.flags & ~MLX5_IB_ALLOC_UCTX_DEVX)
		return -EINVAL;
	if (req.comp_mask || req.reserved0 || req.reserved1 || req.reserved2)
		return -EOPNOTSUPP;
	if ((req.flags & MLX5_IB_ALLOC_UCTX_DEVX) && !sd_config.devx)
		return -EINVAL;
	if (!(req.lib_caps & MLX5_LIB_CAP_DYN_UAR))
		return -EOPNOTSUPP; /* UAR pages are given out by the UAR object only */
	ctx->devx = req.flags & MLX5_IB_ALLOC_UCTX_DEVX;
	err = sd_caps_context(a, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS,
			      UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, UVERBS_ATTR_UHW_OUT);
	if (err)
		return err;
	ctx->open = true;
	sd_count("live.context", 1);
	return 0;
}

int sd_cmd_query_context(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	return sd_caps_context(a, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS,
			       UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT,
			       MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX);
}

/* ---- protection domains --------------------------------------------------------- */

int sd_wr_alloc_pd(struct sd_ctx *ctx, struct sd_write *w)
{
	struct ib_uverbs_alloc_pd_resp resp = { 0 };
	struct mlx5_ib_alloc_pd_resp uhw = { 0 };
	struct sd_pd *pd = calloc(1, sizeof(*pd));
	int err;

	if (!pd)
		return -ENOMEM;
	pd->pdn = next_pdn++ & 0xffffff;
	err = sd_obj_add(ctx, &pd->obj, SD_PD);
	if (err) {
		free(pd);
		return err;
	}
	resp.pd_handle = pd->obj.handle;
	uhw.pdn = pd->pdn;
	err = sd_write_uhw(w, &uhw, sizeof(uhw));
	if (!err)
		err = sd_write_out(w, &resp, sizeof(resp));
	if (err)
		simple_free(&pd->obj);
	return err;
}

bool sd_pd_exists(struct sd_ctx *ctx, uint32_t pdn)
{
	uint32_t i;

	for (i = 0; i < ctx->num; i++)
		if (ctx->table[i] && ctx->table[i]->type == SD_PD &&
		    ((struct sd_pd *)ctx->table[i])->pdn == pdn)
			return true;
	return false;
}

int sd_cmd_pd_destroy(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	struct sd_pd *pd = sd_attr_obj(a, UVERBS_ATTR_DESTROY_PD_HANDLE);

	if (sd_devx_uses_pd(ctx, pd->pdn))
		return -SD_CHOICE_PD_WITH_KEYS_ERRNO;
	simple_free(&pd->obj);
	return 0;
}

int sd_cmd_pd_query(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	const struct sd_pd *pd = sd_attr_obj(a, MLX5_IB_ATTR_QUERY_PD_HANDLE);

	return sd_attr_put(a, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, &pd->pdn, sizeof(pd->pdn));
}

/* ---- address handles: the process builds its own; the kernel's only checks ------------- */

struct ah {
	struct sd_obj obj;
	struct sd_pd *pd;
};

void sd_ah_free(struct sd_obj *obj)
{
	((struct ah *)obj)->pd->obj.users--;
	simple_free(obj);
}

int sd_wr_create_ah(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_create_ah *req = w->in;
	struct ib_uverbs_create_ah_resp resp = { 0 };
	struct ah *ah;
	int err;

	if (req->attr.port_num != SD_PORT)
		return -EINVAL;
	if (req->attr.is_global && req->attr.grh.sgid_index >= SD_GID_TABLE_LEN)
		return -EINVAL;
	if (req->attr.is_global && req->attr.grh.sgid_index)
		return -ENODATA; /* an empty entry */
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return -ENOMEM;
	ah->pd = sd_obj_find(ctx, SD_PD, req->pd_handle);
	err = ah->pd ? sd_obj_add(ctx, &ah->obj, SD_AH) : -EINVAL;
	if (err) {
		free(ah);
		return err;
	}
	ah->pd->obj.users++;
	resp.ah_handle = ah->obj.handle;
	err = sd_write_out(w, &resp, sizeof(resp));
	if (err)
		sd_ah_free(&ah->obj);
	return err;
}

int sd_cmd_ah_destroy(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	sd_ah_free(sd_attr_obj(a, UVERBS_ATTR_DESTROY_AH_HANDLE));
	return 0;
}

/* ---- UAR pages: writes to them are not looked at, see engine.c ------------------------------ */

#define UAR_SHIFT     12
#define UAR_CMD_SHIFT 20
#define UAR_CMD_BF    2 /* of a mmap offset: bits 20 and up say what is mapped, 12 to 19 which */
#define UAR_TYPE_BF   0
#define UAR_TYPE_NC   1

struct uar {
	struct sd_obj obj;
	uint32_t page_id;
};

static uint64_t uar_offset(const struct uar *uar)
{
	/* the index is split as the kernel does: 8 bits below the command, the rest above its 8 */
	uint64_t index = uar->page_id;

	return (index & 0xff) << UAR_SHIFT | (uint64_t)UAR_CMD_BF << UAR_CMD_SHIFT |
	       (index >> 8) << (UAR_CMD_SHIFT + 8);
}

int sd_cmd_uar_alloc(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	static uint32_t next_page = 1;
	struct uar *uar;
	uint64_t type, offset;
	uint32_t length = 1u << UAR_SHIFT;
	int err;

	sd_attr_get(a, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, &type, sizeof(type));
	if (type != UAR_TYPE_BF && type != UAR_TYPE_NC)
		return -EINVAL;
	uar = calloc(1, sizeof(*uar));
	if (!uar)
		return -ENOMEM;
	uar->page_id = next_page++ & 0xffff;
	offset = uar_offset(uar);
	err = sd_obj_add(ctx, &uar->obj, SD_UAR);
	if (err) {
		free(uar);
		return err;
	}
	err = sd_attr_put(a, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof(offset));
	if (!err)
		err = sd_attr_put(a, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length,
				  sizeof(length));
	if (!err)
		err = sd_attr_put(a, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &uar->page_id,
				  sizeof(uar->page_id));
	if (!err)
		err = sd_attr_put_handle(a, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, uar->obj.handle);
	if (err)
		simple_free(&uar->obj);
	return err;
}

int sd_cmd_uar_destroy(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	simple_free(sd_attr_obj(a, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE));
	return 0;
}

static bool offset_is_uar(const struct sd_ctx *ctx, off_t offset)
{
	uint32_t i;

	for (i = 0; i < ctx->num; i++)
		if (ctx->table[i] && ctx->table[i]->type == SD_UAR &&
		    uar_offset((struct uar *)ctx->table[i]) == (uint64_t)offset)
			return true;
	return false;
}

long sd_device_mmap(int fd, void *va, size_t bytes, int prot, int flags, off_t offset,
		    void **ret_va)
{
	struct sd_ctx *ctx;
	long ret;

	sd_lock();
	ctx = sd_file_obj(fd, SD_NONE);
	ret = !ctx || !ctx->open || !offset_is_uar(ctx, offset) ? -EINVAL : 0;
	sd_unlock();
	if (ret || bytes != 1u << UAR_SHIFT || !(flags & MAP_SHARED))
		return -EINVAL;
	if (prot & PROT_EXEC)
		return -EPERM;
	flags &= ~(MAP_SHARED | MAP_SHARED_VALIDATE);
	ret = sd_raw(SYS_mmap, va, bytes, prot, flags | MAP_PRIVATE | MAP_ANONYMOUS, -1L, 0L);
	if (ret < 0 && ret > -4096)
		return ret;
	*ret_va = (void *)ret;
	sd_raw_madvise(*ret_va, bytes, MADV_DONTFORK); /* as a device's pages */
	return 0;
}
