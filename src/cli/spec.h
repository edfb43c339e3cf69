/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON in: text -> document -> steps. Everything here is about form; what depends on objects is the
 * dispatcher's.
 *
 *   json_file.c   reading a file
 *   json_text.c   text to JSON, and what is wrong with text; json_scalar.c: strings and numbers
 *   number.c      sizes and addresses
 *   words.c       access words, names, the nearest known word
 *   member.c      one table-driven walk over an object's members
 *   step.c        the tables of the commands, and the rules between their members
 *   expect.c      what a step may expect of its result
 *   plan.c        SPEC or PLAN, and a plan's frame
 *
 * Names and strings in parsed records are borrowed from the json_t, which must outlive them.
 */
#ifndef CLI_SPEC_H
#define CLI_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "fail.h"

/* ---- text ---------------------------------------------------------------- */

#define SPEC_MAX_BYTES (64u << 20) /* of one document */
#define SPEC_MAX_DEPTH 32	   /* arrays and objects inside each other */

struct spec_text {
	char *bytes; /* not terminated */
	size_t size;
};

/* Read a whole document from a path or, for "-", standard input; FIFOs and sockets work. Failures
 * are io: not there, not readable, a directory, more than SPEC_MAX_BYTES. */
int spec_read(const char *path, struct spec_text *ret_text, struct fail *f);

/* The same from a descriptor, which stays open; name is for messages. */
int spec_read_fd(int fd, const char *name, struct spec_text *ret_text, struct fail *f);
void spec_text_free(struct spec_text *text);

/* Text to JSON: spec_syntax, spec_duplicate (both with line and column) or no_memory. Any JSON
 * value is accepted at the top, so that the next stage can name what it got. */
int spec_parse_text(const struct spec_text *text, json_t **ret_doc, struct fail *f);

/* The string that the outermost object holds by that name, NULL for none, without reading the rest:
 * what is wrong with the text is left for spec_parse_text to tell. Fails only for want of memory. */
int spec_look(const struct spec_text *text, const char *name, json_t **ret_string, struct fail *f);

/* ---- numbers, words, names ------------------------------------------------ */

/* A size: a JSON integer, or a string: decimal, 0x hex, or an integer with KiB, MiB, GiB, TiB. */
int spec_number(const json_t *value, const struct at *at, uint64_t *ret_number, struct fail *f);

/* The string form alone; spec_value when it is none. */
int spec_number_text(const char *text, size_t len, const struct at *at, uint64_t *ret_number,
		     struct fail *f);

/* An MR name's form. */
int spec_name(const json_t *value, const struct at *at, const char **ret_name, struct fail *f);

/* Access rights beyond libibmr's bits: asked for by words that later commands give a meaning. */
enum spec_share {
	SPEC_SHARED_USER_READ = 1u << 0,
	SPEC_SHARED_USER_WRITE = 1u << 1,
	SPEC_SHARED_GROUP_READ = 1u << 2,
	SPEC_SHARED_GROUP_WRITE = 1u << 3,
	SPEC_SHARED_OTHER_READ = 1u << 4,
	SPEC_SHARED_OTHER_WRITE = 1u << 5,
};

/* The candidate nearest to word by edits, or NULL when none is near. */
const char *spec_nearest(const char *word, const char *const *candidates, size_t num);

/* ---- a step ---------------------------------------------------------------- */

enum step_do {
	STEP_REG,
	STEP_CREATE,
	STEP_FILL,
	STEP_INVALIDATE,
	STEP_DEREG,
	STEP_PREFETCH,
	STEP_WRITE,
	STEP_READ,
	STEP_COPY,
	STEP_FETCH_ADD,
	STEP_COMPARE_SWAP,
	STEP_VERIFY,
	STEP_TRANSLATE,
	STEP_DO_MAX
};

/* Bytes named in a document: init, and the data of write. */
enum data_kind { DATA_NONE, DATA_HEX, DATA_FILE, DATA_RAMP, DATA_BYTE };

struct step_data {
	enum data_kind kind;
	const char *
		text; /* hex digits (either case, an even number, at least 2), or the file's name */
	uint64_t bytes; /* DATA_HEX: how many; DATA_RAMP and DATA_BYTE of write: the length */
	uint8_t value;	/* ramp's first byte, or the byte */
};

/* One element of klms, blocks or ranges. length is IBMR_TO_END when absent; stride is of blocks. */
struct step_entry {
	const char *mr;
	uint64_t offset, length, stride;
};

struct step_reg {
	uint64_t length;  /* IBMR_TO_END: absent (only with file) */
	bool all;	  /* "all": the whole address space */
	const char *file; /* NULL: anonymous memory */
	uint64_t file_offset;
	bool map_shared, create;
	uint64_t hugepages; /* page size, a power of two; 0: ordinary pages */
	const char *attach; /* NULL but for attach */
	uint64_t access;    /* IBMR_ACCESS_* */
	unsigned share;	    /* enum spec_share */
	struct step_data init;
};

struct step_create {
	uint64_t max_klms;
	bool split;
};

struct step_fill {
	bool repeat; /* layout */
	uint64_t access;
	unsigned share; /* words no fill can carry; the dispatcher refuses them as access */
	uint64_t base;
	uint64_t count;		    /* repeat */
	struct step_entry *entries; /* klms or blocks; owned by the step */
	size_t num;
	bool split;
};

enum step_advice { ADVICE_READ, ADVICE_WRITE, ADVICE_NO_FAULT };

struct step_prefetch {
	struct step_entry *ranges; /* always at least one; owned by the step */
	size_t num;
	bool listed; /* given as ranges; else as mr, offset and length */
	enum step_advice advice;
	bool flush;
	bool expect_resident; /* pages that are not there afterwards are a mismatch */
};

struct step_write {
	uint64_t offset;
	struct step_data data;
	bool unchecked;
};

struct step_read {
	uint64_t offset, length;
	const char *to_file; /* or NULL; "-" is standard output */
	bool unchecked;
};

struct step_copy {
	const char *to, *from;
	uint64_t to_offset, from_offset, length;
};

struct step_atomic {
	uint64_t offset;
	uint64_t add;		/* fetch_add */
	uint64_t compare, swap; /* compare_swap */
};

struct step_translate {
	uint64_t offset, length;
	const char *from; /* the other way: where a byte of this MR shows; else NULL */
	uint64_t from_offset;
};

struct step {
	enum step_do verb;
	const char *mr;	      /* NULL where the command has none (copy, prefetch of ranges) */
	const json_t *expect; /* members of the result, or NULL; borrowed */
	enum fail_code expect_error; /* FAIL_NONE: no error is expected */
	char endless[40]; /* the place of a length of 2^64-1, past every end; "" when none is */
	union {
		struct step_reg reg;
		struct step_create create;
		struct step_fill fill;
		struct step_prefetch prefetch;
		struct step_write write;
		struct step_read read;
		struct step_copy copy;
		struct step_atomic atomic;
		struct step_translate translate;
	};
};

/* A request: {"do": word, members...}. Failures are spec_* with a place from the step's root; then
 * nothing needs freeing. */
int step_parse(const json_t *request, struct step *ret_step, struct fail *f);
void step_free(struct step *step);

const char *step_word(enum step_do verb); /* "fetch_add" */
bool step_do_from_word(const char *word, enum step_do *ret_verb);

/* ---- the tables, for the command line, completion and tests ------------------ */

enum member_type {
	MEMBER_NAME,   /* an MR name */
	MEMBER_NUMBER, /* any 64-bit number */
	MEMBER_LENGTH, /* a number above 0 */
	MEMBER_ALL,    /* such a number, or the word "all": LENGTH_ALL */
	MEMBER_BYTE,   /* 0 to 255 */
	MEMBER_BOOL,
	MEMBER_STRING, /* a file name, a name of something else */
	MEMBER_HEX,
	MEMBER_WORD,   /* one of words */
	MEMBER_ACCESS, /* a list of access words; comma separated as an option */
	MEMBER_LIST,   /* a list of objects; not an option */
	MEMBER_OBJECT, /* an object; not an option */
};

struct member {
	const char *name; /* as in JSON; the option has - for _ */
	enum member_type type;
	bool required;
	const char *const *words; /* MEMBER_WORD: what it may be, NULL terminated */
	size_t offset;		  /* of its field, and its bit in a set; the parser's own */
	unsigned bit;
};

#define LENGTH_ALL 0 /* no length is */

/* The members of a command, beside do, mr and expect. */
const struct member *step_members(enum step_do verb, size_t *ret_num);
/* Those of the object init, of which each is the option --init-... of reg. */
const struct member *step_init_members(size_t *ret_num);
/* The command takes the member mr (positional NAME on the command line). */
bool step_takes_mr(enum step_do verb);

/* ---- a document --------------------------------------------------------------- */

enum spec_kind { SPEC_FILL, SPEC_PLAN };

/* Which of the two a document is, and that its schema is one we read: the first look at a document.
 * spec_type when it is no object, spec_missing when it is neither. */
int spec_kind(const json_t *doc, enum spec_kind *ret_kind, struct fail *f);

/* Read a document that must be a fill SPEC; spec_missing for a plan. */
int spec_read_fill(const char *path, json_t **ret_doc, struct fail *f);

/* A fill SPEC as the step that `fill` makes of it: mr (borrowed) may be NULL for `check`. */
int spec_parse_fill(const json_t *doc, const char *mr, struct step *ret_step, struct fail *f);

struct plan {
	const char *device; /* or NULL */
	struct step *steps;
	size_t num;
};

/* Every form check of every step; a failure's place is from the plan's root ("/steps/2/klms/1"). */
int plan_parse(const json_t *doc, struct plan *ret_plan, struct fail *f);
void plan_free(struct plan *plan);

#endif /* CLI_SPEC_H */
