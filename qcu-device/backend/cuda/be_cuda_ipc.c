// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory and events of one mirror in another. The handles are CUDA's own. The caller makes sure
 * that only handles come in here that came out in another mirror.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/backend/cuda/be_cuda.h"

#define SHM "/dev/shm"

static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER; /* of event files, below */

/* CUDA's handle of the memory, and where in it the allocation begins. */
struct handle {
	cudaIpcMemHandle_t h;
	uint64_t offset;
};

_Static_assert(sizeof(struct handle) == BE_IPC_BYTES, "handles of memory fit exactly");
_Static_assert(sizeof(cudaIpcEventHandle_t) <= BE_IPC_BYTES, "and those of events fit");

int cu_mem_export(struct be *be, unsigned int dev, uint64_t addr, void *handle)
{
	struct handle h;
	int ret = cu_use(be, dev);

	if (!ret)
		ret = CU(be, cudaIpcGetMemHandle, &h.h, (void *)(uintptr_t)addr);
	if (!ret) {
		h.offset = cu_mem_known_elsewhere(be, addr);
		memcpy(handle, &h, sizeof(h));
	}
	return ret;
}

int cu_mem_import(struct be *be, unsigned int dev, const void *handle, uint64_t size,
		  uint64_t *addr)
{
	struct cu_range r = {.size = size, .dev = dev, .imported = true};
	struct handle h;
	void *p = NULL;
	int ret = cu_use(be, dev);

	*addr = 0;
	memcpy(&h, handle, sizeof(h));
	if (!ret)
		ret = CU(be, cudaIpcOpenMemHandle, &p, h.h, cudaIpcMemLazyEnablePeerAccess);
	if (ret)
		return ret;
	r.offset = h.offset;
	r.addr = (uintptr_t)p + h.offset;
	ret = cu_mem_add(be, &r);
	if (ret) {
		CU(be, cudaIpcCloseMemHandle, p);
		return ret;
	}
	*addr = r.addr;
	return QCU_ERR_Success;
}

int cu_mem_unimport(struct be *be, uint64_t addr)
{
	struct cu_range r;
	int ret;

	if (!cu_mem_take_import(be, addr, &r))
		return QCU_ERR_InvalidValue;
	ret = cu_use(be, r.dev);
	return ret ? ret : CU(be, cudaIpcCloseMemHandle, (void *)(uintptr_t)(addr - r.offset));
}

/*
 * CUDA keeps the state of an exported event in a file in shared memory, which only this process's
 * user may open: cuda.shm.USER.PROCESS.N, with hexadecimal numbers. Other mirrors of the VM have
 * this process's group, and users of their own.
 */
static void open_event_files(void)
{
	char begin[64];
	struct dirent *entry;
	DIR *dir = opendir(SHM);
	int n, fd;

	if (!dir)
		return;
	n = snprintf(begin, sizeof(begin), "cuda.shm.%x.%x.", geteuid(), (unsigned int)getpid());
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, begin, (size_t)n))
			continue;
		fd = openat(dirfd(dir), entry->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			continue;
		/* If each mirror has the same user, the sandbox refuses this, and nothing is lost.
		 */
		(void)fchmod(fd, 0660);
		close(fd);
	}
	closedir(dir);
}

int cu_event_export(struct be *be, struct be_event *e, void *handle)
{
	cudaIpcEventHandle_t h;
	int ret = cu_event_use(be, e);

	if (!ret)
		ret = CU(be, cudaIpcGetEventHandle, &h, e->e);
	if (!ret) {
		open_event_files();
		memcpy(handle, &h, sizeof(h));
	}
	return ret;
}

/*
 * CUDA looks for another process's file under the name that it would have for this process's user.
 * Gives each file of another user that name as well, or takes the names away again. The files of
 * this process have another process number, so none of them is taken away.
 */
static void name_event_files(bool make)
{
	char own[sizeof(((struct dirent *)NULL)->d_name)], begin[32];
	const char *rest;
	struct dirent *entry;
	DIR *dir = opendir(SHM);
	int n;

	if (!dir)
		return;
	n = snprintf(begin, sizeof(begin), "cuda.shm.%x.", geteuid());
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, "cuda.shm.", 9) ||
		    !strncmp(entry->d_name, begin, (size_t)n))
			continue;
		rest = strchr(entry->d_name + 9, '.');
		if (!rest ||
		    snprintf(own, sizeof(own), "%s%s", begin, rest + 1) >= (int)sizeof(own))
			continue;
		/* Where all mirrors have one user, there is nothing to do, and the sandbox refuses
		 * it. */
		if (make)
			(void)!linkat(dirfd(dir), entry->d_name, dirfd(dir), own, 0);
		else
			(void)!unlinkat(dirfd(dir), own, 0);
	}
	closedir(dir);
}

int cu_event_import(struct be *be, unsigned int dev, const void *handle, struct be_event **out)
{
	cudaIpcEventHandle_t h;
	struct be_event *e;
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	e = malloc(sizeof(*e));
	if (!e)
		return QCU_ERR_MemoryAllocation;
	e->dev = dev;
	e->life = atomic_load(&be->life[dev]);
	memcpy(&h, handle, sizeof(h));
	pthread_mutex_lock(&naming);
	name_event_files(true);
	ret = CU(be, cudaIpcOpenEventHandle, &e->e, h);
	name_event_files(false);
	pthread_mutex_unlock(&naming);
	if (ret) {
		free(e);
		return ret;
	}
	*out = e;
	return QCU_ERR_Success;
}
