// SPDX-License-Identifier: LGPL-2.1-or-later
/* What an address belongs to. */
#include <string.h>

#include "qcu-library/driver_base/driver.h"
#include "qcu-library/malloc/addresses.h"

static struct qcul_range range_of_address(CUdeviceptr address)
{
	return qcul_mem_find(qcul_driver_ptr(address));
}

/* The address that the GPU uses, and the one that the CPU uses. 0: none. */
static CUdeviceptr device_address(const struct qcul_range *r, CUdeviceptr address)
{
	return qcul_range_is_registered(r)
		       ? (CUdeviceptr)qcul_mem_device_address(qcul_driver_ptr(address))
		       : address;
}

static CUdeviceptr host_address(const struct qcul_range *r, CUdeviceptr address)
{
	switch (r->kind) {
	case QCUL_MEM_DEVICE:
		return 0;
	case QCUL_MEM_VARIABLE:
		return qcul_range_has(r, QCUL_MEM_COPIED) ? address : 0;
	case QCUL_MEM_ALIAS:
		return r->other + (address - r->start);
	default:
		return address;
	}
}

static bool managed(const struct qcul_range *r)
{
	return qcul_range_is_managed(r) || qcul_range_has(r, QCUL_MEM_COPIED);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr address)
{
	struct qcul_range r = range_of_address(address);

	if (!qcul_range_is_known(&r))
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = r.start;
	if (size)
		*size = r.len;
	return CUDA_SUCCESS;
}

/* An attribute's value as bytes. */
struct value {
	size_t bytes;
	union {
		uint64_t wide;
		uint32_t word;
		bool flag;
	};
};

static struct value wide(uint64_t v)
{
	return (struct value){.bytes = sizeof(v), .wide = v};
}

static struct value value_of_word(uint32_t v)
{
	return (struct value){.bytes = sizeof(v), .word = v};
}

static struct value value_of_flag(bool v)
{
	return (struct value){.bytes = sizeof(v), .flag = v};
}

/* False: the attribute does not exist, or has no value for this memory. */
static bool get_pointer_attribute(CUpointer_attribute attribute, const struct qcul_range *r,
				  CUdeviceptr address, struct value *v)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*v = wide((uint64_t)(uintptr_t)qcul_driver_context_of(r->device));
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*v = value_of_word(qcul_range_is_on_gpu(r) || managed(r) ? CU_MEMORYTYPE_DEVICE
									 : CU_MEMORYTYPE_HOST);
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*v = wide(device_address(r, address));
		return true;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*v = wide(host_address(r, address));
		return v->wide;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*v = value_of_word(0);
		return true;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		/* No two blocks begin at one address at a time. */
		*v = wide(r->start ^ (uint64_t)r->epoch << 56);
		return true;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*v = value_of_word(managed(r));
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*v = value_of_word((uint32_t)r->device);
		return true;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*v = value_of_word(qcul_range_is_exportable(r));
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*v = wide(r->start);
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*v = wide(r->len);
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*v = value_of_flag(true);
		return true;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*v = wide(0);
		return true;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		*v = value_of_flag(false);
		return true;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*v = value_of_word(CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
		return true;
	default:
		return false;
	}
}

/* The size of an attribute, whatever the pointer. 0: there is no such attribute. */
static size_t size_of(CUpointer_attribute attribute)
{
	const struct qcul_range some = {.kind = QCUL_MEM_PINNED, .start = 1};
	struct value v;

	return get_pointer_attribute(attribute, &some, 1, &v) ? v.bytes : 0;
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr address)
{
	struct qcul_range r;
	struct value v;

	if (!data)
		return CUDA_ERROR_INVALID_VALUE;
	r = range_of_address(address);
	if (!qcul_range_is_known(&r) || !get_pointer_attribute(attribute, &r, address, &v))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(data, &v.wide, v.bytes);
	return CUDA_SUCCESS;
}

/* Attributes that an address does not have are 0, or an ordinal that no device has. */
CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes, void **data,
				CUdeviceptr address)
{
	struct qcul_range r;
	unsigned int i;

	if (!count || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < count; i++)
		if (!data[i] || !size_of(attributes[i]))
			return CUDA_ERROR_INVALID_VALUE;
	r = range_of_address(address);
	for (i = 0; i < count; i++) {
		struct value v;

		if (!qcul_range_is_known(&r) ||
		    !get_pointer_attribute(attributes[i], &r, address, &v)) {
			v = (struct value){.bytes = size_of(attributes[i])};
			if (attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
				v.word = (uint32_t)CU_DEVICE_INVALID;
		}
		memcpy(data[i], &v.wide, v.bytes);
	}
	return CUDA_SUCCESS;
}

/* All copies that the program may not notice are synchronous anyway. */
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
			       CUdeviceptr address)
{
	struct qcul_range r = range_of_address(address);

	return value && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS && r.kind == QCUL_MEM_DEVICE
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}
