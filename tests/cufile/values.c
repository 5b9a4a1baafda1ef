// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints what a program sees of cuFile's types. tests/check/cufile.sh compiles it with NVIDIA's
 * header and with ours. */
#include <stddef.h>
#include <stdio.h>

#ifdef THEIRS
#include <cufile.h>
#else
#include "qcu-library/cufile/api.h"
#endif

#define VALUE(x) printf("%s %lld\n", #x, (long long)(x))
#define MEMBER(type, member)                                              \
	printf("%s.%s %zu %zu\n", #type, #member, offsetof(type, member), \
	       sizeof(((type *)0)->member))

int main(void)
{
	VALUE(CU_FILE_SUCCESS);
	VALUE(CU_FILE_DRIVER_NOT_INITIALIZED);
	VALUE(CU_FILE_PLATFORM_NOT_SUPPORTED);
	VALUE(CU_FILE_IO_NOT_SUPPORTED);
	VALUE(CU_FILE_CUDA_DRIVER_ERROR);
	VALUE(CU_FILE_CUDA_POINTER_RANGE_ERROR);
	VALUE(CU_FILE_INVALID_FILE_TYPE);
	VALUE(CU_FILE_INVALID_FILE_OPEN_FLAG);
	VALUE(CU_FILE_INVALID_VALUE);
	VALUE(CU_FILE_MEMORY_ALREADY_REGISTERED);
	VALUE(CU_FILE_MEMORY_NOT_REGISTERED);
	VALUE(CU_FILE_DRIVER_ALREADY_OPEN);
	VALUE(CU_FILE_HANDLE_NOT_REGISTERED);
	VALUE(CU_FILE_HANDLE_ALREADY_REGISTERED);
	VALUE(CU_FILE_GETNEWFD_FAILED);
	VALUE(CU_FILE_ASYNC_NOT_SUPPORTED);
	VALUE(CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR);
	VALUE(CU_FILE_NOMEM_ERROR);
	VALUE(CU_FILE_INVALID_CONTEXT_ERROR);
	VALUE(CU_FILE_USE_POLL_MODE);
	VALUE(CU_FILE_ALLOW_COMPAT_MODE);
	VALUE(CU_FILE_HANDLE_TYPE_OPAQUE_FD);
	VALUE(CUFILE_READ);
	VALUE(CUFILE_WRITE);
	VALUE(CUFILE_COMPLETE);
	VALUE(CUFILE_FAILED);
	VALUE(CUFILE_BATCH);
	VALUE(CUFILE_PARAM_PROFILE_STATS);
	VALUE(CUFILE_PARAM_PROPERTIES_MAX_DIRECT_IO_SIZE_KB);
	VALUE(CUFILE_PARAM_PROPERTIES_IO_BATCHSIZE);
	VALUE(CUFILE_PARAM_PROPERTIES_BATCH_IO_TIMEOUT_MS);
	VALUE(CUFILE_PARAM_PROPERTIES_USE_POLL_MODE);
	VALUE(CUFILE_PARAM_PROFILE_NVTX);
	VALUE(CUFILE_PARAM_GDS_FALLBACK_IO);
	VALUE(sizeof(CUfileError_t));
	VALUE(sizeof(CUfileDrvProps_t));
	VALUE(sizeof(CUfileDescr_t));
	VALUE(sizeof(CUfileIOParams_t));
	VALUE(sizeof(CUfileIOEvents_t));
	VALUE(sizeof(CUfileIOVec_t));
	MEMBER(CUfileError_t, err);
	MEMBER(CUfileError_t, cu_err);
	MEMBER(CUfileDrvProps_t, nvfs.poll_thresh_size);
	MEMBER(CUfileDrvProps_t, nvfs.dcontrolflags);
	MEMBER(CUfileDrvProps_t, fflags);
	MEMBER(CUfileDrvProps_t, max_batch_io_timeout_msecs);
	MEMBER(CUfileDescr_t, handle.fd);
	MEMBER(CUfileDescr_t, fs_ops);
	MEMBER(CUfileIOParams_t, u.batch.devPtr_base);
	MEMBER(CUfileIOParams_t, u.batch.file_offset);
	MEMBER(CUfileIOParams_t, u.batch.devPtr_offset);
	MEMBER(CUfileIOParams_t, u.batch.size);
	MEMBER(CUfileIOParams_t, fh);
	MEMBER(CUfileIOParams_t, opcode);
	MEMBER(CUfileIOParams_t, cookie);
	MEMBER(CUfileIOEvents_t, cookie);
	MEMBER(CUfileIOEvents_t, status);
	MEMBER(CUfileIOEvents_t, ret);
	MEMBER(CUfileIOVec_t, len);
	return 0;
}
