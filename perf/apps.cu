// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The GPU work of whole programs, as their authors wrote it: allocate memory on the GPU, copy
 * the input up, run kernels, copy the result down, free the memory; with ordinary memory, one
 * step after the other. Six programs are virtio-CL's, one is Vocale's, two are Gxen's. Each row
 * "NAME/total" is split into init (allocating and freeing GPU memory), copies and kernels.
 * "NAME/cpu" is the program's own work, making the input, which uses no GPU.
 */
#include "perf/apps.cuh"

#define APPS (sizeof(apps) / sizeof(apps[0]))
#define MOST 64

struct times {
	double total[MOST], init[MOST], copies[MOST], kernels[MOST];
};

static void once(const struct app *a, struct plan *p, struct times *t, unsigned int k)
{
	double start = bench_now(), up, kernels, down, put, end;

	CHECK(cudaMalloc((void **)&p->din, p->in_bytes));
	CHECK(cudaMalloc((void **)&p->dout, p->out_bytes));
	if (p->tmp_bytes)
		CHECK(cudaMalloc((void **)&p->dtmp, p->tmp_bytes));
	up = bench_now();
	CHECK(cudaMemcpy(p->din, p->in, p->in_bytes, cudaMemcpyHostToDevice));
	kernels = bench_now();
	a->launch(p);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
	down = bench_now();
	CHECK(cudaMemcpy(p->out, p->dout, p->out_bytes, cudaMemcpyDeviceToHost));
	put = bench_now();
	CHECK(cudaFree(p->din));
	CHECK(cudaFree(p->dout));
	if (p->tmp_bytes)
		CHECK(cudaFree(p->dtmp));
	end = bench_now();
	t->total[k] = (end - start) * 1e3;
	t->init[k] = (up - start + end - put) * 1e3;
	t->copies[k] = (kernels - up + put - down) * 1e3;
	t->kernels[k] = (down - kernels) * 1e3;
}

static void row(const struct app *a, const char *part, uint64_t bytes, double *samples,
		unsigned int n)
{
	char name[64];

	snprintf(name, sizeof(name), "%s/%s", a->name, part);
	bench_row(name, bytes, "ms", samples, n, "sampled");
}

static void one(const struct app *a, uint64_t bytes)
{
	unsigned int reps = bench.reps < MOST ? bench.reps : MOST, k;
	double start, spent = 0, cpu[1];
	struct plan p = {};
	struct times t;

	a->plan(&p, bytes);
	bench_needs(p.in_bytes + p.out_bytes + (64 << 20),
		    p.in_bytes + p.out_bytes + p.tmp_bytes + (16 << 20));
	start = bench_now();
	p.in = malloc(p.in_bytes);
	p.out = malloc(p.out_bytes);
	REQUIRE(p.in && p.out, "out of memory");
	for (uint64_t i = 0; i < p.in_bytes / 4; i++)
		if (*a->kind == 'f')
			((float *)p.in)[i] = app_float(i);
		else
			((uint32_t *)p.in)[i] = app_word(i);
	memset(p.out, 0xa5, p.out_bytes);
	cpu[0] = (bench_now() - start) * 1e3;
	for (k = 0; k < bench.warmup; k++)
		once(a, &p, &t, 0);
	for (k = 0; k < reps && (k < 3 || spent < bench.budget); k++) {
		once(a, &p, &t, k);
		spent += t.total[k] * 1e-3;
	}
	a->check(&p);
	row(a, "total", bytes, t.total, k);
	row(a, "init", bytes, t.init, k);
	row(a, "copies", bytes, t.copies, k);
	row(a, "kernels", bytes, t.kernels, k);
	row(a, "cpu", bytes, cpu, 1);
	free(p.in);
	free(p.out);
}

int main(int argc, char **argv)
{
	uint64_t bytes;

	bench_begin(argc, argv, "apps",
		    "Applications with growing input, in ms, split into init, copies and kernels.",
		    1 << 20, 64 << 20, NULL);
	REQUIRE(bench.min >= 4096, "--min: at least 4096");
	for (unsigned int i = 0; i < APPS; i++) {
		if (!bench_wants(apps[i].name))
			continue;
		for (bytes = bench.min; bytes != UINT64_MAX; bytes = bench_next_size(bytes))
			if (bench_begins(apps[i].name))
				one(&apps[i], bytes);
	}
	return bench_end();
}
