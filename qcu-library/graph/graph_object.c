// SPDX-License-Identifier: LGPL-2.1-or-later
/* User objects: a graph keeps them alive as long as the graph, a clone or an instance of it exists.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/graph/graph.h"

#define OBJECT_MAGIC 0x4a424f55u

struct CUuserObject_st {
	uint32_t magic;
	atomic_uint_fast64_t refs;
	void *data;
	cudaHostFn_t destroy;
};

static bool is_user_object(const struct CUuserObject_st *o)
{
	return qcul_may_point(o) && o->magic == OBJECT_MAGIC;
}

static void drop_object_refs(struct CUuserObject_st *o, unsigned int count)
{
	if (atomic_fetch_sub(&o->refs, count) != count)
		return;
	o->destroy(o->data);
	o->magic = 0;
	free(o);
}

/* Returns the index of the object in the graph's list, or object_count if it is not there. */
static size_t index_of_object(const struct CUgraph_st *g, const struct CUuserObject_st *o)
{
	size_t i = 0;

	while (i < g->object_count && g->objects[i].object != o)
		i++;
	return i;
}

static bool keep_object_in_graph(struct CUgraph_st *g, struct CUuserObject_st *o,
				 unsigned int count)
{
	size_t i = index_of_object(g, o);

	if (i == g->object_count) {
		struct qcul_object_ref *more = realloc(g->objects, (i + 1) * sizeof(*more));

		if (!more)
			return false;
		g->objects = more;
		more[g->object_count++] = (struct qcul_object_ref){o, 0};
	}
	g->objects[i].count += count;
	return true;
}

bool qcul_objects_clone(struct CUgraph_st *to, const struct CUgraph_st *from)
{
	size_t i;

	for (i = 0; i < from->object_count; i++) {
		if (!keep_object_in_graph(to, from->objects[i].object, 1))
			return false;
		atomic_fetch_add(&from->objects[i].object->refs, 1);
	}
	return true;
}

void qcul_objects_release(struct CUgraph_st *g)
{
	size_t i;

	for (i = 0; i < g->object_count; i++)
		drop_object_refs(g->objects[i].object, g->objects[i].count);
	free(g->objects);
	g->objects = NULL;
	g->object_count = 0;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *data, cudaHostFn_t destroy,
				 unsigned int refs, unsigned int flags)
{
	struct CUuserObject_st *o;

	if (!object || !destroy || !refs || flags != cudaUserObjectNoDestructorSync)
		return qcul_done(cudaErrorInvalidValue);
	o = calloc(1, sizeof(*o));
	if (!o)
		return qcul_done(cudaErrorMemoryAllocation);
	o->magic = OBJECT_MAGIC;
	atomic_init(&o->refs, refs);
	o->data = data;
	o->destroy = destroy;
	*object = o;
	return cudaSuccess;
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
	if (!is_user_object(object) || !count)
		return qcul_done(cudaErrorInvalidValue);
	atomic_fetch_add(&object->refs, count);
	return cudaSuccess;
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
	if (!is_user_object(object) || !count || count > atomic_load(&object->refs))
		return qcul_done(cudaErrorInvalidValue);
	drop_object_refs(object, count);
	return cudaSuccess;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
				      unsigned int count, unsigned int flags)
{
	if (!qcul_graph_valid(graph) || !is_user_object(object) || !count ||
	    flags & ~cudaGraphUserObjectMove)
		return qcul_done(cudaErrorInvalidValue);
	if (!keep_object_in_graph(graph, object, count))
		return qcul_done(cudaErrorMemoryAllocation);
	if (!(flags & cudaGraphUserObjectMove))
		atomic_fetch_add(&object->refs, count);
	return cudaSuccess;
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
				       unsigned int count)
{
	size_t i;

	if (!qcul_graph_valid(graph) || !is_user_object(object) || !count)
		return qcul_done(cudaErrorInvalidValue);
	i = index_of_object(graph, object);
	if (i == graph->object_count || graph->objects[i].count < count)
		return qcul_done(cudaErrorInvalidValue);
	graph->objects[i].count -= count;
	if (!graph->objects[i].count)
		memmove(&graph->objects[i], &graph->objects[i + 1],
			(--graph->object_count - i) * sizeof(graph->objects[0]));
	drop_object_refs(object, count);
	return cudaSuccess;
}
