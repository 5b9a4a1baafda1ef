// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Memory that programs allocate through NCCL, or register with it. Registering has no advantage
 * here, so it only returns handles.
 */
#include <stdlib.h>

#include "qcu-library/nccl/comm.h"

struct ncclWindow_vidmem {
	void *p;
};

QCCL_PUBLIC ncclResult_t ncclMemAlloc(void **p, size_t size)
{
	if (!p || !size)
		return qccl_fail(ncclInvalidArgument,
				 "ncclMemAlloc: no bytes, or the pointer is NULL");
	return qccl_cuda(cudaMalloc(p, size), "cudaMalloc");
}

QCCL_PUBLIC ncclResult_t ncclMemFree(void *p)
{
	return qccl_cuda(cudaFree(p), "cudaFree");
}

static ncclResult_t hand_out(const ncclComm_t comm, void *p, size_t size, ncclWindow_t *to)
{
	ncclResult_t res = qccl_check(comm);

	if (res)
		return res;
	if (!p || !size || !to)
		return qccl_fail(ncclInvalidArgument, "no bytes, or a pointer is NULL");
	*to = malloc(sizeof(**to));
	if (!*to)
		return qccl_fail(ncclSystemError, "no memory");
	(*to)->p = p;
	return ncclSuccess;
}

static ncclResult_t take_back(const ncclComm_t comm, ncclWindow_t w)
{
	ncclResult_t res = qccl_check(comm);

	if (!res)
		free(w);
	return res;
}

QCCL_PUBLIC ncclResult_t ncclCommRegister(const ncclComm_t comm, void *p, size_t size,
					  void **handle)
{
	return hand_out(comm, p, size, (ncclWindow_t *)handle);
}

QCCL_PUBLIC ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
	return take_back(comm, handle);
}

QCCL_PUBLIC ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *p, size_t size,
						ncclWindow_t *window, int flags)
{
	(void)flags;
	return hand_out(comm, p, size, window);
}

QCCL_PUBLIC ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
	return comm ? take_back(comm, window) : ncclSuccess;
}

QCCL_PUBLIC ncclResult_t ncclWinGetUserPtr(ncclComm_t comm, ncclWindow_t window, void **p)
{
	ncclResult_t res = qccl_check(comm);

	if (res)
		return res;
	if (!window || !p)
		return qccl_fail(ncclInvalidArgument, "ncclWinGetUserPtr: a pointer is NULL");
	*p = window->p;
	return ncclSuccess;
}
