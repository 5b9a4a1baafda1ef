// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Threads, each with a handle and two streams of its own, send matrices in parts from pinned memory,
 * multiply them, and copy the results back, while the next part is on its way. Some have their scalars
 * in the GPU's memory. Then all threads use one handle in turn. A handle of one thread is the same
 * handle in another. Wrong copies come first.
 */
#include <mutex>
#include <thread>

#include "blas.h"

#define THREADS 4
#define PARTS	12
#define N	24
#define LD	26

static cublasHandle_t shared;
static std::mutex turn;
static std::vector<float> from_shared[THREADS];

/* Small numbers that depend on nothing but the thread and the place, so that all sums are exact. */
static float element(int thread, int part, int i)
{
	return (float)((int)(scramble(i, thread * PARTS + part) % 64) - 32) / 16;
}

/* alpha * a * weights + c for a part that is all of rows x cols here. */
static float expected(int thread, int part, int row, int col, float alpha)
{
	float sum = 0;

	for (int l = 0; l < N; l++)
		sum += element(thread, part, row + l * N) * element(thread, PARTS, l + col * N);
	return alpha * sum + element(thread, part, row + col * N);
}

static void use_shared(int me)
{
	const float scale = (float)(me + 1), more = (float)(me + 2);
	float *gpu;

	from_shared[me].resize(N);
	CHECK(cudaMalloc(&gpu, N * sizeof(float)));
	for (int round = 0; round < 8; round++) {
		std::lock_guard<std::mutex> lock(turn);
		std::vector<float> host(N, 1);

		BLAS(cublasSetVector(N, sizeof(float), host.data(), 1, gpu, 1));
		BLAS(cublasSscal(shared, N, &scale, gpu, 1));
		BLAS(cublasSscal(shared, N, &more, gpu, 1));
		BLAS(cublasGetVector(N, sizeof(float), gpu, 1, from_shared[me].data(), 1));
	}
	CHECK(cudaFree(gpu));
}

static void work(int me, cublasHandle_t handle)
{
	const bool on_gpu = me % 2;
	const float host_scalars[] = {0.5f * (float)(me + 1), 1};
	std::vector<float> weights(N * N);
	float *part[2], *result[2], *w, *a[2], *c[2], *gpu_scalars;
	const float *scalars = host_scalars;
	cudaStream_t stream[2];

	for (int i = 0; i < N * N; i++)
		weights[i] = element(me, PARTS, i);
	CHECK(cudaMalloc(&w, N * N * sizeof(float)));
	CHECK(cudaMalloc(&gpu_scalars, sizeof(host_scalars)));
	BLAS(cublasSetMatrix(N, N, sizeof(float), weights.data(), N, w, N));
	BLAS(cublasSetVector(2, sizeof(float), host_scalars, 1, gpu_scalars, 1));
	/* A copy from pageable memory may end after its call, and the streams below do not wait for it. */
	CHECK(cudaDeviceSynchronize());
	if (on_gpu) {
		BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
		scalars = gpu_scalars;
	}
	for (int i = 0; i < 2; i++) {
		CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
		CHECK(cudaMallocHost(&part[i], N * N * sizeof(float)));
		CHECK(cudaMallocHost(&result[i], N * N * sizeof(float)));
		CHECK(cudaMalloc(&a[i], LD * N * sizeof(float)));
		CHECK(cudaMalloc(&c[i], N * N * sizeof(float)));
	}
	for (int p = 0; p < PARTS + 2; p++) {
		const int side = p % 2;

		/* What this side computed two parts ago. */
		CHECK(cudaStreamSynchronize(stream[side]));
		for (int i = 0; p >= 2 && i < N * N; i++) {
			float want = expected(me, p - 2, i % N, i / N, host_scalars[0]);

			REQUIRE(result[side][i] == want, "thread %d, part %d, element %d: %g, not %g", me, p - 2, i,
				result[side][i], want);
		}
		if (p >= PARTS)
			continue;
		for (int i = 0; i < N * N; i++)
			part[side][i] = element(me, p, i);
		BLAS(cublasSetMatrixAsync_64(N, N, sizeof(float), part[side], N, a[side], LD, stream[side]));
		BLAS(cublasSetVectorAsync(N * N, sizeof(float), part[side], 1, c[side], 1, stream[side]));
		BLAS(cublasSetStream(handle, stream[side]));
		BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, scalars, a[side], LD, w, N, scalars + 1,
				 c[side], N));
		BLAS(cublasGetMatrixAsync_64(N, N, sizeof(float), c[side], N, result[side], N, stream[side]));
	}
	for (int i = 0; i < 2; i++) {
		CHECK(cudaStreamDestroy(stream[i]));
		CHECK(cudaFreeHost(part[i]));
		CHECK(cudaFreeHost(result[i]));
		CHECK(cudaFree(a[i]));
		CHECK(cudaFree(c[i]));
	}
	CHECK(cudaFree(w));
	CHECK(cudaFree(gpu_scalars));
	use_shared(me);
}

int main(void)
{
	cublasHandle_t handle[THREADS];
	std::vector<std::thread> threads;
	float host[4] = {1, 2, 3, 4}, *gpu;

	CHECK(cudaMalloc(&gpu, sizeof(host)));
	BLAS_IS(cublasSetVectorAsync(4, 0, host, 1, gpu, 1, 0), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSetVectorAsync(4, sizeof(float), host, 1, gpu, 0, 0), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSetMatrixAsync_64(-1, 1, sizeof(float), host, 4, gpu, 4, 0), CUBLAS_STATUS_INVALID_VALUE);
	CHECK(cudaFree(gpu));
	BLAS(cublasCreate(&shared));
	/* A thread's handle is made here, and ended here. */
	for (int i = 0; i < THREADS; i++) {
		BLAS(cublasCreate(&handle[i]));
		threads.emplace_back(work, i, handle[i]);
	}
	for (std::thread &t : threads)
		t.join();
	for (int i = 0; i < THREADS; i++) {
		const float want = (float)((i + 1) * (i + 2));
		cublasPointerMode_t mode;

		for (float v : from_shared[i])
			REQUIRE(v == want, "thread %d had %g from the shared handle, not %g", i, v, want);
		BLAS(cublasGetPointerMode(handle[i], &mode));
		REQUIRE(mode == (i % 2 ? CUBLAS_POINTER_MODE_DEVICE : CUBLAS_POINTER_MODE_HOST), "mode %d", (int)mode);
		BLAS(cublasDestroy(handle[i]));
	}
	BLAS(cublasDestroy(shared));
	return verified("%d threads, %d parts each, and a handle for all", THREADS, PARTS);
}
