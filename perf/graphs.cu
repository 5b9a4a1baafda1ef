// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Graphs: launches of 1 to 1000 kernels in a chain, eight branches, copies and memsets among
 * kernels, host functions; and what it costs to make an instance of 1000 kernels and to change it.
 * "issue" is the time until the launch returns, "drained" includes its work.
 */
#include "perf/bench.h"

#define MOST	 1000u
#define BRANCHES 8u
#define LENGTH	 12u /* of a branch */
#define BYTES	 (64u << 10)

__global__ void count(unsigned int *n, unsigned int by)
{
	atomicAdd(n, by);
}

struct state {
	unsigned int *counter;
	unsigned int launched; /* what the counter must be */
	unsigned int each;     /* what a launch adds */
	char *dev, *other, *pinned;
	cudaStream_t stream;
	cudaGraph_t graphs[2]; /* the same, with other params */
	cudaGraphNode_t nodes[MOST];
	cudaGraphExec_t exec;
	unsigned int turn;
};

static cudaGraphNode_t add_kernel(struct state *s, cudaGraph_t g, const cudaGraphNode_t *after,
				  unsigned int by)
{
	void *args[] = {&s->counter, &by};
	struct cudaKernelNodeParams p = {};
	cudaGraphNode_t n;

	p.func = (void *)count;
	p.gridDim = p.blockDim = dim3(1, 1, 1);
	p.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&n, g, after, after ? 1 : 0, &p));
	return n;
}

static cudaGraph_t new_graph(void)
{
	cudaGraph_t g;

	CHECK(cudaGraphCreate(&g, 0));
	return g;
}

static cudaGraph_t chain(struct state *s, unsigned int kernels, unsigned int by)
{
	cudaGraph_t g = new_graph();

	for (unsigned int i = 0; i < kernels; i++)
		s->nodes[i] = add_kernel(s, g, i ? &s->nodes[i - 1] : NULL, by);
	s->each = kernels * by;
	return g;
}

static cudaGraph_t branches(struct state *s)
{
	cudaGraph_t g = new_graph();
	cudaGraphNode_t root = add_kernel(s, g, NULL, 1), ends[BRANCHES], n;

	for (unsigned int b = 0; b < BRANCHES; b++) {
		ends[b] = root;
		for (unsigned int i = 0; i < LENGTH; i++)
			ends[b] = add_kernel(s, g, &ends[b], 1);
	}
	CHECK(cudaGraphAddEmptyNode(&n, g, ends, BRANCHES));
	s->each = 1 + BRANCHES * LENGTH;
	return g;
}

/* A copy up, a memset, a kernel, a copy on the device, a copy down: eight times. */
static cudaGraph_t mixed(struct state *s)
{
	struct cudaMemsetParams set = {};
	cudaGraph_t g = new_graph();
	cudaGraphNode_t n, *after = NULL;

	set.dst = s->other;
	set.elementSize = 4;
	set.width = BYTES / 4;
	set.height = 1;
	for (unsigned int i = 0; i < 8; i++) {
		CHECK(cudaGraphAddMemcpyNode1D(&n, g, after, after ? 1 : 0, s->dev, s->pinned,
					       BYTES, cudaMemcpyHostToDevice));
		after = &n;
		CHECK(cudaGraphAddMemsetNode(&n, g, after, 1, &set));
		n = add_kernel(s, g, after, 1);
		CHECK(cudaGraphAddMemcpyNode1D(&n, g, after, 1, s->other, s->dev, BYTES,
					       cudaMemcpyDeviceToDevice));
		CHECK(cudaGraphAddMemcpyNode1D(&n, g, after, 1, s->pinned + BYTES, s->other, BYTES,
					       cudaMemcpyDeviceToHost));
	}
	s->each = 8;
	return g;
}

static void CUDART_CB no_work(void *)
{
}

static cudaGraph_t functions(struct state *s)
{
	struct cudaHostNodeParams host = {no_work, NULL};
	cudaGraph_t g = new_graph();
	cudaGraphNode_t n = add_kernel(s, g, NULL, 1);

	for (unsigned int i = 0; i < 10; i++) {
		CHECK(cudaGraphAddHostNode(&n, g, &n, 1, &host));
		n = add_kernel(s, g, &n, 1);
	}
	s->each = 11;
	return g;
}

static void issue(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;

	s->launched += n * s->each;
	while (n--)
		CHECK(cudaGraphLaunch(s->exec, s->stream));
}

static void settle(void *arg)
{
	CHECK(cudaStreamSynchronize(((struct state *)arg)->stream));
}

static void drained(void *arg, unsigned int n)
{
	issue(arg, n);
	settle(arg);
}

static void make_instance(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;
	cudaGraphExec_t exec;

	while (n--) {
		CHECK(cudaGraphInstantiate(&exec, s->graphs[0], 0));
		CHECK(cudaGraphExecDestroy(exec));
	}
}

/* All params of the instance change, and the next launch has them. */
static void update(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;
	cudaGraphExecUpdateResultInfo info;

	while (n--) {
		CHECK(cudaGraphExecUpdate(s->exec, s->graphs[s->turn ^= 1], &info));
		CHECK(cudaGraphUpload(s->exec, s->stream));
		settle(arg);
	}
}

static void set_params(void *arg, unsigned int n)
{
	struct state *s = (struct state *)arg;
	unsigned int by;
	void *args[] = {&s->counter, &by};
	struct cudaKernelNodeParams p = {};

	p.func = (void *)count;
	p.gridDim = p.blockDim = dim3(1, 1, 1);
	p.kernelParams = args;
	while (n--) {
		by = 1 + (s->turn ^= 1);
		for (unsigned int i = 0; i < MOST; i++)
			CHECK(cudaGraphExecKernelNodeSetParams(s->exec, s->nodes[i], &p));
		CHECK(cudaGraphUpload(s->exec, s->stream));
		settle(arg);
	}
}

static void one(struct state *s, const char *name, void (*run)(void *, unsigned int),
		unsigned int most)
{
	struct bench_case b = {};

	if (!bench_begins(name))
		return;
	b.name = name;
	b.unit = "us";
	b.run = run;
	b.settle = run == issue ? settle : NULL;
	b.arg = s;
	b.most = most;
	b.enough = most ? 0.02 : 0;
	b.checked = run == drained || run == issue ? "whole" : "-";
	bench_run(&b);
}

static void begin(struct state *s, cudaGraph_t g)
{
	s->graphs[0] = g;
	CHECK(cudaGraphInstantiate(&s->exec, g, 0));
	CHECK(cudaGraphLaunch(s->exec, s->stream));
	settle(s);
	s->launched += s->each;
}

static void end(struct state *s)
{
	CHECK(cudaGraphExecDestroy(s->exec));
	CHECK(cudaGraphDestroy(s->graphs[0]));
}

static void launches(struct state *s, const char *name, cudaGraph_t g, unsigned int queued)
{
	char row[64];

	begin(s, g);
	snprintf(row, sizeof(row), "%s/issue", name);
	one(s, row, issue, queued);
	snprintf(row, sizeof(row), "%s/drained", name);
	one(s, row, drained, 0);
	end(s);
}

int main(int argc, char **argv)
{
	static struct state s;
	unsigned int got;

	bench_begin(argc, argv, "graphs", "What graphs cost, in us.", 4, BYTES, NULL);
	CHECK(cudaStreamCreate(&s.stream));
	CHECK(cudaMalloc((void **)&s.counter, 4));
	CHECK(cudaMemset(s.counter, 0, 4));
	CHECK(cudaMalloc((void **)&s.dev, BYTES));
	CHECK(cudaMalloc((void **)&s.other, BYTES));
	CHECK(cudaMallocHost((void **)&s.pinned, 2 * BYTES));
	CHECK(cudaDeviceSynchronize());

	/* So few that a queue is never full. */
	launches(&s, "kernels1", chain(&s, 1, 1), 64);
	launches(&s, "kernels10", chain(&s, 10, 1), 64);
	launches(&s, "kernels100", chain(&s, 100, 1), 16);
	launches(&s, "kernels1000", chain(&s, MOST, 1), 4);
	launches(&s, "branches8", branches(&s), 16);
	launches(&s, "copies+memsets", mixed(&s), 16);
	launches(&s, "functions10", functions(&s), 4);

	s.graphs[1] = chain(&s, MOST, 2);
	begin(&s, chain(&s, MOST, 1));
	one(&s, "instantiate+destroy/1000", make_instance, 0);
	one(&s, "cudaGraphExecUpdate/1000", update, 0);
	one(&s, "cudaGraphExecKernelNodeSetParams/1000", set_params, 0);
	end(&s);
	CHECK(cudaGraphDestroy(s.graphs[1]));

	CHECK(cudaMemcpy(&got, s.counter, 4, cudaMemcpyDeviceToHost));
	REQUIRE(got == s.launched, "the kernels have counted %u, not %u", got, s.launched);
	CHECK(cudaFree(s.counter));
	CHECK(cudaFree(s.dev));
	CHECK(cudaFree(s.other));
	CHECK(cudaFreeHost(s.pinned));
	return bench_end();
}
