/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes that a document names: where they come from, and memory that may not be there. */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "cli.h"
#include "fail.h"
#include "lent.h"
#include "spec.h"

#define DATA_CHUNK (1u << 20) /* bytes on their way at a time */

struct source {
	const struct step_data *data;
	uint64_t length; /* in all */
	uint64_t done;	 /* given so far */
	int fd;		 /* DATA_FILE, else -1 */
	char *path;
	uint8_t *spooled; /* a file that does not tell its size, read whole */
	const struct bound *bound;
};

/* length is for ramp and byte; hex and files have their own. What cannot tell its size is read until it
 * is longer than most. A file without a byte is io. lent is the file when the client opened it, else
 * NULL. Neither opening nor reading takes longer than bound, which stays the caller's. */
int source_open(struct source *src, const struct step_data *data, const struct lent_file *lent,
		uint64_t length, uint64_t most, const struct bound *bound, struct fail *f);
/* The next num bytes; there are so many. */
int source_read(struct source *src, uint8_t *buf, size_t num, struct fail *f);
void source_close(struct source *src);

/* Like source_open for a plan that is only checked: length 0 when a file tells it by ending only. */
int source_length(const struct step_data *data, uint64_t *ret_length, struct fail *f);

/* A descriptor of our own on a lent file, at its start; -1 with errno set. ENODEV: it is neither a file nor a
 * folder, which a session would wait for. */
int lent_open(const struct lent_file *lent);

/* A file name of a document with $TMPDIR at its start resolved; to be freed. NULL: no memory. */
char *data_path(const char *name);

/* Copy into or out of this process's own memory. -EFAULT where it cannot be touched (a file that was cut
 * behind its mapping, a full disk), never a signal. */
int memory_write(void *dst, const void *src, size_t num);
int memory_read(void *dst, const void *src, size_t num);

/* CRC-32 (IEEE 802.3), continued from crc; start with 0. */
uint32_t crc32_update(uint32_t crc, const uint8_t *bytes, size_t num);

#endif /* CLI_DATA_H */
