/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who points at whom. A filled indirect MR has one link per distinct member; each MR knows the
 * links that lead to it. Every walk marks what it has seen with a number of its own, so that shared
 * members are looked at once.
 */
#include "private.h"

#include <inttypes.h>
#include <stdlib.h>

#define ORIGIN "ibmr_mr_fill"

uint32_t ibmri_max_depth(const struct ibmr_ctx *ctx)
{
	return ctx->caps.max_depth ? ctx->caps.max_depth : IBMRI_MAX_DEPTH;
}

static int too_deep(const struct ibmr_mr *mr, uint32_t depth, struct ibmr_err *err)
{
	int ret = ibmri_refuse(
		err, IBMR_E_NESTING, ORIGIN,
		"'%s' would be %u levels deep, more than the %u that device %s follows", mr->name,
		depth, ibmri_max_depth(mr->ctx), mr->ctx->caps.name);

	ibmri_err_cause(err, "depth");
	return ret;
}

/* ---- upwards ---------------------------------------------------------------------- */

static void mark_users(const struct ibmr_mr *mr)
{
	struct ibmri_link *l;

	for (l = mr->users; l; l = l->next) {
		if (l->user->mark == mr->ctx->mark)
			continue;
		l->user->mark = mr->ctx->mark;
		mark_users(l->user);
	}
}

void ibmri_links_mark_users(const struct ibmr_mr *mr)
{
	mr->ctx->mark++;
	mark_users(mr);
}

static int check_cycle(struct ibmr_mr *mr, const struct ibmri_layout *l, struct ibmr_err *err)
{
	uint64_t i;
	int ret;

	if (!mr->users)
		return 0;
	ibmri_links_mark_users(mr);
	for (i = 0; i < l->num; i++) {
		if (l->entries[i].mr->mark != mr->ctx->mark)
			continue;
		ret = ibmri_refuse(err, IBMR_E_NESTING, ORIGIN,
				   "%s %" PRIu64
				   ": '%s' already leads to '%s', which would be a cycle",
				   l->kind == IBMR_LAYOUT_LIST ? "klm" : "block", i,
				   l->entries[i].mr->name, mr->name);
		ibmri_err_cause(err, "cycle");
		ibmri_err_index(err, i);
		return ret;
	}
	return 0;
}

/* Would the users of mr stand its new traits? */
static int check_users_traits(struct ibmr_mr *mr, const struct ibmri_traits *t,
			      struct ibmr_err *err)
{
	struct ibmri_link *l;
	int ret = 0;

	for (l = mr->users; l && !ret; l = l->next) {
		struct ibmr_mr *u = l->user;
		struct ibmri_traits up = { .on_demand = t->on_demand || u->traits.on_demand,
					   .relaxed = t->relaxed || u->traits.relaxed,
					   .depth = t->depth + u->tree.levels };

		if (up.depth < u->traits.depth)
			up.depth = u->traits.depth;

		if (u->mark == mr->ctx->mark && u->mark_value >= up.depth)
			continue;
		u->mark = mr->ctx->mark;
		u->mark_value = up.depth;
		if (up.depth > ibmri_max_depth(mr->ctx))
			return too_deep(u, up.depth, err);
		if (up.on_demand && !u->traits.on_demand && u->layout.kind == IBMR_LAYOUT_REPEAT &&
		    !mr->ctx->caps.repeat_on_demand) {
			ret = ibmri_refuse(
				err, IBMR_E_UNSUPPORTED, ORIGIN,
				"'%s' repeats over '%s', which would lead to on-demand memory",
				u->name, mr->name);
			ibmri_err_cause(err, "repeat_on_demand");
			return ret;
		}
		if (up.relaxed && !u->traits.relaxed && u->access & IBMR_ACCESS_REMOTE_ATOMIC) {
			ret = ibmri_refuse(err, IBMR_E_ACCESS, ORIGIN,
					   "'%s' has remote_atomic over '%s', which would lead to "
					   "relaxed_ordering memory",
					   u->name, mr->name);
			ibmri_err_cause(err, "atomic_over_relaxed_ordering");
			return ret;
		}
		ret = check_users_traits(u, &up, err);
	}
	return ret;
}

/* A user needs the bytes, the address and the rights that it was filled with. */
static int check_users_needs(const struct ibmr_mr *mr, const struct ibmri_layout *l,
			     struct ibmr_err *err)
{
	const struct ibmri_link *u;
	uint64_t missing;
	char text[160];
	int ret;

	for (u = mr->users; u; u = u->next) {
		missing = u->user->access & ~l->access;
		if (u->end > l->total)
			ret = ibmri_refuse(err, IBMR_E_IN_USE, ORIGIN,
					   "'%s' cannot shrink to %" PRIu64
					   " bytes: '%s' uses %" PRIu64 " of it",
					   mr->name, l->total, u->user->name, u->end);
		else if (l->base != u->base)
			ret = ibmri_refuse(err, IBMR_E_IN_USE, ORIGIN,
					   "'%s' cannot move from base 0x%" PRIx64 " to 0x%" PRIx64
					   ": '%s' points at it",
					   mr->name, u->base, l->base, u->user->name);
		else if (missing)
			ret = ibmri_refuse(err, IBMR_E_IN_USE, ORIGIN,
					   "'%s' cannot lose %s: '%s' was filled with it", mr->name,
					   ibmri_access_text(missing, text, sizeof(text)),
					   u->user->name);
		else
			continue;
		ibmri_err_hint(err, "invalidate or deregister '%s' first", u->user->name);
		return ret;
	}
	return 0;
}

/* After the traits of mr changed: those of all above it. */
static void refresh_users(struct ibmr_mr *mr)
{
	struct ibmri_link *l;
	uint64_t i;

	for (l = mr->users; l; l = l->next) {
		struct ibmr_mr *u = l->user;
		struct ibmri_traits t = { 0 };

		for (i = 0; i < u->num_links; i++) {
			const struct ibmri_traits *m = &u->links[i].member->traits;

			t.on_demand |= m->on_demand;
			t.relaxed |= m->relaxed;
			if (m->depth + u->tree.levels > t.depth)
				t.depth = m->depth + u->tree.levels;
		}
		if (t.on_demand == u->traits.on_demand && t.relaxed == u->traits.relaxed &&
		    t.depth == u->traits.depth)
			continue;
		u->traits = t;
		refresh_users(u);
	}
}

/* ---- downwards ------------------------------------------------------------------------ */

int ibmri_links_make(struct ibmr_mr *mr, const struct ibmri_layout *l, uint32_t levels,
		     struct ibmri_link **ret_links, uint64_t *ret_num,
		     struct ibmri_traits *ret_traits, struct ibmr_err *err)
{
	struct ibmri_traits t = { 0 };
	struct ibmri_link *links, *link;
	struct ibmr_mr *m;
	int ret;

	ret = check_users_needs(mr, l, err);
	if (!ret)
		ret = check_cycle(mr, l, err);
	if (ret)
		return ret;
	links = l->num_members ? calloc(l->num_members, sizeof(*links)) : NULL;
	if (!links)
		return ibmri_no_memory(err, ORIGIN, l->num_members * sizeof(*links));
	for (m = l->members, link = links; m; m = m->next_member, link++) {
		*link = (struct ibmri_link){
			.user = mr, .member = m, .end = m->reach, .base = m->base
		};
		t.on_demand |= m->traits.on_demand;
		t.relaxed |= m->traits.relaxed;
		if (m->traits.depth + levels > t.depth)
			t.depth = m->traits.depth + levels;
		if (t.depth > ibmri_max_depth(mr->ctx)) {
			ret = too_deep(mr, t.depth, err);
			ibmri_err_index(err, m->first_entry);
			goto free_links;
		}
	}
	mr->ctx->mark++;
	ret = check_users_traits(mr, &t, err);
	if (ret)
		goto free_links;
	*ret_links = links;
	*ret_num = l->num_members;
	*ret_traits = t;
	return 0;

free_links:
	free(links);
	return ret;
}

void ibmri_links_set(struct ibmr_mr *mr, struct ibmri_link *links, uint64_t num,
		     const struct ibmri_traits *traits)
{
	uint64_t i;

	for (i = 0; i < mr->num_links; i++) {
		struct ibmri_link *l = &mr->links[i];

		*l->pprev = l->next;
		if (l->next)
			l->next->pprev = l->pprev;
		l->member->num_users--;
	}
	free(mr->links);
	for (i = 0; i < num; i++) {
		struct ibmri_link *l = &links[i];

		l->next = l->member->users;
		l->pprev = &l->member->users;
		if (l->next)
			l->next->pprev = &l->next;
		l->member->users = l;
		l->member->num_users++;
	}
	mr->links = links;
	mr->num_links = num;
	mr->traits = *traits;
	refresh_users(mr);
}
