/* SPDX-License-Identifier: BSD-2-Clause */
/* Error objects and access words. */
#include "lib_test.h"

#include <errno.h>
#include <stdio.h>

static void every_code_has_its_own_word(void **state)
{
	int a, b;

	for (a = 0; a < IBMR_E_MAX; a++) {
		assert_non_null(ibmr_code_name((enum ibmr_code)a));
		for (b = 0; b < a; b++)
			assert_string_not_equal(ibmr_code_name((enum ibmr_code)a),
						ibmr_code_name((enum ibmr_code)b));
	}
	assert_string_equal(ibmr_code_name(IBMR_E_NOT_ON_DEMAND), "not_on_demand");
	assert_string_equal(ibmr_code_name((enum ibmr_code)9999), "unknown");
}

static void a_refusal_returns_the_errno_of_its_code(void **state)
{
	struct ibmr_err err;

	memset(&err, 0xa5, sizeof(err));
	assert_int_equal(ibmri_refuse(&err, IBMR_E_RANGE, "ibmr_x", "%d of %s", 3, "a"), -EFAULT);
	assert_int_equal(err.code, IBMR_E_RANGE);
	assert_int_equal(err.sys_errno, 0);
	assert_int_equal(err.index, -1);
	assert_int_equal(err.status, -1);
	assert_null(err.cause);
	assert_string_equal(err.origin, "ibmr_x");
	assert_string_equal(err.text, "3 of a");
	assert_string_equal(err.hint, "");
	assert_int_equal(ibmri_refuse(NULL, IBMR_E_LIMIT, "x", "y"), -E2BIG);
}

static void a_failed_call_returns_that_calls_errno(void **state)
{
	struct ibmr_err err;

	assert_int_equal(ibmri_failed(&err, IBMR_E_MEMLOCK, "ibv_reg_mr", EPERM, "no"), -EPERM);
	assert_int_equal(err.sys_errno, EPERM);
	/* a call that failed without an errno is still a failure */
	assert_int_equal(ibmri_failed(&err, IBMR_E_IO, "open", 0, "no"), -EIO);
}

static void a_long_text_is_cut_between_characters(void **state)
{
	struct ibmr_err err;
	char name[700];
	size_t i, len;

	/* two-byte characters, at both parities of the cut */
	for (i = 0; i < 2; i++) {
		size_t at = 0;

		if (i)
			name[at++] = 'x';
		while (at + 2 < sizeof(name)) {
			name[at++] = (char)0xc3;
			name[at++] = (char)0xa4;
		}
		name[at] = '\0';
		ibmri_refuse(&err, IBMR_E_STATE, "x", "%s", name);
		len = strlen(err.text);
		assert_in_range(len, sizeof(err.text) - 3, sizeof(err.text) - 1);
		assert_int_equal((unsigned char)err.text[len - 1], 0xa4);
		ibmri_err_more(&err, "%s", "more");
		assert_true(strlen(err.text) < sizeof(err.text));
	}
}

static void access_words_and_bits_lead_to_each_other(void **state)
{
	static const char *const words[] = { "local_write",   "remote_write",	 "remote_read",
					     "remote_atomic", "mw_bind",	 "on_demand",
					     "hugetlb",	      "relaxed_ordering" };
	uint64_t all = 0, bit;
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		bit = ibmr_access_from_name(words[i]);
		assert_int_not_equal(bit, 0);
		assert_int_equal(all & bit, 0);
		all |= bit;
		assert_string_equal(ibmr_access_name(bit), words[i]);
	}
	assert_int_equal(ibmr_access_from_name("remote"), 0);
	assert_int_equal(ibmr_access_from_name("LOCAL_WRITE"), 0);
	assert_int_equal(ibmr_access_from_name(NULL), 0);
	assert_null(ibmr_access_name(0));
	assert_null(ibmr_access_name(3));
	assert_null(ibmr_access_name(1ULL << 40));
}

static void rights_are_listed_in_words(void **state)
{
	char buf[160], small[8];

	assert_string_equal(ibmri_access_text(0, buf, sizeof(buf)), "no rights");
	assert_string_equal(ibmri_access_text(5, buf, sizeof(buf)), "local_write, remote_read");
	assert_string_equal(ibmri_access_text(1 | 1ULL << 40, buf, sizeof(buf)),
			    "local_write, 0x10000000000");
	assert_int_equal(strlen(ibmri_access_text(5, small, sizeof(small))), sizeof(small) - 1);
}

static void remote_write_and_atomic_need_local_write(void **state)
{
	struct ibmr_err err;

	assert_int_equal(
		ibmri_access_check(IBMR_ACCESS_REMOTE_WRITE, IBMR_ACCESS_FILL, "a fill", "x", &err),
		-EACCES);
	assert_string_equal(err.cause, "needs_local_write");
	assert_int_equal(ibmri_access_check(IBMR_ACCESS_REMOTE_ATOMIC, IBMR_ACCESS_FILL, "a fill",
					    "x", &err),
			 -EACCES);
	assert_int_equal(
		ibmri_access_check(IBMR_ACCESS_REMOTE_READ, IBMR_ACCESS_FILL, "a fill", "x", &err),
		0);
	assert_int_equal(ibmri_access_check(3, IBMR_ACCESS_FILL, "a fill", "x", &err), 0);
}

static void a_flag_that_cannot_be_carried_is_named(void **state)
{
	struct ibmr_err err;

	assert_int_equal(ibmri_access_check(IBMR_ACCESS_LOCAL_WRITE | IBMR_ACCESS_RELAXED_ORDERING,
					    IBMR_ACCESS_FILL, "a fill", "x", &err),
			 -EACCES);
	assert_int_equal(err.code, IBMR_E_ACCESS);
	assert_non_null(strstr(err.text, "cannot carry relaxed_ordering"));
	assert_non_null(strstr(err.text, "local_write, remote_write, remote_read, remote_atomic"));
	assert_int_equal(ibmri_access_check(1ULL << 50, IBMR_ACCESS_FILL, "a fill", "x", &err),
			 -EINVAL);
	assert_int_equal(err.code, IBMR_E_ARGUMENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_its_own_word),
		cmocka_unit_test(a_refusal_returns_the_errno_of_its_code),
		cmocka_unit_test(a_failed_call_returns_that_calls_errno),
		cmocka_unit_test(a_long_text_is_cut_between_characters),
		cmocka_unit_test(access_words_and_bits_lead_to_each_other),
		cmocka_unit_test(rights_are_listed_in_words),
		cmocka_unit_test(remote_write_and_atomic_need_local_write),
		cmocka_unit_test(a_flag_that_cannot_be_carried_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
