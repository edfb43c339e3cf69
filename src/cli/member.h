/* SPDX-License-Identifier: BSD-2-Clause */
/* One walk over an object's members by tables: unknown, missing, type and value, with their place.
 */
#ifndef CLI_MEMBER_H
#define CLI_MEMBER_H

#include "spec.h"
#include "words.h"

struct member_table {
	const struct member *members;
	size_t num;
};

/*
 * Each value goes to its field of record, at the member's offset:
 *   NAME, STRING, HEX   const char *        NUMBER, LENGTH   uint64_t
 *   BYTE                uint8_t             BOOL             bool
 *   WORD                unsigned            ACCESS           struct access_words
 *   LIST, OBJECT        const json_t *
 * ret_seen has the bit of each member that was given. what names the object in messages ("a klm").
 */
int members_parse(const json_t *object, const struct at *at, const char *what,
		  const struct member_table *tables, size_t num, void *record, uint64_t *ret_seen,
		  struct fail *f);

/* The refusals that command files make themselves; member NULL means the object. */
int member_refuse(struct fail *f, enum fail_code code, const struct at *up, const char *member,
		  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif /* CLI_MEMBER_H */
