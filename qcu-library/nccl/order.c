// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The launches of a communicator run one after another, whatever streams they are in: they use the
 * same memory. This costs nothing if the program uses one stream. Captured launches are ordered
 * within their capture. The program orders the launches of its graphs, as natively.
 */
#include "qcu-library/nccl/work.h"

static unsigned long long capture_of(cudaStream_t stream)
{
	enum cudaStreamCaptureStatus status;
	unsigned long long id = 0;

	if (cudaStreamGetCaptureInfo(stream, &status, &id, NULL, NULL, NULL, NULL) ||
	    status != cudaStreamCaptureStatusActive)
		return 0;
	return id;
}

bool qccl_is_captured(cudaStream_t stream)
{
	return capture_of(stream) != 0;
}

static ncclResult_t make_order_event(struct qccl_order *o)
{
	ncclResult_t res;

	if (o->has_event)
		return ncclSuccess;
	res = qccl_cuda(cudaEventCreateWithFlags(&o->event, cudaEventDisableTiming),
			"cudaEventCreate");
	o->has_event = !res;
	return res;
}

ncclResult_t qccl_order(struct ncclComm *c, cudaStream_t stream)
{
	unsigned long long capture = capture_of(stream);
	struct qccl_order *o = &c->order[capture != 0];
	ncclResult_t res;

	if (!o->launched || o->last == stream || o->capture != capture)
		return ncclSuccess;
	res = make_order_event(o);
	if (res)
		return res;
	/* From the second stream on, each launch is followed by an event. Before, the stream may be
	 * gone. */
	if (!o->many_streams && cudaEventRecord(o->event, o->last)) {
		(void)cudaGetLastError();
		return capture ? ncclSuccess
			       : qccl_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
	}
	o->many_streams = true;
	return qccl_cuda(cudaStreamWaitEvent(stream, o->event, 0), "cudaStreamWaitEvent");
}

ncclResult_t qccl_ordered(struct ncclComm *c, cudaStream_t stream)
{
	unsigned long long capture = capture_of(stream);
	struct qccl_order *o = &c->order[capture != 0];

	o->launched = true;
	o->capture = capture;
	o->last = stream;
	if (!o->many_streams)
		return ncclSuccess;
	return qccl_cuda(cudaEventRecord(o->event, stream), "cudaEventRecord");
}
