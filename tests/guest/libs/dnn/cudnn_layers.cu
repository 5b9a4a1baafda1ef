// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Layers of cuDNN's legacy API in single and double precision: sums, activations, softmax, pooling
 * and batch normalization, forward and backward, beside the same on the CPU. Wrong calls come first.
 */
#include <algorithm>

#include "dnn.h"

static cudnnHandle_t handle;

static void wrong_calls(void)
{
	const float one = 1, zero = 0;
	tensor<float> x(2, 3, 4, 5), y(2, 3, 4, 5), other(2, 3, 4, 6);
	cudnnTensorDescriptor_t gone, unset;
	int n[8], dims;
	cudnnDataType_t type;

	DNN_FAILS(cudnnCreate(NULL));
	DNN_FAILS(cudnnSetStream(NULL, NULL));
	DNN_FAILS(cudnnSetTensor4dDescriptor(x.desc, CUDNN_TENSOR_NCHW, (cudnnDataType_t)99, 2, 3, 4, 5));
	DNN_FAILS(cudnnSetTensor4dDescriptor(x.desc, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, -2, 3, 4, 5));
	/* A call that failed has changed nothing. */
	DNN(cudnnGetTensorNdDescriptor(x.desc, 4, &type, &dims, n, n + 4));
	REQUIRE(type == CUDNN_DATA_FLOAT && dims == 4 && n[0] == 2 && n[1] == 3 && n[2] == 4 && n[3] == 5 &&
			n[4] == 60 && n[5] == 20 && n[6] == 5 && n[7] == 1,
		"%d %d: %d %d %d %d, %d %d %d %d", (int)type, dims, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7]);
	DNN_FAILS(cudnnSoftmaxForward(NULL, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x.desc, x.gpu,
				      &zero, y.desc, y.gpu));
	DNN_FAILS(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x.desc, x.gpu,
				      &zero, other.desc, y.gpu));
	DNN_FAILS(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x.desc, x.gpu,
				      &zero, NULL, y.gpu));
	DNN(cudnnCreateTensorDescriptor(&unset));
	DNN_FAILS(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x.desc, x.gpu,
				      &zero, unset, y.gpu));
	DNN(cudnnDestroyTensorDescriptor(unset));
	DNN(cudnnCreateTensorDescriptor(&gone));
	DNN(cudnnDestroyTensorDescriptor(gone));
	y.check("after wrong calls");
	CHECK(cudaDeviceSynchronize());
}

template <typename T> static void sums(void)
{
	const T two = 2, half = 0.5, three = 3;
	tensor<T> x(2, 3, 4, 5), bias(1, 3, 1, 1);

	DNN(cudnnAddTensor(handle, &two, bias.desc, bias.gpu, &half, x.desc, x.gpu));
	for (int i = 0; i < x.n; i++)
		for (int j = 0; j < x.c; j++)
			for (int k = 0; k < x.h; k++)
				for (int l = 0; l < x.w; l++)
					x.at(i, j, k, l) = two * bias.host[j] + half * x.at(i, j, k, l);
	x.check("a sum");
	DNN(cudnnScaleTensor(handle, x.desc, x.gpu, &three));
	for (T &v : x.host)
		v *= three;
	x.check("a scaled tensor");
	DNN(cudnnSetTensor(handle, x.desc, x.gpu, &half));
	std::fill(x.host.begin(), x.host.end(), half);
	x.check("a tensor of one value");
}

template <typename T> static void activation(void)
{
	const T one = 1, zero = 0;
	tensor<T> x(2, 3, 4, 5), y(2, 3, 4, 5), dy(2, 3, 4, 5), dx(2, 3, 4, 5);
	cudnnActivationDescriptor_t desc;
	cudnnActivationMode_t mode;
	cudnnNanPropagation_t nan;
	double coef;

	DNN(cudnnCreateActivationDescriptor(&desc));
	DNN(cudnnSetActivationDescriptor(desc, CUDNN_ACTIVATION_TANH, CUDNN_PROPAGATE_NAN, 0.25));
	DNN(cudnnGetActivationDescriptor(desc, &mode, &nan, &coef));
	REQUIRE(mode == CUDNN_ACTIVATION_TANH && nan == CUDNN_PROPAGATE_NAN && coef == 0.25, "%d %d %g", (int)mode,
		(int)nan, coef);
	DNN(cudnnActivationForward(handle, desc, &one, x.desc, x.gpu, &zero, y.desc, y.gpu));
	for (size_t i = 0; i < x.host.size(); i++)
		y.host[i] = (T)tanh((double)x.host[i]);
	y.check("tanh");
	DNN(cudnnActivationBackward(handle, desc, &one, y.desc, y.gpu, dy.desc, dy.gpu, x.desc, x.gpu, &zero, dx.desc,
				    dx.gpu));
	for (size_t i = 0; i < x.host.size(); i++)
		dx.host[i] = dy.host[i] * (1 - y.host[i] * y.host[i]);
	dx.check("the gradient of tanh");
	DNN(cudnnDestroyActivationDescriptor(desc));
}

template <typename T> static void softmax(void)
{
	const T one = 1, zero = 0;
	tensor<T> x(3, 7, 1, 1), y(3, 7, 1, 1), dy(3, 7, 1, 1), dx(3, 7, 1, 1);

	DNN(cudnnSoftmaxForward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, x.desc, x.gpu, &zero,
				y.desc, y.gpu));
	for (int i = 0; i < x.n; i++) {
		double sum = 0;

		for (int j = 0; j < x.c; j++)
			sum += exp((double)x.at(i, j, 0, 0));
		for (int j = 0; j < x.c; j++)
			y.at(i, j, 0, 0) = (T)(exp((double)x.at(i, j, 0, 0)) / sum);
	}
	y.check("softmax");
	DNN(cudnnSoftmaxBackward(handle, CUDNN_SOFTMAX_ACCURATE, CUDNN_SOFTMAX_MODE_CHANNEL, &one, y.desc, y.gpu,
				 dy.desc, dy.gpu, &zero, dx.desc, dx.gpu));
	for (int i = 0; i < x.n; i++) {
		double sum = 0;

		for (int j = 0; j < x.c; j++)
			sum += (double)y.at(i, j, 0, 0) * (double)dy.at(i, j, 0, 0);
		for (int j = 0; j < x.c; j++)
			dx.at(i, j, 0, 0) = (T)((double)y.at(i, j, 0, 0) * ((double)dy.at(i, j, 0, 0) - sum));
	}
	dx.check("the gradient of softmax");
}

template <typename T> static void pooling(void)
{
	const T one = 1, zero = 0;
	const int two[] = {2, 2}, none[] = {0, 0};
	tensor<T> x(2, 3, 6, 8), y(2, 3, 3, 4), dy(2, 3, 3, 4), dx(2, 3, 6, 8);
	cudnnPoolingDescriptor_t desc;
	int n, c, h, w;

	DNN(cudnnCreatePoolingDescriptor(&desc));
	DNN(cudnnSetPoolingNdDescriptor(desc, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, two, none, two));
	DNN(cudnnGetPooling2dForwardOutputDim(desc, x.desc, &n, &c, &h, &w));
	REQUIRE(n == 2 && c == 3 && h == 3 && w == 4, "%d %d %d %d", n, c, h, w);
	DNN(cudnnPoolingForward(handle, desc, &one, x.desc, x.gpu, &zero, y.desc, y.gpu));
	std::fill(dx.host.begin(), dx.host.end(), (T)0);
	for (int i = 0; i < y.n; i++)
		for (int j = 0; j < y.c; j++)
			for (int k = 0; k < y.h; k++)
				for (int l = 0; l < y.w; l++) {
					int best = 0;

					for (int p = 1; p < 4; p++)
						if (x.at(i, j, 2 * k + p / 2, 2 * l + p % 2) >
						    x.at(i, j, 2 * k + best / 2, 2 * l + best % 2))
							best = p;
					y.at(i, j, k, l) = x.at(i, j, 2 * k + best / 2, 2 * l + best % 2);
					dx.at(i, j, 2 * k + best / 2, 2 * l + best % 2) = dy.at(i, j, k, l);
				}
	y.check("the maxima");
	DNN(cudnnPoolingBackward(handle, desc, &one, y.desc, y.gpu, dy.desc, dy.gpu, x.desc, x.gpu, &zero, dx.desc,
				 dx.gpu));
	dx.check("the gradient of the maxima");
	DNN(cudnnDestroyPoolingDescriptor(desc));
}

template <typename T> static void batch_norm(void)
{
	const T one = 1, zero = 0;
	const double eps = 1e-4;
	tensor<T> x(4, 3, 5, 6), y(4, 3, 5, 6), dy(4, 3, 5, 6), dx(4, 3, 5, 6);
	tensor<T> scale(1, 3, 1, 1), bias(1, 3, 1, 1), dscale(1, 3, 1, 1), dbias(1, 3, 1, 1);
	tensor<T> mean(1, 3, 1, 1), var(1, 3, 1, 1), saved(1, 3, 1, 1), inverse(1, 3, 1, 1);
	const int per = x.n * x.h * x.w;
	cudnnTensorDescriptor_t derived;
	cudnnDataType_t type;
	int n[8];

	DNN(cudnnCreateTensorDescriptor(&derived));
	DNN(cudnnDeriveBNTensorDescriptor(derived, x.desc, CUDNN_BATCHNORM_SPATIAL));
	DNN(cudnnGetTensor4dDescriptor(derived, &type, n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7));
	REQUIRE(n[0] == 1 && n[1] == 3 && n[2] == 1 && n[3] == 1, "%d %d %d %d", n[0], n[1], n[2], n[3]);
	DNN(cudnnBatchNormalizationForwardTraining(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x.desc, x.gpu, y.desc,
						   y.gpu, derived, scale.gpu, bias.gpu, 1, mean.gpu, var.gpu, eps,
						   saved.gpu, inverse.gpu));
	DNN(cudnnBatchNormalizationBackward(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, &one, &zero, x.desc, x.gpu,
					    dy.desc, dy.gpu, dx.desc, dx.gpu, derived, scale.gpu, dscale.gpu, dbias.gpu,
					    eps, saved.gpu, inverse.gpu));
	for (int j = 0; j < x.c; j++) {
		double sum = 0, squares = 0, m, inv, g = 0, gx = 0;

		for (int i = 0; i < x.n; i++)
			for (int k = 0; k < x.h * x.w; k++)
				sum += x.at(i, j, 0, k);
		m = sum / per;
		for (int i = 0; i < x.n; i++)
			for (int k = 0; k < x.h * x.w; k++)
				squares += (x.at(i, j, 0, k) - m) * (x.at(i, j, 0, k) - m);
		inv = 1 / sqrt(squares / per + eps);
		mean.host[j] = saved.host[j] = (T)m;
		var.host[j] = (T)(squares / (per - 1));
		inverse.host[j] = (T)inv;
		for (int i = 0; i < x.n; i++)
			for (int k = 0; k < x.h * x.w; k++) {
				double hat = (x.at(i, j, 0, k) - m) * inv;

				y.at(i, j, 0, k) = (T)(hat * scale.host[j] + bias.host[j]);
				g += dy.at(i, j, 0, k);
				gx += dy.at(i, j, 0, k) * hat;
			}
		dbias.host[j] = (T)g;
		dscale.host[j] = (T)gx;
		for (int i = 0; i < x.n; i++)
			for (int k = 0; k < x.h * x.w; k++) {
				double hat = (x.at(i, j, 0, k) - m) * inv;

				dx.at(i, j, 0, k) =
					(T)(scale.host[j] * inv / per * (per * (double)dy.at(i, j, 0, k) - g - hat * gx));
			}
	}
	y.check("normalized", 1e-3);
	mean.check("the mean", 1e-3);
	var.check("the variance", 1e-3);
	saved.check("the saved mean", 1e-3);
	inverse.check("the inverse deviation", 1e-3);
	dx.check("the gradient of x", 2e-3);
	dscale.check("the gradient of the scale", 2e-3);
	dbias.check("the gradient of the bias", 2e-3);
	DNN(cudnnBatchNormalizationForwardInference(handle, CUDNN_BATCHNORM_SPATIAL, &one, &zero, x.desc, x.gpu, y.desc,
						    y.gpu, derived, scale.gpu, bias.gpu, mean.gpu, var.gpu, eps));
	for (int i = 0; i < x.n; i++)
		for (int j = 0; j < x.c; j++)
			for (int k = 0; k < x.h * x.w; k++)
				y.at(i, j, 0, k) = (T)((x.at(i, j, 0, k) - mean.host[j]) /
							       sqrt(var.host[j] + eps) * scale.host[j] +
						       bias.host[j]);
	y.check("normalized with what was learnt", 1e-3);
	DNN(cudnnDestroyTensorDescriptor(derived));
}

/* What one stream computes, the same handle uses in another one. */
static void streams(void)
{
	const float two = 2, zero = 0;
	tensor<float> x(2, 3, 4, 5), y(2, 3, 4, 5);
	cudaStream_t stream[2], got;
	cudaEvent_t event;

	CHECK(cudaEventCreate(&event));
	for (int i = 0; i < 2; i++)
		CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
	for (int i = 0; i < 20; i++) {
		DNN(cudnnSetStream(handle, stream[i % 2]));
		DNN(cudnnGetStream(handle, &got));
		REQUIRE(got == stream[i % 2], "another stream");
		CHECK(cudaStreamWaitEvent(stream[i % 2], event));
		if (i % 2)
			DNN(cudnnScaleTensor(handle, x.desc, x.gpu, &two));
		else
			DNN(cudnnTransformTensor(handle, &two, x.desc, x.gpu, &zero, y.desc, y.gpu));
		CHECK(cudaEventRecord(event, stream[i % 2]));
	}
	CHECK(cudaDeviceSynchronize());
	for (size_t i = 0; i < x.host.size(); i++) {
		y.host[i] = x.host[i] * 1024;
		x.host[i] *= 1024;
	}
	x.check("scaled ten times");
	y.check("before the last time");
	DNN(cudnnSetStream(handle, NULL));
	for (int i = 0; i < 2; i++)
		CHECK(cudaStreamDestroy(stream[i]));
	CHECK(cudaEventDestroy(event));
}

template <typename T> static void all(void)
{
	sums<T>();
	activation<T>();
	softmax<T>();
	pooling<T>();
	batch_norm<T>();
}

int main(void)
{
	handle = dnn_handle();
	REQUIRE(cudnnGetVersion() >= 90000, "version %zu", cudnnGetVersion());
	wrong_calls();
	all<float>();
	all<double>();
	all<float>();
	streams();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("sums, tanh, softmax, maxima and batch normalization, forward and backward, in two types\n");
	return 0;
}
