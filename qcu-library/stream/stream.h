/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Work in streams: is it done? */
#ifndef QCUL_STREAM_H
#define QCUL_STREAM_H

#include "qcu-library/module/module.h"

/* For the functions in which stream 0 is the thread's own. */
static inline cudaStream_t qcul_stream_or_own(cudaStream_t stream)
{
	return stream ? stream : cudaStreamPerThread;
}

cudaError_t qcul_stream_wait(uint32_t stream);
cudaError_t qcul_query_event(uint32_t event);
cudaError_t qcul_query_stream(uint32_t stream);

struct qcul_green;
/* stream.c: a stream of the thread's device, or of a green context of it. */
cudaError_t qcul_stream_make(cudaStream_t *stream, unsigned int flags, int priority,
			     struct qcul_green *green);

/* launch.c: checks a launch on the thread's device as a launch does, and describes it. */
cudaError_t qcul_launch_describe(struct CUkern_st *kernel, const cudaLaunchConfig_t *config,
				 void **args, struct qcu_launch_msg *msg);

/* event.c: from now on the mirror knows the event. */
cudaError_t qcul_event_need(uint32_t event);

/* ---- hostfunc.c: functions in graphs ---- */

/* A function that a graph of the mirror runs. The caller holds it, and so does each expected run.
 */
struct qcul_host_call;
cudaError_t qcul_graph_host_new(cudaHostFn_t fn, void *data, struct qcul_host_call **call);
void qcul_graph_host_put(struct qcul_host_call *call); /* may be NULL */
/* A run will come; call qcul_graph_host_sent() when the mirror has the launch. */
void qcul_graph_host_expect(struct qcul_host_call *call);
void qcul_graph_host_sent(void);

#endif
