/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The segments of data.c by an MPI library: packing and unpacking of a derived datatype, and what it
 * takes to make one. test/bench/run compiles it with each MPI's own compiler.
 */
#include <mpi.h>

#include "segments.h"

struct bench {
	struct segments s;
	MPI_Datatype type;
};

static void need(int ret, const char *what)
{
	if (ret == MPI_SUCCESS)
		return;
	fprintf(stderr, "mpi: %s failed\n", what);
	exit(1);
}

static void pack(void *arg)
{
	struct bench *b = arg;
	int at = 0;

	need(MPI_Pack(b->s.pool, 1, b->type, b->s.flat, (int)b->s.payload, &at, MPI_COMM_SELF),
	     "MPI_Pack");
}

static void unpack(void *arg)
{
	struct bench *b = arg;
	int at = 0;

	need(MPI_Unpack(b->s.flat, (int)b->s.payload, &at, b->s.pool, 1, b->type, MPI_COMM_SELF),
	     "MPI_Unpack");
}

static void by_memcpy(void *arg)
{
	struct bench *b = arg;

	for (uint64_t i = 0; i < b->s.num; i++)
		memcpy(b->s.pool + b->s.offset[i], b->s.flat + i * b->s.segment, b->s.segment);
	__asm__ volatile("" ::: "memory");
}

static double build(struct bench *b, int strided)
{
	int *lengths = must(calloc(b->s.num, sizeof(*lengths)), "calloc");
	MPI_Aint *at = must(calloc(b->s.num, sizeof(*at)), "calloc");
	double start;

	for (uint64_t i = 0; i < b->s.num; i++) {
		lengths[i] = (int)b->s.segment;
		at[i] = (MPI_Aint)b->s.offset[i];
	}
	start = now_ns();
	if (strided)
		need(MPI_Type_create_hvector((int)b->s.num, (int)b->s.segment,
					     (MPI_Aint)b->s.stride, MPI_BYTE, &b->type),
		     "MPI_Type_create_hvector");
	else
		need(MPI_Type_create_hindexed((int)b->s.num, lengths, at, MPI_BYTE, &b->type),
		     "MPI_Type_create_hindexed");
	need(MPI_Type_commit(&b->type), "MPI_Type_commit");
	start = now_ns() - start;
	free(lengths);
	free(at);
	return start / (double)b->s.num;
}

/* The first one pays for the heap: the best of a few. */
static double build_best(struct bench *b, int strided)
{
	double best = build(b, strided);

	for (int i = 1; i < builds(&b->s); i++) {
		double took;

		need(MPI_Type_free(&b->type), "MPI_Type_free");
		took = build(b, strided);
		best = took < best ? took : best;
	}
	return best;
}

static char *memory(uint64_t bytes)
{
	return must(mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
		    "mmap");
}

int main(int argc, char **argv)
{
	struct bench b = { .s = segments_parse(argc, argv) };
	struct timed t[] = { { .run = pack, .rounds = ROUNDS },
			     { .run = unpack, .rounds = ROUNDS },
			     { .run = by_memcpy, .rounds = ROUNDS } };
	double built;

	need(MPI_Init(NULL, NULL), "MPI_Init");
	b.s.pool = memory(pool_bytes(&b.s));
	b.s.flat = memory(b.s.payload);
	built = build_best(&b, !strcmp(argv[3], "strided"));
	paint(b.s.flat, b.s.payload, 1);
	unpack(&b);
	check(&b.s, "mpi: unpack");
	paint(b.s.pool, pool_bytes(&b.s), 2);
	pack(&b);
	check(&b.s, "mpi: pack");
	measure(t, 3, &b, b.s.num);
	printf("{\"build\": %.2f, \"gather\": %.2f, \"scatter\": %.2f, \"memcpy\": %.2f}\n", built,
	       t[0].best, t[1].best, t[2].best);
	need(MPI_Finalize(), "MPI_Finalize");
	return 0;
}
