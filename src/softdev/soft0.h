/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * soft0's test interface: what a test may ask of the software mlx5 device.
 *
 * From C, by linking the softdev library; from a shell, by the environment
 * variable IBMR_SOFT0, a comma separated list of the same words, read once when
 * the library is loaded:
 *
 *   IBMR_SOFT0=mode=async,fail=reg_mr:3:ENOMEM,odp=0,max_klms=64 ibmr run ...
 *
 * A word that is not known, or a value out of its range, stops the program with
 * one line on stderr and status 2: a test that asks for what does not exist must
 * not pass. Without IBMR_SOFT0 soft0 prints nothing, ever.
 */
#ifndef SOFT0_H
#define SOFT0_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SOFT0_EXPORT __attribute__((visibility("default")))

/* The device's name, and a mark that softdev is in this process (ibmr asks by a weak reference). */
SOFT0_EXPORT const char *soft0_name(void);

/* Set one word as in IBMR_SOFT0, e.g. soft0_set("mode", "strict"). 0, or -EINVAL. In force at once,
 * for every open device of the process. The words:
 *
 *   mode=sync|async|strict   when work requests run: inside the doorbell; on a thread of their own;
 *                            or inside the doorbell with an unfenced UMR not yet seen by what follows
 *   fail=KIND:N[:ERRNO]      the N-th command (1 = next) of KIND fails once with ERRNO (default
 *                            ENOMEM, "EAGAIN" style names). KIND is a name of soft0_commands(), or
 *                            "any". May be given several times.
 *   gone=KIND:N              the N-th command of KIND finds the device pulled out: from then on every
 *                            command of every context fails with EIO, each has the asynchronous
 *                            event DEVICE_FATAL, and nothing opens the device
 *   fail_wqe=N[:SYNDROME]    the N-th work request completes in error (default 0x04, local protection)
 *   hold=1|0                 completions are kept back; hold=0 releases them in order
 *   delay=USEC               completions appear that much later (needs mode=async)
 *   odp=0|1 implicit=0|1 atomics=0|1 advise=0|1 umr=0|1 devx=0|1     capabilities taken away
 *   max_mr_size=N max_klms=N max_depth=N max_msg_sz=N max_keys=N     limits (max_keys: mkeys in all)
 *   split_keys=1             ordinary MRs get an rkey that is not their lkey
 *   first_key=N              the first key index handed out (0 gives key 0x0)
 *   memlock=1                RLIMIT_MEMLOCK is enforced as a kernel would, without CAP_IPC_LOCK
 *   counters=FILE            at exit, write every counter to FILE, one "name value" a line
 *   break=WORD               a defect, to test the tests: wrong_byte, off_by_one, stale_layout,
 *                            no_rights, lost_completion, scatter_cqe
 */
SOFT0_EXPORT int soft0_set(const char *word, const char *value);

/* Back to the defaults (not to IBMR_SOFT0's), counters to 0. */
SOFT0_EXPORT void soft0_reset(void);

/* Counters: commands by kind ("cmd.reg_mr"), work requests by opcode ("wqe.umr", "wqe.rdma_write"),
 * completions ("cqe", "cqe.error"), bytes ("bytes.moved"; of them by plain loads and stores and no
 * system call: "bytes.guarded"), live objects ("live.mr", "live.mkey", "live.qp", "live.cq",
 * "live.srq", "live.pd", "live.ah", "live.uar", "live.devx", "live.context"), pages of on-demand MRs
 * ("odp.faults", "odp.prefetched": mapped by an access or by advice; "odp.invalidations"),
 * "pinned_bytes". -ENOENT for an unknown name, with *ret_value untouched. */
SOFT0_EXPORT int soft0_counter(const char *name, uint64_t *ret_value);

/* Names of command kinds for fail=, NULL terminated. */
SOFT0_EXPORT const char *const *soft0_commands(void);

/* The last UMR work request that any queue carried: its bytes from the control segment on, unwrapped,
 * for tests that compare encodings. Returns its size in bytes, 0 when there was none. */
SOFT0_EXPORT uint32_t soft0_last_umr(void *buf, uint32_t size);

#ifdef __cplusplus
}
#endif

#endif /* SOFT0_H */
