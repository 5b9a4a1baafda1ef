// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What belongs to a handle and to the library: streams, the pointer mode, math modes, atomics and a
 * workspace, all of which each handle has for itself; versions, properties, the names of statuses, and
 * the logger, which stays off. The same product has the same result with every setting. Wrong calls
 * come first: they change nothing.
 */
#include "blas.h"

static const cublasMath_t modes[] = {
	CUBLAS_DEFAULT_MATH,
	CUBLAS_PEDANTIC_MATH,
	CUBLAS_TF32_TENSOR_OP_MATH,
	(cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION),
};

/* Wrong calls leave a new handle as it is. */
static void untouched(cublasHandle_t handle)
{
	libraryPropertyType none = (libraryPropertyType)9;
	cublasPointerMode_t pointers;
	cublasAtomicsMode_t atomics;
	cublasMath_t mode;
	cudaStream_t stream;
	int value;

	BLAS_IS(cublasSetMathMode(NULL, CUBLAS_DEFAULT_MATH), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasSetAtomicsMode(NULL, CUBLAS_ATOMICS_ALLOWED), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasGetStream(NULL, &stream), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasGetPointerMode(NULL, &pointers), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasGetMathMode(NULL, &mode), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasGetProperty(none, &value), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasGetProperty(MAJOR_VERSION, NULL), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasGetVersion(handle, NULL), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasGetPointerMode(handle, NULL), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSetPointerMode(handle, (cublasPointerMode_t)7), CUBLAS_STATUS_INVALID_VALUE);

	BLAS(cublasGetStream(handle, &stream));
	BLAS(cublasGetPointerMode(handle, &pointers));
	BLAS(cublasGetMathMode(handle, &mode));
	BLAS(cublasGetAtomicsMode(handle, &atomics));
	REQUIRE(!stream && pointers == CUBLAS_POINTER_MODE_HOST && mode == CUBLAS_DEFAULT_MATH &&
			atomics == CUBLAS_ATOMICS_NOT_ALLOWED,
		"pointer mode %d, math mode %d, atomics %d", (int)pointers, (int)mode, (int)atomics);
}

static void logged(const char *)
{
}

static void library(cublasHandle_t handle)
{
	int version, major, minor, patch;
	cublasLogCallback callback;

	BLAS(cublasGetVersion(handle, &version));
	BLAS(cublasGetProperty(MAJOR_VERSION, &major));
	BLAS(cublasGetProperty(MINOR_VERSION, &minor));
	BLAS(cublasGetProperty(PATCH_LEVEL, &patch));
	REQUIRE(version == major * 10000 + minor * 100 + patch, "%d is not %d.%d.%d", version, major, minor, patch);
	REQUIRE(major == CUBLAS_VER_MAJOR, "version %d, but headers of %d", major, CUBLAS_VER_MAJOR);
	REQUIRE(cublasGetCudartVersion() / 1000 == CUDART_VERSION / 1000, "runtime %zu", cublasGetCudartVersion());
	REQUIRE(!strcmp(cublasGetStatusName(CUBLAS_STATUS_SUCCESS), "CUBLAS_STATUS_SUCCESS"), "another name");
	REQUIRE(!strcmp(cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE), "CUBLAS_STATUS_INVALID_VALUE"),
		"another name");
	REQUIRE(strcmp(cublasGetStatusString(CUBLAS_STATUS_INVALID_VALUE),
		       cublasGetStatusString(CUBLAS_STATUS_NOT_SUPPORTED)),
		"two statuses have the same text");
	BLAS(cublasLoggerConfigure(0, 0, 0, NULL));
	BLAS(cublasSetLoggerCallback(logged));
	BLAS(cublasGetLoggerCallback(&callback));
	REQUIRE(callback == logged, "another callback");
	BLAS(cublasSetLoggerCallback(NULL));
	BLAS(cublasGetLoggerCallback(&callback));
	REQUIRE(!callback, "the callback is still there");
}

/* The numbers have so few digits that TF32, too, has them all: the product is exact in each mode. */
static void product(cublasHandle_t handle, const char *what)
{
	const int m = 32, n = 24, k = 40;
	const float one = 1, zero = 0;
	array<float> a(m * k), b(k * n), c(m * n);
	std::vector<float> got;

	BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &one, a.gpu, m, b.gpu, k, &zero, c.gpu, m));
	reference<float>(CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, 1, a.host.data(), m, b.host.data(), k, 0, c.host.data(), m);
	CHECK(cudaDeviceSynchronize());
	got = c.down();
	for (size_t i = 0; i < got.size(); i++)
		REQUIRE(got[i] == c.host[i], "%s: element %zu is %g, not %g", what, i, got[i], c.host[i]);
}

static void settings(cublasHandle_t handle, cublasHandle_t other)
{
	const size_t size = 4 << 20;
	cublasAtomicsMode_t atomics;
	cublasMath_t mode;
	cudaStream_t stream, is;
	void *workspace;

	for (cublasMath_t m : modes) {
		BLAS(cublasSetMathMode(handle, m));
		BLAS(cublasGetMathMode(handle, &mode));
		REQUIRE(mode == m, "mode %d, not %d", (int)mode, (int)m);
		product(handle, "a math mode");
	}
	for (cublasAtomicsMode_t m : {CUBLAS_ATOMICS_ALLOWED, CUBLAS_ATOMICS_NOT_ALLOWED}) {
		BLAS(cublasSetAtomicsMode(handle, m));
		BLAS(cublasGetAtomicsMode(handle, &atomics));
		REQUIRE(atomics == m, "atomics %d, not %d", (int)atomics, (int)m);
		product(handle, "atomics");
	}
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMalloc(&workspace, size));
	BLAS(cublasSetStream(handle, stream));
	BLAS(cublasSetWorkspace(handle, workspace, size));
	product(handle, "a workspace");
	BLAS(cublasGetStream(handle, &is));
	REQUIRE(is == stream, "another stream");
	BLAS(cublasSetMathMode(handle, CUBLAS_PEDANTIC_MATH));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	/* None of this is in the other handle. */
	untouched(other);
	product(other, "the other handle");
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	/* With another stream, the library uses a workspace of its own again. */
	BLAS(cublasSetStream(handle, NULL));
	CHECK(cudaFree(workspace));
	product(handle, "its own workspace");
	CHECK(cudaStreamDestroy(stream));
}

int main(void)
{
	cublasHandle_t handle, other;

	BLAS(cublasCreate(&handle));
	untouched(handle);
	BLAS(cublasCreate(&other));
	REQUIRE(handle != other, "two handles are one");
	library(handle);
	settings(handle, other);
	BLAS(cublasDestroy(handle));
	product(other, "after the end of the first handle");
	library(other);
	BLAS(cublasDestroy(other));
	return verified("settings of two handles, and what the library says of itself");
}
