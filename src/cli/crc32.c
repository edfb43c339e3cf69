/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32 (IEEE 802.3), sixteen bytes a turn. */
#include <stdbool.h>

#include "data.h"

#define TURN 16

static uint32_t table[TURN][256];
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
		for (bit = 1; bit < TURN; bit++)
			table[bit][i] = table[bit - 1][i] >> 8 ^ table[0][table[bit - 1][i] & 0xff];
	ready = true;
}

/* Four bytes with so many behind them in the turn. */
static inline uint32_t part(const uint8_t *bytes, uint32_t crc, unsigned behind)
{
	crc ^= bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
	return table[behind + 3][crc & 0xff] ^ table[behind + 2][crc >> 8 & 0xff] ^
	       table[behind + 1][crc >> 16 & 0xff] ^ table[behind][crc >> 24];
}

uint32_t crc32_update(uint32_t crc, const uint8_t *bytes, size_t num)
{
	if (!ready)
		make_table();
	crc = ~crc;
	for (; num >= TURN; num -= TURN, bytes += TURN)
		crc = part(bytes, crc, 12) ^ part(bytes + 4, 0, 8) ^ part(bytes + 8, 0, 4) ^
		      part(bytes + 12, 0, 0);
	while (num--)
		crc = crc >> 8 ^ table[0][(crc ^ *bytes++) & 0xff];
	return ~crc;
}
