// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Graphs and captures. Calls of CUDA 12 whose names end in nothing know no edge data. Without a
 * place for it, 13's calls answer in the same way: edges that have data are an error.
 */
#include <stddef.h>

#include "qcu-library/cuda12/cuda12.h"

cudaError_t cuda12_GraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					const cudaGraphNode_t *to, size_t count)
{
	return cudaGraphAddDependencies(graph, from, to, NULL, count);
}

cudaError_t cuda12_GraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					   const cudaGraphNode_t *to, size_t count)
{
	return cudaGraphRemoveDependencies(graph, from, to, NULL, count);
}

cudaError_t cuda12_GraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
				const cudaGraphNode_t *dependencies, size_t count,
				struct cudaGraphNodeParams *params)
{
	return cudaGraphAddNode(node, graph, dependencies, NULL, count, params);
}

cudaError_t cuda12_GraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
				 size_t *count)
{
	return cudaGraphGetEdges(graph, from, to, NULL, count);
}

cudaError_t cuda12_GraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
					    size_t *count)
{
	return cudaGraphNodeGetDependencies(node, dependencies, NULL, count);
}

cudaError_t cuda12_GraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents,
					      size_t *count)
{
	return cudaGraphNodeGetDependentNodes(node, dependents, NULL, count);
}

cudaError_t cuda12_StreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
					unsigned long long *id)
{
	return cudaStreamGetCaptureInfo(stream, status, id, NULL, NULL, NULL, NULL);
}

cudaError_t cuda12_StreamGetCaptureInfo_ptsz(cudaStream_t stream,
					     enum cudaStreamCaptureStatus *status,
					     unsigned long long *id)
{
	return cudaStreamGetCaptureInfo_ptsz(stream, status, id, NULL, NULL, NULL, NULL);
}

cudaError_t cuda12_StreamGetCaptureInfo_v2(cudaStream_t stream,
					   enum cudaStreamCaptureStatus *status,
					   unsigned long long *id, cudaGraph_t *graph,
					   const cudaGraphNode_t **dependencies, size_t *count)
{
	return cudaStreamGetCaptureInfo(stream, status, id, graph, dependencies, NULL, count);
}

cudaError_t cuda12_StreamGetCaptureInfo_v2_ptsz(cudaStream_t stream,
						enum cudaStreamCaptureStatus *status,
						unsigned long long *id, cudaGraph_t *graph,
						const cudaGraphNode_t **dependencies, size_t *count)
{
	return cudaStreamGetCaptureInfo_ptsz(stream, status, id, graph, dependencies, NULL, count);
}

cudaError_t cuda12_StreamUpdateCaptureDependencies(cudaStream_t stream,
						   cudaGraphNode_t *dependencies, size_t count,
						   unsigned int flags)
{
	return cudaStreamUpdateCaptureDependencies(stream, dependencies, NULL, count, flags);
}

cudaError_t cuda12_StreamUpdateCaptureDependencies_ptsz(cudaStream_t stream,
							cudaGraphNode_t *dependencies, size_t count,
							unsigned int flags)
{
	return cudaStreamUpdateCaptureDependencies_ptsz(stream, dependencies, NULL, count, flags);
}
