// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What calls of cuBLAS send, and which of them wait; and handles that are not valid any more: after
 * a reset, in a child of fork(), destroyed, of another kind, or never made. A real cuBLAS does not
 * survive some of these calls, so this program is not for a real GPU.
 */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <pthread.h>
#include <string.h>

#include "../check.h"
#include "../commands.h"

#define N 16

/* The headers of CUDA 13.0 do not have these, nor attributes from 9 on. */
cublasStatus_t cublasLtGroupedMatrixLayoutCreate(cublasLtMatrixLayout_t *desc, cudaDataType type,
						 int groups, const void *rows, const void *cols,
						 const void *ld);
cublasStatus_t cublasLtGroupedMatrixLayoutInit_internal(cublasLtMatrixLayout_t desc, size_t size,
							cudaDataType type, int groups,
							const void *rows, const void *cols,
							const void *ld);
cublasStatus_t cublasLtMatmulAlgoCheckForStream(void);

static float *a, *b, *c;

#define IS(call, want)                                                                    \
	do {                                                                              \
		cublasStatus_t got_ = (call);                                             \
		REQUIRE(got_ == (want), "%s: %d, not %d", #call, (int)got_, (int)(want)); \
	} while (0)
#define BLAS(call) IS(call, CUBLAS_STATUS_SUCCESS)

static cublasStatus_t product(cublasHandle_t h, int n, float alpha, float *to)
{
	const float zero = 0;

	return cublasSgemm(h, CUBLAS_OP_N, CUBLAS_OP_N, n, N, N, &alpha, a, N, b, N, &zero, to, N);
}

static void heuristic(cublasHandle_t h, uint64_t rows)
{
	cublasLtMatmulHeuristicResult_t result;
	cublasLtMatmulPreference_t preference;
	cublasLtMatrixLayout_t layout;
	cublasLtMatmulDesc_t desc;
	int count;

	BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, rows, rows, (int64_t)rows));
	BLAS(cublasLtMatmulPreferenceCreate(&preference));
	BLAS(cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)h, desc, layout, layout, layout,
					    layout, preference, 1, &result, &count));
	REQUIRE(count == 1, "%d algorithms", count);
	BLAS(cublasLtMatmulPreferenceDestroy(preference));
	BLAS(cublasLtMatrixLayoutDestroy(layout));
	BLAS(cublasLtMatmulDescDestroy(desc));
}

/* The library is not asked: it would believe them. */
static void out_of_bounds(cublasHandle_t h)
{
	const int counts[] = {-1, 1 << 30}, size = 1;
	const cublasOperation_t op = CUBLAS_OP_N;
	const float one = 1;
	int i;

	for (i = 0; i < 2; i++)
		IS(cublasSgemmGroupedBatched(h, &op, &op, &size, &size, &size, &one, NULL, &size,
					     NULL, &size, &one, NULL, &size, counts[i], &size),
		   CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtHeuristicsCacheSetCapacity((size_t)1 << 40), CUBLAS_STATUS_INVALID_VALUE);
}

static int traced(void)
{
	cublasHandle_t h;
	cudaStream_t s;
	float result;
	int i;

	OK(cudaMalloc((void **)&a, 4 * N * N * 4));
	b = a + N * N;
	c = b + N * N;
	OK(cudaStreamCreate(&s));
	OK(cudaDeviceSynchronize());
	mark_answers("the library, and a handle", 2, 2);
	BLAS(cublasCreate(&h));
	mark_answers("a first product waits until the library has accepted it", 1, 1);
	BLAS(product(h, N, 1, c));
	mark_answers("products of other numbers in another place, and a wait", 101, 1);
	for (i = 0; i < 100; i++)
		BLAS(product(h, N, (float)i, i % 2 ? c : c + 64));
	OK(cudaDeviceSynchronize());
	mark_answers("another shape, and a wait", 4, 2);
	for (i = 0; i < 3; i++)
		BLAS(product(h, N / 2, 1, c));
	OK(cudaDeviceSynchronize());
	mark_answers("streams and the pointer mode", 0, 0);
	for (i = 0; i < 10; i++) {
		BLAS(cublasSetStream(h, i % 2 ? s : NULL));
		BLAS(cublasSetPointerMode(h, CUBLAS_POINTER_MODE_HOST));
	}
	mark_answers("a product in a stream, and a wait", 2, 1);
	BLAS(product(h, N, 1, c));
	OK(cudaDeviceSynchronize());
	mark_answers("a mode is asked for once", 1, 1);
	for (i = 0; i < 10; i++)
		BLAS(cublasSetMathMode(h, CUBLAS_DEFAULT_MATH));
	mark_answers("a result", 1, 1);
	BLAS(cublasSdot(h, N, a, 1, b, 1, &result));
	mark_answers("wrong calls wait each time", 3, 3);
	for (i = 0; i < 3; i++)
		IS(product(h, -1, 1, c), CUBLAS_STATUS_INVALID_VALUE);
	mark_answers("numbers out of bounds", 0, 0);
	out_of_bounds(h);
	mark_answers("the library of descriptions, and a question", 2, 2);
	heuristic(h, 32);
	mark_answers("the same question", 0, 0);
	for (i = 0; i < 10; i++)
		heuristic(h, 32);
	mark_answers("another question", 1, 1);
	heuristic(h, 48);
	mark_answers("the end of a handle", 1, 1);
	BLAS(cublasDestroy(h));
	uncounted();
	return 0;
}

static void foreign(void)
{
	cublasLtHandle_t lt;
	cublasHandle_t h, gone;
	int on_the_stack, version;

	BLAS(cublasCreate(&h));
	BLAS(cublasCreate(&gone));
	BLAS(cublasLtCreate(&lt));
	BLAS(cublasDestroy(gone));
	IS(product(gone, N, 1, c), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasDestroy(gone), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasSetMathMode(gone, CUBLAS_DEFAULT_MATH), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(product(NULL, N, 1, c), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(product((cublasHandle_t)&on_the_stack, N, 1, c), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(product((cublasHandle_t)((char *)h + 8), N, 1, c), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(product((cublasHandle_t)1, N, 1, c), CUBLAS_STATUS_NOT_INITIALIZED);
	/* A handle of cuBLASLt is none of cuBLAS. */
	IS(product((cublasHandle_t)lt, N, 1, c), CUBLAS_STATUS_NOT_INITIALIZED);
	IS(cublasGetVersion((cublasHandle_t)lt, &version), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS(cublasLtDestroy(lt));
	BLAS(product(h, N, 1, c));
	/* Memory that is not the GPU's is an error of the GPU, as natively; so it comes last. */
	BLAS(cublasDestroy(h));
}

/* Rows so far apart that the last one lies before the first. */
static void far_apart(void)
{
	const float one = 1;
	cublasLtMatrixLayout_t square, wide, far;
	cublasLtMatmulDesc_t desc;
	cublasLtHandle_t lt;
	float before[24], after[24];

	BLAS(cublasLtCreate(&lt));
	BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	BLAS(cublasLtMatrixLayoutCreate(&square, CUDA_R_32F, 8, 8, 8));
	BLAS(cublasLtMatrixLayoutCreate(&wide, CUDA_R_32F, 8, 3, 8));
	BLAS(cublasLtMatrixLayoutCreate(&far, CUDA_R_32F, 8, 3, INT64_MAX - 3));
	OK(cudaMemcpy(before, c, sizeof(before), cudaMemcpyDeviceToHost));
	IS(cublasLtMatmul(lt, desc, &one, a, square, a, wide, &one, b, far, c, wide, NULL, NULL, 0,
			  NULL),
	   CUBLAS_STATUS_NOT_SUPPORTED);
	OK(cudaMemcpy(after, c, sizeof(after), cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(before, after, sizeof(before)), "a wrong product has written");
	BLAS(cublasLtMatrixLayoutDestroy(far));
	BLAS(cublasLtMatrixLayoutDestroy(wide));
	BLAS(cublasLtMatrixLayoutDestroy(square));
	BLAS(cublasLtMatmulDescDestroy(desc));
	BLAS(cublasLtDestroy(lt));
}

static void attribute_is(cublasLtMatrixLayout_t layout, int attribute, size_t size, uint64_t want)
{
	uint64_t value = 0;
	size_t written;

	BLAS(cublasLtMatrixLayoutGetAttribute(layout, (cublasLtMatrixLayoutAttribute_t)attribute,
					      &value, size, &written));
	REQUIRE(value == want && written == size, "attribute %d is %#lx, of %zu bytes", attribute,
		value, written);
}

/* Layouts of groups of matrices can be made and read. Nothing computes with them. */
static void groups(void)
{
	char *const rows = (char *)0x1000, *const cols = (char *)0x2000, *const ld = (char *)0x3000;
	const float one = 1;
	/* As large as the library's own structure in CUDA 13.5. */
	uint64_t own[14], value = 0x5000;
	cublasLtMatrixLayout_t layout, square, mine = (cublasLtMatrixLayout_t)own;
	cublasLtMatmulHeuristicResult_t result;
	cublasLtMatmulPreference_t preference;
	cublasLtMatrixTransformDesc_t transform;
	cublasLtMatmulAlgo_t algo;
	cublasLtMatmulDesc_t desc;
	cublasLtHandle_t lt;
	int count;

	IS(cublasLtGroupedMatrixLayoutCreate(NULL, CUDA_R_32F, 5, rows, cols, ld),
	   CUBLAS_STATUS_INVALID_VALUE);
	IS(cublasLtGroupedMatrixLayoutInit_internal(mine, 64, CUDA_R_32F, 5, rows, cols, ld),
	   CUBLAS_STATUS_ALLOC_FAILED);
	BLAS(cublasLtMatrixLayoutCreate(&square, CUDA_R_32F, 8, 8, 8));
	IS(cublasLtMatrixLayoutSetAttribute(square, (cublasLtMatrixLayoutAttribute_t)9, &value, 8),
	   CUBLAS_STATUS_INVALID_VALUE);
	BLAS(cublasLtGroupedMatrixLayoutCreate(&layout, CUDA_R_16BF, -5, NULL, NULL, NULL));
	BLAS(cublasLtMatrixLayoutDestroy(layout));
	BLAS(cublasLtGroupedMatrixLayoutCreate(&layout, CUDA_R_16BF, 5, rows, cols, ld));
	BLAS(cublasLtGroupedMatrixLayoutInit_internal(mine, sizeof(own), CUDA_R_16BF, 5, rows, cols,
						      ld));
	IS(cublasLtMatrixLayoutSetAttribute(mine, (cublasLtMatrixLayoutAttribute_t)14, &value, 8),
	   CUBLAS_STATUS_INVALID_VALUE);
	for (count = 0; count < 2; count++) {
		cublasLtMatrixLayout_t it = count ? layout : mine;

		attribute_is(it, 0, 4, CUDA_R_16BF);
		attribute_is(it, 2, 8, 0);
		attribute_is(it, 5, 4, 5);
		attribute_is(it, 8, 4, 2);
		attribute_is(it, 9, 8, 0x1000);
		attribute_is(it, 10, 8, 0x2000);
		attribute_is(it, 11, 8, 0x3000);
		attribute_is(it, 12, 4, 0);
		attribute_is(it, 13, 4, 0);
		BLAS(cublasLtMatrixLayoutSetAttribute(it, (cublasLtMatrixLayoutAttribute_t)9,
						      &value, 8));
		attribute_is(it, 9, 8, value);
	}

	BLAS(cublasLtCreate(&lt));
	BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	BLAS(cublasLtMatrixTransformDescCreate(&transform, CUDA_R_32F));
	BLAS(cublasLtMatmulPreferenceCreate(&preference));
	IS(cublasLtMatmul(lt, desc, &one, a, square, a, square, &one, b, square, c, mine, NULL,
			  NULL, 0, NULL),
	   CUBLAS_STATUS_NOT_SUPPORTED);
	IS(cublasLtMatrixTransform(lt, transform, &one, a, layout, &one, b, square, c, square,
				   NULL),
	   CUBLAS_STATUS_NOT_SUPPORTED);
	IS(cublasLtMatmulAlgoGetHeuristic(lt, desc, square, mine, square, square, preference, 1,
					  &result, &count),
	   CUBLAS_STATUS_NOT_SUPPORTED);
	memset(&algo, 0, sizeof(algo));
	IS(cublasLtMatmulAlgoCheck(lt, desc, square, square, layout, square, &algo, &result),
	   CUBLAS_STATUS_NOT_SUPPORTED);
	/* One of the other functions that are newer: it says its name. */
	IS(cublasLtMatmulAlgoCheckForStream(), CUBLAS_STATUS_NOT_SUPPORTED);
	BLAS(cublasLtMatmulPreferenceDestroy(preference));
	BLAS(cublasLtMatrixTransformDescDestroy(transform));
	BLAS(cublasLtMatmulDescDestroy(desc));
	BLAS(cublasLtMatrixLayoutDestroy(layout));
	BLAS(cublasLtMatrixLayoutDestroy(square));
	BLAS(cublasLtDestroy(lt));
}

static void *other_thread(void *handle)
{
	int i;

	for (i = 0; i < 50; i++)
		BLAS(product((cublasHandle_t)handle, N, 1, c));
	return NULL;
}

static void threads(void)
{
	pthread_t thread[4];
	cublasHandle_t h[4];
	int i;

	for (i = 0; i < 4; i++) {
		BLAS(cublasCreate(&h[i]));
		REQUIRE(!pthread_create(&thread[i], NULL, other_thread, h[i]), "no thread");
	}
	for (i = 0; i < 4; i++) {
		pthread_join(thread[i], NULL);
		BLAS(cublasDestroy(h[i]));
	}
	OK(cudaDeviceSynchronize());
}

static void child(cublasHandle_t h)
{
	int status;
	pid_t pid = fork();

	if (!pid) {
		cublasHandle_t own;

		IS(product(h, N, 1, c), CUBLAS_STATUS_NOT_INITIALIZED);
		BLAS(cublasCreate(&own));
		OK(cudaMalloc((void **)&a, 4 * N * N * 4));
		b = a + N * N;
		c = b + N * N;
		BLAS(product(own, N, 1, c));
		OK(cudaDeviceSynchronize());
		/* Numbers lie at multiples of their size, for a GPU. */
		BLAS(product(own, N, 1, (float *)((char *)c + 1)));
		EXPECT(cudaDeviceSynchronize(), cudaErrorMisalignedAddress);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "the child ended with %#x", status);
}

static void reset(cublasHandle_t h)
{
	OK(cudaDeviceReset());
	IS(product(h, N, 1, c), CUBLAS_STATUS_NOT_INITIALIZED);
	OK(cudaMalloc((void **)&a, 4 * N * N * 4));
	b = a + N * N;
	c = b + N * N;
	BLAS(cublasCreate(&h));
	BLAS(product(h, N, 1, c));
	OK(cudaDeviceSynchronize());
	/* The GPU has no such memory. */
	BLAS(product(h, N, 1, (float *)64));
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	REQUIRE(product(h, N, 1, c) != CUBLAS_STATUS_SUCCESS, "a product after a fault");
}

int main(int argc, char **argv)
{
	cublasHandle_t h;

	if (argc > 1)
		return traced();
	count_commands(argv[0], 14);
	OK(cudaMalloc((void **)&a, 4 * N * N * 4));
	b = a + N * N;
	c = b + N * N;
	foreign();
	far_apart();
	groups();
	threads();
	BLAS(cublasCreate(&h));
	BLAS(product(h, N, 1, c));
	child(h);
	BLAS(product(h, N, 1, c));
	reset(h);
	return 0;
}
