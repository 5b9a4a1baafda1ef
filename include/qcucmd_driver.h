/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The bodies of commands that mainly the driver API needs: results that do not fit a record, links,
 * numbers in streams, virtual memory.
 * qcucmd_fields.h has the others, and includes this file.
 */
#ifndef QCUCMD_DRIVER_H
#define QCUCMD_DRIVER_H

#include "qcucmd_fields.h"

/*
 * What the last command of this guest thread left for it: what the compiler said, or the bytes that
 * were asked for. The mirror keeps it until the thread's next command of this kind, or until
 * `forget` is 1. It also forgets the oldest when there are many.
 */
#define QCU_RESULT_INFO	 0u /* text */
#define QCU_RESULT_ERROR 1u /* text */
#define QCU_RESULT_DATA	 2u
#define QCU_RESULTS	 3u
struct qcu_result_read {
	struct qcu_buf buf; /* out: as many bytes as fit */
	__u32 what;	    /* QCU_RESULT_* */
	__u32 forget;
	__u64 bytes; /* out: length of all of it; 0: there is nothing */
};
/*
 * Links images into one. A link has a number that the guest chooses. If LINK_ADD or LINK_COMPLETE
 * fails, the link can only be destroyed. LINK_COMPLETE leaves the image for RESULT_READ. The texts
 * that each step leaves may begin with those of earlier steps.
 */
#define QCU_LINK_CUBIN	0u /* as CUjitInputType */
#define QCU_LINK_PTX	1u
#define QCU_LINK_FATBIN 2u
struct qcu_link_create {
	__u32 link;
	struct qcu_jit jit;
};
struct qcu_link_add {
	struct qcu_buf buf; /* the image, whole */
	__u32 link;
	__u32 type;	    /* QCU_LINK_* */
	struct qcu_jit jit; /* for this image only; its flag for logs must be zero */
	__u32 rsvd;
};
struct qcu_link_complete {
	__u32 link;
	__u32 rsvd;
	__u64 bytes;  /* out: of the image */
	__u32 micros; /* out: how long the last step took */
	__u32 rsvd1;
};
/*
 * A stream writes a number to memory, or waits until a number in memory fits. The memory is device
 * memory or registered memory, and the address is a multiple of `bytes`.
 */
#define QCU_VALUE_WRITE	    0u
#define QCU_VALUE_WAIT	    1u
#define QCU_VALUE_GEQ	    0u /* flags of a wait: (the number - value) is not negative */
#define QCU_VALUE_EQ	    1u /* they are equal */
#define QCU_VALUE_AND	    2u /* they have a common bit */
#define QCU_VALUE_NOR	    3u /* a bit is 0 in both */
#define QCU_VALUE_FLUSH	    4u /* also: writes of other devices are visible after it */
#define QCU_VALUE_UNORDERED 1u /* flag of a write: it may come before earlier writes */
struct qcu_stream_value {
	__u64 addr;
	__u64 value;
	__u32 stream;
	__u8 what;  /* QCU_VALUE_WRITE or QCU_VALUE_WAIT */
	__u8 bytes; /* 4 or 8 */
	__u16 flags;
};
/* PHYS_CREATE */
#define QCU_PHYS_SHAREABLE    1u /* PHYS_EXPORT is possible */
#define QCU_PHYS_COMPRESSIBLE 2u /* if the device can */
#define QCU_PHYS_FLAGS	      3u

/*
 * Makes a tensor map: the description of a tensor in memory of which kernels copy tiles. Nothing is
 * looked up or kept; the map is the device's own form of the message, and is left for RESULT_READ
 * (QCU_RESULT_DATA). The numbers are those of CUDA's enumerations.
 */
#define QCU_TENSOR_TILED       0u
#define QCU_TENSOR_IM2COL      1u
#define QCU_TENSOR_IM2COL_WIDE 2u
#define QCU_TENSOR_MOVE	       3u /* a map with another address */
#define QCU_TENSOR_DIMS	       5u
#define QCU_TENSOR_MAP_BYTES   128u
struct qcu_tensor_msg {
	__u32 what; /* QCU_TENSOR_* */
	__u32 type, rank;
	__u32 interleave, swizzle, promotion, fill;
	__u32 mode;		/* of IM2COL_WIDE */
	__u32 channels, pixels; /* of both IM2COL */
	__s32 lower[3], upper[3];
	__u64 addr;
	__u64 dim[QCU_TENSOR_DIMS];
	__u64 stride[QCU_TENSOR_DIMS]; /* in bytes; that of the first is not there */
	__u32 box[QCU_TENSOR_DIMS];    /* of TILED */
	__u32 step[QCU_TENSOR_DIMS];
	__u8 map[QCU_TENSOR_MAP_BYTES]; /* for MOVE */
};
QCU_ASSERT(sizeof(struct qcu_tensor_msg) == 320, "tensor message");
struct qcu_tensor_map {
	struct qcu_buf buf; /* message: struct qcu_tensor_msg */
};

#endif
