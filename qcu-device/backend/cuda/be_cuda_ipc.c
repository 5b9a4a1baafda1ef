// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory and events of one mirror in another. The handles are CUDA's own, and CUDA has none for
 * mapped memory: a plot (be_cuda_plot.c) passes the files of its parts (backend/pass.h) instead.
 * The caller makes sure that only handles come in here that came out in another mirror.
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

/* The same for a plot. */
struct plot_handle {
	struct be_pass_handle first; /* part */
	uint64_t size, offset;
};

_Static_assert(sizeof(struct handle) == BE_IPC_BYTES, "handles of memory fit exactly");
_Static_assert(sizeof(struct plot_handle) <= BE_IPC_BYTES, "and those of plots fit");
_Static_assert(sizeof(cudaIpcEventHandle_t) <= BE_IPC_BYTES, "and those of events fit");

static int offer_part(struct be *be, struct cu_plot *b, unsigned int i)
{
	PFN_cuMemExportToShareableHandle_v10020 export;
	int fd, ret = cu_driver_function(be, "cuMemExportToShareableHandle", &export);
	bool offered;

	/* It must be back before. */
	if (b->part[i].state != CU_PART_HERE)
		return QCU_ERR_NotPermitted;
	if (!ret)
		ret = (int)export(&fd, b->part[i].memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				  0);
	if (ret)
		return ret;
	offered = i ? be_pass_offer_part(&be->pass, fd, &b->offer, i)
		    : be_pass_offer(&be->pass, fd, &b->offer);
	if (offered)
		return QCU_ERR_Success;
	/* A process that is no mirror can pass no files. */
	close(fd);
	return QCU_ERR_NotSupported;
}

/* The memory lives on while its files are open, so they are closed when the plot is freed. */
static int offer_plot(struct be *be, struct cu_plot *b)
{
	int ret = QCU_ERR_Success;
	unsigned int i;

	for (i = 0; i < b->parts && !b->offered; i++) {
		ret = offer_part(be, b, i);
		if (ret) {
			be_pass_withdraw_parts(&be->pass, &b->offer, i);
			return ret;
		}
	}
	b->offered = true;
	/* From now on it stays. */
	b->known = true;
	return ret;
}

static int export_plot(struct be *be, uint64_t addr, void *handle)
{
	struct plot_handle h = {.offset = 0};
	int ret = QCU_ERR_InvalidValue;
	struct cu_plot *b;

	pthread_mutex_lock(&be->plot_lock);
	b = cu_plot_around(be, addr);
	if (b && !b->pool)
		ret = offer_plot(be, b);
	if (!ret) {
		h.first = b->offer;
		h.size = b->size;
		h.offset = addr - b->addr;
	}
	pthread_mutex_unlock(&be->plot_lock);
	if (!ret) {
		(void)cu_mem_known_elsewhere(be, addr);
		memcpy(handle, &h, sizeof(h));
	}
	return ret;
}

static int import_part(struct be *be, struct cu_plot *b, unsigned int i,
		       const struct be_pass_handle *first)
{
	PFN_cuMemImportFromShareableHandle_v10020 import;
	const struct be_pass_handle h = be_pass_part(first, i);
	int ret = cu_driver_function(be, "cuMemImportFromShareableHandle", &import), fd;

	if (ret)
		return ret;
	fd = be_pass_take(&be->pass, &h);
	if (fd < 0)
		return QCU_ERR_MapBufferObjectFailed;
	ret = (int)import(&b->part[i].memory, (void *)(uintptr_t)fd,
			  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	close(fd);
	if (ret)
		return ret;
	ret = cu_part_put(be, b, i);
	if (ret)
		CU_DRIVER(be, release, b->part[i].memory);
	return ret;
}

/* A part that is smaller than the handle says cannot be mapped. */
static int import_plot(struct be *be, const void *handle, struct cu_range *r)
{
	struct plot_handle h;
	struct cu_plot *b;
	unsigned int i;
	int ret;

	memcpy(&h, handle, sizeof(h));
	if (h.size % CU_UNIT || h.offset > h.size || r->size > h.size - h.offset)
		return QCU_ERR_InvalidValue;
	b = cu_plot_reserve(be, r->dev, h.size, 0, &ret);
	if (!b)
		return ret;
	b->known = true;
	for (i = 0; i < b->parts && !ret; i++)
		ret = import_part(be, b, i, &h.first);
	ret = cu_plot_finish(be, b, ret ? i - 1 : i, ret, &r->addr);
	r->offset = h.offset;
	r->addr += h.offset;
	return ret;
}

int cu_mem_export(struct be *be, unsigned int dev, uint64_t addr, void *handle)
{
	struct handle h;
	int ret = cu_use(be, dev);

	if (!ret && be->movable)
		return export_plot(be, addr, handle);
	if (!ret)
		ret = CU(be, cudaIpcGetMemHandle, &h.h, (void *)(uintptr_t)addr);
	if (!ret) {
		h.offset = cu_mem_known_elsewhere(be, addr);
		memcpy(handle, &h, sizeof(h));
	}
	return ret;
}

static int import_allocation(struct be *be, const void *handle, struct cu_range *r)
{
	struct handle h;
	void *p = NULL;
	int ret;

	memcpy(&h, handle, sizeof(h));
	ret = CU(be, cudaIpcOpenMemHandle, &p, h.h, cudaIpcMemLazyEnablePeerAccess);
	r->offset = h.offset;
	r->addr = (uintptr_t)p + h.offset;
	return ret;
}

static int close_import(struct be *be, const struct cu_range *r)
{
	return be->movable
		       ? cu_plot_free(be, r->addr - r->offset)
		       : CU(be, cudaIpcCloseMemHandle, (void *)(uintptr_t)(r->addr - r->offset));
}

int cu_mem_import(struct be *be, unsigned int dev, const void *handle, uint64_t size,
		  uint64_t *addr)
{
	struct cu_range r = {.size = size, .dev = dev, .imported = true};
	int ret = cu_use(be, dev);

	*addr = 0;
	if (!ret)
		ret = be->movable ? import_plot(be, handle, &r) : import_allocation(be, handle, &r);
	if (ret)
		return ret;
	ret = cu_mem_add(be, &r);
	if (ret) {
		(void)close_import(be, &r);
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
	return ret ? ret : close_import(be, &r);
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
