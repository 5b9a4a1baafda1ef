// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Freed pinned memory, kept for the next allocation of the same size. To get, clear, map and
 * register new pages takes a hundred times longer than all the rest of an allocation. A kept range
 * stays mapped and registered, so the mirror need not be told.
 *
 * A range is kept only after the GPU is idle, as cudaFreeHost itself waits for that: a copy of the
 * last owner must not go on when the next owner gets the range. The amount kept is limited. Ranges
 * are given back when memory gets short, when an allocation fails, and at a reset of the device.
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/addresses.h"

#define KEPT_RANGES 64
#define DEFAULT_MAX ((uint64_t)4 << 30)
/* Recycled ranges up to this size are cleared, because that costs little. Larger ones are not. */
#define CLEAR_MAX ((uint64_t)1 << 20)
/* For ranges of at least this size, check how much memory is left. */
#define LOOK_MIN ((uint64_t)1 << 20)

struct kept_range {
	uint64_t start, len;
};

static struct {
	struct kept_range ranges[KEPT_RANGES]; /* oldest first */
	unsigned int count;
	uint64_t kept;
} session;

static void unmap_kept_blocks(void);
QCUL_AT_FORK(QCUL_FORK_RECYCLE, .forget = unmap_kept_blocks, QCUL_SESSION)

static uint64_t total_memory(void)
{
	struct sysinfo info;

	return sysinfo(&info) ? 0 : (uint64_t)info.totalram * info.mem_unit;
}

/* QCU_PINNED_CACHE; else a quarter of the memory, at most 4 GiB. */
static uint64_t limit_of_kept_bytes(void)
{
	static _Atomic uint64_t known; /* the limit plus 1; 0: not known */
	uint64_t bytes = atomic_load_explicit(&known, memory_order_relaxed);

	if (bytes)
		return bytes - 1;
	if (!qcul_env_bytes("QCU_PINNED_CACHE", &bytes)) {
		bytes = total_memory() / 4;
		if (bytes > DEFAULT_MAX)
			bytes = DEFAULT_MAX;
	}
	atomic_store_explicit(&known, bytes + 1, memory_order_relaxed);
	return bytes;
}

/* Is less than an eighth of the machine's memory left? Unknown counts as no. */
static bool memory_is_short(void)
{
	unsigned long long kb = 0, total = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (!f)
		return false;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "MemTotal: %llu", &total) != 1 &&
		    sscanf(line, "MemAvailable: %llu", &kb) == 1)
			break;
	fclose(f);
	return kb && kb < total / 8;
}

/* The caller holds the lock. */
static struct kept_range take_kept_range(unsigned int i)
{
	struct kept_range b = session.ranges[i];

	session.count--;
	memmove(&session.ranges[i], &session.ranges[i + 1],
		(session.count - i) * sizeof(session.ranges[0]));
	session.kept -= b.len;
	return b;
}

static void give_back_kept_range(const struct kept_range *b)
{
	const struct qcul_range range = {.start = b->start, .len = b->len};

	(void)qcul_unregister(&range);
	qcul_window_unmap((void *)(uintptr_t)b->start, b->len);
}

/* Gives back the oldest ranges until no more than `max` bytes and `most` ranges are kept. */
static bool shrink(uint64_t max, unsigned int most)
{
	bool any = false;

	for (;;) {
		struct kept_range b;
		bool enough;

		pthread_mutex_lock(&at_fork.lock);
		enough = !session.count || (session.kept <= max && session.count <= most);
		if (!enough)
			b = take_kept_range(0);
		pthread_mutex_unlock(&at_fork.lock);
		if (enough)
			return any;
		give_back_kept_range(&b);
		any = true;
	}
}

bool qcul_recycle_drop(void)
{
	return shrink(0, 0);
}

bool qcul_recycle_wanted(void)
{
	return limit_of_kept_bytes() > 0;
}

bool qcul_recycle_keep(uint64_t start, uint64_t len)
{
	uint64_t max = limit_of_kept_bytes();

	if (len > max)
		return false;
	if (len >= LOOK_MIN && memory_is_short()) {
		shrink(0, 0);
		return false;
	}
	shrink(max - len, KEPT_RANGES - 1);
	pthread_mutex_lock(&at_fork.lock);
	/* Another thread may have added a range meanwhile. */
	if (session.count == KEPT_RANGES || session.kept > max - len) {
		pthread_mutex_unlock(&at_fork.lock);
		return false;
	}
	session.ranges[session.count++] = (struct kept_range){.start = start, .len = len};
	session.kept += len;
	pthread_mutex_unlock(&at_fork.lock);
	return true;
}

void *qcul_recycle_take(uint64_t len)
{
	void *addr = NULL;
	unsigned int i;

	pthread_mutex_lock(&at_fork.lock);
	/* Take the youngest range: it is the one that CPU caches may still hold. */
	for (i = session.count; i-- > 0;) {
		if (session.ranges[i].len == len) {
			addr = (void *)(uintptr_t)take_kept_range(i).start;
			break;
		}
	}
	pthread_mutex_unlock(&at_fork.lock);
	if (addr && len <= CLEAR_MAX)
		memset(addr, 0, len);
	return addr;
}

/*
 * The parent's ranges are registered in the parent's mirror. In the child they are ordinary memory.
 */
static void unmap_kept_blocks(void)
{
	unsigned int i;

	for (i = 0; i < session.count; i++)
		qcul_window_unmap((void *)(uintptr_t)session.ranges[i].start,
				  session.ranges[i].len);
}
