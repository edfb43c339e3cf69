/* SPDX-License-Identifier: BSD-2-Clause */
/* What the doctor found, for eyes: the machine in some lines, then each finding with its advice. */
#include <inttypes.h>
#include <stdio.h>

#include "doctor.h"
#include "out.h"

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "unknown";
}

static bool yes(const json_t *object, const char *name)
{
	return json_is_true(json_object_get(object, name));
}

static void say_devices(struct writer *w, const json_t *devices)
{
	const json_t *device, *odp;
	size_t i;

	if (!json_array_size(devices))
		writer_format(w, "devices: none\n");
	json_array_foreach(devices, i, device)
	{
		odp = json_object_get(device, "odp");
		if (!yes(device, "usable"))
			writer_format(w, "device %s: does not open\n", text_of(device, "name"));
		else
			writer_format(
				w, "device %s: %s, port %s, on-demand paging %s, indirect MRs %s\n",
				text_of(device, "name"), text_of(device, "driver"),
				yes(device, "active_port") ? "active" : "not active",
				yes(odp, "implicit")	? "with implicit MRs"
				: yes(odp, "supported") ? "yes"
							: "no",
				yes(device, "umr") ? "yes" : "no");
	}
}

static void say_limit(struct writer *w, const json_t *memlock, const char *name)
{
	const json_t *value = json_object_get(memlock, name);

	if (json_is_integer(value))
		writer_format(w, " %s %" PRId64, name, (int64_t)json_integer_value(value));
	else
		writer_format(w, " %s %s", name, text_of(memlock, name));
}

static void say_findings(struct writer *w, const json_t *findings)
{
	const json_t *finding, *advice;
	size_t i;

	if (!json_array_size(findings))
		writer_format(w, "\nnothing was found that stands in the way\n");
	json_array_foreach(findings, i, finding)
	{
		advice = json_object_get(finding, "advice");
		writer_format(w, "\n%s %s: %s\n", text_of(finding, "severity"),
			      text_of(finding, "code"), text_of(finding, "message"));
		if (json_is_string(advice))
			writer_format(w, "    %s\n", json_string_value(advice));
	}
}

void doctor_text(struct writer *w, const json_t *result)
{
	const json_t *limits = json_object_get(result, "limits");
	const json_t *memlock = json_object_get(limits, "memlock");
	const json_t *library = json_array_get(json_object_get(result, "libraries"), 0);

	writer_format(w, "kernel %s, rdma-core %s\n",
		      text_of(json_object_get(result, "system"), "kernel"),
		      text_of(library, "version"));
	say_devices(w, json_object_get(result, "devices"));
	writer_format(w, "locked memory:");
	say_limit(w, memlock, "soft");
	say_limit(w, memlock, "hard");
	writer_format(w, ", CAP_IPC_LOCK %s\n",
		      yes(limits, "ipc_lock") ? "effective" : "not effective");
	say_findings(w, json_object_get(result, "findings"));
}
