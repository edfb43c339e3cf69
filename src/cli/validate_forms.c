/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers for eyes, TAP and Nagios. No time and no host is in them, so that equal nodes say equal bytes. */
#include "validate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(struct writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* One line: what would end it early is a blank. */
static void put(struct writer *w, const char *fmt, ...)
{
	char line[2048];
	va_list ap;
	char *c;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	for (c = line; *c; c++)
		if ((unsigned char)*c < ' ')
			*c = ' ';
	writer_text(w, line);
	writer_text(w, "\n");
}

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

static int count_of(const json_t *object, const char *state)
{
	return (int)json_integer_value(json_object_get(json_object_get(object, "counts"), state));
}

const char *validate_why(const json_t *entry)
{
	const json_t *error = json_object_get(entry, "error");

	if (json_is_object(error))
		return text_of(error, "message");
	return state_of(entry) == STATE_SKIP ? "left out by --skip" : "";
}

/* "code: message" of a check that did not pass. */
static void why(const json_t *entry, char *buf, size_t size)
{
	const char *code = text_of(json_object_get(entry, "error"), "code");

	snprintf(buf, size, "%s%s%s", code, *code ? ": " : "", validate_why(entry));
}

/* The words that were required and not proved, each with a blank before it. */
static void list_missing(const json_t *dev, char *buf, size_t size)
{
	const json_t *word;
	size_t i;

	buf[0] = '\0';
	json_array_foreach(json_object_get(dev, "missing"), i, word)
	{
		size_t used = strlen(buf);

		snprintf(buf + used, size - used, " %s", json_string_value(word));
	}
}

/* ---- for eyes ---------------------------------------------------------------------- */

static void text_device(struct writer *w, const json_t *dev)
{
	static const char *const shown[] = { "pass", "FAIL", "skip", "TIMEOUT", "ERROR" };
	const json_t *entry;
	char reason[1200];
	size_t i;

	put(w, "%s%s: %d pass, %d fail, %d skip, %d timeout, %d error", text_of(dev, "name"),
	    json_is_true(json_object_get(dev, "software")) ? " (software)" : "",
	    count_of(dev, "pass"), count_of(dev, "fail"), count_of(dev, "skip"),
	    count_of(dev, "timeout"), count_of(dev, "error"));
	json_array_foreach(json_object_get(dev, "checks"), i, entry)
	{
		why(entry, reason, sizeof(reason));
		put(w, "  %-7s  %s%s%s", shown[state_of(entry)], text_of(entry, "name"),
		    *reason ? "  " : "", reason);
	}
	list_missing(dev, reason, sizeof(reason));
	if (*reason)
		put(w, "  required and not proved:%s", reason);
}

void validate_text(struct writer *w, const json_t *answer)
{
	const json_t *dev;
	size_t i;

	json_array_foreach(json_object_get(answer, "devices"), i, dev) text_device(w, dev);
}

/* ---- TAP ---------------------------------------------------------------------------- */

/* A # would begin a directive. */
static void tap_text(char *text)
{
	for (; *text; text++)
		if (*text == '#')
			*text = '.';
}

static void tap_check(struct writer *w, size_t number, const char *dev, const json_t *entry)
{
	enum state state = state_of(entry);
	char reason[1200];

	why(entry, reason, sizeof(reason));
	tap_text(reason);
	if (state == STATE_SKIP) {
		put(w, "ok %zu - %s %s # SKIP %s", number, dev, text_of(entry, "name"), reason);
		return;
	}
	put(w, "%s %zu - %s %s", state == STATE_PASS ? "ok" : "not ok", number, dev,
	    text_of(entry, "name"));
	if (state != STATE_PASS)
		put(w, "# %s: %s", state_words[state], reason);
}

void validate_tap(struct writer *w, const json_t *answer)
{
	const json_t *devices = json_object_get(answer, "devices"), *dev, *entry;
	char reason[1200];
	size_t total = 0, number = 0, i, c;

	json_array_foreach(devices, i, dev)
	{
		total += json_array_size(json_object_get(dev, "checks"));
		total += json_array_size(json_object_get(dev, "missing")) > 0;
	}
	put(w, "TAP version 13");
	put(w, "1..%zu", total);
	json_array_foreach(devices, i, dev)
	{
		json_array_foreach(json_object_get(dev, "checks"), c, entry)
			tap_check(w, ++number, text_of(dev, "name"), entry);
		list_missing(dev, reason, sizeof(reason));
		if (*reason) {
			put(w, "not ok %zu - %s --require", ++number, text_of(dev, "name"));
			put(w, "# not proved:%s", reason);
		}
	}
}

/* ---- Nagios --------------------------------------------------------------------------- */

/* Only limits of speed or number were missed: the node works. */
static bool only_thresholds(const json_t *answer)
{
	const json_t *dev, *entry;
	size_t d, c;

	json_array_foreach(json_object_get(answer, "devices"), d, dev)
	{
		if (json_array_size(json_object_get(dev, "missing")))
			return false;
		json_array_foreach(json_object_get(dev, "checks"), c, entry)
		{
			enum state state = state_of(entry);
			const json_t *error = json_object_get(entry, "error");

			if (state == STATE_PASS || state == STATE_SKIP)
				continue;
			if (state != STATE_FAIL || strcmp(text_of(error, "cause"), "threshold"))
				return false;
		}
	}
	return true;
}

/* The names of what did not pass, as far as a line takes them. */
static void list_bad(const json_t *answer, char *buf, size_t size)
{
	const json_t *dev, *entry;
	size_t d, c;

	buf[0] = '\0';
	json_array_foreach(json_object_get(answer, "devices"), d, dev)
		json_array_foreach(json_object_get(dev, "checks"), c, entry)
	{
		enum state state = state_of(entry);
		size_t used = strlen(buf);

		if (state == STATE_PASS || state == STATE_SKIP || used + 100 > size)
			continue;
		snprintf(buf + used, size - used, " %s/%s:%s", text_of(dev, "name"),
			 text_of(entry, "name"), state_words[state]);
	}
}

int validate_nagios(struct writer *w, const json_t *answer, int status)
{
	static const char *const words[] = { "OK", "WARNING", "CRITICAL", "UNKNOWN" };
	int code = status == 0 ? 0 : status == 4 ? 3 : only_thresholds(answer) ? 1 : 2;
	char bad[900];
	char *c;

	list_bad(answer, bad, sizeof(bad));
	for (c = bad; *c; c++)
		*c = *c == '|' ? '/' : *c; /* what is behind it is data */
	put(w,
	    "IBMR %s: %d pass, %d skip%s%s | pass=%d fail=%d;;0 skip=%d timeout=%d;;0 error=%d;;0",
	    words[code], count_of(answer, "pass"), count_of(answer, "skip"), *bad ? "," : "", bad,
	    count_of(answer, "pass"), count_of(answer, "fail"), count_of(answer, "skip"),
	    count_of(answer, "timeout"), count_of(answer, "error"));
	return code;
}
