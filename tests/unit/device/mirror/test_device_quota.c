// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A guest that wants more than it may have. Each limit refuses the command that would exceed it,
 * before the backend sees the command. What the guest gives back, it can have again.
 */
#define _GNU_SOURCE
#include "tests/unit/device/memory/test_device_ram.h"

#include "qcu-device/base/usage.h"

static struct usage *usage;
static struct limits limits;

/* Starts a mirror with the current limits, as session 2. */
static void begin(void)
{
	struct mir_config cfg = {
		.ops = &fake_ops,
		.session = 2,
		.mem = &mem,
		.limits = &limits,
		.usage = usage,
	};

	fake_reset();
	assert_int_equal(mir_create(&mirror, &cfg), 0);
}

static int reset(void **state)
{
	(void)state;
	limits = (struct limits){.vm = {0}};
	usage = usage_new(-1);
	return !usage;
}

/* All counts must be back at zero. */
static int end(void **state)
{
	unsigned int i, wrong = 0;

	(void)state;
	mir_destroy(mirror);
	for (i = 0; i < LIMIT_KINDS; i++) {
		if (!usage->sessions[2].used[i])
			continue;
		print_error("%s: %llu left\n", limit_name((enum limit)i),
			    (unsigned long long)usage->sessions[2].used[i]);
		wrong++;
	}
	for (i = 0; i < USAGE_DEVICES; i++)
		wrong += usage->sessions[2].memory[i] != 0;
	usage_free(usage);
	return wrong || fake.objects || fake.allocations || fake.registrations;
}

static uint64_t used(enum limit what)
{
	return usage->sessions[2].used[what];
}

static int stream(uint32_t id)
{
	return ask(CMD(STREAM_CREATE, stream_create, .stream = id));
}

static void streams(void **state)
{
	struct qCUcmd mine = CMD(STREAM_SYNC, stream_sync, .stream = QCU_STREAM_PER_THREAD);

	(void)state;
	limits.session[LIMIT_STREAMS] = 3;
	begin();
	/* A command that is refused for another reason uses nothing up. */
	assert_int_equal(stream(1), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(ask(CMD(STREAM_CREATE, stream_create, .stream = 2, .flags = 8)),
			 QCU_ERR_InvalidValue);
	assert_int_equal(used(LIMIT_STREAMS), 0);
	assert_int_equal(stream(2), 0);
	assert_int_equal(stream(2), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(stream(3), 0);
	assert_int_equal(ask(mine), 0);
	assert_int_equal(used(LIMIT_STREAMS), 3);
	assert_int_equal(stream(4), QCU_ERR_MemoryAllocation);
	assert_int_equal(fake.objects, 3);
	mine.tid = 9;
	assert_int_equal(ask(mine), QCU_ERR_MemoryAllocation);
	assert_int_equal(fake.objects, 3);
	assert_int_equal(ask(CMD(STREAM_DESTROY, stream_destroy, .stream = 3)), 0);
	assert_int_equal(ask(mine), 0);
	assert_int_equal(stream(4), QCU_ERR_MemoryAllocation);
	mine = CMD(THREAD_EXIT, thread_exit, 0);
	mine.tid = 9;
	assert_int_equal(ask(mine), 0);
	assert_int_equal(stream(4), 0);
	assert_int_equal(usage->sessions[2].refused[LIMIT_STREAMS], 3);
}

static int event(uint32_t id)
{
	return ask(CMD(EVENT_CREATE, event_create, .event = id));
}

static void events(void **state)
{
	(void)state;
	limits.session[LIMIT_EVENTS] = 2;
	begin();
	assert_int_equal(event(2), 0);
	assert_int_equal(event(QCU_ID_MAX), 0);
	assert_int_equal(event(3), QCU_ERR_MemoryAllocation);
	assert_int_equal(fake.objects, 2);
	assert_int_equal(ask(CMD(EVENT_DESTROY, event_destroy, .event = 2)), 0);
	assert_int_equal(event(3), 0);
	assert_int_equal(event(4), QCU_ERR_MemoryAllocation);
	/* A reset gives back what the device had. */
	assert_int_equal(ask(CMD(DEVICE_RESET, device_reset, 0)), 0);
	assert_int_equal(used(LIMIT_EVENTS), 0);
	assert_int_equal(event(4), 0);
}

/* Resources of the VM's other sessions count, too. */
static void others(void **state)
{
	(void)state;
	limits.vm[LIMIT_EVENTS] = 5;
	limits.vm[LIMIT_DEVICE_MEMORY] = 4096;
	begin();
	atomic_store(&usage->sessions[7].used[LIMIT_EVENTS], 4);
	atomic_store(&usage->sessions[7].memory[0], 4096 - 512);
	assert_int_equal(event(2), 0);
	assert_int_equal(event(3), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(MALLOC, malloc, .size = 513)), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(MALLOC, malloc, .size = 512)), 0);
	usage_end(usage, 7);
	assert_int_equal(event(3), 0);
	assert_int_equal(ask(CMD(MALLOC, malloc, .size = 513)), 0);
}

#define IMAGE 4096u

static int load(uint32_t id, uint64_t len)
{
	struct qCUcmd c = CMD(MODULE_LOAD, module_load, .buf = {1, len}, .module = id);
	const struct qcu_seg seg = {0, len};

	c.flags = QCU_F_SEGS;
	return ask_with(&c, NULL, &seg, 1);
}

static int find(uint32_t module, uint32_t id)
{
	struct qCUcmd c = CMD(KERNEL_FIND, kernel_find, .buf = {1, sizeof(FAKE_KERNEL) - 1},
			      .module = module, .kernel = id);

	c.flags = QCU_F_MSG;
	return ask_with(&c, FAKE_KERNEL, NULL, 0);
}

static void modules(void **state)
{
	(void)state;
	limits.session[LIMIT_MODULES] = 3;
	limits.session[LIMIT_MODULE_BYTES] = 2 * IMAGE + 100;
	limits.session[LIMIT_KERNELS] = 2;
	begin();
	memset(ram, 0, IMAGE);
	assert_int_equal(load(2, IMAGE), QCU_ERR_InvalidKernelImage);
	assert_int_equal(used(LIMIT_MODULES) | used(LIMIT_MODULE_BYTES), 0);
	memcpy(ram, FAKE_IMAGE, sizeof(FAKE_IMAGE));
	assert_int_equal(load(2, 2 * IMAGE + 101), QCU_ERR_MemoryAllocation);
	assert_int_equal(load(2, 2 * IMAGE), 0);
	assert_int_equal(load(3, 101), QCU_ERR_MemoryAllocation);
	assert_int_equal(load(3, 50), 0);
	assert_int_equal(load(4, 50), 0);
	assert_int_equal(load(5, 4), QCU_ERR_MemoryAllocation);
	assert_int_equal(fake.objects, 3);
	assert_int_equal(find(2, 2), 0);
	assert_int_equal(find(2, 2), QCU_ERR_InvalidResourceHandle);
	assert_int_equal(find(2, 3), 0);
	assert_int_equal(find(3, 4), QCU_ERR_MemoryAllocation);
	assert_int_equal(ask(CMD(MODULE_UNLOAD, module_unload, .module = 2)), 0);
	assert_int_equal(find(3, 4), 0);
	assert_int_equal(load(2, 2 * IMAGE), 0);
	assert_int_equal(usage->sessions[2].memory[0], 2 * IMAGE + 2 * 512);
}

/*
 * As many modules as there are numbers. Before the limit, these were 65,534 modules of up to 1 GiB
 * each.
 */
static void module_flood(void **state)
{
	uint32_t id = QCU_ID_FIRST;
	int rc;

	(void)state;
	begin();
	memcpy(ram, FAKE_IMAGE, sizeof(FAKE_IMAGE));
	while (!(rc = load(id, 64)))
		id++;
	assert_int_equal(rc, QCU_ERR_MemoryAllocation);
	assert_int_equal(id - QCU_ID_FIRST, 16384);
	assert_int_equal(fake.objects, 16384);
}

static int alloc(uint64_t size, unsigned int device, uint64_t *ptr)
{
	struct qCUcmd c = CMD(MALLOC, malloc, .size = size);
	int rc;

	c.device = (uint8_t)device;
	rc = ask_with(&c, NULL, NULL, 0);
	*ptr = c.malloc.ptr;
	return rc;
}

static void memory(void **state)
{
	struct qCUcmd info = CMD(MEM_INFO, mem_info, .free = 0);
	uint64_t p, q, other;

	(void)state;
	limits.session[LIMIT_DEVICE_MEMORY] = 1500;
	limits.session[LIMIT_ALLOCATIONS] = 3;
	begin();
	memset(info.body, 0, sizeof(info.body));
	assert_int_equal(alloc(UINT64_MAX, 0, &p), QCU_ERR_MemoryAllocation);
	assert_int_equal(alloc(1501, 0, &p), QCU_ERR_MemoryAllocation);
	assert_int_equal(fake.allocations, 0);
	assert_int_equal(alloc(0, 0, &p), 0);
	assert_int_equal(alloc(1000, 0, &p), 0);
	assert_int_equal(usage->sessions[2].memory[0], 1024);
	/*
	 * The guest sees its quota as the size of the memory. The GPU has 2000 bytes, of which 1000
	 * are free.
	 */
	assert_int_equal(ask_with(&info, NULL, NULL, 0), 0);
	assert_int_equal(info.mem_info.total, 1500);
	assert_int_equal(info.mem_info.free, 1500 - 1024);
	assert_int_equal(alloc(513, 0, &q), QCU_ERR_MemoryAllocation);
	assert_int_equal(q, 0);
	assert_int_equal(alloc(1500, 1, &other), QCU_ERR_MemoryAllocation);
	assert_int_equal(alloc(1024, 1, &other), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = p + 1)), QCU_ERR_InvalidValue);
	assert_int_equal(ask(CMD(FREE, free, .ptr = p)), 0);
	assert_int_equal(ask(CMD(FREE, free, .ptr = p)), QCU_ERR_InvalidValue);
	assert_int_equal(usage->sessions[2].memory[0], 0);
	assert_int_equal(alloc(1, 0, &p), 0);
	assert_int_equal(alloc(1, 0, &p), 0);
	/* Many small allocations cost the host memory, too. */
	assert_int_equal(alloc(1, 1, &q), QCU_ERR_MemoryAllocation);
	assert_int_equal(fake.allocations, 3);
	assert_int_equal(ask(CMD(FREE, free, .ptr = other)), 0);
	assert_int_equal(alloc(1, 1, &q), 0);
}

/* The backend has no memory: nothing stays counted. */
static void backend_fails(void **state)
{
	uint64_t p;

	(void)state;
	begin();
	assert_int_equal(alloc(2ull << 30, 0, &p), QCU_ERR_MemoryAllocation);
	assert_int_equal(usage->sessions[2].memory[0], 0);
	assert_int_equal(used(LIMIT_ALLOCATIONS), 0);
}

static void description(void **state)
{
	struct qCUcmd c = CMD(DEVICE_INFO, device_info, .buf = {1, sizeof(struct qcu_device_desc)});
	const struct qcu_seg seg = {0, sizeof(struct qcu_device_desc)};
	struct qcu_device_desc d;

	(void)state;
	limits.vm[LIMIT_DEVICE_MEMORY] = 12345;
	begin();
	c.flags = QCU_F_SEGS;
	assert_int_equal(ask_with(&c, NULL, &seg, 1), 0);
	memcpy(&d, ram, sizeof(d));
	assert_int_equal(d.total_mem, 12345);
}

/*
 * Maps the same page again and again. The attack made 64 MiB of memory fill 64 GiB of page tables.
 */
static void one_page_many_times(void **state)
{
	static struct qcu_seg segs[QCU_SEGS_MAX];
	const uint64_t len = QCU_SEGS_MAX * PAGE, most = 2 * RAM + (256ull << 20);
	uint64_t va = VA;
	unsigned int i;
	int rc;

	(void)state;
	for (i = 0; i < QCU_SEGS_MAX; i++)
		segs[i] = (struct qcu_seg){(i & 1) * PAGE, PAGE};
	begin();
	assert_int_equal(used(LIMIT_MAPPED), 0);
	while (!(rc = map(va, segs, QCU_SEGS_MAX)))
		va += len;
	assert_int_equal(rc, QCU_ERR_MemoryAllocation);
	assert_int_equal((va - VA) / len, most / len);
	assert_int_equal(used(LIMIT_MAPPED), va - VA);
	assert_true(fake.registered_bytes <= most);
	assert_int_equal(unmap(VA, len), 0);
	assert_int_equal(used(LIMIT_MAPPED), va - VA - len);
	assert_int_equal(map(VA, segs, QCU_SEGS_MAX), 0);
	assert_int_equal(map(va, segs, QCU_SEGS_MAX), QCU_ERR_MemoryAllocation);
	/* The refused command has not used up the rest. */
	assert_int_equal(map(va, segs, 1), 0);
	assert_int_equal(unmap(VA, va - VA + PAGE), 0);
	assert_int_equal(used(LIMIT_MAPPED), 0);
}

/* Many sessions of the VM do the same. */
static void mapped_by_others(void **state)
{
	const struct qcu_seg seg = {0, 16 * PAGE};

	(void)state;
	limits.vm[LIMIT_MAPPED] = 100 * PAGE;
	begin();
	atomic_store(&usage->sessions[9].used[LIMIT_MAPPED], 90 * PAGE);
	assert_int_equal(map(VA, &seg, 1), QCU_ERR_MemoryAllocation);
	assert_int_equal(used(LIMIT_MAPPED), 0);
	assert_int_equal(fake.registrations, 0);
	usage_end(usage, 9);
	assert_int_equal(map(VA, &seg, 1), 0);
	assert_int_equal(unmap(VA, seg.len), 0);
}

/* The guest may have many threads. The mirror's threads are limited. */
static void lanes(void **state)
{
	struct question held[2] = {
		{.req.cmd = CMD(EVENT_SYNC, event_sync, .event = 2)},
		{.req.cmd = CMD(EVENT_SYNC, event_sync, .event = 2)},
	};
	struct qCUcmd c = CMD(INFO, info, .devices = 0);
	struct question more[64];
	unsigned int i;

	(void)state;
	limits.session[LIMIT_LANES] = 4;
	begin();
	assert_int_equal(event(2), 0);
	assert_int_equal(ask(CMD(EVENT_RECORD, event_record, .event = 2)), 0);
	fake.hold = true;
	for (i = 0; i < 2; i++) {
		held[i].req.cmd.tid = 100 + i;
		assert_true(ask_begin(&held[i]));
	}
	/* Some commands wait behind those two, and none is lost. */
	memset(c.body, 0, sizeof(c.body));
	for (i = 0; i < 64; i++) {
		more[i] = (struct question){.req.cmd = c};
		more[i].req.cmd.tid = 1000 + 4 * i;
		assert_true(ask_begin(&more[i]));
	}
	assert_in_range(used(LIMIT_LANES), 1, 4);
	fake.hold = false;
	for (i = 0; i < 2; i++)
		assert_int_equal(ask_end(&held[i]), 0);
	for (i = 0; i < 64; i++)
		assert_int_equal(ask_end(&more[i]), 0);
	assert_int_equal(used(LIMIT_LANES), 4);
}

/* If the VM has no lanes left, a session still has one. */
static void last_lane(void **state)
{
	struct qCUcmd c = CMD(INFO, info, .devices = 0);
	unsigned int i;

	(void)state;
	limits.vm[LIMIT_LANES] = 10;
	begin();
	memset(c.body, 0, sizeof(c.body));
	atomic_store(&usage->sessions[5].used[LIMIT_LANES], 10);
	for (i = 0; i < 8; i++) {
		c.tid = 1 + i;
		assert_int_equal(ask(c), 0);
	}
	assert_int_equal(used(LIMIT_LANES), 0);
	usage_end(usage, 5);
	/* A known thread stays on its lane. A new thread gets a lane of its own. */
	c.tid = 77;
	assert_int_equal(ask(c), 0);
	assert_int_equal(used(LIMIT_LANES), 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, reset, end)
	static const struct CMUnitTest tests[] = {
		T(streams),	     T(events),	      T(others),
		T(modules),	     T(module_flood), T(memory),
		T(backend_fails),    T(description),  T(one_page_many_times),
		T(mapped_by_others), T(lanes),	      T(last_lane),
	};
#undef T

	return cmocka_run_group_tests(tests, make_ram, NULL);
}
