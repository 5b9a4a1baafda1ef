/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Modules, kernels and launches on the software GPU: what is refused at the call, which settings
 * are allowed, how many blocks fit, and the output of kernels.
 */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "qcu-device/base/complain.h"
#include "qcu-device/soft/gpu/soft.h"
#include "tests/unit/soft/test_soft_fake.h"

#define MAX_DYNAMIC 8u
#define CARVEOUT    9u

struct fixture {
	struct be *be;
	struct be_module *m;
	struct be_kernel *step, *bounded, *shared;
	struct be_stream *s;
	uint64_t count, slot, params[3];
	struct be_launch l;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	/* The numbers below are those of this capability. */
	setenv("QCU_SOFT_SM", "75", 1);
	f->be = fake_open(2, 16u << 20);
	f->m = fake_module(f->be);
	f->step = fake_kernel(f->be, f->m, "step");
	f->bounded = fake_kernel(f->be, f->m, "bounded");
	f->shared = fake_kernel(f->be, f->m, "shared");
	f->s = be_soft.stream_legacy(f->be, 0);
	f->params[0] = (uintptr_t)&f->count;
	f->params[1] = (uintptr_t)&f->slot;
	f->l = (struct be_launch){
		.grid = {1, 1, 1},
		.block = {1, 1, 1},
		.params = f->params,
		.param_bytes = sizeof(f->params),
	};
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	be_soft.close(f->be);
	free(f);
	return 0;
}

static int launch(struct fixture *f, struct be_kernel *k)
{
	return be_soft.launch(f->be, k, &f->l, f->s);
}

static void expect_nothing_ran(struct fixture *f)
{
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_Success);
	assert_int_equal(f->count, 0);
}

static void refuses_bad_modules(void **state)
{
	struct fixture *f = *state;
	struct be_module *m;
	const char *bad = FAKE_PTX "bad";
	char said[512];
	size_t got;

	assert_int_equal(be_soft.module_load(f->be, NULL, 10, NULL, &m), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.module_load(f->be, "", 0, NULL, &m), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.module_load(f->be, "garbage", 7, NULL, &m),
			 QCU_ERR_InvalidKernelImage);
	assert_int_equal(be_soft.assert_read(f->be, said, sizeof(said), &got), QCU_ERR_Success);
	assert_int_equal(be_soft.module_load(f->be, bad, strlen(bad), NULL, &m),
			 QCU_ERR_InvalidPtx);
	assert_null(m);
	/* The program gets the reason on its own stderr. */
	assert_int_equal(be_soft.assert_read(f->be, said, sizeof(said) - 1, &got), QCU_ERR_Success);
	said[got] = '\0';
	assert_string_equal(said, "qCUDA software GPU: invalid PTX (PTX line 7): bad\n");
}

static void refuses_unknown_names(void **state)
{
	struct fixture *f = *state;
	uint64_t addr, size;
	struct be_kernel *k;

	assert_int_equal(be_soft.kernel_find(f->be, f->m, "nothing", &k),
			 QCU_ERR_InvalidDeviceFunction);
	assert_null(k);
	assert_int_equal(be_soft.kernel_find(f->be, f->m, "", &k), QCU_ERR_InvalidDeviceFunction);
	assert_int_equal(be_soft.var_find(f->be, 0, f->m, "step", &addr, &size),
			 QCU_ERR_InvalidSymbol);
	/* The same kernel is the same object. */
	assert_ptr_equal(fake_kernel(f->be, f->m, "step"), f->step);
}

static void refuses_bad_dimensions(void **state)
{
	static const struct {
		struct be_dim3 grid, block;
	} bad[] = {
		{{0, 1, 1}, {1, 1, 1}},
		{{1, 0, 1}, {1, 1, 1}},
		{{1, 1, 0}, {1, 1, 1}},
		{{1, 1, 1}, {0, 1, 1}},
		{{1, 1, 1}, {1, 0, 1}},
		{{1, 1, 1}, {1, 1, 0}},
		{{0x80000000u, 1, 1}, {1, 1, 1}},
		{{1, 65536, 1}, {1, 1, 1}},
		{{1, 1, 65536}, {1, 1, 1}},
		{{1, 1, 1}, {1025, 1, 1}},
		{{1, 1, 1}, {1, 1025, 1}},
		{{1, 1, 1}, {1, 1, 65}},
		{{1, 1, 1}, {1024, 2, 1}},
		{{1, 1, 1}, {32, 32, 2}},
		{{1, 1, 1}, {UINT32_MAX, UINT32_MAX, UINT32_MAX}},
		{{1, 1, 1}, {65536, 65536, 1}},
	};
	struct fixture *f = *state;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		f->l.grid = bad[i].grid;
		f->l.block = bad[i].block;
		assert_int_equal(launch(f, f->step), QCU_ERR_InvalidValue);
	}
	f->l.grid = (struct be_dim3){1, 1, 1};
	f->l.block = (struct be_dim3){129, 1, 1};
	assert_int_equal(launch(f, f->bounded), QCU_ERR_InvalidValue);
	expect_nothing_ran(f);
	f->l.block.x = 128;
	assert_int_equal(launch(f, f->bounded), QCU_ERR_Success);
	f->l.block = (struct be_dim3){16, 1, 64};
	f->l.grid = (struct be_dim3){0x7fffffff, 65535, 65535};
	assert_int_equal(launch(f, f->step), QCU_ERR_Success);
}

static void refuses_wrong_parameters(void **state)
{
	struct fixture *f = *state;

	f->l.param_bytes = 23;
	assert_int_equal(launch(f, f->step), QCU_ERR_InvalidValue);
	f->l.param_bytes = 25;
	assert_int_equal(launch(f, f->step), QCU_ERR_InvalidValue);
	f->l.param_bytes = 0;
	assert_int_equal(launch(f, f->step), QCU_ERR_InvalidValue);
	f->l.param_bytes = 24;
	f->l.params = NULL;
	assert_int_equal(launch(f, f->step), QCU_ERR_InvalidValue);
	f->l.params = f->params;
	f->l.flags = 0x80;
	assert_int_equal(launch(f, f->step), QCU_ERR_NotSupported);
	expect_nothing_ran(f);
}

static void refuses_too_much_shared_memory(void **state)
{
	struct fixture *f = *state;

	f->l.dynamic_shared = (48 << 10) + 1;
	assert_int_equal(launch(f, f->step), QCU_ERR_InvalidValue);
	f->l.dynamic_shared = UINT32_MAX;
	assert_int_equal(launch(f, f->step), QCU_ERR_InvalidValue);
	f->l.dynamic_shared = (44 << 10) + 1;
	assert_int_equal(launch(f, f->shared), QCU_ERR_InvalidValue);
	expect_nothing_ran(f);
	f->l.dynamic_shared = 44 << 10;
	assert_int_equal(launch(f, f->shared), QCU_ERR_Success);
	f->l.dynamic_shared = 48 << 10;
	assert_int_equal(launch(f, f->step), QCU_ERR_Success);
}

static void refuses_more_registers_than_there_are(void **state)
{
	struct fixture *f = *state;
	struct be_kernel *hungry = fake_kernel(f->be, f->m, "hungry");
	struct be_kernel *held = fake_kernel(f->be, f->m, "held");
	struct qcu_kernel_desc d;
	uint32_t n;

	/*
	 * 100 registers per thread are 3328 for a warp; a quarter of 65536 is enough for 4 warps.
	 */
	f->l.block = (struct be_dim3){1024, 1, 1};
	assert_int_equal(launch(f, hungry), QCU_ERR_LaunchOutOfResources);
	f->l.block = (struct be_dim3){19, 27, 1};
	assert_int_equal(launch(f, hungry), QCU_ERR_LaunchOutOfResources);
	f->l.flags = QCU_LAUNCH_COOPERATIVE;
	assert_int_equal(launch(f, hungry), QCU_ERR_LaunchOutOfResources);
	f->l.flags = 0;
	f->l.block = (struct be_dim3){801, 1, 1};
	assert_int_equal(launch(f, held), QCU_ERR_InvalidValue);
	expect_nothing_ran(f);
	assert_int_equal(be_soft.occupancy(f->be, 0, hungry, 513, 0, 0, &n), QCU_ERR_Success);
	assert_int_equal(n, 0);

	assert_int_equal(be_soft.kernel_desc(f->be, 0, hungry, &d), QCU_ERR_Success);
	assert_int_equal(d.regs, 100);
	assert_int_equal(d.max_threads, 512);
	f->l.block = (struct be_dim3){512, 1, 1};
	assert_int_equal(launch(f, hungry), QCU_ERR_Success);
	assert_int_equal(be_soft.occupancy(f->be, 0, hungry, 512, 0, 0, &n), QCU_ERR_Success);
	assert_int_equal(n, 1);
	assert_int_equal(be_soft.occupancy(f->be, 0, hungry, 160, 0, 0, &n), QCU_ERR_Success);
	assert_int_equal(n, 3);

	/* A kernel that declares its block size gets no more registers than fit. */
	assert_int_equal(be_soft.kernel_desc(f->be, 0, held, &d), QCU_ERR_Success);
	assert_int_equal(d.regs, 72);
	assert_int_equal(d.max_threads, 800);
	f->l.block = (struct be_dim3){800, 1, 1};
	assert_int_equal(launch(f, held), QCU_ERR_Success);
	assert_int_equal(be_soft.kernel_desc(f->be, 0, f->bounded, &d), QCU_ERR_Success);
	assert_int_equal(d.regs, 64);
	assert_int_equal(be_soft.occupancy(f->be, 0, f->bounded, 128, 0, 0, &n), QCU_ERR_Success);
	assert_int_equal(n, 8);
}

static int set(struct fixture *f, unsigned int dev, uint32_t attr, int value)
{
	return be_soft.kernel_set(f->be, dev, f->shared, attr, value);
}

static void shared_memory_can_be_raised_and_lowered(void **state)
{
	struct fixture *f = *state;
	struct qcu_kernel_desc d;

	assert_int_equal(set(f, 0, MAX_DYNAMIC, -1), QCU_ERR_InvalidValue);
	assert_int_equal(set(f, 0, MAX_DYNAMIC, (60 << 10) + 1), QCU_ERR_InvalidValue);
	assert_int_equal(set(f, 0, CARVEOUT, 101), QCU_ERR_InvalidValue);
	assert_int_equal(set(f, 0, CARVEOUT, -2), QCU_ERR_InvalidValue);
	assert_int_equal(set(f, 0, CARVEOUT, -1), QCU_ERR_Success);
	assert_int_equal(set(f, 0, CARVEOUT, 100), QCU_ERR_Success);
	assert_int_equal(set(f, 0, 77, 1), QCU_ERR_InvalidValue);
	assert_int_equal(set(f, 0, 14, 1), QCU_ERR_NotSupported);

	assert_int_equal(be_soft.kernel_desc(f->be, 0, f->shared, &d), QCU_ERR_Success);
	assert_int_equal(d.max_dynamic_shared, 44 << 10);
	assert_int_equal(set(f, 0, MAX_DYNAMIC, 60 << 10), QCU_ERR_Success);
	assert_int_equal(be_soft.kernel_desc(f->be, 0, f->shared, &d), QCU_ERR_Success);
	assert_int_equal(d.max_dynamic_shared, 60 << 10);
	/* Each device has its own attributes. */
	assert_int_equal(be_soft.kernel_desc(f->be, 1, f->shared, &d), QCU_ERR_Success);
	assert_int_equal(d.max_dynamic_shared, 44 << 10);
	f->l.dynamic_shared = 60 << 10;
	assert_int_equal(launch(f, f->shared), QCU_ERR_Success);
	assert_int_equal(set(f, 0, MAX_DYNAMIC, 100), QCU_ERR_Success);
	f->l.dynamic_shared = 128;
	assert_int_equal(launch(f, f->shared), QCU_ERR_InvalidValue);
}

static void a_kernel_describes_itself(void **state)
{
	struct fixture *f = *state;
	struct qcu_param p[4] = {{99, 99}, {99, 99}, {99, 99}, {99, 99}};
	struct qcu_kernel_desc d;
	uint32_t n = 0;

	assert_int_equal(be_soft.kernel_params(f->be, f->step, NULL, 0, &n), QCU_ERR_Success);
	assert_int_equal(n, 3);
	assert_int_equal(be_soft.kernel_params(f->be, f->step, p, 2, &n), QCU_ERR_Success);
	assert_int_equal(n, 3);
	assert_int_equal(p[1].offset, 8);
	assert_int_equal(p[1].size, 8);
	assert_int_equal(p[2].size, 99);
	assert_int_equal(be_soft.kernel_params(f->be, f->step, p, 4, &n), QCU_ERR_Success);
	assert_int_equal(p[2].offset, 16);
	assert_int_equal(p[3].size, 99);
	assert_int_equal(be_soft.kernel_desc(f->be, 0, f->bounded, &d), QCU_ERR_Success);
	assert_int_equal(d.max_threads, 128);
	assert_int_equal(d.ptx_version, 75);
	assert_int_equal(d.binary_version, 75);
	assert_int_equal(d.params, 3);
}

static uint32_t occupancy(struct fixture *f, struct be_kernel *k, uint32_t threads, uint64_t shared)
{
	uint32_t n = 99;

	assert_int_equal(be_soft.occupancy(f->be, 0, k, threads, shared, 0, &n), QCU_ERR_Success);
	return n;
}

static void occupancy_is_what_fits(void **state)
{
	struct fixture *f = *state;
	uint32_t n;

	assert_int_equal(be_soft.occupancy(f->be, 0, f->step, 0, 0, 0, &n), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.occupancy(f->be, 0, f->step, UINT32_MAX, 0, 0, &n),
			 QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.occupancy(f->be, 0, f->step, 32, 0, 2, &n), QCU_ERR_InvalidValue);
	assert_int_equal(occupancy(f, f->step, 1025, 0), 0);
	assert_int_equal(occupancy(f, f->step, 32, 65537), 0);
	assert_int_equal(occupancy(f, f->step, 32, UINT64_MAX), 0);
	assert_int_equal(occupancy(f, f->step, 1, 0), 16);
	assert_int_equal(occupancy(f, f->step, 256, 0), 4);
	assert_int_equal(occupancy(f, f->step, 1024, 0), 1);
	assert_int_equal(occupancy(f, f->step, 33, 0), 16);
	assert_int_equal(occupancy(f, f->step, 32, 32 << 10), 2);
	assert_int_equal(occupancy(f, f->shared, 32, 60 << 10), 1);
	assert_int_equal(occupancy(f, f->shared, 32, (60 << 10) + 1), 0);
}

static void a_cooperative_grid_must_fit(void **state)
{
	struct fixture *f = *state;

	f->l.flags = QCU_LAUNCH_COOPERATIVE;
	f->l.block.x = 256;
	f->l.grid.x = 9; /* 4 fit on each of 2 multiprocessors */
	assert_int_equal(launch(f, f->step), QCU_ERR_CooperativeLaunchTooLarge);
	f->l.grid = (struct be_dim3){0x7fffffff, 65535, 65535};
	assert_int_equal(launch(f, f->step), QCU_ERR_CooperativeLaunchTooLarge);
	expect_nothing_ran(f);
	f->l.grid = (struct be_dim3){8, 1, 1};
	assert_int_equal(launch(f, f->step), QCU_ERR_Success);
}

static void parameters_are_read_at_the_call(void **state)
{
	struct fixture *f = *state;

	f->params[2] = 20;
	assert_int_equal(launch(f, f->step), QCU_ERR_Success);
	assert_int_equal(launch(f, f->step), QCU_ERR_Success);
	memset(f->params, 0xee, sizeof(f->params));
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_Success);
	assert_int_equal(f->slot, 2);
}

/* Each device has its own variables. */
static void a_module_is_on_all_devices(void **state)
{
	struct fixture *f = *state;
	struct be_kernel *store = fake_kernel(f->be, f->m, "store");
	uint64_t v[2], size;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		assert_int_equal(be_soft.var_find(f->be, i, f->m, "var", &v[i], &size), 0);
		assert_int_equal(fake_launch(f->be, store, be_soft.stream_legacy(f->be, i), v[i],
					     i + 1, 0),
				 QCU_ERR_Success);
		assert_int_equal(be_soft.device_sync(f->be, i), QCU_ERR_Success);
	}
	assert_int_not_equal(v[0], v[1]);
	assert_int_equal(*(uint64_t *)(uintptr_t)v[0], 1);
	assert_int_equal(*(uint64_t *)(uintptr_t)v[1], 2);
	assert_int_equal(atomic_load(&fake_modules), 2);
	assert_int_equal(be_soft.module_unload(f->be, f->m), QCU_ERR_Success);
	assert_int_equal(atomic_load(&fake_modules), 0);
}

static void unloading_waits_for_kernels(void **state)
{
	struct fixture *f = *state;

	f->params[2] = 30;
	assert_int_equal(launch(f, f->step), QCU_ERR_Success);
	assert_int_equal(be_soft.module_unload(f->be, f->m), QCU_ERR_Success);
	assert_int_equal(f->slot, 1);
}

static void print(struct fixture *f, size_t len, unsigned int letter)
{
	struct be_kernel *k = fake_kernel(f->be, f->m, "print");

	assert_int_equal(fake_launch(f->be, k, f->s, len, letter, 0), QCU_ERR_Success);
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_Success);
}

static void what_kernels_print_can_be_read(void **state)
{
	struct fixture *f = *state;
	char buf[16] = "";
	size_t got = 1;

	assert_int_equal(be_soft.print_read(f->be, NULL, 0, &got), QCU_ERR_Success);
	assert_int_equal(got, 0);
	assert_int_equal(be_soft.print_read(f->be, buf, sizeof(buf), &got), QCU_ERR_Success);
	assert_int_equal(got, 0);
	print(f, 4, 0);
	print(f, 3, 1);
	assert_int_equal(be_soft.print_read(f->be, NULL, 0, &got), QCU_ERR_Success);
	assert_int_not_equal(got, 0);
	assert_int_equal(be_soft.print_read(f->be, buf, 5, &got), QCU_ERR_Success);
	assert_int_equal(got, 5);
	assert_memory_equal(buf, "aaa\nb", 5);
	assert_int_equal(be_soft.print_read(f->be, buf, sizeof(buf), &got), QCU_ERR_Success);
	assert_int_equal(got, 2);
	assert_memory_equal(buf, "b\n", 2);
	assert_int_equal(be_soft.print_read(f->be, NULL, 0, &got), QCU_ERR_Success);
	assert_int_equal(got, 0);
}

/* Output that is not read is lost from the front, in whole lines, and nothing else is lost. */
static void too_much_output_loses_the_oldest_lines(void **state)
{
	enum { LINE = 1000003, LINES = 12 };
	struct fixture *f = *state;
	char *buf = malloc(16u << 20);
	size_t got, at = 0;
	unsigned int i, first;

	for (i = 0; i < LINES; i++)
		print(f, LINE, i);
	assert_int_equal(be_soft.print_read(f->be, buf, 16u << 20, &got), QCU_ERR_Success);
	assert_int_equal(got % LINE, 0);
	assert_int_equal(got / LINE, 8);
	first = LINES - 8;
	for (i = first; i < LINES; i++, at += LINE) {
		assert_int_equal(buf[at], 'a' + (int)i);
		assert_int_equal(buf[at + LINE - 2], 'a' + (int)i);
		assert_int_equal(buf[at + LINE - 1], '\n');
	}
	/* An output that is larger than the buffer keeps its end. */
	print(f, 9u << 20, 3);
	assert_int_equal(be_soft.print_read(f->be, buf, 16u << 20, &got), QCU_ERR_Success);
	assert_int_equal(got, 8u << 20);
	assert_int_equal(buf[got - 1], '\n');
	free(buf);
}

static void output_is_there_after_an_error(void **state)
{
	struct fixture *f = *state;
	struct be_kernel *k = fake_kernel(f->be, f->m, "status");
	char buf[8];
	size_t got;

	print(f, 4, 2);
	assert_int_equal(fake_launch(f->be, k, f->s, PTX_ASSERT, 0, 0), QCU_ERR_Success);
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_Assert);
	assert_int_equal(be_soft.print_read(f->be, buf, sizeof(buf), &got), QCU_ERR_Success);
	assert_int_equal(got, 4);
}

static unsigned int lines_in(FILE *f)
{
	unsigned int n = 0;
	int c;

	rewind(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	return n;
}

/* Some lines at once, then one each second, and one about lines that are left out. */
static void a_guest_cannot_fill_the_log(void **state)
{
	struct fixture *f = *state;
	int err = dup(STDERR_FILENO), i;
	FILE *log = tmpfile();
	struct timespec start, end;
	unsigned int lines;

	assert_non_null(log);
	assert_true(err >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (i = 0; i < 2000; i++)
		if (set(f, 0, 14, 1) != QCU_ERR_NotSupported)
			break;
	clock_gettime(CLOCK_MONOTONIC, &end);
	dup2(err, STDERR_FILENO);
	close(err);
	lines = lines_in(log);
	fclose(log);
	assert_int_equal(i, 2000);
	assert_in_range(lines, 1,
			COMPLAIN_BURST + 2 * (unsigned int)(end.tv_sec - start.tv_sec + 2));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(refuses_bad_modules),
		T(refuses_unknown_names),
		T(refuses_bad_dimensions),
		T(refuses_wrong_parameters),
		T(refuses_too_much_shared_memory),
		T(refuses_more_registers_than_there_are),
		T(shared_memory_can_be_raised_and_lowered),
		T(a_kernel_describes_itself),
		T(occupancy_is_what_fits),
		T(a_cooperative_grid_must_fit),
		T(parameters_are_read_at_the_call),
		T(a_module_is_on_all_devices),
		T(unloading_waits_for_kernels),
		T(what_kernels_print_can_be_read),
		T(too_much_output_loses_the_oldest_lines),
		T(output_is_there_after_an_error),
		T(a_guest_cannot_fill_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
