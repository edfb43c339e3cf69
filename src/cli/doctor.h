/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibmr doctor, inside: each part looks at one side of the machine, adds what it found to the findings
 * and returns its part of the answer; NULL: there was no memory for it. Nothing is registered
 * anywhere, and what cannot be looked at is null and never a failure.
 */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include <jansson.h>

#include "cli.h"
#include "out.h"

enum severity { SEVERITY_INFO, SEVERITY_WARNING, SEVERITY_ERROR };

struct doctor {
	const struct cli *cli;
	json_t *findings;
	bool no_memory; /* a finding is missing */
	int worst;	/* enum severity, -1: no finding */
};

extern const char *const severity_words[];

/* Add a finding. about is the thing it is about, or NULL; advice is what to do, or NULL. */
void doctor_find(struct doctor *d, enum severity severity, const char *code, const char *about,
		 const char *advice, const char *fmt, ...) __attribute__((format(printf, 6, 7)));

/* doctor_devices.c: what the kernel has against what opens. */
json_t *doctor_devices(struct doctor *d);
/* doctor_libraries.c: the verbs libraries here, and their bugs. */
json_t *doctor_libraries(struct doctor *d);
json_t *doctor_providers(struct doctor *d);
json_t *doctor_bugs(struct doctor *d);
/* doctor_host.c: kernel and limits. */
json_t *doctor_system(struct doctor *d);
json_t *doctor_limits(struct doctor *d);
json_t *doctor_huge_pages(struct doctor *d);

/* doctor_text.c: the answer for eyes. */
void doctor_text(struct writer *w, const json_t *result);

#endif /* CLI_DOCTOR_H */
