// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How many registers a kernel needs according to the machine: never more than it must have, because
 * a launch can be refused for them; and all registers whose values live from one block of code to
 * another.
 */
#include "tests/unit/ptx/test_ptx_env.h"

#define HEAD ".version 8.0\n.target sm_75\n.address_size 64\n"
#define MOST 255u

static char *text;
static size_t at;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	at += (size_t)vsnprintf(text + at, (1 << 20) - at, format, ap);
	va_end(ap);
	assert_true(at < 1 << 20);
}

static void begin(const char *hints)
{
	at = 0;
	put(HEAD ".entry k(.param .u64 p, .param .u32 n, .param .b8 s[2048])\n%s\n{\n"
		 ".reg .pred %%p<512>; .reg .b32 %%r<1024>; .reg .b64 %%d<512>, %%e<512>;\n"
		 "ld.param.u64 %%d0, [p]; ld.param.u32 %%r0, [n];\n",
	    hints);
}

static struct ptx_kernel_info end(void)
{
	struct ptx_kernel_info info;
	struct ptx_module *m;

	put("ret;\n}\n");
	m = must_load(text);
	info = *ptx_kernel_info(ptx_kernel_find(m, "k"));
	ptx_unload(m);
	return info;
}

static void each(unsigned int n, const char *format)
{
	for (unsigned int i = 1; i <= n; i++)
		put(format, i, i * 8);
}

/* A loop around the uses of all registers. */
static void loop(unsigned int n, const char *format)
{
	put("more:\n");
	each(n, format);
	put("sub.u32 %%r0, %%r0, 1; setp.ne.u32 %%p0, %%r0, 0; @%%p0 bra more;\n");
}

static uint32_t kept(unsigned int n, const char *hints)
{
	begin(hints);
	each(n, "ld.volatile.global.u32 %%r%u, [%%d0+%u];\n");
	loop(n, "st.volatile.global.u32 [%%d0+%2$u], %%r%1$u;\n");
	return end().regs;
}

static void what_is_kept_counts(void **state)
{
	(void)state;
	assert_int_equal(kept(400, ""), MOST);
	for (unsigned int n = 0; n < 250; n += 10) {
		uint32_t regs = kept(n, "");

		assert_in_range(regs, n, n + 8);
	}
}

static void twice_as_much_in_64_bits(void **state)
{
	(void)state;
	begin("");
	each(60, "ld.volatile.global.u64 %%d%u, [%%d0+%u];\n");
	loop(60, "st.volatile.global.u64 [%%d0+%2$u], %%d%1$u;\n");
	assert_in_range(end().regs, 120, 128);
}

/*
 * Values that can be made again do not count: parameters, constants, special registers, and what
 * cvta makes of them. Predicates do not count either.
 */
static void what_can_be_had_again_does_not(void **state)
{
	(void)state;
	begin("");
	each(100, "ld.param.b32 %%r%u, [s+%u];\n");
	for (unsigned int i = 101; i <= 150; i++)
		put("mov.u32 %%r%u, %u;\n", i, i);
	for (unsigned int i = 151; i <= 200; i++)
		put("mov.u32 %%r%u, %%tid.x;\n", i);
	loop(200, "st.volatile.global.u32 [%%d0+%2$u], %%r%1$u;\n");
	assert_in_range(end().regs, 1, 12);

	begin("");
	put("mov.b64 %%d500, s;\n");
	each(100, "ld.param.u64 %%d%u, [%%d500+%u]; cvta.to.global.u64 %%e%1$u, %%d%1$u;\n");
	loop(100, "st.volatile.global.u32 [%%e%u], %%r0;\n");
	assert_in_range(end().regs, 1, 12);
}

static void predicates_do_not(void **state)
{
	(void)state;
	begin("");
	each(300, "ld.volatile.global.u32 %%r1, [%%d0+%2$u]; setp.eq.u32 %%p%1$u, %%r1, 0;\n");
	loop(300, "@%%p%u st.volatile.global.u32 [%%d0+%u], %%r0;\n");
	assert_in_range(end().regs, 1, 12);
}

/* Within one block of code, ptxas can change the order. */
static void order_is_not_counted_in_full(void **state)
{
	(void)state;
	for (unsigned int n = 50; n <= 400; n += 50) {
		uint32_t regs;

		begin("");
		each(n, "ld.global.u32 %%r%u, [%%d0+%u];\n");
		each(n, "add.u32 %%r0, %%r0, %%r%1$u;\n");
		put("st.global.u32 [%%d0], %%r0;\n");
		regs = end().regs;
		assert_in_range(regs, n < 64 ? n : 64, n < 64 ? n + 8 : n < 100 ? 64 : n * 2 / 3);
	}
}

static uint32_t calls(const char *hints)
{
	struct ptx_module *m;
	uint32_t regs;

	at = 0;
	put(HEAD ".func deep(.reg .b64 %%d0, .reg .b32 %%r0)\n{\n"
		 ".reg .pred %%p<2>; .reg .b32 %%r<200>;\n");
	each(90, "ld.volatile.global.u32 %%r%u, [%%d0+%u];\n");
	loop(90, "st.volatile.global.u32 [%%d0+%2$u], %%r%1$u;\n");
	put("ret;\n}\n.func middle(.reg .b64 %%d0, .reg .b32 %%r0)\n{\n"
	    "call deep, (%%d0, %%r0);\nret;\n}\n"
	    ".entry k(.param .u64 p)\n{\n.reg .b64 %%d<1>; .reg .b32 %%r<1>;\n"
	    "ld.param.u64 %%d0, [p]; mov.u32 %%r0, 3;\ncall middle, (%%d0, %%r0);\nret;\n}\n"
	    ".entry alone(.param .u64 p)\n%s\n{\nret;\n}\n",
	    hints);
	m = must_load(text);
	regs = ptx_kernel_info(ptx_kernel_find(m, "k"))->regs;
	assert_in_range(ptx_kernel_info(ptx_kernel_find(m, "alone"))->regs, 1, 8);
	ptx_unload(m);
	return regs;
}

/*
 * A called function counts, but ptxas compiles it with few registers if a kernel that calls it has
 * few.
 */
static void called_functions_count(void **state)
{
	(void)state;
	assert_in_range(calls(""), 90, 98);
	assert_in_range(calls(".maxntid 1024"), 1, 64);
	assert_in_range(calls(".maxnreg 32"), 1, 64);
}

static void what_the_program_says_is_kept(void **state)
{
	struct ptx_kernel_info info;

	(void)state;
	assert_int_equal(kept(200, ".maxnreg 40"), 40);
	assert_in_range(kept(20, ".maxnreg 40"), 20, 28);
	begin("");
	info = end();
	assert_int_equal(info.max_threads, 1024);
	assert_false(info.bounded);
	assert_int_equal(info.min_blocks, 0);
	begin(".maxntid 32, 8\n.minnctapersm 3");
	info = end();
	assert_int_equal(info.max_threads, 256);
	assert_true(info.bounded);
	assert_int_equal(info.min_blocks, 3);
	begin(".reqntid 1024");
	info = end();
	assert_int_equal(info.max_threads, 1024);
	assert_true(info.bounded);
}

/* Too many registers to follow all their lives. */
static void where_nothing_is_known_nothing_is_refused(void **state)
{
	(void)state;
	begin(".maxntid 1024");
	put(".reg .b32 %%w<60000>;\n");
	each(200, "ld.volatile.global.u32 %%r%u, [%%d0+%u];\n");
	for (unsigned int i = 0; i < 4000; i++)
		put("l%u:\nadd.u32 %%w%u, %%w%u, 1; @%%p1 bra l%u;\n", i, i * 15 + 1, i * 15, i);
	each(200, "st.volatile.global.u32 [%%d0+%2$u], %%r%1$u;\n");
	assert_int_equal(end().regs, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_counts),
		cmocka_unit_test(twice_as_much_in_64_bits),
		cmocka_unit_test(what_can_be_had_again_does_not),
		cmocka_unit_test(predicates_do_not),
		cmocka_unit_test(order_is_not_counted_in_full),
		cmocka_unit_test(called_functions_count),
		cmocka_unit_test(what_the_program_says_is_kept),
		cmocka_unit_test(where_nothing_is_known_nothing_is_refused),
	};
	int rc;

	text = malloc(1 << 20);
	rc = text ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
	free(text);
	return rc;
}
