/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stream capture: calls on a stream that is being captured become nodes of a graph instead of being
 * sent. Each function that puts something into a stream calls qcul_captured() first. As long as
 * no stream is being captured, this costs one load.
 *
 * Graphs are built on top of the calls that are captured, so graph/ registers here what it does.
 */
#ifndef QCUL_CAPTURE_H
#define QCUL_CAPTURE_H

#include "qcu-library/link/link.h"

struct CUkern_st;

/* A launch that is captured. The kernel is loaded. */
struct qcul_captured_launch {
	struct CUkern_st *kernel;
	struct cudaKernelNodeParams params;
	const cudaLaunchAttribute *attrs;
	unsigned int attr_count;
};

/*
 * What a node does of which graph/ knows no more, for example a call of a library. Each node that
 * has it holds a reference, and the last one calls `end`. `run` makes the call in a stream.
 */
struct qcul_captured_call {
	atomic_uint refs;
	enum cudaGraphNodeType type; /* as the program sees it */
	cudaError_t (*run)(struct qcul_captured_call *call, cudaStream_t stream);
	void (*end)(struct qcul_captured_call *call);
	/* Writes what belongs to the type. NULL: the program cannot read it. */
	void (*params)(const struct qcul_captured_call *call, struct cudaGraphNodeParams *to);
	/* May an executable graph's call become this one? NULL: always. */
	bool (*can_become)(const struct qcul_captured_call *call,
			   const struct qcul_captured_call *now);
	/* For the host's graph, if the call is one of a library. `args` NULL: it is not. */
	struct {
		uint16_t library, function;
		uint32_t bytes;
		const void *args;
	} packed;
};

struct qcul_recorder {
	bool (*captured)(cudaStream_t stream, cudaError_t *err);
	cudaError_t (*node)(cudaStream_t stream, const struct cudaGraphNodeParams *params);
	cudaError_t (*launch)(cudaStream_t stream, const struct qcul_captured_launch *launch);
	cudaError_t (*alloc)(cudaStream_t stream, struct cudaMemAllocNodeParams *params);
	cudaError_t (*call)(cudaStream_t stream, struct qcul_captured_call *call);
	cudaError_t (*refuse)(cudaStream_t stream);
	bool (*leave)(cudaStream_t stream);
	cudaError_t (*unsafe)(void);
	cudaError_t (*record)(cudaStream_t stream, struct qcul_handle *event);
	bool (*wait)(cudaStream_t stream, struct qcul_handle *event, cudaError_t *err);
	cudaError_t (*asked)(const struct qcul_handle *event);
	void (*forget)(struct qcul_handle *event);
	bool (*owns)(const void *ptr);
	cudaError_t (*free)(void *ptr);
	cudaError_t (*free_async)(void *ptr, cudaStream_t stream);
};

extern atomic_uint qcul_captures; /* captures in progress */
extern const struct qcul_recorder *qcul_recorder;

/*
 * True: the call must not go to the GPU. With an error: the call is not allowed while something is
 * being captured. Without an error: the call belongs in a graph, by one of the functions below.
 */
static inline bool qcul_captured(cudaStream_t stream, cudaError_t *err)
{
	return atomic_load_explicit(&qcul_captures, memory_order_relaxed) &&
	       qcul_recorder->captured(stream, err);
}

/* The call becomes a node: of any type but those of the next two functions. */
static inline cudaError_t qcul_capture_node(cudaStream_t stream,
					    const struct cudaGraphNodeParams *params)
{
	return qcul_recorder->node(stream, params);
}

static inline cudaError_t qcul_capture_copy(cudaStream_t stream,
					    const struct cudaMemcpy3DParms *params)
{
	const struct cudaGraphNodeParams node = {
		.type = cudaGraphNodeTypeMemcpy,
		.memcpy.copyParams = *params,
	};

	return qcul_capture_node(stream, &node);
}

static inline cudaError_t qcul_capture_launch(cudaStream_t stream,
					      const struct qcul_captured_launch *launch)
{
	return qcul_recorder->launch(stream, launch);
}

/* Takes over the caller's reference, also if it fails. */
static inline cudaError_t qcul_capture_call(cudaStream_t stream, struct qcul_captured_call *call)
{
	return qcul_recorder->call(stream, call);
}

/* Sets params->dptr. */
static inline cudaError_t qcul_capture_alloc(cudaStream_t stream,
					     struct cudaMemAllocNodeParams *params)
{
	return qcul_recorder->alloc(stream, params);
}

static inline cudaError_t qcul_capture_record(cudaStream_t stream, struct qcul_handle *event)
{
	return qcul_recorder->record(stream, event);
}

/* For a call that is not allowed on a captured stream: it makes the capture invalid. */
static inline cudaError_t qcul_capture_refuse(cudaStream_t stream)
{
	return qcul_recorder->refuse(stream);
}

/*
 * For a stream that is about to be destroyed: it takes no further part in a capture. False: the
 * capture began with this stream.
 */
static inline bool qcul_capture_leave(cudaStream_t stream)
{
	return !atomic_load_explicit(&qcul_captures, memory_order_relaxed) ||
	       qcul_recorder->leave(stream);
}

/* For a wait of `stream`. True: the stream is being captured, or the event was recorded in a
 * capture. Then this call has done the whole wait, or *err says why it cannot. */
static inline bool qcul_capture_wait(cudaStream_t stream, struct qcul_handle *event,
				     cudaError_t *err)
{
	return qcul_recorder->wait(stream, event, err);
}

/* An event recorded in a capture has no state to query; a query makes the capture invalid. */
static inline cudaError_t qcul_capture_asked(const struct qcul_handle *event)
{
	return event->capture ? qcul_recorder->asked(event) : cudaSuccess;
}

/* For an event that is recorded again, or is new in a slot that has been used before. */
static inline void qcul_event_forget_capture(struct qcul_handle *event)
{
	if (event->capture)
		qcul_recorder->forget(event);
}

/* For calls that might wait for a captured stream implicitly, such as cudaMalloc. */
static inline cudaError_t qcul_capture_unsafe(void)
{
	return atomic_load_explicit(&qcul_captures, memory_order_relaxed) ? qcul_recorder->unsafe()
									  : cudaSuccess;
}

/* Memory that a graph has allocated: is this such memory? The program frees it. */
static inline bool qcul_graph_memory_is(const void *ptr)
{
	return qcul_recorder->owns(ptr);
}

static inline cudaError_t qcul_graph_memory_free(void *ptr)
{
	return qcul_recorder->free(ptr);
}

static inline cudaError_t qcul_graph_memory_free_async(void *ptr, cudaStream_t stream)
{
	return qcul_recorder->free_async(ptr, stream);
}

#endif
