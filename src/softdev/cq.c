/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues: the object, the ring, arming. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "choices.h"
#include "caps.h"
#include "queue.h"

#define NOT_ARMED     0xffffffff
#define ARM_SOLICITED (1u << 24)
#define INDEX_MASK    0xffffff

struct sd_cq *sd_cqs;
static uint32_t last_cqn;

static bool cqn_used(uint32_t cqn)
{
	for (struct sd_cq *cq = sd_cqs; cq; cq = cq->next)
		if (cq->cqn == cqn)
			return true;
	return false;
}

static uint32_t round_up_pow2(uint32_t n)
{
	uint32_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

/* Is a ahead of b, counted in 24 bits? */
static bool ahead(uint32_t a, uint32_t b)
{
	uint32_t d = (a - b) & INDEX_MASK;

	return d && d < (INDEX_MASK + 1) / 2;
}

/* ---- commands ------------------------------------------------------------------ */

int sd_probe_ring(const void *buf, size_t size)
{
	uint8_t byte;

	if (sd_user_read(&byte, buf, 1) || sd_user_read(&byte, (const uint8_t *)buf + size - 1, 1))
		return -EFAULT;
	return 0;
}

static int cq_init(struct sd_cq *cq, const struct mlx5_ib_create_cq *ucmd, uint32_t cqe)
{
	uint32_t mark = NOT_ARMED;

	if (!cqe || cqe > SD_MAX_CQE || (ucmd->cqe_size != 64 && ucmd->cqe_size != 128) ||
	    ucmd->cqe_comp_en || ucmd->reserved0 || ucmd->reserved1)
		return -EINVAL;
	if (ucmd->flags &
	    ~(MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD | MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX |
	      MLX5_IB_CREATE_CQ_FLAGS_REAL_TIME_TS))
		return -EINVAL;
	cq->ncqe = round_up_pow2(cqe + 1);
	cq->cqe_size = ucmd->cqe_size;
	cq->buf = (uint8_t *)(uintptr_t)ucmd->buf_addr;
	cq->db = (uint32_t *)(uintptr_t)ucmd->db_addr;
	cq->fired = NOT_ARMED;
	if (ucmd->db_addr % 8 || sd_probe_ring(cq->buf, (size_t)cq->ncqe * cq->cqe_size))
		return -EFAULT;
	/* The first arm of all writes 0, which is also what the library leaves there unarmed. */
	return sd_user_write(&cq->db[1], &mark, sizeof(mark));
}

static void cq_link(struct sd_cq *cq)
{
	do {
		last_cqn = (last_cqn + 1) & INDEX_MASK;
	} while (!last_cqn || cqn_used(last_cqn));
	cq->cqn = last_cqn;
	cq->next = sd_cqs;
	cq->prev = &sd_cqs;
	if (sd_cqs)
		sd_cqs->prev = &cq->next;
	sd_cqs = cq;
}

int sd_cmd_cq_create(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	struct mlx5_ib_create_cq ucmd;
	struct mlx5_ib_create_cq_resp resp = { 0 };
	uint32_t cqe, vector, flags = 0, room;
	struct sd_cq *cq;
	int ret;

	if (!sd_attr_get(a, UVERBS_ATTR_UHW_IN, &ucmd, sizeof(ucmd)) ||
	    !sd_attr_get(a, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, sizeof(cqe)) ||
	    !sd_attr_get(a, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &vector, sizeof(vector)))
		return -EINVAL;
	sd_attr_get(a, UVERBS_ATTR_CREATE_CQ_FLAGS, &flags, sizeof(flags));
	if (vector >= SD_COMP_VECTORS ||
	    flags & ~(uint32_t)(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION |
				IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN))
		return -EINVAL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->ignore_overrun = flags & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN;
	ret = cq_init(cq, &ucmd, cqe);
	if (ret)
		goto free_cq;
	sd_attr_get(a, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &cq->obj.user_handle,
		    sizeof(cq->obj.user_handle));
	cq->obj.async = sd_attr_obj(a, UVERBS_ATTR_CREATE_CQ_EVENT_FD);
	cq->channel = sd_attr_obj(a, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL);
	ret = sd_obj_add(ctx, &cq->obj, SD_CQ);
	if (ret)
		goto free_cq;
	cq_link(cq);
	if (cq->channel)
		sd_channel_obj(cq->channel)->users++;
	resp.cqn = cq->cqn;
	room = cq->ncqe - 1;
	ret = sd_attr_put(a, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &room, sizeof(room));
	if (!ret)
		ret = sd_attr_put(a, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	if (!ret)
		ret = sd_attr_put_handle(a, UVERBS_ATTR_CREATE_CQ_HANDLE, cq->obj.handle);
	if (ret)
		sd_cq_free(&cq->obj);
	return ret;

free_cq:
	free(cq);
	return ret;
}

void sd_cq_free(struct sd_obj *obj)
{
	struct sd_cq *cq = (struct sd_cq *)obj;

	sd_forget_cq(cq);
	*cq->prev = cq->next;
	if (cq->next)
		cq->next->prev = cq->prev;
	if (cq->channel)
		sd_channel_obj(cq->channel)->users--;
	sd_obj_remove(obj);
	free(cq);
}

int sd_cmd_cq_destroy(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	struct sd_cq *cq = sd_attr_obj(a, UVERBS_ATTR_DESTROY_CQ_HANDLE);
	struct ib_uverbs_destroy_cq_resp resp = { 0 };

	if (cq->channel)
		resp.comp_events_reported = sd_channel_close(cq->channel, &cq->obj);
	resp.async_events_reported = sd_event_close(&cq->obj);
	sd_cq_free(&cq->obj);
	return sd_attr_put(a, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof(resp));
}

/* The last entry of the old ring says that it is the last; the library carries the others over. */
static int cq_move(struct sd_cq *cq, uint8_t *buf, uint32_t ncqe)
{
	uint32_t used = (cq->pi - sd_db_read(&cq->db[0])) & INDEX_MASK;
	struct sd_cqe last = { .cqe.op_own = MLX5_CQE_RESIZE_CQ << 4 };

	if (cq->broken || used >= cq->ncqe || used >= ncqe)
		return -EINVAL;
	sd_cq_write(cq, &last);
	cq->buf = buf;
	cq->ncqe = ncqe;
	return 0;
}

int sd_wr_resize_cq(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_resize_cq *cmd = w->in;
	const struct mlx5_ib_resize_cq *ucmd = w->uhw_in;
	struct ib_uverbs_resize_cq_resp resp = { 0 };
	struct sd_cq *cq = sd_obj_find(ctx, SD_CQ, cmd->cq_handle);
	uint8_t *buf;
	uint32_t ncqe;
	int ret;

	if (!cq || !cmd->cqe || cmd->cqe > SD_MAX_CQE || w->uhw_in_len < sizeof(*ucmd))
		return -EINVAL;
	if (ucmd->cqe_size != cq->cqe_size || ucmd->reserved0 || ucmd->reserved1)
		return -EINVAL;
	ncqe = round_up_pow2(cmd->cqe + 1);
	buf = (uint8_t *)(uintptr_t)ucmd->buf_addr;
	if (ncqe != cq->ncqe) {
		if (sd_probe_ring(buf, (size_t)ncqe * cq->cqe_size))
			return -EFAULT;
		ret = cq_move(cq, buf, ncqe);
		if (ret)
			return ret;
	}
	resp.cqe = ncqe - 1;
	return sd_write_out(w, &resp, sizeof(resp));
}

/* Moderation is accepted and changes nothing: events are never late here. */
int sd_wr_modify_cq(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_ex_modify_cq *cmd = w->in;

	if (!cmd->attr_mask || cmd->reserved)
		return -EINVAL;
	if (cmd->attr_mask > IBV_CQ_ATTR_MODERATE)
		return -EOPNOTSUPP;
	return sd_obj_find(ctx, SD_CQ, cmd->cq_handle) ? 0 : -EINVAL;
}

/* ---- the ring ----------------------------------------------------------------------- */

static void store64(uint8_t *to, const void *from)
{
	uint64_t w[8];

	memcpy(w, from, sizeof(w));
	for (unsigned int i = 0; i < 8; i++)
		__atomic_store_n((uint64_t *)to + i, w[i], __ATOMIC_RELAXED);
}

/* What an overrun leaves: a dead completion queue and dead queue pairs. */
static void cq_break(struct sd_cq *cq)
{
	cq->broken = true;
	sd_event(&cq->obj, IBV_EVENT_CQ_ERR);
	for (struct sd_qp *qp = sd_qps; qp; qp = qp->next) {
		if ((qp->send_cq != cq && qp->recv_cq != cq) || qp->state == IBV_QPS_ERR ||
		    qp->state == IBV_QPS_RESET)
			continue;
		sd_qp_fail(qp, IBV_QPS_ERR);
		sd_event(&qp->obj, IBV_EVENT_QP_FATAL);
	}
}

void sd_cq_write(struct sd_cq *cq, const struct sd_cqe *c)
{
	uint8_t *slot = cq->buf + (size_t)(cq->pi & (cq->ncqe - 1)) * cq->cqe_size;
	struct mlx5_cqe64 cqe = c->cqe;
	uint8_t own = cqe.op_own & ~MLX5_CQE_OWNER_MASK;

	if (cq->broken)
		return;
	if (((cq->pi - sd_db_read(&cq->db[0])) & INDEX_MASK) >= cq->ncqe && !cq->ignore_overrun) {
		cq_break(cq);
		return;
	}
	if (cq->cqe_size == 128) {
		if (c->scatter == 64)
			store64(slot, c->data);
		slot += 64;
	}
	if (c->scatter == 32)
		memcpy(&cqe, c->data, 32);
	if (c->scatter)
		own |= c->scatter == 64 ? MLX5_INLINE_SCATTER_64 : MLX5_INLINE_SCATTER_32;
	if (cq->pi & cq->ncqe)
		own |= MLX5_CQE_OWNER_MASK;
	/* The owner bit last: until then the entry is not the process's. */
	cqe.op_own = *(volatile uint8_t *)(slot + 63);
	store64(slot, &cqe);
	__atomic_store_n(slot + 63, own, __ATOMIC_RELEASE);
	cq->pi = (cq->pi + 1) & INDEX_MASK;
	if (c->solicited)
		cq->solicited = cq->pi;
	sd_cq_check_arm(cq);
}

void sd_cq_check_arm(struct sd_cq *cq)
{
	uint32_t arm, ci;

	if (!cq->channel)
		return;
	arm = sd_db_read(&cq->db[1]);
	if (arm == cq->fired)
		return;
	ci = arm & INDEX_MASK;
	if (!ahead(arm & ARM_SOLICITED ? cq->solicited : cq->pi, ci))
		return;
	cq->fired = arm;
	sd_channel_event(cq->channel, &cq->obj);
}

/* ---- entries ---------------------------------------------------------------------------- */

void sd_cqe_req(struct sd_cqe *c, const struct sd_qp *qp, uint8_t opcode, uint16_t index)
{
	/* member by member: for the whole a compiler takes a string instruction, which is slow to begin */
	memset(&c->cqe, 0, sizeof(c->cqe));
	memset(c->data, 0, sizeof(c->data));
	c->scatter = 0;
	c->solicited = false;
	c->cqe.srqn_uidx = htobe32(qp->uidx & 0xffffff);
	c->cqe.sop_drop_qpn = htobe32((uint32_t)opcode << 24 | qp->qpn);
	c->cqe.wqe_counter = htobe16(index);
	c->cqe.op_own = MLX5_CQE_REQ << 4;
}

static uint8_t vendor_error(uint8_t syndrome)
{
	switch (syndrome) {
	case MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR:
		return SD_CHOICE_VENDOR_LOC_LEN;
	case MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR:
		return SD_CHOICE_VENDOR_LOC_QP_OP;
	case MLX5_CQE_SYNDROME_LOCAL_PROT_ERR:
		return SD_CHOICE_VENDOR_LOC_PROT;
	case MLX5_CQE_SYNDROME_WR_FLUSH_ERR:
		return SD_CHOICE_VENDOR_FLUSH;
	case MLX5_CQE_SYNDROME_MW_BIND_ERR:
		return SD_CHOICE_VENDOR_MW_BIND;
	case MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR:
		return SD_CHOICE_VENDOR_REM_INV_REQ;
	case MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR:
		return SD_CHOICE_VENDOR_REM_ACCESS;
	case MLX5_CQE_SYNDROME_REMOTE_OP_ERR:
		return SD_CHOICE_VENDOR_REM_OP;
	case MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
		return SD_CHOICE_VENDOR_RETRY;
	case MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR:
		return SD_CHOICE_VENDOR_RNR;
	default:
		return 0;
	}
}

void sd_cqe_error(struct sd_cqe *c, const struct sd_qp *qp, bool responder, uint8_t syndrome,
		  uint8_t opcode, uint16_t index)
{
	struct mlx5_err_cqe *err = (struct mlx5_err_cqe *)&c->cqe;

	sd_cqe_req(c, qp, opcode, index);
	err->syndrome = syndrome;
	err->vendor_err_synd = vendor_error(syndrome);
	c->cqe.op_own = (responder ? MLX5_CQE_RESP_ERR : MLX5_CQE_REQ_ERR) << 4;
	c->solicited = true;
}
