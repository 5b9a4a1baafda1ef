// SPDX-License-Identifier: LGPL-2.1-or-later
/* Puts the work of one node into a stream. */
#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

/* A kernel has the priority of the stream, or of its node if the graph was instantiated with
 * cudaGraphInstantiateFlagUseNodePriority. */
void qcul_node_launch(const struct qcul_node_kernel *k, unsigned long long flags,
		      cudaLaunchConfig_t *config, cudaLaunchAttribute *attrs)
{
	unsigned int i;

	*config = (cudaLaunchConfig_t){
		.gridDim = k->grid,
		.blockDim = k->block,
		.dynamicSmemBytes = k->shared,
		.attrs = attrs,
	};
	for (i = 0; i < k->attr_count; i++)
		if (k->attrs[i].id != cudaLaunchAttributePriority ||
		    flags & cudaGraphInstantiateFlagUseNodePriority)
			attrs[config->numAttrs++] = k->attrs[i];
}

static cudaError_t run_kernel(const struct qcul_node_kernel *k, unsigned long long flags,
			      cudaStream_t stream)
{
	cudaLaunchAttribute attrs[QCUL_NODE_ATTRS];
	cudaLaunchConfig_t config;

	qcul_node_launch(k, flags, &config, attrs);
	config.stream = stream;
	return cudaLaunchKernelExC(&config, k->func, k->args);
}

static cudaError_t run_memset(const struct cudaMemsetParams *m, cudaStream_t stream)
{
	const struct qcul_fill fill = {
		.dst = m->dst,
		.pitch = m->pitch,
		.value = m->value,
		.elem = m->elementSize,
		.width = m->width * m->elementSize,
		.height = m->height,
	};

	return qcul_fill(&fill, stream);
}

cudaError_t qcul_node_run(const struct CUgraphNode_st *n, unsigned long long flags,
			  cudaStream_t stream)
{
	const struct qcul_node_params *p = &n->params;

	if (n->disabled)
		return cudaSuccess;
	if ((int)p->type == QCUL_NODE_CALL)
		return p->call->run(p->call, stream);
	switch (p->type) {
	case cudaGraphNodeTypeKernel:
		return run_kernel(&p->kernel, flags, stream);
	case cudaGraphNodeTypeMemcpy:
		return cudaMemcpy3DAsync(&p->copy, stream);
	case cudaGraphNodeTypeMemset:
		return run_memset(&p->memset, stream);
	case cudaGraphNodeTypeHost:
		return cudaLaunchHostFunc(stream, p->host.fn, p->host.userData);
	case cudaGraphNodeTypeEventRecord:
		return cudaEventRecord(p->event, stream);
	case cudaGraphNodeTypeWaitEvent:
		return cudaStreamWaitEvent(stream, p->event, 0);
	default:
		return cudaSuccess;
	}
}
