/* SPDX-License-Identifier: BSD-2-Clause */
/* Completions: in the old form, and with the old word for UMRs in the ordinary one. */
#include "exp.h"

#include <errno.h>
#include <string.h>

#define BATCH 16

/* The typed request behind a UMR completes as one of the driver's own; the value has the bit by which
 * programs know receives. A program's own requests of that kind, on other queue pairs, keep it. */
static bool is_umr(const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	return wc->status == IBV_WC_SUCCESS && wc->opcode == IBV_WC_DRIVER1 &&
	       ibmri_exp_find(IBMRI_EXP_QP, cq->context, wc->qp_num);
}

int ibmr_exp_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	int n = ibv_poll_cq(cq, num_entries, wc), i;

	for (i = 0; i < n; i++)
		if (is_umr(cq, &wc[i]))
			wc[i].opcode = (enum ibv_wc_opcode)IBV_EXP_WC_UMR;
	return n;
}

static enum ibv_exp_wc_opcode exp_opcode(const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	if (is_umr(cq, wc))
		return IBV_EXP_WC_UMR;
	if (wc->opcode == IBV_WC_TSO)
		return IBV_EXP_WC_TSO;
	return (enum ibv_exp_wc_opcode)wc->opcode; /* the others have the same values */
}

static struct ibv_exp_wc to_exp(const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	return (struct ibv_exp_wc){
		.wr_id = wc->wr_id,
		.status = wc->status,
		.exp_opcode = exp_opcode(cq, wc),
		.vendor_err = wc->vendor_err,
		.byte_len = wc->byte_len,
		.imm_data = wc->imm_data,
		.qp_num = wc->qp_num,
		.src_qp = wc->src_qp,
		.pkey_index = wc->pkey_index,
		.slid = wc->slid,
		.sl = wc->sl,
		.dlid_path_bits = wc->dlid_path_bits,
		.exp_wc_flags = wc->wc_flags & (IBV_WC_GRH | IBV_WC_WITH_IMM | IBV_WC_WITH_INV),
	};
}

/* wc_size is the distance of the elements: a program of another release has others. */
int ibv_exp_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_exp_wc *wc, uint32_t wc_size)
{
	size_t bytes = wc_size < sizeof(*wc) ? wc_size : sizeof(*wc);
	struct ibv_wc batch[BATCH];
	char *to = (char *)wc;
	int done = 0, want, n, i;

	while (done < num_entries) {
		want = num_entries - done < BATCH ? num_entries - done : BATCH;
		n = ibv_poll_cq(cq, want, batch);
		if (n < 0)
			return done ? done : n;
		for (i = 0; i < n; i++, to += wc_size) {
			struct ibv_exp_wc one = to_exp(cq, &batch[i]);

			memset(to, 0, wc_size);
			memcpy(to, &one, bytes);
		}
		done += n;
		if (n < want)
			break;
	}
	return done;
}
