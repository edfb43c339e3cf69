/* SPDX-License-Identifier: BSD-2-Clause */
/* soft0.h: modes, limits, planned failures and counters, from C or from IBMR_SOFT0. */
#include "softdev.h"
#include "raw.h"
#include "choices.h"
#include "files.h"
#include "uverbs.h"
#include "soft0.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct sd_config defaults = {
	.mode = SD_SYNC,
	.odp = true,
	.implicit = true,
	.atomics = true,
	.advise = true,
	.umr = true,
	.devx = true,
	.max_mr_size = UINT64_MAX,
	.max_klms = 65536,
	.max_depth = SD_CHOICE_MAX_DEPTH,
	.max_msg_sz = 1u << 30,
	.max_keys = 1u << 23,
	.first_key = 16,
};

struct sd_config sd_config;

const char *soft0_name(void)
{
	return "soft0";
}

/* ---- planned failures ----------------------------------------------------------- */

#define FAILS_MAX 64

static struct fail {
	char kind[32];
	uint64_t left; /* commands until it fails; 0: a free slot */
	int err;
} fails[FAILS_MAX];
static size_t num_fails; /* slots from here on are free */

static uint64_t fail_wqe_left;
static uint8_t fail_wqe_syndrome;

/* The command that finds the device gone. */
static struct fail gone;

static const struct {
	const char *name;
	int err;
} errnos[] = {
	{ "EPERM", EPERM },
	{ "ENOENT", ENOENT },
	{ "EINTR", EINTR },
	{ "EIO", EIO },
	{ "ENXIO", ENXIO },
	{ "EBADF", EBADF },
	{ "EAGAIN", EAGAIN },
	{ "ENOMEM", ENOMEM },
	{ "EACCES", EACCES },
	{ "EFAULT", EFAULT },
	{ "EBUSY", EBUSY },
	{ "EEXIST", EEXIST },
	{ "ENODEV", ENODEV },
	{ "EINVAL", EINVAL },
	{ "EMFILE", EMFILE },
	{ "ENOSPC", ENOSPC },
	{ "ENOSYS", ENOSYS },
	{ "ERANGE", ERANGE },
	{ "EPROTONOSUPPORT", EPROTONOSUPPORT },
	{ "EOPNOTSUPP", EOPNOTSUPP },
	{ "ENOTTY", ENOTTY },
	{ "EREMOTEIO", EREMOTEIO },
	{ "ETIMEDOUT", ETIMEDOUT },
};

#define NUM(a) (sizeof(a) / sizeof((a)[0]))

static int parse_errno(const char *name, int *ret)
{
	size_t i;

	for (i = 0; i < NUM(errnos); i++) {
		if (!strcmp(errnos[i].name, name)) {
			*ret = errnos[i].err;
			return 0;
		}
	}
	return -EINVAL;
}

const char *const *soft0_commands(void)
{
	static const char *names[64];
	size_t i, j, num = 0;
	const char *name;

	if (names[0])
		return names;
	for (i = 0; (name = sd_method_name(i)) && num < NUM(names) - 1; i++) {
		for (j = 0; j < num && strcmp(names[j], name); j++)
			;
		if (*name && j == num)
			names[num++] = name;
	}
	return names;
}

static bool is_kind(const char *kind)
{
	const char *const *names = soft0_commands();

	if (!strcmp(kind, "any"))
		return true;
	while (*names && strcmp(*names, kind))
		names++;
	return *names;
}

static int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	if (!s || *s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(s, &end, 0);
	if (*end || errno || v < min || v > max)
		return -EINVAL;
	*ret = v;
	return 0;
}

/* KIND:N[:ERRNO] */
static int parse_fail(char *value, struct fail *ret_fail)
{
	char *save = NULL, *kind = strtok_r(value, ":", &save), *n = strtok_r(NULL, ":", &save),
	     *name = strtok_r(NULL, ":", &save);
	struct fail f = { .err = ENOMEM };

	if (!kind || !n || strtok_r(NULL, ":", &save) || strlen(kind) >= sizeof(f.kind) ||
	    !is_kind(kind) || parse_u64(n, 1, UINT64_MAX, &f.left) ||
	    (name && parse_errno(name, &f.err)))
		return -EINVAL;
	memcpy(f.kind, kind, strlen(kind));
	*ret_fail = f;
	return 0;
}

static int set_fail(char *value)
{
	struct fail f;
	size_t i;

	if (parse_fail(value, &f))
		return -EINVAL;
	for (i = 0; i < FAILS_MAX; i++) {
		if (!fails[i].left) {
			fails[i] = f;
			num_fails = i < num_fails ? num_fails : i + 1;
			return 0;
		}
	}
	return -EINVAL;
}

/* KIND:N: a device that is gone has one errno only */
static int set_gone(char *value)
{
	if (value[strcspn(value, ":")] && strchr(strchr(value, ':') + 1, ':'))
		return -EINVAL;
	return parse_fail(value, &gone);
}

/* N[:SYNDROME] */
static int set_fail_wqe(char *value)
{
	char *save = NULL, *n = strtok_r(value, ":", &save), *s = strtok_r(NULL, ":", &save);
	uint64_t left, syndrome = MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;

	if (!n || parse_u64(n, 1, UINT64_MAX, &left) || (s && parse_u64(s, 1, 255, &syndrome)) ||
	    strtok_r(NULL, ":", &save))
		return -EINVAL;
	fail_wqe_left = left;
	fail_wqe_syndrome = (uint8_t)syndrome;
	return 0;
}

/* Does what is planned happen at this command? */
static bool is_due(struct fail *f, const char *kind)
{
	if (!f->left || (strcmp(f->kind, "any") && strcmp(f->kind, kind)))
		return false;
	return !--f->left;
}

int sd_config_command(const char *kind)
{
	size_t i;
	int err = 0;

	sd_count_command(kind);
	if (is_due(&gone, kind)) {
		sd_device_remove();
		return -EIO;
	}
	for (i = 0; i < num_fails; i++)
		if (is_due(&fails[i], kind))
			err = -fails[i].err;
	return err;
}

uint8_t sd_config_wqe(void)
{
	if (!fail_wqe_left || --fail_wqe_left)
		return 0;
	return fail_wqe_syndrome;
}

/* ---- words -------------------------------------------------------------------------- */

static char counters_file[512];

enum word_type { WORD_BOOL, WORD_U32, WORD_U64 };

#define WORD(word, t, member, lo, hi)                               \
	{                                                           \
		word, t, offsetof(struct sd_config, member), lo, hi \
	}

static const struct word {
	const char *name;
	enum word_type type;
	size_t offset;
	uint64_t min, max;
} words[] = {
	WORD("hold", WORD_BOOL, hold, 0, 1),
	WORD("odp", WORD_BOOL, odp, 0, 1),
	WORD("implicit", WORD_BOOL, implicit, 0, 1),
	WORD("atomics", WORD_BOOL, atomics, 0, 1),
	WORD("advise", WORD_BOOL, advise, 0, 1),
	WORD("umr", WORD_BOOL, umr, 0, 1),
	WORD("devx", WORD_BOOL, devx, 0, 1),
	WORD("split_keys", WORD_BOOL, split_keys, 0, 1),
	WORD("memlock", WORD_BOOL, memlock, 0, 1),
	WORD("delay", WORD_U32, delay_us, 0, 60000000),
	WORD("max_mr_size", WORD_U64, max_mr_size, 4096, UINT64_MAX),
	WORD("max_klms", WORD_U32, max_klms, 4, 65536),
	WORD("max_depth", WORD_U32, max_depth, 1, 255),
	WORD("max_msg_sz", WORD_U32, max_msg_sz, 4096, 1u << 30),
	WORD("max_keys", WORD_U32, max_keys, 1, 1u << 23),
	WORD("first_key", WORD_U32, first_key, 0, (1u << 23) - 1),
};

static const struct {
	const char *name;
	size_t offset;
} breaks[] = {
	{ "wrong_byte", offsetof(struct sd_config, break_wrong_byte) },
	{ "off_by_one", offsetof(struct sd_config, break_off_by_one) },
	{ "stale_layout", offsetof(struct sd_config, break_stale_layout) },
	{ "no_rights", offsetof(struct sd_config, break_no_rights) },
	{ "lost_completion", offsetof(struct sd_config, break_lost_completion) },
	{ "scatter_cqe", offsetof(struct sd_config, break_scatter_cqe) },
};

static int set_mode(const char *value)
{
	if (!strcmp(value, "sync"))
		sd_config.mode = SD_SYNC;
	else if (!strcmp(value, "async"))
		sd_config.mode = SD_ASYNC;
	else if (!strcmp(value, "strict"))
		sd_config.mode = SD_STRICT;
	else
		return -EINVAL;
	return 0;
}

static int set_break(const char *value)
{
	size_t i;

	for (i = 0; i < NUM(breaks); i++) {
		if (!strcmp(breaks[i].name, value)) {
			*(bool *)((char *)&sd_config + breaks[i].offset) = true;
			return 0;
		}
	}
	return -EINVAL;
}

static int set_number(const char *name, const char *value)
{
	const struct word *w = words;
	uint64_t v;
	char *at;

	while (w < words + NUM(words) && strcmp(w->name, name))
		w++;
	if (w == words + NUM(words) || parse_u64(value, w->min, w->max, &v))
		return -EINVAL;
	at = (char *)&sd_config + w->offset;
	if (w->type == WORD_BOOL)
		*(bool *)at = v;
	else if (w->type == WORD_U32)
		*(uint32_t *)at = (uint32_t)v;
	else
		*(uint64_t *)at = v;
	return 0;
}

static int set_word(const char *word, const char *value)
{
	char copy[512];

	if (strlen(value) >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, value, strlen(value) + 1);
	if (!strcmp(word, "mode"))
		return set_mode(value);
	if (!strcmp(word, "break"))
		return set_break(value);
	if (!strcmp(word, "fail"))
		return set_fail(copy);
	if (!strcmp(word, "gone"))
		return set_gone(copy);
	if (!strcmp(word, "fail_wqe"))
		return set_fail_wqe(copy);
	if (!strcmp(word, "counters")) {
		memcpy(counters_file, value, strlen(value) + 1);
		return *value ? 0 : -EINVAL;
	}
	return set_number(word, value);
}

int soft0_set(const char *word, const char *value)
{
	int err;

	if (!word || !value)
		return -EINVAL;
	sd_lock();
	err = set_word(word, value);
	if (!err)
		sd_engine_update();
	sd_unlock();
	return err;
}

void soft0_reset(void)
{
	sd_lock();
	sd_device_return();
	sd_config = defaults;
	memset(fails, 0, sizeof(fails));
	num_fails = 0;
	memset(&gone, 0, sizeof(gone));
	fail_wqe_left = 0;
	counters_file[0] = '\0';
	sd_counters_reset();
	sd_engine_update();
	sd_unlock();
}

/* ---- the environment -------------------------------------------------------------------- */

__attribute__((noreturn)) static void refuse(const char *word)
{
	char line[600];
	int len = snprintf(line, sizeof(line), "IBMR_SOFT0: not understood: %s\n", word);

	sd_raw_write(2, line, len < (int)sizeof(line) ? (size_t)len : sizeof(line) - 1);
	_exit(2);
}

void sd_config_init(void)
{
	const char *env = getenv("IBMR_SOFT0");
	char *copy, *word, *value, *save = NULL;

	sd_config = defaults;
	if (!env || !*env)
		return;
	copy = strdup(env);
	if (!copy)
		refuse("(out of memory)");
	for (word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		value = strchr(word, '=');
		if (!value)
			refuse(word);
		*value = '\0';
		if (set_word(word, value + 1)) {
			*value = '=';
			refuse(word);
		}
	}
	free(copy);
}

__attribute__((destructor)) static void finish(void)
{
	if (counters_file[0])
		sd_counters_write(counters_file);
}
