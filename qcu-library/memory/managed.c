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

/* The type of a location is 0 (none) or one that CUDA defines. */
struct location {
	enum cudaMemLocationType type;
	int id;
};

/* The advice and prefetches for [start, end). Pages without any are in no range. */
struct advised_range {
	uint64_t start, end;
	bool read_mostly;
	struct location preferred, prefetched;
	uint64_t accessed_by;
};

static const struct advised_range nothing;

static struct {
	struct advised_range *advised; /* sorted by address */
	size_t count, room;
} process;
QCUL_AT_FORK(QCUL_FORK_MANAGED)

/* ---- the list of ranges; the lock is held ---- */

/* The first range that ends above addr. */
static size_t first_advised_above(uint64_t addr)
{
	size_t i = 0;

	while (i < process.count && process.advised[i].end <= addr)
		i++;
	return i;
}

static bool insert(size_t at, const struct advised_range *p)
{
	if (process.count == process.room) {
		size_t more = process.room ? 2 * process.room : 16;
		struct advised_range *bigger = realloc(process.advised, more * sizeof(*bigger));

		if (!bigger)
			return false;
		process.advised = bigger;
		process.room = more;
	}
	memmove(process.advised + at + 1, process.advised + at,
		(process.count - at) * sizeof(*process.advised));
	process.advised[at] = *p;
	process.count++;
	return true;
}

/* Splits the range that contains addr, so that addr is a border. */
static bool split_advised_at(uint64_t addr)
{
	size_t i = first_advised_above(addr);
	struct advised_range upper;

	if (i == process.count || process.advised[i].start >= addr)
		return true;
	upper = process.advised[i];
	upper.start = addr;
	if (!insert(i + 1, &upper))
		return false;
	process.advised[i].end = addr;
	return true;
}

/* Makes ranges cover [start, end) exactly. */
static bool cover(uint64_t start, uint64_t end)
{
	size_t i;

	if (!split_advised_at(start) || !split_advised_at(end))
		return false;
	for (i = first_advised_above(start); start < end; i++) {
		struct advised_range gap = nothing;

		gap.start = start;
		gap.end = i < process.count && process.advised[i].start < end
				  ? process.advised[i].start
				  : end;
		if (gap.end > gap.start && !insert(i, &gap))
			return false;
		start = process.advised[i].end;
	}
	return true;
}

void qcul_managed_forget(uint64_t start, uint64_t len)
{
	uint64_t end = start + len;
	size_t i, kept = 0;

	pthread_mutex_lock(&at_fork.lock);
	for (i = 0; i < process.count; i++)
		if (process.advised[i].end <= start || process.advised[i].start >= end)
			process.advised[kept++] = process.advised[i];
	process.count = kept;
	pthread_mutex_unlock(&at_fork.lock);
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

static cudaError_t read_location(const struct cudaMemLocation *location, struct location *where)
{
	*where = (struct location){.type = location->type};
	switch ((int)location->type) {
	case cudaMemLocationTypeDevice:
		where->id = location->id;
		return where->id >= 0 && where->id < qcul_device_count() ? cudaSuccess
									 : cudaErrorInvalidDevice;
	case cudaMemLocationTypeHost:
		return cudaSuccess;
	case cudaMemLocationTypeHostNuma:
		where->id = location->id;
		return where->id >= 0 ? cudaSuccess : cudaErrorInvalidValue;
	case cudaMemLocationTypeHostNumaCurrent:
		where->type = cudaMemLocationTypeHostNuma;
		return cudaSuccess;
	}
	return cudaErrorInvalidValue;
}

/* ---- advice ---- */

static void apply(struct advised_range *p, enum cudaMemoryAdvise advice,
		  const struct location *where)
{
	uint64_t bit = where->type == cudaMemLocationTypeDevice ? 1ull << where->id : CPU_BIT;

	switch (advice) {
	case cudaMemAdviseSetReadMostly:
	case cudaMemAdviseUnsetReadMostly:
		p->read_mostly = advice == cudaMemAdviseSetReadMostly;
		break;
	case cudaMemAdviseSetPreferredLocation:
		p->preferred = *where;
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
static bool both_sides(enum cudaMemoryAdvise advice, const struct location *where)
{
	return advice == cudaMemAdviseSetAccessedBy ||
	       (advice == cudaMemAdviseSetPreferredLocation &&
		where->type != cudaMemLocationTypeDevice);
}

static cudaError_t check_advice(enum cudaMemoryAdvise advice,
				const struct cudaMemLocation *location, struct location *where)
{
	cudaError_t err;

	*where = nothing.preferred;
	switch (advice) {
	case cudaMemAdviseSetReadMostly:
	case cudaMemAdviseUnsetReadMostly:
	case cudaMemAdviseUnsetPreferredLocation:
		return cudaSuccess;
	case cudaMemAdviseSetPreferredLocation:
		return read_location(location, where);
	case cudaMemAdviseSetAccessedBy:
	case cudaMemAdviseUnsetAccessedBy:
		err = read_location(location, where);
		if (!err && where->type == cudaMemLocationTypeHostNuma)
			err = cudaErrorInvalidValue;
		return err;
	}
	return cudaErrorInvalidValue;
}

cudaError_t cudaMemAdvise(const void *ptr, size_t len, enum cudaMemoryAdvise advice,
			  struct cudaMemLocation location)
{
	uint64_t start, end;
	struct location where;
	cudaError_t err = check_range(ptr, len, &start, &end);
	size_t i;

	if (!err)
		err = check_advice(advice, &location, &where);
	/* For advice, CUDA reports a device that does not exist as a wrong value. */
	if (err == cudaErrorInvalidDevice)
		err = cudaErrorInvalidValue;
	if (err)
		return qcul_done(err);
	pthread_mutex_lock(&at_fork.lock);
	if (cover(start, end)) {
		for (i = first_advised_above(start);
		     i < process.count && process.advised[i].start < end; i++)
			apply(&process.advised[i], advice, &where);
	} else {
		err = cudaErrorMemoryAllocation;
	}
	pthread_mutex_unlock(&at_fork.lock);
	if (!err && both_sides(advice, &where))
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
	struct location where;
	cudaError_t err = check_range(ptr, len, &start, &end);
	size_t i;

	if (!err)
		err = read_location(location, &where);
	if (err)
		return err;
	pthread_mutex_lock(&at_fork.lock);
	if (cover(start, end)) {
		for (i = first_advised_above(start);
		     i < process.count && process.advised[i].start < end; i++)
			process.advised[i].prefetched = where;
	} else {
		err = cudaErrorMemoryAllocation;
	}
	pthread_mutex_unlock(&at_fork.lock);
	if (!err && where.type == cudaMemLocationTypeDevice)
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
				size_t location_count, cudaStream_t stream)
{
	cudaError_t err = cudaSuccess;
	size_t i, k;

	if (!locations || !first || !location_count || location_count > n || first[0] != 0)
		return cudaErrorInvalidValue;
	for (k = 1; k < location_count; k++)
		if (first[k] <= first[k - 1] || first[k] >= n)
			return cudaErrorInvalidValue;
	for (i = k = 0; i < n && !err; i++) {
		if (k + 1 < location_count && first[k + 1] == i)
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
				      size_t location_count, unsigned long long flags,
				      cudaStream_t stream)
{
	cudaError_t err = check_discard_ranges(ptrs, sizes, n, flags, stream);

	return qcul_done(
		err ? err : prefetch_all(ptrs, sizes, n, locations, first, location_count, stream));
}

/* The content of discarded memory is undefined, so it may as well stay as it is. */
cudaError_t cudaMemDiscardAndPrefetchBatchAsync(void **ptrs, size_t *sizes, size_t n,
						struct cudaMemLocation *locations, size_t *first,
						size_t location_count, unsigned long long flags,
						cudaStream_t stream)
{
	return cudaMemPrefetchBatchAsync(ptrs, sizes, n, locations, first, location_count, flags,
					 stream);
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

static bool is_same_location(const struct location *a, const struct location *b)
{
	return a->type == b->type && a->id == b->id;
}

/* The settings that hold for the whole range; the lock is held. */
static struct advised_range common(uint64_t start, uint64_t end)
{
	size_t i = first_advised_above(start);
	struct advised_range all = i < process.count && process.advised[i].start <= start
					   ? process.advised[i]
					   : nothing;

	for (start = all.end; all.end && start < end && ++i < process.count;
	     start = process.advised[i].end) {
		const struct advised_range *p = &process.advised[i];

		if (p->start != start)
			break;
		all.read_mostly &= p->read_mostly;
		all.accessed_by &= p->accessed_by;
		if (!is_same_location(&all.preferred, &p->preferred))
			all.preferred = nothing.preferred;
		if (!is_same_location(&all.prefetched, &p->prefetched))
			all.prefetched = nothing.prefetched;
	}
	/* Pages that are in no range have no settings. */
	return all.end && start >= end ? all : nothing;
}

/* The number of a location in older versions of CUDA. */
static int old_number(const struct location *p)
{
	switch ((int)p->type) {
	case cudaMemLocationTypeDevice:
		return p->id;
	case cudaMemLocationTypeHost:
		return cudaCpuDeviceId;
	}
	return cudaInvalidDeviceId;
}

static void tell_accessed_by(const struct advised_range *all, int *out, size_t n)
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

static cudaError_t tell_range_attribute(const struct advised_range *all,
					enum cudaMemRangeAttribute attr, void *data, size_t size)
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
	struct advised_range all;
	cudaError_t err = data && sizes && attributes && n ? check_range(ptr, len, &start, &end)
							   : cudaErrorInvalidValue;
	size_t i;

	if (err)
		return qcul_done(err);
	pthread_mutex_lock(&at_fork.lock);
	all = common(start, end);
	pthread_mutex_unlock(&at_fork.lock);
	for (i = 0; i < n && !err; i++)
		err = tell_range_attribute(&all, attributes[i], data[i], sizes[i]);
	return qcul_done(err);
}

cudaError_t cudaMemRangeGetAttribute(void *data, size_t size, enum cudaMemRangeAttribute attribute,
				     const void *ptr, size_t len)
{
	return cudaMemRangeGetAttributes(&data, &size, &attribute, 1, ptr, len);
}
