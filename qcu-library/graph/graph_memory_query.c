// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a program can ask about the memory of graphs: how much there is, and what the nodes do.
 */
#include <string.h>

#include "qcu-library/graph/graph.h"

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
					   void *value)
{
	uint64_t *out = value;
	struct qcul_graph_usage p;
	cudaError_t err = value ? qcul_device_ready(device) : cudaErrorInvalidValue;

	if (err)
		return qcul_done(err);
	p = qcul_graph_usage(device);
	*out = 0;
	switch (attr) {
	case cudaGraphMemAttrUsedMemCurrent:
		*out = p.used;
		break;
	case cudaGraphMemAttrUsedMemHigh:
		*out = p.used_high;
		break;
	case cudaGraphMemAttrReservedMemCurrent:
		if (p.pool)
			err = cudaMemPoolGetAttribute(p.pool, cudaMemPoolAttrReservedMemCurrent,
						      out);
		break;
	case cudaGraphMemAttrReservedMemHigh:
		if (p.pool)
			err = cudaMemPoolGetAttribute(p.pool, cudaMemPoolAttrReservedMemHigh, out);
		break;
	default:
		err = cudaErrorInvalidValue;
	}
	return qcul_done(err);
}

/* Only the two high values can be set, and only to 0. Each then starts again at the present value.
 */
cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
					   void *value)
{
	uint64_t zero = 0;
	struct qcul_graph_usage p;
	cudaError_t err = value ? qcul_device_ready(device) : cudaErrorInvalidValue;

	if (!err && memcmp(value, &zero, sizeof(zero)) != 0)
		err = cudaErrorInvalidValue;
	if (err)
		return qcul_done(err);
	p = qcul_graph_usage(device);
	switch (attr) {
	case cudaGraphMemAttrUsedMemHigh:
		qcul_graph_usage_restart(device);
		break;
	case cudaGraphMemAttrReservedMemHigh:
		if (p.pool)
			err = cudaMemPoolSetAttribute(p.pool, cudaMemPoolAttrReservedMemHigh,
						      &zero);
		break;
	default:
		err = cudaErrorInvalidValue;
	}
	return qcul_done(err);
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
	struct qcul_graph_usage p;
	cudaError_t err = qcul_device_ready(device);

	if (err)
		return qcul_done(err);
	p = qcul_graph_usage(device);
	return p.pool ? cudaMemPoolTrimTo(p.pool, 0) : cudaSuccess;
}

static cudaError_t check_node_query(cudaGraphNode_t node, enum cudaGraphNodeType type,
				    const void *out)
{
	return out && qcul_node_valid(node) && node->params.type == type ? cudaSuccess
									 : cudaErrorInvalidValue;
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
					   struct cudaMemAllocNodeParams *params)
{
	cudaError_t err = check_node_query(node, cudaGraphNodeTypeMemAlloc, params);

	if (!err)
		*params = *qcul_node_memory_params(&node->params);
	return qcul_done(err);
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *ptr)
{
	cudaError_t err = check_node_query(node, cudaGraphNodeTypeMemFree, ptr);
	const void *memory;

	if (!err) {
		memory = qcul_node_memory_ptr(&node->params);
		memcpy(ptr, &memory, sizeof(memory));
	}
	return qcul_done(err);
}
