/* SPDX-License-Identifier: BSD-2-Clause */
/* On-demand paging: what is mapped when, advice and its errnos, and what takes pages away. */
#include "raw.h"

#include <sys/syscall.h>

#define PAGE  ((size_t)4096)
#define PAGES 16

static struct loop l;
static uint8_t *mem;
static struct ibv_mr *mr;

static int setup(void **state)
{
	dev_reset();
	loop_open(&l);
	mem = raw_map(PAGES * PAGE, PROT_READ | PROT_WRITE);
	mr = ibv_reg_mr(l.pd, mem, PAGES * PAGE, RIGHTS | IBV_ACCESS_ON_DEMAND);
	assert_non_null(mr);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(mem, PAGES * PAGE);
	loop_close(&l);
	dev_reset();
	assert_int_equal(counter("live.mr"), 0);
	return 0;
}

/* The page states as digits: "0110...". */
static const char *states(uint32_t lkey)
{
	static char text[600];
	char path[300];
	ssize_t num, i;
	int fd;

	snprintf(path, sizeof(path), "%s/odp/%08x", l.ctx->device->ibdev_path, lkey);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return strerror(errno);
	num = read(fd, text, sizeof(text) - 1);
	assert_true(num >= 0);
	for (i = 0; i < num; i++)
		text[i] = (char)(text[i] + '0');
	text[num] = '\0';
	close(fd);
	return text;
}

static bool resident(int page)
{
	unsigned char vec;

	assert_int_equal(mincore(mem + page * PAGE, PAGE, &vec), 0);
	return vec & 1;
}

static int advise(enum ibv_advise_mr_advice advice, uint32_t flags, uint32_t lkey, void *at,
		  uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)at, len, lkey };

	return ibv_advise_mr(l.pd, advice, flags, &sge, 1);
}

#define READ	 IBV_ADVISE_MR_ADVICE_PREFETCH
#define WRITE	 IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
#define NO_FAULT IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT
#define FLUSH	 IBV_ADVISE_MR_FLAG_FLUSH

static void prefetch(void **state)
{
	assert_string_equal(states(mr->lkey), "0000000000000000");
	assert_int_equal(advise(WRITE, FLUSH, mr->lkey, mem + PAGE - 1, 2), 0);
	assert_string_equal(states(mr->lkey), "1100000000000000");
	assert_true(resident(0) && resident(1) && !resident(2));
	assert_int_equal(counter("odp.prefetched"), 2);
	assert_int_equal(advise(READ, FLUSH, mr->lkey, mem, 4 * PAGE), 0);
	assert_string_equal(states(mr->lkey), "1111000000000000");
	assert_int_equal(counter("odp.prefetched"), 4);
	assert_int_equal(advise(READ, 0, mr->lkey, mem + 15 * PAGE, PAGE), 0);
	assert_string_equal(states(mr->lkey), "1111000000000001");
	assert_int_equal(advise(READ, FLUSH, mr->lkey, mem + 8 * PAGE, 0), 0);
	assert_string_equal(states(mr->lkey), "1111000000000001");
	assert_int_equal(counter("odp.faults"), 0);
}

static void no_fault_maps_what_is_present(void **state)
{
	mem[3 * PAGE] = 1;
	mem[5 * PAGE] = 1;
	assert_int_equal(advise(NO_FAULT, FLUSH, mr->lkey, mem, PAGES * PAGE), 0);
	assert_string_equal(states(mr->lkey), "0001010000000000");
	assert_false(resident(0));
	assert_false(resident(4));
}

static void several_ranges(void **state)
{
	struct ibv_sge sge[3] = { { (uintptr_t)mem, PAGE, mr->lkey },
				  { (uintptr_t)mem + 2 * PAGE, PAGE, mr->lkey },
				  { (uintptr_t)mem + 4 * PAGE, 2 * PAGE, mr->lkey } };

	assert_int_equal(ibv_advise_mr(l.pd, READ, FLUSH, sge, 3), 0);
	assert_string_equal(states(mr->lkey), "1010110000000000");
}

static void errnos(void **state)
{
	static uint8_t buf[64];
	struct mlx5dv_mkey_init_attr init = { .pd = l.pd,
					      .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT,
					      .max_entries = 4 };
	struct mlx5dv_mkey *mkey = mlx5dv_create_mkey(&init);
	struct ibv_mr *pinned = ibv_reg_mr(l.pd, buf, sizeof(buf), RIGHTS);
	struct ibv_mr *reads = ibv_reg_mr(l.pd, mem, PAGE, IBV_ACCESS_ON_DEMAND);
	struct ibv_pd *pd = ibv_alloc_pd(l.ctx);
	struct ibv_sge sge = { (uintptr_t)mem, PAGE, mr->lkey };
	uint32_t flags[] = { FLUSH, 0 };

	assert_true(mkey && pinned && reads && pd);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(advise(READ, flags[i], 0x7700, mem, PAGE), ENOENT);
		assert_int_equal(advise(READ, flags[i], mr->lkey + 1, mem, PAGE), ENOENT);
		assert_int_equal(advise(READ, flags[i], pinned->lkey, buf, 64), ENOENT);
		assert_int_equal(advise(READ, flags[i], mkey->lkey, NULL, 64), EINVAL);
		assert_int_equal(advise(WRITE, flags[i], reads->lkey, mem, PAGE), EPERM);
		assert_int_equal(advise(READ, flags[i], reads->lkey, mem, PAGE), 0);
		assert_int_equal(ibv_advise_mr(pd, READ, flags[i], &sge, 1), EPERM);
		assert_int_equal(advise(7, flags[i], mr->lkey, mem, PAGE), EOPNOTSUPP);
	}
	assert_int_equal(advise(READ, 2, mr->lkey, mem, PAGE), EINVAL);
	assert_int_equal(ibv_advise_mr(l.pd, READ, FLUSH, &sge, 0), EINVAL);
	/* a range that is not within: only a flush tells */
	assert_int_equal(advise(READ, FLUSH, mr->lkey, mem - 1, 2), EFAULT);
	assert_int_equal(advise(READ, FLUSH, mr->lkey, mem, PAGES * PAGE + 1), EFAULT);
	assert_int_equal(advise(READ, FLUSH, mr->lkey, mem + PAGES * PAGE, 1), EFAULT);
	assert_int_equal(advise(READ, 0, mr->lkey, mem + PAGES * PAGE, 1), 0);
	assert_int_equal(munmap(mem + PAGE, PAGE), 0);
	assert_int_equal(advise(READ, FLUSH, mr->lkey, mem, 3 * PAGE), EFAULT);
	assert_int_equal(advise(READ, 0, mr->lkey, mem, 3 * PAGE), 0);
	assert_int_equal(soft0_set("advise", "0"), 0);
	assert_int_equal(advise(READ, FLUSH, mr->lkey, mem, PAGE), EOPNOTSUPP);
	assert_int_equal(mlx5dv_destroy_mkey(mkey), 0);
	assert_int_equal(ibv_dereg_mr(pinned), 0);
	assert_int_equal(ibv_dereg_mr(reads), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void the_counts_are_a_file_too(void **state)
{
	char path[300], text[128];
	ssize_t num;
	int fd;

	assert_int_equal(advise(WRITE, FLUSH, mr->lkey, mem, 3 * PAGE), 0);
	assert_int_equal(madvise(mem, PAGE, MADV_DONTNEED), 0);
	snprintf(path, sizeof(path), "%s/odp/%08x.counts", l.ctx->device->ibdev_path, mr->lkey);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	num = read(fd, text, sizeof(text) - 1);
	assert_true(num > 0);
	text[num] = '\0';
	assert_string_equal(text, "page_faults 0\npage_prefetched 3\npage_invalidations 1\n");
	close(fd);
	path[strlen(path) - 1] = 'x';
	assert_int_equal(open(path, O_RDONLY), -1);
	assert_int_equal(errno, ENOENT);
}

static void the_file_is_for_on_demand_mrs(void **state)
{
	static uint8_t buf[64];
	struct ibv_mr *pinned = ibv_reg_mr(l.pd, buf, sizeof(buf), RIGHTS);

	assert_string_equal(states(pinned->lkey), strerror(ENOENT));
	assert_string_equal(states(0xdead00), strerror(ENOENT));
	assert_int_equal(open("/sys/class/infiniband/soft0/odp/xyz", O_RDONLY), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(open("/sys/class/infiniband/soft0/odp/0000000010", O_RDONLY), -1);
	assert_int_equal(ibv_dereg_mr(pinned), 0);
}

static enum ibv_wc_status move(enum ibv_wr_opcode opcode, void *at, uint32_t len, uint32_t lkey,
			       void *remote, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)at, len, lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { (uintptr_t)remote, rkey } };
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(l.qp, &wr, &bad), 0);
	return loop_poll(l.cq).status;
}

static void access_faults_pages_in(void **state)
{
	assert_int_equal(move(IBV_WR_RDMA_WRITE, mem, 100, mr->lkey, mem + 3 * PAGE - 10, mr->rkey),
			 IBV_WC_SUCCESS);
	assert_string_equal(states(mr->lkey), "1011000000000000");
	assert_int_equal(counter("odp.faults"), 3);
	assert_int_equal(move(IBV_WR_RDMA_READ, mem, 100, mr->lkey, mem + 3 * PAGE, mr->rkey),
			 IBV_WC_SUCCESS);
	assert_int_equal(counter("odp.faults"), 3); /* all there */
}

static void a_page_prefetched_for_reading_faults_once_more(void **state)
{
	assert_int_equal(advise(READ, FLUSH, mr->lkey, mem, 2 * PAGE), 0);
	assert_int_equal(move(IBV_WR_RDMA_WRITE, mem, 8, mr->lkey, mem + PAGE, mr->rkey),
			 IBV_WC_SUCCESS);
	assert_int_equal(counter("odp.faults"), 1); /* the one that is written */
}

static void a_hole_is_an_error(void **state)
{
	assert_int_equal(munmap(mem + 4 * PAGE, PAGE), 0);
	assert_int_not_equal(
		move(IBV_WR_RDMA_WRITE, mem, 2 * PAGE, mr->lkey, mem + 3 * PAGE, mr->rkey),
		IBV_WC_SUCCESS);
}

static void map_all(void)
{
	assert_int_equal(advise(WRITE, FLUSH, mr->lkey, mem, PAGES * PAGE), 0);
	assert_string_equal(states(mr->lkey), "1111111111111111");
}

static void what_takes_pages_away(void **state)
{
	uint64_t before;
	void *p;

	map_all();
	assert_int_equal(madvise(mem + PAGE, PAGE, MADV_DONTNEED), 0);
	assert_string_equal(states(mr->lkey), "1011111111111111");
	assert_int_equal(counter("odp.invalidations"), 1);
	assert_int_equal(madvise(mem + 2 * PAGE, PAGE, MADV_WILLNEED), 0);
	assert_string_equal(states(mr->lkey), "1011111111111111");
	assert_int_equal(madvise(mem + 2 * PAGE, PAGE, MADV_FREE), 0);
	assert_string_equal(states(mr->lkey), "1001111111111111");
	assert_int_equal(munmap(mem + 3 * PAGE, 2 * PAGE), 0);
	assert_string_equal(states(mr->lkey), "1000011111111111");
	p = mmap(mem + 3 * PAGE, 3 * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	assert_ptr_equal(p, mem + 3 * PAGE);
	assert_string_equal(states(mr->lkey), "1000001111111111");
	assert_int_equal(mprotect(mem + 6 * PAGE, PAGE, PROT_READ), 0);
	assert_string_equal(states(mr->lkey), "1000000111111111");
	p = mremap(mem + 14 * PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
		   mem + 7 * PAGE);
	assert_ptr_equal(p, mem + 7 * PAGE);
	assert_string_equal(states(mr->lkey), "1000000001111100");
	before = counter("odp.invalidations");
	assert_int_equal(munmap(mem + 20 * PAGE, PAGE), 0); /* not ours */
	assert_int_equal(counter("odp.invalidations"), before);
	p = mremap(mem + 12 * PAGE, 2 * PAGE, PAGE, 0);
	assert_ptr_equal(p, mem + 12 * PAGE);
	assert_string_equal(states(mr->lkey), "1000000001111000");
}

/* libc gives memory back without calling functions that could be seen: the state file knows. */
static void memory_that_goes_unseen(void **state)
{
	map_all();
	assert_int_equal(syscall(SYS_munmap, mem + PAGE, 2 * PAGE), 0);
	assert_string_equal(states(mr->lkey), "1001111111111111");
	assert_int_equal(counter("odp.invalidations"), 0);
}

static void implicit(void **state)
{
	struct ibv_mr *all;

	errno = 0;
	assert_null(ibv_reg_mr(l.pd, mem, SIZE_MAX, RIGHTS | IBV_ACCESS_ON_DEMAND));
	all = ibv_reg_mr(l.pd, NULL, SIZE_MAX, RIGHTS | IBV_ACCESS_ON_DEMAND);
	assert_non_null(all);
	mem[0] = 42;
	assert_int_equal(move(IBV_WR_RDMA_WRITE, mem, 1, all->lkey, mem + 9 * PAGE, all->rkey),
			 IBV_WC_SUCCESS);
	assert_int_equal(mem[9 * PAGE], 42);
	assert_int_equal(counter("odp.faults"), 2);
	assert_int_equal(advise(WRITE, FLUSH, all->lkey, mem + 2 * PAGE, PAGE), 0);
	assert_int_equal(counter("odp.prefetched"), 1);
	assert_int_equal(madvise(mem, PAGES * PAGE, MADV_DONTNEED), 0);
	assert_int_equal(counter("odp.invalidations"), 3);
	assert_int_equal(advise(WRITE, FLUSH, all->lkey, (void *)0x1000, PAGE), EFAULT);
	assert_string_equal(states(all->lkey), strerror(EFBIG));
	assert_int_equal(ibv_dereg_mr(all), 0);
	assert_int_equal(soft0_set("implicit", "0"), 0);
	assert_null(ibv_reg_mr(l.pd, NULL, SIZE_MAX, RIGHTS | IBV_ACCESS_ON_DEMAND));
	assert_int_equal(errno, EINVAL);
}

static void page_states_follow_a_rereg(void **state)
{
	map_all();
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, mem, 4 * PAGE, 0),
			 0);
	assert_string_equal(states(mr->lkey), "0000");
	assert_int_equal(advise(WRITE, FLUSH, mr->lkey, mem, PAGE), 0);
	assert_string_equal(states(mr->lkey), "1000");
	assert_int_equal(munmap(mem, PAGE), 0);
	assert_string_equal(states(mr->lkey), "0000");
}

static void capabilities(void **state)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(l.ctx, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, 0x3f);
	assert_int_equal(soft0_set("implicit", "0"), 0);
	assert_int_equal(soft0_set("atomics", "0"), 0);
	assert_int_equal(ibv_query_device_ex(l.ctx, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT);
	assert_int_equal(attr.odp_caps.per_transport_caps.rc_odp_caps, 0x2f);
	assert_int_equal(attr.orig_attr.atomic_cap, IBV_ATOMIC_NONE);
	assert_int_equal(soft0_set("odp", "0"), 0);
	assert_int_equal(ibv_query_device_ex(l.ctx, NULL, &attr), 0);
	assert_int_equal(attr.odp_caps.general_caps, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(prefetch),
		TEST(no_fault_maps_what_is_present),
		TEST(several_ranges),
		TEST(errnos),
		TEST(the_counts_are_a_file_too),
		TEST(the_file_is_for_on_demand_mrs),
		TEST(access_faults_pages_in),
		TEST(a_page_prefetched_for_reading_faults_once_more),
		TEST(a_hole_is_an_error),
		TEST(what_takes_pages_away),
		TEST(memory_that_goes_unseen),
		TEST(implicit),
		TEST(page_states_follow_a_rereg),
		TEST(capabilities),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
