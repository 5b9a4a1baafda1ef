// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Functions of cuDNN that the guest carries out itself: handles; descriptors, which live only here;
 * names; callbacks, which are never called here. This file also has the functions of the legacy API
 * that do not fit the rules: versions, dropout, the weights of a recurrent network.
 */
#include <string.h>

#include "qcu-library/shims/cudnn.h"

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	return (cudnnStatus_t)qcul_lib_create(&qcul_cudnn, KIND_cudnnHandle_t, (void **)handle);
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	return handle ? (cudnnStatus_t)qcul_lib_destroy(&qcul_cudnn, KIND_cudnnHandle_t, handle)
		      : CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	struct qcul_object *o = qcul_lib_find(handle, KIND_cudnnHandle_t);

	if (!o)
		return CUDNN_STATUS_BAD_PARAM;
	o->stream = stream;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t *stream)
{
	struct qcul_object *o = qcul_lib_find(handle, KIND_cudnnHandle_t);

	if (!o || !stream)
		return CUDNN_STATUS_BAD_PARAM;
	*stream = o->stream;
	return CUDNN_STATUS_SUCCESS;
}

#define DESCRIPTOR(name)                                                                           \
	cudnnStatus_t cudnnCreate##name##Descriptor(cudnn##name##Descriptor_t *descriptor)         \
	{                                                                                          \
		return (cudnnStatus_t)qcul_lib_describe(                                           \
			&qcul_cudnn, KIND_cudnn##name##Descriptor_t, (void **)descriptor);         \
	}                                                                                          \
	cudnnStatus_t cudnnDestroy##name##Descriptor(cudnn##name##Descriptor_t descriptor)         \
	{                                                                                          \
		return !descriptor                                                                 \
			       ? CUDNN_STATUS_SUCCESS                                              \
			       : (cudnnStatus_t)qcul_lib_undescribe(                               \
					 &qcul_cudnn, KIND_cudnn##name##Descriptor_t, descriptor); \
	}

DESCRIPTOR(Tensor)
DESCRIPTOR(Filter)
DESCRIPTOR(Convolution)
DESCRIPTOR(Pooling)
DESCRIPTOR(Activation)
DESCRIPTOR(LRN)
DESCRIPTOR(OpTensor)
DESCRIPTOR(ReduceTensor)
DESCRIPTOR(TensorTransform)
DESCRIPTOR(SpatialTransformer)
DESCRIPTOR(Dropout)
DESCRIPTOR(RNN)
DESCRIPTOR(RNNData)
DESCRIPTOR(CTCLoss)

/* A number that only the host's library knows, or `otherwise`, which is what this shim was made
 * for. */
static size_t ask_number(uint16_t function, size_t otherwise)
{
	struct qcul_pack p;
	size_t number = 0;

	qcul_lib_begin(&p, &qcul_cudnn, function);
	qcul_lib_out(&p, &number, sizeof(number));
	return qcul_lib_call(&p) ? otherwise : number;
}

size_t cudnnGetVersion(void)
{
	static _Atomic size_t known;
	size_t version = atomic_load(&known);

	if (!version) {
		version = ask_number(qcul_number_cudnnGetVersion, CUDNN_VERSION);
		atomic_store(&known, version);
	}
	return version;
}

size_t cudnnGetMaxDeviceVersion(void)
{
	return ask_number(qcul_number_cudnnGetMaxDeviceVersion, 0);
}

size_t cudnnGetCudartVersion(void)
{
	return ask_number(qcul_number_cudnnGetCudartVersion, CUDART_VERSION);
}

void cudnnGetLastErrorString(char *message, size_t size)
{
	char text[1024] = "";
	struct qcul_pack p;

	if (!message || !size)
		return;
	qcul_lib_begin(&p, &qcul_cudnn, qcul_number_cudnnGetLastErrorString);
	qcul_lib_out(&p, text, sizeof(text));
	if (qcul_lib_call(&p))
		text[0] = 0;
	text[sizeof(text) - 1] = 0;
	strncpy(message, text, size - 1);
	message[size - 1] = 0;
}

cudnnStatus_t cudnnGraphVersionCheck(void)
{
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnOpsVersionCheck(void)
{
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCnnVersionCheck(void)
{
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnAdvVersionCheck(void)
{
	return CUDNN_STATUS_SUCCESS;
}

static struct {
	unsigned int mask;
	void *data;
	cudnnCallback_t function;
} callback;

cudnnStatus_t cudnnSetCallback(unsigned int mask, void *data, cudnnCallback_t function)
{
	callback.mask = mask;
	callback.data = data;
	callback.function = function;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetCallback(unsigned int *mask, void **data, cudnnCallback_t *function)
{
	if (!mask || !data || !function)
		return CUDNN_STATUS_BAD_PARAM;
	*mask = callback.mask;
	*data = callback.data;
	*function = callback.function;
	return CUDNN_STATUS_SUCCESS;
}

/*
 * Setting a dropout descriptor also fills the states on the GPU. That happens once; from then on
 * the descriptor travels as one that is restored from these states. One without states, which is
 * how a network without dropout has it, cannot be restored, so it travels as one that is set.
 */
static void dropout(struct qcul_pack *p, float probability, void *states, size_t size,
		    unsigned long long seed)
{
	qcul_lib_real(p, probability);
	qcul_lib_device(p, states);
	qcul_lib_value(p, size);
	qcul_lib_plain(p, seed);
}

/* The descriptor is from now on one that is restored, or one that is set. */
static cudnnStatus_t keep_dropout(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle,
				  bool restored, float probability, void *states, size_t size,
				  unsigned long long seed)
{
	struct qcul_object *o = qcul_lib_find(handle, KIND_cudnnHandle_t);
	struct qcul_pack p;
	int status;

	if (!o || !qcul_lib_find(descriptor, KIND_cudnnDropoutDescriptor_t))
		return CUDNN_STATUS_BAD_PARAM;
	qcul_lib_begin(&p, &qcul_cudnn, qcul_number_cudnnRestoreDropoutDescriptor);
	qcul_lib_descriptor(&p, descriptor, KIND_cudnnDropoutDescriptor_t);
	qcul_lib_value(&p, restored);
	qcul_lib_plain(&p, o->number);
	dropout(&p, probability, states, size, seed);
	status = p.failed ? p.status : qcul_lib_keep(&p);
	return (cudnnStatus_t)qcul_lib_drop(&p, status);
}

cudnnStatus_t cudnnRestoreDropoutDescriptor(cudnnDropoutDescriptor_t descriptor,
					    cudnnHandle_t handle, float probability, void *states,
					    size_t size, unsigned long long seed)
{
	return keep_dropout(descriptor, handle, true, probability, states, size, seed);
}

cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t descriptor, cudnnHandle_t handle,
					float probability, void *states, size_t size,
					unsigned long long seed)
{
	struct qcul_pack p;
	int status;

	if (!qcul_lib_find(descriptor, KIND_cudnnDropoutDescriptor_t))
		return CUDNN_STATUS_BAD_PARAM;
	qcul_lib_begin(&p, &qcul_cudnn, qcul_number_cudnnSetDropoutDescriptor);
	qcul_lib_object(&p, handle, KIND_cudnnHandle_t);
	dropout(&p, probability, states, size, seed);
	status = qcul_lib_call(&p);
	return status ? (cudnnStatus_t)status
		      : keep_dropout(descriptor, handle, states, probability, states, size, seed);
}

/*
 * Where the weights are: the mirror makes the descriptors, and what is in them comes back. The
 * caller may want only the matrix or only the bias, and has no descriptor and no address for the
 * other.
 */
static cudnnStatus_t take_weights(const struct qcu_cudnn_weights *w, cudnnTensorDescriptor_t desc,
				  void **address)
{
	struct qcul_object *o = qcul_lib_find(desc, KIND_cudnnTensorDescriptor_t);

	if (address)
		*address = (void *)(uintptr_t)w->address;
	if (!desc)
		return CUDNN_STATUS_SUCCESS;
	/* There is no such matrix: the descriptor has no dimensions any more. */
	if (o && w->dims <= 0)
		qcul_lib_unset_all(o);
	if (w->dims <= 0 || w->dims > (int)QCU_CUDNN_DIMS)
		return CUDNN_STATUS_SUCCESS;
	return cudnnSetTensorNdDescriptor(desc, (cudnnDataType_t)w->type, w->dims, w->dim,
					  w->stride);
}

cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, int32_t layer,
				      size_t size, const void *weights, int32_t linear,
				      cudnnTensorDescriptor_t m_desc, void **m,
				      cudnnTensorDescriptor_t b_desc, void **b)
{
	struct qcu_cudnn_weights w[2];
	struct qcul_pack p;
	cudnnStatus_t status;

	qcul_lib_begin(&p, &qcul_cudnn, qcul_number_cudnnGetRNNWeightParams);
	qcul_lib_object(&p, handle, KIND_cudnnHandle_t);
	qcul_lib_descriptor(&p, rnn, KIND_cudnnRNNDescriptor_t);
	qcul_lib_value(&p, (uint64_t)layer);
	qcul_lib_value(&p, size);
	qcul_lib_device(&p, weights);
	qcul_lib_value(&p, (uint64_t)linear);
	qcul_lib_out(&p, w, sizeof(w));
	status = (cudnnStatus_t)qcul_lib_call(&p);
	if (!status)
		status = take_weights(&w[0], m_desc, m);
	if (!status)
		status = take_weights(&w[1], b_desc, b);
	return status;
}
