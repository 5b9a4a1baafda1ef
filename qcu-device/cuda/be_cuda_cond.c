// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Conditional nodes of the cuda backend: each that is in no other is a graph of CUDA's with this
 * one node, launched where the node stands in its stream. Bodies are captured from streams. A
 * handle's value stays what it is between launches, so that kernels which have run before, in the
 * same stream, set what the node finds; nothing is applied by CUDA when the graph starts.
 */
#include <stdlib.h>

#include "qcu-device/cuda/be_cuda.h"

struct be_cond {
	struct be_cond *within;
	unsigned int dev;
	unsigned int life;
	cudaGraph_t graph; /* of one that is in no other; the rest belongs to such a one */
	cudaGraphExec_t exec;
	cudaGraphConditionalHandle handle;
	cudaGraph_t *bodies; /* CUDA's; NULL: there is no node */
	uint32_t size;
	int failed; /* a body could not be captured */
};

/* Only device code can set a value. The driver makes code of this for the GPU that it meets. */
static const char set_ptx[] =
	".version 8.3\n"
	".target sm_75\n"
	".address_size 64\n"
	".extern .func cudaGraphSetConditional\n"
	"(.param .b64 handle, .param .b32 value);\n"
	".visible .entry qcu_cond_set(.param .u64 handle, .param .u32 value)\n"
	"{\n"
	".reg .b64 %h;\n"
	".reg .b32 %v;\n"
	"ld.param.u64 %h, [handle];\n"
	"ld.param.u32 %v, [value];\n"
	"{\n"
	".param .b64 a;\n"
	"st.param.b64 [a], %h;\n"
	".param .b32 b;\n"
	"st.param.b32 [b], %v;\n"
	"call.uni cudaGraphSetConditional, (a, b);\n"
	"}\n"
	"ret;\n"
	"}\n";

static struct be_cond *outermost(struct be_cond *c)
{
	while (c->within)
		c = c->within;
	return c;
}

static int cond_use(struct be *be, const struct be_cond *c)
{
	if (c->life != atomic_load(&be->life[c->dev]))
		return QCU_ERR_ContextIsDestroyed;
	return cu_use(be, c->dev);
}

int cu_cond_create(struct be *be, unsigned int dev, struct be_cond *within, struct be_cond **out,
		   uint64_t *handle)
{
	struct be_cond *c;
	int ret = within ? cond_use(be, within) : cu_use(be, dev);

	if (ret)
		return ret;
	c = calloc(1, sizeof(*c));
	if (!c)
		return QCU_ERR_MemoryAllocation;
	c->within = within;
	c->dev = dev;
	c->life = atomic_load(&be->life[dev]);
	if (!within)
		ret = CU(be, cudaGraphCreate, &c->graph, 0);
	if (!ret)
		ret = CU(be, cudaGraphConditionalHandleCreate, &c->handle, outermost(c)->graph, 0,
			 0);
	if (ret) {
		if (c->graph)
			CU(be, cudaGraphDestroy, c->graph);
		free(c);
		return ret;
	}
	*out = c;
	*handle = c->handle;
	return QCU_ERR_Success;
}

/* Behind what the stream has captured so far. */
static int add_captured(struct be *be, cudaStream_t s, struct cudaGraphNodeParams *params)
{
	enum cudaStreamCaptureStatus status;
	const cudaGraphEdgeData *edges;
	const cudaGraphNode_t *deps;
	cudaGraphNode_t node;
	cudaGraph_t graph;
	size_t count;
	int ret = CU(be, cudaStreamGetCaptureInfo, s, &status, NULL, &graph, &deps, &edges, &count);

	if (!ret && status != cudaStreamCaptureStatusActive)
		ret = QCU_ERR_StreamCaptureInvalidated;
	if (!ret)
		ret = CU(be, cudaGraphAddNode, &node, graph, deps, edges, count, params);
	if (!ret)
		ret = CU(be, cudaStreamUpdateCaptureDependencies, s, &node, NULL, 1,
			 cudaStreamSetCaptureDependencies);
	return ret;
}

int cu_cond_node(struct be *be, struct be_cond *c, uint32_t type, uint32_t size,
		 struct be_stream *s)
{
	struct cudaGraphNodeParams params = {
		.type = cudaGraphNodeTypeConditional,
		.conditional =
			{
				.handle = c->handle,
				.type = (enum cudaGraphConditionalNodeType)type,
				.size = size,
			},
	};
	cudaGraphNode_t node;
	int ret = cond_use(be, c);

	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	if (c->bodies)
		ret = QCU_ERR_InvalidValue;
	else if (s)
		ret = add_captured(be, s->s, &params);
	else
		ret = CU(be, cudaGraphAddNode, &node, c->graph, NULL, NULL, 0, &params);
	if (!ret) {
		c->bodies = params.conditional.phGraph_out;
		c->size = size;
	}
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

/* There is one instance of a graph with such nodes at a time, and none while it is changed. */
static int drop_instance(struct be *be, struct be_cond *c)
{
	cudaGraphExec_t exec = c->exec;

	c->exec = NULL;
	return exec ? CU(be, cudaGraphExecDestroy, exec) : QCU_ERR_Success;
}

static int empty(struct be *be, cudaGraph_t body)
{
	cudaGraphNode_t *nodes;
	size_t count = 0, i;
	int ret = CU(be, cudaGraphGetNodes, body, NULL, &count);

	if (ret || !count)
		return ret;
	nodes = calloc(count, sizeof(*nodes));
	if (!nodes)
		return QCU_ERR_MemoryAllocation;
	ret = CU(be, cudaGraphGetNodes, body, nodes, &count);
	for (i = 0; i < count && !ret; i++)
		ret = CU(be, cudaGraphDestroyNode, nodes[i]);
	free(nodes);
	return ret;
}

static int begin_body(struct be *be, struct be_cond *c, uint32_t body, struct be_stream *s)
{
	int ret = drop_instance(be, outermost(c));

	if (!ret)
		ret = empty(be, c->bodies[body]);
	if (!ret)
		ret = CU(be, cudaStreamBeginCaptureToGraph, s->s, c->bodies[body], NULL, NULL, 0,
			 cudaStreamCaptureModeRelaxed);
	if (!ret) {
		s->body_of = c;
		outermost(c)->failed = QCU_ERR_Success;
	}
	return ret;
}

int cu_cond_record(struct be *be, struct be_cond *c, uint32_t body, struct be_stream **s)
{
	int ret = cond_use(be, c);

	*s = NULL;
	if (!ret)
		ret = cu_stream_create(be, c->dev, cudaStreamNonBlocking, 0, s);
	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	ret = c->bodies && body < c->size ? begin_body(be, c, body, *s) : QCU_ERR_InvalidValue;
	pthread_mutex_unlock(&be->cond_lock);
	if (ret) {
		cu_stream_destroy(be, *s);
		*s = NULL;
	}
	return ret;
}

void cu_body_end(struct be *be, struct be_stream *s)
{
	cudaGraph_t graph;
	int ret;

	pthread_mutex_lock(&be->cond_lock);
	ret = CU(be, cudaStreamEndCapture, s->s, &graph);
	if (ret)
		outermost(s->body_of)->failed = ret;
	pthread_mutex_unlock(&be->cond_lock);
}

/* What is within another one becomes ready with that. */
int cu_cond_ready(struct be *be, struct be_cond *c)
{
	int ret = cond_use(be, c);

	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	if (c->within || !c->bodies)
		ret = QCU_ERR_InvalidValue;
	if (!ret)
		ret = c->failed;
	if (!ret)
		ret = drop_instance(be, c);
	if (!ret)
		ret = CU(be, cudaGraphInstantiate, &c->exec, c->graph, 0);
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

/* Under the lock. */
static int need_set_kernel(struct be *be)
{
	int ret;

	if (be->cond_set)
		return QCU_ERR_Success;
	ret = CU(be, cudaLibraryLoadData, &be->cond_lib, set_ptx, NULL, NULL, 0, NULL, NULL, 0);
	if (ret)
		return ret;
	ret = CU(be, cudaLibraryGetKernel, &be->cond_set, be->cond_lib, "qcu_cond_set");
	if (ret) {
		CU(be, cudaLibraryUnload, be->cond_lib);
		be->cond_lib = NULL;
		be->cond_set = NULL;
	}
	return ret;
}

int cu_cond_set(struct be *be, struct be_cond *c, uint32_t value, struct be_stream *s)
{
	void *args[] = {&c->handle, &value};
	int ret = cond_use(be, c);

	if (!ret)
		ret = cu_stream_use(be, s);
	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	ret = need_set_kernel(be);
	pthread_mutex_unlock(&be->cond_lock);
	return ret ? ret
		   : CU(be, cudaLaunchKernel, be->cond_set, (dim3){1, 1, 1}, (dim3){1, 1, 1}, args,
			0, s->s);
}

int cu_cond_run(struct be *be, struct be_cond *c, struct be_stream *s)
{
	int ret = cond_use(be, c);

	if (!ret)
		ret = cu_stream_use(be, s);
	if (ret)
		return ret;
	pthread_mutex_lock(&be->cond_lock);
	ret = c->exec ? CU(be, cudaGraphLaunch, c->exec, s->s) : QCU_ERR_InvalidValue;
	pthread_mutex_unlock(&be->cond_lock);
	return ret;
}

int cu_cond_destroy(struct be *be, struct be_cond *c)
{
	int ret = cond_use(be, c);

	if (!ret)
		ret = drop_instance(be, c);
	if (!ret && c->graph)
		ret = CU(be, cudaGraphDestroy, c->graph);
	free(c);
	return ret;
}

void cu_cond_close(struct be *be)
{
	if (be->cond_lib)
		CU(be, cudaLibraryUnload, be->cond_lib);
	pthread_mutex_destroy(&be->cond_lock);
}
