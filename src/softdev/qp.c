/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs: the object, its making and its end. What modify and query do is in modify.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "caps.h"
#include "queue.h"

#define FIRST_QPN 0x40
#define QPN_MAX	  0xfffffe
#define HASH	  1024
#define KNOWN_FLAGS                                                                     \
	(MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_BFREG_INDEX | \
	 MLX5_QP_FLAG_ALLOW_SCATTER_CQE | MLX5_QP_FLAG_UAR_PAGE_INDEX)
#define NO_BFREG (1u << 31)

static struct sd_qp *by_qpn[HASH];
static uint32_t last_qpn = FIRST_QPN - 1;

struct sd_qp *sd_qp_find(uint32_t qpn)
{
	struct sd_qp *qp = by_qpn[qpn % HASH];

	while (qp && qp->qpn != qpn)
		qp = qp->same_hash;
	return qp;
}

static void qp_link(struct sd_qp *qp)
{
	do {
		last_qpn = last_qpn < QPN_MAX ? last_qpn + 1 : FIRST_QPN;
	} while (sd_qp_find(last_qpn));
	qp->qpn = last_qpn;
	qp->same_hash = by_qpn[qp->qpn % HASH];
	by_qpn[qp->qpn % HASH] = qp;
	qp->next = sd_qps;
	qp->prev = &sd_qps;
	if (sd_qps)
		sd_qps->prev = &qp->next;
	__atomic_store_n(&sd_qps, qp, __ATOMIC_RELAXED);
}

static void qp_unlink(struct sd_qp *qp)
{
	struct sd_qp **at = &by_qpn[qp->qpn % HASH];

	while (*at != qp)
		at = &(*at)->same_hash;
	*at = qp->same_hash;
	*qp->prev = qp->next;
	if (qp->next)
		qp->next->prev = qp->prev;
}

static bool power_of_2(uint32_t n)
{
	return n && !(n & (n - 1));
}

/* Where the rings are: receive WQEs in front, then the send WQEBBs. */
static int rings_init(struct sd_qp *qp, const struct mlx5_ib_create_qp *ucmd)
{
	uint8_t *buf = (uint8_t *)(uintptr_t)ucmd->buf_addr;
	size_t rq_bytes = 0;

	if (ucmd->sq_wqe_count && !power_of_2(ucmd->sq_wqe_count))
		return -EINVAL;
	if (ucmd->sq_wqe_count > SD_MAX_QP_WR || ucmd->rq_wqe_count > SD_MAX_QP_WR)
		return -EINVAL;
	if (!qp->srq && qp->cap.max_recv_wr) {
		if (!power_of_2(ucmd->rq_wqe_count) || ucmd->rq_wqe_shift < 4 ||
		    1u << (ucmd->rq_wqe_shift & 31) > SD_RQ_DESC_SIZE || ucmd->rq_wqe_shift > 31)
			return -EINVAL;
		qp->rq_num = ucmd->rq_wqe_count;
		qp->rq_shift = ucmd->rq_wqe_shift;
		rq_bytes = (size_t)qp->rq_num << qp->rq_shift;
	}
	qp->rq = buf;
	qp->sq = buf + rq_bytes;
	qp->sq_num = ucmd->sq_wqe_count;
	qp->db = (uint32_t *)(uintptr_t)ucmd->db_addr;
	if (ucmd->buf_addr % MLX5_SEND_WQE_BB || ucmd->db_addr % 8)
		return -EINVAL;
	if (sd_probe_ring(qp->db, 8))
		return -EFAULT;
	rq_bytes += (size_t)qp->sq_num * MLX5_SEND_WQE_BB;
	return rq_bytes ? sd_probe_ring(buf, rq_bytes) : 0;
}

/* As the kernel decides it: the receive side when asked, the send side when every work request is
 * signaled or the program allowed it. */
static void scatter_init(struct sd_qp *qp)
{
	if (!(qp->flags & MLX5_QP_FLAG_SCATTER_CQE))
		return;
	if (qp->type == IB_UVERBS_QPT_RC || qp->type == IB_UVERBS_QPT_UC)
		qp->scatter_resp = qp->recv_cq->cqe_size == 128 ? 64 : 32;
	if (qp->type == IB_UVERBS_QPT_RC &&
	    (qp->sig_all || (qp->flags & MLX5_QP_FLAG_ALLOW_SCATTER_CQE)))
		qp->scatter_req = qp->send_cq->cqe_size == 128 ? 64 : 32;
}

static int cap_check(const struct ib_uverbs_qp_cap *cap)
{
	if (cap->max_send_wr > SD_MAX_QP_WR || cap->max_recv_wr > SD_MAX_QP_WR ||
	    cap->max_send_sge > SD_SQ_DESC_SIZE / 16 || cap->max_recv_sge > SD_RQ_DESC_SIZE / 16 ||
	    cap->max_inline_data > SD_SQ_DESC_SIZE)
		return -EINVAL;
	return 0;
}

static int qp_init(struct sd_qp *qp, const struct sd_attrs *a)
{
	struct mlx5_ib_create_qp ucmd = { 0 };
	uint64_t type = 0;
	uint32_t flags = 0, len;
	const void *uhw = sd_attr_in(a, UVERBS_ATTR_UHW_IN, &len);

	if (!uhw || len < offsetof(struct mlx5_ib_create_qp, sq_buf_addr) || len > sizeof(ucmd))
		return -EINVAL;
	memcpy(&ucmd, uhw, len);
	sd_attr_get(a, UVERBS_ATTR_CREATE_QP_TYPE, &type, sizeof(type));
	if (type != IB_UVERBS_QPT_RC && type != IB_UVERBS_QPT_UC && type != IB_UVERBS_QPT_UD)
		return -EOPNOTSUPP;
	sd_attr_get(a, UVERBS_ATTR_CREATE_QP_FLAGS, &flags, sizeof(flags));
	qp->sig_all = flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL;
	if (flags & ~(uint32_t)(IB_UVERBS_QP_CREATE_SQ_SIG_ALL |
				IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK))
		return -EOPNOTSUPP;
	if (ucmd.flags & ~(uint32_t)KNOWN_FLAGS)
		return -EINVAL;
	qp->type = (enum ib_uverbs_qp_type)type;
	qp->flags = ucmd.flags;
	qp->uidx = ucmd.uidx;
	qp->pd = sd_attr_obj(a, UVERBS_ATTR_CREATE_QP_PD_HANDLE);
	qp->send_cq = sd_attr_obj(a, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
	qp->recv_cq = sd_attr_obj(a, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE);
	qp->srq = sd_attr_obj(a, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE);
	qp->obj.async = sd_attr_obj(a, UVERBS_ATTR_CREATE_QP_EVENT_FD);
	sd_attr_get(a, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &qp->obj.user_handle,
		    sizeof(qp->obj.user_handle));
	sd_attr_get(a, UVERBS_ATTR_CREATE_QP_CAP, &qp->cap, sizeof(qp->cap));
	if (!qp->pd || !qp->send_cq || !qp->recv_cq || cap_check(&qp->cap))
		return -EINVAL;
	scatter_init(qp);
	return rings_init(qp, &ucmd);
}

static int put_answer(const struct sd_attrs *a, const struct sd_qp *qp)
{
	const struct mlx5_ib_create_qp_resp resp = { .bfreg_index = NO_BFREG };
	int ret;

	ret = sd_attr_put(a, UVERBS_ATTR_CREATE_QP_RESP_CAP, &qp->cap, sizeof(qp->cap));
	if (!ret)
		ret = sd_attr_put(a, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qp->qpn, sizeof(qp->qpn));
	if (!ret)
		ret = sd_attr_put(a, UVERBS_ATTR_UHW_OUT, &resp, sizeof(resp));
	if (!ret)
		ret = sd_attr_put_handle(a, UVERBS_ATTR_CREATE_QP_HANDLE, qp->obj.handle);
	return ret;
}

int sd_cmd_qp_create(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	struct sd_qp *qp = calloc(1, sizeof(*qp));
	int ret;

	if (!qp)
		return -ENOMEM;
	ret = qp_init(qp, a);
	if (ret)
		goto free_qp;
	ret = sd_bell_add(qp);
	if (ret)
		goto free_qp;
	ret = sd_obj_add(ctx, &qp->obj, SD_QP);
	if (ret)
		goto remove_bell;
	qp_link(qp);
	qp->pd->obj.users++;
	qp->send_cq->obj.users++;
	qp->recv_cq->obj.users++;
	if (qp->srq)
		qp->srq->obj.users++;
	ret = put_answer(a, qp);
	if (ret)
		sd_qp_free(&qp->obj);
	return ret;

remove_bell:
	sd_bell_remove(qp);
free_qp:
	free(qp);
	return ret;
}

static void mcast_drop(struct sd_mcast *g)
{
	while (g) {
		struct sd_mcast *next = g->next;

		free(g);
		g = next;
	}
}

void sd_qp_free(struct sd_obj *obj)
{
	struct sd_qp *qp = (struct sd_qp *)obj;

	sd_forget_qp(qp);
	sd_bell_remove(qp);
	qp_unlink(qp);
	mcast_drop(qp->mcast);
	qp->pd->obj.users--;
	qp->send_cq->obj.users--;
	qp->recv_cq->obj.users--;
	if (qp->srq)
		qp->srq->obj.users--;
	sd_obj_remove(obj);
	free(qp);
}

int sd_cmd_qp_destroy(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	struct sd_qp *qp = sd_attr_obj(a, UVERBS_ATTR_DESTROY_QP_HANDLE);
	struct ib_uverbs_destroy_qp_resp resp = { 0 };

	if (qp->mcast)
		return -EBUSY;
	resp.events_reported = sd_event_close(&qp->obj);
	sd_qp_free(&qp->obj);
	return sd_attr_put(a, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof(resp));
}

void sd_qp_fail(struct sd_qp *qp, enum ibv_qp_state state)
{
	if (qp->state == IBV_QPS_RESET || qp->state == IBV_QPS_ERR)
		return;
	qp->state = state;
	qp->draining = false;
	sd_activate(qp);
}

/* ---- multicast ---------------------------------------------------------------------- */

static struct sd_mcast **mcast_find(struct sd_qp *qp, const struct ib_uverbs_attach_mcast *cmd)
{
	struct sd_mcast **at = &qp->mcast;

	while (*at && (memcmp((*at)->gid, cmd->gid, 16) || (*at)->lid != cmd->mlid))
		at = &(*at)->next;
	return at;
}

int sd_wr_attach_mcast(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_attach_mcast *cmd = w->in;
	struct sd_qp *qp = sd_obj_find(ctx, SD_QP, cmd->qp_handle);
	struct sd_mcast *g, **at;

	if (!qp || qp->type != IB_UVERBS_QPT_UD || cmd->gid[0] != 0xff)
		return -EINVAL;
	at = mcast_find(qp, cmd);
	if (*at)
		return 0;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	memcpy(g->gid, cmd->gid, 16);
	g->lid = cmd->mlid;
	*at = g;
	return 0;
}

int sd_wr_detach_mcast(struct sd_ctx *ctx, struct sd_write *w)
{
	const struct ib_uverbs_attach_mcast *cmd = w->in;
	struct sd_qp *qp = sd_obj_find(ctx, SD_QP, cmd->qp_handle);
	struct sd_mcast *g, **at;

	if (!qp || qp->type != IB_UVERBS_QPT_UD)
		return -EINVAL;
	at = mcast_find(qp, cmd);
	g = *at;
	if (!g)
		return -EINVAL;
	*at = g->next;
	free(g);
	return 0;
}
