// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A host function that waits for the program holds up a stream. Meanwhile memory is allocated
 * and freed. All kinds of host memory are freed before and during this time. New allocations
 * must succeed and hold the right bytes although the stream does not go on. The host function
 * gives up after a while, so that the test can tell a call that waits for it from a program that
 * hangs.
 */
#include <atomic>

#include <unistd.h>

#include "check.h"

#define BLOCKS 12
#define BLOCK  (2u << 20) /* two of them need a chunk of 4 MiB */
#define PINNED (6u << 20)
#define OWN    (1u << 20)
#define WAIT_S 45

static std::atomic<bool> entered, let_go, gave_up;
static char own[OWN];

static void CUDART_CB hold(void *)
{
	const double end = now() + WAIT_S;

	entered = true;
	while (!let_go && !gave_up) {
		usleep(1000);
		gave_up = now() > end;
	}
}

static void in_time(const char *what)
{
	REQUIRE(!gave_up, "%s was waited for until the host function gave up after %d s", what,
		WAIT_S);
}

static cudaStream_t stream;
static char *dev, *back;

/* Copies up, and back to other memory. */
static void use(void *mem, size_t len, uint32_t seed, const char *what)
{
	fill_words(mem, len, seed);
	CHECK(cudaMemcpyAsync(dev, mem, len, cudaMemcpyHostToDevice, stream));
	CHECK(cudaMemsetAsync(dev + len / 2, 0, 1, stream));
	CHECK(cudaMemcpyAsync(back, dev, len, cudaMemcpyDeviceToHost, stream));
	CHECK(cudaStreamSynchronize(stream));
	in_time(what);
	((char *)mem)[len / 2] = 0;
	REQUIRE(first_difference(mem, back, len) == len, "%s has other bytes", what);
}

static void blocks(char **block, uint32_t seed, const char *what)
{
	for (int i = 0; i < BLOCKS; i++) {
		block[i] = (char *)malloc(BLOCK);
		REQUIRE(block[i], "no memory");
		use(block[i], BLOCK, seed + i, what);
	}
}

static void free_all(char **block)
{
	for (int i = 0; i < BLOCKS; i++)
		free(block[i]);
}

int main(void)
{
	char *block[BLOCKS], *pinned, *managed;
	cudaStream_t held;

	CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMalloc((void **)&dev, PINNED));
	CHECK(cudaMallocHost((void **)&back, PINNED));

	/* Memory that is released some time after the call that frees it. */
	blocks(block, 1, "malloc's memory");
	CHECK(cudaMallocManaged((void **)&managed, PINNED));
	use(managed, PINNED, 50, "managed memory");
	CHECK(cudaFree(managed));
	CHECK(cudaMallocHost((void **)&pinned, PINNED));
	use(pinned, PINNED, 51, "pinned memory");
	CHECK(cudaFreeHost(pinned));

	CHECK(cudaLaunchHostFunc(held, hold, NULL));
	while (!entered)
		usleep(1000);
	free_all(block);
	in_time("free");
	CHECK(cudaMallocHost((void **)&pinned, PINNED / 2));
	use(pinned, PINNED / 2, 52, "pinned memory");
	CHECK(cudaMallocManaged((void **)&managed, PINNED));
	use(managed, PINNED, 53, "managed memory");
	CHECK(cudaHostRegister(own, sizeof(own), cudaHostRegisterDefault));
	use(own, sizeof(own), 54, "registered memory");
	blocks(block, 100, "malloc's memory");
	free_all(block);
	EXPECT(cudaStreamQuery(held), cudaErrorNotReady);
	in_time("the program");

	let_go = true;
	CHECK(cudaDeviceSynchronize());
	in_time("the end");
	CHECK(cudaHostUnregister(own));
	CHECK(cudaFree(managed));
	CHECK(cudaFreeHost(pinned));
	/* All freed memory has been released, and its addresses are used again. */
	blocks(block, 200, "malloc's memory");
	free_all(block);
	CHECK(cudaFreeHost(back));
	CHECK(cudaFree(dev));
	CHECK(cudaStreamDestroy(held));
	CHECK(cudaStreamDestroy(stream));
	return verified("%d MiB of new memory used while a host function waits for the program",
			(BLOCKS * (BLOCK >> 20) + (PINNED >> 20) * 3 / 2 + (OWN >> 20)));
}
