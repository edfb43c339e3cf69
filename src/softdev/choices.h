/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What softdev chose where no public document says what a ConnectX does. Each is a guess that a run
 * on silicon may correct; nothing else in the source repeats them.
 */
#ifndef SOFTDEV_CHOICES_H
#define SOFTDEV_CHOICES_H

#include <infiniband/mlx5dv.h>

/* A refused UMR, whatever its defect. */
#define SD_CHOICE_UMR_SYNDROME MLX5_CQE_SYNDROME_MW_BIND_ERR

/* A work request that no table of opcodes knows, is too long for its ring or carries bad segments. */
#define SD_CHOICE_BAD_WQE_SYNDROME MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR

/* The requester's status when the responder's memory is not there (an unmapped on-demand page). */
#define SD_CHOICE_REMOTE_HOLE_SYNDROME MLX5_CQE_SYNDROME_REMOTE_OP_ERR

/* The same at the requester's own end. */
#define SD_CHOICE_LOCAL_HOLE_SYNDROME MLX5_CQE_SYNDROME_LOCAL_PROT_ERR

/* The requester's status when the responder's queue pair does not allow the operation at all
 * (qp_access_flags), and when an invalidation by send is refused. */
#define SD_CHOICE_QP_RIGHTS_SYNDROME  MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR
#define SD_CHOICE_SEND_INVAL_SYNDROME MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR

/* vendor_err by syndrome: the values that reports from the field show most often with each. */
#define SD_CHOICE_VENDOR_LOC_LEN     0xd6
#define SD_CHOICE_VENDOR_LOC_QP_OP   0x68
#define SD_CHOICE_VENDOR_LOC_PROT    0x51
#define SD_CHOICE_VENDOR_FLUSH	     0xf9
#define SD_CHOICE_VENDOR_MW_BIND     0x57
#define SD_CHOICE_VENDOR_REM_INV_REQ 0x8a
#define SD_CHOICE_VENDOR_REM_ACCESS  0x88
#define SD_CHOICE_VENDOR_REM_OP	     0x89
#define SD_CHOICE_VENDOR_RETRY	     0x81
#define SD_CHOICE_VENDOR_RNR	     0x87

/* Keys inside an indirect key are used as lkeys: a write or an atomic through the outer key needs
 * local write of the inner ones, a read needs nothing. */
#define SD_CHOICE_INNER_WRITE_NEEDS IBV_ACCESS_LOCAL_WRITE

/* Memory of a UMR's list in pointer form: its alignment in bytes. */
#define SD_CHOICE_UMR_LIST_ALIGN 64

/* Ordinary MRs are not open to UMR by the process, though the driver's own are made with umr_en. */
#define SD_CHOICE_MR_UMR_EN false

/* Freeing a PD in which keys made by DEVX remain: firmware is to refuse it. */
#define SD_CHOICE_PD_WITH_KEYS_ERRNO EINVAL

/* A registration longer than max_mr_size. */
#define SD_CHOICE_MR_SIZE_ERRNO EINVAL

/* How deep keys may lead to keys, when max_depth does not say it. */
#define SD_CHOICE_MAX_DEPTH 4

#endif /* SOFTDEV_CHOICES_H */
