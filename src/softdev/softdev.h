/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softdev, inside: the objects of the software mlx5 device and the seams between its files.
 *
 *   preload.c    libc symbols that lead a verbs program here
 *   sysfs.c files.c  the paths and the descriptors that are soft0's
 *   uverbs.c     one ioctl -> attributes -> a command
 *   methods.c    the table of the commands and their attributes
 *   hca.c        the device: contexts, handle tables, PDs, UARs, AHs
 *   caps.c       what it says of itself: device, port, GID and DEVX capabilities
 *   devx.c       general PRM commands and the objects they make
 *   event.c      completion channels and asynchronous events
 *   config.c counters.c  soft0.h: modes, limits, planned failures, counters
 *   mr.c odp.c   ordinary and on-demand MRs; page state and advice
 *   copy.c       bytes between places of the process, without a signal
 *   fault.c      the guard under which it may fault
 *   process.c    the process's number and the thread's stack
 *   mkey.c       every key; translation, bounds, rights, nesting
 *   qp.c cq.c srq.c   queue objects and their commands
 *   wqe.c umr.c  what a work request does
 *   engine.c     when work requests run: doorbells, modes, fences
 *
 * Lock: one, sd_lock, held by every command and by the engine. Nothing here calls a libc function
 * that preload.c interposes: pass-through is by raw system call.
 */
#ifndef SOFTDEV_H
#define SOFTDEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <infiniband/verbs.h>
#include <infiniband/mlx5dv.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/mlx5-abi.h>

/* ---- objects ----------------------------------------------------------- */

enum sd_type {
	SD_NONE,
	SD_PD,
	SD_MR,
	SD_DEVX,
	SD_CQ,
	SD_QP,
	SD_SRQ,
	SD_AH,
	SD_MW,
	SD_UAR,
	SD_CHANNEL,  /* a file descriptor: completion channel */
	SD_ASYNC_FD, /* a file descriptor: asynchronous events */
	SD_XRCD,
	SD_TYPE_MAX
};

struct sd_ctx;
struct sd_channel;

/* The head of every object: its handle in one context's table, and how many others rest on it.
 * An object that holds another counts itself in that one's users, and lets go in its free. */
struct sd_obj {
	enum sd_type type;
	uint32_t handle;
	uint32_t users; /* destroy is EBUSY while > 0 */
	struct sd_ctx *ctx;
	uint64_t user_handle;
	struct sd_channel *async; /* where its asynchronous events go; NULL: the context's first */
	uint32_t events, comp_events; /* how many were sent */
};

struct sd_pd {
	struct sd_obj obj;
	uint32_t pdn;
};

/* Which pages of an on-demand MR the device has mapped (odp.c). */
struct sd_pages;

/* With split_keys an ordinary MR has two keys; each is good on its own side of the wire only. */
enum sd_side { SD_BOTH_SIDES, SD_LOCAL_SIDE, SD_REMOTE_SIDE };

enum sd_mkey_kind { SD_MKEY_MR, SD_MKEY_IMPLICIT, SD_MKEY_KLM };

/* What an indirect key's table says (mkey.h). */
struct sd_layout;

/* A memory key: what a work request's lkey or rkey leads to. */
struct sd_mkey {
	uint32_t key; /* index << 8 | tag */
	enum sd_mkey_kind kind;
	bool free; /* not usable: never filled, or invalidated */
	bool umr_en;
	uint32_t pdn;
	uint32_t access; /* IBV_ACCESS_* ; local read is always on */
	uint64_t start, length;
	/* SD_MKEY_MR, and SD_MKEY_IMPLICIT with start 0, va NULL and the length of the address space */
	uint8_t *va; /* process address of start */
	enum sd_side side;
	bool on_demand;
	struct sd_pages *pages; /* the MR's, not the key's: both of its keys have the same */
	/* SD_MKEY_KLM */
	uint32_t octowords; /* the table's size */
	struct sd_layout *layout;
	struct sd_staged *staged; /* the newest UMR that is not seen yet (strict mode) */
	uint64_t walk;		  /* the last walk through keys that came by */
};

/* ---- attributes of one ioctl (uverbs.c) --------------------------------- */

struct sd_attrs; /* parsed, checked for size and duplicates */

/* Pointers are valid for the command; NULL when the attribute is absent. */
const void *sd_attr_in(const struct sd_attrs *a, uint16_t id, uint32_t *ret_len);
/* A fixed-size scalar or struct copied out; false when absent; longer input must be zero beyond. */
bool sd_attr_get(const struct sd_attrs *a, uint16_t id, void *dst, uint32_t size);
/* The object an attribute names. Handles and types were checked before the command runs, so NULL
 * says only that an optional attribute is absent. Objects are checked for, never counted. */
void *sd_attr_obj(const struct sd_attrs *a, uint16_t id);
/* Copy out as much as the caller has room for. 0 when the attribute is absent, -EFAULT. */
int sd_attr_put(const struct sd_attrs *a, uint16_t id, const void *src, uint32_t size);
/* Return a new object's handle or fd in the attribute itself. */
int sd_attr_put_handle(const struct sd_attrs *a, uint16_t id, uint32_t handle);

/* 0 or a negative errno. A create that fails after sd_obj_add frees what it made. */
typedef int sd_command_fn(struct sd_ctx *ctx, const struct sd_attrs *a);

/* The old write() commands arrive in an envelope: core in/out and driver in/out. Inputs are copies,
 * outputs are the process's addresses: written by sd_write_out and sd_write_uhw only. */
struct sd_write {
	const void *in;
	uint32_t in_len;
	void *out;
	uint32_t out_len;
	const void *uhw_in;
	uint32_t uhw_in_len;
	void *uhw_out;
	uint32_t uhw_out_len;
};
typedef int sd_write_fn(struct sd_ctx *ctx, struct sd_write *w);
/* Copy a response, cut to the caller's room. */
int sd_write_out(struct sd_write *w, const void *resp, uint32_t size);
int sd_write_uhw(struct sd_write *w, const void *resp, uint32_t size);

/* The commands of the queue files; uverbs.c has their attributes' ids, sizes and types. A destroy is
 * called with users == 0 only. */
sd_command_fn sd_cmd_cq_create, sd_cmd_cq_destroy;   /* cq.c */
sd_command_fn sd_cmd_qp_create, sd_cmd_qp_destroy;   /* qp.c */
sd_command_fn sd_cmd_srq_create, sd_cmd_srq_destroy; /* srq.c */
sd_write_fn sd_wr_modify_cq, sd_wr_resize_cq;	     /* modify_cq is the extended command */
sd_write_fn sd_wr_modify_qp, sd_wr_query_qp;	     /* modify_qp: plain and extended, by in_len */
sd_write_fn sd_wr_attach_mcast, sd_wr_detach_mcast;
sd_write_fn sd_wr_modify_srq, sd_wr_query_srq;

/* ---- copies to and from the process -------------------------------------------- */

/* A bad pointer is -EFAULT, never a signal. */
int sd_user_read(void *dst, const void *src, size_t size);
int sd_user_write(void *dst, const void *src, size_t size);

/* ---- the device (hca.c) -------------------------------------------------- */

void sd_lock(void);
void sd_unlock(void);
/* Does this thread hold it? Its malloc may be somebody's who releases spin locks. */
bool sd_lock_is_mine(void);

/* The device is pulled out: every context loses all its objects and is told, and from now on each of
 * its commands fails with EIO. Nothing opens it before it has returned. */
void sd_device_remove(void);
void sd_device_return(void);

/* Add an object to its context's table. -ENOMEM. */
int sd_obj_add(struct sd_ctx *ctx, struct sd_obj *obj, enum sd_type type);
void *sd_obj_find(struct sd_ctx *ctx, enum sd_type type, uint32_t handle); /* NULL: none */
void sd_obj_remove(struct sd_obj *obj);

/* What the end of a context calls for each object that is left, users first: remove the object from
 * its table, let go of what it holds, free it. Destroy commands end in the same functions. */
void sd_cq_free(struct sd_obj *obj);
void sd_qp_free(struct sd_obj *obj);
void sd_srq_free(struct sd_obj *obj);

/* Is pdn one of this context's PDs? */
bool sd_pd_exists(struct sd_ctx *ctx, uint32_t pdn);

/* Is that address one of the device's own? The only wire is the loopback. */
bool sd_addr_is_ours(const struct ib_uverbs_qp_dest *dest);
void sd_own_gid(uint8_t *ret_gid); /* 16 bytes */

/* ---- events (event.c) ------------------------------------------------------ */

/* An asynchronous event of obj. */
void sd_event(struct sd_obj *obj, enum ibv_event_type type);
/* The same of the device, to everyone who listens in this context. */
void sd_event_device(struct sd_ctx *ctx, enum ibv_event_type type);
/* A completion event of a CQ. */
void sd_channel_event(struct sd_channel *ch, struct sd_obj *cq);
/* For destroy: forget the events of obj that the process has not read; how many it has read. */
uint32_t sd_event_close(struct sd_obj *obj);
uint32_t sd_channel_close(struct sd_channel *ch, struct sd_obj *cq);
/* A completion channel as an object, to be counted in its users. */
struct sd_obj *sd_channel_obj(struct sd_channel *ch);

/* ---- keys (mkey.c) -------------------------------------------------------- */

/* The key of ibv_alloc_null_mr (the driver's dump_fill_mkey): good in every PD, in every context, reads
 * as zeros and swallows writes. sd_translate knows it; it is never handed out. */
#define SD_NULL_KEY 0xfffffe00u

/* Hand out a key; indices come from one device-wide table and are reused. Never 0x00000400, the
 * repeat mark on the wire. -ENOMEM, -EAGAIN when the table is full (soft0.h max_keys). */
int sd_mkey_alloc(struct sd_mkey **ret_mkey);
void sd_mkey_free(struct sd_mkey *mkey); /* drops the layout too */
struct sd_mkey *sd_mkey_find(uint32_t key);

/* PRM CREATE_MKEY of an indirect key. out is the PRM answer (status, syndrome, index), written also
 * on failure. 0, or the errno the kernel gives (-EREMOTEIO for a status that is not OK). The key's
 * object is devx.c's, which calls sd_mkey_free at its end. */
int sd_devx_create_mkey(struct sd_ctx *ctx, const uint8_t *in, uint32_t in_len, uint8_t *out,
			uint32_t out_len, struct sd_mkey **ret_mkey);

/* One piece of process memory that a key's bytes live in. */
struct sd_piece {
	uint8_t *va;
	uint64_t bytes;
};

/* In the place of an address, where no memory is: the null MR. Aligned, as its bytes are. */
#define SD_NULL_VA ((uint8_t *)(UINTPTR_MAX - 7))

struct sd_pieces {
	struct sd_piece *at;
	size_t num, room;
	uint64_t bytes; /* of all pieces */
};

/* Append the pieces of [addr, addr + len) through key, in order, until there is no more room. pdn and
 * the needed rights are checked at every level. 0, or a negative mlx5 syndrome class:
 *   -EACCES rights, -EFAULT bounds, -ENOENT no such key or a free one, -EPERM another PD,
 *   -ELOOP deeper than the device follows, SD_HOLE (span.h) a fault that cannot be served. */
int sd_translate(struct sd_pieces *out, uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len,
		 uint32_t access);
/* The same answers for the whole range, with its on-demand pages faulted in, and no pieces. */
int sd_translate_check(uint32_t key, uint32_t pdn, uint64_t addr, uint64_t len, uint32_t access);

/* ---- pages (odp.c) --------------------------------------------------------- */

struct sd_pages *sd_pages_new(void);
void sd_pages_free(struct sd_pages *p);
/* The device touches memory: fault in what is not mapped. -EFAULT at a hole or a missing right. */
int sd_odp_access(struct sd_mkey *leaf, uint8_t *va, uint64_t bytes, bool write);
/* The process unmapped or dropped [va, va + bytes): forget it in every on-demand MR. */
void sd_odp_invalidate(const void *va, size_t bytes);

/* ---- moving bytes (copy.c) -------------------------------------------------- */

/* Between piece lists, as far as both reach; a fault in the process's memory is -EFAULT, never a
 * signal. guarded: by plain loads and stores, which sd_guard_ready (fault.h) has allowed in this thread
 * and not long ago. */
int sd_copy(const struct sd_pieces *dst, const struct sd_pieces *src, bool guarded);

/* ---- queues and work (engine.c) ---------------------------------------------- */

/* A lock of libmlx5 was released: look at doorbells. Called by preload.c after the real unlock. */
void sd_engine_kick(void);
/* The process is about to block on an fd of ours, or polls: let what is due complete. */
void sd_engine_idle(void);

/* The modes, hold or delay changed: see what can go on. Called with sd_lock held. */
void sd_engine_update(void);
/* In a child of fork, with sd_lock held: the rings are the parent's, and may not even be mapped. */
void sd_engine_forked(void);
/* A key dies: drop what is staged for it. */
void sd_engine_forget_mkey(struct sd_mkey *mkey);

/* ---- configuration (config.c) -------------------------------------------------- */

enum sd_mode { SD_SYNC, SD_ASYNC, SD_STRICT };

struct sd_config {
	enum sd_mode mode;
	bool hold;
	uint32_t delay_us;
	bool odp, implicit, atomics, advise, umr, devx;
	uint64_t max_mr_size;
	uint32_t max_klms, max_depth, max_msg_sz, max_keys;
	bool split_keys;
	bool memlock;
	uint32_t first_key;
	bool break_wrong_byte, break_off_by_one, break_stale_layout, break_no_rights,
		break_lost_completion, break_scatter_cqe;
};
extern struct sd_config sd_config;

/* Count the command; a negative errno when it is planned to fail. The objects that it named are gone
 * after -EIO, which may be the end of the device. */
int sd_config_command(const char *kind);
/* The next work request's planned syndrome, 0 for none. */
uint8_t sd_config_wqe(void);
/* Add to a counter by name ("wqe.umr"); names are string literals. */
void sd_count(const char *name, uint64_t n);

#endif /* SOFTDEV_H */
