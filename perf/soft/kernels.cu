// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Is the software GPU fast enough for tests? Runs two important loops a few times. One adds 1 M
 * elements: memory and dispatch. The other multiplies and adds 256 x 256 x 256 numbers:
 * arithmetic, in the simplest form, and in tiles through shared memory. Prints the median and
 * the best time beside the promised time for two cores. The program fails if even the best time
 * is over that, unless other programs used the processor meanwhile.
 */
#include <algorithm>
#include <ctime>

#include "tests/guest/check.h"

#define RUNS 5
#define N    256
#define TILE 16

#define ELEMENTS	(1 << 20)
#define ADD_LIMIT	500.0 /* ms */
#define MULTIPLY_LIMIT	2000.0

__global__ void vector_add(const float *a, const float *b, float *c, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

__global__ void multiply(const float *a, const float *b, float *c)
{
	int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
	float sum = 0.0f;

	for (int i = 0; i < N; i++)
		sum += a[row * N + i] * b[i * N + col];
	c[row * N + col] = sum;
}

__global__ void multiply_tiled(const float *a, const float *b, float *c)
{
	__shared__ float ta[TILE][TILE], tb[TILE][TILE];
	int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
	float sum = 0.0f;

	for (int t = 0; t < N; t += TILE) {
		ta[threadIdx.y][threadIdx.x] = a[row * N + t + threadIdx.x];
		tb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * N + col];
		__syncthreads();
		for (int i = 0; i < TILE; i++)
			sum += ta[threadIdx.y][i] * tb[i][threadIdx.x];
		__syncthreads();
	}
	c[row * N + col] = sum;
}

/* Small whole numbers: sums of their products are exact in any order. */
static float small(uint32_t i, uint32_t seed)
{
	return (float)(int)(scramble(i, seed) % 17) - 8.0f;
}

static float *filled(int n, uint32_t seed)
{
	float *host = (float *)malloc(n * sizeof(float)), *dev;

	REQUIRE(host, "out of memory");
	for (int i = 0; i < n; i++)
		host[i] = small(i, seed);
	CHECK(cudaMalloc(&dev, n * sizeof(float)));
	CHECK(cudaMemcpy(dev, host, n * sizeof(float), cudaMemcpyHostToDevice));
	free(host);
	return dev;
}

static bool over;

template <typename Launch>
static void measure(const char *what, double limit, Launch launch)
{
	double ms[RUNS], start, cpu;
	bool missed;

	cpu = (double)clock();
	for (int i = 0; i < RUNS; i++) {
		start = now();
		launch();
		CHECK_LAUNCH();
		CHECK(cudaDeviceSynchronize());
		ms[i] = (now() - start) * 1e3;
	}
	cpu = ((double)clock() - cpu) / CLOCKS_PER_SEC * 1e3 / RUNS;
	std::sort(ms, ms + RUNS);
	missed = ms[0] > limit && cpu > limit;
	printf("%-36s median %8.1f ms, best %8.1f ms, promised %6.0f ms%s\n", what, ms[RUNS / 2],
	       ms[0], limit, missed ? " MISSED" : "");
	over |= missed;
}

static void check_sums(const float *dev)
{
	float *c = (float *)malloc(ELEMENTS * sizeof(float));

	REQUIRE(c, "out of memory");
	CHECK(cudaMemcpy(c, dev, ELEMENTS * sizeof(float), cudaMemcpyDeviceToHost));
	for (int i = 0; i < ELEMENTS; i++)
		REQUIRE(c[i] == small(i, 1) + small(i, 2), "element %d: %g", i, c[i]);
	free(c);
}

static void check_products(float *dev)
{
	static float c[N * N];

	CHECK(cudaMemcpy(c, dev, sizeof(c), cudaMemcpyDeviceToHost));
	for (int row = 0; row < N; row += 5)
		for (int col = 0; col < N; col++) {
			float sum = 0.0f;

			for (int i = 0; i < N; i++)
				sum += small(row * N + i, 1) * small(i * N + col, 2);
			REQUIRE(c[row * N + col] == sum, "(%d,%d): %g, not %g", row, col,
				c[row * N + col], sum);
		}
	CHECK(cudaMemset(dev, 0, sizeof(c)));
}

int main()
{
	const dim3 grid(N / TILE, N / TILE), block(TILE, TILE);
	float *a = filled(ELEMENTS, 1), *b = filled(ELEMENTS, 2), *c;

	CHECK(cudaMalloc(&c, ELEMENTS * sizeof(float)));
	measure("vector add, 1 M floats", ADD_LIMIT,
		[=] { vector_add<<<ELEMENTS / 256, 256>>>(a, b, c, ELEMENTS); });
	check_sums(c);
	measure("matrix multiply, 256 x 256 x 256", MULTIPLY_LIMIT,
		[=] { multiply<<<grid, block>>>(a, b, c); });
	check_products(c);
	measure("the same in tiles", MULTIPLY_LIMIT,
		[=] { multiply_tiled<<<grid, block>>>(a, b, c); });
	check_products(c);
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaFree(c));
	REQUIRE(!over, "slower than promised");
	return verified("three kernels, within their time");
}
