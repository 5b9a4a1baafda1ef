// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Connected components of a graph: threads link the roots of the two ends of their edge with
 * compare-and-swap until the roots are the same. The label of a component is its smallest
 * vertex.
 */
#include <algorithm>
#include <numeric>
#include <vector>

#include "check.h"

#define VERTICES 2000
#define EDGES	 1500

__device__ int find(volatile int *parent, int v)
{
	while (parent[v] != v)
		v = parent[v];
	return v;
}

__global__ void link(const int2 *edge, int *parent)
{
	int e = blockIdx.x * blockDim.x + threadIdx.x, a, b;

	if (e >= EDGES)
		return;
	a = edge[e].x;
	b = edge[e].y;
	for (;;) {
		a = find(parent, a);
		b = find(parent, b);
		if (a == b)
			return;
		if (a < b) {
			int t = a;

			a = b;
			b = t;
		}
		/*
		 * Only a root may be linked below another; another thread may have been faster.
		 */
		if (atomicCAS(&parent[a], a, b) == a)
			return;
	}
}

__global__ void flatten(int *parent)
{
	int v = blockIdx.x * blockDim.x + threadIdx.x;

	if (v < VERTICES)
		parent[v] = find(parent, v);
}

static int find_host(std::vector<int> &parent, int v)
{
	while (parent[v] != v)
		v = parent[v] = parent[parent[v]];
	return v;
}

int main(void)
{
	std::vector<int> want(VERTICES), got(VERTICES);
	std::vector<int2> edge(EDGES);
	int *dev_parent, components = 0;
	int2 *dev_edge;

	std::iota(want.begin(), want.end(), 0);
	got = want;
	for (int e = 0; e < EDGES; e++) {
		edge[e].x = scramble(e, 1) % VERTICES;
		edge[e].y = scramble(e, 2) % VERTICES;
	}
	CHECK(cudaMalloc(&dev_parent, VERTICES * sizeof(int)));
	CHECK(cudaMalloc(&dev_edge, EDGES * sizeof(int2)));
	CHECK(cudaMemcpy(dev_parent, got.data(), VERTICES * sizeof(int), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_edge, edge.data(), EDGES * sizeof(int2), cudaMemcpyHostToDevice));
	link<<<(EDGES + 127) / 128, 128>>>(dev_edge, dev_parent);
	flatten<<<(VERTICES + 127) / 128, 128>>>(dev_parent);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got.data(), dev_parent, VERTICES * sizeof(int), cudaMemcpyDeviceToHost));
	for (int2 e : edge) {
		int a = find_host(want, e.x), b = find_host(want, e.y);

		want[std::max(a, b)] = std::min(a, b);
	}
	for (int v = 0; v < VERTICES; v++) {
		int root = find_host(want, v);

		REQUIRE(got[v] == root, "vertex %d is in %d, expected %d", v, got[v], root);
		components += root == v;
	}
	CHECK(cudaFree(dev_parent));
	CHECK(cudaFree(dev_edge));
	return verified("%d vertices in %d components", VERTICES, components);
}
