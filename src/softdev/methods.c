/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The methods soft0 has, with their attributes as the kernel declares them, and the commands of the
 * write() interface. What is not here is -EPROTONOSUPPORT or -EOPNOTSUPP, as on a kernel without
 * it.
 */
#include "softdev.h"
#include "hca.h"
#include "uverbs.h"

#define ANY UINT16_MAX

/* clang-format off */

/* IN and OUT: the smallest and the largest size; _OPT may be absent. */
#define IN(i, lo, hi)	 { .id = (i), .kind = SD_ATTR_IN, .mandatory = true, .min = (lo), .max = (hi) }
#define IN_OPT(i, lo, hi) { .id = (i), .kind = SD_ATTR_IN, .min = (lo), .max = (hi) }
#define OUT(i, lo, hi)	 { .id = (i), .kind = SD_ATTR_OUT, .mandatory = true, .min = (lo), .max = (hi) }
#define OUT_OPT(i, lo, hi) { .id = (i), .kind = SD_ATTR_OUT, .min = (lo), .max = (hi) }
#define NEW(i)		 { .id = (i), .kind = SD_ATTR_NEW, .mandatory = true }
#define OBJ(i, t)	 { .id = (i), .kind = SD_ATTR_OBJ, .mandatory = true, .type = (t) }
#define OBJ_OPT(i, t)	 { .id = (i), .kind = SD_ATTR_OBJ, .type = (t) }
#define FD_OPT(i, t)	 { .id = (i), .kind = SD_ATTR_FD, .type = (t) }
#define DESTROY(i, t)	 { .id = (i), .kind = SD_ATTR_DESTROY, .mandatory = true, .type = (t) }
#define ATTRS(...)	 ((const struct sd_attr_spec[]){ __VA_ARGS__ { .kind = 0 } })
/* A constant travels as 64 bits; flags as 32 or 64. */
#define CONST(i)	 IN(i, 8, 8)
#define FLAGS_OPT(i)	 IN_OPT(i, 4, 8)

const struct sd_attr_spec sd_uhw_in = { .id = UVERBS_ATTR_UHW_IN, .kind = SD_ATTR_IN, .max = ANY };
const struct sd_attr_spec sd_uhw_out = { .id = UVERBS_ATTR_UHW_OUT,
					 .kind = SD_ATTR_OUT,
					 .max = ANY };

static const struct sd_method methods[] = {
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, NULL, true, sd_cmd_invoke_write,
	  ATTRS(IN_OPT(UVERBS_ATTR_CORE_IN, 4, ANY), OUT_OPT(UVERBS_ATTR_CORE_OUT, 0, ANY),
		CONST(UVERBS_ATTR_WRITE_CMD), ) },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, "query_port", false, sd_cmd_query_port,
	  ATTRS(CONST(UVERBS_ATTR_QUERY_PORT_PORT_NUM),
		OUT(UVERBS_ATTR_QUERY_PORT_RESP, 48, 48), ) },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, "get_context", true, sd_cmd_get_context,
	  ATTRS(OUT(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4, 4),
		OUT(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8, 8), ) },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, "query_context", false,
	  sd_cmd_query_context,
	  ATTRS(OUT_OPT(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, 4),
		OUT_OPT(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8, 8),
		OUT_OPT(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, 48, ANY), ) },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, "query_gid_table", false,
	  sd_cmd_query_gid_table,
	  ATTRS(CONST(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE),
		FLAGS_OPT(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS),
		OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0, ANY),
		OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8, 8), ) },
	{ UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, "query_gid_entry", false,
	  sd_cmd_query_gid_entry,
	  ATTRS(CONST(UVERBS_ATTR_QUERY_GID_ENTRY_PORT),
		CONST(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX),
		FLAGS_OPT(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS),
		OUT(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, 32, 32), ) },
	{ UVERBS_OBJECT_DEVICE, MLX5_IB_METHOD_QUERY_PORT, "mlx5_query_port", false,
	  sd_cmd_mlx5_query_port,
	  ATTRS(IN(MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, 4, 4),
		OUT(MLX5_IB_ATTR_QUERY_PORT, 8, ANY), ) },
	{ UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, "alloc_async_fd", false,
	  sd_cmd_async_alloc, ATTRS(NEW(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE), ) },
	{ UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, "dealloc_pd", false, sd_cmd_pd_destroy,
	  ATTRS(DESTROY(UVERBS_ATTR_DESTROY_PD_HANDLE, SD_PD), ) },
	{ UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, "query_pd", false, sd_cmd_pd_query,
	  ATTRS(OBJ(MLX5_IB_ATTR_QUERY_PD_HANDLE, SD_PD),
		OUT(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, 4, 4), ) },
	{ UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, "destroy_ah", false, sd_cmd_ah_destroy,
	  ATTRS(DESTROY(UVERBS_ATTR_DESTROY_AH_HANDLE, SD_AH), ) },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, "dereg_mr", false, sd_cmd_mr_destroy,
	  ATTRS(DESTROY(UVERBS_ATTR_DESTROY_MR_HANDLE, SD_MR), ) },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_ADVISE_MR, "advise_mr", false, sd_cmd_mr_advise,
	  ATTRS(OBJ(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, SD_PD),
		CONST(UVERBS_ATTR_ADVISE_MR_ADVICE), IN(UVERBS_ATTR_ADVISE_MR_FLAGS, 4, 8),
		IN(UVERBS_ATTR_ADVISE_MR_SGE_LIST, 16, ANY), ) },
	{ UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, "query_mr", false, sd_cmd_mr_query,
	  ATTRS(OBJ(UVERBS_ATTR_QUERY_MR_HANDLE, SD_MR), OUT(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4, 4),
		OUT(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4, 4),
		OUT(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8, 8),
		OUT_OPT(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, 8), ) },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, "create_cq", false, sd_cmd_cq_create,
	  ATTRS(NEW(UVERBS_ATTR_CREATE_CQ_HANDLE), IN(UVERBS_ATTR_CREATE_CQ_CQE, 4, 4),
		IN(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 8),
		FD_OPT(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, SD_CHANNEL),
		IN(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 4),
		FLAGS_OPT(UVERBS_ATTR_CREATE_CQ_FLAGS), OUT(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, 4),
		FD_OPT(UVERBS_ATTR_CREATE_CQ_EVENT_FD, SD_ASYNC_FD), ) },
	{ UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, "destroy_cq", false, sd_cmd_cq_destroy,
	  ATTRS(DESTROY(UVERBS_ATTR_DESTROY_CQ_HANDLE, SD_CQ),
		OUT(UVERBS_ATTR_DESTROY_CQ_RESP, 8, 8), ) },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, "create_qp", false, sd_cmd_qp_create,
	  ATTRS(NEW(UVERBS_ATTR_CREATE_QP_HANDLE),
		OBJ_OPT(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, SD_XRCD),
		OBJ_OPT(UVERBS_ATTR_CREATE_QP_PD_HANDLE, SD_PD),
		OBJ_OPT(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, SD_SRQ),
		OBJ_OPT(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, SD_CQ),
		OBJ_OPT(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, SD_CQ),
		IN(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 8),
		IN(UVERBS_ATTR_CREATE_QP_CAP, 20, 20), CONST(UVERBS_ATTR_CREATE_QP_TYPE),
		FLAGS_OPT(UVERBS_ATTR_CREATE_QP_FLAGS),
		IN_OPT(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, 4, 4),
		FD_OPT(UVERBS_ATTR_CREATE_QP_EVENT_FD, SD_ASYNC_FD),
		OUT(UVERBS_ATTR_CREATE_QP_RESP_CAP, 20, 20),
		OUT(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, 4), ) },
	{ UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, "destroy_qp", false, sd_cmd_qp_destroy,
	  ATTRS(DESTROY(UVERBS_ATTR_DESTROY_QP_HANDLE, SD_QP),
		OUT(UVERBS_ATTR_DESTROY_QP_RESP, 4, 4), ) },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, "create_srq", false, sd_cmd_srq_create,
	  ATTRS(NEW(UVERBS_ATTR_CREATE_SRQ_HANDLE), OBJ(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, SD_PD),
		OBJ_OPT(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, SD_XRCD),
		OBJ_OPT(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, SD_CQ),
		IN(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, 8),
		IN(UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, 4), IN(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, 4),
		IN(UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, 4),
		IN_OPT(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, 4, 4),
		CONST(UVERBS_ATTR_CREATE_SRQ_TYPE),
		FD_OPT(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, SD_ASYNC_FD),
		OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4, 4),
		OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4, 4),
		OUT_OPT(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4, 4), ) },
	{ UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, "destroy_srq", false, sd_cmd_srq_destroy,
	  ATTRS(DESTROY(UVERBS_ATTR_DESTROY_SRQ_HANDLE, SD_SRQ),
		OUT(UVERBS_ATTR_DESTROY_SRQ_RESP, 4, 4), ) },
	{ MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, "alloc_uar", false, sd_cmd_uar_alloc,
	  ATTRS(NEW(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE), CONST(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE),
		OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8, 8),
		OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4, 4),
		OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4, 4), ) },
	{ MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, "free_uar", false, sd_cmd_uar_destroy,
	  ATTRS(DESTROY(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, SD_UAR), ) },
	{ MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, NULL, false, sd_cmd_devx_other,
	  ATTRS(IN(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, 8, ANY),
		OUT(MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, 16, ANY), ) },
	{ MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_UAR, "devx_query_uar", false,
	  sd_cmd_devx_query_uar,
	  ATTRS(IN(MLX5_IB_ATTR_DEVX_QUERY_UAR_USER_IDX, 4, 4),
		OUT(MLX5_IB_ATTR_DEVX_QUERY_UAR_DEV_IDX, 4, 4), ) },
	{ MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, "devx_query_eqn", false,
	  sd_cmd_devx_query_eqn,
	  ATTRS(IN(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, 4, 4),
		OUT(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4, 4), ) },
	{ MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, "devx_create", false,
	  sd_cmd_devx_create,
	  ATTRS(NEW(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE),
		IN(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, 8, ANY),
		OUT(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, 16, ANY), ) },
	{ MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, "devx_destroy", false,
	  sd_cmd_devx_destroy, ATTRS(DESTROY(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, SD_DEVX), ) },
};

static const struct sd_write_method writes[] = {
	{ IB_USER_VERBS_CMD_QUERY_DEVICE, "query_device", sd_wr_query_device, 8, 176 },
	{ IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_QUERY_DEVICE, "query_device_ex",
	  sd_wr_ex_query_device, 8, 184 },
	{ IB_USER_VERBS_CMD_ALLOC_PD, "alloc_pd", sd_wr_alloc_pd, 8, 4 },
	{ IB_USER_VERBS_CMD_REG_MR, "reg_mr", sd_wr_reg_mr, 40, 12 },
	{ IB_USER_VERBS_CMD_REREG_MR, "rereg_mr", sd_wr_rereg_mr, 48, 8 },
	{ IB_USER_VERBS_CMD_CREATE_AH, "create_ah", sd_wr_create_ah, 56, 4 },
	{ IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, "create_comp_channel", sd_wr_create_comp_channel,
	  8, 4 },
	{ IB_USER_VERBS_CMD_RESIZE_CQ, "resize_cq", sd_wr_resize_cq, 16, 8 },
	{ IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_CQ, "modify_cq",
	  sd_wr_modify_cq, 16, 0 },
	{ IB_USER_VERBS_CMD_QUERY_QP, "query_qp", sd_wr_query_qp, 16, 128 },
	{ IB_USER_VERBS_CMD_MODIFY_QP, "modify_qp", sd_wr_modify_qp, 112, 0 },
	{ IB_USER_VERBS_CMD_FLAG_EXTENDED | IB_USER_VERBS_EX_CMD_MODIFY_QP, "modify_qp",
	  sd_wr_modify_qp, 112, 8 },
	{ IB_USER_VERBS_CMD_ATTACH_MCAST, "attach_mcast", sd_wr_attach_mcast, 24, 0 },
	{ IB_USER_VERBS_CMD_DETACH_MCAST, "detach_mcast", sd_wr_detach_mcast, 24, 0 },
	{ IB_USER_VERBS_CMD_MODIFY_SRQ, "modify_srq", sd_wr_modify_srq, 16, 0 },
	{ IB_USER_VERBS_CMD_QUERY_SRQ, "query_srq", sd_wr_query_srq, 16, 16 },
};

/* clang-format on */

/* Named by the commands themselves, by what they are asked. */
static const char *const more[] = { "query_hca_cap", "devx_general" };

#define NUM(a) (sizeof(a) / sizeof((a)[0]))

const struct sd_method *sd_method_find(uint16_t object, uint16_t method)
{
	size_t i;

	for (i = 0; i < NUM(methods); i++)
		if (methods[i].object == object && methods[i].method == method)
			return &methods[i];
	return NULL;
}

static int find_write(uint32_t command, const struct sd_write_method **ret)
{
	size_t i;

	for (i = 0; i < NUM(writes); i++) {
		if (writes[i].command == command) {
			*ret = &writes[i];
			return 0;
		}
	}
	if (command & IB_USER_VERBS_CMD_FLAG_EXTENDED)
		return -EOPNOTSUPP;
	return command > IB_USER_VERBS_CMD_OPEN_QP ? -EINVAL : -EOPNOTSUPP;
}

/* The write() interface by ioctl. */
int sd_cmd_invoke_write(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	const struct sd_write_method *m;
	struct sd_write w;
	uint64_t command;
	int err;

	sd_attr_get(a, UVERBS_ATTR_WRITE_CMD, &command, sizeof(command));
	err = command > UINT32_MAX ? -EINVAL : find_write((uint32_t)command, &m);
	if (err)
		return err;
	w.in = sd_attr_in(a, UVERBS_ATTR_CORE_IN, &w.in_len);
	w.uhw_in = sd_attr_in(a, UVERBS_ATTR_UHW_IN, &w.uhw_in_len);
	w.out = (void *)(uintptr_t)sd_attr_out(a, UVERBS_ATTR_CORE_OUT, &w.out_len);
	w.uhw_out = (void *)(uintptr_t)sd_attr_out(a, UVERBS_ATTR_UHW_OUT, &w.uhw_out_len);
	if (w.in_len < m->in_min || w.out_len < m->out_min)
		return -ENOSPC;
	if (!ctx->open)
		return -EINVAL;
	err = sd_config_command(m->name);
	return err ? err : m->run(ctx, &w);
}

int sd_write_out(struct sd_write *w, const void *resp, uint32_t size)
{
	return sd_user_write(w->out, resp, w->out_len < size ? w->out_len : size);
}

int sd_write_uhw(struct sd_write *w, const void *resp, uint32_t size)
{
	return sd_user_write(w->uhw_out, resp, w->uhw_out_len < size ? w->uhw_out_len : size);
}

const char *sd_method_name(size_t i)
{
	if (i < NUM(methods))
		return methods[i].name ? methods[i].name : "";
	i -= NUM(methods);
	if (i < NUM(writes))
		return writes[i].name;
	i -= NUM(writes);
	return i < NUM(more) ? more[i] : NULL;
}
