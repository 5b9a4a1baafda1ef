// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Convolutions of cuDNN in groups, for each channel alone, with gaps in the filter, with strides, turned
 * filters and in three types, forward and backward, by all algorithms that the library offers; bias,
 * sum and activation in the same call; beside the definition. Wrong calls come first.
 */
#include <cuda_fp16.h>

#include "dnn.h"

static cudnnHandle_t handle;

struct shape {
	int groups, channels, outputs, size, pad, step, dilation;
	cudnnConvolutionMode_t mode;
	cudnnTensorFormat_t format;

	int out(int in) const
	{
		return 1 + (in + 2 * pad - (dilation * (size - 1) + 1)) / step;
	}
};

enum { N = 2, H = 11, W = 14 };

template <typename T> struct convolution {
	const shape s;
	tensor<T> x, w, y, dy, dx, dw, bias;
	cudnnConvolutionDescriptor_t desc;
	cudnnFilterDescriptor_t filter;

	explicit convolution(const shape &s)
	    : s(s), x(N, s.channels, H, W, s.format), w(s.outputs, s.channels / s.groups, s.size, s.size, s.format),
	      y(N, s.outputs, s.out(H), s.out(W), s.format), dy(N, s.outputs, s.out(H), s.out(W), s.format),
	      dx(N, s.channels, H, W, s.format), dw(w.n, w.c, w.h, w.w, s.format), bias(1, s.outputs, 1, 1)
	{
		int n, c, h, v;

		DNN(cudnnCreateFilterDescriptor(&filter));
		DNN(cudnnSetFilter4dDescriptor(filter, data_type<T>(), s.format, w.n, w.c, w.h, w.w));
		DNN(cudnnCreateConvolutionDescriptor(&desc));
		DNN(cudnnSetConvolution2dDescriptor(desc, s.pad, s.pad, s.step, s.step, s.dilation, s.dilation, s.mode,
						    sizeof(T) == 8 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT));
		DNN(cudnnSetConvolutionGroupCount(desc, s.groups));
		DNN(cudnnSetConvolutionMathType(desc, sizeof(T) == 2 ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH));
		DNN(cudnnGetConvolution2dForwardOutputDim(desc, x.desc, filter, &n, &c, &h, &v));
		REQUIRE(n == y.n && c == y.c && h == y.h && v == y.w, "%d %d %d %d", n, c, h, v);
	}
	~convolution()
	{
		DNN(cudnnDestroyConvolutionDescriptor(desc));
		DNN(cudnnDestroyFilterDescriptor(filter));
	}
	/* All triples of an element of y, of x and of the filter that belong together. */
	template <typename F> void each(F f)
	{
		for (int i = 0; i < (int)y.host.size() * w.c * s.size * s.size; i++) {
			const int q = i % s.size, p = i / s.size % s.size, c = i / s.size / s.size % w.c;
			const int at = i / s.size / s.size / w.c, b = at % y.w, a = at / y.w % y.h;
			const int k = at / y.w / y.h % y.c, n = at / y.w / y.h / y.c;
			const int row = a * s.step - s.pad + p * s.dilation,
				  column = b * s.step - s.pad + q * s.dilation;
			const bool turned = s.mode == CUDNN_CONVOLUTION;

			if (row >= 0 && row < H && column >= 0 && column < W)
				f(&y.at(n, k, a, b) - y.host.data(),
				  &x.at(n, k / (w.n / s.groups) * w.c + c, row, column) - x.host.data(),
				  &w.at(k, c, turned ? s.size - 1 - p : p, turned ? s.size - 1 - q : q) -
					  w.host.data());
		}
	}
};

static void put(std::vector<double> &from, tensor<float> &to)
{
	std::copy(from.begin(), from.end(), to.host.begin());
}

static void put(std::vector<double> &from, tensor<double> &to)
{
	to.host = from;
}

static void put(std::vector<double> &from, tensor<__half> &to)
{
	for (size_t i = 0; i < from.size(); i++)
		to.host[i] = (__half)(float)from[i];
}

/*
 * Each algorithm that the library offers. It need not have all that it offers, but one at least:
 * f(what was found, workspace) says whether it has run.
 */
template <typename P, typename F> static void each_algorithm(const P *found, int count, F f)
{
	int ran = 0;

	for (int i = 0; i < count; i++)
		/* Some need far more memory than these sizes are worth. */
		if (found[i].status == CUDNN_STATUS_SUCCESS && found[i].memory <= 8 << 20) {
			void *space = room(found[i].memory);
			cudnnStatus_t status = f(found[i], space);

			REQUIRE(!status || CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED,
				"algorithm %d: %s", (int)found[i].algo, cudnnGetErrorString(status));
			CHECK(cudaFree(space));
			ran += !status;
		}
	REQUIRE(ran > 0, "none of %d algorithms", count);
}

template <typename T> static void run(const shape &s)
{
	const typename std::conditional<sizeof(T) == 8, double, float>::type one = 1, zero = 0;
	/* Those that transform the numbers first are less exact. */
	const double tolerance = sizeof(T) == 8 ? 1e-9 : 1e-2;
	convolution<T> c(s);
	std::vector<double> y(c.y.host.size()), dx(c.x.host.size()), dw(c.w.host.size()), db(s.outputs);
	cudnnConvolutionFwdAlgoPerf_t forward[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
	cudnnConvolutionBwdDataAlgoPerf_t data[CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT];
	cudnnConvolutionBwdFilterAlgoPerf_t filter[CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT];
	int count = 0;

	c.each([&](size_t i, size_t j, size_t k) {
		y[i] += (double)c.x.host[j] * (double)c.w.host[k];
		dx[j] += (double)c.dy.host[i] * (double)c.w.host[k];
		dw[k] += (double)c.dy.host[i] * (double)c.x.host[j];
	});
	for (int i = 0; i < (int)y.size(); i++)
		db[i / c.y.w / c.y.h % c.y.c] += (double)c.dy.at(i / c.y.w / c.y.h / c.y.c, i / c.y.w / c.y.h % c.y.c,
								 i / c.y.w % c.y.h, i % c.y.w);
	put(y, c.y);
	put(dx, c.dx);
	put(dw, c.dw);
	put(db, c.bias);
	DNN(cudnnGetConvolutionForwardAlgorithm_v7(handle, c.x.desc, c.filter, c.desc, c.y.desc,
						   CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, forward));
	each_algorithm(forward, count, [&](const cudnnConvolutionFwdAlgoPerf_t &p, void *space) {
		DNN(cudnnSetConvolutionMathType(c.desc, p.mathType));
		c.y.clear();
		cudnnStatus_t status =
			cudnnConvolutionForward(handle, &one, c.x.desc, c.x.gpu, c.filter, c.w.gpu, c.desc, p.algo,
						space, p.memory, &zero, c.y.desc, c.y.gpu);
		if (!status)
			c.y.check("forward", tolerance);
		return status;
	});
	DNN(cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, c.filter, c.dy.desc, c.desc, c.dx.desc,
							CUDNN_CONVOLUTION_BWD_DATA_ALGO_COUNT, &count, data));
	each_algorithm(data, count, [&](const cudnnConvolutionBwdDataAlgoPerf_t &p, void *space) {
		DNN(cudnnSetConvolutionMathType(c.desc, p.mathType));
		c.dx.clear();
		cudnnStatus_t status =
			cudnnConvolutionBackwardData(handle, &one, c.filter, c.w.gpu, c.dy.desc, c.dy.gpu, c.desc,
						     p.algo, space, p.memory, &zero, c.dx.desc, c.dx.gpu);
		if (!status)
			c.dx.check("the gradient of x", tolerance);
		return status;
	});
	DNN(cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, c.x.desc, c.dy.desc, c.desc, c.filter,
							  CUDNN_CONVOLUTION_BWD_FILTER_ALGO_COUNT, &count, filter));
	each_algorithm(filter, count, [&](const cudnnConvolutionBwdFilterAlgoPerf_t &p, void *space) {
		DNN(cudnnSetConvolutionMathType(c.desc, p.mathType));
		c.dw.clear();
		cudnnStatus_t status =
			cudnnConvolutionBackwardFilter(handle, &one, c.x.desc, c.x.gpu, c.dy.desc, c.dy.gpu, c.desc,
						       p.algo, space, p.memory, &zero, c.filter, c.dw.gpu);
		if (!status)
			c.dw.check("the gradient of the filter", tolerance);
		return status;
	});
	DNN(cudnnConvolutionBackwardBias(handle, &one, c.dy.desc, c.dy.gpu, &zero, c.bias.desc, c.bias.gpu));
	c.bias.check("the gradient of the bias", tolerance);
}

static void wrong_calls(void)
{
	const float one = 1, zero = 0;
	convolution<float> c({1, 4, 6, 3, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW});
	tensor<float> other(N, 7, H, W);
	size_t bytes = 0;
	int count = 0;

	DNN_FAILS(cudnnGetConvolutionForwardWorkspaceSize(handle, c.x.desc, c.filter, c.desc, other.desc,
							  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, &bytes));
	DNN_FAILS(cudnnConvolutionForward(handle, &one, c.x.desc, c.x.gpu, c.filter, c.w.gpu, c.desc,
					  CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, NULL, 0, &zero, other.desc,
					  other.gpu));
	DNN_FAILS(cudnnConvolutionForward(handle, &one, c.x.desc, c.x.gpu, c.filter, c.w.gpu, c.desc,
					  (cudnnConvolutionFwdAlgo_t)60, NULL, 0, &zero, c.y.desc, c.y.gpu));
	DNN_FAILS(cudnnConvolutionBackwardBias(handle, &one, c.dy.desc, c.dy.gpu, &zero, other.desc, other.gpu));
	other.check("after wrong calls");
	c.y.check("after wrong calls");
	DNN(cudnnGetConvolutionForwardAlgorithmMaxCount(handle, &count));
	REQUIRE(count > 0, "%d algorithms", count);
}

/* y = max(0, convolution + z / 2 + bias), and without z and the maximum. */
static void fused(void)
{
	const cudnnConvolutionFwdAlgo_t algo = CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM;
	const float one = 1, zero = 0, half = 0.5;
	convolution<float> c({1, 8, 16, 3, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW});
	tensor<float> z(N, 16, H, W);
	cudnnActivationDescriptor_t act;
	size_t bytes = 0;
	void *space;

	DNN(cudnnCreateActivationDescriptor(&act));
	DNN(cudnnGetConvolutionForwardWorkspaceSize(handle, c.x.desc, c.filter, c.desc, c.y.desc, algo, &bytes));
	space = room(bytes);
	for (bool relu : {true, false}) {
		DNN(cudnnSetActivationDescriptor(act, relu ? CUDNN_ACTIVATION_RELU : CUDNN_ACTIVATION_IDENTITY,
						 CUDNN_NOT_PROPAGATE_NAN, 0));
		DNN(cudnnConvolutionBiasActivationForward(handle, &one, c.x.desc, c.x.gpu, c.filter, c.w.gpu, c.desc,
							  algo, space, bytes, relu ? &half : &zero, z.desc, z.gpu,
							  c.bias.desc, c.bias.gpu, act, c.y.desc, c.y.gpu));
		for (int i = 0; i < (int)c.y.host.size(); i++)
			c.y.host[i] = (relu ? z.host[i] / 2 : 0) + c.bias.host[i / H / W % 16];
		c.each([&](size_t i, size_t j, size_t k) { c.y.host[i] += c.x.host[j] * c.w.host[k]; });
		for (float &v : c.y.host)
			v = relu ? std::max(v, 0.0f) : v;
		c.y.check(relu ? "with a sum, a bias and a maximum" : "with a bias", 1e-2);
	}
	DNN(cudnnDestroyActivationDescriptor(act));
	CHECK(cudaFree(space));
}

/* The library runs all algorithms, and tells which was the fastest. */
static void fastest(void)
{
	const int wanted = 3;
	convolution<float> c({2, 8, 16, 3, 1, 1, 1, CUDNN_CROSS_CORRELATION, CUDNN_TENSOR_NCHW});
	cudnnConvolutionFwdAlgoPerf_t found[3];
	int count = 0;

	DNN(cudnnFindConvolutionForwardAlgorithm(handle, c.x.desc, c.filter, c.desc, c.y.desc, wanted, &count, found));
	REQUIRE(count > 0 && count <= wanted && found[0].status == CUDNN_STATUS_SUCCESS, "%d algorithms", count);
	for (int i = 1; i < count; i++)
		REQUIRE(found[i].status != CUDNN_STATUS_SUCCESS || found[i].time >= found[i - 1].time,
			"algorithm %d is faster than the one before", i);
}

int main(void)
{
	const cudnnTensorFormat_t first = CUDNN_TENSOR_NCHW, last = CUDNN_TENSOR_NHWC;

	handle = dnn_handle();
	wrong_calls();
	run<float>({1, 4, 6, 3, 1, 1, 1, CUDNN_CONVOLUTION, first});
	run<float>({2, 8, 12, 3, 2, 1, 2, CUDNN_CROSS_CORRELATION, first});
	run<float>({8, 8, 16, 3, 1, 2, 1, CUDNN_CROSS_CORRELATION, first});
	run<float>({1, 8, 16, 5, 0, 3, 1, CUDNN_CROSS_CORRELATION, first});
	run<float>({1, 8, 16, 1, 0, 1, 1, CUDNN_CROSS_CORRELATION, first});
	run<double>({1, 4, 6, 3, 1, 2, 1, CUDNN_CROSS_CORRELATION, first});
	run<__half>({1, 8, 16, 3, 1, 1, 1, CUDNN_CROSS_CORRELATION, last});
	fused();
	fastest();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("convolutions in groups, with gaps and strides, in three types, fused, forward and backward\n");
	return 0;
}
