/* SPDX-License-Identifier: BSD-2-Clause */
/* ibmr report: what the answers of validate on many nodes say together. */
#include <errno.h>
#include <unistd.h>

#include "cli.h"
#include "out.h"
#include "report.h"

/* The result of an earlier report. */
static int load_baseline(const char *path, json_t **ret_baseline, struct fail *f)
{
	struct spec_text text;
	json_t *doc, *result;
	int rc;

	*ret_baseline = NULL;
	if (!path)
		return 0;
	rc = spec_read(path, &text, f);
	if (rc)
		return rc;
	rc = spec_parse_text(&text, &doc, f);
	spec_text_free(&text);
	if (rc)
		return rc;
	result = json_object_get(doc, "result");
	if (json_is_array(json_object_get(result, "node_names")) &&
	    json_is_array(json_object_get(result, "failures")))
		*ret_baseline = json_incref(result);
	else
		rc = fail_set(f, FAIL_SPEC_VALUE, "--baseline '%s': no answer of ibmr report's",
			      path);
	json_decref(doc);
	return rc;
}

static int answer(const struct cli *cli, json_t *sum)
{
	struct writer w;

	if (!sum || (cli->opts.format != FORMAT_TEXT && cli->opts.format != FORMAT_HTML))
		return answer_result(cli, NULL, sum);
	writer_init(&w, STDOUT_FILENO, false);
	if (cli->opts.format == FORMAT_HTML)
		report_html(&w, sum);
	else
		report_text(&w, sum);
	json_decref(sum);
	return answer_end(&w, cli, 0);
}

int cmd_report(struct cli *cli)
{
	struct report report;
	json_t *baseline = NULL;
	struct fail fail;
	int rc, i, status;

	rc = report_begin(&report, &fail);
	if (!rc)
		rc = load_baseline(cli->opts.baseline, &baseline, &fail);
	for (i = 0; i < cli->num_args && !rc; i++)
		rc = report_read(&report, cli->args[i], &fail);
	if (!rc && !json_array_size(report.names)) {
		const json_t *first = json_array_get(report.broken, 0);

		fail_set(&fail, FAIL_IO, "no answer of a node was read%s%.300s%s%.300s",
			 first ? ": " : "",
			 first ? json_string_value(json_object_get(first, "input")) : "",
			 first ? ": " : "",
			 first ? json_string_value(json_object_get(first, "message")) : "");
		rc = -EINVAL;
	}
	if (rc)
		status = answer_fail(cli, NULL, &fail);
	else
		status = answer(cli, report_sum(&report, baseline));
	json_decref(baseline);
	report_free(&report);
	return status;
}
