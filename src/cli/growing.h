/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that become more. */
#ifndef CLI_GROWING_H
#define CLI_GROWING_H

#include <stddef.h>

struct growing {
	char *bytes; /* owned; not terminated; NULL: none yet */
	size_t size, room;
};

/* 0 or -ENOMEM, with what was there as it was. */
int growing_append(struct growing *g, const char *bytes, size_t num);
/* What is in it, which is the caller's then. */
struct growing growing_take(struct growing *g);
void growing_free(struct growing *g);

#endif /* CLI_GROWING_H */
