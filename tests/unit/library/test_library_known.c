// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What the library knows without the mirror: that there is nothing to wait for, what is true of an
 * event that was not recorded, and whether work is done. The transport of this test counts what is
 * sent.
 */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/library/mirror.h"

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
	void *p;

	(void)state;
	query_answer = 0;
	assert_int_equal(launch(1, 1, 0, stream), cudaSuccess); /* loads the kernel */
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
	COSTS(cudaEventRecord(e, s), 2, 0);
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
	COSTS(cudaMalloc(&p, 4), 0, 1);
	COSTS(cudaFree(p), 1, 0);
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

/* ---- events that are created again ---- */

/* Records the event and waits until it is done. Returns how many commands the record has posted. */
static unsigned int record_and_wait(cudaEvent_t e)
{
	unsigned int n;

	posted = 0;
	assert_int_equal(cudaEventRecord(e, stream), cudaSuccess);
	n = posted;
	assert_int_equal(cudaEventSynchronize(e), cudaSuccess);
	return n;
}

static void *record_elsewhere(void *e)
{
	return cudaEventRecord((cudaEvent_t)e, stream) ? e : NULL;
}

static void events_again(void **state)
{
	enum { MANY = 100, KEPT = 64 };
	cudaEvent_t e, f, many[MANY];
	unsigned int i, made, max;
	pthread_t thread[2];
	void *failed;
	float ms;

	(void)state;
	query_answer = 0;
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	(void)record_and_wait(e);
	COSTS(cudaEventElapsedTime(&ms, e, e), 0, 1);
	COSTS(cudaEventDestroy(e), 0, 0);
	REFUSED(cudaEventQuery(e), cudaErrorInvalidResourceHandle);
	REFUSED(cudaEventDestroy(e), cudaErrorInvalidResourceHandle);
	/* It is a new event: done, and without a time. */
	COSTS(cudaEventCreate(&f), 0, 0);
	COSTS(cudaEventQuery(f), 0, 0);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaEventQuery(f), 0, 0);
	COSTS(cudaEventSynchronize(f), 0, 0);
	COSTS(cudaStreamWaitEvent(stream, f, 0), 0, 0);
	REFUSED(cudaEventElapsedTime(&ms, f, f), cudaErrorInvalidResourceHandle);
	COSTS(cudaEventRecord(f, stream), 1, 0);
	COSTS(cudaStreamWaitEvent(stream, f, 0), 1, 0);
	COSTS(cudaEventSynchronize(f), 0, 1);
	COSTS(cudaEventElapsedTime(&ms, f, f), 0, 1);

	/* Not an event that the mirror has not said to be done. */
	COSTS(cudaEventRecord(f, stream), 1, 0);
	COSTS(cudaDeviceSynchronize(), 0, 1);
	COSTS(cudaEventDestroy(f), 1, 0);
	assert_int_equal(last.op, QCU_OP_EVENT_DESTROY);

	/* Nor one that another process may know, or of other flags. The one that is kept goes. */
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	(void)record_and_wait(e);
	COSTS(cudaEventDestroy(e), 0, 0);
	COSTS(cudaEventCreateWithFlags(&f, cudaEventDisableTiming), 0, 0);
	COSTS(cudaEventRecord(f, stream), 3, 0);
	COSTS(cudaEventDestroy(f), 1, 0);
	COSTS(cudaEventCreateWithFlags(&f, cudaEventDisableTiming | cudaEventInterprocess), 0, 1);
	COSTS(cudaEventRecord(f, stream), 0, 1);
	COSTS(cudaEventSynchronize(f), 0, 1);
	COSTS(cudaEventDestroy(f), 1, 0);
	/* Nor one of another device. */
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	(void)record_and_wait(e);
	COSTS(cudaEventDestroy(e), 0, 0);
	assert_int_equal(cudaSetDevice(1), cudaSuccess);
	COSTS(cudaEventCreate(&f), 0, 0);
	COSTS(cudaEventRecord(f, 0), 3, 0);
	COSTS(cudaEventDestroy(f), 1, 0);
	assert_int_equal(cudaSetDevice(0), cudaSuccess);

	/* The mirror never has more events than the program had at one time. */
	for (made = i = 0; i < MANY; i++) {
		assert_int_equal(cudaEventCreate(&many[i]), cudaSuccess);
		made += record_and_wait(many[i]);
	}
	assert_int_equal(made, 2 * MANY);
	for (i = 0; i < MANY; i++)
		COSTS(cudaEventDestroy(many[i]), i >= KEPT, 0);
	max = i = KEPT;
	while (i--) {
		assert_int_equal(cudaEventCreate(&many[i]), cudaSuccess);
		assert_int_equal(record_and_wait(many[i]), 1);
	}
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	assert_int_equal(record_and_wait(e), 2);
	for (i = 0; i < max; i++)
		COSTS(cudaEventDestroy(many[i]), 0, 0);
	COSTS(cudaEventDestroy(e), 1, 0);
	for (i = 0; i < max; i++) {
		assert_int_equal(cudaEventCreateWithFlags(&many[i], cudaEventBlockingSync),
				 cudaSuccess);
		assert_int_equal(record_and_wait(many[i]), 3);
	}
	assert_int_equal(cudaEventCreateWithFlags(&e, cudaEventBlockingSync), cudaSuccess);
	assert_int_equal(record_and_wait(e), 2);

	for (i = 0; i < max; i++)
		COSTS(cudaEventDestroy(many[i]), 0, 0);
	/* Two threads record a new event: one of them has the mirror make it. */
	assert_int_equal(cudaEventCreate(&f), cudaSuccess);
	posted = 0;
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, record_elsewhere, f), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
	COSTS(cudaEventDestroy(f), 1, 0);
	COSTS(cudaEventDestroy(e), 0, 0);
}

/* Creates events until there are no more, and destroys them. Returns how many there were. */
static unsigned int as_many_as_can_be(unsigned int flags)
{
	static cudaEvent_t e[QCU_ID_MAX + 1];
	unsigned int n, i;
	cudaError_t err;

	for (n = 0; !(err = cudaEventCreateWithFlags(&e[n], flags)); n++)
		;
	assert_int_equal(err, cudaErrorMemoryAllocation);
	assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
	for (i = 0; i < n; i++)
		assert_int_equal(cudaEventDestroy(e[i]), cudaSuccess);
	return n;
}

/* What is kept takes no number from the program. */
static void all_numbers(void **state)
{
	enum { KEPT = 64 };
	cudaEvent_t e[KEPT];
	unsigned int i, with;

	(void)state;
	for (i = 0; i < KEPT; i++) {
		assert_int_equal(cudaEventCreate(&e[i]), cudaSuccess);
		(void)record_and_wait(e[i]);
	}
	for (i = 0; i < KEPT; i++)
		COSTS(cudaEventDestroy(e[i]), 0, 0);
	with = as_many_as_can_be(cudaEventDisableTiming);
	assert_true(with > QCU_ID_MAX / 2);
	assert_int_equal(with, as_many_as_can_be(cudaEventDisableTiming));
}

/* A child has no mirror yet, so it has none of the kept events. Nor has a device after a reset. */
static void events_in_a_child(void **state)
{
	cudaEvent_t e;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	(void)record_and_wait(e);
	COSTS(cudaEventDestroy(e), 0, 0);
	pid = fork();
	if (!pid) {
		if (cudaEventCreate(&e))
			_exit(1);
		stream = 0;
		if (record_and_wait(e) != 2 || cudaEventDestroy(e) || cudaDeviceReset() ||
		    cudaEventCreate(&e))
			_exit(2);
		_exit(record_and_wait(e) != 2);
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
	COSTS(cudaEventQuery(e), 0, 0);
	assert_int_equal(cudaEventRecord(e, stream), cudaSuccess);
	COSTS(cudaEventQuery(e), 0, 1);
	COSTS(cudaEventQuery(e), 0, 0);
	COSTS(launch(1, 1, 0, stream), 1, 0);
	COSTS(cudaEventQuery(e), 0, 0);
	COSTS(cudaEventRecord(e, stream), 1, 0);
	COSTS(cudaEventQuery(e), 0, 1);
	COSTS(cudaEventQuery(e), 0, 0);
	COSTS(cudaEventDestroy(e), 0, 0);
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
	cudaEvent_t e, other[QCU_WATCH_SLOTS];
	uint64_t token;
	uint32_t slot;
	unsigned int i;

	(void)state;
	query_answer = cudaErrorNotReady;
	assert_int_equal(cudaEventCreate(&e), cudaSuccess);
	assert_int_equal(cudaEventRecord(e, stream), cudaSuccess);
	/* The first query has the page made. */
	NOT_YET(cudaEventQuery(e), 2);
	assert_non_null(page);
	NOT_YET(cudaEventQuery(e), 1);
	token = last.event_query.token;
	slot = last.event_query.slot;
	assert_true(token && !(token & QCU_WATCH_ASK) && slot < QCU_WATCH_SLOTS);
	for (i = 0; i < 100; i++)
		NOT_YET(cudaEventQuery(e), 0);
	/* Another token is in the place. */
	page[slot] = token + 1;
	NOT_YET(cudaEventQuery(e), 0);
	page[slot] = token;
	COSTS(cudaEventQuery(e), 0, 0);
	page[slot] = 0;
	COSTS(cudaEventQuery(e), 0, 0);

	/* A query after a new record is a new question. */
	page[slot] = token;
	COSTS(cudaEventRecord(e, stream), 1, 0);
	NOT_YET(cudaEventQuery(e), 1);
	assert_int_equal(last.event_query.slot, slot);
	assert_int_not_equal(last.event_query.token, token);
	NOT_YET(cudaEventQuery(e), 0);
	/* After a wait, the event may be done: the query is sent again. */
	COSTS(cudaMemcpy(host, dev, 4, cudaMemcpyDeviceToHost), 0, 1);
	NOT_YET(cudaEventQuery(e), 1);
	NOT_YET(cudaEventQuery(e), 0);
	/* The mirror wants a query: there is an error. */
	page[slot] = last.event_query.token | QCU_WATCH_ASK;
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
	page[last.stream_query.slot] = last.stream_query.token;
	COSTS(cudaStreamQuery(stream), 0, 0);
	COSTS(launch(1, 1, 0, 0), 1, 0);
	NOT_YET(cudaStreamQuery(stream), 1);

	/*
	 * Two events have the same place: one of them owns it, until it is done or recorded again.
	 */
	NOT_YET(cudaEventQuery(e), 1);
	NOT_YET(cudaEventQuery(e), 0);
	for (i = 0; i < QCU_WATCH_SLOTS; i++)
		assert_int_equal(cudaEventCreate(&other[i]), cudaSuccess);
	for (i = 0; i < QCU_WATCH_SLOTS; i++)
		if (((struct qcul_handle *)other[i] - (struct qcul_handle *)e) % QCU_WATCH_SLOTS ==
		    0)
			break;
	assert_true(i < QCU_WATCH_SLOTS);
	assert_int_equal(cudaEventRecord(other[i], stream), cudaSuccess);
	NOT_YET(cudaEventQuery(other[i]), 1);
	assert_int_equal(last.event_query.token, 0);
	NOT_YET(cudaEventQuery(other[i]), 1);
	NOT_YET(cudaEventQuery(e), 0);
	COSTS(cudaEventRecord(e, stream), 1, 0);
	NOT_YET(cudaEventQuery(other[i]), 1);
	assert_int_equal(last.event_query.slot, slot);
	NOT_YET(cudaEventQuery(other[i]), 0);
	NOT_YET(cudaEventQuery(e), 1);
	NOT_YET(cudaEventQuery(e), 1);
	for (i = 0; i < QCU_WATCH_SLOTS; i++)
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
	assert_int_equal(cudaEventRecord(e, stream), cudaSuccess);
	NOT_YET(cudaEventQuery(e), 1);
	clock_ms += 50;
	NOT_YET(cudaEventQuery(e), 0);
	clock_ms += 100;
	NOT_YET(cudaEventQuery(e), 1);
	NOT_YET(cudaEventQuery(e), 0);
	query_answer = 0;
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(needless_waits),	 cmocka_unit_test(waits_in_a_child),
		cmocka_unit_test(events_again),		 cmocka_unit_test(all_numbers),
		cmocka_unit_test(events_in_a_child),	 cmocka_unit_test(asked_once),
		cmocka_unit_test(asked_without_a_page),	 cmocka_unit_test(looked_up),
		cmocka_unit_test(asked_in_the_long_run),
	};

	return cmocka_run_group_tests(tests, start, NULL);
}
