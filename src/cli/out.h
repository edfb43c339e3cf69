/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Standard output: exactly one JSON document, whatever happens.
 *
 * The writer allocates nothing, so that running out of memory is answered like all else. A failed
 * write is remembered and makes the command fail.
 */
#ifndef CLI_OUT_H
#define CLI_OUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli.h"
#include "growing.h"

struct writer {
	int fd;
	struct growing *to; /* in place of fd; NULL: none */
	bool compact;
	int error; /* negative errno of the first write that failed */
	unsigned depth;
	bool empty;	/* nothing yet in the innermost container */
	bool after_key; /* a value comes next */
	char last;	/* byte flushed */
	size_t used;
	char buf[16384]; /* an error with every byte escaped fits */
};

/* fd -1: nothing is written; what fits is in buf, used bytes of it, and the rest is -ENOBUFS. */
void writer_init(struct writer *w, int fd, bool compact);
/* One value as text, compact, or with the indents that it has as a member at that depth. */
void writer_init_value(struct writer *w, struct growing *to, unsigned depth);
void writer_begin(struct writer *w, char bracket);  /* '{' or '[' */
void writer_end(struct writer *w, char bracket);    /* '}' or ']' */
void writer_key(struct writer *w, const char *key); /* with nothing in it to escape */
void writer_null(struct writer *w);
void writer_bool(struct writer *w, bool value);
void writer_int(struct writer *w, int64_t value);
void writer_string(struct writer *w, const char *value); /* NULL: null */
void writer_micros(struct writer *w, uint64_t ns);	 /* as microseconds, three decimals */
void writer_json(struct writer *w, const json_t *value); /* NULL: null */
void writer_fail(struct writer *w, const struct fail *fail);
void writer_raw(struct writer *w, const char *text,
		size_t num);			      /* a value that is written already */
void writer_text(struct writer *w, const char *text); /* as it is: for --format text */
/* End the document or the text with a newline, if there is none, and flush. 0 or a negative errno. */
int writer_finish(struct writer *w);
/* The same for a value: nothing is added to it. */
int writer_finish_value(struct writer *w);

/* A member: its name and its value. */
void say_null(struct writer *w, const char *key);
void say_bool(struct writer *w, const char *key, bool value);
void say_int(struct writer *w, const char *key, uint64_t value);
void say_count(struct writer *w, const char *key, int64_t value);      /* null when negative */
void say_string(struct writer *w, const char *key, const char *value); /* NULL: null */
/* "0x...", with so many digits at least. */
void say_hex(struct writer *w, const char *key, uint64_t value, unsigned width);

/* text.c: as writer_text, by a printf format; what is longer than two thousand bytes is cut. */
void writer_format(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* text.c: a result for eyes, as an indented list of names and values. */
void text_value(struct writer *w, const json_t *value);

/* The device of an answer; an empty name is null. */
struct answer_device {
	char name[64];
	bool software;
};

/* The head of every document: schema, command, ok, device and the time so far. */
void answer_head(struct writer *w, const struct cli *cli, bool ok, const struct answer_device *dev);
/* The same with a time that somebody else measured. */
void answer_head_after(struct writer *w, const struct cli *cli, bool ok,
		       const struct answer_device *dev, uint64_t ns);
/* Finish the document and turn a failed write into the exit status. */
int answer_end(struct writer *w, const struct cli *cli, int status);

/* Print the whole answer and return the exit status. dev may be NULL. The result is taken; NULL means
 * that there was no memory for it. */
int answer_result(const struct cli *cli, const struct answer_device *dev, json_t *result);
int answer_fail(const struct cli *cli, const struct answer_device *dev, const struct fail *fail);
int answer_fail_on(const struct cli *cli, int fd, const struct answer_device *dev,
		   const struct fail *fail);

/* The failure in words for people, on standard error. */
void complain(const struct cli *cli, const struct fail *fail);

#endif /* CLI_OUT_H */
