/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Modules, their kernels and their variables. */
#ifndef QCUL_MODULE_H
#define QCUL_MODULE_H

#include "qcu-library/memory/memory.h"

struct CUkern_st {
	uint32_t magic;
	uint32_t id;
	const char *name;
	struct qcul_module *module;
	atomic_uint ready; /* epoch in which the mirror has loaded it */
	uint32_t param_count, param_bytes;
	struct qcu_param *params;
	struct qcul_kernel_limits *limits; /* one for each device */
};

/* The limits that launches are checked against. */
struct qcul_kernel_limits {
	atomic_uint epoch; /* epoch in which these limits are valid; 0: unknown, or changed since */
	uint32_t max_threads, max_dynamic;
	bool clusters; /* the kernel has rules for clusters */
	struct qcu_kernel_desc *desc;
};

/* The kernel of a host function or a cudaKernel_t. Does not load it. */
cudaError_t qcul_kernel(const void *func, struct CUkern_st **kernel);
bool qcul_kernel_valid(const struct CUkern_st *kernel);
/* Loads the kernel in the mirror. Returns at once if the mirror already has it. */
cudaError_t qcul_kernel_load(struct CUkern_st *kernel);
/* The kernel's limits on the calling thread's device. The kernel must be loaded already. */
cudaError_t qcul_kernel_limits(struct CUkern_st *kernel, const struct qcul_kernel_limits **limits);
void qcul_kernel_limits_forget(struct CUkern_st *kernel, int device);
/* Is it known that launches may ask for this much dynamic shared memory, and no more? */
bool qcul_kernel_has_dynamic(const struct CUkern_st *kernel, int device, uint32_t bytes);
/*
 * Counts what may change the answers to questions about a kernel: attributes that were set, and
 * resets of devices. A kernel's number is never that of another.
 */
uint64_t qcul_kernel_changes(void);
/*
 * The mirror's full description of the kernel on that device. The library asks for it once, and
 * again after each change.
 */
cudaError_t qcul_kernel_desc(struct CUkern_st *kernel, struct qcu_kernel_desc *desc);
/* A __device__ or __constant__ variable on the calling thread's device. */
cudaError_t qcul_variable(const void *symbol, void **addr, size_t *size);
/*
 * Modules that a program loads itself. The image is copied. Kernels and variables are found by
 * their mangled names, and are gone when the module is unloaded.
 */
struct qcul_module *qcul_module_new(const void *image, size_t bytes, const struct qcu_jit *jit);
cudaError_t qcul_module_load(struct qcul_module *m);
/* Says once for which GPUs this image has code, when the device found none for itself. */
void qcul_module_say_no_code(const void *image, size_t bytes);
void qcul_module_unload(struct qcul_module *m);
cudaError_t qcul_module_kernel(struct qcul_module *m, const char *name, struct CUkern_st **kernel);
cudaError_t qcul_module_variable(struct qcul_module *m, const char *name, void **addr,
				 size_t *size);
/* The same for a managed variable. All devices share one. */
cudaError_t qcul_module_managed(struct qcul_module *m, const char *name, void **addr, size_t *size);
/* The names of the module's kernels, each with its NUL. The caller frees them. */
cudaError_t qcul_module_names(struct qcul_module *m, char **names, unsigned int *count);
/* Call this after a reset: the variables of this device have moved. */

/* The address `offset` bytes into a variable, on this thread's device. */
cudaError_t qcul_symbol_address(const void *symbol, size_t count, size_t offset, void **addr);
/* For a copy with a variable: is its kind `way`, within the device, or the default? */
bool qcul_symbol_kind_ok(enum cudaMemcpyKind kind, enum cudaMemcpyKind way);

#endif
