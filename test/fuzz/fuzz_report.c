/* SPDX-License-Identifier: BSD-2-Clause */
/* Any bytes as what nodes answered: what is no answer is named, and the sum is told in each form. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/report.h"
#include "require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void tell(const json_t *sum)
{
	static void (*const forms[])(struct writer *, const json_t *) = { report_text,
									  report_html };
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct writer w;
	size_t i;

	REQUIRE(fd >= 0);
	for (i = 0; i < 2; i++) {
		writer_init(&w, fd, false);
		forms[i](&w, sum);
		REQUIRE(writer_finish(&w) == 0);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("answers", MFD_CLOEXEC);
	struct report report;
	struct fail f;
	char path[40];
	json_t *sum, *again;

	REQUIRE(fd >= 0);
	REQUIRE(size == 0 || write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	REQUIRE(report_begin(&report, &f) == 0);
	REQUIRE(report_read(&report, path, &f) == 0);
	sum = report_sum(&report, NULL);
	REQUIRE(sum);
	/* since itself, nothing has changed */
	again = report_sum(&report, sum);
	REQUIRE(json_is_object(json_object_get(again, "changes")));
	REQUIRE(!json_array_size(
		json_object_get(json_object_get(again, "changes"), "failing_now")));
	tell(again);
	json_decref(again);
	json_decref(sum);
	report_free(&report);
	close(fd);
	return 0;
}
