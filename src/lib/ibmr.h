/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libibmr: RDMA memory regions, direct and indirect, over libibverbs.
 *
 * Conventions, without exception:
 * - A call that can fail returns 0 or a negative errno and, when reterr is not
 *   NULL, fills *reterr on failure only. ret_ parameters are written on success
 *   only.
 * - Pointers passed in are borrowed for the call and copied where they are kept,
 *   unless a comment says otherwise.
 * - Lengths, offsets and counts are uint64_t and in bytes, unless the name says
 *   otherwise. An offset counts from the first byte of an MR, whatever the
 *   address or base it is registered at.
 * - One thread at a time per ctx; separate ctxs are independent.
 * - The library prints nothing, reads no environment and installs no handlers.
 */
#ifndef IBMR_H
#define IBMR_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define IBMR_EXPORT __attribute__((visibility("default")))
#else
#define IBMR_EXPORT
#endif

struct ibv_device;
struct ibv_context;
struct ibv_pd;
struct ibv_mr;

struct ibmr_ctx; /* a device in use: context, PD, queue pair, pooled KLM memory */
struct ibmr_mr;	 /* direct (registered memory) or indirect (a KLM list) */

/* ---- errors ------------------------------------------------------------ */

/* What went wrong, as a stable word; the errno in brackets is what the call returns when the
 * library itself refuses. When a system call refused, the call returns that call's errno. */
enum ibmr_code {
	IBMR_OK = 0,
	IBMR_E_ARGUMENT,      /* an argument no layout can have: length 0, unknown bit [EINVAL] */
	IBMR_E_NO_DEVICE,     /* no such device, or no device at all [ENODEV] */
	IBMR_E_NO_PERMISSION, /* the system does not allow it [EACCES, EPERM] */
	IBMR_E_UNSUPPORTED,   /* the device, driver or library lacks it [EOPNOTSUPP, ENOSYS] */
	IBMR_E_STATE,	      /* an empty, invalidated or unknown MR was used [EINVAL] */
	IBMR_E_IN_USE,	      /* a member of a filled MR deregistered or shrunk [EBUSY] */
	IBMR_E_NESTING,	      /* a cycle, or deeper than the device follows [ELOOP] */
	IBMR_E_RANGE,	      /* bytes outside the MR, or wrapping [EFAULT] */
	IBMR_E_LIMIT,	      /* more than the wire, the device or max_klms carries [E2BIG] */
	IBMR_E_ACCESS,	      /* a right is missing, or a flag cannot be carried [EACCES] */
	IBMR_E_NOT_ON_DEMAND, /* prefetch of a pinned MR [EINVAL] */
	IBMR_E_MEMLOCK,	      /* the locked-memory limit [ENOMEM, EPERM] */
	IBMR_E_NO_MEMORY,     /* memory, or a kernel table of it [ENOMEM] */
	IBMR_E_BAD_ADDRESS,   /* unmapped, PROT_NONE or read-only memory [EFAULT] */
	IBMR_E_KEY_TABLE,     /* the device's memory keys are exhausted [EAGAIN, ENOSPC] */
	IBMR_E_COMPLETION,    /* the device refused what our records allowed [EIO] */
	IBMR_E_TIMEOUT,	      /* a wait ended at its deadline [ETIMEDOUT] */
	IBMR_E_IO,	      /* a file could not be opened, mapped or read */
	IBMR_E_INTERRUPTED,   /* the caller's cancel flag was raised [EINTR] */
	IBMR_E_MAX
};

/* The stable word of a code ("range", "in_use", ...), never NULL. */
IBMR_EXPORT const char *ibmr_code_name(enum ibmr_code code);

/* Why memory cannot be had, as far as that can be told afterwards: the cause "map_count" when the process
 * has as many mappings as vm.max_map_count allows, else NULL. For callers whose own malloc failed; a
 * call of this library says it by itself. */
IBMR_EXPORT const char *ibmr_memory_cause(void);

/* Filled by a failing call; owned by the caller. cause and origin are static strings. */
struct ibmr_err {
	enum ibmr_code code;
	const char *cause;   /* a finer stable word, or NULL */
	bool certain;	     /* the cause was found out; else it is only likely */
	int sys_errno;	     /* raw errno of the call in origin; 0 when no call failed */
	const char *origin;  /* "ibv_reg_mr", "mmap", or the ibmr_ call that refused */
	int64_t index;	     /* which entry, block or range; -1 when none in particular */
	int status;	     /* enum ibv_wc_status of a completion error, else -1 */
	uint32_t vendor_err; /* valid when status >= 0 */
	char text[512];	     /* one sentence that names the thing and both numbers */
	char hint[256];	     /* what to do about it, or "" */
};

/* ---- rights ------------------------------------------------------------ */

/* The low bits have the values of enum ibv_access_flags. */
enum ibmr_access {
	IBMR_ACCESS_LOCAL_WRITE = 1u << 0,
	IBMR_ACCESS_REMOTE_WRITE = 1u << 1,
	IBMR_ACCESS_REMOTE_READ = 1u << 2,
	IBMR_ACCESS_REMOTE_ATOMIC = 1u << 3,
	IBMR_ACCESS_MW_BIND = 1u << 4,
	IBMR_ACCESS_ON_DEMAND = 1u << 6,
	IBMR_ACCESS_HUGETLB = 1u << 7,
	IBMR_ACCESS_RELAXED_ORDERING = 1u << 20,
};

/* The rights that a UMR can set; a fill with any other bit is refused (source: mlx5_wqe_mkey_context). */
#define IBMR_ACCESS_FILL                                                                \
	(IBMR_ACCESS_LOCAL_WRITE | IBMR_ACCESS_REMOTE_WRITE | IBMR_ACCESS_REMOTE_READ | \
	 IBMR_ACCESS_REMOTE_ATOMIC)

/* "remote_write" <-> its bit. 0 for an unknown word; NULL for what is not exactly one known bit. */
IBMR_EXPORT uint64_t ibmr_access_from_name(const char *name);
IBMR_EXPORT const char *ibmr_access_name(uint64_t bit);

/* ---- context ----------------------------------------------------------- */

#define IBMR_MAX_PORTS 8

struct ibmr_port {
	uint8_t num;
	uint8_t state;	    /* enum ibv_port_state */
	uint8_t link_layer; /* IBV_LINK_LAYER_* */
	uint16_t lid;
	uint32_t active_mtu_bytes;
	uint32_t max_msg_sz;
};

/* What a device reports. A number of 0 in the umr_ members means "it does not say". */
struct ibmr_caps {
	char name[64];
	char driver[32]; /* "mlx5", "rxe"; "" when unknown */
	char fw[64];
	uint64_t guid; /* host order */
	uint32_t vendor_id, vendor_part_id;
	uint64_t max_mr_size;
	bool odp, odp_implicit;
	bool prefetch_needs_write; /* no prefetch of an MR without local_write; of a dry ctx */
	uint32_t odp_rc;	   /* enum ibv_odp_transport_cap_bits */
	bool umr;		   /* indirect MRs can be made and filled */
	uint32_t max_klms;	   /* table entries one key may have, as this library uses it */
	uint32_t inline_klms;	   /* entries that travel in the work request itself */
	uint32_t max_depth;	   /* levels of nesting: 1 = members are direct MRs only */
	uint32_t max_stride;	   /* bytes; also the longest repeat block */
	uint64_t max_entry;	   /* bytes one list entry may carry */
	bool repeat_on_demand;	   /* repeat blocks over on-demand members work */
	int prefetch;		   /* 1 yes, 0 no, -1 not known */
	bool atomics;
	uint32_t num_ports;
	struct ibmr_port ports[IBMR_MAX_PORTS];
};

struct ibmr_ctx_opts {
	const char *device;  /* NULL: the first device with an ACTIVE port */
	uint8_t port;	     /* 0: the first ACTIVE one */
	int gid_index;	     /* -1: the port's first RoCE v2 GID where one is needed */
	uint32_t timeout_ms; /* for all the waits of one call; 0: 10000 */
	const volatile sig_atomic_t
		*cancel; /* borrowed for the ctx's life; waits end when non-zero */
};

/* Open a device. -ENODEV no_device: not there (the text lists what is). -EACCES/-EPERM
 * no_permission: its node may not be opened. Source: ibv_open_device(3). */
IBMR_EXPORT int ibmr_ctx_open(const struct ibmr_ctx_opts *opts, struct ibmr_ctx **ret_ctx,
			      struct ibmr_err *reterr);

/* Use the caller's PD, which must outlive the ctx and stays the caller's. opts->device is ignored. */
IBMR_EXPORT int ibmr_ctx_from_pd(struct ibv_pd *pd, const struct ibmr_ctx_opts *opts,
				 struct ibmr_ctx **ret_ctx, struct ibmr_err *reterr);

/* A context without a device: every call makes all the checks that a device with these limits would
 * meet and has no effect: no memory is mapped, no file made, nothing posted. `ibmr check` is this. */
IBMR_EXPORT int ibmr_ctx_open_dry(const struct ibmr_caps *limits, struct ibmr_ctx **ret_ctx,
				  struct ibmr_err *reterr);
IBMR_EXPORT bool ibmr_ctx_is_dry(const struct ibmr_ctx *ctx);

IBMR_EXPORT int ibmr_ctx_query(struct ibmr_ctx *ctx, struct ibmr_caps *ret_caps,
			       struct ibmr_err *reterr);

/* The same without an attempt at anything: umr is whether the device reports a limit for it, prefetch
 * is -1 unless it was asked before. */
IBMR_EXPORT void ibmr_ctx_reported(const struct ibmr_ctx *ctx, struct ibmr_caps *ret_caps);

IBMR_EXPORT void ibmr_ctx_set_timeout(struct ibmr_ctx *ctx, uint32_t timeout_ms);

/* Bytes now locked for the process by this ctx, in whole pages: members, and the library's own list
 * and staging memory. The few pages of its queues, which the driver locks, are not counted. */
IBMR_EXPORT uint64_t ibmr_ctx_locked_bytes(const struct ibmr_ctx *ctx);

#define IBMR_NO_LIMIT UINT64_MAX

/* What the system lets this process lock, and what it has locked for devices already. */
struct ibmr_memlock {
	uint64_t soft, hard; /* RLIMIT_MEMLOCK in bytes, or IBMR_NO_LIMIT */
	int64_t pinned;	     /* bytes, by the kernel's count; -1: not known */
	int ipc_lock;	     /* CAP_IPC_LOCK is effective: 1 yes, 0 no, -1 not known */
	int first_namespace; /* the same, of the user namespace in which the capability counts */
};
IBMR_EXPORT void ibmr_memlock_query(struct ibmr_memlock *ret_memlock);

/* Number of times the queue pair was brought back after a completion error or a timeout. */
IBMR_EXPORT uint64_t ibmr_ctx_reconnects(const struct ibmr_ctx *ctx);

/* Becomes readable when the device has something to tell: then ask ibmr_ctx_gone. -1: of a dry ctx, and of
 * one on the caller's PD, whose events are the caller's. */
IBMR_EXPORT int ibmr_ctx_event_fd(const struct ibmr_ctx *ctx);

/* Take what the device had to tell. True: it was pulled out, or has failed for good; calls fail from now
 * on, and MRs are deregistered, and the ctx closed, without it. Source: ibv_get_async_event(3). */
IBMR_EXPORT bool ibmr_ctx_gone(struct ibmr_ctx *ctx);

/* -EBUSY in_use while MRs of the ctx exist: nothing is closed then. NULL is fine. */
IBMR_EXPORT int ibmr_ctx_close(struct ibmr_ctx *ctx, struct ibmr_err *reterr);

/* ---- memory regions ---------------------------------------------------- */

/* The length of an implicit MR: no process has more addresses. An offset in it is an address. */
#define IBMR_ALL_BYTES INT64_MAX

#define IBMR_TO_END UINT64_MAX /* as a length: up to the end of the MR (or file) */

enum ibmr_mem {
	IBMR_MEM_CALLER, /* [addr, addr + length) of the caller; it must outlive the MR */
	IBMR_MEM_ANON,	 /* zeroed anonymous memory, freed at dereg */
	IBMR_MEM_HUGE,	 /* the same in huge pages of huge_page_size */
	IBMR_MEM_FILE,	 /* a file's bytes [file_offset, file_offset + length) */
	IBMR_MEM_ALL, /* the whole address space: an implicit MR, on demand; length is not used */
	IBMR_MEM_SHARED, /* zeroed named memory that others may attach, as share_mode says */
	IBMR_MEM_ATTACH, /* all of the shared memory attach; to be written with local_write only */
};

enum ibmr_file_flags {
	IBMR_FILE_SHARED = 1u << 0, /* writes reach the file; else a private copy */
	IBMR_FILE_CREATE = 1u << 1, /* make it, or lengthen it, to hold the range (needs SHARED) */
	IBMR_FILE_OPEN = 1u << 2,   /* it is open as fd; path is for messages only */
};

struct ibmr_mr_spec {
	const char *name; /* for messages; NULL: the key is used */
	enum ibmr_mem mem;
	void *addr;
	uint64_t length; /* IBMR_TO_END: to the end of the file */
	uint64_t access; /* IBMR_ACCESS_* */
	uint64_t huge_page_size;
	const char *path;
	uint64_t file_offset; /* any; need not be page aligned */
	unsigned file_flags;
	unsigned share_mode; /* of SHARED: as of a file, within 0666. It needs a name */
	const char *attach;  /* of ATTACH: what the maker's ibmr_mr_info says */
	int fd; /* with OPEN: the caller's, which may be closed afterwards; or -errno: opening failed */
};

/* Register memory. Errors: access (a flag the rules or the device refuse, by name), limit
 * (max_mr_size, both numbers), memlock, no_memory, bad_address (first bad page), unsupported
 * (ODP), io (file), key_table. Source: ibv_reg_mr(3). */
IBMR_EXPORT int ibmr_mr_reg(struct ibmr_ctx *ctx, const struct ibmr_mr_spec *spec,
			    struct ibmr_mr **ret_mr, struct ibmr_err *reterr);

/* Use the caller's ibv_mr as a member; it stays the caller's and must outlive the MR. access is
 * what it was registered with (libibverbs does not keep it). Its PD must be the ctx's. */
IBMR_EXPORT int ibmr_mr_from_ibv(struct ibmr_ctx *ctx, struct ibv_mr *mr, uint64_t access,
				 const char *name, struct ibmr_mr **ret_mr,
				 struct ibmr_err *reterr);

/* An empty indirect MR for at most max_klms entries or blocks (a repeat's header is on top and
 * asked for here). It has keys and cannot be used until filled. Errors: limit, unsupported,
 * key_table. Source: mlx5dv_create_mkey(3); seed: ibv_exp_create_mr. */
IBMR_EXPORT int ibmr_mr_create(struct ibmr_ctx *ctx, const char *name, uint64_t max_klms,
			       struct ibmr_mr **ret_mr, struct ibmr_err *reterr);

/* The same, for layouts that may take more than one key: with split in the layout too, a list that one
 * key cannot hold becomes a tree of keys within the device's depth, an entry longer than one carries is
 * divided, and a repeat that one key cannot hold is unrolled into the list of its pieces. max_klms is
 * of the layout's own entries, up to 67,108,864; pieces are as many at most. The keys of a tree go with
 * the layout: by a refill, invalidate, dereg. */
IBMR_EXPORT int ibmr_mr_create_split(struct ibmr_ctx *ctx, const char *name, uint64_t max_klms,
				     struct ibmr_mr **ret_mr, struct ibmr_err *reterr);

struct ibmr_klm {
	struct ibmr_mr *mr;
	uint64_t offset;
	uint64_t length;
};

struct ibmr_block {
	struct ibmr_mr *mr;
	uint64_t offset;
	uint64_t length;
	uint64_t stride; /* start to start; 0 and less than length are legal */
};

enum ibmr_layout_kind { IBMR_LAYOUT_LIST, IBMR_LAYOUT_REPEAT };

struct ibmr_layout {
	enum ibmr_layout_kind kind;
	uint64_t access; /* within IBMR_ACCESS_FILL */
	uint64_t base;	 /* address of byte 0 through the keys */
	uint64_t count;	 /* repeat: cycles */
	uint64_t num;	 /* entries in klms or blocks */
	bool split;	 /* may take more keys and entries than one, of an MR created so */
	union {
		const struct ibmr_klm *klms;
		const struct ibmr_block *blocks;
	};
};

/* Give the MR a layout, in place of any it had; its keys stay. On failure the old layout is in
 * force, but after timeout, completion or interrupted: then the state is UNKNOWN.
 * reterr->index names the entry. */
IBMR_EXPORT int ibmr_mr_fill(struct ibmr_mr *mr, const struct ibmr_layout *layout,
			     struct ibmr_err *reterr);

/* Take layout and rights away; the keys stay. -EBUSY in_use while a filled MR points at it. */
IBMR_EXPORT int ibmr_mr_invalidate(struct ibmr_mr *mr, struct ibmr_err *reterr);

/* Deregister and free; the MR is gone on success only. -EBUSY in_use while a filled indirect MR
 * points at it (users named). NULL is fine. */
IBMR_EXPORT int ibmr_mr_dereg(struct ibmr_mr *mr, struct ibmr_err *reterr);

enum ibmr_state {
	IBMR_STATE_REGISTERED, /* direct */
	IBMR_STATE_EMPTY,      /* indirect, never filled */
	IBMR_STATE_FILLED,
	IBMR_STATE_INVALIDATED,
	IBMR_STATE_UNKNOWN, /* a fill or invalidate did not complete: refill, invalidate or dereg */
};

enum ibmr_form { IBMR_FORM_NONE, IBMR_FORM_INLINE, IBMR_FORM_LIST_MEMORY, IBMR_FORM_TREE };

struct ibmr_mr_info {
	const char *name; /* valid while the MR is */
	bool indirect;
	enum ibmr_state state;
	uint32_t lkey, rkey;
	uint64_t base;	 /* address of byte 0 through the keys */
	uint64_t length; /* 0 when empty or invalidated */
	uint64_t access;
	bool implicit;	       /* the whole address space */
	bool on_demand;	       /* direct: registered so; indirect: some member under it is */
	bool relaxed_asked;    /* for relaxed_ordering: likewise */
	int relaxed_in_effect; /* 1 yes, 0 no, -1: libibverbs drops the flag unsaid on old kernels */
	uint64_t max_klms;     /* as asked; 0 for a direct MR */
	uint64_t
		entries; /* table entries in use, a repeat's header counted; of a tree, of all keys */
	enum ibmr_form form;
	uint32_t levels; /* of keys: 1 but for a tree; 0 without a layout and of a direct MR */
	uint64_t keys;	 /* device keys that an indirect MR uses: its own, and a tree's; else 0 */
	uint64_t locked_bytes; /* whole pages this MR locks; 0 when on demand or indirect */
	uint64_t users;	       /* filled indirect MRs that point at it, each counted once */
	const char *
		attach; /* the name of shared memory, "uid.name", valid while the MR is; else NULL */
	void *addr;	/* direct: its memory (NULL in a dry ctx); indirect: NULL */
};

/* Pages of an on-demand MR since it was made; -1: the device does not count them. */
struct ibmr_odp_counts {
	int64_t faults;	       /* mapped because something was missing */
	int64_t prefetched;    /* mapped on advice */
	int64_t invalidations; /* taken away again */
};
IBMR_EXPORT void ibmr_mr_odp_counts(const struct ibmr_mr *mr, struct ibmr_odp_counts *ret_counts);

IBMR_EXPORT void ibmr_mr_query(const struct ibmr_mr *mr, struct ibmr_mr_info *ret_info);

/* ---- translation -------------------------------------------------------- */

/* Bytes [at, at + length) of the MR asked about are [offset, offset + length) of the direct MR mr. */
struct ibmr_piece {
	uint64_t at;
	struct ibmr_mr *mr;
	uint64_t offset;
	uint64_t length;
};
/* Called for each piece, or place. It calls nothing of the library but ibmr_mr_query; a value other
 * than 0 ends the walk, and is what the call returns. */
typedef int ibmr_piece_fn(void *arg, const struct ibmr_piece *piece);
typedef int ibmr_place_fn(void *arg, uint64_t at);

/* Which bytes of which memory [offset, offset + length) of the MR is, in order and through all levels:
 * a piece for each entry and cycle. length: IBMR_TO_END allowed. Nothing is allocated, nothing asked of
 * the device. Errors: state, range. */
IBMR_EXPORT int ibmr_mr_translate(struct ibmr_mr *mr, uint64_t offset, uint64_t length,
				  ibmr_piece_fn *fn, void *arg, struct ibmr_err *reterr);

/* Every place at which byte offset of the MR of shows in mr, entry by entry; of may be direct, or an
 * indirect MR under mr. Errors: state, range, argument (another context's), timeout (many levels of many
 * places can be years of work). */
IBMR_EXPORT int ibmr_mr_locate(struct ibmr_mr *mr, struct ibmr_mr *of, uint64_t offset,
			       ibmr_place_fn *fn, void *arg, struct ibmr_err *reterr);

/* ---- prefetch ---------------------------------------------------------- */

enum ibmr_advice { IBMR_ADVICE_READ, IBMR_ADVICE_WRITE, IBMR_ADVICE_NO_FAULT };

struct ibmr_range {
	struct ibmr_mr *mr;
	uint64_t offset;
	uint64_t length; /* IBMR_TO_END allowed */
};

/* Pages of the system's page size; -1 where nothing trustworthy could count them. */
struct ibmr_pages {
	uint64_t offset, length; /* the range, with IBMR_TO_END resolved */
	uint64_t pages;		 /* pages it touches; of an indirect MR: of its members under it */
	int64_t cpu_resident_before, cpu_resident_after;
	int64_t device_mapped_before, device_mapped_after;
};

struct ibmr_prefetch_info {
	uint64_t bytes; /* asked for, over all ranges */
	uint64_t page_size;
	const char *source; /* "pagemap", "mincore", or NULL */
	struct ibmr_pages total;
};

/* Ask the device to fault pages in; a hint, so that it ignored the advice is success. flush waits
 * for the work. ret_pages: num elements, or NULL. Errors: range (outside the MR, found before the
 * driver is asked), not_on_demand, access (WRITE without local_write), unsupported, bad_address.
 * Source: ibv_advise_mr(3); seed: ibv_exp_prefetch_mr. */
IBMR_EXPORT int ibmr_mr_prefetch(struct ibmr_ctx *ctx, const struct ibmr_range *ranges,
				 uint64_t num, enum ibmr_advice advice, bool flush,
				 struct ibmr_pages *ret_pages, struct ibmr_prefetch_info *ret_info,
				 struct ibmr_err *reterr);

/* ---- data, through the MR's rkey over an RC loopback ------------------- */

enum ibmr_io_flags {
	IBMR_IO_UNCHECKED = 1u << 0, /* post without asking our records: see the device's refusal */
};

/* Errors: state, range, access (found in our records, before anything is posted); unsupported (no RC
 * loopback); completion (the queue pair is brought back first); timeout. A failed call may have
 * moved part of the bytes. length 0 is refused (argument). */
IBMR_EXPORT int ibmr_mr_write(struct ibmr_mr *mr, uint64_t offset, const void *src, uint64_t length,
			      unsigned io_flags, struct ibmr_err *reterr);
IBMR_EXPORT int ibmr_mr_read(struct ibmr_mr *mr, uint64_t offset, void *dst, uint64_t length,
			     unsigned io_flags, struct ibmr_err *reterr);

/* Move bytes from MR to MR, past no memory of the library's: the device takes them by the lkey of from,
 * which every MR allows, and puts them by the rkey of to, which needs remote_write. Ranges of one MR,
 * or of two direct ones, may share bytes: what arrives is what was there before. Those bytes go
 * through staging memory, and from needs remote_read. What layouts of different MRs share is not
 * looked for: there, what arrives is not stated. */
IBMR_EXPORT int ibmr_mr_copy(struct ibmr_mr *to, uint64_t to_offset, struct ibmr_mr *from,
			     uint64_t from_offset, uint64_t length, unsigned io_flags,
			     struct ibmr_err *reterr);

/* 64-bit atomics on host-order values; *ret_old is what was there. The bytes must be 8-aligned by
 * their address through the key and in the memory they land on, and within one entry; else range. */
IBMR_EXPORT int ibmr_mr_fetch_add(struct ibmr_mr *mr, uint64_t offset, uint64_t add,
				  uint64_t *ret_old, unsigned io_flags, struct ibmr_err *reterr);
IBMR_EXPORT int ibmr_mr_compare_swap(struct ibmr_mr *mr, uint64_t offset, uint64_t compare,
				     uint64_t swap, uint64_t *ret_old, unsigned io_flags,
				     struct ibmr_err *reterr);

#ifdef __cplusplus
}
#endif

#endif /* IBMR_H */
