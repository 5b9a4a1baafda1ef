// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Convolutions of cuDNN, forward and backward, by the legacy API and by the backend API with its
 * heuristics and plans, beside the same on the CPU.
 */
#include "backend.h"

#define N 2
#define C 8
#define K 16
#define H 10
#define W 12

static cudnnHandle_t handle;

/* A convolution with a filter of 3 x 3, padded by 1: forward, and both gradients. */
static void forward(tensor<float> &x, tensor<float> &w, tensor<float> &y)
{
	for (int n = 0; n < N; n++)
		for (int k = 0; k < K; k++)
			for (int i = 0; i < H; i++)
				for (int j = 0; j < W; j++) {
					double sum = 0;

					for (int c = 0; c < C; c++)
						for (int p = 0; p < 9; p++) {
							int r = i + p / 3 - 1, s = j + p % 3 - 1;

							if (r >= 0 && r < H && s >= 0 && s < W)
								sum += (double)x.at(n, c, r, s) * w.at(k, c, p / 3, p % 3);
						}
					y.at(n, k, i, j) = (float)sum;
				}
}

static void backward(tensor<float> &x, tensor<float> &w, tensor<float> &dy, tensor<float> &dx, tensor<float> &dw)
{
	std::vector<double> sx(dx.host.size()), sw(dw.host.size());

	for (int n = 0; n < N; n++)
		for (int k = 0; k < K; k++)
			for (int i = 0; i < H; i++)
				for (int j = 0; j < W; j++)
					for (int c = 0; c < C; c++)
						for (int p = 0; p < 9; p++) {
							int r = i + p / 3 - 1, s = j + p % 3 - 1;

							if (r < 0 || r >= H || s < 0 || s >= W)
								continue;
							sx[((n * C + c) * H + r) * W + s] +=
								(double)dy.at(n, k, i, j) * w.at(k, c, p / 3, p % 3);
							sw[((k * C + c) * 3 + p / 3) * 3 + p % 3] +=
								(double)dy.at(n, k, i, j) * x.at(n, c, r, s);
						}
	for (size_t i = 0; i < sx.size(); i++)
		dx.host[i] = (float)sx[i];
	for (size_t i = 0; i < sw.size(); i++)
		dw.host[i] = (float)sw[i];
}

static void legacy(void)
{
	const float one = 1, zero = 0;
	tensor<float> x(N, C, H, W), w(K, C, 3, 3), y(N, K, H, W), dy(N, K, H, W), dx(N, C, H, W), dw(K, C, 3, 3);
	cudnnConvolutionFwdAlgoPerf_t found[CUDNN_CONVOLUTION_FWD_ALGO_COUNT];
	const int ones[] = {1, 1};
	cudnnConvolutionDescriptor_t conv;
	cudnnFilterDescriptor_t filter;
	int n, c, h, v, count = 0;
	size_t need[3], bytes = 0;
	void *space;

	DNN(cudnnCreateFilterDescriptor(&filter));
	DNN(cudnnSetFilter4dDescriptor(filter, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, K, C, 3, 3));
	DNN(cudnnCreateConvolutionDescriptor(&conv));
	DNN(cudnnSetConvolutionNdDescriptor(conv, 2, ones, ones, ones, CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT));
	DNN(cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH));
	DNN(cudnnGetConvolution2dForwardOutputDim(conv, x.desc, filter, &n, &c, &h, &v));
	REQUIRE(n == N && c == K && h == H && v == W, "%d %d %d %d", n, c, h, v);
	DNN(cudnnGetConvolutionForwardAlgorithm_v7(handle, x.desc, filter, conv, y.desc,
						   CUDNN_CONVOLUTION_FWD_ALGO_COUNT, &count, found));
	REQUIRE(count > 0 && found[0].status == CUDNN_STATUS_SUCCESS, "%d algorithms", count);
	DNN(cudnnGetConvolutionForwardWorkspaceSize(handle, x.desc, filter, conv, y.desc, found[0].algo, &need[0]));
	DNN(cudnnGetConvolutionBackwardDataWorkspaceSize(handle, filter, dy.desc, conv, dx.desc,
							 CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, &need[1]));
	DNN(cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, x.desc, dy.desc, conv, filter,
							   CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, &need[2]));
	for (size_t size : need)
		bytes = size > bytes ? size : bytes;
	CHECK(cudaMalloc(&space, bytes + 1));
	for (int i = 0; i < 3; i++) {
		DNN(cudnnConvolutionForward(handle, &one, x.desc, x.gpu, filter, w.gpu, conv, found[0].algo, space,
					    bytes, &zero, y.desc, y.gpu));
		DNN(cudnnConvolutionBackwardData(handle, &one, filter, w.gpu, dy.desc, dy.gpu, conv,
						 CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, space, bytes, &zero, dx.desc,
						 dx.gpu));
		DNN(cudnnConvolutionBackwardFilter(handle, &one, x.desc, x.gpu, dy.desc, dy.gpu, conv,
						   CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, space, bytes, &zero, filter,
						   dw.gpu));
	}
	forward(x, w, y);
	backward(x, w, dy, dx, dw);
	y.check("a convolution", 1e-3);
	dx.check("the gradient of x", 1e-3);
	dw.check("the gradient of the filter", 1e-3);
	DNN(cudnnDestroyConvolutionDescriptor(conv));
	DNN(cudnnDestroyFilterDescriptor(filter));
	CHECK(cudaFree(space));
}

static void backend(void)
{
	tensor<float> x(N, C, H, W), w(K, C, 3, 3), y(N, K, H, W);
	cudnnBackendDescriptor_t conv = made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR), tx, tw, ty, op, graph;
	descriptors configs;
	const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;
	const int64_t ones[] = {1, 1}, dims = 2;
	const float one = 1, zero = 0;
	int64_t filled = 0, asked[9] = {0, 0, 0, 0, -7};
	char what[80];
	int ran = 0;

	/* Nothing has been set. */
	DNN_FAILS(cudnnBackendFinalize(conv));
	DNN(cudnnBackendSetAttribute(conv, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type));
	DNN(cudnnBackendSetAttribute(conv, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode));
	DNN(cudnnBackendSetAttribute(conv, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims));
	DNN(cudnnBackendSetAttribute(conv, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, ones));
	DNN(cudnnBackendSetAttribute(conv, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, ones));
	DNN(cudnnBackendSetAttribute(conv, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, ones));
	DNN(cudnnBackendSetAttribute(conv, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, ones));
	DNN(cudnnBackendFinalize(conv));
	tx = tensor_of('x', {N, C, H, W});
	tw = tensor_of('w', {K, C, 3, 3});
	ty = tensor_of('y', {N, K, H, W});
	/* More is asked for than there is: what is behind stays as it was. */
	DNN(cudnnBackendGetAttribute(tx, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 8, &filled, asked));
	REQUIRE(asked[4] == -7, "more than 4 dimensions are written");
	REQUIRE(filled == 4 && asked[0] == N && asked[1] == C && asked[2] == H && asked[3] == W, "%d dimensions",
		(int)filled);
	op = made(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
	set_one(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, tx);
	set_one(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, tw);
	set_one(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, ty);
	set_one(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, conv);
	DNN(cudnnBackendSetAttribute(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one));
	DNN(cudnnBackendSetAttribute(op, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero));
	DNN(cudnnBackendFinalize(op));
	graph = graph_of(handle, {op});
	configs = configs_of(graph, CUDNN_HEUR_MODE_INSTANT);
	REQUIRE(configs.size() > 0, "no engine");
	forward(x, w, y);
	for (int i = 0; i < (int)configs.size() && ran < 3; i++) {
		cudnnBackendDescriptor_t plan = plan_of(handle, configs[i]);

		/* Not every engine can do what the heuristics say. */
		if (!plan)
			continue;

		void *workspace = workspace_of(plan);

		for (int j = 0; j < 3; j++) {
			y.clear();
			execute(handle, plan, {'x', 'w', 'y'}, {x.gpu, w.gpu, y.gpu}, workspace);
			snprintf(what, sizeof(what), "plan %d of %d, time %d", i, (int)configs.size(), j);
			/* An engine may compute with fewer bits. */
			y.check(what, 2e-2);
		}
		CHECK(cudaFree(workspace));
		DNN(cudnnBackendDestroyDescriptor(plan));
		ran++;
	}
	REQUIRE(ran > 0, "no plan of %d", (int)configs.size());
	end(configs);
	for (cudnnBackendDescriptor_t d : {graph, op, conv, tx, tw, ty})
		DNN(cudnnBackendDestroyDescriptor(d));
}

int main(void)
{
	handle = dnn_handle();
	legacy();
	backend();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("convolutions forward and backward, and by plans of the backend API\n");
	return 0;
}
