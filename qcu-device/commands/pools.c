// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory pools: which one the number in a command names, and what they take of the memory. */
#include <stdlib.h>

#include "qcu-device/commands/commands.h"

/* cudaMemPoolAttrReservedMemCurrent */
#define RESERVED 5u

int mir_pool_get(struct call *c, uint32_t id, struct pool_ref *ref)
{
	*ref = (struct pool_ref){.device = c->cmd->device};
	if (!id) {
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
	return m->budget.limits.session[LIMIT_DEVICE_MEMORY] != LIMIT_NONE ||
	       m->budget.limits.vm[LIMIT_DEVICE_MEMORY] != LIMIT_NONE;
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
