// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Texture and surface objects. A program passes their numbers to kernels, so the numbers are the
 * GPU's own. Queries about an object are answered from a copy of the descriptors that the program
 * gave.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/memory/array.h"

struct object {
	unsigned long long number;
	bool surface;
	int device;
	LIST_ENTRY(object) link;
	struct cudaResourceDesc resource;
	struct cudaTextureDesc texture;
	struct cudaResourceViewDesc view;
};

/* Protected by the handles' lock. */
static struct {
	void *objects; /* a tree by number */
	LIST_HEAD(, object) all;
} process;

static void forget_texture_objects(int device);
QCUL_AT_FORK(QCUL_FORK_OBJECTS, .reset = forget_texture_objects)

static int compare_texture_objects(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	if (x->surface != y->surface)
		return x->surface ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static bool find_texture_object(unsigned long long number, bool surface, struct object *out)
{
	struct object key = {.number = number, .surface = surface}, **node;
	bool found;

	qcul_handles_lock();
	node = tfind(&key, &process.objects, compare_texture_objects);
	found = node;
	if (found)
		*out = **node;
	qcul_handles_unlock();
	return found;
}

static void drop_texture_object(struct object *o)
{
	tdelete(o, &process.objects, compare_texture_objects);
	LIST_REMOVE(o, link);
	free(o);
}

static bool remove_texture_object(unsigned long long number, bool surface)
{
	struct object key = {.number = number, .surface = surface}, **node;
	bool found;

	qcul_handles_lock();
	node = tfind(&key, &process.objects, compare_texture_objects);
	found = node;
	if (found)
		drop_texture_object(*node);
	qcul_handles_unlock();
	return found;
}

static void forget_texture_objects(int device)
{
	struct object *o, *next;

	qcul_handles_lock();
	for (o = LIST_FIRST(&process.all); o; o = next) {
		next = LIST_NEXT(o, link);
		if (device < 0 || o->device == device)
			drop_texture_object(o);
	}
	qcul_handles_unlock();
}

static bool add_texture_object(const struct object *object)
{
	struct object *o = malloc(sizeof(*o)), **node;

	if (!o)
		return false;
	*o = *object;
	qcul_handles_lock();
	node = tsearch(o, &process.objects, compare_texture_objects);
	if (node && *node == o)
		LIST_INSERT_HEAD(&process.all, o, link);
	qcul_handles_unlock();
	if (node && *node == o)
		return true;
	free(o);
	return false;
}

static bool format_bits(const struct cudaChannelFormatDesc *f, struct qcu_texture_msg *msg)
{
	if (!qcul_format_bytes(f))
		return false;
	msg->format = (uint32_t)f->f;
	msg->bits[0] = (uint8_t)f->x;
	msg->bits[1] = (uint8_t)f->y;
	msg->bits[2] = (uint8_t)f->z;
	msg->bits[3] = (uint8_t)f->w;
	return true;
}

static cudaError_t put_array(const struct qcul_array *a, struct qcu_texture_msg *msg)
{
	if (!a)
		return cudaErrorInvalidResourceHandle;
	msg->array = a->id;
	msg->level = a->level;
	return cudaSuccess;
}

static cudaError_t put_resource(const struct cudaResourceDesc *r, struct qcu_texture_msg *msg)
{
	switch (r->resType) {
	case cudaResourceTypeArray:
		msg->kind = QCU_TEXTURE_ARRAY;
		return put_array(qcul_array(r->res.array.array), msg);
	case cudaResourceTypeMipmappedArray:
		msg->kind = QCU_TEXTURE_MIPMAP;
		return put_array(qcul_mipmap(r->res.mipmap.mipmap), msg);
	case cudaResourceTypeLinear:
		msg->kind = QCU_TEXTURE_LINEAR;
		if (!r->res.linear.devPtr)
			return cudaErrorInvalidValue;
		msg->addr = qcul_mem_device_address(r->res.linear.devPtr);
		msg->bytes = r->res.linear.sizeInBytes;
		return format_bits(&r->res.linear.desc, msg) ? cudaSuccess
							     : cudaErrorInvalidChannelDescriptor;
	case cudaResourceTypePitch2D:
		msg->kind = QCU_TEXTURE_PITCH;
		if (!r->res.pitch2D.devPtr || r->res.pitch2D.width > UINT32_MAX ||
		    r->res.pitch2D.height > UINT32_MAX || r->res.pitch2D.pitchInBytes > UINT32_MAX)
			return cudaErrorInvalidValue;
		msg->addr = qcul_mem_device_address(r->res.pitch2D.devPtr);
		msg->width = (uint32_t)r->res.pitch2D.width;
		msg->height = (uint32_t)r->res.pitch2D.height;
		msg->pitch = (uint32_t)r->res.pitch2D.pitchInBytes;
		return format_bits(&r->res.pitch2D.desc, msg) ? cudaSuccess
							      : cudaErrorInvalidChannelDescriptor;
	}
	return cudaErrorInvalidValue;
}

static uint32_t float_bits(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return bits;
}

static void put_texture(const struct cudaTextureDesc *d, struct qcu_texture_msg *msg)
{
	unsigned int i;

	for (i = 0; i < 3; i++)
		msg->address[i] = (uint32_t)d->addressMode[i];
	for (i = 0; i < 4; i++)
		msg->border[i] = float_bits(d->borderColor[i]);
	msg->filter = (uint32_t)d->filterMode;
	msg->read = (uint32_t)d->readMode;
	msg->srgb = !!d->sRGB;
	msg->normalized = !!d->normalizedCoords;
	msg->anisotropy = d->maxAnisotropy;
	msg->mip_filter = (uint32_t)d->mipmapFilterMode;
	msg->mip_bias = float_bits(d->mipmapLevelBias);
	msg->mip_min = float_bits(d->minMipmapLevelClamp);
	msg->mip_max = float_bits(d->maxMipmapLevelClamp);
	msg->no_trilinear_optimization = !!d->disableTrilinearOptimization;
	msg->seamless = !!d->seamlessCubemap;
}

static cudaError_t put_view(const struct cudaResourceViewDesc *v, struct qcu_texture_msg *msg)
{
	if (v->width > UINT32_MAX || v->height > UINT32_MAX || v->depth > UINT32_MAX)
		return cudaErrorInvalidValue;
	msg->view = 1;
	msg->view_format = (uint32_t)v->format;
	msg->view_width = (uint32_t)v->width;
	msg->view_height = (uint32_t)v->height;
	msg->view_depth = (uint32_t)v->depth;
	msg->first_level = v->firstMipmapLevel;
	msg->last_level = v->lastMipmapLevel;
	msg->first_layer = v->firstLayer;
	msg->last_layer = v->lastLayer;
	return cudaSuccess;
}

static cudaError_t create_texture(cudaTextureObject_t *out, const struct cudaResourceDesc *resource,
				  const struct cudaTextureDesc *texture,
				  const struct cudaResourceViewDesc *view)
{
	struct object o = {.device = qcul_self.device};
	struct qcu_texture_msg msg = {0};
	struct qCUcmd cmd;
	cudaError_t err;

	if (!resource)
		return cudaErrorInvalidValue;
	err = qcul_ready();
	if (!err)
		err = put_resource(resource, &msg);
	/* NVIDIA's library makes these checks in this order and returns these codes. */
	if (!err && !texture)
		err = cudaErrorInvalidResourceHandle;
	if (!err && !out)
		err = cudaErrorInvalidValue;
	if (!err && view)
		err = put_view(view, &msg);
	if (err)
		return err;
	put_texture(texture, &msg);
	cmd = qcul_cmd(QCU_OP_TEXTURE_CREATE);
	cmd.buf.addr = (uint64_t)(uintptr_t)&msg;
	cmd.buf.len = sizeof(msg);
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	o.number = cmd.texture_create.object;
	o.resource = *resource;
	o.texture = *texture;
	if (view)
		o.view = *view;
	if (!add_texture_object(&o)) {
		cmd = qcul_cmd(QCU_OP_TEXTURE_DESTROY);
		cmd.texture_destroy.object = o.number;
		(void)qcul_send(&cmd, 1);
		return cudaErrorMemoryAllocation;
	}
	*out = o.number;
	return cudaSuccess;
}

cudaError_t cudaCreateTextureObject(cudaTextureObject_t *object,
				    const struct cudaResourceDesc *resource,
				    const struct cudaTextureDesc *texture,
				    const struct cudaResourceViewDesc *view)
{
	return qcul_done(create_texture(object, resource, texture, view));
}

static cudaError_t create_array_surface(cudaSurfaceObject_t *out,
					const struct cudaResourceDesc *resource)
{
	struct object o = {.surface = true, .device = qcul_self.device};
	const struct qcul_array *a;
	struct qCUcmd cmd;
	cudaError_t err;

	if (!out || !resource)
		return cudaErrorInvalidValue;
	if (resource->resType != cudaResourceTypeArray)
		return cudaErrorInvalidChannelDescriptor;
	err = qcul_ready();
	if (err)
		return err;
	a = qcul_array(resource->res.array.array);
	if (!a)
		return cudaErrorInvalidResourceHandle;
	cmd = qcul_cmd(QCU_OP_SURFACE_CREATE);
	cmd.surface_create.array = a->id;
	cmd.surface_create.level = a->level;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	o.number = cmd.surface_create.object;
	o.resource = *resource;
	if (!add_texture_object(&o)) {
		cmd = qcul_cmd(QCU_OP_SURFACE_DESTROY);
		cmd.surface_destroy.object = o.number;
		(void)qcul_send(&cmd, 1);
		return cudaErrorMemoryAllocation;
	}
	*out = o.number;
	return cudaSuccess;
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t *object,
				    const struct cudaResourceDesc *resource)
{
	return qcul_done(create_array_surface(object, resource));
}

cudaError_t cudaDestroyTextureObject(cudaTextureObject_t object)
{
	struct qCUcmd cmd;
	cudaError_t err = qcul_ready();

	if (!err && object && !remove_texture_object(object, false))
		err = cudaErrorInvalidValue;
	if (err || !object)
		return qcul_done(err);
	cmd = qcul_cmd(QCU_OP_TEXTURE_DESTROY);
	cmd.texture_destroy.object = object;
	return qcul_done(qcul_send(&cmd, 1));
}

cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t object)
{
	struct qCUcmd cmd;
	cudaError_t err = qcul_ready();

	if (!err && object && !remove_texture_object(object, true))
		err = cudaErrorInvalidValue;
	if (err || !object)
		return qcul_done(err);
	cmd = qcul_cmd(QCU_OP_SURFACE_DESTROY);
	cmd.surface_destroy.object = object;
	return qcul_done(qcul_send(&cmd, 1));
}

/* Checks `out` and finds the object. */
static cudaError_t find_queried_object(unsigned long long number, bool surface, const void *out,
				       struct object *o)
{
	cudaError_t err = out ? qcul_ready() : cudaErrorInvalidValue;

	if (err)
		return err;
	return find_texture_object(number, surface, o) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t cudaGetTextureObjectResourceDesc(struct cudaResourceDesc *resource,
					     cudaTextureObject_t object)
{
	struct object o;
	cudaError_t err = find_queried_object(object, false, resource, &o);

	if (!err)
		*resource = o.resource;
	return qcul_done(err);
}

cudaError_t cudaGetTextureObjectTextureDesc(struct cudaTextureDesc *texture,
					    cudaTextureObject_t object)
{
	struct object o;
	cudaError_t err;

	/* The other queries return cudaErrorInvalidValue. */
	if (!texture)
		return qcul_done(cudaErrorInvalidResourceHandle);
	err = find_queried_object(object, false, texture, &o);
	if (!err)
		*texture = o.texture;
	return qcul_done(err);
}

cudaError_t cudaGetTextureObjectResourceViewDesc(struct cudaResourceViewDesc *view,
						 cudaTextureObject_t object)
{
	struct object o;
	cudaError_t err = qcul_ready();

	if (!err && !find_texture_object(object, false, &o))
		err = cudaErrorInvalidValue;
	/* The view of an object without one is all zeroes. The caller may pass NULL. */
	if (!err && view)
		*view = o.view;
	return qcul_done(err);
}

cudaError_t cudaGetSurfaceObjectResourceDesc(struct cudaResourceDesc *resource,
					     cudaSurfaceObject_t object)
{
	struct object o;
	cudaError_t err = find_queried_object(object, true, resource, &o);

	if (!err)
		*resource = o.resource;
	return qcul_done(err);
}
