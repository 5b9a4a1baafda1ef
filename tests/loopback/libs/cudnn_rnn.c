// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * An LSTM as PyTorch trains one: without dropout the descriptor of it has no states; the
 * descriptors of weights are the library's to fill, and are asked about afterwards. Descriptors
 * that were never set, or are not there, come first. cudnn_rnn_backend.c is the library.
 */
#include <cudnn.h>

#include "../check.h"
#include "cudnn_rnn.h"

#define IS(call, want)                                                                    \
	do {                                                                              \
		cudnnStatus_t got_ = (call);                                              \
		REQUIRE(got_ == (want), "%s: %d, not %d", #call, (int)got_, (int)(want)); \
	} while (0)
#define DNN(call) IS(call, CUDNN_STATUS_SUCCESS)

static cudnnHandle_t handle;
static cudnnDropoutDescriptor_t dropout;
static cudnnRNNDescriptor_t rnn;

static cudnnStatus_t set_rnn(cudnnRNNDescriptor_t r, cudnnDropoutDescriptor_t with)
{
	return cudnnSetRNNDescriptor_v8(r, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM,
					CUDNN_RNN_DOUBLE_BIAS, CUDNN_UNIDIRECTIONAL,
					CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
					CUDNN_FMA_MATH, RNN_INPUT, RNN_HIDDEN, RNN_HIDDEN,
					RNN_LAYERS, with, CUDNN_RNN_PADDED_IO_DISABLED);
}

static void wrong(void)
{
	size_t size;

	IS(set_rnn(NULL, dropout), CUDNN_STATUS_BAD_PARAM);
	/* Never set. */
	IS(set_rnn(rnn, dropout), CUDNN_STATUS_BAD_PARAM);
	IS(cudnnGetRNNWeightSpaceSize(handle, rnn, &size), CUDNN_STATUS_BAD_PARAM);
	/* States that are too few. */
	IS(cudnnSetDropoutDescriptor(dropout, handle, 0.5f, RNN_AT(0), 1, 5),
	   CUDNN_STATUS_BAD_PARAM);
	IS(set_rnn(rnn, dropout), CUDNN_STATUS_BAD_PARAM);
	/* Dropout without states. */
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0.5f, NULL, 0, 0));
	IS(set_rnn(rnn, dropout), CUDNN_STATUS_BAD_PARAM);
	/* What the library does not restore, it does not restore here. */
	cudnnRestoreDropoutDescriptor(dropout, handle, 0, NULL, 0, 0);
	IS(set_rnn(rnn, dropout), CUDNN_STATUS_BAD_PARAM);
}

/* The descriptor has this shape. 0: there is no such matrix. */
static void shape(cudnnTensorDescriptor_t desc, int rows, int cols)
{
	int dims = 77, dim[5] = {0}, stride[5] = {0};
	cudnnDataType_t type;

	DNN(cudnnGetTensorNdDescriptor(desc, 5, &type, &dims, dim, stride));
	if (!rows) {
		REQUIRE(dims == 0, "%d dimensions of nothing", dims);
		return;
	}
	REQUIRE(type == CUDNN_DATA_FLOAT && dims == 3, "type %d, %d dimensions", (int)type, dims);
	REQUIRE(dim[0] == 1 && dim[1] == rows && dim[2] == cols, "%d %d", dim[1], dim[2]);
	REQUIRE(stride[1] == cols && stride[2] == 1, "%d %d", stride[1], stride[2]);
}

static void weights(char *at)
{
	cudnnTensorDescriptor_t m_desc, b_desc;
	char *m, *b;
	int layer, linear;
	size_t size;

	DNN(cudnnGetRNNWeightSpaceSize(handle, rnn, &size));
	REQUIRE(size == RNN_WEIGHTS, "%zu bytes", size);
	DNN(cudnnCreateTensorDescriptor(&m_desc));
	DNN(cudnnCreateTensorDescriptor(&b_desc));
	for (layer = 0; layer < RNN_LAYERS; layer++)
		for (linear = 0; linear <= 8; linear++) {
			bool none = linear == 8;

			/* The matrix alone, and the bias alone. */
			DNN(cudnnGetRNNWeightParams(handle, rnn, layer, size, at, linear, m_desc,
						    (void **)&m, NULL, NULL));
			DNN(cudnnGetRNNWeightParams(handle, rnn, layer, size, at, linear, NULL,
						    NULL, b_desc, (void **)&b));
			REQUIRE(m == (none ? NULL : at + 4096 * (8 * layer + linear)), "matrix");
			REQUIRE(b == (none ? NULL : m + 2048), "bias");
			shape(m_desc, none ? 0 : RNN_HIDDEN,
			      layer || linear > 3 ? RNN_HIDDEN : RNN_INPUT);
			shape(b_desc, none ? 0 : RNN_HIDDEN, 1);
		}
	IS(cudnnGetRNNWeightParams(handle, rnn, RNN_LAYERS, size, at, 0, m_desc, (void **)&m,
				   b_desc, (void **)&b),
	   CUDNN_STATUS_BAD_PARAM);
	DNN(cudnnDestroyTensorDescriptor(m_desc));
	DNN(cudnnDestroyTensorDescriptor(b_desc));
}

static void train(void)
{
	const int lengths[RNN_BATCH] = {RNN_LENGTH, RNN_LENGTH, RNN_LENGTH};
	const int dim[] = {RNN_LAYERS, RNN_BATCH, RNN_HIDDEN};
	const int stride[] = {RNN_BATCH * RNN_HIDDEN, RNN_HIDDEN, 1};
	cudnnRNNDataDescriptor_t x, y;
	cudnnTensorDescriptor_t h, c;
	size_t work, reserve;
	int i;

	DNN(cudnnCreateRNNDataDescriptor(&x));
	DNN(cudnnCreateRNNDataDescriptor(&y));
	DNN(cudnnCreateTensorDescriptor(&h));
	DNN(cudnnCreateTensorDescriptor(&c));
	DNN(cudnnSetRNNDataDescriptor(x, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
				      RNN_LENGTH, RNN_BATCH, RNN_INPUT, lengths, NULL));
	DNN(cudnnSetRNNDataDescriptor(y, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED,
				      RNN_LENGTH, RNN_BATCH, RNN_HIDDEN, lengths, NULL));
	DNN(cudnnSetTensorNdDescriptor(h, CUDNN_DATA_FLOAT, 3, dim, stride));
	DNN(cudnnSetTensorNdDescriptor(c, CUDNN_DATA_FLOAT, 3, dim, stride));
	DNN(cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_TRAINING, x, &work, &reserve));
	REQUIRE(work == RNN_WORK && reserve == RNN_RESERVE, "%zu and %zu", work, reserve);
	for (i = 0; i < 3; i++) {
		DNN(cudnnRNNForward(handle, rnn, CUDNN_FWD_MODE_TRAINING, NULL, x, RNN_AT(1), y,
				    RNN_AT(2), h, NULL, RNN_AT(3), c, NULL, RNN_AT(4), RNN_WEIGHTS,
				    RNN_AT(5), work, RNN_AT(6), reserve, RNN_AT(7)));
		DNN(cudnnRNNBackwardData_v8(handle, rnn, NULL, y, RNN_AT(2), RNN_AT(8), x,
					    RNN_AT(9), h, NULL, RNN_AT(3), NULL, c, NULL, RNN_AT(4),
					    NULL, RNN_WEIGHTS, RNN_AT(5), work, RNN_AT(6), reserve,
					    RNN_AT(7)));
		DNN(cudnnRNNBackwardWeights_v8(handle, rnn, CUDNN_WGRAD_MODE_ADD, NULL, x,
					       RNN_AT(1), h, NULL, y, RNN_AT(2), RNN_WEIGHTS,
					       RNN_AT(5), work, RNN_AT(6), reserve, RNN_AT(7)));
	}
	/* Those that were posted have not failed either. */
	OK(cudaDeviceSynchronize());
	DNN(cudnnDestroyRNNDataDescriptor(x));
	DNN(cudnnDestroyRNNDataDescriptor(y));
	DNN(cudnnDestroyTensorDescriptor(h));
	DNN(cudnnDestroyTensorDescriptor(c));
}

int main(int argc, char **argv)
{
	char path[4096];

	(void)argc;
	snprintf(path, sizeof(path), "%s_backend.so", argv[0]);
	setenv("QCU_LOOPBACK_BACKEND", path, 1);
	DNN(cudnnCreate(&handle));
	DNN(cudnnCreateDropoutDescriptor(&dropout));
	DNN(cudnnCreateRNNDescriptor(&rnn));
	wrong();
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0, NULL, 0, 0));
	DNN(set_rnn(rnn, dropout));
	weights(RNN_AT(5));
	weights(RNN_NOWHERE);
	train();
	/* With dropout: states that are filled, and states that are there already. */
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0.25f, RNN_AT(0), RNN_STATES, 5));
	DNN(set_rnn(rnn, dropout));
	train();
	DNN(cudnnRestoreDropoutDescriptor(dropout, handle, 0.5f, RNN_AT(0), RNN_STATES, 5));
	DNN(set_rnn(rnn, dropout));
	train();
	DNN(set_rnn(rnn, NULL));
	train();
	DNN(cudnnDestroyRNNDescriptor(rnn));
	DNN(cudnnDestroyDropoutDescriptor(dropout));
	DNN(cudnnDestroy(handle));
	return 0;
}
