/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a step came out as its plan says. */
#include <errno.h>
#include <string.h>

#include "out.h"
#include "session.h"
#include "utf8.h"

#define SHOWN 400 /* bytes of a value in a message */

static const struct at at_expect = { .name = "expect" };

/* A value for a message, as far as it goes. */
static const char *show(struct writer *w, const json_t *value)
{
	writer_init(w, -1, true);
	writer_json(w, value);
	if (w->used > SHOWN) {
		w->used = utf8_boundary(w->buf, SHOWN);
		memcpy(w->buf + w->used, "...", 3);
		w->used += 3;
	}
	w->buf[w->used] = '\0';
	return w->buf;
}

static int differs(struct fail *f, const struct at *at, const char *name, const json_t *want,
		   const json_t *got)
{
	struct writer w1, w2;

	fail_set(f, FAIL_MISMATCH, "%s: expected %s, got %s", name, show(&w1, want),
		 got ? show(&w2, got) : "nothing");
	fail_at(f, at);
	f->err = EBADMSG;
	return -EBADMSG;
}

static int hex_digit(char c)
{
	return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
}

static int compare_hex(const char *want, const struct reply *reply, const struct at *at,
		       struct fail *f)
{
	uint64_t num = strlen(want) / 2;
	uint64_t i;

	if (num != reply->num_bytes) {
		fail_set(f, FAIL_MISMATCH, "hex: expected %llu byte%s, got %llu",
			 (unsigned long long)num, fail_plural(num),
			 (unsigned long long)reply->num_bytes);
	} else {
		for (i = 0; i < num; i++) {
			int byte = hex_digit(want[2 * i]) << 4 | hex_digit(want[2 * i + 1]);

			if (reply->bytes[i] != byte)
				break;
		}
		if (i == num)
			return 0;
		fail_set(f, FAIL_MISMATCH, "hex: byte %llu: expected %.2s, got %02x",
			 (unsigned long long)i, want + 2 * i, reply->bytes[i]);
	}
	f->err = EBADMSG;
	fail_at(f, at);
	return -EBADMSG;
}

static int compare_members(const json_t *want, const json_t *got, const struct at *up,
			   struct fail *f);

static int compare_value(const json_t *want, const json_t *got, const struct at *at, struct fail *f)
{
	if (json_is_object(want) && json_is_object(got))
		return compare_members(want, got, at, f);
	return got && json_equal(want, got) ? 0 : differs(f, at, at->name, want, got);
}

/* Each member of want, in an object that the result has. */
static int compare_members(const json_t *want, const json_t *got, const struct at *up,
			   struct fail *f)
{
	json_t *obj = (json_t *)want; /* the iterator changes nothing */
	struct at at = { .up = up };
	int rc = 0;
	void *it;

	for (it = json_object_iter(obj); it && !rc; it = json_object_iter_next(obj, it)) {
		at.name = json_object_iter_key(it);
		rc = compare_value(json_object_iter_value(it), json_object_get(got, at.name), &at,
				   f);
	}
	return rc;
}

/* Bytes are compared as they are, and all else in the result read as a value. */
static int compare_result(const json_t *want, struct reply *reply, struct fail *f)
{
	json_t *obj = (json_t *)want; /* the iterator changes nothing */
	struct at at = { .up = &at_expect };
	int rc = 0;
	void *it;

	for (it = json_object_iter(obj); it && !rc; it = json_object_iter_next(obj, it)) {
		const json_t *value = json_object_iter_value(it);

		at.name = json_object_iter_key(it);
		if (reply->bytes && json_is_string(value) && !strcmp(at.name, "hex"))
			rc = compare_hex(json_string_value(value), reply, &at, f);
		else if (!reply_tree(reply))
			rc = fail_nomem(f);
		else
			rc = compare_value(value, json_object_get(reply->tree, at.name), &at, f);
	}
	return rc;
}

static int wrong_ending(const struct step *step, const struct reply *reply, struct fail *f)
{
	const struct at at = { .up = &at_expect, .name = "error" };

	if (step->expect_error == FAIL_NONE) {
		fail_set(f, FAIL_MISMATCH, "expected a result, got the error '%s': %s",
			 fail_code_name(reply->fail.code), reply->fail.message);
		fail_at(f, &at_expect);
	} else if (reply->fail.code == FAIL_NONE) {
		fail_set(f, FAIL_MISMATCH, "expected the error '%s', but the step succeeded",
			 fail_code_name(step->expect_error));
		fail_at(f, &at);
	} else {
		fail_set(f, FAIL_MISMATCH, "expected the error '%s', got '%s': %s",
			 fail_code_name(step->expect_error), fail_code_name(reply->fail.code),
			 reply->fail.message);
		fail_at(f, &at);
	}
	f->err = EBADMSG;
	return -EBADMSG;
}

/* By a signal or the command's deadline, which are no answer of the step. */
static bool was_stopped(const struct fail *f)
{
	return f->code == FAIL_INTERRUPTED ||
	       (f->code == FAIL_TIMEOUT && f->cause && !strcmp(f->cause, "deadline"));
}

int outcome_check(const struct step *step, struct reply *reply, struct fail *reterr)
{
	enum fail_code code = reply->fail.code;

	/* a plan may expect an error, but no plan expects to be stopped */
	if (was_stopped(&reply->fail) || (!step->expect && code != FAIL_NONE)) {
		*reterr = reply->fail;
		return -EBADMSG;
	}
	if (!step->expect)
		return 0;
	if (code != step->expect_error)
		return wrong_ending(step, reply, reterr);
	if (code != FAIL_NONE)
		return 0;
	return compare_result(step->expect, reply, reterr);
}
