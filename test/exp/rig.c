/* SPDX-License-Identifier: BSD-2-Clause */
#include "rig.h"

#include <time.h>

#define DEADLINE_S  10
#define QUIET_POLLS 2000

struct rig rig;

/* ---- soft0 ------------------------------------------------------------------------ */

void rig_word(const char *word, const char *value)
{
	if (soft0_set(word, value))
		fail_msg("soft0 knows no %s=%s", word, value);
}

uint64_t rig_counter(const char *name)
{
	uint64_t value = 0;

	assert_int_equal(soft0_counter(name, &value), 0);
	return value;
}

/* soft0_reset() forgets what the environment asked for. */
static void environment_again(void)
{
	const char *env = getenv("IBMR_SOFT0");
	char words[256], *word, *save;

	soft0_reset();
	snprintf(words, sizeof(words), "%s", env ? env : "");
	for (word = strtok_r(words, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		if (value) {
			*value++ = '\0';
			rig_word(word, value);
		}
	}
}

/* ---- objects ------------------------------------------------------------------------ */

struct ibv_qp *rig_umr_qp(uint32_t wrs, uint32_t klms, int sig_all)
{
	struct ibv_exp_qp_init_attr attr = {
		.send_cq = rig.cq,
		.recv_cq = rig.cq,
		.cap = { .max_send_wr = wrs,
			 .max_recv_wr = 16,
			 .max_send_sge = 2,
			 .max_recv_sge = 2 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = sig_all,
		.comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS |
			     IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS,
		.pd = rig.pd,
		.exp_create_flags = IBV_EXP_QP_CREATE_UMR,
		.max_inl_send_klms = klms,
	};
	struct ibv_qp *qp = ibv_exp_create_qp(rig.context, &attr);

	assert_non_null(qp);
	assert_int_equal(attr.max_inl_send_klms, klms);
	assert_true(attr.cap.max_send_wr >= wrs);
	return qp;
}

void rig_connect(struct ibv_qp *qp, struct ibv_qp *to)
{
	struct ibv_port_attr port;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	assert_int_equal(ibv_query_port(rig.context, 1, &port), 0);
	assert_int_equal(
		ibv_modify_qp(qp, &attr,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
		0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_1024,
				     .dest_qp_num = to->qp_num,
				     .max_dest_rd_atomic = 1,
				     .min_rnr_timer = 12,
				     .ah_attr = { .port_num = 1, .dlid = port.lid } };
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.hop_limit = 64;
		assert_int_equal(ibv_query_gid(rig.context, 1, 0, &attr.ah_attr.grh.dgid), 0);
	}
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
			 0);
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .timeout = 14,
				     .retry_cnt = 7,
				     .rnr_retry = 7,
				     .max_rd_atomic = 1 };
	assert_int_equal(ibv_modify_qp(qp, &attr,
				       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					       IBV_QP_MAX_QP_RD_ATOMIC),
			 0);
}

int rig_setup_bare(void **state)
{
	struct ibv_device **list;
	int i;

	environment_again();
	memset(&rig, 0, sizeof(rig));
	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	for (i = 0; list[i]; i++)
		if (!strcmp(ibv_get_device_name(list[i]), "soft0"))
			rig.context = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	assert_non_null(rig.context);
	rig.pd = ibv_alloc_pd(rig.context);
	rig.cq = ibv_create_cq(rig.context, 256, NULL, NULL, 0);
	assert_non_null(rig.pd);
	assert_non_null(rig.cq);
	return 0;
}

int rig_setup(void **state)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC,
					 .cap = { .max_send_wr = 16,
						  .max_recv_wr = 16,
						  .max_send_sge = 2,
						  .max_recv_sge = 2 } };

	rig_setup_bare(state);
	attr.send_cq = attr.recv_cq = rig.cq;
	rig.qp = rig_umr_qp(16, 20, 0);
	rig.peer = ibv_create_qp(rig.pd, &attr);
	assert_non_null(rig.peer);
	rig_connect(rig.qp, rig.peer);
	rig_connect(rig.peer, rig.qp);
	return 0;
}

int rig_teardown(void **state)
{
	static const char *const live[] = { "live.mr", "live.mkey", "live.qp",
					    "live.cq", "live.pd",   "live.context" };
	size_t i;

	if (rig.qp)
		assert_int_equal(ibv_destroy_qp(rig.qp), 0);
	if (rig.peer)
		assert_int_equal(ibv_destroy_qp(rig.peer), 0);
	assert_int_equal(ibv_destroy_cq(rig.cq), 0);
	if (rig.pd)
		assert_int_equal(ibv_dealloc_pd(rig.pd), 0);
	assert_int_equal(ibv_close_device(rig.context), 0);
	for (i = 0; i < sizeof(live) / sizeof(live[0]); i++)
		if (rig_counter(live[i]))
			fail_msg("%s is %llu at the end", live[i],
				 (unsigned long long)rig_counter(live[i]));
	return 0;
}

struct ibv_mr *rig_reg(void *addr, size_t length, uint64_t access)
{
	struct ibv_exp_reg_mr_in in = {
		.pd = rig.pd, .addr = addr, .length = length, .exp_access = access
	};
	struct ibv_mr *mr = ibv_exp_reg_mr(&in);

	if (!mr)
		fail_msg("ibv_exp_reg_mr: %s", strerror(errno));
	return mr;
}

struct ibv_mr *rig_create(uint32_t klms)
{
	struct ibv_exp_create_mr_in in = { .pd = rig.pd };
	struct ibv_mr *mr;

	in.attr.max_klm_list_size = klms;
	in.attr.create_flags = IBV_EXP_MR_INDIRECT_KLMS;
	in.attr.exp_access_flags = IBV_EXP_ACCESS_LOCAL_WRITE;
	mr = ibv_exp_create_mr(&in);
	if (!mr)
		fail_msg("ibv_exp_create_mr: %s", strerror(errno));
	return mr;
}

struct ibv_exp_mkey_list_container *rig_list(uint32_t klms)
{
	struct ibv_exp_mkey_list_container_attr attr = {
		.pd = rig.pd,
		.mkey_list_type = IBV_EXP_MKEY_LIST_TYPE_INDIRECT_MR,
		.max_klm_list_size = klms,
	};
	struct ibv_exp_mkey_list_container *list = ibv_exp_alloc_mkey_list_memory(&attr);

	assert_non_null(list);
	assert_int_equal(list->max_klm_list_size, klms);
	assert_ptr_equal(list->context, rig.context);
	return list;
}

void rig_dereg(struct ibv_mr *mr)
{
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* ---- UMRs ---------------------------------------------------------------------------- */

struct ibv_exp_send_wr rig_fill(struct ibv_mr *umr, uint64_t base, uint64_t access)
{
	struct ibv_exp_send_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = 0xf111;
	wr.exp_opcode = IBV_EXP_WR_UMR_FILL;
	wr.exp_send_flags = IBV_EXP_SEND_SIGNALED | IBV_EXP_SEND_INLINE;
	wr.ext_op.umr.exp_access = access;
	wr.ext_op.umr.modified_mr = umr;
	wr.ext_op.umr.base_addr = base;
	return wr;
}

void rig_set_list(struct ibv_exp_send_wr *wr, struct ibv_exp_mem_region *regions, uint32_t num)
{
	wr->ext_op.umr.umr_type = IBV_EXP_UMR_MR_LIST;
	wr->ext_op.umr.num_mrs = num;
	wr->ext_op.umr.mem_list.mem_reg_list = regions;
}

void rig_set_repeat(struct ibv_exp_send_wr *wr, struct ibv_exp_mem_repeat_block *blocks,
		    uint32_t num, size_t *count)
{
	wr->ext_op.umr.umr_type = IBV_EXP_UMR_REPEAT;
	wr->ext_op.umr.num_mrs = num;
	wr->ext_op.umr.mem_list.rb.mem_repeat_block_list = blocks;
	wr->ext_op.umr.mem_list.rb.repeat_count = count;
	wr->ext_op.umr.mem_list.rb.stride_dim = 1;
}

int rig_post(struct ibv_qp *qp, struct ibv_exp_send_wr *wr)
{
	struct ibv_exp_send_wr *bad = NULL;
	int ret = ibv_exp_post_send(qp, wr, &bad);

	assert_true(!ret == !bad);
	return ret;
}

void rig_do(struct ibv_qp *qp, struct ibv_exp_send_wr *wr)
{
	int ret = rig_post(qp, wr);

	if (ret)
		fail_msg("ibv_exp_post_send: %s", strerror(ret));
	rig_done(wr->wr_id, IBV_EXP_WC_UMR);
}

void rig_invalidate(struct ibv_qp *qp, struct ibv_mr *umr)
{
	struct ibv_exp_send_wr wr;

	memset(&wr, 0, sizeof(wr));
	wr.wr_id = 0xdead;
	wr.exp_opcode = IBV_EXP_WR_UMR_INVALIDATE;
	wr.exp_send_flags = IBV_EXP_SEND_SIGNALED;
	wr.ext_op.umr.modified_mr = umr;
	rig_do(qp, &wr);
}

/* ---- completions and data ---------------------------------------------------------------- */

struct ibv_exp_wc rig_poll(void)
{
	struct timespec start, now;
	struct ibv_exp_wc wc;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		n = ibv_exp_poll_cq(rig.cq, 1, &wc, sizeof(wc));
		assert_true(n >= 0);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!n && now.tv_sec - start.tv_sec < DEADLINE_S);
	if (!n)
		fail_msg("no completion within %d s", DEADLINE_S);
	return wc;
}

void rig_quiet(void)
{
	struct ibv_exp_wc wc;
	int i;

	for (i = 0; i < QUIET_POLLS; i++)
		assert_int_equal(ibv_exp_poll_cq(rig.cq, 1, &wc, sizeof(wc)), 0);
}

void rig_done(uint64_t wr_id, enum ibv_exp_wc_opcode opcode)
{
	struct ibv_exp_wc wc = rig_poll();

	if (wc.status)
		fail_msg("completion 0x%llx: %s", (unsigned long long)wc.wr_id,
			 ibv_wc_status_str(wc.status));
	assert_int_equal(wc.wr_id, wr_id);
	assert_int_equal(wc.exp_opcode, opcode);
}

void rig_post_recv(struct ibv_qp *qp, uint64_t addr, uint32_t length, uint32_t lkey, uint64_t wr_id)
{
	struct ibv_sge sge = { addr, length, lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	assert_int_equal(ibv_post_recv(qp, &wr, &bad), 0);
}

void rig_post_send(struct ibv_qp *qp, uint64_t addr, uint32_t length, uint32_t lkey, uint64_t wr_id)
{
	struct ibv_sge sge = { addr, length, lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
}

enum ibv_wc_status rig_rdma(struct ibv_qp *qp, enum ibv_wr_opcode opcode, void *local,
			    uint32_t length, uint64_t remote, uint32_t rkey)
{
	struct ibv_mr *mr = rig_reg(local, length, ALL);
	struct ibv_sge sge = { (uintptr_t)local, length, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 0xd0,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;
	struct ibv_exp_wc wc;

	wr.wr.rdma.remote_addr = remote;
	wr.wr.rdma.rkey = rkey;
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	wc = rig_poll();
	assert_int_equal(wc.wr_id, 0xd0);
	rig_dereg(mr);
	return wc.status;
}
