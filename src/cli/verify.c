/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verify: proof of every byte of an MR, in both directions, a window at a time.
 *
 * Each byte is changed to a value it did not have, so that a byte which stayed is noticed; what is
 * around every segment must stay. The buffers are looked at by the CPU, never by the device, and put
 * back by the CPU too, which works after any failure.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "data.h"
#include "result.h"
#include "segments.h"
#include "session.h"

#define WINDOW_BYTES  (1u << 20)
#define WINDOW_PIECES 4096
#define GUARD	      64 /* bytes watched on each side of a segment */

/* A part of a window: contiguous bytes of one buffer. */
struct piece {
	struct object *leaf;
	uint64_t offset; /* in the leaf */
	uint64_t length;
	uint64_t at; /* in the window */
	/* the same bytes have the same place, whatever address they are seen at */
	dev_t dev;
	ino_t ino;
	uint64_t place;
	bool begins, ends; /* a segment, and does not only go on from or into another window */
	uint8_t before, after;
	uint8_t guards[2 * GUARD];
};

struct verify {
	struct session *s;
	struct ibmr_mr *mr;
	const char *name;
	bool can_write, can_read;
	bool read_only; /* some buffer cannot be changed */
	uint64_t start; /* of the window, in the MR */
	uint64_t total;
	uint64_t bytes; /* in the window */
	size_t num;
	uint64_t proved, segments, neighbours, refusals;
	bool restored;
	uint8_t first; /* byte of the MR */
	struct fail *f;
	struct piece *pieces;
	uint8_t *orig, *want, *got;
};

/* ---- patterns ---------------------------------------------------------------------- */

/* What byte k is changed by: never 0, and irregular, so that bytes in wrong places show. */
static uint8_t mask(uint64_t k, unsigned direction)
{
	uint64_t h =
		(k + 1) * UINT64_C(0x9e3779b97f4a7c15) + direction * UINT64_C(0xd1b54a32d192ed03);

	h ^= h >> 29;
	h *= UINT64_C(0xbf58476d1ce4e5b9);
	return (uint8_t)(1 + (h >> 32) % 255);
}

static void make_want(struct verify *v, unsigned direction)
{
	uint64_t i;

	for (i = 0; i < v->bytes; i++)
		v->want[i] = v->orig[i] ^ mask(v->start + i, direction);
}

static uint8_t *piece_addr(const struct piece *p)
{
	struct ibmr_mr_info info;

	ibmr_mr_query(p->leaf->mr, &info);
	return (uint8_t *)info.addr + p->offset;
}

/* ---- failures ---------------------------------------------------------------------- */

static int mismatch(struct verify *v, const char *cause)
{
	v->f->cause = cause;
	v->f->err = EBADMSG;
	return -EBADMSG;
}

static int untouchable(struct verify *v, const struct piece *p, const char *what)
{
	return fail_sys(v->f, FAIL_BAD_ADDRESS, "process_vm_readv", EFAULT,
			"bytes [%" PRIu64 ", %" PRIu64 ") of '%s' cannot be %s", p->offset,
			p->offset + p->length, p->leaf->name, what);
}

static int compare_piece(struct verify *v, const struct piece *p, const char *cause)
{
	uint64_t i;

	if (!memcmp(v->got + p->at, v->want + p->at, p->length))
		return 0;
	for (i = 0; v->got[p->at + i] == v->want[p->at + i]; i++)
		;
	fail_set(v->f, FAIL_MISMATCH,
		 "%s: byte %" PRIu64 " of '%s' is byte %" PRIu64
		 " of '%s': expected %02x, found %02x",
		 cause, v->start + p->at + i, v->name, p->offset + i, p->leaf->name,
		 v->want[p->at + i], v->got[p->at + i]);
	return mismatch(v, cause);
}

/* ---- buffers ------------------------------------------------------------------------- */

static int load(struct verify *v, uint8_t *into)
{
	size_t i;

	for (i = 0; i < v->num; i++) {
		struct piece *p = &v->pieces[i];

		if (memory_read(into + p->at, piece_addr(p), p->length))
			return untouchable(v, p, "read");
	}
	return 0;
}

static int store(struct verify *v, const uint8_t *from)
{
	size_t i;

	for (i = 0; i < v->num; i++) {
		struct piece *p = &v->pieces[i];

		if (memory_write(piece_addr(p), from + p->at, p->length))
			return untouchable(v, p, "written");
	}
	return 0;
}

static int compare_all(struct verify *v, const char *cause)
{
	size_t i;
	int rc = 0;

	for (i = 0; i < v->num && !rc; i++)
		rc = compare_piece(v, &v->pieces[i], cause);
	return rc;
}

/* ---- neighbours ------------------------------------------------------------------------ */

static int by_place(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static bool same_space(const struct piece *a, const struct piece *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

static bool overlapping(const struct verify *v)
{
	size_t i;

	for (i = 1; i < v->num; i++) {
		const struct piece *a = &v->pieces[i - 1], *b = &v->pieces[i];

		if (same_space(a, b) && b->place - a->place < a->length)
			return true;
	}
	return false;
}

static uint8_t at_most(uint64_t a, uint64_t b)
{
	uint64_t least = a < b ? a : b;

	return (uint8_t)(least < GUARD ? least : GUARD);
}

/* How much around each piece, sorted by place, is neither in another nor outside of its buffer. */
static void measure_guards(struct verify *v)
{
	uint64_t gap, used = 0;
	size_t i;

	for (i = 0; i < v->num; i++) {
		struct piece *p = &v->pieces[i];
		const struct piece *prev = i > 0 ? p - 1 : NULL;
		const struct piece *next = i + 1 < v->num ? p + 1 : NULL;
		struct ibmr_mr_info info;

		ibmr_mr_query(p->leaf->mr, &info);
		gap = UINT64_MAX;
		if (prev && same_space(prev, p))
			gap = p->place - (prev->place + prev->length) - used;
		p->before = p->begins ? at_most(gap, p->offset) : 0;
		gap = UINT64_MAX;
		if (next && same_space(p, next))
			gap = next->place - (p->place + p->length);
		p->after = p->ends ? at_most(gap, info.length - (p->offset + p->length)) : 0;
		used = p->after;
	}
}

static int read_guards(struct verify *v, const struct piece *p, uint8_t guards[2 * GUARD])
{
	uint8_t *addr = piece_addr(p);

	if (memory_read(guards, addr - p->before, p->before) ||
	    memory_read(guards + GUARD, addr + p->length, p->after))
		return untouchable(v, p, "read around");
	return 0;
}

static int save_guards(struct verify *v)
{
	size_t i;
	int rc = 0;

	measure_guards(v);
	for (i = 0; i < v->num && !rc; i++) {
		rc = read_guards(v, &v->pieces[i], v->pieces[i].guards);
		v->neighbours += (uint64_t)v->pieces[i].before + v->pieces[i].after;
	}
	return rc;
}

static int compare_guard(struct verify *v, const struct piece *p, const uint8_t *now, size_t num,
			 const uint8_t *then, uint64_t offset)
{
	size_t i;

	for (i = 0; i < num; i++) {
		if (now[i] == then[i])
			continue;
		fail_set(v->f, FAIL_MISMATCH,
			 "neighbour: byte %" PRIu64 " of '%s' is in no segment here and changed "
			 "from %02x to %02x",
			 offset + i, p->leaf->name, then[i], now[i]);
		return mismatch(v, "neighbour");
	}
	return 0;
}

static int compare_guards(struct verify *v)
{
	uint8_t now[2 * GUARD];
	size_t i;
	int rc = 0;

	for (i = 0; i < v->num && !rc; i++) {
		const struct piece *p = &v->pieces[i];

		rc = read_guards(v, p, now);
		if (!rc)
			rc = compare_guard(v, p, now, p->before, p->guards, p->offset - p->before);
		if (!rc)
			rc = compare_guard(v, p, now + GUARD, p->after, p->guards + GUARD,
					   p->offset + p->length);
	}
	return rc;
}

static bool put_guards_back(struct verify *v)
{
	bool done = true;
	size_t i;

	for (i = 0; i < v->num; i++) {
		const struct piece *p = &v->pieces[i];
		uint8_t now[2 * GUARD];
		uint8_t *addr = piece_addr(p);

		if (read_guards(v, p, now))
			done = false;
		else if (memcmp(now, p->guards, p->before) &&
			 memory_write(addr - p->before, p->guards, p->before))
			done = false;
		else if (memcmp(now + GUARD, p->guards + GUARD, p->after) &&
			 memory_write(addr + p->length, p->guards + GUARD, p->after))
			done = false;
	}
	return done;
}

/* ---- a window ---------------------------------------------------------------------------- */

static int write_through(struct verify *v)
{
	struct ibmr_err err;
	int rc;

	make_want(v, 1);
	rc = session_tick(v->s, v->f);
	if (rc)
		return rc;
	rc = ibmr_mr_write(v->mr, v->start, v->want, v->bytes, 0, &err);
	if (rc)
		return session_fail(&err, rc, NULL, v->f);
	rc = load(v, v->got);
	if (!rc)
		rc = compare_all(v, "write");
	return rc ? rc : compare_guards(v);
}

static int read_through(struct verify *v)
{
	struct ibmr_err err;
	int rc;

	make_want(v, 2);
	if (store(v, v->want)) {
		/* a buffer of read-only memory: what it has is read as it is */
		v->read_only = true;
		rc = load(v, v->want);
		if (rc)
			return rc;
	}
	rc = session_tick(v->s, v->f);
	if (rc)
		return rc;
	memset(v->got, 0, v->bytes);
	rc = ibmr_mr_read(v->mr, v->start, v->got, v->bytes, 0, &err);
	if (rc)
		return session_fail(&err, rc, NULL, v->f);
	rc = compare_all(v, "read");
	return rc ? rc : compare_guards(v);
}

/* Put back what is not as it was, and look. A failure before stays the one that is told. */
static int restore(struct verify *v, int rc)
{
	struct fail first = *v->f;
	bool done;

	done = !load(v, v->got);
	if (done && memcmp(v->got, v->orig, v->bytes))
		done = !store(v, v->orig) && !load(v, v->got) && !memcmp(v->got, v->orig, v->bytes);
	done = put_guards_back(v) && done;
	*v->f = first;
	if (done)
		return rc;
	v->restored = false;
	if (rc) {
		fail_hint(v->f, "not every byte could be put back");
		return rc;
	}
	fail_set(v->f, FAIL_MISMATCH,
		 "restore: bytes [%" PRIu64 ", %" PRIu64 ") of '%s' could not "
		 "be put back",
		 v->start, v->start + v->bytes, v->name);
	return mismatch(v, "restore");
}

static int run_window(struct verify *v)
{
	int rc;

	rc = load(v, v->orig);
	if (!rc)
		rc = save_guards(v);
	if (rc)
		return rc;
	if (v->start == 0)
		v->first = v->orig[0];
	if (v->can_write)
		rc = write_through(v);
	if (!rc && v->can_read)
		rc = read_through(v);
	return restore(v, rc);
}

/* Segments that share bytes cannot be told apart by what is in them: each goes alone. */
static int run_alone(struct verify *v)
{
	struct verify one = *v;
	size_t i;
	int rc = 0;

	for (i = 0; i < v->num && !rc; i++) {
		struct piece *p = &v->pieces[i];

		one.pieces = p;
		one.num = 1;
		one.start = v->start + p->at;
		one.bytes = p->length;
		p->at = 0;
		rc = run_window(&one);
	}
	v->first = one.first;
	v->neighbours = one.neighbours;
	v->read_only = one.read_only;
	v->restored = one.restored;
	return rc;
}

static int flush_window(struct verify *v)
{
	int rc;

	if (!v->num)
		return 0;
	qsort(v->pieces, v->num, sizeof(*v->pieces), by_place);
	rc = overlapping(v) ? run_alone(v) : run_window(v);
	if (!rc)
		v->proved += v->bytes;
	v->start += v->bytes;
	v->bytes = 0;
	v->num = 0;
	session_progress(v->s, v->start, v->total);
	return rc;
}

static void add_piece(struct verify *v, struct object *leaf, uint64_t offset, uint64_t length)
{
	struct piece *p = &v->pieces[v->num++];

	*p = (struct piece){ .leaf = leaf, .offset = offset, .length = length, .at = v->bytes };
	if (leaf->shared_file) {
		p->dev = leaf->dev;
		p->ino = leaf->ino;
		p->place = leaf->file_offset + offset;
	} else {
		p->place = (uintptr_t)piece_addr(p);
	}
	v->bytes += length;
}

static int take_segment(void *arg, struct object *leaf, uint64_t offset, uint64_t length)
{
	struct verify *v = arg;
	bool begins = true;
	int rc;

	v->segments++;
	while (length > 0) {
		uint64_t part = WINDOW_BYTES - v->bytes;

		part = part < length ? part : length;
		add_piece(v, leaf, offset, part);
		v->pieces[v->num - 1].begins = begins;
		v->pieces[v->num - 1].ends = part == length;
		begins = false;
		offset += part;
		length -= part;
		if (v->bytes == WINDOW_BYTES || v->num == WINDOW_PIECES) {
			rc = flush_window(v);
			if (rc)
				return rc;
		}
	}
	return 0;
}

/* ---- what must be refused -------------------------------------------------------------------- */

/* One byte at offset, asked of the device itself. A write carries what the first byte has, in case
 * that it lands there. */
static int must_refuse(struct verify *v, uint64_t offset, bool write, const char *what)
{
	struct ibmr_err err;
	uint8_t byte = v->first;
	int rc;

	rc = session_tick(v->s, v->f);
	if (rc)
		return rc;
	if (write)
		rc = ibmr_mr_write(v->mr, offset, &byte, 1, IBMR_IO_UNCHECKED, &err);
	else
		rc = ibmr_mr_read(v->mr, offset, &byte, 1, IBMR_IO_UNCHECKED, &err);
	if (rc && err.code != IBMR_E_COMPLETION)
		return session_fail(&err, rc, NULL, v->f);
	if (rc) {
		v->refusals++;
		return 0;
	}
	fail_set(v->f, FAIL_MISMATCH, "refusal: the device did not refuse to %s %s of '%s'",
		 write ? "write" : "read", what, v->name);
	return mismatch(v, "not_refused");
}

static int check_refusals(struct verify *v, uint64_t length)
{
	int rc = 0;

	if (v->can_read || v->can_write) {
		rc = must_refuse(v, length, !v->can_read, "the byte past the end");
		if (!rc)
			rc = must_refuse(v, UINT64_MAX, !v->can_read, "the byte before the start");
	}
	if (!rc && !v->can_write)
		rc = must_refuse(v, 0, true, "without remote_write the first byte");
	if (!rc && !v->can_read)
		rc = must_refuse(v, 0, false, "without remote_read the first byte");
	return rc;
}

/* ---- the step ------------------------------------------------------------------------------- */

static int verify_result(const struct verify *v, struct reply *reply)
{
	struct writer w;

	reply_begin(&w, v->s, reply);
	say_string(&w, "mr", v->name);
	say_int(&w, "bytes", v->proved);
	say_int(&w, "segments", v->segments);
	say_int(&w, "neighbours", v->neighbours);
	say_int(&w, "refusals", v->refusals);
	say_bool(&w, "restored", v->restored);
	writer_key(&w, "not_checked");
	writer_begin(&w, '[');
	if (!v->can_write)
		writer_string(&w, "write");
	if (!v->can_read)
		writer_string(&w, "read");
	if (!v->can_write && !v->can_read)
		writer_string(&w, "ends");
	if (v->read_only)
		writer_string(&w, "change");
	writer_end(&w, ']');
	return reply_end(&w, reply);
}

/* An MR that has no bytes is refused by the library, in the words of every other access. */
static int refuse_state(struct object *object, struct fail *f)
{
	struct ibmr_err err;
	uint8_t byte;
	int rc;

	rc = ibmr_mr_read(object->mr, 0, &byte, 1, 0, &err);
	if (rc)
		return session_fail(&err, rc, NULL, f);
	fail_set(f, FAIL_STATE, "'%s' has no layout that is known", object->name);
	f->err = EINVAL;
	return -EINVAL;
}

static int verify_all(struct verify *v, struct object *object)
{
	struct ibmr_mr_info info;
	int rc;

	ibmr_mr_query(object->mr, &info);
	rc = segments_walk(object, take_segment, v);
	if (!rc)
		rc = flush_window(v);
	if (rc == -ENOMEM && v->f->code == FAIL_NONE)
		return fail_nomem(v->f);
	/* a member, at any depth, lost its layout */
	if (rc == -ESTALE && v->f->code == FAIL_NONE)
		return refuse_state(object, v->f);
	if (!rc && v->start != info.length) {
		fail_set(v->f, FAIL_MISMATCH,
			 "length: '%s' is %" PRIu64 " byte%s long, its entries add up to %" PRIu64,
			 v->name, info.length, fail_plural(info.length), v->start);
		return mismatch(v, "length");
	}
	if (!v->can_write && !v->can_read)
		v->proved = v->neighbours = 0;
	return rc ? rc : check_refusals(v, info.length);
}

/* The whole address space is the MR, or lies under it. */
static bool has_implicit(const struct object *object)
{
	struct ibmr_mr_info info;
	size_t i;

	ibmr_mr_query(object->mr, &info);
	for (i = 0; i < object->fill.num && !info.implicit; i++)
		info.implicit = has_implicit(object->fill.spans[i].of);
	return info.implicit;
}

static int refuse_implicit(const struct object *object, struct fail *f)
{
	fail_set(f, FAIL_UNSUPPORTED,
		 "'%s' reaches into the whole address space, which verify leaves alone",
		 object->name);
	f->cause = "implicit";
	f->err = EOPNOTSUPP;
	return -EOPNOTSUPP;
}

int step_verify(struct session *s, const struct step *step, struct reply *reply)
{
	const struct at at = { .name = "mr" };
	struct verify v = { .s = s, .name = step->mr, .restored = true, .f = &reply->fail };
	struct object *object;
	struct ibmr_mr_info info;
	int rc;

	rc = session_need(s, step->mr, &at, &object, v.f);
	if (rc)
		return rc;
	ibmr_mr_query(object->mr, &info);
	if (info.state != IBMR_STATE_REGISTERED &&
	    (info.state != IBMR_STATE_FILLED || !object->fill.num))
		return refuse_state(object, v.f);
	if (has_implicit(object))
		return refuse_implicit(object, v.f);
	v.mr = object->mr;
	v.total = info.length;
	v.can_write = info.access & IBMR_ACCESS_REMOTE_WRITE;
	v.can_read = info.access & IBMR_ACCESS_REMOTE_READ;
	if (session_is_dry(s))
		return verify_result(&v, reply);
	v.pieces = calloc(WINDOW_PIECES, sizeof(*v.pieces));
	v.orig = malloc(3 * (size_t)WINDOW_BYTES);
	if (!v.pieces || !v.orig) {
		rc = fail_nomem(v.f);
	} else {
		v.want = v.orig + WINDOW_BYTES;
		v.got = v.want + WINDOW_BYTES;
		rc = verify_all(&v, object);
	}
	free(v.pieces);
	free(v.orig);
	return rc ? rc : verify_result(&v, reply);
}
