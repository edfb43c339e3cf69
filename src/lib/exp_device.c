/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions to a device, and the calls by name. */
#include "exp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define AVAILABLE                                                                                 \
	((uint32_t)(IBV_EXP_DEVICE_ATTR_WITH_TIMESTAMP_MASK |                                     \
		    IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK | IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS | \
		    IBV_EXP_DEVICE_ATTR_ODP | IBV_EXP_DEVICE_ATTR_ODP_MAX_SIZE |                  \
		    IBV_EXP_DEVICE_ATTR_MAX_DM_SIZE) |                                            \
	 (uint32_t)IBV_EXP_DEVICE_ATTR_COMP_MASK_2)

/* The device's indirect keys: a PD is needed to ask, and given back. */
static int ask_umr(struct ibv_context *context, struct ibmr_caps *caps)
{
	struct ibmr_ctx_opts opts = { .gid_index = -1 };
	struct ibmr_ctx *ctx;
	struct ibmr_err err;
	struct ibv_pd *pd;
	int ret, left;

	errno = 0;
	pd = ibv_alloc_pd(context);
	if (!pd)
		return errno ? errno : ENOMEM;
	ret = ibmr_ctx_from_pd(pd, &opts, &ctx, &err);
	if (!ret) {
		ret = ibmr_ctx_query(ctx, caps, &err);
		(void)ibmr_ctx_close(ctx, NULL); /* a key that stays keeps the PD */
	}
	left = ibv_dealloc_pd(pd); /* else the kernel takes it, at close */
	return ret ? ibmri_exp_errno(&err) : left;
}

/* ---- the members that the old struct had from the beginning ------------------------------------- */

static void put_legacy(const struct ibv_device_attr *from, struct ibv_exp_device_attr *to)
{
	snprintf(to->fw_ver, sizeof(to->fw_ver), "%.63s", from->fw_ver);
	to->node_guid = from->node_guid;
	to->sys_image_guid = from->sys_image_guid;
	to->max_mr_size = from->max_mr_size;
	to->page_size_cap = from->page_size_cap;
	to->vendor_id = from->vendor_id;
	to->vendor_part_id = from->vendor_part_id;
	to->hw_ver = from->hw_ver;
	to->max_qp = from->max_qp;
	to->max_qp_wr = from->max_qp_wr;
	to->max_sge = from->max_sge;
	to->max_sge_rd = from->max_sge_rd;
	to->max_cq = from->max_cq;
	to->max_cqe = from->max_cqe;
	to->max_mr = from->max_mr;
	to->max_pd = from->max_pd;
	to->max_qp_rd_atom = from->max_qp_rd_atom;
	to->max_ee_rd_atom = from->max_ee_rd_atom;
	to->max_res_rd_atom = from->max_res_rd_atom;
	to->max_qp_init_rd_atom = from->max_qp_init_rd_atom;
	to->max_ee_init_rd_atom = from->max_ee_init_rd_atom;
	to->exp_atomic_cap = (enum ibv_exp_atomic_cap)from->atomic_cap;
	to->max_ee = from->max_ee;
	to->max_rdd = from->max_rdd;
	to->max_mw = from->max_mw;
	to->max_raw_ipv6_qp = from->max_raw_ipv6_qp;
	to->max_raw_ethy_qp = from->max_raw_ethy_qp;
	to->max_mcast_grp = from->max_mcast_grp;
	to->max_mcast_qp_attach = from->max_mcast_qp_attach;
	to->max_total_mcast_qp_attach = from->max_total_mcast_qp_attach;
	to->max_ah = from->max_ah;
	to->max_fmr = from->max_fmr;
	to->max_map_per_fmr = from->max_map_per_fmr;
	to->max_srq = from->max_srq;
	to->max_srq_wr = from->max_srq_wr;
	to->max_srq_sge = from->max_srq_sge;
	to->max_pkeys = from->max_pkeys;
	to->local_ca_ack_delay = from->local_ca_ack_delay;
	to->phys_port_cnt = from->phys_port_cnt;
}

/* ---- and those that were added --------------------------------------------------------------------- */

static uint64_t cap_flags(const struct ibv_device_attr_ex *attr, bool umr)
{
	static const struct {
		unsigned verbs;
		uint64_t exp;
	} same[] = {
		{ IBV_DEVICE_MEM_WINDOW, IBV_EXP_DEVICE_MEM_WINDOW },
		{ IBV_DEVICE_MEM_MGT_EXTENSIONS, IBV_EXP_DEVICE_MEM_MGT_EXTENSIONS },
		{ IBV_DEVICE_MEM_WINDOW_TYPE_2A, IBV_EXP_DEVICE_MW_TYPE_2A },
		{ IBV_DEVICE_MEM_WINDOW_TYPE_2B, IBV_EXP_DEVICE_MW_TYPE_2B },
	};
	/* up to SRQ's notification, and XRC: in their old places */
	uint64_t flags = attr->orig_attr.device_cap_flags & (0x7fffu | IBV_DEVICE_XRC);
	size_t i;

	for (i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (attr->orig_attr.device_cap_flags & same[i].verbs)
			flags |= same[i].exp;
	if (umr)
		flags |= IBV_EXP_DEVICE_UMR;
	if (attr->odp_caps.general_caps & IBV_ODP_SUPPORT)
		flags |= IBV_EXP_DEVICE_ODP;
	return flags | IBV_EXP_DEVICE_MR_ALLOCATE;
}

static void put_odp(struct ibv_context *context, const struct ibv_device_attr_ex *attr,
		    struct ibv_exp_odp_caps *odp)
{
	struct mlx5dv_context dv = { .comp_mask = MLX5DV_CONTEXT_MASK_DC_ODP_CAPS };

	memset(odp, 0, sizeof(*odp));
	odp->general_odp_caps = attr->odp_caps.general_caps;
	odp->per_transport_caps.rc_odp_caps = attr->odp_caps.per_transport_caps.rc_odp_caps;
	odp->per_transport_caps.uc_odp_caps = attr->odp_caps.per_transport_caps.uc_odp_caps;
	odp->per_transport_caps.ud_odp_caps = attr->odp_caps.per_transport_caps.ud_odp_caps;
	odp->per_transport_caps.xrc_odp_caps = attr->xrc_odp_caps;
	if (mlx5dv_is_supported(context->device) && !mlx5dv_query_device(context, &dv) &&
	    dv.comp_mask & MLX5DV_CONTEXT_MASK_DC_ODP_CAPS)
		odp->per_transport_caps.dc_odp_caps = dv.dc_odp_caps;
}

static struct ibv_exp_umr_caps umr_caps(const struct ibmr_caps *caps)
{
	uint32_t most = caps->max_klms;

	return (struct ibv_exp_umr_caps){
		.max_klm_list_size = most && most < IBMRI_MAX_TABLE ? most : IBMRI_MAX_TABLE,
		.max_send_wqe_inline_klms = IBMRI_EXP_INLINE_KLMS,
		.max_umr_recursion_depth = caps->max_depth,
		.max_umr_stride_dimension = 1,
	};
}

static void put_wanted(struct ibv_context *context, const struct ibv_device_attr_ex *from,
		       const struct ibmr_caps *caps, uint32_t wanted,
		       struct ibv_exp_device_attr *to)
{
	if (wanted & IBV_EXP_DEVICE_ATTR_WITH_TIMESTAMP_MASK)
		to->timestamp_mask = from->completion_timestamp_mask;
	if (wanted & IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK)
		to->hca_core_clock = from->hca_core_clock;
	if (wanted & IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS)
		to->exp_device_cap_flags = cap_flags(from, caps->umr);
	if (wanted & IBV_EXP_DEVICE_ATTR_UMR)
		to->umr_caps = umr_caps(caps);
	if (wanted & IBV_EXP_DEVICE_ATTR_ODP)
		put_odp(context, from, &to->odp_caps);
	if (wanted & IBV_EXP_DEVICE_ATTR_ODP_MAX_SIZE)
		to->odp_mr_max_size = from->odp_caps.general_caps & IBV_ODP_SUPPORT
					      ? from->orig_attr.max_mr_size
					      : 0;
	if (wanted & IBV_EXP_DEVICE_ATTR_MAX_DM_SIZE)
		to->max_dm_size = from->max_dm_size;
	if (wanted & (uint32_t)IBV_EXP_DEVICE_ATTR_COMP_MASK_2)
		to->comp_mask_2 = 0;
}

int ibv_exp_query_device(struct ibv_context *context, struct ibv_exp_device_attr *attr)
{
	struct ibv_device_attr_ex from = { .comp_mask = 0 };
	uint32_t wanted = attr->comp_mask;
	struct ibmr_caps caps;
	int ret;

	if (wanted & (uint32_t)IBV_EXP_DEVICE_ATTR_COMP_MASK_2 &&
	    attr->comp_mask_2 >= IBV_EXP_DEVICE_ATTR_RESERVED_2)
		return errno = EINVAL;
	ret = ibv_query_device_ex(context, NULL, &from);
	if (!ret)
		ret = ask_umr(context, &caps);
	if (ret)
		return errno = ret;
	wanted &= AVAILABLE | (caps.umr ? (uint32_t)IBV_EXP_DEVICE_ATTR_UMR : 0);
	put_legacy(&from.orig_attr, attr);
	put_wanted(context, &from, &caps, wanted, attr);
	attr->comp_mask = wanted;
	return 0;
}

int ibv_exp_query_port(struct ibv_context *context, uint8_t port_num,
		       struct ibv_exp_port_attr *attr)
{
	if (attr->comp_mask) {
		errno = EINVAL;
		return -EINVAL; /* the sign that it always had */
	}
	return ibv_query_port(context, port_num, &attr->port_attr);
}

void *ibv_exp_get_provider_func(struct ibv_context *context, enum ibv_exp_func_name name)
{
	switch (name) {
	case IBV_EXP_POST_SEND_FUNC:
		return (void *)ibv_exp_post_send;
	case IBV_EXP_POLL_CQ_FUNC:
		return (void *)ibv_exp_poll_cq;
	case IBV_POST_SEND_FUNC:
		return (void *)context->ops.post_send;
	case IBV_POLL_CQ_FUNC:
		return (void *)ibmr_exp_poll_cq;
	case IBV_POST_RECV_FUNC:
		return (void *)context->ops.post_recv;
	}
	return ibmri_exp_null(ENOSYS);
}
