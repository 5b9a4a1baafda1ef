// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which static runtime is in a file: symbol tables that lie, files without one, versions. And the
 * list of GPUs that a file has code for.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "qcu-library/loader/gpus.h"
#include "qcu-library/loader/linked.h"
#include "tests/unit/loader/elf_file.h"

static struct elf_file file;
static struct elf_file_plan plan;
static struct qcul_linked linked;

static enum qcul_linked_state find(void)
{
	char sentence[1024];
	struct qcul_elf e;

	assert_null(qcul_elf_open(&e, file.data, file.size));
	qcul_linked_find(&e, &linked);
	qcul_linked_sentence(&linked, "./prog", sentence, sizeof(sentence));
	/* There is a sentence, and it says what to do, exactly if something is wrong. */
	if (linked.state == QCUL_LINKED_NONE || linked.state == QCUL_LINKED_FOUND) {
		assert_string_equal(sentence, "");
	} else {
		assert_non_null(strstr(sentence, "./prog"));
		assert_non_null(strstr(sentence, linked.shared ? "with CUDA 13 or 12"
						 : linked.state == QCUL_LINKED_NVIDIA
							 ? "do without it"
							 : "-cudart shared"));
	}
	return linked.state;
}

static void make_12(void)
{
	elf_file_plan_12(&plan);
	elf_file_make(&file, &plan);
}

static void make_13(void)
{
	elf_file_plan_13(&plan);
	elf_file_make(&file, &plan);
}

/* The table says something that cannot be, and the sentence says which function it is about. */
static void assert_contradicts(const char *what)
{
	assert_int_equal(find(), QCUL_LINKED_CONTRADICTS);
	if (!strstr(linked.what, what))
		fail_msg("\"%s\" does not say \"%s\"", linked.what, what);
}

/* ---- tables that lie ---- */

static void sizes_of_zero(void **state)
{
	(void)state;
	make_12();
	elf_file_symbol(&file, "cudaMalloc")->st_size = 0;
	assert_contradicts("cudaMalloc has the size 0");
}

static void functions_at_one_address(void **state)
{
	(void)state;
	make_12();
	elf_file_symbol(&file, "cudaMalloc")->st_value =
		elf_file_symbol(&file, "cudaFree")->st_value;
	assert_contradicts("cudaFree and cudaMalloc lie at the same address");
}

static void functions_that_overlap(void **state)
{
	(void)state;
	make_12();
	elf_file_symbol(&file, "cudaFree")->st_size = 17;
	assert_contradicts("cudaFree overlaps cudaGetDeviceCount");
	elf_file_symbol(&file, "cudaFree")->st_size = UINT64_MAX - 8;
	assert_contradicts("cudaFree");
}

static void functions_outside_the_code(void **state)
{
	static const uint64_t values[] = {0, 0xff0, 0x7ffffffffff0, UINT64_MAX - 15};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		make_12();
		elf_file_symbol(&file, "cudaMalloc")->st_value = values[i];
		assert_contradicts("cudaMalloc lies outside the code");
	}
	/* Data is no code. */
	make_12();
	file.segment[0].p_flags = PF_R;
	assert_int_equal(find(), QCUL_LINKED_CONTRADICTS);
	/* The last function is cut off. */
	make_12();
	file.segment[0].p_filesz -= 4;
	assert_contradicts("cudaMemcpy lies outside the code");
}

static void functions_at_odd_addresses(void **state)
{
	(void)state;
	make_12();
	elf_file_symbol(&file, "cudaMalloc")->st_value += 2;
	elf_file_symbol(&file, "cudaMalloc")->st_size -= 2;
	assert_contradicts("cudaMalloc does not begin at a multiple of 16");
}

static void a_function_that_stands_twice(void **state)
{
	(void)state;
	elf_file_plan_12(&plan);
	plan.name[plan.symbols++] = "cudaMalloc";
	elf_file_make(&file, &plan);
	assert_contradicts("cudaMalloc stands in it twice");
}

static void a_function_inside_a_jump(void **state)
{
	(void)state;
	elf_file_plan_12(&plan);
	plan.name[plan.symbols++] = "someone";
	elf_file_make(&file, &plan);
	elf_file_symbol(&file, "someone")->st_value =
		elf_file_symbol(&file, "cudaFree")->st_value + 8;
	assert_contradicts("someone begins inside cudaFree");
}

static void more_functions_than_any_runtime(void **state)
{
	size_t i, n;

	(void)state;
	elf_file_plan_12(&plan);
	/* They lie among the others: cudaMemcpy is the last. */
	for (i = 0, plan.symbols--; i < 20; i++)
		plan.name[plan.symbols++] = "cudaInvented";
	plan.name[plan.symbols++] = "cudaMemcpy";
	elf_file_make(&file, &plan);
	/* The table is long: it holds the same symbols again and again. */
	n = file.section[FILE_SYMTAB].sh_size / sizeof(*file.symbol);
	assert_true(file.size + 2000 * sizeof(*file.symbol) < ELF_FILE_MAX);
	for (i = 0; i < 2000; i++)
		memcpy(file.data + file.size + i * sizeof(*file.symbol),
		       &file.symbol[1 + i % (n - 1)], sizeof(*file.symbol));
	file.section[FILE_SYMTAB].sh_offset = file.size;
	file.section[FILE_SYMTAB].sh_size = 2000 * sizeof(*file.symbol);
	file.size += 2000 * sizeof(*file.symbol);
	assert_contradicts("more functions than any runtime");
}

/* A file whose code may be changed when it is loaded, with these two relocations. */
static void make_relocated(uint64_t first, uint64_t second)
{
	const Elf64_Rela r[] = {{.r_offset = first}, {.r_offset = second}};
	Elf64_Dyn *d;

	elf_file_plan_12(&plan);
	plan.rodata = (const char *)r;
	plan.rodata_size = sizeof(r);
	elf_file_make(&file, &plan);
	d = file.dynamic;
	d[0] = (Elf64_Dyn){DT_TEXTREL, {0}};
	d[1] = (Elf64_Dyn){DT_RELA, {file.section[FILE_RODATA].sh_offset}};
	d[2] = (Elf64_Dyn){DT_RELASZ, {sizeof(r)}};
	file.segment[2].p_filesz = 3 * sizeof(*d);
}

static void code_that_is_relocated(void **state)
{
	static const char changed[] = "its code is changed when it is loaded";
	const uint64_t low = ELF_FILE_CODE, none = low - 16;
	uint64_t high;

	(void)state;
	make_12();
	find();
	high = linked.sites[linked.count - 1].addr + QCUL_SITE_BYTES;
	make_relocated(none, linked.sites[0].addr);
	assert_contradicts(changed);
	make_relocated(linked.sites[0].addr - 15, none);
	assert_contradicts(changed);
	make_relocated(none, high - 1);
	assert_contradicts(changed);
	/* Tables that cannot be read. */
	make_relocated(none, none);
	file.dynamic[1].d_un.d_ptr = UINT64_MAX - 8;
	assert_contradicts(changed);
	make_relocated(none, none);
	file.dynamic[2].d_un.d_val = UINT64_MAX - 15;
	assert_contradicts(changed);
	make_relocated(none, none);
	file.dynamic[2].d_un.d_val--;
	assert_contradicts(changed);
	make_relocated(none, none);
	file.dynamic[2].d_tag = DT_RELACOUNT;
	assert_contradicts(changed);
	make_relocated(none, none);
	file.dynamic[1].d_tag = DT_REL;
	assert_contradicts(changed);
	make_relocated(none, high - 1);
	file.dynamic[0] = (Elf64_Dyn){DT_FLAGS, {DF_TEXTREL}};
	assert_contradicts(changed);
	/* Others lie beside the functions, or nothing is changed. */
	make_relocated(none, high);
	assert_int_equal(find(), QCUL_LINKED_FOUND);
	make_relocated(none, high - 1);
	file.dynamic[0] = (Elf64_Dyn){DT_FLAGS, {DF_BIND_NOW}};
	assert_int_equal(find(), QCUL_LINKED_FOUND);
}

/* ---- versions ---- */

static void cuda_11(void **state)
{
	(void)state;
	elf_file_plan_12(&plan);
	plan.name[plan.symbols - 1] = "cudaBindTexture";
	plan.name[plan.symbols++] = "cudaMemcpy";
	elf_file_make(&file, &plan);
	assert_int_equal(find(), QCUL_LINKED_OTHER);
	assert_non_null(strstr(linked.what, "CUDA 11"));
}

/* Something that CUDA 13 has is missing, and nothing speaks for CUDA 12. */
static void an_unknown_version(void **state)
{
	(void)state;
	make_13();
	elf_file_symbol(&file, "cudaMemset")->st_shndx = SHN_UNDEF;
	assert_int_equal(find(), QCUL_LINKED_OTHER);
	assert_non_null(strstr(linked.what, "cudaMemset"));
}

static void cuda_12(void **state)
{
	(void)state;
	make_12();
	assert_int_equal(find(), QCUL_LINKED_FOUND);
	assert_int_equal(linked.major, 12);
	/* All but the mark. */
	assert_int_equal(linked.count, plan.symbols - 1);
}

static void cuda_13(void **state)
{
	size_t i;

	(void)state;
	make_13();
	assert_int_equal(find(), QCUL_LINKED_FOUND);
	assert_int_equal(linked.major, 13);
	assert_int_equal(linked.count, plan.symbols - 1);
	for (i = 0; i < linked.count; i++) {
		assert_int_equal(linked.sites[i].addr, ELF_FILE_CODE + (i + 1) * 16);
		assert_string_equal(linked.sites[i].name, plan.name[i + 1]);
	}
}

/* Functions of these names that are the program's own say nothing about the version. */
static void old_names_of_the_program(void **state)
{
	(void)state;
	elf_file_plan_13(&plan);
	plan.name[plan.symbols++] = "cudaThreadSynchronize";
	plan.name[plan.symbols++] = "cudaBindTexture";
	elf_file_make(&file, &plan);
	assert_int_equal(find(), QCUL_LINKED_FOUND);
	assert_int_equal(linked.major, 13);
	assert_int_equal(linked.count, plan.symbols - 3);
}

/* A function that a later CUDA 13 has lies among those that we know. One outside is the program's.
 */
static void later_functions(void **state)
{
	(void)state;
	elf_file_plan_13(&plan);
	plan.name[plan.symbols] = plan.name[plan.symbols - 1];
	plan.name[plan.symbols - 1] = "cudaOfTomorrow";
	plan.symbols++;
	plan.name[plan.symbols++] = "cudaOfTheProgram";
	elf_file_make(&file, &plan);
	assert_int_equal(find(), QCUL_LINKED_FOUND);
	assert_int_equal(linked.major, 13);
	assert_int_equal(linked.count, plan.symbols - 2);
	assert_string_equal(linked.sites[linked.count - 2].name, "cudaOfTomorrow");
}

/* ---- files without names, and files without a runtime ---- */

static const char traces[] = "xx/cudart.shm.%x.%x\0libcuda.so.1";

static void drop_symbols(void)
{
	file.section[FILE_SYMTAB].sh_type = SHT_PROGBITS;
}

static void stripped(void **state)
{
	(void)state;
	elf_file_plan_12(&plan);
	plan.rodata = traces;
	plan.rodata_size = sizeof(traces);
	elf_file_make(&file, &plan);
	drop_symbols();
	assert_int_equal(find(), QCUL_LINKED_STRIPPED);
	assert_non_null(strstr(linked.what, "its code is that of no CUDA from 11.8 to 13."));
	/* Without sections there are still segments. */
	file.head->e_shoff = 0;
	assert_int_equal(find(), QCUL_LINKED_STRIPPED);
}

/* Some linkers have a section of strings beside .rodata. */
static void stripped_with_two_sections(void **state)
{
	(void)state;
	elf_file_plan_12(&plan);
	plan.rodata = "numbers";
	plan.rodata_size = 8;
	plan.fatbin = traces;
	plan.fatbin_size = sizeof(traces);
	elf_file_make(&file, &plan);
	drop_symbols();
	assert_int_equal(find(), QCUL_LINKED_NONE);
	file.section[FILE_FATBIN].sh_name = file.section[FILE_RODATA].sh_name;
	assert_int_equal(find(), QCUL_LINKED_STRIPPED);
	/* What lies outside the file is not looked at. */
	file.section[FILE_FATBIN].sh_size = file.size;
	assert_int_equal(find(), QCUL_LINKED_NONE);
}

static void a_library_of_nvidia(void **state)
{
	(void)state;
	elf_file_plan_12(&plan);
	plan.rodata = traces;
	plan.rodata_size = sizeof(traces);
	plan.soname = "libcublas.so.13";
	elf_file_make(&file, &plan);
	drop_symbols();
	assert_int_equal(find(), QCUL_LINKED_NVIDIA);
}

/* strip -x: the names that only the file itself uses are gone. */
static void stripped_of_local_names(void **state)
{
	(void)state;
	make_13();
	elf_file_symbol(&file, "__cudaRegisterFatBinary")->st_name = 0;
	assert_int_equal(find(), QCUL_LINKED_STRIPPED);
}

static void no_false_alarm(void **state)
{
	(void)state;
	/* A program that knows the driver's library, and one that knows the other string. */
	elf_file_plan_12(&plan);
	plan.rodata = traces;
	plan.rodata_size = 10;
	elf_file_make(&file, &plan);
	drop_symbols();
	assert_int_equal(find(), QCUL_LINKED_NONE);
	plan.rodata = traces + 12;
	plan.rodata_size = sizeof(traces) - 12;
	elf_file_make(&file, &plan);
	drop_symbols();
	assert_int_equal(find(), QCUL_LINKED_NONE);
}

/* Functions of these names that are not NVIDIA's: somebody's own library. */
static void the_functions_of_others(void **state)
{
	(void)state;
	make_12();
	elf_file_symbol(&file, "libcudart_static_00")->st_name = 0;
	assert_int_equal(find(), QCUL_LINKED_NONE);
}

static void the_shared_runtime(void **state)
{
	(void)state;
	elf_file_plan_13(&plan);
	plan.soname = "libcudart.so.13";
	elf_file_make(&file, &plan);
	assert_int_equal(find(), QCUL_LINKED_NONE);
}

static void a_copy_of_the_shared_runtime(void **state)
{
	static const char *const sonames[] = {"libcudart-53d54daa.so.13.0.96",
					      "libcudart.3eda8113.so.13", "libcudart.so.13"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sonames) / sizeof(sonames[0]); i++) {
		elf_file_plan_13(&plan);
		plan.soname = sonames[i];
		plan.rodata = traces;
		plan.rodata_size = sizeof(traces);
		elf_file_make(&file, &plan);
		/* Only what it exports counts. */
		assert_int_equal(find(), QCUL_LINKED_STRIPPED);
		file.section[FILE_SYMTAB].sh_type = SHT_DYNSYM;
		elf_file_symbol(&file, "cudaMalloc")->st_size = 0;
		assert_contradicts("cudaMalloc has the size 0");
		elf_file_symbol(&file, "cudaMalloc")->st_size = 16;
		elf_file_symbol(&file, "libcudart_static_00")->st_name = 0;
		assert_int_equal(find(), QCUL_LINKED_FOUND);
		assert_int_equal(linked.major, 13);
		assert_int_equal(linked.count, plan.symbols - 1);
	}
	/* These are names of others. */
	assert_false(qcul_linked_is_shared_name("libcudart"));
	assert_false(qcul_linked_is_shared_name("libcudart-x.so"));
	assert_false(qcul_linked_is_shared_name("libcudartx.so.13"));
	assert_false(qcul_linked_is_shared_name("libcudart.a"));
}

/* ---- GPUs ---- */

static size_t entry(unsigned char *p, uint16_t kind, uint32_t arch, uint64_t flags)
{
	uint32_t head = 64;
	uint64_t payload = 8;

	memset(p, 0, head + payload);
	memcpy(p, &kind, 2);
	memcpy(p + 4, &head, 4);
	memcpy(p + 8, &payload, 8);
	memcpy(p + 28, &arch, 4);
	memcpy(p + 40, &flags, 8);
	return head + payload;
}

static size_t container(unsigned char *p, size_t payload)
{
	const uint32_t magic = 0xba55ed50;
	const uint16_t numbers[] = {1, 16};
	const uint64_t size = payload;

	memcpy(p, &magic, 4);
	memcpy(p + 4, numbers, 4);
	memcpy(p + 8, &size, 8);
	return 16 + payload;
}

static void read_gpus(const void *fatbin, size_t size, struct qcul_gpus *g)
{
	struct qcul_elf e;

	elf_file_plan_12(&plan);
	plan.fatbin = fatbin;
	plan.fatbin_size = size;
	elf_file_make(&file, &plan);
	assert_null(qcul_elf_open(&e, file.data, file.size));
	qcul_gpus_read(&e, g);
}

static void gpus_of_damaged_binaries(void **state)
{
	unsigned char b[256] = {0};
	struct qcul_gpus g;
	size_t n, size;

	(void)state;
	n = container(b, entry(b + 16, 2, 75, 0));
	/* Every cut but the first, where nothing is left. */
	for (size = 1; size < n; size++) {
		read_gpus(b, size, &g);
		assert_true(g.damaged);
		assert_int_equal(g.count, 0);
	}
	b[16 + 4] = 1; /* the entry's header is too short */
	read_gpus(b, n, &g);
	assert_true(g.damaged);
	memset(b, 'x', sizeof(b));
	read_gpus(b, sizeof(b), &g);
	assert_true(g.damaged);
}

static void gpus(void **state)
{
	unsigned char b[1024] = {0};
	struct qcul_gpus g;
	size_t n = 16, second;

	(void)state;
	n += entry(b + n, 2, 75, 0);
	n += entry(b + n, 2, 90, 0x100000);
	n += entry(b + n, 1, 100, 0x200000);
	container(b, n - 16);
	n += 8; /* zeros between two containers */
	second = n;
	n += 16;
	n += entry(b + n, 1, 75, 0);
	n += entry(b + n, 1, 75, 0); /* a second time */
	container(b + second, n - second - 16);
	read_gpus(b, n, &g);
	assert_false(g.damaged);
	assert_int_equal(g.count, 4);
	assert_true(g.gpu[0].kind == QCUL_GPU_SM && g.gpu[0].arch == 75 && !g.gpu[0].suffix);
	assert_true(g.gpu[1].kind == QCUL_GPU_SM && g.gpu[1].arch == 90 && g.gpu[1].suffix == 'a');
	assert_true(g.gpu[2].kind == QCUL_GPU_PTX && g.gpu[2].arch == 100 &&
		    g.gpu[2].suffix == 'f');
	assert_true(g.gpu[3].kind == QCUL_GPU_PTX && g.gpu[3].arch == 75 && !g.gpu[3].suffix);
}

static void more_gpus_than_there_are(void **state)
{
	static unsigned char b[32 << 10];
	struct qcul_gpus g;
	size_t n = 16, i;

	(void)state;
	for (i = 0; i < 200; i++)
		n += entry(b + n, 2, (uint32_t)i, 0);
	container(b, n - 16);
	read_gpus(b, n, &g);
	assert_int_equal(g.count, QCUL_GPUS_MAX);
}

static void texts_of_gpus(void **state)
{
	struct qcul_gpus g = {
		.count = 3,
		.gpu = {{QCUL_GPU_SM, 90, 'a'}, {QCUL_GPU_PTX, 100, 0}, {QCUL_GPU_OTHER, 75, 0}},
	};
	char text[64];

	(void)state;
	qcul_gpus_text(&g, text, sizeof(text));
	assert_string_equal(text, "sm_90a, compute_100 (PTX), other code for 75");
	qcul_gpus_text(&g, text, 30);
	assert_string_equal(text, "sm_90a, compute_100 (PTX)...");
	qcul_gpus_text(&g, text, 2);
	assert_string_equal(text, ".");
	g.count = 0;
	qcul_gpus_text(&g, text, 1);
	assert_string_equal(text, "");
}

static bool fits(enum qcul_gpu_kind kind, unsigned int arch, char suffix, unsigned int sm,
		 bool only_ptx)
{
	struct qcul_gpus g = {.count = 1, .gpu = {{kind, arch, suffix}}};

	return qcul_gpus_fit(&g, sm, only_ptx);
}

static void which_gpus_run_it(void **state)
{
	struct qcul_gpus g = {
		.count = 2,
		.gpu = {{QCUL_GPU_SM, 75, 0}, {QCUL_GPU_PTX, 80, 0}},
	};

	(void)state;
	assert_true(fits(QCUL_GPU_PTX, 75, 0, 90, true));
	assert_true(fits(QCUL_GPU_PTX, 90, 0, 90, false));
	assert_false(fits(QCUL_GPU_PTX, 100, 0, 90, false));
	assert_true(fits(QCUL_GPU_PTX, 90, 'a', 90, true));
	assert_false(fits(QCUL_GPU_PTX, 90, 'a', 100, true));
	assert_true(fits(QCUL_GPU_PTX, 100, 'f', 103, false));
	assert_false(fits(QCUL_GPU_PTX, 100, 'f', 120, false));
	assert_true(fits(QCUL_GPU_SM, 80, 0, 86, false));
	assert_false(fits(QCUL_GPU_SM, 86, 0, 80, false));
	assert_false(fits(QCUL_GPU_SM, 80, 0, 90, false));
	assert_false(fits(QCUL_GPU_SM, 90, 0, 90, true));
	assert_false(fits(QCUL_GPU_SM, 90, 'a', 90, true));
	assert_true(fits(QCUL_GPU_SM, 90, 'a', 90, false));
	assert_false(fits(QCUL_GPU_SM, 100, 'a', 103, false));
	assert_true(fits(QCUL_GPU_OTHER, 100, 0, 90, true)); /* nobody knows */
	assert_true(qcul_gpus_fit(&g, 90, false));
	g.count = 1;
	assert_false(qcul_gpus_fit(&g, 90, false));
	g.count = 0;
	assert_false(qcul_gpus_fit(&g, 90, false));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_of_zero),
		cmocka_unit_test(functions_at_one_address),
		cmocka_unit_test(functions_that_overlap),
		cmocka_unit_test(functions_outside_the_code),
		cmocka_unit_test(functions_at_odd_addresses),
		cmocka_unit_test(a_function_that_stands_twice),
		cmocka_unit_test(a_function_inside_a_jump),
		cmocka_unit_test(more_functions_than_any_runtime),
		cmocka_unit_test(code_that_is_relocated),
		cmocka_unit_test(cuda_11),
		cmocka_unit_test(an_unknown_version),
		cmocka_unit_test(cuda_12),
		cmocka_unit_test(cuda_13),
		cmocka_unit_test(old_names_of_the_program),
		cmocka_unit_test(later_functions),
		cmocka_unit_test(stripped),
		cmocka_unit_test(stripped_with_two_sections),
		cmocka_unit_test(a_library_of_nvidia),
		cmocka_unit_test(stripped_of_local_names),
		cmocka_unit_test(no_false_alarm),
		cmocka_unit_test(the_functions_of_others),
		cmocka_unit_test(the_shared_runtime),
		cmocka_unit_test(a_copy_of_the_shared_runtime),
		cmocka_unit_test(gpus_of_damaged_binaries),
		cmocka_unit_test(gpus),
		cmocka_unit_test(more_gpus_than_there_are),
		cmocka_unit_test(texts_of_gpus),
		cmocka_unit_test(which_gpus_run_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
