/* SPDX-License-Identifier: BSD-2-Clause */
/* The scattered segments that the benchmarks of data move, the same ones for every way of moving. */
#ifndef BENCH_SEGMENTS_H
#define BENCH_SEGMENTS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define GAP_EVERY   64 /* bytes between segments, at least */
#define SAMPLE_NS   2e6
#define ROUNDS	    15
#define ROUNDS_SLOW 5

struct segments {
	uint64_t payload, segment, num, stride;
	uint64_t *offset; /* of each, in the pool */
	char *pool, *flat;
};

static inline double now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static inline void *must(void *at, const char *what)
{
	if (at && at != MAP_FAILED)
		return at;
	perror(what);
	exit(1);
}

static inline void shuffle(uint64_t *at, uint64_t num)
{
	uint64_t seed = 0x9e3779b97f4a7c15;

	for (uint64_t i = num; i > 1; i--) {
		uint64_t k, swap;

		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		k = seed % i;
		swap = at[i - 1];
		at[i - 1] = at[k];
		at[k] = swap;
	}
}

static inline uint64_t pool_bytes(const struct segments *s)
{
	return s->num * s->stride;
}

/* From the command line: PAYLOAD SEGMENT ordered|shuffled|strided. The memory is the caller's. */
static inline struct segments segments_parse(int argc, char **argv)
{
	struct segments s = { 0 };

	if (argc != 4) {
		fprintf(stderr, "usage: %s PAYLOAD SEGMENT ordered|shuffled|strided\n", argv[0]);
		exit(2);
	}
	s.payload = strtoull(argv[1], NULL, 0);
	s.segment = strtoull(argv[2], NULL, 0);
	s.num = s.payload / s.segment;
	s.stride = s.segment < GAP_EVERY ? 2 * s.segment : s.segment + GAP_EVERY;
	s.offset = must(calloc(s.num, sizeof(*s.offset)), "calloc");
	for (uint64_t i = 0; i < s.num; i++)
		s.offset[i] = i * s.stride;
	if (!strcmp(argv[3], "shuffled"))
		shuffle(s.offset, s.num);
	return s;
}

/* ---- what they should be after a move ------------------------------------------------------- */

static inline void paint(char *at, uint64_t bytes, unsigned int seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		at[i] = (char)(i * 7 + i / 251 + seed);
}

static inline void check(const struct segments *s, const char *what)
{
	for (uint64_t i = 0; i < s->num; i++) {
		if (memcmp(s->pool + s->offset[i], s->flat + i * s->segment, s->segment)) {
			fprintf(stderr, "%s: segment %llu is wrong\n", what, (unsigned long long)i);
			exit(1);
		}
	}
}

/* ---- measuring ----------------------------------------------------------------------------------- */

typedef void way(void *arg);

/* One way of moving all segments, and the best time of it so far in nanoseconds a segment. */
struct timed {
	way *run;
	unsigned int rounds;
	unsigned int repeat;
	double best;
};

static inline void sample(struct timed *t, void *arg, uint64_t num)
{
	double start, took;

	if (!t->repeat) {
		t->run(arg); /* warm */
		start = now_ns();
		t->run(arg);
		took = now_ns() - start;
		t->repeat = took < SAMPLE_NS ? 1 + (unsigned int)(SAMPLE_NS / (took + 1)) : 1;
	}
	start = now_ns();
	for (unsigned int i = 0; i < t->repeat; i++)
		t->run(arg);
	took = (now_ns() - start) / (double)num / t->repeat;
	if (!t->best || took < t->best)
		t->best = took;
}

/* How often to make what all segments are named by. */
static inline int builds(const struct segments *s)
{
	return s->num > 1 << 20 ? 1 : ROUNDS_SLOW;
}

/* In turn, so that other work on the machine tells on all of them. */
static inline void measure(struct timed *t, unsigned int ways, void *arg, uint64_t num)
{
	for (unsigned int round = 0; round < ROUNDS; round++)
		for (unsigned int i = 0; i < ways; i++)
			if (round < t[i].rounds)
				sample(&t[i], arg, num);
}

#endif /* BENCH_SEGMENTS_H */
