/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * __managed__ variables of a module. The program reaches a variable by a pointer that the compiler
 * keeps and that this code fills in; kernels reach it by its symbol. module.c uses these functions
 * under its lock.
 */
#ifndef QCUL_MANAGED_VAR_H
#define QCUL_MANAGED_VAR_H

#include "qcu-library/memory/memory.h"

struct qcul_managed_var {
	const char *name;
	void **pointer; /* the compiler's pointer; NULL: there is none */
	size_t bytes;
	size_t offset;	      /* offset in the module's block */
	_Atomic(void *) addr; /* NULL: not set yet */
	uint64_t module_addr; /* address in the module itself */
	struct qcul_managed_var *next;
};

struct qcul_managed_vars {
	struct qcul_managed_var *first;
	size_t bytes;
	void *block; /* managed memory that holds all of them; NULL: not yet allocated */
	unsigned int epoch;
	bool copied; /* the GPU has them in other memory (managed_copy.c) */
};

/* False: out of memory. */
bool qcul_managed_var_add(struct qcul_managed_vars *vars, const char *name, void **pointer,
			  size_t bytes);
/* Call this when the mirror has loaded the module, before anything in it is used. */
cudaError_t qcul_managed_vars_bind(struct qcul_managed_vars *vars, uint32_t module);
/* The variable at this address; NULL: none. */
const struct qcul_managed_var *qcul_managed_var_find(const struct qcul_managed_vars *vars,
						     const void *addr);
const struct qcul_managed_var *qcul_managed_var_named(const struct qcul_managed_vars *vars,
						      const char *name);
/* Makes a copy of the variable that was added last, to a module that is already in use. */
cudaError_t qcul_managed_var_copy(struct qcul_managed_vars *vars, uint32_t module);
/* Call this when the mirror has unloaded the module. */
void qcul_managed_vars_free(struct qcul_managed_vars *vars);

#endif
