// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Launches from kernels: what a kernel may not do with them, what happens when a kernel below fails
 * or is stopped, and that nothing is left behind.
 */
#include "tests/unit/ptx/test_ptx_env.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"
#define DECLARE                                                                                   \
	".extern .func (.param .b64 r) __cudaCDP2GetParameterBufferV2(.param .b64 a, .param "     \
	".align 4 .b8 b[12], .param .align 4 .b8 c[12], .param .b32 d);\n"                        \
	".extern .func (.param .b32 r) __cudaCDP2LaunchDeviceV2(.param .b64 a, .param .b64 b);\n" \
	".extern .func (.param .b32 r) __cudaCDP2GetLastError();\n"                               \
	".extern .func (.param .b32 r) __cudaCDP2MemsetAsync(.param .b64 a, .param .b32 b, "      \
	".param .b64 c, .param .b64 d);\n"

/* %r1 x %r2 x %r3 blocks of %r4 threads with %r5 bytes; %d1: what to launch, then the buffer */
#define BUFFER                                                                                    \
	"{ .param .b64 a; .param .align 4 .b8 b[12]; .param .align 4 .b8 c[12]; .param .b32 d;\n" \
	".param .b64 r; st.param.b64 [a], %d1; st.param.b32 [b], %r1; st.param.b32 [b+4], %r2;\n" \
	"st.param.b32 [b+8], %r3; st.param.b32 [c], %r4; st.param.b32 [c+4], 1;\n"                \
	"st.param.b32 [c+8], 1; st.param.b32 [d], %r5;\n"                                         \
	"call (r), __cudaCDP2GetParameterBufferV2, (a, b, c, d); ld.param.b64 %d1, [r]; }\n"
#define LAUNCH(stream)                                                                \
	"{ .param .b64 a; .param .b64 b; .param .b32 r; st.param.b64 [a], %d1;\n"     \
	"st.param.b64 [b], " stream "; call (r), __cudaCDP2LaunchDeviceV2, (a, b);\n" \
	"ld.param.b32 %r6, [r]; }\n"
#define ERROR(to) \
	"{ .param .b32 r; call (r), __cudaCDP2GetLastError, (); ld.param.b32 " to ", [r]; }\n"
#define REGS ".reg .b32 %r<20>; .reg .b64 %d<20>; .reg .pred %p<4>;\n"
#define PARENT                                                                                   \
	".entry parent(.param .u64 p, .param .u64 f, .param .u32 x, .param .u32 y, .param .u32 " \
	"z, .param .u32 n, .param .u32 s)\n{\n" REGS "ld.param.u64 %d0, [p]; ld.param.u64 %d1, " \
	"[f]; ld.param.u32 %r1, [x]; ld.param.u32 %r2, [y]; ld.param.u32 %r3, [z];\n"            \
	"ld.param.u32 %r4, [n]; ld.param.u32 %r5, [s];\n"
#define CHILD                                                             \
	".entry child(.param .u64 p) {\n" REGS "ld.param.u64 %d0, [p];\n" \
	"atom.global.add.u32 %r0, [%d0], 1; ret; }\n"

struct args {
	uint32_t *p;
	uint64_t f;
	uint32_t x, y, z, n, s;
};

/* Functions are numbered in the order in which the text first names them: here, after DECLARE. */
#define FUNC(i) (0x7000000000000000ull + 16 * (i))

static void nothing_left(void)
{
	for (int i = 0; i < WORLD_MAX; i++)
		assert_int_equal(world.mem[i].addr, 0);
}

/* Bad functions and dimensions: no buffer, and an error that is there once. */
static void test_bad_buffers(void **state)
{
	static const struct {
		struct args a;
		uint32_t err;
	} all[] = {
		{{NULL, FUNC(4), 1, 1, 1, 1, 0}, 0},
		{{NULL, FUNC(4), 0, 1, 1, 1, 0}, 9},
		{{NULL, FUNC(4), 1, 1, 0, 1, 0}, 9},
		{{NULL, FUNC(4), 1, 70000, 1, 1, 0}, 9},
		{{NULL, FUNC(4), 1, 1, 1, 0, 0}, 9},
		{{NULL, FUNC(4), 1, 1, 1, 1025, 0}, 9},
		{{NULL, FUNC(4), 1, 1, 1, 0xffffffff, 0}, 9},
		{{NULL, FUNC(4), 1, 1, 1, 1, 1 << 20}, 9},
		{{NULL, FUNC(4) + 8, 1, 1, 1, 1, 0}, 98},
		{{NULL, FUNC(0), 1, 1, 1, 1, 0}, 98},
		{{NULL, FUNC(1000), 1, 1, 1, 1, 0}, 98},
		{{NULL, 0, 1, 1, 1, 1, 0}, 98},
		{{NULL, UINT64_MAX, 1, 1, 1, 1, 0}, 98},
	};
	struct ptx_module *m = must_load(HEAD DECLARE CHILD PARENT BUFFER ERROR("%r7") ERROR(
		"%r8") "setp.ne.u64 %p1, %d1, 0; selp.u32 %r9, 1, 0, %p1;\n"
		       "st.global.u32 [%d0], %r7; st.global.u32 [%d0+4], %r8;\n"
		       "st.global.u32 [%d0+8], %r9; ret; }\n");

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct args a = all[i].a;

		a.p = dev_alloc(64);
		must_launch(m, "parent", 1, 1, 0, &a, sizeof(a));
		if (a.p[0] != all[i].err || a.p[1] || a.p[2] != !all[i].err)
			fail_msg("case %zu: errors %u and %u, buffer %u", i, a.p[0], a.p[1],
				 a.p[2]);
		dev_free(a.p);
	}
	ptx_unload(m);
	nothing_left();
}

/* Buffers that are none, that belong to nobody, or that were launched before. */
static void test_bad_launches(void **state)
{
	struct args a = {dev_alloc(64), FUNC(4), 1, 1, 1, 1, 0};
	struct ptx_module *m =
		must_load(HEAD DECLARE CHILD PARENT BUFFER
			  "st.u64 [%d1], %d0;\n" LAUNCH("0") "st.global.u32 [%d0+4], %r6;\n" LAUNCH(
				  "0") "st.global.u32 [%d0+8], %r6; mov.u64 %d1, "
				       "%d0;\n" LAUNCH("0") "st.global.u32 [%d0+12], "
							    "%r6; mov.u64 %d1, "
							    "0;\n" LAUNCH("3") "st."
									       "global."
									       "u32 "
									       "[%d0+"
									       "16], "
									       "%r6; "
									       "ret; "
									       "}\n");

	(void)state;
	must_launch(m, "parent", 1, 1, 0, &a, sizeof(a));
	assert_int_equal(a.p[0], 1);
	assert_int_equal(a.p[1], 0);
	assert_int_equal(a.p[2], 1);
	assert_int_equal(a.p[3], 1);
	assert_int_equal(a.p[4], 1);
	dev_free(a.p);
	ptx_unload(m);
	nothing_left();
}

/* A kernel below writes where it may not: the whole launch fails, and names that kernel. */
static void test_child_faults(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		struct args a = {dev_alloc(64), FUNC(4), 4, 1, 1, 32, 0};
		char text[8192];
		struct ptx_module *m;
		struct ptx_diag d;

		strcpy(text,
		       HEAD DECLARE CHILD PARENT BUFFER "mov.u64 %d2, 8; st.u64 [%d1], %d2;\n");
		strcat(text, i ? LAUNCH("3") : LAUNCH("0"));
		strcat(text, "ret; }\n");
		m = must_load(text);
		assert_int_equal(launch(m, "parent", 1, 1, 0, &a, sizeof(a), &d),
				 PTX_ILLEGAL_ADDRESS);
		assert_non_null(strstr(d.text, "kernel child"));
		dev_free(a.p);
		ptx_unload(m);
		nothing_left();
	}
}

/* Buffers that nobody launches are given back, and there is a limit for them. */
static void test_pending(void **state)
{
	struct args a = {dev_alloc(64), FUNC(4), 1, 1, 1, 1, 0};
	struct ptx_module *m = must_load(
		HEAD DECLARE CHILD PARENT
		"mov.u64 %d3, %d1; mov.u32 %r10, 0;\n"
		"MORE: mov.u64 %d1, %d3;\n" BUFFER "setp.eq.u64 %p1, %d1, 0; @%p1 bra OUT;\n"
		"add.u32 %r10, %r10, 1; bra MORE;\nOUT:\n" ERROR(
			"%r7") "st.global.u32 [%d0], %r10; st.global.u32 [%d0+4], %r7; "
			       "ret; }\n");

	(void)state;
	must_launch(m, "parent", 1, 1, 0, &a, sizeof(a));
	/* this environment has no more than WORLD_MAX allocations */
	assert_in_range(a.p[0], WORLD_MAX / 2, WORLD_MAX);
	assert_int_equal(a.p[1], 2);
	dev_free(a.p);
	ptx_unload(m);
	nothing_left();
}

/* A kernel that launches itself to the tail stream for ever stops when it is told to. */
static void *stop_it(void *arg)
{
	struct args *a = ((void **)arg)[0];
	volatile int *cancel = ((void **)arg)[1];

	while (__atomic_load_n(a->p, __ATOMIC_RELAXED) < 1000)
		;
	*cancel = 1;
	return NULL;
}

static void test_stopped(void **state)
{
	struct args a = {dev_alloc(64), FUNC(4), 1, 1, 1, 1, 0};
	struct ptx_module *m = must_load(
		HEAD DECLARE PARENT "atom.global.add.u32 %r10, [%d0], 1; mov.u64 %d3, %d1;\n" BUFFER
				    "st.u64 [%d1], %d0; st.u64 [%d1+8], %d3; st.u32 [%d1+16], 1;\n"
				    "st.u32 [%d1+20], 1; st.u32 [%d1+24], 1; st.u32 [%d1+28], 1;\n"
				    "st.u32 [%d1+32], 0;\n" LAUNCH("3") "ret; }\n");
	volatile int cancel = 0;
	void *arg[2] = {&a, (void *)(uintptr_t)&cancel};
	struct ptx_launch l = {.grid = {1, 1, 1},
			       .block = {1, 1, 1},
			       .params = &a,
			       .param_bytes = sizeof(a),
			       .cancel = &cancel};
	struct ptx_diag d;
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, stop_it, arg), 0);
	assert_int_equal(ptx_run(ptx_kernel_find(m, "parent"), &l, &d), PTX_KILLED);
	pthread_join(t, NULL);
	dev_free(a.p);
	ptx_unload(m);
	nothing_left();
}

/* Memory that a kernel may not write, and a call with too few arguments. */
static void test_bad_calls(void **state)
{
	static const char *const bodies[] = {
		"{ .param .b64 a; .param .b32 b; .param .b64 c; .param .b64 d; .param .b32 r;\n"
		"st.param.b64 [a], %d0; st.param.b32 [b], 1; st.param.b64 [c], 65;\n"
		"st.param.b64 [d], 0; call (r), __cudaCDP2MemsetAsync, (a, b, c, d); }\n",
		"{ .param .b64 a; .param .b32 r; st.param.b64 [a], %d0;\n"
		"call (r), __cudaCDP2LaunchDeviceV2, (a); }\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct args a = {dev_alloc(64), 0, 0, 0, 0, 0, 0};
		char text[4096] = HEAD DECLARE PARENT;
		struct ptx_module *m;
		struct ptx_diag d;

		strcat(text, bodies[i]);
		strcat(text, "ret; }\n");
		m = must_load(text);
		assert_int_equal(launch(m, "parent", 1, 1, 0, &a, sizeof(a), &d),
				 PTX_ILLEGAL_ADDRESS);
		dev_free(a.p);
		ptx_unload(m);
		nothing_left();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_buffers), cmocka_unit_test(test_bad_launches),
		cmocka_unit_test(test_bad_calls),   cmocka_unit_test(test_child_faults),
		cmocka_unit_test(test_pending),	    cmocka_unit_test(test_stopped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
