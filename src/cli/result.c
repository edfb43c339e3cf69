/* SPDX-License-Identifier: BSD-2-Clause */
#include "result.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdio.h>

#include "out.h"

/* json_pack returns NULL when a value handed to it is NULL, and takes the others all the same: a part
 * that there was no memory for makes the whole out of memory. */

json_t *result_hex(uint64_t value)
{
	char text[20];

	snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

json_t *result_count(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

static json_t *string_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

json_t *result_whole(json_t *value, int rc)
{
	if (!rc)
		return value;
	json_decref(value);
	return NULL;
}

/* Words of a bit mask, by a function that names one bit. */
static json_t *words(uint64_t bits, const char *(*name)(uint64_t bit))
{
	json_t *list = json_array();
	unsigned i;
	int rc = 0;

	for (i = 0; i < 64 && !rc; i++) {
		const char *word = bits >> i & 1 ? name(UINT64_C(1) << i) : NULL;

		if (word)
			rc = json_array_append_new(list, json_string(word));
	}
	return result_whole(list, rc);
}

/* ---- results of steps ---------------------------------------------------------- */

void reply_begin(struct writer *w, const struct session *s, struct reply *reply)
{
	writer_init_value(w, &reply->result, s->depth);
	writer_begin(w, '{');
}

int reply_end(struct writer *w, struct reply *reply)
{
	writer_end(w, '}');
	return writer_finish_value(w) ? fail_nomem(&reply->fail) : 0;
}

static void say_access(struct writer *w, uint64_t access)
{
	unsigned i;

	writer_key(w, "access");
	writer_begin(w, '[');
	for (i = 0; access >> i; i++)
		if (access >> i & 1 && ibmr_access_name(UINT64_C(1) << i))
			writer_string(w, ibmr_access_name(UINT64_C(1) << i));
	writer_end(w, ']');
}

/* Null of an MR that has no pages of its own to fault in. */
static void say_odp_pages(struct writer *w, const struct ibmr_mr *mr,
			  const struct ibmr_mr_info *info)
{
	struct ibmr_odp_counts counts;

	if (info->indirect || !info->on_demand) {
		say_null(w, "odp_pages");
		return;
	}
	ibmr_mr_odp_counts(mr, &counts);
	writer_key(w, "odp_pages");
	writer_begin(w, '{');
	say_count(w, "faults", counts.faults);
	say_count(w, "prefetched", counts.prefetched);
	say_count(w, "invalidations", counts.invalidations);
	writer_end(w, '}');
}

/* What an indirect MR has and a direct one has not. */
static void say_table(struct writer *w, const struct ibmr_mr_info *info)
{
	static const char *const forms[] = { NULL, "inline", "list_memory", "tree" };
	const bool known = info->indirect && info->state != IBMR_STATE_UNKNOWN;

	say_count(w, "max_klms", info->indirect ? (int64_t)info->max_klms : -1);
	say_count(w, "entries", known ? (int64_t)info->entries : -1);
	say_string(w, "form", forms[info->form]);
	say_count(w, "levels", info->levels ? (int64_t)info->levels : -1);
	say_count(w, "keys", info->keys ? (int64_t)info->keys : -1);
}

static void say_info(struct writer *w, const struct ibmr_mr *mr, const struct ibmr_mr_info *info)
{
	static const char *const states[] = { "registered", "empty", "filled", "invalidated",
					      "unknown" };

	say_string(w, "name", info->name);
	say_string(w, "kind", info->indirect ? "indirect" : "direct");
	say_string(w, "state", states[info->state]);
	say_hex(w, "lkey", info->lkey, 1);
	say_hex(w, "rkey", info->rkey, 1);
	if (info->state == IBMR_STATE_REGISTERED || info->state == IBMR_STATE_FILLED)
		say_hex(w, "base", info->base, 1);
	else
		say_null(w, "base");
	if (info->state == IBMR_STATE_UNKNOWN)
		say_null(w, "length");
	else
		say_int(w, "length", info->length);
	say_access(w, info->access);
	say_bool(w, "on_demand", info->on_demand);
	say_table(w, info);
	say_bool(w, "relaxed_ordering_asked", info->relaxed_asked);
	if (info->relaxed_in_effect < 0)
		say_null(w, "relaxed_ordering_in_effect");
	else
		say_bool(w, "relaxed_ordering_in_effect", info->relaxed_in_effect);
	say_odp_pages(w, mr, info);
	say_string(w, "attach", info->attach);
}

void writer_mr(struct writer *w, const struct ibmr_mr *mr)
{
	struct ibmr_mr_info info;

	ibmr_mr_query(mr, &info);
	writer_begin(w, '{');
	say_info(w, mr, &info);
	writer_end(w, '}');
}

int reply_mr(const struct session *s, const struct ibmr_mr *mr, struct reply *reply)
{
	struct writer w;

	reply_begin(&w, s, reply);
	writer_key(&w, "mr");
	writer_mr(&w, mr);
	return reply_end(&w, reply);
}

json_t *result_tree(const struct growing *text)
{
	const struct spec_text whole = { text->bytes, text->size };
	struct fail unused;
	json_t *tree;

	return spec_parse_text(&whole, &tree, &unused) ? NULL : tree;
}

/* ---- devices ----------------------------------------------------------------- */

static const char *transport_name(uint64_t bit)
{
	switch (bit) {
	case IBV_ODP_SUPPORT_SEND:
		return "send";
	case IBV_ODP_SUPPORT_RECV:
		return "recv";
	case IBV_ODP_SUPPORT_WRITE:
		return "write";
	case IBV_ODP_SUPPORT_READ:
		return "read";
	case IBV_ODP_SUPPORT_ATOMIC:
		return "atomic";
	case IBV_ODP_SUPPORT_SRQ_RECV:
		return "srq_recv";
	default:
		return NULL;
	}
}

static const char *port_state(uint8_t state)
{
	static const char *const names[] = { "nop",   "down",	"init",
					     "armed", "active", "active_defer" };

	return state < sizeof(names) / sizeof(names[0]) ? names[state] : NULL;
}

static json_t *port(const struct ibmr_port *p)
{
	return json_pack("{s:i, s:o, s:o, s:i, s:I, s:I}", "port", (int)p->num, "state",
			 string_or_null(port_state(p->state)), "link_layer",
			 p->link_layer == IBV_LINK_LAYER_ETHERNET     ? json_string("ethernet")
			 : p->link_layer == IBV_LINK_LAYER_INFINIBAND ? json_string("infiniband")
								      : json_null(),
			 "lid", (int)p->lid, "active_mtu", (json_int_t)p->active_mtu_bytes,
			 "max_msg_sz", (json_int_t)p->max_msg_sz);
}

static json_t *ports(const struct ibmr_caps *caps)
{
	json_t *list = json_array();
	uint32_t i;
	int rc = 0;

	for (i = 0; i < caps->num_ports && i < IBMR_MAX_PORTS && !rc; i++)
		rc = json_array_append_new(list, port(&caps->ports[i]));
	return result_whole(list, rc);
}

/* What a device does not say is null, and so is what is no limit: all ones, as mlx5 has it. */
static json_t *said(uint64_t value)
{
	return value && value <= INT64_MAX ? json_integer((json_int_t)value) : json_null();
}

static json_t *guid(uint64_t value)
{
	char text[20];

	snprintf(text, sizeof(text), "0x%016" PRIx64, value);
	return json_string(text);
}

json_t *result_device(const struct ibmr_caps *caps, bool software)
{
	return json_pack("{s:s, s:b, s:b, s:n, s:o, s:o, s:o, s:o, s:{s:b, s:b, s:o}, "
			 "s:{s:b, s:o, s:o, s:o, s:o}, s:o, s:b, s:o}",
			 "name", caps->name, "software", (int)software, "usable", 1, "error",
			 "driver", string_or_null(caps->driver), "fw", string_or_null(caps->fw),
			 "guid", guid(caps->guid), "ports", ports(caps), "odp", "supported",
			 (int)caps->odp, "implicit", (int)caps->odp_implicit, "rc",
			 words(caps->odp_rc, transport_name), "umr", "supported", (int)caps->umr,
			 "max_klms", said(caps->max_klms), "inline_klms", said(caps->inline_klms),
			 "max_depth", said(caps->max_depth), "max_stride", said(caps->max_stride),
			 "prefetch",
			 caps->prefetch < 0 ? json_null() : json_boolean(caps->prefetch), "atomics",
			 (int)caps->atomics, "max_mr_size", said(caps->max_mr_size));
}

json_t *result_fail(const struct fail *fail)
{
	struct spec_text text;
	struct fail unused;
	struct writer w;
	json_t *doc;

	/* the writer has the one list of an error's members */
	writer_init(&w, -1, true);
	writer_fail(&w, fail);
	text = (struct spec_text){ .bytes = w.buf, .size = w.used };
	return w.error || spec_parse_text(&text, &doc, &unused) ? NULL : doc;
}

json_t *result_broken_device(const char *name, bool software, const struct fail *fail)
{
	return json_pack("{s:s, s:b, s:b, s:o, s:n, s:n, s:n, s:[], s:{s:n, s:n, s:[]}, "
			 "s:{s:n, s:n, s:n, s:n, s:n}, s:n, s:n, s:n}",
			 "name", name, "software", (int)software, "usable", 0, "error",
			 result_fail(fail), "driver", "fw", "guid", "ports", "odp", "supported",
			 "implicit", "rc", "umr", "supported", "max_klms", "inline_klms",
			 "max_depth", "max_stride", "prefetch", "atomics", "max_mr_size");
}
