/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of commands. */
#include "cli.h"

static const struct argp_option run_options[] = {
	{ "keep-going", OPT_KEEP_GOING, NULL, 0, "Go on after an unexpected step", 0 }, { 0 }
};

static const struct argp_option check_options[] = {
	{ "target", OPT_TARGET, "TARGET", 0,
	  "What to check against: mlx5, rxe, soft0 or a FILE that devices saved", 0 },
	{ "mr", OPT_MR, "NAME=SIZE", 0, "An MR that a lone SPEC names, and its length", 0 },
	{ 0 }
};

static const struct argp_option translate_options[] = {
	{ "from", OPT_FROM, "MR:OFFSET", 0, "Where that byte of a member shows", 0 },
	{ "mr", OPT_MR, "NAME=SIZE", 0, "An MR that the SPEC names, and its length", 0 },
	{ 0 }
};

static const struct argp_option devices_options[] = {
	{ "save-profile", OPT_SAVE_PROFILE, "FILE", 0,
	  "Save the limits of the one device in FILE, for check", 0 },
	{ 0 }
};

static const struct argp_option session_options[] = {
	{ "foreground", OPT_FOREGROUND, NULL, 0, "start: stay in the foreground", 0 },
	{ "idle-timeout", OPT_IDLE_TIMEOUT, "TIME", 0,
	  "start: end when nothing was asked for so long (default: never)", 0 },
	{ "max-message", OPT_MAX_MESSAGE, "SIZE", 0,
	  "start, run: most bytes of a request (default: 16MiB)", 0 },
	{ "max-clients", OPT_MAX_CLIENTS, "N", 0,
	  "start, run: most clients at a time (default: 256)", 0 },
	{ "max-objects", OPT_MAX_OBJECTS, "N", 0, "start, run: most MRs (default: 65536)", 0 },
	{ "max-locked", OPT_MAX_LOCKED, "SIZE", 0,
	  "start, run: most bytes that MRs lock (default: what the system allows)", 0 },
	{ 0 }
};

static const struct argp_option validate_options[] = {
	{ "suite", OPT_SUITE, "SUITE", 0,
	  "What is checked: quick (default), full, a file or a folder of them", 0 },
	{ "all", OPT_ALL, NULL, 0, "Check every device of this machine", 0 },
	{ "require", OPT_REQUIRE, "WORD,...", 0,
	  "What has to be there and proved: atomics, huge_pages, implicit, odp, prefetch, umr", 0 },
	{ "skip", OPT_SKIP, "NAME,...", 0, "Checks to leave out", 0 },
	{ "output", OPT_OUTPUT, "FILE", 0, "Write the answer to FILE, whole or not at all", 0 },
	{ "tag", OPT_TAG, "NAME=VALUE", 0, "A word of yours in the answer", 0 },
	{ "timestamps", OPT_TIMESTAMPS, NULL, 0, "Say in the answer when it was made", 0 },
	{ 0 }
};

static const struct argp_option report_options[] = {
	{ "baseline", OPT_BASELINE, "FILE", 0, "An earlier report: say what changed since", 0 },
	{ 0 }
};

static const struct argp_option no_options[] = { { 0 } };

/* A command on the MRs of a session: its options are the members of the step. */
#define OBJECT(w, v, a, num, s, d)                                                        \
	{                                                                                 \
		.word = w, .verb = STEP_##v, .args = a, .min_args = num, .max_args = num, \
		.summary = s, .doc = d, .run = cmd_object                                 \
	}

const struct command commands[] = {
	{ .word = "devices",
	  .args = "",
	  .summary = "devices, and what each reports it can do",
	  .doc = "Lists the devices of this machine and soft0, with what each reports it can do.",
	  .options = devices_options,
	  .run = cmd_devices },
	{ .word = "run",
	  .args = "PLAN",
	  .min_args = 1,
	  .max_args = 1,
	  .summary = "run a plan's steps in one process",
	  .doc = "Runs the steps of PLAN, a JSON file or - for standard input, and releases all "
		 "they made.",
	  .options = run_options,
	  .run = cmd_run },
	{ .word = "check",
	  .args = "SPEC|PLAN",
	  .min_args = 1,
	  .max_args = 1,
	  .summary = "parse and check, touching no device",
	  .doc = "Checks a SPEC or a PLAN, a file or - for standard input, against a device's "
		 "limits.",
	  .options = check_options,
	  .run = cmd_check },
	{ .word = "doctor",
	  .args = "",
	  .summary = "this machine's ability to do the job",
	  .doc = "Looks at what keeps RDMA memory regions from working on this machine, and says "
		 "what to do about it. Nothing is registered.",
	  .options = no_options,
	  .run = cmd_doctor },
	{ .word = "exec",
	  .args = "-- PROGRAM [ARG...]",
	  .min_args = 1,
	  .max_args = -1,
	  .rest = true,
	  .summary = "run any verbs program on soft0",
	  .doc = "Runs a program with the software device soft0 as its only RDMA device.",
	  .options = no_options,
	  .run = cmd_exec },
	{ .word = "session",
	  .args = "start|stop|status|run [-- CMD [ARG...]]",
	  .min_args = 1,
	  .max_args = -1,
	  .summary = "hold a device and its MRs between commands",
	  .doc = "Starts, ends or shows the process that holds a device and its MRs between "
		 "commands; run gives a command a session of its own.",
	  .options = session_options,
	  .run = cmd_session },
	{ .word = "show",
	  .args = "[NAME]",
	  .max_args = 1,
	  .summary = "the MRs of the session",
	  .doc = "Shows one MR of the session, or all in the order in which they were made.",
	  .options = no_options,
	  .run = cmd_show },
	OBJECT("reg", REG, "NAME", 1, "register memory",
	       "Registers memory in the session: anonymous memory or a file."),
	OBJECT("create", CREATE, "NAME", 1, "make an empty indirect MR",
	       "Makes an empty indirect MR in the session."),
	OBJECT("fill", FILL, "NAME SPEC", 2, "give an indirect MR its KLMs",
	       "Fills an indirect MR of the session as SPEC says, a JSON file or - for standard "
	       "input."),
	OBJECT("invalidate", INVALIDATE, "NAME", 1, "take an indirect MR's KLMs away",
	       "Takes layout and rights of an indirect MR away; its keys stay."),
	OBJECT("prefetch", PREFETCH, "NAME", 1, "fault the pages of an on-demand MR in",
	       "Prefetches pages of an on-demand MR of the session."),
	OBJECT("write", WRITE, "NAME", 1, "write bytes through an MR",
	       "Writes bytes through an MR of the session; without data options, those of "
	       "standard input."),
	OBJECT("read", READ, "NAME", 1, "read bytes through an MR",
	       "Reads bytes through an MR of the session."),
	OBJECT("copy", COPY, "", 0, "copy bytes from MR to MR",
	       "Copies bytes from one MR of the session to another."),
	OBJECT("fetch-add", FETCH_ADD, "NAME", 1, "atomic fetch and add",
	       "Adds to 8 bytes of an MR atomically, and says what was there."),
	OBJECT("compare-swap", COMPARE_SWAP, "NAME", 1, "atomic compare and swap",
	       "Swaps 8 bytes of an MR atomically if they are as stated."),
	OBJECT("verify", VERIFY, "NAME", 1, "prove a filled MR byte by byte",
	       "Proves that each byte of a filled MR is where its layout says."),
	{ .word = "translate",
	  .args = "SPEC|NAME [OFFSET [LENGTH]]",
	  .min_args = 1,
	  .max_args = 3,
	  .summary = "which bytes of which buffers",
	  .doc = "Says which bytes of which buffers a range of an indirect MR is, of the session's "
		 "MR NAME or of SPEC: a file whose name has a / or ends in .json, or -.",
	  .options = translate_options,
	  .run = cmd_translate },
	{ .word = "validate",
	  .args = "",
	  .summary = "prove that this node's devices work",
	  .doc = "Runs a suite of checks on devices, each in a process of its own, and says of "
		 "each check whether it passed and why not. More than one device may be named.",
	  .options = validate_options,
	  .run = cmd_validate,
	  .formats = 1u << FORMAT_TAP | 1u << FORMAT_JUNIT | 1u << FORMAT_PROMETHEUS |
		     1u << FORMAT_NAGIOS },
	{ .word = "report",
	  .args = "FILE|FOLDER|-...",
	  .min_args = 1,
	  .max_args = -1,
	  .summary = "what the answers of many nodes say",
	  .doc = "Reads answers of validate, of any number of nodes, and says what fails, where, "
		 "and which nodes are the odd ones out.",
	  .options = report_options,
	  .run = cmd_report,
	  .formats = 1u << FORMAT_HTML },
	OBJECT("dereg", DEREG, "NAME", 1, "deregister an MR",
	       "Deregisters an MR of the session and frees its memory."),
	{ .word = NULL },
};
