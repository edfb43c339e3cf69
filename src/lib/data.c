/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes and atomics through an MR's rkey, and from MR to MR. */
#include "private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define COPY_MOST (1u << 30) /* bytes of one message, whatever the port says */

/* One request, as the public calls have it. */
struct io {
	const char *origin;
	const char *doing;
	struct ibmr_mr *mr;
	uint64_t offset;
	uint64_t length;
	uint64_t right; /* the access it needs; 0: local reading, which is always on */
	unsigned flags;
};

/* ---- what the records say -------------------------------------------------------- */

static int check_range(const struct io *io, struct ibmr_err *err)
{
	const struct ibmr_mr *mr = io->mr;

	if (ibmri_within(io->offset, io->length, mr->length))
		return 0;
	if (io->offset > UINT64_MAX - io->length)
		return ibmri_refuse(err, IBMR_E_RANGE, io->origin,
				    "offset %" PRIu64 " plus length %" PRIu64 " wraps past 2^64",
				    io->offset, io->length);
	return ibmri_refuse(err, IBMR_E_RANGE, io->origin,
			    "bytes [%" PRIu64 ", %" PRIu64 ") are past the end of '%s' (%" PRIu64
			    " bytes)",
			    io->offset, io->offset + io->length, mr->name, mr->length);
}

static int check_right(const struct io *io, struct ibmr_err *err)
{
	const char *word = ibmr_access_name(io->right);
	int ret;

	if (!io->right || io->mr->access & io->right)
		return 0;
	ret = ibmri_refuse(err, IBMR_E_ACCESS, io->origin, "'%s' lacks %s", io->mr->name, word);
	ibmri_err_cause(err, "lacks_right");
	ibmri_err_hint(err, "%s '%s' with %s", io->mr->indirect ? "fill" : "register", io->mr->name,
		       word);
	return ret;
}

/* An atomic must be aligned on the wire (the responder refuses other addresses), and land whole and
 * aligned in one place. */
static int check_atomic(const struct io *io, struct ibmr_err *err)
{
	struct ibmri_piece at = { .mr = io->mr, .offset = io->offset, .length = 8 };
	struct ibmri_walk w;
	int ret;

	if ((io->mr->base + io->offset) % 8) {
		ret = ibmri_refuse(err, IBMR_E_RANGE, io->origin,
				   "offset %" PRIu64 " of '%s' has the address 0x%" PRIx64
				   ", which is not 8-aligned",
				   io->offset, io->mr->name, io->mr->base + io->offset);
		ibmri_err_cause(err, "atomic_alignment");
		return ret;
	}
	while (at.mr->indirect) {
		const struct ibmr_mr *through = at.mr;

		ibmri_walk_start(&w, &through->layout, at.offset, 8);
		if (ibmri_walk_next(&w, &at) && at.length == 8)
			continue;
		ret = ibmri_refuse(err, IBMR_E_RANGE, io->origin,
				   "the 8 bytes at offset %" PRIu64
				   " of '%s' are not within one entry of "
				   "'%s'",
				   io->offset, io->mr->name, through->name);
		ibmri_err_cause(err, "atomic_split");
		return ret;
	}
	if (!((at.mr->base + at.offset) % 8))
		return 0;
	ret = ibmri_refuse(err, IBMR_E_RANGE, io->origin,
			   "the 8 bytes at offset %" PRIu64 " of '%s' land at offset %" PRIu64
			   " of '%s', address 0x%" PRIx64 ", which is not 8-aligned",
			   io->offset, io->mr->name, at.offset, at.mr->name,
			   at.mr->base + at.offset);
	ibmri_err_cause(err, "atomic_alignment");
	return ret;
}

static int check_records(const struct io *io, struct ibmr_err *err)
{
	int ret = ibmri_usable(io->mr, io->origin, err);

	if (!ret)
		ret = check_range(io, err);
	if (!ret)
		ret = check_right(io, err);
	if (!ret && io->right == IBMR_ACCESS_REMOTE_ATOMIC)
		ret = check_atomic(io, err);
	return ret;
}

static int check(const struct io *io, struct ibmr_err *err)
{
	const struct ibmr_ctx *ctx = io->mr->ctx;
	int ret;

	if (io->flags & ~(unsigned)IBMR_IO_UNCHECKED)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, io->origin, "flags 0x%x are not known",
				    io->flags);
	if (!io->length)
		return ibmri_refuse(err, IBMR_E_ARGUMENT, io->origin, "length is 0");
	if (io->right == IBMR_ACCESS_REMOTE_ATOMIC && !ctx->caps.atomics) {
		ret = ibmri_refuse(err, IBMR_E_UNSUPPORTED, io->origin, "device %s has no atomics",
				   ctx->caps.name);
		ibmri_err_cause(err, "atomics");
		return ret;
	}
	return io->flags & IBMR_IO_UNCHECKED ? 0 : check_records(io, err);
}

/* In a dry ctx: what a device would make of a request that was not checked. */
static int foretell(const struct io *io, struct ibmr_err *err)
{
	enum ibv_wc_status status = io->right ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR;
	struct ibmr_err why;
	int ret;

	if (!(io->flags & IBMR_IO_UNCHECKED) || !check_records(io, &why))
		return 0;
	if (why.cause && !strncmp(why.cause, "atomic_", 7))
		status = IBV_WC_REM_INV_REQ_ERR;
	ret = ibmri_refuse(err, IBMR_E_COMPLETION, io->origin,
			   "%s '%s': a device answers with %s (status %d)", io->doing, io->mr->name,
			   ibv_wc_status_str(status), (int)status);
	if (err)
		err->status = (int)status;
	return ret;
}

/* ---- moving ------------------------------------------------------------------------ */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The queue pair and the staging memory, ready for up to *ret_chunk bytes at a time. */
static int make_ready(const struct ibmri_call *c, uint64_t length, uint64_t *ret_chunk,
		      struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = c->ctx;
	uint64_t staged = least(length, IBMRI_STAGING_BYTES);
	int ret;

	*ret_chunk = staged;
	if (!ctx->dry) {
		ret = ibmri_queue_need(c, err);
		if (ret)
			return ret;
		*ret_chunk = least(staged, ibmri_queue_max_msg(ctx));
	}
	return ibmri_pool_need(ctx, &ctx->staging, staged, "the library's staging memory", err);
}

/* to_mr: from src to the MR; else from the MR to dst. */
static int move(const struct io *io, const uint8_t *src, uint8_t *dst, struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = io->mr->ctx;
	uint64_t done, chunk;
	struct ibmri_call c;
	int ret;

	ret = check(io, err);
	if (ret)
		return ret;
	ibmri_call_start(&c, ctx, io->origin, io->doing, io->mr);
	ret = make_ready(&c, io->length, &chunk, err);
	if (ret)
		return ret;
	if (ctx->dry)
		return foretell(io, err);
	for (done = 0; done < io->length; done += chunk) {
		struct ibmri_rdma r = { .opcode = src ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
					.local = (uintptr_t)ctx->staging.buf,
					.lkey = ctx->staging.mr->lkey,
					.remote = io->mr->base + io->offset + done,
					.rkey = io->mr->rkey };

		chunk = least(chunk, io->length - done);
		r.length = (uint32_t)chunk;
		if (src)
			memcpy(ctx->staging.buf, src + done, chunk);
		ret = ibmri_queue_rdma(&c, &r, err);
		if (ret)
			return ret;
		if (dst)
			memcpy(dst + done, ctx->staging.buf, chunk);
	}
	return 0;
}

int ibmr_mr_write(struct ibmr_mr *mr, uint64_t offset, const void *src, uint64_t length,
		  unsigned io_flags, struct ibmr_err *reterr)
{
	struct io io = { "ibmr_mr_write",	   "writing", mr, offset, length,
			 IBMR_ACCESS_REMOTE_WRITE, io_flags };

	if (!src)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, io.origin, "no bytes are given");
	return move(&io, src, NULL, reterr);
}

int ibmr_mr_read(struct ibmr_mr *mr, uint64_t offset, void *dst, uint64_t length, unsigned io_flags,
		 struct ibmr_err *reterr)
{
	struct io io = { "ibmr_mr_read",	  "reading", mr, offset, length,
			 IBMR_ACCESS_REMOTE_READ, io_flags };

	if (!dst)
		return ibmri_refuse(reterr, IBMR_E_ARGUMENT, io.origin,
				    "no place for the bytes is given");
	return move(&io, NULL, dst, reterr);
}

/* ---- from MR to MR ------------------------------------------------------------------- */

/* As far as one MR's offsets, or addresses of registered memory, tell. */
static bool share_bytes(const struct io *to, const struct io *from)
{
	uint64_t dst = to->mr->base + to->offset, src = from->mr->base + from->offset;

	if (to->mr != from->mr && (to->mr->indirect || from->mr->indirect || to->mr->ctx->dry))
		return false;
	return dst - src < to->length || src - dst < to->length;
}

/* The device takes the bytes by the one's lkey and puts them by the other's rkey. */
static int copy_apart(const struct ibmri_call *c, const struct io *to, const struct io *from,
		      struct ibmr_err *err)
{
	uint64_t most = least(ibmri_queue_max_msg(c->ctx), COPY_MOST);
	uint64_t done, num;
	int ret = 0;

	for (done = 0; !ret && done < to->length; done += num) {
		struct ibmri_rdma r = { .opcode = IBV_WR_RDMA_WRITE,
					.local = from->mr->base + from->offset + done,
					.lkey = from->mr->lkey,
					.remote = to->mr->base + to->offset + done,
					.rkey = to->mr->rkey };

		num = least(most, to->length - done);
		r.length = (uint32_t)num;
		ret = ibmri_queue_rdma(c, &r, err);
	}
	return ret;
}

/* Bytes of both sides: through staging memory, from the end that no later part still needs. */
static int copy_shared(const struct ibmri_call *c, const struct io *to, const struct io *from,
		       struct ibmr_err *err)
{
	const struct ibmri_pool *staging = &c->ctx->staging;
	bool backwards = to->mr->base + to->offset > from->mr->base + from->offset;
	uint64_t done, num, most, at;
	int ret;

	ret = make_ready(c, to->length, &most, err);
	for (done = 0; !ret && done < to->length; done += num) {
		struct ibmri_rdma r = { .opcode = IBV_WR_RDMA_READ,
					.local = (uintptr_t)staging->buf,
					.rkey = from->mr->rkey };

		num = least(most, to->length - done);
		at = backwards ? to->length - done - num : done;
		r.lkey = staging->mr->lkey;
		r.length = (uint32_t)num;
		r.remote = from->mr->base + from->offset + at;
		ret = ibmri_queue_rdma(c, &r, err);
		if (ret)
			return ret;
		r.opcode = IBV_WR_RDMA_WRITE;
		r.remote = to->mr->base + to->offset + at;
		r.rkey = to->mr->rkey;
		ret = ibmri_queue_rdma(c, &r, err);
	}
	return ret;
}

int ibmr_mr_copy(struct ibmr_mr *to, uint64_t to_offset, struct ibmr_mr *from, uint64_t from_offset,
		 uint64_t length, unsigned io_flags, struct ibmr_err *reterr)
{
	struct io dst = { "ibmr_mr_copy",	    "copying to", to, to_offset, length,
			  IBMR_ACCESS_REMOTE_WRITE, io_flags };
	struct io src = { "ibmr_mr_copy", "copying from", from, from_offset, length, 0, io_flags };
	struct ibmri_call c;
	bool shared;
	int ret;

	if (to->ctx != from->ctx) {
		ret = ibmri_refuse(reterr, IBMR_E_ARGUMENT, dst.origin,
				   "'%s' belongs to another protection domain than '%s'",
				   from->name, to->name);
		ibmri_err_cause(reterr, "other_context");
		return ret;
	}
	shared = share_bytes(&dst, &src);
	if (shared)
		src.right = IBMR_ACCESS_REMOTE_READ;
	ret = check(&src, reterr);
	if (!ret)
		ret = check(&dst, reterr);
	if (ret)
		return ret;
	if (to->ctx->dry) {
		ret = foretell(&src, reterr);
		return ret ? ret : foretell(&dst, reterr);
	}
	ibmri_call_start(&c, to->ctx, dst.origin, dst.doing, to);
	ret = ibmri_queue_need(&c, reterr);
	if (ret)
		return ret;
	return shared ? copy_shared(&c, &dst, &src, reterr) : copy_apart(&c, &dst, &src, reterr);
}

/* ---- atomics ------------------------------------------------------------------------- */

static int atomic(const struct io *io, struct ibmri_rdma *r, uint64_t *ret_old,
		  struct ibmr_err *err)
{
	struct ibmr_ctx *ctx = io->mr->ctx;
	struct ibmri_call c;
	uint64_t chunk;
	int ret;

	ret = check(io, err);
	if (ret)
		return ret;
	ibmri_call_start(&c, ctx, io->origin, io->doing, io->mr);
	ret = make_ready(&c, 8, &chunk, err);
	if (ret)
		return ret;
	if (ctx->dry) {
		ret = foretell(io, err);
		if (!ret)
			*ret_old = 0;
		return ret;
	}
	r->local = (uintptr_t)ctx->staging.buf;
	r->lkey = ctx->staging.mr->lkey;
	r->length = 8;
	r->remote = io->mr->base + io->offset;
	r->rkey = io->mr->rkey;
	ret = ibmri_queue_rdma(&c, r, err);
	if (ret)
		return ret;
	memcpy(ret_old, ctx->staging.buf, 8);
	return 0;
}

int ibmr_mr_fetch_add(struct ibmr_mr *mr, uint64_t offset, uint64_t add, uint64_t *ret_old,
		      unsigned io_flags, struct ibmr_err *reterr)
{
	struct io io = { "ibmr_mr_fetch_add",	    "adding in", mr, offset, 8,
			 IBMR_ACCESS_REMOTE_ATOMIC, io_flags };
	struct ibmri_rdma r = { .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .compare_add = add };

	return atomic(&io, &r, ret_old, reterr);
}

int ibmr_mr_compare_swap(struct ibmr_mr *mr, uint64_t offset, uint64_t compare, uint64_t swap,
			 uint64_t *ret_old, unsigned io_flags, struct ibmr_err *reterr)
{
	struct io io = { "ibmr_mr_compare_swap",    "swapping in", mr, offset, 8,
			 IBMR_ACCESS_REMOTE_ATOMIC, io_flags };
	struct ibmri_rdma r = { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				.compare_add = compare,
				.swap = swap };

	return atomic(&io, &r, ret_old, reterr);
}
