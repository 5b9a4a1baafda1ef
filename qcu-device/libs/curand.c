// SPDX-License-Identifier: GPL-2.0-or-later
/* What the mirror does with a generator of cuRAND. Its type comes with the command that makes it.
 */
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
