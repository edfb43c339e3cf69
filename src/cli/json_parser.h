/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser of documents, across its two files: json_text.c for what holds values, json_scalar.c for
 * what does not. */
#ifndef CLI_JSON_PARSER_H
#define CLI_JSON_PARSER_H

#include "spec.h"

/* A place is a pointer into the text; line and column are counted once one is needed. */
struct json_parser {
	const char *start, *at, *end;
	unsigned depth;
	struct fail *f;
	/* decoded strings, each in use above those of the objects around it */
	char *scratch;
	size_t used, room;
};

/* spec_syntax at a place; returns -EINVAL. */
int json_syntax(struct json_parser *p, const char *at, const char *what);

static inline bool json_next_is(const struct json_parser *p, char c)
{
	return p->at < p->end && *p->at == c;
}

static inline bool json_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static inline bool json_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Each reads what begins at p->at and leaves p->at behind it. */

/* A string, decoded and terminated on top of the scratch; its bytes in *ret_len. */
int json_read_string(struct json_parser *p, size_t *ret_len);
int json_read_string_value(struct json_parser *p, json_t **ret_value);
int json_read_number(struct json_parser *p, json_t **ret_value); /* begins with '-' or a digit */
int json_read_word(struct json_parser *p, json_t **ret_value);	 /* begins with a letter */

#endif /* CLI_JSON_PARSER_H */
