// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where does the time of one cudaMemcpy go? The paper's Figure 5. Each layer measures durations on
 * its own clock, so that no two clocks need to agree:
 *
 *	total	  the call, measured here
 *	library	  total, less the driver's ioctl
 *	pin	  in the driver: making the buffer's pages known to the device
 *	map	  part of pin, but not counted in it: the host maps and registers new chunks
 *	driver	  the rest of the ioctl, less the time on the ring
 *	queue	  on the ring, less the mirror's time: notification and interrupt
 *	device	  in the mirror, less copying
 *	copy	  copying: the GPU's copy engine, and the copies by CPUs of the host to and from it
 *
 * The driver's and the device's shares are counted if the guest driver's parameter trace is set. A
 * bare host has "total" only, and all of it is copy. A copy that takes several commands at once
 * has "total" only, too, because their times overlap.
 */
#include "perf/bench.h"
#include "perf/memory.cuh"
#include "perf/pattern.h"

enum { COPIES, IOCTL, PIN, MAP, RING, MIRROR, COPY, STATS };
static const char *const stat_name[STATS] = {
	"timed_copies", "timed_ioctl_ns",  "timed_pin_ns", "timed_map_ns",
	"timed_ring_ns", "timed_mirror_ns", "timed_copy_ns"};

#define PARTS 7
#define SAMPLES 64

static void row(const char *memory, bool up, const char *part, uint64_t bytes, double *samples,
		unsigned int n)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/%s/%s", memory, up ? "h2d" : "d2h", part);
	bench_row(name, bytes, "us", samples, n, pattern_checked(bytes));
}

/* Makes n copies, enough for the clocks. Returns the seconds for each. */
static double copies(char *host, char *dev, uint64_t bytes, bool up, unsigned int n)
{
	double start = bench_now();

	for (unsigned int i = 0; i < n; i++)
		if (up)
			CHECK(cudaMemcpy(dev, host, bytes, cudaMemcpyHostToDevice));
		else
			CHECK(cudaMemcpy(host, dev, bytes, cudaMemcpyDeviceToHost));
	return (bench_now() - start) / n;
}

/* fresh: each sample uses memory that no copy has used before. */
static void one(const char *memory, enum kind kind, bool fresh, bool up, uint64_t bytes)
{
	static const char *const part[PARTS] = {"library", "pin", "map", "driver", "queue", "device",
						"copy"};
	double share[PARTS][SAMPLES], total[SAMPLES], before[STATS], after[STATS], spent = 0;
	unsigned int n = fresh || bytes >= 1 << 20 ? 1 : 16, reps = 0, k, most = bench.reps;
	bool layers = true, several = false;
	char name[64], *host = NULL, *dev;

	snprintf(name, sizeof(name), "%s/%s/", memory, up ? "h2d" : "d2h");
	if (!bench_begins(name))
		return;
	CHECK(cudaMalloc((void **)&dev, bytes));
	most = most < SAMPLES ? most : SAMPLES;
	while (reps < most && (reps < 3 || spent < bench.budget)) {
		if (!host || fresh) {
			if (host)
				put(kind, host, bytes);
			host = get(kind, bytes);
			if (!host) {
				CHECK(cudaFree(dev));
				return;
			}
			memset(host, 1, bytes);
			pattern_on_gpu(dev, bytes, 5);
			if (!fresh) {
				copies(host, dev, bytes, false, 1);
				pattern_cpu_must(host, bytes, 5, name);
				copies(host, dev, bytes, up, 2);
			}
		}
		layers = bench_stats(stat_name, before, STATS) && layers;
		total[reps] = copies(host, dev, bytes, up, n) * 1e6;
		layers = layers && bench_stats(stat_name, after, STATS);
		spent += total[reps] * n * 1e-6;
		several = several || (layers && after[COPIES] - before[COPIES] > n);
		/* Otherwise the copies took several commands, or the trace is off. */
		layers = layers && after[COPIES] - before[COPIES] == n;
		for (k = 0; layers && k < STATS; k++)
			after[k] = (after[k] - before[k]) / n * 1e-3;
		if (layers) {
			share[0][reps] = total[reps] - after[IOCTL];
			share[1][reps] = after[PIN] - after[MAP];
			share[2][reps] = after[MAP];
			share[3][reps] = after[IOCTL] - after[RING] - after[PIN];
			share[4][reps] = after[RING] - after[MIRROR];
			share[5][reps] = after[MIRROR] - after[COPY];
			share[6][reps] = after[COPY];
		}
		reps++;
	}
	if (!up)
		pattern_cpu_must(host, bytes, 5, name);
	else if (!fresh)
		pattern_gpu_must(dev, bytes, 5, name);
	row(memory, up, "total", bytes, total, reps);
	for (k = 0; layers && k < PARTS; k++)
		row(memory, up, part[k], bytes, share[k], reps);
	if (!layers && bench_stats(stat_name, before, STATS))
		bench_skip(name, several ? "it goes in several commands at once: no layers"
					 : "the driver's parameter trace is not set: no layers");
	put(kind, host, bytes);
	CHECK(cudaFree(dev));
}

int main(int argc, char **argv)
{
	uint64_t bytes;

	bench_begin(argc, argv, "breakdown",
		    "Where the time of one cudaMemcpy goes: library, driver, queue, device, copy; us.",
		    4 << 10, 256 << 20, NULL);
	REQUIRE(bench.min >= 64 && bench.min % 64 == 0 && bench.max % 64 == 0,
		"--min and --max: multiples of 64");
	bench_needs(2 * bench.max + (64 << 20), bench.max + (16 << 20));
	for (bytes = bench.min; bytes != UINT64_MAX; bytes = bench_next_size(bytes))
		for (int up = 1; up >= 0; up--) {
			one("pinned", PINNED, false, up, bytes);
			one("pageable", PAGEABLE, false, up, bytes);
			one("first", PAGEABLE, true, up, bytes);
			one("stack", STACK, false, up, bytes);
			if (bytes <= STATIC_BYTES)
				one("static", STATIC, false, up, bytes);
			one("file", FILE_MAP, false, up, bytes);
		}
	return bench_end();
}
