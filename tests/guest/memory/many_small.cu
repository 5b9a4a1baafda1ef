// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Thousands of small allocations of device memory, of one size and of many, by one thread and by
 * eight, freed in another order. Each has its own memory. The first argument is how many the one
 * thread has.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

#define MANY	2000
#define THREADS 8

struct piece {
	char *at;
	size_t size;
};

static int by_address(const void *a, const void *b)
{
	const struct piece *x = (const struct piece *)a, *y = (const struct piece *)b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Each piece holds its number. No two overlap. */
static void check(struct piece *p, int n)
{
	unsigned int got;

	for (int i = 0; i < n; i++)
		CHECK(cudaMemcpy(p[i].at + p[i].size - 4, &i, 4, cudaMemcpyHostToDevice));
	for (int i = 0; i < n; i++) {
		CHECK(cudaMemcpy(&got, p[i].at + p[i].size - 4, 4, cudaMemcpyDeviceToHost));
		REQUIRE(got == (unsigned int)i, "piece %d holds %u", i, got);
	}
	qsort(p, n, sizeof(*p), by_address);
	for (int i = 1; i < n; i++)
		REQUIRE(p[i - 1].at + p[i - 1].size <= p[i].at, "%p with %zu bytes reaches %p", p[i - 1].at,
			p[i - 1].size, p[i].at);
}

static void get(struct piece *p, size_t size)
{
	p->size = size;
	CHECK(cudaMalloc(&p->at, size));
}

/* Sizes in runs, so that an allocation of another size comes between others of the same. */
static void *runs(void *arg)
{
	unsigned int seed = (unsigned int)(size_t)arg;
	struct piece p[300];
	int n = 0;

	for (int round = 0; round < 3; round++) {
		while (n < 300) {
			size_t size = (size_t)4096 << rand_r(&seed) % 7;

			for (int row = rand_r(&seed) % 40; row >= 0 && n < 300; row--)
				get(&p[n++], size);
			if (rand_r(&seed) % 4 == 0)
				CHECK(cudaFree(p[--n].at));
		}
		check(p, n);
		while (n > 100)
			CHECK(cudaFree(p[--n].at));
	}
	while (n)
		CHECK(cudaFree(p[--n].at));
	return NULL;
}

int main(int argc, char **argv)
{
	static struct piece p[MANY];
	const int many = argc > 1 ? atoi(argv[1]) : MANY;
	pthread_t thread[THREADS];

	REQUIRE(many > 0 && many <= MANY, "%d", many);
	for (int i = 0; i < many; i++)
		get(&p[i], 64 << 10);
	check(p, many);
	for (int i = 0; i < many; i += 2)
		CHECK(cudaFree(p[i].at));
	for (int i = 0; i < many; i += 2)
		get(&p[i], 64 << 10);
	check(p, many);
	for (int i = 0; i < many; i++)
		CHECK(cudaFree(p[i].at));
	EXPECT(cudaFree(p[0].at), cudaErrorInvalidValue);
	for (size_t i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, runs, (void *)i), "pthread_create");
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	return verified("thousands of small pieces");
}
