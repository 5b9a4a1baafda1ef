// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Example: a kernel reads a file. The file is mapped into memory and registered, and the kernel
 *reads the pages of the guest's page cache through the PCIe bus. No buffer is allocated and nothing
 *is copied, neither by the program nor by the library.
 *
 *	mapped_file [MiB]
 */
#include <sys/mman.h>
#include <unistd.h>

#include "rate.h"

#define BLOCKS	256
#define THREADS 128

__global__ void add_up(const uint32_t *word, size_t words, unsigned long long *sum)
{
	unsigned long long mine = 0;

	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words;
	     i += gridDim.x * blockDim.x)
		mine += word[i];
	atomicAdd(sum, mine);
}

/* A file that has a name only as long as this program needs to open it. Returns the sum of its
 * words. */
static int make_file(size_t bytes, unsigned long long *sum)
{
	char name[] = "/tmp/mapped_file.XXXXXX";
	static uint32_t part[1 << 18];
	int fd = mkstemp(name);

	REQUIRE(fd >= 0, "no file can be made in /tmp");
	unlink(name);
	*sum = 0;
	for (size_t at = 0; at < bytes; at += sizeof(part)) {
		fill_words(part, sizeof(part), (uint32_t)(at >> 20));
		for (size_t i = 0; i < sizeof(part) / 4; i++)
			*sum += part[i];
		REQUIRE(write(fd, part, sizeof(part)) == (ssize_t)sizeof(part), "/tmp is full");
	}
	return fd;
}

/* Returns the seconds that a kernel takes to read all of the file. */
static double read_all(const uint32_t *word, size_t bytes, unsigned long long want)
{
	unsigned long long *dev_sum, got;
	double start, took;

	CHECK(cudaMalloc(&dev_sum, sizeof(*dev_sum)));
	CHECK(cudaMemset(dev_sum, 0, sizeof(*dev_sum)));
	CHECK(cudaDeviceSynchronize());
	start = now();
	add_up<<<BLOCKS, THREADS>>>(word, bytes / 4, dev_sum);
	CHECK_LAUNCH();
	CHECK(cudaDeviceSynchronize());
	took = now() - start;
	CHECK(cudaMemcpy(&got, dev_sum, sizeof(got), cudaMemcpyDeviceToHost));
	REQUIRE(got == want, "the sum on the GPU is %llu, not %llu", got, want);
	CHECK(cudaFree(dev_sum));
	return took;
}

int main(int argc, char **argv)
{
	size_t bytes = size_argument(argc, argv);
	unsigned long long sum;
	int fd = make_file(bytes, &sum);
	uint32_t *file, *dev;
	double start;

	load_kernel((const void *)add_up);
	start = now();
	file = (uint32_t *)mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	REQUIRE(file != MAP_FAILED, "the file cannot be mapped");
	CHECK(cudaHostRegister(file, bytes, cudaHostRegisterMapped));
	CHECK(cudaHostGetDevicePointer(&dev, file, 0));
	start = now() - start;
	rate("first time", (double)bytes, start + read_all(dev, bytes, sum),
	     "the file's pages are mapped, pinned and registered with the GPU");
	rate("again", (double)bytes, read_all(dev, bytes, sum),
	     "the kernel reads the page cache through the bus, without a copy");
	CHECK(cudaHostUnregister(file));
	munmap(file, bytes);
	close(fd);
	return verified("%zu MiB of a file read by a kernel, twice", bytes >> 20);
}
