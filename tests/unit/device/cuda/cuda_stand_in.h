/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stand-in for CUDA, for tests of the cuda backend's device memory without a GPU:
 *
 * - The driver's memory is files, which are mapped and unmapped where the backend says. So memory
 *   that is away cannot be read. Copies are made when their stream is waited for, and of what is
 *   large only a word in each MiB.
 * - Arrays have rows with a pitch, in memory of their own or in memory that is mapped. A large copy
 *   has some of the rows, and of those only the ends.
 * - Memory of cudaMalloc has an address and nothing behind it. CUDA takes whole units for it.
 * - Streams have done all of their work, but not what came after cuda_hold().
 */
#ifndef QCU_TEST_CUDA_STAND_IN_H
#define QCU_TEST_CUDA_STAND_IN_H

#include <stdbool.h>
#include <stdint.h>

#include "qcu-device/backend/cuda/be_cuda.h"

/*
 * The only device that a test uses: the second of two, or the only one. The next number is that of
 * the one that is only for the store.
 */
#define CUDA_DEVICE 1u
#define CUDA_ONLY   0u
#define PART	    (2 * BE_PIECE) /* the largest part then: the backend's own would take long */

extern struct cuda_stand_in {
	uint64_t used, room;	  /* of the driver's memory: how much exists, how much there is */
	uint64_t lent, lent_room; /* the same of the device that is only for the store */
	uint64_t exists; /* of memory of cudaMalloc, and of arrays that have some from the start */
	unsigned int arrays;	     /* exist */
	bool no_deferred;	     /* arrays cannot be made without memory */
	bool no_mapping;	     /* nor can they be mapped later */
	int deferred_error;	     /* is what one says who tries */
	unsigned int calls, fail_at; /* this call fails; 0: none */
	bool plots_only;	     /* cudaMalloc must not be called */
	bool busy;		     /* a stream works */
	int error;		     /* of a stream */
	float ms;		     /* the time of events that are recorded now */
	uint64_t recorded, reached;  /* how many events have been, and are known to be reached */
	unsigned int events;	     /* exist */
	unsigned int queries;	     /* of events */
	const struct cuda_variable {
		const char *name;
		uint64_t addr, size;
	} * variables; /* of a module without `lib`; the last one has no name */
} cuda;

/* What be_module.lib points to. CUDA gives it memory when it is first used. */
struct cuda_module {
	uint64_t other, size[2]; /* bytes of what it needs before its variables, a and b; 0: none */
	uint64_t at[3];		 /* of these, while it has memory */
	bool used;
	char name; /* of its first variable */
};
/* Uses it, as a kernel would. */
void cuda_use_module(struct be *be, struct cuda_module *m);
/* Unloads it. */
void cuda_end_module(struct cuda_module *m);
void cuda_forget_modules(void);
/* Counts a call that may fail. True: it fails, and returns CUDA_BROKEN. */
bool cuda_call_fails(void);
#define CUDA_BROKEN 719

/* Fills in the driver's functions. */
void cuda_begin(struct be *be, uint64_t room);
/* The same, and opens the memory, which can leave. Returns as cu_mem_open(). */
int cuda_open_movable(struct be *be, uint64_t room);
/* The same with one device. */
int cuda_open_only(struct be *be, uint64_t room);
/* A row of an array, or NULL if the array has no memory. */
#define CUDA_ROWS 64u /* of a large piece one in so many rows is copied, its first and its last */
void *cuda_array_row(cudaArray_t array, unsigned int z, unsigned int y);
/* Events that are recorded from now on are not reached, until a wait for the device. */
void cuda_hold(void);
/* Is it mapped memory of the device that is only for the store? */
bool cuda_is_lent(const void *p);
/* What the backend could not unmap there. Returns how many bytes that was. */
uint64_t cuda_drop_lent(void);
/* A reset has taken all memory of cudaMalloc. */
void cuda_forget(void);
/* Has everything been given back? */
bool cuda_is_empty(void);

#endif
