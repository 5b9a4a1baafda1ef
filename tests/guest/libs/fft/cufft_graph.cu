// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Transforms in two captured streams become part of a graph, with kernels before and after them. It is
 * launched again and again with other contents, and so is a copy; its instance is updated to go the other
 * way. Nothing runs while it is captured. A wrong call does not end the capture.
 */
#include "fft.h"

#define N     60
#define BATCH 4
#define ALL   (N * BATCH)

static cufftHandle plan[2];
static cudaStream_t stream[2];
static C *gpu[2];
static float *sum;

/* What these must hold, computed on the CPU. */
static std::vector<C> x[2];
static std::vector<float> squares(ALL);

static __global__ void prepare(cufftComplex *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = make_cuComplex(p[i].x / 8 + 1, p[i].y / 8);
}

/* sum += the squares of both, divided by the length. */
static __global__ void add_squares(const cufftComplex *a, const cufftComplex *b, float *to, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		to[i] += (a[i].x * a[i].x + a[i].y * a[i].y + b[i].x * b[i].x + b[i].y * b[i].y) / N;
}

/* Both streams prepare their numbers and transform them; the first one then adds up the squares. */
static cudaGraph_t capture(int direction)
{
	cudaEvent_t there, back;
	cudaGraph_t graph;

	CHECK(cudaEventCreate(&there));
	CHECK(cudaEventCreate(&back));
	CHECK(cudaStreamBeginCapture(stream[0], cudaStreamCaptureModeThreadLocal));
	CHECK(cudaEventRecord(there, stream[0]));
	CHECK(cudaStreamWaitEvent(stream[1], there, 0));
	for (int s = 0; s < 2; s++) {
		prepare<<<blocks(ALL), 256, 0, stream[s]>>>(raw(gpu[s]), ALL);
		CHECK_LAUNCH();
		OK(execute(plan[s], gpu[s], gpu[s], direction));
	}
	FAILS(execute(CUFFT_PLAN_NULL, gpu[0], gpu[0], direction));
	CHECK(cudaEventRecord(back, stream[1]));
	CHECK(cudaStreamWaitEvent(stream[0], back, 0));
	add_squares<<<blocks(ALL), 256, 0, stream[0]>>>(raw(gpu[0]), raw(gpu[1]), sum, ALL);
	CHECK_LAUNCH();
	CHECK(cudaStreamEndCapture(stream[0], &graph));
	CHECK(cudaEventDestroy(there));
	CHECK(cudaEventDestroy(back));
	return graph;
}

static void check(const char *what)
{
	for (int s = 0; s < 2; s++)
		compare(what, down(gpu[s], ALL), x[s]);
	compare(what, down(sum, ALL), squares);
}

static void new_numbers(void)
{
	for (int s = 0; s < 2; s++) {
		x[s] = numbers<C>(ALL);
		CHECK(cudaMemcpy(gpu[s], x[s].data(), ALL * sizeof(C), cudaMemcpyHostToDevice));
	}
}

/* With new numbers, which each launch after the first one transforms again. */
static void launch(const char *what, cudaGraphExec_t exec, cudaStream_t s, int direction, int times)
{
	new_numbers();
	for (int i = 0; i < times; i++) {
		CHECK(cudaGraphLaunch(exec, s));
		for (std::vector<C> &v : x) {
			for (C &c : v)
				c = c / 8.0f + 1.0f;
			for (int b = 0; b < BATCH; b++) {
				std::vector<Z> y = transform(&v[b * N], N, direction);
				std::copy(y.begin(), y.end(), v.begin() + b * N);
			}
			for (int j = 0; j < ALL; j++)
				squares[j] += std::norm(v[j]) / N;
		}
	}
	CHECK(cudaStreamSynchronize(s));
	check(what);
}

int main(void)
{
	cudaGraph_t graph, copy;
	cudaGraphExec_t exec, copied;
	cudaGraphExecUpdateResultInfo info;

	begin();
	for (int s = 0; s < 2; s++) {
		CHECK(cudaStreamCreate(&stream[s]));
		CHECK(cudaMalloc(&gpu[s], ALL * sizeof(C)));
		OK(cufftPlan1d(&plan[s], N, CUFFT_C2C, BATCH));
		OK(cufftSetStream(plan[s], stream[s]));
		/* What is used first is made ready outside of the capture. */
		for (int direction : {CUFFT_FORWARD, CUFFT_INVERSE})
			OK(execute(plan[s], gpu[s], gpu[s], direction));
		CHECK(cudaStreamSynchronize(stream[s]));
	}
	sum = up(squares);
	new_numbers();
	graph = capture(CUFFT_FORWARD);
	CHECK(cudaDeviceSynchronize());
	check("nothing has run");
	CHECK(cudaGraphClone(&copy, graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	launch("launches", exec, stream[0], CUFFT_FORWARD, 3);
	CHECK(cudaGraphInstantiate(&copied, copy, 0));
	CHECK(cudaGraphDestroy(copy));
	launch("launches of a copy", copied, stream[1], CUFFT_FORWARD, 3);
	CHECK(cudaGraphExecDestroy(copied));
	graph = capture(CUFFT_INVERSE);
	if (cudaGraphExecUpdate(exec, graph, &info) != cudaSuccess) {
		/* An instance may be made for kernels that cannot take its place. */
		cudaGetLastError();
		CHECK(cudaGraphExecDestroy(exec));
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
	}
	CHECK(cudaGraphDestroy(graph));
	launch("the other way", exec, stream[0], CUFFT_INVERSE, 2);
	CHECK(cudaGraphExecDestroy(exec));
	for (int s = 0; s < 2; s++) {
		OK(cufftDestroy(plan[s]));
		CHECK(cudaStreamDestroy(stream[s]));
		CHECK(cudaFree(gpu[s]));
	}
	CHECK(cudaFree(sum));
	printf("transforms in graphs of two streams\n");
	return 0;
}
