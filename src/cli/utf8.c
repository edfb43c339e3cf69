/* SPDX-License-Identifier: BSD-2-Clause */
#include "utf8.h"

#include <stdint.h>
#include <string.h>

size_t utf8_char(const char *s, size_t len)
{
	const unsigned char *u = (const unsigned char *)s;
	uint32_t code, least;
	size_t n, i;

	if (!len)
		return 0;
	if (u[0] < 0x80)
		return 1;
	if (u[0] < 0xc2 || u[0] > 0xf4)
		return 0;
	n = u[0] < 0xe0 ? 2 : u[0] < 0xf0 ? 3 : 4;
	if (n > len)
		return 0;
	least = n == 2 ? 0x80 : n == 3 ? 0x800 : 0x10000;
	code = u[0] & (0xff >> (n + 1));
	for (i = 1; i < n; i++) {
		if ((u[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (u[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return n;
}

bool utf8_all(const char *s, size_t len)
{
	size_t n;

	for (; len; s += n, len -= n) {
		n = utf8_char(s, len);
		if (!n)
			return false;
	}
	return true;
}

size_t utf8_boundary(const char *s, size_t len)
{
	while (len && ((unsigned char)s[len] & 0xc0) == 0x80)
		len--;
	return len;
}

void utf8_clean(char *s)
{
	size_t len = strlen(s), n;

	for (; len; s += n, len -= n) {
		n = utf8_char(s, len);
		if (!n) {
			*s = '?';
			n = 1;
		}
	}
}
