/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What describes a matrix product for cublasLt: the guest keeps all of it and sends it along with
 * each call, so making, setting and destroying descriptions costs nothing on the way. The mirror
 * makes the library's own description from it, on its stack.
 *
 * X(attribute's number, field, C type): NVIDIA's attributes. The position in the list is the bit in
 * `set`: the program has set the attribute. Those that are addresses in the GPU's memory have the
 * type qcu_lt_address.
 */
#ifndef QCULIB_CUBLASLT_H
#define QCULIB_CUBLASLT_H

#include "qcucmd_fields.h"

typedef __u64 qcu_lt_address;

#define QCU_LT_LAYOUT(X)    \
	X(0, type, __u32)   \
	X(1, order, __s32)  \
	X(2, rows, __u64)   \
	X(3, cols, __u64)   \
	X(4, ld, __s64)     \
	X(5, batch, __s32)  \
	X(8, mode, __u32)   \
	X(6, stride, __s64) \
	X(7, plane, __s64)

#define QCU_LT_MATMUL_BEFORE(X)          \
	X(0, compute, __s32)             \
	X(1, scale, __s32)               \
	X(2, pointers, __s32)            \
	X(3, trans_a, __s32)             \
	X(4, trans_b, __s32)             \
	X(5, trans_c, __s32)             \
	X(6, fill, __s32)                \
	X(7, epilogue, __u32)            \
	X(8, bias, qcu_lt_address)       \
	X(10, bias_stride, __s64)        \
	X(11, aux, qcu_lt_address)       \
	X(12, aux_ld, __s64)             \
	X(13, aux_stride, __s64)         \
	X(14, alpha_stride, __s64)       \
	X(15, sms, __s32)                \
	X(22, aux_type, __s32)           \
	X(17, scale_a, qcu_lt_address)   \
	X(18, scale_b, qcu_lt_address)   \
	X(19, scale_c, qcu_lt_address)   \
	X(20, scale_d, qcu_lt_address)   \
	X(21, amax_d, qcu_lt_address)    \
	X(23, aux_scale, qcu_lt_address) \
	X(24, aux_amax, qcu_lt_address)  \
	X(26, bias_type, __s32)          \
	X(31, mode_a, __s32)             \
	X(32, mode_b, __s32)             \
	X(33, mode_c, __s32)             \
	X(34, mode_d, __s32)             \
	X(35, mode_aux, __s32)           \
	X(37, mode_d_out, __s32)         \
	X(25, fast, __s8)

/* What does not fit into the library's own structure in the headers of CUDA 12.1. */
#define QCU_LT_MATMUL_SINCE(X) X(36, scale_d_out, qcu_lt_address)

#define QCU_LT_MATMUL(X)        \
	QCU_LT_MATMUL_BEFORE(X) \
	QCU_LT_MATMUL_SINCE(X)

#define QCU_LT_TRANSFORM(X)   \
	X(0, scale, __s32)    \
	X(1, pointers, __s32) \
	X(2, trans_a, __s32)  \
	X(3, trans_b, __s32)

#define QCU_LT_PREFERENCE(X)    \
	X(0, search, __u32)     \
	X(3, reductions, __u32) \
	X(1, workspace, __u64)  \
	X(5, align_a, __u32)    \
	X(6, align_b, __u32)    \
	X(7, align_c, __u32)    \
	X(8, align_d, __u32)    \
	X(12, kinds, __u64)     \
	X(9, waves, float)

/* What a description is. A program may lay one out in its own memory, so it says so itself. */
#define QCU_LT_IS_LAYOUT     0x4c746c79u
#define QCU_LT_IS_MATMUL     0x4c746d6du
#define QCU_LT_IS_TRANSFORM  0x4c747466u
#define QCU_LT_IS_PREFERENCE 0x4c747066u

#define QCU_LT_FIELD(attribute, field, type) type field;

struct qcu_lt_layout {
	__u32 is;
	__u32 set;
	QCU_LT_LAYOUT(QCU_LT_FIELD)
};
QCU_ASSERT(sizeof(struct qcu_lt_layout) == 64, "as large as the library's own");

struct qcu_lt_matmul {
	__u32 is;
	__u32 set;
	QCU_LT_MATMUL_BEFORE(QCU_LT_FIELD)
	__u8 rsvd[3];
	QCU_LT_MATMUL_SINCE(QCU_LT_FIELD)
};
QCU_ASSERT(sizeof(struct qcu_lt_matmul) == 192, "smaller than the library's own");
QCU_ASSERT(offsetof(struct qcu_lt_matmul, scale_d_out) == 184, "as large as in CUDA 12.1");

struct qcu_lt_transform {
	__u32 is;
	__u32 set;
	QCU_LT_TRANSFORM(QCU_LT_FIELD)
};
QCU_ASSERT(sizeof(struct qcu_lt_transform) == 24, "smaller than the library's own");

struct qcu_lt_preference {
	__u32 is;
	__u32 set;
	QCU_LT_PREFERENCE(QCU_LT_FIELD)
	__u32 rsvd;
};
QCU_ASSERT(sizeof(struct qcu_lt_preference) == 56, "smaller than the library's own");

#define QCU_LT_RESULTS	 16384 /* of one question for an algorithm */
#define QCU_LT_ATTRIBUTE 65536 /* bytes of an algorithm's attribute */

/* Where scalars are, by a description's pointer mode: QCU_LT_HOST, or the GPU's memory. */
#define QCU_LT_HOST		0
#define QCU_LT_DEVICE		1
#define QCU_LT_VECTOR		2
#define QCU_LT_VECTOR_BETA_ZERO 3
#define QCU_LT_VECTOR_BETA_HOST 4

static inline int qcu_lt_alpha_on_gpu(int mode)
{
	return mode != QCU_LT_HOST;
}

static inline int qcu_lt_beta_on_gpu(int mode)
{
	return mode == QCU_LT_DEVICE || mode == QCU_LT_VECTOR;
}

#endif
