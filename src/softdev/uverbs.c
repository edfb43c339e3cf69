/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One ioctl: header and attributes are copied in, checked against the method's specification as the
 * kernel checks them, and the method's command runs with the lock held.
 */
#include "softdev.h"
#include "raw.h"
#include "files.h"
#include "hca.h"
#include "uverbs.h"

#include <rdma/rdma_user_ioctl.h>
#include <stdlib.h>
#include <string.h>

#define ATTRS_MAX   32
#define LENGTH_MAX  4096 /* of header and attributes: the kernel's page */
#define ATTRS_ROOM  (LENGTH_MAX / sizeof(struct ib_uverbs_attr))
#define INLINE_SIZE sizeof(uint64_t)
#define COPIES_SIZE 1024 /* inputs up to this, of one command together, need no allocation */

struct attr {
	uint16_t id, len;
	const struct sd_attr_spec *spec;
	uint64_t data; /* as given: inline input, address, handle or fd */
	void *copy;    /* of an input: at inl, in the command's copies, or allocated */
	bool allocated;
	uint64_t inl;
	struct sd_obj *obj;
	struct ib_uverbs_attr *user; /* where a new handle is returned */
};

struct sd_attrs {
	unsigned int num;
	size_t used; /* of copies */
	struct attr at[ATTRS_MAX];
	_Alignas(16) uint8_t copies[COPIES_SIZE];
};

static const struct attr *find(const struct sd_attrs *a, uint16_t id)
{
	unsigned int i;

	for (i = 0; i < a->num; i++)
		if (a->at[i].id == id)
			return &a->at[i];
	return NULL;
}

const void *sd_attr_in(const struct sd_attrs *a, uint16_t id, uint32_t *ret_len)
{
	const struct attr *at = find(a, id);

	if (ret_len)
		*ret_len = at ? at->len : 0;
	return at ? at->copy : NULL;
}

bool sd_attr_get(const struct sd_attrs *a, uint16_t id, void *dst, uint32_t size)
{
	const struct attr *at = find(a, id);

	memset(dst, 0, size);
	if (!at)
		return false;
	memcpy(dst, at->copy, at->len < size ? at->len : size);
	return true;
}

void *sd_attr_obj(const struct sd_attrs *a, uint16_t id)
{
	const struct attr *at = find(a, id);

	return at ? at->obj : NULL;
}

int sd_attr_put(const struct sd_attrs *a, uint16_t id, const void *src, uint32_t size)
{
	const struct attr *at = find(a, id);

	if (!at)
		return 0;
	return sd_user_write((void *)(uintptr_t)at->data, src, at->len < size ? at->len : size);
}

int sd_attr_put_handle(const struct sd_attrs *a, uint16_t id, uint32_t handle)
{
	const struct attr *at = find(a, id);
	uint64_t data = handle;

	if (!at)
		return 0;
	return sd_user_write(&at->user->data, &data, sizeof(data));
}

uint64_t sd_attr_out(const struct sd_attrs *a, uint16_t id, uint32_t *ret_len)
{
	const struct attr *at = find(a, id);

	*ret_len = at ? at->len : 0;
	return at ? at->data : 0;
}

/* ---- checks, in the kernel's order ------------------------------------------ */

static bool is_zero(const uint8_t *p, size_t size)
{
	while (size && !*p) {
		p++;
		size--;
	}
	return size == 0;
}

static void *room_for(struct sd_attrs *a, struct attr *at, size_t size)
{
	size_t used = a->used, step = (size + 15) & ~(size_t)15;

	if (step > sizeof(a->copies) - used) {
		at->copy = malloc(size);
		at->allocated = at->copy;
		return at->copy;
	}
	a->used += step;
	at->copy = a->copies + used;
	return at->copy;
}

static int check_input(struct sd_attrs *a, struct attr *at, const struct ib_uverbs_attr *u)
{
	const struct sd_attr_spec *s = at->spec;
	int err;

	if (u->attr_data.reserved)
		return -EINVAL;
	if (u->len <= INLINE_SIZE) {
		at->copy = &at->inl;
		at->inl = u->data;
	} else {
		if (!room_for(a, at, u->len))
			return -ENOMEM;
		err = sd_user_read(at->copy, (void *)(uintptr_t)u->data, u->len);
		if (err)
			return err;
	}
	if (u->len > s->max && !is_zero((uint8_t *)at->copy + s->max, u->len - s->max))
		return -EOPNOTSUPP;
	return 0;
}

static int check_handle(struct sd_ctx *ctx, struct attr *at, const struct ib_uverbs_attr *u)
{
	const struct sd_attr_spec *s = at->spec;

	if (u->attr_data.reserved || u->len)
		return -EINVAL;
	if (s->kind == SD_ATTR_FD) {
		struct sd_channel *ch;

		if (u->data > INT32_MAX)
			return -EINVAL;
		ch = sd_file_obj((int)u->data, s->type);
		if (!ch || sd_channel_obj(ch)->ctx != ctx)
			return -EBADF;
		at->obj = (struct sd_obj *)ch;
		return 0;
	}
	at->obj = u->data > UINT32_MAX ? NULL
				       : sd_obj_find(ctx, SD_NONE /* any */, (uint32_t)u->data);
	if (!at->obj)
		return -ENOENT;
	if (at->obj->type != s->type)
		return -EINVAL;
	return 0;
}

static int check_attr(struct sd_ctx *ctx, struct sd_attrs *a, struct attr *at,
		      const struct ib_uverbs_attr *u)
{
	const struct sd_attr_spec *s = at->spec;

	switch (s->kind) {
	case SD_ATTR_IN:
	case SD_ATTR_OUT:
		if (u->len < s->min || (u->len > s->max && !s->zero_trailing))
			return -EINVAL;
		return s->kind == SD_ATTR_IN ? check_input(a, at, u) : 0;
	case SD_ATTR_NEW:
		return u->attr_data.reserved || u->len ? -EINVAL : 0;
	case SD_ATTR_OBJ:
	case SD_ATTR_FD:
	case SD_ATTR_DESTROY:
		if (!ctx)
			return -EINVAL;
		return check_handle(ctx, at, u);
	}
	return -EINVAL;
}

static const struct sd_attr_spec *spec_of(const struct sd_method *m, uint16_t id)
{
	const struct sd_attr_spec *s;

	for (s = m->attrs; s->kind; s++)
		if (s->id == id)
			return s;
	return id == UVERBS_ATTR_UHW_IN	   ? &sd_uhw_in
	       : id == UVERBS_ATTR_UHW_OUT ? &sd_uhw_out
					   : NULL;
}

static int parse(struct sd_ctx *ctx, const struct sd_method *m, struct sd_attrs *a,
		 const struct ib_uverbs_attr *in, struct ib_uverbs_attr *user, unsigned int num)
{
	const struct sd_attr_spec *s;
	unsigned int i;
	int err;

	for (i = 0; i < num; i++) {
		struct attr *at;

		s = spec_of(m, in[i].attr_id);
		if (!s) {
			if (in[i].flags & UVERBS_ATTR_F_MANDATORY)
				return -EPROTONOSUPPORT;
			continue;
		}
		if (find(a, in[i].attr_id) || a->num == ATTRS_MAX)
			return -EINVAL;
		at = &a->at[a->num++];
		*at = (struct attr){ .id = in[i].attr_id,
				     .len = in[i].len,
				     .spec = s,
				     .data = in[i].data,
				     .user = &user[i] };
		err = check_attr(ctx, a, at, &in[i]);
		if (err)
			return err;
	}
	for (s = m->attrs; s->kind; s++)
		if (s->mandatory && !find(a, s->id))
			return -EINVAL;
	return 0;
}

static void release(struct sd_attrs *a)
{
	unsigned int i;

	for (i = 0; i < a->num; i++)
		if (a->at[i].allocated)
			free(a->at[i].copy);
}

static bool destroy_is_busy(const struct sd_attrs *a)
{
	unsigned int i;

	for (i = 0; i < a->num; i++)
		if (a->at[i].spec->kind == SD_ATTR_DESTROY && a->at[i].obj->users)
			return true;
	return false;
}

static int run(struct sd_ctx *ctx, const struct ib_uverbs_ioctl_hdr *hdr,
	       const struct ib_uverbs_attr *in, struct ib_uverbs_attr *user)
{
	const struct sd_method *m = sd_method_find(hdr->object_id, hdr->method_id);
	struct sd_attrs a;
	int err;

	if (!m)
		return -EPROTONOSUPPORT;
	a.num = 0;
	a.used = 0;
	err = parse(ctx->open ? ctx : NULL, m, &a, in, user, hdr->num_attrs);
	if (!err && !ctx->open && !m->without_context)
		err = -EINVAL;
	if (!err && destroy_is_busy(&a))
		err = -EBUSY;
	if (!err && m->name)
		err = sd_config_command(m->name);
	if (!err)
		err = m->run(ctx, &a);
	release(&a);
	return err;
}

long sd_ioctl(int fd, unsigned long request, void *arg)
{
	struct ib_uverbs_ioctl_hdr hdr;
	struct ib_uverbs_attr in[ATTRS_ROOM], *user;
	struct sd_ctx *ctx;
	int err;

	if (request != RDMA_VERBS_IOCTL)
		return -ENOTTY;
	err = sd_user_read(&hdr, arg, sizeof(hdr));
	if (err)
		return err;
	if (hdr.length > LENGTH_MAX || hdr.length != sizeof(hdr) + hdr.num_attrs * sizeof(*in))
		return -EINVAL;
	if (hdr.reserved1 || hdr.reserved2)
		return -EPROTONOSUPPORT;
	if (hdr.driver_id != SD_DRIVER_ID)
		return -EINVAL;
	user = (struct ib_uverbs_attr *)((struct ib_uverbs_ioctl_hdr *)arg + 1);
	err = sd_user_read(in, user, hdr.num_attrs * sizeof(*in));
	if (err)
		return err;
	sd_lock();
	ctx = sd_file_obj(fd, SD_NONE);
	err = !ctx ? -EBADF : ctx->dead ? -EIO : run(ctx, &hdr, in, user);
	sd_unlock();
	return err;
}
