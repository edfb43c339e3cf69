/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters by name: a table that grows; a name's place is found by its address, then by its text.
 */
#include "softdev.h"
#include "raw.h"
#include "files.h"
#include "soft0.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTERS_MAX 256
#define CACHE_SIZE   256

static struct counter {
	char name[40];
	uint64_t value;
} counters[COUNTERS_MAX];
static size_t num_counters;

/* From the address of a string literal to its counter. */
struct place {
	const char *name;
	struct counter *counter;
};
static struct place names[CACHE_SIZE], commands[CACHE_SIZE];

static struct counter *lookup(const char *name, bool make)
{
	size_t i;

	for (i = 0; i < num_counters; i++)
		if (!strcmp(counters[i].name, name))
			return &counters[i];
	if (!make || num_counters == COUNTERS_MAX || strlen(name) >= sizeof(counters[0].name))
		return NULL;
	memcpy(counters[num_counters].name, name, strlen(name));
	return &counters[num_counters++];
}

static struct place *place_of(struct place *cache, const char *name)
{
	return &cache[((uintptr_t)name >> 1 ^ (uintptr_t)name >> 9) % CACHE_SIZE];
}

void sd_count(const char *name, uint64_t n)
{
	struct place *p = place_of(names, name);

	if (p->name != name) {
		struct counter *c = lookup(name, true);

		if (!c)
			return;
		*p = (struct place){ name, c };
	}
	p->counter->value += n;
}

void sd_count_command(const char *kind)
{
	struct place *p = place_of(commands, kind);
	char name[40];

	if (p->name != kind) {
		struct counter *c;

		snprintf(name, sizeof(name), "cmd.%s", kind);
		c = lookup(name, true);
		if (!c)
			return;
		*p = (struct place){ kind, c };
	}
	p->counter->value++;
}

/* "live." and "pinned_bytes" count what is there, not what has happened. */
static bool is_level(const char *name)
{
	return !strncmp(name, "live.", 5) || !strcmp(name, "pinned_bytes");
}

void sd_counters_reset(void)
{
	size_t i;

	for (i = 0; i < num_counters; i++)
		if (!is_level(counters[i].name))
			counters[i].value = 0;
}

static const char *const always[] = {
	"wqe.umr",	"wqe.rdma_write", "wqe.rdma_read", "wqe.send",	     "cqe",
	"cqe.error",	"bytes.moved",	  "live.mr",	   "live.mkey",	     "live.qp",
	"live.cq",	"live.pd",	  "live.context",  "live.srq",	     "live.uar",
	"live.devx",	"live.ah",	  "odp.faults",	   "odp.prefetched", "odp.invalidations",
	"pinned_bytes", "bytes.guarded",
};

/* Counters that nothing has counted yet exist too. */
static void make_all(void)
{
	const char *const *kind;
	char name[40];
	size_t i;

	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		lookup(always[i], true);
	for (kind = soft0_commands(); *kind; kind++) {
		snprintf(name, sizeof(name), "cmd.%s", *kind);
		lookup(name, true);
	}
}

int soft0_counter(const char *name, uint64_t *ret_value)
{
	struct counter *c;

	if (!name || !ret_value)
		return -EINVAL;
	sd_lock();
	make_all();
	c = lookup(name, false);
	if (c)
		*ret_value = c->value;
	sd_unlock();
	return c ? 0 : -ENOENT;
}

void sd_counters_write(const char *path)
{
	char line[80];
	int fd = (int)sd_raw(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			     0644);
	size_t i;

	if (fd < 0)
		return;
	make_all();
	for (i = 0; i < num_counters; i++) {
		int len = snprintf(line, sizeof(line), "%s %llu\n", counters[i].name,
				   (unsigned long long)counters[i].value);

		sd_raw_write(fd, line, (size_t)len);
	}
	sd_raw_close(fd);
}
