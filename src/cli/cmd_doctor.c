/* SPDX-License-Identifier: BSD-2-Clause */
/* ibmr doctor: this machine's ability to do the job, and what stands in its way. */
#include "cli.h"
#include "doctor.h"
#include "out.h"
#include "soft0_exec.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *const severity_words[] = { "info", "warning", "error" };

void doctor_find(struct doctor *d, enum severity severity, const char *code, const char *about,
		 const char *advice, const char *fmt, ...)
{
	struct fail text; /* whose message is always UTF-8 */
	char message[sizeof(text.message)];
	json_t *finding;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(message, sizeof(message), fmt, ap);
	va_end(ap);
	fail_set(&text, FAIL_NONE, "%s", message);
	finding =
		json_pack("{s:s, s:s, s:s?, s:s, s:s?}", "severity", severity_words[severity],
			  "code", code, "about", about, "message", text.message, "advice", advice);
	if (json_array_append_new(d->findings, finding))
		d->no_memory = true;
	if ((int)severity > d->worst)
		d->worst = (int)severity;
}

/* Errors first; those of one severity as they were found. */
static json_t *by_severity(const json_t *findings)
{
	json_t *list = json_array(), *finding;
	int severity;
	size_t i;

	for (severity = SEVERITY_ERROR; list && severity >= SEVERITY_INFO; severity--) {
		json_array_foreach(findings, i, finding)
		{
			const char *word = json_string_value(json_object_get(finding, "severity"));

			if (strcmp(word, severity_words[severity]))
				continue;
			if (json_array_append(list, finding)) {
				json_decref(list);
				return NULL;
			}
		}
	}
	return list;
}

static json_t *soft0_part(struct doctor *d)
{
	bool here = soft0_here() || soft0_installed();

	if (!here)
		doctor_find(d, SEVERITY_INFO, "no_soft0", "soft0",
			    "install ibmr whole, its ibmr-soft0 included",
			    "what runs the software device soft0 is not installed");
	return json_pack("{s:b}", "installed", (int)here);
}

static const struct part {
	const char *name;
	json_t *(*look)(struct doctor *d);
} parts[] = {
	{ "system", doctor_system },
	{ "devices", doctor_devices },
	{ "libraries", doctor_libraries },
	{ "providers", doctor_providers },
	{ "bugs", doctor_bugs },
	{ "limits", doctor_limits },
	{ "huge_pages", doctor_huge_pages },
	{ "soft0", soft0_part },
};

/* NULL: no memory. */
static json_t *look(struct doctor *d)
{
	json_t *result = json_pack("{s:n, s:n}", "worst", "findings"); /* they stand first */
	bool failed = !result;
	size_t i;

	for (i = 0; !failed && i < sizeof(parts) / sizeof(parts[0]); i++)
		failed = json_object_set_new(result, parts[i].name, parts[i].look(d));
	failed = failed || d->no_memory ||
		 (d->worst >= 0 &&
		  json_object_set_new(result, "worst", json_string(severity_words[d->worst]))) ||
		 json_object_set_new(result, "findings", by_severity(d->findings));
	if (!failed)
		return result;
	json_decref(result);
	return NULL;
}

static int answer_text(const struct cli *cli, json_t *result)
{
	struct writer w;

	writer_init(&w, STDOUT_FILENO, false);
	doctor_text(&w, result);
	json_decref(result);
	return answer_end(&w, cli, 0);
}

int cmd_doctor(struct cli *cli)
{
	struct doctor d = { .cli = cli, .worst = -1 };
	struct fail fail;
	json_t *result;

	if (soft0_is(cli->opts.device) && !soft0_here()) {
		soft0_exec(cli, NULL, 0, &fail);
		return answer_fail(cli, NULL, &fail);
	}
	d.findings = json_array();
	result = d.findings ? look(&d) : NULL;
	json_decref(d.findings);
	if (signals_check(&fail)) {
		json_decref(result);
		return answer_fail(cli, NULL, &fail);
	}
	if (result && cli->opts.format == FORMAT_TEXT)
		return answer_text(cli, result);
	return answer_result(cli, NULL, result);
}
