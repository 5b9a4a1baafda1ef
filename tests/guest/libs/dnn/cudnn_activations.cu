// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Activations of cuDNN and their gradients, and softmax in all its modes, in three types and both
 * layouts, with factors for the result and for what was there, in place too; beside the same on the
 * CPU. Wrong calls come first.
 */
#include <cuda_fp16.h>

#include "dnn.h"

static cudnnHandle_t handle;

/* cuDNN takes its factors as double for tensors of double, and as float for all others. */
template <typename T> struct scalar {
	typedef typename std::conditional<sizeof(T) == 8, double, float>::type type;
};

static void wrong_calls(void)
{
	const float one = 1, zero = 0;
	tensor<float> x(2, 3, 4, 5), y(2, 3, 4, 5), other(2, 3, 5, 4);
	tensor<double> wide(2, 3, 4, 5);
	cudnnActivationDescriptor_t desc;
	double beta = 0;

	DNN_FAILS(cudnnSetActivationDescriptor(NULL, CUDNN_ACTIVATION_RELU, CUDNN_PROPAGATE_NAN, 0));
	DNN(cudnnCreateActivationDescriptor(&desc));
	DNN_FAILS(cudnnSetActivationDescriptor(desc, (cudnnActivationMode_t)70, CUDNN_PROPAGATE_NAN, 0));
	DNN(cudnnSetActivationDescriptor(desc, CUDNN_ACTIVATION_SWISH, CUDNN_NOT_PROPAGATE_NAN, 0));
	DNN(cudnnSetActivationDescriptorSwishBeta(desc, 1.5));
	DNN(cudnnGetActivationDescriptorSwishBeta(desc, &beta));
	REQUIRE(beta == 1.5, "beta is %g", beta);
	DNN(cudnnSetActivationDescriptor(desc, CUDNN_ACTIVATION_RELU, CUDNN_NOT_PROPAGATE_NAN, 0));
	DNN_FAILS(cudnnActivationForward(handle, desc, &one, x.desc, x.gpu, &zero, other.desc, other.gpu));
	DNN_FAILS(cudnnActivationForward(handle, desc, &one, x.desc, x.gpu, &zero, wide.desc, wide.gpu));
	DNN_FAILS(cudnnActivationForward(handle, NULL, &one, x.desc, x.gpu, &zero, y.desc, y.gpu));
	DNN_FAILS(cudnnSoftmaxForward(handle, (cudnnSoftmaxAlgorithm_t)9, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x.desc,
				      x.gpu, &zero, y.desc, y.gpu));
	DNN_FAILS(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_FAST, (cudnnSoftmaxMode_t)9, &one, x.desc, x.gpu, &zero,
				      y.desc, y.gpu));
	DNN_FAILS(cudnnSoftmaxBackward(handle, CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_MODE_CHANNEL, &one, y.desc, y.gpu,
				       x.desc, x.gpu, &zero, wide.desc, wide.gpu));
	/* The identity is for fused convolutions alone. */
	DNN(cudnnSetActivationDescriptor(desc, CUDNN_ACTIVATION_IDENTITY, CUDNN_NOT_PROPAGATE_NAN, 0));
	DNN_FAILS(cudnnActivationForward(handle, desc, &one, x.desc, x.gpu, &zero, y.desc, y.gpu));
	for (tensor<float> *t : {&x, &y, &other})
		t->check("after wrong calls");
	DNN(cudnnDestroyActivationDescriptor(desc));
}

static double sigmoid(double v)
{
	return 1 / (1 + exp(-v));
}

static double value(cudnnActivationMode_t mode, double coef, double v)
{
	switch (mode) {
	case CUDNN_ACTIVATION_SIGMOID:
		return sigmoid(v);
	case CUDNN_ACTIVATION_RELU:
		return v > 0 ? v : 0;
	case CUDNN_ACTIVATION_TANH:
		return tanh(v);
	case CUDNN_ACTIVATION_CLIPPED_RELU:
		return v < 0 ? 0 : v > coef ? coef : v;
	default:
		return v > 0 ? v : coef * (exp(v) - 1);
	}
}

static double slope(cudnnActivationMode_t mode, double coef, double v)
{
	double y = value(mode, coef, v);

	switch (mode) {
	case CUDNN_ACTIVATION_SIGMOID:
		return y * (1 - y);
	case CUDNN_ACTIVATION_RELU:
		return v > 0;
	case CUDNN_ACTIVATION_TANH:
		return 1 - y * y;
	case CUDNN_ACTIVATION_CLIPPED_RELU:
		return v > 0 && v < coef;
	default:
		return v > 0 ? 1 : y + coef;
	}
}

template <typename T> static void activation(cudnnActivationMode_t mode, double coef, cudnnTensorFormat_t format)
{
	const typename scalar<T>::type one = 1, zero = 0, two = 2, half = 0.5;
	tensor<T> x(2, 3, 4, 5, format), y(2, 3, 4, 5, format), dy(2, 3, 4, 5, format), dx(2, 3, 4, 5, format);
	cudnnActivationDescriptor_t desc;

	/* Off the points where a slope jumps, which are multiples of 1/64. */
	for (T &v : x.host)
		v = (T)((double)v + 1.0 / 128);
	x.up();
	DNN(cudnnCreateActivationDescriptor(&desc));
	DNN(cudnnSetActivationDescriptor(desc, mode, CUDNN_NOT_PROPAGATE_NAN, coef));
	DNN(cudnnActivationForward(handle, desc, &two, x.desc, x.gpu, &half, y.desc, y.gpu));
	for (size_t i = 0; i < x.host.size(); i++)
		y.host[i] = (T)(2 * value(mode, coef, (double)x.host[i]) + (double)y.host[i] / 2);
	y.check("an activation, and half of what was there");
	DNN(cudnnActivationForward(handle, desc, &one, x.desc, x.gpu, &zero, y.desc, y.gpu));
	DNN(cudnnActivationBackward(handle, desc, &two, y.desc, y.gpu, dy.desc, dy.gpu, x.desc, x.gpu, &half, dx.desc,
				    dx.gpu));
	for (size_t i = 0; i < x.host.size(); i++) {
		y.host[i] = (T)value(mode, coef, (double)x.host[i]);
		dx.host[i] =
			(T)(2 * (double)dy.host[i] * slope(mode, coef, (double)x.host[i]) + (double)dx.host[i] / 2);
	}
	y.check("an activation");
	dx.check("its gradient", 2 * tolerance_of<T>());
	DNN(cudnnActivationForward(handle, desc, &one, x.desc, x.gpu, &zero, x.desc, x.gpu));
	x.host = y.host;
	x.check("an activation in place");
	DNN(cudnnDestroyActivationDescriptor(desc));
}

/* The places that are one sum's: all of an image, or the channels of one pixel. */
template <typename T> static std::vector<std::vector<size_t>> sums(tensor<T> &t, cudnnSoftmaxMode_t mode)
{
	std::vector<std::vector<size_t>> all(mode == CUDNN_SOFTMAX_MODE_INSTANCE ? t.n : t.n * t.h * t.w);

	for (int n = 0; n < t.n; n++)
		for (int c = 0; c < t.c; c++)
			for (int p = 0; p < t.h * t.w; p++)
				all[mode == CUDNN_SOFTMAX_MODE_INSTANCE ? n : n * t.h * t.w + p].push_back(
					&t.at(n, c, p / t.w, p % t.w) - t.host.data());
	return all;
}

template <typename T>
static void softmax(cudnnSoftmaxAlgorithm_t algorithm, cudnnSoftmaxMode_t mode, cudnnTensorFormat_t format)
{
	const typename scalar<T>::type one = 1, zero = 0, two = 2, half = 0.5;
	const bool log_of = algorithm == CUDNN_SOFTMAX_LOG;
	tensor<T> x(2, 5, 3, 4, format), y(2, 5, 3, 4, format), dy(2, 5, 3, 4, format), dx(2, 5, 3, 4, format);
	std::vector<double> want(x.host.size());

	/* exp of these is too large for any type. */
	if (algorithm != CUDNN_SOFTMAX_FAST)
		for (T &v : x.host)
			v = (T)((double)v + 1024);
	x.up();
	for (const std::vector<size_t> &set : sums(x, mode)) {
		double sum = 0, all = 0, top = -INFINITY;

		for (size_t i : set)
			top = std::max(top, (double)x.host[i]);
		for (size_t i : set)
			sum += exp((double)x.host[i] - top);
		for (size_t i : set) {
			want[i] = (double)x.host[i] - top - log(sum);
			want[i] = log_of ? want[i] : exp(want[i]);
			all += (double)dy.host[i] * (log_of ? 1 : want[i]);
		}
		for (size_t i : set) {
			double d = (double)dy.host[i];

			d = log_of ? d - exp(want[i]) * all : want[i] * (d - all);
			dx.host[i] = (T)(2 * d + (double)dx.host[i] / 2);
		}
	}
	DNN(cudnnSoftmaxForward(handle, algorithm, mode, &two, x.desc, x.gpu, &half, y.desc, y.gpu));
	for (size_t i = 0; i < want.size(); i++)
		y.host[i] = (T)(2 * want[i] + (double)y.host[i] / 2);
	y.check("softmax, and half of what was there", 2 * tolerance_of<T>());
	DNN(cudnnSoftmaxForward(handle, algorithm, mode, &one, x.desc, x.gpu, &zero, y.desc, y.gpu));
	for (size_t i = 0; i < want.size(); i++)
		y.host[i] = (T)want[i];
	y.check("softmax", 2 * tolerance_of<T>());
	DNN(cudnnSoftmaxBackward(handle, algorithm, mode, &two, y.desc, y.gpu, dy.desc, dy.gpu, &half, dx.desc,
				 dx.gpu));
	dx.check("the gradient of softmax", 8 * tolerance_of<T>());
}

template <typename T> static void all(cudnnTensorFormat_t format)
{
	activation<T>(CUDNN_ACTIVATION_SIGMOID, 0, format);
	activation<T>(CUDNN_ACTIVATION_RELU, 0, format);
	activation<T>(CUDNN_ACTIVATION_TANH, 0, format);
	activation<T>(CUDNN_ACTIVATION_CLIPPED_RELU, 0.75, format);
	activation<T>(CUDNN_ACTIVATION_ELU, 0.5, format);
	for (cudnnSoftmaxAlgorithm_t algorithm : {CUDNN_SOFTMAX_FAST, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_LOG})
		for (cudnnSoftmaxMode_t mode : {CUDNN_SOFTMAX_MODE_INSTANCE, CUDNN_SOFTMAX_MODE_CHANNEL})
			softmax<T>(algorithm, mode, format);
}

int main(void)
{
	handle = dnn_handle();
	wrong_calls();
	all<float>(CUDNN_TENSOR_NCHW);
	all<float>(CUDNN_TENSOR_NHWC);
	all<double>(CUDNN_TENSOR_NCHW);
	all<__half>(CUDNN_TENSOR_NCHW);
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("five activations and three kinds of softmax, forward and backward, in three types\n");
	return 0;
}
