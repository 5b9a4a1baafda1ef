// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Green contexts. A resource is a structure that programs copy as they like and never free. So its
 * internal bytes only say how it comes about: from the device or from a green context, by which
 * split. The mirror lets CUDA split again when a green context is made of it. The same split of the
 * same parent gives the same parts.
 *
 * Streams of a green context are streams as all others. What is about a whole context is done with
 * its streams, one by one, and with a stream of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/link/ask.h"
#include "qcu-library/link/capture.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/stream/green.h"
#include "qcu-library/stream/stream.h"

#define MARK	    0x6e657267u
#define SPLIT_FLAGS 3u /* cudaDevSmResourceSplitByCount_flags */

struct qcul_green_desc {
	struct qcul_part part;
	unsigned char members[QCU_GREEN_MEMBERS];
	struct qcul_green_desc *next;
};

static struct {
	struct qcul_green *made;
	struct qcul_green_desc *described;
	uint64_t ids;
	_Atomic uint64_t splits;
} process;
QCUL_AT_FORK(QCUL_FORK_GREENS)

struct qcul_green *qcul_green_find(const void *green)
{
	struct qcul_green *g;

	pthread_mutex_lock(&at_fork.lock);
	for (g = process.made; g && g != green; g = g->next)
		;
	pthread_mutex_unlock(&at_fork.lock);
	return g && atomic_load(&g->alive) && g->epoch == qcul_epoch() &&
			       qcul_green_ids.slots[g->number].live
		       ? g
		       : NULL;
}

struct qcul_green *qcul_green_of(cudaStream_t stream)
{
	uint32_t id;

	if (!stream || stream == cudaStreamLegacy)
		return qcul_self.green;
	id = qcul_handle_id(&qcul_streams, stream);
	return id ? qcul_streams.slots[id].green : NULL;
}

/* ---- resources ---- */

static void describe_sms(struct qcul_resource *to, struct qcul_part part, uint32_t sms,
			 uint32_t least, uint32_t align)
{
	memset(to, 0, sizeof(*to));
	if (!sms)
		return;
	to->type = QCUL_RESOURCE_SM;
	memcpy(to->internal, &part, sizeof(part));
	to->sms = sms;
	to->least = least;
	to->align = align;
}

static cudaError_t read_part(const struct qcul_resource *from, struct qcul_part *part)
{
	if (from->type != QCUL_RESOURCE_SM)
		return cudaErrorInvalidResourceType;
	memcpy(part, from->internal, sizeof(*part));
	if (part->mark != MARK || part->epoch != qcul_epoch() || part->device < 0 ||
	    part->device >= qcul_device_count() || part->groups > QCU_GREEN_GROUPS ||
	    part->member > QCU_GREEN_GROUPS)
		return cudaErrorInvalidResourceConfiguration;
	return cudaSuccess;
}

cudaError_t qcul_green_resource(int device, const struct qcul_green *green, unsigned int type,
				struct qcul_resource *to)
{
	struct qcul_part part = {.mark = MARK, .epoch = qcul_epoch(), .device = device};
	uint32_t made, sms, least, align, rest[3];
	cudaError_t err;

	if (!to)
		return cudaErrorInvalidValue;
	if (type != QCUL_RESOURCE_SM)
		return cudaErrorInvalidResourceType;
	if (green)
		part.parent = green->number;
	err = qcul_ask_green_parts(device, part.parent, 0, 0, 0, &made, &sms, &least, &align,
				   &rest[0], &rest[1], &rest[2]);
	if (!err)
		describe_sms(to, part, sms, least, align);
	return err;
}

cudaError_t qcul_green_split(struct qcul_resource *result, unsigned int *groups,
			     const struct qcul_resource *input, struct qcul_resource *rest,
			     unsigned int flags, unsigned int least)
{
	uint32_t made, sms, least_sms, align, left, left_least, left_align, i;
	struct qcul_part part;
	cudaError_t err;

	if (!groups || !input || (result && !*groups) || flags & ~SPLIT_FLAGS)
		return cudaErrorInvalidValue;
	err = read_part(input, &part);
	if (err)
		return err;
	/* A part can be split again only as what a green context has. */
	if (part.groups)
		return cudaErrorInvalidResourceConfiguration;
	part.groups = result && *groups < QCU_GREEN_GROUPS ? *groups : QCU_GREEN_GROUPS;
	part.flags = flags;
	part.least = least;
	part.number = ++process.splits;
	err = qcul_ask_green_parts(part.device, part.parent, part.groups, flags, least, &made, &sms,
				   &least_sms, &align, &left, &left_least, &left_align);
	if (err)
		return err;
	for (i = 0; result && i < made; i++) {
		part.member = i;
		describe_sms(&result[i], part, sms, least_sms, align);
	}
	part.member = QCU_GREEN_GROUPS;
	if (rest)
		describe_sms(rest, part, left, left_least, left_align);
	*groups = made;
	return cudaSuccess;
}

static bool same_split(const struct qcul_part *a, const struct qcul_part *b)
{
	return a->number == b->number && a->device == b->device && a->parent == b->parent &&
	       a->groups == b->groups && a->flags == b->flags && a->least == b->least;
}

static cudaError_t gather_members(struct qcul_green_desc *d, const struct qcul_resource *from,
				  unsigned int count)
{
	struct qcul_part part;
	unsigned int i;
	cudaError_t err;

	for (i = 0; i < count; i++) {
		const unsigned char *bit = &d->members[0];

		err = read_part(&from[i], &part);
		if (err)
			return err;
		if (!i)
			d->part = part;
		bit += part.member / 8;
		if (!same_split(&d->part, &part) || *bit >> part.member % 8 & 1)
			return cudaErrorInvalidResourceConfiguration;
		d->members[part.member / 8] |= (unsigned char)(1u << part.member % 8);
	}
	return cudaSuccess;
}

cudaError_t qcul_green_describe(struct qcul_green_desc **desc, const struct qcul_resource *from,
				unsigned int count)
{
	struct qcul_green_desc *d;
	cudaError_t err;

	if (!desc || !from || !count)
		return cudaErrorInvalidValue;
	d = calloc(1, sizeof(*d));
	if (!d)
		return cudaErrorMemoryAllocation;
	err = gather_members(d, from, count);
	if (err) {
		free(d);
		return err;
	}
	pthread_mutex_lock(&at_fork.lock);
	d->next = process.described;
	process.described = d;
	pthread_mutex_unlock(&at_fork.lock);
	*desc = d;
	return cudaSuccess;
}

static bool is_description(const struct qcul_green_desc *desc)
{
	const struct qcul_green_desc *d;

	pthread_mutex_lock(&at_fork.lock);
	for (d = process.described; d && d != desc; d = d->next)
		;
	pthread_mutex_unlock(&at_fork.lock);
	return d;
}

/* ---- contexts ---- */

/* Its streams, with its own, or NULL. free() them. */
static cudaStream_t *list_streams(const struct qcul_green *g, unsigned int *count)
{
	cudaStream_t *list;
	uint32_t id;

	qcul_handles_lock();
	list = malloc((qcul_streams.top + 1) * sizeof(*list));
	*count = 0;
	for (id = QCU_ID_FIRST; list && id <= qcul_streams.top; id++)
		if (qcul_streams.slots[id].live == QCUL_LIVE && qcul_streams.slots[id].green == g)
			list[(*count)++] = (cudaStream_t)&qcul_streams.slots[id];
	qcul_handles_unlock();
	return list;
}

/* Calls with the context's device as the thread's. */
#define ON_DEVICE_OF(g, call)                       \
	({                                          \
		const int here_ = qcul_self.device; \
		cudaError_t result_;                \
                                                    \
		qcul_self.device = (g)->device;     \
		result_ = (call);                   \
		qcul_self.device = here_;           \
		result_;                            \
	})

cudaError_t qcul_green_create(struct qcul_green **green, const struct qcul_green_desc *desc,
			      int device)
{
	struct qcul_handle *slot;
	struct qcul_green *g;
	cudaError_t err;

	if (!green || !is_description(desc) || desc->part.device != device ||
	    desc->part.epoch != qcul_epoch())
		return cudaErrorInvalidValue;
	g = calloc(1, sizeof(*g));
	if (!g)
		return cudaErrorMemoryAllocation;
	slot = qcul_handle_new(&qcul_green_ids, &g->number);
	if (!slot) {
		free(g);
		return cudaErrorMemoryAllocation;
	}
	slot->device = g->device = device;
	g->epoch = qcul_epoch();
	err = qcul_ask_green_create(device, g->number, desc->part.parent, desc->part.groups,
				    desc->part.flags, desc->part.least, desc->members);
	if (!err) {
		err = ON_DEVICE_OF(g, qcul_stream_make(&g->own, 0, 0, g));
		if (err)
			(void)qcul_ask_green_destroy(device, g->number);
	}
	if (err) {
		qcul_handle_drop(&qcul_green_ids, g->number);
		free(g);
		return err;
	}
	atomic_store(&g->alive, true);
	pthread_mutex_lock(&at_fork.lock);
	g->id = ++process.ids;
	g->next = process.made;
	process.made = g;
	pthread_mutex_unlock(&at_fork.lock);
	*green = g;
	return cudaSuccess;
}

cudaError_t qcul_green_destroy(struct qcul_green *g)
{
	unsigned int count, i;
	cudaStream_t *streams = list_streams(g, &count);
	cudaError_t err;

	if (!streams)
		return cudaErrorMemoryAllocation;
	atomic_store(&g->alive, false);
	for (i = 0; i < count; i++)
		(void)cudaStreamDestroy(streams[i]);
	free(streams);
	err = qcul_ask_green_destroy(g->device, g->number);
	qcul_handle_drop(&qcul_green_ids, g->number);
	return err;
}

/* `after` comes after all that is in `before` now. */
static cudaError_t put_after(cudaStream_t after, cudaStream_t before)
{
	cudaEvent_t event;
	cudaError_t err = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);

	if (err)
		return err;
	err = cudaEventRecord(event, before);
	if (!err)
		err = cudaStreamWaitEvent(after, event, 0);
	(void)cudaEventDestroy(event);
	return err;
}

cudaError_t qcul_green_stream(cudaStream_t *stream, struct qcul_green *g, unsigned int flags,
			      int priority)
{
	cudaError_t err = ON_DEVICE_OF(g, qcul_stream_make(stream, flags, priority, g));

	if (!err && g->waited)
		err = ON_DEVICE_OF(g, put_after(*stream, g->own));
	return err;
}

/* Does one of the streams belong to a capture? */
static cudaError_t check_captures(cudaStream_t *streams, unsigned int count)
{
	cudaError_t err = cudaSuccess;

	while (count--)
		if (qcul_captured(streams[count], &err)) {
			(void)qcul_capture_refuse(streams[count]);
			return cudaErrorStreamCaptureUnsupported;
		}
	return cudaSuccess;
}

static cudaError_t record_all(const struct qcul_green *g, cudaStream_t *streams, unsigned int count,
			      cudaEvent_t event)
{
	cudaError_t err = cudaSuccess;

	while (count-- && !err)
		if (streams[count] != g->own)
			err = put_after(g->own, streams[count]);
	return err ? err : cudaEventRecord(event, g->own);
}

static cudaError_t wait_all(struct qcul_green *g, cudaStream_t *streams, unsigned int count,
			    cudaEvent_t event)
{
	cudaError_t err = cudaSuccess;

	g->waited = true;
	while (count-- && !err)
		err = cudaStreamWaitEvent(streams[count], event, 0);
	return err;
}

cudaError_t qcul_green_record(struct qcul_green *g, cudaEvent_t event)
{
	unsigned int count;
	cudaStream_t *streams = list_streams(g, &count);
	cudaError_t err = streams ? check_captures(streams, count) : cudaErrorMemoryAllocation;

	if (!err)
		err = ON_DEVICE_OF(g, record_all(g, streams, count, event));
	free(streams);
	return err;
}

cudaError_t qcul_green_wait(struct qcul_green *g, cudaEvent_t event)
{
	unsigned int count;
	cudaStream_t *streams = list_streams(g, &count);
	cudaError_t err = streams ? check_captures(streams, count) : cudaErrorMemoryAllocation;

	if (!err)
		err = ON_DEVICE_OF(g, wait_all(g, streams, count, event));
	free(streams);
	return err;
}

cudaError_t qcul_green_sync(struct qcul_green *g)
{
	unsigned int count;
	cudaStream_t *streams = list_streams(g, &count);
	cudaError_t err = streams ? check_captures(streams, count) : cudaErrorMemoryAllocation;

	while (!err && count--)
		err = cudaStreamSynchronize(streams[count]);
	free(streams);
	return err;
}
