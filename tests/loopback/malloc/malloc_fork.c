// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * fork() with memory in chunks. The child reads what was there before the fork. From then on,
 * neither process sees what the other writes. Both can allocate, free and use CUDA. A fork in the
 * middle of other threads' allocations leaves no lock held. As long as the child does not use CUDA,
 * its new memory is libc's. The first argument says how often it forks beside threads (100 times).
 */
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loopback/check.h"

#define M      ((size_t)1 << 20)
#define WINDOW 0x200000000000ull

static char *small, *large, *pinned;
static int to_child[2], to_parent[2];

static bool in_chunks(const void *p)
{
	return (uintptr_t)p - WINDOW < 1ull << 40;
}

static bool all(const char *p, size_t len, char value)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != value)
			return false;
	return true;
}

static void signal_other(const int *pipe)
{
	REQUIRE(write(pipe[1], "", 1) == 1, "write");
}

static void wait_for_other(const int *pipe)
{
	char c;

	REQUIRE(read(pipe[0], &c, 1) == 1, "read");
}

static void wait_child(pid_t pid)
{
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status),
		"the child ended with status %x", status);
}

static void child(void)
{
	char *p, *dev;

	/* The parent has written when this returns. */
	wait_for_other(to_child);
	REQUIRE(all(small, M, 1) && all(large, 20 * M, 2), "the parent's writes are seen");
	REQUIRE(malloc_usable_size(small) >= M, "%zu", malloc_usable_size(small));
	memset(small, 5, M);
	memset(large, 6, 20 * M);
	signal_other(to_parent);

	p = malloc(M);
	REQUIRE(p && !in_chunks(p), "no CUDA call, and yet a chunk");
	memset(p, 1, M);
	small = realloc(small, 3 * M);
	REQUIRE(small && all(small, M, 5), "realloc of inherited memory");
	free(large);
	OK(cudaMalloc((void **)&dev, 3 * M));
	OK(cudaMemcpy(dev, small, 3 * M, cudaMemcpyHostToDevice));
	large = malloc(3 * M);
	REQUIRE(large && in_chunks(large), "%p", large);
	OK(cudaMemcpy(large, dev, 3 * M, cudaMemcpyDeviceToHost));
	REQUIRE(all(large, M, 5), "a copy in the child");
	free(large);
	free(small);
	free(p);
	OK(cudaFree(dev));
}

static void private_copy(void)
{
	char *dev, *back;
	pid_t pid;

	small = malloc(M);
	large = malloc(20 * M);
	REQUIRE(small && large && in_chunks(small) && in_chunks(large), "%p %p", small, large);
	OK(cudaMallocHost((void **)&pinned, M));
	OK(cudaMalloc((void **)&dev, 20 * M));
	memset(small, 1, M);
	memset(large, 2, 20 * M);
	OK(cudaMemcpy(dev, large, 20 * M, cudaMemcpyHostToDevice));
	pid = fork();
	REQUIRE(pid >= 0, "fork");
	if (pid == 0) {
		child();
		_exit(0);
	}
	/* If the child dies, its pipe ends. */
	close(to_parent[1]);
	memset(small, 3, M);
	memset(large, 4, 20 * M);
	signal_other(to_child);
	wait_for_other(to_parent);
	REQUIRE(all(small, M, 3) && all(large, 20 * M, 4), "the child's writes are seen");
	/* The GPU still finds the parent's memory at its place. */
	OK(cudaMemcpy(dev, large, 20 * M, cudaMemcpyHostToDevice));
	back = malloc(20 * M);
	OK(cudaMemcpy(back, dev, 20 * M, cudaMemcpyDeviceToHost));
	REQUIRE(all(back, 20 * M, 4), "a copy after fork");
	wait_child(pid);
	free(small);
	free(large);
	free(back);
	OK(cudaFree(dev));
	OK(cudaFreeHost(pinned));
}

/* ---- fork while others allocate ---- */

static atomic_bool stop;

static void *busy(void *unused)
{
	(void)unused;
	while (!atomic_load(&stop)) {
		char *p = malloc(M), *q = malloc(10 * M);

		p[0] = q[0] = 1;
		free(p);
		free(q);
	}
	return NULL;
}

static void among_threads(int forks)
{
	pthread_t t[4];
	int i;

	for (i = 0; i < 4; i++)
		REQUIRE(!pthread_create(&t[i], NULL, busy, NULL), "thread");
	for (i = 0; i < forks; i++) {
		char *p = malloc(M);
		pid_t pid;

		memset(p, 8, M);
		pid = fork();
		REQUIRE(pid >= 0, "fork");
		if (pid == 0) {
			REQUIRE(all(p, M, 8), "content");
			free(p);
			free(malloc(30 * M));
			_exit(0);
		}
		wait_child(pid);
		free(p);
	}
	atomic_store(&stop, true);
	for (i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
}

/* ---- atfork handlers of the program ---- */

static char *in_handler;
static bool handlers_on;

static void handler(void)
{
	if (!handlers_on)
		return;
	free(in_handler);
	in_handler = malloc(2 * M);
	free(malloc(40 * M));
	free(malloc(100));
	memset(in_handler, 7, 2 * M);
}

static void handlers(void)
{
	pid_t pid;

	handlers_on = true;
	in_handler = malloc(50 * M);
	pid = fork();
	REQUIRE(pid >= 0, "fork");
	if (pid == 0) {
		REQUIRE(all(in_handler, 2 * M, 7), "content");
		free(in_handler);
		_exit(0);
	}
	wait_child(pid);
	REQUIRE(all(in_handler, 2 * M, 7), "content");
	free(in_handler);
	handlers_on = false;
}

static void early(void)
{
	pthread_atfork(handler, handler, handler);
}

/*
 * Runs before the constructor of any library, so that the handlers run while fork() holds the
 * library's locks.
 */
__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = early;

int main(int argc, char **argv)
{
	REQUIRE(!pipe(to_child) && !pipe(to_parent), "pipe");
	OK(cudaFree(NULL));
	private_copy();
	handlers();
	among_threads(argc > 1 ? atoi(argv[1]) : 100);
	return 0;
}
