// SPDX-License-Identifier: GPL-2.0-or-later
/* The window over a memfd that serves as guest RAM: CVM, NCVM, one process; overlaps and holes. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "qcu-device/memory/window.h"
#include "tests/unit/device/mirror/test_device_fake.h"
#include "tests/unit/device/memory/test_device_memfd.h"

#define PAGE 0x1000ull
#define RAM  (64 * PAGE)
#define BASE QCU_WINDOW_BASE
#define HIGH 0x100000000ull /* where the guest has the second half of RAM */
#define LOW  0ull

static struct guestmem mem;
static uint8_t *ram;
static struct be *be;

static int make_ram(void **state)
{
	(void)state;
	ram = memfd_ram(RAM);
	mem.count = 0;
	return !ram || guestmem_add(&mem, LOW, RAM / 2, ram) ||
	       guestmem_add(&mem, HIGH, RAM / 2, ram + RAM / 2);
}

static void start(struct window *w, const struct guestmem *m, enum mir_map map)
{
	const struct be_options options = {0};

	fake_reset();
	assert_int_equal(window_init(w, &fake_ops, m, map, 0), 0);
	assert_int_equal(fake_ops.open(&be, &options), 0);
	window_set_backend(w, be);
}

static void stop(struct window *w)
{
	window_fini(w);
	assert_int_equal(fake.registrations, 0);
	fake_ops.close(be);
}

static const struct qcu_seg four[] = {
	{LOW + 8 * PAGE, PAGE},
	{LOW + 2 * PAGE, PAGE},
	{HIGH + 3 * PAGE, 2 * PAGE},
};

/* Fills the four pages above with their number. */
static void fill(void)
{
	memset(ram + 8 * PAGE, 1, PAGE);
	memset(ram + 2 * PAGE, 2, PAGE);
	memset(ram + RAM / 2 + 3 * PAGE, 3, PAGE);
	memset(ram + RAM / 2 + 4 * PAGE, 4, PAGE);
}

static void bad_maps(void **state)
{
	static const struct {
		uint64_t va, len;
		struct qcu_seg seg;
	} bad[] = {
		{BASE, 0, {LOW, PAGE}},
		{BASE, PAGE, {LOW, 0}},
		{BASE, PAGE, {LOW, 2 * PAGE}},
		{BASE, 2 * PAGE, {LOW, PAGE}},
		{BASE + 1, PAGE, {LOW, PAGE}},
		{BASE, PAGE + 1, {LOW, PAGE + 1}},
		{BASE, PAGE, {LOW + 1, PAGE}},
		{BASE, PAGE, {RAM / 2, PAGE}},
		{BASE, 2 * PAGE, {RAM / 2 - PAGE, 2 * PAGE}},
		{BASE, PAGE, {~0ull - PAGE + 1, PAGE}},
		{BASE, ~0ull - PAGE + 1, {LOW, PAGE}},
	};
	enum mir_map map;
	struct window w;
	size_t i;

	(void)state;
	for (map = MIR_MAP_CVM; map <= MIR_MAP_NCVM; map++) {
		start(&w, &mem, map);
		for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
			if (window_map(&w, bad[i].va, bad[i].len, &bad[i].seg, 1) !=
			    MIR_RULE_BROKEN)
				fail_msg("bad map %zu was taken", i);
		}
		assert_int_equal(window_map(&w, BASE, PAGE, NULL, 0), MIR_RULE_BROKEN);
		assert_int_equal(fake.registrations, 0);
		assert_int_equal(w.mapped_bytes, 0);
		stop(&w);
	}
}

/* Returns how many of these pages are in this process's page tables. */
static size_t present(uint64_t va, size_t pages)
{
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry;
	size_t i, n = 0;

	assert_true(fd >= 0);
	for (i = 0; i < pages; i++) {
		assert_int_equal(pread(fd, &entry, 8, (off_t)((va / PAGE + i) * 8)), 8);
		n += entry >> 63;
	}
	close(fd);
	return n;
}

/*
 * Registered memory has its page tables filled beforehand. Several threads do this if there is much
 * memory.
 */
static void populated(void **state)
{
	const size_t many = 16u << 20;
	const struct qcu_seg whole = {0, many};
	struct guestmem big = {.count = 0};
	struct carriers carriers;
	enum mir_map map;
	struct window w;
	uint8_t *p;

	(void)state;
	carriers_init(&carriers, 3);
	for (map = MIR_MAP_CVM; map <= MIR_MAP_NCVM; map++) {
		p = memfd_ram(many);
		assert_non_null(p);
		big.count = 0;
		assert_int_equal(guestmem_add(&big, 0, many, p), 0);
		start(&w, &big, map);
		w.carriers = &carriers;
		w.late_bytes = many + 1;
		assert_int_equal(window_map(&w, BASE, many, &whole, 1), 0);
		assert_int_equal(present(map == MIR_MAP_CVM ? BASE : (uintptr_t)p, many / PAGE),
				 many / PAGE);
		assert_int_equal(window_pin(&w, BASE, many), 0);
		assert_int_equal(present(BASE, many / PAGE), many / PAGE);
		stop(&w);
		munmap(p, many);
	}
	carriers_fini(&carriers);

	/* Without other threads. */
	start(&w, &mem, MIR_MAP_CVM);
	assert_int_equal(window_map(&w, BASE, 4 * PAGE, four, 3), 0);
	assert_int_equal(present(BASE, 4), 4);
	stop(&w);
}

static void overlaps(void **state)
{
	const struct qcu_seg two = {LOW, 2 * PAGE}, one = {LOW + 4 * PAGE, PAGE};
	struct window w;

	(void)state;
	start(&w, &mem, MIR_MAP_CVM);
	assert_int_equal(window_map(&w, BASE + 4 * PAGE, 2 * PAGE, &two, 1), 0);
	assert_int_equal(window_map(&w, BASE + 4 * PAGE, 2 * PAGE, &two, 1), MIR_RULE_BROKEN);
	assert_int_equal(window_map(&w, BASE + 3 * PAGE, 2 * PAGE, &two, 1), MIR_RULE_BROKEN);
	assert_int_equal(window_map(&w, BASE + 5 * PAGE, 2 * PAGE, &two, 1), MIR_RULE_BROKEN);
	assert_int_equal(window_map(&w, BASE + 5 * PAGE, PAGE, &one, 1), MIR_RULE_BROKEN);
	assert_int_equal(window_map(&w, BASE + 6 * PAGE, PAGE, &one, 1), 0);
	assert_int_equal(window_map(&w, BASE + 3 * PAGE, PAGE, &one, 1), 0);
	assert_int_equal(w.mapped_bytes, 4 * PAGE);
	/* Half of a map cannot be unmapped. */
	assert_int_equal(window_unmap(&w, BASE + 4 * PAGE, PAGE), MIR_RULE_BROKEN);
	assert_int_equal(window_unmap(&w, BASE + 5 * PAGE, PAGE), MIR_RULE_BROKEN);
	assert_int_equal(window_unmap(&w, BASE, ~0ull), MIR_RULE_BROKEN);
	assert_int_equal(window_unmap(&w, BASE, 0), MIR_RULE_BROKEN);
	assert_int_equal(window_unmap(&w, BASE + 4 * PAGE, 2 * PAGE), 0);
	assert_int_equal(window_map(&w, BASE + 4 * PAGE, 2 * PAGE, &two, 1), 0);
	/* Several maps at once, with holes around them. */
	assert_int_equal(window_unmap(&w, BASE, 16 * PAGE), 0);
	assert_int_equal(w.mapped_bytes, 0);
	assert_int_equal(w.registered_bytes, 0);
	assert_int_equal(fake.registrations, 0);
	assert_int_equal(window_unmap(&w, BASE, 16 * PAGE), 0);
	stop(&w);
}

static void resolve_bad(struct window *w)
{
	struct pieces ps = {0};

	assert_int_equal(window_resolve(w, BASE + 3 * PAGE, PAGE, &ps, NULL), QCU_ERR_InvalidValue);
	assert_int_equal(window_resolve(w, BASE + 4 * PAGE - 1, 2, &ps, NULL),
			 QCU_ERR_InvalidValue);
	assert_int_equal(window_resolve(w, BASE + 4 * PAGE, 4 * PAGE + 1, &ps, NULL),
			 QCU_ERR_InvalidValue);
	assert_int_equal(window_resolve(w, BASE + 4 * PAGE, ~0ull, &ps, NULL),
			 QCU_ERR_InvalidValue);
	assert_int_equal(window_resolve(w, ~0ull, 2, &ps, NULL), QCU_ERR_InvalidValue);
	assert_int_equal(window_resolve(w, 0, 1, &ps, NULL), QCU_ERR_InvalidValue);
	pieces_free(&ps);
}

/* Checks the bytes of [BASE + 4 pages, + 4 pages) through the pieces, from an offset on. */
static void check_bytes(struct window *w, uint64_t off, uint64_t len)
{
	struct pieces ps = {0};
	uint64_t at = off;
	size_t i, j;

	assert_int_equal(window_resolve(w, BASE + 4 * PAGE + off, len, &ps, NULL), 0);
	for (i = 0; i < ps.count; i++) {
		assert_true(ps.p[i].registered);
		for (j = 0; j < ps.p[i].len; j++, at++)
			assert_int_equal(ps.p[i].host[j], 1 + at / PAGE);
	}
	assert_int_equal(at - off, len);
	pieces_free(&ps);
}

static void cvm(void **state)
{
	struct pieces ps = {0};
	struct window w;

	(void)state;
	fill();
	start(&w, &mem, MIR_MAP_CVM);
	assert_int_equal(window_map(&w, BASE + 4 * PAGE, 4 * PAGE, four, 3), 0);
	resolve_bad(&w);
	check_bytes(&w, 0, 4 * PAGE);
	check_bytes(&w, PAGE - 1, 2);
	/* One piece, at exactly this address. */
	assert_int_equal(window_resolve(&w, BASE + 4 * PAGE + 5, 3 * PAGE, &ps, NULL), 0);
	assert_int_equal(ps.count, 1);
	assert_ptr_equal(ps.p[0].host, BASE + 4 * PAGE + 5);
	pieces_free(&ps);
	assert_int_equal(fake.registrations, 1);
	/* The memory is registered for copies, but not for kernels. */
	assert_false(window_pinned(&w, BASE + 4 * PAGE, 4 * PAGE, NULL));
	assert_int_equal(window_pin(&w, BASE + 4 * PAGE, 4 * PAGE), 0);
	assert_true(window_pinned(&w, BASE + 4 * PAGE, 4 * PAGE, NULL));
	assert_false(window_pinned(&w, BASE + 4 * PAGE, 4 * PAGE + 1, NULL));
	assert_int_equal(fake.registrations, 1);
	assert_int_equal(window_pin(&w, BASE + 4 * PAGE, 4 * PAGE + 1), QCU_ERR_InvalidValue);
	/* The same pages, not copies of them. */
	*(uint8_t *)(BASE + 4 * PAGE) = 77;
	assert_int_equal(ram[8 * PAGE], 77);
	/* A map beside it: two registrations, two pieces. */
	assert_int_equal(window_map(&w, BASE + 8 * PAGE, PAGE, &(struct qcu_seg){LOW, PAGE}, 1), 0);
	assert_int_equal(window_resolve(&w, BASE + 7 * PAGE, 2 * PAGE, &ps, NULL), 0);
	assert_int_equal(ps.count, 2);
	pieces_free(&ps);
	/*
	 * After UNMAP, the address holds nothing. It can be mapped again, and RAM has not changed.
	 */
	assert_int_equal(window_unmap(&w, BASE + 4 * PAGE, 4 * PAGE), 0);
	assert_int_equal(ram[8 * PAGE], 77);
	resolve_bad(&w);
	stop(&w);
}

static void ncvm(void **state)
{
	const struct qcu_seg adjacent[] = {{LOW + 10 * PAGE, PAGE}, {LOW + 11 * PAGE, PAGE}};
	struct pieces ps = {0};
	struct window w;

	(void)state;
	fill();
	start(&w, &mem, MIR_MAP_NCVM);
	assert_int_equal(window_map(&w, BASE + 4 * PAGE, 4 * PAGE, four, 3), 0);
	assert_int_equal(fake.registrations, 3);
	resolve_bad(&w);
	check_bytes(&w, 0, 4 * PAGE);
	check_bytes(&w, 2 * PAGE - 3, PAGE + 6);
	assert_int_equal(window_resolve(&w, BASE + 5 * PAGE + 1, PAGE, &ps, NULL), 0);
	assert_int_equal(ps.count, 2);
	assert_ptr_equal(ps.p[0].host, ram + 2 * PAGE + 1);
	assert_int_equal(ps.p[0].len, PAGE - 1);
	pieces_free(&ps);
	/* Pages that are side by side in RAM are one run. */
	assert_int_equal(window_map(&w, BASE, 2 * PAGE, adjacent, 2), 0);
	assert_int_equal(fake.registrations, 4);
	/* Kernels can use the addresses themselves after HOST_REGISTER. */
	assert_false(window_pinned(&w, BASE + 4 * PAGE, 1, NULL));
	assert_int_equal(window_pin(&w, BASE + 4 * PAGE + 1, PAGE), 0);
	assert_int_equal(fake.registrations, 5);
	assert_true(window_pinned(&w, BASE + 4 * PAGE, 4 * PAGE, NULL));
	assert_int_equal(*(uint8_t *)(BASE + 7 * PAGE + 9), 4);
	assert_int_equal(window_pin(&w, BASE + 4 * PAGE, 4 * PAGE), 0);
	assert_int_equal(fake.registrations, 5);
	assert_int_equal(window_unmap(&w, BASE + 4 * PAGE, 4 * PAGE), 0);
	assert_int_equal(fake.registrations, 1);
	assert_int_equal(w.registered_bytes, 2 * PAGE);
	stop(&w);
}

/*
 * Registered memory that is not in chunks. It is at the guest's own address if maps may be there,
 * otherwise in the annex. Two of these maps may have a page in common. Where no address space has
 * been set aside, the answer is the same whether or not the mirror uses the address.
 */
static void outside(void **state)
{
	const uint64_t annex = QCU_WINDOW_BASE + QCU_WINDOW_SIZE, va = 0x10000000;
	const struct qcu_seg two[] = {{LOW + 3 * PAGE, PAGE}, {LOW + 9 * PAGE, PAGE}};
	void *p = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const uint64_t not_ours[] = {
		(uintptr_t)p,
		(uintptr_t)p - PAGE,
		(uintptr_t)none,
		0,
		0x80000000,
		1ull << 63,
		QCU_WINDOW_BASE - 2 * PAGE,
		annex + QCU_ANNEX_SIZE,
		0xff000,
		0x7ffff000,
		QCU_WINDOW_BASE - PAGE,
	};
	enum mir_map map;
	struct window w;
	size_t i;

	(void)state;
	munmap(none, PAGE); /* very probably stays free */
	for (map = MIR_MAP_CVM; map <= MIR_MAP_NCVM; map++) {
		fill();
		start(&w, &mem, map);
		for (i = 0; i < sizeof(not_ours) / sizeof(not_ours[0]); i++)
			assert_int_equal(window_map(&w, not_ours[i], 2 * PAGE, two, 2),
					 QCU_MAP_TAKEN);
		assert_int_equal(window_map(&w, ~0ull << 12, PAGE, two, 1), QCU_MAP_TAKEN);
		assert_int_equal(window_map(&w, ~0ull << 12, 2 * PAGE, two, 2), MIR_RULE_BROKEN);
		assert_int_equal(window_unmap(&w, (uintptr_t)p, 4 * PAGE), 0);
		assert_int_equal(mprotect(p, PAGE, PROT_NONE), 0);
		assert_int_equal(fake.registrations, 0);
		assert_int_equal(window_map(&w, annex, 2 * PAGE, two, 2), 0);
		assert_int_equal(window_pin(&w, annex, 2 * PAGE), 0);
		assert_true(window_pinned(&w, annex, 2 * PAGE, NULL));
		assert_int_equal(*(uint8_t *)(annex + PAGE), ram[9 * PAGE]);
		/* The same page a second time. */
		assert_int_equal(window_map(&w, va, 2 * PAGE, two, 2), 0);
		assert_int_equal(window_map(&w, va + PAGE, PAGE, two, 1), MIR_RULE_BROKEN);
		*(uint8_t *)(va + PAGE + 1) = 99;
		assert_int_equal(*(uint8_t *)(annex + PAGE + 1), 99);
		assert_int_equal(fake.registrations, 2);
		assert_int_equal(window_span(&w, annex + 5, 9 * PAGE), 2 * PAGE - 5);
		assert_int_equal(window_span(&w, annex + 5, 9), 9);
		assert_int_equal(window_span(&w, annex + 2 * PAGE, 9 * PAGE), 9 * PAGE);
		stop(&w);
	}
	munmap(p, 4 * PAGE);
}

/*
 * Tries to unmap everything at once, with a length that wraps or ends at the end of the address
 * space.
 */
static void unmap_all_addresses(void **state)
{
	const struct qcu_seg one = {LOW, PAGE};
	struct window w;

	(void)state;
	start(&w, &mem, MIR_MAP_CVM);
	assert_int_equal(window_map(&w, BASE, PAGE, &one, 1), 0);
	assert_int_equal(window_unmap(&w, 0x1000, ~0ull - 0xfff), MIR_RULE_BROKEN);
	assert_int_equal(window_unmap(&w, 0x1000, ~0ull - 0x1fff), MIR_RULE_BROKEN);
	assert_int_equal(window_unmap(&w, BASE, ~0ull), MIR_RULE_BROKEN);
	assert_int_equal(window_unmap(&w, BASE, 3 * QCU_WINDOW_SIZE), MIR_RULE_BROKEN);
	assert_int_equal(w.mapped_bytes, PAGE);
	*(volatile uint8_t *)BASE = 1;
	stop(&w);
}

/*
 * No one can use unmapped addresses: an access fails, and the kernel gives them to no allocation,
 * whatever address the allocation asks for.
 */
static void unmapped_stays_set_aside(void **state)
{
	static const uint64_t places[] = {BASE + 16 * PAGE, BASE + QCU_WINDOW_SIZE + PAGE,
					  0x10000000};
	const struct qcu_seg one = {LOW, PAGE};
	struct window w;
	unsigned char in;
	size_t i;
	void *p;

	(void)state;
	start(&w, &mem, MIR_MAP_CVM);
	for (i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		void *at = (void *)places[i];

		assert_int_equal(window_map(&w, places[i], PAGE, &one, 1), 0);
		assert_int_equal(window_unmap(&w, places[i], PAGE), 0);
		assert_int_equal(mincore(at, PAGE, &in), 0); /* the place is not empty, */
		assert_int_equal(madvise(at, PAGE, MADV_POPULATE_READ), -1);
		p = mmap(at, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		assert_ptr_not_equal(p, at); /* so the kernel takes another place */
		munmap(p, PAGE);
		assert_int_equal(window_map(&w, places[i], PAGE, &one, 1), 0);
	}
	stop(&w);
}

struct unmapper {
	struct window *w;
	uint64_t va, len;
	_Atomic bool done;
	int rc;
};

static void *unmap_main(void *arg)
{
	struct unmapper *u = arg;

	u->rc = window_unmap(u->w, u->va, u->len);
	u->done = true;
	return NULL;
}

/*
 * Memory that a command uses is not unmapped, however the command found it. Memory that no command
 * uses is unmapped.
 */
static void held(void **state)
{
	struct unmapper u = {.va = BASE, .len = 8 * PAGE};
	struct window_holds holds;
	struct pieces ps = {0};
	struct qcu_seg seg = {LOW, PAGE};
	struct window w;
	unsigned int how, i;
	pthread_t thread;
	enum mir_map map;

	(void)state;
	window_holds_init(&holds);
	for (map = MIR_MAP_CVM; map <= MIR_MAP_NCVM; map++) {
		for (how = 0; how < 2; how++) {
			start(&w, &mem, map);
			u.w = &w;
			u.done = false;
			/* More maps than the table has room for at first. */
			for (i = 0; i < 8; i++) {
				seg.gpa = LOW + 2 * i * PAGE;
				assert_int_equal(window_map(&w, BASE + i * PAGE, PAGE, &seg, 1), 0);
			}
			if (how) {
				assert_int_equal(window_pin(&w, BASE, 8 * PAGE), 0);
				assert_true(window_pinned(&w, BASE, 8 * PAGE, &holds));
			} else {
				assert_int_equal(window_resolve(&w, BASE, 8 * PAGE, &ps, &holds),
						 0);
			}
			assert_int_equal(holds.count, 8);
			assert_int_equal(pthread_create(&thread, NULL, unmap_main, &u), 0);
			/*
			 * The UNMAP has reached one of the maps. From then on, this map is not
			 * found any more.
			 */
			while (!window_resolve(&w, BASE, 8 * PAGE, &ps, NULL))
				pieces_free(&ps);
			assert_false(u.done);
			assert_true(fake.registrations >= 8);
			for (i = 0; i < 8 && map == MIR_MAP_CVM; i++)
				*(volatile uint8_t *)(BASE + i * PAGE) = 1;
			window_release(&w, &holds);
			pthread_join(thread, NULL);
			assert_int_equal(u.rc, 0);
			assert_int_equal(fake.registrations, 0);
			pieces_free(&ps);
			stop(&w);
		}
	}
}

static bool registered_at(struct window *w, uint64_t va)
{
	struct pieces ps = {0};
	bool yes;

	assert_int_equal(window_resolve(w, va, 1, &ps, NULL), 0);
	yes = ps.p[0].registered;
	pieces_free(&ps);
	return yes;
}

/*
 * Room for three pages: the map that has been unused for the longest time loses its registration,
 * and no other map does.
 */
static void limited(void **state)
{
	const struct be_options options = {0};
	enum mir_map map;
	struct pieces ps = {0};
	struct window w;
	uint64_t i;

	(void)state;
	for (map = MIR_MAP_CVM; map <= MIR_MAP_NCVM; map++) {
		fake_reset();
		assert_int_equal(window_init(&w, &fake_ops, &mem, map, 3 * PAGE), 0);
		assert_int_equal(fake_ops.open(&be, &options), 0);
		window_set_backend(&w, be);
		for (i = 0; i < 5; i++) {
			struct qcu_seg seg = {LOW + 2 * i * PAGE, PAGE};

			memset(ram + 2 * i * PAGE, 10 + (int)i, PAGE);
			assert_int_equal(window_map(&w, BASE + i * PAGE, PAGE, &seg, 1), 0);
		}
		assert_int_equal(fake.registrations, 3);
		assert_int_equal(w.registered_bytes, 3 * PAGE);
		/*
		 * Map 0 is registered again, and map 2 loses its registration. 3 and 4 keep theirs.
		 */
		assert_true(registered_at(&w, BASE));
		assert_int_equal(fake.registrations, 3);
		assert_true(registered_at(&w, BASE + 3 * PAGE));
		assert_true(registered_at(&w, BASE + 4 * PAGE));
		assert_int_equal(fake.registered_ever, 6);
		assert_true(registered_at(&w, BASE + 2 * PAGE));
		assert_int_equal(fake.registered_ever, 7);
		/*
		 * When all five are used at once, some have no registration. All bytes are there.
		 */
		assert_int_equal(window_resolve(&w, BASE, 5 * PAGE, &ps, NULL), 0);
		assert_int_equal(*ps.p[0].host, 10);
		assert_int_equal(ps.p[ps.count - 1].host[ps.p[ps.count - 1].len - 1], 14);
		pieces_free(&ps);
		assert_true(w.registered_bytes <= 3 * PAGE);
		/* Memory that kernels may use stays registered, also beyond the limit. */
		for (i = 0; i < 4; i++)
			assert_int_equal(window_pin(&w, BASE + i * PAGE, PAGE), 0);
		assert_true(w.registered_bytes >= 4 * PAGE);
		assert_false(registered_at(&w, BASE + 4 * PAGE));
		for (i = 0; i < 4; i++) {
			assert_true(window_pinned(&w, BASE + i * PAGE, PAGE, NULL));
			/*
			 * Otherwise a queued copy would read it before the kernel that writes it.
			 */
			assert_true(registered_at(&w, BASE + i * PAGE));
		}
		assert_int_equal(window_unmap(&w, BASE, 4 * PAGE), 0);
		assert_int_equal(w.registered_bytes, 0);
		assert_true(registered_at(&w, BASE + 4 * PAGE));
		stop(&w);
	}
}

static bool carried_at(struct window *w, uint64_t va)
{
	struct pieces ps = {0};
	bool yes;

	assert_int_equal(window_resolve_to_carry(w, va, PAGE, &ps, NULL), 0);
	yes = !ps.p[0].registered;
	pieces_free(&ps);
	return yes;
}

/* A large map is registered when it is used again, or when its first user cannot carry it. */
static void late(void **state)
{
	const struct qcu_seg few = {LOW, PAGE}, many = {LOW + 2 * PAGE, 2 * PAGE};
	struct carriers cs;
	enum mir_map map;
	struct window w;

	(void)state;
	carriers_init(&cs, 2);
	for (map = MIR_MAP_CVM; map <= MIR_MAP_NCVM; map++) {
		start(&w, &mem, map);
		w.late_bytes = 2 * PAGE;
		/* With one thread, carrying is no faster. */
		assert_int_equal(window_map(&w, BASE, 2 * PAGE, &many, 1), 0);
		assert_int_equal(fake.registrations, 1);
		assert_int_equal(window_unmap(&w, BASE, 2 * PAGE), 0);

		w.carriers = &cs;
		assert_int_equal(window_map(&w, BASE, PAGE, &few, 1), 0);
		assert_int_equal(fake.registrations, 1);
		assert_int_equal(window_map(&w, BASE + 2 * PAGE, 2 * PAGE, &many, 1), 0);
		assert_int_equal(fake.registrations, 1);
		assert_true(carried_at(&w, BASE + 2 * PAGE));
		assert_int_equal(fake.registrations, 1);
		assert_false(carried_at(&w, BASE + 2 * PAGE));
		assert_int_equal(fake.registrations, 2);
		assert_false(carried_at(&w, BASE));
		assert_int_equal(w.late, 0);
		assert_int_equal(window_unmap(&w, BASE + 2 * PAGE, 2 * PAGE), 0);
		assert_int_equal(fake.registrations, 1);

		assert_int_equal(window_map(&w, BASE + 2 * PAGE, 2 * PAGE, &many, 1), 0);
		assert_true(registered_at(&w, BASE + 2 * PAGE));
		assert_int_equal(window_unmap(&w, BASE + 2 * PAGE, 2 * PAGE), 0);

		/* Kernels need it registered, too. */
		assert_int_equal(window_map(&w, BASE + 2 * PAGE, 2 * PAGE, &many, 1), 0);
		assert_int_equal(window_pin(&w, BASE + 2 * PAGE, 2 * PAGE), 0);
		assert_true(fake.registrations > 1);
		assert_int_equal(w.late, 0);
		assert_int_equal(window_unmap(&w, BASE + 2 * PAGE, 2 * PAGE), 0);

		/* One that goes before it is used. */
		assert_int_equal(window_map(&w, BASE + 2 * PAGE, 2 * PAGE, &many, 1), 0);
		assert_int_equal(w.late, 1);
		assert_int_equal(window_unmap(&w, BASE + 2 * PAGE, 2 * PAGE), 0);
		assert_int_equal(w.late, 0);
		assert_int_equal(fake.registrations, 1);
		stop(&w);
	}
	carriers_fini(&cs);
}

static void one_process(void **state)
{
	struct qcu_seg seg = {BASE + PAGE, 4 * PAGE};
	struct pieces ps = {0};
	struct window w;
	void *p;

	(void)state;
	start(&w, NULL, MIR_MAP_CVM);
	p = mmap((void *)(BASE + PAGE), 4 * PAGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_ptr_equal(p, BASE + PAGE);
	memset(p, 5, 4 * PAGE);
	assert_int_equal(window_map(&w, BASE + PAGE, 4 * PAGE, &seg, 1), 0);
	assert_int_equal(fake.registrations, 1);
	assert_int_equal(window_pin(&w, BASE + PAGE, 4 * PAGE), 0);
	assert_int_equal(fake.registrations, 1);
	assert_true(window_pinned(&w, BASE + PAGE, 4 * PAGE, NULL));
	assert_int_equal(window_resolve(&w, BASE + PAGE + 3, 7, &ps, NULL), 0);
	assert_int_equal(ps.count, 1);
	assert_ptr_equal(ps.p[0].host, BASE + PAGE + 3);
	pieces_free(&ps);
	assert_int_equal(window_unmap(&w, BASE + PAGE, 4 * PAGE), 0);
	/* The program's own mapping stays. */
	assert_int_equal(*(uint8_t *)p, 5);
	munmap(p, 4 * PAGE);
	stop(&w);
}

static void taken(void **state)
{
	struct window w;
	void *p = mmap((void *)(BASE + 99 * PAGE), PAGE, PROT_NONE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	(void)state;
	assert_ptr_equal(p, BASE + 99 * PAGE);
	assert_true(window_init(&w, &fake_ops, &mem, MIR_MAP_CVM, 0) < 0);
	munmap(p, PAGE);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_maps),
		cmocka_unit_test(overlaps),
		cmocka_unit_test(cvm),
		cmocka_unit_test(ncvm),
		cmocka_unit_test(one_process),
		cmocka_unit_test(taken),
		cmocka_unit_test(outside),
		cmocka_unit_test(limited),
		cmocka_unit_test(late),
		cmocka_unit_test(populated),
		cmocka_unit_test(unmap_all_addresses),
		cmocka_unit_test(held),
		cmocka_unit_test(unmapped_stays_set_aside),
	};

	return cmocka_run_group_tests(tests, make_ram, NULL);
}
