/* SPDX-License-Identifier: BSD-2-Clause */
/* For each line of standard input, a document: "ok", or the word of what the parser has against its
 * form and the place. */
#include <stdio.h>
#include <stdlib.h>

#include "spec.h"

static int check(const json_t *doc, struct fail *f)
{
	enum spec_kind kind;
	struct plan plan;
	struct step step;
	int ret;

	ret = spec_kind(doc, &kind, f);
	if (ret)
		return ret;
	if (kind == SPEC_PLAN) {
		ret = plan_parse(doc, &plan, f);
		if (!ret)
			plan_free(&plan);
	} else {
		ret = spec_parse_fill(doc, "m", &step, f);
		if (!ret)
			step_free(&step);
	}
	return ret;
}

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t len;

	while ((len = getline(&line, &room, stdin)) > 0) {
		struct spec_text text = { line, (size_t)len };
		json_t *doc = NULL;
		struct fail f;

		if (spec_parse_text(&text, &doc, &f) || check(doc, &f))
			printf("%s %s\n", fail_code_name(f.code), f.where);
		else
			printf("ok\n");
		json_decref(doc);
	}
	free(line);
	return ferror(stdin) || fflush(stdout) ? 1 : 0;
}
