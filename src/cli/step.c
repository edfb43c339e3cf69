/* SPDX-License-Identifier: BSD-2-Clause */
/* The commands' members, and the rules between the members of one command. */
#include "spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/ibmr.h"
#include "expect.h"
#include "member.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* ---- tables ------------------------------------------------------------------- */

/* Every member of every command: those of one name have one type. */
struct form {
	unsigned verb, layout, map, split, advice;
	const char *mr, *file, *attach, *hex, *to_file, *to, *from, *schema_uri;
	const json_t *expect, *init, *klms, *blocks, *ranges;
	uint64_t schema, length, file_offset, hugepages, max_klms, base, count, offset;
	uint64_t to_offset, from_offset, add, compare, swap;
	uint8_t ramp, byte;
	bool create, flush, expect_resident, unchecked;
	struct access_words access;
};

enum {
	BIT_verb,
	BIT_layout,
	BIT_map,
	BIT_split,
	BIT_advice,
	BIT_mr,
	BIT_file,
	BIT_attach,
	BIT_hex,
	BIT_to_file,
	BIT_to,
	BIT_from,
	BIT_schema_uri,
	BIT_expect,
	BIT_init,
	BIT_klms,
	BIT_blocks,
	BIT_ranges,
	BIT_schema,
	BIT_length,
	BIT_file_offset,
	BIT_hugepages,
	BIT_max_klms,
	BIT_base,
	BIT_count,
	BIT_offset,
	BIT_to_offset,
	BIT_from_offset,
	BIT_add,
	BIT_compare,
	BIT_swap,
	BIT_ramp,
	BIT_byte,
	BIT_create,
	BIT_flush,
	BIT_expect_resident,
	BIT_unchecked,
	BIT_access,
};

#define SEEN(f) (seen & 1ull << BIT_##f)

#define NAMED(n, f, t, ...)                                                                        \
	{                                                                                          \
		.name = n, .type = MEMBER_##t, .offset = offsetof(struct form, f), .bit = BIT_##f, \
		__VA_ARGS__                                                                        \
	}
#define MAY(f, t)  NAMED(#f, f, t)
#define MUST(f, t) NAMED(#f, f, t, .required = true)
#define WORD(f, w) NAMED(#f, f, WORD, .words = w)

static const char *const layout_words[] = { "list", "repeat", NULL };
static const char *const map_words[] = { "private", "shared", NULL };
static const char *const split_words[] = { "auto", NULL };
static const char *const advice_words[] = { "read", "write", "no_fault", NULL };
static const char *const verb_words[] = { "reg",       "create",    "fill",	    "invalidate",
					  "dereg",     "prefetch",  "write",	    "read",
					  "copy",      "fetch_add", "compare_swap", "verify",
					  "translate", NULL };

static const struct member frame_members[] = {
	NAMED("do", verb, WORD, .words = verb_words, .required = true),
	MAY(expect, OBJECT),
};
static const struct member mr_member[] = { MUST(mr, NAME) };
static const struct member document_members[] = {
	NAMED("$schema", schema_uri, STRING),
	MAY(schema, NUMBER),
};

static const struct member reg_members[] = {
	MAY(length, ALL),     MAY(file, STRING),   MAY(file_offset, NUMBER),
	WORD(map, map_words), MAY(create, BOOL),   MAY(hugepages, LENGTH),
	MAY(attach, NAME),    MAY(access, ACCESS), MAY(init, OBJECT),
};
static const struct member create_members[] = {
	MUST(max_klms, LENGTH),
	WORD(split, split_words),
};
static const struct member fill_members[] = {
	NAMED("layout", layout, WORD, .words = layout_words, .required = true),
	MAY(access, ACCESS),
	MAY(base, NUMBER),
	WORD(split, split_words),
	MAY(klms, LIST),
	MAY(count, LENGTH),
	MAY(blocks, LIST),
};
static const struct member prefetch_members[] = {
	MAY(mr, NAME),
	MAY(offset, NUMBER),
	MAY(length, LENGTH),
	MAY(ranges, LIST),
	WORD(advice, advice_words),
	MAY(flush, BOOL),
	MAY(expect_resident, BOOL),
};
static const struct member write_members[] = {
	MAY(offset, NUMBER), MAY(hex, HEX),	  MAY(file, STRING),	MAY(ramp, BYTE),
	MAY(byte, BYTE),     MAY(length, LENGTH), MAY(unchecked, BOOL),
};
static const struct member read_members[] = {
	MAY(offset, NUMBER),
	MAY(length, LENGTH),
	MAY(to_file, STRING),
	MAY(unchecked, BOOL),
};
static const struct member copy_members[] = {
	MUST(to, NAME),		  MAY(to_offset, NUMBER), MUST(from, NAME),
	MAY(from_offset, NUMBER), MAY(length, LENGTH),
};
static const struct member fetch_add_members[] = {
	MAY(offset, NUMBER),
	MUST(add, NUMBER),
};
static const struct member compare_swap_members[] = {
	MAY(offset, NUMBER),
	MUST(compare, NUMBER),
	MUST(swap, NUMBER),
};
static const struct member translate_members[] = {
	MAY(offset, NUMBER),
	MAY(length, LENGTH),
	MAY(from, NAME),
	MAY(from_offset, NUMBER),
};
static const struct member init_members[] = {
	MAY(ramp, BYTE),
	MAY(byte, BYTE),
	MAY(hex, HEX),
	MAY(file, STRING),
};

#define ENTRY(f, t, r)                                                   \
	{                                                                \
		.name = #f, .type = MEMBER_##t, .required = r,           \
		.offset = offsetof(struct step_entry, f), .bit = BIT_##f \
	}
static const struct member entry_members[] = {
	ENTRY(mr, NAME, true),
	ENTRY(offset, NUMBER, false),
	ENTRY(length, LENGTH, false),
};
enum { BIT_stride = BIT_access + 1 };
static const struct member stride_member[] = { ENTRY(stride, NUMBER, true) };

/* An absent length means to the end. An explicit one of that value is longer than any MR: noted. */
static uint64_t length_or_end(const struct form *form, uint64_t seen, struct step *step)
{
	if (SEEN(length) && form->length == IBMR_TO_END)
		snprintf(step->endless, sizeof(step->endless), "/length");
	return SEEN(length) ? form->length : IBMR_TO_END;
}

/* ---- lists ------------------------------------------------------------------------ */

static int parse_entries(const json_t *list, const char *name, const char *what, bool strides,
			 struct step_entry **ret_entries, size_t *ret_num, struct step *step,
			 struct fail *f)
{
	const struct member_table tables[] = { { entry_members, COUNT(entry_members) },
					       { stride_member, COUNT(stride_member) } };
	const struct at at_list = { .name = name };
	struct at at = { .up = &at_list };
	size_t num = json_array_size(list);
	struct step_entry *entries;
	uint64_t seen;
	int ret;

	if (!num)
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, name, "%s is empty: at least one",
				     name);
	entries = calloc(num, sizeof(*entries));
	if (!entries)
		return fail_nomem(f);
	for (; at.index < num; at.index++) {
		entries[at.index].length = IBMR_TO_END;
		ret = members_parse(json_array_get(list, at.index), &at, what, tables,
				    strides ? 2 : 1, &entries[at.index], &seen, f);
		if (ret) {
			free(entries);
			return ret;
		}
		if (SEEN(length) && entries[at.index].length == IBMR_TO_END)
			snprintf(step->endless, sizeof(step->endless), "/%s/%zu", name, at.index);
	}
	*ret_entries = entries;
	*ret_num = num;
	return 0;
}

/* ---- data --------------------------------------------------------------------------- */

/* Exactly one of hex, file, ramp and byte. */
static int pick_data(const struct form *form, uint64_t seen, const struct at *at, const char *what,
		     struct step_data *ret_data, struct fail *f)
{
	int given = !!SEEN(hex) + !!SEEN(file) + !!SEEN(ramp) + !!SEEN(byte);

	if (!given)
		return member_refuse(f, FAIL_SPEC_MISSING, at, NULL,
				     "%s needs one of 'hex', 'file', 'ramp', 'byte'", what);
	if (given > 1)
		return member_refuse(f, FAIL_SPEC_VALUE, at, NULL,
				     "%s takes one of 'hex', 'file', 'ramp', 'byte', not %d", what,
				     given);
	if (SEEN(hex)) {
		ret_data->kind = DATA_HEX;
		ret_data->text = form->hex;
		ret_data->bytes = strlen(form->hex) / 2;
	} else if (SEEN(file)) {
		ret_data->kind = DATA_FILE;
		ret_data->text = form->file;
	} else {
		ret_data->kind = SEEN(ramp) ? DATA_RAMP : DATA_BYTE;
		ret_data->value = SEEN(ramp) ? form->ramp : form->byte;
	}
	return 0;
}

static int parse_init(const json_t *init, struct step_data *ret_data, struct fail *f)
{
	const struct member_table table = { init_members, COUNT(init_members) };
	const struct at at = { .name = "init" };
	struct form form;
	uint64_t seen;
	int ret;

	memset(&form, 0, sizeof(form));
	ret = members_parse(init, &at, "init", &table, 1, &form, &seen, f);
	return ret ? ret : pick_data(&form, seen, &at, "init", ret_data, f);
}

/* ---- one function a command ------------------------------------------------------------ */

static int reg_file(const struct form *form, uint64_t seen, struct fail *f)
{
	const char *extra = SEEN(file_offset) ? "file_offset"
			    : SEEN(map)	      ? "map"
			    : SEEN(create)    ? "create"
					      : NULL;

	if (!SEEN(file))
		return extra ? member_refuse(f, FAIL_SPEC_MISSING, NULL, NULL,
					     "'%s' needs the member 'file'", extra)
			     : 0;
	if (SEEN(create) && form->create && !form->map)
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, "create",
				     "'create' needs \"map\": \"shared\"");
	if (SEEN(create) && form->create && !SEEN(length))
		return member_refuse(f, FAIL_SPEC_MISSING, NULL, NULL,
				     "'create' needs the member 'length'");
	return 0;
}

/* What memory: exactly one way to say it. */
static int reg_memory(const struct form *form, uint64_t seen, struct fail *f)
{
	int ret;

	if (SEEN(attach) && (SEEN(length) || SEEN(file) || SEEN(hugepages)))
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, "attach",
				     "'attach' brings its memory: no length, file or hugepages");
	if (SEEN(hugepages) && SEEN(file))
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, "hugepages",
				     "'hugepages' is for anonymous memory, not for a file");
	ret = reg_file(form, seen, f);
	if (ret)
		return ret;
	if (!SEEN(attach) && !SEEN(file) && !SEEN(length))
		return member_refuse(f, FAIL_SPEC_MISSING, NULL, NULL,
				     SEEN(hugepages)
					     ? "'hugepages' needs the member 'length'"
					     : "reg needs one of 'length', 'file', 'attach'");
	if (SEEN(hugepages) && form->hugepages & (form->hugepages - 1))
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, "hugepages",
				     "hugepages %" PRIu64 ": a page size is a power of two",
				     form->hugepages);
	return 0;
}

/* The whole address space: no memory of the step's own. */
static int reg_all(const struct form *form, uint64_t seen, struct fail *f)
{
	const char *extra = SEEN(file)	      ? "file"
			    : SEEN(hugepages) ? "hugepages"
			    : SEEN(init)      ? "init"
					      : NULL;

	if (!SEEN(length) || form->length != LENGTH_ALL || !extra)
		return 0;
	return member_refuse(f, FAIL_SPEC_VALUE, NULL, extra,
			     "\"length\": \"all\" is the whole address space and makes no memory: "
			     "'%s' has no meaning",
			     extra);
}

static int finish_reg(const struct form *form, uint64_t seen, struct step *step, struct fail *f)
{
	struct step_reg *reg = &step->reg;
	int ret;

	ret = reg_memory(form, seen, f);
	if (!ret)
		ret = reg_all(form, seen, f);
	if (ret)
		return ret;
	reg->all = SEEN(length) && form->length == LENGTH_ALL;
	reg->length = SEEN(length) && !SEEN(file) ? form->length : length_or_end(form, seen, step);
	reg->file = form->file;
	reg->file_offset = form->file_offset;
	reg->map_shared = form->map;
	reg->create = form->create;
	reg->hugepages = form->hugepages;
	reg->attach = form->attach;
	reg->access = form->access.bits;
	reg->share = form->access.share;
	return SEEN(init) ? parse_init(form->init, &reg->init, f) : 0;
}

static int finish_create(const struct form *form, uint64_t seen, struct step *step, struct fail *f)
{
	step->create.max_klms = form->max_klms;
	step->create.split = SEEN(split);
	return 0;
}

/* The members of the other layout are no members of this one. */
static int fill_foreign(uint64_t seen, bool repeat, struct fail *f)
{
	const char *name = NULL;

	if (repeat)
		name = SEEN(klms) ? "klms" : NULL;
	else
		name = SEEN(blocks) ? "blocks" : SEEN(count) ? "count" : NULL;
	if (!name)
		return 0;
	member_refuse(f, FAIL_SPEC_UNKNOWN_MEMBER, NULL, name, "layout '%s' has no member '%s'",
		      layout_words[repeat], name);
	fail_hint(f, repeat ? "a repeat has 'count' and 'blocks'" : "a list has 'klms'");
	return -EINVAL;
}

static int finish_fill(const struct form *form, uint64_t seen, struct step *step, struct fail *f)
{
	struct step_fill *fill = &step->fill;
	const char *missing;
	int ret;

	fill->repeat = form->layout;
	ret = fill_foreign(seen, fill->repeat, f);
	if (ret)
		return ret;
	if (fill->repeat)
		missing = !SEEN(count) ? "count" : !SEEN(blocks) ? "blocks" : NULL;
	else
		missing = !SEEN(klms) ? "klms" : NULL;
	if (missing)
		return member_refuse(f, FAIL_SPEC_MISSING, NULL, NULL,
				     "layout '%s' needs the member '%s'",
				     layout_words[fill->repeat], missing);
	fill->access = form->access.bits;
	fill->share = form->access.share;
	fill->base = form->base;
	fill->count = form->count;
	fill->split = SEEN(split);
	if (fill->repeat)
		return parse_entries(form->blocks, "blocks", "a block", true, &fill->entries,
				     &fill->num, step, f);
	return parse_entries(form->klms, "klms", "a klm", false, &fill->entries, &fill->num, step,
			     f);
}

static int finish_prefetch(const struct form *form, uint64_t seen, struct step *step,
			   struct fail *f)
{
	struct step_prefetch *p = &step->prefetch;
	const char *extra = SEEN(mr)	   ? "mr"
			    : SEEN(offset) ? "offset"
			    : SEEN(length) ? "length"
					   : NULL;

	p->advice = (enum step_advice)form->advice;
	p->flush = !SEEN(flush) || form->flush;
	p->expect_resident = form->expect_resident;
	p->listed = SEEN(ranges);
	if (p->listed && extra)
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, extra,
				     "'%s' and 'ranges': ranges stand in place of mr, offset and "
				     "length",
				     extra);
	if (p->listed)
		return parse_entries(form->ranges, "ranges", "a range", false, &p->ranges, &p->num,
				     step, f);
	if (!SEEN(mr))
		return member_refuse(f, FAIL_SPEC_MISSING, NULL, NULL,
				     "prefetch needs the member 'mr' or 'ranges'");
	p->ranges = calloc(1, sizeof(*p->ranges));
	if (!p->ranges)
		return fail_nomem(f);
	p->num = 1;
	p->ranges->mr = form->mr;
	p->ranges->offset = form->offset;
	p->ranges->length = length_or_end(form, seen, step);
	return 0;
}

static int finish_write(const struct form *form, uint64_t seen, struct step *step, struct fail *f)
{
	struct step_write *w = &step->write;
	int ret;

	w->offset = form->offset;
	w->unchecked = form->unchecked;
	ret = pick_data(form, seen, NULL, "write", &w->data, f);
	if (ret)
		return ret;
	if (w->data.kind == DATA_RAMP || w->data.kind == DATA_BYTE)
		w->data.bytes = length_or_end(form, seen, step);
	else if (SEEN(length))
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, "length",
				     "'length' goes with 'ramp' or 'byte'; '%s' has its own",
				     SEEN(hex) ? "hex" : "file");
	return 0;
}

static int finish_read(const struct form *form, uint64_t seen, struct step *step, struct fail *f)
{
	step->read.offset = form->offset;
	step->read.length = length_or_end(form, seen, step);
	step->read.to_file = form->to_file;
	step->read.unchecked = form->unchecked;
	return 0;
}

static int finish_copy(const struct form *form, uint64_t seen, struct step *step, struct fail *f)
{
	step->copy.to = form->to;
	step->copy.from = form->from;
	step->copy.to_offset = form->to_offset;
	step->copy.from_offset = form->from_offset;
	step->copy.length = length_or_end(form, seen, step);
	return 0;
}

static int finish_atomic(const struct form *form, uint64_t seen, struct step *step, struct fail *f)
{
	step->atomic.offset = form->offset;
	step->atomic.add = form->add;
	step->atomic.compare = form->compare;
	step->atomic.swap = form->swap;
	return 0;
}

static int finish_translate(const struct form *form, uint64_t seen, struct step *step,
			    struct fail *f)
{
	const char *extra = SEEN(offset) ? "offset" : SEEN(length) ? "length" : NULL;

	if (SEEN(from) && extra)
		return member_refuse(f, FAIL_SPEC_VALUE, NULL, extra,
				     "'%s' and 'from': from asks the other way", extra);
	if (SEEN(from_offset) && !SEEN(from))
		return member_refuse(f, FAIL_SPEC_MISSING, NULL, NULL,
				     "'from_offset' needs the member 'from'");
	step->translate.offset = form->offset;
	step->translate.length = length_or_end(form, seen, step);
	step->translate.from = form->from;
	step->translate.from_offset = form->from_offset;
	return 0;
}

/* ---- a step ------------------------------------------------------------------------------ */

static const struct verb {
	const struct member *members;
	size_t num;
	bool has_mr; /* mr is a required member */
	int (*finish)(const struct form *form, uint64_t seen, struct step *step, struct fail *f);
} verbs[STEP_DO_MAX] = {
	[STEP_REG] = { reg_members, COUNT(reg_members), true, finish_reg },
	[STEP_CREATE] = { create_members, COUNT(create_members), true, finish_create },
	[STEP_FILL] = { fill_members, COUNT(fill_members), true, finish_fill },
	[STEP_INVALIDATE] = { NULL, 0, true, NULL },
	[STEP_DEREG] = { NULL, 0, true, NULL },
	[STEP_PREFETCH] = { prefetch_members, COUNT(prefetch_members), false, finish_prefetch },
	[STEP_WRITE] = { write_members, COUNT(write_members), true, finish_write },
	[STEP_READ] = { read_members, COUNT(read_members), true, finish_read },
	[STEP_COPY] = { copy_members, COUNT(copy_members), false, finish_copy },
	[STEP_FETCH_ADD] = { fetch_add_members, COUNT(fetch_add_members), true, finish_atomic },
	[STEP_COMPARE_SWAP] = { compare_swap_members, COUNT(compare_swap_members), true,
				finish_atomic },
	[STEP_VERIFY] = { NULL, 0, true, NULL },
	[STEP_TRANSLATE] = { translate_members, COUNT(translate_members), true, finish_translate },
};

const char *step_word(enum step_do verb)
{
	return verb_words[verb];
}

bool step_do_from_word(const char *word, enum step_do *ret_verb)
{
	int i;

	for (i = 0; i < STEP_DO_MAX; i++) {
		if (!strcmp(verb_words[i], word)) {
			*ret_verb = i;
			return true;
		}
	}
	return false;
}

const struct member *step_members(enum step_do verb, size_t *ret_num)
{
	*ret_num = verbs[verb].num;
	return verbs[verb].members;
}

const struct member *step_init_members(size_t *ret_num)
{
	*ret_num = COUNT(init_members);
	return init_members;
}

bool step_takes_mr(enum step_do verb)
{
	return verb != STEP_COPY;
}

void step_free(struct step *step)
{
	if (step->verb == STEP_FILL)
		free(step->fill.entries);
	else if (step->verb == STEP_PREFETCH)
		free(step->prefetch.ranges);
}

/* The members of tables, then the command's own rules. */
static int parse_form(const json_t *object, enum step_do verb, const char *what,
		      const struct member_table *tables, size_t num, struct step *ret_step,
		      struct fail *f)
{
	struct step step;
	struct form form;
	uint64_t seen;
	int ret;

	memset(&form, 0, sizeof(form));
	memset(&step, 0, sizeof(step));
	ret = members_parse(object, NULL, what, tables, num, &form, &seen, f);
	if (ret)
		return ret;
	step.verb = verb;
	step.mr = form.mr;
	if (SEEN(expect)) {
		ret = expect_form(form.expect, verb, &step.expect_error, f);
		if (ret)
			return ret;
		step.expect = form.expect;
	}
	ret = verbs[verb].finish ? verbs[verb].finish(&form, seen, &step, f) : 0;
	if (!ret)
		*ret_step = step;
	return ret;
}

int step_parse(const json_t *request, struct step *ret_step, struct fail *f)
{
	struct member_table tables[3] = { { frame_members, COUNT(frame_members) } };
	const struct at at = { .name = "do" };
	const json_t *word;
	unsigned verb;
	int ret;

	if (!json_is_object(request))
		return member_refuse(f, FAIL_SPEC_TYPE, NULL, NULL, "%s where a step belongs",
				     json_type_word(request));
	word = json_object_get(request, "do");
	if (!word)
		return member_refuse(f, FAIL_SPEC_MISSING, NULL, NULL,
				     "a step needs the member 'do'");
	ret = word_parse(word, &at, verb_words, &verb, f);
	if (ret)
		return ret;
	tables[1].members = verbs[verb].members;
	tables[1].num = verbs[verb].num;
	if (verbs[verb].has_mr) {
		tables[2].members = mr_member;
		tables[2].num = COUNT(mr_member);
	}
	return parse_form(request, verb, verb_words[verb], tables, 3, ret_step, f);
}

int spec_parse_fill(const json_t *doc, const char *mr, struct step *ret_step, struct fail *f)
{
	const struct member_table tables[] = { { document_members, COUNT(document_members) },
					       { fill_members, COUNT(fill_members) } };
	int ret;

	ret = parse_form(doc, STEP_FILL, "a fill spec", tables, COUNT(tables), ret_step, f);
	if (!ret)
		ret_step->mr = mr;
	return ret;
}
