/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the files of cuFile share. A guest has no GPUDirect Storage. So this is what NVIDIA's own
 * library calls its compatibility mode: a file is read and written by the CPU, and its data go
 * through pinned memory. It uses only public functions of the runtime.
 */
#ifndef QCUF_CUFILE_H
#define QCUF_CUFILE_H

#include "qcu-library/cufile/api.h"

#define QCUF_PUBLIC __attribute__((visibility("default")))

#define QCUF_BATCH_MOST 128u /* transfers of a batch */

static inline CUfileError_t qcuf_error(CUfileOpError err)
{
	return (CUfileError_t){.err = err};
}

/* The runtime's errors have the numbers of the driver's, for those that come here. */
static inline CUfileError_t qcuf_cuda(cudaError_t err)
{
	return err ? (CUfileError_t){CU_FILE_CUDA_DRIVER_ERROR, (int)err} : (CUfileError_t){0};
}

/* driver.c: what needs an open driver opens it. */
CUfileError_t qcuf_open_once(void);

/* files.c: is it registered? */
bool qcuf_known(CUfileHandle_t fh);
/* Returns the bytes moved, or a negative error: errno, CUfileOpError or cudaError_t. */
ssize_t qcuf_move(CUfileHandle_t fh, bool write, void *base, size_t size, off_t file_offset,
		  off_t offset);

#endif
