// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The first kernel that failed. Of itself CUDA says no more than the error. With
 * options.fault_place it also writes a dump of the GPU, without the contents of memory, when a
 * kernel fails. The dump goes into a file that exists in memory only, so the mirror needs no right
 * to make files, and nobody else can open it. It is read once, when the program asks, and is gone.
 */
#define _GNU_SOURCE /* memfd_create, F_ADD_SEALS */
#include <fcntl.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-device/backend/cuda/be_cuda.h"
#include "qcu-device/backend/fault_dump.h"

/* Names of the driver's interface have up to 1023 characters. */
#define DUMP_NAME 1024

static atomic_int fault;	/* of the first kernel that failed; negative: it has been fetched */
static atomic_int dump_fd = -1; /* where CUDA writes the dump */

/* A kernel that does nothing. */
#define NOTHING "qcu_nothing"
static const char nothing_ptx[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				  ".visible .entry " NOTHING "()\n{\n\tret;\n}\n";
static cudaKernel_t nothing;
static cudaStream_t probe[CU_DEVICES]; /* in which it runs */

#define DUMP_WAIT  10000 /* ms for a dump, of which an H200 needs 50 to 120 */
#define ERROR_WAIT 1000	 /* ms between a dump and its error, of which an H200 needs 25 */

/* The library that writes the dump waits for ever for a port at which it could listen. */
static bool may_listen(void)
{
	const struct sockaddr_in any = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool may = fd >= 0 && !bind(fd, (const struct sockaddr *)&any, sizeof(any));

	if (fd >= 0)
		close(fd);
	return may;
}

static bool set_up_dump(cu_dump_set *set, int fd)
{
	int flags = CU_COREDUMP_LIGHTWEIGHT_FLAGS | CU_COREDUMP_SKIP_ABORT;
	size_t bool_size = sizeof(bool), int_size = sizeof(flags), name_size = DUMP_NAME;
	char name[DUMP_NAME] = "";
	bool yes = true;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	/* Without the flags a fault would end the process, so dumps are switched on last. */
	return !set(CU_COREDUMP_GENERATION_FLAGS, &flags, &int_size) &&
	       !set(CU_COREDUMP_FILE, name, &name_size) &&
	       !set(CU_COREDUMP_ENABLE_ON_EXCEPTION, &yes, &bool_size);
}

void cu_fault_open(struct be *be, cu_dump_set *set)
{
	static const char no_dumps[] = "the driver makes no dumps that can be used, so nobody will "
				       "know where a kernel fails (--fault-place)";
	int fd = memfd_create("qcu-fault", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && set && may_listen() && set_up_dump(set, fd)) {
		atomic_store(&dump_fd, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	if (be->complain)
		be->complain("cuda", no_dumps, strlen(no_dumps));
}

static bool is_fault(int err)
{
	return err == QCU_ERR_IllegalAddress ||
	       (err >= QCU_ERR_HardwareStackError && err <= QCU_ERR_LaunchFailure);
}

void cu_note_fault(int err)
{
	int none = QCU_ERR_Success;

	/* The text of an assertion has its place. */
	if (is_fault(err))
		atomic_compare_exchange_strong(&fault, &none, err);
}

static int run_nothing(unsigned int dev)
{
	const cudaLaunchConfig_t config = {
		.gridDim = {1, 1, 1}, .blockDim = {1, 1, 1}, .stream = probe[dev]};
	cudaError_t err = cudaLaunchKernelExC(&config, nothing, NULL);
	int i;

	if (!err)
		err = cudaStreamQuery(probe[dev]);
	for (i = 0; err == cudaErrorNotReady && i < DUMP_WAIT; i++) {
		usleep(1000);
		err = cudaStreamQuery(probe[dev]);
	}
	return err;
}

void cu_fault_prepare(unsigned int dev)
{
	cudaLibrary_t lib;

	if (atomic_load_explicit(&dump_fd, memory_order_relaxed) < 0)
		return;
	if (!nothing && !cudaLibraryLoadData(&lib, nothing_ptx, NULL, NULL, 0, NULL, NULL, 0) &&
	    cudaLibraryGetKernel(&nothing, lib, NOTHING))
		nothing = NULL;
	probe[dev] = NULL;
	if (nothing && !cudaStreamCreateWithPriority(&probe[dev], cudaStreamNonBlocking, 0))
		(void)run_nothing(dev);
}

static bool is_dumped(void)
{
	int fd = atomic_load(&dump_fd);
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_size > 0;
}

int cu_believe(unsigned int dev, int ret)
{
	int i;

	if (ret || atomic_load_explicit(&dump_fd, memory_order_relaxed) < 0 || !probe[dev])
		return ret;
	ret = run_nothing(dev);
	for (i = 0; i < ERROR_WAIT && !is_fault(ret) && is_dumped(); i++) {
		if (i)
			usleep(1000);
		ret = cudaDeviceSynchronize();
	}
	if (i == ERROR_WAIT)
		ret = QCU_ERR_LaunchFailure;
	/* Other errors are of what was done here. */
	cudaGetLastError();
	if (!is_fault(ret))
		return QCU_ERR_Success;
	cu_note_fault(ret);
	return ret;
}

/* The dump is sealed first: a file that shrinks would end the process that reads it. */
static const char *read_dump(int fd, struct qcu_fault *f)
{
	struct stat st;
	const char *why;
	void *p;

	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) || fstat(fd, &st) || st.st_size <= 0)
		return "CUDA has written no dump of the GPU";
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return "there is no room for the GPU's dump";
	why = fault_dump_read(p, (size_t)st.st_size, f);
	munmap(p, (size_t)st.st_size);
	return why;
}

int cu_fault_read(struct be *be, void *buf, size_t max, size_t *got)
{
	const char *why = "the GPU does not say where";
	struct qcu_fault f = {.error = 0};
	int err = atomic_load_explicit(&fault, memory_order_relaxed), fd;

	(void)be;
	*got = 0;
	if (err <= QCU_ERR_Success || (buf && max < sizeof(f)))
		return QCU_ERR_Success;
	if (buf && !atomic_compare_exchange_strong(&fault, &err, -err))
		return QCU_ERR_Success;
	*got = sizeof(f);
	if (!buf)
		return QCU_ERR_Success;
	f.error = (uint32_t)err;
	fd = atomic_exchange(&dump_fd, -1);
	if (fd >= 0) {
		why = read_dump(fd, &f);
		close(fd);
	}
	if (why)
		snprintf(f.what, sizeof(f.what), "%s; on the software GPU, qcu run --check does",
			 why);
	memcpy(buf, &f, sizeof(f));
	return QCU_ERR_Success;
}
