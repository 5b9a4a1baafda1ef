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
	return QCUL_RUNTIME(cudaGraphCreate(graph, flags));
}

CUresult cuGraphDestroy(CUgraph graph)
{
	return QCUL_RUNTIME(cudaGraphDestroy(graph));
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	return QCUL_RUNTIME(cudaGraphClone(clone, graph));
}

CUresult cuGraphNodeFindInClone(CUgraphNode *node, CUgraphNode original, CUgraph clone)
{
	return QCUL_RUNTIME(cudaGraphNodeFindInClone(node, original, clone));
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return QCUL_RUNTIME(cudaGraphGetNodes(graph, nodes, count));
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return QCUL_RUNTIME(cudaGraphGetRootNodes(graph, nodes, count));
}

CUresult cuGraphDestroyNode(CUgraphNode node)
{
	return QCUL_RUNTIME(cudaGraphDestroyNode(node));
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
	return QCUL_RUNTIME(cudaGraphDebugDotPrint(graph, path, flags));
}

/* ---- edges ---- */

CUresult cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
			    CUgraphEdgeData *edges, size_t *count)
{
	return QCUL_RUNTIME(cudaGraphGetEdges(graph, from, to, (cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *edges,
				       size_t *count)
{
	return QCUL_RUNTIME(
		cudaGraphNodeGetDependencies(node, list, (cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	return cuGraphNodeGetDependencies_v2(node, list, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *list,
					 CUgraphEdgeData *edges, size_t *count)
{
	return QCUL_RUNTIME(
		cudaGraphNodeGetDependentNodes(node, list, (cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	return cuGraphNodeGetDependentNodes_v2(node, list, NULL, count);
}

CUresult cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   const CUgraphEdgeData *edges, size_t count)
{
	return QCUL_RUNTIME(
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
	return QCUL_RUNTIME(cudaGraphRemoveDependencies(graph, from, to,
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
	return QCUL_RUNTIME(cudaGraphInstantiate(exec, graph, flags));
}

/* This form says which node is wrong; the log stays empty. */
CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *wrong, char *log,
			       size_t log_size)
{
	cudaGraphInstantiateParams params = {0};
	CUresult result = QCUL_RUNTIME(cudaGraphInstantiateWithParams(exec, graph, &params));

	if (wrong)
		*wrong = result ? params.errNode_out : NULL;
	if (log && log_size)
		log[0] = '\0';
	return result;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
				      CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	return QCUL_RUNTIME(
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
	return QCUL_RUNTIME(cudaGraphExecGetFlags(exec, (unsigned long long *)flags));
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	return QCUL_RUNTIME(cudaGraphExecDestroy(exec));
}

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	return QCUL_RUNTIME(cudaGraphUpload(exec, stream));
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return QCUL_RUNTIME(cudaGraphLaunch(exec, stream));
}

CUresult cuGraphExecUpdate_v2(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	CUgraphExecUpdateResultInfo unused;

	if (!info)
		info = &unused;
	return QCUL_RUNTIME(
		cudaGraphExecUpdate(exec, graph, (cudaGraphExecUpdateResultInfo *)info));
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
	return QCUL_RUNTIME(cudaGraphNodeSetEnabled(exec, node, enabled));
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
	return QCUL_RUNTIME(cudaGraphNodeGetEnabled(exec, node, enabled));
}

/* ---- objects that graphs keep ---- */

CUresult cuUserObjectCreate(CUuserObject *object, void *ptr, CUhostFn destroy, unsigned int count,
			    unsigned int flags)
{
	return QCUL_RUNTIME(cudaUserObjectCreate(object, ptr, destroy, count, flags));
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
	return QCUL_RUNTIME(cudaUserObjectRetain(object, count));
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
	return QCUL_RUNTIME(cudaUserObjectRelease(object, count));
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
				 unsigned int flags)
{
	return QCUL_RUNTIME(cudaGraphRetainUserObject(graph, object, count, flags));
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
	return QCUL_RUNTIME(cudaGraphReleaseUserObject(graph, object, count));
}
