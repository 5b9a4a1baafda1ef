// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keeps the GPU busy with kernels of one length, so that shares can be compared: hog FILE NS
 * LAUNCHES. A kernel waits and does not compute, so other work on the processors does not matter.
 * It counts the kernels that have ended in FILE, 64 bits, and ends after LAUNCHES, or when
 * the second number in FILE is no longer zero.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define AHEAD 64 /* launches that are under way; the program would like more than it may */

#define OK(call)                                                             \
	do {                                                                 \
		cudaError_t err_ = (call);                                   \
		if (err_ != cudaSuccess) {                                   \
			printf("%s: %s\n", #call, cudaGetErrorString(err_)); \
			return 1;                                            \
		}                                                            \
	} while (0)

__global__ void take_time(unsigned int ns)
{
	unsigned long long began, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(began));
	do {
		__nanosleep(ns);
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	} while (now - began < ns);
}

int main(int argc, char **argv)
{
	unsigned int ns = argc > 2 ? (unsigned int)atoi(argv[2]) : 0;
	uint64_t launches = argc > 3 ? strtoull(argv[3], NULL, 10) : 0, i;
	cudaEvent_t event[AHEAD];
	volatile uint64_t *count;
	int fd;

	if (argc != 4)
		return 2;
	fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 16))
		return 2;
	count = (volatile uint64_t *)mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (count == MAP_FAILED)
		return 2;
	for (i = 0; i < AHEAD; i++)
		OK(cudaEventCreateWithFlags(&event[i], cudaEventDisableTiming));
	for (i = 0; i < launches && !count[1]; i++) {
		if (i >= AHEAD) {
			OK(cudaEventSynchronize(event[i % AHEAD]));
			count[0] = i - AHEAD + 1;
		}
		take_time<<<1, 1>>>(ns);
		OK(cudaGetLastError());
		OK(cudaEventRecord(event[i % AHEAD]));
	}
	OK(cudaDeviceSynchronize());
	count[0] = i;
	return 0;
}
