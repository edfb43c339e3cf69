/* SPDX-License-Identifier: BSD-2-Clause */
/* A program of someone else's, built by pkg-config alone: limits of a device that is not there. */
#include <ibmr.h>
#include <stdio.h>

int main(void)
{
	const struct ibmr_caps limits = { .name = "none", .umr = true, .max_klms = 8 };
	struct ibmr_err err;
	struct ibmr_ctx *ctx;
	int ret = ibmr_ctx_open_dry(&limits, &ctx, &err);

	if (ret) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	puts(ibmr_code_name(IBMR_E_RANGE));
	return ibmr_ctx_close(ctx, &err) ? 1 : 0;
}
