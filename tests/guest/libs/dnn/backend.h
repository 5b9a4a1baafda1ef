/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuDNN's backend API need: descriptors with attributes. */
#ifndef BACKEND_H
#define BACKEND_H

#include "dnn.h"

static inline cudnnBackendDescriptor_t made(cudnnBackendDescriptorType_t type)
{
	cudnnBackendDescriptor_t d = NULL;

	DNN(cudnnBackendCreateDescriptor(type, &d));
	return d;
}

static inline void set_one(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
			   cudnnBackendDescriptor_t one)
{
	DNN(cudnnBackendSetAttribute(d, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one));
}

static inline void set_handle(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t name,
			      cudnnHandle_t handle)
{
	DNN(cudnnBackendSetAttribute(d, name, CUDNN_TYPE_HANDLE, 1, &handle));
}

/* All that is made for a graph, to be ended in the reverse order. */
typedef std::vector<cudnnBackendDescriptor_t> descriptors;

static inline void end(descriptors &all)
{
	for (; !all.empty(); all.pop_back())
		DNN(cudnnBackendDestroyDescriptor(all.back()));
}

/* An operation with its tensors, which are named by attributes. */
typedef std::pair<cudnnBackendAttributeName_t, cudnnBackendDescriptor_t> part;

static inline cudnnBackendDescriptor_t operation(cudnnBackendDescriptorType_t type,
						 const std::vector<part> &parts)
{
	cudnnBackendDescriptor_t op = made(type);

	for (const part &p : parts)
		set_one(op, p.first, p.second);
	return op;
}

/* A tensor of float, not finalized yet. Without strides, it has no gaps. */
static inline cudnnBackendDescriptor_t begun(int64_t id, const std::vector<int64_t> &dim,
					     std::vector<int64_t> stride = {})
{
	cudnnBackendDescriptor_t d = made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	const int64_t alignment = 16, count = (int64_t)dim.size();
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;

	if (stride.empty()) {
		stride.assign(dim.size(), 1);
		for (int64_t i = count - 2; i >= 0; i--)
			stride[i] = stride[i + 1] * dim[i + 1];
	}
	DNN(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id));
	DNN(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
				     &type));
	DNN(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, count,
				     dim.data()));
	DNN(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, count,
				     stride.data()));
	DNN(cudnnBackendSetAttribute(d, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1,
				     &alignment));
	return d;
}

static inline cudnnBackendDescriptor_t tensor_of(int64_t id, const std::vector<int64_t> &dim,
						 const std::vector<int64_t> &stride = {})
{
	cudnnBackendDescriptor_t d = begun(id, dim, stride);

	DNN(cudnnBackendFinalize(d));
	return d;
}

static inline cudnnBackendDescriptor_t graph_of(cudnnHandle_t handle, const descriptors &ops)
{
	cudnnBackendDescriptor_t graph = made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);

	DNN(cudnnBackendSetAttribute(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS,
				     CUDNN_TYPE_BACKEND_DESCRIPTOR, (int64_t)ops.size(),
				     ops.data()));
	set_handle(graph, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
	DNN(cudnnBackendFinalize(graph));
	return graph;
}

/* What heuristics answer for a graph, the best first. There may be none. */
static inline descriptors configs_of(cudnnBackendDescriptor_t graph, cudnnBackendHeurMode_t mode)
{
	cudnnBackendDescriptor_t heuristics = made(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
	descriptors configs;
	int64_t count = 0, filled = 0;

	set_one(heuristics, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
	DNN(cudnnBackendSetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE,
				     1, &mode));
	if (cudnnBackendFinalize(heuristics) == CUDNN_STATUS_SUCCESS)
		DNN(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
					     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, NULL));
	for (int64_t i = 0; i < count; i++)
		configs.push_back(made(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
	if (count > 0)
		DNN(cudnnBackendGetAttribute(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS,
					     CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &filled,
					     configs.data()));
	REQUIRE(filled >= 0 && filled <= count, "%d of %d engines", (int)filled, (int)count);
	for (; (int64_t)configs.size() > filled; configs.pop_back())
		DNN(cudnnBackendDestroyDescriptor(configs.back()));
	DNN(cudnnBackendDestroyDescriptor(heuristics));
	return configs;
}

/* NULL: the engine cannot do what the configuration says. */
static inline cudnnBackendDescriptor_t plan_of(cudnnHandle_t handle,
					       cudnnBackendDescriptor_t config)
{
	cudnnBackendDescriptor_t plan = made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);

	set_one(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
	set_handle(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, handle);
	if (cudnnBackendFinalize(plan) == CUDNN_STATUS_SUCCESS)
		return plan;
	DNN(cudnnBackendDestroyDescriptor(plan));
	return NULL;
}

/* The first plan of a graph that can be had, or NULL. */
static inline cudnnBackendDescriptor_t first_plan(cudnnHandle_t handle,
						  cudnnBackendDescriptor_t graph)
{
	cudnnBackendDescriptor_t plan = NULL;

	for (cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
		descriptors configs = configs_of(graph, mode);

		for (size_t i = 0; i < configs.size() && !plan; i++)
			plan = plan_of(handle, configs[i]);
		end(configs);
	}
	return plan;
}

/* GPU memory for a plan to work in. */
static inline void *workspace_of(cudnnBackendDescriptor_t plan)
{
	int64_t count = 0, bytes = -1;

	DNN(cudnnBackendGetAttribute(plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
				     CUDNN_TYPE_INT64, 1, &count, &bytes));
	REQUIRE(count == 1 && bytes >= 0, "a workspace of %lld bytes", (long long)bytes);
	return room(bytes);
}

static inline void execute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
			   const std::vector<int64_t> &ids, const std::vector<void *> &address,
			   void *workspace)
{
	cudnnBackendDescriptor_t pack = made(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);

	DNN(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
				     CUDNN_TYPE_VOID_PTR, (int64_t)address.size(), address.data()));
	DNN(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
				     (int64_t)ids.size(), ids.data()));
	DNN(cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
				     1, &workspace));
	DNN(cudnnBackendFinalize(pack));
	DNN(cudnnBackendExecute(handle, plan, pack));
	DNN(cudnnBackendDestroyDescriptor(pack));
}

/* Whether there is an engine depends on the GPU, but is the same on both sides. */
static inline bool there_is(const char *what, cudnnBackendDescriptor_t plan)
{
	printf("%s: %s\n", what, plan ? "computed" : "no engine");
	return plan != NULL;
}

/* How two matrices are multiplied, and that they are. */
static inline cudnnBackendDescriptor_t product_way(void)
{
	cudnnBackendDescriptor_t how = made(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
	const cudnnDataType_t type = CUDNN_DATA_FLOAT;

	DNN(cudnnBackendSetAttribute(how, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1,
				     &type));
	DNN(cudnnBackendFinalize(how));
	return how;
}

static inline cudnnBackendDescriptor_t product(cudnnBackendDescriptor_t how,
					       cudnnBackendDescriptor_t a,
					       cudnnBackendDescriptor_t b,
					       cudnnBackendDescriptor_t c)
{
	return operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
			 {{CUDNN_ATTR_OPERATION_MATMUL_DESC, how},
			  {CUDNN_ATTR_OPERATION_MATMUL_ADESC, a},
			  {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b},
			  {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c}});
}

#endif
