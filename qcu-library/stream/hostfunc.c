// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Host functions and stream callbacks. The mirror reports when a stream has reached one. A thread
 * of the library runs the function in this process and tells the mirror when it is done. The first
 * host function or callback of a session starts the thread. The thread asks the mirror only while
 * calls are outstanding. Otherwise it sleeps, after a short look for the next call: to wake it
 * takes longer than most such functions.
 */
#define _GNU_SOURCE /* pthread_setname_np */
#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/stream/stream.h"
#include "qcu-library/link/capture.h"

struct qcul_host_call {
	cudaHostFn_t fn; /* NULL: use callback */
	cudaStreamCallback_t callback;
	cudaStream_t stream;
	void *data;
	atomic_uint refs; /* of a function in a graph; 0: it runs once */
};

static struct {
	unsigned int served; /* epoch in which the thread exists */
	sem_t expected;	     /* calls that the mirror has and will report */
} process;
QCUL_AT_FORK(QCUL_FORK_HOST_CALLS)

void qcul_graph_host_put(struct qcul_host_call *call)
{
	if (call && atomic_fetch_sub(&call->refs, 1) == 1)
		free(call);
}

static void run_host_call(struct qcul_host_call *call, cudaError_t error)
{
	qcul_self.in_callback = true;
	if (call->fn)
		call->fn(call->data);
	else
		call->callback(call->stream, error, call->data);
	qcul_self.in_callback = false;
	if (atomic_load(&call->refs))
		qcul_graph_host_put(call);
	else
		free(call);
}

/* How often the thread looks for the next call: about 20 us. With one processor it does not look.
 */
#define LOOKS 2000

/* Waits for a call that the mirror has. */
static void expect(unsigned int looks)
{
	while (looks--)
		if (!sem_trywait(&process.expected))
			return;
	while (sem_wait(&process.expected) && errno == EINTR)
		;
}

static void *serve_host_calls(void *unused)
{
	const unsigned int looks = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? LOOKS : 0;
	uint64_t done = 0;

	(void)unused;
	for (;;) {
		struct qCUcmd cmd;
		int rc;

		while ((rc = sem_trywait(&process.expected)) && errno == EINTR)
			;
		cmd = qcul_cmd(QCU_OP_HOST_NEXT);
		cmd.host_next.done = done;
		cmd.host_next.wait = !rc;
		if (rc && !done) {
			expect(looks);
			cmd.host_next.wait = 1;
		}
		/* If this fails, the session has ended, and all its streams with it. */
		if (qcul_send(&cmd, 1) != cudaSuccess)
			return NULL;
		done = cmd.host_next.token;
		if (done)
			run_host_call((struct qcul_host_call *)(uintptr_t)done,
				      (cudaError_t)cmd.host_next.error);
	}
}

static cudaError_t start_callback_thread(void)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int rc = 0;

	pthread_mutex_lock(&at_fork.lock);
	if (process.served != qcul_epoch()) {
		sem_init(&process.expected, 0, 0);
		/* Signals are for the program's own threads. */
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		pthread_attr_init(&attr);
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		rc = pthread_create(&thread, &attr, serve_host_calls, NULL);
		pthread_attr_destroy(&attr);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (!rc) {
			pthread_setname_np(thread, "qcuda-callbacks");
			process.served = qcul_epoch();
		}
	}
	pthread_mutex_unlock(&at_fork.lock);
	return rc ? cudaErrorOperatingSystem : cudaSuccess;
}

static cudaError_t capture_host_call(const struct qcul_host_call *what)
{
	const struct cudaGraphNodeParams node = {
		.type = cudaGraphNodeTypeHost,
		.host = {.fn = what->fn, .userData = what->data},
	};

	return what->fn ? qcul_capture_node(what->stream, &node)
			: qcul_capture_refuse(what->stream);
}

static cudaError_t enqueue(const struct qcul_host_call *what, uint32_t flags)
{
	struct qcul_host_call *call;
	struct qCUcmd cmd;
	uint32_t stream;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_stream_id(what->stream, &stream);
	if (!err && qcul_captured(what->stream, &err))
		return err ? err : capture_host_call(what);
	if (!err)
		err = start_callback_thread();
	if (err)
		return err;
	call = malloc(sizeof(*call));
	if (!call)
		return cudaErrorMemoryAllocation;
	call->fn = what->fn;
	call->callback = what->callback;
	call->stream = what->stream;
	call->data = what->data;
	atomic_init(&call->refs, 0);
	cmd = qcul_cmd(QCU_OP_HOST_FUNC);
	cmd.host_func.token = (uint64_t)(uintptr_t)call;
	cmd.host_func.stream = stream;
	cmd.host_func.flags = flags;
	err = qcul_post(&cmd, 1);
	if (err)
		free(call);
	else
		sem_post(&process.expected);
	return err;
}

/* ---- functions in graphs ---- */

cudaError_t qcul_graph_host_new(cudaHostFn_t fn, void *data, struct qcul_host_call **call)
{
	cudaError_t err = start_callback_thread();

	if (err)
		return err;
	*call = calloc(1, sizeof(**call));
	if (!*call)
		return cudaErrorMemoryAllocation;
	(*call)->fn = fn;
	(*call)->data = data;
	atomic_init(&(*call)->refs, 1);
	return cudaSuccess;
}

void qcul_graph_host_expect(struct qcul_host_call *call)
{
	atomic_fetch_add(&call->refs, 1);
}

void qcul_graph_host_sent(void)
{
	sem_post(&process.expected);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *data)
{
	struct qcul_host_call call = {.fn = fn, .stream = stream, .data = data};

	return qcul_done(fn ? enqueue(&call, 0) : cudaErrorInvalidValue);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void *data,
				  unsigned int flags)
{
	struct qcul_host_call call = {.callback = callback, .stream = stream, .data = data};

	if (!callback || flags)
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(enqueue(&call, QCU_HOST_ALWAYS));
}
