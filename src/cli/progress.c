/* SPDX-License-Identifier: BSD-2-Clause */
#include "progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli.h"

#define FIRST_NS UINT64_C(1000000000) /* what is over sooner is not long */
#define NEXT_NS	 UINT64_C(200000000)

static int shown; /* characters that stand in the line */

bool progress_is_seen(void)
{
	return isatty(STDERR_FILENO);
}

bool progress_due(uint64_t *ns)
{
	uint64_t now = now_ns();

	if (!*ns)
		*ns = now + FIRST_NS;
	if (now < *ns)
		return false;
	*ns = now + NEXT_NS;
	return true;
}

static const char *size_text(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = { "bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned unit = 0;
	double value;

	while (unit < 6 && bytes >> 10 * unit >= 1024)
		unit++;
	value = (double)bytes / (double)(UINT64_C(1) << 10 * unit);
	snprintf(buf, size, "%.*f %s", unit && value < 10 ? 1 : 0, value, units[unit]);
	return buf;
}

void progress_show(uint64_t done, uint64_t total)
{
	char text[24];
	int before = shown;

	if (!progress_is_seen())
		return;
	if (total)
		shown = fprintf(stderr, "\r%3.0f%% of %s", 100 * ((double)done / (double)total),
				size_text(total, text, sizeof(text)));
	else
		shown = fprintf(stderr, "\r%s", size_text(done, text, sizeof(text)));
	fprintf(stderr, "%*s", before > shown ? before - shown : 0, "");
	fflush(stderr);
}

void progress_end(void)
{
	if (shown > 0)
		fprintf(stderr, "\r%*s\r", shown, "");
	shown = 0;
}
