// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Freed pinned memory, kept for the next allocation of the same size. To get, clear, map and
 * register new pages takes a hundred times longer than all the rest of an allocation. A kept block
 * stays mapped and registered, so the mirror need not be told.
 *
 * A block is kept only after the GPU is idle, as cudaFreeHost itself waits for that: a copy of the
 * last owner must not go on when the next owner gets the block. The amount kept is limited. Blocks
 * are given back when memory gets short, when an allocation fails, and at a reset of the device.
 */
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/addresses.h"

#define BLOCKS	    64
#define DEFAULT_MAX ((uint64_t)4 << 30)
/* Recycled blocks up to this size are cleared, because that costs little. Larger ones are not. */
#define CLEAR_MAX ((uint64_t)1 << 20)
/* For blocks of at least this size, check how much memory is left. */
#define LOOK_MIN ((uint64_t)1 << 20)

struct block {
	uint64_t start, len;
};

static struct {
	struct block blocks[BLOCKS]; /* oldest first */
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
static struct block take_kept_block(unsigned int i)
{
	struct block b = session.blocks[i];

	session.count--;
	memmove(&session.blocks[i], &session.blocks[i + 1],
		(session.count - i) * sizeof(session.blocks[0]));
	session.kept -= b.len;
	return b;
}

static void give_back_kept_block(const struct block *b)
{
	const struct qcul_range range = {.start = b->start, .len = b->len};

	(void)qcul_unregister(&range);
	qcul_window_unmap((void *)(uintptr_t)b->start, b->len);
}

/* Gives back the oldest blocks until no more than `max` bytes and `most` blocks are kept. */
static bool shrink(uint64_t max, unsigned int most)
{
	bool any = false;

	for (;;) {
		struct block b;
		bool enough;

		pthread_mutex_lock(&part.lock);
		enough = !session.count || (session.kept <= max && session.count <= most);
		if (!enough)
			b = take_kept_block(0);
		pthread_mutex_unlock(&part.lock);
		if (enough)
			return any;
		give_back_kept_block(&b);
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
	shrink(max - len, BLOCKS - 1);
	pthread_mutex_lock(&part.lock);
	/* Another thread may have added a block meanwhile. */
	if (session.count == BLOCKS || session.kept > max - len) {
		pthread_mutex_unlock(&part.lock);
		return false;
	}
	session.blocks[session.count++] = (struct block){.start = start, .len = len};
	session.kept += len;
	pthread_mutex_unlock(&part.lock);
	return true;
}

void *qcul_recycle_take(uint64_t len)
{
	void *addr = NULL;
	unsigned int i;

	pthread_mutex_lock(&part.lock);
	/* Take the youngest block: it is the one that CPU caches may still hold. */
	for (i = session.count; i-- > 0;) {
		if (session.blocks[i].len == len) {
			addr = (void *)(uintptr_t)take_kept_block(i).start;
			break;
		}
	}
	pthread_mutex_unlock(&part.lock);
	if (addr && len <= CLEAR_MAX)
		memset(addr, 0, len);
	return addr;
}

/*
 * The parent's blocks are registered in the parent's mirror. In the child they are ordinary memory.
 */
static void unmap_kept_blocks(void)
{
	unsigned int i;

	for (i = 0; i < session.count; i++)
		qcul_window_unmap((void *)(uintptr_t)session.blocks[i].start,
				  session.blocks[i].len);
}
