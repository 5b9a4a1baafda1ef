// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One process that uses CUDA and Vulkan. Each value goes through a kernel of CUDA, then through one
 * of Vulkan, and back, several times; then both compute at the same time, in two threads. The CPU
 * computes it all, too.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "vk.h"

enum { COUNT = 1 << 16, ROUNDS = 8, FACTOR = 5 };

__global__ void twist(uint32_t *data, uint32_t key)
{
	uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;

	data[i] = (data[i] ^ key) + i;
}

static struct vk vk;
static struct buffer b;
static struct job job;
static uint32_t *device, expected[COUNT], together[COUNT];

static void cuda_pass(uint32_t *data, uint32_t key)
{
	CHECK(cudaMemcpy(device, data, sizeof(expected), cudaMemcpyHostToDevice));
	twist<<<COUNT / 256, 256>>>(device, key);
	CHECK_LAUNCH();
	CHECK(cudaMemcpy(data, device, sizeof(expected), cudaMemcpyDeviceToHost));
}

static void *vulkan_thread(void *)
{
	for (int i = 0; i < ROUNDS; i++)
		vk_run(&vk, &job, 0);
	return NULL;
}

static void same(const char *what, const uint32_t *got, const uint32_t *wanted)
{
	for (uint32_t i = 0; i < COUNT; i++)
		REQUIRE(got[i] == wanted[i], "%s: element %u is %u, not %u", what, i, got[i],
			wanted[i]);
}

/* Vulkan's memory is a window into the host's, which no device can copy from. So the values go through ours. */
static void in_turn(void)
{
	for (uint32_t i = 0; i < COUNT; i++)
		b.data[i] = expected[i] = i * 2654435761u;
	for (uint32_t key = 1; key <= ROUNDS; key++) {
		memcpy(together, b.data, sizeof(together));
		cuda_pass(together, key);
		memcpy(b.data, together, sizeof(together));
		vk_run(&vk, &job, 0);
		for (uint32_t i = 0; i < COUNT; i++)
			expected[i] = ((expected[i] ^ key) + i) * FACTOR + i;
	}
	same("in turn", b.data, expected);
}

static void at_once(void)
{
	static uint32_t wanted[COUNT];
	pthread_t t;

	memcpy(wanted, expected, sizeof(wanted));
	memcpy(together, expected, sizeof(together));
	REQUIRE(!pthread_create(&t, NULL, vulkan_thread, NULL), "no thread");
	for (uint32_t key = 1; key <= ROUNDS; key++)
		cuda_pass(together, key);
	pthread_join(t, NULL);
	for (uint32_t i = 0; i < COUNT; i++)
		for (uint32_t key = 1; key <= ROUNDS; key++) {
			wanted[i] = (wanted[i] ^ key) + i;
			expected[i] = expected[i] * FACTOR + i;
		}
	same("CUDA at once", together, wanted);
	same("Vulkan at once", b.data, expected);
}

int main()
{
	vk_open(&vk);
	vk_buffer(&vk, &b, sizeof(expected));
	vk_record(&vk, &job, &b, COUNT, FACTOR);
	CHECK(cudaMalloc(&device, sizeof(expected)));
	in_turn();
	at_once();
	CHECK(cudaFree(device));
	vk_end(&vk, &job);
	vk_free(&vk, &b);
	vk_close(&vk);
	printf("verified: %d elements, by CUDA and by Vulkan\n", COUNT);
	return 0;
}
