/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Linking the PTX of several translation units: what is renamed, which definition is dropped, what
 * is an error, and that text which is no PTX does no harm.
 */
#include <stdio.h>

#include "qcu-device/soft/code/code.h"
#include "tests/unit/soft/test_soft_fake.h"

#define UNITS_MAX 4

static int link_texts(const char *const *texts, size_t count, char **out)
{
	struct soft_unit unit[UNITS_MAX];
	struct soft_units u = {.unit = unit, .count = count};
	char why[256] = "";
	size_t i, len;
	int err;

	for (i = 0; i < count; i++)
		unit[i] = (struct soft_unit){.text = strdup(texts[i]), .len = strlen(texts[i])};
	err = soft_link(&u, out, &len, why, sizeof(why));
	for (i = 0; i < count; i++)
		free(unit[i].text);
	if (err) {
		assert_null(*out);
		assert_true(strlen(why) > 5);
	} else {
		assert_int_equal(len, strlen(*out));
	}
	return err;
}

static unsigned int occurrences(const char *text, const char *what)
{
	unsigned int n = 0;

	for (text = strstr(text, what); text; text = strstr(text + 1, what))
		n++;
	return n;
}

static void expect(const char *text, const char *what, unsigned int times)
{
	if (occurrences(text, what) != times)
		fail_msg("'%s' is there %u times, not %u, in:\n%s", what, occurrences(text, what),
			 times, text);
}

static void two_definitions_are_an_error(void **state)
{
	static const char *const funcs[] = {
		FAKE_PTX ".visible .func f ()\n{\nret;\n}\n",
		FAKE_PTX ".visible .func f ()\n{\nret;\n}\n",
	};
	static const char *const vars[] = {
		FAKE_PTX ".visible .global .align 4 .u32 x = 1;\n",
		FAKE_PTX ".visible .const .align 4 .u32 x;\n",
	};
	char *out;

	(void)state;
	assert_int_equal(link_texts(funcs, 2, &out), QCU_ERR_InvalidPtx);
	assert_int_equal(link_texts(vars, 2, &out), QCU_ERR_InvalidPtx);
}

static void one_unit_stays_as_it_is(void **state)
{
	static const char *const texts[] = {FAKE_PTX ".section .debug { .b8 1 }\n.weak .func f() "
						     "{ ret; }"};
	char *out;

	(void)state;
	assert_int_equal(link_texts(texts, 1, &out), QCU_ERR_Success);
	assert_string_equal(out, texts[0]);
	free(out);
}

static void there_is_one_header_and_no_debug_section(void **state)
{
	static const char *const texts[] = {
		"// first\n" FAKE_PTX ".file 1 \"a.cu\"\n.visible .entry a ()\n{\nret;\n}\n"
		".section .debug_info\n{\n.b8 1,2,3\n.b64 .debug_abbrev\n}\n",
		FAKE_PTX ".visible .entry b ()\n{\n{ // }\nret; }\n}\n.section .debug_str { }\n"
			 ".visible .entry c () { ret; }",
	};
	char *out;

	(void)state;
	assert_int_equal(link_texts(texts, 2, &out), QCU_ERR_Success);
	expect(out, ".version", 1);
	expect(out, ".target", 1);
	expect(out, ".address_size", 1);
	expect(out, ".section", 0);
	expect(out, ".entry", 3);
	expect(out, "// first", 1);
	expect(out, ".file 1 \"a.cu\"", 1);
	free(out);
}

static void private_names_do_not_meet(void **state)
{
	static const char *const texts[] = {
		FAKE_PTX ".global .align 1 .b8 $str[3] = {37, 100, 0};\n"
			 ".global .u64 only_here = generic($str);\n"
			 ".visible .entry a (.param .u64 p)\n{\nmov.u64 %rd1, $str;\n"
			 "ld.global.u8 %r1, [$str+1];\n}\n",
		FAKE_PTX ".global .align 1 .b8 $str[2] = {1};\n"
			 ".func (.param .b32 r) help (.param .b32 $strange)\n;\n"
			 ".visible .entry b ()\n{\nmov.u64 %rd1, $str; // $str\n}\n"
			 ".func (.param .b32 r) help (.param .b32 q)\n{\nret;\n}\n",
		FAKE_PTX ".visible .func (.param .b32 r) help (.param .b32 q)\n{\nret;\n}\n",
	};
	char *out;

	(void)state;
	assert_int_equal(link_texts(texts, 3, &out), QCU_ERR_Success);
	expect(out, "$str$unit0[3]", 1);
	expect(out, "generic($str$unit0)", 1);
	expect(out, "mov.u64 %rd1, $str$unit0;", 1);
	expect(out, "[$str$unit0+1]", 1);
	expect(out, "$str$unit1[2]", 1);
	expect(out, "mov.u64 %rd1, $str$unit1;", 1);
	expect(out, "$strange", 1);
	expect(out, "help$unit1 (", 2);
	expect(out, " help (", 1);
	expect(out, "only_here =", 1);
	free(out);
}

static void weak_definitions_give_way(void **state)
{
	static const char *const texts[] = {
		FAKE_PTX ".weak .func (.param .b32 r) w (.param .b32 a);\n"
			 ".weak .func (.param .b32 r) w (.param .b32 a)\n{\nfirst;\n}\n"
			 ".weak .global .align 8 .u64 table[3] = {0, 0, w};\n"
			 ".weak .func v ()\n{\nweak_v;\n}\n",
		FAKE_PTX ".weak .func (.param .b32 r) w (.param .b32 a)\n{\nsecond;\n}\n"
			 ".weak .global .align 8 .u64 table[3] = {0, 0, w};\n"
			 ".visible .func v ()\n{\nstrong_v;\n}\n"
			 ".extern .func w2 ();\n",
	};
	char *out;

	(void)state;
	assert_int_equal(link_texts(texts, 2, &out), QCU_ERR_Success);
	expect(out, "first;", 1);
	expect(out, "second;", 0);
	expect(out, "weak_v;", 0);
	expect(out, "strong_v;", 1);
	expect(out, "= {0, 0, w};", 1);
	expect(out, ".extern .global .align 8 .u64 table[3] ;", 1);
	expect(out, ".extern .func (.param .b32 r) w (.param .b32 a)\n;", 1);
	expect(out, ".extern .func v ()\n;", 1);
	expect(out, ".extern .func w2 ();", 1);
	free(out);
}

static void survives_what_is_no_ptx(void **state)
{
	static const char *const good[] = {
		FAKE_PTX ".weak .global .align 8 .u64 t[3] = {0, 0, w};\n/* x */ .func (.param "
			 ".b32 r) f (.param .b32 a)\n{\n.loc 1 2 3\n\"text\";\n}\n",
		FAKE_PTX ".weak .global .align 8 .u64 t[3] = {0, 0, w};\n.func f () { ret; }\n"
			 ".section .debug { .b8 1 }\n.alias a, b;\n.pragma \"x\";\n",
	};
	static const char swap[] = "{}();=\"/*.$\n\0";
	char *texts[2], *out;
	size_t i, k;

	(void)state;
	for (k = 0; k < sizeof(swap); k++) {
		for (i = 0; i < strlen(good[1]); i++) {
			texts[0] = strdup(good[0]);
			texts[1] = strdup(good[1]);
			if (i < strlen(texts[0]))
				texts[0][i] = swap[k];
			texts[1][i] = swap[sizeof(swap) - 1 - k];
			if (!link_texts((const char *const *)texts, 2, &out))
				free(out);
			free(texts[0]);
			free(texts[1]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_definitions_are_an_error),
		cmocka_unit_test(survives_what_is_no_ptx),
		cmocka_unit_test(one_unit_stays_as_it_is),
		cmocka_unit_test(there_is_one_header_and_no_debug_section),
		cmocka_unit_test(private_names_do_not_meet),
		cmocka_unit_test(weak_definitions_give_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
