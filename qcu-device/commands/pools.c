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
		ref->charge = &c->m->default_charge[ref->device];
		return c->m->cfg.ops->pool_default(c->m->be, c->cmd->device, &ref->p);
	}
	ref->h = handles_get(&c->m->handles, HANDLE_POOL, id);
	if (!ref->h)
		return QCU_ERR_InvalidResourceHandle;
	ref->p = ref->h->pool;
	ref->device = ref->h->device;
	ref->charge = &ref->h->charge;
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
static void recount_reserved(struct mirror *m, struct pool_charge *charge)
{
	uint64_t now = 0;

	if (m->cfg.ops->pool_get(m->be, charge->pool, RESERVED, &now))
		return;
	if (now > charge->charged)
		budget_add_memory(&m->budget, charge->device, now - charge->charged);
	else
		budget_give_memory(&m->budget, charge->device, charge->charged - now);
	charge->charged = now;
}

static void trim(struct mirror *m, unsigned int device)
{
	struct pool_charge *charge;

	for (charge = m->pool_charges; charge; charge = charge->next) {
		if (charge->device != device)
			continue;
		(void)m->cfg.ops->pool_trim(m->be, charge->pool, 0);
		recount_reserved(m, charge);
	}
}

static void remember_pool_charge(struct mirror *m, const struct pool_ref *ref)
{
	if (ref->charge->pool)
		return;
	ref->charge->pool = ref->p;
	ref->charge->device = ref->device;
	ref->charge->next = m->pool_charges;
	m->pool_charges = ref->charge;
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
	remember_pool_charge(m, ref);
	recount_reserved(m, ref->charge);
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
	struct pool_charge *charge;

	pthread_mutex_lock(&m->pool_lock);
	for (charge = m->pool_charges; charge && is_memory_limited(m); charge = charge->next)
		recount_reserved(m, charge);
	pthread_mutex_unlock(&m->pool_lock);
}

/* The caller holds m->pool_lock. */
static void take_out_pool_charge(struct mirror *m, struct pool_charge **at)
{
	struct pool_charge *charge = *at;

	*at = charge->next;
	budget_give_memory(&m->budget, charge->device, charge->charged);
	*charge = (struct pool_charge){0};
}

void mir_pool_gone(struct mirror *m, struct pool_charge *charge)
{
	struct pool_charge **at;

	pthread_mutex_lock(&m->pool_lock);
	for (at = &m->pool_charges; *at && *at != charge; at = &(*at)->next)
		;
	if (*at)
		take_out_pool_charge(m, at);
	pthread_mutex_unlock(&m->pool_lock);
}

void mir_pools_end(struct mirror *m, const unsigned int *device)
{
	struct pool_charge **at;

	pthread_mutex_lock(&m->pool_lock);
	for (at = &m->pool_charges; *at;) {
		if (device && (*at)->device != *device)
			at = &(*at)->next;
		else
			take_out_pool_charge(m, at);
	}
	pthread_mutex_unlock(&m->pool_lock);
}
