// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A radix-2 Fourier transform in shared memory: bit reversal with __brev, twiddle factors with
 * sincospif. Compared with the definition in double, and transformed back.
 */
#include <math.h>

#include "check.h"

#define LOG 8
#define N   (1 << LOG)

/* One signal per block, N / 2 threads. */
__global__ void fft(const float2 *in, float2 *out, float sign)
{
	__shared__ float2 x[N];
	int t = threadIdx.x, base = blockIdx.x * N;

	for (int i = t; i < N; i += N / 2)
		x[__brev(i) >> (32 - LOG)] = in[base + i];
	for (int half = 1; half < N; half *= 2) {
		int k = t & (half - 1), at = 2 * (t - k) + k;
		float s, c;
		float2 a, b, r;

		sincospif(sign * k / half, &s, &c);
		__syncthreads();
		a = x[at];
		b = x[at + half];
		r = make_float2(b.x * c - b.y * s, b.x * s + b.y * c);
		x[at] = make_float2(a.x + r.x, a.y + r.y);
		x[at + half] = make_float2(a.x - r.x, a.y - r.y);
	}
	__syncthreads();
	for (int i = t; i < N; i += N / 2)
		out[base + i] = x[i];
}

int main(void)
{
	const int signals = 3, n = signals * N;
	static float2 in[n], freq[n], back[n];
	float2 *dev;
	double worst = 0;

	for (int i = 0; i < n; i++) {
		in[i].x = scramble(i, 21) / 4294967296.0f - 0.5f;
		in[i].y = i < N ? 0 : scramble(i, 22) / 4294967296.0f - 0.5f;
	}
	CHECK(cudaMalloc(&dev, 2 * sizeof(in)));
	CHECK(cudaMemcpy(dev, in, sizeof(in), cudaMemcpyHostToDevice));
	fft<<<signals, N / 2>>>(dev, dev + n, -1);
	fft<<<signals, N / 2>>>(dev + n, dev, 1);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(freq, dev + n, sizeof(freq), cudaMemcpyDeviceToHost));
	CHECK(cudaMemcpy(back, dev, sizeof(back), cudaMemcpyDeviceToHost));
	for (int s = 0; s < signals; s++) {
		for (int k = 0; k < N; k += s ? 17 : 1) {
			double re = 0, im = 0;

			for (int i = 0; i < N; i++) {
				double angle = -2 * M_PI * (i * k % N) / N;
				float2 z = in[s * N + i];

				re += z.x * cos(angle) - z.y * sin(angle);
				im += z.x * sin(angle) + z.y * cos(angle);
			}
			re = hypot(freq[s * N + k].x - re, freq[s * N + k].y - im);
			worst = fmax(worst, re);
			REQUIRE(re < 1e-4, "signal %d, frequency %d is off by %g", s, k, re);
		}
	}
	for (int i = 0; i < n; i++)
		REQUIRE(hypot(back[i].x / N - in[i].x, back[i].y / N - in[i].y) < 1e-5,
			"sample %d did not come back", i);
	CHECK(cudaFree(dev));
	return verified("%d signals of %d points, off by %.1e", signals, N, worst);
}
