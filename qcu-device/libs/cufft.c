// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the mirror does with a plan of cuFFT. A plan is an int, which the library's functions take
 * and write as the lower half of what a handle is here.
 */
#include "qcu-device/libs/cufft.h"

const struct lib_kind lib_cufft_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CUFFT_PLAN] =
		{
			.numbered = true,
			.create = "cufftCreate",
			.destroy = "cufftDestroy",
			.stream = "cufftSetStream",
		},
};
