// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A linear system in double: LU with partial pivoting in one block (a tree over shared memory
 * finds the pivot), then forward and back substitution. The residual must be zero within
 * rounding.
 */
#include <math.h>

#include "check.h"

#define N 48

__global__ void solve(double *a, double *b, int *swaps)
{
	__shared__ double size[64];
	__shared__ int row[64];
	int t = threadIdx.x;

	for (int k = 0; k < N; k++) {
		size[t] = t >= k && t < N ? fabs(a[t * N + k]) : -1;
		row[t] = t;
		for (int half = 32; half; half /= 2) {
			__syncthreads();
			if (t < half && size[t + half] > size[t]) {
				size[t] = size[t + half];
				row[t] = row[t + half];
			}
		}
		__syncthreads();
		if (row[0] != k && t <= N) {
			double *x = t == N ? &b[k] : &a[k * N + t];
			double *y = t == N ? &b[row[0]] : &a[row[0] * N + t], hold = *x;

			*x = *y;
			*y = hold;
			if (t == 0)
				++*swaps;
		}
		__syncthreads();
		if (t > k && t < N) {
			double factor = a[t * N + k] / a[k * N + k];

			a[t * N + k] = factor;
			for (int c = k + 1; c < N; c++)
				a[t * N + c] -= factor * a[k * N + c];
			b[t] -= factor * b[k];
		}
		__syncthreads();
	}
	for (int k = N - 1; k >= 0; k--) {
		if (t == k)
			b[k] /= a[k * N + k];
		__syncthreads();
		if (t < k)
			b[t] -= a[t * N + k] * b[k];
		__syncthreads();
	}
}

int main(void)
{
	static double a[N * N], b[N], x[N];
	double *dev_a, *dev_b, worst = 0;
	int *dev_swaps, swaps;

	for (int i = 0; i < N * N; i++)
		a[i] = (int)(scramble(i, 20) % 2001) / 1000.0 - 1;
	for (int i = 0; i < N; i++) {
		a[i * N + i] *= 1e-3;
		b[i] = i - N / 2;
	}
	CHECK(cudaMalloc(&dev_a, sizeof(a)));
	CHECK(cudaMalloc(&dev_b, sizeof(b)));
	CHECK(cudaMalloc(&dev_swaps, sizeof(int)));
	CHECK(cudaMemset(dev_swaps, 0, sizeof(int)));
	CHECK(cudaMemcpy(dev_a, a, sizeof(a), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_b, b, sizeof(b), cudaMemcpyHostToDevice));
	solve<<<1, 64>>>(dev_a, dev_b, dev_swaps);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(x, dev_b, sizeof(x), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(&swaps, dev_swaps, sizeof(int), cudaMemcpyDeviceToHost));
	for (int i = 0; i < N; i++) {
		double left = -b[i];

		for (int k = 0; k < N; k++)
			left += a[i * N + k] * x[k];
		worst = fmax(worst, fabs(left));
		REQUIRE(fabs(left) < 1e-10, "row %d is left with %g", i, left);
	}
	REQUIRE(swaps > N / 2, "only %d rows were swapped", swaps);
	CHECK(cudaFree(dev_a));
	CHECK(cudaFree(dev_b));
	CHECK(cudaFree(dev_swaps));
	return verified("%d equations, residual %.1e", N, worst);
}
