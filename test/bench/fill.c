/* SPDX-License-Identifier: BSD-2-Clause */
/* Filling one MR on soft0 from an array, over and over: nanoseconds an entry. usage: fill ENTRIES */
#include "ibmr.h"
#include "segments.h"

#define ACCESS (IBMR_ACCESS_LOCAL_WRITE | IBMR_ACCESS_REMOTE_WRITE | IBMR_ACCESS_REMOTE_READ)
#define PIECE  64

static struct ibmr_err err;

static void need(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "fill: %s: %s\n", what, err.text);
	exit(1);
}

struct filling {
	struct ibmr_mr *mr;
	struct ibmr_layout layout;
};

static void fill(void *arg)
{
	struct filling *f = arg;

	need(ibmr_mr_fill(f->mr, &f->layout, &err), "fill");
}

/* Pieces of many lengths, in no order. */
static struct ibmr_klm *entries(struct ibmr_mr *pool, uint64_t num)
{
	struct ibmr_klm *klms = must(calloc(num, sizeof(*klms)), "calloc");
	uint64_t *offset = must(calloc(num, sizeof(*offset)), "calloc");

	for (uint64_t i = 0; i < num; i++)
		offset[i] = i * PIECE;
	shuffle(offset, num);
	for (uint64_t i = 0; i < num; i++)
		klms[i] = (struct ibmr_klm){ pool, offset[i], 1 + offset[i] / PIECE % PIECE };
	free(offset);
	return klms;
}

int main(int argc, char **argv)
{
	const struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	uint64_t num = argc > 1 ? strtoull(argv[1], NULL, 0) : 60000;
	const struct ibmr_mr_spec spec = {
		.name = "pool", .mem = IBMR_MEM_ANON, .length = num * PIECE, .access = ACCESS
	};
	struct timed t = { .run = fill, .rounds = ROUNDS };
	struct ibmr_mr *pool;
	struct ibmr_ctx *ctx;
	struct filling f;

	need(ibmr_ctx_open(&opts, &ctx, &err), "open");
	need(ibmr_mr_reg(ctx, &spec, &pool, &err), "reg");
	f.layout = (struct ibmr_layout){ .kind = IBMR_LAYOUT_LIST, .access = ACCESS, .num = num };
	f.layout.klms = entries(pool, num);
	need(ibmr_mr_create(ctx, "m", num, &f.mr, &err), "create");
	measure(&t, 1, &f, num);
	printf("%.2f\n", t.best);
	need(ibmr_mr_dereg(f.mr, &err), "dereg");
	need(ibmr_mr_dereg(pool, &err), "dereg");
	need(ibmr_ctx_close(ctx, &err), "close");
	free((void *)f.layout.klms);
	return 0;
}
