/* SPDX-License-Identifier: BSD-2-Clause */
#include "lone_spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spec.h"
#include "utf8.h"

struct given {
	const char *name;
	uint64_t length;
	bool used;
};

/* NAME=SIZE; a name may have '=' in it, a size has none. The name is a copy in names. */
static int parse_given(const char *arg, json_t *names, struct given *ret_given, struct fail *f)
{
	const char *equals = strrchr(arg, '=');
	char why[sizeof(f->message)];
	json_t *name;
	int ret;

	if (!equals)
		return fail_set(f, FAIL_USAGE, "--mr '%s': NAME=SIZE belongs here", arg);
	if (!utf8_all(arg, equals - arg))
		return fail_set(f, FAIL_USAGE, "--mr '%s': the name is not UTF-8", arg);
	name = json_stringn_nocheck(arg, equals - arg);
	if (json_array_append_new(names, name))
		return fail_nomem(f);
	ret_given->used = false;
	ret = spec_name(name, NULL, &ret_given->name, f);
	if (!ret)
		ret = spec_number_text(equals + 1, strlen(equals + 1), NULL, &ret_given->length, f);
	if (ret) {
		f->code = FAIL_USAGE;
		f->has_where = false;
		memcpy(why, f->message, sizeof(why));
		fail_message(f, "--mr '%s': %s", arg, why);
		return ret;
	}
	if (!ret_given->length)
		return fail_set(f, FAIL_USAGE, "--mr '%s': length 0: at least 1", arg);
	return 0;
}

static int parse_givens(const struct lone_spec *spec, json_t *names, struct given *givens,
			struct fail *f)
{
	size_t i, j;
	int ret;

	for (i = 0; i < spec->num_mrs; i++) {
		ret = parse_given(spec->mrs[i], names, &givens[i], f);
		if (ret)
			return ret;
		for (j = 0; j < i; j++)
			if (!strcmp(givens[j].name, givens[i].name))
				return fail_set(f, FAIL_USAGE, "--mr '%s' is given twice",
						givens[i].name);
	}
	return 0;
}

/* Carry out a step of ours; its failure is the document's. */
static int internal_step(struct session *s, const struct step *step, struct fail *f)
{
	struct reply reply;
	int ret = dispatch_step(s, step, &reply);

	if (ret)
		*f = reply.fail;
	reply_clear(&reply);
	return ret;
}

/* A member: with the length it was given, or so long that no entry can pass its end. It has every
 * right that the fill asks for, since a lone spec says nothing of its members' rights. */
static int add_member(const struct lone_spec *spec, struct session *s, const char *name,
		      const struct given *given, uint64_t access, struct fail *f)
{
	struct step reg = { .verb = STEP_REG, .mr = name };
	int ret;

	reg.reg.length = given ? given->length : INT64_MAX;
	if (!given && s->caps.max_mr_size && reg.reg.length > s->caps.max_mr_size)
		reg.reg.length = s->caps.max_mr_size;
	reg.reg.access = (access & IBMR_ACCESS_FILL) | IBMR_ACCESS_LOCAL_WRITE;
	ret = internal_step(s, &reg, f);
	if (ret) {
		f->has_where = false;
		return ret;
	}
	return spec->note ? spec->note(spec->arg, name, given, f) : 0;
}

static int unknown_given(const struct step_fill *fill, const char *name, struct fail *f)
{
	const char **names = calloc(fill->num + 1, sizeof(*names));
	const char *nearest;
	size_t i;

	fail_set(f, FAIL_USAGE, "--mr '%s': the spec names no such MR", name);
	if (!names) /* the hint is a courtesy; the error stands without it */
		return -EINVAL;
	for (i = 0; i < fill->num; i++)
		names[i] = fill->entries[i].mr;
	nearest = spec_nearest(name, names, fill->num);
	if (nearest)
		fail_hint(f, "did you mean '%s'?", nearest);
	free(names);
	return -EINVAL;
}

/* Members for all entries. */
static int add_members(const struct lone_spec *spec, struct session *s,
		       const struct step_fill *fill, struct given *givens, bool *ret_open,
		       struct fail *f)
{
	size_t i, g, num = spec->num_mrs;
	int ret;

	for (i = 0; i < fill->num; i++) {
		struct step_entry *e = &fill->entries[i];

		for (g = 0; g < num && strcmp(givens[g].name, e->mr); g++)
			;
		if (g < num)
			givens[g].used = true;
		if (!session_find(s, e->mr)) {
			ret = add_member(spec, s, e->mr, g < num ? &givens[g] : NULL, fill->access,
					 f);
			if (ret)
				return ret;
		}
		if (g == num && e->length == IBMR_TO_END) {
			e->length = 1;
			*ret_open = true;
		}
	}
	for (g = 0; g < num; g++)
		if (!givens[g].used)
			return unknown_given(fill, givens[g].name, f);
	return 0;
}

static int create_and_fill(struct session *s, const struct step *fill, struct fail *f)
{
	const struct at list = { .name = fill->fill.repeat ? "blocks" : "klms" };
	struct step create = { .verb = STEP_CREATE, .mr = LONE_MR };
	int ret;

	create.create.max_klms = fill->fill.num;
	create.create.split = fill->fill.split;
	ret = internal_step(s, &create, f);
	if (ret) {
		fail_at(f, f->code == FAIL_LIMIT ? &list : NULL);
		return ret;
	}
	return internal_step(s, fill, f);
}

int lone_spec_make(const struct lone_spec *spec, struct session *s, bool *ret_open, struct fail *f)
{
	struct given *givens = calloc(spec->num_mrs + 1, sizeof(*givens));
	json_t *names = json_array();
	struct step step;
	int ret;

	ret = names && givens ? parse_givens(spec, names, givens, f) : fail_nomem(f);
	if (ret)
		goto free_givens;
	ret = spec_parse_fill(spec->doc, LONE_MR, &step, f);
	if (ret)
		goto free_givens;
	ret = add_members(spec, s, &step.fill, givens, ret_open, f);
	if (!ret)
		ret = create_and_fill(s, &step, f);
	step_free(&step);
free_givens:
	json_decref(names);
	free(givens);
	return ret;
}
