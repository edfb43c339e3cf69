/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heap ahead of a large document, whose values are many and small: grown once, and of huge pages
 * where the system has them, since a fault costs more than the value that is written there.
 */
#include "heap.h"

#include <limits.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEAST (1u << 20)   /* less is not worth a call */
#define MOST  (256u << 20) /* addresses, not memory: a page is there once it is touched */

void heap_expect(size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t num = bytes < MOST ? bytes : MOST;
	char *top, *first;

	if (num < LEAST)
		return;
	/* from the heap and not from a mapping of its own; and the heap keeps what is freed */
	mallopt(M_MMAP_THRESHOLD, MOST + 1);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	top = malloc(num);
	if (top) {
		first = top + (page - (uintptr_t)top % page) % page;
		madvise(first, num - page, MADV_HUGEPAGE);
	}
	free(top);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
}
