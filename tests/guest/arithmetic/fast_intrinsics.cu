// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The approximate functions of the hardware: __sinf, __cosf, __expf, __exp10f, __logf, __log2f,
 * __log10f, __powf, __tanf, __fdividef, __frsqrt_rn and __saturatef. Each must be within its
 * documented error.
 */
#include <math.h>

#include "check.h"

#define N 1000

struct results {
	float sin, cos, tan, exp, exp10, log, log2, log10, pow, quotient, rsqrt, saturated,
		sincos[2];
};

__global__ void compute(const float *angle, const float *positive, results *out)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	float a = angle[i], p = positive[i];
	results r;

	r.sin = __sinf(a);
	r.cos = __cosf(a);
	r.tan = __tanf(a * 0.3f);
	r.exp = __expf(a);
	r.exp10 = __exp10f(a);
	r.log = __logf(p);
	r.log2 = __log2f(p);
	r.log10 = __log10f(p);
	r.pow = __powf(p, a);
	r.quotient = __fdividef(a, p);
	r.rsqrt = __frsqrt_rn(p);
	r.saturated = __saturatef(a);
	__sincosf(a, &r.sincos[0], &r.sincos[1]);
	out[i] = r;
}

static void close_to(float got, double want, double error, const char *what, float a, float p)
{
	REQUIRE(fabs(got - want) <= error, "%s of %.9g, %.9g: %.9g, expected %.9g", what, a, p, got,
		want);
}

int main(void)
{
	static float angle[N], positive[N];
	static results out[N];
	float *dev;
	results *dev_out;

	for (int i = 0; i < N; i++) {
		angle[i] = (float)((scramble(i, 1) / 4294967296.0 * 2 - 1) * M_PI);
		positive[i] = (float)ldexp(1 + scramble(i, 2) / 4294967296.0, (int)(i % 20) - 10);
	}
	CHECK(cudaMalloc(&dev, sizeof(angle) + sizeof(positive)));
	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	CHECK(cudaMemcpy(dev, angle, sizeof(angle), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev + N, positive, sizeof(positive), cudaMemcpyHostToDevice));
	compute<<<N / 100, 100>>>(dev, dev + N, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		const results &r = out[i];
		double a = angle[i], p = positive[i], want;

#define NEAR(got, exact, error) \
	want = (exact);         \
	close_to(got, want, error, #got, angle[i], positive[i])
		NEAR(r.sin, sin(a), 6e-7);
		NEAR(r.cos, cos(a), 6e-7);
		NEAR(r.sincos[0], sin(a), 6e-7);
		NEAR(r.sincos[1], cos(a), 6e-7);
		NEAR(r.tan, tan(0.3f * (float)a), 3e-6 * (1 + fabs(want)));
		NEAR(r.exp, exp(a), 1e-6 * want);
		NEAR(r.exp10, pow(10, a), 3e-6 * want);
		NEAR(r.log, log(p), 4e-7 * fmax(fabs(want), 1));
		NEAR(r.log2, log2(p), 4e-7 * fmax(fabs(want), 1));
		NEAR(r.log10, log10(p), 4e-7 * fmax(fabs(want), 1));
		NEAR(r.pow, pow(p, a), 5e-6 * want);
		NEAR(r.quotient, a / p, 3e-7 * fabs(want));
		NEAR(r.rsqrt, 1 / sqrt(p), 6e-8 * want);
		REQUIRE(r.saturated == fminf(fmaxf(angle[i], 0), 1), "saturated %g: %g", a,
			r.saturated);
	}
	CHECK(cudaFree(dev));
	CHECK(cudaFree(dev_out));
	return verified("13 functions of %d arguments", N);
}
