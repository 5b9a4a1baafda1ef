// SPDX-License-Identifier: GPL-2.0-or-later
/* Dependencies of graphs: added, removed, asked for, and those that make a circle; clones and
 * children. */
#include "driver.h"

static CUgraph graph;
static CUgraphNode a, b, c;

static size_t edges(void)
{
	size_t n = 0;

	DCHECK(cuGraphGetEdges(graph, NULL, NULL, NULL, &n));
	return n;
}

static void dependencies(void)
{
	CUgraphNode from[4], to[4];
	size_t n = 4;

	DCHECK(cuGraphAddEmptyNode(&a, graph, NULL, 0));
	DCHECK(cuGraphAddEmptyNode(&b, graph, &a, 1));
	DCHECK(cuGraphAddEmptyNode(&c, graph, NULL, 0));
	REQUIRE(edges() == 1, "%zu edges", edges());
	DCHECK(cuGraphAddDependencies(graph, &b, &c, NULL, 1));
	DCHECK(cuGraphGetEdges(graph, from, to, NULL, &n));
	REQUIRE(n == 2, "%zu edges", n);
	n = 4;
	DCHECK(cuGraphNodeGetDependencies(b, from, NULL, &n));
	REQUIRE(n == 1 && from[0] == a, "%zu", n);
	n = 4;
	DCHECK(cuGraphNodeGetDependentNodes(b, to, NULL, &n));
	REQUIRE(n == 1 && to[0] == c, "%zu", n);
	n = 4;
	DCHECK(cuGraphGetRootNodes(graph, from, &n));
	REQUIRE(n == 1 && from[0] == a, "%zu roots", n);
	/* The same once more, to itself, and one that is not there. */
	DEXPECT(cuGraphAddDependencies(graph, &b, &c, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphAddDependencies(graph, &b, &b, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphRemoveDependencies(graph, &a, &c, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	DEXPECT(cuGraphAddDependencies(graph, NULL, &c, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	REQUIRE(edges() == 2, "%zu edges", edges());
}

static void circle(void)
{
	CUgraphExec exec = NULL;
	CUresult added = cuGraphAddDependencies(graph, &c, &a, NULL, 1);

	/* It is refused here or when an instance is made. */
	if (!added) {
		REQUIRE(cuGraphInstantiate(&exec, graph, 0), "a circle");
		DCHECK(cuGraphRemoveDependencies(graph, &c, &a, NULL, 1));
	}
	DCHECK(cuGraphInstantiate(&exec, graph, 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuGraphExecDestroy(exec));
}

static void copies(void)
{
	CUgraph clone, outer, inner;
	CUgraphNode found, child;
	CUgraphExec exec;
	size_t n = 0;

	DCHECK(cuGraphClone(&clone, graph));
	DCHECK(cuGraphNodeFindInClone(&found, b, clone));
	REQUIRE(found && found != b, "not found");
	DCHECK(cuGraphDestroyNode(found));
	REQUIRE(edges() == 2, "%zu edges", edges());
	DCHECK(cuGraphGetNodes(clone, NULL, &n));
	REQUIRE(n == 2, "%zu nodes", n);
	DCHECK(cuGraphCreate(&outer, 0));
	DCHECK(cuGraphAddChildGraphNode(&child, outer, NULL, 0, graph));
	DCHECK(cuGraphChildGraphNodeGetGraph(child, &inner));
	REQUIRE(inner != graph, "the child is no copy");
	DCHECK(cuGraphGetNodes(inner, NULL, &n));
	REQUIRE(n == 3, "%zu nodes", n);
	DCHECK(cuGraphInstantiate(&exec, outer, 0));
	DCHECK(cuGraphLaunch(exec, NULL));
	DCHECK(cuStreamSynchronize(NULL));
	DCHECK(cuGraphExecDestroy(exec));
	DCHECK(cuGraphDestroy(outer));
	DCHECK(cuGraphDestroy(clone));
}

int main()
{
	driver_start();
	DCHECK(cuGraphCreate(&graph, 0));
	dependencies();
	circle();
	copies();
	DCHECK(cuGraphRemoveDependencies(graph, &b, &c, NULL, 1));
	REQUIRE(edges() == 1, "%zu edges", edges());
	DCHECK(cuGraphDestroyNode(a));
	REQUIRE(edges() == 0, "%zu edges", edges());
	DCHECK(cuGraphDestroy(graph));
	return verified("dependencies of graphs");
}
