// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * be_check's timings: what the backend alone can do. Compare them with native programs (is the
 * backend slow?) and with the guest (is the way to the backend slow?). One CSV line each, with
 * medians.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "qcu-device/backend/cuda/check/be_check.h"

#define ROUNDS 400

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static int compare_times(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct job {
	struct check *c;
	void *host;
	uint64_t dev;
	size_t len;
	struct be_kernel *kernel;
};

typedef int job_fn(const struct job *j);

/* Returns the median time of one call, in seconds. Negative: the call failed. */
static double median(const struct job *j, job_fn *fn)
{
	double t[ROUNDS], began = now();
	unsigned int n = 0;

	if (fn(j))
		return -1;
	while (n < ROUNDS && (n < 3 || now() - began < j->c->seconds)) {
		double a = now();

		if (fn(j))
			return -1;
		t[n++] = now() - a;
	}
	qsort(t, n, sizeof(t[0]), compare_times);
	return t[n / 2];
}

static int h2d(const struct job *j)
{
	const struct be_ops *o = j->c->ops;
	int ret = o->copy_h2d(j->c->be, j->dev, j->host, j->len, j->c->legacy);

	return ret ? ret : o->stream_sync(j->c->be, j->c->legacy);
}

static int d2h(const struct job *j)
{
	const struct be_ops *o = j->c->ops;
	int ret = o->copy_d2h(j->c->be, j->host, j->dev, j->len, j->c->legacy);

	return ret ? ret : o->stream_sync(j->c->be, j->c->legacy);
}

static int launch_one_block(const struct job *j)
{
	struct be_launch l = {.grid = {1, 1, 1}, .block = {32, 1, 1}};

	return j->c->ops->launch(j->c->be, j->kernel, &l, j->c->legacy);
}

static int launch_sync(const struct job *j)
{
	int ret = launch_one_block(j);

	return ret ? ret : j->c->ops->stream_sync(j->c->be, j->c->legacy);
}

static int alloc_free(const struct job *j)
{
	uint64_t a;
	int ret = j->c->ops->mem_alloc(j->c->be, 0, j->len, &a);

	return ret ? ret : j->c->ops->mem_free(j->c->be, a);
}

static int print_poll(const struct job *j)
{
	size_t got;

	return j->c->ops->print_read(j->c->be, NULL, 0, &got);
}

static int register_both(const struct job *j)
{
	int ret = j->c->ops->host_register(j->c->be, j->host, j->len);

	return ret ? ret : j->c->ops->host_unregister(j->c->be, j->host);
}

static void rate(FILE *out, const struct job *j, const char *what, job_fn *fn)
{
	double t = median(j, fn);

	if (t > 0)
		fprintf(out, "time,%s,%zu,%.3f us,%.2f GB/s\n", what, j->len, t * 1e6,
			j->len / t * 1e-9);
	else
		fprintf(out, "time,%s,%zu,failed,\n", what, j->len);
}

static void latency(FILE *out, const struct job *j, const char *what, job_fn *fn)
{
	double t = median(j, fn);

	if (t > 0)
		fprintf(out, "time,%s,%zu,%.3f us,\n", what, j->len, t * 1e6);
	else
		fprintf(out, "time,%s,%zu,failed,\n", what, j->len);
}

void check_timings(struct check *c, FILE *out)
{
	static const size_t sizes[] = {4096, 65536, 1u << 20, 4u << 20, 16u << 20, 64u << 20};
	struct job j = {.c = c};
	void *plain = mmap(NULL, CHECK_WINDOW, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	size_t i;

	if (plain == MAP_FAILED || c->ops->mem_alloc(c->be, 0, CHECK_WINDOW, &j.dev)) {
		fprintf(out, "no memory for timings\n");
		return;
	}
	memset(plain, 1, CHECK_WINDOW);
	fprintf(out, "time,what,bytes,median,rate\n");
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		j.len = sizes[i];
		j.host = c->window;
		rate(out, &j, "registered H2D", h2d);
		rate(out, &j, "registered D2H", d2h);
		j.host = plain;
		rate(out, &j, "pageable H2D", h2d);
		rate(out, &j, "pageable D2H", d2h);
	}
	j.host = plain;
	j.len = 4u << 20;
	latency(out, &j, "host_register and unregister", register_both);
	j.len = 1u << 20;
	latency(out, &j, "mem_alloc and mem_free", alloc_free);
	j.len = 0;
	j.kernel = check_kernel(c, "check_none");
	if (j.kernel) {
		latency(out, &j, "launch", launch_one_block);
		latency(out, &j, "launch and stream_sync", launch_sync);
	}
	latency(out, &j, "print_read, nothing there", print_poll);
	c->ops->mem_free(c->be, j.dev);
	munmap(plain, CHECK_WINDOW);
}
