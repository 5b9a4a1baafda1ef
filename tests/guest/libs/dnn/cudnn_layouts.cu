// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How cuDNN describes tensors, filters and convolutions: what is set is read back, sizes and the
 * dimensions of results are right, and what cannot be is refused. Then tensors and filters go from one
 * layout to another one, with gaps, and back.
 */
#include "dnn.h"

static cudnnHandle_t handle;

static void library(void)
{
	int major = 0, minor = 0, patch = 0;

	DNN(cudnnGetProperty(MAJOR_VERSION, &major));
	DNN(cudnnGetProperty(MINOR_VERSION, &minor));
	DNN(cudnnGetProperty(PATCH_LEVEL, &patch));
	REQUIRE(cudnnGetVersion() == (size_t)(major * 10000 + minor * 100 + patch) && major == CUDNN_MAJOR,
		"version %zu, and %d %d %d", cudnnGetVersion(), major, minor, patch);
	REQUIRE(cudnnGetCudartVersion() >= 11000, "for CUDA %zu", cudnnGetCudartVersion());
	REQUIRE(cudnnGetMaxDeviceVersion() >= 500, "for GPUs up to %zu", cudnnGetMaxDeviceVersion());
	DNN_FAILS(cudnnGetProperty((libraryPropertyType)50, &major));
	DNN(cudnnGraphVersionCheck());
	DNN(cudnnOpsVersionCheck());
	DNN(cudnnCnnVersionCheck());
	DNN(cudnnAdvVersionCheck());
	printf("%s, %s, %s\n", cudnnGetErrorString(CUDNN_STATUS_SUCCESS), cudnnGetErrorString(CUDNN_STATUS_BAD_PARAM),
	       cudnnGetErrorString(CUDNN_STATUS_NOT_SUPPORTED));
}

static void tensors(void)
{
	const int dim[] = {2, 3, 4, 5, 6}, stride[] = {1000, 300, 70, 13, 2}, zero[] = {2, 0, 4, 5, 6};
	const int many[] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, last[] = {360, 1, 90, 18, 3};
	int dims = 0, d[8] = {0}, s[8] = {0};
	cudnnTensorDescriptor_t desc;
	cudnnDataType_t type;
	size_t bytes = 0;

	DNN_FAILS(cudnnCreateTensorDescriptor(NULL));
	DNN(cudnnCreateTensorDescriptor(&desc));
	DNN_FAILS(cudnnSetTensorNdDescriptor(desc, CUDNN_DATA_FLOAT, 5, zero, stride));
	DNN_FAILS(cudnnSetTensorNdDescriptor(desc, CUDNN_DATA_FLOAT, 9, many, many));
	DNN_FAILS(cudnnSetTensorNdDescriptorEx(desc, (cudnnTensorFormat_t)9, CUDNN_DATA_FLOAT, 5, dim));
	DNN_FAILS(cudnnSetTensor4dDescriptorEx(desc, CUDNN_DATA_FLOAT, 0, 3, 4, 5, 60, 20, 5, 1));
	DNN(cudnnSetTensorNdDescriptor(desc, CUDNN_DATA_DOUBLE, 5, dim, stride));
	DNN(cudnnGetTensorNdDescriptor(desc, 8, &type, &dims, d, s));
	REQUIRE(type == CUDNN_DATA_DOUBLE && dims == 5 && !memcmp(d, dim, sizeof(dim)) &&
			!memcmp(s, stride, sizeof(stride)),
		"%d dimensions: %d %d %d %d %d", dims, d[0], d[1], d[2], d[3], d[4]);
	DNN_FAILS(cudnnGetTensorNdDescriptor(desc, 8, &type, NULL, d, s));
	/* Up to the last element: 1000 + 2 * 300 + 3 * 70 + 4 * 13 + 5 * 2 + 1. */
	DNN(cudnnGetTensorSizeInBytes(desc, &bytes));
	REQUIRE(bytes == 1873 * sizeof(double), "%zu bytes", bytes);
	DNN(cudnnSetTensorNdDescriptorEx(desc, CUDNN_TENSOR_NHWC, CUDNN_DATA_HALF, 5, dim));
	DNN(cudnnGetTensorNdDescriptor(desc, 5, &type, &dims, d, s));
	REQUIRE(type == CUDNN_DATA_HALF && s[0] == 360 && s[1] == 1 && !memcmp(s, last, sizeof(last)), "%d %d %d %d %d",
		s[0], s[1], s[2], s[3], s[4]);
	DNN(cudnnSetTensor4dDescriptorEx(desc, CUDNN_DATA_INT8, 2, 3, 4, 5, 200, 50, 10, 2));
	DNN(cudnnGetTensor4dDescriptor(desc, &type, d, d + 1, d + 2, d + 3, s, s + 1, s + 2, s + 3));
	REQUIRE(type == CUDNN_DATA_INT8 && d[0] == 2 && d[1] == 3 && d[2] == 4 && d[3] == 5 && s[0] == 200 &&
			s[1] == 50 && s[2] == 10 && s[3] == 2,
		"%d: %d %d %d %d", (int)type, s[0], s[1], s[2], s[3]);
	DNN(cudnnDestroyTensorDescriptor(desc));
}

static void convolutions(void)
{
	const int in[] = {2, 6, 9, 10, 11}, k[] = {8, 3, 3, 2, 4}, pad[] = {1, 0, 2}, step[] = {2, 1, 3};
	const int dilation[] = {1, 2, 1}, below[] = {1, -1, 2};
	int dims = 0, n = 0, d[8] = {0}, p[3], s[3], l[3];
	cudnnConvolutionDescriptor_t conv;
	cudnnFilterDescriptor_t filter;
	cudnnTensorDescriptor_t x;
	cudnnTensorFormat_t format;
	cudnnConvolutionMode_t mode;
	cudnnReorderType_t order;
	cudnnMathType_t math;
	cudnnDataType_t type;
	size_t bytes = 0;

	DNN(cudnnCreateTensorDescriptor(&x));
	DNN(cudnnCreateFilterDescriptor(&filter));
	DNN(cudnnCreateConvolutionDescriptor(&conv));
	DNN_FAILS(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 0, 3, 3));
	DNN(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_DOUBLE, CUDNN_TENSOR_NHWC, 4, 3, 5, 7));
	DNN(cudnnGetFilter4dDescriptor(filter, &type, &format, d, d + 1, d + 2, d + 3));
	REQUIRE(type == CUDNN_DATA_DOUBLE && format == CUDNN_TENSOR_NHWC && d[0] == 4 && d[1] == 3 && d[2] == 5 &&
			d[3] == 7,
		"a filter of %d %d %d %d", d[0], d[1], d[2], d[3]);
	DNN(cudnnSetFilterNdDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 5, k));
	DNN(cudnnGetFilterNdDescriptor(filter, 8, &type, &format, &dims, d));
	DNN(cudnnGetFilterSizeInBytes(filter, &bytes));
	REQUIRE(type == CUDNN_DATA_FLOAT && format == CUDNN_TENSOR_NCHW && dims == 5 && !memcmp(d, k, sizeof(k)) &&
			bytes == 8 * 3 * 3 * 2 * 4 * sizeof(float),
		"a filter of %d dimensions, %zu bytes", dims, bytes);
	DNN_FAILS(cudnnSetConvolutionNdDescriptor(conv, 3, below, step, dilation, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
	DNN_FAILS(cudnnSetConvolution2dDescriptor(conv, 0, 0, 0, 1, 1, 1, CUDNN_CONVOLUTION, CUDNN_DATA_FLOAT));
	DNN(cudnnSetConvolution2dDescriptor(conv, 1, 2, 3, 4, 5, 6, CUDNN_CONVOLUTION, CUDNN_DATA_DOUBLE));
	DNN(cudnnGetConvolution2dDescriptor(conv, d, d + 1, d + 2, d + 3, d + 4, d + 5, &mode, &type));
	REQUIRE(mode == CUDNN_CONVOLUTION && type == CUDNN_DATA_DOUBLE && d[0] == 1 && d[1] == 2 && d[2] == 3 &&
			d[3] == 4 && d[4] == 5 && d[5] == 6,
		"%d %d, %d %d, %d %d", d[0], d[1], d[2], d[3], d[4], d[5]);
	DNN(cudnnSetConvolutionNdDescriptor(conv, 3, pad, step, dilation, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
	DNN(cudnnGetConvolutionNdDescriptor(conv, 3, &n, p, s, l, &mode, &type));
	REQUIRE(n == 3 && mode == CUDNN_CROSS_CORRELATION && type == CUDNN_DATA_FLOAT && !memcmp(p, pad, sizeof(p)) &&
			!memcmp(s, step, sizeof(s)) && !memcmp(l, dilation, sizeof(l)),
		"%d: %d %d %d", n, p[0], p[1], p[2]);
	DNN(cudnnSetConvolutionGroupCount(conv, 2));
	DNN(cudnnGetConvolutionGroupCount(conv, &n));
	DNN(cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH));
	DNN(cudnnGetConvolutionMathType(conv, &math));
	DNN(cudnnSetConvolutionReorderType(conv, CUDNN_NO_REORDER));
	DNN(cudnnGetConvolutionReorderType(conv, &order));
	REQUIRE(n == 2 && math == CUDNN_FMA_MATH && order == CUDNN_NO_REORDER, "%d %d %d", n, (int)math, (int)order);
	/* 1 + (in + 2 pad - (dilation (filter - 1) + 1)) / step */
	DNN(cudnnSetTensorNdDescriptorEx(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, 5, in));
	DNN(cudnnGetConvolutionNdForwardOutputDim(conv, x, filter, 5, d));
	REQUIRE(d[0] == 2 && d[1] == 8 && d[2] == 5 && d[3] == 8 && d[4] == 4, "%d %d %d %d %d", d[0], d[1], d[2], d[3],
		d[4]);
	/* 6 channels are not 3 times 3. */
	DNN(cudnnSetConvolutionGroupCount(conv, 3));
	DNN_FAILS(cudnnGetConvolutionNdForwardOutputDim(conv, x, filter, 5, d));
	DNN(cudnnDestroyConvolutionDescriptor(conv));
	DNN(cudnnDestroyFilterDescriptor(filter));
	DNN(cudnnDestroyTensorDescriptor(x));
}

/* There and back, and with gaps, which keep what is in them. */
template <typename T> static void transforms(void)
{
	const T one = 1, zero = 0, two = 2, half = 0.5;
	tensor<T> x(2, 3, 4, 5), last(2, 3, 4, 5, CUDNN_TENSOR_NHWC), back(2, 3, 4, 5), gaps(2, 3, 6, 8),
		other(2, 3, 5, 4);

	DNN_FAILS(cudnnTransformTensor(handle, &one, x.desc, x.gpu, &zero, other.desc, other.gpu));
	other.check("after a wrong call");
	DNN(cudnnTransformTensor(handle, &two, x.desc, x.gpu, &half, last.desc, last.gpu));
	DNN(cudnnTransformTensor(handle, &one, last.desc, last.gpu, &zero, back.desc, back.gpu));
	DNN(cudnnSetTensor4dDescriptorEx(gaps.desc, data_type<T>(), 2, 3, 4, 5, 144, 48, 8, 1));
	DNN(cudnnTransformTensor(handle, &half, last.desc, last.gpu, &two, gaps.desc, gaps.gpu));
	for (int i = 0; i < (int)x.host.size(); i++) {
		const int n = i / 60, c = i / 20 % 3, h = i / 5 % 4, w = i % 5;
		T v = last.at(n, c, h, w) / 2 + 2 * x.at(n, c, h, w);

		last.at(n, c, h, w) = back.at(n, c, h, w) = v;
		gaps.at(n, c, h, w) = gaps.at(n, c, h, w) * 2 + v / 2;
	}
	last.check("channels last", 0);
	back.check("channels first again", 0);
	gaps.check("with gaps", 0);
	DNN(cudnnScaleTensor(handle, gaps.desc, gaps.gpu, &two));
	for (int i = 0; i < (int)x.host.size(); i++)
		gaps.at(i / 60, i / 20 % 3, i / 5 % 4, i % 5) *= 2;
	gaps.check("scaled, with gaps", 0);
}

static void filters(void)
{
	const float one = 1, zero = 0;
	tensor<float> from(4, 3, 2, 5), to(4, 3, 2, 5, CUDNN_TENSOR_NHWC);
	cudnnTensorTransformDescriptor_t how;
	cudnnFilterDescriptor_t a, b;

	DNN(cudnnCreateTensorTransformDescriptor(&how));
	DNN(cudnnSetTensorTransformDescriptor(how, 4, CUDNN_TENSOR_NHWC, NULL, NULL, NULL, CUDNN_TRANSFORM_FOLD));
	DNN(cudnnCreateFilterDescriptor(&a));
	DNN(cudnnCreateFilterDescriptor(&b));
	DNN(cudnnSetFilter4dDescriptor(a, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, 4, 3, 2, 5));
	DNN(cudnnSetFilter4dDescriptor(b, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NHWC, 4, 3, 2, 5));
	for (int pass = 0; pass < 2; pass++) {
		const char *what = pass ? "a tensor by a described transform" : "a filter by a described transform";
		cudnnStatus_t status;

		to.fill(7);
		status = pass ? cudnnTransformTensorEx(handle, how, &one, from.desc, from.gpu, &zero, to.desc, to.gpu)
			      : cudnnTransformFilter(handle, how, &one, a, from.gpu, &zero, b, to.gpu);
		/* The library need not have every transform, but says the same on both sides. */
		printf("%s: %s\n", what, cudnnGetErrorString(status));
		for (int i = 0; !status && i < 120; i++)
			to.at(i / 30, i / 10 % 3, i / 5 % 2, i % 5) = from.host[i];
		to.check(what, 0);
	}
	DNN(cudnnDestroyFilterDescriptor(a));
	DNN(cudnnDestroyFilterDescriptor(b));
	DNN(cudnnDestroyTensorTransformDescriptor(how));
}

int main(void)
{
	handle = dnn_handle();
	library();
	tensors();
	convolutions();
	transforms<float>();
	transforms<double>();
	filters();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("descriptors read back, and tensors in other layouts\n");
	return 0;
}
