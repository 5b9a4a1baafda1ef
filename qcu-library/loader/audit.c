// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * How the module meets a program: see docs/programs/loader.md.
 *
 * As an audit library (LD_AUDIT) the dynamic linker shows it each object, those of the start and
 * those that are loaded later, before any of the object's code runs. As a preloaded library
 * (LD_PRELOAD) it runs before the program's own code, but after that of the libraries that came
 * with it, so only the program itself can be served.
 *
 * An audit library lives in a namespace of its own, with a C library of its own. So memory that is
 * allocated here is never given to the program.
 */
#define _GNU_SOURCE /* dladdr1, dlinfo */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "qcu-library/loader/loader.h"

#define PUBLIC	     __attribute__((visibility("default")))
#define CANNOT_START 127 /* as the dynamic linker ends when a library is missing */

static bool off;	  /* QCU_LOADER=0 */
static char folder[4096]; /* where this module lies */
static bool started;	  /* the program's own code may run */
static bool preloaded;
static bool traced;
static struct qcul_linked linked; /* the dynamic linker shows one object at a time */

/* NVIDIA's libraries that we have. */
static const char *const libraries[] = {
	"libcudart.so.13",
	"libcudart.so.12",
	"libcuda.so.1",
	"libcublas.so.13",
	"libcublasLt.so.13",
	"libnvidia-ml.so.1",
	"libcudnn.so.9",
	"libcufft.so.12",
	"libcurand.so.10",
	"libcusolver.so.12",
	"libcusparse.so.12",
	"libnccl.so.2",
	"libcufile.so.0",
	"libcublas.so.12",
	"libcublasLt.so.12",
	"libcufft.so.11",
	"libcusolver.so.11",
	"libcudnn_adv.so.9",
	"libcudnn_cnn.so.9",
	"libcudnn_engines_precompiled.so.9",
	"libcudnn_engines_runtime_compiled.so.9",
	"libcudnn_engines_tensor_ir.so.9",
	"libcudnn_ext.so.9",
	"libcudnn_graph.so.9",
	"libcudnn_heuristic.so.9",
	"libcudnn_ops.so.9",
};
#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

/* The place of a file among them, by its name or path. LIBRARIES: it is none. */
static size_t which_library(const char *path)
{
	const char *base = strrchr(path, '/');
	size_t i;

	base = base ? base + 1 : path;
	for (i = 0; i < LIBRARIES && strcmp(base, libraries[i]) != 0; i++)
		;
	return i;
}

static void trace(const char *path, const char *what, size_t n)
{
	const char *wish = getenv("QCU_TRACE");

	if (wish && *wish && strcmp(wish, "0") != 0)
		qcul_loader_say("loader: %s: %zu %s", path, n, what);
}

/* ---- the file of an object ---- */

struct file {
	int fd;
	const void *data;
	size_t size;
};

static bool open_file(struct file *f, const char *path)
{
	struct stat st;

	f->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (f->fd < 0)
		return false;
	if (fstat(f->fd, &st) || !S_ISREG(st.st_mode) || !st.st_size)
		goto no;
	f->size = (size_t)st.st_size;
	f->data = mmap(NULL, f->size, PROT_READ, MAP_PRIVATE, f->fd, 0);
	if (f->data != MAP_FAILED)
		return true;
no:
	close(f->fd);
	return false;
}

static void close_file(struct file *f)
{
	munmap((void *)f->data, f->size);
	close(f->fd);
}

/* The path of what is mapped at an address. The kernel knows it, where the dynamic linker does not.
 */
static bool mapped_path(uintptr_t at, char *path, size_t size)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned long low, high;
	bool found = false;
	char line[4096 + 128];
	char *name;

	while (maps && !found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx", &low, &high) != 2 || at < low || at >= high)
			continue;
		name = strchr(line, '/');
		if (!name)
			break;
		name[strcspn(name, "\n")] = '\0';
		found = (size_t)snprintf(path, size, "%s", name) < size;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* True if the file is what was loaded: its dynamic section is where the dynamic linker found it. */
static bool is_loaded_file(const struct qcul_elf *e, const struct link_map *map)
{
	uint64_t addr;

	return qcul_elf_dynamic_addr(e, &addr) && map->l_addr + addr == (uintptr_t)map->l_ld;
}

/*
 * The dynamic linker gives the program no name. /proc/self/exe is the program, unless the dynamic
 * linker itself was started with the program as its argument.
 */
static bool open_object(const struct link_map *map, struct file *f, struct qcul_elf *e, char *path,
			size_t size)
{
	if (*map->l_name) {
		if (!strchr(map->l_name, '/') || !open_file(f, map->l_name))
			return false; /* the kernel's own library has no file */
		snprintf(path, size, "%s", map->l_name);
		if (!qcul_elf_open(e, f->data, f->size) && is_loaded_file(e, map))
			return true;
		close_file(f);
		return false;
	}
	if (open_file(f, "/proc/self/exe")) {
		if (!qcul_elf_open(e, f->data, f->size) && is_loaded_file(e, map)) {
			ssize_t n = readlink("/proc/self/exe", path, size - 1);

			path[n > 0 ? n : 0] = '\0';
			return true;
		}
		close_file(f);
	}
	if (mapped_path((uintptr_t)map->l_ld, path, size) && open_file(f, path)) {
		if (!qcul_elf_open(e, f->data, f->size) && is_loaded_file(e, map))
			return true;
		close_file(f);
	}
	return false;
}

/* ---- one object ---- */

/* Returns NULL, or why the runtime in it cannot be replaced. */
static const char *replace_runtime(const struct qcul_elf *e, const struct link_map *map, int fd)
{
	static void *to[QCUL_SITES_MAX];
	size_t i;

	if (preloaded && *map->l_name)
		return "it was loaded before qCUDA's module; use LD_AUDIT and not LD_PRELOAD";
	for (i = 0; i < linked.count; i++) {
		to[i] = qcul_bind_stub(linked.major, linked.sites[i].name);
		if (!to[i])
			return "there are too many functions in all programs and libraries";
	}
	return qcul_patch(e, fd, &linked, map->l_addr, to);
}

/*
 * A program that cannot be served ends here, before it computes anything wrong. What is loaded
 * later may be a library that the program can do without, so there the sentence is all. So it is
 * for NVIDIA's own libraries, whose functions say by themselves that they have failed.
 */
static void refuse_object(const char *sentence)
{
	qcul_loader_say("%s", sentence);
	if (!started && linked.state != QCUL_LINKED_NVIDIA)
		_exit(CANNOT_START);
}

static void serve_object(const struct link_map *map)
{
	char path[4096], sentence[4096 + 256];
	struct qcul_elf e;
	struct file f;
	const char *why;

	if (!open_object(map, &f, &e, path, sizeof(path)))
		return;
	if (traced && which_library(path) < LIBRARIES)
		qcul_trace_object(&e, map->l_addr);
	qcul_linked_find(&e, &linked);
	if (linked.state == QCUL_LINKED_FOUND) {
		why = replace_runtime(&e, map, f.fd);
		if (why) {
			snprintf(sentence, sizeof(sentence),
				 linked.shared
					 ? "%s: this copy of NVIDIA's shared CUDA runtime cannot "
					   "be replaced: %s"
					 : "%s: the CUDA runtime that is linked into it cannot be "
					   "replaced: %s: link it with -cudart shared",
				 path, why);
			refuse_object(sentence);
		} else {
			snprintf(sentence, sizeof(sentence), "functions of CUDA %u replaced",
				 linked.major);
			trace(path, sentence, linked.count);
		}
	} else if (linked.state != QCUL_LINKED_NONE) {
		qcul_linked_sentence(&linked, path, sentence, sizeof(sentence));
		refuse_object(sentence);
	}
	close_file(&f);
}

/* ---- what the dynamic linker calls ---- */

PUBLIC unsigned int la_version(unsigned int version);
PUBLIC unsigned int la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie);
PUBLIC void la_preinit(uintptr_t *cookie);
PUBLIC char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);

/* Returning 0 makes the dynamic linker forget this library. */
PUBLIC unsigned int la_version(unsigned int version)
{
	return off ? 0 : version;
}

PUBLIC unsigned int la_objopen(struct link_map *map, Lmid_t namespace, uintptr_t *cookie)
{
	int saved = errno;

	(void)namespace;
	(void)cookie;
	serve_object(map);
	errno = saved;
	return 0; /* calls between objects are none of our business */
}

/*
 * NVIDIA's libraries that a program may name, by name, by path, or by a path of its own to search
 * (RPATH, as Python's wheels do): ours, if it lies in this module's folder, is loaded instead.
 */
PUBLIC char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
	static char paths[LIBRARIES][4096 + 32];
	size_t i = which_library(name);

	(void)cookie;
	(void)flag;
	if (i == LIBRARIES)
		return (char *)name;
	snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, libraries[i]);
	return access(paths[i], R_OK) ? (char *)name : paths[i];
}

/* main() is next. It may forbid itself to open files, so what is missing is loaded now. */
PUBLIC void la_preinit(uintptr_t *cookie)
{
	(void)cookie;
	started = true;
	qcul_bind_load();
}

__attribute__((constructor)) static void start_loader(void)
{
	const char *wish = getenv("QCU_LOADER");
	struct link_map *self, *map;
	Lmid_t namespace;
	Dl_info info;

	off = wish && !strcmp(wish, "0");
	if (off || !dladdr1((void *)start_loader, &info, (void **)&self, RTLD_DL_LINKMAP))
		return;
	snprintf(folder, sizeof(folder), "%s", self->l_name);
	if (strrchr(folder, '/'))
		*strrchr(folder, '/') = '\0';
	wish = getenv("QCU_TRACE_FILE");
	if (dlinfo(self, RTLD_DI_LMID, &namespace) || namespace != LM_ID_BASE) {
		traced = wish && *wish;
		return;
	}
	preloaded = true;
	for (map = self; map->l_prev; map = map->l_prev)
		;
	for (; map; map = map->l_next)
		if (map != self)
			serve_object(map);
	started = true;
	qcul_bind_load();
}
