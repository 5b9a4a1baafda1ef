// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * CRC-32 with a table that a kernel makes in shared memory: one message per thread, messages of
 * any length at any byte address. "123456789" must give the value in the standard.
 */
#include "check.h"

#define MESSAGES 200
#define LONGEST	 150

__host__ __device__ static uint32_t entry(uint32_t i)
{
	for (int bit = 0; bit < 8; bit++)
		i = i >> 1 ^ (i & 1 ? 0xedb88320u : 0);
	return i;
}

__global__ void crc(const unsigned char *text, const int *start, uint32_t *out, int n)
{
	__shared__ uint32_t table[256];
	int m = blockIdx.x * blockDim.x + threadIdx.x;
	uint32_t sum = 0xffffffffu;

	for (int i = threadIdx.x; i < 256; i += blockDim.x)
		table[i] = entry(i);
	__syncthreads();
	if (m >= n)
		return;
	for (int i = start[m]; i < start[m + 1]; i++)
		sum = sum >> 8 ^ table[(sum ^ text[i]) & 0xff];
	out[m] = ~sum;
}

static uint32_t crc_host(const unsigned char *text, int n)
{
	uint32_t sum = 0xffffffffu;

	for (int i = 0; i < n; i++) {
		sum ^= text[i];
		for (int bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0xedb88320u : 0);
	}
	return ~sum;
}

int main(void)
{
	static unsigned char text[MESSAGES * LONGEST];
	int start[MESSAGES + 1] = {0, 9}, *dev_start;
	uint32_t out[MESSAGES], *dev_out;
	unsigned char *dev_text;

	fill_words(text, sizeof(text), 17);
	memcpy(text, "123456789", 9);
	for (int m = 1; m < MESSAGES; m++)
		start[m + 1] = start[m] + scramble(m, 18) % LONGEST;
	CHECK(cudaMalloc(&dev_text, sizeof(text)));
	CHECK(cudaMalloc(&dev_start, sizeof(start)));
	CHECK(cudaMalloc(&dev_out, sizeof(out)));
	CHECK(cudaMemcpy(dev_text, text, sizeof(text), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(dev_start, start, sizeof(start), cudaMemcpyHostToDevice));
	crc<<<(MESSAGES + 63) / 64, 64>>>(dev_text, dev_start, dev_out, MESSAGES);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev_out, sizeof(out), cudaMemcpyDeviceToHost));
	REQUIRE(out[0] == 0xcbf43926u, "the check value is %08x", out[0]);
	for (int m = 0; m < MESSAGES; m++) {
		uint32_t want = crc_host(text + start[m], start[m + 1] - start[m]);

		REQUIRE(out[m] == want, "message %d: %08x, expected %08x", m, out[m], want);
	}
	CHECK(cudaFree(dev_text));
	CHECK(cudaFree(dev_start));
	CHECK(cudaFree(dev_out));
	return verified("%d messages", MESSAGES);
}
