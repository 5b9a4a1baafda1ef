// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Static shared memory is what a kernel itself reaches: its own variables, and those of the module
 * and of functions that it or a function below it names. nvcc -rdc=true declares all of them for
 * the module.
 */
#include "tests/unit/ptx/test_ptx_env.h"

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n"

static uint32_t shared_of(const struct ptx_module *m, const char *name)
{
	const struct ptx_kernel *k = ptx_kernel_find(m, name);

	assert_non_null(k);
	return ptx_kernel_info(k)->shared_bytes;
}

/* Each of the kernels fits, but all of them together do not. */
static void test_kernels(void **state)
{
	struct ptx_module *m = must_load(HEAD ".shared .align 4 .b8 one[40000];\n"
					      ".shared .align 4 .b8 two[48000];\n"
					      ".shared .align 4 .b8 three[200000];\n"
					      ".shared .align 4 .b8 nobody[200000];\n"
					      ".entry a() { .reg .b32 %r<4>; mov.u32 %r1, one;\n"
					      "st.shared.u32 [%r1+39996], 1; ret; }\n"
					      ".entry b() { st.shared.u32 [two+47996], 1; ret; }\n"
					      ".entry c() { .reg .b64 %d<4>; mov.u64 %d1, three;\n"
					      "st.shared.u32 [%d1+199996], %laneid; ret; }\n"
					      ".entry none() { ret; }\n");

	(void)state;
	assert_int_equal(shared_of(m, "a"), 40000);
	assert_int_equal(shared_of(m, "b"), 48000);
	assert_int_equal(shared_of(m, "c"), 200000);
	assert_int_equal(shared_of(m, "none"), 0);
	must_launch(m, "a", 1, 1, 0, NULL, 0);
	must_launch(m, "b", 1, 1, 0, NULL, 0);
	must_launch(m, "c", 1, 1, 0, NULL, 0);
	must_launch(m, "none", 1, 1, 0, NULL, 0);
	ptx_unload(m);
}

/*
 * Variables of functions, used by kernels that reach different ones of them. Each kernel writes to
 * all that it reaches, then reads them back, so that none may lie upon another.
 */
static const char functions[] = HEAD
	".shared .align 8 .b8 m1[24];\n"
	".shared .align 16 .u32 m2[8];\n"
	".extern .shared .align 16 .b8 dyn[];\n"
	".func put1() { st.shared.u32 [m1+4], 11; st.shared.u32 [m2+28], 12; ret; }\n"
	".func (.reg .u32 %x) get1() { .reg .b32 %r<4>; .reg .b64 %d<4>;\n"
	"ld.shared.u32 %r1, [m1+4]; mov.u64 %d1, m2; cvta.shared.u64 %d1, %d1;\n"
	"ld.u32 %r2, [%d1+28]; mad.lo.u32 %x, %r2, 100, %r1; ret; }\n"
	".func put2() { .shared .align 4 .u32 f2[5]; .reg .b32 %r<4>; mov.u32 %r1, f2+16;\n"
	"st.shared.u32 [%r1], 13; st.shared.u32 [f2], 14; ret; }\n"
	".func deep() { call put2; ret; }\n"
	".entry k1(.param .u64 p) { .reg .b32 %r<4>; .reg .b64 %d<2>; .shared .u32 own[3];\n"
	"ld.param.u64 %d0, [p]; st.shared.u32 [own+8], 9; st.shared.u32 [dyn], 8;\n"
	"call put1; call (%r1), get1; ld.shared.u32 %r2, [own+8]; ld.shared.u32 %r3, [dyn];\n"
	"st.global.u32 [%d0], %r1; st.global.u32 [%d0+4], %r2; st.global.u32 [%d0+8], %r3; ret; }\n"
	".entry k2(.param .u64 p) { .reg .b32 %r<4>; .reg .b64 %d<2>; ld.param.u64 %d0, [p];\n"
	"call put1; call deep; call (%r1), get1; st.global.u32 [%d0], %r1;\n"
	"cp.async.ca.shared.global [m1+8], [%d0], 4; ld.shared.u32 %r2, [m1+8];\n"
	"st.global.u32 [%d0+4], %r2; atom.shared.add.u32 %r3, [m1+8], 1;\n"
	"st.global.u32 [%d0+8], %r3; ret; }\n"
	".entry k3() { call deep; ret; }\n"
	".entry k4(.param .u64 p) { .reg .b64 %d<2>; .reg .b32 %r<3>; mov.u64 %d0, put1;\n"
	"P: .callprototype _ (); call %d0, P; call (%r1), get1; ld.param.u64 %d1, [p];\n"
	"st.global.u32 [%d1], %r1; ret; }\n"
	".entry bare() { .shared .u32 own[3]; st.shared.u32 [own], 1; ret; }\n";

static void test_functions(void **state)
{
	uint32_t *out = dev_alloc(64);
	struct ptx_module *m = must_load(functions);

	(void)state;
	/* m1 and m2 take 56 bytes with what the alignment adds, f2 takes 20 */
	assert_int_equal(shared_of(m, "k1"), 16 + 64);
	assert_in_range(shared_of(m, "k2"), 56 + 20, 96);
	assert_in_range(shared_of(m, "k3"), 20, 96);
	assert_in_range(shared_of(m, "k4"), 56 + 20, 96);
	assert_int_equal(shared_of(m, "bare"), 12);
	must_launch(m, "k1", 1, 1, 16, &out, sizeof(out));
	assert_int_equal(out[0], 1211);
	assert_int_equal(out[1], 9);
	assert_int_equal(out[2], 8);
	must_launch(m, "k2", 1, 1, 0, &out, sizeof(out));
	assert_int_equal(out[0], 1211);
	assert_int_equal(out[1], 1211);
	assert_int_equal(out[2], 1211);
	must_launch(m, "k3", 1, 1, 0, NULL, 0);
	must_launch(m, "k4", 1, 1, 0, &out, sizeof(out));
	assert_int_equal(out[0], 1211);
	must_launch(m, "bare", 1, 1, 0, NULL, 0);
	ptx_unload(m);
	dev_free(out);
}

/* What a kernel reaches is too much: this kernel fails, and the others run. */
static void test_too_much(void **state)
{
	struct ptx_module *m =
		must_load(HEAD ".shared .b8 x[200000];\n.shared .b8 y[200000];\n"
			       ".func f() { st.shared.u8 [y], 1; ret; }\n"
			       ".entry both() { st.shared.u8 [x], 1; call f; ret; }\n"
			       ".entry one() { call f; ret; }\n");
	struct ptx_diag d;

	(void)state;
	assert_int_equal(shared_of(m, "both"), 400000);
	assert_int_equal(launch(m, "both", 1, 1, 0, NULL, 0, &d), PTX_BAD_LAUNCH);
	must_launch(m, "one", 1, 1, 0, NULL, 0);
	ptx_unload(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_too_much),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
