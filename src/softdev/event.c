/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion channels and asynchronous events. The process reads them from a packet socket, one
 * event a read, so that poll and epoll work by themselves. The other end stays here, and a second
 * descriptor of the process's end: destroy must tell exactly how many events of an object were
 * read, so it takes back all that are waiting, drops the object's, and sends the rest again.
 */
#include "softdev.h"
#include "raw.h"
#include "files.h"
#include "hca.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

union event {
	uint64_t element; /* the first member of both */
	struct ib_uverbs_async_event_desc async;
	struct ib_uverbs_comp_event_desc comp;
};

struct events {
	union event *at;
	size_t num, room;
};

struct sd_channel {
	struct sd_obj obj; /* in no handle table */
	struct sd_file *file;
	size_t event_size;
	int in, out; /* -1 when the process has closed its end */
	struct sd_channel *next;
	struct events late; /* the socket had no room for them; oldest first */
};

struct sd_obj *sd_channel_obj(struct sd_channel *ch)
{
	return &ch->obj;
}

/* ---- life ------------------------------------------------------------------- */

static void close_ends(struct sd_channel *ch)
{
	if (ch->in < 0)
		return;
	sd_raw_close(ch->in);
	sd_raw_close(ch->out);
	ch->in = ch->out = -1;
}

/* Free channels that the process has closed and nothing uses any more. */
static void collect(struct sd_ctx *ctx, bool all)
{
	struct sd_channel **p = &ctx->channels, *ch;

	while ((ch = *p)) {
		/* objects point to asynchronous channels without being counted */
		if (!all && (ch->in >= 0 || ch->obj.users || ch->obj.type == SD_ASYNC_FD)) {
			p = &ch->next;
			continue;
		}
		if (ch->in >= 0)
			sd_file_orphan(ch->file);
		close_ends(ch);
		*p = ch->next;
		free(ch->late.at);
		free(ch);
	}
}

void sd_channels_end(struct sd_ctx *ctx)
{
	collect(ctx, true);
}

static void file_end(void *obj)
{
	struct sd_channel *ch = obj;

	close_ends(ch);
	collect(ch->obj.ctx, false);
}

static int channel_new(struct sd_ctx *ctx, enum sd_type type, size_t event_size, int *ret_fd)
{
	struct sd_channel *ch = calloc(1, sizeof(*ch));
	int fds[2], err;

	if (!ch)
		return -ENOMEM;
	err = (int)sd_raw(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds);
	if (err)
		goto free_channel;
	ch->obj.type = type;
	ch->obj.ctx = ctx;
	ch->event_size = event_size;
	ch->out = fds[1];
	ch->in = err = (int)sd_raw(SYS_fcntl, fds[0], F_DUPFD_CLOEXEC, 0);
	if (err < 0)
		goto close_pair;
	err = sd_file_add(fds[0], type, ch, file_end, &ch->file);
	if (err)
		goto close_in;
	ch->next = ctx->channels;
	ctx->channels = ch;
	if (type == SD_ASYNC_FD && (!ctx->async || ctx->async->in < 0))
		ctx->async = ch;
	*ret_fd = fds[0];
	return 0;

close_in:
	sd_raw_close(ch->in);
close_pair:
	sd_raw_close(fds[0]);
	sd_raw_close(fds[1]);
free_channel:
	free(ch);
	return err;
}

/* A descriptor that the process never got is closed again. */
static int give(int fd, int err)
{
	if (err) {
		sd_file_drop(fd);
		sd_raw_close(fd);
	}
	return err;
}

int sd_cmd_async_alloc(struct sd_ctx *ctx, const struct sd_attrs *a)
{
	int fd, err;

	err = channel_new(ctx, SD_ASYNC_FD, sizeof(struct ib_uverbs_async_event_desc), &fd);
	if (err)
		return err;
	return give(fd,
		    sd_attr_put_handle(a, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, (uint32_t)fd));
}

int sd_wr_create_comp_channel(struct sd_ctx *ctx, struct sd_write *w)
{
	struct ib_uverbs_create_comp_channel_resp resp;
	int fd, err;

	err = channel_new(ctx, SD_CHANNEL, sizeof(struct ib_uverbs_comp_event_desc), &fd);
	if (err)
		return err;
	resp.fd = (uint32_t)fd;
	return give(fd, sd_write_out(w, &resp, sizeof(resp)));
}

/* ---- events ------------------------------------------------------------------- */

static int transmit(struct sd_channel *ch, const union event *e)
{
	long ret = sd_raw(SYS_sendto, ch->out, e, ch->event_size, MSG_DONTWAIT | MSG_NOSIGNAL, NULL,
			  0L);

	return ret < 0 ? (int)ret : 0;
}

static bool reserve(struct events *v, size_t more)
{
	size_t room = v->room ? v->room : 64;
	union event *at;

	while (room < v->num + more)
		room *= 2;
	if (room == v->room)
		return true;
	at = realloc(v->at, room * sizeof(*at));
	if (!at)
		return false;
	v->at = at;
	v->room = room;
	return true;
}

static void flush(struct sd_channel *ch)
{
	struct events *late = &ch->late;
	size_t done = 0;

	while (done < late->num && !transmit(ch, &late->at[done]))
		done++;
	if (!done)
		return;
	late->num -= done;
	memmove(late->at, late->at + done, late->num * sizeof(*late->at));
}

/* False: nobody will ever read it. */
static bool send_event(struct sd_channel *ch, const union event *e)
{
	if (!ch || ch->out < 0)
		return false;
	flush(ch);
	if (!ch->late.num && !transmit(ch, e))
		return true;
	if (!reserve(&ch->late, 1))
		return false;
	ch->late.at[ch->late.num++] = *e;
	return true;
}

void sd_event(struct sd_obj *obj, enum ibv_event_type type)
{
	union event e = { .async = { .element = obj->user_handle, .event_type = type } };

	if (send_event(obj->async ? obj->async : obj->ctx->async, &e))
		obj->events++;
}

void sd_event_device(struct sd_ctx *ctx, enum ibv_event_type type)
{
	const union event e = { .async = { .event_type = type } };
	struct sd_channel *ch;

	for (ch = ctx->channels; ch; ch = ch->next)
		if (ch->obj.type == SD_ASYNC_FD)
			send_event(ch, &e);
}

void sd_channel_event(struct sd_channel *ch, struct sd_obj *cq)
{
	union event e = { .comp = { .cq_handle = cq->user_handle } };

	if (send_event(ch, &e))
		cq->comp_events++;
}

void sd_events_flush(void)
{
	struct sd_channel *ch;
	struct sd_ctx *ctx;

	sd_lock();
	for (ctx = sd_ctx_first(); ctx; ctx = ctx->next)
		for (ch = ctx->channels; ch; ch = ch->next)
			if (ch->late.num && ch->out >= 0)
				flush(ch);
	sd_unlock();
}

/* Take the waiting events of element out of the channel; how many there were. */
static uint32_t take_back(struct sd_channel *ch, uint64_t element)
{
	struct events rest = { 0 };
	union event e;
	uint32_t dropped = 0;
	size_t i;

	if (!ch || ch->in < 0)
		return 0;
	while (reserve(&rest, ch->late.num + 1) &&
	       sd_raw(SYS_recvfrom, ch->in, &e, ch->event_size, MSG_DONTWAIT, NULL, NULL) > 0) {
		if (e.element == element)
			dropped++;
		else
			rest.at[rest.num++] = e;
	}
	for (i = 0; rest.at && i < ch->late.num; i++) {
		if (ch->late.at[i].element == element)
			dropped++;
		else
			rest.at[rest.num++] = ch->late.at[i];
	}
	if (rest.at) {
		free(ch->late.at);
		ch->late = rest;
	}
	flush(ch);
	return dropped;
}

uint32_t sd_event_close(struct sd_obj *obj)
{
	return obj->events - take_back(obj->async ? obj->async : obj->ctx->async, obj->user_handle);
}

uint32_t sd_channel_close(struct sd_channel *ch, struct sd_obj *cq)
{
	return cq->comp_events - take_back(ch, cq->user_handle);
}
