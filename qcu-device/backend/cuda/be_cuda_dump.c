// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * QCU_CUDA_FAULTS=1: where a kernel has failed, from the core dump that CUDA writes when a GPU
 * raises an exception. It goes to a file in memory that only this process has, without the content
 * of the GPU's memory. CUDA is asked not to end the process. Whatever does not work out means that
 * nobody knows where the kernel failed, as without the option.
 */
#define _GNU_SOURCE /* memfd_create */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/backend/coredump.h"
#include "qcu-device/backend/cuda/be_cuda.h"

#define DUMP_MAX  (128ull << 20)
#define TRIES_MAX 16 /* a dump that is not whole yet is read again */

typedef CUresult set_attribute_fn(CUcoredumpSettings attribute, void *value, size_t *size);

static bool set_dump_attribute(set_attribute_fn *set, CUcoredumpSettings attribute, void *value,
			       size_t size)
{
	return set(attribute, value, &size) == CUDA_SUCCESS;
}

/* Called before any context exists. The dumps are switched on last, when all else is set. */
static bool prepare_dumps(int fd)
{
	enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
	unsigned int flags = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT;
	set_attribute_fn *set = NULL;
	bool on = true;
	char path[64];

	if (cudaGetDriverEntryPointByVersion("cuCoredumpSetAttributeGlobal", (void **)&set, 12010,
					     cudaEnableDefault, &found) != cudaSuccess ||
	    found != cudaDriverEntryPointSuccess || !set) {
		(void)cudaGetLastError();
		return false;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return set_dump_attribute(set, CU_COREDUMP_GENERATION_FLAGS, &flags, sizeof(flags)) &&
	       set_dump_attribute(set, CU_COREDUMP_FILE, path, strlen(path) + 1) &&
	       set_dump_attribute(set, CU_COREDUMP_ENABLE_ON_EXCEPTION, &on, sizeof(on));
}

void cu_dump_open(struct be *be)
{
	const char *text = getenv("QCU_CUDA_FAULTS");

	pthread_mutex_init(&be->dump_lock, NULL);
	be->dump_fd = -1;
	if (!text || strcmp(text, "1") != 0)
		return;
	be->dump_fd = memfd_create("qcuda-dump", MFD_CLOEXEC);
	if (be->dump_fd < 0 || prepare_dumps(be->dump_fd))
		return;
	close(be->dump_fd);
	be->dump_fd = -1;
}

void cu_dump_close(struct be *be)
{
	if (be->dump_fd >= 0)
		close(be->dump_fd);
	pthread_mutex_destroy(&be->dump_lock);
}

static bool read_dump(int fd, size_t len, struct qcu_fault *fault)
{
	unsigned char *bytes = malloc(len);
	size_t got = 0;
	ssize_t n = 1;
	bool ok;

	while (bytes && got < len && n > 0) {
		n = pread(fd, bytes + got, len - got, (off_t)got);
		got += n > 0 ? (size_t)n : 0;
	}
	ok = bytes && got == len && coredump_fault(bytes, len, fault);
	free(bytes);
	return ok;
}

/* Reads the dump if there is a new one, until it has been understood or tried often. */
static void look_for_dump(struct be *be)
{
	struct stat st;

	if (be->dump_fd < 0 || be->fault.error || be->dump_tries >= TRIES_MAX ||
	    fstat(be->dump_fd, &st) || st.st_size <= 0)
		return;
	be->dump_tries++;
	if ((uint64_t)st.st_size > DUMP_MAX ||
	    !read_dump(be->dump_fd, (size_t)st.st_size, &be->fault))
		be->fault.error = 0;
	if (be->fault.error)
		be->fault_unread = true;
}

int cu_fault_read(struct be *be, void *buf, size_t max, size_t *got)
{
	pthread_mutex_lock(&be->dump_lock);
	look_for_dump(be);
	*got = be->fault_unread ? sizeof(be->fault) : 0;
	if (buf && *got > max)
		*got = 0;
	if (buf && *got) {
		memcpy(buf, &be->fault, sizeof(be->fault));
		be->fault_unread = false;
	}
	pthread_mutex_unlock(&be->dump_lock);
	return QCU_ERR_Success;
}
