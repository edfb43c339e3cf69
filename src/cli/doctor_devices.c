/* SPDX-License-Identifier: BSD-2-Clause */
/* The doctor's look at devices: those that the kernel has against those that open. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor.h"
#include "result.h"
#include "session.h"
#include "soft0_exec.h"

#define KERNEL_HAS "/sys/class/infiniband"
#define UVERBS	   "/sys/class/infiniband_verbs"
#define NODES	   "/dev/infiniband"
#define NAME_SIZE  IBV_SYSFS_NAME_MAX
#define MOST	   256 /* devices looked at */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names of a folder's entries in order; NULL: no memory. An absent folder is empty. By opendir, which
 * soft0 answers for. */
static json_t *names_in(const char *folder)
{
	char *names[MOST];
	json_t *list = json_array();
	DIR *dir = opendir(folder);
	struct dirent *entry;
	size_t num = 0, i;

	while (dir && num < MOST && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		names[num] = strdup(entry->d_name);
		if (!names[num])
			break;
		num++;
	}
	if (dir)
		closedir(dir);
	qsort(names, num, sizeof(names[0]), by_text);
	for (i = 0; i < num; i++) {
		if (json_array_append_new(list, json_string(names[i]))) {
			json_decref(list);
			list = NULL;
		}
		free(names[i]);
	}
	return list;
}

/* The first word of a file; false: there is none. By open, as above. */
static bool word_in(const char *path, char *word, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, word, size - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	word[n] = '\0';
	word[strcspn(word, " \n")] = '\0';
	return true;
}

/* The device's node as /sys has it, "uverbs0". False: nothing makes one. */
static bool node_of(const char *device, char *node, size_t size)
{
	json_t *all = names_in(UVERBS), *value;
	char path[sizeof(UVERBS) + 300], name[NAME_SIZE];
	bool found = false;
	size_t i;

	json_array_foreach(all, i, value)
	{
		snprintf(path, sizeof(path), UVERBS "/%s/ibdev", json_string_value(value));
		found = word_in(path, name, sizeof(name)) && !strcmp(name, device);
		if (!found)
			continue;
		snprintf(node, size, "%s", json_string_value(value));
		break;
	}
	json_decref(all);
	return found;
}

/* ---- why one does not open -------------------------------------------------------- */

static void judge_unlisted(struct doctor *d, const char *name, bool has_node)
{
	if (!has_node)
		doctor_find(d, SEVERITY_ERROR, "no_uverbs", name, "modprobe ib_uverbs",
			    "the kernel has %s and gives programs no way to it", name);
	else
		doctor_find(d, SEVERITY_ERROR, "no_provider", name,
			    "install its provider library (Debian: ibverbs-providers)",
			    "the kernel has %s, and no provider library takes it", name);
}

static void judge_closed(struct doctor *d, const char *name, const struct fail *fail)
{
	const char *code = "open_failed";

	if (fail->cause && !strcmp(fail->cause, "no_node"))
		code = "no_node";
	else if (fail->code == FAIL_NO_PERMISSION)
		code = "node_denied";
	doctor_find(d, SEVERITY_ERROR, code, name, fail->hint[0] ? fail->hint : NULL, "%s",
		    fail->message);
}

/* ---- what an open one lacks ------------------------------------------------------------ */

static bool active(const struct ibmr_caps *caps)
{
	uint32_t i;

	for (i = 0; i < caps->num_ports && i < IBMR_MAX_PORTS; i++)
		if (caps->ports[i].state == IBV_PORT_ACTIVE)
			return true;
	return false;
}

static void judge_open(struct doctor *d, const struct ibmr_caps *caps)
{
	const char *name = caps->name;

	if (!active(caps))
		doctor_find(d, SEVERITY_ERROR, "no_active_port", name,
			    "see the cable, the switch and the link: rdma link",
			    "%s has no ACTIVE port: no data moves through it", name);
	if (!caps->umr)
		doctor_find(d, SEVERITY_INFO, "no_umr", name, NULL,
			    "%s reports no indirect MRs: create and fill are unsupported there",
			    name);
	if (!caps->odp)
		doctor_find(d, SEVERITY_INFO, "no_odp", name, NULL,
			    "%s reports no on-demand paging: every MR on it is pinned", name);
	else if (!strcmp(caps->driver, "rxe"))
		doctor_find(d, SEVERITY_WARNING, "rxe_on_demand_copies", name,
			    "verify an on-demand MR before relying on it, or register it pinned",
			    "Soft-RoCE, of Linux 7.3.4 at least, moves data of an on-demand MR to "
			    "and from the start of the page, whatever the offset");
}

/* ---- one device ------------------------------------------------------------------------- */

static json_t *described(const char *name, const char *node, const struct ibmr_caps *caps,
			 const struct fail *fail)
{
	json_t *device =
		json_pack("{s:s, s:s?, s:b, s:o}", "name", name, "node", node[0] ? node : NULL,
			  "usable", (int)!!caps, "error", fail ? result_fail(fail) : json_null());
	json_t *more = caps ? json_pack("{s:s?, s:b, s:{s:b, s:b}, s:b}", "driver",
					caps->driver[0] ? caps->driver : NULL, "active_port",
					(int)active(caps), "odp", "supported", (int)caps->odp,
					"implicit", (int)caps->odp_implicit, "umr", (int)caps->umr)
			    : json_pack("{s:n, s:n, s:{s:n, s:n}, s:n}", "driver", "active_port",
					"odp", "supported", "implicit", "umr");

	if (json_object_update(device, more)) {
		json_decref(device);
		device = NULL;
	}
	json_decref(more);
	return device;
}

/* What it reports, without trying anything on it. */
static int ask(struct doctor *d, const char *name, struct ibmr_caps *caps, struct fail *fail)
{
	const struct ibmr_ctx_opts opts = { .device = name,
					    .gid_index = -1,
					    .timeout_ms = d->cli->opts.timeout_ms,
					    .cancel = &signals_cancel };
	struct ibmr_ctx *ctx;
	struct ibmr_err err;
	int rc = ibmr_ctx_open(&opts, &ctx, &err);

	if (rc)
		return session_fail(&err, rc, NULL, fail);
	ibmr_ctx_reported(ctx, caps);
	return session_close_ctx(ctx, fail);
}

static json_t *examine(struct doctor *d, const char *name, bool listed)
{
	char node[NAME_SIZE] = "", path[sizeof(NODES) + NAME_SIZE] = "";
	bool has_node = node_of(name, node, sizeof(node));
	struct ibmr_caps caps = { 0 };
	struct fail fail;

	if (has_node)
		snprintf(path, sizeof(path), NODES "/%s", node);
	if (!ask(d, name, &caps, &fail)) {
		judge_open(d, &caps);
		return described(name, path, &caps, NULL);
	}
	if (listed || (fail.cause && !strcmp(fail.cause, "no_node")))
		judge_closed(d, name, &fail);
	else
		judge_unlisted(d, name, has_node);
	return described(name, path, NULL, &fail);
}

/* ---- all of them --------------------------------------------------------------------------- */

static bool among(const json_t *list, const char *name)
{
	const json_t *value;
	size_t i;

	json_array_foreach(list, i, value)
	{
		if (!strcmp(json_string_value(value), name))
			return true;
	}
	return false;
}

/* Those that libibverbs offers; an empty list when it can offer none. NULL: no memory. */
static json_t *listed_names(struct doctor *d)
{
	json_t *list = json_array();
	struct ibv_device **devices;
	int num = 0, i;

	errno = 0;
	devices = ibv_get_device_list(&num);
	if (!devices && errno && errno != ENOSYS && errno != ENOENT)
		doctor_find(d, SEVERITY_ERROR, "list_failed", NULL, NULL, "ibv_get_device_list: %s",
			    strerror(errno));
	for (i = 0; devices && list && i < num; i++) {
		if (json_array_append_new(list, json_string(ibv_get_device_name(devices[i])))) {
			json_decref(list);
			list = NULL;
		}
	}
	if (devices)
		ibv_free_device_list(devices);
	return list;
}

static void judge_none(struct doctor *d, const char *only)
{
	if (only)
		doctor_find(d, SEVERITY_ERROR, "no_device", only,
			    "ibmr devices lists those there are", "no device is named '%s'", only);
	else if (access(KERNEL_HAS, F_OK))
		doctor_find(d, SEVERITY_ERROR, "no_rdma", NULL,
			    "load the adapter's driver (modprobe mlx5_ib, rdma_rxe), or use "
			    "--device soft0",
			    "the kernel has no RDMA: there is no " KERNEL_HAS);
	else
		doctor_find(d, SEVERITY_ERROR, "no_device", NULL,
			    "load the adapter's driver, or make a software one: rdma link add rxe0 "
			    "type rxe netdev NAME; or use --device soft0",
			    "there is no RDMA device in " KERNEL_HAS);
}

static int add(struct doctor *d, json_t *list, const char *name, bool listed)
{
	const char *only = d->cli->opts.device;

	if (only && strcmp(only, name))
		return 0;
	return json_array_append_new(list, examine(d, name, listed));
}

json_t *doctor_devices(struct doctor *d)
{
	json_t *have = names_in(KERNEL_HAS), *listed = listed_names(d), *list = json_array();
	const json_t *value;
	int failed = !have || !listed || !list;
	size_t i;

	json_array_foreach(have, i, value)
	{
		const char *name = json_string_value(value);

		failed = failed || add(d, list, name, among(listed, name));
	}
	json_array_foreach(listed, i, value)
	{
		const char *name = json_string_value(value);

		failed = failed || (!among(have, name) && add(d, list, name, true));
	}
	if (!failed && !json_array_size(list))
		judge_none(d, d->cli->opts.device);
	json_decref(have);
	json_decref(listed);
	if (failed) {
		json_decref(list);
		return NULL;
	}
	return list;
}
