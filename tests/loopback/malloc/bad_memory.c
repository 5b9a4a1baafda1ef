// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory that does not exist, that is not of the stated kind, that the caller may not free, or that
 * is too much. The call must return CUDA's own error, and the next good call must work. One
 * function tests each kind.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loopback/check.h"

#define PAGE ((size_t)4096)
#define M    ((size_t)1 << 20)

static const enum cudaMemcpyKind UP = cudaMemcpyHostToDevice, DOWN = cudaMemcpyDeviceToHost;
static char *dev, *pinned, *heap;

/* Without a driver, no pages are pinned or made, so tests that depend on this cannot run. */
static bool in_guest(void)
{
	return access("/dev/qcuda", F_OK) == 0;
}

static void still_works(void)
{
	static uint32_t seed;
	static char from[3 * 4096], to[3 * 4096];

	fill(from, sizeof(from), ++seed);
	OK(cudaMemcpy(dev, from, sizeof(from), cudaMemcpyHostToDevice));
	OK(cudaMemcpy(to, dev, sizeof(to), cudaMemcpyDeviceToHost));
	REQUIRE(differs(from, to, sizeof(to)) == sizeof(to), "a copy after an error is wrong");
}

#define BAD(call, code)              \
	do {                         \
		REFUSED(call, code); \
		still_works();       \
	} while (0)

static char *pages(size_t n)
{
	char *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(p != MAP_FAILED, "mmap");
	return p;
}

/* [p, p + len) cannot be used by any call. */
static void nobody(char *p, size_t len)
{
	BAD(cudaMemcpy(dev, p, len, UP), cudaErrorInvalidValue);
	BAD(cudaMemcpy(p, dev, len, DOWN), cudaErrorInvalidValue);
	BAD(cudaMemcpyAsync(dev, p, len, UP, 0), cudaErrorInvalidValue);
	BAD(cudaMemcpyAsync(p, dev, len, DOWN, 0), cudaErrorInvalidValue);
	BAD(cudaHostRegister(p, len, 0), cudaErrorInvalidValue);
}

static void not_mapped(void)
{
	char *p = pages(64);

	munmap(p, 64 * PAGE);
	nobody(p, 1);
	nobody(p + 5, 64 * PAGE - 5);
	nobody((char *)16, 16);
	/* A kernel address. */
	nobody((char *)0xffff888000000000, PAGE);
}

static void wraps(void)
{
	nobody((char *)-PAGE, 2 * PAGE);
	nobody((char *)-1l, 2);
	BAD(cudaMemcpy(dev, heap, SIZE_MAX, UP), cudaErrorInvalidValue);
	BAD(cudaMemcpy(heap, dev, SIZE_MAX - 100, DOWN), cudaErrorInvalidValue);
}

static void crosses_its_end(void)
{
	char *p = pages(4);

	munmap(p + 2 * PAGE, 2 * PAGE);
	nobody(p, 3 * PAGE);
	nobody(p + 2 * PAGE - 1, 2);
	OK(cudaMemcpy(dev, p, 2 * PAGE, UP));
	munmap(p, 2 * PAGE);
	BAD(cudaMemcpy(dev, pinned + 2 * PAGE - 8, 16, UP), cudaErrorInvalidValue);
	BAD(cudaMemcpy(pinned + 2 * PAGE - 8, dev, 16, DOWN), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev + M - 8, heap, 16, UP), cudaErrorInvalidValue);
	BAD(cudaMemcpy(heap, dev + M - 8, 16, DOWN), cudaErrorInvalidValue);
	BAD(cudaMemset(dev + M - 8, 0, 16), cudaErrorInvalidValue);
}

static void read_only(void)
{
	char *p = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	REQUIRE(p != MAP_FAILED, "mmap");
	OK(cudaMemcpy(dev, p, 4 * PAGE, UP));
	if (in_guest())
		BAD(cudaMemcpy(p, dev, 4 * PAGE, DOWN), cudaErrorInvalidValue);
	munmap(p, 4 * PAGE);
}

static void the_other_side(void)
{
	/* Host memory where the direction says device, and device memory where it says host. */
	BAD(cudaMemcpy(heap, heap + 64, 16, UP), cudaErrorInvalidValue);
	BAD(cudaMemcpy(heap, heap + 64, 16, DOWN), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev, heap, 16, DOWN), cudaErrorInvalidValue);
	BAD(cudaMemcpy(heap, dev, 16, UP), cudaErrorInvalidValue);
	BAD(cudaMemcpy(heap, dev, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
	BAD(cudaMemcpy(dev, heap, 16, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
	BAD(cudaMemset(heap, 0, 16), cudaErrorInvalidValue);
	BAD(cudaHostRegister(dev, PAGE, 0), cudaErrorInvalidValue);
	BAD(cudaHostUnregister(dev), cudaErrorInvalidValue);
	BAD(cudaHostRegister(pinned, PAGE, 0), cudaErrorInvalidValue);
	BAD(cudaHostUnregister(pinned), cudaErrorInvalidValue);
}

static void not_yours_to_free(void)
{
	void *p;

	BAD(cudaFreeHost(heap), cudaErrorInvalidValue);
	BAD(cudaFreeHost(&p), cudaErrorInvalidValue);
	BAD(cudaFreeHost(dev), cudaErrorInvalidValue);
	BAD(cudaFreeHost(pinned + 8), cudaErrorInvalidValue);
	BAD(cudaFree(heap), cudaErrorInvalidValue);
	BAD(cudaFree(pinned), cudaErrorInvalidValue);
	BAD(cudaFree(dev + 8), cudaErrorInvalidValue);
	OK(cudaMallocHost(&p, M));
	OK(cudaFreeHost(p));
	BAD(cudaFreeHost(p), cudaErrorInvalidValue);
	OK(cudaHostRegister(heap, M, 0));
	BAD(cudaFreeHost(heap), cudaErrorInvalidValue);
	OK(cudaHostUnregister(heap));
}

/* free() of pinned memory ends the program with libc's own message and signal. */
static void free_of_pinned(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		close(STDERR_FILENO);
		free(pinned);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
			WTERMSIG(status) == SIGABRT,
		"status %x", status);
	still_works();
}

static void registered(char *p)
{
	BAD(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
	OK(cudaHostRegister(p, 8 * PAGE, 0));
	BAD(cudaHostRegister(p, 8 * PAGE, 0), cudaErrorHostMemoryAlreadyRegistered);
	BAD(cudaHostRegister(p + PAGE, 100, 0), cudaErrorHostMemoryAlreadyRegistered);
	BAD(cudaHostRegister(p + 8 * PAGE - 1, PAGE, 0), cudaErrorHostMemoryAlreadyRegistered);
	BAD(cudaHostUnregister(p + 8), cudaErrorInvalidValue);
	BAD(cudaHostUnregister(p + 8 * PAGE), cudaErrorHostMemoryNotRegistered);
	OK(cudaHostUnregister(p));
	BAD(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
	BAD(cudaHostRegister(p, 0, 0), cudaErrorInvalidValue);
	BAD(cudaHostRegister(NULL, PAGE, 0), cudaErrorInvalidValue);
	BAD(cudaHostUnregister(NULL), cudaErrorInvalidValue);
}

static void too_much(void)
{
	size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * PAGE;
	char *big = malloc(4 * all);
	void *p;

	if (in_guest())
		BAD(cudaMallocHost(&p, 4 * all), cudaErrorMemoryAllocation);
	BAD(cudaHostAlloc(&p, (size_t)1 << 45, 0), cudaErrorMemoryAllocation);
	BAD(cudaMalloc(&p, (size_t)1 << 45), cudaErrorMemoryAllocation);
	BAD(cudaHostRegister(heap, 4 * all, 0), cudaErrorMemoryAllocation);
	REQUIRE(big, "addresses are free of charge");
	BAD(cudaHostRegister(big, 4 * all, 0), cudaErrorMemoryAllocation);
	BAD(cudaMemcpy(dev, big, 4 * all, UP), cudaErrorInvalidValue);
	free(big);
}

/* An ordinary user may lock 64 KiB. Copies do not count as locked memory. */
static void locked_limit(void)
{
	const struct rlimit limit = {65536, 65536};
	pid_t pid;
	int status;

	if (!in_guest() || getuid()) {
		puts("RLIMIT_MEMLOCK: in a guest, by root");
		return;
	}
	pid = fork();
	if (pid == 0) {
		char *p = pages(64);

		REQUIRE(!setrlimit(RLIMIT_MEMLOCK, &limit) && !setgid(65534) && !setuid(65534),
			"an ordinary user");
		OK(cudaMalloc((void **)&dev, M));
		BAD(cudaHostRegister(p, 64 * PAGE, 0), cudaErrorMemoryAllocation);
		OK(cudaHostRegister(p, 16 * PAGE, 0));
		BAD(cudaHostRegister(p + 32 * PAGE, PAGE, 0), cudaErrorMemoryAllocation);
		OK(cudaMemcpy(dev, p, 64 * PAGE, UP));
		OK(cudaHostUnregister(p));
		OK(cudaHostRegister(p + 32 * PAGE, PAGE, 0));
		/* Chunks do not count as locked pages. */
		OK(cudaMallocHost((void **)&p, 8 * M));
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && status == 0, "status %x", status);
}

int main(void)
{
	OK(cudaMalloc((void **)&dev, M));
	OK(cudaMallocHost((void **)&pinned, 2 * PAGE));
	heap = malloc(M);
	REQUIRE(heap, "malloc");
	memset(heap, 1, M);
	still_works();
	not_mapped();
	wraps();
	crosses_its_end();
	read_only();
	the_other_side();
	not_yours_to_free();
	free_of_pinned();
	registered(heap);
	registered(heap + 100);
	registered(pages(16));
	too_much();
	locked_limit();
	OK(cudaFreeHost(pinned));
	OK(cudaFree(dev));
	free(heap);
	return 0;
}
