// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Advice and prefetches for managed memory, and the queries about them. The library checks advice
 * and prefetches and remembers them page by page. Two things have an effect on memory that moves:
 *
 * - Advice that asks for both sides at once (SetAccessedBy, or the host as the preferred location)
 *   puts the whole allocation in place.
 * - A prefetch to a device moves up what the program has written.
 *
 * A prefetch to the host moves nothing. The first touch does it, and touches in ascending order
 * bring back more and more at once.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qcu-library/memory/memory.h"
#include "qcu-library/link/fork.h"
#include "qcu-library/link/capture.h"

#define CPU_BIT (1ull << 63) /* in accessed_by; the bits below are one for each device */
_Static_assert(QCUL_DEVICES <= 64, "a bit for each device and one for the CPU");

/* The type of a place is 0 (none) or one that CUDA defines. */
struct place {
	enum cudaMemLocationType type;
	int id;
};

/* The advice and prefetches for [start, end). Pages without any are in no piece. */
struct piece {
	uint64_t start, end;
	bool read_mostly;
	struct place preferred, prefetched;
	uint64_t accessed_by;
};

static const struct piece nothing;

static struct {
	struct piece *pieces; /* sorted by address */
	size_t count, room;
} process;
QCUL_AT_FORK(QCUL_FORK_MANAGED)

/* ---- the list of pieces; the lock is held ---- */

/* The first piece that ends above addr. */
static size_t first_piece_above(uint64_t addr)
{
	size_t i = 0;

	while (i < process.count && process.pieces[i].end <= addr)
		i++;
	return i;
}

static bool insert(size_t at, const struct piece *p)
{
	if (process.count == process.room) {
		size_t more = process.room ? 2 * process.room : 16;
		struct piece *bigger = realloc(process.pieces, more * sizeof(*bigger));

		if (!bigger)
			return false;
		process.pieces = bigger;
		process.room = more;
	}
	memmove(process.pieces + at + 1, process.pieces + at,
		(process.count - at) * sizeof(*process.pieces));
	process.pieces[at] = *p;
	process.count++;
	return true;
}

/* Splits the piece that contains addr, so that addr is a border. */
static bool split_piece_at(uint64_t addr)
{
	size_t i = first_piece_above(addr);
	struct piece upper;

	if (i == process.count || process.pieces[i].start >= addr)
		return true;
	upper = process.pieces[i];
	upper.start = addr;
	if (!insert(i + 1, &upper))
		return false;
	process.pieces[i].end = addr;
	return true;
}

/* Makes pieces cover [start, end) exactly. */
static bool cover(uint64_t start, uint64_t end)
{
	size_t i;

	if (!split_piece_at(start) || !split_piece_at(end))
		return false;
	for (i = first_piece_above(start); start < end; i++) {
		struct piece gap = nothing;

		gap.start = start;
		gap.end = i < process.count && process.pieces[i].start < end
				  ? process.pieces[i].start
				  : end;
		if (gap.end > gap.start && !insert(i, &gap))
			return false;
		start = process.pieces[i].end;
	}
	return true;
}

void qcul_managed_forget(uint64_t start, uint64_t len)
{
	uint64_t end = start + len;
	size_t i, kept = 0;

	pthread_mutex_lock(&part.lock);
	for (i = 0; i < process.count; i++)
		if (process.pieces[i].end <= start || process.pieces[i].start >= end)
			process.pieces[kept++] = process.pieces[i];
	process.count = kept;
	pthread_mutex_unlock(&part.lock);
}

/* ---- arguments ---- */

/* Finds the whole pages around the range. The range must be managed memory of this process. */
static cudaError_t check_range(const void *ptr, size_t len, uint64_t *start, uint64_t *end)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), addr = (uint64_t)(uintptr_t)ptr;
	struct qcul_range range;
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	range = qcul_mem_find(ptr);
	if (!len || !qcul_range_is_managed(&range) || len > range.len - (addr - range.start))
		return cudaErrorInvalidValue;
	*start = addr & ~(page - 1);
	*end = (addr + len + page - 1) & ~(page - 1);
	return cudaSuccess;
}

static cudaError_t place_of_location(const struct cudaMemLocation *location, struct place *place)
{
	*place = (struct place){.type = location->type};
	switch ((int)location->type) {
	case cudaMemLocationTypeDevice:
		place->id = location->id;
		return place->id >= 0 && place->id < qcul_device_count() ? cudaSuccess
									 : cudaErrorInvalidDevice;
	case cudaMemLocationTypeHost:
		return cudaSuccess;
	case cudaMemLocationTypeHostNuma:
		place->id = location->id;
		return place->id >= 0 ? cudaSuccess : cudaErrorInvalidValue;
	case cudaMemLocationTypeHostNumaCurrent:
		place->type = cudaMemLocationTypeHostNuma;
		return cudaSuccess;
	}
	return cudaErrorInvalidValue;
}

/* ---- advice ---- */

static void apply(struct piece *p, enum cudaMemoryAdvise advice, const struct place *place)
{
	uint64_t bit = place->type == cudaMemLocationTypeDevice ? 1ull << place->id : CPU_BIT;

	switch (advice) {
	case cudaMemAdviseSetReadMostly:
	case cudaMemAdviseUnsetReadMostly:
		p->read_mostly = advice == cudaMemAdviseSetReadMostly;
		break;
	case cudaMemAdviseSetPreferredLocation:
		p->preferred = *place;
		break;
	case cudaMemAdviseUnsetPreferredLocation:
		p->preferred = nothing.preferred;
		break;
	case cudaMemAdviseSetAccessedBy:
		p->accessed_by |= bit;
		break;
	case cudaMemAdviseUnsetAccessedBy:
		p->accessed_by &= ~bit;
		break;
	}
}

/* Does the advice ask for memory that both sides use at once? */
static bool both_sides(enum cudaMemoryAdvise advice, const struct place *place)
{
	return advice == cudaMemAdviseSetAccessedBy ||
	       (advice == cudaMemAdviseSetPreferredLocation &&
		place->type != cudaMemLocationTypeDevice);
}

static cudaError_t check_advice(enum cudaMemoryAdvise advice,
				const struct cudaMemLocation *location, struct place *place)
{
	cudaError_t err;

	*place = nothing.preferred;
	switch (advice) {
	case cudaMemAdviseSetReadMostly:
	case cudaMemAdviseUnsetReadMostly:
	case cudaMemAdviseUnsetPreferredLocation:
		return cudaSuccess;
	case cudaMemAdviseSetPreferredLocation:
		return place_of_location(location, place);
	case cudaMemAdviseSetAccessedBy:
	case cudaMemAdviseUnsetAccessedBy:
		err = place_of_location(location, place);
		if (!err && place->type == cudaMemLocationTypeHostNuma)
			err = cudaErrorInvalidValue;
		return err;
	}
	return cudaErrorInvalidValue;
}

cudaError_t cudaMemAdvise(const void *ptr, size_t len, enum cudaMemoryAdvise advice,
			  struct cudaMemLocation location)
{
	uint64_t start, end;
	struct place place;
	cudaError_t err = check_range(ptr, len, &start, &end);
	size_t i;

	if (!err)
		err = check_advice(advice, &location, &place);
	/* For advice, CUDA reports a device that does not exist as a wrong value. */
	if (err == cudaErrorInvalidDevice)
		err = cudaErrorInvalidValue;
	if (err)
		return qcul_done(err);
	pthread_mutex_lock(&part.lock);
	if (cover(start, end)) {
		for (i = first_piece_above(start);
		     i < process.count && process.pieces[i].start < end; i++)
			apply(&process.pieces[i], advice, &place);
	} else {
		err = cudaErrorMemoryAllocation;
	}
	pthread_mutex_unlock(&part.lock);
	if (!err && both_sides(advice, &place))
		err = qcul_managed_stay(ptr);
	return qcul_done(err);
}

/* ---- prefetches ---- */

static cudaError_t check_stream(cudaStream_t stream)
{
	uint32_t id;
	cudaError_t err = qcul_ready();

	if (!err)
		err = qcul_stream_id(stream, &id);
	if (!err && qcul_captured(stream, &err))
		err = err ? err : qcul_capture_refuse(stream);
	return err;
}

static cudaError_t prefetch(const void *ptr, size_t len, const struct cudaMemLocation *location,
			    cudaStream_t stream)
{
	uint64_t start, end;
	struct place place;
	cudaError_t err = check_range(ptr, len, &start, &end);
	size_t i;

	if (!err)
		err = place_of_location(location, &place);
	if (err)
		return err;
	pthread_mutex_lock(&part.lock);
	if (cover(start, end)) {
		for (i = first_piece_above(start);
		     i < process.count && process.pieces[i].start < end; i++)
			process.pieces[i].prefetched = place;
	} else {
		err = cudaErrorMemoryAllocation;
	}
	pthread_mutex_unlock(&part.lock);
	if (!err && place.type == cudaMemLocationTypeDevice)
		err = qcul_managed_up(ptr, stream);
	return err;
}

cudaError_t cudaMemPrefetchAsync(const void *ptr, size_t len, struct cudaMemLocation location,
				 unsigned int flags, cudaStream_t stream)
{
	cudaError_t err = flags ? cudaErrorInvalidValue : check_stream(stream);

	return qcul_done(err ? err : prefetch(ptr, len, &location, stream));
}

static cudaError_t check_discard_ranges(void **ptrs, const size_t *sizes, size_t n,
					unsigned long long flags, cudaStream_t stream)
{
	cudaError_t err = cudaErrorInvalidValue;
	uint64_t start, end;
	size_t i;

	if (ptrs && sizes && n && !flags)
		err = check_stream(stream);
	for (i = 0; i < n && !err; i++)
		err = check_range(ptrs[i], sizes[i], &start, &end);
	return err;
}

/* locations[k] is for the ranges from index first[k] to the one before first[k + 1]. */
static cudaError_t prefetch_all(void **ptrs, const size_t *sizes, size_t n,
				const struct cudaMemLocation *locations, const size_t *first,
				size_t places, cudaStream_t stream)
{
	cudaError_t err = cudaSuccess;
	size_t i, k;

	if (!locations || !first || !places || places > n || first[0] != 0)
		return cudaErrorInvalidValue;
	for (k = 1; k < places; k++)
		if (first[k] <= first[k - 1] || first[k] >= n)
			return cudaErrorInvalidValue;
	for (i = k = 0; i < n && !err; i++) {
		if (k + 1 < places && first[k + 1] == i)
			k++;
		err = prefetch(ptrs[i], sizes[i], &locations[k], stream);
	}
	return err;
}

cudaError_t cudaMemDiscardBatchAsync(void **ptrs, size_t *sizes, size_t n, unsigned long long flags,
				     cudaStream_t stream)
{
	return qcul_done(check_discard_ranges(ptrs, sizes, n, flags, stream));
}

cudaError_t cudaMemPrefetchBatchAsync(void **ptrs, size_t *sizes, size_t n,
				      struct cudaMemLocation *locations, size_t *first,
				      size_t places, unsigned long long flags, cudaStream_t stream)
{
	cudaError_t err = check_discard_ranges(ptrs, sizes, n, flags, stream);

	return qcul_done(err ? err
			     : prefetch_all(ptrs, sizes, n, locations, first, places, stream));
}

/* The content of discarded memory is undefined, so it may as well stay as it is. */
cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void **ptrs, size_t *sizes, size_t n,
						struct cudaMemLocation *locations, size_t *first,
						size_t places, unsigned long long flags,
						cudaStream_t stream)
{
	return cudaMemPrefetchBatchAsync(ptrs, sizes, n, locations, first, places, flags, stream);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *ptr, size_t len, unsigned int flags)
{
	struct qcul_range range;
	cudaError_t err = check_stream(stream);

	if (err)
		return qcul_done(err);
	range = qcul_mem_find(ptr);
	if (!qcul_range_is_managed(&range) || (uint64_t)(uintptr_t)ptr != range.start ||
	    len > range.len)
		err = cudaErrorInvalidValue;
	/* The null stream stands for all streams, so memory cannot be attached to it alone. */
	if (flags == cudaMemAttachSingle && (!stream || stream == cudaStreamLegacy))
		err = cudaErrorInvalidValue;
	if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost &&
	    flags != cudaMemAttachSingle)
		err = cudaErrorInvalidValue;
	return qcul_done(err);
}

/* ---- questions ---- */

static bool is_same_place(const struct place *a, const struct place *b)
{
	return a->type == b->type && a->id == b->id;
}

/* The settings that hold for the whole range; the lock is held. */
static struct piece common(uint64_t start, uint64_t end)
{
	size_t i = first_piece_above(start);
	struct piece all =
		i < process.count && process.pieces[i].start <= start ? process.pieces[i] : nothing;

	for (start = all.end; all.end && start < end && ++i < process.count;
	     start = process.pieces[i].end) {
		const struct piece *p = &process.pieces[i];

		if (p->start != start)
			break;
		all.read_mostly &= p->read_mostly;
		all.accessed_by &= p->accessed_by;
		if (!is_same_place(&all.preferred, &p->preferred))
			all.preferred = nothing.preferred;
		if (!is_same_place(&all.prefetched, &p->prefetched))
			all.prefetched = nothing.prefetched;
	}
	/* Pages that are in no piece have no settings. */
	return all.end && start >= end ? all : nothing;
}

/* The number of a place in older versions of CUDA. */
static int old_number(const struct place *p)
{
	switch ((int)p->type) {
	case cudaMemLocationTypeDevice:
		return p->id;
	case cudaMemLocationTypeHost:
		return cudaCpuDeviceId;
	}
	return cudaInvalidDeviceId;
}

static void tell_accessed_by(const struct piece *all, int *out, size_t n)
{
	size_t k = 0;
	int d;

	if (all->accessed_by & CPU_BIT && k < n)
		out[k++] = cudaCpuDeviceId;
	for (d = 0; d < qcul_device_count() && k < n; d++)
		if (all->accessed_by >> d & 1)
			out[k++] = d;
	while (k < n)
		out[k++] = cudaInvalidDeviceId;
}

static cudaError_t tell_range_attribute(const struct piece *all, enum cudaMemRangeAttribute attr,
					void *data, size_t size)
{
	int *out = data;

	if (!data)
		return cudaErrorInvalidValue;
	if (attr == cudaMemRangeAttributeAccessedBy) {
		if (!size || size % sizeof(*out))
			return cudaErrorInvalidValue;
		tell_accessed_by(all, out, size / sizeof(*out));
		return cudaSuccess;
	}
	if (size != sizeof(*out))
		return cudaErrorInvalidValue;
	switch (attr) {
	case cudaMemRangeAttributeReadMostly:
		*out = all->read_mostly;
		return cudaSuccess;
	case cudaMemRangeAttributePreferredLocation:
		*out = old_number(&all->preferred);
		return cudaSuccess;
	case cudaMemRangeAttributeLastPrefetchLocation:
		*out = old_number(&all->prefetched);
		return cudaSuccess;
	case cudaMemRangeAttributePreferredLocationType:
		*out = all->preferred.type;
		return cudaSuccess;
	case cudaMemRangeAttributePreferredLocationId:
		*out = all->preferred.id;
		return cudaSuccess;
	case cudaMemRangeAttributeLastPrefetchLocationType:
		*out = all->prefetched.type;
		return cudaSuccess;
	case cudaMemRangeAttributeLastPrefetchLocationId:
		*out = all->prefetched.id;
		return cudaSuccess;
	case cudaMemRangeAttributeAccessedBy:
		break;
	}
	return cudaErrorInvalidValue;
}

cudaError_t cudaMemRangeGetAttributes(void **data, size_t *sizes,
				      enum cudaMemRangeAttribute *attributes, size_t n,
				      const void *ptr, size_t len)
{
	uint64_t start, end;
	struct piece all;
	cudaError_t err = data && sizes && attributes && n ? check_range(ptr, len, &start, &end)
							   : cudaErrorInvalidValue;
	size_t i;

	if (err)
		return qcul_done(err);
	pthread_mutex_lock(&part.lock);
	all = common(start, end);
	pthread_mutex_unlock(&part.lock);
	for (i = 0; i < n && !err; i++)
		err = tell_range_attribute(&all, attributes[i], data[i], sizes[i]);
	return qcul_done(err);
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, enum cudaMemRangeAttribute attribute,
				     const void *ptr, size_t len)
{
	return cudaMemRangeGetAttributes(&data, &size, &attribute, 1, ptr, len);
}
