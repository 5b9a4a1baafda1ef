/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuSOLVER need. Matrices lie column by column. */
#ifndef SOLVER_H
#define SOLVER_H

#include <cusolverDn.h>

#include "../libs.h"

typedef std::complex<float> C;
typedef std::complex<double> Z;

/* What cuSOLVER calls a type, and the type of its real part. */
template <typename T> struct number {
	typedef T gpu;
};
template <> struct number<float> {
	typedef float gpu, real;
	static const cudaDataType type = CUDA_R_32F;
};
template <> struct number<double> {
	typedef double gpu, real;
	static const cudaDataType type = CUDA_R_64F;
};
template <> struct number<C> {
	typedef cuComplex gpu;
	typedef float real;
	static const cudaDataType type = CUDA_C_32F;
};
template <> struct number<Z> {
	typedef cuDoubleComplex gpu;
	typedef double real;
	static const cudaDataType type = CUDA_C_64F;
};
template <typename T> using real = typename number<T>::real;

template <typename T> static double precision(void)
{
	return sizeof(real<T>) == 4 ? 1e-3 : 1e-9;
}

static inline float conjugate(float v)
{
	return v;
}
static inline double conjugate(double v)
{
	return v;
}
template <typename T> static std::complex<T> conjugate(std::complex<T> v)
{
	return std::conj(v);
}

/* name(T(), ...) is the function of cuSOLVER for T. Its name may differ for complex types. */
#define FOR_TYPES(name, for_real, for_complex)                                \
	template <typename... A> cusolverStatus_t name(float, const A &...a)  \
	{                                                                     \
		return cusolverDnS##for_real(a...);                           \
	}                                                                     \
	template <typename... A> cusolverStatus_t name(double, const A &...a) \
	{                                                                     \
		return cusolverDnD##for_real(a...);                           \
	}                                                                     \
	template <typename... A> cusolverStatus_t name(C, const A &...a)      \
	{                                                                     \
		return cusolverDnC##for_complex(a...);                        \
	}                                                                     \
	template <typename... A> cusolverStatus_t name(Z, const A &...a)      \
	{                                                                     \
		return cusolverDnZ##for_complex(a...);                        \
	}

static cusolverDnHandle_t handle;

/* The first call, which makes the handle. */
static inline void begin(void)
{
	first("cuSOLVER", cusolverDnCreate(&handle), CUSOLVER_STATUS_NOT_INITIALIZED);
}

/* GPU memory until the end of the block. */
template <typename T> struct memory {
	typedef typename number<T>::gpu G;
	T *at;
	size_t n;

	explicit memory(size_t count) : n(count)
	{
		CHECK(cudaMalloc(&at, (n + !n) * sizeof(T)));
	}
	explicit memory(const std::vector<T> &host) : at(up(host)), n(host.size())
	{
	}
	memory(const memory &) = delete;
	~memory()
	{
		CHECK(cudaFree(at));
	}
	operator G *() const
	{
		return (G *)at;
	}
	std::vector<T> get(void) const
	{
		return down(at, n);
	}
	void set(const std::vector<T> &host)
	{
		CHECK(cudaMemcpy(at, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
	}
};

/* Work space on both sides, for the functions that have told how much they need. */
struct space {
	size_t on_device, on_host;
	void *device, *host;

	space() : on_device(0), on_host(0), device(NULL), host(NULL)
	{
	}
	space(const space &) = delete;
	~space()
	{
		CHECK(cudaFree(device));
		free(host);
	}
	void get(void)
	{
		CHECK(cudaMalloc(&device, on_device + 1));
		host = malloc(on_host + 1);
		REQUIRE(host, "no memory");
	}
};

/* What a function says about its own work: 0 if that went well. */
static inline void check_info(const memory<int> &info, int want = 0)
{
	int got = info.get()[0];

	REQUIRE(got == want, "info is %d, not %d", got, want);
}

/* The same of each matrix of a batch. */
static inline void check_all(const memory<int> &info)
{
	std::vector<int> all = info.get();

	for (size_t i = 0; i < all.size(); i++)
		REQUIRE(!all[i], "info of matrix %zu is %d", i, all[i]);
}

/* Jacobi's method, as exact as T allows, for eigenvalues and for singular values. */
template <typename T> static syevjInfo_t for_eigenvalues(void)
{
	syevjInfo_t jacobi;

	OK(cusolverDnCreateSyevjInfo(&jacobi));
	OK(cusolverDnXsyevjSetTolerance(jacobi, sizeof(real<T>) == 4 ? 1e-6 : 1e-13));
	OK(cusolverDnXsyevjSetMaxSweeps(jacobi, 50));
	OK(cusolverDnXsyevjSetSortEig(jacobi, 1));
	return jacobi;
}

template <typename T> static gesvdjInfo_t for_singular_values(void)
{
	gesvdjInfo_t jacobi;

	OK(cusolverDnCreateGesvdjInfo(&jacobi));
	OK(cusolverDnXgesvdjSetTolerance(jacobi, sizeof(real<T>) == 4 ? 1e-6 : 1e-13));
	OK(cusolverDnXgesvdjSetMaxSweeps(jacobi, 50));
	OK(cusolverDnXgesvdjSetSortEig(jacobi, 1));
	return jacobi;
}

/* What belongs to matrix i of a batch, whose matrices lie one behind the other. */
template <typename T> static std::vector<T> part(const std::vector<T> &all, int i, size_t size)
{
	return std::vector<T>(all.begin() + i * size, all.begin() + (i + 1) * size);
}

template <typename T> static void append(std::vector<T> &all, const std::vector<T> &one)
{
	all.insert(all.end(), one.begin(), one.end());
}

static inline void small_value(float &v)
{
	v = (float)small_number();
}
static inline void small_value(double &v)
{
	v = small_number();
}
template <typename T> static void small_value(std::complex<T> &v)
{
	double re = small_number();

	v = std::complex<T>((T)re, (T)small_number());
}

template <typename T> static std::vector<T> numbers(size_t n)
{
	std::vector<T> v(n);

	for (T &x : v)
		small_value(x);
	return v;
}

/* A matrix whose equations have a solution that is not sensitive. LU with pivots swaps its rows. */
template <typename T> static std::vector<T> regular(int n)
{
	std::vector<T> a = numbers<T>(n * n);

	for (int i = 0; i < n; i++)
		a[n - 1 - i + i * n] += T(real<T>(n));
	return a;
}

/* A symmetric or Hermitian matrix. With a large `diagonal` it is positive definite. */
template <typename T> static std::vector<T> hermitian(int n, double diagonal)
{
	std::vector<T> a = numbers<T>(n * n);

	for (int j = 0; j < n; j++) {
		a[j + j * n] = T(real<T>(small_number() + diagonal));
		for (int i = 0; i < j; i++)
			a[i + j * n] = conjugate(a[j + i * n]);
	}
	return a;
}

/* a: rows times inner; b: inner times columns. */
template <typename T>
static std::vector<T> times(const std::vector<T> &a, const std::vector<T> &b, int rows, int inner,
			    int columns)
{
	std::vector<T> c(rows * columns);

	for (int j = 0; j < columns; j++)
		for (int k = 0; k < inner; k++)
			for (int i = 0; i < rows; i++)
				c[i + j * rows] += a[i + k * rows] * b[k + j * inner];
	return c;
}

template <typename T> static std::vector<T> adjoint(const std::vector<T> &a, int rows, int columns)
{
	std::vector<T> b(a.size());

	for (int j = 0; j < columns; j++)
		for (int i = 0; i < rows; i++)
			b[j + i * columns] = conjugate(a[i + j * rows]);
	return b;
}

static inline bool inside(cublasFillMode_t fill, int i, int j)
{
	return fill == CUBLAS_FILL_MODE_LOWER ? i >= j : i <= j;
}

/* One triangle, and `other` in the place of the rest. */
template <typename T>
static std::vector<T> triangle(std::vector<T> a, int n, cublasFillMode_t fill, T other = 0)
{
	for (int i = 0; i < n * n; i++)
		if (!inside(fill, i % n, i / n))
			a[i] = other;
	return a;
}

/* Numbers on the diagonal, zeros elsewhere. */
template <typename T, typename R>
static std::vector<T> diagonal(const std::vector<R> &values, int rows, int columns)
{
	std::vector<T> a(rows * columns);

	for (size_t i = 0; i < values.size(); i++)
		a[i + i * rows] = T(values[i]);
	return a;
}

template <typename T> static std::vector<T> identity(int n)
{
	return diagonal<T>(std::vector<real<T>>(n, 1), n, n);
}

/* A reflection at a plane: it is unitary, and its own inverse. */
template <typename T> static std::vector<T> reflection(int n)
{
	std::vector<T> a = identity<T>(n), v = numbers<T>(n);
	real<T> length = 0;

	for (T x : v)
		length += std::norm(x);
	for (int j = 0; j < n; j++)
		for (int i = 0; i < n; i++)
			a[i + j * n] -= real<T>(2) / length * v[i] * conjugate(v[j]);
	return a;
}

/* A matrix with these singular values. */
template <typename T>
static std::vector<T> with_values(const std::vector<real<T>> &values, int rows, int columns)
{
	std::vector<T> left = reflection<T>(rows), right = reflection<T>(columns);

	return times(times(left, diagonal<T>(values, rows, columns), rows, rows, columns), right,
		     rows, columns, columns);
}

/* A symmetric or Hermitian matrix with these eigenvalues. */
template <typename T> static std::vector<T> with_spectrum(const std::vector<real<T>> &values)
{
	int n = (int)values.size();
	std::vector<T> a = reflection<T>(n);

	return times(times(a, diagonal<T>(values, n, n), n, n, n), a, n, n, n);
}

template <typename T>
static void near(const char *what, const std::vector<T> &got, const std::vector<T> &want,
		 double tolerance = precision<T>())
{
	REQUIRE(got.size() == want.size(), "%s: %zu elements, not %zu", what, got.size(),
		want.size());
	for (size_t i = 0; i < want.size(); i++)
		REQUIRE(std::abs(got[i] - want[i]) <= tolerance * (1 + std::abs(want[i])),
			"%s: element %zu is off by %g", what, i, std::abs(got[i] - want[i]));
}

/* The columns are of length 1 and at right angles. */
template <typename T>
static void check_columns(const char *what, const std::vector<T> &a, int rows, int columns)
{
	near(what, times(adjoint(a, rows, columns), a, columns, rows, columns),
	     identity<T>(columns));
}

/* A times a vector is its eigenvalue times the vector. */
template <typename T>
static void check_vectors(const char *what, const std::vector<T> &a, const std::vector<T> &vectors,
			  const std::vector<real<T>> &values)
{
	int n = (int)(vectors.size() / values.size()), count = (int)values.size();

	near(what, times(a, vectors, n, n, count),
	     times(vectors, diagonal<T>(values, count, count), n, count, count));
	check_columns(what, vectors, n, count);
}

#endif
