/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory without an address (virtual.c), also of other processes (virtual_share.c). */
#ifndef QCUL_VIRTUAL_H
#define QCUL_VIRTUAL_H

#include <sys/queue.h>

#include "qcu-library/driver_base/driver.h"
#include "qcu-library/link/ask.h"

/* It lives as long as the program has a handle or something maps it. */
struct qcul_phys {
	uint32_t mem; /* the mirror's number; the program's handle is made of it */
	unsigned int handles, maps;
	size_t size;
	CUmemAllocationProp prop;
	bool imported;
	bool shared; /* the token is valid: it has been exported, or imported */
	struct qcu_ipc_token token;
	LIST_ENTRY(qcul_phys) link;
};

/* Held during all calls, and in the functions below. */
void qcul_virtual_lock(void);
void qcul_virtual_unlock(void);
/* NULL: any number may be passed as a handle. */
struct qcul_phys *qcul_phys_find(CUmemGenericAllocationHandle handle);
struct qcul_phys *qcul_phys_shared(const struct qcu_ipc_token *token);
/* Has a number that is free. The caller makes the memory, and says so, or frees the struct. */
struct qcul_phys *qcul_phys_new(const CUmemAllocationProp *prop);
void qcul_phys_made(struct qcul_phys *p);
CUmemGenericAllocationHandle qcul_phys_handle(struct qcul_phys *p);

/* These take the lock. For external_memory.c. */
bool qcul_virtual_is_ours(int fd);
cudaError_t qcul_virtual_import(CUmemGenericAllocationHandle *handle, int fd, uint64_t *size);
cudaError_t qcul_virtual_release(CUmemGenericAllocationHandle handle);
/* Makes a mipmapped array in the memory. */
cudaError_t qcul_virtual_mipmap(CUmemGenericAllocationHandle handle,
				const struct cudaExternalMemoryMipmappedArrayDesc *desc,
				cudaMipmappedArray_t *out);
/* Maps all of the memory at new addresses, for reading and writing on its device. */
cudaError_t qcul_virtual_view(CUmemGenericAllocationHandle handle, uint64_t *addr, uint64_t *size);
cudaError_t qcul_virtual_close(uint64_t addr, uint64_t size);

#endif
