/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuBLASLt need. */
#ifndef BLASLT_H
#define BLASLT_H

#include <cublasLt.h>

#include "blas.h"

struct layout {
	cublasLtMatrixLayout_t l;
	layout(cudaDataType type, int rows, int cols, int ld, int batch = 1, long long stride = 0)
	{
		int64_t s = stride;

		BLAS(cublasLtMatrixLayoutCreate(&l, type, rows, cols, ld));
		BLAS(cublasLtMatrixLayoutSetAttribute(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch,
						      sizeof(batch)));
		BLAS(cublasLtMatrixLayoutSetAttribute(
			l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &s, sizeof(s)));
	}
	~layout()
	{
		BLAS(cublasLtMatrixLayoutDestroy(l));
	}
};

template <typename T> struct types;
template <> struct types<float> {
	static const cudaDataType data = CUDA_R_32F;
	static const cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};
template <> struct types<double> {
	static const cudaDataType data = CUDA_R_64F;
	static const cublasComputeType_t compute = CUBLAS_COMPUTE_64F;
};
template <> struct types<cuComplex> {
	static const cudaDataType data = CUDA_C_32F;
	static const cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};
template <> struct types<cuDoubleComplex> {
	static const cudaDataType data = CUDA_C_64F;
	static const cublasComputeType_t compute = CUBLAS_COMPUTE_64F;
};

/* The algorithm that the library prefers. It is asked again and again, as frameworks do. */
static inline cublasLtMatmulAlgo_t choose(cublasLtHandle_t handle, size_t workspace_size,
					  cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
					  cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
					  cublasLtMatrixLayout_t d)
{
	cublasLtMatmulHeuristicResult_t result, again;
	cublasLtMatmulPreference_t preference;
	int count = 0;

	BLAS(cublasLtMatmulPreferenceCreate(&preference));
	BLAS(cublasLtMatmulPreferenceSetAttribute(preference,
						  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
						  &workspace_size, sizeof(workspace_size)));
	BLAS(cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, d, preference, 1, &result,
					    &count));
	REQUIRE(count == 1, "%d algorithms", count);
	REQUIRE(result.state == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= workspace_size,
		"state %d, %zu bytes", (int)result.state, result.workspaceSize);
	for (int i = 0; i < 3; i++) {
		BLAS(cublasLtMatmulAlgoGetHeuristic(handle, desc, a, b, c, d, preference, 1, &again,
						    &count));
		REQUIRE(count == 1 && !memcmp(&again.algo, &result.algo, sizeof(result.algo)),
			"another algorithm");
	}
	BLAS(cublasLtMatmulPreferenceDestroy(preference));
	return result.algo;
}

#endif
