// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * External semaphores of this VM. A semaphore is a memfd of the program whose first eight bytes are
 * its number: who has the descriptor can map it and read, write or wait for the number, and so can
 * streams of any process. The page is registered, and the GPU writes and compares the number itself
 * (value.c).
 *
 * A timeline semaphore counts up: a signal writes a number, a wait is over when the number is at
 * least as large. An opaque one is 0 or 1: a signal writes 1, a wait is over when it is 1, and then
 * writes 0.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-library/driver_virtual/value.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/addresses.h"

struct semaphore {
	void *page;
	size_t size;
	bool timeline;
	LIST_ENTRY(semaphore) link;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, semaphore) all = LIST_HEAD_INITIALIZER(all);

/* The child has no session, and nothing is registered in it. */
static void forget(bool had_session)
{
	struct semaphore *s;

	(void)had_session;
	while ((s = LIST_FIRST(&all))) {
		LIST_REMOVE(s, link);
		munmap(s->page, s->size);
		free(s);
	}
}

QCUL_AT_FORK(QCUL_FORK_SEMAPHORES, .lock = &lock, .forget = forget)

/* Any pointer may be passed. */
static struct semaphore *find(const void *semaphore)
{
	struct semaphore *s;

	LIST_FOREACH(s, &all, link)
		if (s == semaphore)
			return s;
	return NULL;
}

static cudaError_t check(const struct cudaExternalSemaphoreHandleDesc *desc)
{
	static atomic_flag said = ATOMIC_FLAG_INIT, said_foreign = ATOMIC_FLAG_INIT;
	struct stat st;
	size_t i;
	int seals;

	if (!desc || desc->flags)
		return cudaErrorInvalidValue;
	for (i = 0; i < sizeof(desc->reserved) / sizeof(desc->reserved[0]); i++)
		if (desc->reserved[i])
			return cudaErrorInvalidValue;
	if (desc->type < cudaExternalSemaphoreHandleTypeOpaqueFd ||
	    desc->type > cudaExternalSemaphoreHandleTypeTimelineSemaphoreWin32)
		return cudaErrorInvalidValue;
	if (desc->type != cudaExternalSemaphoreHandleTypeOpaqueFd &&
	    desc->type != cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd)
		return qcul_unsupported("an external semaphore other than by a file descriptor",
					&said);
	if (fstat(desc->handle.fd, &st))
		return cudaErrorInvalidValue;
	seals = fcntl(desc->handle.fd, F_GET_SEALS);
	if (seals < 0)
		return qcul_unsupported("an external semaphore that is no memfd of this VM",
					&said_foreign);
	return seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE) || st.st_size < 8
		       ? cudaErrorInvalidValue
		       : cudaSuccess;
}

static cudaError_t import(cudaExternalSemaphore_t *out,
			  const struct cudaExternalSemaphoreHandleDesc *desc)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE);
	struct semaphore *s = calloc(1, sizeof(*s));
	cudaError_t err = cudaErrorMemoryAllocation;

	if (!s)
		return err;
	s->size = size;
	s->timeline = desc->type == cudaExternalSemaphoreHandleTypeTimelineSemaphoreFd;
	s->page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, desc->handle.fd, 0);
	if (s->page == MAP_FAILED) {
		free(s);
		return cudaErrorInvalidValue;
	}
	err = cudaHostRegister(s->page, size, cudaHostRegisterMapped);
	if (err) {
		munmap(s->page, size);
		free(s);
		return err;
	}
	pthread_mutex_lock(&lock);
	LIST_INSERT_HEAD(&all, s, link);
	pthread_mutex_unlock(&lock);
	/* The descriptor is the library's from now on. */
	close(desc->handle.fd);
	*out = (cudaExternalSemaphore_t)s;
	return cudaSuccess;
}

static cudaError_t ready_import(cudaExternalSemaphore_t *out,
				const struct cudaExternalSemaphoreHandleDesc *desc)
{
	cudaError_t err = out ? check(desc) : cudaErrorInvalidValue;

	if (!err)
		err = qcul_ready();
	return err ? err : import(out, desc);
}

static cudaError_t destroy(const void *semaphore)
{
	struct semaphore *s;
	cudaError_t err;

	pthread_mutex_lock(&lock);
	s = find(semaphore);
	if (s)
		LIST_REMOVE(s, link);
	pthread_mutex_unlock(&lock);
	if (!s)
		return cudaErrorInvalidValue;
	/* Streams may still wait for its number. */
	err = cudaDeviceSynchronize();
	if (!err)
		err = cudaHostUnregister(s->page);
	munmap(s->page, s->size);
	free(s);
	return err;
}

static cudaError_t ready_destroy(const void *semaphore)
{
	cudaError_t err = qcul_ready();

	return err ? err : destroy(semaphore);
}

/* ---- signals and waits ---- */

/* The address and the kind of a semaphore. False: it is none. */
static bool look(const void *semaphore, uint64_t *addr, bool *timeline)
{
	struct semaphore *s;

	pthread_mutex_lock(&lock);
	s = find(semaphore);
	if (s) {
		*addr = qcul_mem_device_address(s->page);
		*timeline = s->timeline;
	}
	pthread_mutex_unlock(&lock);
	return s;
}

static struct qcu_stream_value record(uint64_t addr, uint64_t value, unsigned int what,
				      unsigned int flags)
{
	return (struct qcu_stream_value){
		.addr = addr,
		.value = value,
		.what = (uint8_t)what,
		.bytes = 8,
		.flags = (uint16_t)flags,
	};
}

/* The records of one semaphore. 0: it is none. */
static unsigned int records(struct qcu_stream_value *v, const void *semaphore, uint64_t value,
			    bool wait)
{
	bool timeline;
	uint64_t addr;

	if (!look(semaphore, &addr, &timeline))
		return 0;
	if (!wait) {
		v[0] = record(addr, timeline ? value : 1, QCU_VALUE_WRITE, 0);
		return 1;
	}
	v[0] = record(addr, timeline ? value : 1, QCU_VALUE_WAIT,
		      timeline ? QCU_VALUE_GEQ : QCU_VALUE_EQ);
	if (timeline)
		return 1;
	v[1] = record(addr, 0, QCU_VALUE_WRITE, 0);
	return 2;
}

struct list {
	const cudaExternalSemaphore_t *semaphores;
	const struct cudaExternalSemaphoreSignalParams *signals; /* or NULL */
	const struct cudaExternalSemaphoreWaitParams *waits;
	unsigned int count;
};

static bool good(const struct list *l, unsigned int i)
{
	return !(l->signals ? l->signals[i].flags : l->waits[i].flags);
}

static uint64_t number(const struct list *l, unsigned int i)
{
	return l->signals ? l->signals[i].params.fence.value : l->waits[i].params.fence.value;
}

/* None of them is queued if one is not valid. */
static cudaError_t queue(const struct list *l, cudaStream_t stream)
{
	struct qcu_stream_value values[QCUL_VALUES];
	unsigned int i, n = 0;
	cudaError_t err;

	if (!l->count || !l->semaphores || (!l->signals && !l->waits))
		return cudaErrorInvalidValue;
	err = qcul_ready();
	for (i = 0; i < l->count && !err; i++)
		if (!good(l, i) || !records(values, l->semaphores[i], 0, !l->signals))
			err = cudaErrorInvalidValue;
	for (i = 0; i < l->count && !err; i++) {
		n += records(&values[n], l->semaphores[i], number(l, i), !l->signals);
		if (n >= QCUL_VALUES - 1 || i + 1 == l->count) {
			err = qcul_stream_values(stream, values, n);
			n = 0;
		}
	}
	return err;
}

/* ---- the runtime's functions ---- */

cudaError_t cudaImportExternalSemaphore(cudaExternalSemaphore_t *out,
					const struct cudaExternalSemaphoreHandleDesc *desc)
{
	return qcul_done(ready_import(out, desc));
}

cudaError_t cudaDestroyExternalSemaphore(cudaExternalSemaphore_t semaphore)
{
	return qcul_done(ready_destroy(semaphore));
}

cudaError_t
cudaSignalExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
				  const struct cudaExternalSemaphoreSignalParams *params,
				  unsigned int count, cudaStream_t stream)
{
	const struct list list = {semaphores, params, NULL, count};

	return qcul_done(queue(&list, stream));
}

cudaError_t cudaWaitExternalSemaphoresAsync(const cudaExternalSemaphore_t *semaphores,
					    const struct cudaExternalSemaphoreWaitParams *params,
					    unsigned int count, cudaStream_t stream)
{
	const struct list list = {semaphores, NULL, params, count};

	return qcul_done(queue(&list, stream));
}

cudaError_t
cudaSignalExternalSemaphoresAsync_ptsz(const cudaExternalSemaphore_t *semaphores,
				       const struct cudaExternalSemaphoreSignalParams *params,
				       unsigned int count, cudaStream_t stream)
{
	return cudaSignalExternalSemaphoresAsync(semaphores, params, count,
						 stream ? stream : cudaStreamPerThread);
}

cudaError_t
cudaWaitExternalSemaphoresAsync_ptsz(const cudaExternalSemaphore_t *semaphores,
				     const struct cudaExternalSemaphoreWaitParams *params,
				     unsigned int count, cudaStream_t stream)
{
	return cudaWaitExternalSemaphoresAsync(semaphores, params, count,
					       stream ? stream : cudaStreamPerThread);
}

/* ---- the driver API's, with the same structures ---- */

_Static_assert(sizeof(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) ==
			       sizeof(struct cudaExternalSemaphoreHandleDesc) &&
		       sizeof(CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS) ==
			       sizeof(struct cudaExternalSemaphoreSignalParams) &&
		       sizeof(CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS) ==
			       sizeof(struct cudaExternalSemaphoreWaitParams),
	       "one layout");

CUresult cuImportExternalSemaphore(CUexternalSemaphore *out,
				   const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
	return QCUL_READY(ready_import((cudaExternalSemaphore_t *)out,
				       (const struct cudaExternalSemaphoreHandleDesc *)desc));
}

CUresult cuDestroyExternalSemaphore(CUexternalSemaphore semaphore)
{
	return QCUL_READY(ready_destroy(semaphore));
}

CUresult cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
					 const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
					 unsigned int count, CUstream stream)
{
	const struct list list = {(const cudaExternalSemaphore_t *)semaphores,
				  (const struct cudaExternalSemaphoreSignalParams *)params, NULL,
				  count};

	return QCUL_READY(queue(&list, stream));
}

CUresult cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *semaphores,
				       const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
				       unsigned int count, CUstream stream)
{
	const struct list list = {(const cudaExternalSemaphore_t *)semaphores, NULL,
				  (const struct cudaExternalSemaphoreWaitParams *)params, count};

	return QCUL_READY(queue(&list, stream));
}
