// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pooling by cuDNN, forward and backward: maxima and averages with and without the padding, in planes
 * of both layouts and in space (5 dimensions), in three types, with windows that overlap and reach over
 * the edge; beside the same on the CPU. Wrong calls come first.
 */
#include <cuda_fp16.h>

#include "dnn.h"

static cudnnHandle_t handle;

enum { N = 2, C = 8 };

/* Depth, height and width. A plane has a depth of 1. */
struct windows {
	int in[3], size[3], pad[3], step[3];

	int out(int d) const
	{
		return 1 + (in[d] + 2 * pad[d] - size[d]) / step[d];
	}
};

static const windows plane = {{1, 7, 9}, {1, 3, 4}, {0, 1, 2}, {1, 2, 3}};
static const windows space = {{5, 6, 7}, {2, 3, 2}, {1, 1, 0}, {2, 2, 3}};

static void wrong_calls(void)
{
	const int one[] = {1, 1, 1}, none[] = {0, 0, 0}, bad[] = {2, 0, 2};
	const float alpha = 1, beta = 0;
	tensor<float> x(2, 3, 4, 6), other(2, 4, 2, 3), y(2, 3, 2, 3);
	cudnnPoolingDescriptor_t desc;
	cudnnPoolingMode_t mode;
	cudnnNanPropagation_t nan;
	int n[6];

	DNN_FAILS(cudnnCreatePoolingDescriptor(NULL));
	DNN(cudnnCreatePoolingDescriptor(&desc));
	DNN_FAILS(cudnnSetPoolingNdDescriptor(desc, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 3, bad, none, one));
	DNN_FAILS(cudnnSetPooling2dDescriptor(desc, (cudnnPoolingMode_t)77, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
	DNN(cudnnSetPooling2dDescriptor(desc, CUDNN_POOLING_MAX, CUDNN_PROPAGATE_NAN, 2, 2, 0, 0, 2, 2));
	DNN_FAILS(cudnnPoolingForward(handle, desc, &alpha, x.desc, x.gpu, &beta, other.desc, other.gpu));
	DNN_FAILS(cudnnPoolingForward(handle, desc, &alpha, x.desc, x.gpu, &beta, NULL, y.gpu));
	other.check("after wrong calls");
	DNN(cudnnPoolingForward(handle, desc, &alpha, x.desc, x.gpu, &beta, y.desc, y.gpu));
	DNN(cudnnSetPooling2dDescriptor(desc, CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, CUDNN_NOT_PROPAGATE_NAN, 4,
					5, 1, 2, 3, 6));
	DNN(cudnnGetPooling2dDescriptor(desc, &mode, &nan, n, n + 1, n + 2, n + 3, n + 4, n + 5));
	REQUIRE(mode == CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING && nan == CUDNN_NOT_PROPAGATE_NAN && n[0] == 4 &&
			n[1] == 5 && n[2] == 1 && n[3] == 2 && n[4] == 3 && n[5] == 6,
		"%d %d: %d %d %d %d %d %d", (int)mode, (int)nan, n[0], n[1], n[2], n[3], n[4], n[5]);
	DNN(cudnnDestroyPoolingDescriptor(desc));
}

/* A descriptor, which says the same when it is asked. */
static cudnnPoolingDescriptor_t described(cudnnPoolingMode_t mode, const windows &p, bool is_plane)
{
	const int dims = is_plane ? 2 : 3, *from = is_plane ? p.size + 1 : p.size;
	int size[3], pad[3], step[3], got = 0;
	cudnnPoolingDescriptor_t desc;
	cudnnPoolingMode_t m;
	cudnnNanPropagation_t nan;

	DNN(cudnnCreatePoolingDescriptor(&desc));
	if (is_plane)
		DNN(cudnnSetPooling2dDescriptor(desc, mode, CUDNN_PROPAGATE_NAN, p.size[1], p.size[2], p.pad[1],
						p.pad[2], p.step[1], p.step[2]));
	else
		DNN(cudnnSetPoolingNdDescriptor(desc, mode, CUDNN_PROPAGATE_NAN, 3, p.size, p.pad, p.step));
	DNN(cudnnGetPoolingNdDescriptor(desc, dims, &m, &nan, &got, size, pad, step));
	REQUIRE(got == dims && m == mode && nan == CUDNN_PROPAGATE_NAN && !memcmp(size, from, dims * sizeof(int)),
		"%d dimensions, mode %d", got, (int)m);
	return desc;
}

/* Forward and backward on the CPU: y, and dx for dy. */
template <typename T>
static void pool(cudnnPoolingMode_t mode, const windows &p, tensor<T> &x, std::vector<double> &y, tensor<T> &dy,
		 std::vector<double> &dx)
{
	const bool max = mode == CUDNN_POOLING_MAX || mode == CUDNN_POOLING_MAX_DETERMINISTIC;
	const int outs = p.out(0) * p.out(1) * p.out(2), area = p.size[0] * p.size[1] * p.size[2];

	y.clear();
	dx.assign(x.host.size(), 0);
	for (int at = 0; at < N * C * outs; at++) {
		int n = at / outs / C, c = at / outs % C, o = at % outs, i = o / p.out(2), k = o % p.out(2);
		int from[3] = {i / p.out(1), i % p.out(1), k};
		std::vector<T *> in;
		double sum = 0, slope = (double)dy.at(n, c, i, k);
		T *best = NULL;

		for (int w = 0; w < area; w++) {
			int off[3] = {w / p.size[2] / p.size[1], w / p.size[2] % p.size[1], w % p.size[2]}, inside = 1;

			for (int d = 0; d < 3; d++) {
				off[d] += from[d] * p.step[d] - p.pad[d];
				inside &= off[d] >= 0 && off[d] < p.in[d];
			}
			if (inside)
				in.push_back(&x.at(n, c, off[0] * p.in[1] + off[1], off[2]));
		}
		for (T *v : in) {
			sum += (double)*v;
			best = !best || (double)*v > (double)*best ? v : best;
		}
		int count = mode == CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING ? area : (int)in.size();

		y.push_back(max ? (double)*best : sum / count);
		for (T *v : in)
			dx[v - x.host.data()] += !max ? slope / count : v == best ? slope : 0;
	}
}

template <typename T> static void run(cudnnPoolingMode_t mode, const windows &p, cudnnTensorFormat_t format)
{
	typedef typename std::conditional<sizeof(T) == 8, double, float>::type scalar;
	const scalar one = 1, none = 0, two = 2, half = 0.5;
	const bool is_plane = p.in[0] == 1;
	tensor<T> x(N, C, p.in[0] * p.in[1], p.in[2], format), dx(N, C, p.in[0] * p.in[1], p.in[2], format);
	tensor<T> y(N, C, p.out(0) * p.out(1), p.out(2), format), dy(N, C, p.out(0) * p.out(1), p.out(2), format);
	const int count = (int)x.host.size(), outs = (int)y.host.size() / N / C;
	cudnnPoolingDescriptor_t desc = described(mode, p, is_plane);
	const int want[] = {N, C, p.out(0), p.out(1), p.out(2)}, in[] = {N, C, p.in[0], p.in[1], p.in[2]};
	std::vector<double> pooled, slopes;
	std::vector<T> old = dx.host;
	int got[5];

	/* All different, so that each window has one maximum. */
	for (int i = 0; i < count; i++)
		x.host[i] = (T)((float)(i * 37 % count - count / 2) / 64);
	x.up();
	if (!is_plane) {
		for (tensor<T> *t : {&x, &dx})
			DNN(cudnnSetTensorNdDescriptorEx(t->desc, format, data_type<T>(), 5, in));
		for (tensor<T> *t : {&y, &dy})
			DNN(cudnnSetTensorNdDescriptorEx(t->desc, format, data_type<T>(), 5, want));
		DNN(cudnnGetPoolingNdForwardOutputDim(desc, x.desc, 5, got));
		REQUIRE(!memcmp(got, want, sizeof(got)), "%d %d %d", got[2], got[3], got[4]);
	} else {
		DNN(cudnnGetPooling2dForwardOutputDim(desc, x.desc, got, got + 1, got + 2, got + 3));
		REQUIRE(got[0] == N && got[1] == C && got[2] == p.out(1) && got[3] == p.out(2), "%d %d", got[2],
			got[3]);
	}
	pool(mode, p, x, pooled, dy, slopes);
	DNN(cudnnPoolingForward(handle, desc, &two, x.desc, x.gpu, &half, y.desc, y.gpu));
	for (int pass = 0; pass < 2; pass++) {
		for (int i = 0; i < N * C * outs; i++) {
			T &v = y.at(i / outs / C, i / outs % C, i % outs / p.out(2), i % p.out(2));

			v = (T)(pass ? pooled[i] : 2 * pooled[i] + (double)v / 2);
		}
		y.check(pass ? "forward" : "forward, and half of what was there");
		DNN(cudnnPoolingForward(handle, desc, &one, x.desc, x.gpu, &none, y.desc, y.gpu));
	}
	DNN(cudnnPoolingBackward(handle, desc, &half, y.desc, y.gpu, dy.desc, dy.gpu, x.desc, x.gpu, &two, dx.desc,
				 dx.gpu));
	for (int i = 0; i < count; i++)
		dx.host[i] = (T)(slopes[i] / 2 + 2 * (double)old[i]);
	dx.check("backward");
	DNN(cudnnDestroyPoolingDescriptor(desc));
}

int main(void)
{
	handle = dnn_handle();
	wrong_calls();
	for (cudnnPoolingMode_t mode : {CUDNN_POOLING_MAX, CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING,
					CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, CUDNN_POOLING_MAX_DETERMINISTIC}) {
		run<float>(mode, plane, CUDNN_TENSOR_NCHW);
		run<float>(mode, plane, CUDNN_TENSOR_NHWC);
		run<float>(mode, space, CUDNN_TENSOR_NCHW);
		run<double>(mode, plane, CUDNN_TENSOR_NCHW);
		run<double>(mode, space, CUDNN_TENSOR_NCHW);
		run<__half>(mode, plane, CUDNN_TENSOR_NHWC);
	}
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("maxima and averages of windows, in planes and in space, forward and backward\n");
	return 0;
}
