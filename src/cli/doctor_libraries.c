/* SPDX-License-Identifier: BSD-2-Clause */
/* The doctor's look at rdma-core: which libraries are in use, and which of their known bugs. */
#include <dirent.h>
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define PROVIDERS "/etc/libibverbs.d"

/* The release of rdma-core that a library is of. */
struct release {
	char path[PATH_MAX]; /* of the file that is loaded; "": not known */
	bool known;
	unsigned major, minor;
};

/* The file that a function is in is named after the release: libibverbs.so.1.14.44.0. */
static void find_release(const void *function, struct release *r)
{
	const char *name;
	unsigned abi;
	Dl_info info;

	memset(r, 0, sizeof(*r));
	if (!dladdr(function, &info) || !info.dli_fname || !realpath(info.dli_fname, r->path)) {
		r->path[0] = '\0';
		return;
	}
	name = strstr(r->path, ".so.");
	r->known = name && sscanf(name, ".so.1.%u.%u.%u", &abi, &r->major, &r->minor) == 3;
}

static json_t *library(const char *name, const struct release *r)
{
	char version[32] = "";

	if (r->known)
		snprintf(version, sizeof(version), "%u.%u", r->major, r->minor);
	return json_pack("{s:s, s:s?, s:s?}", "name", name, "path", r->path[0] ? r->path : NULL,
			 "version", r->known ? version : NULL);
}

json_t *doctor_libraries(struct doctor *d)
{
	struct release verbs, mlx5;

	find_release((const void *)ibv_get_device_list, &verbs);
	find_release((const void *)mlx5dv_is_supported, &mlx5);
	if (!verbs.known)
		doctor_find(d, SEVERITY_INFO, "library_version_unknown", "libibverbs", NULL,
			    "the file of libibverbs does not tell its version");
	if (verbs.known && mlx5.known && (verbs.major != mlx5.major || verbs.minor != mlx5.minor))
		doctor_find(d, SEVERITY_WARNING, "library_mix", "libmlx5",
			    "install both from the same release of rdma-core",
			    "libibverbs is of rdma-core %u.%u and libmlx5 of %u.%u", verbs.major,
			    verbs.minor, mlx5.major, mlx5.minor);
	return json_pack("[o, o]", library("libibverbs", &verbs), library("libmlx5", &mlx5));
}

/* ---- providers ------------------------------------------------------------------- */

/* The word behind "driver" in one file of the folder; NULL: no such line. */
static json_t *provider_in(const char *file)
{
	char path[sizeof(PROVIDERS) + NAME_MAX + 1], line[256], word[128];
	json_t *name = NULL;
	FILE *f;

	snprintf(path, sizeof(path), PROVIDERS "/%s", file);
	f = fopen(path, "re");
	while (f && !name && fgets(line, sizeof(line), f))
		if (sscanf(line, " driver %127s", word) == 1)
			name = json_string(word);
	if (f)
		fclose(f);
	return name;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(json_string_value(*(json_t *const *)a),
		      json_string_value(*(json_t *const *)b));
}

json_t *doctor_providers(struct doctor *d)
{
	json_t *names[64], *list = json_array();
	DIR *dir = opendir(PROVIDERS);
	struct dirent *entry;
	size_t num = 0, i;

	while (dir && num < 64 && (entry = readdir(dir))) {
		names[num] = entry->d_name[0] == '.' ? NULL : provider_in(entry->d_name);
		num += !!names[num];
	}
	if (dir)
		closedir(dir);
	qsort(names, num, sizeof(names[0]), by_text);
	for (i = 0; i < num; i++) {
		if (json_array_append_new(list, names[i])) {
			json_decref(list);
			list = NULL;
		}
	}
	if (!num)
		doctor_find(d, SEVERITY_WARNING, "no_providers", PROVIDERS,
			    "install the provider libraries (Debian: ibverbs-providers)",
			    "no provider library is configured: no real device opens");
	return list;
}

/* ---- known bugs --------------------------------------------------------------------- */

#define NEVER UINT_MAX

/* Each found in the sources, or met by this project's tests. Fixed in that major release; and in
 * stable_minor of the releases before it whose major is stable. */
static const struct bug {
	const char *id, *library, *summary;
	unsigned fixed, stable, stable_minor;
	bool avoided;
} bugs[] = {
	{ "mlx5_list_total", "libmlx5", "a list of 2 GiB or more gets a wrong length", 61, 44, 12,
	  true },
	{ "mlx5_repeat_16_bits", "libmlx5",
	  "a repeat's block or stride over 65535 bytes is cut without a word", NEVER, 0, 0, true },
	{ "mlx5_repeat_header", "libmlx5",
	  "a repeat's header takes an entry that is not counted when the key is made", NEVER, 0, 0,
	  true },
	{ "mlx5_raw_size", "libmlx5",
	  "a raw work request larger than the queue's slots overwrites others", NEVER, 0, 0, true },
	{ "mlx5_raw_full_queue", "libmlx5",
	  "a raw work request on a full queue overwrites one that is posted", NEVER, 0, 0, true },
	{ "mlx5_scatter_to_cqe", "libmlx5",
	  "a short read through a zero-based key crashes where completions carry the data", NEVER,
	  0, 0, true },
	{ "rxe_no_advise", "libibverbs", "the rxe provider does not pass ibv_advise_mr on", 59, 0,
	  0, false },
};

/* -1: the release is not known. */
static int has_bug(const struct bug *bug, const struct release *r)
{
	if (bug->fixed == NEVER)
		return 1;
	if (!r->known)
		return -1;
	return r->major < bug->fixed && !(r->major == bug->stable && r->minor >= bug->stable_minor);
}

json_t *doctor_bugs(struct doctor *d)
{
	json_t *list = json_array(), *entry;
	struct release r;
	size_t i;
	int has;

	find_release((const void *)ibv_get_device_list, &r);
	for (i = 0; list && i < sizeof(bugs) / sizeof(bugs[0]); i++) {
		has = has_bug(&bugs[i], &r);
		entry = json_pack("{s:s, s:s, s:o, s:b, s:s}", "id", bugs[i].id, "library",
				  bugs[i].library, "present",
				  has < 0 ? json_null() : json_boolean(has), "avoided",
				  (int)bugs[i].avoided, "summary", bugs[i].summary);
		if (json_array_append_new(list, entry)) {
			json_decref(list);
			list = NULL;
		}
		if (has == 1 && !bugs[i].avoided)
			doctor_find(d, SEVERITY_INFO, "library_bug", bugs[i].id,
				    "use a newer rdma-core where it matters", "%s: %s",
				    bugs[i].library, bugs[i].summary);
	}
	return list;
}
