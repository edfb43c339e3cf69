/* SPDX-License-Identifier: BSD-2-Clause */
/* The stated limits of soft0 are what it reports; linked with softdev first, so that soft0 is here. */
#include "cli_test.h"

#include "../../../src/lib/ibmr.h"
#include "../../../src/softdev/soft0.h"
#include "targets.h"

#define SAME(member)                                                        \
	do {                                                                \
		if (stated->member != caps.member)                          \
			fail_msg("%s: stated %llu, reported %llu", #member, \
				 (unsigned long long)stated->member,        \
				 (unsigned long long)caps.member);          \
	} while (0)

static void soft0_is_what_it_is_said_to_be(void **state)
{
	const struct ibmr_caps *stated = target_find("soft0");
	struct ibmr_ctx_opts opts = { .device = "soft0", .gid_index = -1 };
	struct ibmr_caps caps = { 0 };
	struct ibmr_ctx *ctx;
	struct ibmr_err err;

	assert_string_equal(soft0_name(), stated->name);
	soft0_reset();
	if (ibmr_ctx_open(&opts, &ctx, &err) || ibmr_ctx_query(ctx, &caps, &err))
		fail_msg("%s", err.text);
	assert_string_equal(caps.driver, stated->driver);
	SAME(max_mr_size);
	SAME(odp);
	SAME(odp_implicit);
	SAME(odp_rc);
	SAME(umr);
	SAME(max_klms);
	SAME(inline_klms);
	SAME(max_depth);
	SAME(max_stride);
	SAME(max_entry);
	SAME(repeat_on_demand);
	SAME(prefetch);
	SAME(atomics);
	SAME(num_ports);
	SAME(ports[0].num);
	SAME(ports[0].state);
	SAME(ports[0].link_layer);
	SAME(ports[0].active_mtu_bytes);
	SAME(ports[0].max_msg_sz);
	assert_int_equal(ibmr_ctx_close(ctx, &err), 0);
}

static void devices_have_their_targets(void **state)
{
	assert_ptr_equal(target_of_device(NULL), target_find("mlx5"));
	assert_ptr_equal(target_of_device("mlx5_0"), target_find("mlx5"));
	assert_ptr_equal(target_of_device("rocep1s0"), target_find("mlx5"));
	assert_ptr_equal(target_of_device("rxe0"), target_find("rxe"));
	assert_ptr_equal(target_of_device("soft0"), target_find("soft0"));
	assert_null(target_find("mlx4"));
	assert_null(target_find(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(soft0_is_what_it_is_said_to_be),
		cmocka_unit_test(devices_have_their_targets),
	};

	return cmocka_run_group_tests_name("targets", tests, NULL, NULL);
}
