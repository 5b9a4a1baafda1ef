// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest that frees device memory while another of its threads' commands is using it: each way of
 * freeing waits for that command, and no other. A command that comes meanwhile is refused. Memory
 * that is given out again at once can be used at once.
 */
#define _GNU_SOURCE
#include <sched.h>

#include "qcu-device/commands/call.h"
#include "qcu-device/memory/shares.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define ROWS   4u
#define PITCH  (1u << 20) /* a row that is copied from its place */
#define SIZE   (ROWS * PITCH)
#define MEMORY 0x7f1200000000ull

static struct be_ops ops;
static struct shares *vm;
static uint8_t ram[ROWS][PITCH];

/* The backend's side. */
static _Atomic bool gone; /* the memory, or it is being freed */
static _Atomic unsigned int copies, late;
static _Atomic bool slow_free, freeing;
/* What the guest does during the first copy. */
static struct question other;
static _Atomic bool asked;

static int mem_alloc(struct be *be, unsigned int device, uint64_t size, uint64_t *addr)
{
	(void)be;
	(void)device;
	(void)size;
	*addr = MEMORY;
	gone = false;
	return 0;
}

static int lose(void)
{
	gone = true;
	freeing = true;
	while (slow_free)
		sched_yield();
	return 0;
}

static int mem_free(struct be *be, uint64_t addr)
{
	(void)be;
	assert_int_equal(addr, MEMORY);
	return lose();
}

static int pool_default(struct be *be, unsigned int device, struct be_pool **p)
{
	(void)be;
	(void)device;
	*p = NULL;
	return 0;
}

static int pool_alloc(struct be *be, struct be_pool *p, uint64_t size, struct be_stream *s,
		      uint64_t *addr)
{
	(void)p;
	(void)s;
	return mem_alloc(be, 0, size, addr);
}

static int pool_free(struct be *be, uint64_t addr, struct be_stream *s)
{
	(void)s;
	return mem_free(be, addr);
}

static bool mem_valid(struct be *be, uint64_t addr, uint64_t len)
{
	(void)be;
	return !gone && addr >= MEMORY && len <= SIZE && addr - MEMORY <= SIZE - len;
}

/* In the first row, the guest's other thread asks. Until it waits for us, or has done its work. */
static int copy_box(struct be *be, const struct be_box *box, struct be_stream *s)
{
	(void)be;
	(void)box;
	(void)s;
	copies++;
	if (!asked) {
		asked = true;
		assert_true(ask_begin(&other));
		while (!gone && !mirror->held.leavings)
			sched_yield();
	}
	late += gone;
	return 0;
}

static int mem_export(struct be *be, unsigned int device, uint64_t addr, void *handle)
{
	(void)be;
	(void)device;
	memset(handle, 0, BE_IPC_BYTES);
	memcpy(handle, &addr, sizeof(addr));
	return 0;
}

static int mem_import(struct be *be, unsigned int device, const void *handle, uint64_t size,
		      uint64_t *addr)
{
	(void)handle;
	return mem_alloc(be, device, size, addr);
}

static int va_reserve(struct be *be, uint64_t size, uint64_t align, uint64_t *addr)
{
	(void)be;
	(void)size;
	(void)align;
	*addr = MEMORY;
	return 0;
}

static int va_free(struct be *be, uint64_t addr, uint64_t size)
{
	(void)be;
	(void)addr;
	(void)size;
	return 0;
}

static int phys_grain(struct be *be, unsigned int device, bool recommended, uint64_t *bytes)
{
	(void)be;
	(void)device;
	(void)recommended;
	*bytes = PITCH;
	return 0;
}

static int phys_create(struct be *be, unsigned int device, uint64_t size, uint32_t flags,
		       struct be_phys **p, bool *compressible)
{
	(void)be;
	(void)device;
	(void)size;
	(void)flags;
	(void)compressible;
	*p = NULL;
	return 0;
}

static int phys_destroy(struct be *be, struct be_phys *p)
{
	(void)be;
	(void)p;
	return 0;
}

static int phys_map(struct be *be, struct be_phys *p, uint64_t offset, uint64_t addr, uint64_t size)
{
	(void)p;
	(void)offset;
	return mem_alloc(be, 0, size, &addr);
}

static int phys_unmap(struct be *be, uint64_t addr, uint64_t size)
{
	(void)size;
	return mem_free(be, addr);
}

static int var_find(struct be *be, unsigned int device, struct be_module *m, const char *name,
		    uint64_t *addr, uint64_t *size)
{
	(void)m;
	(void)name;
	*size = SIZE;
	return mem_alloc(be, device, SIZE, addr);
}

static int module_unload(struct be *be, struct be_module *m)
{
	lose();
	return fake_ops.module_unload(be, m);
}

static int begin(void **state)
{
	(void)state;
	fake_reset();
	ops = fake_ops;
	ops.mem_alloc = mem_alloc;
	ops.mem_free = mem_free;
	ops.mem_valid = mem_valid;
	ops.pool_default = pool_default;
	ops.pool_alloc = pool_alloc;
	ops.pool_free = pool_free;
	ops.mem_export = mem_export;
	ops.mem_import = mem_import;
	ops.mem_unimport = mem_free;
	ops.va_reserve = va_reserve;
	ops.va_free = va_free;
	ops.phys_grain = phys_grain;
	ops.phys_create = phys_create;
	ops.phys_destroy = phys_destroy;
	ops.phys_map = phys_map;
	ops.phys_unmap = phys_unmap;
	ops.copy_box = copy_box;
	ops.var_find = var_find;
	ops.module_unload = module_unload;
	copies = late = 0;
	gone = asked = slow_free = freeing = false;
	vm = shares_new(-1);
	return !vm ||
	       mir_create(&mirror, &(struct mir_config){.session = 1, .ops = &ops, .shares = vm});
}

static int end(void **state)
{
	int rc = mirror_stop(state);

	shares_free(vm);
	return rc;
}

static int rows(void)
{
	struct qcu_seg seg[ROWS];
	struct qCUcmd c = CMD(RECT_H2D, rect_h2d, .buf = {1, SIZE}, .dst = MEMORY, .pitch = PITCH,
			      .dst_pitch = PITCH, .width = PITCH, .height = ROWS);
	unsigned int i;

	/* In another order than in memory, so that each is a piece of its own. */
	for (i = 0; i < ROWS; i++)
		seg[i] = (struct qcu_seg){(uintptr_t)ram[(i + 2) % ROWS], PITCH};
	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, seg, ROWS);
}

/* The command frees the memory while rows are being copied to it. */
static void free_during_copy(struct qCUcmd cmd)
{
	unsigned int all;

	other = (struct question){.req = {.cmd = cmd}};
	other.req.cmd.tid = 2;
	assert_int_equal(rows(), 0);
	assert_int_equal(ask_end(&other), 0);
	all = copies;
	assert_true(gone);
	assert_int_equal(late, 0);
	assert_true(all > 1);
	assert_int_equal(rows(), QCU_ERR_InvalidValue);
	assert_int_equal(copies, all);
}

static uint64_t allocate(void)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = SIZE);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.malloc.ptr;
}

static void free_waits(void **state)
{
	(void)state;
	free_during_copy(CMD(FREE, free, .ptr = allocate()));
}

static void free_async_waits(void **state)
{
	struct qCUcmd c = CMD(MALLOC_ASYNC, malloc_async, .size = SIZE);

	(void)state;
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	free_during_copy(CMD(FREE_ASYNC, free_async, .ptr = c.malloc_async.ptr));
}

static void close_waits(void **state)
{
	struct qcu_ipc_token token;
	struct share share = {.kind = SHARE_MEMORY, .size = SIZE};
	struct qCUcmd c;

	(void)state;
	assert_true(shares_put(vm, 2, &share, &token));
	c = CMD(IPC_MEM_OPEN, ipc_mem_open, .token = token);
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	free_during_copy(CMD(IPC_MEM_CLOSE, ipc_mem_close, .ptr = c.ipc_mem_open.ptr));
}

static void unmap_waits(void **state)
{
	(void)state;
	assert_int_equal(ask(CMD(VA_RESERVE, va_reserve, .size = SIZE)), 0);
	assert_int_equal(ask(CMD(PHYS_CREATE, phys_create, .size = SIZE, .mem = 2)), 0);
	assert_int_equal(ask(CMD(PHYS_MAP, phys_map, .addr = MEMORY, .size = SIZE, .mem = 2)), 0);
	free_during_copy(CMD(PHYS_UNMAP, phys_unmap, .addr = MEMORY, .size = SIZE));
}

static void unload_waits(void **state)
{
	struct qcu_seg seg = {(uintptr_t)FAKE_IMAGE, sizeof(FAKE_IMAGE)};
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, seg.len}, .module = 2);

	(void)state;
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	c = CMD(VAR_FIND, var_find, .buf = {0, 3}, .module = 2);
	c.flags = QCU_F_MSG;
	assert_int_equal(ask_with(&c, "var", NULL, 0), 0);
	assert_int_equal(c.var_find.addr, MEMORY);
	free_during_copy(CMD(MODULE_UNLOAD, module_unload, .module = 2));
}

/* While the free waits, a third thread's command is refused. */
static struct question third;

static int ask_third(struct be *be, const struct be_box *box, struct be_stream *s)
{
	int rc = copy_box(be, box, s);

	if (copies == 1) {
		assert_true(ask_begin(&third));
		assert_int_equal(ask_end(&third), QCU_ERR_InvalidValue);
	}
	return rc;
}

static void refused_meanwhile(void **state)
{
	uint64_t at = allocate();

	(void)state;
	third = (struct question){.req = {.cmd = CMD(MEMSET, memset, .dst = at + 8, .width = 8,
						     .height = 1, .elem = 1)}};
	third.req.cmd.tid = 3;
	ops.copy_box = ask_third;
	free_during_copy(CMD(FREE, free, .ptr = at));
}

/* Other memory, and a command that needs none, do not wait. */
static int free_another(struct be *be, const struct be_box *box, struct be_stream *s)
{
	(void)be;
	(void)box;
	(void)s;
	if (!copies++) {
		assert_true(ask_begin(&other));
		assert_int_equal(ask_end(&other), 0);
	}
	return 0;
}

static uint64_t beside;

static int alloc_beside(struct be *be, unsigned int device, uint64_t size, uint64_t *addr)
{
	mem_alloc(be, device, size, addr);
	*addr += beside;
	beside += SIZE;
	return 0;
}

static int free_any(struct be *be, uint64_t addr)
{
	(void)be;
	(void)addr;
	return 0;
}

static void others_do_not_wait(void **state)
{
	uint64_t at;

	(void)state;
	beside = 0;
	ops.mem_alloc = alloc_beside;
	ops.mem_free = free_any;
	ops.copy_box = free_another;
	at = allocate();
	assert_int_equal(at, MEMORY);
	other = (struct question){.req = {.cmd = CMD(FREE, free, .ptr = allocate())}};
	other.req.cmd.tid = 2;
	assert_int_equal(rows(), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = at)), 0);
}

static int set_nothing(struct be *be, const struct be_memset *m, struct be_stream *s)
{
	(void)be;
	(void)m;
	(void)s;
	assert_false(slow_free);
	return 0;
}

/*
 * The backend gives the address out again before the free has returned. The new allocation's first
 * command comes when it has.
 */
static void address_comes_again(void **state)
{
	uint64_t at = allocate();
	struct question set;

	(void)state;
	ops.mem_set = set_nothing;
	slow_free = true;
	other = (struct question){.req = {.cmd = CMD(FREE, free, .ptr = at)}};
	other.req.cmd.tid = 2;
	assert_true(ask_begin(&other));
	while (!freeing)
		sched_yield();
	assert_int_equal(allocate(), at);
	set = (struct question){
		.req = {.cmd = CMD(MEMSET, memset, .dst = at, .width = 8, .height = 1, .elem = 1)}};
	assert_true(ask_begin(&set));
	while (!mirror->held.slot[0].count && !mirror->held.slot[1].count)
		sched_yield();
	slow_free = false;
	assert_int_equal(ask_end(&other), 0);
	assert_int_equal(ask_end(&set), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = at)), 0);
}

/* A command that names more ranges than there is room for holds all memory. */
static void many_ranges(void **state)
{
	struct held_leaving l;
	struct held h;
	unsigned int i;

	(void)state;
	assert_int_equal(held_init(&h, 4), 0);
	for (i = 0; i < 3 * HELD_RANGES; i++)
		assert_true(held_take(&h, 3, 4096ull * i, 16));
	assert_int_equal(h.slot[3].count, HELD_RANGES + 1);
	/* It is this thread's own command, which need not wait for itself. */
	held_leave(&h, &l, 1ull << 40, 4096);
	assert_false(h.slot[0].count);
	held_gone(&h, &l);
	held_release(&h, 3);
	assert_int_equal(h.slot[3].count, 0);
	held_leave(&h, &l, 4096, 1);
	assert_true(held_take(&h, 0, 4097, 1));
	assert_true(held_take(&h, 0, 0, 4096));
	held_gone(&h, &l);
	held_release(&h, 0);
	held_fini(&h);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(many_ranges),
		T(free_waits),
		T(free_async_waits),
		T(close_waits),
		T(unmap_waits),
		T(unload_waits),
		T(refused_meanwhile),
		T(others_do_not_wait),
		T(address_comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
