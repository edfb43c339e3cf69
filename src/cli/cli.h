/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One invocation of ibmr: what the command line said, and the commands.
 *
 * A command reads its struct cli, does its work and ends by printing its answer with one of the
 * answer_ calls of out.h, whose value it returns: the exit status.
 */
#ifndef CLI_H
#define CLI_H

#include <argp.h>
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fail.h"
#include "spec.h"

enum cli_format {
	FORMAT_JSON,
	FORMAT_JSONL,
	FORMAT_TEXT,
	/* of the commands that have them */
	FORMAT_TAP,
	FORMAT_JUNIT,
	FORMAT_PROMETHEUS,
	FORMAT_NAGIOS,
	FORMAT_HTML,
	FORMAT_MAX
};
#define FORMATS_ALL (1u << FORMAT_JSON | 1u << FORMAT_JSONL | 1u << FORMAT_TEXT)

/* Strings are borrowed from argv and the environment. */
struct cli_options {
	const char *device; /* --device, else $IBMR_DEVICE, else NULL */
	const char *socket; /* --socket, else $IBMR_SOCKET, else NULL */
	enum cli_format format;
	uint32_t timeout_ms;  /* of each step */
	uint32_t deadline_ms; /* of the whole command; 0: none */
	uint8_t port;	      /* 0: the first ACTIVE one */
	int gid_index;	      /* -1: the library's choice */
	bool keep_going;
	const char *target;	  /* check */
	const char *save_profile; /* devices */
	const char *from;	  /* translate: MR:OFFSET */
	const char **mrs;	  /* check, translate: each NAME=SIZE as given; owned */
	size_t num_mrs;
	/* validate */
	const char **devices; /* each --device as given; owned */
	size_t num_devices;
	const char **tags; /* each NAME=VALUE as given; owned */
	size_t num_tags;
	const char *suite, *require, *skip, *output;
	bool all, timestamps;
	const char *baseline; /* report */
	/* session */
	bool foreground;
	uint32_t idle_ms;					    /* 0: never */
	uint64_t max_message, max_clients, max_objects, max_locked; /* 0: the default */
};

struct cli {
	struct cli_options opts;
	const struct command *command; /* NULL until the command word is known */
	char **args;		       /* the command's arguments, NULL terminated */
	int num_args;
	json_t *members; /* of the step, from options; owned; NULL: none */
	int argc;	 /* as main got them, for the re-execution */
	char **argv;
	char **own_argv;   /* argv without the command word; args points into it */
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	int plan_fd;	   /* a plan that the ibmr which executed this one had read; -1: none */
	bool reexecuted;
};

/* The keys of all options; one table would hide which command knows which. */
enum cli_key {
	OPT_DEVICE = 0x100,
	OPT_SOCKET,
	OPT_FORMAT,
	OPT_TIMEOUT,
	OPT_DEADLINE,
	OPT_HELP,
	OPT_VERSION,
	OPT_PORT,
	OPT_GID_INDEX,
	OPT_KEEP_GOING,
	OPT_TARGET,
	OPT_FROM,
	OPT_MR,
	OPT_SAVE_PROFILE,
	OPT_SUITE,
	OPT_REQUIRE,
	OPT_SKIP,
	OPT_OUTPUT,
	OPT_TAG,
	OPT_ALL,
	OPT_TIMESTAMPS,
	OPT_BASELINE,
	OPT_FOREGROUND,
	OPT_IDLE_TIMEOUT,
	OPT_MAX_MESSAGE,
	OPT_MAX_CLIENTS,
	OPT_MAX_OBJECTS,
	OPT_MAX_LOCKED,
};

struct command {
	const char *word;
	const char *args; /* for usage and --help: "PLAN" */
	int min_args, max_args;
	bool rest; /* the first argument ends the options: all that follows belongs to it */
	const char *summary;
	const char *doc;
	const struct argp_option *options; /* its own; ends with {0}; NULL: the members of verb */
	int (*run)(struct cli *cli);
	enum step_do verb; /* of an object command */
	unsigned formats;  /* 1 << enum cli_format, beside those that all have */
};

extern const struct command commands[]; /* ends with a NULL word */

/* Parse argv. 0: cli->command is to run. 1: help or version was printed, with *ret_status. Negative:
 * reterr says why (usage, no_memory), and cli->opts.format is what was asked for all the same. */
int cli_parse(struct cli *cli, int argc, char **argv, int *ret_status, struct fail *reterr);
void cli_free(struct cli *cli);

/* "10s", "250ms", "5m", "1h" -> milliseconds; -EINVAL for all else, 0 and what 32 bits do not hold. */
int parse_duration(const char *text, uint32_t *ret_ms);

int cmd_check(struct cli *cli);
int cmd_devices(struct cli *cli);
int cmd_doctor(struct cli *cli);
int cmd_exec(struct cli *cli);
int cmd_object(struct cli *cli);
int cmd_report(struct cli *cli);
int cmd_run(struct cli *cli);
int cmd_session(struct cli *cli);
int cmd_show(struct cli *cli);
int cmd_translate(struct cli *cli);
int cmd_validate(struct cli *cli);

uint64_t now_ns(void);

/* How long something may take. */
struct bound {
	uint64_t end_ns;
	uint32_t ms; /* as asked for, for messages */
};

/* ---- signals.c ----------------------------------------------------------- */

/* Catch SIGINT, SIGTERM and SIGHUP where they are not ignored, and ignore SIGPIPE and SIGXFSZ. From
 * now on the former only raise signals_cancel; no system call is restarted. */
void signals_init(void);
/* Raise signals_cancel when so much time has passed since the start of the program. */
void signals_deadline(const struct cli *cli);
/* For an image that takes this one's place: nothing is lost on the way. */
void signals_block(void);
void signals_restore(void); /* undo init and block, for a program that is not ours */

/* Non-zero when the work should end; lent to ibmr_ctx_opts.cancel. */
extern volatile sig_atomic_t signals_cancel;
/* From now on a signal is noted but ends no wait, so that releasing can finish. */
void signals_hold(void);

/* If the work should end: fill f (interrupted, or timeout for the deadline) and return -EINTR. */
int signals_check(struct fail *f);
/* So much time from now on. */
struct bound bound_of(uint32_t ms);
/* The same as signals_check, and -ETIMEDOUT timeout when the bound is reached. NULL: there is none. */
int bound_check(const struct bound *b, struct fail *f);
/* What is left, 0 to UINT32_MAX, rounded up. */
uint32_t bound_left_ms(const struct bound *b);
/* A failure that the cancel flag caused is what raised it: interrupted or the deadline's timeout. */
void signals_explain(struct fail *f);

#endif /* CLI_H */
