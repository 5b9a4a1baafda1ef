// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Addresses inside the window. Every mapping starts on a chunk boundary, so that no chunk has two
 * owners and the mirror can map whole chunks where the guest has them; when the window is too full
 * for that, a page boundary will do.
 */
#include <errno.h>
#include <unistd.h>

#include "qcu-library/qcul.h"
#include "qcu-library/transport.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct qcul_ranges used;

void qcul_window_lock(void)
{
	pthread_mutex_lock(&lock);
}

void qcul_window_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static void *reserve(size_t len)
{
	const struct qcu_hello *hello = qcul_hello();
	uint64_t lo = hello->window_base, hi = lo + hello->window_size;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t chunk = hello->chunk_bytes > page ? hello->chunk_bytes : page;
	struct qcul_range range = {.len = len};

	qcul_window_lock();
	range.start = qcul_ranges_gap(&used, lo, hi, len, chunk);
	if (!range.start)
		range.start = qcul_ranges_gap(&used, lo, hi, len, page);
	if (!range.start || !qcul_ranges_add(&used, &range))
		range.start = 0;
	qcul_window_unlock();
	return (void *)(uintptr_t)range.start;
}

static void release(void *addr)
{
	const struct qcul_range *range;

	qcul_window_lock();
	range = qcul_ranges_find(&used, (uint64_t)(uintptr_t)addr);
	if (range)
		qcul_ranges_remove(&used, range);
	qcul_window_unlock();
}

void *qcul_window_map(size_t len)
{
	for (;;) {
		void *addr = reserve(len);
		int rc;

		if (!addr)
			return NULL;
		rc = qcul_transport_map(addr, len);
		if (rc == 0)
			return addr;
		/* Someone else's mapping lies there: leave the addresses marked and look on. */
		if (rc == -EEXIST)
			continue;
		release(addr);
		return NULL;
	}
}

void qcul_window_unmap(void *addr, size_t len)
{
	/* Memory that could not be unmapped keeps its addresses. */
	if (qcul_transport_unmap(addr, len) == 0)
		release(addr);
}
