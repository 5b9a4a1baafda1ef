// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Executable graphs: a copy of the graph, which the host has, too (graph_sent.c).
 *
 * If the graph has nodes that only the program can carry out, copies of pageable memory outside of
 * chunks, the library carries out all of it, in the steps of a launch. Each step comes after the
 * steps that it depends on. Nodes that need not wait for one another are in different branches. The
 * first branch runs in the stream of the launch, the others in the graph's own streams. As in CUDA,
 * a launch begins when the previous launch is done.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

#define EXEC_MAGIC 0x43455845u
/* The number of streams that run at once. Further branches share these streams. */
#define BRANCHES_MAX 8

#define INSTANTIATE_FLAGS                                                            \
	(cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload | \
	 cudaGraphInstantiateFlagUseNodePriority)

enum step_type { STEP_WAIT, STEP_RUN, STEP_RECORD };

struct step {
	enum step_type type;
	unsigned int branch;
	struct CUgraphNode_st *node; /* the node to run, or whose event to wait for or record */
};

struct CUgraphExec_st {
	uint32_t magic;
	struct CUgraph_st *graph;
	unsigned long long flags;
	struct qcul_sent sent; /* the host's instance; without one, the steps are done */
	struct step *steps;
	size_t step_count;
	unsigned int branches;
	cudaStream_t streams[BRANCHES_MAX]; /* the first is the stream of the launch */
	cudaEvent_t ends[BRANCHES_MAX];
	cudaEvent_t start;
	cudaStream_t last; /* the stream of the last launch, in which ends[0] was recorded */
	bool launched;
	struct qcul_cond *cond; /* the outermost graph of conditional nodes, claimed; NULL: none */
	/* The use of the memory that the graph allocates or frees; NULL: there is none. It owns
	 * ends[0]. */
	struct qcul_graph_use *use;
};

static bool is_exec_valid(const struct CUgraphExec_st *x)
{
	return qcul_may_point(x) && x->magic == EXEC_MAGIC;
}

const struct CUgraph_st *qcul_exec_graph(cudaGraphExec_t exec)
{
	return is_exec_valid(exec) ? exec->graph : NULL;
}

static struct CUgraphNode_st *find_node_in_exec(cudaGraphExec_t exec, cudaGraphNode_t node)
{
	return is_exec_valid(exec) && qcul_node_valid(node)
		       ? qcul_graph_find(exec->graph, node->serial)
		       : NULL;
}

struct CUgraphNode_st *qcul_exec_node(cudaGraphExec_t exec, cudaGraphNode_t node)
{
	struct CUgraphNode_st *n = find_node_in_exec(exec, node);

	if (n)
		exec->sent.changed = n->changed = true;
	return n;
}

/* ---- instantiating ---- */

static bool add_step(struct CUgraphExec_st *x, enum step_type type, unsigned int branch,
		     struct CUgraphNode_st *node)
{
	struct step *more = realloc(x->steps, (x->step_count + 1) * sizeof(*more));

	if (!more)
		return false;
	x->steps = more;
	more[x->step_count++] = (struct step){type, branch, node};
	return true;
}

/* A child graph runs in the branch of its node, one node after the other. */
static bool add_run(struct CUgraphExec_st *x, unsigned int branch, struct CUgraphNode_st *node)
{
	struct CUgraphNode_st **order;
	bool good = true;
	size_t i;

	if (node->params.type != cudaGraphNodeTypeGraph)
		return add_step(x, STEP_RUN, branch, node);
	order = qcul_graph_order(node->params.child);
	for (i = 0; order && i < node->params.child->count && good; i++)
		good = add_run(x, branch, order[i]);
	free(order);
	return order && good;
}

/*
 * If a node depends on the last node of a branch, it continues that branch. Otherwise it begins a
 * new branch, or shares one if there are already BRANCHES_MAX.
 */
static void choose_branches(struct CUgraphExec_st *x, struct CUgraphNode_st **order)
{
	size_t i, k;

	for (i = 0; i < x->graph->count; i++) {
		struct CUgraphNode_st *n = order[i];

		for (k = 0; k < n->dep_count && !n->deps[k].from->flagged; k++)
			;
		if (k < n->dep_count) {
			n->branch = n->deps[k].from->branch;
			n->deps[k].from->flagged = false;
		} else if (x->branches < BRANCHES_MAX) {
			n->branch = x->branches++;
		} else {
			n->branch = (unsigned int)(i % BRANCHES_MAX);
		}
		/* From here on, a flagged node is the last one of its branch. */
		n->flagged = true;
	}
	if (!x->branches)
		x->branches = 1;
}

static cudaError_t make_event_if_none(cudaEvent_t *event)
{
	return *event ? cudaSuccess : cudaEventCreateWithFlags(event, cudaEventDisableTiming);
}

static cudaError_t make_steps(struct CUgraphExec_st *x, struct CUgraphNode_st **order)
{
	cudaError_t err = cudaSuccess;
	size_t i, k;

	for (i = 0; i < x->graph->count; i++)
		order[i]->flagged = false;
	choose_branches(x, order);
	for (i = 0; i < x->graph->count; i++)
		for (k = 0; k < order[i]->dep_count && !err; k++)
			if (order[i]->deps[k].from->branch != order[i]->branch)
				err = make_event_if_none(&order[i]->deps[k].from->done);
	for (i = 0; i < x->graph->count && !err; i++) {
		struct CUgraphNode_st *n = order[i];
		bool good = true;

		for (k = 0; k < n->dep_count && good; k++)
			if (n->deps[k].from->branch != n->branch)
				good = add_step(x, STEP_WAIT, n->branch, n->deps[k].from);
		good = good && add_run(x, n->branch, n);
		if (good && n->done)
			good = add_step(x, STEP_RECORD, n->branch, n);
		if (!good)
			err = cudaErrorMemoryAllocation;
	}
	return err;
}

static void exec_free(struct CUgraphExec_st *x)
{
	unsigned int b;
	size_t i;

	qcul_sent_drop(&x->sent);
	if (x->use) {
		qcul_exec_memory_end(x->graph, x->use);
		x->ends[0] = NULL;
	}
	/* Work that is still queued in a stream or behind an event completes anyway. */
	for (b = 0; b < BRANCHES_MAX; b++) {
		if (b && x->streams[b])
			(void)cudaStreamDestroy(x->streams[b]);
		if (x->ends[b])
			(void)cudaEventDestroy(x->ends[b]);
	}
	if (x->start)
		(void)cudaEventDestroy(x->start);
	for (i = 0; x->graph && i < x->graph->count; i++)
		if (x->graph->nodes[i]->done)
			(void)cudaEventDestroy(x->graph->nodes[i]->done);
	qcul_graph_free(x->graph);
	qcul_exec_cond_end(x->cond);
	free(x->steps);
	x->magic = 0;
	free(x);
}

/* Prepares the launches that the library carries out itself. */
static cudaError_t prepare_steps(struct CUgraphExec_st *x, struct CUgraphNode_st **order)
{
	cudaError_t err = make_steps(x, order);
	unsigned int b;

	if (!err)
		err = make_event_if_none(&x->start);
	for (b = 0; b < x->branches && !err; b++) {
		err = make_event_if_none(&x->ends[b]);
		if (!err && b)
			err = cudaStreamCreateWithFlags(&x->streams[b], cudaStreamNonBlocking);
	}
	return err;
}

/*
 * The host gets the graph. cudaErrorNotSupported: only the library can carry it out. A graph with
 * conditional nodes is always the host's, and is on the device of its handles.
 */
static cudaError_t make_sent(struct CUgraphExec_st *x)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	int before = qcul_self.device;
	cudaError_t err;

	if (!x->cond)
		return qcul_sent_make(&x->sent, x->graph, x->flags);
	qcul_self.device = qcul_cond_device(x->cond);
	err = qcul_sent_make(&x->sent, x->graph, x->flags);
	qcul_self.device = before;
	if (err == cudaErrorNotSupported)
		(void)qcul_unsupported("a graph with conditional nodes and copies of pageable "
				       "memory, or with a body that holds a node that is no "
				       "kernel, copy, memset, graph or conditional",
				       &said);
	return err;
}

/* The host gets the graph, or the steps are made. */
static cudaError_t prepare(struct CUgraphExec_st *x, struct CUgraphNode_st **order)
{
	cudaError_t err = make_sent(x);

	if (err == cudaErrorNotSupported && !x->cond)
		return prepare_steps(x, order);
	return err || !x->graph->memory_count ? err : make_event_if_none(&x->ends[0]);
}

static cudaError_t instantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags,
			       cudaGraphInstantiateResult *result)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct CUgraphNode_st **order = NULL;
	struct CUgraphExec_st *x;
	cudaError_t err;

	*result = cudaGraphInstantiateError;
	if (!exec || !qcul_graph_valid(graph) || graph->is_moved)
		return cudaErrorInvalidValue;
	if (flags & cudaGraphInstantiateFlagDeviceLaunch)
		return qcul_unsupported("a graph that a kernel launches", &said);
	if (flags & ~(unsigned long long)INSTANTIATE_FLAGS)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (err)
		return err;
	x = calloc(1, sizeof(*x));
	if (!x)
		return cudaErrorMemoryAllocation;
	x->magic = EXEC_MAGIC;
	x->flags = flags;
	x->graph = qcul_graph_clone(graph);
	if (!x->graph) {
		err = cudaErrorMemoryAllocation;
		goto fail;
	}
	order = qcul_graph_order(x->graph);
	if (!order) {
		*result = cudaGraphInstantiateInvalidStructure;
		err = cudaErrorInvalidValue;
		goto fail;
	}
	err = qcul_exec_cond_begin(graph, &x->cond, result);
	if (!err)
		err = prepare(x, order);
	if (!err && graph->memory_count) {
		cudaEvent_t end = x->ends[0];

		x->ends[0] = NULL;
		err = qcul_exec_memory_begin(x->graph, end, &x->use);
		if (!err)
			x->ends[0] = end;
	}
	if (err)
		goto fail;
	free(order);
	*exec = x;
	*result = cudaGraphInstantiateSuccess;
	return cudaSuccess;
fail:
	free(order);
	exec_free(x);
	return err;
}

/* ---- launching ---- */

static cudaError_t run_launch_step(struct CUgraphExec_st *x, const struct step *s)
{
	cudaStream_t stream = x->streams[s->branch];

	switch (s->type) {
	case STEP_WAIT:
		return cudaStreamWaitEvent(stream, s->node->done, 0);
	case STEP_RECORD:
		return cudaEventRecord(s->node->done, stream);
	default:
		return qcul_node_run(s->node, x->flags, stream);
	}
}

/* The instance has been changed so that the host cannot have it any more. */
static cudaError_t give_up_host(struct CUgraphExec_st *x)
{
	struct CUgraphNode_st **order = qcul_graph_order(x->graph);
	cudaError_t err = order ? qcul_devices_idle() : cudaErrorInvalidValue;

	if (!err)
		err = prepare_steps(x, order);
	free(order);
	return err;
}

static cudaError_t update_host(struct CUgraphExec_st *x)
{
	cudaError_t err;

	if (x->branches)
		return cudaSuccess;
	/* Without an instance on the host, the last one could not be made. */
	if (!x->sent.id || !qcul_sent_pinned(&x->sent))
		err = cudaErrorGraphExecUpdateFailure;
	else
		err = x->sent.changed ? qcul_sent_update(&x->sent, x->flags) : cudaSuccess;
	if (err != cudaErrorGraphExecUpdateFailure)
		return err;
	/* A new instance can have what this one cannot become. Launches of both would use the same
	 * handles. */
	err = x->cond ? qcul_devices_idle() : cudaSuccess;
	if (!err)
		err = make_sent(x);
	return err == cudaErrorNotSupported && !x->cond ? give_up_host(x) : err;
}

/* The host has the graph: one command does it all. */
static cudaError_t run_sent(struct CUgraphExec_st *x, cudaStream_t stream)
{
	cudaError_t err = cudaSuccess;

	if (x->use)
		err = qcul_exec_memory_launch(x->graph,
					      x->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch,
					      stream, x->use);
	if (err)
		return err;
	err = qcul_sent_launch(&x->sent, stream, x->use ? x->ends[0] : NULL);
	if (x->use)
		qcul_exec_memory_launched(x->graph, x->use, err);
	return err;
}

static cudaError_t run_all(struct CUgraphExec_st *x, cudaStream_t stream)
{
	cudaError_t err = cudaSuccess;
	unsigned int b;
	size_t i;

	if (x->use)
		err = qcul_exec_memory_launch(x->graph,
					      x->flags & cudaGraphInstantiateFlagAutoFreeOnLaunch,
					      stream, x->use);
	if (err)
		return err;
	if (x->launched && x->last != stream)
		err = cudaStreamWaitEvent(stream, x->ends[0], 0);
	x->streams[0] = stream;
	if (!err && x->branches > 1)
		err = cudaEventRecord(x->start, stream);
	for (b = 1; b < x->branches && !err; b++)
		err = cudaStreamWaitEvent(x->streams[b], x->start, 0);
	for (i = 0; i < x->step_count && !err; i++)
		err = run_launch_step(x, &x->steps[i]);
	for (b = 1; b < x->branches && !err; b++) {
		err = cudaEventRecord(x->ends[b], x->streams[b]);
		if (!err)
			err = cudaStreamWaitEvent(stream, x->ends[b], 0);
	}
	if (!err)
		err = cudaEventRecord(x->ends[0], stream);
	if (x->use)
		qcul_exec_memory_launched(x->graph, x->use, err);
	x->last = stream;
	x->launched = true;
	return err;
}

static cudaError_t launch_graph_exec(cudaGraphExec_t exec, cudaStream_t stream)
{
	uint32_t id;
	cudaError_t err = is_exec_valid(exec) ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		err = qcul_stream_id(stream, &id);
	if (err)
		return err;
	if (qcul_captured(stream, &err))
		return err ? err : qcul_capture_refuse(stream);
	if (!stream)
		stream = cudaStreamLegacy;
	err = update_host(exec);
	if (err)
		return err;
	return exec->sent.id ? run_sent(exec, stream) : run_all(exec, stream);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
	return qcul_done(launch_graph_exec(exec, stream));
}

/* Steps that the library does need nothing beforehand. */
static cudaError_t upload(cudaGraphExec_t exec, cudaStream_t stream)
{
	uint32_t id;
	cudaError_t err = is_exec_valid(exec) ? qcul_ready() : cudaErrorInvalidValue;

	if (!err)
		err = qcul_stream_id(stream, &id);
	if (!err)
		err = update_host(exec);
	return err || !exec->sent.id ? err : qcul_sent_upload(&exec->sent, stream);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream)
{
	return qcul_done(upload(exec, stream));
}

/* ---- the CUDA functions ---- */

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
	cudaGraphInstantiateResult result;

	/* An upload needs a stream, and this call has none. */
	if (flags & cudaGraphInstantiateFlagUpload)
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(instantiate(exec, graph, flags, &result));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
					  unsigned long long flags)
{
	return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphInstantiateWithParams(cudaGraphExec_t *exec, cudaGraph_t graph,
					   cudaGraphInstantiateParams *params)
{
	cudaError_t err;

	if (!params)
		return qcul_done(cudaErrorInvalidValue);
	params->errNode_out = NULL;
	err = instantiate(exec, graph, params->flags, &params->result_out);
	if (!err && params->flags & cudaGraphInstantiateFlagUpload)
		err = upload(*exec, params->uploadStream);
	return qcul_done(err);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
	if (!is_exec_valid(exec))
		return qcul_done(cudaErrorInvalidValue);
	exec_free(exec);
	return cudaSuccess;
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
	if (!is_exec_valid(exec) || !flags)
		return qcul_done(cudaErrorInvalidValue);
	/* CUDA does not report these two flags. */
	*flags = exec->flags &
		 ~(cudaGraphInstantiateFlagUpload | cudaGraphInstantiateFlagUseNodePriority);
	return cudaSuccess;
}

static bool can_be_disabled(const struct CUgraphNode_st *n)
{
	return n && n->params.type <= cudaGraphNodeTypeMemset;
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
				    unsigned int enabled)
{
	struct CUgraphNode_st *n = qcul_exec_node(exec, node);

	if (!can_be_disabled(n))
		return qcul_done(cudaErrorInvalidValue);
	n->disabled = !enabled;
	return cudaSuccess;
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
				    unsigned int *enabled)
{
	const struct CUgraphNode_st *n = find_node_in_exec(exec, node);

	if (!can_be_disabled(n) || !enabled)
		return qcul_done(cudaErrorInvalidValue);
	*enabled = !n->disabled;
	return cudaSuccess;
}

/* ---- updating: the same shape with other parameters ---- */

static bool same_deps(const struct CUgraphNode_st *a, const struct CUgraphNode_st *b)
{
	size_t i;

	if (a->dep_count != b->dep_count)
		return false;
	for (i = 0; i < a->dep_count; i++)
		if (a->deps[i].from->at != b->deps[i].from->at)
			return false;
	return true;
}

static enum cudaGraphExecUpdateResult
compare_graphs(const struct CUgraph_st *old, const struct CUgraph_st *now, cudaGraphNode_t *at);

static enum cudaGraphExecUpdateResult compare_conds(const struct qcul_node_cond *old,
						    const struct qcul_node_cond *now,
						    cudaGraphNode_t *at)
{
	enum cudaGraphExecUpdateResult r = cudaGraphExecUpdateSuccess;
	unsigned int i;

	if (old->cond != now->cond)
		return cudaGraphExecUpdateErrorNotSupported;
	for (i = 0; i < old->size && !r; i++)
		r = compare_graphs(old->bodies[i], now->bodies[i], at);
	return r;
}

static enum cudaGraphExecUpdateResult
compare_graphs(const struct CUgraph_st *old, const struct CUgraph_st *now, cudaGraphNode_t *at)
{
	enum cudaGraphExecUpdateResult r;
	size_t i;

	*at = NULL;
	if (old->count != now->count)
		return cudaGraphExecUpdateErrorTopologyChanged;
	qcul_graph_number(old);
	qcul_graph_number(now);
	for (i = 0; i < old->count; i++) {
		*at = now->nodes[i];
		if (!same_deps(old->nodes[i], now->nodes[i]))
			return cudaGraphExecUpdateErrorTopologyChanged;
		if (!qcul_node_same_type(&old->nodes[i]->params, &now->nodes[i]->params))
			return cudaGraphExecUpdateErrorNodeTypeChanged;
		if (qcul_node_is_memory(&now->nodes[i]->params) &&
		    !qcul_same_memory(&old->nodes[i]->params, &now->nodes[i]->params))
			return cudaGraphExecUpdateErrorParametersChanged;
		if (!qcul_node_can_become(&old->nodes[i]->params, &now->nodes[i]->params))
			return cudaGraphExecUpdateErrorParametersChanged;
		r = cudaGraphExecUpdateSuccess;
		if (now->nodes[i]->params.type == cudaGraphNodeTypeConditional)
			r = compare_conds(&old->nodes[i]->params.cond, &now->nodes[i]->params.cond,
					  at);
		else if (now->nodes[i]->params.type == cudaGraphNodeTypeGraph)
			r = compare_graphs(old->nodes[i]->params.child, now->nodes[i]->params.child,
					   at);
		if (r)
			return r;
	}
	*at = NULL;
	return cudaGraphExecUpdateSuccess;
}

/* Both graphs have the same shape. Child graphs are changed in place, because the steps point to
 * their nodes. */
static cudaError_t take_params(struct CUgraph_st *old, const struct CUgraph_st *now)
{
	cudaError_t err = cudaSuccess;
	unsigned int b;
	size_t i;

	for (i = 0; i < old->count && !err; i++) {
		struct qcul_node_params *to = &old->nodes[i]->params;
		const struct qcul_node_params *from = &now->nodes[i]->params;

		if (from->type == cudaGraphNodeTypeGraph) {
			err = take_params(to->child, from->child);
			continue;
		}
		for (b = 0;
		     from->type == cudaGraphNodeTypeConditional && b < from->cond.size && !err; b++)
			err = take_params(to->cond.bodies[b], from->cond.bodies[b]);
		if (from->type == cudaGraphNodeTypeConditional)
			continue;
		if (qcul_node_is_memory(from) || qcul_node_same(to, from))
			continue;
		err = qcul_node_take(to, from);
		old->nodes[i]->changed |= !err;
	}
	return err;
}

static cudaError_t update(struct CUgraph_st *old, const struct CUgraph_st *now,
			  cudaGraphExecUpdateResultInfo *info)
{
	cudaError_t err;

	info->errorFromNode = NULL;
	info->result = compare_graphs(old, now, &info->errorNode);
	if (info->result)
		return cudaErrorGraphExecUpdateFailure;
	err = take_params(old, now);
	if (err)
		info->result = cudaGraphExecUpdateError;
	return err;
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
				cudaGraphExecUpdateResultInfo *info)
{
	if (!info || !is_exec_valid(exec) || !qcul_graph_valid(graph) || graph->is_moved)
		return qcul_done(cudaErrorInvalidValue);
	exec->sent.changed = true;
	return qcul_done(update(exec->graph, graph, info));
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
						 cudaGraph_t child)
{
	cudaGraphExecUpdateResultInfo info;
	struct CUgraphNode_st *n = qcul_exec_node(exec, node);

	if (!n || n->params.type != cudaGraphNodeTypeGraph || !qcul_graph_valid(child))
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(update(n->params.child, child, &info));
}
