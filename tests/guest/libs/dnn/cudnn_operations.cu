// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Graphs of several operations of cuDNN's backend API: a product of matrices with a sum and a maximum,
 * whose first results are nowhere in memory, and layers normalized by a number that lies in the host's
 * memory. Graphs that are wrong come first.
 */
#include "backend.h"

static cudnnHandle_t handle;

static cudnnBackendDescriptor_t virtual_tensor(int64_t id, const std::vector<int64_t> &dim)
{
	cudnnBackendDescriptor_t d = begun(id, dim);
	const bool yes = true;

	DNN(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes));
	DNN(cudnnBackendFinalize(d));
	return d;
}

static cudnnBackendDescriptor_t pointwise_way(cudnnPointwiseMode_t mode)
{
	cudnnBackendDescriptor_t how = made(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;

	DNN(cudnnBackendSetAttribute(how, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode));
	DNN(cudnnBackendSetAttribute(how, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type));
	DNN(cudnnBackendFinalize(how));
	return how;
}

static void wrong_graphs(void)
{
	descriptors all = {pointwise_way(CUDNN_POINTWISE_ADD), tensor_of('a', {2, 3, 4}), tensor_of('b', {2, 3, 4, 5}),
			   tensor_of('c', {2, 3, 4})};
	const cudnnBackendDescriptor_t graph = made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	cudnnBackendDescriptor_t op = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
						{{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, all[0]},
						 {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, all[1]},
						 {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, all[3]}});

	/* A sum has two terms, and of as many dimensions. */
	DNN_FAILS(cudnnBackendFinalize(op));
	DNN(cudnnBackendDestroyDescriptor(op));
	op = operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
		       {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, all[0]},
			{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, all[1]},
			{CUDNN_ATTR_OPERATION_POINTWISE_BDESC, all[2]},
			{CUDNN_ATTR_OPERATION_POINTWISE_YDESC, all[3]}});
	DNN_FAILS(cudnnBackendFinalize(op));
	DNN(cudnnBackendDestroyDescriptor(op));
	/* A graph has operations and a handle. */
	DNN_FAILS(cudnnBackendFinalize(graph));
	DNN(cudnnBackendDestroyDescriptor(graph));
	end(all);
}

/* c = max(0, a * b + bias): three operations, two of whose results are nowhere in memory. */
static void fused(void)
{
	enum { BATCH = 3, ROWS = 16, INNER = 32, COLS = 24 };
	const std::vector<int64_t> result = {BATCH, ROWS, COLS};
	tensor<float> a(1, BATCH, ROWS, INNER), b(1, BATCH, INNER, COLS), bias(1, 1, 1, COLS), c(1, BATCH, ROWS, COLS);
	descriptors all = {product_way(),
			   pointwise_way(CUDNN_POINTWISE_ADD),
			   pointwise_way(CUDNN_POINTWISE_RELU_FWD),
			   tensor_of('a', {BATCH, ROWS, INNER}),
			   tensor_of('b', {BATCH, INNER, COLS}),
			   tensor_of('i', {1, 1, COLS}),
			   virtual_tensor('p', result),
			   virtual_tensor('s', result),
			   tensor_of('c', result)};
	cudnnBackendDescriptor_t plan;
	descriptors ops = {product(all[0], all[3], all[4], all[6]),
			   operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
				     {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, all[1]},
				      {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, all[6]},
				      {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, all[5]},
				      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, all[7]}}),
			   operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
				     {{CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, all[2]},
				      {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, all[7]},
				      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, all[8]}})};

	for (cudnnBackendDescriptor_t op : ops) {
		DNN(cudnnBackendFinalize(op));
		all.push_back(op);
	}
	all.push_back(graph_of(handle, ops));
	plan = first_plan(handle, all.back());
	if (there_is("a product, a sum and a maximum", plan)) {
		void *space = workspace_of(plan);

		for (int i = 0; i < 2; i++) {
			c.clear();
			execute(handle, plan, {'a', 'b', 'i', 'c'}, {a.gpu, b.gpu, bias.gpu, c.gpu}, space);
			for (int j = 0; j < BATCH * ROWS * COLS; j++) {
				float sum = bias.host[j % COLS];

				for (int k = 0; k < INNER; k++)
					sum += a.host[j / COLS * INNER + k] * b.at(0, j / COLS / ROWS, k, j % COLS);
				c.host[j] = std::max(sum, 0.0f);
			}
			c.check("a product, a sum and a maximum", 1e-3);
		}
		CHECK(cudaFree(space));
		all.push_back(plan);
	}
	end(all);
}

/* Rows normalized, by a small number that lies in the host's memory. */
static void layers(void)
{
	enum { COUNT = 16, WIDE = 128 };
	const std::vector<int64_t> row = {WIDE, 1, WIDE, WIDE}, single = {1, 1, 1, 1};
	const cudnnBackendNormMode_t mode = CUDNN_LAYER_NORM;
	const cudnnBackendNormFwdPhase_t phase = CUDNN_NORM_FWD_TRAINING;
	const bool yes = true;
	float epsilon = 1.0f / 128;
	tensor<float> x(1, 1, COUNT, WIDE), y(1, 1, COUNT, WIDE), scale(1, 1, 1, WIDE), bias(1, 1, 1, WIDE);
	tensor<float> mean(1, 1, 1, COUNT), inverse(1, 1, 1, COUNT);
	cudnnBackendDescriptor_t small = begun('e', single), op, plan;

	DNN(cudnnBackendSetAttribute(small, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes));
	DNN(cudnnBackendFinalize(small));

	descriptors all = {small,
			   tensor_of('x', {COUNT, WIDE, 1, 1}, row),
			   tensor_of('y', {COUNT, WIDE, 1, 1}, row),
			   tensor_of('s', {1, WIDE, 1, 1}, row),
			   tensor_of('b', {1, WIDE, 1, 1}, row),
			   tensor_of('m', {COUNT, 1, 1, 1}, single),
			   tensor_of('i', {COUNT, 1, 1, 1}, single)};

	op = operation(CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR,
		       {{CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC, all[0]},
			{CUDNN_ATTR_OPERATION_NORM_FWD_XDESC, all[1]},
			{CUDNN_ATTR_OPERATION_NORM_FWD_YDESC, all[2]},
			{CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC, all[3]},
			{CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC, all[4]},
			{CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC, all[5]},
			{CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC, all[6]}});
	DNN(cudnnBackendSetAttribute(op, CUDNN_ATTR_OPERATION_NORM_FWD_MODE, CUDNN_TYPE_NORM_MODE, 1, &mode));
	DNN(cudnnBackendSetAttribute(op, CUDNN_ATTR_OPERATION_NORM_FWD_PHASE, CUDNN_TYPE_NORM_FWD_PHASE, 1, &phase));
	DNN(cudnnBackendFinalize(op));
	all.push_back(op);
	all.push_back(graph_of(handle, {op}));
	plan = first_plan(handle, all.back());
	if (there_is("a layer normalized", plan)) {
		void *space = workspace_of(plan);

		execute(handle, plan, {'x', 'y', 's', 'b', 'm', 'i', 'e'},
			{x.gpu, y.gpu, scale.gpu, bias.gpu, mean.gpu, inverse.gpu, &epsilon}, space);
		for (int n = 0; n < COUNT; n++) {
			double m = 0, v = 0;

			for (int i = 0; i < WIDE; i++)
				m += x.at(0, 0, n, i) / WIDE;
			for (int i = 0; i < WIDE; i++)
				v += (x.at(0, 0, n, i) - m) * (x.at(0, 0, n, i) - m) / WIDE;
			mean.host[n] = (float)m;
			inverse.host[n] = (float)(1 / sqrt(v + epsilon));
			for (int i = 0; i < WIDE; i++)
				y.at(0, 0, n, i) = (float)((x.at(0, 0, n, i) - m) * inverse.host[n] * scale.host[i] +
							   bias.host[i]);
		}
		y.check("a layer normalized", 1e-3);
		mean.check("its means", 1e-3);
		inverse.check("its inverse deviations", 1e-3);
		CHECK(cudaFree(space));
		all.push_back(plan);
	}
	end(all);
}

int main(void)
{
	handle = dnn_handle();
	wrong_graphs();
	fused();
	layers();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("graphs of several operations\n");
	return 0;
}
