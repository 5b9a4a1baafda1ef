// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Programs that take turns with more memory than the GPU has, and how much of the time they work:
 * turner FILE WHO MIB GPU_MIB TURN_MS TURNS. WHO is 0 or 1; each has MIB of the GPU's GPU_MIB, and
 * as many turns. FILE is shared by both, maybe by two VMs, so it is read and written, not mapped.
 *
 * A pass looks at every word of the memory and adds one to it. In its first turn a program counts
 * the passes of TURN_MS; each later turn is as many passes, and begins with memory that is away.
 *
 * turner FILE hold MIB: takes all memory but so much, and keeps it until it is killed.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/guest/check.h"

#define PIECES 32
#define BLOCK  256
#define MOVE   50e9 /* bytes a second that moves of memory may take */

/* Numbers in FILE, 64 bits each. */
enum {
	TURN,	 /* how many turns have ended: the next one is that of program TURN % 2 */
	READY,	 /* READY + WHO: the program has its context */
	GO = 3,	 /* the first turn may begin */
	HELD,	 /* the memory that is to be kept is taken */
	TURN_NS, /* TURN_NS + WHO: how long the passes of a turn take */
};

static int file;

static uint64_t get_number(int i)
{
	uint64_t v = 0;

	if (pread(file, &v, sizeof(v), i * sizeof(v)) < 0)
		exit(2);
	return v;
}

static void set_number(int i, uint64_t v)
{
	if (pwrite(file, &v, sizeof(v), i * sizeof(v)) != sizeof(v))
		exit(2);
}

static void wait_for_number(int i, uint64_t least)
{
	while (get_number(i) < least)
		usleep(1000);
}

static uint64_t ns_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* Each word is its number plus `value`. */
__global__ void fill(uint32_t *at, uint64_t words, uint32_t value)
{
	for (uint64_t i = blockIdx.x * BLOCK + threadIdx.x; i < words; i += gridDim.x * BLOCK)
		at[i] = value + (uint32_t)i;
}

__global__ void add_one(uint32_t *at, uint64_t words, uint32_t value, unsigned long long *wrong)
{
	for (uint64_t i = blockIdx.x * BLOCK + threadIdx.x; i < words; i += gridDim.x * BLOCK) {
		if (at[i] != value + (uint32_t)i)
			atomicAdd(wrong, 1);
		at[i] = value + 1 + (uint32_t)i;
	}
}

static uint32_t *piece[PIECES];
static uint64_t words; /* of a piece */
static uint32_t value;
static unsigned long long *wrong;
static unsigned int blocks;

static void make_pass(void)
{
	for (int i = 0; i < PIECES; i++)
		add_one<<<blocks, BLOCK>>>(piece[i], words, value + i, wrong);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	value++;
}

static void fill_memory(void)
{
	for (int i = 0; i < PIECES; i++) {
		CHECK(cudaMalloc(&piece[i], words * 4));
		fill<<<blocks, BLOCK>>>(piece[i], words, value + i);
	}
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

/* Returns how many passes fit into a turn. */
static unsigned int count_passes(unsigned int who, uint64_t turn_ns)
{
	unsigned int n = 0;
	uint64_t began;

	make_pass();
	began = ns_now();
	for (; !n || ns_now() - began < turn_ns; n++)
		make_pass();
	set_number(TURN_NS + who, ns_now() - began);
	return n;
}

static void hold_memory(uint64_t but)
{
	size_t free_bytes, total, some = 1 << 30;
	void *p;

	CHECK(cudaFree(0));
	CHECK(cudaMemGetInfo(&free_bytes, &total));
	for (; free_bytes > but; free_bytes -= some) {
		if (some > free_bytes - but)
			some = free_bytes - but;
		CHECK(cudaMalloc(&p, some));
	}
	set_number(HELD, 1);
	for (;;)
		pause();
}

/* Of the cycles between two turns of program 0. */
static void print_work(unsigned int cycles, uint64_t ns, double both, double gpu)
{
	double wall = ns / 1e9, over = both > gpu ? both - gpu : 0;
	double works = cycles * (get_number(TURN_NS) + get_number(TURN_NS + 1)) / 1e9;
	double moves = cycles * 4 * over / MOVE; /* each of two turns has it leave and come back */

	printf("%u cycles, %.2f s: %.2f s of work, %.2f s for moves of %.1f GB at 50 GB/s; of what "
	       "they leave the work is %.3f\n",
	       cycles, wall, works, moves, cycles * 4 * over / 1e9, works / (wall - moves));
}

int main(int argc, char **argv)
{
	unsigned int who = argc > 2 ? (unsigned int)atoi(argv[2]) : 0, passes = 0, turns, k;
	unsigned long long bad = 0;
	uint64_t bytes, began = 0, ended = 0;
	cudaDeviceProp prop;

	if (argc < 4)
		return 2;
	file = open(argv[1], O_RDWR | O_CREAT, 0600);
	bytes = strtoull(argv[3], NULL, 10) << 20;
	if (file < 0 || !bytes)
		return 2;
	if (!strcmp(argv[2], "hold"))
		hold_memory(bytes);
	if (argc != 7 || who > 1)
		return 2;
	turns = (unsigned int)atoi(argv[6]);
	words = bytes / PIECES / 4;
	CHECK(cudaGetDeviceProperties(&prop, 0));
	blocks = prop.multiProcessorCount * 8;
	CHECK(cudaMalloc(&wrong, sizeof(*wrong)));
	CHECK(cudaMemset(wrong, 0, sizeof(*wrong)));
	/* Code that is loaded takes memory. */
	fill<<<1, 1>>>((uint32_t *)wrong, 0, 0);
	add_one<<<1, 1>>>((uint32_t *)wrong, 0, 0, wrong);
	CHECK(cudaDeviceSynchronize());
	set_number(READY + who, 1);
	wait_for_number(GO, 1);
	value = 1000 * who;
	for (k = 0; k < turns; k++) {
		wait_for_number(TURN, 2 * k + who);
		ended = ns_now();
		/* In the first cycle the stores of both are new, which takes long once. */
		if (k == 2)
			began = ended;
		if (!k) {
			fill_memory();
			passes = count_passes(who, strtoull(argv[5], NULL, 10) * 1000000);
		} else {
			for (unsigned int n = 0; n < passes; n++)
				make_pass();
		}
		set_number(TURN, 2 * k + who + 1);
	}
	CHECK(cudaMemcpy(&bad, wrong, sizeof(bad), cudaMemcpyDeviceToHost));
	printf("program %u: %u turns of %u passes, %llu words were wrong\n", who, turns, passes,
	       bad);
	if (!who && turns > 3)
		print_work(turns - 3, ended - began, 2.0 * bytes,
			   (double)(strtoull(argv[4], NULL, 10) << 20));
	return bad != 0;
}
