/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The mirror's side of cuDNN. */
#ifndef QCU_LIBS_CUDNN_H
#define QCU_LIBS_CUDNN_H

#include "qcu-device/libs/libs.h"

#include <cudnn.h>

#include "include/qculib_cudnn.h"

#define KIND_cudnnHandle_t			 QCU_LIB_CUDNN_HANDLE
#define KIND_cudnnTensorDescriptor_t		 QCU_LIB_CUDNN_TENSOR
#define KIND_cudnnFilterDescriptor_t		 QCU_LIB_CUDNN_FILTER
#define KIND_cudnnConvolutionDescriptor_t	 QCU_LIB_CUDNN_CONVOLUTION
#define KIND_cudnnPoolingDescriptor_t		 QCU_LIB_CUDNN_POOLING
#define KIND_cudnnActivationDescriptor_t	 QCU_LIB_CUDNN_ACTIVATION
#define KIND_cudnnLRNDescriptor_t		 QCU_LIB_CUDNN_LRN
#define KIND_cudnnOpTensorDescriptor_t		 QCU_LIB_CUDNN_OP_TENSOR
#define KIND_cudnnReduceTensorDescriptor_t	 QCU_LIB_CUDNN_REDUCE_TENSOR
#define KIND_cudnnTensorTransformDescriptor_t	 QCU_LIB_CUDNN_TRANSFORM
#define KIND_cudnnSpatialTransformerDescriptor_t QCU_LIB_CUDNN_SPATIAL
#define KIND_cudnnDropoutDescriptor_t		 QCU_LIB_CUDNN_DROPOUT
#define KIND_cudnnRNNDescriptor_t		 QCU_LIB_CUDNN_RNN
#define KIND_cudnnRNNDataDescriptor_t		 QCU_LIB_CUDNN_RNN_DATA
#define KIND_cudnnCTCLossDescriptor_t		 QCU_LIB_CUDNN_CTC_LOSS

/* Stubs written by hand call no other functions than their own. */
#define lib_cudnn_helpers NULL
#define LIB_HELPERS	  0

extern const struct lib_kind lib_cudnn_kinds[QCU_LIB_KINDS];

/* The numbers of functions that are by hand. */
extern const uint16_t lib_number_cudnnBackendCreateDescriptor;
extern const uint16_t lib_number_cudnnBackendDestroyDescriptor;
extern const uint16_t lib_number_cudnnBackendSetAttribute, lib_number_cudnnBackendGetAttribute;
extern const uint16_t lib_number_cudnnBackendFinalize, lib_number_cudnnBackendExecute;

/* cudnn_attributes.c: an attribute that a guest may set or read, and what it is made of. */
struct lib_attribute {
	uint16_t name;
	uint8_t of, type; /* the descriptor's type, and that of the elements */
	uint8_t part;	  /* the type of elements that are descriptors, or LIB_OPERATION */
	uint8_t way;
	uint16_t most; /* elements */
};

#define LIB_SET	      1u
#define LIB_GET	      2u
#define LIB_OPERATION 0xffu

/* NULL: there is no such attribute for a guest. */
const struct lib_attribute *lib_cudnn_attribute(uint64_t of, uint64_t name, uint64_t type,
						unsigned int way);
/* May a guest make descriptors of this type? */
bool lib_cudnn_descriptor(uint64_t type);
/* May a descriptor of this type be an element? */
bool lib_cudnn_part(const struct lib_attribute *a, uint64_t type);

int lib_do_cudnnGetVersion(struct lib_call *c);
int lib_do_cudnnGetMaxDeviceVersion(struct lib_call *c);
int lib_do_cudnnGetCudartVersion(struct lib_call *c);
int lib_do_cudnnGetLastErrorString(struct lib_call *c);
int lib_do_cudnnSetDropoutDescriptor(struct lib_call *c);
int lib_do_cudnnRestoreDropoutDescriptor(struct lib_call *c);
int lib_do_cudnnGetRNNWeightParams(struct lib_call *c);
int lib_do_cudnnGetCTCLossWorkspaceSize(struct lib_call *c);
int lib_do_cudnnCTCLoss(struct lib_call *c);
int lib_do_cudnnBackendSetAttribute(struct lib_call *c);
int lib_do_cudnnBackendGetAttribute(struct lib_call *c);
int lib_do_cudnnBackendFinalize(struct lib_call *c);
int lib_do_cudnnBackendExecute(struct lib_call *c);
int lib_do_cudnnBackendCreateDescriptor(struct lib_call *c);
int lib_do_cudnnBackendDestroyDescriptor(struct lib_call *c);

#endif
