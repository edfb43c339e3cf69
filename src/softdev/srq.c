/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared receive queues: the object and its commands. */
#include <errno.h>
#include <stdlib.h>

#include "caps.h"
#include "queue.h"

struct sd_srq *sd_srqs;
static uint32_t last_srqn;

static bool srqn_used(uint32_t srqn)
{
	for (struct sd_srq *srq = sd_srqs; srq; srq = srq->next)
		if (srq->srqn == srqn)
			return true;
	return false;
}

static void srq_link(struct sd_srq *srq)
{
	do {
		last_srqn = (last_srqn + 1) & 0xffffff;
	} while (!last_srqn || srqn_used(last_srqn));
	srq->srqn = last_srqn;
	srq->next = sd_srqs;
	srq->prev = &sd_srqs;
	if (sd_srqs)
		sd_srqs->prev = &srq->next;
	sd_srqs = srq;
}

static int srq_init(struct sd_srq *srq, const struct mlx5_ib_create_srq *ucmd)
{
	uint32_t size = 32;

	if (srq->max_wr > SD_MAX_SRQ_WR || srq->max_sge > SD_MAX_SRQ_SGE)
		return -EINVAL;
	if ((ucmd->flags & ~(uint32_t)MLX5_SRQ_FLAG_SIGNATURE) || ucmd->reserved0 ||
	    ucmd->reserved1)
		return -EINVAL;
	for (srq->num = 1; srq->num < srq->max_wr + 1;)
		srq->num <<= 1;
	for (srq->shift = 5; size < sizeof(struct mlx5_wqe_srq_next_seg) + srq->max_sge * 16UL;) {
		size <<= 1;
		srq->shift++;
	}
	srq->max_wr = srq->num - 1;
	srq->max_sge = (size - (uint32_t)sizeof(struct mlx5_wqe_srq_next_seg)) / 16;
	srq->buf = (uint8_t *)(uintptr_t)ucmd->buf_addr;
	srq->db = (uint32_t *)(uintptr_t)ucmd->db_addr;
	if (ucmd->buf_addr % 8 || ucmd->db_addr % 4)
		return -EINVAL;
	if (sd_probe_ring(srq->buf, (size_t)srq->num << srq->shift) || sd_probe_ring(srq->db, 4))
		return -EFAULT;
	srq->seen = (uint16_t)sd_db_read(srq->db);
	return 0;
}

static int put_answer(const struct sd_attrs *a, const struct sd_srq *srq)
{
	const struct mlx5_ib_create_srq_resp resp = { .srqn = srq->srqn };
	int ret;

	ret = sd_attr_put(a, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, &srq->max_wr, sizeof(srq->max_wr));
	if (!ret)
		ret = sd_attr_put(a, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, &srq->max_sge,
				  sizeof(srq->max_sge));
	if (!ret)
		ret = sd_attr_put(a, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	if (!ret)
		ret = sd_attr_put_handle(a, UVERBS_ATTR_CREATE_SRQ_HANDLE, srq->obj.handle);
	return ret;
}

int sd_cmd_srq_create(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	struct mlx5_ib_create_srq ucmd;
	struct sd_srq *srq;
	uint64_t type;
	int ret;

	if (!sd_attr_get(a, UVERBS_ATTR_UHW_IN, &ucmd, sizeof(ucmd)) ||
	    !sd_attr_get(a, UVERBS_ATTR_CREATE_SRQ_TYPE, &type, sizeof(type)))
		return -EINVAL;
	if (type != IB_UVERBS_SRQT_BASIC)
		return -EOPNOTSUPP;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	sd_attr_get(a, UVERBS_ATTR_CREATE_SRQ_MAX_WR, &srq->max_wr, sizeof(srq->max_wr));
	sd_attr_get(a, UVERBS_ATTR_CREATE_SRQ_MAX_SGE, &srq->max_sge, sizeof(srq->max_sge));
	sd_attr_get(a, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, &srq->obj.user_handle,
		    sizeof(srq->obj.user_handle));
	srq->obj.async = sd_attr_obj(a, UVERBS_ATTR_CREATE_SRQ_EVENT_FD);
	srq->pd = sd_attr_obj(a, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE);
	ret = srq_init(srq, &ucmd);
	if (!ret)
		ret = sd_obj_add(ctx, &srq->obj, SD_SRQ);
	if (ret) {
		free(srq);
		return ret;
	}
	srq_link(srq);
	srq->pd->obj.users++;
	ret = put_answer(a, srq);
	if (ret)
		sd_srq_free(&srq->obj);
	return ret;
}

void sd_srq_free(struct sd_obj *obj)
{
	struct sd_srq *srq = (struct sd_srq *)obj;

	*srq->prev = srq->next;
	if (srq->next)
		srq->next->prev = srq->prev;
	srq->pd->obj.users--;
	sd_obj_remove(obj);
	free(srq);
}

int sd_cmd_srq_destroy(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	struct sd_srq *srq = sd_attr_obj(a, UVERBS_ATTR_DESTROY_SRQ_HANDLE);
	struct ib_uverbs_destroy_srq_resp resp = { .events_reported = sd_event_close(&srq->obj) };

	sd_srq_free(&srq->obj);
	return sd_attr_put(a, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp, sizeof(resp));
}

int sd_wr_modify_srq(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_modify_srq *cmd = w->in;
	struct sd_srq *srq = sd_obj_find(ctx, SD_SRQ, cmd->srq_handle);

	/* No resizing, as mlx5. */
	if (!srq || (cmd->attr_mask & IBV_SRQ_MAX_WR))
		return -EINVAL;
	if (!(cmd->attr_mask & IBV_SRQ_LIMIT))
		return 0;
	if (cmd->srq_limit >= srq->num)
		return -EINVAL;
	srq->limit = cmd->srq_limit;
	srq->seen = (uint16_t)sd_db_read(srq->db);
	sd_srq_check_limit(srq);
	return 0;
}

int sd_wr_query_srq(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_query_srq *cmd = w->in;
	struct sd_srq *srq = sd_obj_find(ctx, SD_SRQ, cmd->srq_handle);
	struct ib_uverbs_query_srq_resp resp = { 0 };

	if (!srq)
		return -EINVAL;
	resp.max_wr = srq->max_wr;
	resp.max_sge = srq->max_sge;
	resp.srq_limit = srq->limit;
	return sd_write_out(w, &resp, sizeof(resp));
}

/* The event comes once; arming it again is the process's business. */
void sd_srq_check_limit(struct sd_srq *srq)
{
	if (!srq->limit || (uint16_t)(srq->seen - srq->taken) >= srq->limit)
		return;
	srq->limit = 0;
	sd_event(&srq->obj, IBV_EVENT_SRQ_LIMIT_REACHED);
}
