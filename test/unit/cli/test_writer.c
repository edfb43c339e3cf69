/* SPDX-License-Identifier: BSD-2-Clause */
/* Values as text, for the next reader of them. */
#include "cli_test.h"

#include "out.h"
#include "result.h"

static void each_character_is_read_back_wherever_it_stands(void **state)
{
	const size_t most = 20;
	char string[24] = "";
	struct growing text;
	struct writer w;
	json_t *tree;
	size_t size, at;
	int c;

	for (c = 1; c < 0x80; c++) {
		for (size = 1; size <= most; size++) {
			for (at = 0; at < size; at++) {
				memset(string, 'a', size);
				string[size] = '\0';
				string[at] = (char)c;
				text = (struct growing){ NULL, 0, 0 };
				writer_init_value(&w, &text, 0);
				writer_string(&w, string);
				assert_int_equal(writer_finish_value(&w), 0);
				assert_null(memchr(text.bytes, 0x7f, text.size));
				tree = result_tree(&text);
				assert_non_null(tree);
				assert_string_equal(json_string_value(tree), string);
				json_decref(tree);
				growing_free(&text);
			}
		}
	}
}

/* The buffer is flushed within; what it holds at a time does not show. */
static void a_large_value_is_as_long_as_it_is(void **state)
{
	struct growing text = { NULL, 0, 0 };
	struct writer w;
	json_t *tree;
	uint64_t i;

	writer_init_value(&w, &text, 3);
	writer_begin(&w, '[');
	for (i = 0; i < 20000; i++)
		writer_int(&w, (int64_t)i);
	writer_end(&w, ']');
	assert_int_equal(writer_finish_value(&w), 0);
	assert_memory_equal(text.bytes, "[\n        0,\n        1,", 22);
	assert_memory_equal(text.bytes + text.size - 8, "\n      ]", 8);
	tree = result_tree(&text);
	assert_int_equal(json_array_size(tree), 20000);
	for (i = 0; i < 20000; i++)
		assert_int_equal(json_integer_value(json_array_get(tree, i)), i);
	json_decref(tree);
	growing_free(&text);
}

static void hex_has_the_digits_it_needs_and_those_asked_for(void **state)
{
	static const char want[] =
		"{\"a\":\"0x0\",\"b\":\"0x0000beef\",\"c\":\"0xffffffffffffffff\"}";
	struct growing text = { NULL, 0, 0 };
	struct writer w;

	writer_init_value(&w, &text, 0);
	writer_begin(&w, '{');
	say_hex(&w, "a", 0, 1);
	say_hex(&w, "b", 0xbeef, 8);
	say_hex(&w, "c", UINT64_MAX, 1);
	writer_end(&w, '}');
	assert_int_equal(writer_finish_value(&w), 0);
	assert_int_equal(text.size, sizeof(want) - 1);
	assert_memory_equal(text.bytes, want, text.size);
	growing_free(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_character_is_read_back_wherever_it_stands),
		cmocka_unit_test(a_large_value_is_as_long_as_it_is),
		cmocka_unit_test(hex_has_the_digits_it_needs_and_those_asked_for),
	};

	return cmocka_run_group_tests_name("writer", tests, NULL, NULL);
}
