/* SPDX-License-Identifier: BSD-2-Clause */
/* The arithmetic of lists and repeats: check, total, walk. Pure: it reads records, and notes in those of
 * members what is needed of them. */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ORIGIN "ibmr_mr_fill"

#define MAX_TOTAL  ((uint64_t)INT64_MAX)
#define MARK_STEP  16u
#define SPARE_MOST (1u << 20) /* entries */

/* Both were asked for it. */
static bool may_split(const struct ibmr_mr *mr, const struct ibmr_layout *in)
{
	return mr->split && in->split;
}

static const char *noun(const struct ibmr_layout *in)
{
	return in->kind == IBMR_LAYOUT_LIST ? "klm" : "block";
}

/* The whole, before any entry is looked at. */
static int check_head(const struct ibmr_mr *mr, const struct ibmr_layout *in, struct ibmr_err *err)
{
	bool repeat = in->kind == IBMR_LAYOUT_REPEAT;
	int ret;

	if (in->kind != IBMR_LAYOUT_LIST && !repeat)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "layout kind %d is not known",
				    (int)in->kind);
	ret = ibmri_access_check(in->access, IBMR_ACCESS_FILL, "a fill", ORIGIN, err);
	if (ret)
		return ret;
	if (!in->num || (repeat ? (const void *)in->blocks : (const void *)in->klms) == NULL)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "a layout needs at least one %s",
				    noun(in));
	if (in->num > mr->max_klms)
		return ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				    "%" PRIu64 " %ss are more than the %" PRIu64
				    " that '%s' was created for",
				    in->num, noun(in), mr->max_klms, mr->name);
	if (!repeat && !may_split(mr, in) && in->num > mr->table) {
		ret = ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				   "%" PRIu64 " klms are more than the %" PRIu64 " that a key has",
				   in->num, mr->table);
		ibmri_err_hint(err, "with split they become a tree of keys");
		return ret;
	}
	if (repeat && !may_split(mr, in) && in->num + 1 > mr->table)
		return ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				    "%" PRIu64 " blocks and their header take %" PRIu64
				    " table entries, more than the %" PRIu64 " a key has",
				    in->num, in->num + 1, mr->table);
	if (repeat && !in->count)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN,
				    "a repeat of 0 cycles has no bytes");
	if (repeat && in->count > IBMRI_MAX_COUNT)
		return ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				    "count %" PRIu64 " is more than the %" PRIu64
				    " cycles a repeat carries",
				    in->count, (uint64_t)IBMRI_MAX_COUNT);
	return 0;
}

/* May the member be used at all, and with these rights? */
static int check_member(const struct ibmr_mr *mr, const struct ibmr_layout *in,
			const struct ibmr_mr *member, uint64_t i, struct ibmr_err *err)
{
	uint64_t missing;
	char text[160];
	int ret;

	if (!member)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "%s %" PRIu64 ": no MR is given",
				    noun(in), i);
	if (member->ctx != mr->ctx) {
		ret = ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN,
				   "%s %" PRIu64
				   ": '%s' belongs to another protection domain than '%s'",
				   noun(in), i, member->name, mr->name);
		ibmri_err_cause(err, "other_context");
		return ret;
	}
	if (member == mr) {
		ret = ibmri_refuse(err, IBMR_E_NESTING, ORIGIN,
				   "%s %" PRIu64 ": '%s' cannot be a member of itself", noun(in), i,
				   mr->name);
		ibmri_err_cause(err, "cycle");
		return ret;
	}
	if (member->indirect && member->state != IBMR_STATE_FILLED) {
		ret = ibmri_refuse(err, IBMR_E_STATE, ORIGIN,
				   "%s %" PRIu64 ": '%s' is %s, not filled", noun(in), i,
				   member->name, ibmri_state_name(member->state));
		ibmri_err_hint(err, "fill '%s' first", member->name);
		return ret;
	}
	missing = in->access & ~member->access;
	if (missing) {
		ret = ibmri_refuse(err, IBMR_E_ACCESS, ORIGIN,
				   "%s %" PRIu64 ": '%s' lacks %s, which the fill asks for",
				   noun(in), i, member->name,
				   ibmri_access_text(missing, text, sizeof(text)));
		ibmri_err_cause(err, "member_lacks_right");
		ibmri_err_hint(err, "%s '%s' with %s, or leave it out of the fill",
			       member->indirect ? "fill" : "register", member->name, text);
		return ret;
	}
	if (in->access & IBMR_ACCESS_REMOTE_ATOMIC && member->traits.relaxed) {
		ret = ibmri_refuse(err, IBMR_E_ACCESS, ORIGIN,
				   "%s %" PRIu64
				   ": remote_atomic is not possible over '%s', which is "
				   "relaxed_ordering",
				   noun(in), i, member->name);
		ibmri_err_cause(err, "atomic_over_relaxed_ordering");
		return ret;
	}
	if (in->kind == IBMR_LAYOUT_REPEAT && member->traits.on_demand &&
	    !mr->ctx->caps.repeat_on_demand) {
		ret = ibmri_refuse(err, IBMR_E_UNSUPPORTED, ORIGIN,
				   "block %" PRIu64
				   ": a repeat over the on-demand memory of '%s' cannot "
				   "be served by the driver",
				   i, member->name);
		ibmri_err_cause(err, "repeat_on_demand");
		ibmri_err_hint(err, "register it without on_demand, or use a list");
		return ret;
	}
	return 0;
}

static int past_end(const struct ibmr_layout *in, uint64_t i, const struct ibmri_entry *e,
		    struct ibmr_err *err)
{
	if (e->offset > UINT64_MAX - e->length)
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "%s %" PRIu64 ": offset %" PRIu64 " plus length %" PRIu64
				    " wraps past 2^64",
				    noun(in), i, e->offset, e->length);
	return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
			    "%s %" PRIu64 ": bytes [%" PRIu64 ", %" PRIu64
			    ") are past the end of '%s' (%" PRIu64 " byte%s)",
			    noun(in), i, e->offset, e->offset + e->length, e->mr->name,
			    e->mr->length, ibmri_plural(e->mr->length));
}

static int check_bounds(const struct ibmr_layout *in, uint64_t i, struct ibmri_entry *e,
			struct ibmr_err *err)
{
	uint64_t room, last = in->kind == IBMR_LAYOUT_REPEAT ? in->count - 1 : 0;

	if (e->length == IBMR_TO_END && e->offset < e->mr->length)
		e->length = e->mr->length - e->offset;
	if (e->length == IBMR_TO_END)
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "%s %" PRIu64 ": offset %" PRIu64
				    " is past the end of '%s' (%" PRIu64 " byte%s)",
				    noun(in), i, e->offset, e->mr->name, e->mr->length,
				    ibmri_plural(e->mr->length));
	if (!e->length)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, ORIGIN, "%s %" PRIu64 ": length is 0",
				    noun(in), i);
	if (!ibmri_within(e->offset, e->length, e->mr->length))
		return past_end(in, i, e, err);
	room = e->mr->length - e->offset - e->length;
	/* the last cycle reaches furthest: offset + last * stride + length */
	if (last && e->stride && e->stride > room / last)
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "block %" PRIu64 ": %" PRIu64 " cycles of stride %" PRIu64
				    " from offset %" PRIu64 " run past the end of '%s' (%" PRIu64
				    " bytes)",
				    i, in->count, e->stride, e->offset, e->mr->name, e->mr->length);
	return 0;
}

/* What one table entry can say. */
static int check_wire(const struct ibmr_mr *mr, const struct ibmr_layout *in, uint64_t i,
		      const struct ibmri_entry *e, struct ibmr_err *err)
{
	uint64_t most_entry = ibmri_max_entry(mr->ctx), most_stride;
	int ret;

	if (may_split(mr, in))
		return 0; /* it is divided, or unrolled */
	if (in->kind == IBMR_LAYOUT_LIST) {
		if (e->length <= most_entry)
			return 0;
		return ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				    "klm %" PRIu64 ": length %" PRIu64 " is more than the %" PRIu64
				    " bytes one entry carries",
				    i, e->length, most_entry);
	}
	most_stride = ibmri_max_stride(mr->ctx);
	if (e->length <= most_stride && e->stride <= most_stride)
		return 0;
	if (e->length > most_stride)
		ret = ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				   "block %" PRIu64 ": length %" PRIu64 " is more than the %" PRIu64
				   " bytes a repeat block carries",
				   i, e->length, most_stride);
	else
		ret = ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				   "block %" PRIu64 ": stride %" PRIu64 " is more than the %" PRIu64
				   " a repeat block carries",
				   i, e->stride, most_stride);
	ibmri_err_hint(err, "with split it is unrolled into a list");
	return ret;
}

/* Entries from the i-th on name the member up to byte reach of it. */
static void note_member(struct ibmri_layout *l, struct ibmr_mr *member, uint64_t i, uint64_t reach)
{
	if (member->layout_number != l->number) {
		member->layout_number = l->number;
		member->first_entry = i;
		member->reach = 0;
		member->next_member = NULL;
		if (l->members)
			l->last_member->next_member = member;
		else
			l->members = member;
		l->last_member = member;
		l->num_members++;
	}
	if (reach > member->reach)
		member->reach = reach;
}

static int add_entry(const struct ibmr_mr *mr, const struct ibmr_layout *in, uint64_t i,
		     struct ibmri_layout *l, struct ibmr_err *err)
{
	struct ibmri_entry *e = &l->entries[i];
	uint64_t before = i ? l->entries[i - 1].end : 0;
	int ret = 0;

	if (in->kind == IBMR_LAYOUT_LIST)
		*e = (struct ibmri_entry){ .mr = in->klms[i].mr,
					   .offset = in->klms[i].offset,
					   .length = in->klms[i].length };
	else
		*e = (struct ibmri_entry){ .mr = in->blocks[i].mr,
					   .offset = in->blocks[i].offset,
					   .length = in->blocks[i].length,
					   .stride = in->blocks[i].stride };
	/* what was found good one entry before is still */
	if (!i || e->mr != e[-1].mr)
		ret = check_member(mr, in, e->mr, i, err);
	if (!ret)
		ret = check_bounds(in, i, e, err);
	if (!ret)
		ret = check_wire(mr, in, i, e, err);
	if (!ret && e->length > MAX_TOTAL - before)
		ret = ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				   "%s %" PRIu64 ": the total passes 2^63-1 bytes", noun(in), i);
	if (ret)
		return ret;
	e->end = before + e->length;
	note_member(l, e->mr, i, e->offset + (l->count - 1) * e->stride + e->length);
	return 0;
}

/* The length that all entries have: then which of them a byte is in needs no search. */
static uint64_t equal_length(const struct ibmri_layout *l)
{
	uint64_t each = l->entries[0].length, i;

	for (i = 1; i + 1 < l->num; i++)
		if (l->entries[i].length != each)
			return 0;
	return l->entries[l->num - 1].length <= each ? each : 0;
}

/* Entries of a list from the i-th on whose member is that of the one before and that nothing is wrong with:
 * most are. The index of the first that needs a closer look, the last at the latest. */
static uint64_t add_run(const struct ibmr_mr *mr, const struct ibmr_layout *in, uint64_t i,
			struct ibmri_layout *l)
{
	struct ibmr_mr *const member = l->entries[i - 1].mr;
	const uint64_t size = member->length;
	uint64_t end = l->entries[i - 1].end, most = size, reach = 0;

	if (!may_split(mr, in) && ibmri_max_entry(mr->ctx) < size)
		most = ibmri_max_entry(mr->ctx);
	for (; i + 1 < l->num; i++) {
		const struct ibmr_klm klm = in->klms[i];

		if (klm.mr != member || klm.length - 1 >= most || klm.offset > size - klm.length ||
		    klm.length > MAX_TOTAL - end)
			break;
		end += klm.length;
		if (klm.offset + klm.length > reach)
			reach = klm.offset + klm.length;
		l->entries[i] = (struct ibmri_entry){
			.mr = member, .offset = klm.offset, .length = klm.length, .end = end
		};
	}
	note_member(l, member, i, reach);
	return i;
}

static int add_entries(const struct ibmr_mr *mr, const struct ibmr_layout *in,
		       struct ibmri_layout *l, struct ibmr_err *err)
{
	uint64_t i = 0;
	int ret;

	while (i < l->num) {
		ret = add_entry(mr, in, i, l, err);
		if (ret) {
			ibmri_err_index(err, i);
			return ret;
		}
		i++;
		if (in->kind == IBMR_LAYOUT_LIST && i < l->num)
			i = add_run(mr, in, i, l);
	}
	return 0;
}

static uint64_t num_marks(const struct ibmri_layout *l)
{
	return (l->num - 1) / MARK_STEP;
}

/* A search among marks stays in the cache, where entries are too far apart. */
static int make_marks(struct ibmri_layout *l, struct ibmr_err *err)
{
	uint64_t num = num_marks(l), i;

	if (l->each || num < 2)
		return 0;
	l->marks = malloc(num * sizeof(*l->marks));
	if (!l->marks)
		return ibmri_no_memory(err, ORIGIN, num * sizeof(*l->marks));
	for (i = 0; i < num; i++)
		l->marks[i] = l->entries[(i + 1) * MARK_STEP - 1].end;
	return 0;
}

/* Totals, and where the last byte's address falls. */
static int check_total(struct ibmri_layout *l, struct ibmr_err *err)
{
	l->cycle = l->entries[l->num - 1].end;
	if (l->cycle > MAX_TOTAL / l->count)
		return ibmri_refuse(err, IBMR_E_LIMIT, ORIGIN,
				    "%" PRIu64 " cycles of %" PRIu64
				    " bytes are more than 2^63-1 bytes",
				    l->count, l->cycle);
	l->total = l->cycle * l->count;
	if (l->base > UINT64_MAX - (l->total - 1))
		return ibmri_refuse(err, IBMR_E_RANGE, ORIGIN,
				    "base 0x%" PRIx64 " plus %" PRIu64 " bytes wraps past 2^64",
				    l->base, l->total);
	return 0;
}

/* Memory that the kernel has given already is worth having again. */
static void take_entries(struct ibmr_mr *mr, struct ibmri_layout *l)
{
	if (mr->spare.room >= l->num) {
		l->entries = mr->spare.entries;
		l->room = mr->spare.room;
		memset(&mr->spare, 0, sizeof(mr->spare));
		return;
	}
	l->entries = malloc(l->num * sizeof(*l->entries));
	l->room = l->num;
}

int ibmri_layout_make(struct ibmr_mr *mr, const struct ibmr_layout *in,
		      struct ibmri_layout *ret_layout, struct ibmr_err *err)
{
	struct ibmri_layout l = { .kind = in->kind, .access = in->access, .base = in->base };
	int ret;

	ret = check_head(mr, in, err);
	if (ret)
		return ret;
	/* the experimental verbs make layouts on several threads of a PD, each of members of its own */
	l.number = __atomic_add_fetch(&mr->ctx->layouts, 1, __ATOMIC_RELAXED);
	l.num = in->num; /* at most max_klms, so the size below cannot wrap */
	l.count = in->kind == IBMR_LAYOUT_REPEAT ? in->count : 1;
	take_entries(mr, &l);
	if (!l.entries)
		return ibmri_no_memory(err, ORIGIN, l.num * sizeof(*l.entries));
	ret = add_entries(mr, in, &l, err);
	if (!ret)
		ret = check_total(&l, err);
	if (!ret && may_split(mr, in))
		ret = ibmri_layout_split(mr, &l, err);
	if (ret)
		goto free_entries;
	l.each = equal_length(&l);
	ret = make_marks(&l, err);
	if (ret)
		goto free_entries;
	*ret_layout = l;
	return 0;

free_entries:
	free(l.entries);
	return ret;
}

void ibmri_layout_free(struct ibmri_layout *l)
{
	free(l->entries);
	free(l->marks);
	memset(l, 0, sizeof(*l));
}

void ibmri_layout_retire(struct ibmr_mr *mr, struct ibmri_layout *l)
{
	ibmri_layout_free(&mr->spare);
	if (l->room <= SPARE_MOST) {
		mr->spare = (struct ibmri_layout){ .entries = l->entries, .room = l->room };
		l->entries = NULL;
	}
	ibmri_layout_free(l);
}

/* How many of the marks are at or before at. The halving has no branch to foretell. */
static uint64_t marks_before(const struct ibmri_layout *l, uint64_t at)
{
	const uint64_t *from = l->marks;
	uint64_t n = num_marks(l);

	while (n > 1) {
		uint64_t half = n / 2;

		from += half & -(uint64_t)(from[half - 1] <= at);
		n -= half;
	}
	return (uint64_t)(from - l->marks) + (*from <= at);
}

/* The first entry that ends past at: looked up, or searched for among few. */
static uint64_t entry_at(const struct ibmri_layout *l, uint64_t at)
{
	const struct ibmri_entry *from = l->entries;
	uint64_t n = l->num;

	if (l->each)
		return at / l->each;
	if (l->marks) {
		uint64_t first = marks_before(l, at) * MARK_STEP;

		from += first;
		n = n - first < MARK_STEP ? n - first : MARK_STEP;
	}
	while (n > 1) {
		uint64_t half = n / 2;

		from += half & -(uint64_t)(from[half - 1].end <= at);
		n -= half;
	}
	return (uint64_t)(from - l->entries);
}

void ibmri_walk_start(struct ibmri_walk *w, const struct ibmri_layout *l, uint64_t offset,
		      uint64_t length)
{
	memset(w, 0, sizeof(*w));
	w->layout = l;
	w->left = length;
	if (!length)
		return;
	if (offset >= l->cycle) {
		w->cycle = offset / l->cycle;
		offset %= l->cycle;
	}
	w->index = entry_at(l, offset);
	w->skip = offset - (l->entries[w->index].end - l->entries[w->index].length);
}

bool ibmri_walk_next(struct ibmri_walk *w, struct ibmri_piece *ret_piece)
{
	const struct ibmri_entry *e;

	if (!w->left)
		return false;
	e = &w->layout->entries[w->index];
	ret_piece->mr = e->mr;
	ret_piece->offset = e->offset + w->cycle * e->stride + w->skip;
	ret_piece->length = e->length - w->skip;
	if (ret_piece->length > w->left)
		ret_piece->length = w->left;
	w->left -= ret_piece->length;
	w->skip = 0;
	if (++w->index == w->layout->num) {
		w->index = 0;
		w->cycle++;
	}
	return true;
}
