/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Documents one after another. One begins with a brace at the start of a line, as all that ibmr and jq
 * write do; so one that was cut short ends where the next begins, and spoils no other.
 */
#include "report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PART ((size_t)256 << 10)

struct stream {
	struct report *r;
	const char *name;
	char *buf;
	size_t used, room, seen; /* seen: no document begins before it but at 0 */
	size_t gone;		 /* bytes before buf */
};

static int take(struct stream *s, char *text, size_t len, struct fail *f)
{
	const struct spec_text one = { text, len };
	struct fail broken;
	json_t *doc;
	char message[sizeof(broken.message) + 64];
	int rc;

	if (strspn(text, " \n\r\t") >= len)
		return 0;
	rc = spec_parse_text(&one, &doc, &broken);
	if (rc == -ENOMEM)
		return fail_nomem(f);
	if (rc) {
		snprintf(message, sizeof(message), "the document at byte %zu, %s",
			 s->gone + (size_t)(text - s->buf), broken.message);
		return report_note(s->r->broken, s->name, message, f);
	}
	rc = report_add(s->r, s->name, doc, f);
	json_decref(doc);
	return rc;
}

/* All documents that have ended; at the end of the stream, all. */
static int take_all(struct stream *s, bool end, struct fail *f)
{
	size_t from = 0, len;
	char *next;
	int rc = 0;

	do {
		next = memmem(s->buf + s->seen, s->used - s->seen, "\n{", 2);
		if (!next && !end)
			break;
		len = (next ? (size_t)(next - s->buf) + 1 : s->used) - from;
		rc = len ? take(s, s->buf + from, len, f) : 0;
		from += len;
		s->seen = from;
	} while (!rc && next);
	s->used -= from;
	s->gone += from;
	memmove(s->buf, s->buf + from, s->used + 1);
	s->seen = s->used ? s->used - 1 : 0;
	return rc;
}

static int grow(struct stream *s, struct fail *f)
{
	char *buf;

	if (s->room - s->used > PART)
		return 0;
	if (s->used > SPEC_MAX_BYTES)
		return fail_set(f, FAIL_IO, "%s: a document of more than %u bytes", s->name,
				SPEC_MAX_BYTES);
	buf = realloc(s->buf, 2 * s->room + 2 * PART);
	if (!buf)
		return fail_nomem(f);
	s->buf = buf;
	s->room = 2 * s->room + 2 * PART;
	return 0;
}

static int read_stream(struct report *r, int fd, const char *name, struct fail *f)
{
	struct stream s = { .r = r, .name = name };
	ssize_t n = 1;
	int rc = 0;

	while (!rc && n) {
		rc = signals_check(f);
		if (!rc)
			rc = grow(&s, f);
		if (rc)
			break;
		n = read(fd, s.buf + s.used, s.room - s.used - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			rc = report_note(r->broken, name, strerror(errno), f);
			break;
		}
		s.used += (size_t)n;
		s.buf[s.used] = '\0';
		rc = take_all(&s, n == 0, f);
	}
	free(s.buf);
	json_array_clear(r->pending);
	return rc;
}

static int read_file(struct report *r, const char *path, struct fail *f)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int rc;

	if (fd < 0)
		return report_note(r->broken, path, strerror(errno), f);
	rc = read_stream(r, fd, path, f);
	close(fd);
	return rc;
}

static int no_dot(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int read_folder(struct report *r, const char *folder, struct fail *f)
{
	struct dirent **entries;
	char *path;
	int num, i, rc = 0;

	num = scandir(folder, &entries, no_dot, alphasort);
	if (num < 0)
		return report_note(r->broken, folder, strerror(errno), f);
	for (i = 0; i < num; i++) {
		path = NULL;
		if (!rc && asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0) {
			path = NULL;
			rc = fail_nomem(f);
		}
		if (!rc)
			rc = read_file(r, path, f);
		free(path);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

int report_read(struct report *r, const char *path, struct fail *f)
{
	struct stat st;

	if (!strcmp(path, "-"))
		return read_stream(r, STDIN_FILENO, "standard input", f);
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return read_folder(r, path, f);
	return read_file(r, path, f);
}
