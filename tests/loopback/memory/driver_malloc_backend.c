// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The soft GPU, with a driver that allocates memory whenever host memory is registered: more than
 * the program's malloc has left. It frees the memory later.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "qcu-device/backend/backend.h"

#define BYTES (96u << 20)

static void *kept;

/* Finds the program's function, not the function that this file is linked to. */
static void *named(const char *name)
{
	return dlsym(dlopen(NULL, RTLD_NOW), name);
}

static void *program_malloc(size_t bytes)
{
	void *(*fn)(size_t);

	*(void **)&fn = named("malloc");
	return fn(bytes);
}

static void program_free(void *p)
{
	void (*fn)(void *);

	*(void **)&fn = named("free");
	fn(p);
}

static int host_register(struct be *be, void *p, size_t bytes)
{
	program_free(kept);
	kept = program_malloc(BYTES);
	if (!kept)
		abort();
	memset(kept, 1, BYTES);
	return be_soft.host_register(be, p, bytes);
}

__attribute__((visibility("default"))) const struct be_ops *be_plugin(void);

const struct be_ops *be_plugin(void)
{
	static struct be_ops ops;

	ops = be_soft;
	ops.host_register = host_register;
	return &ops;
}
