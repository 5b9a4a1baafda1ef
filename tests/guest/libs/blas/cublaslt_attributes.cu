// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Descriptions of cuBLASLt: what is in a new one, what comes back of what was set, sizes that are asked
 * for; for matrices, products, transforms and preferences, in the library's memory and in the program's
 * own. Wrong sizes, addresses and numbers of attributes change nothing. At the end products show that
 * descriptions which were changed and changed back are as good as new. And what the library says of itself.
 */
#include "blaslt.h"

/* Reads an attribute of type V, changes it, and reads it again. Each wrong way comes first. */
template <typename V, typename S, typename G, typename D, typename A>
static void attribute(const char *name, S set, G get, D desc, A which, V first, V next)
{
	V values[2] = {next, next}, v;
	size_t size = 0;

	BLAS(get(desc, which, NULL, 0, &size));
	REQUIRE(size == sizeof(V), "%s has %zu bytes", name, size);
	BLAS_IS(get(desc, which, NULL, 0, NULL), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(get(desc, which, NULL, sizeof(V), &size), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(get(desc, which, values, sizeof(V) + 1, &size), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(set(desc, which, NULL, sizeof(V)), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(set(desc, which, values, sizeof(V) + 1), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(set(desc, (A)999, values, sizeof(V)), CUBLAS_STATUS_INVALID_VALUE);
	size = 0;
	BLAS(get(desc, which, &v, sizeof(V), &size));
	REQUIRE(v == first && size == sizeof(V), "%s is %g in the beginning", name, (double)v);
	BLAS(set(desc, which, values, sizeof(V)));
	BLAS(get(desc, which, &v, sizeof(V), NULL));
	REQUIRE(v == next, "%s is %g, not %g", name, (double)v, (double)next);
}

/* Both ways: what was new is old again after the second. */
#define ONE_WAY(Kind, which, type, desc, first, next)                                                    \
	attribute<type>(#which, cublasLt##Kind##SetAttribute, cublasLt##Kind##GetAttribute, desc, which, \
			(type)(first), (type)(next))
#define BOTH(Kind, desc, which, type, first, next)             \
	do {                                                   \
		ONE_WAY(Kind, which, type, desc, first, next); \
		ONE_WAY(Kind, which, type, desc, next, first); \
	} while (0)
#define LAYOUT(name, ...)     BOTH(MatrixLayout, l, CUBLASLT_MATRIX_LAYOUT_##name, __VA_ARGS__)
#define PRODUCT(name, ...)    BOTH(MatmulDesc, p, CUBLASLT_MATMUL_DESC_##name, __VA_ARGS__)
#define TRANSFORM(name, ...)  BOTH(MatrixTransformDesc, t, CUBLASLT_MATRIX_TRANSFORM_DESC_##name, __VA_ARGS__)
#define PREFERENCE(name, ...) BOTH(MatmulPreference, f, CUBLASLT_MATMUL_PREF_##name, __VA_ARGS__)

static void matrices(cublasLtMatrixLayout_t l)
{
	LAYOUT(TYPE, uint32_t, CUDA_R_32F, CUDA_C_64F);
	LAYOUT(ORDER, int32_t, CUBLASLT_ORDER_COL, CUBLASLT_ORDER_ROW);
	LAYOUT(ROWS, uint64_t, 16, 5);
	LAYOUT(COLS, uint64_t, 16, 1ull << 33);
	LAYOUT(LD, int64_t, 20, 1ll << 34);
	LAYOUT(BATCH_COUNT, int32_t, 1, 7);
	LAYOUT(STRIDED_BATCH_OFFSET, int64_t, 0, 1ll << 40);
	LAYOUT(PLANE_OFFSET, int64_t, 0, 512);
}

static void products(cublasLtMatmulDesc_t p)
{
	char *address = (char *)0x7000; /* never used */

	PRODUCT(COMPUTE_TYPE, int32_t, CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_64F);
	PRODUCT(SCALE_TYPE, int32_t, CUDA_R_32F, CUDA_R_64F);
	PRODUCT(POINTER_MODE, int32_t, CUBLASLT_POINTER_MODE_HOST, CUBLASLT_POINTER_MODE_DEVICE);
	PRODUCT(TRANSA, int32_t, CUBLAS_OP_N, CUBLAS_OP_T);
	PRODUCT(TRANSB, int32_t, CUBLAS_OP_N, CUBLAS_OP_C);
	PRODUCT(EPILOGUE, uint32_t, CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_RELU_BIAS);
	PRODUCT(BIAS_POINTER, size_t, 0, address);
	PRODUCT(BIAS_BATCH_STRIDE, int64_t, 0, 64);
	PRODUCT(EPILOGUE_AUX_POINTER, size_t, 0, address);
	PRODUCT(EPILOGUE_AUX_LD, int64_t, 0, 128);
	PRODUCT(EPILOGUE_AUX_BATCH_STRIDE, int64_t, 0, 1024);
	PRODUCT(SM_COUNT_TARGET, int32_t, 0, 2);
	PRODUCT(A_SCALE_POINTER, size_t, 0, address);
	PRODUCT(AMAX_D_POINTER, size_t, 0, address);
	PRODUCT(FAST_ACCUM, int8_t, 0, 1);
	PRODUCT(BIAS_DATA_TYPE, int32_t, -1, CUDA_R_16BF);
}

static void transforms(cublasLtMatrixTransformDesc_t t)
{
	TRANSFORM(SCALE_TYPE, int32_t, CUDA_R_32F, CUDA_R_64F);
	TRANSFORM(POINTER_MODE, int32_t, CUBLASLT_POINTER_MODE_HOST, CUBLASLT_POINTER_MODE_DEVICE);
	TRANSFORM(TRANSA, int32_t, CUBLAS_OP_N, CUBLAS_OP_T);
	TRANSFORM(TRANSB, int32_t, CUBLAS_OP_N, CUBLAS_OP_T);
}

static void preferences(cublasLtMatmulPreference_t f)
{
	PREFERENCE(SEARCH_MODE, uint32_t, CUBLASLT_SEARCH_BEST_FIT, CUBLASLT_SEARCH_LIMITED_BY_ALGO_ID);
	PREFERENCE(MAX_WORKSPACE_BYTES, uint64_t, 0, 1ull << 35);
	PREFERENCE(REDUCTION_SCHEME_MASK, uint32_t, CUBLASLT_REDUCTION_SCHEME_MASK, CUBLASLT_REDUCTION_SCHEME_INPLACE);
	PREFERENCE(MIN_ALIGNMENT_A_BYTES, uint32_t, 256, 4);
	PREFERENCE(MIN_ALIGNMENT_D_BYTES, uint32_t, 256, 16);
	PREFERENCE(MAX_WAVES_COUNT, float, 0, 1.5);
	PREFERENCE(IMPL_MASK, uint64_t, ~0ull, CUBLASLT_NUMERICAL_IMPL_FLAGS_FMA);
}

static void library(void)
{
	int major;

	BLAS_IS(cublasLtGetProperty(MAJOR_VERSION, NULL), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasLtCreate(NULL), CUBLAS_STATUS_INVALID_VALUE);
	BLAS(cublasLtGetProperty(MAJOR_VERSION, &major));
	REQUIRE(cublasLtGetVersion() / 10000 == (size_t)major && major == CUBLAS_VER_MAJOR, "version %zu",
		cublasLtGetVersion());
	REQUIRE(cublasLtGetCudartVersion() / 1000 == CUDART_VERSION / 1000, "runtime %zu", cublasLtGetCudartVersion());
	REQUIRE(!strcmp(cublasLtGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED"),
		"another name");
	BLAS(cublasLtLoggerSetLevel(0));
	BLAS(cublasLtLoggerForceDisable());
}

int main(void)
{
	cublasLtMatrixLayoutOpaque_t own_layout;
	cublasLtMatmulDescOpaque_t own_product;
	cublasLtMatrixTransformDescOpaque_t own_transform;
	cublasLtMatmulPreferenceOpaque_t own_preference;
	cublasLtMatrixLayout_t layout;
	cublasLtMatmulDesc_t product;
	cublasLtMatrixTransformDesc_t transform;
	cublasLtMatmulPreference_t preference;
	const float one = 1, zero = 0;
	cublasLtHandle_t handle;

	library();
	BLAS(cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, 16, 16, 20));
	BLAS(cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	BLAS(cublasLtMatrixTransformDescCreate(&transform, CUDA_R_32F));
	BLAS(cublasLtMatmulPreferenceCreate(&preference));
	BLAS(cublasLtMatrixLayoutInit(&own_layout, CUDA_R_32F, 16, 16, 20));
	BLAS(cublasLtMatmulDescInit(&own_product, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	BLAS(cublasLtMatrixTransformDescInit(&own_transform, CUDA_R_32F));
	BLAS(cublasLtMatmulPreferenceInit(&own_preference));
	matrices(layout);
	matrices(&own_layout);
	products(product);
	products(&own_product);
	transforms(transform);
	transforms(&own_transform);
	preferences(preference);
	preferences(&own_preference);

	BLAS(cublasLtCreate(&handle));
	array<float> a(20 * 16), b(20 * 16), c(20 * 16);
	BLAS(cublasLtMatmul(handle, product, &one, a.gpu, layout, b.gpu, &own_layout, &zero, c.gpu, layout, c.gpu,
			    layout, NULL, NULL, 0, 0));
	BLAS(cublasLtMatmul(handle, &own_product, &one, a.gpu, layout, b.gpu, layout, &one, c.gpu, layout, c.gpu,
			    &own_layout, NULL, NULL, 0, 0));
	reference<float>(CUBLAS_OP_N, CUBLAS_OP_N, 16, 16, 16, 2, a.host.data(), 20, b.host.data(), 20, 0,
			 c.host.data(), 20);
	c.check("two products");
	BLAS(cublasLtDestroy(handle));
	BLAS(cublasLtMatrixLayoutDestroy(layout));
	BLAS(cublasLtMatmulDescDestroy(product));
	BLAS(cublasLtMatrixTransformDescDestroy(transform));
	BLAS(cublasLtMatmulPreferenceDestroy(preference));
	return verified("the attributes of matrices, products, transforms and preferences");
}
