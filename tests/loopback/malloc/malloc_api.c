// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * malloc and its family as a program sees them when large allocations are chunks: bad input first,
 * then alignment, zeroing, usable size, growing and shrinking, and sizes on both sides of the
 * threshold.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loopback/check.h"

#define K      ((size_t)1 << 10)
#define M      ((size_t)1 << 20)
#define G      ((size_t)1 << 30)
#define WINDOW 0x200000000000ull
#define LIMIT  (128 * K)

static bool in_chunks(const void *p)
{
	return (uintptr_t)p - WINDOW < 1ull << 40;
}

/* ---- what must fail ---- */

#define FAILS(call, code)                                                                      \
	do {                                                                                   \
		errno = 0;                                                                     \
		REQUIRE((call) == NULL && errno == (code), "errno %d, not %d", errno, (code)); \
	} while (0)

static void bad_input(void)
{
	volatile size_t huge = SIZE_MAX, half = PTRDIFF_MAX, big = (size_t)1 << 33;
	volatile size_t none = 0, three = 3, odd = 4095;
	char *p = malloc(M);
	void *out = p;

	FAILS(malloc(huge), ENOMEM);
	FAILS(malloc(huge - 4096), ENOMEM);
	FAILS(malloc(half + 1), ENOMEM);
	FAILS(malloc(half), ENOMEM);
	FAILS(calloc(huge, 2), ENOMEM);
	FAILS(calloc(half, 3), ENOMEM);
	FAILS(calloc(big, big / 4), ENOMEM);
	FAILS(realloc(p, huge), ENOMEM);
	FAILS(realloc(p, half + 1), ENOMEM);
	FAILS(reallocarray(p, half, 3), ENOMEM);
	FAILS(reallocarray(NULL, huge, 2), ENOMEM);
	FAILS(memalign(64, huge), ENOMEM);
	FAILS(aligned_alloc(4096, huge - 100), ENOMEM);
	FAILS(aligned_alloc(none, M), EINVAL);
	FAILS(aligned_alloc(three, M), EINVAL);
	FAILS(aligned_alloc(odd, 10), EINVAL);
	FAILS(valloc(huge), ENOMEM);
	FAILS(pvalloc(huge), ENOMEM);
	REQUIRE(posix_memalign(&out, 0, M) == EINVAL, "alignment 0");
	REQUIRE(posix_memalign(&out, 4, M) == EINVAL, "alignment 4");
	REQUIRE(posix_memalign(&out, 24, M) == EINVAL, "alignment 24");
	REQUIRE(posix_memalign(&out, 64, huge) == ENOMEM, "all memory");
	REQUIRE(out == p, "the result was written");
	REQUIRE(malloc_usable_size(NULL) == 0, "size of nothing");
	free(NULL);
	memset(p, 1, M);
	free(p);
}

/* Runs a function in a child. Returns how the child ends. */
static int ends(void (*what)(void))
{
	pid_t pid = fork();
	int status;

	REQUIRE(pid >= 0, "fork");
	if (pid == 0) {
		/* Hides the child's message. */
		close(STDERR_FILENO);
		what();
		_exit(0);
	}
	REQUIRE(waitpid(pid, &status, 0) == pid, "waitpid");
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static char *shared, *own, *pinned;

static void free_twice(void)
{
	free(shared);
	free(shared);
}

static void free_inside(void)
{
	free(own + 4096);
}

static void free_pinned(void)
{
	free(pinned);
}

static void realloc_pinned(void)
{
	pinned = realloc(pinned, 2 * M);
}

static void wrong_pointers(void)
{
	shared = malloc(M);
	own = malloc(20 * M);
	OK(cudaMallocHost((void **)&pinned, M));
	REQUIRE(ends(free_twice) == SIGABRT, "a second free");
	REQUIRE(ends(free_inside) == SIGABRT, "free in the middle");
	REQUIRE(ends(free_pinned) == SIGABRT, "free of pinned memory");
	REQUIRE(ends(realloc_pinned) == SIGABRT, "realloc of pinned memory");
	REFUSED(cudaFreeHost(shared), cudaErrorInvalidValue);
	REFUSED(cudaFreeHost(own), cudaErrorInvalidValue);
	OK(cudaFreeHost(pinned));
	free(shared);
	free(own);
}

/* ---- what must work ---- */

static void threshold(void)
{
	char *below = malloc(LIMIT - 1), *at = malloc(LIMIT), *above = malloc(LIMIT + 1);
	char *zeroes = calloc(LIMIT / 8, 8), *few = calloc(LIMIT / 8 - 1, 8);

	REQUIRE(below && !in_chunks(below), "%p", below);
	REQUIRE(at && in_chunks(at), "%p", at);
	REQUIRE(above && in_chunks(above), "%p", above);
	REQUIRE(zeroes && in_chunks(zeroes), "%p", zeroes);
	REQUIRE(few && !in_chunks(few), "%p", few);
	free(below);
	free(at);
	free(above);
	free(zeroes);
	free(few);
}

static void sizes(void)
{
	static const size_t some[] = {0,     1,		24,	   4096,  LIMIT - 1,
				      LIMIT, LIMIT + 1, 999999,	   2 * M, 4 * M - 1,
				      4 * M, 4 * M + 1, 33 * M + 7};
	size_t i, usable;

	for (i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		char *p = malloc(some[i]);

		REQUIRE(p, "%zu", some[i]);
		REQUIRE((uintptr_t)p % _Alignof(max_align_t) == 0, "%p", p);
		usable = malloc_usable_size(p);
		REQUIRE(usable >= some[i], "%zu of %zu", usable, some[i]);
		/* The program can use all of it. */
		memset(p, 0x77, usable);
		free(p);
	}
}

static void alignment(void)
{
	static const size_t some[] = {1, LIMIT - 1, LIMIT, M + 1, 5 * M};
	volatile size_t uneven = 3000;
	size_t align, i;

	for (align = 8; align <= 64 * M; align *= 2) {
		for (i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
			char *a = aligned_alloc(align, some[i]), *b = memalign(align, some[i]), *c;

			REQUIRE(posix_memalign((void **)&c, align, some[i]) == 0, "%zu", align);
			REQUIRE(a && b, "out of memory");
			REQUIRE(((uintptr_t)a | (uintptr_t)b | (uintptr_t)c) % align == 0,
				"%p %p %p at %zu", a, b, c, align);
			a[0] = b[0] = c[0] = 1;
			a[some[i] - 1] = b[some[i] - 1] = c[some[i] - 1] = 2;
			free(a);
			free(b);
			free(c);
		}
	}
	for (i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		char *v = valloc(some[i]), *p = pvalloc(some[i]), *odd = memalign(uneven, some[i]);

		REQUIRE(v && p && odd, "out of memory");
		REQUIRE((uintptr_t)v % 4096 == 0 && (uintptr_t)p % 4096 == 0, "%p %p", v, p);
		REQUIRE((uintptr_t)odd % 4096 == 0, "%p", odd);
		REQUIRE(malloc_usable_size(p) >= ((some[i] + 4095) & ~(size_t)4095), "pvalloc");
		free(v);
		free(p);
		free(odd);
	}
}

/* Each byte is as the one before it. memcmp() is much faster than a loop in an emulated guest. */
static bool all(const char *p, size_t from, size_t to, char value)
{
	return from >= to || (p[from] == value && !memcmp(p + from, p + from + 1, to - from - 1));
}

static void zeroes(void)
{
	static const size_t some[] = {100, LIMIT, 300 * K, 3 * M, 40 * M};
	size_t i, round;

	for (i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		for (round = 0; round < 4; round++) {
			char *p = calloc(some[i] / 4, 4);

			REQUIRE(p && all(p, 0, some[i] / 4 * 4, 0), "%zu, round %zu", some[i],
				round);
			memset(p, 0xff, some[i]);
			free(p);
		}
	}
}

/* A block that grows on and on is moved when it becomes large, and then stays where it is. */
static void grows_in_place(void)
{
	unsigned int moved = 0;
	char *p = malloc(M), *q;
	size_t size;

	REQUIRE(p, "out of memory");
	p[0] = 5;
	for (size = 2 * M; size <= 512 * M; size *= 2) {
		q = realloc(p, size);
		REQUIRE(q && in_chunks(q) && q[0] == 5, "growth to %zu", size);
		moved += q != p && size > 8 * M;
		p = q;
		p[size - 1] = 1;
	}
	REQUIRE(!moved, "moved %u times", moved);
	free(p);
}

static void reallocs(void)
{
	size_t size, old = 0, i;
	char *p = NULL, *q;

	for (size = 1; size < 300 * M; size = size * 3 / 2 + 1) {
		p = realloc(p, size);
		REQUIRE(p && all(p, 0, old, 9), "growth from %zu to %zu", old, size);
		memset(p + old, 9, size - old);
		old = size;
	}
	for (size = old; size > 0; size = size * 2 / 3) {
		p = realloc(p, size);
		REQUIRE(p && all(p, 0, size, 9), "shrinking to %zu", size);
	}
	REQUIRE(!in_chunks(p), "%p: a byte keeps a chunk", p);
	REQUIRE(realloc(p, 0) == NULL, "realloc to nothing");
	p = malloc(M);
	REQUIRE(realloc(p, 0) == NULL, "realloc to nothing");
	p = realloc(NULL, M);
	REQUIRE(p && in_chunks(p), "%p", p);
	memset(p, 4, M);
	p = reallocarray(p, 3, M);
	REQUIRE(p && malloc_usable_size(p) >= 3 * M && all(p, 0, M, 4), "reallocarray");
	/* Across the threshold in both directions. */
	for (i = 0; i < 10; i++) {
		p = realloc(p, 1000);
		REQUIRE(p && all(p, 0, 1000, 4), "to libc");
		p = realloc(p, 2 * M);
		REQUIRE(p && all(p, 0, 1000, 4), "to chunks");
		memset(p, 4, 2 * M);
	}
	/* Grows in place if the memory behind it is free. */
	free(p);
	p = malloc(500 * K);
	q = realloc(p, 900 * K);
	REQUIRE(q == p, "moved from %p to %p", p, q);
	free(q);
}

static void errno_survives_free(void)
{
	char *p = malloc(400 * M), *q = malloc(100);

	REQUIRE(p && q, "out of memory");
	errno = 4711;
	free(p);
	free(q);
	p = malloc(M);
	free(p);
	REQUIRE(errno == 4711, "%d", errno);
}

static size_t resident(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	size_t pages = 0;

	REQUIRE(f && fscanf(f, "%*s %zu", &pages) == 1, "statm");
	fclose(f);
	return pages * 4096;
}

/* Far more than the machine has. Memory that is not touched costs nothing. */
static void barely_touched(void)
{
	size_t before = resident();
	char *p = malloc(16 * G), *z = calloc(16, G);

	REQUIRE(p && z && in_chunks(p) && in_chunks(z), "%p %p", p, z);
	p[0] = p[7 * G] = p[16 * G - 1] = 1;
	REQUIRE(z[5 * G] == 0, "calloc");
	REQUIRE(resident() - before < 64 * M, "%zu bytes", resident() - before);
	free(p);
	free(z);
}

static void *give_back(void *p)
{
	REQUIRE(all(*(char **)p, 0, M, 6), "content");
	free(*(char **)p);
	*(char **)p = malloc(5 * M);
	memset(*(char **)p, 7, 5 * M);
	return NULL;
}

static void across_threads(void)
{
	char *p = malloc(M);
	pthread_t t;

	memset(p, 6, M);
	REQUIRE(!pthread_create(&t, NULL, give_back, &p), "thread");
	pthread_join(t, NULL);
	REQUIRE(all(p, 0, 5 * M, 7), "content");
	free(p);
}

/* Freed by an exit handler that runs after the library's own exit code. */
static char *kept[3];

static void last(void)
{
	size_t i;

	for (i = 0; i < 3; i++)
		free(kept[i]);
	kept[0] = malloc(M);
	memset(kept[0], 1, M);
}

int main(void)
{
	char *early = malloc(M);

	REQUIRE(early && !in_chunks(early), "no kernel, no CUDA call, and yet a chunk: %p", early);
	memset(early, 5, M);
	OK(cudaFree(NULL));
	atexit(last);
	bad_input();
	wrong_pointers();
	threshold();
	sizes();
	alignment();
	zeroes();
	reallocs();
	grows_in_place();
	errno_survives_free();
	barely_touched();
	across_threads();
	early = realloc(early, 2 * M);
	REQUIRE(early && in_chunks(early) && all(early, 0, M, 5), "%p", early);
	free(early);
	kept[0] = malloc(100);
	kept[1] = malloc(M);
	kept[2] = malloc(9 * M);
	return 0;
}
