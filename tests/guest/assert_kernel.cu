// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * assert in a kernel: as long as it holds nothing happens; when it fails the error is
 * cudaErrorAssert, sticks to the context, and a line on stderr names the expression, the thread and
 * the block. Nothing comes out of stdout.
 */
#include <string>

#include <assert.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

__global__ void checked(int *x, int limit)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	assert(x[i] < limit);
	x[i]++;
}

int main(void)
{
	int x[64], *dev, file, empty, out, err;
	std::string text;
	cudaError_t code;
	void *more;

	for (int i = 0; i < 64; i++)
		x[i] = i;
	CHECK(cudaMalloc(&dev, sizeof(x)));
	CHECK(cudaMemcpy(dev, x, sizeof(x), cudaMemcpyHostToDevice));
	checked<<<2, 32>>>(dev, 64);
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(x, dev, sizeof(x), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 64; i++)
		REQUIRE(x[i] == i + 1, "element %d is %d", i, x[i]);

	fflush(stdout);
	file = memfd_create("output", 0);
	empty = memfd_create("nothing", 0);
	out = dup(1);
	err = dup(2);
	REQUIRE(file >= 0 && dup2(empty, 1) == 1 && dup2(file, 2) == 2, "no file");
	checked<<<2, 32>>>(dev, 64);
	CHECK_LAUNCH();
	code = cudaDeviceSynchronize();
	fflush(stdout);
	dup2(out, 1);
	dup2(err, 2);
	REQUIRE(code == cudaErrorAssert, "%s", cudaGetErrorName(code));
	REQUIRE(!lseek(empty, 0, SEEK_END), "something on stdout");
	text.resize(lseek(file, 0, SEEK_END));
	REQUIRE(pread(file, &text[0], text.size(), 0) == (ssize_t)text.size(), "short read");
	/* Element 63, in thread 31 of block 1, has become 64. */
	for (const char *part : {"x[i] < limit", "checked", "[1,0,0]", "[31,0,0]"})
		REQUIRE(text.find(part) != std::string::npos, "no \"%s\" in \"%s\"", part,
			text.c_str());
	EXPECT(cudaMalloc(&more, 4), cudaErrorAssert);
	EXPECT(cudaDeviceSynchronize(), cudaErrorAssert);
	return verified("a failed assertion is reported and sticks");
}
