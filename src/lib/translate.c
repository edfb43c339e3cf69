/* SPDX-License-Identifier: BSD-2-Clause */
/* Which bytes of which memory an MR's bytes are, through all levels; and the other way. */
#include "private.h"

#include <inttypes.h>

/* ---- from an MR to what is under it --------------------------------------------------- */

struct down {
	ibmr_piece_fn *fn;
	void *arg;
};

static int pieces(const struct down *d, struct ibmr_mr *mr, uint64_t at, uint64_t offset,
		  uint64_t length)
{
	struct ibmri_piece p;
	struct ibmri_walk w;
	int ret = 0;

	if (!mr->indirect)
		return d->fn(d->arg, &(struct ibmr_piece){ at, mr, offset, length });
	ibmri_walk_start(&w, &mr->layout, offset, length);
	while (!ret && ibmri_walk_next(&w, &p)) {
		ret = pieces(d, p.mr, at, p.offset, p.length);
		at += p.length;
	}
	return ret;
}

static int past_end(const struct ibmr_mr *mr, uint64_t offset, uint64_t length, const char *origin,
		    struct ibmr_err *err)
{
	return ibmri_refuse(err, IBMR_E_RANGE, origin,
			    "offset %" PRIu64 " plus %" PRIu64
			    " byte%s is past the end of '%s' (%" PRIu64 " byte%s)",
			    offset, length, ibmri_plural(length), mr->name, mr->length,
			    ibmri_plural(mr->length));
}

int ibmr_mr_translate(struct ibmr_mr *mr, uint64_t offset, uint64_t length, ibmr_piece_fn *fn,
		      void *arg, struct ibmr_err *reterr)
{
	static const char *const origin = "ibmr_mr_translate";
	const struct down d = { fn, arg };
	int ret;

	if (!length)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, origin, "length is 0");
	ret = ibmri_usable(mr, origin, reterr);
	if (ret)
		return ret;
	if (length == IBMR_TO_END && offset < mr->length)
		length = mr->length - offset;
	if (!ibmri_within(offset, length, mr->length))
		return past_end(mr, offset, length == IBMR_TO_END ? 1 : length, origin, reterr);
	return pieces(&d, mr, offset, offset, length);
}

/* ---- from memory to where it shows -------------------------------------------------------- */

#define STEPS_A_LOOK 4096u /* at the clock */

/* Levels of many places that show nowhere above can be more work than anyone has time for. */
struct search {
	struct ibmri_call call;
	const struct ibmr_mr *of;
	uint32_t steps;
	struct ibmr_err *err;
};

static int tick(struct search *s)
{
	return ++s->steps % STEPS_A_LOOK ? 0 : ibmri_call_check(&s->call, s->err);
}

/* Where a byte of a member shows, as places in the layout, which go on to the level above. */
struct up {
	struct search *search;
	const struct ibmri_layout *layout;
	const struct ibmri_entry *entry;
	ibmr_place_fn *fn;
	void *arg;
};

static int places_of_entry(void *arg, uint64_t offset)
{
	const struct up *u = arg;
	const struct ibmri_entry *e = u->entry;
	uint64_t first = 0, last = u->layout->count - 1, into, c;
	int ret = 0;

	if (offset < e->offset)
		return 0;
	into = offset - e->offset;
	if (e->stride) {
		/* those cycles c with c * stride <= into < c * stride + length */
		if (into >= e->length)
			first = (into - e->length) / e->stride + 1;
		if (into / e->stride < last)
			last = into / e->stride;
	} else if (into >= e->length) {
		return 0;
	}
	for (c = first; c <= last && !ret; c++) {
		ret = tick(u->search);
		if (!ret)
			ret = u->fn(u->arg, c * u->layout->cycle + e->end - e->length + into -
						    c * e->stride);
	}
	return ret;
}

/* What leads to the member that is sought is marked. */
static int places(struct search *s, const struct ibmr_mr *mr, uint64_t offset, ibmr_place_fn *fn,
		  void *arg)
{
	struct up u = { .search = s, .layout = &mr->layout, .fn = fn, .arg = arg };
	uint64_t i;
	int ret = 0;

	if (mr == s->of)
		return fn(arg, offset);
	for (i = 0; i < mr->layout.num && !ret; i++) {
		const struct ibmr_mr *member = mr->layout.entries[i].mr;

		u.entry = &mr->layout.entries[i];
		ret = tick(s);
		if (!ret && member == s->of)
			ret = places_of_entry(&u, offset);
		else if (!ret && member->indirect && member->mark == mr->ctx->mark)
			ret = places(s, member, offset, places_of_entry, &u);
	}
	return ret;
}

int ibmr_mr_locate(struct ibmr_mr *mr, struct ibmr_mr *of, uint64_t offset, ibmr_place_fn *fn,
		   void *arg, struct ibmr_err *reterr)
{
	static const char *const origin = "ibmr_mr_locate";
	struct search s = { .of = of, .err = reterr };
	int ret;

	if (mr->ctx != of->ctx) {
		ret = ibmri_refuse(reterr, IBMR_E_ARGUMENT, origin,
				   "'%s' belongs to another protection domain than '%s'", of->name,
				   mr->name);
		ibmri_err_cause(reterr, "other_context");
		return ret;
	}
	ret = ibmri_usable(mr, origin, reterr);
	if (!ret)
		ret = ibmri_usable(of, origin, reterr);
	if (ret)
		return ret;
	if (offset >= of->length)
		return past_end(of, offset, 1, origin, reterr);
	ibmri_links_mark_users(of);
	ibmri_call_start(&s.call, mr->ctx, origin, "searching", mr);
	return places(&s, mr, offset, fn, arg);
}
