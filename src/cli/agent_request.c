/* SPDX-License-Identifier: BSD-2-Clause */
/* A message to a session: its frame, whom it is for, and the reply. */
#include "agent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli.h"
#include "member.h"
#include "out.h"
#include "result.h"
#include "soft0_exec.h"
#include "wire.h"

#define MOST_TIMEOUT_MS 86400000u /* a day */

struct frame {
	uint64_t version, timeout_ms;
	const char *device;
	const json_t *files, *request;
	bool progress;
};

enum { BIT_VERSION, BIT_TIMEOUT, BIT_DEVICE, BIT_FILES, BIT_REQUEST, BIT_PROGRESS };

#define MEMBER(n, f, t, b, r)                                                                      \
	{                                                                                          \
		.name = n, .type = MEMBER_##t, .required = r, .offset = offsetof(struct frame, f), \
		.bit = b                                                                           \
	}

static const struct member frame_members[] = {
	MEMBER("version", version, NUMBER, BIT_VERSION, true),
	MEMBER("timeout_ms", timeout_ms, LENGTH, BIT_TIMEOUT, false),
	MEMBER("device", device, STRING, BIT_DEVICE, false),
	MEMBER("files", files, OBJECT, BIT_FILES, false),
	MEMBER("request", request, OBJECT, BIT_REQUEST, true),
	MEMBER("progress", progress, BOOL, BIT_PROGRESS, false),
};

struct file {
	uint64_t fd, number;
	const char *name;
};

enum { BIT_FD, BIT_ERRNO, BIT_NAME };

static const struct member file_members[] = {
	{ .name = "fd", .type = MEMBER_NUMBER, .offset = offsetof(struct file, fd), .bit = BIT_FD },
	{ .name = "errno",
	  .type = MEMBER_LENGTH,
	  .offset = offsetof(struct file, number),
	  .bit = BIT_ERRNO },
	{ .name = "name",
	  .type = MEMBER_STRING,
	  .required = true,
	  .offset = offsetof(struct file, name),
	  .bit = BIT_NAME },
};

/* What a request came to. */
struct outcome {
	const char *command; /* NULL: not known */
	struct reply reply;
	const json_t *expect;
	bool met;
};

static int protocol(struct fail *f, const char *text)
{
	fail_set(f, FAIL_SESSION, "%s", text);
	f->cause = "protocol";
	f->err = EPROTO;
	return -EPROTO;
}

/* ---- files -------------------------------------------------------------------------- */

static int take_file(const json_t *value, const struct at *at, const int *fds, size_t num_fds,
		     struct lent_file *ret_file, struct fail *f)
{
	const struct member_table table = { file_members, 3 };
	struct file file;
	uint64_t seen;
	int rc;

	rc = members_parse(value, at, "a file", &table, 1, &file, &seen, f);
	if (rc)
		return rc;
	if (!(seen & 1u << BIT_FD) == !(seen & 1u << BIT_ERRNO))
		return protocol(f, "a file has one of 'fd' and 'errno'");
	if (seen & 1u << BIT_FD && file.fd >= num_fds)
		return protocol(f, "a file's 'fd' counts the descriptors of the message, from 0");
	if (seen & 1u << BIT_ERRNO && file.number > 4095)
		return protocol(f, "a file's 'errno' is no errno");
	ret_file->name = file.name;
	ret_file->fd = seen & 1u << BIT_FD ? fds[file.fd] : -1;
	ret_file->number = seen & 1u << BIT_FD ? 0 : (int)file.number;
	return 0;
}

static int take_files(const json_t *files, const int *fds, size_t num_fds, struct lent *ret_lent,
		      struct fail *f)
{
	const struct at at_files = { .name = "files" };
	struct at at = { .up = &at_files };
	struct lent_file *file;
	json_t *value;
	int rc;

	memset(ret_lent, 0, sizeof(*ret_lent));
	json_object_foreach((json_t *)files, at.name, value)
	{
		file = !strcmp(at.name, "file")	     ? &ret_lent->file
		       : !strcmp(at.name, "init")    ? &ret_lent->init
		       : !strcmp(at.name, "to_file") ? &ret_lent->to_file
						     : NULL;
		if (!file)
			return protocol(f, "'files' has 'file', 'init' and 'to_file'");
		rc = take_file(value, &at, fds, num_fds, file, f);
		if (rc)
			return rc;
	}
	return 0;
}

/* Each file that the step names was lent: nothing is opened by name here. */
static int check_lent(const struct step *step, const struct lent *lent, struct fail *f)
{
	bool missing = false;

	if (step->verb == STEP_REG)
		missing = (step->reg.file && !lent->file.name) ||
			  (step->reg.init.kind == DATA_FILE && !lent->init.name);
	else if (step->verb == STEP_WRITE)
		missing = step->write.data.kind == DATA_FILE && !lent->file.name;
	else if (step->verb == STEP_READ)
		missing = step->read.to_file && !lent->to_file.name;
	return missing ? protocol(f, "the request names a file and lends no descriptor of it") : 0;
}

/* ---- progress ------------------------------------------------------------------------- */

/* Who asked for it hears how far it is, unless he does not listen. */
static void tell_progress(void *data, uint64_t done, uint64_t total)
{
	const struct agent *agent = data;
	char buf[128];
	ssize_t sent;
	int n = snprintf(buf + WIRE_HEAD, sizeof(buf) - WIRE_HEAD,
			 "{\"version\":%d,\"progress\":{\"done\":%" PRIu64 ",\"total\":%" PRIu64
			 "}}",
			 WIRE_VERSION, done, total);

	wire_put_length((uint8_t *)buf, (uint32_t)n);
	n += WIRE_HEAD;
	sent = wire_sendmsg(agent->asker, buf, (size_t)n, NULL, 0);
	/* behind a part of a message nothing can be understood */
	if (sent > 0 && sent < n)
		shutdown(agent->asker, SHUT_RDWR);
}

/* ---- steps ---------------------------------------------------------------------------- */

static int do_step(struct agent *agent, const struct frame *frame, const struct lent *lent,
		   struct outcome *o)
{
	struct session *s = agent->session;
	struct step step;
	struct fail fail;
	int rc;

	rc = step_parse(frame->request, &step, &o->reply.fail);
	if (rc)
		return rc;
	o->command = step_word(step.verb);
	rc = check_lent(&step, lent, &o->reply.fail);
	if (!rc) {
		s->lent = lent;
		s->progress = frame->progress ? tell_progress : NULL;
		s->progress_data = agent;
		rc = dispatch_step(s, &step, &o->reply);
		s->lent = NULL;
		o->expect = step.expect;
		o->met = outcome_check(&step, &o->reply, &fail) == 0;
	}
	step_free(&step);
	return rc;
}

/* ---- what is asked of the session itself --------------------------------------------------- */

json_t *agent_identity(const struct agent *agent)
{
	return json_pack("{s:s, s:i, s:s, s:s}", "socket", agent->place->path, "pid", (int)getpid(),
			 "device", agent->session->caps.name, "version", IBMR_VERSION);
}

static json_t *status(const struct agent *agent)
{
	const struct session *s = agent->session;
	json_t *more =
		json_pack("{s:I, s:I, s:I, s:I, s:I, s:{s:I, s:I, s:I, s:o}}", "uptime_s",
			  (json_int_t)((now_ns() - agent->start_ns) / 1000000000), "mrs",
			  (json_int_t)s->num_objects, "locked_bytes",
			  (json_int_t)ibmr_ctx_locked_bytes(s->ctx), "clients",
			  (json_int_t)agent->num_clients, "requests", (json_int_t)agent->requests,
			  "limits", "message", (json_int_t)agent->limits.message, "clients",
			  (json_int_t)agent->limits.clients, "objects",
			  (json_int_t)agent->limits.objects, "locked",
			  agent->limits.locked ? json_integer((json_int_t)agent->limits.locked)
					       : json_null());
	json_t *all = agent_identity(agent);

	if (all && more && json_object_update(all, more)) {
		json_decref(all);
		all = NULL;
	}
	json_decref(more);
	return more ? all : NULL;
}

static int reply_status(const struct agent *agent, struct reply *reply)
{
	json_t *all = status(agent);
	struct writer w;
	int rc;

	writer_init_value(&w, &reply->result, 0);
	writer_json(&w, all);
	rc = all && !writer_finish_value(&w) ? 0 : fail_nomem(&reply->fail);
	json_decref(all);
	return rc;
}

static int do_status(struct agent *agent, const char *name, struct reply *reply)
{
	return reply_status(agent, reply);
}

/* The answer is made first: what follows cannot fail for want of memory. */
static int do_stop(struct agent *agent, const char *name, struct reply *reply)
{
	int rc = reply_status(agent, reply);

	if (rc)
		return rc;
	agent->stop = true;
	signals_hold();
	rc = session_close(agent->session, &reply->fail);
	agent->session = NULL;
	place_close(agent->place);
	return rc;
}

/* All MRs, in the order in which they were made. */
static int show_all(const struct session *s, struct reply *reply)
{
	const struct object *o = s->first;
	struct writer w;

	while (o && o->next)
		o = o->next;
	reply_begin(&w, s, reply);
	writer_key(&w, "mrs");
	writer_begin(&w, '[');
	for (; o; o = o->prev)
		writer_mr(&w, o->mr);
	writer_end(&w, ']');
	return reply_end(&w, reply);
}

static int do_show(struct agent *agent, const char *name, struct reply *reply)
{
	const struct at at = { .name = "mr" };
	struct object *object;
	int rc;

	if (!name)
		return show_all(agent->session, reply);
	rc = session_need(agent->session, name, &at, &object, &reply->fail);
	return rc ? rc : reply_mr(agent->session, object->mr, reply);
}

static const struct own_request {
	const char *word;
	bool takes_mr;
	int (*run)(struct agent *agent, const char *name, struct reply *reply);
} own_requests[] = { { "show", true, do_show },
		     { "status", false, do_status },
		     { "stop", false, do_stop } };

static int do_own(struct agent *agent, const struct own_request *own, const json_t *request,
		  struct outcome *o)
{
	struct {
		const char *word, *mr;
	} form = { NULL, NULL };
	const struct member members[] = {
		{ .name = "do", .type = MEMBER_STRING, .required = true, .offset = 0, .bit = 0 },
		{ .name = "mr", .type = MEMBER_NAME, .offset = sizeof(char *), .bit = 1 },
	};
	const struct member_table table = { members, own->takes_mr ? 2 : 1 };
	uint64_t seen;
	int rc;

	o->command = own->word;
	rc = members_parse(request, NULL, own->word, &table, 1, &form, &seen, &o->reply.fail);
	return rc ? rc : own->run(agent, form.mr, &o->reply);
}

/* ---- a message ------------------------------------------------------------------------------- */

static int other_version(long long version, struct fail *f)
{
	fail_set(f, FAIL_SESSION, "this session (ibmr %s) speaks version %d and not %lld",
		 IBMR_VERSION, WIRE_VERSION, version);
	f->cause = "version";
	f->err = EPROTONOSUPPORT;
	fail_hint(f, "ibmr session stop, then start one with the ibmr that you use");
	return -EPROTONOSUPPORT;
}

/* Before all else: another version may have other members. */
static int check_version(const json_t *message, struct fail *f)
{
	const json_t *version = json_object_get(message, "version");

	if (!json_is_integer(version) || json_integer_value(version) == WIRE_VERSION)
		return 0;
	return other_version((long long)json_integer_value(version), f);
}

static int check_frame(const struct agent *agent, const struct frame *frame, struct fail *f)
{
	const char *device = agent->session->caps.name;

	if (frame->version != WIRE_VERSION)
		return other_version((long long)frame->version, f);
	if (frame->device && strcmp(frame->device, device)) {
		fail_set(f, FAIL_SESSION, "the session holds %s, not %s", device, frame->device);
		f->cause = "other_device";
		f->err = ENODEV;
		fail_hint(f, "--socket names another session");
		return -ENODEV;
	}
	return 0;
}

static int do_message(struct agent *agent, const json_t *message, const int *fds, size_t num_fds,
		      struct outcome *o)
{
	const struct member_table table = { frame_members, 6 };
	struct frame frame = { .timeout_ms = 10000 };
	struct fail *f = &o->reply.fail;
	const char *word;
	struct lent lent;
	uint64_t seen;
	size_t i;
	int rc;

	rc = check_version(message, f);
	if (!rc)
		rc = members_parse(message, NULL, "a message", &table, 1, &frame, &seen, f);
	if (!rc)
		rc = check_frame(agent, &frame, f);
	if (!rc)
		rc = take_files(frame.files, fds, num_fds, &lent, f);
	if (rc)
		return rc;
	agent->session->timeout_ms =
		frame.timeout_ms < MOST_TIMEOUT_MS ? (uint32_t)frame.timeout_ms : MOST_TIMEOUT_MS;
	word = json_string_value(json_object_get(frame.request, "do"));
	for (i = 0; word && i < sizeof(own_requests) / sizeof(own_requests[0]); i++)
		if (!strcmp(own_requests[i].word, word))
			return do_own(agent, &own_requests[i], frame.request, o);
	return do_step(agent, &frame, &lent, o);
}

/* ---- the reply --------------------------------------------------------------------------------- */

size_t agent_refusal(const struct fail *f, char buf[AGENT_REFUSAL_ROOM])
{
	static const char head[] = "{\"version\":1,\"command\":null,\"ok\":false,\"device\":null,"
				   "\"elapsed_us\":0,\"expected\":null,\"error\":";
	struct writer w;
	size_t size;

	writer_init(&w, -1, true);
	writer_fail(&w, f);
	size = sizeof(head) - 1 + w.used + 1;
	memcpy(buf + WIRE_HEAD, head, sizeof(head) - 1);
	memcpy(buf + WIRE_HEAD + sizeof(head) - 1, w.buf, w.used);
	buf[WIRE_HEAD + size - 1] = '}';
	wire_put_length((uint8_t *)buf, (uint32_t)size);
	return WIRE_HEAD + size;
}

static void write_reply(struct writer *w, const char *device, const struct outcome *o, uint64_t ns)
{
	const bool ok = o->reply.fail.code == FAIL_NONE;

	writer_begin(w, '{');
	say_int(w, "version", WIRE_VERSION);
	say_string(w, "command", o->command);
	say_bool(w, "ok", ok);
	writer_key(w, "device");
	writer_begin(w, '{');
	say_string(w, "name", device);
	say_bool(w, "software", soft0_here() && soft0_is(device));
	writer_end(w, '}');
	writer_key(w, "elapsed_us");
	writer_micros(w, ns);
	writer_key(w, "expected");
	if (o->expect)
		writer_bool(w, o->met);
	else
		writer_null(w);
	writer_key(w, ok ? "result" : "error");
	if (ok)
		writer_raw(w, o->reply.result.bytes, o->reply.result.size);
	else
		writer_fail(w, &o->reply.fail);
	writer_end(w, '}');
}

static char *pack(const char *device, const struct outcome *o, uint64_t ns, size_t *ret_size)
{
	static const char head[WIRE_HEAD];
	struct growing g = { NULL, 0, 0 };
	struct writer w;

	if (growing_append(&g, head, sizeof(head)))
		return NULL;
	writer_init_value(&w, &g, 0);
	write_reply(&w, device, o, ns);
	if (writer_finish_value(&w) || g.size - WIRE_HEAD > WIRE_MAX_REPLY) {
		growing_free(&g);
		return NULL;
	}
	wire_put_length((uint8_t *)g.bytes, (uint32_t)(g.size - WIRE_HEAD));
	*ret_size = g.size;
	return g.bytes;
}

/* The signal was for the session and not for who asks. */
static void ended(struct fail *f)
{
	fail_set(f, FAIL_SESSION,
		 "the session was ended by a signal while it worked on the request");
	f->cause = "ended";
	f->err = EINTR;
	fail_hint(f, "what the request did until then is released with the session");
}

char *agent_answer(struct agent *agent, char *bytes, size_t size, const int *fds, size_t num_fds,
		   size_t *ret_size)
{
	const struct spec_text text = { bytes, size };
	struct outcome o = { .reply.fail.status = -1 };
	uint64_t start = now_ns();
	char device[sizeof(agent->session->caps.name)];
	json_t *message = NULL;
	char *reply;

	snprintf(device, sizeof(device), "%s", agent->session->caps.name);
	if (!spec_parse_text(&text, &message, &o.reply.fail))
		do_message(agent, message, fds, num_fds, &o);
	if (o.reply.fail.code == FAIL_INTERRUPTED)
		ended(&o.reply.fail);
	agent->last_ns = now_ns();
	agent->busy_ns += agent->last_ns - start;
	agent->requests++;
	reply = pack(device, &o, agent->last_ns - start, ret_size);
	reply_clear(&o.reply);
	json_decref(message);
	return reply;
}
