/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts, and the commands of the files that are not the queues'. */
#ifndef SOFTDEV_HCA_H
#define SOFTDEV_HCA_H

#include "softdev.h"
#include "uverbs.h"

/* One open of the device. It is no context until GET_CONTEXT has run. */
struct sd_ctx {
	bool open;
	bool dead; /* its device was removed */
	bool devx;
	struct sd_obj **table;	     /* by handle; handles are reused, lowest first */
	uint32_t num, lowest;	     /* no handle below lowest is free */
	struct sd_channel *async;    /* the first asynchronous event file */
	struct sd_channel *channels; /* all event files, also closed ones still in use */
	struct sd_ctx *next;
};

/* Every context, for what concerns the whole device. */
struct sd_ctx *sd_ctx_first(void);

/* Frees of the objects that are ours: see sd_cq_free. */
void sd_ah_free(struct sd_obj *obj);
void sd_mr_free(struct sd_obj *obj);
void sd_devx_free(struct sd_obj *obj);
/* Whether a key made by DEVX is in that PD: the kernel does not count those. */
bool sd_devx_uses_pd(const struct sd_ctx *ctx, uint32_t pdn);
void sd_channels_end(struct sd_ctx *ctx);

/* methods.c: the commands */
sd_command_fn sd_cmd_query_port, sd_cmd_get_context, sd_cmd_query_context; /* caps.c, hca.c */
sd_command_fn sd_cmd_query_gid_table, sd_cmd_query_gid_entry, sd_cmd_mlx5_query_port;
sd_command_fn sd_cmd_pd_destroy, sd_cmd_pd_query, sd_cmd_ah_destroy;
sd_command_fn sd_cmd_uar_alloc, sd_cmd_uar_destroy;
sd_command_fn sd_cmd_async_alloc;					       /* event.c */
sd_command_fn sd_cmd_mr_destroy, sd_cmd_mr_query, sd_cmd_mr_advise;	       /* mr.c */
sd_command_fn sd_cmd_devx_other, sd_cmd_devx_query_eqn, sd_cmd_devx_query_uar; /* devx.c */
sd_command_fn sd_cmd_devx_create, sd_cmd_devx_destroy, sd_cmd_devx_modify, sd_cmd_devx_query;
sd_write_fn sd_wr_query_device, sd_wr_ex_query_device; /* caps.c */
sd_write_fn sd_wr_alloc_pd, sd_wr_create_ah;	       /* hca.c */
sd_write_fn sd_wr_create_comp_channel;		       /* event.c */
sd_write_fn sd_wr_reg_mr, sd_wr_rereg_mr;	       /* mr.c */

#endif /* SOFTDEV_HCA_H */
