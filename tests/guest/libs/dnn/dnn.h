/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuDNN need. */
#ifndef DNN_H
#define DNN_H

#include <algorithm>
#include <cmath>
#include <vector>

#include <cudnn.h>

#include "check.h"

#define DNN(call)	dnn_code(__FILE__, __LINE__, #call, (call), CUDNN_STATUS_SUCCESS)
#define DNN_FAILS(call) dnn_fails(__FILE__, __LINE__, #call, (call))

static inline void dnn_code(const char *file, int line, const char *call, cudnnStatus_t got,
			    cudnnStatus_t want)
{
	char why[512] = "";

	if (got == want)
		return;
	cudnnGetLastErrorString(why, sizeof(why));
	fprintf(stderr, "%s:%d: %s\n\tgave %d %s, expected %d (%s)\n", file, line, call, (int)got,
		cudnnGetErrorString(got), (int)want, why);
	exit(1);
}

static inline void dnn_fails(const char *file, int line, const char *call, cudnnStatus_t got)
{
	if (got != CUDNN_STATUS_SUCCESS)
		return;
	fprintf(stderr, "%s:%d: %s\n\tdid not fail\n", file, line, call);
	exit(1);
}

/* The handle. Without cuDNN on the host, as on the software GPU, the program is skipped. */
static inline cudnnHandle_t dnn_handle(void)
{
	cudnnHandle_t handle = NULL;
	cudnnStatus_t status = cudnnCreate(&handle);

	if (status == CUDNN_STATUS_NOT_INITIALIZED || status == CUDNN_STATUS_NOT_SUPPORTED) {
		REQUIRE(!handle, "a handle in spite of %s", cudnnGetErrorString(status));
		printf("there is no cuDNN here: %s\n", cudnnGetErrorString(status));
		exit(77);
	}
	DNN(status);
	return handle;
}

/* Small numbers that look random, the same in each run. */
static unsigned int dnn_seed = 1;
static inline float dnn_number(void)
{
	dnn_seed = dnn_seed * 1664525u + 1013904223u;
	return ((int)(dnn_seed >> 16) % 200 - 100) / 64.0f;
}

template <typename T> static inline cudnnDataType_t data_type(void)
{
	if (sizeof(T) == 2)
		return CUDNN_DATA_HALF;
	return sizeof(T) == 8 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
}

/* How far off a result may be, as a part of 1 and its size. */
template <typename T> static inline double tolerance_of(void)
{
	if (sizeof(T) == 2)
		return 2e-3;
	return sizeof(T) == 8 ? 1e-10 : 1e-4;
}

/* GPU memory for a function that has said how much it needs. */
static inline void *room(size_t bytes)
{
	void *p;

	CHECK(cudaMalloc(&p, bytes + 1));
	return p;
}

/* A tensor in the order NCHW or NHWC, on both sides. */
template <typename T> struct tensor {
	int n, c, h, w;
	cudnnTensorFormat_t format;
	std::vector<T> host;
	T *gpu;
	cudnnTensorDescriptor_t desc;

	tensor(int n, int c, int h, int w, cudnnTensorFormat_t format = CUDNN_TENSOR_NCHW)
	    : n(n), c(c), h(h), w(w), format(format), host((size_t)n * c * h * w)
	{
		for (T &v : host)
			v = (T)dnn_number();
		CHECK(cudaMalloc(&gpu, host.size() * sizeof(T)));
		up();
		DNN(cudnnCreateTensorDescriptor(&desc));
		DNN(cudnnSetTensor4dDescriptor(desc, format, data_type<T>(), n, c, h, w));
	}
	~tensor()
	{
		DNN(cudnnDestroyTensorDescriptor(desc));
		CHECK(cudaFree(gpu));
	}
	void up(void)
	{
		CHECK(cudaMemcpy(gpu, host.data(), host.size() * sizeof(T),
				 cudaMemcpyHostToDevice));
	}
	/* On the GPU alone. */
	void clear(void)
	{
		CHECK(cudaMemset(gpu, 0, host.size() * sizeof(T)));
	}
	void fill(T v)
	{
		std::fill(host.begin(), host.end(), v);
		up();
	}
	T &at(int i, int j, int k, int l)
	{
		return format == CUDNN_TENSOR_NHWC ? host[(((size_t)i * h + k) * w + l) * c + j]
						   : host[(((size_t)i * c + j) * h + k) * w + l];
	}
	/* What is on the GPU must be what is in `host` now. */
	void check(const char *what, double tolerance = tolerance_of<T>())
	{
		std::vector<T> got(host.size());

		CHECK(cudaMemcpy(got.data(), gpu, host.size() * sizeof(T), cudaMemcpyDeviceToHost));
		for (size_t i = 0; i < got.size(); i++)
			REQUIRE(fabs((double)got[i] - (double)host[i]) <=
					tolerance * (1 + fabs((double)host[i])),
				"%s: element %zu is %g, not %g", what, i, (double)got[i],
				(double)host[i]);
	}
};

#endif
