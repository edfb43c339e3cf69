/* SPDX-License-Identifier: BSD-2-Clause */
#include "client_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data.h"
#include "patient.h"
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

static int copy_all(int from, int to, const char *name, const struct bound *bound, struct fail *f)
{
	const bool seen = !isatty(to);
	uint64_t copied = 0, next_ns = 0;
	char part[COPY_PART];
	ssize_t n = 1;
	int rc = 0;

	while (!rc && n) {
		if (seen && progress_due(&next_ns))
			progress_show(copied, 0);
		n = patient_read(from, part, sizeof(part), name, bound, f);
		if (n < 0)
			rc = (int)n;
		else
			rc = patient_write(to, part, (size_t)n, name, bound, f);
		copied += n > 0 ? (uint64_t)n : 0;
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
static int spool(int fd, const char *name, const struct bound *bound, int *ret_fd, struct fail *f)
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
	rc = copy_all(fd, copy, name, bound, f);
	close(fd);
	if (rc)
		close(copy);
	else
		*ret_fd = copy;
	return rc;
}

/* Open what may keep us waiting. *ret_fd is -1 with *ret_number when it is not to be had. */
static int open_patiently(const char *path, int flags, const struct bound *bound, int *ret_fd,
			  int *ret_number, struct fail *f)
{
	int rc = patient_open(path, flags, bound, f);

	*ret_fd = rc < 0 ? -1 : rc;
	*ret_number = rc < 0 ? -rc : 0;
	return rc < 0 && f->code != FAIL_IO ? rc : 0;
}

/* Bytes to write or to begin with. "-" is standard input, which may take its time. */
static int lend_input(struct client_files *files, const char *role, const char *word, bool dash,
		      struct fail *f)
{
	const struct bound bound = bound_of(files->timeout_ms);
	bool standard = dash && !strcmp(word, "-");
	char *path = standard ? strdup("standard input") : data_path(word);
	int fd = -1, number = 0;
	int rc = 0;

	if (!path)
		return fail_nomem(f);
	if (standard) {
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		number = errno;
	} else {
		rc = open_patiently(path, O_RDONLY, &bound, &fd, &number, f);
	}
	if (!rc && fd >= 0)
		rc = spool(fd, path, standard ? NULL : &bound, &fd, f);
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
	bool kept = false;
	int fd = -1;
	int rc, number = 0;

	if (!path)
		return fail_nomem(f);
	if (reg->create)
		fd = open(path, flags | O_CREAT | O_EXCL, 0666);
	if (fd >= 0) {
		files->made = path;
		kept = true;
	} else {
		fd = open(path, flags);
	}
	if (fd < 0)
		number = errno;
	rc = tell(files, "file", path, fd, number, f);
	if (!kept)
		free(path);
	return rc;
}

/* Where read puts bytes. A pipe and standard output get a copy afterwards: a session waits for nobody. */
static int lend_output(struct client_files *files, const char *word, struct fail *f)
{
	const struct bound bound = bound_of(files->timeout_ms);
	bool dash = !strcmp(word, "-"), kept = false;
	char *path = dash ? strdup("standard output") : data_path(word);
	struct stat st;
	int rc = 0, fd, number;

	if (!path)
		return fail_nomem(f);
	fd = dash ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)
		  : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
	number = errno;
	if (fd >= 0 && !dash) {
		files->made = path;
		kept = true;
	}
	if (fd < 0 && !dash && number == EEXIST)
		rc = open_patiently(path, O_WRONLY, &bound, &fd, &number, f);
	if (rc) {
		free(path);
		return rc;
	}
	if (fd >= 0 && !kept && (dash || fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		files->copy_to = fd;
		files->standard = dash;
		files->copy = (int)files->num;
		files->copy_name = path;
		kept = true;
		fd = memory_file(f);
		if (fd < 0)
			return fd;
	}
	rc = tell(files, "to_file", path, fd, number, f);
	if (!kept)
		free(path);
	return rc;
}

int client_files_open(const struct step *step, uint32_t timeout_ms, struct client_files *ret_files,
		      struct fail *f)
{
	struct fail ignored;
	int rc = 0;

	*ret_files = (struct client_files){
		.told = json_object(), .copy = -1, .copy_to = -1, .timeout_ms = timeout_ms
	};
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
	const struct bound bound = bound_of(files->timeout_ms);
	struct stat st;
	size_t i;
	int rc = 0;

	if (ok && files->copy >= 0) {
		lseek(files->fds[files->copy], 0, SEEK_SET);
		rc = copy_all(files->fds[files->copy], files->copy_to, files->copy_name,
			      files->standard ? NULL : &bound, f);
	}
	if (!ok && files->made && !stat(files->made, &st) && st.st_size == 0)
		unlink(files->made);
	for (i = 0; i < files->num; i++)
		close(files->fds[i]);
	if (files->copy_to >= 0 && close(files->copy_to) && !rc)
		rc = fail_sys(f, FAIL_IO, "close", errno, "%s: %s", files->copy_name,
			      strerror(errno));
	free(files->copy_name);
	free(files->made);
	json_decref(files->told);
	return rc;
}
