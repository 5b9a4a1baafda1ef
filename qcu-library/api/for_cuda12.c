// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What libcudart.so.12 needs of this library besides the public functions. These have no symbol
 * version, so no program that is linked with NVIDIA's library can mean them.
 */
#include "qcu-library/link/link.h"

#define PUBLIC __attribute__((visibility("default")))

PUBLIC cudaError_t qcul_12_error(cudaError_t err);
PUBLIC cudaError_t qcul_12_unsupported(const char *name, atomic_flag *said);

cudaError_t qcul_12_error(cudaError_t err)
{
	return qcul_done(err);
}

cudaError_t qcul_12_unsupported(const char *name, atomic_flag *said)
{
	return qcul_unsupported(name, said);
}
