// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A graph with a conditional node is launched again and again. Each launch sees the managed
 * variables as the program has left them, and the program sees what each launch has written.
 */
#include "check.h"

__managed__ int step, total, bonus = 100;

__global__ void add(cudaGraphConditionalHandle handle)
{
	total += step;
	cudaGraphSetConditional(handle, step % 2);
}

__global__ void add_bonus(void)
{
	total += bonus++;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, const void *func, void **args)
{
	cudaKernelNodeParams k = {};
	cudaGraphNode_t node;

	k.func = (void *)func;
	k.gridDim = k.blockDim = dim3(1);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&node, graph, NULL, 0, &k));
	return node;
}

static cudaGraphExec_t make(cudaGraph_t *graph)
{
	cudaGraphConditionalHandle handle;
	cudaGraphNodeParams p = {};
	cudaGraphNode_t first, node;
	cudaGraphExec_t exec;
	void *args[] = {&handle};

	CHECK(cudaGraphCreate(graph, 0));
	CHECK(cudaGraphConditionalHandleCreate(&handle, *graph, 0, 0));
	first = add_kernel(*graph, (const void *)add, args);
	p.type = cudaGraphNodeTypeConditional;
	p.conditional.handle = handle;
	p.conditional.type = cudaGraphCondTypeIf;
	p.conditional.size = 1;
	CHECK(cudaGraphAddNode(&node, *graph, &first, NULL, 1, &p));
	add_kernel(p.conditional.phGraph_out[0], (const void *)add_bonus, NULL);
	CHECK(cudaGraphInstantiate(&exec, *graph, 0));
	return exec;
}

int main(void)
{
	int i, want = 0, want_bonus = 100;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	exec = make(&graph);
	for (i = 1; i <= 6; i++) {
		step = i;
		want += i;
		if (i % 2)
			want += want_bonus++;
		CHECK(cudaGraphLaunch(exec, 0));
		CHECK(cudaDeviceSynchronize());
		REQUIRE(total == want && bonus == want_bonus, "launch %d: %d and %d, not %d and %d",
			i, total, bonus, want, want_bonus);
		if (i == 4)
			total = want = 1000;
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	return verified(
		"6 launches of a conditional graph share managed variables with the program");
}
