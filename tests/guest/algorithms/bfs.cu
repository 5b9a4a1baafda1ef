// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Breadth-first search level by level: the frontier in one queue makes the next frontier in
 * another queue. Threads claim vertices with compare-and-swap. The host reads the queue's length
 * between levels.
 */
#include <queue>
#include <vector>

#include "check.h"

#define VERTICES 3000

__global__ void expand(const int *start, const int *next, int *level, int depth,
		       const int *frontier, int count, int *following, int *length)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= count)
		return;
	for (int e = start[frontier[i]]; e < start[frontier[i] + 1]; e++)
		if (atomicCAS(&level[next[e]], -1, depth) == -1)
			following[atomicAdd(length, 1)] = next[e];
}

int main(void)
{
	std::vector<int> start(1, 0), next, level(VERTICES, -1), got(VERTICES);
	int *dev_start, *dev_next, *dev_level, *dev_queue[2], *dev_length, count = 1, depth = 0;
	std::queue<int> todo;

	for (int v = 0; v < VERTICES; v++) {
		for (uint32_t k = 0; k < scramble(v, 25) % 4; k++)
			next.push_back(scramble(v, 26 + k) % VERTICES);
		start.push_back((int)next.size());
	}
	level[7] = 0;
	CHECK(cudaMalloc(&dev_start, start.size() * 4));
	CHECK(cudaMalloc(&dev_next, next.size() * 4));
	CHECK(cudaMalloc(&dev_level, VERTICES * 4));
	CHECK(cudaMalloc(&dev_queue[0], VERTICES * 4));
	CHECK(cudaMalloc(&dev_queue[1], VERTICES * 4));
	CHECK(cudaMalloc(&dev_length, 4));
	CHECK(cudaMemcpy(dev_start, start.data(), start.size() * 4, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_next, next.data(), next.size() * 4, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_level, level.data(), VERTICES * 4, cudaMemcpyHostToDevice));
	todo.push(7);
	CHECK(cudaMemcpy(dev_queue[0], &todo.front(), 4, cudaMemcpyHostToDevice));
	while (count) {
		int *from = dev_queue[depth % 2], *to = dev_queue[1 - depth % 2];

		depth++;
		CHECK(cudaMemset(dev_length, 0, 4));
		expand<<<(count + 63) / 64, 64>>>(dev_start, dev_next, dev_level, depth, from,
						  count, to, dev_length);
		CHECK_LAUNCH();
		CHECK(cudaMemcpy(&count, dev_length, 4, cudaMemcpyDeviceToHost));
		REQUIRE(count <= VERTICES && depth <= VERTICES, "%d vertices wait", count);
	}
	for (; !todo.empty(); todo.pop()) {
		int v = todo.front();

		for (int e = start[v]; e < start[v + 1]; e++) {
			if (level[next[e]] < 0) {
				level[next[e]] = level[v] + 1;
				todo.push(next[e]);
			}
		}
	}
	CHECK(cudaMemcpy(got.data(), dev_level, VERTICES * 4, cudaMemcpyDeviceToHost));
	for (int v = 0; v < VERTICES; v++)
		REQUIRE(got[v] == level[v], "vertex %d: level %d, expected %d", v, got[v],
			level[v]);
	CHECK(cudaFree(dev_start));
	CHECK(cudaFree(dev_next));
	CHECK(cudaFree(dev_level));
	CHECK(cudaFree(dev_queue[0]));
	CHECK(cudaFree(dev_queue[1]));
	CHECK(cudaFree(dev_length));
	return verified("%d vertices in %d levels", VERTICES, depth);
}
