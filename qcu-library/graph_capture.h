/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Stream capture: calls on a stream that is being captured become nodes of a graph instead of being
 * sent. Each call that puts something into a stream asks qcul_captured() first; as long as nobody
 * captures anything that is one load.
 */
#ifndef QCUL_GRAPH_CAPTURE_H
#define QCUL_GRAPH_CAPTURE_H

#include "qcu-library/graph.h"

extern atomic_uint qcul_captures; /* how many go on */

bool qcul_captured_slow(cudaStream_t stream, cudaError_t *err);

/*
 * Is the call not for the GPU? True with an error: the call may not be made while something is
 * being captured. True without one: it belongs into a graph, by one of the functions below.
 */
static inline bool qcul_captured(cudaStream_t stream, cudaError_t *err)
{
	return atomic_load_explicit(&qcul_captures, memory_order_relaxed) &&
	       qcul_captured_slow(stream, err);
}

/* Takes p over. */
cudaError_t qcul_capture_node(cudaStream_t stream, struct qcul_node_params *p);
cudaError_t qcul_capture_record(cudaStream_t stream, struct qcul_handle *event);
/* What may not be done with such a stream: the capture is spoiled. */
cudaError_t qcul_capture_refuse(cudaStream_t stream);

/* For a wait of `stream`: has the event been recorded in a capture? Then this is all of it. */
bool qcul_capture_wait(cudaStream_t stream, struct qcul_handle *event, cudaError_t *err);
/* An event that was recorded in a capture tells nothing, and asking it spoils the capture. */
cudaError_t qcul_capture_asked(const struct qcul_handle *event);
/* It is recorded anew, or destroyed. */
void qcul_event_forget_capture(struct qcul_handle *event);

/* For calls that might wait for a captured stream in ways that nobody sees, cudaMalloc for one. */
cudaError_t qcul_capture_unsafe(void);

#endif
