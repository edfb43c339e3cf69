/* SPDX-License-Identifier: BSD-2-Clause */
/* Sizes, offsets, addresses and counts: one grammar for all of them. */
#include "spec.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "words.h"

static int refuse(struct fail *f, const struct at *at, enum fail_code code, const char *value,
		  const char *why)
{
	fail_set(f, code, "%s: %s", value, why);
	fail_at(f, at);
	fail_hint(f,
		  "a number is an integer, or a string: decimal digits, 0x and hex digits, or an "
		  "integer with KiB, MiB, GiB or TiB directly behind it; up to 2^64-1");
	return -EINVAL;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* The shift that a unit stands for; -1 when the text is no unit. */
static int unit_shift(const char *text, size_t len)
{
	static const char letters[] = "KMGT";
	const char *letter;

	if (!len)
		return 0;
	if (len != 3 || text[1] != 'i' || text[2] != 'B')
		return -1;
	letter = memchr(letters, text[0], sizeof(letters) - 1);
	return letter ? 10 * (int)(letter - letters + 1) : -1;
}

/* NULL, or why the text is no number. */
static const char *parse(const char *text, size_t len, uint64_t *ret_number)
{
	const char *c = text, *end = text + len, *digits;
	int base = 10, shift;
	uint64_t v = 0;

	if (!len)
		return "no number";
	if (*c == '-' || *c == '+')
		return "numbers have no sign";
	if (len >= 2 && c[0] == '0' && (c[1] == 'x' || c[1] == 'X')) {
		base = 16;
		c += 2;
	}
	for (digits = c; c < end && digit_value(*c) < base; c++)
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit_value(*c), &v))
			return "does not fit in 64 bits";
	if (c == digits)
		return "not a number";
	if (*digits == '0' && c - digits > 1)
		return "numbers have no leading zeros";
	shift = unit_shift(c, end - c);
	if (shift && base == 16)
		return "hex digits take no unit";
	if (shift < 0)
		return "the units are KiB, MiB, GiB and TiB, directly behind an integer";
	if (shift && v > UINT64_MAX >> shift)
		return "does not fit in 64 bits";
	*ret_number = v << shift;
	return NULL;
}

int spec_number_text(const char *text, size_t len, const struct at *at, uint64_t *ret_number,
		     struct fail *f)
{
	const char *why = parse(text, len, ret_number);
	char value[QUOTE_ROOM];

	if (!why)
		return 0;
	return refuse(f, at, FAIL_SPEC_VALUE, quote(value, text, len), why);
}

int spec_number(const json_t *value, const struct at *at, uint64_t *ret_number, struct fail *f)
{
	json_int_t number;
	char text[32];

	if (json_is_string(value))
		return spec_number_text(json_string_value(value), json_string_length(value), at,
					ret_number, f);
	if (json_is_real(value))
		return refuse(f, at, FAIL_SPEC_TYPE, "a real number",
			      "fractions and exponents are not taken");
	if (!json_is_integer(value))
		return refuse(f, at, FAIL_SPEC_TYPE, json_type_word(value),
			      "a number belongs here");
	number = json_integer_value(value);
	if (number < 0) {
		snprintf(text, sizeof(text), "%" JSON_INTEGER_FORMAT, number);
		return refuse(f, at, FAIL_SPEC_VALUE, text, "numbers have no sign");
	}
	*ret_number = number;
	return 0;
}
