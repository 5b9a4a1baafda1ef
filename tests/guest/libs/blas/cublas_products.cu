// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cublasXgemm in all four types, with all operations, by one call, with strides, with arrays of
 * addresses, and with 64-bit sizes; with scalars in the host's and in the GPU's memory; in several
 * streams. Wrong calls come first: they return the library's status and change nothing.
 */
#include "blas.h"

#define STREAMS 4

static cublasHandle_t handle;

template <typename T> static void products(void)
{
	typedef typename number<T>::type V;
	const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
	const int m = 17, n = 9, k = 23, lda = 25, ldb = 26, ldc = 19;
	const V alpha = value_of<V>(1.5, -0.5), beta = value_of<V>(-0.25, 1);
	array<T> a(lda * 25), b(ldb * 25), c(ldc * n), scalars(2);

	scalars.host[0] = alpha;
	scalars.host[1] = beta;
	scalars.up();
	for (cublasOperation_t ta : ops)
		for (cublasOperation_t tb : ops) {
			BLAS(calls<T>::gemm(handle, ta, tb, m, n, k, (const T *)&alpha, a.gpu, lda, b.gpu, ldb,
					    (const T *)&beta, c.gpu, ldc));
			reference<T>(ta, tb, m, n, k, alpha, a.host.data(), lda, b.host.data(), ldb, beta,
				     c.host.data(), ldc);
			c.check("scalars in host memory");
			BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
			BLAS(calls<T>::gemm_64(handle, ta, tb, m, n, k, scalars.gpu, a.gpu, lda, b.gpu, ldb,
					       scalars.gpu + 1, c.gpu, ldc));
			BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
			reference<T>(ta, tb, m, n, k, alpha, a.host.data(), lda, b.host.data(), ldb, beta,
				     c.host.data(), ldc);
			c.check("scalars in the GPU's memory");
		}
}

template <typename T> static void batches(void)
{
	typedef typename number<T>::type V;
	const int m = 5, n = 6, k = 7, count = 11;
	const V alpha = value_of<V>(2, 0), beta = value_of<V>(0, 0);
	array<T> a(m * k * count), b(k * n * count), c(m * n * count);
	std::vector<T *> at_a, at_b, at_c;
	T **gpu;

	BLAS(calls<T>::strided(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, (const T *)&alpha, a.gpu, m, m * k,
			       b.gpu, k, k * n, (const T *)&beta, c.gpu, m, m * n, count));
	for (int i = 0; i < count; i++)
		reference<T>(CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, alpha, &a.host[i * m * k], m, &b.host[i * k * n], k,
			     beta, &c.host[i * m * n], m);
	c.check("a batch with strides");

	/* The same, but each takes the inputs of the batch's other end. */
	for (int i = 0; i < count; i++) {
		at_a.push_back(a.gpu + (count - 1 - i) * m * k);
		at_b.push_back(b.gpu + i * k * n);
		at_c.push_back(c.gpu + i * m * n);
	}
	CHECK(cudaMalloc(&gpu, 3 * count * sizeof(T *)));
	CHECK(cudaMemcpy(gpu, at_a.data(), count * sizeof(T *), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(gpu + count, at_b.data(), count * sizeof(T *), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(gpu + 2 * count, at_c.data(), count * sizeof(T *), cudaMemcpyHostToDevice));
	BLAS(calls<T>::arrays(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, (const T *)&alpha, gpu, m, gpu + count, k,
			      (const T *)&beta, gpu + 2 * count, m, count));
	for (int i = 0; i < count; i++)
		reference<T>(CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, alpha, &a.host[(count - 1 - i) * m * k], m,
			     &b.host[i * k * n], k, beta, &c.host[i * m * n], m);
	c.check("a batch of addresses");
	CHECK(cudaFree(gpu));
}

/* Each product takes the result of the one before, in another stream; events order them. */
static void streams(void)
{
	const int n = 32;
	const float part = 0.0625f, zero = 0;
	array<float> first(n * n), a(n * n);
	float *result[STREAMS];
	cudaStream_t stream[STREAMS], is;
	cudaEvent_t event;
	std::vector<float> now = first.host, next(n * n), got(n * n);
	double scale = 0;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	for (int i = 0; i < STREAMS; i++) {
		CHECK(cudaStreamCreateWithFlags(&stream[i], cudaStreamNonBlocking));
		CHECK(cudaMalloc(&result[i], n * n * sizeof(float)));
	}
	/* These streams do not wait for what cudaMemcpy has left to the copy engine. */
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < 2 * STREAMS; i++) {
		CHECK(cudaStreamWaitEvent(stream[i % STREAMS], event, 0));
		BLAS(cublasSetStream(handle, stream[i % STREAMS]));
		BLAS(cublasGetStream(handle, &is));
		REQUIRE(is == stream[i % STREAMS], "another stream");
		BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &part,
				 i ? result[(i - 1) % STREAMS] : first.gpu, n, a.gpu, n, &zero, result[i % STREAMS],
				 n));
		CHECK(cudaEventRecord(event, stream[i % STREAMS]));
		reference<float>(CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, part, now.data(), n, a.host.data(), n, zero,
				 next.data(), n);
		now = next;
	}
	CHECK(cudaEventSynchronize(event));
	CHECK(cudaMemcpy(got.data(), result[STREAMS - 1], n * n * sizeof(float), cudaMemcpyDeviceToHost));
	for (float v : now)
		scale = fmax(scale, fabs(v));
	for (int j = 0; j < n * n; j++)
		REQUIRE(fabs(got[j] - now[j]) <= 1e-3 * scale, "element %d: %g, not %g", j, got[j], now[j]);
	BLAS(cublasSetStream(handle, NULL));
	for (int i = 0; i < STREAMS; i++) {
		CHECK(cudaStreamDestroy(stream[i]));
		CHECK(cudaFree(result[i]));
	}
	CHECK(cudaEventDestroy(event));
}

static void wrong_calls(void)
{
	const int n = 8;
	const float one = 1, zero = 0;
	array<float> a(n * n), c(n * n);
	cublasHandle_t gone;

	BLAS_IS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, -1, n, n, &one, a.gpu, n, a.gpu, n, &zero, c.gpu, n),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.gpu, n - 1, a.gpu, n, &zero, c.gpu, n),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSgemm(handle, (cublasOperation_t)55, CUBLAS_OP_N, n, n, n, &one, a.gpu, n, a.gpu, n, &zero,
			    c.gpu, n),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSgemm(NULL, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.gpu, n, a.gpu, n, &zero, c.gpu, n),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasSetStream(NULL, NULL), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasSetPointerMode(handle, (cublasPointerMode_t)7), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasDestroy(NULL), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS(cublasCreate(&gone));
	BLAS(cublasDestroy(gone));
	c.check("after wrong calls");
	CHECK(cudaDeviceSynchronize());
	/* A right call after a wrong one of the same function. */
	BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 0, n, n, &one, a.gpu, n, a.gpu, n, &zero, c.gpu, n));
	c.check("a product of no size");
}

int main(void)
{
	BLAS(cublasCreate(&handle));
	wrong_calls();
	FOUR_TYPES(products);
	FOUR_TYPES(batches);
	streams();
	BLAS(cublasDestroy(handle));
	CHECK(cudaDeviceSynchronize());
	printf("products of four types, in batches and in %d streams\n", STREAMS);
	return 0;
}
