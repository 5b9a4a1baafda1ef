// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What is estimated with random numbers of cuRAND and kernels of the program's own: pi from points in a
 * square, dice, the price of an option, and how far a random walk goes. The kernels' counts are those of
 * the CPU for the same numbers, and the estimates are near what theory says.
 */
#include "rand.h"

#define N     (1 << 18)
#define BLOCK 256
#define WALKS 4096

static curandGenerator_t g;

/* Points in a quarter of a circle. Rounding is told, so that the CPU counts the same. */
__global__ void count_inside(const float *x, const float *y, int *count)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (__fadd_rn(__fmul_rn(x[i], x[i]), __fmul_rn(y[i], y[i])) <= 1)
		atomicAdd(count, 1);
}

static void pi(void)
{
	int *count = up(std::vector<int>(1)), n = 0;
	std::vector<float> v;
	float *points;

	CHECK(cudaMalloc(&points, 2 * N * sizeof(*points)));
	OK(curandGenerateUniform(g, points, 2 * N));
	count_inside<<<N / BLOCK, BLOCK>>>(points, points + N, count);
	CHECK_LAUNCH();
	v = down(points, 2 * N);
	for (int i = 0; i < N; i++) {
		volatile float x = v[i] * v[i], y = v[N + i] * v[N + i];
		volatile float sum = x + y;

		n += sum <= 1;
	}
	REQUIRE(down(count, 1)[0] == n, "the GPU counts %d points, not %d", down(count, 1)[0], n);
	REQUIRE(fabs(4.0 * n / N - M_PI) < 0.03, "pi is %g", 4.0 * n / N);
	CHECK(cudaFree(points));
	CHECK(cudaFree(count));
}

/* Two dice from each number. */
__global__ void throw_dice(const unsigned int *bits, int *counts)
{
	unsigned int x = bits[blockIdx.x * blockDim.x + threadIdx.x];

	atomicAdd(&counts[(x >> 16) % 6 + (x & 0xffff) % 6], 1);
}

static void dice(void)
{
	std::vector<int> want(11);
	int *counts = up(want);
	unsigned int *bits;

	CHECK(cudaMalloc(&bits, N * sizeof(*bits)));
	OK(curandGenerate(g, bits, N));
	throw_dice<<<N / BLOCK, BLOCK>>>(bits, counts);
	CHECK_LAUNCH();
	for (unsigned int x : down(bits, N))
		want[(x >> 16) % 6 + (x & 0xffff) % 6]++;
	REQUIRE(down(counts, 11) == want, "the GPU throws other dice");
	for (int i = 0; i < 11; i++) {
		double share = (6 - abs(i - 5)) / 36.0;

		REQUIRE(fabs(want[i] - share * N) < 6 * sqrt(share * N), "%d comes %d times", i + 2, want[i]);
	}
	CHECK(cudaFree(bits));
	CHECK(cudaFree(counts));
}

/* The price of a stock in a year is log-normal. What may be bought for `strike` is worth the rest. */
__global__ void worth(double *price, double strike)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	price[i] = price[i] > strike ? price[i] - strike : 0;
}

static void option(void)
{
	const double now = 100, strike = 110, rate = 0.03, spread = 0.2;
	const double far = (log(now / strike) + rate + spread * spread / 2) / spread;
	const double near = far - spread, middle = log(now) + rate - spread * spread / 2;
	/* The formula of Black and Scholes. */
	const double want = now * erfc(-far / sqrt(2.0)) / 2 - strike * exp(-rate) * erfc(-near / sqrt(2.0)) / 2;
	double *price, got = 0;

	CHECK(cudaMalloc(&price, N * sizeof(*price)));
	OK(curandGenerateLogNormalDouble(g, price, N, middle, spread));
	worth<<<N / BLOCK, BLOCK>>>(price, strike);
	CHECK_LAUNCH();
	for (double v : down(price, N))
		got += v * exp(-rate) / N;
	REQUIRE(fabs(got - want) < 0.2, "the option is worth %g, not %g", got, want);
	CHECK(cudaFree(price));
}

__global__ void walk(float *at, const float *step)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	at[i] += step[i];
}

/* After 100 steps of 0.5, about: ten times as far. */
static void walks(void)
{
	float *at = up(std::vector<float>(WALKS)), *step;

	CHECK(cudaMalloc(&step, WALKS * sizeof(*step)));
	for (int i = 0; i < 100; i++) {
		OK(curandGenerateNormal(g, step, WALKS, 0.25f, 0.5f));
		walk<<<WALKS / BLOCK, BLOCK>>>(at, step);
		CHECK_LAUNCH();
	}
	std::vector<float> end = down(at, WALKS);
	double mean = 0, squares = 0;

	for (float x : end)
		mean += x / WALKS;
	for (float x : end)
		squares += (x - mean) * (x - mean) / WALKS;
	REQUIRE(fabs(mean - 25) < 0.5, "the walks go to %g", mean);
	REQUIRE(fabs(sqrt(squares) - 5) < 0.4, "the walks spread by %g", sqrt(squares));
	CHECK(cudaFree(at));
	CHECK(cudaFree(step));
}

int main(void)
{
	g = begin(CURAND_RNG_PSEUDO_PHILOX4_32_10);
	FAILS(curandGenerateUniform(NULL, NULL, N));
	OK(curandSetPseudoRandomGeneratorSeed(g, 2024));
	pi();
	dice();
	option();
	walks();
	OK(curandDestroyGenerator(g));
	printf("pi, dice, an option and random walks\n");
	return 0;
}
