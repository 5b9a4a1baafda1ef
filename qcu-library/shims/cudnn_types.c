// SPDX-License-Identifier: LGPL-2.1-or-later
/* The type of a tensor decides the size of the numbers that a program passes with it. */
#include <string.h>

#include "qcu-library/shims/cudnn.h"

size_t qcul_cudnn_type_size(cudnnDataType_t type)
{
	switch ((int)type) {
	case CUDNN_DATA_INT8:
	case CUDNN_DATA_UINT8:
	case CUDNN_DATA_BOOLEAN:
	case CUDNN_DATA_FP8_E4M3:
	case CUDNN_DATA_FP8_E5M2:
		return 1;
	case CUDNN_DATA_HALF:
	case CUDNN_DATA_BFLOAT16:
		return 2;
	case CUDNN_DATA_FLOAT:
	case CUDNN_DATA_INT32:
		return 4;
	case CUDNN_DATA_DOUBLE:
	case CUDNN_DATA_INT64:
		return 8;
	}
	return 0;
}

/* The type that was set last, by whichever function, or -1. Types precede all other settings. */
static int type_in(const unsigned char *at, uint32_t bytes)
{
	int type = -1;

	while (bytes >= sizeof(struct qcu_lib_setting)) {
		struct qcu_lib_setting s;
		uint64_t word[2] = {0};

		memcpy(&s, at, sizeof(s));
		at += sizeof(s);
		memcpy(word, at, s.args < sizeof(word) ? s.args : sizeof(word));
		if (s.function == qcul_number_cudnnDeriveBNTensorDescriptor)
			/* The other descriptor: 1 and the bytes of its settings, and these. */
			type = word[0] ? type_in(at + sizeof(word[0]), (uint32_t)word[0] - 1) : -1;
		else
			/* Two functions have the layout before the type. */
			type = (int)word[s.function == qcul_number_cudnnSetTensor4dDescriptor ||
					 s.function == qcul_number_cudnnSetTensorNdDescriptorEx];
		at += s.args;
		bytes -= (uint32_t)sizeof(s) + s.args;
	}
	return type;
}

static int type_of_tensor(const void *descriptor)
{
	const struct qcul_object *o = qcul_lib_find(descriptor, QCU_LIB_CUDNN_TENSOR);

	if (!o)
		o = qcul_lib_find(descriptor, QCU_LIB_CUDNN_FILTER);
	return o ? type_in(o->settings, o->bytes) : -1;
}

size_t qcul_cudnn_element(cudnnTensorDescriptor_t tensor)
{
	return qcul_cudnn_type_size((cudnnDataType_t)type_of_tensor(tensor));
}

size_t qcul_cudnn_scalar(const void *descriptor)
{
	return type_of_tensor(descriptor) == CUDNN_DATA_DOUBLE ? sizeof(double) : sizeof(float);
}
