// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Eight threads allocate, resize and free at random, often memory that another thread has
 * allocated, and check the content. Each does 10,000 operations, or as many as the first argument
 * says.
 */
#include <malloc.h>
#include <pthread.h>

#include "tests/loopback/check.h"

#define THREADS 8
#define SLOTS	64

struct slot {
	pthread_mutex_t lock;
	unsigned char *p;
	size_t size;
	unsigned char mark;
};

static struct slot slots[SLOTS];
static unsigned long operations = 10000;

static uint32_t next(uint32_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 17;
	*x ^= *x << 5;
	return *x;
}

/* From a few bytes to 1 MiB, sometimes up to 32 MiB. */
static size_t some_size(uint32_t *x)
{
	size_t size = (size_t)16 << next(x) % (next(x) % 16 ? 17 : 22);

	return size + next(x) % size;
}

/* Writes only one byte in each page and the ends, so that the allocator has most of the work. */
static void mark(struct slot *s, size_t from, unsigned char value)
{
	size_t i;

	for (i = from; i < s->size; i += 4096)
		s->p[i] = value;
	s->p[s->size - 1] = value;
}

static void check(const struct slot *s, size_t size)
{
	size_t i;

	for (i = 0; i < size; i += 4096)
		REQUIRE(s->p[i] == s->mark, "byte %zu of %zu at %p: %u, not %u", i, s->size, s->p,
			s->p[i], s->mark);
}

static void allocate(struct slot *s, uint32_t *x)
{
	uint32_t how = next(x) % 4;
	size_t align = (size_t)16 << next(x) % 18;

	s->size = some_size(x);
	if (how == 0) {
		size_t i;

		s->p = calloc(1, s->size);
		REQUIRE(s->p, "out of memory");
		for (i = 0; i < s->size; i += 512)
			REQUIRE(s->p[i] == 0, "calloc: byte %zu of %zu", i, s->size);
	} else if (how == 1) {
		s->p = aligned_alloc(align, s->size);
		REQUIRE((uintptr_t)s->p % align == 0, "%p at %zu", s->p, align);
	} else {
		s->p = malloc(s->size);
	}
	REQUIRE(s->p && malloc_usable_size(s->p) >= s->size, "%p, %zu", s->p, s->size);
	s->mark = (unsigned char)(next(x) | 1);
	mark(s, 0, s->mark);
}

static void resize(struct slot *s, uint32_t *x)
{
	size_t old = s->size;

	s->size = some_size(x);
	s->p = realloc(s->p, s->size);
	REQUIRE(s->p, "out of memory");
	check(s, old < s->size ? old : s->size);
	mark(s, 0, s->mark);
}

static void *run(void *arg)
{
	unsigned int self = (unsigned int)(uintptr_t)arg;
	uint32_t x = 2654435769u * (self + 1);
	unsigned long i;

	for (i = 0; i < operations; i++) {
		struct slot *s = &slots[next(&x) % SLOTS];

		pthread_mutex_lock(&s->lock);
		if (!s->p) {
			allocate(s, &x);
		} else {
			check(s, s->size);
			if (next(&x) % 3 == 0) {
				resize(s, &x);
			} else {
				free(s->p);
				s->p = NULL;
			}
		}
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[THREADS];
	uintptr_t i;

	OK(cudaFree(NULL));
	if (argc > 1)
		operations = strtoul(argv[1], NULL, 10);
	for (i = 0; i < SLOTS; i++)
		pthread_mutex_init(&slots[i].lock, NULL);
	for (i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&t[i], NULL, run, (void *)i), "thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < SLOTS; i++)
		free(slots[i].p);
	printf("%d threads did %lu operations each\n", THREADS, operations);
	return 0;
}
