// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Recurrent networks of cuDNN in training: two kinds of cells, in one direction and in both, over
 * sequences of several lengths, in three layouts of the data; forward, and the gradients of the input,
 * of the first state and of all weights, beside the same on the CPU. Wrong calls come first.
 */
#include "dnn.h"

enum { INPUT = 6, HIDDEN = 8, BATCH = 3, LONGEST = 5 };

typedef std::vector<double> numbers;

static cudnnHandle_t handle;
static cudnnDropoutDescriptor_t dropout;

/* The longest first, as data without gaps must be. */
static const int lengths[BATCH] = {5, 4, 2};

struct network {
	cudnnRNNDescriptor_t desc;
	bool relu;
	int directions;
	size_t bytes;
	float *weights, *slopes;

	network(bool relu, int directions) : relu(relu), directions(directions), bytes(0)
	{
		DNN(cudnnCreateRNNDescriptor(&desc));
		DNN(cudnnSetRNNDescriptor_v8(desc, CUDNN_RNN_ALGO_STANDARD, relu ? CUDNN_RNN_RELU : CUDNN_RNN_TANH,
					     CUDNN_RNN_SINGLE_INP_BIAS,
					     directions == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
					     CUDNN_LINEAR_INPUT, CUDNN_DATA_FLOAT, CUDNN_DATA_FLOAT, CUDNN_FMA_MATH,
					     INPUT, HIDDEN, HIDDEN, 1, dropout, CUDNN_RNN_PADDED_IO_ENABLED));
		DNN(cudnnGetRNNWeightSpaceSize(handle, desc, &bytes));
		weights = (float *)room(bytes);
		slopes = (float *)room(bytes);
		CHECK(cudaMemset(slopes, 0, bytes));
	}
	~network()
	{
		DNN(cudnnDestroyRNNDescriptor(desc));
		CHECK(cudaFree(weights));
		CHECK(cudaFree(slopes));
	}
	/* Where a direction's matrix is, of the input (0) or of the state (1), and its bias, in numbers. */
	size_t place(int direction, int which, bool bias)
	{
		cudnnTensorDescriptor_t m_desc, b_desc;
		float *m = NULL, *b = NULL;

		DNN(cudnnCreateTensorDescriptor(&m_desc));
		DNN(cudnnCreateTensorDescriptor(&b_desc));
		DNN(cudnnGetRNNWeightParams(handle, desc, direction, bytes, weights, which, m_desc, (void **)&m, b_desc,
					    (void **)&b));
		DNN(cudnnDestroyTensorDescriptor(m_desc));
		DNN(cudnnDestroyTensorDescriptor(b_desc));
		REQUIRE(m && !b == (which == 1), "direction %d, matrix %d: %d", direction, which, b != NULL);
		return (bias ? b : m) - weights;
	}
};

static void wrong_calls(void)
{
	const int bad[BATCH] = {LONGEST + 1, 2, 1};
	double left = 0, right = 0;
	cudnnRNNClipMode_t clip;
	cudnnRNNDataDescriptor_t data;
	network net(false, 1);
	float fill = 0;

	DNN(cudnnCreateRNNDataDescriptor(&data));
	DNN_FAILS(cudnnSetRNNDataDescriptor(data, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, LONGEST,
					    BATCH, INPUT, bad, &fill));
	DNN_FAILS(cudnnSetRNNDataDescriptor(data, CUDNN_DATA_FLOAT, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, LONGEST,
					    0, INPUT, lengths, &fill));
	DNN(cudnnDestroyRNNDataDescriptor(data));
	DNN_FAILS(cudnnRNNSetClip_v9(net.desc, CUDNN_RNN_CLIP_MINMAX, 1, -1));
	DNN(cudnnRNNSetClip_v9(net.desc, CUDNN_RNN_CLIP_MINMAX, -2, 3));
	DNN(cudnnRNNGetClip_v9(net.desc, &clip, &left, &right));
	REQUIRE(clip == CUDNN_RNN_CLIP_MINMAX && left == -2 && right == 3, "%d %g %g", (int)clip, left, right);
}

/* Which place an element has in the data, in each of the layouts; none behind a sequence's end. */
static int place(cudnnRNNDataLayout_t layout, int time, int sequence, int vector, int i)
{
	int before = 0;

	if (layout == CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED)
		return (sequence * LONGEST + time) * vector + i;
	if (layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED)
		return (time * BATCH + sequence) * vector + i;
	for (int t = 0; t < time; t++)
		for (int b = 0; b < BATCH; b++)
			before += t < lengths[b];
	return (before + sequence) * vector + i;
}

struct data {
	cudnnRNNDataDescriptor_t desc;
	cudnnRNNDataLayout_t layout;
	int vector;
	numbers host;
	float *gpu;

	/* What lies behind the end of a sequence is 0. */
	data(cudnnRNNDataLayout_t layout, int vector)
	    : layout(layout), vector(vector), host(LONGEST * BATCH * vector),
	      gpu((float *)room(host.size() * sizeof(float)))
	{
		std::vector<float> numbers(host.size());
		float fill = 0;

		DNN(cudnnCreateRNNDataDescriptor(&desc));
		DNN(cudnnSetRNNDataDescriptor(desc, CUDNN_DATA_FLOAT, layout, LONGEST, BATCH, vector, lengths, &fill));
		for (int b = 0; b < BATCH; b++)
			for (int t = 0; t < lengths[b]; t++)
				for (int i = 0; i < vector; i++)
					at(t, b, i) = numbers[place(layout, t, b, vector, i)] = dnn_number() / 2;
		CHECK(cudaMemcpy(gpu, numbers.data(), numbers.size() * sizeof(float), cudaMemcpyHostToDevice));
	}
	~data()
	{
		DNN(cudnnDestroyRNNDataDescriptor(desc));
		CHECK(cudaFree(gpu));
	}
	double &at(int time, int sequence, int i)
	{
		return host[place(layout, time, sequence, vector, i)];
	}
	void check(const char *what)
	{
		std::vector<float> got(host.size());

		CHECK(cudaMemcpy(got.data(), gpu, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
		for (int b = 0; b < BATCH; b++)
			for (int t = 0; t < lengths[b]; t++)
				for (int i = 0; i < vector; i++) {
					double g = got[place(layout, t, b, vector, i)], w = at(t, b, i);

					REQUIRE(fabs(g - w) < 1e-4 * (1 + fabs(w)), "%s: %d of %d in %d is %g, not %g",
						what, i, t, b, g, w);
				}
	}
};

/*
 * h = f(W x + R h' + b), from the first to the last, or back. Then the gradients: of x and the first
 * state they are added up, of the weights too.
 */
static void on_cpu(network &net, int direction, const numbers &w, data &x, data &y, data &dy, data &dx,
		   tensor<float> &first, tensor<float> &dfirst, numbers &dw)
{
	const size_t in = net.place(direction, 0, false), state = net.place(direction, 1, false);
	const size_t bias = net.place(direction, 0, true);

	for (int b = 0; b < BATCH; b++) {
		numbers h(HIDDEN), d(HIDDEN);
		std::vector<numbers> all;

		for (int i = 0; i < HIDDEN; i++)
			h[i] = first.at(0, direction, b, i);
		for (int step = 0; step < lengths[b]; step++) {
			const int t = direction ? lengths[b] - 1 - step : step;

			all.push_back(h);
			for (int i = 0; i < HIDDEN; i++) {
				double sum = w[bias + i];

				for (int k = 0; k < INPUT; k++)
					sum += w[in + i * INPUT + k] * x.at(t, b, k);
				for (int k = 0; k < HIDDEN; k++)
					sum += w[state + i * HIDDEN + k] * all.back()[k];
				h[i] = y.at(t, b, direction * HIDDEN + i) = net.relu ? std::max(sum, 0.0) : tanh(sum);
			}
		}
		for (int step = lengths[b] - 1; step >= 0; step--) {
			const int t = direction ? lengths[b] - 1 - step : step;
			numbers before(HIDDEN);

			for (int i = 0; i < HIDDEN; i++) {
				const double v = y.at(t, b, direction * HIDDEN + i);
				const double g =
					(d[i] + dy.at(t, b, direction * HIDDEN + i)) * (net.relu ? v > 0 : 1 - v * v);

				dw[bias + i] += g;
				for (int k = 0; k < INPUT; k++) {
					dx.at(t, b, k) += g * w[in + i * INPUT + k];
					dw[in + i * INPUT + k] += g * x.at(t, b, k);
				}
				for (int k = 0; k < HIDDEN; k++) {
					before[k] += g * w[state + i * HIDDEN + k];
					dw[state + i * HIDDEN + k] += g * all[step][k];
				}
			}
			d = before;
		}
		for (int i = 0; i < HIDDEN; i++)
			dfirst.at(0, direction, b, i) = (float)d[i];
	}
}

static void train(bool relu, int directions, cudnnRNNDataLayout_t layout)
{
	const int dim[] = {directions, BATCH, HIDDEN}, stride[] = {BATCH * HIDDEN, HIDDEN, 1};
	network net(relu, directions);
	data x(layout, INPUT), dx(layout, INPUT), y(layout, directions * HIDDEN), dy(layout, directions * HIDDEN);
	tensor<float> first(1, directions, BATCH, HIDDEN), dfirst(1, directions, BATCH, HIDDEN);
	std::vector<float> w(net.bytes / sizeof(float)), got(w.size());
	numbers weights, dw(w.size());
	size_t work_bytes = 0, reserve_bytes = 0;
	void *work, *reserve;
	int *gpu_lengths = (int *)room(sizeof(lengths));

	for (float &v : w)
		v = dnn_number() / 4;
	weights.assign(w.begin(), w.end());
	CHECK(cudaMemcpy(net.weights, w.data(), net.bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(gpu_lengths, lengths, sizeof(lengths), cudaMemcpyHostToDevice));
	for (tensor<float> *t : {&first, &dfirst})
		DNN(cudnnSetTensorNdDescriptor(t->desc, CUDNN_DATA_FLOAT, 3, dim, stride));
	DNN(cudnnGetRNNTempSpaceSizes(handle, net.desc, CUDNN_FWD_MODE_TRAINING, x.desc, &work_bytes, &reserve_bytes));
	work = room(work_bytes);
	reserve = room(reserve_bytes);
	DNN(cudnnRNNForward(handle, net.desc, CUDNN_FWD_MODE_TRAINING, gpu_lengths, x.desc, x.gpu, y.desc, y.gpu,
			    first.desc, first.gpu, NULL, first.desc, NULL, NULL, net.bytes, net.weights, work_bytes,
			    work, reserve_bytes, reserve));
	DNN(cudnnRNNBackwardData_v8(handle, net.desc, gpu_lengths, y.desc, y.gpu, dy.gpu, x.desc, dx.gpu, first.desc,
				    first.gpu, NULL, dfirst.gpu, first.desc, NULL, NULL, NULL, net.bytes, net.weights,
				    work_bytes, work, reserve_bytes, reserve));
	DNN(cudnnRNNBackwardWeights_v8(handle, net.desc, CUDNN_WGRAD_MODE_ADD, gpu_lengths, x.desc, x.gpu, first.desc,
				       first.gpu, y.desc, y.gpu, net.bytes, net.slopes, work_bytes, work, reserve_bytes,
				       reserve));
	std::fill(dx.host.begin(), dx.host.end(), 0.0);
	for (int direction = 0; direction < directions; direction++)
		on_cpu(net, direction, weights, x, y, dy, dx, first, dfirst, dw);
	y.check("forward");
	dx.check("the gradient of the input");
	dfirst.check("the gradient of the first state");
	CHECK(cudaMemcpy(got.data(), net.slopes, net.bytes, cudaMemcpyDeviceToHost));
	for (int direction = 0; direction < directions; direction++)
		for (int i = 0; i < HIDDEN * (INPUT + HIDDEN + 1); i++) {
			const int which = i < HIDDEN * INPUT ? 0 : i < HIDDEN * (INPUT + HIDDEN) ? 1 : 2;
			const size_t at = net.place(direction, which % 2, which == 2) +
					  (which == 0	? i
					   : which == 1 ? i - HIDDEN * INPUT
							: i - HIDDEN * (INPUT + HIDDEN));

			REQUIRE(fabs(got[at] - dw[at]) < 2e-4 * (1 + fabs(dw[at])),
				"direction %d: weight %d has %g, not %g", direction, i, got[at], dw[at]);
		}
	for (void *p : {work, reserve, (void *)gpu_lengths})
		CHECK(cudaFree(p));
}

int main(void)
{
	handle = dnn_handle();
	DNN(cudnnCreateDropoutDescriptor(&dropout));
	DNN(cudnnSetDropoutDescriptor(dropout, handle, 0, NULL, 0, 0));
	wrong_calls();
	for (bool relu : {true, false})
		for (int directions : {1, 2})
			for (cudnnRNNDataLayout_t layout :
			     {CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED, CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED,
			      CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED})
				train(relu, directions, layout);
	DNN(cudnnDestroyDropoutDescriptor(dropout));
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("two kinds of recurrent cells, in one direction and in both, with all gradients\n");
	return 0;
}
