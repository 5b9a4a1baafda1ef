// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Copies and memsets of the cuda backend. If the memory is registered, CUDA's copy engines work on
 * it in place. If it is not, CUDA itself stages it, and returns when the rules for pageable memory
 * say so.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

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

/*
 * A few bytes that go down come by registered memory of our own. On an H100, CUDA takes 6.5 us for
 * them, and 7.1 if they go to memory that is not registered.
 */
#define FEW	  1024u
#define FEW_SLOTS 16u

int cu_few_open(struct be *be)
{
	return pthread_mutex_init(&be->few_lock, NULL) ? QCU_ERR_OperatingSystem : 0;
}

void cu_few_close(struct be *be)
{
	free(atomic_load(&be->few));
	pthread_mutex_destroy(&be->few_lock);
}

/* The memory is made when it is first needed. NULL: it cannot be registered. */
static char *few(struct be *be)
{
	char *mem = atomic_load(&be->few);

	if (mem)
		return mem;
	pthread_mutex_lock(&be->few_lock);
	mem = atomic_load(&be->few);
	if (!mem && !be->few_failed) {
		mem = aligned_alloc(4096, FEW_SLOTS * FEW);
		if (mem && cu_host_register(be, mem, FEW_SLOTS * FEW)) {
			free(mem);
			mem = NULL;
		}
		be->few_failed = !mem;
		atomic_store(&be->few, mem);
	}
	pthread_mutex_unlock(&be->few_lock);
	return mem;
}

/* NULL: none is free. */
static char *take_few_slot(struct be *be)
{
	char *mem = few(be);
	uint32_t taken = atomic_load(&be->few_taken), slot;

	do {
		slot = (uint32_t)__builtin_ffs((int)(~taken & ((1u << FEW_SLOTS) - 1)));
		if (!mem || !slot)
			return NULL;
	} while (!atomic_compare_exchange_weak(&be->few_taken, &taken, taken | 1u << (slot - 1)));
	return mem + (slot - 1) * FEW;
}

static void give_few_slot(struct be *be, const char *p)
{
	atomic_fetch_and(&be->few_taken, ~(1u << (p - atomic_load(&be->few)) / FEW));
}

/* One call of CUDA where there is one: it takes longer than the copy of a few bytes. */
static int copy_and_wait(struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s)
{
	int ret;

	if (s->s != cudaStreamLegacy) {
		ret = cu_copy_d2h(be, dst, src, len, s);
		return ret ? ret : cu_believe(s->dev, CU(be, cudaStreamSynchronize, s->s));
	}
	ret = cu_stream_use(be, s);
	if (!ret)
		ret = CU(be, cudaMemcpy, dst, (const void *)(uintptr_t)src, len,
			 cudaMemcpyDeviceToHost);
	return cu_believe(s->dev, ret);
}

int cu_copy_d2h_wait(struct be *be, void *dst, uint64_t src, size_t len, struct be_stream *s)
{
	int ret = cu_stream_use(be, s);
	char *slot = ret || len > FEW ? NULL : take_few_slot(be);

	if (ret || !slot)
		return ret ? ret : copy_and_wait(be, dst, src, len, s);
	ret = copy_and_wait(be, slot, src, len, s);
	if (!ret)
		memcpy(dst, slot, len);
	give_few_slot(be, slot);
	return ret;
}

static int one_by_one(struct be *be, bool h2d, uint64_t device, const struct iovec *host,
		      size_t count, struct be_stream *s)
{
	int ret = QCU_ERR_Success;
	size_t i;

	for (i = 0; i < count && !ret; device += host[i++].iov_len)
		ret = h2d ? cu_copy_h2d(be, device, host[i].iov_base, host[i].iov_len, s)
			  : cu_copy_d2h(be, host[i].iov_base, device, host[i].iov_len, s);
	return ret;
}

#if CUDART_VERSION >= 13000
#define BATCH 128

/*
 * A batch keeps the copy engine busy between its pieces. Measured on an H200, 256 MiB in pieces of
 * 4 MiB, GB/s up and down: 53.3 and 53.7 one by one, 55.1 and 55.0 in a batch, 55.4 and 55.3 as one
 * piece. The flag that asks for overlap with other work brings no more.
 */
static int batch(struct be *be, bool h2d, uint64_t device, const struct iovec *host, size_t count,
		 struct be_stream *s)
{
	struct cudaMemcpyAttributes attr = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
	const void *src[BATCH];
	void *dst[BATCH];
	size_t len[BATCH], first = 0, i;

	for (i = 0; i < count; i++) {
		dst[i] = h2d ? (void *)(uintptr_t)device : host[i].iov_base;
		src[i] = h2d ? host[i].iov_base : (void *)(uintptr_t)device;
		len[i] = host[i].iov_len;
		device += len[i];
	}
	return CU(be, cudaMemcpyBatchAsync, dst, src, len, count, &attr, &first, 1, s->s);
}

int cu_copy_pieces(struct be *be, bool h2d, uint64_t device, const struct iovec *host, size_t count,
		   struct be_stream *s)
{
	int ret = cu_stream_use(be, s);

	/* CUDA takes no batches on the legacy stream. */
	if (s->s == cudaStreamLegacy)
		return one_by_one(be, h2d, device, host, count, s);
	while (count && !ret) {
		size_t n = count < BATCH ? count : BATCH;

		ret = batch(be, h2d, device, host, n, s);
		for (count -= n; n; n--)
			device += host++->iov_len;
	}
	return ret;
}
#else
int cu_copy_pieces(struct be *be, bool h2d, uint64_t device, const struct iovec *host, size_t count,
		   struct be_stream *s)
{
	return one_by_one(be, h2d, device, host, count, s);
}
#endif

/*
 * If CUDA is left to find out, it takes an address that it does not know for pageable host memory.
 * Between two registrations CUDA must find out all the same, because cudaMemcpyHostToHost waits;
 * the mirror holds both.
 */
enum cudaMemcpyKind cu_copy_kind(bool dst_host, bool src_host)
{
	if (dst_host)
		return src_host ? cudaMemcpyDefault : cudaMemcpyDeviceToHost;
	return src_host ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

int cu_copy_d2d(struct be *be, uint64_t dst, uint64_t src, size_t len, unsigned int host,
		struct be_stream *s)
{
	enum cudaMemcpyKind kind = cu_copy_kind(host & BE_HOST_DST, host & BE_HOST_SRC);
	int ret = cu_stream_use(be, s);

	return ret ? ret
		   : CU(be, cudaMemcpyAsync, (void *)(uintptr_t)dst, (const void *)(uintptr_t)src,
			len, kind, s->s);
}

/* The runtime API sets only bytes. Elements of 2 and 4 bytes need the driver API. */
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
