// SPDX-License-Identifier: GPL-2.0-or-later
/* Memory pools: the commands about them, and which pool a number in a command means. */
#include <stdlib.h>

#include "qcu-device/mirror_impl.h"

int mir_pool_get(struct call *c, uint32_t id, struct pool_ref *ref)
{
	*ref = (struct pool_ref){0};
	if (!id) {
		MIR_NEED(c, pool_default);
		return c->m->cfg.ops->pool_default(c->m->be, c->cmd->device, &ref->p);
	}
	ref->h = handles_get(&c->m->handles, HANDLE_POOL, id);
	if (!ref->h)
		return QCU_ERR_InvalidResourceHandle;
	ref->p = ref->h->pool;
	return QCU_ERR_Success;
}

void mir_pool_put(struct call *c, struct pool_ref *ref)
{
	handles_put(&c->m->handles, ref->h);
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
	h = handle_new(HANDLE_POOL);
	if (!h)
		return QCU_ERR_MemoryAllocation;
	h->device = c->cmd->device;
	rc = m->cfg.ops->pool_create(m->be, h->device, pc->max_size, &h->pool);
	if (rc) {
		handle_drop(&m->handles, h);
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

int mir_do_pool_set(struct call *c)
{
	const struct qcu_pool_set *ps = &c->cmd->pool_set;
	struct pool_ref p;
	int rc;

	MIR_NEED(c, pool_set);
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
