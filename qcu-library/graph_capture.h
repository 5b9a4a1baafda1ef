/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stream capture: calls on a stream that is being captured become nodes of a graph instead of being
 * sent. Each function that puts something into a stream calls qcul_captured() first. As long as
 * no stream is being captured, this costs one load.
 */
#ifndef QCUL_GRAPH_CAPTURE_H
#define QCUL_GRAPH_CAPTURE_H

#include "qcu-library/graph.h"

extern atomic_uint qcul_captures; /* captures in progress */

bool qcul_captured_slow(cudaStream_t stream, cudaError_t *err);

/*
 * True: the call must not go to the GPU. With an error: the call is not allowed while something is
 * being captured. Without an error: the call belongs in a graph, by one of the functions below.
 */
static inline bool qcul_captured(cudaStream_t stream, cudaError_t *err)
{
	return atomic_load_explicit(&qcul_captures, memory_order_relaxed) &&
	       qcul_captured_slow(stream, err);
}

/* Takes ownership of p. */
cudaError_t qcul_capture_node(cudaStream_t stream, struct qcul_node_params *p);
cudaError_t qcul_capture_record(cudaStream_t stream, struct qcul_handle *event);
/* For a call that is not allowed on a captured stream: it makes the capture invalid. */
cudaError_t qcul_capture_refuse(cudaStream_t stream);

/* For a wait of `stream`. True: the stream is being captured, or the event was recorded in a
 * capture. Then this call has done the whole wait, or *err says why it cannot. */
bool qcul_capture_wait(cudaStream_t stream, struct qcul_handle *event, cudaError_t *err);
/* An event recorded in a capture has no state to query; a query makes the capture invalid. */
cudaError_t qcul_capture_asked(const struct qcul_handle *event);
/* For an event that is recorded again, or is new in a slot that has been used before. */
void qcul_event_forget_capture(struct qcul_handle *event);

/* For calls that might wait for a captured stream implicitly, such as cudaMalloc. */
cudaError_t qcul_capture_unsafe(void);

#endif
