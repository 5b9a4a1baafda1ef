// SPDX-License-Identifier: LGPL-2.1-or-later
/* Graphs, their edges, and executable graphs: what is not just the runtime's function. */
#include "qcu-library/driver_base/driver.h"

_Static_assert(offsetof(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out) ==
			       offsetof(cudaGraphInstantiateParams, result_out) &&
		       sizeof(CUgraphExecUpdateResultInfo) == sizeof(cudaGraphExecUpdateResultInfo),
	       "graphs");

/* ---- edges ---- */

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count)
{
	return cuGraphGetEdges_v2(graph, from, to, NULL, count);
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	return cuGraphNodeGetDependencies_v2(node, list, NULL, count);
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	return cuGraphNodeGetDependentNodes_v2(node, list, NULL, count);
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				size_t count)
{
	return cuGraphAddDependencies_v2(graph, from, to, NULL, count);
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				   size_t count)
{
	return cuGraphRemoveDependencies_v2(graph, from, to, NULL, count);
}

/* ---- executable graphs ---- */

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
