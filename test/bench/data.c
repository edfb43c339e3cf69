/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes through an indirect MR on soft0, to the segments and from them, against a loop of memcpy over
 * the same segments and against process_vm_writev to oneself. Nanoseconds a segment of each, the best
 * of several rounds taken in turn; and the nanoseconds an entry to make the MR.
 */
#include <stdbool.h>
#include <sys/uio.h>
#include <unistd.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>

#include "ibmr.h"
#include "segments.h"

#define ACCESS	  (IBMR_ACCESS_LOCAL_WRITE | IBMR_ACCESS_REMOTE_WRITE | IBMR_ACCESS_REMOTE_READ)
#define KEY_KLMS  32768 /* in one key: more go by keys of keys */
#define PARTS_MAX 256
#define IOVS	  1024

static struct ibmr_err err;

static struct {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
} queue;

struct bench {
	struct segments s;
	struct ibmr_ctx *ctx;
	struct ibmr_mr *pool, *flat, *parts[PARTS_MAX], *all;
	uint32_t flat_key, all_key;
	struct iovec *iov;
	unsigned int num_parts;
	bool strided;
};

static void need(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "data: %s: %s\n", what, err.text);
	exit(1);
}

/* ---- what is measured ------------------------------------------------------------------ */

static void scatter_by_memcpy(void *arg)
{
	struct segments *s = &((struct bench *)arg)->s;

	for (uint64_t i = 0; i < s->num; i++)
		memcpy(s->pool + s->offset[i], s->flat + i * s->segment, s->segment);
	__asm__ volatile("" ::: "memory");
}

static void gather_by_memcpy(void *arg)
{
	struct segments *s = &((struct bench *)arg)->s;

	for (uint64_t i = 0; i < s->num; i++)
		memcpy(s->flat + i * s->segment, s->pool + s->offset[i], s->segment);
	__asm__ volatile("" ::: "memory");
}

static void by_writev(const struct bench *b, bool gather)
{
	for (uint64_t i = 0; i < b->s.num; i += IOVS) {
		uint64_t n = b->s.num - i < IOVS ? b->s.num - i : IOVS;
		struct iovec flat = { b->s.flat + i * b->s.segment, n * b->s.segment };
		ssize_t ret = gather ? process_vm_writev(getpid(), b->iov + i, n, &flat, 1, 0)
				     : process_vm_writev(getpid(), &flat, 1, b->iov + i, n, 0);

		if (ret != (ssize_t)flat.iov_len) {
			perror("data: process_vm_writev");
			exit(1);
		}
	}
}

static void scatter_by_writev(void *arg)
{
	by_writev(arg, false);
}

static void gather_by_writev(void *arg)
{
	by_writev(arg, true);
}

static void by_device(struct bench *b, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)b->s.flat, (uint32_t)b->s.payload, b->flat_key };
	struct ibv_send_wr wr = { .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .wr.rdma = { .rkey = b->all_key } };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	need(ibv_post_send(queue.qp, &wr, &bad), "ibv_post_send");
	do {
		n = ibv_poll_cq(queue.cq, 1, &wc);
	} while (!n);
	need(n < 0 || wc.status, ibv_wc_status_str(wc.status));
}

static void scatter_by_device(void *arg)
{
	by_device(arg, IBV_WR_RDMA_WRITE);
}

static void gather_by_device(void *arg)
{
	by_device(arg, IBV_WR_RDMA_READ);
}

/* ---- the layout ---------------------------------------------------------------------------- */

static struct ibmr_mr *made(struct bench *b, const struct ibmr_layout *l)
{
	struct ibmr_mr *mr;

	need(ibmr_mr_create(b->ctx, NULL, l->num, &mr, &err), "create");
	need(ibmr_mr_fill(mr, l, &err), "fill");
	return mr;
}

static struct ibmr_mr *make_list(struct bench *b, const struct ibmr_klm *klms, uint64_t num)
{
	const struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = ACCESS, .num = num, .klms = klms
	};

	return made(b, &l);
}

static void make_strided(struct bench *b)
{
	const struct ibmr_block block = { .mr = b->pool,
					  .length = b->s.segment,
					  .stride = b->s.stride };
	const struct ibmr_layout l = { .kind = IBMR_LAYOUT_REPEAT,
				       .access = ACCESS,
				       .num = 1,
				       .count = b->s.num,
				       .blocks = &block };

	b->all = made(b, &l);
}

static void make_tree(struct bench *b, const struct ibmr_klm *klms)
{
	struct ibmr_klm outer[PARTS_MAX];
	uint64_t done = 0;

	for (b->num_parts = 0; done < b->s.num; b->num_parts++) {
		uint64_t n = b->s.num - done < KEY_KLMS ? b->s.num - done : KEY_KLMS;
		struct ibmr_mr *part = make_list(b, klms + done, n);

		b->parts[b->num_parts] = part;
		outer[b->num_parts] = (struct ibmr_klm){ part, 0, n * b->s.segment };
		done += n;
	}
	b->all = make_list(b, outer, b->num_parts);
}

static void unmake(struct bench *b)
{
	need(ibmr_mr_dereg(b->all, &err), "dereg");
	while (b->num_parts)
		need(ibmr_mr_dereg(b->parts[--b->num_parts], &err), "dereg");
}

/* Nanoseconds an entry, the best of a few. */
static double make(struct bench *b)
{
	struct ibmr_klm *klms = must(calloc(b->s.num, sizeof(*klms)), "calloc");
	double best = 0;

	for (uint64_t i = 0; i < b->s.num; i++)
		klms[i] = (struct ibmr_klm){ b->pool, b->s.offset[i], b->s.segment };
	for (int i = 0; i < builds(&b->s); i++) {
		double took;

		if (i)
			unmake(b);
		took = now_ns();
		if (b->strided)
			make_strided(b);
		else
			make_tree(b, klms);
		took = (now_ns() - took) / (double)b->s.num;
		best = best && best < took ? best : took;
	}
	free(klms);
	return best;
}

static void report(const char *direction, const struct timed *t)
{
	printf("\"%s\": {\"device\": %.2f, \"memcpy\": %.2f, \"kernel\": %.2f}", direction,
	       t[0].best, t[1].best, t[2].best);
}

/* ---- the device ------------------------------------------------------------------------- */

static void connect_self(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags =
					    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };

	need(ibv_modify_qp(queue.qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
	     "INIT");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
				     .path_mtu = IBV_MTU_4096,
				     .dest_qp_num = queue.qp->qp_num,
				     .max_dest_rd_atomic = 1,
				     .min_rnr_timer = 1,
				     .ah_attr = { .dlid = 1, .port_num = 1 } };
	need(ibv_modify_qp(queue.qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				   IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .max_rd_atomic = 1 };
	need(ibv_modify_qp(queue.qp, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				   IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

static struct ibmr_ctx *open_soft0(void)
{
	const struct ibmr_ctx_opts opts = { .gid_index = -1 };
	struct ibv_qp_init_attr attr = { .cap = { .max_send_wr = 4, .max_send_sge = 1 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibmr_ctx *ctx;

	queue.verbs = list && list[0] ? ibv_open_device(list[0]) : NULL;
	need(!queue.verbs, "ibv_open_device");
	ibv_free_device_list(list);
	queue.pd = ibv_alloc_pd(queue.verbs);
	need(!queue.pd, "ibv_alloc_pd");
	queue.cq = ibv_create_cq(queue.verbs, 4, NULL, NULL, 0);
	need(!queue.cq, "ibv_create_cq");
	attr.send_cq = attr.recv_cq = queue.cq;
	queue.qp = ibv_create_qp(queue.pd, &attr);
	need(!queue.qp, "ibv_create_qp");
	connect_self();
	need(ibmr_ctx_from_pd(queue.pd, &opts, &ctx, &err), "from_pd");
	return ctx;
}

static struct ibmr_mr *memory(struct bench *b, const char *name, uint64_t bytes, char **ret_at,
			      uint32_t *ret_key)
{
	const struct ibmr_mr_spec spec = {
		.name = name, .mem = IBMR_MEM_ANON, .length = bytes, .access = ACCESS
	};
	struct ibmr_mr_info info;
	struct ibmr_mr *mr;

	need(ibmr_mr_reg(b->ctx, &spec, &mr, &err), "reg");
	ibmr_mr_query(mr, &info);
	*ret_at = info.addr;
	*ret_key = info.lkey;
	return mr;
}

static void run(struct bench *b)
{
	struct timed scatter[] = { { .run = scatter_by_device, .rounds = ROUNDS },
				   { .run = scatter_by_memcpy, .rounds = ROUNDS },
				   { .run = scatter_by_writev, .rounds = ROUNDS_SLOW } };
	struct timed gather[] = { { .run = gather_by_device, .rounds = ROUNDS },
				  { .run = gather_by_memcpy, .rounds = ROUNDS },
				  { .run = gather_by_writev, .rounds = ROUNDS_SLOW } };
	double built = make(b);
	struct ibmr_mr_info info;

	ibmr_mr_query(b->all, &info);
	b->all_key = info.rkey;
	paint(b->s.flat, b->s.payload, 1);
	scatter_by_device(b);
	check(&b->s, "data: scatter");
	paint(b->s.pool, pool_bytes(&b->s), 2);
	gather_by_device(b);
	check(&b->s, "data: gather");
	measure(scatter, 3, b, b->s.num);
	measure(gather, 3, b, b->s.num);
	printf("{\"build\": %.2f, ", built);
	report("scatter", scatter);
	printf(", ");
	report("gather", gather);
	printf("}\n");
	unmake(b);
}

int main(int argc, char **argv)
{
	struct bench b = { .s = segments_parse(argc, argv) };
	uint32_t pool_key;

	b.strided = !strcmp(argv[3], "strided");
	b.ctx = open_soft0();
	b.pool = memory(&b, "pool", pool_bytes(&b.s), &b.s.pool, &pool_key);
	b.flat = memory(&b, "flat", b.s.payload, &b.s.flat, &b.flat_key);
	b.iov = must(calloc(b.s.num, sizeof(*b.iov)), "calloc");
	for (uint64_t i = 0; i < b.s.num; i++)
		b.iov[i] = (struct iovec){ b.s.pool + b.s.offset[i], b.s.segment };
	run(&b);
	need(ibmr_mr_dereg(b.pool, &err), "dereg");
	need(ibmr_mr_dereg(b.flat, &err), "dereg");
	need(ibmr_ctx_close(b.ctx, &err), "close");
	need(ibv_destroy_qp(queue.qp), "ibv_destroy_qp");
	need(ibv_destroy_cq(queue.cq), "ibv_destroy_cq");
	need(ibv_dealloc_pd(queue.pd), "ibv_dealloc_pd");
	need(ibv_close_device(queue.verbs), "ibv_close_device");
	return 0;
}
