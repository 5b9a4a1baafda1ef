// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The ranks of pages by the power method, in two streams: of all pages for one reader, and of several readers who begin
 * at different pages. The steps become a graph of CUDA's, which is launched again and again; a scalar in the GPU's
 * memory changes in between, one in the CPU's is that of the capture.
 */
#include "sparse.h"

#define PAGES	 120
#define READERS	 5
#define LAUNCHES 15

/* Element i, j says how often a reader goes from page j to page i. Each page has a link. */
static std::vector<double> links(void)
{
	std::vector<double> m(PAGES * PAGES);

	for (int j = 0; j < PAGES; j++) {
		int count = 1 + (int)(scramble((uint32_t)j, 1) % 7);

		for (int k = 0; k < count; k++)
			m[scramble((uint32_t)(j * 10 + k), 2) % PAGES * PAGES + j] += 1.0 / count;
	}
	return m;
}

/* x = factor * the links * x + what comes to a page by no link. */
struct ranks {
	const cusparseSpMVAlg_t alg = CUSPARSE_SPMV_CSR_ALG2;
	const cusparseSpMMAlg_t alg_many = CUSPARSE_SPMM_CSR_ALG2;
	const double unit = 1;
	double factor_many = 0;
	std::vector<double> links, start, start_many;
	matrix<double> m;
	dense_vector<double> x, y;
	dense_matrix<double> many, next;
	array<double> rest, rest_many, scalars;
	array<char> buffer, buffer_many;

	explicit ranks(const sparse<double> &a)
	    : links(a.dense), start(PAGES, 1.0 / PAGES), start_many(readers()), m(a), x(start), y(start),
	      many(PAGES, READERS, start_many), next(PAGES, READERS, start_many), rest(PAGES),
	      rest_many(PAGES * READERS), scalars(std::vector<double>{0, 1}), buffer(size()), buffer_many(size_many())
	{
	}
	static std::vector<double> readers(void)
	{
		std::vector<double> v(PAGES * READERS);

		for (int r = 0; r < READERS; r++)
			v[r * 7 * READERS + r] = 1;
		return v;
	}
	size_t size(void)
	{
		size_t bytes = 0;

		OK(cusparseSpMV_bufferSize(handle, plain, &unit, m, x, &unit, y, CUDA_R_64F, alg, &bytes));
		return bytes + 1;
	}
	size_t size_many(void)
	{
		size_t bytes = 0;

		OK(cusparseSpMM_bufferSize(handle, plain, plain, &unit, m, many, &unit, next, CUDA_R_64F, alg_many,
					   &bytes));
		return bytes + 1;
	}
	/* Two steps, from x to y and back. Scalars are in the GPU's memory. */
	void two_steps(cudaStream_t s)
	{
		OK(cusparseSetStream(handle, s));
		OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_DEVICE));
		for (const auto &step : {std::make_pair(&x, &y), std::make_pair(&y, &x)}) {
			CHECK(cudaMemcpyAsync(step.second->data, rest, PAGES * sizeof(double), cudaMemcpyDeviceToDevice,
					      s));
			OK(cusparseSpMV(handle, plain, scalars.gpu, m, *step.first, scalars.gpu + 1, *step.second,
					CUDA_R_64F, alg, buffer));
		}
		OK(cusparseSetPointerMode(handle, CUSPARSE_POINTER_MODE_HOST));
	}
	void two_steps_many(cudaStream_t s)
	{
		OK(cusparseSetStream(handle, s));
		for (const auto &step : {std::make_pair(&many, &next), std::make_pair(&next, &many)}) {
			CHECK(cudaMemcpyAsync(step.second->data, rest_many, PAGES * READERS * sizeof(double),
					      cudaMemcpyDeviceToDevice, s));
			OK(cusparseSpMM(handle, plain, plain, &factor_many, m, *step.first, &unit, *step.second,
					CUDA_R_64F, alg_many, buffer_many));
		}
	}
	/* Back to the start. */
	void again(double factor, double f_many)
	{
		factor_many = f_many;
		x.data.set(start);
		many.data.set(start_many);
		rest.set(combined(1 - factor, start, 0.0, start));
		rest_many.set(combined(1 - f_many, start_many, 0.0, start_many));
		scalars.set({factor, 1});
	}
	void check(const char *what, double factor, double f_many, int steps)
	{
		std::vector<double> want = start, want_many = start_many;
		double sum = 0;

		for (int i = 0; i < steps; i++) {
			want = combined(factor, times(links, want, PAGES, PAGES, 1), 1 - factor, start);
			want_many = combined(f_many, times(links, want_many, PAGES, PAGES, READERS), 1 - f_many,
					     start_many);
		}
		must_be_near(what, x.host(), want, 1e-12);
		must_be_near(what, many.host(), want_many, 1e-12);
		for (double v : x.host())
			sum += v;
		REQUIRE(fabs(sum - 1) < 1e-12, "%s: all ranks together are %.15g", what, sum);
		printf("%s: right\n", what);
	}
};

int main(void)
{
	cudaStream_t s, other, got = NULL;
	cudaEvent_t there, back;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	begin();
	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&there, cudaEventDisableTiming));
	CHECK(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
	FAILS(cusparseSetStream(NULL, s));
	{
		sparse<double> a(PAGES, PAGES, links());
		ranks r(a);

		r.again(0.85, 0.5);
		CHECK(cudaDeviceSynchronize());
		for (int i = 0; i < 3; i++) {
			r.two_steps(s);
			r.two_steps_many(other);
		}
		OK(cusparseGetStream(handle, &got));
		REQUIRE(got == other, "the stream is another one");
		CHECK(cudaStreamSynchronize(s));
		CHECK(cudaStreamSynchronize(other));
		r.check("two streams", 0.85, 0.5, 6);

		CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
		CHECK(cudaEventRecord(there, s));
		CHECK(cudaStreamWaitEvent(other, there, 0));
		r.two_steps(s);
		r.two_steps_many(other);
		CHECK(cudaEventRecord(back, other));
		CHECK(cudaStreamWaitEvent(s, back, 0));
		CHECK(cudaStreamEndCapture(s, &graph));
		OK(cusparseSetStream(handle, NULL));
		r.check("nothing has run", 0.85, 0.5, 6);
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
		CHECK(cudaGraphDestroy(graph));
		for (double factor : {0.85, 0.25}) {
			r.again(factor, 0.5);
			r.factor_many = 1000;
			CHECK(cudaDeviceSynchronize());
			for (int i = 0; i < LAUNCHES; i++)
				CHECK(cudaGraphLaunch(exec, s));
			CHECK(cudaStreamSynchronize(s));
			r.check("a graph, launched again and again", factor, 0.5, 2 * LAUNCHES);
		}
		CHECK(cudaGraphExecDestroy(exec));
	}
	OK(cusparseDestroy(handle));
	CHECK(cudaEventDestroy(there));
	CHECK(cudaEventDestroy(back));
	CHECK(cudaStreamDestroy(s));
	CHECK(cudaStreamDestroy(other));
	return 0;
}
