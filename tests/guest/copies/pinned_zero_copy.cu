// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Pinned host memory in kernels, through the same pointer that the CPU uses: read, written, and
 * both at once, without any copy call. Also as source and target of copies in every direction.
 */
#include "check.h"

__global__ void combine(const uint32_t *in, uint32_t *out, int n, uint32_t key)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		out[n - 1 - i] = in[i] * 3 + key;
}

static void compare(const uint32_t *got, int n, uint32_t seed, uint32_t key, const char *what)
{
	for (int i = 0; i < n; i++)
		REQUIRE(got[n - 1 - i] == scramble(i, seed) * 3 + key, "%s: word %d: %08x", what, i,
			got[n - 1 - i]);
}

int main(void)
{
	const int n = 150001;
	const size_t bytes = n * sizeof(uint32_t);
	uint32_t *in, *out, *dev, *alias = NULL;
	cudaPointerAttributes attr;
	size_t at;

	CHECK(cudaMallocHost(&in, bytes));
	CHECK(cudaHostAlloc((void **)&out, bytes, cudaHostAllocMapped | cudaHostAllocPortable));
	CHECK(cudaMalloc(&dev, bytes));
	CHECK(cudaHostGetDevicePointer((void **)&alias, out, 0));
	REQUIRE(alias == out, "host %p, device %p", (void *)out, (void *)alias);
	CHECK(cudaPointerGetAttributes(&attr, in));
	REQUIRE(attr.type == cudaMemoryTypeHost && attr.hostPointer == in &&
			attr.devicePointer == in,
		"type %d, host %p, device %p", (int)attr.type, attr.hostPointer,
		attr.devicePointer);
	CHECK(cudaPointerGetAttributes(&attr, dev));
	REQUIRE(attr.type == cudaMemoryTypeDevice && attr.devicePointer == dev, "type %d",
		(int)attr.type);

	for (uint32_t round = 0; round < 3; round++) {
		fill_words(in, bytes, round);
		memset(out, 0, bytes);
		combine<<<(n + 127) / 128, 128>>>(in, out, n, round);
		CHECK_LAUNCH();
		CHECK(cudaDeviceSynchronize());
		compare(out, n, round, round, "host to host");
	}
	/* One end on the device. */
	fill_words(in, bytes, 8);
	combine<<<(n + 127) / 128, 128>>>(in, dev, n, 8);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, bytes, cudaMemcpyDeviceToHost));
	compare(out, n, 8, 8, "host to device");
	CHECK(cudaMemcpy(dev, in, bytes, cudaMemcpyDefault));
	memset(out, 0, bytes);
	combine<<<(n + 127) / 128, 128>>>(dev, out, n, 9);
	CHECK_LAUNCH();
	CHECK(cudaDeviceSynchronize());
	compare(out, n, 8, 9, "device to host");
	CHECK(cudaMemcpy(out, dev, bytes, cudaMemcpyDefault));
	at = first_difference(in, out, bytes);
	REQUIRE(at == bytes, "byte %zu", at);

	CHECK(cudaFreeHost(in));
	CHECK(cudaFreeHost(out));
	CHECK(cudaFree(dev));
	return verified("kernels read and write pinned host memory at the CPU's own address");
}
