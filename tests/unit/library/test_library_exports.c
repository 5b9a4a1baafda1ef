// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A program that was linked with NVIDIA's library finds each of its functions in ours, under the
 * same symbol version. The list in the tree agrees with both files.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MOST 2000

struct names {
	char *v[MOST];
	size_t count;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void add(struct names *n, const char *name)
{
	assert_true(n->count < MOST);
	n->v[n->count] = strdup(name);
	assert_non_null(n->v[n->count]);
	n->count++;
}

static void finish(struct names *n)
{
	qsort(n->v, n->count, sizeof(*n->v), by_name);
}

/*
 * Exported functions as name@@version. Those of malloc have no version (test_library_malloc.c).
 * What only our other libraries use has a version of its own.
 */
static void exports(const char *file, struct names *n)
{
	char command[512], line[512], name[400], type;
	FILE *f;

	snprintf(command, sizeof(command), "nm -D --defined-only %s", file);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%*s %c %399s", &type, name) == 2 && type != 'A' &&
		    strchr(name, '@') && !strstr(name, "@@QCUDA_PRIVATE"))
			add(n, name);
	assert_int_equal(pclose(f), 0);
	finish(n);
}

/* Only what CUDA 13.0 has, or all. */
static void listed(struct names *n, bool all)
{
	char line[512], name[200], status[200], later[20], full[256];
	FILE *f = fopen("qcu-library/cudart.syms", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#')
			continue;
		later[0] = 0;
		assert_true(sscanf(line, "%199s %199s %19s", name, status, later) >= 2);
		assert_true(!strcmp(status, "implemented") || !strcmp(status, "unsupported"));
		if (!all && later[0])
			continue;
		snprintf(full, sizeof(full), "%s@@libcudart.so.13", name);
		add(n, full);
	}
	fclose(f);
	finish(n);
}

static void assert_same(const struct names *a, const struct names *b)
{
	size_t i;

	for (i = 0; i < a->count && i < b->count; i++)
		assert_string_equal(a->v[i], b->v[i]);
	assert_int_equal(a->count, b->count);
}

static void assert_within(const struct names *a, const struct names *b)
{
	size_t i;

	for (i = 0; i < a->count; i++) {
		if (!bsearch(&a->v[i], b->v, b->count, sizeof(*b->v), by_name))
			fail_msg("%s is missing", a->v[i]);
	}
}

static void forget(struct names *n)
{
	while (n->count > 0)
		free(n->v[--n->count]);
}

static void as_nvidias_library(void **state)
{
	struct names ours = {0}, first = {0}, theirs = {0};

	(void)state;
	if (access(CUDART_NVIDIA, R_OK) != 0) {
		printf("skipped: %s is not installed\n", CUDART_NVIDIA);
		skip();
	}
	exports(CUDART_NVIDIA, &theirs);
	exports(CUDART_OURS, &ours);
	listed(&first, false);
	assert_true(theirs.count > 400);
	assert_within(&theirs, &ours);
	assert_within(&first, &theirs);
	forget(&ours);
	forget(&first);
	forget(&theirs);
}

static void as_the_list_says(void **state)
{
	struct names ours = {0}, list = {0};

	(void)state;
	exports(CUDART_OURS, &ours);
	listed(&list, true);
	assert_same(&ours, &list);
	forget(&ours);
	forget(&list);
}

/* Only libc and its loader: the library must work in a guest that has nothing else. */
static void needs_only_libc(void **state)
{
	char line[512];
	FILE *f;

	(void)state;
	f = popen("readelf -d " CUDART_OURS, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (!strstr(line, "(NEEDED)") || strstr(line, "san.so"))
			continue;
		assert_true(strstr(line, "[libc.so.6]") || strstr(line, "[ld-linux") ||
			    strstr(line, "[libpthread.so") || strstr(line, "[libdl.so"));
	}
	assert_int_equal(pclose(f), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_the_list_says),
		cmocka_unit_test(as_nvidias_library),
		cmocka_unit_test(needs_only_libc),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
