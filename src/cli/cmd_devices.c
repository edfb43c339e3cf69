/* SPDX-License-Identifier: BSD-2-Clause */
/* ibmr devices: what each device reports. soft0 is asked in a process of its own. */
#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "out.h"
#include "profile.h"
#include "result.h"
#include "session.h"
#include "soft0_exec.h"
#include "spec.h"

/* What a device reports, or why it does not. */
struct report {
	const char *name;
	bool software;
	int rc;
	struct ibmr_caps caps;
	struct fail fail;
};

static void ask(const struct cli *cli, const char *name, struct report *r)
{
	const struct ibmr_ctx_opts opts = { .device = name,
					    .gid_index = -1,
					    .timeout_ms = cli->opts.timeout_ms,
					    .cancel = &signals_cancel };
	struct ibmr_ctx *ctx;
	struct ibmr_err err;
	int closed;

	r->name = name;
	r->software = soft0_here() && soft0_is(name);
	r->rc = ibmr_ctx_open(&opts, &ctx, &err);
	if (r->rc) {
		session_fail(&err, r->rc, NULL, &r->fail);
		return;
	}
	r->rc = ibmr_ctx_query(ctx, &r->caps, &err);
	if (r->rc)
		session_fail(&err, r->rc, NULL, &r->fail);
	closed = session_close_ctx(ctx, &r->fail);
	if (closed)
		r->rc = closed;
}

/* NULL: no memory. */
static json_t *describe(const struct report *r)
{
	return r->rc ? result_broken_device(r->name, r->software, &r->fail)
		     : result_device(&r->caps, r->software);
}

static int save(const struct cli *cli, const struct report *r, struct fail *f)
{
	if (!r->rc)
		return profile_save(cli->opts.save_profile, &r->caps, r->software,
				    cli->opts.timeout_ms, f);
	*f = r->fail;
	return r->rc;
}

static int append(json_t *list, json_t *entry, struct fail *f)
{
	return json_array_append_new(list, entry) ? fail_nomem(f) : 0;
}

/* Every device that libibverbs finds, or the one named. */
static int add_real(const struct cli *cli, const char *only, json_t *list, struct fail *f)
{
	struct ibv_device **devices;
	struct report report;
	int num = 0;
	int rc = 0;
	int i;

	devices = ibv_get_device_list(&num);
	if (!devices) {
		/* a kernel without RDMA has no device, and that is an answer */
		if (errno == ENOSYS || errno == ENOENT)
			return 0;
		if (errno == ENOMEM)
			return fail_nomem(f);
		return fail_sys(f, errno == EPERM || errno == EACCES ? FAIL_NO_PERMISSION : FAIL_IO,
				"ibv_get_device_list", errno, "cannot list devices: %s",
				strerror(errno));
	}
	for (i = 0; i < num && !rc; i++) {
		const char *name = ibv_get_device_name(devices[i]);

		if (only && strcmp(only, name))
			continue;
		rc = signals_check(f);
		if (rc)
			break;
		ask(cli, name, &report);
		rc = append(list, describe(&report), f);
		if (!rc && cli->opts.save_profile)
			rc = save(cli, &report, f);
	}
	ibv_free_device_list(devices);
	return rc;
}

/* ---- soft0, of a child ------------------------------------------------------------ */

static int wait_for(int pid, int *ret_status)
{
	while (waitpid(pid, ret_status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return 0;
}

/* The entry in the child's document. */
static json_t *entry_of(const json_t *doc)
{
	json_t *entry =
		json_array_get(json_object_get(json_object_get(doc, "result"), "devices"), 0);

	return json_is_object(entry) ? json_incref(entry) : NULL;
}

static int ask_child(json_t **ret_entry, struct fail *f)
{
	char *const args[] = { (char *)"devices",  (char *)"--device", (char *)"soft0",
			       (char *)"--format", (char *)"json",     NULL };
	struct spec_text text;
	json_t *doc = NULL;
	int fd, pid, status;
	int rc;

	rc = soft0_spawn(args, &fd, &pid, f);
	if (rc)
		return rc;
	rc = spec_read_fd(fd, "the answer of ibmr-soft0", &text, f);
	close(fd);
	if (wait_for(pid, &status))
		status = -1;
	if (rc) {
		signals_explain(f);
		return rc;
	}
	rc = spec_parse_text(&text, &doc, f);
	spec_text_free(&text);
	*ret_entry = rc ? NULL : entry_of(doc);
	json_decref(doc);
	if (*ret_entry)
		return 0;
	if (f->code == FAIL_NO_MEMORY && rc)
		return rc;
	fail_set(f, FAIL_NO_DEVICE, "ibmr-soft0 gave no answer (wait status 0x%x)",
		 (unsigned)status);
	f->cause = "no_soft0";
	f->err = ENODEV;
	return -ENODEV;
}

static int add_soft0(json_t *list, struct fail *f)
{
	json_t *entry;
	struct fail fail;
	int rc;

	rc = ask_child(&entry, &fail);
	if (rc && (fail.code == FAIL_NO_MEMORY || fail.code == FAIL_INTERRUPTED ||
		   fail.code == FAIL_TIMEOUT)) {
		*f = fail;
		return rc;
	}
	if (rc)
		entry = result_broken_device("soft0", true, &fail);
	return append(list, entry, f);
}

static int not_there(const char *name, struct fail *f)
{
	fail_set(f, FAIL_NO_DEVICE, "no device is named '%s'", name);
	fail_hint(f, "ibmr devices lists all; soft0 is the software device");
	f->err = ENODEV;
	return -ENODEV;
}

int cmd_devices(struct cli *cli)
{
	const char *only = cli->opts.device;
	json_t *list;
	struct fail fail;
	int rc;

	if (soft0_is(only) && !soft0_here()) {
		soft0_exec(cli, NULL, 0, &fail);
		return answer_fail(cli, NULL, &fail);
	}
	list = json_array();
	rc = list ? 0 : fail_nomem(&fail);
	if (!rc && cli->opts.save_profile && !only)
		rc = fail_set(&fail, FAIL_USAGE,
			      "--save-profile needs --device: a profile is of one device");
	if (!rc)
		rc = add_real(cli, only, list, &fail);
	if (!rc && !only && !soft0_here())
		rc = add_soft0(list, &fail);
	if (!rc && only && json_array_size(list) == 0)
		rc = not_there(only, &fail);
	if (rc) {
		json_decref(list);
		return answer_fail(cli, NULL, &fail);
	}
	return answer_result(
		cli, NULL,
		json_pack("{s:o, s:s?}", "devices", list, "saved_profile", cli->opts.save_profile));
}
