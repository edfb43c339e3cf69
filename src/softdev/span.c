/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes named by data segments. A long span over small pieces would need more memory for its pieces
 * than for its bytes, so it goes through a window; the check of the whole comes first, that nothing
 * lands when something is refused.
 */
#include <stdlib.h>

#include "span.h"

#define WINDOW	    (256u << 10)
#define KEEP_PIECES 4096

/* Under sd_lock: kept, so that a small transfer allocates nothing. */
static struct sd_pieces dst_pieces, src_pieces;

void sd_span_init(struct sd_span *s, uint32_t pdn, uint32_t access)
{
	s->pdn = pdn;
	s->access = access;
	s->write = access &
		   (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	s->num = 0;
	s->bytes = 0;
}

static bool add(struct sd_span *s, struct sd_range r)
{
	if (!r.len)
		return true;
	if (s->num == SD_RANGES_MAX || __builtin_add_overflow(s->bytes, r.len, &s->bytes))
		return false;
	s->at[s->num++] = r;
	return true;
}

bool sd_span_add(struct sd_span *s, uint32_t key, uint64_t addr, uint64_t len)
{
	return add(s, (struct sd_range){ .key = key, .addr = addr, .len = len });
}

bool sd_span_add_flat(struct sd_span *s, const void *bytes, uint64_t len)
{
	return add(s, (struct sd_range){ .flat = bytes, .len = len });
}

static void pieces_reset(struct sd_pieces *p)
{
	if (p->room > KEEP_PIECES) {
		free(p->at);
		*p = (struct sd_pieces){ 0 };
	}
	p->num = 0;
}

static int add_flat_piece(struct sd_pieces *out, const void *bytes, uint64_t len)
{
	if (out->num == out->room) {
		size_t room = out->room ? out->room * 2 : 8;
		struct sd_piece *at = realloc(out->at, room * sizeof(*at));

		if (!at)
			return -ENOMEM;
		out->at = at;
		out->room = room;
	}
	out->at[out->num++] = (struct sd_piece){ .va = (uint8_t *)(uintptr_t)bytes, .bytes = len };
	return 0;
}

/* The pieces of [pos, pos + len). */
static int window(const struct sd_span *s, uint64_t pos, uint64_t len, struct sd_pieces *out)
{
	pieces_reset(out);
	for (uint32_t i = 0; i < s->num && len; i++) {
		const struct sd_range *r = &s->at[i];
		uint64_t take;
		int ret;

		if (pos >= r->len) {
			pos -= r->len;
			continue;
		}
		take = r->len - pos < len ? r->len - pos : len;
		if (r->flat)
			ret = add_flat_piece(out, (const uint8_t *)r->flat + pos, take);
		else if (r->addr + pos < r->addr)
			ret = -EFAULT;
		else
			ret = sd_translate(out, r->key, s->pdn, r->addr + pos, take, s->access);
		if (ret)
			return ret == -EOPNOTSUPP ? SD_HOLE : ret;
		pos = 0;
		len -= take;
	}
	return len ? -EFAULT : 0;
}

static int touch(const struct sd_pieces *p, bool write)
{
	for (size_t i = 0; i < p->num; i++) {
		const struct sd_piece *at = &p->at[i];

		if (!at->leaf || !at->leaf->on_demand)
			continue;
		if (sd_odp_access(at->leaf, at->va, at->bytes, write))
			return SD_HOLE;
	}
	return 0;
}

int sd_span_check(const struct sd_span *s, uint64_t len)
{
	for (uint64_t pos = 0; pos < len; pos += WINDOW) {
		int ret = window(s, pos, len - pos < WINDOW ? len - pos : WINDOW, &src_pieces);

		if (!ret)
			ret = touch(&src_pieces, s->write);
		if (ret)
			return ret;
	}
	return 0;
}

int sd_span_copy(const struct sd_span *dst, const struct sd_span *src, uint64_t len)
{
	for (uint64_t pos = 0; pos < len; pos += WINDOW) {
		uint64_t take = len - pos < WINDOW ? len - pos : WINDOW;
		int ret = window(dst, pos, take, &dst_pieces);

		if (!ret)
			ret = window(src, pos, take, &src_pieces);
		if (!ret)
			ret = sd_copy(&dst_pieces, &src_pieces);
		if (ret)
			return ret;
	}
	sd_count("bytes.moved", len);
	return 0;
}

int sd_span_read(const struct sd_span *src, void *buf, uint64_t len)
{
	struct sd_piece to = { .va = buf, .bytes = len };
	const struct sd_pieces dst = { .at = &to, .num = 1 };
	int ret;

	if (!len)
		return 0;
	ret = window(src, 0, len, &src_pieces);
	return ret ? ret : sd_copy(&dst, &src_pieces);
}

void sd_span_spoil(const struct sd_span *s)
{
	uint8_t byte;

	if (!s->bytes || window(s, 0, 1, &dst_pieces) || !dst_pieces.at[0].va)
		return;
	if (!sd_user_read(&byte, dst_pieces.at[0].va, 1)) {
		byte ^= 1;
		sd_user_write(dst_pieces.at[0].va, &byte, 1);
	}
}
