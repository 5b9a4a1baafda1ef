// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The backend API of cuDNN: descriptors with typed attributes. The settings of a descriptor stay
 * here until it is finalized, and are then sent together (include/qculib_cudnn.h). A variant pack,
 * which says where the tensors are, is sent only as part of the execution that uses it. So
 * executing a plan that was built before is one command without a wait.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/shims/cudnn.h"

#define ROUND(n) (((n) + 7) & ~(uint64_t)7)

/* What the shim knows of a descriptor: `own` of its object. */
struct descriptor_state {
	cudnnBackendDescriptorType_t type;
	bool sent; /* the mirror has it */
	bool finalized;
	unsigned char *at; /* attributes that have not travelled yet */
	uint32_t used, room, count;
};

struct attribute {
	uint64_t name, type, count; /* then the elements */
};

/* Of a variant pack. */
struct tensors {
	const int64_t *id;
	void *const *address;
	uint64_t ids, addresses;
	void *workspace;
};

static struct qcul_object *find_backend_object(cudnnBackendDescriptor_t descriptor)
{
	return qcul_lib_find(descriptor, QCU_LIB_CUDNN_BACKEND);
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
					   cudnnBackendDescriptor_t *descriptor)
{
	struct descriptor_state *b = descriptor ? calloc(1, sizeof(*b)) : NULL;
	int status;

	if (!descriptor)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (!b)
		return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	status = qcul_lib_describe(&qcul_cudnn, QCU_LIB_CUDNN_BACKEND, descriptor);
	if (status) {
		free(b);
		return (cudnnStatus_t)status;
	}
	b->type = type;
	((struct qcul_object *)*descriptor)->own = b;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
	struct qcul_object *o = find_backend_object(descriptor);
	struct descriptor_state *b = o ? o->own : NULL;
	struct qcul_pack p;
	int status = 0;

	if (!o)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (b->sent) {
		qcul_lib_begin(&p, &qcul_cudnn, QCU_LIB_DESTROY);
		qcul_lib_value(&p, o->number);
		status = qcul_lib_call(&p);
	}
	free(b->at);
	free(b);
	o->own = NULL;
	qcul_lib_undescribe(&qcul_cudnn, QCU_LIB_CUDNN_BACKEND, descriptor);
	return (cudnnStatus_t)status;
}

/* Nothing has to be done: a new descriptor is as this would make it. */
cudnnStatus_t cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor)
{
	return find_backend_object(descriptor) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

/* Sends what has not travelled yet. */
static cudnnStatus_t send_kept_attributes(struct qcul_object *o, uint16_t function)
{
	struct descriptor_state *b = o->own;
	struct qcul_pack p;
	uint32_t at;
	int status;

	qcul_lib_begin(&p, &qcul_cudnn, function);
	qcul_lib_value(&p, o->number);
	qcul_lib_value(&p, b->sent);
	qcul_lib_value(&p, b->type);
	qcul_lib_value(&p, b->count);
	for (at = 0; at < b->used; at += sizeof(uint64_t))
		qcul_lib_plain(&p, *(const uint64_t *)(b->at + at));
	status = qcul_lib_ask(&p);
	if (status)
		return (cudnnStatus_t)status;
	b->sent = true;
	b->used = b->count = 0;
	return CUDNN_STATUS_SUCCESS;
}

/* Handles and descriptors become their numbers. */
static cudnnStatus_t numbers(const struct attribute *a, const void *elements, uint64_t *to)
{
	void *const *from = elements;
	uint64_t i;

	for (i = 0; i < a->count; i++) {
		const bool handle = a->type == CUDNN_TYPE_HANDLE;
		struct qcul_object *o = handle ? qcul_lib_find(from[i], QCU_LIB_CUDNN_HANDLE)
					       : find_backend_object(from[i]);

		if (!o)
			return CUDNN_STATUS_BAD_PARAM;
		if (!handle && !((struct descriptor_state *)o->own)->sent)
			return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
		to[i] = o->number;
	}
	return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t keep_backend_attribute(struct descriptor_state *b, const struct attribute *a,
					    const void *elements)
{
	uint64_t bytes = a->count * qcu_cudnn_attribute_size(a->type);
	uint64_t len = sizeof(*a) + ROUND(bytes);
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	unsigned char *at;

	if (len > b->room - b->used) {
		uint64_t room = 2 * (b->used + len);

		at = room < QCU_LIB_ARGS_MAX ? realloc(b->at, room) : NULL;
		if (!at)
			return CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
		b->at = at;
		b->room = (uint32_t)room;
	}
	at = b->at + b->used;
	memset(at, 0, len);
	memcpy(at, a, sizeof(*a));
	at += sizeof(*a);
	if (a->type == CUDNN_TYPE_HANDLE || a->type == CUDNN_TYPE_BACKEND_DESCRIPTOR)
		status = numbers(a, elements, (uint64_t *)at);
	else if (bytes)
		memcpy(at, elements, bytes);
	if (!status) {
		b->used += (uint32_t)len;
		b->count++;
	}
	return status;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
				       cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t count,
				       const void *elements)
{
	struct qcul_object *o = find_backend_object(descriptor);
	struct attribute a = {name, type, (uint64_t)count};
	uint64_t size = qcu_cudnn_attribute_size(type);
	struct descriptor_state *b = o ? o->own : NULL;
	cudnnStatus_t status;

	if (!o)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (count < 0 || !size || (uint64_t)count > QCU_LIB_ARGS_MAX / size / 2)
		return CUDNN_STATUS_BAD_PARAM;
	if (count && !elements)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (b->finalized)
		return CUDNN_STATUS_NOT_INITIALIZED;
	status = keep_backend_attribute(b, &a, elements);
	/* What came from the mirror, or has travelled, tells at once what is wrong. */
	if (!status && b->sent)
		status = send_kept_attributes(o, qcul_number_cudnnBackendSetAttribute);
	return status;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
	struct qcul_object *o = find_backend_object(descriptor);
	struct descriptor_state *b = o ? o->own : NULL;
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;

	if (!o)
		return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
	if (b->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
		status = send_kept_attributes(o, qcul_number_cudnnBackendFinalize);
	if (!status)
		b->finalized = true;
	return status;
}

/* Elements that the mirror is to fill, or may have filled before. */
static cudnnStatus_t elements_to_fill(struct qcul_pack *p, void *const *elements, int64_t count)
{
	int64_t i;

	qcul_lib_value(p, (uint64_t)count);
	for (i = 0; i < count; i++) {
		struct qcul_object *o = find_backend_object(elements[i]);
		struct descriptor_state *b = o ? o->own : NULL;

		if (!o)
			return CUDNN_STATUS_BAD_PARAM;
		qcul_lib_value(p, o->number);
		qcul_lib_value(p, b->sent);
		qcul_lib_value(p, b->type);
	}
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
				       cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t wanted,
				       int64_t *count, void *elements)
{
	struct qcul_object *o = find_backend_object(descriptor);
	struct descriptor_state *b = o ? o->own : NULL;
	uint64_t size = qcu_cudnn_attribute_size(type);
	const bool filled = elements && type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
	cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
	struct qcul_pack p;
	int64_t i, found = 0;
	void *room = NULL;

	if (!o || wanted < 0 || !size || (uint64_t)wanted > QCU_LIB_OUTS_MAX / size / 2 ||
	    (filled && wanted > (int64_t)QCU_CUDNN_ELEMENTS))
		return CUDNN_STATUS_BAD_PARAM;
	/* Handles are numbers of this side, and variant packs are not there. */
	if (type == CUDNN_TYPE_HANDLE || b->type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
		return CUDNN_STATUS_NOT_SUPPORTED;
	if (!b->sent)
		status = send_kept_attributes(o, qcul_number_cudnnBackendSetAttribute);
	if (status)
		return status;
	qcul_lib_begin(&p, &qcul_cudnn, qcul_number_cudnnBackendGetAttribute);
	qcul_lib_value(&p, o->number);
	qcul_lib_value(&p, name);
	qcul_lib_value(&p, type);
	qcul_lib_value(&p, (uint64_t)wanted);
	status = elements_to_fill(&p, filled ? elements : NULL, filled ? wanted : 0);
	/* A program may ask for more than there are, and have room for these only. */
	if (elements && !filled) {
		room = malloc((uint64_t)wanted * size + 1);
		if (!room)
			status = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
	}
	qcul_lib_out(&p, &found, sizeof(found));
	qcul_lib_out(&p, room, (uint64_t)wanted * size);
	if (status) {
		free(room);
		return (cudnnStatus_t)qcul_lib_drop(&p, status);
	}
	status = (cudnnStatus_t)qcul_lib_ask(&p);
	if (!status && room && found > 0)
		memcpy(elements, room, (uint64_t)(found < wanted ? found : wanted) * size);
	if (!status && count)
		*count = found;
	free(room);
	for (i = 0; !status && filled && i < wanted; i++) {
		b = find_backend_object(((void **)elements)[i])->own;
		b->sent = true;
	}
	return status;
}

/* Takes a variant pack apart. */
static cudnnStatus_t take_tensors(cudnnBackendDescriptor_t pack, struct tensors *t)
{
	struct qcul_object *o = find_backend_object(pack);
	struct descriptor_state *b = o ? o->own : NULL;
	uint32_t at = 0;

	if (!o || b->type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
		return CUDNN_STATUS_BAD_PARAM;
	if (!b->finalized)
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	while (at < b->used) {
		const struct attribute *a = (const struct attribute *)(b->at + at);
		const void *elements = a + 1;

		if (a->name == CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS) {
			t->id = elements;
			t->ids = a->count;
		} else if (a->name == CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS) {
			t->address = elements;
			t->addresses = a->count;
		} else if (a->name == CUDNN_ATTR_VARIANT_PACK_WORKSPACE) {
			if (a->count)
				t->workspace = *(void *const *)elements;
		} else {
			static atomic_flag said = ATOMIC_FLAG_INIT;

			return (cudnnStatus_t)qcul_lib_unserved(
				&qcul_cudnn, "a variant pack with other shapes", &said);
		}
		at += (uint32_t)(sizeof(*a) + ROUND(a->count * qcu_cudnn_attribute_size(a->type)));
	}
	return t->ids == t->addresses && t->ids <= QCU_CUDNN_TENSORS ? CUDNN_STATUS_SUCCESS
								     : CUDNN_STATUS_BAD_PARAM;
}

/*
 * A tensor that is one number may be in the host's memory, where the mirror cannot read it. Pinned
 * memory may hold any tensor, and only the mirror knows which of them are numbers.
 */
static void pack_tensor_address(struct qcul_pack *p, const void *at)
{
	struct cudaPointerAttributes attributes = {.type = cudaMemoryTypeDevice};
	uint64_t value[QCU_CUDNN_VALUE / sizeof(uint64_t)] = {0};
	uintptr_t page_left = 4096 - ((uintptr_t)at & 4095);
	bool host, device;

	if (at && cudaPointerGetAttributes(&attributes, at) != cudaSuccess)
		attributes.type = cudaMemoryTypeDevice;
	host = attributes.type == cudaMemoryTypeUnregistered ||
	       attributes.type == cudaMemoryTypeHost;
	device = attributes.type != cudaMemoryTypeUnregistered;
	qcul_lib_value(p, host && device ? QCU_LIB_BOTH : host ? QCU_LIB_HOST : QCU_LIB_DEVICE);
	if (device)
		qcul_lib_device(p, at);
	if (!host)
		return;
	memcpy(value, at, page_left < sizeof(value) ? page_left : sizeof(value));
	qcul_lib_plain(p, value[0]);
	qcul_lib_plain(p, value[1]);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
				  cudnnBackendDescriptor_t pack)
{
	struct tensors t = {0};
	struct qcul_object *o = find_backend_object(plan);
	cudnnStatus_t status = take_tensors(pack, &t);
	struct qcul_pack p;
	uint64_t i;

	if (status)
		return status;
	if (!o || !((struct descriptor_state *)o->own)->sent)
		return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
	qcul_lib_begin(&p, &qcul_cudnn, qcul_number_cudnnBackendExecute);
	qcul_lib_object(&p, handle, KIND_cudnnHandle_t);
	qcul_lib_value(&p, o->number);
	qcul_lib_device(&p, t.workspace);
	qcul_lib_value(&p, t.ids);
	for (i = 0; i < t.ids; i++) {
		qcul_lib_value(&p, (uint64_t)t.id[i]);
		pack_tensor_address(&p, t.address[i]);
	}
	return (cudnnStatus_t)qcul_lib_call(&p);
}
