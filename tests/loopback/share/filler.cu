// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fills a part of the GPU's memory and looks whether every word stays right while memory leaves and
 * comes back: filler FILE PIECES STEPS SEED PAUSE_US. It counts its steps in FILE, 64 bits, and
 * ends after STEPS, or when the second number in FILE is no longer zero. The third one is the
 * number of allocations that failed.
 *
 * A step checks a piece and changes it, by a kernel, a graph or copies; or frees it and allocates
 * another one. Every second piece is of the default pool. PAUSE_US: after each 8 steps it sleeps,
 * so that others may take the memory. If the fourth number in FILE is no longer zero, it wakes up
 * and clears that.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/guest/check.h"

#define PIECE  (1u << 19)
#define WORDS  (PIECE / 4)
#define PIECES 4096
#define BLOCK  256
#define LOOK   5000u /* us: so often it looks whether it should wake up */

/* Every word of a piece is its number plus this. */
struct piece {
	uint32_t *at;
	uint32_t value;
};

static struct piece piece[PIECES];
static cudaStream_t s;
static uint32_t *host;

__global__ void add_one(uint32_t *at, unsigned int stride)
{
	unsigned int i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;

	for (unsigned int k = 0; k < stride; k++)
		at[i + k]++;
}

static bool is_pooled(const struct piece *p)
{
	return (p - piece) % 2;
}

/* Fills it from the host. False: there is no memory. */
static bool get_piece(struct piece *p, uint32_t value)
{
	cudaError_t err =
		is_pooled(p) ? cudaMallocAsync(&p->at, PIECE, s) : cudaMalloc(&p->at, PIECE);

	if (err == cudaErrorMemoryAllocation) {
		cudaGetLastError();
		p->at = NULL;
		return false;
	}
	CHECK(err);
	p->value = value;
	for (uint32_t k = 0; k < WORDS; k++)
		host[k] = value + k;
	CHECK(cudaMemcpy(p->at, host, PIECE, cudaMemcpyHostToDevice));
	return true;
}

static void check_piece(const struct piece *p)
{
	CHECK(cudaMemcpy(host, p->at, PIECE, cudaMemcpyDeviceToHost));
	for (uint32_t k = 0; k < WORDS; k++) {
		if (host[k] != p->value + k) {
			printf("word %u of %p is %u, not %u\n", k, (void *)p->at, host[k],
			       p->value + k);
			exit(1);
		}
	}
}

static void change_piece(struct piece *p, unsigned int how, cudaGraphExec_t graph,
			 uint32_t *scratch)
{
	if (how == 0) {
		add_one<<<4, BLOCK>>>(p->at, WORDS / 4 / BLOCK);
		p->value++;
	} else if (how == 1) { /* there and back through memory that a graph changes */
		CHECK(cudaMemcpyAsync(scratch, p->at, PIECE, cudaMemcpyDeviceToDevice, 0));
		CHECK(cudaGraphLaunch(graph, 0));
		CHECK(cudaMemcpyAsync(p->at, scratch, PIECE, cudaMemcpyDeviceToDevice, 0));
		p->value++;
	} else {
		for (uint32_t k = 0; k < WORDS; k++)
			host[k] = p->value + 7 + k;
		CHECK(cudaMemcpyAsync(p->at, host, PIECE, cudaMemcpyHostToDevice, 0));
		p->value += 7;
	}
	CHECK(cudaGetLastError());
}

static void sleep_until_woken(volatile uint64_t *numbers, unsigned int us)
{
	unsigned int part;

	for (; us && !numbers[1] && !numbers[3]; us -= part) {
		part = us < LOOK ? us : LOOK;
		usleep(part);
	}
	numbers[3] = 0;
}

int main(int argc, char **argv)
{
	unsigned int n = argc > 2 ? (unsigned int)atoi(argv[2]) : 0,
		     seed = argc > 4 ? (unsigned int)atoi(argv[4]) : 0;
	unsigned int pause = argc > 5 ? (unsigned int)atoi(argv[5]) : 0, have = 0;
	uint64_t steps = argc > 3 ? strtoull(argv[3], NULL, 10) : 0, i;
	volatile uint64_t *count;
	cudaGraphExec_t exec;
	uint32_t *scratch;
	cudaGraph_t graph;
	int fd;

	if (argc != 6 || n < 2 || n > PIECES)
		return 2;
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 32))
		return 2;
	count = (volatile uint64_t *)mmap(NULL, 32, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (count == MAP_FAILED)
		return 2;
	CHECK(cudaMallocHost(&host, PIECE));
	CHECK(cudaMalloc(&scratch, PIECE));
	CHECK(cudaStreamCreate(&s));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	add_one<<<4, BLOCK, 0, s>>>(scratch, WORDS / 4 / BLOCK);
	CHECK(cudaStreamEndCapture(s, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (; have < n - 1 && get_piece(&piece[have], seed + 1000 * have); have++)
		;
	count[2] += have < n - 1;
	if (!have)
		return 3;
	for (i = 0; i < steps && !count[1]; i++) {
		struct piece *p = &piece[rand_r(&seed) % have];
		unsigned int how = rand_r(&seed) % 4;

		if (!p->at) {
			count[2] += !get_piece(p, (uint32_t)seed);
		} else if (how == 3) {
			check_piece(p);
			CHECK(is_pooled(p) ? cudaFreeAsync(p->at, s) : cudaFree(p->at));
			count[2] += !get_piece(p, (uint32_t)seed);
		} else {
			change_piece(p, how, exec, scratch);
			check_piece(p);
		}
		count[0] = i + 1;
		if (pause && i % 8 == 7)
			sleep_until_woken(count, pause);
	}
	for (unsigned int k = 0; k < have; k++)
		if (piece[k].at)
			check_piece(&piece[k]);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(s));
	printf("%llu steps, %u pieces, %llu allocations failed\n", (unsigned long long)count[0],
	       have, (unsigned long long)count[2]);
	return 0;
}
