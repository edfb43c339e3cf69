/* SPDX-License-Identifier: BSD-2-Clause */
/* JUnit: a test suite for each device. */
#include "validate.h"

#include <stdio.h>
#include <string.h>

/* XML 1.0 knows no control characters, not even escaped. */
static void escaped(struct writer *w, const char *text)
{
	char one[2] = "";

	for (; text && *text; text++) {
		switch (*text) {
		case '&':
			writer_text(w, "&amp;");
			break;
		case '<':
			writer_text(w, "&lt;");
			break;
		case '>':
			writer_text(w, "&gt;");
			break;
		case '"':
			writer_text(w, "&quot;");
			break;
		default:
			one[0] = (unsigned char)*text < ' ' || *text == 0x7f ? ' ' : *text;
			writer_text(w, one);
			break;
		}
	}
}

static void attribute(struct writer *w, const char *name, const char *value)
{
	writer_text(w, " ");
	writer_text(w, name);
	writer_text(w, "=\"");
	escaped(w, value);
	writer_text(w, "\"");
}

static void number(struct writer *w, const char *name, json_int_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	attribute(w, name, text);
}

static void seconds(struct writer *w, double us)
{
	char text[40];

	snprintf(text, sizeof(text), "%.6f", us / 1e6);
	attribute(w, "time", text);
}

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static json_int_t count_of(const json_t *object, const char *state)
{
	return json_integer_value(json_object_get(json_object_get(object, "counts"), state));
}

static double us_of(const json_t *entry)
{
	return json_number_value(json_object_get(entry, "elapsed_us"));
}

/* failure, error or skipped: one element with the reason. */
static void reason(struct writer *w, const json_t *entry)
{
	static const char *const elements[] = { NULL, "failure", "skipped", "error", "error" };
	const enum state state = state_of(entry);
	const json_t *error = json_object_get(entry, "error");

	writer_text(w, ">\n      <");
	writer_text(w, elements[state]);
	if (state != STATE_SKIP)
		attribute(w, "type",
			  text_of(error, "code") ? text_of(error, "code") : state_words[state]);
	attribute(w, "message", validate_why(entry));
	writer_text(w, "/>\n    </testcase>\n");
}

static void test_case(struct writer *w, const char *dev, const json_t *entry)
{
	writer_text(w, "    <testcase");
	attribute(w, "name", text_of(entry, "name"));
	attribute(w, "classname", dev);
	seconds(w, us_of(entry));
	if (state_of(entry) == STATE_PASS)
		writer_text(w, "/>\n");
	else
		reason(w, entry);
}

static void property(struct writer *w, const char *name, const char *value)
{
	if (!value)
		return;
	writer_text(w, "      <property");
	attribute(w, "name", name);
	attribute(w, "value", value);
	writer_text(w, "/>\n");
}

static void properties(struct writer *w, const json_t *answer)
{
	json_t *tags = json_object_get(answer, "tags"), *value;
	const json_t *identity = json_object_get(answer, "identity");
	const char *name;

	writer_text(w, "    <properties>\n");
	property(w, "suite", text_of(answer, "suite"));
	property(w, "job", text_of(identity, "job"));
	property(w, "task", text_of(identity, "task"));
	json_object_foreach(tags, name, value) property(w, name, json_string_value(value));
	writer_text(w, "    </properties>\n");
}

/* What --require named and nothing proved is a case of its own. */
static void required(struct writer *w, const json_t *dev)
{
	writer_text(w, "    <testcase name=\"--require\"");
	attribute(w, "classname", text_of(dev, "name"));
	writer_text(w, " time=\"0\">\n      <failure type=\"unsupported\" "
		       "message=\"what was required was not proved\"/>\n    </testcase>\n");
}

static void test_suite(struct writer *w, const json_t *answer, const json_t *dev)
{
	const json_t *checks = json_object_get(dev, "checks"), *entry;
	const bool lacks = json_array_size(json_object_get(dev, "missing")) > 0;
	double us = 0;
	size_t i;

	json_array_foreach(checks, i, entry) us += us_of(entry);
	writer_text(w, "  <testsuite");
	attribute(w, "name", text_of(dev, "name"));
	number(w, "tests", (json_int_t)json_array_size(checks) + lacks);
	number(w, "failures", count_of(dev, "fail") + lacks);
	number(w, "errors", count_of(dev, "error") + count_of(dev, "timeout"));
	number(w, "skipped", count_of(dev, "skip"));
	seconds(w, us);
	attribute(w, "hostname", text_of(json_object_get(answer, "identity"), "host"));
	if (text_of(answer, "time"))
		attribute(w, "timestamp", text_of(answer, "time"));
	writer_text(w, ">\n");
	properties(w, answer);
	json_array_foreach(checks, i, entry) test_case(w, text_of(dev, "name"), entry);
	if (lacks)
		required(w, dev);
	writer_text(w, "  </testsuite>\n");
}

void validate_junit(struct writer *w, const json_t *answer)
{
	const json_t *dev;
	size_t i;

	writer_text(w, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
	json_array_foreach(json_object_get(answer, "devices"), i, dev) test_suite(w, answer, dev);
	writer_text(w, "</testsuites>\n");
}
