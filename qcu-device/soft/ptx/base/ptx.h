/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The PTX machine: it loads PTX text, and runs kernels that write their results to memory.
 *
 * The machine knows nothing of CUDA streams, guests or the wire. The caller that loads a module
 * says, through struct ptx_env, where device memory is and which parts of it are allocated. If a
 * kernel accesses memory outside of these parts, the launch ends with the error that a GPU gives,
 * never with a signal in this process.
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

/* Half-open range of addresses that a kernel may access. lo == hi: nothing is allocated there. */
struct ptx_range {
	uint64_t lo, hi;
	bool writable;
};

/* How much memory kernels may still get by malloc(), for all modules of a device together. */
struct ptx_heap_quota {
	_Atomic uint64_t bytes;
	_Atomic bool used; /* a kernel has called malloc() */
};

/* A variable in memory that belongs to the caller, who has also set its content. */
struct ptx_bound {
	const char *name;
	uint64_t addr, size;
};

struct ptx_access {
	uint64_t addr;
	uint32_t size;
	bool write;
};

/* Where a kernel did something wrong. The names belong to the module. */
struct ptx_finding {
	const char *kernel; /* NULL: no kernel did */
	const char *file;   /* NULL: the program was compiled without line numbers */
	uint32_t line;	    /* of the file, or else of the PTX text */
	uint32_t block[3], thread[3];
	struct ptx_access access; /* size 0: it was no access to global memory */
	char what[256];
};

/*
 * What the caller provides. Device addresses are addresses of this process: a device pointer can be
 * dereferenced after `range` has returned a range that holds it. All functions are called from
 * several threads.
 */
struct ptx_env {
	void *ctx;
	/*
	 * Allocates zeroed, 256-byte aligned memory: for a module's .global and .const variables,
	 * for malloc() in kernels, and for cooperative launches. Returns 0 if none is left.
	 */
	uint64_t (*alloc)(void *ctx, size_t size);
	void (*free)(void *ctx, uint64_t addr);
	/* Returns the allocation that holds addr. The answer stays true for the whole launch. */
	struct ptx_range (*range)(void *ctx, uint64_t addr);
	/* Takes the text that a kernel printed, already formatted. */
	void (*print)(void *ctx, const char *text, size_t len);
	/* Takes the message of a failed assertion; NULL: the message goes to `print`. */
	void (*complain)(void *ctx, const char *text, size_t len);
	/*
	 * Sets the value of a conditional node, which the kernel names by its handle. Returns false
	 * if there is no such node. NULL: there are no conditional nodes.
	 */
	bool (*condition)(void *ctx, uint64_t handle, uint32_t value);
	/* An attribute of this device, for kernels that ask. False: there is no such attribute. */
	bool (*attribute)(void *ctx, uint32_t attr, int32_t *value);
	/*
	 * Returns the texture or surface that kernels know by this number, or NULL if there is
	 * none. The answer stays true for the whole launch. A NULL function means that there are no
	 * textures and surfaces.
	 */
	const struct ptx_image *(*image)(void *ctx, uint64_t number);
	/*
	 * If `written` is not NULL, the machine looks for reads of memory that was never written,
	 * and for races, and reports them to `found`. `written` returns whether any byte of the
	 * range has been written. The machine calls `wrote` for each write.
	 */
	bool (*written)(void *ctx, uint64_t addr, size_t len);
	void (*wrote)(void *ctx, uint64_t addr, size_t len);
	void (*found)(void *ctx, const struct ptx_finding *place);
	/* Read by ptx_load() only. It is no error if the module has no such variable. */
	const struct ptx_bound *bound;
	size_t bound_count;
	struct ptx_heap_quota *heap_quota; /* for malloc() in kernels; NULL: no limit */
	unsigned int device, devices;	   /* number of this device, and how many there are */
	unsigned int sm_count;		   /* for %nsmid */
	unsigned int max_regs;		   /* as .maxnreg, for every kernel; 0: no limit */
	unsigned int threads;		   /* host threads that one launch may use; 0: all cores */
};

/* Where and why something failed. text is one line without a newline. */
struct ptx_diag {
	unsigned int line; /* line of the PTX text; 0: unknown */
	char text[240];
	struct ptx_finding place;
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
	uint32_t const_bytes;	 /* user constants of the module */
	uint32_t regs;		 /* a GPU needs at least so many per thread; at most 255 */
	uint32_t max_threads;	 /* from .maxntid, else 1024 */
	bool bounded;		 /* the kernel has .maxntid or .reqntid */
	uint32_t req_threads[3]; /* .reqntid, else 0 */
	uint32_t min_blocks;	 /* .minnctapersm, else 0 */
	uint32_t ptx_version;	 /* 10 * major + minor of .target sm_XY, e.g. 75 */
};

struct ptx_launch {
	uint32_t grid[3], block[3];
	uint32_t dynamic_shared;
	const void *params; /* laid out as in ptx_kernel_info */
	size_t param_bytes;
	bool cooperative;
	uint32_t stack_bytes;	    /* per thread, at least, if functions are recursive */
	volatile const int *cancel; /* may be NULL; *cancel != 0: stop soon with PTX_KILLED */
};

enum ptx_status {
	PTX_OK = 0,
	PTX_INVALID_PTX, /* does not parse or breaks a rule; diag says where */
	PTX_UNSUPPORTED, /* valid, but not implemented; diag names the instruction */
	PTX_NO_MEMORY,
	PTX_NOT_FOUND,
	PTX_BAD_LAUNCH, /* dimensions or shared memory out of range */
	/* From here to PTX_STACK_OVERFLOW: a thread of a kernel has failed. */
	PTX_ILLEGAL_ADDRESS,
	PTX_MISALIGNED_ADDRESS,
	PTX_TRAP, /* trap, or the kernel cannot go on (e.g. barrier deadlock) */
	PTX_ASSERT,
	PTX_STACK_OVERFLOW,
	PTX_KILLED,
};

static inline bool ptx_is_fault(enum ptx_status st)
{
	return st >= PTX_ILLEGAL_ADDRESS && st <= PTX_STACK_OVERFLOW;
}

struct ptx_module;
struct ptx_kernel;

enum ptx_status ptx_load(const char *text, size_t len, const struct ptx_env *env,
			 struct ptx_module **out, struct ptx_diag *diag);
void ptx_unload(struct ptx_module *m);

/* Kernels (.entry) by number or by name. NULL: no such kernel. */
const struct ptx_kernel *ptx_kernel_at(const struct ptx_module *m, unsigned int i);
const struct ptx_kernel *ptx_kernel_find(const struct ptx_module *m, const char *name);
const struct ptx_kernel_info *ptx_kernel_info(const struct ptx_kernel *k);

/*
 * Returns the name of a function or variable that the module declares and uses, but that nobody
 * defines. NULL: there is none.
 */
const char *ptx_missing(const struct ptx_module *m);

/* Finds a .global or .const variable: stores address and size, or returns PTX_NOT_FOUND. */
enum ptx_status ptx_var_find(const struct ptx_module *m, const char *name, uint64_t *addr,
			     size_t *size);

/*
 * The memory of the variable that got the i-th, from 0 on: the same text gets its memory in the
 * same order. False: there are no more.
 */
bool ptx_var_at(const struct ptx_module *m, uint32_t i, uint64_t *addr, uint64_t *size);

/* Returns the name of the managed variable with number i. NULL: there are no more. */
const char *ptx_managed_at(const struct ptx_module *m, unsigned int i);

/*
 * Runs the whole grid and returns when it is done. After a fault, diag and its place name the
 * kernel, the line, the block and the thread.
 */
enum ptx_status ptx_run(const struct ptx_kernel *k, const struct ptx_launch *l,
			struct ptx_diag *diag);

const char *ptx_status_name(enum ptx_status s);

#endif
