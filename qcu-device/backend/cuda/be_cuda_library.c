// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The host's own cuBLAS and its sisters. They are loaded when a program first uses them. Each has a
 * runtime of its own linked in, which finds the primary context that this backend has made.
 */
#define _GNU_SOURCE /* RTLD_* */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "qcu-device/backend/cuda/be_cuda.h"
#include "qcu-device/base/gap.h"

/* Where the toolkit is, if the loader's cache does not know it. */
static const char *const folders[] = {"", "/usr/local/cuda/lib64/", "/usr/local/cuda-13/lib64/"};

/* The package of Debian, Ubuntu and NVIDIA's repository that has it. */
static const char *package(const char *soname)
{
	if (!strncmp(soname, "libcublas", 9))
		return "libcublas-13-0";
	if (!strncmp(soname, "libcudnn", 8))
		return "libcudnn9-cuda-13";
	return "of the CUDA Toolkit 13";
}

void *cu_lib_open(struct be *be, const char *soname, char *why, size_t size)
{
	char path[256];
	void *lib = NULL;
	size_t i;

	(void)be;
	/*
	 * In a program's own process (the tests' loopback) the guest's shim has this name, and the
	 * loader would take it for the library: its calls would come back here for ever.
	 */
	if (dlsym(RTLD_DEFAULT, "qcul_lib_begin")) {
		snprintf(why, size, "without a VM, %s cannot be used with a real GPU", soname);
		return NULL;
	}
	/* Device addresses lie before it and behind it, so it lies between two gaps. */
	if (!gap_leave()) {
		snprintf(why, size, "there is no room left that hides where it would be");
		return NULL;
	}
	for (i = 0; i < sizeof(folders) / sizeof(folders[0]) && !lib; i++) {
		snprintf(path, sizeof(path), "%s%s", folders[i], soname);
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (!lib) {
		const char *error = dlerror();

		snprintf(why, size, "the host has no %s: install the package %s there (%s)", soname,
			 package(soname), error ? error : "no reason is known");
	}
	(void)gap_leave();
	return lib;
}

void *cu_lib_symbol(struct be *be, void *lib, const char *name)
{
	(void)be;
	return dlsym(lib, name);
}

int cu_native(struct be *be, struct be_stream *s, void **stream)
{
	int ret = cu_stream_use(be, s);

	*stream = s->s;
	return ret;
}
