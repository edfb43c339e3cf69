/* SPDX-License-Identifier: BSD-2-Clause */
#include "growing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int growing_append(struct growing *g, const char *bytes, size_t num)
{
	size_t room = g->room;
	char *more;

	/* the first bytes are often all */
	if (!room)
		room = num;
	while (num > room - g->size)
		room = room ? 2 * room : 1024;
	if (room != g->room) {
		more = realloc(g->bytes, room);
		if (!more)
			return -ENOMEM;
		g->bytes = more;
		g->room = room;
	}
	if (num)
		memcpy(g->bytes + g->size, bytes, num);
	g->size += num;
	return 0;
}

struct growing growing_take(struct growing *g)
{
	const struct growing taken = *g;

	*g = (struct growing){ NULL, 0, 0 };
	return taken;
}

void growing_free(struct growing *g)
{
	free(g->bytes);
	*g = (struct growing){ NULL, 0, 0 };
}
