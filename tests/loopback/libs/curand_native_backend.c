// SPDX-License-Identifier: GPL-2.0-or-later
/* The software GPU with NVIDIA's own cuRAND: its generators of the host and its tables need no GPU.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "qcu-device/backend/backend.h"
#include "tests/loopback/libs/curand_native.h"

static struct be_ops ops;
static void *library;

static void *open_library(struct be *be, const char *soname, char *why, size_t size)
{
	if (strcmp(soname, "libcurand.so.10") != 0)
		return be_soft.lib_open(be, soname, why, size);
	library = dlopen(CURAND_NATIVE, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		snprintf(why, size, "%s", dlerror());
	return library;
}

static void *symbol(struct be *be, void *of, const char *name)
{
	return of == library ? dlsym(of, name) : be_soft.lib_symbol(be, of, name);
}

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	ops = be_soft;
	ops.lib_open = open_library;
	ops.lib_symbol = symbol;
	return &ops;
}
