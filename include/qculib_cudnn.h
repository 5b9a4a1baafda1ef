/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the shim of cuDNN and the mirror agree on, beyond what scripts/shims/generate makes.
 *
 * A descriptor of the backend API is an object with a number, but what a program sets in it stays
 * in the guest until it is finalized. Then it travels:
 *
 *   SetAttribute, Finalize   the number; 1 if the mirror has the descriptor already, and its type;
 *                            how many attributes; and these
 *   an attribute             its name; its type; how many elements; and these, padded to 8 bytes
 *   GetAttribute             the number; the attribute's name and type; how many elements are
 *                            wanted; if they are descriptors: how many, and for each its number, 1
 *                            if the mirror has it already, and its type; room for the count; room
 *                            for the elements that are not descriptors
 *   Execute                  a handle; the plan's number; the workspace; how many tensors; and for
 *                            each its id, and QCU_LIB_DEVICE and an address, or QCU_LIB_HOST and
 *                            QCU_CUDNN_VALUE bytes, or QCU_LIB_BOTH and both
 *
 * An element that is a handle or a descriptor travels as its number. A variant pack never travels.
 * The types are NVIDIA's, by number, because this file is also read without NVIDIA's headers.
 */
#ifndef QCULIB_CUDNN_H
#define QCULIB_CUDNN_H

#include "qcucmd_fields.h"

#define QCU_CUDNN_VALUE	       16u   /* bytes of a tensor that is one number in the host's memory */
#define QCU_CUDNN_TENSORS      128u  /* of a plan */
#define QCU_CUDNN_PLAN_TENSORS 1024u /* that a plan knows */
#define QCU_CUDNN_ELEMENTS     4096u /* of an attribute whose elements are objects */
#define QCU_CUDNN_DIMS	       8u

/* The element's size, by cudnnBackendAttributeType_t. 0: no such type. */
static inline __u64 qcu_cudnn_attribute_size(__u64 type)
{
	switch (type) {
	case 2:	 /* CUDNN_TYPE_BOOLEAN */
	case 24: /* CUDNN_TYPE_CHAR */
		return 1;
	case 0:	 /* CUDNN_TYPE_HANDLE */
	case 3:	 /* CUDNN_TYPE_INT64 */
	case 5:	 /* CUDNN_TYPE_DOUBLE */
	case 6:	 /* CUDNN_TYPE_VOID_PTR */
	case 15: /* CUDNN_TYPE_BACKEND_DESCRIPTOR */
		return 8;
	case 26: /* CUDNN_TYPE_FRACTION */
		return 16;
	}
	/* All others are float, int or an enumeration. */
	return type <= 30 ? 4 : 0;
}

/* A tensor that GetRNNWeightParams finds. */
struct qcu_cudnn_weights {
	__u64 address;
	__s32 type, dims; /* 0 dims: there is none */
	__s32 dim[QCU_CUDNN_DIMS], stride[QCU_CUDNN_DIMS];
};
QCU_ASSERT(sizeof(struct qcu_cudnn_weights) == 80, "no padding");

#endif
