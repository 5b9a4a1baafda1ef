// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Streams and events of the cuda backend, and numbers that streams write to memory or wait for, by
 * the driver's own functions.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"

static bool stream_alive(const struct be *be, const struct be_stream *s)
{
	return s->s == cudaStreamLegacy || s->life == atomic_load(&be->life[s->dev]);
}

static bool event_alive(const struct be *be, const struct be_event *e)
{
	return e->life == atomic_load(&be->life[e->dev]);
}

/* Sets the stream's device. The legacy stream is always that of the current device. */
int cu_stream_use(struct be *be, const struct be_stream *s)
{
	if (!stream_alive(be, s))
		return QCU_ERR_ContextIsDestroyed;
	return cu_use(be, s->dev);
}

int cu_event_use(struct be *be, const struct be_event *e)
{
	if (!event_alive(be, e))
		return QCU_ERR_ContextIsDestroyed;
	return cu_use(be, e->dev);
}

void cu_stream_link(struct be *be, struct be_stream *s)
{
	pthread_mutex_lock(&be->stream_lock);
	s->number = ++be->stream_numbers;
	LIST_INSERT_HEAD(&be->streams, s, link);
	pthread_mutex_unlock(&be->stream_lock);
}

static int query_for_work(struct be *be, const struct be_stream *s, bool *busy)
{
	int ret = cu_use(be, s->dev);

	if (!ret)
		ret = CU(be, cudaStreamQuery, s->s);
	*busy = *busy || ret == QCU_ERR_NotReady;
	return ret == QCU_ERR_NotReady ? (int)QCU_ERR_Success : ret;
}

int cu_streams_query(struct be *be, bool *busy)
{
	const struct be_stream *s;
	unsigned int dev;
	int ret = QCU_ERR_Success;

	*busy = false;
	for (dev = 0; dev < be->devices && !ret; dev++)
		if (atomic_load(&be->used[dev]))
			ret = query_for_work(be, &be->legacy[dev], busy);
	pthread_mutex_lock(&be->stream_lock);
	LIST_FOREACH(s, &be->streams, link)
		if (!ret && stream_alive(be, s))
			ret = query_for_work(be, s, busy);
	pthread_mutex_unlock(&be->stream_lock);
	return ret;
}

int cu_stream_create(struct be *be, unsigned int dev, uint32_t flags, int priority,
		     struct be_stream **out)
{
	struct be_stream *s;
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	s = malloc(sizeof(*s));
	if (!s)
		return QCU_ERR_MemoryAllocation;
	s->dev = dev;
	s->life = atomic_load(&be->life[dev]);
	ret = CU(be, cudaStreamCreateWithPriority, &s->s, flags, priority);
	if (ret) {
		free(s);
		return ret;
	}
	cu_stream_link(be, s);
	*out = s;
	return QCU_ERR_Success;
}

struct be_stream *cu_stream_legacy(struct be *be, unsigned int dev)
{
	return dev < be->devices ? &be->legacy[dev] : NULL;
}

int cu_stream_destroy(struct be *be, struct be_stream *s)
{
	int ret = QCU_ERR_Success;

	if (s->s == cudaStreamLegacy)
		return QCU_ERR_InvalidResourceHandle;
	pthread_mutex_lock(&be->stream_lock);
	LIST_REMOVE(s, link);
	pthread_mutex_unlock(&be->stream_lock);
	if (stream_alive(be, s)) {
		ret = cu_use(be, s->dev);
		if (!ret)
			ret = CU(be, cudaStreamDestroy, s->s);
	}
	free(s);
	return ret;
}

int cu_stream_sync(struct be *be, struct be_stream *s)
{
	int ret = cu_stream_use(be, s);

	return ret ? ret : cu_believe(s->dev, CU(be, cudaStreamSynchronize, s->s));
}

int cu_stream_query(struct be *be, struct be_stream *s)
{
	int ret = cu_stream_use(be, s);

	return ret ? ret : cu_believe(s->dev, CU(be, cudaStreamQuery, s->s));
}

int cu_stream_wait_event(struct be *be, struct be_stream *s, struct be_event *e, uint32_t flags)
{
	int ret = event_alive(be, e) ? cu_stream_use(be, s) : QCU_ERR_ContextIsDestroyed;

	return ret ? ret : CU(be, cudaStreamWaitEvent, s->s, e->e, flags);
}

int cu_stream_attr_set(struct be *be, struct be_stream *s, uint32_t attr, const void *value)
{
	cudaStreamAttrValue v = {.pad = {0}};
	int ret = cu_stream_use(be, s);

	memcpy(&v, value, QCU_STREAM_ATTR);
	return ret ? ret : CU(be, cudaStreamSetAttribute, s->s, (cudaStreamAttrID)attr, &v);
}

int cu_stream_attr_get(struct be *be, struct be_stream *s, uint32_t attr, void *value)
{
	cudaStreamAttrValue v = {.pad = {0}};
	int ret = cu_stream_use(be, s);

	if (!ret)
		ret = CU(be, cudaStreamGetAttribute, s->s, (cudaStreamAttrID)attr, &v);
	memcpy(value, &v, QCU_STREAM_ATTR);
	return ret;
}

int cu_stream_attr_copy(struct be *be, struct be_stream *to, struct be_stream *from)
{
	int ret = stream_alive(be, from) ? cu_stream_use(be, to) : QCU_ERR_ContextIsDestroyed;

	return ret ? ret : CU(be, cudaStreamCopyAttributes, to->s, from->s);
}

struct host_call {
	void (*fn)(void *arg, int error);
	void *arg;
};

static void host_func(void *data)
{
	struct host_call call = *(struct host_call *)data;

	free(data);
	call.fn(call.arg, QCU_ERR_Success);
}

static void CUDART_CB host_callback(cudaStream_t s, cudaError_t error, void *data)
{
	struct host_call call = *(struct host_call *)data;

	(void)s;
	free(data);
	call.fn(call.arg, error);
}

/* A call that CUDA leaves out after an error is lost. In that case this process ends soon. */
int cu_host_func(struct be *be, void (*fn)(void *arg, int error), void *arg, bool always,
		 struct be_stream *s)
{
	struct host_call *call;
	int ret = cu_stream_use(be, s);

	if (ret)
		return ret;
	call = malloc(sizeof(*call));
	if (!call)
		return QCU_ERR_MemoryAllocation;
	*call = (struct host_call){.fn = fn, .arg = arg};
	if (always)
		ret = CU(be, cudaStreamAddCallback, s->s, host_callback, call, 0);
	else
		ret = CU(be, cudaLaunchHostFunc, s->s, host_func, call);
	if (ret)
		free(call);
	return ret;
}

int cu_event_create(struct be *be, unsigned int dev, uint32_t flags, struct be_event **out)
{
	struct be_event *e;
	int ret = cu_use(be, dev);

	if (ret)
		return ret;
	e = malloc(sizeof(*e));
	if (!e)
		return QCU_ERR_MemoryAllocation;
	e->dev = dev;
	e->life = atomic_load(&be->life[dev]);
	atomic_init(&e->late, 0);
	ret = CU(be, cudaEventCreateWithFlags, &e->e, flags);
	if (ret) {
		free(e);
		return ret;
	}
	*out = e;
	return QCU_ERR_Success;
}

int cu_event_destroy(struct be *be, struct be_event *e)
{
	int ret = QCU_ERR_Success;

	if (event_alive(be, e)) {
		ret = cu_use(be, e->dev);
		if (!ret)
			ret = CU(be, cudaEventDestroy, e->e);
	}
	free(e);
	return ret;
}

int cu_event_record(struct be *be, struct be_event *e, struct be_stream *s, uint32_t flags)
{
	int ret = event_alive(be, e) ? cu_stream_use(be, s) : QCU_ERR_ContextIsDestroyed;

	if (!ret)
		ret = CU(be, cudaEventRecordWithFlags, e->e, s->s, flags);
	if (!ret)
		atomic_store(&e->late, 0);
	return ret;
}

int cu_event_sync(struct be *be, struct be_event *e)
{
	int ret = cu_event_use(be, e);

	return ret ? ret : cu_believe(e->dev, CU(be, cudaEventSynchronize, e->e));
}

int cu_event_query(struct be *be, struct be_event *e)
{
	int ret = cu_event_use(be, e);

	return ret ? ret : cu_believe(e->dev, CU(be, cudaEventQuery, e->e));
}

int cu_event_elapsed(struct be *be, struct be_event *start, struct be_event *end, float *ms)
{
	int ret = event_alive(be, end) ? cu_event_use(be, start) : QCU_ERR_ContextIsDestroyed;

	*ms = 0;
	if (!ret)
		ret = CU(be, cudaEventElapsedTime, ms, start->e, end->e);
	if (!ret)
		*ms += (float)((double)atomic_load(&start->late) * 1e-6 -
			       (double)atomic_load(&end->late) * 1e-6);
	return ret;
}

static int write_value(struct be *be, CUstream s, const struct qcu_stream_value *v)
{
	unsigned int flags = v->flags & QCU_VALUE_UNORDERED
				     ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
				     : CU_STREAM_WRITE_VALUE_DEFAULT;
	PFN_cuStreamWriteValue32_v11070 write32;
	PFN_cuStreamWriteValue64_v11070 write64;
	int ret;

	if (v->bytes == 8) {
		ret = cu_driver_function(be, "cuStreamWriteValue64", &write64);
		return ret ? ret : (int)write64(s, v->addr, v->value, flags);
	}
	ret = cu_driver_function(be, "cuStreamWriteValue32", &write32);
	return ret ? ret : (int)write32(s, v->addr, (cuuint32_t)v->value, flags);
}

static int wait_value(struct be *be, CUstream s, const struct qcu_stream_value *v)
{
	static const unsigned int how[] = {
		[QCU_VALUE_GEQ] = CU_STREAM_WAIT_VALUE_GEQ,
		[QCU_VALUE_EQ] = CU_STREAM_WAIT_VALUE_EQ,
		[QCU_VALUE_AND] = CU_STREAM_WAIT_VALUE_AND,
		[QCU_VALUE_NOR] = CU_STREAM_WAIT_VALUE_NOR,
	};
	unsigned int flags =
		how[v->flags & 3] | (v->flags & QCU_VALUE_FLUSH ? CU_STREAM_WAIT_VALUE_FLUSH : 0);
	PFN_cuStreamWaitValue32_v11070 wait32;
	PFN_cuStreamWaitValue64_v11070 wait64;
	int ret;

	if (v->bytes == 8) {
		ret = cu_driver_function(be, "cuStreamWaitValue64", &wait64);
		return ret ? ret : (int)wait64(s, v->addr, v->value, flags);
	}
	ret = cu_driver_function(be, "cuStreamWaitValue32", &wait32);
	return ret ? ret : (int)wait32(s, v->addr, (cuuint32_t)v->value, flags);
}

int cu_stream_value(struct be *be, struct be_stream *s, const struct qcu_stream_value *v)
{
	int ret = cu_stream_use(be, s);

	if (ret)
		return ret;
	return v->what == QCU_VALUE_WRITE ? write_value(be, s->s, v) : wait_value(be, s->s, v);
}
