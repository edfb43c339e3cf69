/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32 (IEEE 802.3), four bytes a turn. */
#include <stdbool.h>

#include "data.h"

static uint32_t table[4][256];
static bool ready;

static void make_table(void)
{
	uint32_t i, bit, crc;

	for (i = 0; i < 256; i++) {
		crc = i;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
		table[0][i] = crc;
	}
	for (i = 0; i < 256; i++)
		for (bit = 1; bit < 4; bit++)
			table[bit][i] = table[bit - 1][i] >> 8 ^ table[0][table[bit - 1][i] & 0xff];
	ready = true;
}

uint32_t crc32_update(uint32_t crc, const uint8_t *bytes, size_t num)
{
	if (!ready)
		make_table();
	crc = ~crc;
	for (; num >= 4; num -= 4, bytes += 4) {
		crc ^= bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
		       (uint32_t)bytes[3] << 24;
		crc = table[3][crc & 0xff] ^ table[2][crc >> 8 & 0xff] ^
		      table[1][crc >> 16 & 0xff] ^ table[0][crc >> 24];
	}
	while (num--)
		crc = crc >> 8 ^ table[0][(crc ^ *bytes++) & 0xff];
	return ~crc;
}
