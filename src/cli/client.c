/* SPDX-License-Identifier: BSD-2-Clause */
#include "client.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "out.h"
#include "place.h"
#include "progress.h"
#include "spec.h"
#include "wire.h"

/* Requests of others come first; each of them is bounded too. */
#define WAIT_MS 300000

static int lost(struct fail *f, int rc, bool sent)
{
	if (rc == -EINTR && signals_check(f))
		return rc;
	if (rc == -ENOMEM)
		return fail_nomem(f);
	if (rc == -ETIMEDOUT) {
		fail_set(f, FAIL_TIMEOUT, "the session did not answer in time");
		f->cause = "session_busy";
		f->err = ETIMEDOUT;
		return rc;
	}
	fail_sys(f, FAIL_SESSION, sent ? "recvmsg" : "sendmsg", -rc, "the session was lost: %s",
		 rc == -EPIPE ? "it closed the connection" : strerror(-rc));
	f->cause = "lost";
	fail_hint(f, sent ? "whether the request was carried out is not known; its MRs are gone if "
			    "the session is"
			  : "the request was not carried out");
	return rc;
}

static int send_request(int fd, const struct cli *cli, json_t *request,
			const struct client_files *files, uint64_t end_ns, struct fail *f)
{
	json_t *message =
		json_pack("{s:i, s:I, s:s*, s:O*, s:O, s:o*}", "version", WIRE_VERSION,
			  "timeout_ms", (json_int_t)cli->opts.timeout_ms, "device",
			  cli->opts.device, "files", files ? files->told : NULL, "request", request,
			  "progress", progress_is_seen() ? json_true() : NULL);
	size_t size = 0;
	char *bytes = message ? wire_pack(message, &size) : NULL;
	int rc;

	json_decref(message);
	if (!bytes)
		return fail_nomem(f);
	rc = wire_send(fd, bytes, size, files ? files->fds : NULL, files ? files->num : 0, end_ns);
	free(bytes);
	/* a session that refuses the message says why before it closes */
	if (rc == -EPIPE || rc == -ECONNRESET)
		return 0;
	return rc ? lost(f, rc, false) : 0;
}

static int no_session(struct fail *f)
{
	fail_set(f, FAIL_SESSION, "what listens there gives answers that are none of a session");
	f->cause = "protocol";
	f->err = EPROTO;
	return -EPROTO;
}

static int receive_json(int fd, uint64_t end_ns, json_t **ret_message, struct fail *f)
{
	struct spec_text text;
	struct fail broken;
	char *bytes;
	int rc;

	rc = wire_receive(fd, end_ns, &bytes, &text.size);
	if (rc)
		return rc == -EBADMSG ? no_session(f) : lost(f, rc, true);
	text.bytes = bytes;
	rc = spec_parse_text(&text, ret_message, &broken);
	free(bytes);
	return rc == -ENOMEM ? fail_nomem(f) : rc ? no_session(f) : 0;
}

/* A message that says how far the work is. */
static bool show_progress(const json_t *message)
{
	const json_t *progress = json_object_get(message, "progress");
	const json_t *done = json_object_get(progress, "done");
	const json_t *total = json_object_get(progress, "total");

	if (!json_is_integer(done) || !json_is_integer(total) || json_integer_value(done) < 0 ||
	    json_integer_value(total) < 0)
		return false;
	progress_show((uint64_t)json_integer_value(done), (uint64_t)json_integer_value(total));
	return true;
}

int client_receive(int fd, uint64_t end_ns, json_t **ret_reply, struct fail *f)
{
	json_t *reply;
	int rc;

	for (;;) {
		rc = receive_json(fd, end_ns, &reply, f);
		if (rc || !show_progress(reply))
			break;
		json_decref(reply);
	}
	progress_end();
	if (rc)
		return rc;
	if (json_is_object(reply) && json_is_boolean(json_object_get(reply, "ok")) &&
	    json_is_object(json_object_get(reply, client_ok(reply) ? "result" : "error"))) {
		*ret_reply = reply;
		return 0;
	}
	json_decref(reply);
	return no_session(f);
}

/* What comes after the last answer of a session is its end. */
static void wait_for_end(int fd, uint64_t end_ns)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char byte;

	while (now_ns() < end_ns && !signals_cancel)
		if (poll(&p, 1, 1000) > 0 && read(fd, &byte, 1) <= 0)
			return;
}

int client_ask(const struct cli *cli, json_t *request, const struct client_files *files,
	       bool wait_end, json_t **ret_reply, struct fail *f)
{
	uint64_t end_ns = now_ns() + (WAIT_MS + cli->opts.timeout_ms) * UINT64_C(1000000);
	struct place place;
	int rc, fd;

	rc = place_open(cli->opts.socket, false, &place, f);
	if (rc)
		return rc;
	rc = place_connect(&place, &fd, f);
	if (rc)
		goto close_place;
	rc = send_request(fd, cli, request, files, end_ns, f);
	if (!rc)
		rc = client_receive(fd, end_ns, ret_reply, f);
	if (!rc && wait_end)
		wait_for_end(fd, end_ns);
	close(fd);
close_place:
	place_close(&place);
	return rc;
}

/* ---- the answer --------------------------------------------------------------------- */

bool client_ok(const json_t *reply)
{
	return json_is_true(json_object_get(reply, "ok"));
}

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

void client_fail(const json_t *reply, struct fail *ret_fail)
{
	const json_t *error = json_object_get(reply, "error");
	const char *code = text_of(error, "code");
	const char *message = text_of(error, "message");
	const char *hint = text_of(error, "hint");
	const char *where = text_of(error, "where");

	fail_set(ret_fail, code ? fail_code_from_name(code) : FAIL_NONE, "%s",
		 message ? message : "no message");
	if (ret_fail->code == FAIL_NONE)
		ret_fail->code = FAIL_SESSION;
	if (hint)
		fail_hint(ret_fail, "%s", hint);
	if (where && strlen(where) < sizeof(ret_fail->where)) {
		ret_fail->has_where = true;
		memcpy(ret_fail->where, where, strlen(where) + 1);
	}
}

static void device_of(const json_t *reply, struct answer_device *ret_device)
{
	const json_t *device = json_object_get(reply, "device");
	const char *name = text_of(device, "name");

	memset(ret_device, 0, sizeof(*ret_device));
	if (name)
		snprintf(ret_device->name, sizeof(ret_device->name), "%s", name);
	ret_device->software = json_is_true(json_object_get(device, "software"));
}

int client_answer(const struct cli *cli, int fd, json_t *reply)
{
	const bool ok = client_ok(reply);
	const char *member = ok ? "result" : "error";
	const json_t *body = json_object_get(reply, member);
	struct answer_device device;
	struct writer w;
	struct fail fail = { 0 };
	int status;

	if (!ok) {
		client_fail(reply, &fail);
		complain(cli, &fail);
	}
	status = ok ? 0 : fail_exit_status(&fail);
	writer_init(&w, fd, cli->opts.format == FORMAT_JSONL);
	if (cli->opts.format == FORMAT_TEXT) {
		if (ok)
			text_value(&w, body);
	} else {
		device_of(reply, &device);
		answer_head_after(
			&w, cli, ok, &device,
			(uint64_t)(json_number_value(json_object_get(reply, "elapsed_us")) * 1000));
		writer_key(&w, member);
		writer_json(&w, body);
		writer_end(&w, '}');
	}
	json_decref(reply);
	return answer_end(&w, cli, status);
}
