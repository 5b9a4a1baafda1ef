// SPDX-License-Identifier: GPL-2.0-or-later
/* Made by scripts/commands/generate from include/commands.list; do not edit. */
#include "qcu-device/commands/made.h"

int mir_do_stream_create(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_stream_create *r = &c->cmd->stream_create;
	struct handle *stream;
	int rc;

	if (!handles_free(handles, HANDLE_STREAM, r->stream))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_STREAM, &stream);
	if (rc)
		return rc;
	stream->device = c->cmd->device;
	rc = c->m->cfg.ops->stream_create(c->m->be, c->cmd->device, r->flags, r->priority,
					  &stream->stream);
	if (rc) {
		mir_handle_drop(c->m, stream);
		return rc;
	}
	rc = handles_add(handles, r->stream, stream);
	if (rc)
		handles_put(handles, stream);
	return rc;
}

int mir_do_stream_destroy(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_stream_destroy *r = &c->cmd->stream_destroy;

	return handles_remove(handles, HANDLE_STREAM, r->stream) ? QCU_ERR_Success
								 : QCU_ERR_InvalidResourceHandle;
}

int mir_do_stream_wait_event(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_stream_wait_event *r = &c->cmd->stream_wait_event;
	struct stream_ref stream;
	struct handle *event;
	int rc;

	rc = mir_stream_get(c, r->stream, &stream);
	if (rc)
		return rc;
	event = handles_get(handles, HANDLE_EVENT, r->event);
	if (!event) {
		mir_stream_put(c, &stream);
		return QCU_ERR_InvalidResourceHandle;
	}
	rc = c->m->cfg.ops->stream_wait_event(c->m->be, stream.s, event->event, r->flags);
	handles_put(handles, event);
	mir_stream_put(c, &stream);
	return rc;
}

int mir_do_stream_attr_set(struct call *c)
{
	struct qcu_stream_attr_set *r = &c->cmd->stream_attr_set;
	struct stream_ref stream;
	int rc;

	if (!mir_stream_attr_good(c, r->attr, r->value))
		return QCU_ERR_InvalidValue;
	rc = mir_stream_get(c, r->stream, &stream);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->stream_attr_set(c->m->be, stream.s, r->attr, r->value);
	mir_stream_put(c, &stream);
	return rc;
}

int mir_do_stream_attr_get(struct call *c)
{
	struct qcu_stream_attr_get *r = &c->cmd->stream_attr_get;
	struct stream_ref stream;
	int rc;

	if (!mir_stream_attr_known(r->attr))
		return QCU_ERR_InvalidValue;
	rc = mir_stream_get(c, r->stream, &stream);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->stream_attr_get(c->m->be, stream.s, r->attr, r->value);
	mir_stream_put(c, &stream);
	return rc;
}

int mir_do_stream_attr_copy(struct call *c)
{
	struct qcu_stream_attr_copy *r = &c->cmd->stream_attr_copy;
	struct stream_ref to;
	struct stream_ref from;
	int rc;

	rc = mir_stream_get(c, r->to, &to);
	if (rc)
		return rc;
	rc = mir_stream_get(c, r->from, &from);
	if (rc) {
		mir_stream_put(c, &to);
		return rc;
	}
	rc = c->m->cfg.ops->stream_attr_copy(c->m->be, to.s, from.s);
	mir_stream_put(c, &from);
	mir_stream_put(c, &to);
	return rc;
}

int mir_do_event_create(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_event_create *r = &c->cmd->event_create;
	struct handle *event;
	int rc;

	if (!handles_free(handles, HANDLE_EVENT, r->event))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_EVENT, &event);
	if (rc)
		return rc;
	event->device = c->cmd->device;
	rc = c->m->cfg.ops->event_create(c->m->be, c->cmd->device, r->flags, &event->event);
	if (rc) {
		mir_handle_drop(c->m, event);
		return rc;
	}
	rc = handles_add(handles, r->event, event);
	if (rc)
		handles_put(handles, event);
	return rc;
}

int mir_do_event_destroy(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_event_destroy *r = &c->cmd->event_destroy;

	return handles_remove(handles, HANDLE_EVENT, r->event) ? QCU_ERR_Success
							       : QCU_ERR_InvalidResourceHandle;
}

int mir_do_event_sync(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_event_sync *r = &c->cmd->event_sync;
	struct handle *event;
	int rc;

	event = handles_get(handles, HANDLE_EVENT, r->event);
	if (!event)
		return QCU_ERR_InvalidResourceHandle;
	c->waited = true;
	rc = c->m->cfg.ops->event_sync(c->m->be, event->event);
	handles_put(handles, event);
	return rc;
}

int mir_do_peer_access(struct call *c)
{
	struct qcu_peer_access *r = &c->cmd->peer_access;

	if (r->peer >= c->m->devices || r->peer == c->cmd->device)
		return QCU_ERR_InvalidDevice;
	if (r->enable > 1)
		return QCU_ERR_InvalidValue;
	return c->m->cfg.ops->peer_access(c->m->be, c->cmd->device, r->peer, r->enable);
}

int mir_do_peer_info(struct call *c)
{
	struct qcu_peer_info *r = &c->cmd->peer_info;

	if (!mir_peer_attr_known(r->attr))
		return QCU_ERR_InvalidValue;
	if (!(r->attr >= QCU_PEER_HOST_ATOMICS ||
	      (r->peer < c->m->devices && r->peer != c->cmd->device)))
		return QCU_ERR_InvalidDevice;
	return c->m->cfg.ops->peer_info(c->m->be, c->cmd->device, r->peer, r->attr, &r->value);
}

int mir_do_occupancy(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_occupancy *r = &c->cmd->occupancy;
	struct handle *kernel;
	int rc;

	kernel = handles_get(handles, HANDLE_KERNEL, r->kernel);
	if (!kernel)
		return QCU_ERR_InvalidResourceHandle;
	rc = c->m->cfg.ops->occupancy(c->m->be, c->cmd->device, kernel->kernel, r->block_threads,
				      r->dynamic_shared, r->flags, &r->blocks);
	handles_put(handles, kernel);
	return rc;
}

int mir_do_occupancy_shared(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_occupancy_shared *r = &c->cmd->occupancy_shared;
	uint64_t bytes = 0;
	struct handle *kernel;
	int rc;

	if (r->rsvd)
		return QCU_ERR_InvalidValue;
	kernel = handles_get(handles, HANDLE_KERNEL, r->kernel);
	if (!kernel)
		return QCU_ERR_InvalidResourceHandle;
	rc = c->m->cfg.ops->occupancy_shared(c->m->be, c->cmd->device, kernel->kernel, r->blocks,
					     r->block_threads, &bytes);
	r->bytes = bytes;
	handles_put(handles, kernel);
	return rc;
}

int mir_do_func_set(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_func_set *r = &c->cmd->func_set;
	struct handle *kernel;
	int rc;

	kernel = handles_get(handles, HANDLE_KERNEL, r->kernel);
	if (!kernel)
		return QCU_ERR_InvalidResourceHandle;
	rc = c->m->cfg.ops->kernel_set(c->m->be, c->cmd->device, kernel->kernel, r->attr, r->value);
	handles_put(handles, kernel);
	return rc;
}

int mir_do_cond_destroy(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_cond_destroy *r = &c->cmd->cond_destroy;

	return handles_remove(handles, HANDLE_COND, r->cond) ? QCU_ERR_Success
							     : QCU_ERR_InvalidResourceHandle;
}

int mir_do_graph_destroy(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_graph_destroy *r = &c->cmd->graph_destroy;

	return handles_remove(handles, HANDLE_GRAPH, r->graph) ? QCU_ERR_Success
							       : QCU_ERR_InvalidResourceHandle;
}

int mir_do_limit_set(struct call *c)
{
	struct qcu_limit_set *r = &c->cmd->limit_set;

	if (r->rsvd)
		return QCU_ERR_InvalidValue;
	return mir_limit_set(c, r);
}

int mir_do_limit_get(struct call *c)
{
	struct qcu_limit_get *r = &c->cmd->limit_get;
	uint64_t value = 0;
	int rc;

	if (r->rsvd)
		return QCU_ERR_InvalidValue;
	rc = c->m->cfg.ops->limit_get(c->m->be, c->cmd->device, r->limit, &value);
	r->value = value;
	return rc;
}

int mir_do_pool_create(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_pool_create *r = &c->cmd->pool_create;
	struct handle *pool;
	int rc;

	if (r->rsvd)
		return QCU_ERR_InvalidValue;
	if (!handles_free(handles, HANDLE_POOL, r->pool))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_POOL, &pool);
	if (rc)
		return rc;
	pool->device = c->cmd->device;
	rc = c->m->cfg.ops->pool_create(c->m->be, c->cmd->device, r->max_size, &pool->pool);
	if (rc) {
		mir_handle_drop(c->m, pool);
		return rc;
	}
	rc = handles_add(handles, r->pool, pool);
	if (rc)
		handles_put(handles, pool);
	return rc;
}

int mir_do_pool_destroy(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_pool_destroy *r = &c->cmd->pool_destroy;

	return handles_remove(handles, HANDLE_POOL, r->pool) ? QCU_ERR_Success
							     : QCU_ERR_InvalidResourceHandle;
}

int mir_do_pool_set(struct call *c)
{
	struct qcu_pool_set *r = &c->cmd->pool_set;
	struct pool_ref pool;
	int rc;

	if (r->attr < 1 || r->attr > 8)
		return QCU_ERR_InvalidValue;
	rc = mir_pool_get(c, r->pool, &pool);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_set(c->m->be, pool.p, r->attr, r->value);
	mir_pool_put(c, &pool);
	return rc;
}

int mir_do_pool_get(struct call *c)
{
	struct qcu_pool_get *r = &c->cmd->pool_get;
	uint64_t value = 0;
	struct pool_ref pool;
	int rc;

	if (r->attr < 1 || r->attr > 8)
		return QCU_ERR_InvalidValue;
	rc = mir_pool_get(c, r->pool, &pool);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_get(c->m->be, pool.p, r->attr, &value);
	r->value = value;
	mir_pool_put(c, &pool);
	return rc;
}

int mir_do_pool_trim(struct call *c)
{
	struct qcu_pool_trim *r = &c->cmd->pool_trim;
	struct pool_ref pool;
	int rc;

	if (r->rsvd)
		return QCU_ERR_InvalidValue;
	rc = mir_pool_get(c, r->pool, &pool);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_trim(c->m->be, pool.p, r->keep);
	mir_pool_put(c, &pool);
	return rc;
}

int mir_do_pool_access_set(struct call *c)
{
	struct qcu_pool_access_set *r = &c->cmd->pool_access_set;
	struct pool_ref pool;
	int rc;

	if (r->peer >= c->m->devices)
		return QCU_ERR_InvalidDevice;
	rc = mir_pool_get(c, r->pool, &pool);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_access_set(c->m->be, pool.p, r->peer, r->flags);
	mir_pool_put(c, &pool);
	return rc;
}

int mir_do_pool_access_get(struct call *c)
{
	struct qcu_pool_access_get *r = &c->cmd->pool_access_get;
	struct pool_ref pool;
	int rc;

	if (r->peer >= c->m->devices)
		return QCU_ERR_InvalidDevice;
	rc = mir_pool_get(c, r->pool, &pool);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_access_get(c->m->be, pool.p, r->peer, &r->flags);
	mir_pool_put(c, &pool);
	return rc;
}

int mir_do_array_destroy(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_array_destroy *r = &c->cmd->array_destroy;

	c->waited = true;
	return handles_remove(handles, HANDLE_ARRAY, r->array) ? QCU_ERR_Success
							       : QCU_ERR_InvalidResourceHandle;
}

int mir_do_link_destroy(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_link_destroy *r = &c->cmd->link_destroy;

	return handles_remove(handles, HANDLE_LINK, r->link) ? QCU_ERR_Success
							     : QCU_ERR_InvalidResourceHandle;
}

int mir_do_va_reserve(struct call *c)
{
	struct qcu_va_reserve *r = &c->cmd->va_reserve;

	if (!(r->size && !(r->align & (r->align - 1))))
		return QCU_ERR_InvalidValue;
	return mir_va_reserve(c, r);
}

int mir_do_va_free(struct call *c)
{
	struct qcu_va_free *r = &c->cmd->va_free;

	if (!mir_range_good(r->addr, r->size))
		return QCU_ERR_InvalidValue;
	return mir_va_free(c, r);
}

int mir_do_phys_create(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_phys_create *r = &c->cmd->phys_create;
	struct handle *mem;
	int rc;

	if (r->flags & ~QCU_PHYS_FLAGS)
		return QCU_ERR_InvalidValue;
	if (!(r->size))
		return QCU_ERR_InvalidValue;
	if (!handles_free(handles, HANDLE_PHYS, r->mem))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_PHYS, &mem);
	if (rc)
		return rc;
	mem->device = c->cmd->device;
	rc = mir_phys_create(c, r, mem);
	if (rc) {
		mir_handle_drop(c->m, mem);
		return rc;
	}
	rc = handles_add(handles, r->mem, mem);
	if (rc)
		handles_put(handles, mem);
	return rc;
}

int mir_do_phys_release(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_phys_release *r = &c->cmd->phys_release;

	return handles_remove(handles, HANDLE_PHYS, r->mem) ? QCU_ERR_Success
							    : QCU_ERR_InvalidResourceHandle;
}

int mir_do_phys_map(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_phys_map *r = &c->cmd->phys_map;
	struct handle *mem;
	int rc;

	if (r->rsvd)
		return QCU_ERR_InvalidValue;
	if (!mir_range_good(r->addr, r->size))
		return QCU_ERR_InvalidValue;
	mem = handles_get(handles, HANDLE_PHYS, r->mem);
	if (!mem)
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_phys_map(c, r, mem);
	handles_put(handles, mem);
	return rc;
}

int mir_do_phys_unmap(struct call *c)
{
	struct qcu_phys_unmap *r = &c->cmd->phys_unmap;

	if (!mir_range_good(r->addr, r->size))
		return QCU_ERR_InvalidValue;
	return mir_phys_unmap(c, r);
}

int mir_do_phys_access_set(struct call *c)
{
	struct qcu_phys_access_set *r = &c->cmd->phys_access_set;

	if (r->peer >= c->m->devices)
		return QCU_ERR_InvalidDevice;
	if (!mir_range_good(r->addr, r->size))
		return QCU_ERR_InvalidValue;
	if (!mir_access_known(r->flags))
		return QCU_ERR_InvalidValue;
	return mir_phys_access_set(c, r);
}

int mir_do_phys_access_get(struct call *c)
{
	struct qcu_phys_access_get *r = &c->cmd->phys_access_get;

	if (r->peer >= c->m->devices)
		return QCU_ERR_InvalidDevice;
	return mir_phys_access_get(c, r);
}

int mir_do_phys_grain(struct call *c)
{
	struct qcu_phys_grain *r = &c->cmd->phys_grain;
	uint64_t bytes = 0;
	int rc;

	if (r->rsvd)
		return QCU_ERR_InvalidValue;
	if (r->recommended > 1)
		return QCU_ERR_InvalidValue;
	rc = c->m->cfg.ops->phys_grain(c->m->be, c->cmd->device, r->recommended, &bytes);
	r->bytes = bytes;
	return rc;
}

int mir_do_phys_export(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_phys_export *r = &c->cmd->phys_export;
	struct handle *mem;
	int rc;

	if (r->rsvd)
		return QCU_ERR_InvalidValue;
	mem = handles_get(handles, HANDLE_PHYS, r->mem);
	if (!mem)
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_phys_export(c, r, mem);
	handles_put(handles, mem);
	return rc;
}

int mir_do_phys_import(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_phys_import *r = &c->cmd->phys_import;
	struct handle *mem;
	int rc;

	if (r->rsvd)
		return QCU_ERR_InvalidValue;
	if (!handles_free(handles, HANDLE_PHYS, r->mem))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_PHYS, &mem);
	if (rc)
		return rc;
	mem->device = c->cmd->device;
	rc = mir_phys_import(c, r, mem);
	if (rc) {
		mir_handle_drop(c->m, mem);
		return rc;
	}
	rc = handles_add(handles, r->mem, mem);
	if (rc)
		handles_put(handles, mem);
	return rc;
}

int mir_do_green_parts(struct call *c)
{
	struct qcu_green_parts *r = &c->cmd->green_parts;

	if (r->groups > QCU_GREEN_GROUPS)
		return QCU_ERR_InvalidValue;
	if (r->flags & ~3)
		return QCU_ERR_InvalidValue;
	return mir_green_parts(c, r);
}

int mir_do_green_create(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_green_create *r = &c->cmd->green_create;
	struct handle *green;
	int rc;

	if (r->groups > QCU_GREEN_GROUPS)
		return QCU_ERR_InvalidValue;
	if (r->flags & ~3)
		return QCU_ERR_InvalidValue;
	if (!handles_free(handles, HANDLE_GREEN, r->green))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_GREEN, &green);
	if (rc)
		return rc;
	green->device = c->cmd->device;
	rc = mir_green_create(c, r, green);
	if (rc) {
		mir_handle_drop(c->m, green);
		return rc;
	}
	rc = handles_add(handles, r->green, green);
	if (rc)
		handles_put(handles, green);
	return rc;
}

int mir_do_green_destroy(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_green_destroy *r = &c->cmd->green_destroy;

	return handles_remove(handles, HANDLE_GREEN, r->green) ? QCU_ERR_Success
							       : QCU_ERR_InvalidResourceHandle;
}

int mir_do_green_stream(struct call *c)
{
	struct handles *handles = &c->m->handles;
	struct qcu_green_stream *r = &c->cmd->green_stream;
	struct handle *stream;
	int rc;

	if (r->flags < 1 || r->flags > 1)
		return QCU_ERR_InvalidValue;
	if (!handles_free(handles, HANDLE_STREAM, r->stream))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_STREAM, &stream);
	if (rc)
		return rc;
	stream->device = c->cmd->device;
	rc = mir_green_stream(c, r, stream);
	if (rc) {
		mir_handle_drop(c->m, stream);
		return rc;
	}
	rc = handles_add(handles, r->stream, stream);
	if (rc)
		handles_put(handles, stream);
	return rc;
}
