/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * With as many mappings as the kernel allows, running out of memory says so. Not under a sanitizer,
 * which could not map its own memory any more.
 */
#include "cli_test.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../../src/lib/ibmr.h"
#include "../../../src/softdev/soft0.h"

#define MOST   2000000ul /* mappings that take a bearable time to make */
#define LITTLE 16

static uint8_t *pages;
static size_t length;

/* Every second page protected by itself, until the kernel splits no more; it still maps a little. */
static bool use_up(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), i;
	void *last = NULL;

	length = 2 * MOST * page;
	pages = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	for (i = 0; i < MOST; i++)
		if (mprotect(pages + 2 * i * page, page, PROT_READ))
			break;
	if (i == MOST)
		return false;
	for (i = 0; i < LITTLE && last != MAP_FAILED; i++)
		last = mmap(NULL, page, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return last == MAP_FAILED;
}

static void memory_that_ran_out_by_mappings_says_so(void **state)
{
	const struct ibmr_ctx_opts opts = { .device = soft0_name(), .gid_index = -1 };
	const struct ibmr_mr_spec spec = { .mem = IBMR_MEM_ANON, .length = 1 << 20 };
	struct ibmr_ctx *ctx;
	struct ibmr_err err;
	struct ibmr_mr *mr;
	struct fail f;
	const char *cause;
	int ret;

	assert_int_equal(ibmr_ctx_open(&opts, &ctx, &err), 0);
	assert_null(ibmr_memory_cause());
	fail_nomem(&f);
	assert_null(f.cause);
	if (!use_up())
		skip();
	cause = ibmr_memory_cause();
	fail_nomem(&f);
	ret = ibmr_mr_reg(ctx, &spec, &mr, &err);
	munmap(pages, length);
	assert_int_equal(ret, -ENOMEM);
	assert_int_equal(err.code, IBMR_E_NO_MEMORY);
	assert_string_equal(err.cause, "map_count");
	assert_string_equal(cause, "map_count");
	assert_string_equal(f.cause, "map_count");
	assert_null(ibmr_memory_cause());
	assert_int_equal(ibmr_ctx_close(ctx, &err), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_that_ran_out_by_mappings_says_so),
	};

	return cmocka_run_group_tests_name("mappings", tests, NULL, NULL);
}
