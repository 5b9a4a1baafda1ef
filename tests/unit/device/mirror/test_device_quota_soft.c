// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Limits that need a backend with all functions, here the software GPU: pools and the memory they
 * keep, arrays, textures, graphs, the heap and the stacks of kernels; and two mirrors of one VM
 * that share the memory of one GPU.
 */
#define _GNU_SOURCE
#include "tests/unit/device/mirror/test_device_mirror.h"

#include "qcu-device/base/usage.h"

#define MIB (1ull << 20)

struct fake fake; /* for test_device_mirror.h */

static struct be_ops ops;
static struct usage *usage;
static struct limits limits;
static struct mirror *other;

/* A pool that keeps freed memory until it is trimmed: this many bytes more than are in use. */
static _Atomic uint64_t kept;
static atomic_uint trims;

static int pool_get(struct be *be, struct be_pool *p, uint32_t attr, uint64_t *value)
{
	int rc = be_soft.pool_get(be, p, attr, value);

	if (attr == 5)
		*value += kept;
	return rc;
}

static int pool_trim(struct be *be, struct be_pool *p, uint64_t keep)
{
	trims++;
	kept = keep;
	return be_soft.pool_trim(be, p, keep);
}

static struct mirror *new_mirror(unsigned int session)
{
	struct mir_config cfg = {
		.ops = &ops, .session = session, .limits = &limits, .usage = usage};
	struct mirror *m = NULL;

	cfg.options.vram = 64 * MIB;
	cfg.options.threads = 1;
	assert_int_equal(mir_create(&m, &cfg), 0);
	return m;
}

static int reset(void **state)
{
	(void)state;
	ops = be_soft;
	ops.pool_get = pool_get;
	ops.pool_trim = pool_trim;
	kept = 0;
	trims = 0;
	limits = (struct limits){.vm = {0}};
	usage = usage_new(-1);
	other = NULL;
	return !usage;
}

static int end(void **state)
{
	unsigned int i, wrong = 0;

	(void)state;
	mir_destroy(mirror);
	if (other)
		mir_destroy(other);
	for (i = 0; i < LIMIT_KINDS; i++) {
		if (!usage_sum(usage, (enum limit)i, 0))
			continue;
		print_error("%s: %llu left\n", limit_name((enum limit)i),
			    (unsigned long long)usage_sum(usage, (enum limit)i, 0));
		wrong++;
	}
	usage_free(usage);
	return wrong;
}

static uint64_t memory_used(void)
{
	return usage->sessions[1].memory[0];
}

static int malloc_async(uint64_t size, uint32_t pool, uint64_t *ptr)
{
	struct qCUcmd c = CMD(MALLOC_ASYNC, malloc_async, .size = size, .pool = pool);
	int rc = ask_with(&c, NULL, NULL, 0);

	*ptr = c.malloc_async.ptr;
	return rc;
}

static int alloc(uint64_t size, uint64_t *ptr)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = size);
	int rc = ask_with(&c, NULL, NULL, 0);

	*ptr = c.malloc.ptr;
	return rc;
}

static struct qcu_mem_info mem_info(void)
{
	struct qCUcmd c = CMD(MEM_INFO, mem_info, .free = 0);

	memset(c.body, 0, sizeof(c.body));
	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.mem_info;
}

static int free_async(uint64_t ptr)
{
	return ask(CMD(FREE_ASYNC, free_async, .ptr = ptr));
}

static int device_sync(void)
{
	return ask(CMD(DEVICE_SYNC, device_sync, 0));
}

static void pooled_memory(void **state)
{
	uint64_t p, q;

	(void)state;
	limits.session[LIMIT_DEVICE_MEMORY] = 10 * MIB;
	mirror = new_mirror(1);
	assert_int_equal(malloc_async(10 * MIB + 1, 0, &p), QCU_ERR_MemoryAllocation);
	assert_int_equal(memory_used(), 0);
	assert_int_equal(malloc_async(6 * MIB, 0, &p), 0);
	assert_int_equal(memory_used(), 6 * MIB);
	assert_int_equal(malloc_async(5 * MIB, 0, &q), QCU_ERR_MemoryAllocation);
	assert_int_equal(mem_info().free, 4 * MIB);
	assert_int_equal(free_async(p), 0);
	assert_int_equal(device_sync(), 0);
	assert_int_equal(mem_info().free, 10 * MIB);
	assert_int_equal(malloc_async(10 * MIB, 0, &p), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = p)), 0);
	assert_int_equal(alloc(10 * MIB, &p), 0);
	assert_int_equal(malloc_async(512, 0, &q), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(FREE, free, .ptr = p)), 0);
}

/* Memory that a pool keeps counts. It is released when memory is needed. */
static void kept_memory(void **state)
{
	uint64_t p, q;

	(void)state;
	limits.session[LIMIT_DEVICE_MEMORY] = 10 * MIB;
	mirror = new_mirror(1);
	kept = 4 * MIB;
	assert_int_equal(malloc_async(5 * MIB, 0, &p), 0);
	assert_int_equal(memory_used(), 9 * MIB);
	assert_int_equal(mem_info().free, 1 * MIB);
	assert_int_equal(trims, 0);
	assert_int_equal(alloc(3 * MIB, &q), 0);
	assert_int_equal(trims, 1);
	assert_int_equal(memory_used(), 8 * MIB);
	assert_int_equal(alloc(3 * MIB, &q), QCU_ERR_MemoryAllocation);
	/* The allocation takes more memory than it asked for. */
	kept = 1 * MIB + 4096;
	assert_int_equal(malloc_async(1 * MIB, 0, &q), QCU_ERR_MemoryAllocation);
	assert_int_equal(q, 0);
	assert_int_equal(device_sync(), 0);
	kept = 0;
	assert_int_equal(malloc_async(1 * MIB, 0, &q), 0);
}

static void pools(void **state)
{
	struct qCUcmd c = CMD(POOL_CREATE, pool_create, .pool = 2);
	uint64_t p;

	(void)state;
	limits.session[LIMIT_POOLS] = 2;
	mirror = new_mirror(1);
	assert_int_equal(ask(c), 0);
	c.pool_create.pool = 3;
	assert_int_equal(ask(c), 0);
	c.pool_create.pool = 4;
	assert_int_equal(ask(c), QCU_ERR_MemoryAllocation);
	/*
	 * The pool's memory is still in use after the pool is destroyed, so the pool still counts.
	 */
	assert_int_equal(malloc_async(1 * MIB, 3, &p), 0);
	assert_int_equal(ask(CMD(POOL_DESTROY, pool_destroy, .pool = 3)), 0);
	assert_int_equal(memory_used(), 1 * MIB);
	assert_int_equal(ask(c), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(FREE, free, .ptr = p)), 0);
	assert_int_equal(memory_used(), 0);
	assert_int_equal(ask(c), 0);
}

static int array(uint32_t id, uint32_t width, uint32_t height, uint32_t levels)
{
	return ask(CMD(ARRAY_CREATE, array_create, .array = id, .width = width, .height = height,
		       .levels = levels, .bits = {32}, .kind = 2));
}

static void arrays(void **state)
{
	(void)state;
	limits.session[LIMIT_ARRAYS] = 2;
	limits.session[LIMIT_DEVICE_MEMORY] = 6 * MIB;
	mirror = new_mirror(1);
	assert_int_equal(array(2, UINT32_MAX, UINT32_MAX, 0), QCU_ERR_InvalidValue);
	assert_int_equal(array(2, 1 << 20, 1 << 20, 0), QCU_ERR_MemoryAllocation);
	assert_int_equal(array(2, 0, 1, 0), QCU_ERR_InvalidValue);
	assert_int_equal(memory_used(), 0);
	assert_int_equal(array(2, 1024, 1024, 0), 0);
	assert_int_equal(memory_used(), 4 * MIB);
	assert_int_equal(array(3, 1024, 1024, 0), QCU_ERR_MemoryAllocation);
	assert_int_equal(array(3, 512, 512, 10), 0);
	assert_int_equal(array(4, 1, 1, 0), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 2)), 0);
	assert_int_equal(array(4, 1, 1, 0), 0);
	assert_int_equal(ask(CMD(ARRAY_DESTROY, array_destroy, .array = 3)), 0);
	assert_int_equal(memory_used(), 512);
}

static int texture(uint64_t *object)
{
	struct qcu_texture_msg t = {.kind = QCU_TEXTURE_ARRAY, .array = 2};
	struct qCUcmd c = CMD(TEXTURE_CREATE, texture_create, .buf = {1, sizeof(t)});
	int rc;

	c.flags = QCU_F_MSG;
	rc = ask_with(&c, &t, NULL, 0);
	*object = c.texture_create.object;
	return rc;
}

static void textures(void **state)
{
	uint64_t a, b;

	(void)state;
	limits.session[LIMIT_TEXTURES] = 2;
	mirror = new_mirror(1);
	assert_int_equal(texture(&a), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(ARRAY_CREATE, array_create, .array = 2, .width = 4, .flags = 2,
				 .bits = {32}, .kind = 2)),
			 0);
	assert_int_equal(texture(&a), 0);
	assert_int_equal(ask(CMD(SURFACE_CREATE, surface_create, .array = 2)), 0);
	assert_int_equal(texture(&b), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(SURFACE_CREATE, surface_create, .array = 2)),
			 QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(TEXTURE_DESTROY, texture_destroy, .object = a)), 0);
	assert_int_equal(texture(&b), 0);
}

/* Handles of conditional nodes count as graphs do. */
static void graphs(void **state)
{
	(void)state;
	limits.session[LIMIT_GRAPHS] = 2;
	mirror = new_mirror(1);
	assert_int_equal(ask(CMD(COND_CREATE, cond_create, .cond = 2)), 0);
	assert_int_equal(ask(CMD(COND_CREATE, cond_create, .cond = 3, .graph = 2)), 0);
	assert_int_equal(ask(CMD(COND_CREATE, cond_create, .cond = 4, .graph = 2)),
			 QCU_ERR_MemoryAllocation);
	assert_int_equal(usage->sessions[1].used[LIMIT_GRAPHS], 2);
	assert_int_equal(ask(CMD(COND_DESTROY, cond_destroy, .cond = 3)), 0);
	assert_int_equal(ask(CMD(COND_DESTROY, cond_destroy, .cond = 2)), 0);
	assert_int_equal(usage->sessions[1].used[LIMIT_GRAPHS], 0);
	assert_int_equal(ask(CMD(COND_CREATE, cond_create, .cond = 4)), 0);
}

static int device_limit(uint32_t limit, uint64_t value)
{
	return ask(CMD(LIMIT_SET, limit_set, .limit = limit, .value = value));
}

static uint64_t device_limit_now(uint32_t limit)
{
	struct qCUcmd c = CMD(LIMIT_GET, limit_get, .limit = limit);

	assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	return c.limit_get.value;
}

/* The heap and the stacks of kernels: a guest could ask for all of the GPU's memory with them. */
static void device_limits(void **state)
{
	(void)state;
	limits.session[LIMIT_DEVICE_MEMORY] = 10 * MIB;
	mirror = new_mirror(1);
	assert_int_equal(device_limit(0, UINT64_MAX), QCU_ERR_InvalidValue);
	/* A heap gets at most what is left. */
	assert_int_equal(device_limit(2, 10 * MIB + 1), 0);
	assert_int_equal(memory_used(), 10 * MIB);
	assert_int_equal(device_limit(2, UINT64_MAX), 0);
	assert_int_equal(memory_used(), 10 * MIB);
	assert_int_equal(device_limit_now(2), 10 * MIB);
	assert_int_equal(device_limit(1, 1 * MIB), QCU_ERR_MemoryAllocation);
	assert_int_equal(device_limit(2, 8 * MIB), 0);
	assert_int_equal(memory_used(), 8 * MIB);
	assert_int_equal(device_limit(2, 11 * MIB), 0);
	assert_int_equal(memory_used(), 10 * MIB);
	assert_int_equal(device_limit(2, 4 * MIB), 0);
	assert_int_equal(memory_used(), 4 * MIB);
	/* A limit that the backend refuses. */
	assert_int_equal(device_limit(99, 1), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, 0)), 0);
	assert_int_equal(memory_used(), 0);
}

/* The buffer for the output of kernels is host memory here. */
static void print_buffer(void **state)
{
	(void)state;
	limits.session[LIMIT_PRINTED] = 1 * MIB;
	mirror = new_mirror(1);
	assert_int_equal(device_limit(1, 1 * MIB + 1), QCU_ERR_MemoryAllocation);
	assert_int_equal(device_limit(1, 512u << 10), 0);
	assert_int_equal(device_limit(1, 1 * MIB), 0);
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, 0)), 0);
}

static const char ptx[] = ".version 8.3\n.target sm_75\n.address_size 64\n"
			  ".visible .entry nothing()\n{\nret;\n}\n";

/*
 * The text that is made from an image counts in addition to the image: a packed image may be a
 * thousand times smaller.
 */
static void module_text(void **state)
{
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, sizeof(ptx)}, .module = 2);
	const struct qcu_seg image = {(uintptr_t)ptx, sizeof(ptx)};

	(void)state;
	limits.session[LIMIT_MODULE_BYTES] = 3 * sizeof(ptx);
	mirror = new_mirror(1);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &image, 1), 0);
	assert_in_range(usage->sessions[1].used[LIMIT_MODULE_BYTES], 2 * sizeof(ptx) - 2,
			2 * sizeof(ptx));
	c = CMD(MODULE_LOAD, module_load, .buf = {1, sizeof(ptx)}, .module = 3);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &image, 1), QCU_ERR_MemoryAllocation);
	assert_in_range(usage->sessions[1].used[LIMIT_MODULE_BYTES], 2 * sizeof(ptx) - 2,
			2 * sizeof(ptx));
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = 2)), 0);
	assert_int_equal(usage->sessions[1].used[LIMIT_MODULE_BYTES], 0);
	c = CMD(MODULE_LOAD, module_load, .buf = {1, sizeof(ptx)}, .module = 3);
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &image, 1), 0);
}

/*
 * Each of two mirrors of a VM has a software GPU of 64 MiB. Together they have no more than one
 * GPU.
 */
static void one_gpu(void **state)
{
	struct mirror *first;
	uint64_t p;

	(void)state;
	mirror = first = new_mirror(1);
	other = new_mirror(2);
	assert_int_equal(alloc(40 * MIB, &p), 0);
	mirror = other;
	assert_int_equal(mem_info().total, 64 * MIB);
	assert_int_equal(mem_info().free, 24 * MIB);
	assert_int_equal(alloc(25 * MIB, &p), QCU_ERR_MemoryAllocation);
	assert_int_equal(alloc(24 * MIB, &p), 0);
	mirror = first;
	assert_int_equal(mem_info().free, 0);
}

static int vm_use(unsigned int device, struct qcu_vm_use_desc *use, uint64_t len)
{
	struct qCUcmd c = CMD(VM_USE, vm_use, .buf = {1, len});
	const struct qcu_seg room = {(uintptr_t)use, len};

	memset(use, 0xff, sizeof(*use));
	c.device = (uint8_t)device;
	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, &room, 1);
}

/* What a program sees of the others in its VM: those that have used the device, and their memory.
 */
static void users(void **state)
{
	struct qcu_device_desc desc;
	const struct qcu_seg room = {(uintptr_t)&desc, sizeof(desc)};
	struct qCUcmd look = CMD(DEVICE_INFO, device_info, .buf = {1, sizeof(desc)});
	struct qcu_vm_use_desc use;
	struct mirror *first;
	uint64_t p;

	(void)state;
	limits.vm[LIMIT_DEVICE_MEMORY] = 50 * MIB;
	limits.session[LIMIT_DEVICE_MEMORY] = 45 * MIB;
	mirror = first = new_mirror(1);
	other = new_mirror(2);
	mir_begin(first, 1, 111);
	mir_begin(other, 2, 222);
	assert_int_equal(vm_use(1, &use, sizeof(use)), QCU_ERR_InvalidDevice);
	assert_int_not_equal(vm_use(0, &use, sizeof(use) - 1), 0);
	assert_int_equal(use.count, UINT32_MAX);

	/* Who only looks does not count. */
	look.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&look, NULL, &room, 1), 0);
	assert_int_equal(vm_use(0, &use, sizeof(use)), 0);
	assert_int_equal(use.total, 50 * MIB);
	assert_int_equal(use.used, 0);
	assert_int_equal(use.count, 0);
	assert_int_equal(use.busy_age, 0);

	assert_int_equal(alloc(40 * MIB, &p), 0);
	mirror = other;
	assert_int_equal(vm_use(0, &use, sizeof(use)), 0);
	assert_int_equal(use.used, 40 * MIB);
	assert_int_equal(use.count, 1);
	assert_int_equal(use.user[0].pid, 111);
	assert_int_equal(use.user[0].bytes, 40 * MIB);
	assert_int_equal(use.user[1].pid, 0);
	assert_int_equal(device_sync(), 0);
	assert_int_equal(vm_use(0, &use, sizeof(use)), 0);
	assert_int_equal(use.count, 2);
	assert_int_equal(use.user[1].pid, 222);
	assert_int_equal(use.user[1].bytes, 0);

	/* After a reset the program does not use the device any more; nor after its end. */
	mirror = first;
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, 0)), 0);
	assert_int_equal(vm_use(0, &use, sizeof(use)), 0);
	assert_int_equal(use.used, 0);
	assert_int_equal(use.count, 1);
	assert_int_equal(use.user[0].pid, 222);
	mir_destroy(other);
	other = NULL;
	usage_end(usage, 2);
	assert_int_equal(vm_use(0, &use, sizeof(use)), 0);
	assert_int_equal(use.count, 0);
}

static struct qcu_sensors sensors(void)
{
	struct qCUcmd c;

	do {
		c = CMD(SENSORS, sensors, 0);
		assert_int_equal(ask_with(&c, NULL, NULL, 0), 0);
	} while (c.sensors.known == QCU_SENSORS_SOON);
	return c.sensors;
}

/*
 * How busy each program of the VM keeps the device. Of what another mirror wrote nothing is
 * believed that cannot be.
 */
static void busy_users(void **state)
{
	struct qcu_vm_use_desc use;
	struct qcu_sensors now;

	(void)state;
	mirror = new_mirror(1);
	other = new_mirror(2);
	mir_begin(mirror, 1, 111);
	mir_begin(other, 2, 222);
	assert_int_equal(device_sync(), 0);
	budget_uses(&(struct budget){.usage = &usage->sessions[2]}, 0);
	/* Nobody has asked yet. */
	assert_int_equal(vm_use(0, &use, sizeof(use)), 0);
	assert_int_equal(use.busy_age, 0);
	atomic_store(&usage->sessions[3].busy[0][BUSY_KERNELS].v, UINT64_MAX);
	busy_begin(&usage->sessions[2].busy[0][BUSY_KERNELS], busy_now());
	now = sensors();
	assert_true(now.known >> QCU_SENSOR_busy & 1);
	assert_int_equal(now.busy, 100);
	assert_int_equal(now.busy_memory, 0);
	assert_int_equal(vm_use(0, &use, sizeof(use)), 0);
	assert_int_equal(use.count, 2);
	assert_int_not_equal(use.busy_age, 0);
	assert_int_equal(use.user[0].busy, 0);
	assert_int_equal(use.user[1].pid, 222);
	assert_int_equal(use.user[1].busy, 100);
	assert_int_equal(use.user[1].busy_memory, 0);
	busy_end(&usage->sessions[2].busy[0][BUSY_KERNELS], busy_now());
	while (sensors().busy)
		;
}

/* A mirror that shares with no other knows only itself. */
static void lonely_user(void **state)
{
	struct mir_config cfg = {.ops = &be_soft, .session = 7, .guest_pid = 777};
	struct qcu_vm_use_desc use;

	(void)state;
	assert_int_equal(mir_create(&mirror, &cfg), 0);
	assert_int_equal(device_sync(), 0);
	assert_int_equal(vm_use(0, &use, sizeof(use)), 0);
	assert_int_equal(use.count, 1);
	assert_int_equal(use.user[0].pid, 777);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, reset, end)
	static const struct CMUnitTest tests[] = {
		T(pooled_memory), T(kept_memory),   T(pools),	     T(arrays),	     T(textures),
		T(graphs),	  T(device_limits), T(print_buffer), T(module_text), T(one_gpu),
		T(users),	  T(lonely_user),   T(busy_users),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
