// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * qcu-check: says how a CUDA program was linked, for which GPUs it has code, and which of NVIDIA's
 * libraries it needs. `qcu check` and `qcu run` call it, and qcu-run in the guest. It only reads
 * the file, so it needs no GPU and no VM.
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

#include "qcu-library/loader/gpus.h"
#include "qcu-library/loader/linked.h"

/* Exit codes. docs/programs/loader.md has them, too. */
enum { RUNS = 0, DOES_NOT_RUN = 1, CANNOT_TELL = 2, NO_CUDA = 3 };

/* NVIDIA's libraries, by the beginnings of their names. */
static const struct {
	const char *prefix;
	bool plain; /* it needs neither GPU nor driver, so it works in the guest as it is */
} nvidia[] = {
	{"libcudart.so.", false},  {"libcuda.so.", false},	{"libcublas", false},
	{"libcudnn", false},	   {"libcufft", false},		{"libcurand.so.", false},
	{"libcusparse", false},	   {"libcusolver", false},	{"libcutensor", false},
	{"libnccl.so.", false},	   {"libcufile", false},	{"libcupti.so.", false},
	{"libnpp", false},	   {"libnvjpeg.so.", false},	{"libnvidia-ml.so.", false},
	{"libnvblas.so.", false},  {"libnvcuvid.so.", false},	{"libnvinfer", false},
	{"libnvrtc", true},	   {"libnvJitLink.so.", true},	{"libnvvm.so.", true},
	{"libnvfatbin.so.", true}, {"libnvToolsExt.so.", true}, {"libnvtx3interop.so.", true},
};

static bool brief;

static void usage(FILE *to)
{
	fputs("usage: qcu-check [--brief] PROGRAM\n"
	      "\n"
	      "Says how a CUDA program or library was linked, for which GPUs it has code, and\n"
	      "which of NVIDIA's libraries it needs. --brief says it in one line, for scripts:\n"
	      "static 12, static 13, shared, none, missing (a library), or refused.\n"
	      "\n"
	      "Exit code: 0 if it runs with qCUDA, 1 if it does not, 2 if the file cannot be\n"
	      "read or is no program, 3 if there is no CUDA in it.\n",
	      to);
}

/* The libraries of qCUDA lie beside this program. */
static bool have_library(const char *name)
{
	char path[PATH_MAX + 256];
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	char *end;

	if (n <= 0)
		return false;
	path[n] = '\0';
	end = strrchr(path, '/');
	if (!end || strlen(name) > 200)
		return false;
	strcpy(end + 1, name);
	return !access(path, R_OK);
}

static void say_gpus(const struct qcul_gpus *g)
{
	static const char *const kind[] = {"sm_", "compute_", "other code for "};
	size_t i;

	if (!g->count && !g->damaged)
		return;
	printf("device code:");
	for (i = 0; i < g->count; i++) {
		const struct qcul_gpu *p = &g->gpu[i];

		printf("%s %s%u", i ? "," : "", kind[p->kind], p->arch);
		if (p->suffix)
			putchar(p->suffix);
		if (p->kind == QCUL_GPU_PTX)
			printf(" (PTX)");
	}
	puts(g->damaged ? " (and a fat binary that is damaged)" : "");
}

/* Prints NVIDIA's libraries that the file needs. Returns how many are missing. */
static unsigned int say_libraries(const struct qcul_elf *e, unsigned int *needed)
{
	unsigned int missing = 0;
	const char *name;
	size_t i, k;

	for (i = 0; (name = qcul_elf_dynamic_text(e, DT_NEEDED, i)); i++) {
		for (k = 0; k < sizeof(nvidia) / sizeof(nvidia[0]); k++)
			if (!strncmp(name, nvidia[k].prefix, strlen(nvidia[k].prefix)))
				break;
		if (k == sizeof(nvidia) / sizeof(nvidia[0]))
			continue;
		++*needed;
		if (nvidia[k].plain) {
			if (!brief)
				printf("needs %s: NVIDIA's own works\n", name);
		} else if (have_library(name)) {
			if (!brief)
				printf("needs %s: qCUDA has it\n", name);
		} else {
			missing++;
			if (!brief)
				printf("needs %s: qCUDA does not have it\n", name);
		}
	}
	return missing;
}

/* A program that needs no dynamic linker, so that no library can be loaded into it. */
static bool wholly_static(const struct qcul_elf *e)
{
	uint64_t flags = 0;
	Elf64_Phdr p;
	bool dynamic = false;
	size_t i;

	for (i = 0; qcul_elf_segment(e, i, &p); i++) {
		if (p.p_type == PT_INTERP)
			return false;
		dynamic |= p.p_type == PT_DYNAMIC;
	}
	return !dynamic || (qcul_elf_dynamic(e, DT_FLAGS_1, 0, &flags) && flags & DF_1_PIE);
}

static int say_program_refused(const char *sentence)
{
	if (brief)
		puts("refused");
	else
		puts(sentence);
	return DOES_NOT_RUN;
}

static int check_program(const struct qcul_elf *e, const char *path)
{
	static struct qcul_linked linked;
	char sentence[PATH_MAX + 512], library[32];
	unsigned int needed = 0, missing;
	struct qcul_gpus gpus;
	bool shared = false;
	const char *name;
	size_t i;

	qcul_linked_find(e, &linked);
	qcul_gpus_read(e, &gpus);
	for (i = 0; (name = qcul_elf_dynamic_text(e, DT_NEEDED, i)); i++)
		shared |= !strncmp(name, "libcudart.so.", 13);
	snprintf(library, sizeof(library), "libcudart.so.%u", linked.major);

	if (linked.state == QCUL_LINKED_FOUND && wholly_static(e)) {
		snprintf(sentence, sizeof(sentence),
			 "%s: it is linked statically as a whole, so qCUDA's library cannot be "
			 "loaded into it: link it without -static",
			 path);
		return say_program_refused(sentence);
	}
	if (linked.state == QCUL_LINKED_FOUND && !have_library(library)) {
		snprintf(sentence, sizeof(sentence),
			 "%s: the runtime of CUDA %u is linked into it, and qCUDA has no %s here",
			 path, linked.major, library);
		return say_program_refused(sentence);
	}
	if (linked.state != QCUL_LINKED_FOUND && linked.state != QCUL_LINKED_NONE) {
		qcul_linked_sentence(&linked, path, sentence, sizeof(sentence));
		return say_program_refused(sentence);
	}

	if (!brief && linked.state == QCUL_LINKED_FOUND)
		printf("linking: the runtime of CUDA %u is linked in%s%s; qCUDA replaces its %zu "
		       "functions\n",
		       linked.major, linked.version ? ", without names and with the code of " : "",
		       linked.version ? linked.version : "", linked.count);
	else if (!brief && shared)
		puts("linking: the runtime is a shared library");
	if (!brief)
		say_gpus(&gpus);
	missing = say_libraries(e, &needed);
	if (missing) {
		puts(brief ? "missing" : "It does not run with qCUDA: libraries are missing.");
		return DOES_NOT_RUN;
	}
	if (linked.state == QCUL_LINKED_NONE && !needed && !gpus.count && !gpus.damaged) {
		puts(brief ? "none" : "There is no CUDA in it.");
		return NO_CUDA;
	}
	if (!brief)
		puts("It runs with qCUDA.");
	else if (linked.state == QCUL_LINKED_FOUND)
		printf("static %u\n", linked.major);
	else
		puts("shared");
	return RUNS;
}

static int no_answer(const char *path, const char *why)
{
	fprintf(stderr, "qcu-check: %s %s\n", path, why);
	return CANNOT_TELL;
}

int main(int argc, char **argv)
{
	struct qcul_elf e;
	const char *why, *path;
	struct stat st;
	void *data;
	int fd;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		usage(stdout);
		return 0;
	}
	brief = argc == 3 && !strcmp(argv[1], "--brief");
	if (argc != 2 + brief || !*argv[1] || (argv[1][0] == '-' && !brief)) {
		usage(stderr);
		return CANNOT_TELL;
	}
	path = argv[argc - 1];
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return no_answer(path, "cannot be read");
	if (!S_ISREG(st.st_mode))
		return no_answer(path, "is no file");
	if (!st.st_size)
		return no_answer(path, "is empty");
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return no_answer(path, "cannot be read");
	why = qcul_elf_open(&e, data, (size_t)st.st_size);
	return why ? no_answer(path, why) : check_program(&e, path);
}
