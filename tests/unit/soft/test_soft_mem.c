/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of the software GPU: which allocations succeed, which are refused, who may access what,
 * and that memory is returned.
 */
#include <sys/mman.h>

#include "qcu-device/soft/gpu/soft.h"
#include "tests/unit/soft/test_soft_fake.h"

#define MIB (1ull << 20)

static int setup(void **state)
{
	*state = fake_open(2, 64 * MIB);
	return 0;
}

static int teardown(void **state)
{
	be_soft.close(*state);
	return 0;
}

static uint64_t alloc(struct be *be, uint64_t size)
{
	uint64_t a;

	assert_int_equal(be_soft.mem_alloc(be, 0, size, &a), QCU_ERR_Success);
	assert_true(a);
	return a;
}

static uint64_t free_bytes(struct be *be)
{
	uint64_t f, t;

	assert_int_equal(be_soft.mem_info(be, 0, &f, &t), QCU_ERR_Success);
	assert_int_equal(t, 64 * MIB);
	return f;
}

static void refuses_what_it_has_not(void **state)
{
	static const uint64_t sizes[] = {64 * MIB + 1, 1ull << 40, UINT64_MAX, UINT64_MAX - 511};
	struct be *be = *state;
	uint64_t a;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		a = 1;
		assert_int_equal(be_soft.mem_alloc(be, 0, sizes[i], &a), QCU_ERR_MemoryAllocation);
		assert_int_equal(a, 0);
	}
	assert_int_equal(free_bytes(be), 64 * MIB);
}

static void refuses_to_free_what_is_not_allocated(void **state)
{
	struct be *be = *state;
	uint64_t a = alloc(be, 1000), b = alloc(be, 1000);
	int local;

	assert_int_equal(be_soft.mem_free(be, a + 1), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_free(be, a + 512), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_free(be, 16), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_free(be, (uintptr_t)&local), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_free(be, UINT64_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.mem_free(be, b), QCU_ERR_Success);
	assert_int_equal(be_soft.mem_free(be, 0), QCU_ERR_Success);
}

static void nothing_is_null(void **state)
{
	uint64_t a = 1;

	assert_int_equal(be_soft.mem_alloc(*state, 0, 0, &a), QCU_ERR_Success);
	assert_int_equal(a, 0);
}

static void lies_outside_of_the_window(void **state)
{
	uint64_t a = alloc(*state, MIB);

	assert_true(a + MIB <= QCU_WINDOW_BASE || a >= QCU_WINDOW_BASE + QCU_WINDOW_SIZE);
	assert_int_equal(a % 512, 0);
}

static void holes_lie_between_allocations(void **state)
{
	static const uint64_t sizes[] = {1, 7, 511, 512, 513, 4096, 65535, 65536, 65537, MIB};
	struct be *be = *state;
	uint64_t a[2 * sizeof(sizes) / sizeof(*sizes)];
	size_t i, j, n = sizeof(a) / sizeof(*a);

	for (i = 0; i < n; i++) {
		uint64_t size = sizes[i / 2];

		a[i] = alloc(be, size);
		assert_int_equal(a[i] % 512, 0);
		assert_true(be_soft.mem_valid(be, a[i], size));
		assert_true(be_soft.mem_valid(be, a[i] + size - 1, 1));
		assert_false(be_soft.mem_valid(be, a[i], size + 1));
		assert_false(be_soft.mem_valid(be, a[i] + size, 1));
		assert_false(be_soft.mem_valid(be, a[i] - 1, 1));
		assert_false(be_soft.mem_valid(be, a[i], UINT64_MAX));
		assert_false(be_soft.mem_valid(be, a[i] + 1, UINT64_MAX - a[i]));
		for (j = 0; j < i; j++)
			assert_true(a[j] + sizes[j / 2] + 512 <= a[i] || a[i] + size + 512 <= a[j]);
	}
}

static void an_address_comes_back_late(void **state)
{
	struct be *be = *state;
	uint64_t a = alloc(be, 4096), b;

	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
	b = alloc(be, 4096);
	assert_int_not_equal(a, b);
	assert_false(be_soft.mem_valid(be, a, 1));
}

/* More in total than the device has addresses, so addresses are used again. */
static void lasts_for_ever(void **state)
{
	struct be *be = *state;
	uint64_t a, keep = alloc(be, 100);
	unsigned int i;

	for (i = 0; i < 600; i++) {
		a = alloc(be, 60 * MIB + i * 4096);
		*(volatile char *)(uintptr_t)a = 1;
		*(volatile char *)(uintptr_t)(a + 60 * MIB) = 1;
		assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
	}
	assert_true(be_soft.mem_valid(be, keep, 100));
}

/* Bytes of the device's memory for which the host has pages. */
static size_t resident(struct be *be)
{
	static unsigned char page[64u << 10];
	const struct soft_mem *m = &be->dev[0].mem;
	size_t n = 0, i;
	uint64_t at;

	for (at = m->base; at < m->base + m->usable; at += sizeof(page) * 4096) {
		uint64_t left = m->base + m->usable - at;
		size_t pages = left / 4096 < sizeof(page) ? left / 4096 : sizeof(page);

		assert_int_equal(mincore((void *)(uintptr_t)at, pages * 4096, page), 0);
		for (i = 0; i < pages; i++)
			n += page[i] & 1 ? 4096 : 0;
	}
	return n;
}

static void memory_goes_back_to_the_host(void **state)
{
	struct be *be = *state;
	uint64_t a[1024];
	size_t i;

	a[0] = alloc(be, 48 * MIB);
	memset((void *)(uintptr_t)a[0], 1, 48 * MIB);
	assert_true(resident(be) >= 48 * MIB);
	assert_int_equal(be_soft.mem_free(be, a[0]), QCU_ERR_Success);
	assert_int_equal(resident(be), 0);
	/* Small allocations share pages; the last one to be freed frees the page. */
	for (i = 0; i < 1024; i++) {
		a[i] = alloc(be, 1700);
		memset((void *)(uintptr_t)a[i], 1, 1700);
	}
	assert_true(resident(be) >= 1024 * 1700);
	for (i = 0; i < 1024; i++)
		assert_int_equal(be_soft.mem_free(be, a[(i * 7) % 1024]), QCU_ERR_Success);
	assert_int_equal(resident(be), 0);
	assert_int_equal(free_bytes(be), 64 * MIB);
}

static void the_quota_holds(void **state)
{
	struct be *be = *state;
	uint64_t a = alloc(be, 40 * MIB), b;

	assert_int_equal(free_bytes(be), 24 * MIB);
	assert_int_equal(be_soft.mem_alloc(be, 0, 24 * MIB + 1, &b), QCU_ERR_MemoryAllocation);
	b = alloc(be, 24 * MIB);
	assert_int_equal(free_bytes(be), 0);
	assert_int_equal(be_soft.mem_alloc(be, 0, 1, &b), QCU_ERR_MemoryAllocation);
	/* Another device has its own memory. */
	assert_int_equal(be_soft.mem_alloc(be, 1, 64 * MIB, &b), QCU_ERR_Success);
	assert_true(be_soft.mem_valid(be, b, 64 * MIB));
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
	assert_int_equal(free_bytes(be), 40 * MIB);
}

static void free_waits_for_work(void **state)
{
	struct be *be = *state;
	struct be_module *m = fake_module(be);
	uint64_t a = alloc(be, 64), count = 0, got = 0;
	struct be_stream *s;

	assert_int_equal(be_soft.stream_create(be, 0, 1, 0, &s), QCU_ERR_Success);
	assert_int_equal(fake_launch(be, fake_kernel(be, m, "step"), s, (uintptr_t)&count,
				     (uintptr_t)&got, 50),
			 QCU_ERR_Success);
	assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
	assert_int_equal(got, 1);
}

static void reset_takes_allocations_and_keeps_the_rest(void **state)
{
	struct be *be = *state;
	struct be_module *m = fake_module(be);
	uint64_t a = alloc(be, 4096), b, var, size;

	assert_int_equal(be_soft.mem_alloc(be, 1, 4096, &b), QCU_ERR_Success);
	assert_int_equal(be_soft.device_reset(be, 0), QCU_ERR_Success);
	assert_false(be_soft.mem_valid(be, a, 1));
	assert_true(be_soft.mem_valid(be, b, 1));
	assert_int_equal(free_bytes(be), 64 * MIB);
	assert_int_equal(be_soft.var_find(be, 0, m, "var", &var, &size), QCU_ERR_Success);
	assert_true(be_soft.mem_valid(be, var, 64));
	assert_int_equal(fake_launch(be, fake_kernel(be, m, "store"), be_soft.stream_legacy(be, 0),
				     var, 3, 0),
			 QCU_ERR_Success);
	assert_int_equal(be_soft.device_sync(be, 0), QCU_ERR_Success);
	assert_int_equal(*(uint64_t *)(uintptr_t)var, 3);
}

static void registers_host_memory(void **state)
{
	struct be *be = *state;
	char *p = mmap(NULL, 16 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t a = alloc(be, 4096);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(be_soft.host_register(be, NULL, 4096), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.host_register(be, p, 0), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.host_register(be, p, SIZE_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.host_register(be, (void *)(uintptr_t)a, 4096),
			 QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.host_unregister(be, p), QCU_ERR_HostMemoryNotRegistered);
	assert_int_equal(be_soft.host_unregister(be, NULL), QCU_ERR_InvalidValue);

	assert_int_equal(be_soft.host_register(be, p + 4096, 8192), QCU_ERR_Success);
	assert_int_equal(be_soft.host_register(be, p + 4096, 8192),
			 QCU_ERR_HostMemoryAlreadyRegistered);
	assert_int_equal(be_soft.host_register(be, p, 4097), QCU_ERR_HostMemoryAlreadyRegistered);
	assert_int_equal(be_soft.host_register(be, p + 8192, 1),
			 QCU_ERR_HostMemoryAlreadyRegistered);
	assert_int_equal(be_soft.host_register(be, p, 16 * 4096),
			 QCU_ERR_HostMemoryAlreadyRegistered);
	assert_int_equal(be_soft.host_register(be, p, 4096), QCU_ERR_Success);
	assert_int_equal(be_soft.host_register(be, p + 12288, 1), QCU_ERR_Success);
	assert_int_equal(be_soft.host_unregister(be, p + 8192), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.host_unregister(be, p + 4096), QCU_ERR_Success);
	assert_int_equal(be_soft.host_unregister(be, p + 4096), QCU_ERR_HostMemoryNotRegistered);
	assert_false(be_soft.mem_valid(be, (uintptr_t)p, 1));
	munmap(p, 16 * 4096);
}

static void kernels_reach_their_own_memory_only(void **state)
{
	struct be *be = *state;
	struct soft_device *d = &be->dev[0];
	uint64_t a = alloc(be, 1000), other;
	char *host = malloc(4096);
	struct ptx_range r;

	assert_int_equal(be_soft.mem_alloc(be, 1, 64, &other), QCU_ERR_Success);
	r = soft_env_range(d, a + 999);
	assert_int_equal(r.lo, a);
	assert_int_equal(r.hi, a + 1000);
	r = soft_env_range(d, a + 1000);
	assert_int_equal(r.lo, r.hi);
	r = soft_env_range(d, other);
	assert_int_equal(r.lo, r.hi);
	r = soft_env_range(d, 0);
	assert_int_equal(r.lo, r.hi);
	r = soft_env_range(d, (uintptr_t)host);
	assert_int_equal(r.lo, r.hi);
	assert_int_equal(be_soft.host_register(be, host, 4096), QCU_ERR_Success);
	r = soft_env_range(d, (uintptr_t)host + 5);
	assert_int_equal(r.lo, (uintptr_t)host);
	assert_int_equal(r.hi, (uintptr_t)host + 4096);
	assert_int_equal(be_soft.host_unregister(be, host), QCU_ERR_Success);
	r = soft_env_range(d, (uintptr_t)host + 5);
	assert_int_equal(r.lo, r.hi);
	free(host);
}

static void variables_are_zero_and_not_freed_by_hand(void **state)
{
	struct be *be = *state;
	uint64_t a, var, size, i;
	struct be_module *m;

	/* Leaves old content in pages that stay because another allocation shares them. */
	for (i = 0; i < 64; i++) {
		a = alloc(be, 512);
		memset((void *)(uintptr_t)a, 0xff, 512);
		if (i % 4)
			assert_int_equal(be_soft.mem_free(be, a), QCU_ERR_Success);
	}
	be->dev[0].mem.next = be->dev[0].mem.base;
	m = fake_module(be);
	assert_int_equal(be_soft.var_find(be, 0, m, "none", &var, &size), QCU_ERR_InvalidSymbol);
	assert_int_equal(be_soft.var_find(be, 0, m, "var", &var, &size), QCU_ERR_Success);
	assert_int_equal(size, 64);
	for (i = 0; i < 64; i++)
		assert_int_equal(((unsigned char *)(uintptr_t)var)[i], 0);
	assert_true(be_soft.mem_valid(be, var, 64));
	assert_int_equal(be_soft.mem_free(be, var), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.module_unload(be, m), QCU_ERR_Success);
	assert_false(be_soft.mem_valid(be, var, 1));
}

struct hammer {
	struct be *be;
	uint64_t fixed;
	_Atomic bool stop;
	_Atomic unsigned int wrong;
};

static void *look_up(void *arg)
{
	struct hammer *h = arg;

	while (!atomic_load(&h->stop)) {
		struct ptx_range r = soft_env_range(&h->be->dev[0], h->fixed + 17);

		if (r.lo != h->fixed || r.hi != h->fixed + 100)
			atomic_fetch_add(&h->wrong, 1);
		r = soft_env_range(&h->be->dev[0], h->fixed + 100);
		if (r.lo != r.hi)
			atomic_fetch_add(&h->wrong, 1);
	}
	return NULL;
}

static void lookups_hold_while_others_allocate(void **state)
{
	struct hammer h = {.be = *state};
	pthread_t t[2];
	uint64_t a[40];
	unsigned int i, round;

	for (i = 0; i < 20; i++)
		a[i] = alloc(h.be, 64);
	h.fixed = alloc(h.be, 100);
	for (i = 20; i < 40; i++)
		a[i] = alloc(h.be, 64);
	for (i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&t[i], NULL, look_up, &h), 0);
	for (round = 0; round < 200; round++) {
		for (i = 0; i < 40; i++)
			assert_int_equal(be_soft.mem_free(h.be, a[i]), QCU_ERR_Success);
		/* From the start again, so that entries move in the table. */
		if (round % 2)
			h.be->dev[0].mem.next = h.be->dev[0].mem.base;
		for (i = 0; i < 40; i++)
			a[i] = alloc(h.be, 64);
	}
	atomic_store(&h.stop, true);
	for (i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(atomic_load(&h.wrong), 0);
}

static void opens_only_what_there_can_be(void **state)
{
	struct be_options many = {.gpus = SOFT_GPUS_MAX + 1};
	struct be_options huge = {.vram = 1ull << 60};
	struct be_options small = {.vram = 4096, .gpus = SOFT_GPUS_MAX};
	struct be *be;
	uint64_t a;

	(void)state;
	assert_int_equal(be_soft.open(&be, &many), QCU_ERR_InvalidValue);
	assert_null(be);
	/* It has as much as it can have. */
	assert_int_equal(be_soft.open(&be, &huge), QCU_ERR_Success);
	assert_int_equal(be_soft.mem_alloc(be, 0, SOFT_VRAM_MAX + 1, &a), QCU_ERR_MemoryAllocation);
	be_soft.close(be);
	assert_int_equal(be_soft.open(&be, &small), QCU_ERR_Success);
	assert_int_equal(be_soft.mem_alloc(be, SOFT_GPUS_MAX - 1, 4096, &a), QCU_ERR_Success);
	be_soft.close(be);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(opens_only_what_there_can_be),
		cmocka_unit_test_setup_teardown(refuses_what_it_has_not, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses_to_free_what_is_not_allocated, setup,
						teardown),
		cmocka_unit_test_setup_teardown(nothing_is_null, setup, teardown),
		cmocka_unit_test_setup_teardown(lies_outside_of_the_window, setup, teardown),
		cmocka_unit_test_setup_teardown(holes_lie_between_allocations, setup, teardown),
		cmocka_unit_test_setup_teardown(an_address_comes_back_late, setup, teardown),
		cmocka_unit_test_setup_teardown(lasts_for_ever, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_goes_back_to_the_host, setup, teardown),
		cmocka_unit_test_setup_teardown(the_quota_holds, setup, teardown),
		cmocka_unit_test_setup_teardown(free_waits_for_work, setup, teardown),
		cmocka_unit_test_setup_teardown(reset_takes_allocations_and_keeps_the_rest, setup,
						teardown),
		cmocka_unit_test_setup_teardown(registers_host_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(kernels_reach_their_own_memory_only, setup,
						teardown),
		cmocka_unit_test_setup_teardown(variables_are_zero_and_not_freed_by_hand, setup,
						teardown),
		cmocka_unit_test_setup_teardown(lookups_hold_while_others_allocate, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
