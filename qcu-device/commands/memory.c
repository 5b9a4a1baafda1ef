// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Device memory and the window. The mirror remembers each allocation, so that the guest can free
 * only what it was given. The commands that bring chunks into the window and take them out are
 * here, too.
 */
#include <search.h>
#include <stdlib.h>

#include "qcu-device/base/sorted.h"
#include "qcu-device/commands/commands.h"

struct allocation {
	uint64_t addr, size;
	unsigned int device;
	bool pooled;	     /* allocated by MALLOC_ASYNC */
	struct handle *pool; /* held; NULL: a default pool, or no pool */
	bool shared;	     /* `token` is valid, for other processes */
	struct qcu_ipc_token token;
	LIST_ENTRY(allocation) link;
};

static int new_allocation(struct call *c, uint64_t size, struct allocation **out)
{
	int rc = mir_take(c, LIMIT_ALLOCATIONS, 1);
	struct allocation *a;

	if (rc)
		return rc;
	a = calloc(1, sizeof(*a));
	if (!a) {
		mir_give(c->m, LIMIT_ALLOCATIONS, 1);
		return QCU_ERR_MemoryAllocation;
	}
	a->size = size;
	a->device = c->cmd->device;
	*out = a;
	return QCU_ERR_Success;
}

/* Frees the record of an allocation that has no memory, or no memory any more. */
static void drop_allocation(struct mirror *m, struct allocation *a)
{
	mir_give(m, LIMIT_ALLOCATIONS, 1);
	handles_put(&m->handles, a->pool);
	free(a);
}

/* The memory has been freed: gives back what it counted as, and frees the record. */
static void end_allocation(struct mirror *m, struct allocation *a)
{
	count_sub(m->counts, COUNT_DEVICE, a->size);
	if (a->pooled)
		mir_pool_given(m, a->device, a->size);
	else if (!m->cfg.ops->charges)
		mir_give_memory(m, a->device, a->size);
	drop_allocation(m, a);
}

/* Frees the memory when no command uses it any more. s: for pool_free; NULL: for mem_free. */
static int free_memory(struct mirror *m, const struct allocation *a, struct be_stream *s)
{
	struct held_leaving leaving;
	int rc;

	held_leave(&m->held, &leaving, a->addr, a->size);
	rc = s ? m->cfg.ops->pool_free(m->be, a->addr, s) : m->cfg.ops->mem_free(m->be, a->addr);
	held_gone(&m->held, &leaving);
	return rc;
}

/* From now on the guest can free the allocation. Takes `a` over, also when it fails. */
static int remember_allocation(struct mirror *m, struct allocation *a)
{
	void *node;

	pthread_mutex_lock(&m->lock);
	node = tsearch(a, &m->allocations, sorted_compare);
	if (node)
		LIST_INSERT_HEAD(&m->allocation_list, a, link);
	pthread_mutex_unlock(&m->lock);
	count_add(m->counts, COUNT_DEVICE, a->size);
	if (!node) {
		(void)free_memory(m, a, NULL);
		end_allocation(m, a);
		return QCU_ERR_MemoryAllocation;
	}
	return QCU_ERR_Success;
}

/* Returns the allocation by MALLOC that begins at `addr`, or NULL. The caller holds m->lock. */
static struct allocation *find_allocation(struct mirror *m, uint64_t addr)
{
	struct allocation key = {.addr = addr}, **node;

	node = tfind(&key, &m->allocations, sorted_compare);
	return node && !(*node)->pooled ? *node : NULL;
}

bool mir_allocation_size(struct mirror *m, uint64_t addr, uint64_t *size, unsigned int *device)
{
	const struct allocation *a;

	pthread_mutex_lock(&m->lock);
	a = find_allocation(m, addr);
	if (a) {
		*size = a->size;
		*device = a->device;
	}
	pthread_mutex_unlock(&m->lock);
	return a;
}

bool mir_allocation_at(struct mirror *m, uint64_t addr, uint64_t *size, unsigned int *device)
{
	struct allocation key = {.addr = addr}, **node;

	pthread_mutex_lock(&m->lock);
	node = tfind(&key, &m->allocations, sorted_compare);
	if (node) {
		*size = (*node)->size;
		*device = (*node)->device;
	}
	pthread_mutex_unlock(&m->lock);
	return node;
}

size_t mir_allocations(struct mirror *m)
{
	const struct allocation *a;
	size_t count = 0;

	pthread_mutex_lock(&m->lock);
	LIST_FOREACH(a, &m->allocation_list, link)
		count++;
	pthread_mutex_unlock(&m->lock);
	return count;
}

bool mir_allocation_share(struct mirror *m, uint64_t addr, const struct qcu_ipc_token *token)
{
	struct allocation *a;
	bool ok;

	pthread_mutex_lock(&m->lock);
	a = find_allocation(m, addr);
	ok = a && !a->shared;
	if (ok) {
		a->shared = true;
		a->token = *token;
	}
	pthread_mutex_unlock(&m->lock);
	return ok;
}

int mir_allocation_shared(struct mirror *m, uint64_t addr, struct qcu_ipc_token *token)
{
	const struct allocation *a;
	int rc = QCU_ERR_InvalidValue;

	pthread_mutex_lock(&m->lock);
	a = find_allocation(m, addr);
	if (a) {
		rc = a->shared ? QCU_ERR_Success : QCU_ERR_NotReady;
		*token = a->token;
	}
	pthread_mutex_unlock(&m->lock);
	return rc;
}

/*
 * Returns the allocation that begins at `addr`, and no longer remembers it. NULL: none begins
 * there.
 */
static struct allocation *forget_allocation(struct mirror *m, uint64_t addr, bool pooled_only)
{
	struct allocation key = {.addr = addr}, **node, *a = NULL;

	pthread_mutex_lock(&m->lock);
	node = tfind(&key, &m->allocations, sorted_compare);
	if (node && ((*node)->pooled || !pooled_only)) {
		a = *node;
		tdelete(a, &m->allocations, sorted_compare);
		LIST_REMOVE(a, link);
	}
	pthread_mutex_unlock(&m->lock);
	/*
	 * End the share before the memory is freed. Otherwise another process could open the
	 * address when the memory already belongs to something else.
	 */
	if (a && a->shared)
		mir_share_end(m, &a->token);
	return a;
}

int mir_do_malloc(struct call *c)
{
	struct mirror *m = c->m;
	struct allocation *a;
	int rc;

	if (!c->cmd->malloc.size)
		return QCU_ERR_Success;
	rc = new_allocation(c, c->cmd->malloc.size, &a);
	if (rc)
		return rc;
	if (!m->cfg.ops->charges)
		rc = mir_take_memory_from_pools(m, a->device, a->size);
	if (!rc) {
		rc = m->cfg.ops->mem_alloc(m->be, a->device, a->size, &a->addr);
		if (rc && !m->cfg.ops->charges)
			mir_give_memory(m, a->device, a->size);
	}
	if (rc) {
		drop_allocation(m, a);
		return rc;
	}
	c->cmd->malloc.ptr = a->addr;
	rc = remember_allocation(m, a);
	if (rc)
		c->cmd->malloc.ptr = 0;
	return rc;
}

int mir_do_free(struct call *c)
{
	struct mirror *m = c->m;
	struct allocation *a;
	int rc;

	if (!c->cmd->free.ptr)
		return QCU_ERR_Success;
	a = forget_allocation(m, c->cmd->free.ptr, false);
	if (!a)
		return QCU_ERR_InvalidValue;
	c->waited = true;
	rc = free_memory(m, a, NULL);
	end_allocation(m, a);
	return rc;
}

static int alloc_from(struct call *c, const struct pool_ref *p, struct be_stream *s,
		      struct allocation *a)
{
	const struct be_ops *ops = c->m->cfg.ops;
	int rc = mir_take_memory_from_pools(c->m, p->device, a->size), err;

	if (rc)
		return rc;
	rc = ops->pool_alloc(c->m->be, p->p, a->size, s, &a->addr);
	err = mir_pool_taken(c, p, a->size, !rc);
	if (rc || !err)
		return rc;
	(void)free_memory(c->m, a, s);
	return err;
}

int mir_do_malloc_async(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_malloc_async *ma = &c->cmd->malloc_async;
	struct allocation *a;
	struct stream_ref s;
	struct pool_ref p;
	int rc;

	if (!ma->size)
		return QCU_ERR_InvalidValue;
	rc = mir_pool_get(c, ma->pool, &p);
	if (rc)
		return rc;
	rc = mir_stream_get(c, ma->stream, &s);
	if (rc)
		goto put_pool;
	rc = new_allocation(c, ma->size, &a);
	if (rc)
		goto put_stream;
	a->pooled = true;
	a->device = p.device;
	a->pool = p.h ? handle_hold(&m->handles, p.h) : NULL;
	rc = alloc_from(c, &p, s.s, a);
	if (rc) {
		drop_allocation(m, a);
		goto put_stream;
	}
	ma->ptr = a->addr;
	rc = remember_allocation(m, a);
	if (rc)
		ma->ptr = 0;
put_stream:
	mir_stream_put(c, &s);
put_pool:
	mir_pool_put(c, &p);
	return rc;
}

int mir_do_free_async(struct call *c)
{
	struct mirror *m = c->m;
	struct allocation *a;
	struct stream_ref s;
	int rc;

	rc = mir_stream_get(c, c->cmd->free_async.stream, &s);
	if (rc)
		return rc;
	a = forget_allocation(m, c->cmd->free_async.ptr, true);
	rc = a ? free_memory(m, a, s.s) : (int)QCU_ERR_InvalidValue;
	if (a)
		end_allocation(m, a);
	mir_stream_put(c, &s);
	return rc;
}

/* Frees the remaining allocations. Errors are ignored: there is no caller to report them to. */
void mir_allocations_end(struct mirror *m, const unsigned int *device)
{
	struct allocation *a, *next;
	struct allocation_list list = LIST_HEAD_INITIALIZER(list);

	pthread_mutex_lock(&m->lock);
	for (a = LIST_FIRST(&m->allocation_list); a; a = next) {
		next = LIST_NEXT(a, link);
		if (device && a->device != *device)
			continue;
		tdelete(a, &m->allocations, sorted_compare);
		LIST_REMOVE(a, link);
		LIST_INSERT_HEAD(&list, a, link);
	}
	pthread_mutex_unlock(&m->lock);
	while ((a = LIST_FIRST(&list))) {
		LIST_REMOVE(a, link);
		if (a->shared)
			mir_share_end(m, &a->token);
		m->cfg.ops->mem_free(m->be, a->addr);
		end_allocation(m, a);
	}
}

/* ---- the window ---- */

int mir_do_map(struct call *c)
{
	const struct qcu_map *map = &c->cmd->map;
	int rc;

	rc = mir_take_mapping(c, map->len);
	if (rc)
		return rc;
	rc = window_map_chunks(&c->m->window, map->va, map->len, c->req->segs, c->req->seg_count,
			       map->chunk_bytes);
	mir_mapping_ends(c->m);
	return rc;
}

int mir_do_unmap(struct call *c)
{
	const struct qcu_unmap *unmap = &c->cmd->unmap;
	int rc;

	mir_watch_leaves(c->m, unmap->va, unmap->len);
	rc = window_unmap(&c->m->window, unmap->va, unmap->len);
	mir_watch_leaves(c->m, 0, 0);
	mir_count_mapped(c->m);
	return rc;
}

/* cudaHostAllocPortable, Mapped and WriteCombined; cudaHostRegisterReadOnly. */
#define HOST_FLAGS 0xfu

int mir_do_host_register(struct call *c)
{
	struct qcu_host_register *r = &c->cmd->host_register;

	if (!r->buf.len || r->flags & ~HOST_FLAGS)
		return QCU_ERR_InvalidValue;
	r->device = r->buf.addr;
	return window_pin(&c->m->window, r->buf.addr, r->buf.len);
}

/* The chunks stay registered until they leave the window. This makes the next use cheap. */
int mir_do_host_unregister(struct call *c)
{
	const struct qcu_host_unregister *u = &c->cmd->host_unregister;
	const struct be_ops *ops = c->m->cfg.ops;
	unsigned int dev;
	int rc = QCU_ERR_Success, err;

	if (!u->len || !window_pinned(&c->m->window, u->addr, u->len, NULL))
		return QCU_ERR_HostMemoryNotRegistered;
	/*
	 * Native CUDA returns from this call only when nothing uses the memory any more: the
	 * program may free the memory next.
	 */
	c->waited = true;
	for (dev = 0; dev < c->m->devices; dev++) {
		err = ops->device_sync(c->m->be, dev);
		rc = rc ? rc : err;
	}
	return rc;
}
