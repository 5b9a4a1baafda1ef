// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * assert in a kernel. As long as the condition holds, nothing happens. When it fails, the error
 * is cudaErrorAssert. The error stays with the context, and a line on stderr names the
 * expression, the thread and the block. Nothing is written to stdout.
 */
#include <string>

#include <assert.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

__global__ void checked(int *x, int limit)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	assert(x[i] < limit);
	x[i]++;
}

/* The program does not wait: a call that only puts work into the stream returns the error. */
static void found_later(void)
{
	cudaError_t code = cudaSuccess;
	int x[64], *dev;

	for (int i = 0; i < 64; i++)
		x[i] = i;
	CHECK(cudaMalloc(&dev, sizeof(x)));
	CHECK(cudaMemcpy(dev, x, sizeof(x), cudaMemcpyHostToDevice));
	checked<<<2, 32>>>(dev, 10);
	CHECK_LAUNCH();
	for (int i = 0; i < 2000 && code == cudaSuccess; i++) {
		usleep(1000);
		code = cudaMemsetAsync(dev, 0, sizeof(x), NULL);
	}
	REQUIRE(code == cudaErrorAssert, "%s", cudaGetErrorName(code));
	EXPECT(cudaDeviceSynchronize(), cudaErrorAssert);
	exit(0);
}

static void in_a_child(void)
{
	char text[16384] = "";
	size_t len = 0;
	int fds[2], status;
	ssize_t n;
	pid_t pid;

	REQUIRE(!pipe(fds), "pipe");
	pid = fork();
	if (!pid) {
		dup2(fds[1], 2);
		found_later();
	}
	close(fds[1]);
	while ((n = read(fds[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += n;
	close(fds[0]);
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "%s", text);
	REQUIRE(strstr(text, "Assertion `x[i] < limit"), "no text in \"%s\"", text);
}

int main(void)
{
	int x[64], *dev, file, empty, out, err;
	std::string text;
	cudaError_t code;
	void *more;

	/* Before this process uses CUDA. */
	in_a_child();
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
