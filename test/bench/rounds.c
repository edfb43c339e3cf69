/* SPDX-License-Identifier: BSD-2-Clause */
/* The rounds of the benchmark's plan by the library alone: usage: rounds ROUNDS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ibmr.h"

#define LENGTH 32
#define ACCESS (IBMR_ACCESS_LOCAL_WRITE | IBMR_ACCESS_REMOTE_WRITE | IBMR_ACCESS_REMOTE_READ)

static struct ibmr_err err;

static int one_round(struct ibmr_ctx *ctx, struct ibmr_mr *pool, unsigned number)
{
	const struct ibmr_klm klms[] = {
		{ .mr = pool, .offset = 4096, .length = LENGTH / 2 },
		{ .mr = pool, .offset = 64, .length = LENGTH / 2 },
	};
	const struct ibmr_layout layout = {
		.kind = IBMR_LAYOUT_LIST, .access = ACCESS, .num = 2, .klms = klms
	};
	unsigned char out[LENGTH], in[LENGTH];
	struct ibmr_mr *mr;
	int ret;

	for (unsigned k = 0; k < LENGTH; k++)
		out[k] = (unsigned char)(number + k);
	ret = ibmr_mr_create(ctx, "m", 2, &mr, &err);
	if (ret)
		return ret;
	ret = ibmr_mr_fill(mr, &layout, &err);
	if (!ret)
		ret = ibmr_mr_write(mr, 0, out, LENGTH, 0, &err);
	if (!ret)
		ret = ibmr_mr_read(mr, 0, in, LENGTH, 0, &err);
	if (!ret && memcmp(in, out, LENGTH) != 0) {
		snprintf(err.text, sizeof(err.text), "round %u: wrong bytes", number);
		ret = -1;
	}
	if (ret) {
		ibmr_mr_dereg(mr, NULL);
		return ret;
	}
	return ibmr_mr_dereg(mr, &err);
}

int main(int argc, char **argv)
{
	const struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	const struct ibmr_mr_spec spec = {
		.name = "pool", .mem = IBMR_MEM_ANON, .length = 65536, .access = ACCESS
	};
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	struct ibmr_ctx *ctx;
	struct ibmr_mr *pool;
	int ret;

	ret = ibmr_ctx_open(&opts, &ctx, &err);
	if (ret)
		goto fail;
	ret = ibmr_mr_reg(ctx, &spec, &pool, &err);
	if (ret)
		goto close;
	for (unsigned i = 0; i < rounds && !ret; i++)
		ret = one_round(ctx, pool, i);
	if (ret)
		fprintf(stderr, "%s\n", err.text);
	ibmr_mr_dereg(pool, NULL);
close:
	ibmr_ctx_close(ctx, NULL);
fail:
	if (ret)
		fprintf(stderr, "rounds: %s\n", err.text);
	return ret ? 1 : 0;
}
