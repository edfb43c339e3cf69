/* SPDX-License-Identifier: BSD-2-Clause */
/* Prefetch of on-demand memory, with evidence of what it did. */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ORIGIN "ibmr_mr_prefetch"

#define BATCH_SGES  256
#define BATCH_BYTES (1ULL << 30) /* one ioctl's worth: below what 32 bits carry, and soon over */

/* Runs of on-demand memory. */
struct runs {
	struct ibmri_piece *at;
	size_t num, room;
};

/* One range of the request, resolved. */
struct target {
	struct ibmr_mr *mr;
	uint64_t offset, length;
	struct runs runs;
};

/* ---- what lies under a range ------------------------------------------------------ */

static int add_run(struct runs *r, const struct ibmri_piece *p, struct ibmr_err *err)
{
	struct ibmri_piece *last = r->num ? &r->at[r->num - 1] : NULL, *at;
	size_t room;

	if (last && last->mr == p->mr && last->offset + last->length == p->offset) {
		last->length += p->length;
		return 0;
	}
	if (!r->at || r->num == r->room) {
		room = r->room ? r->room * 2 : 16;
		at = realloc(r->at, room * sizeof(*at));
		if (!at)
			return ibmri_no_memory(err, ORIGIN, room * sizeof(*at));
		r->at = at;
		r->room = room;
	}
	r->at[r->num++] = *p;
	return 0;
}

/* Gather the on-demand memory under [offset, offset + length) of mr. */
static int gather(const struct ibmri_call *c, const struct ibmri_piece *p, struct runs *r,
		  struct ibmr_err *err)
{
	struct ibmri_piece under;
	struct ibmri_walk w;
	int ret = 0;

	if (!p->mr->traits.on_demand)
		return 0;
	if (!p->mr->indirect)
		return add_run(r, p, err);
	ibmri_walk_start(&w, &p->mr->layout, p->offset, p->length);
	while (!ret && ibmri_walk_next(&w, &under)) {
		ret = gather(c, &under, r, err);
		if (!ret)
			ret = ibmri_call_check(c, err);
	}
	return ret;
}

static int by_place(const void *a, const void *b)
{
	const struct ibmri_piece *x = a, *y = b;

	if (x->mr != y->mr)
		return (uintptr_t)x->mr < (uintptr_t)y->mr ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* The first byte of the MR that shares a page with offset, and the end of such bytes. */
static uint64_t page_start(const struct ibmr_mr *mr, uint64_t offset)
{
	uint64_t in_page = (mr->base + offset) % ibmri_page_size();

	return offset > in_page ? offset - in_page : 0;
}

static uint64_t page_end(const struct ibmr_mr *mr, uint64_t end)
{
	uint64_t page = ibmri_page_size(), more = (page - (mr->base + end) % page) % page;

	return mr->length - end < more ? mr->length : end + more;
}

/* To whole pages (within the MR), each page once. */
static void round_runs(struct runs *r)
{
	size_t i, kept = 0;

	for (i = 0; i < r->num; i++) {
		struct ibmri_piece *p = &r->at[i];
		uint64_t end = page_end(p->mr, p->offset + p->length);

		p->offset = page_start(p->mr, p->offset);
		p->length = end - p->offset;
	}
	if (r->num)
		qsort(r->at, r->num, sizeof(*r->at), by_place);
	for (i = 0; i < r->num; i++) {
		struct ibmri_piece *p = &r->at[i], *k = kept ? &r->at[kept - 1] : NULL;
		uint64_t end = p->offset + p->length;

		if (!k || k->mr != p->mr || p->offset > k->offset + k->length)
			r->at[kept++] = *p;
		else if (end > k->offset + k->length)
			k->length = end - k->offset;
	}
	r->num = kept;
}

/* ---- what the records say -------------------------------------------------------------- */

static int resolve(const struct ibmr_ctx *ctx, const struct ibmr_range *range, struct target *t,
		   struct ibmr_err *err)
{
	uint64_t size;
	int ret;

	if (!range->mr)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "no MR is given");
	if (range->mr->ctx != ctx)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "'%s' belongs to another context",
				    range->mr->name);
	*t = (struct target){ .mr = range->mr, .offset = range->offset, .length = range->length };
	ret = ibmri_usable(t->mr, ORIGIN, err);
	if (ret)
		return ret;
	size = t->mr->length;
	if (t->length == IBMR_TO_END && t->mr->implicit)
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "'%s' is the whole address space: a length is needed",
				    t->mr->name);
	if (t->length == IBMR_TO_END && t->offset < size)
		t->length = size - t->offset;
	if (!t->length)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "length is 0");
	if (t->length == IBMR_TO_END)
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "offset %" PRIu64 " is past the end of '%s' (%" PRIu64
				    " bytes)",
				    t->offset, t->mr->name, size);
	if (ibmri_within(t->offset, t->length, size))
		return 0;
	if (t->offset > UINT64_MAX - t->length)
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "offset %" PRIu64 " plus length %" PRIu64 " wraps past 2^64",
				    t->offset, t->length);
	return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
			    "bytes [%" PRIu64 ", %" PRIu64 ") are past the end of '%s' (%" PRIu64
			    " bytes)",
			    t->offset, t->offset + t->length, t->mr->name, size);
}

static int lacks_write(const struct ibmr_mr *mr, struct ibmr_err *err)
{
	int ret;

	if (mr->access & IBMR_ACCESS_LOCAL_WRITE)
		return 0;
	ret = ibmri_refuse(err, IBMR_E_ACCESS, ORIGIN,
			   "prefetch for writing needs local_write, which '%s' lacks", mr->name);
	ibmri_err_cause(err, "lacks_right");
	ibmri_err_hint(err, "prefetch for reading, or %s '%s' with local_write",
		       mr->indirect ? "fill" : "register", mr->name);
	return ret;
}

static int examine(const struct ibmri_call *c, struct target *t, enum ibmr_advice advice,
		   struct ibmr_err *err)
{
	struct ibmri_piece all = { .mr = t->mr, .offset = t->offset, .length = t->length };
	size_t i;
	int ret;

	ret = gather(c, &all, &t->runs, err);
	if (ret)
		return ret;
	if (!t->runs.num) {
		ret = ibmri_refuse(err, IBMR_E_NOT_ON_DEMAND, ORIGIN,
				   t->mr->indirect
					   ? "no on-demand memory lies under that range of '%s'"
					   : "'%s' is pinned: its pages are there already",
				   t->mr->name);
		ibmri_err_hint(err, "register with on_demand what is to be prefetched");
		return ret;
	}
	if (advice == IBMR_ADVICE_WRITE) {
		ret = lacks_write(t->mr, err);
		for (i = 0; i < t->runs.num && !ret; i++)
			ret = lacks_write(t->runs.at[i].mr, err);
		if (ret)
			return ret;
	}
	round_runs(&t->runs);
	return 0;
}

/* ---- evidence -------------------------------------------------------------------------- */

static int64_t add_count(int64_t sum, int64_t more)
{
	return sum < 0 || more < 0 ? -1 : sum + more;
}

static void count(const struct ibmri_call *c, struct ibmri_residency *res, const struct target *t,
		  int64_t *ret_cpu, int64_t *ret_device)
{
	size_t i;

	*ret_cpu = *ret_device = res ? 0 : -1;
	for (i = 0; i < t->runs.num && res; i++) {
		const struct ibmri_piece *p = &t->runs.at[i];

		if (*ret_cpu >= 0)
			*ret_cpu = add_count(*ret_cpu,
					     ibmri_pages_resident(res, p->mr->base + p->offset,
								  p->length, p->mr->mem.anon, c));
		if (*ret_device >= 0)
			*ret_device = add_count(*ret_device,
						ibmri_pages_mapped(p->mr, p->offset, p->length, c));
	}
}

static uint64_t pages_of(const struct runs *r)
{
	uint64_t pages = 0;
	size_t i;

	for (i = 0; i < r->num; i++)
		pages += ibmri_page_span(r->at[i].mr->base + r->at[i].offset, r->at[i].length) /
			 ibmri_page_size();
	return pages;
}

/* ---- the advice -------------------------------------------------------------------------- */

static const char *advice_name(enum ibmr_advice advice)
{
	return advice == IBMR_ADVICE_READ    ? "read"
	       : advice == IBMR_ADVICE_WRITE ? "write"
					     : "no_fault";
}

static int verbs_advice(enum ibmr_advice advice)
{
	return advice == IBMR_ADVICE_READ    ? IBV_ADVISE_MR_ADVICE_PREFETCH
	       : advice == IBMR_ADVICE_WRITE ? IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE
					     : IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT;
}

/* Which page of which run could not be faulted in; 0 when none is found. */
static int bad_page(const struct ibv_sge *sge, uint32_t num, bool write, int err_no,
		    struct ibmr_err *err)
{
	struct ibmri_bad_page bad;
	uint32_t i;
	int ret;

	for (i = 0; i < num; i++) {
		if (ibmri_pages_first_bad(sge[i].addr, sge[i].length, write, &bad) != 1)
			continue;
		ret = ibmri_failed(err, IBMR_E_BAD_ADDRESS, "ibv_advise_mr", err_no,
				   bad.mapped ? "the page at 0x%" PRIx64 " is mapped %s"
					      : "the page at 0x%" PRIx64 " is not mapped%s",
				   bad.addr, bad.mapped ? bad.perms : "");
		ibmri_err_cause(err, !bad.mapped	   ? "unmapped"
				     : bad.perms[0] == 'r' ? "read_only"
							   : "no_access");
		return ret;
	}
	return 0;
}

/* mlx5 says EFAULT of every bad page, rxe EPERM of one that may not be written. */
static int advise_fault(const struct ibv_sge *sge, uint32_t num, bool write, int err_no,
			struct ibmr_err *err)
{
	int ret = bad_page(sge, num, write, err_no, err);

	if (ret || err_no != EFAULT)
		return ret;
	return ibmri_failed(err, IBMR_E_BAD_ADDRESS, "ibv_advise_mr", EFAULT,
			    "a page could not be faulted in");
}

/* The rxe driver looks for the MR among those with local_write, whatever the advice, and says of all
 * others that there is no such key. NULL: that is not it. */
static const struct ibmr_mr *not_writable(const struct runs *r)
{
	size_t i;

	for (i = 0; i < r->num; i++)
		if (!(r->at[i].mr->access & IBMR_ACCESS_LOCAL_WRITE))
			return r->at[i].mr;
	return NULL;
}

/* err_no 0: no driver was asked. */
static int needs_local_write(const struct ibmri_call *c, const struct ibmr_mr *mr, int err_no,
			     struct ibmr_err *err)
{
	static const char fmt[] = "device %s does not prefetch '%s', which lacks local_write";
	int ret;

	if (err_no)
		ret = ibmri_failed(err, IBMR_E_UNSUPPORTED, "ibv_advise_mr", err_no, fmt,
				   c->ctx->caps.name, mr->name);
	else
		ret = ibmri_refuse(err, IBMR_E_UNSUPPORTED, ORIGIN, fmt, c->ctx->caps.name,
				   mr->name);
	ibmri_err_cause(err, "needs_local_write");
	ibmri_err_hint(err, "register '%s' with local_write", mr->name);
	return ret;
}

static int advise_failed(const struct ibmri_call *c, int err_no, enum ibmr_advice advice,
			 const struct runs *runs, const struct ibv_sge *sge, uint32_t num,
			 struct ibmr_err *err)
{
	int ret = 0;

	if (err_no == EFAULT || err_no == EPERM)
		ret = advise_fault(sge, num, advice == IBMR_ADVICE_WRITE, err_no, err);
	if (ret)
		return ret;
	if (err_no == EINVAL && not_writable(runs))
		return needs_local_write(c, not_writable(runs), err_no, err);
	if (ibmri_code_of(err_no) == IBMR_E_UNSUPPORTED) {
		ibmri_failed(err, IBMR_E_UNSUPPORTED, "ibv_advise_mr", err_no,
			     "device %s, its driver or library has no prefetch for %s",
			     c->ctx->caps.name, advice_name(advice));
		ibmri_err_cause(err, "advise_mr");
		return -ENOSYS; /* the seed's word for it */
	}
	return ibmri_failed(err, err_no == ENOMEM ? IBMR_E_NO_MEMORY : IBMR_E_COMPLETION,
			    "ibv_advise_mr", err_no, "device %s refuses the prefetch: %s",
			    c->ctx->caps.name, strerror(err_no));
}

/* As many pieces of the runs as one call takes. */
static uint32_t next_batch(const struct runs *r, size_t *run, uint64_t *done, struct ibv_sge *sge)
{
	uint64_t bytes = 0;
	uint32_t num = 0;

	while (*run < r->num && num < BATCH_SGES && bytes < BATCH_BYTES) {
		const struct ibmri_piece *p = &r->at[*run];
		uint64_t left = p->length - *done, room = BATCH_BYTES - bytes;
		uint64_t n = left < room ? left : room;

		sge[num++] = (struct ibv_sge){ .addr = p->mr->base + p->offset + *done,
					       .length = (uint32_t)n,
					       .lkey = p->mr->lkey };
		bytes += n;
		*done += n;
		if (*done == p->length) {
			*done = 0;
			++*run;
		}
	}
	return num;
}

static int advise(const struct ibmri_call *c, const struct target *t, enum ibmr_advice advice,
		  bool flush, struct ibmr_err *err)
{
	struct ibv_sge sge[BATCH_SGES];
	uint64_t done = 0;
	size_t run = 0;
	uint32_t num;
	int ret;

	while ((num = next_batch(&t->runs, &run, &done, sge))) {
		ret = ibmri_call_check(c, err);
		if (ret)
			return ret;
		ret = ibv_advise_mr(c->ctx->pd,
				    (enum ib_uverbs_advise_mr_advice)verbs_advice(advice),
				    flush ? IBV_ADVISE_MR_FLAG_FLUSH : 0, sge, num);
		/* EAGAIN: the driver is busy with itself; it may ignore a hint */
		if (ret && ret != EAGAIN)
			return advise_failed(c, ret, advice, &t->runs, sge, num, err);
	}
	return 0;
}

/* ---- the call ------------------------------------------------------------------------------ */

static int examine_all(const struct ibmri_call *c, const struct ibmr_range *ranges, uint64_t num,
		       enum ibmr_advice advice, struct target *targets, struct ibmr_err *err)
{
	uint64_t i;
	int ret = 0;

	for (i = 0; i < num && !ret; i++) {
		ret = resolve(c->ctx, &ranges[i], &targets[i], err);
		if (!ret)
			ret = examine(c, &targets[i], advice, err);
		if (ret)
			ibmri_err_index(err, i);
	}
	return ret;
}

static int advise_all(const struct ibmri_call *c, const struct target *targets, uint64_t num,
		      enum ibmr_advice advice, bool flush, struct ibmr_err *err)
{
	const struct ibmr_mr *mr;
	uint64_t i;
	int ret = 0;

	if (c->ctx->dry && !c->ctx->caps.prefetch) {
		ibmri_refuse(err, IBMR_E_UNSUPPORTED, ORIGIN,
			     "device %s, its driver or library has no prefetch for %s",
			     c->ctx->caps.name, advice_name(advice));
		ibmri_err_cause(err, "advise_mr");
		return -ENOSYS;
	}
	for (i = 0; i < num && !ret && c->ctx->dry && c->ctx->caps.prefetch_needs_write; i++) {
		mr = not_writable(&targets[i].runs);
		ret = mr ? needs_local_write(c, mr, 0, err) : 0;
		if (ret)
			ibmri_err_index(err, i);
	}
	for (i = 0; i < num && !ret && !c->ctx->dry; i++) {
		ret = advise(c, &targets[i], advice, flush, err);
		if (ret)
			ibmri_err_index(err, i);
	}
	return ret;
}

static void sum_up(const struct ibmr_pages *pages, uint64_t num, const struct ibmri_residency *res,
		   struct ibmr_prefetch_info *ret_info)
{
	struct ibmr_prefetch_info info = { .page_size = ibmri_page_size() };
	uint64_t i;

	for (i = 0; i < num; i++) {
		const struct ibmr_pages *p = &pages[i];
		struct ibmr_pages *t = &info.total;

		info.bytes += p->length;
		t->length += p->length;
		t->pages += p->pages;
		t->cpu_resident_before = add_count(t->cpu_resident_before, p->cpu_resident_before);
		t->cpu_resident_after = add_count(t->cpu_resident_after, p->cpu_resident_after);
		t->device_mapped_before =
			add_count(t->device_mapped_before, p->device_mapped_before);
		t->device_mapped_after = add_count(t->device_mapped_after, p->device_mapped_after);
	}
	if (res->used_mincore)
		info.source = "mincore";
	else if (res->used_pagemap)
		info.source = "pagemap";
	*ret_info = info;
}

static int run(const struct ibmri_call *c, const struct ibmr_range *ranges, uint64_t num,
	       enum ibmr_advice advice, bool flush, struct target *targets,
	       struct ibmr_pages *pages, struct ibmri_residency *res, struct ibmr_err *err)
{
	uint64_t i;
	int ret;

	ret = examine_all(c, ranges, num, advice, targets, err);
	if (ret)
		return ret;
	for (i = 0; i < num; i++) {
		pages[i].offset = targets[i].offset;
		pages[i].length = targets[i].length;
		pages[i].pages = pages_of(&targets[i].runs);
		count(c, res, &targets[i], &pages[i].cpu_resident_before,
		      &pages[i].device_mapped_before);
	}
	ret = advise_all(c, targets, num, advice, flush, err);
	if (ret)
		return ret;
	for (i = 0; i < num; i++)
		count(c, res, &targets[i], &pages[i].cpu_resident_after,
		      &pages[i].device_mapped_after);
	return 0;
}

int ibmr_mr_prefetch(struct ibmr_ctx *ctx, const struct ibmr_range *ranges, uint64_t num,
		     enum ibmr_advice advice, bool flush, struct ibmr_pages *ret_pages,
		     struct ibmr_prefetch_info *ret_info, struct ibmr_err *reterr)
{
	struct ibmri_residency res;
	struct ibmr_pages *pages;
	struct target *targets;
	/* counting takes longer than the advice: only for who will look at it */
	bool counts = !ctx->dry && (ret_pages || ret_info);
	struct ibmri_call c;
	uint64_t i;
	int ret;

	if ((unsigned)advice > IBMR_ADVICE_NO_FAULT)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, ORIGIN, "advice %d is not known",
				    (int)advice);
	if (!num || !ranges || !ranges[0].mr)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, ORIGIN, "no range is given");
	pages = calloc(num, sizeof(*pages));
	targets = calloc(num, sizeof(*targets));
	if (!pages || !targets) {
		ret = ibmri_no_memory(reterr, ORIGIN, num * (sizeof(*pages) + sizeof(*targets)));
		goto free_both;
	}
	ibmri_call_start(&c, ctx, ORIGIN, "prefetching", ranges[0].mr);
	ibmri_residency_open(&res);
	ret = run(&c, ranges, num, advice, flush, targets, pages, counts ? &res : NULL, reterr);
	ibmri_residency_close(&res);
	if (!ret && ret_pages)
		memcpy(ret_pages, pages, num * sizeof(*pages));
	if (!ret && ret_info)
		sum_up(pages, num, &res, ret_info);
	for (i = 0; i < num; i++)
		free(targets[i].runs.at);
free_both:
	free(targets);
	free(pages);
	return ret;
}
