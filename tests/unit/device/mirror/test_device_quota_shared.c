// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The limit of a VM's device memory, and sessions that open each other's memory: whoever gives it
 * up first, what exists never is more than the limit. Memory that several sessions have open counts
 * once. A stand-in backend counts what exists.
 */
#define _GNU_SOURCE
#include "qcu-device/base/usage.h"
#include "qcu-device/memory/shares.h"
#include "tests/unit/device/mirror/test_device_mirror.h"

#define MIB	(1ull << 20)
#define LIMIT	(64 * MIB)
#define MIRRORS 3

static struct be_ops ops;
static struct limits limits;
static struct usage *usage;
static struct shares *vm;
static struct mirror *mirrors[MIRRORS]; /* sessions 1 to 3 */

/* Memory that exists as long as anyone has it. */
struct thing {
	int refs;
	uint64_t size;
};
static uint64_t exists;

static struct thing *new_thing(uint64_t size)
{
	struct thing *t = malloc(sizeof(*t));

	assert_non_null(t);
	*t = (struct thing){.refs = 1, .size = size};
	exists += size;
	return t;
}

static int drop(struct thing *t)
{
	if (--t->refs)
		return 0;
	exists -= t->size;
	free(t);
	return 0;
}

static void put_handle(void *handle, const struct thing *t)
{
	memset(handle, 0, BE_IPC_BYTES);
	memcpy(handle, &t, sizeof(t));
}

static struct thing *get_handle(const void *handle)
{
	struct thing *t;

	memcpy(&t, handle, sizeof(t));
	t->refs++;
	return t;
}

static int phys_grain(struct be *be, unsigned int device, bool recommended, uint64_t *bytes)
{
	(void)be;
	(void)device;
	(void)recommended;
	*bytes = MIB;
	return 0;
}

static int phys_create(struct be *be, unsigned int device, uint64_t size, uint32_t flags,
		       struct be_phys **p, bool *compressible)
{
	(void)be;
	(void)device;
	(void)flags;
	(void)compressible;
	*p = (struct be_phys *)new_thing(size);
	return 0;
}

static int phys_destroy(struct be *be, struct be_phys *p)
{
	(void)be;
	return drop((struct thing *)p);
}

static int phys_export(struct be *be, struct be_phys *p, void *handle)
{
	(void)be;
	put_handle(handle, (struct thing *)p);
	return 0;
}

static int phys_import(struct be *be, unsigned int device, const void *handle, uint64_t size,
		       struct be_phys **p)
{
	(void)be;
	(void)device;
	(void)size;
	*p = (struct be_phys *)get_handle(handle);
	return 0;
}

static int mem_alloc(struct be *be, unsigned int device, uint64_t size, uint64_t *addr)
{
	(void)be;
	(void)device;
	*addr = (uintptr_t)new_thing(size);
	return 0;
}

static int mem_free(struct be *be, uint64_t addr)
{
	(void)be;
	return drop((struct thing *)(uintptr_t)addr);
}

static int mem_export(struct be *be, unsigned int device, uint64_t addr, void *handle)
{
	(void)be;
	(void)device;
	put_handle(handle, (struct thing *)(uintptr_t)addr);
	return 0;
}

static int mem_import(struct be *be, unsigned int device, const void *handle, uint64_t size,
		      uint64_t *addr)
{
	(void)be;
	(void)device;
	(void)size;
	*addr = (uintptr_t)get_handle(handle);
	return 0;
}

static int begin(void **state)
{
	struct mir_config cfg = {.ops = &ops, .limits = &limits};

	(void)state;
	fake_reset();
	ops = fake_ops;
	ops.phys_grain = phys_grain;
	ops.phys_create = phys_create;
	ops.phys_destroy = phys_destroy;
	ops.phys_export = phys_export;
	ops.phys_import = phys_import;
	ops.mem_alloc = mem_alloc;
	ops.mem_free = mem_free;
	ops.mem_export = mem_export;
	ops.mem_import = mem_import;
	ops.mem_unimport = mem_free;
	memset(&limits, 0, sizeof(limits));
	limits.vm[LIMIT_DEVICE_MEMORY] = LIMIT;
	limits_default(&limits);
	usage = usage_new(-1);
	vm = shares_new(-1);
	cfg.usage = usage;
	cfg.shares = vm;
	exists = 0;
	for (cfg.session = 1; cfg.session <= MIRRORS; cfg.session++)
		if (mir_create(&mirrors[cfg.session - 1], &cfg))
			return -1;
	return 0;
}

/* The process that ends sessions does this. */
static void end_session(unsigned int session)
{
	mir_destroy(mirrors[session - 1]);
	mirrors[session - 1] = NULL;
	shares_end(vm, session);
	usage_end(usage, session);
}

static int end(void **state)
{
	struct qCUcmd c = CMD(PHYS_CREATE, phys_create, .mem = 900, .size = LIMIT);
	unsigned int i;
	int rc;

	(void)state;
	for (i = 1; i <= MIRRORS; i++)
		if (mirrors[i - 1])
			end_session(i);
	/* All that was charged has been given back. */
	rc = exists || usage_sum(usage, LIMIT_DEVICE_MEMORY, 0) || shares_left(vm, 0, SHARES_ALL);
	limits.session[LIMIT_DEVICE_MEMORY] = LIMIT_NONE;
	if (!rc) {
		rc = mir_create(&mirror, &(struct mir_config){.session = 1,
							      .ops = &ops,
							      .limits = &limits,
							      .usage = usage,
							      .shares = vm});
		rc = rc ? rc : ask(c);
		mir_destroy(mirror);
	}
	shares_free(vm);
	usage_free(usage);
	return rc || fake.objects;
}

static int on(unsigned int session, struct qCUcmd *c)
{
	mirror = mirrors[session - 1];
	return ask_with(c, NULL, NULL, 0);
}

static int create(unsigned int session, uint32_t mem, uint64_t size)
{
	struct qCUcmd c = CMD(PHYS_CREATE, phys_create, .mem = mem, .size = size,
			      .flags = QCU_PHYS_SHAREABLE);

	return on(session, &c);
}

static struct qcu_ipc_token export(unsigned int session, uint32_t mem)
{
	struct qCUcmd c = CMD(PHYS_EXPORT, phys_export, .mem = mem);

	assert_int_equal(on(session, &c), 0);
	return c.phys_export.token;
}

static int import(unsigned int session, uint32_t mem, struct qcu_ipc_token token)
{
	struct qCUcmd c = CMD(PHYS_IMPORT, phys_import, .mem = mem, .token = token);

	return on(session, &c);
}

static int release(unsigned int session, uint32_t mem)
{
	struct qCUcmd c = CMD(PHYS_RELEASE, phys_release, .mem = mem);

	return on(session, &c);
}

static uint64_t allocate(unsigned int session, uint64_t size)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = size);

	return on(session, &c) ? 0 : c.malloc.ptr;
}

static int deallocate(unsigned int session, uint64_t addr)
{
	struct qCUcmd c = CMD(FREE, free, .ptr = addr);

	return on(session, &c);
}

static uint64_t open_from(unsigned int session, unsigned int owner, uint64_t addr)
{
	struct qCUcmd c = CMD(IPC_MEM_EXPORT, ipc_mem_export, .ptr = addr);

	assert_int_equal(on(owner, &c), 0);
	c = CMD(IPC_MEM_OPEN, ipc_mem_open, .token = c.ipc_mem_export.token);
	assert_int_equal(on(session, &c), 0);
	return c.ipc_mem_open.ptr;
}

static int close_on(unsigned int session, uint64_t addr)
{
	struct qCUcmd c = CMD(IPC_MEM_CLOSE, ipc_mem_close, .ptr = addr);

	return on(session, &c);
}

/* One exports and releases, the other keeps. */
static void released_by_its_owner(void **state)
{
	uint32_t i;
	int rc = 0;

	(void)state;
	for (i = 0; i < 64 && !rc; i++) {
		rc = create(1, 2, LIMIT / 4);
		if (rc)
			break;
		assert_int_equal(import(2, 2 + i, export(1, 2)), 0);
		assert_int_equal(release(1, 2), 0);
		assert_true(exists <= LIMIT);
	}
	assert_int_equal(rc, QCU_ERR_MemoryAllocation);
	assert_int_equal(i, 4);
	assert_int_equal(exists, LIMIT);
	assert_int_equal(create(2, 90, MIB), QCU_ERR_MemoryAllocation);
	assert_int_equal(release(2, 3), 0);
	assert_int_equal(create(3, 2, LIMIT / 4), 0);
	assert_int_equal(create(3, 3, MIB), QCU_ERR_MemoryAllocation);
}

static void freed_by_its_owner(void **state)
{
	uint64_t a, opened[4];
	unsigned int i;

	(void)state;
	for (i = 0; i < 4; i++) {
		a = allocate(1, LIMIT / 4);
		assert_int_not_equal(a, 0);
		opened[i] = open_from(2, 1, a);
		assert_int_equal(deallocate(1, a), 0);
	}
	assert_int_equal(exists, LIMIT);
	assert_int_equal(allocate(1, LIMIT / 4), 0);
	assert_int_equal(allocate(3, 1), 0);
	assert_int_equal(close_on(2, opened[1]), 0);
	a = allocate(3, LIMIT / 4);
	assert_int_not_equal(a, 0);
	assert_int_equal(allocate(3, 1), 0);
}

static void owner_ends(void **state)
{
	(void)state;
	assert_int_equal(create(1, 2, LIMIT / 2), 0);
	assert_int_equal(import(2, 2, export(1, 2)), 0);
	assert_int_equal(import(3, 2, export(1, 2)), 0);
	end_session(1);
	assert_int_equal(exists, LIMIT / 2);
	assert_int_equal(create(2, 3, LIMIT / 2 + MIB), QCU_ERR_MemoryAllocation);
	assert_int_equal(create(2, 3, LIMIT / 2), 0);
	assert_int_equal(create(3, 3, MIB), QCU_ERR_MemoryAllocation);
	/* One that has it open ends, too; the other still has it. */
	end_session(2);
	assert_int_equal(create(3, 3, LIMIT / 2), 0);
	assert_int_equal(create(3, 4, MIB), QCU_ERR_MemoryAllocation);
	assert_int_equal(release(3, 2), 0);
	assert_int_equal(create(3, 4, LIMIT / 2), 0);
}

/* As long as the owner counts it, it counts once, however many have it open and however often. */
static void open_in_many(void **state)
{
	struct qcu_ipc_token token;

	(void)state;
	assert_int_equal(create(1, 2, LIMIT), 0);
	token = export(1, 2);
	assert_int_equal(import(2, 2, token), 0);
	assert_int_equal(import(2, 3, token), 0);
	assert_int_equal(import(3, 2, token), 0);
	assert_int_equal(create(3, 9, MIB), QCU_ERR_MemoryAllocation);
	assert_int_equal(release(2, 2), 0);
	assert_int_equal(release(1, 2), 0);
	assert_int_equal(create(3, 9, MIB), QCU_ERR_MemoryAllocation);
	assert_int_equal(release(3, 2), 0);
	assert_int_equal(create(3, 9, MIB), QCU_ERR_MemoryAllocation);
	assert_int_equal(release(2, 3), 0);
	assert_int_equal(create(3, 9, LIMIT), 0);
}

/* Each session's own limit counts what others have left to it. */
static void limit_of_a_session(void **state)
{
	uint64_t a;

	(void)state;
	for (a = 0; a < MIRRORS; a++)
		mir_destroy(mirrors[a]);
	limits.session[LIMIT_DEVICE_MEMORY] = LIMIT / 4;
	for (a = 0; a < MIRRORS; a++)
		assert_int_equal(mir_create(&mirrors[a],
					    &(struct mir_config){.session = (unsigned int)a + 1,
								 .ops = &ops,
								 .limits = &limits,
								 .usage = usage,
								 .shares = vm}),
				 0);
	assert_int_equal(create(1, 2, LIMIT / 4), 0);
	assert_int_equal(create(2, 2, LIMIT / 8), 0);
	assert_int_equal(import(2, 3, export(1, 2)), 0);
	assert_int_equal(create(2, 4, LIMIT / 16), 0);
	assert_int_equal(release(1, 2), 0);
	assert_int_equal(create(2, 5, MIB), QCU_ERR_MemoryAllocation);
	assert_int_equal(create(1, 2, LIMIT / 4), 0);
}

/* A place in the table that is still open is not given out; a share that has ended is not opened.
 */
static void the_table(void **state)
{
	struct share share = {.kind = SHARE_MEMORY, .charged = 100, .device = 1}, found;
	struct qcu_ipc_token old, new;
	unsigned int session;

	(void)state;
	assert_true(shares_put(vm, 9, &share, &old));
	shares_opening(vm, 2, &old);
	assert_true(shares_find(vm, &old, &found, &session));
	shares_drop(vm, 9, &old);
	assert_false(shares_find(vm, &old, &found, &session));
	assert_int_equal(shares_left(vm, 1, SHARES_ALL), 100);
	assert_int_equal(shares_left(vm, 1, 2), 100);
	assert_int_equal(shares_left(vm, 1, 3), 0);
	assert_int_equal(shares_left(vm, 0, SHARES_ALL), 0);
	assert_true(shares_put(vm, 9, &share, &new));
	assert_int_not_equal(new.slot, old.slot);
	shares_end(vm, 9);
	assert_int_equal(shares_left(vm, 1, SHARES_ALL), 100);
	shares_closed(vm, 2, &old);
	assert_int_equal(shares_left(vm, 1, SHARES_ALL), 0);
	assert_true(shares_put(vm, 9, &share, &new));
	assert_int_equal(new.slot, old.slot);
	/* A slot that no session has. */
	old.slot = UINT32_MAX;
	shares_opening(vm, 2, &old);
	shares_closed(vm, 2, &old);
	shares_end(vm, 9);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
	const struct CMUnitTest tests[] = {
		T(the_table),  T(released_by_its_owner), T(freed_by_its_owner),
		T(owner_ends), T(open_in_many),		 T(limit_of_a_session),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
