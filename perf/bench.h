/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What all benchmarks share: one set of flags, one way to measure time, one table of results. A
 * benchmark is plain CUDA and does not know qCUDA. The same binary runs on a bare host and in a
 * guest. The script that starts it labels the result.
 *
 *	bench_begin()	reads the flags, finds the GPU
 *	bench_wants()	is this case asked for?
 *	bench_needs()	is there memory for it?
 *	bench_run()	warms up, repeats, adds a row: median, least, most, spread
 *	bench_end()	writes CSV and JSON, whole or not at all
 *
 * A benchmark checks what it has moved and computed. A wrong byte ends it with exit code 1 and
 * without a file. A request that it cannot fulfil ends it with a message and exit code 2.
 */
#ifndef PERF_BENCH_H
#define PERF_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BENCH_ONLY 8

struct bench_flags {
	uint64_t min, max; /* bytes: the range of sizes */
	unsigned int reps, warmup;
	double budget; /* seconds of repetitions for one row */
	double pause;  /* seconds between the first call and the first sample */
	double limit;  /* seconds after which no case begins; 0: none */
	int device;
	unsigned int marks; /* operations in a sample between marks; 0: no marks */
	bool quick;
	const char *label, *csv, *json;
	const char *only[BENCH_ONLY];
	unsigned int onlys;
};
extern struct bench_flags bench;

/* The time of this process's first CUDA call, in seconds. */
extern double bench_first_call;

struct bench_case {
	const char *name;
	uint64_t bytes;		       /* of one operation, for the table */
	const char *unit;	       /* "GB/s", "us", "ms" or "1/s" */
	double work;		       /* GB/s: bytes moved by one operation */
	void (*run)(void *, unsigned); /* does the operation this many times */
	void (*settle)(void *);	       /* after each sample, not timed; may be NULL */
	void *arg;
	unsigned int most;   /* operations in one sample; 0: as many as the clock needs */
	double enough;	     /* seconds that a sample should take; 0: what the clock needs */
	const char *checked; /* how the result is verified: "whole", "sampled" or "-" */
};

/* An extra flag of one benchmark: --NAME N. */
struct bench_extra {
	const char *name;
	uint64_t *value;
	uint64_t min, max;
	const char *help;
};

/* extras ends with a NULL name, or is NULL. */
void bench_begin(int argc, char **argv, const char *name, const char *about, uint64_t min,
		 uint64_t max, const struct bench_extra *extras);
/* The same without using the GPU, for benchmarks that measure the GPU's start. */
void bench_begin_bare(int argc, char **argv, const char *name, const char *about, uint64_t min,
		      uint64_t max, const struct bench_extra *extras);
/*
 * Makes the context, which waits as --wait says. For benchmarks that use bench_begin_bare(), and
 * for their children.
 */
cudaError_t bench_context(void);
bool bench_wants(const char *name);
/*
 * Is the case asked for, and is there time to begin it? If there is no time, the result is cut
 * short and says so.
 */
bool bench_begins(const char *name);
void bench_needs(uint64_t host_bytes, uint64_t device_bytes);
double bench_run(const struct bench_case *c); /* the median, in the case's unit */
/* Adds a row from samples taken elsewhere, already in their unit. Sorts the samples. */
void bench_row(const char *name, uint64_t bytes, const char *unit, double *samples, unsigned int n,
	       const char *checked);
/* Reports a case that cannot run here, with the reason: a line in the JSON and on stderr. */
void bench_skip(const char *name, const char *why);
int bench_end(void); /* the exit code; 3: cut short */

double bench_now(void);
/*
 * Reads counters of a guest's driver by name; -1: there is no such counter. Returns false if there
 * is no such driver.
 */
bool bench_stats(const char *const *names, double *values, unsigned int n);
uint64_t bench_next_size(uint64_t bytes); /* powers of four, then the largest */

#define BENCH_FAIL(code, ...)                        \
	do {                                         \
		fprintf(stderr, "%s: ", bench_name); \
		fprintf(stderr, __VA_ARGS__);        \
		fputc('\n', stderr);                 \
		exit(code);                          \
	} while (0)
extern const char *bench_name;

#define CHECK(call)                                                               \
	do {                                                                      \
		cudaError_t check_ = (call);                                      \
		if (check_ != cudaSuccess)                                        \
			BENCH_FAIL(1, "%s:%d: %s: %s", __FILE__, __LINE__, #call, \
				   cudaGetErrorName(check_));                     \
	} while (0)
#define REQUIRE(cond, ...)                          \
	do {                                        \
		if (!(cond))                        \
			BENCH_FAIL(1, __VA_ARGS__); \
	} while (0)

#ifdef __cplusplus
}
#endif

/* ---- between bench.c and bench_out.c ---- */

#define BENCH_COUNTERS 4

struct bench_result {
	char name[64];
	uint64_t bytes;
	const char *unit, *checked;
	double median, least, most, spread; /* spread: interquartile range over median */
	unsigned int reps;
	double counter[BENCH_COUNTERS]; /* of the guest's driver, for each operation */
	bool counted;
};

#ifdef __cplusplus
extern "C" {
#endif
extern const char *const bench_counter_name[BENCH_COUNTERS];
extern struct bench_result *bench_results;
extern unsigned int bench_nr_results;
extern char (*bench_skipped)[256];
extern unsigned int bench_nr_skipped;
int bench_write(int argc, char **argv);
#ifdef __cplusplus
}
#endif

#endif
