/* SPDX-License-Identifier: BSD-2-Clause */
/* What soft0 is: the numbers that queries give and that other files keep to. */
#ifndef SOFTDEV_CAPS_H
#define SOFTDEV_CAPS_H

#include "softdev.h"

#define SD_NODE_GUID	 0x0200000050f70001ull /* locally administered; the same in the sysfs tree */
#define SD_PORT		 1
#define SD_LID		 1
#define SD_GID_PREFIX	 0xfe80000000000000ull
#define SD_GID_TABLE_LEN 8
#define SD_COMP_VECTORS	 2
#define SD_MAX_QP_WR	 32768
#define SD_MAX_CQE	 ((1u << 20) - 1) /* programs that ask for the most pay for it in memory */
#define SD_MAX_SGE	 30
#define SD_MAX_SRQ_WR	 32767
#define SD_MAX_SRQ_SGE	 31
#define SD_MAX_RD_ATOM	 16
#define SD_SQ_DESC_SIZE	 1024
#define SD_RQ_DESC_SIZE	 512

/* The answer of GET_CONTEXT and QUERY_CONTEXT, to the attributes with these ids. */
int sd_caps_context(const struct sd_attrs *a, uint16_t vectors_id, uint16_t support_id,
		    uint16_t resp_id);

/* PRM QUERY_HCA_CAP: a page of capabilities by op_mod; -EINVAL for one that there is not. */
#define SD_HCA_CAP_SIZE 4096
int sd_caps_hca(uint16_t op_mod, uint8_t *ret_page);

#endif /* SOFTDEV_CAPS_H */
