// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies and memsets of the cuda backend. Where the memory is registered, CUDA's copy engines work
 * on it in place; where it is not, CUDA itself stages it and returns as pageable memory demands.
 */
#include "qcu-device/cuda/be_cuda.h"

int cu_copy_h2d(struct be *be, uint64_t dst, const void *src, size_t len, struct be_stream *s)
{
	int ret = cu_stream_use(be, s);

	return ret ? ret
		   : CU(be, cudaMemcpyAsync, (void *)(uintptr_t)dst, src, len,
			cudaMemcpyHostToDevice, s->s);
}

int cu_copy_d2h(struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s)
{
	int ret = cu_stream_use(be, s);

	return ret ? ret
		   : CU(be, cudaMemcpyAsync, dst, (const void *)(uintptr_t)src, len,
			cudaMemcpyDeviceToHost, s->s);
}

/* Default: either side may be registered host memory or lie on another device. */
int cu_copy_d2d(struct be *be, uint64_t dst, uint64_t src, size_t len, struct be_stream *s)
{
	int ret = cu_stream_use(be, s);

	return ret ? ret
		   : CU(be, cudaMemcpyAsync, (void *)(uintptr_t)dst, (const void *)(uintptr_t)src,
			len, cudaMemcpyDefault, s->s);
}

/* The runtime API sets bytes only; elements of 2 and 4 bytes are the driver's. */
static int set_elements(struct be *be, const struct be_memset *m, struct be_stream *s)
{
	uint64_t pitch = m->height > 1 ? m->pitch : m->width;
	void *fn = NULL;
	CUresult res;
	int ret;

	if (m->elem == 2)
		ret = cu_driver_function(be, "cuMemsetD2D16Async", &fn);
	else
		ret = cu_driver_function(be, "cuMemsetD2D32Async", &fn);
	if (ret)
		return ret;
	if (m->elem == 2)
		res = ((PFN_cuMemsetD2D16Async_v3020)fn)(m->dst, pitch, (unsigned short)m->value,
							 m->width / 2, m->height, s->s);
	else
		res = ((PFN_cuMemsetD2D32Async_v3020)fn)(m->dst, pitch, m->value, m->width / 4,
							 m->height, s->s);
	return cu_result(be, (cudaError_t)res, "cuMemsetD2DAsync");
}

int cu_mem_set(struct be *be, const struct be_memset *m, struct be_stream *s)
{
	void *dst = (void *)(uintptr_t)m->dst;
	int value = m->value & 0xff;
	int ret = cu_stream_use(be, s);

	if (ret || !m->width || !m->height)
		return ret;
	switch (m->elem) {
	case 1:
		if (m->height == 1)
			return CU(be, cudaMemsetAsync, dst, value, m->width, s->s);
		return CU(be, cudaMemset2DAsync, dst, m->pitch, value, m->width, m->height, s->s);
	case 2:
	case 4:
		if (m->width % m->elem || m->dst % m->elem)
			return QCU_ERR_InvalidValue;
		return set_elements(be, m, s);
	default:
		return QCU_ERR_InvalidValue;
	}
}
