/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the programs that use cuSPARSE need: small sparse matrices on both sides. */
#ifndef SPARSE_H
#define SPARSE_H

/* Programs may use what NVIDIA advises against. */
#define DISABLE_CUSPARSE_DEPRECATED
#include <cuda_fp16.h>
#include <cusparse.h>

#include "../libs.h"

static cusparseHandle_t handle;
static const cusparseOperation_t plain = CUSPARSE_OPERATION_NON_TRANSPOSE,
				 flipped = CUSPARSE_OPERATION_TRANSPOSE,
				 conjugated = CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE;

/* What cuSPARSE calls a type of C++. */
template <typename T> struct number;
template <> struct number<float> {
	static const cudaDataType type = CUDA_R_32F;
};
template <> struct number<double> {
	static const cudaDataType type = CUDA_R_64F;
};
template <> struct number<std::complex<float>> {
	static const cudaDataType type = CUDA_C_32F;
};
template <> struct number<std::complex<double>> {
	static const cudaDataType type = CUDA_C_64F;
};
template <> struct number<__half> {
	static const cudaDataType type = CUDA_R_16F;
};
template <> struct number<int8_t> {
	static const cudaDataType type = CUDA_R_8I;
};
template <> struct number<int> {
	static const cudaDataType type = CUDA_R_32I;
	static const cusparseIndexType_t index = CUSPARSE_INDEX_32I;
};
template <> struct number<int64_t> {
	static const cusparseIndexType_t index = CUSPARSE_INDEX_64I;
};

template <typename T> static bool is_complex(void)
{
	return number<T>::type == CUDA_C_32F || number<T>::type == CUDA_C_64F;
}

/* Complex numbers as cuSPARSE's older functions take them. */
static inline cuComplex *pairs(const std::complex<float> *p)
{
	return (cuComplex *)p;
}
static inline cuDoubleComplex *pairs(const std::complex<double> *p)
{
	return (cuDoubleComplex *)p;
}

/* An array in the GPU's memory, which ends with its block. */
template <typename T> struct array {
	size_t size;
	T *gpu;

	explicit array(const std::vector<T> &host) : size(host.size()), gpu(up(host))
	{
	}
	explicit array(size_t n) : array(std::vector<T>(n))
	{
	}
	array(const array &) = delete;
	~array()
	{
		CHECK(cudaFree(gpu));
	}
	operator T *() const
	{
		return gpu;
	}
	std::vector<T> host(void) const
	{
		return down(gpu, size);
	}
	void set(const std::vector<T> &host)
	{
		CHECK(cudaMemcpy(gpu, host.data(), size * sizeof(T), cudaMemcpyHostToDevice));
	}
};

/* The first call, which makes the handle. */
static inline void begin(void)
{
	first("cuSPARSE", cusparseCreate(&handle), CUSPARSE_STATUS_NOT_INITIALIZED);
}

/*
 * A matrix, row by row, with zeros, and the same as CSR and COO. The numbers are multiples of 1/64,
 * so what is computed from them is exact, in any order.
 */
template <typename T> struct sparse {
	int rows, cols, nnz;
	std::vector<T> dense, values;
	std::vector<int> offsets, row, column;
	T *gpu_values;
	int *gpu_offsets, *gpu_row, *gpu_column;

	sparse(int r, int c, std::vector<T> d) : rows(r), cols(c), nnz(0), dense(d), offsets(1)
	{
		for (int i = 0; i < rows; i++) {
			for (int j = 0; j < cols; j++)
				if (dense[i * cols + j] != T(0)) {
					values.push_back(dense[i * cols + j]);
					row.push_back(i);
					column.push_back(j);
				}
			offsets.push_back((int)values.size());
		}
		nnz = (int)values.size();
		gpu_values = up(values);
		gpu_offsets = up(offsets);
		gpu_row = up(row);
		gpu_column = up(column);
	}
	sparse(const sparse &) = delete;
	~sparse()
	{
		for (void *p :
		     {(void *)gpu_values, (void *)gpu_offsets, (void *)gpu_row, (void *)gpu_column})
			CHECK(cudaFree(p));
	}
	cusparseSpMatDescr_t csr(cudaDataType type) const
	{
		cusparseSpMatDescr_t mat;

		OK(cusparseCreateCsr(&mat, rows, cols, nnz, gpu_offsets, gpu_column, gpu_values,
				     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
				     CUSPARSE_INDEX_BASE_ZERO, type));
		return mat;
	}
};

/*
 * A matrix of cuSPARSE that has the elements of `a` with other indices. As CSC it is the transpose
 * of `a`, whose arrays then say the same by columns.
 */
template <typename T, typename I = int> struct matrix {
	array<I> ends, at; /* offsets, or rows in COO; columns, or rows in CSC */
	array<T> values;
	cusparseSpMatDescr_t descr;

	static std::vector<I> based(const std::vector<int> &from, cusparseIndexBase_t base)
	{
		std::vector<I> to(from.begin(), from.end());

		for (I &v : to)
			v += base;
		return to;
	}
	matrix(const sparse<T> &a, cusparseFormat_t format = CUSPARSE_FORMAT_CSR,
	       cusparseIndexBase_t base = CUSPARSE_INDEX_BASE_ZERO)
	    : ends(based(format == CUSPARSE_FORMAT_COO ? a.row : a.offsets, base)),
	      at(based(a.column, base)), values(a.values)
	{
		cusparseIndexType_t index = number<I>::index;
		cudaDataType type = number<T>::type;

		if (format == CUSPARSE_FORMAT_COO)
			OK(cusparseCreateCoo(&descr, a.rows, a.cols, a.nnz, ends.gpu, at.gpu,
					     values.gpu, index, base, type));
		else if (format == CUSPARSE_FORMAT_CSC)
			OK(cusparseCreateCsc(&descr, a.cols, a.rows, a.nnz, ends.gpu, at.gpu,
					     values.gpu, index, index, base, type));
		else
			OK(cusparseCreateCsr(&descr, a.rows, a.cols, a.nnz, ends.gpu, at.gpu,
					     values.gpu, index, index, base, type));
	}
	~matrix()
	{
		OK(cusparseDestroySpMat(descr));
	}
	operator cusparseSpMatDescr_t() const
	{
		return descr;
	}
	void triangle(cusparseFillMode_t fill, cusparseDiagType_t diagonal)
	{
		OK(cusparseSpMatSetAttribute(descr, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof(fill)));
		OK(cusparseSpMatSetAttribute(descr, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal,
					     sizeof(diagonal)));
	}
};

template <typename T> struct dense_vector {
	array<T> data;
	cusparseDnVecDescr_t descr;

	explicit dense_vector(const std::vector<T> &host) : data(host)
	{
		OK(cusparseCreateDnVec(&descr, (int64_t)host.size(), data.gpu, number<T>::type));
	}
	~dense_vector()
	{
		OK(cusparseDestroyDnVec(descr));
	}
	operator cusparseDnVecDescr_t() const
	{
		return descr;
	}
	std::vector<T> host(void) const
	{
		return data.host();
	}
};

/*
 * One or several dense matrices, which the program gives and takes row by row. On the GPU they lie
 * in any order, with `pad` unused elements after each row or column.
 */
template <typename T> struct dense_matrix {
	int rows, cols, count, lead;
	bool by_rows;
	std::vector<T> start;
	array<T> data;
	cusparseDnMatDescr_t descr;

	dense_matrix(int r, int c, const std::vector<T> &m,
		     cusparseOrder_t order = CUSPARSE_ORDER_ROW, int pad = 0)
	    : rows(r), cols(c), count((int)m.size() / (r * c)),
	      lead((order == CUSPARSE_ORDER_ROW ? c : r) + pad),
	      by_rows(order == CUSPARSE_ORDER_ROW), start(stride() * count), data(placed(m))
	{
		OK(cusparseCreateDnMat(&descr, rows, cols, lead, data.gpu, number<T>::type, order));
		if (count > 1)
			OK(cusparseDnMatSetStridedBatch(descr, count, (int64_t)stride()));
	}
	~dense_matrix()
	{
		OK(cusparseDestroyDnMat(descr));
	}
	operator cusparseDnMatDescr_t() const
	{
		return descr;
	}
	size_t stride(void) const
	{
		return (size_t)lead * (by_rows ? rows : cols);
	}
	size_t place(int k, int i, int j) const
	{
		return k * stride() + (by_rows ? i * lead + j : j * lead + i);
	}
	const std::vector<T> &placed(const std::vector<T> &m)
	{
		for (int k = 0; k < count; k++)
			for (int i = 0; i < rows; i++)
				for (int j = 0; j < cols; j++)
					start[place(k, i, j)] = m[(k * rows + i) * cols + j];
		return start;
	}
	std::vector<T> host(void) const
	{
		std::vector<T> all = data.host(), m;

		for (int k = 0; k < count; k++)
			for (int i = 0; i < rows; i++)
				for (int j = 0; j < cols; j++)
					m.push_back(all[place(k, i, j)]);
		return m;
	}
};

/*
 * A matrix in blocks of `tall` by `wide` elements, in the CPU's memory. In a block, the elements
 * follow each other along rows or columns.
 */
template <typename T> struct blocks {
	int rows, cols, tall, wide;
	cusparseDirection_t way;
	int base;
	std::vector<int> offsets, columns;
	std::vector<T> values;

	blocks(int r, int c, int t, int w, cusparseDirection_t d, int b)
	    : rows(r), cols(c), tall(t), wide(w), way(d), base(b)
	{
	}
	size_t place(size_t block, int i, int j) const
	{
		return block * tall * wide +
		       (way == CUSPARSE_DIRECTION_ROW ? i * wide + j : j * tall + i);
	}
	int count(void) const
	{
		return (int)columns.size();
	}
	/* All blocks that are not zero. */
	void cut(const std::vector<T> &dense)
	{
		offsets = {base};
		for (int r = 0; r < rows; r += tall) {
			for (int c = 0; c < cols; c += wide) {
				std::vector<T> block(tall * wide);
				bool empty = true;

				for (int i = 0; i < tall; i++)
					for (int j = 0; j < wide; j++) {
						T v = dense[(r + i) * cols + c + j];

						block[place(0, i, j)] = v;
						empty = empty && v == T(0);
					}
				if (empty)
					continue;
				columns.push_back(c / wide + base);
				values.insert(values.end(), block.begin(), block.end());
			}
			offsets.push_back(count() + base);
		}
	}
	std::vector<T> joined(void) const
	{
		std::vector<T> dense(rows * cols);

		for (int r = 0; r < rows / tall; r++)
			for (int b = offsets[r] - base; b < offsets[r + 1] - base; b++)
				for (int i = 0; i < tall; i++)
					for (int j = 0; j < wide; j++)
						dense[(r * tall + i) * cols +
						      (columns[b] - base) * wide + j] =
							values[place(b, i, j)];
		return dense;
	}
};

/* The same with square blocks on the GPU. */
template <typename T> struct block_matrix : blocks<T> {
	array<int> at_offsets, at_columns;
	array<T> at_values;

	static blocks<T> made(int rows, int cols, const std::vector<T> &dense, int size,
			      cusparseDirection_t way, int base)
	{
		blocks<T> b(rows, cols, size, size, way, base);

		b.cut(dense);
		return b;
	}
	explicit block_matrix(const blocks<T> &b)
	    : blocks<T>(b), at_offsets(b.offsets), at_columns(b.columns), at_values(b.values)
	{
	}
	block_matrix(int rows, int cols, const std::vector<T> &dense, int size,
		     cusparseDirection_t way, int base = 0)
	    : block_matrix(made(rows, cols, dense, size, way, base))
	{
	}
	/* What is on the GPU now. */
	std::vector<T> host(void)
	{
		this->values = at_values.host();
		return this->joined();
	}
};

/* A description of triangles for the older functions. */
static inline cusparseMatDescr_t described(cusparseFillMode_t fill, cusparseDiagType_t diagonal)
{
	cusparseMatDescr_t descr;

	OK(cusparseCreateMatDescr(&descr));
	OK(cusparseSetMatFillMode(descr, fill));
	OK(cusparseSetMatDiagType(descr, diagonal));
	REQUIRE(cusparseGetMatFillMode(descr) == fill && cusparseGetMatDiagType(descr) == diagonal,
		"what has been set is not there");
	return descr;
}

template <typename T> static T small_value(void)
{
	return T(small_number());
}
template <> std::complex<float> small_value(void)
{
	float re = (float)small_number();

	return std::complex<float>(re, (float)small_number());
}
template <> std::complex<double> small_value(void)
{
	double re = small_number();

	return std::complex<double>(re, small_number());
}

/* About every third element is not zero; on the diagonal all are. */
template <typename T> static std::vector<T> scattered(int rows, int cols)
{
	std::vector<T> m(rows * cols);

	for (int i = 0; i < rows * cols; i++) {
		T v = small_value<T>();

		m[i] = i % cols == i / cols ? v == T(0) ? T(1) : v : i % 3 ? T(0) : v;
	}
	return m;
}

template <typename T> static std::vector<T> full(int n)
{
	std::vector<T> m(n);

	for (T &v : m)
		v = small_value<T>();
	return m;
}

/* Whole numbers from -6 to 6: sums of some products of them fit into any type. */
template <typename T> static std::vector<T> whole(int n)
{
	std::vector<T> m(n);

	for (T &v : m)
		v = T((float)(int)(small_number() * 4));
	return m;
}

/* What an operation makes of a matrix. */
template <typename T> static T conjugate(T v)
{
	return v;
}
template <typename T> static std::complex<T> conjugate(std::complex<T> v)
{
	return std::conj(v);
}

template <typename T>
static std::vector<T> applied(cusparseOperation_t op, const std::vector<T> &m, int rows, int cols)
{
	std::vector<T> to = m;

	for (int i = 0; i < rows && op != plain; i++)
		for (int j = 0; j < cols; j++) {
			T v = m[i * cols + j];

			to[j * rows + i] = op == flipped ? v : conjugate(v);
		}
	return to;
}

/* The matrix with zeros that CSR holds. */
template <typename T, typename I>
static std::vector<T> opened(int rows, int cols, const std::vector<I> &offsets,
			     const std::vector<I> &columns, const std::vector<T> &values,
			     int base = 0)
{
	std::vector<T> m(rows * cols);

	for (int i = 0; i < rows; i++)
		for (I j = offsets[i] - base; j < offsets[i + 1] - base; j++)
			m[i * cols + columns[j] - base] = values[j];
	return m;
}

/* a: rows times inner; b: inner times cols; all row by row. */
template <typename T>
static std::vector<T> times(const std::vector<T> &a, const std::vector<T> &b, int rows, int inner,
			    int cols)
{
	std::vector<T> c(rows * cols);

	for (int i = 0; i < rows; i++)
		for (int k = 0; k < inner; k++)
			for (int j = 0; j < cols; j++)
				c[i * cols + j] += a[i * inner + k] * b[k * cols + j];
	return c;
}

/* alpha a + beta b, element by element. */
template <typename T>
static std::vector<T> combined(T alpha, const std::vector<T> &a, T beta, const std::vector<T> &b)
{
	std::vector<T> c;

	for (size_t i = 0; i < a.size(); i++)
		c.push_back(alpha * a[i] + beta * b[i]);
	return c;
}

template <typename T>
static void must_be(const char *what, const std::vector<T> &got, const std::vector<T> &want)
{
	REQUIRE(got.size() == want.size(), "%s: %zu elements, not %zu", what, got.size(),
		want.size());
	for (size_t i = 0; i < want.size(); i++)
		REQUIRE(got[i] == want[i], "%s: element %zu is wrong", what, i);
}

template <typename T>
static void must_be_near(const char *what, const std::vector<T> &got, const std::vector<T> &want,
			 double off = 1e-9)
{
	REQUIRE(got.size() == want.size(), "%s: %zu elements, not %zu", what, got.size(),
		want.size());
	for (size_t i = 0; i < want.size(); i++)
		REQUIRE(std::abs(got[i] - want[i]) < off, "%s: element %zu is off", what, i);
}

template <typename T>
static void same(const char *what, const std::vector<T> &got, const std::vector<T> &want)
{
	must_be(what, got, want);
	printf("%s: right\n", what);
}

template <typename T>
static void near(const char *what, const std::vector<T> &got, const std::vector<T> &want)
{
	must_be_near(what, got, want);
	printf("%s: right\n", what);
}

/* GPU memory for a function that has said how much it needs. */
static inline void *room(size_t bytes)
{
	void *p;

	CHECK(cudaMalloc(&p, bytes + 1));
	return p;
}

/* y = alpha op(a) x + beta y. */
template <typename T>
static void multiply(cusparseOperation_t op, T alpha, cusparseConstSpMatDescr_t a,
		     cusparseConstDnVecDescr_t x, T beta, cusparseDnVecDescr_t y,
		     cusparseSpMVAlg_t alg = CUSPARSE_SPMV_ALG_DEFAULT)
{
	const cudaDataType type = number<T>::type;
	size_t size = 0;

	OK(cusparseSpMV_bufferSize(handle, op, &alpha, a, x, &beta, y, type, alg, &size));
	array<char> buffer(size + 1);

	OK(cusparseSpMV(handle, op, &alpha, a, x, &beta, y, type, alg, buffer));
}

/* c = alpha op(a) op(b) + beta c. */
template <typename T>
static void multiply(cusparseOperation_t op_a, cusparseOperation_t op_b, T alpha,
		     cusparseConstSpMatDescr_t a, cusparseConstDnMatDescr_t b, T beta,
		     cusparseDnMatDescr_t c, cusparseSpMMAlg_t alg = CUSPARSE_SPMM_ALG_DEFAULT)
{
	const cudaDataType type = number<T>::type;
	size_t size = 0;

	OK(cusparseSpMM_bufferSize(handle, op_a, op_b, &alpha, a, b, &beta, c, type, alg, &size));
	array<char> buffer(size + 1);

	OK(cusparseSpMM(handle, op_a, op_b, &alpha, a, b, &beta, c, type, alg, buffer));
}

#endif
