// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which functions of malloc's family the library exports: all of them, without a version, because a
 * symbol with the library's own version would not replace libc's. It exports nothing else by
 * accident.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const family[] = {
	"aligned_alloc", "calloc",	   "free",    "malloc",	 "malloc_usable_size",
	"memalign",	 "posix_memalign", "pvalloc", "realloc", "reallocarray",
	"valloc",
};
#define FAMILY (sizeof(family) / sizeof(family[0]))

static void whole_family_without_version(void **state)
{
	FILE *f = popen("nm -D --defined-only " CUDART_OURS, "r");
	char line[512], name[400], type;
	unsigned int seen = 0;
	size_t i;

	(void)state;
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%*s %c %399s", &type, name) != 2 || type == 'A' ||
		    strchr(name, '@'))
			continue;
		/* Ways out of a program, which the library has to see (qcu-library/memory/fault.c).
		 */
		if (!strcmp(name, "_exit") || !strcmp(name, "_Exit") || !strcmp(name, "quick_exit"))
			continue;
		/* What libcudart.so.12 calls. */
		if (!strncmp(name, "qcul_12_", strlen("qcul_12_")))
			continue;
		for (i = 0; i < FAMILY && strcmp(family[i], name);)
			i++;
		if (i == FAMILY)
			fail_msg("%s is exported", name);
		seen++;
	}
	assert_int_equal(pclose(f), 0);
	assert_int_equal(seen, FAMILY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_family_without_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
