/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests that run on soft0: a context each, MRs by one call, and nothing left at the end. */
#ifndef SOFT_TEST_H
#define SOFT_TEST_H

#include "lib_test.h"
#include "soft0.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

extern struct ibmr_ctx *soft; /* the test's context */

/* Setup and teardown of a test: soft0 as IBMR_SOFT0 says, a context on it; at the end every MR is
 * gone, and so is every object of the device. */
int soft_setup(void **state);
int soft_teardown(void **state);
/* The same without a context. */
int soft_setup_bare(void **state);
int soft_teardown_bare(void **state);

void soft_word(const char *word, const char *value);
uint64_t soft_counter(const char *name);

/* Anonymous memory, byte k = seed + k. */
struct ibmr_mr *soft_reg(const char *name, uint64_t length, uint64_t access);
uint8_t *bytes_of(const struct ibmr_mr *mr);
struct ibmr_mr *soft_create(const char *name, uint64_t max_klms);
void soft_fill_list(struct ibmr_mr *mr, uint64_t access, const struct ibmr_klm *klms, uint64_t num);
void soft_fill_repeat(struct ibmr_mr *mr, uint64_t access, const struct ibmr_block *blocks,
		      uint64_t num, uint64_t count);
void soft_dereg(struct ibmr_mr *mr);
void ramp(struct ibmr_mr *mr, uint8_t seed);
/* Every byte of the MR, read through its rkey, is what the walk of its layout says. */
void reads_as(struct ibmr_mr *mr, uint64_t offset, const void *want, uint64_t length);

#endif /* SOFT_TEST_H */
