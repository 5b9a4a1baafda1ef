// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keeps a session open for as long as a test needs it. The program gets device, pinned and
 * pageable memory and prints "ready". It waits for a line or the end of stdin, checks that all
 * memory is unchanged, and returns 0.
 *
 * With "busy" it copies and computes without a pause instead of waiting, with "managed" in managed
 * memory that moves between the GPU and the host. With "kernel" a kernel runs as long as it waits.
 * With "calls" it is in host functions nearly all of the time. With "memory N" it has N GiB of
 * device memory. With "written" it reads a line, has the GPU write to its pinned and pageable
 * memory, and waits for another line. With "changing N" it writes to N times 256 MiB again and
 * again. With "wait" it waits for a stream that never goes on. With "poll" it queries such a stream
 * again and again. A CUDA error ends it with the error's number as exit code (255 if the number
 * does not fit into an exit code).
 */
#include <poll.h>
#include <unistd.h>

#include "check.h"

#define N (256 << 10)

#define TRY(call)                             \
	do {                                  \
		cudaError_t err_ = (call);    \
		if (err_ != cudaSuccess)      \
			give_up(err_, #call); \
	} while (0)

static void give_up(cudaError_t err, const char *call)
{
	fprintf(stderr, "%s: %d %s\n", call, (int)err, cudaGetErrorName(err));
	_exit(err < 255 ? (int)err : 255);
}

__global__ void increment(uint32_t *word, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		word[i]++;
}

__global__ void run_until_set(volatile uint32_t *flag)
{
	while (!*flag)
		;
}

static bool told_to_stop(int timeout_ms)
{
	struct pollfd p = {0, POLLIN, 0};

	return poll(&p, 1, timeout_ms) != 0;
}

static void hold(void *)
{
	for (;;)
		pause();
}

/* Returns when the wait ends with an error. It cannot end otherwise. */
static void never_done(bool poll)
{
	cudaError_t err;

	TRY(cudaLaunchHostFunc(NULL, hold, NULL));
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	do {
		err = poll ? cudaStreamQuery(NULL) : cudaStreamSynchronize(NULL);
	} while (err == cudaSuccess || err == cudaErrorNotReady);
	give_up(err, poll ? "cudaStreamQuery" : "cudaStreamSynchronize");
}

static void nap(void *)
{
	usleep(20000);
}

/* Returns the exit code. */
static int hold_calls(void)
{
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (!told_to_stop(0)) {
		for (int i = 0; i < 4; i++)
			TRY(cudaLaunchHostFunc(NULL, nap, NULL));
		TRY(cudaDeviceSynchronize());
	}
	return 0;
}

/* Returns the exit code. */
static int hold_a_kernel(void)
{
	uint32_t *flag;

	TRY(cudaMallocHost(&flag, sizeof(*flag)));
	*flag = 0;
	run_until_set<<<1, 1>>>(flag);
	TRY(cudaGetLastError());
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	told_to_stop(-1);
	*(volatile uint32_t *)flag = 1;
	TRY(cudaDeviceSynchronize());
	return 0;
}

/* Returns the exit code. */
static int hold_managed(void)
{
	const size_t bytes = 16 * N; /* enough that it moves */
	uint32_t *words, rounds = 0;

	TRY(cudaMallocManaged(&words, bytes));
	fill_words(words, bytes, 3);
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	while (!told_to_stop(0)) {
		increment<<<8, 128>>>(words, 1024);
		TRY(cudaDeviceSynchronize());
		rounds++;
		REQUIRE(words[1023] == scramble(1023, 3) + rounds, "round %u", rounds);
		words[2048] = rounds;
	}
	increment<<<8, 128>>>(words, 1024);
	TRY(cudaDeviceSynchronize());
	for (uint32_t i = 0; i < bytes / 4; i++)
		REQUIRE(words[i] ==
				(i == 2048 ? rounds : scramble(i, 3) + (i < 1024 ? rounds + 1 : 0)),
			"managed word %u", i);
	TRY(cudaFree(words));
	return verified("all managed memory as it was after %u rounds", rounds);
}

/* Only the GPU writes, and nothing looks at it before the end. Returns the exit code. */
static int hold_written(uint32_t *dev, uint32_t *pinned, uint32_t *pageable)
{
	char line;

	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	REQUIRE(read(0, &line, 1) == 1, "no line");
	increment<<<8, 128>>>(pinned, 1024);
	increment<<<8, 128>>>(dev, 1024);
	TRY(cudaMemcpy(pageable, dev, N * 4, cudaMemcpyDeviceToHost));
	printf("written\n");
	fflush(stdout);
	told_to_stop(-1);
	for (uint32_t i = 0; i < N; i++) {
		REQUIRE(pageable[i] == scramble(i, 1) + (i < 1024), "word %u", i);
		REQUIRE(pinned[i] == scramble(i, 2) + (i < 1024), "pinned word %u", i);
	}
	return verified("all memory as the GPU has written it");
}

__device__ unsigned long long wrong;

/* Each word tells its place. check: counts those that are wrong. */
__global__ void place_words(uint32_t *word, uint64_t n, uint32_t piece, bool check)
{
	for (uint64_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
	     i += gridDim.x * blockDim.x) {
		uint32_t want = (uint32_t)i * 2654435761u + piece;

		if (!check)
			word[i] = want;
		else if (word[i] != want)
			atomicAdd(&wrong, 1ull);
	}
}

/* Returns the exit code. */
static int hold_memory(uint32_t count)
{
	const uint64_t bytes = 1ull << 30;
	unsigned long long bad = 0;
	uint32_t **piece = (uint32_t **)calloc(count, sizeof(*piece));

	REQUIRE(piece, "out of memory");
	for (uint32_t i = 0; i < count; i++) {
		TRY(cudaMalloc(&piece[i], bytes));
		place_words<<<1024, 256>>>(piece[i], bytes / 4, i, false);
	}
	TRY(cudaDeviceSynchronize());
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	told_to_stop(-1);
	for (uint32_t i = 0; i < count; i++)
		place_words<<<1024, 256>>>(piece[i], bytes / 4, i, true);
	TRY(cudaMemcpyFromSymbol(&bad, wrong, sizeof(bad)));
	REQUIRE(!bad, "%llu words are wrong", bad);
	return verified("%u GiB as they were", count);
}

/*
 * All bytes of a piece are the same, and others in the next round. In the end a page of each MiB is
 * looked at. Returns the exit code.
 */
static int hold_changing(uint32_t count)
{
	const size_t bytes = 256 << 20, part = 1 << 20, rows = 256;
	uint8_t **piece = (uint8_t **)calloc(count, sizeof(*piece)),
		*host = (uint8_t *)malloc(part), *want = (uint8_t *)malloc(part), round = 0;

	REQUIRE(piece && host && want, "out of memory");
	for (uint32_t i = 0; i < count; i++)
		TRY(cudaMalloc(&piece[i], bytes));
	printf("ready %d\n", (int)getpid());
	fflush(stdout);
	do {
		round++;
		for (uint32_t i = 0; i < count; i++)
			TRY(cudaMemset(piece[i], (uint8_t)(round + i), bytes));
		TRY(cudaDeviceSynchronize());
	} while (!told_to_stop(0));
	for (uint32_t i = 0; i < count; i++) {
		memset(want, (uint8_t)(round + i), part);
		TRY(cudaMemcpy2D(host, part / rows, piece[i], bytes / rows, part / rows, rows,
				 cudaMemcpyDeviceToHost));
		REQUIRE(!memcmp(host, want, part), "piece %u", i);
	}
	return verified("%u pieces as they were written last", count);
}

int main(int argc, char **argv)
{
	bool busy = argc > 1 && !strcmp(argv[1], "busy"),
	     kernel = argc > 1 && !strcmp(argv[1], "kernel");
	uint32_t *dev, *pinned, *pageable = (uint32_t *)malloc(N * 4), rounds = 0;

	if (argc > 1 && !strcmp(argv[1], "managed"))
		return hold_managed();
	REQUIRE(pageable, "out of memory");
	TRY(cudaMalloc(&dev, N * 4));
	TRY(cudaMallocHost(&pinned, N * 4));
	fill_words(pageable, N * 4, 1);
	fill_words(pinned, N * 4, 2);
	TRY(cudaMemcpy(dev, pageable, N * 4, cudaMemcpyHostToDevice));
	if (kernel)
		return hold_a_kernel();
	if (argc > 1 && !strcmp(argv[1], "calls"))
		return hold_calls();
	if (argc > 1 && !strcmp(argv[1], "written"))
		return hold_written(dev, pinned, pageable);
	if (argc > 2 && !strcmp(argv[1], "memory"))
		return hold_memory((uint32_t)atoi(argv[2]));
	if (argc > 2 && !strcmp(argv[1], "changing"))
		return hold_changing((uint32_t)atoi(argv[2]));
	if (argc > 1 && !busy)
		never_done(!strcmp(argv[1], "poll"));
	printf("ready %d\n", (int)getpid());
	fflush(stdout);

	while (!told_to_stop(busy ? 0 : -1)) {
		increment<<<8, 128>>>(dev, 1024);
		TRY(cudaGetLastError());
		TRY(cudaMemcpy(pageable, dev, N * 4, cudaMemcpyDeviceToHost));
		TRY(cudaMemcpy(dev, pageable, N * 4, cudaMemcpyHostToDevice));
		rounds++;
	}
	TRY(cudaMemcpy(pageable, dev, N * 4, cudaMemcpyDeviceToHost));
	for (uint32_t i = 0; i < N; i++) {
		REQUIRE(pageable[i] == scramble(i, 1) + (i < 1024 ? rounds : 0), "word %u", i);
		REQUIRE(pinned[i] == scramble(i, 2), "pinned word %u", i);
	}
	TRY(cudaFree(dev));
	TRY(cudaFreeHost(pinned));
	free(pageable);
	return verified("all memory as it was after %u rounds", rounds);
}
