/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps that make, fill, prefetch and release MRs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "data.h"
#include "result.h"
#include "session.h"

static const struct at at_mr = { .name = "mr" };

/* ---- reg ---------------------------------------------------------------------- */

static int refuse_init(struct fail *f, uint64_t have, uint64_t room)
{
	const struct at at = { .name = "init" };

	fail_set(f, FAIL_RANGE, "init has %llu byte%s, the MR %llu", (unsigned long long)have,
		 fail_plural(have), (unsigned long long)room);
	f->err = EFAULT;
	fail_at(f, &at);
	return -EFAULT;
}

static int copy_init(struct session *s, uint8_t *to, struct source *src, struct fail *f)
{
	uint8_t *chunk = malloc(DATA_CHUNK);
	int rc = chunk ? 0 : fail_nomem(f);

	while (!rc && src->done < src->length) {
		uint64_t at = src->done;
		size_t num = src->length - at < DATA_CHUNK ? src->length - at : DATA_CHUNK;

		rc = session_tick(s, f);
		if (!rc)
			rc = source_read(src, chunk, num, f);
		if (!rc && memory_write(to + at, chunk, num)) {
			rc = fail_sys(f, FAIL_BAD_ADDRESS, "process_vm_writev", EFAULT,
				      "the memory of the MR cannot be written at offset %llu",
				      (unsigned long long)at);
			fail_hint(f, "a file's disk may be full, or the file shorter by now");
		}
		session_progress(s, src->done, src->length);
	}
	free(chunk);
	return rc;
}

static int init_memory(struct session *s, const struct step_data *init, const struct ibmr_mr *mr,
		       struct fail *f)
{
	struct ibmr_mr_info info;
	struct source src;
	uint64_t length;
	int rc;

	ibmr_mr_query(mr, &info);
	if (init->kind == DATA_NONE)
		return 0;
	if (session_is_dry(s)) {
		rc = source_length(init, &length, f);
		if (rc)
			return rc;
		return length > info.length ? refuse_init(f, length, info.length) : 0;
	}
	rc = source_open(&src, init, s->lent ? &s->lent->init : NULL, info.length, info.length,
			 &s->bound, f);
	if (rc)
		return rc;
	if (src.length > info.length)
		rc = refuse_init(f, src.length, info.length);
	else
		rc = copy_init(s, info.addr, &src, f);
	source_close(&src);
	return rc;
}

/* The rights of others are those of what is made here, and of nothing else. */
static int check_share(const struct step_reg *reg, struct fail *f)
{
	const struct at at = { .name = "access" };
	const char *what = reg->attach	    ? "what is attached to has its maker's"
			   : reg->file	    ? "a file has its own"
			   : reg->hugepages ? "huge pages have no name"
			   : reg->all	    ? "an address space is nobody else's"
					    : NULL;

	if (!reg->share || !what)
		return 0;
	fail_set(f, FAIL_ACCESS, "shared_* rights are for memory that reg makes: %s", what);
	f->cause = "flag_not_carried";
	f->err = EACCES;
	fail_at(f, &at);
	return -EACCES;
}

static unsigned share_mode(unsigned share)
{
	static const unsigned modes[] = { 0400, 0200, 0040, 0020, 0004, 0002 };
	unsigned mode = 0, i;

	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		mode |= share >> i & 1 ? modes[i] : 0;
	return mode;
}

static void reg_spec(const struct session *s, const struct step *step, const char *path,
		     struct ibmr_mr_spec *spec)
{
	const struct step_reg *reg = &step->reg;

	*spec = (struct ibmr_mr_spec){
		.name = step->mr,
		.mem = reg->all		? IBMR_MEM_ALL
		       : reg->file	? IBMR_MEM_FILE
		       : reg->attach	? IBMR_MEM_ATTACH
		       : reg->share	? IBMR_MEM_SHARED
		       : reg->hugepages ? IBMR_MEM_HUGE
					: IBMR_MEM_ANON,
		.length = reg->length,
		.access = reg->access,
		.huge_page_size = reg->hugepages,
		.path = path,
		.file_offset = reg->file_offset,
		.share_mode = share_mode(reg->share),
		.attach = reg->attach,
		.file_flags = (reg->map_shared ? IBMR_FILE_SHARED : 0u) |
			      (reg->create ? IBMR_FILE_CREATE : 0u),
	};
	if (reg->file && s->lent) {
		spec->file_flags |= IBMR_FILE_OPEN;
		spec->fd = s->lent->file.fd >= 0 ? s->lent->file.fd : -s->lent->file.number;
	}
}

static int name_mr(struct session *s, const char *name, struct ibmr_mr *mr,
		   struct object **ret_object, struct reply *reply)
{
	int rc = reply_mr(s, mr, reply);

	if (!rc)
		rc = session_add(s, name, mr, ret_object, &reply->fail);
	if (rc)
		ibmr_mr_dereg(mr, NULL);
	return rc;
}

/* Two MRs over one shared file are the same bytes at two addresses. */
static void note_file(const struct session *s, struct object *object, const struct step_reg *reg,
		      const char *path)
{
	struct ibmr_mr_info info;
	char shared[128];
	struct stat st;

	ibmr_mr_query(object->mr, &info);
	if (info.attach) {
		snprintf(shared, sizeof(shared), "/dev/shm/ibmr-%s", info.attach);
		if (stat(shared, &st))
			return;
	} else if (!path || !reg->map_shared ||
		   (s->lent ? fstat(s->lent->file.fd, &st) : stat(path, &st))) {
		return;
	}
	object->shared_file = true;
	object->dev = st.st_dev;
	object->ino = st.st_ino;
	object->file_offset = reg->file_offset;
}

static int reg_named(struct session *s, const struct step *step, const char *path,
		     struct reply *reply)
{
	struct fail *f = &reply->fail;
	struct ibmr_mr_spec spec;
	struct object *object = NULL;
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;
	int rc;

	reg_spec(s, step, path, &spec);
	rc = ibmr_mr_reg(s->ctx, &spec, &mr, &err);
	if (rc)
		return session_fail(&err, rc, NULL, f);
	rc = session_room(s, 0, f);
	if (!rc)
		rc = init_memory(s, &step->reg.init, mr, f);
	if (rc) {
		ibmr_mr_dereg(mr, NULL);
		return rc;
	}
	rc = name_mr(s, step->mr, mr, &object, reply);
	if (object)
		note_file(s, object, &step->reg, path);
	return rc;
}

/* What is known before: the rest of a file is looked at when it is there. */
static uint64_t locked_by(const struct step_reg *reg)
{
	return reg->access & IBMR_ACCESS_ON_DEMAND || reg->length == IBMR_TO_END ? 0 : reg->length;
}

int step_reg(struct session *s, const struct step *step, struct reply *reply)
{
	struct fail *f = &reply->fail;
	char *path = NULL;
	int rc;

	rc = session_free_name(s, step->mr, f);
	if (rc)
		return rc;
	rc = check_share(&step->reg, f);
	if (rc)
		return rc;
	rc = session_room(s, locked_by(&step->reg), f);
	if (rc)
		return rc;
	if (step->reg.file) {
		path = s->lent ? strdup(s->lent->file.name) : data_path(step->reg.file);
		if (!path)
			return fail_nomem(f);
	}
	rc = reg_named(s, step, path, reply);
	free(path);
	return rc;
}

/* ---- create, fill, invalidate, dereg ------------------------------------------- */

int step_create(struct session *s, const struct step *step, struct reply *reply)
{
	struct fail *f = &reply->fail;
	struct object *object = NULL;
	struct ibmr_mr *mr = NULL;
	struct ibmr_err err;
	int rc;

	rc = session_free_name(s, step->mr, f);
	if (rc)
		return rc;
	rc = session_room(s, 0, f);
	if (rc)
		return rc;
	if (step->create.split)
		rc = ibmr_mr_create_split(s->ctx, step->mr, step->create.max_klms, &mr, &err);
	else
		rc = ibmr_mr_create(s->ctx, step->mr, step->create.max_klms, &mr, &err);
	return rc ? session_fail(&err, rc, NULL, f) : name_mr(s, step->mr, mr, &object, reply);
}

static const char *fill_list(const struct step *step)
{
	return step->fill.repeat ? "blocks" : "klms";
}

/* The record of the fill, with every member found. */
static int resolve(const struct session *s, const struct step *step, struct fill_record *ret_fill,
		   struct fail *f)
{
	const struct step_fill *fill = &step->fill;
	const struct at at_list = { .name = fill_list(step) };
	struct at at_entry = { .up = &at_list };
	const struct at at_name = { .up = &at_entry, .name = "mr" };
	struct span *spans = calloc(fill->num ? fill->num : 1, sizeof(*spans));
	size_t i;
	int rc;

	if (!spans)
		return fail_nomem(f);
	for (i = 0; i < fill->num; i++) {
		const struct step_entry *entry = &fill->entries[i];
		struct ibmr_mr_info info;

		at_entry.index = i;
		rc = session_need(s, entry->mr, &at_name, &spans[i].of, f);
		if (rc) {
			free(spans);
			return rc;
		}
		ibmr_mr_query(spans[i].of->mr, &info);
		if (info.implicit)
			rc = entry->length == IBMR_TO_END
				     ? session_endless(spans[i].of, f)
				     : session_need_memory(s, spans[i].of, entry->offset,
							   entry->length, f);
		if (rc) {
			fail_at(f, &at_entry);
			free(spans);
			return rc;
		}
		spans[i].offset = entry->offset;
		spans[i].length = entry->length;
		/* an empty rest keeps a byte, so that the library says where the end is */
		if (entry->length == IBMR_TO_END)
			spans[i].length =
				info.length > entry->offset ? info.length - entry->offset : 1;
		spans[i].stride = entry->stride;
	}
	*ret_fill = (struct fill_record){ .repeat = fill->repeat,
					  .count = fill->repeat ? fill->count : 1,
					  .spans = spans,
					  .num = fill->num };
	return 0;
}

static int call_fill(struct ibmr_mr *mr, const struct step_fill *fill,
		     const struct fill_record *record, struct ibmr_err *err)
{
	struct ibmr_layout layout = { .access = fill->access,
				      .base = fill->base,
				      .split = fill->split };
	struct ibmr_block *blocks;
	struct ibmr_klm *klms;
	void *entries;
	size_t i;
	int rc;

	err->code = IBMR_OK;
	/* blocks are the larger of the two */
	entries = calloc(record->num ? record->num : 1, sizeof(*blocks));
	if (!entries)
		return -ENOMEM;
	blocks = entries;
	klms = entries;
	for (i = 0; i < record->num; i++) {
		const struct span *sp = &record->spans[i];

		if (fill->repeat)
			blocks[i] = (struct ibmr_block){ sp->of->mr, sp->offset, sp->length,
							 sp->stride };
		else
			klms[i] = (struct ibmr_klm){ sp->of->mr, sp->offset, sp->length };
	}
	layout.kind = fill->repeat ? IBMR_LAYOUT_REPEAT : IBMR_LAYOUT_LIST;
	layout.num = record->num;
	layout.count = record->count;
	if (fill->repeat)
		layout.blocks = blocks;
	else
		layout.klms = klms;
	rc = ibmr_mr_fill(mr, &layout, err);
	free(entries);
	return rc;
}

int step_fill(struct session *s, const struct step *step, struct reply *reply)
{
	const struct at at_access = { .name = "access" };
	struct fail *f = &reply->fail;
	struct fill_record record = { 0 };
	struct ibmr_mr_info info;
	struct object *object = NULL;
	struct ibmr_err err;
	int rc;

	rc = session_need(s, step->mr, &at_mr, &object, f);
	if (rc)
		return rc;
	if (step->fill.share) {
		fail_set(f, FAIL_ACCESS, "shared_*: a fill cannot carry it");
		fail_hint(f,
			  "a fill carries local_write, remote_write, remote_read, remote_atomic");
		f->err = EACCES;
		fail_at(f, &at_access);
		return -EACCES;
	}
	rc = resolve(s, step, &record, f);
	if (rc)
		return rc;
	rc = call_fill(object->mr, &step->fill, &record, &err);
	ibmr_mr_query(object->mr, &info);
	if (!rc || info.state != IBMR_STATE_FILLED)
		fill_record_clear(&object->fill);
	if (!rc) {
		object->fill = record;
		return reply_mr(s, object->mr, reply);
	}
	fill_record_clear(&record);
	if (err.code == IBMR_OK)
		return fail_nomem(f);
	return session_fail(&err, rc, fill_list(step), f);
}

int step_invalidate(struct session *s, const struct step *step, struct reply *reply)
{
	struct fail *f = &reply->fail;
	struct object *object = NULL;
	struct ibmr_mr_info info;
	struct ibmr_err err;
	int rc;

	rc = session_need(s, step->mr, &at_mr, &object, f);
	if (rc)
		return rc;
	rc = ibmr_mr_invalidate(object->mr, &err);
	ibmr_mr_query(object->mr, &info);
	if (info.state != IBMR_STATE_FILLED)
		fill_record_clear(&object->fill);
	if (rc)
		return session_fail(&err, rc, NULL, f);
	return reply_mr(s, object->mr, reply);
}

int step_dereg(struct session *s, const struct step *step, struct reply *reply)
{
	struct fail *f = &reply->fail;
	struct object *object = NULL;
	struct ibmr_err err;
	struct writer w;
	int rc;

	rc = session_need(s, step->mr, &at_mr, &object, f);
	if (rc)
		return rc;
	/* written before the MR is gone, so that what happened can be told */
	reply_begin(&w, s, reply);
	say_string(&w, "mr", object->name);
	rc = reply_end(&w, reply);
	if (rc)
		return rc;
	rc = ibmr_mr_dereg(object->mr, &err);
	if (rc)
		return session_fail(&err, rc, NULL, f);
	session_remove(s, object);
	return 0;
}

/* ---- prefetch ---------------------------------------------------------------------- */

static int find_ranges(const struct session *s, const struct step *step, struct ibmr_range *ranges,
		       struct fail *f)
{
	const struct at at_list = { .name = "ranges" };
	struct at at_entry = { .up = &at_list };
	const struct at at_name = { .up = step->prefetch.listed ? &at_entry : NULL, .name = "mr" };
	struct object *object = NULL;
	size_t i;
	int rc;

	for (i = 0; i < step->prefetch.num; i++) {
		const struct step_entry *entry = &step->prefetch.ranges[i];

		at_entry.index = i;
		rc = session_need(s, entry->mr, &at_name, &object, f);
		if (rc)
			return rc;
		ranges[i] = (struct ibmr_range){ object->mr, entry->offset, entry->length };
	}
	return 0;
}

static void say_ranges(struct writer *w, const struct step *step, const struct ibmr_pages *pages)
{
	size_t i;

	writer_key(w, "ranges");
	writer_begin(w, '[');
	for (i = 0; i < step->prefetch.num; i++) {
		const struct ibmr_pages *p = &pages[i];

		writer_begin(w, '{');
		say_string(w, "mr", step->prefetch.ranges[i].mr);
		say_int(w, "offset", p->offset);
		say_int(w, "length", p->length);
		say_int(w, "pages", p->pages);
		say_count(w, "cpu_resident_before", p->cpu_resident_before);
		say_count(w, "cpu_resident_after", p->cpu_resident_after);
		writer_end(w, '}');
	}
	writer_end(w, ']');
}

static int prefetch_result(const struct session *s, const struct step *step,
			   const struct ibmr_pages *pages, const struct ibmr_prefetch_info *info,
			   struct reply *reply)
{
	static const char *const words[] = { "read", "write", "no_fault" };
	const struct ibmr_pages *total = &info->total;
	struct writer w;

	reply_begin(&w, s, reply);
	say_string(&w, "advice", words[step->prefetch.advice]);
	say_bool(&w, "flush", step->prefetch.flush);
	say_int(&w, "bytes", info->bytes);
	say_int(&w, "page_size", info->page_size);
	say_string(&w, "source", info->source);
	say_int(&w, "pages", total->pages);
	say_count(&w, "cpu_resident_before", total->cpu_resident_before);
	say_count(&w, "cpu_resident_after", total->cpu_resident_after);
	say_count(&w, "device_mapped_before", total->device_mapped_before);
	say_count(&w, "device_mapped_after", total->device_mapped_after);
	say_ranges(&w, step, pages);
	return reply_end(&w, reply);
}

/* The first range with a page that is not there; one whose pages nothing could count is not shown to
 * be there. */
static int check_resident(const struct step *step, const struct ibmr_pages *pages, struct fail *f)
{
	const struct at at = { .name = "expect_resident" };
	size_t i;

	for (i = 0; i < step->prefetch.num; i++) {
		const struct ibmr_pages *p = &pages[i];

		if (p->cpu_resident_after == (int64_t)p->pages)
			continue;
		if (p->cpu_resident_after < 0)
			fail_set(f, FAIL_MISMATCH,
				 "nothing trustworthy counts the resident pages of '%s'",
				 step->prefetch.ranges[i].mr);
		else
			fail_set(f, FAIL_MISMATCH,
				 "%lld of the %llu pages of '%s' are resident after the prefetch",
				 (long long)p->cpu_resident_after, (unsigned long long)p->pages,
				 step->prefetch.ranges[i].mr);
		f->cause = p->cpu_resident_after < 0 ? "not_counted" : "not_resident";
		f->err = EBADMSG;
		fail_at(f, &at);
		return -EBADMSG;
	}
	return 0;
}

int step_prefetch(struct session *s, const struct step *step, struct reply *reply)
{
	static const enum ibmr_advice advices[] = { IBMR_ADVICE_READ, IBMR_ADVICE_WRITE,
						    IBMR_ADVICE_NO_FAULT };
	struct fail *f = &reply->fail;
	struct ibmr_prefetch_info info;
	struct ibmr_range *ranges;
	struct ibmr_pages *pages;
	struct ibmr_err err;
	size_t num = step->prefetch.num;
	int rc;

	ranges = calloc(num, sizeof(*ranges));
	pages = calloc(num, sizeof(*pages));
	if (!ranges || !pages)
		rc = fail_nomem(f);
	else
		rc = find_ranges(s, step, ranges, f);
	if (!rc) {
		rc = ibmr_mr_prefetch(s->ctx, ranges, num, advices[step->prefetch.advice],
				      step->prefetch.flush, pages, &info, &err);
		if (rc)
			session_fail(&err, rc, step->prefetch.listed ? "ranges" : NULL, f);
		else if (step->prefetch.expect_resident && !session_is_dry(s))
			rc = check_resident(step, pages, f);
		if (!rc)
			rc = prefetch_result(s, step, pages, &info, reply);
	}
	free(ranges);
	free(pages);
	return rc;
}
