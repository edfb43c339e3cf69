/* SPDX-License-Identifier: BSD-2-Clause */
/* What the system lets this process lock, as /proc and getrlimit have it. */
#include "private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#define CAP_IPC_LOCK_BIT 14

/* A "Name:<blanks>number" line of /proc/self/status. */
static bool status_number(const char *name, int base, uint64_t *ret_value)
{
	FILE *f = fopen("/proc/self/status", "re");
	size_t len = strlen(name);
	bool found = false;
	char line[256];

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f)) {
		if (strncmp(line, name, len) || line[len] != ':')
			continue;
		found = sscanf(line + len + 1, base == 16 ? "%" SCNx64 : "%" SCNu64, ret_value) ==
			1;
	}
	fclose(f);
	return found;
}

/* The kernel asks for CAP_IPC_LOCK in the first user namespace, which maps every user to itself. */
static int in_first_namespace(void)
{
	unsigned long inside, outside, count;
	FILE *f = fopen("/proc/self/uid_map", "re");
	int lines;

	if (!f)
		return -1;
	lines = fscanf(f, "%lu %lu %lu", &inside, &outside, &count);
	fclose(f);
	return lines == 3 ? !inside && !outside && count == UINT32_MAX : -1;
}

static uint64_t bytes_or_none(rlim_t limit)
{
	return limit == RLIM_INFINITY ? IBMR_NO_LIMIT : (uint64_t)limit;
}

void ibmr_memlock_query(struct ibmr_memlock *ret_memlock)
{
	struct rlimit lim = { RLIM_INFINITY, RLIM_INFINITY };
	struct ibmr_memlock m = { .pinned = -1, .ipc_lock = -1 };
	uint64_t value;

	(void)getrlimit(RLIMIT_MEMLOCK, &lim); /* which cannot fail */
	m.soft = bytes_or_none(lim.rlim_cur);
	m.hard = bytes_or_none(lim.rlim_max);
	if (status_number("VmPin", 10, &value) && value <= INT64_MAX / 1024)
		m.pinned = (int64_t)value * 1024;
	if (status_number("CapEff", 16, &value))
		m.ipc_lock = value >> CAP_IPC_LOCK_BIT & 1;
	m.first_namespace = in_first_namespace();
	*ret_memlock = m;
}

bool ibmri_seccomp_filters(void)
{
	uint64_t mode;

	return status_number("Seccomp", 10, &mode) && mode == 2;
}
