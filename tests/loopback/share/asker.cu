// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that wants little and often: asker SECONDS. It launches a small kernel and waits, and
 * copies 4 KiB, twenty times a second, and prints how long these took, in microseconds.
 */
#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <vector>

#include "tests/guest/check.h"

__global__ void add_one(int *p)
{
	*p += 1;
}

static double us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void print_times(const char *what, std::vector<double> &v)
{
	std::sort(v.begin(), v.end());
	printf("%s: %zu, median %.0f us, p99 %.0f, longest %.0f\n", what, v.size(), v[v.size() / 2],
	       v[v.size() * 99 / 100], v.back());
}

int main(int argc, char **argv)
{
	double began, end = us() + (argc > 1 ? atof(argv[1]) : 1) * 1e6;
	std::vector<double> launches, copies;
	char *host;
	int *p;

	CHECK(cudaMalloc(&p, 4096));
	CHECK(cudaMallocHost(&host, 4096));
	add_one<<<1, 1>>>(p);
	CHECK(cudaDeviceSynchronize());
	while (us() < end) {
		began = us();
		add_one<<<1, 1>>>(p);
		CHECK(cudaDeviceSynchronize());
		launches.push_back(us() - began);
		usleep(25000);
		began = us();
		CHECK(cudaMemcpy(p, host, 4096, cudaMemcpyHostToDevice));
		copies.push_back(us() - began);
		usleep(25000);
	}
	print_times("launch and wait", launches);
	print_times("4 KiB", copies);
	return 0;
}
