// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory that graphs allocate and free. The address of the memory must be valid as soon as the node
 * exists. So the library allocates the memory when it makes the node, and frees it when no node
 * refers to the memory and no launch has left it allocated. At a launch, the nodes only mark the
 * memory as allocated or free.
 *
 * Each device has one pool for this memory, and two streams that nothing else uses. The memory is
 * allocated in one of the streams, and freed in the other one after its last use.
 *
 * A node that comes after the free of another memory of its graph takes over the address, as in
 * CUDA. Such memories share the allocation of the first of them, the root. If there is no room for
 * new memory, it takes over the address of memory that another graph allocates and frees. Launches
 * of the two graphs then run one after the other.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/graph/graph.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/link/capture.h"
#include "qcu-library/memory/memory.h"

/*
 * A use of memory: the launches of one instance, or a free in a stream. The event is recorded at
 * the end of the use.
 */
struct qcul_graph_use {
	cudaEvent_t event;
	unsigned int refs;
};

struct qcul_graph_memory {
	struct qcul_graph_memory *next;
	struct qcul_graph_memory *root; /* whose allocation it is: its own, or another's, held */
	void *ptr;
	struct cudaMemAllocNodeParams params; /* with its own copy of the access list */
	uint64_t owner;			      /* serial of the graph that it was made for */
	unsigned int refs;		      /* one for each node, and one while it is allocated */
	unsigned int instances;		      /* executable graphs that allocate it */
	unsigned int epoch;		      /* 0: a device reset or fork() took it away */
	struct qcul_graph_use *use;	      /* of a root: the last use; NULL: none yet */
	unsigned int users;		      /* of a root: memories in it that are used */
	unsigned int launching;		      /* of a root: launches that are being sent */
	bool shared;			      /* of a root: several graphs have memory in it */
	bool taken_over;		      /* a later memory has its address */
	bool freed_inside;		      /* a node of the owner frees it */
	bool freed_outside;		      /* a node of another graph frees it */
	bool allocated; /* a launch has allocated it, and nothing has freed it since */
	bool used; /* counted in device_pool.used: from a launch that allocates it until it is free
		    * and no instance allocates it */
	bool here; /* for may_launch() only: the same graph allocates it */
};

struct device_pool {
	cudaMemPool_t pool;	  /* NULL: not needed yet */
	cudaStream_t take, give;  /* the streams for allocating and for freeing */
	uint64_t used, used_high; /* bytes: now, and the most so far */
};

static struct {
	struct device_pool device_pools[QCUL_DEVICES];
} session;

/* The part's lock protects the list, everything in it, and the contents of device_pools. No other
 * lock is taken while it is held. */
static struct {
	struct qcul_graph_memory *memories;
	atomic_uint count;
} process;

static void forget_graph_memories(int device);
QCUL_AT_FORK(QCUL_FORK_GRAPH_MEMORY, .reset = forget_graph_memories, QCUL_SESSION)

static void forget_graph_memories(int device)
{
	struct qcul_graph_memory *m;
	int d;

	pthread_mutex_lock(&at_fork.lock);
	for (m = process.memories; m; m = m->next)
		if (device < 0 || m->params.poolProps.location.id == device)
			m->epoch = 0;
	for (d = 0; d < QCUL_DEVICES; d++)
		if (device < 0 || d == device)
			session.device_pools[d] = (struct device_pool){0};
	pthread_mutex_unlock(&at_fork.lock);
}

/* Its lock protects the creation of device_pools. It is also held while the launch of a graph is
 * sent that shares memory with another graph. */
static struct qcul_fork_entry device_pools_at_fork = {.order = QCUL_FORK_GRAPH_POOLS,
						      .lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void register_device_pools(void)
{
	qcul_at_fork(&device_pools_at_fork);
}

/* ---- under the lock ---- */

/* The last memory that was made of those with this address. Only it may not be freed yet. */
static struct qcul_graph_memory *find_graph_memory(const void *ptr)
{
	struct qcul_graph_memory *m = process.memories;

	while (m && m->ptr != ptr)
		m = m->next;
	return m;
}

static struct device_pool *device_pool_of_memory(const struct qcul_graph_memory *m)
{
	return &session.device_pools[m->params.poolProps.location.id];
}

static void set_used(struct qcul_graph_memory *m, bool used)
{
	struct device_pool *p = device_pool_of_memory(m);

	if (m->used == used || !m->epoch)
		return;
	m->used = used;
	if (used ? m->root->users++ : --m->root->users)
		return;
	if (used)
		p->used += m->root->params.bytesize;
	else
		p->used -= m->root->params.bytesize;
	if (p->used_high < p->used)
		p->used_high = p->used;
}

/* Drops a reference. True: it was the last one, and the memory is no longer in the list. The caller
 * must call give_back_graph_memory() after it releases the lock. */
static bool drop_memory_ref(struct qcul_graph_memory *m)
{
	struct qcul_graph_memory **at = &process.memories;

	if (--m->refs)
		return false;
	set_used(m, false);
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	atomic_fetch_sub(&process.count, 1);
	return true;
}

static struct device_pool read_device_pool(int device)
{
	struct device_pool p;

	pthread_mutex_lock(&at_fork.lock);
	p = session.device_pools[device];
	pthread_mutex_unlock(&at_fork.lock);
	return p;
}

static int device_of_memory(const struct qcul_graph_memory *m)
{
	return m->params.poolProps.location.id;
}

/* ---- the last use ---- */

/* Takes ownership of the event, also when it fails. */
static struct qcul_graph_use *new_use(cudaEvent_t event)
{
	struct qcul_graph_use *use = calloc(1, sizeof(*use));

	if (!use) {
		(void)cudaEventDestroy(event);
		return NULL;
	}
	use->event = event;
	use->refs = 1;
	return use;
}

static void drop_use(struct qcul_graph_use *use)
{
	bool gone;

	if (!use)
		return;
	pthread_mutex_lock(&at_fork.lock);
	gone = !--use->refs;
	pthread_mutex_unlock(&at_fork.lock);
	if (!gone)
		return;
	(void)cudaEventDestroy(use->event);
	free(use);
}

static void set_use(struct qcul_graph_memory *m, struct qcul_graph_use *use)
{
	struct qcul_graph_use *old;

	pthread_mutex_lock(&at_fork.lock);
	old = m->root->use;
	m->root->use = use;
	use->refs++;
	pthread_mutex_unlock(&at_fork.lock);
	drop_use(old);
}

/* Returns the last use, with a reference for the caller. NULL: there is none, or it is `than`. */
static struct qcul_graph_use *other_use(struct qcul_graph_memory *m,
					const struct qcul_graph_use *than)
{
	struct qcul_graph_use *use;

	pthread_mutex_lock(&at_fork.lock);
	use = m->root->use != than ? m->root->use : NULL;
	if (use)
		use->refs++;
	pthread_mutex_unlock(&at_fork.lock);
	return use;
}

/* ---- giving back ---- */

/*
 * The caller may hold the lock of captures, so this function must not take it. This is why it posts
 * the commands itself: cudaFreeAsync would look for a capture.
 */
static void post_free(const struct qcul_graph_memory *m, uint32_t stream)
{
	struct qCUcmd cmds[2] = {qcul_cmd(QCU_OP_STREAM_WAIT_EVENT), qcul_cmd(QCU_OP_FREE_ASYNC)};
	uint32_t event = m->use ? qcul_handle_id(&qcul_events, m->use->event) : 0;

	cmds[0].stream_wait_event.stream = stream;
	cmds[0].stream_wait_event.event = event;
	cmds[1].free_async.ptr = (uint64_t)(uintptr_t)m->ptr;
	cmds[1].free_async.stream = stream;
	(void)qcul_post(event ? cmds : cmds + 1, event ? 2 : 1);
}

static void release_graph_memory(struct qcul_graph_memory *m);

static void give_back_graph_memory(struct qcul_graph_memory *m)
{
	uint32_t stream = qcul_handle_id(&qcul_streams, read_device_pool(device_of_memory(m)).give);
	struct qcul_range range;

	if (m->root != m)
		release_graph_memory(m->root);
	else if (m->epoch == qcul_epoch() && stream &&
		 qcul_mem_take((uint64_t)(uintptr_t)m->ptr, QCUL_MEM_DEVICE, &range))
		post_free(m, stream);
	drop_use(m->use);
	free((void *)(uintptr_t)m->params.accessDescs);
	free(m);
}

static void release_graph_memory(struct qcul_graph_memory *m)
{
	bool gone;

	pthread_mutex_lock(&at_fork.lock);
	gone = drop_memory_ref(m);
	pthread_mutex_unlock(&at_fork.lock);
	if (gone)
		give_back_graph_memory(m);
}

/* ---- making ---- */

/* A new stream belongs to the thread's current device, so this function changes that for a moment.
 */
static cudaError_t make_streams(struct device_pool *p, int device)
{
	int before = qcul_self.device;
	cudaError_t err;

	qcul_self.device = device;
	err = cudaStreamCreateWithFlags(&p->take, cudaStreamNonBlocking);
	if (!err)
		err = cudaStreamCreateWithFlags(&p->give, cudaStreamNonBlocking);
	qcul_self.device = before;
	return err;
}

static void take_apart(const struct device_pool *p)
{
	if (p->take)
		(void)cudaStreamDestroy(p->take);
	if (p->give)
		(void)cudaStreamDestroy(p->give);
	if (p->pool)
		(void)cudaMemPoolDestroy(p->pool);
}

static cudaError_t make_device_pool(struct device_pool *p, int device)
{
	const struct cudaMemPoolProps props = {
		.allocType = cudaMemAllocationTypePinned,
		.location = {.type = cudaMemLocationTypeDevice, .id = device},
	};
	uint64_t all = UINT64_MAX;
	int off = 0;
	cudaError_t err = cudaMemPoolCreate(&p->pool, &props);

	/* The pool keeps its memory until cudaDeviceGraphMemTrim(). No allocation waits for a free
	 * in another stream. */
	if (!err)
		err = cudaMemPoolSetAttribute(p->pool, cudaMemPoolAttrReleaseThreshold, &all);
	if (!err)
		err = cudaMemPoolSetAttribute(p->pool, cudaMemPoolReuseAllowInternalDependencies,
					      &off);
	return err ? err : make_streams(p, device);
}

static cudaError_t get_device_pool(int device, struct device_pool *p)
{
	cudaError_t err = cudaSuccess;

	pthread_mutex_lock(&device_pools_at_fork.lock);
	*p = read_device_pool(device);
	if (!p->pool) {
		err = make_device_pool(p, device);
		if (err) {
			take_apart(p);
		} else {
			pthread_mutex_lock(&at_fork.lock);
			session.device_pools[device] = *p;
			pthread_mutex_unlock(&at_fork.lock);
		}
	}
	pthread_mutex_unlock(&device_pools_at_fork.lock);
	return err;
}

static cudaError_t check_alloc_params(const struct cudaMemAllocNodeParams *params)
{
	if (!params || !params->bytesize || (params->accessDescCount && !params->accessDescs) ||
	    params->accessDescCount > QCUL_DEVICES ||
	    params->poolProps.handleTypes != cudaMemHandleTypeNone)
		return cudaErrorInvalidValue;
	return qcul_pool_check(&params->poolProps);
}

static cudaError_t keep_accesses(struct qcul_graph_memory *m, const struct device_pool *p)
{
	size_t n = m->params.accessDescCount;
	struct cudaMemAccessDesc *copy = calloc(n + 1, sizeof(*copy));

	if (!copy)
		return cudaErrorMemoryAllocation;
	if (n)
		memcpy(copy, m->params.accessDescs, n * sizeof(*copy));
	m->params.accessDescs = copy;
	return n ? cudaMemPoolSetAccess(p->pool, copy, n) : cudaSuccess;
}

/* May new memory have the address of this one, by its size? */
static bool is_large_enough(const struct qcul_graph_memory *m,
			    const struct cudaMemAllocNodeParams *params)
{
	return m->freed_inside && !m->taken_over && m->epoch == qcul_epoch() &&
	       device_of_memory(m) == params->poolProps.location.id &&
	       m->root->params.bytesize >= params->bytesize;
}

static bool would_fit(const struct qcul_graph_memory *m, const struct CUgraph_st *g,
		      const struct cudaMemAllocNodeParams *params)
{
	return m->owner == g->serial && is_large_enough(m, params);
}

static bool any_would_fit(const struct CUgraph_st *g, const struct cudaMemAllocNodeParams *params)
{
	const struct qcul_graph_memory *m;

	pthread_mutex_lock(&at_fork.lock);
	for (m = process.memories; m && !would_fit(m, g, params); m = m->next)
		;
	pthread_mutex_unlock(&at_fork.lock);
	return m;
}

struct qcul_graph_memory *qcul_node_memory_take_over(const struct CUgraph_st *g,
						     struct CUgraphNode_st *const *deps,
						     size_t count,
						     const struct cudaMemAllocNodeParams *params)
{
	struct qcul_graph_memory *best = NULL, *m;
	bool *before;
	size_t i;

	if (check_alloc_params(params) || !any_would_fit(g, params))
		return NULL;
	before = qcul_nodes_before(g, deps, count);
	if (!before)
		return NULL;
	pthread_mutex_lock(&at_fork.lock);
	for (i = 0; i < g->count; i++) {
		m = g->nodes[i]->params.memory;
		if (before[i] && g->nodes[i]->params.type == cudaGraphNodeTypeMemFree &&
		    would_fit(m, g, params) &&
		    (!best || m->root->params.bytesize < best->root->params.bytesize))
			best = m;
	}
	if (best) {
		best->taken_over = true;
		best = best->root;
		best->refs++;
	}
	pthread_mutex_unlock(&at_fork.lock);
	free(before);
	return best;
}

static bool has_memory_in(const struct CUgraph_st *g, const struct qcul_graph_memory *root)
{
	size_t i;

	for (i = 0; i < g->memory_count; i++)
		if (g->memory_nodes[i]->params.memory->root == root)
			return true;
	return false;
}

bool qcul_graphs_share_memory(const struct CUgraph_st *a, const struct CUgraph_st *b)
{
	bool share = false;
	size_t i;

	pthread_mutex_lock(&at_fork.lock);
	for (i = 0; i < a->memory_count && !share; i++) {
		const struct qcul_graph_memory *root = a->memory_nodes[i]->params.memory->root;

		share = root->shared && has_memory_in(b, root);
	}
	pthread_mutex_unlock(&at_fork.lock);
	return share;
}

struct qcul_graph_memory *qcul_node_memory_of_others(const struct CUgraph_st *g,
						     const struct cudaMemAllocNodeParams *params)
{
	struct qcul_graph_memory *best = NULL, *m;

	if (check_alloc_params(params))
		return NULL;
	pthread_mutex_lock(&at_fork.lock);
	for (m = process.memories; m; m = m->next)
		if (is_large_enough(m, params) && !m->root->launching &&
		    !has_memory_in(g, m->root) &&
		    (!best || m->root->params.bytesize < best->root->params.bytesize))
			best = m;
	if (best) {
		best->taken_over = true;
		best = best->root;
		best->shared = true;
		best->refs++;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return best;
}

/* That there is no room is no error of the program's yet, so no public function allocates. */
static cudaError_t allocate_graph_memory(struct qcul_graph_memory *m,
					 const struct device_pool *from)
{
	const struct qcul_pool_use use = {
		.stream = qcul_handle_id(&qcul_streams, from->take),
		.pool = qcul_handle_id(&qcul_pools, from->pool),
		.device = device_of_memory(m),
	};
	cudaError_t err = qcul_device_alloc(&m->ptr, m->params.bytesize, &use);

	m->root = m;
	/* Wait, so that any stream may use the memory from now on. */
	return err ? err : cudaStreamSynchronize(from->take);
}

cudaError_t qcul_node_memory(struct qcul_node_params *p,
			     const struct cudaMemAllocNodeParams *params,
			     struct qcul_graph_memory *root)
{
	struct qcul_graph_memory *m = NULL;
	struct device_pool from;
	cudaError_t err = check_alloc_params(params);

	p->type = cudaGraphNodeTypeEmpty;
	if (!err)
		err = get_device_pool(params->poolProps.location.id, &from);
	if (!err) {
		m = calloc(1, sizeof(*m));
		err = m ? cudaSuccess : cudaErrorMemoryAllocation;
	}
	if (err)
		goto fail;
	m->params = *params;
	err = keep_accesses(m, &from);
	if (!err && root) {
		m->root = root;
		m->ptr = root->ptr;
	} else if (!err) {
		err = allocate_graph_memory(m, &from);
	}
	if (err) {
		if (m->params.accessDescs != params->accessDescs)
			free((void *)(uintptr_t)m->params.accessDescs);
		goto fail;
	}
	m->params.dptr = m->ptr;
	m->refs = 1;
	m->epoch = qcul_epoch();
	pthread_mutex_lock(&at_fork.lock);
	m->next = process.memories;
	process.memories = m;
	pthread_mutex_unlock(&at_fork.lock);
	atomic_fetch_add(&process.count, 1);
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeMemAlloc, .memory = m};
	return cudaSuccess;
fail:
	free(m);
	if (root)
		release_graph_memory(root);
	return err;
}

cudaError_t qcul_node_memory_free(struct qcul_node_params *p, void *ptr)
{
	struct qcul_graph_memory *m;

	p->type = cudaGraphNodeTypeEmpty;
	pthread_mutex_lock(&at_fork.lock);
	m = find_graph_memory(ptr);
	if (m)
		m->refs++;
	pthread_mutex_unlock(&at_fork.lock);
	if (!m)
		return cudaErrorInvalidValue;
	*p = (struct qcul_node_params){.type = cudaGraphNodeTypeMemFree, .memory = m};
	return cudaSuccess;
}

void qcul_node_memory_clone(const struct qcul_node_params *p)
{
	pthread_mutex_lock(&at_fork.lock);
	p->memory->refs++;
	pthread_mutex_unlock(&at_fork.lock);
}

void qcul_node_memory_release(const struct qcul_node_params *p)
{
	release_graph_memory(p->memory);
}

void *qcul_node_memory_ptr(const struct qcul_node_params *p)
{
	return p->memory->ptr;
}

static bool is_free(const struct CUgraphNode_st *n)
{
	return n->params.type == cudaGraphNodeTypeMemFree;
}

static bool frees(const struct CUgraph_st *g, const struct qcul_graph_memory *m)
{
	size_t i;

	for (i = 0; i < g->memory_count; i++)
		if (is_free(g->memory_nodes[i]) && g->memory_nodes[i]->params.memory == m)
			return true;
	return false;
}

bool qcul_graphs_free_same(const struct CUgraph_st *a, const struct CUgraph_st *b)
{
	size_t i;

	for (i = 0; i < a->memory_count; i++)
		if (is_free(a->memory_nodes[i]) && frees(b, a->memory_nodes[i]->params.memory))
			return true;
	return false;
}

cudaError_t qcul_node_memory_join(const struct CUgraph_st *g, const struct qcul_node_params *p)
{
	struct qcul_graph_memory *m = p->memory;
	cudaError_t err = cudaSuccess;
	bool mine;

	/* The list of its parent would not know the node. A body holds no memory nodes anyway. */
	if (g->is_child && !g->body_of)
		return cudaErrorInvalidValue;
	pthread_mutex_lock(&at_fork.lock);
	mine = m->owner == g->serial;
	if (p->type == cudaGraphNodeTypeMemAlloc)
		m->owner = g->serial;
	else if (m->freed_inside || (mine && m->freed_outside) || frees(g, m))
		err = cudaErrorInvalidValue;
	else if (mine)
		m->freed_inside = true;
	else
		m->freed_outside = true;
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

/* ---- executable graphs made from graphs with memory nodes ---- */

static bool allocates(const struct CUgraphNode_st *n)
{
	return n->params.type == cudaGraphNodeTypeMemAlloc;
}

cudaError_t qcul_exec_memory_begin(const struct CUgraph_st *g, cudaEvent_t end,
				   struct qcul_graph_use **use)
{
	cudaError_t err = cudaSuccess;
	size_t i;

	*use = new_use(end);
	if (!*use)
		return cudaErrorMemoryAllocation;
	pthread_mutex_lock(&at_fork.lock);
	for (i = 0; i < g->memory_count && !err; i++)
		if (allocates(g->memory_nodes[i]) && g->memory_nodes[i]->params.memory->instances)
			err = cudaErrorInvalidValue;
	for (i = 0; i < g->memory_count && !err; i++)
		if (allocates(g->memory_nodes[i]))
			g->memory_nodes[i]->params.memory->instances++;
	pthread_mutex_unlock(&at_fork.lock);
	if (err) {
		drop_use(*use);
		*use = NULL;
	}
	return err;
}

void qcul_exec_memory_end(const struct CUgraph_st *g, struct qcul_graph_use *use)
{
	size_t i;

	pthread_mutex_lock(&at_fork.lock);
	for (i = 0; i < g->memory_count; i++) {
		struct qcul_graph_memory *m = g->memory_nodes[i]->params.memory;

		if (!allocates(g->memory_nodes[i]))
			continue;
		m->instances--;
		if (!m->allocated)
			set_used(m, false);
	}
	pthread_mutex_unlock(&at_fork.lock);
	drop_use(use);
}

/*
 * May the graph be launched? Memory that the graph allocates must not be allocated yet, except with
 * auto_free. Memory that it frees must be allocated, by the graph itself or before.
 */
static cudaError_t may_launch(const struct CUgraph_st *g, bool auto_free)
{
	cudaError_t err = cudaSuccess;
	size_t i;

	for (i = 0; i < g->memory_count; i++)
		if (is_free(g->memory_nodes[i]))
			g->memory_nodes[i]->params.memory->here = false;
	for (i = 0; i < g->memory_count; i++)
		if (allocates(g->memory_nodes[i]))
			g->memory_nodes[i]->params.memory->here = true;
	for (i = 0; i < g->memory_count && !err; i++) {
		const struct qcul_graph_memory *m = g->memory_nodes[i]->params.memory;

		if (allocates(g->memory_nodes[i]) && m->allocated && !auto_free)
			err = cudaErrorInvalidValue;
		if (is_free(g->memory_nodes[i]) && !m->here && !m->allocated)
			err = cudaErrorInvalidValue;
	}
	return err;
}

/* Updates the state of the memory for a launch. The graph's nodes hold references to the memory, so
 * no reference count becomes 0 here. */
static void take_effect(const struct CUgraph_st *g)
{
	size_t i;

	for (i = 0; i < g->memory_count; i++) {
		struct qcul_graph_memory *m = g->memory_nodes[i]->params.memory;

		if (!allocates(g->memory_nodes[i]))
			continue;
		set_used(m, true);
		m->refs += !m->allocated;
		m->allocated = true;
	}
	for (i = 0; i < g->memory_count; i++) {
		struct qcul_graph_memory *m = g->memory_nodes[i]->params.memory;

		if (!is_free(g->memory_nodes[i]))
			continue;
		m->refs -= m->allocated;
		m->allocated = false;
		set_used(m, m->instances > 0);
	}
}

/* For the memory that the graph allocates or frees: makes the stream wait for the last use, unless
 * this is the instance's own (`mine`). */
static cudaError_t wait_for_others(const struct CUgraph_st *g, cudaStream_t stream,
				   const struct qcul_graph_use *mine)
{
	struct qcul_graph_use *use = NULL, *next;
	cudaError_t err = cudaSuccess;
	size_t i;

	for (i = 0; i < g->memory_count && !err; i++) {
		next = other_use(g->memory_nodes[i]->params.memory, mine);
		if (next && next != use)
			err = cudaStreamWaitEvent(stream, next->event, 0);
		drop_use(use);
		use = next;
	}
	drop_use(use);
	return err;
}

/*
 * Counts the graph's launch in the roots of its memory, or no longer. While it is counted, no other
 * graph begins to share the memory. True: another graph shares some of it.
 */
static bool count_launch(const struct CUgraph_st *g, bool begins)
{
	bool shared = false;
	size_t i;

	pthread_mutex_lock(&at_fork.lock);
	for (i = 0; i < g->memory_count; i++) {
		struct qcul_graph_memory *root = g->memory_nodes[i]->params.memory->root;

		root->launching += begins ? 1 : -1;
		shared |= root->shared;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return shared;
}

cudaError_t qcul_exec_memory_launch(const struct CUgraph_st *g, bool auto_free, cudaStream_t stream,
				    struct qcul_graph_use *use)
{
	cudaError_t err;

	/* Each launch waits for the last use, so the one before must have been sent. */
	if (count_launch(g, true))
		pthread_mutex_lock(&device_pools_at_fork.lock);
	pthread_mutex_lock(&at_fork.lock);
	err = may_launch(g, auto_free);
	if (!err)
		take_effect(g);
	pthread_mutex_unlock(&at_fork.lock);
	if (!err)
		err = wait_for_others(g, stream, use);
	if (err)
		qcul_exec_memory_launched(g, use, err);
	return err;
}

void qcul_exec_memory_launched(const struct CUgraph_st *g, struct qcul_graph_use *use,
			       cudaError_t err)
{
	size_t i;

	for (i = 0; i < g->memory_count && !err; i++)
		set_use(g->memory_nodes[i]->params.memory, use);
	if (count_launch(g, false))
		pthread_mutex_unlock(&device_pools_at_fork.lock);
}

bool qcul_same_memory(const struct qcul_node_params *a, const struct qcul_node_params *b)
{
	return a->memory == b->memory;
}

/* ---- freeing with cudaFree and cudaFreeAsync ---- */

bool qcul_memory_of_graphs(const void *ptr)
{
	bool is;

	if (!atomic_load_explicit(&process.count, memory_order_relaxed))
		return false;
	pthread_mutex_lock(&at_fork.lock);
	is = find_graph_memory(ptr);
	pthread_mutex_unlock(&at_fork.lock);
	return is;
}

/* Marks the memory as free. The caller gets the reference that `allocated` stands for, and must
 * release it. */
static cudaError_t take_allocated(void *ptr, struct qcul_graph_memory **m)
{
	cudaError_t err = cudaErrorInvalidValue;

	pthread_mutex_lock(&at_fork.lock);
	*m = find_graph_memory(ptr);
	if (*m && (*m)->allocated) {
		(*m)->allocated = false;
		set_used(*m, (*m)->instances > 0);
		err = cudaSuccess;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return err;
}

cudaError_t qcul_memory_of_graphs_free_async(void *ptr, cudaStream_t stream)
{
	struct qcul_graph_memory *m;
	struct qcul_graph_use *use;
	cudaEvent_t event;
	cudaError_t err = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);

	if (err)
		return err;
	use = new_use(event);
	if (!use)
		return cudaErrorMemoryAllocation;
	err = take_allocated(ptr, &m);
	if (!err) {
		err = cudaEventRecord(event, stream);
		if (!err)
			set_use(m, use);
		release_graph_memory(m);
	}
	drop_use(use);
	return err;
}

cudaError_t qcul_memory_of_graphs_free(void *ptr)
{
	struct qcul_graph_memory *m;
	cudaError_t err = qcul_devices_idle();

	if (!err)
		err = take_allocated(ptr, &m);
	if (!err)
		release_graph_memory(m);
	return err;
}

/* ---- for queries ---- */

struct qcul_graph_usage qcul_graph_usage(int device)
{
	struct device_pool p = read_device_pool(device);

	return (struct qcul_graph_usage){.pool = p.pool, .used = p.used, .used_high = p.used_high};
}

void qcul_graph_usage_restart(int device)
{
	pthread_mutex_lock(&at_fork.lock);
	session.device_pools[device].used_high = session.device_pools[device].used;
	pthread_mutex_unlock(&at_fork.lock);
}

const struct cudaMemAllocNodeParams *qcul_node_memory_params(const struct qcul_node_params *p)
{
	return &p->memory->params;
}
