/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a suite: it is refused with a clear error, or it is one that a process of validate reads as
 * the same from what it is handed.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/validate.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int load(const void *data, size_t size, struct suite *suite, struct fail *f)
{
	int fd = memfd_create("suite", MFD_CLOEXEC);
	int rc;

	REQUIRE(fd >= 0);
	REQUIRE(size == 0 || write(fd, data, size) == (ssize_t)size);
	REQUIRE(lseek(fd, 0, SEEK_SET) == 0);
	rc = suite_load_fd(fd, suite, f);
	close(fd);
	return rc;
}

static void check_refusal(const struct fail *f)
{
	REQUIRE(f->code >= FAIL_SPEC_SYNTAX && f->code <= FAIL_SPEC_VALUE);
	REQUIRE(f->message[0] && memchr(f->message, 0, sizeof(f->message)));
	REQUIRE(memchr(f->where, 0, sizeof(f->where)));
	REQUIRE(fail_exit_status(f) == 2);
}

static void check_check(const struct suite *suite, const struct check *check)
{
	size_t i;

	REQUIRE(check->name[0] && strlen(check->name) <= 64);
	for (i = 0; &suite->checks[i] != check; i++)
		REQUIRE(strcmp(suite->checks[i].name, check->name) != 0);
	REQUIRE(check->plan.num > 0 && check->rounds > 0);
	REQUIRE(check->needs < 1u << NEED_MAX);
	for (i = 0; i < check->num_thresholds; i++) {
		const struct threshold *t = &check->thresholds[i];

		REQUIRE(t->step == SIZE_MAX || t->step < check->plan.num);
		REQUIRE(t->max_us || t->min_mibs || t->count);
		REQUIRE(!t->count || t->has_min || t->has_max);
		REQUIRE(!t->has_min || !t->has_max || t->min <= t->max);
	}
}

static void check_same(const struct suite *a, const struct suite *b)
{
	size_t i;

	REQUIRE(a->num == b->num && a->deadline_ms == b->deadline_ms);
	for (i = 0; i < a->num; i++) {
		REQUIRE(strcmp(a->checks[i].name, b->checks[i].name) == 0);
		REQUIRE(a->checks[i].plan.num == b->checks[i].plan.num);
		REQUIRE(a->checks[i].num_thresholds == b->checks[i].num_thresholds);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct suite suite, again;
	struct fail f;
	char *text;
	size_t i;

	if (load(data, size, &suite, &f)) {
		check_refusal(&f);
		return 0;
	}
	REQUIRE(suite.num > 0);
	for (i = 0; i < suite.num; i++)
		check_check(&suite, &suite.checks[i]);
	text = suite_text(&suite);
	REQUIRE(text);
	REQUIRE(load(text, strlen(text), &again, &f) == 0);
	check_same(&suite, &again);
	free(text);
	suite_free(&again);
	suite_free(&suite);
	return 0;
}
