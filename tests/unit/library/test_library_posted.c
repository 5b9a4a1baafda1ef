// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which calls wait for the mirror and which do not, counted on a transport that this test provides;
 * and which later call returns the error of a call that does not wait. An error that CUDA reports
 * at the call must be reported at the call, without a question to the mirror.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-library/malloc/malloc_hook.h"
#include "qcu-library/link/link.h"
#include "qcu-library/link/transport.h"

#define DEVICE_MEMORY 0x7e0000000000ull
#define MAX_THREADS   256
#define MAX_SHARED    1000

static unsigned int posted, waited, submits;
static int late;
static struct qCUcmd last;
/* The answer to queries, and the page in which the mirror would write the result. */
static int query_answer, sync_answer;
static bool no_page;
static uint64_t *page;

/* ---- the mirror ---- */

int qcul_transport_open(struct qcu_hello *hello)
{
	memset(hello, 0, sizeof(*hello));
	hello->window_base = QCU_WINDOW_BASE;
	hello->window_size = QCU_WINDOW_SIZE;
	hello->chunk_bytes = QCU_CHUNK_DEFAULT;
	return 0;
}

void qcul_transport_close(void)
{
}

bool qcul_transport_shares_memory(void)
{
	return false;
}

static void answer(struct qCUcmd *cmd)
{
	static uint64_t at = DEVICE_MEMORY;
	struct qcu_device_desc *desc;
	const struct qcu_launch_msg *launch_msg;
	struct qcu_kernel_desc *kernel;
	struct qcu_param *param;

	switch (cmd->op) {
	case QCU_OP_INFO:
		cmd->info.devices = 2;
		break;
	case QCU_OP_DEVICE_INFO:
		desc = (struct qcu_device_desc *)(uintptr_t)cmd->buf.addr;
		memset(desc, 0, sizeof(*desc));
		desc->attr[cudaDevAttrMaxGridDimX] = desc->attr[cudaDevAttrMaxGridDimY] =
			desc->attr[cudaDevAttrMaxGridDimZ] = 65535;
		desc->attr[cudaDevAttrMaxBlockDimX] = desc->attr[cudaDevAttrMaxBlockDimY] =
			desc->attr[cudaDevAttrMaxBlockDimZ] = 1024;
		desc->attr[cudaDevAttrMaxThreadsPerBlock] = 1024;
		break;
	case QCU_OP_MALLOC:
		cmd->malloc.ptr = at;
		at += 1 << 20;
		break;
	case QCU_OP_DEVICE_SYNC:
	case QCU_OP_STREAM_SYNC:
		cmd->status = sync_answer;
		break;
	case QCU_OP_EVENT_QUERY:
		cmd->status = query_answer;
		cmd->event_query.watched = page && cmd->event_query.token;
		break;
	case QCU_OP_STREAM_QUERY:
		cmd->status = query_answer;
		cmd->stream_query.watched = page && cmd->stream_query.token;
		break;
	case QCU_OP_WATCH:
		assert_int_equal(cmd->buf.len, QCU_WATCH_BYTES);
		if (no_page)
			cmd->status = cudaErrorInvalidValue;
		else
			page = (uint64_t *)(uintptr_t)cmd->buf.addr;
		break;
	case QCU_OP_HOST_REGISTER:
		cmd->host_register.device = cmd->host_register.buf.addr;
		break;
	case QCU_OP_KERNEL_FIND:
		cmd->kernel_find.params = 1;
		cmd->kernel_find.param_bytes = 8;
		break;
	case QCU_OP_LAUNCH:
		launch_msg = (const struct qcu_launch_msg *)(uintptr_t)cmd->launch.buf.addr;
		if (launch_msg->block[0] > MAX_THREADS)
			cmd->status = cudaErrorLaunchOutOfResources;
		break;
	case QCU_OP_KERNEL_INFO:
		kernel = (struct qcu_kernel_desc *)(uintptr_t)cmd->buf.addr;
		memset(kernel, 0, sizeof(*kernel));
		kernel->max_threads = MAX_THREADS;
		kernel->max_dynamic_shared = MAX_SHARED;
		kernel->params = 1;
		param = (struct qcu_param *)(kernel + 1);
		if (cmd->buf.len >= sizeof(*kernel) + sizeof(*param))
			*param = (struct qcu_param){.offset = 0, .size = 8};
		break;
	}
}

int qcul_transport_submit(struct qCUcmd *cmds, unsigned int count)
{
	unsigned int i;

	submits++;
	for (i = 0; i < count; i++) {
		const struct qcu_rule *rule = qcu_rule(cmds[i].op);

		last = cmds[i];
		assert_non_null(rule);
		cmds[i].status = 0;
		if (cmds[i].flags & QCU_F_POSTED) {
			assert_int_equal(rule->who, QCU_WHO_POST);
			posted++;
			continue;
		}
		waited++;
		answer(&cmds[i]);
	}
	return 0;
}

int qcul_transport_late(void)
{
	int err = late;

	late = 0;
	return err;
}

void qcul_transport_waiting(uint32_t how)
{
	(void)how;
}

void qcul_transport_thread_ends(void)
{
}

int qcul_transport_map(void *addr, size_t len)
{
	return mmap(addr, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == addr
		       ? 0
		       : -ENOMEM;
}

int qcul_transport_unmap(void *addr, size_t len)
{
	return munmap(addr, len);
}

/* No hook: the test uses the malloc of the C library. */
void qcul_malloc_arm(void)
{
}

/* Time stands still unless a test changes it. */
static unsigned int clock_ms;
int __wrap_clock_gettime(clockid_t id, struct timespec *t);
int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	(void)id;
	*t = (struct timespec){.tv_sec = clock_ms / 1000, .tv_nsec = clock_ms % 1000 * 1000000};
	return 0;
}

/* ---- the program ---- */

static char *dev, *dev2, *pinned, host[128 << 10];
static cudaStream_t stream;
static cudaEvent_t event;
static const struct {
	uint32_t magic;
	uint16_t version, header;
	uint64_t bytes;
} image = {0xba55ed50u, 1, 16, 0};
static const struct {
	int magic, version;
	const void *data;
	void *unused;
} wrapper = {0x466243b1, 1, &image, NULL};
static const char kernel;

static int start(void **state)
{
	void **handle = __cudaRegisterFatBinary((void *)(uintptr_t)&wrapper);

	(void)state;
	__cudaRegisterFunction(handle, &kernel, NULL, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
	return cudaMalloc((void **)&dev, 1 << 20) || cudaMalloc((void **)&dev2, 1 << 20) ||
	       cudaMallocHost((void **)&pinned, 1 << 20) || cudaStreamCreate(&stream) ||
	       cudaEventCreate(&event);
}

static cudaError_t launch(unsigned int grid, unsigned int block, size_t shared, cudaStream_t s)
{
	uint64_t arg = 5;
	void *args[] = {&arg};
	const dim3 g = {grid, 1, 1}, b = {block, 1, 1};

	return cudaLaunchKernel(&kernel, g, b, args, shared, s);
}

/* The call succeeds, and sends this many records of each kind. */
#define COSTS(call, want_posted, want_waited)                                        \
	do {                                                                         \
		posted = waited = 0;                                                 \
		assert_int_equal(call, cudaSuccess);                                 \
		if (posted != (unsigned int)(want_posted) ||                         \
		    waited != (unsigned int)(want_waited))                           \
			fail_msg("%s: %u posted, %u waited", #call, posted, waited); \
	} while (0)

#define REFUSED(call, code)                                 \
	do {                                                \
		posted = waited = 0;                        \
		assert_int_equal(call, code);               \
		assert_int_equal(posted + waited, 0);       \
		assert_int_equal(cudaGetLastError(), code); \
	} while (0)

static void nobody_waits(void **state)
{
	cudaStream_t s;
	cudaEvent_t e;
	int n;

	(void)state;
	assert_int_equal(launch(1, 32, 0, stream), cudaSuccess);
	COSTS(launch(1, 32, 0, stream), 1, 0);
	COSTS(launch(2, 256, 1000, 0), 1, 0);
	COSTS(cudaMemcpyAsync(dev, pinned, 1 << 20, cudaMemcpyHostToDevice, stream), 1, 0);
	assert_int_equal(last.copy_h2d.flags, QCU_COPY_QUEUED);
	COSTS(cudaMemcpyAsync(pinned, dev, 1 << 20, cudaMemcpyDeviceToHost, stream), 1, 0);
	COSTS(cudaMemcpyAsync(dev, dev2, 1 << 20, cudaMemcpyDefault, stream), 1, 0);
	COSTS(cudaMemcpy(dev, dev2, 4096, cudaMemcpyDeviceToDevice), 1, 0);
	COSTS(cudaMemcpyAsync(dev, host, 64 << 10, cudaMemcpyHostToDevice, stream), 1, 0);
	assert_int_equal(last.op, QCU_OP_COPY_SMALL);
	COSTS(cudaMemcpy2DAsync(dev, 200, pinned, 300, 100, 64, cudaMemcpyHostToDevice, stream), 1,
	      0);
	COSTS(cudaMemsetAsync(dev, 1, 4096, stream), 1, 0);
	COSTS(cudaMemset(dev, 1, 4096), 1, 0);
	COSTS(cudaEventRecord(event, stream), 1, 0);
	COSTS(cudaStreamWaitEvent(stream, event, 0), 1, 0);
	COSTS(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), 1, 0);
	COSTS(cudaEventDestroy(e), 1, 0);
	COSTS(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), 1, 0);
	COSTS(cudaStreamDestroy(s), 1, 0);
	COSTS(cudaGetDevice(&n), 0, 0);
	COSTS(cudaGetLastError(), 0, 0);
	COSTS(cudaDeviceGetAttribute(&n, cudaDevAttrMaxThreadsPerBlock, 0), 0, 0);
}

static void these_wait(void **state)
{
	(void)state;
	COSTS(cudaMemcpyAsync(dev, host, (64 << 10) + 1, cudaMemcpyHostToDevice, stream), 0, 1);
	COSTS(cudaMemcpyAsync(host, dev, 16, cudaMemcpyDeviceToHost, stream), 0, 1);
	COSTS(cudaMemcpy(dev, pinned, 16, cudaMemcpyHostToDevice), 0, 1);
	COSTS(cudaMemcpy(pinned, dev, 16, cudaMemcpyDeviceToHost), 0, 1);
	/* The host's memory is in use until the copy is done. */
	COSTS(cudaMemcpy(dev, pinned, 16, cudaMemcpyDeviceToDevice), 0, 1);
	COSTS(cudaMemset(pinned, 1, 4096), 0, 1);
	COSTS(cudaStreamSynchronize(stream), 0, 1);
	COSTS(cudaEventSynchronize(event), 0, 1);
}

/* A small synchronous copy waits only if there is other work. */
static void small_and_synchronous(void **state)
{
	(void)state;
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), 1, 0);
	COSTS(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), 1, 0);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), 1, 1);
	COSTS(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), 1, 0);
	COSTS(cudaEventRecord(event, 0), 1, 0);
	COSTS(cudaStreamSynchronize(stream), 0, 1);
	/* The wait was not for the legacy stream. */
	COSTS(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), 1, 1);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaMemcpy(host, dev, 4, cudaMemcpyDeviceToHost), 0, 1);
	COSTS(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), 1, 0);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaMemcpy2D(host, 200, dev, 300, 100, 64, cudaMemcpyDeviceToHost), 0, 1);
	COSTS(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), 1, 0);
}

/* Freeing memory waits for all work. If there is none, the call does not wait. */
static void free_waits_for_work(void **state)
{
	void *p, *q;

	(void)state;
	assert_int_equal(cudaMalloc(&p, 4096), cudaSuccess);
	assert_int_equal(cudaMalloc(&q, 4096), cudaSuccess);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaFree(p), 1, 0);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaFree(q), 0, 1);
	REFUSED(cudaFree(q), cudaErrorInvalidValue);
}

/*
 * A wait for the legacy stream does not include non-blocking streams. So after such a wait, memory
 * cannot be freed without a further wait, except on a device that has never had a non-blocking
 * stream.
 */
static void free_waits_for_nonblocking_streams(void **state)
{
	void *p[4];
	cudaStream_t s;
	int i;

	(void)state;
	for (i = 0; i < 4; i++)
		assert_int_equal(cudaMalloc(&p[i], 4096), cudaSuccess);
	assert_int_equal(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), cudaSuccess);
	COSTS(launch(1, 1, 0, s), 1, 0);
	COSTS(cudaStreamSynchronize(0), 0, 1);
	COSTS(cudaFree(p[0]), 0, 1);
	COSTS(cudaMemcpy(host, dev, 4, cudaMemcpyDeviceToHost), 0, 1);
	COSTS(cudaFree(p[1]), 0, 1);
	/* The copy uses the legacy stream alone. */
	COSTS(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), 1, 0);
	/* The stream is destroyed, but its work may still run. */
	COSTS(cudaStreamDestroy(s), 1, 0);
	COSTS(cudaFree(p[2]), 0, 1);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaFree(p[3]), 1, 0);
	assert_int_equal(cudaSetDevice(1), cudaSuccess);
	assert_int_equal(cudaMalloc(&p[0], 4096), cudaSuccess);
	assert_int_equal(launch(1, 1, 0, 0), cudaSuccess);
	COSTS(cudaStreamSynchronize(0), 0, 1);
	COSTS(cudaFree(p[0]), 1, 0);
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
}

/*
 * Only the mirror knows whether the kernel's bounds or its registers forbid the launch. The call
 * asks the mirror at once.
 */
static void too_large_for_the_kernel(void **state)
{
	(void)state;
	assert_int_equal(launch(1, MAX_THREADS, 0, stream), cudaSuccess);
	posted = waited = 0;
	assert_int_equal(launch(1, MAX_THREADS + 1, 0, stream), cudaErrorLaunchOutOfResources);
	assert_int_equal(posted, 0);
	assert_int_equal(waited, 1);
	assert_int_equal(cudaGetLastError(), cudaErrorLaunchOutOfResources);
	COSTS(launch(1, MAX_THREADS, 0, stream), 1, 0);
}

/* Errors that the library finds at the call. Work on one device does not affect the other. */
static void known_at_the_call(void **state)
{
	cudaStream_t other;
	cudaEvent_t elsewhere;

	(void)state;
	REFUSED(launch(0, 1, 0, stream), cudaErrorInvalidValue);
	REFUSED(launch(1, 1, MAX_SHARED + 1, stream), cudaErrorInvalidValue);
	REFUSED(launch(1, 1, 0, (cudaStream_t)host), cudaErrorInvalidResourceHandle);
	REFUSED(cudaMemcpyAsync(dev + (1 << 20) - 8, host, 16, cudaMemcpyHostToDevice, stream),
		cudaErrorInvalidValue);
	REFUSED(cudaMemcpyAsync(dev, NULL, 16, cudaMemcpyHostToDevice, stream),
		cudaErrorInvalidValue);
	REFUSED(cudaMemsetAsync(dev + (1 << 20) - 8, 0, 16, stream), cudaErrorInvalidValue);
	REFUSED(cudaEventRecord(NULL, stream), cudaErrorInvalidResourceHandle);
	assert_int_equal(cudaSetDevice(1), cudaSuccess);
	assert_int_equal(cudaStreamCreate(&other), cudaSuccess);
	assert_int_equal(cudaEventCreate(&elsewhere), cudaSuccess);
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
	/* A kernel runs on its stream's device. */
	assert_int_equal(launch(1, 1, 0, other), cudaSuccess);
	assert_int_equal(last.device, 1);
	assert_int_equal(launch(1, 1, 0, stream), cudaSuccess);
	assert_int_equal(last.device, 0);
	REFUSED(cudaEventRecord(event, other), cudaErrorInvalidResourceHandle);
	REFUSED(cudaEventRecord(elsewhere, 0), cudaErrorInvalidResourceHandle);
	COSTS(cudaEventRecord(elsewhere, other), 1, 0);
	COSTS(cudaStreamWaitEvent(stream, elsewhere, 0), 1, 0);
}

/* An attribute changes which launches are allowed. The library asks for the limits once. */
static void limits_change(void **state)
{
	(void)state;
	assert_int_equal(cudaFuncSetAttribute(&kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
					      500),
			 cudaSuccess);
	COSTS(launch(1, 1, 0, stream), 1, 1);
	COSTS(launch(1, 1, 0, stream), 1, 0);
}

static void errors_come_late(void **state)
{
	(void)state;
	/* The next synchronising call returns the error. The error is then the last error. */
	late = cudaErrorLaunchOutOfResources;
	assert_int_equal(launch(1, 1, 0, stream), cudaSuccess);
	assert_int_equal(cudaStreamSynchronize(stream), cudaErrorLaunchOutOfResources);
	assert_int_equal(cudaGetLastError(), cudaErrorLaunchOutOfResources);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	assert_int_equal(cudaStreamSynchronize(stream), cudaSuccess);
	/* It may also be the last error as soon as it is known. */
	late = cudaErrorInvalidValue;
	assert_int_equal(launch(1, 1, 0, stream), cudaSuccess);
	assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidValue);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
	assert_int_equal(cudaGetLastError(), cudaSuccess);
	assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
	/*
	 * A call that succeeds returns success; the error comes with the next synchronising call.
	 */
	late = cudaErrorInvalidValue;
	assert_int_equal(cudaMemGetInfo(NULL, NULL), cudaSuccess);
	assert_int_equal(cudaMemcpy(host, dev, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
	/* The first of several errors. */
	late = cudaErrorInvalidValue;
	assert_int_equal(launch(1, 1, 0, stream), cudaSuccess);
	late = cudaErrorLaunchOutOfResources;
	assert_int_equal(cudaEventSynchronize(event), cudaErrorInvalidValue);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
	assert_int_equal(cudaDeviceSynchronize(), cudaSuccess);
}

/* ---- waits ---- */

static void *wait_elsewhere(void *unused)
{
	(void)unused;
	return cudaDeviceSynchronize() ? (void *)1 : NULL;
}

/* Another thread waits for the device. */
static void another_waits(void)
{
	pthread_t thread;
	void *failed;

	assert_int_equal(pthread_create(&thread, NULL, wait_elsewhere, NULL), 0);
	assert_int_equal(pthread_join(thread, &failed), 0);
	assert_null(failed);
}

/* With nothing outstanding, the library knows that there is nothing to wait for. */
static void needless_waits(void **state)
{
	cudaStream_t s;
	cudaEvent_t e;

	(void)state;
	query_answer = 0;
	assert_int_equal(cudaStreamCreate(&s), cudaSuccess);
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaDeviceSynchronize(), 0, 0);
	COSTS(cudaStreamSynchronize(s), 0, 0);
	COSTS(cudaStreamSynchronize(0), 0, 0);
	COSTS(cudaStreamSynchronize(cudaStreamPerThread), 0, 0);
	COSTS(cudaEventSynchronize(e), 0, 0);
	COSTS(cudaStreamQuery(s), 0, 0);
	COSTS(cudaStreamQuery(0), 0, 0);
	COSTS(cudaStreamQuery(cudaStreamPerThread), 0, 0);
	COSTS(cudaEventQuery(e), 0, 0);

	/* A wait for one stream says nothing about another, nor about the device. */
	COSTS(launch(1, 1, 0, s), 1, 0);
	COSTS(cudaEventRecord(e, s), 1, 0);
	COSTS(cudaStreamSynchronize(s), 0, 1);
	COSTS(cudaStreamSynchronize(s), 0, 0);
	COSTS(cudaStreamSynchronize(stream), 0, 1);
	COSTS(cudaStreamSynchronize(0), 0, 1);
	COSTS(cudaStreamSynchronize(0), 0, 0);
	COSTS(cudaStreamSynchronize(cudaStreamPerThread), 0, 1);
	COSTS(cudaStreamSynchronize(cudaStreamPerThread), 0, 1);
	COSTS(cudaEventSynchronize(e), 0, 1);
	COSTS(cudaEventSynchronize(e), 0, 0);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaStreamSynchronize(cudaStreamPerThread), 0, 0);

	/* Work in one stream may be work for any other. An event stays done. */
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaStreamSynchronize(stream), 0, 1);
	COSTS(cudaStreamSynchronize(s), 0, 1);
	COSTS(cudaEventSynchronize(e), 0, 0);
	COSTS(cudaEventRecord(e, s), 1, 0);
	COSTS(cudaEventSynchronize(e), 0, 1);

	/* The answer to a query is no wait: nothing that kernels print has come with it. */
	COSTS(launch(1, 1, 0, s), 1, 0);
	COSTS(cudaStreamQuery(s), 0, 1);
	COSTS(cudaStreamQuery(s), 0, 0);
	COSTS(cudaStreamSynchronize(s), 0, 1);

	/* Bytes that travel with their command are work; what waits for the legacy stream waits. */
	COSTS(cudaMemcpyAsync(dev, host, 4, cudaMemcpyHostToDevice, s), 1, 0);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaMemcpy(host, dev, 4, cudaMemcpyDeviceToHost), 0, 1);
	COSTS(cudaStreamSynchronize(0), 0, 0);

	/* Each device has its own. */
	COSTS(cudaDeviceSynchronize(), 0, 0);
	assert_int_equal(cudaSetDevice(1), cudaSuccess);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaStreamSynchronize(0), 0, 0);
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
	COSTS(cudaDeviceSynchronize(), 0, 0);

	/* The wait of another thread does not bring this thread's errors. */
	COSTS(launch(1, 1, 0, s), 1, 0);
	another_waits();
	COSTS(cudaStreamSynchronize(s), 0, 1);
	COSTS(cudaDeviceSynchronize(), 0, 0);
	COSTS(cudaEventCreate(&e), 1, 0);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaDeviceSynchronize(), 0, 0);

	/* A wait that failed has not waited. */
	COSTS(launch(1, 1, 0, s), 1, 0);
	sync_answer = cudaErrorLaunchOutOfResources;
	assert_int_equal(cudaDeviceSynchronize(), cudaErrorLaunchOutOfResources);
	assert_int_equal(cudaStreamSynchronize(s), cudaErrorLaunchOutOfResources);
	assert_int_equal(cudaGetLastError(), cudaErrorLaunchOutOfResources);
	sync_answer = 0;
	COSTS(cudaStreamSynchronize(s), 0, 1);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaDeviceSynchronize(), 0, 0);

	/* Another process may record such an event. */
	assert_int_equal(cudaEventDestroy(e), cudaSuccess);
	assert_int_equal(cudaEventCreateWithFlags(&e,
						  cudaEventInterprocess | cudaEventDisableTiming),
			 cudaSuccess);
	COSTS(cudaDeviceSynchronize(), 0, 0);
	COSTS(cudaEventSynchronize(e), 0, 1);
	COSTS(cudaEventSynchronize(e), 0, 1);

	/* The mirror may have died: its silence is not believed for ever. */
	COSTS(cudaDeviceSynchronize(), 0, 0);
	clock_ms += 99;
	COSTS(cudaDeviceSynchronize(), 0, 0);
	clock_ms += 2;
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaDeviceSynchronize(), 0, 0);

	COSTS(cudaEventDestroy(e), 1, 0);
	COSTS(cudaStreamDestroy(s), 1, 0);
}

/* The first wait of a child makes its mirror's context, as the first wait of a process does. */
static void waits_in_a_child(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		waited = 0;
		if (cudaDeviceSynchronize() || last.op != QCU_OP_DEVICE_SYNC)
			_exit(1);
		waited = 0;
		_exit(cudaDeviceSynchronize() || waited);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* ---- queries ---- */

/* The call returns "not ready", and sends this many queries. */
#define NOT_YET(call, want)                                        \
	do {                                                       \
		posted = waited = 0;                               \
		assert_int_equal(call, cudaErrorNotReady);         \
		assert_int_equal(posted, 0);                       \
		if (waited != (unsigned int)(want))                \
			fail_msg("%s: %u sent", #call, waited);    \
		assert_int_equal(cudaGetLastError(), cudaSuccess); \
	} while (0)

/* What is done stays done, until there is new work. */
static void asked_once(void **state)
{
	cudaEvent_t e;

	(void)state;
	query_answer = 0;
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaEventQuery(e), 0, 1);
	COSTS(cudaEventQuery(e), 0, 0);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaEventQuery(e), 0, 0);
	COSTS(cudaEventRecord(e, stream), 1, 0);
	COSTS(cudaEventQuery(e), 0, 1);
	COSTS(cudaEventQuery(e), 0, 0);
	COSTS(cudaEventDestroy(e), 1, 0);
	COSTS(cudaStreamQuery(stream), 0, 1);
	COSTS(cudaStreamQuery(stream), 0, 0);
	COSTS(cudaStreamQuery(0), 0, 1);
	COSTS(cudaStreamQuery(0), 0, 0);
	COSTS(cudaMemcpyAsync(dev, host, 4, cudaMemcpyHostToDevice, stream), 1, 0);
	COSTS(cudaStreamQuery(0), 0, 1);
	COSTS(cudaStreamQuery(stream), 0, 1);
	COSTS(cudaStreamQuery(stream), 0, 0);
	/* Nothing is known about another device's legacy stream. */
	assert_int_equal(cudaSetDevice(1), cudaSuccess);
	COSTS(cudaStreamQuery(0), 0, 1);
	COSTS(cudaStreamQuery(0), 0, 0);
	assert_int_equal(cudaSetDevice(0), cudaSuccess);
	/* A thread's own default stream is always queried. */
	COSTS(cudaStreamQuery(cudaStreamPerThread), 0, 1);
	COSTS(cudaStreamQuery(cudaStreamPerThread), 0, 1);
	/* So is an event that another process may record. */
	assert_int_equal(cudaEventCreateWithFlags(&e,
						  cudaEventInterprocess | cudaEventDisableTiming),
			 cudaSuccess);
	COSTS(cudaEventQuery(e), 0, 1);
	COSTS(cudaEventQuery(e), 0, 1);
	assert_int_equal(last.event_query.token, 0);
	COSTS(cudaEventDestroy(e), 1, 0);
	/* The error of a posted command is returned, too, by a query that sends nothing. */
	late = cudaErrorInvalidValue;
	posted = waited = 0;
	assert_int_equal(cudaStreamQuery(stream), cudaErrorInvalidValue);
	assert_int_equal(waited, 0);
	assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
	COSTS(cudaStreamQuery(stream), 0, 0);
}

/* The page cannot be had: each query is sent, and the library does not ask for the page again. */
static void asked_without_a_page(void **state)
{
	cudaEvent_t e;
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		no_page = true;
		query_answer = cudaErrorNotReady;
		if (cudaEventCreate(&e) || cudaEventRecord(e, 0))
			_exit(1);
		waited = 0;
		if (cudaEventQuery(e) != cudaErrorNotReady || waited != 2 ||
		    cudaEventQuery(e) != cudaErrorNotReady || waited != 3 ||
		    cudaStreamQuery(0) != cudaErrorNotReady || waited != 4)
			_exit(2);
		query_answer = 0;
		_exit(cudaEventQuery(e) || waited != 5 || cudaEventQuery(e) || waited != 5);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void looked_up(void **state)
{
	cudaEvent_t e, other[QCU_WATCH_PLACES];
	uint64_t token;
	uint32_t place;
	unsigned int i;

	(void)state;
	query_answer = cudaErrorNotReady;
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	COSTS(cudaEventRecord(e, stream), 1, 0);
	/* The first query has the page made. */
	NOT_YET(cudaEventQuery(e), 2);
	assert_non_null(page);
	NOT_YET(cudaEventQuery(e), 1);
	token = last.event_query.token;
	place = last.event_query.place;
	assert_true(token && !(token & QCU_WATCH_ASK) && place < QCU_WATCH_PLACES);
	for (i = 0; i < 100; i++)
		NOT_YET(cudaEventQuery(e), 0);
	/* Another token is in the place. */
	page[place] = token + 1;
	NOT_YET(cudaEventQuery(e), 0);
	page[place] = token;
	COSTS(cudaEventQuery(e), 0, 0);
	page[place] = 0;
	COSTS(cudaEventQuery(e), 0, 0);

	/* A query after a new record is a new question. */
	page[place] = token;
	COSTS(cudaEventRecord(e, stream), 1, 0);
	NOT_YET(cudaEventQuery(e), 1);
	assert_int_equal(last.event_query.place, place);
	assert_int_not_equal(last.event_query.token, token);
	NOT_YET(cudaEventQuery(e), 0);
	/* After a wait, the event may be done: the query is sent again. */
	COSTS(cudaMemcpy(host, dev, 4, cudaMemcpyDeviceToHost), 0, 1);
	NOT_YET(cudaEventQuery(e), 1);
	NOT_YET(cudaEventQuery(e), 0);
	/* The mirror wants a query: there is an error. */
	page[place] = last.event_query.token | QCU_WATCH_ASK;
	query_answer = cudaErrorLaunchOutOfResources;
	posted = waited = 0;
	assert_int_equal(cudaEventQuery(e), cudaErrorLaunchOutOfResources);
	assert_int_equal(waited, 1);
	assert_int_equal(cudaEventQuery(e), cudaErrorLaunchOutOfResources);
	assert_int_equal(waited, 2);
	assert_int_equal(cudaGetLastError(), cudaErrorLaunchOutOfResources);
	query_answer = cudaErrorNotReady;

	/* A stream: the answer is valid until work is put into any stream. */
	NOT_YET(cudaStreamQuery(stream), 1);
	NOT_YET(cudaStreamQuery(stream), 0);
	COSTS(launch(1, 1, 0, 0), 1, 0);
	NOT_YET(cudaStreamQuery(stream), 1);
	NOT_YET(cudaStreamQuery(stream), 0);
	page[last.stream_query.place] = last.stream_query.token;
	COSTS(cudaStreamQuery(stream), 0, 0);
	COSTS(launch(1, 1, 0, 0), 1, 0);
	NOT_YET(cudaStreamQuery(stream), 1);

	/*
	 * Two events have the same place: one of them owns it, until it is done or recorded again.
	 */
	NOT_YET(cudaEventQuery(e), 1);
	NOT_YET(cudaEventQuery(e), 0);
	for (i = 0; i < QCU_WATCH_PLACES; i++)
		assert_int_equal(cudaEventCreate(&other[i]), cudaSuccess);
	for (i = 0; i < QCU_WATCH_PLACES; i++)
		if (((struct qcul_handle *)other[i] - (struct qcul_handle *)e) % QCU_WATCH_PLACES ==
		    0)
			break;
	assert_true(i < QCU_WATCH_PLACES);
	NOT_YET(cudaEventQuery(other[i]), 1);
	assert_int_equal(last.event_query.token, 0);
	NOT_YET(cudaEventQuery(other[i]), 1);
	NOT_YET(cudaEventQuery(e), 0);
	COSTS(cudaEventRecord(e, stream), 1, 0);
	NOT_YET(cudaEventQuery(other[i]), 1);
	assert_int_equal(last.event_query.place, place);
	NOT_YET(cudaEventQuery(other[i]), 0);
	NOT_YET(cudaEventQuery(e), 1);
	NOT_YET(cudaEventQuery(e), 1);
	for (i = 0; i < QCU_WATCH_PLACES; i++)
		assert_int_equal(cudaEventDestroy(other[i]), cudaSuccess);
	query_answer = 0;
}

/* The mirror may have died: after a while, "not ready" is not believed without a query. */
static void asked_in_the_long_run(void **state)
{
	cudaEvent_t e;

	(void)state;
	query_answer = cudaErrorNotReady;
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	NOT_YET(cudaEventQuery(e), 1);
	clock_ms += 50;
	NOT_YET(cudaEventQuery(e), 0);
	clock_ms += 100;
	NOT_YET(cudaEventQuery(e), 1);
	NOT_YET(cudaEventQuery(e), 0);
	query_answer = 0;
}

/* The last test: nothing works afterwards. */
static void sticky(void **state)
{
	(void)state;
	late = cudaErrorIllegalAddress;
	assert_int_equal(launch(1, 1, 0, stream), cudaSuccess);
	assert_int_equal(launch(1, 1, 0, stream), cudaErrorIllegalAddress);
	assert_int_equal(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
	assert_int_equal(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), cudaErrorIllegalAddress);
}

/*
 * In a process of its own, because the library reads the variable once. Launches also wait for
 * their kernel.
 */
static int with_launch_blocking(void)
{
	cudaEvent_t e;

	setenv("CUDA_LAUNCH_BLOCKING", "1", 1);
	if (start(NULL) || launch(1, 1, 0, stream))
		return 1;
	posted = waited = 0;
	if (launch(1, 1, 0, stream) || waited != 2 || last.op != QCU_OP_STREAM_SYNC)
		return 2;
	waited = 0;
	if (cudaEventCreate(&e) || cudaEventRecord(e, stream) ||
	    cudaMemcpyAsync(dev, host, 4, cudaMemcpyHostToDevice, stream) || waited != 3)
		return 3;
	return posted ? 4 : 0;
}

static void launch_blocking(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid)
		_exit(with_launch_blocking());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	static const struct CMUnitTest before[] = {cmocka_unit_test(launch_blocking)};
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_waits),
		cmocka_unit_test(these_wait),
		cmocka_unit_test(small_and_synchronous),
		cmocka_unit_test(free_waits_for_work),
		cmocka_unit_test(known_at_the_call),
		cmocka_unit_test(limits_change),
		cmocka_unit_test(too_large_for_the_kernel),
		cmocka_unit_test(errors_come_late),
		cmocka_unit_test(free_waits_for_nonblocking_streams),
		cmocka_unit_test(needless_waits),
		cmocka_unit_test(waits_in_a_child),
		cmocka_unit_test(asked_once),
		cmocka_unit_test(asked_without_a_page),
		cmocka_unit_test(looked_up),
		cmocka_unit_test(asked_in_the_long_run),
		cmocka_unit_test(sticky),
	};

	return cmocka_run_group_tests(before, NULL, NULL) ||
	       cmocka_run_group_tests(tests, start, NULL);
}
