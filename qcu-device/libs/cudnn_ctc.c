// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CTC losses with labels in host memory. How many numbers cuDNN reads there, the descriptor of the
 * probabilities and the labels' lengths decide. So all of them are looked at before cuDNN is
 * called.
 */
#include <string.h>

#include "qcu-device/libs/cudnn.h"
#include "qcu-device/libs/impl.h"

/* What a guest has sent: labels one behind the other, and of each its length and its input's. */
struct labels {
	int *label, *length, *input;
	uint64_t label_bytes, length_bytes, input_bytes;
};

static struct labels take_labels(struct lib_call *c)
{
	struct labels l;

	l.label = lib_in(c, &l.label_bytes);
	l.length = lib_in(c, &l.length_bytes);
	l.input = lib_in(c, &l.input_bytes);
	return l;
}

/* Times, batch and letters of the probabilities. False: it has other dimensions. */
static bool read_dimensions(struct lib_call *c, cudnnTensorDescriptor_t probs, int dim[3])
{
	cudnnStatus_t (*get)(cudnnTensorDescriptor_t tensor, int room, cudnnDataType_t *type,
			     int *dims, int *dim, int *stride) = NULL;
	int all[QCU_CUDNN_DIMS] = {0}, stride[QCU_CUDNN_DIMS], dims = 0;
	cudnnDataType_t type;

	*(void **)&get = lib_named(c->c->m, c->loaded, "cudnnGetTensorNdDescriptor");
	if (!get || !probs || get(probs, QCU_CUDNN_DIMS, &type, &dims, all, stride) || dims != 3)
		return false;
	memcpy(dim, all, 3 * sizeof(dim[0]));
	return dim[0] > 0 && dim[1] > 0 && dim[2] > 0;
}

/* All arrays are as long as cuDNN takes them for, and each number is one that it can use. */
static bool are_right(const struct labels *l, const int dim[3])
{
	const uint64_t batch = (uint64_t)dim[1];
	uint64_t i, count = 0;

	if (!l->label || !l->length || !l->input || l->length_bytes != batch * sizeof(int) ||
	    l->input_bytes != batch * sizeof(int))
		return false;
	for (i = 0; i < batch; i++) {
		if (l->length[i] < 0 || l->input[i] < 0 || l->input[i] > dim[0])
			return false;
		count += (uint64_t)l->length[i];
	}
	if (l->label_bytes != count * sizeof(int))
		return false;
	for (i = 0; i < count; i++)
		if (l->label[i] < 0 || l->label[i] >= dim[2])
			return false;
	return true;
}

static void check_labels(struct lib_call *c, const struct labels *l, cudnnTensorDescriptor_t probs)
{
	int dim[3];

	if (!c->bad && !c->refused && (!read_dimensions(c, probs, dim) || !are_right(l, dim)))
		c->bad = true;
}

int lib_do_cudnnGetCTCLossWorkspaceSize(struct lib_call *c)
{
	cudnnHandle_t handle = lib_object(c, QCU_LIB_CUDNN_HANDLE);
	cudnnTensorDescriptor_t probs = lib_descriptor(c, QCU_LIB_CUDNN_TENSOR);
	cudnnTensorDescriptor_t gradients = lib_descriptor(c, QCU_LIB_CUDNN_TENSOR);
	struct labels l = take_labels(c);
	uint64_t algo = lib_value(c), bytes;
	cudnnCTCLossDescriptor_t desc = lib_descriptor(c, QCU_LIB_CUDNN_CTC_LOSS);
	size_t *size = lib_out(c, &bytes);

	lib_sized(c, size, bytes, sizeof(*size));
	check_labels(c, &l, probs);
	if (!lib_ready(c) || !size)
		return 0;
	return (int)((__typeof__(&cudnnGetCTCLossWorkspaceSize))c->fn)(handle, probs, gradients,
								       l.label, l.length, l.input,
								       (cudnnCTCLossAlgo_t)algo,
								       desc, size);
}

int lib_do_cudnnCTCLoss(struct lib_call *c)
{
	cudnnHandle_t handle = lib_object(c, QCU_LIB_CUDNN_HANDLE);
	cudnnTensorDescriptor_t probs_desc = lib_descriptor(c, QCU_LIB_CUDNN_TENSOR);
	const void *probs = lib_device(c);
	struct labels l = take_labels(c);
	void *costs = lib_device(c);
	cudnnTensorDescriptor_t gradients_desc = lib_descriptor(c, QCU_LIB_CUDNN_TENSOR);
	void *gradients = lib_device(c);
	uint64_t algo = lib_value(c);
	cudnnCTCLossDescriptor_t desc = lib_descriptor(c, QCU_LIB_CUDNN_CTC_LOSS);
	void *space = lib_device(c);
	uint64_t size = lib_value(c);

	check_labels(c, &l, probs_desc);
	if (!lib_ready(c))
		return 0;
	return (int)((__typeof__(&cudnnCTCLoss))c->fn)(handle, probs_desc, probs, l.label, l.length,
						       l.input, costs, gradients_desc, gradients,
						       (cudnnCTCLossAlgo_t)algo, desc, space, size);
}
