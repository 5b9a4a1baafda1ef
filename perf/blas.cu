// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What calls of cuBLAS cost that compute next to nothing: the way of a library's call, not the
 * computation.
 */
#include <cublas_v2.h>

#include "perf/bench.h"

#define N 16

struct state {
	cublasHandle_t blas;
	cudaStream_t stream;
	float *a, *b, *c;
	double *x, *y;
};

#define BLAS(call) REQUIRE((call) == CUBLAS_STATUS_SUCCESS, "%s failed", #call)

static void gemm(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;
	const float one = 1, zero = 0;

	while (n--)
		BLAS(cublasSgemm(s->blas, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &one, s->a, N, s->b, N,
				 &zero, s->c, N));
}

static void axpy(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;
	const double two = 2;

	while (n--)
		BLAS(cublasDaxpy(s->blas, N * N, &two, s->x, 1, s->y, 1));
}

static void dot(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;
	double result;

	while (n--)
		BLAS(cublasDdot(s->blas, N * N, s->x, 1, s->x, 1, &result));
	REQUIRE(result == N * N, "the product is %g", result);
}

static void settle(void *arg)
{
	CHECK(cudaStreamSynchronize(((struct state *)arg)->stream));
}

static void one_call(struct state *s, const char *name, void (*run)(void *, unsigned int),
		     bool queues)
{
	struct bench_case b = {};

	if (!bench_begins(name))
		return;
	b.name = name;
	b.unit = "us";
	b.run = run;
	b.settle = queues ? settle : NULL;
	b.arg = s;
	b.most = queues ? 64 : 0;
	b.checked = "-";
	bench_run(&b);
}

/* Fills n numbers on the GPU with 1. */
template <typename T> static T *ones(unsigned int n)
{
	T host[N * N], *p;

	for (unsigned int i = 0; i < n; i++)
		host[i] = 1;
	CHECK(cudaMalloc((void **)&p, n * sizeof(T)));
	CHECK(cudaMemcpy(p, host, n * sizeof(T), cudaMemcpyHostToDevice));
	return p;
}

int main(int argc, char **argv)
{
	struct state s = {};
	float got[N * N];

	bench_begin(argc, argv, "blas", "What calls of cuBLAS cost, in us.", 4, 1 << 20, NULL);
	CHECK(cudaStreamCreate(&s.stream));
	BLAS(cublasCreate(&s.blas));
	BLAS(cublasSetStream(s.blas, s.stream));
	s.a = ones<float>(N * N);
	s.b = ones<float>(N * N);
	s.c = ones<float>(N * N);
	s.x = ones<double>(N * N);
	s.y = ones<double>(N * N);
	one_call(&s, "cublasSgemm/issue", gemm, true);
	one_call(&s, "cublasDaxpy/issue", axpy, true);
	one_call(&s, "cublasDdot", dot, false);
	if (bench_wants("cublasSgemm/issue")) {
		CHECK(cudaMemcpy(got, s.c, sizeof(got), cudaMemcpyDeviceToHost));
		for (unsigned int i = 0; i < N * N; i++)
			REQUIRE(got[i] == N, "element %u is %g", i, got[i]);
	}
	BLAS(cublasDestroy(s.blas));
	CHECK(cudaStreamDestroy(s.stream));
	CHECK(cudaFree(s.a));
	CHECK(cudaFree(s.b));
	CHECK(cudaFree(s.c));
	CHECK(cudaFree(s.x));
	CHECK(cudaFree(s.y));
	return bench_end();
}
