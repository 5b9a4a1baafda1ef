/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What all of the driver API builds on. The functions of cuda.h are a second set of names for what
 * the layers below do: most of them convert their arguments and call the runtime's function. All
 * of them lie in libcudart.so.13, where a function cuX has the symbol qcul_drv_cuX; libcuda.so.1
 * holds a jump for each. So a process has one session and one state, whichever library it uses.
 *
 * cuda.syms lists the functions and says what each of them needs: cuInit, a current context. That
 * is checked where the program's call comes in (driver_api/entries.c), and not in the functions, so
 * that they may call one another. A function that returns through these macros leaves the runtime's
 * last error as it was.
 */
#ifndef QCUL_DRIVER_H
#define QCUL_DRIVER_H

#include "qcu-library/link/link.h"

#include <cuda.h>
#include <cudaProfiler.h>

/* Gives each function its symbol; made from cuda.syms. */
#include "driver_names.h"

/* ---- errors.c ---- */

CUresult qcul_driver_error(cudaError_t err);

/* ---- init.c ---- */

/* A call that is implemented, with something in it that is not. */
CUresult qcul_driver_unsupported(const char *what, atomic_flag *said);

/* ---- context.c ---- */

struct CUctx_st;
/* The current context of the thread, or NULL. */
struct CUctx_st *qcul_driver_current(void);
/* Waits for all work of the device. */
CUresult qcul_driver_wait(int device);
/* Is there such a device? */
CUresult qcul_driver_device_check(CUdevice device);
/* The device of a context. CUDA_ERROR_INVALID_CONTEXT: any pointer may be passed. */
CUresult qcul_driver_device(struct CUctx_st *context, int *device);
/* The same; no context stands for the current one. */
CUresult qcul_driver_device_or_current(struct CUctx_st *context, int *device);
/* The context of the thread if it is one of this device, else the device's primary context. */
struct CUctx_st *qcul_driver_context_of(int device);

/* ---- for the functions ---- */

/* The calls of the runtime below do not count as the program's use of the runtime. */
struct qcul_driver_call {
	cudaError_t last;
	unsigned int counted;
};

static inline struct qcul_driver_call qcul_driver_begin(void)
{
	const struct qcul_driver_call call = {qcul_self.last, qcul_self.counted};

	qcul_self.counted = atomic_load_explicit(&qcul_bindings, memory_order_relaxed);
	return call;
}

static inline CUresult qcul_driver_end(struct qcul_driver_call call, cudaError_t err)
{
	qcul_self.last = call.last;
	qcul_self.counted = call.counted;
	return err ? qcul_driver_error(err) : CUDA_SUCCESS;
}

/* The result of a runtime function as a CUresult. The thread's last error stays. */
#define QCUL_RUNTIME(call)                                                 \
	({                                                                 \
		const struct qcul_driver_call begun = qcul_driver_begin(); \
                                                                           \
		qcul_driver_end(begun, (call));                            \
	})

/* The thread's current device, and whether it has chosen it. */
struct qcul_driver_home {
	int device;
	bool chosen;
};

static inline struct qcul_driver_home qcul_driver_move(struct qcul_driver_home to)
{
	const struct qcul_driver_home home = {qcul_self.device, qcul_self.device_chosen};

	qcul_self.device = to.device;
	qcul_self.device_chosen = to.chosen;
	return home;
}

/* The same on another device than the thread's current one. */
#define QCUL_ON_DEVICE(number, call)                                          \
	({                                                                    \
		const struct qcul_driver_home there = {(number), true};       \
		const struct qcul_driver_home home = qcul_driver_move(there); \
		CUresult result_ = QCUL_RUNTIME(call);                        \
                                                                              \
		(void)qcul_driver_move(home);                                 \
		result_;                                                      \
	})

/* A device address and a pointer are the same. */
static inline void *qcul_driver_ptr(CUdeviceptr address)
{
	return (void *)(uintptr_t)address;
}

#endif
