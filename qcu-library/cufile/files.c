// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Files and buffers that are registered, and how data move between them: with pread() and pwrite()
 * where the CPU can reach the memory, else through a piece of pinned memory.
 */
#define _GNU_SOURCE /* O_DIRECT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-library/cufile/cufile.h"

#define BOUNCE ((size_t)1 << 20)

struct file {
	struct file *next;
	int fd;	  /* the program's */
	int io;	  /* the same file, where any offset and size can be read and written */
	int mode; /* O_RDONLY, O_WRONLY or O_RDWR */
};

struct buffer {
	struct buffer *next;
	uintptr_t base;
};

/* Pinned memory for the data of one call, and a stream that waits for no other. */
struct bounce {
	struct bounce *next;
	int device;
	cudaStream_t stream;
	void *at;
};

static struct {
	pthread_mutex_t lock;
	struct file *files;
	struct buffer *buffers;
	struct bounce *idle;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- files ---- */

/* The caller has the lock. */
static struct file **find_file(CUfileHandle_t fh)
{
	struct file **f = &process.files;

	while (*f && *f != fh)
		f = &(*f)->next;
	return f;
}

static bool copy_file(CUfileHandle_t fh, struct file *to)
{
	const struct file *f;

	pthread_mutex_lock(&process.lock);
	f = *find_file(fh);
	if (f)
		*to = *f;
	pthread_mutex_unlock(&process.lock);
	return f;
}

bool qcuf_known(CUfileHandle_t fh)
{
	struct file f;

	return copy_file(fh, &f);
}

/* O_DIRECT wants aligned memory, sizes and offsets, which cuFile's callers need not have. */
static int without_direct(int fd, int flags)
{
	char path[32];

	if (!(flags & O_DIRECT))
		return fd;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return open(path, (flags & O_ACCMODE) | O_CLOEXEC);
}

static CUfileOpError check_file(int fd, int *flags)
{
	struct stat st;

	*flags = fcntl(fd, F_GETFL);
	if (*flags < 0 || fstat(fd, &st))
		return CU_FILE_INVALID_VALUE;
	if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
		return CU_FILE_INVALID_FILE_TYPE;
	return *flags & O_APPEND ? CU_FILE_INVALID_FILE_OPEN_FLAG : CU_FILE_SUCCESS;
}

static CUfileOpError add_file(struct file *new)
{
	CUfileOpError err = CU_FILE_SUCCESS;
	const struct file *f;

	pthread_mutex_lock(&process.lock);
	for (f = process.files; f && f->fd != new->fd; f = f->next)
		;
	if (f) {
		err = CU_FILE_HANDLE_ALREADY_REGISTERED;
	} else {
		new->next = process.files;
		process.files = new;
	}
	pthread_mutex_unlock(&process.lock);
	return err;
}

static void end_file(struct file *f)
{
	if (f->io >= 0 && f->io != f->fd)
		close(f->io);
	free(f);
}

QCUF_PUBLIC CUfileError_t cuFileHandleRegister(CUfileHandle_t *fh, CUfileDescr_t *descr)
{
	CUfileError_t opened;
	CUfileOpError err;
	struct file *f;
	int flags;

	if (!fh || !descr)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	if (descr->type != CU_FILE_HANDLE_TYPE_OPAQUE_FD)
		return qcuf_error(CU_FILE_IO_NOT_SUPPORTED);
	err = check_file(descr->handle.fd, &flags);
	if (err)
		return qcuf_error(err);
	opened = qcuf_open_once();
	if (opened.err)
		return opened;
	f = malloc(sizeof(*f));
	if (!f)
		return qcuf_error(CU_FILE_NOMEM_ERROR);
	f->fd = descr->handle.fd;
	f->mode = flags & O_ACCMODE;
	f->io = without_direct(f->fd, flags);
	err = f->io < 0 ? CU_FILE_GETNEWFD_FAILED : add_file(f);
	if (err)
		end_file(f);
	else
		*fh = f;
	return qcuf_error(err);
}

QCUF_PUBLIC void cuFileHandleDeregister(CUfileHandle_t fh)
{
	struct file **at, *f;

	pthread_mutex_lock(&process.lock);
	at = find_file(fh);
	f = *at;
	if (f)
		*at = f->next;
	pthread_mutex_unlock(&process.lock);
	if (f)
		end_file(f);
}

/* ---- buffers ---- */

/* The device on which the address lies, or -1: the CPU can reach it. */
static int device_of(const void *p)
{
	struct cudaPointerAttributes a;

	if (cudaPointerGetAttributes(&a, p)) {
		(void)cudaGetLastError();
		return -1;
	}
	return a.type == cudaMemoryTypeDevice || a.type == cudaMemoryTypeManaged ? a.device : -1;
}

static struct buffer **find_buffer(const void *base)
{
	struct buffer **b = &process.buffers;

	while (*b && (*b)->base != (uintptr_t)base)
		b = &(*b)->next;
	return b;
}

/* Nothing has to be prepared. It only counts whether the program does so in the right order. */
QCUF_PUBLIC CUfileError_t cuFileBufRegister(const void *base, size_t len, int flags)
{
	CUfileOpError err = CU_FILE_SUCCESS;
	CUfileError_t opened;
	struct buffer *b;

	(void)flags;
	if (!base || !len)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	opened = qcuf_open_once();
	if (opened.err)
		return opened;
	if (device_of(base) >= 0 && device_of((const char *)base + len - 1) < 0)
		return qcuf_error(CU_FILE_CUDA_POINTER_RANGE_ERROR);
	b = malloc(sizeof(*b));
	if (!b)
		return qcuf_error(CU_FILE_NOMEM_ERROR);
	b->base = (uintptr_t)base;
	pthread_mutex_lock(&process.lock);
	if (*find_buffer(base)) {
		err = CU_FILE_MEMORY_ALREADY_REGISTERED;
		free(b);
	} else {
		b->next = process.buffers;
		process.buffers = b;
	}
	pthread_mutex_unlock(&process.lock);
	return qcuf_error(err);
}

QCUF_PUBLIC CUfileError_t cuFileBufDeregister(const void *base)
{
	struct buffer **at, *b;

	if (!base)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&process.lock);
	at = find_buffer(base);
	b = *at;
	if (b)
		*at = b->next;
	pthread_mutex_unlock(&process.lock);
	free(b);
	return qcuf_error(b ? CU_FILE_SUCCESS : CU_FILE_MEMORY_NOT_REGISTERED);
}

/* ---- data ---- */

/* The device is the current one. */
static cudaError_t make_bounce(int device, struct bounce **to)
{
	struct bounce *b = calloc(1, sizeof(*b));
	cudaError_t err = b ? cudaMallocHost(&b->at, BOUNCE) : cudaErrorMemoryAllocation;

	if (!err)
		err = cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking);
	if (err && b)
		(void)cudaFreeHost(b->at);
	if (err) {
		free(b);
		return err;
	}
	b->device = device;
	*to = b;
	return cudaSuccess;
}

/* One that no other thread uses. They are kept: as many as threads have moved data at a time. */
static cudaError_t take_bounce(int device, struct bounce **to)
{
	struct bounce **at;

	pthread_mutex_lock(&process.lock);
	for (at = &process.idle; *at && (*at)->device != device; at = &(*at)->next)
		;
	*to = *at;
	if (*at)
		*at = (*at)->next;
	pthread_mutex_unlock(&process.lock);
	return *to ? cudaSuccess : make_bounce(device, to);
}

static void put_bounce(struct bounce *b)
{
	pthread_mutex_lock(&process.lock);
	b->next = process.idle;
	process.idle = b;
	pthread_mutex_unlock(&process.lock);
}

/* Up to the end of the file. Returns the bytes moved, or -errno if that is the first thing. */
static ssize_t move_by_cpu(int fd, bool write, char *at, size_t size, off_t offset)
{
	size_t done = 0;
	ssize_t n = 1;

	while (done < size && n > 0) {
		n = write ? pwrite(fd, at + done, size - done, offset + (off_t)done)
			  : pread(fd, at + done, size - done, offset + (off_t)done);
		if (n > 0)
			done += (size_t)n;
		else if (n < 0 && errno == EINTR)
			n = 1;
	}
	return n < 0 && !done ? -errno : (ssize_t)done;
}

static cudaError_t copy_bounce(const struct bounce *b, bool to_gpu, char *at, size_t size)
{
	cudaError_t err =
		to_gpu ? cudaMemcpyAsync(at, b->at, size, cudaMemcpyHostToDevice, b->stream)
		       : cudaMemcpyAsync(b->at, at, size, cudaMemcpyDeviceToHost, b->stream);
	cudaError_t ended = cudaStreamSynchronize(b->stream);

	return err ? err : ended;
}

static ssize_t move_pieces(const struct bounce *b, int fd, bool write, char *at, size_t size,
			   off_t offset)
{
	size_t done = 0, some;
	cudaError_t err;
	ssize_t n;

	for (; done < size; done += (size_t)n) {
		some = size - done < BOUNCE ? size - done : BOUNCE;
		err = write ? copy_bounce(b, false, at + done, some) : cudaSuccess;
		n = err ? -(ssize_t)err : move_by_cpu(fd, write, b->at, some, offset + (off_t)done);
		if (n > 0 && !write) {
			err = copy_bounce(b, true, at + done, (size_t)n);
			if (err)
				n = -(ssize_t)err;
		}
		if (n <= 0)
			return done ? (ssize_t)done : n;
	}
	return (ssize_t)done;
}

static ssize_t move_on_device(int device, int fd, bool write, char *at, size_t size, off_t offset)
{
	struct bounce *b = NULL;
	cudaError_t err;
	ssize_t n;
	int current;

	err = cudaGetDevice(&current);
	if (!err)
		err = cudaSetDevice(device);
	if (err)
		return -(ssize_t)err;
	err = take_bounce(device, &b);
	n = err ? -(ssize_t)err : move_pieces(b, fd, write, at, size, offset);
	if (b)
		put_bounce(b);
	(void)cudaGetLastError();
	(void)cudaSetDevice(current);
	return n;
}

ssize_t qcuf_move(CUfileHandle_t fh, bool write, void *base, size_t size, off_t file_offset,
		  off_t offset)
{
	char *at = (char *)((uintptr_t)base + (uintptr_t)offset);
	struct file f;
	int device;

	if (!fh || !base)
		return -EINVAL;
	if (!copy_file(fh, &f))
		return -CU_FILE_HANDLE_NOT_REGISTERED;
	if (file_offset < 0 || size > SSIZE_MAX || file_offset > SSIZE_MAX - (off_t)size)
		return -CU_FILE_INVALID_VALUE;
	if (f.mode == (write ? O_RDONLY : O_WRONLY))
		return -CU_FILE_INVALID_FILE_OPEN_FLAG;
	device = device_of(base);
	if (device < 0)
		return move_by_cpu(f.io, write, at, size, file_offset);
	/* An offset that leads out of the program's memory. */
	if (device_of(at) != device)
		return -EIO;
	if (size && device_of(at + size - 1) != device)
		return -(ssize_t)cudaErrorInvalidValue;
	return move_on_device(device, f.io, write, at, size, file_offset);
}

/* As NVIDIA's library does, whatever the number is. */
static ssize_t with_errno(ssize_t n)
{
	if (n >= 0)
		return n;
	errno = (int)-n;
	return -1;
}

QCUF_PUBLIC ssize_t cuFileRead(CUfileHandle_t fh, void *base, size_t size, off_t file_offset,
			       off_t offset)
{
	return with_errno(qcuf_move(fh, false, base, size, file_offset, offset));
}

QCUF_PUBLIC ssize_t cuFileWrite(CUfileHandle_t fh, const void *base, size_t size, off_t file_offset,
				off_t offset)
{
	return with_errno(qcuf_move(fh, true, (void *)(uintptr_t)base, size, file_offset, offset));
}

static ssize_t move_pieces_of_memory(CUfileHandle_t fh, bool write, const CUfileIOVec_t *iov,
				     size_t count, off_t file_offset)
{
	ssize_t n = 0, done = 0;
	size_t i;

	if (!fh || !iov || !count)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		n = qcuf_move(fh, write, iov[i].base, iov[i].len, file_offset + done, 0);
		if (n < 0)
			return done ? done : n;
		done += n;
		if ((size_t)n < iov[i].len)
			break;
	}
	return done;
}

QCUF_PUBLIC ssize_t cuFileReadv(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t count,
				off_t file_offset, unsigned flags)
{
	(void)flags;
	return with_errno(move_pieces_of_memory(fh, false, iov, count, file_offset));
}

QCUF_PUBLIC ssize_t cuFileWritev(CUfileHandle_t fh, const CUfileIOVec_t *iov, size_t count,
				 off_t file_offset, unsigned flags)
{
	(void)flags;
	return with_errno(move_pieces_of_memory(fh, true, iov, count, file_offset));
}
