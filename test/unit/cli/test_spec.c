/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers, words, and what a parsed step holds; what is refused is in test/cases. */
#include "cli_test.h"

#include <errno.h>

#include "../../../src/lib/ibmr.h"
#include "words.h"

static void numbers_are_read_to_the_last_bit(void **state)
{
	static const struct {
		const char *text;
		uint64_t want;
	} rows[] = {
		{ "0", 0 },
		{ "7", 7 },
		{ "4096", 4096 },
		{ "18446744073709551615", UINT64_MAX },
		{ "0x0", 0 },
		{ "0X0", 0 },
		{ "0xffffffffffffffff", UINT64_MAX },
		{ "0xAbCdEf", 0xabcdef },
		{ "0KiB", 0 },
		{ "1KiB", 1024 },
		{ "3MiB", 3 << 20 },
		{ "5GiB", 5ull << 30 },
		{ "7TiB", 7ull << 40 },
		{ "18014398509481983KiB", UINT64_MAX - 1023 },
		{ "16777215TiB", 16777215ull << 40 },
	};
	static const char *const bad[] = {
		"",
		" ",
		"-0",
		"-1",
		"+1",
		"00",
		"01",
		"0x",
		"x1",
		"0x00",
		"0x01",
		"0xg",
		"1.0",
		"1e3",
		"1 ",
		" 1",
		"1\n",
		"1k",
		"1K",
		"1Ki",
		"1KB",
		"1kiB",
		"1KiBs",
		"1 KiB",
		"KiB",
		"1PiB",
		"0x1KiB",
		"1,000",
		"1_000",
		"0b1",
		"0o7",
		"ten",
		"18446744073709551616",
		"99999999999999999999999999",
		"0x10000000000000000",
		"18014398509481984KiB",
		"16777216TiB",
		"\xc2\xb2",
	};
	uint64_t number;
	struct fail f;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		OK(spec_number_text(rows[i].text, strlen(rows[i].text), NULL, &number, &f));
		assert_true(number == rows[i].want);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		number = 42;
		REFUSED(spec_number_text(bad[i], strlen(bad[i]), NULL, &number, &f),
			FAIL_SPEC_VALUE);
		assert_int_equal(number, 42);
		assert_non_null(strstr(f.hint, "KiB"));
	}
}

static void the_nearest_word_is_near(void **state)
{
	static const char *const words[] = { "length",	    "offset", "remote_write",
					     "remote_read", "mr",     "max_klms" };
	static const struct {
		const char *word, *want;
	} rows[] = {
		{ "lenght", "length" },
		{ "lenth", "length" },
		{ "Length", "length" },
		{ "offest", "offset" },
		{ "remote_wirte", "remote_write" },
		{ "remote-read", "remote_read" },
		{ "RemoteRead", "remote_read" },
		{ "max_klm", "max_klms" },
		{ "m", "mr" },
		{ "rm", "mr" },
		{ "fast", NULL },
		{ "", NULL },
		{ "stride", NULL },
		{ "a_word_that_is_longer_than_any_of_ours_is", NULL },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *near = spec_nearest(rows[i].word, words, 6);

		if (!rows[i].want != !near || (near && strcmp(near, rows[i].want)))
			fail_msg("%s: %s", rows[i].word, near ? near : "nothing");
	}
}

static void quotes_are_short_and_whole(void **state)
{
	char buf[QUOTE_ROOM], text[300];
	size_t i;

	assert_string_equal(quote(buf, "abc", 3), "'abc'");
	assert_string_equal(quote(buf, "", 0), "''");
	for (i = 0; i + 1 < sizeof(text); i += 2) {
		text[i] = '\xc3';
		text[i + 1] = '\xa9';
	}
	quote(buf, text, i);
	assert_true(strlen(buf) < QUOTE_ROOM);
	assert_string_equal(buf + strlen(buf) - 6, "\xc3\xa9'...");
}

/* ---- steps ----------------------------------------------------------------------- */

static json_t *doc; /* of the step now looked at: names are borrowed from it */

static struct step parse(const char *text)
{
	struct step step;
	struct fail f;

	json_decref(doc);
	doc = json_loads(text, 0, NULL);
	assert_non_null(doc);
	OK(step_parse(doc, &step, &f));
	return step;
}

static int drop(void **state)
{
	json_decref(doc);
	doc = NULL;
	return 0;
}

static void reg_holds_what_was_said(void **state)
{
	struct step s = parse("{\"do\":\"reg\",\"mr\":\"a\",\"length\":\"2MiB\"}");

	assert_int_equal(s.verb, STEP_REG);
	assert_string_equal(s.mr, "a");
	assert_int_equal(s.reg.length, 2 << 20);
	assert_int_equal(s.reg.access, 0);
	assert_int_equal(s.reg.init.kind, DATA_NONE);
	assert_null(s.reg.file);
	assert_null(s.expect);

	s = parse("{\"do\":\"reg\",\"mr\":\"a\",\"file\":\"f\",\"file_offset\":\"0x10\",\"map\":"
		  "\"shared\","
		  "\"access\":[\"on_demand\",\"local_write\",\"shared_other_write\"],"
		  "\"init\":{\"byte\":255},\"expect\":{\"error\":\"io\"}}");
	assert_string_equal(s.reg.file, "f");
	assert_int_equal(s.reg.file_offset, 16);
	assert_true(s.reg.length == IBMR_TO_END);
	assert_true(s.reg.map_shared);
	assert_false(s.reg.create);
	assert_int_equal(s.reg.access, IBMR_ACCESS_ON_DEMAND | IBMR_ACCESS_LOCAL_WRITE);
	assert_int_equal(s.reg.share, SPEC_SHARED_OTHER_WRITE);
	assert_int_equal(s.reg.init.kind, DATA_BYTE);
	assert_int_equal(s.reg.init.value, 255);
	assert_int_equal(s.expect_error, FAIL_IO);

	s = parse("{\"do\":\"reg\",\"mr\":\"a\",\"length\":4,\"hugepages\":\"1GiB\","
		  "\"init\":{\"hex\":\"00Ff10\"}}");
	assert_int_equal(s.reg.hugepages, 1 << 30);
	assert_int_equal(s.reg.init.kind, DATA_HEX);
	assert_int_equal(s.reg.init.bytes, 3);
}

/* Each access word is the library's bit or one to share by, and no two are the same. */
static void access_words_are_all_known(void **state)
{
	static const char *const share[] = { "shared_user_read",  "shared_user_write",
					     "shared_group_read", "shared_group_write",
					     "shared_other_read", "shared_other_write" };
	struct access_words access;
	struct fail f;
	json_t *list;
	unsigned bit;

	for (bit = 0; bit < 64; bit++) {
		const char *name = ibmr_access_name(1ull << bit);

		if (!name)
			continue;
		list = json_pack("[s]", name);
		OK(access_parse(list, NULL, &access, &f));
		assert_true(access.bits == 1ull << bit && !access.share);
		json_decref(list);
	}
	for (bit = 0; bit < 6; bit++) {
		list = json_pack("[s]", share[bit]);
		OK(access_parse(list, NULL, &access, &f));
		assert_true(!access.bits && access.share == 1u << bit);
		json_decref(list);
	}
}

static void fill_holds_its_entries_in_order(void **state)
{
	struct step s = parse(
		"{\"do\":\"fill\",\"mr\":\"v\",\"layout\":\"list\",\"base\":\"0xffffffffffff0000\","
		"\"klms\":[{\"mr\":\"a\",\"offset\":3},{\"length\":\"1KiB\",\"mr\":\"b\"}]}");

	assert_false(s.fill.repeat);
	assert_true(s.fill.base == 0xffffffffffff0000);
	assert_int_equal(s.fill.num, 2);
	assert_string_equal(s.fill.entries[0].mr, "a");
	assert_int_equal(s.fill.entries[0].offset, 3);
	assert_true(s.fill.entries[0].length == IBMR_TO_END);
	assert_string_equal(s.fill.entries[1].mr, "b");
	assert_int_equal(s.fill.entries[1].offset, 0);
	assert_int_equal(s.fill.entries[1].length, 1024);
	step_free(&s);

	s = parse("{\"do\":\"fill\",\"mr\":\"v\",\"layout\":\"repeat\",\"count\":\"4294967295\","
		  "\"split\":\"auto\","
		  "\"blocks\":[{\"mr\":\"a\",\"offset\":3,\"length\":4,\"stride\":0}]}");
	assert_true(s.fill.repeat);
	assert_true(s.fill.split);
	assert_int_equal(s.fill.count, 4294967295);
	assert_int_equal(s.fill.entries[0].stride, 0);
	assert_int_equal(s.fill.entries[0].length, 4);
	step_free(&s);
}

static void prefetch_is_one_range_or_many(void **state)
{
	struct step s = parse("{\"do\":\"prefetch\",\"mr\":\"a\",\"offset\":8}");

	assert_false(s.prefetch.listed);
	assert_true(s.prefetch.flush);
	assert_int_equal(s.prefetch.advice, ADVICE_READ);
	assert_int_equal(s.prefetch.num, 1);
	assert_string_equal(s.prefetch.ranges[0].mr, "a");
	assert_int_equal(s.prefetch.ranges[0].offset, 8);
	assert_true(s.prefetch.ranges[0].length == IBMR_TO_END);
	step_free(&s);
	s = parse("{\"do\":\"prefetch\",\"flush\":false,\"advice\":\"no_fault\","
		  "\"ranges\":[{\"mr\":\"a\"},{\"mr\":\"b\",\"length\":1}]}");
	assert_true(s.prefetch.listed);
	assert_false(s.prefetch.flush);
	assert_int_equal(s.prefetch.advice, ADVICE_NO_FAULT);
	assert_int_equal(s.prefetch.num, 2);
	assert_null(s.mr);
	step_free(&s);
}

static void data_steps_hold_what_was_said(void **state)
{
	struct step s =
		parse("{\"do\":\"write\",\"mr\":\"a\",\"ramp\":\"0xff\",\"unchecked\":true}");

	assert_int_equal(s.write.data.kind, DATA_RAMP);
	assert_int_equal(s.write.data.value, 255);
	assert_true(s.write.data.bytes == IBMR_TO_END);
	assert_true(s.write.unchecked);
	s = parse("{\"do\":\"write\",\"mr\":\"a\",\"byte\":0,\"length\":9,\"offset\":\"1TiB\"}");
	assert_int_equal(s.write.data.kind, DATA_BYTE);
	assert_int_equal(s.write.data.bytes, 9);
	assert_int_equal(s.write.offset, 1ull << 40);
	s = parse("{\"do\":\"read\",\"mr\":\"a\",\"to_file\":\"-\",\"expect\":{\"hex\":\"00\"}}");
	assert_string_equal(s.read.to_file, "-");
	assert_true(s.read.length == IBMR_TO_END);
	assert_non_null(s.expect);
	assert_int_equal(s.expect_error, FAIL_NONE);
	s = parse("{\"do\":\"copy\",\"to\":\"a\",\"from\":\"b\",\"from_offset\":1,\"to_offset\":2,"
		  "\"length\":3}");
	assert_null(s.mr);
	assert_string_equal(s.copy.to, "a");
	assert_string_equal(s.copy.from, "b");
	assert_int_equal(s.copy.from_offset, 1);
	assert_int_equal(s.copy.to_offset, 2);
	assert_int_equal(s.copy.length, 3);
	s = parse("{\"do\":\"fetch_add\",\"mr\":\"a\",\"add\":\"0xffffffffffffffff\"}");
	assert_true(s.atomic.add == UINT64_MAX);
	s = parse("{\"do\":\"compare_swap\",\"mr\":\"a\",\"compare\":1,\"swap\":\"2KiB\","
		  "\"offset\":8}");
	assert_int_equal(s.atomic.compare, 1);
	assert_int_equal(s.atomic.swap, 2048);
	assert_int_equal(s.atomic.offset, 8);
}

/* The tables say what the parser takes: each member alone is known to its command. */
static void every_member_of_the_tables_is_taken(void **state)
{
	int verb;

	for (verb = 0; verb < STEP_DO_MAX; verb++) {
		size_t num, i;
		const struct member *members = step_members(verb, &num);
		enum step_do back;

		assert_true(step_do_from_word(step_word(verb), &back));
		assert_int_equal(back, verb);
		for (i = 0; i < num; i++) {
			json_t *request =
				json_pack("{s:s, s:n}", "do", step_word(verb), members[i].name);
			struct step step;
			struct fail f;

			REFUSED(step_parse(request, &step, &f), FAIL_SPEC_TYPE);
			assert_string_equal(f.where + 1, members[i].name);
			json_decref(request);
		}
	}
}

static void a_plan_that_fails_leaves_nothing(void **state)
{
	struct plan plan;
	struct fail f;
	json_t *bad = json_loads(
		"{\"steps\":[{\"do\":\"prefetch\",\"mr\":\"a\"},"
		"{\"do\":\"fill\",\"mr\":\"v\",\"layout\":\"list\",\"klms\":[{\"mr\":\"a\"}]},"
		"{\"do\":\"fill\",\"mr\":\"v\",\"layout\":\"list\",\"klms\":[{\"mr\":\"a\"},{}]}]}",
		0, NULL);

	REFUSED(plan_parse(bad, &plan, &f), FAIL_SPEC_MISSING);
	assert_string_equal(f.where, "/steps/2/klms/1");
	json_decref(bad);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_to_the_last_bit),
		cmocka_unit_test(the_nearest_word_is_near),
		cmocka_unit_test(quotes_are_short_and_whole),
		cmocka_unit_test_teardown(reg_holds_what_was_said, drop),
		cmocka_unit_test(access_words_are_all_known),
		cmocka_unit_test_teardown(fill_holds_its_entries_in_order, drop),
		cmocka_unit_test_teardown(prefetch_is_one_range_or_many, drop),
		cmocka_unit_test_teardown(data_steps_hold_what_was_said, drop),
		cmocka_unit_test(every_member_of_the_tables_is_taken),
		cmocka_unit_test(a_plan_that_fails_leaves_nothing),
	};

	return cmocka_run_group_tests_name("spec", tests, NULL, NULL);
}
