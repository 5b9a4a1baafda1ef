// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory without an address for other processes. The file descriptor is a sealed memfd with the
 * host's token, which is what gives access: who gets the descriptor gets the memory, as in CUDA.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qcu-library/driver_virtual/virtual.h"

#define MAGIC 0x6d656d7670636375ull
#define SEALS (F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

struct file {
	uint64_t magic;
	struct qcu_ipc_token token;
	uint64_t device; /* the mirror's number */
};

static cudaError_t check_share_type(CUmemAllocationHandleType type, unsigned long long flags)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (type == CU_MEM_HANDLE_TYPE_FABRIC)
		return qcul_unsupported("memory shared through a fabric", &said);
	return type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && !flags ? cudaSuccess
									  : cudaErrorInvalidValue;
}

static cudaError_t get_token(struct qcul_phys *p)
{
	cudaError_t err = cudaSuccess;

	if (!p->shared)
		err = qcul_ask_phys_export(qcul_self.device, p->mem, &p->token);
	p->shared = !err;
	return err;
}

static cudaError_t export(int *fd, CUmemGenericAllocationHandle handle)
{
	struct qcul_phys *p = qcul_phys_find(handle);
	struct file file = {.magic = MAGIC};
	cudaError_t err;
	int made;

	if (!p || !p->prop.requestedHandleTypes)
		return cudaErrorInvalidValue;
	err = get_token(p);
	if (err)
		return err;
	file.token = p->token;
	file.device = qcul_device_ordinal(p->prop.location.id);
	made = memfd_create("qcuda-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (made < 0)
		return cudaErrorOperatingSystem;
	if (write(made, &file, sizeof(file)) != sizeof(file) || fcntl(made, F_ADD_SEALS, SEALS)) {
		close(made);
		return cudaErrorOperatingSystem;
	}
	*fd = made;
	return cudaSuccess;
}

static bool read_token_file(int fd, struct file *file)
{
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && seals & F_SEAL_WRITE &&
	       pread(fd, file, sizeof(*file), 0) == sizeof(*file) && file->magic == MAGIC;
}

bool qcul_virtual_is_ours(int fd)
{
	struct file file;

	return read_token_file(fd, &file);
}

static cudaError_t import_shared_memory(CUmemGenericAllocationHandle *handle, int fd)
{
	CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location.type = CU_MEM_LOCATION_TYPE_DEVICE,
	};
	struct qcul_phys *p;
	struct file file;
	cudaError_t err;
	uint64_t size;

	if (fcntl(fd, F_GETFD) < 0)
		return cudaErrorUnknown;
	if (!read_token_file(fd, &file))
		return cudaErrorInvalidValue;
	/* The process that has made the memory gets another handle to it. */
	p = qcul_phys_shared(&file.token);
	if (p) {
		*handle = qcul_phys_handle(p);
		return cudaSuccess;
	}
	prop.location.id = qcul_device_with_ordinal(file.device);
	if (prop.location.id < 0)
		return cudaErrorInvalidDevice;
	p = qcul_phys_new(&prop);
	if (!p)
		return cudaErrorMemoryAllocation;
	err = qcul_ask_phys_import(prop.location.id, &file.token, p->mem, &size);
	if (err) {
		free(p);
		return err;
	}
	qcul_phys_made(p);
	p->size = size;
	p->imported = true;
	p->token = file.token;
	p->shared = true;
	*handle = qcul_phys_handle(p);
	return cudaSuccess;
}

static cudaError_t export_locked(int *fd, CUmemGenericAllocationHandle handle)
{
	cudaError_t err = qcul_ready();

	qcul_virtual_lock();
	if (!err)
		err = export(fd, handle);
	qcul_virtual_unlock();
	return err;
}

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType type, unsigned long long flags)
{
	CUresult result =
		QCUL_RUNTIME(shareable ? check_share_type(type, flags) : cudaErrorInvalidValue);

	return result ? result : QCUL_RUNTIME(export_locked(shareable, handle));
}

static cudaError_t import_locked(CUmemGenericAllocationHandle *handle, int fd)
{
	cudaError_t err = qcul_ready();

	qcul_virtual_lock();
	if (!err)
		err = import_shared_memory(handle, fd);
	qcul_virtual_unlock();
	return err;
}

cudaError_t qcul_virtual_import(CUmemGenericAllocationHandle *handle, int fd, uint64_t *size)
{
	cudaError_t err;

	qcul_virtual_lock();
	err = import_shared_memory(handle, fd);
	if (!err)
		*size = qcul_phys_find(*handle)->size;
	qcul_virtual_unlock();
	return err;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
					CUmemAllocationHandleType type)
{
	CUresult result = QCUL_RUNTIME(handle ? check_share_type(type, 0) : cudaErrorInvalidValue);

	return result ? result : QCUL_RUNTIME(import_locked(handle, (int)(intptr_t)shareable));
}
