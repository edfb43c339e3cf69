/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibmr, inside. What crosses files is named ibmri_: never exported, and out of the way of a
 * program that links the library statically. The arrows go one way:
 *
 *   exp_*.c                                    the experimental verbs (exp.h), a second face
 *   data.c prefetch.c translate.c
 *   indirect.c tree.c mr.c ctx.c               the public calls
 *   queue.c pair.c pool.c caps.c               what a device is made to do for them
 *   cause.c limits.c pages.c
 *   mem.c file.c shared.c                      the machine: memory, pages, files, limits
 *   layout.c split.c umr.c access.c err.c      pure: no I/O, no verbs calls
 */
#ifndef IBMR_PRIVATE_H
#define IBMR_PRIVATE_H

#include "ibmr.h"

#include <infiniband/verbs.h>
#include <infiniband/mlx5dv.h>

/* What the wire can carry (source: mlx5_wqe_umr_klm_seg, mlx5_wqe_umr_repeat_block_seg). */
#define IBMRI_MAX_TABLE	 65532u	     /* table entries of one key: 16 bits, in fours */
#define IBMRI_MAX_ENTRY	 0x7fffffffu /* bytes of a list entry: below 2^31 */
#define IBMRI_MAX_STRIDE 65535u	     /* 16 bits; the bytes of a block too */
#define IBMRI_MAX_COUNT	 UINT32_MAX  /* cycles of a repeat */
#define IBMRI_MAX_PIECES (1u << 26)  /* entries of one list that is split: memory, ours */
#define IBMRI_MAX_DEPTH	 255u	     /* the width of the device's own limit */
#define IBMRI_KLM_BYTES	 16u
#define IBMRI_MAX_WQE	 1008u /* 63 segments of 16 bytes: six bits in the control segment */

#define IBMRI_STAGING_BYTES (1u << 20) /* at most; transfers are split there */

/* ---- err.c --------------------------------------------------------------- */

/* What stands behind the word for so many. */
static inline const char *ibmri_plural(uint64_t num)
{
	return num == 1 ? "" : "s";
}

/* Each returns the negative errno that the public call is to return; err may be NULL. */

/* Said to compilers and analyzers, which would otherwise see paths where a failure returns 0. */
static inline int ibmri_negative(int ret)
{
	if (ret >= 0)
		__builtin_unreachable();
	return ret;
}

/* We refuse: no call failed. The errno is the code's own. */
int ibmri_err_refuse(struct ibmr_err *err, enum ibmr_code code, const char *origin, const char *fmt,
		     ...) __attribute__((format(printf, 4, 5)));
#define ibmri_refuse(...) ibmri_negative(ibmri_err_refuse(__VA_ARGS__))
/* A call failed with the (positive) errno err_no; origin names the call. */
int ibmri_err_failed(struct ibmr_err *err, enum ibmr_code code, const char *origin, int err_no,
		     const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define ibmri_failed(...) ibmri_negative(ibmri_err_failed(__VA_ARGS__))
/* The code for an errno of a verbs call, when its context adds nothing. */
enum ibmr_code ibmri_code_of(int err_no);
int ibmri_code_errno(enum ibmr_code code);

/* More about an error just set. */
void ibmri_err_cause(struct ibmr_err *err, const char *cause);
/* What it probably is. */
void ibmri_err_suspect(struct ibmr_err *err, const char *cause);
void ibmri_err_index(struct ibmr_err *err, uint64_t index);
void ibmri_err_hint(struct ibmr_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Append to the text. */
void ibmri_err_more(struct ibmr_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* ---- access.c ------------------------------------------------------------ */

/* "local_write, remote_read" into buf, always terminated; "no rights" for 0. Returns buf. */
const char *ibmri_access_text(uint64_t access, char *buf, size_t size);
/* The rules that hold on every device: known bits of allowed only, remote_* with local_write. */
int ibmri_access_check(uint64_t access, uint64_t allowed, const char *what, const char *origin,
		       struct ibmr_err *err);

/* ---- objects --------------------------------------------------------------- */

struct ibmri_queue;
struct ibmri_dry_file;

/* Registered memory of the library's own, kept for the life of the ctx; grows, never shrinks. */
struct ibmri_pool {
	void *buf;
	uint64_t size;
	struct ibv_mr *mr;
};

struct ibmr_ctx {
	bool dry;
	bool own_pd;	 /* and the verbs context */
	bool own_events; /* nobody else reads them, and reading does not block */
	bool gone;	 /* the device was pulled out */
	bool mlx5;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibmr_caps caps;
	bool umr_probed, prefetch_probed;
	struct mlx5dv_mkey *probe_key; /* one that would not be destroyed */
	uint8_t port;
	int gid_index;
	uint32_t timeout_ms;
	const volatile sig_atomic_t *cancel;

	struct ibmri_queue *queue; /* made at first need */
	struct ibmri_pool klms, staging;
	uint64_t locked_bytes;
	uint64_t reconnects;

	struct ibmri_dry_file *dry_files; /* what a real run would have made or lengthened */

	struct ibmr_mr *mrs;
	uint64_t num_mrs;
	uint64_t num_unknown;	   /* MRs in IBMR_STATE_UNKNOWN */
	uint64_t names;		   /* for MRs without a name or a key */
	uint64_t mark;		   /* last value used in ibmr_mr.mark */
	uint64_t layouts;	   /* last value used in ibmr_mr.layout_number */
	struct ibmri_level *spent; /* keys of trees that would not be destroyed */
};

struct ibmri_mem {
	void *map; /* NULL: nothing to unmap */
	size_t map_length;
	void *addr;  /* where the bytes asked for start */
	bool anon;   /* private anonymous memory */
	bool made;   /* the file was not there */
	bool longer; /* the file was old_size bytes long */
	uint64_t old_size;
	char *id; /* of shared memory, ours or another's; else NULL */
	int lock; /* with id: the descriptor of what we made; -1: another made it */
};

struct ibmri_entry {
	struct ibmr_mr *mr;
	uint64_t offset;
	uint64_t length;
	uint64_t stride; /* repeat only */
	uint64_t end;	 /* running total: of the list, or within a cycle */
};

/* A layout in force. */
struct ibmri_layout {
	enum ibmr_layout_kind kind;
	uint64_t access;
	uint64_t base;
	uint64_t total;
	uint64_t count; /* repeat: cycles */
	uint64_t cycle; /* repeat: bytes of one */
	uint64_t
		each; /* length of all entries, but for a last one that is shorter; 0: they differ */
	uint64_t num;
	bool split; /* a list that may take more than one key */
	struct ibmri_entry *entries;
	uint64_t room;			       /* of entries */
	uint64_t number;		       /* of the making, in the scratch of its members */
	struct ibmr_mr *members, *last_member; /* distinct, in the order they are named first */
	uint64_t num_members;
	uint64_t *marks; /* the end of every so many entries, to search first; NULL: no need */
};

/* One per pair of a filled indirect MR and a member of it. */
struct ibmri_link {
	struct ibmr_mr *user;
	struct ibmr_mr *member;
	uint64_t end;			  /* the user needs [0, end) of the member */
	uint64_t base;			  /* the member's, as the user's entries have it */
	struct ibmri_link *next, **pprev; /* in the member's users */
};

/* What an indirect MR inherits from its members. */
struct ibmri_traits {
	bool on_demand;
	bool relaxed;	/* a member is relaxed_ordering */
	uint32_t depth; /* 0 for a direct MR */
};

struct ibmri_level;

/* A list's keys below the MR's own, level by level from the one that holds the layout's entries. */
struct ibmri_tree {
	struct ibmri_level *bottom; /* NULL: the MR's own key holds all */
	struct ibmri_entry *top;    /* the table of the MR's own key, until it is sent */
	uint64_t num_top;
	uint64_t num_keys;    /* below the MR's own */
	uint64_t num_entries; /* of all tables */
	uint32_t levels;
};

struct ibmr_mr {
	struct ibmr_ctx *ctx;
	struct ibmr_mr *next, **pprev;
	char *name;
	bool indirect;
	enum ibmr_state state;
	uint32_t lkey, rkey;
	uint64_t base;
	uint64_t length;
	uint64_t access;
	struct ibmri_traits traits;
	struct ibmri_link *users;
	uint64_t num_users;

	/* direct */
	struct ibv_mr *ibv;
	bool borrowed; /* ibv is the caller's */
	bool implicit; /* the whole address space: offset = address */
	struct ibmri_mem mem;
	uint64_t locked_bytes;

	/* indirect */
	struct mlx5dv_mkey *mkey;
	uint64_t max_klms;
	uint64_t table; /* entries its key has room for */
	bool split;	/* a list may take more than one key */
	enum ibmr_form form;
	struct ibmri_layout layout;
	struct ibmri_layout spare; /* nothing but memory */
	struct ibmri_tree tree;
	struct ibmri_link *links;
	uint64_t num_links;

	/* scratch of the walk whose number ctx->mark is */
	uint64_t mark;
	uint64_t mark_value;

	/* scratch as a member, while the layout of that number is made and linked */
	uint64_t layout_number;
	uint64_t first_entry; /* that names it */
	uint64_t reach;	      /* bytes of it, from its start, that entries need */
	struct ibmr_mr *next_member;
};

/* ---- layout.c: arithmetic of lists and repeats ----------------------------- */

/* Table entries a layout takes: a repeat's header is one. */
static inline uint64_t ibmri_layout_table(const struct ibmri_layout *l)
{
	return l->num + (l->kind == IBMR_LAYOUT_REPEAT);
}

/* Check everything about the layout that needs only the records: numbers, members' bounds, rights
 * and states, the device's limits; and make a copy of it with its totals. On success the entries of
 * *ret_layout are the caller's to free. */
int ibmri_layout_make(struct ibmr_mr *mr, const struct ibmr_layout *in,
		      struct ibmri_layout *ret_layout, struct ibmr_err *err);
void ibmri_layout_free(struct ibmri_layout *l);
/* The same of a layout that another took the place of: the MR's next one has its memory. */
void ibmri_layout_retire(struct ibmr_mr *mr, struct ibmri_layout *l);

/* A run of bytes in one member. */
struct ibmri_piece {
	struct ibmr_mr *mr;
	uint64_t offset;
	uint64_t length;
};

/* The pieces of [offset, offset + length) of a layout, in order, one level down. The range must be
 * within the layout. */
struct ibmri_walk {
	const struct ibmri_layout *layout;
	uint64_t cycle, index; /* the next entry */
	uint64_t skip;	       /* bytes of it before the range */
	uint64_t left;
};
void ibmri_walk_start(struct ibmri_walk *w, const struct ibmri_layout *l, uint64_t offset,
		      uint64_t length);
bool ibmri_walk_next(struct ibmri_walk *w, struct ibmri_piece *ret_piece);

/* True when [offset, offset + length) lies within size; never wraps. */
static inline bool ibmri_within(uint64_t offset, uint64_t length, uint64_t size)
{
	return offset <= size && length <= size - offset;
}

/* ---- umr.c: layouts as bytes of a work request ----------------------------- */

/* Bytes of the table that the device reads, a multiple of four entries. */
uint64_t ibmri_umr_table_bytes(const struct ibmri_layout *l);
/* Write that table to dst; padding is zeroed. */
void ibmri_umr_table(const struct ibmri_layout *l, void *dst);

struct ibmri_umr_list {
	uint32_t lkey;
	uint64_t addr;
};

/* Build the work request that gives key the layout: its entries inline when list is NULL, else read
 * by the device from list. wqe has room for IBMRI_MAX_WQE bytes. Returns the size, 0 when the
 * inline form does not fit. */
uint32_t ibmri_umr_fill(void *wqe, const struct ibmri_layout *l, uint32_t key, uint32_t qpn,
			const struct ibmri_umr_list *list);
/* The work request that takes layout and rights away. */
uint32_t ibmri_umr_invalidate(void *wqe, uint32_t key, uint32_t qpn);

/* Entries that fit inline in a work request of that many bytes. */
uint32_t ibmri_umr_inline_klms(uint32_t wqe_bytes);
uint32_t ibmri_umr_inline_bytes(uint32_t klms);

/* ---- caps.c ------------------------------------------------------------------ */

/* Fill ctx->caps from the device; nothing is created there. */
int ibmri_caps_read(struct ibmr_ctx *ctx, struct ibmr_err *err);
/* The ports again: they go up and down. */
int ibmri_caps_ports(struct ibmr_ctx *ctx, struct ibmr_err *err);
/* The two questions that only an attempt answers; asked once. */
int ibmri_caps_probe(struct ibmr_ctx *ctx, struct ibmr_err *err);
int ibmri_caps_close(struct ibmr_ctx *ctx, struct ibmr_err *err);

/* ---- event.c ----------------------------------------------------------------- */

/* The result of giving an object back. One of a device that is gone went with it, and no memory is touched
 * any more: 0 then. */
int ibmri_let_go(struct ibmr_ctx *ctx, int ret);

/* ---- pair.c: the loopback, made and brought back --------------------------------- */

struct ibmri_call;

struct ibmri_pair {
	struct ibv_cq *cq; /* of both */
	struct ibv_qp *requester, *responder;
	struct ibv_qp_ex *qpx; /* the requester on mlx5: for raw work requests */
	struct mlx5dv_qp_ex *mqpx;
	uint32_t room; /* send slots of the requester */
	uint8_t port;
	uint32_t max_msg;
};

/* Make and connect them; on failure nothing is left that would let itself be destroyed. */
int ibmri_pair_make(const struct ibmri_call *c, struct ibmri_pair *p, struct ibmr_err *err);
/* After an error, with nothing in flight. False: not as they should be any more. */
bool ibmri_pair_reconnect(const struct ibmri_call *c, struct ibmri_pair *p);
/* To ERR, so that the device stops. */
void ibmri_pair_stop(struct ibmri_pair *p);
/* What there is of it; what the device does not let go of stays for another try. */
int ibmri_pair_destroy(struct ibmr_ctx *ctx, struct ibmri_pair *p, struct ibmr_err *err);

/* ---- queue.c: the only file that posts and polls ------------------------------- */

/* One public call that waits: who it is for the messages, and when its waits end. */
struct ibmri_call {
	struct ibmr_ctx *ctx;
	const char *origin;
	const char *doing;    /* "filling" */
	const char *name;     /* of the MR */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC */
};
void ibmri_call_start(struct ibmri_call *c, struct ibmr_ctx *ctx, const char *origin,
		      const char *doing, const struct ibmr_mr *mr);
/* 0; -EINTR when the caller's flag is up, -ETIMEDOUT when the time is over. */
int ibmri_call_over(const struct ibmri_call *c);
/* The same with the error set. */
int ibmri_call_check(const struct ibmri_call *c, struct ibmr_err *err);

/* Make the queue pair ready; nothing to do when it is. */
int ibmri_queue_need(const struct ibmri_call *c, struct ibmr_err *err);
uint32_t ibmri_queue_qpn(const struct ibmr_ctx *ctx);
/* Bytes one message may carry. */
uint64_t ibmri_queue_max_msg(const struct ibmr_ctx *ctx);

struct ibmri_rdma {
	enum ibv_wr_opcode opcode; /* write, read, fetch_add, cmp_and_swp */
	uint64_t local;
	uint32_t lkey;
	uint32_t length;
	uint64_t remote;
	uint32_t rkey;
	uint64_t compare_add, swap;
};
/* Post and wait. *ret_posted tells on failure that the device may have obeyed or not; the queue
 * pair was brought back by then, or is made anew at next need, and touches no memory any more. */
int ibmri_queue_umr(const struct ibmri_call *c, const void *wqe, bool *ret_posted,
		    struct ibmr_err *err);
int ibmri_queue_rdma(const struct ibmri_call *c, const struct ibmri_rdma *r, struct ibmr_err *err);
/* -errno when the device would not let go; what is left stays for another try. */
int ibmri_queue_close(struct ibmr_ctx *ctx, struct ibmr_err *err);

/* ---- pool.c -------------------------------------------------------------------- */

/* Room for bytes in the pool, registered; contents are lost when it grows. */
int ibmri_pool_need(struct ibmr_ctx *ctx, struct ibmri_pool *pool, uint64_t bytes, const char *what,
		    struct ibmr_err *err);
int ibmri_pool_close(struct ibmr_ctx *ctx, struct ibmri_pool *pool, struct ibmr_err *err);

/* ---- mem.c ----------------------------------------------------------------------- */

uint64_t ibmri_page_size(void);
/* Bytes of the whole pages that [addr, addr + length) touches. */
uint64_t ibmri_page_span(uint64_t addr, uint64_t length);

/* Provide the memory a spec asks for and say how long it is. In a dry ctx nothing is made, and
 * ret_mem->addr is where the bytes would start within a page. */
int ibmri_mem_get(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec, struct ibmri_mem *ret_mem,
		  uint64_t *ret_length, struct ibmr_err *err);
void ibmri_mem_put(struct ibmri_mem *mem);
/* A length that mmap can be asked for. */
int ibmri_mem_length(uint64_t length, struct ibmr_err *err);

/* ---- shared.c ------------------------------------------------------------------ */

int ibmri_shared_get(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
		     struct ibmri_mem *ret_mem, uint64_t *ret_length, struct ibmr_err *err);
int ibmri_attach_get(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
		     struct ibmri_mem *ret_mem, uint64_t *ret_length, struct ibmr_err *err);
/* Of any memory: what is shared gives its name back. */
void ibmri_shared_put(struct ibmri_mem *mem);

/* ---- file.c ------------------------------------------------------------------- */

int ibmri_file_get(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec, struct ibmri_mem *ret_mem,
		   uint64_t *ret_length, struct ibmr_err *err);
/* The MR did not come to be: a file made or lengthened for it is put back. Puts the memory too. */
void ibmri_file_undo(struct ibmri_mem *mem, const struct ibmr_mr_spec *spec, struct ibmr_err *err);
/* What a dry ctx knows of files that a real run would have made. */
void ibmri_file_forget(struct ibmr_ctx *ctx);

/* ---- pages.c ------------------------------------------------------------------------ */

/* The first page of [addr, addr + length) that cannot be used, by /proc/self/maps. */
struct ibmri_bad_page {
	uint64_t addr;
	bool mapped;
	char perms[8]; /* "r--p", when mapped */
};
/* 1 found, 0 all pages are usable, negative: could not tell. */
int ibmri_pages_first_bad(uint64_t addr, uint64_t length, bool write,
			  struct ibmri_bad_page *ret_bad);
/* The kernel's page size of the mapping at addr; 0: not known. */
uint64_t ibmri_pages_size_at(uint64_t addr);
/* Entries of /proc/self/maps; -1 when it cannot be read. */
int64_t ibmri_pages_map_count(void);

/* What counts pages for the CPU during one call. */
struct ibmri_residency {
	int fd; /* pagemap, or -1 */
	bool used_pagemap, used_mincore;
};
void ibmri_residency_open(struct ibmri_residency *r);
void ibmri_residency_close(struct ibmri_residency *r);
/* Pages of [addr, addr + length) present for the CPU; -1 when nothing trustworthy can tell.
 * own: the memory is of a kind that mincore tells the truth about. */
int64_t ibmri_pages_resident(struct ibmri_residency *r, uint64_t addr, uint64_t length, bool own,
			     const struct ibmri_call *c);
/* Pages mapped by the device, where it says so; else -1. */
int64_t ibmri_pages_mapped(const struct ibmr_mr *mr, uint64_t offset, uint64_t length,
			   const struct ibmri_call *c);

/* ---- limits.c ----------------------------------------------------------------------- */

/* System calls of this process go through a filter. */
bool ibmri_seccomp_filters(void);

/* ---- cause.c ------------------------------------------------------------------------ */

/* Why the registration of [addr, addr + length) failed with err_no; sets the error. */
int ibmri_reg_failed(struct ibmr_ctx *ctx, const char *what, void *addr, uint64_t length,
		     uint64_t access, int err_no, struct ibmr_err *err);
/* Out of memory in malloc and its like. */
int ibmri_err_no_memory(struct ibmr_err *err, const char *origin, uint64_t bytes);
#define ibmri_no_memory(...) ibmri_negative(ibmri_err_no_memory(__VA_ARGS__))
/* Why length bytes could not be mapped. */
int ibmri_map_failed(const char *what, uint64_t length, int err_no, struct ibmr_err *err);

/* ---- mr.c ---------------------------------------------------------------------------- */

int ibmri_mr_new(struct ibmr_ctx *ctx, const char *name, const char *origin,
		 struct ibmr_mr **ret_mr, struct ibmr_err *err);
/* Give it its keys, a name when it has none, and a place in the ctx. */
int ibmri_mr_keyed(struct ibmr_mr *mr, uint32_t lkey, uint32_t rkey, const char *origin,
		   struct ibmr_err *err);
void ibmri_mr_free(struct ibmr_mr *mr);
/* -EBUSY, with the users named, when a filled MR points at it. */
int ibmri_mr_in_use(const struct ibmr_mr *mr, const char *doing, const char *origin,
		    struct ibmr_err *err);
const char *ibmri_state_name(enum ibmr_state state);

/* ---- links.c: who points at whom ----------------------------------------------------------- */

/* Levels that the device follows. */
uint32_t ibmri_max_depth(const struct ibmr_ctx *ctx);
/* The links that mr would have with this layout, of so many levels of keys, and what it would inherit; nothing
 * changes yet. Checks depth, cycles, and that those who point at mr still find what they need. */
int ibmri_links_make(struct ibmr_mr *mr, const struct ibmri_layout *l, uint32_t levels,
		     struct ibmri_link **ret_links, uint64_t *ret_num,
		     struct ibmri_traits *ret_traits, struct ibmr_err *err);
/* Give ctx->mark a new value, and it to every MR that leads to this one. */
void ibmri_links_mark_users(const struct ibmr_mr *mr);
/* Put them in the place of those it has; NULL and 0 for none. Takes the links. */
void ibmri_links_set(struct ibmr_mr *mr, struct ibmri_link *links, uint64_t num,
		     const struct ibmri_traits *traits);

/* ---- indirect.c ------------------------------------------------------------------------ */

/* Does this errno of mlx5dv_create_mkey mean that there are no such keys? */
bool ibmri_says_no_umr(int err_no);
int ibmri_indirect_dereg(struct ibmr_mr *mr, struct ibmr_err *err);
/* Entries that one key of the device may have. */
uint64_t ibmri_max_table(const struct ibmr_ctx *ctx);
/* Make the device's key of an indirect MR, for its table; and have the device take a layout for it.
 * *ret_posted as ibmri_queue_umr has it. No effect in a dry ctx. */
int ibmri_indirect_key(struct ibmr_mr *mr, struct ibmr_err *err);
int ibmri_indirect_send(const struct ibmri_call *c, struct ibmr_mr *mr,
			const struct ibmri_layout *l, enum ibmr_form *ret_form, bool *ret_posted,
			struct ibmr_err *err);
/* Refuse an MR that cannot be read or written through: itself or something under it. */
int ibmri_usable(struct ibmr_mr *mr, const char *origin, struct ibmr_err *err);

/* ---- split.c: layouts that one table cannot say ---------------------------------------------- */

/* Bytes that one list entry carries. */
uint64_t ibmri_max_entry(const struct ibmr_ctx *ctx);
/* Of a repeat block's stride and length. */
uint64_t ibmri_max_stride(const struct ibmr_ctx *ctx);
/* How many of length bytes at addr go into one entry of at most so many: cut where no aligned access
 * crosses. */
uint64_t ibmri_cut_length(uint64_t addr, uint64_t length, uint64_t most);
/* No more parts than this come of it, wherever it starts. */
uint64_t ibmri_cut_parts(uint64_t length, uint64_t most);

/* Divide entries that are too long; unroll a repeat that the MR's own key cannot hold. */
int ibmri_layout_split(const struct ibmr_mr *mr, struct ibmri_layout *l, struct ibmr_err *err);

/* ---- tree.c: lists that one key cannot hold ------------------------------------------------ */

struct ibmri_level {
	struct ibmri_level *above;
	struct ibmri_entry *table; /* of all its keys; NULL when they have it */
	uint64_t num_entries;
	uint64_t most; /* of one key */
	uint64_t num;
	struct ibmr_mr keys[]; /* with what encoding takes of an MR; nobody points at them */
};

/* The tables of all levels; of one level only, unless the MR may be split and its key has no room. No
 * device is asked. limit: more levels than it follows. */
int ibmri_tree_make(const struct ibmr_mr *mr, const struct ibmri_layout *l,
		    struct ibmri_tree *ret_tree, struct ibmr_err *err);
/* Make and fill the keys below the MR's own. */
int ibmri_tree_send(const struct ibmri_call *c, struct ibmri_tree *tree, uint64_t access,
		    struct ibmr_err *err);
/* The device has all tables: let go of them. */
void ibmri_tree_sent(struct ibmri_tree *tree);
/* Nothing points at it any more. */
void ibmri_tree_free(struct ibmr_ctx *ctx, struct ibmri_tree *tree);
/* What the MR's own key points at is one or the other: both stay. */
void ibmri_tree_join(struct ibmri_tree *tree, struct ibmri_tree *more);
/* Destroy what the device kept. */
int ibmri_tree_close(struct ibmr_ctx *ctx, struct ibmr_err *err);

#endif /* IBMR_PRIVATE_H */
