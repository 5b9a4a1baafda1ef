/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The handles of conditional nodes: values that kernels set. As on a GPU, only kernels that run in
 * the handle's own graph may set its value. What the nodes do with the values is in graph.c.
 */
#include <stdlib.h>

#include "qcu-device/soft/gpu/soft.h"

/* ---- called with be->lock held ---- */

void soft_cond_put(struct be_cond *c)
{
	while (c && !--c->refs) {
		struct be_cond **p = &c->be->conds;
		struct be_cond *graph = c->graph == c ? NULL : c->graph;

		while (*p != c)
			p = &(*p)->next;
		*p = c->next;
		free(c);
		c = graph;
	}
}

void soft_cond_begin(struct be_cond *graph)
{
	struct be_cond *c;

	graph->running++;
	for (c = graph->be->conds; c; c = c->next)
		if (c->graph == graph && c->has_first)
			atomic_store(&c->value, c->first);
}

void soft_cond_end(struct be_cond *graph)
{
	graph->running--;
}

/* This function checks that the graph is running. */
bool soft_env_condition(void *ctx, uint64_t handle, uint32_t value)
{
	struct be *be = ((struct soft_device *)ctx)->be;
	struct be_cond *c;
	bool good;

	pthread_mutex_lock(&be->lock);
	for (c = be->conds; c && c->handle != handle; c = c->next)
		;
	good = handle && c && c->graph->running;
	if (good)
		atomic_store(&c->value, value);
	pthread_mutex_unlock(&be->lock);
	return good;
}

/* More than can be given out. So the next one is always higher than the last one. */
#define HANDLE_MAX (UINT64_MAX >> 16)

static bool is_handle_free(const struct be *be, uint64_t handle)
{
	const struct be_cond *c = be->conds;

	while (handle <= be->handles && c && c->handle != handle)
		c = c->next;
	return handle > be->handles || !c;
}

/* Gives it its handle. False: it cannot be the wanted one. */
static bool take_handle(struct be *be, struct be_cond *c)
{
	const struct be_wanted *wanted = be->wanted;

	if (!wanted) {
		c->handle = ++be->handles;
		return true;
	}
	if (!be->wanted_count || !wanted->addr || wanted->addr > HANDLE_MAX ||
	    wanted->size > UINT32_MAX || !is_handle_free(be, wanted->addr))
		return false;
	c->handle = wanted->addr;
	atomic_store(&c->value, (uint32_t)wanted->size);
	if (be->handles < c->handle)
		be->handles = c->handle;
	return true;
}

/* ---- the backend's functions ---- */

int soft_cond_create(struct be *be, unsigned int dev, struct be_cond *in, uint32_t body,
		     const uint32_t *first, struct be_cond **out, uint64_t *handle)
{
	int err = atomic_load(&be->sticky);
	struct be_cond *c;

	(void)dev;
	if (err)
		return err;
	if (in && body >= (in->handle ? in->size : 1))
		return QCU_ERR_InvalidValue;
	c = calloc(1, sizeof(*c));
	if (!c)
		return QCU_ERR_MemoryAllocation;
	c->be = be;
	c->refs = 1;
	c->first = first ? *first : 0;
	c->has_first = first;
	pthread_mutex_lock(&be->lock);
	if (in && !take_handle(be, c)) {
		pthread_mutex_unlock(&be->lock);
		free(c);
		return QCU_ERR_MemoryAllocation;
	}
	c->graph = in ? in->graph : c;
	if (in)
		c->graph->refs++;
	c->next = be->conds;
	be->conds = c;
	pthread_mutex_unlock(&be->lock);
	*out = c;
	*handle = c->handle;
	return QCU_ERR_Success;
}

int soft_cond_node(struct be *be, struct be_cond *c, uint32_t type, uint32_t size)
{
	bool good;

	pthread_mutex_lock(&be->lock);
	if (!c->size) {
		c->type = type;
		c->size = size;
	}
	good = c->type == type && c->size == size;
	pthread_mutex_unlock(&be->lock);
	return good ? QCU_ERR_Success : QCU_ERR_InvalidValue;
}

int soft_cond_destroy(struct be *be, struct be_cond *c)
{
	pthread_mutex_lock(&be->lock);
	soft_cond_put(c);
	pthread_mutex_unlock(&be->lock);
	return atomic_load(&be->sticky);
}

void soft_cond_saved(struct be *be, struct be_cond *c, struct be_wanted *as)
{
	(void)be;
	*as = (struct be_wanted){.addr = c->handle, .size = atomic_load(&c->value)};
}
