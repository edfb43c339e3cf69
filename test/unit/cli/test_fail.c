/* SPDX-License-Identifier: BSD-2-Clause */
/* The error record: words, statuses, texts and places. */
#include "cli_test.h"

#include <errno.h>

#include "../../../src/lib/ibmr.h"
#include "utf8.h"

static void each_code_has_a_word_of_its_own(void **state)
{
	int code, other;

	for (code = FAIL_NONE + 1; code < FAIL_MAX; code++) {
		assert_int_equal(fail_code_from_name(fail_code_name(code)), code);
		for (other = FAIL_NONE + 1; other < code; other++)
			assert_string_not_equal(fail_code_name(code), fail_code_name(other));
	}
	assert_int_equal(fail_code_from_name("none"), FAIL_NONE);
	assert_int_equal(fail_code_from_name("Range"), FAIL_NONE);
	assert_int_equal(fail_code_from_name(""), FAIL_NONE);
}

static void exit_statuses_are_the_contract(void **state)
{
	static const struct {
		enum fail_code code;
		int status;
	} rows[] = {
		{ FAIL_USAGE, 2 },	{ FAIL_SPEC_SYNTAX, 2 }, { FAIL_SPEC_VALUE, 2 },
		{ FAIL_MISMATCH, 3 },	{ FAIL_UNSUPPORTED, 4 }, { FAIL_SESSION, 5 },
		{ FAIL_TIMEOUT, 6 },	{ FAIL_IO, 1 },		 { FAIL_NO_DEVICE, 1 },
		{ FAIL_COMPLETION, 1 }, { FAIL_MEMLOCK, 1 },	 { FAIL_NO_SUCH_MR, 1 },
	};
	struct fail f;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fail_set(&f, rows[i].code, "x");
		assert_int_equal(fail_exit_status(&f), rows[i].status);
	}
	fail_set(&f, FAIL_INTERRUPTED, "x");
	f.signo = 15;
	assert_int_equal(fail_exit_status(&f), 143);
}

static void what_a_call_returned_is_what_it_said(void **state)
{
	struct fail f = { .code = FAIL_NONE };

	assert_int_equal(fail_told(&f, -ENOENT), -ENOENT);
	assert_int_equal(f.code, FAIL_IO);
	assert_int_equal(f.err, ENOENT);
	assert_non_null(strstr(f.message, strerror(ENOENT)));
	f.code = FAIL_NONE;
	assert_int_equal(fail_told(&f, -ENOMEM), -ENOMEM);
	assert_int_equal(f.code, FAIL_NO_MEMORY);
	fail_set(&f, FAIL_RANGE, "x");
	assert_int_equal(fail_told(&f, -EFAULT), -EFAULT);
	assert_int_equal(f.code, FAIL_RANGE);
	assert_int_equal(fail_told(&f, 0), 0);
	assert_int_equal(f.code, FAIL_NONE);
}

static void every_library_code_has_one_of_ours(void **state)
{
	struct ibmr_err err = { .index = -1, .status = -1 };
	struct fail f;
	int code;

	for (code = IBMR_OK + 1; code < IBMR_E_MAX; code++) {
		err.code = code;
		snprintf(err.text, sizeof(err.text), "text");
		assert_int_equal(fail_from_ibmr(&f, &err, -EIO, NULL), -EIO);
		assert_true(f.code > FAIL_NONE && f.code < FAIL_MAX);
		if (code != IBMR_E_ARGUMENT)
			assert_string_equal(fail_code_name(f.code), ibmr_code_name(code));
		assert_int_equal(f.err, EIO);
		assert_false(f.has_where);
		assert_string_equal(f.message, "text");
	}
	err.code = IBMR_E_RANGE;
	err.index = 37;
	fail_from_ibmr(&f, &err, -EFAULT, "klms");
	assert_string_equal(f.where, "/klms/37");
	err.code = 12345; /* never success */
	fail_from_ibmr(&f, &err, -EFAULT, "klms");
	assert_true(fail_exit_status(&f) > 0);
}

static void a_text_that_had_to_end_says_so_and_stays_utf8(void **state)
{
	char longer[3 * sizeof(((struct fail *)0)->message)];
	struct fail f;
	size_t i;

	for (i = 0; i < sizeof(longer) - 3; i += 3)
		memcpy(longer + i, "\xe2\x82\xac", 3);
	longer[i] = '\0';
	fail_set(&f, FAIL_IO, "%s", longer);
	i = strlen(f.message);
	assert_true(i < sizeof(f.message));
	assert_string_equal(f.message + i - 3, "...");
	assert_memory_equal(f.message + i - 6, "\xe2\x82\xac", 3);
	fail_set(&f, FAIL_IO,
		 "a\xff"
		 "b\xc3(%c\xed\xa0\x80)",
		 0x80);
	assert_string_equal(f.message, "a?b?(\?\?\?\?)");
}

static void a_failed_call_keeps_its_errno(void **state)
{
	struct fail f;

	assert_int_equal(fail_sys(&f, FAIL_IO, "open", ENOENT, "no %s", "file"), -ENOENT);
	assert_int_equal(f.err, ENOENT);
	assert_int_equal(f.sys_errno, ENOENT);
	assert_string_equal(f.origin, "open");
	assert_int_equal(f.status, -1);
	assert_int_equal(fail_set(&f, FAIL_USAGE, "x"), -EINVAL);
	assert_int_equal(f.sys_errno, 0);
	assert_null(f.origin);
	assert_int_equal(fail_nomem(&f), -ENOMEM);
	assert_int_equal(f.code, FAIL_NO_MEMORY);
}

static void places_are_json_pointers(void **state)
{
	const struct at list = { .name = "klms" };
	const struct at entry = { .up = &list, .index = 12 };
	const struct at odd = { .up = &entry, .name = "a~b/c\"d" };
	struct fail f;

	fail_set(&f, FAIL_SPEC_VALUE, "x");
	assert_false(f.has_where);
	fail_under(&f, "/steps/1");
	assert_false(f.has_where);
	fail_at(&f, NULL);
	assert_true(f.has_where);
	assert_string_equal(f.where, "");
	fail_at(&f, &odd);
	assert_string_equal(f.where, "/klms/12/a~0b~1c\"d");
	fail_in_step(&f, 4294967296);
	assert_string_equal(f.where, "/steps/4294967296/klms/12/a~0b~1c\"d");
	fail_set(&f, FAIL_SPEC_VALUE, "x");
	fail_in_step(&f, 2);
	assert_string_equal(f.where, "/steps/2");
}

static void a_place_that_does_not_fit_is_the_nearest_that_does(void **state)
{
	static char name[600];
	const struct at list = { .name = "klms" };
	const struct at deep = { .up = &list, .name = name };
	char prefix[sizeof(((struct fail *)0)->where)];
	struct fail f;

	memset(name, '/', sizeof(name) - 1);
	fail_set(&f, FAIL_SPEC_VALUE, "x");
	fail_at(&f, &deep);
	assert_string_equal(f.where, "/klms");
	memset(prefix, 'p', sizeof(prefix) - 1);
	prefix[0] = '/';
	prefix[sizeof(prefix) - 1 - 3] = '\0';
	fail_under(&f, prefix);
	assert_string_equal(f.where, prefix);
}

static void utf8_is_what_rfc_3629_says(void **state)
{
	static const struct {
		const char *bytes;
		size_t len, want;
	} rows[] = {
		{ "", 0, 0 },
		{ "a", 1, 1 },
		{ "\0", 1, 1 },
		{ "\x7f", 1, 1 },
		{ "\x80", 1, 0 },
		{ "\xc1\xbf", 2, 0 },
		{ "\xc2\x80", 2, 2 },
		{ "\xc2", 1, 0 },
		{ "\xdf\xbf", 2, 2 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xe0\xa0\x80", 3, 3 },
		{ "\xed\x9f\xbf", 3, 3 },
		{ "\xed\xa0\x80", 3, 0 },
		{ "\xed\xbf\xbf", 3, 0 },
		{ "\xee\x80\x80", 3, 3 },
		{ "\xef\xbf\xbf", 3, 3 },
		{ "\xef\xbf", 2, 0 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 },
		{ "\xf0\x90\x80\x80", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\xf4\x90\x80\x80", 4, 0 },
		{ "\xf5\x80\x80\x80", 4, 0 },
		{ "\xff", 1, 0 },
		{ "\xe2\x28\xa1", 3, 0 },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (utf8_char(rows[i].bytes, rows[i].len) != rows[i].want)
			fail_msg("row %zu", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_code_has_a_word_of_its_own),
		cmocka_unit_test(exit_statuses_are_the_contract),
		cmocka_unit_test(what_a_call_returned_is_what_it_said),
		cmocka_unit_test(every_library_code_has_one_of_ours),
		cmocka_unit_test(a_text_that_had_to_end_says_so_and_stays_utf8),
		cmocka_unit_test(a_failed_call_keeps_its_errno),
		cmocka_unit_test(places_are_json_pointers),
		cmocka_unit_test(a_place_that_does_not_fit_is_the_nearest_that_does),
		cmocka_unit_test(utf8_is_what_rfc_3629_says),
	};

	return cmocka_run_group_tests_name("fail", tests, NULL, NULL);
}
