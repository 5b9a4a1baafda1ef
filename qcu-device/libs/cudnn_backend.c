// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The backend API of cuDNN (include/qculib_cudnn.h). A descriptor holds references to those that it
 * uses, so none ends while another one knows it. Building goes on under one lock, because a
 * descriptor may be part of several others; executing does not need it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/libs/cudnn.h"
#include "qcu-device/libs/impl.h"

/* The most references of one descriptor, in all of its attributes. */
#define USES_MAX (2 * QCU_CUDNN_ELEMENTS)

static pthread_mutex_t building = PTHREAD_MUTEX_INITIALIZER;

struct attribute {
	uint64_t name, type, count, bytes;
	const void *elements;
};

/* The functions of the library that these need. */
struct functions {
	__typeof__(&cudnnBackendCreateDescriptor) create;
	__typeof__(&cudnnBackendDestroyDescriptor) destroy;
	__typeof__(&cudnnBackendSetAttribute) set;
	__typeof__(&cudnnBackendGetAttribute) get;
	__typeof__(&cudnnBackendFinalize) finalize;
	__typeof__(&cudnnBackendExecute) execute;
};

static bool look_up(struct lib_call *c, struct functions *f)
{
	struct mirror *m = c->c->m;

	*(void **)&f->create = lib_symbol(m, c->loaded, lib_number_cudnnBackendCreateDescriptor);
	*(void **)&f->destroy = lib_symbol(m, c->loaded, lib_number_cudnnBackendDestroyDescriptor);
	*(void **)&f->set = lib_symbol(m, c->loaded, lib_number_cudnnBackendSetAttribute);
	*(void **)&f->get = lib_symbol(m, c->loaded, lib_number_cudnnBackendGetAttribute);
	*(void **)&f->finalize = lib_symbol(m, c->loaded, lib_number_cudnnBackendFinalize);
	*(void **)&f->execute = lib_symbol(m, c->loaded, lib_number_cudnnBackendExecute);
	return f->create && f->destroy && f->set && f->get && f->finalize && f->execute;
}

static struct handle *descriptor(struct lib_call *c, uint64_t number)
{
	return lib_object_get(c, number, QCU_LIB_CUDNN_BACKEND);
}

/* Makes a descriptor with this number, and returns a reference of its own. */
static struct handle *make(struct lib_call *c, const struct functions *f, uint64_t number,
			   uint64_t type, int *status)
{
	cudnnBackendDescriptor_t native = NULL;
	struct handle *h;

	*status = (int)f->create((cudnnBackendDescriptorType_t)type, &native);
	if (*status)
		return NULL;
	if (!lib_object_add(c, number, QCU_LIB_CUDNN_BACKEND, native, &h)) {
		f->destroy(native);
		return NULL;
	}
	return descriptor(c, number);
}

/* `o` takes over the reference. */
static bool use(struct lib_call *c, struct lib_object *o, struct handle *h)
{
	struct handle **uses = NULL;

	if (o->use_count < USES_MAX)
		uses = realloc(o->uses, (o->use_count + 1) * sizeof(*uses));
	if (!uses) {
		handles_put(&c->c->m->handles, h);
		c->rc = QCU_ERR_MemoryAllocation;
		return false;
	}
	o->uses = uses;
	o->uses[o->use_count++] = h;
	return true;
}

static bool take_attribute(struct lib_call *c, struct attribute *a)
{
	uint64_t size;

	a->name = lib_value(c);
	a->type = lib_value(c);
	a->count = lib_value(c);
	size = qcu_cudnn_attribute_size(a->type);
	if (!size || a->count > QCU_LIB_ARGS_MAX / size) {
		c->bad = true;
		return false;
	}
	a->bytes = a->count * size;
	a->elements = lib_bytes(c, a->bytes);
	return !c->bad;
}

/* Sets an attribute whose elements are objects. */
static int set_objects(struct lib_call *c, const struct functions *f, struct lib_object *o,
		       const struct attribute *a)
{
	uint32_t kind = a->type == CUDNN_TYPE_HANDLE ? QCU_LIB_CUDNN_HANDLE : QCU_LIB_CUDNN_BACKEND;
	const uint64_t *number = a->elements;
	void **native;
	uint64_t i;
	int status = 0;

	if (a->count > QCU_CUDNN_ELEMENTS) {
		c->bad = true;
		return 0;
	}
	native = calloc(a->count + 1, sizeof(*native));
	if (!native) {
		c->rc = QCU_ERR_MemoryAllocation;
		return 0;
	}
	for (i = 0; i < a->count && !c->rc; i++) {
		struct handle *h = lib_object_get(c, number[i], kind);

		/* Kept whether the library accepts it or not: it may have looked at it. */
		if (h && h->library == o) {
			handles_put(&c->c->m->handles, h);
			c->rc = QCU_ERR_InvalidValue;
		} else if (h && use(c, o, h)) {
			native[i] = h->library->native;
		}
	}
	if (!c->rc)
		status = (int)f->set(o->native, (cudnnBackendAttributeName_t)a->name,
				     (cudnnBackendAttributeType_t)a->type, (int64_t)a->count,
				     native);
	free(native);
	return status;
}

/* Both functions that send attributes: with the last ones, the descriptor is finalized. */
static int update(struct lib_call *c, bool finalize)
{
	uint64_t number = lib_value(c), there = lib_value(c), type = lib_value(c);
	uint64_t left = lib_value(c);
	struct functions f;
	struct attribute a;
	struct handle *h;
	int status = 0;

	if (c->bad)
		return 0;
	if (!look_up(c, &f))
		return CUDNN_STATUS_NOT_SUPPORTED;
	pthread_mutex_lock(&building);
	h = there ? descriptor(c, number) : make(c, &f, number, type, &status);
	while (h && left-- && !status && !c->rc && take_attribute(c, &a)) {
		if (a.type == CUDNN_TYPE_HANDLE || a.type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
			status = set_objects(c, &f, h->library, &a);
		else
			status = (int)f.set(h->library->native, (cudnnBackendAttributeName_t)a.name,
					    (cudnnBackendAttributeType_t)a.type, (int64_t)a.count,
					    a.elements);
	}
	if (h && !status && !c->rc && lib_ready(c) && finalize)
		status = (int)f.finalize(h->library->native);
	/* The guest will send all of it again. */
	if (!there && h && (status || c->rc || c->bad))
		handles_remove(&c->c->m->handles, HANDLE_LIBRARY, (uint32_t)number);
	handles_put(&c->c->m->handles, h);
	pthread_mutex_unlock(&building);
	return status;
}

int lib_do_cudnnBackendSetAttribute(struct lib_call *c)
{
	return update(c, false);
}

int lib_do_cudnnBackendFinalize(struct lib_call *c)
{
	return update(c, true);
}

/* The descriptors that a question fills. */
struct filled {
	uint64_t count;
	void **native;
	struct handle **h;
	bool *is_new;
};

static int take_filled(struct lib_call *c, const struct functions *f, struct filled *e)
{
	int status = 0;
	uint64_t i;

	for (i = 0; i < e->count && !status && !c->rc; i++) {
		uint64_t number = lib_value(c), there = lib_value(c), type = lib_value(c);

		if (c->bad)
			return 0;
		e->h[i] = there ? descriptor(c, number) : make(c, f, number, type, &status);
		e->is_new[i] = !there && e->h[i];
		if (e->h[i])
			e->native[i] = e->h[i]->library->native;
	}
	return status;
}

static bool same(const struct handle *h, const void *other)
{
	return h == other;
}

/* If it went wrong, the new ones go away. If not, they may know the one that was asked. */
static void keep_filled(struct lib_call *c, struct filled *e, struct handle *of, bool good)
{
	struct handles *t = &c->c->m->handles;
	uint64_t i;

	for (i = 0; i < e->count; i++) {
		struct handle *h = e->h[i];

		if (!h)
			continue;
		if (good && h != of)
			use(c, h->library, handle_hold(t, of));
		else if (!good && e->is_new[i])
			handles_remove_if(t, HANDLE_LIBRARY, same, h);
		handles_put(t, h);
	}
}

static int get(struct lib_call *c, const struct functions *f, struct handle *h, struct filled *e)
{
	uint64_t name = lib_value(c), type = lib_value(c), wanted = lib_value(c), bytes, len;
	uint64_t size = qcu_cudnn_attribute_size(type);
	int64_t *count, found = 0;
	void *elements;
	int status;

	e->count = lib_value(c);
	if (c->bad || !size || wanted > QCU_LIB_OUTS_MAX / size || type == CUDNN_TYPE_HANDLE ||
	    e->count > QCU_CUDNN_ELEMENTS ||
	    (e->count && (e->count != wanted || type != CUDNN_TYPE_BACKEND_DESCRIPTOR))) {
		c->bad = true;
		return 0;
	}
	e->native = calloc(e->count + 1, sizeof(*e->native));
	e->h = calloc(e->count + 1, sizeof(*e->h));
	e->is_new = calloc(e->count + 1, sizeof(*e->is_new));
	if (!e->native || !e->h || !e->is_new) {
		e->count = 0;
		c->rc = QCU_ERR_MemoryAllocation;
		return 0;
	}
	status = take_filled(c, f, e);
	if (status || c->rc)
		return status;
	count = lib_out(c, &len);
	lib_sized(c, count, len, sizeof(*count));
	elements = lib_out(c, &bytes);
	lib_sized(c, elements, bytes, wanted * size);
	/* The addresses of descriptors are nothing that a guest may see. */
	if (elements && type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		c->bad = true;
	if (!lib_ready(c))
		return 0;
	status = (int)f->get(h->library->native, (cudnnBackendAttributeName_t)name,
			     (cudnnBackendAttributeType_t)type, (int64_t)wanted, &found,
			     e->count ? e->native : elements);
	if (count)
		*count = found;
	return status;
}

int lib_do_cudnnBackendGetAttribute(struct lib_call *c)
{
	uint64_t number = lib_value(c);
	struct filled e = {0};
	struct functions f;
	struct handle *h;
	int status;

	if (c->bad)
		return 0;
	if (!look_up(c, &f))
		return CUDNN_STATUS_NOT_SUPPORTED;
	h = descriptor(c, number);
	if (!h)
		return 0;
	pthread_mutex_lock(&building);
	status = get(c, &f, h, &e);
	if (e.h)
		keep_filled(c, &e, h, !status && !c->rc && !c->bad);
	pthread_mutex_unlock(&building);
	free(e.native);
	free(e.h);
	free(e.is_new);
	handles_put(&c->c->m->handles, h);
	return status;
}

/* The tensors of an execution. */
struct tensors {
	int64_t id[QCU_CUDNN_TENSORS];
	void *address[QCU_CUDNN_TENSORS];
	uint64_t count;
	void *workspace;
};

static void take_tensors(struct lib_call *c, struct tensors *t)
{
	uint64_t i;

	t->workspace = lib_device(c);
	t->count = lib_value(c);
	if (t->count > QCU_CUDNN_TENSORS) {
		c->bad = true;
		return;
	}
	for (i = 0; i < t->count && !c->bad; i++) {
		uint64_t form;

		t->id[i] = (int64_t)lib_value(c);
		form = lib_value(c);
		if (form == QCU_LIB_DEVICE)
			t->address[i] = lib_device(c);
		else if (form == QCU_LIB_HOST)
			t->address[i] = lib_bytes(c, QCU_CUDNN_VALUE);
		else
			c->bad = true;
	}
}

static int execute(struct lib_call *c, const struct functions *f, cudnnHandle_t handle,
		   struct handle *plan, struct tensors *t)
{
	cudnnBackendDescriptor_t pack = NULL;
	int status = (int)f->create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack);

	if (status)
		return status;
	status = (int)f->set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
			     (int64_t)t->count, t->address);
	if (!status)
		status = (int)f->set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
				     (int64_t)t->count, t->id);
	if (!status)
		status = (int)f->set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
				     1, &t->workspace);
	if (!status)
		status = (int)f->finalize(pack);
	if (!status && lib_ready(c))
		status = (int)f->execute(handle, plan->library->native, pack);
	f->destroy(pack);
	return status;
}

int lib_do_cudnnBackendExecute(struct lib_call *c)
{
	cudnnHandle_t handle = lib_object(c, QCU_LIB_CUDNN_HANDLE);
	uint64_t number = lib_value(c);
	struct handle *plan = NULL;
	struct functions f;
	struct tensors t;
	int status = 0;

	take_tensors(c, &t);
	if (c->bad)
		return 0;
	if (!look_up(c, &f))
		return CUDNN_STATUS_NOT_SUPPORTED;
	plan = descriptor(c, number);
	if (plan)
		status = execute(c, &f, handle, plan, &t);
	handles_put(&c->c->m->handles, plan);
	return status;
}

/* The guest makes and ends descriptors in other ways. */
int lib_do_cudnnBackendCreateDescriptor(struct lib_call *c)
{
	c->bad = true;
	return 0;
}

int lib_do_cudnnBackendDestroyDescriptor(struct lib_call *c)
{
	c->bad = true;
	return 0;
}
