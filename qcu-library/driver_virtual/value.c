// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams that write numbers to memory, and wait for numbers there, also as nodes of graphs. */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/driver_virtual/value.h"
#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

static bool fill_write_record(struct qcu_stream_value *v, CUdeviceptr addr, uint64_t value,
			      unsigned int bytes, unsigned int flags)
{
	*v = (struct qcu_stream_value){
		.addr = addr,
		.value = value,
		.what = QCU_VALUE_WRITE,
		.bytes = (uint8_t)bytes,
		.flags = flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER ? QCU_VALUE_UNORDERED : 0,
	};
	return !(flags & ~(unsigned int)CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
}

static bool wait_record(struct qcu_stream_value *v, CUdeviceptr addr, uint64_t value,
			unsigned int bytes, unsigned int flags)
{
	unsigned int how = flags & ~(unsigned int)CU_STREAM_WAIT_VALUE_FLUSH;

	*v = (struct qcu_stream_value){
		.addr = addr,
		.value = value,
		.what = QCU_VALUE_WAIT,
		.bytes = (uint8_t)bytes,
		.flags = (uint16_t)(how | (how != flags ? QCU_VALUE_FLUSH : 0)),
	};
	return how <= CU_STREAM_WAIT_VALUE_NOR;
}
_Static_assert(CU_STREAM_WAIT_VALUE_GEQ == QCU_VALUE_GEQ &&
		       CU_STREAM_WAIT_VALUE_EQ == QCU_VALUE_EQ &&
		       CU_STREAM_WAIT_VALUE_AND == QCU_VALUE_AND &&
		       CU_STREAM_WAIT_VALUE_NOR == QCU_VALUE_NOR,
	       "comparisons");

cudaError_t qcul_stream_values(cudaStream_t stream, const struct qcu_stream_value *values,
			       unsigned int count)
{
	struct qCUcmd cmds[QCUL_VALUES];
	unsigned int i;
	uint32_t id;
	cudaError_t err = qcul_stream_id(stream, &id);

	if (err)
		return err;
	for (i = 0; i < count; i++) {
		cmds[i] = qcul_cmd(QCU_OP_STREAM_VALUE);
		cmds[i].device = qcul_device_ordinal(qcul_stream_device(id));
		cmds[i].stream_value = values[i];
		cmds[i].stream_value.stream = id;
	}
	err = qcul_post(cmds, count);
	if (!err)
		qcul_progress_moved();
	return err;
}

/* 0: it needs no record. Negative: it is not valid. */
static int record_of(const CUstreamBatchMemOpParams *p, struct qcu_stream_value *v)
{
	bool good = false;

	switch (p->operation) {
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		good = fill_write_record(v, p->writeValue.address, p->writeValue.value, 4,
					 p->writeValue.flags);
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		good = fill_write_record(v, p->writeValue.address, p->writeValue.value64, 8,
					 p->writeValue.flags);
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		good = wait_record(v, p->waitValue.address, p->waitValue.value, 4,
				   p->waitValue.flags);
		break;
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		good = wait_record(v, p->waitValue.address, p->waitValue.value64, 8,
				   p->waitValue.flags);
		break;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return p->flushRemoteWrites.flags ? -1 : 0; /* there is no remote writer */
	case CU_STREAM_MEM_OP_BARRIER:
		/* Work of one stream is in order, and its writes are visible, anyway. */
		return p->memoryBarrier.flags > CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? -1 : 0;
	default:
		return -1;
	}
	return good && v->addr && v->addr % v->bytes == 0 ? 1 : -1;
}

/* CUDA takes up to 256 operations at once. */
static cudaError_t check_memory_ops(unsigned int count, const CUstreamBatchMemOpParams *params)
{
	unsigned int i;

	if (count > 256 || (count && !params))
		return cudaErrorInvalidValue;
	for (i = 0; i < count; i++) {
		struct qcu_stream_value v;

		if (record_of(&params[i], &v) < 0)
			return cudaErrorInvalidValue;
	}
	return cudaSuccess;
}

/* None of them is queued if one is not valid. */
static cudaError_t queue_memory_ops(cudaStream_t stream, unsigned int count,
				    const CUstreamBatchMemOpParams *params)
{
	struct qcu_stream_value values[QCUL_VALUES];
	cudaError_t err = check_memory_ops(count, params);
	unsigned int i, n = 0;

	for (i = 0; i < count && !err; i++) {
		n += record_of(&params[i], &values[n]) > 0;
		if (n == QCUL_VALUES || (i + 1 == count && n)) {
			err = qcul_stream_values(stream, values, n);
			n = 0;
		}
	}
	return err;
}

/* ---- as nodes ---- */

struct node {
	struct qcul_captured_call call;
	CUDA_BATCH_MEM_OP_NODE_PARAMS params;
	CUstreamBatchMemOpParams list[];
};

static cudaError_t run_memory_op_node(struct qcul_captured_call *call, cudaStream_t stream)
{
	const struct node *n = (const struct node *)call;

	return queue_memory_ops(stream, n->params.count, n->list);
}

static void free_memory_op_node(struct qcul_captured_call *call)
{
	free(call);
}

/* The runtime's header has no names for this type. The driver API's structure lies in the same
 * place. */
static void describe_memory_op_node(const struct qcul_captured_call *call,
				    struct cudaGraphNodeParams *to)
{
	memcpy(to->reserved1, &((const struct node *)call)->params,
	       sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS));
}

/* Only addresses and numbers change, and how a wait compares. */
static bool can_become(const struct qcul_captured_call *call, const struct qcul_captured_call *now)
{
	const struct node *a = (const struct node *)call, *b = (const struct node *)now;
	unsigned int i;

	for (i = 0; i < a->params.count && a->params.count == b->params.count; i++) {
		if (a->list[i].operation != b->list[i].operation)
			return false;
	}
	return a->params.count == b->params.count;
}

#define BATCH ((enum cudaGraphNodeType)CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)

static cudaError_t make_memory_op_node(const CUDA_BATCH_MEM_OP_NODE_PARAMS *p,
				       struct qcul_captured_call **call)
{
	cudaError_t err = qcul_ready();
	struct node *n;

	*call = NULL;
	if (!err && (!p || !p->count || p->flags))
		err = cudaErrorInvalidValue;
	if (!err)
		err = check_memory_ops(p->count, p->paramArray);
	if (err)
		return err;
	n = malloc(sizeof(*n) + p->count * sizeof(n->list[0]));
	if (!n)
		return cudaErrorMemoryAllocation;
	*n = (struct node){
		.call = {.refs = 1,
			 .type = BATCH,
			 .run = run_memory_op_node,
			 .end = free_memory_op_node,
			 .params = describe_memory_op_node,
			 .can_become = can_become},
		.params = *p,
	};
	memcpy(n->list, p->paramArray, p->count * sizeof(n->list[0]));
	n->params.paramArray = n->list;
	*call = &n->call;
	return cudaSuccess;
}

static cudaError_t memory_op_node_of_params(const struct cudaGraphNodeParams *from,
					    struct qcul_captured_call **call)
{
	CUDA_BATCH_MEM_OP_NODE_PARAMS p;

	memcpy(&p, from->reserved1, sizeof(p));
	return make_memory_op_node(&p, call);
}
_Static_assert(offsetof(CUgraphNodeParams, memOp) ==
			       offsetof(struct cudaGraphNodeParams, reserved1) &&
		       sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2) ==
			       sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS),
	       "one layout");

__attribute__((constructor)) static void register_memory_op_nodes(void)
{
	qcul_node_calls(BATCH, memory_op_node_of_params);
}

CUresult cuGraphAddBatchMemOpNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps,
				  size_t count, const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct qcul_captured_call *call;
	cudaError_t err = make_memory_op_node(params, &call);

	return QCUL_RUNTIME(qcul_graph_add_call(err, call, node, graph, deps, count));
}

CUresult cuGraphBatchMemOpNodeGetParams(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	const struct node *n = (const struct node *)qcul_node_call(node, BATCH);

	if (!n || !params)
		return CUDA_ERROR_INVALID_VALUE;
	*params = n->params;
	return CUDA_SUCCESS;
}

CUresult cuGraphBatchMemOpNodeSetParams(CUgraphNode node,
					const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct qcul_captured_call *call;
	cudaError_t err = make_memory_op_node(params, &call);

	return QCUL_RUNTIME(qcul_graph_set_call(err, call, node));
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
					    const CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
	struct qcul_captured_call *call;
	cudaError_t err = make_memory_op_node(params, &call);

	return QCUL_RUNTIME(qcul_graph_exec_set_call(err, call, exec, node));
}

/* ---- in a stream ---- */

static cudaError_t submit_memory_ops(cudaStream_t stream, unsigned int count,
				     CUstreamBatchMemOpParams *params)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS node = {.count = count, .paramArray = params};
	struct qcul_captured_call *call;
	cudaError_t err = qcul_ready(), captured;

	if (err || !qcul_captured(stream, &captured))
		return err ? err : queue_memory_ops(stream, count, params);
	err = captured ? captured : make_memory_op_node(&node, &call);
	return err ? err : qcul_capture_call(stream, call);
}

/* A write or a wait: both have their fields in the same places. */
static cudaError_t one(cudaStream_t stream, CUstreamBatchMemOpType type, CUdeviceptr addr,
		       uint64_t value, unsigned int flags)
{
	CUstreamBatchMemOpParams p = {.writeValue = {
					      .operation = type,
					      .address = addr,
					      .value64 = value,
					      .flags = flags,
				      }};

	return submit_memory_ops(stream, 1, &p);
}
_Static_assert(offsetof(CUstreamBatchMemOpParams, writeValue.address) ==
			       offsetof(CUstreamBatchMemOpParams, waitValue.address) &&
		       offsetof(CUstreamBatchMemOpParams, writeValue.value64) ==
			       offsetof(CUstreamBatchMemOpParams, waitValue.value64) &&
		       offsetof(CUstreamBatchMemOpParams, writeValue.flags) ==
			       offsetof(CUstreamBatchMemOpParams, waitValue.flags),
	       "one layout");

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				 unsigned int flags)
{
	return QCUL_RUNTIME(one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags));
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
				 unsigned int flags)
{
	return QCUL_RUNTIME(one(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags));
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr addr, cuuint32_t value,
				unsigned int flags)
{
	return QCUL_RUNTIME(one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags));
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr addr, cuuint64_t value,
				unsigned int flags)
{
	return QCUL_RUNTIME(one(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags));
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
			       CUstreamBatchMemOpParams *params, unsigned int flags)
{
	if (count > 256 || (count && !params) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	return QCUL_RUNTIME(count ? submit_memory_ops(stream, count, params) : cudaSuccess);
}
