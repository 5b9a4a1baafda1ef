// SPDX-License-Identifier: LGPL-2.1-or-later
/* Functions of cuRAND that the guest carries out itself: generators, and their stream. */
#include "qcu-library/shims/curand.h"

curandStatus_t curandCreateGenerator(curandGenerator_t *generator, curandRngType_t type)
{
	if (!generator)
		return CURAND_STATUS_NOT_INITIALIZED;
	return (curandStatus_t)qcul_lib_create_with(&qcul_curand, KIND_curandGenerator_t, type,
						    (void **)generator);
}

curandStatus_t curandDestroyGenerator(curandGenerator_t generator)
{
	return (curandStatus_t)qcul_lib_destroy(&qcul_curand, KIND_curandGenerator_t, generator);
}

curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream)
{
	struct qcul_object *o = qcul_lib_find(generator, KIND_curandGenerator_t);

	if (!o)
		return CURAND_STATUS_NOT_INITIALIZED;
	o->stream = stream;
	return CURAND_STATUS_SUCCESS;
}
