// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Calls of libraries in a graph. Only the library knows its kernels, so a stream of ours is
 * captured while it makes the call, straight into the graph. In this mode a capture disturbs no
 * other thread. There is one such stream for each device, and it stays: a library's handle may
 * still be set to it.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

/* be->capture_lock is held. */
static int get_capture_stream(struct be *be, unsigned int dev, cudaStream_t *s)
{
	struct cu_capture *c = &be->captures[dev];
	unsigned int life = atomic_load(&be->life[dev]);
	int ret = QCU_ERR_Success;

	if (!c->s || c->life != life) {
		ret = CU(be, cudaStreamCreateWithFlags, &c->s, cudaStreamNonBlocking);
		c->life = life;
	}
	if (ret)
		c->s = NULL;
	*s = c->s;
	return ret;
}

/* The nodes at the end of what has been captured. *last is the caller's. */
static int ends(struct be *be, cudaStream_t s, cudaGraphNode_t **last, size_t *count)
{
	enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
	const cudaGraphNode_t *nodes = NULL;
	int ret = CU(be, cudaStreamGetCaptureInfo, s, &status, NULL, NULL, &nodes, NULL, count);

	if (!ret && status != cudaStreamCaptureStatusActive)
		ret = QCU_ERR_StreamCaptureInvalidated;
	if (ret)
		return ret;
	*last = malloc((*count + 1) * sizeof(**last));
	if (!*last)
		return QCU_ERR_MemoryAllocation;
	if (*count)
		memcpy(*last, nodes, *count * sizeof(**last));
	return QCU_ERR_Success;
}

static int capture(struct be *be, cudaGraph_t graph, const struct be_node *n,
		   const cudaGraphNode_t *deps, cudaGraphNode_t **last, size_t *count)
{
	cudaGraph_t same;
	cudaStream_t s;
	int ret = get_capture_stream(be, n->dev, &s), err;

	if (!ret)
		ret = CU(be, cudaStreamBeginCaptureToGraph, s, graph, deps, NULL, n->dep_count,
			 cudaStreamCaptureModeRelaxed);
	if (ret)
		return ret;
	ret = n->call.fn(n->call.arg, s);
	if (!ret)
		ret = ends(be, s, last, count);
	err = CU(be, cudaStreamEndCapture, s, &same);
	return ret ? ret : err;
}

int cu_graph_call(struct be *be, cudaGraph_t graph, const struct be_node *n,
		  const cudaGraphNode_t *deps, cudaGraphNode_t *node)
{
	cudaGraphNode_t *last = NULL;
	size_t count = 0;
	int ret;

	pthread_mutex_lock(&be->capture_lock);
	ret = capture(be, graph, n, deps, &last, &count);
	pthread_mutex_unlock(&be->capture_lock);
	if (!ret && count == 1)
		*node = *last;
	else if (!ret)
		ret = CU(be, cudaGraphAddEmptyNode, node, graph, last, count);
	free(last);
	return ret;
}
