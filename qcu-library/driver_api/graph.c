// SPDX-License-Identifier: LGPL-2.1-or-later
/* Graphs, their edges, and executable graphs: they are the runtime's. */
#include "qcu-library/driver_base/driver.h"

_Static_assert(sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS) == sizeof(cudaGraphInstantiateParams) &&
		       offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out) ==
			       offsetof(cudaGraphInstantiateParams, result_out) &&
		       sizeof(CUgraphExecUpdateResultInfo) ==
			       sizeof(cudaGraphExecUpdateResultInfo) &&
		       sizeof(CUgraphEdgeData) == sizeof(cudaGraphEdgeData),
	       "graphs");

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
	return QCUL_STARTED(cudaGraphCreate(graph, flags));
}

CUresult cuGraphDestroy(CUgraph graph)
{
	return QCUL_STARTED(cudaGraphDestroy(graph));
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	return QCUL_STARTED(cudaGraphClone(clone, graph));
}

CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
	return QCUL_STARTED(cudaGraphNodeFindInClone(node, original, clone));
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return QCUL_STARTED(cudaGraphGetNodes(graph, nodes, count));
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return QCUL_STARTED(cudaGraphGetRootNodes(graph, nodes, count));
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
	return QCUL_STARTED(cudaGraphDestroyNode(node));
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	return QCUL_STARTED(cudaGraphDebugDotPrint(graph, path, flags));
}

/* ---- edges ---- */

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
			    CUgraphEdgeData *edges, size_t *count)
{
	return QCUL_STARTED(cudaGraphGetEdges(graph, from, to, (cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *edges,
				       size_t *count)
{
	return QCUL_STARTED(
		cudaGraphNodeGetDependencies(node, list, (cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	return cuGraphNodeGetDependencies_v2(node, list, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *list,
					 CUgraphEdgeData *edges, size_t *count)
{
	return QCUL_STARTED(
		cudaGraphNodeGetDependentNodes(node, list, (cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	return cuGraphNodeGetDependentNodes_v2(node, list, NULL, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *edges, size_t count)
{
	return QCUL_STARTED(
		cudaGraphAddDependencies(graph, from, to, (const cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				size_t count)
{
	return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

CUresult cuGraphRemoveDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				      const CUgraphEdgeData *edges, size_t count)
{
	return QCUL_STARTED(cudaGraphRemoveDependencies(graph, from, to,
							(const cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   size_t count)
{
	return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

/* ---- executable graphs ---- */

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
	return QCUL_READY(cudaGraphInstantiate(exec, graph, flags));
}

/* This form says which node is wrong; the log stays empty. */
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *wrong, char *log,
			       size_t log_size)
{
	cudaGraphInstantiateParams params = {0};
	CUresult result = QCUL_READY(cudaGraphInstantiateWithParams(exec, graph, &params));

	if (wrong)
		*wrong = result ? params.errNode_out : NULL;
	if (log && log_size)
		log[0] = '\0';
	return result;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return QCUL_READY(
		cudaGraphInstantiateWithParams(exec, graph, (cudaGraphInstantiateParams *)params));
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
					   CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	CUDA_GRAPH_INSTANTIATE_PARAMS own;
	CUresult result;

	if (!params || params->hUploadStream)
		return cuGraphInstantiateWithParams(exec, graph, params);
	own = *params;
	own.hUploadStream = cudaStreamPerThread;
	result = cuGraphInstantiateWithParams(exec, graph, &own);
	params->hErrNode_out = own.hErrNode_out;
	params->result_out = own.result_out;
	return result;
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	return QCUL_STARTED(cudaGraphExecGetFlags(exec, (unsigned long long *)flags));
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	return QCUL_STARTED(cudaGraphExecDestroy(exec));
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	return QCUL_IN_STREAM(stream, cudaGraphUpload(exec, stream));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return QCUL_IN_STREAM(stream, cudaGraphLaunch(exec, stream));
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	CUgraphExecUpdateResultInfo unused;

	if (!info)
		info = &unused;
	return QCUL_READY(cudaGraphExecUpdate(exec, graph, (cudaGraphExecUpdateResultInfo *)info));
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *wrong,
			   CUgraphExecUpdateResult *what)
{
	CUgraphExecUpdateResultInfo info = {.result = CU_GRAPH_EXEC_UPDATE_ERROR};
	CUresult result = cuGraphExecUpdate_v2(exec, graph, &info);

	if (wrong)
		*wrong = info.errorNode;
	if (what)
		*what = info.result;
	return result;
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
	return QCUL_STARTED(cudaGraphNodeSetEnabled(exec, node, enabled));
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
	return QCUL_STARTED(cudaGraphNodeGetEnabled(exec, node, enabled));
}

/* ---- objects that graphs keep ---- */

CUresult cuUserObjectCreate(CUuserObject *object, void *ptr, CUhostFn destroy, unsigned int count,
			    unsigned int flags)
{
	return QCUL_STARTED(cudaUserObjectCreate(object, ptr, destroy, count, flags));
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	return QCUL_STARTED(cudaUserObjectRetain(object, count));
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	return QCUL_STARTED(cudaUserObjectRelease(object, count));
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
				 unsigned int flags)
{
	return QCUL_STARTED(cudaGraphRetainUserObject(graph, object, count, flags));
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	return QCUL_STARTED(cudaGraphReleaseUserObject(graph, object, count));
}
