// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How a program chooses an algorithm of cuBLASLt: it asks for several, with and without a workspace, has
 * each one checked and tries it; all give the same product. The same question has the same answer, also
 * after hundreds of other questions, and in each of several threads. Wrong questions come first.
 */
#include <thread>

#include "blaslt.h"

#define ASKED	  6
#define QUESTIONS 400
#define THREADS	  3

static const size_t most = 4 << 20;
static cublasLtHandle_t handle;
static void *workspace;

typedef std::vector<cublasLtMatmulHeuristicResult_t> answer;

/* The algorithms for a product of float matrices of these sizes. The first ones are the best. */
static answer ask(cublasLtMatmulDesc_t desc, const layout &a, const layout &b, const layout &c, size_t allowed,
		  int asked)
{
	cublasLtMatmulPreferenceOpaque_t preference;
	answer results(asked);
	int count = -1;

	BLAS(cublasLtMatmulPreferenceInit(&preference));
	BLAS(cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &allowed,
						  sizeof(allowed)));
	BLAS(cublasLtMatmulAlgoGetHeuristic(handle, desc, a.l, b.l, c.l, c.l, &preference, asked, results.data(),
					    &count));
	REQUIRE(count > 0 && count <= asked, "%d of %d algorithms", count, asked);
	results.resize(count);
	REQUIRE(results[0].state == CUBLAS_STATUS_SUCCESS, "the best one has the state %d", (int)results[0].state);
	for (const cublasLtMatmulHeuristicResult_t &r : results)
		REQUIRE(r.state != CUBLAS_STATUS_SUCCESS || r.workspaceSize <= allowed, "%zu bytes, not %zu",
			r.workspaceSize, allowed);
	return results;
}

static void same_answer(const answer &a, const answer &b, const char *when)
{
	REQUIRE(a.size() == b.size(), "%s: %zu algorithms, not %zu", when, b.size(), a.size());
	for (size_t i = 0; i < a.size(); i++)
		REQUIRE(a[i].state == b[i].state && !memcmp(&a[i].algo, &b[i].algo, sizeof(a[i].algo)),
			"%s: algorithm %zu is another", when, i);
}

static void wrong_questions(cublasLtMatmulDesc_t desc)
{
	layout l(CUDA_R_32F, 8, 8, 8), other(CUDA_R_32F, 8, 5, 8), another(CUDA_R_64F, 8, 8, 8);
	cublasLtMatmulHeuristicResult_t result;
	cublasLtMatmulPreferenceOpaque_t preference;
	int count;

	BLAS(cublasLtMatmulPreferenceInit(&preference));
	BLAS_IS(cublasLtMatmulAlgoGetHeuristic(NULL, desc, l.l, l.l, l.l, l.l, &preference, 1, &result, &count),
		CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS_IS(cublasLtMatmulAlgoGetHeuristic(handle, desc, l.l, l.l, l.l, l.l, &preference, 0, &result, &count),
		CUBLAS_STATUS_INVALID_VALUE);
	/* Shapes that do not fit, and a type that is not the others'. */
	BLAS_FAILS(cublasLtMatmulAlgoGetHeuristic(handle, desc, l.l, l.l, other.l, other.l, &preference, 1, &result,
						  &count));
	BLAS_FAILS(cublasLtMatmulAlgoGetHeuristic(handle, desc, l.l, another.l, l.l, l.l, &preference, 1, &result,
						  &count));
}

/* Each algorithm that the library names computes the product. */
static void try_all(cublasLtMatmulDesc_t desc, int m, int n, int k, size_t allowed)
{
	const float alpha = 0.5f, beta = -2;
	array<float> a(m * k), b(k * n), c(m * n), d(m * n);
	layout la(CUDA_R_32F, m, k, m), lb(CUDA_R_32F, k, n, k), lc(CUDA_R_32F, m, n, m);
	answer algorithms = ask(desc, la, lb, lc, allowed, ASKED);
	const std::vector<float> old = d.host;

	same_answer(algorithms, ask(desc, la, lb, lc, allowed, ASKED), "at once");
	d.host = c.host;
	reference<float>(CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, alpha, a.host.data(), m, b.host.data(), k, beta,
			 d.host.data(), m);
	const std::vector<float> want = d.host;
	for (const cublasLtMatmulHeuristicResult_t &r : algorithms) {
		cublasLtMatmulHeuristicResult_t checked;

		if (r.state != CUBLAS_STATUS_SUCCESS)
			continue;
		BLAS(cublasLtMatmulAlgoCheck(handle, desc, la.l, lb.l, lc.l, lc.l, &r.algo, &checked));
		REQUIRE(checked.workspaceSize <= allowed, "the check says %zu bytes", checked.workspaceSize);
		d.host = old;
		d.up();
		BLAS(cublasLtMatmul(handle, desc, &alpha, a.gpu, la.l, b.gpu, lb.l, &beta, c.gpu, lc.l, d.gpu, lc.l,
				    &r.algo, r.workspaceSize ? workspace : NULL, r.workspaceSize, 0));
		d.host = want;
		d.check("a product by one of the algorithms");
	}
	c.check("what was added");
}

/* Question number i is about sizes of its own. */
static answer question(cublasLtMatmulDesc_t desc, int i)
{
	const int m = 8 + i % 20 * 4, n = 8 + i / 20 * 4, k = 32;
	layout la(CUDA_R_32F, m, k, m), lb(CUDA_R_32F, k, n, k), lc(CUDA_R_32F, m, n, m);

	return ask(desc, la, lb, lc, most, 1);
}

static void ask_all(const std::vector<answer> *known)
{
	cublasLtMatmulDescOpaque_t desc;

	BLAS(cublasLtMatmulDescInit(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	for (int i = 0; i < QUESTIONS; i++)
		same_answer((*known)[i], question(&desc, i), "in a thread");
}

int main(void)
{
	std::vector<std::thread> threads;
	std::vector<answer> known;
	cublasLtMatmulDesc_t desc;

	CHECK(cudaMalloc(&workspace, most));
	BLAS(cublasLtCreate(&handle));
	BLAS(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
	wrong_questions(desc);
	for (size_t allowed : {(size_t)0, most}) {
		try_all(desc, 64, 48, 32, allowed);
		try_all(desc, 17, 5, 301, allowed);
		try_all(desc, 1, 130, 9, allowed);
	}
	for (int i = 0; i < QUESTIONS; i++)
		known.push_back(question(desc, i));
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back(ask_all, &known);
	for (std::thread &t : threads)
		t.join();
	BLAS(cublasLtMatmulDescDestroy(desc));
	BLAS(cublasLtDestroy(handle));
	CHECK(cudaFree(workspace));
	return verified("each algorithm that was offered, and %d questions asked by %d threads", QUESTIONS, THREADS);
}
