// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Computes with Vulkan in several ways, and verifies each result on the CPU. Standard output is the
 * same on every GPU.
 *
 *   compute               buffers, an image that a shader writes, a timeline semaphore, several
 *                         queues and threads
 *   compute exhaust MIB   maps memory until that is refused, at the latest when MIB are mapped;
 *                         then frees it, and does the rest
 *   compute allocate MIB  allocates as much, maps nothing, and does the rest while it is there;
 *                         Venus does not wait for the host's answer, so a refusal ends the
 *                         program later
 *   compute loop          computes until something fails
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "vk.h"

enum { COUNT = 100000, THREADS = 4, ROUNDS = 16, BLOCK = 16 << 20, BLOCKS = 4096 };

static struct vk vk;

static void __attribute__((noreturn))
wrong(const char *what, uint32_t i, uint32_t got, uint32_t expected)
{
	fprintf(stderr, "%s: element %u is %u, expected %u\n", what, i, got, expected);
	exit(1);
}

static void fill(struct buffer *b, uint32_t seed)
{
	for (uint32_t i = 0; i < b->size / 4; i++)
		b->data[i] = i * 2654435761u + seed;
}

/* Compares with what the passes must have made of fill(), and returns the sum of all elements. */
static uint32_t verify(const char *what, const struct buffer *b, uint32_t seed, uint32_t factor,
		       unsigned int passes)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < b->size / 4; i++) {
		uint32_t x = i * 2654435761u + seed;

		for (unsigned int p = 0; p < passes; p++)
			x = x * factor + i;
		if (b->data[i] != x)
			wrong(what, i, b->data[i], x);
		sum += x;
	}
	return sum;
}

static void buffers(void)
{
	static const uint32_t counts[] = {1, 63, 64, 65, COUNT};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct buffer b;
		struct job job;

		vk_buffer(&vk, &b, counts[i] * 4);
		fill(&b, 7);
		vk_record(&vk, &job, &b, counts[i], 3);
		vk_run(&vk, &job, 0);
		vk_run(&vk, &job, 0);
		printf("buffer of %u: %08x\n", counts[i], verify("buffers", &b, 7, 3, 2));
		vk_end(&vk, &job);
		vk_free(&vk, &b);
	}
}

/* Each submission waits for the value of the one before, on another queue; the first one waits for
 * us. */
static void timeline(void)
{
	VkSemaphoreTypeCreateInfo type = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
					  .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
	VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
				      .pNext = &type};
	VkPipelineStageFlags stage = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT;
	VkSemaphoreSignalInfo go = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .value = 1};
	uint64_t last = ROUNDS + 1, value;
	VkSemaphoreWaitInfo done = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
				    .semaphoreCount = 1,
				    .pValues = &last};
	VkSemaphore semaphore;
	struct buffer b;
	struct job jobs[ROUNDS];

	VK(vkCreateSemaphore(vk.device, &info, NULL, &semaphore));
	vk_buffer(&vk, &b, COUNT * 4);
	fill(&b, 1);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t before = i + 1, after = i + 2;
		VkTimelineSemaphoreSubmitInfo values = {
			.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
			.waitSemaphoreValueCount = 1,
			.pWaitSemaphoreValues = &before,
			.signalSemaphoreValueCount = 1,
			.pSignalSemaphoreValues = &after};
		VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
				       .pNext = &values,
				       .waitSemaphoreCount = 1,
				       .pWaitSemaphores = &semaphore,
				       .pWaitDstStageMask = &stage,
				       .commandBufferCount = 1,
				       .pCommandBuffers = &jobs[i].commands,
				       .signalSemaphoreCount = 1,
				       .pSignalSemaphores = &semaphore};

		vk_record(&vk, &jobs[i], &b, COUNT, 5);
		VK(vkQueueSubmit(vk.queue[i % vk.queues], 1, &submit, VK_NULL_HANDLE));
	}
	VK(vkGetSemaphoreCounterValue(vk.device, semaphore, &value));
	if (value != 0)
		wrong("timeline before its start", 0, (uint32_t)value, 0);
	verify("timeline before its start", &b, 1, 5, 0);
	go.semaphore = semaphore;
	VK(vkSignalSemaphore(vk.device, &go));
	done.pSemaphores = &semaphore;
	VK(vkWaitSemaphores(vk.device, &done, UINT64_MAX));
	printf("timeline: %08x\n", verify("timeline", &b, 1, 5, ROUNDS));
	VK(vkDeviceWaitIdle(vk.device));
	for (int i = 0; i < ROUNDS; i++)
		vk_end(&vk, &jobs[i]);
	vk_free(&vk, &b);
	vkDestroySemaphore(vk.device, semaphore, NULL);
}

static pthread_mutex_t queue_lock[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
					PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};

/* A queue may be used by one thread at a time. */
static void *thread(void *arg)
{
	uint32_t nr = *(uint32_t *)arg, queue = nr % vk.queues;
	struct buffer b;
	struct job job;

	vk_buffer(&vk, &b, COUNT * 4);
	fill(&b, nr);
	vk_record(&vk, &job, &b, COUNT, nr + 3);
	for (int i = 0; i < ROUNDS; i++) {
		pthread_mutex_lock(&queue_lock[queue]);
		vk_run(&vk, &job, queue);
		pthread_mutex_unlock(&queue_lock[queue]);
	}
	*(uint32_t *)arg = verify("threads", &b, nr, nr + 3, ROUNDS);
	vk_end(&vk, &job);
	vk_free(&vk, &b);
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	uint32_t nr[THREADS];

	for (uint32_t i = 0; i < THREADS; i++) {
		nr[i] = i;
		if (pthread_create(&t[i], NULL, thread, &nr[i])) {
			fprintf(stderr, "no thread\n");
			exit(1);
		}
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		printf("thread %d: %08x\n", i, nr[i]);
	}
}

/* Allocates, and perhaps maps, blocks until that is refused. Returns how many there are. */
static int take_all(VkDeviceMemory *blocks, int max, bool map)
{
	VkMemoryAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
				     .allocationSize = BLOCK};
	int n = 0;

	info.memoryTypeIndex = (uint32_t)vk_memory_type(
		&vk, ~0u,
		VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT);
	while (n < max) {
		void *p;

		if (vkAllocateMemory(vk.device, &info, NULL, &blocks[n]) != VK_SUCCESS)
			break;
		n++;
		if (!map)
			continue;
		if (vkMapMemory(vk.device, blocks[n - 1], 0, VK_WHOLE_SIZE, 0, &p) != VK_SUCCESS) {
			vkFreeMemory(vk.device, blocks[--n], NULL);
			break;
		}
		memset(p, n, 4096);
	}
	return n;
}

/*
 * Venus does not wait for the host's answer to an allocation. What the host has refused is noticed
 * by who uses it.
 */
static void use_memory(VkDeviceMemory memory)
{
	const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
					 .size = 4096,
					 .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
	VkBuffer buffer;

	VK(vkCreateBuffer(vk.device, &info, NULL, &buffer));
	VK(vkBindBufferMemory(vk.device, buffer, memory, 0));
	vkDestroyBuffer(vk.device, buffer, NULL);
}

static void exhaust(int mib, bool map)
{
	static VkDeviceMemory blocks[BLOCKS];
	int max = mib / (BLOCK >> 20), n;

	if (max < 1 || max > BLOCKS) {
		fprintf(stderr, "MIB must be from 16 to %d\n", BLOCKS * (BLOCK >> 20));
		exit(2);
	}
	n = take_all(blocks, max, map);
	fprintf(stderr, "%d MiB were given\n", n * (BLOCK >> 20));
	if (!n)
		exit(1);
	if (!map) {
		use_memory(blocks[n - 1]);
		buffers();
		return;
	}
	if (n == max)
		exit(1);
	for (int i = 0; i < n; i++)
		vkFreeMemory(vk.device, blocks[i], NULL);
	puts("refused");
}

static void loop(void)
{
	struct buffer b;
	struct job job;

	vk_buffer(&vk, &b, COUNT * 4);
	vk_record(&vk, &job, &b, COUNT, 3);
	for (int i = 0;; i++) {
		vk_run(&vk, &job, 0);
		if (i == 0) {
			puts("looping");
			fflush(stdout);
		}
	}
}

int main(int argc, char **argv)
{
	vk_open(&vk);
	if (argc == 3 && !strcmp(argv[1], "exhaust"))
		exhaust(atoi(argv[2]), true);
	else if (argc == 3 && !strcmp(argv[1], "allocate"))
		exhaust(atoi(argv[2]), false);
	else if (argc == 2 && !strcmp(argv[1], "loop"))
		loop();
	else if (argc != 1)
		return 2;
	buffers();
	image(&vk);
	timeline();
	threads();
	vk_close(&vk);
	puts("all right");
	return 0;
}
