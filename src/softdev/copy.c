/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes between places of the process's memory; a hole or a missing right is -EFAULT and no signal.
 *
 * They are plain loads and stores under a guard (fault.c), where the thread can be guarded; else the
 * kernel's: process_vm_readv on ourselves, or through a pipe where that call is blocked. Either way
 * what comes before the fault, in the order of the bytes, has landed then, but for less than a page of
 * it.
 */
#include "softdev.h"
#include "fault.h"
#include "process.h"
#include "raw.h"

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <sys/platform/x86.h>
#endif

#define IOVS_MAX  256
#define BATCH_MAX (1ull << 30)
#define PIPE_STEP 65536

#define SD_INLINE static inline __attribute__((always_inline))

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
	long ret;

	if (!b->num)
		return 0;
	if (atomic_load_explicit(&blocked, memory_order_relaxed))
		return run_piped(b);
	ret = sd_raw(SYS_process_vm_readv, (long)sd_pid(), b->dst, b->num, b->src, b->num, 0L);
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
SD_INLINE bool is_null(const struct sd_piece *p)
{
	return p->va == SD_NULL_VA;
}

/* ---- under a guard ------------------------------------------------------------------ */

#define AHEAD	     12 /* small pieces: what is to come is on its way to the cache */
#define AHEAD_FEW    3	/* of more than a block */
#define AHEAD_BYTES  512
#define BLOCK	     128u
#define NEAR	     8u /* blocks: how far ahead within a piece */
#define NEAR_BYTES   ((size_t)NEAR * BLOCK)
#define STRING_BYTES (1 << 20)

struct job {
	const struct sd_pieces *dst, *src;
};

#ifdef __x86_64__
/* No calls of libc, which may be a sanitizer's that watches the process's memory, and no loops, which
 * a compiler would turn into such calls. */
#define MOVE(type, at)                                                    \
	do {                                                              \
		typedef type __attribute__((aligned(1), may_alias)) word; \
		*(word *)(dst + (at)) = *(const word *)(src + (at));      \
	} while (0)
#define MOVE_ENDS(type)                                                   \
	do {                                                              \
		typedef type __attribute__((aligned(1), may_alias)) word; \
		word first = *(const word *)src;                          \
		word last = *(const word *)(src + size - sizeof(word));   \
		*(word *)dst = first;                                     \
		*(word *)(dst + size - sizeof(word)) = last;              \
	} while (0)

typedef uint8_t vec16 __attribute__((vector_size(16)));

static bool has_avx;

/* As the dynamic linker has found: the instruction that asks takes microseconds in a virtual machine. */
__attribute__((constructor)) static void look_at_cpu(void)
{
	has_avx = CPU_FEATURE_ACTIVE(AVX2);
}

/* Wide registers are faster than the string instruction while the bytes fit a cache. Written out, for
 * the file is compiled for machines that lack them. What a later piece will write, and read, is on its
 * way to the cache meanwhile: it is a line's being written that makes a plain loop wait. */
SD_INLINE void move_blocks(uint8_t *dst, const uint8_t *src, size_t blocks, const uint8_t *next_dst,
			   const uint8_t *next_src)
{
	if (!blocks)
		return;
	__asm__ volatile("1:	vmovdqu (%1), %%ymm0\n"
			 "	vmovdqu 32(%1), %%ymm1\n"
			 "	vmovdqu 64(%1), %%ymm2\n"
			 "	vmovdqu 96(%1), %%ymm3\n"
			 "	prefetchw (%3)\n"
			 "	prefetchw 64(%3)\n"
			 "	prefetcht0 (%4)\n"
			 "	prefetcht0 64(%4)\n"
			 "	vmovdqu %%ymm0, (%0)\n"
			 "	vmovdqu %%ymm1, 32(%0)\n"
			 "	vmovdqu %%ymm2, 64(%0)\n"
			 "	vmovdqu %%ymm3, 96(%0)\n"
			 "	sub $-128, %0\n"
			 "	sub $-128, %1\n"
			 "	sub $-128, %3\n"
			 "	sub $-128, %4\n"
			 "	dec %2\n"
			 "	jnz 1b\n"
			 : "+r"(dst), "+r"(src), "+r"(blocks), "+r"(next_dst), "+r"(next_src)
			 :
			 : "xmm0", "xmm1", "xmm2", "xmm3", "cc", "memory");
}

/* More than a block. */
SD_INLINE void move_large(uint8_t *dst, const uint8_t *src, size_t size, const uint8_t *next_dst,
			  const uint8_t *next_src)
{
	size_t blocks = (size - 1) / BLOCK, within = blocks > NEAR ? blocks - NEAR : 0;

	if (!has_avx || size > STRING_BYTES) {
		__asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(size) : : "memory");
		return;
	}
	move_blocks(dst, src, within, dst + NEAR_BYTES, src + NEAR_BYTES);
	move_blocks(dst + within * BLOCK, src + within * BLOCK, blocks - within, next_dst,
		    next_src);
	__asm__ volatile("vmovdqu (%1), %%ymm0\n"
			 "	vmovdqu 32(%1), %%ymm1\n"
			 "	vmovdqu 64(%1), %%ymm2\n"
			 "	vmovdqu 96(%1), %%ymm3\n"
			 "	vmovdqu %%ymm0, (%0)\n"
			 "	vmovdqu %%ymm1, 32(%0)\n"
			 "	vmovdqu %%ymm2, 64(%0)\n"
			 "	vmovdqu %%ymm3, 96(%0)\n"
			 "	vzeroupper\n"
			 :
			 : "r"(dst + size - BLOCK), "r"(src + size - BLOCK)
			 : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
}

/* A block at most. */
SD_INLINE void move_small(uint8_t *dst, const uint8_t *src, size_t size)
{
	if (size == 8) {
		MOVE(uint64_t, 0);
	} else if (size >= 16) {
		if (size > 32) {
			MOVE(vec16, 16);
			if (size > 64) {
				MOVE(vec16, 32);
				MOVE(vec16, 48);
				MOVE(vec16, size - 64);
				MOVE(vec16, size - 48);
			}
			MOVE(vec16, size - 32);
		}
		MOVE_ENDS(vec16);
	} else if (size > 8) {
		MOVE_ENDS(uint64_t);
	} else if (size >= 4) {
		MOVE_ENDS(uint32_t);
	} else if (size >= 2) {
		MOVE_ENDS(uint16_t);
	} else if (size) {
		*dst = *src;
	}
}

/* Any number of bytes; what comes next is a hint, and any address does. */
SD_INLINE void move(uint8_t *dst, const uint8_t *src, size_t size, const uint8_t *next_dst,
		    const uint8_t *next_src)
{
	if (size > BLOCK)
		move_large(dst, src, size, next_dst, next_src);
	else
		move_small(dst, src, size);
}

SD_INLINE void zero(uint8_t *dst, size_t size)
{
	__asm__ volatile("rep stosb" : "+D"(dst), "+c"(size) : "a"(0) : "memory");
}

/* The next place of one side. */
struct place {
	const struct sd_piece *at, *end;
	uint8_t *va;
	uint64_t left;
	bool null;
};

SD_INLINE bool place_next(struct place *p)
{
	do {
		if (++p->at >= p->end)
			return false;
		p->left = p->at->bytes;
	} while (!p->left);
	p->va = p->at->va;
	p->null = is_null(p->at);
	return true;
}

/* Where the side goes on, step bytes later. */
SD_INLINE const uint8_t *place_after(const struct place *p, uint64_t step)
{
	return p->left > step || p->at + 1 >= p->end ? p->va + step : p->at[1].va;
}

SD_INLINE void prefetch(const struct sd_piece *p, bool write)
{
	if (write)
		__asm__ volatile("prefetchw %0" : : "m"(*p->va));
	else
		__builtin_prefetch(p->va);
}

/* Pieces of one size, known when compiled. The last few are left to others, and so is whatever comes
 * between. */
SD_INLINE void run_equal(struct place *many, struct place *one, bool write, size_t size)
{
	const struct sd_piece *p = many->at, *start = p;
	size_t n = one->left / size, left = (size_t)(many->end - p);

	if (left <= AHEAD)
		return;
	if (n > left - AHEAD)
		n = left - AHEAD;
	for (; n && p->bytes == size && !is_null(p); p++, n--) {
		prefetch(&p[AHEAD], write);
		if (write)
			move_small(p->va, one->va, size);
		else
			move_small(one->va, p->va, size);
		one->va += size;
	}
	one->left -= (size_t)(p - start) * size;
	many->at = p;
}

/* Whole small pieces of one side, against a long one of the other. */
SD_INLINE void run_small(struct place *many, struct place *one, bool write)
{
	for (; many->at < many->end; many->at++) {
		const struct sd_piece *p;
		size_t left;

		if (many->at->bytes == 8)
			run_equal(many, one, write, 8);
		else if (many->at->bytes == 64)
			run_equal(many, one, write, 64);
		p = many->at;
		left = (size_t)(many->end - p);
		if (p->bytes > AHEAD_BYTES || p->bytes > one->left || is_null(p))
			break;
		if (p->bytes > BLOCK) {
			const uint8_t *next = left > AHEAD_FEW ? p[AHEAD_FEW].va : p->va;
			const uint8_t *flat = one->va + NEAR_BYTES;

			if (write)
				move_large(p->va, one->va, p->bytes, next, flat);
			else
				move_large(one->va, p->va, p->bytes, flat, next);
		} else {
			if (left > AHEAD)
				prefetch(&p[AHEAD], write);
			if (write)
				move_small(p->va, one->va, p->bytes);
			else
				move_small(one->va, p->va, p->bytes);
		}
		one->va += p->bytes;
		one->left -= p->bytes;
	}
	many->at--;
	many->left = 0;
}

SD_INLINE bool is_small(const struct place *p)
{
	return p->left == p->at->bytes && p->left <= AHEAD_BYTES && !p->null;
}

SD_GUARDED static int run_guarded(void *arg)
{
	const struct job *job = arg;
	struct place d = { .at = job->dst->at - 1, .end = job->dst->at + job->dst->num };
	struct place s = { .at = job->src->at - 1, .end = job->src->at + job->src->num };

	while ((d.left || place_next(&d)) && (s.left || place_next(&s))) {
		uint64_t step = d.left < s.left ? d.left : s.left;

		if (!s.null && d.left < s.left && is_small(&d)) {
			run_small(&d, &s, true);
			continue;
		}
		if (!d.null && s.left < d.left && is_small(&s)) {
			run_small(&s, &d, false);
			continue;
		}
		if (!d.null) {
			if (s.null)
				zero(d.va, step);
			else
				move(d.va, s.va, step, place_after(&d, step),
				     place_after(&s, step));
		}
		d.va += step;
		s.va += step;
		d.left -= step;
		s.left -= step;
	}
	return 0;
}

#else /* no thread can be guarded (fault.c) */

static void move(uint8_t *dst, const uint8_t *src, size_t size, const uint8_t *next_dst,
		 const uint8_t *next_src)
{
	memcpy(dst, src, size);
}

static int run_guarded(void *arg)
{
	return -EFAULT;
}

#endif

/* ---- by the kernel --------------------------------------------------------------------- */

static int run_kernel(const struct sd_pieces *dst, const struct sd_pieces *src)
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

int sd_copy(const struct sd_pieces *dst, const struct sd_pieces *src, bool guarded)
{
	struct job job = { dst, src };

	return guarded ? sd_guard_run(run_guarded, &job) : run_kernel(dst, src);
}

/* user: the side that may not be there. */
static int one(void *dst, const void *src, size_t size, const void *user)
{
	struct batch b;

	if (sd_on_stack(user, size)) {
		move(dst, src, size, dst, src);
		return 0;
	}
	b.num = 0;
	b.bytes = 0;
	if (size)
		add(&b, dst, src, size);
	return run(&b);
}

int sd_user_read(void *dst, const void *src, size_t size)
{
	return one(dst, src, size, src);
}

int sd_user_write(void *dst, const void *src, size_t size)
{
	return one(dst, src, size, dst);
}
