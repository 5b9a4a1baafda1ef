// SPDX-License-Identifier: LGPL-2.1-or-later
/* Where a launch has its arguments: as a list of addresses, or in one buffer. */
#include <stdlib.h>

#include "qcu-library/driver_base/launch.h"
#include "qcu-library/module/module.h"

struct buffer {
	char *at;
	const size_t *size;
};

/* Pairs of a name and a value, and a name that ends the list. */
static cudaError_t read_extra(void **extra, struct buffer *b)
{
	*b = (struct buffer){0};
	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			b->at = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			b->size = extra[1];
		else
			return cudaErrorInvalidValue;
	}
	return b->at && b->size ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t qcul_args_begin(struct qcul_args *a, const void *function, void **params, void **extra)
{
	struct CUkern_st *kernel;
	struct buffer b;
	cudaError_t err;
	uint32_t i;

	a->list = params;
	a->more = NULL;
	if (!extra)
		return cudaSuccess;
	if (params)
		return cudaErrorInvalidValue;
	err = read_extra(extra, &b);
	if (!err)
		err = qcul_ready();
	if (!err)
		err = qcul_kernel(function, &kernel);
	if (!err)
		err = qcul_kernel_load(kernel);
	if (err)
		return err;
	if (*b.size > kernel->param_bytes)
		return cudaErrorLaunchOutOfResources;
	a->list = a->inside;
	if (kernel->param_count > QCUL_ARGS_INSIDE) {
		a->list = a->more = malloc(kernel->param_count * sizeof(*a->more));
		if (!a->more)
			return cudaErrorMemoryAllocation;
	}
	for (i = 0; i < kernel->param_count; i++) {
		const struct qcu_param *p = &kernel->params[i];

		if (p->offset > *b.size || p->size > *b.size - p->offset) {
			free(a->more);
			return cudaErrorInvalidValue;
		}
		a->list[i] = b.at + p->offset;
	}
	return cudaSuccess;
}

void qcul_args_end(struct qcul_args *a)
{
	free(a->more);
}
