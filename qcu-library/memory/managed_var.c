// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * __managed__ variables: chunk memory that both sides use in offset. After a module has been
 * loaded, the initial values of its variables are copied from the module into one block of managed
 * memory. Then the module's symbols are bound to that block. CUDA itself has no way to do this
 * binding: with the cuda backend the variables stay where they are, and the program has copies.
 */
#include <stdlib.h>
#include <string.h>

#include "qcu-library/memory/managed_copy.h"
#include "qcu-library/memory/managed_var.h"

/* No variable lies at the start of the block: freeing that variable would free the block. */
#define ALIGN 256u

bool qcul_managed_var_add(struct qcul_managed_vars *vars, const char *name, void **pointer,
			  size_t bytes)
{
	struct qcul_managed_var *v = calloc(1, sizeof(*v));

	if (!v)
		return false;
	v->name = name;
	v->pointer = pointer;
	v->bytes = bytes;
	v->offset = vars->bytes + ALIGN;
	v->next = vars->first;
	vars->bytes = v->offset + (bytes + ALIGN - 1) / ALIGN * ALIGN;
	vars->first = v;
	return true;
}

static cudaError_t find_module_variable(struct qcul_managed_var *v, uint32_t module)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_VAR_FIND);
	cudaError_t err;

	cmd.var_find.buf.addr = (uint64_t)(uintptr_t)v->name;
	cmd.var_find.buf.len = strlen(v->name);
	cmd.var_find.module = module;
	err = qcul_send(&cmd, 1);
	if (err)
		return err;
	v->module_addr = cmd.var_find.addr;
	return cmd.var_find.size == v->bytes ? cudaSuccess : cudaErrorInvalidKernelImage;
}

/* Copies the initial value from the module. */
static cudaError_t fetch_initial_value(const struct qcul_managed_var *v, char *to)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_COPY_D2H);

	cmd.copy_d2h.buf.addr = (uint64_t)(uintptr_t)to;
	cmd.copy_d2h.buf.len = v->bytes;
	cmd.copy_d2h.src = v->module_addr;
	cmd.copy_d2h.stream = QCU_STREAM_LEGACY;
	cmd.copy_d2h.flags = QCU_COPY_SYNC;
	return qcul_send(&cmd, 1);
}

static cudaError_t bind(const struct qcul_managed_var *v, uint32_t module, const char *to)
{
	struct qCUcmd cmd = qcul_cmd(QCU_OP_VAR_BIND);

	cmd.var_bind.buf.addr = (uint64_t)(uintptr_t)v->name;
	cmd.var_bind.buf.len = strlen(v->name);
	cmd.var_bind.module = module;
	cmd.var_bind.addr = (uint64_t)(uintptr_t)to;
	cmd.var_bind.size = v->bytes;
	return qcul_send(&cmd, 1);
}

/*
 * In a forked child the values are in the parent's memory, which is not a chunk of the child's
 * session. The child gets a new block with these values. The old memory stays, because pointers to
 * it may be anywhere.
 */
static cudaError_t make_block(struct qcul_managed_vars *vars, bool *fresh)
{
	void *parents = vars->block;
	cudaError_t err;

	*fresh = !parents;
	if (parents && vars->epoch == qcul_epoch())
		return cudaSuccess;
	err = qcul_host_alloc(&vars->block, vars->bytes, QCUL_MEM_MANAGED, 0);
	if (err)
		return err;
	vars->epoch = qcul_epoch();
	if (parents)
		memcpy(vars->block, parents, vars->bytes);
	return cudaSuccess;
}

static void publish(struct qcul_managed_var *v, void *addr)
{
	atomic_store(&v->addr, addr);
	if (v->pointer)
		*v->pointer = addr;
}

/*
 * Makes copies of all variables. Also used to make them again: in a forked child, and after a reset
 * has moved the variables.
 */
static cudaError_t copy_all(struct qcul_managed_vars *vars, uint32_t module)
{
	struct qcul_managed_var *v;
	cudaError_t err = cudaSuccess;

	for (v = vars->first; v && !err; v = v->next) {
		const void *values = v->addr;

		if (values)
			qcul_managed_copy_drop(v->module_addr);
		err = find_module_variable(v, module);
		if (!err)
			err = qcul_managed_copy_new(v->module_addr, v->bytes, values);
		if (!err)
			publish(v, (void *)(uintptr_t)v->module_addr);
	}
	return err;
}

cudaError_t qcul_managed_vars_bind(struct qcul_managed_vars *vars, uint32_t module)
{
	struct qcul_managed_var *v;
	cudaError_t err = cudaSuccess;
	bool fresh = false;

	if (vars->copied)
		return copy_all(vars, module);
	if (vars->first)
		err = make_block(vars, &fresh);
	/* Fetch all values before binding any: binding makes the module's old addresses invalid. */
	for (v = vars->first; v && !err && fresh; v = v->next) {
		err = find_module_variable(v, module);
		if (!err)
			err = fetch_initial_value(v, (char *)vars->block + v->offset);
	}
	for (v = vars->first; v && !err; v = v->next)
		err = bind(v, module, (char *)vars->block + v->offset);
	if (err == cudaErrorNotSupported) {
		qcul_managed_vars_free(vars);
		vars->copied = true;
		err = copy_all(vars, module);
		if (err)
			qcul_managed_vars_free(vars);
		return err;
	}
	if (err && fresh)
		qcul_managed_vars_free(vars);
	for (v = vars->first; v && !err; v = v->next)
		publish(v, (char *)vars->block + v->offset);
	return err;
}

const struct qcul_managed_var *qcul_managed_var_find(const struct qcul_managed_vars *vars,
						     const void *addr)
{
	const struct qcul_managed_var *v;

	for (v = vars->first; v && atomic_load(&v->addr) != addr; v = v->next)
		;
	return v;
}

const struct qcul_managed_var *qcul_managed_var_named(const struct qcul_managed_vars *vars,
						      const char *name)
{
	const struct qcul_managed_var *v;

	for (v = vars->first; v && strcmp(v->name, name); v = v->next)
		;
	return v;
}

cudaError_t qcul_managed_var_copy(struct qcul_managed_vars *vars, uint32_t module)
{
	struct qcul_managed_var *v = vars->first;
	cudaError_t err = find_module_variable(v, module);

	if (!err)
		err = qcul_managed_copy_new(v->module_addr, v->bytes, NULL);
	if (err) {
		vars->first = v->next;
		free((char *)(uintptr_t)v->name);
		free(v);
		return err;
	}
	vars->copied = true;
	publish(v, (void *)(uintptr_t)v->module_addr);
	return cudaSuccess;
}

void qcul_managed_vars_free(struct qcul_managed_vars *vars)
{
	struct qcul_managed_var *v;

	for (v = vars->first; v; v = v->next) {
		if (vars->copied && v->addr)
			qcul_managed_copy_drop(v->module_addr);
		atomic_store(&v->addr, NULL);
	}
	if (vars->block)
		(void)qcul_host_free(vars->block, QCUL_MEM_MANAGED);
	vars->block = NULL;
}
