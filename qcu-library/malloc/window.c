// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Addresses inside the window. Every mapping starts on a chunk boundary. So no chunk has two
 * owners, and the mirror can map whole chunks at the guest's addresses. If the window is too full
 * for that, a mapping starts on a page boundary.
 *
 * The GPU may still use memory that has been given back, and the next user of its addresses has to
 * wait for that. So the gaps are used in turn, and the gap that was freed last is used last.
 *
 * A program may have its own mappings in the window. They are left alone: if a mapping of ours
 * fails because of one, the library reads all mappings from /proc/self/maps and does not try their
 * addresses again.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/addresses.h"
#include "qcu-library/link/transport.h"

/* Another thread of the program may take addresses at the same time. */
#define TRIES 16

static struct {
	struct qcul_ranges used;
	uint64_t turn; /* end of the last range that was taken */
} process;
QCUL_AT_FORK(QCUL_FORK_WINDOW)

/* Marks the parts of [start, end) that are not ours as used. */
static void mark_foreign_mapping(uint64_t start, uint64_t end)
{
	while (start < end) {
		const struct qcul_range *range = qcul_ranges_find(&process.used, start);
		struct qcul_range gap = {.start = start};
		uint64_t next = end;

		if (range) {
			start = range->start + range->len;
			continue;
		}
		range = qcul_ranges_after(&process.used, start);
		if (range && range->start < end)
			next = range->start;
		gap.len = next - start;
		if (!qcul_ranges_add(&process.used, &gap))
			return;
		start = next;
	}
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Marks everything that is mapped in the window as used. Each line of the file begins "START-END ".
 * The file is read without stdio, because this happens inside malloc.
 */
static void mark_all(uint64_t lo, uint64_t hi)
{
	enum { START, END, REST } at = START;
	int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	uint64_t bound[2] = {0, 0};
	char text[1024];
	ssize_t n, i;

	while (file >= 0 && (n = read(file, text, sizeof(text))) > 0) {
		for (i = 0; i < n; i++) {
			if (text[i] == '\n') {
				at = START;
				bound[START] = bound[END] = 0;
			} else if (at != REST && digit(text[i]) >= 0) {
				bound[at] = bound[at] * 16 + (uint64_t)digit(text[i]);
			} else if (at == START) {
				at = END;
			} else if (at == END) {
				at = REST;
				if (bound[START] < hi && bound[END] > lo)
					mark_foreign_mapping(bound[START] > lo ? bound[START] : lo,
							     bound[END] < hi ? bound[END] : hi);
			}
		}
	}
	if (file >= 0)
		close(file);
}

static void foreign(void)
{
	const struct qcu_hello *hello = qcul_hello();

	pthread_mutex_lock(&at_fork.lock);
	mark_all(hello->window_base, hello->window_base + hello->window_size);
	pthread_mutex_unlock(&at_fork.lock);
}

static uint64_t next_gap(uint64_t lo, uint64_t hi, size_t len, uint64_t align)
{
	uint64_t at = process.turn > lo
			      ? qcul_ranges_gap(&process.used, process.turn, hi, len, align)
			      : 0;

	return at ? at : qcul_ranges_gap(&process.used, lo, hi, len, align);
}

/* align 0: at a chunk boundary, or else where there is room. */
static void *reserve_window_range(size_t len, size_t align)
{
	const struct qcu_hello *hello = qcul_hello();
	uint64_t lo = hello->window_base, hi = lo + hello->window_size;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t chunk = hello->chunk_bytes > page ? hello->chunk_bytes : page;
	struct qcul_range range = {.len = len};

	pthread_mutex_lock(&at_fork.lock);
	range.start = next_gap(lo, hi, len, align > chunk ? align : chunk);
	if (!range.start && !align)
		range.start = next_gap(lo, hi, len, page);
	if (!range.start || !qcul_ranges_add(&process.used, &range))
		range.start = 0;
	else
		process.turn = range.start + len;
	pthread_mutex_unlock(&at_fork.lock);
	return (void *)(uintptr_t)range.start;
}

static void release_window_range(void *addr)
{
	const struct qcul_range *range;

	pthread_mutex_lock(&at_fork.lock);
	range = qcul_ranges_find(&process.used, (uint64_t)(uintptr_t)addr);
	if (range)
		qcul_ranges_remove(&process.used, range);
	pthread_mutex_unlock(&at_fork.lock);
}

void *qcul_window_map_aligned(size_t len, size_t align)
{
	int tries;

	for (tries = 0; tries < TRIES; tries++) {
		void *addr = reserve_window_range(len, align);
		int rc;

		if (!addr)
			break;
		rc = qcul_transport_map(addr, len);
		if (rc == 0)
			return addr;
		release_window_range(addr);
		if (rc != -EEXIST)
			return NULL;
		foreign();
	}
	qcul_trace("the window has no room for %zu bytes", len);
	return NULL;
}

void *qcul_window_map(size_t len)
{
	return qcul_window_map_aligned(len, 0);
}

atomic_uint qcul_window_unmaps;

void qcul_window_unmap(void *addr, size_t len)
{
	atomic_fetch_add(&qcul_window_unmaps, 1);
	/* If the memory cannot be unmapped, its addresses stay taken. */
	if (qcul_transport_unmap(addr, len) == 0)
		release_window_range(addr);
}
