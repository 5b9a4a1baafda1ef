// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Libraries: modules that a program loads at run time from memory or from a file. The program finds
 * their kernels and variables by name.
 */
#include <elf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/api/compiling.h"
#include "qcu-library/api/library.h"
#include "qcu-library/graph/graph.h"
#include "qcu-library/link/fork.h"

#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC  0xba55ed50u

struct CUlib_st {
	struct qcul_module *module;
	struct CUlib_st *next;
	bool alone; /* a module of the driver API, and no library */
};

/* All that are loaded. Any pointer may be passed as a handle. */
static struct {
	struct CUlib_st *loaded;
} process;
QCUL_AT_FORK(QCUL_FORK_LIBRARIES)

static bool is_loaded_library(const struct CUlib_st *lib)
{
	const struct CUlib_st *l;

	pthread_mutex_lock(&at_fork.lock);
	for (l = process.loaded; l && l != lib; l = l->next)
		;
	pthread_mutex_unlock(&at_fork.lock);
	return l;
}

void qcul_library_alone(struct CUlib_st *lib)
{
	lib->alone = true;
}

bool qcul_library_shared(const struct CUlib_st *lib)
{
	return is_loaded_library(lib) && !lib->alone;
}

struct CUlib_st *qcul_library_of(const struct qcul_module *module)
{
	struct CUlib_st *l;

	pthread_mutex_lock(&at_fork.lock);
	for (l = process.loaded; l && l->module != module; l = l->next)
		;
	pthread_mutex_unlock(&at_fork.lock);
	return l;
}

static void add_loaded_library(struct CUlib_st *lib)
{
	pthread_mutex_lock(&at_fork.lock);
	lib->next = process.loaded;
	process.loaded = lib;
	pthread_mutex_unlock(&at_fork.lock);
}

/* False: it is not, or not any more, in the list. */
static bool delist(const struct CUlib_st *lib)
{
	struct CUlib_st **at = &process.loaded;
	bool found;

	pthread_mutex_lock(&at_fork.lock);
	while (*at && *at != lib)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = lib->next;
	pthread_mutex_unlock(&at_fork.lock);
	return found;
}

static uint32_t word_at(const void *image, size_t offset)
{
	uint32_t word;

	memcpy(&word, (const char *)image + offset, sizeof(word));
	return word;
}

/* The size of an ELF file: it ends with one of its two tables or with the last of its sections. */
static size_t elf_bytes(const char *image)
{
	Elf64_Ehdr head;
	size_t end, i;

	memcpy(&head, image, sizeof(head));
	end = head.e_shoff + (size_t)head.e_shnum * head.e_shentsize;
	if (head.e_phoff + (size_t)head.e_phnum * head.e_phentsize > end)
		end = head.e_phoff + (size_t)head.e_phnum * head.e_phentsize;
	for (i = 0; i < head.e_shnum; i++) {
		Elf64_Shdr section;

		memcpy(&section, image + head.e_shoff + i * head.e_shentsize, sizeof(section));
		if (section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > end)
			end = section.sh_offset + section.sh_size;
	}
	return end;
}

/* Returns the image and its length. The caller passes only a pointer: neither the format nor the
 * length. */
static const void *image_of(const void *code, size_t *bytes)
{
	if (word_at(code, 0) == WRAPPER_MAGIC)
		memcpy(&code, (const char *)code + 8, sizeof(code));
	if (word_at(code, 0) == FATBIN_MAGIC) {
		uint64_t body;

		memcpy(&body, (const char *)code + 8, sizeof(body));
		*bytes = (word_at(code, 4) >> 16) + body;
	} else if (!memcmp(code, ELFMAG, SELFMAG)) {
		*bytes = elf_bytes(code);
	} else {
		*bytes = strlen(code) + 1;
	}
	return code;
}

static cudaError_t read_library_options(const enum cudaLibraryOption *options, void *const *values,
					unsigned int count, bool file)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;
	unsigned int i;

	if (count && (!options || !values))
		return cudaErrorInvalidValue;
	for (i = 0; i < count; i++) {
		if (options[i] == cudaLibraryHostUniversalFunctionAndDataTable)
			return qcul_unsupported("a library with a table of the host's functions",
						&said);
		/* cudaLibraryBinaryIsPreserved is only a hint: the image will stay in place. */
		if (options[i] != cudaLibraryBinaryIsPreserved || file)
			return cudaErrorInvalidValue;
	}
	return cudaSuccess;
}

static cudaError_t load_library_image(cudaLibrary_t *library, const void *image, size_t bytes,
				      const struct qcul_compiling *c)
{
	struct CUlib_st *lib;
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	lib = calloc(1, sizeof(*lib));
	if (lib)
		lib->module = qcul_module_new(image, bytes, &c->jit);
	if (!lib || !lib->module) {
		free(lib);
		return cudaErrorMemoryAllocation;
	}
	err = qcul_module_load(lib->module);
	qcul_compiling_read(c, true);
	if (err) {
		qcul_module_unload(lib->module);
		free(lib);
		return err;
	}
	add_loaded_library(lib);
	*library = lib;
	return cudaSuccess;
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
				enum cudaJitOption *jit_options, void **jit_values,
				unsigned int jit_count, enum cudaLibraryOption *options,
				void **values, unsigned int count)
{
	const void *image;
	struct qcul_compiling c;
	cudaError_t err;
	size_t bytes;

	if (!library || !code)
		return qcul_done(cudaErrorInvalidValue);
	err = read_library_options(options, values, count, false);
	if (!err)
		err = qcul_compiling_options(jit_options, jit_values, jit_count, &c);
	if (err)
		return qcul_done(err);
	image = image_of(code, &bytes);
	return qcul_done(load_library_image(library, image, bytes, &c));
}

/* Returns the whole file with a NUL after it, which PTX text needs. NULL: the file cannot be read.
 */
static char *read_library_file(const char *name, size_t *bytes)
{
	FILE *f = fopen(name, "rb");
	char *text = NULL;
	long size = -1;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END))
		size = ftell(f);
	/* A folder says that it is larger than all memory. */
	if (size >= 0 && size < INT_MAX && !fseek(f, 0, SEEK_SET))
		text = calloc(1, (size_t)size + 1);
	if (text && fread(text, 1, (size_t)size, f) != (size_t)size) {
		free(text);
		text = NULL;
	}
	fclose(f);
	*bytes = (size_t)size + 1;
	return text;
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *name,
				    enum cudaJitOption *jit_options, void **jit_values,
				    unsigned int jit_count, enum cudaLibraryOption *options,
				    void **values, unsigned int count)
{
	struct qcul_compiling c;
	size_t bytes;
	cudaError_t err;
	char *image;

	if (!library || !name)
		return qcul_done(cudaErrorInvalidValue);
	err = read_library_options(options, values, count, true);
	if (!err)
		err = qcul_compiling_options(jit_options, jit_values, jit_count, &c);
	if (err)
		return qcul_done(err);
	image = read_library_file(name, &bytes);
	if (!image)
		return qcul_done(cudaErrorFileNotFound);
	err = load_library_image(library, image, bytes, &c);
	free(image);
	return qcul_done(err);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	if (!delist(library))
		return qcul_done(cudaErrorInvalidResourceHandle);
	qcul_module_unload(library->module);
	free(library);
	return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	if (!kernel || !name)
		return qcul_done(cudaErrorInvalidValue);
	if (!is_loaded_library(library))
		return qcul_done(cudaErrorInvalidResourceHandle);
	return qcul_done(qcul_module_kernel(library->module, name, kernel));
}

typedef cudaError_t find_fn(struct qcul_module *m, const char *name, void **addr, size_t *size);

/* ptr or size may be NULL. */
static cudaError_t find_library_variable(cudaLibrary_t library, const char *name, find_fn *find,
					 void **ptr, size_t *size)
{
	void *at;
	size_t bytes;
	cudaError_t err;

	if (!is_loaded_library(library))
		return cudaErrorInvalidResourceHandle;
	if (!name)
		return cudaErrorInvalidValue;
	err = find(library->module, name, &at, &bytes);
	if (!err && ptr)
		*ptr = at;
	if (!err && size)
		*size = bytes;
	return err;
}

cudaError_t cudaLibraryGetGlobal(void **ptr, size_t *size, cudaLibrary_t library, const char *name)
{
	return qcul_done(find_library_variable(library, name, qcul_module_variable, ptr, size));
}

cudaError_t cudaLibraryGetManaged(void **ptr, size_t *size, cudaLibrary_t library, const char *name)
{
	return qcul_done(find_library_variable(library, name, qcul_module_managed, ptr, size));
}

/* No device here has functions that the CPU can call as well. */
cudaError_t cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library, const char *name)
{
	(void)function;
	(void)name;
	return qcul_done(is_loaded_library(library) ? cudaErrorInvalidValue
						    : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library)
{
	cudaError_t err;
	char *names;

	if (!count)
		return qcul_done(cudaErrorInvalidValue);
	if (!is_loaded_library(library))
		return qcul_done(cudaErrorInvalidResourceHandle);
	err = qcul_module_names(library->module, &names, count);
	if (!err)
		free(names);
	return qcul_done(err);
}

/* A kernel has one handle, no matter how the program found it. */
cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int room,
					cudaLibrary_t library)
{
	unsigned int count, i;
	char *names, *name;
	cudaError_t err;

	if (!kernels)
		return qcul_done(cudaErrorInvalidValue);
	if (!is_loaded_library(library))
		return qcul_done(cudaErrorInvalidResourceHandle);
	err = qcul_module_names(library->module, &names, &count);
	if (err)
		return qcul_done(err);
	for (i = 0, name = names; i < count && i < room && !err; i++, name += strlen(name) + 1)
		err = qcul_module_kernel(library->module, name, &kernels[i]);
	free(names);
	return qcul_done(err);
}

/* In CUDA, a function is a kernel on the current device. In this library, one kernel handle is
 * valid on every device, so it is also the function. */
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	cudaKernel_t kernel;
	cudaError_t err = cudaGetKernel(&kernel, symbol);

	if (!err && function)
		*function = (cudaFunction_t)kernel;
	return err;
}
