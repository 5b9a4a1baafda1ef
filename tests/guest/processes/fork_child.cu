// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fork() in the middle of CUDA work, which NVIDIA's runtime does not allow. The child finds all
 * of its parent's host memory unchanged, also pinned and managed memory. It uses the GPU in a
 * session of its own while the parent's copies go on. This program is for a guest, not for a
 * bare host.
 */
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define N     (600 * 1000)
#define BYTES (N * sizeof(uint32_t))

__global__ void twice(uint32_t *p, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < n)
		p[i] *= 2;
}

__managed__ int counter = 5;

__global__ void count(void)
{
	counter++;
}

/* From the fork on, the counter is the child's own, with the parent's value. */
static void count_here(int before)
{
	REQUIRE(counter == before, "%d instead of %d", counter, before);
	count<<<1, 1>>>();
	CHECK_LAUNCH();
	CHECK(cudaDeviceSynchronize());
	REQUIRE(counter == before + 1, "%d instead of %d", counter, before + 1);
}

static uint32_t *heap, *pinned, *managed, *dev, *target;

static void expect_words(const uint32_t *p, uint32_t seed, uint32_t factor, const char *what)
{
	for (int i = 0; i < N; i++)
		REQUIRE(p[i] == scramble(i, seed) * factor, "%s: word %d is %08x", what, i, p[i]);
}

/* Computes in a process that has no device pointer of its own. */
static void compute(uint32_t *host, uint32_t seed)
{
	uint32_t *d;

	fill_words(host, BYTES, seed);
	CHECK(cudaMalloc(&d, BYTES));
	CHECK(cudaMemcpy(d, host, BYTES, cudaMemcpyHostToDevice));
	twice<<<(N + 255) / 256, 256>>>(d, N);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(host, d, BYTES, cudaMemcpyDeviceToHost));
	expect_words(host, seed, 2, "computed in a child");
	CHECK(cudaFree(d));
}

/* Small device memory, of which the library may have allocated more than was asked for. */
static void small_pieces(void)
{
	uint32_t *piece[20], got;

	for (uint32_t i = 0; i < 20; i++) {
		CHECK(cudaMalloc(&piece[i], 64 << 10));
		CHECK(cudaMemcpy(piece[i], &i, 4, cudaMemcpyHostToDevice));
	}
	for (uint32_t i = 0; i < 20; i++) {
		CHECK(cudaMemcpy(&got, piece[i], 4, cudaMemcpyDeviceToHost));
		REQUIRE(got == i, "small piece %u holds %u", i, got);
	}
}

static void child(int nr)
{
	uint32_t *fresh;

	expect_words(heap, 1, 1, "heap in the child");
	expect_words(pinned, 2, 1, "pinned in the child");
	expect_words(managed, 3, 1, "managed in the child");
	switch (nr) {
	case 0: /* writes all memory and ends */
		memset(heap, 7, BYTES);
		memset(pinned, 7, BYTES);
		memset(managed, 7, BYTES);
		return;
	case 1: /* computes in inherited memory, then frees it */
		count_here(6);
		compute(pinned, 11);
		compute(managed, 12);
		CHECK(cudaHostRegister(heap, BYTES, 0));
		compute(heap, 13);
		CHECK(cudaHostUnregister(heap));
		free(heap);
		CHECK(cudaFreeHost(pinned));
		break;
	case 2: /* uses memory of its own, too */
		small_pieces();
		CHECK(cudaMallocHost(&fresh, BYTES));
		compute(fresh, 14);
		expect_words(heap, 1, 1, "heap beside it");
		CHECK(cudaFreeHost(fresh));
		fresh = (uint32_t *)malloc(BYTES);
		compute(fresh, 15);
		free(fresh);
		break;
	}
	/* A child of the child. */
	pid_t pid = fork();

	if (!pid) {
		if (nr == 2) {
			expect_words(managed, 3, 1, "managed in the grandchild");
			compute(managed, 16);
		}
		_exit(0);
	}
	int status;

	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "grandchild ended with %x", status);
}

int main(int argc, char **argv)
{
	static char *args[] = {argv[0], (char *)"nothing", NULL}, *env[] = {NULL};
	cudaStream_t stream;
	int status;
	pid_t pid;

	if (argc > 1)
		return 0;
	heap = (uint32_t *)malloc(BYTES);
	target = (uint32_t *)malloc(BYTES);
	CHECK(cudaMallocHost(&pinned, BYTES));
	CHECK(cudaMallocManaged(&managed, BYTES));
	CHECK(cudaMalloc(&dev, BYTES));
	CHECK(cudaStreamCreate(&stream));
	count_here(5);
	small_pieces();
	for (int nr = 0; nr < 4; nr++) {
		fill_words(heap, BYTES, 1);
		fill_words(pinned, BYTES, 2);
		fill_words(managed, BYTES, 3);
		CHECK(cudaMemcpyAsync(dev, heap, BYTES, cudaMemcpyHostToDevice, stream));
		twice<<<(N + 255) / 256, 256, 0, stream>>>(dev, N);
		CHECK_LAUNCH();
		CHECK(cudaMemcpyAsync(target, dev, BYTES, cudaMemcpyDeviceToHost, stream));
		if (nr == 3) {
			REQUIRE(!posix_spawn(&pid, "/proc/self/exe", NULL, NULL, args, env),
				"posix_spawn");
		} else {
			pid = fork();
			if (!pid) {
				child(nr);
				_exit(0);
			}
			/* From here on, neither process sees what the other does. */
			fill_words(heap, BYTES, 4);
			twice<<<(N + 255) / 256, 256, 0, stream>>>(managed, N);
			CHECK_LAUNCH();
			CHECK(cudaMemcpyAsync(pinned, dev, BYTES, cudaMemcpyDeviceToHost, stream));
			CHECK(cudaStreamSynchronize(stream));
		}
		REQUIRE(waitpid(pid, &status, 0) == pid && !status, "child %d ended with %x", nr,
			status);
		CHECK(cudaStreamSynchronize(stream));
		expect_words(target, 1, 2, "the copy that was in flight");
		if (nr == 3)
			break;
		expect_words(heap, 4, 1, "heap of the parent");
		expect_words(pinned, 1, 2, "pinned memory of the parent");
		small_pieces();
		expect_words(managed, 3, 2, "managed memory of the parent");
	}
	count_here(6);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(dev));
	CHECK(cudaFree(managed));
	CHECK(cudaFreeHost(pinned));
	free(heap);
	free(target);
	return verified("children have what their parent had, and GPUs of their own");
}
