/* SPDX-License-Identifier: BSD-2-Clause */
/* Contexts: a device opened, borrowed, or only imagined. */
#include "private.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_TIMEOUT_MS 10000
#define NODES		   "/dev/infiniband"
#define WHERE		   "/sys/class/infiniband_verbs"
#define KERNEL_HAS	   "/sys/class/infiniband"

static struct ibmr_ctx *ctx_new(const struct ibmr_ctx_opts *opts)
{
	static const struct ibmr_ctx_opts none = { .gid_index = -1 };
	struct ibmr_ctx *ctx = calloc(1, sizeof(*ctx));

	if (!ctx)
		return NULL;
	if (!opts)
		opts = &none;
	ctx->port = opts->port;
	ctx->gid_index = opts->gid_index;
	ctx->timeout_ms = opts->timeout_ms ? opts->timeout_ms : DEFAULT_TIMEOUT_MS;
	ctx->cancel = opts->cancel;
	return ctx;
}

/* ---- finding a device --------------------------------------------------------- */

/* "a, b, c", cut at a name's end when there is no room. */
static void list_names(struct ibv_device **list, int num, struct ibmr_err *err)
{
	int i;

	if (!num) {
		ibmri_err_more(err, "; there is none in " WHERE);
		return;
	}
	ibmri_err_more(err, "; there %s in " WHERE ": ", num == 1 ? "is" : "are");
	for (i = 0; i < num; i++)
		ibmri_err_more(err, "%s%s", i ? ", " : "", ibv_get_device_name(list[i]));
}

/* The node of a device as the kernel has it: "/dev/infiniband/uverbs0". */
static bool find_node(const char *name, char *node, size_t size)
{
	char path[sizeof(WHERE) + NAME_MAX + 16], word[IBV_SYSFS_NAME_MAX];
	DIR *dir = opendir(WHERE);
	struct dirent *entry;
	bool found = false;
	FILE *f;

	while (dir && !found && (entry = readdir(dir))) {
		snprintf(path, sizeof(path), WHERE "/%s/ibdev", entry->d_name);
		f = fopen(path, "re");
		if (!f)
			continue;
		found = fscanf(f, "%63s", word) == 1 && !strcmp(word, name);
		fclose(f);
		if (found)
			snprintf(node, size, NODES "/%s", entry->d_name);
	}
	if (dir)
		closedir(dir);
	return found;
}

static void say_no_node(const char *node, struct ibmr_err *err)
{
	ibmri_err_cause(err, "no_node");
	ibmri_err_hint(err, "load ib_uverbs, or hand %s on to the container", node);
}

/* Not listed, and yet the kernel has it: its node is missing, or no library drives it. */
static void say_unlisted(const char *name, struct ibmr_err *err)
{
	char path[sizeof(KERNEL_HAS) + 1 + IBV_SYSFS_NAME_MAX], node[sizeof(NODES) + NAME_MAX + 1];

	if (strlen(name) >= IBV_SYSFS_NAME_MAX || strchr(name, '/'))
		return;
	snprintf(path, sizeof(path), KERNEL_HAS "/%s", name);
	if (access(path, F_OK))
		return;
	ibmri_err_more(err, "; the kernel has it in " KERNEL_HAS);
	if (find_node(name, node, sizeof(node)) && access(node, F_OK)) {
		ibmri_err_more(err, ", but %s is missing", node);
		say_no_node(node, err);
		return;
	}
	ibmri_err_more(err, ", but no provider library takes it");
	ibmri_err_cause(err, "no_provider");
	ibmri_err_hint(err, "install the device's provider library (Debian: ibverbs-providers); "
			    "ibmr doctor says more");
}

/* Refused the node, libibverbs looks for the device under other names, and the errno it leaves is of
 * that search. */
static int open_failed(struct ibv_device *device, int err_no, struct ibmr_err *err)
{
	char node[sizeof(NODES) + sizeof(device->dev_name) + 1];
	enum ibmr_code code;
	int ret;

	snprintf(node, sizeof(node), NODES "/%s", device->dev_name);
	if (access(node, R_OK | W_OK) && errno == EACCES)
		err_no = EACCES;
	code = err_no == ENOENT ? IBMR_E_NO_DEVICE : ibmri_code_of(err_no);
	ret = ibmri_failed(err, code, "ibv_open_device", err_no,
			   "device %s cannot be opened by %s: %s", ibv_get_device_name(device),
			   node, strerror(err_no));
	if (code == IBMR_E_NO_DEVICE && access(node, F_OK)) {
		say_no_node(node, err);
	} else if (err_no == EACCES) {
		ibmri_err_cause(err, "node_denied");
		ibmri_err_hint(err, "%s must be readable and writable for this user", node);
	} else if (err_no == EPERM) {
		ibmri_err_suspect(err, "node_denied");
		ibmri_err_hint(err, "the container's device rules must allow %s", node);
	} else if (err_no == EPROTONOSUPPORT) {
		ibmri_err_suspect(err, "old_kernel");
		ibmri_err_hint(err, "the libraries are too new for this kernel");
	}
	return ret;
}

static bool events_do_not_block(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* libmlx5 ends the process when a device does not take its pages back. Of one that is gone what the kernel
 * keeps for us is closed; the few kilobytes of libmlx5's own stay. */
static int close_device(struct ibmr_ctx *ctx)
{
	struct ibv_context *verbs = ctx->verbs;

	if (!ibmr_ctx_gone(ctx))
		return ibv_close_device(verbs);
	close(verbs->async_fd);
	close(verbs->cmd_fd);
	return 0;
}

static int open_device(struct ibmr_ctx *ctx, struct ibv_device *device, struct ibmr_err *err)
{
	int ret;

	errno = 0;
	ctx->verbs = ibv_open_device(device);
	if (!ctx->verbs)
		return open_failed(device, errno, err);
	ctx->own_events = events_do_not_block(ctx->verbs->async_fd);
	ctx->gone = false;
	ctx->mlx5 = mlx5dv_is_supported(device);
	memset(&ctx->caps, 0, sizeof(ctx->caps));
	ret = ibmri_caps_read(ctx, err);
	if (ret) {
		close_device(ctx);
		ctx->verbs = NULL;
	}
	return ret;
}

static bool has_active_port(const struct ibmr_ctx *ctx)
{
	uint32_t i;

	for (i = 0; i < ctx->caps.num_ports && i < IBMR_MAX_PORTS; i++)
		if (ctx->caps.ports[i].state == IBV_PORT_ACTIVE)
			return true;
	return false;
}

/* The first device with an ACTIVE port. One that does not open is passed over, and told of when no
 * other is found. */
static int open_first(struct ibmr_ctx *ctx, struct ibv_device **list, int num, struct ibmr_err *err)
{
	int ret = 0, i;

	for (i = 0; i < num; i++) {
		int one = open_device(ctx, list[i], err);

		if (!one && has_active_port(ctx))
			return 0;
		if (one) {
			ret = one;
			continue;
		}
		close_device(ctx);
		ctx->verbs = NULL;
	}
	if (ret)
		return ret;
	ret = ibmri_refuse(err, IBMR_E_NO_DEVICE, "ibmr_ctx_open",
			   num ? "no device has an ACTIVE port" : "no RDMA device");
	list_names(list, num, err);
	return ret;
}

static int open_named(struct ibmr_ctx *ctx, const char *name, struct ibv_device **list, int num,
		      struct ibmr_err *err)
{
	int ret, i;

	for (i = 0; i < num; i++)
		if (!strcmp(ibv_get_device_name(list[i]), name))
			return open_device(ctx, list[i], err);
	ret = ibmri_refuse(err, IBMR_E_NO_DEVICE, "ibmr_ctx_open", "no RDMA device '%s'", name);
	list_names(list, num, err);
	say_unlisted(name, err);
	return ret;
}

static int find_and_open(struct ibmr_ctx *ctx, const char *name, struct ibmr_err *err)
{
	struct ibv_device **list;
	int num = 0, ret;

	errno = 0;
	list = ibv_get_device_list(&num);
	if (!list && errno && errno != ENOSYS) {
		ret = errno;
		return ibmri_failed(err, ibmri_code_of(ret), "ibv_get_device_list", ret,
				    "RDMA devices cannot be listed: %s", strerror(ret));
	}
	if (!list) {
		ret = ibmri_failed(err, IBMR_E_NO_DEVICE, "ibv_get_device_list", ENOSYS,
				   "no RDMA device%s%s%s: the kernel offers none (no " WHERE ")",
				   name ? " '" : "", name ? name : "", name ? "'" : "");
		ibmri_err_cause(err, "no_kernel_support");
		return ret;
	}
	if (name)
		ret = open_named(ctx, name, list, num, err);
	else
		ret = open_first(ctx, list, num, err);
	ibv_free_device_list(list);
	return ret;
}

/* ---- open and close -------------------------------------------------------------- */

static int check_port(const struct ibmr_ctx *ctx, const char *origin, struct ibmr_err *err)
{
	if (ctx->port <= ctx->caps.num_ports)
		return 0;
	return ibmri_refuse(err, IBMR_E_NO_DEVICE, origin, "device %s has no port %u; it has %u",
			    ctx->caps.name, ctx->port, ctx->caps.num_ports);
}

int ibmr_ctx_open(const struct ibmr_ctx_opts *opts, struct ibmr_ctx **ret_ctx,
		  struct ibmr_err *reterr)
{
	struct ibmr_ctx *ctx = ctx_new(opts);
	int ret;

	if (!ctx)
		return ibmri_no_memory(reterr, "ibmr_ctx_open", sizeof(*ctx));
	ret = find_and_open(ctx, opts ? opts->device : NULL, reterr);
	if (ret)
		goto free_ctx;
	ret = check_port(ctx, "ibmr_ctx_open", reterr);
	if (ret)
		goto close_device;
	errno = 0;
	ctx->pd = ibv_alloc_pd(ctx->verbs);
	if (!ctx->pd) {
		int e = errno;

		ret = ibmri_failed(reterr, ibmri_code_of(e), "ibv_alloc_pd", e,
				   "device %s gives no protection domain: %s", ctx->caps.name,
				   strerror(e));
		goto close_device;
	}
	ctx->own_pd = true;
	*ret_ctx = ctx;
	return 0;

close_device:
	close_device(ctx);
free_ctx:
	free(ctx);
	return ret;
}

int ibmr_ctx_from_pd(struct ibv_pd *pd, const struct ibmr_ctx_opts *opts, struct ibmr_ctx **ret_ctx,
		     struct ibmr_err *reterr)
{
	struct ibmr_ctx *ctx;
	int ret;

	if (!pd)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, "ibmr_ctx_from_pd",
				    "no protection domain is given");
	ctx = ctx_new(opts);
	if (!ctx)
		return ibmri_no_memory(reterr, "ibmr_ctx_from_pd", sizeof(*ctx));
	ctx->pd = pd;
	ctx->verbs = pd->context;
	ctx->mlx5 = mlx5dv_is_supported(pd->context->device);
	ret = ibmri_caps_read(ctx, reterr);
	if (!ret)
		ret = check_port(ctx, "ibmr_ctx_from_pd", reterr);
	if (ret) {
		free(ctx);
		return ret;
	}
	*ret_ctx = ctx;
	return 0;
}

int ibmr_ctx_open_dry(const struct ibmr_caps *limits, struct ibmr_ctx **ret_ctx,
		      struct ibmr_err *reterr)
{
	struct ibmr_ctx *ctx;

	if (!limits)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, "ibmr_ctx_open_dry",
				    "no limits are given");
	ctx = ctx_new(NULL);
	if (!ctx)
		return ibmri_no_memory(reterr, "ibmr_ctx_open_dry", sizeof(*ctx));
	ctx->dry = true;
	ctx->caps = *limits;
	*ret_ctx = ctx;
	return 0;
}

/* What each step closes is forgotten at once, so that a failed close can be tried again. */
static int close_verbs(struct ibmr_ctx *ctx, struct ibmr_err *err)
{
	int ret;

	ret = ibmri_caps_close(ctx, err);
	if (!ret)
		ret = ibmri_tree_close(ctx, err);
	if (!ret)
		ret = ibmri_queue_close(ctx, err);
	if (!ret)
		ret = ibmri_pool_close(ctx, &ctx->klms, err);
	if (!ret)
		ret = ibmri_pool_close(ctx, &ctx->staging, err);
	if (ret || !ctx->own_pd)
		return ret;
	if (ctx->pd) {
		ret = ibmri_let_go(ctx, ibv_dealloc_pd(ctx->pd));
		if (ret)
			return ibmri_failed(err, ibmri_code_of(ret), "ibv_dealloc_pd", ret,
					    "the protection domain cannot be freed: %s",
					    strerror(ret));
		ctx->pd = NULL;
	}
	ret = close_device(ctx);
	if (ret)
		return ibmri_failed(err, ibmri_code_of(errno), "ibv_close_device", errno,
				    "device %s cannot be closed: %s", ctx->caps.name,
				    strerror(errno));
	return 0;
}

int ibmr_ctx_close(struct ibmr_ctx *ctx, struct ibmr_err *reterr)
{
	int ret;

	if (!ctx)
		return 0;
	if (ctx->mrs)
		return ibmri_refuse(reterr, IBMR_E_IN_USE, "ibmr_ctx_close",
				    "%llu memory regions still exist, '%s' among them",
				    (unsigned long long)ctx->num_mrs, ctx->mrs->name);
	if (!ctx->dry) {
		ret = close_verbs(ctx, reterr);
		if (ret)
			return ret;
	}
	ibmri_file_forget(ctx);
	free(ctx);
	return 0;
}

/* ---- questions ------------------------------------------------------------------------ */

bool ibmr_ctx_is_dry(const struct ibmr_ctx *ctx)
{
	return ctx->dry;
}

int ibmr_ctx_query(struct ibmr_ctx *ctx, struct ibmr_caps *ret_caps, struct ibmr_err *reterr)
{
	int ret;

	if (!ctx->dry) {
		ret = ibmri_caps_ports(ctx, reterr);
		if (!ret)
			ret = ibmri_caps_probe(ctx, reterr);
		if (ret)
			return ret;
	}
	*ret_caps = ctx->caps;
	return 0;
}

void ibmr_ctx_reported(const struct ibmr_ctx *ctx, struct ibmr_caps *ret_caps)
{
	*ret_caps = ctx->caps;
	if (!ctx->dry && !ctx->umr_probed)
		ret_caps->umr = ctx->mlx5 && ctx->caps.max_klms;
}

void ibmr_ctx_set_timeout(struct ibmr_ctx *ctx, uint32_t timeout_ms)
{
	ctx->timeout_ms = timeout_ms ? timeout_ms : DEFAULT_TIMEOUT_MS;
}

uint64_t ibmr_ctx_locked_bytes(const struct ibmr_ctx *ctx)
{
	return ctx->locked_bytes;
}

uint64_t ibmr_ctx_reconnects(const struct ibmr_ctx *ctx)
{
	return ctx->reconnects;
}
