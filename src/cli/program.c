/* SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define SCRIPT_DEPTH 5 /* as the kernel follows #! lines */

/* ---- finding ------------------------------------------------------------------------ */

static int check_runnable(const char *path, struct fail *f)
{
	struct stat st;

	if (stat(path, &st) || access(path, X_OK))
		return fail_sys(f, FAIL_IO, "access", errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return fail_sys(f, FAIL_IO, "access", EACCES, "%s: not a program", path);
	return 0;
}

static int search_path(const char *name, const char *dirs, char *buf, size_t size, struct fail *f)
{
	bool denied = false;
	const char *end;
	int n;

	for (;; dirs = end + 1) {
		end = strchrnul(dirs, ':');
		/* an empty part is the working directory */
		n = snprintf(buf, size, "%.*s%s%s", (int)(end - dirs), dirs,
			     end == dirs ? "./" : "/", name);
		if (n > 0 && (size_t)n < size && !check_runnable(buf, f))
			return 0;
		if (n > 0 && (size_t)n < size && f->err == EACCES)
			denied = true;
		if (!*end)
			break;
	}
	if (denied)
		return fail_sys(f, FAIL_IO, "access", EACCES, "%s: not executable", name);
	return fail_sys(f, FAIL_IO, "access", ENOENT, "%s: not found", name);
}

int program_find(const char *name, char *buf, size_t size, struct fail *reterr)
{
	const char *dirs = getenv("PATH");
	int n;

	if (!strchr(name, '/'))
		return *name ? search_path(name, dirs ? dirs : "/bin:/usr/bin", buf, size, reterr)
			     : fail_sys(reterr, FAIL_IO, "access", ENOENT, "'': not found");
	n = snprintf(buf, size, "%s", name);
	if (n < 0 || (size_t)n >= size)
		return fail_sys(reterr, FAIL_IO, "access", ENAMETOOLONG, "the name is too long");
	return check_runnable(buf, reterr);
}

/* ---- whether it listens -------------------------------------------------------------- */

static int refuse(struct fail *f, const char *cause, const char *path, const char *why)
{
	fail_set(f, FAIL_UNSUPPORTED, "%s: %s, so soft0 cannot be brought into it", path, why);
	f->cause = cause;
	f->err = EPERM;
	return -EPERM;
}

static int check_privileges(int fd, const char *path, struct fail *f)
{
	struct stat st;

	if (fstat(fd, &st))
		return fail_sys(f, FAIL_IO, "fstat", errno, "%s: %s", path, strerror(errno));
	if (st.st_mode & S_ISUID)
		return refuse(f, "setuid", path, "the program is set-user-ID");
	if ((st.st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP))
		return refuse(f, "setgid", path, "the program is set-group-ID");
	if (fgetxattr(fd, "security.capability", NULL, 0) > 0)
		return refuse(f, "file_capabilities", path, "the program has file capabilities");
	return 0;
}

/* The interpreter of a "#!" line, as the kernel reads it. */
static int script_interpreter(char *line, char *buf, size_t size)
{
	char *word = line + 2 + strspn(line + 2, " \t");
	size_t len = strcspn(word, " \t\n");

	if (len == 0 || len >= size)
		return -ENOEXEC;
	memcpy(buf, word, len);
	buf[len] = '\0';
	return 0;
}

static bool read_at(int fd, void *buf, size_t num, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, buf, num, (off_t)offset) == (ssize_t)num;
}

/* Our own header, by the linker: what kind of machine this is. */
extern const ElfW(Ehdr) __ehdr_start __attribute__((visibility("hidden")));

/* Class and machine must be ours, or the library would not fit; and there must be a dynamic linker. */
static int check_elf(int fd, const char *path, struct fail *f)
{
	const ElfW(Ehdr) *self = &__ehdr_start;
	ElfW(Ehdr) head;
	ElfW(Phdr) ph;
	unsigned i;

	if (!read_at(fd, &head, sizeof(head), 0) ||
	    memcmp(head.e_ident, self->e_ident, EI_DATA + 1) || head.e_machine != self->e_machine)
		return refuse(f, "machine", path, "it is a program of another kind of machine");
	if (head.e_phentsize != sizeof(ph))
		return refuse(f, "not_elf", path, "its program headers cannot be read");
	for (i = 0; i < head.e_phnum; i++) {
		if (!read_at(fd, &ph, sizeof(ph), head.e_phoff + (uint64_t)i * sizeof(ph)))
			return refuse(f, "not_elf", path, "its program headers cannot be read");
		if (ph.p_type == PT_INTERP)
			return 0;
	}
	return refuse(f, "static", path, "the program is linked statically");
}

/* 0: settled. 1: a script; its interpreter is in buf. */
static int look(const char *path, char *buf, size_t size, struct fail *f)
{
	char head[PATH_MAX] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;
	int rc;

	/* execute permission without read permission: nothing can be said */
	if (fd < 0)
		return fail_sys(f, FAIL_IO, "open", errno, "%s: %s", path, strerror(errno));
	rc = check_privileges(fd, path, f);
	if (rc)
		goto close_fd;
	n = pread(fd, head, sizeof(head) - 1, 0);
	if (n >= SELFMAG && !memcmp(head, ELFMAG, SELFMAG)) {
		rc = check_elf(fd, path, f);
	} else if (n >= 2 && head[0] == '#' && head[1] == '!' &&
		   !script_interpreter(head, buf, size)) {
		rc = 1;
	} else {
		rc = fail_sys(f, FAIL_IO, "execve", ENOEXEC,
			      "%s: neither a program nor a script with a #! line", path);
	}
close_fd:
	close(fd);
	return rc;
}

int program_takes_preload(const char *path, struct fail *reterr)
{
	char at[PATH_MAX], next[PATH_MAX];
	unsigned depth;
	int rc;

	snprintf(at, sizeof(at), "%s", path);
	for (depth = 0; depth < SCRIPT_DEPTH; depth++) {
		rc = look(at, next, sizeof(next), reterr);
		if (rc <= 0)
			return rc;
		memcpy(at, next, sizeof(at));
	}
	return fail_sys(reterr, FAIL_IO, "execve", ELOOP, "%s: too many #! lines", path);
}
