// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Device memory has addresses of the mirror process. This process could have other memory at the
 * same addresses. Then a pointer would no longer tell host from device memory, as it does under
 * unified addressing. So the library reserves the addresses of every allocation in this process: it
 * maps blocks of them without access, which cost no memory. The reservations are kept, because the
 * GPU hands out the same addresses again and again.
 */
#include <sys/mman.h>

#include "qcu-library/link/fork.h"
#include "qcu-library/malloc/addresses.h"
#include "qcu-library/link/transport.h"

/* CUDA gets memory from the GPU in pieces of this size, and takes small allocations from them. */
#define BLOCK (2ull << 20)

static struct {
	struct qcul_ranges reserved;
} process;
QCUL_AT_FORK(QCUL_FORK_RESERVE)

static bool reserve_address_block(uint64_t start, uint64_t len)
{
	struct qcul_range range = {.start = start, .len = len};
	void *want = (void *)(uintptr_t)start;
	void *got;

	got = mmap(want, len, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (got == MAP_FAILED)
		return false;
	/* A kernel without MAP_FIXED_NOREPLACE treats the address as a hint. */
	if (got != want || !qcul_ranges_add(&process.reserved, &range)) {
		munmap(got, len);
		return false;
	}
	return true;
}

bool qcul_reserve(uint64_t start, uint64_t len)
{
	uint64_t at = start - start % BLOCK, end;
	bool ok = true;

	if (qcul_transport_shares_memory())
		return true;
	if (__builtin_add_overflow(start, len + (BLOCK - 1), &end))
		return false;
	end -= end % BLOCK;
	pthread_mutex_lock(&at_fork.lock);
	while (ok && at < end) {
		const struct qcul_range *range = qcul_ranges_find(&process.reserved, at);
		uint64_t next;

		if (range) {
			at = range->start + range->len;
			continue;
		}
		range = qcul_ranges_after(&process.reserved, at);
		next = range && range->start < end ? range->start : end;
		ok = reserve_address_block(at, next - at);
		at = next;
	}
	pthread_mutex_unlock(&at_fork.lock);
	return ok;
}
