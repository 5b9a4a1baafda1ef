// SPDX-License-Identifier: GPL-2.0-or-later
/* The objects of cuSOLVER in the mirror. */
#include "qcu-device/libs/cusolver.h"

const struct lib_kind lib_cusolver_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CUSOLVER_DN] =
		{
			.numbered = true,
			.create = "cusolverDnCreate",
			.destroy = "cusolverDnDestroy",
			.stream = "cusolverDnSetStream",
		},
	[QCU_LIB_CUSOLVER_PARAMS] =
		{
			.create = "cusolverDnCreateParams",
			.destroy = "cusolverDnDestroyParams",
		},
	[QCU_LIB_CUSOLVER_SYEVJ] =
		{
			.create = "cusolverDnCreateSyevjInfo",
			.destroy = "cusolverDnDestroySyevjInfo",
		},
	[QCU_LIB_CUSOLVER_GESVDJ] =
		{
			.create = "cusolverDnCreateGesvdjInfo",
			.destroy = "cusolverDnDestroyGesvdjInfo",
		},
};
