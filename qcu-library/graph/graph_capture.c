// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Stream capture. A capture is a growing graph and, for each captured stream, the nodes that the
 * next node will depend on. A capture begins with one stream and takes in other streams that wait
 * for one of its events. When the capture ends, the first stream must have waited for all the
 * others.
 */
#include "qcu-library/link/fork.h"
#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

#include <stdlib.h>
#include <string.h>

struct capture;

struct nodes {
	struct CUgraphNode_st **v;
	size_t count;
};

struct captured_stream {
	cudaStream_t stream;
	uint32_t tid; /* for a per-thread stream: its thread */
	struct capture *capture;
	struct nodes tail;
	bool gone; /* the program has destroyed the stream, but its nodes must still be joined */
	struct captured_stream *next;
};

struct capture {
	unsigned long long id;
	enum cudaStreamCaptureMode mode;
	uint32_t tid;
	struct CUgraph_st *graph;
	bool given;    /* the graph belongs to the program */
	bool spoiled;  /* the capture is invalid */
	bool blocking; /* the legacy stream would wait for the captured stream */
	struct captured_stream *origin;
};

/* An event that was recorded in a capture stands for these nodes. */
struct qcul_captured_event {
	unsigned long long id;
	struct nodes nodes;
};

static struct {
	struct captured_stream *streams;
} session;
static struct {
	unsigned long long last_id;
} process;

static void free_captures(void);
QCUL_AT_FORK(QCUL_FORK_CAPTURES, .forget = free_captures, QCUL_SESSION)

/* ---- sets of nodes ---- */

static bool has(const struct nodes *set, const struct CUgraphNode_st *n)
{
	size_t i;

	for (i = 0; i < set->count; i++)
		if (set->v[i] == n)
			return true;
	return false;
}

static bool add_to_node_set(struct nodes *set, struct CUgraphNode_st *const *v, size_t count)
{
	struct CUgraphNode_st **more;
	size_t i;

	more = realloc(set->v, (set->count + count + 1) * sizeof(*more));
	if (!more)
		return false;
	set->v = more;
	for (i = 0; i < count; i++)
		if (!has(set, v[i]))
			set->v[set->count++] = v[i];
	return true;
}

/* ---- under the lock ---- */

static struct captured_stream *find_captured_stream(cudaStream_t stream)
{
	struct captured_stream *s = session.streams;

	while (s && (s->gone || s->stream != stream ||
		     (stream == cudaStreamPerThread && s->tid != qcul_tid())))
		s = s->next;
	return s;
}

static struct captured_stream *new_stream(struct capture *c, cudaStream_t stream)
{
	struct captured_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->stream = stream;
	s->tid = qcul_tid();
	s->capture = c;
	s->next = session.streams;
	session.streams = s;
	return s;
}

static void free_capture(struct capture *c)
{
	struct captured_stream **at = &session.streams, *s;

	while ((s = *at)) {
		if (s->capture != c) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		free(s->tail.v);
		free(s);
	}
	free(c);
	atomic_fetch_sub(&qcul_captures, 1);
}

/* The child does not have the streams of its parent. */
static void free_captures(void)
{
	while (session.streams) {
		struct CUgraph_st *made =
			session.streams->capture->given ? NULL : session.streams->capture->graph;

		free_capture(session.streams->capture);
		qcul_graph_free(made);
	}
}

/* The capture with this number, if it is still in progress. */
static struct capture *capture_with(unsigned long long id)
{
	struct captured_stream *s;

	for (s = session.streams; s; s = s->next)
		if (s->capture->id == id)
			return s->capture;
	return NULL;
}

/* ---- checks for other calls ---- */

static bool captured(cudaStream_t stream, cudaError_t *err)
{
	bool legacy = !stream || stream == cudaStreamLegacy;
	struct captured_stream *s;
	bool ends_here = false;

	*err = cudaSuccess;
	pthread_mutex_lock(&at_fork.lock);
	if (!legacy) {
		s = find_captured_stream(stream);
		ends_here = s;
		if (s && s->capture->spoiled)
			*err = cudaErrorStreamCaptureInvalidated;
	} else {
		/* The legacy stream would wait for all blocking streams. But a captured stream has
		 * no work that it could wait for. */
		for (s = session.streams; s; s = s->next) {
			struct capture *c = s->capture;

			if (!c->blocking || c->mode == cudaStreamCaptureModeRelaxed ||
			    (c->mode == cudaStreamCaptureModeThreadLocal && c->tid != qcul_tid()))
				continue;
			c->spoiled = true;
			*err = cudaErrorStreamCaptureImplicit;
			ends_here = true;
		}
	}
	pthread_mutex_unlock(&at_fork.lock);
	return ends_here;
}

/* Takes ownership of p. */
static cudaError_t add_captured_node(cudaStream_t stream, struct qcul_node_params *p)
{
	struct captured_stream *s;
	struct CUgraphNode_st *n = NULL;
	cudaError_t err = cudaErrorStreamCaptureInvalidated;

	pthread_mutex_lock(&at_fork.lock);
	s = find_captured_stream(stream);
	if (s) {
		err = qcul_graph_add(s->capture->graph, s->tail.v, NULL, s->tail.count, p, &n);
		if (!err) {
			s->tail.count = 0;
			if (!add_to_node_set(&s->tail, &n, 1))
				err = cudaErrorMemoryAllocation;
		}
		if (err)
			s->capture->spoiled = true;
	}
	pthread_mutex_unlock(&at_fork.lock);
	/* Releasing memory takes locks that come before this one. */
	if (!n)
		qcul_node_release(p);
	return err;
}

static cudaError_t node(cudaStream_t stream, const struct cudaGraphNodeParams *params)
{
	struct qcul_node_params p;
	cudaError_t err = qcul_node_any(&p, params);

	return err ? err : add_captured_node(stream, &p);
}

static cudaError_t capture_kernel_launch(cudaStream_t stream, const struct qcul_captured_launch *l)
{
	struct qcul_node_params p;
	cudaError_t err = qcul_node_captured_kernel(&p, l->kernel, &l->params);
	unsigned int i;

	if (err)
		return err;
	for (i = 0; i < l->attr_count && !err; i++)
		err = qcul_node_attr_set(&p.kernel, l->attrs[i].id, &l->attrs[i].val);
	if (err) {
		qcul_node_release(&p);
		return err;
	}
	return add_captured_node(stream, &p);
}

static cudaError_t call(cudaStream_t stream, struct qcul_captured_call *c)
{
	struct qcul_node_params p = {.type = (enum cudaGraphNodeType)QCUL_NODE_CALL, .call = c};

	return add_captured_node(stream, &p);
}

static cudaError_t capture_memory_alloc(cudaStream_t stream, struct cudaMemAllocNodeParams *params)
{
	struct qcul_graph_memory *root = NULL;
	struct captured_stream *s;
	struct qcul_node_params p;
	cudaError_t err;
	void *at;

	pthread_mutex_lock(&at_fork.lock);
	s = find_captured_stream(stream);
	if (s)
		root = qcul_node_memory_take_over(s->capture->graph, s->tail.v, s->tail.count,
						  params);
	pthread_mutex_unlock(&at_fork.lock);
	err = qcul_node_memory(&p, params, root);
	if (err == cudaErrorMemoryAllocation) {
		pthread_mutex_lock(&at_fork.lock);
		s = find_captured_stream(stream);
		root = s ? qcul_node_memory_of_others(s->capture->graph, params) : NULL;
		pthread_mutex_unlock(&at_fork.lock);
		if (root)
			err = qcul_node_memory(&p, params, root);
	}
	if (err)
		return err;
	at = qcul_node_memory_ptr(&p);
	err = add_captured_node(stream, &p);
	if (!err)
		params->dptr = at;
	return err;
}

static cudaError_t refuse_to_capture(cudaStream_t stream)
{
	struct captured_stream *s;

	pthread_mutex_lock(&at_fork.lock);
	s = find_captured_stream(stream);
	if (s)
		s->capture->spoiled = true;
	pthread_mutex_unlock(&at_fork.lock);
	return cudaErrorStreamCaptureUnsupported;
}

static bool leave(cudaStream_t stream)
{
	struct captured_stream *s;

	pthread_mutex_lock(&at_fork.lock);
	s = find_captured_stream(stream);
	if (s)
		s->gone = s != s->capture->origin;
	pthread_mutex_unlock(&at_fork.lock);
	return !s || s->gone;
}

static cudaError_t unsafe(void)
{
	cudaError_t err = cudaSuccess;
	struct captured_stream *s;

	if (qcul_self.capture_mode == cudaStreamCaptureModeRelaxed)
		return cudaSuccess;
	pthread_mutex_lock(&at_fork.lock);
	for (s = session.streams; s; s = s->next) {
		struct capture *c = s->capture;
		bool mine = c->tid == qcul_tid() && c->mode != cudaStreamCaptureModeRelaxed;
		bool global = c->mode == cudaStreamCaptureModeGlobal &&
			      qcul_self.capture_mode == cudaStreamCaptureModeGlobal;

		if (mine || global) {
			c->spoiled = true;
			err = cudaErrorStreamCaptureUnsupported;
		}
	}
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

/* ---- events ---- */

static void forget_captured_event(struct qcul_handle *event)
{
	struct qcul_captured_event *e = event->capture;

	event->capture = NULL;
	free(e->nodes.v);
	free(e);
}

static cudaError_t asked(const struct qcul_handle *event)
{
	struct capture *c;

	pthread_mutex_lock(&at_fork.lock);
	c = capture_with(event->capture->id);
	if (c)
		c->spoiled = true;
	pthread_mutex_unlock(&at_fork.lock);
	return cudaErrorCapturedEvent;
}

static cudaError_t record_captured_event(cudaStream_t stream, struct qcul_handle *event)
{
	struct qcul_captured_event *e = calloc(1, sizeof(*e));
	struct captured_stream *s;
	cudaError_t err = cudaErrorMemoryAllocation;

	qcul_event_forget_capture(event);
	pthread_mutex_lock(&at_fork.lock);
	s = find_captured_stream(stream);
	if (s && e && add_to_node_set(&e->nodes, s->tail.v, s->tail.count)) {
		e->id = s->capture->id;
		event->capture = e;
		e = NULL;
		err = cudaSuccess;
	}
	pthread_mutex_unlock(&at_fork.lock);
	free(e);
	return err;
}

static bool wait_captured_event(cudaStream_t stream, struct qcul_handle *event, cudaError_t *err)
{
	struct qcul_captured_event *e = event->capture;
	struct captured_stream *s;
	struct capture *c;
	bool ends_here = true;

	*err = cudaSuccess;
	pthread_mutex_lock(&at_fork.lock);
	s = find_captured_stream(stream);
	c = e ? capture_with(e->id) : NULL;
	if (!c && !e) {
		/* The event was recorded outside the capture. */
		ends_here = s;
		if (s) {
			s->capture->spoiled = true;
			*err = cudaErrorStreamCaptureIsolation;
		}
	} else if (!c) {
		*err = cudaErrorCapturedEvent;
	} else if (s && s->capture != c) {
		s->capture->spoiled = c->spoiled = true;
		*err = cudaErrorStreamCaptureMerge;
	} else if (!stream || stream == cudaStreamLegacy) {
		c->spoiled = true;
		*err = cudaErrorStreamCaptureImplicit;
	} else {
		if (!s)
			s = new_stream(c, stream);
		if (!s || !add_to_node_set(&s->tail, e->nodes.v, e->nodes.count)) {
			c->spoiled = true;
			*err = cudaErrorMemoryAllocation;
		}
	}
	pthread_mutex_unlock(&at_fork.lock);
	return ends_here;
}

static const struct qcul_recorder recorder = {
	.captured = captured,
	.node = node,
	.launch = capture_kernel_launch,
	.alloc = capture_memory_alloc,
	.call = call,
	.refuse = refuse_to_capture,
	.leave = leave,
	.unsafe = unsafe,
	.record = record_captured_event,
	.wait = wait_captured_event,
	.asked = asked,
	.forget = forget_captured_event,
	.owns = qcul_memory_of_graphs,
	.free = qcul_memory_of_graphs_free,
	.free_async = qcul_memory_of_graphs_free_async,
};

__attribute__((constructor)) static void set_capture_recorder(void)
{
	qcul_recorder = &recorder;
}

/* ---- beginning ---- */

static cudaError_t begin_stream_capture(cudaStream_t stream, struct CUgraph_st *graph,
					const cudaGraphNode_t *deps, size_t dep_count,
					enum cudaStreamCaptureMode mode)
{
	struct capture *c;
	cudaError_t err;
	uint32_t id;
	size_t i;

	if ((unsigned int)mode > cudaStreamCaptureModeRelaxed)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (!err)
		err = qcul_stream_id(stream, &id);
	if (err)
		return err;
	if (id == QCU_STREAM_LEGACY)
		return cudaErrorStreamCaptureUnsupported;
	for (i = 0; i < dep_count; i++)
		if (!deps || !qcul_node_valid(deps[i]) || deps[i]->graph != graph)
			return cudaErrorInvalidValue;
	c = calloc(1, sizeof(*c));
	if (!c)
		return cudaErrorMemoryAllocation;
	c->mode = mode;
	c->tid = qcul_tid();
	c->blocking = id < QCU_ID_FIRST || !(qcul_streams.slots[id].flags & cudaStreamNonBlocking);
	c->given = graph;
	c->graph = graph ? graph : qcul_graph_new();
	err = c->graph ? cudaSuccess : cudaErrorMemoryAllocation;
	pthread_mutex_lock(&at_fork.lock);
	if (!err && find_captured_stream(stream))
		err = cudaErrorIllegalState;
	if (!err) {
		c->id = ++process.last_id;
		c->origin = new_stream(c, stream);
		atomic_fetch_add(&qcul_captures, 1);
		if (!c->origin || !add_to_node_set(&c->origin->tail, deps, dep_count)) {
			struct CUgraph_st *g = c->given ? NULL : c->graph;

			free_capture(c);
			pthread_mutex_unlock(&at_fork.lock);
			qcul_graph_free(g);
			return cudaErrorMemoryAllocation;
		}
	}
	pthread_mutex_unlock(&at_fork.lock);
	if (err) {
		if (!graph)
			qcul_graph_free(c->graph);
		free(c);
	}
	return err;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
	return qcul_done(begin_stream_capture(stream, NULL, NULL, 0, mode));
}

cudaError_t cudaStreamBeginCaptureToGraph(cudaStream_t stream, cudaGraph_t graph,
					  const cudaGraphNode_t *deps,
					  const cudaGraphEdgeData *data, size_t count,
					  enum cudaStreamCaptureMode mode)
{
	(void)data;
	if (!qcul_graph_valid(graph))
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(begin_stream_capture(stream, graph, deps, count, mode));
}

/* ---- ending ---- */

/* Marks the nodes of `set`, and all nodes that they depend on. */
static void mark_with_dependencies(const struct nodes *set)
{
	struct nodes todo = {0};
	size_t i;

	if (!add_to_node_set(&todo, set->v, set->count))
		return;
	while (todo.count) {
		struct CUgraphNode_st *n = todo.v[--todo.count];

		n->flagged = true;
		for (i = 0; i < n->dep_count; i++)
			if (!n->deps[i].from->flagged &&
			    !add_to_node_set(&todo, &n->deps[i].from, 1))
				break;
	}
	free(todo.v);
}

/* True if the first stream has waited for every other stream of the capture. */
static bool all_joined(const struct capture *c)
{
	const struct captured_stream *s;
	size_t i;

	for (i = 0; i < c->graph->count; i++)
		c->graph->nodes[i]->flagged = false;
	mark_with_dependencies(&c->origin->tail);
	for (s = session.streams; s; s = s->next)
		for (i = 0; s->capture == c && i < s->tail.count; i++)
			if (!s->tail.v[i]->flagged)
				return false;
	return true;
}

static cudaError_t end_capture(cudaStream_t stream, cudaGraph_t *graph)
{
	struct captured_stream *s;
	struct CUgraph_st *given, *made;
	struct capture *c;
	cudaError_t err = qcul_ready();
	uint32_t id;

	if (!err)
		err = qcul_stream_id(stream, &id);
	if (err)
		return err;
	pthread_mutex_lock(&at_fork.lock);
	s = find_captured_stream(stream);
	c = s ? s->capture : NULL;
	if (!c)
		err = cudaErrorIllegalState;
	else if (!graph && !c->given)
		err = cudaErrorInvalidValue;
	else if (c->origin != s)
		err = cudaErrorStreamCaptureUnmatched;
	else if (c->mode != cudaStreamCaptureModeRelaxed && c->tid != qcul_tid())
		err = cudaErrorStreamCaptureWrongThread;
	if (err) {
		if (c)
			c->spoiled = true;
		pthread_mutex_unlock(&at_fork.lock);
		return err;
	}
	if (c->spoiled)
		err = cudaErrorStreamCaptureInvalidated;
	else if (!all_joined(c))
		err = cudaErrorStreamCaptureUnjoined;
	given = c->given ? c->graph : NULL;
	made = c->given ? NULL : c->graph;
	free_capture(c);
	pthread_mutex_unlock(&at_fork.lock);
	if (err) {
		qcul_graph_free(made);
		made = given = NULL;
	}
	if (graph)
		*graph = given ? given : made;
	return err;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
	return qcul_done(end_capture(stream, graph));
}

/* ---- queries and changes ---- */

static cudaError_t state(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
			 unsigned long long *number, cudaGraph_t *graph,
			 const cudaGraphNode_t **deps, size_t *count)
{
	struct captured_stream *s;
	uint32_t id;
	cudaError_t err = status ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		err = qcul_stream_id(stream, &id);
	if (err)
		return err;
	/* The legacy stream cannot be captured, but using it may break a capture. */
	if (id == QCU_STREAM_LEGACY && qcul_captured(stream, &err))
		return err;
	*status = cudaStreamCaptureStatusNone;
	pthread_mutex_lock(&at_fork.lock);
	s = find_captured_stream(stream);
	if (s) {
		*status = s->capture->spoiled ? cudaStreamCaptureStatusInvalidated
					      : cudaStreamCaptureStatusActive;
		if (number)
			*number = s->capture->id;
		if (graph)
			*graph = s->capture->graph;
		if (deps)
			*deps = s->tail.v;
		if (count)
			*count = s->tail.count;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	return qcul_done(state(stream, status, NULL, NULL, NULL, NULL));
}

/* Captured edges carry no data. */
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, enum cudaStreamCaptureStatus *status,
				     unsigned long long *number, cudaGraph_t *graph,
				     const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges,
				     size_t *count)
{
	if (edges)
		*edges = NULL;
	return qcul_done(state(stream, status, number, graph, deps, count));
}

static cudaError_t change_deps(cudaStream_t stream, const cudaGraphNode_t *deps, size_t count,
			       unsigned int flags)
{
	struct captured_stream *s;
	cudaError_t err = cudaSuccess;
	size_t i;

	pthread_mutex_lock(&at_fork.lock);
	s = find_captured_stream(stream);
	if (!s)
		err = cudaErrorIllegalState;
	else if (flags > cudaStreamSetCaptureDependencies || (count && !deps))
		err = cudaErrorInvalidValue;
	for (i = 0; i < count && !err; i++)
		if (!qcul_node_valid(deps[i]) || deps[i]->graph != s->capture->graph)
			err = cudaErrorInvalidValue;
	if (!err && flags == cudaStreamSetCaptureDependencies)
		s->tail.count = 0;
	if (!err && !add_to_node_set(&s->tail, deps, count))
		err = cudaErrorMemoryAllocation;
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t *deps,
						const cudaGraphEdgeData *data, size_t count,
						unsigned int flags)
{
	(void)data;
	return qcul_done(change_deps(stream, deps, count, flags));
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
	enum cudaStreamCaptureMode old = qcul_self.capture_mode;

	if (!mode || (unsigned int)*mode > cudaStreamCaptureModeRelaxed)
		return qcul_done(cudaErrorInvalidValue);
	qcul_self.capture_mode = *mode;
	*mode = old;
	return cudaSuccess;
}
