/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The whole software GPU, runtime and PTX machine together, with fat binaries from nvcc: one
 * program in one unit, and one in two units that are built with -rdc=true and linked here.
 */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "qcu-device/backend/backend.h"

#define OPTIONS "-gencode arch=compute_75,code=compute_75"

static const char whole[] = "#include <cassert>\n"
			    "#include <cstdio>\n"
			    "extern \"C\" {\n"
			    "__device__ int factor = 3;\n"
			    "__constant__ int offset = 100;\n"
			    "__global__ void scale(int *p, int n) {\n"
			    "	int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
			    "	if (i < n) p[i] = p[i] * factor + offset;\n"
			    "}\n"
			    "__global__ void say(int n) { printf(\"n is %d\\n\", n); }\n"
			    "__global__ void check(int n) { assert(n == 5); }\n"
			    "__global__ void poke(int *p) { *p = 1; }\n"
			    "}\n";

/* Both units have a private string, an inline function and a static variable of the same name. */
static const char unit_a[] = "#include <cstdio>\n"
			     "extern __device__ int twice(int);\n"
			     "extern __device__ int far_away;\n"
			     "static __device__ int hidden = 1000;\n"
			     "inline __device__ __noinline__ int both(int x) { return x + 7; }\n"
			     "extern \"C\" __global__ void first(int *p) {\n"
			     "	p[0] = twice(p[0]) + both(far_away) + hidden;\n"
			     "	printf(\"first %d\\n\", p[0]);\n"
			     "}\n";
static const char unit_b[] = "#include <cstdio>\n"
			     "__device__ int far_away = 20;\n"
			     "static __device__ int hidden = 2000;\n"
			     "inline __device__ __noinline__ int both(int x) { return x + 7; }\n"
			     "__device__ int twice(int x) { return 2 * x; }\n"
			     "extern \"C\" __global__ void second(int *p) {\n"
			     "	p[0] = both(p[0]) + hidden;\n"
			     "	printf(\"second %d\\n\", p[0]);\n"
			     "}\n";

/* 120 values are needed in each round of a loop. */
static const char hungry[] =
	"#define TEN(f, n) f(n \"0\") f(n \"1\") f(n \"2\") f(n \"3\") f(n \"4\") \\\n"
	"	f(n \"5\") f(n \"6\") f(n \"7\") f(n \"8\") f(n \"9\")\n"
	"#define EACH(f) TEN(f, \"1\") TEN(f, \"2\") TEN(f, \"3\") TEN(f, \"4\") \\\n"
	"	TEN(f, \"5\") TEN(f, \"6\") TEN(f, \"7\") TEN(f, \"8\") TEN(f, \"9\") \\\n"
	"	TEN(f, \"10\") TEN(f, \"11\") TEN(f, \"12\")\n"
	"#define LOAD(n) \"ld.volatile.global.u32 v\" n \", [%0];\"\n"
	"#define STORE(n) \"st.volatile.global.u32 [%0], v\" n \";\"\n"
	"extern \"C\" __global__ void hungry(int *p) {\n"
	"	asm volatile(\"{ .reg .b32 v<130>, left; .reg .pred more; mov.u32 left, 3;\"\n"
	"		EACH(LOAD) \"again:\" EACH(STORE) \"sub.u32 left, left, 1;\"\n"
	"		\"setp.ne.u32 more, left, 0; @more bra again; }\" : : \"l\"(p));\n"
	"}\n";

static char nvcc[PATH_MAX];

static unsigned char *compile(const char *source, const char *options, size_t *len)
{
	char dir[] = "/tmp/qcu-run-XXXXXX", command[PATH_MAX * 2], path[64];
	unsigned char *p = malloc(1 << 20);
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/t.cu", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(source, f);
	fclose(f);
	snprintf(command, sizeof(command), "%s -fatbin %s -o %s/t.fatbin %s/t.cu", nvcc, options,
		 dir, dir);
	assert_int_equal(system(command), 0);
	snprintf(path, sizeof(path), "%s/t.fatbin", dir);
	f = fopen(path, "rb");
	assert_non_null(f);
	*len = fread(p, 1, 1 << 20, f);
	fclose(f);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	assert_int_equal(system(command), 0);
	return p;
}

struct fixture {
	struct be *be;
	struct be_stream *s;
};

static void need_nvcc(void)
{
	const char *home = getenv("CUDA_HOME");

	snprintf(nvcc, sizeof(nvcc), "%s/bin/nvcc", home ? home : "/usr/local/cuda");
	if (access(nvcc, X_OK)) {
		print_message("skipped: no %s\n", nvcc);
		skip();
	}
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct be_options opt = {.vram = 64u << 20};

	assert_int_equal(be_soft.open(&f->be, &opt), QCU_ERR_Success);
	f->s = be_soft.stream_legacy(f->be, 0);
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

static struct be_module *load(struct fixture *f, const void *image, size_t len)
{
	struct be_module *m;

	assert_int_equal(be_soft.module_load(f->be, image, len, NULL, &m), QCU_ERR_Success);
	return m;
}

static void launch(struct fixture *f, struct be_module *m, const char *name, uint32_t grid,
		   uint32_t block, const void *params, size_t param_bytes)
{
	struct be_launch l = {
		.grid = {grid, 1, 1},
		.block = {block, 1, 1},
		.params = params,
		.param_bytes = param_bytes,
	};
	struct be_kernel *k;

	assert_int_equal(be_soft.kernel_find(f->be, m, name, &k), QCU_ERR_Success);
	assert_int_equal(be_soft.launch(f->be, k, &l, f->s), QCU_ERR_Success);
}

static void expect_output(struct fixture *f, const char *text)
{
	char buf[256] = "";
	size_t got;

	assert_int_equal(be_soft.print_read(f->be, buf, sizeof(buf) - 1, &got), QCU_ERR_Success);
	assert_string_equal(buf, text);
}

static void runs_a_program_of_one_unit(void **state)
{
	enum { N = 10000 };
	struct fixture *f = *state;
	struct {
		uint64_t p;
		int32_t n;
	} params = {.n = N};
	struct be_module *m;
	unsigned char *image;
	uint64_t var, size;
	static int32_t data[N];
	int32_t i, n = 42, factor = 5;
	size_t len;

	need_nvcc();
	image = compile(whole, OPTIONS, &len);
	m = load(f, image, len);
	free(image);
	for (i = 0; i < N; i++)
		data[i] = i;
	assert_int_equal(be_soft.mem_alloc(f->be, 0, sizeof(data), &params.p), QCU_ERR_Success);
	assert_int_equal(be_soft.copy_h2d(f->be, params.p, data, sizeof(data), f->s), 0);
	launch(f, m, "scale", (N + 127) / 128, 128, &params, 12);
	assert_int_equal(be_soft.var_find(f->be, 0, m, "factor", &var, &size), QCU_ERR_Success);
	assert_int_equal(size, 4);
	assert_int_equal(be_soft.copy_h2d(f->be, var, &factor, 4, f->s), QCU_ERR_Success);
	launch(f, m, "scale", (N + 127) / 128, 128, &params, 12);
	assert_int_equal(be_soft.copy_d2h(f->be, data, params.p, sizeof(data), f->s), 0);
	for (i = 0; i < N; i++)
		assert_int_equal(data[i], (i * 3 + 100) * 5 + 100);

	launch(f, m, "say", 1, 1, &n, 4);
	assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_Success);
	expect_output(f, "n is 42\n");
}

/*
 * A kernel that an option of nvcc limits to 64 registers must run in each case where it runs on a
 * GPU.
 */
static void options_limit_registers(void **state)
{
	static const struct {
		const char *options;
		int err;
	} all[] = {
		{OPTIONS, QCU_ERR_LaunchOutOfResources},
		{OPTIONS " -maxrregcount=72", QCU_ERR_LaunchOutOfResources},
		{OPTIONS " -maxrregcount=64", QCU_ERR_Success},
		{OPTIONS " -rdc=true -Xptxas -maxrregcount=32", QCU_ERR_Success},
	};
	struct fixture *f = *state;
	uint64_t p;

	need_nvcc();
	assert_int_equal(be_soft.mem_alloc(f->be, 0, 4, &p), QCU_ERR_Success);
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		struct be_launch l = {
			.grid = {1, 1, 1},
			.block = {1024, 1, 1},
			.params = &p,
			.param_bytes = sizeof(p),
		};
		struct be_kernel *k;
		size_t len;
		unsigned char *image = compile(hungry, all[i].options, &len);

		assert_int_equal(be_soft.kernel_find(f->be, load(f, image, len), "hungry", &k),
				 QCU_ERR_Success);
		assert_int_equal(be_soft.launch(f->be, k, &l, f->s), all[i].err);
		assert_int_equal(be_soft.device_sync(f->be, 0), QCU_ERR_Success);
		free(image);
	}
}

static void run_and_fail(struct fixture *f, const char *name, const void *params, size_t bytes,
			 int err)
{
	unsigned char *image;
	size_t len;

	need_nvcc();
	image = compile(whole, OPTIONS, &len);
	launch(f, load(f, image, len), name, 1, 1, params, bytes);
	free(image);
	assert_int_equal(be_soft.device_sync(f->be, 0), err);
	assert_int_equal(be_soft.device_sync(f->be, 0), err);
}

static void an_assertion_fails(void **state)
{
	int32_t n = 6;

	struct fixture *f = *state;
	char buf[512] = "";
	size_t got;

	run_and_fail(f, "check", &n, 4, QCU_ERR_Assert);
	/* This text is not in the output of kernels. */
	expect_output(f, "");
	assert_int_equal(be_soft.assert_read(f->be, NULL, 0, &got), QCU_ERR_Success);
	assert_true(got > 0);
	assert_int_equal(be_soft.assert_read(f->be, buf, sizeof(buf) - 1, &got), QCU_ERR_Success);
	assert_non_null(strstr(buf, "Assertion `"));
	assert_int_equal(be_soft.assert_read(f->be, NULL, 0, &got), QCU_ERR_Success);
	assert_int_equal(got, 0);
}

static void a_null_pointer_is_caught(void **state)
{
	uint64_t p = 0;

	run_and_fail(*state, "poke", &p, 8, QCU_ERR_IllegalAddress);
}

static void host_memory_is_caught(void **state)
{
	int32_t local = 0;
	uint64_t p = (uintptr_t)&local;

	run_and_fail(*state, "poke", &p, 8, QCU_ERR_IllegalAddress);
	assert_int_equal(local, 0);
}

static void an_odd_address_is_caught(void **state)
{
	struct fixture *f = *state;
	uint64_t p;

	assert_int_equal(be_soft.mem_alloc(f->be, 0, 64, &p), QCU_ERR_Success);
	p += 2;
	run_and_fail(f, "poke", &p, 8, QCU_ERR_MisalignedAddress);
}

static void links_a_program_of_two_units(void **state)
{
	struct fixture *f = *state;
	unsigned char *a, *b, *both;
	size_t a_len, b_len;
	struct be_module *m;
	int32_t v = 5;
	uint64_t p;

	need_nvcc();
	a = compile(unit_a, "-rdc=true " OPTIONS, &a_len);
	b = compile(unit_b, "-rdc=true " OPTIONS, &b_len);
	both = malloc(a_len + b_len);
	memcpy(both, a, a_len);
	memcpy(both + a_len, b, b_len);
	m = load(f, both, a_len + b_len);
	free(a);
	free(b);
	free(both);
	assert_int_equal(be_soft.mem_alloc(f->be, 0, 4, &p), QCU_ERR_Success);
	assert_int_equal(be_soft.copy_h2d(f->be, p, &v, 4, f->s), QCU_ERR_Success);
	launch(f, m, "first", 1, 1, &p, 8);
	launch(f, m, "second", 1, 1, &p, 8);
	assert_int_equal(be_soft.copy_d2h(f->be, &v, p, 4, f->s), QCU_ERR_Success);
	assert_int_equal(v, 2 * 5 + (20 + 7) + 1000 + 7 + 2000);
	expect_output(f, "first 1037\nsecond 3044\n");
}

static const char bound[] = ".version 9.0\n.target sm_75\n.address_size 64\n"
			    ".visible .global .attribute(.managed) .align 4 .u32 first = 5;\n"
			    ".visible .global .align 8 .b8 second[16] = {1, 2};\n"
			    ".visible .entry bump() {\n"
			    ".reg .u32 %r1;\n"
			    "ld.global.u32 %r1, [first];\n"
			    "add.u32 %r1, %r1, 1;\n"
			    "st.global.u32 [first], %r1;\n"
			    "st.global.u32 [second+4], %r1;\n"
			    "ret;\n"
			    "}\n";

/*
 * A bound variable has the content of the host memory. A variable that does not fit there stays
 * where it was.
 */
static void variables_are_bound_to_host_memory(void **state)
{
	struct fixture *f = *state;
	struct be_module *m = load(f, bound, sizeof(bound));
	_Alignas(4096) static uint32_t host[1024];
	uint64_t at = (uintptr_t)host, addr, size;
	uint32_t got[4];

	host[0] = 77;
	assert_int_equal(be_soft.host_register(f->be, host, sizeof(host)), 0);
	assert_int_equal(be_soft.var_bind(f->be, m, "first", at, 4), QCU_ERR_Success);
	assert_int_equal(be_soft.var_bind(f->be, m, "first", at, 4), QCU_ERR_InvalidValue);
	assert_int_equal(be_soft.var_bind(f->be, m, "second", at + 64, 15), QCU_ERR_Success);
	assert_int_equal(be_soft.var_bind(f->be, m, "none", at + 128, 4), QCU_ERR_Success);
	launch(f, m, "bump", 1, 1, NULL, 0);
	assert_int_equal(be_soft.stream_sync(f->be, f->s), QCU_ERR_Success);
	assert_int_equal(host[0], 78);
	assert_int_equal(host[17], 0);
	assert_int_equal(be_soft.var_find(f->be, 0, m, "first", &addr, &size), 0);
	assert_int_equal(addr, at);
	assert_int_equal(be_soft.var_find(f->be, 0, m, "second", &addr, &size), 0);
	assert_int_equal(size, 16);
	assert_int_equal(be_soft.copy_d2h(f->be, got, addr, size, f->s), 0);
	assert_int_equal(got[0], 0x201);
	assert_int_equal(got[1], 78);
	assert_int_equal(be_soft.var_bind(f->be, m, "second", at + 64, 16), QCU_ERR_IllegalState);
	assert_int_equal(be_soft.module_unload(f->be, m), QCU_ERR_Success);
	assert_int_equal(host[0], 78);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(variables_are_bound_to_host_memory),
		T(an_assertion_fails),
		T(a_null_pointer_is_caught),
		T(host_memory_is_caught),
		T(an_odd_address_is_caught),
		T(runs_a_program_of_one_unit),
		T(options_limit_registers),
		T(links_a_program_of_two_units),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
