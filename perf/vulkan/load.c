// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How many submissions a second: usage: load LABEL [MILLISECONDS]
 *
 * A submission is one compute shader over some data. Either each is waited for ("one"), or the last
 * of 64 ("64"). 1, 2, 4 and 8 threads submit at once, each with data of its own. What comes out is
 * compared with the CPU's result at some places. Prints a line of perf/run's CSV for each case.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "vk.h"

enum { MAX_THREADS = 8, BATCH = 64, FACTOR = 3, CHECKED = 16 };

struct worker {
	pthread_t thread;
	uint32_t count; /* elements in a submission */
	uint32_t queue;
	int batch;
	unsigned long submissions;
	double end;
};

static struct vk vk;
static pthread_mutex_t queue_lock[4] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
					PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t start;
static atomic_bool over;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Submits the job a number of times, and waits for the last. */
static void submit(const struct worker *w, const struct job *job, VkFence fence)
{
	VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
			     .commandBufferCount = 1,
			     .pCommandBuffers = &job->commands};

	for (int i = 1; i <= w->batch; i++) {
		pthread_mutex_lock(&queue_lock[w->queue]);
		VK(vkQueueSubmit(vk.queue[w->queue], 1, &info,
				 i == w->batch ? fence : VK_NULL_HANDLE));
		pthread_mutex_unlock(&queue_lock[w->queue]);
	}
	VK(vkWaitForFences(vk.device, 1, &fence, VK_TRUE, UINT64_MAX));
	VK(vkResetFences(vk.device, 1, &fence));
}

static void verify(const struct buffer *b, uint32_t count, unsigned long passes)
{
	for (uint32_t k = 0; k < CHECKED; k++) {
		uint32_t i = (uint32_t)((uint64_t)(count - 1) * k / (CHECKED - 1)), x = i;

		for (unsigned long p = 0; p < passes; p++)
			x = x * FACTOR + i;
		if (b->data[i] != x) {
			fprintf(stderr, "element %u is %u, expected %u\n", i, b->data[i], x);
			exit(1);
		}
	}
}

static void *work(void *arg)
{
	VkFenceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	struct worker *w = arg;
	unsigned long warm;
	VkFence fence;
	struct buffer b;
	struct job job;

	VK(vkCreateFence(vk.device, &info, NULL, &fence));
	vk_buffer(&vk, &b, w->count * 4);
	for (uint32_t i = 0; i < w->count; i++)
		b.data[i] = i;
	vk_record(&vk, &job, &b, w->count, FACTOR);
	submit(w, &job, fence);
	warm = (unsigned long)w->batch;
	pthread_barrier_wait(&start);
	for (w->submissions = 0; !over || !w->submissions;
	     w->submissions += (unsigned long)w->batch)
		submit(w, &job, fence);
	w->end = now();
	verify(&b, w->count, w->submissions + warm);
	vkDestroyFence(vk.device, fence, NULL);
	vk_end(&vk, &job);
	vk_free(&vk, &b);
	return NULL;
}

static void measure(const char *label, uint32_t threads, uint32_t count, int batch, long ms)
{
	struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
	struct worker w[MAX_THREADS];
	unsigned long submissions = 0;
	double begin, end = 0;

	over = false;
	pthread_barrier_init(&start, NULL, threads + 1);
	for (uint32_t i = 0; i < threads; i++) {
		w[i] = (struct worker){.count = count, .queue = i % vk.queues, .batch = batch};
		if (pthread_create(&w[i].thread, NULL, work, &w[i])) {
			fprintf(stderr, "no thread\n");
			exit(1);
		}
	}
	pthread_barrier_wait(&start);
	begin = now();
	nanosleep(&pause, NULL);
	over = true;
	for (uint32_t i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		submissions += w[i].submissions;
		end = w[i].end > end ? w[i].end : end;
	}
	printf("%s,vulkan,%u-threads/%s,%u,%.4g,per second\n", label, threads,
	       batch > 1 ? "64" : "one", count * 4, (double)submissions / (end - begin));
	fflush(stdout);
	pthread_barrier_destroy(&start);
}

int main(int argc, char **argv)
{
	static const uint32_t counts[] = {64, 4096, 65536, 1 << 20, 4 << 20};
	long ms = argc == 3 ? atol(argv[2]) : 500;

	if (argc < 2 || argc > 3 || ms < 1) {
		fprintf(stderr, "usage: load LABEL [MILLISECONDS]\n");
		return 2;
	}
	vk_open(&vk);
	for (uint32_t threads = 1; threads <= MAX_THREADS; threads *= 2)
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
			measure(argv[1], threads, counts[i], 1, ms);
			if (counts[i] <= 4096)
				measure(argv[1], threads, counts[i], BATCH, ms);
		}
	vk_close(&vk);
	return 0;
}
