/* SPDX-License-Identifier: BSD-2-Clause */
/* A whole document from a file, a pipe or standard input, into memory. */
#include "spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int io_error(struct fail *f, const char *call, int err, const char *name)
{
	if (err == EINTR)
		return fail_sys(f, FAIL_INTERRUPTED, call, err, "interrupted while reading '%s'",
				name);
	return fail_sys(f, FAIL_IO, call, err, "cannot read '%s': %s", name, strerror(err));
}

static int too_large(struct fail *f, const char *name)
{
	fail_set(f, FAIL_IO, "'%s' is larger than %u bytes, the most that one document may have",
		 name, SPEC_MAX_BYTES);
	f->cause = "too_large";
	f->err = EFBIG;
	return -EFBIG;
}

/* The size to begin with: a regular file's, and one byte to see its end by. */
static int first_room(int fd, const char *name, size_t *ret_room, struct fail *f)
{
	struct stat st;

	if (fstat(fd, &st))
		return io_error(f, "fstat", errno, name);
	if (S_ISDIR(st.st_mode))
		return io_error(f, "read", EISDIR, name);
	*ret_room = 65536;
	if (S_ISREG(st.st_mode) && st.st_size > SPEC_MAX_BYTES)
		return too_large(f, name);
	if (S_ISREG(st.st_mode))
		*ret_room = st.st_size + 1;
	return 0;
}

int spec_read_fd(int fd, const char *name, struct spec_text *ret_text, struct fail *f)
{
	size_t room, size = 0;
	char *buf = NULL, *more;
	ssize_t n;
	int ret;

	ret = first_room(fd, name, &room, f);
	if (ret)
		return ret;
	for (;;) {
		if (!buf || size == room) {
			if (buf)
				room *= 2;
			more = realloc(buf, room);
			if (!more) {
				ret = fail_nomem(f);
				goto free_buf;
			}
			buf = more;
		}
		n = read(fd, buf + size, room - size);
		if (n < 0) {
			ret = io_error(f, "read", errno, name);
			goto free_buf;
		}
		if (!n)
			break;
		size += n;
		if (size > SPEC_MAX_BYTES) {
			ret = too_large(f, name);
			goto free_buf;
		}
	}
	ret_text->bytes = buf;
	ret_text->size = size;
	return 0;
free_buf:
	free(buf);
	return ret;
}

int spec_read(const char *path, struct spec_text *ret_text, struct fail *f)
{
	int fd, ret;

	if (!strcmp(path, "-"))
		return spec_read_fd(STDIN_FILENO, "standard input", ret_text, f);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return io_error(f, "open", errno, path);
	ret = spec_read_fd(fd, path, ret_text, f);
	close(fd);
	return ret;
}

void spec_text_free(struct spec_text *text)
{
	free(text->bytes);
	text->bytes = NULL;
	text->size = 0;
}
