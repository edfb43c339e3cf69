/* SPDX-License-Identifier: BSD-2-Clause */
/* The life of MRs: created, registered, asked, prefetched, given back in every way. */
#include "rig.h"

#include <sys/mman.h>

static uint8_t mem[8 * PAGE] __attribute__((aligned(PAGE)));

static struct ibv_mr *create(uint32_t klms, uint32_t flags, uint32_t comp_mask)
{
	struct ibv_exp_create_mr_in in = { .pd = rig.pd, .comp_mask = comp_mask };

	in.attr.max_klm_list_size = klms;
	in.attr.create_flags = flags;
	return ibv_exp_create_mr(&in);
}

static void a_created_mr_is_empty_and_has_keys(void **state)
{
	struct ibv_exp_mkey_attr attr = { 0 };
	static const uint32_t asked[] = { 1, 4, 5, 65532 }, told[] = { 4, 4, 8, 65532 };
	size_t i;

	for (i = 0; i < 4; i++) {
		struct ibv_mr *mr = rig_create(asked[i]);

		assert_int_equal(mr->lkey, mr->rkey);
		assert_int_not_equal(mr->lkey, 0);
		assert_null(mr->addr);
		assert_int_equal(mr->length, 0);
		assert_ptr_equal(mr->pd, rig.pd);
		assert_ptr_equal(mr->context, rig.context);
		assert_int_equal(ibv_exp_query_mkey(mr, &attr), 0);
		assert_int_equal(attr.max_klm_list_size, told[i]);
		rig_dereg(mr);
	}
}

static void what_cannot_be_created_is_refused(void **state)
{
	NO_OBJECT(create(4, IBV_EXP_MR_INDIRECT_KLMS, 1), EINVAL);
	NO_OBJECT(create(4, 0, 0), EINVAL);
	NO_OBJECT(create(4, IBV_EXP_MR_INDIRECT_KLMS | IBV_EXP_MR_FIXED_BUFFER_SIZE, 0), EINVAL);
	NO_OBJECT(create(4, 8, 0), EINVAL);
	NO_OBJECT(create(4, IBV_EXP_MR_SIGNATURE_EN, 0), EOPNOTSUPP);
	NO_OBJECT(create(0, IBV_EXP_MR_INDIRECT_KLMS, 0), EINVAL);
	NO_OBJECT(create(65533, IBV_EXP_MR_INDIRECT_KLMS, 0), EINVAL);
	NO_OBJECT(create(UINT32_MAX, IBV_EXP_MR_INDIRECT_KLMS, 0), EINVAL);
	rig_word("devx", "0");
	NO_OBJECT(create(4, IBV_EXP_MR_INDIRECT_KLMS, 0), ENOSYS);
}

static void keys_run_out(void **state)
{
	struct ibv_mr *one = rig_create(4);

	rig_word("max_keys", "1");
	NO_OBJECT(create(4, IBV_EXP_MR_INDIRECT_KLMS, 0), ENOMEM);
	rig_word("max_keys", "100");
	rig_dereg(rig_create(4));
	rig_dereg(one);
}

static void query_of_an_ordinary_mr_tells_nothing(void **state)
{
	struct ibv_mr *mr = rig_reg(mem, PAGE, ALL), *plain = ibv_reg_mr(rig.pd, mem, PAGE, 1);
	struct ibv_exp_mkey_attr attr = { .max_klm_list_size = 9 };

	assert_int_equal(ibv_exp_query_mkey(mr, &attr), 0);
	assert_int_equal(attr.max_klm_list_size, 0);
	attr.max_klm_list_size = 9;
	assert_int_equal(ibv_exp_query_mkey(plain, &attr), 0);
	assert_int_equal(attr.max_klm_list_size, 0);
	attr.comp_mask = 1;
	FAILS(ibv_exp_query_mkey(mr, &attr), EINVAL);
	rig_dereg(mr);
	rig_dereg(plain);
}

static struct ibv_exp_mkey_list_container *list(uint32_t type, uint32_t klms, uint32_t comp_mask)
{
	struct ibv_exp_mkey_list_container_attr attr = { .pd = rig.pd,
							 .mkey_list_type = type,
							 .max_klm_list_size = klms,
							 .comp_mask = comp_mask };

	return ibv_exp_alloc_mkey_list_memory(&attr);
}

static void list_memory_comes_and_goes(void **state)
{
	assert_int_equal(ibv_exp_dealloc_mkey_list_memory(rig_list(1)), 0);
	assert_int_equal(ibv_exp_dealloc_mkey_list_memory(rig_list(65532)), 0);
	NO_OBJECT(list(1, 4, 0), EINVAL);
	NO_OBJECT(list(0, 0, 0), EINVAL);
	NO_OBJECT(list(0, 65533, 0), EINVAL);
	NO_OBJECT(list(0, 4, 1), EINVAL);
	rig_word("fail", "reg_mr:1:EPERM");
	NO_OBJECT(list(0, 4, 0), EPERM);
}

/* ---- dereg ------------------------------------------------------------------------------- */

static void dereg_past_the_header_does_no_harm(void **state)
{
	struct ibv_mr *mr = rig_create(4), *kept = rig_create(4), *more;

	mr->addr = mem; /* as programs do */
	mr->length = 1000;
	assert_int_equal(plain_dereg_mr(mr), 0);
	/* the same place may be another MR's by now */
	more = rig_create(4);
	assert_int_not_equal(more->lkey, kept->lkey);
	rig_dereg(more);
	mr = ibv_reg_mr(rig.pd, mem, PAGE, IBV_ACCESS_LOCAL_WRITE);
	rig_dereg(mr);
	mr = rig_reg(mem, PAGE, ALL);
	assert_int_equal(plain_dereg_mr(mr), 0);
	rig_dereg(kept);
	/* the key that was left goes with the PD, which the teardown looks for */
	assert_int_equal(rig_counter("live.mkey"), 1);
}

static void dereg_by_a_pointer_taken_after_the_header(void **state)
{
	int (*dereg)(struct ibv_mr * mr) = ibv_dereg_mr;

	assert_int_equal(dereg(rig_create(4)), 0);
	assert_int_equal(rig_counter("live.mkey"), 0);
}

static void a_dereg_that_fails_can_be_tried_again(void **state)
{
	struct ibv_mr *mr = rig_create(4), *ordinary = rig_reg(mem, PAGE, ALL);

	rig_word("fail", "devx_destroy:1:EBUSY");
	assert_int_equal(ibv_dereg_mr(mr), EBUSY);
	rig_dereg(mr);
	rig_word("fail", "dereg_mr:1:EBUSY");
	assert_int_equal(ibv_dereg_mr(ordinary), EBUSY);
	rig_dereg(ordinary);
}

/* ---- registration -------------------------------------------------------------------------- */

static struct ibv_mr *reg(void *addr, size_t length, uint64_t access, uint32_t comp,
			  uint32_t create)
{
	struct ibv_exp_reg_mr_in in = { .pd = rig.pd,
					.addr = addr,
					.length = length,
					.exp_access = access,
					.comp_mask = comp,
					.create_flags = create };

	return ibv_exp_reg_mr(&in);
}

static void what_cannot_be_registered_is_refused_with_errno(void **state)
{
	NO_OBJECT(reg(mem, PAGE, IBV_EXP_ACCESS_RESERVED, 0, 0), EINVAL);
	NO_OBJECT(reg(mem, PAGE, 1ull << 31, 0, 0), EINVAL);
	NO_OBJECT(reg(mem, PAGE, 1, IBV_EXP_REG_MR_RESERVED, 0), EINVAL);
	NO_OBJECT(reg(NULL, PAGE, 1, IBV_EXP_REG_MR_CREATE_FLAGS, 2), EINVAL);
	NO_OBJECT(reg(mem, PAGE, IBV_EXP_ACCESS_ALLOCATE_MR, 0, 0), EINVAL);
	NO_OBJECT(reg(NULL, 0, IBV_EXP_ACCESS_ALLOCATE_MR, 0, 0), EINVAL);
	NO_OBJECT(reg(NULL, PAGE, 1, IBV_EXP_REG_MR_DM, 0), EINVAL);
	NO_OBJECT(reg(mem, PAGE, IBV_EXP_ACCESS_SHARED_MR_USER_READ, 0, 0), EOPNOTSUPP);
	NO_OBJECT(reg(NULL, 0, IBV_EXP_ACCESS_PHYSICAL_ADDR, 0, 0), EOPNOTSUPP);
	NO_OBJECT(reg(mem, PAGE, IBV_EXP_ACCESS_TUNNELED_ATOMIC, 0, 0), EOPNOTSUPP);
	NO_OBJECT(reg(mem, PAGE, IBV_EXP_ACCESS_NO_RDMA, 0, 0), EOPNOTSUPP);
	rig_word("fail", "reg_mr:1:EFAULT");
	NO_OBJECT(reg(mem, PAGE, 1, 0, 0), EFAULT);
	rig_word("fail", "reg_mr:1:ENOMEM");
	NO_OBJECT(reg(NULL, PAGE, IBV_EXP_ACCESS_ALLOCATE_MR | 1, 0, 0), ENOMEM);
	NO_OBJECT(ibv_exp_reg_shared_mr(NULL), ENOSYS);
}

static void memory_is_allocated_and_freed_with_its_mr(void **state)
{
	struct ibv_exp_reg_mr_in in = { .pd = rig.pd,
					.length = 3 * PAGE,
					.exp_access = ALL,
					.comp_mask = IBV_EXP_REG_MR_CREATE_FLAGS,
					.create_flags = IBV_EXP_REG_MR_CREATE_CONTIG };
	struct ibv_mr *mr = ibv_exp_reg_mr(&in);
	unsigned char resident;

	assert_non_null(mr);
	assert_non_null(in.addr);
	assert_ptr_equal(mr->addr, in.addr);
	memset(in.addr, 7, in.length);
	rig_dereg(mr);
	assert_int_equal(mincore(in.addr, PAGE, &resident), -1);
	assert_int_equal(errno, ENOMEM);
	/* that place again, which is free now; and one that is not */
	mr = ibv_exp_reg_mr(&in);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, in.addr);
	NO_OBJECT(ibv_exp_reg_mr(&in), EEXIST);
	rig_dereg(mr);
	in.addr = NULL;
	in.comp_mask = 0;
	in.exp_access |= IBV_EXP_ACCESS_ALLOCATE_MR;
	mr = ibv_exp_reg_mr(&in);
	assert_non_null(mr);
	assert_ptr_equal(mr->addr, in.addr);
	rig_dereg(mr);
}

static void device_memory_is_refused_where_there_is_none(void **state)
{
	struct ibv_exp_alloc_dm_attr attr = { .length = 64 };

	NO_OBJECT(ibv_exp_alloc_dm(rig.context, &attr), ENOSYS);
	attr.comp_mask = IBV_EXP_ALLOC_DM_ATTR_RESERVED;
	NO_OBJECT(ibv_exp_alloc_dm(rig.context, &attr), EINVAL);
}

/* ---- prefetch --------------------------------------------------------------------------------- */

static int prefetch(struct ibv_mr *mr, void *addr, size_t length, uint32_t flags)
{
	struct ibv_exp_prefetch_attr attr = { .flags = flags, .addr = addr, .length = length };

	return ibv_exp_prefetch_mr(mr, &attr);
}

static void prefetch_brings_pages(void **state)
{
	struct ibv_mr *mr = rig_reg(mem, sizeof(mem), ALL | IBV_EXP_ACCESS_ON_DEMAND);
	struct ibv_mr *ro =
		rig_reg(mem, sizeof(mem), IBV_EXP_ACCESS_ON_DEMAND | IBV_EXP_ACCESS_RELAXED);
	struct ibv_mr *plain = ibv_reg_mr(rig.pd, mem, sizeof(mem), IBV_ACCESS_ON_DEMAND);
	uint64_t before = rig_counter("odp.prefetched");

	assert_int_equal(prefetch(mr, mem + 1, 2 * PAGE, 0), 0);
	assert_int_equal(rig_counter("odp.prefetched") - before, 3);
	assert_int_equal(prefetch(mr, mem, sizeof(mem), IBV_EXP_PREFETCH_WRITE_ACCESS), 0);
	assert_int_equal(prefetch(mr, mem + sizeof(mem), 0, 0), 0);
	/* asking to write what cannot be written was never an error */
	assert_int_equal(prefetch(ro, mem, PAGE, IBV_EXP_PREFETCH_WRITE_ACCESS), 0);
	assert_int_equal(prefetch(plain, mem, PAGE, IBV_EXP_PREFETCH_WRITE_ACCESS), 0);
	rig_dereg(mr);
	rig_dereg(ro);
	rig_dereg(plain);
}

static void prefetch_refuses_what_its_manual_said_it_would(void **state)
{
	struct ibv_mr *mr = rig_reg(mem, 4 * PAGE, ALL | IBV_EXP_ACCESS_ON_DEMAND);
	struct ibv_mr *pinned = rig_reg(mem, PAGE, ALL), *umr = rig_create(4);
	struct ibv_mr *plain = ibv_reg_mr(rig.pd, mem, PAGE, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_exp_prefetch_attr attr = { .comp_mask = 1 };

	FAILS(prefetch(mr, (void *)((uintptr_t)mem - 1), 1, 0), EFAULT);
	FAILS(prefetch(mr, mem + 4 * PAGE, 1, 0), EFAULT);
	FAILS(prefetch(mr, mem + PAGE, 3 * PAGE + 1, 0), EFAULT);
	FAILS(prefetch(mr, mem + PAGE, SIZE_MAX - 1, 0), EFAULT);
	FAILS(prefetch(mr, mem, PAGE, 2), EINVAL);
	FAILS(prefetch(pinned, mem, PAGE, 0), EINVAL);
	FAILS(prefetch(plain, mem, PAGE, 0), EINVAL);
	FAILS(prefetch(umr, mem, PAGE, 0), EINVAL);
	FAILS(ibv_exp_prefetch_mr(mr, &attr), EINVAL);
	rig_word("advise", "0");
	FAILS(prefetch(mr, mem, PAGE, 0), ENOSYS);
	rig_dereg(mr);
	rig_dereg(pinned);
	rig_dereg(plain);
	rig_dereg(umr);
}

/* ---- questions ----------------------------------------------------------------------------------- */

static void a_device_tells_what_is_asked_for(void **state)
{
	struct ibv_exp_device_attr attr;
	struct ibv_device_attr plain;

	memset(&attr, 0xaa, sizeof(attr));
	attr.comp_mask = IBV_EXP_DEVICE_ATTR_UMR | IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS |
			 IBV_EXP_DEVICE_ATTR_RX_HASH;
	assert_int_equal(ibv_exp_query_device(rig.context, &attr), 0);
	assert_int_equal(attr.comp_mask,
			 IBV_EXP_DEVICE_ATTR_UMR | IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS);
	assert_true(attr.exp_device_cap_flags & IBV_EXP_DEVICE_UMR);
	assert_true(attr.exp_device_cap_flags & IBV_EXP_DEVICE_ODP);
	assert_false(attr.exp_device_cap_flags & IBV_EXP_DEVICE_UMR_FIXED_SIZE);
	assert_false(attr.exp_device_cap_flags & IBV_EXP_DEVICE_SHARED_MR);
	assert_int_equal(attr.umr_caps.max_klm_list_size, 65532);
	assert_int_equal(attr.umr_caps.max_send_wqe_inline_klms, 20);
	assert_int_equal(attr.umr_caps.max_umr_recursion_depth, 4);
	assert_int_equal(attr.umr_caps.max_umr_stride_dimension, 1);
	/* not asked for: not touched */
	assert_int_equal(attr.odp_mr_max_size, 0xaaaaaaaaaaaaaaaa);
	assert_int_equal(attr.rx_hash_caps.supported_qps, 0xaaaaaaaa);
	assert_int_equal(ibv_query_device(rig.context, &plain), 0);
	assert_string_equal(attr.fw_ver, plain.fw_ver);
	assert_int_equal(attr.max_mr_size, plain.max_mr_size);
	assert_int_equal(attr.max_srq_sge, plain.max_srq_sge);
	assert_int_equal(attr.phys_port_cnt, plain.phys_port_cnt);
}

static void a_device_is_asked_for_everything(void **state)
{
	struct ibv_exp_device_attr attr;
	struct ibv_exp_port_attr port;

	memset(&attr, 0, sizeof(attr));
	attr.comp_mask = 0xffffffff; /* as communication libraries do */
	attr.comp_mask_2 = IBV_EXP_DEVICE_ATTR_RESERVED_2 - 1;
	assert_int_equal(ibv_exp_query_device(rig.context, &attr), 0);
	assert_int_equal(attr.comp_mask_2, 0);
	assert_true(attr.comp_mask & IBV_EXP_DEVICE_ATTR_ODP);
	assert_int_equal(attr.odp_caps.general_odp_caps,
			 IBV_EXP_ODP_SUPPORT | IBV_EXP_ODP_SUPPORT_IMPLICIT);
	assert_true(attr.odp_caps.per_transport_caps.rc_odp_caps & IBV_EXP_ODP_SUPPORT_READ);
	assert_int_equal(attr.odp_mr_max_size, attr.max_mr_size);
	attr.comp_mask = (uint32_t)IBV_EXP_DEVICE_ATTR_COMP_MASK_2;
	attr.comp_mask_2 = 4;
	FAILS(ibv_exp_query_device(rig.context, &attr), EINVAL);
	attr.comp_mask = 0; /* then it does not count */
	assert_int_equal(ibv_exp_query_device(rig.context, &attr), 0);
	port.comp_mask = 0;
	assert_int_equal(ibv_exp_query_port(rig.context, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.link_layer, port.port_attr.link_layer);
	port.comp_mask = 2;
	assert_int_equal(ibv_exp_query_port(rig.context, 1, &port), -EINVAL);
}

static void a_device_without_umr_says_so(void **state)
{
	struct ibv_exp_device_attr attr = { .comp_mask = IBV_EXP_DEVICE_ATTR_UMR |
							 IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS };

	rig_word("umr", "0");
	assert_int_equal(ibv_exp_query_device(rig.context, &attr), 0);
	assert_int_equal(attr.comp_mask, IBV_EXP_DEVICE_ATTR_EXP_CAP_FLAGS);
	assert_false(attr.exp_device_cap_flags & IBV_EXP_DEVICE_UMR);
}

#define ON_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup_bare, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_RIG(a_created_mr_is_empty_and_has_keys),
		ON_RIG(what_cannot_be_created_is_refused),
		ON_RIG(keys_run_out),
		ON_RIG(query_of_an_ordinary_mr_tells_nothing),
		ON_RIG(list_memory_comes_and_goes),
		ON_RIG(dereg_past_the_header_does_no_harm),
		ON_RIG(dereg_by_a_pointer_taken_after_the_header),
		ON_RIG(a_dereg_that_fails_can_be_tried_again),
		ON_RIG(what_cannot_be_registered_is_refused_with_errno),
		ON_RIG(memory_is_allocated_and_freed_with_its_mr),
		ON_RIG(device_memory_is_refused_where_there_is_none),
		ON_RIG(prefetch_brings_pages),
		ON_RIG(prefetch_refuses_what_its_manual_said_it_would),
		ON_RIG(a_device_tells_what_is_asked_for),
		ON_RIG(a_device_is_asked_for_everything),
		ON_RIG(a_device_without_umr_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
