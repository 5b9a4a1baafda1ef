// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * European options priced with the Black-Scholes formula in float: logarithms, square roots,
 * exponentials and the normal distribution, compared with double on the CPU. Call and put must
 * also satisfy put-call parity.
 */
#include <math.h>

#include "check.h"

#define RATE	   0.02f
#define VOLATILITY 0.30f

__device__ float normal(float d)
{
	return 0.5f * erfcf(-d * 0.70710678f);
}

__global__ void price(const float *spot, const float *strike, const float *years, float *call,
		      float *put, int n)
{
	for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
		float root = sqrtf(years[i]);
		float d1 = (logf(spot[i] / strike[i]) +
			    (RATE + 0.5f * VOLATILITY * VOLATILITY) * years[i]) /
			   (VOLATILITY * root);
		float d2 = d1 - VOLATILITY * root;
		float later = strike[i] * expf(-RATE * years[i]);

		call[i] = spot[i] * normal(d1) - later * normal(d2);
		put[i] = later * normal(-d2) - spot[i] * normal(-d1);
	}
}

static double between(uint32_t i, uint32_t seed, double low, double high)
{
	return low + (high - low) * (scramble(i, seed) / 4294967296.0);
}

int main(void)
{
	const int n = 4000;
	const size_t bytes = n * sizeof(float);
	float *host = (float *)malloc(5 * bytes), *dev;
	float *spot = host, *strike = host + n, *years = host + 2 * n, *call = host + 3 * n,
	      *put = host + 4 * n;
	double worst = 0;

	REQUIRE(host, "out of memory");
	for (int i = 0; i < n; i++) {
		spot[i] = (float)between(i, 1, 5, 30);
		strike[i] = (float)between(i, 2, 1, 100);
		years[i] = (float)between(i, 3, 0.25, 10);
	}
	CHECK(cudaMalloc(&dev, 5 * bytes));
	CHECK(cudaMemcpy(dev, host, 3 * bytes, cudaMemcpyHostToDevice));
	price<<<10, 128>>>(dev, dev + n, dev + 2 * n, dev + 3 * n, dev + 4 * n, n);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(call, dev + 3 * n, 2 * bytes, cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++) {
		double s = spot[i], k = strike[i], t = years[i], v = VOLATILITY, r = RATE;
		double d1 = (log(s / k) + (r + 0.5 * v * v) * t) / (v * sqrt(t));
		double later = k * exp(-r * t);
		double want = s * 0.5 * erfc(-d1 / M_SQRT2) -
			      later * 0.5 * erfc(-(d1 - v * sqrt(t)) / M_SQRT2);
		double off = fabs(call[i] - want);

		worst = off > worst ? off : worst;
		REQUIRE(off < 1e-4, "option %d: call %.7g, expected %.7g", i, call[i], want);
		REQUIRE(fabs(put[i] - (want - s + later)) < 1e-4, "option %d: put %.7g", i, put[i]);
	}
	CHECK(cudaFree(dev));
	free(host);
	return verified("%d options, off by %.1e at most", n, worst);
}
