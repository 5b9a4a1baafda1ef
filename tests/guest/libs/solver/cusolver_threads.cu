// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Several handles of cuSOLVER: each of four threads has one, in a stream of its own, and solves equations
 * and finds eigenvalues again and again. Then one handle goes from stream to stream, and what is set in a
 * handle is kept there.
 */
#include <thread>

#include "solver.h"

#define N	48
#define THREADS 4
#define ROUNDS	6

/* Made before the threads begin, as the numbers come one after the other. */
struct problem {
	std::vector<double> general, definite, right;

	problem() : general(regular<double>(N)), definite(hermitian<double>(N, 2 * N)), right(numbers<double>(N))
	{
	}
};

template <typename T> static void send(const memory<T> &to, const std::vector<T> &from, cudaStream_t stream)
{
	CHECK(cudaMemcpyAsync(to.at, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice, stream));
}

template <typename T> static std::vector<T> fetch(const memory<T> &from, cudaStream_t stream)
{
	std::vector<T> to(from.n);

	CHECK(cudaMemcpyAsync(to.data(), from.at, to.size() * sizeof(T), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	return to;
}

/* GPU memory for one problem at a time. */
struct place {
	memory<double> a, b, values;
	memory<int> pivots, info;
	int lu, eigen;

	explicit place(cusolverDnHandle_t h) : a(N * N), b(N), values(N), pivots(N), info(2), lu(0), eigen(0)
	{
		OK(cusolverDnDgetrf_bufferSize(h, N, N, a, N, &lu));
		OK(cusolverDnDsyevd_bufferSize(h, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, a, N, values,
					       &eigen));
	}
};

static void solve(cusolverDnHandle_t h, cudaStream_t stream, const problem &p, const place &at,
		  const memory<double> &work)
{
	send(at.a, p.general, stream);
	send(at.b, p.right, stream);
	OK(cusolverDnDgetrf(h, N, N, at.a, N, work, at.pivots, at.info));
	OK(cusolverDnDgetrs(h, CUBLAS_OP_N, N, 1, at.a, N, at.pivots, at.b, N, at.info + 1));
	near("a solution", times(p.general, fetch(at.b, stream), N, N, 1), p.right);
	REQUIRE(fetch(at.info, stream) == std::vector<int>(2), "info is not 0");

	send(at.a, p.definite, stream);
	OK(cusolverDnDsyevd(h, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, N, at.a, N, at.values, work, at.eigen,
			    at.info));
	check_vectors("eigenvectors", p.definite, fetch(at.a, stream), fetch(at.values, stream));
	REQUIRE(fetch(at.info, stream) == std::vector<int>(2), "info is not 0");
}

static void one_thread(const std::vector<problem> *problems, int number)
{
	cusolverDnHandle_t mine;
	cudaStream_t stream, told = NULL;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	OK(cusolverDnCreate(&mine));
	OK(cusolverDnSetStream(mine, stream));
	OK(cusolverDnGetStream(mine, &told));
	REQUIRE(told == stream, "the handle is in another stream");
	{
		place at(mine);
		memory<double> work(std::max(at.lu, at.eigen));

		for (int round = 0; round < ROUNDS; round++)
			solve(mine, stream, (*problems)[(number + round) % THREADS], at, work);
	}
	OK(cusolverDnDestroy(mine));
	CHECK(cudaStreamDestroy(stream));
}

static void from_stream_to_stream(const std::vector<problem> &problems)
{
	place at(handle);
	memory<double> work(std::max(at.lu, at.eigen));

	for (const problem &p : problems) {
		cudaStream_t stream;

		CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
		OK(cusolverDnSetStream(handle, stream));
		solve(handle, stream, p, at, work);
		OK(cusolverDnSetStream(handle, NULL));
		CHECK(cudaStreamDestroy(stream));
	}
	solve(handle, NULL, problems[0], at, work);
}

static void settings(void)
{
	cusolverDeterministicMode_t mode;
	cusolverDnHandle_t other;
	cusolverMathMode_t math;

	OK(cusolverDnCreate(&other));
	OK(cusolverDnSetDeterministicMode(other, CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS));
	OK(cusolverDnGetDeterministicMode(other, &mode));
	REQUIRE(mode == CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS, "the mode is %d", (int)mode);
	OK(cusolverDnGetDeterministicMode(handle, &mode));
	REQUIRE(mode == CUSOLVER_DETERMINISTIC_RESULTS, "the first mode is %d", (int)mode);
	OK(cusolverDnSetMathMode(other, CUSOLVER_DEFAULT_MATH));
	OK(cusolverDnGetMathMode(other, &math));
	REQUIRE(math == CUSOLVER_DEFAULT_MATH, "the math mode is %d", (int)math);
	OK(cusolverDnDestroy(other));
}

int main(void)
{
	std::vector<std::thread> threads;
	int version = 0, major = 0;
	cusolverMathMode_t math;

	begin();
	FAILS(cusolverDnSetDeterministicMode(NULL, CUSOLVER_DETERMINISTIC_RESULTS));
	FAILS(cusolverDnSetDeterministicMode(handle, (cusolverDeterministicMode_t)77));
	FAILS(cusolverDnSetMathMode(handle, (cusolverMathMode_t)77));
	FAILS(cusolverDnGetMathMode(NULL, &math));
	FAILS(cusolverGetProperty((libraryPropertyType)77, &major));
	OK(cusolverGetVersion(&version));
	OK(cusolverGetProperty(MAJOR_VERSION, &major));
	REQUIRE(version / 1000 == major, "version %d is not of %d", version, major);

	const std::vector<problem> problems(THREADS);

	from_stream_to_stream(problems);
	settings();
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(one_thread, &problems, i);
	for (std::thread &t : threads)
		t.join();
	OK(cusolverDnDestroy(handle));
	printf("equations and eigenvalues in %d threads and in several streams\n", THREADS);
	return 0;
}
