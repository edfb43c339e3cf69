/* SPDX-License-Identifier: BSD-2-Clause */
/* ibmr validate: suites of checks on this node's devices, and the answer in the form its reader wants. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "out.h"
#include "utf8.h"
#include "validate.h"
#include "whole_file.h"
#include "words.h"

struct validate {
	struct cli *cli;
	struct suite suite;
	struct watched *devices;
	size_t num;
	unsigned required;
	struct whole_file file; /* of --output */
	int fd;			/* where the answer goes */
	struct writer w;
};

/* ---- what is asked for --------------------------------------------------------------- */

static int check_tags(const struct cli *cli, struct fail *f)
{
	size_t i;

	for (i = 0; i < cli->opts.num_tags; i++) {
		const char *tag = cli->opts.tags[i];

		if (tag[0] == '=' || !strchr(tag, '=') || !utf8_all(tag, strlen(tag)))
			return fail_set(f, FAIL_USAGE,
					"--tag '%.100s': must be NAME=VALUE, in UTF-8", tag);
	}
	return 0;
}

/* The checks that --skip names. */
static int leave_out(struct suite *suite, const char *list, struct fail *f)
{
	const char *at = list;
	size_t i;

	while (at) {
		size_t len = strcspn(at, ",");

		for (i = 0; i < suite->num; i++)
			if (strlen(suite->checks[i].name) == len &&
			    !memcmp(suite->checks[i].name, at, len))
				break;
		if (i == suite->num)
			return fail_set(f, FAIL_USAGE, "--skip: no check has the name '%.*s'",
					len > 64 ? 64 : (int)len, at);
		suite->checks[i].left_out = true;
		at = at[len] ? at + len + 1 : NULL;
	}
	return 0;
}

/* A worker that is ibmr-soft0 has the suite from the one that executed it. */
static int load(struct validate *v, struct fail *f)
{
	struct cli *cli = v->cli;
	int rc = check_tags(cli, f);

	if (!rc)
		rc = needs_parse(cli->opts.require, &v->required, f);
	if (!rc && cli->plan_fd >= 0)
		rc = suite_load_fd(cli->plan_fd, &v->suite, f);
	else if (!rc)
		rc = suite_load(cli->opts.suite ? cli->opts.suite : "quick", &v->suite, f);
	if (rc)
		return rc;
	rc = leave_out(&v->suite, cli->opts.skip, f);
	if (rc)
		suite_free(&v->suite);
	return rc;
}

/* ---- devices --------------------------------------------------------------------------- */

static int no_devices(struct fail *f)
{
	fail_set(f, FAIL_NO_DEVICE, "this machine has no RDMA device");
	f->err = ENODEV;
	fail_hint(f, "--device soft0 is the software device");
	return -ENODEV;
}

/* The names of all real devices. They are asked for before a worker is made, and none is opened. */
static int all_devices(struct validate *v, struct fail *f)
{
	struct ibv_device **list;
	int num = 0, i;
	int rc = 0;

	list = ibv_get_device_list(&num);
	if (!list || !num) {
		if (list)
			ibv_free_device_list(list);
		return no_devices(f);
	}
	v->devices = calloc((size_t)num, sizeof(*v->devices));
	for (i = 0; v->devices && i < num; i++) {
		v->devices[i].device = strdup(ibv_get_device_name(list[i]));
		if (!v->devices[i].device)
			rc = fail_nomem(f);
		v->num++;
	}
	ibv_free_device_list(list);
	return v->devices ? rc : fail_nomem(f);
}

static int choose_devices(struct validate *v, struct fail *f)
{
	const struct cli_options *opts = &v->cli->opts;
	size_t i, k;

	if (opts->all && opts->num_devices)
		return fail_set(f, FAIL_USAGE, "--all and --device: one of them");
	if (opts->all)
		return all_devices(v, f);
	for (i = 0; i < opts->num_devices; i++)
		for (k = 0; k < i; k++)
			if (!strcmp(opts->devices[i], opts->devices[k]))
				return fail_set(f, FAIL_USAGE, "--device '%.64s' is given twice",
						opts->devices[i]);
	k = opts->num_devices ? opts->num_devices : 1;
	v->devices = calloc(k, sizeof(*v->devices));
	if (!v->devices)
		return fail_nomem(f);
	v->num = k;
	v->devices[0].device = opts->device;
	for (i = 0; i < opts->num_devices; i++)
		v->devices[i].device = opts->devices[i];
	return 0;
}

static void free_devices(struct validate *v)
{
	size_t i;

	watch_free(v->devices, v->num);
	for (i = 0; v->cli->opts.all && i < v->num; i++)
		free((char *)v->devices[i].device);
	free(v->devices);
}

/* ---- the answer --------------------------------------------------------------------------- */

/* jsonl: a line for each check as it ends. */
static void write_check(void *arg, const struct watched *w, const json_t *check)
{
	struct validate *v = arg;
	json_t *line = json_pack("{s:O}", "device", json_object_get(w->about, "name"));

	if (!line || json_object_update(line, (json_t *)check))
		v->w.error = -ENOMEM;
	writer_init(&v->w, v->fd, true);
	writer_json(&v->w, line);
	if (writer_finish(&v->w))
		signals_cancel = 1; /* nobody takes our lines */
	json_decref(line);
}

/* The members stand beside ok, as a run's steps do; jsonl has said the checks already. */
static void write_json(struct validate *v, const json_t *answer, int status, const json_t *error)
{
	const bool lines = v->cli->opts.format == FORMAT_JSONL;
	json_t *obj = (json_t *)answer;
	void *it;

	answer_head(&v->w, v->cli, status == 0, NULL);
	if (status) {
		writer_key(&v->w, "error");
		writer_json(&v->w, error);
	}
	for (it = json_object_iter(obj); it; it = json_object_iter_next(obj, it)) {
		if (lines && !strcmp(json_object_iter_key(it), "devices"))
			continue;
		writer_key(&v->w, json_object_iter_key(it));
		writer_json(&v->w, json_object_iter_value(it));
	}
	writer_end(&v->w, '}');
}

/* Returns the exit status. */
static int write_answer(struct validate *v, const json_t *answer, int status, const json_t *error)
{
	writer_init(&v->w, v->fd, v->cli->opts.format == FORMAT_JSONL);
	switch (v->cli->opts.format) {
	case FORMAT_TEXT:
		validate_text(&v->w, answer);
		break;
	case FORMAT_TAP:
		validate_tap(&v->w, answer);
		break;
	case FORMAT_JUNIT:
		validate_junit(&v->w, answer);
		break;
	case FORMAT_PROMETHEUS:
		validate_prometheus(&v->w, answer);
		break;
	case FORMAT_NAGIOS:
		status = validate_nagios(&v->w, answer, status);
		break;
	default:
		write_json(v, answer, status, error);
		break;
	}
	return answer_end(&v->w, v->cli, status);
}

/* With --output the file has its name when all of the answer is in it. */
static int keep_output(struct validate *v, int status)
{
	struct fail fail;

	if (!v->cli->opts.output)
		return status;
	if (v->w.error) {
		whole_file_drop(&v->file);
		return status;
	}
	if (!whole_file_keep(&v->file, &fail))
		return status;
	complain(v->cli, &fail);
	return fail_exit_status(&fail);
}

static int answer(struct validate *v, const struct fail *stopped)
{
	json_t *doc, *error = NULL;
	struct fail fail;
	int status;

	doc = validate_answer(v->cli, &v->suite, v->devices, v->num, v->required);
	status = doc ? validate_status(doc, &error) : 1;
	if (!doc || (status && !error)) {
		json_decref(doc);
		fail_nomem(&fail);
		if (v->cli->opts.output)
			whole_file_drop(&v->file);
		return answer_fail(v->cli, NULL, &fail);
	}
	if (stopped)
		complain(v->cli, stopped);
	if (stopped && status)
		status = fail_exit_status(stopped);
	status = keep_output(v, write_answer(v, doc, status, error));
	json_decref(error);
	json_decref(doc);
	return status;
}

/* ---- all of it -------------------------------------------------------------------------------- */

static int run(struct validate *v)
{
	struct cli *cli = v->cli;
	struct fail fail;
	int rc;

	v->fd = STDOUT_FILENO;
	if (cli->opts.output) {
		if (whole_file_open(cli->opts.output, &v->file, &fail))
			return answer_fail(cli, NULL, &fail);
		v->fd = v->file.fd;
	}
	if (!cli->opts.deadline_ms) {
		cli->opts.deadline_ms = v->suite.deadline_ms;
		signals_deadline(cli);
	}
	rc = watch_run(cli, &v->suite, v->devices, v->num,
		       cli->opts.format == FORMAT_JSONL ? write_check : NULL, v, &fail);
	if (!rc || rc == -EINTR)
		return answer(v, rc ? &fail : NULL);
	if (cli->opts.output)
		whole_file_drop(&v->file);
	return answer_fail(cli, NULL, &fail);
}

int cmd_validate(struct cli *cli)
{
	struct validate v = { .cli = cli };
	struct fail fail;
	int status;

	if (load(&v, &fail))
		return cli->plan_fd >= 0 ? worker_give_up(&fail) : answer_fail(cli, NULL, &fail);
	if (cli->plan_fd >= 0)
		status = worker_run(cli, &v.suite, "soft0");
	else if (choose_devices(&v, &fail))
		status = answer_fail(cli, NULL, &fail);
	else
		status = run(&v);
	free_devices(&v);
	suite_free(&v.suite);
	return status;
}
