// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * SHA-256, one message per thread: rotations, byte order, a schedule in local memory. The
 * standard's own examples, and messages of every length around the block size, compared with the
 * CPU.
 */
#include "check.h"

#define MESSAGES 140

/* The first 32 bits behind the point of the cube roots of the first 64 primes. */
__constant__ uint32_t round_key[64];
static uint32_t host_key[64];

__host__ __device__ static uint32_t key(int i)
{
#ifdef __CUDA_ARCH__
	return round_key[i];
#else
	return host_key[i];
#endif
}

__host__ __device__ static uint32_t rotate(uint32_t x, int n)
{
	return x >> n | x << (32 - n);
}

__host__ __device__ static unsigned char padded(const unsigned char *text, int length, int i,
						int end)
{
	if (i < length)
		return text[i];
	if (i == length)
		return 0x80;
	return i < end - 8 ? 0
			   : (unsigned char)((unsigned long long)length * 8 >> (end - 1 - i) * 8);
}

__host__ __device__ static void sha256(const unsigned char *text, int length, uint32_t *h)
{
	int end = (length + 9 + 63) / 64 * 64;
	uint32_t w[64], s[8];

	for (int at = 0; at < end; at += 64) {
		for (int i = 0; i < 16; i++) {
			w[i] = 0;
			for (int b = 0; b < 4; b++)
				w[i] = w[i] << 8 | padded(text, length, at + i * 4 + b, end);
		}
		for (int i = 16; i < 64; i++)
			w[i] = w[i - 16] + w[i - 7] +
			       (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
			       (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
		for (int i = 0; i < 8; i++)
			s[i] = h[i];
		for (int i = 0; i < 64; i++) {
			uint32_t t1 = s[7] +
				      (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
				      ((s[4] & s[5]) ^ (~s[4] & s[6])) + key(i) + w[i];
			uint32_t t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
				      ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));

			for (int k = 7; k > 0; k--)
				s[k] = s[k - 1];
			s[4] += t1;
			s[0] = t1 + t2;
		}
		for (int i = 0; i < 8; i++)
			h[i] += s[i];
	}
}

__global__ void hash(const unsigned char *text, const uint32_t *first, uint32_t *out)
{
	int m = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t h[8];

	if (m >= MESSAGES)
		return;
	for (int i = 0; i < 8; i++)
		h[i] = first[i];
	sha256(text, m, h);
	for (int i = 0; i < 8; i++)
		out[m * 8 + i] = h[i];
}

/* Roots of primes by bisection: floor(root(prime) * 2^32), the low half. */
static uint32_t root_bits(unsigned int prime, int power)
{
	unsigned long long low = 0, high = 1ull << 37;

	while (high - low > 1) {
		unsigned long long middle = (low + high) / 2;
		long double x = (long double)middle / 4294967296.0L;

		if ((power == 2 ? x * x : x * x * x) <= prime)
			low = middle;
		else
			high = middle;
	}
	return (uint32_t)low;
}

int main(void)
{
	static const uint32_t empty[] = {0xe3b0c442u, 0x98fc1c14u, 0x9afbf4c8u, 0x996fb924u,
					 0x27ae41e4u, 0x649b934cu, 0xa495991bu, 0x7852b855u};
	static const uint32_t abc[] = {0xba7816bfu, 0x8f01cfeau, 0x414140deu, 0x5dae2223u,
				       0xb00361a3u, 0x96177a9cu, 0xb410ff61u, 0xf20015adu};
	static uint32_t out[MESSAGES][8], first[8];
	uint32_t *dev_first, *dev_out;
	unsigned char text[MESSAGES], *dev_text;

	for (unsigned int n = 2, found = 0; found < 64; n++) {
		bool prime = true;

		for (unsigned int d = 2; d * d <= n; d++)
			prime = prime && n % d;
		if (!prime)
			continue;
		if (found < 8)
			first[found] = root_bits(n, 2);
		host_key[found++] = root_bits(n, 3);
	}
	fill_words(text, sizeof(text), 19);
	memcpy(text, "abc", 3);
	CHECK(cudaMemcpyToSymbol(round_key, host_key, sizeof(host_key)));
	CHECK(cudaMalloc(&dev_text, sizeof(text)));
	CHECK(cudaMalloc(&dev_first, sizeof(first)));
	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	CHECK(cudaMemcpy(dev_text, text, sizeof(text), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_first, first, sizeof(first), cudaMemcpyHostToDevice));
	hash<<<(MESSAGES + 31) / 32, 32>>>(dev_text, dev_first, dev_out);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(out[0], empty, sizeof(empty)), "the empty message: %08x...", out[0][0]);
	REQUIRE(!memcmp(out[3], abc, sizeof(abc)), "\"abc\": %08x...", out[3][0]);
	for (int m = 0; m < MESSAGES; m++) {
		uint32_t want[8];

		memcpy(want, first, sizeof(want));
		sha256(text, m, want);
		REQUIRE(!memcmp(out[m], want, sizeof(want)), "%d bytes: %08x..., expected %08x...",
			m, out[m][0], want[0]);
	}
	CHECK(cudaFree(dev_text));
	CHECK(cudaFree(dev_first));
	CHECK(cudaFree(dev_out));
	return verified("messages of 0 to %d bytes", MESSAGES - 1);
}
