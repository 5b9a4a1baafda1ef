// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The software GPU with a cuDNN that knows recurrent networks only, and computes nothing: it checks
 * what it gets, as strictly as NVIDIA's. A dropout descriptor without states can be set, but not
 * restored.
 */
#include <stdlib.h>
#include <string.h>

#include <cudnn.h>

#include "qcu-device/backend/backend.h"
#include "tests/loopback/libs/stand_in.h"
#include "tests/loopback/libs/cudnn_rnn.h"

static struct be_ops ops;

/* What is in a descriptor of any kind. */
struct made {
	char kind; /* 't'ensor, 'd'ropout, 'r'nn, d'a'ta, 'h'andle */
	bool set;
	int dims, dim[3], stride[3];
	cudnnDataType_t type;
	float dropout;
	void *states;
	cudnnRNNAlgo_t algo;
	int32_t input, hidden, layers;
	int sequences[RNN_BATCH];
};

#define MAKES(name, letter)                                                        \
	static cudnnStatus_t create_##name(void **descriptor)                      \
	{                                                                          \
		struct made *m = calloc(1, sizeof(*m));                            \
                                                                                   \
		if (!m)                                                            \
			return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED; \
		m->kind = letter;                                                  \
		*descriptor = m;                                                   \
		return CUDNN_STATUS_SUCCESS;                                       \
	}                                                                          \
	static struct made *name(const void *descriptor)                           \
	{                                                                          \
		struct made *m = (void *)(uintptr_t)descriptor;                    \
                                                                                   \
		return m && m->kind == (letter) ? m : NULL;                        \
	}

MAKES(tensor, 't')
MAKES(dropout, 'd')
MAKES(rnn, 'r')
MAKES(data, 'a')
MAKES(handle, 'h')

static cudnnStatus_t destroy(void *descriptor)
{
	free(descriptor);
	return CUDNN_STATUS_SUCCESS;
}

#define NEED(condition)                                \
	do {                                           \
		if (!(condition))                      \
			return CUDNN_STATUS_BAD_PARAM; \
	} while (0)

static cudnnStatus_t set_stream(cudnnHandle_t h, cudaStream_t stream)
{
	(void)stream;
	NEED(handle(h));
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_tensor(cudnnTensorDescriptor_t desc, cudnnDataType_t type, int dims,
				const int dim[], const int stride[])
{
	struct made *t = tensor(desc);

	NEED(t && dims == 3);
	t->set = true;
	t->type = type;
	t->dims = dims;
	memcpy(t->dim, dim, sizeof(t->dim));
	memcpy(t->stride, stride, sizeof(t->stride));
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t get_tensor(const cudnnTensorDescriptor_t desc, int room, cudnnDataType_t *type,
				int *dims, int dim[], int stride[])
{
	const struct made *t = tensor(desc);
	size_t n;

	NEED(t && room >= 0);
	n = (size_t)(room < t->dims ? room : t->dims);
	*type = t->type;
	*dims = t->dims;
	memcpy(dim, t->dim, n * sizeof(*dim));
	memcpy(stride, t->stride, n * sizeof(*stride));
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t states_size(cudnnHandle_t h, size_t *size)
{
	NEED(handle(h));
	*size = RNN_STATES;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_dropout(cudnnDropoutDescriptor_t desc, cudnnHandle_t h, float probability,
				 void *states, size_t size, unsigned long long seed)
{
	struct made *d = dropout(desc);

	(void)seed;
	NEED(d && handle(h) && (!states || size >= RNN_STATES));
	d->set = true;
	d->dropout = probability;
	d->states = states;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t restore_dropout(cudnnDropoutDescriptor_t desc, cudnnHandle_t h,
				     float probability, void *states, size_t size,
				     unsigned long long seed)
{
	NEED(states);
	return set_dropout(desc, h, probability, states, size, seed);
}

static cudnnStatus_t set_rnn(cudnnRNNDescriptor_t desc, cudnnRNNAlgo_t algo, cudnnRNNMode_t mode,
			     cudnnRNNBiasMode_t bias, cudnnDirectionMode_t direction,
			     cudnnRNNInputMode_t input_mode, cudnnDataType_t type,
			     cudnnDataType_t precision, cudnnMathType_t math, int32_t input,
			     int32_t hidden, int32_t projection, int32_t layers,
			     cudnnDropoutDescriptor_t with, uint32_t flags)
{
	const struct made *d = with ? dropout(with) : NULL;
	struct made *r = rnn(desc);

	NEED(r && mode == CUDNN_LSTM && bias == CUDNN_RNN_DOUBLE_BIAS);
	NEED(direction == CUDNN_UNIDIRECTIONAL && input_mode == CUDNN_LINEAR_INPUT);
	NEED(type == CUDNN_DATA_FLOAT && precision == CUDNN_DATA_FLOAT);
	NEED(math == CUDNN_FMA_MATH && flags == CUDNN_RNN_PADDED_IO_DISABLED);
	NEED(input > 0 && hidden == projection && layers > 0);
	/* With dropout, there must be states. */
	NEED(!with || (d && d->set && (d->states || d->dropout == 0)));
	r->set = true;
	r->algo = algo;
	r->input = input;
	r->hidden = hidden;
	r->layers = layers;
	r->dropout = d ? d->dropout : 0;
	return CUDNN_STATUS_SUCCESS;
}

static bool is_rnn(const void *desc)
{
	const struct made *r = rnn(desc);

	return r && r->set && r->input == RNN_INPUT && r->hidden == RNN_HIDDEN &&
	       r->layers == RNN_LAYERS;
}

static cudnnStatus_t weight_size(cudnnHandle_t h, cudnnRNNDescriptor_t r, size_t *size)
{
	NEED(handle(h) && is_rnn(r));
	*size = RNN_WEIGHTS;
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t weight(cudnnHandle_t h, cudnnRNNDescriptor_t r, int32_t layer, size_t size,
			    const void *weights, int32_t linear, cudnnTensorDescriptor_t m_desc,
			    void **m, cudnnTensorDescriptor_t b_desc, void **b)
{
	int dim[] = {1, RNN_HIDDEN, layer || linear > 3 ? RNN_HIDDEN : RNN_INPUT};
	int bias[] = {1, RNN_HIDDEN, 1}, one[] = {RNN_HIDDEN, 1, 1};
	int stride[] = {dim[1] * dim[2], dim[2], 1};

	NEED(handle(h) && is_rnn(r) && size == RNN_WEIGHTS && weights);
	NEED(layer >= 0 && layer < RNN_LAYERS && linear >= 0 && linear <= 8);
	*m = *b = NULL;
	NEED(tensor(m_desc) && tensor(b_desc));
	tensor(m_desc)->dims = tensor(b_desc)->dims = 0;
	/* The matrix of a projection, which this network does not have. */
	if (linear == 8)
		return CUDNN_STATUS_SUCCESS;
	*m = (char *)(uintptr_t)weights + 4096 * (8 * layer + linear);
	*b = (char *)*m + 2048;
	return set_tensor(m_desc, CUDNN_DATA_FLOAT, 3, dim, stride) ||
			       set_tensor(b_desc, CUDNN_DATA_FLOAT, 3, bias, one)
		       ? CUDNN_STATUS_BAD_PARAM
		       : CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t set_data(cudnnRNNDataDescriptor_t desc, cudnnDataType_t type,
			      cudnnRNNDataLayout_t layout, int length, int batch, int vector,
			      const int sequences[], void *fill)
{
	struct made *d = data(desc);

	NEED(d && type == CUDNN_DATA_FLOAT && !fill && sequences);
	NEED(layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED);
	NEED(length == RNN_LENGTH && batch == RNN_BATCH);
	d->set = true;
	d->input = vector;
	memcpy(d->sequences, sequences, sizeof(d->sequences));
	return CUDNN_STATUS_SUCCESS;
}

static bool is_data(const void *desc, int vector)
{
	const struct made *d = data(desc);
	int i;

	for (i = 0; d && d->set && i < RNN_BATCH; i++)
		if (d->sequences[i] != RNN_LENGTH)
			return false;
	return d && d->set && d->input == vector;
}

static bool is_state(const void *desc)
{
	const struct made *t = tensor(desc);

	return t && t->set && t->dim[0] == RNN_LAYERS && t->dim[1] == RNN_BATCH &&
	       t->dim[2] == RNN_HIDDEN;
}

static cudnnStatus_t space(cudnnHandle_t h, cudnnRNNDescriptor_t r, cudnnForwardMode_t mode,
			   cudnnRNNDataDescriptor_t x, size_t *work, size_t *reserve)
{
	NEED(handle(h) && is_rnn(r) && is_data(x, RNN_INPUT));
	*work = RNN_WORK;
	*reserve = mode == CUDNN_FWD_MODE_TRAINING ? RNN_RESERVE : 0;
	return CUDNN_STATUS_SUCCESS;
}

#define IS(pointer, at) NEED((const void *)(pointer) == RNN_AT(at))

static cudnnStatus_t forward(cudnnHandle_t h, cudnnRNNDescriptor_t r, cudnnForwardMode_t mode,
			     const int32_t lengths[], cudnnRNNDataDescriptor_t x_desc,
			     const void *x, cudnnRNNDataDescriptor_t y_desc, void *y,
			     cudnnTensorDescriptor_t h_desc, const void *hx, void *hy,
			     cudnnTensorDescriptor_t c_desc, const void *cx, void *cy,
			     size_t weight_bytes, const void *weights, size_t work_bytes,
			     void *work, size_t reserve_bytes, void *reserve)
{
	NEED(handle(h) && is_rnn(r) && is_data(x_desc, RNN_INPUT) && is_data(y_desc, RNN_HIDDEN));
	NEED(mode == CUDNN_FWD_MODE_TRAINING && is_state(h_desc) && is_state(c_desc) && !lengths);
	NEED(weight_bytes == RNN_WEIGHTS && work_bytes == RNN_WORK && reserve_bytes == RNN_RESERVE);
	NEED(!hx && !cx);
	IS(x, 1);
	IS(y, 2);
	IS(hy, 3);
	IS(cy, 4);
	IS(weights, 5);
	IS(work, 6);
	IS(reserve, 7);
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t backward_data(cudnnHandle_t h, cudnnRNNDescriptor_t r, const int32_t lengths[],
				   cudnnRNNDataDescriptor_t y_desc, const void *y, const void *dy,
				   cudnnRNNDataDescriptor_t x_desc, void *dx,
				   cudnnTensorDescriptor_t h_desc, const void *hx, const void *dhy,
				   void *dhx, cudnnTensorDescriptor_t c_desc, const void *cx,
				   const void *dcy, void *dcx, size_t weight_bytes,
				   const void *weights, size_t work_bytes, void *work,
				   size_t reserve_bytes, void *reserve)
{
	NEED(handle(h) && is_rnn(r) && is_data(x_desc, RNN_INPUT) && is_data(y_desc, RNN_HIDDEN));
	NEED(is_state(h_desc) && is_state(c_desc) && !lengths && !hx && !cx && !dhx && !dcx);
	NEED(weight_bytes == RNN_WEIGHTS && work_bytes == RNN_WORK && reserve_bytes == RNN_RESERVE);
	IS(y, 2);
	IS(dy, 8);
	IS(dx, 9);
	IS(dhy, 3);
	IS(dcy, 4);
	IS(weights, 5);
	IS(work, 6);
	IS(reserve, 7);
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t backward_weights(cudnnHandle_t h, cudnnRNNDescriptor_t r,
				      cudnnWgradMode_t mode, const int32_t lengths[],
				      cudnnRNNDataDescriptor_t x_desc, const void *x,
				      cudnnTensorDescriptor_t h_desc, const void *hx,
				      cudnnRNNDataDescriptor_t y_desc, const void *y,
				      size_t weight_bytes, void *dweights, size_t work_bytes,
				      void *work, size_t reserve_bytes, void *reserve)
{
	NEED(handle(h) && is_rnn(r) && is_data(x_desc, RNN_INPUT) && is_data(y_desc, RNN_HIDDEN));
	NEED(is_state(h_desc) && mode == CUDNN_WGRAD_MODE_ADD && !lengths && !hx);
	NEED(weight_bytes == RNN_WEIGHTS && work_bytes == RNN_WORK && reserve_bytes == RNN_RESERVE);
	IS(x, 1);
	IS(y, 2);
	IS(dweights, 5);
	IS(work, 6);
	IS(reserve, 7);
	return CUDNN_STATUS_SUCCESS;
}

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	return strcmp(soname, "libcudnn.so.9") ? be_soft.lib_open(be, soname, why, size) : &ops;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	static const struct stand_in all[] = {
		{"cudnnCreate", (void *)create_handle},
		{"cudnnCreateTensorDescriptor", (void *)create_tensor},
		{"cudnnCreateDropoutDescriptor", (void *)create_dropout},
		{"cudnnCreateRNNDescriptor", (void *)create_rnn},
		{"cudnnCreateRNNDataDescriptor", (void *)create_data},
		{"cudnnSetStream", (void *)set_stream},
		{"cudnnSetTensorNdDescriptor", (void *)set_tensor},
		{"cudnnGetTensorNdDescriptor", (void *)get_tensor},
		{"cudnnDropoutGetStatesSize", (void *)states_size},
		{"cudnnSetDropoutDescriptor", (void *)set_dropout},
		{"cudnnRestoreDropoutDescriptor", (void *)restore_dropout},
		{"cudnnSetRNNDescriptor_v8", (void *)set_rnn},
		{"cudnnGetRNNWeightSpaceSize", (void *)weight_size},
		{"cudnnGetRNNWeightParams", (void *)weight},
		{"cudnnSetRNNDataDescriptor", (void *)set_data},
		{"cudnnGetRNNTempSpaceSizes", (void *)space},
		{"cudnnRNNForward", (void *)forward},
		{"cudnnRNNBackwardData_v8", (void *)backward_data},
		{"cudnnRNNBackwardWeights_v8", (void *)backward_weights},
	};
	void *fn;

	if (library != &ops)
		return be_soft.lib_symbol(be, library, name);
	fn = STAND_IN_FIND(all, name);
	if (fn)
		return fn;
	return strncmp(name, "cudnnDestroy", 12) ? NULL : (void *)destroy;
}

/* The program's pointers count as device memory. */
static bool valid(struct be *be, uint64_t addr, uint64_t len)
{
	const uint64_t first = (uintptr_t)RNN_AT(0), end = (uintptr_t)RNN_AT(RNN_POINTERS);

	if (addr >= first && addr < end && len <= end - addr)
		return true;
	return be_soft.mem_valid(be, addr, len);
}

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	ops = be_soft;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	ops.mem_valid = valid;
	return &ops;
}
