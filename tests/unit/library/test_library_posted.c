// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which calls wait for the mirror and which do not, counted on a transport that this test provides;
 * and which later call returns the error of a call that does not wait. An error that CUDA reports
 * at the call must be reported at the call, without a question to the mirror.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/library/mirror.h"

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
	/* The mirror gets to know an event with its first record. */
	COSTS(cudaEventRecord(event, stream), 2, 0);
	COSTS(cudaEventRecord(event, stream), 1, 0);
	COSTS(cudaStreamWaitEvent(stream, event, 0), 1, 0);
	COSTS(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), 0, 0);
	COSTS(cudaStreamWaitEvent(stream, e, 0), 0, 0);
	COSTS(cudaEventDestroy(e), 0, 0);
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

/* Freeing memory waits for all work, once. If there is none, the call does not wait. */
static void free_waits_for_work(void **state)
{
	void *p, *q, *r;

	(void)state;
	assert_int_equal(cudaMalloc(&p, 4096), cudaSuccess);
	assert_int_equal(cudaMalloc(&q, 4096), cudaSuccess);
	assert_int_equal(cudaMalloc(&r, 4096), cudaSuccess);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaFree(p), 1, 0);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaFree(q), 1, 1);
	COSTS(cudaFree(r), 1, 0);
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
	COSTS(cudaFree(p[0]), 1, 1);
	COSTS(launch(1, 1, 0, s), 1, 0);
	COSTS(cudaMemcpy(host, dev, 4, cudaMemcpyDeviceToHost), 0, 1);
	COSTS(cudaFree(p[1]), 1, 1);
	/* The copy uses the legacy stream alone. */
	COSTS(launch(1, 1, 0, s), 1, 0);
	COSTS(cudaStreamSynchronize(0), 0, 1);
	COSTS(cudaMemcpy(dev, host, 4, cudaMemcpyHostToDevice), 1, 0);
	/* The stream is destroyed, but its work may still run. */
	COSTS(cudaStreamDestroy(s), 1, 0);
	COSTS(cudaFree(p[2]), 1, 1);
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
	COSTS(cudaEventRecord(elsewhere, other), 2, 0);
	COSTS(cudaStreamWaitEvent(stream, elsewhere, 0), 1, 0);
}

/* An attribute changes which launches are allowed. The library asks for the limits once. */
static void limits_change(void **state)
{
	const enum cudaFuncAttribute most = cudaFuncAttributeMaxDynamicSharedMemorySize;

	(void)state;
	COSTS(cudaFuncSetAttribute(&kernel, most, 500), 0, 1);
	COSTS(launch(1, 1, 0, stream), 1, 1);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	/* It is known that it has this value. */
	COSTS(cudaFuncSetAttribute(&kernel, most, MAX_SHARED), 0, 0);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaFuncSetAttribute(&kernel, most, MAX_SHARED - 1), 0, 1);
	COSTS(cudaFuncSetAttribute(&kernel, most, MAX_SHARED), 0, 1);
	COSTS(launch(1, 1, 0, stream), 1, 1);
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
		cmocka_unit_test(sticky),
	};

	return cmocka_run_group_tests(before, NULL, NULL) ||
	       cmocka_run_group_tests(tests, start, NULL);
}
