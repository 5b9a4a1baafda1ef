// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Several threads use managed memory at random: CPU writes and reads, kernels, memsets, copies,
 * prefetches, advice, allocation. Each thread keeps a second copy of its memory, which no GPU sees,
 * and compares.
 *
 *   managed_random [STEPS [SEED [WHAT]]]
 *
 * STEPS is the number for all threads together. WHAT are letters: h, host functions between the
 * kernels; s, all threads also use parts of one allocation, which share pages' neighbourhood; f,
 * children are forked and look at the memory (natively they cannot have it). With s, a thread uses
 * its part with the CPU while the GPU works on another one. So h and s do not go together: while a
 * host function runs, memory comes back without a wait for all of the GPU's work.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define THREADS 8
#define PIECES	3
#define SLICE	((size_t)1536 << 10) /* no multiple of what moves at once */
#define MOST	((size_t)6 << 20)

static int steps = 2000;
static uint32_t seed = 1;
static bool host_functions, shared_memory, forks;
static unsigned char *shared;

__global__ void change(unsigned char *p, size_t n, unsigned char factor, unsigned char add)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] = p[i] * factor + add;
}

struct piece {
	unsigned char *p, *shadow;
	size_t len;
};

struct work {
	struct piece piece[PIECES + 1]; /* the last one is a part of the shared memory */
	int pieces;
	cudaStream_t stream;
	uint32_t seed, n;
	bool busy; /* the stream has work that has not been waited for */
};

static uint32_t rnd(struct work *w, size_t below)
{
	return (uint32_t)(scramble(w->n++, w->seed) % below);
}

static void idle(struct work *w)
{
	if (w->busy)
		CHECK(cudaStreamSynchronize(w->stream));
	w->busy = false;
}

static void make(struct work *w, struct piece *x)
{
	x->len = (rnd(w, MOST >> 12) + 1) << 12;
	CHECK(cudaMallocManaged(&x->p, x->len));
	x->shadow = (unsigned char *)calloc(1, x->len);
	REQUIRE(x->shadow, "no memory");
	memset(x->p, 0, x->len);
}

/* A random range of the piece. Most are short. */
static void range(struct work *w, const struct piece *x, size_t *from, size_t *len)
{
	*from = rnd(w, x->len);
	*len = 1 + rnd(w, rnd(w, 4) ? 5000 : x->len);
	if (*len > x->len - *from)
		*len = x->len - *from;
}

static void same(const struct work *w, const struct piece *x, size_t from, size_t len,
		 const char *who)
{
	size_t at = first_difference(x->p + from, x->shadow + from, len);

	REQUIRE(at == len, "%s, seed %u, number %u: byte %#zx of %p is %#x, expected %#x", who,
		w->seed, w->n, from + at, (void *)x->p, x->p[from + at], x->shadow[from + at]);
}

struct call {
	struct piece x;
	size_t from, len;
	unsigned char add;
};

static void CUDART_CB from_host(void *arg)
{
	struct call *c = (struct call *)arg;

	for (size_t i = 0; i < c->len; i++)
		c->x.p[c->from + i] += c->add;
	delete c;
}

static void launch(struct work *w, struct piece *x, size_t from, size_t len)
{
	unsigned char factor = (unsigned char)(2 * rnd(w, 128) + 1),
		      add = (unsigned char)rnd(w, 256);

	change<<<2, 128, 0, w->stream>>>(x->p + from, len, factor, add);
	CHECK_LAUNCH();
	for (size_t i = from; i < from + len; i++)
		x->shadow[i] = x->shadow[i] * factor + add;
	w->busy = true;
}

static void host_function(struct work *w, struct piece *x, size_t from, size_t len)
{
	struct call *c = new struct call;

	*c = {*x, from, len < 10000 ? len : 10000, (unsigned char)rnd(w, 256)};
	for (size_t i = 0; i < c->len; i++)
		x->shadow[from + i] += c->add;
	CHECK(cudaLaunchHostFunc(w->stream, from_host, c));
	w->busy = true;
}

static void copy(struct work *w, struct piece *x, size_t from, size_t len)
{
	struct piece *y = &w->piece[rnd(w, w->pieces)];
	size_t to;

	if (y == x)
		return;
	to = rnd(w, y->len);
	if (len > y->len - to)
		len = y->len - to;
	CHECK(cudaMemcpyAsync(y->p + to, x->p + from, len, cudaMemcpyDefault, w->stream));
	memcpy(y->shadow + to, x->shadow + from, len);
	w->busy = true;
}

/* From and to memory that is not managed. */
static void exchange(struct work *w, struct piece *x, size_t from, size_t len)
{
	unsigned char *other = (unsigned char *)malloc(len);

	idle(w);
	memset(other, (int)rnd(w, 256), len);
	if (rnd(w, 2)) {
		CHECK(cudaMemcpyAsync(x->p + from, other, len, cudaMemcpyDefault, w->stream));
		CHECK(cudaStreamSynchronize(w->stream));
		memcpy(x->shadow + from, other, len);
	} else {
		CHECK(cudaMemcpyAsync(other, x->p + from, len, cudaMemcpyDefault, w->stream));
		CHECK(cudaStreamSynchronize(w->stream));
		REQUIRE(!memcmp(other, x->shadow + from, len), "seed %u, number %u: a copy",
			w->seed, w->n);
	}
	free(other);
}

static void advise(struct work *w, struct piece *x)
{
	cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0};
	uint32_t what = rnd(w, 20);

	if (what < 8)
		CHECK(cudaMemPrefetchAsync(x->p, x->len, gpu, 0, w->stream));
	else if (what < 16)
		CHECK(cudaMemPrefetchAsync(x->p, x->len, cpu, 0, w->stream));
	else if (what < 19)
		CHECK(cudaMemAdvise(x->p, x->len, cudaMemAdviseSetReadMostly, gpu));
	else if (x != &w->piece[PIECES])
		CHECK(cudaMemAdvise(x->p, x->len, cudaMemAdviseSetAccessedBy, gpu));
}

/* A child has what the parent had, and what it writes is its own. */
static void fork_one(struct work *w)
{
	int status = 0;
	pid_t pid;

	idle(w);
	pid = fork();
	if (!pid) {
		for (int i = 0; i < w->pieces; i++) {
			if (memcmp(w->piece[i].p, w->piece[i].shadow, w->piece[i].len))
				_exit(2 + i);
			memset(w->piece[i].p, 0x77, w->piece[i].len);
		}
		_exit(0);
	}
	REQUIRE(pid > 0 && waitpid(pid, &status, 0) == pid && !status,
		"seed %u, number %u: a child ended with %#x", w->seed, w->n, status);
}

static void renew(struct work *w, int i)
{
	idle(w);
	if (i == PIECES)
		return;
	CHECK(cudaFree(w->piece[i].p));
	free(w->piece[i].shadow);
	make(w, &w->piece[i]);
}

static void step(struct work *w)
{
	int i = (int)rnd(w, w->pieces);
	struct piece *x = &w->piece[i];
	uint32_t what = rnd(w, 100);
	size_t from, len;

	range(w, x, &from, &len);
	if (what < 25) {
		unsigned char value = (unsigned char)rnd(w, 256);

		idle(w);
		memset(x->p + from, value, len);
		memset(x->shadow + from, value, len);
	} else if (what < 50) {
		idle(w);
		same(w, x, from, len, "a read");
	} else if (what < 75) {
		launch(w, x, from, len);
	} else if (what < 80) {
		CHECK(cudaMemsetAsync(x->p + from, (int)what, len, w->stream));
		memset(x->shadow + from, (int)what, len);
		w->busy = true;
	} else if (what < 85) {
		copy(w, x, from, len);
	} else if (what < 89) {
		exchange(w, x, from, len);
	} else if (what < 93) {
		advise(w, x);
	} else if (what < 96 && host_functions) {
		host_function(w, x, from, len);
	} else if (what == 97 && forks) {
		fork_one(w);
	} else if (what == 98) {
		renew(w, i);
	}
}

static void *one_thread(void *arg)
{
	struct work w = {};
	long me = (long)arg;

	w.seed = scramble((uint32_t)me, seed);
	w.pieces = PIECES + shared_memory;
	CHECK(cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
	for (int i = 0; i < PIECES; i++)
		make(&w, &w.piece[i]);
	if (shared_memory)
		w.piece[PIECES] = {shared + me * SLICE, (unsigned char *)calloc(1, SLICE), SLICE};
	for (int i = 0; i < steps / THREADS; i++)
		step(&w);
	idle(&w);
	for (int i = 0; i < w.pieces; i++) {
		same(&w, &w.piece[i], 0, w.piece[i].len, "the end");
		free(w.piece[i].shadow);
		if (i < PIECES)
			CHECK(cudaFree(w.piece[i].p));
	}
	CHECK(cudaStreamDestroy(w.stream));
	return NULL;
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[3] : "";
	pthread_t thread[THREADS];

	steps = argc > 1 ? atoi(argv[1]) : steps;
	seed = argc > 2 ? (uint32_t)atoi(argv[2]) : seed;
	host_functions = strchr(what, 'h');
	shared_memory = strchr(what, 's');
	forks = strchr(what, 'f');
	load_kernel((const void *)change);
	CHECK(cudaMallocManaged(&shared, THREADS * SLICE));
	memset(shared, 0, THREADS * SLICE);
	for (long i = 0; i < THREADS; i++)
		REQUIRE(!pthread_create(&thread[i], NULL, one_thread, (void *)i), "no thread");
	for (long i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK(cudaFree(shared));
	return verified("%d random steps, seed %u", steps, seed);
}
