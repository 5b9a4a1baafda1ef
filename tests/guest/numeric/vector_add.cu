// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first CUDA program: c = a + b over buffers from malloc. The length is no multiple of the
 * block, so the last block has threads that must do nothing.
 */
#include "check.h"

__global__ void vector_add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1000003;
	size_t bytes = (size_t)n * sizeof(float);
	float *a, *b, *c, *da, *db, *dc;
	double start;
	int i;

	REQUIRE(n > 0 && n < 1 << 28, "usage: vector_add [elements]");
	a = (float *)malloc(bytes);
	b = (float *)malloc(bytes);
	c = (float *)malloc(bytes);
	REQUIRE(a && b && c, "out of memory");
	for (i = 0; i < n; i++) {
		a[i] = (float)(scramble(i, 1) >> 8);
		b[i] = (float)(scramble(i, 2) >> 8) * 0.125f;
		c[i] = -1.0f;
	}
	CHECK(cudaMalloc(&da, bytes));
	CHECK(cudaMalloc(&db, bytes));
	CHECK(cudaMalloc(&dc, bytes));
	start = now();
	CHECK(cudaMemcpy(da, a, bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(db, b, bytes, cudaMemcpyHostToDevice));
	vector_add<<<(n + 255) / 256, 256>>>(da, db, dc, n);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(c, dc, bytes, cudaMemcpyDeviceToHost));
	printf("  %d elements up, added and back in %.1f ms\n", n, (now() - start) * 1e3);

	for (i = 0; i < n; i++)
		REQUIRE(c[i] == a[i] + b[i], "element %d: %g + %g gave %g", i, a[i], b[i], c[i]);
	CHECK(cudaFree(da));
	CHECK(cudaFree(db));
	CHECK(cudaFree(dc));
	free(a);
	free(b);
	free(c);
	return verified("%d sums equal the CPU's", n);
}
