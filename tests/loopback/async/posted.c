// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Posted commands: what must hold although no caller waits for them. Pageable memory may be
 * overwritten and pinned memory freed at once. Threads that pass a stream or an event to one
 * another find their work in order. A program can post more than there is room for. Errors are
 * returned where CUDA returns them.
 */
#include <pthread.h>
#include <time.h>

#include "tests/loopback/check.h"

#define THREADS 64
#define LEN	4096

/* The program may change the source when the call returns, also if the stream is busy. */
static void pageable_at_once(void)
{
	enum { N = 200, PART = 1000 };
	char *dev, *slow, *pinned, *big = malloc(64 << 10), src[PART], back[PART];
	cudaStream_t s;
	int i;

	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaMalloc((void **)&dev, N * PART));
	OK(cudaMalloc((void **)&slow, 64 << 20));
	OK(cudaMallocHost((void **)&pinned, 64 << 20));
	OK(cudaMemcpyAsync(slow, pinned, 64 << 20, cudaMemcpyHostToDevice, s));
	for (i = 0; i < N; i++) {
		fill(src, PART, (uint32_t)i);
		OK(cudaMemcpyAsync(dev + i * PART, src, PART, cudaMemcpyHostToDevice, s));
		memset(src, 0xee, PART);
	}
	OK(cudaStreamSynchronize(s));
	for (i = 0; i < N; i++) {
		fill(src, PART, (uint32_t)i);
		OK(cudaMemcpy(back, dev + i * PART, PART, cudaMemcpyDeviceToHost));
		REQUIRE(differs(src, back, PART) == PART, "copy %d", i);
	}
	/*
	 * The largest copy whose bytes travel with the command, the smallest copy whose bytes do
	 * not, and the rows of a rectangle.
	 */
	for (i = 0; i < 2; i++) {
		char *again = malloc((64 << 10) + 1);

		big = realloc(big, (64 << 10) + 1);
		REQUIRE(big && again, "out of memory");
		fill(big, (64 << 10) + 1, 5);
		OK(cudaMemcpyAsync(slow, big, (64 << 10) + (size_t)i, cudaMemcpyHostToDevice, s));
		memset(big, 0, (64 << 10) + 1);
		OK(cudaStreamSynchronize(s));
		OK(cudaMemcpy(again, slow, (64 << 10) + (size_t)i, cudaMemcpyDeviceToHost));
		fill(big, (64 << 10) + 1, 5);
		REQUIRE(differs(big, again, (64 << 10) + (size_t)i) == (64 << 10) + (size_t)i,
			"64 KiB and %d", i);
		free(again);
	}
	fill(src, PART, 9);
	OK(cudaMemcpy2D(dev, 200, src, 100, 60, 10, cudaMemcpyHostToDevice));
	OK(cudaMemcpy2D(back, 100, dev, 200, 60, 10, cudaMemcpyDeviceToHost));
	for (i = 0; i < 10; i++)
		REQUIRE(!memcmp(src + 100 * i, back + 100 * i, 60), "row %d", i);
	free(big);
	OK(cudaFreeHost(pinned));
	OK(cudaFree(slow));
	OK(cudaFree(dev));
	OK(cudaStreamDestroy(s));
}

/* A small synchronous copy waits for the work before it, as in CUDA. */
static void small_copy_waits_for_work(void)
{
	const size_t len = ROUNDS(64) << 20;
	char *dev, *pinned, *other;
	int round, four = 4;

	OK(cudaMalloc((void **)&dev, len));
	OK(cudaMalloc((void **)&other, 4));
	OK(cudaMallocHost((void **)&pinned, len));
	for (round = 0; round < 5; round++) {
		OK(cudaMemset(dev, round + 1, len));
		OK(cudaMemcpyAsync(pinned, dev, len, cudaMemcpyDeviceToHost, 0));
		OK(cudaMemcpy(other, &four, 4, cudaMemcpyHostToDevice));
		REQUIRE(pinned[len - 1] == round + 1, "round %d: %d", round, pinned[len - 1]);
	}
	OK(cudaFreeHost(pinned));
	OK(cudaFree(other));
	OK(cudaFree(dev));
}

/* The memory is freed while the copies are under way or have not begun. */
static void freed_while_posted(void)
{
	enum { N = ROUNDS(40), SIZE = 1 << 20 };
	char *dev, *src, *back = malloc(SIZE);
	int i, round;

	for (round = 0; round < N; round++) {
		OK(cudaMalloc((void **)&dev, SIZE));
		OK(cudaMallocHost((void **)&src, SIZE));
		fill(src, SIZE, (uint32_t)round);
		for (i = 0; i < 16; i++)
			OK(cudaMemcpyAsync(dev, src, SIZE, cudaMemcpyHostToDevice, 0));
		OK(cudaFreeHost(src));
		OK(cudaMemcpy(back, dev, SIZE, cudaMemcpyDeviceToHost));
		src = malloc(SIZE);
		REQUIRE(src && back, "out of memory");
		fill(src, SIZE, (uint32_t)round);
		REQUIRE(differs(src, back, SIZE) == SIZE, "round %d", round);
		free(src);
		OK(cudaMemcpyAsync(dev, dev + SIZE / 2, SIZE / 2, cudaMemcpyDeviceToDevice, 0));
		OK(cudaFree(dev));
	}
	free(back);
}

/* Registered memory of the program: after cudaHostUnregister, the program alone uses it again. */
static void unregistered_while_posted(void)
{
	enum { N = ROUNDS(20), SIZE = 1 << 20 };
	char *dev, *src = aligned_alloc(4096, SIZE), *back = malloc(SIZE), *want = malloc(SIZE);
	int i, round;

	REQUIRE(src && back && want, "out of memory");
	OK(cudaMalloc((void **)&dev, SIZE));
	for (round = 0; round < N; round++) {
		fill(src, SIZE, (uint32_t)round);
		fill(want, SIZE, (uint32_t)round);
		OK(cudaHostRegister(src, SIZE, cudaHostRegisterDefault));
		for (i = 0; i < 16; i++)
			OK(cudaMemcpyAsync(dev, src, SIZE, cudaMemcpyHostToDevice, 0));
		OK(cudaHostUnregister(src));
		memset(src, 0xee, SIZE);
		OK(cudaMemcpy(back, dev, SIZE, cudaMemcpyDeviceToHost));
		REQUIRE(differs(want, back, SIZE) == SIZE, "round %d", round);
		/* The same for downloads: nothing is written after the call. */
		OK(cudaHostRegister(src, SIZE, cudaHostRegisterDefault));
		for (i = 0; i < 16; i++)
			OK(cudaMemcpyAsync(src, dev, SIZE, cudaMemcpyDeviceToHost, 0));
		OK(cudaHostUnregister(src));
		memset(src, 0xdd, SIZE);
		OK(cudaDeviceSynchronize());
		REQUIRE(src[0] == (char)0xdd && src[SIZE - 1] == (char)0xdd, "round %d", round);
	}
	OK(cudaFree(dev));
	free(src);
	free(back);
	free(want);
}

/* ---- two threads, one stream ---- */

struct relay {
	pthread_mutex_t lock;
	pthread_cond_t turn_changed;
	int turn, rounds;
	char *dev;
	cudaStream_t stream, own[2];
	cudaEvent_t event;
	bool with_event;
};

/*
 * The threads take turns. Each moves one byte on by one place, then passes the turn under a mutex.
 * A step out of order leaves a gap.
 */
static void *relay_run(void *arg, int me)
{
	struct relay *r = arg;
	int i;

	for (i = me; i < r->rounds; i += 2) {
		cudaStream_t s = r->with_event ? r->own[me] : r->stream;

		pthread_mutex_lock(&r->lock);
		while (r->turn != i)
			pthread_cond_wait(&r->turn_changed, &r->lock);
		if (r->with_event)
			OK(cudaStreamWaitEvent(s, r->event, 0));
		OK(cudaMemcpyAsync(r->dev + i + 1, r->dev + i, 1, cudaMemcpyDeviceToDevice, s));
		if (r->with_event)
			OK(cudaEventRecord(r->event, s));
		r->turn++;
		pthread_cond_signal(&r->turn_changed);
		pthread_mutex_unlock(&r->lock);
	}
	return NULL;
}

static void *first(void *arg)
{
	return relay_run(arg, 0);
}

static void *second(void *arg)
{
	return relay_run(arg, 1);
}

static void handed_over(cudaStream_t stream, bool with_event)
{
	struct relay r = {.rounds = ROUNDS(3000), .stream = stream, .with_event = with_event};
	char *all = malloc((size_t)r.rounds + 1);
	pthread_t t[2];
	int i;

	REQUIRE(all, "out of memory");
	pthread_mutex_init(&r.lock, NULL);
	pthread_cond_init(&r.turn_changed, NULL);
	OK(cudaMalloc((void **)&r.dev, (size_t)r.rounds + 1));
	OK(cudaMemset(r.dev, 0, (size_t)r.rounds + 1));
	OK(cudaMemset(r.dev, 77, 1));
	OK(cudaDeviceSynchronize());
	OK(cudaEventCreateWithFlags(&r.event, cudaEventDisableTiming));
	for (i = 0; i < 2; i++)
		OK(cudaStreamCreateWithFlags(&r.own[i], cudaStreamNonBlocking));
	REQUIRE(!pthread_create(&t[0], NULL, first, &r), "no thread");
	REQUIRE(!pthread_create(&t[1], NULL, second, &r), "no thread");
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	/* A third thread waits for the work that the two threads have posted. */
	OK(with_event ? cudaEventSynchronize(r.event) : cudaStreamSynchronize(stream));
	OK(cudaMemcpy(all, r.dev, (size_t)r.rounds + 1, cudaMemcpyDeviceToHost));
	for (i = 0; i <= r.rounds; i++)
		REQUIRE(all[i] == 77, "step %d of %d", i, r.rounds);
	for (i = 0; i < 2; i++)
		OK(cudaStreamDestroy(r.own[i]));
	OK(cudaEventDestroy(r.event));
	OK(cudaFree(r.dev));
	free(all);
}

/* ---- more than there is room for ---- */

static char *slots;

static void *post_much(void *arg)
{
	size_t me = (size_t)arg, i;
	cudaStream_t s;
	cudaEvent_t e;
	char text[LEN], back[LEN];

	OK(cudaStreamCreate(&s));
	for (i = 0; i < ROUNDS(300); i++) {
		OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
		fill(text, sizeof(text), (uint32_t)(me * 1000 + i));
		OK(cudaMemcpyAsync(slots + me * LEN, text, LEN, cudaMemcpyHostToDevice, s));
		OK(cudaEventRecord(e, s));
		OK(cudaMemsetAsync(slots + me * LEN, (int)i, 1, s));
		OK(cudaEventDestroy(e));
	}
	OK(cudaMemcpyAsync(back, slots + me * LEN, LEN, cudaMemcpyDeviceToHost, s));
	OK(cudaStreamSynchronize(s));
	text[0] = (char)(i - 1);
	REQUIRE(differs(text, back, LEN) == LEN, "thread %zu: byte %zu", me,
		differs(text, back, LEN));
	OK(cudaStreamDestroy(s));
	OK(cudaGetLastError());
	return NULL;
}

static void many_threads(void)
{
	pthread_t t[THREADS];
	size_t i;

	OK(cudaMalloc((void **)&slots, THREADS * LEN));
	for (i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&t[i], NULL, post_much, (void *)i), "no thread");
	for (i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	OK(cudaFree(slots));
}

/* ---- a thread that waits does not hold up threads that do not wait ---- */

static cudaStream_t held_stream;
static int let_go;

static void hold(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&let_go, __ATOMIC_ACQUIRE))
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void *wait_for_held(void *unused)
{
	(void)unused;
	OK(cudaStreamSynchronize(held_stream));
	return NULL;
}

static void blocked_alone(void)
{
	char *dev, host[16] = "posted";
	cudaStream_t s;
	pthread_t t;
	int i;

	OK(cudaMalloc((void **)&dev, 16));
	OK(cudaStreamCreateWithFlags(&held_stream, cudaStreamNonBlocking));
	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaLaunchHostFunc(held_stream, hold, NULL));
	REQUIRE(!pthread_create(&t, NULL, wait_for_held, NULL), "no thread");
	for (i = 0; i < 100; i++) {
		/*
		 * One command in the stream that is waited for, and one in another stream, until
		 * that one is done.
		 */
		OK(cudaMemsetAsync(dev, 1, 8, held_stream));
		OK(cudaMemcpyAsync(dev, host, 16, cudaMemcpyHostToDevice, s));
		OK(cudaStreamSynchronize(s));
	}
	__atomic_store_n(&let_go, 1, __ATOMIC_RELEASE);
	pthread_join(t, NULL);
	OK(cudaStreamDestroy(held_stream));
	OK(cudaStreamDestroy(s));
	OK(cudaFree(dev));
}

/* Memory is freed when all work has ended, also work that the legacy stream does not wait for. */
static void take_a_while(void *ended)
{
	nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	__atomic_store_n((int *)ended, 1, __ATOMIC_RELEASE);
}

static void freed_after_all_work(void)
{
	char *dev, *other, host[4];
	cudaStream_t s;
	int ended = 0;

	OK(cudaMalloc((void **)&dev, 4));
	OK(cudaMalloc((void **)&other, 4));
	OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	OK(cudaLaunchHostFunc(s, take_a_while, &ended));
	OK(cudaMemsetAsync(dev, 1, 4, s));
	OK(cudaMemcpy(host, other, 4, cudaMemcpyDeviceToHost));
	OK(cudaFree(dev));
	REQUIRE(__atomic_load_n(&ended, __ATOMIC_ACQUIRE), "cudaFree did not wait");
	OK(cudaFree(other));
	OK(cudaStreamDestroy(s));
}

/* The program ends with work under way. Work that is not done is dropped. */
static void ends_with_work(void)
{
	char *dev, *pinned;
	int i;

	OK(cudaMalloc((void **)&dev, 16 << 20));
	OK(cudaMallocHost((void **)&pinned, 16 << 20));
	for (i = 0; i < 200; i++)
		OK(cudaMemcpyAsync(dev, pinned, 16 << 20, cudaMemcpyHostToDevice, 0));
}

int main(void)
{
	cudaStream_t s;

	OK(cudaStreamCreate(&s));
	pageable_at_once();
	small_copy_waits_for_work();
	freed_while_posted();
	unregistered_while_posted();
	handed_over(s, false);
	handed_over(0, false);
	handed_over(s, true);
	many_threads();
	blocked_alone();
	freed_after_all_work();
	ends_with_work();
	return 0;
}
