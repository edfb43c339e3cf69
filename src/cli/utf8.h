/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8, as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef CLI_UTF8_H
#define CLI_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character at s (1 to 4), or 0 when the first bytes of s, of which there are len, are
 * no UTF-8. */
size_t utf8_char(const char *s, size_t len);

bool utf8_all(const char *s, size_t len);

/* The greatest character boundary in s that is not above len. */
size_t utf8_boundary(const char *s, size_t len);

/* Replace each byte that is no UTF-8 by '?', in place. */
void utf8_clean(char *s);

#endif /* CLI_UTF8_H */
