/* SPDX-License-Identifier: BSD-2-Clause */
#include "budget.h"

#include <errno.h>
#include <string.h>

int budget_init(struct budget *b, struct fail *f)
{
	b->mrs = json_array();
	b->places = json_object();
	b->locked = 0;
	if (b->mrs && b->places)
		return 0;
	budget_free(b);
	return fail_nomem(f);
}

void budget_free(struct budget *b)
{
	json_decref(b->mrs);
	json_decref(b->places);
	b->mrs = b->places = NULL;
}

static json_t *describe(const struct ibmr_mr_info *info)
{
	static const char *const forms[] = { NULL, "inline", "list_memory", "tree" };

	return json_pack("{s:s, s:I, s:I, s:s?, s:o, s:o}", "name", info->name, "length",
			 (json_int_t)info->length, "locked_bytes", (json_int_t)info->locked_bytes,
			 "form", forms[info->form], "entries",
			 info->indirect ? json_integer((json_int_t)info->entries) : json_null(),
			 "keys",
			 info->indirect ? json_integer((json_int_t)info->keys) : json_null());
}

int budget_add(struct budget *b, json_t *entry, struct fail *f)
{
	return json_array_append_new(b->mrs, entry) ? fail_nomem(f) : 0;
}

int budget_note(struct budget *b, const struct session *s, const char *name, bool made,
		struct fail *f)
{
	const struct object *object = session_find(s, name);
	uint64_t locked = ibmr_ctx_locked_bytes(s->ctx);
	struct ibmr_mr_info info;
	json_int_t place;

	if (locked > b->locked)
		b->locked = locked;
	if (!object)
		return 0;
	ibmr_mr_query(object->mr, &info);
	if (!made) {
		place = json_integer_value(json_object_get(b->places, name));
		return json_array_set_new(b->mrs, place, describe(&info)) ? fail_nomem(f) : 0;
	}
	place = (json_int_t)json_array_size(b->mrs);
	if (json_object_set_new(b->places, name, json_integer(place)))
		return fail_nomem(f);
	return budget_add(b, describe(&info), f);
}
