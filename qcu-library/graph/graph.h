/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Nodes, edges, clones and captures are this library's own objects. An executable graph is
 * described to the host once, and a launch is one command (graph_sent.c). What only the program can
 * carry out, the library does, with the same commands that the nodes would send as single calls
 * (graph_exec.c). The handles of conditional nodes are in graph_cond.c.
 *
 * As in CUDA, two threads must not change a graph at the same time.
 */
#ifndef QCUL_GRAPH_H
#define QCUL_GRAPH_H

#include "qcu-library/copy/copy.h"

/* A kernel with a copy of its arguments, packed as the device wants them, and its attributes. */
struct qcul_node_kernel {
	const void *func;
	struct CUkern_st *kernel;
	dim3 grid, block;
	unsigned int shared;
	uint8_t *packed;
	void **args; /* into packed, one for each parameter; they own packed */
	cudaLaunchAttribute *attrs;
	unsigned int attr_count; /* each of a different kind */
};

/* A conditional node: kernels decide what it does. */
struct qcul_node_cond {
	struct qcul_cond *cond;
	enum cudaGraphConditionalNodeType type;
	unsigned int size;
	cudaGraph_t *bodies;
	bool is_clone; /* in an executable graph */
};

/*
 * A node for a call of a library, a semaphore or a number in memory: what it does, a folder above
 * knows (link/capture.h). A graph with one is sent node by node.
 */
#define QCUL_NODE_CALL 100

/* What a node does. It owns what it points to, except memory that the program names. */
struct qcul_node_params {
	enum cudaGraphNodeType type;
	union {
		struct qcul_node_kernel kernel;
		struct cudaMemcpy3DParms copy;
		struct cudaMemsetParams memset;
		struct cudaHostNodeParams host;
		cudaGraph_t child;
		cudaEvent_t event;
		struct qcul_node_cond cond;
		struct qcul_captured_call *call;
		struct qcul_graph_memory *memory; /* that the node allocates or frees */
	};
};

/* What a launch is besides its arguments; kernel NULL: it is not known. */
struct qcul_node_shape {
	const struct CUkern_st *kernel;
	dim3 grid, block;
	unsigned int shared;
	bool disabled;
};

struct qcul_edge {
	struct CUgraphNode_st *from;
	cudaGraphEdgeData data;
};

struct CUgraphNode_st {
	uint32_t magic;
	struct CUgraph_st *graph;
	uint64_t serial;
	uint64_t origin; /* of a clone: the serial of the original */
	struct qcul_edge *deps;
	size_t dep_count;
	struct qcul_node_params params;
	size_t at;    /* its index among the nodes, as qcul_graph_number() has found it */
	int device;   /* on which it was added */
	bool flagged; /* used while branches are chosen */
	/* In an executable graph only. */
	bool disabled;
	unsigned int branch;
	cudaEvent_t done;	      /* recorded after the node, if another branch waits for it */
	bool changed;		      /* the host has other params */
	uint32_t number;	      /* of the host's node that those after this node depend on */
	struct qcul_host_call *call;  /* of a host node that the host has */
	struct qcul_node_shape shape; /* of a kernel node: what the host has */
};

struct qcul_object_ref {
	cudaUserObject_t object;
	unsigned int count;
};

struct CUgraph_st {
	uint32_t magic;
	uint64_t serial;
	struct CUgraphNode_st **nodes; /* in the order in which they were added */
	size_t count;
	struct qcul_object_ref *objects;
	size_t object_count;
	bool is_child; /* belongs to a node */
	bool is_moved; /* a child that the program has made itself, and no copy */
	bool has_conditional;
	struct qcul_cond *body_of;   /* the handle whose body it is; NULL: it is not a body */
	unsigned int body;	     /* the number of the body */
	struct qcul_cond *outermost; /* this graph on the host; NULL: it has no handles */
	struct qcul_cond **conds;    /* handles that were made for this graph */
	size_t cond_count;
	/* Those that allocate or free memory, in it and in its children. Such nodes are never
	 * removed. */
	struct CUgraphNode_st **memory_nodes;
	size_t memory_count;
};

/* ---- graph.c ---- */

#define QCUL_GRAPH_MAGIC 0x48505247u
#define QCUL_NODE_MAGIC	 0x45444f4eu

static inline bool qcul_graph_valid(const struct CUgraph_st *g)
{
	return qcul_may_point(g) && g->magic == QCUL_GRAPH_MAGIC;
}

static inline bool qcul_node_valid(const struct CUgraphNode_st *n)
{
	return qcul_may_point(n) && n->magic == QCUL_NODE_MAGIC;
}

static inline bool qcul_node_is_memory(const struct qcul_node_params *p)
{
	return p->type == cudaGraphNodeTypeMemAlloc || p->type == cudaGraphNodeTypeMemFree;
}

struct CUgraph_st *qcul_graph_new(void);
struct CUgraph_st *qcul_graph_clone(const struct CUgraph_st *g);
void qcul_graph_free(struct CUgraph_st *g);
/* The node that was cloned from the one with this serial, in the graph, its child graphs or the
 * bodies of its nodes. */
struct CUgraphNode_st *qcul_graph_find(const struct CUgraph_st *g, uint64_t origin);
/* Takes ownership of params, unless it fails. */
cudaError_t qcul_graph_add(struct CUgraph_st *g, struct CUgraphNode_st *const *deps,
			   const cudaGraphEdgeData *data, size_t dep_count,
			   struct qcul_node_params *params, struct CUgraphNode_st **node);

/* ---- graph_order.c ---- */

/* Writes down the index of each node. */
void qcul_graph_number(const struct CUgraph_st *g);
/* The nodes, each after those that it depends on. The caller frees the array. NULL: the graph has a
 * cycle, or there is no memory. */
struct CUgraphNode_st **qcul_graph_order(const struct CUgraph_st *g);
/*
 * For each node, by its index: does it come before a node with these dependencies? The caller frees
 * the array. NULL: the dependencies are not of this graph, or there is no memory.
 */
bool *qcul_nodes_before(const struct CUgraph_st *g, struct CUgraphNode_st *const *deps,
			size_t count);

/* ---- graph_node.c ---- */

cudaError_t qcul_node_kernel(struct qcul_node_params *p, const struct cudaKernelNodeParams *from);
/*
 * The usual change in an instance is another launch of the same kernel, which needs no new memory.
 * The arguments must not lie in p. False: it is something else, or wrong.
 */
bool qcul_node_relaunch(struct qcul_node_params *p, const struct cudaKernelNodeParams *from);
/* The same from a launch that is being captured; `kernel` is loaded. */
cudaError_t qcul_node_captured_kernel(struct qcul_node_params *p, struct CUkern_st *kernel,
				      const struct cudaKernelNodeParams *from);
cudaError_t qcul_node_copy(struct qcul_node_params *p, const struct cudaMemcpy3DParms *from);
cudaError_t qcul_node_copy_1d(struct qcul_node_params *p, void *dst, const void *src, size_t count,
			      enum cudaMemcpyKind kind);
cudaError_t qcul_node_memset(struct qcul_node_params *p, const struct cudaMemsetParams *from);
cudaError_t qcul_node_host(struct qcul_node_params *p, const struct cudaHostNodeParams *from);
cudaError_t qcul_node_child(struct qcul_node_params *p, cudaGraph_t child);
/* The child itself, which may become one of `parent`, and not a copy. Without a node it stays the
 * program's, so the params must not be released then. */
cudaError_t qcul_node_moved_child(struct qcul_node_params *p, const struct CUgraph_st *parent,
				  cudaGraph_t child);
cudaError_t qcul_node_event(struct qcul_node_params *p, enum cudaGraphNodeType type,
			    cudaEvent_t event);
cudaError_t qcul_node_to_symbol(struct qcul_node_params *p, const void *symbol, const void *src,
				size_t count, size_t offset, enum cudaMemcpyKind kind);
cudaError_t qcul_node_from_symbol(struct qcul_node_params *p, void *dst, const void *symbol,
				  size_t count, size_t offset, enum cudaMemcpyKind kind);
cudaError_t qcul_node_any(struct qcul_node_params *p, const struct cudaGraphNodeParams *from);
cudaError_t qcul_node_clone(struct qcul_node_params *to, const struct qcul_node_params *from);
/* Makes `to` a copy of `from`, in place of what it was. If it fails, `to` is as before. */
cudaError_t qcul_node_take(struct qcul_node_params *to, const struct qcul_node_params *from);
void qcul_node_release(struct qcul_node_params *p);
/* Nodes of this type are calls; `make` makes them from the program's parameters. */
typedef cudaError_t qcul_make_call(const struct cudaGraphNodeParams *from,
				   struct qcul_captured_call **call);
void qcul_node_calls(enum cudaGraphNodeType type, qcul_make_call *make);
bool qcul_node_same_type(const struct qcul_node_params *a, const struct qcul_node_params *b);
/* Do both do the same? False also if that is not known. */
bool qcul_node_same(const struct qcul_node_params *a, const struct qcul_node_params *b);
/* May these parameters replace those of a node in an executable graph? */
bool qcul_node_can_become(const struct qcul_node_params *old, const struct qcul_node_params *now);

/* ---- graph_attr.c ---- */

/* At least the number of attributes of different kinds that a node can have. */
#define QCUL_NODE_ATTRS 16

cudaError_t qcul_node_attr_set(struct qcul_node_kernel *k, cudaLaunchAttributeID id,
			       const cudaLaunchAttributeValue *value);
cudaError_t qcul_node_attrs_copy(struct qcul_node_kernel *to, const struct qcul_node_kernel *from);

/* ---- graph_memory.c ---- */

/*
 * Memory of this graph that is freed before a node with these dependencies, and that a node with
 * these params may take over. NULL: there is none. The next function must be called with it.
 */
struct qcul_graph_memory *qcul_node_memory_take_over(const struct CUgraph_st *g,
						     struct CUgraphNode_st *const *deps,
						     size_t count,
						     const struct cudaMemAllocNodeParams *params);
/* The same for memory that other graphs allocate and free, if there is no room for new memory. */
struct qcul_graph_memory *qcul_node_memory_of_others(const struct CUgraph_st *g,
						     const struct cudaMemAllocNodeParams *params);
cudaError_t qcul_node_memory(struct qcul_node_params *p,
			     const struct cudaMemAllocNodeParams *params,
			     struct qcul_graph_memory *root);
cudaError_t qcul_node_memory_free(struct qcul_node_params *p, void *ptr);
void qcul_node_memory_clone(const struct qcul_node_params *p);
void qcul_node_memory_release(const struct qcul_node_params *p);
void *qcul_node_memory_ptr(const struct qcul_node_params *p);
bool qcul_same_memory(const struct qcul_node_params *a, const struct qcul_node_params *b);
/* A memory node is about to be added to this graph, which is not a clone. */
cudaError_t qcul_node_memory_join(const struct CUgraph_st *g, const struct qcul_node_params *p);
/* Do both graphs free the same memory? */
bool qcul_graphs_free_same(const struct CUgraph_st *a, const struct CUgraph_st *b);
/* Do both have memory at the same address? Then they cannot be parts of one graph. */
bool qcul_graphs_share_memory(const struct CUgraph_st *a, const struct CUgraph_st *b);

struct qcul_graph_use;
/*
 * An instance is made of a graph that has memory nodes. The function takes ownership of the event,
 * which is recorded at the end of each launch.
 */
cudaError_t qcul_exec_memory_begin(const struct CUgraph_st *g, cudaEvent_t end,
				   struct qcul_graph_use **use);
void qcul_exec_memory_end(const struct CUgraph_st *g, struct qcul_graph_use *use);
/* Called before and after the work of a launch is put into the stream. The second function must
 * follow if the first returned no error; err is whether the work could be put there. */
cudaError_t qcul_exec_memory_launch(const struct CUgraph_st *g, bool auto_free, cudaStream_t stream,
				    struct qcul_graph_use *use);
void qcul_exec_memory_launched(const struct CUgraph_st *g, struct qcul_graph_use *use,
			       cudaError_t err);

bool qcul_memory_of_graphs(const void *ptr);
cudaError_t qcul_memory_of_graphs_free(void *ptr);
cudaError_t qcul_memory_of_graphs_free_async(void *ptr, cudaStream_t stream);

/* For graph_memory_query.c. */
struct qcul_graph_usage {
	cudaMemPool_t pool;	  /* NULL: there is no memory of graphs yet */
	uint64_t used, used_high; /* bytes: now, and the most so far */
};
struct qcul_graph_usage qcul_graph_usage(int device);
void qcul_graph_usage_restart(int device); /* the most starts again at the present value */
const struct cudaMemAllocNodeParams *qcul_node_memory_params(const struct qcul_node_params *p);

/* ---- graph_cond.c ---- */

cudaError_t qcul_node_cond(struct qcul_node_params *p, const struct CUgraph_st *g,
			   const struct cudaConditionalNodeParams *from);
cudaError_t qcul_node_cond_clone(struct qcul_node_params *to, const struct qcul_node_params *from);
void qcul_node_cond_release(struct qcul_node_params *p);
void qcul_node_cond_params(const struct qcul_node_cond *n, struct cudaConditionalNodeParams *to);
void qcul_cond_put(struct qcul_cond *c);
void qcul_graph_conds_release(struct CUgraph_st *g);
/* An instance of this graph is made. *x is the outermost graph, claimed and held, or NULL if there
 * are no conditional nodes. */
cudaError_t qcul_exec_cond_begin(const struct CUgraph_st *from, struct qcul_cond **x,
				 cudaGraphInstantiateResult *result);
void qcul_exec_cond_end(struct qcul_cond *x); /* x may be NULL */
/* The number that the host has for it. An error: the host does not have it any more. */
cudaError_t qcul_cond_id(const struct qcul_cond *c, uint32_t *id);
int qcul_cond_device(const struct qcul_cond *c);

/* ---- graph_run.c ---- */

/* Writes the launch of a kernel node; attrs has room for QCUL_NODE_ATTRS. */
void qcul_node_launch(const struct qcul_node_kernel *k, unsigned long long flags,
		      cudaLaunchConfig_t *config, cudaLaunchAttribute *attrs);

/* Puts the work of the node into the stream; flags are those of the executable graph. */
cudaError_t qcul_node_run(const struct CUgraphNode_st *n, unsigned long long flags,
			  cudaStream_t stream);

/* ---- graph_sent.c ---- */

/* The host's instance of an executable graph. */
struct qcul_sent {
	uint32_t id; /* 0: there is none */
	uint32_t stamp;
	unsigned int epoch;
	struct CUgraphNode_st **nodes; /* by the host's number; NULL: one that is only there */
	uint32_t count;
	bool records, waits, calls; /* it has nodes that record events, wait for events, call */
	bool changed;		    /* some nodes have */
	/* Pageable memory that its copies use, and qcul_copy_unmaps() when it was pinned. */
	struct qcul_span {
		const void *addr;
		size_t len;
	} * pins;
	size_t pin_count;
	unsigned int unmaps;
};

/*
 * Describes the graph to the host. cudaErrorNotSupported: it has nodes that only the program can
 * carry out, such as copies of pageable memory.
 */
cudaError_t qcul_sent_make(struct qcul_sent *s, const struct CUgraph_st *g,
			   unsigned long long flags);
/*
 * Sends what has changed. cudaErrorGraphExecUpdateFailure: the instance cannot become that, and
 * must be made again.
 */
cudaError_t qcul_sent_update(struct qcul_sent *s, unsigned long long flags);
/* Is all pageable memory that copies use as it was? If not, the instance must be made again. */
bool qcul_sent_pinned(struct qcul_sent *s);
/* The event, unless it is NULL, is recorded behind the graph. */
cudaError_t qcul_sent_launch(struct qcul_sent *s, cudaStream_t stream, cudaEvent_t event);
cudaError_t qcul_sent_upload(const struct qcul_sent *s, cudaStream_t stream);
void qcul_sent_drop(struct qcul_sent *s);

/* ---- graph_change.c ---- */

/*
 * Nodes that are calls. `made` tells why there is no call to add or to set. The functions take over
 * the caller's reference, also if they fail.
 */
cudaError_t qcul_graph_add_call(cudaError_t made, struct qcul_captured_call *call,
				cudaGraphNode_t *node, cudaGraph_t graph,
				const cudaGraphNode_t *deps, size_t count);
cudaError_t qcul_graph_set_call(cudaError_t made, struct qcul_captured_call *call,
				cudaGraphNode_t node);
cudaError_t qcul_graph_exec_set_call(cudaError_t made, struct qcul_captured_call *call,
				     cudaGraphExec_t exec, cudaGraphNode_t node);
/* NULL: the node is of another type. */
const struct qcul_captured_call *qcul_node_call(cudaGraphNode_t node, enum cudaGraphNodeType type);

/* ---- graph_exec.c ---- */

/* Finds the node of an executable graph that was made from this node. The caller will change it.
 * NULL: there is none. */
struct CUgraphNode_st *qcul_exec_node(cudaGraphExec_t exec, cudaGraphNode_t node);
/* The executable graph's own copy of the graph. NULL: the handle is not valid. */
const struct CUgraph_st *qcul_exec_graph(cudaGraphExec_t exec);

/* ---- graph_object.c ---- */

void qcul_objects_release(struct CUgraph_st *g);
bool qcul_objects_clone(struct CUgraph_st *to, const struct CUgraph_st *from);

#endif
