// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Virtual memory in a mirror on the software GPU. Bad ones first: sizes that are no multiples or
 * that wrap, addresses and numbers that the guest did not get, mappings that overlap or leave their
 * reservation, parts of mappings, reservations that are in use, limits. Then the same memory at two
 * addresses, ranges of several mappings, unmapping below running work, and other processes.
 */
#include "qcu-device/base/limits.h"
#include "qcu-device/memory/shares.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

struct fake fake; /* for test_device_mirror.h; this test uses the software GPU */

#define MIB   (1ull << 20)
#define GIB   (1ull << 30)
#define PIECE (2 * MIB)

static struct limits limits;
static struct shares *vm;
static struct mirror *other;

static int start(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 1};

	(void)state;
	memset(&limits, 0, sizeof(limits));
	limits.session[LIMIT_ALLOCATIONS] = 12;
	limits.session[LIMIT_RESERVED] = 600 * GIB;
	limits_default(&limits);
	vm = shares_new(-1);
	cfg.options.vram = 64 * MIB;
	cfg.options.gpus = 2;
	cfg.limits = &limits;
	cfg.shares = vm;
	if (!vm || mir_create(&mirror, &cfg))
		return -1;
	cfg.session = 2;
	return mir_create(&other, &cfg);
}

static int stop(void **state)
{
	mir_destroy(other);
	mirror_stop(state);
	shares_free(vm);
	return 0;
}

static int reserve(uint64_t size, uint64_t *addr)
{
	struct qCUcmd c = CMD(VA_RESERVE, va_reserve, .size = size);
	int rc = ask_with(&c, NULL, NULL, 0);

	*addr = c.va_reserve.addr;
	return rc;
}

static int unreserve(uint64_t addr, uint64_t size)
{
	return ask(CMD(VA_FREE, va_free, .addr = addr, .size = size));
}

static int create(uint32_t mem, uint64_t size)
{
	return ask(CMD(PHYS_CREATE, phys_create, .size = size, .mem = mem,
		       .flags = QCU_PHYS_SHAREABLE));
}

static int release(uint32_t mem)
{
	return ask(CMD(PHYS_RELEASE, phys_release, .mem = mem));
}

static int map_at(uint32_t mem, uint64_t addr, uint64_t size, uint64_t offset)
{
	return ask(
		CMD(PHYS_MAP, phys_map, .addr = addr, .size = size, .offset = offset, .mem = mem));
}

static int unmap(uint64_t addr, uint64_t size)
{
	return ask(CMD(PHYS_UNMAP, phys_unmap, .addr = addr, .size = size));
}

static int allow(uint64_t addr, uint64_t size, uint32_t peer, uint32_t flags)
{
	return ask(CMD(PHYS_ACCESS_SET, phys_access_set, .addr = addr, .size = size, .peer = peer,
		       .flags = flags));
}

static int allowed(uint64_t addr, uint32_t peer, uint32_t *flags)
{
	struct qCUcmd c = CMD(PHYS_ACCESS_GET, phys_access_get, .addr = addr, .peer = peer);
	int rc = ask_with(&c, NULL, NULL, 0);

	*flags = c.phys_access_get.flags;
	return rc;
}

static int fill(uint64_t addr, uint64_t len, uint32_t value)
{
	return ask(CMD(MEMSET, memset, .dst = addr, .width = len, .height = 1, .value = value,
		       .elem = 4));
}

static uint32_t word(uint64_t addr)
{
	uint32_t v = 0;
	const struct qcu_seg to = {(uintptr_t)&v, sizeof(v)};
	struct qCUcmd c = CMD(COPY_D2H, copy_d2h, .buf = {1, sizeof(v)}, .src = addr);

	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &to, 1), 0);
	return v;
}

static void bad_sizes(void **state)
{
	static const uint64_t sizes[] = {0, 1, 4096, PIECE - 1, PIECE + 4096, UINT64_MAX};
	struct qCUcmd c;
	uint64_t addr;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(reserve(sizes[i], &addr), QCU_ERR_InvalidValue);
		assert_int_equal(create(2, sizes[i]), QCU_ERR_InvalidValue);
	}
	c = CMD(VA_RESERVE, va_reserve, .size = PIECE, .align = 3);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	c = CMD(VA_RESERVE, va_reserve, .size = PIECE, .align = 1ull << 63);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_MemoryAllocation);
	c = CMD(VA_RESERVE, va_reserve, .size = PIECE, .align = GIB);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.va_reserve.addr % GIB, 0);
	c = CMD(PHYS_CREATE, phys_create, .size = PIECE, .mem = 2, .flags = QCU_PHYS_FLAGS + 1);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	/* A wish, which the software GPU does not grant. */
	c = CMD(PHYS_CREATE, phys_create, .size = PIECE, .mem = 2, .flags = QCU_PHYS_COMPRESSIBLE);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.phys_create.compressible, 0);
	assert_int_equal(ask(CMD(PHYS_RELEASE, phys_release, .mem = 2)), 0);
	c = CMD(PHYS_GRAIN, phys_grain, .recommended = 2);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	c = CMD(PHYS_GRAIN, phys_grain, .recommended = 1);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	assert_int_equal(c.phys_grain.bytes, PIECE);
}

static void bad_numbers(void **state)
{
	uint64_t addr;

	(void)state;
	assert_int_equal(reserve(PIECE, &addr), 0);
	assert_int_equal(release(2), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(map_at(2, addr, PIECE, 0), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(1, PIECE), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(1u << 16, PIECE), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(create(2, PIECE), 0);
	assert_int_equal(create(2, PIECE), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(release(2), 0);
	assert_int_equal(release(2), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(map_at(2, addr, PIECE, 0), QCU_ERR_InvalidResourceHandle);
}

static void bad_mappings(void **state)
{
	uint64_t addr, next;

	(void)state;
	assert_int_equal(reserve(4 * PIECE, &addr), 0);
	assert_int_equal(reserve(PIECE, &next), 0);
	assert_int_equal(create(2, 2 * PIECE), 0);
	assert_int_equal(map_at(2, addr + 4096, PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr, PIECE, 4096), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr, 0, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr, 3 * PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr, PIECE, 2 * PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr, PIECE, 0 - PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr, 0 - PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, 0 - PIECE, PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr - PIECE, PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr - PIECE, 2 * PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, QCU_WINDOW_BASE, PIECE, 0), QCU_ERR_InvalidValue);
	/* Two reservations side by side are still two. */
	if (next == addr + 4 * PIECE)
		assert_int_equal(map_at(2, addr + 3 * PIECE, 2 * PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr + PIECE, 2 * PIECE, 0), 0);
	assert_int_equal(map_at(2, addr, 2 * PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr + PIECE, PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr + 2 * PIECE, 2 * PIECE, 0), QCU_ERR_InvalidValue);
	/* Only whole mappings, and only what is mapped. */
	/* Reserved, and nothing is there. */
	assert_int_equal(unmap(addr, PIECE), 0);
	assert_int_equal(unmap(addr + PIECE, PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(unmap(addr + 2 * PIECE, PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(unmap(addr, 4 * PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(unmap(addr + PIECE, 0), QCU_ERR_InvalidValue);
	assert_int_equal(unmap(addr + PIECE, UINT64_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(allow(addr + PIECE, PIECE, 0, 3), QCU_ERR_InvalidValue);
	assert_int_equal(allow(addr, PIECE, 0, 3), QCU_ERR_InvalidValue);
	assert_int_equal(allow(addr + PIECE, UINT64_MAX, 0, 3), QCU_ERR_InvalidValue);
	assert_int_equal(allow(addr + PIECE, 2 * PIECE, 0, 2), QCU_ERR_InvalidValue);
	assert_int_equal(allow(addr + PIECE, 2 * PIECE, 2, 3), QCU_ERR_InvalidDevice);
	/* A reservation is freed whole, and when it is empty. */
	assert_int_equal(unreserve(addr, 4 * PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(unmap(addr + PIECE, 2 * PIECE), 0);
	assert_int_equal(unmap(addr + PIECE, 2 * PIECE), 0);
	assert_int_equal(unreserve(addr, PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(unreserve(addr + PIECE, 3 * PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(unreserve(addr, UINT64_MAX), QCU_ERR_InvalidValue);
	assert_int_equal(unreserve(0, 0), QCU_ERR_InvalidValue);
	assert_int_equal(unreserve(addr, 4 * PIECE), 0);
	assert_int_equal(unreserve(addr, 4 * PIECE), QCU_ERR_InvalidValue);
	assert_int_equal(map_at(2, addr, PIECE, 0), QCU_ERR_InvalidValue);
}

static void not_reachable(void **state)
{
	struct qCUcmd c;
	uint64_t addr;
	uint32_t flags;

	(void)state;
	assert_int_equal(reserve(2 * PIECE, &addr), 0);
	assert_int_equal(fill(addr, 4, 1), QCU_ERR_InvalidValue);
	assert_int_equal(create(2, PIECE), 0);
	assert_int_equal(map_at(2, addr, PIECE, 0), 0);
	assert_int_equal(fill(addr, 4, 1), QCU_ERR_InvalidValue); /* no access yet */
	assert_int_equal(allowed(addr, 0, &flags), 0);
	assert_int_equal(flags, 0);
	assert_int_equal(allow(addr, PIECE, 0, 3), 0);
	assert_int_equal(allowed(addr + PIECE - 1, 0, &flags), 0);
	assert_int_equal(flags, 3);
	assert_int_equal(allowed(addr, 1, &flags), 0);
	assert_int_equal(flags, 0);
	assert_int_equal(allowed(addr + PIECE, 0, &flags), QCU_ERR_InvalidValue);
	assert_int_equal(allowed(addr, 2, &flags), QCU_ERR_InvalidDevice);
	assert_int_equal(fill(addr, PIECE, 1), 0);
	assert_int_equal(fill(addr + 4, PIECE, 1), QCU_ERR_InvalidValue);
	/* What is mapped is no allocation, and no memory to register. */
	c = CMD(FREE, free, .ptr = addr);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	c = CMD(IPC_MEM_EXPORT, ipc_mem_export, .ptr = addr);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue);
	assert_int_equal(allow(addr, PIECE, 0, 0), 0);
	assert_int_equal(fill(addr, 4, 1), QCU_ERR_InvalidValue);
	assert_int_equal(allow(addr, PIECE, 1, 1), 0);
	assert_int_equal(unmap(addr, PIECE), 0);
	assert_int_equal(fill(addr, 4, 1), QCU_ERR_InvalidValue);
}

static void limits_count(void **state)
{
	uint64_t addr[12], more;
	unsigned int i;

	(void)state;
	assert_int_equal(reserve(512 * GIB, &addr[0]), 0);
	assert_int_equal(reserve(100 * GIB, &more), QCU_ERR_MemoryAllocation);
	assert_int_equal(unreserve(addr[0], 512 * GIB), 0);
	for (i = 0; i < 12; i++)
		assert_int_equal(reserve(PIECE, &addr[i]), 0);
	assert_int_equal(reserve(PIECE, &more), QCU_ERR_MemoryAllocation);
	assert_int_equal(create(2, PIECE), QCU_ERR_MemoryAllocation);
	assert_int_equal(unreserve(addr[11], PIECE), 0);
	assert_int_equal(create(2, PIECE), 0);
	assert_int_equal(map_at(2, addr[0], PIECE, 0), QCU_ERR_MemoryAllocation);
	for (i = 0; i < 11; i++)
		assert_int_equal(unreserve(addr[i], PIECE), 0);
	/* The device's memory: released, but still mapped memory counts. */
	assert_int_equal(create(3, 62 * MIB), 0);
	assert_int_equal(create(4, PIECE), QCU_ERR_MemoryAllocation);
	assert_int_equal(reserve(62 * MIB, &more), 0);
	assert_int_equal(map_at(3, more, 62 * MIB, 0), 0);
	assert_int_equal(release(3), 0);
	assert_int_equal(create(4, PIECE), QCU_ERR_MemoryAllocation);
	assert_int_equal(unmap(more, 62 * MIB), 0);
	assert_int_equal(create(4, PIECE), 0);
}

static void two_addresses(void **state)
{
	uint64_t addr, far;

	(void)state;
	assert_int_equal(reserve(300 * GIB, &addr), 0);
	assert_int_equal(reserve(200 * GIB, &far), 0);
	far += 100 * GIB;
	assert_int_equal(create(2, 10 * PIECE), 0);
	assert_int_equal(map_at(2, addr, 10 * PIECE, 0), 0);
	assert_int_equal(map_at(2, far, PIECE, PIECE), 0);
	assert_int_equal(allow(addr, 10 * PIECE, 0, 3), 0);
	assert_int_equal(allow(far, PIECE, 0, 3), 0);
	assert_int_equal(word(far), 0);
	assert_int_equal(fill(addr, 10 * PIECE, 7), 0);
	assert_int_equal(word(far), 7);
	assert_int_equal(fill(far + 8, 4, 9), 0);
	assert_int_equal(word(addr + PIECE + 8), 9);
	/* The memory outlives its number and one of its addresses. */
	assert_int_equal(release(2), 0);
	assert_int_equal(unmap(addr, 10 * PIECE), 0);
	assert_int_equal(word(far + 8), 9);
	assert_int_equal(unmap(far, PIECE), 0);
	/* New memory at the same address is zero. */
	assert_int_equal(create(2, PIECE), 0);
	assert_int_equal(map_at(2, far, PIECE, 0), 0);
	assert_int_equal(allow(far, PIECE, 0, 3), 0);
	assert_int_equal(word(far + 8), 0);
}

/* Copies and fills cross the borders between mappings, in whatever order these come and go. */
static void side_by_side(void **state)
{
	static const unsigned int order[] = {2, 0, 3, 1};
	uint64_t addr;
	unsigned int i;

	(void)state;
	assert_int_equal(reserve(4 * PIECE, &addr), 0);
	assert_int_equal(create(2, 4 * PIECE), 0);
	for (i = 0; i < 4; i++) {
		uint64_t at = addr + order[i] * PIECE;

		assert_int_equal(fill(addr, 4 * PIECE, 1), QCU_ERR_InvalidValue);
		assert_int_equal(map_at(2, at, PIECE, order[i] * PIECE), 0);
		assert_int_equal(allow(at, PIECE, 0, 3), 0);
	}
	assert_int_equal(fill(addr, 4 * PIECE, 1), 0);
	assert_int_equal(word(addr + 4 * PIECE - 4), 1);
	assert_int_equal(unmap(addr + PIECE, PIECE), 0);
	assert_int_equal(fill(addr, 4 * PIECE, 2), QCU_ERR_InvalidValue);
	assert_int_equal(fill(addr, PIECE, 2), 0);
	assert_int_equal(fill(addr + 2 * PIECE, 2 * PIECE, 3), 0);
	assert_int_equal(map_at(2, addr + PIECE, PIECE, 0), 0);
	assert_int_equal(allow(addr, 4 * PIECE, 0, 3), 0);
	assert_int_equal(word(addr + PIECE), 2);
	assert_int_equal(fill(addr, 4 * PIECE, 4), 0);
	assert_int_equal(allow(addr + PIECE, PIECE, 0, 1), 0);
	assert_int_equal(unmap(addr, 4 * PIECE), 0);
	assert_int_equal(fill(addr, 4, 4), QCU_ERR_InvalidValue);
	assert_int_equal(unreserve(addr, 4 * PIECE), 0);
}

/* The work that a host function holds up has the memory until it is done. */
static void unmap_below_work(void **state)
{
	struct question qu = {0}, next = {0};
	uint64_t addr, token;

	(void)state;
	assert_int_equal(reserve(2 * PIECE, &addr), 0);
	assert_int_equal(create(2, PIECE), 0);
	assert_int_equal(map_at(2, addr, PIECE, 0), 0);
	assert_int_equal(map_at(2, addr + PIECE, PIECE, 0), 0);
	assert_int_equal(allow(addr, 2 * PIECE, 0, 3), 0);
	assert_int_equal(ask(CMD(HOST_FUNC, host_func, .token = 5)), 0);
	assert_int_equal(fill(addr, PIECE, 6), 0);
	next.req.cmd = CMD(HOST_NEXT, host_next, .wait = 1);
	assert_true(ask_begin(&next));
	assert_int_equal(ask_end(&next), 0);
	token = next.req.cmd.host_next.token;
	qu.req.cmd = CMD(PHYS_UNMAP, phys_unmap, .addr = addr, .size = PIECE);
	assert_true(ask_begin(&qu));
	assert_int_equal(ask(CMD(HOST_NEXT, host_next, .done = token)), 0);
	assert_int_equal(ask_end(&qu), 0);
	assert_int_equal(word(addr + PIECE), 6);
	assert_int_equal(fill(addr, 4, 1), QCU_ERR_InvalidValue);
	assert_int_equal(unreserve(addr, 2 * PIECE), QCU_ERR_InvalidValue);
}

static void survives_a_reset(void **state)
{
	uint64_t addr;

	(void)state;
	assert_int_equal(reserve(PIECE, &addr), 0);
	assert_int_equal(create(2, PIECE), 0);
	assert_int_equal(map_at(2, addr, PIECE, 0), 0);
	assert_int_equal(allow(addr, PIECE, 0, 3), 0);
	assert_int_equal(fill(addr, PIECE, 8), 0);
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, .rsvd = 0)), 0);
	assert_int_equal(word(addr), 8);
}

static int at(struct mirror *m, struct qCUcmd *c)
{
	struct mirror *mine = mirror;
	int rc;

	mirror = m;
	rc = ask_with(c, NULL, NULL, 0);
	mirror = mine;
	return rc;
}

static void other_processes(void **state)
{
	struct qcu_ipc_token token, forged;
	uint64_t addr, theirs;
	struct qCUcmd c;

	(void)state;
	c = CMD(PHYS_EXPORT, phys_export, .mem = 2);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidResourceHandle);
	c = CMD(PHYS_CREATE, phys_create, .size = PIECE, .mem = 3);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	c = CMD(PHYS_EXPORT, phys_export, .mem = 3);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), QCU_ERR_InvalidValue); /* not shareable */
	assert_int_equal(create(2, PIECE), 0);
	c = CMD(PHYS_EXPORT, phys_export, .mem = 2);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	token = c.phys_export.token;
	forged = token;
	forged.secret[0] ^= 1;
	c = CMD(PHYS_IMPORT, phys_import, .token = forged, .mem = 2);
	assert_int_equal(at(other, &c), QCU_ERR_InvalidValue);
	c = CMD(IPC_MEM_OPEN, ipc_mem_open, .token = token);
	assert_int_equal(at(other, &c), QCU_ERR_InvalidValue);
	c = CMD(PHYS_IMPORT, phys_import, .token = token, .mem = 2);
	assert_int_equal(at(mirror, &c), QCU_ERR_InvalidResourceHandle); /* 2 is in use */
	c = CMD(PHYS_IMPORT, phys_import, .token = token, .mem = 2);
	assert_int_equal(at(other, &c), 0);
	assert_int_equal(c.phys_import.size, PIECE);
	c = CMD(PHYS_EXPORT, phys_export, .mem = 2);
	assert_int_equal(at(other, &c), QCU_ERR_InvalidValue);

	assert_int_equal(reserve(PIECE, &addr), 0);
	assert_int_equal(map_at(2, addr, PIECE, 0), 0);
	assert_int_equal(allow(addr, PIECE, 0, 3), 0);
	assert_int_equal(fill(addr, PIECE, 11), 0);
	assert_int_equal(word(addr + 4), 11); /* so it is done before the other process writes */
	c = CMD(VA_RESERVE, va_reserve, .size = PIECE);
	assert_int_equal(at(other, &c), 0);
	theirs = c.va_reserve.addr;
	c = CMD(PHYS_MAP, phys_map, .addr = theirs, .size = PIECE, .mem = 2);
	assert_int_equal(at(other, &c), 0);
	c = CMD(PHYS_ACCESS_SET, phys_access_set, .addr = theirs, .size = PIECE, .flags = 3);
	assert_int_equal(at(other, &c), 0);
	c = CMD(MEMSET, memset, .dst = theirs + 4, .width = 4, .height = 1, .value = 12, .elem = 4);
	assert_int_equal(at(other, &c), 0);
	c = CMD(DEVICE_SYNC, device_sync, .rsvd = 0);
	assert_int_equal(at(other, &c), 0);
	assert_int_equal(word(addr), 11);
	assert_int_equal(word(addr + 4), 12);
	/* When it is gone, its token is, too. */
	assert_int_equal(release(2), 0);
	assert_int_equal(unmap(addr, PIECE), 0);
	c = CMD(PHYS_IMPORT, phys_import, .token = token, .mem = 4);
	assert_int_equal(at(other, &c), QCU_ERR_InvalidValue);
}

static int place(uint32_t array, uint32_t mem, uint64_t offset, uint32_t width)
{
	return ask(CMD(ARRAY_CREATE, array_create, .array = array, .width = width, .height = 64,
		       .levels = 2, .bits = {32}, .kind = 1, .mem = mem, .offset = offset));
}

/* Arrays in such memory: they hold it, and are not charged for it a second time. */
static void arrays(void **state)
{
	struct qCUcmd c;

	(void)state;
	assert_int_equal(create(2, 62 * MIB), 0);
	assert_int_equal(place(2, 3, 0, 64), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(place(2, 2, 62 * MIB, 64), QCU_ERR_InvalidValue);
	assert_int_equal(place(2, 2, 62 * MIB - 16384, 64), QCU_ERR_InvalidValue);
	assert_int_equal(place(2, 2, UINT64_MAX - 3, 64), QCU_ERR_InvalidValue);
	assert_int_equal(place(2, 2, 2, 64), QCU_ERR_InvalidValue);
	assert_int_equal(place(2, 2, 0, 1 << 20), QCU_ERR_InvalidValue);
	assert_int_equal(place(2, 0, 4096, 64), QCU_ERR_InvalidValue);
	c = CMD(ARRAY_CREATE, array_create, .array = 2, .width = 64, .bits = {32}, .kind = 1,
		.mem = 2);
	assert_int_equal(ask(c), QCU_ERR_InvalidValue); /* not mipmapped */
	c.array_create.levels = 1;
	c.array_create.rsvd = 1;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue);
	c.array_create.rsvd = 0;
	c.device = 1;
	assert_int_equal(ask(c), QCU_ERR_InvalidValue); /* memory of the other device */

	assert_int_equal(place(2, 2, 0, 64), 0);
	assert_int_equal(place(3, 2, 4096, 64), 0);
	assert_int_equal(place(2, 2, 0, 64), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(release(2), 0);
	assert_int_equal(create(4, 4 * MIB), QCU_ERR_MemoryAllocation);
	c = CMD(ARRAY_DESTROY, array_destroy, .array = 2);
	assert_int_equal(ask(c), 0);
	assert_int_equal(create(4, 4 * MIB), QCU_ERR_MemoryAllocation);
	c.array_destroy.array = 3;
	assert_int_equal(ask(c), 0);
	assert_int_equal(create(4, 62 * MIB), 0);
	assert_int_equal(place(2, 4, 0, 64), 0);
	/* The session ends with the array. */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(bad_sizes, start, stop),
		cmocka_unit_test_setup_teardown(bad_numbers, start, stop),
		cmocka_unit_test_setup_teardown(bad_mappings, start, stop),
		cmocka_unit_test_setup_teardown(not_reachable, start, stop),
		cmocka_unit_test_setup_teardown(limits_count, start, stop),
		cmocka_unit_test_setup_teardown(two_addresses, start, stop),
		cmocka_unit_test_setup_teardown(side_by_side, start, stop),
		cmocka_unit_test_setup_teardown(unmap_below_work, start, stop),
		cmocka_unit_test_setup_teardown(survives_a_reset, start, stop),
		cmocka_unit_test_setup_teardown(other_processes, start, stop),
		cmocka_unit_test_setup_teardown(arrays, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
