// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Generators of cuRAND that compute on the host: into any host memory, small and large, in the order of
 * their sequence, beside a generator of the GPU. The tables of Sobol's sequences are what a kernel of
 * the program's own needs, and lead to the numbers of a generator.
 */
#include "rand.h"

#define N     (3 << 20) /* more than a message has room for */
#define SMALL 4096

static curandGenerator_t host(curandRngType_t type, unsigned long long seed)
{
	curandGenerator_t g;

	OK(curandCreateGeneratorHost(&g, type));
	OK(curandSetPseudoRandomGeneratorSeed(g, seed));
	return g;
}

static void distributions(void)
{
	curandGenerator_t g = host(CURAND_RNG_PSEUDO_PHILOX4_32_10, 7);
	std::vector<unsigned int> bits(1 << 16);
	std::vector<float> narrow(1 << 16);
	std::vector<double> twice(1 << 16);

	OK(curandGenerate(g, bits.data(), bits.size()));
	each_bit(bits);
	OK(curandGenerateUniform(g, narrow.data(), narrow.size()));
	parts(narrow, 16);
	moments("uniform", narrow, 0.5, sqrt(1 / 12.0));
	OK(curandGenerateUniformDouble(g, twice.data(), twice.size()));
	moments("uniform in double", twice, 0.5, sqrt(1 / 12.0));
	OK(curandGenerateNormal(g, narrow.data(), narrow.size(), 2, 3));
	moments("normal", narrow, 2, 3);
	OK(curandGenerateNormalDouble(g, twice.data(), twice.size(), 2, 3));
	moments("normal in double", twice, 2, 3);
	OK(curandGenerateLogNormal(g, narrow.data(), narrow.size(), 0, 0.25f));
	OK(curandGenerateLogNormalDouble(g, twice.data(), twice.size(), 0, 0.25));
	OK(curandDestroyGenerator(g));
}

/* A large call, also into pinned memory, is as many small ones. */
static void in_pieces(void)
{
	curandGenerator_t g = host(CURAND_RNG_PSEUDO_XORWOW, 5), h = host(CURAND_RNG_PSEUDO_XORWOW, 5);
	std::vector<double> pieces(N);
	double *pinned;

	CHECK(cudaMallocHost(&pinned, N * sizeof(*pinned)));
	OK(curandGenerateUniformDouble(g, pinned, N));
	for (int at = 0; at < N; at += SMALL * 16)
		OK(curandGenerateUniformDouble(h, pieces.data() + at, SMALL * 16));
	for (int i = 0; i < N; i++)
		REQUIRE(pinned[i] == pieces[i], "number %d is %g, not %g", i, pinned[i], pieces[i]);
	OK(curandGenerateUniformDouble(g, pinned, SMALL));
	OK(curandGenerateUniformDouble(h, pieces.data(), SMALL));
	REQUIRE(std::equal(pinned, pinned + SMALL, pieces.data()), "the sequence does not go on");
	OK(curandDestroyGenerator(g));
	OK(curandDestroyGenerator(h));
	CHECK(cudaFreeHost(pinned));
}

/* The same type, seed and offset. The software GPU has one sequence for both. */
static void beside_the_gpu(curandGenerator_t gpu)
{
	curandGenerator_t g = host(CURAND_RNG_PSEUDO_PHILOX4_32_10, 11);
	std::vector<unsigned int> numbers(SMALL);
	unsigned int *there;
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	OK(curandSetStream(g, stream));
	OK(curandSetPseudoRandomGeneratorSeed(gpu, 11));
	CHECK(cudaMalloc(&there, SMALL * sizeof(*there)));
	OK(curandGenerate(gpu, there, SMALL));
	OK(curandGenerate(g, numbers.data(), SMALL));
	REQUIRE(down(there, SMALL) == numbers, "host and GPU have different numbers");
	CHECK(cudaFree(there));
	CHECK(cudaStreamDestroy(stream));
	OK(curandDestroyGenerator(g));
}

__global__ void sobol(const unsigned int *vectors, unsigned int *to, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	unsigned int gray = i ^ i >> 1, x = 0;

	if (i >= n)
		return;
	for (int bit = 0; bit < 32; bit++)
		if (gray >> bit & 1)
			x ^= vectors[bit];
	to[i] = x;
}

/* The third dimension, by a kernel and by a generator of the host. */
static void tables(void)
{
	curandDirectionVectors32_t *vectors;
	unsigned long long *wide;
	unsigned int *constants, *there, *in;
	std::vector<unsigned int> numbers(3 * SMALL);
	curandGenerator_t g;

	if (curandGetDirectionVectors32(&vectors, CURAND_DIRECTION_VECTORS_32_JOEKUO6)) {
		printf("there are no tables here\n");
		return;
	}
	OK(curandGetScrambleConstants32(&constants));
	OK(curandGetScrambleConstants64(&wide));
	REQUIRE(constants[1] != constants[2] && wide[1] != wide[2], "the constants are the same");
	OK(curandCreateGeneratorHost(&g, CURAND_RNG_QUASI_SOBOL32));
	OK(curandSetQuasiRandomGeneratorDimensions(g, 3));
	OK(curandGenerate(g, numbers.data(), 3 * SMALL));
	FAILS(curandGenerate(g, numbers.data(), 3 * SMALL - 1));
	in = up(std::vector<unsigned int>(vectors[2], vectors[2] + 32));
	CHECK(cudaMalloc(&there, SMALL * sizeof(*there)));
	sobol<<<SMALL / 256, 256>>>(in, there, SMALL);
	CHECK_LAUNCH();
	REQUIRE(down(there, SMALL) == std::vector<unsigned int>(numbers.begin() + 2 * SMALL, numbers.end()),
		"the table leads to other points");
	CHECK(cudaFree(there));
	CHECK(cudaFree(in));
	OK(curandDestroyGenerator(g));
}

int main(void)
{
	curandGenerator_t gpu = begin(CURAND_RNG_PSEUDO_PHILOX4_32_10), g;
	curandDirectionVectors64_t *vectors;
	float number;

	FAILS(curandCreateGeneratorHost(&g, (curandRngType_t)7));
	FAILS(curandGenerateUniform(NULL, &number, 1));
	FAILS(curandGetDirectionVectors64(&vectors, CURAND_DIRECTION_VECTORS_32_JOEKUO6));
	distributions();
	in_pieces();
	beside_the_gpu(gpu);
	tables();
	OK(curandDestroyGenerator(gpu));
	printf("generators of the host\n");
	return 0;
}
