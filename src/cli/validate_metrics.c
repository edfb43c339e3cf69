/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus text, as the node exporter's textfile collector reads it. */
#include "validate.h"

#include <stdio.h>
#include <string.h>

static void label(struct writer *w, const char *name, const char *value, const char *behind)
{
	char one[2] = "";

	writer_text(w, name);
	writer_text(w, "=\"");
	for (; value && *value; value++) {
		if (*value == '\\' || *value == '"')
			writer_text(w, "\\");
		one[0] = (unsigned char)*value < ' ' ? ' ' : *value;
		writer_text(w, one);
	}
	writer_text(w, "\"");
	writer_text(w, behind);
}

static void head(struct writer *w, const char *name, const char *help)
{
	char line[300];

	snprintf(line, sizeof(line), "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
	writer_text(w, line);
}

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

/* The labels of a check, open for one more. */
static void labels(struct writer *w, const char *metric, const json_t *dev, const json_t *entry)
{
	writer_text(w, metric);
	writer_text(w, "{");
	label(w, "device", text_of(dev, "name"), ",");
	label(w, "check", text_of(entry, "name"), "");
}

static void states(struct writer *w, const json_t *devices)
{
	const json_t *dev, *entry;
	size_t d, c;
	int state;

	head(w, "ibmr_check_state", "1 for the state in which the check ended.");
	json_array_foreach(devices, d, dev)
		json_array_foreach(json_object_get(dev, "checks"), c, entry)
	{
		for (state = 0; state < STATE_MAX; state++) {
			labels(w, "ibmr_check_state", dev, entry);
			writer_text(w, ",");
			label(w, "state", state_words[state], "} ");
			writer_text(w, (int)state_of(entry) == state ? "1\n" : "0\n");
		}
	}
}

static void times(struct writer *w, const json_t *devices)
{
	const json_t *dev, *entry, *us;
	char value[40];
	size_t d, c;

	head(w, "ibmr_check_seconds", "How long the check took.");
	json_array_foreach(devices, d, dev)
		json_array_foreach(json_object_get(dev, "checks"), c, entry)
	{
		us = json_object_get(entry, "elapsed_us");
		if (!json_is_number(us))
			continue;
		labels(w, "ibmr_check_seconds", dev, entry);
		snprintf(value, sizeof(value), "} %.6f\n", json_number_value(us) / 1e6);
		writer_text(w, value);
	}
}

static void proved(struct writer *w, const json_t *devices)
{
	const json_t *dev, *value;
	json_t *words;
	const char *word;
	size_t d;

	head(w, "ibmr_capability_proved", "1 when a check that needs it passed and none failed.");
	json_array_foreach(devices, d, dev)
	{
		words = json_object_get(dev, "proved");
		json_object_foreach(words, word, value)
		{
			writer_text(w, "ibmr_capability_proved{");
			label(w, "device", text_of(dev, "name"), ",");
			label(w, "capability", word, "} ");
			writer_text(w, json_is_true(value) ? "1\n" : "0\n");
		}
	}
}

static void tags(struct writer *w, const json_t *answer)
{
	const json_t *identity = json_object_get(answer, "identity");

	head(w, "ibmr_validate_info", "What ran and where.");
	writer_text(w, "ibmr_validate_info{");
	label(w, "suite", text_of(answer, "suite"), ",");
	label(w, "job", text_of(identity, "job"), ",");
	label(w, "host", text_of(identity, "host"), "} 1\n");
}

void validate_prometheus(struct writer *w, const json_t *answer)
{
	const json_t *devices = json_object_get(answer, "devices");

	tags(w, answer);
	states(w, devices);
	times(w, devices);
	proved(w, devices);
}
