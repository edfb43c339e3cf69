/* SPDX-License-Identifier: BSD-2-Clause */
#include "segments.h"

#include <errno.h>
#include <stdlib.h>

struct walk {
	segment_fn *fn;
	void *arg;
};

/* The end of each span in its list or cycle. The sums do not wrap: the fill was accepted. */
static int make_ends(struct fill_record *fill)
{
	uint64_t total = 0;
	size_t i;

	if (fill->ends)
		return 0;
	if (!fill->num)
		return -ESTALE;
	fill->ends = malloc(fill->num * sizeof(*fill->ends));
	if (!fill->ends)
		return -ENOMEM;
	for (i = 0; i < fill->num; i++) {
		total += fill->spans[i].length;
		fill->ends[i] = total;
	}
	return 0;
}

/* The span that byte pos of a list or cycle is in. */
static size_t find_span(const struct fill_record *fill, uint64_t pos)
{
	size_t low = 0, high = fill->num - 1;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (fill->ends[mid] > pos)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static int walk_bytes(const struct walk *w, struct object *o, uint64_t from, uint64_t length)
{
	struct fill_record *fill = &o->fill;
	struct ibmr_mr_info info;
	uint64_t cycle, pos;
	size_t i;
	int rc;

	ibmr_mr_query(o->mr, &info);
	if (!info.indirect)
		return w->fn(w->arg, o, from, length);
	rc = make_ends(fill);
	if (rc)
		return rc;
	/* a list is one cycle */
	cycle = from / fill->ends[fill->num - 1];
	pos = from % fill->ends[fill->num - 1];
	i = find_span(fill, pos);
	while (length > 0) {
		const struct span *span = &fill->spans[i];
		uint64_t inner = pos - (fill->ends[i] - span->length);
		uint64_t part = span->length - inner;

		part = part < length ? part : length;
		rc = walk_bytes(w, span->of, span->offset + cycle * span->stride + inner, part);
		if (rc)
			return rc;
		length -= part;
		pos += part;
		if (++i == fill->num) {
			i = 0;
			pos = 0;
			cycle++;
		}
	}
	return 0;
}

int segments_walk_range(struct object *object, uint64_t offset, uint64_t length, segment_fn *fn,
			void *arg)
{
	const struct walk w = { fn, arg };

	return walk_bytes(&w, object, offset, length);
}

int segments_walk(struct object *object, segment_fn *fn, void *arg)
{
	struct ibmr_mr_info info;
	uint64_t length;
	int rc;

	ibmr_mr_query(object->mr, &info);
	length = info.length;
	if (info.indirect) {
		rc = make_ends(&object->fill);
		if (rc)
			return rc;
		length = object->fill.ends[object->fill.num - 1] * object->fill.count;
	}
	return segments_walk_range(object, 0, length, fn, arg);
}
