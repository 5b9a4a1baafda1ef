// SPDX-License-Identifier: LGPL-2.1-or-later
/* Launch attributes that are set on a kernel node and apply to each launch of it. */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/graph/graph.h"

static bool of_nodes(cudaLaunchAttributeID id)
{
	switch ((int)id) {
	case cudaLaunchAttributeAccessPolicyWindow:
	case cudaLaunchAttributeCooperative:
	case cudaLaunchAttributeClusterDimension:
	case cudaLaunchAttributeClusterSchedulingPolicyPreference:
	case cudaLaunchAttributePriority:
	case cudaLaunchAttributeMemSyncDomainMap:
	case cudaLaunchAttributeMemSyncDomain:
	case cudaLaunchAttributePreferredClusterDimension:
	case cudaLaunchAttributePreferredSharedMemoryCarveout:
	case cudaLaunchAttributeNvlinkUtilCentricScheduling:
		return true;
	}
	return false;
}

static cudaLaunchAttribute *find_node_attr(const struct qcul_node_kernel *k,
					   cudaLaunchAttributeID id)
{
	unsigned int i;

	for (i = 0; i < k->attr_count; i++)
		if (k->attrs[i].id == id)
			return &k->attrs[i];
	return NULL;
}

cudaError_t qcul_node_attr_set(struct qcul_node_kernel *k, cudaLaunchAttributeID id,
			       const cudaLaunchAttributeValue *value)
{
	cudaLaunchAttribute *a = find_node_attr(k, id), *more;

	if (!a) {
		more = realloc(k->attrs, (k->attr_count + 1) * sizeof(*more));
		if (!more)
			return cudaErrorMemoryAllocation;
		k->attrs = more;
		a = &more[k->attr_count++];
		memset(a, 0, sizeof(*a));
		a->id = id;
	}
	a->val = *value;
	return cudaSuccess;
}

cudaError_t qcul_node_attrs_copy(struct qcul_node_kernel *to, const struct qcul_node_kernel *from)
{
	cudaLaunchAttribute *copy = NULL;

	if (from->attr_count) {
		copy = malloc(from->attr_count * sizeof(*copy));
		if (!copy)
			return cudaErrorMemoryAllocation;
		memcpy(copy, from->attrs, from->attr_count * sizeof(*copy));
	}
	free(to->attrs);
	to->attrs = copy;
	to->attr_count = from->attr_count;
	return cudaSuccess;
}

static bool is_kernel(cudaGraphNode_t node)
{
	return qcul_node_valid(node) && node->params.type == cudaGraphNodeTypeKernel;
}

static cudaError_t check_node_attr(cudaGraphNode_t node, cudaLaunchAttributeID id,
				   const void *value)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!value || !is_kernel(node))
		return cudaErrorInvalidValue;
	if (id == cudaLaunchAttributeDeviceUpdatableKernelNode)
		return qcul_unsupported("a kernel node that kernels update", &said);
	return of_nodes(id) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
					    const cudaLaunchAttributeValue *value)
{
	cudaError_t err = check_node_attr(node, id, value);

	return qcul_done(err ? err : qcul_node_attr_set(&node->params.kernel, id, value));
}

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID id,
					    cudaLaunchAttributeValue *value)
{
	const cudaLaunchAttribute *a;
	cudaError_t err = check_node_attr(node, id, value);

	if (err)
		return qcul_done(err);
	a = find_node_attr(&node->params.kernel, id);
	memset(value, 0, sizeof(*value));
	if (a)
		*value = a->val;
	else if (id == cudaLaunchAttributePreferredSharedMemoryCarveout)
		value->sharedMemCarveout = cudaSharedmemCarveoutDefault;
	return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t dst, cudaGraphNode_t src)
{
	if (!is_kernel(src) || !is_kernel(dst))
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(qcul_node_attrs_copy(&dst->params.kernel, &src->params.kernel));
}
