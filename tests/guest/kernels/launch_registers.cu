// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A block of threads must get its registers. A kernel that keeps far more than 64 values in a
 * loop cannot have 1024 threads: this is refused at the call. It runs with as many threads as
 * its attributes say. The same kernel with launch bounds is compiled with fewer registers, and
 * runs.
 */
#include "check.h"

#define VALUES 120
#define ROUNDS 5
#define LARGE  1024

#define TEN(f, tens)                                                                        \
	f(tens "0") f(tens "1") f(tens "2") f(tens "3") f(tens "4") f(tens "5") f(tens "6") \
		f(tens "7") f(tens "8") f(tens "9")
#define FORTY(f, a, b, c, d) TEN(f, a) TEN(f, b) TEN(f, c) TEN(f, d)
#define EACH(f) \
	FORTY(f, "1", "2", "3", "4") FORTY(f, "5", "6", "7", "8") FORTY(f, "9", "10", "11", "12")
#define LOAD(n) \
	"ld.volatile.global.u32 v" n ", [at]; add.u64 at, at, 4; add.u32 v" n ", v" n ", sum;\n"
#define MIX(n) "mad.lo.u32 sum, sum, 31, v" n "; shr.u32 x, sum, 3; xor.b32 v" n ", v" n ", x;\n"

#define START                                                                 \
	"{\n.reg .b32 v<130>, sum, left, x; .reg .b64 at; .reg .pred more;\n" \
	"mov.b32 sum, %0; mov.b64 at, %1; mov.b32 left, %2;\n"
#define END                                                                    \
	"sub.u32 left, left, 1; setp.ne.u32 more, left, 0; @more bra again;\n" \
	"mov.b32 %0, sum;\n}"

/*
 * In PTX, and inside the kernel: for a debugger, nvcc keeps values in memory and calls
 * functions.
 */
#define MIX_ON_GPU(sum, in, rounds) \
	asm volatile(START EACH(LOAD) "again:\n" EACH(MIX) END : "+r"(sum) : "l"(in), "r"(rounds))

static uint32_t mix_on_cpu(const uint32_t *in, uint32_t seed, int rounds)
{
	uint32_t v[VALUES], sum = seed;

	for (int i = 0; i < VALUES; i++)
		v[i] = in[i] + seed;
	for (int r = 0; r < rounds; r++)
		for (int i = 0; i < VALUES; i++) {
			sum = sum * 31 + v[i];
			v[i] ^= sum >> 3;
		}
	return sum;
}

__global__ void greedy(const uint32_t *in, uint32_t *out, int rounds)
{
	uint32_t sum = threadIdx.x;

	MIX_ON_GPU(sum, in, rounds);
	out[threadIdx.x] = sum;
}

__global__ void __launch_bounds__(LARGE) bounded(const uint32_t *in, uint32_t *out, int rounds)
{
	uint32_t sum = threadIdx.x;

	MIX_ON_GPU(sum, in, rounds);
	out[threadIdx.x] = sum;
}

static uint32_t in[VALUES], *dev_in, *dev_out;

static void check_results(int threads)
{
	uint32_t out[LARGE];

	CHECK(cudaMemcpy(out, dev_out, threads * sizeof(*out), cudaMemcpyDeviceToHost));
	for (int i = 0; i < threads; i++)
		REQUIRE(out[i] == mix_on_cpu(in, i, ROUNDS), "%d threads, thread %d: %08x", threads,
			i, out[i]);
	CHECK(cudaMemset(dev_out, 0, LARGE * sizeof(*out)));
}

static void refused(int threads)
{
	const uint32_t *from = dev_in;
	int blocks = -1, rounds = ROUNDS;
	void *args[] = {&from, &dev_out, &rounds};

	greedy<<<1, threads>>>(dev_in, dev_out, ROUNDS);
	EXPECT(cudaPeekAtLastError(), cudaErrorLaunchOutOfResources);
	EXPECT(cudaGetLastError(), cudaErrorLaunchOutOfResources);
	EXPECT(cudaGetLastError(), cudaSuccess);
	EXPECT(cudaLaunchKernel((const void *)greedy, dim3(1), dim3(1, threads), args, 0, 0),
	       cudaErrorLaunchOutOfResources);
	EXPECT(cudaGetLastError(), cudaErrorLaunchOutOfResources);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, greedy, threads, 0));
	REQUIRE(blocks == 0, "%d blocks of %d threads", blocks, threads);
	CHECK(cudaDeviceSynchronize());
}

int main(void)
{
	struct cudaFuncAttributes attr;
	int blocks, registers;

	for (int i = 0; i < VALUES; i++)
		in[i] = scramble(i, 77);
	CHECK(cudaMalloc(&dev_in, sizeof(in)));
	CHECK(cudaMalloc(&dev_out, LARGE * sizeof(*dev_out)));
	CHECK(cudaMemcpy(dev_in, in, sizeof(in), cudaMemcpyHostToDevice));
	CHECK(cudaDeviceGetAttribute(&registers, cudaDevAttrMaxRegistersPerBlock, 0));

	refused(LARGE);

	CHECK(cudaFuncGetAttributes(&attr, greedy));
	REQUIRE(attr.numRegs >= VALUES && attr.numRegs <= 255, "%d registers", attr.numRegs);
	REQUIRE(attr.maxThreadsPerBlock > 0 && attr.maxThreadsPerBlock < LARGE &&
			attr.maxThreadsPerBlock * attr.numRegs <= registers,
		"%d threads with %d registers", attr.maxThreadsPerBlock, attr.numRegs);
	refused(attr.maxThreadsPerBlock + 1);
	for (int threads = 32; threads <= attr.maxThreadsPerBlock; threads += 96) {
		greedy<<<1, threads>>>(dev_in, dev_out, ROUNDS);
		CHECK_LAUNCH();
		check_results(threads);
	}
	greedy<<<1, attr.maxThreadsPerBlock>>>(dev_in, dev_out, ROUNDS);
	CHECK_LAUNCH();
	check_results(attr.maxThreadsPerBlock);
	CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, greedy,
							    attr.maxThreadsPerBlock, 0));
	REQUIRE(blocks == 1, "%d blocks", blocks);

	CHECK(cudaFuncGetAttributes(&attr, bounded));
	REQUIRE(attr.numRegs <= registers / LARGE, "%d registers", attr.numRegs);
	REQUIRE(attr.maxThreadsPerBlock == LARGE, "%d threads", attr.maxThreadsPerBlock);
	bounded<<<1, LARGE>>>(dev_in, dev_out, ROUNDS);
	CHECK_LAUNCH();
	check_results(LARGE);

	CHECK(cudaFree(dev_in));
	CHECK(cudaFree(dev_out));
	return verified("no launch gets more registers than there are");
}
