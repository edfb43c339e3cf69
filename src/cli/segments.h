/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the bytes of an MR lie, by arithmetic on what the fills asked for. The judge of the library's
 * layouts, and so written without their code.
 */
#ifndef CLI_SEGMENTS_H
#define CLI_SEGMENTS_H

#include <stdint.h>

#include "session.h"

/* Contiguous bytes of a direct MR. A non-zero return ends the walk with that value. */
typedef int segment_fn(void *arg, struct object *leaf, uint64_t offset, uint64_t length);

/* Every byte of the MR once and in order, segment by segment; nesting is followed. -ENOMEM, -ESTALE (a
 * record is missing), or what fn returned. */
int segments_walk(struct object *object, segment_fn *fn, void *arg);
/* The same of [offset, offset + length), which is within the MR. */
int segments_walk_range(struct object *object, uint64_t offset, uint64_t length, segment_fn *fn,
			void *arg);

#endif /* CLI_SEGMENTS_H */
