// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The order of a graph's nodes: which come before others, and one in which each node comes after
 * those that it depends on. What the nodes do does not matter here.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/graph/graph.h"

void qcul_graph_number(const struct CUgraph_st *g)
{
	size_t i;

	for (i = 0; i < g->count; i++)
		g->nodes[i]->at = i;
}

/* True: they are in such an order already. */
static bool in_order(const struct CUgraph_st *g)
{
	size_t i, k;

	for (i = 0; i < g->count; i++)
		for (k = 0; k < g->nodes[i]->dep_count; k++)
			if (g->nodes[i]->deps[k].from->at >= i)
				return false;
	return true;
}

/* Takes each node when all that it depends on are taken. False: the graph has a circle. */
static bool sort(const struct CUgraph_st *g, struct CUgraphNode_st **order, size_t *left,
		 size_t *first, size_t *next)
{
	size_t done = 0, taken = 0, edge = 0, i, k;

	/* The edges out of a node are a list: first[node], then next[edge]. */
	for (i = 0; i < g->count; i++)
		first[i] = SIZE_MAX;
	for (i = 0; i < g->count; i++) {
		left[i] = g->nodes[i]->dep_count;
		if (!left[i])
			order[done++] = g->nodes[i];
		for (k = 0; k < g->nodes[i]->dep_count; k++, edge++) {
			size_t from = g->nodes[i]->deps[k].from->at;

			next[2 * edge] = first[from];
			next[2 * edge + 1] = i;
			first[from] = edge;
		}
	}
	while (taken < done) {
		for (k = first[order[taken++]->at]; k != SIZE_MAX; k = next[2 * k]) {
			i = next[2 * k + 1];
			if (!--left[i])
				order[done++] = g->nodes[i];
		}
	}
	return done == g->count;
}

bool *qcul_nodes_before(const struct CUgraph_st *g, struct CUgraphNode_st *const *deps,
			size_t count)
{
	bool *before = calloc(g->count + 1, sizeof(*before));
	struct CUgraphNode_st **todo = calloc(g->count + 1, sizeof(struct CUgraphNode_st *)), *n;
	size_t left = 0, i;
	bool good = before && todo;

	qcul_graph_number(g);
	for (i = 0; i < count && good; i++) {
		good = qcul_node_valid(deps[i]) && deps[i]->graph == g;
		if (good && !before[deps[i]->at]) {
			before[deps[i]->at] = true;
			todo[left++] = deps[i];
		}
	}
	while (good && left) {
		n = todo[--left];
		for (i = 0; i < n->dep_count; i++) {
			if (before[n->deps[i].from->at])
				continue;
			before[n->deps[i].from->at] = true;
			todo[left++] = n->deps[i].from;
		}
	}
	free(todo);
	if (good)
		return before;
	free(before);
	return NULL;
}

struct CUgraphNode_st **qcul_graph_order(const struct CUgraph_st *g)
{
	struct CUgraphNode_st **order = calloc(g->count + 1, sizeof(struct CUgraphNode_st *));
	size_t *room, edges = 0, i;
	bool good;

	if (!order)
		return NULL;
	qcul_graph_number(g);
	if (in_order(g)) {
		if (g->count)
			memcpy(order, g->nodes, g->count * sizeof(struct CUgraphNode_st *));
		return order;
	}
	for (i = 0; i < g->count; i++)
		edges += g->nodes[i]->dep_count;
	room = calloc(2 * g->count + 2 * edges + 1, sizeof(*room));
	good = room && sort(g, order, room, room + g->count, room + 2 * g->count);
	free(room);
	if (good)
		return order;
	free(order);
	return NULL;
}
