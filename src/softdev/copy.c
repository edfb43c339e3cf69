/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes between places of the process's memory. The kernel copies, so that a hole or a missing
 * right is -EFAULT and no signal: by process_vm_readv on ourselves, or through a pipe where that
 * call is blocked.
 */
#include "softdev.h"
#include "raw.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#define IOVS_MAX  256
#define BATCH_MAX (1ull << 30)
#define PIPE_STEP 65536

struct batch {
	struct iovec dst[IOVS_MAX], src[IOVS_MAX];
	size_t num;
	uint64_t bytes;
};

static const uint8_t zeros[4096];
static atomic_bool blocked;

/* ---- through a pipe ------------------------------------------------------------ */

static int pipe_copy(const int *fds, uint8_t *dst, const uint8_t *src, size_t size)
{
	while (size) {
		size_t step = size < PIPE_STEP ? size : PIPE_STEP;
		ssize_t n = sd_raw_write(fds[1], src, step), m;

		if (n <= 0)
			return -EFAULT;
		m = sd_raw_read(fds[0], dst, (size_t)n);
		if (m != n)
			return -EFAULT; /* the pipe is closed with what is left in it */
		src += n;
		dst += n;
		size -= (size_t)n;
	}
	return 0;
}

static int run_piped(const struct batch *b)
{
	int fds[2], err = (int)sd_raw(SYS_pipe2, fds, O_CLOEXEC | O_NONBLOCK);
	size_t i;

	for (i = 0; i < b->num && !err; i++)
		err = pipe_copy(fds, b->dst[i].iov_base, b->src[i].iov_base, b->dst[i].iov_len);
	if (err != -EMFILE && err != -ENFILE) {
		sd_raw_close(fds[0]);
		sd_raw_close(fds[1]);
	}
	return err;
}

/* ---- batches --------------------------------------------------------------------- */

static int run(struct batch *b)
{
	long ret, self;

	if (!b->num)
		return 0;
	if (atomic_load_explicit(&blocked, memory_order_relaxed))
		return run_piped(b);
	self = sd_raw(SYS_getpid);
	ret = sd_raw(SYS_process_vm_readv, self, b->dst, b->num, b->src, b->num, 0L);
	if (ret == -ENOSYS || ret == -EPERM) {
		atomic_store_explicit(&blocked, true, memory_order_relaxed);
		return run_piped(b);
	}
	if (ret == -ENOMEM)
		return -ENOMEM;
	return ret == (long)b->bytes ? 0 : -EFAULT;
}

static int add(struct batch *b, void *dst, const void *src, size_t size)
{
	int err;

	if (b->num == IOVS_MAX || b->bytes + size > BATCH_MAX) {
		err = run(b);
		b->num = 0;
		b->bytes = 0;
		if (err)
			return err;
	}
	b->dst[b->num] = (struct iovec){ dst, size };
	b->src[b->num] = (struct iovec){ (void *)(uintptr_t)src, size };
	b->num++;
	b->bytes += size;
	return 0;
}

static int add_zeros(struct batch *b, uint8_t *dst, uint64_t size)
{
	int err = 0;

	while (size && !err) {
		size_t step = size < sizeof(zeros) ? (size_t)size : sizeof(zeros);

		err = add(b, dst, zeros, step);
		dst += step;
		size -= step;
	}
	return err;
}

/* The null MR reads as zeros and swallows what is written. */
static bool is_null(const struct sd_piece *p)
{
	return !p->leaf && !p->va;
}

int sd_copy(const struct sd_pieces *dst, const struct sd_pieces *src)
{
	struct batch b;
	size_t d = 0, s = 0;
	uint64_t doff = 0, soff = 0, step;
	int err = 0;

	b.num = 0;
	b.bytes = 0;
	while (d < dst->num && s < src->num && !err) {
		const struct sd_piece *dp = &dst->at[d], *sp = &src->at[s];

		step = dp->bytes - doff < sp->bytes - soff ? dp->bytes - doff : sp->bytes - soff;
		if (step > BATCH_MAX)
			step = BATCH_MAX;
		if (step && !is_null(dp))
			err = is_null(sp) ? add_zeros(&b, dp->va + doff, step)
					  : add(&b, dp->va + doff, sp->va + soff, (size_t)step);
		doff += step;
		soff += step;
		if (doff == dp->bytes) {
			d++;
			doff = 0;
		}
		if (soff == sp->bytes) {
			s++;
			soff = 0;
		}
	}
	return err ? err : run(&b);
}

static int one(void *dst, const void *src, size_t size)
{
	struct batch b;

	b.num = 0;
	b.bytes = 0;
	if (size)
		add(&b, dst, src, size);
	return run(&b);
}

int sd_user_read(void *dst, const void *src, size_t size)
{
	return one(dst, src, size);
}

int sd_user_write(void *dst, const void *src, size_t size)
{
	return one(dst, src, size);
}
