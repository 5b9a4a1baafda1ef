// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Managed memory that CPU and GPU use in turn, in all the ways in which either side can reach it:
 * kernels, copies, memsets, graphs, host functions; loads and stores, system calls, signal
 * handlers, threads, forked children. After each turn the other side finds what was written.
 *
 *   managed_moves [CASE]
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define BYTES ((size_t)16 << 20)
#define N     (BYTES / sizeof(int))

__global__ void add(int *p, size_t n, int d)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		p[i] += d;
}

static void on_gpu(int *p, size_t n, int d, cudaStream_t s = 0)
{
	add<<<8, 128, 0, s>>>(p, n, d);
	CHECK_LAUNCH();
}

static int *make(size_t bytes = BYTES)
{
	int *p;

	CHECK(cudaMallocManaged(&p, bytes));
	return p;
}

/* Looks at some elements of all parts. */
static void all_are(const int *p, size_t n, int base)
{
	for (size_t i = 0; i < n; i += 509)
		REQUIRE(p[i] == base + (int)i, "element %zu is %d, not %d", i, p[i], base + (int)i);
}

static void fill(int *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (int)i;
}

static void in_turn(void)
{
	int *p = make();

	fill(p, N);
	for (int turn = 0; turn < 4; turn++) {
		on_gpu(p, N, 1);
		CHECK(cudaDeviceSynchronize());
		all_are(p, N, 2 * turn + 1);
		/* Every element once more by the CPU. */
		for (size_t i = 0; i < N; i++)
			p[i]++;
	}
	on_gpu(p, N, 1);
	on_gpu(p, N, 1);
	CHECK(cudaDeviceSynchronize());
	all_are(p, N, 10);
	CHECK(cudaFree(p));
}

/* The CPU changes one element here and there, and the GPU must not lose the others. */
static void scattered(void)
{
	const size_t step = 300007;
	int *p = make(), turns = 5;

	on_gpu(p, N, 7);
	CHECK(cudaDeviceSynchronize());
	for (int turn = 0; turn < turns; turn++) {
		for (size_t i = turn; i < N; i += step)
			p[i] += 100;
		on_gpu(p, N, 1);
		CHECK(cudaDeviceSynchronize());
	}
	for (size_t i = 0; i < N; i++)
		REQUIRE(p[i] == 7 + turns + (i % step < (size_t)turns ? 100 : 0), "%zu: %d", i,
			p[i]);
	CHECK(cudaFree(p));
}

/* CPU and GPU take turns on a hundredth of the memory; little more than that has to move. */
static void part(void)
{
	const size_t at = N / 3, n = N / 100;
	int *p = make();

	on_gpu(p, N, 1);
	/* Where the memory stays in place, a touch does not wait for the GPU. */
	CHECK(cudaDeviceSynchronize());
	for (int turn = 0; turn < 20; turn++) {
		for (size_t i = at; i < at + n; i++)
			p[i]++;
		on_gpu(p + at, n, 1);
		CHECK(cudaDeviceSynchronize());
		REQUIRE(p[at + n - 1] == 3 + 2 * turn && p[at] == 3 + 2 * turn, "%d %d", p[at],
			p[at + n - 1]);
	}
	CHECK(cudaFree(p));
}

/* Another process cannot have the memory. To ask for it changes nothing. */
static void ipc(void)
{
	cudaIpcMemHandle_t handle;
	int *p = make();

	fill(p, N);
	on_gpu(p, N, 1);
	REQUIRE(cudaIpcGetMemHandle(&handle, p) != cudaSuccess, "a handle for managed memory");
	(void)cudaGetLastError();
	CHECK(cudaDeviceSynchronize());
	all_are(p, N, 1);
	on_gpu(p, N, 1);
	REQUIRE(cudaIpcGetMemHandle(&handle, p + 1) != cudaSuccess, "a handle for a part of it");
	(void)cudaGetLastError();
	CHECK(cudaDeviceSynchronize());
	all_are(p, N, 2);
	CHECK(cudaFree(p));
}

/* First touched by the GPU; then read from the end to the beginning. */
static void zeros_and_backwards(void)
{
	int *p = make();

	on_gpu(p, N / 2, 3);
	CHECK(cudaDeviceSynchronize());
	for (size_t i = N; i-- > 0;)
		REQUIRE(p[i] == (i < N / 2 ? 3 : 0), "%zu: %d", i, p[i]);
	CHECK(cudaFree(p));
}

static void copies(void)
{
	int *p = make(), *q = make(), *d, *h = (int *)malloc(BYTES), small[4] = {1, 2, 3, 4};

	CHECK(cudaMalloc(&d, BYTES));
	fill(h, N);
	CHECK(cudaMemcpy(p, h, BYTES, cudaMemcpyHostToDevice));
	all_are(p, N, 0);
	CHECK(cudaMemcpy(q, p, BYTES, cudaMemcpyDefault));
	all_are(q, N, 0);
	q[5] = 77;
	CHECK(cudaMemcpy(d, q, BYTES, cudaMemcpyHostToDevice));
	CHECK(cudaMemset(p, 0, BYTES));
	REQUIRE(p[9] == 0 && p[N - 1] == 0, "%d %d", p[9], p[N - 1]);
	CHECK(cudaMemcpy(p, d, BYTES, cudaMemcpyDeviceToHost));
	REQUIRE(p[5] == 77 && p[6] == 6, "%d %d", p[5], p[6]);
	memset(h, 0, BYTES);
	CHECK(cudaMemcpy(h, p, BYTES, cudaMemcpyDeviceToHost));
	REQUIRE(h[5] == 77 && h[N - 1] == (int)N - 1, "%d %d", h[5], h[N - 1]);
	p[5] = 5;
	CHECK(cudaMemcpy(h, p, BYTES, cudaMemcpyHostToHost));
	REQUIRE(h[5] == 5, "%d", h[5]);
	CHECK(cudaMemcpy(p + 100, small, sizeof(small), cudaMemcpyDefault));
	REQUIRE(p[99] == 99 && p[100] == 1 && p[103] == 4 && p[104] == 104, "a small copy");
	CHECK(cudaMemcpy(small, p + 200, sizeof(small), cudaMemcpyDefault));
	REQUIRE(small[0] == 200 && small[3] == 203, "a small copy back");
	CHECK(cudaMemcpy2D(p, 4096, h, 8192, 2048, 100, cudaMemcpyDefault));
	REQUIRE(p[1024] == 2048 && p[1024 + 511] == 2048 + 511, "%d", p[1024]);
	memset(h, 0, BYTES);
	CHECK(cudaMemcpy2DAsync(h, 8192, p, 4096, 2048, 100, cudaMemcpyDeviceToHost, 0));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(h[2048] == 2048 && h[2047] == 0, "%d %d", h[2048], h[2047]);
	EXPECT(cudaMemcpy(p, h, BYTES + (1 << 26), cudaMemcpyDefault), cudaErrorInvalidValue);
	(void)cudaGetLastError();
	CHECK(cudaFree(d));
	CHECK(cudaFree(q));
	CHECK(cudaFree(p));
	free(h);
}

struct touch {
	int *p;
	int seen;
};

static void CUDART_CB touch(void *arg)
{
	struct touch *t = (struct touch *)arg;

	t->seen = t->p[N - 1];
	t->p[0] += 1000;
	t->p[N - 1] += 1000;
}

/* A host function between two kernels reads and writes what they use. */
static void host_function(void)
{
	struct touch t = {make(), 0};
	cudaStream_t s;

	CHECK(cudaStreamCreate(&s));
	for (int turn = 1; turn <= 3; turn++) {
		on_gpu(t.p, N, 1, s);
		CHECK(cudaLaunchHostFunc(s, touch, &t));
		on_gpu(t.p, N, 1, s);
		CHECK(cudaStreamSynchronize(s));
		REQUIRE(t.seen == 1002 * turn - 1001, "turn %d: the function has seen %d", turn,
			t.seen);
		REQUIRE(t.p[0] == 1002 * turn && t.p[1] == 2 * turn && t.p[N - 1] == 1002 * turn,
			"turn %d: %d %d", turn, t.p[0], t.p[1]);
	}
	CHECK(cudaStreamDestroy(s));
	CHECK(cudaFree(t.p));
}

/* The same in a graph. */
static void graph(void)
{
	struct touch t = {make(), 0};
	cudaGraph_t graph;
	cudaGraphExec_t exec;
	cudaStream_t s;

	load_kernel((const void *)add);
	CHECK(cudaStreamCreate(&s));
	CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
	on_gpu(t.p, N, 1, s);
	CHECK(cudaLaunchHostFunc(s, touch, &t));
	on_gpu(t.p, N, 1, s);
	CHECK(cudaStreamEndCapture(s, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int turn = 1; turn <= 3; turn++) {
		CHECK(cudaGraphLaunch(exec, s));
		CHECK(cudaStreamSynchronize(s));
		REQUIRE(t.seen == 1003 * turn - 1002, "turn %d: the function has seen %d", turn,
			t.seen);
		REQUIRE(t.p[N - 1] == 1003 * turn - 1 && t.p[1] == 3 * turn - 1, "turn %d: %d %d",
			turn, t.p[N - 1], t.p[1]);
		for (size_t i = 0; i < N; i++)
			t.p[i]++;
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(s));
	CHECK(cudaFree(t.p));
}

/* The kernel reads and writes memory for it, while the GPU has it. */
static void system_calls(void)
{
	static char text[] = "what the kernel has read";
	const size_t len = sizeof(text), at = BYTES - 2 * 4096;
	char back[sizeof(text)], *p = (char *)make();
	struct iovec here = {back, len}, there = {p + at, len};
	int fd[2];

	REQUIRE(pipe(fd) == 0, "pipe: %d", errno);
	for (int turn = 0; turn < 3; turn++) {
		on_gpu((int *)p, N, 0x01010101);
		CHECK(cudaDeviceSynchronize());
		REQUIRE(write(fd[1], text, len) == (ssize_t)len, "write: %d", errno);
		REQUIRE(read(fd[0], p + at, len) == (ssize_t)len, "read: %d", errno);
		REQUIRE(p[0] == turn + 1, "turn %d: %d", turn, p[0]);
		on_gpu((int *)p, 1024, 0);
		CHECK(cudaDeviceSynchronize());
		REQUIRE(write(fd[1], p + at, len) == (ssize_t)len, "write from it: %d", errno);
		REQUIRE(read(fd[0], back, len) == (ssize_t)len, "read: %d", errno);
		REQUIRE(!memcmp(back, text, len), "turn %d: what was read is gone", turn);
		memset(back, 0, len);
		on_gpu((int *)p, 1024, 0);
		CHECK(cudaDeviceSynchronize());
		REQUIRE(process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)len,
			"process_vm_readv: %d", errno);
		REQUIRE(!memcmp(back, text, len), "turn %d: process_vm_readv", turn);
		on_gpu((int *)p, 1024, 0);
		CHECK(cudaDeviceSynchronize());
		back[0] = 'W';
		REQUIRE(process_vm_writev(getpid(), &here, 1, &there, 1, 0) == (ssize_t)len,
			"process_vm_writev: %d", errno);
		on_gpu((int *)p, 1024, 0);
		CHECK(cudaDeviceSynchronize());
		REQUIRE(p[at] == 'W' && p[at + 1] == 'h', "turn %d: process_vm_writev", turn);
		memset(p + at, turn + 1, len);
	}
	close(fd[0]);
	close(fd[1]);
	CHECK(cudaFree(p));
}

static int *volatile handlers;
static volatile int handled;

static void handler(int signal)
{
	(void)signal;
	handled = handlers[N / 2];
	handlers[N / 2]++;
}

static void signal_handler(void)
{
	struct sigaction action = {};
	int *p = make();

	action.sa_handler = handler;
	sigaction(SIGUSR1, &action, NULL);
	handlers = p;
	on_gpu(p, N, 4);
	CHECK(cudaDeviceSynchronize());
	raise(SIGUSR1);
	REQUIRE(handled == 4, "%d", handled);
	on_gpu(p, N, 1);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(p[N / 2] == 6 && p[0] == 5, "%d %d", p[N / 2], p[0]);
	CHECK(cudaFree(p));
}

/*
 * The program takes away its own right to write, and the GPU writes all the same. A mapping may be
 * longer than its memory, and is only protected as a whole.
 */
static void read_only(void)
{
	int *p = make();
	size_t len = BYTES;

	fill(p, N);
	on_gpu(p, N, 1);
	CHECK(cudaDeviceSynchronize());
	if (mprotect(p, len, PROT_READ)) {
		len *= 2;
		REQUIRE(mprotect(p, len, PROT_READ) == 0, "%d", errno);
	}
	all_are(p, N, 1);
	on_gpu(p, N, 1);
	CHECK(cudaDeviceSynchronize());
	all_are(p, N, 2);
	REQUIRE(mprotect(p, len, PROT_READ | PROT_WRITE) == 0, "%d", errno);
	p[0]++;
	on_gpu(p, N, 1);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(p[0] == 4 && p[1] == 4, "%d %d", p[0], p[1]);
	CHECK(cudaFree(p));
}

static void advice(void)
{
	cudaMemLocation gpu = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0};
	int *p = make();

	fill(p, N);
	CHECK(cudaMemPrefetchAsync(p, BYTES, gpu, 0, 0));
	on_gpu(p, N, 1);
	CHECK(cudaMemPrefetchAsync(p, BYTES, cpu, 0, 0));
	CHECK(cudaDeviceSynchronize());
	all_are(p, N, 1);
	CHECK(cudaMemAdvise(p, BYTES, cudaMemAdviseSetReadMostly, gpu));
	on_gpu(p, N, 1);
	CHECK(cudaDeviceSynchronize());
	all_are(p, N, 2);
	on_gpu(p, N, 1);
	/* From here on it stays where it is. */
	CHECK(cudaMemAdvise(p, 4096, cudaMemAdviseSetAccessedBy, gpu));
	CHECK(cudaDeviceSynchronize());
	all_are(p, N, 3);
	p[0] = 0;
	on_gpu(p, N, 1);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(p[0] == 1, "%d", p[0]);
	all_are(p + 509, N - 509, 4 + 509);
	CHECK(cudaMemAdvise(p, BYTES, cudaMemAdviseSetPreferredLocation, cpu));
	CHECK(cudaMemcpy(p, p + N / 2, BYTES / 2, cudaMemcpyDefault));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(p[0] == (int)(N / 2) + 4, "%d", p[0]);
	CHECK(cudaFree(p));
	p = make();
	CHECK(cudaMemAdvise(p, BYTES, cudaMemAdviseSetPreferredLocation, cpu));
	fill(p, N);
	on_gpu(p, N, 1);
	CHECK(cudaDeviceSynchronize());
	all_are(p, N, 1);
	CHECK(cudaFree(p));
}

/* Memory that is freed while a kernel uses it, and what comes after it. */
static void freed(void)
{
	for (int turn = 0; turn < 8; turn++) {
		int *p = make(BYTES + ((size_t)turn << 20)), *q = make((size_t)(turn + 1) << 19);

		REQUIRE(p[0] == 0 && p[N - 1] == 0, "turn %d: %d", turn, p[0]);
		on_gpu(p, N, 1);
		on_gpu(q, 1000, 1);
		CHECK(cudaFree(p));
		p = make();
		REQUIRE(p[1] == 0 && p[N / 2] == 0, "turn %d: %d", turn, p[1]);
		on_gpu(p, N, 1);
		CHECK(cudaDeviceSynchronize());
		REQUIRE(p[N - 1] == 1 && q[999] == 1, "turn %d: %d %d", turn, p[N - 1], q[999]);
		CHECK(cudaFree(q));
		CHECK(cudaFree(p));
	}
}

#define THREADS 4
#define TURNS	20

static void *one_thread(void *arg)
{
	const size_t n = N / 4;
	long me = (long)arg;
	int *p = make(BYTES / 4);
	cudaStream_t s;

	CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
	for (int turn = 0; turn < TURNS; turn++) {
		size_t at = scramble(turn, me) % n;

		p[at] += 1000;
		on_gpu(p, n, 1, s);
		CHECK(cudaStreamSynchronize(s));
		REQUIRE(p[at] >= 1000 + turn + 1, "thread %ld turn %d: %d", me, turn, p[at]);
		p[at] -= 1000;
		REQUIRE(p[n - 1 - at] == turn + 1 || at == n - 1 - at, "thread %ld turn %d: %d", me,
			turn, p[n - 1 - at]);
	}
	CHECK(cudaStreamDestroy(s));
	for (size_t i = 0; i < n; i++)
		REQUIRE(p[i] == TURNS, "thread %ld, %zu: %d", me, i, p[i]);
	CHECK(cudaFree(p));
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	load_kernel((const void *)add);
	for (long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, one_thread, (void *)i);
	for (long i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

__global__ void wild(int *p)
{
	*p = 1;
}

/* A kernel's fault ends the context. The memory can still be read, whatever is in it. */
static void after_a_fault(void)
{
	int *p = make(), sum = 0;

	fill(p, N);
	on_gpu(p, N, 1);
	CHECK(cudaDeviceSynchronize());
	wild<<<1, 1>>>((int *)16);
	EXPECT(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	for (size_t i = 0; i < N; i++)
		sum |= p[i];
	p[0] = sum;
	REQUIRE(p[0] == sum, "%d", p[0]);
}

static const struct {
	const char *name;
	void (*run)(void);
	/*
	 * Only if it is named: where the GPU is a part of this process, it cannot write either.
	 */
	bool named_only;
} cases[] = {
	{"in_turn", in_turn},
	{"scattered", scattered},
	{"part", part},
	{"ipc", ipc},
	{"zeros_and_backwards", zeros_and_backwards},
	{"copies", copies},
	{"host_function", host_function},
	{"graph", graph},
	{"system_calls", system_calls},
	{"signal_handler", signal_handler},
	{"read_only", read_only, true},
	{"advice", advice},
	{"freed", freed},
	{"threads", threads},
	{"after_a_fault", after_a_fault}, /* the last one */
};

int main(int argc, char **argv)
{
	int done = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 1 ? strcmp(argv[1], cases[i].name) != 0 : cases[i].named_only)
			continue;
		cases[i].run();
		printf("%s\n", cases[i].name);
		fflush(stdout);
		done++;
	}
	REQUIRE(done, "there is no case %s", argv[1]);
	return verified("CPU and GPU have found what the other one wrote, in %d cases", done);
}
