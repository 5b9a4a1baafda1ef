// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cudaHostRegister of every kind of memory in a program: heap, static, stack, mapped, of a file,
 * at odd addresses, two ranges in one page. Kernels, copies and memsets use the memory in place.
 * Every wrong call gets the same error as with NVIDIA's runtime.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

__global__ void add(unsigned char *p, size_t n, unsigned char what)
{
	size_t i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] += what;
}

static unsigned char *dev;
static unsigned char copy[4 << 20], static_memory[300000];

static unsigned char *device_pointer(unsigned char *p)
{
	cudaPointerAttributes attr;
	unsigned char *d = NULL;

	CHECK(cudaHostGetDevicePointer((void **)&d, p, 0));
	CHECK(cudaPointerGetAttributes(&attr, p));
	REQUIRE(attr.type == cudaMemoryTypeHost && attr.hostPointer == p && attr.devicePointer == d,
		"type %d, host %p, device %p, expected %p and %p", (int)attr.type, attr.hostPointer,
		attr.devicePointer, (void *)p, (void *)d);
	CHECK(cudaPointerGetAttributes(&attr, d));
	REQUIRE(attr.type == cudaMemoryTypeHost && attr.hostPointer == p && attr.devicePointer == d,
		"of the device pointer: type %d, host %p, device %p", (int)attr.type,
		attr.hostPointer, attr.devicePointer);
	return d;
}

static void expect_bytes(const unsigned char *p, size_t len, uint32_t seed, unsigned int plus,
			 const char *what)
{
	fill_words(copy, len, seed);
	for (size_t i = 0; i < len; i++)
		REQUIRE(p[i] == (unsigned char)(copy[i] + plus), "%s: byte %zu of %zu is %02x",
			what, i, len, p[i]);
}

/* Uses the memory at p, all of which is registered. */
static void use(unsigned char *p, size_t len, const char *what)
{
	unsigned char *d = device_pointer(p);
	cudaStream_t stream;
	cudaPointerAttributes attr;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaPointerGetAttributes(&attr, p + len - 1));
	REQUIRE(attr.type == cudaMemoryTypeHost, "%s: type %d at the end", what, (int)attr.type);

	fill_words(p, len, 1);
	add<<<(len + 127) / 128, 128, 0, stream>>>(d, len, 5);
	CHECK_LAUNCH();
	CHECK(cudaMemcpyAsync(dev, p, len, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemsetAsync(p, 0, len, stream));
	add<<<(len + 127) / 128, 128, 0, stream>>>(dev, len, 7);
	CHECK_LAUNCH();
	CHECK(cudaStreamSynchronize(stream));
	for (size_t i = 0; i < len; i++)
		REQUIRE(!p[i], "%s: byte %zu is %02x after the memset", what, i, p[i]);
	CHECK(cudaMemcpyAsync(p, dev, len, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	expect_bytes(p, len, 1, 12, what);

	/* Uses the other address, and copies whose direction is left open. */
	fill_words(p, len, 2);
	CHECK(cudaMemcpy(dev, d, len, cudaMemcpyDefault));
	CHECK(cudaMemset(d, 0xee, len));
	CHECK(cudaMemcpy(p, dev, len, cudaMemcpyDefault));
	expect_bytes(p, len, 2, 0, what);
	CHECK(cudaMemcpy(dev, p, len, cudaMemcpyDeviceToDevice));
	CHECK(cudaMemcpy(p, dev, len, cudaMemcpyDeviceToDevice));
	CHECK(cudaDeviceSynchronize());
	expect_bytes(p, len, 2, 0, what);
	if (len > 100) {
		CHECK(cudaMemcpy(dev, p + 33, len - 77, cudaMemcpyHostToDevice));
		CHECK(cudaMemcpy(p + 33, dev, len - 77, cudaMemcpyDeviceToHost));
		expect_bytes(p, len, 2, 0, what);
	}
	CHECK(cudaStreamDestroy(stream));
}

static void kind(unsigned char *p, size_t len, const char *what)
{
	cudaPointerAttributes attr;

	CHECK(cudaHostRegister(p, len, cudaHostRegisterDefault));
	CHECK(cudaPointerGetAttributes(&attr, p + len));
	REQUIRE(attr.type == cudaMemoryTypeUnregistered, "%s: type %d after the end", what,
		(int)attr.type);
	use(p, len, what);
	CHECK(cudaHostUnregister(p));
	EXPECT(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
	cudaGetLastError();
	/* Again, in part and at odd addresses. */
	CHECK(cudaHostRegister(p + 1, len - 1, cudaHostRegisterPortable));
	use(p + 1, len - 1, what);
	CHECK(cudaHostUnregister(p + 1));
	CHECK(cudaHostRegister(p + len / 2 + 3, 1, cudaHostRegisterMapped));
	use(p + len / 2 + 3, 1, what);
	CHECK(cudaHostUnregister(p + len / 2 + 3));
}

static void neighbours(unsigned char *p)
{
	unsigned int flags;
	int i;

	for (i = 0; i < 10; i++)
		CHECK(cudaHostRegister(p + i * 1000, 1000, i % 4));
	for (i = 9; i >= 0; i--)
		use(p + i * 1000, 1000, "one of many in a page");
	CHECK(cudaHostGetFlags(&flags, p + 1500));
	REQUIRE(flags == (cudaHostRegisterPortable | cudaHostRegisterMapped), "flags %x", flags);
	CHECK(cudaHostGetFlags(&flags, p + 2500));
	REQUIRE(flags == cudaHostRegisterMapped, "flags %x", flags);
	for (i = 0; i < 10; i++)
		CHECK(cudaHostUnregister(p + i * 1000));
}

/*
 * A copy may begin in registered memory and end outside, or the other way round. It must still
 * be right.
 */
static void in_part(unsigned char *p)
{
	CHECK(cudaHostRegister(p + 8192, 8192, 0));
	fill_words(p, 32768, 9);
	CHECK(cudaMemcpy(dev, p, 12288, cudaMemcpyHostToDevice));
	memset(p, 0, 12288);
	CHECK(cudaMemcpy(p, dev, 12288, cudaMemcpyDeviceToHost));
	expect_bytes(p, 32768, 9, 0, "up to the middle");
	CHECK(cudaHostUnregister(p + 8192));
}

static void errors(unsigned char *p)
{
	unsigned char *other, *readable, *gone;
	unsigned int flags;
	void *d;

	EXPECT(cudaHostRegister(NULL, 100, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostRegister(p, 0, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostRegister(p, 100, 0x10), cudaErrorInvalidValue);
	EXPECT(cudaHostRegister(p, 100, cudaHostRegisterIoMemory), cudaErrorInvalidValue);
	EXPECT(cudaHostRegister((void *)-4096l, 8192, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostRegister(p, 1ull << 38, 0), cudaErrorMemoryAllocation);
	EXPECT(cudaHostUnregister(NULL), cudaErrorInvalidValue);
	EXPECT(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
	EXPECT(cudaHostGetDevicePointer(&d, p, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostGetFlags(&flags, p), cudaErrorInvalidValue);

	CHECK(cudaHostRegister(p + 100, 10000, 0));
	EXPECT(cudaHostRegister(p + 100, 10000, 0), cudaErrorHostMemoryAlreadyRegistered);
	EXPECT(cudaHostRegister(p + 200, 10, 0), cudaErrorHostMemoryAlreadyRegistered);
	EXPECT(cudaHostRegister(p + 10000, 200, 0), cudaErrorHostMemoryAlreadyRegistered);
	EXPECT(cudaHostRegister(p, 20000, 0), cudaErrorHostMemoryAlreadyRegistered);
	EXPECT(cudaHostUnregister(p + 101), cudaErrorInvalidValue);
	EXPECT(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
	EXPECT(cudaFreeHost(p + 100), cudaErrorInvalidValue);
	REQUIRE(cudaGetLastError() == cudaErrorInvalidValue, "the last error");
	use(p + 100, 10000, "after refusals");
	CHECK(cudaHostUnregister(p + 100));

	CHECK(cudaMallocHost(&other, 10000));
	EXPECT(cudaHostRegister(other, 1000, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostUnregister(other), cudaErrorInvalidValue);
	CHECK(cudaFreeHost(other));
	CHECK(cudaMallocManaged(&other, 10000));
	EXPECT(cudaHostRegister(other, 1000, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostUnregister(other), cudaErrorInvalidValue);
	CHECK(cudaFree(other));
	EXPECT(cudaHostRegister(dev, 1000, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostUnregister(dev), cudaErrorInvalidValue);

	readable =
		(unsigned char *)mmap(NULL, 65536, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(cudaHostRegister(readable, 65536, 0), cudaErrorInvalidValue);
	gone = readable + 32768;
	munmap(gone, 32768);
	EXPECT(cudaHostRegister(gone, 4096, 0), cudaErrorInvalidValue);
	EXPECT(cudaHostRegister(readable, 65536, 0), cudaErrorInvalidValue);
	munmap(readable, 32768);
	REQUIRE(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess,
		"the last error");
}

static void of_a_file(void)
{
	char name[] = "/tmp/host_register.XXXXXX";
	int fd = mkstemp(name);
	unsigned char *p;

	REQUIRE(fd >= 0 && !unlink(name) && !ftruncate(fd, 200000), "no file in /tmp");
	p = (unsigned char *)mmap(NULL, 200000, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	REQUIRE(p != MAP_FAILED, "mmap");
	kind(p, 200000, "a file's");
	munmap(p, 200000);
	close(fd);
}

int main(void)
{
	unsigned char stack[50000], *small, *large, *mapped;
	const size_t size = 3 << 20;

	CHECK(cudaMalloc(&dev, sizeof(copy)));
	small = (unsigned char *)malloc(20000);
	large = (unsigned char *)malloc(size);
	mapped = (unsigned char *)mmap(NULL, size, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(small && large && mapped != MAP_FAILED, "out of memory");
	errors(mapped + 4);
	kind(mapped, size, "mapped");
	kind(mapped + 12345, 7654, "part of mapped");
	kind(small, 20000, "small heap");
	kind(large, size, "large heap");
	kind(static_memory, sizeof(static_memory), "static");
	kind(stack + 3, sizeof(stack) - 9, "stack");
	of_a_file();
	neighbours(mapped + 500);
	in_part(mapped);
	/*
	 * A registration that is never removed ends with the program. The pages outlive the
	 * mapping.
	 */
	CHECK(cudaHostRegister(mapped, size, 0));
	CHECK(cudaHostRegister(small, 20000, 0));
	munmap(mapped, size);
	free(large);
	CHECK(cudaFree(dev));
	return verified("registered memory of every kind, in place and at odd addresses");
}
