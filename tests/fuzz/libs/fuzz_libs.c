// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the calls of NVIDIA's libraries: random messages, made from the remarks from which the
 * stubs are made, go through a mirror to the host's real libraries. What these get ends at guard
 * pages.
 *
 * A worker makes the calls. When one goes wrong it ends, this process writes the finding down, and
 * another worker goes on with the next call.
 */
#define _GNU_SOURCE /* memfd_create, RTLD_* */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fuzz/libs/worker.h"

#define TEXT 4000 /* of what a worker has printed */
#define LAST 200  /* and of that before a signal */

extern const struct fuzz_library fuzz_cublas, fuzz_cublaslt, fuzz_cufft, fuzz_curand, fuzz_cusolver,
	fuzz_cusparse;
#ifdef LIB_HAVE_cudnn
extern const struct fuzz_library fuzz_cudnn;
#endif

const struct fuzz_library *const fuzz_libraries[] = {
	&fuzz_cublas, &fuzz_cublaslt, &fuzz_cufft, &fuzz_curand, &fuzz_cusolver, &fuzz_cusparse,
#ifdef LIB_HAVE_cudnn
	&fuzz_cudnn,
#endif
};
const unsigned int fuzz_library_count = sizeof(fuzz_libraries) / sizeof(fuzz_libraries[0]);

static const struct {
	bool memory;
	const char *text;
} kinds[] = {
#define KIND(kind, memory, text) {memory, text},
	FUZZ_KINDS(KIND)};

static int output; /* the worker's stdout and stderr */

static const char *name_of(unsigned int library, unsigned int function)
{
	return fuzz_libraries[library]->lib->functions[function].name;
}

/* The end of what the worker has printed. */
static void read_output(char *text)
{
	off_t len = lseek(output, 0, SEEK_END), from = len > TEXT ? len - TEXT : 0;
	ssize_t n = pread(output, text, TEXT, from);

	text[n > 0 ? n : 0] = 0;
}

/* An abort tells in words what it is about. */
static enum fuzz_kind look_closer(enum fuzz_kind kind, const char *text)
{
	static const char *const broken[] = {
		"stack smashing", "free(): ",	 "malloc(): ",	 "malloc_",
		"corrupted",	  "double free", "munmap_chunk", "realloc(): "};
	size_t i;

	/* Without the sanitizer `new` throws. */
	if (strstr(text, "AddressSanitizer: out-of-memory") ||
	    strstr(text, "AddressSanitizer: allocation-size-too-big"))
		return FOUND_EXCEPTION;
	if (strstr(text, "AddressSanitizer") || strstr(text, "runtime error: "))
		return FOUND_SANITIZER;
	if (kind != FOUND_ABORT)
		return kind;
	if (strstr(text, "terminate called"))
		return FOUND_EXCEPTION;
	for (i = 0; i < sizeof(broken) / sizeof(broken[0]); i++)
		if (strstr(text, broken[i]))
			return FOUND_HEAP;
	return kind;
}

/* Writes a finding down, and prints it if it is a new one. */
static void keep_finding(uint64_t seed, enum fuzz_kind kind)
{
	const unsigned int library = fuzz_shared->inner_library,
			   function = fuzz_shared->inner_function;
	struct fuzz_counts *c = &fuzz_shared->counts[library][function];
	char text[TEXT + 1], *at;
	unsigned int i;

	read_output(text);
	kind = look_closer(kind, text);
	if (c->found[kind]++)
		return;
	printf("%s: %s (in a call of %s), address %#llx\n\tagain: --seed %llu --number %llu\n",
	       name_of(library, function), kinds[kind].text,
	       name_of(fuzz_shared->library, fuzz_shared->function),
	       (unsigned long long)fuzz_shared->address, (unsigned long long)seed,
	       (unsigned long long)fuzz_shared->number);
	for (i = 1; i < fuzz_shared->used && i < FUZZ_SHOWN; i++)
		printf("%s%#llx", i == 1 ? "\twords: " : " ",
		       (unsigned long long)fuzz_shared->words[i]);
	printf("\n");
	at = strstr(text, "\nsignal ");
	printf("%s\n", at && at > text + LAST ? at - LAST : text);
	fflush(stdout);
}

/* Returns how the worker has ended. */
static int run_worker(const struct fuzz_task *task)
{
	int status;
	pid_t pid;

	fuzz_shared->kind = FOUND_NONE;
	fuzz_shared->address = 0;
	fuzz_shared->busy = false;
	if (ftruncate(output, 0))
		exit(2);
	lseek(output, 0, SEEK_SET);
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(2);
	}
	if (!pid) {
		dup2(output, STDOUT_FILENO);
		dup2(output, STDERR_FILENO);
		fuzz_work(task);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			exit(2);
	if (WIFEXITED(status) &&
	    (WEXITSTATUS(status) == WORKER_LOST || WEXITSTATUS(status) == WORKER_LARGE))
		return WEXITSTATUS(status);
	if (WIFEXITED(status) && WEXITSTATUS(status) == WORKER_DONE)
		return WORKER_DONE;
	keep_finding(task->seed, fuzz_shared->kind ? fuzz_shared->kind : FOUND_END);
	return WORKER_CATCH;
}

static bool is_over(const struct fuzz_task *t)
{
	return t->from >= t->to || (t->until && time(NULL) >= t->until);
}

static void run(struct fuzz_task *t)
{
	unsigned int failed = 0;

	while (!is_over(t)) {
		uint64_t before = t->from;
		int how;

		fuzz_shared->number = before;
		how = run_worker(t);
		t->from = fuzz_shared->number + (how == WORKER_CATCH || how == WORKER_LOST);
		/* It does not come to a call at all. */
		failed = t->from > before + 1 ? 0 : failed + 1;
		if (how == WORKER_DONE || failed > 200)
			break;
	}
}

/* Why the library was never called. */
static const char *reason(unsigned int l, unsigned int i)
{
	const struct fuzz_function *f = &fuzz_libraries[l]->functions[i];
	const struct fuzz_counts *c = &fuzz_shared->counts[l][i];
	static char text[64];

	if (f->handle && !fuzz_shared->has_handle[f->handle])
		return "no object (it needs a GPU)";
	if (f->second && !fuzz_shared->has_handle[f->second])
		return "no second object (it needs a GPU)";
	if (!c->sent)
		return "not sent";
	snprintf(text, sizeof(text), "the mirror said %d, the library %d", c->rc, c->status);
	return text;
}

/* Returns the number of findings by which a guest may gain something. */
static unsigned int report(const struct fuzz_task *t, bool list)
{
	unsigned int l, i, k, reached, served, all_reached = 0, all_served = 0, bad = 0, other = 0;
	uint64_t sent = 0, faults = 0;

	for (l = 0; l < fuzz_library_count; l++) {
		reached = 0;
		served = fuzz_libraries[l]->lib->count;
		for (i = 0; i < served; i++) {
			const struct fuzz_counts *c = &fuzz_shared->counts[l][i];

			reached += c->called != 0;
			sent += c->sent;
			faults += c->faults;
			if (list && !c->called)
				printf("never called: %s: %s\n", name_of(l, i), reason(l, i));
			if (list && c->faults)
				printf("%s: %u errors of the GPU\n", name_of(l, i), c->faults);
			for (k = 0; k < FOUND_COUNT; k++) {
				if (!c->found[k])
					continue;
				printf("%s %s: %s, %u times\n", kinds[k].memory ? "FOUND" : "found",
				       name_of(l, i), kinds[k].text, c->found[k]);
				*(kinds[k].memory ? &bad : &other) += 1;
			}
		}
		printf("%s: %u of %u functions called\n", fuzz_libraries[l]->lib->soname, reached,
		       served);
		all_reached += reached;
		all_served += served;
	}
	printf("seed %llu: %llu calls, %u of %u functions called, %llu errors of the GPU, "
	       "%u findings, %u that cost the guest its own session only\n",
	       (unsigned long long)t->seed, (unsigned long long)sent, all_reached, all_served,
	       (unsigned long long)faults, bad, other);
	return bad;
}

/* All libraries, before any process is made: then a worker has them at once. */
static bool load_libraries(void)
{
	unsigned int l, there = 0;

	for (l = 0; l < fuzz_library_count; l++) {
		if (dlopen(fuzz_libraries[l]->lib->soname, RTLD_NOW | RTLD_LOCAL))
			there++;
		else
			printf("%s\n", dlerror());
	}
	return there;
}

static const struct be_ops *load_backend(const char *path)
{
	const struct be_ops *backend;
	be_plugin_fn *fn = NULL;
	void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (lib)
		*(void **)&fn = dlsym(lib, BE_PLUGIN_SYMBOL);
	backend = fn ? fn() : NULL;
	if (!backend || backend->abi != BE_ABI) {
		fprintf(stderr, "%s is no backend: %s\n", path,
			lib ? "another version" : dlerror());
		exit(2);
	}
	return backend;
}

static void find_function(struct fuzz_task *t, const char *name)
{
	unsigned int l, i;

	for (l = 0; l < fuzz_library_count; l++)
		for (i = 0; i < fuzz_libraries[l]->lib->count; i++)
			if (!strcmp(name_of(l, i), name)) {
				t->only_library = (int)l;
				t->only_function = (int)i;
				return;
			}
	fprintf(stderr, "%s is not served\n", name);
	exit(2);
}

static const char usage[] = "usage: fuzz_libs [OPTION VALUE]...\n"
			    "  --backend FILE   a backend with a GPU (be_cuda.so); without one, "
			    "only what needs no GPU is called\n"
			    "  --seed N         other calls\n"
			    "  --calls N        how many (100000)\n"
			    "  --seconds N      how long\n"
			    "  --number N       only this call of the seed\n"
			    "  --from N         begin with this call\n"
			    "  --only FUNCTION  only calls of this one\n"
			    "  --list           say which functions were never called, and why\n";

int main(int argc, char **argv)
{
	struct fuzz_task task = {
		.seed = 1,
		.to = 100000,
		.only_library = -1,
		.only_function = -1,
		.limits = {.seconds = 10, .growth = 256ull << 20},
	};
	const char *only = NULL;
	bool list = false;
	int i;

	for (i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";
		const uint64_t n = strtoull(value, NULL, 0);

		if (!strcmp(argv[i], "--list")) {
			list = true;
			continue;
		}
		if (!strcmp(argv[i], "--fence")) {
			task.fence = true;
			continue;
		}
		if (!strcmp(argv[i], "--backend")) {
			task.ops = load_backend(value);
			task.real = true;
			task.limits.seconds = 60;
			task.limits.growth = 2ull << 30;
		} else if (!strcmp(argv[i], "--seed")) {
			task.seed = n;
		} else if (!strcmp(argv[i], "--calls")) {
			task.to = n;
		} else if (!strcmp(argv[i], "--seconds")) {
			task.until = time(NULL) + (time_t)n;
			task.to = UINT64_MAX;
		} else if (!strcmp(argv[i], "--from")) {
			task.from = n;
		} else if (!strcmp(argv[i], "--number")) {
			task.from = n;
			task.to = n + 1;
		} else if (!strcmp(argv[i], "--only")) {
			only = value;
		} else {
			fputs(usage, stderr);
			return 2;
		}
		i++;
	}
	if (only)
		find_function(&task, only);
	output = memfd_create("output", MFD_CLOEXEC);
	fuzz_shared = mmap(NULL, sizeof(*fuzz_shared), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (output < 0 || fuzz_shared == MAP_FAILED) {
		perror("fuzz_libs");
		return 2;
	}
	if (!load_libraries()) {
		printf("none of NVIDIA's libraries is on this machine\n");
		return 77;
	}
	run(&task);
	return report(&task, list) != 0;
}
