// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Guest-physical ranges: an address outside all regions is never translated, in whatever way it is
 * asked for.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "qcu-device/memory/guestmem.h"
#include "qcu-device/memory/named.h"

static uint8_t low[0x4000], high[0x8000];

/* 0x1000..0x4fff, 0x5000..0xcfff, and a range that ends at the end of the address space. */
static void setup(struct guestmem *mem)
{
	mem->count = 0;
	assert_int_equal(guestmem_add(mem, 0x5000, sizeof(high), high), 0);
	assert_int_equal(guestmem_add(mem, 0x1000, sizeof(low), low), 0);
	assert_int_equal(guestmem_add(mem, UINT64_MAX - 0xfff, 0x1000, high), 0);
	assert_int_equal(mem->count, 3);
	assert_int_equal(mem->regions[0].gpa, 0x1000);
}

static void bad_regions(void **state)
{
	static struct guestmem mem;
	unsigned int i;

	(void)state;
	setup(&mem);
	assert_int_equal(guestmem_add(&mem, 0x20000, 0, low), -EINVAL);
	assert_int_equal(guestmem_add(&mem, 0x20000, 0x1000, NULL), -EINVAL);
	assert_int_equal(guestmem_add(&mem, 0x4fff, 1, low), -EINVAL);
	assert_int_equal(guestmem_add(&mem, 0, 0x1001, low), -EINVAL);
	assert_int_equal(guestmem_add(&mem, 0, UINT64_MAX, low), -EINVAL);
	assert_int_equal(guestmem_add(&mem, 0x10000, UINT64_MAX - 0x8000, low), -EINVAL);
	assert_int_equal(guestmem_add(&mem, 0x10000, 0x1000, (void *)(UINTPTR_MAX - 0xffe)),
			 -EINVAL);
	assert_int_equal(guestmem_add(&mem, 0, 0x1000, low), 0);
	for (i = mem.count; i < GUESTMEM_REGIONS; i++)
		assert_int_equal(guestmem_add(&mem, 0x100000 + i * 16ull, 16, low), 0);
	assert_int_equal(guestmem_add(&mem, 0x10000000, 16, low), -ENOSPC);
}

static void whole_ranges(void **state)
{
	static struct guestmem mem;
	static const struct guestmem none;

	(void)state;
	setup(&mem);
	assert_ptr_equal(guestmem_translate(&mem, 0x1000, 1), low);
	assert_ptr_equal(guestmem_translate(&mem, 0x1000, 0x4000), low);
	assert_ptr_equal(guestmem_translate(&mem, 0x4fff, 1), low + 0x3fff);
	assert_ptr_equal(guestmem_translate(&mem, 0x5000, 0x8000), high);
	assert_null(guestmem_translate(&mem, 0x1000, 0));
	assert_null(guestmem_translate(&mem, 0xfff, 1));
	assert_null(guestmem_translate(&mem, 0xfff, 2));
	assert_null(guestmem_translate(&mem, 0x4fff, 2));
	assert_null(guestmem_translate(&mem, 0x1000, 0x4001));
	assert_null(guestmem_translate(&mem, 0xd000, 1));
	assert_null(guestmem_translate(&mem, 0x1000, UINT64_MAX));
	assert_null(guestmem_translate(&mem, 0x1001, UINT64_MAX));
	assert_null(guestmem_translate(&mem, UINT64_MAX, 2));
	assert_ptr_equal(guestmem_translate(&mem, UINT64_MAX, 1), high + 0xfff);
	assert_null(guestmem_translate(&mem, UINT64_MAX - 0xfff, 0x1001));
	assert_null(guestmem_translate(&none, 0, 1));
}

static void split_ranges(void **state)
{
	static struct guestmem mem;
	void *p = NULL;

	(void)state;
	setup(&mem);
	assert_int_equal(guestmem_run(&mem, 0x4000, 0x3000, &p), 0x1000);
	assert_ptr_equal(p, low + 0x3000);
	assert_int_equal(guestmem_run(&mem, 0x5000, 0x2000, &p), 0x2000);
	assert_ptr_equal(p, high);
	assert_int_equal(guestmem_run(&mem, 0xc000, UINT64_MAX, &p), 0x1000);
	assert_int_equal(guestmem_run(&mem, 0xd000, 1, &p), 0);
	assert_int_equal(guestmem_run(&mem, 0x1000, 0, &p), 0);
	assert_int_equal(guestmem_run(&mem, UINT64_MAX, UINT64_MAX, &p), 1);
}

/* What is translated is noted, and nothing else. */
static void noted_pages(void **state)
{
	static struct guestmem mem;
	static uint8_t bits[NAMED_BYTES];
	void *p;

	(void)state;
	setup(&mem);
	mem.named = bits;
	assert_null(guestmem_translate(&mem, 0, 1));
	assert_int_equal(guestmem_run(&mem, 0x20000, 1, &p), 0);
	assert_int_equal(bits[0] | bits[1] | bits[2], 0);
	/* It goes on in the next region: the caller asks again. */
	assert_int_equal(guestmem_run(&mem, 0x4fff, 0x2000, &p), 1);
	assert_int_equal(bits[0], 1u << 4);
	assert_non_null(guestmem_translate(&mem, 0x6fff, 0x3002));
	assert_int_equal(bits[0], 1u << 4 | 1u << 6 | 1u << 7);
	assert_int_equal(bits[1], 1u << 0 | 1u << 1 | 1u << 2);
	assert_non_null(guestmem_translate(&mem, UINT64_MAX, 1));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_regions),
		cmocka_unit_test(whole_ranges),
		cmocka_unit_test(split_ranges),
		cmocka_unit_test(noted_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
