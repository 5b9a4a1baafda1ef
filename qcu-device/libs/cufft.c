// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The plans of cuFFT in the mirror. A plan is an int. The library's functions take and write it as
 * the lower half of the value that is a handle here.
 */
#include "qcu-device/libs/cufft.h"

const struct lib_kind lib_cufft_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CUFFT_PLAN] =
		{
			.numbered = true,
			.create = "cufftCreate",
			.destroy = "cufftDestroy",
			.stream = "cufftSetStream",
			.kept = true,
		},
};
