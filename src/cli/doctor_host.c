/* SPDX-License-Identifier: BSD-2-Clause */
/* The doctor's look at the machine: the kernel, what may be locked, huge pages. */
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "../lib/ibmr.h"
#include "doctor.h"
#include "result.h"

#define HUGE_PAGES "/sys/kernel/mm/hugepages"

/* The one number in a file; -1: there is none. */
static int64_t number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	int64_t value = -1;

	if (!f)
		return -1;
	if (fscanf(f, "%" SCNd64, &value) != 1)
		value = -1;
	fclose(f);
	return value;
}

json_t *doctor_system(struct doctor *d)
{
	bool sysfs = !access("/sys/class", F_OK);
	bool proc = !access("/proc/self/status", F_OK);
	struct utsname name;

	if (uname(&name)) {
		strcpy(name.release, "unknown");
		strcpy(name.machine, "unknown");
	}
	if (!sysfs)
		doctor_find(d, SEVERITY_WARNING, "no_sysfs", NULL,
			    "mount it, or let the container have it: no device is found without it",
			    "/sys is not mounted here");
	if (!proc)
		doctor_find(d, SEVERITY_WARNING, "no_proc", NULL,
			    "mount it: the cause of a refused registration is read there",
			    "/proc is not mounted here");
	return json_pack("{s:s, s:s, s:I, s:b, s:b}", "kernel", name.release, "machine",
			 name.machine, "page_size", (json_int_t)sysconf(_SC_PAGESIZE), "sysfs",
			 (int)sysfs, "proc", (int)proc);
}

/* ---- what may be locked --------------------------------------------------------- */

static json_t *limit(uint64_t value)
{
	return value == IBMR_NO_LIMIT ? json_string("unlimited") : json_integer((json_int_t)value);
}

static json_t *yes_no(int value)
{
	return value < 0 ? json_null() : json_boolean(value);
}

static void judge_memlock(struct doctor *d, const struct ibmr_memlock *m)
{
	const char *raise =
		m->soft < m->hard ? "raise the soft limit up to the hard one: ulimit -l; or "
				    "register with on_demand"
				  : "raise it: limits.conf and a new login, LimitMEMLOCK= of the "
				    "service, or the container's memlock ulimit; or register with "
				    "on_demand";

	if (m->soft == IBMR_NO_LIMIT)
		return;
	if (m->ipc_lock == 1 && m->first_namespace == 1)
		return; /* with it the kernel does not look at the limit */
	if (m->ipc_lock == 1 && m->first_namespace == 0)
		doctor_find(d, SEVERITY_INFO, "ipc_lock_in_namespace", NULL, NULL,
			    "CAP_IPC_LOCK is effective in a user namespace only, where it does not "
			    "count");
	if (!m->soft)
		doctor_find(d, SEVERITY_ERROR, "memlock_none", NULL, raise,
			    "no memory may be locked: RLIMIT_MEMLOCK is 0");
	else
		doctor_find(d, SEVERITY_WARNING, "memlock_limited", NULL, raise,
			    "MRs may lock %" PRIu64 " bytes together, each device counted for "
			    "itself: RLIMIT_MEMLOCK, and CAP_IPC_LOCK is not effective",
			    m->soft);
}

json_t *doctor_limits(struct doctor *d)
{
	int64_t map_count = number_in("/proc/sys/vm/max_map_count");
	struct ibmr_memlock m;

	ibmr_memlock_query(&m);
	judge_memlock(d, &m);
	if (map_count >= 0 && map_count < 65530)
		doctor_find(d, SEVERITY_WARNING, "map_count_low", NULL,
			    "sysctl vm.max_map_count=65530",
			    "a process may have %" PRId64 " memory mappings; 65530 is usual",
			    map_count);
	return json_pack("{s:{s:o, s:o, s:o}, s:o, s:o}", "memlock", "soft", limit(m.soft), "hard",
			 limit(m.hard), "pinned", result_count(m.pinned), "ipc_lock",
			 yes_no(m.ipc_lock == 1 && !m.first_namespace ? 0 : m.ipc_lock),
			 "max_map_count", result_count(map_count));
}

/* ---- huge pages --------------------------------------------------------------------- */

static json_t *huge_page(const char *folder, uint64_t kib, int64_t *free_pages)
{
	char path[sizeof(HUGE_PAGES) + 300];
	int64_t total;

	snprintf(path, sizeof(path), HUGE_PAGES "/%s/nr_hugepages", folder);
	total = number_in(path);
	snprintf(path, sizeof(path), HUGE_PAGES "/%s/free_hugepages", folder);
	*free_pages = number_in(path);
	return json_pack("{s:I, s:o, s:o}", "size", (json_int_t)kib * 1024, "total",
			 result_count(total), "free", result_count(*free_pages));
}

json_t *doctor_huge_pages(struct doctor *d)
{
	json_t *list = json_array();
	DIR *dir = opendir(HUGE_PAGES);
	int64_t any = 0, free_pages;
	struct dirent *entry;
	uint64_t kib;

	while (list && dir && (entry = readdir(dir))) {
		if (sscanf(entry->d_name, "hugepages-%" SCNu64 "kB", &kib) != 1)
			continue;
		if (json_array_append_new(list, huge_page(entry->d_name, kib, &free_pages))) {
			json_decref(list);
			list = NULL;
		}
		any += free_pages > 0;
	}
	if (dir && !any)
		doctor_find(d, SEVERITY_INFO, "no_huge_pages", NULL,
			    "reserve some if a plan uses hugepages: sysctl vm.nr_hugepages",
			    "no huge page is free");
	if (dir)
		closedir(dir);
	return list;
}
