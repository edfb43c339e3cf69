/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of someone else's, written to the experimental verbs: two pieces of memory as one, read back
 * through the loopback. Built by pkg-config alone; it says what it read. */
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static char memory[64] = "by experimental verbs, two pieces", got[16];

static void must(int ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

static void connect_self(struct ibv_context *context, struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct ibv_qp_attr rtr = { .qp_state = IBV_QPS_RTR,
				   .path_mtu = IBV_MTU_1024,
				   .dest_qp_num = qp->qp_num,
				   .max_dest_rd_atomic = 1,
				   .ah_attr = { .port_num = 1 } };
	struct ibv_qp_attr rts = { .qp_state = IBV_QPS_RTS,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .max_rd_atomic = 1 };
	struct ibv_port_attr port;

	must(!ibv_query_port(context, 1, &port), "ibv_query_port");
	rtr.ah_attr.dlid = port.lid;
	must(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	must(!ibv_modify_qp(qp, &rtr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				    IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	must(!ibv_modify_qp(qp, &rts,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

int main(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context = list && list[0] ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = context ? ibv_alloc_pd(context) : NULL;
	struct ibv_cq *cq = pd ? ibv_create_cq(context, 8, NULL, NULL, 0) : NULL;
	struct ibv_exp_qp_init_attr qp_attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { .max_send_wr = 2, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS |
			     IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS,
		.pd = pd,
		.exp_create_flags = IBV_EXP_QP_CREATE_UMR,
		.max_inl_send_klms = 4,
	};
	struct ibv_exp_reg_mr_in in = { .pd = pd,
					.addr = memory,
					.length = sizeof(memory),
					.exp_access = IBV_EXP_ACCESS_LOCAL_WRITE |
						      IBV_EXP_ACCESS_REMOTE_READ };
	struct ibv_exp_create_mr_in create = {
		.pd = pd,
		.attr = { .max_klm_list_size = 2, .create_flags = IBV_EXP_MR_INDIRECT_KLMS }
	};
	struct ibv_exp_mem_region pieces[2];
	struct ibv_exp_send_wr fill = { .exp_opcode = IBV_EXP_WR_UMR_FILL,
					.exp_send_flags = IBV_EXP_SEND_INLINE };
	struct ibv_exp_send_wr read = { .exp_opcode = IBV_EXP_WR_RDMA_READ,
					.exp_send_flags = IBV_EXP_SEND_SIGNALED },
			       *bad;
	struct ibv_mr *mr, *to, *umr;
	struct ibv_exp_wc wc;
	struct ibv_sge sge;
	struct ibv_qp *qp;

	must(cq != NULL, "a device");
	qp = ibv_exp_create_qp(context, &qp_attr);
	must(qp != NULL, "ibv_exp_create_qp");
	connect_self(context, qp);
	mr = ibv_exp_reg_mr(&in);
	in.addr = got;
	in.length = sizeof(got);
	to = ibv_exp_reg_mr(&in);
	umr = ibv_exp_create_mr(&create);
	must(mr && to && umr, "regions");
	pieces[0] = (struct ibv_exp_mem_region){ (uintptr_t)memory + 23, mr, 4 };
	pieces[1] = (struct ibv_exp_mem_region){ (uintptr_t)memory + 27, mr, 6 };
	fill.ext_op.umr.exp_access = in.exp_access;
	fill.ext_op.umr.modified_mr = umr;
	fill.ext_op.umr.num_mrs = 2;
	fill.ext_op.umr.mem_list.mem_reg_list = pieces;
	fill.next = &read;
	sge = (struct ibv_sge){ (uintptr_t)got, 10, to->lkey };
	read.sg_list = &sge;
	read.num_sge = 1;
	read.wr.rdma.rkey = umr->rkey;
	must(!ibv_exp_post_send(qp, &fill, &bad), "ibv_exp_post_send");
	while (!ibv_exp_poll_cq(cq, 1, &wc, sizeof(wc)))
		;
	must(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
	puts(got);
	must(!ibv_dereg_mr(umr) && !ibv_dereg_mr(mr) && !ibv_dereg_mr(to), "ibv_dereg_mr");
	must(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq), "ibv_destroy_qp");
	must(!ibv_dealloc_pd(pd) && !ibv_close_device(context), "ibv_dealloc_pd");
	ibv_free_device_list(list);
	return 0;
}
