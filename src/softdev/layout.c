/* SPDX-License-Identifier: BSD-2-Clause */
/* What an indirect key holds: its table as it came, and what makes it fast to use. */
#include <errno.h>
#include <stdlib.h>

#include "mkey.h"

/* Under sd_lock: the newest of those that are gone, about 1 MiB at most, whose memory need not be cleared
 * by the kernel again for the next fill. */
static struct sd_layout *spare;

struct sd_layout *sd_layout_new(uint32_t room)
{
	struct sd_layout *layout = spare;

	if (layout && layout->room >= room && layout->room / 2 <= room) {
		spare = NULL;
		room = layout->room;
	} else {
		layout = malloc(sizeof(*layout) + (size_t)room * sizeof(layout->table[0]) +
				(size_t)(room / SD_ENDS_STEP) * sizeof(layout->ends[0]));
	}
	if (layout)
		*layout = (struct sd_layout){
			.refs = 1,
			.room = room,
			.cycles = 1,
			.ends = (uint64_t *)&layout->table[room],
		};
	return layout;
}

struct sd_layout *sd_layout_get(struct sd_layout *layout)
{
	if (layout)
		layout->refs++;
	return layout;
}

void sd_layout_put(struct sd_layout *layout)
{
	if (!layout || --layout->refs)
		return;
	free(spare);
	spare = layout;
}

/* ---- the index -------------------------------------------------------------------- */

/* The first that differ entries are as long as the first. Padding behind the last has no length. */
static uint64_t uniform(const struct sd_layout *layout, uint32_t differ)
{
	uint32_t one = sd_layout_klm(layout, 0).bytes, i = differ;

	if (i < layout->num && sd_layout_klm(layout, i).bytes < one)
		i++;
	while (i < layout->num && !sd_layout_klm(layout, i).bytes)
		i++;
	return i == layout->num ? one : 0;
}

/* Cycles are 2^32 at most, strides 2^16, lengths 2^31 and entries 2^16: only an address can make a sum
 * wrap. */
static inline __attribute__((always_inline)) int index_as(struct sd_layout *layout, bool repeat)
{
	const struct sd_klm first = sd_klm_of(layout->table, repeat);
	struct sd_extent extent = { .lowest = UINT64_MAX };
	uint64_t end = 0;
	uint32_t same = 0;

	for (uint32_t i = 0; i < layout->num; i++) {
		const struct sd_klm klm = sd_klm_of(&layout->table[i], repeat);
		uint64_t past = klm.addr + (layout->cycles - 1) * klm.stride + klm.bytes;

		if (!repeat && (klm.bytes > INT32_MAX || klm.key == SD_REPEAT_MARK))
			return -EINVAL;
		end += klm.bytes;
		if (i % SD_ENDS_STEP == SD_ENDS_STEP - 1)
			layout->ends[i / SD_ENDS_STEP] = end;
		same += same == i && klm.bytes == first.bytes;
		if (!klm.bytes)
			continue;
		extent.mixed |= klm.key != first.key || past < klm.addr;
		extent.lowest = klm.addr < extent.lowest ? klm.addr : extent.lowest;
		extent.highest = past > extent.highest ? past : extent.highest;
	}
	layout->cycle = end;
	layout->extent = extent;
	layout->uniform = uniform(layout, same);
	return 0;
}

int sd_layout_index(struct sd_layout *layout)
{
	return layout->repeat ? index_as(layout, true) : index_as(layout, false);
}

uint32_t sd_layout_find(const struct sd_layout *layout, uint64_t off, uint64_t *ret_into)
{
	uint32_t lo = 0, hi = layout->num / SD_ENDS_STEP, i;

	if (layout->uniform) {
		*ret_into = off % layout->uniform;
		return (uint32_t)(off / layout->uniform);
	}
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (layout->ends[mid] > off)
			hi = mid;
		else
			lo = mid + 1;
	}
	off -= lo ? layout->ends[lo - 1] : 0;
	for (i = lo * SD_ENDS_STEP;; i++) {
		uint32_t bytes = sd_layout_klm(layout, i).bytes;

		if (bytes > off)
			break;
		off -= bytes;
	}
	*ret_into = off;
	return i;
}
