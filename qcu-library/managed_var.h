/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * __managed__ variables of a module. The program reaches one by a pointer that the compiler keeps
 * for it and that is filled in here; kernels reach it by its symbol. Used by module.c, under its
 * lock.
 */
#ifndef QCUL_MANAGED_VAR_H
#define QCUL_MANAGED_VAR_H

#include "qcu-library/qcul.h"

struct qcul_managed_var {
	const char *name;
	void **pointer; /* the compiler's; NULL: there is none */
	size_t bytes;
	size_t place;	      /* in the module's block */
	_Atomic(void *) addr; /* NULL: not yet */
	uint64_t module_addr; /* where the module itself has it */
	struct qcul_managed_var *next;
};

struct qcul_managed_vars {
	struct qcul_managed_var *first;
	size_t bytes;
	void *block; /* managed memory in which all of them lie; NULL: not yet */
	unsigned int epoch;
	bool copied; /* the GPU has them elsewhere (managed_copy.c) */
};

/* False: no memory. */
bool qcul_managed_var_add(struct qcul_managed_vars *vars, const char *name, void **pointer,
			  size_t bytes);
/* When the mirror has loaded the module, and nothing in it has been used. */
cudaError_t qcul_managed_vars_bind(struct qcul_managed_vars *vars, uint32_t module);
/* The one that lies there; NULL: none does. */
const struct qcul_managed_var *qcul_managed_var_find(const struct qcul_managed_vars *vars,
						     const void *addr);
const struct qcul_managed_var *qcul_managed_var_named(const struct qcul_managed_vars *vars,
						      const char *name);
/* The one that was added last, to a module that is in use: makes a copy of it. */
cudaError_t qcul_managed_var_copy(struct qcul_managed_vars *vars, uint32_t module);
/* When the mirror has unloaded it. */
void qcul_managed_vars_free(struct qcul_managed_vars *vars);

#endif
