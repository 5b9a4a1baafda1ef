/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PTX machine: text in, results in memory out.
 *
 * It knows nothing of CUDA streams, guests or the wire. Whoever loads a module says, through struct
 * ptx_env, where device memory is and which of it exists; every access of a kernel outside of it
 * ends the launch with the error that a GPU gives, never with a signal in this process.
 *
 * A module is parsed and translated once. Launches only read it, so many can run at the same time.
 */
#ifndef QCU_SOFT_PTX_H
#define QCU_SOFT_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTX_MAX_PARAMS 1024

struct ptx_image; /* ptx_image.h */

/* Half-open range of addresses that a kernel may touch. lo == hi: nothing there. */
struct ptx_range {
	uint64_t lo, hi;
	bool writable;
};

/* How much memory kernels may still get by malloc(), all modules of a device together. */
struct ptx_heap_room {
	_Atomic uint64_t bytes;
	_Atomic bool used; /* by any kernel so far */
};

/* A variable that lies in memory of the caller's, which has its content. */
struct ptx_bound {
	const char *name;
	uint64_t addr, size;
};

/*
 * The world around the machine. Addresses are this process's own: a device pointer can be
 * dereferenced once `range` has said that it may be. All functions are called from several threads.
 */
struct ptx_env {
	void *ctx;
	/* Memory for a module's .global and .const variables; zeroed; 256-byte aligned. 0 = none
	 * left. */
	uint64_t (*alloc)(void *ctx, size_t size);
	void (*free)(void *ctx, uint64_t addr);
	/* The allocation around addr. The answer stays true for the whole launch. */
	struct ptx_range (*range)(void *ctx, uint64_t addr);
	/* What a kernel printed: already formatted text. */
	void (*print)(void *ctx, const char *text, size_t len);
	/* What a failed assertion says; NULL: print. */
	void (*complain)(void *ctx, const char *text, size_t len);
	/*
	 * A kernel sets the value of a conditional node by its handle. False: there is none such,
	 * which is also the answer of an env without this function.
	 */
	bool (*condition)(void *ctx, uint64_t handle, uint32_t value);
	/*
	 * The texture or surface that kernels know by this number; NULL: there is none, which is
	 * also the answer of an env without this function. Stays true for the whole launch.
	 */
	const struct ptx_image *(*image)(void *ctx, uint64_t number);
	/*
	 * Not NULL: look for reads of memory that nobody has written, and for races, and tell
	 * `complain`. Says whether any byte there has been written; `wrote` is told of writes.
	 */
	bool (*written)(void *ctx, uint64_t addr, size_t len);
	void (*wrote)(void *ctx, uint64_t addr, size_t len);
	/* Read by ptx_load only. A variable that is not there is no error. */
	const struct ptx_bound *bound;
	size_t bound_count;
	struct ptx_heap_room *heap_room; /* for malloc() in kernels; NULL: as much as there is */
	unsigned int sm_count;		 /* for %nsmid */
	unsigned int max_regs;		 /* as .maxnreg, of every kernel; 0: not said */
	unsigned int threads;		 /* host threads that one launch may use; 0: all cores */
};

/* Where and why something went wrong; text is one line without newline. */
struct ptx_diag {
	unsigned int line; /* of the PTX text; 0: unknown */
	char text[240];
};

struct ptx_param {
	uint32_t offset, size, align;
};

struct ptx_kernel_info {
	const char *name;
	unsigned int param_count;
	const struct ptx_param *params;
	uint32_t param_bytes;
	uint32_t shared_bytes;	 /* static */
	uint32_t local_bytes;	 /* per thread */
	uint32_t const_bytes;	 /* of the module's user constants */
	uint32_t regs;		 /* that a GPU would need at least, and at most 255 */
	uint32_t max_threads;	 /* from .maxntid, else 1024 */
	bool bounded;		 /* there is a .maxntid, or a .reqntid */
	uint32_t req_threads[3]; /* .reqntid, else 0 */
	uint32_t min_blocks;	 /* .minnctapersm, else 0 */
	uint32_t ptx_version;	 /* 10 * major + minor of .target sm_XY, e.g. 75 */
};

struct ptx_launch {
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared;
	const void *params; /* packed as ptx_kernel_info says */
	size_t param_bytes;
	bool cooperative;
	uint32_t stack_bytes;	    /* of each thread, at least, where functions call themselves */
	volatile const int *cancel; /* not NULL and *cancel != 0: stop soon, PTX_KILLED */
};

enum ptx_status {
	PTX_OK = 0,
	PTX_INVALID_PTX, /* does not parse or breaks a rule; diag says where */
	PTX_UNSUPPORTED, /* valid, but not implemented; diag names the instruction */
	PTX_NO_MEMORY,
	PTX_NOT_FOUND,
	PTX_BAD_LAUNCH, /* dimensions or shared memory out of range */
	PTX_ILLEGAL_ADDRESS,
	PTX_MISALIGNED_ADDRESS,
	PTX_TRAP, /* trap, or a kernel that cannot go on (e.g. barrier deadlock) */
	PTX_ASSERT,
	PTX_STACK_OVERFLOW,
	PTX_KILLED,
};

struct ptx_module;
struct ptx_kernel;

enum ptx_status ptx_load(const char *text, size_t len, const struct ptx_env *env,
			 struct ptx_module **out, struct ptx_diag *diag);
void ptx_unload(struct ptx_module *m);

/* Kernels (.entry) by number or by name. NULL: no such kernel. */
unsigned int ptx_kernel_count(const struct ptx_module *m);
const struct ptx_kernel *ptx_kernel_at(const struct ptx_module *m, unsigned int i);
const struct ptx_kernel *ptx_kernel_find(const struct ptx_module *m, const char *name);
const struct ptx_kernel_info *ptx_kernel_info(const struct ptx_kernel *k);

/* A .global or .const variable: PTX_NOT_FOUND or its address and size. */
enum ptx_status ptx_var_find(const struct ptx_module *m, const char *name, uint64_t *addr,
			     size_t *size);

/* Names of the managed ones among them, by number. NULL: there are no more. */
const char *ptx_managed_at(const struct ptx_module *m, unsigned int i);

/* Runs the whole grid and returns when it is done. diag gets kernel, line, block and thread. */
enum ptx_status ptx_run(const struct ptx_kernel *k, const struct ptx_launch *l,
			struct ptx_diag *diag);

const char *ptx_status_name(enum ptx_status s);

#endif
