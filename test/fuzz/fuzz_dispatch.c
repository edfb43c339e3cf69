/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of well-formed requests to a session on soft0: whatever the order, sizes and rights, each is
 * carried out or refused from the library's own records. That the device refuses what the records
 * allowed, that a verify finds other bytes than it expects, or that a wait ends by its deadline is a
 * defect; and at the end nothing is left on the device.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/session.h"
#include "softdev/soft0.h"
#include "require.h"

#define MAX_REQUESTS 40
#define MAX_ENTRIES  5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *at, *end;
};

static uint8_t byte(struct input *in)
{
	return in->at < in->end ? *in->at++ : 0;
}

/* Sizes near what matters: small ones, around pages, and a few far out. */
static json_int_t number(struct input *in)
{
	static const json_int_t far[] = { 4095,
					  4096,
					  4097,
					  8191,
					  65535,
					  65536,
					  65537,
					  1 << 20,
					  INT64_C(1) << 31,
					  INT64_C(1) << 40,
					  INT64_MAX };
	uint8_t b = byte(in);

	if (b < 128)
		return b;
	if (b < 128 + 64)
		return (b & 63) * 64 + byte(in) % 64;
	return far[b % (sizeof(far) / sizeof(far[0]))];
}

static json_t *name(struct input *in)
{
	char text[] = { (char)('a' + byte(in) % 8), 0 };

	return json_string(text);
}

static json_t *rights(uint8_t bits, bool on_demand)
{
	static const char *const words[] = { "local_write", "remote_write", "remote_read",
					     "remote_atomic" };
	json_t *list = json_array();

	/* half of all MRs have every right, so that most of what follows can work */
	for (unsigned i = 0; i < 4; i++)
		if (bits & 0x80 || bits >> i & 1)
			json_array_append_new(list, json_string(words[i]));
	if (on_demand)
		json_array_append_new(list, json_string("on_demand"));
	return list;
}

static void member(json_t *object, const char *key, json_t *value)
{
	REQUIRE(value && json_object_set_new(object, key, value) == 0);
}

static json_t *entries(struct input *in, bool strides, unsigned num)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < num; i++) {
		json_t *entry = json_object();

		member(entry, "mr", name(in));
		member(entry, "offset", json_integer(number(in)));
		member(entry, "length", json_integer(number(in) | 1));
		if (strides)
			member(entry, "stride", json_integer(number(in)));
		json_array_append_new(list, entry);
	}
	return list;
}

static void fill(struct input *in, json_t *request)
{
	uint8_t shape = byte(in);
	bool repeat = shape & 1;
	unsigned num = 1 + (shape >> 1) % MAX_ENTRIES;

	member(request, "mr", name(in));
	member(request, "layout", json_string(repeat ? "repeat" : "list"));
	member(request, "access", rights(byte(in), false));
	if (shape & 0x40)
		member(request, "base", json_integer(number(in)));
	if (repeat)
		member(request, "count", json_integer(1 + byte(in) % 40));
	if (shape & 0x20)
		member(request, "split", json_string("auto"));
	member(request, repeat ? "blocks" : "klms", entries(in, repeat, num));
}

static void place(struct input *in, json_t *request)
{
	member(request, "mr", name(in));
	member(request, "offset", json_integer(number(in)));
}

/* Either way. */
static void translate(struct input *in, json_t *request)
{
	uint8_t bits = byte(in);

	if (bits & 1) {
		member(request, "mr", name(in));
		member(request, "from", name(in));
		member(request, "from_offset", json_integer(number(in)));
		return;
	}
	place(in, request);
	if (bits & 2)
		member(request, "length", json_integer(1 + number(in) % 65536));
}

/* The next request of the input. */
static json_t *next_request(struct input *in)
{
	static const char *const verbs[] = { "reg",	 "create",    "fill",	      "invalidate",
					     "dereg",	 "prefetch",  "write",	      "read",
					     "copy",	 "fetch_add", "compare_swap", "verify",
					     "translate" };
	unsigned verb = byte(in) % (sizeof(verbs) / sizeof(verbs[0]));
	json_t *request = json_object();
	uint8_t bits;

	REQUIRE(request);
	member(request, "do", json_string(verbs[verb]));
	switch (verb) {
	case 0:
		bits = byte(in);
		member(request, "mr", name(in));
		member(request, "length", json_integer(1 + number(in) % (1 << 21)));
		member(request, "access", rights(bits, bits & 0x40));
		if (bits & 0x20)
			member(request, "init", json_pack("{s:i}", "ramp", bits & 15));
		break;
	case 1:
		member(request, "mr", name(in));
		bits = byte(in);
		member(request, "max_klms", json_integer(1 + bits % 70));
		if (bits & 0x80)
			member(request, "split", json_string("auto"));
		break;
	case 2:
		fill(in, request);
		break;
	case 5:
		place(in, request);
		member(request, "length", json_integer(1 + number(in) % 65536));
		member(request, "advice", json_string(byte(in) & 1 ? "write" : "read"));
		break;
	case 6:
		place(in, request);
		member(request, "ramp", json_integer(byte(in)));
		member(request, "length", json_integer(1 + number(in) % 65536));
		break;
	case 7:
		place(in, request);
		member(request, "length", json_integer(1 + number(in) % 65536));
		break;
	case 8:
		member(request, "to", name(in));
		member(request, "to_offset", json_integer(number(in)));
		member(request, "from", name(in));
		member(request, "from_offset", json_integer(number(in)));
		member(request, "length", json_integer(1 + number(in) % 65536));
		break;
	case 9:
		place(in, request);
		member(request, "add", json_integer(number(in)));
		break;
	case 10:
		place(in, request);
		member(request, "compare", json_integer(number(in)));
		member(request, "swap", json_integer(number(in)));
		break;
	case 12:
		translate(in, request);
		break;
	default:
		member(request, "mr", name(in));
	}
	return request;
}

static void carry_out(struct session *session, const json_t *request)
{
	struct reply reply;
	int ret = dispatch(session, request, &reply);

	if (ret) {
		REQUIRE(reply.fail.code > FAIL_NONE && reply.fail.code < FAIL_MAX);
		REQUIRE(reply.fail.message[0]);
		if (reply.fail.code == FAIL_COMPLETION || reply.fail.code == FAIL_MISMATCH ||
		    reply.fail.code == FAIL_TIMEOUT) {
			fprintf(stderr, "%s: %s\n", fail_code_name(reply.fail.code),
				reply.fail.message);
			json_dumpf(request, stderr, 0);
			abort();
		}
	} else {
		REQUIRE(reply.result.size);
	}
	reply_clear(&reply);
}

static void check_nothing_left(void)
{
	static const char *const names[] = { "live.mr", "live.mkey", "live.qp",
					     "live.cq", "live.pd",   "live.context" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		uint64_t value = 0;

		REQUIRE(soft0_counter(names[i], &value) == 0);
		REQUIRE(value == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct session_opts opts = { .device = soft0_name(), .gid_index = -1, .timeout_ms = 5000 };
	struct input in = { data, data + size };
	struct session *session;
	struct fail f;
	uint8_t bits;

	bits = byte(&in);
	REQUIRE(soft0_set("mode", bits & 1 ? "strict" : "sync") == 0);
	/* so few that split makes trees */
	REQUIRE(soft0_set("max_klms", bits & 2 ? "4" : "65536") == 0);
	REQUIRE(session_open(&opts, &session, &f) == 0);
	for (unsigned i = 0; i < MAX_REQUESTS && in.at < in.end; i++) {
		json_t *request = next_request(&in);

		carry_out(session, request);
		json_decref(request);
	}
	REQUIRE(session_close(session, &f) == 0);
	check_nothing_left();
	return 0;
}
