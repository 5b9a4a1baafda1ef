// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory pools: the commands about them, and which pool the number in a command names. */
#include <stdlib.h>

#include "qcu-device/commands/commands.h"

/* cudaMemPoolAttrReservedMemCurrent */
#define RESERVED 5u

int mir_pool_get(struct call *c, uint32_t id, struct pool_ref *ref)
{
	*ref = (struct pool_ref){.device = c->cmd->device};
	if (!id) {
		MIR_NEED(c, pool_default);
		ref->room = &c->m->default_room[ref->device];
		return c->m->cfg.ops->pool_default(c->m->be, c->cmd->device, &ref->p);
	}
	ref->h = handles_get(&c->m->handles, HANDLE_POOL, id);
	if (!ref->h)
		return QCU_ERR_InvalidResourceHandle;
	ref->p = ref->h->pool;
	ref->device = ref->h->device;
	ref->room = &ref->h->room;
	return QCU_ERR_Success;
}

void mir_pool_put(struct call *c, struct pool_ref *ref)
{
	handles_put(&c->m->handles, ref->h);
}

/*
 * A pool keeps memory that has been freed. So if there is a limit, it counts what pools have
 * reserved, and the mirror asks the backend for that number. Without a limit the mirror just adds
 * up the sizes of the allocations.
 */
static bool is_memory_limited(const struct mirror *m)
{
	return m->cfg.ops->pool_get && m->cfg.ops->pool_trim &&
	       (m->budget.limits.session[LIMIT_DEVICE_MEMORY] != LIMIT_NONE ||
		m->budget.limits.vm[LIMIT_DEVICE_MEMORY] != LIMIT_NONE);
}

/* The caller holds m->pool_lock. This is also true for the next two functions. */
static void recount_reserved(struct mirror *m, struct pool_room *room)
{
	uint64_t now = 0;

	if (m->cfg.ops->pool_get(m->be, room->pool, RESERVED, &now))
		return;
	if (now > room->charged)
		budget_add_memory(&m->budget, room->device, now - room->charged);
	else
		budget_give_memory(&m->budget, room->device, room->charged - now);
	room->charged = now;
}

static void trim(struct mirror *m, unsigned int device)
{
	struct pool_room *room;

	for (room = m->rooms; room; room = room->next) {
		if (room->device != device)
			continue;
		(void)m->cfg.ops->pool_trim(m->be, room->pool, 0);
		recount_reserved(m, room);
	}
}

static void remember_pool_room(struct mirror *m, const struct pool_ref *ref)
{
	if (ref->room->pool)
		return;
	ref->room->pool = ref->p;
	ref->room->device = ref->device;
	ref->room->next = m->rooms;
	m->rooms = ref->room;
}

int mir_take_memory_from_pools(struct mirror *m, unsigned int device, uint64_t size)
{
	if (!is_memory_limited(m))
		return mir_take_memory(m, device, size);
	if (budget_memory_left(&m->budget, device, LIMIT_NONE) < size) {
		pthread_mutex_lock(&m->pool_lock);
		trim(m, device);
		pthread_mutex_unlock(&m->pool_lock);
	}
	return mir_take_memory(m, device, size);
}

int mir_pool_taken(struct call *c, const struct pool_ref *ref, uint64_t size, bool came)
{
	struct mirror *m = c->m;
	int rc = QCU_ERR_Success;

	if (!came || is_memory_limited(m))
		mir_give_memory(m, ref->device, size);
	if (!came || !is_memory_limited(m))
		return rc;
	pthread_mutex_lock(&m->pool_lock);
	remember_pool_room(m, ref);
	recount_reserved(m, ref->room);
	/* A pool takes more memory from the device than it is asked for. */
	if (budget_memory_over(&m->budget, ref->device))
		rc = QCU_ERR_MemoryAllocation;
	pthread_mutex_unlock(&m->pool_lock);
	return rc;
}

void mir_pool_given(struct mirror *m, unsigned int device, uint64_t size)
{
	if (!is_memory_limited(m))
		mir_give_memory(m, device, size);
}

void mir_pools_count(struct mirror *m)
{
	struct pool_room *room;

	pthread_mutex_lock(&m->pool_lock);
	for (room = m->rooms; room && is_memory_limited(m); room = room->next)
		recount_reserved(m, room);
	pthread_mutex_unlock(&m->pool_lock);
}

/* The caller holds m->pool_lock. */
static void take_out_pool_room(struct mirror *m, struct pool_room **at)
{
	struct pool_room *room = *at;

	*at = room->next;
	budget_give_memory(&m->budget, room->device, room->charged);
	*room = (struct pool_room){0};
}

void mir_pool_gone(struct mirror *m, struct pool_room *room)
{
	struct pool_room **at;

	pthread_mutex_lock(&m->pool_lock);
	for (at = &m->rooms; *at && *at != room; at = &(*at)->next)
		;
	if (*at)
		take_out_pool_room(m, at);
	pthread_mutex_unlock(&m->pool_lock);
}

void mir_pools_end(struct mirror *m, const unsigned int *device)
{
	struct pool_room **at;

	pthread_mutex_lock(&m->pool_lock);
	for (at = &m->rooms; *at;) {
		if (device && (*at)->device != *device)
			at = &(*at)->next;
		else
			take_out_pool_room(m, at);
	}
	pthread_mutex_unlock(&m->pool_lock);
}

int mir_do_pool_create(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_pool_create *pc = &c->cmd->pool_create;
	struct handle *h;
	int rc;

	MIR_NEED(c, pool_create);
	MIR_NEED(c, pool_destroy);
	if (!handles_free(&m->handles, HANDLE_POOL, pc->pool))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_handle_new(c, HANDLE_POOL, &h);
	if (rc)
		return rc;
	h->device = c->cmd->device;
	rc = m->cfg.ops->pool_create(m->be, h->device, pc->max_size, &h->pool);
	if (rc) {
		mir_handle_drop(m, h);
		return rc;
	}
	rc = handles_add(&m->handles, pc->pool, h);
	if (rc)
		handles_put(&m->handles, h);
	return rc;
}

int mir_do_pool_destroy(struct call *c)
{
	return handles_remove(&c->m->handles, HANDLE_POOL, c->cmd->pool_destroy.pool)
		       ? QCU_ERR_Success
		       : QCU_ERR_InvalidResourceHandle;
}

/* cudaMemPoolAttr. All attributes up to the last are int or uint64_t, as the backends take them. */
#define POOL_ATTR_LAST 8u

static bool pool_attr_known(uint32_t attr)
{
	return attr && attr <= POOL_ATTR_LAST;
}

int mir_do_pool_set(struct call *c)
{
	const struct qcu_pool_set *ps = &c->cmd->pool_set;
	struct pool_ref p;
	int rc;

	MIR_NEED(c, pool_set);
	if (!pool_attr_known(ps->attr))
		return QCU_ERR_InvalidValue;
	rc = mir_pool_get(c, ps->pool, &p);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_set(c->m->be, p.p, ps->attr, ps->value);
	mir_pool_put(c, &p);
	return rc;
}

int mir_do_pool_get(struct call *c)
{
	struct qcu_pool_get *pg = &c->cmd->pool_get;
	uint64_t value = 0;
	struct pool_ref p;
	int rc;

	MIR_NEED(c, pool_get);
	if (!pool_attr_known(pg->attr))
		return QCU_ERR_InvalidValue;
	rc = mir_pool_get(c, pg->pool, &p);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_get(c->m->be, p.p, pg->attr, &value);
	pg->value = value;
	mir_pool_put(c, &p);
	return rc;
}

int mir_do_pool_trim(struct call *c)
{
	const struct qcu_pool_trim *pt = &c->cmd->pool_trim;
	struct pool_ref p;
	int rc;

	MIR_NEED(c, pool_trim);
	rc = mir_pool_get(c, pt->pool, &p);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_trim(c->m->be, p.p, pt->keep);
	mir_pool_put(c, &p);
	return rc;
}

int mir_do_pool_access_set(struct call *c)
{
	const struct qcu_pool_access_set *pa = &c->cmd->pool_access_set;
	struct pool_ref p;
	int rc;

	MIR_NEED(c, pool_access_set);
	if (pa->peer >= c->m->devices)
		return QCU_ERR_InvalidDevice;
	rc = mir_pool_get(c, pa->pool, &p);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_access_set(c->m->be, p.p, pa->peer, pa->flags);
	mir_pool_put(c, &p);
	return rc;
}

int mir_do_pool_access_get(struct call *c)
{
	struct qcu_pool_access_get *pa = &c->cmd->pool_access_get;
	uint32_t flags = 0;
	struct pool_ref p;
	int rc;

	MIR_NEED(c, pool_access_get);
	if (pa->peer >= c->m->devices)
		return QCU_ERR_InvalidDevice;
	rc = mir_pool_get(c, pa->pool, &p);
	if (rc)
		return rc;
	rc = c->m->cfg.ops->pool_access_get(c->m->be, p.p, pa->peer, &flags);
	pa->flags = flags;
	mir_pool_put(c, &p);
	return rc;
}
