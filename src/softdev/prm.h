/* SPDX-License-Identifier: BSD-2-Clause */
/* The frame of PRM commands: opcode and op_mod in, status and syndrome out, big-endian. */
#ifndef SOFTDEV_PRM_H
#define SOFTDEV_PRM_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SD_PRM_IN_HDR  16
#define SD_PRM_OUT_HDR 16

enum {
	SD_PRM_QUERY_HCA_CAP = 0x100,
	SD_PRM_CREATE_MKEY = 0x200,
};

enum sd_prm_status {
	SD_PRM_OK = 0,
	SD_PRM_BAD_OP = 2,
	SD_PRM_BAD_PARAM = 3,
	SD_PRM_BAD_RESOURCE = 5,
	SD_PRM_NO_RESOURCES = 0xf,
	SD_PRM_BAD_LENGTH = 0x50,
};

static inline uint16_t sd_prm_opcode(const uint8_t *in)
{
	return (uint16_t)(in[0] << 8 | in[1]);
}

static inline uint16_t sd_prm_op_mod(const uint8_t *in)
{
	return (uint16_t)(in[6] << 8 | in[7]);
}

/* Put a status and a syndrome, which is the status again; the kernel's errno for it. */
static inline int sd_prm_fail(uint8_t *out, enum sd_prm_status status)
{
	memset(out, 0, SD_PRM_OUT_HDR);
	out[0] = (uint8_t)status;
	out[7] = (uint8_t)status;
	return -EREMOTEIO;
}

/* Which commands the kernel passes on without an object, and which make one: of the classes that
 * libmlx5 uses. */
static inline bool sd_prm_is_general(uint16_t opcode)
{
	switch (opcode) {
	case 0x100: /* QUERY_HCA_CAP */
	case 0x101: /* QUERY_ADAPTER */
	case 0x122: /* QUERY_ISSI */
	case 0x751: /* QUERY_HCA_VPORT_CONTEXT and its kind */
	case 0x754:
	case 0x762:
	case 0x770: /* QUERY_VNIC_ENV */
	case 0x803: /* ACCESS_REG */
	case 0x805:
	case 0x843: /* QUERY_LAG */
		return true;
	default:
		return false;
	}
}

static inline bool sd_prm_is_create(uint16_t opcode)
{
	switch (opcode) {
	case 0x200: /* MKEY */
	case 0x400: /* CQ */
	case 0x500: /* QP */
	case 0x700: /* SRQ */
	case 0x705: /* XRC SRQ */
	case 0x725: /* XRQ */
	case 0x710: /* DCT */
	case 0x800: /* PD */
	case 0x816: /* TRANSPORT_DOMAIN */
	case 0x900: /* TIR */
	case 0x904: /* SQ */
	case 0x908: /* RQ */
	case 0x90c: /* RMP */
	case 0x912: /* TIS */
	case 0x916: /* RQT */
	case 0x939: /* FLOW_COUNTER */
	case 0xa00: /* GENERAL_OBJECT */
		return true;
	default:
		return false;
	}
}

#endif /* SOFTDEV_PRM_H */
