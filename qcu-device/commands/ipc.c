// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory and events that guest processes share with each other. The guest only gets tokens, for
 * which tokens.c keeps what the backend's export wrote; import takes it from there.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/commands.h"

/* Memory of another process that this one has opened. */
struct import {
	struct qcu_ipc_token token;
	uint64_t addr, size;
	unsigned int device;
	uint32_t count; /* how often it is open */
	LIST_ENTRY(import) link;
};

int mir_do_ipc_mem_export(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_ipc_mem_export *x = &c->cmd->ipc_mem_export;
	struct share share = {.kind = SHARE_MEMORY};
	struct qcu_ipc_token token;
	unsigned int device;
	int rc;

	if (!c->m->cfg.shares)
		return QCU_ERR_NotSupported;
	rc = mir_allocation_shared(m, x->ptr, &x->token);
	if (rc != QCU_ERR_NotReady)
		return rc;
	if (!mir_allocation_size(m, x->ptr, &share.size, &device))
		return QCU_ERR_InvalidValue;
	share.device = device;
	share.charged = m->cfg.ops->mem_taken ? m->cfg.ops->mem_taken(m->be, x->ptr) : share.size;
	rc = m->cfg.ops->mem_export(m->be, device, x->ptr, share.handle);
	if (!rc)
		rc = mir_share_put(m, &share, &token);
	if (rc)
		return rc;
	/* Meanwhile another thread may have exported the memory, or freed it. */
	if (!mir_allocation_share(m, x->ptr, &token))
		mir_share_end(m, &token);
	rc = mir_allocation_shared(m, x->ptr, &x->token);
	return rc == QCU_ERR_NotReady ? (int)QCU_ERR_InvalidValue : rc;
}

/* The caller holds m->import_lock, here and in all functions about imports below. */
static struct import *opened(struct mirror *m, const struct qcu_ipc_token *token)
{
	struct import *i;

	LIST_FOREACH(i, &m->imports, link)
		if (!memcmp(&i->token, token, sizeof(*token)))
			return i;
	return NULL;
}

static int import(struct call *c, const struct qcu_ipc_token *token, struct import **out)
{
	struct mirror *m = c->m;
	struct share share;
	struct import *i;
	int rc = mir_share_open(m, token, SHARE_MEMORY, &share);

	*out = NULL;
	if (rc)
		return rc;
	rc = mir_take(c, LIMIT_ALLOCATIONS, 1);
	if (rc)
		goto close;
	i = calloc(1, sizeof(*i));
	if (!i) {
		rc = QCU_ERR_MemoryAllocation;
		goto give;
	}
	*i = (struct import){.token = *token, .size = share.size, .device = c->cmd->device};
	rc = m->cfg.ops->mem_import(m->be, i->device, share.handle, i->size, &i->addr);
	if (rc) {
		free(i);
		goto give;
	}
	LIST_INSERT_HEAD(&m->imports, i, link);
	*out = i;
	return QCU_ERR_Success;
give:
	mir_give(m, LIMIT_ALLOCATIONS, 1);
close:
	mir_share_close(m, token);
	return rc;
}

int mir_do_ipc_mem_open(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_ipc_mem_open *o = &c->cmd->ipc_mem_open;
	struct import *i;
	int rc = QCU_ERR_Success;

	if (!c->m->cfg.shares)
		return QCU_ERR_NotSupported;
	pthread_mutex_lock(&m->import_lock);
	/*
	 * Memory that this process has already opened stays open, even if its owner has freed it.
	 */
	i = opened(m, &o->token);
	if (!i)
		rc = import(c, &o->token, &i);
	if (!rc) {
		i->count++;
		o->ptr = i->addr;
		o->size = i->size;
	}
	pthread_mutex_unlock(&m->import_lock);
	return rc;
}

static int end_import(struct mirror *m, struct import *i)
{
	struct held_leaving leaving;
	int rc;

	held_leave(&m->held, &leaving, i->addr, i->size);
	rc = m->cfg.ops->mem_unimport(m->be, i->addr);
	held_gone(&m->held, &leaving);
	mir_share_close(m, &i->token);
	LIST_REMOVE(i, link);
	mir_give(m, LIMIT_ALLOCATIONS, 1);
	free(i);
	return rc;
}

int mir_do_ipc_mem_close(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_ipc_mem_close *x = &c->cmd->ipc_mem_close;
	struct import *i;
	int rc = QCU_ERR_InvalidValue;

	if (!c->m->cfg.shares)
		return QCU_ERR_NotSupported;
	pthread_mutex_lock(&m->import_lock);
	LIST_FOREACH(i, &m->imports, link)
		if (i->addr == x->ptr)
			break;
	if (i) {
		c->waited = true;
		x->left = --i->count;
		rc = i->count ? QCU_ERR_Success : end_import(m, i);
	}
	pthread_mutex_unlock(&m->import_lock);
	return rc;
}

void mir_imports_end(struct mirror *m, const unsigned int *device)
{
	struct import *i, *next;

	pthread_mutex_lock(&m->import_lock);
	for (i = LIST_FIRST(&m->imports); i; i = next) {
		next = LIST_NEXT(i, link);
		if (!device || i->device == *device)
			(void)end_import(m, i);
	}
	pthread_mutex_unlock(&m->import_lock);
}

int mir_do_ipc_event_export(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_ipc_event_export *x = &c->cmd->ipc_event_export;
	struct share share = {.kind = SHARE_EVENT};
	struct handle *h;
	int rc = QCU_ERR_Success;

	if (!c->m->cfg.shares)
		return QCU_ERR_NotSupported;
	if (x->rsvd)
		return QCU_ERR_InvalidValue;
	h = handles_get(&m->handles, HANDLE_EVENT, x->event);
	if (!h)
		return QCU_ERR_InvalidResourceHandle;
	pthread_mutex_lock(&m->import_lock);
	if (!h->shared) {
		rc = m->cfg.ops->event_export(m->be, h->event, share.handle);
		if (!rc)
			rc = mir_share_put(m, &share, &h->token);
		h->shared = !rc;
	}
	if (!rc)
		x->token = h->token;
	pthread_mutex_unlock(&m->import_lock);
	handles_put(&m->handles, h);
	return rc;
}

int mir_do_ipc_event_open(struct call *c)
{
	struct mirror *m = c->m;
	const struct qcu_ipc_event_open *o = &c->cmd->ipc_event_open;
	struct share share;
	struct handle *h;
	int rc;

	if (!c->m->cfg.shares)
		return QCU_ERR_NotSupported;
	if (o->rsvd)
		return QCU_ERR_InvalidValue;
	if (!handles_free(&m->handles, HANDLE_EVENT, o->event))
		return QCU_ERR_InvalidResourceHandle;
	rc = mir_share_find(m, &o->token, SHARE_EVENT, &share);
	if (rc)
		return rc;
	rc = mir_handle_new(c, HANDLE_EVENT, &h);
	if (rc)
		return rc;
	h->device = c->cmd->device;
	rc = m->cfg.ops->event_import(m->be, h->device, share.handle, &h->event);
	if (rc) {
		mir_handle_drop(m, h);
		return rc;
	}
	rc = handles_add(&m->handles, o->event, h);
	if (rc)
		handles_put(&m->handles, h);
	return rc;
}
