/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of nodes for people, folded as clush, srun and the like write and take them: n[01-04,07],login. */
#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DIGITS 9

/* before, the number, behind: "rack2-n", "017", ".site" */
struct name {
	const char *text, *digits, *behind;
	unsigned long number;
};

/* The last number before the domain counts nodes. */
static struct name name_of(const char *text)
{
	const char *behind = text + strcspn(text, ".");
	const char *digits = behind;

	while (digits > text && digits[-1] >= '0' && digits[-1] <= '9' &&
	       behind - digits < MOST_DIGITS)
		digits--;
	return (struct name){ text, digits, behind, strtoul(digits, NULL, 10) };
}

static int compare_around(const struct name *a, const struct name *b)
{
	const size_t len_a = (size_t)(a->digits - a->text), len_b = (size_t)(b->digits - b->text);
	int rc = strncmp(a->text, b->text, len_a < len_b ? len_a : len_b);

	if (!rc && len_a != len_b)
		rc = len_a < len_b ? -1 : 1;
	return rc ? rc : strcmp(a->behind, b->behind);
}

/* n9 and n10 go together, n09 and n10 too; n9 and n010 do not. */
static bool same_digits(const struct name *a, const struct name *b)
{
	return a->behind - a->digits == b->behind - b->digits ||
	       (a->digits[0] != '0' && b->digits[0] != '0');
}

static int compare(const void *pa, const void *pb)
{
	const struct name *a = pa, *b = pb;
	int rc = compare_around(a, b);

	if (rc || a->number == b->number)
		return rc ? rc : strcmp(a->digits, b->digits);
	return a->number < b->number ? -1 : 1;
}

static bool together(const struct name *a, const struct name *b)
{
	return a->digits < a->behind && b->digits < b->behind && !compare_around(a, b) &&
	       same_digits(a, b);
}

static void put_part(struct writer *w, names_put *put, const char *from, const char *to)
{
	char part[300];

	snprintf(part, sizeof(part), "%.*s", (int)(to - from), from);
	put(w, part);
}

/* Those from the first on that go together, as one word; returns how many. */
static size_t put_word(struct writer *w, names_put *put, const struct name *list, size_t num)
{
	size_t end = 1, i, last;

	while (end < num && together(&list[end - 1], &list[end]))
		end++;
	if (end == 1) {
		put(w, list[0].text);
		return 1;
	}
	put_part(w, put, list[0].text, list[0].digits);
	put(w, "[");
	for (i = 0; i < end; i = last + 1) {
		for (last = i; last + 1 < end && list[last + 1].number == list[last].number + 1;)
			last++;
		if (i)
			put(w, ",");
		put_part(w, put, list[i].digits, list[i].behind);
		if (last > i) {
			put(w, "-");
			put_part(w, put, list[last].digits, list[last].behind);
		}
	}
	put(w, "]");
	put(w, list[0].behind);
	return end;
}

void report_names(struct writer *w, const json_t *names, names_put *put)
{
	const size_t num = json_array_size(names);
	struct name *list = calloc(num + 1, sizeof(*list));
	size_t i;

	if (!list) {
		w->error = -ENOMEM;
		return;
	}
	for (i = 0; i < num; i++)
		list[i] = name_of(json_string_value(json_array_get(names, i)));
	qsort(list, num, sizeof(*list), compare);
	for (i = 0; i < num;) {
		if (i)
			put(w, ",");
		i += put_word(w, put, &list[i], num - i);
	}
	free(list);
}

/* Into groups: the name that stands before the colon, under what stands behind. */
static int add_entry(json_t *groups, const char *text)
{
	const char *colon = text ? strstr(text, ": ") : NULL;
	json_t *names;

	if (!colon)
		return 0;
	names = json_object_get(groups, colon + 2);
	if (!names) {
		names = json_array();
		if (json_object_set_new(groups, colon + 2, names))
			return -ENOMEM;
	}
	return json_array_append_new(names, json_stringn(text, (size_t)(colon - text)));
}

json_t *report_by_what(struct writer *w, const json_t *entries)
{
	json_t *groups = json_object();
	const json_t *entry;
	size_t i;

	json_array_foreach(entries, i, entry) if (add_entry(groups, json_string_value(entry)))
		w->error = -ENOMEM;
	return groups;
}
