// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Works for a while with all that a program may have at a moment: two streams with events between them, copies from and to
 * pinned memory, a graph, host functions, memory from a pool, a texture, and kernels that print. Each step depends on those
 * before it, and the CPU computes it, too. Every few steps it prints a sum. The arguments are the number of
 * steps, and 0 for none of the host functions.
 */
#include "check.h"

#define N 4096

struct run {
	cudaStream_t a, b;
	cudaEvent_t ready, done;
	cudaGraphExec_t graph;
	cudaTextureObject_t texture;
	uint32_t *word, *pinned, *sum;
	uint32_t expected[N];
	uint32_t told; /* by host functions */
};

static uint32_t mix(uint32_t w, uint32_t with)
{
	return (w ^ with) * 2654435761u + 1;
}

__global__ void mix_words(uint32_t *word, uint32_t with, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		word[i] = (word[i] ^ with) * 2654435761u + 1;
}

__global__ void add_words(const uint32_t *word, uint32_t *sum, int n)
{
	uint32_t part = 0;
	int i;

	for (i = threadIdx.x; i < n; i += blockDim.x)
		part += word[i];
	atomicAdd(sum, part);
}

__global__ void read_texture(cudaTextureObject_t t, const uint32_t *sum, uint32_t step)
{
	printf("step %u: sum %u, texture %u\n", step, *sum, tex1Dfetch<uint32_t>(t, step % N));
}

static void CUDART_CB tell(void *arg)
{
	struct run *r = (struct run *)arg;

	r->told = mix(r->told, r->pinned[0]);
}

static void make_graph(struct run *r, bool host)
{
	cudaGraph_t graph;

	CHECK(cudaStreamBeginCapture(r->a, cudaStreamCaptureModeThreadLocal));
	mix_words<<<N / 256, 256, 0, r->a>>>(r->word, 5, N);
	CHECK(cudaMemcpyAsync(r->pinned, r->word, N * 4, cudaMemcpyDeviceToHost, r->a));
	if (host)
		CHECK(cudaLaunchHostFunc(r->a, tell, r));
	mix_words<<<N / 256, 256, 0, r->a>>>(r->word, 7, N);
	CHECK(cudaStreamEndCapture(r->a, &graph));
	CHECK(cudaGraphInstantiate(&r->graph, graph, 0));
	CHECK(cudaGraphDestroy(graph));
}

static void make_texture(struct run *r)
{
	cudaResourceDesc from = {};
	cudaTextureDesc how = {};

	from.resType = cudaResourceTypeLinear;
	from.res.linear.devPtr = r->word;
	from.res.linear.desc = cudaCreateChannelDesc<uint32_t>();
	from.res.linear.sizeInBytes = N * 4;
	how.readMode = cudaReadModeElementType;
	CHECK(cudaCreateTextureObject(&r->texture, &from, &how, NULL));
}

static void begin(struct run *r, bool host)
{
	int i;

	CHECK(cudaStreamCreateWithFlags(&r->a, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&r->b, cudaStreamNonBlocking));
	CHECK(cudaEventCreate(&r->ready));
	CHECK(cudaEventCreateWithFlags(&r->done, cudaEventDisableTiming));
	CHECK(cudaMalloc(&r->word, N * 4));
	CHECK(cudaMalloc(&r->sum, 4));
	CHECK(cudaMallocHost(&r->pinned, N * 4));
	for (i = 0; i < N; i++)
		r->pinned[i] = r->expected[i] = i;
	CHECK(cudaMemcpy(r->word, r->pinned, N * 4, cudaMemcpyHostToDevice));
	make_graph(r, host);
	make_texture(r);
}

/* Returns the sum of the words after this step, as the CPU has it. */
static uint32_t expect_step(struct run *r, uint32_t step, uint32_t *told)
{
	uint32_t sum = 0;
	int i;

	for (i = 0; i < N; i++) {
		uint32_t w = mix(mix(r->expected[i], step), 5);

		if (!i)
			*told = mix(*told, w);
		r->expected[i] = mix(w, 7);
		sum += r->expected[i];
	}
	return sum;
}

static void do_step(struct run *r, uint32_t step)
{
	uint32_t *extra;

	mix_words<<<N / 256, 256, 0, r->a>>>(r->word, step, N);
	CHECK(cudaGraphLaunch(r->graph, r->a));
	CHECK(cudaEventRecord(r->ready, r->a));
	CHECK(cudaStreamWaitEvent(r->b, r->ready, 0));
	CHECK(cudaMallocAsync(&extra, N * 4, r->b));
	CHECK(cudaMemcpyAsync(extra, r->word, N * 4, cudaMemcpyDeviceToDevice, r->b));
	CHECK(cudaMemsetAsync(r->sum, 0, 4, r->b));
	add_words<<<1, 256, 0, r->b>>>(extra, r->sum, N);
	CHECK_LAUNCH();
	CHECK(cudaFreeAsync(extra, r->b));
	CHECK(cudaEventRecord(r->done, r->b));
	CHECK(cudaStreamWaitEvent(r->a, r->done, 0));
}

int main(int argc, char **argv)
{
	uint32_t steps = argc > 1 ? atoi(argv[1]) : 20, step, told = 0, sum, got;
	bool host = argc < 3 || atoi(argv[2]);
	static struct run r;

	begin(&r, host);
	for (step = 0; step < steps; step++) {
		do_step(&r, step);
		sum = expect_step(&r, step, &told);
		if (step % 5)
			continue;
		read_texture<<<1, 1, 0, r.b>>>(r.texture, r.sum, step);
		CHECK(cudaStreamSynchronize(r.b));
		CHECK(cudaMemcpy(&got, r.sum, 4, cudaMemcpyDeviceToHost));
		REQUIRE(got == sum, "step %u: the sum is %u, not %u", step, got, sum);
	}
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaMemcpy(r.pinned, r.word, N * 4, cudaMemcpyDeviceToHost));
	REQUIRE(!memcmp(r.pinned, r.expected, N * 4), "the words are others");
	REQUIRE(!host || r.told == told, "host functions have got %u, not %u", r.told, told);
	CHECK(cudaDestroyTextureObject(r.texture));
	CHECK(cudaGraphExecDestroy(r.graph));
	printf("long_work: %u steps, %u\n", steps, told);
	return 0;
}
