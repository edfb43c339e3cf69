/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random plans, from fixed seeds. Each step goes to soft0 and to a dry context with soft0's limits: they
 * must answer alike. What moves bytes is held against a model that knows lists and repeats only by
 * their definition, byte by byte.
 */
#include "soft_test.h"

#define NUM_MRS	  12
#define MAX_BYTES 600

/* An MR three times: on the device, in the dry context, and in the model. */
struct twin {
	struct ibmr_mr *real, *dry;
	bool indirect;
	uint8_t *bytes; /* direct: what its memory must hold */
	uint64_t length;
	/* indirect, filled: its layout, in indices of twins */
	enum ibmr_layout_kind kind;
	uint64_t count;
	int num;
	struct {
		int member;
		uint64_t offset, length, stride;
	} part[8];
};

static struct twin mrs[NUM_MRS];
static struct ibmr_ctx *dry;
static uint64_t seed;
static bool narrow; /* keys of four entries, and most MRs may be split */
static struct {
	uint64_t ok, refused, completions, moved, trees;
} seen;

static uint64_t rnd(uint64_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed % n;
}

/* Rights, weighted to those that let something happen. */
static uint64_t rnd_access(bool reg)
{
	static const uint64_t common[] = { LW | RW | RR, LW | RW | RR | RA, LW | RR, LW, RR, 0, RW,
					   LW | RA };
	uint64_t access = common[rnd(3) ? 0 : rnd(8)];

	if (reg && !rnd(4))
		access |= OD;
	if (!rnd(reg ? 15 : 60))
		access |= IBMR_ACCESS_RELAXED_ORDERING;
	return access;
}

/* ---- the model ------------------------------------------------------------------- */

/* The byte that offset of an MR is; by definition, not by the library's walk. */
static uint8_t *model_byte(struct twin *t, uint64_t offset)
{
	uint64_t cycle;
	int i;

	if (!t->indirect)
		return &t->bytes[offset];
	for (cycle = 0;; cycle++) {
		assert_true(cycle < t->count);
		for (i = 0; i < t->num; i++) {
			if (offset < t->part[i].length)
				return model_byte(&mrs[t->part[i].member],
						  t->part[i].offset + cycle * t->part[i].stride +
							  offset);
			offset -= t->part[i].length;
		}
	}
}

static void check_memory(void)
{
	int i;

	for (i = 0; i < NUM_MRS; i++)
		if (mrs[i].real && !mrs[i].indirect)
			assert_memory_equal(bytes_of(mrs[i].real), mrs[i].bytes, mrs[i].length);
}

/* ---- both at once -------------------------------------------------------------------- */

static void same_answer(int real, const struct ibmr_err *er, int simulated,
			const struct ibmr_err *ed)
{
	if (!real && !simulated) {
		seen.ok++;
		return;
	}
	if (real != simulated || er->code != ed->code || er->index != ed->index ||
	    er->status != ed->status || (er->cause != ed->cause && strcmp(er->cause, ed->cause)) ||
	    strcmp(er->hint, ed->hint))
		fail_msg("soft0: %d \"%s\" \"%s\"; dry: %d \"%s\" \"%s\"", real, er->text, er->hint,
			 simulated, ed->text, ed->hint);
	if (er->code == IBMR_E_COMPLETION) {
		seen.completions++;
		return;
	}
	/* texts with addresses in them differ in these only */
	if (!er->cause || strcmp(er->cause, "atomic_alignment"))
		assert_string_equal(er->text, ed->text);
	seen.refused++;
}

static void same_records(void)
{
	int i;

	assert_int_equal(ibmr_ctx_locked_bytes(soft), ibmr_ctx_locked_bytes(dry));
	assert_int_equal(ibmr_ctx_locked_bytes(soft), soft_counter("pinned_bytes"));
	for (i = 0; i < NUM_MRS; i++) {
		struct ibmr_mr_info r, d;

		if (!mrs[i].real)
			continue;
		r = info_of(mrs[i].real);
		d = info_of(mrs[i].dry);
		assert_string_equal(r.name, d.name);
		assert_int_equal(r.state, d.state);
		assert_int_equal(r.length, d.length);
		assert_int_equal(r.access, d.access);
		assert_int_equal(r.on_demand, d.on_demand);
		assert_int_equal(r.entries, d.entries);
		assert_int_equal(r.levels, d.levels);
		assert_int_equal(r.keys, d.keys);
		assert_int_equal(r.form, d.form);
		assert_int_equal(r.users, d.users);
		assert_int_equal(r.locked_bytes, d.locked_bytes);
		if (r.indirect)
			assert_true(r.base == d.base);
	}
}

/* ---- steps -------------------------------------------------------------------------------- */

static void step_reg(int at)
{
	struct twin *t = &mrs[at];
	struct ibmr_mr_spec spec = { .mem = IBMR_MEM_ANON };
	struct ibmr_err er, ed;
	char name[8];
	int ret;

	snprintf(name, sizeof(name), "d%d", at);
	spec.name = name;
	spec.length = rnd(20) ? 1 + rnd(MAX_BYTES) : 0;
	spec.access = rnd_access(true);
	ret = ibmr_mr_reg(soft, &spec, &t->real, &er);
	same_answer(ret, &er, ibmr_mr_reg(dry, &spec, &t->dry, &ed), &ed);
	if (ret)
		return;
	t->length = spec.length;
	t->indirect = false;
	t->bytes = malloc(t->length + 1);
	assert_non_null(t->bytes);
	ramp(t->real, (uint8_t)rnd(256));
	memcpy(t->bytes, bytes_of(t->real), t->length);
}

static void step_create(int at)
{
	struct twin *t = &mrs[at];
	struct ibmr_err er, ed;
	uint64_t max = narrow && rnd(2) ? 8 : rnd(9);
	char name[8];
	int ret;

	snprintf(name, sizeof(name), "i%d", at);
	if (narrow && rnd(4)) {
		ret = ibmr_mr_create_split(soft, name, max, &t->real, &er);
		same_answer(ret, &er, ibmr_mr_create_split(dry, name, max, &t->dry, &ed), &ed);
	} else {
		ret = ibmr_mr_create(soft, name, max, &t->real, &er);
		same_answer(ret, &er, ibmr_mr_create(dry, name, max, &t->dry, &ed), &ed);
	}
	if (ret)
		return;
	t->indirect = true;
	t->num = 0;
}

/* An MR to point at; one in twenty is none at all. */
static int rnd_member(void)
{
	int i = (int)rnd(NUM_MRS), tries;

	for (tries = 0; tries < NUM_MRS && !mrs[i].real; tries++)
		i = (i + 1) % NUM_MRS;
	return rnd(20) ? i : (int)rnd(NUM_MRS);
}

static void step_fill(struct twin *t)
{
	struct ibmr_klm rk[8], dk[8];
	struct ibmr_block rb[8], db[8];
	struct ibmr_layout lr = { .kind = rnd(2) ? IBMR_LAYOUT_LIST : IBMR_LAYOUT_REPEAT }, ld;
	struct twin next = *t;
	struct ibmr_err er, ed;
	/* long lists would seldom be right by chance alone */
	int good = narrow && rnd(2) ? rnd_member() : -1, i, ret;

	lr.access = rnd_access(false);
	lr.base = rnd(3) ? 0 : rnd(8) ? rnd(1 << 20) * 8 : rnd(UINT64_MAX);
	lr.num = good >= 0 ? 1 + rnd(8) : rnd(9);
	lr.count = rnd(6);
	lr.split = narrow && rnd(4);
	for (i = 0; i < (int)lr.num; i++) {
		int m = rnd_member();
		uint64_t size = mrs[m].real ? info_of(mrs[m].real).length : 0;
		uint64_t offset = rnd(size + 2),
			 length = rnd(16) ? 1 + rnd(size / 4 + 1) : rnd(size + 2);
		uint64_t stride = rnd(30) ? rnd(40) : rnd(70000);

		if (good >= 0 && mrs[good].real && info_of(mrs[good].real).length) {
			m = good;
			size = info_of(mrs[m].real).length;
			offset = rnd(size / 2 + 1);
			length = 1 + rnd(size / 3 + 1);
			stride = rnd(size / 40 + 1);
		}

		rk[i] = (struct ibmr_klm){ mrs[m].real, offset, length };
		dk[i] = (struct ibmr_klm){ mrs[m].dry, offset, length };
		rb[i] = (struct ibmr_block){ mrs[m].real, offset, length, stride };
		db[i] = (struct ibmr_block){ mrs[m].dry, offset, length, stride };
		next.part[i].member = m;
		next.part[i].offset = offset;
		next.part[i].length = length;
		next.part[i].stride = lr.kind == IBMR_LAYOUT_REPEAT ? stride : 0;
	}
	ld = lr;
	lr.klms = lr.kind == IBMR_LAYOUT_LIST ? rk : (const void *)rb;
	ld.klms = lr.kind == IBMR_LAYOUT_LIST ? dk : (const void *)db;
	next.kind = lr.kind;
	next.num = (int)lr.num;
	next.count = lr.kind == IBMR_LAYOUT_REPEAT ? lr.count : 1;
	ret = ibmr_mr_fill(t->real, &lr, &er);
	same_answer(ret, &er, ibmr_mr_fill(t->dry, &ld, &ed), &ed);
	if (ret)
		return;
	*t = next;
	seen.trees += info_of(t->real).form == IBMR_FORM_TREE;
}

static void step_invalidate(struct twin *t)
{
	struct ibmr_err er, ed;
	int ret = ibmr_mr_invalidate(t->real, &er);

	same_answer(ret, &er, ibmr_mr_invalidate(t->dry, &ed), &ed);
}

static void step_dereg(struct twin *t)
{
	struct ibmr_err er, ed;
	int ret = ibmr_mr_dereg(t->real, &er);

	same_answer(ret, &er, ibmr_mr_dereg(t->dry, &ed), &ed);
	if (ret)
		return;
	free(t->bytes);
	memset(t, 0, sizeof(*t));
}

static void step_write(struct twin *t)
{
	uint64_t size = info_of(t->real).length, offset = rnd(size + 2), k;
	uint64_t length =
		1 + (rnd(10) ? rnd(size - (offset < size ? offset : size) + 1) : rnd(size + 2));
	unsigned flags = rnd(4) ? 0 : IBMR_IO_UNCHECKED;
	uint8_t *buf = malloc(length);
	struct ibmr_err er, ed;
	int ret;

	assert_non_null(buf);
	for (k = 0; k < length; k++)
		buf[k] = (uint8_t)rnd(256);
	ret = ibmr_mr_write(t->real, offset, buf, length, flags, &er);
	same_answer(ret, &er, ibmr_mr_write(t->dry, offset, buf, length, flags, &ed), &ed);
	for (k = 0; !ret && k < length; k++)
		*model_byte(t, offset + k) = buf[k];
	seen.moved += ret ? 0 : length;
	free(buf);
}

static void step_read(struct twin *t)
{
	uint64_t size = info_of(t->real).length, offset = rnd(size + 2), k;
	uint64_t length =
		1 + (rnd(10) ? rnd(size - (offset < size ? offset : size) + 1) : rnd(size + 2));
	unsigned flags = rnd(4) ? 0 : IBMR_IO_UNCHECKED;
	uint8_t *buf = malloc(length), byte;
	struct ibmr_err er, ed;
	int ret;

	assert_non_null(buf);
	ret = ibmr_mr_read(t->real, offset, buf, length, flags, &er);
	same_answer(ret, &er, ibmr_mr_read(t->dry, offset, &byte, length, flags, &ed), &ed);
	for (k = 0; !ret && k < length; k++)
		assert_int_equal(buf[k], *model_byte(t, offset + k));
	seen.moved += ret ? 0 : length;
	free(buf);
}

static void step_atomic(struct twin *t)
{
	uint64_t size = info_of(t->real).length,
		 offset = rnd(3) ? rnd(size / 8 + 1) * 8 : rnd(size + 1);
	unsigned flags = rnd(4) ? 0 : IBMR_IO_UNCHECKED;
	uint64_t old = 0, ignored, add = rnd(UINT64_MAX), want = 0;
	struct ibmr_err er, ed;
	int ret, k;

	ret = ibmr_mr_fetch_add(t->real, offset, add, &old, flags, &er);
	same_answer(ret, &er, ibmr_mr_fetch_add(t->dry, offset, add, &ignored, flags, &ed), &ed);
	if (ret)
		return;
	for (k = 0; k < 8; k++)
		want |= (uint64_t)*model_byte(t, offset + (uint64_t)k) << 8 * k;
	assert_true(old == want);
	for (k = 0; k < 8; k++)
		*model_byte(t, offset + (uint64_t)k) = (uint8_t)((want + add) >> 8 * k);
}

/* Do the two have a byte in common? */
static bool share_bytes(struct twin *t, uint64_t to, struct twin *u, uint64_t from, uint64_t length)
{
	uint64_t i, k;

	for (i = 0; i < length; i++)
		for (k = 0; k < length; k++)
			if (model_byte(t, to + i) == model_byte(u, from + k))
				return true;
	return false;
}

/* What arrives where layouts share bytes is not stated: such a copy is not made. */
static void step_copy(struct twin *t)
{
	struct twin *u = &mrs[rnd_member()];
	uint64_t size, room = info_of(t->real).length, to = rnd(room + 2), from, length, i;
	uint8_t was[64];
	struct ibmr_err er, ed;
	int ret;

	if (!u->real)
		return;
	size = info_of(u->real).length;
	from = rnd(size + 2);
	length = 1 + rnd(sizeof(was));
	if (to <= room && length <= room - to && from <= size && length <= size - from &&
	    (t->indirect || u->indirect || t == u) && share_bytes(t, to, u, from, length))
		return;
	ret = ibmr_mr_copy(t->real, to, u->real, from, length, 0, &er);
	same_answer(ret, &er, ibmr_mr_copy(t->dry, to, u->dry, from, length, 0, &ed), &ed);
	if (ret)
		return;
	for (i = 0; i < length; i++)
		was[i] = *model_byte(u, from + i);
	for (i = 0; i < length; i++)
		*model_byte(t, to + i) = was[i];
	seen.moved += length;
}

static void step_prefetch(struct twin *t)
{
	uint64_t size = info_of(t->real).length;
	struct ibmr_range rr = { t->real, rnd(size + 1), rnd(3) ? IBMR_TO_END : rnd(size + 2) };
	struct ibmr_range rd = { t->dry, rr.offset, rr.length };
	enum ibmr_advice advice = (enum ibmr_advice)rnd(3);
	struct ibmr_pages pr, pd;
	struct ibmr_err er, ed;
	int ret;

	ret = ibmr_mr_prefetch(soft, &rr, 1, advice, true, &pr, NULL, &er);
	same_answer(ret, &er, ibmr_mr_prefetch(dry, &rd, 1, advice, true, &pd, NULL, &ed), &ed);
	if (ret)
		return;
	assert_int_equal(pr.length, pd.length);
	assert_int_equal(pr.pages, pd.pages);
	assert_int_equal(pd.cpu_resident_after, -1);
}

static void step(void)
{
	int at = (int)rnd(NUM_MRS);
	struct twin *t = &mrs[at];

	if (!t->real) {
		if (rnd(2))
			step_reg(at);
		else
			step_create(at);
		return;
	}
	switch (rnd(13)) {
	case 0:
		step_dereg(t);
		break;
	case 1:
		step_invalidate(t);
		break;
	case 2:
		step_prefetch(t);
		break;
	case 3:
		step_atomic(t);
		break;
	case 4:
	case 5:
	case 6:
		step_write(t);
		break;
	case 7:
	case 8:
		step_read(t);
		break;
	case 9:
		step_copy(t);
		break;
	default:
		step_fill(t);
	}
}

static int setup(void **state)
{
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	struct ibmr_err err;

	soft_setup_bare(state);
	if (narrow)
		soft_word("max_klms", "4");
	OK(ibmr_ctx_open(&opts, &soft, &err));
	return 0;
}

static int setup_narrow(void **state)
{
	narrow = true;
	return setup(state);
}

static void open_dry(void)
{
	struct ibmr_caps caps;
	struct ibmr_err err;

	OK(ibmr_ctx_query(soft, &caps, &err));
	OK(ibmr_ctx_open_dry(&caps, &dry, &err));
	assert_true(ibmr_ctx_is_dry(dry));
}

static void close_dry(void)
{
	struct ibmr_err err;
	struct ibmr_mr *mr;
	int i;

	while (dry->mrs) {
		for (mr = dry->mrs; mr->users; mr = mr->next)
			;
		OK(ibmr_mr_dereg(mr, &err));
	}
	assert_true(ibmr_ctx_locked_bytes(dry) <= 2 * MIB);
	OK(ibmr_ctx_close(dry, &err));
	for (i = 0; i < NUM_MRS; i++)
		free(mrs[i].bytes);
	memset(mrs, 0, sizeof(mrs));
}

static void rounds(void **state, int num)
{
	const char *more = getenv("LIB_RANDOM_ROUNDS"); /* for long runs */
	int round, i;

	memset(&seen, 0, sizeof(seen));
	num = more ? atoi(more) : num;
	for (round = 1; round <= num; round++) {
		seed = (uint64_t)round * 0x9e3779b97f4a7c15;
		open_dry();
		for (i = 0; i < 500; i++) {
			step();
			same_records();
			check_memory();
		}
		close_dry();
		soft_teardown(state);
		setup(state);
	}
}

static void a_dry_context_answers_as_the_device_and_bytes_move_as_defined(void **state)
{
	rounds(state, 12);
	/* a generator that makes only mistakes, or none, would prove little */
	assert_true(seen.ok > 1500 && seen.refused > 1000 && seen.completions > 30 &&
		    seen.moved > 30000);
}

static void and_so_do_trees_of_keys(void **state)
{
	rounds(state, 40);
	assert_true(seen.ok > 1500 && seen.refused > 1000 && seen.trees > 50 && seen.moved > 30000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_dry_context_answers_as_the_device_and_bytes_move_as_defined, setup,
			soft_teardown),
		cmocka_unit_test_setup_teardown(and_so_do_trees_of_keys, setup_narrow,
						soft_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
