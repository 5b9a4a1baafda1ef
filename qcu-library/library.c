// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Libraries: modules that a program loads while it runs, from memory or a file, and finds kernels
 * and variables in by name.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-library/qcul.h"

#define LIBRARY_MAGIC 0x4252494cu
#define WRAPPER_MAGIC 0x466243b1u
#define FATBIN_MAGIC  0xba55ed50u

struct CUlib_st {
	uint32_t magic;
	struct qcul_module *module;
};

static bool valid(const struct CUlib_st *lib)
{
	return lib && lib->magic == LIBRARY_MAGIC;
}

static uint32_t word_at(const void *image, size_t offset)
{
	uint32_t word;

	memcpy(&word, (const char *)image + offset, sizeof(word));
	return word;
}

/* An ELF file ends with its tables or with the last of its sections. */
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

/* The image and its length: the call says neither what it is nor where it ends. */
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

static cudaError_t load(cudaLibrary_t *library, const void *image, size_t bytes)
{
	struct CUlib_st *lib;
	cudaError_t err = qcul_ready();

	if (err)
		return err;
	lib = calloc(1, sizeof(*lib));
	if (lib)
		lib->module = qcul_module_new(image, bytes);
	if (!lib || !lib->module) {
		free(lib);
		return cudaErrorMemoryAllocation;
	}
	err = qcul_module_load(lib->module);
	if (err) {
		qcul_module_unload(lib->module);
		free(lib);
		return err;
	}
	lib->magic = LIBRARY_MAGIC;
	*library = lib;
	return cudaSuccess;
}

/* Options of the compiler that makes machine code of PTX do not change what the code does. */
cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
				enum cudaJitOption *jit_options, void **jit_values,
				unsigned int jit_count, enum cudaLibraryOption *options,
				void **values, unsigned int count)
{
	const void *image;
	size_t bytes;

	(void)jit_options;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)values;
	(void)count;
	if (!library || !code)
		return qcul_done(cudaErrorInvalidValue);
	image = image_of(code, &bytes);
	return qcul_done(load(library, image, bytes));
}

/* The whole file with a NUL behind it, as text wants one. NULL: it cannot be read. */
static char *read_file(const char *name, size_t *bytes)
{
	FILE *f = fopen(name, "rb");
	char *text = NULL;
	long size = -1;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END))
		size = ftell(f);
	if (size >= 0 && !fseek(f, 0, SEEK_SET))
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
	size_t bytes;
	cudaError_t err;
	char *image;

	(void)jit_options;
	(void)jit_values;
	(void)jit_count;
	(void)options;
	(void)values;
	(void)count;
	if (!library || !name)
		return qcul_done(cudaErrorInvalidValue);
	image = read_file(name, &bytes);
	if (!image)
		return qcul_done(cudaErrorFileNotFound);
	err = load(library, image, bytes);
	free(image);
	return qcul_done(err);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
	if (!valid(library))
		return qcul_done(cudaErrorInvalidResourceHandle);
	qcul_module_unload(library->module);
	library->magic = 0;
	free(library);
	return cudaSuccess;
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
	if (!kernel || !name)
		return qcul_done(cudaErrorInvalidValue);
	if (!valid(library))
		return qcul_done(cudaErrorInvalidResourceHandle);
	return qcul_done(qcul_module_kernel(library->module, name, kernel));
}

cudaError_t cudaLibraryGetGlobal(void **ptr, size_t *size, cudaLibrary_t library, const char *name)
{
	void *at;
	size_t bytes;
	cudaError_t err;

	if (!valid(library))
		return qcul_done(cudaErrorInvalidResourceHandle);
	if (!name)
		return qcul_done(cudaErrorInvalidValue);
	err = qcul_module_variable(library->module, name, &at, &bytes);
	if (!err && ptr)
		*ptr = at;
	if (!err && size)
		*size = bytes;
	return qcul_done(err);
}

/* A function is a kernel of the current device, and kernels here are good on every device. */
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
	cudaKernel_t kernel;
	cudaError_t err = cudaGetKernel(&kernel, symbol);

	if (!err && function)
		*function = (cudaFunction_t)kernel;
	return err;
}
