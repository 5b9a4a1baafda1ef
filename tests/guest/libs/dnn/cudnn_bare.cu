// SPDX-License-Identifier: GPL-2.0-or-later
/* Calls of cuDNN with no handle and no descriptor. Each answer is native's, also where the library
 * is missing. */
#include <cudnn.h>

#include "../bare.h"

int main(void)
{
	cudnnStatus_t (*const ends_tensor)(cudnnTensorDescriptor_t) = cudnnDestroyTensorDescriptor;
	cudaStream_t stream;
	size_t bytes;
	int major;

	REQUIRE(cudnnGetVersion() / 10000 == 9, "version %zu", cudnnGetVersion());
	ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnCreate(NULL));
	ANSWERS(CUDNN_STATUS_SUCCESS, cudnnDestroy(NULL));
	ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnSetStream(NULL, 0));
	ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnGetStream(NULL, &stream));
	ANSWERS(CUDNN_STATUS_SUCCESS, ends_tensor(NULL));
	ANSWERS(CUDNN_STATUS_SUCCESS, cudnnDestroyDropoutDescriptor(NULL));
	ANSWERS(CUDNN_STATUS_SUCCESS, cudnnDestroyRNNDescriptor(NULL));
	ANSWERS(CUDNN_STATUS_BAD_PARAM,
		cudnnSetTensor4dDescriptor(NULL, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 1, 1, 1, 1));
	ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnDropoutGetStatesSize(NULL, &bytes));
	ANSWERS(CUDNN_STATUS_BAD_PARAM,
		cudnnSoftmaxForward(NULL, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, NULL,
				    NULL, NULL, NULL, NULL, NULL));
	ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnGetConvolutionForwardAlgorithmMaxCount(NULL, &major));
	ANSWERS(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, cudnnBackendDestroyDescriptor(NULL));
	ANSWERS(CUDNN_STATUS_BAD_PARAM_NULL_POINTER, cudnnBackendFinalize(NULL));
	ANSWERS(CUDNN_STATUS_BAD_PARAM_NULL_POINTER,
		cudnnBackendSetAttribute(NULL, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 0,
					 NULL));
	ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnBackendExecute(NULL, NULL, NULL));
	texts(cudnnGetErrorString, 6000);
	if (cudnnGetProperty(MAJOR_VERSION, &major) == CUDNN_STATUS_NOT_INITIALIZED)
		return 0;
	ANSWERS(CUDNN_STATUS_SUCCESS, cudnnGetProperty(MAJOR_VERSION, &major));
	REQUIRE(major == 9, "major version %d", major);
	ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnGetProperty(MAJOR_VERSION, NULL));
	ANSWERS(CUDNN_STATUS_BAD_PARAM, cudnnGetProperty((libraryPropertyType)3, &major));
	return 0;
}
