// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Launches as before CUDA 4: a function keeps its block's shape and its parameters until a call
 * launches it.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/driver_base/driver.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/module/module.h"

#define PARAM_BYTES 4096

struct prepared {
	CUfunction function;
	unsigned int block[3];
	unsigned int shared;
	size_t bytes;
	char params[PARAM_BYTES];
	struct prepared *next;
};

static struct {
	struct prepared *list;
} process;
QCUL_AT_FORK(QCUL_FORK_OLD_LAUNCHES)

/* Checks the function. NULL with *result: it is none, or there is no memory. The lock is held. */
static struct prepared *find_or_add_prepared(CUfunction function, CUresult *result)
{
	struct CUkern_st *kernel;
	struct prepared *p;

	*result = QCUL_RUNTIME(qcul_kernel(function, &kernel));
	if (*result)
		return NULL;
	for (p = process.list; p && p->function != function; p = p->next)
		;
	if (!p) {
		p = calloc(1, sizeof(*p));
		*result = p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (p && !p->function) {
		p->function = function;
		p->next = process.list;
		process.list = p;
	}
	return p;
}

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
	struct prepared *p;
	CUresult result;

	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&at_fork.lock);
	p = find_or_add_prepared(function, &result);
	if (p) {
		p->block[0] = (unsigned int)x;
		p->block[1] = (unsigned int)y;
		p->block[2] = (unsigned int)z;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return result;
}

CUresult cuFuncSetSharedSize(CUfunction function, unsigned int bytes)
{
	struct prepared *p;
	CUresult result;

	pthread_mutex_lock(&at_fork.lock);
	p = find_or_add_prepared(function, &result);
	if (p)
		p->shared = bytes;
	pthread_mutex_unlock(&at_fork.lock);
	return result;
}

CUresult cuParamSetSize(CUfunction function, unsigned int bytes)
{
	struct prepared *p;
	CUresult result;

	if (bytes > PARAM_BYTES)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&at_fork.lock);
	p = find_or_add_prepared(function, &result);
	if (p)
		p->bytes = bytes;
	pthread_mutex_unlock(&at_fork.lock);
	return result;
}

CUresult cuParamSetv(CUfunction function, int offset, void *ptr, unsigned int bytes)
{
	struct prepared *p;
	CUresult result;

	if (!ptr || offset < 0 || offset > PARAM_BYTES ||
	    bytes > (unsigned int)(PARAM_BYTES - offset))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&at_fork.lock);
	p = find_or_add_prepared(function, &result);
	if (p)
		memcpy(p->params + offset, ptr, bytes);
	pthread_mutex_unlock(&at_fork.lock);
	return result;
}

CUresult cuParamSeti(CUfunction function, int offset, unsigned int value)
{
	return cuParamSetv(function, offset, &value, sizeof(value));
}

CUresult cuParamSetf(CUfunction function, int offset, float value)
{
	return cuParamSetv(function, offset, &value, sizeof(value));
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
	struct prepared *p, copy;
	CUresult result;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, copy.params, CU_LAUNCH_PARAM_BUFFER_SIZE,
			 &copy.bytes, CU_LAUNCH_PARAM_END};

	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&at_fork.lock);
	p = find_or_add_prepared(function, &result);
	if (p)
		copy = *p;
	pthread_mutex_unlock(&at_fork.lock);
	if (!result && !copy.block[0])
		result = CUDA_ERROR_INVALID_VALUE;
	return result ? result
		      : cuLaunchKernel(function, (unsigned int)width, (unsigned int)height, 1,
				       copy.block[0], copy.block[1], copy.block[2], copy.shared,
				       stream, NULL, extra);
}

CUresult cuLaunchGrid(CUfunction function, int width, int height)
{
	return cuLaunchGridAsync(function, width, height, NULL);
}

CUresult cuLaunch(CUfunction function)
{
	return cuLaunchGridAsync(function, 1, 1, NULL);
}
