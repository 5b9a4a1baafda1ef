// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * qcu-check: says how a CUDA program was linked, for which GPUs it has code, which of NVIDIA's
 * libraries it needs and which of its calls are refused. `qcu check` and `qcu run` call it, and
 * qcu-run in the guest. It only reads the file, so it needs no GPU and no VM.
 */
#define _GNU_SOURCE /* PATH_MAX */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/qcucmd.h"
#include "qcu-library/loader/calls.h"
#include "qcu-library/loader/gpus.h"
#include "qcu-library/loader/linked.h"

/* Exit codes. docs/programs/loader.md has them, too. */
enum { RUNS = 0, DOES_NOT_RUN = 1, CANNOT_TELL = 2, NO_CUDA = 3 };

/*
 * NVIDIA's libraries, by the beginnings of their names. The first that fits counts.
 *
 * OURS: it runs only where qCUDA has it. PLAIN: it needs neither GPU nor driver, so it works in the
 * guest as it is. OWN: the runtime is in it, so it is served as a program is, if it is there. IDLE:
 * it can be loaded as it is, and its functions fail.
 */
enum whose { OURS, PLAIN, OWN, IDLE };
static const struct {
	const char *prefix;
	enum whose whose;
} nvidia[] = {
	{"libcudart.so.12.", OWN}, {"libcudart.so.13.", OWN}, {"libcudart.so.", OURS},
	{"libcusparseLt", OWN},	   {"libcudart", OWN},	      {"libcuda.so.", OURS},
	{"libcublas", OURS},	   {"libcudnn", OURS},	      {"libcufft", OURS},
	{"libcurand.so.", OURS},   {"libcusparse", OURS},     {"libcusolver", OURS},
	{"libcutensor", OWN},	   {"libnccl.so.", OURS},     {"libcufile", OURS},
	{"libcupti.so.", IDLE},	   {"libnpp", OWN},	      {"libnvjpeg", OWN},
	{"libnvidia-", OURS},	   {"libnvblas.so.", OURS},   {"libnvcuvid.so.", OURS},
	{"libnvinfer", OURS},	   {"libnvonnx", OURS},	      {"libnvoptix", OURS},
	{"libnvperf", OURS},	   {"libnvshmem", OWN},	      {"libnvcomp", OWN},
	{"libnvimgcodec", OWN},	   {"libnvtiff", OWN},	      {"libcuobjclient", OWN},
	{"libcustatevec", OWN},	   {"libcudss", OWN},	      {"libnvrtc", PLAIN},
	{"libnvJitLink.", PLAIN},  {"libnvvm.so.", PLAIN},    {"libnvfatbin.so.", PLAIN},
	{"libnvToolsExt", PLAIN},  {"libnvtx3", PLAIN},
};
#define NVIDIA (sizeof(nvidia) / sizeof(nvidia[0]))

#define NEEDED_MAX 1024u

static bool brief;

/* The GPU that the program is to run on; sm: 10 * major + minor, 0: any. */
static struct {
	unsigned int sm;
	bool only_ptx;
} device;

static void usage(FILE *to)
{
	fputs("usage: qcu-check [--brief | --facts | --gpu=CAPABILITY] PROGRAM\n"
	      "\n"
	      "Says how a CUDA program or library was linked, for which GPUs it has code, and\n"
	      "which of NVIDIA's libraries it needs. --brief says it in one line, for scripts:\n"
	      "static 12, static 13, shared, none, missing (a library), or refused. --facts\n"
	      "says what `qcu check --all` puts together. --gpu=90 also says whether there is "
	      "code\n"
	      "for a GPU of compute capability 9.0; --gpu=90-ptx, for one that runs PTX only.\n"
	      "\n"
	      "--version prints which wire version the libraries beside it have.\n"
	      "\n"
	      "Exit code: 0 if it runs with qCUDA, 1 if it does not, 2 if the file cannot be\n"
	      "read or is no program, or if that depends on libraries that are not looked at,\n"
	      "3 if there is no CUDA in it.\n",
	      to);
}

static bool have_library(const char *name)
{
	char path[PATH_MAX];

	return qcul_calls_library(name, path, sizeof(path));
}

/* A text of the file's, without what a terminal would obey. At most one is used at a time. */
static const char *replace_controls(const char *text)
{
	static char out[PATH_MAX + 512];
	size_t i;

	for (i = 0; text[i] && i < sizeof(out) - 1; i++)
		out[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
	out[i] = '\0';
	return out;
}

/* The index of a library of NVIDIA's, or NVIDIA. */
static size_t index_in_nvidia(const char *name)
{
	size_t k;

	for (k = 0; k < NVIDIA; k++)
		if (!strncmp(name, nvidia[k].prefix, strlen(nvidia[k].prefix)))
			break;
	return k;
}

static void say_gpus(const struct qcul_gpus *g)
{
	char text[QCUL_GPUS_MAX * 32];

	if (!g->count && !g->damaged)
		return;
	qcul_gpus_text(g, text, sizeof(text));
	printf("device code: %s%s\n", text,
	       g->damaged ? " (and a fat binary that is damaged)" : "");
}

/* Is all of its code known, and none of it for the device? */
static bool lacks_code(const struct qcul_gpus *g)
{
	return device.sm && g->count && g->count < QCUL_GPUS_MAX && !g->damaged &&
	       !qcul_gpus_fit(g, device.sm, device.only_ptx);
}

static int say_lacks_code(void)
{
	printf("It does not run on this device, of compute capability %u.%u%s: the code is for "
	       "others.\nCompile it with -gencode arch=compute_%u,code=compute_%u as well.\n",
	       device.sm / 10, device.sm % 10,
	       device.only_ptx ? ", which is in software and runs PTX only" : "", device.sm,
	       device.sm);
	return DOES_NOT_RUN;
}

/* NVIDIA's libraries that the file needs. */
struct needs {
	unsigned int all, missing, own;
};

static void say_libraries(const struct qcul_elf *e, struct needs *n)
{
	const char *name, *what;
	size_t i, k;

	for (i = 0; i < NEEDED_MAX && (name = qcul_elf_dynamic_text(e, DT_NEEDED, i)); i++) {
		k = index_in_nvidia(name);
		if (k == NVIDIA)
			continue;
		n->all++;
		if (have_library(name)) {
			what = "qCUDA has it";
		} else if (nvidia[k].whose == PLAIN) {
			what = "NVIDIA's own works";
		} else if (nvidia[k].whose == OWN) {
			n->own++;
			what = "NVIDIA's own, which is not looked at here";
		} else if (nvidia[k].whose == IDLE) {
			n->own++;
			what = "NVIDIA's own can be loaded, and its functions fail";
		} else {
			n->missing++;
			what = "qCUDA does not have it";
		}
		if (!brief)
			printf("needs %s: %s\n", replace_controls(name), what);
	}
}

static unsigned int refused_calls;

static void say_call(const char *library, const char *name, bool lacking)
{
	refused_calls++;
	if (refused_calls <= 10)
		printf("calls %s: %s of qCUDA %s\n", replace_controls(name), library,
		       lacking ? "does not have it" : "answers \"not supported\"");
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
	struct needs needs = {0};
	struct qcul_gpus gpus;
	bool shared = false;
	const char *name;
	size_t i;

	qcul_linked_find(e, &linked);
	qcul_gpus_read(e, &gpus);
	for (i = 0; (name = qcul_elf_dynamic_text(e, DT_NEEDED, i)); i++)
		shared |= qcul_linked_is_shared_name(name);
	snprintf(library, sizeof(library), "libcudart.so.%u", qcul_linked_library(linked.major));

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

	if (!brief && linked.shared && linked.state == QCUL_LINKED_FOUND)
		printf("linking: this is a copy of NVIDIA's shared runtime of CUDA %u; qCUDA "
		       "replaces its %zu functions\n",
		       linked.major, linked.count);
	else if (!brief && linked.state == QCUL_LINKED_FOUND)
		printf("linking: the runtime of CUDA %u is linked in%s%s; qCUDA replaces its %zu "
		       "functions\n",
		       linked.major, linked.version ? ", without names and with the code of " : "",
		       linked.version ? linked.version : "", linked.count);
	else if (!brief && shared)
		puts("linking: the runtime is a shared library");
	if (!brief)
		say_gpus(&gpus);
	say_libraries(e, &needs);
	if (!brief)
		qcul_calls_read(e, say_call);
	if (refused_calls > 10)
		printf("calls %u more such functions\n", refused_calls - 10);
	if (needs.missing) {
		puts(brief ? "missing" : "It does not run with qCUDA: libraries are missing.");
		return DOES_NOT_RUN;
	}
	if (linked.state == QCUL_LINKED_NONE && !needs.all && !gpus.count && !gpus.damaged) {
		puts(brief ? "none" : "There is no CUDA in it.");
		return NO_CUDA;
	}
	if (!brief && lacks_code(&gpus))
		return say_lacks_code();
	if (!brief)
		puts(needs.own ? "It runs with qCUDA if these libraries do: qcu check --all "
				 "follows them."
			       : "It runs with qCUDA.");
	else if (linked.state == QCUL_LINKED_FOUND)
		printf("static %u\n", qcul_linked_library(linked.major));
	else
		puts("shared");
	return needs.own ? CANNOT_TELL : RUNS;
}

/* ---- for `qcu check --all` ---- */

static void say_call_fact(const char *library, const char *name, bool lacking)
{
	printf("%s %s %s\n", lacking ? "lacking" : "unserved", library, replace_controls(name));
}

static const char *whose_library(const char *name)
{
	static const char *const words[] = {"missing", "plain", "own", "idle"};
	size_t k = index_in_nvidia(name);

	if (k == NVIDIA)
		return "other";
	return have_library(name) ? "ours" : words[nvidia[k].whose];
}

/* A line for each fact: a word, and what is known. */
static int say_facts(const struct qcul_elf *e, const char *path)
{
	static const int64_t tags[] = {DT_RPATH, DT_RUNPATH};
	static struct qcul_linked linked;
	char sentence[PATH_MAX + 512], library[32];
	struct qcul_gpus gpus;
	uint64_t flags = 0;
	const char *text;
	size_t i;

	qcul_linked_find(e, &linked);
	qcul_gpus_read(e, &gpus);
	snprintf(library, sizeof(library), "libcudart.so.%u", qcul_linked_library(linked.major));
	if (linked.state == QCUL_LINKED_FOUND && wholly_static(e)) {
		puts("refused it is linked statically as a whole");
	} else if (linked.state == QCUL_LINKED_FOUND && !have_library(library)) {
		printf("refused qCUDA has no %s here\n", library);
	} else if (linked.state == QCUL_LINKED_FOUND) {
		printf("%s %u%s%s\n", linked.shared ? "copy" : "linked", linked.major,
		       linked.version ? " " : "", linked.version ? linked.version : "");
	} else if (linked.state != QCUL_LINKED_NONE) {
		qcul_linked_sentence(&linked, path, sentence, sizeof(sentence));
		printf("refused %s\n", replace_controls(sentence + strlen(path) + 2));
	}
	for (i = 0; i < gpus.count; i++)
		printf("code %s\n", gpus.gpu[i].kind == QCUL_GPU_PTX ? "PTX" : "machine");
	text = qcul_elf_dynamic_text(e, DT_SONAME, 0);
	if (text)
		printf("soname %s\n", replace_controls(text));
	/* Copies of the runtime are known by the names of their files. */
	if (!text || linked.shared) {
		text = strrchr(path, '/');
		text = text ? text + 1 : path;
	}
	printf("is %s\n", whose_library(text));
	if (linked.state == QCUL_LINKED_NONE && qcul_linked_is_shared_name(text) &&
	    !have_library(text))
		puts("refused it has the name of NVIDIA's shared runtime, which is not in it");
	for (i = 0; i < 2; i++) {
		text = qcul_elf_dynamic_text(e, tags[i], 0);
		if (text)
			printf("path %s\n", replace_controls(text));
	}
	for (i = 0; i < NEEDED_MAX && (text = qcul_elf_dynamic_text(e, DT_NEEDED, i)); i++)
		printf("needs %s %s\n", whose_library(text), replace_controls(text));
	if (qcul_elf_dynamic(e, DT_BIND_NOW, 0, &flags) ||
	    (qcul_elf_dynamic(e, DT_FLAGS, 0, &flags) && flags & DF_BIND_NOW) ||
	    (qcul_elf_dynamic(e, DT_FLAGS_1, 0, &flags) && flags & DF_1_NOW))
		puts("now");
	qcul_calls_read(e, say_call_fact);
	return RUNS;
}

static int no_answer(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s %s\n", program_invocation_short_name, path, why);
	return CANNOT_TELL;
}

static int end_of_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "%s: the output cannot be written\n", program_invocation_short_name);
	return CANNOT_TELL;
}

/* 90 or 90-ptx */
static bool read_device(const char *text)
{
	char *end;

	if (*text < '1' || *text > '9')
		return false;
	device.sm = (unsigned int)strtoul(text, &end, 10);
	device.only_ptx = !strcmp(end, "-ptx");
	return end - text >= 2 && end - text <= 3 && (device.only_ptx || !*end);
}

int main(int argc, char **argv)
{
	struct qcul_elf e;
	const char *why, *path;
	struct stat st;
	bool facts, gpu;
	void *data;
	int answer, fd;

	if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		usage(stdout);
		return end_of_output();
	}
	if (argc == 2 && !strcmp(argv[1], "--version")) {
		printf("qcu-check, wire version %u\n", QCU_WIRE_VERSION);
		return end_of_output();
	}
	brief = argc == 3 && !strcmp(argv[1], "--brief");
	facts = argc == 3 && !strcmp(argv[1], "--facts");
	gpu = argc == 3 && !strncmp(argv[1], "--gpu=", 6) && read_device(argv[1] + 6);
	if (argc != 2 + (brief || facts || gpu) || !*argv[1] || (argv[1][0] == '-' && argc == 2)) {
		usage(stderr);
		return CANNOT_TELL;
	}
	path = argv[argc - 1];
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return no_answer(path, "does not exist");
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
	if (why)
		return no_answer(path, why);
	answer = facts ? say_facts(&e, path) : check_program(&e, path);
	if (fflush(stdout))
		return no_answer(path, "was read, but the answer cannot be written");
	return answer;
}
