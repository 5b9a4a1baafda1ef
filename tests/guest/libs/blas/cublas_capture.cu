// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of cuBLAS in a captured stream become part of the graph: with kernels and copies before and
 * after them, in two streams, in a graph that is launched again and again with other contents, in
 * copies of the graph and in an update of its instance. A scalar is the one of the capture. A call
 * whose result goes to host memory cannot be captured.
 */
#include "blas.h"

#define N 24

static cublasHandle_t handle;

__global__ void add_one(float *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += 1;
}

/* c = factor * (a + 1) * b in one stream, d = d + 2 * c in another, which the first one waits for. */
static cudaGraph_t capture(float *a, float *b, float *c, float *d, float factor)
{
	const float zero = 0;
	cudaEvent_t there, back;
	cudaStream_t s, other;
	cudaGraph_t graph;
	float two = 2;

	CHECK(cudaStreamCreate(&s));
	CHECK(cudaStreamCreate(&other));
	CHECK(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	add_one<<<3, 256, 0, s>>>(a, N * N);
	CHECK_LAUNCH();
	BLAS(cublasSetStream(handle, s));
	BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &factor, a, N, b, N, &zero, c, N));
	factor = 1000;
	CHECK(cudaEventRecord(there, s));
	CHECK(cudaStreamWaitEvent(other, there, 0));
	BLAS(cublasSetStream(handle, other));
	BLAS(cublasSaxpy(handle, N * N, &two, c, 1, d, 1));
	two = 1000;
	CHECK(cudaEventRecord(back, other));
	CHECK(cudaStreamWaitEvent(s, back, 0));
	CHECK(cudaStreamEndCapture(s, &graph));
	BLAS(cublasSetStream(handle, NULL));
	CHECK(cudaStreamDestroy(s));
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaEventDestroy(there));
	CHECK(cudaEventDestroy(back));
	return graph;
}

static void expect(array<float> &a, array<float> &b, array<float> &c, array<float> &d, float factor)
{
	for (float &v : a.host)
		v += 1;
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++) {
			float sum = 0;

			for (int l = 0; l < N; l++)
				sum += a.host[i + l * N] * b.host[l + j * N];
			c.host[i + j * N] = factor * sum;
			d.host[i + j * N] += 2 * c.host[i + j * N];
		}
}

static void results_in_host_memory(array<float> &a)
{
	cudaGraph_t graph = NULL;
	cudaStream_t s;
	float result = 5;

	CHECK(cudaStreamCreate(&s));
	BLAS(cublasSetStream(handle, s));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
	REQUIRE(cublasSdot(handle, N, a.gpu, 1, a.gpu, 1, &result) != CUBLAS_STATUS_SUCCESS, "it was captured");
	REQUIRE(cudaStreamEndCapture(s, &graph) != cudaSuccess && !graph, "the capture is valid");
	cudaGetLastError();
	BLAS(cublasSetStream(handle, NULL));
	CHECK(cudaStreamDestroy(s));
	BLAS(cublasSdot(handle, N, a.gpu, 1, a.gpu, 1, &result));
}

int main(void)
{
	array<float> a(N * N), b(N * N), c(N * N), d(N * N);
	cudaGraphExecUpdateResultInfo info;
	cudaGraphExec_t exec, copied;
	cudaGraph_t graph, copy;
	cudaStream_t s;

	CHECK(cudaStreamCreate(&s));
	BLAS(cublasCreate(&handle));
	results_in_host_memory(a);
	graph = capture(a.gpu, b.gpu, c.gpu, d.gpu, 0.5f);
	a.check("nothing has run");
	/* A real cuBLAS may allocate memory in the graph. CUDA copies no such graph. */
	bool cloned = cudaGraphClone(&copy, graph) == cudaSuccess;

	if (!cloned)
		REQUIRE(cudaGetLastError() == cudaErrorNotSupported, "a graph is not copied");
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	for (int i = 0; i < 4; i++) {
		CHECK(cudaGraphLaunch(exec, s));
		expect(a, b, c, d, 0.5f);
	}
	CHECK(cudaStreamSynchronize(s));
	c.check("the products of four launches");
	d.check("their sum");

	if (cloned) {
		CHECK(cudaGraphInstantiate(&copied, copy, 0));
		CHECK(cudaGraphDestroy(copy));
		CHECK(cudaGraphLaunch(copied, s));
		CHECK(cudaGraphExecDestroy(copied));
		expect(a, b, c, d, 0.5f);
	}
	graph = capture(a.gpu, b.gpu, c.gpu, d.gpu, -0.25f);
	if (cudaGraphExecUpdate(exec, graph, &info) != cudaSuccess) {
		/* An instance may be made for kernels that cannot take its place. */
		cudaGetLastError();
		CHECK(cudaGraphExecDestroy(exec));
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
	}
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaGraphLaunch(exec, s));
	expect(a, b, c, d, -0.25f);
	CHECK(cudaStreamSynchronize(s));
	c.check("the product after the update");
	d.check("the sum after the update");
	CHECK(cudaGraphExecDestroy(exec));
	BLAS(cublasDestroy(handle));
	CHECK(cudaStreamDestroy(s));
	printf("products in graphs\n");
	return 0;
}
