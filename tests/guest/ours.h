/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which library does a program use, NVIDIA's or ours? Only programs with bad calls ask: some of
 * these crash NVIDIA's library, or it does with them what happens to come out.
 */
#ifndef OURS_H
#define OURS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>

/* Ours has malloc, too. `function`: one of the library's. */
static inline bool is_ours(const char *function)
{
	Dl_info here, allocator;
	void *from = dlsym(RTLD_DEFAULT, function), *allocate = NULL, *library;

	if (!from || !dladdr(from, &here))
		return false;
	library = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (library) {
		allocate = dlsym(library, "malloc");
		dlclose(library);
	}
	return allocate && dladdr(allocate, &allocator) && here.dli_fbase == allocator.dli_fbase;
}

#endif
