// SPDX-License-Identifier: GPL-2.0-or-later
/* The generators of cuRAND in the mirror. The command that creates one contains its type. */
#include "qcu-device/libs/curand.h"

const struct lib_kind lib_curand_kinds[QCU_LIB_KINDS] = {
	[QCU_LIB_CURAND_GENERATOR] =
		{
			.numbered = true,
			.create = "curandCreateGenerator",
			.destroy = "curandDestroyGenerator",
			.stream = "curandSetStream",
		},
};
