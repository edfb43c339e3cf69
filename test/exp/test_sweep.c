/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each allocation of the library, and each command to the device, fails once. The call that met it must
 * say so by errno, and work when it is made again; at the end nothing is left.
 */
#include "rig.h"

#include <search.h>
#include <sys/mman.h>

/* ---- allocations that fail ---------------------------------------------------------- */

void *__real_malloc(size_t size);
void *__real_calloc(size_t num, size_t size);
void *__real_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
void *__real_tsearch(const void *key, void **root, int (*compare)(const void *, const void *));
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t num, size_t size);
void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset);
void *__wrap_tsearch(const void *key, void **root, int (*compare)(const void *, const void *));

static uint64_t allocations, failing; /* counted; the one to fail, 0 for none */

static int fails_now(void)
{
	int fails = ++allocations == failing;

	if (fails)
		errno = ENOMEM;
	return fails;
}

void *__wrap_malloc(size_t size)
{
	return fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t num, size_t size)
{
	return fails_now() ? NULL : __real_calloc(num, size);
}

void *__wrap_mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	return fails_now() ? MAP_FAILED : __real_mmap(addr, length, prot, flags, fd, offset);
}

void *__wrap_tsearch(const void *key, void **root, int (*compare)(const void *, const void *))
{
	return fails_now() ? NULL : __real_tsearch(key, root, compare);
}

/* ---- the calls, each 0 or an errno ------------------------------------------------------ */

static uint8_t mem[2 * PAGE];
static struct ibv_exp_mkey_list_container *list;
static struct ibv_mr *a, *allocated, *lazy, *umr;
static struct ibv_exp_mem_region regions[20];
static size_t bytes = 8, stride = 16, count = 4;
static struct ibv_exp_mem_repeat_block block;

static int query(void)
{
	struct ibv_exp_device_attr attr = { .comp_mask = IBV_EXP_DEVICE_ATTR_UMR };
	int ret = ibv_exp_query_device(rig.context, &attr);

	assert_true(ret || attr.umr_caps.max_klm_list_size); /* a failure is not an answer */
	return ret;
}

static int reg(struct ibv_mr **mr, void *addr, size_t length, uint64_t access)
{
	struct ibv_exp_reg_mr_in in = {
		.pd = rig.pd, .addr = addr, .length = length, .exp_access = access
	};

	*mr = ibv_exp_reg_mr(&in);
	return *mr ? 0 : errno;
}

static int reg_a(void)
{
	return reg(&a, mem, sizeof(mem), ALL);
}

static int reg_allocated(void)
{
	return reg(&allocated, NULL, PAGE, ALL | IBV_EXP_ACCESS_ALLOCATE_MR);
}

static int reg_lazy(void)
{
	return reg(&lazy, mem, sizeof(mem), ALL | IBV_EXP_ACCESS_ON_DEMAND);
}

static int prefetch(void)
{
	struct ibv_exp_prefetch_attr attr = { .addr = mem, .length = sizeof(mem) };

	return ibv_exp_prefetch_mr(lazy, &attr);
}

static int create_qp(void)
{
	struct ibv_exp_qp_init_attr attr = {
		.send_cq = rig.cq,
		.recv_cq = rig.cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_EXP_QP_INIT_ATTR_PD | IBV_EXP_QP_INIT_ATTR_CREATE_FLAGS |
			     IBV_EXP_QP_INIT_ATTR_MAX_INL_KLMS,
		.pd = rig.pd,
		.exp_create_flags = IBV_EXP_QP_CREATE_UMR,
		.max_inl_send_klms = 20,
	};

	rig.qp = ibv_exp_create_qp(rig.context, &attr);
	return rig.qp ? 0 : errno;
}

static int connect_qp(void)
{
	uint64_t was = failing;

	failing = 0;
	rig_connect(rig.qp, rig.qp);
	failing = was;
	return 0;
}

static int create_umr(void)
{
	struct ibv_exp_create_mr_in in = { .pd = rig.pd };

	in.attr.max_klm_list_size = 20;
	in.attr.create_flags = IBV_EXP_MR_INDIRECT_KLMS;
	umr = ibv_exp_create_mr(&in);
	return umr ? 0 : errno;
}

static int alloc_list(void)
{
	struct ibv_exp_mkey_list_container_attr attr = { .pd = rig.pd, .max_klm_list_size = 20 };

	list = ibv_exp_alloc_mkey_list_memory(&attr);
	return list ? 0 : errno;
}

static int post(struct ibv_exp_send_wr *wr)
{
	int ret = rig_post(rig.qp, wr);

	if (!ret)
		rig_done(wr->wr_id, IBV_EXP_WC_UMR);
	return ret;
}

static int fill_list(void)
{
	struct ibv_exp_send_wr wr = rig_fill(umr, 0, ALL);
	size_t i;

	for (i = 0; i < 20; i++)
		regions[i] = (struct ibv_exp_mem_region){ (uintptr_t)mem + i * 8, a, 8 };
	rig_set_list(&wr, regions, 20);
	wr.exp_send_flags = IBV_EXP_SEND_SIGNALED;
	wr.ext_op.umr.memory_objects = list;
	return post(&wr);
}

static int fill_repeat(void)
{
	struct ibv_exp_send_wr wr = rig_fill(umr, 0, ALL);

	block = (struct ibv_exp_mem_repeat_block){ (uintptr_t)mem, a, &bytes, &stride };
	rig_set_repeat(&wr, &block, 1, &count);
	return post(&wr);
}

static int dereg(struct ibv_mr **mr)
{
	int ret = *mr ? ibv_dereg_mr(*mr) : 0;

	if (!ret)
		*mr = NULL;
	return ret;
}

static int dereg_umr(void)
{
	return dereg(&umr);
}

static int dereg_a(void)
{
	return dereg(&a);
}

static int dereg_allocated(void)
{
	return dereg(&allocated);
}

static int dereg_lazy(void)
{
	return dereg(&lazy);
}

static int dealloc_list(void)
{
	return ibv_exp_dealloc_mkey_list_memory(list);
}

static int destroy_qp(void)
{
	int ret = ibv_destroy_qp(rig.qp);

	if (!ret)
		rig.qp = NULL;
	return ret;
}

static int dealloc_pd(void)
{
	int ret = ibv_dealloc_pd(rig.pd);

	if (!ret)
		rig.pd = NULL;
	return ret;
}

#define STEP(f)       \
	{             \
		f, #f \
	}
static const struct {
	int (*run)(void);
	const char *name;
} steps[] = {
	STEP(query),	  STEP(reg_a),	    STEP(reg_allocated), STEP(reg_lazy),
	STEP(prefetch),	  STEP(create_qp),  STEP(connect_qp),	 STEP(create_umr),
	STEP(alloc_list), STEP(fill_list),  STEP(fill_repeat),	 STEP(dereg_umr),
	STEP(dereg_a),	  STEP(dereg_lazy), STEP(dealloc_list),	 STEP(dereg_allocated),
	STEP(destroy_qp), STEP(dealloc_pd),
};

/* How many steps failed. */
static int go_through(int err_no)
{
	int failed = 0, ret;
	size_t i;

	for (i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		ret = steps[i].run();
		if (!ret)
			continue;
		failed++;
		if (ret != err_no)
			fail_msg("%s: %s", steps[i].name, strerror(ret));
		ret = steps[i].run();
		if (ret)
			fail_msg("%s, again: %s", steps[i].name, strerror(ret));
	}
	return failed;
}

static void each_allocation_fails_once(void **state)
{
	uint64_t n, failed = 0;

	for (n = 1;; n++) {
		rig_setup_bare(state);
		allocations = 0;
		failing = n;
		failed += (uint64_t)go_through(ENOMEM);
		failing = 0;
		rig_teardown(state);
		if (allocations < n)
			break;
	}
	assert_true(failed >= 20);
}

static void each_command_fails_once(void **state)
{
	static const char *const kinds[] = { "alloc_pd",       "dealloc_pd",  "reg_mr",
					     "dereg_mr",       "devx_create", "devx_destroy",
					     "create_qp",      "destroy_qp",  "advise_mr",
					     "query_device_ex" };
	char word[64];
	size_t k, n;

	for (k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		/* the first PD to go is query's own, which nobody could give back then */
		for (n = strcmp(kinds[k], "dealloc_pd") ? 1 : 2; n <= 6; n++) {
			rig_setup_bare(state);
			snprintf(word, sizeof(word), "%s:%zu:ENOMEM", kinds[k], n);
			rig_word("fail", word);
			go_through(ENOMEM);
			soft0_reset(); /* it may not have come to it */
			rig_teardown(state);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_allocation_fails_once),
		cmocka_unit_test(each_command_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
