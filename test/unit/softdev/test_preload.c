/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process sees of the file system, and that nothing of softdev is inherited or in the way. */
#include "raw.h"

#include <dirent.h>
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void read_file(const char *path, char *buf, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t num;

	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	num = read(fd, buf, room - 1);
	assert_true(num >= 0);
	buf[num] = '\0';
	close(fd);
}

static void the_tree(void **state)
{
	struct stat st, null;
	struct dirent *e;
	char buf[200];
	int num = 0, dir, fd;
	DIR *d;

	read_file("/sys/class/infiniband_verbs/abi_version", buf, sizeof(buf));
	assert_string_equal(buf, "6\n");
	read_file("/sys/class/infiniband/soft0/board_id", buf, sizeof(buf));
	assert_string_equal(buf, "SOFT0\n");
	d = opendir("/sys/class/infiniband");
	assert_non_null(d);
	while ((e = readdir(d)))
		if (e->d_name[0] != '.') {
			assert_string_equal(e->d_name, "soft0");
			num++;
		}
	closedir(d);
	assert_int_equal(num, 1); /* whatever the host has */
	assert_int_equal(stat("/sys/class/infiniband/soft0", &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(stat("/dev/infiniband/uverbs0", &st), 0);
	assert_int_equal(stat("/dev/null", &null), 0);
	assert_true(S_ISCHR(st.st_mode) && st.st_rdev == null.st_rdev);
	assert_int_equal(access("/dev/infiniband/uverbs0", R_OK | W_OK), 0);
	assert_int_equal(access("/dev/infiniband/uverbs7", F_OK), -1);
	assert_int_equal(access("/sys/class/infiniband/mlx5_0", F_OK), -1);
	dir = open("/sys/class/infiniband/soft0", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	fd = openat(dir, "node_guid", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	close(dir);
}

static void everything_else_is_itself(void **state)
{
	char path[] = "/tmp/soft0-test-XXXXXX", link[100], buf[10];
	struct stat st;
	int fd = mkstemp(path), other;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "abc", 3), 3);
	assert_int_equal(fchmod(fd, 0600), 0);
	close(fd);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 3);
	read_file(path, buf, sizeof(buf));
	assert_string_equal(buf, "abc");
	assert_int_equal(access("/sys/class/infinibandage", F_OK), -1);
	assert_int_equal(access("/sys/class", F_OK), 0);
	snprintf(link, sizeof(link), "%s.link", path);
	assert_int_equal(symlink("target", link), 0);
	assert_int_equal(readlink(link, buf, sizeof(buf)), 6);
	assert_int_equal(lstat(link, &st), 0);
	assert_true(S_ISLNK(st.st_mode));
	unlink(link);
	unlink(path);
	snprintf(link, sizeof(link), "%s.new", path);
	fd = open(link, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0640);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0700, 0600);
	other = fcntl(fd, F_DUPFD, 50);
	assert_true(other >= 50);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(dup2(fd, fd), fd);
	assert_int_equal(close(other), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(dup2(fd, fd), -1);
	unlink(link);
}

static void stdio_and_ranges(void **state)
{
	FILE *f = fopen("/sys/class/infiniband/soft0/fw_ver", "r");
	struct ibv_context *ctx;
	char line[20];

	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_string_equal(line, "0.1.0\n");
	fclose(f);
	f = fopen("/proc/self/stat", "r");
	assert_non_null(f);
	fclose(f);

	ctx = dev_open();
	assert_int_equal(counter("live.context"), 1);
	assert_int_equal(close_range((unsigned int)ctx->cmd_fd, (unsigned int)ctx->cmd_fd,
				     CLOSE_RANGE_CLOEXEC),
			 0);
	assert_int_equal(counter("live.context"), 1);
	f = fdopen(dup(ctx->cmd_fd), "r"); /* the context lives on in it */
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(counter("live.context"), 1);
	assert_int_equal(close_range((unsigned int)fileno(f), (unsigned int)fileno(f), 0), 0);
	assert_int_equal(counter("live.context"), 0);
	fclose(f);
}

/* What a child of vfork closes is its own, though it shares the memory. */
static void vfork_closes_nothing(void **state)
{
	struct ibv_context *ctx = dev_open();
	int fd = ctx->cmd_fd, status;
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */

	if (!pid) {
		close(fd);   /* NOLINT(clang-analyzer-unix.Vfork) */
		dup2(1, fd); /* NOLINT(clang-analyzer-unix.Vfork) */
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(counter("live.context"), 1);
	assert_int_equal(raw_dealloc_pd(fd, 4711), ENOENT);
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(counter("live.context"), 0);
}

static void rdma_netlink_is_hidden(void **state)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	assert_int_equal(fd, -1);
	assert_int_equal(errno, EPROTONOSUPPORT);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	close(fd);
}

static const char *library(void)
{
	Dl_info info;

	assert_true(dladdr((void *)soft0_name, &info));
	return info.dli_fname;
}

/* What a shell command prints in an environment of PATH and one more word. */
static void run(const char *word, const char *command, char *buf, size_t room)
{
	char *const argv[] = { (char *)"sh", (char *)"-c", (char *)command, NULL };
	char *const envp[] = { (char *)"PATH=/usr/bin:/bin", (char *)word, NULL };
	size_t num = 0;
	ssize_t got;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[1], 1);
		dup2(fds[1], 2);
		execve("/bin/sh", argv, envp);
		_exit(99);
	}
	close(fds[1]);
	while ((got = read(fds[0], buf + num, room - 1 - num)) > 0)
		num += (size_t)got;
	buf[num] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void children_do_not_inherit_it(void **state)
{
	char word[5000], out[5000];

	/* sh itself has softdev, what it starts has not */
	snprintf(word, sizeof(word), "LD_PRELOAD=%s", library());
	run(word, "cat /sys/class/infiniband/soft0/board_id; env", out, sizeof(out));
	assert_null(strstr(out, "LD_PRELOAD"));
	assert_null(strstr(out, "SOFT0\n"));
	assert_non_null(strstr(out, "PATH="));
	snprintf(word, sizeof(word), "LD_PRELOAD=%s:libc.so.6", library());
	run(word, "env", out, sizeof(out));
	assert_non_null(strstr(out, "LD_PRELOAD=libc.so.6\n"));
	snprintf(word, sizeof(word), "LD_PRELOAD=libc.so.6 %s", library());
	run(word, "env", out, sizeof(out));
	assert_non_null(strstr(out, "LD_PRELOAD=libc.so.6\n"));
	/* read by sh's own test, an interposed stat */
	snprintf(word, sizeof(word), "LD_PRELOAD=%s", library());
	run(word, "test -e /dev/infiniband/uverbs0 && echo there", out, sizeof(out));
	assert_string_equal(out, "there\n");
}

static char *self; /* the path of this program */

/* This program again, in an environment that would lead rdma-core past softdev. */
static int child(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	if (!list || !list[0])
		return 1;
	ibv_free_device_list(list);
	return getenv("SYSFS_PATH") || getenv("MLX5_SINGLE_THREADED") ? 2 : 0;
}

static void the_environment_does_not_lead_astray(void **state)
{
	char *const argv[] = { (char *)"child", NULL };
	char *const envp[] = { (char *)"SYSFS_PATH=/nowhere", (char *)"MLX5_SINGLE_THREADED=1",
			       NULL };
	pid_t pid = fork();
	int status;

	if (!pid) {
		execve(self, argv, envp);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- a sandbox that blocks what softdev would rather use ------------------------------ */

#define FAIL(nr, err)                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (err))

static void sandbox(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		FAIL(SYS_process_vm_readv, EPERM),
		FAIL(SYS_process_vm_writev, EPERM),
		/* a kernel before 5.14: no MADV_POPULATE */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 22, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 23, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), 0);
}

/* In a child, for it stays so. */
static void work_in_the_sandbox(void)
{
	const size_t size = 300000; /* more than a pipe holds */
	uint8_t *a = malloc(size), *b = calloc(1, size), *readonly;
	struct ibv_send_wr wr = { .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .send_flags = IBV_SEND_SIGNALED };
	struct ibv_send_wr *bad;
	struct ibv_mr *ma, *mb;
	struct ibv_sge sge;
	struct loop l;
	size_t i;

	sandbox();
	assert_int_equal(syscall(SYS_process_vm_readv, getpid(), NULL, 0L, NULL, 0L, 0L), -1);
	assert_int_equal(errno, EPERM);
	loop_open(&l);
	for (i = 0; i < size; i++)
		a[i] = (uint8_t)(i * 31 >> 3);
	ma = ibv_reg_mr(l.pd, a, size, RIGHTS);
	mb = ibv_reg_mr(l.pd, b, size, RIGHTS | IBV_ACCESS_ON_DEMAND);
	assert_true(ma && mb);
	sge = (struct ibv_sge){ (uintptr_t)a, (uint32_t)size, ma->lkey };
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)b;
	wr.wr.rdma.rkey = mb->rkey;
	assert_int_equal(ibv_post_send(l.qp, &wr, &bad), 0);
	assert_int_equal(loop_poll(l.cq).status, IBV_WC_SUCCESS);
	assert_memory_equal(a, b, size);

	readonly = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_non_null(ibv_reg_mr(l.pd, readonly, 8192, 0));
	assert_null(ibv_reg_mr(l.pd, readonly, 8192, IBV_ACCESS_LOCAL_WRITE));
	assert_int_equal(errno, EFAULT);
	munmap(readonly + 4096, 4096);
	assert_null(ibv_reg_mr(l.pd, readonly, 8192, 0));
	assert_int_equal(errno, EFAULT);
	assert_int_equal(raw_dealloc_pd(l.ctx->cmd_fd, 4711), ENOENT);
	assert_int_equal(ioctl(l.ctx->cmd_fd, RDMA_VERBS_IOCTL, raw_hole()), -1);
	assert_int_equal(errno, EFAULT);
}

static void a_sandbox(void **state)
{
	in_child(work_in_the_sandbox);
}

static int free_self(void **state)
{
	free(self);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_tree),
		cmocka_unit_test(everything_else_is_itself),
		cmocka_unit_test(stdio_and_ranges),
		cmocka_unit_test(vfork_closes_nothing),
		cmocka_unit_test(rdma_netlink_is_hidden),
		cmocka_unit_test(children_do_not_inherit_it),
		cmocka_unit_test(the_environment_does_not_lead_astray),
		cmocka_unit_test(a_sandbox),
	};

	if (!strcmp(argv[0], "child"))
		return child();
	self = realpath(argv[0], NULL);
	return cmocka_run_group_tests(tests, NULL, free_self);
}
