// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cuBLASXt: each family and type on matrices in host memory, with odd leading dimensions, beside the same call
 * of cuBLAS on the GPU, whose last bits may differ: in one tile, and in many. Wrong calls come first.
 */
#include <cmath>
#include <complex>
#include <vector>

#include <cublasXt.h>

#include "blas.h"
#include "ours.h"

#define M     70
#define NN    50
#define K     90
#define BLOCK 32

static cublasXtHandle_t xt;
static cublasHandle_t blas;

/* Native's answers. */
static void wrong(void)
{
	float one = 1, a = 2, b = 3, c = 4;
	cublasXtPinnedMemMode_t mode;
	int device = 99, block;
	cublasXtHandle_t spoiled;

	/* NVIDIA's is of no use after this. */
	REQUIRE(!cublasXtCreate(&spoiled), "a handle");
	REQUIRE(cublasXtDeviceSelect(spoiled, 1, &device) == CUBLAS_STATUS_INTERNAL_ERROR, "no such device");
	if (is_ours("cudaMalloc"))
		REQUIRE(!cublasXtDestroy(spoiled), "the handle");
	REQUIRE(cublasXtCreate(NULL) == CUBLAS_STATUS_INVALID_VALUE, "no place");
	REQUIRE(cublasXtDestroy(NULL) == CUBLAS_STATUS_INVALID_VALUE, "no handle");
	REQUIRE(!cublasXtGetBlockDim(xt, &block) && block == 1024, "tiles of %d", block);
	REQUIRE(!cublasXtGetPinningMemMode(xt, &mode) && mode == CUBLASXT_PINNING_DISABLED, "it pins");
	REQUIRE(cublasXtSetBlockDim(xt, 0) == CUBLAS_STATUS_INVALID_VALUE, "no tiles");
	REQUIRE(cublasXtSgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, &a, 1, &b, 1, &one, &c, 1) ==
			CUBLAS_STATUS_NOT_INITIALIZED,
		"no device is selected");
	REQUIRE(cublasXtDeviceSelect(xt, 0, &device) == CUBLAS_STATUS_INVALID_VALUE, "no devices");
	REQUIRE(cublasXtDeviceSelect(xt, 1, NULL) == CUBLAS_STATUS_INVALID_VALUE, "no list");
	device = 0;
	REQUIRE(!cublasXtDeviceSelect(xt, 1, &device), "device 0");
	REQUIRE(cublasXtSgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 1, &one, &a, 1, &b, 1, &one, &c, 2) ==
			CUBLAS_STATUS_INVALID_VALUE,
		"a leading dimension that is too small");
	REQUIRE(cublasXtSgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, NULL, &a, 1, &b, 1, &one, &c, 1) ==
			CUBLAS_STATUS_INVALID_VALUE,
		"no alpha");
	REQUIRE(cublasXtSgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, &a, 1, &b, 1, &one, &c, 1) == 0 && c == 10,
		"one element: %g", c);
}

/* One value's distance, of any type. */
static double far(float a, float b) { return std::fabs((double)a - b); }
static double far(double a, double b) { return std::fabs(a - b); }
static double far(cuComplex a, cuComplex b) { return std::hypot((double)a.x - b.x, (double)a.y - b.y); }
static double far(cuDoubleComplex a, cuDoubleComplex b) { return std::hypot(a.x - b.x, a.y - b.y); }
static void set(float &t, double x, double) { t = (float)x; }
static void set(double &t, double x, double) { t = x; }
static void set(cuComplex &t, double x, double y) { t = {(float)x, (float)y}; }
static void set(cuDoubleComplex &t, double x, double y) { t = {x, y}; }

template <typename T> static T scalar(double x, double y)
{
	T t;

	set(t, x, y);
	return t;
}

/* A matrix with a few rows more than it says, on the host; and packed on the GPU. */
template <typename T> struct pair_of {
	int rows, cols, ld;
	std::vector<T> host;
	T *gpu;

	pair_of(int r, int c, bool strong = false) : rows(r), cols(c), ld(r + 3), host(ld * c)
	{
		static int x = 1;

		for (T &t : host) {
			x = x * 1103515245 + 12345;
			set(t, (x >> 16 & 255) / 128.0 - 1, (x >> 24 & 127) / 64.0 - 1);
		}
		for (int i = 0; strong && i < r; i++)
			set(host[i * ld + i], 2.0 * r, 0);
		CHECK(cudaMalloc(&gpu, r * c * sizeof(T)));
		CHECK(cudaMemcpy2D(gpu, r * sizeof(T), host.data(), ld * sizeof(T), r * sizeof(T), c,
				   cudaMemcpyHostToDevice));
	}
	~pair_of()
	{
		CHECK(cudaFree(gpu));
	}
	/* What was computed on both ways, and what lies between the columns. */
	void is_right(const char *what, const std::vector<T> &before)
	{
		std::vector<T> there(rows * cols);
		double worst = 0;

		CHECK(cudaMemcpy(there.data(), gpu, rows * cols * sizeof(T), cudaMemcpyDeviceToHost));
		for (int j = 0; j < cols; j++) {
			for (int i = 0; i < rows; i++)
				worst = std::max(worst, far(host[j * ld + i], there[j * rows + i]));
			REQUIRE(!memcmp(&host[j * ld + rows], &before[j * ld + rows], 3 * sizeof(T)),
				"%s: column %d is written behind its end", what, j);
		}
		REQUIRE(worst <= 2e-3, "%s: off by %g", what, worst);
	}
};

/* The same call both ways. R: the type of a scalar that must be real. */
#define BOTH(what, result, ours, theirs)                                     \
	do {                                                                 \
		auto before = (result).host;                                 \
		int status = (int)(ours);                                    \
		REQUIRE(!status, "%s: status %d", what, status);             \
		status = (int)(theirs);                                      \
		REQUIRE(!status, "%s on the GPU: status %d", what, status);  \
		CHECK(cudaDeviceSynchronize());                              \
		(result).is_right(what, before);                       \
	} while (0)

#define AT(x) (x).host.data(), (x).ld
#define ON(x) (x).gpu, (x).rows

#define FAMILIES(L, T)                                                                                               \
	static void families_##L(void)                                                                          \
	{                                                                                                            \
		const T alpha = scalar<T>(0.75, 0.5), beta = scalar<T>(-0.5, 0.25);                                  \
		const cublasOperation_t N = CUBLAS_OP_N, t = CUBLAS_OP_T;                                            \
		const cublasFillMode_t low = CUBLAS_FILL_MODE_LOWER, up = CUBLAS_FILL_MODE_UPPER;                    \
		const cublasSideMode_t left = CUBLAS_SIDE_LEFT, right = CUBLAS_SIDE_RIGHT;                           \
		const cublasDiagType_t full = CUBLAS_DIAG_NON_UNIT;                                                  \
		pair_of<T> a(M, K), b(K, NN), bt(NN, K), c(M, NN), s(M, M), sn(NN, NN), d(M, NN), at(K, M);           \
		pair_of<T> low_m(M, M, true), up_n(NN, NN, true), e(M, K);                                            \
                                                                                                                     \
		BOTH(#L "gemm", c,                                                                                   \
		     cublasXt##L##gemm(xt, N, N, M, NN, K, &alpha, AT(a), AT(b), &beta, AT(c)),                      \
		     cublas##L##gemm(blas, N, N, M, NN, K, &alpha, ON(a), ON(b), &beta, ON(c)));                     \
		BOTH(#L "gemm of transposed", c,                                                                     \
		     cublasXt##L##gemm(xt, t, t, M, NN, K, &alpha, AT(at), AT(bt), &beta, AT(c)),                    \
		     cublas##L##gemm(blas, t, t, M, NN, K, &alpha, ON(at), ON(bt), &beta, ON(c)));                   \
		/* cuBLAS would multiply C by beta. NVIDIA's cuBLASXt changes complex numbers in another way. */     \
		if (*#L == 'S' || *#L == 'D')                                                                        \
			BOTH(#L "gemm of nothing", c,                                                                \
			     cublasXt##L##gemm(xt, N, N, M, NN, 0, &alpha, AT(a), AT(b), &beta, AT(c)), 0);          \
		BOTH(#L "syrk", s, cublasXt##L##syrk(xt, up, N, M, K, &alpha, AT(a), &beta, AT(s)),                  \
		     cublas##L##syrk(blas, up, N, M, K, &alpha, ON(a), &beta, ON(s)));                               \
		BOTH(#L "syrk of transposed", s, cublasXt##L##syrk(xt, low, t, M, K, &alpha, AT(at), &beta, AT(s)),  \
		     cublas##L##syrk(blas, low, t, M, K, &alpha, ON(at), &beta, ON(s)));                             \
		BOTH(#L "syr2k", s, cublasXt##L##syr2k(xt, low, N, M, K, &alpha, AT(a), AT(e), &beta, AT(s)),        \
		     cublas##L##syr2k(blas, low, N, M, K, &alpha, ON(a), ON(e), &beta, ON(s)));                      \
		BOTH(#L "symm left", c, cublasXt##L##symm(xt, left, up, M, NN, &alpha, AT(s), AT(d), &beta, AT(c)),  \
		     cublas##L##symm(blas, left, up, M, NN, &alpha, ON(s), ON(d), &beta, ON(c)));                    \
		BOTH(#L "symm right", c,                                                                             \
		     cublasXt##L##symm(xt, right, low, M, NN, &alpha, AT(sn), AT(d), &beta, AT(c)),                  \
		     cublas##L##symm(blas, right, low, M, NN, &alpha, ON(sn), ON(d), &beta, ON(c)));                 \
		BOTH(#L "trmm", c, cublasXt##L##trmm(xt, left, low, N, full, M, NN, &alpha, AT(s), AT(d), AT(c)),    \
		     cublas##L##trmm(blas, left, low, N, full, M, NN, &alpha, ON(s), ON(d), ON(c)));                 \
		BOTH(#L "trsm left", d, cublasXt##L##trsm(xt, left, low, N, full, M, NN, &alpha, AT(low_m), AT(d)),  \
		     cublas##L##trsm(blas, left, low, N, full, M, NN, &alpha, ON(low_m), ON(d)));                    \
		BOTH(#L "trsm right", d, cublasXt##L##trsm(xt, right, up, t, full, M, NN, &alpha, AT(up_n), AT(d)),  \
		     cublas##L##trsm(blas, right, up, t, full, M, NN, &alpha, ON(up_n), ON(d)));                     \
	}

FAMILIES(S, float)
FAMILIES(D, double)
FAMILIES(C, cuComplex)
FAMILIES(Z, cuDoubleComplex)

#define HERMITIAN(L, T, R)                                                                                           \
	static void hermitian_##L(void)                                                                         \
	{                                                                                                            \
		const T alpha = scalar<T>(0.75, 0.5), beta = scalar<T>(-0.5, 0.25);                                  \
		const R real = 0.5, other = -0.25;                                                                   \
		const cublasFillMode_t low = CUBLAS_FILL_MODE_LOWER;                                                 \
		const cublasOperation_t N = CUBLAS_OP_N, h = CUBLAS_OP_C;                                            \
		pair_of<T> a(M, K), e(M, K), at(K, M), s(M, M), c(M, NN), d(M, NN);                                   \
                                                                                                                     \
		BOTH(#L "herk", s, cublasXt##L##herk(xt, low, N, M, K, &real, AT(a), &other, AT(s)),                 \
		     cublas##L##herk(blas, low, N, M, K, &real, ON(a), &other, ON(s)));                              \
		BOTH(#L "herk of conjugates", s, cublasXt##L##herk(xt, low, h, M, K, &real, AT(at), &other, AT(s)),  \
		     cublas##L##herk(blas, low, h, M, K, &real, ON(at), &other, ON(s)));                             \
		BOTH(#L "her2k", s, cublasXt##L##her2k(xt, low, N, M, K, &alpha, AT(a), AT(e), &other, AT(s)),       \
		     cublas##L##her2k(blas, low, N, M, K, &alpha, ON(a), ON(e), &other, ON(s)));                     \
		BOTH(#L "hemm", c,                                                                                   \
		     cublasXt##L##hemm(xt, CUBLAS_SIDE_LEFT, low, M, NN, &alpha, AT(s), AT(d), &beta, AT(c)),        \
		     cublas##L##hemm(blas, CUBLAS_SIDE_LEFT, low, M, NN, &alpha, ON(s), ON(d), &beta, ON(c)));       \
	}

HERMITIAN(C, cuComplex, float)
HERMITIAN(Z, cuDoubleComplex, double)

/* What was in the result before does not count. */
static void no_beta(void)
{
	const float one = 1, zero = 0, a = 2, b = 3;
	float c = NAN;

	REQUIRE(!cublasXtSgemm(xt, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, &a, 1, &b, 1, &zero, &c, 1) && c == 6,
		"2 * 3 is %g", c);
}

int main(void)
{
	BLAS(cublasCreate(&blas));
	REQUIRE(!cublasXtCreate(&xt), "no handle");
	wrong();
	for (int block : {1024, BLOCK}) {
		REQUIRE(!cublasXtSetBlockDim(xt, block), "tiles of %d", block);
		families_S();
		families_D();
		families_C();
		families_Z();
		hermitian_C();
		hermitian_Z();
	}
	no_beta();
	REQUIRE(!cublasXtDestroy(xt), "the handle");
	printf("products of matrices in host memory\n");
	return 0;
}
