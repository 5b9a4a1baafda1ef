// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Many handles at once, each with a stream of its own: a product in each, and all of the results.
 * On a GPU each handle has work areas of some ten MiB, which the program has not asked for.
 *
 * With "hold" the program goes on multiplying until a call fails, so that a limit of GPU memory can
 * be tested. Then the exit code is 3.
 */
#include "blas.h"

#define HANDLES 72
#define N	256

static cublasHandle_t handle[HANDLES];
static cudaStream_t stream[HANDLES];
static float *a, *b, *c[HANDLES];

static bool multiply(int i)
{
	const float one = 1, zero = 0;

	return cublasSgemm(handle[i], CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, a, N, b, N, &zero,
			   c[i], N) == CUBLAS_STATUS_SUCCESS &&
	       cudaStreamSynchronize(stream[i]) == cudaSuccess;
}

static void hold(void)
{
	int i = 0;

	printf("ready\n");
	fflush(stdout);
	while (multiply(i))
		i = (i + 1) % HANDLES;
	printf("ended: %s\n", cudaGetErrorName(cudaGetLastError()));
	exit(3);
}

int main(int argc, char **argv)
{
	std::vector<float> one(N * N, 0), other(N * N), got(N * N);
	size_t bytes = N * N * sizeof(float);
	int i, j;

	for (i = 0; i < N; i++)
		one[i * N + i] = 2;
	for (i = 0; i < N * N; i++)
		other[i] = (float)(i % 97);
	CHECK(cudaMalloc(&a, bytes));
	CHECK(cudaMalloc(&b, bytes));
	CHECK(cudaMemcpy(a, one.data(), bytes, cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(b, other.data(), bytes, cudaMemcpyHostToDevice));
	for (i = 0; i < HANDLES; i++) {
		BLAS(cublasCreate(&handle[i]));
		CHECK(cudaStreamCreate(&stream[i]));
		BLAS(cublasSetStream(handle[i], stream[i]));
		CHECK(cudaMalloc(&c[i], bytes));
		if (!multiply(i) && argc > 1)
			return 3;
	}
	if (argc > 1)
		hold();
	for (i = 0; i < HANDLES; i++) {
		CHECK(cudaMemcpy(got.data(), c[i], bytes, cudaMemcpyDeviceToHost));
		for (j = 0; j < N * N; j++)
			REQUIRE(got[j] == 2 * other[j], "handle %d, number %d: %f", i, j, got[j]);
		BLAS(cublasDestroy(handle[i]));
		CHECK(cudaStreamDestroy(stream[i]));
		CHECK(cudaFree(c[i]));
	}
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	return verified("%d handles", HANDLES);
}
