// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory of malloc that is freed or resized while it is registered, or that is never unregistered.
 * With NVIDIA's runtime, the GPU keeps the pages until cudaHostUnregister. Until then the memory
 * must not be given out again, copies in flight must end well, and unregistering must work as
 * usual.
 */
#include <malloc.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loopback/check.h"

#define M      ((size_t)1 << 20)
#define WINDOW 0x200000000000ull
#define TURNS  64

static char *dev;

static bool in_chunks(const void *p)
{
	return (uintptr_t)p - WINDOW < 1ull << 40;
}

static bool apart(const char *a, size_t a_len, const char *b, size_t b_len)
{
	return a + a_len <= b || b + b_len <= a;
}

/*
 * The allocator would normally give the block out again at once. It must not do so, for any size.
 */
static void not_reused(const char *p, size_t len)
{
	static char *other[TURNS];
	size_t i;

	for (i = 0; i < TURNS; i++) {
		size_t size = i % 2 ? len : len / 2 + 128 * 1024;

		other[i] = malloc(size);
		REQUIRE(other[i] && apart(p, len, other[i], size), "%p and %p", p, other[i]);
		memset(other[i], 0x77, 4096);
	}
	for (i = 0; i < TURNS; i++)
		free(other[i]);
}

/* The memory must now be given out again to one of many allocations, or be unmapped as a whole. */
static void reused(const char *p, size_t len)
{
	static char *other[4 * TURNS];
	bool found = false;
	size_t i;

	for (i = 0; i < 4 * TURNS; i++) {
		other[i] = malloc(len);
		found |= !apart(p, len, other[i], len);
	}
	REQUIRE(found || goes_back(p), "%p, %zu bytes: nobody gets them", p, len);
	for (i = 0; i < 4 * TURNS; i++)
		free(other[i]);
}

static void freed_first(size_t len)
{
	struct cudaPointerAttributes attr;
	char *p = malloc(len), *back = malloc(len);
	cudaStream_t stream;

	REQUIRE(p && back && in_chunks(p), "%p", p);
	OK(cudaStreamCreate(&stream));
	fill(p, len, 1);
	OK(cudaHostRegister(p, len, 0));
	OK(cudaMemcpyAsync(dev, p, len, cudaMemcpyHostToDevice, stream));
	free(p);
	not_reused(p, len);
	OK(cudaStreamSynchronize(stream));
	OK(cudaMemcpy(back, dev, len, cudaMemcpyDeviceToHost));
	OK(cudaPointerGetAttributes(&attr, p));
	REQUIRE(attr.type == cudaMemoryTypeHost, "type %d", attr.type);
	REFUSED(cudaHostRegister(p, len, 0), cudaErrorHostMemoryAlreadyRegistered);
	/* The GPU still finds the content, too. */
	REQUIRE(differs(p, back, len) == len, "byte %zu", differs(p, back, len));
	OK(cudaHostUnregister(p));
	REFUSED(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
	reused(p, len);
	OK(cudaStreamDestroy(stream));
	free(back);
}

/*
 * Pieces of a block, registered one after the other. The last one to be unregistered frees the
 * block.
 */
static void in_pieces(void)
{
	char *p = malloc(M);

	OK(cudaHostRegister(p + 100, 1000, 0));
	OK(cudaHostRegister(p + 300000, 500000, 0));
	free(p);
	not_reused(p, M);
	OK(cudaHostUnregister(p + 300000));
	not_reused(p, M);
	OK(cudaHostUnregister(p + 100));
	reused(p, M);
}

/* Shrinking a registered block must not give a part of it to another allocation. */
static void shrunk(void)
{
	char *p = malloc(2 * M), *q, *grown;

	fill(p, 2 * M, 3);
	OK(cudaHostRegister(p, 2 * M, 0));
	q = realloc(p, 256 << 10);
	REQUIRE(q == p && malloc_usable_size(q) >= 256 << 10, "%p", q);
	not_reused(p, 2 * M);
	OK(cudaMemcpy(dev, p, 2 * M, cudaMemcpyHostToDevice));
	/* If it cannot grow in place, the old block stays until it is unregistered. */
	grown = realloc(p, 60 * M);
	REQUIRE(grown && (grown == p || apart(p, 2 * M, grown, 60 * M)), "%p", grown);
	if (grown != p)
		not_reused(p, 2 * M);
	q = malloc(2 * M);
	fill(q, 2 * M, 3);
	REQUIRE(differs(q, grown, 256 << 10) == 256 << 10, "the content");
	OK(cudaHostUnregister(p));
	free(grown);
	free(q);
}

/*
 * A download is still in its stream when the memory is unregistered and freed. The download is done
 * when cudaHostUnregister returns, and does not write to another allocation's memory.
 */
static void in_flight(void)
{
	const size_t len = M;
	cudaStream_t stream;
	char *p, *q;
	int i, k;

	OK(cudaStreamCreate(&stream));
	for (i = 0; i < 20; i++) {
		p = malloc(len);
		memset(p, 0, len);
		OK(cudaHostRegister(p, len, 0));
		for (k = 0; k < 8; k++)
			OK(cudaMemsetAsync(dev, k, 64 * M, stream));
		OK(cudaMemcpyAsync(p, dev, len, cudaMemcpyDeviceToHost, stream));
		OK(cudaHostUnregister(p));
		REQUIRE(p[0] == 7 && p[len - 1] == 7, "round %d: it was not waited for", i);
		free(p);
		q = malloc(len);
		memset(q, 0x55, len);
		OK(cudaStreamSynchronize(stream));
		REQUIRE(q[0] == 0x55 && q[len - 1] == 0x55 && differs(q, q + 1, len - 1) == len - 1,
			"round %d: another one's memory was written", i);
		free(q);
	}
	OK(cudaStreamDestroy(stream));
}

static char *block;

static void free_twice(void)
{
	block = malloc(M);
	OK(cudaHostRegister(block, M, 0));
	free(block);
	free(block);
}

static void free_again(void)
{
	block = malloc(M);
	OK(cudaHostRegister(block, M, 0));
	free(block);
	OK(cudaHostUnregister(block));
	free(block);
}

static void wrong(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		close(STDERR_FILENO);
		OK(cudaFree(NULL));
		what();
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
			WTERMSIG(status) == SIGABRT,
		"status %x", status);
}

/* The registration belongs to the parent. For its child, the block is freed memory. */
static void forked(void)
{
	char *p = malloc(M);
	int status;
	pid_t pid;

	memset(p, 9, M);
	OK(cudaHostRegister(p, M, 0));
	free(p);
	pid = fork();
	if (pid == 0) {
		char *q = malloc(M);

		memset(q, 1, M);
		REFUSED(cudaHostUnregister(p), cudaErrorHostMemoryNotRegistered);
		free(q);
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid && status == 0, "status %x", status);
	not_reused(p, M);
	OK(cudaHostUnregister(p));
}

int main(void)
{
	OK(cudaMalloc((void **)&dev, 64 * M));
	wrong(free_twice);
	wrong(free_again);
	freed_first(M);
	freed_first(200 << 10);
	freed_first(20 * M);
	freed_first(M);
	in_pieces();
	shrunk();
	in_flight();
	forked();
	/* This block is never unregistered. */
	block = malloc(M);
	OK(cudaHostRegister(block, M, 0));
	free(block);
	OK(cudaFree(dev));
	return 0;
}
