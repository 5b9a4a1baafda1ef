// SPDX-License-Identifier: LGPL-2.1-or-later
/* A graph as text for Graphviz. */
#include <stdio.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

static const char *const type_names[] = {
	[cudaGraphNodeTypeKernel] = "KERNEL",
	[cudaGraphNodeTypeMemcpy] = "MEMCPY",
	[cudaGraphNodeTypeMemset] = "MEMSET",
	[cudaGraphNodeTypeHost] = "HOST",
	[cudaGraphNodeTypeGraph] = "GRAPH",
	[cudaGraphNodeTypeEmpty] = "EMPTY",
	[cudaGraphNodeTypeWaitEvent] = "WAIT_EVENT",
	[cudaGraphNodeTypeEventRecord] = "EVENT_RECORD",
	[cudaGraphNodeTypeExtSemaphoreSignal] = "EXT_SEMAS_SIGNAL",
	[cudaGraphNodeTypeExtSemaphoreWait] = "EXT_SEMAS_WAIT",
	[cudaGraphNodeTypeMemAlloc] = "MEM_ALLOC",
	[cudaGraphNodeTypeMemFree] = "MEM_FREE",
	[12] = "BATCH_MEM_OP", /* only the driver API has a name for it */
	[cudaGraphNodeTypeConditional] = "CONDITIONAL",
};

static const char *type_name(const struct qcul_node_params *p)
{
	if ((int)p->type != QCUL_NODE_CALL)
		return type_names[p->type];
	return p->call->params ? type_names[p->call->type] : "LIBRARY";
}

static void print_params(FILE *f, const struct qcul_node_params *p)
{
	switch (p->type) {
	case cudaGraphNodeTypeKernel:
		fprintf(f, "\\n%s\\n<<<(%u,%u,%u),(%u,%u,%u),%u>>>", p->kernel.kernel->name,
			p->kernel.grid.x, p->kernel.grid.y, p->kernel.grid.z, p->kernel.block.x,
			p->kernel.block.y, p->kernel.block.z, p->kernel.shared);
		break;
	case cudaGraphNodeTypeMemcpy:
		fprintf(f, "\\n%p to %p\\n%zu x %zu x %zu", p->copy.srcPtr.ptr, p->copy.dstPtr.ptr,
			p->copy.extent.width, p->copy.extent.height, p->copy.extent.depth);
		break;
	case cudaGraphNodeTypeMemset:
		fprintf(f, "\\n%p, value %u\\n%zu x %zu of %u", p->memset.dst, p->memset.value,
			p->memset.width, p->memset.height, p->memset.elementSize);
		break;
	case cudaGraphNodeTypeMemAlloc:
	case cudaGraphNodeTypeMemFree:
		fprintf(f, "\\n%p", qcul_node_memory_ptr(p));
		break;
	default:
		break;
	}
}

/* The numbers are those that cudaGraphGetId and cudaGraphNodeGetLocalId return. */
static void print_graph(FILE *f, const struct CUgraph_st *g)
{
	unsigned int me = (unsigned int)g->serial;
	size_t i, k;

	fprintf(f, "subgraph cluster_%u {\nlabel=\"graph_%u\" graph[style=\"dashed\"];\n", me, me);
	for (i = 0; i < g->count; i++) {
		const struct CUgraphNode_st *n = g->nodes[i];

		fprintf(f, "\"node_%llu\"[shape=\"record\" label=\"%zu %s",
			(unsigned long long)n->serial, i, type_name(&n->params));
		print_params(f, &n->params);
		fprintf(f, "\"];\n");
		if (n->params.type == cudaGraphNodeTypeGraph)
			print_graph(f, n->params.child);
	}
	for (i = 0; i < g->count; i++)
		for (k = 0; k < g->nodes[i]->dep_count; k++)
			fprintf(f, "\"node_%llu\" -> \"node_%llu\";\n",
				(unsigned long long)g->nodes[i]->deps[k].from->serial,
				(unsigned long long)g->nodes[i]->serial);
	fprintf(f, "}\n");
}

/* The flags select details; the output always contains everything that is known. */
cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
	FILE *f;

	(void)flags;
	if (!path || !qcul_graph_valid(graph))
		return qcul_done(cudaErrorInvalidValue);
	f = fopen(path, "w");
	if (!f)
		return qcul_done(cudaErrorOperatingSystem);
	fprintf(f, "digraph dot {\n");
	print_graph(f, graph);
	fprintf(f, "}\n");
	return qcul_done(fclose(f) ? cudaErrorOperatingSystem : cudaSuccess);
}
