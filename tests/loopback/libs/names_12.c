// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program that is linked with NVIDIA's libraries under the names of CUDA 12: what only 12 has is
 * served or refused by name, what only 13 has is unknown, the versions are those of 12, and the
 * rest computes, also beside the libraries of 13. Needs nothing of NVIDIA's CUDA 12.
 * names_12_backend.c is the library.
 */
#define _GNU_SOURCE /* dlvsym */
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cufft.h>
#include <cusolverDn.h>
#include <dlfcn.h>

#include "../check.h"
#include "names_12.h"

#define IS(call, want)                                                               \
	do {                                                                         \
		int got_ = (int)(call), want_ = (int)(want);                         \
		REQUIRE(got_ == want_, "%s: status %d, not %d", #call, got_, want_); \
	} while (0)
#define RIGHT(call) IS(call, 0)
#define WRONG(call) IS(call, CUBLAS_STATUS_INVALID_VALUE)
#define GONE(call)  IS(call, CUBLAS_STATUS_NOT_SUPPORTED)

/* The functions of cuSOLVER that CUDA 13's header does not declare. */
cusolverStatus_t cusolverDnPotrf_bufferSize(cusolverDnHandle_t h, cusolverDnParams_t params,
					    cublasFillMode_t uplo, int64_t n, cudaDataType type,
					    const void *a, int64_t lda, cudaDataType compute,
					    size_t *size);
cusolverStatus_t cusolverDnPotrf(cusolverDnHandle_t h, cusolverDnParams_t params,
				 cublasFillMode_t uplo, int64_t n, cudaDataType type, void *a,
				 int64_t lda, cudaDataType compute, void *work, size_t size,
				 int *info);
cusolverStatus_t cusolverDnPotrs(cusolverDnHandle_t h, cusolverDnParams_t params,
				 cublasFillMode_t uplo, int64_t n, int64_t nrhs,
				 cudaDataType type_a, const void *a, int64_t lda,
				 cudaDataType type_b, void *b, int64_t ldb, int *info);

static const float one = 1, zero;
static float *a, *b, *c; /* managed: 2 x 2 numbers each */

static void *library(const char *name)
{
	void *lib = dlopen(name, RTLD_NOW);

	REQUIRE(lib, "%s", dlerror());
	return lib;
}

static cublasStatus_t product_ex(cublasHandle_t h, int compute, int algo)
{
	return cublasGemmEx(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, CUDA_R_32F, 2, b,
			    CUDA_R_32F, 2, &zero, c, CUDA_R_32F, 2, (cublasComputeType_t)compute,
			    (cublasGemmAlgo_t)algo);
}

/* Columns 5 6 and 7 8, times columns 1 2 and 3 4. */
static void is_product(const char *what)
{
	static const float want[] = {19, 22, 43, 50};

	OK(cudaDeviceSynchronize());
	REQUIRE(!memcmp(c, want, sizeof(want)), "%s: %g %g %g %g", what, c[0], c[1], c[2], c[3]);
	memset(c, 0, sizeof(want));
}

static void unknown_values(cublasHandle_t h)
{
	WRONG(cublasSetMathMode(h, CUBLAS_FP64_EMULATED_FIXEDPOINT_MATH));
	WRONG(cublasSetMathMode(h, (cublasMath_t)24));
	WRONG(product_ex(h, CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT, CUBLAS_GEMM_DEFAULT));
	WRONG(product_ex(h, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_AUTOTUNE));
	/* The host's library is asked. The software GPU's does not have this function. */
	IS(product_ex(h, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT), CUBLAS_STATUS_NOT_SUPPORTED);
	WRONG(cublasGetVersion_v2(h, NULL));
	WRONG(cublasGetProperty((libraryPropertyType)3, NULL));
	WRONG(cublasGetProperty(MAJOR_VERSION, NULL));
	WRONG(cublasLtGetProperty((libraryPropertyType)-1, NULL));
	IS(cufftGetProperty((libraryPropertyType)3, NULL), CUFFT_INVALID_VALUE);
	IS(cusolverGetProperty(MAJOR_VERSION, NULL), CUSOLVER_STATUS_INVALID_VALUE);
}

static void unknown_attributes(void)
{
	cublasLtMatmulAlgo_t algo = {{0}};
	cublasLtMatmulDescOpaque_t desc;
	uint64_t value = 0;
	size_t size = 77;
	int number;

	IS(cublasLtMatmulDescInit_internal(&desc, 8, CUBLAS_COMPUTE_32F, CUDA_R_32F),
	   CUBLAS_STATUS_ALLOC_FAILED);
	WRONG(cublasLtMatmulDescInit_internal(&desc, sizeof(desc),
					      CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT, CUDA_R_64F));
	RIGHT(cublasLtMatmulDescInit_internal(&desc, sizeof(desc), CUBLAS_COMPUTE_32F, CUDA_R_32F));
	/* The size that an emulation description has in CUDA 13. */
	WRONG(cublasLtMatmulDescSetAttribute(&desc, CUBLASLT_MATMUL_DESC_EMULATION_DESCRIPTOR,
					     &value, sizeof(cublasLtEmulationDesc_t)));
	WRONG(cublasLtMatmulDescSetAttribute(&desc, (cublasLtMatmulDescAttributes_t)999, &value,
					     4));
	for (number = 27; number <= 30; number++) {
		GONE(cublasLtMatmulDescSetAttribute(&desc, (cublasLtMatmulDescAttributes_t)number,
						    &value, number < 29 ? 4 : 8));
		GONE(cublasLtMatmulDescGetAttribute(&desc, (cublasLtMatmulDescAttributes_t)number,
						    &value, number < 29 ? 4 : 8, &size));
	}
	GONE(cublasLtMatmulAlgoCapGetAttribute(&algo, (cublasLtMatmulAlgoCapAttributes_t)20, &value,
					       4, &size));
	REQUIRE(size == 77 && !value, "a wrong call has written");
}

/* Functions of no use to the program: what is not served says so, and what is new is not there. */
static void refused(void)
{
	static const struct {
		const char *library, *name;
		int status;
	} without_service[] =
		{
			{"libcublas.so.12", "cublasXtSspmm", CUBLAS_STATUS_NOT_SUPPORTED},
			{"libcublasLt.so.12", "cublasLt_for_cublas_CCC",
			 CUBLAS_STATUS_NOT_SUPPORTED},
			{"libcufft.so.11", "__cufftXtSetJITCallback_12_7", CUFFT_NOT_SUPPORTED},
			{"libcusolver.so.11", "cusolverDnSpolar", CUSOLVER_STATUS_NOT_SUPPORTED},
		},
	  new[] = {
		  {"libcublas.so.12", "cublasGetEmulationSpecialValuesSupport", 0},
		  {"libcublasLt.so.12", "cublasLtEmulationDescCreate", 0},
		  {"libcublasLt.so.12", "cublasLtHeuristicsCacheCreate", 0},
		  {"libcusolver.so.11", "cusolverDnSetMathMode", 0},
	  };
	char said[1024] = "", want[160];
	int (*fn)(void), whole = dup(2), i;
	FILE *log = tmpfile();

	REQUIRE(log && dup2(fileno(log), 2) == 2, "no file");
	for (i = 0; i < 4; i++) {
		fn = (int (*)(void))dlsym(library(without_service[i].library),
					  without_service[i].name);
		REQUIRE(fn, "%s", dlerror());
		IS(fn(), without_service[i].status);
	}
	dup2(whole, 2);
	rewind(log);
	REQUIRE(fread(said, 1, sizeof(said) - 1, log) > 0, "nothing is said");
	fclose(log);
	for (i = 0; i < 4; i++) {
		snprintf(want, sizeof(want), "%s of %s is not supported", without_service[i].name,
			 without_service[i].library);
		REQUIRE(strstr(said, want), "%s, but: %s", want, said);
	}
	/* dlsym() finds them: the libraries of CUDA 13 are loaded, too. */
	for (i = 0; i < 4; i++)
		REQUIRE(!dlvsym(library(new[i].library), new[i].name, new[i].library),
			"%s is there", new[i].name);
}

static void versions(void)
{
	int blas, fft, solver, part[4][3], i;

	/* Natively they need no handle. */
	RIGHT(cublasGetVersion_v2(NULL, &blas));
	RIGHT(cufftGetVersion(&fft));
	RIGHT(cusolverGetVersion(&solver));
	REQUIRE(blas / 10000 == 12 && cublasLtGetVersion() == (size_t)blas, "cuBLAS %d", blas);
	REQUIRE(cublasGetCudartVersion() / 1000 == 12 && cublasLtGetCudartVersion() / 1000 == 12,
		"made for CUDA %zu", cublasGetCudartVersion());
	for (i = 0; i < 3; i++) {
		RIGHT(cublasGetProperty((libraryPropertyType)i, &part[0][i]));
		RIGHT(cublasLtGetProperty((libraryPropertyType)i, &part[1][i]));
		RIGHT(cufftGetProperty((libraryPropertyType)i, &part[2][i]));
		RIGHT(cusolverGetProperty((libraryPropertyType)i, &part[3][i]));
	}
	REQUIRE(part[0][0] * 10000 + part[0][1] * 100 + part[0][2] == blas &&
			!memcmp(part[0], part[1], sizeof(part[0])),
		"cuBLAS %d.%d.%d", part[0][0], part[0][1], part[0][2]);
	REQUIRE(part[2][0] == 11 && part[2][0] * 1000 + part[2][1] * 100 + part[2][2] == fft,
		"cuFFT %d", fft);
	REQUIRE(part[3][0] == 11 && part[3][0] * 1000 + part[3][1] * 100 + part[3][2] == solver,
		"cuSOLVER %d", solver);
}

/* In the headers of CUDA 12.1 a description has less room, and its memory ends there. */
static void short_descriptions(cublasHandle_t h)
{
	struct {
		uint64_t data[23], behind;
	} desc = {.behind = 77};
	const cublasLtMatmulDesc_t d = (cublasLtMatmulDesc_t)&desc;
	cublasLtMatmulHeuristicResult_t result;
	cublasLtMatmulPreference_t preference;
	cublasLtMatrixLayout_t layout;
	cublasOperation_t op = CUBLAS_OP_N;
	uint64_t value = 0;
	int count;

	IS(cublasLtMatmulDescInit_internal(d, sizeof(desc.data) - 1, CUBLAS_COMPUTE_32F,
					   CUDA_R_32F),
	   CUBLAS_STATUS_ALLOC_FAILED);
	RIGHT(cublasLtMatmulDescInit_internal(d, sizeof(desc.data), CUBLAS_COMPUTE_32F,
					      CUDA_R_32F));
	/* An attribute that these headers do not have. */
	WRONG(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, &value,
					     8));
	WRONG(cublasLtMatmulDescGetAttribute(d, CUBLASLT_MATMUL_DESC_D_OUT_SCALE_POINTER, &value, 8,
					     NULL));
	RIGHT(cublasLtMatmulDescSetAttribute(d, CUBLASLT_MATMUL_DESC_TRANSA, &op, sizeof(op)));
	RIGHT(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 2, 2, 2));
	RIGHT(cublasLtMatmulPreferenceCreate(&preference));
	WRONG(cublasLtMatrixLayoutSetAttribute((cublasLtMatrixLayout_t)d,
					       CUBLASLT_MATRIX_LAYOUT_ROWS, &value, 8));
	RIGHT(cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)h, d, layout, layout, layout, layout,
					     preference, 1, &result, &count));
	REQUIRE(count == 1, "%d algorithms", count);
	RIGHT(cublasLtMatmulAlgoCheck((cublasLtHandle_t)h, d, layout, layout, layout, layout,
				      &result.algo, &result));
	RIGHT(cublasLtMatmul((cublasLtHandle_t)h, d, &one, a, layout, b, layout, &zero, c, layout,
			     c, layout, &result.algo, NULL, 0, NULL));
	is_product("cublasLtMatmul with a short description");
	REQUIRE(desc.behind == 77, "written behind the description");
	RIGHT(cublasLtMatmulDescDestroy(d));
	RIGHT(cublasLtMatmulPreferenceDestroy(preference));
	RIGHT(cublasLtMatrixLayoutDestroy(layout));
}

static void products(cublasHandle_t h)
{
	__typeof__(&cublasSgemm_v2) in13;
	cublasLtMatrixLayout_t layout;
	cublasLtMatmulDesc_t desc;
	int version;

	RIGHT(cublasSetMathMode(h, CUBLAS_TF32_TENSOR_OP_MATH));
	RIGHT(cublasSgemm_v2(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, b, 2, &zero, c, 2));
	is_product("cublasSgemm");
	RIGHT(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	RIGHT(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 2, 2, 2));
	RIGHT(cublasLtMatmul((cublasLtHandle_t)h, desc, &one, a, layout, b, layout, &zero, c,
			     layout, c, layout, NULL, NULL, 0, NULL));
	is_product("cublasLtMatmul");
	RIGHT(cublasLtMatrixLayoutDestroy(layout));
	RIGHT(cublasLtMatmulDescDestroy(desc));

	/* Both libraries know the handle. */
	in13 = (__typeof__(in13))dlsym(library("libcublas.so.13"), "cublasSgemm_v2");
	REQUIRE(in13, "%s", dlerror());
	RIGHT(in13(h, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, a, 2, b, 2, &zero, c, 2));
	is_product("cublasSgemm of CUDA 13");
	RIGHT(((__typeof__(&cublasGetVersion_v2))dlsym(library("libcublas.so.13"),
						       "cublasGetVersion_v2"))(h, &version));
	REQUIRE(version / 10000 == 13, "CUDA 13's library says %d", version);
}

static void transforms(void)
{
	cufftComplex *x;
	cufftHandle plan;
	int i;

	/* From CUFFT_MISSING_DEPENDENCY to CUFFT_NVSHMEM_FAILURE, and what no version has. */
	for (i = 0; i < 4; i++)
		IS(cufftPlan1d(&plan, NAMES_12_SIZE + i, CUFFT_C2C, 1), CUFFT_INTERNAL_ERROR);
	IS(cufftPlan1d(&plan, NAMES_12_SIZE + 4, CUFFT_C2C, 1), CUFFT_NVSHMEM_FAILURE + 1);
	IS(cufftPlan1d(&plan, 0, CUFFT_C2C, 1), CUFFT_INVALID_SIZE);
	OK(cudaMallocManaged((void **)&x, 4 * sizeof(*x), cudaMemAttachGlobal));
	memset(x, 0, 4 * sizeof(*x));
	x[1].x = 1;
	RIGHT(cufftPlan1d(&plan, 4, CUFFT_C2C, 1));
	RIGHT(cufftExecC2C(plan, x, x, CUFFT_FORWARD));
	OK(cudaDeviceSynchronize());
	REQUIRE(x[0].x == 1 && x[1].y == -1 && x[2].x == -1 && x[3].y == 1, "%g %g %g %g", x[0].x,
		x[1].y, x[2].x, x[3].y);
	RIGHT(cufftDestroy(plan));
	OK(cudaFree(x));
}

static void factors(void)
{
	cusolverDnHandle_t h;
	cusolverDnParams_t params;
	size_t size;
	float *m;
	int i;

	RIGHT(cusolverDnCreate(&h));
	RIGHT(cusolverDnCreateParams(&params));
	OK(cudaMalloc((void **)&m, 4096));
	IS(cusolverDnSetAdvOptions(params, CUSOLVERDN_SYEVBATCHED, CUSOLVER_ALG_0),
	   CUSOLVER_STATUS_INVALID_VALUE);
	/* A number of rows that the library does not want. */
	IS(cusolverDnPotrf_bufferSize(h, params, CUBLAS_FILL_MODE_UPPER, 99, CUDA_R_32F, m, 99,
				      CUDA_R_32F, &size),
	   CUSOLVER_STATUS_INVALID_VALUE);
	RIGHT(cusolverDnPotrf_bufferSize(h, params, CUBLAS_FILL_MODE_UPPER, NAMES_12_N, CUDA_R_32F,
					 m, NAMES_12_N, CUDA_R_32F, &size));
	REQUIRE(size == NAMES_12_DEVICE, "%zu bytes", size);
	IS(cusolverDnPotrf(h, params, CUBLAS_FILL_MODE_UPPER, NAMES_12_N, CUDA_R_32F, m, NAMES_12_N,
			   CUDA_R_32F, m + NAMES_12_WORK, size + 1, (int *)(m + NAMES_12_INFO)),
	   CUSOLVER_STATUS_INVALID_VALUE);
	/* The library's memory of the host is the mirror's. The first call waits, the others are
	 * posted. */
	for (i = 0; i < 3; i++) {
		RIGHT(cusolverDnPotrf(h, params, CUBLAS_FILL_MODE_UPPER, NAMES_12_N, CUDA_R_32F, m,
				      NAMES_12_N, CUDA_R_32F, m + NAMES_12_WORK, size,
				      (int *)(m + NAMES_12_INFO)));
		RIGHT(cusolverDnPotrs(h, params, CUBLAS_FILL_MODE_UPPER, NAMES_12_N, 2, CUDA_R_32F,
				      m, NAMES_12_N, CUDA_R_32F, m + NAMES_12_WORK, NAMES_12_N,
				      (int *)(m + NAMES_12_INFO)));
	}
	OK(cudaDeviceSynchronize());
	RIGHT(cusolverDnDestroyParams(params));
	RIGHT(cusolverDnDestroy(h));
	OK(cudaFree(m));
}

int main(int argc, char **argv)
{
	static const float first[] = {5, 6, 7, 8};
	char path[4096];
	cublasHandle_t h;
	int i;

	(void)argc;
	snprintf(path, sizeof(path), "%s_backend.so", argv[0]);
	setenv("QCU_LOOPBACK_BACKEND", path, 1);
	versions();
	refused();
	unknown_attributes();
	RIGHT(cublasCreate_v2(&h));
	OK(cudaMallocManaged((void **)&a, 3 * sizeof(first), cudaMemAttachGlobal));
	b = a + 4;
	c = b + 4;
	memcpy(a, first, sizeof(first));
	for (i = 0; i < 4; i++)
		b[i] = (float)(i + 1);
	unknown_values(h);
	products(h);
	short_descriptions(h);
	transforms();
	factors();
	RIGHT(cublasDestroy_v2(h));
	OK(cudaFree(a));
	return 0;
}
