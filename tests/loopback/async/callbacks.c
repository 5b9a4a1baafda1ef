// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The thread that runs host functions. It does not exist before the first host function. A child of
 * fork() gets a thread of its own. When many threads put host functions into many streams at once,
 * all functions run, in the order of each stream.
 */
#include <dirent.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/loopback/check.h"

#define THREADS 6
#define CALLS	50

static int callback_threads(void)
{
	DIR *dir = opendir("/proc/self/task");
	struct dirent *e;
	int n = 0;

	REQUIRE(dir, "no /proc");
	while ((e = readdir(dir))) {
		char path[300], name[32] = "";
		FILE *f;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
		f = fopen(path, "r");
		if (f && fgets(name, sizeof(name), f))
			n += !strcmp(name, "qcuda-callbacks\n");
		if (f)
			fclose(f);
	}
	closedir(dir);
	return n;
}

static void count(void *data)
{
	++*(int *)data;
}

struct order {
	int next;
	int wrong;
};
struct turn {
	struct order *order;
	int mine;
};

static void in_order(cudaStream_t stream, cudaError_t err, void *data)
{
	struct turn *t = data;

	(void)stream;
	t->order->wrong += err != cudaSuccess || t->order->next++ != t->mine;
}

static void *worker(void *unused)
{
	struct turn turns[CALLS];
	struct order order = {0, 0};
	cudaStream_t s;
	int i;

	(void)unused;
	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	for (i = 0; i < CALLS; i++) {
		turns[i] = (struct turn){&order, i};
		OK(cudaStreamAddCallback(s, in_order, &turns[i], 0));
	}
	OK(cudaStreamSynchronize(s));
	REQUIRE(order.next == CALLS && !order.wrong, "%d calls, %d out of turn", order.next,
		order.wrong);
	OK(cudaStreamDestroy(s));
	return NULL;
}

static void work(void)
{
	pthread_t t[THREADS];
	int i;

	for (i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&t[i], NULL, worker, NULL), "no thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	REQUIRE(callback_threads() == 1, "%d threads", callback_threads());
}

int main(void)
{
	cudaStream_t bad = (cudaStream_t)&bad;
	int n = 0, status;
	pid_t pid;

	OK(cudaFree(NULL));
	REQUIRE(callback_threads() == 0, "a thread that nobody needs");
	REFUSED(cudaLaunchHostFunc(bad, count, &n), cudaErrorInvalidResourceHandle);
	REFUSED(cudaLaunchHostFunc(NULL, NULL, &n), cudaErrorInvalidValue);
	REQUIRE(callback_threads() == 0, "a thread that nobody needs");
	OK(cudaLaunchHostFunc(NULL, count, &n));
	OK(cudaDeviceSynchronize());
	REQUIRE(n == 1, "called %d times", n);
	work();
	pid = fork();
	if (!pid) {
		OK(cudaFree(NULL));
		REQUIRE(callback_threads() == 0, "a child's thread before it needs one");
		OK(cudaLaunchHostFunc(NULL, count, &n));
		OK(cudaDeviceSynchronize());
		REQUIRE(n == 2, "called %d times", n);
		work();
		_exit(0);
	}
	work();
	REQUIRE(waitpid(pid, &status, 0) == pid && !status, "the child ended with %x", status);
	return 0;
}
