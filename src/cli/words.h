/* SPDX-License-Identifier: BSD-2-Clause */
/* Words in documents: what they may be, and how they are shown when they are wrong. */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "fail.h"

#define QUOTE_ROOM 96

/* 'text' for a message; a long one is shown up to a character boundary, with dots behind. */
const char *quote(char buf[QUOTE_ROOM], const char *text, size_t len);

/* "a list", "null", ... */
const char *json_type_word(const json_t *value);

/* Add "did you mean" to a failure, or else the list of what is known. */
void hint_words(struct fail *f, const char *word, const char *const *words, size_t num);

/* One of a NULL terminated list of words, as its index. */
int word_parse(const json_t *value, const struct at *at, const char *const *words,
	       unsigned *ret_index, struct fail *f);

struct access_words {
	uint64_t bits;	/* IBMR_ACCESS_* */
	unsigned share; /* enum spec_share */
};

int access_parse(const json_t *value, const struct at *at, struct access_words *ret_access,
		 struct fail *f);

/* Hex digits in pairs, at least one pair. */
int hex_parse(const json_t *value, const struct at *at, const char **ret_hex, struct fail *f);

#endif /* CLI_WORDS_H */
