/* SPDX-License-Identifier: BSD-2-Clause */
/* Documents as files and as text: what is too large for a folder of test/cases. */
#include "cli_test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static char *get(size_t size)
{
	char *bytes = malloc(size);

	if (!bytes)
		abort();
	return bytes;
}

/* ---- text -------------------------------------------------------------------- */

static void deep_nesting_needs_no_stack(void **state)
{
	static const char *const units[] = { "[", "{\"a\":", "[{\"\":" };
	size_t i, used, size = 1u << 20;
	char *text = get(size + 8);
	struct fail f;
	json_t *doc;

	for (i = 0; i < 3; i++) {
		for (used = 0; used < size; used += strlen(units[i]))
			memcpy(text + used, units[i], strlen(units[i]));
		REFUSED(parse_bytes(text, used, &doc, &f), FAIL_SPEC_SYNTAX);
		assert_non_null(strstr(f.message, "32 levels"));
	}
	free(text);
}

/* Brackets in strings or behind escapes count for nothing. */
static void brackets_in_strings_are_no_nesting(void **state)
{
	const char *text = "[\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[[[[[[[[[[[[\\\\\", []]";
	struct fail f;
	json_t *doc;

	OK(parse_bytes(text, strlen(text), &doc, &f));
	json_decref(doc);
}

/* What the outermost object holds by a name is found as the parser would find it, and nothing else. */
static void a_member_is_looked_up_without_parsing(void **state)
{
	static const struct {
		const char *text, *found;
	} rows[] = {
		{ "{\"device\": \"soft0\"}", "soft0" },
		{ " { \"a\":[{\"device\":\"x\"}], \"device\" : \"y\\u0041\\\"\" ,", "yA\"" },
		{ "{\"s\":[\"\\\"]{\\\\\"],\"\\u0064evice\":\"z\"}", "z" },
		{ "{\"a\":\"device\",\"b\":\"x\"}", NULL },
		{ "{\"device\": 5, \"a\": \"x\"}", NULL },
		{ "{\"steps\": [{\"device\": \"x\"}]}", NULL },
		{ "[[\"device\", \"x\"], \"device\"", NULL },
		{ "{\"a\": \"no end, \\", NULL },
		{ "{\"a\": [\"no end, \\", NULL },
		{ "}}\"device\"", NULL },
		{ "{\"device\"", NULL },
		{ "", NULL },
	};
	struct fail f;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t size = strlen(rows[i].text);
		/* of its own size, so that a byte read behind it is noticed */
		struct spec_text text = { .bytes = get(size ? size : 1), .size = size };
		json_t *found;

		memcpy(text.bytes, rows[i].text, size);
		OK(spec_look(&text, "device", &found, &f));
		if (rows[i].found)
			assert_string_equal(json_string_value(found), rows[i].found);
		else
			assert_null(found);
		json_decref(found);
		spec_text_free(&text);
	}
}

static char *many_klms(size_t num, const char *tail, size_t *ret_size)
{
	char *text, *at;
	size_t i;

	at = text = get(num * 64 + 256);
	at += sprintf(at, "{ \"layout\": \"list\", \"klms\": [\n");
	for (i = 0; i < num; i++)
		at += sprintf(at, "%s{ \"mr\": \"pool\", \"offset\": %zu, \"length\": 4096 }",
			      i ? ",\n" : "", i * 4096);
	at += sprintf(at, "%s", tail);
	*ret_size = at - text;
	return text;
}

static double parse_time(size_t num)
{
	double start, best = 1e9;
	struct step step;
	struct fail f;
	json_t *doc;
	char *text;
	size_t size;
	int i;

	text = many_klms(num, "] }", &size);
	for (i = 0; i < 3; i++) {
		start = seconds();
		OK(parse_bytes(text, size, &doc, &f));
		OK(spec_parse_fill(doc, "m", &step, &f));
		if (seconds() - start < best)
			best = seconds() - start;
		assert_int_equal(step.fill.num, num);
		assert_string_equal(step.fill.entries[num - 1].mr, "pool");
		assert_int_equal(step.fill.entries[num - 1].offset, (num - 1) * 4096);
		step_free(&step);
		json_decref(doc);
	}
	free(text);
	return best;
}

/* Four times the entries cost some four times, not sixteen. */
static void lists_cost_linear_time(void **state)
{
	double few = parse_time(30000), many = parse_time(120000);

	if (many > 10 * few)
		fail_msg("30000 entries in %.4f s, 120000 in %.4f s", few, many);
}

static void a_mistake_far_down_is_found_there(void **state)
{
	struct fail f;
	json_t *doc;
	char *text;
	size_t size;

	text = many_klms(60000, ",\n  ] }", &size);
	REFUSED(parse_bytes(text, size, &doc, &f), FAIL_SPEC_SYNTAX);
	assert_int_equal(f.line, 60001);
	free(text);
	text = many_klms(60000, ",\n  { \"mr\": \"a\", \"offset\": 1, \"mr\": \"b\" } ] }", &size);
	REFUSED(parse_bytes(text, size, &doc, &f), FAIL_SPEC_DUPLICATE);
	assert_int_equal(f.line, 60002);
	assert_int_equal(f.column, 29);
	assert_non_null(strstr(f.message, "line 60002, column 5"));
	free(text);
}

static void long_names_are_told_in_part(void **state)
{
	size_t size = 1u << 20, used;
	char *text = get(size + 64);
	struct step step;
	struct fail f;
	json_t *doc;

	used = sprintf(text, "{ \"layout\": \"list\", \"");
	memset(text + used, 'x', size);
	sprintf(text + used + size, "\": 1 }");
	OK(parse_bytes(text, strlen(text), &doc, &f));
	REFUSED(spec_parse_fill(doc, "m", &step, &f), FAIL_SPEC_UNKNOWN_MEMBER);
	assert_string_equal(f.where, "");
	assert_true(strlen(f.message) < 200);
	json_decref(doc);
	free(text);
}

static void duplicates_of_every_shape_have_both_places(void **state)
{
	static const struct {
		const char *text;
		unsigned line, column;
		const char *first;
	} rows[] = {
		{ "{\"a\":1,\"a\":2}", 1, 8, "line 1, column 2" },
		{ "{\"a\":{\"a\":1},\n\"a\":2}", 2, 1, "line 1, column 2" },
		{ "{\"b\":[{\"a\":1},{\"a\":1,\"a\":2}]}", 1, 22, "line 1, column 16" },
		{ "{\"b\":\"a\",\"a\":1,\"c\":\"a\",\"a\":2}", 1, 24, "line 1, column 10" },
		{ "{\"\":1,\"\":2}", 1, 7, "line 1, column 2" },
		{ "{\"\\\"\":1,\"\\\"\":2}", 1, 9, "line 1, column 2" },
		{ "{\"\xc3\xa9\":1,\"\xc3\xa9\":2}", 1, 8, "line 1, column 2" },
		{ "{\"a\" : 1, \"b\":{\"a\":{}},\"a\"\n:2}", 1, 24, "line 1, column 2" },
	};
	struct fail f;
	json_t *doc;
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		REFUSED(parse_bytes(rows[i].text, strlen(rows[i].text), &doc, &f),
			FAIL_SPEC_DUPLICATE);
		if (f.line != rows[i].line || f.column != rows[i].column ||
		    !strstr(f.message, rows[i].first))
			fail_msg("%s: %u:%u: %s", rows[i].text, f.line, f.column, f.message);
	}
}

/* Every cut of a good document is refused at a place inside it, or is a document. */
static void every_cut_is_told(void **state)
{
	static const char text[] =
		"{ \"steps\": [ { \"do\": \"write\", \"mr\": \"a\\u00e9\\n\xc3\xa9\", "
		"\"hex\": \"00\", \"offset\": -12.5e+3, \"unchecked\": true,\n"
		" \"x\": null } ] }";
	struct fail f;
	json_t *doc;
	size_t i;

	for (i = 0; i < sizeof(text) - 1; i++) {
		REFUSED(parse_bytes(text, i, &doc, &f), FAIL_SPEC_SYNTAX);
		assert_true(f.line >= 1 && f.line <= 2 && f.column >= 1 && f.column <= i + 1);
	}
	OK(parse_bytes(text, i, &doc, &f));
	json_decref(doc);
}

/* ---- files --------------------------------------------------------------------- */

static char folder[] = "/tmp/ibmr-text-XXXXXX";

static const char *in_folder(const char *name)
{
	static _Thread_local char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	unlink(in_folder("file"));
	unlink(in_folder("fifo"));
	return rmdir(folder);
}

static void write_file(const char *bytes, size_t size)
{
	FILE *file = fopen(in_folder("file"), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void files_are_read_whole(void **state)
{
	static char bytes[200000];
	struct spec_text text;
	struct fail f;
	size_t i, sizes[] = { 0, 1, 65535, 65536, 65537, sizeof(bytes) };

	for (i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 7);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		write_file(bytes, sizes[i]);
		OK(spec_read(in_folder("file"), &text, &f));
		assert_int_equal(text.size, sizes[i]);
		assert_memory_equal(text.bytes, bytes, sizes[i]);
		spec_text_free(&text);
	}
}

static void *write_fifo(void *arg)
{
	size_t i, *pieces = arg;
	int fd = open(in_folder("fifo"), O_WRONLY);
	char piece[1000];

	memset(piece, 'x', sizeof(piece));
	for (i = 0; fd >= 0 && i < *pieces; i++)
		if (write(fd, piece, sizeof(piece)) != sizeof(piece))
			break;
	close(fd);
	return NULL;
}

static void pipes_are_read_to_their_end(void **state)
{
	size_t pieces = 300;
	struct spec_text text;
	pthread_t writer;
	struct fail f;

	assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_fifo, &pieces), 0);
	OK(spec_read(in_folder("fifo"), &text, &f));
	pthread_join(writer, NULL);
	assert_int_equal(text.size, 300000);
	spec_text_free(&text);
}

static void what_is_no_document_is_io(void **state)
{
	struct spec_text text;
	struct fail f;
	int fd;

	REFUSED(spec_read(folder, &text, &f), FAIL_IO);
	assert_int_equal(f.sys_errno, EISDIR);
	REFUSED(spec_read(in_folder("none"), &text, &f), FAIL_IO);
	assert_int_equal(f.sys_errno, ENOENT);
	assert_non_null(strstr(f.message, "none"));
	REFUSED(spec_read("", &text, &f), FAIL_IO);
	REFUSED(spec_read_fd(-1, "nothing", &text, &f), FAIL_IO);
	assert_int_equal(f.sys_errno, EBADF);
	write_file("x", 1);
	fd = open(in_folder("file"), O_WRONLY);
	REFUSED(spec_read_fd(fd, "write only", &text, &f), FAIL_IO);
	close(fd);
}

static void what_is_too_large_is_not_read(void **state)
{
	struct spec_text text;
	struct rlimit old, small;
	struct fail f;

	write_file("x", 1);
	assert_int_equal(truncate(in_folder("file"), (off_t)1 << 40), 0);
	REFUSED(spec_read(in_folder("file"), &text, &f), FAIL_IO);
	assert_string_equal(f.cause, "too_large");
	/* one that does not tell its size: it ends at the limit all the same */
	REFUSED(spec_read("/dev/zero", &text, &f), FAIL_IO);
	assert_string_equal(f.cause, "too_large");
	/* and a file of exactly the limit is fine */
	assert_int_equal(truncate(in_folder("file"), SPEC_MAX_BYTES), 0);
	OK(spec_read(in_folder("file"), &text, &f));
	assert_int_equal(text.size, SPEC_MAX_BYTES);
	spec_text_free(&text);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	small = old;
	small.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	REFUSED(spec_read(in_folder("file"), &text, &f), FAIL_IO);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(f.sys_errno, EMFILE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deep_nesting_needs_no_stack),
		cmocka_unit_test(brackets_in_strings_are_no_nesting),
		cmocka_unit_test(a_member_is_looked_up_without_parsing),
		cmocka_unit_test(lists_cost_linear_time),
		cmocka_unit_test(a_mistake_far_down_is_found_there),
		cmocka_unit_test(long_names_are_told_in_part),
		cmocka_unit_test(duplicates_of_every_shape_have_both_places),
		cmocka_unit_test(every_cut_is_told),
		cmocka_unit_test(files_are_read_whole),
		cmocka_unit_test(pipes_are_read_to_their_end),
		cmocka_unit_test(what_is_no_document_is_io),
		cmocka_unit_test(what_is_too_large_is_not_read),
	};

	return cmocka_run_group_tests_name("text", tests, make_folder, remove_folder);
}
