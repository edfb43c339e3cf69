/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts: opened, borrowed, refused, closed; what a device reports. */
#include "soft_test.h"

#include <infiniband/verbs.h>
#include <pthread.h>

static struct ibmr_ctx_opts named(const char *device)
{
	return (struct ibmr_ctx_opts){ .device = device, .gid_index = -1 };
}

static void a_device_is_opened_by_name_and_by_its_active_port(void **state)
{
	struct ibmr_ctx_opts by_name = named("soft0"), any = named(NULL);
	struct ibmr_ctx *ctx;
	struct ibmr_err err;

	OK(ibmr_ctx_open(&by_name, &ctx, &err));
	assert_false(ibmr_ctx_is_dry(ctx));
	OK(ibmr_ctx_close(ctx, &err));
	OK(ibmr_ctx_open(&any, &ctx, &err));
	OK(ibmr_ctx_close(ctx, &err));
	OK(ibmr_ctx_open(NULL, &ctx, &err));
	OK(ibmr_ctx_close(ctx, &err));
	OK(ibmr_ctx_close(NULL, &err));
}

static void an_unknown_device_names_those_there(void **state)
{
	struct ibmr_ctx_opts opts = named("mlx5_7");
	struct ibmr_ctx *ctx = NULL;
	struct ibmr_err err;

	REFUSED(ibmr_ctx_open(&opts, &ctx, &err), ENODEV, IBMR_E_NO_DEVICE);
	SAYS("no RDMA device 'mlx5_7'");
	SAYS("/sys/class/infiniband_verbs: soft0");
	assert_null(ctx);
}

static void a_port_that_is_not_there_is_refused(void **state)
{
	struct ibmr_ctx_opts opts = named("soft0");
	struct ibmr_ctx *ctx;
	struct ibmr_err err;

	opts.port = 2;
	REFUSED(ibmr_ctx_open(&opts, &ctx, &err), ENODEV, IBMR_E_NO_DEVICE);
	SAYS("no port 2");
	opts.port = 1;
	OK(ibmr_ctx_open(&opts, &ctx, &err));
	OK(ibmr_ctx_close(ctx, &err));
}

static void a_gid_index_that_is_not_there_is_refused_when_needed(void **state)
{
	struct ibmr_ctx_opts opts = named("soft0");
	struct ibmr_err err;
	struct ibmr_mr *a;

	opts.gid_index = 200;
	OK(ibmr_ctx_open(&opts, &soft, &err));
	a = soft_reg("a", 8, LW | RW);
	REFUSED(ibmr_mr_write(a, 0, "x", 1, 0, &err), ENODEV, IBMR_E_NO_DEVICE);
	assert_string_equal(err.cause, "no_gid");
	assert_string_equal(err.origin, "ibmr_mr_write");
	soft_dereg(a);
	OK(ibmr_ctx_close(soft, &err));
	opts.gid_index = 0;
	OK(ibmr_ctx_open(&opts, &soft, &err));
	a = soft_reg("a", 8, LW | RW);
	OK(ibmr_mr_write(a, 0, "x", 1, 0, &err));
	soft_dereg(a);
	OK(ibmr_ctx_close(soft, &err));
}

static void the_queue_pair_is_made_at_first_need(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 8, LW | RW), *col = soft_create("col", 1);
	struct ibmr_caps caps;
	struct ibmr_err err;

	OK(ibmr_ctx_query(soft, &caps, &err));
	assert_int_equal(soft_counter("live.qp"), 0);
	assert_int_equal(soft_counter("live.cq"), 0);
	OK(ibmr_mr_write(a, 0, "x", 1, 0, &err));
	assert_int_equal(soft_counter("live.qp"), 2);
	soft_dereg(a);
	soft_dereg(col);
}

static void caps_say_what_the_device_says(void **state)
{
	struct ibmr_caps caps;
	struct ibmr_err err;

	OK(ibmr_ctx_query(soft, &caps, &err));
	assert_string_equal(caps.name, "soft0");
	assert_string_equal(caps.driver, "mlx5");
	assert_true(caps.guid != 0);
	assert_true(caps.odp && caps.odp_implicit && caps.umr && caps.atomics);
	assert_true(caps.odp_rc & IBV_ODP_SUPPORT_WRITE);
	assert_int_equal(caps.prefetch, 1);
	assert_int_equal(caps.inline_klms, 52);
	assert_int_equal(caps.max_stride, 65535);
	assert_int_equal(caps.max_entry, 0x7fffffff);
	assert_true(caps.max_klms > 0 && caps.max_klms <= 65532);
	assert_int_equal(caps.max_depth, 4);
	assert_false(caps.repeat_on_demand);
	assert_int_equal(caps.num_ports, 1);
	assert_int_equal(caps.ports[0].num, 1);
	assert_int_equal(caps.ports[0].state, IBV_PORT_ACTIVE);
	assert_int_equal(caps.ports[0].active_mtu_bytes, 4096);
	/* the probes leave nothing behind */
	assert_int_equal(soft_counter("live.mkey"), 0);
	assert_int_equal(soft_counter("odp.prefetched"), 0);
}

static struct ibmr_caps caps_with(const char *word, const char *value)
{
	struct ibmr_ctx_opts opts = named("soft0");
	struct ibmr_ctx *ctx;
	struct ibmr_caps caps;
	struct ibmr_err err;

	soft_setup_bare(NULL);
	soft_word(word, value);
	OK(ibmr_ctx_open(&opts, &ctx, &err));
	OK(ibmr_ctx_query(ctx, &caps, &err));
	OK(ibmr_ctx_close(ctx, &err));
	return caps;
}

static void what_a_device_lacks_is_not_listed(void **state)
{
	assert_false(caps_with("odp", "0").odp);
	assert_int_equal(caps_with("odp", "0").prefetch, 0);
	assert_int_equal(caps_with("advise", "0").prefetch, 0);
	assert_false(caps_with("implicit", "0").odp_implicit);
	assert_false(caps_with("atomics", "0").atomics);
	assert_false(caps_with("umr", "0").umr);
	assert_false(caps_with("devx", "0").umr);
	assert_int_equal(caps_with("umr", "0").inline_klms, 0);
	assert_int_equal(caps_with("devx", "0").max_depth, 0);
	assert_int_equal(caps_with("max_klms", "64").max_klms, 64);
	assert_int_equal(caps_with("max_depth", "2").max_depth, 2);
	assert_true(caps_with("max_mr_size", "1048576").max_mr_size == MIB);
}

static void a_ctx_with_mrs_is_not_closed(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 8, 0);
	struct ibmr_err err;

	REFUSED(ibmr_ctx_close(soft, &err), EBUSY, IBMR_E_IN_USE);
	SAYS("1 memory regions still exist, 'a' among them");
	assert_int_equal(soft_counter("live.context"), 1);
	soft_dereg(a);
}

static void a_borrowed_pd_stays_the_callers(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *verbs = ibv_open_device(list[0]);
	struct ibv_pd *pd = ibv_alloc_pd(verbs);
	struct ibmr_err err;
	struct ibmr_mr *a;

	assert_non_null(pd);
	REFUSED(ibmr_ctx_from_pd(NULL, NULL, &soft, &err), EINVAL, IBMR_E_ARGUMENT);
	OK(ibmr_ctx_from_pd(pd, NULL, &soft, &err));
	a = soft_reg("a", 64, LW | RW | RR);
	OK(ibmr_mr_write(a, 0, "hello", 5, 0, &err));
	assert_memory_equal(bytes_of(a), "hello", 5);
	/* also after an error, whose event is the caller's to take */
	REFUSED(ibmr_mr_write(a, 64, "x", 1, IBMR_IO_UNCHECKED, &err), EIO, IBMR_E_COMPLETION);
	OK(ibmr_mr_write(a, 0, "again", 5, 0, &err));
	soft_dereg(a);
	OK(ibmr_ctx_close(soft, &err));
	assert_int_equal(soft_counter("live.pd"), 1);
	assert_int_equal(soft_counter("live.context"), 1);
	assert_int_equal(soft_counter("live.qp"), 0);
	assert_int_equal(soft_counter("live.mr"), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(verbs), 0);
	ibv_free_device_list(list);
}

static void locked_bytes_are_what_the_device_pins(void **state)
{
	struct ibmr_mr *a = soft_reg("a", 10000, LW | RW | RR);
	struct ibmr_mr *lazy = soft_reg("lazy", MIB, LW | OD);
	struct ibmr_mr *col = soft_create("col", 100);
	struct ibmr_klm klms[100];
	struct ibmr_err err;
	uint8_t buf[20000] = { 0 };
	int i;

	assert_int_equal(ibmr_ctx_locked_bytes(soft), 12288);
	assert_int_equal(info_of(a).locked_bytes, 12288);
	assert_int_equal(info_of(lazy).locked_bytes, 0);
	for (i = 0; i < 100; i++)
		klms[i] = (struct ibmr_klm){ a, 100 * (uint64_t)i, 100 };
	soft_fill_list(col, LW | RR, klms, 100); /* list memory */
	assert_int_equal(ibmr_ctx_locked_bytes(soft), 12288 + 4096);
	assert_int_equal(ibmr_ctx_locked_bytes(soft), soft_counter("pinned_bytes"));
	OK(ibmr_mr_read(col, 0, buf, 1, 0, &err)); /* staging memory */
	assert_int_equal(ibmr_ctx_locked_bytes(soft), soft_counter("pinned_bytes"));
	OK(ibmr_mr_read(col, 0, buf, 10000, 0, &err));
	assert_int_equal(ibmr_ctx_locked_bytes(soft), soft_counter("pinned_bytes"));
	soft_dereg(col);
	soft_dereg(a);
	assert_int_equal(ibmr_ctx_locked_bytes(soft), soft_counter("pinned_bytes"));
	soft_dereg(lazy);
}

/* Separate contexts are independent. */
static void *one_context(void *arg)
{
	struct ibmr_ctx_opts opts = named("soft0");
	struct ibmr_mr_spec spec = {
		.name = "a", .mem = IBMR_MEM_ANON, .length = 4096, .access = LW | RW | RR
	};
	struct ibmr_klm klms[2];
	struct ibmr_layout l = {
		.kind = IBMR_LAYOUT_LIST, .access = LW | RW | RR, .num = 2, .klms = klms
	};
	struct ibmr_mr *a = NULL, *col = NULL;
	struct ibmr_ctx *ctx = NULL;
	uint8_t got[16], want[16];
	struct ibmr_err err;
	int round, bad = 0;

	bad |= ibmr_ctx_open(&opts, &ctx, &err);
	for (round = 0; !bad && round < 50; round++) {
		bad |= ibmr_mr_reg(ctx, &spec, &a, &err) ||
		       ibmr_mr_create(ctx, "col", 2, &col, &err);
		if (bad)
			break;
		klms[0] = (struct ibmr_klm){ a, 64, 8 };
		klms[1] = (struct ibmr_klm){ a, 0, 8 };
		memset(want, round + (int)(intptr_t)arg, sizeof(want));
		bad |= ibmr_mr_fill(col, &l, &err) || ibmr_mr_write(col, 0, want, 16, 0, &err) ||
		       ibmr_mr_read(col, 0, got, 16, 0, &err) || memcmp(got, want, 16);
		/* and past an error */
		bad |= ibmr_mr_read(col, 16, got, 1, IBMR_IO_UNCHECKED, &err) != -EIO;
		bad |= ibmr_mr_dereg(col, &err) || ibmr_mr_dereg(a, &err);
	}
	bad |= ibmr_ctx_close(ctx, &err);
	return (void *)(intptr_t)bad;
}

static void contexts_in_threads_are_independent(void **state)
{
	pthread_t threads[4];
	void *bad;
	int i;

	for (i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&threads[i], NULL, one_context, (void *)(intptr_t)(i * 50)),
			0);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], &bad);
		assert_null(bad);
	}
}

int main(void)
{
#define BARE(t) cmocka_unit_test_setup_teardown(t, soft_setup_bare, soft_teardown_bare)
#define WITH(t) cmocka_unit_test_setup_teardown(t, soft_setup, soft_teardown)
	const struct CMUnitTest tests[] = {
		BARE(a_device_is_opened_by_name_and_by_its_active_port),
		BARE(an_unknown_device_names_those_there),
		BARE(a_port_that_is_not_there_is_refused),
		BARE(a_gid_index_that_is_not_there_is_refused_when_needed),
		WITH(the_queue_pair_is_made_at_first_need),
		WITH(caps_say_what_the_device_says),
		BARE(what_a_device_lacks_is_not_listed),
		WITH(a_ctx_with_mrs_is_not_closed),
		BARE(a_borrowed_pd_stays_the_callers),
		WITH(locked_bytes_are_what_the_device_pins),
		BARE(contexts_in_threads_are_independent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
