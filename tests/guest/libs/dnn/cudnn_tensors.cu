// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sums, products and extremes of tensors, element by element, where one of them may be repeated along
 * some dimensions; and reductions along any dimensions by all operations, with the indices of extremes;
 * beside the same on the CPU. Wrong calls come first.
 */
#include "dnn.h"

static cudnnHandle_t handle;

static void wrong_calls(void)
{
	const float one = 1, zero = 0;
	tensor<float> a(2, 3, 4, 5), b(1, 2, 1, 1), c(2, 3, 4, 5), small(2, 3, 4, 1);
	cudnnOpTensorDescriptor_t op;
	cudnnReduceTensorDescriptor_t reduce;
	cudnnOpTensorOp_t got;
	cudnnDataType_t type;
	cudnnNanPropagation_t nan;
	cudnnReduceTensorOp_t way;
	cudnnReduceTensorIndices_t with;
	cudnnIndicesType_t width;
	void *space = room(1 << 16);

	DNN(cudnnCreateOpTensorDescriptor(&op));
	DNN_FAILS(cudnnSetOpTensorDescriptor(op, (cudnnOpTensorOp_t)50, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN));
	DNN_FAILS(cudnnSetOpTensorDescriptor(op, CUDNN_OP_TENSOR_ADD, CUDNN_DATA_INT8, CUDNN_NOT_PROPAGATE_NAN));
	DNN(cudnnSetOpTensorDescriptor(op, CUDNN_OP_TENSOR_MAX, CUDNN_DATA_FLOAT, CUDNN_PROPAGATE_NAN));
	DNN(cudnnGetOpTensorDescriptor(op, &got, &type, &nan));
	REQUIRE(got == CUDNN_OP_TENSOR_MAX && type == CUDNN_DATA_FLOAT && nan == CUDNN_PROPAGATE_NAN, "%d %d %d",
		(int)got, (int)type, (int)nan);
	/* B has 2 channels: neither 1 nor as many as C. */
	DNN_FAILS(cudnnOpTensor(handle, op, &one, a.desc, a.gpu, &one, b.desc, b.gpu, &zero, c.desc, c.gpu));
	DNN_FAILS(cudnnAddTensor(handle, &one, b.desc, b.gpu, &one, c.desc, c.gpu));
	DNN(cudnnDestroyOpTensorDescriptor(op));
	DNN(cudnnCreateReduceTensorDescriptor(&reduce));
	DNN_FAILS(cudnnSetReduceTensorDescriptor(reduce, (cudnnReduceTensorOp_t)50, CUDNN_DATA_FLOAT,
						 CUDNN_NOT_PROPAGATE_NAN, CUDNN_REDUCE_TENSOR_NO_INDICES,
						 CUDNN_32BIT_INDICES));
	DNN(cudnnSetReduceTensorDescriptor(reduce, CUDNN_REDUCE_TENSOR_MIN, CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN,
					   CUDNN_REDUCE_TENSOR_FLATTENED_INDICES, CUDNN_32BIT_INDICES));
	DNN(cudnnGetReduceTensorDescriptor(reduce, &way, &type, &nan, &with, &width));
	REQUIRE(way == CUDNN_REDUCE_TENSOR_MIN && type == CUDNN_DATA_FLOAT && nan == CUDNN_NOT_PROPAGATE_NAN &&
			with == CUDNN_REDUCE_TENSOR_FLATTENED_INDICES && width == CUDNN_32BIT_INDICES,
		"%d %d %d %d %d", (int)way, (int)type, (int)nan, (int)with, (int)width);
	/* A dimension of the result is neither 1 nor as long as before. */
	DNN_FAILS(cudnnReduceTensor(handle, reduce, space, 1 << 15, (char *)space + (1 << 15), 1 << 15, &one, a.desc,
				    a.gpu, &zero, b.desc, b.gpu));
	/* No room for the indices. */
	DNN_FAILS(cudnnReduceTensor(handle, reduce, NULL, 0, space, 1 << 16, &one, a.desc, a.gpu, &zero, small.desc,
				    small.gpu));
	for (tensor<float> *t : {&b, &c, &small})
		t->check("after wrong calls");
	DNN(cudnnDestroyReduceTensorDescriptor(reduce));
	CHECK(cudaFree(space));
}

/* Where an element of the big tensor is in one that is repeated along each dimension of 1. */
template <typename T> static T &seen(tensor<T> &t, int n, int c, int h, int w)
{
	return t.at(t.n > 1 ? n : 0, t.c > 1 ? c : 0, t.h > 1 ? h : 0, t.w > 1 ? w : 0);
}

template <typename T, typename F> static void each(tensor<T> &t, F f)
{
	for (int i = 0; i < (int)t.host.size(); i++)
		f(i / t.w / t.h / t.c, i / t.w / t.h % t.c, i / t.w % t.h, i % t.w);
}

template <typename T> static void element_by_element(cudnnOpTensorOp_t kind, tensor<T> &b)
{
	typedef typename std::conditional<sizeof(T) == 8, double, float>::type scalar;
	const scalar alpha1 = kind == CUDNN_OP_TENSOR_SQRT ? 4 : 2, alpha2 = 0.5, beta = 0.25;
	tensor<T> a(2, 3, 4, 5), c(2, 3, 4, 5);
	cudnnOpTensorDescriptor_t op;

	if (kind == CUDNN_OP_TENSOR_SQRT)
		for (T &v : a.host)
			v = (T)fabs((double)v);
	a.up();
	DNN(cudnnCreateOpTensorDescriptor(&op));
	DNN(cudnnSetOpTensorDescriptor(op, kind, sizeof(T) == 8 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
				       CUDNN_NOT_PROPAGATE_NAN));
	DNN(cudnnOpTensor(handle, op, &alpha1, a.desc, a.gpu, &alpha2, b.desc, b.gpu, &beta, c.desc, c.gpu));
	each(c, [&](int n, int i, int h, int w) {
		double x = alpha1 * (double)a.at(n, i, h, w), y = alpha2 * (double)seen(b, n, i, h, w);
		const double all[] = {x + y, x * y, std::min(x, y), std::max(x, y), sqrt(x), 1 - x};

		c.at(n, i, h, w) = (T)(all[kind] + beta * (double)c.at(n, i, h, w));
	});
	c.check("an operation on each element");
	DNN(cudnnDestroyOpTensorDescriptor(op));
}

template <typename T> static void repeated(tensor<T> &a)
{
	typedef typename std::conditional<sizeof(T) == 8, double, float>::type scalar;
	const scalar two = 2, half = 0.5;
	tensor<T> c(2, 3, 4, 5);

	DNN(cudnnAddTensor(handle, &two, a.desc, a.gpu, &half, c.desc, c.gpu));
	each(c, [&](int n, int i, int h, int w) {
		c.at(n, i, h, w) = (T)(2 * (double)seen(a, n, i, h, w) + (double)c.at(n, i, h, w) / 2);
	});
	c.check("a tensor is added");
}

/* The elements that become one, in the order of their indices. */
static double reduced(cudnnReduceTensorOp_t op, const std::vector<double> &v, uint32_t *index)
{
	double sum = 0, product = 1, nonzero = 1, norm1 = 0, norm2 = 0, top = 0;
	size_t low = 0, high = 0;

	for (size_t i = 0; i < v.size(); i++) {
		sum += v[i];
		product *= v[i];
		nonzero *= v[i] != 0 ? v[i] : 1;
		norm1 += fabs(v[i]);
		norm2 += v[i] * v[i];
		top = std::max(top, fabs(v[i]));
		low = v[i] < v[low] ? i : low;
		high = v[i] > v[high] ? i : high;
	}
	*index = (uint32_t)(op == CUDNN_REDUCE_TENSOR_MIN ? low : high);

	const double all[] = {sum, product, v[low], v[high], top, sum / (double)v.size(), norm1, sqrt(norm2), nonzero};

	return all[op];
}

/* Of 6 x 4 x 5 x 7, to the dimensions of `c`. */
template <typename T> static void reduction(cudnnReduceTensorOp_t op, tensor<T> &c)
{
	typedef typename std::conditional<sizeof(T) == 8, double, float>::type scalar;
	const bool product = op == CUDNN_REDUCE_TENSOR_MUL || op == CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS;
	const bool extreme = op == CUDNN_REDUCE_TENSOR_MIN || op == CUDNN_REDUCE_TENSOR_MAX;
	const scalar one = 1, zero = 0, two = 2;
	tensor<T> a(6, 4, 5, 7);
	const int count = (int)a.host.size();
	std::vector<std::vector<double>> parts(c.host.size());
	std::vector<uint32_t> want(c.host.size()), got(c.host.size());
	cudnnReduceTensorDescriptor_t desc;
	size_t index_bytes = 0, bytes = 0;

	/* All different; of a product, 1 in most places, so that it stays small. */
	for (int i = 0; i < count; i++)
		a.host[i] = product ? (T)(i % 97 == 0	? 0
					  : i % 31 == 0 ? 2
					  : i % 29 == 0 ? -0.5
							: 1)
				    : (T)((i * 37 % count - count / 2) / 64.0);
	a.up();
	each(a, [&](int n, int i, int h, int w) {
		parts[&seen(c, n, i, h, w) - c.host.data()].push_back((double)a.at(n, i, h, w));
	});
	DNN(cudnnCreateReduceTensorDescriptor(&desc));
	DNN(cudnnSetReduceTensorDescriptor(
		desc, op, sizeof(T) == 8 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT, CUDNN_NOT_PROPAGATE_NAN,
		extreme ? CUDNN_REDUCE_TENSOR_FLATTENED_INDICES : CUDNN_REDUCE_TENSOR_NO_INDICES, CUDNN_32BIT_INDICES));
	DNN(cudnnGetReductionIndicesSize(handle, desc, a.desc, c.desc, &index_bytes));
	DNN(cudnnGetReductionWorkspaceSize(handle, desc, a.desc, c.desc, &bytes));
	REQUIRE(!extreme || index_bytes >= c.host.size() * sizeof(uint32_t), "%zu bytes of indices", index_bytes);

	void *space = room(bytes), *indices = room(index_bytes);

	/* The sum is added to twice of what was there. */
	DNN(cudnnReduceTensor(handle, desc, indices, index_bytes, space, bytes, &one, a.desc, a.gpu,
			      op == CUDNN_REDUCE_TENSOR_ADD ? &two : &zero, c.desc, c.gpu));
	for (size_t i = 0; i < parts.size(); i++) {
		double v = reduced(op, parts[i], &want[i]);

		c.host[i] = (T)(v + (op == CUDNN_REDUCE_TENSOR_ADD ? 2 * (double)c.host[i] : 0));
	}
	c.check("a reduction");
	if (extreme) {
		CHECK(cudaMemcpy(got.data(), indices, got.size() * sizeof(uint32_t), cudaMemcpyDeviceToHost));
		/* What an index counts is plain only where one dimension is gone. */
		for (size_t i = 0; i < got.size(); i++)
			REQUIRE(c.h > 1 ? got[i] == want[i] : got[i] < parts[i].size(),
				"operation %d: index %zu is %u, not %u", (int)op, i, got[i], want[i]);
	}
	DNN(cudnnDestroyReduceTensorDescriptor(desc));
	CHECK(cudaFree(space));
	CHECK(cudaFree(indices));
}

template <typename T> static void all(void)
{
	tensor<T> same(2, 3, 4, 5), bias(1, 3, 1, 1), image(1, 1, 4, 5), one(1, 1, 1, 1), maps(1, 3, 4, 5);
	tensor<T> rows(6, 4, 5, 1), images(6, 1, 1, 1), channels(1, 4, 1, 1);

	for (int kind = CUDNN_OP_TENSOR_ADD; kind <= CUDNN_OP_TENSOR_NOT; kind++)
		for (tensor<T> *b : {&same, &bias, &image, &one, &maps})
			element_by_element((cudnnOpTensorOp_t)kind, *b);
	for (tensor<T> *a : {&same, &bias, &image, &one, &maps})
		repeated(*a);
	for (int op = CUDNN_REDUCE_TENSOR_ADD; op <= CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS; op++)
		for (tensor<T> *c : {&rows, &images, &channels, &one})
			reduction((cudnnReduceTensorOp_t)op, *c);
}

int main(void)
{
	handle = dnn_handle();
	wrong_calls();
	all<float>();
	all<double>();
	all<float>();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("six operations on elements, sums with repetition and nine reductions, in two types\n");
	return 0;
}
