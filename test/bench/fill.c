/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One MR on soft0: nanoseconds an entry to fill it from an array, over and over, and nanoseconds to
 * translate a byte at a random offset. usage: fill ENTRIES varied|equal
 */
#include "ibmr.h"
#include "segments.h"

#define ACCESS	(IBMR_ACCESS_LOCAL_WRITE | IBMR_ACCESS_REMOTE_WRITE | IBMR_ACCESS_REMOTE_READ)
#define PIECE	64
#define OFFSETS 10000

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
	uint64_t offset[OFFSETS];
	uint64_t sum; /* of what was found, so that it is looked for */
};

static void fill(void *arg)
{
	struct filling *f = arg;

	need(ibmr_mr_fill(f->mr, &f->layout, &err), "fill");
}

static int found(void *arg, const struct ibmr_piece *piece)
{
	*(uint64_t *)arg += piece->offset;
	return 0;
}

static void translate(void *arg)
{
	struct filling *f = arg;

	for (uint64_t i = 0; i < OFFSETS; i++)
		need(ibmr_mr_translate(f->mr, f->offset[i], 1, found, &f->sum, &err), "translate");
}

static void choose_offsets(struct filling *f)
{
	struct ibmr_mr_info info;

	ibmr_mr_query(f->mr, &info);
	for (uint64_t i = 0; i < OFFSETS; i++)
		f->offset[i] = info.length / OFFSETS * i;
	shuffle(f->offset, OFFSETS);
}

/* Pieces in no order, of many lengths or of one. */
static struct ibmr_klm *entries(struct ibmr_mr *pool, uint64_t num, int equal)
{
	struct ibmr_klm *klms = must(calloc(num, sizeof(*klms)), "calloc");
	uint64_t *offset = must(calloc(num, sizeof(*offset)), "calloc");

	for (uint64_t i = 0; i < num; i++)
		offset[i] = i * PIECE;
	shuffle(offset, num);
	for (uint64_t i = 0; i < num; i++)
		klms[i] = (struct ibmr_klm){ pool, offset[i],
					     equal ? PIECE : 1 + offset[i] / PIECE % PIECE };
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
	struct timed filled = { .run = fill, .rounds = ROUNDS };
	struct timed translated = { .run = translate, .rounds = ROUNDS };
	int equal = argc > 2 && !strcmp(argv[2], "equal");
	struct ibmr_mr *pool;
	struct ibmr_ctx *ctx;
	static struct filling f;

	need(ibmr_ctx_open(&opts, &ctx, &err), "open");
	need(ibmr_mr_reg(ctx, &spec, &pool, &err), "reg");
	f.layout = (struct ibmr_layout){ .kind = IBMR_LAYOUT_LIST, .access = ACCESS, .num = num };
	f.layout.klms = entries(pool, num, equal);
	need(ibmr_mr_create(ctx, "m", num, &f.mr, &err), "create");
	measure(&filled, 1, &f, num);
	choose_offsets(&f);
	measure(&translated, 1, &f, OFFSETS);
	printf("{\"fill\": %.2f, \"translate\": %.2f}\n", filled.best, translated.best);
	need(ibmr_mr_dereg(f.mr, &err), "dereg");
	need(ibmr_mr_dereg(pool, &err), "dereg");
	need(ibmr_ctx_close(ctx, &err), "close");
	free((void *)f.layout.klms);
	return 0;
}
