// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Which calls of a program are refused? The program's table of imports has their names, and the
 * beginning of a name says whose function it is. Our library is looked up as the file that lies
 * beside this program, so that what is said is true of that library. The names that it answers with
 * "not supported" come from the lists that it was built from.
 */
#define _GNU_SOURCE /* PATH_MAX */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-library/loader/calls.h"
#include "qcu-library/loader/linked.h"

/* In the order of strcmp. loader.mk makes it. */
static const char *const unserved[] = {
#include "unserved_names.inc"
};

#define EXPORTS_MAX 8192u
#define NEEDED_MAX  1024u

/* Whose a function is, longer beginnings first. A capital letter follows. */
static struct owner {
	const char *begins, *library;
	bool looked_up;
	char needed[64]; /* the library of ours that the file needs; empty: none */
	const char **exports;
	size_t count;
} owners[] = {
	{.begins = "cusparseLt", .library = "libcusparseLt.so."},
	{.begins = "cusolverMg", .library = "libcusolverMg.so."},
	{.begins = "cublasLt", .library = "libcublasLt.so."},
	{.begins = "cusolver", .library = "libcusolver.so."},
	{.begins = "cusparse", .library = "libcusparse.so."},
	{.begins = "cublas", .library = "libcublas.so."},
	{.begins = "curand", .library = "libcurand.so."},
	{.begins = "cuFile", .library = "libcufile.so."},
	{.begins = "__cuda", .library = "libcudart.so."},
	{.begins = "cudnn", .library = "libcudnn.so."},
	{.begins = "cufft", .library = "libcufft.so."},
	{.begins = "cuda", .library = "libcudart.so."},
	{.begins = "nccl", .library = "libnccl.so."},
	{.begins = "nvml", .library = "libnvidia-ml.so."},
	{.begins = "cu", .library = "libcuda.so."},
};

bool qcul_calls_library(const char *name, char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	char *end;

	if (n <= 0 || strchr(name, '/'))
		return false;
	path[n] = '\0';
	end = strrchr(path, '/');
	if (!end || strlen(name) >= size - (size_t)(end + 1 - path))
		return false;
	strcpy(end + 1, name);
	return !access(path, R_OK);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What our library exports, in order. The file stays mapped, because its names are used. */
static void read_exports(struct owner *o)
{
	static struct qcul_elf ours;
	struct qcul_elf_symbols t;
	struct qcul_elf_symbol s;
	char path[PATH_MAX];
	struct stat st;
	void *data;
	size_t i;
	int fd;

	if (!qcul_calls_library(o->needed, path, sizeof(path)))
		return;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	data = fstat(fd, &st) ? MAP_FAILED
			      : mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (data == MAP_FAILED || qcul_elf_open(&ours, data, (size_t)st.st_size) ||
	    !qcul_elf_symbols(&ours, SHT_DYNSYM, &t))
		return;
	o->exports = calloc(EXPORTS_MAX, sizeof(*o->exports));
	for (i = 0; o->exports && i < t.count && o->count < EXPORTS_MAX; i++)
		if (qcul_elf_symbol(&t, i, &s) && s.defined)
			o->exports[o->count++] = s.name;
	if (o->count)
		qsort(o->exports, o->count, sizeof(*o->exports), compare_names);
}

static void look_up_owner(const struct qcul_elf *e, struct owner *o)
{
	bool runtime = qcul_linked_is_shared_name(o->library);
	const char *name;
	size_t i;

	o->looked_up = true;
	for (i = 0; i < NEEDED_MAX && (name = qcul_elf_dynamic_text(e, DT_NEEDED, i)); i++) {
		if (runtime && qcul_linked_is_shared_name(name))
			/* Ours takes the place of a copy under another name, too. */
			snprintf(o->needed, sizeof(o->needed), "%s%d", o->library,
				 atoi(strstr(name, ".so") + 4));
		else if (!strncmp(name, o->library, strlen(o->library)) &&
			 strlen(name) < sizeof(o->needed))
			strcpy(o->needed, name);
		else
			continue;
		read_exports(o);
		return;
	}
}

static struct owner *owner_of(const char *name)
{
	size_t i, len;

	for (i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		len = strlen(owners[i].begins);
		if (!strncmp(name, owners[i].begins, len) && name[len] >= 'A' && name[len] <= 'Z')
			return &owners[i];
	}
	return NULL;
}

void qcul_calls_read(const struct qcul_elf *e,
		     void (*say)(const char *library, const char *name, bool lacking))
{
	struct qcul_elf_symbols t;
	struct qcul_elf_symbol s;
	size_t i, said = 0;
	bool lacking;

	if (!qcul_elf_symbols(e, SHT_DYNSYM, &t))
		return;
	for (i = 0; i < t.count && said < QCUL_CALLS_MAX; i++) {
		struct owner *o;
		const char *name;

		if (!qcul_elf_symbol(&t, i, &s) || s.defined || s.weak)
			continue;
		name = s.name;
		o = owner_of(name);
		if (o && !o->looked_up)
			look_up_owner(e, o);
		if (!o || !o->count)
			continue;
		lacking = !bsearch(&name, o->exports, o->count, sizeof(*o->exports), compare_names);
		if (!lacking && !bsearch(&name, unserved, sizeof(unserved) / sizeof(unserved[0]),
					 sizeof(unserved[0]), compare_names))
			continue;
		say(o->needed, name, lacking);
		said++;
	}
}
