/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The shim of cuDNN: what the generated functions and those written by hand share. */
#ifndef QCUL_CUDNN_H
#define QCUL_CUDNN_H

#include "qcu-library/libs/libs.h"

#pragma GCC visibility push(default)
#include <cudnn.h>
#pragma GCC visibility pop

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

extern const struct qcul_lib qcul_cudnn;
extern const uint16_t qcul_number_cudnnGetVersion, qcul_number_cudnnGetMaxDeviceVersion;
extern const uint16_t qcul_number_cudnnGetCudartVersion, qcul_number_cudnnGetLastErrorString;
extern const uint16_t qcul_number_cudnnBackendSetAttribute, qcul_number_cudnnBackendGetAttribute;
extern const uint16_t qcul_number_cudnnBackendFinalize, qcul_number_cudnnBackendExecute;
extern const uint16_t qcul_number_cudnnBackendDestroyDescriptor;
extern const uint16_t qcul_number_cudnnSetDropoutDescriptor;
extern const uint16_t qcul_number_cudnnRestoreDropoutDescriptor;
extern const uint16_t qcul_number_cudnnGetRNNWeightParams;
extern const uint16_t qcul_number_cudnnGetCTCLossWorkspaceSize, qcul_number_cudnnCTCLoss;
extern const uint16_t qcul_number_cudnnSetTensor4dDescriptor;
extern const uint16_t qcul_number_cudnnSetTensorNdDescriptorEx;
extern const uint16_t qcul_number_cudnnDeriveBNTensorDescriptor;

/*
 * cudnn_types.c. Of an element of this type; of an element of the tensor; of the numbers that scale
 * it. 0: no such type.
 */
size_t qcul_cudnn_type_size(cudnnDataType_t type);
size_t qcul_cudnn_element(cudnnTensorDescriptor_t tensor);
size_t qcul_cudnn_scalar(const void *descriptor);

#endif
