// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The software GPU with a cuSOLVER that computes nothing: it checks what it gets, which must be the
 * parameters of CUDA 13. And transforms of some sizes have a status that CUDA 12 does not know.
 */
#include <string.h>

#include <cufft.h>
#include <cusolverDn.h>

#include "qcu-device/backend/backend.h"
#include "tests/loopback/libs/stand_in.h"
#include "tests/loopback/libs/names_12.h"

static struct be_ops ops;
static int solver;
static cufftResult (*make_plan)(cufftHandle, int, cufftType, int, size_t *);

#define NEED(condition)                                       \
	do {                                                  \
		if (!(condition))                             \
			return CUSOLVER_STATUS_INVALID_VALUE; \
	} while (0)

static cusolverStatus_t create(cusolverDnHandle_t *h)
{
	*h = (cusolverDnHandle_t)&solver;
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t destroy(void *h)
{
	(void)h;
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t set_stream(cusolverDnHandle_t h, cudaStream_t stream)
{
	(void)h;
	(void)stream;
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t create_params(cusolverDnParams_t *params)
{
	*params = (cusolverDnParams_t)&solver;
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t factor_size(cusolverDnHandle_t h, cusolverDnParams_t params,
				    cublasFillMode_t uplo, int64_t n, cudaDataType type,
				    const void *a, int64_t lda, cudaDataType compute,
				    size_t *device, size_t *host)
{
	NEED(h && uplo == CUBLAS_FILL_MODE_UPPER && n == NAMES_12_N && type == CUDA_R_32F);
	NEED(params && a && lda == NAMES_12_N && compute == CUDA_R_32F);
	*device = NAMES_12_DEVICE;
	*host = NAMES_12_HOST;
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t factor(cusolverDnHandle_t h, cusolverDnParams_t params,
			       cublasFillMode_t uplo, int64_t n, cudaDataType type, void *a,
			       int64_t lda, cudaDataType compute, void *work, size_t size,
			       void *host_work, size_t host_size, int *info)
{
	size_t device, host;

	NEED(!factor_size(h, params, uplo, n, type, a, lda, compute, &device, &host));
	NEED(work == (float *)a + NAMES_12_WORK && size == device);
	NEED(info == (int *)a + NAMES_12_INFO && host_work && host_size == host);
	memset(host_work, 0, host_size);
	return CUSOLVER_STATUS_SUCCESS;
}

static cusolverStatus_t solve(cusolverDnHandle_t h, cusolverDnParams_t params,
			      cublasFillMode_t uplo, int64_t n, int64_t nrhs, cudaDataType type_a,
			      const void *a, int64_t lda, cudaDataType type_b, void *b, int64_t ldb,
			      int *info)
{
	NEED(h && params && uplo == CUBLAS_FILL_MODE_UPPER && n == NAMES_12_N && nrhs == 2);
	NEED(type_a == CUDA_R_32F && a && lda == NAMES_12_N && type_b == CUDA_R_32F);
	NEED(b == (float *)(uintptr_t)a + NAMES_12_WORK && ldb == NAMES_12_N);
	NEED(info == (const int *)a + NAMES_12_INFO);
	return CUSOLVER_STATUS_SUCCESS;
}

static cufftResult make_plan_1d(cufftHandle plan, int nx, cufftType type, int batch, size_t *size)
{
	if (nx >= NAMES_12_SIZE && nx < NAMES_12_SIZE + 5)
		return (cufftResult)(CUFFT_MISSING_DEPENDENCY + nx - NAMES_12_SIZE);
	return make_plan(plan, nx, type, batch, size);
}

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	return strcmp(soname, "libcusolver.so.12") ? be_soft.lib_open(be, soname, why, size)
						   : &solver;
}

static void *symbol(struct be *be, void *library, const char *name)
{
	static const struct stand_in all[] = {
		{"cusolverDnCreate", (void *)create},
		{"cusolverDnDestroy", (void *)destroy},
		{"cusolverDnSetStream", (void *)set_stream},
		{"cusolverDnCreateParams", (void *)create_params},
		{"cusolverDnDestroyParams", (void *)destroy},
		{"cusolverDnXpotrf_bufferSize", (void *)factor_size},
		{"cusolverDnXpotrf", (void *)factor},
		{"cusolverDnXpotrs", (void *)solve},
	};
	void *fn;

	if (library == &solver)
		return STAND_IN_FIND(all, name);
	fn = be_soft.lib_symbol(be, library, name);
	if (strcmp(name, "cufftMakePlan1d") != 0)
		return fn;
	memcpy(&make_plan, &fn, sizeof(fn));
	return (void *)make_plan_1d;
}

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	ops = be_soft;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	return &ops;
}
