/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration: every kind of memory, every cause of failure. */
#include "soft_test.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], path[96];

static int setup(void **state)
{
	snprintf(dir, sizeof(dir), "/tmp/test-lib-mr.XXXXXX");
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	return soft_setup(state);
}

static int teardown(void **state)
{
	int ret = soft_teardown(state);

	unlink(path);
	assert_int_equal(rmdir(dir), 0);
	return ret;
}

static void make_file(uint64_t size)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
	uint64_t i;

	assert_true(fd >= 0);
	for (i = 0; i < size; i++) {
		uint8_t byte = (uint8_t)(i * 7);

		assert_int_equal(write(fd, &byte, 1), 1);
	}
	close(fd);
}

static int64_t file_size(void)
{
	struct stat st;

	return stat(path, &st) ? -1 : (int64_t)st.st_size;
}

static struct ibmr_mr_spec anon(uint64_t length, uint64_t access)
{
	return (struct ibmr_mr_spec){
		.name = "a", .mem = IBMR_MEM_ANON, .length = length, .access = access
	};
}

static struct ibmr_mr_spec file(uint64_t offset, uint64_t length, unsigned flags)
{
	return (struct ibmr_mr_spec){ .name = "f",
				      .mem = IBMR_MEM_FILE,
				      .length = length,
				      .access = LW | RW | RR,
				      .path = path,
				      .file_offset = offset,
				      .file_flags = flags };
}

static struct ibmr_mr_spec caller(void *addr, uint64_t length, uint64_t access)
{
	return (struct ibmr_mr_spec){ .name = "a",
				      .mem = IBMR_MEM_CALLER,
				      .addr = addr,
				      .length = length,
				      .access = access };
}

/* The spec must be refused, and leave the device and the account as they were. */
#define NO_REG(spec, err_no, code)                                                               \
	do {                                                                                     \
		struct ibmr_mr_spec spec_ = (spec);                                              \
		uint64_t locked_ = ibmr_ctx_locked_bytes(soft), live_ = soft_counter("live.mr"); \
		struct ibmr_mr *mr_ = NULL;                                                      \
		REFUSED(ibmr_mr_reg(soft, &spec_, &mr_, &err), err_no, code);                    \
		assert_null(mr_);                                                                \
		assert_int_equal(ibmr_ctx_locked_bytes(soft), locked_);                          \
		assert_int_equal(soft_counter("live.mr"), live_);                                \
	} while (0)

#define REG(spec, mr)                                       \
	do {                                                \
		struct ibmr_mr_spec spec_ = (spec);         \
		OK(ibmr_mr_reg(soft, &spec_, &(mr), &err)); \
	} while (0)

static void anonymous_memory_is_zeroed_and_freed_with_the_mr(void **state)
{
	struct ibmr_err err;
	struct ibmr_mr *mr;
	unsigned char vec;
	uint64_t i;
	uint8_t *at;

	REG(anon(10000, LW | RR), mr);
	at = bytes_of(mr);
	for (i = 0; i < 10000; i++)
		assert_int_equal(at[i], 0);
	assert_int_equal(info_of(mr).base, (uintptr_t)at);
	assert_int_equal(info_of(mr).state, IBMR_STATE_REGISTERED);
	assert_int_equal(info_of(mr).length, 10000);
	assert_false(info_of(mr).indirect);
	assert_int_equal(info_of(mr).locked_bytes, 12288);
	soft_dereg(mr);
	assert_int_equal(mincore((void *)at, 4096, &vec), -1);
	assert_int_equal(errno, ENOMEM);
}

static void memory_is_freed_only_after_the_device_let_go(void **state)
{
	struct ibmr_err err;
	struct ibmr_mr *mr;

	REG(anon(4096, LW), mr);
	soft_word("fail", "dereg_mr:1:EIO");
	assert_int_equal(ibmr_mr_dereg(mr, &err), -EIO);
	assert_int_equal(err.sys_errno, EIO);
	assert_string_equal(err.origin, "ibv_dereg_mr");
	bytes_of(mr)[0] = 1; /* still there */
	assert_int_equal(ibmr_ctx_locked_bytes(soft), 4096);
	soft_dereg(mr);
}

static void callers_memory_is_left_alone(void **state)
{
	static uint8_t mine[5000];
	struct ibmr_err err;
	struct ibmr_mr *mr;

	REG(caller(mine + 3, 100, LW | RW | RR), mr);
	assert_ptr_equal(bytes_of(mr), mine + 3);
	OK(ibmr_mr_write(mr, 0, "abc", 3, 0, &err));
	assert_memory_equal(mine + 2, "\0abc\0", 5);
	soft_dereg(mr);
	mine[3] = 0;
	NO_REG(caller(NULL, 100, LW), EINVAL, IBMR_E_ARGUMENT);
	NO_REG(caller((void *)(UINTPTR_MAX - 10), 100, LW), EFAULT, IBMR_E_RANGE);
}

static void a_private_file_is_a_copy_and_a_shared_one_is_the_file(void **state)
{
	struct ibmr_err err;
	struct ibmr_mr *mr;
	uint8_t byte;
	int fd;

	make_file(10000);
	REG(file(5000, 100, 0), mr);
	assert_int_equal(bytes_of(mr)[3], (uint8_t)(5003 * 7));
	OK(ibmr_mr_write(mr, 3, "\x01", 1, 0, &err));
	soft_dereg(mr);
	REG(file(5001, IBMR_TO_END, IBMR_FILE_SHARED), mr);
	assert_int_equal(info_of(mr).length, 4999);
	assert_int_equal(bytes_of(mr)[2], (uint8_t)(5003 * 7));
	OK(ibmr_mr_write(mr, 2, "\x02", 1, 0, &err));
	soft_dereg(mr);
	fd = open(path, O_RDONLY);
	assert_int_equal(pread(fd, &byte, 1, 5003), 1);
	assert_int_equal(byte, 2);
	close(fd);
	assert_int_equal(file_size(), 10000);
}

static void create_makes_and_lengthens_but_never_shortens(void **state)
{
	struct ibmr_err err;
	struct ibmr_mr *mr;

	REG(file(4096 + 7, 100, IBMR_FILE_SHARED | IBMR_FILE_CREATE), mr);
	assert_int_equal(file_size(), 4203);
	assert_int_equal(bytes_of(mr)[99], 0);
	soft_dereg(mr);
	REG(file(0, 10, IBMR_FILE_SHARED | IBMR_FILE_CREATE), mr);
	assert_int_equal(file_size(), 4203);
	soft_dereg(mr);
	REG(file(4000, 1000, IBMR_FILE_SHARED | IBMR_FILE_CREATE), mr);
	assert_int_equal(file_size(), 5000);
	soft_dereg(mr);
	NO_REG(file(0, 10, IBMR_FILE_CREATE), EINVAL, IBMR_E_ARGUMENT);
	NO_REG(file(0, 10, 8), EINVAL, IBMR_E_ARGUMENT);
}

static void a_file_made_for_an_mr_that_fails_is_put_back(void **state)
{
	struct ibmr_err err;

	soft_word("fail", "reg_mr:1:ENOSPC");
	NO_REG(file(0, 100, IBMR_FILE_SHARED | IBMR_FILE_CREATE), ENOSPC, IBMR_E_KEY_TABLE);
	assert_int_equal(file_size(), -1);
	make_file(50);
	soft_word("fail", "reg_mr:1:ENOSPC");
	NO_REG(file(0, 100, IBMR_FILE_SHARED | IBMR_FILE_CREATE), ENOSPC, IBMR_E_KEY_TABLE);
	assert_int_equal(file_size(), 50);
	/* one too large for the device is not even made */
	unlink(path);
	soft->caps.max_mr_size = 4096;
	NO_REG(file(0, 4097, IBMR_FILE_SHARED | IBMR_FILE_CREATE), E2BIG, IBMR_E_LIMIT);
	assert_int_equal(file_size(), -1);
}

static void bytes_past_the_end_of_a_file_are_refused(void **state)
{
	struct ibmr_err err;

	make_file(100);
	NO_REG(file(50, 51, 0), EFAULT, IBMR_E_RANGE);
	SAYS("bytes [50, 101) are past the end of file");
	SAYS("(100 bytes)");
	NO_REG(file(100, IBMR_TO_END, 0), EFAULT, IBMR_E_RANGE);
	NO_REG(file(UINT64_MAX, 2, 0), EFAULT, IBMR_E_RANGE);
	NO_REG(file(0, 0, 0), EINVAL, IBMR_E_ARGUMENT);
	NO_REG(file(INT64_MAX, 100, IBMR_FILE_SHARED | IBMR_FILE_CREATE), EFAULT, IBMR_E_RANGE);
	assert_int_equal(file_size(), 100);
}

static void what_is_no_file_is_io(void **state)
{
	struct ibmr_mr_spec spec = file(0, 1, 0);
	struct ibmr_err err;

	NO_REG(spec, ENOENT, IBMR_E_IO);
	assert_string_equal(err.origin, "open");
	assert_int_equal(err.sys_errno, ENOENT);
	spec.path = dir;
	NO_REG(spec, EIO, IBMR_E_IO);
	SAYS("not a regular file");
	spec.file_flags = IBMR_FILE_SHARED;
	NO_REG(spec, EISDIR, IBMR_E_IO);
	spec.path = NULL;
	NO_REG(spec, EINVAL, IBMR_E_ARGUMENT);
	/* a FIFO is refused, not waited for */
	assert_int_equal(mkfifo(path, 0600), 0);
	NO_REG(file(0, 1, 0), EIO, IBMR_E_IO);
}

static void huge_pages_are_had_or_counted(void **state)
{
	struct ibmr_mr_spec spec = anon(3 * MIB, LW | RR);
	struct ibmr_err err;
	struct ibmr_mr *mr = NULL;
	int ret;

	spec.mem = IBMR_MEM_HUGE;
	spec.huge_page_size = 2 * MIB;
	ret = ibmr_mr_reg(soft, &spec, &mr, &err);
	if (!ret) {
		assert_int_equal((uintptr_t)bytes_of(mr) % (2 * MIB), 0);
		assert_int_equal(info_of(mr).length, 3 * MIB);
		soft_dereg(mr);
	} else if (err.code == IBMR_E_NO_MEMORY) {
		assert_string_equal(err.cause, "huge_pages");
		SAYS("2 huge pages of 2097152 bytes are needed");
	} else {
		assert_int_equal(err.code, IBMR_E_UNSUPPORTED);
		assert_string_equal(err.cause, "huge_page_size");
	}
	spec.huge_page_size = 3 * MIB;
	NO_REG(spec, EINVAL, IBMR_E_ARGUMENT);
	spec.huge_page_size = 4096;
	NO_REG(spec, EINVAL, IBMR_E_ARGUMENT);
	spec.huge_page_size = 16 * KIB; /* no machine of ours has these */
	spec.length = 100;
	ret = ibmr_mr_reg(soft, &spec, &mr, &err);
	assert_int_not_equal(ret, 0);
	assert_int_equal(err.code, IBMR_E_UNSUPPORTED);
}

static void zero_and_impossible_lengths_are_refused(void **state)
{
	struct ibmr_mr_spec spec = anon(0, LW);
	struct ibmr_err err;

	NO_REG(spec, EINVAL, IBMR_E_ARGUMENT);
	soft->caps.max_mr_size = 0;
	spec.length = 1ull << 63;
	NO_REG(spec, E2BIG, IBMR_E_LIMIT);
	spec.length = 1ull << 62;
	NO_REG(spec, ENOMEM, IBMR_E_NO_MEMORY);
	assert_string_equal(err.origin, "mmap");
	spec.mem = (enum ibmr_mem)9;
	NO_REG(spec, EINVAL, IBMR_E_ARGUMENT);
}

static void more_than_max_mr_size_is_refused_with_both_numbers(void **state)
{
	struct ibmr_err err;
	struct ibmr_mr *mr;

	soft->caps.max_mr_size = MIB;
	NO_REG(anon(MIB + 1, LW), E2BIG, IBMR_E_LIMIT);
	SAYS("1048577");
	SAYS("1048576");
	assert_string_equal(err.cause, "max_mr_size");
	REG(anon(MIB, LW), mr);
}

static void rights_follow_the_rules_of_verbs(void **state)
{
	struct ibmr_err err;
	struct ibmr_mr *mr;

	NO_REG(anon(8, RW), EACCES, IBMR_E_ACCESS);
	NO_REG(anon(8, RA), EACCES, IBMR_E_ACCESS);
	NO_REG(anon(8, LW | IBMR_ACCESS_HUGETLB), EACCES, IBMR_E_ACCESS);
	NO_REG(anon(8, 1ull << 33), EINVAL, IBMR_E_ARGUMENT);
	REG(anon(8, RR), mr);
	REG(anon(8, 0), mr);
	REG(anon(8, LW | RW | RR | RA | IBMR_ACCESS_MW_BIND | IBMR_ACCESS_RELAXED_ORDERING), mr);
}

static void on_demand_needs_a_device_that_has_it(void **state)
{
	struct ibmr_err err;

	soft->caps.odp = false;
	NO_REG(anon(8, LW | OD), EOPNOTSUPP, IBMR_E_UNSUPPORTED);
	assert_string_equal(err.cause, "odp");
	SAYS("no on-demand paging");
}

static void a_flag_the_device_refuses_is_found_and_named(void **state)
{
	struct ibmr_err err;

	/* the device says it has paging, and refuses it */
	soft_word("odp", "0");
	soft->caps.odp = true;
	NO_REG(anon(8, LW | OD), EOPNOTSUPP, IBMR_E_UNSUPPORTED);
	assert_string_equal(err.cause, "on_demand");
	SAYS("refuses on_demand");
}

static void a_page_that_is_not_mapped_is_named(void **state)
{
	uint8_t *at =
		mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibmr_err err;
	struct ibmr_mr *mr;
	char addr[32];

	assert_int_equal(munmap(at + 2 * PAGE, 4096), 0);
	snprintf(addr, sizeof(addr), "0x%lx", (unsigned long)(uintptr_t)(at + 2 * PAGE));
	NO_REG(caller(at + 5, 3 * PAGE, LW), EFAULT, IBMR_E_BAD_ADDRESS);
	SAYS(addr);
	SAYS("offset 8187 of 'a'");
	SAYS("not mapped");
	assert_string_equal(err.cause, "unmapped");
	/* pages are for the moment of use when on demand */
	REG(caller(at, 4 * PAGE, LW | OD), mr);
	soft_dereg(mr);
	munmap(at, 4 * PAGE);
}

static void a_page_without_the_right_is_named(void **state)
{
	uint8_t *at =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibmr_err err;
	struct ibmr_mr *mr;

	at[4096] = 1;
	assert_int_equal(mprotect(at + 4096, 4096, PROT_NONE), 0);
	NO_REG(caller(at, 8192, 0), EFAULT, IBMR_E_BAD_ADDRESS);
	assert_string_equal(err.cause, "no_access");
	assert_true(err.certain);
	SAYS("offset 4096");
	assert_int_equal(mprotect(at + 4096, 4096, PROT_READ), 0);
	NO_REG(caller(at, 8192, LW), EFAULT, IBMR_E_BAD_ADDRESS);
	assert_string_equal(err.cause, "read_only");
	/* a read-only page is good enough for reading */
	REG(caller(at + 4096, 4096, RR), mr);
	soft_dereg(mr);
	munmap(at, 2 * PAGE);
}

static void the_memlock_limit_is_told_with_its_numbers(void **state)
{
	struct rlimit old, low = { 64 * KIB, 64 * KIB };
	struct ibmr_err err;
	struct ibmr_mr *mr;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	low.rlim_max = old.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &low), 0);
	soft_word("memlock", "1");
	REG(anon(16 * KIB, LW), mr);
	NO_REG(anon(MIB + 1, LW), ENOMEM, IBMR_E_MEMLOCK);
	assert_string_equal(err.cause, "rlimit_memlock");
	assert_string_equal(err.origin, "ibv_reg_mr");
	SAYS("locking 1052672 bytes in whole pages for 'a'");
	SAYS("16384 already locked");
	SAYS("soft 65536");
	SAYS("CAP_IPC_LOCK");
	REG(anon(MIB, LW | OD), mr);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &old), 0);
}

static void enomem_within_the_limit_is_not_memlock(void **state)
{
	struct rlimit old, high;
	struct ibmr_err err;

	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	high = old;
	high.rlim_cur = high.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &high), 0);
	soft_word("fail", "reg_mr:1:ENOMEM");
	NO_REG(anon(4096, LW), ENOMEM, IBMR_E_NO_MEMORY);
	SAYS("out of keys");
	assert_string_equal(err.cause, "device_keys");
	assert_false(err.certain);
	assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &old), 0);
}

static void a_device_out_of_keys_is_key_table(void **state)
{
	struct ibmr_mr *mr[64];
	struct ibmr_err err;
	int i, ret = 0;

	soft_word("max_keys", "8");
	for (i = 0; i < 64 && !ret; i++) {
		struct ibmr_mr_spec spec = anon(8, LW);

		ret = ibmr_mr_reg(soft, &spec, &mr[i], &err);
	}
	assert_in_range(i, 2, 9);
	assert_int_equal(err.code, IBMR_E_KEY_TABLE);
	assert_int_equal(err.sys_errno, -ret);
	SAYS("no memory key left");
	assert_string_equal(err.cause, "device_keys");
	assert_false(err.certain);
	ret = ibmr_mr_create(soft, "col", 4, &mr[63], &err);
	assert_int_equal(err.code, IBMR_E_KEY_TABLE);
	assert_int_not_equal(ret, 0);
}

static void an_ibv_mr_is_borrowed_as_a_member(void **state)
{
	static uint64_t mine[512];
	struct ibv_mr *ibv = ibv_reg_mr(soft->pd, mine, sizeof(mine), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_pd *other = ibv_alloc_pd(soft->verbs);
	struct ibv_mr *foreign = ibv_reg_mr(other, mine, sizeof(mine), IBV_ACCESS_LOCAL_WRITE);
	struct ibmr_mr *mr, *col = soft_create("col", 1);
	struct ibmr_err err;
	char name[32];

	OK(ibmr_mr_from_ibv(soft, ibv, LW, NULL, &mr, &err));
	snprintf(name, sizeof(name), "key 0x%x", ibv->lkey);
	assert_string_equal(info_of(mr).name, name);
	assert_int_equal(info_of(mr).length, sizeof(mine));
	assert_int_equal(info_of(mr).locked_bytes, 0);
	assert_int_equal(ibmr_ctx_locked_bytes(soft), 0);
	soft_fill_list(col, LW, &(struct ibmr_klm){ mr, 8, 8 }, 1);
	REFUSED(ibmr_mr_dereg(mr, &err), EBUSY, IBMR_E_IN_USE);
	soft_dereg(col);
	soft_dereg(mr);
	assert_int_equal(soft_counter("live.mr"), 2); /* still the caller's */
	REFUSED(ibmr_mr_from_ibv(soft, foreign, LW, "x", &mr, &err), EINVAL, IBMR_E_ARGUMENT);
	assert_string_equal(err.cause, "other_context");
	REFUSED(ibmr_mr_from_ibv(soft, NULL, LW, "x", &mr, &err), EINVAL, IBMR_E_ARGUMENT);
	REFUSED(ibmr_mr_from_ibv(soft, ibv, RW, "x", &mr, &err), EACCES, IBMR_E_ACCESS);
	assert_int_equal(ibv_dereg_mr(ibv) | ibv_dereg_mr(foreign) | ibv_dealloc_pd(other), 0);
}

static void an_mr_without_a_name_is_called_by_its_key(void **state)
{
	struct ibmr_mr_spec spec = anon(8, LW);
	struct ibmr_err err;
	struct ibmr_mr *mr;
	char name[32];

	spec.name = NULL;
	REG(spec, mr);
	snprintf(name, sizeof(name), "key 0x%x", info_of(mr).lkey);
	assert_string_equal(info_of(mr).name, name);
}

static void key_0_is_a_key(void **state)
{
	struct ibmr_mr *a, *col;
	struct ibmr_err err;

	soft_word("first_key", "0");
	a = soft_reg("a", 64, LW | RW | RR);
	assert_int_equal(info_of(a).rkey, 0);
	ramp(a, 0);
	reads_as(a, 0, bytes_of(a), 64);
	col = soft_create("col", 2);
	soft_fill_list(col, LW | RR, &(struct ibmr_klm){ a, 8, 8 }, 1);
	reads_as(col, 0, bytes_of(a) + 8, 8);
	OK(ibmr_mr_dereg(NULL, &err));
}

static void an_rkey_that_is_not_the_lkey_is_used_as_such(void **state)
{
	struct ibmr_mr *a, *col;

	soft_word("split_keys", "1");
	a = soft_reg("a", 64, LW | RW | RR);
	assert_int_not_equal(info_of(a).lkey, info_of(a).rkey);
	ramp(a, 0);
	reads_as(a, 0, bytes_of(a), 64);
	col = soft_create("col", 60);
	soft_fill_list(col, LW | RR, &(struct ibmr_klm){ a, 8, 8 }, 1);
	reads_as(col, 0, bytes_of(a) + 8, 8);
}

/* The last test: a filter cannot be taken off again; this one lets everything pass. */
static void where_system_calls_are_filtered_that_is_suspected(void **state)
{
	struct sock_filter pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = { .len = 1, .filter = &pass };
	struct ibmr_err err;

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		skip(); /* a kernel without */
	soft_word("fail", "reg_mr:1:EPERM");
	NO_REG(anon(4096, LW | OD), EPERM, IBMR_E_NO_PERMISSION);
	assert_string_equal(err.cause, "seccomp");
	assert_false(err.certain);
}

int main(void)
{
#define T(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(anonymous_memory_is_zeroed_and_freed_with_the_mr),
		T(memory_is_freed_only_after_the_device_let_go),
		T(callers_memory_is_left_alone),
		T(a_private_file_is_a_copy_and_a_shared_one_is_the_file),
		T(create_makes_and_lengthens_but_never_shortens),
		T(a_file_made_for_an_mr_that_fails_is_put_back),
		T(bytes_past_the_end_of_a_file_are_refused),
		T(what_is_no_file_is_io),
		T(huge_pages_are_had_or_counted),
		T(zero_and_impossible_lengths_are_refused),
		T(more_than_max_mr_size_is_refused_with_both_numbers),
		T(rights_follow_the_rules_of_verbs),
		T(on_demand_needs_a_device_that_has_it),
		T(a_flag_the_device_refuses_is_found_and_named),
		T(a_page_that_is_not_mapped_is_named),
		T(a_page_without_the_right_is_named),
		T(the_memlock_limit_is_told_with_its_numbers),
		T(enomem_within_the_limit_is_not_memlock),
		T(a_device_out_of_keys_is_key_table),
		T(an_ibv_mr_is_borrowed_as_a_member),
		T(an_mr_without_a_name_is_called_by_its_key),
		T(key_0_is_a_key),
		T(an_rkey_that_is_not_the_lkey_is_used_as_such),
		T(where_system_calls_are_filtered_that_is_suspected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
