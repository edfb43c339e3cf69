/* SPDX-License-Identifier: BSD-2-Clause */
/* How methods are described (methods.c) and their attributes checked (uverbs.c). */
#ifndef SOFTDEV_UVERBS_H
#define SOFTDEV_UVERBS_H

#include "softdev.h"

#define SD_DRIVER_ID RDMA_DRIVER_MLX5

enum sd_attr_kind {
	SD_ATTR_IN = 1,	 /* data */
	SD_ATTR_OUT,	 /* room for data */
	SD_ATTR_NEW,	 /* a handle or fd, returned */
	SD_ATTR_OBJ,	 /* a handle */
	SD_ATTR_FD,	 /* a descriptor of ours */
	SD_ATTR_DESTROY, /* a handle that ends with the command */
};

struct sd_attr_spec {
	uint16_t id;
	uint8_t kind; /* enum sd_attr_kind; 0 ends a list */
	bool mandatory;
	bool zero_trailing; /* longer is accepted when what is not known is zero */
	uint8_t type;	    /* enum sd_type */
	uint16_t min, max;
};

struct sd_method {
	uint16_t object, method;
	const char *name; /* of the command kind; NULL: the command names it itself */
	bool without_context;
	sd_command_fn *run;
	const struct sd_attr_spec *attrs;
};

extern const struct sd_attr_spec sd_uhw_in, sd_uhw_out;

const struct sd_method *sd_method_find(uint16_t object, uint16_t method);

/* A command of the write() interface: core sizes are checked before it runs. */
struct sd_write_method {
	uint32_t command; /* with IB_USER_VERBS_CMD_FLAG_EXTENDED */
	const char *name;
	sd_write_fn *run;
	uint16_t in_min, out_min;
};

/* The address and room of an output, for commands that write it in pieces. */
uint64_t sd_attr_out(const struct sd_attrs *a, uint16_t id, uint32_t *ret_len);

sd_command_fn sd_cmd_invoke_write;

/* Names of command kinds, "" where there is none, NULL at the end; some come twice. */
const char *sd_method_name(size_t i);

#endif /* SOFTDEV_UVERBS_H */
