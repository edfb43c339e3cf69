/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ibv_exp_query_device() answers. Included by verbs_exp.h; see there for where names, values and
 * sizes are from. libibmr fills the members whose comp_mask bits libibmr-exp(7) lists and leaves the
 * others as they are.
 */
#ifndef IBMR_VERBS_EXP_H
#include <infiniband/verbs_exp.h> /* which includes this file where it belongs */
#endif

#ifndef IBMR_VERBS_EXP_DEVICE_H
#define IBMR_VERBS_EXP_DEVICE_H

enum ibv_exp_atomic_cap {
	IBV_EXP_ATOMIC_NONE = IBV_ATOMIC_NONE,
	IBV_EXP_ATOMIC_HCA = IBV_ATOMIC_HCA,
	IBV_EXP_ATOMIC_GLOB = IBV_ATOMIC_GLOB,
	IBV_EXP_ATOMIC_HCA_REPLY_BE = IBV_EXP_START_ENUM,
};

/* In exp_device_cap_flags. */
__extension__ enum ibv_exp_device_cap_flags {
	IBV_EXP_DEVICE_RESIZE_MAX_WR = IBV_DEVICE_RESIZE_MAX_WR,
	IBV_EXP_DEVICE_BAD_PKEY_CNTR = IBV_DEVICE_BAD_PKEY_CNTR,
	IBV_EXP_DEVICE_BAD_QKEY_CNTR = IBV_DEVICE_BAD_QKEY_CNTR,
	IBV_EXP_DEVICE_RAW_MULTI = IBV_DEVICE_RAW_MULTI,
	IBV_EXP_DEVICE_AUTO_PATH_MIG = IBV_DEVICE_AUTO_PATH_MIG,
	IBV_EXP_DEVICE_CHANGE_PHY_PORT = IBV_DEVICE_CHANGE_PHY_PORT,
	IBV_EXP_DEVICE_UD_AV_PORT_ENFORCE = IBV_DEVICE_UD_AV_PORT_ENFORCE,
	IBV_EXP_DEVICE_CURR_QP_STATE_MOD = IBV_DEVICE_CURR_QP_STATE_MOD,
	IBV_EXP_DEVICE_SHUTDOWN_PORT = IBV_DEVICE_SHUTDOWN_PORT,
	IBV_EXP_DEVICE_INIT_TYPE = IBV_DEVICE_INIT_TYPE,
	IBV_EXP_DEVICE_PORT_ACTIVE_EVENT = IBV_DEVICE_PORT_ACTIVE_EVENT,
	IBV_EXP_DEVICE_SYS_IMAGE_GUID = IBV_DEVICE_SYS_IMAGE_GUID,
	IBV_EXP_DEVICE_RC_RNR_NAK_GEN = IBV_DEVICE_RC_RNR_NAK_GEN,
	IBV_EXP_DEVICE_SRQ_RESIZE = IBV_DEVICE_SRQ_RESIZE,
	IBV_EXP_DEVICE_N_NOTIFY_CQ = IBV_DEVICE_N_NOTIFY_CQ,
	IBV_EXP_DEVICE_XRC = IBV_DEVICE_XRC,
	IBV_EXP_DEVICE_DC_TRANSPORT = 1ULL << 32,
	IBV_EXP_DEVICE_QPG = 1ULL << 33,
	IBV_EXP_DEVICE_UD_RSS = 1ULL << 34,
	IBV_EXP_DEVICE_UD_TSS = 1ULL << 35,
	IBV_EXP_DEVICE_EXT_ATOMICS = 1ULL << 36,
	IBV_EXP_DEVICE_NOP = 1ULL << 37,
	IBV_EXP_DEVICE_UMR = 1ULL << 38,
	IBV_EXP_DEVICE_ODP = 1ULL << 39,
	IBV_EXP_DEVICE_VXLAN_SUPPORT = 1ULL << 42,
	IBV_EXP_DEVICE_RX_CSUM_TCP_UDP_PKT = 1ULL << 43,
	IBV_EXP_DEVICE_RX_CSUM_IP_PKT = 1ULL << 44,
	IBV_EXP_DEVICE_EC_OFFLOAD = 1ULL << 45,
	IBV_EXP_DEVICE_EXT_MASKED_ATOMICS = 1ULL << 46,
	IBV_EXP_DEVICE_RX_TCP_UDP_PKT_TYPE = 1ULL << 47,
	IBV_EXP_DEVICE_SCATTER_FCS = 1ULL << 48,
	IBV_EXP_DEVICE_MEM_WINDOW = 1ULL << 49,
	IBV_EXP_DEVICE_WQ_DELAY_DROP = 1ULL << 50,
	IBV_EXP_DEVICE_PHYSICAL_RANGE_MR = 1ULL << 51,
	IBV_EXP_DEVICE_CAPI = 1ULL << 52,
	IBV_EXP_DEVICE_MEM_MGT_EXTENSIONS = 1ULL << 53,
	IBV_EXP_DEVICE_DC_INFO = 1ULL << 54,
	IBV_EXP_DEVICE_MW_TYPE_2A = 1ULL << 55,
	IBV_EXP_DEVICE_MW_TYPE_2B = 1ULL << 56,
	IBV_EXP_DEVICE_UMR_FIXED_SIZE = 1ULL << 57,
	IBV_EXP_DEVICE_PACKET_BASED_CREDIT_MODE = 1ULL << 58,
	IBV_EXP_DEVICE_CROSS_CHANNEL = 1ULL << 60,
	IBV_EXP_DEVICE_MANAGED_FLOW_STEERING = 1ULL << 61,
	IBV_EXP_DEVICE_MR_ALLOCATE = 1ULL << 62,
	IBV_EXP_DEVICE_SHARED_MR = 1ULL << 63,
};

/* Bits of comp_mask: in, the members wanted; out, those that were filled. */
enum ibv_exp_device_attr_comp_mask {
	IBV_EXP_DEVICE_ATTR_CALC_CAP = 1 << 0,
	IBV_EXP_DEVICE_ATTR_WITH_TIMESTAMP_MASK = 1 << 1,
	IBV_EXP_DEVICE_ATTR_WITH_HCA_CORE_CLOCK = 1 << 2,
	IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS = 1 << 3,
	IBV_EXP_DEVICE_DC_RD_REQ = 1 << 4,
	IBV_EXP_DEVICE_DC_RD_RES = 1 << 5,
	IBV_EXP_DEVICE_ATTR_INLINE_RECV_SZ = 1 << 6,
	IBV_EXP_DEVICE_ATTR_RSS_TBL_SZ = 1 << 7,
	IBV_EXP_DEVICE_ATTR_EXT_ATOMIC_ARGS = 1 << 8,
	IBV_EXP_DEVICE_ATTR_UMR = 1 << 9,
	IBV_EXP_DEVICE_ATTR_ODP = 1 << 10,
	IBV_EXP_DEVICE_ATTR_MAX_DCT = 1 << 11,
	IBV_EXP_DEVICE_ATTR_MAX_CTX_RES_DOMAIN = 1 << 12,
	IBV_EXP_DEVICE_ATTR_RX_HASH = 1 << 13,
	IBV_EXP_DEVICE_ATTR_MAX_WQ_TYPE_RQ = 1 << 14,
	IBV_EXP_DEVICE_ATTR_MAX_DEVICE_CTX = 1 << 15,
	IBV_EXP_DEVICE_ATTR_MP_RQ = 1 << 16,
	IBV_EXP_DEVICE_ATTR_VLAN_OFFLOADS = 1 << 17,
	IBV_EXP_DEVICE_ATTR_EC_CAPS = 1 << 18,
	IBV_EXP_DEVICE_ATTR_MASKED_ATOMICS = 1 << 19,
	IBV_EXP_DEVICE_ATTR_RX_PAD_END_ALIGN = 1 << 20,
	IBV_EXP_DEVICE_ATTR_TSO_CAPS = 1 << 21,
	IBV_EXP_DEVICE_ATTR_PACKET_PACING_CAPS = 1 << 22,
	IBV_EXP_DEVICE_ATTR_EC_GF_BASE = 1 << 23,
	IBV_EXP_DEVICE_ATTR_OOO_CAPS = 1 << 24,
	IBV_EXP_DEVICE_ATTR_SW_PARSING_CAPS = 1 << 25,
	IBV_EXP_DEVICE_ATTR_ODP_MAX_SIZE = 1 << 26,
	IBV_EXP_DEVICE_ATTR_TM_CAPS = 1 << 27,
	IBV_EXP_DEVICE_ATTR_TUNNEL_OFFLOADS_CAPS = 1 << 28,
	IBV_EXP_DEVICE_ATTR_MAX_DM_SIZE = 1 << 29,
	IBV_EXP_DEVICE_ATTR_TUNNELED_ATOMIC = 1 << 30,
	IBV_EXP_DEVICE_ATTR_COMP_MASK_2 = -2147483647 - 1, /* bit 31, negative as it was */
};
#define IBV_EXP_DEVICE_ATTR_RESERVED (1ULL << 32)

/* Bits of comp_mask_2, which counts when IBV_EXP_DEVICE_ATTR_COMP_MASK_2 is set. */
enum ibv_exp_device_attr_comp_mask_2 {
	IBV_EXP_DEVICE_ATTR_UMR_FIXED_SIZE_CAPS = 1 << 0,
	IBV_EXP_DEVICE_ATTR_PCI_ATOMIC_CAPS = 1 << 1,
	IBV_EXP_DEVICE_ATTR_RESERVED_2 = 1 << 2,
};

enum ibv_odp_general_cap_bits {
	IBV_EXP_ODP_SUPPORT = 1 << 0,
	IBV_EXP_ODP_SUPPORT_IMPLICIT = 1 << 1,
};

enum ibv_exp_odp_transport_cap_bits {
	IBV_EXP_ODP_SUPPORT_SEND = 1 << 0,
	IBV_EXP_ODP_SUPPORT_RECV = 1 << 1,
	IBV_EXP_ODP_SUPPORT_WRITE = 1 << 2,
	IBV_EXP_ODP_SUPPORT_READ = 1 << 3,
	IBV_EXP_ODP_SUPPORT_ATOMIC = 1 << 4,
	IBV_EXP_ODP_SUPPORT_SRQ_RECV = 1 << 5,
};

enum ibv_exp_ooo_transport_cap_bits {
	IBV_EXP_OOO_SUPPORT_RW_DATA_PLACEMENT = 1 << 0,
};

enum ibv_exp_tm_cap_flags {
	IBV_EXP_TM_CAP_RC = 1 << 0,
	IBV_EXP_TM_CAP_DC = 1 << 1,
};

struct ibv_exp_device_calc_cap {
	uint64_t data_types;
	uint64_t data_sizes;
	uint64_t int_ops;
	uint64_t uint_ops;
	uint64_t fp_ops;
};

struct ibv_exp_ext_atomics_params {
	uint64_t log_atomic_arg_sizes;
	uint32_t max_fa_bit_boundary;
	uint32_t log_max_atomic_inline;
};

struct ibv_exp_masked_atomic_params {
	uint32_t max_fa_bit_boundary;
	uint32_t log_max_atomic_inline;
	uint64_t masked_log_atomic_arg_sizes;
	uint64_t masked_log_atomic_arg_sizes_network_endianness;
};

struct ibv_exp_umr_caps {
	uint32_t max_klm_list_size;
	uint32_t max_send_wqe_inline_klms;
	uint32_t max_umr_recursion_depth;
	uint32_t max_umr_stride_dimension;
};

struct ibv_exp_umr_fixed_size_caps {
	uint64_t max_entity_size;
};

struct ibv_exp_odp_caps {
	uint64_t general_odp_caps;
	struct {
		uint32_t rc_odp_caps;
		uint32_t uc_odp_caps;
		uint32_t ud_odp_caps;
		uint32_t dc_odp_caps;
		uint32_t xrc_odp_caps;
		uint32_t raw_eth_odp_caps;
	} per_transport_caps;
};

struct ibv_exp_rx_hash_caps {
	uint32_t max_rwq_indirection_tables;
	uint32_t max_rwq_indirection_table_size;
	uint8_t supported_hash_functions;
	uint64_t supported_packet_fields;
	uint32_t supported_qps;
};

struct ibv_exp_mp_rq_caps {
	uint32_t supported_qps;
	uint32_t allowed_shifts;
	uint8_t min_single_wqe_log_num_of_strides;
	uint8_t max_single_wqe_log_num_of_strides;
	uint8_t min_single_stride_log_num_of_bytes;
	uint8_t max_single_stride_log_num_of_bytes;
};

struct ibv_exp_ec_caps {
	uint32_t max_ec_data_vector_count;
	uint32_t max_ec_calc_inflight_calcs;
};

struct ibv_exp_tso_caps {
	uint32_t max_tso;
	uint32_t supported_qpts;
};

struct ibv_exp_packet_pacing_caps {
	uint32_t qp_rate_limit_min;
	uint32_t qp_rate_limit_max;
	uint32_t supported_qpts;
	uint8_t cap_flags;
	uint8_t reserved[3];
};

struct ibv_exp_ooo_caps {
	uint32_t rc_caps;
	uint32_t xrc_caps;
	uint32_t dc_caps;
	uint32_t ud_caps;
};

struct ibv_exp_sw_parsing_caps {
	uint32_t sw_parsing_offloads;
	uint32_t supported_qpts;
};

struct ibv_exp_tm_caps {
	uint32_t max_rndv_hdr_size;
	uint32_t max_num_tags;
	uint32_t capability_flags;
	uint32_t max_ops;
	uint32_t max_sge;
};

struct ibv_exp_pci_atomic_caps {
	uint16_t fetch_add;
	uint16_t swap;
	uint16_t compare_swap;
};

struct ibv_exp_device_attr {
	char fw_ver[64];
	uint64_t node_guid;
	uint64_t sys_image_guid;
	uint64_t max_mr_size;
	uint64_t page_size_cap;
	uint32_t vendor_id;
	uint32_t vendor_part_id;
	uint32_t hw_ver;
	int max_qp;
	int max_qp_wr;
	int reserved;
	int max_sge;
	int max_sge_rd;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_qp_rd_atom;
	int max_ee_rd_atom;
	int max_res_rd_atom;
	int max_qp_init_rd_atom;
	int max_ee_init_rd_atom;
	enum ibv_exp_atomic_cap exp_atomic_cap;
	int max_ee;
	int max_rdd;
	int max_mw;
	int max_raw_ipv6_qp;
	int max_raw_ethy_qp;
	int max_mcast_grp;
	int max_mcast_qp_attach;
	int max_total_mcast_qp_attach;
	int max_ah;
	int max_fmr;
	int max_map_per_fmr;
	int max_srq;
	int max_srq_wr;
	int max_srq_sge;
	uint16_t max_pkeys;
	uint8_t local_ca_ack_delay;
	uint8_t phys_port_cnt;
	uint32_t comp_mask;
	struct ibv_exp_device_calc_cap calc_cap;
	uint64_t timestamp_mask;
	uint64_t hca_core_clock;
	uint64_t exp_device_cap_flags;
	int max_dc_req_rd_atom;
	int max_dc_res_rd_atom;
	int inline_recv_sz;
	uint32_t max_rss_tbl_sz;
	struct ibv_exp_ext_atomics_params ext_atom;
	struct ibv_exp_umr_caps umr_caps;
	struct ibv_exp_odp_caps odp_caps;
	int max_dct;
	int max_ctx_res_domain;
	struct ibv_exp_rx_hash_caps rx_hash_caps;
	uint32_t max_wq_type_rq;
	int max_device_ctx;
	struct ibv_exp_mp_rq_caps mp_rq_caps;
	uint16_t wq_vlan_offloads_cap;
	struct ibv_exp_ec_caps ec_caps;
	struct ibv_exp_masked_atomic_params masked_atomic;
	int rx_pad_end_addr_align;
	struct ibv_exp_tso_caps tso_caps;
	struct ibv_exp_packet_pacing_caps packet_pacing_caps;
	uint32_t ec_w_mask;
	struct ibv_exp_ooo_caps ooo_caps;
	struct ibv_exp_sw_parsing_caps sw_parsing_caps;
	uint64_t odp_mr_max_size;
	struct ibv_exp_tm_caps tm_caps;
	uint32_t tunnel_offloads_caps;
	uint64_t max_dm_size;
	uint32_t tunneled_atomic_caps;
	uint64_t comp_mask_2;
	struct ibv_exp_umr_fixed_size_caps umr_fixed_size_caps;
	struct ibv_exp_pci_atomic_caps pci_atomic_caps;
};

#endif /* IBMR_VERBS_EXP_DEVICE_H */
