/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PRM commands that a process sends by DEVX: capability queries, and indirect keys. Any other
 * command is answered as firmware answers one that it does not have.
 */
#include "softdev.h"
#include "hca.h"
#include "caps.h"
#include "prm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct devx {
	struct sd_obj obj;
	struct sd_mkey *mkey;
};

void sd_devx_free(struct sd_obj *obj)
{
	sd_mkey_free(((struct devx *)obj)->mkey);
	sd_obj_remove(obj);
	free(obj);
}

bool sd_devx_uses_pd(const struct sd_ctx *ctx, uint32_t pdn)
{
	uint32_t i;

	for (i = 0; i < ctx->num; i++)
		if (ctx->table[i] && ctx->table[i]->type == SD_DEVX &&
		    ((struct devx *)ctx->table[i])->mkey->pdn == pdn)
			return true;
	return false;
}

static int check_devx(const struct sd_ctx *ctx)
{
	return ctx->devx && sd_config.devx ? 0 : -EOPNOTSUPP;
}

/* A status that is not OK comes back in the output, which the process gets in any case. */
static int answer(const struct sd_attrs *a, uint16_t id, const uint8_t *out, uint32_t len, int err)
{
	int put = sd_attr_put(a, id, out, len);

	return err ? err : put;
}

static int query_hca_cap(const struct sd_attrs *a, const uint8_t *in, uint32_t out_len)
{
	uint8_t out[SD_PRM_OUT_HDR + SD_HCA_CAP_SIZE] = { 0 };
	int err = 0;

	if (out_len > sizeof(out) || sd_caps_hca(sd_prm_op_mod(in), out + SD_PRM_OUT_HDR))
		err = sd_prm_fail(out, SD_PRM_BAD_PARAM);
	return answer(a, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, sizeof(out), err);
}

int sd_cmd_devx_other(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	uint32_t in_len, out_len;
	const uint8_t *in = sd_attr_in(a, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, &in_len);
	uint8_t out[SD_PRM_OUT_HDR] = { 0 };
	bool cap = sd_prm_opcode(in) == SD_PRM_QUERY_HCA_CAP;
	int err = check_devx(ctx);

	sd_attr_out(a, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, &out_len);
	if (!err)
		err = sd_config_command(cap ? "query_hca_cap" : "devx_general");
	if (err)
		return err;
	if (cap && in_len >= SD_PRM_IN_HDR)
		return query_hca_cap(a, in, out_len);
	if (!sd_prm_is_general(sd_prm_opcode(in)))
		return -EINVAL; /* the kernel lets through only what makes no object */
	return answer(a, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, sizeof(out),
		      sd_prm_fail(out, SD_PRM_BAD_OP));
}

int sd_cmd_devx_create(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	uint32_t in_len;
	const uint8_t *in = sd_attr_in(a, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, &in_len);
	uint8_t out[SD_PRM_OUT_HDR] = { 0 };
	struct devx *d;
	int err = check_devx(ctx);

	if (err)
		return err;
	if (!sd_prm_is_create(sd_prm_opcode(in)))
		return -EINVAL;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	if (sd_prm_opcode(in) == SD_PRM_CREATE_MKEY)
		err = sd_devx_create_mkey(ctx, in, in_len, out, sizeof(out), &d->mkey);
	else
		err = sd_prm_fail(out, SD_PRM_BAD_OP);
	err = answer(a, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, sizeof(out), err);
	if (err)
		goto free_mkey;
	err = sd_obj_add(ctx, &d->obj, SD_DEVX);
	if (err)
		goto free_mkey;
	err = sd_attr_put_handle(a, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, d->obj.handle);
	if (err)
		sd_devx_free(&d->obj);
	return err;

free_mkey:
	if (d->mkey)
		sd_mkey_free(d->mkey);
	free(d);
	return err;
}

int sd_cmd_devx_destroy(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	sd_devx_free(sd_attr_obj(a, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE));
	return 0;
}

int sd_cmd_devx_query_uar(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	uint32_t index;

	if (check_devx(ctx))
		return -EOPNOTSUPP;
	sd_attr_get(a, MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, &index, sizeof(index));
	return -EINVAL; /* the static pages of a context, of which there are none */
}

int sd_cmd_devx_query_eqn(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	const uint32_t eqn = 1;
	uint32_t vector;

	if (check_devx(ctx))
		return -EOPNOTSUPP;
	sd_attr_get(a, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, &vector, sizeof(vector));
	if (vector >= SD_COMP_VECTORS)
		return -EINVAL;
	return sd_attr_put(a, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, &eqn, sizeof(eqn));
}
