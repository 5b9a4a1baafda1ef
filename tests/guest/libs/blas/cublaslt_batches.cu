// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Batches and parts of matrices by cuBLASLt: one matrix for all items, scalars in the GPU's memory,
 * matrices inside larger ones that begin at any element, row-major matrices as transposed ones, all
 * operations of complex numbers, in place and elsewhere. Wrong calls come first.
 */
#include "blaslt.h"

static const size_t workspace_size = 2 << 20;
static cublasLtHandle_t handle;
static void *workspace;

/* A product's description; `alignment`: of the addresses of all matrices, in bytes. */
struct product {
	cublasLtMatmulDesc_t desc;
	uint32_t alignment;
	product(cublasComputeType_t compute, cudaDataType type, cublasOperation_t ta, cublasOperation_t tb,
		int pointers, uint32_t bytes)
	    : alignment(bytes)
	{
		BLAS(cublasLtMatmulDescCreate(&desc, compute, type));
		BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof(ta)));
		BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof(tb)));
		BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_POINTER_MODE, &pointers,
						    sizeof(pointers)));
	}
	~product()
	{
		BLAS(cublasLtMatmulDescDestroy(desc));
	}
	void run(const void *alpha, const void *a, const layout &la, const void *b, const layout &lb, const void *beta,
		 const void *c, void *d, const layout &ld)
	{
		const cublasLtMatmulPreferenceAttributes_t all[] = {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
								    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
								    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
								    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
		cublasLtMatmulPreferenceOpaque_t preference;
		cublasLtMatmulHeuristicResult_t result;
		int count;

		BLAS(cublasLtMatmulPreferenceInit(&preference));
		BLAS(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
							  &workspace_size, sizeof(workspace_size)));
		for (cublasLtMatmulPreferenceAttributes_t one : all)
			BLAS(cublasLtMatmulPreferenceSetAttribute(&preference, one, &alignment, sizeof(alignment)));
		BLAS(cublasLtMatmulAlgoGetHeuristic(handle, desc, la.l, lb.l, ld.l, ld.l, &preference, 1, &result,
						    &count));
		REQUIRE(count == 1 && result.state == CUBLAS_STATUS_SUCCESS, "%d algorithms", count);
		BLAS(cublasLtMatmul(handle, desc, alpha, a, la.l, b, lb.l, beta, c, ld.l, d, ld.l, &result.algo,
				    workspace, workspace_size, 0));
	}
};

/* The same matrix on the left of each item, with scalars in the GPU's memory. */
template <typename T> static void one_for_all(bool in_place)
{
	const int m = 16, n = 12, k = 20, count = 7;
	array<T> a(m * k), b(k * n * count), c(m * n * count), d(m * n * count), scalars(2);
	layout la(types<T>::data, m, k, m, count, 0), lb(types<T>::data, k, n, k, count, k * n);
	layout lc(types<T>::data, m, n, m, count, m * n);
	product p(types<T>::compute, types<T>::data, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_POINTER_MODE_DEVICE, 16);
	array<T> &to = in_place ? c : d;

	p.run(scalars.gpu, a.gpu, la, b.gpu, lb, scalars.gpu + 1, c.gpu, to.gpu, lc);
	if (!in_place)
		c.check("what was added");
	to.host = c.host;
	for (int i = 0; i < count; i++)
		reference<T>(CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, scalars.host[0], a.host.data(), m, &b.host[i * k * n],
			     k, scalars.host[1], &to.host[i * m * n], m);
	to.check("one matrix for all");
}

/* Parts that begin at any element: all around them stays as it is. */
template <typename T> static void parts(cublasOperation_t ta, cublasOperation_t tb)
{
	typedef typename number<T>::type V;
	const int m = 9, n = 11, k = 7, ld = 23, rows = 21;
	const int from_a = 2 + 3 * ld, from_b = 5 + ld, from_c = 1 + 6 * ld;
	const V alpha = value_of<V>(0.5, 0.25), beta = value_of<V>(-1, 0.5);
	array<T> a(ld * rows), b(ld * rows), c(ld * rows);
	const bool plain_a = ta == CUBLAS_OP_N, plain_b = tb == CUBLAS_OP_N;
	layout la(types<T>::data, plain_a ? m : k, plain_a ? k : m, ld);
	layout lb(types<T>::data, plain_b ? k : n, plain_b ? n : k, ld), lc(types<T>::data, m, n, ld);
	product p(types<T>::compute, types<T>::data, ta, tb, CUBLASLT_POINTER_MODE_HOST, sizeof(T));

	p.run(&alpha, a.gpu + from_a, la, b.gpu + from_b, lb, &beta, c.gpu + from_c, c.gpu + from_c, lc);
	reference<T>(ta, tb, m, n, k, alpha, &a.host[from_a], ld, &b.host[from_b], ld, beta, &c.host[from_c], ld);
	c.check("parts of matrices");
}

/* c = a * b, all row by row: column by column this is c^T = b^T * a^T. */
static void row_major(void)
{
	const int m = 14, n = 10, k = 18;
	const double one = 1, zero = 0;
	array<double> a(m * k), b(k * n), c(m * n);
	layout la(CUDA_R_64F, k, m, k), lb(CUDA_R_64F, n, k, n), lc(CUDA_R_64F, n, m, n);
	product p(CUBLAS_COMPUTE_64F, CUDA_R_64F, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_POINTER_MODE_HOST, 16);

	p.run(&one, b.gpu, lb, a.gpu, la, &zero, c.gpu, c.gpu, lc);
	for (int i = 0; i < m; i++)
		for (int j = 0; j < n; j++) {
			c.host[i * n + j] = 0;
			for (int l = 0; l < k; l++)
				c.host[i * n + j] += a.host[i * k + l] * b.host[l * n + j];
		}
	c.check("row by row");
}

static void wrong_calls(void)
{
	const double one = 1, zero = 0;
	array<double> a(64), d(64);
	layout l(CUDA_R_64F, 4, 4, 4), narrow(CUDA_R_32F, 4, 4, 4);
	layout two(CUDA_R_64F, 4, 4, 4, 2, 16), four(CUDA_R_64F, 4, 4, 4, 4, 16);
	product p(CUBLAS_COMPUTE_64F, CUDA_R_64F, CUBLAS_OP_N, CUBLAS_OP_N, CUBLASLT_POINTER_MODE_HOST, 16);

	/* Numbers of another type; batches of different lengths. */
	BLAS_FAILS(cublasLtMatmul(handle, p.desc, &one, a.gpu, l.l, a.gpu, narrow.l, &zero, d.gpu, l.l, d.gpu, l.l,
				  NULL, NULL, 0, 0));
	BLAS_FAILS(cublasLtMatmul(handle, p.desc, &one, a.gpu, two.l, a.gpu, four.l, &zero, d.gpu, four.l, d.gpu,
				  four.l, NULL, NULL, 0, 0));
	d.check("after wrong calls");
}

int main(void)
{
	CHECK(cudaMalloc(&workspace, workspace_size));
	BLAS(cublasLtCreate(&handle));
	wrong_calls();
	for (bool in_place : {true, false}) {
		one_for_all<float>(in_place);
		one_for_all<double>(in_place);
		one_for_all<cuComplex>(in_place);
	}
	for (cublasOperation_t ta : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C})
		for (cublasOperation_t tb : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
			parts<cuComplex>(ta, tb);
			parts<cuDoubleComplex>(ta, tb);
			if (ta != CUBLAS_OP_C && tb != CUBLAS_OP_C) {
				parts<float>(ta, tb);
				parts<double>(ta, tb);
			}
		}
	row_major();
	BLAS(cublasLtDestroy(handle));
	CHECK(cudaFree(workspace));
	return verified("batches and parts of matrices by cuBLASLt, in four types");
}
