/* SPDX-License-Identifier: BSD-2-Clause */
/* What a device reports, and what only an attempt can tell. */
#include "private.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* DEVX QUERY_HCA_CAP (source: mlx5 PRM as mlx5_ifc.h has it; general capabilities, current) */
#define CMD_QUERY_HCA_CAP	  0x100
#define CAP_GENERAL_CURRENT	  0x1
#define CAP_IN_BYTES		  16
#define CAP_HEAD_BYTES		  16
#define CAP_BYTES		  4096
#define CAP_MAX_INDIRECTION	  0x20 /* byte */
#define CAP_LOG_MAX_KLM_LIST_SIZE 0x23 /* byte, low six bits */

static void read_hca_caps(struct ibmr_ctx *ctx)
{
	uint8_t in[CAP_IN_BYTES] = { 0 }, out[CAP_HEAD_BYTES + CAP_BYTES] = { 0 };
	const uint8_t *cap = out + CAP_HEAD_BYTES;
	struct ibmr_caps *c = &ctx->caps;
	uint32_t log_klms;

	in[0] = CMD_QUERY_HCA_CAP >> 8;
	in[1] = CMD_QUERY_HCA_CAP & 0xff;
	in[7] = CAP_GENERAL_CURRENT;
	if (mlx5dv_devx_general_cmd(ctx->verbs, in, sizeof(in), out, sizeof(out)))
		return; /* no DEVX: the device does not say */
	c->max_depth = cap[CAP_MAX_INDIRECTION];
	log_klms = cap[CAP_LOG_MAX_KLM_LIST_SIZE] & 0x3f;
	if (log_klms)
		c->max_klms = log_klms < 16 ? 1u << log_klms : IBMRI_MAX_TABLE;
}

/* The kernel driver's name: by the PCI device's link, or by what is particular to rxe. */
static void read_driver(struct ibmr_ctx *ctx)
{
	const char *ibdev = ctx->verbs->device->ibdev_path;
	struct ibmr_caps *c = &ctx->caps;
	char path[IBV_SYSFS_PATH_MAX + 32], link[256];
	const char *base;
	ssize_t n;

	if (ctx->mlx5) {
		snprintf(c->driver, sizeof(c->driver), "mlx5");
		return;
	}
	snprintf(path, sizeof(path), "%s/device/driver", ibdev);
	n = readlink(path, link, sizeof(link) - 1);
	if (n > 0) {
		link[n] = '\0';
		base = strrchr(link, '/');
		snprintf(c->driver, sizeof(c->driver), "%.31s", base ? base + 1 : link);
		return;
	}
	snprintf(path, sizeof(path), "%s/parent", ibdev);
	if (!access(path, F_OK))
		snprintf(c->driver, sizeof(c->driver), "rxe");
}

static uint32_t mtu_bytes(enum ibv_mtu mtu)
{
	return mtu >= IBV_MTU_256 && mtu <= IBV_MTU_4096 ? 128u << mtu : 0;
}

int ibmri_caps_ports(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	struct ibmr_caps *c = &ctx->caps;
	uint32_t i;
	int ret;

	for (i = 0; i < c->num_ports && i < IBMR_MAX_PORTS; i++) {
		struct ibv_port_attr attr = { 0 };

		ret = ibv_query_port(ctx->verbs, (uint8_t)(i + 1), &attr);
		if (ret)
			return ibmri_failed(err, ibmri_code_of(ret), "ibv_query_port", ret,
					    "port %u of %s cannot be asked: %s", i + 1, c->name,
					    strerror(ret));
		c->ports[i] = (struct ibmr_port){ .num = (uint8_t)(i + 1),
						  .state = (uint8_t)attr.state,
						  .link_layer = attr.link_layer,
						  .lid = attr.lid,
						  .active_mtu_bytes = mtu_bytes(attr.active_mtu),
						  .max_msg_sz = attr.max_msg_sz };
	}
	return 0;
}

int ibmri_caps_read(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	struct ibv_device_attr_ex attr = { 0 };
	struct ibmr_caps *c = &ctx->caps;
	int ret;

	snprintf(c->name, sizeof(c->name), "%s", ibv_get_device_name(ctx->verbs->device));
	ret = ibv_query_device_ex(ctx->verbs, NULL, &attr);
	if (ret)
		return ibmri_failed(err, ibmri_code_of(ret), "ibv_query_device_ex", ret,
				    "%s cannot be asked: %s", c->name, strerror(ret));
	snprintf(c->fw, sizeof(c->fw), "%.63s", attr.orig_attr.fw_ver);
	c->guid = be64toh(attr.orig_attr.node_guid);
	c->vendor_id = attr.orig_attr.vendor_id;
	c->vendor_part_id = attr.orig_attr.vendor_part_id;
	c->max_mr_size = attr.orig_attr.max_mr_size;
	c->atomics = attr.orig_attr.atomic_cap != IBV_ATOMIC_NONE;
	c->odp = attr.odp_caps.general_caps & IBV_ODP_SUPPORT;
	c->odp_implicit = attr.odp_caps.general_caps & IBV_ODP_SUPPORT_IMPLICIT;
	c->odp_rc = attr.odp_caps.per_transport_caps.rc_odp_caps;
	c->prefetch = -1;
	read_driver(ctx);
	if (ctx->mlx5) {
		c->max_stride = IBMRI_MAX_STRIDE;
		c->max_entry = IBMRI_MAX_ENTRY;
		read_hca_caps(ctx);
	}
	c->num_ports = attr.orig_attr.phys_port_cnt;
	return ibmri_caps_ports(ctx, err);
}

/* Can an indirect key be made here? A throw-away one tells; the device's name does not. */
static int probe_umr(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	struct mlx5dv_mkey_init_attr attr = { .pd = ctx->pd,
					      .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 4 };
	int ret;

	if (ctx->mlx5 && !ctx->probe_key) {
		errno = 0;
		ctx->probe_key = mlx5dv_create_mkey(&attr);
		if (!ctx->probe_key && !ibmri_says_no_umr(errno))
			return ibmri_failed(
				err, ibmri_code_of(errno), "mlx5dv_create_mkey", errno,
				"device %s does not tell whether it has indirect keys: %s",
				ctx->caps.name, strerror(errno));
	}
	ctx->caps.umr = ctx->probe_key;
	if (ctx->caps.umr && !ctx->caps.inline_klms)
		ctx->caps.inline_klms = ibmri_umr_inline_klms(IBMRI_MAX_WQE);
	ret = ibmri_caps_close(ctx, err);
	if (!ret)
		ctx->umr_probed = true;
	return ret;
}

int ibmri_caps_close(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	int ret;

	if (!ctx->probe_key)
		return 0;
	ret = ibmri_let_go(ctx, mlx5dv_destroy_mkey(ctx->probe_key));
	if (ret)
		return ibmri_failed(err, ibmri_code_of(ret), "mlx5dv_destroy_mkey", ret,
				    "a key of the library's own cannot be destroyed: %s",
				    strerror(ret));
	ctx->probe_key = NULL;
	return 0;
}

static bool says_unsupported(int err_no)
{
	return ibmri_code_of(err_no) == IBMR_E_UNSUPPORTED;
}

/* Is there an ibv_advise_mr? No range at all shows whether the library has it (kernels refuse the
 * empty list before they ask the driver); a key that does not exist shows whether the driver does.
 */
static int probe_prefetch(struct ibmr_ctx *ctx)
{
	struct ibv_sge none = { .lkey = UINT32_MAX };
	int ret;

	if (!ctx->caps.odp)
		return 0;
	ret = ibv_advise_mr(ctx->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, NULL,
			    0);
	if (says_unsupported(ret))
		return 0;
	ret = ibv_advise_mr(ctx->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, IBV_ADVISE_MR_FLAG_FLUSH, &none,
			    1);
	if (says_unsupported(ret))
		return 0;
	return ret == ENOENT || ret == EINVAL || ret == EFAULT ? 1 : -1;
}

int ibmri_caps_probe(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	int ret = ctx->umr_probed ? 0 : probe_umr(ctx, err);

	if (!ret && !ctx->prefetch_probed) {
		ctx->caps.prefetch = probe_prefetch(ctx);
		ctx->prefetch_probed = true;
	}
	return ret;
}
