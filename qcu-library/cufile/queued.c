// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Transfers in the order of a stream, and batches. A transfer of a stream is a host function, which
 * must not call CUDA: it waits for a thread that does. A batch is carried out when it is submitted.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "qcu-library/cufile/cufile.h"

/* ---- streams ---- */

struct stream {
	struct stream *next;
	cudaStream_t stream;
};

static struct {
	pthread_mutex_t lock;
	struct stream *streams;
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct transfer {
	CUfileHandle_t fh;
	bool write;
	void *base;
	size_t *size;
	off_t *file_offset, *offset;
	ssize_t *done;
};

static void *run_transfer(void *arg)
{
	const struct transfer *t = arg;

	*t->done = qcuf_move(t->fh, t->write, t->base, *t->size, *t->file_offset, *t->offset);
	return NULL;
}

/* The sizes and offsets are read now, not when the program made the call. */
static void wait_for_transfer(void *arg)
{
	struct transfer *t = arg;
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_transfer, t))
		*t->done = -EAGAIN;
	else
		pthread_join(thread, NULL);
	free(t);
}

static CUfileError_t queue_transfer(struct transfer want, cudaStream_t stream)
{
	enum cudaStreamCaptureStatus captured = cudaStreamCaptureStatusNone;
	struct transfer *t;
	CUfileError_t err;

	if (!want.fh || !want.base || !want.size || !want.file_offset || !want.offset || !want.done)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	if (!qcuf_known(want.fh))
		return qcuf_error(CU_FILE_HANDLE_NOT_REGISTERED);
	err = qcuf_cuda(cudaStreamIsCapturing(stream, &captured));
	if (err.err)
		return err;
	if (captured != cudaStreamCaptureStatusNone)
		return qcuf_error(CU_FILE_ASYNC_NOT_SUPPORTED);
	t = malloc(sizeof(*t));
	if (!t)
		return qcuf_error(CU_FILE_NOMEM_ERROR);
	*t = want;
	err = qcuf_cuda(cudaLaunchHostFunc(stream, wait_for_transfer, t));
	if (err.err)
		free(t);
	return err;
}

QCUF_PUBLIC CUfileError_t cuFileReadAsync(CUfileHandle_t fh, void *base, size_t *size,
					  off_t *file_offset, off_t *offset, ssize_t *done,
					  cudaStream_t stream)
{
	return queue_transfer((struct transfer){fh, false, base, size, file_offset, offset, done},
			      stream);
}

QCUF_PUBLIC CUfileError_t cuFileWriteAsync(CUfileHandle_t fh, void *base, size_t *size,
					   off_t *file_offset, off_t *offset, ssize_t *done,
					   cudaStream_t stream)
{
	return queue_transfer((struct transfer){fh, true, base, size, file_offset, offset, done},
			      stream);
}

/* The caller has the lock. */
static struct stream **find_stream(cudaStream_t stream)
{
	struct stream **s = &process.streams;

	while (*s && (*s)->stream != stream)
		s = &(*s)->next;
	return s;
}

QCUF_PUBLIC CUfileError_t cuFileStreamRegister(cudaStream_t stream, unsigned flags)
{
	struct stream *s = flags > 0xf ? NULL : malloc(sizeof(*s));
	bool added = false;

	if (!s)
		return qcuf_error(flags > 0xf ? CU_FILE_INVALID_VALUE : CU_FILE_NOMEM_ERROR);
	s->stream = stream;
	pthread_mutex_lock(&process.lock);
	if (!*find_stream(stream)) {
		s->next = process.streams;
		process.streams = s;
		added = true;
	}
	pthread_mutex_unlock(&process.lock);
	if (!added)
		free(s);
	return qcuf_error(added ? CU_FILE_SUCCESS : CU_FILE_INVALID_VALUE);
}

QCUF_PUBLIC CUfileError_t cuFileStreamDeregister(cudaStream_t stream)
{
	struct stream **at, *s;

	pthread_mutex_lock(&process.lock);
	at = find_stream(stream);
	s = *at;
	if (s)
		*at = s->next;
	pthread_mutex_unlock(&process.lock);
	free(s);
	return qcuf_error(s ? CU_FILE_SUCCESS : CU_FILE_INVALID_VALUE);
}

/* ---- batches ---- */

/* Its transfers that have ended, and of which the program does not know yet. */
struct batch {
	pthread_mutex_t lock;
	unsigned int room, first, count;
	CUfileIOEvents_t events[];
};

QCUF_PUBLIC CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch, unsigned count)
{
	struct batch *b;
	CUfileError_t err;

	if (!batch || !count || count > QCUF_BATCH_MOST)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	err = qcuf_open_once();
	if (err.err)
		return err;
	b = calloc(1, sizeof(*b) + count * sizeof(b->events[0]));
	if (!b)
		return qcuf_error(CU_FILE_NOMEM_ERROR);
	pthread_mutex_init(&b->lock, NULL);
	b->room = count;
	*batch = b;
	return err;
}

static CUfileOpError check_transfers(const struct batch *b, unsigned int count,
				     const CUfileIOParams_t *params)
{
	unsigned int i;

	if (!count || !params || count > b->room - b->count)
		return CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
	for (i = 0; i < count; i++) {
		if (params[i].mode != CUFILE_BATCH ||
		    (params[i].opcode != CUFILE_READ && params[i].opcode != CUFILE_WRITE))
			return CU_FILE_INTERNAL_BATCH_SUBMIT_ERROR;
		if (!qcuf_known(params[i].fh))
			return CU_FILE_HANDLE_NOT_REGISTERED;
		if (params[i].u.batch.file_offset < 0)
			return CU_FILE_INVALID_VALUE;
	}
	return CU_FILE_SUCCESS;
}

static void run_in_batch(struct batch *b, const CUfileIOParams_t *p)
{
	CUfileIOEvents_t *e = &b->events[(b->first + b->count++) % b->room];
	ssize_t n = qcuf_move(p->fh, p->opcode == CUFILE_WRITE, p->u.batch.devPtr_base,
			      p->u.batch.size, p->u.batch.file_offset, p->u.batch.devPtr_offset);

	e->cookie = p->cookie;
	e->status = n < 0 ? CUFILE_FAILED : CUFILE_COMPLETE;
	e->ret = n < 0 ? (size_t)-1 : (size_t)n;
}

QCUF_PUBLIC CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned count,
					      CUfileIOParams_t *params, unsigned int flags)
{
	struct batch *b = batch;
	CUfileOpError err;
	unsigned int i;

	(void)flags;
	if (!b)
		return qcuf_error(CU_FILE_INVALID_CONTEXT_ERROR);
	pthread_mutex_lock(&b->lock);
	err = check_transfers(b, count, params);
	for (i = 0; i < count && !err; i++)
		run_in_batch(b, &params[i]);
	pthread_mutex_unlock(&b->lock);
	return qcuf_error(err);
}

/* All that was submitted has ended. So there is nothing to wait for. */
QCUF_PUBLIC CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch, unsigned least,
						 unsigned *count, CUfileIOEvents_t *events,
						 struct timespec *timeout)
{
	struct batch *b = batch;
	unsigned int n = 0;

	(void)least;
	(void)timeout;
	if (!b)
		return qcuf_error(CU_FILE_INVALID_CONTEXT_ERROR);
	if (!count || !events)
		return qcuf_error(CU_FILE_INVALID_VALUE);
	pthread_mutex_lock(&b->lock);
	for (; n < *count && b->count; n++, b->count--) {
		events[n] = b->events[b->first];
		b->first = (b->first + 1) % b->room;
	}
	pthread_mutex_unlock(&b->lock);
	*count = n;
	return qcuf_error(CU_FILE_SUCCESS);
}

QCUF_PUBLIC CUfileError_t cuFileBatchIOCancel(CUfileBatchHandle_t batch)
{
	return qcuf_error(batch ? CU_FILE_SUCCESS : CU_FILE_INVALID_CONTEXT_ERROR);
}

QCUF_PUBLIC void cuFileBatchIODestroy(CUfileBatchHandle_t batch)
{
	free(batch);
}
