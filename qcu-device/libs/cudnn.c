// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The objects of cuDNN in the mirror, and the functions of its legacy API that do not fit the
 * rules.
 */
#include <string.h>

#include "qcu-device/libs/cudnn.h"
#include "qcu-device/libs/impl.h"

#define DESCRIPTOR(name)                                      \
	[KIND_cudnn##name##Descriptor_t] = {                  \
		.create = "cudnnCreate" #name "Descriptor",   \
		.destroy = "cudnnDestroy" #name "Descriptor", \
	}

const struct lib_kind lib_cudnn_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CUDNN_HANDLE] =
		{
			.numbered = true,
			.bare = true,
			.create = "cudnnCreate",
			.destroy = "cudnnDestroy",
			.stream = "cudnnSetStream",
		},
	[QCU_LIB_CUDNN_BACKEND] = {.destroy = "cudnnBackendDestroyDescriptor"},
	DESCRIPTOR(Tensor),
	DESCRIPTOR(Filter),
	DESCRIPTOR(Convolution),
	DESCRIPTOR(Pooling),
	DESCRIPTOR(Activation),
	DESCRIPTOR(LRN),
	DESCRIPTOR(OpTensor),
	DESCRIPTOR(ReduceTensor),
	DESCRIPTOR(TensorTransform),
	DESCRIPTOR(SpatialTransformer),
	DESCRIPTOR(Dropout),
	DESCRIPTOR(RNN),
	DESCRIPTOR(RNNData),
	DESCRIPTOR(CTCLoss),
};

/* A function that returns a number and has no parameters. */
static int call_for_number(struct lib_call *c)
{
	uint64_t bytes;
	size_t *to = lib_out(c, &bytes);

	lib_sized(c, to, bytes, sizeof(*to));
	if (lib_ready(c) && to)
		*to = ((size_t(*)(void))c->fn)();
	return 0;
}

int lib_do_cudnnGetVersion(struct lib_call *c)
{
	return call_for_number(c);
}

int lib_do_cudnnGetMaxDeviceVersion(struct lib_call *c)
{
	return call_for_number(c);
}

int lib_do_cudnnGetCudartVersion(struct lib_call *c)
{
	return call_for_number(c);
}

int lib_do_cudnnGetLastErrorString(struct lib_call *c)
{
	uint64_t bytes;
	char *text = lib_out(c, &bytes);

	if (lib_ready(c) && text && bytes)
		((__typeof__(&cudnnGetLastErrorString))c->fn)(text, bytes);
	return 0;
}

int lib_do_cudnnSetDropoutDescriptor(struct lib_call *c)
{
	cudnnHandle_t handle = lib_object(c, QCU_LIB_CUDNN_HANDLE);
	float dropout = (float)lib_real(c);
	void *states = lib_device(c);
	uint64_t size = lib_value(c), seed = lib_value(c);
	cudnnDropoutDescriptor_t made = lib_make(c, QCU_LIB_CUDNN_DROPOUT);

	if (!lib_ready(c) || !made)
		return 0;
	return (int)((__typeof__(&cudnnSetDropoutDescriptor))c->fn)(made, handle, dropout, states,
								    size, seed);
}

/*
 * Only as a setting: the handle is named by its number, and is not changed. A descriptor that was
 * set without states is set again: there is nothing to restore it from.
 */
int lib_do_cudnnRestoreDropoutDescriptor(struct lib_call *c)
{
	cudnnDropoutDescriptor_t made = lib_descriptor(c, QCU_LIB_CUDNN_DROPOUT);
	uint64_t restored = lib_value(c), number_of_handle = lib_value(c);
	float dropout = (float)lib_real(c);
	void *states = lib_device(c);
	uint64_t size = lib_value(c), seed = lib_value(c);
	__typeof__(&cudnnRestoreDropoutDescriptor) set = NULL;
	struct handle *h;
	int status;

	if (restored > 1 || (!restored && states))
		c->bad = true;
	if (!lib_ready(c) || !made)
		return 0;
	*(void **)&set =
		restored ? c->fn : lib_named(c->c->m, c->loaded, "cudnnSetDropoutDescriptor");
	h = set ? lib_object_get(c, number_of_handle, QCU_LIB_CUDNN_HANDLE) : NULL;
	if (!h)
		return CUDNN_STATUS_BAD_PARAM;
	status = (int)set(made, h->library->native, dropout, states, size, seed);
	handles_put(&c->c->m->handles, h);
	return status;
}

/* What the library has written into a descriptor. */
static void read_tensor(struct lib_call *c, cudnnTensorDescriptor_t tensor, uint64_t address,
			struct qcu_cudnn_weights *w)
{
	cudnnStatus_t (*get)(cudnnTensorDescriptor_t tensor, int room, cudnnDataType_t *type,
			     int *dims, int *dim, int *stride) = NULL;
	cudnnDataType_t type = 0;

	memset(w, 0, sizeof(*w));
	w->address = address;
	*(void **)&get = lib_named(c->c->m, c->loaded, "cudnnGetTensorNdDescriptor");
	if (!get || get(tensor, QCU_CUDNN_DIMS, &type, &w->dims, w->dim, w->stride))
		w->dims = 0;
	w->type = (int)type;
}

int lib_do_cudnnGetRNNWeightParams(struct lib_call *c)
{
	cudnnHandle_t handle = lib_object(c, QCU_LIB_CUDNN_HANDLE);
	cudnnRNNDescriptor_t rnn = lib_descriptor(c, QCU_LIB_CUDNN_RNN);
	int32_t layer = (int32_t)lib_value(c);
	uint64_t size = lib_value(c);
	/* The library only adds to it, so a program may name any address, and gets the sum. */
	uint64_t named = lib_value(c);
	char *weights = lib_address(c, named);
	int32_t linear = (int32_t)lib_value(c);
	cudnnTensorDescriptor_t m_desc = lib_make(c, QCU_LIB_CUDNN_TENSOR);
	cudnnTensorDescriptor_t b_desc = lib_make(c, QCU_LIB_CUDNN_TENSOR);
	uint64_t bytes;
	struct qcu_cudnn_weights *w = lib_out(c, &bytes);
	char *m = NULL, *b = NULL;
	int status;

	lib_sized(c, w, bytes, 2 * sizeof(*w));
	if (!lib_ready(c) || !w || !m_desc || !b_desc)
		return 0;
	status = (int)((__typeof__(&cudnnGetRNNWeightParams))c->fn)(handle, rnn, layer, size,
								    weights, linear, m_desc,
								    (void **)&m, b_desc,
								    (void **)&b);
	if (!status) {
		read_tensor(c, m_desc, m ? named + (uint64_t)(m - weights) : 0, &w[0]);
		read_tensor(c, b_desc, b ? named + (uint64_t)(b - weights) : 0, &w[1]);
	}
	return status;
}
