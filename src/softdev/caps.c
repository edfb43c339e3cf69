/* SPDX-License-Identifier: BSD-2-Clause */
/* What the device says of itself: device and port attributes, GIDs, PRM capabilities. */
#include "softdev.h"
#include "hca.h"
#include "caps.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define FW_VER ((uint64_t)0 << 32 | 1 << 16 | 0) /* 0.1.0, as in the sysfs tree */
#define VENDOR 0x02c9
#define PART   4125

/* Access flags that may be ignored: relaxed ordering. */
#define CORE_SUPPORT IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS

int sd_caps_context(const struct sd_attrs *a, uint16_t vectors_id, uint16_t support_id,
		    uint16_t resp_id)
{
	const struct mlx5_ib_alloc_ucontext_resp resp = {
		.qp_tab_size = 1 << 18,
		.bf_reg_size = 512,
		.tot_bfregs = 0, /* UAR pages are allocated one by one */
		.cache_line_size = 64,
		.max_sq_desc_sz = SD_SQ_DESC_SIZE,
		.max_rq_desc_sz = SD_RQ_DESC_SIZE,
		.max_send_wqebb = SD_MAX_QP_WR,
		.max_recv_wr = SD_MAX_QP_WR,
		.max_srq_recv_wr = SD_MAX_SRQ_WR,
		.num_ports = 1,
		.comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_DUMP_FILL_MKEY |
			     MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_MKEY_UPDATE_TAG,
		.response_length = sizeof(resp),
		.cqe_version = 1,
		.cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE,
		.eth_min_inline = MLX5_USER_INLINE_MODE_NONE,
		.log_uar_size = 12,
		.num_uars_per_page = 1,
		.dump_fill_mkey = SD_NULL_KEY,
	};
	const uint32_t vectors = SD_COMP_VECTORS;
	const uint64_t support = CORE_SUPPORT;
	int err;

	err = sd_attr_put(a, vectors_id, &vectors, sizeof(vectors));
	if (!err)
		err = sd_attr_put(a, support_id, &support, sizeof(support));
	if (!err)
		err = sd_attr_put(a, resp_id, &resp, sizeof(resp));
	return err;
}

/* ---- the device -------------------------------------------------------------- */

static const struct ib_uverbs_query_device_resp device = {
	.fw_ver = FW_VER,
	.page_size_cap = 0xfffffffffffff000,
	.vendor_id = VENDOR,
	.vendor_part_id = PART,
	.max_qp = 1 << 18,
	.max_qp_wr = SD_MAX_QP_WR,
	.device_cap_flags = IB_UVERBS_DEVICE_BAD_PKEY_CNTR | IB_UVERBS_DEVICE_BAD_QKEY_CNTR |
			    IB_UVERBS_DEVICE_PORT_ACTIVE_EVENT | IB_UVERBS_DEVICE_SYS_IMAGE_GUID |
			    IB_UVERBS_DEVICE_RC_RNR_NAK_GEN | IB_UVERBS_DEVICE_MEM_MGT_EXTENSIONS,
	.max_sge = SD_MAX_SGE,
	.max_sge_rd = SD_MAX_SGE,
	.max_cq = 1 << 24,
	.max_cqe = SD_MAX_CQE,
	.max_mr = 1 << 23,
	.max_pd = 1 << 23,
	.max_qp_rd_atom = SD_MAX_RD_ATOM,
	.max_res_rd_atom = SD_MAX_RD_ATOM << 18,
	.max_qp_init_rd_atom = SD_MAX_RD_ATOM,
	.max_mcast_grp = 1 << 21,
	.max_mcast_qp_attach = 240,
	.max_total_mcast_qp_attach = 240 << 21,
	.max_ah = INT32_MAX,
	.max_srq = 1 << 23,
	.max_srq_wr = SD_MAX_SRQ_WR,
	.max_srq_sge = SD_MAX_SRQ_SGE,
	.max_pkeys = 1,
	.local_ca_ack_delay = 16,
	.phys_port_cnt = 1,
};

static struct ib_uverbs_query_device_resp query_device(void)
{
	struct ib_uverbs_query_device_resp r = device;

	r.node_guid = htobe64(SD_NODE_GUID);
	r.sys_image_guid = r.node_guid;
	r.max_mr_size = sd_config.max_mr_size;
	r.atomic_cap = sd_config.atomics ? IBV_ATOMIC_HCA : IBV_ATOMIC_NONE;
	return r;
}

int sd_wr_query_device(struct sd_ctx *ctx, struct sd_write *w)
{
	struct ib_uverbs_query_device_resp r = query_device();

	return sd_write_out(w, &r, sizeof(r));
}

static void query_odp(struct ib_uverbs_odp_caps *odp)
{
	const uint32_t messages = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;

	if (!sd_config.odp)
		return;
	odp->general_caps = IBV_ODP_SUPPORT;
	if (sd_config.implicit)
		odp->general_caps |= IBV_ODP_SUPPORT_IMPLICIT;
	odp->per_transport_caps.rc_odp_caps =
		messages | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_SRQ_RECV;
	if (sd_config.atomics)
		odp->per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_ATOMIC;
	odp->per_transport_caps.uc_odp_caps = messages | IBV_ODP_SUPPORT_WRITE;
	odp->per_transport_caps.ud_odp_caps = messages | IBV_ODP_SUPPORT_SRQ_RECV;
}

int sd_wr_ex_query_device(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_ex_query_device *req = w->in;
	struct ib_uverbs_ex_query_device_resp r = { .base = query_device() };
	struct mlx5_ib_query_device_resp uhw = { .response_length = sizeof(uhw) };
	int err;

	if (req->comp_mask || req->reserved)
		return -EINVAL;
	r.response_length = w->out_len < sizeof(r) ? w->out_len : sizeof(r);
	query_odp(&r.odp_caps);
	r.device_cap_flags_ex = r.base.device_cap_flags;
	r.cq_moderation_caps.max_cq_moderation_count = UINT16_MAX;
	r.cq_moderation_caps.max_cq_moderation_period = 0xfff;
	if (w->uhw_out_len) {
		uhw.response_length = w->uhw_out_len < sizeof(uhw) ? w->uhw_out_len : sizeof(uhw);
		err = sd_write_uhw(w, &uhw, sizeof(uhw));
		if (err)
			return err;
	}
	return sd_write_out(w, &r, sizeof(r));
}

/* ---- the port ------------------------------------------------------------------- */

int sd_cmd_query_port(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	const struct ib_uverbs_query_port_resp_ex r = { .legacy_resp = {
								.port_cap_flags =
									IBV_PORT_SYS_IMAGE_GUID_SUP,
								.max_msg_sz = sd_config.max_msg_sz,
								.gid_tbl_len = SD_GID_TABLE_LEN,
								.pkey_tbl_len = 1,
								.lid = SD_LID,
								.sm_lid = SD_LID,
								.state = IBV_PORT_ACTIVE,
								.max_mtu = IBV_MTU_4096,
								.active_mtu = IBV_MTU_4096,
								.max_vl_num = 4,
								.subnet_timeout = 18,
								.active_width = 2,  /* 4X */
								.active_speed = 32, /* EDR */
								.phys_state = 5,    /* link up */
								.link_layer =
									IBV_LINK_LAYER_INFINIBAND,
							} };
	uint64_t port;

	sd_attr_get(a, UVERBS_ATTR_QUERY_PORT_PORT_NUM, &port, sizeof(port));
	if (port != SD_PORT)
		return -EINVAL;
	return sd_attr_put(a, UVERBS_ATTR_QUERY_PORT_RESP, &r, sizeof(r));
}

/* Without a switchdev there is nothing to tell. */
int sd_cmd_mlx5_query_port(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	const struct mlx5_ib_uapi_query_port r = { 0 };
	uint32_t port;

	sd_attr_get(a, MLX5_IB_ATTR_QUERY_PORT_PORT_NUM, &port, sizeof(port));
	if (port != SD_PORT)
		return -EINVAL;
	return sd_attr_put(a, MLX5_IB_ATTR_QUERY_PORT, &r, sizeof(r));
}

static struct ib_uverbs_gid_entry gid_entry(void)
{
	struct ib_uverbs_gid_entry e = { .port_num = SD_PORT, .gid_type = IBV_GID_TYPE_IB };

	e.gid[0] = htobe64(SD_GID_PREFIX);
	e.gid[1] = htobe64(SD_NODE_GUID);
	return e;
}

/* A GID, when there is one, must be ours as well as the LID: the only wire is the loopback. */
bool sd_addr_is_ours(const struct ib_uverbs_qp_dest *dest)
{
	const struct ib_uverbs_gid_entry e = gid_entry();

	if (dest->is_global && memcmp(dest->dgid, e.gid, sizeof(e.gid)))
		return false;
	return dest->dlid == SD_LID;
}

int sd_cmd_query_gid_entry(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	const struct ib_uverbs_gid_entry e = gid_entry();
	uint64_t port, index, flags;

	sd_attr_get(a, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, &port, sizeof(port));
	sd_attr_get(a, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, &index, sizeof(index));
	sd_attr_get(a, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, &flags, sizeof(flags));
	if (flags)
		return -EINVAL;
	if (port != SD_PORT || index >= SD_GID_TABLE_LEN)
		return -EINVAL;
	if (index)
		return -ENODATA; /* an empty entry */
	return sd_attr_put(a, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &e, sizeof(e));
}

int sd_cmd_query_gid_table(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	const struct ib_uverbs_gid_entry e = gid_entry();
	const uint64_t num = 1;
	uint64_t size, flags;
	uint32_t room;
	int err;

	sd_attr_get(a, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, &size, sizeof(size));
	sd_attr_get(a, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, &flags, sizeof(flags));
	sd_attr_out(a, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, &room);
	if (flags || !size || room < size)
		return -EINVAL;
	err = sd_attr_put(a, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, &e,
			  size < sizeof(e) ? (uint32_t)size : (uint32_t)sizeof(e));
	if (err)
		return err;
	return sd_attr_put(a, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, &num, sizeof(num));
}

/* ---- PRM capabilities ------------------------------------------------------------- */

/* A field of a PRM structure: bit 0 is the highest of the first byte. */
static void set_bits(uint8_t *page, unsigned int bit, unsigned int width, uint32_t value)
{
	unsigned int i;

	for (i = 0; i < width; i++, bit++)
		if (value >> (width - 1 - i) & 1)
			page[bit / 8] |= (uint8_t)(0x80 >> (bit % 8));
}

static uint32_t log_up(uint64_t n)
{
	return n <= 1 ? 0 : 64 - (uint32_t)__builtin_clzll(n - 1);
}

/* A limit of any size, stated as a power of two: no more than there is. */
static uint32_t log_down(uint64_t n)
{
	return n ? 63 - (uint32_t)__builtin_clzll(n) : 0;
}

static void general_caps(uint8_t *page)
{
	set_bits(page, 0x088, 8, 15); /* log_max_qp_sz */
	set_bits(page, 0x09b, 5, 18); /* log_max_qp */
	set_bits(page, 0x0ab, 5, 23); /* log_max_srq */
	set_bits(page, 0x0c8, 8, 20); /* log_max_cq_sz */
	set_bits(page, 0x0db, 5, 24); /* log_max_cq */
	set_bits(page, 0x0ea, 6, 23); /* log_max_mkey */
	set_bits(page, 0x0f8, 1, 1);  /* dump_fill_mkey */
	if (sd_config.umr) {
		set_bits(page, 0x100, 8, sd_config.max_depth);		/* max_indirection */
		set_bits(page, 0x11a, 6, log_down(sd_config.max_klms)); /* log_max_klm_list_size */
		set_bits(page, 0x230, 1, 1);				/* umr_ptr_rlkey */
	}
	set_bits(page, 0x109, 7, log_up(sd_config.max_mr_size));  /* log_max_mrw_sz */
	set_bits(page, 0x119, 1, 1);				  /* null_mkey */
	set_bits(page, 0x14a, 6, log_up(SD_MAX_RD_ATOM));	  /* log_max_ra_req_qp */
	set_bits(page, 0x15a, 6, log_up(SD_MAX_RD_ATOM));	  /* log_max_ra_res_qp */
	set_bits(page, 0x1b8, 8, 1);				  /* num_ports */
	set_bits(page, 0x1c3, 5, log_down(sd_config.max_msg_sz)); /* log_max_msg */
	set_bits(page, 0x1fc, 4, 1);				  /* cqe_version */
	set_bits(page, 0x215, 1, 1);				  /* sctr_data_cqe */
	set_bits(page, 0x21e, 1, sd_config.atomics);
	set_bits(page, 0x227, 1, sd_config.odp);    /* pg */
	set_bits(page, 0x23d, 3, 7);		    /* ud, uc, rc */
	set_bits(page, 0x240, 1, 1);		    /* uar_4k */
	set_bits(page, 0x258, 8, 12);		    /* log_pg_sz */
	set_bits(page, 0x290, 16, SD_SQ_DESC_SIZE); /* max_wqe_sz_sq */
	set_bits(page, 0x2b0, 16, SD_RQ_DESC_SIZE); /* max_wqe_sz_rq */
	set_bits(page, 0x32b, 5, 23);		    /* log_max_pd */
}

/* Bits of a transport: send, receive, write, read, atomic, SRQ receive. */
static void odp_caps(uint8_t *page)
{
	if (!sd_config.odp)
		return;
	set_bits(page, 0x80, 6, sd_config.atomics ? 0x3f : 0x3d); /* rc */
	set_bits(page, 0xa0, 6, 0x38);				  /* uc */
	set_bits(page, 0xc0, 6, 0x31);				  /* ud */
}

/* The operations on 8 bytes; bits 0 and 1: swap and add. None of them by PCI atomics. */
static void atomic_caps(uint8_t *page)
{
	if (!sd_config.atomics)
		return;
	set_bits(page, 0x90, 16, 0x3);
	set_bits(page, 0xb0, 16, 8);
}

int sd_caps_hca(uint16_t op_mod, uint8_t *ret_page)
{
	memset(ret_page, 0, SD_HCA_CAP_SIZE);
	switch (op_mod >> 1) { /* the lowest bit asks for what is in force, not what could be */
	case 0:
		general_caps(ret_page);
		return 0;
	case 2:
		odp_caps(ret_page);
		return 0;
	case 3:
		atomic_caps(ret_page);
		return 0;
	default:
		return -EINVAL;
	}
}

void sd_own_gid(uint8_t *ret_gid)
{
	const struct ib_uverbs_gid_entry e = gid_entry();

	memcpy(ret_gid, e.gid, 16);
}
