// SPDX-License-Identifier: LGPL-2.1-or-later
/* Graphs and their edges: creation, cloning, removal and queries. */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/capture.h"

static struct {
	atomic_uint_fast64_t serials;
} process = {.serials = 1};

struct CUgraph_st *qcul_graph_new(void)
{
	struct CUgraph_st *g = calloc(1, sizeof(*g));

	if (g) {
		g->magic = QCUL_GRAPH_MAGIC;
		g->serial = atomic_fetch_add(&process.serials, 1);
	}
	return g;
}

static void node_free(struct CUgraphNode_st *n)
{
	qcul_node_release(&n->params);
	qcul_graph_host_put(n->call);
	n->magic = 0;
	free(n->deps);
	free(n);
}

void qcul_graph_free(struct CUgraph_st *g)
{
	size_t i;

	if (!g)
		return;
	for (i = 0; i < g->count; i++)
		node_free(g->nodes[i]);
	qcul_graph_conds_release(g);
	qcul_objects_release(g);
	g->magic = 0;
	free(g->memory_nodes);
	free(g->nodes);
	free(g);
}

static bool same_edge(const cudaGraphEdgeData *a, const cudaGraphEdgeData *b)
{
	return a->from_port == b->from_port && a->to_port == b->to_port && a->type == b->type;
}

static bool depends(const struct CUgraphNode_st *n, const struct CUgraphNode_st *on,
		    const cudaGraphEdgeData *data)
{
	size_t i;

	for (i = 0; i < n->dep_count; i++)
		if (n->deps[i].from == on && (!data || same_edge(&n->deps[i].data, data)))
			return true;
	return false;
}

static cudaError_t connect(struct CUgraphNode_st *n, struct CUgraphNode_st *on,
			   const cudaGraphEdgeData *data)
{
	struct qcul_edge *more = realloc(n->deps, (n->dep_count + 1) * sizeof(*more));

	if (!more)
		return cudaErrorMemoryAllocation;
	n->deps = more;
	more[n->dep_count++] = (struct qcul_edge){on, data ? *data : (cudaGraphEdgeData){0}};
	return cudaSuccess;
}

/* How many memory nodes the graph gets by a node with these params. */
static size_t count_memory_nodes(const struct qcul_node_params *p)
{
	return p->type == cudaGraphNodeTypeGraph ? p->child->memory_count : qcul_node_is_memory(p);
}

static bool make_room_for_memory_nodes(struct CUgraph_st *g, size_t count)
{
	struct CUgraphNode_st **more;

	if (!count)
		return true;
	more = realloc(g->memory_nodes, (g->memory_count + count) * sizeof(*more));
	if (more)
		g->memory_nodes = more;
	return more;
}

static void list_memory_nodes(struct CUgraph_st *g, struct CUgraphNode_st *n)
{
	const struct CUgraph_st *child;
	size_t i;

	if (qcul_node_is_memory(&n->params))
		g->memory_nodes[g->memory_count++] = n;
	if (n->params.type != cudaGraphNodeTypeGraph)
		return;
	child = n->params.child;
	for (i = 0; i < child->memory_count; i++)
		g->memory_nodes[g->memory_count++] = child->memory_nodes[i];
}

static cudaError_t add_node(struct CUgraph_st *g, struct CUgraphNode_st *const *deps,
			    const cudaGraphEdgeData *data, size_t dep_count,
			    struct qcul_node_params *params, struct CUgraphNode_st **node,
			    bool is_clone)
{
	struct CUgraphNode_st **more, *n = NULL;
	cudaError_t err = cudaErrorInvalidValue;
	size_t i, k;

	if (!node || !qcul_graph_valid(g) || (dep_count && !deps))
		goto fail;
	for (i = 0; i < dep_count; i++) {
		if (!qcul_node_valid(deps[i]) || deps[i]->graph != g)
			goto fail;
		for (k = 0; k < i; k++)
			if (deps[k] == deps[i])
				goto fail;
	}
	err = cudaErrorMemoryAllocation;
	n = calloc(1, sizeof(*n));
	more = g->nodes;
	/* There is room for the next power of two. */
	if (!(g->count & (g->count - 1)))
		more = realloc(g->nodes, (2 * g->count + 1) * sizeof(*more));
	if (more)
		g->nodes = more;
	if (!n || !more || !make_room_for_memory_nodes(g, count_memory_nodes(params)))
		goto fail;
	n->magic = QCUL_NODE_MAGIC;
	n->graph = g;
	n->serial = atomic_fetch_add(&process.serials, 1);
	n->device = qcul_self.device;
	for (i = 0; i < dep_count; i++) {
		err = connect(n, deps[i], data ? &data[i] : NULL);
		if (err)
			goto fail;
	}
	if (qcul_node_is_memory(params) && !is_clone) {
		err = qcul_node_memory_join(g, params);
		if (err)
			goto fail;
	}
	g->has_conditional |= params->type == cudaGraphNodeTypeConditional;
	n->params = *params;
	g->nodes[g->count++] = n;
	list_memory_nodes(g, n);
	*node = n;
	return cudaSuccess;
fail:
	if (n)
		free(n->deps);
	free(n);
	return err;
}

cudaError_t qcul_graph_add(struct CUgraph_st *g, struct CUgraphNode_st *const *deps,
			   const cudaGraphEdgeData *data, size_t dep_count,
			   struct qcul_node_params *params, struct CUgraphNode_st **node)
{
	return add_node(g, deps, data, dep_count, params, node, false);
}

struct CUgraph_st *qcul_graph_clone(const struct CUgraph_st *g)
{
	struct CUgraph_st *c = qcul_graph_new();
	size_t i, k;

	if (!c || !qcul_objects_clone(c, g))
		goto fail;
	for (i = 0; i < g->count; i++) {
		const struct CUgraphNode_st *n = g->nodes[i];
		struct qcul_node_params params;
		struct CUgraphNode_st *copy;

		if (qcul_node_clone(&params, &n->params))
			goto fail;
		if (add_node(c, NULL, NULL, 0, &params, &copy, true)) {
			qcul_node_release(&params);
			goto fail;
		}
		copy->origin = n->serial;
		copy->device = n->device;
	}
	qcul_graph_number(g);
	/* Add the edges when all nodes exist: an edge may come from a node that was added later. */
	for (i = 0; i < g->count; i++) {
		const struct CUgraphNode_st *n = g->nodes[i];
		struct qcul_edge *deps = n->dep_count ? malloc(n->dep_count * sizeof(*deps)) : NULL;

		if (n->dep_count && !deps)
			goto fail;
		for (k = 0; k < n->dep_count; k++)
			deps[k] =
				(struct qcul_edge){c->nodes[n->deps[k].from->at], n->deps[k].data};
		c->nodes[i]->deps = deps;
		c->nodes[i]->dep_count = n->dep_count;
	}
	return c;
fail:
	qcul_graph_free(c);
	return NULL;
}

/* Clones are in the order of their originals, so the serials of those rise. */
static struct CUgraphNode_st *find_here(const struct CUgraph_st *g, uint64_t origin)
{
	size_t lo = 0, hi = g->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (g->nodes[mid]->origin < origin)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < g->count && g->nodes[lo]->origin == origin ? g->nodes[lo] : NULL;
}

struct CUgraphNode_st *qcul_graph_find(const struct CUgraph_st *g, uint64_t origin)
{
	struct CUgraphNode_st *found = find_here(g, origin);
	unsigned int b;
	size_t i;

	for (i = 0; i < g->count && !found; i++) {
		struct CUgraphNode_st *n = g->nodes[i];

		if (n->params.type == cudaGraphNodeTypeGraph)
			found = qcul_graph_find(n->params.child, origin);
		for (b = 0; n->params.type == cudaGraphNodeTypeConditional &&
			    b < n->params.cond.size && !found;
		     b++)
			found = qcul_graph_find(n->params.cond.bodies[b], origin);
	}
	return found;
}

/* ---- the CUDA functions ---- */

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
	if (!graph || flags)
		return qcul_done(cudaErrorInvalidValue);
	*graph = qcul_graph_new();
	return qcul_done(*graph ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	if (!qcul_graph_valid(graph) || graph->is_child)
		return qcul_done(cudaErrorInvalidValue);
	qcul_graph_free(graph);
	return cudaSuccess;
}

/* A graph with memory nodes or conditional nodes cannot be cloned: it owns its memory, and only one
 * instance of it may exist at a time. */
cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
	if (!clone || !qcul_graph_valid(graph) || graph->memory_count || graph->has_conditional)
		return qcul_done(cudaErrorInvalidValue);
	*clone = qcul_graph_clone(graph);
	return qcul_done(*clone ? cudaSuccess : cudaErrorMemoryAllocation);
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *node, cudaGraphNode_t original,
				     cudaGraph_t clone)
{
	if (!node || !qcul_node_valid(original) || !qcul_graph_valid(clone))
		return qcul_done(cudaErrorInvalidValue);
	*node = qcul_graph_find(clone, original->serial);
	return qcul_done(*node ? cudaSuccess : cudaErrorInvalidValue);
}

/* The edges of a node are kept in the order in which they were made. */
static cudaError_t change_edges(cudaGraph_t graph, const cudaGraphNode_t *from,
				const cudaGraphNode_t *to, const cudaGraphEdgeData *data,
				size_t count, bool add)
{
	cudaError_t err = cudaSuccess;
	size_t i, k;

	if (!qcul_graph_valid(graph) || (count && (!from || !to)) || (!add && graph->memory_count))
		return cudaErrorInvalidValue;
	for (i = 0; i < count; i++)
		if (!qcul_node_valid(from[i]) || !qcul_node_valid(to[i]) ||
		    from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i] ||
		    depends(to[i], from[i], data ? &data[i] : NULL) == add)
			return cudaErrorInvalidValue;
	for (i = 0; i < count && !err; i++) {
		struct CUgraphNode_st *n = to[i];

		if (add) {
			err = connect(n, from[i], data ? &data[i] : NULL);
			continue;
		}
		for (k = 0; k < n->dep_count; k++)
			if (n->deps[k].from == from[i] &&
			    (!data || same_edge(&n->deps[k].data, &data[i])))
				break;
		/* An edge that is named twice has already been removed. */
		if (k < n->dep_count)
			memmove(&n->deps[k], &n->deps[k + 1],
				(--n->dep_count - k) * sizeof(n->deps[0]));
	}
	return err;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
				     const cudaGraphNode_t *to, const cudaGraphEdgeData *data,
				     size_t count)
{
	return qcul_done(change_edges(graph, from, to, data, count, true));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
					const cudaGraphNode_t *to, const cudaGraphEdgeData *data,
					size_t count)
{
	return qcul_done(change_edges(graph, from, to, data, count, false));
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
	struct CUgraph_st *g;
	size_t i, k, at = 0;

	if (!qcul_node_valid(node) || node->graph->memory_count)
		return qcul_done(cudaErrorInvalidValue);
	g = node->graph;
	for (i = 0; i < g->count; i++) {
		struct CUgraphNode_st *n = g->nodes[i];

		for (k = n->dep_count; k-- > 0;)
			if (n->deps[k].from == node)
				memmove(&n->deps[k], &n->deps[k + 1],
					(--n->dep_count - k) * sizeof(n->deps[0]));
		if (n != node)
			g->nodes[at++] = n;
	}
	g->count = at;
	node_free(node);
	return cudaSuccess;
}

/* A list with room for `room` nodes from the caller. Without a list, the caller gets the count. */
struct listing {
	cudaGraphNode_t *nodes;
	size_t room, found;
};

static void list(struct listing *l, cudaGraphNode_t node)
{
	if (l->nodes && l->found < l->room)
		l->nodes[l->found] = node;
	l->found++;
}

static void listed(struct listing *l, size_t *count)
{
	size_t i;

	for (i = l->found; l->nodes && i < l->room; i++)
		l->nodes[i] = NULL;
	*count = l->nodes && l->found > l->room ? l->room : l->found;
}

static cudaError_t list_nodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count, bool roots)
{
	struct listing l = {.nodes = nodes};
	size_t i;

	if (!qcul_graph_valid(graph) || !count)
		return cudaErrorInvalidValue;
	l.room = *count;
	for (i = 0; i < graph->count; i++)
		if (!roots || !graph->nodes[i]->dep_count)
			list(&l, graph->nodes[i]);
	listed(&l, count);
	return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	return qcul_done(list_nodes(graph, nodes, count, false));
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
	return qcul_done(list_nodes(graph, nodes, count, true));
}

/* Lists all edges, or only those into or out of one node. */
static cudaError_t list_edges(const struct CUgraph_st *g, const struct CUgraphNode_st *into,
			      const struct CUgraphNode_st *out_of, cudaGraphNode_t *from,
			      cudaGraphNode_t *to, cudaGraphEdgeData *data, size_t *count)
{
	struct listing l_from = {.nodes = from, .room = *count};
	struct listing l_to = {.nodes = to, .room = *count};
	size_t i, k;

	for (i = 0; i < g->count; i++) {
		struct CUgraphNode_st *n = g->nodes[i];

		for (k = 0; k < n->dep_count && (!into || into == n); k++) {
			if (out_of && n->deps[k].from != out_of)
				continue;
			if ((from || to) && l_from.found < l_from.room) {
				if (data)
					data[l_from.found] = n->deps[k].data;
				/* The data of the edge would be lost silently. */
				else if (!same_edge(&n->deps[k].data, &(cudaGraphEdgeData){0}))
					return cudaErrorLossyQuery;
			}
			list(&l_from, n->deps[k].from);
			list(&l_to, n);
		}
	}
	listed(&l_to, count);
	if (from)
		listed(&l_from, count);
	return cudaSuccess;
}

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
			      cudaGraphEdgeData *data, size_t *count)
{
	if (!qcul_graph_valid(graph) || !count || !from != !to)
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(list_edges(graph, NULL, NULL, from, to, data, count));
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *nodes,
					 cudaGraphEdgeData *data, size_t *count)
{
	if (!qcul_node_valid(node) || !count)
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(list_edges(node->graph, node, NULL, nodes, NULL, data, count));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *nodes,
					   cudaGraphEdgeData *data, size_t *count)
{
	if (!qcul_node_valid(node) || !count)
		return qcul_done(cudaErrorInvalidValue);
	return qcul_done(list_edges(node->graph, NULL, node, NULL, nodes, data, count));
}

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
	if (!qcul_node_valid(node) || !type)
		return qcul_done(cudaErrorInvalidValue);
	*type = (int)node->params.type == QCUL_NODE_CALL ? node->params.call->type
							 : node->params.type;
	return cudaSuccess;
}
