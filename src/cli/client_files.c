/* SPDX-License-Identifier: BSD-2-Clause */
#include "client_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "data.h"
#include "progress.h"

#define COPY_PART 65536

/* Tell of a file under its role: a descriptor, or why there is none. fd is taken. */
static int tell(struct client_files *files, const char *role, const char *name, int fd, int number,
		struct fail *f)
{
	json_t *told = fd >= 0 ? json_pack("{s:s, s:i}", "name", name, "fd", (int)files->num)
			       : json_pack("{s:s, s:i}", "name", name, "errno", number);

	if (fd >= 0)
		files->fds[files->num++] = fd;
	return json_object_set_new(files->told, role, told) ? fail_nomem(f) : 0;
}

static int copy_failed(const char *call, const char *name, struct fail *f)
{
	int number = errno;

	return signals_check(f)
		       ? -EINTR
		       : fail_sys(f, FAIL_IO, call, number, "%s: %s", name, strerror(number));
}

static int write_part(int to, const char *part, size_t size, const char *name, struct fail *f)
{
	ssize_t n;

	while (size) {
		n = write(to, part, size);
		if (n < 0 && (errno != EINTR || signals_cancel))
			return copy_failed("write", name, f);
		if (n > 0) {
			part += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int copy_all(int from, int to, const char *name, struct fail *f)
{
	const bool seen = !isatty(to);
	uint64_t copied = 0, next_ns = 0;
	char part[COPY_PART];
	ssize_t n;
	int rc = 0;

	while (!rc) {
		if (seen && progress_due(&next_ns))
			progress_show(copied, 0);
		n = read(from, part, sizeof(part));
		if (n == 0)
			break;
		if (n > 0) {
			rc = write_part(to, part, (size_t)n, name, f);
			copied += (uint64_t)n;
		} else if (errno != EINTR || signals_cancel) {
			rc = copy_failed("read", name, f);
		}
	}
	progress_end();
	return rc;
}

static int memory_file(struct fail *f)
{
	int fd = memfd_create("ibmr-data", MFD_CLOEXEC);

	if (fd < 0)
		return fail_sys(f, FAIL_IO, "memfd_create", errno, "memory for data: %s",
				strerror(errno));
	return fd;
}

/* The session reads files only: what tells its size by ending is read here. fd is taken. */
static int spool(int fd, const char *name, int *ret_fd, struct fail *f)
{
	struct stat st;
	int copy, rc;

	if (fstat(fd, &st) || S_ISDIR(st.st_mode) ||
	    (S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) == 0)) {
		*ret_fd = fd;
		return 0;
	}
	copy = memory_file(f);
	if (copy < 0) {
		close(fd);
		return copy;
	}
	rc = copy_all(fd, copy, name, f);
	close(fd);
	if (rc)
		close(copy);
	else
		*ret_fd = copy;
	return rc;
}

/* Bytes to write or to begin with. "-" is standard input. */
static int lend_input(struct client_files *files, const char *role, const char *word, bool dash,
		      struct fail *f)
{
	char *path;
	int rc, fd, number;

	if (dash && !strcmp(word, "-")) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		number = errno;
		path = strdup("standard input");
	} else {
		path = data_path(word);
		fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : -1;
		number = errno;
	}
	if (!path)
		return fail_nomem(f);
	rc = fd >= 0 ? spool(fd, path, &fd, f) : 0;
	if (!rc)
		rc = tell(files, role, path, fd, number, f);
	free(path);
	return rc;
}

/* The file under an MR, as libibmr opens one. */
static int lend_memory(struct client_files *files, const struct step_reg *reg, struct fail *f)
{
	int flags = (reg->map_shared ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	char *path = data_path(reg->file);
	int fd = -1;
	int rc, number = 0;

	if (!path)
		return fail_nomem(f);
	if (reg->create)
		fd = open(path, flags | O_CREAT | O_EXCL, 0666);
	if (fd >= 0)
		files->made = strdup(path);
	if (fd < 0)
		fd = open(path, flags);
	if (fd < 0)
		number = errno;
	rc = tell(files, "file", path, fd, number, f);
	free(path);
	return rc;
}

/* Where read puts bytes. A pipe and standard output get a copy afterwards: a session waits for nobody. */
static int lend_output(struct client_files *files, const char *word, struct fail *f)
{
	const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
	bool dash = !strcmp(word, "-");
	char *path = dash ? strdup("standard output") : data_path(word);
	struct stat st;
	int rc, fd, number = 0;

	if (!path)
		return fail_nomem(f);
	fd = dash ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
		  : open(path, flags | O_CREAT | O_EXCL, 0666);
	if (fd >= 0 && !dash)
		files->made = strdup(path);
	if (fd < 0 && !dash && errno == EEXIST)
		fd = open(path, flags);
	if (fd < 0)
		number = errno;
	if (fd >= 0 && (dash || fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		files->copy_to = fd;
		files->copy = (int)files->num;
		fd = memory_file(f);
		if (fd < 0) {
			free(path);
			return fd;
		}
	}
	rc = tell(files, "to_file", path, fd, number, f);
	free(path);
	return rc;
}

int client_files_open(const struct step *step, struct client_files *ret_files, struct fail *f)
{
	struct fail ignored;
	int rc = 0;

	*ret_files = (struct client_files){ .told = json_object(), .copy = -1, .copy_to = -1 };
	if (!ret_files->told)
		return fail_nomem(f);
	if (step->verb == STEP_REG && step->reg.file)
		rc = lend_memory(ret_files, &step->reg, f);
	if (!rc && step->verb == STEP_REG && step->reg.init.kind == DATA_FILE)
		rc = lend_input(ret_files, "init", step->reg.init.text, false, f);
	if (step->verb == STEP_WRITE && step->write.data.kind == DATA_FILE)
		rc = lend_input(ret_files, "file", step->write.data.text, true, f);
	if (step->verb == STEP_READ && step->read.to_file)
		rc = lend_output(ret_files, step->read.to_file, f);
	if (rc)
		client_files_close(ret_files, false, &ignored);
	return rc;
}

int client_files_close(struct client_files *files, bool ok, struct fail *f)
{
	struct stat st;
	size_t i;
	int rc = 0;

	if (ok && files->copy >= 0) {
		lseek(files->fds[files->copy], 0, SEEK_SET);
		rc = copy_all(files->fds[files->copy], files->copy_to, "the bytes read", f);
	}
	if (!ok && files->made && !stat(files->made, &st) && st.st_size == 0)
		unlink(files->made);
	for (i = 0; i < files->num; i++)
		close(files->fds[i]);
	if (files->copy_to >= 0 && close(files->copy_to) && !rc)
		rc = fail_sys(f, FAIL_IO, "close", errno, "the bytes read: %s", strerror(errno));
	free(files->made);
	json_decref(files->told);
	return rc;
}
