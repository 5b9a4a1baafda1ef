// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A network of two layers learns: forward and backward by matrix products, the bias by a rank-one
 * update, its gradient by a product with a vector of ones, the new weights by a sum. The two layers
 * learn in two streams. The CPU trains the same network in double precision; both must have the same
 * weights at the end, and a smaller loss than in the beginning.
 */
#include "blas.h"

#define INPUT  20
#define HIDDEN 28
#define OUTPUT 8
#define BATCH  36
#define STEPS  25

typedef matrix<double> wide_matrix;

static const float one = 1, zero = 0, rate = 1.0f / 64;
static cublasHandle_t handle;
static float *ones;

/* Smooth, so that a small error in its argument stays small. */
static __host__ __device__ double bend(double x)
{
	return x / (1 + fabs(x));
}

static __host__ __device__ double slope(double x)
{
	return 1 / ((1 + fabs(x)) * (1 + fabs(x)));
}

__global__ void activate(const float *z, float *a)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	a[i] = (float)bend(z[i]);
}

__global__ void back(const float *z, float *gradient)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	gradient[i] *= (float)slope(z[i]);
}

static wide_matrix wide(const std::vector<float> &from, int rows)
{
	wide_matrix m(rows, (int)from.size() / rows);

	m.v.assign(from.begin(), from.end());
	return m;
}

/* z = w * x + bias for each column of x; on the GPU, and the same on the CPU. */
struct layer {
	int out, in;
	array<float> w, bias, dw, dbias;
	wide_matrix cpu_w, cpu_bias;
	layer(int o, int i)
	    : out(o), in(i), w(o * i), bias(o), dw(o * i), dbias(o), cpu_w(wide(w.host, o)),
	      cpu_bias(wide(bias.host, o))
	{
	}
	void forward(const float *x, float *z)
	{
		BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, out, BATCH, in, &one, w.gpu, out, x, in, &zero, z,
				 out));
		BLAS(cublasSger(handle, out, BATCH, &one, bias.gpu, 1, ones, 1, z, out));
	}
	void learn(const float *dz, const float *x)
	{
		const float down = -rate;

		BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_T, out, in, BATCH, &one, dz, out, x, in, &zero, dw.gpu,
				 out));
		BLAS(cublasSgemv(handle, CUBLAS_OP_N, out, BATCH, &one, dz, out, ones, 1, &zero, dbias.gpu, 1));
		BLAS(cublasSaxpy(handle, out * in, &down, dw.gpu, 1, w.gpu, 1));
		BLAS(cublasSaxpy(handle, out, &down, dbias.gpu, 1, bias.gpu, 1));
	}
	wide_matrix forward(const wide_matrix &x)
	{
		wide_matrix z = times(cpu_w, CUBLAS_OP_N, x, CUBLAS_OP_N);

		for (size_t i = 0; i < z.v.size(); i++)
			z.v[i] += cpu_bias.v[i % out];
		return z;
	}
	void learn(const wide_matrix &dz, const wide_matrix &x)
	{
		wide_matrix gradient = times(dz, CUBLAS_OP_N, x, CUBLAS_OP_T);

		for (size_t i = 0; i < cpu_w.v.size(); i++)
			cpu_w.v[i] -= rate * gradient.v[i];
		for (size_t i = 0; i < dz.v.size(); i++)
			cpu_bias.v[i % out] -= rate * dz.v[i];
	}
};

int main(void)
{
	array<float> x(INPUT * BATCH), goal(OUTPUT * BATCH), z1(HIDDEN * BATCH), a1(HIDDEN * BATCH),
		error(OUTPUT * BATCH);
	array<float> d1(HIDDEN * BATCH), all_ones(BATCH);
	const wide_matrix cpu_x = wide(x.host, INPUT);
	const float minus = -1, share = 1.0f / BATCH;
	layer l1(HIDDEN, INPUT), l2(OUTPUT, HIDDEN);
	double loss = 0, first = 0;
	cudaStream_t stream, side;
	cudaEvent_t event;
	float norm;

	BLAS_IS(cublasSscal(NULL, 1, &zero, x.gpu, 1), CUBLAS_STATUS_NOT_INITIALIZED);
	BLAS(cublasCreate(&handle));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamCreate(&side));
	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	all_ones.host.assign(BATCH, 1);
	all_ones.up();
	ones = all_ones.gpu;
	for (int step = 0; step < STEPS; step++) {
		BLAS(cublasSetStream(handle, stream));
		l1.forward(x.gpu, z1.gpu);
		activate<<<HIDDEN, BATCH, 0, stream>>>(z1.gpu, a1.gpu);
		CHECK_LAUNCH();
		l2.forward(a1.gpu, error.gpu);
		BLAS(cublasSaxpy(handle, OUTPUT * BATCH, &minus, goal.gpu, 1, error.gpu, 1));
		BLAS(cublasSnrm2(handle, OUTPUT * BATCH, error.gpu, 1, &norm));
		BLAS(cublasSscal(handle, OUTPUT * BATCH, &share, error.gpu, 1));
		BLAS(cublasSgemm(handle, CUBLAS_OP_T, CUBLAS_OP_N, HIDDEN, BATCH, OUTPUT, &one, l2.w.gpu, OUTPUT,
				 error.gpu, OUTPUT, &zero, d1.gpu, HIDDEN));
		CHECK(cudaEventRecord(event, stream));
		back<<<HIDDEN, BATCH, 0, stream>>>(z1.gpu, d1.gpu);
		CHECK_LAUNCH();
		l1.learn(d1.gpu, x.gpu);
		CHECK(cudaStreamWaitEvent(side, event, 0));
		BLAS(cublasSetStream(handle, side));
		l2.learn(error.gpu, a1.gpu);
		CHECK(cudaEventRecord(event, side));
		CHECK(cudaStreamWaitEvent(stream, event, 0));

		wide_matrix cpu_z = l1.forward(cpu_x), cpu_a = cpu_z;
		for (double &v : cpu_a.v)
			v = bend(v);
		wide_matrix off = l2.forward(cpu_a);
		loss = 0;
		for (size_t i = 0; i < off.v.size(); i++) {
			off.v[i] -= goal.host[i];
			loss += off.v[i] * off.v[i];
			off.v[i] *= share;
		}
		near(norm, sqrt(loss), 1e-4, "the loss");
		first = step ? first : loss;
		wide_matrix back_1 = times(l2.cpu_w, CUBLAS_OP_T, off, CUBLAS_OP_N);
		for (size_t i = 0; i < back_1.v.size(); i++)
			back_1.v[i] *= slope(cpu_z.v[i]);
		l1.learn(back_1, cpu_x);
		l2.learn(off, cpu_a);
	}
	for (layer *l : {&l1, &l2}) {
		same("weights", wide(l->w.down(), l->out), l->cpu_w, 1e-4);
		same("a bias", wide(l->bias.down(), l->out), l->cpu_bias, 1e-4);
	}
	REQUIRE(loss < first / 2, "the loss went from %g to %g", first, loss);
	CHECK(cudaEventDestroy(event));
	BLAS(cublasDestroy(handle));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaStreamDestroy(side));
	return verified("two layers learned in %d steps as they do on the CPU", STEPS);
}
