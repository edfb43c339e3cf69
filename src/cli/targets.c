/* SPDX-License-Identifier: BSD-2-Clause */
#include "targets.h"

#include <infiniband/verbs.h>
#include <string.h>

/*
 * Sources of the numbers:
 *
 * mlx5: max_klms: the work request's klm_octowords and the key's table size are 16-bit and taken in
 * fours (mlx5_wqe_umr_ctrl_seg). inline_klms: the most of a raw work request of 63 segments.
 * max_stride: the 16-bit fields of mlx5_wqe_umr_repeat_block_seg. max_entry: byte_count of a KLM is
 * below 2^31. max_depth: max_indirection of the device; 4 is what softdev chose, no document says
 * it. repeat_on_demand: the kernel driver's fault handler walks a key's table as plain KLMs.
 * max_msg_sz and max_mr_size: what ConnectX-5 and later report through ibv_query_port and
 * ibv_query_device.
 *
 * rxe: Linux 6.16 or later with rdma-core 59 or later: explicit on-demand paging with prefetch of
 * MRs with local_write (rxe_odp.c looks for no others). No indirect MRs: they need mlx5. RXE_MAX_MR_SIZE is 2^64-1, the port's max_msg_sz is 8 MiB.
 *
 * soft0: what it reports; a test compares.
 */
#define MLX5_LIMITS(link)                                                                       \
	.max_mr_size = UINT64_MAX, .odp = true, .odp_implicit = true,                           \
	.odp_rc = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE |         \
		  IBV_ODP_SUPPORT_READ | IBV_ODP_SUPPORT_ATOMIC | IBV_ODP_SUPPORT_SRQ_RECV,     \
	.umr = true, .max_klms = 65532, .inline_klms = 52, .max_depth = 4, .max_stride = 65535, \
	.max_entry = (1u << 31) - 1, .repeat_on_demand = false, .prefetch = 1, .atomics = true, \
	.num_ports = 1,                                                                         \
	.ports = { { .num = 1,                                                                  \
		     .state = IBV_PORT_ACTIVE,                                                  \
		     .link_layer = link,                                                        \
		     .active_mtu_bytes = 4096,                                                  \
		     .max_msg_sz = 1u << 30 } }

const struct ibmr_caps targets[] = {
	{ .name = "mlx5", .driver = "mlx5", MLX5_LIMITS(IBV_LINK_LAYER_ETHERNET) },
	{ .name = "rxe",
	  .driver = "rxe",
	  .max_mr_size = UINT64_MAX,
	  .odp = true,
	  .odp_rc = 0xff,
	  .prefetch = 1,
	  .prefetch_needs_write = true,
	  .atomics = true,
	  .num_ports = 1,
	  .ports = { { .num = 1,
		       .state = IBV_PORT_ACTIVE,
		       .link_layer = IBV_LINK_LAYER_ETHERNET,
		       .active_mtu_bytes = 1024,
		       .max_msg_sz = 8u << 20 } } },
	{ .name = "soft0", .driver = "mlx5", MLX5_LIMITS(IBV_LINK_LAYER_INFINIBAND) },
	{ .name = "" },
};

const struct ibmr_caps *target_find(const char *name)
{
	const struct ibmr_caps *t;

	for (t = targets; t->name[0]; t++)
		if (!strcmp(t->name, name))
			return t;
	return NULL;
}

const struct ibmr_caps *target_of_device(const char *device)
{
	if (device && !strcmp(device, "soft0"))
		return target_find("soft0");
	if (device && !strncmp(device, "rxe", 3))
		return target_find("rxe");
	return target_find("mlx5");
}
