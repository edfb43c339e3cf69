/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes named by data segments. The whole is checked first, that nothing lands when something is
 * refused; then it goes in windows of as many pieces as there is room for.
 */
#include "fault.h"
#include "span.h"

#define WINDOW_PIECES 2048

/* Under sd_lock. */
static struct sd_piece dst_at[WINDOW_PIECES], src_at[WINDOW_PIECES];
static struct sd_pieces dst_pieces = { .at = dst_at, .room = WINDOW_PIECES };
static struct sd_pieces src_pieces = { .at = src_at, .room = WINDOW_PIECES };

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

static void add_flat_piece(struct sd_pieces *out, const void *bytes, uint64_t len)
{
	if (out->num == out->room)
		return;
	out->at[out->num++] = (struct sd_piece){ .va = (uint8_t *)(uintptr_t)bytes, .bytes = len };
	out->bytes += len;
}

/* The pieces of [pos, pos + len), as many as there is room for. */
static int window(const struct sd_span *s, uint64_t pos, uint64_t len, struct sd_pieces *out)
{
	out->num = 0;
	out->bytes = 0;
	for (uint32_t i = 0; i < s->num && len && out->num < out->room; i++) {
		const struct sd_range *r = &s->at[i];
		uint64_t take;
		int ret = 0;

		if (pos >= r->len) {
			pos -= r->len;
			continue;
		}
		take = r->len - pos < len ? r->len - pos : len;
		if (r->flat)
			add_flat_piece(out, (const uint8_t *)r->flat + pos, take);
		else
			ret = sd_translate(out, r->key, s->pdn, r->addr + pos, take, s->access);
		if (ret)
			return ret;
		pos = 0;
		len -= take;
	}
	return out->bytes ? 0 : -EFAULT;
}

int sd_span_check(const struct sd_span *s, uint64_t len)
{
	for (uint32_t i = 0; i < s->num && len; i++) {
		const struct sd_range *r = &s->at[i];
		uint64_t take = r->len < len ? r->len : len;
		int ret = 0;

		if (!r->flat && r->addr + (take - 1) < r->addr)
			ret = -EFAULT;
		else if (!r->flat)
			ret = sd_translate_check(r->key, s->pdn, r->addr, take, s->access);
		if (ret)
			return ret;
		len -= take;
	}
	return len ? -EFAULT : 0;
}

static int move(const struct sd_span *dst, const struct sd_span *src, uint64_t len)
{
	bool guarded = len && sd_guard_ready();
	uint64_t pos = 0;

	while (pos < len) {
		int ret = window(dst, pos, len - pos, &dst_pieces);

		if (!ret)
			ret = window(src, pos, len - pos, &src_pieces);
		if (!ret)
			ret = sd_copy(&dst_pieces, &src_pieces, guarded);
		if (ret)
			return ret;
		pos += dst_pieces.bytes < src_pieces.bytes ? dst_pieces.bytes : src_pieces.bytes;
	}
	if (guarded)
		sd_count("bytes.guarded", len);
	return 0;
}

int sd_span_copy(const struct sd_span *dst, const struct sd_span *src, uint64_t len)
{
	int ret = move(dst, src, len);

	if (!ret)
		sd_count("bytes.moved", len);
	return ret;
}

int sd_span_read(const struct sd_span *src, void *buf, uint64_t len)
{
	struct sd_span dst;

	sd_span_init(&dst, 0, 0);
	sd_span_add_flat(&dst, buf, len);
	return move(&dst, src, len);
}

void sd_span_spoil(const struct sd_span *s)
{
	uint8_t byte;

	if (!s->bytes || window(s, 0, 1, &dst_pieces) || dst_pieces.at[0].va == SD_NULL_VA)
		return;
	if (!sd_user_read(&byte, dst_pieces.at[0].va, 1)) {
		byte ^= 1;
		sd_user_write(dst_pieces.at[0].va, &byte, 1);
	}
}
