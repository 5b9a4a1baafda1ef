// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Levels 2 and 3 of cuBLAS beside a product: symmetric, Hermitian and triangular matrices, in bands and
 * without gaps, and rows and columns that cublasSetMatrix and its like copy from and to any memory.
 * Each result is computed again from the whole matrix. Wrong calls come first.
 */
#include "blas.h"

static cublasHandle_t handle;

#define VECTOR_CALLS(X, T, SY, HERMITIAN)                                                                    \
	static void vectors_##X(bool upper)                                                                  \
	{                                                                                                    \
		typedef number<T>::type V;                                                                   \
		const int m = 23, n = 17, ld = 26, inc = 2;                                                  \
		const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;       \
		const V alpha = value_of<V>(1.25, 0.5), beta = value_of<V>(0.5, -0.25);                      \
		array<T> a(ld * ld), x(m * inc), y(m), packed(n * (n + 1) / 2), band(ld * n);                \
                                                                                                             \
		BLAS(cublas##X##gemv(handle, CUBLAS_OP_N, m, n, (const T *)&alpha, a.gpu, ld, x.gpu, inc,    \
				     (const T *)&beta, y.gpu, 1));                                           \
		for (int i = 0; i < m; i++) {                                                                \
			V sum = 0;                                                                           \
                                                                                                             \
			for (int j = 0; j < n; j++)                                                          \
				sum += a.host[i + j * ld] * x.host[j * inc];                                 \
			y.host[i] = alpha * sum + beta * y.host[i];                                          \
		}                                                                                            \
		y.check("gemv");                                                                             \
		BLAS(cublas##X##gemv(handle, CUBLAS_OP_C, m, n, (const T *)&alpha, a.gpu, ld, x.gpu, inc,    \
				     (const T *)&beta, y.gpu, 1));                                           \
		for (int j = 0; j < n; j++) {                                                                \
			V sum = 0;                                                                           \
                                                                                                             \
			for (int i = 0; i < m; i++)                                                          \
				sum += conjugate(a.host[i + j * ld]) * x.host[i * inc];                      \
			y.host[j] = alpha * sum + beta * y.host[j];                                          \
		}                                                                                            \
		y.check("gemv, transposed");                                                                 \
                                                                                                             \
		BLAS(cublas##X##SY##mv(handle, fill, n, (const T *)&alpha, a.gpu, ld, x.gpu, inc,            \
				       (const T *)&beta, y.gpu, 1));                                         \
		matrix<V> s = whole(a.host, n, ld, upper, HERMITIAN);                                        \
		for (int i = 0; i < n; i++) {                                                                \
			V sum = 0;                                                                           \
                                                                                                             \
			for (int j = 0; j < n; j++)                                                          \
				sum += s(i, j) * x.host[j * inc];                                            \
			y.host[i] = alpha * sum + beta * y.host[i];                                          \
		}                                                                                            \
		y.check("a symmetric matrix");                                                               \
                                                                                                             \
		steady(a, n, ld);                                                                            \
		matrix<V> t = triangle(a.host, n, ld, upper, false);                                         \
		BLAS(cublas##X##trmv(handle, fill, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, a.gpu, ld, y.gpu,   \
				     1));                                                                    \
		BLAS(cublas##X##trsv(handle, fill, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, a.gpu, ld, y.gpu,   \
				     1));                                                                    \
		y.check("a product and its way back");                                                       \
		BLAS(cublas##X##trmv(handle, fill, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, n, a.gpu, ld, y.gpu,   \
				     1));                                                                    \
		std::vector<V> was = y.host;                                                                 \
		for (int i = 0; i < n; i++) {                                                                \
			V sum = 0;                                                                           \
                                                                                                             \
			for (int j = 0; j < n; j++)                                                          \
				sum += t(j, i) * was[j];                                                     \
			y.host[i] = sum;                                                                     \
		}                                                                                            \
		y.check("a triangular matrix");                                                              \
                                                                                                             \
		/* The same triangle, without gaps. */                                                       \
		for (int j = 0, k = 0; j < n; j++)                                                           \
			for (int i = upper ? 0 : j; i < (upper ? j + 1 : n); i++)                            \
				packed.host[k++] = a.host[i + j * ld];                                       \
		packed.up();                                                                                 \
		BLAS(cublas##X##tpsv(handle, fill, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, n, packed.gpu, y.gpu,  \
				     1));                                                                    \
		y.host = was;                                                                                \
		y.check("a triangle without gaps");                                                          \
                                                                                                             \
		/* A band of two diagonals beside the main one. */                                           \
		for (int j = 0; j < n; j++)                                                                  \
			for (int d = 0; d < 3; d++)                                                          \
				band.host[(upper ? 2 - d : d) + j * ld] = value_of<V>(d ? 0.5 : 9, 0);       \
		band.up();                                                                                   \
		BLAS(cublas##X##tbmv(handle, fill, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, n, 2, band.gpu, ld,    \
				     y.gpu, 1));                                                             \
		was = y.host;                                                                                \
		for (int i = 0; i < n; i++)                                                                  \
			for (int d = 0; d < 3; d++) {                                                        \
				int j = upper ? i + d : i - d;                                               \
                                                                                                             \
				if (!d)                                                                      \
					y.host[i] = value_of<V>(9, 0) * was[i];                              \
				else if (j >= 0 && j < n)                                                    \
					y.host[i] += value_of<V>(0.5, 0) * was[j];                           \
			}                                                                                    \
		y.check("a band");                                                                           \
	}
VECTOR_CALLS(S, float, sy, false)
VECTOR_CALLS(D, double, sy, false)
VECTOR_CALLS(C, cuComplex, he, true)
VECTOR_CALLS(Z, cuDoubleComplex, he, true)

#define MATRIX_CALLS(X, T, SY, RK, R, HERMITIAN)                                                             \
	static void matrices_##X(bool upper)                                                                 \
	{                                                                                                    \
		typedef number<T>::type V;                                                                   \
		const int m = 19, n = 14, k = 11, ld = 21;                                                   \
		const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;       \
		const V alpha = value_of<V>(0.75, -0.5), beta = value_of<V>(-0.5, 1);                        \
		const R ra = 0.5, rb = 2;                                                                    \
		array<T> a(ld * ld), b(ld * ld), c(ld * ld);                                                 \
                                                                                                             \
		BLAS(cublas##X##SY##mm(handle, CUBLAS_SIDE_LEFT, fill, m, n, (const T *)&alpha, a.gpu, ld,   \
				       b.gpu, ld, (const T *)&beta, c.gpu, ld));                             \
		matrix<V> s = whole(a.host, m, ld, upper, HERMITIAN);                                        \
		for (int j = 0; j < n; j++)                                                                  \
			for (int i = 0; i < m; i++) {                                                        \
				V sum = 0;                                                                   \
                                                                                                             \
				for (int l = 0; l < m; l++)                                                  \
					sum += s(i, l) * b.host[l + j * ld];                                 \
				c.host[i + j * ld] = alpha * sum + beta * c.host[i + j * ld];                \
			}                                                                                    \
		c.check("a symmetric matrix and another");                                                   \
                                                                                                             \
		/* The diagonal of a Hermitian result is real. */                                            \
		for (int i = 0; i < n; i++)                                                                  \
			c.host[i + i * ld] = value_of<V>(std::real(c.host[i + i * ld]), 0);                  \
		c.up();                                                                                      \
		BLAS(cublas##X##RK(handle, fill, CUBLAS_OP_N, n, k, &ra, a.gpu, ld, &rb, c.gpu, ld));        \
		for (int j = 0; j < n; j++)                                                                  \
			for (int i = upper ? 0 : j; i < (upper ? j + 1 : n); i++) {                          \
				V sum = 0;                                                                   \
                                                                                                             \
				for (int l = 0; l < k; l++)                                                  \
					sum += a.host[i + l * ld] * conjugate(a.host[j + l * ld]);           \
				c.host[i + j * ld] = (V)ra * sum + (V)rb * c.host[i + j * ld];               \
			}                                                                                    \
		c.check("a matrix and itself");                                                              \
                                                                                                             \
		steady(a, m, ld);                                                                            \
		matrix<V> t = triangle(a.host, m, ld, upper, false);                                         \
		BLAS(cublas##X##trmm(handle, CUBLAS_SIDE_LEFT, fill, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, m,   \
				     n, (const T *)&alpha, a.gpu, ld, b.gpu, ld, c.gpu, ld));                \
		for (int j = 0; j < n; j++)                                                                  \
			for (int i = 0; i < m; i++) {                                                        \
				V sum = 0;                                                                   \
                                                                                                             \
				for (int l = 0; l < m; l++)                                                  \
					sum += t(i, l) * b.host[l + j * ld];                                 \
				c.host[i + j * ld] = alpha * sum;                                            \
			}                                                                                    \
		c.check("a triangular matrix and another");                                                  \
		const V back = (V)1 / alpha;                                                                 \
		BLAS(cublas##X##trsm(handle, CUBLAS_SIDE_LEFT, fill, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, m,   \
				     n, (const T *)&back, a.gpu, ld, c.gpu, ld));                            \
		for (int j = 0; j < n; j++)                                                                  \
			for (int i = 0; i < m; i++)                                                          \
				c.host[i + j * ld] = b.host[i + j * ld];                                     \
		c.check("the way back");                                                                     \
	}
MATRIX_CALLS(S, float, sy, syrk, float, false)
MATRIX_CALLS(D, double, sy, syrk, double, false)
MATRIX_CALLS(C, cuComplex, he, herk, float, true)
MATRIX_CALLS(Z, cuDoubleComplex, he, herk, double, true)

/* Rows and columns between memory of the program and of the GPU. */
static void copies(void)
{
	const int rows = 300, cols = 200, ld = 320, ld_gpu = 310;
	std::vector<float> from(ld * cols), to(ld * cols, -1);
	float *gpu, *pinned;
	cudaStream_t s;

	for (size_t i = 0; i < from.size(); i++)
		from[i] = (float)i;
	CHECK(cudaStreamCreate(&s));
	CHECK(cudaMalloc(&gpu, ld_gpu * cols * sizeof(float)));
	CHECK(cudaMallocHost(&pinned, ld * cols * sizeof(float)));
	BLAS(cublasSetMatrix(rows, cols, sizeof(float), from.data(), ld, gpu, ld_gpu));
	BLAS(cublasGetMatrix(rows, cols, sizeof(float), gpu, ld_gpu, to.data(), ld));
	for (int j = 0; j < cols; j++)
		for (int i = 0; i < ld; i++)
			REQUIRE(to[i + j * ld] == (i < rows ? from[i + j * ld] : -1), "element %d of column %d", i, j);
	memcpy(pinned, from.data(), ld * cols * sizeof(float));
	BLAS(cublasSetMatrixAsync(rows, cols, sizeof(float), pinned, ld, gpu, ld_gpu, s));
	memset(to.data(), 0, to.size() * sizeof(float));
	BLAS(cublasGetMatrixAsync(rows, cols, sizeof(float), gpu, ld_gpu, pinned, rows, s));
	CHECK(cudaStreamSynchronize(s));
	for (int j = 0; j < cols; j++)
		for (int i = 0; i < rows; i++)
			REQUIRE(pinned[i + j * rows] == from[i + j * ld], "element %d of column %d", i, j);
	BLAS(cublasSetVector(100, sizeof(float), from.data(), 3, gpu, 2));
	BLAS(cublasGetVector(50, sizeof(float), gpu, 4, to.data(), 1));
	for (int i = 0; i < 50; i++)
		REQUIRE(to[i] == from[i * 6], "element %d is %g", i, to[i]);
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(gpu));
	CHECK(cudaStreamDestroy(s));
}

static void wrong_calls(void)
{
	const float one = 1;
	array<float> a(64), x(8);
	float host[8];

	BLAS_IS(cublasSgemv(handle, CUBLAS_OP_N, 8, 8, &one, a.gpu, 7, x.gpu, 1, &one, x.gpu, 1),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, CUBLAS_DIAG_UNIT, -1, 8, &one,
			    a.gpu, 8, a.gpu, 8),
		CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSetVector(8, 0, host, 1, x.gpu, 1), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasSetVector(8, 4, host, 0, x.gpu, 1), CUBLAS_STATUS_INVALID_VALUE);
	BLAS_IS(cublasGetMatrix(8, 8, 4, a.gpu, 0, host, 8), CUBLAS_STATUS_INVALID_VALUE);
	a.check("after wrong calls");
	x.check("after wrong calls");
}

int main(void)
{
	BLAS(cublasCreate(&handle));
	wrong_calls();
	copies();
	for (int upper = 0; upper < 2; upper++) {
		vectors_S(upper);
		vectors_D(upper);
		vectors_C(upper);
		vectors_Z(upper);
		matrices_S(upper);
		matrices_D(upper);
		matrices_C(upper);
		matrices_Z(upper);
	}
	BLAS(cublasDestroy(handle));
	printf("matrices of four types, and copies of rows and columns\n");
	return 0;
}
