// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * CTC losses with labels in host memory: how many there are, the descriptor of the probabilities
 * and the labels' lengths say.
 */
#include "qcu-library/shims/cudnn.h"

#define LABELS_MOST (1u << 20)

struct labels {
	const int *label, *length, *input;
	uint64_t batch, count;
};

/* Also what cuDNN would only find out on the GPU. */
static bool count_labels(struct labels *l, cudnnTensorDescriptor_t probs)
{
	int dim[QCU_CUDNN_DIMS] = {0}, stride[QCU_CUDNN_DIMS], dims = 0, i;
	cudnnDataType_t type;
	uint64_t k;

	if (!l->label || !l->length || !l->input ||
	    cudnnGetTensorNdDescriptor(probs, QCU_CUDNN_DIMS, &type, &dims, dim, stride) ||
	    dims != 3 || dim[1] <= 0)
		return false;
	for (i = 0; i < dim[1]; i++) {
		if (l->length[i] < 0 || l->input[i] < 0 || l->input[i] > dim[0])
			return false;
		l->count += (uint64_t)l->length[i];
		if (l->count > LABELS_MOST)
			return false;
	}
	for (k = 0; k < l->count; k++)
		if (l->label[k] < 0 || l->label[k] >= dim[2])
			return false;
	l->batch = (uint64_t)dim[1];
	return true;
}

static void pack_labels(struct qcul_pack *p, const struct labels *l)
{
	qcul_lib_in(p, l->label, l->count * sizeof(int));
	qcul_lib_in(p, l->length, l->batch * sizeof(int));
	qcul_lib_in(p, l->input, l->batch * sizeof(int));
}

cudnnStatus_t cudnnGetCTCLossWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t probs,
					   cudnnTensorDescriptor_t gradients, const int *label,
					   const int *length, const int *input,
					   cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t desc,
					   size_t *size)
{
	struct labels l = {.label = label, .length = length, .input = input};
	struct qcul_pack p;

	if (!size || !count_labels(&l, probs))
		return CUDNN_STATUS_BAD_PARAM;
	qcul_lib_begin(&p, &qcul_cudnn, qcul_number_cudnnGetCTCLossWorkspaceSize);
	qcul_lib_object(&p, handle, KIND_cudnnHandle_t);
	qcul_lib_descriptor(&p, probs, KIND_cudnnTensorDescriptor_t);
	qcul_lib_descriptor(&p, gradients, KIND_cudnnTensorDescriptor_t);
	pack_labels(&p, &l);
	qcul_lib_value(&p, algo);
	qcul_lib_descriptor(&p, desc, KIND_cudnnCTCLossDescriptor_t);
	qcul_lib_out(&p, size, sizeof(*size));
	qcul_lib_steady(&p);
	return (cudnnStatus_t)qcul_lib_call(&p);
}

cudnnStatus_t cudnnCTCLoss(cudnnHandle_t handle, cudnnTensorDescriptor_t probs_desc,
			   const void *probs, const int label[], const int length[],
			   const int input[], void *costs, cudnnTensorDescriptor_t gradients_desc,
			   void *gradients, cudnnCTCLossAlgo_t algo, cudnnCTCLossDescriptor_t desc,
			   void *space, size_t size)
{
	struct labels l = {.label = label, .length = length, .input = input};
	struct qcul_pack p;

	if (!count_labels(&l, probs_desc))
		return CUDNN_STATUS_BAD_PARAM;
	qcul_lib_begin(&p, &qcul_cudnn, qcul_number_cudnnCTCLoss);
	qcul_lib_object(&p, handle, KIND_cudnnHandle_t);
	qcul_lib_descriptor(&p, probs_desc, KIND_cudnnTensorDescriptor_t);
	qcul_lib_device(&p, probs);
	pack_labels(&p, &l);
	qcul_lib_device(&p, costs);
	qcul_lib_descriptor(&p, gradients_desc, KIND_cudnnTensorDescriptor_t);
	qcul_lib_device(&p, gradients);
	qcul_lib_value(&p, algo);
	qcul_lib_descriptor(&p, desc, KIND_cudnnCTCLossDescriptor_t);
	qcul_lib_device(&p, space);
	qcul_lib_value(&p, size);
	return (cudnnStatus_t)qcul_lib_call(&p);
}
