/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "member.h"
#include "patient.h"
#include "result.h"

#define VERSION 1

/* A profile as it is read: numbers are checked before they are a device's. */
struct record {
	uint64_t profile;
	const char *name, *driver, *fw;
	bool software, odp, odp_implicit, umr, repeat_on_demand, atomics;
	uint64_t max_mr_size, max_klms, inline_klms, max_depth, max_stride, max_entry;
	unsigned prefetch;
};

enum {
	BIT_PROFILE,
	BIT_NAME,
	BIT_DRIVER,
	BIT_FW,
	BIT_SOFTWARE,
	BIT_MAX_MR_SIZE,
	BIT_ODP,
	BIT_ODP_IMPLICIT,
	BIT_PREFETCH,
	BIT_ATOMICS,
	BIT_UMR,
	BIT_MAX_KLMS,
	BIT_INLINE_KLMS,
	BIT_MAX_DEPTH,
	BIT_MAX_STRIDE,
	BIT_MAX_ENTRY,
	BIT_REPEAT_ON_DEMAND,
};

/* no and yes as in ibmr_caps. */
enum { PREFETCH_NO, PREFETCH_YES, PREFETCH_UNKNOWN };
static const char *const prefetch_words[] = { "no", "yes", "unknown", NULL };

#define MEMBER(f, t, b, ...)                                                                    \
	{                                                                                       \
		.name = #f, .type = MEMBER_##t, .offset = offsetof(struct record, f), .bit = b, \
		__VA_ARGS__                                                                     \
	}
#define MUST(f, t, b) MEMBER(f, t, b, .required = true)

/* In the order of the file. */
static const struct member members[] = {
	MUST(profile, NUMBER, BIT_PROFILE),
	MUST(name, STRING, BIT_NAME),
	MEMBER(driver, STRING, BIT_DRIVER),
	MEMBER(fw, STRING, BIT_FW),
	MUST(software, BOOL, BIT_SOFTWARE),
	MUST(max_mr_size, NUMBER, BIT_MAX_MR_SIZE),
	MUST(odp, BOOL, BIT_ODP),
	MEMBER(odp_implicit, BOOL, BIT_ODP_IMPLICIT),
	MEMBER(prefetch, WORD, BIT_PREFETCH, .required = true, .words = prefetch_words),
	MUST(atomics, BOOL, BIT_ATOMICS),
	MUST(umr, BOOL, BIT_UMR),
	MUST(max_klms, NUMBER, BIT_MAX_KLMS),
	MUST(inline_klms, NUMBER, BIT_INLINE_KLMS),
	MUST(max_depth, NUMBER, BIT_MAX_DEPTH),
	MUST(max_stride, NUMBER, BIT_MAX_STRIDE),
	MUST(max_entry, NUMBER, BIT_MAX_ENTRY),
	MUST(repeat_on_demand, BOOL, BIT_REPEAT_ON_DEMAND),
};

/* ---- writing ----------------------------------------------------------------- */

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

/* NULL: no memory. */
static char *make_text(const struct ibmr_caps *c, bool software)
{
	const char *prefetch = prefetch_words[c->prefetch < 0 ? PREFETCH_UNKNOWN : c->prefetch];
	json_t *doc;
	char *text;

	doc = json_pack(
		"{s:i, s:s, s:s*, s:s*, s:b, s:o, s:b, s:b, s:s, s:b, s:b, s:I, s:I, s:I, s:I, "
		"s:I, s:b}",
		"profile", VERSION, "name", c->name, "driver", or_null(c->driver), "fw",
		or_null(c->fw), "software", (int)software, "max_mr_size",
		result_hex(c->max_mr_size), "odp", (int)c->odp, "odp_implicit",
		(int)c->odp_implicit, "prefetch", prefetch, "atomics", (int)c->atomics, "umr",
		(int)c->umr, "max_klms", (json_int_t)c->max_klms, "inline_klms",
		(json_int_t)c->inline_klms, "max_depth", (json_int_t)c->max_depth, "max_stride",
		(json_int_t)c->max_stride, "max_entry", (json_int_t)c->max_entry,
		"repeat_on_demand", (int)c->repeat_on_demand);
	text = doc ? json_dumps(doc, JSON_INDENT(2)) : NULL;
	json_decref(doc);
	return text;
}

static int write_text(int fd, const char *path, const char *text, const struct bound *bound,
		      struct fail *f)
{
	int rc = patient_write(fd, text, strlen(text), path, bound, f);

	if (!rc)
		rc = patient_write(fd, "\n", 1, path, bound, f);
	/* closing can be where a full disk is told */
	if (close(fd) && !rc)
		rc = patient_fail(f, "close", path, errno);
	return rc;
}

int profile_save(const char *path, const struct ibmr_caps *caps, bool software, uint32_t timeout_ms,
		 struct fail *f)
{
	const struct bound bound = bound_of(timeout_ms);
	char *text = make_text(caps, software);
	bool made;
	int fd, rc;

	if (!text)
		return fail_nomem(f);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
	made = fd >= 0;
	if (!made)
		fd = patient_open(path, O_WRONLY | O_CREAT | O_TRUNC, &bound, f);
	rc = fd < 0 ? fd : write_text(fd, path, text, &bound, f);
	if (rc && made)
		unlink(path);
	free(text);
	return rc;
}

/* ---- reading ----------------------------------------------------------------- */

/* What the fields of work requests and keys can hold, and no device can go beyond. */
static int check_numbers(const struct record *r, struct fail *f)
{
	const struct {
		const char *name;
		uint64_t value, most;
	} rows[] = {
		{ "max_klms", r->max_klms, 65532 },	  { "inline_klms", r->inline_klms, 65532 },
		{ "max_depth", r->max_depth, 255 },	  { "max_stride", r->max_stride, 65535 },
		{ "max_entry", r->max_entry, INT32_MAX },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].value > rows[i].most)
			return member_refuse(f, FAIL_SPEC_VALUE, NULL, rows[i].name,
					     "%s %" PRIu64 ": at most %" PRIu64, rows[i].name,
					     rows[i].value, rows[i].most);
	return 0;
}

/* Before all else, so that a profile of a later version is told as that. */
static int check_version(const json_t *doc, struct fail *f)
{
	const struct at at = { .name = "profile" };
	const json_t *value = json_object_get(doc, "profile");
	uint64_t version = VERSION;
	int ret;

	ret = value ? spec_number(value, &at, &version, f) : 0;
	if (!ret && version != VERSION)
		ret = member_refuse(f, FAIL_SPEC_VALUE, NULL, "profile",
				    "profile %" PRIu64 " is not known: this ibmr reads %d", version,
				    VERSION);
	return ret;
}

static int parse(const json_t *doc, struct ibmr_caps *ret_caps, struct fail *f)
{
	const struct member_table table = { members, sizeof(members) / sizeof(members[0]) };
	struct record r = { 0 };
	uint64_t seen;
	int ret;

	ret = check_version(doc, f);
	if (!ret)
		ret = members_parse(doc, NULL, "a profile", &table, 1, &r, &seen, f);
	if (!ret)
		ret = check_numbers(&r, f);
	if (!ret && strlen(r.name) >= sizeof(ret_caps->name))
		ret = member_refuse(f, FAIL_SPEC_VALUE, NULL, "name",
				    "the name of a device has at most %zu bytes",
				    sizeof(ret_caps->name) - 1);
	if (ret)
		return ret;
	*ret_caps = (struct ibmr_caps){
		.max_mr_size = r.max_mr_size,
		.odp = r.odp,
		.odp_implicit = r.odp_implicit,
		.prefetch_needs_write = r.driver && !strcmp(r.driver, "rxe"),
		.umr = r.umr,
		.max_klms = (uint32_t)r.max_klms,
		.inline_klms = (uint32_t)r.inline_klms,
		.max_depth = (uint32_t)r.max_depth,
		.max_stride = (uint32_t)r.max_stride,
		.max_entry = r.max_entry,
		.repeat_on_demand = r.repeat_on_demand,
		.prefetch = r.prefetch == PREFETCH_UNKNOWN ? -1 : r.prefetch == PREFETCH_YES,
		.atomics = r.atomics,
	};
	memcpy(ret_caps->name, r.name, strlen(r.name) + 1);
	return 0;
}

int profile_load(const char *path, struct ibmr_caps *ret_caps, struct fail *f)
{
	struct spec_text text;
	json_t *doc = NULL;
	char message[sizeof(f->message)];
	int ret;

	ret = spec_read(path, &text, f);
	if (ret)
		return ret;
	ret = spec_parse_text(&text, &doc, f);
	spec_text_free(&text);
	if (!ret)
		ret = parse(doc, ret_caps, f);
	json_decref(doc);
	if (ret && f->code != FAIL_NO_MEMORY) {
		/* the place is in the profile, not in the document that is checked */
		memcpy(message, f->message, sizeof(message));
		fail_message(f, "profile '%s': %s", path, message);
	}
	return ret;
}
