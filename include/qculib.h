/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A call of a library (cuBLAS and its sisters) on the wire. The library itself runs in the mirror,
 * where pointers mean the same. The record (LIB_CALL or LIB_ASK) names the library, the function
 * and the stream; the function's arguments travel in a message of this form:
 *
 *   struct qcu_lib_head, `args` bytes of arguments, and, for LIB_ASK,
 *   struct qcu_lib_answer and `outs` bytes for what the function writes.
 *
 * An argument is a row of 8-byte words, in the order of the function's parameters:
 *
 * - a number, or an address that the GPU uses: one word;
 * - a stream: none, because the record names it;
 * - host memory: QCU_LIB_*, then what the comment there says;
 * - an address in the GPU's memory, or host memory, whichever the object works in: as these;
 * - a descriptor: 0 if there is none, or 1 and how many bytes of settings follow, and these;
 * - an object of the library: its number; if that is not 0, the version of what the program has set
 *   in it, how many bytes of settings follow, and these;
 * - an object beside that one: its number.
 *
 * A setting is a struct qcu_lib_setting and the arguments of the function that sets it, without the
 * object. The guest keeps the settings and sends all of them with each call, so that calls of
 * several threads may overtake each other. The mirror makes those settings only if the version is
 * another one than that of the object's last call.
 */
#ifndef QCULIB_H
#define QCULIB_H

#include "qcucmd_fields.h"

/* The libraries. */
#define QCU_LIB_CUBLAS	 1u
#define QCU_LIB_CUBLASLT 2u
#define QCU_LIB_CUDNN	 3u
#define QCU_LIB_CUFFT	 4u
#define QCU_LIB_CURAND	 5u
#define QCU_LIB_CUSOLVER 6u
#define QCU_LIB_CUSPARSE 7u
#define QCU_LIBS	 8u

/* The kinds of objects. A handle of cuBLAS may be passed where one of cuBLASLt is wanted. */
#define QCU_LIB_CUBLAS_HANDLE	 1u
#define QCU_LIB_CUBLASLT_HANDLE	 2u
#define QCU_LIB_CUFFT_PLAN	 3u
#define QCU_LIB_CURAND_GENERATOR 4u
#define QCU_LIB_CUDNN_HANDLE	 5u
#define QCU_LIB_CUDNN_BACKEND	 6u
/* These have no number: they travel whole. */
#define QCU_LIB_CUDNN_TENSOR	    7u
#define QCU_LIB_CUDNN_FILTER	    8u
#define QCU_LIB_CUDNN_CONVOLUTION   9u
#define QCU_LIB_CUDNN_POOLING	    10u
#define QCU_LIB_CUDNN_ACTIVATION    11u
#define QCU_LIB_CUDNN_LRN	    12u
#define QCU_LIB_CUDNN_OP_TENSOR	    13u
#define QCU_LIB_CUDNN_REDUCE_TENSOR 14u
#define QCU_LIB_CUDNN_TRANSFORM	    15u
#define QCU_LIB_CUDNN_SPATIAL	    16u
#define QCU_LIB_CUDNN_DROPOUT	    17u
#define QCU_LIB_CUDNN_RNN	    18u
#define QCU_LIB_CUDNN_RNN_DATA	    19u
#define QCU_LIB_CUDNN_CTC_LOSS	    20u
#define QCU_LIB_CUSOLVER_PARAMS	    21u
#define QCU_LIB_CUSOLVER_SYEVJ	    22u
#define QCU_LIB_CUSOLVER_GESVDJ	    23u
/* And this one has a number again. */
#define QCU_LIB_CUSOLVER_DN	24u
#define QCU_LIB_CUSPARSE_HANDLE 25u
/* These travel whole. */
#define QCU_LIB_CUSPARSE_MATRIX 26u
#define QCU_LIB_CUSPARSE_SP_VEC 27u
#define QCU_LIB_CUSPARSE_DN_VEC 28u
#define QCU_LIB_CUSPARSE_SP_MAT 29u
#define QCU_LIB_CUSPARSE_DN_MAT 30u
/* These come beside a handle: what the library has found out about a matrix. */
#define QCU_LIB_CUSPARSE_SPSV	31u
#define QCU_LIB_CUSPARSE_SPSM	32u
#define QCU_LIB_CUSPARSE_SPGEMM 33u
#define QCU_LIB_CUSPARSE_CSRIC	34u
#define QCU_LIB_CUSPARSE_BSRIC	35u
#define QCU_LIB_CUSPARSE_CSRILU 36u
#define QCU_LIB_CUSPARSE_BSRILU 37u
#define QCU_LIB_CUSPARSE_BSRSV	38u
#define QCU_LIB_CUSPARSE_BSRSM	39u
#define QCU_LIB_CUSPARSE_CSRU	40u
#define QCU_LIB_CUSPARSE_PRUNE	41u
/* And this is a handle again. */
#define QCU_LIB_CUSOLVER_SP 42u
/* A generator of cuRAND that computes on the host, into host memory. */
#define QCU_LIB_CURAND_HOST 43u
/* A handle again, and what comes beside one of QCU_LIB_CUSOLVER_SP. */
#define QCU_LIB_CUSOLVER_RF 44u
#define QCU_LIB_CUSOLVER_QR 45u
#define QCU_LIB_KINDS	    46u

static inline int qcu_lib_kind_fits(__u32 kind, __u32 wanted)
{
	return kind == wanted ||
	       (kind == QCU_LIB_CUBLAS_HANDLE && wanted == QCU_LIB_CUBLASLT_HANDLE) ||
	       (kind == QCU_LIB_CURAND_HOST && wanted == QCU_LIB_CURAND_GENERATOR);
}

/* Do the calls of such an object write into host memory what others write into the GPU's? */
static inline int qcu_lib_kind_on_host(__u32 kind)
{
	return kind == QCU_LIB_CURAND_HOST;
}

/*
 * Functions that every library has. OPEN: is the host's library there, and was the mirror made from
 * the same headers? Its argument is the table's hash, and its `outs` get the reason if not. CREATE
 * makes the object with a number, of a kind; DESTROY ends it.
 */
#define QCU_LIB_OPEN	0xffffu
#define QCU_LIB_CREATE	0xfffeu
#define QCU_LIB_DESTROY 0xfffdu
#define QCU_LIB_REASON	256u /* bytes of a reason */

/* The status of OPEN: a number that no library has as a status. */
#define QCU_LIB_MISSING 0x7fffffff

struct qcu_lib_head {
	__u32 args; /* a multiple of 8 */
	__u32 outs; /* the same; 0 in a posted call */
};
QCU_ASSERT(sizeof(struct qcu_lib_head) == 8, "the arguments are aligned");

struct qcu_lib_answer {
	__s32 status; /* the library's own */
	__u32 rsvd;
};
QCU_ASSERT(sizeof(struct qcu_lib_answer) == 8, "what is written is aligned");

struct qcu_lib_setting {
	__u16 function;
	__u16 rsvd;
	__u32 args; /* a multiple of 8 */
};
QCU_ASSERT(sizeof(struct qcu_lib_setting) == 8, "the arguments are aligned");

/* Host memory. */
#define QCU_LIB_NULL   0u /* a null pointer */
#define QCU_LIB_DEVICE 1u /* the GPU's memory after all: its address follows */
#define QCU_LIB_HOST   2u /* how many bytes, then the bytes, up to a multiple of 8 */
#define QCU_LIB_ROOM   3u /* how many bytes the function may write; they come in `outs` */
#define QCU_LIB_BOTH   4u /* both: HOST's words, and room for as many bytes in `outs` */

#define QCU_LIB_ARGS_MAX     (16u << 20)
#define QCU_LIB_OUTS_MAX     (16u << 20)
#define QCU_LIB_SETTINGS_MAX 1024u /* bytes of an object's settings */

#endif
