// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Texture and surface objects. Their numbers are the backend's, because kernels use these numbers.
 * A command that names an object is looked up here first, so that only what was given out is ever
 * destroyed. An object holds the array that it reads. The array goes with the last such object.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/commands/commands.h"

struct object {
	uint64_t number;
	bool surface; /* the two kinds are numbered apart */
	unsigned int device;
	struct handle *array; /* NULL: the object reads memory */
	LIST_ENTRY(object) link;
};

static int compare_objects(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	if (x->surface != y->surface)
		return x->surface ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static int new_object(struct call *c, bool surface, struct object **out)
{
	int rc = mir_take(c, LIMIT_TEXTURES, 1);
	struct object *o;

	if (rc)
		return rc;
	o = calloc(1, sizeof(*o));
	if (!o) {
		mir_give(c->m, LIMIT_TEXTURES, 1);
		return QCU_ERR_MemoryAllocation;
	}
	o->surface = surface;
	o->device = c->cmd->device;
	*out = o;
	return QCU_ERR_Success;
}

/* Frees the record of an object that the backend does not have, or has no more. */
static void free_object_record(struct mirror *m, struct object *o)
{
	mir_give(m, LIMIT_TEXTURES, 1);
	handles_put(&m->handles, o->array);
	free(o);
}

/* Destroys an object that is in no table any more. */
static int end_object(struct mirror *m, struct object *o)
{
	const struct be_ops *ops = m->cfg.ops;
	int rc = o->surface ? ops->surface_destroy(m->be, o->device, o->number)
			    : ops->texture_destroy(m->be, o->device, o->number);

	free_object_record(m, o);
	return rc;
}

static int add_object(struct mirror *m, struct object *o)
{
	struct object **node;

	pthread_mutex_lock(&m->lock);
	node = tsearch(o, &m->objects, compare_objects);
	if (node && *node == o)
		LIST_INSERT_HEAD(&m->object_list, o, link);
	pthread_mutex_unlock(&m->lock);
	if (node && *node == o)
		return QCU_ERR_Success;
	/* No memory; or a number that was given out twice, of which only one is to be destroyed. */
	if (!node) {
		end_object(m, o);
		return QCU_ERR_MemoryAllocation;
	}
	free_object_record(m, o);
	return QCU_ERR_Unknown;
}

static int destroy_object(struct call *c, uint64_t number, bool surface)
{
	struct mirror *m = c->m;
	struct object key = {.number = number, .surface = surface}, **node, *o = NULL;

	pthread_mutex_lock(&m->lock);
	node = tfind(&key, &m->objects, compare_objects);
	if (node) {
		o = *node;
		tdelete(o, &m->objects, compare_objects);
		LIST_REMOVE(o, link);
	}
	pthread_mutex_unlock(&m->lock);
	if (!o)
		return QCU_ERR_InvalidValue;
	c->waited = true;
	return end_object(m, o);
}

void mir_objects_end(struct mirror *m, const unsigned int *device)
{
	struct object_list list = LIST_HEAD_INITIALIZER(list);
	struct object *o, *next;

	pthread_mutex_lock(&m->lock);
	for (o = LIST_FIRST(&m->object_list); o; o = next) {
		next = LIST_NEXT(o, link);
		if (device && o->device != *device)
			continue;
		tdelete(o, &m->objects, compare_objects);
		LIST_REMOVE(o, link);
		LIST_INSERT_HEAD(&list, o, link);
	}
	pthread_mutex_unlock(&m->lock);
	while ((o = LIST_FIRST(&list))) {
		LIST_REMOVE(o, link);
		end_object(m, o);
	}
}

/* Returns an array of the command's device. NULL: it is not there, or it has no such level. */
static struct handle *array_of(struct call *c, uint32_t id, uint32_t level)
{
	struct handle *h = handles_get(&c->m->handles, HANDLE_ARRAY, id);

	if (h && (h->device != c->cmd->device || level >= (h->desc.levels ? h->desc.levels : 1))) {
		handles_put(&c->m->handles, h);
		h = NULL;
	}
	return h;
}

/*
 * All of the memory that a texture reads must be memory that the GPU may use. Of a line of elements
 * only the first must be, as in CUDA: programs make lines that are longer than their memory. A
 * fetch past the memory reads what a kernel's load from there would read.
 */
static int check_memory(struct call *c, const struct qcu_texture_msg *t)
{
	struct be_array_desc d = {.bits = {t->bits[0], t->bits[1], t->bits[2], t->bits[3]}};
	uint64_t len = be_array_elem(&d);

	if (!len)
		return QCU_ERR_InvalidChannelDescriptor;
	if (t->kind == QCU_TEXTURE_LINEAR) {
		if (t->bytes < len || t->bytes - 1 > UINT64_MAX - t->addr)
			return QCU_ERR_InvalidValue;
	} else {
		uint64_t row = (uint64_t)t->width * be_array_elem(&d);

		if (!t->width || !t->height || (t->height > 1 && t->pitch < row))
			return QCU_ERR_InvalidValue;
		len = (uint64_t)t->pitch * (t->height - 1) + row;
	}
	return mir_device_range(c, t->addr, len);
}

static int check(struct call *c, const struct qcu_texture_msg *t, struct handle **array)
{
	unsigned int i;

	if (t->kind > QCU_TEXTURE_PITCH || t->rsvd || t->view > 1 || t->filter > 1 || t->read > 1 ||
	    t->srgb > 1 || t->normalized > 1 || t->mip_filter > 1 ||
	    t->no_trilinear_optimization > 1 || t->seamless > 1)
		return QCU_ERR_InvalidValue;
	for (i = 0; i < 3; i++)
		if (t->address[i] > 3)
			return QCU_ERR_InvalidValue;
	if (t->kind == QCU_TEXTURE_LINEAR || t->kind == QCU_TEXTURE_PITCH)
		return t->view ? (int)QCU_ERR_InvalidValue : check_memory(c, t);
	*array = array_of(c, t->array, t->level);
	if (!*array)
		return QCU_ERR_InvalidResourceHandle;
	if (t->kind == QCU_TEXTURE_MIPMAP && (!(*array)->desc.levels || t->level))
		return QCU_ERR_InvalidValue;
	return QCU_ERR_Success;
}

int mir_do_texture_create(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_texture_msg t;
	struct object *o;
	int rc;

	if (c->cmd->buf.len != sizeof(t))
		return QCU_ERR_InvalidValue;
	memcpy(&t, c->req->msg, sizeof(t));
	rc = new_object(c, false, &o);
	if (rc)
		return rc;
	rc = check(c, &t, &o->array);
	if (!rc)
		rc = m->cfg.ops->texture_create(m->be, o->device, &t,
						o->array ? o->array->array : NULL, &o->number);
	if (rc) {
		free_object_record(m, o);
		return rc;
	}
	c->cmd->texture_create.object = o->number;
	rc = add_object(m, o);
	if (rc)
		c->cmd->texture_create.object = 0;
	return rc;
}

int mir_do_texture_destroy(struct call *c)
{
	return destroy_object(c, c->cmd->texture_destroy.object, false);
}

int mir_do_surface_create(struct call *c)
{
	struct mirror *m = c->m;
	struct qcu_surface_create *sc = &c->cmd->surface_create;
	struct object *o;
	int rc;

	rc = new_object(c, true, &o);
	if (rc)
		return rc;
	o->array = array_of(c, sc->array, sc->level);
	if (!o->array)
		rc = QCU_ERR_InvalidResourceHandle;
	else
		rc = m->cfg.ops->surface_create(m->be, o->device, o->array->array, sc->level,
						&o->number);
	if (rc) {
		free_object_record(m, o);
		return rc;
	}
	sc->object = o->number;
	rc = add_object(m, o);
	if (rc)
		sc->object = 0;
	return rc;
}

int mir_do_surface_destroy(struct call *c)
{
	return destroy_object(c, c->cmd->surface_destroy.object, true);
}
