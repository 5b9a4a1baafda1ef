// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The triangles of a graph, counted with the square of its matrix, which four algorithms compute; and the ways of two
 * steps in a graph whose edges have weights, for one set of weights after the other.
 */
#include "sparse.h"

#define NODES 90

/* What all functions take, and those that only ask where elements are. */
#define PRODUCT handle, plain, plain, &one, m, m, &none, c.descr, CUDA_R_32F, alg, descr
#define PLACES	handle, plain, plain, m, m, c.descr, alg, descr

/* An edge joins two nodes if a number that looks random says so. */
static std::vector<float> graph(void)
{
	std::vector<float> m(NODES * NODES);

	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < i; j++)
			m[i * NODES + j] = m[j * NODES + i] = scramble((uint32_t)(i * NODES + j), 3) % 9 == 0;
	return m;
}

/* An empty matrix, whose elements the library will find. */
struct unknown {
	array<int> offsets;
	cusparseSpMatDescr_t descr;

	unknown(void) : offsets(NODES + 1)
	{
		OK(cusparseCreateCsr(&descr, NODES, NODES, 0, offsets.gpu, NULL, NULL, CUSPARSE_INDEX_32I,
				     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F));
	}
	~unknown()
	{
		OK(cusparseDestroySpMat(descr));
	}
	int64_t count(void) const
	{
		int64_t rows, cols, nnz;

		OK(cusparseSpMatGetSize(descr, &rows, &cols, &nnz));
		REQUIRE(rows == NODES && cols == NODES, "%lld by %lld", (long long)rows, (long long)cols);
		return nnz;
	}
};

static void wrong(const sparse<float> &a)
{
	matrix<float> m(a);
	unknown c;
	const float one = 1, none = 0;
	cusparseSpGEMMDescr_t descr;
	int64_t products;
	size_t size = 0;

	OK(cusparseSpGEMM_createDescr(&descr));
	FAILS(cusparseSpGEMM_workEstimation(NULL, plain, plain, &one, m, m, &none, c.descr, CUDA_R_32F,
					    CUSPARSE_SPGEMM_DEFAULT, descr, &size, NULL));
	FAILS(cusparseSpGEMM_workEstimation(handle, plain, plain, &one, m, NULL, &none, c.descr, CUDA_R_32F,
					    CUSPARSE_SPGEMM_DEFAULT, descr, &size, NULL));
	/* No matrix is turned here. */
	FAILS(cusparseSpGEMM_workEstimation(handle, flipped, plain, &one, m, m, &none, c.descr, CUDA_R_32F,
					    CUSPARSE_SPGEMM_DEFAULT, descr, &size, NULL));
	FAILS(cusparseSpGEMM_getNumProducts(NULL, &products));
	OK(cusparseSpGEMM_destroyDescr(descr));
}

/* The square of the matrix. `estimated`: the algorithm works in parts, and says before how much memory it needs. */
static std::vector<float> square(const sparse<float> &a, cusparseSpGEMMAlg_t alg, bool estimated)
{
	matrix<float> m(a);
	unknown c;
	const float one = 1, none = 0;
	size_t size1 = 0, size2 = 0, size3 = 0;
	int64_t products = 0, want = 0, different = 0;
	cusparseSpGEMMDescr_t descr;

	for (int k : a.column)
		want += a.offsets[k + 1] - a.offsets[k];
	for (float v : times(a.dense, a.dense, NODES, NODES, NODES))
		different += v != 0;
	OK(cusparseSpGEMM_createDescr(&descr));
	OK(cusparseSpGEMM_workEstimation(PRODUCT, &size1, NULL));
	array<char> work1(size1 + 1);

	OK(cusparseSpGEMM_workEstimation(PRODUCT, &size1, work1));
	if (estimated) {
		OK(cusparseSpGEMM_getNumProducts(descr, &products));
		REQUIRE(products == want, "%lld products, not %lld", (long long)products, (long long)want);
		OK(cusparseSpGEMM_estimateMemory(PRODUCT, 0.25f, &size3, NULL, NULL));
		array<char> work3(size3 + 1);

		OK(cusparseSpGEMM_estimateMemory(PRODUCT, 0.25f, &size3, work3, &size2));
	} else {
		OK(cusparseSpGEMM_compute(PRODUCT, &size2, NULL));
	}
	array<char> work2(size2 + 1);

	OK(cusparseSpGEMM_compute(PRODUCT, &size2, work2));
	REQUIRE(c.count() == different, "%lld elements, not %lld", (long long)c.count(), (long long)different);
	array<int> columns(different);
	array<float> values(different);

	OK(cusparseCsrSetPointers(c.descr, c.offsets.gpu, columns.gpu, values.gpu));
	OK(cusparseSpGEMM_copy(PRODUCT));
	OK(cusparseSpGEMM_destroyDescr(descr));
	return opened(NODES, NODES, c.offsets.host(), columns.host(), values.host());
}

/* Where the elements are is found out once; then the values change. */
static void weights(const sparse<float> &a)
{
	matrix<float> m(a);
	unknown c;
	const cusparseSpGEMMAlg_t alg = CUSPARSE_SPGEMM_DEFAULT;
	const float alpha = 2, none = 0;
	size_t size1 = 0, size2 = 0, size3 = 0, size4 = 0, size5 = 0;
	cusparseSpGEMMDescr_t descr;

	OK(cusparseSpGEMM_createDescr(&descr));
	OK(cusparseSpGEMMreuse_workEstimation(PLACES, &size1, NULL));
	array<char> work1(size1 + 1);

	OK(cusparseSpGEMMreuse_workEstimation(PLACES, &size1, work1));
	OK(cusparseSpGEMMreuse_nnz(PLACES, &size2, NULL, &size3, NULL, &size4, NULL));
	array<char> work2(size2 + 1), work3(size3 + 1), work4(size4 + 1);

	OK(cusparseSpGEMMreuse_nnz(PLACES, &size2, work2, &size3, work3, &size4, work4));
	array<int> columns(c.count());
	array<float> values(c.count());

	OK(cusparseCsrSetPointers(c.descr, c.offsets.gpu, columns.gpu, values.gpu));
	OK(cusparseSpGEMMreuse_copy(PLACES, &size5, NULL));
	array<char> work5(size5 + 1);

	OK(cusparseSpGEMMreuse_copy(PLACES, &size5, work5));
	for (int day = 0; day < 3; day++) {
		std::vector<float> w = full<float>(a.nnz), dense = opened(NODES, NODES, a.offsets, a.column, w),
				   ways = times(dense, dense, NODES, NODES, NODES);

		m.values.set(w);
		OK(cusparseSpGEMMreuse_compute(handle, plain, plain, &alpha, m, m, &none, c.descr, CUDA_R_32F, alg,
					       descr));
		same("ways of two steps", opened(NODES, NODES, c.offsets.host(), columns.host(), values.host()),
		     combined(2.0f, ways, 0.0f, ways));
	}
	OK(cusparseSpGEMM_destroyDescr(descr));
}

int main(void)
{
	const cusparseSpGEMMAlg_t algs[] = {CUSPARSE_SPGEMM_DEFAULT, CUSPARSE_SPGEMM_ALG1, CUSPARSE_SPGEMM_ALG2,
					    CUSPARSE_SPGEMM_ALG3};
	int triangles = 0;

	begin();
	sparse<float> a(NODES, NODES, graph());

	wrong(a);
	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < i; j++)
			for (int k = 0; k < j; k++)
				triangles += a.dense[i * NODES + j] != 0 && a.dense[j * NODES + k] != 0 &&
					     a.dense[k * NODES + i] != 0;
	for (cusparseSpGEMMAlg_t alg : algs) {
		std::vector<float> s = square(a, alg, alg == CUSPARSE_SPGEMM_ALG2 || alg == CUSPARSE_SPGEMM_ALG3);
		double found = 0;

		must_be("a square", s, times(a.dense, a.dense, NODES, NODES, NODES));
		/* Each triangle is a way back in three steps, from three nodes in two directions. */
		for (int i = 0; i < NODES * NODES; i++)
			found += s[i] * a.dense[i];
		REQUIRE(found == 6.0 * triangles, "%g ways back, %d triangles", found, triangles);
		printf("algorithm %d: %d triangles\n", (int)alg, (int)found / 6);
	}
	weights(a);
	OK(cusparseDestroy(handle));
	return 0;
}
