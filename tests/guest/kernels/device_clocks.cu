// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Clocks as a kernel sees them: clock64, clock and globaltimer only go forward. A busy loop and
 * nanosleep take at least the time that they should. The global timer of two launches agrees
 * with their order.
 */
#include "check.h"

struct times {
	long long before, after, slept;
	unsigned long long global_before, global_after, global_slept;
	unsigned int steps;
	int backwards;
};

__device__ unsigned long long global_ns(void)
{
	unsigned long long t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

__global__ void measure(times *out, int cycles)
{
	times t = {};
	long long last;

	t.global_before = global_ns();
	t.before = last = clock64();
	while (last - t.before < cycles) {
		long long now = clock64();

		t.backwards += now < last;
		last = now;
		t.steps++;
	}
	t.after = last;
	t.global_after = global_ns();
	for (int i = 0; i < 20; i++)
		__nanosleep(1000);
	t.slept = clock64();
	t.global_slept = global_ns();
	out[blockIdx.x * blockDim.x + threadIdx.x] = t;
}

int main(void)
{
	const int threads = 64;
	times out[2 * threads], *dev;
	unsigned long long end = 0;

	CHECK(cudaMalloc(&dev, sizeof(out)));
	measure<<<2, threads / 2>>>(dev, 2000);
	measure<<<2, threads / 2>>>(dev + threads, 2000);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(out, dev, sizeof(out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < 2 * threads; i++) {
		const times &t = out[i];

		REQUIRE(t.backwards == 0 && t.steps > 0, "thread %d: %d steps back", i,
			t.backwards);
		REQUIRE(t.after - t.before >= 2000, "thread %d: %lld cycles", i,
			t.after - t.before);
		REQUIRE(t.slept > t.after, "thread %d: no cycles asleep", i);
		REQUIRE(t.global_before <= t.global_after && t.global_after < t.global_slept,
			"thread %d: %llu, %llu, %llu ns", i, t.global_before, t.global_after,
			t.global_slept);
		if (i < threads)
			end = t.global_slept > end ? t.global_slept : end;
	}
	for (int i = threads; i < 2 * threads; i++)
		REQUIRE(out[i].global_before >= end, "thread %d started before its turn", i);
	CHECK(cudaFree(dev));
	return verified("clocks of %d threads", 2 * threads);
}
