// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * LSTMs of two layers by cuDNN, with and without dropout's states, beside the same on the CPU. The
 * library says where in the weights each matrix lies. Wrong calls come first.
 */
#include "dnn.h"

enum { LAYERS = 2, INPUT = 12, HIDDEN = 20, BATCH = 3, LENGTH = 5 };

typedef std::vector<float> numbers;

static cudnnHandle_t handle;
static cudnnDropoutDescriptor_t dropout;
static cudnnRNNDescriptor_t rnn;

static cudnnStatus_t set_rnn(int hidden)
{
	return cudnnSetRNNDescriptor_v8(rnn, CUDNN_RNN_ALGO_STANDARD, CUDNN_LSTM, CUDNN_RNN_DOUBLE_BIAS,
					CUDNN_UNIDIRECTIONAL, CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT,
					CUDNN_FMA_MATH, INPUT, hidden, hidden, LAYERS, dropout,
					CUDNN_RNN_PADDED_IO_ENABLED);
}

static void wrong_calls(void)
{
	size_t size;

	DNN_FAILS(cudnnSetDropoutDescriptor(NULL, handle, 0, NULL, 0, 0));
	DNN_FAILS(cudnnGetRNNWeightSpaceSize(handle, NULL, &size));
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0, NULL, 0, 0));
	DNN_FAILS(set_rnn(-1));
}

static float *up(const numbers &v)
{
	float *gpu;

	CHECK(cudaMalloc(&gpu, v.size() * sizeof(float)));
	CHECK(cudaMemcpy(gpu, v.data(), v.size() * sizeof(float), cudaMemcpyHostToDevice));
	return gpu;
}

static numbers some(size_t n)
{
	numbers v(n);

	for (float &x : v)
		x = dnn_number() / 4;
	return v;
}

/* Where one matrix and its bias lie, as numbers from the start of the weights. */
struct place {
	size_t matrix, bias;
};

static place find(int layer, int which, size_t size, float *weights)
{
	cudnnTensorDescriptor_t m_desc, b_desc;
	int dims, dim[3], stride[3], cols = layer || which > 3 ? HIDDEN : INPUT;
	cudnnDataType_t type;
	float *m, *b;

	DNN(cudnnCreateTensorDescriptor(&m_desc));
	DNN(cudnnCreateTensorDescriptor(&b_desc));
	/* Both at once, and in the second layer one after the other, as PyTorch asks. */
	if (!layer) {
		DNN(cudnnGetRNNWeightParams(handle, rnn, layer, size, weights, which, m_desc, (void **)&m, b_desc,
					    (void **)&b));
	} else {
		DNN(cudnnGetRNNWeightParams(handle, rnn, layer, size, weights, which, m_desc, (void **)&m, NULL,
					    NULL));
		DNN(cudnnGetRNNWeightParams(handle, rnn, layer, size, weights, which, NULL, NULL, b_desc,
					    (void **)&b));
	}
	DNN(cudnnGetTensorNdDescriptor(m_desc, 3, &type, &dims, dim, stride));
	REQUIRE(type == CUDNN_DATA_FLOAT && dims == 3 && dim[1] == HIDDEN && dim[2] == cols, "%d: %d %d %d", dims,
		dim[0], dim[1], dim[2]);
	DNN(cudnnGetTensorNdDescriptor(b_desc, 3, &type, &dims, dim, stride));
	REQUIRE(dims == 3 && dim[1] == HIDDEN && dim[2] == 1, "%d: %d %d %d", dims, dim[0], dim[1], dim[2]);
	DNN(cudnnDestroyTensorDescriptor(m_desc));
	DNN(cudnnDestroyTensorDescriptor(b_desc));
	return {(size_t)(m - weights), (size_t)(b - weights)};
}

static float sigmoid(float x)
{
	return 1 / (1 + expf(-x));
}

/* One layer for the whole length and batch: x becomes the layer's output. */
static numbers layer_on_cpu(const numbers &x, const numbers &w, const place at[8], int inputs)
{
	numbers y(LENGTH * BATCH * HIDDEN), h(HIDDEN), c(HIDDEN);

	for (int b = 0; b < BATCH; b++) {
		std::fill(h.begin(), h.end(), 0.0f);
		std::fill(c.begin(), c.end(), 0.0f);
		for (int t = 0; t < LENGTH; t++) {
			const float *in = &x[(t * BATCH + b) * inputs];
			numbers last = h;

			for (int i = 0; i < HIDDEN; i++) {
				float sum[4];

				for (int g = 0; g < 4; g++) {
					sum[g] = w[at[g].bias + i] + w[at[g + 4].bias + i];
					for (int k = 0; k < inputs; k++)
						sum[g] += w[at[g].matrix + i * inputs + k] * in[k];
					for (int k = 0; k < HIDDEN; k++)
						sum[g] += w[at[g + 4].matrix + i * HIDDEN + k] * last[k];
				}
				c[i] = sigmoid(sum[1]) * c[i] + sigmoid(sum[0]) * tanhf(sum[2]);
				h[i] = sigmoid(sum[3]) * tanhf(c[i]);
				y[(t * BATCH + b) * HIDDEN + i] = h[i];
			}
		}
	}
	return y;
}

static cudnnRNNDataDescriptor_t data(int vector)
{
	const int lengths[BATCH] = {LENGTH, LENGTH, LENGTH};
	cudnnRNNDataDescriptor_t desc;
	float fill = 0;

	DNN(cudnnCreateRNNDataDescriptor(&desc));
	DNN(cudnnSetRNNDataDescriptor(desc, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, LENGTH, BATCH,
				      vector, lengths, &fill));
	return desc;
}

static void forward(const char *what)
{
	const int dim[] = {LAYERS, BATCH, HIDDEN}, stride[] = {BATCH * HIDDEN, HIDDEN, 1};
	const int lengths[BATCH] = {LENGTH, LENGTH, LENGTH};
	cudnnRNNDataDescriptor_t x_desc = data(INPUT), y_desc = data(HIDDEN);
	numbers x = some(LENGTH * BATCH * INPUT), got(LENGTH * BATCH * HIDDEN), w, want = x;
	cudnnTensorDescriptor_t h_desc;
	size_t size, work_size, reserve_size;
	void *work, *reserve;
	float *y, *weights, *gx = up(x);
	int *gpu_lengths;

	DNN(cudnnGetRNNWeightSpaceSize(handle, rnn, &size));
	w = some(size / sizeof(float));
	weights = up(w);
	DNN(cudnnCreateTensorDescriptor(&h_desc));
	DNN(cudnnSetTensorNdDescriptor(h_desc, CUDNN_DATA_FLOAT, 3, dim, stride));
	DNN(cudnnGetRNNTempSpaceSizes(handle, rnn, CUDNN_FWD_MODE_INFERENCE, x_desc, &work_size, &reserve_size));
	CHECK(cudaMalloc(&work, work_size + 1));
	CHECK(cudaMalloc(&reserve, reserve_size + 1));
	CHECK(cudaMalloc(&y, got.size() * sizeof(float)));
	CHECK(cudaMalloc(&gpu_lengths, sizeof(lengths)));
	CHECK(cudaMemcpy(gpu_lengths, lengths, sizeof(lengths), cudaMemcpyHostToDevice));
	DNN(cudnnRNNForward(handle, rnn, CUDNN_FWD_MODE_INFERENCE, gpu_lengths, x_desc, gx, y_desc, y, h_desc, NULL,
			    NULL, h_desc, NULL, NULL, size, weights, work_size, work, reserve_size, reserve));
	CHECK(cudaMemcpy(got.data(), y, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
	for (int layer = 0; layer < LAYERS; layer++) {
		place at[8];

		for (int which = 0; which < 8; which++)
			at[which] = find(layer, which, size, weights);
		want = layer_on_cpu(want, w, at, layer ? HIDDEN : INPUT);
	}
	for (size_t i = 0; i < got.size(); i++)
		REQUIRE(fabsf(got[i] - want[i]) < 1e-4f, "%s: %zu is %g, not %g", what, i, got[i], want[i]);
	for (void *p : {(void *)gx, (void *)weights, work, reserve, (void *)y, (void *)gpu_lengths})
		CHECK(cudaFree(p));
	DNN(cudnnDestroyRNNDataDescriptor(x_desc));
	DNN(cudnnDestroyRNNDataDescriptor(y_desc));
	DNN(cudnnDestroyTensorDescriptor(h_desc));
}

int main(void)
{
	size_t bytes;
	void *states;

	handle = dnn_handle();
	DNN(cudnnCreateDropoutDescriptor(&dropout));
	DNN(cudnnCreateRNNDescriptor(&rnn));
	wrong_calls();
	DNN(set_rnn(HIDDEN));
	forward("without states");
	DNN(cudnnDropoutGetStatesSize(handle, &bytes));
	CHECK(cudaMalloc(&states, bytes));
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0.25f, states, bytes, 7));
	DNN(set_rnn(HIDDEN));
	/* Inference drops nothing. */
	forward("with states");
	DNN(cudnnDestroyRNNDescriptor(rnn));
	DNN(cudnnDestroyDropoutDescriptor(dropout));
	DNN(cudnnDestroy(handle));
	CHECK(cudaFree(states));
	printf("two layers of an LSTM, with and without states of dropout\n");
	return 0;
}
