// SPDX-License-Identifier: GPL-2.0-or-later
/* Creates and destroys handles of cuBLAS in the mirror, and applies their settings. */
#include "qcu-device/libs/cublas.h"

const struct lib_kind lib_cublas_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CUBLAS_HANDLE] =
		{
			.numbered = true,
			.bare = true,
			.create = "cublasCreate_v2",
			.destroy = "cublasDestroy_v2",
			.stream = "cublasSetStream_v2",
			.mode = "cublasSetPointerMode_v2",
		},
};
