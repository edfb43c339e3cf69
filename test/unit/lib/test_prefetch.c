/* SPDX-License-Identifier: BSD-2-Clause */
/* Prefetch, and the evidence of what it did. */
#include "soft_test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

static struct ibmr_pages pages[8];
static struct ibmr_prefetch_info info;

static int ask(const struct ibmr_range *ranges, uint64_t num, enum ibmr_advice advice,
	       struct ibmr_err *err)
{
	memset(pages, 0xa5, sizeof(pages));
	memset(&info, 0xa5, sizeof(info));
	return ibmr_mr_prefetch(soft, ranges, num, advice, true, pages, &info, err);
}

static void pages_become_resident_and_are_counted(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 256 * PAGE, LW | RW | OD);
	struct ibmr_range r = { lazy, 16 * PAGE, 64 * PAGE };
	struct ibmr_err err;

	OK(ask(&r, 1, IBMR_ADVICE_WRITE, &err));
	assert_int_equal(info.bytes, 64 * PAGE);
	assert_int_equal(info.page_size, 4096);
	assert_string_equal(info.source, "pagemap");
	assert_int_equal(info.total.pages, 64);
	assert_int_equal(info.total.cpu_resident_before, 0);
	assert_int_equal(info.total.cpu_resident_after, 64);
	assert_int_equal(info.total.device_mapped_before, 0);
	assert_int_equal(info.total.device_mapped_after, 64);
	assert_memory_equal(&pages[0].cpu_resident_before, &info.total.cpu_resident_before,
			    4 * sizeof(int64_t));
	assert_int_equal(pages[0].offset, 16 * PAGE);
	/* the neighbours are not there */
	r = (struct ibmr_range){ lazy, 0, IBMR_TO_END };
	OK(ask(&r, 1, IBMR_ADVICE_NO_FAULT, &err));
	assert_int_equal(info.total.pages, 256);
	assert_int_equal(info.total.cpu_resident_before, 64);
	assert_int_equal(info.total.cpu_resident_after, 64);
	assert_int_equal(info.total.device_mapped_after, 64);
	OK(ask(&r, 1, IBMR_ADVICE_READ, &err));
	assert_int_equal(info.total.cpu_resident_after, 256);
	assert_int_equal(info.total.device_mapped_after, 256);
}

static void a_page_is_counted_whole_and_once(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 16 * PAGE, LW | OD);
	struct ibmr_range r[] = { { lazy, 4095, 2 }, { lazy, 5 * PAGE + 1, 1 }, { lazy, 0, 1 } };
	struct ibmr_err err;

	OK(ask(r, 3, IBMR_ADVICE_WRITE, &err));
	assert_int_equal(pages[0].pages, 2);
	assert_int_equal(pages[0].cpu_resident_after, 2);
	assert_int_equal(pages[1].pages, 1);
	assert_int_equal(pages[2].pages, 1);
	assert_int_equal(info.total.pages, 4);
	assert_int_equal(info.bytes, 4);
	assert_int_equal(soft_counter("odp.prefetched"), 3);
}

static void the_readers_of_counts_need_not_ask_for_them(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 4096, LW | OD);
	struct ibmr_range r = { lazy, 0, IBMR_TO_END };
	struct ibmr_err err;

	OK(ibmr_mr_prefetch(soft, &r, 1, IBMR_ADVICE_READ, true, NULL, NULL, &err));
	OK(ibmr_mr_prefetch(soft, &r, 1, IBMR_ADVICE_READ, false, NULL, NULL, NULL));
}

static void a_range_outside_is_refused_before_the_driver_is_asked(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 10000, LW | OD);
	struct ibmr_range r[] = { { lazy, 0, 10 }, { lazy, 5000, 5001 } };
	struct ibmr_err err;

	REFUSED(ask(r, 2, IBMR_ADVICE_READ, &err), EFAULT, IBMR_E_RANGE);
	assert_string_equal(err.text,
			    "bytes [5000, 10001) are past the end of 'lazy' (10000 bytes)");
	assert_int_equal(err.index, 1);
	r[1] = (struct ibmr_range){ lazy, UINT64_MAX, 2 };
	REFUSED(ask(r, 2, IBMR_ADVICE_READ, &err), EFAULT, IBMR_E_RANGE);
	r[1] = (struct ibmr_range){ lazy, 10000, IBMR_TO_END };
	REFUSED(ask(r, 2, IBMR_ADVICE_READ, &err), EFAULT, IBMR_E_RANGE);
	r[1] = (struct ibmr_range){ lazy, 10, 0 };
	REFUSED(ask(r, 2, IBMR_ADVICE_READ, &err), EINVAL, IBMR_E_ARGUMENT);
	r[1].mr = NULL;
	REFUSED(ask(r, 2, IBMR_ADVICE_READ, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(ask(r, 0, IBMR_ADVICE_READ, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(ask(r, 1, (enum ibmr_advice)7, &err), EINVAL, IBMR_E_ARGUMENT);
	assert_int_equal(soft_counter("cmd.advise_mr"), 0);
	assert_int_equal(soft_counter("odp.prefetched"), 0);
}

static void a_pinned_mr_is_not_on_demand(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 10000, LW), *col = soft_create("col", 1);
	struct ibmr_range r = { a, 0, 10 };
	struct ibmr_err err;

	REFUSED(ask(&r, 1, IBMR_ADVICE_READ, &err), EINVAL, IBMR_E_NOT_ON_DEMAND);
	SAYS("'a' is pinned");
	r.mr = col;
	REFUSED(ask(&r, 1, IBMR_ADVICE_READ, &err), EINVAL, IBMR_E_STATE);
	soft_fill_list(col, LW, &(struct ibmr_klm){ a, 0, 100 }, 1);
	REFUSED(ask(&r, 1, IBMR_ADVICE_READ, &err), EINVAL, IBMR_E_NOT_ON_DEMAND);
	SAYS("no on-demand memory lies under that range of 'col'");
	/* and it is outside before it is pinned */
	r = (struct ibmr_range){ a, 10000, 1 };
	REFUSED(ask(&r, 1, IBMR_ADVICE_READ, &err), EFAULT, IBMR_E_RANGE);
}

static void prefetch_for_writing_needs_local_write(void **state)
{
	struct ibmr_mr *ro = soft_reg("ro", 4096, RR | OD),
		       *rw = soft_reg("rw", 4096, LW | RR | OD);
	struct ibmr_mr *col = soft_create("col", 1);
	struct ibmr_range r = { ro, 0, 10 };
	struct ibmr_err err;

	REFUSED(ask(&r, 1, IBMR_ADVICE_WRITE, &err), EACCES, IBMR_E_ACCESS);
	SAYS("prefetch for writing needs local_write, which 'ro' lacks");
	OK(ask(&r, 1, IBMR_ADVICE_READ, &err));
	soft_fill_list(col, RR, &(struct ibmr_klm){ rw, 0, 100 }, 1);
	r.mr = col;
	REFUSED(ask(&r, 1, IBMR_ADVICE_WRITE, &err), EACCES, IBMR_E_ACCESS);
	OK(ask(&r, 1, IBMR_ADVICE_READ, &err));
}

static void a_device_without_prefetch_says_enosys(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 4096, LW | OD);
	struct ibmr_range r = { lazy, 0, 10 };
	struct ibmr_err err;

	soft_word("advise", "0");
	REFUSED(ask(&r, 1, IBMR_ADVICE_READ, &err), ENOSYS, IBMR_E_UNSUPPORTED);
	assert_string_equal(err.cause, "advise_mr");
	assert_string_equal(err.origin, "ibv_advise_mr");
	assert_int_not_equal(err.sys_errno, 0);
	assert_int_equal(err.index, 0);
}

/* As the rxe driver does; soft0 is made to. */
static void a_driver_that_wants_local_write_to_prefetch_is_said_to(void **state)
{
	struct ibmr_mr *ro = soft_reg("ro", 4096, RR | OD), *rw = soft_reg("rw", 4096, LW | OD);
	struct ibmr_range r = { ro, 0, 10 };
	struct ibmr_err err;

	soft_word("fail", "advise_mr:1:EINVAL");
	REFUSED(ask(&r, 1, IBMR_ADVICE_READ, &err), EINVAL, IBMR_E_UNSUPPORTED);
	assert_string_equal(err.cause, "needs_local_write");
	assert_int_equal(err.sys_errno, EINVAL);
	SAYS("'ro', which lacks local_write");
	/* with the right it is another reason */
	r.mr = rw;
	soft_word("fail", "advise_mr:1:EINVAL");
	REFUSED(ask(&r, 1, IBMR_ADVICE_READ, &err), EINVAL, IBMR_E_COMPLETION);
	assert_null(err.cause);
}

static void a_hint_that_is_ignored_is_success(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 4096, LW | OD);
	struct ibmr_range r = { lazy, 0, 10 };
	struct ibmr_err err;

	soft_word("fail", "advise_mr:1:EAGAIN");
	OK(ask(&r, 1, IBMR_ADVICE_READ, &err));
	assert_int_equal(info.total.cpu_resident_after, 0); /* and no more is claimed */
	assert_int_equal(info.total.device_mapped_after, 0);
}

static void a_hole_is_a_bad_address_with_its_page(void **state)
{
	uint8_t *at =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibmr_mr_spec spec = { .name = "holed",
				     .mem = IBMR_MEM_CALLER,
				     .addr = at,
				     .length = 4 * PAGE,
				     .access = LW | OD };
	struct ibmr_range r = { NULL, 0, IBMR_TO_END };
	struct ibmr_err err;
	char addr[64];

	OK(ibmr_mr_reg(soft, &spec, &r.mr, &err));
	munmap(at + 8192, 4096);
	snprintf(addr, sizeof(addr), "the page at 0x%lx is not mapped",
		 (unsigned long)(uintptr_t)(at + 8192));
	REFUSED(ask(&r, 1, IBMR_ADVICE_WRITE, &err), EFAULT, IBMR_E_BAD_ADDRESS);
	SAYS(addr);
	soft_dereg(r.mr);
	munmap(at, 4 * PAGE);
}

/* As the rxe driver says it; soft0 is made to. */
static void a_read_only_page_is_a_bad_address_by_eperm_too(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 4 * PAGE, LW | OD);
	struct ibmr_range r = { lazy, 0, IBMR_TO_END };
	struct ibmr_err err;

	assert_int_equal(mprotect(bytes_of(lazy) + PAGE, PAGE, PROT_READ), 0);
	soft_word("fail", "advise_mr:1:EPERM");
	REFUSED(ask(&r, 1, IBMR_ADVICE_WRITE, &err), EPERM, IBMR_E_BAD_ADDRESS);
	assert_string_equal(err.cause, "read_only");
	assert_int_equal(err.sys_errno, EPERM);
	/* without such a page it is another reason */
	assert_int_equal(mprotect(bytes_of(lazy) + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
	soft_word("fail", "advise_mr:1:EPERM");
	REFUSED(ask(&r, 1, IBMR_ADVICE_WRITE, &err), EPERM, IBMR_E_COMPLETION);
}

static void an_indirect_mr_prefetches_the_memory_under_the_range(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 64 * PAGE, LW | OD), *a = soft_reg("a", 8192, LW);
	struct ibmr_mr *in = soft_create("in", 4), *out = soft_create("out", 4);
	struct ibmr_klm klms[] = { { lazy, 10 * PAGE, 4096 },
				   { a, 0, 4096 },
				   { lazy, 20 * PAGE, 8192 } };
	struct ibmr_range r = { out, 0, IBMR_TO_END };
	struct ibmr_err err;

	soft_fill_list(in, LW, klms, 3);
	soft_fill_list(out, LW, &(struct ibmr_klm){ in, 100, 4096 + 4096 + 4096 }, 1);
	/* 100 bytes into page 10, all of a, and the first 100 bytes of page 21 */
	OK(ask(&r, 1, IBMR_ADVICE_WRITE, &err));
	assert_int_equal(info.bytes, 3 * PAGE);
	assert_int_equal(info.total.pages, 3);
	assert_int_equal(info.total.cpu_resident_before, 0);
	assert_int_equal(info.total.cpu_resident_after, 3);
	r = (struct ibmr_range){ lazy, 0, IBMR_TO_END };
	OK(ask(&r, 1, IBMR_ADVICE_NO_FAULT, &err));
	assert_int_equal(info.total.cpu_resident_before, 3);
	r = (struct ibmr_range){ lazy, 20 * PAGE, 8192 };
	OK(ask(&r, 1, IBMR_ADVICE_NO_FAULT, &err));
	assert_int_equal(info.total.cpu_resident_before, 2);
}

static void many_scattered_pieces_go_in_batches(void **state)
{
	enum { NUM = 3000 };
	struct ibmr_mr *lazy = soft_reg("lazy", 2 * PAGE * NUM, LW | OD);
	struct ibmr_mr *col = soft_create("col", NUM);
	struct ibmr_klm *klms = calloc(NUM, sizeof(*klms));
	struct ibmr_range r = { col, 0, IBMR_TO_END };
	struct ibmr_err err;
	int i;

	assert_non_null(klms);
	for (i = 0; i < NUM; i++)
		klms[i] = (struct ibmr_klm){ lazy, (uint64_t)(NUM - 1 - i) * 8192 + 17, 16 };
	soft_fill_list(col, LW, klms, NUM);
	OK(ask(&r, 1, IBMR_ADVICE_WRITE, &err));
	assert_int_equal(info.total.pages, NUM);
	assert_int_equal(info.total.cpu_resident_after, NUM);
	assert_int_equal(info.total.device_mapped_after, NUM);
	free(klms);
}

static void ranges_above_4_gib_are_split(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 6 * GIB + 4096, LW | OD);
	struct ibmr_range r = { lazy, 4096, 6 * GIB };
	struct ibmr_err err;

	/* pages 1 and the last are there; nothing else may become so */
	bytes_of(lazy)[4096] = 1;
	bytes_of(lazy)[6 * GIB] = 1;
	OK(ask(&r, 1, IBMR_ADVICE_NO_FAULT, &err));
	assert_int_equal(soft_counter("cmd.advise_mr"), 6);
	assert_int_equal(info.bytes, 6 * GIB);
	assert_int_equal(info.total.pages, 6 * GIB / 4096);
	assert_int_equal(info.total.cpu_resident_before, 2);
	assert_int_equal(info.total.cpu_resident_after, 2);
	assert_int_equal(info.total.device_mapped_after, 2);
}

static void residency_of_a_file_is_told_by_pagemap(void **state)
{
	char path[] = "/tmp/test-lib-prefetch.XXXXXX";
	struct ibmr_mr_spec spec = { .name = "f",
				     .mem = IBMR_MEM_FILE,
				     .path = path,
				     .length = 8 * PAGE,
				     .file_offset = 100,
				     .file_flags = IBMR_FILE_SHARED | IBMR_FILE_CREATE,
				     .access = LW | OD };
	struct ibmr_range r = { NULL, 0, 4096 };
	struct ibmr_err err;

	close(mkstemp(path));
	OK(ibmr_mr_reg(soft, &spec, &r.mr, &err));
	OK(ask(&r, 1, IBMR_ADVICE_READ, &err));
	assert_string_equal(info.source, "pagemap");
	assert_int_equal(info.total.pages, 2);
	assert_int_equal(info.total.cpu_resident_before, 0);
	assert_int_equal(info.total.cpu_resident_after, 2);
	assert_int_equal(info.total.device_mapped_after, 2);
	soft_dereg(r.mr);
	unlink(path);
}

static void counts_are(const struct ibmr_mr *mr, int faults, int prefetched, int invalidations)
{
	struct ibmr_odp_counts counts;

	ibmr_mr_odp_counts(mr, &counts);
	assert_int_equal(counts.faults, faults);
	assert_int_equal(counts.prefetched, prefetched);
	assert_int_equal(counts.invalidations, invalidations);
}

static void pages_dropped_again_are_prefetched_again_and_counted(void **state)
{
	struct ibmr_mr *lazy = soft_reg("lazy", 16 * PAGE, LW | RR | OD),
		       *a = soft_reg("a", 4096, LW);
	struct ibmr_range r = { lazy, 0, 8 * PAGE };
	struct ibmr_err err;
	uint8_t byte;

	counts_are(lazy, 0, 0, 0);
	counts_are(a, -1, -1, -1);
	OK(ask(&r, 1, IBMR_ADVICE_WRITE, &err));
	counts_are(lazy, 0, 8, 0);
	bytes_of(lazy)[0] = 7;
	assert_int_equal(madvise(bytes_of(lazy), 4 * PAGE, MADV_DONTNEED), 0);
	counts_are(lazy, 0, 8, 4);
	OK(ask(&r, 1, IBMR_ADVICE_NO_FAULT, &err));
	assert_int_equal(info.total.cpu_resident_after, 4);
	assert_int_equal(info.total.device_mapped_after, 4);
	OK(ask(&r, 1, IBMR_ADVICE_WRITE, &err));
	assert_int_equal(info.total.cpu_resident_after, 8);
	counts_are(lazy, 0, 12, 4);
	/* and what the device needs without advice it takes by faults */
	OK(ibmr_mr_read(lazy, 0, &byte, 1, 0, &err));
	assert_int_equal(byte, 0);
	OK(ibmr_mr_read(lazy, 9 * PAGE, &byte, 1, 0, &err));
	counts_are(lazy, 1, 12, 4);
}

static void read_only_memory_is_prefetched_for_reading(void **state)
{
	uint8_t *at = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibmr_mr_spec spec = { .name = "ro",
				     .mem = IBMR_MEM_CALLER,
				     .addr = at,
				     .length = 4 * PAGE,
				     .access = LW | OD };
	struct ibmr_range r = { NULL, 0, IBMR_TO_END };
	struct ibmr_err err;

	OK(ibmr_mr_reg(soft, &spec, &r.mr,
		       &err)); /* on demand nothing is pinned, so nothing asked */
	OK(ask(&r, 1, IBMR_ADVICE_READ, &err));
	assert_int_equal(info.total.cpu_resident_after, 4);
	REFUSED(ask(&r, 1, IBMR_ADVICE_WRITE, &err), EFAULT, IBMR_E_BAD_ADDRESS);
	assert_string_equal(err.cause, "read_only");
	assert_true(err.certain);
	soft_dereg(r.mr);
	munmap(at, 4 * PAGE);
}

static void an_interrupted_prefetch_says_so(void **state)
{
	static volatile sig_atomic_t cancel = 1;
	struct ibmr_mr *lazy = soft_reg("lazy", 4096, LW | OD);
	struct ibmr_range r = { lazy, 0, 10 };
	struct ibmr_err err;

	soft->cancel = &cancel;
	REFUSED(ask(&r, 1, IBMR_ADVICE_READ, &err), EINTR, IBMR_E_INTERRUPTED);
	assert_int_equal(soft_counter("cmd.advise_mr"), 0);
	soft->cancel = NULL;
}

/* What counts when pagemap cannot be had. */
static void mincore_is_trusted_with_anonymous_memory_only(void **state)
{
	uint8_t *at =
		mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibmri_residency res = { .fd = -1 };
	struct ibmr_mr *a = soft_reg("a", 8, 0);
	struct ibmri_call c;

	ibmri_call_start(&c, soft, "x", "x", a);
	at[4096] = at[3 * PAGE] = 1;
	assert_int_equal(ibmri_pages_resident(&res, (uintptr_t)at + 1, 3 * PAGE, true, &c), 2);
	assert_true(res.used_mincore);
	res.used_mincore = false;
	assert_int_equal(ibmri_pages_resident(&res, (uintptr_t)at, 4096, false, &c), -1);
	assert_false(res.used_mincore || res.used_pagemap);
	munmap(at, 8 * PAGE);
	assert_int_equal(ibmri_pages_resident(&res, (uintptr_t)at, 4096, true, &c), -1);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, soft_setup, soft_teardown)
	const struct CMUnitTest tests[] = {
		T(pages_become_resident_and_are_counted),
		T(a_page_is_counted_whole_and_once),
		T(the_readers_of_counts_need_not_ask_for_them),
		T(a_range_outside_is_refused_before_the_driver_is_asked),
		T(a_pinned_mr_is_not_on_demand),
		T(prefetch_for_writing_needs_local_write),
		T(a_device_without_prefetch_says_enosys),
		T(a_driver_that_wants_local_write_to_prefetch_is_said_to),
		T(a_hint_that_is_ignored_is_success),
		T(a_hole_is_a_bad_address_with_its_page),
		T(a_read_only_page_is_a_bad_address_by_eperm_too),
		T(an_indirect_mr_prefetches_the_memory_under_the_range),
		T(many_scattered_pieces_go_in_batches),
		T(ranges_above_4_gib_are_split),
		T(residency_of_a_file_is_told_by_pagemap),
		T(pages_dropped_again_are_prefetched_again_and_counted),
		T(read_only_memory_is_prefetched_for_reading),
		T(an_interrupted_prefetch_says_so),
		T(mincore_is_trusted_with_anonymous_memory_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
