// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The Mandelbrot set: every thread leaves its loop after a different number of rounds. In fixed
 * point, so that the CPU counts exactly the same iterations, and in double with explicit
 * rounding for the same reason.
 */
#include "check.h"

#define WIDTH  64
#define HEIGHT 40
#define LIMIT  100

/* 28 bits behind the point. */
__host__ __device__ static int fixed_point(int px, int py)
{
	const long long one = 1ll << 28;
	long long cx = one * (px * 3 - WIDTH * 2) / WIDTH, cy = one * (py * 2 - HEIGHT) / HEIGHT;
	long long x = 0, y = 0;
	int n = 0;

	while (n < LIMIT && ((x * x + y * y) >> 28) < 4 * one) {
		long long next = ((x * x - y * y) >> 28) + cx;

		y = ((2 * x * y) >> 28) + cy;
		x = next;
		n++;
	}
	return n;
}

__global__ void fixed_kernel(int *out)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

	if (x < WIDTH && y < HEIGHT)
		out[y * WIDTH + x] = fixed_point(x, y);
}

__global__ void double_kernel(int *out)
{
	int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
	double cx, cy, x = 0, y = 0;
	int n = 0;

	if (px >= WIDTH || py >= HEIGHT)
		return;
	cx = (px * 3 - WIDTH * 2) / (double)WIDTH;
	cy = (py * 2 - HEIGHT) / (double)HEIGHT;
	for (; n < LIMIT; n++) {
		double xx = __dmul_rn(x, x), yy = __dmul_rn(y, y);

		if (__dadd_rn(xx, yy) >= 4)
			break;
		y = __dadd_rn(__dmul_rn(2 * x, y), cy);
		x = __dadd_rn(__dadd_rn(xx, -yy), cx);
	}
	out[py * WIDTH + px] = n;
}

static int double_host(int px, int py)
{
	volatile double x = 0, y = 0, xx, yy, t;
	double cx = (px * 3 - WIDTH * 2) / (double)WIDTH, cy = (py * 2 - HEIGHT) / (double)HEIGHT;

	for (int n = 0; n < LIMIT; n++) {
		xx = x * x;
		yy = y * y;
		if (xx + yy >= 4)
			return n;
		t = 2 * x * y;
		y = t + cy;
		t = xx - yy;
		x = t + cx;
	}
	return LIMIT;
}

int main(void)
{
	const int n = WIDTH * HEIGHT;
	static int got[2 * n];
	int *dev, inside = 0;
	dim3 block(16, 8), grid((WIDTH + 15) / 16, (HEIGHT + 7) / 8);

	CHECK(cudaMalloc(&dev, sizeof(got)));
	fixed_kernel<<<grid, block>>>(dev);
	double_kernel<<<grid, block>>>(dev + n);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(got, dev, sizeof(got), cudaMemcpyDeviceToHost));
	for (int i = 0; i < n; i++) {
		int fix = fixed_point(i % WIDTH, i / WIDTH),
		    dbl = double_host(i % WIDTH, i / WIDTH);

		REQUIRE(got[i] == fix && got[n + i] == dbl,
			"%d,%d: %d and %d iterations, expected %d and %d", i % WIDTH, i / WIDTH,
			got[i], got[n + i], fix, dbl);
		inside += fix == LIMIT;
	}
	REQUIRE(inside > n / 10 && inside < n / 2, "%d points inside", inside);
	CHECK(cudaFree(dev));
	return verified("%d points, %d of them inside", n, inside);
}
