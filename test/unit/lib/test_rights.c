/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The matrix of rights: of a member, of an indirect MR over it, of an operation through that. What the
 * rules say is written here once more; the library's records must say the same and, of what they would
 * refuse, so must the device.
 */
#include "soft_test.h"

static const uint64_t rights[] = { LW, RW, RR, RA };
#define SETS 16 /* of those four */

static uint64_t set_of(unsigned i)
{
	uint64_t set = 0;
	unsigned bit;

	for (bit = 0; bit < 4; bit++)
		set |= i >> bit & 1 ? rights[bit] : 0;
	return set;
}

/* Remote changes need local writing. */
static bool is_lawful(uint64_t set)
{
	return set & LW || !(set & (RW | RA));
}

/* ---- operations through an MR of 64 bytes ------------------------------------------------ */

static struct ibmr_mr *other; /* with every right */

static int op_write(struct ibmr_mr *mr, unsigned flags, struct ibmr_err *err)
{
	return ibmr_mr_write(mr, 8, "12345678", 8, flags, err);
}

static int op_read(struct ibmr_mr *mr, unsigned flags, struct ibmr_err *err)
{
	uint8_t buf[8];

	return ibmr_mr_read(mr, 8, buf, 8, flags, err);
}

static int op_fetch_add(struct ibmr_mr *mr, unsigned flags, struct ibmr_err *err)
{
	uint64_t old;

	return ibmr_mr_fetch_add(mr, 8, 1, &old, flags, err);
}

static int op_compare_swap(struct ibmr_mr *mr, unsigned flags, struct ibmr_err *err)
{
	uint64_t old;

	return ibmr_mr_compare_swap(mr, 8, 1, 2, &old, flags, err);
}

static int op_copy_to(struct ibmr_mr *mr, unsigned flags, struct ibmr_err *err)
{
	return ibmr_mr_copy(mr, 8, other, 0, 8, flags, err);
}

static int op_copy_from(struct ibmr_mr *mr, unsigned flags, struct ibmr_err *err)
{
	return ibmr_mr_copy(other, 0, mr, 8, 8, flags, err);
}

static int op_copy_within(struct ibmr_mr *mr, unsigned flags, struct ibmr_err *err)
{
	return ibmr_mr_copy(mr, 8, mr, 12, 8, flags, err);
}

static const struct {
	const char *name;
	int (*run)(struct ibmr_mr *mr, unsigned flags, struct ibmr_err *err);
	uint64_t needs;
} ops[] = {
	{ "write", op_write, RW },
	{ "read", op_read, RR },
	{ "fetch_add", op_fetch_add, RA },
	{ "compare_swap", op_compare_swap, RA },
	{ "copy to", op_copy_to, RW },
	{ "copy from", op_copy_from, 0 },
	{ "copy within", op_copy_within, RW | RR },
};

static unsigned allowed, refused;

/* The call did what the rules say of this cell. */
static void cell(const char *what, uint64_t member, uint64_t mr, int ret, bool lawful,
		 enum ibmr_code code, const struct ibmr_err *err)
{
	if (lawful ? ret != 0 : ret >= 0 || err->code != code)
		fail_msg("%s, member 0x%llx, MR 0x%llx: returned %d, %s", what,
			 (unsigned long long)member, (unsigned long long)mr, ret,
			 ret ? err->text : "");
	*(lawful ? &allowed : &refused) += 1;
}

static void check_operations(struct ibmr_mr *mr, uint64_t member, uint64_t has)
{
	struct ibmr_err err = { .code = IBMR_OK };
	size_t i;

	for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		bool lawful = !(ops[i].needs & ~has);

		cell(ops[i].name, member, has, ops[i].run(mr, 0, &err), lawful, IBMR_E_ACCESS,
		     &err);
		if (!lawful && strcmp(err.cause ? err.cause : "", "lacks_right"))
			fail_msg("%s: cause %s", ops[i].name, err.cause);
		cell(ops[i].name, member, has, ops[i].run(mr, IBMR_IO_UNCHECKED, &err), lawful,
		     IBMR_E_COMPLETION, &err);
		if (!lawful)
			assert_int_equal(err.status, IBV_WC_REM_ACCESS_ERR);
	}
}

/* ---- the members ---------------------------------------------------------------------------- */

static struct ibmr_mr *reg_with(uint64_t set)
{
	struct ibmr_mr_spec spec = {
		.name = "member", .mem = IBMR_MEM_ANON, .length = 64, .access = set
	};
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err = { .code = IBMR_OK };

	cell("reg", set, 0, ibmr_mr_reg(soft, &spec, &mr, &err), is_lawful(set), IBMR_E_ACCESS,
	     &err);
	return mr;
}

static int fill_over(struct ibmr_mr *mr, struct ibmr_mr *member, uint64_t set, bool repeat,
		     struct ibmr_err *err)
{
	struct ibmr_klm klm = { member, 0, 64 };
	struct ibmr_block block = { member, 0, 32, 32 };
	struct ibmr_layout l = { .access = set, .num = 1 };

	if (repeat) {
		l.kind = IBMR_LAYOUT_REPEAT;
		l.count = 2;
		l.blocks = &block;
	} else {
		l.klms = &klm;
	}
	return ibmr_mr_fill(mr, &l, err);
}

/* Each set of rights over a member that has those. */
static void check_over(struct ibmr_mr *member, uint64_t has, bool repeat)
{
	struct ibmr_mr *mr = soft_create("mr", 1);
	unsigned i;

	for (i = 0; i < SETS; i++) {
		struct ibmr_err err = { .code = IBMR_OK };
		uint64_t set = set_of(i);
		bool lawful = is_lawful(set) && !(set & ~has);

		cell("fill", has, set, fill_over(mr, member, set, repeat, &err), lawful,
		     IBMR_E_ACCESS, &err);
		if (lawful)
			check_operations(mr, has, set);
	}
	soft_dereg(mr);
}

static void every_cell_over_registered_memory(void **state)
{
	unsigned i;

	other = soft_reg("other", 64, LW | RW | RR | RA);
	for (i = 0; i < SETS; i++) {
		struct ibmr_mr *member = reg_with(set_of(i));

		if (!member)
			continue;
		check_operations(member, set_of(i), set_of(i));
		check_over(member, set_of(i), false);
		check_over(member, set_of(i), true);
		soft_dereg(member);
	}
	/* 10 of 16 sets are lawful of a member and, over all of these, 42 of 160 fills, by list and by repeat */
	assert_int_equal(allowed + refused, 16 + 10 * 14 + 2 * (160 + 42 * 14));
}

static void every_cell_over_an_indirect_mr(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 64, LW | RW | RR | RA), *member = soft_create("in", 1);
	struct ibmr_err err;
	unsigned i;

	other = soft_reg("other", 64, LW | RW | RR | RA);
	for (i = 0; i < SETS; i++) {
		if (!is_lawful(set_of(i)))
			continue;
		OK(fill_over(member, a, set_of(i), i % 2, &err));
		check_over(member, set_of(i), false);
		check_over(member, set_of(i), true);
	}
}

static void prefetch_for_writing_needs_local_write(void **state)
{
	unsigned i;

	for (i = 0; i < SETS; i++) {
		struct ibmr_mr *lazy, *mr = soft_create("mr", 1);
		struct ibmr_err err = { .code = IBMR_OK };
		struct ibmr_range range = { .length = 64 };
		uint64_t set = set_of(i);

		if (!is_lawful(set)) {
			soft_dereg(mr);
			continue;
		}
		lazy = soft_reg("lazy", 64, set | OD);
		OK(fill_over(mr, lazy, set, false, &err));
		for (range.mr = lazy; range.mr; range.mr = range.mr == lazy ? mr : NULL) {
			cell("prefetch write", set, 0,
			     ibmr_mr_prefetch(soft, &range, 1, IBMR_ADVICE_WRITE, true, NULL, NULL,
					      &err),
			     set & LW, IBMR_E_ACCESS, &err);
			cell("prefetch read", set, 0,
			     ibmr_mr_prefetch(soft, &range, 1, IBMR_ADVICE_READ, true, NULL, NULL,
					      &err),
			     true, IBMR_E_ACCESS, &err);
		}
		soft_dereg(mr);
		soft_dereg(lazy);
	}
}

static int setup(void **state)
{
	allowed = refused = 0;
	return soft_setup(state);
}

static int teardown(void **state)
{
	assert_true(allowed > 0 && refused > 0);
	return soft_teardown(state);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(every_cell_over_registered_memory),
		T(every_cell_over_an_indirect_mr),
		T(prefetch_for_writing_needs_local_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
