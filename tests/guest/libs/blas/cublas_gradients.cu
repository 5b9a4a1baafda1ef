// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Least squares by conjugate gradients, with scalars in the GPU's memory. One step (two products with
 * the matrix, two scalar products, three sums of vectors) is captured once into a graph, in a stream
 * with a workspace of the program's own, and launched again and again, also for another right side and
 * in another stream. The result is put into the normal equations. A workspace for no handle comes first.
 */
#include "blas.h"

#define M     70
#define N     30
#define LD    72
#define STEPS 40

static cublasHandle_t handle;

struct scalars {
	double one, zero, gamma, next, curvature, alpha, minus_alpha, beta;
};

/* What has been solved exactly stays as it is. */
__global__ void step_length(scalars *s)
{
	s->alpha = s->curvature > 0 ? s->gamma / s->curvature : 0;
	s->minus_alpha = -s->alpha;
}

__global__ void direction(scalars *s)
{
	s->beta = s->gamma > 0 ? s->next / s->gamma : 0;
	s->gamma = s->next;
}

struct problem {
	array<double> a, b, x, r, s, p, q;
	scalars *g;
	problem() : a(LD * N), b(M), x(N), r(M), s(N), p(N), q(M)
	{
		const scalars start = {1, 0, 0, 0, 0, 0, 0, 0};

		for (int i = 0; i < N; i++)
			a.host[i + i * LD] += 8;
		a.up();
		CHECK(cudaMalloc(&g, sizeof(*g)));
		CHECK(cudaMemcpy(g, &start, sizeof(start), cudaMemcpyHostToDevice));
	}
	~problem()
	{
		cudaFree(g);
	}
};

static void start(problem &p)
{
	BLAS(cublasDscal(handle, N, &p.g->zero, p.x.gpu, 1));
	BLAS(cublasDcopy(handle, M, p.b.gpu, 1, p.r.gpu, 1));
	BLAS(cublasDgemv(handle, CUBLAS_OP_T, M, N, &p.g->one, p.a.gpu, LD, p.r.gpu, 1, &p.g->zero, p.s.gpu, 1));
	BLAS(cublasDcopy(handle, N, p.s.gpu, 1, p.p.gpu, 1));
	BLAS(cublasDdot(handle, N, p.s.gpu, 1, p.s.gpu, 1, &p.g->gamma));
}

static void step(problem &p, cudaStream_t stream)
{
	BLAS(cublasDgemv(handle, CUBLAS_OP_N, M, N, &p.g->one, p.a.gpu, LD, p.p.gpu, 1, &p.g->zero, p.q.gpu, 1));
	BLAS(cublasDdot(handle, M, p.q.gpu, 1, p.q.gpu, 1, &p.g->curvature));
	step_length<<<1, 1, 0, stream>>>(p.g);
	CHECK_LAUNCH();
	BLAS(cublasDaxpy(handle, N, &p.g->alpha, p.p.gpu, 1, p.x.gpu, 1));
	BLAS(cublasDaxpy(handle, M, &p.g->minus_alpha, p.q.gpu, 1, p.r.gpu, 1));
	BLAS(cublasDgemv(handle, CUBLAS_OP_T, M, N, &p.g->one, p.a.gpu, LD, p.r.gpu, 1, &p.g->zero, p.s.gpu, 1));
	BLAS(cublasDdot(handle, N, p.s.gpu, 1, p.s.gpu, 1, &p.g->next));
	direction<<<1, 1, 0, stream>>>(p.g);
	CHECK_LAUNCH();
	BLAS(cublasDscal(handle, N, &p.g->beta, p.p.gpu, 1));
	BLAS(cublasDaxpy(handle, N, &p.g->one, p.s.gpu, 1, p.p.gpu, 1));
}

/* What the matrix does not explain of the right side is orthogonal to all columns. */
static void check_solution(problem &p)
{
	std::vector<double> x = p.x.down(), rest = p.b.host, r = p.r.down();
	double squares = 0, norm;

	for (int j = 0; j < N; j++)
		for (int i = 0; i < M; i++)
			rest[i] -= p.a.host[i + j * LD] * x[j];
	for (int j = 0; j < N; j++) {
		double sum = 0;

		for (int i = 0; i < M; i++)
			sum += p.a.host[i + j * LD] * rest[i];
		near(sum, 0, 1e-9, "the rest along a column");
	}
	for (int i = 0; i < M; i++) {
		near(r[i], rest[i], 1e-9, "the rest");
		squares += rest[i] * rest[i];
	}
	REQUIRE(squares > 1, "the rest is small: %g", squares);
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
	BLAS(cublasDnrm2(handle, M, p.r.gpu, 1, &norm));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	near(norm, sqrt(squares), 1e-9, "its norm");
}

int main(void)
{
	const size_t size = 4 << 20;
	cudaStream_t stream, other;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	char *workspace;
	problem p;

	BLAS(cublasCreate(&handle));
	CHECK(cudaMalloc(&workspace, size));
	BLAS_IS(cublasSetWorkspace(NULL, workspace, size), CUBLAS_STATUS_NOT_INITIALIZED);
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
	BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
	BLAS(cublasSetStream(handle, stream));
	BLAS(cublasSetWorkspace(handle, workspace, size));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	step(p, stream);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	for (int right_side = 0; right_side < 3; right_side++) {
		cudaStream_t where = right_side == 1 ? other : stream;

		for (double &v : p.b.host)
			v = small_number() * 4;
		p.b.up();
		start(p);
		CHECK(cudaStreamSynchronize(stream));
		for (int i = 0; i < STEPS; i++)
			CHECK(cudaGraphLaunch(exec, where));
		CHECK(cudaStreamSynchronize(where));
		check_solution(p);
	}
	/* The same without a graph, and with the library's own workspace. */
	BLAS(cublasSetStream(handle, other));
	start(p);
	for (int i = 0; i < STEPS; i++)
		step(p, other);
	CHECK(cudaStreamSynchronize(other));
	check_solution(p);
	CHECK(cudaGraphExecDestroy(exec));
	BLAS(cublasDestroy(handle));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaStreamDestroy(other));
	CHECK(cudaFree(workspace));
	return verified("three right sides of %d equations in %d unknowns, by launches of one graph", M, N);
}
