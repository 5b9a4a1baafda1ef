// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Products by cuBLASLt, as frameworks make them: descriptions, an algorithm that the library chooses,
 * a workspace, a bias and ReLU behind the product, a result that lies elsewhere than what is added,
 * batches. Both kinds of handles; descriptions in memory of the program's own. Wrong calls first.
 */
#include "blaslt.h"

static cublasLtHandle_t handle;

static void *workspace;
static const size_t workspace_size = 4 << 20;

template <typename T> static void product(cublasOperation_t ta, cublasOperation_t tb, bool elsewhere, int batch)
{
	typedef typename number<T>::type V;
	const cudaDataType type = types<T>::data;
	const int m = 24, n = 20, k = 28;
	const V alpha = value_of<V>(1.5, 0), beta = value_of<V>(-0.5, 0);
	const int rows_a = ta == CUBLAS_OP_N ? m : k, cols_a = ta == CUBLAS_OP_N ? k : m;
	const int rows_b = tb == CUBLAS_OP_N ? k : n, cols_b = tb == CUBLAS_OP_N ? n : k;
	array<T> a(m * k * batch), b(k * n * batch), c(m * n * batch), d(m * n * batch);
	layout la(type, rows_a, cols_a, rows_a, batch, m * k), lb(type, rows_b, cols_b, rows_b, batch, k * n);
	layout lc(type, m, n, m, batch, m * n);
	cublasLtMatmulDescOpaque_t own;
	cublasLtMatmulDesc_t desc = &own;
	cublasLtMatmulAlgo_t algo;

	BLAS(cublasLtMatmulDescInit(desc, types<T>::compute, type));
	BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &ta, sizeof(ta)));
	BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSB, &tb, sizeof(tb)));
	algo = choose(handle, workspace_size, desc, la.l, lb.l, lc.l, lc.l);
	for (int i = 0; i < 2; i++) {
		T *to = elsewhere ? d.gpu : c.gpu;
		std::vector<V> &want = elsewhere ? d.host : c.host;

		BLAS(cublasLtMatmul(handle, desc, &alpha, a.gpu, la.l, b.gpu, lb.l, &beta, c.gpu, lc.l, to, lc.l, &algo,
				    workspace, workspace_size, 0));
		for (int item = 0; item < batch; item++)
			for (int col = 0; col < n; col++)
				for (int row = 0; row < m; row++) {
					const V *pa = &a.host[item * m * k], *pb = &b.host[item * k * n];
					size_t at_c = (size_t)item * m * n + row + col * m;
					V sum = 0;

					for (int l = 0; l < k; l++)
						sum += at(pa, rows_a, ta, row, l) * at(pb, rows_b, tb, l, col);
					want[at_c] = alpha * sum + beta * c.host[at_c];
				}
		(elsewhere ? d : c).check("a product");
	}
}

static void layers(void)
{
	const int m = 40, n = 16, k = 24;
	const float one = 1, zero = 0;
	const cublasLtEpilogue_t epilogues[] = {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_RELU,
						CUBLASLT_EPILOGUE_RELU_BIAS};
	array<float> a(m * k), b(k * n), d(m * n), bias(m);
	layout la(CUDA_R_32F, m, k, m), lb(CUDA_R_32F, k, n, k), ld(CUDA_R_32F, m, n, m);
	cublasLtEpilogue_t back;
	cublasLtMatmulDesc_t desc;
	void *pointer;
	size_t size;

	for (cublasLtEpilogue_t e : epilogues) {
		cublasLtMatmulAlgo_t algo;

		BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
		BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &e, sizeof(e)));
		if (e != CUBLASLT_EPILOGUE_RELU)
			BLAS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias.gpu,
							    sizeof(bias.gpu)));
		BLAS(cublasLtMatmulDescGetAttribute(desc, CUBLASLT_MATMUL_DESC_EPILOGUE, &back, sizeof(back), &size));
		REQUIRE(back == e && size == sizeof(e), "epilogue %d of %zu bytes", (int)back, size);
		BLAS(cublasLtMatmulDescGetAttribute(desc, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &pointer, sizeof(pointer), &size));
		REQUIRE(pointer == (e == CUBLASLT_EPILOGUE_RELU ? NULL : bias.gpu), "another address");
		algo = choose(handle, workspace_size, desc, la.l, lb.l, ld.l, ld.l);
		BLAS(cublasLtMatmul(handle, desc, &one, a.gpu, la.l, b.gpu, lb.l, &zero, d.gpu, ld.l, d.gpu, ld.l, &algo,
				    workspace, workspace_size, 0));
		for (int col = 0; col < n; col++)
			for (int row = 0; row < m; row++) {
				float sum = e == CUBLASLT_EPILOGUE_RELU ? 0 : bias.host[row];

				for (int l = 0; l < k; l++)
					sum += a.host[row + l * m] * b.host[l + col * k];
				d.host[row + col * m] = e != CUBLASLT_EPILOGUE_BIAS && sum < 0 ? 0 : sum;
			}
		d.check("a layer");
		BLAS(cublasLtMatmulDescDestroy(desc));
	}
}

static void wrong_calls(void)
{
	const float one = 1, zero = 0;
	array<float> a(64), d(64);
	layout l(CUDA_R_32F, 8, 8, 8), other(CUDA_R_32F, 8, 4, 8);
	cublasLtMatmulHeuristicResult_t result;
	cublasLtMatmulPreference_t preference;
	cublasLtMatmulDesc_t desc;
	size_t size;
	char byte = 0;
	int count;

	BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	BLAS(cublasLtMatmulPreferenceCreate(&preference));
	BLAS_IS(cublasLtMatmulDescSetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &byte, sizeof(byte)),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasLtMatmulDescSetAttribute(desc, (cublasLtMatmulDescAttributes_t)77, &one, sizeof(one)),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasLtMatmulDescGetAttribute(desc, CUBLASLT_MATMUL_DESC_TRANSA, &byte, sizeof(byte), &size),
		CUBLAS_STATUS_INVALID_VALUE);
	/* The shapes do not fit. */
	BLAS_IS(cublasLtMatmul(handle, desc, &one, a.gpu, l.l, a.gpu, l.l, &zero, d.gpu, other.l, d.gpu, other.l, NULL,
			       NULL, 0, 0),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasLtMatmulAlgoGetHeuristic(handle, desc, l.l, l.l, l.l, l.l, preference, 0, &result, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	d.check("after wrong calls");
	BLAS(cublasLtMatmulPreferenceDestroy(preference));
	BLAS(cublasLtMatmulDescDestroy(desc));
}

int main(void)
{
	const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T};
	cublasHandle_t blas;

	CHECK(cudaMalloc(&workspace, workspace_size));
	BLAS(cublasLtCreate(&handle));
	wrong_calls();
	for (cublasOperation_t ta : ops)
		for (cublasOperation_t tb : ops) {
			product<float>(ta, tb, false, 1);
			product<float>(ta, tb, true, 3);
			product<double>(ta, tb, true, 1);
		}
	product<cuComplex>(CUBLAS_OP_N, CUBLAS_OP_C, false, 1);
	layers();
	BLAS(cublasLtDestroy(handle));
	/* A handle of cuBLAS is a handle of cuBLASLt, too. */
	BLAS(cublasCreate(&blas));
	handle = (cublasLtHandle_t)blas;
	product<float>(CUBLAS_OP_N, CUBLAS_OP_N, true, 2);
	layers();
	BLAS(cublasDestroy(blas));
	CHECK(cudaFree(workspace));
	printf("products and layers by cuBLASLt\n");
	return 0;
}
