/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps that move bytes, a chunk at a time.
 *
 * What the library's records refuse is refused before the first byte moves: a range that does not
 * fit is handed to the library whole, which says so and touches nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "data.h"
#include "patient.h"
#include "result.h"
#include "segments.h"
#include "session.h"

#define HEX_MOST 4096 /* bytes shown */

static bool fits(const struct ibmr_mr *mr, uint64_t offset, uint64_t length)
{
	struct ibmr_mr_info info;

	ibmr_mr_query(mr, &info);
	return offset <= info.length && length <= info.length - offset;
}

/* IBMR_TO_END as a number; an empty rest keeps a byte, so that the library says where the end is. */
static uint64_t rest(const struct ibmr_mr *mr, uint64_t offset, uint64_t length)
{
	struct ibmr_mr_info info;

	if (length != IBMR_TO_END)
		return length;
	ibmr_mr_query(mr, &info);
	return info.length > offset ? info.length - offset : 1;
}

/* An implicit MR has no end to go to; and what is written through it lies in other MRs' memory. */
static int implicit_check(const struct session *s, const struct object *object, uint64_t offset,
			  uint64_t length, bool writes, struct fail *f)
{
	struct ibmr_mr_info info;

	ibmr_mr_query(object->mr, &info);
	if (!info.implicit)
		return 0;
	if (length == IBMR_TO_END)
		return session_endless(object, f);
	return writes ? session_need_memory(s, object, offset, length, f) : 0;
}

/* Bytes on their way: a chunk, or one byte to ask the library with. In a dry session nothing moves and
 * one call with the whole length makes all its checks. */
static uint64_t chunk_length(struct session *s, const struct ibmr_mr *mr, uint64_t offset,
			     uint64_t length, unsigned flags)
{
	if (session_is_dry(s) || (!(flags & IBMR_IO_UNCHECKED) && !fits(mr, offset, length)))
		return length;
	return length < DATA_CHUNK ? length : DATA_CHUNK;
}

/* Memory for one of so many bytes; the library is asked with at least one. */
static uint8_t *chunk_memory(uint64_t most)
{
	return malloc(most < DATA_CHUNK ? most + 1 : DATA_CHUNK);
}

static int write_chunk(struct session *s, struct ibmr_mr *mr, uint64_t offset, const void *bytes,
		       uint64_t num, unsigned flags, struct fail *f)
{
	struct ibmr_err err;
	int rc;

	rc = session_tick(s, f);
	if (rc)
		return rc;
	rc = ibmr_mr_write(mr, offset, bytes, num, flags, &err);
	return rc ? session_fail(&err, rc, NULL, f) : 0;
}

static int read_chunk(struct session *s, struct ibmr_mr *mr, uint64_t offset, void *bytes,
		      uint64_t num, unsigned flags, struct fail *f)
{
	struct ibmr_err err;
	int rc;

	rc = session_tick(s, f);
	if (rc)
		return rc;
	rc = ibmr_mr_read(mr, offset, bytes, num, flags, &err);
	return rc ? session_fail(&err, rc, NULL, f) : 0;
}

static void say_crc(struct writer *w, uint32_t crc)
{
	say_hex(w, "crc32", crc, 8);
}

/* ---- write ------------------------------------------------------------------------ */

static int write_all(struct session *s, const struct step *step, struct ibmr_mr *mr,
		     struct source *src, uint32_t *ret_crc, struct fail *f)
{
	unsigned flags = step->write.unchecked ? IBMR_IO_UNCHECKED : 0;
	uint64_t offset = step->write.offset;
	uint64_t most = chunk_length(s, mr, offset, src->length, flags);
	uint8_t *chunk = chunk_memory(most);
	uint32_t crc = 0;
	int rc = chunk ? 0 : fail_nomem(f);

	if (!rc && most > DATA_CHUNK)
		rc = write_chunk(s, mr, offset, chunk, most, flags, f);
	while (!rc && most <= DATA_CHUNK && src->done < src->length) {
		uint64_t at = src->done;
		size_t num = src->length - at < most ? src->length - at : most;

		rc = source_read(src, chunk, num, f);
		if (!rc)
			rc = write_chunk(s, mr, offset + at, chunk, num, flags, f);
		crc = crc32_update(crc, chunk, num);
		session_progress(s, src->done, src->length);
	}
	free(chunk);
	*ret_crc = crc;
	return rc;
}

/* ret_length: 0 when it cannot be told yet. */
static int write_dry(struct session *s, const struct step *step, struct ibmr_mr *mr,
		     uint64_t *ret_length, struct fail *f)
{
	uint64_t length;
	int rc;

	rc = source_length(&step->write.data, &length, f);
	if (rc)
		return rc;
	length = rest(mr, step->write.offset, length);
	*ret_length = length;
	if (step->write.unchecked || length == 0)
		return 0;
	return write_chunk(s, mr, step->write.offset, "", length, 0, f);
}

int step_write(struct session *s, const struct step *step, struct reply *reply)
{
	const struct step_write *w = &step->write;
	const struct at at = { .name = "mr" };
	struct fail *f = &reply->fail;
	struct source src = { .fd = -1 };
	struct object *object;
	struct writer out;
	uint32_t crc = 0;
	int rc;

	rc = session_need(s, step->mr, &at, &object, f);
	if (!rc)
		rc = implicit_check(s, object, w->offset, w->data.bytes, true, f);
	if (rc)
		return rc;
	if (session_is_dry(s)) {
		rc = write_dry(s, step, object->mr, &src.length, f);
	} else {
		rc = source_open(&src, &w->data, s->lent ? &s->lent->file : NULL,
				 rest(object->mr, w->offset, w->data.bytes), UINT32_MAX, &s->bound,
				 f);
		if (!rc)
			rc = write_all(s, step, object->mr, &src, &crc, f);
		source_close(&src);
	}
	if (rc)
		return rc;
	reply_begin(&out, s, reply);
	say_string(&out, "mr", step->mr);
	say_int(&out, "offset", w->offset);
	if (src.length)
		say_int(&out, "length", src.length);
	else
		say_null(&out, "length");
	say_crc(&out, crc);
	return reply_end(&out, reply);
}

/* ---- read ------------------------------------------------------------------------- */

/* Where bytes that were read go. */
struct sink {
	uint32_t crc;
	int fd; /* to_file, or -1 */
	const struct lent_file *lent;
	const struct bound *bound;
	char *path;
	uint8_t *kept; /* the first bytes, as many as are shown or compared */
	uint64_t keep;
	uint64_t done;
};

static int sink_open(const struct session *s, struct sink *sink, const struct step *step,
		     uint64_t length, struct fail *f)
{
	const char *hex = json_string_value(json_object_get(step->expect, "hex"));

	*sink = (struct sink){ .fd = -1, .bound = &s->bound };
	if (length <= HEX_MOST || (hex && strlen(hex) / 2 >= length))
		sink->keep = length;
	if (sink->keep) {
		sink->kept = calloc(1, sink->keep);
		if (!sink->kept)
			return fail_nomem(f);
	}
	if (!step->read.to_file)
		return 0;
	sink->lent = s->lent ? &s->lent->to_file : NULL;
	sink->path = s->lent ? strdup(sink->lent->name) : data_path(step->read.to_file);
	return sink->path ? 0 : fail_nomem(f);
}

/* The file is made when the first bytes are there: a refused read leaves what it was. */
static int sink_file(struct sink *sink, struct fail *f)
{
	if (!sink->lent) {
		sink->fd = patient_open(sink->path, O_WRONLY | O_CREAT | O_TRUNC, sink->bound, f);
		return sink->fd < 0 ? sink->fd : 0;
	}
	sink->fd = lent_open(sink->lent);
	if (sink->fd < 0)
		return patient_fail(f, "open", sink->path, errno);
	return ftruncate(sink->fd, 0) ? patient_fail(f, "ftruncate", sink->path, errno) : 0;
}

static int sink_put(struct sink *sink, const uint8_t *bytes, size_t num, struct fail *f)
{
	int rc;

	sink->crc = crc32_update(sink->crc, bytes, num);
	if (sink->done < sink->keep)
		memcpy(sink->kept + sink->done, bytes, num);
	sink->done += num;
	if (sink->path && sink->fd < 0) {
		rc = sink_file(sink, f);
		if (rc)
			return rc;
	}
	if (sink->fd < 0)
		return 0;
	return patient_write(sink->fd, bytes, num, sink->path, sink->bound, f);
}

/* Closing can be where a full disk is told. */
static int sink_close(struct sink *sink, int rc, struct fail *f)
{
	if (sink->fd >= 0 && close(sink->fd) && !rc)
		rc = patient_fail(f, "close", sink->path, errno);
	free(sink->path);
	sink->fd = -1;
	sink->path = NULL;
	return rc;
}

static int read_all(struct session *s, const struct step *step, struct ibmr_mr *mr, uint64_t length,
		    struct sink *sink, struct fail *f)
{
	unsigned flags = step->read.unchecked ? IBMR_IO_UNCHECKED : 0;
	uint64_t offset = step->read.offset;
	uint64_t most = chunk_length(s, mr, offset, length, flags);
	uint8_t *chunk;
	int rc = 0;

	if (session_is_dry(s) && step->read.unchecked)
		return 0;
	chunk = chunk_memory(most);
	if (!chunk)
		return fail_nomem(f);
	if (session_is_dry(s) || most > DATA_CHUNK) {
		rc = read_chunk(s, mr, offset, chunk, most, flags, f);
		length = 0;
	}
	while (!rc && sink->done < length) {
		uint64_t at = sink->done;
		size_t num = length - at < most ? length - at : most;

		rc = read_chunk(s, mr, offset + at, chunk, num, flags, f);
		if (!rc)
			rc = sink_put(sink, chunk, num, f);
		session_progress(s, sink->done, length);
	}
	free(chunk);
	return rc;
}

static void say_bytes(struct writer *w, const uint8_t *bytes, uint64_t num)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * HEX_MOST + 1];
	uint64_t i;

	if (!bytes || num > HEX_MOST) {
		say_null(w, "hex");
		return;
	}
	for (i = 0; i < num; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	text[2 * num] = '\0';
	say_string(w, "hex", text);
}

int step_read(struct session *s, const struct step *step, struct reply *reply)
{
	const struct at at = { .name = "mr" };
	struct fail *f = &reply->fail;
	struct object *object;
	struct sink sink;
	struct writer w;
	uint64_t length;
	int rc;

	rc = session_need(s, step->mr, &at, &object, f);
	if (!rc)
		rc = implicit_check(s, object, step->read.offset, step->read.length, false, f);
	if (rc)
		return rc;
	length = rest(object->mr, step->read.offset, step->read.length);
	rc = sink_open(s, &sink, step, session_is_dry(s) ? 0 : length, f);
	if (!rc)
		rc = read_all(s, step, object->mr, length, &sink, f);
	rc = sink_close(&sink, rc, f);
	if (rc) {
		free(sink.kept);
		return rc;
	}
	reply->bytes = sink.kept;
	reply->num_bytes = sink.keep;
	reply_begin(&w, s, reply);
	say_string(&w, "mr", step->mr);
	say_int(&w, "offset", step->read.offset);
	say_int(&w, "length", length);
	say_bytes(&w, sink.kept, length);
	say_crc(&w, sink.crc);
	say_string(&w, "file", step->read.to_file);
	return reply_end(&w, reply);
}

/* ---- copy ------------------------------------------------------------------------- */

/* A checksum of what lies in memory, taken by the CPU. */
struct summed {
	struct session *s;
	struct fail *f;
	uint8_t *chunk;
	uint32_t crc;
};

static int sum_segment(void *arg, struct object *leaf, uint64_t offset, uint64_t length)
{
	struct summed *sum = arg;
	struct ibmr_mr_info info;
	uint64_t at, num;
	int rc;

	ibmr_mr_query(leaf->mr, &info);
	for (at = 0; at < length; at += num) {
		num = length - at < DATA_CHUNK ? length - at : DATA_CHUNK;
		rc = session_tick(sum->s, sum->f);
		if (!rc)
			rc = memory_read(sum->chunk, (uint8_t *)info.addr + offset + at, num);
		if (rc)
			return rc;
		sum->crc = crc32_update(sum->crc, sum->chunk, num);
	}
	return 0;
}

/* ret_known: false where the memory cannot be read. */
static int sum_range(struct session *s, struct object *object, uint64_t offset, uint64_t length,
		     uint32_t *ret_crc, bool *ret_known, struct fail *f)
{
	struct summed sum = { .s = s, .f = f, .chunk = malloc(DATA_CHUNK) };
	int rc;

	if (!sum.chunk)
		return fail_nomem(f);
	rc = segments_walk_range(object, offset, length, sum_segment, &sum);
	free(sum.chunk);
	if (rc == -ENOMEM && f->code == FAIL_NONE)
		return fail_nomem(f);
	if (rc && f->code != FAIL_NONE)
		return rc;
	*ret_crc = sum.crc;
	*ret_known = !rc;
	return 0;
}

int step_copy(struct session *s, const struct step *step, struct reply *reply)
{
	const struct step_copy *c = &step->copy;
	const struct at at_to = { .name = "to" };
	const struct at at_from = { .name = "from" };
	struct fail *f = &reply->fail;
	struct object *to, *from;
	struct ibmr_err err;
	struct writer w;
	bool known = false;
	uint32_t crc = 0;
	uint64_t length;
	int rc;

	rc = session_need(s, c->to, &at_to, &to, f);
	if (!rc)
		rc = session_need(s, c->from, &at_from, &from, f);
	if (!rc)
		rc = implicit_check(s, from, c->from_offset, c->length, false, f);
	if (rc)
		return rc;
	length = rest(from->mr, c->from_offset, c->length);
	rc = implicit_check(s, to, c->to_offset, length, true, f);
	if (!rc)
		rc = session_tick(s, f);
	if (rc)
		return rc;
	rc = ibmr_mr_copy(to->mr, c->to_offset, from->mr, c->from_offset, length, 0, &err);
	if (rc)
		return session_fail(&err, rc, NULL, f);
	if (!session_is_dry(s))
		rc = sum_range(s, to, c->to_offset, length, &crc, &known, f);
	if (rc)
		return rc;
	reply_begin(&w, s, reply);
	say_string(&w, "to", c->to);
	say_int(&w, "to_offset", c->to_offset);
	say_string(&w, "from", c->from);
	say_int(&w, "from_offset", c->from_offset);
	say_int(&w, "length", length);
	if (known)
		say_crc(&w, crc);
	else
		say_null(&w, "crc32");
	return reply_end(&w, reply);
}

/* ---- atomics ------------------------------------------------------------------------ */

static int atomic(struct session *s, const struct step *step, struct reply *reply)
{
	const struct step_atomic *a = &step->atomic;
	const struct at at = { .name = "mr" };
	struct fail *f = &reply->fail;
	struct object *object;
	struct ibmr_err err;
	struct writer w;
	uint64_t old = 0;
	int rc;

	rc = session_need(s, step->mr, &at, &object, f);
	if (!rc)
		rc = implicit_check(s, object, a->offset, 8, true, f);
	if (!rc)
		rc = session_tick(s, f);
	if (rc)
		return rc;
	if (step->verb == STEP_FETCH_ADD)
		rc = ibmr_mr_fetch_add(object->mr, a->offset, a->add, &old, 0, &err);
	else
		rc = ibmr_mr_compare_swap(object->mr, a->offset, a->compare, a->swap, &old, 0,
					  &err);
	if (rc)
		return session_fail(&err, rc, NULL, f);
	reply_begin(&w, s, reply);
	say_string(&w, "mr", step->mr);
	say_int(&w, "offset", a->offset);
	say_hex(&w, "old", old, 1);
	return reply_end(&w, reply);
}

int step_fetch_add(struct session *s, const struct step *step, struct reply *reply)
{
	return atomic(s, step, reply);
}

int step_compare_swap(struct session *s, const struct step *step, struct reply *reply)
{
	return atomic(s, step, reply);
}
