/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory-region part of the experimental verbs that MLNX_OFED's libibverbs had before release 5,
 * for programs that were written to it, on the libibverbs of today. Names, types, order, sizes and values
 * are those of release 4.6's <infiniband/verbs_exp.h> (x86-64), which test/exp compares one by one;
 * declarations, comments and implementation are this project's. What differs from the old library
 * stands in libibmr-exp(7).
 *
 * Flags from bit 32 on are enumerators, as configure scripts look for them: an extension of GNU C before
 * C23, marked as such.
 */
#ifndef IBMR_VERBS_EXP_H
#define IBMR_VERBS_EXP_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define IBMR_EXP_EXPORT __attribute__((visibility("default")))
#else
#define IBMR_EXP_EXPORT
#endif

__extension__ enum ibv_exp_start_values {
	IBV_EXP_START_ENUM = 0x40,
	IBV_EXP_START_FLAG_LOC = 0x20,
	IBV_EXP_START_FLAG = 1ULL << 32,
};

/* A comp_mask is compared as a number: valid is a RESERVED enumerator less one. */
#define IBV_EXP_RET_ON_INVALID_COMP_MASK(val, valid, ret)                                       \
	if ((val) > (valid)) {                                                                  \
		fprintf(stderr,                                                                 \
			"%s: invalid comp_mask !!! (comp_mask = 0x%llx valid_mask = 0x%llx)\n", \
			__func__, (unsigned long long)(val), (unsigned long long)(valid));      \
		errno = EINVAL;                                                                 \
		return ret;                                                                     \
	}
#define IBV_EXP_RET_NULL_ON_INVALID_COMP_MASK(val, valid) \
	IBV_EXP_RET_ON_INVALID_COMP_MASK(val, valid, NULL)
#define IBV_EXP_RET_EINVAL_ON_INVALID_COMP_MASK(val, valid) \
	IBV_EXP_RET_ON_INVALID_COMP_MASK(val, valid, EINVAL)
#define IBV_EXP_RET_ZERO_ON_INVALID_COMP_MASK(val, valid) \
	IBV_EXP_RET_ON_INVALID_COMP_MASK(val, valid, 0)

#include <infiniband/verbs_exp_device.h>

IBMR_EXP_EXPORT int ibv_exp_query_device(struct ibv_context *context,
					 struct ibv_exp_device_attr *attr);

/* ---- ports ------------------------------------------------------------------------ */

struct ibv_exp_port_attr {
	__extension__ union {
		__extension__ struct {
			enum ibv_port_state state;
			enum ibv_mtu max_mtu;
			enum ibv_mtu active_mtu;
			int gid_tbl_len;
			uint32_t port_cap_flags;
			uint32_t max_msg_sz;
			uint32_t bad_pkey_cntr;
			uint32_t qkey_viol_cntr;
			uint16_t pkey_tbl_len;
			uint16_t lid;
			uint16_t sm_lid;
			uint8_t lmc;
			uint8_t max_vl_num;
			uint8_t sm_sl;
			uint8_t subnet_timeout;
			uint8_t init_type_reply;
			uint8_t active_width;
			uint8_t active_speed;
			uint8_t phys_state;
			uint8_t link_layer;
			uint8_t reserved;
		};
		struct ibv_port_attr port_attr;
	};
	uint32_t comp_mask; /* must be 0 */
	uint32_t mask1;
};

IBMR_EXP_EXPORT int ibv_exp_query_port(struct ibv_context *context, uint8_t port_num,
				       struct ibv_exp_port_attr *attr);

/* ---- access ----------------------------------------------------------------------- */

enum {
	IBV_EXP_ACCESS_FLAGS_SHIFT = 0x0f,
};

/* Carried in 64 bits: an int loses all from ALLOCATE_MR on. */
__extension__ enum ibv_exp_access_flags {
	IBV_EXP_ACCESS_LOCAL_WRITE = IBV_ACCESS_LOCAL_WRITE,
	IBV_EXP_ACCESS_REMOTE_WRITE = IBV_ACCESS_REMOTE_WRITE,
	IBV_EXP_ACCESS_REMOTE_READ = IBV_ACCESS_REMOTE_READ,
	IBV_EXP_ACCESS_REMOTE_ATOMIC = IBV_ACCESS_REMOTE_ATOMIC,
	IBV_EXP_ACCESS_MW_BIND = IBV_ACCESS_MW_BIND,
	IBV_EXP_ACCESS_ALLOCATE_MR = 1ULL << 37,
	IBV_EXP_ACCESS_SHARED_MR_USER_READ = 1ULL << 38,
	IBV_EXP_ACCESS_SHARED_MR_USER_WRITE = 1ULL << 39,
	IBV_EXP_ACCESS_SHARED_MR_GROUP_READ = 1ULL << 40,
	IBV_EXP_ACCESS_SHARED_MR_GROUP_WRITE = 1ULL << 41,
	IBV_EXP_ACCESS_SHARED_MR_OTHER_READ = 1ULL << 42,
	IBV_EXP_ACCESS_SHARED_MR_OTHER_WRITE = 1ULL << 43,
	IBV_EXP_ACCESS_NO_RDMA = 1ULL << 44,
	IBV_EXP_ACCESS_MW_ZERO_BASED = 1ULL << 45,
	IBV_EXP_ACCESS_ON_DEMAND = 1ULL << 46,
	IBV_EXP_ACCESS_RELAXED = 1ULL << 47, /* of paging, not of PCI's order */
	IBV_EXP_ACCESS_PHYSICAL_ADDR = 1ULL << 48,
	IBV_EXP_ACCESS_TUNNELED_ATOMIC = 1ULL << 49,
	IBV_EXP_ACCESS_RESERVED = 1ULL << 50,
};

/* ---- device memory ------------------------------------------------------------------ */

enum ibv_exp_dm_memcpy_dir {
	IBV_EXP_DM_CPY_TO_DEVICE,
	IBV_EXP_DM_CPY_TO_HOST,
};

enum ibv_exp_dm_attr_comp_mask {
	IBV_EXP_ALLOC_DM_ATTR_RESERVED = 1 << 0,
};

struct ibv_exp_alloc_dm_attr {
	size_t length;
	uint32_t comp_mask;
};

enum ibv_exp_dm_comp_mask {
	IBV_EXP_DM_COMP_MASK_RESERVED = 1 << 0,
};

struct ibv_exp_dm {
	struct ibv_context *context;
	uint32_t handle;
	uint32_t comp_mask;
};

enum ibv_exp_dm_cpy_comp_mask {
	IBV_EXP_DM_CPY_COMP_MASK_RESERVED = 1 << 0,
};

struct ibv_exp_memcpy_dm_attr {
	enum ibv_exp_dm_memcpy_dir memcpy_dir;
	void *host_addr;
	uint64_t dm_offset;
	size_t length;
	uint32_t comp_mask;
};

IBMR_EXP_EXPORT struct ibv_exp_dm *ibv_exp_alloc_dm(struct ibv_context *context,
						    struct ibv_exp_alloc_dm_attr *attr);
IBMR_EXP_EXPORT int ibv_exp_free_dm(struct ibv_exp_dm *dm);
IBMR_EXP_EXPORT int ibv_exp_memcpy_dm(struct ibv_exp_dm *dm, struct ibv_exp_memcpy_dm_attr *attr);

/* ---- registered memory --------------------------------------------------------------- */

/* As a length, with addr NULL and IBV_EXP_ACCESS_ON_DEMAND: the whole address space. */
#define IBV_EXP_IMPLICIT_MR_SIZE (~((size_t)0))

enum ibv_exp_reg_mr_in_comp_mask {
	IBV_EXP_REG_MR_CREATE_FLAGS = 1 << 0,
	IBV_EXP_REG_MR_DM = 1 << 1,
	IBV_EXP_REG_MR_RESERVED = 1 << 2,
};

enum ibv_exp_reg_mr_create_flags {
	IBV_EXP_REG_MR_CREATE_CONTIG = 1 << 0,
};

struct ibv_exp_reg_mr_in {
	struct ibv_pd *pd;
	void *addr; /* out, when the library allocates */
	size_t length;
	uint64_t exp_access;
	uint32_t comp_mask;
	uint32_t create_flags;
	struct ibv_exp_dm *dm;
};

enum ibv_exp_reg_shared_mr_comp_mask {
	IBV_EXP_REG_SHARED_MR_RESERVED = 1 << 0,
};

struct ibv_exp_reg_shared_mr_in {
	uint32_t mr_handle;
	struct ibv_pd *pd;
	void *addr;
	uint64_t exp_access;
	uint32_t comp_mask;
};

enum ibv_exp_dereg_mr_comp_mask {
	IBV_EXP_DEREG_MR_RESERVED = 1 << 0,
};

struct ibv_exp_dereg_out {
	int need_dofork;
	uint32_t comp_mask;
};

IBMR_EXP_EXPORT struct ibv_mr *ibv_exp_reg_mr(struct ibv_exp_reg_mr_in *in);
IBMR_EXP_EXPORT struct ibv_mr *ibv_exp_reg_shared_mr(struct ibv_exp_reg_shared_mr_in *in);

enum ibv_exp_prefetch_attr_comp_mask {
	IBV_EXP_PREFETCH_MR_RESERVED = 1 << 0,
};

enum ibv_exp_prefetch_attr_flags {
	IBV_EXP_PREFETCH_WRITE_ACCESS = 1 << 0,
};

struct ibv_exp_prefetch_attr {
	uint32_t flags;
	void *addr;
	size_t length;
	uint32_t comp_mask;
};

IBMR_EXP_EXPORT int ibv_exp_prefetch_mr(struct ibv_mr *mr, struct ibv_exp_prefetch_attr *attr);

/* ---- indirect memory regions ----------------------------------------------------------- */

enum ibv_exp_mr_create_flags {
	IBV_EXP_MR_SIGNATURE_EN = 1 << 0,
	IBV_EXP_MR_INDIRECT_KLMS = 1 << 1,
	IBV_EXP_MR_FIXED_BUFFER_SIZE = 1 << 2,
};

struct ibv_exp_mr_init_attr {
	uint32_t max_klm_list_size;
	uint32_t create_flags;
	uint64_t exp_access_flags; /* has no effect: rights are what a fill gives */
};

enum ibv_exp_create_mr_in_comp_mask {
	IBV_EXP_CREATE_MR_IN_RESERVED = 1 << 0,
};

struct ibv_exp_create_mr_in {
	struct ibv_pd *pd;
	struct ibv_exp_mr_init_attr attr;
	uint32_t comp_mask;
};

enum ibv_exp_mkey_attr_comp_mask {
	IBV_EXP_MKEY_ATTR_RESERVED = 1 << 0,
};

struct ibv_exp_mkey_attr {
	uint32_t max_klm_list_size;
	uint32_t comp_mask;
};

enum ibv_exp_mkey_list_type {
	IBV_EXP_MKEY_LIST_TYPE_INDIRECT_MR,
};

enum ibv_exp_alloc_mkey_list_comp_mask {
	IBV_EXP_MKEY_LIST_CONTAINER_RESERVED = 1 << 0,
};

/* Memory that the device reads a fill's entries from; not to be reused before that fill completed. */
struct ibv_exp_mkey_list_container {
	uint32_t max_klm_list_size;
	struct ibv_context *context;
};

struct ibv_exp_mkey_list_container_attr {
	struct ibv_pd *pd;
	uint32_t mkey_list_type;
	uint32_t max_klm_list_size;
	uint32_t comp_mask;
};

IBMR_EXP_EXPORT struct ibv_mr *ibv_exp_create_mr(struct ibv_exp_create_mr_in *in);
IBMR_EXP_EXPORT int ibv_exp_query_mkey(struct ibv_mr *mr, struct ibv_exp_mkey_attr *attr);
IBMR_EXP_EXPORT struct ibv_exp_mkey_list_container *
ibv_exp_alloc_mkey_list_memory(struct ibv_exp_mkey_list_container_attr *attr);
IBMR_EXP_EXPORT int ibv_exp_dealloc_mkey_list_memory(struct ibv_exp_mkey_list_container *mem);

/* ---- queue pairs --------------------------------------------------------------------------- */

/* The low bits are those of ibv_modify_qp(). */
__extension__ enum ibv_exp_qp_attr_mask {
	IBV_EXP_QP_STATE = IBV_QP_STATE,
	IBV_EXP_QP_CUR_STATE = IBV_QP_CUR_STATE,
	IBV_EXP_QP_EN_SQD_ASYNC_NOTIFY = IBV_QP_EN_SQD_ASYNC_NOTIFY,
	IBV_EXP_QP_ACCESS_FLAGS = IBV_QP_ACCESS_FLAGS,
	IBV_EXP_QP_PKEY_INDEX = IBV_QP_PKEY_INDEX,
	IBV_EXP_QP_PORT = IBV_QP_PORT,
	IBV_EXP_QP_QKEY = IBV_QP_QKEY,
	IBV_EXP_QP_AV = IBV_QP_AV,
	IBV_EXP_QP_PATH_MTU = IBV_QP_PATH_MTU,
	IBV_EXP_QP_TIMEOUT = IBV_QP_TIMEOUT,
	IBV_EXP_QP_RETRY_CNT = IBV_QP_RETRY_CNT,
	IBV_EXP_QP_RNR_RETRY = IBV_QP_RNR_RETRY,
	IBV_EXP_QP_RQ_PSN = IBV_QP_RQ_PSN,
	IBV_EXP_QP_MAX_QP_RD_ATOMIC = IBV_QP_MAX_QP_RD_ATOMIC,
	IBV_EXP_QP_ALT_PATH = IBV_QP_ALT_PATH,
	IBV_EXP_QP_MIN_RNR_TIMER = IBV_QP_MIN_RNR_TIMER,
	IBV_EXP_QP_SQ_PSN = IBV_QP_SQ_PSN,
	IBV_EXP_QP_MAX_DEST_RD_ATOMIC = IBV_QP_MAX_DEST_RD_ATOMIC,
	IBV_EXP_QP_PATH_MIG_STATE = IBV_QP_PATH_MIG_STATE,
	IBV_EXP_QP_CAP = IBV_QP_CAP,
	IBV_EXP_QP_DEST_QPN = IBV_QP_DEST_QPN,
	IBV_EXP_QP_GROUP_RSS = 1ULL << 53,
	IBV_EXP_QP_DC_KEY = 1ULL << 54,
	IBV_EXP_QP_FLOW_ENTROPY = 1ULL << 55,
	IBV_EXP_QP_OOO_RW_DATA_PLACEMENT = 1ULL << 56,
	IBV_EXP_QP_RATE_LIMIT = 1ULL << 57,
};

enum ibv_exp_qp_attr_comp_mask {
	IBV_EXP_QP_ATTR_FLOW_ENTROPY = 1 << 0,
	IBV_EXP_QP_ATTR_BURST_INFO = 1 << 1,
	IBV_EXP_QP_ATTR_RESERVED = 1 << 2,
};

struct ibv_exp_burst_info {
	uint32_t max_burst_sz;
	uint16_t typical_pkt_sz;
};

struct ibv_exp_qp_attr {
	enum ibv_qp_state qp_state;
	enum ibv_qp_state cur_qp_state;
	enum ibv_mtu path_mtu;
	enum ibv_mig_state path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	int qp_access_flags;
	struct ibv_qp_cap cap;
	struct ibv_ah_attr ah_attr;
	struct ibv_ah_attr alt_ah_attr;
	uint16_t pkey_index;
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint64_t dct_key;
	uint32_t comp_mask;
	uint32_t flow_entropy;
	uint32_t rate_limit;
	struct ibv_exp_burst_info burst_info;
};

enum ibv_exp_qp_create_flags {
	IBV_EXP_QP_CREATE_CROSS_CHANNEL = 1 << 2,
	IBV_EXP_QP_CREATE_MANAGED_SEND = 1 << 3,
	IBV_EXP_QP_CREATE_MANAGED_RECV = 1 << 4,
	IBV_EXP_QP_CREATE_IGNORE_SQ_OVERFLOW = 1 << 6,
	IBV_EXP_QP_CREATE_IGNORE_RQ_OVERFLOW = 1 << 7,
	IBV_EXP_QP_CREATE_ATOMIC_BE_REPLY = 1 << 8,
	IBV_EXP_QP_CREATE_UMR = 1 << 9,
	IBV_EXP_QP_CREATE_EC_PARITY_EN = 1 << 10,
	IBV_EXP_QP_CREATE_RX_END_PADDING = 1 << 11,
	IBV_EXP_QP_CREATE_SCATTER_FCS = 1 << 12,
	IBV_EXP_QP_CREATE_TUNNEL_OFFLOADS = 1 << 13,
	IBV_EXP_QP_CREATE_INTERNAL_USE = 1 << 15,
	IBV_EXP_QP_CREATE_PACKET_BASED_CREDIT_MODE = 1 << 16,
	IBV_EXP_QP_CREATE_MASK = 0x00013fdc,
};

enum ibv_exp_qp_init_attr_comp_mask {
	IBV_EXP_QP_INIT_ATTR_PD = 1 << 0,
	IBV_EXP_QP_INIT_ATTR_XRCD = 1 << 1,
	IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS = 1 << 2,
	IBV_EXP_QP_INIT_ATTR_INL_RECV = 1 << 3,
	IBV_EXP_QP_INIT_ATTR_QPG = 1 << 4,
	IBV_EXP_QP_INIT_ATTR_ATOMICS_ARG = 1 << 5,
	IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS = 1 << 6,
	IBV_EXP_QP_INIT_ATTR_RESERVED = 1 << 7,
	IBV_EXP_QP_INIT_ATTR_RES_DOMAIN = 1 << 7,
	IBV_EXP_QP_INIT_ATTR_RX_HASH = 1 << 8,
	IBV_EXP_QP_INIT_ATTR_PORT = 1 << 9,
	IBV_EXP_QP_INIT_ATTR_PEER_DIRECT = 1 << 10,
	IBV_EXP_QP_INIT_ATTR_MAX_TSO_HEADER = 1 << 11,
	IBV_EXP_QP_INIT_ATTR_ASSOCIATED_QPN = 1 << 12,
	IBV_EXP_QP_INIT_ATTR_RESERVED1 = 1 << 13,
};

enum ibv_exp_qpg_type {
	IBV_EXP_QPG_NONE = 0,
	IBV_EXP_QPG_PARENT = 1 << 0,
	IBV_EXP_QPG_CHILD_RX = 1 << 1,
	IBV_EXP_QPG_CHILD_TX = 1 << 2,
};

struct ibv_exp_qpg_init_attrib {
	uint32_t tss_child_count;
	uint32_t rss_child_count;
};

struct ibv_exp_qpg {
	uint32_t qpg_type;
	__extension__ union {
		struct ibv_qp *qpg_parent;
		struct ibv_exp_qpg_init_attrib parent_attrib;
	};
};

struct ibv_exp_res_domain;
struct ibv_exp_rx_hash_conf;
struct ibv_exp_peer_direct_attr;

struct ibv_exp_qp_init_attr {
	void *qp_context;
	struct ibv_cq *send_cq;
	struct ibv_cq *recv_cq;
	struct ibv_srq *srq;
	struct ibv_qp_cap cap;
	enum ibv_qp_type qp_type;
	int sq_sig_all;
	uint32_t comp_mask;
	struct ibv_pd *pd;
	struct ibv_xrcd *xrcd;
	uint32_t exp_create_flags;
	uint32_t max_inl_recv;
	struct ibv_exp_qpg qpg;
	uint32_t max_atomic_arg;
	uint32_t max_inl_send_klms; /* in: wanted; out: had */
	struct ibv_exp_res_domain *res_domain;
	struct ibv_exp_rx_hash_conf *rx_hash_conf;
	uint8_t port_num;
	struct ibv_exp_peer_direct_attr *peer_direct_attrs;
	uint16_t max_tso_header;
	uint32_t associated_qpn;
};

IBMR_EXP_EXPORT struct ibv_qp *ibv_exp_create_qp(struct ibv_context *context,
						 struct ibv_exp_qp_init_attr *attr);
IBMR_EXP_EXPORT int ibv_exp_modify_qp(struct ibv_qp *qp, struct ibv_exp_qp_attr *attr,
				      uint64_t exp_attr_mask);

/* ---- work requests ---------------------------------------------------------------------------- */

enum ibv_exp_calc_op {
	IBV_EXP_CALC_OP_ADD,
	IBV_EXP_CALC_OP_MAXLOC,
	IBV_EXP_CALC_OP_BAND,
	IBV_EXP_CALC_OP_BXOR,
	IBV_EXP_CALC_OP_BOR,
	IBV_EXP_CALC_OP_NUMBER,
};

enum ibv_exp_calc_data_type {
	IBV_EXP_CALC_DATA_TYPE_INT,
	IBV_EXP_CALC_DATA_TYPE_UINT,
	IBV_EXP_CALC_DATA_TYPE_FLOAT,
	IBV_EXP_CALC_DATA_TYPE_NUMBER,
};

enum ibv_exp_calc_data_size {
	IBV_EXP_CALC_DATA_SIZE_64_BIT,
	IBV_EXP_CALC_DATA_SIZE_NUMBER,
};

enum ibv_exp_wr_opcode {
	IBV_EXP_WR_RDMA_WRITE = IBV_WR_RDMA_WRITE,
	IBV_EXP_WR_RDMA_WRITE_WITH_IMM = IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_EXP_WR_SEND = IBV_WR_SEND,
	IBV_EXP_WR_SEND_WITH_IMM = IBV_WR_SEND_WITH_IMM,
	IBV_EXP_WR_RDMA_READ = IBV_WR_RDMA_READ,
	IBV_EXP_WR_ATOMIC_CMP_AND_SWP = IBV_WR_ATOMIC_CMP_AND_SWP,
	IBV_EXP_WR_ATOMIC_FETCH_AND_ADD = IBV_WR_ATOMIC_FETCH_AND_ADD,
	IBV_EXP_WR_LOCAL_INV = IBV_WR_LOCAL_INV,
	IBV_EXP_WR_BIND_MW = IBV_WR_BIND_MW,
	IBV_EXP_WR_SEND_WITH_INV = IBV_WR_SEND_WITH_INV,
	IBV_EXP_WR_TSO = 0x4f,
	IBV_EXP_WR_SEND_ENABLE = 0x60,
	IBV_EXP_WR_RECV_ENABLE,
	IBV_EXP_WR_CQE_WAIT,
	IBV_EXP_WR_EXT_MASKED_ATOMIC_CMP_AND_SWP,
	IBV_EXP_WR_EXT_MASKED_ATOMIC_FETCH_AND_ADD,
	IBV_EXP_WR_NOP,
	IBV_EXP_WR_UMR_FILL,
	IBV_EXP_WR_UMR_INVALIDATE,
};

__extension__ enum ibv_exp_send_flags {
	IBV_EXP_SEND_FENCE = IBV_SEND_FENCE,
	IBV_EXP_SEND_SIGNALED = IBV_SEND_SIGNALED,
	IBV_EXP_SEND_SOLICITED = IBV_SEND_SOLICITED,
	IBV_EXP_SEND_INLINE = IBV_SEND_INLINE, /* of a fill: its entries */
	IBV_EXP_SEND_IP_CSUM = 1ULL << 32,
	IBV_EXP_SEND_WITH_CALC = 1ULL << 33,
	IBV_EXP_SEND_WAIT_EN_LAST = 1ULL << 34,
	IBV_EXP_SEND_EXT_ATOMIC_INLINE = 1ULL << 35,
};

enum ibv_exp_bind_mw_comp_mask {
	IBV_EXP_BIND_MW_RESERVED = 1 << 0,
};

struct ibv_exp_mw_bind_info {
	struct ibv_mr *mr;
	uint64_t addr;
	uint64_t length;
	uint64_t exp_mw_access_flags;
};

struct ibv_exp_mw_bind {
	struct ibv_qp *qp;
	struct ibv_mw *mw;
	uint64_t wr_id;
	uint64_t exp_send_flags;
	struct ibv_exp_mw_bind_info bind_info;
	uint32_t comp_mask;
};

struct ibv_exp_cmp_swap {
	uint64_t compare_mask;
	uint64_t compare_val;
	uint64_t swap_val;
	uint64_t swap_mask;
};

struct ibv_exp_fetch_add {
	uint64_t add_val;
	uint64_t field_boundary;
};

/* An entry of a list. */
struct ibv_exp_mem_region {
	uint64_t base_addr;
	struct ibv_mr *mr;
	size_t length;
};

/* A block of a repeat. Arrays of stride_dim elements, which must be 1. */
struct ibv_exp_mem_repeat_block {
	uint64_t base_addr;
	struct ibv_mr *mr;
	size_t *byte_count;
	size_t *stride; /* start to start */
};

enum ibv_exp_umr_wr_type {
	IBV_EXP_UMR_MR_LIST,
	IBV_EXP_UMR_REPEAT,
	IBV_EXP_UMR_MR_LIST_FIXED_SIZE,
};

enum ibv_exp_send_wr_comp_mask {
	IBV_EXP_SEND_WR_ATTR_RESERVED = 1 << 0,
};

struct ibv_exp_send_wr {
	uint64_t wr_id;
	struct ibv_exp_send_wr *next;
	struct ibv_sge *sg_list;
	int num_sge;
	enum ibv_exp_wr_opcode exp_opcode;
	int reserved;
	union {
		uint32_t imm_data;
		uint32_t invalidate_rkey;
	} ex;
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
		struct {
			struct ibv_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey;
		} ud;
	} wr;
	__extension__ union {
		union {
			struct {
				uint32_t remote_srqn;
			} xrc;
		} qp_type;
		uint32_t xrc_remote_srq_num;
	};
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
		struct {
			struct ibv_cq *cq;
			int32_t cq_count;
		} cqe_wait;
		struct {
			struct ibv_qp *qp;
			int32_t wqe_count;
		} wqe_enable;
	} task;
	union {
		struct {
			enum ibv_exp_calc_op calc_op;
			enum ibv_exp_calc_data_type data_type;
			enum ibv_exp_calc_data_size data_size;
		} calc;
	} op;
	struct {
		struct ibv_ah *ah;
		uint64_t dct_access_key;
		uint32_t dct_number;
	} dc;
	__extension__ union {
		struct {
			struct ibv_mw *mw;
			uint32_t rkey;
			struct ibv_exp_mw_bind_info bind_info;
		} bind_mw;
		struct {
			void *hdr;
			uint16_t hdr_sz;
			uint16_t mss;
		} tso;
	};
	uint64_t exp_send_flags;
	uint32_t comp_mask;
	union {
		struct {
			uint32_t umr_type;
			struct ibv_exp_mkey_list_container *memory_objects; /* without INLINE */
			uint64_t exp_access;
			struct ibv_mr *modified_mr;
			uint64_t base_addr;
			uint32_t num_mrs;
			union {
				struct ibv_exp_mem_region *mem_reg_list;
				struct {
					struct ibv_exp_mem_repeat_block *mem_repeat_block_list;
					size_t *repeat_count;
					uint32_t stride_dim;
				} rb;
			} mem_list;
		} umr;
		struct {
			uint32_t log_arg_sz;
			uint64_t remote_addr;
			uint32_t rkey;
			union {
				struct {
					union {
						struct ibv_exp_cmp_swap cmp_swap;
						struct ibv_exp_fetch_add fetch_add;
					} op;
				} inline_data;
			} wr_data;
		} masked_atomics;
	} ext_op;
};

IBMR_EXP_EXPORT int ibv_exp_post_send(struct ibv_qp *qp, struct ibv_exp_send_wr *wr,
				      struct ibv_exp_send_wr **bad_wr);

/* ---- completions --------------------------------------------------------------------------------- */

enum ibv_exp_wc_opcode {
	IBV_EXP_WC_SEND,
	IBV_EXP_WC_RDMA_WRITE,
	IBV_EXP_WC_RDMA_READ,
	IBV_EXP_WC_COMP_SWAP,
	IBV_EXP_WC_FETCH_ADD,
	IBV_EXP_WC_BIND_MW,
	IBV_EXP_WC_LOCAL_INV,
	IBV_EXP_WC_MASKED_COMP_SWAP = 9,
	IBV_EXP_WC_MASKED_FETCH_ADD,
	IBV_EXP_WC_TSO,
	IBV_EXP_WC_UMR = 0x100, /* without the bit of IBV_EXP_WC_RECV */
	IBV_EXP_WC_RECV = 1 << 7,
	IBV_EXP_WC_RECV_RDMA_WITH_IMM,
	IBV_EXP_WC_TM_ADD = 0xc0,
	IBV_EXP_WC_TM_DEL,
	IBV_EXP_WC_TM_SYNC,
	IBV_EXP_WC_TM_RECV,
	IBV_EXP_WC_TM_NO_TAG,
	IBV_EXP_WC_RECV_NOP,
};

__extension__ enum ibv_exp_wc_flags {
	IBV_EXP_WC_GRH = IBV_WC_GRH,
	IBV_EXP_WC_WITH_IMM = IBV_WC_WITH_IMM,
	IBV_EXP_WC_WITH_INV = IBV_WC_WITH_INV,
	IBV_EXP_WC_WITH_SL = 1ULL << 36,
	IBV_EXP_WC_WITH_SLID = 1ULL << 37,
	IBV_EXP_WC_WITH_TIMESTAMP = 1ULL << 38,
	IBV_EXP_WC_QP = 1ULL << 39,
	IBV_EXP_WC_SRQ = 1ULL << 40,
	IBV_EXP_WC_DCT = 1ULL << 41,
};

struct ibv_exp_dct;

struct ibv_exp_wc {
	uint64_t wr_id;
	enum ibv_wc_status status;
	enum ibv_exp_wc_opcode exp_opcode;
	uint32_t vendor_err;
	__extension__ union {
		uint32_t byte_len;
		struct {
			uint16_t strides_offset;
			uint16_t byte_len;
		} mp_wr;
	};
	uint32_t imm_data;
	uint32_t qp_num;
	uint32_t src_qp;
	int reserved;
	uint16_t pkey_index;
	uint16_t slid;
	uint8_t sl;
	uint8_t dlid_path_bits;
	uint64_t timestamp;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_exp_dct *dct;
	uint64_t exp_wc_flags;
	struct {
		uint64_t tag;
		uint32_t priv;
	} tm_info;
};

/* wc_size: the size of one element of wc as the program was compiled. */
IBMR_EXP_EXPORT int ibv_exp_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_exp_wc *wc,
				    uint32_t wc_size);

enum ibv_exp_func_name {
	IBV_EXP_POST_SEND_FUNC,
	IBV_EXP_POLL_CQ_FUNC,
	IBV_POST_SEND_FUNC,
	IBV_POLL_CQ_FUNC,
	IBV_POST_RECV_FUNC,
};

IBMR_EXP_EXPORT void *ibv_exp_get_provider_func(struct ibv_context *context,
						enum ibv_exp_func_name name);

/* ---- the ordinary calls, as they are to be called on what these calls returned ------------------------ */

IBMR_EXP_EXPORT int ibmr_exp_dereg_mr(struct ibv_mr *mr);
IBMR_EXP_EXPORT int ibmr_exp_dealloc_pd(struct ibv_pd *pd);
IBMR_EXP_EXPORT struct ibv_qp *ibmr_exp_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
IBMR_EXP_EXPORT struct ibv_qp *ibmr_exp_create_qp_ex(struct ibv_context *context,
						     struct ibv_qp_init_attr_ex *attr);
IBMR_EXP_EXPORT int ibmr_exp_destroy_qp(struct ibv_qp *qp);
IBMR_EXP_EXPORT int ibmr_exp_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

/* IBMR_EXP_KEEP_VERBS leaves these names alone: then an MR of ibv_exp_create_mr(), a queue pair for UMR
 * and a PD that had either are given back by the calls above. */
#ifndef IBMR_EXP_KEEP_VERBS
#define ibv_dereg_mr	 ibmr_exp_dereg_mr
#define ibv_dealloc_pd	 ibmr_exp_dealloc_pd
#define ibv_create_qp	 ibmr_exp_create_qp
#define ibv_create_qp_ex ibmr_exp_create_qp_ex
#define ibv_destroy_qp	 ibmr_exp_destroy_qp
#define ibv_poll_cq	 ibmr_exp_poll_cq
#endif

#ifdef __cplusplus
}
#endif

#endif /* IBMR_VERBS_EXP_H */
