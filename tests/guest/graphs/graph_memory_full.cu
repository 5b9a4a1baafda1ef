// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Graphs that each allocate and free more than half of the memory: they share it, so their launches
 * do not overlap, in whichever streams and threads they are. Memory that a launch leaves allocated,
 * and memory of one graph that is needed at the same time, cannot be shared.
 */
#include <thread>

#include "check.h"

#define WORDS  (1 << 18)
#define GRAPHS 3
#define ROUNDS 8

__global__ void fill(unsigned int *p, unsigned int value)
{
	p[blockIdx.x * blockDim.x + threadIdx.x] = value;
}

__global__ void count_others(const unsigned int *p, unsigned int value, unsigned int *others)
{
	if (p[blockIdx.x * blockDim.x + threadIdx.x] != value)
		atomicAdd(others, 1);
}

struct made {
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	unsigned int *memory;
};

static unsigned int *others; /* words that another graph has changed */
static size_t most;	     /* more than half of the memory that is free */

static cudaError_t add_alloc(cudaGraph_t graph, cudaGraphNode_t *node, unsigned int **memory)
{
	cudaMemAllocNodeParams m = {};
	cudaError_t err;

	m.bytesize = most;
	m.poolProps.allocType = cudaMemAllocationTypePinned;
	m.poolProps.location.type = cudaMemLocationTypeDevice;
	err = cudaGraphAddMemAllocNode(node, graph, NULL, 0, &m);
	*memory = (unsigned int *)m.dptr;
	return err;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t behind, void *func,
				  void **args)
{
	cudaKernelNodeParams k = {};
	cudaGraphNode_t node;

	k.func = func;
	k.gridDim = dim3(WORDS / 256);
	k.blockDim = dim3(256);
	k.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&node, graph, &behind, 1, &k));
	return node;
}

/* Allocates, fills, looks whether all is still there, and frees if that is wanted. */
static cudaError_t add_work(cudaGraph_t graph, unsigned int value, bool frees,
			    unsigned int **memory)
{
	void *args[] = {memory, &value, &others};
	cudaGraphNode_t node;
	cudaError_t err = add_alloc(graph, &node, memory);

	if (err)
		return err;
	node = add_kernel(graph, node, (void *)fill, args);
	node = add_kernel(graph, node, (void *)count_others, args);
	if (frees)
		CHECK(cudaGraphAddMemFreeNode(&node, graph, &node, 1, *memory));
	return cudaSuccess;
}

/* What dropped graphs had is free when nothing uses it any more. */
static void trim(void)
{
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaDeviceGraphMemTrim(0));
}

static void drop(struct made *m)
{
	if (m->exec)
		CHECK(cudaGraphExecDestroy(m->exec));
	CHECK(cudaGraphDestroy(m->graph));
	*m = {};
}

static void make(struct made *m, unsigned int value, bool frees)
{
	CHECK(cudaGraphCreate(&m->graph, 0));
	CHECK(add_work(m->graph, value, frees, &m->memory));
	CHECK(cudaGraphInstantiate(&m->exec, m->graph, 0));
}

/* CUDA says that there is no room when the graph is launched, our library when a node is added. */
static cudaError_t launch_if_added(cudaError_t err, cudaGraph_t graph)
{
	cudaGraphExec_t exec;

	if (!err)
		err = cudaGraphInstantiate(&exec, graph, 0);
	if (err)
		return err;
	err = cudaGraphLaunch(exec, 0);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaGraphExecDestroy(exec));
	return err;
}

static void expect_no_room(cudaError_t err, const char *what)
{
	REQUIRE(err == cudaErrorMemoryAllocation, "%s: %s", what, cudaGetErrorName(err));
	CHECK(cudaDeviceSynchronize());
	(void)cudaGetLastError();
}

static void left_allocated(void)
{
	struct made left, more = {};
	cudaError_t err;

	make(&left, 1, false);
	CHECK(cudaGraphLaunch(left.exec, 0));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaGraphCreate(&more.graph, 0));
	err = add_work(more.graph, 2, true, &more.memory);
	expect_no_room(launch_if_added(err, more.graph), "beside memory that is still allocated");
	drop(&more);
	CHECK(cudaFree(left.memory));
	drop(&left);
	trim();
}

static void side_by_side(void)
{
	struct made both = {};
	unsigned int *second;
	cudaError_t err;

	CHECK(cudaGraphCreate(&both.graph, 0));
	CHECK(add_work(both.graph, 1, true, &both.memory));
	err = add_work(both.graph, 2, true, &second);
	expect_no_room(launch_if_added(err, both.graph), "two branches of a graph");
	drop(&both);
	trim();
}

/* A child that is moved becomes a part of its parent's launch. */
static void parent_and_child(void)
{
	struct made parent = {}, child = {};
	cudaGraphNodeParams p = {};
	cudaGraphNode_t node;
	cudaError_t err;

	CHECK(cudaGraphCreate(&parent.graph, 0));
	CHECK(cudaGraphCreate(&child.graph, 0));
	CHECK(add_work(parent.graph, 1, true, &parent.memory));
	CHECK(add_work(child.graph, 2, true, &child.memory));
	p.type = cudaGraphNodeTypeGraph;
	p.graph.graph = child.graph;
	p.graph.ownership = cudaGraphChildGraphOwnershipMove;
	err = cudaGraphAddNode(&node, parent.graph, NULL, NULL, 0, &p);
	if (err)
		drop(&child);
	expect_no_room(launch_if_added(err, parent.graph), "a child beside its parent");
	drop(&parent);
	trim();
}

static void launch_often(const struct made *m, cudaStream_t stream)
{
	for (int i = 0; i < ROUNDS; i++)
		CHECK(cudaGraphLaunch(m->exec, stream));
}

static void expect_no_others(const char *what)
{
	CHECK(cudaDeviceSynchronize());
	REQUIRE(*others == 0, "%s: %u words are another graph's", what, *others);
	CHECK(cudaGetLastError());
}

static void one_after_another(void)
{
	struct made m[GRAPHS];
	cudaStream_t streams[GRAPHS];
	std::thread threads[GRAPHS];

	for (int i = 0; i < GRAPHS; i++) {
		make(&m[i], 100 + i, true);
		CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
	}
	/* No error is left behind by memory that was shared in the end. */
	CHECK(cudaGetLastError());
	for (int i = 0; i < GRAPHS * ROUNDS; i++)
		CHECK(cudaGraphLaunch(m[i % GRAPHS].exec, streams[0]));
	expect_no_others("in one stream");
	for (int i = 0; i < GRAPHS * ROUNDS; i++)
		CHECK(cudaGraphLaunch(m[i % GRAPHS].exec, streams[i % GRAPHS]));
	expect_no_others("in several streams");
	for (int i = 0; i < GRAPHS; i++)
		threads[i] = std::thread(launch_often, &m[i], streams[i]);
	for (std::thread &t : threads)
		t.join();
	expect_no_others("in several threads");
	drop(&m[0]);
	launch_often(&m[2], streams[2]);
	expect_no_others("after one is gone");
	make(&m[0], 200, true);
	launch_often(&m[0], streams[0]);
	for (int i = 0; i < GRAPHS; i++) {
		drop(&m[i]);
		CHECK(cudaStreamDestroy(streams[i]));
	}
	expect_no_others("destroyed behind their launches");
	trim();
}

int main(void)
{
	size_t free_bytes, total, after;

	CHECK(cudaMallocHost(&others, sizeof(*others)));
	*others = 0;
	CHECK(cudaMemGetInfo(&free_bytes, &total));
	most = free_bytes / 5 * 3;
	left_allocated();
	side_by_side();
	parent_and_child();
	one_after_another();
	CHECK(cudaMemGetInfo(&after, &total));
	REQUIRE(after >= most, "%zu of %zu bytes are free in the end", after, free_bytes);
	CHECK(cudaFreeHost(others));
	return verified("%d graphs share more than half of the memory", GRAPHS);
}
