// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * External memory, as far as file descriptors of this VM go: those that
 * cuMemExportToShareableHandle has made, here or in another process. Each mapped buffer has
 * addresses of its own, where all of the memory is mapped, because a mapping begins at a multiple
 * of the granularity. cudaFree of the buffer's pointer takes the mapping away.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "qcu-library/driver_virtual/virtual.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/memory/memory.h"

struct memory {
	CUmemGenericAllocationHandle handle;
	uint64_t size; /* as the program has said */
	LIST_ENTRY(memory) link;
};

struct buffer {
	uint64_t ptr;	      /* what the program got */
	uint64_t start, size; /* the mapping */
	LIST_ENTRY(buffer) link;
};

static struct {
	LIST_HEAD(, memory) memories;
	LIST_HEAD(, buffer) buffers;
} session;

/* The child has no session, and so none of the memory. */
static void free_external_memory(void)
{
	struct memory *m;
	struct buffer *b;

	while ((m = LIST_FIRST(&session.memories))) {
		LIST_REMOVE(m, link);
		free(m);
	}
	while ((b = LIST_FIRST(&session.buffers))) {
		LIST_REMOVE(b, link);
		free(b);
	}
}

QCUL_AT_FORK(QCUL_FORK_EXTERNAL, .forget = free_external_memory, QCUL_SESSION)

/* Any pointer may be passed. */
static struct memory *find_external_memory(const void *external)
{
	struct memory *m;

	LIST_FOREACH(m, &session.memories, link)
		if (m == external)
			return m;
	return NULL;
}

static bool all_zero(const unsigned int *words, size_t count)
{
	while (count)
		if (words[--count])
			return false;
	return true;
}

static cudaError_t check_memory_import(const struct cudaExternalMemoryHandleDesc *desc)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!desc || !desc->size || desc->flags & ~(unsigned int)cudaExternalMemoryDedicated ||
	    !all_zero(desc->reserved, sizeof(desc->reserved) / sizeof(desc->reserved[0])))
		return cudaErrorInvalidValue;
	if (desc->type != cudaExternalMemoryHandleTypeOpaqueFd)
		return desc->type >= cudaExternalMemoryHandleTypeOpaqueWin32 &&
				       (int)desc->type <= CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD
			       ? qcul_unsupported("external memory other than by an opaque file "
						  "descriptor",
						  &said)
			       : cudaErrorInvalidValue;
	return fcntl(desc->handle.fd, F_GETFD) < 0 ? cudaErrorInvalidValue : cudaSuccess;
}

static cudaError_t import_external_memory(cudaExternalMemory_t *out,
					  const struct cudaExternalMemoryHandleDesc *desc)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	struct memory *m = calloc(1, sizeof(*m));
	cudaError_t err;
	uint64_t size;

	if (!m)
		return cudaErrorMemoryAllocation;
	if (!qcul_virtual_is_ours(desc->handle.fd))
		err = qcul_unsupported("external memory that another driver has made", &said);
	else
		err = qcul_virtual_import(&m->handle, desc->handle.fd, &size);
	if (!err && desc->size > size) {
		(void)qcul_virtual_release(m->handle);
		err = cudaErrorInvalidValue;
	}
	if (err) {
		free(m);
		return err;
	}
	m->size = desc->size;
	LIST_INSERT_HEAD(&session.memories, m, link);
	/* The descriptor is the library's from now on. */
	close(desc->handle.fd);
	*out = (cudaExternalMemory_t)m;
	return cudaSuccess;
}

static cudaError_t ready_import_memory(cudaExternalMemory_t *out,
				       const struct cudaExternalMemoryHandleDesc *desc)
{
	cudaError_t err = out ? check_memory_import(desc) : cudaErrorInvalidValue;

	if (!err)
		err = qcul_ready();
	return err ? err : QCUL_LOCKED(import_external_memory(out, desc));
}

static cudaError_t map_external_buffer(uint64_t *ptr, const void *external,
				       const struct cudaExternalMemoryBufferDesc *desc)
{
	struct memory *m = find_external_memory(external);
	struct buffer *b;
	cudaError_t err;

	if (!m || !desc->size || desc->flags || desc->offset > m->size ||
	    desc->size > m->size - desc->offset)
		return cudaErrorInvalidValue;
	b = calloc(1, sizeof(*b));
	if (!b)
		return cudaErrorMemoryAllocation;
	err = qcul_virtual_view(m->handle, &b->start, &b->size);
	if (err) {
		free(b);
		return err;
	}
	b->ptr = b->start + desc->offset;
	LIST_INSERT_HEAD(&session.buffers, b, link);
	*ptr = b->ptr;
	return cudaSuccess;
}

static cudaError_t ready_map(uint64_t *ptr, const void *external,
			     const struct cudaExternalMemoryBufferDesc *desc)
{
	cudaError_t err = ptr && desc ? qcul_ready() : cudaErrorInvalidValue;

	return err ? err : QCUL_LOCKED(map_external_buffer(ptr, external, desc));
}

static cudaError_t make_external_mipmap(cudaMipmappedArray_t *out, const void *external,
					const struct cudaExternalMemoryMipmappedArrayDesc *desc)
{
	struct memory *m = find_external_memory(external);

	if (!m || desc->offset >= m->size)
		return cudaErrorInvalidValue;
	return qcul_virtual_mipmap(m->handle, desc, out);
}

static cudaError_t ready_mipmap(cudaMipmappedArray_t *out, const void *external,
				const struct cudaExternalMemoryMipmappedArrayDesc *desc)
{
	cudaError_t err = out && desc ? qcul_ready() : cudaErrorInvalidValue;

	return err ? err : QCUL_LOCKED(make_external_mipmap(out, external, desc));
}

static cudaError_t destroy_external_memory(void *external)
{
	struct memory *m = find_external_memory(external);
	cudaError_t err;

	if (!m)
		return cudaErrorInvalidValue;
	/* What is mapped stays until it is freed. */
	err = qcul_virtual_release(m->handle);
	LIST_REMOVE(m, link);
	free(m);
	return err;
}

static cudaError_t ready_destroy_memory(void *external)
{
	cudaError_t err = qcul_ready();

	return err ? err : QCUL_LOCKED(destroy_external_memory(external));
}

/* cudaFree of a pointer to mapped memory. */
static cudaError_t unmap_external_buffer(uint64_t ptr)
{
	struct buffer *b;
	cudaError_t err;

	LIST_FOREACH(b, &session.buffers, link)
		if (b->ptr == ptr)
			break;
	if (!b)
		return cudaErrorInvalidValue;
	err = qcul_virtual_close(b->start, b->size);
	LIST_REMOVE(b, link);
	free(b);
	return err;
}

static cudaError_t free_mapped(uint64_t ptr)
{
	return QCUL_LOCKED(unmap_external_buffer(ptr));
}

__attribute__((constructor)) static void set_free_mapped_hook(void)
{
	qcul_free_mapped = free_mapped;
}

/* ---- the runtime's functions ---- */

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *out,
				     const struct cudaExternalMemoryHandleDesc *desc)
{
	return qcul_done(ready_import_memory(out, desc));
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void **ptr, cudaExternalMemory_t memory,
					      const struct cudaExternalMemoryBufferDesc *desc)
{
	return qcul_done(ready_map((uint64_t *)ptr, memory, desc));
}

cudaError_t
cudaExternalMemoryGetMappedMipmappedArray(cudaMipmappedArray_t *mipmap, cudaExternalMemory_t memory,
					  const struct cudaExternalMemoryMipmappedArrayDesc *desc)
{
	return qcul_done(ready_mipmap(mipmap, memory, desc));
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory)
{
	return qcul_done(ready_destroy_memory(memory));
}

_Static_assert(offsetof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, flags) ==
		       offsetof(struct cudaExternalMemoryHandleDesc, flags),
	       "one layout with the driver API");
