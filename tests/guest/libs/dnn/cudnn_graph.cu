// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Plans of cuDNN's backend API for products of matrices: heuristics, an engine's number or a text give
 * them, and they run again with other tensors, in another stream and in a CUDA graph. Wrong calls come
 * first.
 */
#include "backend.h"

enum { BATCH = 3, ROWS = 16, INNER = 32, COLS = 24 };

static cudnnHandle_t handle;

static void wrong_calls(void)
{
	const int64_t odd = 3;
	cudnnBackendDescriptor_t d, op;
	descriptors all;

	d = made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	DNN_FAILS(cudnnBackendFinalize(d));
	DNN(cudnnBackendDestroyDescriptor(d));
	d = begun('o', {4, 4, 4});
	/* What is wrong is said when it is set, or at the end. */
	REQUIRE(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &odd) ||
			cudnnBackendFinalize(d),
		"an alignment of 3");
	DNN(cudnnBackendDestroyDescriptor(d));
	d = made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	set_handle(d, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
	DNN_FAILS(cudnnBackendFinalize(d));
	DNN(cudnnBackendDestroyDescriptor(d));
	all = {product_way(), tensor_of('a', {1, 8, 16}), tensor_of('b', {1, 8, 16}), tensor_of('c', {1, 8, 16})};
	op = product(all[0], all[1], all[2], all[3]);
	DNN_FAILS(cudnnBackendFinalize(op));
	DNN(cudnnBackendDestroyDescriptor(op));
	/* What is finalized stays as it is. */
	DNN_FAILS(cudnnBackendSetAttribute(all[1], CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &odd));
	end(all);
}

/* A plan from an engine's number. */
static cudnnBackendDescriptor_t numbered_plan(cudnnBackendDescriptor_t graph)
{
	cudnnBackendDescriptor_t plan = NULL;
	int64_t count = 0, engines = 0;

	DNN(cudnnBackendGetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT, CUDNN_TYPE_INT64, 1, &count,
				     &engines));
	REQUIRE(count == 1 && engines > 0, "%lld engines", (long long)engines);
	for (int64_t i = 0; i < engines && !plan; i++) {
		cudnnBackendDescriptor_t engine = made(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
		cudnnBackendDescriptor_t config = made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
		int64_t back = -1;

		set_one(engine, CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph);
		DNN(cudnnBackendSetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &i));
		if (cudnnBackendFinalize(engine) == CUDNN_STATUS_SUCCESS) {
			DNN(cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1,
						     &count, &back));
			REQUIRE(back == i, "engine %lld is %lld", (long long)i, (long long)back);
			set_one(config, CUDNN_ATTR_ENGINECFG_ENGINE, engine);
			if (cudnnBackendFinalize(config) == CUDNN_STATUS_SUCCESS)
				plan = plan_of(handle, config);
		}
		DNN(cudnnBackendDestroyDescriptor(config));
		DNN(cudnnBackendDestroyDescriptor(engine));
	}
	return plan;
}

/* A plan as a text is not served: a plan that is made from one may bring machine code. */
static void no_text(cudnnBackendDescriptor_t plan)
{
	cudnnStatus_t status;
	int64_t count = 0;

	status = cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, 0, &count,
					  NULL);
	REQUIRE(!status || CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED, "%s", cudnnGetErrorString(status));
}

struct matrices {
	tensor<float> a, b, c;

	matrices(void) : a(1, BATCH, ROWS, INNER), b(1, BATCH, INNER, COLS), c(1, BATCH, ROWS, COLS)
	{
		c.clear();
	}
	void check(const char *what)
	{
		for (int i = 0; i < BATCH * ROWS * COLS; i++) {
			const int col = i % COLS, row = i / COLS % ROWS, n = i / COLS / ROWS;

			c.host[i] = 0;
			for (int k = 0; k < INNER; k++)
				c.host[i] += a.at(0, n, row, k) * b.at(0, n, k, col);
		}
		c.check(what, 1e-3);
		c.clear();
	}
};

static void again(cudnnBackendDescriptor_t plan, matrices &m, matrices &other)
{
	void *space = workspace_of(plan);
	cudaGraphExec_t exec;
	cudaGraph_t captured;
	cudaStream_t stream;

	for (matrices *p : {&m, &other, &m}) {
		execute(handle, plan, {'a', 'b', 'c'}, {p->a.gpu, p->b.gpu, p->c.gpu}, space);
		p->check("a product");
	}
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaDeviceSynchronize());
	DNN(cudnnSetStream(handle, stream));
	/* The tensors may come in any order. */
	execute(handle, plan, {'c', 'b', 'a'}, {other.c.gpu, other.b.gpu, other.a.gpu}, space);
	CHECK(cudaStreamSynchronize(stream));
	other.check("a product in another stream");
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	execute(handle, plan, {'a', 'b', 'c'}, {m.a.gpu, m.b.gpu, m.c.gpu}, space);
	CHECK(cudaStreamEndCapture(stream, &captured));
	CHECK(cudaGraphInstantiate(&exec, captured, 0));
	CHECK(cudaGraphDestroy(captured));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		m.check("a product in a CUDA graph");
		CHECK(cudaDeviceSynchronize());
	}
	CHECK(cudaGraphExecDestroy(exec));
	DNN(cudnnSetStream(handle, NULL));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(space));
}

static void products(void)
{
	matrices m, other;
	descriptors all = {product_way(), tensor_of('a', {BATCH, ROWS, INNER}), tensor_of('b', {BATCH, INNER, COLS}),
			   tensor_of('c', {BATCH, ROWS, COLS})};
	cudnnBackendDescriptor_t graph, plan, pack = made(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);

	all.push_back(product(all[0], all[1], all[2], all[3]));
	DNN(cudnnBackendFinalize(all.back()));
	graph = graph_of(handle, {all.back()});
	all.push_back(graph);
	plan = first_plan(handle, graph);
	if (there_is("a product", plan)) {
		/* The pack is not finalized. */
		DNN_FAILS(cudnnBackendExecute(handle, plan, pack));
		again(plan, m, other);
		all.push_back(plan);
		plan = numbered_plan(graph);
		REQUIRE(plan, "heuristics find an engine, but none has a number");
		again(plan, m, other);
		all.push_back(plan);
		no_text(plan);
	}
	DNN(cudnnBackendDestroyDescriptor(pack));
	end(all);
}

int main(void)
{
	handle = dnn_handle();
	wrong_calls();
	products();
	DNN(cudnnDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("products of matrices by plans that run again\n");
	return 0;
}
