/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line: global options before or after the command word, words matched exactly.
 *
 * argp parses and writes the help; but it takes unique abbreviations, ends the process on an error
 * or, told not to, goes on after --help. So every word is looked at here first, by the same tables:
 * what argp then sees cannot fail but for a value.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "out.h"
#include "spec.h"
#include "step_options.h"
#include "utf8.h"

static const struct argp_option global_options[] = {
	{ "device", OPT_DEVICE, "DEVICE", 0,
	  "Device to use (default: $IBMR_DEVICE, the plan's, the first with an ACTIVE port)", 0 },
	{ "port", OPT_PORT, "N", 0, "Port of the device (default: first ACTIVE)", 0 },
	{ "gid-index", OPT_GID_INDEX, "N", 0, "GID of the port (default: its first RoCE v2 one)",
	  0 },
	{ "socket", OPT_SOCKET, "PATH", 0, "Socket of the session (default: $IBMR_SOCKET)", 0 },
	{ "format", OPT_FORMAT, "FORMAT", 0,
	  "json (default), jsonl or text; validate and report have more", 0 },
	{ "timeout", OPT_TIMEOUT, "TIME", 0, "Bound of each step, e.g. 500ms or 2m (default: 10s)",
	  0 },
	{ "deadline", OPT_DEADLINE, "TIME", 0, "Bound of the whole command (default: none)", 0 },
	{ "help", OPT_HELP, NULL, 0, "Print this help", 0 },
	{ "version", OPT_VERSION, NULL, 0, "Print the version", 0 },
	{ 0 }
};

struct parse {
	struct cli *cli;
	struct fail *fail;
	bool help, version;
};

/* ---- values ------------------------------------------------------------- */

/* Decimal digits only, no sign, no leading zero; -EINVAL otherwise or above max. */
static int parse_digits(const char *text, size_t len, uint64_t max, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t i;

	if (len == 0 || len > 19 || (len > 1 && text[0] == '0'))
		return -EINVAL;
	for (i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return -EINVAL;
		value = value * 10 + (uint64_t)(text[i] - '0');
	}
	if (value > max)
		return -EINVAL;
	*ret_value = value;
	return 0;
}

int parse_duration(const char *text, uint32_t *ret_ms)
{
	static const struct {
		const char *unit;
		uint32_t ms;
	} units[] = { { "ms", 1 }, { "s", 1000 }, { "m", 60000 }, { "h", 3600000 } };
	size_t digits = strspn(text, "0123456789");
	uint64_t value;
	size_t i;

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(text + digits, units[i].unit))
			continue;
		if (parse_digits(text, digits, UINT32_MAX / units[i].ms, &value) || value == 0)
			return -EINVAL;
		*ret_ms = (uint32_t)value * units[i].ms;
		return 0;
	}
	return -EINVAL;
}

static const char *const format_words[FORMAT_MAX] = {
	"json", "jsonl", "text", "tap", "junit", "prometheus", "nagios", "html",
};

static int parse_format(const char *arg, const struct command *command, enum cli_format *ret_format)
{
	unsigned known = FORMATS_ALL | (command ? command->formats : 0);
	size_t i;

	for (i = 0; i < FORMAT_MAX; i++) {
		if (!(known & 1u << i) || strcmp(arg, format_words[i]))
			continue;
		*ret_format = (enum cli_format)i;
		return 0;
	}
	return -EINVAL;
}

static int bad_value(struct parse *p, const char *option, const char *arg, const char *allowed)
{
	return fail_set(p->fail, FAIL_USAGE, "--%s '%s': must be %s", option, arg, allowed);
}

/* An option that may be given more than once. */
static int add_word(struct parse *p, const char ***words, size_t *num, const char *arg)
{
	const char **more = reallocarray(*words, *num + 1, sizeof(*more));

	if (!more)
		return fail_nomem(p->fail);
	*words = more;
	more[(*num)++] = arg;
	return 0;
}

/* Says what the command has. */
static int bad_format(struct parse *p, const char *arg)
{
	const struct command *command = p->cli->command;
	unsigned known = FORMATS_ALL | (command ? command->formats : 0);
	char list[100] = "one of";
	size_t i;

	for (i = 0; i < FORMAT_MAX; i++)
		if (known & 1u << i)
			snprintf(list + strlen(list), sizeof(list) - strlen(list), " %s",
				 format_words[i]);
	return bad_value(p, "format", arg, known == FORMATS_ALL ? "json, jsonl or text" : list);
}

static int take_device(struct parse *p, const char *arg)
{
	struct cli_options *opts = &p->cli->opts;

	opts->device = arg;
	if (!*arg)
		return bad_value(p, "device", arg, "the name of a device");
	return add_word(p, &opts->devices, &opts->num_devices, arg);
}

static int parse_size(struct parse *p, const char *option, const char *arg, uint64_t *ret_size)
{
	struct fail scratch;

	if (spec_number_text(arg, strlen(arg), NULL, ret_size, &scratch) || *ret_size == 0 ||
	    *ret_size > INT64_MAX)
		return bad_value(p, option, arg, "a size above 0, as in ibmr-spec(5)");
	return 0;
}

/* A member of the step that the command is. */
static int take_member(struct parse *p, int key, const char *arg)
{
	struct cli *cli = p->cli;

	if (key < OPT_MEMBER || key >= OPT_MEMBERS_END || !cli->command || cli->command->options)
		return ARGP_ERR_UNKNOWN;
	if (!cli->members)
		cli->members = json_object();
	if (!cli->members)
		return fail_nomem(p->fail);
	return step_option_set(cli->command->verb, key, arg, cli->members, p->fail);
}

static int take_option(struct parse *p, int key, const char *arg)
{
	struct cli_options *opts = &p->cli->opts;
	uint64_t number;

	switch (key) {
	case OPT_DEVICE:
		return take_device(p, arg);
	case OPT_SOCKET:
		opts->socket = arg;
		return *arg ? 0 : bad_value(p, "socket", arg, "a path");
	case OPT_FORMAT:
		return parse_format(arg, p->cli->command, &opts->format) ? bad_format(p, arg) : 0;
	case OPT_TIMEOUT:
		return parse_duration(arg, &opts->timeout_ms)
			       ? bad_value(p, "timeout", arg,
					   "an integer above 0 with ms, s, m or h")
			       : 0;
	case OPT_DEADLINE:
		return parse_duration(arg, &opts->deadline_ms)
			       ? bad_value(p, "deadline", arg,
					   "an integer above 0 with ms, s, m or h")
			       : 0;
	case OPT_PORT:
		if (parse_digits(arg, strlen(arg), 255, &number) || number == 0)
			return bad_value(p, "port", arg, "an integer from 1 to 255");
		opts->port = (uint8_t)number;
		return 0;
	case OPT_GID_INDEX:
		if (parse_digits(arg, strlen(arg), 65535, &number))
			return bad_value(p, "gid-index", arg, "an integer from 0 to 65535");
		opts->gid_index = (int)number;
		return 0;
	case OPT_KEEP_GOING:
		opts->keep_going = true;
		return 0;
	case OPT_TARGET:
		opts->target = arg;
		return *arg ? 0 : bad_value(p, "target", arg, "mlx5, rxe, soft0 or a file");
	case OPT_FROM:
		opts->from = arg;
		return 0;
	case OPT_SAVE_PROFILE:
		opts->save_profile = arg;
		return *arg && strcmp(arg, "-") && utf8_all(arg, strlen(arg))
			       ? 0
			       : bad_value(p, "save-profile", arg, "the name of a file, in UTF-8");
	case OPT_MR:
		return add_word(p, &opts->mrs, &opts->num_mrs, arg);
	case OPT_SUITE:
		opts->suite = arg;
		return *arg ? 0 : bad_value(p, "suite", arg, "a name, a file or a folder");
	case OPT_REQUIRE:
		opts->require = arg;
		return 0;
	case OPT_SKIP:
		opts->skip = arg;
		return 0;
	case OPT_OUTPUT:
		opts->output = arg;
		return *arg ? 0 : bad_value(p, "output", arg, "the name of a file");
	case OPT_TAG:
		return add_word(p, &opts->tags, &opts->num_tags, arg);
	case OPT_ALL:
		opts->all = true;
		return 0;
	case OPT_BASELINE:
		opts->baseline = arg;
		return *arg ? 0 : bad_value(p, "baseline", arg, "the name of a file");
	case OPT_TIMESTAMPS:
		opts->timestamps = true;
		return 0;
	case OPT_FOREGROUND:
		opts->foreground = true;
		return 0;
	case OPT_IDLE_TIMEOUT:
		return parse_duration(arg, &opts->idle_ms)
			       ? bad_value(p, "idle-timeout", arg,
					   "an integer above 0 with ms, s, m or h")
			       : 0;
	case OPT_MAX_MESSAGE:
		return parse_size(p, "max-message", arg, &opts->max_message);
	case OPT_MAX_CLIENTS:
		return parse_size(p, "max-clients", arg, &opts->max_clients);
	case OPT_MAX_OBJECTS:
		return parse_size(p, "max-objects", arg, &opts->max_objects);
	case OPT_MAX_LOCKED:
		return parse_size(p, "max-locked", arg, &opts->max_locked);
	case OPT_HELP:
		p->help = true;
		return 0;
	case OPT_VERSION:
		p->version = true;
		return 0;
	default:
		return take_member(p, key, arg);
	}
}

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
	struct parse *p = state->input;
	struct cli *cli = p->cli;
	int rc;

	switch (key) {
	case ARGP_KEY_INIT:
		/* the global options are a child; it works on the same record */
		if (state->child_inputs)
			state->child_inputs[0] = p;
		return 0;
	case ARGP_KEY_ARG:
		if (cli->command->rest) {
			cli->args = &state->argv[state->next - 1];
			cli->num_args = state->argc - state->next + 1;
			state->next = state->argc;
			return 0;
		}
		if (!cli->args)
			cli->args = state->argv;
		cli->args[cli->num_args++] = arg;
		return 0;
	default:
		rc = take_option(p, key, arg);
		return rc < 0 ? -rc : rc;
	}
}

/* ---- the look before argp -------------------------------------------------- */

static const struct argp_option *find_option(const struct argp_option *table, const char *name,
					     size_t len)
{
	for (; table && table->name; table++)
		if (strlen(table->name) == len && !memcmp(table->name, name, len))
			return table;
	return NULL;
}

static int unknown_option(struct parse *p, const struct argp_option *own, const char *word)
{
	const char *names[32];
	const char *nearest;
	const char *name = word + strspn(word, "-");
	char plain[64];
	size_t num = 0;
	size_t i;

	for (; own && own->name && num < 32; own++)
		names[num++] = own->name;
	for (own = global_options; own->name && num < 32; own++)
		names[num++] = own->name;
	snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(name, "="), name);
	nearest = spec_nearest(plain, names, num);
	for (i = 0; i < num && *plain; i++)
		if (!strncmp(names[i], plain, strlen(plain)))
			nearest = names[i];
	fail_set(p->fail, FAIL_USAGE, "unknown option '%.*s'", (int)strcspn(word, "="), word);
	if (nearest)
		fail_hint(p->fail, "did you mean --%s? options are not abbreviated", nearest);
	else
		fail_hint(p->fail, "--help lists the options");
	return -EINVAL;
}

/* Look at the option argv[*i]: known, with a value exactly when it takes one. Steps over the value. */
static int look_at_option(struct parse *p, const struct argp_option *own, char **argv, int *i)
{
	const char *word = argv[*i];
	const char *name = word + 2;
	size_t len = strcspn(name, "=");
	const struct argp_option *option = NULL;
	const char *value;

	if (word[1] == '-') {
		option = find_option(own, name, len);
		if (!option)
			option = find_option(global_options, name, len);
	}
	if (!option)
		return unknown_option(p, own, word);
	value = name[len] ? name + len + 1 : NULL;
	if (!option->arg && value)
		return fail_set(p->fail, FAIL_USAGE, "--%s takes no value", option->name);
	if (option->arg && !value) {
		value = argv[*i + 1];
		if (!value)
			return fail_set(p->fail, FAIL_USAGE, "--%s needs a value: %s", option->name,
					option->arg);
		++*i;
	}
	/* the answer to a wrong command line has the format it asked for, wherever it did */
	if (value && option->key == OPT_FORMAT)
		parse_format(value, p->cli->command, &p->cli->opts.format);
	return 0;
}

static const struct argp_option *options_of(const struct command *command)
{
	return command->options ? command->options : step_options(command->verb);
}

static const struct command *find_command(const char *word)
{
	const struct command *c;

	for (c = commands; c->word; c++)
		if (!strcmp(c->word, word))
			return c;
	return NULL;
}

static int unknown_command(struct parse *p, const char *word)
{
	const char *names[32];
	const char *nearest;
	size_t num = 0;

	for (; num < 32 && commands[num].word; num++)
		names[num] = commands[num].word;
	nearest = spec_nearest(word, names, num);
	fail_set(p->fail, FAIL_USAGE, "unknown command '%s'", word);
	if (nearest)
		fail_hint(p->fail, "did you mean '%s'?", nearest);
	else
		fail_hint(p->fail, "ibmr --help lists the commands");
	return -EINVAL;
}

/* Go over all words: find the command, leave the others in own_argv, and remember the first thing that
 * is wrong. An unknown command still lets the rest be looked at, for --format. */
static int look(struct parse *p, int argc, char **argv)
{
	struct cli *cli = p->cli;
	const struct argp_option *own = NULL;
	struct fail *told = p->fail;
	struct fail scratch;
	bool have_word = false;
	bool options = true;
	int num = 1;
	int first = 0;
	int from, i, rc;

	cli->own_argv[0] = argv[0];
	for (i = 1; i < argc; i++) {
		from = i;
		rc = 0;
		if (options && !strcmp(argv[i], "--")) {
			options = false;
			if (!have_word)
				continue;
		} else if (options && argv[i][0] == '-' && argv[i][1]) {
			rc = look_at_option(p, own, argv, &i);
		} else if (!have_word) {
			have_word = true;
			options = true;
			cli->command = find_command(argv[i]);
			if (cli->command)
				own = options_of(cli->command);
			else
				rc = unknown_command(p, argv[i]);
			from = i + 1;
		} else if (cli->command && cli->command->rest) {
			i = argc - 1;
		}
		if (rc && !first) {
			first = rc;
			p->fail = &scratch; /* later mistakes are not told */
		}
		while (from <= i)
			cli->own_argv[num++] = argv[from++];
	}
	cli->own_argv[num] = NULL;
	p->fail = told;
	return first;
}

/* ---- help --------------------------------------------------------------------- */

/* Buffered output that did not arrive fails the command like a document that did not. */
static int close_stdout(struct cli *cli)
{
	struct fail fail;

	errno = 0;
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fail_sys(&fail, FAIL_IO, "write", errno ? errno : EIO, "standard output: %s",
		 strerror(errno ? errno : EIO));
	complain(cli, &fail);
	return fail_exit_status(&fail);
}

static void command_list(char *buf, size_t size)
{
	const struct command *c;
	size_t used;

	snprintf(buf, size, "An RDMA memory-region toolkit.\n\nCommands:\n");
	for (c = commands; c->word; c++) {
		used = strlen(buf);
		snprintf(buf + used, size - used, "  %-12s  %s\n", c->word, c->summary);
	}
	used = strlen(buf);
	snprintf(buf + used, size - used,
		 "\n`ibmr COMMAND --help' says more. Options may stand before or after the command:"
		 "\vAnswers are one JSON document on standard output; see ibmr(1).");
}

static void print_help(struct cli *cli, const struct argp *argp)
{
	char list[2048];
	char name[64];
	struct argp top = { .options = global_options, .args_doc = "COMMAND", .doc = list };
	unsigned flags = ARGP_HELP_USAGE | ARGP_HELP_PRE_DOC | ARGP_HELP_LONG | ARGP_HELP_POST_DOC;

	if (cli->command) {
		snprintf(name, sizeof(name), "ibmr %s", cli->command->word);
		argp_help(argp, stdout, flags, name);
	} else {
		command_list(list, sizeof(list));
		snprintf(name, sizeof(name), "ibmr");
		argp_help(&top, stdout, flags, name);
	}
}

/* ---- all of it ------------------------------------------------------------------ */

static int check_args(struct cli *cli, struct fail *f)
{
	const struct command *c = cli->command;

	if (cli->num_args < c->min_args) {
		fail_set(f, FAIL_USAGE, "%s: an argument is missing", c->word);
		fail_hint(f, "usage: ibmr %s [OPTION...] %s", c->word, c->args);
		return -EINVAL;
	}
	if (c->max_args >= 0 && cli->num_args > c->max_args) {
		fail_set(f, FAIL_USAGE, "%s: unexpected argument '%s'", c->word,
			 cli->args[c->max_args]);
		fail_hint(f, "usage: ibmr %s [OPTION...]%s%s", c->word, *c->args ? " " : "",
			  c->args);
		return -EINVAL;
	}
	return 0;
}

static void defaults(struct cli *cli)
{
	const char *device = getenv("IBMR_DEVICE");
	const char *socket = secure_getenv("IBMR_SOCKET");

	cli->opts.device = device && *device ? device : NULL;
	cli->opts.socket = socket && *socket ? socket : NULL;
	cli->opts.timeout_ms = 10000;
	cli->opts.gid_index = -1;
}

static int run_argp(struct parse *p, const struct argp *argp)
{
	struct cli *cli = p->cli;
	int argc = 0;
	error_t rc;

	while (cli->own_argv[argc])
		argc++;
	rc = argp_parse(argp, argc, cli->own_argv,
			ARGP_IN_ORDER | ARGP_NO_HELP | ARGP_NO_ERRS | ARGP_NO_EXIT, NULL, p);
	if (rc == ENOMEM)
		return fail_nomem(p->fail);
	if (cli->args && !cli->command->rest)
		cli->args[cli->num_args] = NULL;
	return -rc;
}

int cli_parse(struct cli *cli, int argc, char **argv, int *ret_status, struct fail *reterr)
{
	struct parse p = { .cli = cli, .fail = reterr };
	const struct argp global = { .options = global_options, .parser = parse_key };
	const struct argp_child children[] = { { &global, 0, "Global options:", 1 }, { 0 } };
	struct argp argp = { .parser = parse_key, .children = children };
	int rc;

	defaults(cli);
	cli->argc = argc;
	cli->argv = argv;
	cli->own_argv = calloc((size_t)argc + 2, sizeof(*cli->own_argv));
	if (!cli->own_argv)
		return fail_nomem(reterr);
	rc = look(&p, argc, argv);
	if (rc)
		return rc;
	if (cli->command) {
		/* argp never frees what it makes of a table without an entry */
		argp.options = options_of(cli->command)->name ? options_of(cli->command) : NULL;
		argp.args_doc = *cli->command->args ? cli->command->args : NULL;
		argp.doc = cli->command->doc;
	}
	rc = run_argp(&p, &argp);
	if (rc)
		return rc;
	if (p.help || p.version) {
		if (p.help)
			print_help(cli, &argp);
		else
			printf("ibmr %s\n", IBMR_VERSION);
		*ret_status = close_stdout(cli);
		return 1;
	}
	if (!cli->command) {
		fail_set(reterr, FAIL_USAGE, "no command was given");
		fail_hint(reterr, "ibmr --help lists the commands");
		return -EINVAL;
	}
	return check_args(cli, reterr);
}

void cli_free(struct cli *cli)
{
	json_decref(cli->members);
	free(cli->opts.mrs);
	free(cli->opts.devices);
	free(cli->opts.tags);
	free(cli->own_argv);
}
