// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Addresses of device memory are kept free of this process's own memory, or are known to be taken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "qcu-library/malloc/addresses.h"
#include "qcu-library/link/transport.h"

#define BASE  0x300000000000ull
#define BLOCK (2ull << 20)

bool qcul_transport_shares_memory(void)
{
	return false;
}

static bool can_map(uint64_t addr)
{
	void *want = (void *)(uintptr_t)addr;
	void *got = mmap(want, 4096, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (got == MAP_FAILED)
		return false;
	munmap(got, 4096);
	return got == want;
}

static void what_is_reserved_cannot_be_used(void **state)
{
	(void)state;
	assert_true(can_map(BASE));
	assert_true(qcul_reserve(BASE + 512, 16));
	assert_false(can_map(BASE));
	assert_false(can_map(BASE + BLOCK - 4096));
	assert_true(can_map(BASE + BLOCK));
	/* A neighbour in the same block, and a large range around it. */
	assert_true(qcul_reserve(BASE + 1024, 16));
	assert_true(qcul_reserve(BASE - 3 * BLOCK, 8 * BLOCK));
	assert_false(can_map(BASE - 3 * BLOCK));
	assert_false(can_map(BASE + 5 * BLOCK - 4096));
	assert_true(can_map(BASE + 5 * BLOCK));
}

static void what_is_used_cannot_be_reserved(void **state)
{
	uint64_t at = BASE + 100 * BLOCK;
	void *mine = mmap((void *)(uintptr_t)(at + BLOCK), 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	(void)state;
	assert_int_equal((uintptr_t)mine, at + BLOCK);
	*(volatile int *)mine = 5;
	assert_false(qcul_reserve(at, 3 * BLOCK));
	assert_int_equal(*(volatile int *)mine, 5);
	assert_true(qcul_reserve(at, BLOCK));
	munmap(mine, 4096);
	assert_true(qcul_reserve(at, 3 * BLOCK));
	assert_false(can_map(at + BLOCK));
}

static void nonsense_is_refused(void **state)
{
	(void)state;
	assert_false(qcul_reserve(UINT64_MAX - 100, 1000));
	assert_false(qcul_reserve(BASE, UINT64_MAX - BASE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(what_is_reserved_cannot_be_used),
		cmocka_unit_test(what_is_used_cannot_be_reserved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
