// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Generators of cuRAND in several threads, each in a stream of its own, between kernels of the program:
 * each thread gets the numbers that its seed gives to a thread alone. One generator goes from stream to
 * stream, and its sequence goes on.
 */
#include <thread>

#include "rand.h"

#define N	65536
#define THREADS 4
#define ROUNDS	8

static const curandRngType_t kinds[THREADS] = {CURAND_RNG_PSEUDO_PHILOX4_32_10, CURAND_RNG_PSEUDO_XORWOW,
					       CURAND_RNG_PSEUDO_MRG32K3A, CURAND_RNG_PSEUDO_PHILOX4_32_10};

/* Takes numbers of the generator away, so that the next ones can be written in their place. */
__global__ void collect(unsigned int *sums, const unsigned int *numbers)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	sums[i] = sums[i] * 31 + numbers[i];
}

/* The sums of all rounds of one generator, in a stream. Nothing waits in between. */
static std::vector<unsigned int> run(curandRngType_t type, unsigned long long seed)
{
	curandGenerator_t g = make(type, seed);
	std::vector<unsigned int> got(N);
	unsigned int *sums, *numbers;
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(curandSetStream(g, stream));
	CHECK(cudaMalloc(&sums, N * sizeof(*sums)));
	CHECK(cudaMalloc(&numbers, N * sizeof(*numbers)));
	CHECK(cudaMemsetAsync(sums, 0, N * sizeof(*sums), stream));
	for (int round = 0; round < ROUNDS; round++) {
		OK(curandGenerate(g, numbers, N));
		collect<<<N / 256, 256, 0, stream>>>(sums, numbers);
		CHECK_LAUNCH();
	}
	CHECK(cudaMemcpyAsync(got.data(), sums, N * sizeof(*sums), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	OK(curandDestroyGenerator(g));
	CHECK(cudaFree(sums));
	CHECK(cudaFree(numbers));
	CHECK(cudaStreamDestroy(stream));
	return got;
}

/* The same on the CPU, from the numbers in one piece. */
static std::vector<unsigned int> expected(curandRngType_t type, unsigned long long seed)
{
	std::vector<unsigned int> sums(N), numbers;
	curandGenerator_t g = make(type, seed);
	unsigned int *gpu;

	CHECK(cudaMalloc(&gpu, ROUNDS * N * sizeof(*gpu)));
	OK(curandGenerate(g, gpu, ROUNDS * N));
	numbers = down(gpu, ROUNDS * N);
	for (int i = 0; i < ROUNDS * N; i++)
		sums[i % N] = sums[i % N] * 31 + numbers[i];
	OK(curandDestroyGenerator(g));
	CHECK(cudaFree(gpu));
	return sums;
}

static void in_threads(void)
{
	std::vector<unsigned int> got[THREADS];
	std::vector<std::thread> threads;

	for (int i = 0; i < THREADS; i++)
		threads.emplace_back([&got, i] { got[i] = run(kinds[i], 100 + i); });
	for (std::thread &t : threads)
		t.join();
	for (int i = 0; i < THREADS; i++)
		REQUIRE(got[i] == expected(kinds[i], 100 + i), "thread %d has got other numbers", i);
	REQUIRE(got[0] != got[3], "two seeds give the same numbers");
}

static void from_stream_to_stream(void)
{
	curandGenerator_t g = make(CURAND_RNG_PSEUDO_PHILOX4_32_10, 5),
			  alone = make(CURAND_RNG_PSEUDO_PHILOX4_32_10, 5);
	std::vector<unsigned int> want;
	unsigned int *gpu;

	CHECK(cudaMalloc(&gpu, THREADS * N * sizeof(*gpu)));
	OK(curandGenerate(alone, gpu, THREADS * N));
	want = down(gpu, THREADS * N);
	CHECK(cudaMemset(gpu, 0, THREADS * N * sizeof(*gpu)));
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < THREADS; i++) {
		cudaStream_t stream;

		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		OK(curandSetStream(g, stream));
		OK(curandGenerate(g, gpu + i * N, N));
		CHECK(cudaStreamSynchronize(stream));
		OK(curandSetStream(g, NULL));
		CHECK(cudaStreamDestroy(stream));
	}
	REQUIRE(down(gpu, THREADS * N) == want, "another stream gives other numbers");
	OK(curandDestroyGenerator(g));
	OK(curandDestroyGenerator(alone));
	CHECK(cudaFree(gpu));
}

int main(void)
{
	curandGenerator_t g = begin(CURAND_RNG_PSEUDO_XORWOW);

	FAILS(curandSetStream(NULL, NULL));
	FAILS(curandGenerate(NULL, NULL, N));
	OK(curandDestroyGenerator(g));
	in_threads();
	from_stream_to_stream();
	printf("generators in %d threads and in several streams\n", THREADS);
	return 0;
}
