// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A kernel writes to an address where there is no memory. The next synchronising call returns
 * cudaErrorIllegalAddress, and so does every later call, for as long as the process lives. The
 * test succeeds if it sees exactly that.
 *
 * An argument picks the address: 0 (NULL, the default), 1 (far beyond an allocation), 2 (host
 * memory that is not pinned), 3 (far beyond an allocation, read by a texture that reaches there).
 */
#include "check.h"

__global__ void store(int *where, int value)
{
	*where = value;
}

__global__ void fetch(cudaTextureObject_t tex, int index, int *where)
{
	*where = tex1Dfetch<int>(tex, index);
}

/* A line of integers that begins in an allocation and ends 256 MiB later. */
static void fetch_past(int *dev, cudaStream_t stream)
{
	cudaResourceDesc r = {};
	cudaTextureDesc d = {};
	cudaTextureObject_t tex;

	r.resType = cudaResourceTypeLinear;
	r.res.linear.devPtr = dev;
	r.res.linear.desc = cudaCreateChannelDesc<int>();
	r.res.linear.sizeInBytes = 256 << 20;
	CHECK(cudaCreateTextureObject(&tex, &r, &d, NULL));
	fetch<<<1, 1, 0, stream>>>(tex, (64 << 20) - 1, dev);
}

int main(int argc, char **argv)
{
	int which = argc > 1 ? atoi(argv[1]) : 0;
	cudaStream_t stream;
	int *dev, *bad, *other, on_stack = 3, value;

	CHECK(cudaMalloc(&dev, 4096));
	CHECK(cudaStreamCreate(&stream));
	store<<<1, 1, 0, stream>>>(dev, 1);
	CHECK_LAUNCH();
	CHECK(cudaStreamSynchronize(stream));

	bad = which == 0 ? NULL : which == 1 ? dev + ((size_t)1 << 38) : &on_stack;
	if (which == 3)
		fetch_past(dev, stream);
	else
		store<<<1, 1, 0, stream>>>(bad, 2);
	EXPECT(cudaStreamSynchronize(stream), cudaErrorIllegalAddress);
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	EXPECT(cudaGetLastError(), cudaErrorIllegalAddress);
	EXPECT(cudaMemcpy(&value, dev, sizeof(value), cudaMemcpyDeviceToHost),
	       cudaErrorIllegalAddress);
	EXPECT(cudaMalloc(&other, 16), cudaErrorIllegalAddress);
	EXPECT(cudaStreamSynchronize(0), cudaErrorIllegalAddress);
	store<<<1, 1>>>(dev, 3);
	EXPECT(cudaGetLastError(), cudaErrorIllegalAddress);
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	REQUIRE(on_stack == 3, "%d", on_stack);
	return verified("an illegal access is reported, and for good");
}
