// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Transforms in several streams: a plan for each, with kernels between; one plan that goes from stream to
 * stream, ordered by events; and a stream that waits for the host, whose transform must not run before,
 * while another stream's goes on. Calls with wrong plans come first.
 */
#include <atomic>
#include <unistd.h>

#include "fft.h"

#define STREAMS 4
#define N       240
#define BATCH   8

static cudaStream_t stream[STREAMS];

static void wrong_calls(void)
{
	cufftHandle plan;

	FAILS(cufftSetStream(CUFFT_PLAN_NULL, stream[0]));
	OK(cufftCreate(&plan));
	OK(cufftSetStream(plan, stream[0]));
	OK(cufftDestroy(plan));
	FAILS(cufftSetStream(plan, stream[0]));
}

static __global__ void scale(cufftComplex *p, float by, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] = make_cuComplex(p[i].x * by, p[i].y * by);
}

/* There and back, doubled; in each stream as many rounds as its number says, and one more. */
static void a_plan_for_each(void)
{
	std::vector<C> x[STREAMS];
	cufftHandle plan[STREAMS];
	C *gpu[STREAMS];

	for (int s = 0; s < STREAMS; s++) {
		x[s] = numbers<C>(N * BATCH);
		gpu[s] = up(x[s]);
		OK(cufftPlan1d(&plan[s], N, CUFFT_C2C, BATCH));
		OK(cufftSetStream(plan[s], stream[s]));
	}
	CHECK(cudaDeviceSynchronize());
	for (int round = 0; round < STREAMS; round++)
		for (int s = round; s < STREAMS; s++) {
			OK(execute(plan[s], gpu[s], gpu[s], CUFFT_FORWARD));
			scale<<<blocks(N * BATCH), 256, 0, stream[s]>>>(raw(gpu[s]), 2.0f / N, N * BATCH);
			CHECK_LAUNCH();
			OK(execute(plan[s], gpu[s], gpu[s], CUFFT_INVERSE));
		}
	CHECK(cudaDeviceSynchronize());
	for (int s = 0; s < STREAMS; s++) {
		compare("a stream", down(gpu[s], N * BATCH), x[s], 1.0 / (2 << s));
		OK(cufftDestroy(plan[s]));
		CHECK(cudaFree(gpu[s]));
	}
}

/* The plan's workspace is one, so each stream waits for the one before. */
static void one_plan_for_all(void)
{
	std::vector<C> x = numbers<C>(N * BATCH);
	cudaEvent_t done;
	cufftHandle plan;
	C *gpu = up(x);

	CHECK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
	OK(cufftPlan1d(&plan, N, CUFFT_C2C, BATCH));
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 6 * STREAMS; i++) {
		cudaStream_t s = stream[i % STREAMS];

		CHECK(cudaStreamWaitEvent(s, done, 0));
		OK(cufftSetStream(plan, s));
		OK(execute(plan, gpu, gpu, i % 2 ? CUFFT_INVERSE : CUFFT_FORWARD));
		if (i % 2)
			scale<<<blocks(N * BATCH), 256, 0, s>>>(raw(gpu), 1.0f / N, N * BATCH);
		CHECK_LAUNCH();
		CHECK(cudaEventRecord(done, s));
	}
	CHECK(cudaDeviceSynchronize());
	compare("one plan in all streams", down(gpu, N * BATCH), x);
	OK(cufftSetStream(plan, NULL));
	OK(execute(plan, gpu, gpu, CUFFT_FORWARD));
	compare("in the default stream", down(gpu, N), transform(x.data(), N, -1));
	OK(cufftDestroy(plan));
	CHECK(cudaEventDestroy(done));
	CHECK(cudaFree(gpu));
}

static void wait_for_host(void *arg)
{
	while (!((std::atomic<bool> *)arg)->load())
		usleep(100);
}

static void a_stream_that_waits(void)
{
	std::vector<C> x = numbers<C>(N);
	std::vector<Z> want = transform(x.data(), N, -1);
	std::atomic<bool> go(false);
	cufftHandle held, free_one;
	C *a = up(x), *b = up(x);

	OK(cufftPlan1d(&held, N, CUFFT_C2C, 1));
	OK(cufftPlan1d(&free_one, N, CUFFT_C2C, 1));
	/* What is used first may wait for the device, so each plan runs once before. */
	OK(execute(held, a, a, CUFFT_FORWARD));
	OK(execute(free_one, b, b, CUFFT_FORWARD));
	for (C *p : {a, b})
		CHECK(cudaMemcpy(p, x.data(), N * sizeof(C), cudaMemcpyHostToDevice));
	CHECK(cudaDeviceSynchronize());
	OK(cufftSetStream(held, stream[0]));
	OK(cufftSetStream(free_one, stream[1]));
	CHECK(cudaLaunchHostFunc(stream[0], wait_for_host, &go));
	OK(execute(held, a, a, CUFFT_FORWARD));
	OK(execute(free_one, b, b, CUFFT_FORWARD));
	CHECK(cudaStreamSynchronize(stream[1]));
	EXPECT(cudaStreamQuery(stream[0]), cudaErrorNotReady);
	REQUIRE(down(a, N) == x, "the transform did not wait for its stream");
	compare("the other stream", down(b, N), want);
	go = true;
	CHECK(cudaStreamSynchronize(stream[0]));
	compare("the stream that waited", down(a, N), want);
	OK(cufftDestroy(held));
	OK(cufftDestroy(free_one));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
}

int main(void)
{
	begin();
	for (cudaStream_t &s : stream)
		CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	wrong_calls();
	a_plan_for_each();
	one_plan_for_all();
	a_stream_that_waits();
	for (cudaStream_t s : stream)
		CHECK(cudaStreamDestroy(s));
	printf("%d streams with a plan each, and a plan in %d streams\n", STREAMS, STREAMS);
	return 0;
}
