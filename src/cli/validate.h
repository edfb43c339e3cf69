/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ibmr validate, inside: suites of checks, run on each device by a process of its own.
 *
 *   validate_suite.c    documents -> checks: every rule of form, before a device is touched
 *   validate_check.c    one check on one device -> what came of it
 *   validate_worker.c   the process that has the device; says on its standard output what it does
 *   validate_watch.c    starting the workers, and waiting for them no longer than the deadline
 *   validate_answer.c   what came of all of it, as one object
 *   validate_forms.c    the same for eyes, TAP and Nagios; validate_xml.c: JUnit; validate_metrics.c:
 *                       Prometheus
 */
#ifndef CLI_VALIDATE_H
#define CLI_VALIDATE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../lib/ibmr.h"
#include "cli.h"
#include "out.h"
#include "spec.h"

/* ---- suites --------------------------------------------------------------------- */

/* What a check may need of a device or of this machine. */
enum need {
	NEED_ATOMICS,
	NEED_HUGE_PAGES,
	NEED_IMPLICIT,
	NEED_ODP,
	NEED_PREFETCH,
	NEED_UMR,
	NEED_MAX
};
extern const char *const need_words[NEED_MAX + 1];

/* What a step, or all of the check, has to come to. */
struct threshold {
	size_t step;	   /* SIZE_MAX: of the check */
	uint64_t max_us;   /* 0: none */
	uint64_t min_mibs; /* 0: none */
	const char *count; /* NULL: none */
	bool has_min, has_max;
	uint64_t min, max;
};

struct check {
	const char *name, *about;
	unsigned needs; /* 1 << enum need */
	uint64_t rounds;
	struct plan plan;
	struct threshold *thresholds;
	size_t num_thresholds;
	bool left_out; /* by --skip */
};

struct suite {
	const char *name; /* as it was asked for */
	json_t *docs;	  /* what the checks' strings belong to */
	struct check *checks;
	size_t num;
	uint32_t deadline_ms; /* 0: none is stated */
};

/* The suite of --suite: a file, a folder of them, or the name of one that is installed. */
int suite_load(const char *name, struct suite *ret_suite, struct fail *f);
/* From a descriptor, as suite_text made it. */
int suite_load_fd(int fd, struct suite *ret_suite, struct fail *f);
/* All of it as one document; NULL: no memory. */
char *suite_text(const struct suite *suite);
void suite_free(struct suite *suite);

/* ---- one check ------------------------------------------------------------------- */

/* Words of ibmr-result(5). */
enum state { STATE_PASS, STATE_FAIL, STATE_SKIP, STATE_TIMEOUT, STATE_ERROR, STATE_MAX };
extern const char *const state_words[];
enum state state_of(const json_t *entry); /* by its member state */

/* 1 yes, 0 no, -1 nobody knows: by enum need. */
void needs_reported(const struct ibmr_caps *caps, int ret_has[NEED_MAX]);

/* Carry it out on that device; what came of it, or NULL: no memory. *ret_stop: no check after it can be
 * carried out. */
json_t *check_run(const struct cli *cli, const char *device, const struct check *check,
		  const int has[NEED_MAX], bool *ret_stop);
/* What is said of one that was not carried out, or not to its end. f may be NULL. */
json_t *check_entry(const struct check *check, enum state state, const struct fail *f);

/* ---- the processes ---------------------------------------------------------------- */

/* All checks on that device (NULL: the default one). For the process that does nothing else. */
int worker_run(struct cli *cli, const struct suite *suite, const char *device);
/* Say that it ends, and why. Returns its status. */
int worker_give_up(const struct fail *f);

struct watched {
	const char *device; /* NULL: the default one */
	pid_t pid;	    /* 0: not running */
	int fd;
	char *line; /* what has come of a line */
	size_t used, room;
	json_t *about;	 /* as in devices; NULL: it never came */
	json_t *gave_up; /* the error for which the worker ended early, or NULL */
	json_t *checks;	 /* those that ended */
	bool begun;	 /* the one after those began */
	bool stopped;	 /* by us, at the deadline */
	int wait_status;
};

/* Run the suite on each of them. Returns when all have ended or been ended: 0; -EINTR when they were, as f
 * says, and what came up to then counts; another negative errno when they could not be started. each is
 * told of a check's end. */
int watch_run(struct cli *cli, const struct suite *suite, struct watched *devices, size_t num,
	      void (*each)(void *arg, const struct watched *w, const json_t *check), void *arg,
	      struct fail *f);
void watch_free(struct watched *devices, size_t num);

/* ---- the answer -------------------------------------------------------------------- */

/* The words of --require as bits; usage for one that is not known. */
int needs_parse(const char *list, unsigned *ret_needs, struct fail *f);
/* suite, identity, tags, counts and devices; NULL: no memory. */
json_t *validate_answer(const struct cli *cli, const struct suite *suite, struct watched *devices,
			size_t num, unsigned required);
/* The exit status; above 0 *ret_error (owned; NULL: no memory) is the error that is told. */
int validate_status(const json_t *answer, json_t **ret_error);

/* Why a check did not pass, in words; "" when it did. */
const char *validate_why(const json_t *entry);

void validate_text(struct writer *w, const json_t *answer);
void validate_tap(struct writer *w, const json_t *answer);
int validate_nagios(struct writer *w, const json_t *answer, int status);
void validate_junit(struct writer *w, const json_t *answer);
void validate_prometheus(struct writer *w, const json_t *answer);

#endif /* CLI_VALIDATE_H */
