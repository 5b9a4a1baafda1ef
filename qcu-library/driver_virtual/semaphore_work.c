// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Signals and waits of external semaphores, in streams and as nodes of graphs.
 *
 * A timeline semaphore counts up: a signal writes a number, a wait is over when the number is at
 * least as large. An opaque one is 0 or 1: a signal writes 1, a wait is over when it is 1, and then
 * writes 0.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/driver_virtual/semaphore.h"
#include "qcu-library/driver_virtual/value.h"
#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

struct list {
	cudaExternalSemaphore_t *semaphores;
	union {
		const void *params;
		const struct cudaExternalSemaphoreSignalParams *signals;
		const struct cudaExternalSemaphoreWaitParams *waits;
	};
	unsigned int count;
	bool wait;
};

static size_t param_size(const struct list *l)
{
	return l->wait ? sizeof(l->waits[0]) : sizeof(l->signals[0]);
}

static struct qcu_stream_value make_value_record(uint64_t addr, uint64_t value, unsigned int what,
						 unsigned int flags)
{
	return (struct qcu_stream_value){
		.addr = addr,
		.value = value,
		.what = (uint8_t)what,
		.bytes = 8,
		.flags = (uint16_t)flags,
	};
}

/* The records of one semaphore. 0: it is none. */
static unsigned int records(struct qcu_stream_value *v, const struct list *l, unsigned int i)
{
	uint64_t addr,
		value = l->wait ? l->waits[i].params.fence.value : l->signals[i].params.fence.value;
	bool timeline;

	if (!qcul_semaphore_look(l->semaphores[i], &addr, &timeline))
		return 0;
	if (!l->wait) {
		v[0] = make_value_record(addr, timeline ? value : 1, QCU_VALUE_WRITE, 0);
		return 1;
	}
	v[0] = make_value_record(addr, timeline ? value : 1, QCU_VALUE_WAIT,
				 timeline ? QCU_VALUE_GEQ : QCU_VALUE_EQ);
	if (timeline)
		return 1;
	v[1] = make_value_record(addr, 0, QCU_VALUE_WRITE, 0);
	return 2;
}

static cudaError_t check_semaphore_list(const struct list *l)
{
	struct qcu_stream_value values[2];
	unsigned int i;

	if (!l->count || !l->semaphores || !l->params)
		return cudaErrorInvalidValue;
	for (i = 0; i < l->count; i++)
		if ((l->wait ? l->waits[i].flags : l->signals[i].flags) || !records(values, l, i))
			return cudaErrorInvalidValue;
	return cudaSuccess;
}

/* None of them is queued if one is not valid. */
static cudaError_t queue_semaphore_list(const struct list *l, cudaStream_t stream)
{
	struct qcu_stream_value values[QCUL_VALUES];
	unsigned int i, n = 0;
	cudaError_t err = check_semaphore_list(l);

	for (i = 0; i < l->count && !err; i++) {
		n += records(&values[n], l, i);
		if (n >= QCUL_VALUES - 1 || i + 1 == l->count) {
			err = qcul_stream_values(stream, values, n);
			n = 0;
		}
	}
	return err;
}

/* ---- as nodes ---- */

struct node {
	struct qcul_captured_call call;
	struct list list; /* behind this structure */
};

static cudaError_t run_semaphore_node(struct qcul_captured_call *call, cudaStream_t stream)
{
	return queue_semaphore_list(&((struct node *)call)->list, stream);
}

static void free_semaphore_node(struct qcul_captured_call *call)
{
	free(call);
}

static void describe_semaphore_node(const struct qcul_captured_call *call,
				    struct cudaGraphNodeParams *to)
{
	const struct list *l = &((const struct node *)call)->list;

	to->extSemSignal.extSemArray = l->semaphores;
	to->extSemSignal.paramsArray = l->signals;
	to->extSemSignal.numExtSems = l->count;
}
_Static_assert(offsetof(struct cudaExternalSemaphoreSignalNodeParamsV2, paramsArray) ==
			       offsetof(struct cudaExternalSemaphoreWaitNodeParamsV2,
					paramsArray) &&
		       sizeof(struct cudaExternalSemaphoreSignalNodeParamsV2) ==
			       sizeof(struct cudaExternalSemaphoreWaitNodeParamsV2) &&
		       sizeof(struct cudaExternalSemaphoreSignalNodeParams) ==
			       sizeof(struct cudaExternalSemaphoreWaitNodeParams),
	       "one layout of both types");

static cudaError_t make_semaphore_node(const struct list *l, struct qcul_captured_call **call)
{
	size_t size = param_size(l);
	cudaError_t err = qcul_ready();
	struct node *n;
	char *params;

	if (!err)
		err = check_semaphore_list(l);
	if (err)
		return err;
	n = malloc(sizeof(*n) + l->count * (size + sizeof(l->semaphores[0])));
	if (!n)
		return cudaErrorMemoryAllocation;
	*n = (struct node){
		.call = {.refs = 1,
			 .run = run_semaphore_node,
			 .end = free_semaphore_node,
			 .params = describe_semaphore_node},
		.list = *l,
	};
	n->call.type =
		l->wait ? cudaGraphNodeTypeExtSemaphoreWait : cudaGraphNodeTypeExtSemaphoreSignal;
	params = (char *)(n + 1);
	memcpy(params, l->params, l->count * size);
	n->list.params = params;
	n->list.semaphores = (cudaExternalSemaphore_t *)(params + l->count * size);
	memcpy(n->list.semaphores, l->semaphores, l->count * sizeof(l->semaphores[0]));
	*call = &n->call;
	return cudaSuccess;
}

static cudaError_t semaphore_node_of_params(const struct cudaGraphNodeParams *from,
					    struct qcul_captured_call **call)
{
	const struct list list = {
		.semaphores = from->extSemSignal.extSemArray,
		.params = from->extSemSignal.paramsArray,
		.count = from->extSemSignal.numExtSems,
		.wait = from->type == cudaGraphNodeTypeExtSemaphoreWait,
	};

	return make_semaphore_node(&list, call);
}

__attribute__((constructor)) static void register_semaphore_nodes(void)
{
	qcul_node_calls(cudaGraphNodeTypeExtSemaphoreSignal, semaphore_node_of_params);
	qcul_node_calls(cudaGraphNodeTypeExtSemaphoreWait, semaphore_node_of_params);
}

/* ---- in a stream ---- */

static cudaError_t submit_semaphore_list(const cudaExternalSemaphore_t *semaphores,
					 const void *params, unsigned int count, bool wait,
					 cudaStream_t stream)
{
	const struct list list = {
		.semaphores = (cudaExternalSemaphore_t *)(uintptr_t)semaphores,
		.params = params,
		.count = count,
		.wait = wait,
	};
	struct qcul_captured_call *call;
	cudaError_t err = qcul_ready(), captured;

	if (err || !qcul_captured(stream, &captured))
		return err ? err : queue_semaphore_list(&list, stream);
	err = captured ? captured : make_semaphore_node(&list, &call);
	return err ? err : qcul_capture_call(stream, call);
}

/* ---- the runtime's functions ---- */

cudaError_t
cudaSignalExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
				  const struct cudaExternalSemaphoreSignalParams *params,
				  unsigned int count, cudaStream_t stream)
{
	return qcul_done(submit_semaphore_list(semaphores, params, count, false, stream));
}

cudaError_t cudaWaitExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
					    const struct cudaExternalSemaphoreWaitParams *params,
					    unsigned int count, cudaStream_t stream)
{
	return qcul_done(submit_semaphore_list(semaphores, params, count, true, stream));
}

cudaError_t
cudaSignalExternalSemaphoresAsync_ptsz(const cudaExternalSemaphore_t *semaphores,
				       const struct cudaExternalSemaphoreSignalParams *params,
				       unsigned int count, cudaStream_t stream)
{
	return cudaSignalExternalSemaphoresAsync(semaphores, params, count,
						 qcul_stream_or_own(stream));
}

cudaError_t
cudaWaitExternalSemaphoresAsync_ptsz(const cudaExternalSemaphore_t *semaphores,
				     const struct cudaExternalSemaphoreWaitParams *params,
				     unsigned int count, cudaStream_t stream)
{
	return cudaWaitExternalSemaphoresAsync(semaphores, params, count,
					       qcul_stream_or_own(stream));
}

/* Defines the four functions of the runtime for one type of node. */
#define NODES(name, node_type, params_type)                                                      \
	static cudaError_t make_##name(const struct params_type *p,                              \
				       struct qcul_captured_call **call)                         \
	{                                                                                        \
		struct cudaGraphNodeParams any = {.type = node_type};                            \
                                                                                                 \
		*call = NULL;                                                                    \
		if (!p)                                                                          \
			return cudaErrorInvalidValue;                                            \
		memcpy(&any.extSemSignal, p, sizeof(*p));                                        \
		return semaphore_node_of_params(&any, call);                                     \
	}                                                                                        \
	cudaError_t cudaGraphAddExternalSemaphores##name##Node(                                  \
		cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps,           \
		size_t count, const struct params_type *params)                                  \
	{                                                                                        \
		struct qcul_captured_call *call;                                                 \
		cudaError_t err = make_##name(params, &call);                                    \
                                                                                                 \
		return qcul_graph_add_call(err, call, node, graph, deps, count);                 \
	}                                                                                        \
	cudaError_t cudaGraphExternalSemaphores##name##NodeGetParams(cudaGraphNode_t node,       \
								     struct params_type *params) \
	{                                                                                        \
		const struct qcul_captured_call *call = qcul_node_call(node, node_type);         \
		struct cudaGraphNodeParams any;                                                  \
                                                                                                 \
		if (!call || !params)                                                            \
			return qcul_done(cudaErrorInvalidValue);                                 \
		describe_semaphore_node(call, &any);                                             \
		memcpy(params, &any.extSemSignal, sizeof(*params));                              \
		return cudaSuccess;                                                              \
	}                                                                                        \
	cudaError_t cudaGraphExternalSemaphores##name##NodeSetParams(                            \
		cudaGraphNode_t node, const struct params_type *params)                          \
	{                                                                                        \
		struct qcul_captured_call *call;                                                 \
		cudaError_t err = make_##name(params, &call);                                    \
                                                                                                 \
		return qcul_graph_set_call(err, call, node);                                     \
	}                                                                                        \
	cudaError_t cudaGraphExecExternalSemaphores##name##NodeSetParams(                        \
		cudaGraphExec_t exec, cudaGraphNode_t node, const struct params_type *params)    \
	{                                                                                        \
		struct qcul_captured_call *call;                                                 \
		cudaError_t err = make_##name(params, &call);                                    \
                                                                                                 \
		return qcul_graph_exec_set_call(err, call, exec, node);                          \
	}

NODES(Signal, cudaGraphNodeTypeExtSemaphoreSignal, cudaExternalSemaphoreSignalNodeParams)
NODES(Wait, cudaGraphNodeTypeExtSemaphoreWait, cudaExternalSemaphoreWaitNodeParams)

/* ---- the driver API's, with the same structures ---- */

_Static_assert(sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS) ==
			       sizeof(struct cudaExternalSemaphoreSignalParams) &&
		       sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS) ==
			       sizeof(struct cudaExternalSemaphoreWaitParams),
	       "one layout");

CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
					 const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
					 unsigned int count, CUstream stream)
{
	return QCUL_RUNTIME(submit_semaphore_list((const cudaExternalSemaphore_t *)semaphores,
						  params, count, false, stream));
}

CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
				       const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
				       unsigned int count, CUstream stream)
{
	return QCUL_RUNTIME(submit_semaphore_list((const cudaExternalSemaphore_t *)semaphores,
						  params, count, true, stream));
}
