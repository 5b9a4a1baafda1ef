// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * External semaphores of this VM. A semaphore is a memfd of the program whose first eight bytes are
 * its number: who has the descriptor can map it and read, write or wait for the number, and so can
 * streams of any process. The page is registered, and the GPU writes and compares the number itself
 * (semaphore_work.c).
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-library/driver_virtual/semaphore.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/addresses.h"

struct semaphore {
	void *page;
	size_t size;
	bool timeline;
	LIST_ENTRY(semaphore) link;
};

static struct {
	LIST_HEAD(, semaphore) all;
} session;

/* The child has no session, and nothing is registered in it. */
static void free_semaphores(void)
{
	struct semaphore *s;

	while ((s = LIST_FIRST(&session.all))) {
		LIST_REMOVE(s, link);
		munmap(s->page, s->size);
		free(s);
	}
}

QCUL_AT_FORK(QCUL_FORK_SEMAPHORES, .forget = free_semaphores, QCUL_SESSION)

/* Any pointer may be passed. */
static struct semaphore *find_semaphore(const void *semaphore)
{
	struct semaphore *s;

	LIST_FOREACH(s, &session.all, link)
		if (s == semaphore)
			return s;
	return NULL;
}

static cudaError_t check_semaphore_import(const struct cudaExternalSemaphoreHandleDesc *desc)
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

static cudaError_t import_semaphore(cudaExternalSemaphore_t *out,
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
	pthread_mutex_lock(&at_fork.lock);
	LIST_INSERT_HEAD(&session.all, s, link);
	pthread_mutex_unlock(&at_fork.lock);
	/* The descriptor is the library's from now on. */
	close(desc->handle.fd);
	*out = (cudaExternalSemaphore_t)s;
	return cudaSuccess;
}

static cudaError_t ready_import_semaphore(cudaExternalSemaphore_t *out,
					  const struct cudaExternalSemaphoreHandleDesc *desc)
{
	cudaError_t err = out ? check_semaphore_import(desc) : cudaErrorInvalidValue;

	if (!err)
		err = qcul_ready();
	return err ? err : import_semaphore(out, desc);
}

static cudaError_t destroy_semaphore(const void *semaphore)
{
	struct semaphore *s;
	cudaError_t err;

	pthread_mutex_lock(&at_fork.lock);
	s = find_semaphore(semaphore);
	if (s)
		LIST_REMOVE(s, link);
	pthread_mutex_unlock(&at_fork.lock);
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

static cudaError_t ready_destroy_semaphore(const void *semaphore)
{
	cudaError_t err = qcul_ready();

	return err ? err : destroy_semaphore(semaphore);
}

bool qcul_semaphore_look(const void *semaphore, uint64_t *addr, bool *timeline)
{
	struct semaphore *s;

	pthread_mutex_lock(&at_fork.lock);
	s = find_semaphore(semaphore);
	if (s) {
		*addr = qcul_mem_device_address(s->page);
		*timeline = s->timeline;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return s;
}

/* ---- the runtime's functions ---- */

cudaError_t cudaImportExternalSemaphore(cudaExternalSemaphore_t *out,
					const struct cudaExternalSemaphoreHandleDesc *desc)
{
	return qcul_done(ready_import_semaphore(out, desc));
}

cudaError_t cudaDestroyExternalSemaphore(cudaExternalSemaphore_t semaphore)
{
	return qcul_done(ready_destroy_semaphore(semaphore));
}
