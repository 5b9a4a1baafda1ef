// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of cuBLAS, cuFFT, cuRAND, cuSOLVER and cuSPARSE with no handle. Programs ask for versions
 * before they have one, and end handles that are none. Each answer is native's. Where a library is
 * missing, as on the software GPU, only what needs none is asked.
 */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cufftXt.h>
#include <curand.h>
#include <cusolverDn.h>
#include <cusparse.h>

#include "../bare.h"

/* The parts of a version, as one number, by the function that has no handle. */
template <typename S>
static int parts(S (*property)(libraryPropertyType, int *), int major, int minor)
{
	int part[3];

	ANSWERS(0, property(MAJOR_VERSION, &part[0]));
	ANSWERS(0, property(MINOR_VERSION, &part[1]));
	ANSWERS(0, property(PATCH_LEVEL, &part[2]));
	return part[0] * major + part[1] * minor + part[2];
}

static void ask_blas(void)
{
	const float one = 1;
	cublasPointerMode_t mode;
	cudaStream_t stream;
	cublasHandle_t h;
	int version = 0, of_handle;
	float x = 0;

	ANSWERS(CUBLAS_STATUS_SUCCESS, cublasGetVersion(NULL, &version));
	REQUIRE(version == parts(cublasGetProperty, 10000, 100), "version %d", version);
	ANSWERS(CUBLAS_STATUS_INVALID_VALUE, cublasGetVersion(NULL, NULL));
	ANSWERS(CUBLAS_STATUS_INVALID_VALUE, cublasGetProperty((libraryPropertyType)3, &version));
	ANSWERS(CUBLAS_STATUS_INVALID_VALUE, cublasGetProperty(MAJOR_VERSION, NULL));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED, cublasDestroy(NULL));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED, cublasSetStream(NULL, 0));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED, cublasGetStream(NULL, &stream));
	ANSWERS(CUBLAS_STATUS_INVALID_VALUE, cublasGetPointerMode(NULL, NULL));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED, cublasGetPointerMode(NULL, &mode));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED, cublasSetSmCountTarget(NULL, -1));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED, cublasSscal(NULL, 1, &one, &x, 1));
	cublasXerbla("sgemm", 7);
	texts(cublasGetStatusName, 20);
	first("cuBLAS", cublasCreate(&h), CUBLAS_STATUS_NOT_INITIALIZED);
	ANSWERS(CUBLAS_STATUS_SUCCESS, cublasGetVersion(h, &of_handle));
	REQUIRE(cublasGetVersion(NULL, &version) == CUBLAS_STATUS_SUCCESS && version == of_handle,
		"versions %d and %d", version, of_handle);
	ANSWERS(CUBLAS_STATUS_SUCCESS, cublasDestroy(h));
}

static void ask_blaslt(void)
{
	cublasLtMatmulAlgo_t algo;
	int id, n;

	ANSWERS(CUBLAS_STATUS_INVALID_VALUE, cublasLtCreate(NULL));
	ANSWERS(CUBLAS_STATUS_INVALID_VALUE, cublasLtDestroy(NULL));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED,
		cublasLtMatmul(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
			       NULL, NULL, NULL, 0, 0));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED,
		cublasLtMatrixTransform(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
					0));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED,
		cublasLtMatmulAlgoGetIds(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F,
					 CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, 0, &id, &n));
	ANSWERS(CUBLAS_STATUS_NOT_INITIALIZED,
		cublasLtMatmulAlgoInit(NULL, CUBLAS_COMPUTE_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
				       CUDA_R_32F, CUDA_R_32F, 0, &algo));
	ANSWERS(CUBLAS_STATUS_SUCCESS, cublasLtMatmulDescDestroy(NULL));
	ANSWERS(CUBLAS_STATUS_SUCCESS, cublasLtMatrixLayoutDestroy(NULL));
	ANSWERS(CUBLAS_STATUS_SUCCESS, cublasLtLoggerForceDisable());
	texts(cublasLtGetStatusName, 20);
}

static void ask_fft(void)
{
	size_t size;
	int version;

	ANSWERS(CUFFT_SUCCESS, cufftGetVersion(&version));
	REQUIRE(version == parts(cufftGetProperty, 1000, 100), "version %d", version);
	ANSWERS(CUFFT_SUCCESS, cufftGetVersion(NULL));
	ANSWERS(CUFFT_INVALID_VALUE, cufftGetProperty(MAJOR_VERSION, NULL));
	ANSWERS(CUFFT_INVALID_VALUE, cufftCreate(NULL));
	ANSWERS(CUFFT_INVALID_VALUE, cufftPlan1d(NULL, 16, CUFFT_C2C, 1));
	ANSWERS(CUFFT_INVALID_PLAN, cufftDestroy(0));
	ANSWERS(CUFFT_INVALID_PLAN, cufftSetStream(0, 0));
	ANSWERS(CUFFT_INVALID_PLAN, cufftGetSize(0, &size));
	ANSWERS(CUFFT_INVALID_PLAN, cufftExecC2C(0, NULL, NULL, CUFFT_FORWARD));
	ANSWERS(CUFFT_INVALID_PLAN, cufftSetAutoAllocation(0, 0));
}

static void ask_rand(void)
{
	int version;

	ANSWERS(CURAND_STATUS_SUCCESS, curandGetVersion(&version));
	REQUIRE(version == parts(curandGetProperty, 1000, 100), "version %d", version);
	ANSWERS(CURAND_STATUS_OUT_OF_RANGE, curandGetProperty((libraryPropertyType)3, &version));
	ANSWERS(CURAND_STATUS_NOT_INITIALIZED,
		curandCreateGenerator(NULL, CURAND_RNG_PSEUDO_DEFAULT));
	ANSWERS(CURAND_STATUS_NOT_INITIALIZED, curandDestroyGenerator(NULL));
	ANSWERS(CURAND_STATUS_NOT_INITIALIZED, curandSetStream(NULL, 0));
	ANSWERS(CURAND_STATUS_NOT_INITIALIZED, curandGenerate(NULL, NULL, 1));
	ANSWERS(CURAND_STATUS_NOT_INITIALIZED, curandSetQuasiRandomGeneratorDimensions(NULL, 0));
}

static void ask_solver(void)
{
	int version, size;

	ANSWERS(CUSOLVER_STATUS_NOT_INITIALIZED,
		cusolverDnSgeqrf_bufferSize(NULL, 4, 4, NULL, 4, &size));
	ANSWERS(CUSOLVER_STATUS_SUCCESS, cusolverDnDestroyParams(NULL));
	ANSWERS(CUSOLVER_STATUS_SUCCESS, cusolverDnDestroySyevjInfo(NULL));
	ANSWERS(CUSOLVER_STATUS_SUCCESS, cusolverDnDestroyGesvdjInfo(NULL));
	if (cusolverGetVersion(&version) == CUSOLVER_STATUS_NOT_INITIALIZED)
		return;
	ANSWERS(CUSOLVER_STATUS_SUCCESS, cusolverGetVersion(&version));
	REQUIRE(version == parts(cusolverGetProperty, 1000, 100), "version %d", version);
	ANSWERS(CUSOLVER_STATUS_INVALID_VALUE, cusolverGetVersion(NULL));
	ANSWERS(CUSOLVER_STATUS_SUCCESS, cusolverDnSgesvd_bufferSize(NULL, 4, 4, &size));
	ANSWERS(CUSOLVER_STATUS_SUCCESS,
		cusolverDnSpotri_bufferSize(NULL, CUBLAS_FILL_MODE_LOWER, 4, NULL, 4, &size));
	printf("%d\n", size);
	ANSWERS(CUSOLVER_STATUS_SUCCESS,
		cusolverDnDsytri_bufferSize(NULL, CUBLAS_FILL_MODE_LOWER, 4, NULL, 4, NULL, &size));
	printf("%d\n", size);
}

static void ask_sparse(void)
{
	cusparsePointerMode_t mode;
	cudaStream_t stream;
	const float one = 1;
	size_t bytes;
	int version;

	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE, cusparseCreate(NULL));
	ANSWERS(CUSPARSE_STATUS_SUCCESS, cusparseDestroy(NULL));
	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE, cusparseGetVersion(NULL, &version));
	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE, cusparseSetStream(NULL, 0));
	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE, cusparseGetStream(NULL, &stream));
	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE,
		cusparseSetPointerMode(NULL, CUSPARSE_POINTER_MODE_HOST));
	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE, cusparseGetPointerMode(NULL, &mode));
	ANSWERS(CUSPARSE_STATUS_SUCCESS, cusparseDestroyMatDescr(NULL));
	ANSWERS(CUSPARSE_STATUS_NOT_INITIALIZED,
		cusparseSetMatType(NULL, CUSPARSE_MATRIX_TYPE_GENERAL));
	ANSWERS(-1, cusparseGetMatType(NULL));
	ANSWERS(-1, cusparseGetMatFillMode(NULL));
	ANSWERS(-1, cusparseGetMatDiagType(NULL));
	ANSWERS(-1, cusparseGetMatIndexBase(NULL));
	ANSWERS(CUSPARSE_STATUS_SUCCESS, cusparseDestroyDnVec(NULL));
	ANSWERS(CUSPARSE_STATUS_SUCCESS, cusparseDestroySpMat(NULL));
	ANSWERS(CUSPARSE_STATUS_SUCCESS, cusparseDestroyCsric02Info(NULL));
	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE, cusparseGather(NULL, NULL, NULL));
	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE,
		cusparseSpMV(NULL, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, NULL, NULL, &one, NULL,
			     CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, NULL));
	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE, cusparseDnMatSetStridedBatch(NULL, 1, 1));
	ANSWERS(CUSPARSE_STATUS_NOT_INITIALIZED,
		cusparseXcoosort_bufferSizeExt(NULL, 1, 1, 1, NULL, NULL, &bytes));
	texts(cusparseGetErrorName, 20);
	texts(cusparseGetErrorString, 20);
	if (cusparseGetProperty(MAJOR_VERSION, &version) == CUSPARSE_STATUS_NOT_INITIALIZED)
		return;
	parts(cusparseGetProperty, 1000, 100);
	ANSWERS(CUSPARSE_STATUS_INVALID_VALUE, cusparseGetProperty(MAJOR_VERSION, NULL));
	ANSWERS(CUSPARSE_STATUS_SUCCESS, cusparseSgtsv2_nopivot_bufferSizeExt(
						 NULL, 4, 4, NULL, NULL, NULL, NULL, 4, &bytes));
	printf("%zu\n", bytes);
}

int main(void)
{
	ask_blaslt();
	ask_fft();
	ask_rand();
	ask_solver();
	ask_sparse();
	ask_blas();
	return 0;
}
