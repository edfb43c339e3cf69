/* SPDX-License-Identifier: BSD-2-Clause */
/* The answer of a command: its frame in JSON, its words for eyes, and what a failed write means. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "out.h"

#define STATUS(name) [IBV_WC_##name] = "IBV_WC_" #name
static const char *const status_names[] = {
	STATUS(SUCCESS),
	STATUS(LOC_LEN_ERR),
	STATUS(LOC_QP_OP_ERR),
	STATUS(LOC_EEC_OP_ERR),
	STATUS(LOC_PROT_ERR),
	STATUS(WR_FLUSH_ERR),
	STATUS(MW_BIND_ERR),
	STATUS(BAD_RESP_ERR),
	STATUS(LOC_ACCESS_ERR),
	STATUS(REM_INV_REQ_ERR),
	STATUS(REM_ACCESS_ERR),
	STATUS(REM_OP_ERR),
	STATUS(RETRY_EXC_ERR),
	STATUS(RNR_RETRY_EXC_ERR),
	STATUS(LOC_RDD_VIOL_ERR),
	STATUS(REM_INV_RD_REQ_ERR),
	STATUS(REM_ABORT_ERR),
	STATUS(INV_EECN_ERR),
	STATUS(INV_EEC_STATE_ERR),
	STATUS(FATAL_ERR),
	STATUS(RESP_TIMEOUT_ERR),
	STATUS(GENERAL_ERR),
	STATUS(TM_ERR),
	STATUS(TM_RNDV_INCOMPLETE),
};

static void write_errno(struct writer *w, const char *key, int number)
{
	const char *name = number > 0 ? strerrorname_np(number) : NULL;

	writer_key(w, key);
	/* a number that has no name is still told */
	if (number > 0 && !name) {
		char text[16];

		snprintf(text, sizeof(text), "%d", number);
		writer_string(w, text);
	} else {
		writer_string(w, name);
	}
}

static void write_count(struct writer *w, const char *key, unsigned value)
{
	writer_key(w, key);
	if (value)
		writer_int(w, value);
	else
		writer_null(w);
}

static void write_status(struct writer *w, const struct fail *fail)
{
	char number[16];

	writer_key(w, "status");
	if (fail->status < 0) {
		writer_null(w);
	} else if ((size_t)fail->status < sizeof(status_names) / sizeof(status_names[0])) {
		writer_string(w, status_names[fail->status]);
	} else {
		snprintf(number, sizeof(number), "%d", fail->status);
		writer_string(w, number);
	}
	writer_key(w, "vendor_err");
	if (fail->status < 0)
		writer_null(w);
	else
		writer_int(w, fail->vendor_err);
}

void writer_fail(struct writer *w, const struct fail *fail)
{
	writer_begin(w, '{');
	writer_key(w, "code");
	writer_string(w, fail_code_name(fail->code));
	writer_key(w, "cause");
	writer_string(w, fail->cause);
	writer_key(w, "certain");
	if (fail->cause)
		writer_bool(w, !fail->suspected);
	else
		writer_null(w);
	write_errno(w, "errno", fail->err);
	write_errno(w, "sys_errno", fail->sys_errno);
	writer_key(w, "origin");
	writer_string(w, fail->origin);
	writer_key(w, "where");
	writer_string(w, fail->has_where ? fail->where : NULL);
	write_count(w, "line", fail->line);
	write_count(w, "column", fail->column);
	write_status(w, fail);
	writer_key(w, "message");
	writer_string(w, fail->message);
	writer_key(w, "hint");
	writer_string(w, fail->hint[0] ? fail->hint : NULL);
	writer_end(w, '}');
}

/* In documents a command is spelled as the step of that name. */
static void write_command(struct writer *w, const struct cli *cli)
{
	char word[32];
	char *c;

	writer_key(w, "command");
	if (!cli->command) {
		writer_null(w);
		return;
	}
	snprintf(word, sizeof(word), "%s", cli->command->word);
	for (c = word; *c; c++)
		*c = *c == '-' ? '_' : *c;
	writer_string(w, word);
}

void answer_head(struct writer *w, const struct cli *cli, bool ok, const struct answer_device *dev)
{
	answer_head_after(w, cli, ok, dev, now_ns() - cli->start_ns);
}

void answer_head_after(struct writer *w, const struct cli *cli, bool ok,
		       const struct answer_device *dev, uint64_t ns)
{
	writer_begin(w, '{');
	writer_key(w, "schema");
	writer_int(w, 1);
	write_command(w, cli);
	writer_key(w, "ok");
	writer_bool(w, ok);
	writer_key(w, "device");
	if (dev && dev->name[0]) {
		writer_begin(w, '{');
		writer_key(w, "name");
		writer_string(w, dev->name);
		writer_key(w, "software");
		writer_bool(w, dev->software);
		writer_end(w, '}');
	} else {
		writer_null(w);
	}
	writer_key(w, "elapsed_us");
	writer_micros(w, ns);
}

void complain(const struct cli *cli, const struct fail *fail)
{
	const char *word = cli->command ? cli->command->word : NULL;

	fprintf(stderr, "ibmr%s%s: %s: %s", word ? " " : "", word ? word : "",
		fail_code_name(fail->code), fail->message);
	if (fail->has_where && fail->where[0])
		fprintf(stderr, " (at %s)", fail->where);
	fputc('\n', stderr);
	if (fail->hint[0])
		fprintf(stderr, "ibmr: hint: %s\n", fail->hint);
}

int answer_end(struct writer *w, const struct cli *cli, int status)
{
	struct fail fail;
	int rc = writer_finish(w);

	if (!rc)
		return status;
	fail_sys(&fail, FAIL_IO, "write", -rc, "standard output: %s", strerror(-rc));
	complain(cli, &fail);
	/* the answer did not arrive, so nothing that it said counts */
	return fail_exit_status(&fail);
}

int answer_fail(const struct cli *cli, const struct answer_device *dev, const struct fail *fail)
{
	return answer_fail_on(cli, STDOUT_FILENO, dev, fail);
}

/* The forms that have words of their own for "there is no answer". */
static int foreign_fail(const struct cli *cli, const struct fail *fail)
{
	const bool nagios = cli->opts.format == FORMAT_NAGIOS;
	char line[1200];
	struct writer w;

	snprintf(line, sizeof(line), "%s %s: %s", nagios ? "IBMR UNKNOWN:" : "Bail out!",
		 fail_code_name(fail->code), fail->message);
	line[strcspn(line, "|\n")] = '\0';
	writer_init(&w, STDOUT_FILENO, false);
	writer_text(&w, line);
	return answer_end(&w, cli, nagios ? 3 : fail_exit_status(fail));
}

int answer_fail_on(const struct cli *cli, int fd, const struct answer_device *dev,
		   const struct fail *fail)
{
	struct writer w;

	complain(cli, fail);
	if (cli->opts.format == FORMAT_NAGIOS || cli->opts.format == FORMAT_TAP)
		return foreign_fail(cli, fail);
	if (cli->opts.format != FORMAT_JSON && cli->opts.format != FORMAT_JSONL)
		return fail_exit_status(fail);
	writer_init(&w, fd, cli->opts.format == FORMAT_JSONL);
	answer_head(&w, cli, false, dev);
	writer_key(&w, "error");
	writer_fail(&w, fail);
	writer_end(&w, '}');
	return answer_end(&w, cli, fail_exit_status(fail));
}

int answer_result(const struct cli *cli, const struct answer_device *dev, json_t *result)
{
	struct writer w;
	struct fail fail;

	if (!result) {
		fail_nomem(&fail);
		return answer_fail(cli, dev, &fail);
	}
	writer_init(&w, STDOUT_FILENO, cli->opts.format == FORMAT_JSONL);
	if (cli->opts.format == FORMAT_TEXT) {
		text_value(&w, result);
		json_decref(result);
		return answer_end(&w, cli, 0);
	}
	answer_head(&w, cli, true, dev);
	writer_key(&w, "result");
	writer_json(&w, result);
	writer_end(&w, '}');
	json_decref(result);
	return answer_end(&w, cli, 0);
}
